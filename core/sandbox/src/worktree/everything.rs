//! Checkpoints of everything in a sandbox, whoever made it: tracked or not, ignored, removed, changed in mode only.
//!
//! Ignored files are no part of the plan's change and must never reach the user's repository by themselves. So they are
//! held beside it: in a commit of their own that is the checkpoint's second parent, where [`Worktree::restore`] finds
//! them. A checkpoint of named files takes its predecessor's along.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{AppliedEdit, Worktree};
use crate::diff::{ChangedPath, changed_paths};
use crate::error::{Result, SandboxError};
use crate::fault;
use crate::git::{CommitId, ObjectId, nul_fields, os_path};
use crate::paths::Entry;

const IGNORED_INDEX: &str = "cleveragents-ignored-index";

/// Folders whose contents are made again from what else is there.
const DERIVED: &[&str] = &["node_modules", "__pycache__", ".venv", "venv"];

/// Files that mark the folder they are in as one of those.
const DERIVED_MARKS: &[&str] = &["CACHEDIR.TAG", "pyvenv.cfg"];

/// The most ignored files, and bytes of them, that a checkpoint holds.
const IGNORED_FILES: usize = 2000;
const IGNORED_BYTES: u64 = 64 << 20;

/// A checkpoint of everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The checkpoint; the last one when nothing differs.
    pub commit: CommitId,
    /// Files that differed and are held now, ignored ones left out.
    pub paths: Vec<String>,
    /// What is not held: untouchable files, repositories within, too many or too large ignored files.
    pub left_out: Vec<String>,
}

impl Worktree {
    /// Commits the whole sandbox as it is, whoever wrote to it.
    pub fn checkpoint_all(&self, label: &str) -> Result<Held> {
        let dirty = self.dirty_paths()?;
        let head = self.head_state()?;
        let (paths, mut left_out): (Vec<String>, Vec<String>) =
            dirty.into_iter().partition(|path| self.is_storable(path));
        let names: Vec<&str> = paths.iter().map(String::as_str).collect();
        let unstorable: BTreeSet<String> =
            self.unstorable(&names)?.into_iter().map(|(path, _)| path).collect();
        let (paths, unstorable): (Vec<String>, Vec<String>) =
            paths.into_iter().partition(|path| !unstorable.contains(path));
        left_out.extend(unstorable);
        let ignored = self.hold_ignored(head.ignored.as_ref(), &mut left_out)?;
        let names: Vec<&str> = paths.iter().map(String::as_str).collect();
        let commit = self.commit(label, &names, &head, ignored)?;
        Ok(Held { commit, paths, left_out })
    }

    /// Whether a file must be left as it is.
    pub fn is_untouchable(&self, path: &str) -> bool {
        !self.is_storable(path) || self.unstorable(&[path]).map_or(true, |found| !found.is_empty())
    }

