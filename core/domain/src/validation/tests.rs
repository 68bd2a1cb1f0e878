//! Which validations a plan runs, in which order, and what is run again.

use serde_json::{Value, json};

use super::*;
use crate::Timestamp;
use crate::invariant::Enforced;
use crate::plan::machine::plan_for_tests;
use crate::plan::{PlanResource, SandboxRef};
use ulid::Ulid;

fn id(n: u128) -> Ulid {
    Ulid::from(n)
}

fn plan() -> Plan {
    let mut plan = plan_for_tests("supervised");
    plan.plan_id = PlanId::from_ulid(id(100));
    plan.projects = vec!["local/app".parse().unwrap()];
    plan.resources = [1, 2]
        .map(|n| PlanResource {
            resource_id: ResourceId::from_ulid(id(n)),
            project: "local/app".parse().unwrap(),
            read_only: false,
        })
        .to_vec();
    plan
}

fn attachment(n: u128, resource: u128, validation: &str, scope: Scope, args: Value) -> Attachment {
    Attachment {
        attachment_id: AttachmentId::from_ulid(id(n)),
        validation: validation.parse().unwrap(),
        resource_id: ResourceId::from_ulid(id(resource)),
        scope,
        args: args.as_object().cloned().unwrap_or_default(),
        created_at: Timestamp::from_micros(0),
    }
}

fn ids(found: &[&Attachment]) -> Vec<u128> {
    found.iter().map(|a| a.attachment_id.ulid().0).collect()
}

// VALID-012, VALID-013, VALID-014, VAL-025, VAL-026
#[test]
fn a_plan_runs_the_union_of_its_scopes_and_equal_ones_once() {
    let app = || Scope::Project("local/app".parse().unwrap());
    let plan_scope = |n| Scope::Plan(PlanId::from_ulid(id(n)));
    let all = [
        attachment(10, 1, "local/tests", Scope::Direct, json!({})),
        attachment(11, 1, "local/tests", app(), json!({})),
        attachment(12, 1, "local/tests", app(), json!({ "threshold": 90 })),
        attachment(13, 1, "local/tests", Scope::Project("local/other".parse().unwrap()), json!({ "x": 1 })),
        attachment(14, 2, "local/tests", Scope::Direct, json!({})),
        attachment(15, 3, "local/tests", Scope::Direct, json!({})),
        attachment(16, 1, "local/lint", plan_scope(100), json!({})),
        attachment(17, 1, "local/lint", plan_scope(101), json!({ "x": 1 })),
        attachment(18, 1, "local/lint", Scope::Direct, json!({})),
        attachment(19, 2, "local/lint", plan_scope(99), json!({})),
        attachment(20, 2, "local/tests", Scope::Direct, json!({})),
    ];
    let plan = plan();
    // The narrower of equal ones is run, and the oldest of equally narrow ones.
    let of = |plans: &[u128]| {
        let plans: Vec<PlanId> = plans.iter().map(|n| PlanId::from_ulid(id(*n))).collect();
        ids(&applicable(&all, &plan.resources, &plan.projects, &plans))
    };
    assert_eq!(of(&[100]), [11, 12, 16, 14]);
    assert_eq!(of(&[100, 99]), [11, 12, 16, 14, 19]);
}

// INV-015: an invariant that a validation must pass has it run where nobody attached it.
#[test]
fn what_an_invariant_demands_is_run_on_each_resource_unless_it_is_attached() {
    let mut plan = plan();
    plan.resources[1].read_only = true;
    let enforced = |text: &str| Enforced {
        decision_id: crate::ids::DecisionId::from_ulid(id(7)),
        invariant_id: None,
        text: text.to_owned(),
        check: crate::invariant::extract(text),
    };
    let all = [enforced("Validation local/tests must pass"), enforced("Never change files under vendor/")];
    let found = demanded(&all, &plan, &[]);
    assert_eq!(found.len(), 1, "not on what is only read");
    assert_eq!(
        (found[0].validation.to_string().as_str(), found[0].resource_id),
        ("local/tests", plan.resources[0].resource_id)
    );
    assert_eq!(found, demanded(&all, &plan, &[]), "the same id each time");
    let attached = attachment(10, 1, "local/tests", Scope::Direct, json!({}));
    assert_eq!(demanded(&all, &plan, &[&attached]), []);
}

