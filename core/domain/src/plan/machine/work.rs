//! What happens while a plan is worked on.

use super::draft::Draft;
use super::questions;
use super::{Denied, Effect, Event, Transition};
use crate::ids::DecisionId;
use crate::plan::{Awaiting, AwaitingKind as K, Phase, PlanFailure, State};
use crate::profile::Gate;

type Stepped = Result<Transition, Denied>;

pub(super) fn step(draft: Draft, event: &Event) -> Stepped {
    if draft.status.ended() {
        return draft.refuse("PLAN-004", "it has ended; what is still being done for it is to be left");
    }
    match event {
        Event::WorkerTook => worker_took(draft),
        Event::WorkerLost => worker_lost(draft),
        Event::DecisionsSettled => match draft.at() {
            (phase, State::Processing, Some(K::Decision)) => {
                draft.run(phase).finish(if phase == Phase::Strategize { "T10" } else { "T32" })
            }
            _ => draft.refuse("T10", "it waits for no decision"),
        },
        Event::ChildMoved => match draft.at() {
            (Phase::Execute, State::Processing, Some(K::ChildPlan))
            | (Phase::Execute, State::Errored, None) => {
                draft.effect(Effect::Resumed).run(Phase::Execute).finish("T32")
            }
            _ => draft.refuse("T32", "it waits for no child plan"),
        },
        Event::ChildReopened => child_reopened(draft),
        Event::DecisionsPending { first } => {
            let rule = if draft.status.phase == Phase::Strategize { "T09" } else { "T20" };
            match draft.at() {
                (Phase::Strategize | Phase::Execute, State::Processing, None | Some(K::Decision))
                    if first.kind == K::Decision =>
                {
                    draft.ask(first.clone()).finish(rule)
                }
                _ => draft.refuse(rule, "decisions are made while Strategize or Execute runs"),
            }
        }
        Event::RollbackFailed(failure) => draft.failed(failure).state(State::Errored).finish("T51"),
        Event::Unrecovered(failure) => unrecovered(draft, failure),
        Event::ApplyCommitted | Event::ApplyConstrained(_) | Event::ApplyFailed(_) => applying(draft, event),
        _ => running(draft, event),
    }
}

fn worker_took(draft: Draft) -> Stepped {
    let (phase, state, awaiting) = draft.at();
    let rule = match phase {
        Phase::Strategize => "T05",
        Phase::Execute => "T18",
        Phase::Apply => "T36",
    };
    if awaiting.is_some() {
        return draft.refuse(rule, "it waits for a person, so no worker takes it");
    }
    match state {
        // Made `processing` by a verb; the worker that takes it changes nothing.
        State::Processing => draft.finish(rule),
        State::Queued if !draft.context.slots_free => {
            draft.refuse("PLAN-056", "as many plans are being worked on as may be at once; it stays queued")
        }
        State::Queued
            if phase == Phase::Execute
                && draft.context.require_sandbox
                && !draft.context.sandbox_possible =>
        {
            let failure = PlanFailure {
                message: "the profile requires a sandbox, and a resource of the plan can have none"
                    .to_owned(),
                category: "io".to_owned(),
                phase,
                tool: None,
                step: None,
                recoverable: false,
                retries: 0,
                hints: vec!["use a profile without `require_sandbox`, or another resource".to_owned()],
            };
            draft.failed(&failure).state(State::Errored).finish("T18")
        }
        State::Queued => draft.state(State::Processing).finish(rule),
        _ => draft.refuse(rule, "there is nothing to do for a worker"),
    }
}

/// Its work is taken in again before the plan is complete or applied.
fn child_reopened(draft: Draft) -> Stepped {
    match draft.at() {
        (Phase::Execute, State::Complete, _) => draft.queue(Phase::Execute).finish("T48"),
        (Phase::Apply, State::Errored | State::Constrained, _) if !draft.context.committed => {
            draft.queue(Phase::Execute).finish("T48")
        }
        (Phase::Apply, ..) => draft.refuse("T48", "what its child plans did is being applied with it"),
        // It has not come to its end: the child is taken in before that.
        _ => draft.finish("T48"),
    }
}

