use super::*;
use agents_domain::Timestamp;
use agents_domain::ids::DecisionId;
use serde_json::json;

const PLAN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const RESOURCE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAW";

fn plan() -> PlanId {
    PLAN.parse().unwrap()
}

fn resource() -> ResourceId {
    RESOURCE.parse().unwrap()
}

fn event(sequence: i64, event_type: &str, details: Value) -> Event {
    Event {
        sequence,
        timestamp: Timestamp::from_micros(0),
        event_type: event_type.to_owned(),
        plan_id: Some(plan()),
        root_plan_id: Some(plan()),
        correlation_id: None,
        actor_name: None,
        project_name: None,
        user_identity: None,
        details,
    }
}

fn open(phase: Phase, state: State) -> OpenPlan {
    OpenPlan {
        action: "local/a".to_owned(),
        project: "local/app".to_owned(),
        phase,
        state,
        awaiting: None,
        failure: None,
    }
}

fn world(phase: Phase, state: State) -> World {
    World { plans: BTreeMap::from([(plan(), Arc::new(open(phase, state)))]), ..World::default() }
}

fn moved(to: Value, awaiting: Value) -> Value {
    json!({ "phase": to["phase"], "from": {}, "to": to, "awaiting": awaiting, "attempt": 1 })
}

#[test]
fn a_state_change_moves_a_plan_without_a_look_at_the_store() {
    let mut world = world(Phase::Execute, State::Processing);
    let mut changes = Changes::default();
    let awaiting = json!({
        "kind": "apply_approval", "decision_id": null, "question": "Apply?", "options": [], "flag": null,
        "threshold": null, "confidence": null, "since": "2026-02-08T12:44:00Z",
    });
    let to = json!({ "phase": "execute", "state": "complete", "awaiting": "apply_approval" });
    world.apply(&event(7, "plan.state_changed", moved(to, awaiting)), &mut changes);
    let known = &world.plans[&plan()];
    assert_eq!(world.sequence, 7);
    assert_eq!(known.awaiting.as_ref().unwrap().question, "Apply?");
    assert!(known.can_be_applied() && !known.is_running());
    assert!(changes.unknown.is_empty() && changes.plans.contains(&plan()) && !changes.attribution);
}

#[test]
fn a_plan_that_ends_is_open_no_longer_and_all_lines_are_doubtful() {
    let mut world = world(Phase::Apply, State::Processing);
    let mut changes = Changes::default();
    let to = json!({ "phase": "apply", "state": "applied", "awaiting": null });
    world.apply(&event(1, "plan.state_changed", moved(to, Value::Null)), &mut changes);
    assert!(world.plans.is_empty() && changes.attribution);
    assert_eq!(changes.ended[&plan()].state, State::Applied);
}

#[test]
fn an_unknown_plan_is_to_be_looked_up() {
    let mut changes = Changes::default();
    let to = json!({ "phase": "execute", "state": "queued", "awaiting": null });
    World::default().apply(&event(1, "plan.state_changed", moved(to, Value::Null)), &mut changes);
    assert!(changes.unknown.contains(&plan()));
    let mut changes = Changes::default();
    World::default().apply(&event(1, "plan.created", json!({})), &mut changes);
    assert!(changes.unknown.contains(&plan()));
}

#[test]
fn a_write_in_a_sandbox_makes_only_its_file_doubtful() {
    let mut changes = Changes::default();
    let facts = json!({ "resource_id": RESOURCE, "sandbox_path": "a.txt", "modification_type": "modified" });
    World::default().apply(&event(1, "resource.modified", facts), &mut changes);
    assert!(changes.files.contains(&(resource(), "a.txt".to_owned())) && !changes.attribution);
    // One that does not say which makes all.
    World::default().apply(&event(2, "resource.modified", json!({})), &mut changes);
    assert!(changes.attribution);
}

#[test]
fn progress_and_unknown_events_change_nothing_but_the_sequence() {
    let mut world = world(Phase::Execute, State::Processing);
    let mut changes = Changes::default();
    world.apply(
        &event(3, "plan.progress", json!({ "label": "fixing", "done": 1, "total": null })),
        &mut changes,
    );
    world.apply(&event(4, "something.new", json!([1])), &mut changes);
    assert_eq!(changes.progress[&plan()].label, "fixing");
    assert!(changes.plans.is_empty() && !changes.attribution && !changes.questions);
    assert_eq!(world.sequence, 4);
}

#[test]
fn the_innermost_resource_holds_a_path() {
    let inner: ResourceId = PLAN.parse().unwrap();
    let registry =
        Registry { roots: vec![(resource(), "/a".into()), (inner, "/a/b".into())], projects: HashMap::new() };
    assert_eq!(registry.place(Path::new("/a/b/c/d.py")), Some((inner, "c/d.py".to_owned())));
    assert_eq!(registry.place(Path::new("/a/x.py")), Some((resource(), "x.py".to_owned())));
    assert_eq!(registry.place(Path::new("/x.py")), None);
    assert_eq!(registry.path(&(inner, "c.py".to_owned())).unwrap(), Path::new("/a/b/c.py"));
}

#[test]
fn a_plan_concerns_the_folders_its_resources_lie_in_or_hold() {
    let registry = Registry {
        roots: vec![(resource(), "/w/repo".into())],
        projects: HashMap::from([("local/app".to_owned(), vec![resource()])]),
    };
    let world = World { registry: Arc::new(registry), ..World::default() };
    let plan = open(Phase::Execute, State::Processing);
    let folder = |path: &str| Folder {
        uri: crate::documents::DocumentUri::from_path(Path::new(path)).unwrap(),
        name: String::new(),
        path: Some(path.into()),
    };
    for path in ["/w", "/w/repo", "/w/repo/sub"] {
        assert!(world.concerns(&plan, &[folder("/x"), folder(path)]), "{path}");
    }
    assert!(!world.concerns(&plan, &[folder("/x"), folder("/w/repository")]));
    assert!(world.concerns(&plan, &[]));
    let elsewhere = OpenPlan { project: "local/gone".to_owned(), ..plan };
    assert!(world.concerns(&elsewhere, &[folder("/x")]), "nothing is known against it");
}

#[test]
fn questions_are_found_by_each_file_they_are_about() {
    let place = |path: &str| {
        serde_json::from_value(json!({ "resource_id": RESOURCE, "path": path, "range": null })).unwrap()
    };
    let id: DecisionId = PLAN.parse().unwrap();
    let decision = PendingDecision {
        decision_id: id,
        plan_id: plan(),
        question: "Why?".to_owned(),
        proposed: String::new(),
        options: Vec::new(),
        confidence: None,
        rationale: String::new(),
        resources: vec![place("a"), place("b"), place("a")],
    };
    let questions = Questions::new(vec![decision]);
    let at = |path: &str| questions.at(&(resource(), path.to_owned())).map(|(_, n)| n).collect::<Vec<_>>();
    assert_eq!((at("a"), at("b"), at("c")), (vec![0, 2], vec![1], vec![]));
    assert_eq!(questions.files().count(), 2);
}
