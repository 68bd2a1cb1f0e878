//! Between the engine's lines, which end at `\n` only, and the protocol's, which also end at a lone `\r`.

use ropey::Rope;
use tower_lsp::lsp_types::{Position, Range};

use crate::documents::Text;

/// The lines of a text as the engine counts them.
pub(crate) struct EngineLines<'t> {
    text: &'t Text,
    /// Where each line starts, in bytes; absent where both count alike.
    starts: Option<Vec<usize>>,
}

impl<'t> EngineLines<'t> {
    pub fn of(text: &'t Text) -> Self {
        let rope = text.rope();
        let breaks = newlines(rope);
        let starts = (breaks + 1 != rope.len_lines()).then(|| {
            let after = rope.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(after).collect()
        });
        Self { text, starts }
    }

    /// How many there are; an empty rest after the last break is none.
    pub fn count(&self) -> u32 {
        let rope = self.text.rope();
        let rest = rope.len_bytes() > 0 && !self.ends_in_break();
        let breaks = self.starts.as_ref().map_or_else(|| rope.len_lines() - 1, |starts| starts.len() - 1);
        u32::try_from(breaks + usize::from(rest)).unwrap_or(u32::MAX)
    }

    /// Whether the last line has its break.
    pub fn ends_in_break(&self) -> bool {
        let rope = self.text.rope();
        rope.len_bytes() > 0 && rope.byte(rope.len_bytes() - 1) == b'\n'
    }

    /// Where a line (0-based) starts, in bytes; the end of the text for one past the last.
    pub fn start(&self, line: u32) -> usize {
        let (line, rope) = (line as usize, self.text.rope());
        match &self.starts {
            Some(starts) => starts.get(line).copied().unwrap_or(rope.len_bytes()),
            None => rope.try_line_to_byte(line).unwrap_or(rope.len_bytes()),
        }
    }

    /// Where a byte is, as the engine counts.
    pub fn byte(&self, offset: usize) -> agents_domain::text::Position {
        let line = match &self.starts {
            Some(starts) => starts.partition_point(|start| *start <= offset).saturating_sub(1),
            None => self.text.rope().byte_to_line(offset.min(self.text.len())),
        };
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let line = number(line);
        agents_domain::text::Position { line, column: number(offset - self.start(line).min(offset)) }
    }

    /// The protocol's number of a line's start.
    pub fn protocol_line(&self, line: u32) -> u32 {
        self.text.position(self.start(line)).line
    }

    /// The protocol's position of a byte column, at most the end of its line.
    pub fn position(&self, at: agents_domain::text::Position) -> Position {
        let (start, next) = (self.start(at.line), self.start(at.line.saturating_add(1)));
        let broken = next > start && self.text.rope().byte(next - 1) == b'\n';
        self.text.position((start + at.column as usize).min(next - usize::from(broken)))
    }
}

fn newlines(rope: &Rope) -> usize {
    rope.chunks().map(|chunk| memchr::memchr_iter(b'\n', chunk.as_bytes()).count()).sum()
}

/// From the start of a line to the end of another, both by the protocol's numbers.
pub(crate) fn whole_lines(text: &Text, first: u32, last: u32) -> Range {
    let end = text.line(last as usize).map_or(0, |line| match text.encoding() {
        crate::documents::PositionEncoding::Utf8 => line.len(),
        crate::documents::PositionEncoding::Utf16 => line.encode_utf16().count(),
        crate::documents::PositionEncoding::Utf32 => line.chars().count(),
    });
    Range::new(Position::new(first, 0), Position::new(last, u32::try_from(end).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::PositionEncoding;
    use agents_domain::text::Position as Byte;

    fn text(content: &str) -> Text {
        Text::new(content, PositionEncoding::Utf16)
    }

    #[test]
    fn without_lone_returns_both_count_alike() {
        for (content, count) in [("", 0), ("a", 1), ("a\n", 1), ("a\r\nb", 2), ("\n\n", 2)] {
            let text = text(content);
            let lines = EngineLines::of(&text);
            assert_eq!(lines.count(), count, "{content:?}");
            assert!(
                (0..=count).all(|line| lines.protocol_line(line) == line || line == count),
                "{content:?}"
            );
        }
    }

    #[test]
    fn a_lone_return_makes_a_line_for_the_protocol_only() {
        let text = text("a\rb\nc\n");
        let lines = EngineLines::of(&text);
        assert_eq!(lines.count(), 2);
        assert_eq!((lines.protocol_line(0), lines.protocol_line(1), lines.start(1)), (0, 2, 4));
    }

    #[test]
    fn byte_columns_become_positions_of_the_session() {
        let text = text("𝄞 = 1\n𝄞x\n");
        let lines = EngineLines::of(&text);
        assert_eq!(lines.position(Byte { line: 1, column: 4 }), Position::new(1, 2));
        assert_eq!(lines.position(Byte { line: 1, column: 99 }), Position::new(1, 3));
        assert_eq!(lines.position(Byte { line: 99, column: 0 }), Position::new(2, 0));
        assert_eq!(lines.byte(12), Byte { line: 1, column: 3 });
        assert_eq!(whole_lines(&text, 0, 1), Range::new(Position::new(0, 0), Position::new(1, 3)));
    }
}
