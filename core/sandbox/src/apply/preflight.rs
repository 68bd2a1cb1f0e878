//! Works out what an apply would do, and every reason not to do it, before anything is changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::merge::{Changes, Conflict, merge_into};
use super::{ApplyError, ApplyMode, ApplyPlan, ApplyRefusal, RefusedFile, RefusedWhy};
use crate::diff::{ChangedPath, RawChange, raw_changes};
use crate::error::{Result, SandboxError};
use crate::folder::take_in;
use crate::git::{CommitId, ObjectId, parse_id};
use crate::line_endings::LineEndings;
use crate::paths::{Entry, Root};
use crate::repository::{Head, MODE_EXECUTABLE, MODE_LINK, Repository};
use crate::snapshot::{Capture, Snapshot, capture};

/// Checks whether a plan's changes can be applied now, and says what that would change. Changes nothing.
///
/// `result` is the plan's last checkpoint. Cheap enough to ask before a person is asked: well under a second on large
/// checkouts.
pub fn preflight(
    repository: &Repository,
    snapshot: &Snapshot,
    result: &CommitId,
    mode: ApplyMode,
) -> Result<ApplyPlan, ApplyError> {
    let repository = &repository.with_settings_now()?;
    let prepared = prepare(repository, snapshot, result, mode)?;
    prepared.contents(repository)?;
    Ok(prepared.plan)
}

/// A tree entry before and after.
#[derive(Debug, Clone)]
pub(super) struct EntryChange {
    pub(super) path: String,
    pub(super) before: Option<(String, ObjectId)>,
    pub(super) after: Option<(String, ObjectId)>,
}

/// What a file on disk is and what it is to become, byte for byte.
#[derive(Debug, Clone)]
pub(super) struct FileChange {
    pub(super) path: String,
    pub(super) before: Option<Entry>,
    pub(super) after: Option<Entry>,
}

/// The outcome of all three merges.
pub(super) struct Prepared {
    pub(super) plan: ApplyPlan,
    pub(super) head: Head,
    /// The tree of the commit to make; `None` when there is nothing to commit.
    pub(super) commit_tree: Option<ObjectId>,
    pub(super) files: Vec<EntryChange>,
    pub(super) index: Vec<EntryChange>,
    /// The two trees whose difference is shown.
    pub(super) shown: (ObjectId, ObjectId),
    captured: Capture,
}

fn refused(files: impl IntoIterator<Item = (String, RefusedWhy)>) -> ApplyError {
    let unique: BTreeMap<String, RefusedWhy> = files.into_iter().collect();
    let files = unique.into_iter().map(|(path, why)| RefusedFile { path, why }).collect();
    ApplyRefusal::Refused { files }.into()
}

