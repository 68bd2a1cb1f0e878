//! Writing what happened: transitions with their events, decisions from drafts, answers from people.

use std::collections::{HashMap, HashSet};

use agents_domain::decision::{Alternative, Approval, ContextSnapshot, Decision, DecisionType};
use agents_domain::event::NewEvent;
use agents_domain::ids::DecisionId;
use agents_domain::invariant;
use agents_domain::plan::gates::{self, ComputedConfidence, GateOutcome};
use agents_domain::plan::machine::{self, AllowedAction, Context, Effect, Event, Verb};
use agents_domain::plan::{Awaiting, AwaitingKind, Guidance, Phase, Plan, State};
use agents_domain::ports::actor::{DecisionDraft, StepOutcome};
use agents_domain::ports::store::{AuditEntry, Reader, Writer};
use agents_domain::profile::Gate;
use agents_domain::{Error, Result, tree};
use serde_json::{Value, json};

use crate::worker::guarding;
use crate::{Engine, clock, confidence, invariants, rewind, worker};

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

/// Appends the events of a recorded decision: that it was made, and who approved it when it did not pass by itself.
pub(crate) fn emit_decision(engine: &Engine, w: &dyn Writer, plan: &Plan, decision: &Decision) -> Result<()> {
    let facts = json!({
        "decision_id": decision.decision_id, "decision_type": decision.decision_type,
        "parent_decision_id": decision.parent_decision_id, "confidence_score": decision.confidence,
        "sequence_number": decision.sequence_number, "pending": decision.pending,
    });
    emit(engine, w, plan, "decision.created", facts)?;
    if matches!(decision.approval, Some(Approval::ByCommand | Approval::ByPerson)) {
        let facts = json!({ "decision_id": decision.decision_id, "approved_by": decision.approval });
        emit(engine, w, plan, "decision.approved", facts)?;
    }
    Ok(())
}

/// The active decision recorded under a key.
pub(crate) fn by_key<'a>(decisions: &'a [Decision], key: &str) -> Option<&'a Decision> {
    decisions.iter().find(|d| d.superseded_by.is_none() && d.key.as_deref() == Some(key))
}

/// A draft's stored evidence: blobs are written before the transaction that names them.
pub(crate) struct Evidence {
    /// Blob of the context document.
    pub context_ref: String,
    /// Blob of the actor's state.
    pub state_ref: String,
}

/// Makes a decision of an actor's draft and computes how sure it is, or says which rule the draft breaks.
pub(crate) fn decision_of(
    w: &dyn Writer,
    plan: &Plan,
    draft: &DecisionDraft,
    evidence: &Evidence,
    known: &[Decision],
) -> Result<(Decision, ComputedConfidence)> {
    let broken =
        |why: String| Error::validation(format!("the decision `{}` was not recorded: {why}", draft.key));
    if plan.phase == Phase::Apply {
        return Err(broken("decisions are not made in Apply".to_owned()));
    }
    let strategize = plan.phase == Phase::Strategize;
    if !draft.decision_type.actor_may_record(strategize) {
        let word = draft.decision_type.as_str();
        return Err(broken(format!("an actor may not record a {word} in {}", plan.phase)));
    }
    let chosen = draft.alternatives.get(draft.chosen).ok_or_else(|| {
        broken(format!("option {} is not among its {} options", draft.chosen, draft.alternatives.len()))
    })?;
    if let Some(confidence) = draft.confidence.filter(|c| !(0.0..=1.0).contains(c)) {
        return Err(broken(format!("confidence {confidence} is not between 0 and 1")));
    }
    if (draft.decision_type == DecisionType::SubplanSpawn) != draft.spawn.is_some() {
        return Err(broken(
            "a subplan_spawn, and nothing else, says what its child plan shall do".to_owned(),
        ));
    }
    if draft.question.trim().is_empty() {
        return Err(broken("it asks nothing".to_owned()));
    }
    let root = known
        .iter()
        .find(|d| d.parent_decision_id.is_none() && d.superseded_by.is_none())
        .ok_or_else(|| broken("the plan has no root decision".to_owned()))?;
    let find = |key: &String| {
        by_key(known, key)
            .map(|d| d.decision_id)
            .ok_or_else(|| broken(format!("there is no active decision `{key}`")))
    };
    let parent = draft.parent.as_ref().map(find).transpose()?.unwrap_or(root.decision_id);
    let mut depends_on = draft.depends_on.iter().map(find).collect::<Result<Vec<_>>>()?;
    let enforced = known
        .iter()
        .filter(|d| d.superseded_by.is_none() && d.decision_type == DecisionType::InvariantEnforced)
        .map(|d| d.decision_id);
    depends_on.extend(enforced);
    depends_on.sort_unstable();
    depends_on.dedup();
    let computed = confidence::of_draft(w, plan, draft, known)?;
    let outcome = gates::decision_gate(
        &plan.profile.profile,
        plan.phase,
        draft.confidence,
        computed.score,
        plan.commanded,
        false,
    );
    let undoing = draft.decision_type == DecisionType::ErrorRecovery;
    let paths: Vec<&str> = draft.resources.iter().map(|r| r.path.as_str()).collect();
    let escalated =
        invariants::wants_approval(&invariant::enforced(known), &[&draft.question, &chosen.option], &paths)
            .is_some();
    let approval = match outcome {
        GateOutcome::Pass(_) if escalated && !undoing => None,
        GateOutcome::Pass(approval) => Some(approval),
        // Taking back one's own work needs nobody's word.
        GateOutcome::Ask { .. } if undoing => Some(Approval::Automatic),
        GateOutcome::Ask { .. } => None,
    };
    let decision = Decision {
        decision_id: DecisionId::from_ulid(clock::ulid()),
        plan_id: plan.plan_id,
        parent_decision_id: Some(parent),
        sequence_number: w.next_sequence(plan.plan_id)?,
        key: Some(draft.key.clone()),
        decision_type: draft.decision_type,
        question: draft.question.clone(),
        chosen_option: chosen.option.clone(),
        alternatives: draft.alternatives.clone(),
        confidence: draft.confidence,
        rationale: draft.rationale.clone(),
        actor_reasoning: draft.reasoning.clone(),
        context: ContextSnapshot {
            hot_context_hash: evidence.context_ref.clone(),
            hot_context_ref: evidence.context_ref.clone(),
            relevant_resources: draft.resources.clone(),
            actor_state_ref: evidence.state_ref.clone(),
        },
        depends_on,
        pending: approval.is_none(),
        approval,
        artifacts: Vec::new(),
        downstream_plans: Vec::new(),
        corrects_decision_id: None,
        correction_reason: None,
        superseded_by: None,
        created_at: clock::now(),
    };
    Ok((decision, computed))
}

