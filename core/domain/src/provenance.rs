//! Which decision made which line: attribution carried through edits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp};

use crate::changes::Hunk;
use crate::ids::DecisionId;

/// A run of lines (or, with no lines, a place where lines were deleted) that a decision is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// First line, 0-based; for a deletion the line now in its place.
    pub start: u32,
    /// How many lines; 0 marks a deletion.
    pub lines: u32,
    /// The decision.
    pub decision_id: DecisionId,
}

impl Segment {
    /// Whether a hover on this line (0-based) should show the segment.
    pub fn covers(&self, line: u32) -> bool {
        if self.lines == 0 {
            self.start == line
        } else {
            self.start <= line && line < self.start + self.lines
        }
    }
}

/// The attribution of one file as a plan left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProvenance {
    /// Relative to the resource's root.
    pub path: String,
    /// SHA-256 of the text the segments refer to; the text is in the blob store under this hash.
    pub text_hash: String,
    /// In order, not overlapping.
    pub segments: Vec<Segment>,
}

/// The line hunks between two texts.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    similar::capture_diff_slices(Algorithm::Histogram, &old, &new)
        .into_iter()
        .filter(|op| !matches!(op, DiffOp::Equal { .. }))
        .map(|op| {
            let (old, new) = (op.old_range(), op.new_range());
            Hunk {
                old_start: count(old.start),
                old_lines: count(old.len()),
                new_start: count(new.start),
                new_lines: count(new.len()),
            }
        })
        .collect()
}

/// The lines of a text with their breaks, as `hunks` counts them.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Carries segments of an old text into the new one; lines the hunks replaced lose their attribution.
pub fn carry(segments: &[Segment], hunks: &[Hunk]) -> Vec<Segment> {
    let mut out = Vec::with_capacity(segments.len());
    for segment in segments {
        if segment.lines == 0 {
            if let Some(start) = map_boundary(segment.start, hunks) {
                push(&mut out, Segment { start, ..*segment });
            }
            continue;
        }
        for line in segment.start..segment.start.saturating_add(segment.lines) {
            if let Some(start) = map_line(line, hunks) {
                push(&mut out, Segment { start, lines: 1, decision_id: segment.decision_id });
            }
        }
    }
    out
}

/// Where a line (0-based) of the old text is in the new one; `None` when a hunk replaced it.
pub fn map_line(line: u32, hunks: &[Hunk]) -> Option<u32> {
    let mut shift = 0i64;
    for hunk in hunks {
        if line < hunk.old_start {
            break;
        }
        if line < hunk.old_start + hunk.old_lines {
            return None;
        }
        shift += i64::from(hunk.new_lines) - i64::from(hunk.old_lines);
    }
    u32::try_from(i64::from(line) + shift).ok()
}

/// Where the place before a line of the old text is in the new one; `None` when a hunk replaced what is on both sides.
fn map_boundary(line: u32, hunks: &[Hunk]) -> Option<u32> {
    let mut shift = 0i64;
    for hunk in hunks {
        if line == hunk.old_start && hunk.old_lines == 0 {
            // Something was put where lines had gone; most often they came back.
            return None;
        }
        if line <= hunk.old_start {
            break;
        }
        if line < hunk.old_start + hunk.old_lines {
            return None;
        }
        shift += i64::from(hunk.new_lines) - i64::from(hunk.old_lines);
    }
    u32::try_from(i64::from(line) + shift).ok()
}

/// Carries segments through an edit made under a decision, and adds what the edit itself made.
pub fn attribute(segments: &[Segment], hunks: &[Hunk], decision_id: DecisionId) -> Vec<Segment> {
    let mut all = carry(segments, hunks);
    all.extend(hunks.iter().map(|h| Segment { start: h.new_start, lines: h.new_lines, decision_id }));
    all.sort_by_key(|s| (s.start, s.lines));
    let mut out = Vec::with_capacity(all.len());
    for segment in all {
        push(&mut out, segment);
    }
    out
}

