//! The shared fixture of the correction rules, awkward data, and random corrections.

use proptest::prelude::*;
use serde_json::json;
use ulid::Ulid;

use super::*;

fn id(n: u32) -> DecisionId {
    DecisionId::from_ulid(Ulid::from(u128::from(n)))
}

fn plan(n: u32) -> PlanId {
    PlanId::from_ulid(Ulid::from(u128::from(n)))
}

fn decision(n: u32, decision_type: DecisionType, parent: Option<u32>, depends_on: &[u32]) -> Decision {
    serde_json::from_value(json!({
        "decision_id": id(n), "plan_id": plan(1), "parent_decision_id": parent.map(id), "sequence_number": n,
        "decision_type": decision_type, "question": "?", "chosen_option": format!("d{n}"),
        "alternatives": [], "rationale": "because",
        "context": { "hot_context_hash": "", "hot_context_ref": "", "relevant_resources": [], "actor_state_ref": "" },
        "depends_on": depends_on.iter().map(|n| id(*n)).collect::<Vec<_>>(), "pending": false,
        "artifacts": [], "downstream_plans": [], "created_at": "2026-01-01T00:00:00Z",
    }))
    .unwrap()
}

const C1: u32 = 101;
const C2: u32 = 102;

/// The plan of the ledger's shared fixture: d1 to d7 from Strategize, d8 and d9 from Execute.
fn fixture() -> Vec<Decision> {
    use DecisionType::*;
    let mut all = vec![
        decision(1, PromptDefinition, None, &[]),
        decision(2, InvariantEnforced, Some(1), &[]),
        decision(3, StrategyChoice, Some(1), &[]),
        decision(4, SubplanParallelSpawn, Some(1), &[3]),
        decision(5, SubplanSpawn, Some(4), &[]),
        decision(6, SubplanSpawn, Some(4), &[]),
        decision(7, StrategyChoice, Some(1), &[2]),
        decision(8, ImplementationChoice, Some(7), &[7]),
        decision(9, ToolInvocation, Some(8), &[8, 3]),
    ];
    all[4].downstream_plans = vec![plan(C1)];
    all[5].downstream_plans = vec![plan(C2)];
    all[7].artifacts = vec!["src/b.py".to_owned()];
    all[8].artifacts = vec!["src/a.py".to_owned(), "src/b.py".to_owned()];
    all
}

fn in_execute(decision: &Decision) -> bool {
    decision.decision_type.actor_may_record(false) && !decision.decision_type.actor_may_record(true)
}

fn ids(numbers: &[u32]) -> Vec<DecisionId> {
    numbers.iter().map(|n| id(*n)).collect()
}

// CORR-014, CORR-015
#[test]
fn closures_of_the_shared_fixture() {
    let all = fixture();
    let of = |n| affected(id(n), &all, &[]).unwrap();
    assert_eq!(of(3).decisions, ids(&[3, 4, 5, 6, 9]));
    assert_eq!(of(3).plans, [plan(C1), plan(C2)]);
    assert_eq!(of(3).unaffected, ids(&[1, 2, 7, 8]));
    assert_eq!(of(8).decisions, ids(&[8, 9]));
    assert_eq!(of(8).plans, []);
    assert_eq!(of(8).artifacts, ["src/a.py", "src/b.py"]);
    assert_eq!(of(8).unaffected.len(), 7);
    assert_eq!(of(2).decisions, ids(&[2, 7, 8, 9]));
    assert_eq!(of(9).decisions, ids(&[9]));
    assert_eq!(of(9).downstream(), 0);
    assert_eq!(of(1).decisions, ids(&[1, 2, 3, 4, 5, 6, 7, 8, 9]));
    assert_eq!(of(1).plans, [plan(C1), plan(C2)]);
}

// CORR-012
#[test]
fn taking_back_a_strategy_during_execute_takes_all_of_execute_with_it() {
    let fall = affected_with_execute(id(3), &fixture(), &[], in_execute).unwrap();
    assert_eq!(fall.decisions, ids(&[3, 4, 5, 6, 8, 9]));
    assert_eq!(fall.plans, [plan(C1), plan(C2)]);
    // A child plan of a decision outside the closure is kept.
    let mut all = fixture();
    all[7].downstream_plans = vec![plan(103)];
    let fall = affected_with_execute(id(3), &all, &[], in_execute).unwrap();
    assert_eq!(fall.plans, [plan(C1), plan(C2)]);
}

#[test]
fn plans_below_an_affected_child_plan_fall_with_it() {
    let pairs = [
        (plan(1), plan(C1)),
        (plan(C1), plan(201)),
        (plan(201), plan(202)),
        (plan(1), plan(300)),
        // Damaged: a cycle.
        (plan(202), plan(C1)),
    ];
    let fall = affected(id(5), &fixture(), &pairs).unwrap();
    assert_eq!(fall.plans, [plan(C1), plan(201), plan(202)]);
}

