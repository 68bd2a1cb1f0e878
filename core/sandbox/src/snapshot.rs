//! Takes the user's files as they are into a commit of our own, through an index of our own.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use agents_domain::ids::PlanId;
use serde::{Deserialize, Serialize};

use crate::disk::copy_with_times;
use crate::error::{Result, SandboxError};
use crate::folder::take_in;
use crate::git::{CommitId, Git, ObjectId, nul_fields, os_path, parse_id};
use crate::repository::{MODE_SUBMODULE, Repository};

/// Untracked files above this many bytes stay out of a snapshot.
pub const LARGE_FILE: u64 = 10 * 1024 * 1024;

/// A plan's base: what the user had when the plan began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The plan.
    pub plan: PlanId,
    /// The snapshot: HEAD plus uncommitted changes and untracked files; its parent is `head`.
    pub commit: CommitId,
    /// HEAD at the time.
    pub head: CommitId,
    /// The branch checked out at the time; `None` when HEAD was detached.
    pub branch: Option<String>,
    /// Files that are left alone, and why.
    pub untouchable: Vec<Untouchable>,
    /// Paths of submodules, which are left alone.
    pub submodules: Vec<String>,
}

/// A file that no tool may change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Untouchable {
    /// The file, relative, with `/`; replacement characters stand for bytes that are not UTF-8.
    pub path: String,
    /// Why.
    #[serde(flatten)]
    pub reason: UntouchableReason,
}

/// Why a file is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum UntouchableReason {
    /// Its name cannot be written as text.
    #[error("its name is not UTF-8")]
    NameNotUtf8,
    /// An untracked file that is too large to copy.
    #[error("untracked and very large ({bytes} bytes)")]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// A configured content filter (Git LFS, git-crypt ...) stores something else than what is on disk.
    #[error("git filter `{filter}` changes it between the repository and the disk")]
    Filter {
        /// The filter's name.
        filter: String,
    },
    /// An untracked directory that is a repository.
    #[error("a git repository of its own")]
    NestedRepository,
    /// Marked so that git does not look at it.
    #[error("hidden from git (skip-worktree or assume-unchanged)")]
    Hidden,
    /// Its line endings would not survive a checkout.
    #[error("its mixed line endings would not survive a checkout")]
    LineEndings,
    /// Permission denied and the like.
    #[error("it cannot be read")]
    Unreadable,
}

impl Snapshot {
    /// Whether the files were those of HEAD.
    pub fn is_clean(&self, repository: &Repository) -> Result<bool> {
        Ok(repository.tree_of(self.commit.as_str())? == repository.tree_of(self.head.as_str())?)
    }
}

/// Takes a snapshot for a plan and keeps it under `refs/cleveragents/plan-<ULID>/base`.
///
/// The user's index, stash, branches and files are not touched, and no hook or filter runs. A second snapshot of a
/// plan replaces the first. Refused while the index holds unresolved conflicts.
pub fn snapshot(repository: &Repository, plan: PlanId) -> Result<Snapshot> {
    let repository = &repository.with_settings_now()?;
    take_in(repository)?;
    let head = repository.head()?;
    let taken = capture(repository)?;
    let left_alone =
        LeftAlone { untouchable: taken.untouchable.into_iter().collect(), submodules: taken.submodules };
    let message = format!("Base of plan {plan}\n\n{}\n", left_alone.to_line()?);
    let commit: CommitId = repository
        .git
        .call(["commit-tree", taken.tree.as_str(), "-p", head.commit.as_str(), "-F", "-"])
        .by_us()
        .stdin(message)
        .id()?;
    let name = repository.plan_ref(plan, "base");
    repository.git.run(["update-ref", "-m", "snapshot", name.as_str(), commit.as_str()])?;
    Ok(Snapshot {
        plan,
        commit,
        head: head.commit,
        branch: head.branch,
        untouchable: left_alone.untouchable,
        submodules: left_alone.submodules,
    })
}

/// The snapshot of a child plan: the files of its parent's sandbox at a commit, on top of the same HEAD. What the parent's
/// base left alone is left alone here too.
pub fn snapshot_of(
    repository: &Repository,
    plan: PlanId,
    parent: PlanId,
    parent_base: &CommitId,
    at: &CommitId,
) -> Result<Snapshot> {
    let like = recall(repository, parent, parent_base)?;
    let tree = repository.tree_of(at.as_str()).map_err(|error| repository.explain(error, &[at]))?;
    let left_alone = LeftAlone { untouchable: like.untouchable, submodules: like.submodules };
    let commit: CommitId = repository
        .git
        .call(["commit-tree", tree.as_str(), "-p", like.head.as_str(), "-F", "-"])
        .by_us()
        .stdin(format!("Base of plan {plan}\n\n{}\n", left_alone.to_line()?))
        .id()?;
    let name = repository.plan_ref(plan, "base");
    repository.git.run(["update-ref", "-m", "snapshot", name.as_str(), commit.as_str()])?;
    let LeftAlone { untouchable, submodules } = left_alone;
    Ok(Snapshot { plan, commit, head: like.head, branch: None, untouchable, submodules })
}

