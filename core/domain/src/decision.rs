//! Decisions: every choice a plan makes, why, from what, and what hangs on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::ids::{DecisionId, PlanId, ResourceId};
use crate::profile::Gate;
use crate::text::Range;

/// The eleven kinds of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the specification's; who may record each is in `creator`")]
pub enum DecisionType {
    PromptDefinition,
    InvariantEnforced,
    StrategyChoice,
    ImplementationChoice,
    ResourceSelection,
    SubplanSpawn,
    SubplanParallelSpawn,
    ToolInvocation,
    ErrorRecovery,
    ValidationResponse,
    UserIntervention,
}

impl DecisionType {
    /// Every kind.
    pub const ALL: [DecisionType; 11] = [
        Self::PromptDefinition,
        Self::InvariantEnforced,
        Self::StrategyChoice,
        Self::ImplementationChoice,
        Self::ResourceSelection,
        Self::SubplanSpawn,
        Self::SubplanParallelSpawn,
        Self::ToolInvocation,
        Self::ErrorRecovery,
        Self::ValidationResponse,
        Self::UserIntervention,
    ];

    /// Its name in data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PromptDefinition => "prompt_definition",
            Self::InvariantEnforced => "invariant_enforced",
            Self::StrategyChoice => "strategy_choice",
            Self::ImplementationChoice => "implementation_choice",
            Self::ResourceSelection => "resource_selection",
            Self::SubplanSpawn => "subplan_spawn",
            Self::SubplanParallelSpawn => "subplan_parallel_spawn",
            Self::ToolInvocation => "tool_invocation",
            Self::ErrorRecovery => "error_recovery",
            Self::ValidationResponse => "validation_response",
            Self::UserIntervention => "user_intervention",
        }
    }

    /// The gate such a decision of an actor passes or waits at; `None` for those the engine records.
    pub fn gate(self) -> Option<Gate> {
        match self {
            Self::PromptDefinition | Self::UserIntervention | Self::InvariantEnforced => None,
            Self::StrategyChoice
            | Self::SubplanSpawn
            | Self::SubplanParallelSpawn
            | Self::ResourceSelection => Some(Gate::StrategyDecision),
            Self::ImplementationChoice
            | Self::ToolInvocation
            | Self::ErrorRecovery
            | Self::ValidationResponse => Some(Gate::ExecutionDecision),
        }
    }

    /// Whether an actor may record it, in which phase (`true`: Strategize, `false`: Execute).
    pub fn actor_may_record(self, strategize: bool) -> bool {
        match self {
            Self::PromptDefinition | Self::UserIntervention | Self::InvariantEnforced => false,
            Self::StrategyChoice | Self::SubplanSpawn | Self::SubplanParallelSpawn => strategize,
            Self::ResourceSelection => true,
            Self::ImplementationChoice
            | Self::ToolInvocation
            | Self::ErrorRecovery
            | Self::ValidationResponse => !strategize,
        }
    }
}

/// One of the options that were considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    /// Its text; options of one decision differ.
    pub option: String,
    /// What it would mean, or why it was not taken.
    #[serde(default)]
    pub description: Option<String>,
}

/// A place a decision is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRef {
    /// The resource.
    pub resource_id: ResourceId,
    /// The file in it.
    pub path: String,
    /// Where in the file, as it was when the decision was made.
    pub range: Option<Range>,
    /// The symbol around it, such as `Class.method`.
    #[serde(default)]
    pub symbol: Option<String>,
    /// What is there, such as a diagnostic's message.
    #[serde(default)]
    pub note: Option<String>,
}

/// What a decision was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextSnapshot {
    /// SHA-256 of the stored context document.
    pub hot_context_hash: String,
    /// Where it is stored: its name in the blob store.
    pub hot_context_ref: String,
    /// The places looked at.
    pub relevant_resources: Vec<ResourceRef>,
    /// The actor's state at that moment: its name in the blob store.
    pub actor_state_ref: String,
}

/// Where a decision stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStatus {
    /// In force.
    Active,
    /// A proposal that waits for a person.
    Pending,
    /// Replaced by another.
    Superseded,
}

/// Who let a decision pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Its confidence was enough for the profile.
    Automatic,
    /// A person started the phase by command, which approves its decisions in advance.
    ByCommand,
    /// A person answered it.
    ByPerson,
    /// Recorded by the engine itself.
    System,
}

/// A recorded decision. Rows are never deleted; only `superseded_by`, `pending` and the impact fields change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Its id.
    pub decision_id: DecisionId,
    /// The plan it belongs to.
    pub plan_id: PlanId,
    /// Its structural parent; `None` for the root only.
    pub parent_decision_id: Option<DecisionId>,
    /// Strictly rising per plan.
    pub sequence_number: u32,
    /// The actor's own stable name for it within the plan; an answer inherits the key of what it answers.
    pub key: Option<String>,
    /// Its kind.
    pub decision_type: DecisionType,
    /// What was to be decided.
    pub question: String,
    /// What was chosen.
    pub chosen_option: String,
    /// All options, the chosen one among them, in the order shown to people.
    pub alternatives: Vec<Alternative>,
    /// 0.0 to 1.0, when the actor gave one.
    pub confidence: Option<f64>,
    /// Why.
    pub rationale: String,
    /// The actor's own reasoning.
    pub actor_reasoning: Option<String>,
    /// From what.
    pub context: ContextSnapshot,
    /// Decisions it was made from.
    pub depends_on: Vec<DecisionId>,
    /// It waits for a person.
    pub pending: bool,
    /// Who let it pass.
    pub approval: Option<Approval>,
    /// Files it produced or changed.
    pub artifacts: Vec<String>,
    /// Child plans that hang on it.
    pub downstream_plans: Vec<PlanId>,
    /// The decision it corrects.
    pub corrects_decision_id: Option<DecisionId>,
    /// Why it was corrected.
    pub correction_reason: Option<String>,
    /// What replaced it.
    pub superseded_by: Option<DecisionId>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Decision {
    /// Where it stands.
    pub fn status(&self) -> DecisionStatus {
        match (self.superseded_by, self.pending) {
            (Some(_), _) => DecisionStatus::Superseded,
            (None, true) => DecisionStatus::Pending,
            (None, false) => DecisionStatus::Active,
        }
    }
}

/// The structural parent of an active decision within the active tree: the nearest ancestor that is not superseded.
///
/// `all` holds every decision of the plan. A superseded root stands for what replaced it.
pub fn effective_parent(decision: &Decision, all: &[Decision]) -> Option<DecisionId> {
    let find = |id: DecisionId| all.iter().find(|d| d.decision_id == id);
    let mut parent = decision.parent_decision_id;
    // A chain is no longer than the number of decisions; the bound keeps damaged data from looping.
    for _ in 0..=all.len() {
        let candidate = find(parent?)?;
        match candidate.superseded_by {
            None => return Some(candidate.decision_id),
            Some(replacement) if replacement == decision.decision_id => parent = candidate.parent_decision_id,
            Some(replacement) if candidate.parent_decision_id.is_none() => parent = Some(replacement),
            Some(_) => parent = candidate.parent_decision_id,
        }
    }
    None
}
