//! What people do to a plan.

use super::draft::Draft;
use super::questions::{Answer, Choice};
use super::{Denied, Effect, Transition};
use crate::plan::{AwaitingKind as K, Phase, State};

type Stepped = Result<Transition, Denied>;

const CANCELLED: &str = "a cancelled plan is never resumed; make a new one with `agents plan use`";
const APPLIED: &str = "an applied plan has ended; append a correction, or take it back with the action \
                       `builtin/revert-plan`";
const BUSY: &str = "it is being worked on; follow it, or give guidance with `agents plan prompt`";

/// `plan execute`.
pub(super) fn execute(draft: Draft) -> Stepped {
    match draft.at() {
        (Phase::Strategize, State::Queued, Some(K::ConfirmStrategize)) => {
            draft.run(Phase::Strategize).commanded().finish("T07")
        }
        (Phase::Strategize, State::Complete, _) => draft.queue(Phase::Execute).commanded().finish("T17"),
        (Phase::Execute, State::Queued, Some(K::Rollback)) => {
            draft.effect(Effect::Resumed).run(Phase::Execute).commanded().finish("T33")
        }
        (Phase::Strategize, State::Errored, _) => {
            draft.effect(Effect::Resumed).run(Phase::Strategize).finish("T14")
        }
        (Phase::Execute, State::Errored, _) => {
            draft.effect(Effect::Resumed).run(Phase::Execute).finish("T33")
        }
        (Phase::Strategize | Phase::Execute, State::Processing, Some(kind)) => go_on(draft, kind),
        (_, State::Cancelled, _) => draft.refuse("T44", CANCELLED),
        (_, State::Applied, _) => draft.refuse("T38", APPLIED),
        (Phase::Strategize | Phase::Execute, State::Queued | State::Processing, _) => {
            draft.refuse("PLAN-057", BUSY)
        }
        (Phase::Execute, _, _) => draft.refuse("PLAN-057", "Execute is done; the next step is Apply"),
        (Phase::Apply, _, _) => draft.refuse("PLAN-057", "Execute is over; only Apply is left"),
        (Phase::Strategize, _, _) => draft.refuse("PLAN-057", "there is nothing to execute here"),
    }
}

/// `plan execute` on a plan that waits in the middle of a phase: takes what goes on.
fn go_on(draft: Draft, kind: K) -> Stepped {
    let phase = draft.status.phase;
    let draft = match kind {
        // A person who has not looked at the question has not answered it.
        K::Decision | K::Spawn => {
            let rule = if phase == Phase::Strategize { "T10" } else { "T32" };
            return draft.refuse(rule, "a decision waits for an answer; give it with `agents plan prompt`");
        }
        K::Retry | K::StrategyRevision => draft.effect(Effect::RetryStep),
        K::Restore => draft.effect(Effect::RestoreCheckpoint),
        K::ValidationFix => draft.effect(Effect::FixValidation),
        K::Budget => draft.effect(Effect::ExtendBudget),
        _ => draft.effect(Effect::Resumed),
    };
    draft.run(phase).finish(if phase == Phase::Strategize { "T14" } else { "T33" })
}

/// `plan apply`.
pub(super) fn apply(draft: Draft, no_commit: bool) -> Stepped {
    match draft.at() {
        (Phase::Execute, State::Complete | State::Errored, _) if draft.context.required_validation_failed => {
            draft.refuse("T37", "a required validation of Execute did not pass, so nothing is applied")
        }
        (Phase::Execute, State::Complete, _) => draft
            .mode(no_commit)
            .effect(Effect::RecordApproval { by_person: true })
            .queue(Phase::Apply)
            .commanded()
            .finish("T36"),
        (Phase::Apply, State::Errored, _) => {
            draft.mode(no_commit).run(Phase::Apply).commanded().finish("T43")
        }
        // The person has made room: the change may fit now.
        (Phase::Apply, State::Constrained, _) => {
            draft.mode(no_commit).run(Phase::Apply).commanded().finish("T43")
        }
        (_, State::Cancelled, _) => draft.refuse("T44", CANCELLED),
        (_, State::Applied, _) => draft.refuse("T38", "it is applied already"),
        (Phase::Apply, _, _) => draft.refuse("APP-014", "it is being applied; follow it"),
        (Phase::Execute, State::Errored, _) => {
            draft.refuse("T37", "Execute failed; only finished work is applied")
        }
        _ => draft.refuse("APP-014", "only a plan whose Execute is complete can be applied"),
    }
}

