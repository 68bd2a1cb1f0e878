//! The one shared truth of all processes: repositories, transactions, events, blobs and leases.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::Action;
use crate::changes::Change;
use crate::checkpoint::Checkpoint;
use crate::correction::{CheckpointMark, CorrectionAttempt, Rewind, ToolCall};
use crate::decision::Decision;
use crate::event::{Event, NewEvent};
use crate::ids::{ChangeId, CheckpointId, CorrectionId, DecisionId, InvariantId, PlanId, ResourceId};
use crate::invariant::{Invariant, Reconciled, Scope};
use crate::language_server::LanguageServerDefinition;
use crate::plan::children::Spawn;
use crate::plan::{Phase, Plan, State};
use crate::ports::actor::{Observation, Request, StepOutcome};
use crate::ports::actor_store::{ActorReads, ActorWrites};
pub use crate::ports::automation::{AutomationReads, AutomationWrites};
use crate::ports::skill_store::{SkillReads, SkillWrites};
use crate::ports::tool_store::{ToolReads, ToolWrites};
use crate::ports::validation_store::{ValidationReads, ValidationWrites};
use crate::project::Project;
use crate::resource::Resource;
use crate::{QualifiedName, Timestamp};

/// Why the store refused or failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else changed the row since it was read.
    #[error("{0} was changed by another process in the meantime")]
    Conflict(String),
    /// A unique name or key is taken.
    #[error("{0} exists already")]
    Duplicate(String),
    /// A later worker holds the plan; this one must stop.
    #[error("another worker took over plan {0}")]
    LeaseLost(PlanId),
    /// The database was written by a newer version.
    #[error(
        "the database has schema version {found}, this program knows up to {known}; use the newer program, or another --data-dir"
    )]
    Newer {
        /// Of the database.
        found: i64,
        /// Of this program.
        known: i64,
    },
    /// The file is not a sound database; it is left as it is.
    #[error(
        "the database {path} is damaged: {problem}; it was left untouched: move it away or restore a backup"
    )]
    Damaged {
        /// Of the database.
        path: String,
        /// What SQLite says.
        problem: String,
    },
    /// Other processes kept the database locked for too long.
    #[error("the database is locked by another process; try again")]
    Busy,
    /// The disk is full.
    #[error("the disk is full; free space in {0} and try again")]
    DiskFull(String),
    /// The file or directory cannot be read or written.
    #[error("{path}: {problem}")]
    Io {
        /// Which.
        path: String,
        /// Why.
        problem: String,
    },
    /// Anything else; a defect of ours.
    #[error("{0}")]
    Other(String),
}

/// What helps where a data directory cannot be used.
pub const ELSEWHERE: &str = "choose another data directory: --data-dir <PATH>, or set CLEVERAGENTS_DATA_DIR";

impl From<StoreError> for crate::Error {
    fn from(error: StoreError) -> Self {
        use crate::ErrorKind;
        let kind = match &error {
            StoreError::Conflict(_) | StoreError::LeaseLost(_) => ErrorKind::InvalidState,
            StoreError::Duplicate(_) => ErrorKind::AlreadyExists,
            StoreError::Io { .. } => ErrorKind::Io,
            _ => ErrorKind::Database,
        };
        let told = Self::new(kind, error.to_string());
        match error {
            StoreError::Io { .. } | StoreError::DiskFull(_) => told.suggest(ELSEWHERE),
            _ => told,
        }
    }
}

/// What store calls return.
pub type StoreResult<T> = Result<T, StoreError>;

/// The store. All calls are synchronous and short.
pub trait Store: Send + Sync {
    /// Runs `f` on one consistent view.
    fn read(&self, f: &mut dyn FnMut(&dyn Reader) -> StoreResult<()>) -> StoreResult<()>;

    /// Runs `f` in one immediate transaction; an error rolls everything back.
    fn write(&self, f: &mut dyn FnMut(&dyn Writer) -> StoreResult<()>) -> StoreResult<()>;

