//! The verbs that move a plan: execute, apply, cancel, prompt.

use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::plan::machine::{self, AllowedAction, Answer, Effect, Event};
use agents_domain::plan::{ApplyMode, Awaiting, Guidance, Phase, Plan, State};
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{PhaseProgress, phase_progress};
use crate::records::{self, advance};
use crate::{Engine, Operation, clock, sandboxes, worker};

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
    pub started: String,
    pub strategy_summary: StrategySummary,
    pub progress: Vec<PhaseProgress>,
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
    pub headline: Option<String>,
}

pub(super) fn sandbox_view(plan: &Plan) -> Option<SandboxView> {
    let first = plan.sandboxes.first()?;
    Some(SandboxView {
        strategy: "git_worktree".to_owned(),
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
        let decisions = engine.view(|r| r.decisions(id))?;
        Ok(ExecuteOutput {
            plan_id: id,
            phase: plan.phase,
            state: plan.state,
            attempt: plan.attempt,
            attached,
            recovered,
            sandbox: sandbox_view(&plan),
            started: plan.updated_at.seconds_rfc3339(),
            strategy_summary: StrategySummary {
                decisions: decisions.iter().filter(|d| d.superseded_by.is_none()).count(),
                invariants: plan.invariants.len(),
                planned_child_plans: 0,
                headline: plan.summaries.get(&Phase::Strategize).map(|s| s.headline.clone()),
            },
            progress: phase_progress(&plan),
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
    Ok(plan.state == State::Processing && plan.epoch != 0 && !engine.store.is_leased(plan.plan_id)?)
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
            // The machine first: a plan in the wrong state is told so whatever its files look like.
            let verb = Event::Apply { no_commit: self.no_commit };
            machine::step(&plan.status(), &verb, &records::context_of(&plan), clock::now())?;
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
        let (plan, files, checkpoints) = engine.write(|w| {
            let mut plan = w.plan(id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
            let before = (plan.phase, plan.state);
            advance(engine, w, &mut plan, &Event::Cancel)?;
            let changes = w.changes(id)?;
            let files: std::collections::BTreeSet<_> = changes.iter().map(|c| &c.path).collect();
            let facts = json!({
                "reason": self.reason, "project_names": plan.projects, "cancelled_phase": before.0,
                "cancelled_processing_state": before.1, "subplan_count": 0,
                "sandbox_refs": plan.sandboxes.iter().map(|s| &s.path).collect::<Vec<_>>(),
            });
            records::audit(engine, w, &plan, "plan_cancelled", facts)?;
            Ok((plan.clone(), files.len(), w.checkpoints(id)?.len()))
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
            child_plans: CancelledChildren::default(),
            recovery: vec![
                format!("agents plan diff {id}"),
                format!("agents plan use {} {}", plan.action, super::project_text(&plan).replace(", ", " ")),
            ],
        })
    }
}

/// Answers what a plan waits for, or gives it guidance for its next step.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// The plan's id or its beginning.
    pub plan: String,
    /// The number of an option, its text, or guidance in one's own words.
    pub guidance: String,
    /// The pending decision that is answered (id or its beginning); the one the plan waits for unless given.
    #[serde(default)]
    pub decision: Option<String>,
}

/// What became of the answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct PromptOutput {
    pub guidance_added: GuidanceAdded,
    pub decision_created: DecisionCreated,
    pub queue: GuidanceQueue,
    pub awaiting: Option<Awaiting>,
    pub allowed_actions: Vec<AllowedAction>,
}

/// The answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct GuidanceAdded {
    pub plan: PlanId,
    pub guidance: String,
    /// The option it was understood as, when it was one.
    pub option: Option<String>,
    pub scope: String,
    pub phase: Phase,
    pub state_transition: String,
}

/// The decision that holds it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DecisionCreated {
    #[serde(rename = "type")]
    pub decision_type: String,
    pub id: DecisionId,
    pub parent: Option<DecisionId>,
}

/// Guidance by whether an actor has seen it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct GuidanceQueue {
    pub pending: usize,
    pub applied: usize,
}

impl Operation for Prompt {
    const METHOD: &'static str = "plan/prompt";
    const SUMMARY: &'static str = "Answer what a plan waits for, or guide its next step";
    type Output = PromptOutput;

