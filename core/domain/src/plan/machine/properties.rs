//! Walks of the machine: whatever happens, in whatever order, under every profile.

use std::collections::HashSet;

use proptest::prelude::*;

use super::tests::{decision_question, failure, now, plan_id, waits};
use super::*;
use crate::plan::PlanFailure;
use crate::profile::built_in_profiles;

const REVERSION_CAP: u32 = 3;

/// Everything people can do.
fn user_events() -> Vec<Event> {
    let mut events = vec![
        Event::Execute,
        Event::Apply { no_commit: false },
        Event::Apply { no_commit: true },
        Event::Cancel,
        Event::Rollback,
        Event::CorrectRevert { target_phase: Phase::Strategize },
        Event::CorrectRevert { target_phase: Phase::Execute },
        Event::CorrectRevert { target_phase: Phase::Apply },
        Event::CorrectAppend,
        Event::Prompt(Answer::Words),
    ];
    events.extend((0..4).map(|i| Event::Prompt(Answer::Option(i))));
    events
}

fn verb_of(event: &Event) -> Verb {
    match event {
        Event::Execute => Verb::Execute,
        Event::Apply { .. } => Verb::Apply,
        Event::Prompt(_) => Verb::Prompt,
        Event::Cancel => Verb::Cancel,
        Event::Rollback => Verb::Rollback,
        _ => Verb::Correct,
    }
}

/// Everything that can happen by itself.
fn internal_events() -> Vec<Event> {
    let asked = |kind| waits(Phase::Execute, State::Processing, kind).awaiting.unwrap();
    let hopeless = PlanFailure { recoverable: false, ..failure("hopeless") };
    let mut events = vec![
        Event::WorkerTook,
        Event::WorkerLost,
        Event::DecisionsPending { first: decision_question() },
        Event::DecisionsPending { first: asked(AwaitingKind::Budget) },
        Event::DecisionsSettled,
        Event::ActorDone,
        Event::SpawnWanted { label: "a part".to_owned(), decision: None },
        Event::ChildMoved,
        Event::ChildReopened,
        Event::TransientFailure(failure("timeout")),
        Event::StepFailed(failure("broken")),
        Event::StepFailed(hopeless),
        Event::ValidationFailed { attempts: 0, failure: failure("tests") },
        Event::ValidationFailed { attempts: 3, failure: failure("tests") },
        Event::StrategyTooTight(failure("too tight")),
        Event::Unrecovered(failure("gone")),
        Event::BudgetExceeded { limit: "the limit".to_owned(), terminate: false },
        Event::BudgetExceeded { limit: "the limit".to_owned(), terminate: true },
        Event::RollbackFailed(failure("cannot restore")),
        Event::ApplyCommitted,
        Event::ApplyConstrained(failure("moved on")),
        Event::ApplyFailed(failure("disk full")),
    ];
    events.extend(AwaitingKind::ALL.iter().map(|kind| Event::ActorAsked(asked(*kind))));
    events
}

fn all_events() -> Vec<Event> {
    let mut events = user_events();
    events.extend(internal_events());
    events
}

/// The facts, as random as they may be.
fn contexts() -> impl Strategy<Value = Context> {
    (
        0..8usize,
        proptest::option::of(0.0..=1.0f64),
        (0..3u32, 0..3u32, 0..2u32),
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
    )
        .prop_map(
            |(profile, confidence, (tool, step, depth), (guard, failed, committed, slots, sandbox))| {
                Context {
                    confidence,
                    tool_retries_left: tool,
                    step_retries_left: step,
                    child_depth_left: depth,
                    require_approval_for_apply: guard,
                    required_validation_failed: failed,
                    committed,
                    slots_free: slots,
                    sandbox_possible: sandbox,
                    ..Context::new(plan_id(), &built_in_profiles()[profile])
                }
            },
        )
}

/// What must hold wherever the machine is.
fn check(status: &Status, context: &Context) -> Result<(), TestCaseError> {
    prop_assert!(status.is_legal(), "illegal: {}", status.describe());
    prop_assert!(status.reversions <= REVERSION_CAP);
    if status.ended() {
        prop_assert!(status.awaiting.is_none());
    } else {
        prop_assert!(
            status.wants_worker() || !allowed_actions(status, context).is_empty(),
            "nobody can do anything in {}",
            status.describe()
        );
    }
    // What is offered works, and what works is offered.
    let offered: HashSet<Verb> = allowed_actions(status, context).into_iter().map(|a| a.verb).collect();
    let works: HashSet<Verb> =
        user_events().iter().filter(|e| step(status, e, context, now()).is_ok()).map(verb_of).collect();
    prop_assert_eq!(offered, works, "{}", status.describe());
    if let Some(awaiting) = &status.awaiting {
        // Every question is left by an answer or by the verb of the phase.
        let verb = match status.phase {
            Phase::Apply => Event::Apply { no_commit: false },
            _ => Event::Execute,
        };
        let mut answers = vec![verb, Event::Prompt(Answer::Words)];
        answers.extend((0..awaiting.options.len()).map(|i| Event::Prompt(Answer::Option(i))));
        let left = answers.iter().any(|event| {
            step(status, event, context, now()).is_ok_and(|t| {
                t.status.awaiting_kind() != status.awaiting_kind() && t.status.state != State::Cancelled
            })
        });
        prop_assert!(left, "{} is never left", status.describe());
        prop_assert!(!awaiting.question.is_empty() && !awaiting.options.is_empty());
    }
    Ok(())
}

