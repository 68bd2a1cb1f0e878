//! `plan errors`: what went wrong, what helps, and what failed in the same way before.

use agents_domain::Result;
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::failure::{FailurePattern, FailureShape};
use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::plan::machine::{AllowedAction, Verb};
use agents_domain::plan::{AwaitingKind, Phase, Plan, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::confidence::PATTERNS;
use crate::{Engine, Operation, records};

/// Shows what went wrong in a plan, now and before.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// The plan's id or its beginning.
    pub plan: String,
}

/// What went wrong.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ErrorsOutput {
    pub plan_id: PlanId,
    pub phase: Phase,
    pub state: State,
    pub error_message: Option<String>,
    pub error_category: Option<String>,
    pub error_phase: Option<Phase>,
    pub retry_count: u32,
    pub max_retries: u32,
    pub is_retriable: bool,
    /// What the failure is about, or may help, as whoever failed said it.
    pub error_hints: Vec<String>,
    /// What may be done now, as whole commands.
    pub recovery_hints: Vec<RecoveryHint>,
    /// What failed earlier and was dealt with by a decision.
    pub history: Vec<PastError>,
    /// Everything that failed in the plan, in its order.
    pub failures: Vec<PastFailure>,
    /// What failed here and in the same way in other plans too.
    pub patterns: Vec<FailurePattern>,
}

/// What to do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RecoveryHint {
    pub action: String,
    pub message: String,
    pub cli_command: String,
}

/// A failure a decision dealt with.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct PastError {
    pub decision_id: DecisionId,
    #[serde(rename = "type")]
    pub decision_type: DecisionType,
    pub question: String,
    pub chosen: String,
    pub rationale: String,
    pub created: String,
}

/// A failure, and what was done about it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct PastFailure {
    pub phase: Phase,
    pub step: Option<String>,
    #[serde(flatten)]
    pub shape: FailureShape,
    pub message: String,
    /// What it is about, or may help.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    pub outcome: String,
    pub created: String,
}

impl Operation for Errors {
    const METHOD: &'static str = "plan/errors";
    const SUMMARY: &'static str = "Show what went wrong in a plan";
    type Output = ErrorsOutput;

    fn run(self, engine: &Engine) -> Result<ErrorsOutput> {
        let plan = engine.plan(&self.plan)?;
        let id = plan.plan_id;
        let (decisions, failures, patterns) =
            engine.view(|r| Ok((r.decisions(id)?, r.failures(id)?, r.failure_patterns(PATTERNS)?)))?;
        let failure = plan.failure.as_ref().filter(|_| failed(&plan));
        let here: Vec<&FailureShape> = failures.iter().map(|failure| &failure.shape).collect();
        let patterns = patterns.into_iter().filter(|p| p.plans > 1 && here.contains(&&p.shape)).collect();
        Ok(ErrorsOutput {
            plan_id: id,
            phase: plan.phase,
            state: plan.state,
            error_message: failure.map(|f| f.message.clone()),
            error_category: failure.map(|f| f.category.clone()),
            error_phase: failure.map(|f| f.phase),
            retry_count: failure.map_or(0, |f| f.retries),
            max_retries: plan.profile.profile.safety.max_retries_per_step,
            is_retriable: failure.is_some_and(|f| f.recoverable),
            error_hints: failure.map(|f| f.hints.clone()).unwrap_or_default(),
            recovery_hints: failure.map_or_else(Vec::new, |_| recovery_hints(&plan, &decisions)),
            patterns,
            failures: failures
                .into_iter()
                .map(|failure| PastFailure {
                    phase: failure.phase,
                    step: failure.step,
                    shape: failure.shape,
                    message: failure.message,
                    hints: failure.hints,
                    outcome: failure.outcome,
                    created: failure.created_at.seconds_rfc3339(),
                })
                .collect(),
            history: decisions
                .into_iter()
                .filter(|d| {
                    matches!(d.decision_type, DecisionType::ErrorRecovery | DecisionType::ValidationResponse)
                })
                .map(|d| PastError {
                    decision_id: d.decision_id,
                    decision_type: d.decision_type,
                    question: d.question,
                    chosen: d.chosen_option,
                    rationale: d.rationale,
                    created: d.created_at.seconds_rfc3339(),
                })
                .collect(),
        })
    }
}

/// The plan has failed, or asks what to do about a failure.
fn failed(plan: &Plan) -> bool {
    use AwaitingKind as K;
    matches!(plan.state, State::Errored | State::Constrained)
        || plan.awaiting.as_ref().is_some_and(|awaiting| {
            matches!(awaiting.kind, K::Retry | K::Restore | K::ValidationFix | K::StrategyRevision)
        })
}

/// What the plan takes now, in whole commands.
fn recovery_hints(plan: &Plan, decisions: &[Decision]) -> Vec<RecoveryHint> {
    // The last choice that stands is the one nearest to what failed.
    let chosen = decisions
        .iter()
        .rev()
        .find(|d| d.superseded_by.is_none() && d.decision_type.gate().is_some())
        .map(|d| d.decision_id.to_string());
    let hint = |action: AllowedAction| {
        let (name, message) = match action.verb {
            Verb::Execute | Verb::Apply => ("retry", "Try again from the last committed step"),
            Verb::Correct => ("revert", "Take a decision back and decide it anew"),
            Verb::Prompt => ("guide", "Say how to go on"),
            Verb::Rollback => ("rollback", "Go back to a checkpoint"),
            Verb::Cancel => ("cancel", "Give the plan up; its sandbox stays"),
        };
        let command = action.command.replace("GUIDANCE", "\"<GUIDANCE>\"");
        let cli_command = match &chosen {
            Some(decision) => command.replace("DECISION_ID", decision),
            None => command,
        };
        RecoveryHint { action: name.to_owned(), message: message.to_owned(), cli_command }
    };
    records::allowed(plan).into_iter().map(hint).collect()
}
