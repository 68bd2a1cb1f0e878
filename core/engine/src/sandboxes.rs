//! The sandboxes of a plan: where they are, how they are made and re-opened, and what they hold.

use std::path::{Path, PathBuf};

use agents_domain::catalogue::dependency_folders;
use agents_domain::changes::{FileDiff, content_hash};
use agents_domain::ids::{PlanId, ResourceId};
use agents_domain::plan::{Phase, Plan, PlanResource, SandboxRef, State};
use agents_domain::ports::actor::FileEntry;
use agents_domain::resource::{Resource, SandboxStrategy, resource_type};
use agents_domain::text::FileEdit;
use agents_domain::{Error, ErrorKind, Result};
use agents_sandbox::{AppliedEdit, CommitId, Removal, Repository, SandboxError, TakenEdits, Worktree};

use crate::Engine;
use crate::process::confine::{Bounds, Reach};

/// An open sandbox with what the engine knows of it.
#[derive(Debug)]
pub(crate) struct OpenSandbox {
    pub resource_id: ResourceId,
    pub name: String,
    /// The type of the resource, such as `git-checkout`.
    pub resource_type: String,
    pub root: PathBuf,
    pub read_only: bool,
    pub untouchable: Vec<(String, String)>,
    worktree: Worktree,
}

impl OpenSandbox {
    pub fn worktree(&self) -> &Worktree {
        &self.worktree
    }

    /// The bounds of what runs in it.
    pub fn bounds(&self, reach: Reach, data_dir: &Path) -> Bounds {
        let repository = self.worktree.repository();
        let own = repository.path().to_owned();
        let (mut protected, mut hidden) = (vec![own, repository.common_dir().to_owned()], Vec::new());
        match reach {
            Reach::Machine => protected.push(data_dir.to_owned()),
            // Sandboxes of other plans are there, too.
            Reach::Sandbox | Reach::Nothing => hidden.push(data_dir.to_owned()),
        }
        let network = reach == Reach::Machine;
        Bounds { reach, network, root: self.root.clone(), protected, hidden }
    }

    /// Commits whatever differs from the last checkpoint, but for caches; `None` when nothing does.
    pub fn take_work(&self, label: &str) -> Result<Option<TakenEdits>> {
        self.worktree.take_work(label).map_err(sandbox_error)
    }

    /// Links are left out: what they lead to inside the checkout is listed by its own name, and would be worked on twice.
    pub fn files(&self) -> Result<Vec<FileEntry>> {
        let files = self.worktree.list_files().map_err(sandbox_error)?;
        let own = files.into_iter().filter(|file| !file.link);
        Ok(own.map(|file| FileEntry { path: file.path, size: file.size }).collect())
    }

    pub fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.worktree.read(path).map_err(sandbox_error)
    }

    pub fn apply_edits(&self, edits: &[FileEdit]) -> Result<Vec<AppliedEdit>> {
        self.worktree.apply_edits(edits).map_err(sandbox_error)
    }

    /// Commits the present state of the named files; returns the commit.
    pub fn checkpoint(&self, label: &str, paths: &[String]) -> Result<String> {
        Ok(self.worktree.checkpoint(label, paths).map_err(sandbox_error)?.to_string())
    }

    /// Makes a file have these bytes; `None` removes it.
    pub fn put(&self, path: &str, bytes: Option<&[u8]>) -> Result<()> {
        match bytes {
            Some(bytes) => self.worktree.write_file(path, bytes).map(drop),
            None => match self.worktree.delete(path) {
                Err(SandboxError::NotFound { .. }) => Ok(()),
                deleted => deleted.map(drop),
            },
        }
        .map_err(sandbox_error)
    }

    /// Files that differ from the last checkpoint.
    pub fn dirty(&self) -> Result<Vec<String>> {
        self.worktree.dirty_paths().map_err(sandbox_error)
    }

    /// Makes these files what they were at a commit; those it does not have are removed.
    pub fn restore_paths(&self, commit: &str, paths: &[String]) -> Result<()> {
        self.worktree.restore_paths(&commit_id(commit)?, paths).map_err(sandbox_error)
    }

    /// Makes files what is given, all or none; `None` removes. A file that is made again gets the rights it has in `base`.
    pub fn put_files(&self, files: &[(String, Option<Vec<u8>>)], base: Option<&str>) -> Result<()> {
        if let Some(base) = base {
            let gone = |path: &&String| self.read(path).is_err();
            let again: Vec<&String> = files
                .iter()
                .filter(|(_, bytes)| bytes.is_some())
                .map(|(path, _)| path)
                .filter(gone)
                .collect();
            self.worktree.restore_paths(&commit_id(base)?, &again).map_err(sandbox_error)?;
        }
        self.worktree.put_files(files).map_err(sandbox_error)
    }

    pub fn restore(&self, commit: &str) -> Result<()> {
        self.worktree.restore(&commit_id(commit)?).map_err(sandbox_error)
    }
}

