//! Checkpoints of a sandbox and the ways back to them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::files::Step;
use super::{Recovery, Worktree, remove_tree};
use crate::diff::raw_changes;
use crate::error::{Result, SandboxError};
use crate::fault;
use crate::git::{CommitId, ObjectId, nul_fields, os_path};
use crate::message::one_line;
use crate::paths::{Entry, PathRefusal};
use crate::repository::{MODE_EXECUTABLE, MODE_FILE, MODE_LINK, TreeEntry};
use crate::snapshot::{filters, tracked};

/// The most characters of a checkpoint's label.
const LABEL: usize = 200;

/// The last checkpoint.
pub(super) struct HeadState {
    pub(super) commit: CommitId,
    pub(super) tree: ObjectId,
    /// The commit that holds the ignored files there were: the checkpoint's second parent.
    pub(super) ignored: Option<CommitId>,
}

impl Worktree {
    /// Commits the named files as they are now (gone ones as removed) and returns the commit; the last one when
    /// nothing differs. Other files, edited by a person say, are left out. The label is cut to one line of 200 characters.
    pub fn checkpoint<P: AsRef<str>>(&self, label: &str, changed: &[P]) -> Result<CommitId> {
        let paths: Vec<&str> = changed.iter().map(AsRef::as_ref).collect();
        for path in &paths {
            self.refuse_untouchable(path)?;
        }
        self.refuse_unstorable(&paths)?;
        let head = self.head_state()?;
        let ignored = head.ignored.clone();
        self.commit(label, &paths, &head, ignored)
    }

    /// Commits files, and which ignored ones there are, on top of the last checkpoint.
    pub(super) fn commit(
        &self,
        label: &str,
        paths: &[&str],
        HeadState { commit: head, tree: head_tree, ignored: had_ignored }: &HeadState,
        ignored: Option<CommitId>,
    ) -> Result<CommitId> {
        fault::point("checkpoint.before-index");
        self.record_files(paths)?;
        fault::point("checkpoint.after-index");
        let tree: ObjectId = self.git.converting(&["write-tree"])?.id()?;
        fault::point("checkpoint.after-tree");
        if tree == *head_tree && ignored == *had_ignored {
            return Ok(head.clone());
        }
        let mut args = vec!["commit-tree", tree.as_str(), "-p", head.as_str()];
        if let Some(ignored) = &ignored {
            args.extend(["-p", ignored.as_str()]);
        }
        let commit: CommitId = self
            .git
            .call(args.iter().chain(&["-F", "-"]))
            .by_us()
            .stdin(format!("{}\n", one_line(label, LABEL)))
            .id()?;
        fault::point("checkpoint.before-ref");
        self.move_head(label, &commit, head)?;
        fault::point("checkpoint.after-ref");
        Ok(commit)
    }

    /// Makes the whole sandbox what it was at a commit: files restored, later ones removed, edits by anyone dropped.
    ///
    /// Ignored files are brought back as far as checkpoints hold them; dependency folders and untouchable files stay.
    /// Look at [`Worktree::dirty_paths`] first when a person's edits must not be lost. A checkpoint that is left behind
    /// stays reachable until [`cleanup`](super::cleanup), so that one can go forward to it again.
    pub fn restore(&self, commit: &CommitId) -> Result<()> {
        self.bring_to(commit).map_err(|error| self.repository.explain(error, &[commit]))
    }

    fn bring_to(&self, commit: &CommitId) -> Result<()> {
        let HeadState { commit: head, ignored, .. } = self.head_state()?;
        let mut rewritten: BTreeSet<String> = BTreeSet::new();
        if !self.state.own_endings.is_empty() {
            rewritten.extend(self.dirty_paths()?);
            let changes = raw_changes(&self.repository, head.as_str(), commit.as_str(), false)?;
            rewritten.extend(changes.into_iter().map(|change| change.path));
        }
        fault::point("restore.before-index");
        self.git.converting(&["read-tree", "--reset", "-u", commit.as_str()])?.run()?;
        fault::point("restore.after-index");
        self.remove_untracked()?;
        let own = self.state.own_endings.iter().map(|file| file.path.as_str());
        let own: Vec<&str> = own.filter(|path| rewritten.contains(*path)).collect();
        self.write_from(commit, &own)?;
        self.record_files(&own)?;
        self.restore_ignored(ignored.as_ref(), self.ignored_of(commit)?.as_ref())?;
        fault::point("restore.after-files");
        self.keep_reachable(&head, commit)?;
        self.move_head("restore", commit, &head)?;
        fault::point("restore.after-ref");
        Ok(())
    }