/// `plan prompt`.
pub(super) fn prompt(draft: Draft, answer: &Answer) -> Stepped {
    let (phase, state, awaiting) = draft.at();
    match (state, awaiting) {
        (State::Cancelled, _) => draft.refuse("T44", CANCELLED),
        (State::Applied, _) => draft.refuse("T38", APPLIED),
        (_, Some(kind)) => answer_question(draft, kind, answer),
        (_, None) if phase == Phase::Apply => {
            draft.refuse("PLAN-082", "guidance is for Strategize and Execute; Apply decides nothing")
        }
        (State::Errored, None) => {
            guide(draft, None).effect(Effect::Resumed).run(phase).finish(resumed(phase))
        }
        // A child that is done: it does its work again with them.
        (State::Complete, None) => {
            guide(draft, None).again().effect(Effect::RestartActor).run(phase).finish(resumed(phase))
        }
        // Being worked on, or waiting for a worker: the next step gets it.
        (_, None) => guide(draft, None).finish("PLAN-080"),
    }
}

fn resumed(phase: Phase) -> &'static str {
    if phase == Phase::Strategize { "T14" } else { "T32" }
}

fn guide(draft: Draft, option: Option<String>) -> Draft {
    draft.effect(Effect::QueueGuidance { option })
}

fn answer_question(draft: Draft, kind: K, answer: &Answer) -> Stepped {
    let phase = draft.status.phase;
    let option = match *answer {
        Answer::Words => None,
        Answer::Option(index) => {
            let options = draft.status.awaiting.as_ref().map_or(&[][..], |a| &a.options);
            match options.get(index) {
                Some(text) => Some((index, text.clone())),
                None => {
                    let why = format!("there is no such option; there are {}", options.len());
                    return draft.refuse("PROF-028", &why);
                }
            }
        }
    };
    match kind {
        K::Decision => draft
            .effect(Effect::AnswerDecision { option: option.map(|(index, _)| index) })
            .run(phase)
            .finish(if phase == Phase::Strategize { "T10" } else { "T32" }),
        K::LanguageServer | K::Recovery => {
            guide(draft, option.map(|(_, text)| text)).run(phase).finish(resumed(phase))
        }
        _ => match option.and_then(|(_, text)| Choice::of(&text)) {
            Some(choice) => choose(draft, kind, choice),
            None => words(draft, kind),
        },
    }
}

/// A person took one of the machine's own options.
fn choose(draft: Draft, kind: K, choice: Choice) -> Stepped {
    let phase = draft.status.phase;
    match choice {
        Choice::Cancel => cancel(draft),
        Choice::Start if kind == K::Spawn => draft.effect(Effect::SpawnChild).run(phase).finish("T32"),
        Choice::Skip => draft.effect(Effect::SkipChild).run(phase).finish("T32"),
        // Failed validations: the work is done again instead of applied.
        Choice::Execute if phase == Phase::Execute => {
            draft.again().effect(Effect::RestartActor).run(phase).finish("T32")
        }
        Choice::Apply => {
            let no_commit = false;
            apply(draft, no_commit)
        }
        Choice::Revise => revise(draft),
        Choice::Start
        | Choice::Execute
        | Choice::Retry
        | Choice::Restore
        | Choice::Fix
        | Choice::Continue => execute(draft),
    }
}

/// A person answered one of the machine's own questions in their own words: the work goes on with them.
fn words(draft: Draft, kind: K) -> Stepped {
    let phase = draft.status.phase;
    let draft = guide(draft, None);
    match kind {
        K::ConfirmStrategize => draft.run(Phase::Strategize).finish("T07"),
        // Execute keeps to the strategy, so words about finished work go to the phase that can take them up.
        K::ExecuteApproval | K::ApplyApproval => {
            draft.again().effect(Effect::RestartActor).run(phase).finish(resumed(phase))
        }
        K::Retry => draft.effect(Effect::RetryStep).run(phase).finish(resumed(phase)),
        K::Restore => draft.effect(Effect::RestoreCheckpoint).run(phase).finish("T32"),
        K::ValidationFix => draft.effect(Effect::FixValidation).run(phase).finish("T32"),
        K::StrategyRevision | K::Reversion => revise(draft),
        // Only a clear yes spends more.
        K::Budget => draft.finish("T50"),
        _ => draft.run(phase).finish(resumed(phase)),
    }
}

