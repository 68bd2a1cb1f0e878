//! Keeping what failed, so that the next plan knows.

use agents_domain::Result;
use agents_domain::decision::Decision;
use agents_domain::failure::{FailureRecord, FailureShape, path_shape};
use agents_domain::plan::machine::Effect;
use agents_domain::plan::{Plan, PlanFailure, State};
use agents_domain::ports::actor::Request;
use agents_domain::ports::store::{ActorRun, Writer};

use crate::clock;
use crate::records::by_key;
use crate::tools;

/// Records a failure of the phase `run` is of, with the request it failed at when it was one.
pub(super) fn record(
    w: &dyn Writer,
    plan: &Plan,
    run: Option<&ActorRun>,
    failure: &PlanFailure,
    outcome: &str,
) -> Result<()> {
    let decisions = w.decisions(plan.plan_id)?;
    let request = run.and_then(|run| run.requests.get(run.done));
    let behind = request.and_then(key_of).and_then(|key| by_key(&decisions, key));
    w.insert_failure(&FailureRecord {
        plan_id: plan.plan_id,
        phase: failure.phase,
        step: failure.step.clone(),
        shape: FailureShape {
            category: failure.category.clone(),
            tool: failure.tool.clone().or_else(|| Some(actor_of(plan, failure))),
            decision_type: behind.map(|decision| decision.decision_type),
            path_shape: request
                .and_then(|request| tools::paths_of(request).first().cloned())
                .or_else(|| behind.and_then(first_file))
                .map(|path| path_shape(&path)),
        },
        message: failure.message.clone(),
        hints: failure.hints.clone(),
        outcome: outcome.to_owned(),
        created_at: clock::now(),
    })?;
    Ok(())
}

/// What was done about a failure, by where the plan went.
pub(super) fn outcome_of(plan: &Plan, effects: &[Effect]) -> &'static str {
    let did = |effect: &Effect| effects.contains(effect);
    if did(&Effect::RetryStep) {
        "retried"
    } else if did(&Effect::RestoreCheckpoint) {
        "restored"
    } else if did(&Effect::HandOverFindings) {
        "reverted"
    } else if plan.state == State::Errored {
        "failed"
    } else if plan.awaiting.is_some() {
        "asked"
    } else {
        "handled"
    }
}

fn key_of(request: &Request) -> Option<&str> {
    match request {
        Request::Tool { decision, .. } => decision.as_deref(),
        Request::Checkpoint { decision, .. } | Request::Undo { decision } => Some(decision),
        Request::RecordDecision(draft) => Some(&draft.key),
    }
}

fn first_file(decision: &Decision) -> Option<String> {
    decision.context.relevant_resources.first().map(|at| at.path.clone())
}

fn actor_of(plan: &Plan, failure: &PlanFailure) -> String {
    use agents_domain::plan::Phase;
    let actors = &plan.actors;
    match failure.phase {
        Phase::Strategize => actors.strategy.to_string(),
        Phase::Execute => actors.execution.to_string(),
        Phase::Apply => "apply".to_owned(),
    }
}
