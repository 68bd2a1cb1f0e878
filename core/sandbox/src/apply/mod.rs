//! Brings a plan's changes to the user's checkout: one commit with only the plan's changes, the index and the working
//! tree brought along, under a journal that survives kill -9.
//!
//! A checkout has three layers: HEAD, the index, the files. The plan's changes are what lies between its base snapshot
//! and its result. They are merged three-way into each layer by itself, so that what the user had staged stays
//! staged and what was uncommitted stays uncommitted:
//!
//! ```text
//! new HEAD  = merge(base, HEAD,  result)      one commit on the branch
//! new index = merge(base, index, result)      touched entries only
//! new files = merge(base, files, result)      touched files only
//! ```
//!
//! If the plan's change of a file builds on lines that the user has not committed, the first merge conflicts and the
//! apply is refused with the files named; [`ApplyMode::NoCommit`] merges into the files only.
//!
//! While it works, [`run`] holds the checkout's `index.lock`, as git's own commands do. Order: journal, lock, merge,
//! backups, intent (on the disk), files, branch (compare and swap), index, done. [`resume_or_undo`] takes up whatever
//! a killed process left and finishes it when everything still stands as it was found, or else takes it back.
//! Until then the lock stays, so that no commit of the user's can fall between branch and index.

mod carry_out;
mod index;
mod journal;
mod lock;
mod merge;
mod preflight;
mod resume;

use agents_domain::changes::FileDiff;
use agents_domain::ids::PlanId;
use serde::{Deserialize, Serialize};

use crate::diff::ChangedPath;
use crate::error::SandboxError;
use crate::git::CommitId;
use crate::snapshot::Snapshot;

pub use carry_out::{run, run_noted};
pub(crate) use merge::{Changes, merge_into};
pub use merge::{Conflict, ConflictHunk};
pub use preflight::preflight;
pub use resume::{forget, in_progress, resume_or_undo, undo};

/// What becomes of the plan's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplyMode {
    /// One commit on the checked-out branch; on a detached HEAD, on a new branch.
    Commit,
    /// Merged into the files; HEAD, branches and index stay.
    NoCommit,
}

/// An apply that was checked and can be run. It is checked again, under the lock, when it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyPlan {
    /// The plan's base.
    pub snapshot: Snapshot,
    /// The plan's last checkpoint.
    pub result: CommitId,
    /// Commit or not.
    pub mode: ApplyMode,
    /// HEAD as it was checked.
    pub head: CommitId,
    /// The branch the commit goes to; `None` without a commit.
    pub branch: Option<String>,
    /// HEAD is detached, so the branch will be a new one.
    pub new_branch: bool,
    /// The branch has commits the base does not have: the plan's changes are merged with them.
    pub branch_moved: bool,
    /// Another branch than the base's is checked out; holds the base's.
    pub other_branch: Option<String>,
    /// Files that the commit (without one: the working tree) gets changed.
    pub files: Vec<ChangedPath>,
}

impl ApplyPlan {
    /// Nothing differs from what is there already.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// What an apply did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The plan.
    pub plan: PlanId,
    /// The commit made; `None` without one, and when there was nothing to commit.
    pub commit: Option<CommitId>,
    /// HEAD before.
    pub head_before: CommitId,
    /// The branch it is on.
    pub branch: Option<String>,
    /// HEAD was detached: the branch is new, and checked out now.
    pub new_branch: bool,
    /// What changed, file by file.
    pub files: Vec<FileDiff>,
    /// A killed apply was finished.
    pub resumed: bool,
    /// Files a person changed while the apply lay interrupted; they were left as they are.
    pub left_alone: Vec<String>,
    /// Why the commit has no note, when it should have one; the apply is none the worse.
    #[serde(default)]
    pub note_problem: Option<String>,
}

/// What [`resume_or_undo`] found and did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Resumed {
    /// No apply had begun.
    Nothing,
    /// An apply had been cut off and was finished, or had finished before anyone was told.
    Finished(Applied),
    /// An apply had been cut off and was taken back: the checkout is as it was before.
    Undone {
        /// Why it could not be finished.
        reason: String,
        /// Files a person changed meanwhile; they were left as they are.
        left_alone: Vec<String>,
    },
}

