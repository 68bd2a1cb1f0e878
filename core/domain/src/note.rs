//! The note of a commit: which decisions are behind its lines, told so that a clone without our database can say it.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::changes::Hunk;
use crate::decision::Alternative;
use crate::ids::{DecisionId, PlanId};
use crate::provenance::{Segment, carry};

/// The version of the format. A reader takes notes of its own version and leaves others alone.
pub const NOTE_VERSION: u32 = 1;

/// What a note holds; the format is described in `docs/reference/git-notes.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommitNote {
    /// [`NOTE_VERSION`].
    pub version: u32,
    /// The plan that was applied.
    pub plan: PlanId,
    /// The action it was made from.
    pub action: String,
    /// What was asked for, in one line.
    pub description: String,
    /// The actor that made the changes.
    pub actor: String,
    /// When it was applied, RFC 3339.
    pub applied: String,
    /// The decisions behind the lines, and those they carry out.
    pub decisions: Vec<NotedDecision>,
    /// The files of the commit that decisions are behind.
    pub files: Vec<NotedFile>,
}

/// A decision in a note.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotedDecision {
    /// Its id.
    pub id: DecisionId,
    /// Its kind, such as `implementation_choice`.
    #[serde(rename = "type")]
    pub decision_type: String,
    /// What was to be decided.
    pub question: String,
    /// What was chosen.
    pub chosen: String,
    /// Every option, the chosen one among them.
    pub alternatives: Vec<Alternative>,
    /// 0.0 to 1.0.
    pub confidence: Option<f64>,
    /// Why.
    pub rationale: String,
    /// When it was made, RFC 3339.
    pub created: String,
    /// The decision it carries out, which is in the note, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carries_out: Option<DecisionId>,
}

/// A file in a note.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotedFile {
    /// Its path in the commit.
    pub path: String,
    /// The git name of its content in the commit, to which the line numbers refer.
    pub blob: String,
    /// In order, not overlapping.
    pub lines: Vec<NotedLines>,
}

/// Lines and the decision behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotedLines {
    /// The first line, 1-based.
    pub start: u32,
    /// The last line; one before `start` marks a place where lines were deleted.
    pub end: u32,
    /// The decision.
    pub decision: DecisionId,
}

impl From<Segment> for NotedLines {
    fn from(segment: Segment) -> Self {
        Self { start: segment.start + 1, end: segment.start + segment.lines, decision: segment.decision_id }
    }
}

impl CommitNote {
    /// Reads a note; `None` for anything else, and for another version.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let note: Self = serde_json::from_slice(bytes).ok()?;
        (note.version == NOTE_VERSION).then_some(note)
    }

    /// The note's file of this name.
    pub fn file(&self, path: &str) -> Option<&NotedFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Its decisions by id.
    pub fn by_id(&self) -> HashMap<DecisionId, &NotedDecision> {
        self.decisions.iter().map(|decision| (decision.id, decision)).collect()
    }
}

/// What is known of the file that a note is to be read for.
pub enum Ground<'a> {
    /// It is the very content the note speaks of.
    Same,
    /// The content the note speaks of, as line hunks towards the one at hand.
    Hunks(&'a [Hunk]),
    /// Only what the commit at hand changed: hunks from its parent.
    Changed(&'a [Hunk]),
}

impl NotedFile {
    /// The segments in the coordinates of the content at hand; `None` when they cannot be told for sure.
    ///
    /// A commit that was rebased without conflicts adds the same lines as before in the same order, if elsewhere: so
    /// the n-th line it adds is the n-th line of the note, and when the counts differ nothing is claimed.
    pub fn segments(&self, ground: &Ground<'_>) -> Option<Vec<Segment>> {
        let segments: Vec<Segment> = self
            .lines
            .iter()
            .filter(|lines| lines.start > 0)
            .map(|lines| Segment {
                start: lines.start - 1,
                lines: (lines.end + 1).saturating_sub(lines.start),
                decision_id: lines.decision,
            })
            .collect();
        match ground {
            Ground::Same => Some(segments),
            Ground::Hunks(hunks) => Some(carry(&segments, hunks)),
            Ground::Changed(hunks) => {
                let written: Vec<DecisionId> = segments
                    .iter()
                    .flat_map(|s| std::iter::repeat_n(s.decision_id, s.lines as usize))
                    .collect();
                let added: Vec<u32> =
                    hunks.iter().flat_map(|h| h.new_start..h.new_start + h.new_lines).collect();
                if written.len() != added.len() {
                    return None;
                }
                let one = |(start, decision_id): (u32, DecisionId)| Segment { start, lines: 1, decision_id };
                Some(added.into_iter().zip(written).map(one).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provenance::hunks;
    use ulid::Ulid;

    fn decision(n: u128) -> DecisionId {
        DecisionId::from_ulid(Ulid::from(n))
    }

    fn file() -> NotedFile {
        NotedFile {
            path: "a.py".to_owned(),
            blob: "b".repeat(40),
            lines: vec![
                NotedLines { start: 2, end: 3, decision: decision(1) },
                NotedLines { start: 5, end: 5, decision: decision(2) },
                NotedLines { start: 7, end: 6, decision: decision(2) },
            ],
        }
    }

    #[test]
    fn lines_are_told_from_the_same_content_and_carried_to_another() {
        let same = file().segments(&Ground::Same).unwrap();
        assert_eq!(same.iter().map(|s| (s.start, s.lines)).collect::<Vec<_>>(), [(1, 2), (4, 1), (6, 0)]);
        let moved = hunks("1\n2\n3\n4\n5\n6\n7\n", "0\n1\n2\n3\n4\n5\n6\n7\n");
        let carried = file().segments(&Ground::Hunks(&moved)).unwrap();
        assert_eq!(carried.iter().map(|s| (s.start, s.lines)).collect::<Vec<_>>(), [(2, 2), (5, 1), (7, 0)]);
        assert_eq!(NotedLines::from(same[0]), file().lines[0]);
        assert_eq!(NotedLines::from(same[2]), file().lines[2]);
    }

    #[test]
    fn a_rebased_commit_is_read_by_what_it_adds_and_nothing_is_guessed() {
        let rebased = hunks("x\nx\na\nb\n", "x\nx\nA\nB\nb\nC\n");
        let found = file().segments(&Ground::Changed(&rebased)).unwrap();
        let shown: Vec<_> = found.iter().map(|s| (s.start, s.decision_id)).collect();
        assert_eq!(shown, [(2, decision(1)), (3, decision(1)), (5, decision(2))]);
        assert_eq!(file().segments(&Ground::Changed(&hunks("a\n", "a\nb\n"))), None);
    }

    #[test]
    fn a_note_of_another_version_is_left_alone() {
        let note = |version: u32| {
            format!(
                r#"{{"version":{version},"plan":"01ARZ3NDEKTSV4RRFFQ69G5FAV","action":"local/a","description":"d",
                    "actor":"builtin/x","applied":"2026-01-01T00:00:00Z","decisions":[],"files":[],"later":1}}"#
            )
        };
        assert!(CommitNote::parse(note(1).as_bytes()).is_some());
        assert!(CommitNote::parse(note(2).as_bytes()).is_none());
        assert!(CommitNote::parse(b"reviewed by me").is_none());
    }
}