pub(super) fn prepare(
    repository: &Repository,
    snapshot: &Snapshot,
    result: &CommitId,
    mode: ApplyMode,
) -> Result<Prepared, ApplyError> {
    take_in(repository)?;
    let head = repository.head()?;
    let commits = mode == ApplyMode::Commit;
    if commits {
        if let Some(operation) = repository.operation_in_progress() {
            return Err(ApplyRefusal::OperationInProgress { operation: operation.to_owned() }.into());
        }
        refuse_rewritten(repository, snapshot, &head)?;
    }
    let [base_tree, result_tree, head_tree, base_head_tree] =
        trees(repository, [&snapshot.commit, result, &head.commit, &snapshot.head], commits)?;
    let changes = Changes { base: &snapshot.commit, base_tree: &base_tree, result_tree: &result_tree };
    let captured = capture(repository)?;
    let planned = raw_changes(repository, base_tree.as_str(), result_tree.as_str(), false)?;

    let mut new_head_tree = head_tree.clone();
    let mut edited = HashSet::new();
    if commits {
        let merged = merge_into(repository, &changes, &head_tree)?;
        if !merged.conflicts.is_empty() {
            let moved = names_between(repository, &base_head_tree, &head_tree)?;
            return Err(explain_head_conflicts(merged.conflicts, &moved));
        }
        new_head_tree = merged.tree;
        refuse_uncommitted_files(repository, &planned, &head_tree, &captured)?;
        edited = newer_edits(repository, &changes, &head_tree, &captured)?;
        refuse_newer(planned.iter().map(|change| &change.path), &edited)?;
    }
    let merged = merge_into(repository, &changes, &captured.tree)?;
    if !merged.conflicts.is_empty() {
        return Err(if commits {
            refused(merged.conflicts.into_iter().map(|conflict| (conflict.path, RefusedWhy::NewerEdits)))
        } else {
            ApplyRefusal::Conflicts { conflicts: merged.conflicts }.into()
        });
    }
    let new_files_tree = merged.tree;
    let files =
        entry_changes(raw_changes(repository, captured.tree.as_str(), new_files_tree.as_str(), false)?)?;
    refuse_newer(files.iter().map(|file| &file.path), &edited)?;

    let mut index = Vec::new();
    if commits {
        let merged = merge_into(repository, &changes, &captured.index_tree)?;
        if !merged.conflicts.is_empty() {
            return Err(refused(
                merged.conflicts.into_iter().map(|conflict| (conflict.path, RefusedWhy::Staged)),
            ));
        }
        let changed = raw_changes(repository, captured.index_tree.as_str(), merged.tree.as_str(), false)?;
        index = entry_changes(changed)?;
    }
    refuse_unseen(repository, &captured, &files, &index)?;

    let commits_something = commits && new_head_tree != head_tree;
    let shown = if commits_something {
        (head_tree, new_head_tree.clone())
    } else {
        (captured.tree.clone(), new_files_tree)
    };
    let changed = raw_changes(repository, shown.0.as_str(), shown.1.as_str(), true)?;
    let (branch, new_branch) = match (&head.branch, commits_something) {
        (_, false) => (head.branch.clone(), false),
        (Some(branch), true) => (Some(branch.clone()), false),
        (None, true) => (Some(free_branch(repository, snapshot)?), true),
    };
    let plan = ApplyPlan {
        snapshot: snapshot.clone(),
        result: result.clone(),
        mode,
        head: head.commit.clone(),
        branch,
        new_branch,
        branch_moved: head.commit != snapshot.head,
        other_branch: snapshot.branch.clone().filter(|branch| head.branch.as_ref() != Some(branch)),
        files: changed
            .into_iter()
            .map(|c| ChangedPath { kind: crate::diff::kind(c.status), path: c.path, old_path: c.old_path })
            .collect(),
    };
    Ok(Prepared {
        plan,
        head,
        commit_tree: commits_something.then_some(new_head_tree),
        files,
        index,
        shown,
        captured,
    })
}

fn names_between(repository: &Repository, from: &ObjectId, to: &ObjectId) -> Result<HashSet<String>> {
    let changes = raw_changes(repository, from.as_str(), to.as_str(), false)?;
    Ok(changes.into_iter().map(|change| change.path).collect())
}

/// Files on disk that are neither what the plan saw, nor what HEAD has, nor what the plan made.
fn newer_edits(
    repository: &Repository,
    changes: &Changes<'_>,
    head_tree: &ObjectId,
    captured: &Capture,
) -> Result<HashSet<String>> {
    if captured.tree == *changes.base_tree {
        return Ok(HashSet::new());
    }
    let mut edited = names_between(repository, changes.base_tree, &captured.tree)?;
    for known in [head_tree, changes.result_tree] {
        let unlike = names_between(repository, known, &captured.tree)?;
        edited.retain(|path| unlike.contains(path));
    }
    Ok(edited)
}

fn refuse_newer<'p>(
    paths: impl Iterator<Item = &'p String>,
    edited: &HashSet<String>,
) -> Result<(), ApplyError> {
    let newer: Vec<_> = paths.filter(|path| edited.contains(*path)).collect();
    if newer.is_empty() {
        return Ok(());
    }
    Err(refused(newer.into_iter().map(|path| (path.clone(), RefusedWhy::NewerEdits))))
}

/// The plan edits a file that is on disk and was never committed. A merge might take it for another file's old name.
fn refuse_uncommitted_files(
    repository: &Repository,
    planned: &[RawChange],
    head_tree: &ObjectId,
    captured: &Capture,
) -> Result<(), ApplyError> {
    let changes = raw_changes(repository, head_tree.as_str(), captured.tree.as_str(), false)?;
    let uncommitted: HashSet<&str> =
        changes.iter().filter(|change| change.old.is_none()).map(|change| change.path.as_str()).collect();
    let built_on: Vec<_> = planned
        .iter()
        .filter(|change| change.old.is_some() && uncommitted.contains(change.path.as_str()))
        .map(|change| (change.path.clone(), RefusedWhy::BuildsOnUncommitted))
        .collect();
    if built_on.is_empty() { Ok(()) } else { Err(refused(built_on)) }
}

