//! The machine seen from its callers: answers, refusals, allowed actions, and the plan's record.

use serde_json::json;
use ulid::Ulid;

use super::*;
use crate::plan::PhaseSummary;
use crate::profile::{ProfileSnapshot, built_in_profile};

pub(super) const NOW: i64 = 1_000_000;

pub(super) fn now() -> Timestamp {
    Timestamp::from_micros(NOW)
}

pub(super) fn plan_id() -> PlanId {
    PlanId::from_ulid(Ulid::from(7u128))
}

pub(super) fn context(profile: &str) -> Context {
    Context::new(plan_id(), &built_in_profile(profile).unwrap())
}

pub(super) fn failure(message: &str) -> PlanFailure {
    PlanFailure {
        message: message.to_owned(),
        category: "tool".to_owned(),
        phase: Phase::Execute,
        tool: None,
        step: None,
        recoverable: true,
        retries: 0,
        hints: Vec::new(),
    }
}

pub(super) fn at(phase: Phase, state: State) -> Status {
    Status { phase, state, awaiting: None, attempt: 1, reversions: 0, commanded: false }
}

pub(super) fn waits(phase: Phase, state: State, kind: AwaitingKind) -> Status {
    let mut awaiting =
        questions::question(kind, format!("about {kind}"), &context("manual"), Timestamp::from_micros(1));
    if awaiting.options.is_empty() {
        awaiting.options = vec!["this".to_owned(), "that".to_owned()];
    }
    Status { awaiting: Some(awaiting), ..at(phase, state) }
}

pub(super) fn decision_question() -> Awaiting {
    waits(Phase::Strategize, State::Processing, AwaitingKind::Decision).awaiting.unwrap()
}

pub(crate) fn plan(profile: &str) -> Plan {
    let profile = built_in_profile(profile).unwrap();
    let mut plan: Plan = serde_json::from_value(json!({
        "plan_id": plan_id(), "root_plan_id": plan_id(), "action": "local/x", "projects": ["local/app"],
        "resources": [], "description": "do it", "definition_of_done": "it is done", "arguments": {},
        "actors": { "strategy": "local/s", "execution": "local/e" },
        "profile": ProfileSnapshot { profile, source: "default".to_owned() },
        "read_only": false, "invariants": [], "phase": "strategize", "state": "queued", "attempt": 1,
        "reversions": 0, "commanded": false, "sandboxes": [], "guidance": [], "summaries": {}, "applied": [],
        "tool_calls": 0, "created_by": "somebody", "created_at": now(), "updated_at": now(),
        "phase_times": {}, "epoch": 0,
    }))
    .unwrap();
    plan.begin(&Context::of(&plan), now());
    plan
}

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_micros(NOW + seconds * 1_000_000)
}

fn verbs(status: &Status, context: &Context) -> Vec<Verb> {
    allowed_actions(status, context).into_iter().map(|a| a.verb).collect()
}