    /// A watch on changes by any process.
    fn watch(&self) -> StoreResult<Box<dyn Watch>>;

    /// Stores bytes under their SHA-256 (lower-case hex), durably before it returns; storing twice is fine.
    fn put_blob(&self, bytes: &[u8]) -> StoreResult<String>;

    /// [`put_blob`](Self::put_blob) of each, in order, made durable together; far faster than one by one.
    fn put_blobs(&self, contents: &[&[u8]]) -> StoreResult<Vec<String>> {
        contents.iter().map(|bytes| self.put_blob(bytes)).collect()
    }

    /// Bytes stored under a hash, checked against it.
    fn blob(&self, hash: &str) -> StoreResult<Option<Vec<u8>>>;

    /// Takes the plan's exclusive lock and the next lease epoch, or `None` when a live worker has it.
    fn try_lease(&self, plan: PlanId) -> StoreResult<Option<Box<dyn Lease>>>;

    /// Copies everything that is searched, as it is now, into a new file for backups; blobs stay where they are.
    fn copy_to(&self, path: &Path) -> StoreResult<()>;

    /// Whether a live worker holds the plan.
    fn is_leased(&self, plan: PlanId) -> StoreResult<bool>;
}

/// A held lease; dropping it (or the death of the process) frees the plan.
pub trait Lease: Send + Sync {
    /// The epoch to give to [`PlanWrites::check_lease`].
    fn epoch(&self) -> u64;
}

/// Tells whether anything changed; polls `PRAGMA data_version` on a connection of its own.
pub trait Watch: Send {
    /// Whether something was written by another connection since the last call.
    fn changed(&mut self) -> StoreResult<bool>;
}

/// Typed transactions over [`Store`].
pub trait StoreExt: Store {
    /// [`Store::read`] with a result.
    fn view<T>(&self, mut f: impl FnMut(&dyn Reader) -> StoreResult<T>) -> StoreResult<T> {
        let mut out = None;
        self.read(&mut |reader| {
            out = Some(f(reader)?);
            Ok(())
        })?;
        out.ok_or_else(|| StoreError::Other("the store did not run the read".to_owned()))
    }