/// A person sends the plan back to Strategize; this does not count against the cap of automatic reversions.
fn revise(draft: Draft) -> Stepped {
    if draft.context.committed {
        return draft.refuse("T42", "some resources have the changes already; apply the rest, or cancel");
    }
    let rule = if draft.status.phase == Phase::Apply { "T42" } else { "T29" };
    draft.revert().queue(Phase::Strategize).finish(rule)
}

/// `plan cancel`.
pub(super) fn cancel(draft: Draft) -> Stepped {
    match draft.at() {
        (_, State::Cancelled, _) => draft.refuse("T44", "it is cancelled already"),
        (_, State::Applied, _) => draft.refuse("T44", APPLIED),
        // What is half made is finished or undone first; a cancelled plan would hide it.
        (Phase::Apply, State::Processing, _) => {
            draft.refuse("T44", "it is being applied, which is not left half way; it ends by itself")
        }
        _ => draft.state(State::Cancelled).effect(Effect::CancelChildren).finish("T44"),
    }
}

/// `plan rollback`.
pub(super) fn rollback(draft: Draft) -> Stepped {
    let (phase, state, awaiting) = draft.at();
    let running = state == State::Processing && awaiting.is_none();
    match (phase, state) {
        (_, State::Cancelled) => draft.refuse("T44", CANCELLED),
        (_, State::Applied) => draft.refuse("CKPT-006", APPLIED),
        (Phase::Execute, _) if running => draft.refuse("T49", "it is being worked on; wait until it pauses"),
        (Phase::Execute, _) => rolled_back(draft),
        (Phase::Apply, State::Errored) if !draft.context.committed => rolled_back(draft),
        (Phase::Apply, _) => {
            draft.refuse("T49", "only an Apply that failed before it changed anything goes back")
        }
        (Phase::Strategize, _) => {
            draft.refuse("T49", "Strategize changes nothing; there is nothing to roll back")
        }
    }
}

fn rolled_back(draft: Draft) -> Stepped {
    let question = "The sandbox is back at the checkpoint. Go on from here?".to_owned();
    let awaiting = super::questions::question(K::Rollback, question, draft.context, draft.now);
    draft.effect(Effect::RollBackToCheckpoint).queue(Phase::Execute).ask(awaiting).finish("T49")
}

/// `plan correct --mode revert`.
pub(super) fn correct_revert(draft: Draft, target: Phase) -> Stepped {
    let (phase, state, _) = draft.at();
    let from_apply = match (phase, state) {
        (_, State::Cancelled) => return draft.refuse("T44", CANCELLED),
        (_, State::Applied) => return draft.refuse("CORR-030", APPLIED),
        (Phase::Apply, State::Errored | State::Constrained) if !draft.context.committed => true,
        (Phase::Apply, State::Errored | State::Constrained) => {
            return draft
                .refuse("T47", "some resources have the changes already; append a correction instead");
        }
        (Phase::Apply, _) => return draft.refuse("T47", "it is being applied; nothing is taken back now"),
        _ => false,
    };
    let rule = |own| if from_apply { "T47" } else { own };
    match (target, phase) {
        (Phase::Strategize, Phase::Strategize) => {
            draft.again().effect(Effect::RollBackCorrected).run(Phase::Strategize).finish("T45")
        }
        (Phase::Strategize, _) => draft
            .again()
            .effect(Effect::RollBackExecuteWork)
            .effect(Effect::RollBackCorrected)
            .run(Phase::Strategize)
            .finish(rule("T45")),
        (Phase::Execute, Phase::Execute | Phase::Apply) => {
            draft.again().effect(Effect::RollBackCorrected).run(Phase::Execute).finish(rule("T46"))
        }
        (Phase::Execute, Phase::Strategize) => draft.refuse("T46", "nothing is decided in Execute yet"),
        (Phase::Apply, _) => draft.refuse("DEC-007", "no decision is made in Apply"),
    }
}

/// `plan correct --mode append`.
pub(super) fn correct_append(draft: Draft) -> Stepped {
    let draft = match draft.at() {
        (_, State::Cancelled, _) => return draft.refuse("T48", CANCELLED),
        // The child's work is merged before Apply is asked for again.
        (Phase::Execute, State::Complete, _) => {
            draft.again().effect(Effect::QueueChild).queue(Phase::Execute)
        }
        _ => draft.again().effect(Effect::QueueChild),
    };
    draft.finish("T48")
}
