//! What is known of all open plans at one moment, brought forward by events alone, so that following a plan of ten
//! thousand decisions costs as little as following a small one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents_domain::event::Event;
use agents_domain::ids::{PlanId, ResourceId};
use agents_domain::plan::{Awaiting, AwaitingKind, Phase, State};
use agents_engine::operations::plan::PendingDecision;
use serde::Deserialize;
use serde_json::Value;

use crate::requests::entity::Names;
use crate::session::Folder;

/// A file of a resource: the resource and the path in it.
pub(crate) type FileKey = (ResourceId, String);

/// The world after one event. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    /// The last event that counts.
    pub sequence: i64,
    /// What is registered.
    pub registry: Arc<Registry>,
    /// What is registered, by its names.
    pub names: Arc<Names>,
    /// What waits for a person.
    pub questions: Arc<Questions>,
    /// Plans that are neither applied nor cancelled.
    pub plans: BTreeMap<PlanId, Arc<OpenPlan>>,
    /// Plans that went wrong over files.
    pub troubles: BTreeMap<PlanId, Arc<Trouble>>,
    /// What the validations of open plans said; plans without any are left out.
    pub checks: BTreeMap<PlanId, Arc<Checks>>,
    /// What broke, or would have broken, invariants of open plans since they last decided anew.
    pub violations: BTreeMap<PlanId, Arc<Vec<Violated>>>,
}

/// Resources with a place on disk, and the projects that link them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Registry {
    pub roots: Vec<(ResourceId, PathBuf)>,
    pub projects: HashMap<String, Vec<ResourceId>>,
}

/// Decisions that wait, found by the files they are about.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    decisions: Vec<PendingDecision>,
    /// Per file the decision and which of its resources it is.
    places: HashMap<FileKey, Vec<(usize, usize)>>,
}

/// A plan that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenPlan {
    pub action: String,
    /// Names of the projects, separated by commas.
    pub project: String,
    pub phase: Phase,
    pub state: State,
    pub awaiting: Option<Waits>,
    pub failure: Option<String>,
}

/// What a plan waits for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waits {
    pub kind: AwaitingKind,
    /// Empty where only the kind is known.
    pub question: String,
}

/// What went wrong, and in which files.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trouble {
    pub state: State,
    pub message: String,
    pub files: Vec<FileKey>,
}

/// What the validations of a plan said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checks {
    pub passed: usize,
    pub total: usize,
    /// Places in files that those that failed point at.
    pub failures: Vec<FailedAt>,
}

/// A place that a failed validation points at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FailedAt {
    pub file: FileKey,
    /// 0-based.
    pub line: u32,
    pub message: String,
    pub validation: String,
    /// It must pass before the plan can be applied.
    pub required: bool,
}

/// A place where a write broke an invariant, or would have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Violated {
    pub file: FileKey,
    /// 0-based.
    pub line: u32,
    /// The sentence.
    pub invariant: String,
    pub evidence: String,
    /// The write was refused; else it is in the sandbox.
    pub refused: bool,
}

/// What some events changed, for whoever must be told.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Plans that are somewhere else now, or whose change set is another.
    pub plans: BTreeSet<PlanId>,
    /// Plans that are to be looked up.
    pub unknown: BTreeSet<PlanId>,
    /// Plans whose validations are to be looked up.
    pub checks: BTreeSet<PlanId>,
    /// Plans that ended, as they ended.
    pub ended: BTreeMap<PlanId, Arc<OpenPlan>>,
    /// Files that plans wrote in their sandboxes.
    pub files: HashSet<FileKey>,
    /// Any line of any file may have another decision behind it.
    pub attribution: bool,
    /// Something was registered, changed or removed.
    pub registered: bool,
    /// The decisions that wait are others.
    pub questions: bool,
    /// The last word of each plan's worker.
    pub progress: BTreeMap<PlanId, Step>,
}

/// How far a worker is with a phase.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Step {
    #[serde(default)]
    pub label: String,
    #[serde(default)]
    pub done: Option<u64>,
    #[serde(default)]
    pub total: Option<u64>,
}