/// The pause for the first of the decisions that wait.
pub(crate) fn awaiting_decision(plan: &Plan, decision: &Decision) -> Awaiting {
    // A guard asks by a flag of its own, whatever the confidence.
    let every = plan.profile.profile.safety.require_human_approval && plan.phase == Phase::Execute;
    let guard = guarding::flag_of(decision).or(every.then_some("require_human_approval"));
    // A conflict is asked about whatever the profile says.
    let conflict = decision.key.as_deref().is_some_and(|key| key.starts_with(crate::worker::MERGE_KEY));
    let guard = guard.filter(|_| !conflict);
    let gate = decision.decision_type.gate().filter(|_| guard.is_none() && !conflict);
    Awaiting {
        kind: AwaitingKind::Decision,
        decision_id: Some(decision.decision_id),
        question: decision.question.clone(),
        options: decision.alternatives.iter().map(|a| a.option.clone()).collect(),
        flag: guard.or_else(|| gate.map(Gate::flag)).map(str::to_owned),
        threshold: gate.map(|gate| plan.profile.profile.thresholds.of(gate)),
        confidence: decision.confidence,
        since: clock::now(),
    }
}

/// What a person said.
pub(crate) struct Answer<'a> {
    /// The pending decision it answers.
    pub target: Option<&'a Decision>,
    /// The option meant, or the words themselves.
    pub chosen: String,
    /// The words.
    pub guidance: &'a str,
    /// Blob of the words.
    pub context_ref: &'a str,
    /// Blob of the empty actor state.
    pub state_ref: &'a str,
}

/// The decision that holds what a person said.
pub(crate) fn intervention(w: &dyn Writer, plan: &Plan, answer: Answer<'_>) -> Result<Decision> {
    let known = w.decisions(plan.plan_id)?;
    let root = known
        .iter()
        .find(|d| d.parent_decision_id.is_none())
        .ok_or_else(|| Error::internal(format!("plan {} has no root decision", plan.plan_id)))?;
    let target = answer.target;
    let asked = plan.awaiting.as_ref().map(|a| a.question.clone());
    Ok(Decision {
        decision_id: DecisionId::from_ulid(clock::ulid()),
        plan_id: plan.plan_id,
        parent_decision_id: Some(target.map_or(root.decision_id, |t| t.decision_id)),
        sequence_number: w.next_sequence(plan.plan_id)?,
        key: target.and_then(|t| t.key.clone()),
        decision_type: DecisionType::UserIntervention,
        question: target
            .map(|t| t.question.clone())
            .or(asked)
            .unwrap_or_else(|| "What should the next step know?".to_owned()),
        chosen_option: answer.chosen,
        alternatives: target.map_or_else(
            || vec![Alternative { option: answer.guidance.to_owned(), description: None }],
            |t| t.alternatives.clone(),
        ),
        confidence: None,
        rationale: match target {
            Some(t) => format!("Answered by a person; `{}` was proposed", t.chosen_option),
            None => "Said by a person".to_owned(),
        },
        actor_reasoning: None,
        context: ContextSnapshot {
            hot_context_hash: answer.context_ref.to_owned(),
            hot_context_ref: answer.context_ref.to_owned(),
            relevant_resources: target.map_or_else(Vec::new, |t| t.context.relevant_resources.clone()),
            // An answer is corrected like the proposal it took the place of.
            actor_state_ref: target
                .map_or(answer.state_ref, |t| t.context.actor_state_ref.as_str())
                .to_owned(),
        },
        depends_on: Vec::new(),
        pending: false,
        approval: Some(Approval::ByPerson),
        artifacts: Vec::new(),
        downstream_plans: Vec::new(),
        corrects_decision_id: None,
        correction_reason: None,
        superseded_by: None,
        created_at: clock::now(),
    })
}
