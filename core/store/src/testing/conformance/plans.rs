//! Plans, filters, optimistic concurrency, actor runs.

use agents_domain::ids::PlanId;
use agents_domain::plan::machine::awaiting_fits;
use agents_domain::plan::{Awaiting, AwaitingKind, Phase, Plan, State};
use agents_domain::ports::actor::{Observation, Request, StepOutcome};
use agents_domain::ports::store::{ActorRun, PlanFilter, PlanRow, Store, StoreError, StoreExt};
use serde_json::json;

use super::super::samples::{at, id, plan};
use super::{Case, refused, write};

pub(super) const CASES: &[Case] = &[
    a_plan_round_trips,
    lists_are_filtered_and_newest_first,
    a_write_over_a_later_one_is_a_conflict,
    ids_are_found_by_prefix,
    workers_find_what_wants_one,
    plans_are_found_by_what_they_use,
    an_actions_history_is_counted,
    actor_runs_are_kept_per_phase,
    illegal_states_are_refused,
];

fn awaiting(kind: AwaitingKind) -> Option<Awaiting> {
    Some(Awaiting {
        kind,
        decision_id: Some(id(3)),
        question: "Go on?".to_owned(),
        options: vec!["yes".to_owned(), "no".to_owned()],
        flag: Some("create_tool".to_owned()),
        threshold: Some(1.0),
        confidence: Some(0.5),
        since: at(9),
    })
}

fn in_state(n: u64, phase: Phase, state: State) -> Plan {
    Plan { phase, state, ..plan(n) }
}

fn numbers(rows: Vec<PlanRow>) -> Vec<PlanId> {
    rows.into_iter().map(|row| row.plan_id).collect()
}

fn ids(numbers: &[u64]) -> Vec<PlanId> {
    numbers.iter().map(|n| id(*n)).collect()
}

// PLAN-009
fn a_plan_round_trips(store: &dyn Store) {
    let parent = plan(1);
    let mut child = plan(2);
    child.parent_plan_id = Some(parent.plan_id);
    child.root_plan_id = parent.plan_id;
    (child.phase, child.state) = (Phase::Execute, State::Processing);
    child.awaiting = awaiting(AwaitingKind::Decision);
    child.failure = Some(agents_domain::plan::PlanFailure {
        message: "the server died".to_owned(),
        category: "language_server".to_owned(),
        phase: Phase::Execute,
        tool: None,
        step: Some("fix F401".to_owned()),
        recoverable: true,
        retries: 2,
        hints: vec!["start it again".to_owned()],
    });
    write(store, |w| {
        w.insert_plan(&parent)?;
        w.insert_plan(&child)
    });
    assert_eq!(store.view(|r| r.plan(child.plan_id)), Ok(Some(child.clone())));
    assert_eq!(store.view(|r| r.plan(id(3))), Ok(None));
    let rows = store.view(|r| r.plan_rows(&PlanFilter::default())).unwrap();
    assert_eq!(
        rows[0],
        PlanRow {
            plan_id: child.plan_id,
            parent_plan_id: Some(parent.plan_id),
            phase: Phase::Execute,
            state: State::Processing,
            awaiting: Some("decision".to_owned()),
            action: "local/fix".to_owned(),
            projects: vec!["local/app".to_owned()],
            attempt: 1,
            created_at: child.created_at,
            completed_at: None,
        }
    );
    assert_eq!(
        refused(store, |w| w.insert_plan(&child)),
        StoreError::Duplicate(format!("plan {}", child.plan_id))
    );
}

fn lists_are_filtered_and_newest_first(store: &dyn Store) {
    let mut plans = [
        in_state(1, Phase::Strategize, State::Complete),
        in_state(2, Phase::Execute, State::Queued),
        in_state(3, Phase::Execute, State::Processing),
        in_state(4, Phase::Apply, State::Applied),
    ];
    plans[0].awaiting = awaiting(AwaitingKind::ExecuteApproval);
    plans[1].action = "acme/other".parse().unwrap();
    plans[1].projects = vec!["acme/web".parse().unwrap(), "local/app".parse().unwrap()];
    plans[2].projects = vec!["srv:acme/web".parse().unwrap()];
    write(store, |w| plans.iter().try_for_each(|plan| w.insert_plan(plan)));
    let list = |filter: PlanFilter| numbers(store.view(|r| r.plan_rows(&filter)).unwrap());
    let all = PlanFilter::default;
    assert_eq!(list(all()), ids(&[4, 3, 2, 1]));
    assert_eq!(list(PlanFilter { phase: Some(Phase::Execute), ..all() }), ids(&[3, 2]));
    assert_eq!(list(PlanFilter { state: Some(State::Applied), ..all() }), ids(&[4]));
    assert_eq!(list(PlanFilter { awaiting: Some(true), ..all() }), ids(&[1]));
    assert_eq!(list(PlanFilter { awaiting: Some(false), ..all() }), ids(&[4, 3, 2]));
    assert_eq!(list(PlanFilter { project: Some("local/app".to_owned()), ..all() }), ids(&[4, 2, 1]));
    assert_eq!(list(PlanFilter { namespace: Some("acme".to_owned()), ..all() }), ids(&[3, 2]));
    assert_eq!(list(PlanFilter { action: Some("acme/other".to_owned()), ..all() }), ids(&[2]));
    assert_eq!(
        list(PlanFilter { phase: Some(Phase::Execute), namespace: Some("local".to_owned()), ..all() }),
        ids(&[2])
    );
}

