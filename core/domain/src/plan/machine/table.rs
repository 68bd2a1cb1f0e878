//! One assertion per row of the state table, `T01` to `T52`.

use AwaitingKind as K;

use super::tests::{at, context, decision_question, failure, now, waits};
use super::*;
use crate::action::ActionState;
use crate::decision::Approval;
use crate::plan::gates::{GateOutcome, decision_gate};
use crate::profile::built_in_profile;

const S: Phase = Phase::Strategize;
const E: Phase = Phase::Execute;
const A: Phase = Phase::Apply;

#[track_caller]
fn goes(rule: &str, from: &Status, event: Event, context: &Context, to: &str) -> Transition {
    let transition =
        step(from, &event, context, now()).unwrap_or_else(|r| panic!("{rule}: refused by {}: {r}", r.rule));
    assert_eq!(transition.status.describe(), to, "{rule}");
    assert_eq!(transition.rule, rule);
    assert!(transition.status.is_legal(), "{rule}: {}", transition.status.describe());
    transition
}

#[track_caller]
fn refused(rule: &str, from: &Status, event: Event, context: &Context) {
    let refusal = step(from, &event, context, now()).expect_err(rule);
    assert_eq!(refusal.rule, rule, "{refusal}");
    assert!(refusal.message.contains(&from.describe()), "{refusal}");
}

#[test]
fn t01_to_t04_actions() {
    // T01: a new action is available.
    assert_eq!(ActionState::default(), ActionState::Available);
    // T02: using an action that is not reusable archives it.
    let used = |reusable| action_step(ActionState::Available, ActionVerb::Use { reusable });
    assert_eq!(used(true), Ok(ActionState::Available));
    assert_eq!(used(false), Ok(ActionState::Archived));
    // T03
    assert_eq!(action_step(ActionState::Available, ActionVerb::Archive), Ok(ActionState::Archived));
    assert_eq!(action_step(ActionState::Archived, ActionVerb::Archive).unwrap_err().rule, "T03");
    // T04
    let refusal = action_step(ActionState::Archived, ActionVerb::Use { reusable: true }).unwrap_err();
    assert_eq!(refusal.rule, "T04");
}

#[test]
fn t02_to_t07_starting() {
    // T02: a new plan is queued at its first attempt.
    let new = Status::begin(&context("supervised"), now());
    assert_eq!((new.describe().as_str(), new.attempt), ("strategize/queued", 1));
    // T05
    goes("T05", &new, Event::WorkerTook, &context("supervised"), "strategize/processing");
    // T06: manual asks, cautious asks below 0.7.
    let asks = Status::begin(&context("manual"), now());
    assert_eq!(asks.describe(), "strategize/queued (awaiting confirm_strategize)");
    refused("T05", &asks, Event::WorkerTook, &context("manual"));
    let sure = |confidence| Context { confidence: Some(confidence), ..context("cautious") };
    assert_eq!(Status::begin(&sure(0.69), now()).awaiting_kind(), Some(K::ConfirmStrategize));
    assert_eq!(Status::begin(&sure(0.7), now()).awaiting_kind(), None);
    // T07: the command answers for the decisions of the phase too.
    let t07 = goes("T07", &asks, Event::Execute, &context("manual"), "strategize/processing");
    assert!(t07.status.commanded);
    let t07 = goes("T07", &asks, Event::Prompt(Answer::Words), &context("manual"), "strategize/processing");
    assert!(!t07.status.commanded);
    assert_eq!(t07.effects[0], Effect::QueueGuidance { option: None });
    goes("T07", &asks, Event::Prompt(Answer::Option(0)), &context("manual"), "strategize/processing");
}