    fn run(self, engine: &Engine) -> Result<PromptOutput> {
        let text = self.guidance.trim().to_owned();
        if text.is_empty() {
            return Err(Error::validation("the guidance is empty")
                .suggest("agents plan prompt <PLAN> \"<GUIDANCE>\""));
        }
        let id = engine.plan_id(&self.plan)?;
        let answered = self.decision.as_deref().map(|text| engine.decision(text)).transpose()?;
        if let Some(decision) = answered.as_ref().filter(|d| d.plan_id != id) {
            return Err(Error::validation(format!(
                "decision {} belongs to plan {}, not to {id}",
                decision.decision_id, decision.plan_id
            )));
        }
        self.check_apply(engine, id, &text)?;
        let context_ref = engine.store.put_blob(json!({ "guidance": text }).to_string().as_bytes())?;
        let state_ref = engine.store.put_blob(b"null")?;
        let output = engine.write(|w| {
            let mut plan = w.plan(id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
            let before = state_word(&plan);
            let pending: Vec<_> =
                w.decisions(id)?.into_iter().filter(|d| d.pending && d.superseded_by.is_none()).collect();
            let target = match (&answered, &plan.awaiting) {
                (Some(decision), _) => {
                    let still = pending.iter().find(|p| p.decision_id == decision.decision_id);
                    Some(still.cloned().ok_or_else(|| {
                        Error::invalid_state(format!(
                            "decision {} does not wait for an answer",
                            decision.decision_id
                        ))
                        .suggest(format!("agents plan explain {}", decision.decision_id))
                    })?)
                }
                (None, Some(awaiting)) => {
                    pending.iter().find(|p| Some(p.decision_id) == awaiting.decision_id).cloned()
                }
                (None, None) => None,
            };
            let asked = match &target {
                Some(decision) => Some(records::awaiting_decision(&plan, decision)),
                None => plan.awaiting.clone(),
            };
            let answer = Answer::parse(&text, asked.as_ref());
            let option = match (answer, &asked) {
                (Answer::Option(at), Some(asked)) => {
                    Some(asked.options.get(at).cloned().ok_or_else(|| {
                        Error::validation(format!(
                            "there is no option {text}: there are {}",
                            asked.options.len()
                        ))
                        .detail(numbered(&asked.options))
                    })?)
                }
                _ => None,
            };
            let intervention = records::intervention(
                w,
                &plan,
                records::Answer {
                    target: target.as_ref(),
                    chosen: option.clone().unwrap_or_else(|| text.clone()),
                    guidance: &text,
                    context_ref: &context_ref,
                    state_ref: &state_ref,
                },
            )?;
            w.insert_decision(&intervention)?;
            records::emit_decision(engine, w, &plan, &intervention)?;
            if let Some(target) = &target {
                w.supersede(target.decision_id, intervention.decision_id)?;
                let facts =
                    json!({ "decision_id": target.decision_id, "superseded_by": intervention.decision_id });
                records::emit(engine, w, &plan, "decision.superseded", facts)?;
            }
            let waited_for = plan.awaiting.as_ref().and_then(|a| a.decision_id);
            let other = target.as_ref().is_some_and(|t| waited_for != Some(t.decision_id));
            if !other {
                for effect in advance(engine, w, &mut plan, &Event::Prompt(answer))? {
                    if let Effect::QueueGuidance { option } = effect {
                        plan.guidance.push(Guidance {
                            decision_id: intervention.decision_id,
                            text: option.unwrap_or_else(|| text.clone()),
                            applied: false,
                        });
                        records::touch(w, &mut plan)?;
                    }
                }
                let next =
                    pending.iter().find(|p| target.as_ref().is_some_and(|t| t.decision_id != p.decision_id));
                if let Some(next) = next {
                    let first = records::awaiting_decision(&plan, next);
                    advance(engine, w, &mut plan, &Event::DecisionsPending { first })?;
                }
            }
            Ok(PromptOutput {
                guidance_added: GuidanceAdded {
                    plan: id,
                    guidance: text.clone(),
                    option,
                    scope: "next execution step".to_owned(),
                    phase: plan.phase,
                    state_transition: format!("{before} -> {}", state_word(&plan)),
                },
                decision_created: DecisionCreated {
                    decision_type: "user_intervention".to_owned(),
                    id: intervention.decision_id,
                    parent: intervention.parent_decision_id,
                },
                queue: GuidanceQueue {
                    pending: plan.guidance.iter().filter(|g| !g.applied).count(),
                    applied: plan.guidance.iter().filter(|g| g.applied).count(),
                },
                awaiting: plan.awaiting.clone(),
                allowed_actions: records::allowed(&plan),
            })
        })?;
        let plan = engine.plan(&id.to_string())?;
        let runnable = plan.status().wants_worker();
        if runnable && !engine.store.is_leased(id)? {
            engine.start_worker(id)?;
        }
        Ok(output)
    }
}

impl Prompt {
    /// An answer that applies the plan is checked like `plan apply`.
    fn check_apply(&self, engine: &Engine, id: PlanId, text: &str) -> Result<()> {
        let plan = engine.plan(&id.to_string())?;
        let Some(awaiting) = plan.awaiting.as_ref().filter(|a| a.decision_id.is_none()) else {
            return Ok(());
        };
        match Answer::parse(text, Some(awaiting)) {
            Answer::Option(at) if awaiting.options.get(at).is_some_and(|o| o == "apply") => {
                worker::apply_preflight(engine, &plan, ApplyMode::Commit)
            }
            _ => Ok(()),
        }
    }
}

/// Options as `plan prompt` counts them.
fn numbered(options: &[String]) -> String {
    options.iter().enumerate().map(|(at, o)| format!("{}. {o}", at + 1)).collect::<Vec<_>>().join("\n")
}

/// The state as the prompt's transition shows it.
fn state_word(plan: &Plan) -> &'static str {
    if plan.awaiting.is_some() { "awaiting_input" } else { plan.state.as_str() }
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