/// `from` and `to` of a state change.
#[derive(Deserialize)]
struct Point {
    phase: Phase,
    state: State,
}

impl OpenPlan {
    /// A worker is at it, or should be.
    pub fn is_running(&self) -> bool {
        self.state == State::Processing && self.awaiting.is_none()
    }

    /// `plan apply` would be accepted: Execute is done and nothing else is asked.
    pub fn can_be_applied(&self) -> bool {
        let only_apply = self.awaiting.as_ref().is_none_or(|waits| waits.kind == AwaitingKind::ApplyApproval);
        self.phase == Phase::Execute && self.state == State::Complete && only_apply
    }
}

impl From<&Awaiting> for Waits {
    fn from(awaiting: &Awaiting) -> Self {
        Self { kind: awaiting.kind, question: awaiting.question.clone() }
    }
}

impl Questions {
    pub fn new(decisions: Vec<PendingDecision>) -> Self {
        let mut places: HashMap<FileKey, Vec<(usize, usize)>> = HashMap::new();
        for (at, decision) in decisions.iter().enumerate() {
            for (nth, place) in decision.resources.iter().enumerate() {
                places.entry((place.resource_id, place.path.clone())).or_default().push((at, nth));
            }
        }
        Self { decisions, places }
    }

    /// The files they are about.
    pub fn files(&self) -> impl Iterator<Item = &FileKey> {
        self.places.keys()
    }

    /// Those about a file, with the number of the place in it.
    pub fn at(&self, file: &FileKey) -> impl Iterator<Item = (&PendingDecision, usize)> {
        let found = self.places.get(file).into_iter().flatten();
        found.filter_map(|(at, nth)| Some((self.decisions.get(*at)?, *nth)))
    }
}

impl Registry {
    /// The file of a resource that a path names, in the innermost resource that holds it.
    pub fn place(&self, path: &Path) -> Option<FileKey> {
        let holds = |(id, root): &(ResourceId, PathBuf)| {
            let rest = path.strip_prefix(root).ok()?;
            Some((root.components().count(), *id, slashes(rest)))
        };
        let (_, id, rest) = self.roots.iter().filter_map(holds).max_by_key(|(depth, ..)| *depth)?;
        Some((id, rest))
    }

    /// Where a file of a resource is.
    pub fn path(&self, (resource, path): &FileKey) -> Option<PathBuf> {
        let (_, root) = self.roots.iter().find(|(id, _)| id == resource)?;
        Some(root.join(path))
    }
}