    /// A file or a link, or one that is gone; not a repository somebody made in here, nor what must be left alone.
    fn is_storable(&self, path: &str) -> bool {
        let plain = match fs::symlink_metadata(self.path().join(path)) {
            Ok(metadata) => metadata.is_file() || metadata.is_symlink(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        plain && self.refuse_untouchable(path).is_ok()
    }

    /// Commits the ignored files there are; the commit given when it holds the same.
    fn hold_ignored(&self, last: Option<&CommitId>, left_out: &mut Vec<String>) -> Result<Option<CommitId>> {
        let paths = self.ignored_files(left_out)?;
        if paths.is_empty() {
            return Ok(None);
        }
        let index = self.git.git_dir.join(IGNORED_INDEX);
        let remove = || match fs::remove_file(&index) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SandboxError::io("remove", &index)(error))
            }
            _ => Ok(()),
        };
        remove()?;
        let git = self.git.with_index(&index);
        git.converting(&["update-index", "-z", "--add", "--remove", "--stdin"])?.stdin_paths(&paths).run()?;
        let tree: ObjectId = git.converting(&["write-tree"])?.id()?;
        remove()?;
        if let Some(last) = last
            && self.repository.tree_of(last.as_str())? == tree
        {
            return Ok(Some(last.clone()));
        }
        self.git.call(["commit-tree", tree.as_str(), "-m", "Ignored files"]).by_us().id().map(Some)
    }

    /// Ignored files that something in here made, without dependency folders and caches.
    fn ignored_files(&self, left_out: &mut Vec<String>) -> Result<Vec<PathBuf>> {
        let listed = self.list(&["-o", "-i"])?;
        let mut derived: BTreeSet<PathBuf> = self.exposed().map(PathBuf::from).collect();
        let mut files = Vec::new();
        for path in nul_fields(&listed).map(os_path) {
            let marked =
                path.file_name().and_then(|n| n.to_str()).is_some_and(|n| DERIVED_MARKS.contains(&n));
            if let Some(folder) = path.parent().filter(|folder| marked && *folder != Path::new("")) {
                derived.insert(folder.to_owned());
            }
            files.push(path.to_owned());
        }
        let is_derived = |path: &Path| {
            let named = path.iter().any(|part| part.to_str().is_some_and(|part| DERIVED.contains(&part)));
            named || path.ancestors().any(|folder| derived.contains(folder))
        };
        files.retain(|path| !is_derived(path));
        let (mut count, mut bytes) = (0, 0);
        files.retain(|path| {
            let Ok(metadata) = fs::symlink_metadata(self.path().join(path)) else { return false };
            let size = metadata.len();
            let plain = metadata.is_file() || metadata.is_symlink();
            if !plain || count >= IGNORED_FILES || bytes + size > IGNORED_BYTES {
                left_out.push(path.to_string_lossy().into_owned());
                return false;
            }
            (count, bytes) = (count + 1, bytes + size);
            true
        });
        Ok(files)
    }

    /// The commit that holds the ignored files of a checkpoint.
    pub(super) fn ignored_of(&self, checkpoint: &CommitId) -> Result<Option<CommitId>> {
        if *checkpoint == self.state.base {
            return Ok(None);
        }
        let parents = self.git.line([
            "rev-list",
            "-1",
            "--no-commit-header",
            "--format=%P",
            checkpoint.as_str(),
            "--",
        ])?;
        parents.split(' ').nth(1).map(|id| crate::git::parse_id("git rev-list", id)).transpose()
    }

    /// Takes away ignored files that one commit holds and the other does not, and brings back what that one holds.
    pub(super) fn restore_ignored(&self, from: Option<&CommitId>, to: Option<&CommitId>) -> Result<()> {
        if from == to {
            return Ok(());
        }
        let paths = |commit: Option<&CommitId>| -> Result<BTreeSet<String>> {
            let Some(commit) = commit else { return Ok(BTreeSet::new()) };
            let listed = self.git.run(["ls-tree", "-r", "-z", "--name-only", commit.as_str()])?;
            Ok(nul_fields(&listed).map(|path| os_path(path).to_string_lossy().into_owned()).collect())
        };
        let (had, has) = (paths(from)?, paths(to)?);
        for path in had.difference(&has) {
            let path = Path::new(path);
            if matches!(self.root.read(path), Ok(Some(Entry::File { .. } | Entry::Link(_)))) {
                self.root.remove(path)?;
            }
        }
        let has: Vec<&str> = has.iter().map(String::as_str).collect();
        to.map_or(Ok(()), |to| self.write_from(to, &has))
    }

    /// Gives a checkpoint that is about to be left behind a reference of its own.
    pub(super) fn keep_reachable(&self, commit: &CommitId, going_to: &CommitId) -> Result<()> {
        if commit == going_to || self.is_ancestor(commit, going_to)? {
            return Ok(());
        }
        let name = format!("{}kept/{commit}", self.state.ref_prefix);
        self.git.run(["update-ref", name.as_str(), commit.as_str()]).map(drop)
    }

    fn is_ancestor(&self, commit: &CommitId, of: &CommitId) -> Result<bool> {
        let call = self.git.call(["merge-base", "--is-ancestor", commit.as_str(), of.as_str()]);
        Ok(call.output()?.code == 0)
    }

    /// Copies files as they are in a commit to a directory outside, with their folders, and makes them durable. Returns
    /// where each went; files the commit does not have are left out.
    pub fn archive<P: AsRef<str>>(&self, commit: &CommitId, paths: &[P], to: &Path) -> Result<Vec<PathBuf>> {
        let paths: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
        let mut archived = Vec::new();
        for entry in self.repository.tree_entries(commit.as_str(), &paths)? {
            let Some(content) = self.content_of(&entry)? else { continue };
            let target = to.join(&entry.path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(SandboxError::io("create", parent))?;
            }
            // A link is kept as the text it is: what it leads to is not the plan's.
            crate::disk::write_durably(&target, content.bytes())?;
            archived.push(target);
        }
        Ok(archived)
    }
}

/// The label by which a commit of a person's edits is told from one of the plan's.
const EDITS: &str = "Edits found in the sandbox";

/// What somebody edited in a sandbox, committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenEdits {
    /// The checkpoint it was edited from.
    pub from: CommitId,
    /// The checkpoint that holds the edits.
    pub commit: CommitId,
    /// File by file; a moved file is a rename.
    pub edits: Vec<AppliedEdit>,
    /// What was edited and must be left alone.
    pub left_out: Vec<String>,
}

impl Worktree {
    /// Files that somebody edited since the last checkpoint. New files below hidden folders are taken for caches of
    /// programs and left out, such as a language server's index.
    pub fn edited_paths(&self) -> Result<Vec<String>> {
        self.edited(&[])
    }

    /// Of these files, those that somebody edited since the last checkpoint; the others are not looked at.
    pub fn edited_among<P: AsRef<str>>(&self, paths: &[P]) -> Result<Vec<String>> {
        let mut edited = Vec::new();
        for some in paths.chunks(500) {
            let some: Vec<&str> = some.iter().map(AsRef::as_ref).collect();
            match self.edited(&[&["--"][..], &some].concat()) {
                Ok(found) => edited.extend(found),
                // Git refuses paths that no tool may write either; whoever writes says so better.
                Err(_) => {
                    let all = self.edited_paths()?;
                    return Ok(all.into_iter().filter(|p| paths.iter().any(|q| q.as_ref() == p)).collect());
                }
            }
        }
        Ok(edited)
    }