#[test]
fn cycles_of_influence_end() {
    let mut all = fixture();
    all[2].depends_on = vec![id(9)];
    assert_eq!(affected(id(9), &all, &[]).unwrap().decisions, ids(&[3, 4, 5, 6, 9]));
}

// CORR-030
#[test]
fn a_replaced_or_unknown_decision_is_no_target_and_the_answer_says_what_is() {
    let mut all = fixture();
    all[2].superseded_by = Some(id(10));
    all.push(Decision {
        superseded_by: Some(id(11)),
        ..decision(10, DecisionType::StrategyChoice, Some(1), &[])
    });
    all.push(decision(11, DecisionType::StrategyChoice, Some(1), &[]));
    assert_eq!(affected(id(3), &all, &[]), Err(InvalidTarget::Superseded { decision: id(3), by: id(11) }));
    assert_eq!(affected(id(99), &all, &[]), Err(InvalidTarget::Unknown(id(99))));
    let error = crate::Error::from(affected(id(99), &all, &[]).unwrap_err());
    assert_eq!(error.kind, crate::ErrorKind::NotFound);
    let error = crate::Error::from(affected(id(3), &all, &[]).unwrap_err());
    assert_eq!(error.kind, crate::ErrorKind::InvalidState);
}

// PLAN-083: an answer hangs below the proposal it replaces, and takes over what hung on it.
#[test]
fn what_was_decided_from_a_proposal_falls_with_its_answer() {
    let mut all = fixture();
    all[6].superseded_by = Some(id(10));
    all.push(decision(10, DecisionType::UserIntervention, Some(7), &[]));
    assert_eq!(validate(&all), Ok(()));
    assert_eq!(affected(id(10), &all, &[]).unwrap().decisions, ids(&[8, 9, 10]));
}

// DEC-018, DEC-020
#[test]
fn the_active_tree_of_the_fixture() {
    let mut all = fixture();
    assert_eq!(validate(&all), Ok(()));
    assert_eq!(depth(&all), 4);
    assert_eq!(depth(&all[..1]), 1);
    assert_eq!(depth(&[]), 0);
    let tree = children(&all);
    let below = |parent: Option<u32>| -> Vec<u32> {
        tree.get(&parent.map(id)).map_or(Vec::new(), |c| c.iter().map(|d| d.sequence_number).collect())
    };
    assert_eq!(below(None), [1]);
    assert_eq!(below(Some(1)), [2, 3, 4, 7]);
    assert_eq!(below(Some(4)), [5, 6]);
    all.reverse();
    assert_eq!(
        active(&all).iter().map(|d| d.sequence_number).collect::<Vec<_>>(),
        (1..=9).collect::<Vec<_>>()
    );
}

// DEC-020, DEC-022
#[test]
fn damage_is_named() {
    let broken = |damage: &dyn Fn(&mut Vec<Decision>)| {
        let mut all = fixture();
        damage(&mut all);
        validate(&all).unwrap_err()
    };
    assert_eq!(broken(&|all| all.clear()), [Violation::NoRoot]);
    assert_eq!(broken(&|all| all[2].parent_decision_id = None), [Violation::SeveralRoots(ids(&[1, 3]))]);
    assert_eq!(
        broken(&|all| all[0].decision_type = DecisionType::StrategyChoice),
        [Violation::RootIsNoPrompt(id(1))]
    );
    assert_eq!(
        broken(&|all| all[8].sequence_number = 8),
        [
            Violation::RepeatedSequence(id(8), id(9)),
            Violation::OutOfOrder { earlier: id(8), later: id(9) },
            Violation::OutOfOrder { earlier: id(8), later: id(9) }
        ]
    );
    assert_eq!(
        broken(&|all| all[8].depends_on = vec![id(77)]),
        [Violation::Missing { decision: id(9), missing: id(77) }]
    );
    assert_eq!(
        broken(&|all| all[8].superseded_by = Some(id(2))),
        [Violation::OutOfOrder { earlier: id(9), later: id(2) }]
    );
    let cycle = broken(&|all| all[3].parent_decision_id = Some(id(5)));
    for lost in [4, 5] {
        assert!(cycle.contains(&Violation::Cycle(id(lost))), "{cycle:?}");
    }
    for lost in [4, 5, 6] {
        assert!(cycle.contains(&Violation::Unreachable(id(lost))), "{cycle:?}");
    }
}

// DEC-033
#[test]
fn impact_of_a_correction() {
    let queued = (Phase::Strategize, State::Queued);
    assert_eq!(correction_impact(0, &[]), CorrectionImpact::Low);
    assert_eq!(correction_impact(1, &[]), CorrectionImpact::Low);
    assert_eq!(correction_impact(2, &[]), CorrectionImpact::Medium);
    assert_eq!(correction_impact(0, &[queued]), CorrectionImpact::Medium);
    assert_eq!(correction_impact(3, &[queued, queued]), CorrectionImpact::Medium);
    assert_eq!(correction_impact(4, &[]), CorrectionImpact::High);
    assert_eq!(correction_impact(0, &[(Phase::Execute, State::Processing)]), CorrectionImpact::High);
}