// PLAN-019, PLAN-050, PLAN-053: the default profile from use to applied, with every event in order.
#[test]
fn a_supervised_plan_goes_from_use_to_applied_with_two_words_of_a_person() {
    let mut plan = plan("supervised");
    let context = Context::of(&plan);
    assert!(plan.status().wants_worker());
    let mut events = Vec::new();
    let mut go = |plan: &mut Plan, event: Event, second: i64| {
        let effects = plan.advance(&event, &context, later(second)).unwrap();
        events.extend(effects.iter().flat_map(|e| e.events(plan)).map(|e| {
            let point = |at: &str| format!("{}/{}", e.details[at]["phase"], e.details[at]["state"]);
            match e.event_type.as_str() {
                "plan.state_changed" => format!("{} > {}", point("from"), point("to")).replace('"', ""),
                "plan.phase_changed" => {
                    format!("{} >> {}", e.details["from"], e.details["to"]).replace('"', "")
                }
                other => other.to_owned(),
            }
        }));
        effects
    };
    go(&mut plan, Event::WorkerTook, 1);
    go(&mut plan, Event::ActorDone, 2);
    assert_eq!(plan.status().describe(), "strategize/complete (awaiting execute_approval)");
    assert!(!plan.status().wants_worker());
    go(&mut plan, Event::Execute, 3);
    assert!(plan.commanded);
    go(&mut plan, Event::WorkerTook, 4);
    go(&mut plan, Event::ActorDone, 5);
    assert_eq!(plan.status().describe(), "execute/complete (awaiting apply_approval)");
    let effects = go(&mut plan, Event::Apply { no_commit: true }, 6);
    assert!(effects.contains(&Effect::RecordApproval { by_person: true }));
    go(&mut plan, Event::WorkerTook, 7);
    let effects = go(&mut plan, Event::ApplyCommitted, 8);
    assert!(effects.ends_with(&[Effect::WriteAudit, Effect::CleanUpSandboxes]));
    assert_eq!(plan.apply_mode, Some(ApplyMode::NoCommit));
    assert_eq!(plan.completed_at, Some(later(8)));
    let seconds: Vec<_> = plan.phase_times.values().map(|t| (t.started, t.finished.unwrap())).collect();
    assert_eq!(seconds, [(later(1), later(2)), (later(4), later(5)), (later(7), later(8))]);
    assert_eq!(
        events,
        [
            "strategize/queued > strategize/processing",
            "strategize/processing > strategize/complete",
            "strategize/complete > strategize/complete",
            "strategize >> execute",
            "strategize/complete > execute/queued",
            "execute/queued > execute/processing",
            "execute/processing > execute/complete",
            "execute/complete > execute/complete",
            "execute >> apply",
            "execute/complete > apply/queued",
            "apply/queued > apply/processing",
            "apply/processing > apply/applied",
            "plan.applied",
        ]
    );
}

#[test]
fn profiles_that_never_ask_go_through_without_a_person() {
    for profile in ["ci", "full-auto"] {
        let mut plan = plan(profile);
        let context = Context::of(&plan);
        for event in [
            Event::WorkerTook,
            Event::ActorDone,
            Event::WorkerTook,
            Event::ActorDone,
            Event::WorkerTook,
            Event::ApplyCommitted,
        ] {
            assert!(plan.status().wants_worker());
            plan.advance(&event, &context, now()).unwrap();
        }
        assert_eq!(plan.status().describe(), "apply/applied");
        assert_eq!((plan.attempt, plan.commanded), (1, false));
    }
}

// C-52
#[test]
fn the_event_of_a_pause_carries_the_whole_question() {
    let mut plan = plan("supervised");
    let context = Context::of(&plan);
    plan.advance(&Event::WorkerTook, &context, now()).unwrap();
    let effects = plan.advance(&Event::ActorDone, &context, later(1)).unwrap();
    let last = effects.last().unwrap().events(&plan).remove(0);
    assert_eq!(last.event_type, "plan.state_changed");
    assert_eq!(last.details["awaiting"]["kind"], "execute_approval");
    assert_eq!(last.details["awaiting"]["options"], json!(["execute", "cancel"]));
    assert_eq!(last.details["awaiting"]["flag"], "create_tool");
    assert_eq!(last.details["awaiting"]["threshold"], 1.0);
    assert_eq!(plan.awaiting.as_ref().unwrap().since, later(1));
}

#[test]
fn each_step_moves_the_time_of_change_even_when_the_clock_stands_still() {
    let mut plan = plan("ci");
    let context = Context::of(&plan);
    let before = plan.updated_at;
    plan.advance(&Event::WorkerTook, &context, now()).unwrap();
    assert!(plan.updated_at > before);
    let before = plan.updated_at;
    plan.advance(&Event::ActorDone, &context, Timestamp::from_micros(0)).unwrap();
    assert!(plan.updated_at > before);
}

// PLAN-006: the work and the words of a phase that is done again are not those of the new run.
#[test]
fn a_reversion_drops_summaries_and_times_of_what_is_done_again() {
    let mut plan = plan("ci");
    let context = Context::of(&plan);
    for event in [Event::WorkerTook, Event::ActorDone, Event::WorkerTook] {
        plan.advance(&event, &context, now()).unwrap();
    }
    plan.summaries.insert(Phase::Strategize, PhaseSummary::default());
    plan.summaries.insert(Phase::Execute, PhaseSummary::default());
    plan.advance(&Event::StrategyTooTight(failure("no")), &context, now()).unwrap();
    assert!(plan.summaries.is_empty());
    assert_eq!(plan.phase_times.keys().copied().collect::<Vec<_>>(), [Phase::Strategize]);
    assert_eq!((plan.attempt, plan.reversions), (2, 1));
}