fn worker_lost(draft: Draft) -> Stepped {
    match draft.at() {
        (_, State::Processing, None) => draft.effect(Effect::Resumed).finish("T52"),
        (_, State::Queued, None) => draft.finish("T52"),
        _ => draft.refuse("T52", "no worker was on it"),
    }
}

fn unrecovered(draft: Draft, failure: &PlanFailure) -> Stepped {
    match draft.at() {
        (Phase::Strategize, State::Processing, _) => {
            draft.failed(failure).state(State::Errored).finish("T13")
        }
        (Phase::Execute, State::Processing, _) => failed_execute(draft, failure),
        _ => draft.refuse("T31", "only a phase that runs can fail"),
    }
}

fn failed_execute(draft: Draft, failure: &PlanFailure) -> Stepped {
    draft.effect(Effect::CheckpointOnError).failed(failure).state(State::Errored).finish("T31")
}

/// What only happens in Strategize or Execute, running and not waiting.
fn running(draft: Draft, event: &Event) -> Stepped {
    let (phase, state, awaiting) = draft.at();
    if phase == Phase::Apply || state != State::Processing || awaiting.is_some() {
        return draft.refuse(row(event, phase), "this happens only while Strategize or Execute runs");
    }
    let execute = phase == Phase::Execute;
    match event {
        Event::ActorAsked(asked) => {
            if asked.kind == K::Decision || !questions::awaiting_fits(phase, state, asked.kind) {
                return draft.refuse(row(event, phase), "an actor cannot ask that here");
            }
            let awaiting = questions::of_actor(asked, draft.context, draft.now);
            draft.ask(awaiting).finish(row(event, phase))
        }
        Event::ActorDone if execute => draft.executed().finish("T30"),
        Event::ActorDone => draft.strategized().finish("T11"),
        Event::SpawnWanted { label, decision } if execute => spawn(draft, label, *decision),
        Event::TransientFailure(failure) => transient(draft, failure),
        Event::StepFailed(failure) => step_failed(draft, failure),
        Event::ValidationFailed { attempts, failure } if execute => {
            validation_failed(draft, *attempts, failure)
        }
        Event::StrategyTooTight(failure) if execute => too_tight(draft, failure),
        Event::BudgetExceeded { limit, terminate } => budget(draft, limit, *terminate),
        _ => draft.refuse(row(event, phase), "this happens only in Execute"),
    }
}

/// The row an event belongs to.
fn row(event: &Event, phase: Phase) -> &'static str {
    let execute = phase == Phase::Execute;
    match event {
        Event::ActorDone if execute => "T30",
        Event::ActorDone => "T11",
        Event::SpawnWanted { .. } => "T21",
        Event::TransientFailure(_) if execute => "T23",
        Event::TransientFailure(_) => "T12",
        Event::StepFailed(_) if execute => "T24",
        Event::StepFailed(_) => "T13",
        Event::ValidationFailed { .. } => "T26",
        Event::StrategyTooTight(_) => "T28",
        Event::BudgetExceeded { .. } => "T50",
        _ => "PLAN-066",
    }
}

fn spawn(draft: Draft, label: &str, decision: Option<DecisionId>) -> Stepped {
    if draft.context.child_depth_left == 0 {
        return draft.refuse("T21", "child plans may not be nested any deeper");
    }
    let outcome = draft.gate(Gate::SpawnChild);
    if outcome.passes() || draft.approved_in_advance(Gate::SpawnChild) {
        return draft.effect(Effect::SpawnChild).finish("T21");
    }
    let question = format!("Start a child plan: {label}?");
    let awaiting = questions::question(K::Spawn, question, draft.context, draft.now);
    let awaiting = Awaiting { decision_id: decision, ..awaiting.gated(Gate::SpawnChild, outcome) };
    draft.ask(awaiting).finish("T22")
}

