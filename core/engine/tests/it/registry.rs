//! Registering, listing, showing and removing language servers and actions.

use std::path::Path;
use std::sync::Arc;

use agents_domain::ErrorKind;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutput};
use serde_json::{Value, json};

use crate::harness::Bench;

/// An actor that is never asked.
struct Idle;

impl Actor for Idle {
    fn step<'a>(
        &'a self,
        _: StepInput,
        _: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async { panic!("the plans of these tests wait for a person") })
    }
}

const SERVER: &str = "name: local/ruff\nlanguages: [python, pyi]\ncommand: ruff\nargs: [server]\n";

pub fn bench() -> Bench {
    Bench::new(&[("a.py", "x = 1\n")], &[("local/worker", Arc::new(Idle))])
}

pub fn action(name: &str) -> Value {
    let text = format!(
        "name: {name}\ndescription: Test\ndefinition_of_done: Done\nstrategy_actor: local/worker\n\
         execution_actor: local/worker\narguments:\n  - {{name: n, type: int, required: true}}\n"
    );
    json!({ "config": "actions/a.yaml", "text": text })
}

pub fn checkout(name: &str, path: &Path) -> Value {
    json!({ "resource_type": "git-checkout", "name": name, "properties": { "path": path } })
}

/// Types of events with what they are about, since the start.
pub fn events(bench: &Bench) -> Vec<String> {
    let all = bench.ok("events/after", json!({ "sequence": 0 }));
    let text = |event: &Value| {
        let details = &event["details"];
        let change = details["change"].as_str().map(|c| format!(" {c}")).unwrap_or_default();
        format!(
            "{} {}{change}",
            event["event_type"].as_str().unwrap(),
            details["entity_name"].as_str().unwrap_or("-")
        )
    };
    all["events"].as_array().unwrap().iter().map(text).collect()
}

pub fn suggestions(bench: &Bench, method: &str, params: Value) -> (ErrorKind, String, Vec<String>) {
    let error = bench.err(method, params);
    (error.kind, error.message, error.suggestions)
}

// LSP-001, LSP-036, LSPCLI-001, LSPCLI-002, LSPCLI-003, LSPCLI-004, LSPCLI-008, LSPCLI-009, LSPCLI-010, LSPCLI-011, CONF-028
#[test]
fn a_language_server_is_registered_listed_and_shown() {
    let bench = bench();
    let add = |text: &str, update: bool| json!({ "config": "lsp/ruff.yaml", "text": text, "update": update });
    let added = bench.ok("registry/lsp/add", add(SERVER, false));
    let server = &added["lsp_server"];
    assert_eq!(
        (&server["name"], &server["command"], &server["updated"]),
        (&json!("local/ruff"), &json!("ruff server"), &json!(false))
    );
    assert_eq!(server["capabilities"].as_array().unwrap().len(), 9);
    assert_eq!(added["hints"][0]["message"], "`pyi` is understood as `python`");

    let error = bench.err("registry/lsp/add", add(SERVER, false));
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::AlreadyExists, "LSP server 'local/ruff' already exists")
    );
    assert_eq!(error.suggestions, ["agents lsp add --update --config lsp/ruff.yaml"]);
    assert_eq!(error.data.unwrap(), json!({ "error": "LSP server 'local/ruff' already exists" }));
    let narrow = format!(
        "{SERVER}capabilities: [diagnostics, code_actions]\ninit_options: {{lineLength: 100, apiKey: hidden, token: '${{TOKEN}}'}}\nenv: {{TOKEN: hidden}}\n"
    );
    assert_eq!(bench.ok("registry/lsp/add", add(&narrow, true))["lsp_server"]["updated"], true);
    bench.ok("registry/lsp/add", add("name: acme/clangd\nlanguages: [c, cpp]\ncommand: clangd\n", false));

    let list = bench.ok("registry/lsp/list", json!({}));
    assert_eq!(list["total"], 2);
    assert_eq!(
        list["lsp_servers"][0],
        json!({
            "name": "acme/clangd",
            "languages": ["c", "cpp"],
            "command": "clangd",
            "bound_actors": 0,
            "running": 0,
            "warm": 0,
        })
    );
    assert!(list.get("filter").is_none());
    let python = bench.ok("registry/lsp/list", json!({ "language": "Python" }));
    assert_eq!((&python["total"], &python["filter"]), (&json!(1), &json!({ "language": "Python" })));
    assert_eq!(bench.ok("registry/lsp/list", json!({ "language": "c++" }))["total"], 1);
    assert_eq!(bench.ok("registry/lsp/list", json!({ "namespace": "acme", "pattern": "ruff" }))["total"], 0);

    let shown = bench.ok("registry/lsp/show", json!({ "name": "ruff" }));
    let server = &shown["lsp_server"];
    assert_eq!(server["capabilities"], json!(["diagnostics", "code_actions"]));
    assert_eq!(server["root_path"], "{{ project.root }}");
    assert_eq!(
        (&server["init_options"], &server["bound_actors"]),
        (&json!({ "lineLength": 100, "apiKey": "********", "token": "${TOKEN}" }), &json!([]))
    );
    assert!(!shown.to_string().contains("hidden"));
}