#[test]
fn a_failure_is_recorded_and_forgotten_when_the_plan_goes_on() {
    let mut plan = plan("ci");
    let context = Context::of(&plan);
    plan.advance(&Event::WorkerTook, &context, now()).unwrap();
    let effects = plan.advance(&Event::StepFailed(failure("server died")), &context, now()).unwrap();
    assert_eq!(plan.failure.as_ref().unwrap().message, "server died");
    let names: Vec<_> = effects.iter().flat_map(|e| e.events(&plan)).map(|e| e.event_type).collect();
    assert_eq!(names, ["plan.state_changed", "plan.errored"]);
    plan.advance(&Event::Execute, &context, now()).unwrap();
    assert_eq!(plan.failure, None);
}

// PROF-028
#[test]
fn an_answer_is_a_number_the_text_of_an_option_or_words() {
    let question = decision_question();
    let parse = |text| Answer::parse(text, Some(&question));
    assert_eq!(parse(" 2 "), Answer::Option(1));
    assert_eq!(parse("THIS"), Answer::Option(0));
    assert_eq!(parse("neither, do it by hand"), Answer::Words);
    assert_eq!(Answer::parse("1", None), Answer::Words);
    for number in ["0", "3", "18446744073709551615"] {
        let status = waits(Phase::Strategize, State::Processing, AwaitingKind::Decision);
        let refusal = step(&status, &Event::Prompt(parse(number)), &context("ci"), now()).unwrap_err();
        assert!(refusal.message.contains("there are 2"), "{refusal}");
    }
}

#[test]
fn a_number_that_is_an_option_itself_means_that_option() {
    let mut question = decision_question();
    question.options = vec!["2".to_owned(), "1".to_owned()];
    assert_eq!(Answer::parse("2", Some(&question)), Answer::Option(0));
}

#[test]
fn a_refusal_becomes_an_error_with_its_rule_and_whole_commands() {
    let status = waits(Phase::Execute, State::Complete, AwaitingKind::ApplyApproval);
    let failing = Context { required_validation_failed: true, ..context("supervised") };
    let refusal = step(&status, &Event::Apply { no_commit: false }, &failing, now()).unwrap_err();
    let error = crate::Error::from(refusal);
    assert_eq!(error.kind, crate::ErrorKind::InvalidState);
    assert!(error.message.starts_with("the plan is in execute/complete (awaiting apply_approval): "));
    let data = error.data.unwrap();
    assert_eq!(data["rule"], "T37");
    // APP-004: prompt, correct, rollback, cancel.
    let verbs: Vec<_> =
        data["allowed_actions"].as_array().unwrap().iter().map(|a| a["verb"].clone()).collect();
    assert_eq!(verbs, ["prompt", "correct", "rollback", "cancel"]);
    assert_eq!(error.suggestions.len(), 4);
    assert_eq!(error.suggestions[0], format!("agents plan prompt {} ANSWER", plan_id()));
}

#[test]
fn allowed_actions_name_only_what_the_program_has() {
    let context = Context { offered: &[Verb::Apply, Verb::Cancel], ..context("manual") };
    let status = waits(Phase::Execute, State::Complete, AwaitingKind::ApplyApproval);
    let actions = allowed_actions(&status, &context);
    assert_eq!(actions.iter().map(|a| a.verb).collect::<Vec<_>>(), [Verb::Apply, Verb::Cancel]);
    assert_eq!(actions[0].command, format!("agents plan apply {}", plan_id()));
    assert_eq!(actions[0].label, "Apply the changes");
}

#[test]
fn allowed_actions_of_typical_places() {
    use Verb::*;
    let context = context("manual");
    let status = Status::begin(&context, now());
    assert_eq!(verbs(&status, &context), [Execute, Prompt, Correct, Cancel]);
    let status = waits(Phase::Strategize, State::Processing, AwaitingKind::Decision);
    assert_eq!(verbs(&status, &context), [Prompt, Correct, Cancel]);
    let status = at(Phase::Execute, State::Processing);
    assert_eq!(verbs(&status, &context), [Prompt, Correct, Cancel]);
    let status = at(Phase::Execute, State::Errored);
    assert_eq!(verbs(&status, &context), [Execute, Prompt, Correct, Rollback, Cancel]);
    let status = at(Phase::Apply, State::Errored);
    assert_eq!(verbs(&status, &context), [Apply, Correct, Rollback, Cancel]);
    // Only appending work is left on an applied plan, and nothing on a cancelled one.
    assert_eq!(verbs(&at(Phase::Apply, State::Applied), &context), [Correct]);
    assert!(verbs(&at(Phase::Execute, State::Cancelled), &context).is_empty());
}

