//! When elements reach the terminal: one after another, all at the end, or (in `live`) while they change.

use std::io::{self, Write};
use std::time::Duration;

use super::document::{Document, Envelope};
use super::element::Element;
use super::layout;
use super::render::{self, View};

/// Something that happened in a session.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// When.
    pub at: jiff::Timestamp,
    /// ULID of the session.
    pub session_id: &'a str,
    /// What.
    pub what: What,
}

/// What happened; indices are those of [`Document::slots`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A new element.
    Created(usize),
    /// An element changed.
    Updated(usize),
    /// An element will not change any more.
    Closed(usize),
    /// A moment passed.
    Tick,
    /// A prompt is about to be shown; with `true`, on the stream of the output.
    Suspended(bool),
    /// The prompt was answered.
    Resumed,
    /// Nothing will follow; the document has its exit code.
    SessionEnd,
}

/// Decides when elements are written.
pub trait Strategy: Send {
    /// Called for every event, in order, with everything produced so far.
    ///
    /// # Errors
    /// When the output cannot be written.
    fn on(&mut self, event: &Event<'_>, doc: &Document) -> io::Result<()>;

    /// Whether [`What::Tick`] should come about fifteen times a second.
    fn ticks(&self) -> bool {
        false
    }

    /// Whether elements without a key matter; where nobody reads them, their content is not even collected.
    fn shows_people(&self) -> bool {
        true
    }
}

/// Shows a finished element.
pub trait Renderer: Send {
    /// The element with line breaks; empty for what the format leaves out. `now` is the time since the session began.
    fn render(&self, element: &Element, now: Duration) -> String;
}

impl Renderer for View {
    fn render(&self, element: &Element, now: Duration) -> String {
        match element {
            Element::Progress(progress) if progress.transient => return String::new(),
            Element::Table(table) => {
                if let Some(text) = render::plain_table(table, self) {
                    return text;
                }
            }
            _ => {}
        }
        let view = View { now, ..self.clone() };
        render::rows(element, &view).iter().map(|row| render::paint(row, &view) + "\n").collect()
    }
}

/// Where the writer stands: blank lines go between elements, but not between status lines.
#[derive(Debug, Default)]
pub(super) struct Spacing {
    last_was_status: Option<bool>,
}

impl Spacing {
    /// The gap before the next element.
    pub(super) fn before(&mut self, element: &Element) -> &'static str {
        let gap = self.peek(element);
        self.last_was_status = Some(matches!(element, Element::Status(_)));
        gap
    }

    /// The gap that would come before this element.
    pub(super) fn peek(&self, element: &Element) -> &'static str {
        match (self.last_was_status, element) {
            (None, _) | (Some(true), Element::Status(_)) => "",
            _ => "\n",
        }
    }

    /// The gap before a prompt, which counts as an element.
    pub(super) fn prompt(&mut self) -> &'static str {
        let gap = if self.last_was_status.is_some() { "\n" } else { "" };
        self.last_was_status = Some(false);
        gap
    }
}

/// `plain`, `color` and `table`: each element once it is closed, in the order of declaration. Text that is next in order
/// is written as it comes.
pub struct Sequential {
    renderer: Box<dyn Renderer>,
    writer: Box<dyn Write + Send>,
    spacing: Spacing,
    next: usize,
    /// What of the text in front was written already.
    streamed: String,
}

impl Sequential {
    /// Writes what the renderer shows.
    pub fn new(renderer: Box<dyn Renderer>, writer: Box<dyn Write + Send>) -> Self {
        Self { renderer, writer, spacing: Spacing::default(), next: 0, streamed: String::new() }
    }

    fn advance(&mut self, doc: &Document) -> io::Result<()> {
        let mut out = String::new();
        while let Some(slot) = doc.slots.get(self.next) {
            if let Element::Text(text) = &slot.element
                && (slot.open || !self.streamed.is_empty())
            {
                self.stream(&text.content, text.indent, &slot.element, slot.open, &mut out);
                if slot.open {
                    break;
                }
                self.streamed.clear();
            } else if slot.open {
                break;
            } else {
                let shown = self.renderer.render(&slot.element, doc.elapsed);
                if !shown.is_empty() {
                    out.push_str(self.spacing.before(&slot.element));
                    out.push_str(&shown);
                }
            }
            self.next += 1;
        }
        write_all(&mut self.writer, &out)
    }

    /// Writes what is new of a growing text. A carriage return at the end waits for what follows it.
    fn stream(&mut self, content: &str, indent: usize, element: &Element, open: bool, out: &mut String) {
        let ready = if open { content.strip_suffix('\r').unwrap_or(content) } else { content };
        let new = match ready.strip_prefix(self.streamed.as_str()) {
            Some(new) => new,
            // The text was replaced: it is written again in full.
            None => {
                out.push_str(if self.streamed.ends_with('\n') { "" } else { "\n" });
                self.streamed.clear();
                ready
            }
        };
        if self.streamed.is_empty() && !new.is_empty() {
            out.push_str(self.spacing.before(element));
        }
        let pad = " ".repeat(indent);
        let mut at_line_start = self.streamed.is_empty() || self.streamed.ends_with('\n');
        for piece in layout::clean(new).split_inclusive('\n') {
            out.push_str(if at_line_start && piece != "\n" { &pad } else { "" });
            out.push_str(piece);
            at_line_start = piece.ends_with('\n');
        }
        self.streamed = ready.to_owned();
        if !open && !ready.is_empty() && !ready.ends_with('\n') {
            out.push('\n');
        }
    }
}

impl Strategy for Sequential {
    fn on(&mut self, event: &Event<'_>, doc: &Document) -> io::Result<()> {
        match event.what {
            What::Updated(index) if index != self.next => Ok(()),
            What::Created(_) | What::Updated(_) | What::Closed(_) | What::SessionEnd => self.advance(doc),
            What::Suspended(true) => {
                let gap = self.spacing.prompt();
                write_all(&mut self.writer, gap)
            }
            What::Suspended(false) | What::Resumed | What::Tick => Ok(()),
        }
    }
}

/// How a document is printed.
pub type Print = fn(&Envelope<'_>, &mut dyn Write) -> io::Result<()>;

/// `json` and `yaml`: one document at the end.
pub struct Accumulate {
    print: Print,
    writer: Box<dyn Write + Send>,
}

impl Accumulate {
    /// Writes the envelope as `print` puts it.
    pub fn new(print: Print, writer: Box<dyn Write + Send>) -> Self {
        Self { print, writer }
    }
}

impl Strategy for Accumulate {
    fn on(&mut self, event: &Event<'_>, doc: &Document) -> io::Result<()> {
        match event.what {
            What::SessionEnd => {
                (self.print)(&doc.envelope(), &mut self.writer)?;
                self.writer.flush()
            }
            _ => Ok(()),
        }
    }

    fn shows_people(&self) -> bool {
        false
    }
}

/// Writes and flushes in one go; nothing for nothing.
pub(super) fn write_all(writer: &mut dyn Write, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    writer.write_all(text.as_bytes())?;
    writer.flush()
}