    /// [`Store::write`] with a result.
    fn transact<T>(&self, mut f: impl FnMut(&dyn Writer) -> StoreResult<T>) -> StoreResult<T> {
        let mut out = None;
        self.write(&mut |writer| {
            out = Some(f(writer)?);
            Ok(())
        })?;
        out.ok_or_else(|| StoreError::Other("the store did not run the write".to_owned()))
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

/// Everything that can be read.
pub trait Reader:
    PlanReads
    + ChildReads
    + DecisionReads
    + ChangeReads
    + CorrectionReads
    + RegistryReads
    + InvariantReads
    + ValidationReads
    + ActorReads
    + SkillReads
    + ToolReads
    + EventReads
    + AutomationReads
{
}

/// Everything that can be read and written.
pub trait Writer:
    Reader
    + PlanWrites
    + ChildWrites
    + DecisionWrites
    + ChangeWrites
    + CorrectionWrites
    + RegistryWrites
    + InvariantWrites
    + ValidationWrites
    + ActorWrites
    + SkillWrites
    + ToolWrites
    + EventWrites
    + AutomationWrites
{
}

/// Which plans to list; unset fields do not filter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanFilter {
    /// Phase.
    pub phase: Option<Phase>,
    /// State.
    pub state: Option<State>,
    /// Waiting for a person (`true`) or not.
    pub awaiting: Option<bool>,
    /// One of the plan's projects.
    pub project: Option<String>,
    /// Namespace of one of the plan's projects.
    pub namespace: Option<String>,
    /// The action.
    pub action: Option<String>,
}

/// A plan in a list, read from columns only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "fields of `Plan`")]
pub struct PlanRow {
    pub plan_id: PlanId,
    pub parent_plan_id: Option<PlanId>,
    pub phase: Phase,
    pub state: State,
    pub awaiting: Option<String>,
    pub action: String,
    pub projects: Vec<String>,
    pub attempt: u32,
    pub created_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}

/// Plans and actor runs.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait PlanReads {
    fn plan(&self, id: PlanId) -> StoreResult<Option<Plan>>;
    /// Newest first; constant work per row.
    fn plan_rows(&self, filter: &PlanFilter) -> StoreResult<Vec<PlanRow>>;
    /// Full ids that start with an upper-case prefix, at most `limit`.
    fn plans_starting(&self, prefix: &str, limit: usize) -> StoreResult<Vec<PlanId>>;
    /// Plans that want a worker: queued or processing, and not awaiting a person, or about to be taken back. A child plan
    /// that is not taken back wants one only while it is applied, or when its parent is; before that the root's has it.
    fn runnable_plans(&self) -> StoreResult<Vec<PlanId>>;
    /// Root plans that are worked on: processing, and not awaiting a person.
    fn processing_count(&self) -> StoreResult<u32>;
    fn plans_of_action(&self, action: &QualifiedName) -> StoreResult<u32>;
    fn actor_run(&self, plan: PlanId, phase: Phase) -> StoreResult<Option<ActorRun>>;
    /// Plans not applied and not cancelled that use a resource.
    fn active_plans_of_resource(&self, resource: ResourceId) -> StoreResult<Vec<PlanId>>;
    /// Plans not applied and not cancelled on a project.
    fn active_plans_of_project(&self, project: &QualifiedName) -> StoreResult<Vec<PlanRow>>;
    /// Plans made, by the phase and state they are in, of an action: (completed, failed, last used).
    fn action_history(&self, action: &QualifiedName) -> StoreResult<ActionHistory>;
}

/// What became of an action's plans.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ActionHistory {
    pub plans: u32,
    pub applied: u32,
    pub errored: u32,
    pub active: u32,
    pub last_used: Option<Timestamp>,
    /// Mean milliseconds from creation to application of applied plans.
    pub mean_duration_ms: Option<u64>,
}

/// Changing plans.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait PlanWrites {
    fn insert_plan(&self, plan: &Plan) -> StoreResult<()>;
    /// Writes the plan when the row still has `expected` as `updated_at`; else [`StoreError::Conflict`].
    fn update_plan(&self, plan: &Plan, expected: Timestamp) -> StoreResult<()>;
    /// Fails with [`StoreError::LeaseLost`] unless `epoch` is the plan's present one.
    fn check_lease(&self, plan: PlanId, epoch: u64) -> StoreResult<()>;
    fn put_actor_run(&self, run: &ActorRun) -> StoreResult<()>;
    fn delete_actor_run(&self, plan: PlanId, phase: Phase) -> StoreResult<()>;
}

/// A phase's actor between two commits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActorRun {
    /// The plan.
    pub plan_id: PlanId,
    /// Strategize or Execute.
    pub phase: Phase,
    /// Steps taken.
    pub step: u32,
    /// The state the last step left.
    pub state: Value,
    /// The last step's requests.
    pub requests: Vec<Request>,
    /// How many of them are carried out.
    pub done: usize,
    /// What came of them.
    pub observations: Vec<Observation>,
    /// What the last step said of its end; acted on when all requests are done.
    pub outcome: StepOutcome,
    /// Sandbox commits before the first write under each decision key, per resource.
    pub group_starts: std::collections::BTreeMap<String, Vec<(ResourceId, String)>>,
    /// Retries of the present step after failures that pass.
    pub retries: u32,
    /// How often a checkpoint was restored to try the present step again.
    #[serde(default)]
    pub restores: u32,
    /// Workers in a row that died at the present step.
    pub lost_workers: u32,
    /// The run as it was before the present step, when that step records a decision: its name in the blob store.
    #[serde(default)]
    pub before: Option<String>,
    /// What people said that the steps so far have seen, by the decisions that hold it.
    #[serde(default)]
    pub heard: Vec<DecisionId>,
}

