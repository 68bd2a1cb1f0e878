//! Panels, status lines, text, separators and hints.

use crate::output::element::{Entry, Hint, Level, Panel, Separator, Status, Text};
use crate::output::layout::{self, Line};
use crate::output::styled::{Styled, Tone};

use super::View;
use super::frame::frame;

pub(super) fn panel(panel: &Panel, view: &View) -> Vec<Line> {
    let mut body = Vec::new();
    for entry in &panel.entries {
        match entry {
            Entry::Field { label, shown, .. } => {
                let mut row = view.own(label, Tone::Key);
                row.push(":", Tone::Key);
                let mut lines = view.lines(shown).into_iter();
                if let Some(first) = lines.next().filter(|l| !l.spans.is_empty()) {
                    row.push(" ", Tone::Plain);
                    row.extend(first);
                }
                body.extend(layout::wrap_hanging(row, view.inner(), 2));
                for more in lines {
                    let mut row = Line::of("  ", Tone::Plain);
                    row.extend(more);
                    body.extend(layout::wrap_hanging(row, view.inner(), 2));
                }
            }
            Entry::Marked(mark, line) => {
                let mut row = view.mark(*mark, false);
                row.push(" ", Tone::Plain);
                row.extend(view.one_line(line.clone()));
                body.extend(layout::wrap_hanging(row, view.inner(), 2));
            }
            Entry::Line(line) => {
                for row in view.lines(line) {
                    let text = row.text();
                    // A list item's second row is aligned with the text of its first.
                    let marker =
                        text.find(' ').filter(|at| *at <= 3 && !text.starts_with(' ')).map_or(0, |at| at + 1);
                    let is_item = text.starts_with("- ") || text.split(". ").next().is_some_and(is_number);
                    body.extend(layout::wrap_hanging(row, view.inner(), if is_item { marker } else { 0 }));
                }
            }
        }
    }
    if body.is_empty() {
        body.push(Line::of("(empty)", Tone::Dim));
    }
    let title_tone = if panel.tone == Tone::Plain { Tone::Title } else { panel.tone };
    frame(view.own(&panel.title, title_tone), body, panel.border, panel.tone, view)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

pub(super) fn status(status: &Status, view: &View) -> Vec<Line> {
    let (boxed, ascii, tone) = match status.level {
        Level::Ok => ("✓ OK", "[OK]", Tone::Good),
        Level::Info => ("ℹ INFO", "[INFO]", Tone::Info),
        Level::Warn => ("⚠ WARN", "[WARN]", Tone::Warn),
        Level::Error => ("✗ ERROR", "[ERROR]", Tone::Bad),
    };
    let mut row = Line::of(if view.boxed { boxed } else { ascii }, tone);
    row.push(" ", Tone::Plain);
    row.extend(view.own(&status.text, Tone::Plain));
    let limit = view.limit.filter(|_| view.boxed);
    let mut out = layout::wrap_hanging(row, limit, 2);
    if let Some(detail) = &status.detail {
        for line in view.lines(&Styled::new(detail.as_str(), Tone::Dim)) {
            let mut row = Line::of("  ", Tone::Plain);
            row.extend(line);
            out.extend(layout::wrap_hanging(row, limit, 2));
        }
    }
    out
}

pub(super) fn text(text: &Text, view: &View) -> Vec<Line> {
    if text.content.is_empty() {
        return Vec::new();
    }
    let indent = " ".repeat(text.indent);
    let mut out = Vec::new();
    for line in view.lines(&text.content.as_str().into()) {
        let room = view.limit.filter(|_| text.wrap).map(|w| w.saturating_sub(text.indent).max(1));
        let rows = match room {
            Some(room) => layout::wrap(line, room),
            None => vec![line],
        };
        out.extend(rows.into_iter().map(|row| {
            let mut indented = Line::of(indent.as_str(), Tone::Plain);
            indented.extend(row);
            indented
        }));
    }
    out
}

pub(super) fn separator(separator: Separator, view: &View) -> Vec<Line> {
    let width = view.limit.unwrap_or(80).min(80);
    let across = match (separator, view.boxed) {
        (Separator::Blank, _) => return Vec::new(),
        (Separator::Line, true) => "─",
        (Separator::Double, true) => "═",
        (Separator::Line, false) => "-",
        (Separator::Double, false) => "=",
    };
    vec![Line::of(across.repeat(width), Tone::Dim)]
}

pub(super) fn hint(hint: &Hint, view: &View) -> Vec<Line> {
    let mut body = Vec::new();
    for command in &hint.commands {
        let mut row = Line::of("- ", Tone::Dim);
        row.extend(view.one_line(Styled::new(command.as_str(), Tone::Id)));
        body.extend(layout::wrap_hanging(row, view.inner(), 2));
    }
    frame(view.own(&hint.title, Tone::Title), body, Default::default(), Tone::Plain, view)
}
