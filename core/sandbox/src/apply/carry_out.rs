//! Makes an apply happen step by step under its journal.

use std::path::Path;

use super::index::{Direction, update};
use super::journal::{Intent, Journal, Phase};
use super::lock::IndexLock;
use super::preflight::{FileChange, Prepared, open_root, prepare, scratch};
use super::{Applied, ApplyError, ApplyPlan};
use crate::diff::diff_trees;
use crate::error::{Result, SandboxError};
use crate::fault;
use crate::git::CommitId;
use crate::message::commit_message;
use crate::paths::{Entry, PathRefusal, Root};
use crate::repository::Repository;

/// How often an apply starts over because the branch or a file moved under it.
const ATTEMPTS: usize = 3;

/// Applies a plan that [`preflight`](super::preflight()) let pass; checks again, under the lock.
///
/// `journal_dir` belongs to this apply alone; it is kept when the apply is done, so that one that was not recorded is
/// found by [`resume_or_undo`](super::resume_or_undo), until [`forget`](super::forget). `trailers` end the commit
/// message, such as `("CleverAgents-Plan", "01HX...")`; no line of `message` is taken for one, and what cannot be shown
/// is left out of both. When this returns an error other than
/// [`ApplyError::Stuck`] and [`ApplyError::Unrecorded`], the checkout is as it was.
pub fn run(
    repository: &Repository,
    plan: &ApplyPlan,
    journal_dir: &Path,
    message: &str,
    trailers: &[(String, String)],
) -> Result<Applied, ApplyError> {
    run_noted(repository, plan, journal_dir, message, trailers, &|_| None)
}

/// [`run`] that gives the commit a git note ([`NOTES_REF`](crate::NOTES_REF)), in the words of `note`. A note that
/// cannot be written stops nothing: [`Applied::note_problem`] says so.
pub fn run_noted(
    repository: &Repository,
    plan: &ApplyPlan,
    journal_dir: &Path,
    message: &str,
    trailers: &[(String, String)],
    note: &dyn Fn(&CommitId) -> Option<String>,
) -> Result<Applied, ApplyError> {
    fault::point("apply.before-journal");
    let journal = Journal::begin(journal_dir, plan.snapshot.plan, repository.place())?;
    fault::point("apply.after-journal");
    let text = commit_message(message, trailers);
    for _ in 0..ATTEMPTS {
        match attempt(repository, plan, &journal, &text, note) {
            Ok(Some(applied)) => return Ok(applied),
            Ok(None) => journal.write(&Phase::Locking)?,
            Err(error @ (ApplyError::Stuck { .. } | ApplyError::Unrecorded { .. })) => return Err(error),
            Err(error) => {
                journal.end()?;
                return Err(error);
            }
        }
    }
    journal.end()?;
    Err(ApplyError::Racing { branch: plan.branch.clone().unwrap_or_else(|| "HEAD".to_owned()) })
}

/// One try; `None` when something moved meanwhile and everything was taken back.
fn attempt(
    repository: &Repository,
    plan: &ApplyPlan,
    journal: &Journal,
    message: &str,
    note: &dyn Fn(&CommitId) -> Option<String>,
) -> Result<Option<Applied>, ApplyError> {
    let repository = &repository.with_settings_now()?;
    let scratch = scratch(repository);
    let lock = IndexLock::acquire(repository.git_dir(), &scratch, journal.plan)?;
    fault::point("apply.after-lock");
    let prepared = prepare(repository, &plan.snapshot, &plan.result, plan.mode)?;
    fault::point("apply.after-merge");
    let contents = prepared.contents(repository)?;
    let commit = make_commit(repository, &prepared, message)?;
    fault::point("apply.after-commit-object");
    let note = commit.as_ref().and_then(note);
    let diff = diff_trees(repository, prepared.shown.0.as_str(), prepared.shown.1.as_str())?;
    let files = journal.save(&contents)?;
    fault::point("apply.after-backup");
    let intent = Intent {
        mode: prepared.plan.mode,
        head_before: prepared.head.commit,
        branch_before: prepared.head.branch,
        commit,
        branch: prepared.plan.branch,
        new_branch: prepared.plan.new_branch,
        files,
        index: prepared.index.into_iter().map(Into::into).collect(),
        diff,
        note,
    };
    journal.write(&Phase::Intent(Box::new(intent.clone())))?;
    fault::point("apply.after-intent");
    let root = open_root(repository)?;
    let stop = match forward(repository, &root, &intent, &contents) {
        Ok(left_alone) => {
            let applied = applied(repository, journal, &intent, false, left_alone);
            fault::point("apply.before-done");
            let done = Phase::Done { intent: Box::new(intent), applied: Box::new(applied.clone()) };
            journal.write(&done).map_err(|source| ApplyError::Unrecorded { source })?;
            fault::point("apply.after-done");
            drop(lock);
            fault::point("apply.after-unlock");
            return Ok(Some(applied));
        }
        Err(stop) => stop,
    };
    tracing::debug!(?stop, plan = %journal.plan, "taking an apply back");
    match take_back(repository, &root, journal, intent, &contents, stop.reason()) {
        Ok(left_alone) => match stop {
            Stop::Moved | Stop::Edited(_) => Ok(None),
            Stop::Failed(source) => Err(ApplyError::Failed { source, left_alone }),
        },
        Err(undo) => Err(ApplyError::Stuck { reason: stop.reason(), undo }),
    }
}

