//! Going back in several sandboxes at once: all of them, or none.

use std::path::PathBuf;

use super::Worktree;
use crate::error::SandboxError;
use crate::git::CommitId;

/// Why a group of sandboxes was not brought back.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// A commit is not there; nothing was changed.
    #[error("{} cannot be brought back: its checkpoint {commit} is gone", dir.display())]
    Unknown {
        /// The sandbox.
        dir: PathBuf,
        /// The commit.
        commit: CommitId,
    },
    /// One could not be brought back; the others are as they were.
    #[error("{} could not be brought back, and nothing was changed: {source}", dir.display())]
    Failed {
        /// The sandbox.
        dir: PathBuf,
        /// Why.
        source: SandboxError,
    },
    /// One could not be brought back, and another not returned to where it was.
    #[error("{} could not be brought back ({source}), and {} is no longer as it was: {undo}", dir.display(), stuck.display())]
    Stuck {
        /// The sandbox that failed.
        dir: PathBuf,
        /// Why.
        source: SandboxError,
        /// The sandbox that is between.
        stuck: PathBuf,
        /// Why it could not be returned.
        undo: SandboxError,
    },
}

/// Brings each sandbox to its commit. When one fails, all return to the checkpoint they were at.
///
/// Whatever differs from the last checkpoint is dropped, as in [`Worktree::restore`]: checkpoint it first.
pub fn restore_group(targets: &[(&Worktree, &CommitId)]) -> Result<(), GroupError> {
    let failed = |worktree: &Worktree, source| GroupError::Failed { dir: worktree.path().to_owned(), source };
    let mut heads = Vec::with_capacity(targets.len());
    for (worktree, commit) in targets {
        if !worktree.repository.has_commit(commit) {
            return Err(GroupError::Unknown { dir: worktree.path().to_owned(), commit: (*commit).clone() });
        }
        heads.push(worktree.head().map_err(|source| failed(worktree, source))?);
    }
    for (at, (worktree, commit)) in targets.iter().enumerate() {
        let Err(source) = worktree.restore(commit) else { continue };
        // The one that failed may have been left half way, too.
        for (place, ((other, _), head)) in targets.iter().zip(&heads).enumerate().take(at + 1) {
            if let Err(undo) = other.restore(head)
                && place != at
            {
                let (dir, stuck) = (worktree.path().to_owned(), other.path().to_owned());
                return Err(GroupError::Stuck { dir, source, stuck, undo });
            }
        }
        return Err(failed(worktree, source));
    }
    Ok(())
}
