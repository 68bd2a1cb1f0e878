//! `rich`: finished elements scroll away above, what is still being worked on is redrawn in place below them. No other
//! part of the screen is touched, so the scrollback stays whole.

use std::io::{self, Write};

use super::document::{Document, Slot};
use super::element::{Element, Text};
use super::format;
use super::layout::Line;
use super::render::{self, View};
use super::strategy::{Event, Renderer, Spacing, Strategy, What, write_all};

/// Asks for columns and rows of the terminal, which may change at any time.
pub type Size = fn() -> Option<(u16, u16)>;

/// The strategy of the `rich` format.
pub struct Live {
    view: View,
    height: usize,
    size: Size,
    writer: Box<dyn Write + Send>,
    spacing: Spacing,
    /// All slots before this one were written for good.
    first: usize,
    /// How many bytes of the text that is first were written for good.
    text_done: usize,
    /// Widths of the rows of the tail on the screen.
    drawn: Vec<usize>,
    /// Whether something changed since the last frame.
    dirty: bool,
    suspended: bool,
    hidden_cursor: bool,
}

impl Live {
    /// Draws on a terminal of this height.
    pub fn new(view: View, height: usize, writer: Box<dyn Write + Send>) -> Self {
        Self {
            view,
            height,
            size: format::terminal_size,
            writer,
            spacing: Spacing::default(),
            first: 0,
            text_done: 0,
            drawn: Vec::new(),
            dirty: false,
            suspended: false,
            hidden_cursor: false,
        }
    }

    /// Asks this for the size of the terminal instead of the terminal.
    pub fn size(mut self, size: Size) -> Self {
        self.size = size;
        self
    }

    /// One write: what is finished, then the tail of what is not.
    fn frame(&mut self, doc: &Document, with_tail: bool) -> io::Result<()> {
        if let Some((width, height)) = (self.size)() {
            self.view.limit = Some(usize::from(width).max(1));
            self.height = usize::from(height);
        }
        self.view.now = doc.elapsed;
        let up = self.rows_on_screen();
        let mut rows: Vec<String> = Vec::new();
        self.finished(doc, &mut rows);
        let tail = if with_tail { self.tail(doc) } else { Vec::new() };
        self.dirty = false;
        if rows.is_empty() && tail.is_empty() && self.drawn.is_empty() {
            return Ok(());
        }
        let mut out = String::new();
        let redraws = up > 0 || !tail.is_empty();
        if redraws {
            // Terminals that know synchronised updates show the frame at once; the others ignore it.
            out.push_str("\x1b[?2026h");
            if !self.hidden_cursor && !tail.is_empty() {
                out.push_str("\x1b[?25l");
                self.hidden_cursor = true;
            }
            if up > 0 {
                out.push_str(&format!("\r\x1b[{up}A"));
            }
        }
        let erase = if up > 0 { "\x1b[K" } else { "" };
        for row in rows {
            out.push_str(erase);
            out.push_str(&row);
            out.push('\n');
        }
        self.drawn.clear();
        for row in tail {
            out.push_str(erase);
            out.push_str(&render::paint(&row, &self.view));
            out.push('\n');
            self.drawn.push(row.width());
        }
        if redraws {
            out.push_str("\x1b[J");
            if self.drawn.is_empty() && self.hidden_cursor {
                out.push_str("\x1b[?25h");
                self.hidden_cursor = false;
            }
            out.push_str("\x1b[?2026l");
        }
        write_all(&mut self.writer, &out)
    }

    /// Rows of the screen that the tail takes, also after the terminal became narrower and broke its lines.
    fn rows_on_screen(&self) -> usize {
        let width = self.view.limit.unwrap_or(80).max(1);
        self.drawn.iter().map(|w| w.div_ceil(width).max(1)).sum()
    }

    /// Takes out what can be written for good: everything before the first open element, in order of declaration, and the
    /// whole lines of a text that is next.
    fn finished(&mut self, doc: &Document, rows: &mut Vec<String>) {
        while let Some(slot) = doc.slots.get(self.first) {
            if let Element::Text(text) = &slot.element
                && (slot.open || self.text_done > 0)
            {
                self.stream(text, slot, rows);
            } else if !slot.open {
                let shown = self.view.render(&slot.element, doc.elapsed);
                if !shown.is_empty() {
                    rows.extend((!self.spacing.before(&slot.element).is_empty()).then(String::new));
                    rows.extend(shown.lines().map(str::to_owned));
                }
            }
            if slot.open {
                return;
            }
            self.text_done = 0;
            self.first += 1;
        }
    }

