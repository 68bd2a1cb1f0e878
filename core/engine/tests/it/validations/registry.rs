//! Registering and attaching.

use agents_domain::ErrorKind;
use serde_json::{Value, json};

use crate::harness::Bench;

const TESTS: &str = "name: local/run-tests\ndescription: Run the tests\ncommand: [pytest, -q]\n\
    validation:\n  mode: required\ntimeout: 600\nwrites: true\ncheckpointable: true\n\
    input_schema:\n  type: object\n  properties:\n    coverage_threshold: {type: integer, default: 80}\n";

fn bench() -> Bench {
    let bench = Bench::new(&[("a.txt", "one\n")], &[]);
    bench.ok("registry/validation/add", json!({ "config": "run-tests.yaml", "text": TESTS }));
    bench
}

fn attach(bench: &Bench, more: Value) -> Value {
    let mut params = json!({ "validation": "local/run-tests", "resource": "local/repo" });
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    bench.ok("validation/attach", params)["validation_attached"].clone()
}

// VAL-001, VAL-002, VAL-003, VAL-004, VAL-005, VAL-006, VALID-002, VALID-003
#[test]
fn a_validation_is_registered_once_and_never_writes() {
    let bench = Bench::new(&[], &[]);
    let add = |text: &str, more: Value| {
        let mut params = json!({ "config": "v.yaml", "text": text });
        more.as_object().unwrap().iter().for_each(|(k, v)| params[k] = v.clone());
        params
    };
    let added = bench.ok("registry/validation/add", add(TESTS, json!({})));
    let registered = &added["validation_registered"];
    assert_eq!(registered["name"], "local/run-tests");
    assert_eq!((&registered["source"], &registered["mode"]), (&json!("builtin"), &json!("required")));
    assert_eq!(registered["config"], "v.yaml");
    assert!(registered["created"].as_str().unwrap().ends_with('Z'), "{registered}");
    let capability = json!({
        "read_only": "true (enforced)", "checkpointable": "false (enforced)", "timeout": "600s",
    });
    assert_eq!(added["capability"], capability);

    let again = bench.err("registry/validation/add", add(TESTS, json!({})));
    assert_eq!(again.kind, ErrorKind::AlreadyExists);
    let data = again.data.unwrap();
    assert_eq!(data["suggested_command"], "agents validation add --config v.yaml --update");
    let updated =
        bench.ok("registry/validation/add", add(TESTS, json!({ "update": true, "mode": "informational" })));
    assert_eq!(updated["validation_registered"]["mode"], "informational");
    assert_eq!(updated["validation_registered"]["version"], 2);

    let short =
        bench.ok("registry/validation/add", add("name: local/lint\ncommand: ruff check .\n", json!({})));
    assert_eq!(short["capability"]["timeout"], "300s");
    assert_eq!(short["validation_registered"]["mode"], "required");
    let own = bench.err("registry/validation/add", add("name: builtin/x\ncommand: [x]\n", json!({})));
    assert!(own.message.contains("comes with the program"), "{own}");
}

// VAL-016: what this program cannot run is refused when it is registered, with what would be right.
#[test]
fn what_cannot_be_run_is_said_in_one_clear_error() {
    let bench = Bench::new(&[], &[]);
    let text = "name: local/m\nsource: mcp\nmcp_server: npx @security/mcp-scanner\nmcp_tool_name: scan\n";
    let error = bench.err("registry/validation/add", json!({ "config": "v.yaml", "text": text }));
    assert!(error.message.contains("MCP") && error.message.contains("`command:`"), "{error}");
    assert_eq!(bench.ok("registry/tool/list", json!({}))["summary"]["total"], 0);
}

