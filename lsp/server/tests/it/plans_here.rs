//! Code actions that begin a plan at a place, take one back to a checkpoint, or put its changes into the buffers.

use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::desk::{Desk, decision, done, edit, fix};
use crate::support::SOON;

const SERVER: &str = "name: local/ruff\nlanguages: [python]\ncommand: ruff\nargs: [server]\n";
const ACTION: &str = "name: local/tidy\ndescription: Tidy\ndefinition_of_done: Tidy\nstrategy_actor: test/scripted\n\
                      execution_actor: test/scripted\narguments:\n  - {name: file, type: string, required: true}\n  \
                      - {name: line, type: integer}\n";

fn literal() -> Value {
    json!({ "textDocument": { "codeAction": { "codeActionLiteralSupport": { "codeActionKind": { "valueSet": [] } } } } })
}

fn actions(server: &mut TestServer, uri: &str, line: u32, context: Value) -> Vec<Value> {
    let at = json!({ "line": line, "character": 0 });
    let params =
        json!({ "textDocument": { "uri": uri }, "range": { "start": at, "end": at }, "context": context });
    server.request("textDocument/codeAction", params).as_array().cloned().unwrap_or_default()
}

fn titled<'a>(found: &'a [Value], title: &str) -> &'a Value {
    found
        .iter()
        .find(|action| action["title"].as_str().unwrap().starts_with(title))
        .unwrap_or_else(|| panic!("{title}: {found:?}"))
}

fn run(server: &mut TestServer, action: &Value) -> Value {
    let command = &action["command"];
    let params = json!({ "command": command["command"], "arguments": [command["arguments"][0]] });
    server.request("workspace/executeCommand", params)
}

#[test]
fn a_diagnostic_of_any_server_begins_a_plan_that_fixes_it() {
    let desk = Desk::new(&[("src/a b.py", "import os\n")], fix(&[]));
    desk.ok("registry/lsp/add", json!({ "config": "ruff.yaml", "text": SERVER }));
    let mut server = desk.editor(literal());
    let uri = desk.open(&mut server, "src/a b.py");
    let range = json!({ "start": { "line": 0, "character": 7 }, "end": { "line": 0, "character": 9 } });
    let told =
        json!({ "range": range, "message": "`os` imported but unused", "code": "F401", "source": "Ruff" });
    let ours = json!({ "range": range, "message": "decision waits", "source": "cleveragents" });
    let found = actions(&mut server, &uri, 0, json!({ "diagnostics": [told, told, ours], "triggerKind": 2 }));
    let titles: Vec<_> = found.iter().map(|action| action["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Plan: fix this diagnostic (F401 in this file)"]);
    let made = run(&mut server, &found[0]);
    assert_eq!(made["action"], "builtin/fix-diagnostics");
    assert_eq!(made["arguments"], json!({ "paths": ["/src/a\\ b.py"], "rules": ["F401"] }));
    assert_eq!(desk.started().len(), 1);
}

#[test]
fn an_action_that_takes_a_place_is_offered_when_a_person_asks() {
    let desk = Desk::new(&[("a.py", "x = 1\ny = 2\n")], fix(&[]));
    let path = desk.repo().join("tidy.yaml").display().to_string();
    desk.ok("registry/action/create", json!({ "config": path, "text": ACTION }));
    let mut server = desk.editor(literal());
    let uri = desk.open(&mut server, "a.py");
    let nothing = actions(&mut server, &uri, 1, json!({ "diagnostics": [], "triggerKind": 2 }));
    assert!(nothing.is_empty(), "no light bulb for what is everywhere: {nothing:?}");
    let found = actions(&mut server, &uri, 1, json!({ "diagnostics": [], "triggerKind": 1 }));
    let titles: Vec<_> = found.iter().map(|action| action["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Plan: use local/tidy here"], "not `local/act`, which takes no place");
    let made = run(&mut server, &found[0]);
    assert_eq!(made["arguments"], json!({ "file": "a.py", "line": 2 }));
}

