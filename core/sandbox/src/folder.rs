//! Plain folders: a repository of our own, kept apart from the folder, makes one what a checkout is.
//!
//! The *store* is a git directory somewhere else whose working tree is the folder; nothing is ever put into the folder
//! for it. Its one branch holds what the folder held whenever we looked ([`take_in`]), so that a plan's base, merge and
//! conflicts mean the same as in a checkout: what a person edited since the plan began counts as committed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::write_durably;
use crate::error::{Result, SandboxError};
use crate::git::{self, CommitId, Git, ObjectId};
use crate::repository::Repository;
use crate::snapshot::capture;

const MARKER: &str = "cleveragents-folder.json";
const VERSION: u32 = 1;
const BRANCH: &str = "refs/heads/folder";

/// Bytes are bytes: attributes that come with the folder convert nothing. These win over all others.
const ATTRIBUTES: &str = "* -text -filter -ident !working-tree-encoding !eol\n";

#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    version: u32,
    folder: PathBuf,
}

impl Repository {
    /// Opens a plain folder as a checkout of the repository at `store`, which is made when it is not there.
    ///
    /// What matches `left_out` (patterns as in `.gitignore`, such as `node_modules`) and what the folder's own
    /// `.gitignore` names is not part of it. Refused: a store inside the folder, and one that is another folder's.
    pub fn open_folder(folder: &Path, store: &Path, left_out: &[&str]) -> Result<Self> {
        git::version()?;
        let root = folder.canonicalize().map_err(SandboxError::io("open", folder))?;
        if !root.is_dir() {
            let source = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(SandboxError::io("open", folder)(source));
        }
        if !store.join(MARKER).is_file() {
            make(&root, store, left_out)?;
        }
        let opened = Self::reopen(store)?;
        if opened.path() == root {
            return Ok(opened);
        }
        let detail = format!("it is of {}, not of {}", opened.path().display(), root.display());
        Err(SandboxError::Damaged { path: store.join(MARKER), detail })
    }

    /// Opens what [`Repository::place`] named.
    pub fn reopen(place: &Path) -> Result<Self> {
        let path = place.join(MARKER);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::open(place),
            Err(error) => return Err(SandboxError::io("read", path)(error)),
        };
        git::version()?;
        let damaged = |detail: String| SandboxError::Damaged { path: path.clone(), detail };
        let marker: Marker = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if marker.version != VERSION {
            return Err(damaged(format!("version {} is not known, expected {VERSION}", marker.version)));
        }
        let root = marker.folder.canonicalize().map_err(SandboxError::io("open", &marker.folder))?;
        let store = place.canonicalize().map_err(SandboxError::io("open", place))?;
        let git = Git { git_dir: store.clone(), work_tree: root, index: None, config: Vec::new() };
        Self::assemble(git, store, true)
    }

    /// Where the repository is opened from again ([`Repository::reopen`]): a folder's store, else the checkout.
    pub fn place(&self) -> &Path {
        if self.is_folder() { self.common_dir() } else { self.path() }
    }
}

/// Makes the store under another name first: half a store is never seen.
fn make(root: &Path, store: &Path, left_out: &[&str]) -> Result<()> {
    let parent = store.parent().unwrap_or(store);
    let existing = parent.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    if existing.is_some_and(|at| at.starts_with(root)) {
        return Err(SandboxError::InsideRepository { dir: store.to_owned(), repository: root.to_owned() });
    }
    fs::create_dir_all(parent).map_err(SandboxError::io("create", parent))?;
    let new = tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(parent)
        .map_err(SandboxError::io("create a directory in", parent))?;
    let git =
        Git { git_dir: new.path().to_owned(), work_tree: root.to_owned(), index: None, config: Vec::new() };
    git.run(["init", "--quiet", "--initial-branch=folder", "--template="])?;
    for (key, value) in [("core.autocrlf", "false"), ("gc.auto", "0"), ("core.logAllRefUpdates", "false")] {
        git.run(["config", key, value])?;
    }
    let info = new.path().join("info");
    fs::create_dir_all(&info).map_err(SandboxError::io("create", &info))?;
    let excluded: String = left_out.iter().map(|pattern| format!("{pattern}\n")).collect();
    for (name, text) in [("exclude", excluded.as_str()), ("attributes", ATTRIBUTES)] {
        fs::write(info.join(name), text).map_err(SandboxError::io("write", info.join(name)))?;
    }
    let nothing: ObjectId = git.call(["mktree"]).id()?;
    let first: CommitId =
        git.call(["commit-tree", nothing.as_str(), "-m", "An empty folder"]).by_us().id()?;
    git.run(["update-ref", BRANCH, first.as_str()])?;
    let marker = Marker { version: VERSION, folder: root.to_owned() };
    let json = serde_json::to_vec_pretty(&marker)
        .map_err(|error| SandboxError::Damaged { path: store.join(MARKER), detail: error.to_string() })?;
    write_durably(&new.path().join(MARKER), &json)?;
    match fs::rename(new.path(), store) {
        Ok(()) => {
            let _ = new.keep();
            Ok(())
        }
        // Another process was faster.
        Err(_) if store.join(MARKER).is_file() => Ok(()),
        Err(error) => Err(SandboxError::io("create", store)(error)),
    }
}

/// Records what a folder holds now as the state of its branch; nothing to do for a checkout.
pub(crate) fn take_in(repository: &Repository) -> Result<()> {
    if !repository.is_folder() {
        return Ok(());
    }
    let store = repository.common_dir();
    let _alone = File::open(store)
        .and_then(|dir| dir.lock().map(|()| dir))
        .map_err(SandboxError::io("lock", store))?;
    let head = repository.head()?;
    let taken = capture(repository)?;
    if taken.tree != repository.tree_of(head.commit.as_str())? {
        let commit: CommitId = repository
            .git
            .call([
                "commit-tree",
                taken.tree.as_str(),
                "-p",
                head.commit.as_str(),
                "-m",
                "The folder as it is",
            ])
            .by_us()
            .id()?;
        repository.git.run(["update-ref", BRANCH, commit.as_str(), head.commit.as_str()])?;
    }
    if taken.index_tree != taken.tree {
        let (index, new) = (repository.index_path(), store.join("index.new"));
        fs::copy(taken.index(), &new).map_err(SandboxError::io("copy", taken.index()))?;
        fs::rename(&new, &index).map_err(SandboxError::io("write", &index))?;
    }
    Ok(())
}
