//! What a plan did to files: recorded writes, and the change set that a diff shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::ids::{ChangeId, DecisionId, PlanId, ResourceId};

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
    Renamed,
}

/// A run of lines that one text has in place of a run of another; 0-based line numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    /// First line in the old text.
    pub old_start: u32,
    /// Lines taken away.
    pub old_lines: u32,
    /// First line in the new text.
    pub new_start: u32,
    /// Lines put in.
    pub new_lines: u32,
}

/// The name of a content in the blob store: its SHA-256 in lower-case hex.
pub fn content_hash(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// One write of one file by a tool, under the decision that asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Its id.
    pub change_id: ChangeId,
    /// The plan.
    pub plan_id: PlanId,
    /// The decision behind it.
    pub decision_id: DecisionId,
    /// The resource the file belongs to.
    pub resource_id: ResourceId,
    /// Relative to the resource's root, with `/`.
    pub path: String,
    /// Where it was before, for a rename.
    pub old_path: Option<String>,
    /// What happened.
    pub kind: ChangeKind,
    /// SHA-256 of the bytes before; `None` when the file was not there.
    pub before_hash: Option<String>,
    /// SHA-256 of the bytes after; `None` when the file is gone.
    pub after_hash: Option<String>,
    /// Line hunks; empty for a file that is not text.
    pub hunks: Vec<Hunk>,
    /// The tool that wrote.
    pub tool: String,
    /// When.
    pub created_at: Timestamp,
}

/// A line of a shown hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffLine {
    /// `" "`, `"-"` or `"+"`.
    pub kind: String,
    /// The text without its line break.
    pub text: String,
    /// 1-based line in the old file, for context and removed lines.
    pub old: Option<u32>,
    /// 1-based line in the new file, for context and added lines.
    pub new: Option<u32>,
}

/// A hunk of a unified diff with its context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffHunk {
    /// `@@ -1,4 +1,3 @@`.
    pub range: String,
    /// Lines in order.
    pub lines: Vec<DiffLine>,
}

/// One file of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// The file (its new name for a rename), relative, with `/`.
    pub path: String,
    /// The old name, for a rename.
    pub old_path: Option<String>,
    /// What happened.
    pub kind: ChangeKind,
    /// Added lines.
    pub insertions: u32,
    /// Removed lines.
    pub deletions: u32,
    /// Not text.
    pub binary: bool,
    /// Size in bytes after (before, for a deletion).
    pub size: u64,
    /// Hunks with context; empty for a binary file.
    pub hunks: Vec<DiffHunk>,
    /// The whole unified diff as `git apply` takes it.
    pub patch: String,
}
