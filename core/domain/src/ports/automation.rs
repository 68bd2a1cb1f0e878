//! What the store keeps for automation: profiles people register, computed confidences, and what failed before.

use super::model::RecordedTrace;
use super::store::StoreResult;
use crate::decision::DecisionType;
use crate::failure::{FailurePattern, FailureRecord};
use crate::ids::{DecisionId, PlanId};
use crate::plan::gates::ComputedConfidence;
use crate::profile::RegisteredProfile;

/// What became of earlier decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrackRecord {
    /// Those that stand, or that a person confirmed.
    pub stood: u32,
    /// All of them, those that were overridden, corrected or taken back too.
    pub all: u32,
}

/// Reading what automation rests on.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait AutomationReads {
    fn automation_profile(&self, name: &str) -> StoreResult<Option<RegisteredProfile>>;
    /// By name.
    fn automation_profiles(&self) -> StoreResult<Vec<RegisteredProfile>>;
    /// The confidences computed for a plan's decisions, superseded ones too.
    fn confidences(&self, plan: PlanId) -> StoreResult<Vec<(DecisionId, ComputedConfidence)>>;
    /// Decisions recorded under a key by other plans; those that wait are left out.
    fn track_record(
        &self,
        other_than: PlanId,
        decision_type: DecisionType,
        key: &str,
    ) -> StoreResult<TrackRecord>;
    /// US dollars of a root plan and all plans of its tree.
    fn tree_cost(&self, root: PlanId) -> StoreResult<f64>;
    /// What failed in a plan, in the order it did.
    fn failures(&self, plan: PlanId) -> StoreResult<Vec<FailureRecord>>;
    /// What failed in any plan by its shape, most often first, at most `limit`.
    fn failure_patterns(&self, limit: usize) -> StoreResult<Vec<FailurePattern>>;
    /// The calls of models that were made for a plan, in the order they ended.
    fn model_traces(&self, plan: PlanId) -> StoreResult<Vec<RecordedTrace>>;
}

/// Writing it. `insert_*` of a name that exists is [`StoreError::Duplicate`](super::store::StoreError::Duplicate).
#[allow(missing_docs, reason = "the signatures say it")]
pub trait AutomationWrites {
    fn insert_automation_profile(&self, profile: &RegisteredProfile) -> StoreResult<()>;
    fn update_automation_profile(&self, profile: &RegisteredProfile) -> StoreResult<()>;
    fn delete_automation_profile(&self, name: &str) -> StoreResult<()>;
    /// Of a decision that is recorded.
    fn insert_confidence(&self, decision: DecisionId, computed: &ComputedConfidence) -> StoreResult<()>;
    fn insert_failure(&self, failure: &FailureRecord) -> StoreResult<()>;
    fn insert_model_trace(&self, trace: &RecordedTrace) -> StoreResult<()>;
}