fn slashes(path: &Path) -> String {
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

impl World {
    /// Whether a plan has to do with one of the workspace folders. All have for a client without folders.
    pub fn concerns(&self, plan: &OpenPlan, folders: &[Folder]) -> bool {
        let roots = plan.project.split(", ").filter_map(|name| self.registry.projects.get(name)).flatten();
        let mut paths =
            roots.filter_map(|id| self.registry.roots.iter().find(|(root, _)| root == id)).peekable();
        let folders: Vec<&Path> = folders.iter().filter_map(|folder| folder.path.as_deref()).collect();
        if folders.is_empty() || paths.peek().is_none() {
            return true;
        }
        paths.any(|(_, path)| folders.iter().any(|f| path.starts_with(f) || f.starts_with(path)))
    }

    /// Takes one event in; what it changed is added to `changes`.
    pub fn apply(&mut self, event: &Event, changes: &mut Changes) {
        self.sequence = event.sequence;
        changes.registered |= matches!(event.event_type.as_str(), "registry.changed" | "entity.deleted");
        let Some(plan) = event.plan_id else { return };
        let details = &event.details;
        self.note_violation(plan, event);
        match event.event_type.as_str() {
            "plan.created" => {
                changes.unknown.insert(plan);
            }
            "plan.state_changed" => self.move_plan(plan, details, changes),
            "plan.errored" => {
                let message = details.pointer("/failure/message").and_then(Value::as_str);
                self.edit(plan, |open| open.failure = message.map(str::to_owned));
                changes.plans.insert(plan);
            }
            "plan.progress" => {
                changes.progress.insert(plan, Step::deserialize(details).unwrap_or_default());
            }
            "decision.created" => {
                changes.questions |= details.get("pending").and_then(Value::as_bool).unwrap_or(true);
            }
            "decision.superseded" => {
                changes.questions = true;
                changes.attribution = true;
            }
            "validation.passed" | "validation.failed" => {
                changes.checks.insert(plan);
                changes.plans.insert(plan);
            }
            "resource.modified" => {
                changes.plans.insert(plan);
                match written(details) {
                    Some(file) => drop(changes.files.insert(file)),
                    None => changes.attribution = true,
                }
            }
            "sandbox.rolled_back" => {
                changes.plans.insert(plan);
                changes.attribution = true;
            }
            _ => {}
        }
    }

    /// Takes in what an event says of broken invariants; those of a plan that decides anew, or ended, are over.
    pub fn note_violation(&mut self, plan: PlanId, event: &Event) {
        match event.event_type.as_str() {
            "invariant.violated" => {
                if let Some(violated) = violated(&event.details) {
                    let known = Arc::make_mut(self.violations.entry(plan).or_default());
                    if !known.contains(&violated) {
                        known.push(violated);
                    }
                }
            }
            "plan.state_changed" => {
                let to = event.details.get("to").and_then(|to| Point::deserialize(to).ok());
                let over = |to: &Point| {
                    (to.phase, to.state) == (Phase::Strategize, State::Queued)
                        || matches!(to.state, State::Applied | State::Cancelled)
                };
                if to.as_ref().is_some_and(over) {
                    self.violations.remove(&plan);
                }
            }
            _ => {}
        }
    }

    fn move_plan(&mut self, plan: PlanId, details: &Value, changes: &mut Changes) {
        changes.plans.insert(plan);
        changes.questions = true;
        if self.checks.contains_key(&plan) {
            changes.checks.insert(plan);
        }
        let to = details.get("to").and_then(|to| Point::deserialize(to).ok());
        let (Some(to), true) = (to, self.plans.contains_key(&plan)) else {
            changes.unknown.insert(plan);
            return;
        };
        let awaiting =
            details.get("awaiting").and_then(|a| Option::<Awaiting>::deserialize(a).ok()).flatten();
        self.edit(plan, |open| {
            (open.phase, open.state) = (to.phase, to.state);
            open.awaiting = awaiting.as_ref().map(Waits::from);
            if !matches!(to.state, State::Errored | State::Constrained) {
                open.failure = None;
            }
        });
        if matches!(to.state, State::Applied | State::Cancelled) {
            changes.attribution = true;
            changes.ended.extend(self.plans.remove(&plan).map(|open| (plan, open)));
        }
    }

    fn edit(&mut self, plan: PlanId, edit: impl FnOnce(&mut OpenPlan)) {
        if let Some(open) = self.plans.get_mut(&plan) {
            edit(Arc::make_mut(open));
        }
    }
}

fn violated(details: &Value) -> Option<Violated> {
    let text = |key: &str| details.get(key)?.as_str().map(str::to_owned);
    let line = details.get("line").and_then(Value::as_u64).unwrap_or(1);
    Some(Violated {
        file: (text("resource_id")?.parse().ok()?, text("path")?),
        line: u32::try_from(line).unwrap_or(u32::MAX).saturating_sub(1),
        invariant: text("text")?,
        evidence: text("evidence")?,
        refused: text("tool_name").is_some(),
    })
}

fn written(details: &Value) -> Option<FileKey> {
    let resource = details.get("resource_id")?.as_str()?.parse().ok()?;
    Some((resource, details.get("sandbox_path")?.as_str()?.to_owned()))
}

/// The beginning of a plan's id, as lists show it.
pub(crate) fn short(plan: PlanId) -> String {
    plan.to_string().chars().take(8).collect()
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;