fn two() -> Desk {
    let script = json!({
        "strategize": [
            { "requests": [decision("strategy/x", "strategy_choice", Value::Null, 0.85)] },
            { "outcome": done("decided") },
        ],
        "execute": [
            { "requests": [
                decision("impl/x", "implementation_choice", json!("strategy/x"), 0.75),
                edit("1", "impl/x", "a.txt", 0, 1, "ONE\n"),
            ] },
            { "requests": [
                decision("impl/y", "implementation_choice", json!("strategy/x"), 0.75),
                edit("2", "impl/y", "a.txt", 2, 3, "THREE\n"),
            ] },
            { "outcome": done("did it") },
        ],
    });
    Desk::new(&[("a.txt", "one\ntwo\nthree\n")], script)
}

#[test]
fn a_line_leads_back_to_where_its_decision_had_been_carried_out() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = desk.editor(literal());
    let uri = desk.open(&mut server, "a.txt");
    let context = json!({ "diagnostics": [], "only": ["agents.plan"] });
    let back = |found: &[Value]| {
        found.iter().filter(|action| action["title"].as_str().unwrap().starts_with("Roll back")).count()
    };
    // Nothing came after the second one.
    assert_eq!(back(&actions(&mut server, &uri, 2, context.clone())), 0);
    let found = actions(&mut server, &uri, 0, context);
    run(&mut server, titled(&found, "Roll back to here: after \"Fix it\""));
    // A rollback waits for a person to go on, or is worked on at once; the sandbox is where it was then.
    desk.work(&plan);
    let diff = desk.ok("plan/diff", json!({ "plan": plan }));
    let patch = diff["files"][0]["patch"].as_str().unwrap();
    assert!(patch.contains("+ONE"), "{patch}");
}

/// A client that takes edits with their reasons.
fn annotating() -> Value {
    let mut client = literal();
    client["workspace"] = json!({
        "applyEdit": true,
        "workspaceEdit": {
            "documentChanges": true,
            "resourceOperations": ["create", "delete", "rename"],
            "changeAnnotationSupport": {},
        },
    });
    client
}

#[test]
fn a_plans_changes_are_edits_of_the_buffers_each_under_its_decision() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = desk.editor(annotating());
    let uri = desk.uri("a.txt");
    // What a person put in meanwhile stays.
    server.open(&uri, "plaintext", "mine\none\ntwo\nthree\n");
    let found = actions(&mut server, &uri, 1, json!({ "diagnostics": [], "only": ["agents.plan"] }));
    let told = run(&mut server, titled(&found, "Put the changes of plan"));
    assert_eq!(
        (&told["pending"], &told["decisions"], &told["left_out"]),
        (&json!(plan), &json!(2), &json!([]))
    );
    let (id, params) = server.expect_request("workspace/applyEdit", SOON);
    server.respond(&id, &json!({ "applied": true }));
    let change = &params["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"]["uri"], uri);
    let edits: Vec<_> = change["edits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edit| (edit["range"]["start"]["line"].as_u64().unwrap(), edit["newText"].as_str().unwrap()))
        .collect();
    assert_eq!(edits, [(1, "ONE\n"), (3, "THREE\n")]);
    let keys: Vec<_> =
        change["edits"].as_array().unwrap().iter().map(|e| e["annotationId"].as_str().unwrap()).collect();
    assert_ne!(keys[0], keys[1]);
    for key in keys {
        let annotation = &params["edit"]["changeAnnotations"][key];
        assert_eq!(
            (&annotation["label"], &annotation["needsConfirmation"]),
            (&json!("Fix it"), &json!(true))
        );
    }
    // The plan is where it was.
    assert_eq!(desk.at(&plan), "execute/complete+apply_approval");
}

#[test]
fn edits_that_do_not_fit_are_named_and_a_client_without_annotations_is_told_what_else_there_is() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = desk.editor(annotating());
    let uri = desk.uri("a.txt");
    server.open(&uri, "plaintext", "mine\ntwo\nthree\n");
    let run = json!({ "command": "agents.plan.edit", "arguments": [{ "plan": plan }] });
    let told = server.request("workspace/executeCommand", run.clone());
    assert_eq!(told["left_out"], json!(["a.txt: 1 where you have edited the same lines"]));
    let (id, _) = server.expect_request("workspace/applyEdit", SOON);
    server.respond(&id, &json!({ "applied": true }));
    let said = server.expect_notification("window/showMessage", SOON);
    assert!(said["message"].as_str().unwrap().contains("a.txt"), "{said}");
    let mut plain = desk.editor(literal());
    let (code, message) = plain.request_error("workspace/executeCommand", run);
    assert!(code == -32602 && message.contains("annotations"), "{code} {message}");
}