/// Child plans.
pub trait ChildReads {
    /// What a plan decided to hand on, in the order decided.
    fn spawns(&self, parent: PlanId) -> StoreResult<Vec<Spawn>>;
    /// The spawn a plan was made for; `None` for a root plan.
    fn spawn_of(&self, child: PlanId) -> StoreResult<Option<Spawn>>;
    /// The plans made by a plan, oldest first.
    fn child_rows(&self, parent: PlanId) -> StoreResult<Vec<PlanRow>>;
}

/// Changing child plans.
pub trait ChildWrites {
    /// Writes a spawn under its decision and call, or writes over it.
    fn put_spawn(&self, spawn: &Spawn) -> StoreResult<()>;
}

/// Decisions.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait DecisionReads {
    fn decision(&self, id: DecisionId) -> StoreResult<Option<Decision>>;
    /// All of a plan, superseded ones too, by sequence number.
    fn decisions(&self, plan: PlanId) -> StoreResult<Vec<Decision>>;
    fn decisions_starting(&self, prefix: &str, limit: usize) -> StoreResult<Vec<DecisionId>>;
    /// Decisions that wait for a person, of all plans that are not ended, oldest first.
    fn pending_decisions(&self) -> StoreResult<Vec<Decision>>;
}

/// Recording decisions; rows are never deleted.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait DecisionWrites {
    fn next_sequence(&self, plan: PlanId) -> StoreResult<u32>;
    /// Also writes its edges into `decision_dependencies`.
    fn insert_decision(&self, decision: &Decision) -> StoreResult<()>;
    /// `by` must exist; also clears `pending`.
    fn supersede(&self, decision: DecisionId, by: DecisionId) -> StoreResult<()>;
    /// Changes `pending` and `approval`.
    fn settle_decision(&self, decision: &Decision) -> StoreResult<()>;
    /// Adds to the impact fields (no duplicates).
    fn add_impact(&self, decision: DecisionId, artifacts: &[String], plans: &[PlanId]) -> StoreResult<()>;
}

/// Recorded writes and checkpoints.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait ChangeReads {
    /// In the order written; those taken back are left out.
    fn changes(&self, plan: PlanId) -> StoreResult<Vec<Change>>;
    /// Of one file (by its path at the time), newest plan first, in the order written within a plan.
    fn changes_of_path(&self, resource: ResourceId, path: &str) -> StoreResult<Vec<Change>>;
    /// Paths with changes in a resource, of any plan.
    fn changed_paths(&self, resource: ResourceId) -> StoreResult<Vec<String>>;
    fn checkpoints(&self, plan: PlanId) -> StoreResult<Vec<Checkpoint>>;
    fn checkpoint(&self, id: CheckpointId) -> StoreResult<Option<Checkpoint>>;
    /// Full ids whose ULID starts with an upper-case prefix, at most `limit`.
    fn checkpoints_starting(&self, prefix: &str, limit: usize) -> StoreResult<Vec<CheckpointId>>;
}

/// Recording writes and checkpoints.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait ChangeWrites {
    fn insert_change(&self, change: &Change) -> StoreResult<()>;
    /// Marks every change of the plan under a decision as taken back; the decision claims no artifact any more.
    fn undo_changes(&self, plan: PlanId, decision: DecisionId) -> StoreResult<()>;
    fn insert_checkpoint(&self, checkpoint: &Checkpoint) -> StoreResult<()>;
    /// Forgets a checkpoint; one that is not there is no error.
    fn delete_checkpoint(&self, checkpoint: CheckpointId) -> StoreResult<()>;
}