#[test]
fn t08_to_t10_decisions_of_strategize() {
    let gate = |profile: &str, confidence| {
        decision_gate(&built_in_profile(profile).unwrap(), S, Some(confidence), 0.5, false, false)
    };
    // T08
    assert_eq!(gate("supervised", 0.0), GateOutcome::Pass(Approval::Automatic));
    // T09
    assert!(!gate("review", 0.99).passes());
    let run = at(S, State::Processing);
    let pending = Event::DecisionsPending { first: decision_question() };
    let t09 = goes("T09", &run, pending, &context("review"), "strategize/processing (awaiting decision)");
    // T10: by option, by words, or settled elsewhere; a command is no answer.
    let answered = goes(
        "T10",
        &t09.status,
        Event::Prompt(Answer::Option(1)),
        &context("review"),
        "strategize/processing",
    );
    assert_eq!(answered.effects[0], Effect::AnswerDecision { option: Some(1) });
    let answered =
        goes("T10", &t09.status, Event::Prompt(Answer::Words), &context("review"), "strategize/processing");
    assert_eq!(answered.effects[0], Effect::AnswerDecision { option: None });
    goes("T10", &t09.status, Event::DecisionsSettled, &context("review"), "strategize/processing");
    refused("T10", &t09.status, Event::Execute, &context("review"));
    refused("T10", &run, Event::DecisionsSettled, &context("review"));
}

#[test]
fn t11_to_t17_ending_strategize() {
    let run = at(S, State::Processing);
    // T11, T15: estimation comes between the phases.
    let t15 = goes("T11", &run, Event::ActorDone, &context("trusted"), "execute/queued");
    let estimate = t15.effects.iter().position(|e| *e == Effect::Estimate).unwrap();
    let phase = t15.effects.iter().position(|e| matches!(e, Effect::PhaseChanged { .. })).unwrap();
    assert!(estimate < phase);
    // T12
    let transient = || Event::TransientFailure(failure("timeout"));
    let t12 = goes("T12", &run, transient(), &context("supervised"), "strategize/processing");
    assert_eq!(t12.effects, [Effect::RetryStep]);
    // T13: not allowed to retry: asks; nothing left to retry, or no transient failure: fails.
    let t13 = goes("T13", &run, transient(), &context("manual"), "strategize/processing (awaiting retry)");
    let none_left = Context { tool_retries_left: 0, ..context("supervised") };
    goes("T13", &run, transient(), &none_left, "strategize/errored");
    goes("T13", &run, Event::StepFailed(failure("x")), &context("ci"), "strategize/errored");
    goes("T13", &run, Event::Unrecovered(failure("x")), &context("ci"), "strategize/errored");
    let retried = goes("T14", &t13.status, Event::Execute, &context("manual"), "strategize/processing");
    assert_eq!(retried.effects[0], Effect::RetryStep);
    // T14: the phase goes on where it was, so the attempt stays.
    let failed = at(S, State::Errored);
    for event in [Event::Execute, Event::Prompt(Answer::Words)] {
        let t14 = goes("T14", &failed, event, &context("manual"), "strategize/processing");
        assert_eq!(t14.status.attempt, 1);
    }
    // T16
    let t16 = goes(
        "T11",
        &run,
        Event::ActorDone,
        &context("supervised"),
        "strategize/complete (awaiting execute_approval)",
    );
    // T17
    let t17 = goes("T17", &t16.status, Event::Execute, &context("supervised"), "execute/queued");
    assert!(t17.status.commanded);
    goes("T17", &t16.status, Event::Prompt(Answer::Option(0)), &context("supervised"), "execute/queued");
    // Words about the strategy go to the strategy, and the plan asks again.
    let again = goes(
        "T14",
        &t16.status,
        Event::Prompt(Answer::Words),
        &context("supervised"),
        "strategize/processing",
    );
    assert_eq!(again.status.attempt, 2);
    assert!(again.effects.contains(&Effect::RestartActor));
}

