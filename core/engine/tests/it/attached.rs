//! What is checked before a plan exists, and what a plan is told of before it decides: validations and invariants that
//! are attached to it.

use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_domain::ErrorKind;
use agents_domain::ports::actor::Actor;
use agents_domain::ports::store::StoreExt;
use serde_json::{Value, json};

use crate::harness::Bench;

fn done() -> Value {
    json!({ "done": { "headline": "did it", "lines": [], "facts": null } })
}

fn bench(script: Value) -> Bench {
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(script));
    let bench = Bench::new(&[("a.txt", "one\ntwo\n"), ("Makefile", "all:\n")], &[("test/s", actor)]);
    bench.action("local/act", "test/s", "test/s", "");
    bench
}

fn idle() -> Bench {
    bench(json!({ "strategize": [{ "outcome": done() }], "execute": [{ "outcome": done() }] }))
}

/// Replaces the first line of a file.
fn write(path: &str) -> Value {
    json!([
        { "request": "record_decision", "key": "impl/x", "decision_type": "implementation_choice", "parent": null,
          "question": "How?", "chosen": 0, "alternatives": [{ "option": "So" }, { "option": "Not" }],
          "confidence": 0.9, "rationale": "because", "reasoning": null, "resources": [], "depends_on": [],
          "context": { "validation_performed": ["it parses", "no other file names it"] } },
        { "request": "tool", "call_id": "1", "tool": "builtin/apply-edits", "decision": "impl/x",
          "args": { "resource": "${resource}", "edits": [{ "op": "edit", "path": path, "edits": [{
              "range": { "start": { "line": 0, "column": 0 }, "end": { "line": 1, "column": 0 } },
              "new_text": "new\n" }] }] } },
    ])
}

fn writing(path: &str) -> Value {
    json!({ "strategize": [{ "outcome": done() }], "execute": [{ "requests": write(path) }, { "outcome": done() }] })
}