// STORE-007
fn a_write_over_a_later_one_is_a_conflict(store: &dyn Store) {
    let first = plan(1);
    write(store, |w| w.insert_plan(&first));
    let mine = Plan { updated_at: at(2000), phase: Phase::Execute, ..first.clone() };
    let theirs = Plan { updated_at: at(3000), state: State::Processing, ..first.clone() };
    write(store, |w| w.update_plan(&theirs, first.updated_at));
    assert_eq!(
        refused(store, |w| w.update_plan(&mine, first.updated_at)),
        StoreError::Conflict(format!("plan {}", first.plan_id))
    );
    assert_eq!(store.view(|r| r.plan(first.plan_id)), Ok(Some(theirs.clone())));
    // Equal times would hide a lost update.
    assert!(matches!(refused(store, |w| w.update_plan(&theirs, theirs.updated_at)), StoreError::Other(_)));
    let unknown = Plan { updated_at: at(9000), ..plan(9) };
    assert!(matches!(refused(store, |w| w.update_plan(&unknown, at(1))), StoreError::Other(_)));
}

fn ids_are_found_by_prefix(store: &dyn Store) {
    write(store, |w| [7, 71, 72, 8].iter().try_for_each(|n| w.insert_plan(&plan(*n))));
    let start = |n: u64, digits: usize| id::<PlanId>(n).to_string()[..digits].to_owned();
    let found = |prefix: &str, limit| store.view(|r| r.plans_starting(prefix, limit)).unwrap();
    assert_eq!(found(&start(7, 26), 10), ids(&[7]));
    assert_eq!(found(&start(71, 25), 10), ids(&[71, 72]));
    assert_eq!(found(&start(71, 25), 1), ids(&[71]));
    assert_eq!(found("", 3), ids(&[7, 8, 71]));
    assert_eq!(found("01K", 10), []);
    assert_eq!(found("%", 10), []);
}

fn workers_find_what_wants_one(store: &dyn Store) {
    let mut plans = [
        in_state(1, Phase::Strategize, State::Queued),
        in_state(2, Phase::Strategize, State::Queued),
        in_state(3, Phase::Execute, State::Processing),
        in_state(4, Phase::Execute, State::Complete),
        in_state(5, Phase::Apply, State::Processing),
        in_state(6, Phase::Apply, State::Cancelled),
        in_state(7, Phase::Execute, State::Processing),
        in_state(8, Phase::Apply, State::Applied),
        in_state(9, Phase::Execute, State::Processing),
    ];
    plans[0].awaiting = awaiting(AwaitingKind::ConfirmStrategize);
    // A child is worked on by its root's worker, and by one of its own when its parent is applied.
    for (child, parent) in [(6, 3), (8, 8)] {
        plans[child].parent_plan_id = Some(id(parent));
        plans[child].root_plan_id = id(parent);
    }
    write(store, |w| plans.iter().try_for_each(|plan| w.insert_plan(plan)));
    assert_eq!(store.view(|r| r.runnable_plans()), Ok(ids(&[2, 3, 5, 9])));
    assert_eq!(store.view(|r| r.processing_count()), Ok(2));
}