#[test]
fn t18_to_t22_working_in_execute() {
    let queued = at(E, State::Queued);
    let run = at(E, State::Processing);
    // T18
    goes("T18", &queued, Event::WorkerTook, &context("ci"), "execute/processing");
    let full = Context { slots_free: false, ..context("ci") };
    refused("PLAN-056", &queued, Event::WorkerTook, &full);
    let no_sandbox = Context { sandbox_possible: false, ..context("ci") };
    goes("T18", &queued, Event::WorkerTook, &no_sandbox, "execute/errored");
    let free = Context { sandbox_possible: false, ..context("full-auto") };
    goes("T18", &queued, Event::WorkerTook, &free, "execute/processing");
    // T19
    let profile = built_in_profile("cautious").unwrap();
    assert!(decision_gate(&profile, E, Some(0.8), 0.5, false, false).passes());
    // T20
    assert!(!decision_gate(&profile, E, Some(0.79), 0.5, false, false).passes());
    let pending = || Event::DecisionsPending { first: decision_question() };
    let t20 = goes("T20", &run, pending(), &context("cautious"), "execute/processing (awaiting decision)");
    goes("T32", &t20.status, Event::Prompt(Answer::Words), &context("cautious"), "execute/processing");
    refused("T32", &t20.status, Event::Execute, &context("cautious"));
    refused("T20", &at(A, State::Processing), pending(), &context("cautious"));
    // T21
    let spawn = || Event::SpawnWanted { label: "split the module".to_owned(), decision: None };
    let t21 = goes("T21", &run, spawn(), &context("trusted"), "execute/processing");
    assert_eq!(t21.effects, [Effect::SpawnChild]);
    refused("T21", &run, spawn(), &Context { child_depth_left: 0, ..context("trusted") });
    // T22
    let t22 = goes("T22", &run, spawn(), &context("supervised"), "execute/processing (awaiting spawn)");
    for (option, effect) in [(0, Effect::SpawnChild), (1, Effect::SkipChild)] {
        let answered = goes(
            "T32",
            &t22.status,
            Event::Prompt(Answer::Option(option)),
            &context("supervised"),
            "execute/processing",
        );
        assert_eq!(answered.effects[0], effect);
    }
}

#[test]
fn t23_to_t29_failures_of_execute() {
    let run = at(E, State::Processing);
    let transient = || Event::TransientFailure(failure("timeout"));
    let failed = || Event::StepFailed(failure("broken"));
    // T23
    let t23 = goes("T23", &run, transient(), &context("supervised"), "execute/processing");
    assert_eq!(t23.effects, [Effect::RetryStep]);
    let none_left = Context { tool_retries_left: 0, ..context("auto") };
    goes("T24", &run, transient(), &none_left, "execute/processing");
    // T24
    let t24 = goes("T24", &run, failed(), &context("auto"), "execute/processing");
    assert_eq!(t24.effects, [Effect::RestoreCheckpoint]);
    // T25
    let t25 = goes("T25", &run, failed(), &context("trusted"), "execute/processing (awaiting restore)");
    for (rule, event) in [("T33", Event::Execute), ("T33", Event::Prompt(Answer::Option(0)))] {
        let restored = goes(rule, &t25.status, event, &context("trusted"), "execute/processing");
        assert_eq!(restored.effects[0], Effect::RestoreCheckpoint);
    }
    // T26
    let invalid = |attempts| Event::ValidationFailed { attempts, failure: failure("tests") };
    let t26 = goes("T26", &run, invalid(2), &context("trusted"), "execute/processing");
    assert_eq!(t26.effects, [Effect::FixValidation]);
    // T27
    let t27 =
        goes("T27", &run, invalid(0), &context("supervised"), "execute/processing (awaiting validation_fix)");
    let revised = goes(
        "T29",
        &t27.status,
        Event::Prompt(Answer::Option(1)),
        &context("supervised"),
        "strategize/queued",
    );
    assert_eq!((revised.status.attempt, revised.status.reversions), (2, 0));
    // T28: by itself, with what was found, up to the cap; also when fixing did not help.
    let tight = || Event::StrategyTooTight(failure("cannot be kept"));
    for event in [tight(), invalid(3)] {
        let t28 = goes("T28", &run, event, &context("auto"), "strategize/queued");
        assert_eq!((t28.status.attempt, t28.status.reversions), (2, 1));
        assert_eq!(t28.effects[0], Effect::RollBackExecuteWork);
        assert!(t28.effects.contains(&Effect::HandOverFindings));
    }
    // T29: the profile asks, or the cap is reached.
    let t29 =
        goes("T29", &run, tight(), &context("trusted"), "execute/processing (awaiting strategy_revision)");
    let capped = Status { reversions: 3, ..run.clone() };
    goes("T29", &capped, tight(), &context("ci"), "execute/processing (awaiting strategy_revision)");
    goes("T33", &t29.status, Event::Execute, &context("trusted"), "execute/processing");
    goes("T29", &t29.status, Event::Prompt(Answer::Words), &context("trusted"), "strategize/queued");
}

