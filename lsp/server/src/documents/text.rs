//! A text with its position encoding: the only place where lines, columns and offsets are converted.

use std::fmt;
use std::ops;

use ropey::{Rope, RopeSlice};
use tower_lsp::lsp_types::{Position, Range};

use super::PositionEncoding;

/// A text at one moment. Cloning shares the content. Offsets are bytes of UTF-8.
///
/// Lines end at `\n`, `\r\n` or a lone `\r` and at nothing else (LSP 3.17, "Text Documents"). Positions are never
/// refused: a line past the end is the end of the text, a character past the end of its line is the end of that line
/// before its terminator, one inside a character is that character's start, and a range whose ends are the wrong way
/// round is turned.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    rope: Rope,
    encoding: PositionEncoding,
}

impl Text {
    /// A text whose positions count in `encoding`.
    pub fn new(content: &str, encoding: PositionEncoding) -> Self {
        Self { rope: Rope::from_str(content), encoding }
    }

    /// What positions of this text count in.
    pub fn encoding(&self) -> PositionEncoding {
        self.encoding
    }

    /// The same text with positions that count in another encoding. Cheap: the content is shared.
    pub fn counted_in(&self, encoding: PositionEncoding) -> Self {
        Self { rope: self.rope.clone(), encoding }
    }

    /// The content, for algorithms that walk it.
    pub fn rope(&self) -> &Rope {
        &self.rope
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.rope.len_bytes()
    }

    /// Whether there is no content.
    pub fn is_empty(&self) -> bool {
        self.rope.len_bytes() == 0
    }

    /// Number of lines; at least one, and the empty one after a final line break counts.
    pub fn line_count(&self) -> usize {
        self.rope.len_lines()
    }

    /// Line `line` (from zero) without its terminator; `None` past the last one.
    pub fn line(&self, line: usize) -> Option<String> {
        self.rope.get_line(line).map(|slice| content(slice).to_string())
    }

    /// Where `position` is, in bytes.
    pub fn offset(&self, position: Position) -> usize {
        self.rope.char_to_byte(self.char_index(position))
    }

    /// The position of a byte. Past the end is the end; inside a character is its start.
    pub fn position(&self, offset: usize) -> Position {
        let index = self.rope.byte_to_char(offset.min(self.rope.len_bytes()));
        let line = self.rope.char_to_line(index);
        let text = content(self.rope.line(line));
        let column = (index - self.rope.line_to_char(line)).min(text.len_chars());
        let character = match self.encoding {
            PositionEncoding::Utf8 => text.char_to_byte(column),
            PositionEncoding::Utf16 => text.char_to_utf16_cu(column),
            PositionEncoding::Utf32 => column,
        };
        let coordinate = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position::new(coordinate(line), coordinate(character))
    }

    /// The bytes of a range of positions, its start never after its end.
    pub fn offsets(&self, range: Range) -> ops::Range<usize> {
        let (a, b) = (self.offset(range.start), self.offset(range.end));
        a.min(b)..a.max(b)
    }

    /// The positions of a range of bytes.
    pub fn range(&self, offsets: ops::Range<usize>) -> Range {
        Range::new(self.position(offsets.start), self.position(offsets.end))
    }

    /// The content of a range of positions.
    pub fn slice(&self, range: Range) -> String {
        self.rope.byte_slice(self.offsets(range)).to_string()
    }

    /// Puts `text` in the place of `range`.
    pub fn replace(&mut self, range: Range, text: &str) {
        let (a, b) = (self.char_index(range.start), self.char_index(range.end));
        let (start, end) = (a.min(b), a.max(b));
        if start < end {
            self.rope.remove(start..end);
        }
        if !text.is_empty() {
            self.rope.insert(start, text);
        }
    }

    /// Replaces the whole content.
    pub fn replace_all(&mut self, text: &str) {
        self.rope = Rope::from_str(text);
    }

    fn char_index(&self, position: Position) -> usize {
        let line = position.line as usize;
        if line >= self.rope.len_lines() {
            return self.rope.len_chars();
        }
        let text = content(self.rope.line(line));
        let wanted = position.character as usize;
        let column = match self.encoding {
            PositionEncoding::Utf8 => text.byte_to_char(wanted.min(text.len_bytes())),
            PositionEncoding::Utf16 => text.utf16_cu_to_char(wanted.min(text.len_utf16_cu())),
            PositionEncoding::Utf32 => wanted.min(text.len_chars()),
        };
        self.rope.line_to_char(line) + column
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rope.chunks().try_for_each(|chunk| f.write_str(chunk))
    }
}

impl fmt::Debug for Text {
    /// Length only: texts are long, and they belong to the user, not to the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes, {})", self.len(), self.encoding.as_str())
    }
}

/// A line without its terminator.
fn content(line: RopeSlice<'_>) -> RopeSlice<'_> {
    let mut end = line.len_chars();
    if end > 0 && line.char(end - 1) == '\n' {
        end -= 1;
    }
    if end > 0 && line.char(end - 1) == '\r' {
        end -= 1;
    }
    line.slice(..end)
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