/// Corrections, plans that are being taken back, tool calls carried out, and what stood at checkpoints.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait CorrectionReads {
    /// Of a plan, in the order asked for.
    fn corrections(&self, plan: PlanId) -> StoreResult<Vec<CorrectionAttempt>>;
    fn correction(&self, id: CorrectionId) -> StoreResult<Option<CorrectionAttempt>>;
    fn corrections_starting(&self, prefix: &str, limit: usize) -> StoreResult<Vec<CorrectionId>>;
    /// The one that made a decision.
    fn correction_behind(&self, decision: DecisionId) -> StoreResult<Option<CorrectionAttempt>>;
    /// Those that are executing on any plan below a root.
    fn executing_corrections(&self, root: PlanId) -> StoreResult<Vec<CorrectionAttempt>>;
    fn rewind(&self, plan: PlanId) -> StoreResult<Option<Rewind>>;
    /// The plans that have one.
    fn rewinding(&self) -> StoreResult<Vec<PlanId>>;
    /// Those that stand, in the order carried out.
    fn tool_calls(&self, plan: PlanId) -> StoreResult<Vec<ToolCall>>;
    /// The ids of the standing writes and tool calls of a plan, in order, without what is in them.
    fn standing_ids(&self, plan: PlanId) -> StoreResult<(Vec<ChangeId>, Vec<i64>)>;
    /// The decisions behind calls, taken back or not, in the order of the ids given.
    fn call_decisions(&self, calls: &[i64]) -> StoreResult<Vec<DecisionId>>;
    /// What stood at a checkpoint.
    fn checkpoint_mark(&self, checkpoint: CheckpointId) -> StoreResult<Option<CheckpointMark>>;
    /// A recorded write, taken back or not.
    fn change(&self, id: ChangeId) -> StoreResult<Option<Change>>;
}

/// Changing them.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait CorrectionWrites {
    /// Inserts or replaces it.
    fn put_correction(&self, attempt: &CorrectionAttempt) -> StoreResult<()>;
    /// Inserts or replaces the plan's.
    fn put_rewind(&self, rewind: &Rewind) -> StoreResult<()>;
    fn delete_rewind(&self, plan: PlanId) -> StoreResult<()>;
    /// Its `id` is given by the store.
    fn insert_tool_call(&self, call: &ToolCall) -> StoreResult<()>;
    /// Marks every call of the plan under a decision as to be carried out again.
    fn undo_tool_calls(&self, plan: PlanId, decision: DecisionId) -> StoreResult<()>;
    /// Counts a call as carried out again, under another decision.
    fn reinstate_tool_call(&self, id: i64, decision: DecisionId) -> StoreResult<()>;
    /// Goes with its checkpoint.
    fn put_checkpoint_mark(&self, checkpoint: CheckpointId, mark: &CheckpointMark) -> StoreResult<()>;
    /// Marks one write as taken back.
    fn undo_change(&self, id: ChangeId) -> StoreResult<()>;
}

/// What people register.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait RegistryReads {
    fn action(&self, name: &QualifiedName) -> StoreResult<Option<Action>>;
    fn actions(&self) -> StoreResult<Vec<Action>>;
    fn language_server(&self, name: &QualifiedName) -> StoreResult<Option<RegisteredServer>>;
    fn language_servers(&self) -> StoreResult<Vec<RegisteredServer>>;
    fn project(&self, name: &QualifiedName) -> StoreResult<Option<Project>>;
    fn projects(&self) -> StoreResult<Vec<Project>>;
    fn resource(&self, id: ResourceId) -> StoreResult<Option<Resource>>;
    fn resource_named(&self, name: &QualifiedName) -> StoreResult<Option<Resource>>;
    fn resources_starting(&self, prefix: &str, limit: usize) -> StoreResult<Vec<ResourceId>>;
    /// All, children too, in the order registered.
    fn resources(&self) -> StoreResult<Vec<Resource>>;
}

/// A registered language server with the file it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisteredServer {
    /// What its file said.
    pub definition: LanguageServerDefinition,
    /// The file, as given.
    pub config_path: String,
    /// The file's text.
    pub source: String,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Registering and removing. `insert_*` of a name that exists is [`StoreError::Duplicate`].
