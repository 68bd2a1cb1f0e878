//! Decisions, changes and checkpoints.

use agents_domain::changes::{Change, ChangeKind};
use agents_domain::checkpoint::{Checkpoint, CheckpointDiff, CheckpointKind, SandboxAt};
use agents_domain::decision::{Approval, Decision, DecisionType};
use agents_domain::ids::{CheckpointId, DecisionId, ResourceId};
use agents_domain::plan::{Phase, Plan, State};
use agents_domain::ports::store::{Store, StoreError, StoreExt};
use agents_domain::resource::Resource;

use super::super::samples::{at, change, decision, id, plan, root_decision};
use super::{Case, refused, write};

pub(super) const CASES: &[Case] = &[
    a_decision_round_trips,
    sequence_numbers_rise,
    a_decision_is_superseded_once_and_stays,
    a_plan_has_one_root,
    pending_decisions_wait_for_a_person,
    impact_grows_without_duplicates,
    changes_keep_their_order_until_taken_back,
    the_changes_of_a_file_are_newest_plan_first,
    checkpoints_outlive_their_resource,
];

/// A plan with a root and two decisions below it.
fn tree(store: &dyn Store, n: u64) -> (Plan, Decision, Decision, Decision) {
    let plan = plan(n);
    let root = root_decision(&plan);
    let first = decision(&plan, root.decision_id, 2);
    let second = decision(&plan, first.decision_id, 3);
    write(store, |w| {
        w.insert_plan(&plan)?;
        w.insert_decision(&root)?;
        w.insert_decision(&first)?;
        w.insert_decision(&second)
    });
    (plan, root, first, second)
}

// DEC-002, DEC-004, DEC-005
fn a_decision_round_trips(store: &dyn Store) {
    let (plan, root, first, second) = tree(store, 1);
    assert_eq!(store.view(|r| r.decision(first.decision_id)), Ok(Some(first.clone())));
    assert_eq!(store.view(|r| r.decision(id(99))), Ok(None));
    assert_eq!(
        store.view(|r| r.decisions(plan.plan_id)),
        Ok(vec![root.clone(), first.clone(), second.clone()])
    );
    assert_eq!(
        refused(store, |w| w.insert_decision(&Decision { sequence_number: 9, ..first.clone() })),
        StoreError::Duplicate(format!("decision {}", first.decision_id))
    );
    let prefix = first.decision_id.to_string()[..25].to_owned();
    assert_eq!(
        store.view(|r| r.decisions_starting(&prefix, 2)),
        Ok(vec![root.decision_id, first.decision_id])
    );
    for (n, decision_type) in DecisionType::ALL.iter().enumerate() {
        let each =
            Decision { decision_type: *decision_type, ..decision(&plan, root.decision_id, 10 + n as u32) };
        write(store, |w| w.insert_decision(&each));
        assert_eq!(store.view(|r| r.decision(each.decision_id)), Ok(Some(each)));
    }
}

// DEC-022
fn sequence_numbers_rise(store: &dyn Store) {
    let (plan, root, ..) = tree(store, 1);
    assert_eq!(store.transact(|w| w.next_sequence(plan.plan_id)), Ok(4));
    assert_eq!(store.transact(|w| w.next_sequence(id(99))), Ok(1));
    write(store, |w| w.insert_decision(&decision(&plan, root.decision_id, 7)));
    for taken in [7, 5] {
        let late = Decision { decision_id: id(5_000_000), ..decision(&plan, root.decision_id, taken) };
        refused(store, |w| w.insert_decision(&late));
    }
    assert_eq!(store.transact(|w| w.next_sequence(plan.plan_id)), Ok(8));
    // What a decision is made from and what it corrects is earlier, and of its plan.
    let (_, _, elsewhere, _) = tree(store, 3);
    for depends_on in [elsewhere.decision_id, id(5_000_000), id(99)] {
        let own_id = Decision { decision_id: id(5_000_000), ..decision(&plan, root.decision_id, 8) };
        refused(store, |w| w.insert_decision(&Decision { depends_on: vec![depends_on], ..own_id.clone() }));
        refused(store, |w| {
            w.insert_decision(&Decision { corrects_decision_id: Some(depends_on), ..own_id.clone() })
        });
    }
    // Another plan counts for itself.
    let (other, ..) = tree(store, 2);
    assert_eq!(store.transact(|w| w.next_sequence(other.plan_id)), Ok(4));
}