    fn edited(&self, within: &[&str]) -> Result<Vec<String>> {
        let mut paths = BTreeSet::new();
        for field in nul_fields(&self.list(&[&["-t", "-m", "-d", "-o"][..], within].concat())?) {
            let (Some(tag), Some(path)) = (field.first(), field.get(2..)) else { continue };
            let Some(path) = os_path(path).to_str() else { continue };
            let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
            let cache = folders.split('/').any(|folder| folder.starts_with('.') || DERIVED.contains(&folder));
            if *tag != b'?' || !cache {
                paths.insert(path.trim_end_matches('/').to_owned());
            }
        }
        Ok(paths.into_iter().collect())
    }

    /// Commits what somebody edited; `None` when nobody did.
    pub fn take_edits(&self) -> Result<Option<TakenEdits>> {
        self.take(EDITS, self.edited_paths()?)
    }

    /// Commits whatever differs, as a program left it; folders of installed dependencies and of compiled code are left
    /// out. `None` when nothing differs.
    pub fn take_work(&self, label: &str) -> Result<Option<TakenEdits>> {
        let derived = |path: &str| path.split('/').any(|folder| DERIVED.contains(&folder));
        let paths = self.dirty_paths()?.into_iter().filter(|path| !derived(path)).collect();
        self.take(label, paths)
    }

    fn take(&self, label: &str, paths: Vec<String>) -> Result<Option<TakenEdits>> {
        let (paths, left_out): (Vec<String>, Vec<String>) =
            paths.into_iter().partition(|path| self.is_storable(path));
        let names: Vec<&str> = paths.iter().map(String::as_str).collect();
        let unstorable: BTreeSet<String> =
            self.unstorable(&names)?.into_iter().map(|(path, _)| path).collect();
        let names: Vec<&str> = names.into_iter().filter(|path| !unstorable.contains(*path)).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let from = self.head()?;
        let commit = self.checkpoint(label, &names)?;
        let changes = changed_paths(&self.repository, &from, &commit)?;
        let old = |change: &ChangedPath| change.old_path.as_ref().unwrap_or(&change.path).clone();
        let before = self.repository.files_at(&from, &changes.iter().map(old).collect::<Vec<_>>())?;
        let new: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        let mut after = self.repository.files_at(&commit, &new)?;
        let mut edits = Vec::with_capacity(changes.len());
        for change in changes {
            edits.push(AppliedEdit {
                before: before.get(&old(&change)).map(|file| file.bytes.clone()),
                after: after.remove(&change.path).map(|file| file.bytes),
                path: change.path,
                old_path: change.old_path,
                kind: change.kind,
            });
        }
        let left_out = left_out.into_iter().chain(unstorable).collect();
        Ok((!edits.is_empty()).then_some(TakenEdits { from, commit, edits, left_out }))
    }

    /// Brings the sandbox to a commit, but leaves the named files, as somebody edited them, in place as edits. Safe to
    /// repeat after a death in between: what was taken aside is kept by a reference until it is back.
    pub fn restore_around(&self, commit: &CommitId, edited: &[String]) -> Result<()> {
        let name = format!("{}kept/around", self.state.ref_prefix);
        let listed = self.git.line(["for-each-ref", "--format=%(objectname)", name.as_str()])?;
        let mut edited = edited.to_vec();
        if let Ok(held) = listed.parse::<CommitId>() {
            // A process died before it had put everything back; what was edited since is newer.
            let parent: CommitId = self.git.call(["rev-parse", &format!("{held}^1")]).id()?;
            let changed = changed_paths(&self.repository, &parent, &held)?;
            let missing: Vec<String> = changed
                .into_iter()
                .flat_map(|c| c.old_path.into_iter().chain([c.path]))
                .filter(|path| !edited.contains(path))
                .collect();
            self.restore_paths(&held, &missing)?;
            edited.extend(missing);
        }
        let edited = &edited[..];
        let head = self.head()?;
        let (holds, paths) = if edited.is_empty() {
            let subject = self.git.line([
                "rev-list",
                "-1",
                "--no-commit-header",
                "--format=%s",
                head.as_str(),
                "--",
            ])?;
            if head == *commit || subject != EDITS {
                return self.restore(commit);
            }
            // A process died over edits that it had committed and not recorded.
            let changed = changed_paths(&self.repository, commit, &head)?;
            (head, changed.into_iter().flat_map(|c| c.old_path.into_iter().chain([c.path])).collect())
        } else {
            (self.checkpoint(EDITS, edited)?, edited.to_vec())
        };
        self.git.run(["update-ref", name.as_str(), holds.as_str()])?;
        fault::point("around.held");
        self.restore(commit)?;
        fault::point("around.restored");
        self.restore_paths(&holds, &paths)?;
        self.git.run(["update-ref", "-d", name.as_str()]).map(drop)
    }
}
