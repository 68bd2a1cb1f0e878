//! Validations, as a person walks the path: register, attach, fail, be refused, fix, apply.

use serde_json::{Value, json};

use crate::world::{World, choose_and_edit};

fn registered(script: &str) -> World {
    let world = World::registered(&choose_and_edit(0.9));
    world.write(
        "check.yaml",
        &format!("name: local/check\ndescription: No shouting\nshell: |\n  {script}\nparser: lines\n"),
    );
    world
}

// VAL-001, VAL-004, VAL-018 to VAL-024, VAL-027 to VAL-029, TOOLCLI-008 to TOOLCLI-019
#[test]
fn a_validation_is_added_attached_shown_detached_and_removed() {
    let world = registered("exit 0");
    let added = world.json(&["validation", "add", "--config", "check.yaml", "--informational"]);
    assert_eq!(added["command"], "validation add");
    assert_eq!(added["data"]["validation_registered"]["mode"], "informational");
    assert_eq!(added["messages"][0]["text"], "Validation registered");
    let again = world.refused(&["validation", "add", "--config", "check.yaml"]);
    assert_eq!(again["data"]["hint"], "To overwrite the existing configuration, re-run with --update");
    world.json(&["validation", "add", "--config", "check.yaml", "--required", "--update"]);

    let attached = world.json(&[
        "validation",
        "attach",
        "--project",
        "local/app",
        "local/repo",
        "local/check",
        "--coverage-threshold",
        "90",
    ]);
    let data = &attached["data"]["validation_attached"];
    assert_eq!(data["args"], json!({ "coverage_threshold": 90 }));
    assert_eq!((&data["scope"], &data["mode"]), (&json!("project local/app"), &json!("required")));
    let id = data["attachment_id"].as_str().unwrap();
    for wrong in [
        &["validation", "attach", "local/repo", "local/check", "coverage=90"][..],
        &["validation", "attach", "local/repo", "local/check", "--loud"],
        &["validation", "attach", "--project", "local/app", "--plan", "01", "local/repo", "local/check"],
        &["validation", "list"],
    ] {
        let refused = world.document(wrong);
        assert_eq!(refused["exit_code"], 2, "{wrong:?}: {refused:#}");
    }
    let shown = world.json(&["tool", "show", "local/check"]);
    assert_eq!(shown["data"]["attached_to"][0]["attachment_id"], id);
    let listed = world.json(&["tool", "list", "--type", "validation"]);
    assert_eq!(listed["data"]["validations"][0]["attachments"], json!({ "total": 1, "project": 1 }));
    let rich = world.run_in("plain", &["tool", "list", "--type", "validation"]);
    assert!(rich.stdout.contains("1 (1 project)"), "{}", rich.stdout);

    let detached = world.json(&["validation", "detach", "--yes", id]);
    assert_eq!(detached["data"]["validation_detached"]["scope"], "project local/app");
    assert!(detached["data"].get("confirmation").is_none());
    world.json(&["validation", "attach", "local/repo", "local/check"]);
    let removed = world.json(&["tool", "remove", "--yes", "local/check"]);
    assert_eq!(removed["data"]["detached_attachments"][0]["scope"], "direct");
    assert_eq!(removed["messages"][1]["text"], "This validation had 1 attachment which has been removed.");
}

// APP-002, APP-004, PLAN-064, T27, T37
#[test]
fn what_does_not_pass_is_not_applied() {
    let world = registered("grep -n TWO a.txt | sed \"s/^/a.txt:/\"; ! grep -q TWO a.txt");
    world.json(&["validation", "add", "--config", "check.yaml"]);
    world.json(&["validation", "attach", "local/repo", "local/check"]);
    let plan = world.plan(&[]);
    world.document(&["plan", "execute", &plan]);
    assert_eq!(world.at(&plan), "execute/processing+validation_fix");
    let refused = world.refused(&["plan", "apply", "--yes", &plan]);
    assert_eq!((&refused["exit_code"], &refused["status"]), (&json!(1), &json!("error")));
    let data = &refused["data"];
    assert_eq!(data["validation"]["check"]["failures"], json!(["a.txt:2 -- TWO"]), "{refused:#}");
    assert_eq!(data["recovery_options"].as_array().unwrap().len(), 4);
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");
    let status = world.run_in("plain", &["plan", "status", &plan]);
    assert!(status.stdout.contains("local/check: FAILED"), "{}", status.stdout);
    assert!(status.stdout.contains("a.txt:2 -- TWO"), "{}", status.stdout);

    // The check is taken away, and the work is looked at again.
    world.json(&["tool", "remove", "--yes", "local/check"]);
    world.json(&["plan", "prompt", &plan, "fix"]);
    world.wait_at(&plan, "execute/complete+apply_approval");
    let applied = world.json(&["plan", "apply", "--yes", &plan]);
    assert_eq!(applied["data"]["validation"], Value::Object(serde_json::Map::new()));
    assert_eq!(world.read("a.txt"), "one\nTWO\nthree\n");
}

// VAL-001, VALID-033: a program that is not there is said when it can still be helped
#[test]
fn a_validation_whose_program_is_missing_is_warned_of() {
    let world = World::registered(&choose_and_edit(0.9));
    world.write("tests.yaml", "name: local/tests\ncommand: [no-such-test-runner, -q]\n");
    let added = world.json(&["validation", "add", "--config", "tests.yaml"]);
    let warning = &added["messages"][0];
    assert_eq!(warning["level"], "warn", "{added:#}");
    assert!(
        warning["text"].as_str().unwrap().starts_with("`no-such-test-runner` is not on PATH"),
        "{warning}"
    );
    world.json(&["validation", "attach", "local/repo", "local/tests"]);
    let made = world.make(&["--automation-profile", "supervised"]);
    assert!(made["messages"].to_string().contains("no-such-test-runner"), "{made:#}");
    // One of the repository may come with a plan.
    world.write("own.yaml", "name: local/own\ncommand: [./run-tests]\n");
    let added = world.json(&["validation", "add", "--config", "own.yaml"]);
    assert_eq!(added["messages"].as_array().unwrap().len(), 1, "{added:#}");
}
