//! What plans that are over and workers that were killed left in the data directory, and taking it away.

use std::fs;
use std::path::{Path, PathBuf};

use agents_domain::Timestamp;
use agents_domain::ids::PlanId;
use agents_domain::plan::{Plan, State};
use agents_sandbox::{Removal, Repository, SandboxError, Worktree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Check;
use super::machine::bytes;
use crate::sandboxes::plan_folders;
use crate::{Engine, clock};

/// What a leftover is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The sandbox of a plan that is applied or cancelled.
    Sandbox,
    /// A sandbox of no plan that is known.
    UnknownSandbox,
    /// The journal of an apply that was cut off, of a plan that is over or not known.
    Journal,
    /// The lock file of a worker that was killed, of a plan that is over or not known.
    Lock,
    /// What can be fetched again.
    Cache,
    /// A backup that is older than `core.backup.retention-days`.
    Backup,
    /// References of a repository that keep commits of a plan that is not known here; another data directory may know it.
    Refs,
}

/// Something left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Leftover {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub path: String,
    /// The plan it is of.
    #[schemars(with = "Option<String>")]
    pub plan_id: Option<PlanId>,
    /// `agents diagnostics --cleanup` removes it, unless it holds a person's edits.
    pub removable: bool,
    /// Why it is there.
    pub reason: String,
}

/// What became of the leftovers.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Cleanup {
    /// Paths that are gone.
    pub removed: Vec<String>,
    /// What was left alone.
    pub kept: Vec<Kept>,
    /// Bytes that were freed.
    pub freed_bytes: u64,
}

/// Something that was left alone.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Kept {
    /// Where it is.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Folders of the cache that hold nothing but copies.
const CACHES: [&str; 3] = ["models", "tools", "templates"];

/// What is known of the plan that something is of.
enum Owner {
    Open,
    Over(State),
    Unknown,
}

fn owner(engine: &Engine, plan: PlanId) -> Owner {
    match engine.view(|r| r.plan(plan)) {
        Ok(Some(Plan { state: state @ (State::Applied | State::Cancelled), .. })) => Owner::Over(state),
        Ok(None) => Owner::Unknown,
        // One that cannot be read is treated with as much care as one that is at work.
        Ok(Some(_)) | Err(_) => Owner::Open,
    }
}

/// Everything that was left behind, by kind and plan. A folder that cannot be read has none.
pub(super) fn find(engine: &Engine) -> Vec<Leftover> {
    let mut found = Vec::new();
    for (plan, path) in plan_folders(&engine.data_dir.join("sandboxes")) {
        let (kind, reason) = match owner(engine, plan) {
            Owner::Open => continue,
            Owner::Over(state) => (Kind::Sandbox, format!("its plan is {state}")),
            Owner::Unknown => (Kind::UnknownSandbox, "no such plan is known".to_owned()),
        };
        let at_work = engine.store.is_leased(plan).unwrap_or(true);
        // What nobody knows of goes only when there is nothing in it that is not elsewhere as well.
        let removable = !at_work && (kind == Kind::Sandbox || unknown_sandboxes(plan, &path).is_ok());
        let reason = match unknown_sandboxes(plan, &path) {
            Err(why) if kind == Kind::UnknownSandbox => format!("{reason}, and {why}"),
            _ => reason,
        };
        found.push(Leftover { kind, path: shown(&path), plan_id: Some(plan), removable, reason });
    }
    for (plan, path) in plan_folders(&engine.data_dir.join("journals")) {
        let reason = match owner(engine, plan) {
            Owner::Open => continue,
            Owner::Over(state) => format!("an apply was cut off, and its plan is {state}"),
            Owner::Unknown => "an apply was cut off, and no such plan is known".to_owned(),
        };
        let cut_off = children(&path).into_iter().filter(|dir| dir.join("apply.json").is_file());
        found.extend(cut_off.map(|dir| Leftover {
            kind: Kind::Journal,
            path: shown(&dir),
            plan_id: Some(plan),
            removable: false,
            reason: reason.clone(),
        }));
    }
    for (plan, path) in agents_store::abandoned_locks(&engine.data_dir).unwrap_or_default() {
        let reason = match owner(engine, plan) {
            Owner::Open => continue,
            Owner::Over(state) => format!("its worker was killed, and its plan is {state}"),
            Owner::Unknown => "no such plan is known".to_owned(),
        };
        found.push(Leftover {
            kind: Kind::Lock,
            path: shown(&path),
            plan_id: Some(plan),
            removable: true,
            reason,
        });
    }
    let cache = PathBuf::from(engine.config.text("core.cache.dir", None));
    let copies = CACHES.iter().map(|name| cache.join(name)).filter(|path| !children(path).is_empty());
    found.extend(copies.map(|path| Leftover {
        kind: Kind::Cache,
        path: shown(&path),
        plan_id: None,
        removable: true,
        reason: "it can be fetched again".to_owned(),
    }));
    found.extend(expired_backups(engine));
    found.extend(stray_refs(engine));
    found
}

