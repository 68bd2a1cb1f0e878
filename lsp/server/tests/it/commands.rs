//! `workspace/executeCommand`: every operation by its name, its errors, and asking a person.

use std::collections::BTreeSet;

use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::desk::{Desk, edit, fix, place, question};
use crate::support::SOON;

fn two() -> Desk {
    Desk::new(&[("a.txt", "one\ntwo\nthree\n")], fix(&[edit("1", "impl/x", "a.txt", 1, 2, "TWO\n")]))
}

fn run(server: &mut TestServer, command: &str, arguments: Value) -> Value {
    server.request("workspace/executeCommand", json!({ "command": command, "arguments": arguments }))
}

/// The error object of a refused command.
fn refused(server: &mut TestServer, command: &str, arguments: Value) -> Value {
    server.send_request("workspace/executeCommand", json!({ "command": command, "arguments": arguments }));
    let mut answer = server.next_message();
    assert!(answer["error"].is_object(), "{command} was not refused: {answer}");
    answer["error"].take()
}

#[test]
fn every_operation_of_the_engine_is_offered() {
    let desk = two();
    let options = agents_lsp_server::EditorOptions { workers: None, ..Default::default() };
    let mut server = TestServer::start(agents_lsp_server::editor(desk.engine.clone(), options));
    let result = server.initialize(json!({}));
    let offered = result["capabilities"]["executeCommandProvider"]["commands"].as_array().unwrap();
    let offered: BTreeSet<String> = offered.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    for operation in agents_engine::catalogue() {
        assert!(offered.contains(&operation.command()), "{}", operation.method);
    }
    assert_eq!(offered.len(), agents_engine::catalogue().len() + 3);
    assert_eq!(result["capabilities"]["experimental"]["cleveragents"]["protocol"], 1);
    // What depends on the client is not offered to one that said nothing.
    assert_eq!(result["capabilities"]["diagnosticProvider"], Value::Null);
    assert_eq!(result["capabilities"]["workspace"]["textDocumentContent"], Value::Null);
    assert_eq!(result["capabilities"]["codeActionProvider"], true);
}

#[test]
fn a_command_returns_what_the_operation_returns() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = desk.editor(json!({}));
    let status = run(&mut server, "agents.plan.status", json!([{ "plan": plan }]));
    assert_eq!(status["state"], "complete");
    let listed = run(&mut server, "agents.plan.list", json!([]));
    assert_eq!(listed["total"], 1);
    assert_eq!(run(&mut server, "agents.plan.list", json!([null]))["total"], 1);
    // A file is read from the text that is given.
    let blamed = run(
        &mut server,
        "agents.plan.blame",
        json!([{ "file": desk.repo().join("a.txt"), "text": "x\none\ntwo\nthree\n" }]),
    );
    assert_eq!(blamed["segments"][0]["start_line"], 3);
}

#[test]
fn errors_have_the_codes_and_the_help_of_the_engine() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = desk.editor(json!({}));
    let error = refused(&mut server, "agents.plan.status", json!([{ "plan": "01ZZZZZZ" }]));
    assert_eq!((&error["code"], &error["data"]["type"]), (&json!(-32001), &json!("NOT_FOUND")));
    assert_eq!(error["data"]["suggestions"][0], "agents plan list");
    assert_eq!(error["data"]["number"], 404);

    let error = refused(&mut server, "agents.plan.prompt", json!([{ "plan": plan, "guidance": " " }]));
    assert_eq!((&error["code"], &error["data"]["type"]), (&json!(-32602), &json!("VALIDATION_FAILED")));

    desk.apply(&plan);
    let error = refused(&mut server, "agents.plan.cancel", json!([{ "plan": plan }]));
    assert_eq!((&error["code"], &error["data"]["type"]), (&json!(-32004), &json!("INVALID_STATE")));
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_their_path() {
    let desk = two();
    let mut server = desk.editor(json!({}));
    for (arguments, part) in [
        (json!([{ "plan": "x", "colour": 1 }]), "`colour`"),
        (json!([{ "plan": 3 }]), "`plan`"),
        (json!([{}]), "missing field `plan`"),
        (json!(["x"]), "`arguments[0]`"),
    ] {
        let error = refused(&mut server, "agents.plan.status", arguments.clone());
        let message = error["message"].as_str().unwrap();
        assert_eq!(error["code"], -32602, "{arguments}");
        assert!(message.contains(part), "{part} is not in {message}");
    }
    let error = refused(&mut server, "agents.plan.dance", json!([]));
    assert_eq!((&error["code"], &error["data"]["type"]), (&json!(-32602), &json!("OPERATION_NOT_FOUND")));
    assert!(error["message"].as_str().unwrap().contains("agents.plan.dance"));
}