// VAL-018 to VAL-023, VALID-009 to VALID-011
#[test]
fn attachments_have_a_scope_typed_arguments_and_an_id_each() {
    let bench = bench();
    let direct = attach(&bench, json!({}));
    assert_eq!(direct["scope"], "direct (always active)");
    assert_eq!(direct["note"], "This validation will run for ALL plans/projects that access this resource.");
    assert!(direct.get("args").is_none());
    let project = attach(&bench, json!({ "project": "local/app", "args": { "coverage-threshold": "90" } }));
    assert_eq!(project["scope"], "project local/app");
    assert_eq!(project["args"], json!({ "coverage_threshold": 90 }));
    assert!(project.get("note").is_none());
    let again = attach(&bench, json!({ "project": "local/app", "args": { "coverage-threshold": "90" } }));
    assert_ne!(again["attachment_id"], project["attachment_id"]);

    let everywhere =
        bench.ok("validation/attach", json!({ "validation": "builtin/syntax", "project": "local/app" }));
    assert_eq!(everywhere["attachments"].as_array().unwrap().len(), 1);
    assert_eq!(everywhere["attachments"][0]["resource"], "local/repo");

    let both = json!({ "validation": "local/run-tests", "resource": "local/repo", "project": "local/app", "plan": "01" });
    assert_eq!(bench.err("validation/attach", both).kind, ErrorKind::Usage);
    let none = json!({ "validation": "local/run-tests" });
    assert_eq!(bench.err("validation/attach", none).kind, ErrorKind::Usage);
    let unknown =
        bench.err("validation/attach", json!({ "validation": "local/run-test", "resource": "local/repo" }));
    assert!(unknown.suggestions.iter().any(|s| s.contains("local/run-tests")), "{unknown:?}");

    let shown = bench.ok("registry/project/show", json!({ "name": "local/app" }));
    let scopes: Vec<&str> =
        shown["validations"].as_array().unwrap().iter().map(|v| v["scope"].as_str().unwrap()).collect();
    assert_eq!(scopes, ["direct", "project", "project", "project"]);
}

// VAL-027, VAL-028, TOOLCLI-011, TOOLCLI-013, TOOLCLI-014, TOOLCLI-018
#[test]
fn detaching_keeps_the_validation_and_removing_it_detaches_the_rest() {
    let bench = bench();
    let first = attach(&bench, json!({}));
    attach(&bench, json!({ "project": "local/app" }));
    let listed = bench.ok("registry/tool/list", json!({ "type": "validation" }));
    assert_eq!(listed["validations"][0]["attachments"], json!({ "total": 2, "direct": 1, "project": 1 }));
    assert_eq!(listed["summary"], json!({ "informational": 0, "required": 1, "total": 1 }));
    let all = bench.ok("registry/tool/list", json!({}));
    assert_eq!(all["tools"][0]["type"], "validation");
    assert_eq!(all["tools"][0]["read_only"], true);

    let id = first["attachment_id"].as_str().unwrap();
    let looked = bench.ok("validation/detach", json!({ "attachment": id, "dry_run": true }));
    let detached = bench.ok("validation/detach", json!({ "attachment": id }));
    assert_eq!(looked, detached);
    assert_eq!(detached["validation_detached"]["scope"], "direct (always active)");
    assert_eq!(bench.err("validation/detach", json!({ "attachment": id })).kind, ErrorKind::NotFound);

    let shown = bench.ok("registry/tool/show", json!({ "name": "local/run-tests" }));
    assert_eq!(shown["validation_details"]["command"], "pytest -q");
    assert_eq!(shown["input_schema"]["coverage_threshold"]["default"], 80);
    assert_eq!(shown["capability"]["timeout_seconds"], 600);
    assert_eq!(shown["attached_to"][0]["project"], "local/app");
    let removed = bench.ok("registry/tool/remove", json!({ "name": "local/run-tests" }));
    let from = json!([{ "resource": "local/repo", "scope": "project", "project": "local/app" }]);
    assert_eq!(removed["detached_attachments"], from);
    assert_eq!(
        bench.err("registry/tool/show", json!({ "name": "local/run-tests" })).kind,
        ErrorKind::NotFound
    );
    assert_eq!(
        bench.err("registry/tool/remove", json!({ "name": "builtin/syntax" })).kind,
        ErrorKind::ValidationFailed
    );
}
