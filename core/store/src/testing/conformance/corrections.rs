//! Corrections, plans that are being taken back, tool calls, what stood at checkpoints, and child plans.

use agents_domain::checkpoint::{Checkpoint, CheckpointDiff, CheckpointKind};
use agents_domain::correction::{
    CheckpointMark, CorrectionAttempt, CorrectionMode, CorrectionState, ResourceRewind, ResumeAt, Rewind,
    RewindCause, RewindTo, ToolCall,
};
use agents_domain::decision::Decision;
use agents_domain::ids::PlanId;
use agents_domain::plan::children::{Spawn, SpawnDraft, Stage};
use agents_domain::plan::{Awaiting, AwaitingKind, Guidance, Phase, Plan, State};
use agents_domain::ports::store::{Store, StoreExt};
use agents_domain::resource::Resource;
use serde_json::json;

use super::super::samples::{at, change, decision, id, plan, root_decision};
use super::{Case, refused, write};

pub(super) const CASES: &[Case] = &[
    a_correction_round_trips_and_is_found_by_each_of_its_names,
    a_correction_is_under_way_for_the_whole_tree,
    a_plan_is_taken_back_to_one_place_at_a_time,
    tool_calls_stand_until_their_decision_falls,
    a_mark_goes_with_its_checkpoint,
    a_write_that_is_taken_back_stays_on_record,
    spawns_keep_their_order_and_know_their_child,
];

fn made(store: &dyn Store, n: u64) -> (Plan, Decision, Decision) {
    let plan = plan(n);
    let (root, below) = (root_decision(&plan), decision(&plan, root_decision(&plan).decision_id, 2));
    write(store, |w| {
        w.insert_plan(&plan)?;
        w.insert_decision(&root)?;
        w.insert_decision(&below)
    });
    (plan, root, below)
}

fn attempt(n: u64, original: &Decision) -> CorrectionAttempt {
    CorrectionAttempt {
        correction_id: id(n),
        plan_id: original.plan_id,
        original_decision_id: original.decision_id,
        new_decision_id: id(900 + n),
        mode: CorrectionMode::Revert,
        guidance: "Leave \u{1f980} alone".to_owned(),
        state: CorrectionState::Executing,
        phase: Phase::Execute,
        affected: vec![original.decision_id],
        archive: Some("a".repeat(64)),
        outcome: None,
        child_plan_id: None,
        failure: None,
        created_by: "somebody".to_owned(),
        created_at: at(n),
        completed_at: None,
    }
}

// CORR-018
fn a_correction_round_trips_and_is_found_by_each_of_its_names(store: &dyn Store) {
    let (plan, root, below) = made(store, 1);
    let (first, second) = (attempt(1, &below), attempt(2, &root));
    write(store, |w| {
        w.put_correction(&first)?;
        w.put_correction(&second)
    });
    assert_eq!(store.view(|r| r.corrections(plan.plan_id)), Ok(vec![first.clone(), second.clone()]));
    assert_eq!(store.view(|r| r.correction(first.correction_id)), Ok(Some(first.clone())));
    assert_eq!(store.view(|r| r.correction(id(77))), Ok(None));
    assert_eq!(store.view(|r| r.correction_behind(id(902))), Ok(Some(second.clone())));
    assert_eq!(store.view(|r| r.correction_behind(below.decision_id)), Ok(None));
    let prefix = first.correction_id.to_string()[..25].to_owned();
    assert_eq!(
        store.view(|r| r.corrections_starting(&prefix, 9)),
        Ok(vec![first.correction_id, second.correction_id])
    );
    assert_eq!(store.view(|r| r.corrections_starting(&prefix, 1)), Ok(vec![first.correction_id]));
    // Its end is written over it, and it keeps its place.
    let failed = CorrectionAttempt {
        state: CorrectionState::Failed,
        failure: Some("no".to_owned()),
        completed_at: Some(at(9)),
        ..first
    };
    write(store, |w| w.put_correction(&failed));
    assert_eq!(store.view(|r| r.corrections(plan.plan_id)), Ok(vec![failed, second]));
    refused(store, |w| w.put_correction(&CorrectionAttempt { plan_id: id(99), ..attempt(3, &below) }));
}

// CORR-030
fn a_correction_is_under_way_for_the_whole_tree(store: &dyn Store) {
    let (root, _, below) = made(store, 1);
    let child = Plan { parent_plan_id: Some(root.plan_id), root_plan_id: root.plan_id, ..plan(2) };
    let of_child = root_decision(&child);
    let (_, other, _) = made(store, 3);
    write(store, |w| {
        w.insert_plan(&child)?;
        w.insert_decision(&of_child)?;
        w.put_correction(&attempt(1, &of_child))?;
        w.put_correction(&CorrectionAttempt { state: CorrectionState::Completed, ..attempt(2, &below) })?;
        w.put_correction(&attempt(3, &other))
    });
    assert_eq!(store.view(|r| r.executing_corrections(root.plan_id)), Ok(vec![attempt(1, &of_child)]));
    assert_eq!(store.view(|r| r.executing_corrections(child.plan_id)), Ok(vec![]));
}

