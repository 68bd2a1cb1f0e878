//! Checkpoints: points of a plan's sandbox one can return to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::ids::{CheckpointId, DecisionId, PlanId, ResourceId};

/// Why a checkpoint was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointKind {
    /// The untouched base, when the sandbox was made.
    Base,
    /// Before a group of writes.
    PreWrite,
    /// After a group of writes under one decision.
    Decision,
    /// After a child plan was started.
    SubplanSpawn,
    /// When Execute failed.
    OnError,
    /// Asked for by a person.
    Manual,
}

/// A recorded checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// Its id.
    pub checkpoint_id: CheckpointId,
    /// The plan.
    pub plan_id: PlanId,
    /// The decision whose writes it closes, if any.
    pub decision_id: Option<DecisionId>,
    /// The sandboxed resource.
    pub resource_id: ResourceId,
    /// Why.
    pub kind: CheckpointKind,
    /// For people: what was done up to here.
    pub label: String,
    /// The sandbox's commit.
    pub commit: String,
    /// When.
    pub created_at: Timestamp,
}
