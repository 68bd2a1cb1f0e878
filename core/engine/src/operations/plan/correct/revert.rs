//! Recording a revert: the plan moves, and what is to be taken back is written down for its worker.

use std::collections::BTreeSet;

use agents_domain::Result;
use agents_domain::correction::{CorrectionAttempt, CorrectionMode, CorrectionState, Rewind, RewindCause};
use agents_domain::decision::{
    Alternative, Approval, ContextSnapshot, Decision, DecisionType, effective_parent,
};
use agents_domain::ids::{CorrectionId, DecisionId, PlanId};
use agents_domain::plan::machine::Event;
use agents_domain::plan::{Guidance, Plan, State};
use agents_domain::ports::store::Writer;
use serde_json::json;

use super::check::{Planned, check};
use super::{
    AffectedSubtree, CorrectOutput, CorrectionView, Recompute, SandboxRollback, counted, duration_text,
    refuse_while_executing,
};
use crate::records::{self, advance};
use crate::rewind::{self, Facts};
use crate::{Engine, clock, worker};

pub(super) fn revert(engine: &Engine, target: &Decision, guidance: &str) -> Result<CorrectOutput> {
    let id = target.plan_id;
    let plan = engine.plan(&id.to_string())?;
    worker::refuse_half_made(engine, &plan)?;
    let words = json!({ "guidance": guidance, "corrects": target.decision_id });
    let context_ref = engine.store.put_blob(words.to_string().as_bytes())?;
    let (output, cancelled) = engine.write(|w| {
        refuse_while_executing(w, plan.root_plan_id)?;
        let facts = Facts::load(w, id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
        let planned = check(engine, w, &facts, target, guidance)?;
        for overtaken in w.executing_corrections(facts.plan.root_plan_id)? {
            let plan = w.plan(overtaken.plan_id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
            let why = "another correction came before it was complete".to_owned();
            rewind::end_correction(engine, w, &plan, overtaken, Some(why))?;
        }
        let mut plan = facts.plan.clone();
        let event = Event::CorrectRevert { target_phase: planned.scope.phase };
        advance(engine, w, &mut plan, &event)?;
        let children: Vec<PlanId> = planned.scope.children.iter().map(|c| c.plan_id).collect();
        let why = format!("decision {} of its parent was corrected", target.decision_id);
        let cancelled = cancel_children(engine, w, &children, &why)?;
        let attempt = CorrectionAttempt {
            correction_id: CorrectionId::from_ulid(clock::ulid()),
            plan_id: id,
            original_decision_id: target.decision_id,
            new_decision_id: DecisionId::from_ulid(clock::ulid()),
            mode: CorrectionMode::Revert,
            guidance: guidance.to_owned(),
            state: CorrectionState::Executing,
            phase: planned.scope.phase,
            affected: planned.scope.fallen.clone(),
            archive: Some(rewind::keep_states(engine, &rewind::file_states(&facts.changes))?),
            outcome: None,
            child_plan_id: None,
            failure: None,
            created_by: engine.user.clone(),
            created_at: clock::now(),
            completed_at: None,
        };
        w.put_correction(&attempt)?;
        let rewind = rewind_of(&facts, &planned, target, &attempt, &context_ref);
        w.put_rewind(&rewind)?;
        let told = json!({
            "correction_id": attempt.correction_id, "decision_id": target.decision_id, "mode": "revert",
            "decisions": attempt.affected.len(), "attempt": plan.attempt,
        });
        records::emit(engine, w, &plan, "correction.requested", told)?;
        Ok((reverted(&plan, &facts, &planned, target, &attempt, &rewind), cancelled))
    })?;
    for child in &cancelled {
        crate::sandboxes::clean_up(child);
    }
    if !engine.store.is_leased(id)? {
        engine.start_worker(id)?;
    }
    Ok(output)
}

/// Gives up the child plans that hang on what is taken back; those that are cancelled already stay so.
pub(in crate::operations::plan) fn cancel_children(
    engine: &Engine,
    w: &dyn Writer,
    children: &[PlanId],
    why: &str,
) -> Result<Vec<Plan>> {
    let mut cancelled = Vec::new();
    for child in children {
        let Some(mut child) = w.plan(*child)? else { continue };
        if child.state != State::Cancelled {
            child.cancel_reason = Some(why.to_owned());
            advance(engine, w, &mut child, &Event::Cancel)?;
        }
        cancelled.push(child);
    }
    Ok(cancelled)
}

/// What replaces the target, and what the person said.
fn rewind_of(
    facts: &Facts,
    planned: &Planned,
    target: &Decision,
    attempt: &CorrectionAttempt,
    context_ref: &str,
) -> Rewind {
    let scope = &planned.scope;
    let guidance = &attempt.guidance;
    let is_root = target.parent_decision_id.is_none();
    let fallen: BTreeSet<DecisionId> = scope.fallen.iter().copied().collect();
    // A parent that falls with it is not there to hang below.
    let mut parent = effective_parent(target, &facts.decisions);
    while let Some(above) = parent.filter(|id| fallen.contains(id)).and_then(|id| facts.decision(id)) {
        parent = effective_parent(above, &facts.decisions);
    }
    let context = ContextSnapshot {
        hot_context_hash: context_ref.to_owned(),
        hot_context_ref: context_ref.to_owned(),
        ..target.context.clone()
    };
    let replacement = Decision {
        decision_id: attempt.new_decision_id,
        parent_decision_id: parent,
        chosen_option: planned.chosen.clone(),
        alternatives: if is_root {
            vec![Alternative { option: planned.chosen.clone(), description: None }]
        } else {
            target.alternatives.clone()
        },
        confidence: None,
        rationale: format!(
            "Corrected by a person; it was `{}`",
            crate::operations::plan::tree::first_line(&target.chosen_option)
        ),
        actor_reasoning: None,
        context,
        depends_on: target.depends_on.iter().copied().filter(|id| !fallen.contains(id)).collect(),
        pending: false,
        approval: Some(Approval::ByPerson),
        artifacts: Vec::new(),
        downstream_plans: Vec::new(),
        corrects_decision_id: Some(target.decision_id),
        correction_reason: Some(guidance.clone()),
        superseded_by: None,
        created_at: clock::now(),
        ..target.clone()
    };
    let said = Decision {
        decision_id: DecisionId::from_ulid(clock::ulid()),
        parent_decision_id: Some(attempt.new_decision_id),
        key: None,
        decision_type: DecisionType::UserIntervention,
        question: "What was said about the correction?".to_owned(),
        chosen_option: guidance.clone(),
        alternatives: vec![Alternative { option: guidance.clone(), description: None }],
        rationale: "Said by a person".to_owned(),
        depends_on: Vec::new(),
        corrects_decision_id: None,
        correction_reason: None,
        created_at: clock::now(),
        ..replacement.clone()
    };
    let (recorded, holder) = if planned.removes {
        let said = Decision {
            decision_id: attempt.new_decision_id,
            parent_decision_id: parent,
            corrects_decision_id: Some(target.decision_id),
            correction_reason: Some(guidance.clone()),
            ..said
        };
        let holder = said.decision_id;
        (vec![said], holder)
    } else {
        let holder = said.decision_id;
        (vec![replacement, said], holder)
    };
    Rewind {
        plan_id: attempt.plan_id,
        cause: RewindCause::Correction(attempt.correction_id),
        resources: scope.resources.clone(),
        recorded,
        fallen: scope.fallen.clone(),
        undone: scope.undone.clone(),
        rewritten: scope.rewritten.clone(),
        calls: Vec::new(),
        recalled: scope.recalled.clone(),
        spawns: scope.spawns.clone(),
        resume: scope.resume.clone(),
        guidance: (!planned.option && !is_root).then(|| Guidance {
            decision_id: holder,
            text: guidance.clone(),
            applied: false,
        }),
        description: is_root.then(|| planned.chosen.clone()),
    }
}

fn reverted(
    plan: &Plan,
    facts: &Facts,
    planned: &Planned,
    target: &Decision,
    attempt: &CorrectionAttempt,
    rewind: &Rewind,
) -> CorrectOutput {
    let scope = &planned.scope;
    let first = facts.changes.iter().find(|c| scope.undone.contains(&c.change_id));
    let checkpoint = first.and_then(|first| {
        facts
            .checkpoints
            .iter()
            .rev()
            .find(|c| c.created_at < first.created_at && c.resource_id == first.resource_id)
    });
    let seconds = planned.again.seconds();
    let counts = [
        (scope.fallen.len(), "decision"),
        (scope.children.len(), "child plan"),
        (scope.artifacts.len(), "artifact"),
    ];
    CorrectOutput {
        correction: Some(CorrectionView {
            mode: CorrectionMode::Revert,
            impact: counts.map(|(n, noun)| counted(n, noun)).join(", "),
            new_decision: attempt.new_decision_id,
            corrects: Some(target.decision_id),
            appended_after: None,
            attempt: plan.attempt,
            correction_attempt_id: attempt.correction_id,
            chosen: planned.chosen.clone(),
        }),
        affected_subtree: Some(AffectedSubtree {
            decisions_invalidated: scope.fallen.len(),
            child_plans_rolled_back: scope.children.len(),
            artifacts_archived: scope.artifacts.len(),
            unaffected_decisions: scope.unaffected,
            decision_ids: scope.fallen.clone(),
            child_plan_ids: scope.children.iter().map(|c| c.plan_id).collect(),
            artifacts: scope.artifacts.clone(),
        }),
        sandbox_rollback: Some(SandboxRollback {
            checkpoint: checkpoint.map(|c| c.checkpoint_id.to_string()),
            files_reverted: scope.artifacts.len(),
            status: if rewind.resources.is_empty() { "none" } else { "queued" }.to_owned(),
        }),
        recompute: Some(Recompute {
            queued: counted(scope.children.len(), "child plan"),
            eta: duration_text(seconds),
            eta_s: seconds,
        }),
        history: vec![
            "Original decision superseded".to_owned(),
            "Prior artifacts archived for comparison".to_owned(),
            format!("agents plan diff --correction {}", attempt.correction_id),
        ],
        tier: Some(scope.tier),
        warnings: scope.warnings.clone(),
        ..CorrectOutput::at(plan)
    }
}