fn rewind(target: &Decision) -> Rewind {
    Rewind {
        plan_id: target.plan_id,
        cause: RewindCause::Correction(id(1)),
        resources: vec![ResourceRewind {
            resource_id: id(1),
            to: RewindTo::Files(vec![("a.py".to_owned(), None), ("b.py".to_owned(), Some("1".repeat(64)))]),
        }],
        recorded: vec![Decision { superseded_by: None, ..target.clone() }],
        fallen: vec![target.decision_id],
        undone: vec![id(1)],
        rewritten: vec![change(target, 2, "a.py")],
        calls: vec![(3, target.decision_id)],
        recalled: vec![target.decision_id],
        spawns: vec![spawn(target, "", None)],
        resume: ResumeAt { phase: Phase::Execute, run: Some("2".repeat(64)) },
        guidance: Some(Guidance { decision_id: target.decision_id, text: "so".to_owned(), applied: false }),
        description: Some("another".to_owned()),
    }
}

fn a_plan_is_taken_back_to_one_place_at_a_time(store: &dyn Store) {
    let (plan, root, below) = made(store, 1);
    let awaiting = Awaiting {
        kind: AwaitingKind::Rollback,
        decision_id: None,
        question: "Go on?".to_owned(),
        options: Vec::new(),
        flag: None,
        threshold: None,
        confidence: None,
        since: at(1),
    };
    let child = Plan {
        parent_plan_id: Some(plan.plan_id),
        root_plan_id: plan.plan_id,
        phase: Phase::Execute,
        state: State::Queued,
        awaiting: Some(awaiting),
        ..super::super::samples::plan(2)
    };
    let of_child = root_decision(&child);
    write(store, |w| {
        w.insert_plan(&child)?;
        w.insert_decision(&of_child)?;
        w.put_rewind(&rewind(&root))
    });
    assert_eq!(store.view(|r| r.rewind(plan.plan_id)), Ok(Some(rewind(&root))));
    assert_eq!(store.view(|r| r.rewind(child.plan_id)), Ok(None));
    write(store, |w| w.put_rewind(&rewind(&below)));
    assert_eq!(store.view(|r| r.rewind(plan.plan_id)), Ok(Some(rewind(&below))));
    assert_eq!(store.view(|r| r.rewinding()), Ok(vec![plan.plan_id]));
    // A child that waits for a person wants a worker only to be taken back.
    assert_eq!(store.view(|r| r.runnable_plans()), Ok(vec![plan.plan_id]));
    write(store, |w| w.put_rewind(&rewind(&of_child)));
    assert_eq!(store.view(|r| r.rewinding()), Ok(vec![plan.plan_id, child.plan_id]));
    assert_eq!(store.view(|r| r.runnable_plans()), Ok(vec![plan.plan_id, child.plan_id]));
    write(store, |w| w.delete_rewind(child.plan_id));
    write(store, |w| w.delete_rewind(child.plan_id));
    assert_eq!(store.view(|r| r.rewinding()), Ok(vec![plan.plan_id]));
}