/// What keeps commits of unknown plans in the registered checkouts. One that cannot be opened has none.
fn stray_refs(engine: &Engine) -> Vec<Leftover> {
    let resources = engine.view(|r| r.resources()).unwrap_or_default();
    let mut checkouts: Vec<String> = resources
        .into_iter()
        .filter(|resource| resource.resource_type == "git-checkout")
        .filter_map(|resource| resource.location)
        .collect();
    checkouts.sort();
    checkouts.dedup();
    let mut found = Vec::new();
    for path in checkouts {
        let plans =
            Repository::open(Path::new(&path)).and_then(|repository| agents_sandbox::plans_kept(&repository));
        let unknown = plans
            .unwrap_or_default()
            .into_iter()
            .filter(|plan| matches!(owner(engine, *plan), Owner::Unknown));
        found.extend(unknown.map(|plan| Leftover {
            kind: Kind::Refs,
            path: path.clone(),
            plan_id: Some(plan),
            removable: false,
            reason: format!(
                "refs/cleveragents/plan-{plan}/ keeps commits of a plan that is not known here; another data directory may \
                 know it"
            ),
        }));
    }
    found
}

/// Backups of a time that is longer ago than they are to be kept; 0 days keep them for ever.
fn expired_backups(engine: &Engine) -> Vec<Leftover> {
    let days = engine.config.integer("core.backup.retention-days", None);
    if days == 0 {
        return Vec::new();
    }
    let kept_ms = u64::try_from(days).unwrap_or(u64::MAX).saturating_mul(24 * 60 * 60 * 1000);
    let now = clock::now();
    let made = |path: &Path| {
        // `YYYY-MM-DDTHH-MM-SS`, maybe with a number behind it.
        let name = path.file_name()?.to_str()?.get(..19)?;
        let (date, time) = name.split_once('T')?;
        format!("{date}T{}", time.replace('-', ":")).parse::<Timestamp>().ok()
    };
    children(Path::new(&engine.config.text("core.backup.dir", None)))
        .into_iter()
        .filter(|path| path.is_dir() && made(path).is_some_and(|made| now.millis_since(made) > kept_ms))
        .map(|path| Leftover {
            kind: Kind::Backup,
            path: shown(&path),
            plan_id: None,
            removable: true,
            reason: format!("it is older than {days} days"),
        })
        .collect()
}

pub(super) fn check(leftovers: &[Leftover]) -> Check {
    const NAME: &str = "Leftovers";
    let counted = |kinds: &[Kind], one: &str, many: &str| {
        let n = leftovers.iter().filter(|l| kinds.contains(&l.kind)).count();
        (n > 0).then(|| format!("{n} {}", if n == 1 { one } else { many }))
    };
    let facts = [
        counted(&[Kind::Sandbox], "sandbox of an ended plan", "sandboxes of ended plans"),
        counted(&[Kind::UnknownSandbox], "sandbox of an unknown plan", "sandboxes of unknown plans"),
        counted(
            &[Kind::Journal],
            "journal of an apply that was cut off",
            "journals of applies that were cut off",
        ),
        counted(&[Kind::Lock], "lock file of a killed worker", "lock files of killed workers"),
        counted(&[Kind::Backup], "backup that is old enough to go", "backups that are old enough to go"),
        counted(&[Kind::Refs], "unknown plan kept by references", "unknown plans kept by references"),
    ];
    let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    // A cache is as it should be.
    let mut relevant = leftovers.iter().filter(|l| l.kind != Kind::Cache);
    if facts.is_empty() {
        return Check::ok(NAME, "none");
    }
    match relevant.find(|l| !l.removable) {
        None => Check::warn(NAME, facts, "Take them away: agents diagnostics --cleanup"),
        Some(kept) => Check::warn(
            NAME,
            facts,
            format!(
                "Take away what nobody needs: agents diagnostics --cleanup. Look at {} yourself: {}",
                kept.path, kept.reason
            ),
        ),
    }
}