/// Sandboxes as they were opened.
pub(crate) struct Opened {
    pub sandboxes: Vec<OpenSandbox>,
    /// Those made just now, to be recorded.
    pub fresh: Vec<SandboxRef>,
    /// Edits found that no commit of ours had: the resource and the commit that keeps them.
    pub kept: Vec<(ResourceId, String, Vec<String>)>,
}

/// Opens every sandbox of a plan at its last recorded state, making those that are missing.
///
/// `in_flight` names the files of a write that may have been cut off; other edits found are a person's and are kept in
/// a commit before the sandbox is brought back.
pub(crate) fn open_all(engine: &Engine, plan: &Plan, in_flight: &[String]) -> Result<Opened> {
    let mut opened = Opened { sandboxes: Vec::new(), fresh: Vec::new(), kept: Vec::new() };
    for linked in &plan.resources {
        let resource = engine.view(|r| r.resource(linked.resource_id))?.ok_or_else(|| {
            Error::not_found(format!("resource {} of plan {} is gone", linked.resource_id, plan.plan_id))
        })?;
        let repository = check_usable(engine, &resource)?;
        let known = plan.sandboxes.iter().find(|s| s.resource_id == linked.resource_id);
        let worktree = match known {
            Some(known) => {
                let worktree = match Worktree::open(&repository, Path::new(&known.path)) {
                    // Its directory was removed by hand; the commits are still in the repository.
                    Err(SandboxError::NoSandbox { .. }) => Worktree::recreate(
                        &repository,
                        plan.plan_id,
                        &commit_id(&known.base_commit)?,
                        Path::new(&known.path),
                        &dependency_folders(),
                    ),
                    opened => opened,
                }
                .map_err(sandbox_error)?;
                let found = worktree.recover().map_err(sandbox_error)?;
                let mut foreign: Vec<String> =
                    found.dirty.into_iter().filter(|p| !crate::tools::is_among(in_flight, p)).collect();
                if plan.phase == Phase::Execute {
                    // They stay; the next step takes them into the plan.
                    let edited = worktree.edited_paths().map_err(sandbox_error)?;
                    foreign.retain(|path| edited.contains(path) && !worktree.is_untouchable(path));
                    worktree.restore_around(&commit_id(&known.commit)?, &foreign).map_err(sandbox_error)?;
                    opened.add(linked, plan, &resource, worktree);
                    continue;
                }
                if !foreign.is_empty() {
                    let commit =
                        worktree.checkpoint("Edits found in the sandbox", &foreign).map_err(sandbox_error)?;
                    opened.kept.push((linked.resource_id, commit.to_string(), foreign));
                }
                worktree.restore(&commit_id(&known.commit)?).map_err(sandbox_error)?;
                worktree
            }
            None => {
                let dir = directory(engine, plan.plan_id, linked.resource_id);
                if let Some(parent) = dir.parent() {
                    std::fs::create_dir_all(parent)
                        .map_err(|e| Error::new(ErrorKind::Io, format!("{}: {e}", parent.display())))?;
                }
                if dir.exists() {
                    // Of an earlier attempt, whose base is no longer what the plan works on.
                    agents_sandbox::cleanup(&repository, plan.plan_id, Removal::IfClean)
                        .map_err(sandbox_error)?;
                }
                let snapshot = snapshot(engine, plan, linked.resource_id, &repository)?;
                let worktree = Worktree::create(&repository, &snapshot, &dir, &dependency_folders())
                    .map_err(sandbox_error)?;
                opened.fresh.push(SandboxRef {
                    resource_id: linked.resource_id,
                    original: repository.path().display().to_string(),
                    store: repository.is_folder().then(|| repository.place().display().to_string()),
                    path: worktree.path().display().to_string(),
                    base_commit: worktree.base().to_string(),
                    head_commit: snapshot.head.to_string(),
                    branch: snapshot.branch.clone().filter(|_| !repository.is_folder()),
                    commit: worktree.base().to_string(),
                    untouchable: untouchable(&worktree),
                });
                worktree
            }
        };
        opened.add(linked, plan, &resource, worktree);
    }
    Ok(opened)
}