fn push(out: &mut Vec<Segment>, segment: Segment) {
    if let Some(last) = out.last_mut() {
        let adjoins = last.lines > 0
            && segment.lines > 0
            && last.decision_id == segment.decision_id
            && last.start + last.lines == segment.start;
        if adjoins {
            last.lines += segment.lines;
            return;
        }
        if *last == segment {
            return;
        }
    }
    out.push(segment);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ulid::Ulid;

    fn decision(n: u128) -> DecisionId {
        DecisionId::from_ulid(Ulid::from(n))
    }

    #[test]
    fn an_edit_attributes_new_lines_and_shifts_the_rest() {
        let first = attribute(&[], &hunks("a\nb\nc\n", "a\nB\nc\n"), decision(1));
        assert_eq!(first, [Segment { start: 1, lines: 1, decision_id: decision(1) }]);
        let second = attribute(&first, &hunks("a\nB\nc\n", "x\na\nB\nc\n"), decision(2));
        assert_eq!(
            second,
            [
                Segment { start: 0, lines: 1, decision_id: decision(2) },
                Segment { start: 2, lines: 1, decision_id: decision(1) }
            ]
        );
    }

    #[test]
    fn a_deleted_line_is_found_at_the_line_now_in_its_place() {
        let segments = attribute(&[], &hunks("a\nb\nc\n", "a\nc\n"), decision(1));
        assert_eq!(segments, [Segment { start: 1, lines: 0, decision_id: decision(1) }]);
        assert!(segments[0].covers(1) && !segments[0].covers(0));
    }

    #[test]
    fn a_deletion_stays_where_it_was_when_the_line_after_it_is_rewritten() {
        let deleted = attribute(&[], &hunks("a\nb\n", "b\n"), decision(1));
        let both = attribute(&deleted, &hunks("b\n", "B\n"), decision(2));
        assert_eq!(
            both,
            [
                Segment { start: 0, lines: 0, decision_id: decision(1) },
                Segment { start: 0, lines: 1, decision_id: decision(2) }
            ]
        );
    }

    #[test]
    fn a_deletion_whose_lines_come_back_is_forgotten() {
        let deleted = attribute(&[], &hunks("a\nb\nc\n", "a\nc\n"), decision(1));
        assert_eq!(carry(&deleted, &hunks("a\nc\n", "a\nb\nc\n")), []);
    }

    #[test]
    fn a_line_rewritten_by_hand_loses_its_decision() {
        let segments = attribute(&[], &hunks("a\n", "b\n"), decision(1));
        assert_eq!(carry(&segments, &hunks("b\n", "mine\n")), []);
    }

    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec("[ab]{0,2}\n", 0..12).prop_map(|lines| lines.concat())
    }

    proptest! {
        #[test]
        fn an_attributed_line_is_in_the_text_and_came_from_the_edit(old in text(), new in text()) {
            let hunks = hunks(&old, &new);
            let segments = attribute(&[], &hunks, decision(1));
            let total = lines(&new).len() as u32;
            for segment in &segments {
                prop_assert!(segment.start + segment.lines <= total);
            }
            // A line nobody claims is one the old text had too.
            for (at, line) in lines(&new).iter().enumerate() {
                if !segments.iter().any(|s| s.lines > 0 && s.covers(at as u32)) {
                    prop_assert!(lines(&old).contains(line));
                }
            }
        }

        #[test]
        fn carrying_keeps_the_text_of_every_line(old in text(), new in text()) {
            let old_lines = lines(&old);
            let each: Vec<Segment> = (0..old_lines.len())
                .map(|n| Segment { start: n as u32, lines: 1, decision_id: decision(n as u128) })
                .collect();
            for segment in carry(&each, &hunks(&old, &new)) {
                let from = u128::from(segment.decision_id.ulid()) as usize;
                prop_assert_eq!(old_lines[from], lines(&new)[segment.start as usize]);
            }
        }
    }
}