/// Removes what is removable. What a person may still want is left alone, with the reason.
pub(super) fn clean(engine: &Engine, leftovers: Vec<Leftover>) -> Cleanup {
    let mut done = Cleanup::default();
    for leftover in leftovers {
        if !leftover.removable {
            done.kept.push(Kept { path: leftover.path, reason: leftover.reason });
            continue;
        }
        let path = PathBuf::from(&leftover.path);
        let size = size_of(&path);
        match remove(engine, leftover.kind, leftover.plan_id, &path) {
            Ok(()) => {
                done.freed_bytes += size - size_of(&path).min(size);
                done.removed.push(leftover.path);
            }
            Err(reason) => done.kept.push(Kept { path: leftover.path, reason }),
        }
    }
    done
}

fn remove(engine: &Engine, kind: Kind, plan: Option<PlanId>, path: &Path) -> Result<(), String> {
    match (kind, plan) {
        (Kind::Sandbox, Some(plan)) => remove_sandboxes(engine, plan, path),
        (Kind::UnknownSandbox, Some(plan)) => {
            for repository in unknown_sandboxes(plan, path)? {
                agents_sandbox::cleanup(&repository, plan, Removal::IfClean).map_err(|e| e.to_string())?;
            }
            remove_empty(path)
        }
        (Kind::Lock, _) => match agents_store::remove_lock(path) {
            Ok(true) => Ok(()),
            Ok(false) => Err("somebody holds it by now".to_owned()),
            Err(error) => Err(error.to_string()),
        },
        (Kind::Cache, _) => children(path)
            .into_iter()
            .try_for_each(
                |child| if child.is_dir() { fs::remove_dir_all(child) } else { fs::remove_file(child) },
            )
            .map_err(|e| format!("it cannot be removed: {e}")),
        (Kind::Backup, _) => fs::remove_dir_all(path).map_err(|e| format!("it cannot be removed: {e}")),
        _ => Err("it may be needed".to_owned()),
    }
}

/// The sandboxes of a plan that is over, while nobody works on it.
fn remove_sandboxes(engine: &Engine, plan: PlanId, folder: &Path) -> Result<(), String> {
    let told = |error: agents_domain::Error| error.message;
    let plan = engine.view(|r| r.plan(plan)).map_err(told)?.ok_or("no such plan is known")?;
    for checkout in crate::operations::plan::checkouts(engine, &plan).map_err(told)? {
        let repository = Repository::reopen(&checkout)
            .map_err(|error| format!("its repository cannot be opened: {error}"))?;
        match agents_sandbox::cleanup(&repository, plan.plan_id, Removal::IfClean) {
            Ok(_) => {}
            Err(SandboxError::Dirty { paths, .. }) => {
                return Err(format!(
                    "it holds edits that are nowhere else: {}; copy them from {}",
                    paths.join(", "),
                    folder.display()
                ));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    remove_empty(folder)
}

/// The checkouts of an unknown plan's sandboxes, when nothing would be lost with them; else what would be, and how to
/// keep it.
fn unknown_sandboxes(plan: PlanId, folder: &Path) -> Result<Vec<Repository>, String> {
    let mut repositories = Vec::new();
    for dir in children(folder).into_iter().filter(|dir| dir.is_dir() && !is_hidden(dir)) {
        let at = dir.display();
        let checkout = agents_sandbox::place_of(&dir)
            .ok_or_else(|| format!("{at} is no sandbox of ours: look at it, then remove it yourself"))?;
        let opened = Repository::reopen(&checkout).and_then(|repository| {
            let worktree = Worktree::open(&repository, &dir)?;
            Ok((worktree.dirty_paths()?, worktree.head()?, worktree.base().clone(), repository))
        });
        let (dirty, head, base, repository) =
            opened.map_err(|error| format!("{at} cannot be looked into: {error}"))?;
        if !dirty.is_empty() {
            return Err(format!(
                "{at} holds edits that are nowhere else ({}): copy them out, then run this again",
                dirty.join(", ")
            ));
        }
        if head != base {
            return Err(format!(
                "{at} holds a plan's work that is nowhere else: `git -C {} branch kept-{plan} {head}` keeps it, \
                 `git worktree remove {at}` takes the sandbox away",
                checkout.display()
            ));
        }
        repositories.push(repository);
    }
    Ok(repositories)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Removes a folder that is empty by now, unless there is something in it that is no sandbox of the plan.
fn remove_empty(folder: &Path) -> Result<(), String> {
    match fs::remove_dir(folder) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(format!("{} cannot be removed: {e}", bytes_in(folder))),
    }
}

fn bytes_in(folder: &Path) -> String {
    format!("what is in it ({})", bytes(size_of(folder)))
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found
}

/// Bytes of a file, or of all files below a directory; links are not followed.
fn size_of(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => children(path).iter().map(|child| size_of(child)).sum(),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