impl Opened {
    fn add(&mut self, linked: &PlanResource, plan: &Plan, resource: &Resource, worktree: Worktree) {
        self.sandboxes.push(OpenSandbox {
            resource_id: linked.resource_id,
            name: display_name(resource),
            resource_type: resource.resource_type.to_string(),
            root: worktree.path().to_owned(),
            read_only: linked.read_only || plan.read_only,
            untouchable: untouchable(&worktree),
            worktree,
        });
    }
}

/// What a plan begins with: the user's files, or for a child plan those of its parent's sandbox as they are now.
fn snapshot(
    engine: &Engine,
    plan: &Plan,
    resource: ResourceId,
    repository: &Repository,
) -> Result<agents_sandbox::Snapshot> {
    let parent = match plan.parent_plan_id {
        Some(parent) => engine.view(|r| r.plan(parent))?.filter(|parent| !parent.status().ended()),
        None => None,
    };
    let above = parent.as_ref().and_then(|p| p.sandboxes.iter().find(|s| s.resource_id == resource));
    match (parent.as_ref(), above) {
        (Some(parent), Some(above)) => {
            let (base, at) = (commit_id(&above.base_commit)?, commit_id(&above.commit)?);
            let taken = agents_sandbox::snapshot_of(repository, plan.plan_id, parent.plan_id, &base, &at);
            taken.map(|s| agents_sandbox::Snapshot { branch: above.branch.clone(), ..s })
        }
        _ => agents_sandbox::snapshot(repository, plan.plan_id),
    }
    .map_err(sandbox_error)
}

/// Commits what a person made of these files in a sandbox; nothing else in it is touched. Returns the commit.
pub(crate) fn hand_edits(sandbox: &SandboxRef, paths: &[String]) -> Result<String> {
    let repository = Repository::reopen(sandbox.place()).map_err(sandbox_error)?;
    let worktree = Worktree::open(&repository, Path::new(&sandbox.path)).map_err(sandbox_error)?;
    worktree.recover().map_err(sandbox_error)?;
    Ok(worktree.checkpoint("Conflicts resolved by hand", paths).map_err(sandbox_error)?.to_string())
}

/// Files in the plan's sandboxes that differ from their latest commit.
pub(crate) fn dirty(plan: &Plan) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for sandbox in &plan.sandboxes {
        let repository = Repository::reopen(sandbox.place()).map_err(sandbox_error)?;
        match Worktree::open(&repository, Path::new(&sandbox.path)) {
            Ok(worktree) => found.extend(worktree.dirty_paths().map_err(sandbox_error)?),
            // Nothing can be edited in a sandbox that is not there.
            Err(SandboxError::NoSandbox { .. }) => {}
            Err(error) => return Err(sandbox_error(error)),
        }
    }
    Ok(found)
}

/// How a plan's sandbox of a resource is kept apart.
pub(crate) fn strategy_of(plan: &Plan, resource: ResourceId) -> Option<SandboxStrategy> {
    plan.sandboxes.iter().find(|s| s.resource_id == resource).map(SandboxRef::strategy)
}