fn use_params(more: Value) -> Value {
    let mut params = json!({ "action": "local/act", "projects": ["local/app"], "automation_profile": "ci" });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

/// The check a plan was rejected by; nothing was made.
fn rejected(bench: &Bench, more: Value) -> (String, ErrorKind) {
    let error = bench.err("plan/use", use_params(more));
    assert_eq!(bench.ok("plan/list", json!({}))["total"], 0);
    let check = error.data.as_ref().and_then(|d| d["check"].as_str()).unwrap_or_else(|| panic!("{error:?}"));
    assert!(error.message.starts_with(&format!("pre-flight check failed ({check}): ")), "{}", error.message);
    (check.to_owned(), error.kind)
}

fn profile(bench: &Bench, more: &str) {
    let mut text = "name: local/p\ndescription: d\n".to_owned();
    for flag in [
        "decompose_task",
        "create_tool",
        "select_tool",
        "edit_code",
        "execute_command",
        "create_file",
        "delete_content",
        "access_network",
        "install_dependency",
        "modify_config",
        "approve_plan",
    ] {
        text += &format!("{flag}: 0.0\n");
    }
    text += "require_sandbox: true\nrequire_checkpoints: true\nallow_unsafe_tools: false\n";
    bench.ok("registry/automation_profile/add", json!({ "config": "p.yaml", "text": text + more }));
}

// GUARD-006, GUARD-007, GUARD-010, VALID-033: each check rejects the plan by its name. A tool that could not be taken back
// (GUARD-011) and an action without a description cannot be registered; their checks are tested beside them.
#[test]
fn each_preflight_check_rejects_a_plan_by_its_name() {
    // 2: actors
    let bench = idle();
    for role in ["strategy_actor", "execution_actor", "estimation_actor", "invariant_actor"] {
        let found = rejected(&bench, json!({ role: "local/nobody" }));
        assert_eq!(found, ("actor availability".to_owned(), ErrorKind::NotFound), "{role}");
    }
    // 3: tools
    profile(&bench, "guards: { tool_allowlist: [builtin/fly] }\n");
    let found = rejected(&bench, json!({ "automation_profile": "local/p" }));
    assert_eq!(found, ("skills and tools".to_owned(), ErrorKind::NotFound));
    // 4: policy
    let bench = idle();
    profile(&bench, "allowed_skill_categories: [test]\n");
    let found = rejected(&bench, json!({ "automation_profile": "local/p" }));
    assert_eq!(found, ("automation policy".to_owned(), ErrorKind::ValidationFailed));
    // 6: resources
    let bench = idle();
    std::fs::rename(bench.repo(), bench.dir.path().join("elsewhere")).unwrap();
    assert_eq!(rejected(&bench, json!({})).0, "resource accessibility");
    // 7: validations
    let bench = idle();
    bench.ok(
        "registry/validation/add",
        json!({ "config": "v.yaml", "text": "name: local/v\nshell: exit 0\n" }),
    );
    bench.ok("validation/attach", json!({ "validation": "local/v", "resource": "local/repo" }));
    unregister(&bench, "local/v");
    assert_eq!(rejected(&bench, json!({})), ("validation attachments".to_owned(), ErrorKind::NotFound));
}

/// Takes a validation out of the store and leaves its attachments, as a merged or damaged database may have it.
fn unregister(bench: &Bench, name: &str) {
    let name = name.parse().unwrap();
    let unregister = |w: &dyn agents_domain::ports::store::Writer| {
        let attachments = w.attachments()?;
        w.delete_validation(&name)?;
        attachments.iter().try_for_each(|attachment| w.insert_attachment(attachment))
    };
    bench.engine.store().transact(unregister).unwrap();
}

// VALID-015: not run in Strategize, and known to the strategy actor
#[test]
fn the_strategy_actor_is_told_what_will_be_validated() {
    let told = json!({ "validations": [{ "validation": "local/v", "mode": "required", "description": "It is so" }] });
    let bench = bench(json!({
        "strategize": [{ "expect": told, "outcome": done() }],
        "execute": [{ "expect": told, "outcome": done() }],
    }));
    let text = "name: local/v\ndescription: It is so\nshell: 'true'\n";
    bench.ok("registry/validation/add", json!({ "config": "v.yaml", "text": text }));
    bench.ok("validation/attach", json!({ "validation": "local/v", "resource": "local/repo" }));
    let plan = bench.plan("local/act", "supervised");
    assert_eq!(bench.at(&plan), "strategize/complete+execute_approval", "{}", bench.status(&plan));
    assert_eq!(bench.status(&plan)["validation_summary"], json!([]));
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(bench.status(&plan)["validation_summary"][0]["passed"], true);
}

// INV-015: a validation that must pass is run, attached or not, and what it says decides
#[test]
fn a_validation_that_an_invariant_demands_is_run_and_must_pass() {
    for (shell, place) in [("'true'", "apply/applied"), ("exit 1", "execute/processing+strategy_revision")] {
        let bench = bench(writing("a.txt"));
        let text = format!("name: local/tests\nshell: {shell}\nvalidation: {{ mode: informational }}\n");
        bench.ok("registry/validation/add", json!({ "config": "v.yaml", "text": text }));
        bench.ok("registry/invariant/add", json!({ "global": true, "text": "Validation tests must pass" }));
        let plan = bench.plan("local/act", "ci");
        assert_eq!(bench.at(&plan), place, "{}", bench.status(&plan));
        let summary = bench.status(&plan)["validation_summary"].clone();
        assert_eq!(
            (&summary[0]["validation"], &summary[0]["mode"]),
            (&json!("local/tests"), &json!("required"))
        );
        assert_eq!(summary.as_array().unwrap().len(), 1);
    }
    // One that is not there cannot pass.
    let bench = bench(writing("a.txt"));
    bench.ok("registry/invariant/add", json!({ "global": true, "text": "Validation local/tests must pass" }));
    let plan = bench.plan("local/act", "trusted");
    assert_eq!(bench.at(&plan), "execute/processing+strategy_revision");
    let question = bench.status(&plan)["awaiting"]["question"].as_str().unwrap().to_owned();
    assert!(question.contains("validation `local/tests` was not run"), "{question}");
}

// INV-015: names of files need no quotes
#[test]
fn a_bare_file_name_is_kept_from_being_changed() {
    for (sentence, path) in [("never change a.txt", "a.txt"), ("Do not touch Makefile.", "Makefile")] {
        let bench = bench(writing(path));
        let added = bench.ok("registry/invariant/add", json!({ "global": true, "text": sentence }));
        assert_eq!(added[0]["enforced_by"], "machine", "{sentence}");
        let plan = bench.plan("local/act", "trusted");
        assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
        let diff = bench.ok("plan/diff", json!({ "plan": plan }));
        assert_eq!(diff["diff_summary"]["files_changed"], 0, "{sentence}: {diff:#}");
        let all = bench.ok("events/after", json!({ "sequence": 0, "plan": plan, "limit": 1000 }));
        let broken =
            all["events"].as_array().unwrap().iter().find(|e| e["event_type"] == "invariant.violated");
        let facts = &broken.unwrap()["details"];
        assert_eq!(facts["path"], path);
        assert!(facts["resource_id"].is_string(), "{facts}");
    }
}

// DEC-025: what an actor checked before it decided is kept with the decision
#[test]
fn what_was_checked_before_a_decision_is_shown_with_its_context() {
    let bench = bench(writing("a.txt"));
    let plan = bench.plan("local/act", "trusted");
    let tree = bench.ok("plan/tree", json!({ "plan": plan }))["tree"].clone();
    let decision = tree["children"][0]["decision_id"].clone();
    let shown = bench.ok("plan/explain", json!({ "decision": decision, "show_context": true }));
    assert_eq!(
        shown["context_snapshot"]["validation_performed"],
        json!(["it parses", "no other file names it"]),
        "{shown:#}"
    );
}

// GUARD-014, T50: where nobody is to be asked, a limit ends the phase
#[test]
fn a_limit_ends_the_phase_where_the_configuration_says_so() {
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(writing("a.txt")));
    let env = [("CLEVERAGENTS_PLAN_BUDGET_ON_EXCEEDED", "terminate")];
    let bench = Bench::with_env(&[("a.txt", "one\n")], &[("test/s", actor)], &env);
    bench.action("local/act", "test/s", "test/s", "");
    profile(&bench, "guards: { max_tool_calls_per_step: 0 }\n");
    let plan = bench.plan("local/act", "local/p");
    assert_eq!(bench.at(&plan), "execute/errored", "{}", bench.status(&plan));
    let errors = bench.ok("plan/errors", json!({ "plan": plan }));
    assert_eq!(errors["error_category"], "budget");
}