#[test]
fn t30_to_t37_ending_execute() {
    let run = at(E, State::Processing);
    // T30, T34
    let t34 = goes("T30", &run, Event::ActorDone, &context("ci"), "apply/queued");
    assert!(t34.effects.contains(&Effect::RecordApproval { by_person: false }));
    // T31
    let t31 = goes("T31", &run, Event::Unrecovered(failure("x")), &context("ci"), "execute/errored");
    assert_eq!(t31.effects[0], Effect::CheckpointOnError);
    let hopeless = PlanFailure { recoverable: false, ..failure("x") };
    goes("T31", &run, Event::StepFailed(hopeless), &context("ci"), "execute/errored");
    let none_left = Context { step_retries_left: 0, ..context("ci") };
    goes("T31", &run, Event::StepFailed(failure("x")), &none_left, "execute/errored");
    // T32
    let t32 = goes("T32", &t31.status, Event::Prompt(Answer::Words), &context("ci"), "execute/processing");
    assert_eq!(t32.effects[0], Effect::QueueGuidance { option: None });
    let asked = waits(E, State::Processing, K::LanguageServer);
    let t32 = goes("T32", &asked, Event::Prompt(Answer::Option(0)), &context("ci"), "execute/processing");
    assert_eq!(t32.effects[0], Effect::QueueGuidance { option: Some("this".to_owned()) });
    // T33
    let t33 = goes("T33", &t31.status, Event::Execute, &context("ci"), "execute/processing");
    assert_eq!(t33.effects[0], Effect::Resumed);
    goes("T33", &waits(E, State::Queued, K::Rollback), Event::Execute, &context("ci"), "execute/processing");
    // T35: the threshold asks, or the guard does whatever the threshold says.
    let t35 =
        goes("T30", &run, Event::ActorDone, &context("auto"), "execute/complete (awaiting apply_approval)");
    let guarded = Context { require_approval_for_apply: true, ..context("ci") };
    let by_guard =
        goes("T30", &run, Event::ActorDone, &guarded, "execute/complete (awaiting apply_approval)");
    assert_eq!(by_guard.status.awaiting.unwrap().flag.as_deref(), Some("require_approval_for_apply"));
    // T36
    let apply = || Event::Apply { no_commit: false };
    let t36 = goes("T36", &t35.status, apply(), &context("auto"), "apply/queued");
    assert_eq!(t36.apply_mode, Some(ApplyMode::Commit));
    goes("T36", &t35.status, Event::Prompt(Answer::Option(0)), &context("auto"), "apply/queued");
    goes("T36", &t36.status, Event::WorkerTook, &context("auto"), "apply/processing");
    let again =
        goes("T32", &t35.status, Event::Prompt(Answer::Words), &context("auto"), "execute/processing");
    assert_eq!(again.status.attempt, 2);
    // T37
    let failing = Context { required_validation_failed: true, ..context("ci") };
    let done = goes("T30", &run, Event::ActorDone, &failing, "execute/complete (awaiting apply_approval)");
    refused("T37", &done.status, apply(), &failing);
    refused("T37", &at(E, State::Errored), apply(), &failing);
    refused("T37", &at(E, State::Errored), apply(), &context("ci"));
    goes("T32", &done.status, Event::Prompt(Answer::Option(0)), &failing, "execute/processing");
}