// DEC-007, DEC-011, PLAN-008
#[test]
fn decisions_are_recorded_by_the_right_actor_in_the_right_phase_only() {
    let strategize = at(Phase::Strategize, State::Processing);
    let execute = at(Phase::Execute, State::Processing);
    assert!(strategize.may_record(DecisionType::StrategyChoice).is_ok());
    assert!(execute.may_record(DecisionType::StrategyChoice).is_err());
    assert!(execute.may_record(DecisionType::ImplementationChoice).is_ok());
    assert!(strategize.may_record(DecisionType::UserIntervention).is_err());
    for status in [at(Phase::Apply, State::Processing), at(Phase::Strategize, State::Queued)] {
        assert!(DecisionType::ALL.into_iter().all(|t| status.may_record(t).is_err()));
    }
}

// GUARD-018
#[test]
fn automatic_reversions_stop_at_the_cap_and_then_a_person_decides() {
    let mut plan = plan("ci");
    let context = Context::of(&plan);
    for round in 1..=4 {
        for event in [Event::WorkerTook, Event::ActorDone, Event::WorkerTook] {
            plan.advance(&event, &context, now()).unwrap();
        }
        plan.advance(&Event::StrategyTooTight(failure("too tight")), &context, now()).unwrap();
        assert_eq!(plan.reversions, round.min(3));
    }
    assert_eq!(plan.status().describe(), "execute/processing (awaiting strategy_revision)");
    plan.advance(&Event::Prompt(Answer::Option(0)), &context, now()).unwrap();
    assert_eq!(plan.status().describe(), "strategize/queued");
    assert_eq!((plan.reversions, plan.attempt), (3, 5));
}

#[test]
fn a_command_starts_one_phase_only() {
    let mut plan = plan("manual");
    let context = Context::of(&plan);
    plan.advance(&Event::Execute, &context, now()).unwrap();
    assert!(plan.commanded);
    let ask = Event::DecisionsPending { first: decision_question() };
    plan.advance(&ask, &context, now()).unwrap();
    plan.advance(&Event::Prompt(Answer::Option(0)), &context, now()).unwrap();
    assert!(plan.commanded, "an answer does not end what the command said");
    plan.advance(&Event::ActorDone, &context, now()).unwrap();
    plan.advance(&Event::Prompt(Answer::Words), &context, now()).unwrap();
    plan.advance(&Event::ActorDone, &context, now()).unwrap();
    plan.advance(&Event::Execute, &context, now()).unwrap();
    assert!(plan.commanded);
    plan.advance(&Event::WorkerTook, &context, now()).unwrap();
    plan.advance(&Event::CorrectRevert { target_phase: Phase::Strategize }, &context, now()).unwrap();
    assert!(!plan.commanded, "a correction is no command to take the new decisions unseen");
}

#[test]
fn words_do_not_approve_spending_more() {
    let status = waits(Phase::Execute, State::Processing, AwaitingKind::Budget);
    let transition = step(&status, &Event::Prompt(Answer::Words), &context("ci"), now()).unwrap();
    assert_eq!(transition.status, status);
    assert_eq!(transition.effects, [Effect::QueueGuidance { option: None }]);
}

// T52: a plan that is processing under an epoch lost its worker; one that was paused did not.
#[test]
fn a_pause_lets_go_of_the_worker() {
    let mut plan = plan("supervised");
    let context = Context::of(&plan);
    plan.advance(&Event::WorkerTook, &context, now()).unwrap();
    plan.epoch = 4;
    plan.advance(&Event::Prompt(Answer::Words), &context, now()).unwrap();
    assert_eq!(plan.epoch, 4);
    plan.advance(&Event::DecisionsPending { first: decision_question() }, &context, now()).unwrap();
    assert_eq!(plan.epoch, 0);
    plan.advance(&Event::Prompt(Answer::Option(0)), &context, now()).unwrap();
    assert_eq!((plan.state, plan.epoch), (State::Processing, 0));
}