fn refuse_rewritten(repository: &Repository, snapshot: &Snapshot, head: &Head) -> Result<(), ApplyError> {
    if head.commit == snapshot.head {
        return Ok(());
    }
    let git = &repository.git;
    let output =
        git.call(["merge-base", "--is-ancestor", snapshot.head.as_str(), head.commit.as_str()]).output()?;
    match output.code {
        0 => Ok(()),
        // 128: the commit is gone, which is as rewritten as it gets.
        1 | 128 => Err(ApplyRefusal::HistoryRewritten {
            base_head: snapshot.head.clone(),
            head: head.commit.clone(),
        }
        .into()),
        code => {
            Err(SandboxError::Git { command: "git merge-base".into(), code, stderr: output.stderr }.into())
        }
    }
}

/// The trees of base, result, HEAD and the base's HEAD; the last is not asked for without a commit, since it may be
/// gone then.
fn trees(repository: &Repository, commits: [&CommitId; 4], all: bool) -> Result<[ObjectId; 4]> {
    let wanted = if all { &commits[..] } else { &commits[..3] };
    let names: Vec<String> = wanted.iter().map(|commit| format!("{commit}^{{tree}}")).collect();
    let text = repository
        .git
        .line(["rev-parse"].into_iter().chain(names.iter().map(String::as_str)))
        .map_err(|error| repository.explain(error, wanted))?;
    let mut ids = Vec::with_capacity(4);
    for line in text.lines() {
        ids.push(parse_id::<ObjectId>("git rev-parse", line)?);
    }
    if ids.len() == 3 {
        ids.push(ids[2].clone());
    }
    ids.try_into().map_err(|_| SandboxError::Unexpected { command: "git rev-parse".into(), detail: text })
}

/// A conflict with HEAD in a file nobody committed to comes from the user's uncommitted lines, which the plan saw and
/// HEAD does not have.
fn explain_head_conflicts(conflicts: Vec<Conflict>, moved: &HashSet<String>) -> ApplyError {
    if conflicts.iter().any(|conflict| moved.contains(&conflict.path)) {
        return ApplyRefusal::Conflicts { conflicts }.into();
    }
    refused(conflicts.into_iter().map(|conflict| (conflict.path, RefusedWhy::BuildsOnUncommitted)))
}

fn entry_changes(changes: Vec<RawChange>) -> Result<Vec<EntryChange>> {
    changes
        .into_iter()
        .map(|change| {
            if change.lossy {
                // No tool can have written it: its name cannot be given as text.
                return Err(SandboxError::refused(change.path, crate::paths::PathRefusal::Name));
            }
            Ok(EntryChange { path: change.path, before: change.old, after: change.new })
        })
        .collect()
}

/// Refuses what the merges could not see: hidden and filtered files, and anything where a new file is to go.
fn refuse_unseen(
    repository: &Repository,
    captured: &Capture,
    files: &[EntryChange],
    index: &[EntryChange],
) -> Result<(), ApplyError> {
    let root = open_root(repository)?;
    let removed: BTreeSet<&str> =
        files.iter().filter(|f| f.after.is_none()).map(|f| f.path.as_str()).collect();
    let left_alone: HashSet<&str> = captured.untouchable.iter().map(|file| file.path.as_str()).collect();
    let mut found = Vec::new();
    for change in files.iter().chain(index) {
        if captured.hidden.contains(&change.path) {
            found.push((change.path.clone(), RefusedWhy::Hidden));
        } else if left_alone.contains(change.path.as_str()) {
            found.push((change.path.clone(), RefusedWhy::InTheWay));
        }
    }
    for change in files.iter().filter(|file| file.before.is_none()) {
        if occupied(&root, &change.path, &removed) {
            found.push((change.path.clone(), RefusedWhy::InTheWay));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(refused(found)) }
}

fn occupied(root: &Root, path: &str, removed: &BTreeSet<&str>) -> bool {
    // A parent that is a file (or a link) is in the way unless the plan removes it.
    let parents: Vec<&str> = path.match_indices('/').map(|(at, _)| &path[..at]).collect();
    for parent in parents {
        match std::fs::symlink_metadata(root.path().join(parent)) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return !removed.contains(parent),
            Err(_) => return false,
        }
    }
    match std::fs::symlink_metadata(root.path().join(path)) {
        // A directory the plan empties goes away; one that keeps a file fails when its turn comes, and is undone.
        Ok(metadata) if metadata.is_dir() => {
            let inside = format!("{path}/");
            !removed.iter().any(|gone| gone.starts_with(&inside))
        }
        Ok(_) => true,
        Err(_) => false,
    }
}