/// Why an apply cannot go ahead; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refusal", rename_all = "snake_case")]
pub enum ApplyRefusal {
    /// The person can clear the way; the plan is as it was.
    #[error("apply refused: {}", describe(files))]
    Refused {
        /// The files in the way.
        files: Vec<RefusedFile>,
    },
    /// A merge, rebase or the like has not been ended.
    #[error("apply refused: a {operation} is in progress; end it first, or use --no-commit")]
    OperationInProgress {
        /// What git is in the middle of.
        operation: String,
    },
    /// The plan's changes conflict with what was committed meanwhile.
    #[error("apply conflicts with changes made since the plan began in {}", conflicts.iter().map(|c| c.path.as_str()).collect::<Vec<_>>().join(", "))]
    Conflicts {
        /// The conflicts, file by file.
        conflicts: Vec<Conflict>,
    },
    /// HEAD does not contain the commit the plan began on.
    #[error("the history was rewritten: HEAD {head} does not contain {base_head}, on which the plan began")]
    HistoryRewritten {
        /// The commit the plan began on.
        base_head: CommitId,
        /// HEAD now.
        head: CommitId,
    },
}

impl ApplyRefusal {
    /// Whether the plan becomes `constrained` (a conflict or rewritten history) rather than staying as it is.
    pub fn constrains(&self) -> bool {
        matches!(self, Self::Conflicts { .. } | Self::HistoryRewritten { .. })
    }

    /// What the person can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Refused { .. } => {
                "commit or take back your changes in these files and apply again, or use --no-commit to merge into the \
                 working tree"
            }
            Self::OperationInProgress { .. } => "end the operation and apply again, or use --no-commit",
            Self::Conflicts { .. } => "correct the plan so that it builds on what is there now, or cancel it",
            Self::HistoryRewritten { .. } => {
                "check out a branch that contains the commit, or start the plan anew"
            }
        }
    }
}

/// A file that is in the way of an apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedFile {
    /// The file, relative, with `/`.
    pub path: String,
    /// Why.
    pub why: RefusedWhy,
}

/// Why a file is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum RefusedWhy {
    /// Edited since the plan began, and not committed.
    #[error("has newer uncommitted edits")]
    NewerEdits,
    /// The plan's change builds on lines that were never committed.
    #[error("the plan's change builds on your uncommitted changes")]
    BuildsOnUncommitted,
    /// The plan's change overlaps what is staged.
    #[error("what you staged overlaps the plan's change")]
    Staged,
    /// A file, ignored or too large to be seen, is where the plan puts one.
    #[error("a file is in its place")]
    InTheWay,
    /// Its line endings on disk are neither what git stores nor what it checks out.
    #[error("its mixed line endings would be lost")]
    LineEndings,
    /// Git does not look at it.
    #[error("is hidden from git or outside the sparse checkout")]
    Hidden,
}

fn describe(files: &[RefusedFile]) -> String {
    files.iter().map(|file| format!("{} ({})", file.path, file.why)).collect::<Vec<_>>().join(", ")
}

/// An apply that was refused, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Refused by a rule; nothing was changed.
    #[error(transparent)]
    Refusal(#[from] ApplyRefusal),
    /// Another process is applying under this journal.
    #[error("an apply with this journal is running in another process")]
    Running,
    /// The journal holds an apply that was cut off or is done.
    #[error("this journal holds an earlier apply: resume it first")]
    Pending,
    /// The branch moved each time the apply was about to take effect; everything was taken back.
    #[error("`{branch}` kept moving while the plan was applied; nothing was changed, try again")]
    Racing {
        /// The branch.
        branch: String,
    },
    /// Something failed; what had been changed was taken back, but for `left_alone`.
    #[error("apply failed and was taken back: {source}")]
    Failed {
        /// Why.
        source: SandboxError,
        /// Files a person changed meanwhile.
        left_alone: Vec<String>,
    },
    /// Something failed, and taking it back failed too; the journal stays, and [`resume_or_undo`] tries again.
    #[error(
        "apply failed ({reason}), and taking it back failed too: {undo}; it is tried again on the next command"
    )]
    Stuck {
        /// Why it failed.
        reason: String,
        /// Why it could not be taken back.
        undo: SandboxError,
    },
    /// The change was made, but that could not be written down; the journal stays, and [`resume_or_undo`] finds it.
    #[error("the plan was applied, but this could not be recorded ({source}); the next command finds it")]
    Unrecorded {
        /// Why.
        source: SandboxError,
    },
    /// A finished apply cannot be taken back: its branch has moved on.
    #[error("`{branch}` has moved on from {commit}, so the commit is not taken back; `git revert` can do it")]
    BuiltUpon {
        /// The branch.
        branch: String,
        /// The commit of the apply.
        commit: CommitId,
    },
    /// Something failed before anything was changed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}
