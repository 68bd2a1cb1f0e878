//! A plan's sandbox: a worktree of its base snapshot, outside the repository, with an index of our own.
//!
//! The worktree's HEAD stays at the base, so that `git diff` run by anyone in there shows what the plan did.
//! Checkpoints go through a private index (`cleveragents-index` in the worktree's git directory) and the reference
//! `refs/cleveragents/plan-<ULID>/head`; the private index is always that of the last checkpoint.
//!
//! Dependency folders the repository ignores are links to the user's own. Our tools never write through them; a
//! program that is run in the sandbox could, since a link cannot be made read-only.

mod checkpoint;
mod create;
mod directories;
mod everything;
mod files;
mod group;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agents_domain::ids::PlanId;
use serde::{Deserialize, Serialize};

use crate::error::{Result, SandboxError};
use crate::git::{CommitId, Git};
use crate::line_endings::LineEndings;
use crate::paths::Root;
use crate::repository::Repository;
use crate::settings;
use crate::snapshot::Untouchable;

pub use directories::{DirectoryEntry, EntryKind};
pub use everything::{Held, TakenEdits};
pub use files::{AppliedEdit, SandboxFile};
pub use group::{GroupError, restore_group};

const STATE: &str = "cleveragents.json";
const INDEX: &str = "cleveragents-index";
const EXCLUDE: &str = "cleveragents-exclude";
const STATE_VERSION: u32 = 1;

/// What a sandbox was made of; written last, so that its presence says that the sandbox is complete.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct State {
    version: u32,
    plan: PlanId,
    base: CommitId,
    /// Where the user's checkout is opened from again.
    checkout: PathBuf,
    ref_prefix: String,
    untouchable: Vec<Untouchable>,
    submodules: Vec<String>,
    exposed: Vec<Exposed>,
    /// Files whose line endings on the user's disk are not those of a checkout.
    own_endings: Vec<OwnEndings>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct OwnEndings {
    path: String,
    endings: LineEndings,
}

/// A dependency folder that is visible in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Exposed {
    path: String,
    target: PathBuf,
}

/// An open sandbox.
#[derive(Debug)]
pub struct Worktree {
    repository: Repository,
    /// The worktree's git directory, with the private index.
    git: Git,
    root: Root,
    state: State,
}

/// What [`Worktree::recover`] found after a worker died.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Recovery {
    /// A checkpoint or restore had been cut off; the sandbox is at its last complete checkpoint again.
    pub rewound: bool,
    /// Files that differ from the last checkpoint.
    pub dirty: Vec<String>,
}

/// Whether removal may lose edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Refused while the sandbox holds changes that no checkpoint has.
    IfClean,
    /// Whatever it holds.
    Discard,
}

impl Worktree {
    /// Opens a sandbox that [`Worktree::create`] finished; changes nothing, so any process may do it.
    pub fn open(repository: &Repository, dir: &Path) -> Result<Self> {
        let missing = || SandboxError::NoSandbox { dir: dir.to_owned() };
        let dir = dir.canonicalize().map_err(|_| missing())?;
        let admin = admin_directory(repository, &dir)?.ok_or_else(missing)?;
        let state = read_state(&admin)?.ok_or_else(missing)?;
        Self::assemble(repository, &dir, &admin, state)
    }

    fn assemble(repository: &Repository, dir: &Path, admin: &Path, state: State) -> Result<Self> {
        let mut git = git_of(repository, dir, admin)?;
        // Files shown in place of what a checkout gives stay marked `skip-worktree`, present or not.
        git.config.push(("sparse.expectFilesOutsideOfPatterns".into(), "true".into()));
        git.index = Some(admin.join(INDEX));
        let root = Root::open(dir, &staging_directory(dir))?;
        Ok(Self { repository: repository.clone(), git, root, state })
    }

    /// The sandbox's top level, without links.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// The plan it belongs to.
    pub fn plan(&self) -> PlanId {
        self.state.plan
    }

    /// The snapshot it was made of.
    pub fn base(&self) -> &CommitId {
        &self.state.base
    }

    /// The user's checkout.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Files that are left alone: those of the snapshot and those whose line endings a checkout would change.
    pub fn untouchable(&self) -> &[Untouchable] {
        &self.state.untouchable
    }

    /// Dependency folders that are visible and read-only, relative to the top level.
    pub fn exposed(&self) -> impl Iterator<Item = &str> {
        self.state.exposed.iter().map(|exposed| exposed.path.as_str())
    }

    /// The last checkpoint, or the base.
    pub fn head(&self) -> Result<CommitId> {
        self.git.call(["rev-parse", "--verify", "-q"]).arg(self.head_ref()).id()
    }

    fn head_ref(&self) -> String {
        format!("{}head", self.state.ref_prefix)
    }

    fn exclude_file(&self) -> PathBuf {
        self.git.git_dir.join(EXCLUDE)
    }

    fn index_file(&self) -> PathBuf {
        self.git.git_dir.join(INDEX)
    }

    /// Removes the sandbox; its checkpoints stay reachable until [`cleanup`].
    pub fn remove(self, removal: Removal) -> Result<()> {
        if removal == Removal::IfClean {
            let paths = self.dirty_paths()?;
            if !paths.is_empty() {
                return Err(SandboxError::Dirty { dir: self.path().to_owned(), paths });
            }
        }
        remove_directories(self.path(), &self.git.git_dir)
    }
}

