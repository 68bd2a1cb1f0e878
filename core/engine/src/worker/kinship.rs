//! What a transition of a plan means for its child plans, and one of a child for its parent, within the same transaction.

use agents_domain::Error;
use agents_domain::plan::children::{Spawn, Stage};
use agents_domain::plan::machine::Event;
use agents_domain::plan::{Awaiting, AwaitingKind, Phase, Plan, State};
use agents_domain::ports::store::Writer;

use super::children::CHILD_FAILED;
use crate::records::{self, advance};
use crate::{Engine, children as making};

/// Cancels the children of a cancelled plan that are not done; what is done stays (PLAN-072).
pub(crate) fn cancel_all(engine: &Engine, w: &dyn Writer, parent: &Plan) -> agents_domain::Result<()> {
    for row in w.child_rows(parent.plan_id)? {
        let open = row.phase != Phase::Apply && !matches!(row.state, State::Complete | State::Cancelled);
        if !open {
            continue;
        }
        let Some(mut child) = w.plan(row.plan_id)? else { continue };
        child.cancel_reason = Some(format!("plan {}, its parent, was cancelled", parent.plan_id));
        advance(engine, w, &mut child, &Event::Cancel)?;
    }
    Ok(())
}

/// What becomes of children when their parent's phase is done anew: those whose decision fell are given up, those that
/// are done are taken in again.
pub(crate) fn start_over(engine: &Engine, w: &dyn Writer, parent: &Plan) -> agents_domain::Result<()> {
    let decisions = w.decisions(parent.plan_id)?;
    for spawn in w.spawns(parent.plan_id)? {
        let Some(child) = spawn.child else { continue };
        if making::standing(&spawn, &decisions).is_some() {
            if matches!(spawn.stage, Stage::Merged { .. } | Stage::Conflicted { .. }) {
                w.put_spawn(&Spawn { stage: Stage::Started, ..spawn })?;
            }
            continue;
        }
        let Some(mut plan) = w.plan(child)? else { continue };
        if plan.phase != Phase::Apply && !matches!(plan.state, State::Complete | State::Cancelled) {
            plan.cancel_reason = Some("its parent decided otherwise".to_owned());
            advance(engine, w, &mut plan, &Event::Cancel)?;
        }
    }
    Ok(())
}

/// A command that starts a parent's Execute starts what was appended to it before that, too.
pub(crate) fn commanded(engine: &Engine, w: &dyn Writer, parent: &Plan) -> agents_domain::Result<()> {
    for row in w.child_rows(parent.plan_id)? {
        if (row.phase, row.state) != (Phase::Strategize, State::Queued) {
            continue;
        }
        let Some(mut child) = w.plan(row.plan_id)? else { continue };
        match child.awaiting.as_ref().map(|a| a.kind) {
            Some(AwaitingKind::ConfirmStrategize) => {
                advance(engine, w, &mut child, &Event::Execute)?;
            }
            _ => {
                child.commanded = true;
                records::touch(w, &mut child)?;
            }
        }
    }
    Ok(())
}

/// Lets a parent go on that waits for a child, or failed because of one, when the child moved.
pub(crate) fn moved(engine: &Engine, w: &dyn Writer, child: &Plan) -> agents_domain::Result<()> {
    let Some(mut parent) = child.parent_plan_id.map(|id| w.plan(id)).transpose()?.flatten() else {
        return Ok(());
    };
    let reopened = !child.status().ended() && child.phase != Phase::Apply && child.state != State::Complete;
    let closed = !parent.status().ended()
        && ((parent.phase, parent.state) == (Phase::Execute, State::Complete)
            || parent.phase == Phase::Apply);
    if reopened && closed {
        let refused = |error: Error| {
            let why = format!("child plan {} is not taken up again: {}", child.plan_id, error.message);
            Error { message: why, ..error }
        };
        advance(engine, w, &mut parent, &Event::ChildReopened).map_err(refused)?;
        return Ok(());
    }
    let moves = child.status().wants_worker() && child.phase != Phase::Apply || child.status().ended();
    let waits = match parent.awaiting.as_ref().map(|a| a.kind) {
        Some(kind) => kind == AwaitingKind::ChildPlan,
        None => {
            parent.phase == Phase::Execute
                && parent.state == State::Errored
                && parent.failure.as_ref().is_some_and(|f| f.category == CHILD_FAILED)
                && child.state != State::Cancelled
        }
    };
    if moves && waits {
        advance(engine, w, &mut parent, &Event::ChildMoved)?;
    }
    Ok(())
}

/// A person's answer to whether a child starts.
pub(crate) fn answered(w: &dyn Writer, asked: &Awaiting, start: bool) -> agents_domain::Result<()> {
    let Some(decision) = asked.decision_id.map(|id| w.decision(id)).transpose()?.flatten() else {
        return Ok(());
    };
    let known = w.decisions(decision.plan_id)?;
    let about = |spawn: &&Spawn| {
        spawn.stage == Stage::Decided
            && !spawn.approved
            && making::standing(spawn, &known).is_some_and(|d| d.decision_id == decision.decision_id)
    };
    let Some(spawn) = w.spawns(decision.plan_id)?.iter().find(about).cloned() else { return Ok(()) };
    let stage = if start {
        Stage::Decided
    } else {
        Stage::Skipped { reason: "left out by a person".to_owned(), left_out: true }
    };
    w.put_spawn(&Spawn { stage, approved: start, ..spawn })?;
    Ok(())
}
