//! `plan correct --mode append`: work that is added to a decision as a child plan.

use agents_domain::correction::{CorrectionAttempt, CorrectionMode, CorrectionState};
use agents_domain::decision::{Alternative, Approval, ContextSnapshot, Decision, DecisionType};
use agents_domain::ids::{CorrectionId, DecisionId};
use agents_domain::plan::children::SpawnDraft;
use agents_domain::plan::machine::{self, Event};
use agents_domain::plan::{Plan, State};
use agents_domain::{Error, Result, tree};
use serde_json::json;

use super::correct::{
    AppendDetail, CorrectOutput, CorrectionView, Queued, counted, duration_text, refuse_while_executing,
};
use crate::children::{self, NewChild};
use crate::records::{self, advance};
use crate::{Engine, clock, rewind};

/// Adds work to a decision; nothing that is there is touched.
pub(super) fn append(
    engine: &Engine,
    target: &Decision,
    guidance: &str,
    dry_run: bool,
) -> Result<CorrectOutput> {
    let id = target.plan_id;
    let plan = engine.plan(&id.to_string())?;
    let draft = SpawnDraft { prompt: Some(guidance.to_owned()), ..SpawnDraft::default() };
    let child = check(engine, &plan, target).and_then(|()| children::prepare(engine, &plan, &draft));
    if dry_run {
        return preview(engine, &plan, target, child.err());
    }
    let child = child?;
    let words = json!({ "guidance": guidance, "adds_to": target.decision_id });
    let context_ref = engine.store.put_blob(words.to_string().as_bytes())?;
    let state_ref = engine.store.put_blob(b"null")?;
    let output = engine.write(|w| {
        let mut plan = w.plan(id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
        refuse_while_executing(w, plan.root_plan_id)?;
        advance(engine, w, &mut plan, &Event::CorrectAppend)?;
        let attempt_id = CorrectionId::from_ulid(clock::ulid());
        let context = ContextSnapshot {
            hot_context_hash: context_ref.clone(),
            hot_context_ref: context_ref.clone(),
            relevant_resources: target.context.relevant_resources.clone(),
            actor_state_ref: state_ref.clone(),
        };
        let added = Decision {
            decision_id: DecisionId::from_ulid(clock::ulid()),
            // Beside the decision; the root has no siblings.
            parent_decision_id: Some(target.parent_decision_id.unwrap_or(target.decision_id)),
            sequence_number: w.next_sequence(id)?,
            key: Some(format!("append/{attempt_id}")),
            decision_type: DecisionType::SubplanSpawn,
            question: format!("What is added to “{}”?", super::tree::first_line(&target.question)),
            chosen_option: guidance.to_owned(),
            alternatives: vec![Alternative { option: guidance.to_owned(), description: None }],
            confidence: None,
            rationale: "Asked for by a person".to_owned(),
            actor_reasoning: None,
            context,
            depends_on: Vec::new(),
            pending: false,
            approval: Some(Approval::ByPerson),
            artifacts: Vec::new(),
            downstream_plans: Vec::new(),
            corrects_decision_id: Some(target.decision_id),
            correction_reason: Some(guidance.to_owned()),
            superseded_by: None,
            created_at: clock::now(),
            plan_id: id,
        };
        w.insert_decision(&added)?;
        records::emit_decision(engine, w, &plan, &added)?;
        let said = Decision {
            decision_id: DecisionId::from_ulid(clock::ulid()),
            parent_decision_id: Some(added.decision_id),
            sequence_number: w.next_sequence(id)?,
            key: None,
            decision_type: DecisionType::UserIntervention,
            question: "What was said about the addition?".to_owned(),
            rationale: "Said by a person".to_owned(),
            corrects_decision_id: None,
            correction_reason: None,
            created_at: clock::now(),
            ..added.clone()
        };
        w.insert_decision(&said)?;
        records::emit_decision(engine, w, &plan, &said)?;
        let mut spawn = children::decided(id, added.decision_id, "append", draft.clone());
        spawn.approved = true;
        children::insert(engine, w, &plan, &mut spawn, &child)?;
        let now = clock::now();
        w.put_correction(&CorrectionAttempt {
            correction_id: attempt_id,
            plan_id: id,
            original_decision_id: target.decision_id,
            new_decision_id: added.decision_id,
            mode: CorrectionMode::Append,
            guidance: guidance.to_owned(),
            state: CorrectionState::Completed,
            phase: plan.phase,
            affected: Vec::new(),
            archive: Some(rewind::keep_states(engine, &rewind::file_states(&w.changes(id)?))?),
            outcome: None,
            child_plan_id: Some(child.plan.plan_id),
            failure: None,
            created_by: engine.user.clone(),
            created_at: now,
            completed_at: Some(now),
        })?;
        let facts = json!({
            "correction_id": attempt_id, "decision_id": target.decision_id, "mode": "append",
            "new_decision_id": added.decision_id, "child_plan_id": child.plan.plan_id, "attempt": plan.attempt,
        });
        records::emit(engine, w, &plan, "decision.corrected", facts)?;
        Ok(appended(&plan, target, &added, attempt_id, &child, w.changes(id)?.len()))
    })?;
    start(engine, &plan, &child)?;
    Ok(output)
}

/// The child of an applied plan goes its own way; any other is worked on with its parent.
fn start(engine: &Engine, before: &Plan, child: &NewChild) -> Result<()> {
    let id = before.plan_id;
    let alone = before.state == State::Applied;
    let (plan, wants) = if alone {
        (child.plan.plan_id, child.plan.status().wants_worker())
    } else {
        (id, engine.plan(&id.to_string())?.status().wants_worker())
    };
    if wants && !engine.store.is_leased(plan)? {
        engine.start_worker(plan)?;
    }
    Ok(())
}

fn check(engine: &Engine, plan: &Plan, target: &Decision) -> Result<()> {
    let decisions = engine.view(|r| r.decisions(plan.plan_id))?;
    tree::affected(target.decision_id, &decisions, &[])?;
    machine::step(&plan.status(), &Event::CorrectAppend, &records::context_of(plan), clock::now())?;
    engine.look(|r| refuse_while_executing(r, plan.root_plan_id))
}

fn detail(artifacts: usize) -> AppendDetail {
    AppendDetail {
        original_decision_preserved: true,
        existing_artifacts_kept: true,
        additional_work: "appended as new child plan".to_owned(),
        note: format!(
            "What there is stays ({}); a new child plan works on top of it.",
            counted(artifacts, "recorded write")
        ),
    }
}

/// How long the plan's own work took, as a guess for the child's.
fn eta(plan: &Plan) -> u64 {
    let took = |times: &agents_domain::plan::PhaseTimes| {
        times.finished.unwrap_or_else(clock::now).millis_since(times.started)
    };
    plan.phase_times.values().map(took).sum::<u64>().div_ceil(1000).max(1)
}

fn appended(
    plan: &Plan,
    target: &Decision,
    added: &Decision,
    attempt: CorrectionId,
    child: &NewChild,
    artifacts: usize,
) -> CorrectOutput {
    CorrectOutput {
        correction: Some(CorrectionView {
            mode: CorrectionMode::Append,
            impact: "adds to existing subtree, no rollback".to_owned(),
            new_decision: added.decision_id,
            corrects: None,
            appended_after: Some(target.decision_id),
            attempt: plan.attempt,
            correction_attempt_id: attempt,
            chosen: added.chosen_option.clone(),
        }),
        append_detail: Some(detail(artifacts)),
        queued: Some(Queued {
            new_child: 1,
            eta: duration_text(eta(plan)),
            child_plan_id: child.plan.plan_id,
        }),
        ..CorrectOutput::at(plan)
    }
}

fn preview(engine: &Engine, plan: &Plan, target: &Decision, refused: Option<Error>) -> Result<CorrectOutput> {
    let changes = engine.view(|r| r.changes(target.plan_id))?;
    Ok(CorrectOutput {
        dry_run: Some(true),
        append_detail: Some(detail(changes.len())),
        estimated_recompute_time_seconds: Some(eta(plan)),
        rejected: Some(refused.is_some()),
        reason: refused.as_ref().map(|error| error.message.clone()),
        suggestions: refused.map(|error| error.suggestions).unwrap_or_default(),
        ..CorrectOutput::at(plan)
    })
}
