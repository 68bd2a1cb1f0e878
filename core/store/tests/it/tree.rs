//! Whatever is recorded, corrected and tried, the decisions of a plan stay one tree that only grows.

use std::collections::BTreeSet;

use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::DecisionId;
use agents_domain::plan::Plan;
use agents_domain::ports::store::{StoreError, StoreExt};
use agents_domain::tree::validate;
use agents_store::{SqliteStore, testing};
use proptest::prelude::*;

use crate::{folder, open};

/// What is tried; positions are taken modulo the number of decisions.
#[derive(Debug, Clone)]
enum Step {
    /// A decision below another one.
    Record { parent: usize, gap: u32 },
    /// A replacement for one and all that hangs on it.
    Correct { target: usize, gap: u32 },
    /// One superseded by another, whatever they are.
    Supersede { target: usize, by: usize },
    /// A second root.
    SecondRoot,
    /// A number that was used.
    OldNumber { parent: usize, number: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<usize>(), 0..3u32).prop_map(|(parent, gap)| Step::Record { parent, gap }),
        3 => (any::<usize>(), 0..3u32).prop_map(|(target, gap)| Step::Correct { target, gap }),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(target, by)| Step::Supersede { target, by }),
        1 => Just(Step::SecondRoot),
        1 => (any::<usize>(), 1..9u32).prop_map(|(parent, number)| Step::OldNumber { parent, number }),
    ]
}

/// What hangs on a decision in the structure, itself included.
fn closure(all: &[Decision], of: DecisionId) -> BTreeSet<DecisionId> {
    let mut out = BTreeSet::from([of]);
    for decision in all {
        if decision.parent_decision_id.is_some_and(|parent| out.contains(&parent)) {
            out.insert(decision.decision_id);
        }
    }
    out
}

fn try_step(store: &SqliteStore, plan: &Plan, all: &[Decision], step: &Step) -> Result<(), StoreError> {
    let next = all.last().map_or(1, |d| d.sequence_number + 1);
    let pick = |at: usize| &all[at % all.len()];
    match *step {
        Step::Record { parent, gap } => {
            // Below one in force, as every actor and the engine do.
            let in_force: Vec<&Decision> = all.iter().filter(|d| d.superseded_by.is_none()).collect();
            let new = testing::decision(plan, in_force[parent % in_force.len()].decision_id, next + gap);
            store.transact(|w| w.insert_decision(&new))
        }
        Step::Correct { target, gap } => {
            let target = pick(target);
            let affected = closure(all, target.decision_id);
            let new = Decision {
                parent_decision_id: target.parent_decision_id,
                decision_type: target.decision_type,
                corrects_decision_id: Some(target.decision_id),
                correction_reason: Some("Do it otherwise.".to_owned()),
                ..testing::decision(plan, target.decision_id, next + gap)
            };
            store.transact(|w| {
                w.insert_decision(&new)?;
                all.iter()
                    .filter(|d| affected.contains(&d.decision_id))
                    // The target itself must be in force; below it only what is in force is superseded.
                    .filter(|d| d.decision_id == target.decision_id || d.superseded_by.is_none())
                    .try_for_each(|d| w.supersede(d.decision_id, new.decision_id))
            })
        }
        Step::Supersede { target, by } => {
            store.transact(|w| w.supersede(pick(target).decision_id, pick(by).decision_id))
        }
        Step::SecondRoot => {
            let new = Decision {
                parent_decision_id: None,
                decision_type: DecisionType::PromptDefinition,
                ..testing::decision(plan, all[0].decision_id, next)
            };
            store.transact(|w| w.insert_decision(&new))
        }
        Step::OldNumber { parent, number } => {
            let new = Decision {
                decision_id: testing::id(90_000_000),
                ..testing::decision(plan, pick(parent).decision_id, number.min(next - 1))
            };
            store.transact(|w| w.insert_decision(&new))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    // DEC-018, DEC-019, DEC-020, DEC-022
    #[test]
    fn decisions_stay_one_tree_that_only_grows(steps in proptest::collection::vec(step(), 1..24)) {
        let folder = folder();
        let store = open(folder.path());
        let plan = testing::plan(1);
        store
            .transact(|w| {
                w.insert_plan(&plan)?;
                w.insert_decision(&testing::root_decision(&plan))
            })
            .unwrap();
        let mut before = store.view(|r| r.decisions(plan.plan_id)).unwrap();
        for step in &steps {
            let result = try_step(&store, &plan, &before, step);
            let after = store.view(|r| r.decisions(plan.plan_id)).unwrap();
            match (step, &result) {
                (Step::SecondRoot | Step::OldNumber { .. }, Ok(())) => prop_assert!(false, "{step:?} was taken"),
                (Step::Record { .. }, Err(e)) => prop_assert!(false, "{step:?} was refused: {e}"),
                (_, Err(_)) => prop_assert_eq!(&after, &before, "a refused step changed something"),
                (_, Ok(())) => {}
            }
            // Nothing goes, and of what was there only `superseded_by` and `pending` may differ.
            prop_assert!(after.len() >= before.len());
            for (old, new) in before.iter().zip(&after) {
                prop_assert!(old.superseded_by.is_none() || old.superseded_by == new.superseded_by);
                let same = Decision { superseded_by: old.superseded_by, pending: old.pending, ..new.clone() };
                prop_assert_eq!(old, &same);
            }
            prop_assert!(after.windows(2).all(|pair| pair[0].sequence_number < pair[1].sequence_number));
            prop_assert_eq!(validate(&after), Ok(()));
            before = after;
        }
    }
}