#[test]
fn t38_to_t43_applying() {
    let run = at(A, State::Processing);
    // T38
    let t38 = goes("T38", &run, Event::ApplyCommitted, &context("ci"), "apply/applied");
    assert!(t38.effects.contains(&Effect::WriteAudit));
    // T39, T41
    let moved = || Event::ApplyConstrained(failure("src/a.py changed"));
    let t41 = goes("T41", &run, moved(), &context("ci"), "strategize/queued");
    let to =
        |state| t41.effects.iter().any(|e| matches!(e, Effect::StateChanged { to, .. } if to.state == state));
    assert!(to(State::Constrained), "T39 shows on the way");
    assert_eq!((t41.status.attempt, t41.status.reversions), (2, 1));
    // T40
    let t40 = goes("T40", &run, Event::ApplyFailed(failure("disk full")), &context("ci"), "apply/errored");
    // T42: approved by prompt, refused by cancel; never back once something is committed.
    let t42 = goes("T42", &run, moved(), &context("auto"), "apply/constrained (awaiting reversion)");
    goes("T42", &t42.status, Event::Prompt(Answer::Option(0)), &context("auto"), "strategize/queued");
    goes("T44", &t42.status, Event::Cancel, &context("auto"), "apply/cancelled");
    let committed = Context { committed: true, ..context("ci") };
    let half = goes("T42", &run, moved(), &committed, "apply/constrained (awaiting reversion)");
    refused("T42", &half.status, Event::Prompt(Answer::Words), &committed);
    goes("T43", &half.status, Event::Prompt(Answer::Option(0)), &committed, "apply/processing");
    // T43
    let apply = Event::Apply { no_commit: true };
    let t43 = goes("T43", &t40.status, apply.clone(), &context("ci"), "apply/processing");
    assert_eq!(t43.apply_mode, Some(ApplyMode::NoCommit));
    goes("T43", &t42.status, apply, &context("auto"), "apply/processing");
    refused("PLAN-082", &t40.status, Event::Prompt(Answer::Words), &context("ci"));
}

