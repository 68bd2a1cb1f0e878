//! Finishes or takes back an apply whose process died, and takes back a finished one on request.

use std::path::Path;

use super::carry_out::{applied, attach_head, branch_commit, forward, on_disk, take_back};
use super::index::{Direction, update};
use super::journal::{self, Intent, Journal, Phase};
use super::lock::IndexLock;
use super::preflight::{FileChange, open_root, scratch};
use super::{ApplyError, ApplyMode, Resumed};
use crate::error::Result;
use crate::git::CommitId;
use crate::paths::Root;
use crate::repository::Repository;

/// Takes up the apply that a killed process left in a journal.
///
/// Finished, when the commit is on its branch already or everything still stands as it was found; taken back
/// otherwise. Files a person changed meanwhile are never overwritten. A finished apply stays in its journal until
/// [`forget`], so this may be asked any number of times.
pub fn resume_or_undo(journal_dir: &Path) -> Result<Resumed, ApplyError> {
    let Some((journal, phase)) = Journal::open(journal_dir)? else { return Ok(Resumed::Nothing) };
    let repository = Repository::reopen(&journal.repository)?;
    let scratch = scratch(&repository);
    IndexLock::release_left(repository.git_dir(), &scratch, journal.plan);
    let (intent, reason) = match phase {
        Phase::Locking => {
            journal.end()?;
            let reason = "it had changed nothing yet".to_owned();
            return Ok(Resumed::Undone { reason, left_alone: Vec::new() });
        }
        Phase::Done { mut applied, .. } => {
            applied.resumed = true;
            return Ok(Resumed::Finished(*applied));
        }
        Phase::Intent(intent) => (*intent, None),
        Phase::Undoing { intent, reason } => (*intent, Some(reason)),
    };
    let lock = IndexLock::acquire(repository.git_dir(), &scratch, journal.plan)?;
    let root = open_root(&repository)?;
    root.clear_staging();
    let contents = load(&journal, &intent)?;
    let reason = match reason {
        Some(reason) => reason,
        None => match finish(&repository, &root, &intent, &contents)? {
            Ok(left_alone) => {
                let applied = applied(&repository, &journal, &intent, true, left_alone);
                journal
                    .write(&Phase::Done { intent: Box::new(intent), applied: Box::new(applied.clone()) })?;
                drop(lock);
                return Ok(Resumed::Finished(applied));
            }
            Err(reason) => reason,
        },
    };
    let left_alone = take_back(&repository, &root, &journal, intent, &contents, reason.clone())?;
    drop(lock);
    journal.end()?;
    Ok(Resumed::Undone { reason, left_alone })
}

/// Takes back a finished apply whose journal was not forgotten: the branch, if nothing was built on it, the index, and
/// files that are still as the apply left them. Returns the files that are not.
///
/// For an apply over several resources of which a later one failed; a plan that counts as applied is never undone.
pub fn undo(journal_dir: &Path) -> Result<Vec<String>, ApplyError> {
    let Some((journal, phase)) = Journal::open(journal_dir)? else { return Ok(Vec::new()) };
    let Phase::Done { intent, .. } = phase else { return Err(ApplyError::Pending) };
    let repository = Repository::reopen(&journal.repository)?;
    let lock = IndexLock::acquire(repository.git_dir(), &scratch(&repository), journal.plan)?;
    if let (Some(commit), Some(branch)) = (&intent.commit, &intent.branch)
        && branch_commit(&repository, branch)?.as_ref() != Some(commit)
    {
        return Err(ApplyError::BuiltUpon { branch: branch.clone(), commit: commit.clone() });
    }
    let root = open_root(&repository)?;
    let contents = load(&journal, &intent)?;
    let reason = "it was taken back on request".to_owned();
    let left = take_back(&repository, &root, &journal, *intent, &contents, reason)?;
    drop(lock);
    journal.end()?;
    Ok(left)
}

/// Whether a journal holds an apply that has begun and is neither finished nor taken back: it is being made by a
/// process that lives, or was cut off, or its record cannot be read. Such a plan must not be given up:
/// [`resume_or_undo`] comes first. Changes nothing and waits for nobody.
pub fn in_progress(journal_dir: &Path) -> bool {
    !matches!(journal::peek(journal_dir), Ok(None | Some(Phase::Done { .. })))
}

/// Removes the journal of an apply that is done, once its outcome is recorded elsewhere; safe to repeat.
pub fn forget(journal_dir: &Path) -> Result<(), ApplyError> {
    match Journal::open(journal_dir)? {
        Some((journal, Phase::Done { .. })) => Ok(journal.end()?),
        Some(_) => Err(ApplyError::Pending),
        None => Ok(()),
    }
}

fn load(journal: &Journal, intent: &Intent) -> Result<Vec<FileChange>> {
    intent.files.iter().enumerate().map(|(number, file)| journal.load(number, file)).collect()
}

/// Finishes if that is safe; otherwise says why not.
fn finish(
    repository: &Repository,
    root: &Root,
    intent: &Intent,
    contents: &[FileChange],
) -> Result<Result<Vec<String>, String>> {
    if let (Some(commit), Some(branch)) = (&intent.commit, &intent.branch)
        && let Some(tip) = branch_commit(repository, branch)?
        && contains(repository, &tip, commit)?
    {
        return finish_committed(repository, root, intent, contents, (commit, branch, &tip)).map(Ok);
    }
    let head = repository.head()?;
    if intent.mode == ApplyMode::Commit
        && (head.commit != intent.head_before || head.branch != intent.branch_before)
    {
        return Ok(Err("HEAD moved before it could be finished".to_owned()));
    }
    for change in contents {
        let now = on_disk(root, &change.path)?;
        if now != change.before && now != change.after {
            return Ok(Err(format!("{} was edited before it could be finished", change.path)));
        }
    }
    Ok(forward(repository, root, intent, contents).map_err(|stop| stop.reason()))
}

/// The branch has the commit, and before the branch moved all files had been written.
fn finish_committed(
    repository: &Repository,
    root: &Root,
    intent: &Intent,
    contents: &[FileChange],
    (commit, branch, tip): (&CommitId, &str, &CommitId),
) -> Result<Vec<String>> {
    let mut left = Vec::new();
    for change in contents {
        if on_disk(root, &change.path)? != change.after {
            left.push(change.path.clone());
        }
    }
    let mut head = repository.head()?;
    if intent.new_branch && head.branch.is_none() && head.commit == intent.head_before {
        attach_head(repository, branch)?;
        head = repository.head()?;
    }
    // With other commits on top, or another branch checked out, the index is no longer the one that was to change.
    if head.branch.as_deref() == Some(branch) && tip == commit {
        left.extend(update(repository, &scratch(repository), &intent.index, Direction::Forward)?);
    }
    left.sort();
    left.dedup();
    Ok(left)
}

fn contains(repository: &Repository, tip: &CommitId, commit: &CommitId) -> Result<bool> {
    if tip == commit {
        return Ok(true);
    }
    let git = &repository.git;
    Ok(git.call(["merge-base", "--is-ancestor", commit.as_str(), tip.as_str()]).output()?.code == 0)
}