#[allow(missing_docs, reason = "the signatures say it")]
pub trait RegistryWrites {
    fn insert_action(&self, action: &Action) -> StoreResult<()>;
    fn update_action(&self, action: &Action) -> StoreResult<()>;
    fn insert_language_server(&self, server: &RegisteredServer) -> StoreResult<()>;
    fn update_language_server(&self, server: &RegisteredServer) -> StoreResult<()>;
    fn delete_language_server(&self, name: &QualifiedName) -> StoreResult<()>;
    fn insert_project(&self, project: &Project) -> StoreResult<()>;
    /// Writes description and links.
    fn update_project(&self, project: &Project) -> StoreResult<()>;
    fn delete_project(&self, name: &QualifiedName) -> StoreResult<()>;
    /// Also links it to its parents.
    fn insert_resource(&self, resource: &Resource) -> StoreResult<()>;
    fn update_resource(&self, resource: &Resource) -> StoreResult<()>;
    fn delete_resource(&self, id: ResourceId) -> StoreResult<()>;
}

/// Invariants, in the order added.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait InvariantReads {
    fn invariant(&self, id: InvariantId) -> StoreResult<Option<Invariant>>;
    /// Of every scope.
    fn invariants(&self) -> StoreResult<Vec<Invariant>>;
    /// Attached to one place; `None` for global ones.
    fn invariants_of(&self, scope: Scope, target: Option<&str>) -> StoreResult<Vec<Invariant>>;
    fn reconciliation(&self, plan: PlanId) -> StoreResult<Option<Reconciliation>>;
}

/// Adding and removing invariants.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait InvariantWrites {
    fn insert_invariant(&self, invariant: &Invariant) -> StoreResult<()>;
    fn delete_invariant(&self, id: InvariantId) -> StoreResult<()>;
    /// All that are attached to one place; how many there were.
    fn delete_invariants_of(&self, scope: Scope, target: &str) -> StoreResult<usize>;
    /// Replaces what is there; the time stays that of the first.
    fn put_reconciliation(&self, reconciliation: &Reconciliation) -> StoreResult<()>;
}

/// How the invariants of a plan were reconciled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reconciliation {
    /// The plan.
    pub plan_id: PlanId,
    /// The actor that did it.
    pub reconciler: String,
    /// What came of it.
    pub result: Reconciled,
    /// When.
    pub created_at: Timestamp,
}

/// The outbox.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait EventReads {
    /// Events after a sequence number, oldest first.
    fn events_after(&self, sequence: i64, plan: Option<PlanId>, limit: usize) -> StoreResult<Vec<Event>>;
    fn last_event(&self) -> StoreResult<i64>;
    /// The request that the latest event of a plan is of.
    fn last_correlation(&self, plan: PlanId) -> StoreResult<Option<String>>;
    /// The latest `plan.progress` event of a plan.
    fn last_progress(&self, plan: PlanId) -> StoreResult<Option<Event>>;
    /// Newest first.
    fn audit(&self, plan: Option<PlanId>, limit: usize) -> StoreResult<Vec<AuditEntry>>;
}

/// Writing what happened.
pub trait EventWrites {
    /// Appends an event and gives it its sequence number and time.
    fn append_event(&self, event: &NewEvent, at: Timestamp) -> StoreResult<i64>;
    /// Appends an audit record.
    fn append_audit(&self, entry: &AuditEntry) -> StoreResult<()>;
}

/// Who did what, when, why; kept for good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Such as `plan_applied`.
    pub event_type: String,
    /// The plan.
    pub plan_id: Option<PlanId>,
    /// The project.
    pub project_name: Option<String>,
    /// The actor.
    pub actor_name: Option<String>,
    /// The person.
    pub user_identity: Option<String>,
    /// The facts.
    pub details: Value,
    /// When.
    pub created_at: Timestamp,
}