fn transient(draft: Draft, failure: &PlanFailure) -> Stepped {
    let strategize = draft.status.phase == Phase::Strategize;
    if draft.context.tool_retries_left == 0 {
        return step_failed(draft, failure);
    }
    let outcome = draft.gate(Gate::Retry);
    if outcome.passes() {
        return draft.effect(Effect::RetryStep).finish(if strategize { "T12" } else { "T23" });
    }
    let question = format!("{}: try again?", failure.message);
    draft.failed(failure).ask_gate(K::Retry, Gate::Retry, outcome, question).finish("T13")
}

fn step_failed(draft: Draft, failure: &PlanFailure) -> Stepped {
    if draft.status.phase == Phase::Strategize {
        return draft.failed(failure).state(State::Errored).finish("T13");
    }
    if !failure.recoverable || draft.context.step_retries_left == 0 {
        return failed_execute(draft, failure);
    }
    let outcome = draft.gate(Gate::RestoreCheckpoint);
    if outcome.passes() {
        return draft.effect(Effect::RestoreCheckpoint).finish("T24");
    }
    let question = format!("{}: restore the last checkpoint and try again?", failure.message);
    draft.failed(failure).ask_gate(K::Restore, Gate::RestoreCheckpoint, outcome, question).finish("T25")
}

fn validation_failed(draft: Draft, attempts: u32, failure: &PlanFailure) -> Stepped {
    if attempts >= draft.context.fix_limit {
        return too_tight(draft, failure);
    }
    let outcome = draft.gate(Gate::ValidationFix);
    if outcome.passes() {
        return draft.effect(Effect::FixValidation).finish("T26");
    }
    let question = format!("{}: try to fix it?", failure.message);
    draft.failed(failure).ask_gate(K::ValidationFix, Gate::ValidationFix, outcome, question).finish("T27")
}

fn too_tight(draft: Draft, failure: &PlanFailure) -> Stepped {
    let outcome = draft.gate(Gate::ExecuteReversion);
    if outcome.passes() && draft.may_revert() {
        return draft.revert_automatically().finish("T28");
    }
    let question = format!("{}: decide the strategy again?", failure.message);
    draft
        .failed(failure)
        .ask_gate(K::StrategyRevision, Gate::ExecuteReversion, outcome, question)
        .finish("T29")
}

fn budget(draft: Draft, limit: &str, terminate: bool) -> Stepped {
    if terminate {
        let failure = PlanFailure {
            message: format!("{limit} is used up"),
            category: "budget".to_owned(),
            phase: draft.status.phase,
            tool: None,
            step: None,
            recoverable: false,
            retries: 0,
            hints: vec!["raise the limit, then go on with `agents plan execute`".to_owned()],
        };
        return draft.failed(&failure).state(State::Errored).finish("T50");
    }
    let question = format!("{limit} is used up. Go on?");
    let awaiting = questions::question(K::Budget, question, draft.context, draft.now);
    draft.ask(awaiting).finish("T50")
}

fn applying(draft: Draft, event: &Event) -> Stepped {
    let rule = match event {
        Event::ApplyCommitted => "T38",
        Event::ApplyConstrained(_) => "T39",
        _ => "T40",
    };
    if (draft.status.phase, draft.status.state) != (Phase::Apply, State::Processing) {
        return draft.refuse(rule, "it is not being applied");
    }
    match event {
        Event::ApplyConstrained(failure) => {
            let outcome = draft.gate(Gate::ApplyReversion);
            let automatic = outcome.passes() && draft.may_revert() && !draft.context.committed;
            let constrained = draft.failed(failure).state(State::Constrained);
            if automatic {
                return constrained.revert_automatically().finish("T41");
            }
            let question = if constrained.context.committed {
                format!("{}: apply the rest again?", failure.message)
            } else {
                format!("{}: decide again from what is there now?", failure.message)
            };
            constrained.ask_gate(K::Reversion, Gate::ApplyReversion, outcome, question).finish("T42")
        }
        Event::ApplyFailed(failure) => draft.failed(failure).state(State::Errored).finish("T40"),
        _ => draft
            .state(State::Applied)
            .effect(Effect::WriteAudit)
            .effect(Effect::CleanUpSandboxes)
            .finish("T38"),
    }
}