/// What a snapshot leaves alone, kept in its commit's message so that it lives as long as the commit.
#[derive(Debug, Default, Serialize, Deserialize)]
struct LeftAlone {
    untouchable: Vec<Untouchable>,
    submodules: Vec<String>,
}

impl LeftAlone {
    fn to_line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| SandboxError::Unexpected {
            command: "git commit-tree".to_owned(),
            detail: error.to_string(),
        })
    }
}

/// The snapshot of a plan out of the commit alone; its branch is not known any more.
pub(crate) fn recall(repository: &Repository, plan: PlanId, commit: &CommitId) -> Result<Snapshot> {
    let gone =
        || SandboxError::SnapshotGone { commit: commit.clone(), repository: repository.path().to_owned() };
    if !repository.has_commit(commit) {
        return Err(gone());
    }
    let text = repository.git.run(["cat-file", "commit", commit.as_str()])?;
    let text = String::from_utf8_lossy(&text);
    let (header, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    let parent = header.lines().find_map(|line| line.strip_prefix("parent ")).ok_or_else(gone)?;
    let left_alone = match message.lines().find(|line| line.starts_with('{')) {
        Some(line) => serde_json::from_str(line).map_err(|error| SandboxError::Unexpected {
            command: format!("git cat-file commit {commit}"),
            detail: error.to_string(),
        })?,
        None => LeftAlone::default(),
    };
    Ok(Snapshot {
        plan,
        commit: commit.clone(),
        head: parse_id("git cat-file", parent)?,
        branch: None,
        untouchable: left_alone.untouchable,
        submodules: left_alone.submodules,
    })
}

/// The user's files as trees, and the index they were read through.
pub(crate) struct Capture {
    /// What is on disk.
    pub(crate) tree: ObjectId,
    /// What the user's index holds.
    pub(crate) index_tree: ObjectId,
    pub(crate) untouchable: BTreeSet<Untouchable>,
    pub(crate) submodules: Vec<String>,
    /// Paths git does not look at: sparse, `skip-worktree` or `assume-unchanged`.
    pub(crate) hidden: HashSet<String>,
    index: PathBuf,
    /// Removed with the index in it.
    _directory: tempfile::TempDir,
}

impl Capture {
    /// The index the files were read through, which knows their times.
    pub(crate) fn index(&self) -> &Path {
        &self.index
    }

    /// The paths, of those given, that are on disk no longer as they were captured.
    pub(crate) fn changed_since(&self, repository: &Repository, paths: &[&str]) -> Result<Vec<String>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let git = repository.git.with_index(&self.index);
        // Unlike `diff-files`, this compares contents where only a file's time is new.
        let output = git.run_on_paths(&["ls-files", "-z", "-m", "-d", "--deduplicate"], paths)?;
        Ok(nul_fields(&output).map(|path| os_path(path).to_string_lossy().into_owned()).collect())
    }
}

/// Reads the user's files into a tree without writing anything but objects.
pub(crate) fn capture(repository: &Repository) -> Result<Capture> {
    let directory =
        tempfile::tempdir().map_err(SandboxError::io("create a directory in", std::env::temp_dir()))?;
    let index = directory.path().join("index");
    // A copy of the user's index brings its cached file times, so that only changed files are read. Its own time says
    // which of them are not to be trusted.
    match copy_with_times(&repository.index_path(), &index) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(SandboxError::io("copy", repository.index_path())(error)),
    }
    let git = repository.git.with_index(&index);
    let changes = status(&git)?;
    let tracked = tracked(&git)?;
    let mut found = Found { untouchable: BTreeSet::new(), add: Vec::new() };

    let mut filtered = HashMap::new();
    if !repository.settings.filters.is_empty() {
        let paths = tracked.iter().map(|t| t.path.as_path()).chain(changes.iter().map(|c| c.path.as_path()));
        filtered = filters(&git, &repository.settings.filters, paths)?;
    }
    let mut submodules = Vec::new();
    for entry in &tracked {
        let shown = entry.path.to_string_lossy().into_owned();
        if entry.path.to_str().is_none() {
            found.leave(shown, UntouchableReason::NameNotUtf8);
        } else if entry.submodule {
            submodules.push(shown);
        } else if let Some(filter) = filtered.get(entry.path.as_path()) {
            found.leave(shown, UntouchableReason::Filter { filter: filter.clone() });
        } else if entry.hidden && fs::symlink_metadata(repository.path().join(&entry.path)).is_ok() {
            found.leave(shown, UntouchableReason::Hidden);
        }
    }
    let gitlinks: HashSet<&Path> = tracked.iter().filter(|t| t.submodule).map(|t| t.path.as_path()).collect();
    for change in &changes {
        if !gitlinks.contains(change.path.as_path()) {
            consider(repository.path(), change, filtered.get(change.path.as_path()), &mut found);
        }
    }
    let index_tree: ObjectId = git.call(["write-tree"]).id()?;
    let mut tree = index_tree.clone();
    if !found.add.is_empty() {
        git.call([
            "update-index",
            "-z",
            "--add",
            "--remove",
            "--replace",
            "--ignore-skip-worktree-entries",
            "--stdin",
        ])
        .stdin_paths(&found.add)
        .run()?;
        tree = git.call(["write-tree"]).id()?;
    }
    let hidden = tracked.iter().filter(|t| t.hidden).map(|t| t.path.to_string_lossy().into_owned()).collect();
    Ok(Capture {
        tree,
        index_tree,
        untouchable: found.untouchable,
        submodules,
        hidden,
        index,
        _directory: directory,
    })
}

