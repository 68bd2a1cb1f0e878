//! Writing what happened: transitions with their events, decisions from drafts, answers from people.

mod decisions;

use std::collections::{HashMap, HashSet};

use agents_domain::decision::{Approval, Decision, DecisionType};
use agents_domain::event::NewEvent;
use agents_domain::ids::DecisionId;
use agents_domain::plan::gates;
use agents_domain::plan::machine::{self, AllowedAction, Context, Effect, Event, Verb};
use agents_domain::plan::{AwaitingKind, Guidance, Phase, Plan, State};
use agents_domain::ports::actor::StepOutcome;
use agents_domain::ports::store::{AuditEntry, Reader, Writer};
use agents_domain::profile::Gate;
use agents_domain::{Result, tree};
use serde_json::{Value, json};

use crate::{Engine, clock, rewind, worker};

pub(crate) use decisions::{
    Answer, Evidence, awaiting_decision, by_key, decision_of, emit_decision, intervention,
};

/// The verbs the facade has.
const OFFERED: &[Verb] =
    &[Verb::Execute, Verb::Apply, Verb::Prompt, Verb::Correct, Verb::Rollback, Verb::Cancel];

/// What the state machine needs to know besides the plan's status.
pub(crate) fn context_of(plan: &Plan) -> Context {
    Context { offered: OFFERED, committed: !plan.applied.is_empty(), ..Context::of(plan) }
}

/// How many root plans may be worked on at once.
pub(crate) fn slots(engine: &Engine) -> i64 {
    engine.config.integer("plan.concurrency", None).max(1)
}

/// What a person may do with the plan now.
pub(crate) fn allowed(plan: &Plan) -> Vec<AllowedAction> {
    machine::allowed_actions(&plan.status(), &context_of(plan))
}

/// Moves a plan, writes it, and says so: one call per transition, inside the caller's transaction.
pub(crate) fn advance(
    engine: &Engine,
    w: &dyn Writer,
    plan: &mut Plan,
    event: &Event,
) -> Result<Vec<Effect>> {
    let context = full_context(engine, w, plan)?;
    advance_in(engine, w, plan, event, &context)
}

/// [`context_of`] with what the store knows: confidence and slots. A child plan needs no slot of its own.
pub(crate) fn full_context(engine: &Engine, w: &dyn Writer, plan: &Plan) -> Result<Context> {
    let taken = plan.state == State::Processing && plan.awaiting.is_none();
    let others = w.processing_count()?.saturating_sub(u32::from(taken));
    Ok(Context {
        confidence: phase_confidence(w, plan)?,
        // One that is added to an applied plan goes its own way.
        child: plan
            .parent_plan_id
            .map(|id| w.plan(id))
            .transpose()?
            .flatten()
            .is_some_and(|p| !p.status().ended()),
        slots_free: plan.parent_plan_id.is_some() || i64::from(others) < slots(engine),
        ..context_of(plan)
    })
}

/// [`advance`] with a context of the caller's.
pub(crate) fn advance_in(
    engine: &Engine,
    w: &dyn Writer,
    plan: &mut Plan,
    event: &Event,
    context: &Context,
) -> Result<Vec<Effect>> {
    let read_at = plan.updated_at;
    let failed = plan.failure.clone();
    let before = (plan.phase, plan.state);
    let asked = plan.awaiting.clone();
    let effects = plan.advance(event, context, clock::now())?;
    tracing::info!(
        plan_id = %plan.plan_id, attempt = plan.attempt, awaits = plan.awaiting.as_ref().map(|a| a.kind.as_str()),
        "{}/{} becomes {}/{}", before.0, before.1, plan.phase, plan.state
    );
    w.update_plan(plan, read_at)?;
    for effect in &effects {
        for event in effect.events(plan) {
            engine.append_event(w, event)?;
        }
    }
    if plan.state == State::Cancelled {
        audit(engine, w, plan, "plan_cancelled", cancelled(w, plan)?)?;
    }
    if matches!(plan.state, State::Errored | State::Cancelled) {
        rewind::fail_corrections(engine, w, plan)?;
    }
    if effects.contains(&Effect::ExtendBudget) {
        plan.spending.extend();
        touch(w, plan)?;
    }
    if effects.contains(&Effect::RetryStep) || effects.contains(&Effect::RestoreCheckpoint) {
        try_step_again(w, plan, effects.contains(&Effect::RestoreCheckpoint))?;
    }
    if let Some(asked) = asked.filter(|a| a.kind == AwaitingKind::Spawn) {
        let start = effects.contains(&Effect::SpawnChild);
        if start || effects.contains(&Effect::SkipChild) {
            worker::answered(w, &asked, start)?;
        }
    }
    if effects.contains(&Effect::CancelChildren) {
        worker::cancel_children(engine, w, plan)?;
    }
    if effects.contains(&Effect::RestartActor) {
        // What the machine does by itself leaves no failure in the record.
        let found = match event {
            Event::StrategyTooTight(failure)
            | Event::ValidationFailed { failure, .. }
            | Event::ApplyConstrained(failure) => Some(failure.clone()),
            _ => plan.failure.clone().or(failed),
        };
        let found = found.map(|failure| failure.message);
        start_over(engine, w, plan, found.filter(|_| effects.contains(&Effect::RollBackExecuteWork)))?;
        worker::start_children_over(engine, w, plan)?;
    }
    if *event == Event::Execute && plan.commanded && plan.phase == Phase::Execute {
        worker::command_children(engine, w, plan)?;
    }
    if plan.parent_plan_id.is_some() {
        worker::child_moved(engine, w, plan)?;
    }
    Ok(effects)
}