fn ran(plan: &mut Plan, attachment: &Attachment, mode: Mode, passed: bool) {
    let verdict = if passed { Verdict::passed("fine") } else { Verdict::failed("2 tests failed\nmore") };
    let run = Run { verdict, duration_ms: 5, finished_at: Timestamp::from_micros(1) };
    let mut validations = std::mem::take(&mut plan.validations);
    validations.record(plan, attachment, mode, run);
    plan.validations = validations;
}

fn commit(plan: &mut Plan, commit: &str) {
    plan.sandboxes = vec![SandboxRef {
        resource_id: ResourceId::from_ulid(id(1)),
        original: "/repo".to_owned(),
        store: None,
        path: "/sandbox".to_owned(),
        base_commit: "0".to_owned(),
        head_commit: "0".to_owned(),
        branch: None,
        commit: commit.to_owned(),
        untouchable: Vec::new(),
    }];
}

// VALID-017, VALID-018, GUARD-016, T26
#[test]
fn only_what_failed_is_run_again_and_then_what_passed_on_older_work() {
    let mut plan = plan();
    commit(&mut plan, "a");
    let tests = attachment(10, 1, "local/tests", Scope::Direct, json!({}));
    let lint = attachment(11, 1, "local/lint", Scope::Direct, json!({}));
    let size = attachment(12, 1, "local/size", Scope::Direct, json!({}));
    let all = [&tests, &lint, &size];
    let to_run = |plan: &Plan| -> Vec<u128> {
        plan.validations.to_run(plan, &all).iter().map(|id| id.ulid().0).collect()
    };
    assert_eq!(to_run(&plan), [10, 11, 12]);
    ran(&mut plan, &tests, Mode::Required, false);
    ran(&mut plan, &lint, Mode::Required, true);
    ran(&mut plan, &size, Mode::Informational, false);
    assert!(plan.validations.blocked());
    assert_eq!(plan.validations.fixes_tried(), 0);
    assert_eq!(plan.validations.counted(), "1/3 passed");
    assert_eq!(to_run(&plan), [] as [u128; 0], "nothing is run again without a reason");
    assert_eq!(plan.validations.failure_message(), "validation local/tests did not pass: 2 tests failed");

    plan.validations.ask_for_fix(1);
    assert!(plan.validations.wants_fix());
    plan.validations.handed_over();
    assert_eq!(plan.validations.being_fixed().count(), 1);
    commit(&mut plan, "b");
    assert_eq!(to_run(&plan), [10]);
    ran(&mut plan, &tests, Mode::Required, true);
    assert_eq!(plan.validations.of(tests.attachment_id).unwrap().attempt, 2);
    assert_eq!(plan.validations.fixes[0].succeeded, Some(true));
    // What passed before the fix is run once more on the fixed work, and so is what only informs.
    assert_eq!(to_run(&plan), [11, 12]);
    ran(&mut plan, &lint, Mode::Required, true);
    ran(&mut plan, &size, Mode::Informational, false);
    assert_eq!(to_run(&plan), [] as [u128; 0]);
    assert!(!plan.validations.blocked());
    assert_eq!(plan.validations.passed(&"local/tests".parse().unwrap()), Some(true));
    assert_eq!(plan.validations.passed(&"local/size".parse().unwrap()), Some(false));
    assert_eq!(plan.validations.passed(&"local/none".parse().unwrap()), None);

    // A new attempt of the plan runs everything anew, and counts its fixes from nothing.
    plan.attempt = 2;
    assert_eq!(to_run(&plan), [10, 11, 12]);
    ran(&mut plan, &tests, Mode::Required, false);
    assert_eq!(plan.validations.fixes_tried(), 0);
}

// VALID-005, VALID-006, VAL-014
#[test]
fn a_result_object_needs_a_boolean_passed() {
    let good = Verdict::from_output(r#"{"passed": true, "message": "ok", "data": {"n": 1}}"#);
    assert!(good.passed && !good.error);
    assert_eq!((good.message.as_str(), &good.data["n"]), ("ok", &json!(1)));
    for raw in ["not json", r#"{"message": "no passed"}"#, r#"{"passed": "yes"}"#] {
        let bad = Verdict::from_output(raw);
        assert!(!bad.passed && bad.error);
        assert_eq!(bad.data["raw_output"], raw);
    }
}