fn tool_calls_stand_until_their_decision_falls(store: &dyn Store) {
    let (plan, root, below) = made(store, 1);
    let call = |id: i64, decision: &Decision| ToolCall {
        id,
        plan_id: plan.plan_id,
        call_id: format!("call/{id}"),
        decision_id: decision.decision_id,
        tool: "builtin/apply-edits".to_owned(),
        args_hash: "3".repeat(64),
        result: json!({ "edits": 1 }),
        created_at: at(5),
        side_effects: vec![format!("network {id}")],
    };
    write(store, |w| {
        w.insert_tool_call(&call(1, &root))?;
        w.insert_tool_call(&call(2, &below))?;
        w.insert_tool_call(&call(3, &root))
    });
    let standing = || store.view(|r| r.tool_calls(plan.plan_id)).unwrap();
    let ids: Vec<i64> = standing().iter().map(|call| call.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let as_stored: Vec<ToolCall> = [&root, &below, &root]
        .into_iter()
        .zip(&ids)
        .enumerate()
        .map(|(n, (decision, id))| ToolCall { id: *id, ..call(n as i64 + 1, decision) })
        .collect();
    assert_eq!(standing(), as_stored);
    write(store, |w| w.undo_tool_calls(plan.plan_id, root.decision_id));
    assert_eq!(standing(), as_stored[1..2]);
    let (changes, calls) = store.view(|r| r.standing_ids(plan.plan_id)).unwrap();
    let whole = store.view(|r| r.changes(plan.plan_id)).unwrap();
    assert_eq!(changes, whole.iter().map(|c| c.change_id).collect::<Vec<_>>());
    assert_eq!(calls, ids[1..2]);
    assert_eq!(
        store.view(|r| r.call_decisions(&[ids[2], ids[1]])),
        Ok(vec![root.decision_id, below.decision_id])
    );
    write(store, |w| w.reinstate_tool_call(ids[0], below.decision_id));
    let again = ToolCall { decision_id: below.decision_id, ..as_stored[0].clone() };
    assert_eq!(standing(), [again, as_stored[1].clone()]);
}

// CKPT-002
fn a_mark_goes_with_its_checkpoint(store: &dyn Store) {
    let (plan, _, below) = made(store, 1);
    let checkpoint = Checkpoint {
        checkpoint_id: id(1),
        plan_id: plan.plan_id,
        decision_id: Some(below.decision_id),
        resource_id: id(1),
        kind: CheckpointKind::Decision,
        label: "after".to_owned(),
        commit: "c".repeat(40),
        phase: Phase::Execute,
        source_tool: None,
        diff: CheckpointDiff::default(),
        sandboxes: Vec::new(),
        created_at: at(3),
    };
    let mark = CheckpointMark {
        decisions: vec![below.decision_id],
        changes: vec![id(1), id(2)],
        calls: vec![4],
        spawns: vec![spawn(&below, "", None)],
        run: Some("d".repeat(64)),
    };
    let resource = Resource {
        resource_id: id(1),
        name: None,
        resource_type: "git-checkout".to_owned(),
        description: None,
        location: Some("/home/user/app".to_owned()),
        properties: serde_json::Map::new(),
        parents: Vec::new(),
        created_at: at(1),
        updated_at: at(1),
    };
    write(store, |w| {
        w.insert_resource(&resource)?;
        w.insert_checkpoint(&checkpoint)?;
        w.put_checkpoint_mark(checkpoint.checkpoint_id, &mark)
    });
    assert_eq!(store.view(|r| r.checkpoint_mark(checkpoint.checkpoint_id)), Ok(Some(mark)));
    write(store, |w| w.delete_checkpoint(checkpoint.checkpoint_id));
    assert_eq!(store.view(|r| r.checkpoint_mark(checkpoint.checkpoint_id)), Ok(None));
}

fn a_write_that_is_taken_back_stays_on_record(store: &dyn Store) {
    let (plan, _, below) = made(store, 1);
    let [first, second] = [change(&below, 1, "a.py"), change(&below, 2, "b.py")];
    write(store, |w| {
        w.insert_change(&first)?;
        w.insert_change(&second)?;
        w.undo_change(first.change_id)
    });
    assert_eq!(store.view(|r| r.changes(plan.plan_id)), Ok(vec![second]));
    assert_eq!(store.view(|r| r.change(first.change_id)), Ok(Some(first)));
    assert_eq!(store.view(|r| r.change(id(9))), Ok(None));
}

fn spawn(decision: &Decision, call: &str, child: Option<PlanId>) -> Spawn {
    Spawn {
        decision_id: decision.decision_id,
        call: call.to_owned(),
        plan_id: decision.plan_id,
        draft: SpawnDraft { prompt: Some("Do a part".to_owned()), ..SpawnDraft::default() },
        child,
        stage: if child.is_some() { Stage::Started } else { Stage::Decided },
        approved: true,
        retries: 1,
        given_up: false,
    }
}

// SUB-003
fn spawns_keep_their_order_and_know_their_child(store: &dyn Store) {
    let (parent, root, below) = made(store, 1);
    let child = |n| Plan { parent_plan_id: Some(parent.plan_id), root_plan_id: parent.plan_id, ..plan(n) };
    let (one, two) = (child(2), child(3));
    let (first, second) = (spawn(&below, "", None), spawn(&root, "call", Some(two.plan_id)));
    write(store, |w| {
        w.insert_plan(&one)?;
        w.insert_plan(&two)?;
        w.put_spawn(&first)?;
        w.put_spawn(&second)
    });
    assert_eq!(store.view(|r| r.spawns(parent.plan_id)), Ok(vec![first.clone(), second.clone()]));
    assert_eq!(store.view(|r| r.spawn_of(two.plan_id)), Ok(Some(second.clone())));
    assert_eq!(store.view(|r| r.spawn_of(one.plan_id)), Ok(None));
    let children: Vec<PlanId> =
        store.view(|r| r.child_rows(parent.plan_id)).unwrap().iter().map(|row| row.plan_id).collect();
    assert_eq!(children, [one.plan_id, two.plan_id]);
    // Started, taken in, and after a rollback only decided again: always the same row.
    let started = Spawn { child: Some(one.plan_id), stage: Stage::Started, ..first.clone() };
    let merged = Spawn { stage: Stage::Merged { commits: vec![(id(1), "c".repeat(40))] }, ..started.clone() };
    for now in [&started, &merged, &first] {
        write(store, |w| w.put_spawn(now));
        assert_eq!(store.view(|r| r.spawns(parent.plan_id)), Ok(vec![now.clone(), second.clone()]));
        assert_eq!(store.view(|r| r.spawn_of(one.plan_id)), Ok(now.child.map(|_| now.clone())));
    }
    // A plan is made for one spawn.
    refused(store, |w| w.put_spawn(&Spawn { child: Some(two.plan_id), ..started.clone() }));
}
