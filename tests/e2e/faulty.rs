//! Language servers that break the code, die, hang, or are not there: a plan is never stuck, and nothing that was not
//! checked is called clean.

use std::time::{Duration, Instant};

use agents_e2e::World;
use serde_json::json;

use crate::support::{bad_to_good, executed, world_with_fake};

/// A rule whose fix leaves something that is no Python.
fn breaking() -> serde_json::Value {
    json!({
        "files": ".py", "match": r"\bworse_(\w+)", "code": "W1", "severity": 2, "message": "worse $1",
        "fixes": [{ "title": "Break `$1`", "replace": "def (", "preferred": true }],
    })
}

// PLAN-092: what made it worse is taken back and recorded; the rest of the plan stands.
#[test]
fn a_fix_that_breaks_the_code_is_rolled_back_and_recorded() {
    let world = World::new();
    world.fake("fake", &json!({ "rules": [bad_to_good(), breaking()] }));
    world.fixer();
    let broken = "x = worse_one\n";
    let repo = world.repo_with("repo", &[("a.py", broken), ("b.py", "x = bad_one\ny = worse_two\n")]);
    let plan = executed(&world, &repo);

    let recoveries = plan.decisions_of("error_recovery");
    assert_eq!(recoveries.len(), 1, "{recoveries:#?}");
    let errors = plan.ok("errors", &[]).data;
    assert_eq!(errors["error_message"], json!(null), "{errors:#}");
    assert_eq!(errors["history"][0]["type"], "error_recovery", "{errors:#}");
    let diff = plan.ok("diff", &[]).data;
    assert_eq!(diff["files"][0]["path"], "b.py", "{diff:#}");
    assert_eq!(diff["diff_summary"]["files_changed"], 1, "{diff:#}");
    let told = plan.summary("execute");
    assert!(told.contains("W1"), "{told}");
    plan.apply();
    assert_eq!(repo.text("a.py"), broken);
    assert_eq!(repo.text("b.py"), "x = good_one\ny = worse_two\n");
    world.assert_quiet();
}

#[test]
fn without_a_server_the_plan_asks_and_goes_on_once_there_is_one() {
    let world = World::new();
    world.fixer();
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\n")]);
    world.register("app", &repo);
    let plan = world.plan("app", "trusted", &[]);
    plan.assert_at("strategize/processing+language_server");
    let status = plan.status();
    assert!(status["awaiting"]["question"].as_str().unwrap().contains("agents lsp add"), "{status:#}");
    assert_eq!(status["awaiting"]["options"].as_array().map(Vec::len), Some(2), "{status:#}");
    world.fake("fake", &json!({ "rules": [bad_to_good()] }));
    plan.ok("prompt", &["Try again"]);
    plan.assert_at("execute/complete+apply_approval");
    assert_eq!(plan.ok("diff", &[]).data["diff_summary"]["files_changed"], 1);
}

#[test]
fn a_server_that_dies_makes_the_plan_ask_and_nothing_is_called_clean() {
    let world = World::new();
    world.fake(
        "fake",
        &json!({ "rules": [bad_to_good()], "faults": [{ "on": "textDocument/didOpen", "then": "crash" }] }),
    );
    world.fixer();
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\n")]);
    world.register("app", &repo);
    let started = Instant::now();
    let plan = world.plan("app", "trusted", &[]);
    plan.assert_at("strategize/processing+language_server");
    assert!(started.elapsed() < Duration::from_secs(90));
    let question = plan.status()["awaiting"]["question"].as_str().unwrap().to_owned();
    assert!(question.contains("local/fake") && question.contains("nothing was checked"), "{question}");
    plan.ok("prompt", &["Go on without it"]);
    plan.assert_at("execute/complete+apply_approval");
    let told = plan.summary("strategize");
    assert!(told.contains("not checked") && !told.contains("Nothing found"), "{told}");
    world.assert_quiet();
}

#[test]
fn a_server_that_dies_beside_one_that_lives_costs_only_its_own_findings() {
    let world = world_with_fake();
    world.fake("dying", &json!({ "faults": [{ "on": "textDocument/didOpen", "then": "crash" }] }));
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\n")]);
    let plan = executed(&world, &repo);
    let told = plan.summary("strategize");
    assert!(told.contains("local/dying") && told.contains("not checked"), "{told}");
    plan.apply();
    assert_eq!(repo.text("a.py"), "x = good_one\n");
}

#[test]
fn a_server_that_dies_once_is_started_again_and_loses_nothing() {
    let world = World::new();
    let starts = world.path("starts");
    world.fake(
        "fake",
        &json!({
            "rules": [bad_to_good()], "starts": starts,
            "faults": [{ "on": "textDocument/diagnostic", "starts": 1, "then": "crash" }],
        }),
    );
    world.fixer();
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\n"), ("b.py", "x = bad_two\n")]);
    let plan = executed(&world, &repo);
    assert!(std::fs::read(&starts).unwrap().len() >= 2, "it was started again");
    assert_eq!(plan.ok("diff", &[]).data["diff_summary"]["files_changed"], 2);
    plan.apply();
    assert_eq!(repo.text("b.py"), "x = good_two\n");
}

#[test]
fn a_server_that_hangs_makes_the_plan_ask_within_its_deadlines() {
    let world = World::new();
    world.fake(
        "fake",
        &json!({ "rules": [bad_to_good()], "faults": [{ "on": "textDocument/diagnostic", "then": "hang" }] }),
    );
    world.fixer();
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\n")]);
    world.register("app", &repo);
    let plan = world.plan("app", "trusted", &[]);
    plan.assert_at("strategize/processing+language_server");
    let question = plan.status()["awaiting"]["question"].as_str().unwrap().to_owned();
    assert!(question.contains("local/fake"), "{question}");
    // A person who has had enough gets out, and nothing goes on behind their back.
    let cancelled = plan.ok("cancel", &["--reason", "the server hangs"]);
    assert_eq!(cancelled.data["state"], "cancelled", "{}", cancelled.text);
    plan.assert_at("strategize/cancelled");
    assert_eq!(plan.refused("execute", &[]).code(), "INVALID_STATE");
    world.assert_quiet();
}

#[test]
fn a_server_that_freezes_at_start_does_not_keep_a_plan_from_being_cancelled() {
    let world = World::new();
    world.fake("fake", &json!({ "faults": [{ "on": "initialize", "then": "freeze" }], "stubborn": true }));
    world.fixer();
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\n")]);
    world.register("app", &repo);
    let follower = world.start(&["plan", "use", "local/fix-diagnostics", "local/app"]);
    let plan = agents_e2e::wait_until("a worker takes the plan", Duration::from_secs(20), || {
        (!world.workers().is_empty()).then(|| world.only_plan())
    });
    plan.ok("cancel", &[]);
    plan.assert_at("strategize/cancelled");
    drop(follower.finish(Duration::from_secs(20)));
    let start = Instant::now();
    agents_e2e::wait_until("the worker and its server end", Duration::from_secs(45), || {
        world.processes().is_empty().then_some(())
    });
    assert!(start.elapsed() < Duration::from_secs(45));
}
