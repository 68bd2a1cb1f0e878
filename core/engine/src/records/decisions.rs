//! Decisions as they are recorded: from an actor's draft, with the question they put, and from what a person says.

use agents_domain::decision::{Alternative, Approval, ContextSnapshot, Decision, DecisionType};
use agents_domain::ids::DecisionId;
use agents_domain::invariant;
use agents_domain::plan::gates::{self, ComputedConfidence, GateOutcome};
use agents_domain::plan::{Awaiting, AwaitingKind, Phase, Plan};
use agents_domain::ports::actor::DecisionDraft;
use agents_domain::ports::store::Writer;
use agents_domain::profile::Gate;
use agents_domain::{Error, Result};
use serde_json::json;

use super::emit;
use crate::worker::guarding;
use crate::{Engine, clock, confidence, invariants};

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