/// A name for a new branch. Git keeps branches as files, so that none may lie in or above another.
fn free_branch(repository: &Repository, snapshot: &Snapshot) -> Result<String> {
    let plan = snapshot.plan;
    let bases = [format!("cleveragents/plan-{plan}"), format!("cleveragents-plan-{plan}")];
    let text = repository.git.line(["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"])?;
    // Where the file system knows no case, neither do they.
    let taken: HashSet<String> = text.lines().map(str::to_lowercase).collect();
    let free = |name: &str| {
        let name = name.to_lowercase();
        let inside = format!("{name}/");
        let mut above = name.match_indices('/').map(|(at, _)| &name[..at]);
        !taken.contains(&name)
            && !above.any(|above| taken.contains(above))
            && !taken.iter().any(|branch| branch.starts_with(&inside))
    };
    let base = if free("cleveragents/new") { &bases[0] } else { &bases[1] };
    let mut names = std::iter::once(base.clone()).chain((2..).map(|number: u64| format!("{base}-{number}")));
    Ok(names.find(|name| free(name)).unwrap_or_else(|| base.clone()))
}

/// Where an apply keeps its lock and its files on the way.
pub(super) fn scratch(repository: &Repository) -> std::path::PathBuf {
    repository.git_dir().join("cleveragents")
}

pub(super) fn open_root(repository: &Repository) -> Result<Root> {
    Root::open(repository.path(), &scratch(repository))
}

impl Prepared {
    /// Reads the files to be changed and works out their new bytes, in the user's own line endings.
    ///
    /// Refused when a file is no longer what was merged, or its line endings are mixed so that they would be lost.
    pub(super) fn contents(&self, repository: &Repository) -> Result<Vec<FileChange>, ApplyError> {
        let root = open_root(repository)?;
        let mut before = Vec::with_capacity(self.files.len());
        for change in &self.files {
            before.push(match change.before {
                Some(_) => root.read(Path::new(&change.path))?,
                None => None,
            });
        }
        let existing: Vec<&str> =
            self.files.iter().filter(|file| file.before.is_some()).map(|file| file.path.as_str()).collect();
        let changed = self.captured.changed_since(repository, &existing)?;
        if !changed.is_empty() {
            return Err(refused(changed.into_iter().map(|path| (path, RefusedWhy::NewerEdits))));
        }

        let mut items: Vec<(&ObjectId, &str)> = Vec::new();
        for change in &self.files {
            items.extend(change.before.iter().chain(&change.after).map(|(_, id)| (id, change.path.as_str())));
        }
        let mut stored = repository.blobs(false, &items)?.into_iter();
        let mut checked_out = repository.blobs(true, &items)?.into_iter();
        let mut next = || Some((stored.next()?, checked_out.next()?));
        let mut files = Vec::with_capacity(self.files.len());
        let mut mixed = Vec::new();
        for (change, on_disk) in self.files.iter().zip(before) {
            let mut endings = LineEndings::CheckedOut;
            if change.before.is_some()
                && let (Some((stored, checked_out)), Some(Entry::File { bytes, .. })) = (next(), &on_disk)
            {
                match LineEndings::of(bytes, &stored, &checked_out) {
                    Some(found) => endings = found,
                    None if change.after.is_some() => {
                        mixed.push((change.path.clone(), RefusedWhy::LineEndings))
                    }
                    None => {}
                }
            }
            let after = change.after.as_ref().and_then(|(mode, _)| {
                let (stored, checked_out) = next()?;
                if mode == MODE_LINK {
                    return Some(Entry::Link(OsString::from_vec(stored)));
                }
                // Where git does not track the executable bit, what is on disk stays.
                let executable = match (&on_disk, &change.before) {
                    (Some(Entry::File { executable, .. }), Some((old, _))) if old == mode => *executable,
                    _ => mode == MODE_EXECUTABLE,
                };
                Some(Entry::File { bytes: endings.write(stored, checked_out), executable })
            });
            files.push(FileChange { path: change.path.clone(), before: on_disk, after });
        }
        if mixed.is_empty() { Ok(files) } else { Err(refused(mixed)) }
    }
}