    /// Writes the whole lines of a growing text; of a finished one, everything.
    fn stream(&mut self, text: &Text, slot: &Slot, rows: &mut Vec<String>) {
        // Text that was replaced by a shorter one has nothing left to show.
        let rest = text.content.get(self.text_done..).unwrap_or_default();
        let ready = if slot.open { rest.rfind('\n').map_or("", |at| &rest[..=at]) } else { rest };
        if ready.is_empty() {
            return;
        }
        if self.text_done == 0 {
            rows.extend((!self.spacing.before(&slot.element).is_empty()).then(String::new));
        }
        let part = Element::Text(Text { content: ready.to_owned(), ..text.clone() });
        rows.extend(render::rows(&part, &self.view).iter().map(|row| render::paint(row, &self.view)));
        self.text_done += ready.len();
    }

    /// What is not finished, in order, then the status lines that wait; no more rows than the screen can redraw.
    fn tail(&self, doc: &Document) -> Vec<Line> {
        let waiting = |status: bool| {
            doc.slots
                .iter()
                .enumerate()
                .skip(self.first)
                .filter(move |(_, slot)| matches!(slot.element, Element::Status(_)) == status)
        };
        let mut spacing = None;
        let mut out: Vec<Line> = Vec::new();
        for (index, slot) in waiting(false).chain(waiting(true)) {
            if matches!(&slot.element, Element::Progress(p) if p.transient && !slot.open) {
                continue;
            }
            let continues = index == self.first && self.text_done > 0;
            let view = View { open: slot.open, ..self.view.clone() };
            let rows = match &slot.element {
                Element::Text(text) if continues => {
                    let content = text.content.get(self.text_done..).unwrap_or_default().to_owned();
                    if content.is_empty() {
                        Vec::new()
                    } else {
                        render::rows(&Element::Text(Text { content, ..text.clone() }), &view)
                    }
                }
                Element::Text(text) if text.content.is_empty() => Vec::new(),
                element => render::rows(element, &view),
            };
            if rows.is_empty() {
                continue;
            }
            let is_status = matches!(slot.element, Element::Status(_));
            let gap = match spacing {
                None => !continues && !self.spacing.peek(&slot.element).is_empty(),
                Some(last_was_status) => !(last_was_status && is_status),
            };
            out.extend(gap.then(Line::default));
            out.extend(rows);
            spacing = Some(is_status);
        }
        let most = self.height.saturating_sub(1).max(1);
        let cut = out.len().saturating_sub(most);
        out.drain(..cut);
        out
    }
}

impl Strategy for Live {
    fn on(&mut self, event: &Event<'_>, doc: &Document) -> io::Result<()> {
        match event.what {
            What::Created(_) | What::Updated(_) => {
                self.dirty = true;
                Ok(())
            }
            // While a tail is on the screen, frames set the pace; otherwise what is finished is shown at once.
            What::Closed(_) if self.drawn.is_empty() && !self.suspended => self.frame(doc, false),
            What::Closed(_) => {
                self.dirty = true;
                Ok(())
            }
            What::Tick => {
                let moves = doc.slots.iter().skip(self.first).any(|slot| slot.open);
                if self.suspended || !(moves || self.dirty) { Ok(()) } else { self.frame(doc, true) }
            }
            What::Suspended(on_output) => {
                self.frame(doc, false)?;
                self.suspended = true;
                let gap = if on_output { self.spacing.prompt() } else { "" };
                write_all(&mut self.writer, gap)
            }
            What::Resumed => {
                self.suspended = false;
                self.dirty = true;
                Ok(())
            }
            What::SessionEnd => self.frame(doc, false),
        }
    }

    fn ticks(&self) -> bool {
        true
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.hidden_cursor {
            // The terminal may be gone already; then there is no cursor to bring back.
            let _ = write_all(&mut self.writer, "\x1b[?25h");
        }
    }
}