#[test]
fn a_result_is_shown_to_a_person_when_the_command_says_so() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = desk.editor(json!({}));
    run(&mut server, "agents.plan.diff", json!([{ "plan": plan }, { "show": true }]));
    let shown = server.expect_notification("window/showMessage", SOON);
    assert_eq!(shown, json!({ "type": 3, "message": "+1 -1\na.txt +1 -1" }));
    server.request_error(
        "workspace/executeCommand",
        json!({ "command": "agents.plan.diff", "arguments": [{ "plan": "01ZZZZZZ" }, { "show": true }] }),
    );
    assert_eq!(server.expect_notification("window/showMessage", SOON)["type"], 1);
    server.finish();

    let capable = json!({ "window": { "showDocument": { "support": true } }, "workspace": { "textDocumentContent": {} } });
    let mut server = desk.editor(capable);
    run(&mut server, "agents.plan.diff", json!([{ "plan": plan }, { "show": true }]));
    let (id, shown) = server.expect_request("window/showDocument", SOON);
    assert_eq!(shown["uri"], format!("agents:/plan/{plan}/diff"));
    server.respond(&id, &json!({ "success": true }));
}

#[test]
fn a_person_is_asked_with_the_options_as_buttons_and_nobody_waits() {
    let desk = Desk::new(&[("a.txt", "one\n")], question(&[place("a.txt", 0, 0, 3, None)]));
    let plan = desk.plan("cautious");
    let mut server = desk.editor(json!({}));
    let uri = desk.uri("a.txt");
    assert_eq!(server.expect_notification("textDocument/publishDiagnostics", SOON)["uri"], uri);
    let pending = desk.ok("plan/pending", json!({}));
    let decision = pending["decisions"][0]["decision_id"].clone();
    // The command has its answer before the person gives theirs.
    let asked = run(&mut server, "agents.decision.answer", json!([{ "decision": decision }]));
    assert_eq!(asked, json!({ "pending": decision }));
    let (id, params) = server.expect_request("window/showMessageRequest", SOON);
    assert_eq!(params["actions"], json!([{ "title": "Fix it" }, { "title": "Leave alone" }]));
    server.respond(&id, &json!({ "title": "Leave alone" }));
    let gone = server.expect_notification("textDocument/publishDiagnostics", SOON);
    assert_eq!(gone, json!({ "uri": uri, "diagnostics": [] }));
    let explained = desk.ok("plan/explain", json!({ "decision": decision }));
    assert_eq!(explained["status"], "superseded");

    // It is answered now, and the other question is put aside by a person who closes the message.
    let error = refused(&mut server, "agents.decision.answer", json!([{ "decision": decision }]));
    assert_eq!(error["code"], -32004);
    let other = desk.ok("plan/pending", json!({}))["decisions"][0]["decision_id"].clone();
    run(&mut server, "agents.decision.answer", json!([{ "decision": other }]));
    let (id, _) = server.expect_request("window/showMessageRequest", SOON);
    server.respond(&id, &Value::Null);
    assert_eq!(desk.ok("plan/status", json!({ "plan": plan }))["pending_decisions"], 1);
    assert_eq!(refused(&mut server, "agents.decision.answer", json!([{}]))["code"], -32602);
}