// DEC-018, DEC-019
fn a_decision_is_superseded_once_and_stays(store: &dyn Store) {
    let (plan, root, first, second) = tree(store, 1);
    let (_, _, elsewhere, _) = tree(store, 2);
    let answer = Decision {
        decision_type: DecisionType::UserIntervention,
        corrects_decision_id: Some(first.decision_id),
        correction_reason: Some("Keep them.".to_owned()),
        ..decision(&plan, root.decision_id, 5)
    };
    let before = Decision { pending: true, ..decision(&plan, root.decision_id, 4) };
    write(store, |w| {
        w.insert_decision(&before)?;
        w.insert_decision(&answer)
    });
    let supersede = |old: DecisionId, by: DecisionId| store.transact(|w| w.supersede(old, by));
    assert!(supersede(first.decision_id, id(99)).is_err(), "by nothing");
    assert!(supersede(first.decision_id, first.decision_id).is_err(), "by itself");
    assert!(supersede(first.decision_id, elsewhere.decision_id).is_err(), "by one of another plan");
    assert!(supersede(first.decision_id, root.decision_id).is_err(), "by an earlier one");
    assert!(supersede(id(99), answer.decision_id).is_err(), "one that is not there");
    supersede(first.decision_id, answer.decision_id).unwrap();
    supersede(before.decision_id, answer.decision_id).unwrap();
    assert!(supersede(first.decision_id, second.decision_id).is_err(), "twice");
    assert!(supersede(second.decision_id, first.decision_id).is_err(), "by one not in force");
    let all = store.view(|r| r.decisions(plan.plan_id)).unwrap();
    assert_eq!(all.len(), 5);
    assert_eq!(all[1], Decision { superseded_by: Some(answer.decision_id), ..first });
    assert_eq!(all[4], answer);
    assert!(!all[3].pending, "a superseded decision waits for nobody");
}

// DEC-020
fn a_plan_has_one_root(store: &dyn Store) {
    let (plan, root, first, _) = tree(store, 1);
    let (_, _, elsewhere, _) = tree(store, 2);
    let second_root = Decision { decision_id: id(7_000_000), sequence_number: 8, ..root_decision(&plan) };
    refused(store, |w| w.insert_decision(&second_root));
    let not_a_prompt = Decision {
        parent_decision_id: None,
        ..decision(&super::super::samples::plan(3), root.decision_id, 1)
    };
    refused(store, |w| {
        w.insert_plan(&super::super::samples::plan(3))?;
        w.insert_decision(&not_a_prompt)
    });
    refused(store, |w| w.insert_decision(&decision(&plan, elsewhere.decision_id, 9)));
    refused(store, |w| w.insert_decision(&decision(&plan, id(99), 9)));
    // The root's replacement comes first, and the root must then be superseded by it.
    let replacement = Decision { corrects_decision_id: Some(root.decision_id), ..second_root };
    refused(store, |w| w.insert_decision(&replacement));
    refused(store, |w| w.supersede(root.decision_id, first.decision_id));
    assert_eq!(store.view(|r| r.decisions(plan.plan_id)).unwrap().len(), 3);
    write(store, |w| {
        w.insert_decision(&replacement)?;
        w.supersede(root.decision_id, replacement.decision_id)
    });
    let roots: Vec<DecisionId> = store
        .view(|r| r.decisions(plan.plan_id))
        .unwrap()
        .into_iter()
        .filter(|d| d.parent_decision_id.is_none() && d.superseded_by.is_none())
        .map(|d| d.decision_id)
        .collect();
    assert_eq!(roots, [replacement.decision_id]);
}