/// Readies the phase's run for another try of its step. The sandboxes are brought back to the last checkpoint by the
/// worker that opens them.
fn try_step_again(w: &dyn Writer, plan: &Plan, restored: bool) -> Result<()> {
    let Some(mut run) = w.actor_run(plan.plan_id, plan.phase)? else { return Ok(()) };
    run.restores += u32::from(restored);
    if matches!(run.outcome, StepOutcome::TooTight { .. }) {
        run.outcome = StepOutcome::Continue;
    }
    w.put_actor_run(&run)?;
    Ok(())
}

/// What is known of a cancelled plan, for the audit log.
fn cancelled(r: &dyn Reader, plan: &Plan) -> Result<Value> {
    let changes = r.changes(plan.plan_id)?;
    let run = r.actor_run(plan.plan_id, plan.phase)?;
    Ok(json!({
        "reason": plan.cancel_reason, "project_names": plan.projects, "cancelled_phase": plan.phase,
        "last_completed_step": run.map(|r| r.step), "subplan_count": r.child_rows(plan.plan_id)?.len(), "changes": changes.len(),
        "sandbox_refs": plan.sandboxes.iter().map(|s| &s.path).collect::<Vec<_>>(),
        "resources_pending_cleanup": plan.sandboxes.iter().map(|s| s.resource_id).collect::<Vec<_>>(),
    }))
}

/// Lets the plan's phase be done anew: what was decided in it (and in Execute, when Strategize is done anew) is
/// superseded, its writes are taken back, its actor starts from nothing.
///
/// `found`: why the work cannot stand; then the sandboxes are made anew too, and the actor is told.
fn start_over(engine: &Engine, w: &dyn Writer, plan: &mut Plan, found: Option<String>) -> Result<()> {
    let moved_on = found.is_some();
    let known = w.decisions(plan.plan_id)?;
    let reason = found.unwrap_or_else(|| "a person asked for it".to_owned());
    let made_in_execute = |d: &Decision| {
        let answered = d.parent_decision_id.and_then(|id| known.iter().find(|k| k.decision_id == id));
        let subject = if d.key.is_some() { answered.filter(|a| a.key == d.key) } else { None };
        subject.unwrap_or(d).decision_type.gate() == Some(Gate::ExecutionDecision)
    };
    let too_tight = too_tight(w, plan, &known)?.filter(|_| moved_on);
    let decided_again = |d: &Decision| too_tight.as_ref().is_none_or(|ids| ids.contains(&d.decision_id));
    let falls = |d: &&Decision| {
        let kept = d.decision_type == DecisionType::PromptDefinition
            || d.decision_type == DecisionType::InvariantEnforced
            || (d.decision_type == DecisionType::UserIntervention && d.key.is_none());
        let redone = plan.phase == Phase::Strategize && decided_again(d);
        d.superseded_by.is_none() && !kept && (redone || made_in_execute(d))
    };
    let fallen: Vec<DecisionId> = known.iter().filter(falls).map(|d| d.decision_id).collect();
    let words = format!("It is done again: {reason}");
    let marker = intervention(
        w,
        plan,
        Answer {
            target: None,
            chosen: words.clone(),
            guidance: &words,
            context_ref: &engine.store.put_blob(words.as_bytes())?,
            state_ref: &engine.store.put_blob(b"null")?,
        },
    )?;
    let question = format!("What becomes of the {} so far?", plan.phase);
    let marker = Decision { question, approval: Some(Approval::System), rationale: reason.clone(), ..marker };
    if !fallen.is_empty() {
        w.insert_decision(&marker)?;
        emit_decision(engine, w, plan, &marker)?;
    }
    for decision in &fallen {
        w.supersede(*decision, marker.decision_id)?;
        let facts = json!({ "decision_id": decision, "superseded_by": marker.decision_id });
        emit(engine, w, plan, "decision.superseded", facts)?;
    }
    let writers: HashSet<DecisionId> = w.changes(plan.plan_id)?.iter().map(|c| c.decision_id).collect();
    for decision in writers {
        w.undo_changes(plan.plan_id, decision)?;
    }
    w.delete_actor_run(plan.plan_id, Phase::Execute)?;
    if plan.phase == Phase::Strategize {
        w.delete_actor_run(plan.plan_id, Phase::Strategize)?;
    }
    plan.diff_ref = None;
    if moved_on {
        plan.sandboxes.clear();
        let is_tight = |d: &&Decision| too_tight.as_ref().is_some_and(|ids| ids.contains(&d.decision_id));
        let told = known
            .iter()
            .filter(is_tight)
            .map(|d| format!("\nDecided again: {} It was: {}", d.question, d.chosen_option));
        let text = std::iter::once(reason).chain(told).collect();
        plan.guidance.push(Guidance { decision_id: marker.decision_id, text, applied: false });
    }
    for sandbox in &mut plan.sandboxes {
        sandbox.commit.clone_from(&sandbox.base_commit);
    }
    touch(w, plan)
}

