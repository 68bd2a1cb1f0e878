//! The verbs that move a plan: execute, apply, cancel, prompt.

use agents_domain::decision::DecisionType;
use agents_domain::ids::{CheckpointId, PlanId};
use agents_domain::invariant;
use agents_domain::plan::machine::{self, AllowedAction, Event};
use agents_domain::plan::{ApplyMode, Awaiting, Phase, Plan, State};
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{ExecuteProgress, execute_progress};
use crate::records::{self, advance};
use crate::{Engine, Operation, children, clock, invariants, sandboxes, worker};

/// Starts, goes on with, or retries what the plan is at; on a plan that is being worked on it attaches.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Execute {
    /// The plan's id or its beginning.
    pub plan: String,
}

/// Where the plan stands after the verb.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ExecuteOutput {
    pub plan_id: PlanId,
    pub phase: Phase,
    pub state: State,
    pub attempt: u32,
    /// A worker had it already.
    pub attached: bool,
    /// Its worker had died; a new one goes on from the last committed step.
    pub recovered: bool,
    pub sandbox: Option<SandboxView>,
    /// `running`, or `starting` when one was just started.
    pub worker: String,
    /// Work goes on where it was left.
    pub resumed: bool,
    pub checkpoint: Option<CheckpointId>,
    pub resumed_from: Option<String>,
    /// What people said that the next step will see.
    pub guidance: Vec<String>,
    pub started: String,
    pub strategy_summary: StrategySummary,
    pub progress: Vec<ExecuteProgress>,
    pub awaiting: Option<Awaiting>,
    pub allowed_actions: Vec<AllowedAction>,
}

/// The plan's sandbox.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct SandboxView {
    pub strategy: String,
    pub path: String,
    pub branch: String,
    pub status: String,
}

/// What Strategize decided, in numbers.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct StrategySummary {
    pub decisions: usize,
    pub invariants: usize,
    pub planned_child_plans: usize,
    /// Files the choices name.
    pub estimated_files: usize,
    /// `low`, `medium` or `high`, from the least confidence among the choices.
    pub risk: String,
    pub headline: Option<String>,
}

pub(super) fn sandbox_view(plan: &Plan) -> Option<SandboxView> {
    let first = plan.sandboxes.first()?;
    Some(SandboxView {
        strategy: first.strategy().as_str().to_owned(),
        path: first.path.clone(),
        branch: sandboxes::branch_name(plan.plan_id),
        status: match plan.state {
            State::Applied => "removed",
            State::Cancelled => "preserved",
            _ => "active",
        }
        .to_owned(),
    })
}

impl Operation for Execute {
    const METHOD: &'static str = "plan/execute";
    const SUMMARY: &'static str = "Start a plan's next phase, or go on with it";
    type Output = ExecuteOutput;