/// The part of a status the machine's future depends on.
type Key = (Phase, State, Option<AwaitingKind>, Vec<String>, bool, u32);

fn key(status: &Status) -> Key {
    let options = status.awaiting.as_ref().map_or(Vec::new(), |a| a.options.clone());
    (status.phase, status.state, status.awaiting_kind(), options, status.commanded, status.reversions)
}

/// Every status that can be reached from one, by any of the events under any of the contexts.
fn reachable(start: Status, events: &[Event], contexts: &[Context]) -> Vec<Status> {
    let mut seen = HashSet::from([key(&start)]);
    let mut all = vec![start];
    let mut next = 0;
    while next < all.len() {
        let status = all[next].clone();
        next += 1;
        assert!(status.reversions <= REVERSION_CAP, "{} reversions", status.reversions);
        for context in contexts {
            for event in events {
                if let Ok(transition) = transition(&status, event, context, now())
                    && seen.insert(key(&transition.status))
                {
                    all.push(transition.status);
                }
            }
        }
    }
    all
}

/// A context at rest and its awkward variants.
fn variants(profile: &Profile) -> Vec<Context> {
    let rest = Context { confidence: Some(0.5), ..Context::new(plan_id(), profile) };
    vec![
        rest,
        Context { confidence: Some(0.99), ..rest },
        Context { tool_retries_left: 0, step_retries_left: 0, ..rest },
        Context { required_validation_failed: true, ..rest },
        Context { committed: true, ..rest },
        Context { slots_free: false, ..rest },
        Context { sandbox_possible: false, require_approval_for_apply: true, ..rest },
    ]
}

#[test]
fn no_status_that_can_be_reached_is_a_dead_end() {
    let events = all_events();
    for profile in built_in_profiles() {
        let contexts = variants(&profile);
        let rest = [contexts[0]];
        for status in reachable(Status::begin(&contexts[0], now()), &events, &contexts) {
            for context in &contexts {
                check(&status, context).unwrap();
            }
            if status.ended() {
                continue;
            }
            // At rest, an end is in reach from everywhere; both ends, in fact.
            let ends: HashSet<State> = reachable(status.clone(), &events, &rest)
                .iter()
                .filter(|s| s.ended())
                .map(|s| s.state)
                .collect();
            assert_eq!(ends.len(), 2, "{} under {}: {ends:?}", status.describe(), profile.name);
        }
    }
}

#[test]
fn every_place_and_every_question_of_the_machine_can_be_reached() {
    let events = all_events();
    let mut points = HashSet::new();
    for profile in built_in_profiles() {
        let contexts = variants(&profile);
        for status in reachable(Status::begin(&contexts[0], now()), &events, &contexts) {
            points.insert((status.phase, status.state, status.awaiting_kind()));
        }
    }
    for phase in Phase::ALL {
        for state in State::ALL {
            for kind in AwaitingKind::ALL {
                let point = (*phase, *state, Some(*kind));
                assert_eq!(awaiting_fits(*phase, *state, *kind), points.contains(&point), "{point:?}");
            }
        }
    }
}

#[test]
fn nobody_is_needed_where_the_profile_says_so() {
    // Without failures, ci and full-auto reach Applied by internal events alone.
    for profile in built_in_profiles().iter().filter(|p| p.thresholds.select_tool == 0.0) {
        let context = Context::new(plan_id(), profile);
        let start = Status::begin(&context, now());
        let all = reachable(start, &internal_events(), &[context]);
        assert!(all.iter().any(|s| s.state == State::Applied), "{}", profile.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn random_walks_stay_sound(
        profile in 0..8usize,
        steps in proptest::collection::vec((any::<prop::sample::Index>(), contexts()), 1..60),
    ) {
        let profile = built_in_profiles().swap_remove(profile);
        let events = all_events();
        let first = Context { confidence: steps[0].1.confidence, ..Context::new(plan_id(), &profile) };
        let mut status = Status::begin(&first, now());
        for (index, facts) in steps {
            let context = Context { thresholds: profile.thresholds, ..facts };
            let event = index.get(&events);
            check(&status, &context)?;
            match step(&status, event, &context, now()) {
                Ok(transition) => {
                    prop_assert!(!status.ended() || *event == Event::CorrectAppend);
                    prop_assert!(transition.status.attempt >= status.attempt);
                    prop_assert!(transition.status.reversions >= status.reversions);
                    prop_assert!(!transition.rule.is_empty());
                    // Every change of place is told, and told as it was.
                    let told = transition.effects.iter().filter_map(|e| match e {
                        Effect::StateChanged { from, to } => Some((*from, *to)),
                        _ => None,
                    });
                    let mut at = (status.phase, status.state, status.awaiting_kind());
                    for (from, to) in told {
                        prop_assert_eq!(at, (from.phase, from.state, from.awaiting));
                        at = (to.phase, to.state, to.awaiting);
                    }
                    let end = &transition.status;
                    prop_assert_eq!(at, (end.phase, end.state, end.awaiting_kind()));
                    status = transition.status;
                }
                Err(refusal) => {
                    prop_assert!(!refusal.rule.is_empty());
                    prop_assert!(refusal.message.contains(&status.describe()), "{}", refusal);
                    prop_assert_eq!(refusal.allowed, allowed_actions(&status, &context));
                }
            }
        }
    }
}