/// What Execute called too tight, with all that hangs on it; `None` when it named nothing that is in force.
fn too_tight(w: &dyn Writer, plan: &Plan, known: &[Decision]) -> Result<Option<HashSet<DecisionId>>> {
    let Some(run) = w.actor_run(plan.plan_id, Phase::Execute)? else { return Ok(None) };
    let StepOutcome::TooTight { decisions, .. } = run.outcome else { return Ok(None) };
    let mut ids = HashSet::new();
    for decision in decisions.iter().filter_map(|key| by_key(known, key)) {
        ids.extend(tree::affected(decision.decision_id, known, &[])?.decisions);
    }
    Ok((!ids.is_empty()).then_some(ids))
}

/// Writes a plan whose record, not status, was changed.
pub(crate) fn touch(w: &dyn Writer, plan: &mut Plan) -> Result<()> {
    let read_at = plan.updated_at;
    plan.updated_at = clock::after(read_at);
    w.update_plan(plan, read_at)?;
    Ok(())
}

/// The least computed confidence among the phase's active choices; what a person answered counts as sure as can be.
/// `None` when nothing was decided.
pub(crate) fn phase_confidence(r: &dyn Reader, plan: &Plan) -> Result<Option<f64>> {
    let gate = match plan.phase {
        Phase::Strategize => Gate::StrategyDecision,
        Phase::Execute | Phase::Apply => Gate::ExecutionDecision,
    };
    let decisions = r.decisions(plan.plan_id)?;
    let computed: HashMap<DecisionId, f64> =
        r.confidences(plan.plan_id)?.into_iter().map(|(id, computed)| (id, computed.score)).collect();
    let least = decisions
        .iter()
        .filter(|d| d.superseded_by.is_none())
        .filter_map(|d| match d.decision_type {
            DecisionType::UserIntervention => {
                let answered = decisions.iter().find(|k| k.superseded_by == Some(d.decision_id))?;
                (answered.decision_type.gate() == Some(gate)).then_some(gates::MAX_COMPUTED_CONFIDENCE)
            }
            kind if kind.gate() == Some(gate) => computed.get(&d.decision_id).copied().or(d.confidence),
            _ => None,
        })
        .reduce(f64::min);
    Ok(least)
}

/// Appends an event about a plan.
pub(crate) fn emit(
    engine: &Engine,
    w: &dyn Writer,
    plan: &Plan,
    event_type: &str,
    facts: Value,
) -> Result<()> {
    engine.append_event(w, NewEvent::of_plan(event_type, plan, facts))
}

/// Appends an audit record about a plan.
pub(crate) fn audit(
    engine: &Engine,
    w: &dyn Writer,
    plan: &Plan,
    event_type: &str,
    facts: Value,
) -> Result<()> {
    w.append_audit(&AuditEntry {
        event_type: event_type.to_owned(),
        plan_id: Some(plan.plan_id),
        project_name: plan.projects.first().map(ToString::to_string),
        actor_name: Some(plan.actors.execution.to_string()),
        user_identity: Some(engine.user.clone()),
        details: facts,
        created_at: clock::now(),
    })?;
    Ok(())
}
