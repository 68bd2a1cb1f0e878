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

/// A part of a change, made under one decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The decision.
    pub decision_id: DecisionId,
    /// The whole text after this part; the first part begins with the old text, each other with the one before.
    pub text: String,
    /// What this part does to the text before it.
    pub hunks: Vec<Hunk>,
}

/// Shares a change out among the decisions behind its new text, so that recorded one after another the parts give the
/// new text and its attribution. `segments` say whose the lines of the new text are; what they leave open is `other`'s.
pub fn share_out(old: &str, new: &str, segments: &[Segment], other: DecisionId) -> Vec<Share> {
    struct Piece {
        old: std::ops::Range<usize>,
        new: std::ops::Range<usize>,
        owner: DecisionId,
    }
    let mut pieces: Vec<Piece> = Vec::new();
    for hunk in hunks(old, new) {
        let (old_start, new_start) = (hunk.old_start as usize, hunk.new_start as usize);
        let (old_end, new_end) = (old_start + hunk.old_lines as usize, new_start + hunk.new_lines as usize);
        if new_start == new_end {
            let near = segments.iter().find(|s| s.lines == 0 && s.start == hunk.new_start);
            let owner = near.map_or(other, |s| s.decision_id);
            pieces.push(Piece { old: old_start..old_end, new: new_start..new_end, owner });
            continue;
        }
        let owner_of = |line: usize| {
            let covers = |s: &&Segment| {
                s.lines > 0 && (s.start as usize..(s.start + s.lines) as usize).contains(&line)
            };
            segments.iter().find(covers).map_or(other, |s| s.decision_id)
        };
        let mut taken = old_start..old_end;
        for line in new_start..new_end {
            let owner = owner_of(line);
            match pieces.last_mut().filter(|p| line > new_start && p.owner == owner && p.new.end == line) {
                Some(piece) => piece.new.end = line + 1,
                None => pieces.push(Piece { old: taken, new: line..line + 1, owner }),
            }
            // The first part of a hunk takes all of the old lines away.
            taken = old_end..old_end;
        }
    }
    let (old_lines, new_lines) = (lines(old), lines(new));
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    // The text with the pieces of some decisions in, and where each piece starts in it.
    let render = |done: &[DecisionId]| {
        let (mut text, mut starts, mut at, mut line) = (String::new(), Vec::new(), 0, 0);
        for piece in &pieces {
            text.extend(old_lines[at..piece.old.start].iter().copied());
            line += piece.old.start - at;
            starts.push(count(line));
            let put = if done.contains(&piece.owner) {
                &new_lines[piece.new.clone()]
            } else {
                &old_lines[piece.old.clone()]
            };
            text.extend(put.iter().copied());
            line += put.len();
            at = piece.old.end;
        }
        text.extend(old_lines[at..].iter().copied());
        (text, starts)
    };
    let mut owners: Vec<DecisionId> = Vec::new();
    for piece in &pieces {
        if !owners.contains(&piece.owner) {
            owners.push(piece.owner);
        }
    }
    let mut shares = Vec::with_capacity(owners.len());
    let (_, mut before) = render(&[]);
    for upto in 1..=owners.len() {
        let (text, after) = render(&owners[..upto]);
        let decision_id = owners[upto - 1];
        let own = pieces.iter().enumerate().filter(|(_, p)| p.owner == decision_id);
        let hunks = own
            .map(|(n, piece)| Hunk {
                old_start: before[n],
                old_lines: count(piece.old.len()),
                new_start: after[n],
                new_lines: count(piece.new.len()),
            })
            .collect();
        shares.push(Share { decision_id, text, hunks });
        before = after;
    }
    shares
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

    #[test]
    fn a_change_is_shared_out_among_the_decisions_behind_it() {
        let (old, new) = ("a\nb\nc\n", "a\nB1\nB2\nc\nd\n");
        let segments = [
            Segment { start: 1, lines: 1, decision_id: decision(1) },
            Segment { start: 4, lines: 1, decision_id: decision(1) },
        ];
        let shares = share_out(old, new, &segments, decision(9));
        assert_eq!(shares.iter().map(|s| s.decision_id).collect::<Vec<_>>(), [decision(1), decision(9)]);
        assert_eq!(shares[0].text, "a\nB1\nc\nd\n");
        assert_eq!(shares[1].text, new);
        let folded = shares.iter().fold(Vec::new(), |known, s| attribute(&known, &s.hunks, s.decision_id));
        assert_eq!(
            folded,
            [
                Segment { start: 1, lines: 1, decision_id: decision(1) },
                Segment { start: 2, lines: 1, decision_id: decision(9) },
                Segment { start: 4, lines: 1, decision_id: decision(1) },
            ]
        );
    }

    proptest! {
        // The parts, one after another, give the new text, and every new line the decision it came with.
        #[test]
        fn shares_give_the_new_text_and_its_attribution(
            old in "([abc]\n){0,8}", new in "([abcd]\n){0,8}", owners in proptest::collection::vec(1..4u128, 8),
        ) {
            let count = new.lines().count() as u32;
            let segments: Vec<Segment> =
                (0..count).map(|line| Segment { start: line, lines: 1, decision_id: decision(owners[line as usize]) }).collect();
            let shares = share_out(&old, &new, &segments, decision(9));
            let mut text = old.clone();
            let mut known = Vec::new();
            for share in &shares {
                let (before, after): (Vec<&str>, Vec<&str>) = (lines(&text), lines(&share.text));
                for hunk in &share.hunks {
                    prop_assert!((hunk.old_start + hunk.old_lines) as usize <= before.len());
                    prop_assert!((hunk.new_start + hunk.new_lines) as usize <= after.len());
                }
                known = attribute(&known, &share.hunks, share.decision_id);
                text.clone_from(&share.text);
            }
            prop_assert_eq!(&text, &new);
            for hunk in hunks(&old, &new) {
                for line in hunk.new_start..hunk.new_start + hunk.new_lines {
                    let owner = known.iter().find(|s| s.lines > 0 && s.covers(line)).map(|s| s.decision_id);
                    prop_assert_eq!(owner, Some(decision(owners[line as usize])));
                }
            }
        }
    }
}
