//! Corrections of decisions, and what taking a plan back to an earlier point is made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::changes::Change;
use crate::decision::Decision;
use crate::ids::{ChangeId, CheckpointId, CorrectionId, DecisionId, PlanId, ResourceId};
use crate::plan::children::Spawn;
use crate::plan::{Guidance, Phase};

/// How a decision is corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CorrectionMode {
    /// It is replaced, and what hung on it is taken back and decided anew.
    Revert,
    /// It stays, and a child plan adds to it.
    Append,
}

/// Where a correction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CorrectionState {
    /// Asked for.
    Pending,
    /// What hung on the decision is being taken back, or decided anew.
    Executing,
    /// The phase that was corrected is complete again.
    Completed,
    /// Something could not be taken back, or the phase failed.
    Failed,
}

/// A correction of one decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectionAttempt {
    /// Its id.
    pub correction_id: CorrectionId,
    /// The plan.
    pub plan_id: PlanId,
    /// The decision that is corrected.
    pub original_decision_id: DecisionId,
    /// What replaces it, or was added to it.
    pub new_decision_id: DecisionId,
    /// How.
    pub mode: CorrectionMode,
    /// What the person said.
    pub guidance: String,
    /// Where it stands.
    pub state: CorrectionState,
    /// The phase the decision was made in.
    pub phase: Phase,
    /// The decisions that fell, the corrected one first among them.
    pub affected: Vec<DecisionId>,
    /// The files as they were before it: a list of [`FileState`] in the blob store.
    pub archive: Option<String>,
    /// The files as they were when the work was complete again, in the same way.
    pub outcome: Option<String>,
    /// The plan that adds the work, for an appended correction.
    pub child_plan_id: Option<PlanId>,
    /// Why it failed.
    pub failure: Option<String>,
    /// Who asked for it.
    pub created_by: String,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it was completed or failed.
    pub completed_at: Option<Timestamp>,
}

/// The content of a file at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// The resource.
    pub resource_id: ResourceId,
    /// Relative to its root, with `/`.
    pub path: String,
    /// The content before the plan's first write, likewise.
    pub base: Option<String>,
    /// The content in the blob store; `None` when the file is not there.
    pub hash: Option<String>,
}

/// A plan being taken back to an earlier point: recorded before anything is changed, carried out by the plan's worker,
/// and forgotten in the transaction that settles it. Doing it twice comes to the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rewind {
    /// The plan.
    pub plan_id: PlanId,
    /// Why.
    pub cause: RewindCause,
    /// What becomes of the sandboxes; those that are not named stay as they are.
    pub resources: Vec<ResourceRewind>,
    /// Decisions to record, in this order; they get their sequence numbers when they are. The first of them supersedes
    /// `fallen`.
    pub recorded: Vec<Decision>,
    /// Decisions that do not stand any more.
    pub fallen: Vec<DecisionId>,
    /// Writes that are taken back.
    pub undone: Vec<ChangeId>,
    /// Writes as they stand now in place of taken-back ones, because what was before them is another text.
    pub rewritten: Vec<Change>,
    /// Tool calls that count as carried out, with the decision they are now under.
    pub calls: Vec<(i64, DecisionId)>,
    /// Decisions whose tool calls are to be carried out again, besides those of `fallen`.
    pub recalled: Vec<DecisionId>,
    /// Child plans that stand otherwise afterwards: what was taken in of them is taken in again, and what was made after
    /// the point returned to is only decided.
    pub spawns: Vec<Spawn>,
    /// Where the actor goes on.
    pub resume: ResumeAt,
    /// What the next step shall know.
    pub guidance: Option<Guidance>,
    /// What the plan shall do from now on, when its prompt was corrected.
    pub description: Option<String>,
}

/// Why a plan is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindCause {
    /// A decision is corrected.
    Correction(CorrectionId),
    /// A person returns to a checkpoint.
    Rollback(CheckpointId),
}

/// What becomes of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceRewind {
    /// The resource.
    pub resource_id: ResourceId,
    /// To what.
    pub to: RewindTo,
}

/// What a sandbox is brought to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindTo {
    /// All of it as in a commit.
    Commit(String),
    /// These files as given (by their blob; `None` removes), the rest as it is.
    Files(Vec<(String, Option<String>)>),
}

/// Where the actor of a phase goes on after a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeAt {
    /// The phase.
    pub phase: Phase,
    /// The stored run; `None` for the beginning of the phase.
    pub run: Option<String>,
}

/// A tool call that was carried out; asked for again under a decision that still stands, it is answered from here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Given by the store, rising.
    pub id: i64,
    /// The plan.
    pub plan_id: PlanId,
    /// As the actor named it.
    pub call_id: String,
    /// The decision behind it.
    pub decision_id: DecisionId,
    /// The tool.
    pub tool: String,
    /// SHA-256 of its arguments.
    pub args_hash: String,
    /// What it returned.
    pub result: serde_json::Value,
    /// When.
    pub created_at: Timestamp,
    /// What it did that no sandbox holds and taking it back does not undo, in words such as `network`.
    #[serde(default)]
    pub side_effects: Vec<String>,
}

/// Everything of Execute that stood at a checkpoint, besides the sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckpointMark {
    /// The active decisions.
    pub decisions: Vec<DecisionId>,
    /// The writes, in order.
    pub changes: Vec<ChangeId>,
    /// The tool calls.
    pub calls: Vec<i64>,
    /// The child plans.
    pub spawns: Vec<Spawn>,
    /// The actor's run, from which what is not done yet is done and the rest answered from the record: a blob; `None` at
    /// the beginning of Execute.
    pub run: Option<String>,
}
