//! Three-way merges of contents, line by line; the lines need not be UTF-8.

use std::ops::Range;

use similar::{Algorithm, DiffOp};

/// Whose lines stand where both sides changed the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Side {
    Ours,
    Theirs,
}

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The result; in conflicts the preferred side.
    pub bytes: Vec<u8>,
    /// Where both sides changed the same lines, or lines next to each other: 0-based lines of our side.
    pub conflicts: Vec<Range<usize>>,
}

/// Merges what two sides made of a base. Changes that touch each other are a conflict, as in git, unless they are the
/// same.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8], prefer: Side) -> Merged {
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let mut left = Changes::between(&base, &ours);
    let mut right = Changes::between(&base, &theirs);
    let mut bytes = Vec::new();
    let mut conflicts = Vec::new();
    let mut at = 0;
    while let Some(start) = [left.next_start(), right.next_start()].into_iter().flatten().min() {
        let mut end = start;
        let (mut mine, mut other) = (Vec::new(), Vec::new());
        loop {
            let taken = left.take(&mut end, &mut mine) | right.take(&mut end, &mut other);
            if !taken {
                break;
            }
        }
        base[at..start].iter().for_each(|line| bytes.extend_from_slice(line));
        let our_range = left.range(&mine, start, end);
        let (our_text, their_text) = (&ours[our_range.clone()], &theirs[right.range(&other, start, end)]);
        let chosen = if mine.is_empty() {
            their_text
        } else if other.is_empty() || our_text == their_text {
            our_text
        } else {
            conflicts.push(our_range);
            match prefer {
                Side::Ours => our_text,
                Side::Theirs => their_text,
            }
        };
        chosen.iter().for_each(|line| bytes.extend_from_slice(line));
        left.pass(&mine);
        right.pass(&other);
        at = end;
    }
    base[at..].iter().for_each(|line| bytes.extend_from_slice(line));
    Merged { bytes, conflicts }
}

/// What one side made of the base, from front to back.
struct Changes {
    ops: std::iter::Peekable<std::vec::IntoIter<(Range<usize>, Range<usize>)>>,
    /// Where the base's and the side's equal lines were last next to each other.
    synced: (usize, usize),
}

impl Changes {
    fn between(base: &[&[u8]], side: &[&[u8]]) -> Self {
        let ops: Vec<_> = similar::capture_diff_slices(Algorithm::Histogram, base, side)
            .into_iter()
            .filter(|op| !matches!(op, DiffOp::Equal { .. }))
            .map(|op| (op.old_range(), op.new_range()))
            .collect();
        Self { ops: ops.into_iter().peekable(), synced: (0, 0) }
    }

    fn next_start(&mut self) -> Option<usize> {
        self.ops.peek().map(|(base, _)| base.start)
    }

    /// Takes the changes that touch what ends at `end`, which grows with them.
    fn take(&mut self, end: &mut usize, taken: &mut Vec<(Range<usize>, Range<usize>)>) -> bool {
        let before = taken.len();
        while let Some(op) = self.ops.next_if(|(base, _)| base.start <= *end) {
            *end = (*end).max(op.0.end);
            taken.push(op);
        }
        taken.len() > before
    }

    /// The side's lines that stand for `start..end` of the base.
    fn range(&self, taken: &[(Range<usize>, Range<usize>)], start: usize, end: usize) -> Range<usize> {
        let (base, side) = self.synced;
        let last = taken.last().map_or(self.synced, |(base, side)| (base.end, side.end));
        side + (start - base)..last.1 + (end - last.0)
    }

    fn pass(&mut self, taken: &[(Range<usize>, Range<usize>)]) {
        if let Some((base, side)) = taken.last() {
            self.synced = (base.end, side.end);
        }
    }
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn merged(base: &str, ours: &str, theirs: &str) -> (String, usize) {
        let merged = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), Side::Ours);
        (String::from_utf8(merged.bytes).unwrap(), merged.conflicts.len())
    }

    #[test]
    fn changes_apart_are_both_taken_and_changes_that_touch_are_a_conflict() {
        assert_eq!(merged("a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD\n"), ("A\nb\nc\nD\n".into(), 0));
        assert_eq!(merged("a\nb\nc\n", "x\na\nb\nc\n", "a\nb\n"), ("x\na\nb\n".into(), 0));
        assert_eq!(merged("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\n"), ("a\nB\nc\n".into(), 0));
        assert_eq!(merged("a\nb\nc\n", "a\nB\nc\n", "a\nX\nc\n"), ("a\nB\nc\n".into(), 1));
        let theirs = merge(b"a\nb\nc\n", b"a\nB\nc\n", b"a\nX\nc\n", Side::Theirs);
        assert_eq!(theirs.bytes.as_slice(), b"a\nX\nc\n");
        assert_eq!((theirs.conflicts.len(), theirs.conflicts[0].clone()), (1, 1..2));
        assert_eq!(merged("a\r\n\u{e9}", "a\r\n\u{e9}\nz", "b\r\n\u{e9}").1, 1, "next to each other");
    }

    #[test]
    fn bytes_that_are_no_text_are_merged_as_lines_too() {
        let merged = merge(b"\xe9\nx\ny\n", b"\xe9\nx\ny\nours \xff\n", b"\xe8\nx\ny\n", Side::Ours);
        assert_eq!((merged.bytes.as_slice(), merged.conflicts.len()), (&b"\xe8\nx\ny\nours \xff\n"[..], 0));
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a\n", "b\n", "c\n", "d"]), 0..9)
            .prop_map(|lines| lines.concat())
    }

    proptest! {
        #[test]
        fn a_side_that_changed_nothing_leaves_the_other_as_it_is(base in text(), side in text()) {
            prop_assert_eq!(merged(&base, &base, &side), (side.clone(), 0));
            prop_assert_eq!(merged(&base, &side, &base), (side.clone(), 0));
            prop_assert_eq!(merged(&base, &side, &side), (side, 0));
        }

        #[test]
        fn the_sides_may_change_places(base in text(), ours in text(), theirs in text()) {
            let one = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), Side::Ours);
            let other = merge(base.as_bytes(), theirs.as_bytes(), ours.as_bytes(), Side::Theirs);
            prop_assert_eq!(one.bytes, other.bytes);
            prop_assert_eq!(one.conflicts.len(), other.conflicts.len());
        }
    }
}
