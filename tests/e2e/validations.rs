//! Validations on real sandboxes with language servers: what they find stops the plan, and says where.

use agents_e2e::{PlanHandle, scripts};
use serde_json::json;

use crate::support::world_with_fake;

// VALID-017, VALID-019, APP-004, T29, T37: the servers say something new, so the plan is not complete
#[test]
fn new_diagnostics_stop_a_plan_and_are_named_with_their_place() {
    let world = world_with_fake();
    world.scripted("local/act", "");
    let repo = world.repo_with("repo", &[("a.py", "x = 1\ny = bad_old\n"), ("b.py", "z = 1\n")]);
    world.register("app", &repo);
    world.ok(&["validation", "attach", "--project", "local/app", "builtin/no-new-diagnostics"]);
    let script = format!("script={}", scripts::editing("a.py", 0, "x = bad_new\n"));
    let answer = world.call(&[
        "plan",
        "use",
        "--automation-profile",
        "trusted",
        "--arg",
        &script,
        "local/act",
        "local/app",
    ]);
    let plan = PlanHandle::new(&world, answer.data["plan_id"].as_str().unwrap());
    plan.assert_at("execute/processing+strategy_revision");
    let status = plan.status();
    let summary = &status["validation_summary"][0];
    assert_eq!(
        (&summary["validation"], &summary["mode"], &summary["passed"]),
        (&json!("builtin/no-new-diagnostics"), &json!("required"), &json!(false))
    );
    let finding = &summary["findings"][0];
    assert_eq!((&finding["file"], &finding["line"]), (&json!("a.py"), &json!(1)), "{summary:#}");
    assert!(finding["message"].as_str().unwrap().contains("new"), "{finding}");
    assert_eq!(
        summary["findings"].as_array().unwrap().len(),
        1,
        "what was there before is not new: {summary:#}"
    );
    let refused = plan.refused("apply", &["--yes"]);
    assert!(
        refused.text.contains("no-new-diagnostics") || refused.text.contains("did not pass"),
        "{}",
        refused.text
    );
    assert_eq!(repo.text("a.py"), "x = 1\ny = bad_old\n");
    plan.ok("cancel", &[]);
}

// The same plan without the new finding passes.
#[test]
fn a_change_that_brings_no_new_diagnostics_passes() {
    let world = world_with_fake();
    world.scripted("local/act", "");
    let repo = world.repo_with("repo", &[("a.py", "x = 1\ny = bad_old\n")]);
    world.register("app", &repo);
    world.ok(&["validation", "attach", "--project", "local/app", "builtin/no-new-diagnostics"]);
    let script = format!("script={}", scripts::editing("a.py", 0, "x = good_new\n"));
    let answer = world.ok(&[
        "plan",
        "use",
        "--automation-profile",
        "trusted",
        "--arg",
        &script,
        "local/act",
        "local/app",
    ]);
    let plan = PlanHandle::new(&world, answer.data["plan_id"].as_str().unwrap());
    plan.assert_at("execute/complete+apply_approval");
    assert_eq!(plan.status()["validation_summary"][0]["passed"], true);
    plan.apply();
    assert_eq!(repo.text("a.py"), "x = good_new\ny = bad_old\n");
}