// CORR-028
#[test]
fn a_subtree_is_recomputed_and_the_rest_preserved() {
    let all = fixture();
    let split = |n| recompute_subtree(id(n), &all).unwrap();
    assert_eq!(split(1).recomputed, ids(&[1, 2, 3, 4, 7, 5, 6, 8, 9]));
    assert_eq!(split(1).preserved, []);
    assert_eq!(split(4).recomputed, ids(&[4, 5, 6]));
    assert_eq!(split(4).preserved, ids(&[1, 2, 3, 7, 8, 9]));
    assert_eq!(split(9).recomputed, ids(&[9]));
    assert_eq!(recompute_subtree(id(99), &all), Err(InvalidTarget::Unknown(id(99))));
}

/// What a person or an actor does next.
#[derive(Debug, Clone)]
enum Change {
    /// A new decision below one, from another.
    Record(prop::sample::Index, prop::sample::Index),
    /// A proposal is answered: the answer hangs below it and replaces it.
    Answer(prop::sample::Index),
    /// A decision is taken back with what hangs on it.
    Revert(prop::sample::Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let index = any::<prop::sample::Index>;
    let change = prop_oneof![
        5 => (index(), index()).prop_map(|(parent, from)| Change::Record(parent, from)),
        1 => index().prop_map(Change::Answer),
        2 => index().prop_map(Change::Revert),
    ];
    proptest::collection::vec(change, 0..40)
}

fn carry_out(all: &mut Vec<Decision>, change: &Change) {
    let next = u32::try_from(all.len()).unwrap() + 1;
    let active: Vec<Decision> = active(all).into_iter().cloned().collect();
    match change {
        Change::Record(parent, from) => {
            let (parent, from) = (parent.get(&active), from.get(&active));
            let kind = DecisionType::StrategyChoice;
            all.push(decision(next, kind, Some(parent.sequence_number), &[from.sequence_number]));
        }
        Change::Answer(target) => {
            let target = target.get(&active);
            // The prompt is never a proposal.
            if target.parent_decision_id.is_some() {
                all.push(decision(next, DecisionType::UserIntervention, Some(target.sequence_number), &[]));
                supersede(all, &[target.decision_id], id(next));
            }
        }
        Change::Revert(target) => {
            let target = target.get(&active);
            let fall = affected(target.decision_id, all, &[]).unwrap().decisions;
            let parent = target.parent_decision_id;
            all.push(Decision {
                parent_decision_id: parent,
                corrects_decision_id: Some(target.decision_id),
                ..decision(next, target.decision_type, None, &[])
            });
            all.push(decision(next + 1, DecisionType::UserIntervention, Some(next), &[]));
            supersede(all, &fall, id(next));
        }
    }
}

fn supersede(all: &mut [Decision], fall: &[DecisionId], by: DecisionId) {
    for decision in all.iter_mut().filter(|d| fall.contains(&d.decision_id)) {
        decision.superseded_by = Some(by);
    }
}

proptest! {
    // DEC-019, DEC-020, DEC-022, CORR-015, CORR-016
    #[test]
    fn any_history_of_decisions_answers_and_corrections_leaves_a_sound_tree(changes in changes()) {
        let mut all = vec![decision(1, DecisionType::PromptDefinition, None, &[])];
        for change in &changes {
            let before = all.clone();
            carry_out(&mut all, change);
            prop_assert_eq!(validate(&all), Ok(()));
            prop_assert!(all.len() >= before.len());
            // Nothing but `superseded_by` ever changes in what was recorded.
            for (old, new) in before.iter().zip(&all) {
                let same = Decision { superseded_by: old.superseded_by, ..new.clone() };
                prop_assert_eq!(old, &same);
                prop_assert!(old.superseded_by.is_none() || old.superseded_by == new.superseded_by);
            }
            let levels = depth(&all);
            prop_assert!(levels >= 1 && levels <= active(&all).len());
        }
    }

    #[test]
    fn what_falls_is_closed_and_holds_the_whole_subtree(changes in changes(), target: prop::sample::Index) {
        let mut all = vec![decision(1, DecisionType::PromptDefinition, None, &[])];
        for change in &changes {
            carry_out(&mut all, change);
        }
        let target = target.get(&active(&all)).decision_id;
        let fall = affected(target, &all, &[]).unwrap();
        prop_assert!(fall.decisions.contains(&target));
        prop_assert_eq!(fall.decisions.len() + fall.unaffected.len(), active(&all).len());
        let split = recompute_subtree(target, &all).unwrap();
        prop_assert!(split.recomputed.iter().all(|id| fall.decisions.contains(id)));
        // Whatever was decided from something that falls, falls; so each part's own closure is inside.
        for part in &fall.decisions {
            let inner = affected(*part, &all, &[]).unwrap();
            prop_assert!(inner.decisions.iter().all(|id| fall.decisions.contains(id)));
        }
        // The root takes everything.
        let root = children(&all)[&None][0].decision_id;
        prop_assert_eq!(affected(root, &all, &[]).unwrap().unaffected, []);
    }
}
