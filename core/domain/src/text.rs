//! Positions, edits and how edits are applied to a text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place in a text: 0-based line, 0-based **UTF-8 byte** column within that line.
///
/// Other encodings (UTF-16 and UTF-32 of the language server protocol) are converted at the edge.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
pub struct Position {
    /// 0-based line.
    pub line: u32,
    /// 0-based byte offset in the line.
    pub column: u32,
}

/// A half-open range of a text.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
pub struct Range {
    /// Where it starts.
    pub start: Position,
    /// Where it ends, exclusive.
    pub end: Position,
}

impl Range {
    /// A range from two `(line, column)` pairs.
    pub fn new(start: (u32, u32), end: (u32, u32)) -> Self {
        let position = |(line, column)| Position { line, column };
        Self { start: position(start), end: position(end) }
    }
}

/// Replaces the text of a range.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct TextEdit {
    /// What is replaced.
    pub range: Range,
    /// By what.
    pub new_text: String,
}

/// What is done to one file; paths are relative to the workspace root, with `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum FileEdit {
    /// Edits inside a file; the edits do not overlap.
    Edit {
        /// The file.
        path: String,
        /// Its edits.
        edits: Vec<TextEdit>,
    },
    /// A new file, refused when it exists.
    Create {
        /// The file.
        path: String,
        /// Its whole text.
        text: String,
    },
    /// Gives a file its whole content, new or not.
    Write {
        /// The file.
        path: String,
        /// What it says then.
        content: Content,
    },
    /// Moves a file, refused when the target exists.
    Rename {
        /// From.
        path: String,
        /// To.
        to: String,
    },
    /// Removes a file.
    Delete {
        /// The file.
        path: String,
    },
}

/// The content of a file: its text, or its bytes where they are no UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Content {
    Text(String),
    Bytes(Vec<u8>),
}

impl Content {
    /// Of these bytes.
    pub fn of(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl FileEdit {
    /// The file it touches (the source of a rename).
    pub fn path(&self) -> &str {
        match self {
            Self::Edit { path, .. }
            | Self::Create { path, .. }
            | Self::Write { path, .. }
            | Self::Rename { path, .. }
            | Self::Delete { path } => path,
        }
    }
}

/// Why edits could not be applied to a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// A position lies outside the text or inside a character.
    #[error("line {line}, byte {column} is outside the text or inside a character")]
    OutOfRange {
        /// 1-based line.
        line: u32,
        /// 0-based byte column.
        column: u32,
    },
    /// Two edits touch the same text.
    #[error("two edits overlap at line {line}")]
    Overlap {
        /// 1-based line.
        line: u32,
    },
}

/// Byte offsets of the starts of lines; `\n`, `\r\n` and a lone `\r` end a line, as in the language server protocol.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<usize>,
    len: usize,
}

impl LineIndex {
    /// Indexes a text.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            if *byte == b'\n' || (*byte == b'\r' && bytes.get(at + 1) != Some(&b'\n')) {
                starts.push(at + 1);
            }
        }
        Self { starts, len: bytes.len() }
    }

    /// How many lines the text has; an empty text has one.
    pub fn lines(&self) -> usize {
        self.starts.len()
    }

    /// The byte offset of a position, or `None` outside the text or inside a character.
    ///
    /// A column past the end of its line, and the line just past the last, mean their ends, as servers use them.
    pub fn offset(&self, text: &str, position: Position) -> Option<usize> {
        let line = position.line as usize;
        if line >= self.starts.len() {
            return (line == self.starts.len()).then_some(self.len);
        }
        let start = self.starts[line];
        let end = self.line_end(text, line);
        let offset = start.checked_add(position.column as usize)?.min(end);
        text.is_char_boundary(offset).then_some(offset)
    }

    /// The position of a byte offset (clamped to the text).
    pub fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.len);
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position { line: clamp(line), column: clamp(offset - self.starts[line]) }
    }

    /// Where a line ends, without its line break.
    pub fn line_end(&self, text: &str, line: usize) -> usize {
        let end = self.starts.get(line + 1).copied().unwrap_or(self.len);
        let start = self.starts[line];
        text[start..end].trim_end_matches(['\n', '\r']).len() + start
    }
}

/// Applies edits that do not overlap; inserts at one place keep their order.
pub fn apply_edits(text: &str, edits: &[TextEdit]) -> Result<String, EditError> {
    let index = LineIndex::new(text);
    let offset = |position: Position| {
        index
            .offset(text, position)
            .ok_or(EditError::OutOfRange { line: position.line.saturating_add(1), column: position.column })
    };
    let mut spans = Vec::with_capacity(edits.len());
    for edit in edits {
        let (start, end) = (offset(edit.range.start)?, offset(edit.range.end)?);
        if start > end {
            let at = edit.range.start;
            return Err(EditError::OutOfRange { line: at.line.saturating_add(1), column: at.column });
        }
        spans.push((start, end, edit.new_text.as_str()));
    }
    spans.sort_by_key(|(start, end, _)| (*start, *end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, new_text) in spans {
        if start < at {
            return Err(EditError::Overlap { line: index.position(start).line + 1 });
        }
        out.push_str(&text[at..start]);
        out.push_str(new_text);
        at = end;
    }
    out.push_str(&text[at..]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit(start: (u32, u32), end: (u32, u32), new_text: &str) -> TextEdit {
        TextEdit { range: Range::new(start, end), new_text: new_text.to_owned() }
    }

    #[test]
    fn edits_apply_in_text_order_whatever_order_they_come_in() {
        let text = "a\r\nbb\nccc";
        let edits = [edit((2, 1), (2, 2), "X"), edit((0, 0), (1, 0), ""), edit((1, 2), (1, 2), "!")];
        assert_eq!(apply_edits(text, &edits).unwrap(), "bb!\ncXc");
    }

    #[test]
    fn inserts_at_one_place_keep_their_order() {
        let edits = [edit((0, 1), (0, 1), "1"), edit((0, 1), (0, 1), "2")];
        assert_eq!(apply_edits("ab", &edits).unwrap(), "a12b");
    }

    #[test]
    fn overlapping_and_outside_edits_are_refused() {
        assert_eq!(
            apply_edits("abc", &[edit((0, 0), (0, 2), ""), edit((0, 1), (0, 3), "")]),
            Err(EditError::Overlap { line: 1 })
        );
        assert!(matches!(apply_edits("abc", &[edit((7, 0), (7, 0), "")]), Err(EditError::OutOfRange { .. })));
        assert!(matches!(apply_edits("é", &[edit((0, 1), (0, 2), "")]), Err(EditError::OutOfRange { .. })));
    }

    proptest! {
        #[test]
        fn every_offset_on_a_character_boundary_round_trips(text in "[a\\né\\r😀 ]{0,40}") {
            let index = LineIndex::new(&text);
            for (at, _) in text.char_indices() {
                // An offset inside a line break has no position of its own.
                let inside_break = at > 0 && text.as_bytes()[at - 1] == b'\r' && text.as_bytes()[at] == b'\n';
                if !inside_break {
                    prop_assert_eq!(index.offset(&text, index.position(at)), Some(at));
                }
            }
        }
    }
}