/// Why going forward stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The branch is not where it was.
    Moved,
    /// A file is neither what it was nor what it becomes.
    Edited(String),
    Failed(SandboxError),
}

impl Stop {
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Moved => "the branch moved meanwhile".to_owned(),
            Self::Edited(path) => format!("{path} was edited meanwhile"),
            Self::Failed(error) => error.to_string(),
        }
    }
}

impl From<SandboxError> for Stop {
    fn from(error: SandboxError) -> Self {
        Self::Failed(error)
    }
}

/// The outcome, with the commit's note written on the way.
pub(super) fn applied(
    repository: &Repository,
    journal: &Journal,
    intent: &Intent,
    resumed: bool,
    left_alone: Vec<String>,
) -> Applied {
    fault::point("apply.before-note");
    let written = match (&intent.commit, &intent.note) {
        (Some(commit), Some(note)) => repository.add_note(commit, note),
        _ => Ok(()),
    };
    fault::point("apply.after-note");
    Applied {
        note_problem: written.err().map(|error| error.to_string()),
        plan: journal.plan,
        commit: intent.commit.clone(),
        head_before: intent.head_before.clone(),
        branch: intent.branch.clone(),
        new_branch: intent.new_branch,
        files: intent.diff.clone(),
        resumed,
        left_alone,
    }
}

fn make_commit(repository: &Repository, prepared: &Prepared, message: &str) -> Result<Option<CommitId>> {
    let Some(tree) = &prepared.commit_tree else { return Ok(None) };
    let parent = prepared.head.commit.as_str();
    let call = repository.git.call(["commit-tree", tree.as_str(), "-p", parent, "-F", "-"]);
    call.by_user(repository.settings.identity).stdin(message).id().map(Some)
}

/// Files, branch, index; each step may have been done already. Returns entries that were left.
pub(super) fn forward(
    repository: &Repository,
    root: &Root,
    intent: &Intent,
    contents: &[FileChange],
) -> Result<Vec<String>, Stop> {
    // Removals first: a directory may take the place of a file.
    let order = |gone: bool| contents.iter().filter(move |change| change.after.is_none() == gone);
    let mut first = true;
    for change in order(true).chain(order(false)) {
        let path = Path::new(&change.path);
        let now = on_disk(root, &change.path)?;
        if now != change.after {
            if now != change.before {
                return Err(Stop::Edited(change.path.clone()));
            }
            match &change.after {
                Some(entry) => root.place(path, entry, true)?,
                None => root.remove(path)?,
            }
        }
        if std::mem::take(&mut first) {
            fault::point("apply.after-first-file");
        }
    }
    fault::point("apply.after-files");
    if let (Some(commit), Some(branch)) = (&intent.commit, &intent.branch) {
        fault::point("apply.before-ref");
        let from = if intent.new_branch { None } else { Some(&intent.head_before) };
        move_branch(repository, branch, from, commit)?;
        fault::point("apply.after-ref");
        if intent.new_branch {
            attach_head(repository, branch)?;
        }
        fault::point("apply.after-head");
    }
    fault::point("apply.before-index");
    let left = update(repository, &scratch(repository), &intent.index, Direction::Forward)?;
    fault::point("apply.after-index");
    Ok(left)
}

/// What is at a path, where a directory or nothing count as no file.
pub(super) fn on_disk(root: &Root, path: &str) -> Result<Option<Entry>> {
    match root.read(Path::new(path)) {
        Err(SandboxError::PathRefused {
            reason: PathRefusal::IsADirectory | PathRefusal::NotADirectory,
            ..
        }) => Ok(None),
        other => other,
    }
}