// LSPCLI-005, LSPCLI-006
#[test]
fn a_language_server_is_removed_and_missed_with_the_nearest_name() {
    let bench = bench();
    bench.ok("registry/lsp/add", json!({ "config": "r.yaml", "text": SERVER }));
    let (kind, message, hints) = suggestions(&bench, "registry/lsp/show", json!({ "name": "rufff" }));
    assert_eq!((kind, message.as_str()), (ErrorKind::NotFound, "there is no language server `local/rufff`"));
    assert_eq!(hints, ["did you mean `local/ruff`?", "agents lsp list"]);
    let removed = bench.ok("registry/lsp/remove", json!({ "name": "ruff" }));
    assert_eq!(
        removed,
        json!({ "lsp_server_removed": { "name": "local/ruff", "languages": ["python", "pyi"] }, "broken_references": [] })
    );
    assert_eq!(bench.err("registry/lsp/remove", json!({ "name": "ruff" })).kind, ErrorKind::NotFound);
    assert_eq!(events(&bench)[2..], ["registry.changed local/ruff added", "entity.deleted local/ruff"]);
}

#[test]
fn a_file_with_problems_is_refused_with_every_place() {
    let bench = bench();
    let error = bench.err(
        "registry/lsp/add",
        json!({ "config": "dir/s.yaml", "text": "name: x\nlanguages: []\ncomand: y\n" }),
    );
    assert_eq!(error.kind, ErrorKind::ValidationFailed);
    assert_eq!(error.message, "dir/s.yaml cannot be used: there are 3 problems in it");
    assert_eq!(
        error.detail.unwrap(),
        "dir/s.yaml:1:1: the key `command` is missing\n\
         dir/s.yaml:2:12: `languages` needs at least 1 entry\n\
         dir/s.yaml:3:1: there is no key `comand`: did you mean `command`?"
    );
    assert_eq!(error.data.unwrap()["problems"][2]["range"]["start"], json!({ "line": 2, "column": 0 }));
    assert_eq!(bench.ok("registry/lsp/list", json!({}))["total"], 0);
}

// ACT-001, ACT-005, ACT-006, ACT-007, ACT-008, ACTION-002, CONF-028
#[test]
fn an_action_is_registered_once_and_only_with_actors_that_exist() {
    let bench = bench();
    let made = bench.ok("registry/action/create", action("fix"));
    assert_eq!(made["name"], "local/fix");
    assert_eq!(
        (&made["state"], &made["reusable"], &made["read_only"]),
        (&json!("available"), &json!(true), &json!(false))
    );
    assert_eq!(made["config"], "actions/a.yaml");
    assert_eq!(
        made["arguments"],
        json!([{ "name": "n", "type": "integer", "required": true, "description": null }])
    );
    assert_eq!(made["automation"], json!({ "profile": "supervised", "source": "default" }));
    assert_eq!(made["hints"][0]["message"], "the type `int` is usually written `integer`");
    let (kind, message, hints) = suggestions(&bench, "registry/action/create", action("local/fix"));
    assert_eq!((kind, message.as_str()), (ErrorKind::AlreadyExists, "Action 'local/fix' already exists"));
    assert_eq!(hints[0], "agents action show local/fix");

    let mut wrong = action("other");
    wrong["text"] = wrong["text"]
        .as_str()
        .unwrap()
        .replace("execution_actor: local/worker", "execution_actor: local/wroker")
        .into();
    let error = bench.err("registry/action/create", wrong);
    assert_eq!(
        error.message,
        "actions/a.yaml:5:18: there is no actor `local/wroker`: did you mean `local/worker`?"
    );
    assert!(
        bench
            .err("registry/action/create", action("builtin/fix"))
            .message
            .contains("`builtin/` is for what comes with the program")
    );
}

// ACT-010, ACT-011, ACT-012, ACT-013
#[test]
fn actions_are_listed_shown_with_their_history_and_archived() {
    let bench = bench();
    for name in ["fix", "acme/tidy"] {
        bench.ok("registry/action/create", action(name));
    }
    bench.ok("plan/use", json!({ "action": "fix", "projects": ["app"], "arguments": { "n": 1 }, "automation_profile": "manual" }));
    let list = bench.ok("registry/action/list", json!({}));
    assert_eq!(list["filters"], json!({ "state": "available", "namespace": null }));
    assert_eq!(
        list["summary"],
        json!({ "total": 2, "available": 2, "archived": 0, "total_plans_created": 1 })
    );
    assert_eq!(list["actions"][1]["plans"], 1);
    assert_eq!(bench.ok("registry/action/list", json!({ "namespace": "acme" }))["summary"]["total"], 1);

    let archived = bench.ok("registry/action/archive", json!({ "name": "fix" }));
    assert_eq!(archived["state_transition"], "available -> archived");
    assert_eq!(
        archived["impact"],
        json!({ "availability": "hidden from list", "existing_plans": "unchanged", "active_plans_affected": 0 })
    );
    assert_eq!(archived["history"]["total_plans"], 1);
    assert_eq!(archived["history"]["last_used"].as_str().unwrap().len(), 10);
    assert_eq!(
        bench.err("registry/action/archive", json!({ "name": "fix" })).message,
        "action `local/fix` is archived already"
    );
    assert_eq!(bench.ok("registry/action/list", json!({}))["summary"]["total"], 1);
    assert_eq!(bench.ok("registry/action/list", json!({ "state": "all" }))["summary"]["archived"], 1);
    assert_eq!(bench.err("registry/action/list", json!({ "state": "gone" })).kind, ErrorKind::Usage);

    let shown = bench.ok("registry/action/show", json!({ "name": "fix" }));
    assert_eq!(shown["state"], "archived");
    assert_eq!(
        shown["history"],
        json!({ "plans_created": 1, "plans_completed": 0, "plans_failed": 0, "avg_duration": null, "avg_cost": null })
    );
    let refused =
        bench.err("plan/use", json!({ "action": "fix", "projects": ["app"], "arguments": { "n": 1 } }));
    assert_eq!(refused.kind, ErrorKind::InvalidState);
    assert_eq!(
        bench.err("registry/action/show", json!({ "name": "acme/tydi" })).suggestions[0],
        "did you mean `acme/tidy`?"
    );
}