fn untouchable(worktree: &Worktree) -> Vec<(String, String)> {
    worktree.untouchable().iter().map(|u| (u.path.clone(), u.reason.to_string())).collect()
}

/// Where the sandbox of a resource is, or will be.
fn directory(engine: &Engine, plan: PlanId, resource: ResourceId) -> PathBuf {
    engine.data_dir.join("sandboxes").join(plan.to_string()).join(resource.to_string())
}

/// The plan, resource and relative path of a file inside a sandbox of ours.
pub(crate) fn place_of(engine: &Engine, path: &Path) -> Option<(PlanId, ResourceId, String)> {
    let base = engine.data_dir.join("sandboxes");
    let real = base.canonicalize().unwrap_or_else(|_| base.clone());
    let rest = path.strip_prefix(&base).or_else(|_| path.strip_prefix(&real)).ok()?;
    let mut parts = rest.components();
    let mut id = || parts.next().and_then(|p| p.as_os_str().to_str().map(str::to_owned));
    let plan = id()?.parse().ok()?;
    let resource = id()?.parse().ok()?;
    Some((plan, resource, slashes(parts.as_path())))
}

/// A relative path with `/`.
pub(crate) fn slashes(path: &Path) -> String {
    path.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// The reference of a plan's latest checkpoint; it lives away from the user's branches.
pub(crate) fn branch_name(plan: PlanId) -> String {
    format!("refs/cleveragents/plan-{plan}/head")
}

/// The name of a resource, for people.
pub(crate) fn display_name(resource: &Resource) -> String {
    resource.name.as_ref().map_or_else(|| resource.resource_id.to_string(), ToString::to_string)
}

/// Opens the repository of a resource a plan is to work on, or says why it cannot.
pub(crate) fn check_usable(engine: &Engine, resource: &Resource) -> Result<Repository> {
    let name = display_name(resource);
    let location = resource
        .location
        .as_deref()
        .ok_or_else(|| Error::internal(format!("resource `{name}` has no location")))?;
    let opened = match resource_type(&resource.resource_type).map(|t| t.strategy) {
        Some(SandboxStrategy::GitWorktree) => Repository::open(Path::new(location)),
        Some(SandboxStrategy::CopyOnWrite) => {
            let store = folder_store(engine, resource.resource_id, location);
            Repository::open_folder(Path::new(location), &store, &dependency_folders())
        }
        _ => {
            return Err(Error::validation(format!(
                "resource `{name}` is of type {}, which has no sandbox: plans work on git-checkout and fs-directory \
                 resources",
                resource.resource_type
            )));
        }
    };
    opened.map_err(|e| sandbox_error(e).detail(format!("resource {name}")))
}

/// Where the repository that sandboxes of a resource are made from is opened; `None` where there is none yet.
pub(crate) fn place_of_resource(engine: &Engine, resource: &Resource) -> Option<PathBuf> {
    let location = resource.location.as_deref()?;
    match resource_type(&resource.resource_type)?.strategy {
        SandboxStrategy::GitWorktree => Some(PathBuf::from(location)),
        SandboxStrategy::CopyOnWrite => {
            Some(folder_store(engine, resource.resource_id, location)).filter(|store| store.is_dir())
        }
        SandboxStrategy::None => None,
    }
}

/// Where the git directory that stands for a plain folder's is; another one when the resource moves.
pub(crate) fn folder_store(engine: &Engine, resource: ResourceId, location: &str) -> PathBuf {
    let place = content_hash(location.as_bytes());
    engine.data_dir.join("folders").join(format!("{resource}-{}", &place[..8]))
}

/// What each sandbox changes: live while it is there, else as stored when Execute was complete.
pub(crate) fn diff(engine: &Engine, plan: &Plan) -> Result<Vec<(ResourceId, FileDiff)>> {
    let live = !plan.sandboxes.is_empty() && plan.sandboxes.iter().all(|s| Path::new(&s.path).is_dir());
    if !live {
        let Some(hash) = &plan.diff_ref else { return Ok(Vec::new()) };
        let bytes = engine.store.blob(hash)?.ok_or_else(|| {
            Error::new(ErrorKind::Database, format!("the stored diff of plan {} is gone", plan.plan_id))
        })?;
        return serde_json::from_slice(&bytes)
            .map_err(|e| Error::new(ErrorKind::Database, format!("the stored diff cannot be read: {e}")));
    }
    let mut all = Vec::new();
    for sandbox in &plan.sandboxes {
        let repository = Repository::reopen(sandbox.place()).map_err(sandbox_error)?;
        let files = agents_sandbox::diff(
            &repository,
            &commit_id(&sandbox.base_commit)?,
            &commit_id(&sandbox.commit)?,
        )
        .map_err(sandbox_error)?;
        all.extend(files.into_iter().map(|file| (sandbox.resource_id, file)));
    }
    Ok(all)
}

/// Stores the diff of a finished Execute; returns its blob.
pub(crate) fn store_diff(engine: &Engine, plan: &Plan) -> Result<String> {
    let bytes = serde_json::to_vec(&diff(engine, plan)?).map_err(|e| Error::internal(e.to_string()))?;
    Ok(engine.store.put_blob(&bytes)?)
}

/// Removes the sandboxes of an ended plan; one that holds a person's edits is kept, and the log says so.
pub(crate) fn clean_up(plan: &Plan) {
    for sandbox in &plan.sandboxes {
        let removed = Repository::reopen(sandbox.place())
            .and_then(|repository| agents_sandbox::cleanup(&repository, plan.plan_id, Removal::IfClean));
        if let Err(error) = removed {
            tracing::warn!(plan = %plan.plan_id, %error, "the sandbox of an ended plan was kept");
        }
        // Only an empty folder goes.
        if let Some(folder) = Path::new(&sandbox.path).parent() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Removes the sandboxes of applied plans whose worker was killed before it could. Each is tried once per process: one
/// that holds a person's edits stays.
pub(crate) fn sweep(engine: &Engine) {
    if engine.config.text("sandbox.cleanup", None) == "manual" {
        return;
    }
    for (id, _) in plan_folders(&engine.data_dir.join("sandboxes")) {
        let plan = engine.view(|r| r.plan(id)).ok().flatten().filter(|plan| plan.state == State::Applied);
        let Some(plan) = plan else { continue };
        // While its worker lives, it is not left behind.
        if engine.store.is_leased(id).unwrap_or(true) || !engine.first_sweep_of(id) {
            continue;
        }
        tracing::info!(plan_id = %id, "the sandbox of an applied plan was left behind and is removed");
        clean_up(&plan);
    }
}

/// Folders named after plans.
pub(crate) fn plan_folders(dir: &Path) -> Vec<(PlanId, PathBuf)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<(PlanId, PathBuf)> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .filter_map(|path| Some((path.file_name()?.to_str()?.parse().ok()?, path)))
        .collect();
    found.sort();
    found
}

pub(crate) fn commit_id(text: &str) -> Result<CommitId> {
    text.parse().map_err(|e| Error::internal(format!("recorded commit `{text}`: {e}")))
}

/// A sandbox failure as the facade reports it.
pub(crate) fn sandbox_error(error: SandboxError) -> Error {
    let kind = match &error {
        SandboxError::NotFound { .. }
        | SandboxError::SnapshotGone { .. }
        | SandboxError::MissingObject { .. }
        | SandboxError::NotARepository { .. }
        | SandboxError::NoSandbox { .. } => ErrorKind::NotFound,
        SandboxError::Exists { .. } => ErrorKind::AlreadyExists,
        SandboxError::Locked { .. } | SandboxError::Unmerged { .. } | SandboxError::Dirty { .. } => {
            ErrorKind::InvalidState
        }
        SandboxError::Io { .. } | SandboxError::Disk { .. } => ErrorKind::Io,
        _ => ErrorKind::ValidationFailed,
    };
    Error::new(kind, error.to_string())
}