/// Removes a plan's sandbox of this checkout and its references. Returns the directories removed.
///
/// The checkpoints are unreachable afterwards. Safe to repeat.
pub fn cleanup(repository: &Repository, plan: PlanId, removal: Removal) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for (admin, dir) in admin_directories(repository)? {
        let Ok(Some(state)) = read_state(&admin) else { continue };
        if state.plan != plan || state.checkout != repository.place() {
            continue;
        }
        if dir.exists() {
            Worktree::assemble(repository, &dir, &admin, state)?.remove(removal)?;
        } else {
            remove_directories(&dir, &admin)?;
        }
        removed.push(dir);
    }
    let names = ["base", "head", "kept/"].map(|name| repository.plan_ref(plan, name));
    let existing = repository.git.run(
        ["for-each-ref", "--format=delete %(refname)"].into_iter().chain(names.iter().map(String::as_str)),
    )?;
    if !existing.is_empty() {
        repository.git.call(["update-ref", "--stdin"]).stdin(existing).run()?;
    }
    Ok(removed)
}

/// The plans that references of this repository keep commits of, each once.
pub fn plans_kept(repository: &Repository) -> Result<Vec<PlanId>> {
    let listed =
        repository.git.line(["for-each-ref", "--format=%(refname:lstrip=2)", "refs/cleveragents"])?;
    let plan = |line: &str| line.split('/').next()?.strip_prefix("plan-")?.parse().ok();
    let mut plans: Vec<PlanId> = listed.lines().filter_map(plan).collect();
    plans.sort();
    plans.dedup();
    Ok(plans)
}

/// Where the repository of a sandbox directory is opened from ([`Repository::reopen`]), by its own word; `None` for anything
/// else. Changes nothing.
pub fn place_of(dir: &Path) -> Option<PathBuf> {
    let link = fs::read_to_string(dir.join(".git")).ok()?;
    let admin = PathBuf::from(link.strip_prefix("gitdir: ")?.trim_end_matches('\n'));
    Some(read_state(&admin).ok()??.checkout)
}

/// Forgets sandboxes of this repository whose directory is gone. Returns where they were.
///
/// Only our own are looked at: a worktree of the user's may be missing because its disk is not mounted.
pub fn prune(repository: &Repository) -> Result<Vec<PathBuf>> {
    let mut pruned = Vec::new();
    for (admin, dir) in admin_directories(repository)? {
        if !dir.exists() && matches!(read_state(&admin), Ok(Some(_))) {
            remove_directories(&dir, &admin)?;
            pruned.push(dir);
        }
    }
    Ok(pruned)
}

/// A worktree with its own index, under the configuration that holds for it, which may be another than the checkout's.
fn git_of(repository: &Repository, dir: &Path, admin: &Path) -> Result<Git> {
    let git = Git { git_dir: admin.into(), work_tree: dir.into(), index: None, config: Vec::new() };
    let mut config = repository.git.config.clone();
    config.extend(settings::read(&git)?.disarming);
    Ok(Git { config, ..git })
}

/// Beside the sandbox, on the same file system and out of sight of servers that watch it.
fn staging_directory(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    dir.with_file_name(format!(".{name}.staging"))
}

/// The git directories of all linked worktrees, with the worktree each is for.
fn admin_directories(repository: &Repository) -> Result<Vec<(PathBuf, PathBuf)>> {
    let worktrees = repository.common_dir().join("worktrees");
    let entries = match fs::read_dir(&worktrees) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SandboxError::io("read", worktrees)(error)),
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Ok(text) = fs::read_to_string(entry.path().join("gitdir")) else { continue };
        if let Some(dir) = Path::new(text.trim_end_matches('\n')).parent() {
            found.push((entry.path(), dir.to_owned()));
        }
    }
    Ok(found)
}

/// The git directory of the worktree at `dir`, found from the repository: the worktree's own `.git` file is within
/// reach of whatever runs in the sandbox.
fn admin_directory(repository: &Repository, dir: &Path) -> Result<Option<PathBuf>> {
    Ok(admin_directories(repository)?.into_iter().find(|(_, at)| at == dir).map(|(admin, _)| admin))
}

fn read_state(admin: &Path) -> Result<Option<State>> {
    let path = admin.join(STATE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SandboxError::io("read", path)(error)),
    };
    let damaged = |detail: String| SandboxError::Damaged { path: path.clone(), detail };
    let state: State = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if state.version != STATE_VERSION {
        return Err(damaged(format!("version {} is not known, expected {STATE_VERSION}", state.version)));
    }
    Ok(Some(state))
}

/// Where a sandbox's directory goes before its files are removed.
fn gone_directory(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    dir.with_file_name(format!(".{name}.gone"))
}

/// Removes a sandbox such that it can be killed anywhere: a directory that is half removed would look edited, so it
/// goes out of the way in one step, and what tells whose it is goes last.
fn remove_directories(dir: &Path, admin: &Path) -> Result<()> {
    let gone = gone_directory(dir);
    remove_tree(&gone)?;
    match fs::rename(dir, &gone) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(SandboxError::io("remove", dir)(error));
        }
        _ => remove_tree(&gone)?,
    }
    remove_tree(&staging_directory(dir))?;
    for entry in fs::read_dir(admin).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => remove_tree(&path)?,
            _ if entry.file_name() == STATE => {}
            // `gitdir` says where the sandbox is; without it nobody finds what is left.
            _ if entry.file_name() == "gitdir" => {}
            _ => fs::remove_file(&path).map_err(SandboxError::io("remove", &path))?,
        }
    }
    remove_tree(admin)
}

/// Removes a directory tree without following links; directories without write permission are opened up first.
fn remove_tree(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => open_up(dir),
        Err(error) => return Err(SandboxError::io("remove", dir)(error)),
    }
    fs::remove_dir_all(dir).map_err(SandboxError::io("remove", dir))
}

fn open_up(dir: &Path) {
    let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