#[test]
fn t44_to_t49_taking_back() {
    let ci = context("ci");
    // T44
    for (phase, state) in [
        (S, State::Queued),
        (S, State::Processing),
        (E, State::Errored),
        (A, State::Queued),
        (A, State::Errored),
    ] {
        let t44 = goes("T44", &at(phase, state), Event::Cancel, &ci, &format!("{phase}/cancelled"));
        assert!(t44.effects.contains(&Effect::CancelChildren));
    }
    refused("T44", &at(E, State::Cancelled), Event::Cancel, &ci);
    refused("T44", &at(A, State::Applied), Event::Cancel, &ci);
    // What is half applied is finished or undone first, whether something is recorded as committed or not.
    let committed = Context { committed: true, ..ci };
    for context in [&ci, &committed] {
        refused("T44", &at(A, State::Processing), Event::Cancel, context);
    }
    // PLAN-072
    refused("T44", &at(S, State::Cancelled), Event::Execute, &ci);
    // T45
    let revert = |target_phase| Event::CorrectRevert { target_phase };
    let t45 = goes("T45", &at(S, State::Errored), revert(S), &ci, "strategize/processing");
    assert_eq!(t45.status.attempt, 2);
    assert!(!t45.effects.contains(&Effect::RollBackExecuteWork));
    let t45 =
        goes("T45", &waits(E, State::Complete, K::ApplyApproval), revert(S), &ci, "strategize/processing");
    assert_eq!(t45.effects[0], Effect::RollBackExecuteWork);
    // T46
    let t46 = goes("T46", &at(E, State::Processing), revert(E), &ci, "execute/processing");
    assert_eq!((t46.status.attempt, &t46.effects[0]), (2, &Effect::RollBackCorrected));
    refused("T46", &at(S, State::Processing), revert(E), &ci);
    // T47
    goes("T47", &at(A, State::Errored), revert(E), &ci, "execute/processing");
    goes("T47", &waits(A, State::Constrained, K::Reversion), revert(S), &ci, "strategize/processing");
    refused("T47", &at(A, State::Errored), revert(S), &committed);
    refused("T47", &at(A, State::Processing), revert(S), &ci);
    // CORR-030
    refused("CORR-030", &at(A, State::Applied), revert(S), &ci);
    // T48
    let t48 = goes("T48", &at(A, State::Applied), Event::CorrectAppend, &ci, "apply/applied");
    assert_eq!((t48.status.attempt, &t48.effects[..]), (2, &[Effect::QueueChild][..]));
    goes("T48", &waits(E, State::Complete, K::ApplyApproval), Event::CorrectAppend, &ci, "execute/queued");
    refused("T48", &at(S, State::Cancelled), Event::CorrectAppend, &ci);
    // C-60
    goes("T48", &waits(E, State::Complete, K::ApplyApproval), Event::ChildReopened, &ci, "execute/queued");
    goes("T48", &waits(A, State::Constrained, K::Reversion), Event::ChildReopened, &ci, "execute/queued");
    goes("T48", &at(E, State::Processing), Event::ChildReopened, &ci, "execute/processing");
    refused("T48", &at(A, State::Processing), Event::ChildReopened, &ci);
    refused("T48", &at(A, State::Errored), Event::ChildReopened, &committed);
    // T49
    let back = "execute/queued (awaiting rollback)";
    let t49 = goes("T49", &at(E, State::Errored), Event::Rollback, &ci, back);
    assert_eq!(t49.effects[0], Effect::RollBackToCheckpoint);
    goes("T49", &waits(E, State::Processing, K::Restore), Event::Rollback, &ci, back);
    goes("T49", &at(A, State::Errored), Event::Rollback, &ci, back);
    refused("T49", &at(E, State::Processing), Event::Rollback, &ci);
    refused("T49", &at(A, State::Errored), Event::Rollback, &committed);
    refused("CKPT-006", &at(A, State::Applied), Event::Rollback, &ci);
}

#[test]
fn t50_to_t52_accidents() {
    let ci = context("ci");
    // T50
    let over = |terminate| Event::BudgetExceeded { limit: "the cost limit of 5 USD".to_owned(), terminate };
    let t50 =
        goes("T50", &at(E, State::Processing), over(false), &ci, "execute/processing (awaiting budget)");
    goes("T50", &at(S, State::Processing), over(true), &ci, "strategize/errored");
    let extended = goes("T33", &t50.status, Event::Execute, &ci, "execute/processing");
    assert_eq!(extended.effects[0], Effect::ExtendBudget);
    refused("T50", &at(A, State::Processing), over(false), &ci);
    // T51
    for (phase, state) in [(S, State::Processing), (E, State::Complete), (A, State::Errored)] {
        let event = Event::RollbackFailed(failure("cannot restore"));
        goes("T51", &at(phase, state), event, &ci, &format!("{phase}/errored"));
    }
    // T52: whoever looks next goes on; nobody has to be asked.
    for phase in [S, E, A] {
        let t52 = goes(
            "T52",
            &at(phase, State::Processing),
            Event::WorkerLost,
            &ci,
            &format!("{phase}/processing"),
        );
        assert_eq!(t52.effects, [Effect::Resumed]);
    }
    refused("T52", &at(S, State::Errored), Event::WorkerLost, &ci);
}
