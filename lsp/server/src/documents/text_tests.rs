//! The text against a naive model that holds a `String` and counts by hand.

use proptest::prelude::*;

use super::*;

const ENCODINGS: [PositionEncoding; 3] =
    [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32];

fn at(line: u32, character: u32) -> Position {
    Position::new(line, character)
}

/// Start and end (before the terminator) of each line of `text`, in bytes.
fn model_lines(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let (mut lines, mut start, mut i) = (Vec::new(), 0, 0);
    while i < bytes.len() {
        let width = match bytes[i] {
            b'\r' if bytes.get(i + 1) == Some(&b'\n') => 2,
            b'\r' | b'\n' => 1,
            _ => 0,
        };
        if width > 0 {
            lines.push((start, i));
            start = i + width;
        }
        i += width.max(1);
    }
    lines.push((start, bytes.len()));
    lines
}

fn model_width(c: char, encoding: PositionEncoding) -> usize {
    match encoding {
        PositionEncoding::Utf8 => c.len_utf8(),
        PositionEncoding::Utf16 => c.len_utf16(),
        PositionEncoding::Utf32 => 1,
    }
}

fn model_offset(text: &str, position: Position, encoding: PositionEncoding) -> usize {
    let Some(&(start, end)) = model_lines(text).get(position.line as usize) else { return text.len() };
    let mut left = position.character as usize;
    for (i, c) in text[start..end].char_indices() {
        let width = model_width(c, encoding);
        if left < width {
            return start + i;
        }
        left -= width;
    }
    end
}

fn model_replace(text: &mut String, range: Range, with: &str, encoding: PositionEncoding) {
    let a = model_offset(text, range.start, encoding);
    let b = model_offset(text, range.end, encoding);
    text.replace_range(a.min(b)..a.max(b), with);
}

/// Everything that ends a line, looks as if it did, or is wider than it looks.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "bc",
        " ",
        "\n",
        "\r\n",
        "\r",
        "é",
        "漢",
        "𝄞",
        "👩‍👩‍👧",
        "\u{FEFF}",
        "\u{2028}",
        "\u{85}",
        "\u{B}",
        "\u{C}",
        "\0",
    ])
}

fn content_of(pieces: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), pieces).prop_map(|pieces| pieces.concat())
}

fn position() -> impl Strategy<Value = Position> {
    let number = prop_oneof![20 => 0u32..12, 1 => Just(u32::MAX), 1 => Just(i32::MAX as u32)];
    (number.clone(), number).prop_map(|(line, character)| at(line, character))
}

proptest! {
    /// Whatever a client sends, in whatever encoding, the text is what the protocol says it is.
    #[test]
    fn edits_never_diverge_from_the_model(
        start in content_of(0..40),
        edits in prop::collection::vec((prop::option::weighted(0.95, (position(), position())), content_of(0..6)), 0..40),
        encoding in prop::sample::select(ENCODINGS.to_vec()),
    ) {
        let (mut text, mut model) = (Text::new(&start, encoding), start);
        for (range, with) in edits {
            match range {
                Some((a, b)) => {
                    let range = Range::new(a, b);
                    text.replace(range, &with);
                    model_replace(&mut model, range, &with, encoding);
                }
                None => {
                    text.replace_all(&with);
                    model = with;
                }
            }
            prop_assert_eq!(text.to_string(), model.as_str());
            prop_assert_eq!(text.line_count(), model_lines(&model).len());
        }
    }

    /// Offset and position are inverse at every character a client can point at.
    #[test]
    fn offsets_and_positions_are_inverse(content in content_of(0..60), encoding in prop::sample::select(ENCODINGS.to_vec())) {
        let text = Text::new(&content, encoding);
        for (line, (start, end)) in model_lines(&content).into_iter().enumerate() {
            let mut character = 0;
            for offset in (start..=end).filter(|i| content.is_char_boundary(*i)) {
                let here = at(line as u32, character as u32);
                prop_assert_eq!(text.position(offset), here);
                prop_assert_eq!(text.offset(here), offset);
                character += content[offset..].chars().next().map_or(0, |c| model_width(c, encoding));
            }
            prop_assert_eq!(text.line(line), Some(content[start..end].to_owned()));
        }
    }

    /// No byte offset panics, and each maps to a position at or before it.
    #[test]
    fn every_offset_has_a_position(content in content_of(0..30), encoding in prop::sample::select(ENCODINGS.to_vec())) {
        let text = Text::new(&content, encoding);
        for offset in 0..content.len() + 3 {
            prop_assert!(text.offset(text.position(offset)) <= offset.min(content.len()));
        }
    }
}

#[test]
fn a_character_outside_the_bmp_is_four_two_or_one_units_wide() {
    for (encoding, after) in ENCODINGS.into_iter().zip([4, 2, 1]) {
        let text = Text::new("𝄞x", encoding);
        assert_eq!(text.offset(at(0, after)), 4);
        assert_eq!(text.position(4), at(0, after));
    }
}

#[test]
fn a_position_inside_a_surrogate_pair_is_the_start_of_the_character() {
    assert_eq!(Text::new("a𝄞", PositionEncoding::Utf16).offset(at(0, 2)), 1);
    assert_eq!(Text::new("a𝄞", PositionEncoding::Utf8).offset(at(0, 3)), 1);
}

#[test]
fn a_character_past_the_line_is_its_end_before_any_kind_of_terminator() {
    let text = Text::new("ab\r\ncd\ref\ngh", PositionEncoding::Utf16);
    assert_eq!([0, 1, 2, 3, 4].map(|line| text.offset(at(line, 99))), [2, 6, 9, 12, 12]);
}

#[test]
fn a_range_whose_ends_are_the_wrong_way_round_is_turned() {
    let mut text = Text::new("one two three", PositionEncoding::Utf16);
    text.replace(Range::new(at(0, 7), at(0, 4)), "2");
    assert_eq!(text.to_string(), "one 2 three");
}

#[test]
fn a_byte_order_mark_is_kept_and_counts_as_a_character() {
    let mut text = Text::new("\u{FEFF}x = 1\n", PositionEncoding::Utf16);
    text.replace(Range::new(at(0, 1), at(0, 2)), "y");
    assert_eq!(text.to_string(), "\u{FEFF}y = 1\n");
}

#[test]
fn unicode_separators_and_form_feeds_do_not_end_a_line() {
    let text = Text::new("a\u{2028}b\u{2029}c\u{85}d\u{B}e\u{C}f", PositionEncoding::Utf16);
    assert_eq!(text.line_count(), 1);
}

#[test]
fn deleting_what_stood_between_cr_and_lf_joins_them_into_one_line_break() {
    let mut text = Text::new("a\rx\nb", PositionEncoding::Utf16);
    assert_eq!(text.line_count(), 3);
    text.replace(Range::new(at(1, 0), at(1, 1)), "");
    assert_eq!((text.line_count(), text.to_string().as_str()), (2, "a\r\nb"));
}