    /// Makes the named files what they were at a commit, all of them or none; those it does not have are removed. The
    /// sandbox differs from its last checkpoint afterwards: checkpoint the paths to keep the result.
    pub fn restore_paths<P: AsRef<str>>(&self, commit: &CommitId, paths: &[P]) -> Result<()> {
        let paths: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
        for path in &paths {
            if self.root.canonical(path, false)? != *path {
                return Err(SandboxError::refused(*path, PathRefusal::NotADirectory));
            }
            self.refuse_untouchable(path)?;
        }
        self.write_from(commit, &paths).map_err(|error| self.repository.explain(error, &[commit]))
    }

    /// Files that differ from the last checkpoint, new ones included: a person's edits, and writes of the plan that
    /// were not checkpointed yet.
    pub fn dirty_paths(&self) -> Result<Vec<String>> {
        let mut paths = BTreeSet::new();
        for field in nul_fields(&self.list(&["-t", "-m", "-d", "-o"])?) {
            if let Some(path) = field.get(2..) {
                paths.insert(os_path(path).to_string_lossy().trim_end_matches('/').to_owned());
            }
        }
        Ok(paths.into_iter().collect())
    }

    /// Whether the sandbox is exactly what it was at a commit.
    pub fn is_clean_since(&self, commit: &CommitId) -> Result<bool> {
        let HeadState { commit: head, tree: head_tree, .. } = self.head_state()?;
        let same = head == *commit || self.repository.tree_of(commit.as_str())? == head_tree;
        Ok(same && self.dirty_paths()?.is_empty())
    }

    /// Puts the sandbox's bookkeeping in order after a worker died; only the worker that now holds the plan may call it.
    ///
    /// No file is changed: what differs from the last checkpoint is listed, and [`Worktree::restore`] drops it.
    pub fn recover(&self) -> Result<Recovery> {
        let mut lock = self.index_file().into_os_string();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        if lock.exists() {
            fs::remove_file(&lock).map_err(SandboxError::io("remove", &lock))?;
        }
        self.root.clear_staging();
        let link = self.path().join(".git");
        if !link.is_file() {
            remove_tree(&link)?;
            let text = format!("gitdir: {}\n", self.git.git_dir.display());
            fs::write(&link, text).map_err(SandboxError::io("write", &link))?;
        }
        let HeadState { commit: head, tree: head_tree, .. } = self.head_state()?;
        let index_tree = self.git.converting(&["write-tree"])?.id::<ObjectId>().ok();
        let rewound = index_tree != Some(head_tree);
        if rewound {
            self.git.converting(&["read-tree", "--reset", head.as_str()])?.run()?;
        }
        Ok(Recovery { rewound, dirty: self.dirty_paths()? })
    }

    /// `ls-files` with what is ignored, here as well as by the repository, left out.
    pub(super) fn list(&self, options: &[&str]) -> Result<Vec<u8>> {
        self.git
            .converting(&["ls-files", "-z", "--exclude-standard"])?
            .arg("--exclude-from")
            .arg(self.exclude_file())
            .args(options)
            .run()
    }