    fn run(self, engine: &Engine) -> Result<ExecuteOutput> {
        let id = engine.plan_id(&self.plan)?;
        let (mut attached, mut recovered) = (false, false);
        let plan = engine.write(|w| {
            let mut plan = w.plan(id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
            attached = plan.status().wants_worker() && plan.phase != Phase::Apply;
            recovered = attached && died(engine, &plan)?;
            if !attached {
                advance(engine, w, &mut plan, &Event::Execute)?;
            }
            Ok(plan)
        })?;
        if !engine.store.is_leased(id)? {
            engine.start_worker(id)?;
        }
        let (decisions, run, checkpoint) = engine.view(|r| {
            let checkpoint = r.checkpoints(id)?.last().map(|c| c.checkpoint_id);
            Ok((r.decisions(id)?, r.actor_run(id, plan.phase)?, checkpoint))
        })?;
        let choices: Vec<_> = decisions
            .iter()
            .filter(|d| d.superseded_by.is_none() && d.decision_type == DecisionType::StrategyChoice)
            .collect();
        let files: std::collections::BTreeSet<_> = choices
            .iter()
            .flat_map(|d| d.context.relevant_resources.iter().map(|r| (r.resource_id, &r.path)))
            .collect();
        let least = choices.iter().filter_map(|d| d.confidence).fold(1.0, f64::min);
        Ok(ExecuteOutput {
            plan_id: id,
            phase: plan.phase,
            state: plan.state,
            attempt: plan.attempt,
            attached,
            recovered,
            sandbox: sandbox_view(&plan),
            worker: if attached && !recovered { "running" } else { "starting" }.to_owned(),
            resumed: run.is_some(),
            checkpoint: run.as_ref().and(checkpoint),
            resumed_from: run.map(|run| format!("step {}", run.step + 1)),
            guidance: plan.guidance.iter().filter(|g| !g.applied).map(|g| g.text.clone()).collect(),
            started: plan.updated_at.seconds_rfc3339(),
            strategy_summary: StrategySummary {
                decisions: decisions.iter().filter(|d| d.superseded_by.is_none()).count(),
                invariants: invariant::enforced(&decisions).len(),
                planned_child_plans: super::status::planned_children(&decisions),
                estimated_files: files.len(),
                risk: match least {
                    sure if sure >= 0.8 => "low",
                    fair if fair >= 0.5 => "medium",
                    _ => "high",
                }
                .to_owned(),
                headline: plan.summaries.get(&Phase::Strategize).map(|s| s.headline.clone()),
            },
            progress: execute_progress(&plan),
            awaiting: plan.awaiting.clone(),
            allowed_actions: records::allowed(&plan),
        })
    }
}

/// Brings a plan's changes to the real resources. Checks first what would refuse it, so that a refusal changes nothing.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// The plan's id or its beginning.
    pub plan: String,
    /// Change the working tree only, make no commit.
    #[serde(default)]
    pub no_commit: bool,
}

/// Where the plan stands after `apply` was accepted; the worker carries it out.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ApplyOutput {
    pub plan_id: PlanId,
    pub phase: Phase,
    pub state: State,
    pub attached: bool,
    /// Its worker had died in the middle; a new one finishes or undoes what it had begun.
    pub recovered: bool,
}

/// Whether a worker died over the plan: it has an epoch, and nobody holds it.
fn died(engine: &Engine, plan: &Plan) -> Result<bool> {
    Ok(plan.state == State::Processing && plan.epoch != 0 && !engine.is_attended(plan.plan_id)?)
}

impl Operation for Apply {
    const METHOD: &'static str = "plan/apply";
    const SUMMARY: &'static str = "Apply a plan's changes";
    type Output = ApplyOutput;

    fn run(self, engine: &Engine) -> Result<ApplyOutput> {
        let plan = engine.plan(&self.plan)?;
        let id = plan.plan_id;
        let running = plan.phase == Phase::Apply && plan.status().wants_worker();
        let recovered = running && died(engine, &plan)?;
        let mode = if self.no_commit { ApplyMode::NoCommit } else { ApplyMode::Commit };
        if !running {
            super::validations::refuse_unpassed(engine, &plan)?;
            // The machine first: a plan in the wrong state is told so whatever its files look like.
            let verb = Event::Apply { no_commit: self.no_commit };
            machine::step(&plan.status(), &verb, &records::context_of(&plan), clock::now())?;
            invariants::refuse_broken(engine, &plan)?;
            children::check_apply_order(engine, &plan)?;
            worker::apply_preflight(engine, &plan, mode)?;
        }
        let plan = engine.write(|w| {
            let mut plan = w.plan(id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
            if !running {
                advance(engine, w, &mut plan, &Event::Apply { no_commit: self.no_commit })?;
            }
            Ok(plan)
        })?;
        if !engine.store.is_leased(id)? {
            engine.start_worker(id)?;
        }
        Ok(ApplyOutput { plan_id: id, phase: plan.phase, state: plan.state, attached: running, recovered })
    }
}

/// Gives a plan up for good; what it did stays in its sandbox.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The plan's id or its beginning.
    pub plan: String,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// What was given up.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CancelOutput {
    pub plan_id: PlanId,
    pub phase: Phase,
    pub state: State,
    pub reason: Option<String>,
    pub cancelled_at: String,
    pub sandbox: CancelledSandbox,
    pub child_plans: CancelledChildren,
    pub recovery: Vec<String>,
}

