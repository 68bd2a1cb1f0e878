//! `plan status`.

use std::collections::BTreeSet;

use agents_domain::Result;
use agents_domain::correction::CorrectionState;
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::event::Event;
use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::plan::machine::AllowedAction;
use agents_domain::plan::{AppliedResource, Awaiting, Phase, PhaseSummary, Plan, State};
use agents_domain::profile::Gate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::child_plans::{ChildPlan, Children};
use super::lifecycle::{SandboxView, sandbox_view};
use super::validations::{self, ValidationView};
use super::{
    ExecuteProgress, PhaseProgress, clock_text, elapsed, execute_progress, phase_progress, project_text,
};
use crate::{Engine, Operation, clock, invariants, records};

/// Shows where a plan stands.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The plan's id or its beginning.
    pub plan: String,
}

/// Where a plan stands.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct StatusOutput {
    pub plan_id: PlanId,
    pub root_plan_id: PlanId,
    pub parent_plan_id: Option<PlanId>,
    pub phase: Phase,
    pub state: State,
    pub action: String,
    pub project: String,
    pub automation: String,
    pub attempt: u32,
    pub description: String,
    pub definition_of_done: String,
    pub progress: Vec<PhaseProgress>,
    /// What the worker is at right now, when it is.
    pub activity: Option<Activity>,
    /// A worker holds the plan.
    pub worker_alive: bool,
    /// It is being taken back to an earlier point; what it waits for comes after that.
    pub rewinding: bool,
    pub timing: Timing,
    pub execution: Execution,
    pub summaries: std::collections::BTreeMap<Phase, PhaseSummary>,
    pub awaiting: Option<Awaiting>,
    /// How many decisions wait for an answer.
    pub pending_decisions: usize,
    /// The decision an invariant made wait.
    pub escalation: Option<EscalationView>,
    pub strategy_progress: StrategyProgress,
    pub cost: Cost,
    pub result: Option<ResultView>,
    pub error: Option<ErrorView>,
    /// Where the checkout had moved on when Execute ended.
    pub drift: Vec<crate::drift::Drift>,
    pub child_plans: Vec<ChildPlan>,
    #[serde(flatten)]
    pub validations: ValidationView,
    pub allowed_actions: Vec<AllowedAction>,
}

/// A decision that waits because an invariant wants a person's word.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct EscalationView {
    pub decision: DecisionId,
    #[serde(rename = "type")]
    pub decision_type: DecisionType,
    pub question: String,
    pub confidence: Option<f64>,
    /// The sentence.
    pub invariant: String,
    pub invariant_id: String,
}

/// What a worker is at.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Activity {
    pub label: String,
    pub done: Option<u64>,
    pub total: Option<u64>,
    pub since: String,
}

/// When.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Timing {
    pub started: String,
    pub elapsed: String,
    pub elapsed_s: u64,
    pub finished: Option<String>,
    pub total_duration: Option<String>,
    /// Unknown: how long a phase takes depends on what it finds.
    pub eta: Option<String>,
}

/// What was done.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Execution {
    pub sandbox: Option<SandboxView>,
    /// How far Execute is.
    pub progress: Vec<ExecuteProgress>,
    pub tool_calls: u32,
    pub files_modified: usize,
    pub child_plans: String,
    pub child_plans_done: usize,
    pub child_plans_total: usize,
    pub checkpoints: usize,
    pub decisions_made: usize,
    /// How often one of its decisions was corrected; corrections that failed are not counted.
    pub corrections: usize,
}

/// What Strategize has come to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct StrategyProgress {
    pub decisions_made: usize,
    pub invariants_enforced: usize,
    pub child_plans_planned: usize,
    pub elapsed: String,
}

/// What models have cost; actors that need no model cost nothing.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Cost {
    pub tokens_used: u64,
    pub cost_so_far: String,
    pub cost_so_far_usd: f64,
    pub estimated: Option<String>,
    pub estimated_usd: Option<f64>,
}

/// What was applied.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ResultView {
    pub decisions_made: usize,
    pub artifacts: usize,
    pub insertions: u32,
    pub deletions: u32,
    pub applied: Vec<AppliedResource>,
    pub child_plans: String,
    pub child_plans_done: usize,
    pub child_plans_total: usize,
    pub validations: String,
    pub total_cost: String,
}

/// What failed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ErrorView {
    pub message: String,
    pub category: String,
    pub tool: Option<String>,
    pub step: Option<String>,
    pub checkpoint: Option<String>,
    pub recoverable: bool,
    pub hints: Vec<String>,
}

impl Operation for Status {
    const METHOD: &'static str = "plan/status";
    const SUMMARY: &'static str = "Show where a plan stands";
    type Output = StatusOutput;

