//! Keeps a plan's changes apart from the user's checkout until they are applied: snapshot, worktree, checkpoints, diff,
//! apply.
//!
//! Everything goes through the `git` command. Nothing in here reads the user's stash, runs a hook, a filter
//! or any other program that git's configuration names, or writes to the user's index, branches or files, but for [`apply`], which does so under a journal.
//!
//! The usual way: [`Repository::open`], [`snapshot()`], [`Worktree::create`], writes and
//! [`Worktree::checkpoint`]s, [`diff()`], [`apply::preflight`], [`apply::run`], [`cleanup`].

pub mod apply;
mod diff;
mod disk;
mod drift;
mod error;
mod failure;
pub mod fault;
mod folder;
mod git;
pub mod history;
mod line_endings;
mod merge;
mod message;
mod notes;
mod paths;
mod repository;
mod settings;
mod snapshot;
mod worktree;

pub use diff::{ChangedPath, changed_paths, checkpoint_diff, diff};
pub use drift::{Moved, drift};
pub use error::{Result, SandboxError};
pub use git::{CommitId, InvalidObjectId, MINIMUM_GIT, ObjectId};
pub use merge::{MergedWork, has_markers, merge, take_side};
pub use notes::{DECISION_TRAILER, LineOrigin, NOTES_REF, PLAN_TRAILER, Trailers};
pub use paths::PathRefusal;
pub use repository::{Head, Repository, StoredFile};
pub use snapshot::{LARGE_FILE, Snapshot, Untouchable, UntouchableReason, snapshot, snapshot_of};
pub use worktree::{
    AppliedEdit, DirectoryEntry, EntryKind, GroupError, Held, Recovery, Removal, SandboxFile, TakenEdits,
    Worktree, cleanup, place_of, plans_kept, prune, restore_group,
};