fn plans_are_found_by_what_they_use(store: &dyn Store) {
    let mut plans = [
        in_state(1, Phase::Apply, State::Applied),
        in_state(2, Phase::Execute, State::Cancelled),
        in_state(3, Phase::Execute, State::Errored),
        in_state(4, Phase::Apply, State::Constrained),
        plan(5),
    ];
    plans[4].resources[0].resource_id = id(2);
    plans[4].projects = vec!["local/other".parse().unwrap()];
    write(store, |w| plans.iter().try_for_each(|plan| w.insert_plan(plan)));
    let of_resource = |n| store.view(|r| r.active_plans_of_resource(id(n))).unwrap();
    let of_project =
        |name: &str| numbers(store.view(|r| r.active_plans_of_project(&name.parse().unwrap())).unwrap());
    assert_eq!(of_resource(1), ids(&[4, 3]));
    assert_eq!(of_project("local/app"), ids(&[4, 3]));
    // A plan that moves to another resource and project is found there only.
    let moved = Plan {
        resources: plans[4].resources.clone(),
        projects: plans[4].projects.clone(),
        updated_at: at(9000),
        ..plans[3].clone()
    };
    write(store, |w| w.update_plan(&moved, plans[3].updated_at));
    assert_eq!((of_resource(1), of_resource(2)), (ids(&[3]), ids(&[5, 4])));
    assert_eq!((of_project("local/app"), of_project("local/other")), (ids(&[3]), ids(&[5, 4])));
}

fn an_actions_history_is_counted(store: &dyn Store) {
    let action = plan(0).action;
    let history = || store.view(|r| r.action_history(&action)).unwrap();
    assert_eq!(history(), agents_domain::ports::store::ActionHistory::default());
    let mut plans = [
        in_state(1, Phase::Apply, State::Applied),
        in_state(2, Phase::Apply, State::Applied),
        in_state(3, Phase::Execute, State::Cancelled),
        in_state(4, Phase::Execute, State::Errored),
        plan(5),
        plan(6),
    ];
    plans[0].completed_at = Some(at(1000 + 400));
    plans[1].completed_at = Some(at(2000 + 201));
    plans[5].action = "local/other".parse().unwrap();
    write(store, |w| plans.iter().try_for_each(|plan| w.insert_plan(plan)));
    assert_eq!(store.view(|r| r.plans_of_action(&action)), Ok(5));
    let history = history();
    assert_eq!((history.plans, history.applied, history.errored, history.active), (5, 2, 1, 2));
    assert_eq!((history.last_used, history.mean_duration_ms), (Some(at(5000)), Some(300)));
}

fn actor_runs_are_kept_per_phase(store: &dyn Store) {
    let plan = plan(1);
    let run = |step, phase| ActorRun {
        plan_id: plan.plan_id,
        phase,
        step,
        state: json!({ "seen": [1, 2] }),
        requests: vec![Request::Checkpoint { decision: "a".to_owned(), label: "b".to_owned() }],
        done: 1,
        observations: vec![Observation::Checkpointed { decision: "a".to_owned() }],
        outcome: StepOutcome::Continue,
        group_starts: [("a".to_owned(), vec![(id(1), "c".repeat(40))])].into(),
        retries: 0,
        restores: 0,
        lost_workers: 1,
        before: None,
        heard: Vec::new(),
    };
    write(store, |w| {
        w.insert_plan(&plan)?;
        w.put_actor_run(&run(1, Phase::Strategize))?;
        w.put_actor_run(&run(5, Phase::Execute))?;
        w.put_actor_run(&run(2, Phase::Strategize))
    });
    let there = |phase| store.view(|r| r.actor_run(plan.plan_id, phase)).unwrap();
    assert_eq!(there(Phase::Strategize), Some(run(2, Phase::Strategize)));
    write(store, |w| w.delete_actor_run(plan.plan_id, Phase::Strategize));
    assert_eq!(there(Phase::Strategize), None);
    assert_eq!(there(Phase::Execute), Some(run(5, Phase::Execute)));
}

// PLAN-003
fn illegal_states_are_refused(store: &dyn Store) {
    let legal = |phase, state| match state {
        State::Queued | State::Processing | State::Errored | State::Cancelled => true,
        State::Complete => phase != Phase::Apply,
        State::Applied | State::Constrained => phase == Phase::Apply,
    };
    for (n, (phase, state)) in
        Phase::ALL.iter().flat_map(|p| State::ALL.iter().map(move |s| (*p, *s))).enumerate()
    {
        let plan = in_state(n as u64, phase, state);
        let inserted = store.transact(|w| w.insert_plan(&plan)).is_ok();
        assert_eq!(inserted, legal(phase, state), "{phase}/{state}");
    }
    let mut n = 100;
    for (phase, state) in Phase::ALL.iter().flat_map(|p| State::ALL.iter().map(move |s| (*p, *s))) {
        for kind in AwaitingKind::ALL {
            n += 1;
            let plan = Plan { awaiting: awaiting(*kind), ..in_state(n, phase, state) };
            let inserted = store.transact(|w| w.insert_plan(&plan)).is_ok();
            assert_eq!(inserted, awaiting_fits(phase, state, *kind), "{phase}/{state} awaiting {kind}");
        }
    }
}