const REFLOG: &str = "cleveragents: apply plan";

/// Compare and swap; `from` is `None` for a branch that must not exist yet.
fn move_branch(
    repository: &Repository,
    branch: &str,
    from: Option<&CommitId>,
    to: &CommitId,
) -> Result<(), Stop> {
    let name = format!("refs/heads/{branch}");
    let nothing = "0".repeat(to.as_str().len());
    let old = from.map_or(nothing.as_str(), CommitId::as_str);
    let moved = repository
        .git
        .call(["update-ref", "--create-reflog", "-m", REFLOG, name.as_str(), to.as_str(), old])
        .by_user(repository.settings.identity)
        .run();
    match moved {
        Ok(_) => Ok(()),
        Err(error) => match branch_commit(repository, branch)? {
            now if now.as_ref() == Some(to) => Ok(()),
            now if now.as_ref() != from => Err(Stop::Moved),
            _ => Err(error.into()),
        },
    }
}

pub(super) fn attach_head(repository: &Repository, branch: &str) -> Result<()> {
    let name = format!("refs/heads/{branch}");
    repository
        .git
        .call(["symbolic-ref", "-m", REFLOG, "HEAD", name.as_str()])
        .by_user(repository.settings.identity)
        .run()
        .map(drop)
}

/// Where a branch is; `None` when it does not exist.
pub(super) fn branch_commit(repository: &Repository, branch: &str) -> Result<Option<CommitId>> {
    let name = format!("refs/heads/{branch}");
    let output = repository.git.call(["rev-parse", "--verify", "-q", name.as_str()]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

/// Undoes whatever of an apply has happened: branch, index, files. Returns files that a person changed meanwhile;
/// they are left.
pub(super) fn take_back(
    repository: &Repository,
    root: &Root,
    journal: &Journal,
    intent: Intent,
    contents: &[FileChange],
    reason: String,
) -> Result<Vec<String>> {
    let undoing = Phase::Undoing { intent: Box::new(intent), reason };
    journal.write(&undoing)?;
    let Phase::Undoing { intent, .. } = undoing else { return Ok(Vec::new()) };
    if let (Some(commit), Some(branch)) = (&intent.commit, &intent.branch)
        && branch_commit(repository, branch)?.as_ref() == Some(commit)
    {
        take_back_branch(repository, &intent, branch, commit)?;
    }
    if let (Some(commit), Some(_)) = (&intent.commit, &intent.note)
        && let Err(error) = repository.remove_note(commit)
    {
        tracing::warn!(%error, "the note of a commit that was taken back stays");
    }
    let mut left = update(repository, &scratch(repository), &intent.index, Direction::Back)?;
    let head = repository.head()?;
    // New files go first, so that a file may come back where a directory was made.
    let order = |new: bool| contents.iter().filter(move |change| change.before.is_none() == new);
    for change in order(true).chain(order(false)) {
        let path = Path::new(&change.path);
        let now = on_disk(root, &change.path)?;
        if now == change.before {
            continue;
        }
        let committed = |entry: &Entry| -> Result<bool> {
            let moved = head.commit != intent.head_before;
            Ok(moved && repository.file_at(&head.commit, &change.path)?.as_deref() == Some(entry.bytes()))
        };
        // A person may have committed the new content meanwhile; it is theirs then.
        if now != change.after || change.after.as_ref().map(committed).transpose()? == Some(true) {
            left.push(change.path.clone());
            continue;
        }
        match &change.before {
            Some(entry) => root.place(path, entry, true)?,
            None => root.remove(path)?,
        }
    }
    left.sort();
    left.dedup();
    Ok(left)
}

fn take_back_branch(repository: &Repository, intent: &Intent, branch: &str, commit: &CommitId) -> Result<()> {
    let name = format!("refs/heads/{branch}");
    let before = intent.head_before.as_str();
    let why = "cleveragents: take apply back";
    let call = |args: &[&str]| {
        repository
            .git
            .call(["update-ref", "-m", why].iter().chain(args))
            .by_user(repository.settings.identity)
    };
    if !intent.new_branch {
        return call(&[&name, before, commit.as_str()]).run().map(drop);
    }
    if repository.head()?.branch.as_deref() == Some(branch) {
        call(&["--no-deref", "HEAD", before]).run()?;
    }
    call(&["-d", &name, commit.as_str()]).run().map(drop)
}