struct Found {
    untouchable: BTreeSet<Untouchable>,
    add: Vec<PathBuf>,
}

impl Found {
    fn leave(&mut self, path: String, reason: UntouchableReason) {
        self.untouchable.insert(Untouchable { path, reason });
    }
}

/// Decides whether a changed or untracked file goes into the snapshot.
fn consider(root: &Path, change: &Changed, filter: Option<&String>, found: &mut Found) {
    let shown = change.path.to_string_lossy().trim_end_matches('/').to_owned();
    if change.path.as_os_str().as_bytes().ends_with(b"/") {
        return found.leave(shown, UntouchableReason::NestedRepository);
    }
    if let Some(filter) = filter {
        return found.leave(shown, UntouchableReason::Filter { filter: filter.clone() });
    }
    let path = root.join(&change.path);
    let metadata = fs::symlink_metadata(&path);
    if let Ok(metadata) = &metadata
        && metadata.is_file()
    {
        if change.untracked && metadata.len() > LARGE_FILE {
            return found.leave(shown, UntouchableReason::TooLarge { bytes: metadata.len() });
        }
        if fs::File::open(&path).is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied) {
            return found.leave(shown, UntouchableReason::Unreadable);
        }
    }
    if change.path.to_str().is_none() {
        found.leave(shown, UntouchableReason::NameNotUtf8);
    }
    found.add.push(change.path.clone());
}

/// A path whose file differs from the index.
struct Changed {
    path: PathBuf,
    untracked: bool,
}

/// Files that differ from the index and untracked ones; refuses unresolved conflicts.
fn status(git: &Git) -> Result<Vec<Changed>> {
    let output = git.run([
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=all",
        "--ignore-submodules=all",
        "--no-renames",
    ])?;
    let mut changes = Vec::new();
    let mut unmerged = Vec::new();
    for field in nul_fields(&output) {
        let after = |count: usize| field.splitn(count + 1, |b| *b == b' ').nth(count).map(os_path);
        match field.first() {
            Some(b'1') if field.get(3) != Some(&b'.') => {
                changes.extend(after(8).map(|path| Changed { path: path.to_owned(), untracked: false }));
            }
            Some(b'u') => unmerged.extend(after(10).map(|path| path.to_string_lossy().into_owned())),
            Some(b'?') => {
                changes.extend(after(1).map(|path| Changed { path: path.to_owned(), untracked: true }))
            }
            _ => {}
        }
    }
    if unmerged.is_empty() { Ok(changes) } else { Err(SandboxError::Unmerged { paths: unmerged }) }
}

/// An entry of the index.
pub(crate) struct Tracked {
    pub(crate) path: PathBuf,
    pub(crate) id: String,
    pub(crate) submodule: bool,
    pub(crate) hidden: bool,
}

/// Everything in the index; `git ls-files -v -s` prints `H 100644 <id> <stage>`, a tab and the path.
pub(crate) fn tracked(git: &Git) -> Result<Vec<Tracked>> {
    let output = git.run(["ls-files", "-z", "-v", "-s"])?;
    Ok(nul_fields(&output)
        .filter_map(|field| {
            let tab = field.iter().position(|b| *b == b'\t')?;
            let tag = *field.first()?;
            Some(Tracked {
                path: os_path(&field[tab + 1..]).to_owned(),
                id: String::from_utf8_lossy(field.get(9..tab.checked_sub(2)?)?).into_owned(),
                submodule: field[..tab].get(2..8) == Some(MODE_SUBMODULE.as_bytes()),
                hidden: tag == b'S' || tag.is_ascii_lowercase(),
            })
        })
        .collect())
}

/// Which of the paths a configured filter applies to, and which filter.
pub(crate) fn filters<'a>(
    git: &Git,
    configured: &[OsString],
    paths: impl Iterator<Item = &'a Path>,
) -> Result<HashMap<PathBuf, String>> {
    let output = git.call(["check-attr", "-z", "--stdin", "filter"]).stdin_paths(paths).run()?;
    let fields: Vec<&[u8]> = output.split(|b| *b == 0).collect();
    let mut filtered = HashMap::new();
    for record in fields.chunks_exact(3) {
        let value = OsStr::from_bytes(record[2]);
        if configured.iter().any(|name| name == value) {
            filtered.insert(os_path(record[0]).to_owned(), value.to_string_lossy().into_owned());
        }
    }
    Ok(filtered)
}
