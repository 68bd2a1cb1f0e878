//! Positions of the protocol (UTF-8, UTF-16 or UTF-32 columns) against the engine's byte columns.

use agents_domain::text::{LineIndex, Position, Range};
use serde_json::{Value, json};

/// What a column of the protocol counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16,
    Utf32,
}

impl Encoding {
    /// Of the `positionEncoding` a server chose; UTF-16 when it chose none, as the protocol says.
    pub(crate) fn named(name: Option<&str>) -> Self {
        match name {
            Some("utf-8") => Self::Utf8,
            Some("utf-32") => Self::Utf32,
            _ => Self::Utf16,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    fn units(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

/// A text with its lines indexed, to convert many positions.
pub(crate) struct Converter<'a> {
    text: &'a str,
    index: LineIndex,
    encoding: Encoding,
}

impl<'a> Converter<'a> {
    pub(crate) fn new(text: &'a str, encoding: Encoding) -> Self {
        Self { text, index: LineIndex::new(text), encoding }
    }

    /// A position of the protocol; past the end of a line or of the text means the end, inside a character its start.
    pub(crate) fn position(&self, line: u64, column: u64) -> Position {
        let last = self.index.lines() - 1;
        let Some(line) = usize::try_from(line).ok().filter(|line| *line <= last) else {
            return self.index.position(self.text.len());
        };
        let at = u32::try_from(line).unwrap_or(u32::MAX);
        let start = self.index.offset(self.text, Position { line: at, column: 0 }).unwrap_or(0);
        let content = &self.text[start..self.index.line_end(self.text, line)];
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        let mut units = 0;
        let mut bytes = content.len();
        for (offset, character) in content.char_indices() {
            let next = units + self.encoding.units(character);
            if next > column {
                bytes = offset;
                break;
            }
            units = next;
        }
        Position { line: at, column: u32::try_from(bytes).unwrap_or(u32::MAX) }
    }

    /// A `Position` of the protocol; what is missing or no number is 0.
    fn position_value(&self, value: &Value) -> Position {
        let number = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0);
        self.position(number("line"), number("character"))
    }

    /// A `Range` of the protocol.
    pub(crate) fn range(&self, value: &Value) -> Range {
        let start = self.position_value(&value["start"]);
        let end = self.position_value(&value["end"]);
        Range { start, end: end.max(start) }
    }

    /// The other way: a byte position as the protocol's `Position`.
    pub(crate) fn to_protocol(&self, position: Position) -> Value {
        let start = Position { line: position.line, column: 0 };
        let (Some(start), Some(end)) =
            (self.index.offset(self.text, start), self.index.offset(self.text, position))
        else {
            return json!({ "line": position.line, "character": 0 });
        };
        let units: usize =
            self.text[start..end].chars().map(|character| self.encoding.units(character)).sum();
        json!({ "line": position.line, "character": units })
    }

    /// A byte range as the protocol's `Range`.
    pub(crate) fn range_to_protocol(&self, range: Range) -> Value {
        json!({ "start": self.to_protocol(range.start), "end": self.to_protocol(range.end) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    #[test]
    fn each_encoding_counts_its_own_units() {
        // Before `x`: é is 2 bytes and 1 unit, the emoji 4 bytes, 2 UTF-16 units and 1 scalar.
        let text = "a\né😀x\r\n";
        for (encoding, column) in ALL.into_iter().zip([6, 3, 2]) {
            let converter = Converter::new(text, encoding);
            assert_eq!(converter.position(1, column), Position { line: 1, column: 6 }, "{encoding:?}");
            let back = converter.to_protocol(Position { line: 1, column: 6 });
            assert_eq!(back["character"], column, "{encoding:?}");
        }
    }

    #[test]
    fn past_the_end_means_the_end_and_inside_a_character_its_start() {
        let converter = Converter::new("😀b\nc", Encoding::Utf16);
        assert_eq!(converter.position(0, 1), Position { line: 0, column: 0 });
        assert_eq!(converter.position(0, 99), Position { line: 0, column: 5 });
        assert_eq!(converter.position(7, 3), Position { line: 1, column: 1 });
        assert_eq!(converter.position(u64::MAX, u64::MAX), Position { line: 1, column: 1 });
    }

    #[test]
    fn a_range_without_numbers_or_backwards_is_empty_not_a_panic() {
        let converter = Converter::new("abc", Encoding::Utf8);
        assert_eq!(converter.range(&Value::Null), Range::default());
        let backwards = json!({"start": {"line": 0, "character": 2}, "end": {"line": 0, "character": 1}});
        assert_eq!(converter.range(&backwards), Range::new((0, 2), (0, 2)));
    }

    proptest! {
        #[test]
        fn every_position_round_trips_in_every_encoding(text in "[a\\né\\r😀漢 ]{0,40}") {
            let index = LineIndex::new(&text);
            for encoding in ALL {
                let converter = Converter::new(&text, encoding);
                for (at, _) in text.char_indices().chain([(text.len(), ' ')]) {
                    let inside_break = at > 0 && text.as_bytes()[at - 1] == b'\r' && text.as_bytes().get(at) == Some(&b'\n');
                    if inside_break {
                        continue;
                    }
                    let position = index.position(at);
                    let value = converter.to_protocol(position);
                    let back = converter.position(value["line"].as_u64().unwrap(), value["character"].as_u64().unwrap());
                    prop_assert_eq!(back, position, "{:?} of {:?} as {}", encoding, position, value);
                }
            }
        }

        #[test]
        fn any_position_lands_inside_the_text(text in "[a\\né\\r😀]{0,20}", line in 0u64..30, column in 0u64..60) {
            for encoding in ALL {
                let position = Converter::new(&text, encoding).position(line, column);
                prop_assert!(LineIndex::new(&text).offset(&text, position).is_some());
            }
        }
    }
}
