//! The decisions that wait, at their places in a text that may have been edited since they were asked.

use agents_domain::changes::Hunk;
use agents_domain::provenance::hunks;
use agents_domain::text;
use agents_engine::operations::plan::PendingDecision;
use tower_lsp::lsp_types::{Position, Range};

use super::Shared;
use super::lines::{EngineLines, whole_lines};
use super::provenance::LARGEST;
use crate::documents::{Document, Text};
use crate::watch::world::{FileKey, World};

/// A decision that waits, at one of its places in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'w> {
    pub decision: &'w PendingDecision,
    /// Which of the decision's resources it is.
    pub nth: usize,
    pub range: Range,
}

/// The decisions about a file, where they are in `text`; `saved` is the file on disk, which they were made about.
pub(crate) fn asked<'w>(
    world: &'w World,
    file: &FileKey,
    text: &Text,
    saved: Option<&str>,
) -> Vec<Asked<'w>> {
    let mut found = world.questions.at(file).peekable();
    if found.peek().is_none() {
        return Vec::new();
    }
    let edits = match saved {
        Some(saved) if text.len() <= LARGEST && saved.len() <= LARGEST && *text.rope() != saved => {
            hunks(saved, &text.to_string())
        }
        _ => Vec::new(),
    };
    let lines = EngineLines::of(text);
    found
        .map(|(decision, nth)| {
            let range = decision.resources.get(nth).and_then(|place| place.range);
            Asked { decision, nth, range: locate(range, &lines, text, &edits) }
        })
        .collect()
}

fn locate(range: Option<text::Range>, lines: &EngineLines<'_>, text: &Text, edits: &[Hunk]) -> Range {
    let Some(range) = range else { return whole_lines(text, 0, 0) };
    let carried = |at: text::Position| text::Position { line: carry(at.line, edits), ..at };
    let (start, end) = (lines.position(carried(range.start)), lines.position(carried(range.end)));
    Range::new(start, end.max(start))
}

/// Where a line is after edits; one that was rewritten is where its edit begins.
fn carry(line: u32, edits: &[Hunk]) -> u32 {
    let mut shift = 0;
    for edit in edits.iter().take_while(|edit| edit.old_start <= line) {
        if line < edit.old_start + edit.old_lines {
            return edit.new_start;
        }
        shift += i64::from(edit.new_lines) - i64::from(edit.old_lines);
    }
    u32::try_from(i64::from(line) + shift).unwrap_or(0)
}

/// Whether a range that a client asks about has anything to do with another.
pub(crate) fn touch(a: Range, b: Range) -> bool {
    let before = |end: Position, start: Position| end < start;
    !before(a.end, b.start) && !before(b.end, a.start)
}

impl Shared {
    /// The file on disk that a document's questions were asked about, when there are any.
    pub async fn saved_text(&self, world: &World, file: &FileKey) -> Option<String> {
        world.questions.at(file).next()?;
        let path = world.registry.path(file)?;
        let read = tokio::task::spawn_blocking(move || std::fs::read(path));
        let bytes = read.await.ok()?.ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The file a document is, also where no decision is behind any of its lines.
    pub async fn file_of(&self, world: &World, document: &Document) -> Option<FileKey> {
        if let Some(found) = self.provenance(document).await {
            return Some(found.file.clone());
        }
        world.registry.place(&document.uri().to_path()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_moves_with_the_edits_before_it() {
        let edits = hunks("a\nb\nc\nd\n", "x\na\nB\nd\n");
        let at = |line| carry(line, &edits);
        assert_eq!((at(0), at(1), at(3)), (1, 2, 3));
        assert_eq!(carry(7, &[]), 7);
    }

    #[test]
    fn a_position_at_an_end_touches() {
        let range = |a, b| Range::new(Position::new(1, a), Position::new(1, b));
        assert!(touch(range(3, 3), range(0, 3)) && touch(range(0, 9), range(3, 4)));
        assert!(!touch(range(4, 5), range(0, 3)));
    }
}