/// What stays of the work.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CancelledSandbox {
    pub status: String,
    pub path: Option<String>,
    pub files_modified: usize,
    pub checkpoints: usize,
}

/// What became of child plans.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CancelledChildren {
    pub completed: u32,
    pub cancelled: u32,
    pub artifacts_preserved: u32,
}

impl Operation for Cancel {
    const METHOD: &'static str = "plan/cancel";
    const SUMMARY: &'static str = "Give a plan up for good";
    type Output = CancelOutput;

    fn run(self, engine: &Engine) -> Result<CancelOutput> {
        let id = engine.plan_id(&self.plan)?;
        super::words_of("reason", self.reason.as_deref().unwrap_or_default())?;
        let (plan, files, checkpoints, child_plans) = engine.write(|w| {
            let mut plan = w.plan(id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
            worker::refuse_half_made(engine, &plan)?;
            plan.cancel_reason.clone_from(&self.reason);
            advance(engine, w, &mut plan, &Event::Cancel)?;
            let changes = w.changes(id)?;
            let files: std::collections::BTreeSet<_> = changes.iter().map(|c| &c.path).collect();
            let mut child_plans = CancelledChildren::default();
            let children = super::child_plans::Children::of(w, id)?;
            for child in children.list.iter().filter(|c| c.state != State::Cancelled) {
                let changes = w.changes(child.id)?;
                let files: std::collections::BTreeSet<_> = changes.iter().map(|c| &c.path).collect();
                child_plans.artifacts_preserved += u32::try_from(files.len()).unwrap_or(u32::MAX);
            }
            child_plans.completed = u32::try_from(children.done).unwrap_or(u32::MAX);
            child_plans.cancelled = u32::try_from(children.cancelled).unwrap_or(u32::MAX);
            Ok((plan.clone(), files.len(), w.checkpoints(id)?.len(), child_plans))
        })?;
        let removed =
            engine.config.text("sandbox.cleanup", None) == "on_terminal" && !engine.store.is_leased(id)?;
        if removed {
            sandboxes::clean_up(&plan);
        }
        Ok(CancelOutput {
            plan_id: id,
            phase: plan.phase,
            state: plan.state,
            reason: self.reason,
            cancelled_at: plan.updated_at.seconds_rfc3339(),
            sandbox: CancelledSandbox {
                status: match (plan.sandboxes.is_empty(), removed) {
                    (true, _) => "none",
                    (false, true) => "removed",
                    (false, false) => "preserved",
                }
                .to_owned(),
                path: plan.sandboxes.first().map(|s| s.path.clone()),
                files_modified: files,
                checkpoints,
            },
            child_plans,
            recovery: vec![
                format!("agents plan diff {id}"),
                format!("agents plan use {} {}", plan.action, super::project_text(&plan).replace(", ", " ")),
            ],
        })
    }
}

/// The error for an apply that was refused by what is in the working tree.
pub(crate) fn apply_refused(plan: &Plan, message: String, files: &[String]) -> Error {
    let id = plan.plan_id;
    Error::new(ErrorKind::InvalidState, message)
        .detail(files.join(", "))
        .suggest("commit or undo your own edits of these files, then apply again")
        .suggest(format!("agents plan apply --no-commit {id}  # merge into the working tree instead"))
        .suggest(format!("agents plan diff {id}"))
        .data(json!({
            "plan_id": id,
            "files": files,
            "sandbox": { "worktree": "preserved" },
            "recovery_options": [
                format!("agents plan apply --no-commit {id}"),
                format!("agents plan diff {id}"),
                format!("agents plan cancel {id}"),
            ],
        }))
}