fn pending_decisions_wait_for_a_person(store: &dyn Store) {
    let (one, root_one, ..) = tree(store, 1);
    let (two, root_two, ..) = tree(store, 2);
    let asked_later = Decision {
        pending: true,
        approval: None,
        created_at: at(9000),
        ..decision(&one, root_one.decision_id, 4)
    };
    let asked_first = Decision {
        pending: true,
        approval: None,
        created_at: at(8000),
        ..decision(&two, root_two.decision_id, 4)
    };
    write(store, |w| {
        w.insert_decision(&asked_later)?;
        w.insert_decision(&asked_first)
    });
    let pending = || store.view(|r| r.pending_decisions()).unwrap();
    assert_eq!(pending(), [asked_first.clone(), asked_later.clone()]);
    let settled = Decision { pending: false, approval: Some(Approval::ByPerson), ..asked_first };
    write(store, |w| w.settle_decision(&settled));
    assert_eq!(store.view(|r| r.decision(settled.decision_id)), Ok(Some(settled.clone())));
    assert_eq!(pending(), [asked_later]);
    let ended = Plan { phase: Phase::Execute, state: State::Cancelled, updated_at: at(9999), ..one.clone() };
    write(store, |w| w.update_plan(&ended, one.updated_at));
    assert_eq!(pending(), []);
    let unknown = Decision { decision_id: id(99), ..settled };
    refused(store, |w| w.settle_decision(&unknown));
}

// DEC-005
fn impact_grows_without_duplicates(store: &dyn Store) {
    let (_, _, first, _) = tree(store, 1);
    let add = |artifacts: &[&str], plans: &[u64]| {
        let artifacts: Vec<String> = artifacts.iter().map(ToString::to_string).collect();
        let plans: Vec<_> = plans.iter().map(|n| id(*n)).collect();
        write(store, |w| w.add_impact(first.decision_id, &artifacts, &plans));
    };
    add(&["b.py", "a.py", "b.py"], &[7]);
    add(&["a.py", "c.py"], &[7, 8]);
    let now = store.view(|r| r.decision(first.decision_id)).unwrap().unwrap();
    assert_eq!(now.artifacts, ["b.py", "a.py", "c.py"]);
    assert_eq!(now.downstream_plans, [id(7), id(8)]);
    refused(store, |w| w.add_impact(id(99), &[], &[]));
}

fn changes_keep_their_order_until_taken_back(store: &dyn Store) {
    let (plan, _, first, second) = tree(store, 1);
    let changes = [
        change(&first, 9, "b.py"),
        Change {
            kind: ChangeKind::Renamed,
            old_path: Some("a.py".to_owned()),
            hunks: Vec::new(),
            ..change(&second, 3, "z.py")
        },
        Change { kind: ChangeKind::Added, before_hash: None, ..change(&second, 5, "c.py") },
        Change { kind: ChangeKind::Deleted, after_hash: None, ..change(&first, 4, "d.py") },
    ];
    write(store, |w| changes.iter().try_for_each(|change| w.insert_change(change)));
    assert_eq!(store.view(|r| r.changes(plan.plan_id)), Ok(changes.to_vec()));
    assert!(matches!(refused(store, |w| w.insert_change(&changes[0])), StoreError::Duplicate(_)));
    // DEC-005: what is taken back is no artifact any more, and what is written again is one again.
    let artifacts = |of: &Decision| store.view(|r| r.decision(of.decision_id)).unwrap().unwrap().artifacts;
    let paths = ["z.py".to_owned(), "c.py".to_owned()];
    write(store, |w| w.add_impact(first.decision_id, &paths[1..], &[]));
    write(store, |w| w.add_impact(second.decision_id, &paths, &[id(7)]));
    write(store, |w| w.undo_changes(plan.plan_id, second.decision_id));
    assert_eq!((artifacts(&first), artifacts(&second)), (paths[1..].to_vec(), Vec::new()));
    write(store, |w| w.add_impact(second.decision_id, &paths[..1], &[]));
    assert_eq!(artifacts(&second), paths[..1]);
    let left = [changes[0].clone(), changes[3].clone()];
    assert_eq!(store.view(|r| r.changes(plan.plan_id)), Ok(left.to_vec()));
    assert_eq!(store.view(|r| r.changed_paths(id(1))), Ok(vec!["b.py".to_owned(), "d.py".to_owned()]));
    assert_eq!(store.view(|r| r.changes_of_path(id(1), "c.py")), Ok(Vec::new()));
}