    /// Takes files into the private index as they are.
    pub(super) fn record_files<P: AsRef<OsStr>>(&self, paths: &[P]) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let args = [
            "update-index",
            "-z",
            "--add",
            "--remove",
            "--replace",
            "--ignore-skip-worktree-entries",
            "--stdin",
        ];
        self.git.converting(&args)?.stdin_paths(paths).run().map(drop)
    }

    pub(super) fn head_state(&self) -> Result<HeadState> {
        let head_ref = self.head_ref();
        let args = ["rev-list", "-1", "--no-commit-header", "--format=%H%n%T%n%P", head_ref.as_str(), "--"];
        let text = self.git.line(args)?;
        let mut lines = text.lines();
        let mut line = || lines.next().unwrap_or_default();
        let commit: CommitId = crate::git::parse_id("git rev-list", line())?;
        let tree = crate::git::parse_id("git rev-list", line())?;
        let second = line().split(' ').nth(1).filter(|_| commit != self.state.base);
        let ignored = second.map(|id| crate::git::parse_id("git rev-list", id)).transpose()?;
        Ok(HeadState { commit, tree, ignored })
    }

    fn move_head(&self, why: &str, to: &CommitId, from: &CommitId) -> Result<()> {
        // An argument, whose length the system limits.
        let why = one_line(why, LABEL);
        let why = if why.is_empty() { "checkpoint" } else { why.as_str() };
        let name = self.head_ref();
        self.git
            .run(["update-ref", "--create-reflog", "-m", why, name.as_str(), to.as_str(), from.as_str()])
            .map(drop)
    }

    fn refuse_unstorable(&self, paths: &[&str]) -> Result<()> {
        match self.unstorable(paths)?.into_iter().next() {
            Some((path, reason)) => Err(SandboxError::refused(path, reason)),
            None => Ok(()),
        }
    }

    /// Paths git would store as something else than the user means, or not at all.
    pub(super) fn unstorable(&self, paths: &[&str]) -> Result<Vec<(String, PathRefusal)>> {
        let mut found = Vec::new();
        // Of the checkout, where the files are to go: the worktree may be configured otherwise.
        let settings = self.repository.with_settings_now()?.settings;
        if !settings.filters.is_empty() && !paths.is_empty() {
            for (path, filter) in filters(&self.git, &settings.filters, paths.iter().map(Path::new))? {
                let why = format!("git filter `{filter}` changes it between the repository and the disk");
                found.push((path.to_string_lossy().into_owned(), PathRefusal::Untouchable { why }));
            }
        }
        if settings.sparse && !paths.is_empty() {
            let hidden: HashSet<PathBuf> = tracked(&self.git)?
                .into_iter()
                .filter(|entry| entry.hidden)
                .map(|entry| entry.path)
                .collect();
            let outside = paths.iter().filter(|path| hidden.contains(Path::new(path)));
            found.extend(outside.map(|path| ((*path).to_owned(), PathRefusal::OutsideSparseCheckout)));
        }
        Ok(found)
    }

    /// Writes files as they are in a commit, all or none; those it does not have are removed.
    pub(super) fn write_from(&self, commit: &CommitId, paths: &[&str]) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut after = BTreeMap::new();
        for entry in self.repository.tree_entries(commit.as_str(), paths)? {
            after.extend(self.content_of(&entry)?.map(|content| (entry.path, content)));
        }
        let mut steps = BTreeMap::new();
        for path in paths {
            let before = self.root.read(Path::new(path))?;
            steps.insert((*path).to_owned(), Step { before, after: after.remove(*path), from: None });
        }
        self.write_all(&steps)
    }

    /// What a tree's entry is on disk, in the user's line endings; `None` for a submodule or a directory.
    pub(super) fn content_of(&self, entry: &TreeEntry) -> Result<Option<Entry>> {
        let path = entry.path.as_str();
        let blob = |checkout| -> Result<Vec<u8>> {
            Ok(self.repository.blobs(checkout, &[(&entry.id, path)])?.pop().unwrap_or_default())
        };
        Ok(match entry.mode.as_str() {
            MODE_LINK => Some(Entry::Link(OsStr::from_bytes(&blob(false)?).to_owned())),
            MODE_FILE | MODE_EXECUTABLE => {
                let own = self.state.own_endings.iter().find(|file| file.path == path);
                let bytes = match own {
                    Some(file) => file.endings.write(blob(false)?, blob(true)?),
                    None => blob(true)?,
                };
                Some(Entry::File { bytes, executable: entry.mode == MODE_EXECUTABLE })
            }
            _ => None,
        })
    }

    fn remove_untracked(&self) -> Result<()> {
        for field in nul_fields(&self.list(&["-o"])?) {
            let path = os_path(field);
            if field.ends_with(b"/") {
                // A repository someone made in here: git names the directory, not its files.
                remove_tree(&self.path().join(path))?;
            } else {
                self.root.remove(path)?;
            }
        }
        Ok(())
    }
}