    fn run(self, engine: &Engine) -> Result<StatusOutput> {
        // Whoever looks brings a plan on whose worker died.
        engine.ensure_workers()?;
        let plan = engine.plan(&self.plan)?;
        let id = plan.plan_id;
        let (decisions, changes, checkpoints, progress) = engine
            .view(|r| Ok((r.decisions(id)?, r.changes(id)?, r.checkpoints(id)?, r.last_progress(id)?)))?;
        let children = engine.view(|r| Children::of(r, id))?;
        let files: BTreeSet<_> = changes.iter().map(|c| (c.resource_id, &c.path)).collect();
        let active = decisions.iter().filter(|d| d.superseded_by.is_none() && !d.pending).count();
        let now = clock::now();
        let total = elapsed(&plan, now);
        let worker_alive = engine.is_attended(id)?;
        let finished = plan.completed_at.map(agents_domain::Timestamp::seconds_rfc3339);
        Ok(StatusOutput {
            plan_id: id,
            root_plan_id: plan.root_plan_id,
            parent_plan_id: plan.parent_plan_id,
            phase: plan.phase,
            state: plan.state,
            action: plan.action.to_string(),
            project: project_text(&plan),
            automation: plan.profile.profile.name.clone(),
            attempt: plan.attempt,
            description: plan.description.clone(),
            definition_of_done: plan.definition_of_done.clone(),
            progress: phase_progress(&plan),
            activity: progress
                .filter(|_| plan.state == State::Processing && plan.awaiting.is_none())
                .map(activity),
            worker_alive,
            rewinding: engine.view(|r| r.rewind(id))?.is_some(),
            timing: Timing {
                started: plan.created_at.seconds_rfc3339(),
                elapsed: clock_text(total),
                elapsed_s: total / 1000,
                total_duration: finished.as_ref().map(|_| clock_text(total)),
                eta: None,
                finished,
            },
            execution: Execution {
                sandbox: sandbox_view(&plan),
                progress: execute_progress(&plan),
                tool_calls: plan.tool_calls,
                files_modified: files.len(),
                child_plans: children.text(),
                child_plans_done: children.done,
                child_plans_total: children.total,
                checkpoints: checkpoints.len(),
                decisions_made: active,
                corrections: engine
                    .view(|r| r.corrections(id))?
                    .iter()
                    .filter(|c| c.state != CorrectionState::Failed)
                    .count(),
            },
            pending_decisions: decisions.iter().filter(|d| d.pending && d.superseded_by.is_none()).count(),
            escalation: decisions.iter().filter(|d| d.pending && d.superseded_by.is_none()).find_map(|d| {
                let by = invariants::escalation(&plan, d, &decisions)?;
                Some(EscalationView {
                    decision: d.decision_id,
                    decision_type: d.decision_type,
                    question: d.question.clone(),
                    confidence: d.confidence,
                    invariant: by.text,
                    invariant_id: by.invariant,
                })
            }),
            result: (plan.state == State::Applied).then(|| ResultView {
                decisions_made: active,
                artifacts: files.len(),
                insertions: plan.applied.iter().map(|a| a.insertions).sum(),
                deletions: plan.applied.iter().map(|a| a.deletions).sum(),
                applied: plan.applied.clone(),
                child_plans: children.text(),
                child_plans_done: children.done,
                child_plans_total: children.total,
                validations: plan.validations.counted(),
                total_cost: dollars(plan.spending.cost_usd),
            }),
            strategy_progress: StrategyProgress {
                decisions_made: active_of(&decisions, Gate::StrategyDecision),
                invariants_enforced: decisions
                    .iter()
                    .filter(|d| {
                        d.superseded_by.is_none() && d.decision_type == DecisionType::InvariantEnforced
                    })
                    .count(),
                child_plans_planned: planned_children(&decisions),
                elapsed: clock_text(
                    plan.phase_times
                        .get(&Phase::Strategize)
                        .map_or(0, |times| times.finished.unwrap_or(now).millis_since(times.started)),
                ),
            },
            cost: Cost {
                tokens_used: plan.spending.tokens,
                cost_so_far: dollars(plan.spending.cost_usd),
                cost_so_far_usd: plan.spending.cost_usd,
                estimated: plan.spending.estimate.as_ref().and_then(|e| e.cost_usd).map(dollars),
                estimated_usd: plan.spending.estimate.as_ref().and_then(|e| e.cost_usd),
            },
            error: error_view(&plan, checkpoints.last().map(|c| c.checkpoint_id.to_string())),
            drift: crate::drift::noted(&plan),
            child_plans: children.list,
            validations: validations::view(&plan),
            allowed_actions: records::allowed(&plan),
            summaries: plan.summaries,
            awaiting: plan.awaiting,
        })
    }
}

/// `$0.0847`.
fn dollars(usd: f64) -> String {
    format!("${usd:.4}")
}

/// Child plans that stand decided.
pub(super) fn planned_children(decisions: &[Decision]) -> usize {
    decisions
        .iter()
        .filter(|d| d.superseded_by.is_none() && d.decision_type == DecisionType::SubplanSpawn)
        .count()
}

/// Active decisions of one phase, answers in place of what they answered.
fn active_of(decisions: &[Decision], gate: Gate) -> usize {
    let subject = |d: &Decision| match d.decision_type {
        DecisionType::UserIntervention => {
            decisions.iter().find(|k| k.superseded_by == Some(d.decision_id)).map(|k| k.decision_type)
        }
        kind => Some(kind),
    };
    let of = |d: &&Decision| {
        d.superseded_by.is_none() && !d.pending && subject(d).and_then(DecisionType::gate) == Some(gate)
    };
    decisions.iter().filter(of).count()
}

fn activity(event: Event) -> Activity {
    let number = |key: &str| event.details.get(key).and_then(serde_json::Value::as_u64);
    Activity {
        label: event.details.get("label").and_then(|l| l.as_str()).unwrap_or_default().to_owned(),
        done: number("done"),
        total: number("total"),
        since: event.timestamp.seconds_rfc3339(),
    }
}

fn error_view(plan: &Plan, checkpoint: Option<String>) -> Option<ErrorView> {
    let failure =
        plan.failure.clone().filter(|_| matches!(plan.state, State::Errored | State::Constrained))?;
    Some(ErrorView {
        message: failure.message,
        category: failure.category,
        tool: failure.tool,
        step: failure.step,
        checkpoint,
        recoverable: failure.recoverable,
        hints: failure.hints,
    })
}