fn the_changes_of_a_file_are_newest_plan_first(store: &dyn Store) {
    let (_, _, old, _) = tree(store, 1);
    let (_, _, new, _) = tree(store, 2);
    let elsewhere = Change { resource_id: id(2), ..change(&new, 6, "a.py") };
    let (first, second, third) = (change(&new, 3, "a.py"), change(&old, 2, "a.py"), change(&new, 1, "a.py"));
    write(store, |w| {
        [&first, &second, &third, &elsewhere, &change(&new, 7, "b.py")]
            .into_iter()
            .try_for_each(|change| w.insert_change(change))
    });
    let found = store.view(|r| r.changes_of_path(id(1), "a.py")).unwrap();
    assert_eq!(found, [first, third, second]);
    assert_eq!(store.view(|r| r.changed_paths(id(2))), Ok(vec!["a.py".to_owned()]));
}

fn checkpoints_outlive_their_resource(store: &dyn Store) {
    let (plan, _, first, _) = tree(store, 1);
    let resource_id: ResourceId = id(1);
    let resource = Resource {
        resource_id,
        name: None,
        resource_type: "git-checkout".to_owned(),
        description: None,
        location: Some("/home/user/app".to_owned()),
        properties: serde_json::Map::new(),
        parents: Vec::new(),
        created_at: at(1),
        updated_at: at(1),
    };
    let checkpoint = |n: u64, kind, decision_id| Checkpoint {
        checkpoint_id: id(n),
        plan_id: plan.plan_id,
        decision_id,
        resource_id,
        kind,
        label: "Removed unused imports".to_owned(),
        commit: "c".repeat(40),
        phase: Phase::Execute,
        source_tool: Some("builtin/apply-edits".to_owned()),
        diff: CheckpointDiff { size_bytes: n, ..CheckpointDiff::default() },
        sandboxes: vec![SandboxAt { resource_id, commit: "c".repeat(40) }],
        created_at: at(n),
    };
    let base = checkpoint(5, CheckpointKind::Base, None);
    let group = checkpoint(4, CheckpointKind::Decision, Some(first.decision_id));
    write(store, |w| {
        w.insert_resource(&resource)?;
        w.insert_checkpoint(&base)?;
        w.insert_checkpoint(&group)
    });
    write(store, |w| w.delete_resource(resource_id));
    assert_eq!(store.view(|r| r.checkpoints(plan.plan_id)), Ok(vec![base.clone(), group.clone()]));
    assert_eq!(store.view(|r| r.checkpoint(group.checkpoint_id)), Ok(Some(group)));
    assert_eq!(store.view(|r| r.checkpoint(id(99))), Ok(None));
    assert!(matches!(refused(store, |w| w.insert_checkpoint(&base)), StoreError::Duplicate(_)));
    assert_eq!(
        store
            .view(|r| r.checkpoints_starting(&id::<CheckpointId>(5).ulid().to_string()[..20], 9))
            .unwrap()
            .len(),
        2
    );
    write(store, |w| w.delete_checkpoint(base.checkpoint_id));
    write(store, |w| w.delete_checkpoint(base.checkpoint_id));
    assert_eq!(store.view(|r| r.checkpoints(plan.plan_id)).unwrap().len(), 1);
}
