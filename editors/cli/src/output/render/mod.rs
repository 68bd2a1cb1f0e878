//! Turns elements into rows of text for the four formats that people read.

mod code;
mod diff;
mod frame;
mod progress;
mod simple;
mod table;
mod tree;

use std::time::Duration;

use super::element::{Element, Level, Mark};
use super::format::{Background, Caps, Format};
use super::layout::{self, Line};
use super::styled::{Styled, Tone};

pub use table::plain as plain_table;

/// How a format shows elements on this terminal at this moment.
#[derive(Debug, Clone)]
pub struct View {
    /// Boxes and symbols, or the ASCII layout.
    pub boxed: bool,
    /// Whether things may move and colours may be finer.
    pub rich: bool,
    /// Whether escape sequences for colours are written.
    pub color: bool,
    /// The width to keep to, if somebody looks at a screen.
    pub limit: Option<usize>,
    /// Background of every second table row, as parameters of an SGR sequence.
    pub shade: Option<&'static str>,
    /// Time since the session began.
    pub now: Duration,
    /// Whether the element may still change: it shows that it is being worked on.
    pub open: bool,
    /// Most rows an open table shows.
    pub window: usize,
    /// Results only: progress, hints and good news are left out.
    pub quiet: bool,
}

impl View {
    /// The look of a format on a terminal.
    pub fn new(format: Format, caps: &Caps) -> View {
        let rich = format == Format::Rich;
        let boxed = rich || format == Format::Table;
        View {
            boxed,
            rich,
            color: format != Format::Plain && !caps.no_color && !caps.dumb,
            limit: caps.limit(),
            shade: caps.background.filter(|_| rich && caps.colors_256).map(|ground| match ground {
                Background::Dark => "48;5;235",
                Background::Light => "48;5;254",
            }),
            now: Duration::ZERO,
            open: false,
            window: caps.height.saturating_sub(12).max(5),
            quiet: false,
        }
    }

    /// Whether this view can draw boxes: below a dozen columns they would only take room.
    fn draws_boxes(&self) -> bool {
        self.boxed && self.limit.is_none_or(|w| w >= 12)
    }

    /// The width inside a box, if limited. The ASCII layout is never limited: it is for pipes and for reading aloud.
    fn inner(&self) -> Option<usize> {
        match (self.boxed, self.draws_boxes()) {
            (false, _) => None,
            (true, true) => self.limit.map(|w| w - 4),
            (true, false) => self.limit,
        }
    }

    /// Our own wording on one row.
    fn own(&self, text: &str, tone: Tone) -> Line {
        layout::one_line(Styled::new(text, tone).owned(), !self.boxed)
    }

    fn lines(&self, text: &Styled) -> Vec<Line> {
        layout::lines(text, !self.boxed)
    }

    fn one_line(&self, text: Styled) -> Line {
        layout::one_line(text, !self.boxed)
    }

    /// What shows that something was left out.
    fn ellipsis(&self) -> &'static str {
        if self.boxed { "…" } else { "..." }
    }

    /// The icon of a step or a node. `spins` tells whether an active one turns.
    fn mark(&self, mark: Mark, spins: bool) -> Line {
        let (ascii, fixed, tone) = match mark {
            Mark::Done => ("[x]", "✓", Tone::Good),
            Mark::Active => ("[>]", "⏳", Tone::Warn),
            Mark::Pending => ("[ ]", if self.rich { "○" } else { "•" }, Tone::Dim),
            Mark::Error => ("[!]", "✗", Tone::Bad),
            Mark::Skipped => ("[-]", "–", Tone::Dim),
            Mark::Waiting => ("[?]", "?", Tone::Warn),
        };
        if !self.boxed {
            return Line::of(ascii, tone);
        }
        if self.rich && mark == Mark::Active {
            return if spins && self.open {
                Line::of(progress::spinner(self.now), Tone::Info)
            } else {
                Line::of("◐", Tone::Warn)
            };
        }
        Line::of(fixed, tone)
    }
}

/// The rows of an element.
pub fn rows(element: &Element, view: &View) -> Vec<Line> {
    if view.quiet && is_chatter(element) {
        return Vec::new();
    }
    match element {
        Element::Panel(panel) => simple::panel(panel, view),
        Element::Table(table) => table::rows(table, view),
        Element::Tree(tree) => tree::rows(tree, view),
        Element::Progress(progress) => progress::rows(progress, view),
        Element::Status(status) => simple::status(status, view),
        Element::Text(text) => simple::text(text, view),
        Element::Code(code) => code::rows(code, view),
        Element::Diff(diff) => diff::rows(diff, view),
        Element::Separator(separator) => simple::separator(*separator, view),
        Element::Hint(hint) => simple::hint(hint, view),
    }
}

/// What a person who wants results only does not want.
fn is_chatter(element: &Element) -> bool {
    match element {
        Element::Progress(_) | Element::Hint(_) => true,
        Element::Status(status) => matches!(status.level, Level::Ok | Level::Info),
        _ => false,
    }
}

/// A row as bytes for the terminal, without a line break.
pub fn paint(line: &Line, view: &View) -> String {
    let shade = view.shade.filter(|_| line.shade && view.color);
    let last = line.spans.len().saturating_sub(1);
    let mut out = String::new();
    for (i, span) in line.spans.iter().enumerate() {
        let tone = if view.color { sgr(span.tone) } else { "" };
        // The first and the last span of a shaded row are the edges of its box.
        match (tone, shade.filter(|_| i > 0 && i < last)) {
            ("", None) => out.push_str(&span.text),
            (one, None) | ("", Some(one)) => out.push_str(&format!("\x1b[{one}m{}\x1b[0m", span.text)),
            (tone, Some(shade)) => out.push_str(&format!("\x1b[{tone};{shade}m{}\x1b[0m", span.text)),
        }
    }
    out
}

/// Parameters of the escape sequence that starts a tone.
fn sgr(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Title => "1;36",
        Tone::Key => "1;34",
        Tone::Good => "32",
        Tone::Warn => "33",
        Tone::Bad => "31",
        Tone::Info => "34",
        Tone::Id => "36",
        Tone::Word => "35",
        Tone::Dim => "2",
        Tone::Strong => "1",
    }
}
