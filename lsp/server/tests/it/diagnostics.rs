//! Diagnostics: decisions that wait, and plans that went wrong, pulled or pushed but never both.

use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::desk::{Desk, capable, edit, fix, git, place, pulling, question};
use crate::support::SOON;

fn waiting() -> Desk {
    let files = [("a.txt", "one\n𝄞 two\nthree\n"), ("b.txt", "b\n")];
    Desk::new(
        &files,
        question(&[place("a.txt", 1, 5, 8, Some("two is wrong")), place("b.txt", 0, 0, 1, None)]),
    )
}

/// The next push, which must be of this file.
#[track_caller]
fn pushed(server: &mut TestServer, uri: &str) -> Value {
    let mut params = server.expect_notification("textDocument/publishDiagnostics", SOON);
    assert_eq!(params["uri"], uri);
    params["diagnostics"].take()
}

fn pulled(server: &mut TestServer, uri: &str, previous: Option<&str>) -> Value {
    let params = json!({ "textDocument": { "uri": uri }, "previousResultId": previous });
    server.request("textDocument/diagnostic", params)
}

fn refreshed(server: &mut TestServer, method: &str) {
    let (id, _) = server.expect_request(method, SOON);
    server.respond(&id, &Value::Null);
}

/// Answers the first question as another process would.
fn answer(desk: &Desk, plan: &str) {
    desk.other().call_json("plan/prompt", json!({ "plan": plan, "guidance": "1" })).unwrap();
}

#[test]
fn a_client_that_cannot_pull_is_pushed_files_whether_they_are_open_or_not() {
    let desk = waiting();
    let plan = desk.plan("cautious");
    let mut server = desk.editor(json!({}));
    let mut seen = Vec::new();
    for _ in 0..2 {
        seen.push(server.expect_notification("textDocument/publishDiagnostics", SOON));
    }
    let of = |uri: &str| seen.iter().find(|p| p["uri"] == uri).unwrap()["diagnostics"].clone();
    let found = of(&desk.uri("a.txt"));
    let diagnostic = &found[0];
    assert_eq!(found.as_array().unwrap().len(), 1);
    // `two` after an astral character: 5 bytes, 3 units of UTF-16.
    assert_eq!(
        diagnostic["range"],
        json!({ "start": { "line": 1, "character": 3 }, "end": { "line": 1, "character": 6 } })
    );
    assert_eq!(
        (&diagnostic["severity"], &diagnostic["source"], &diagnostic["code"]),
        (&json!(2), &json!("cleveragents"), &json!("decision-pending"))
    );
    let message = diagnostic["message"].as_str().unwrap();
    for part in [
        "How about strategy/x?",
        "Here: two is wrong",
        "Proposed: Fix it (confidence 0.50)",
        "agents plan prompt ",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    assert_eq!((&diagnostic["data"], &diagnostic["relatedInformation"]), (&Value::Null, &Value::Null));
    assert_eq!(of(&desk.uri("b.txt")).as_array().unwrap().len(), 1);

    let uri = desk.open(&mut server, "a.txt");
    assert_eq!(pushed(&mut server, &uri), found);

    answer(&desk, &plan);
    for _ in 0..2 {
        let gone = server.expect_notification("textDocument/publishDiagnostics", SOON);
        assert_eq!(gone["diagnostics"], json!([]));
    }
}

#[test]
fn a_client_that_pulls_is_pushed_only_what_it_has_not_open() {
    let desk = waiting();
    let plan = desk.plan("cautious");
    let mut server = desk.editor(capable());
    let first = server.expect_notification("textDocument/publishDiagnostics", SOON);
    let second = server.expect_notification("textDocument/publishDiagnostics", SOON);
    assert_ne!(first["uri"], second["uri"]);

    // Opening it hands it over from push to pull.
    let uri = desk.open(&mut server, "a.txt");
    assert_eq!(pushed(&mut server, &uri), json!([]));
    let report = pulled(&mut server, &uri, None);
    assert_eq!(report["kind"], "full");
    let diagnostic = &report["items"][0];
    assert_eq!(diagnostic["data"]["plan_id"], plan.as_str());
    let related = &diagnostic["relatedInformation"][0];
    assert_eq!(related["location"]["uri"], desk.uri("b.txt"));
    let id = report["resultId"].as_str().unwrap();
    assert_eq!(pulled(&mut server, &uri, Some(id)), json!({ "kind": "unchanged", "resultId": id }));

    answer(&desk, &plan);
    refreshed(&mut server, "workspace/diagnostic/refresh");
    refreshed(&mut server, "workspace/codeLens/refresh");
    let report = pulled(&mut server, &uri, Some(id));
    assert_eq!((&report["kind"], &report["items"]), (&json!("full"), &json!([])));
    assert_eq!(pushed(&mut server, &desk.uri("b.txt")), json!([]));
    // An answer stands behind lines in place of the proposal.
    refreshed(&mut server, "workspace/inlayHint/refresh");
}

#[test]
fn a_client_that_pulls_but_cannot_be_told_to_pull_again_is_pushed() {
    let desk = waiting();
    let plan = desk.plan("cautious");
    let mut server = desk.editor(json!({ "textDocument": { "diagnostic": {} } }));
    for _ in 0..2 {
        server.expect_notification("textDocument/publishDiagnostics", SOON);
    }
    let uri = desk.open(&mut server, "a.txt");
    assert_eq!(pushed(&mut server, &uri).as_array().unwrap().len(), 1);
    answer(&desk, &plan);
    for _ in 0..2 {
        assert_eq!(
            server.expect_notification("textDocument/publishDiagnostics", SOON)["diagnostics"],
            json!([])
        );
    }
}

#[test]
fn closing_a_document_hands_it_back_to_push() {
    let desk = waiting();
    desk.plan("cautious");
    let mut server = desk.editor(pulling());
    server.allow("workspace/diagnostic/refresh");
    for _ in 0..2 {
        server.expect_notification("textDocument/publishDiagnostics", SOON);
    }
    let uri = desk.open(&mut server, "a.txt");
    assert_eq!(pushed(&mut server, &uri), json!([]));
    server.close(&uri);
    assert_eq!(pushed(&mut server, &uri).as_array().unwrap().len(), 1);
}

#[test]
fn a_diagnostic_keeps_its_place_in_an_unsaved_buffer() {
    let desk = waiting();
    desk.plan("cautious");
    let mut server = desk.editor(pulling());
    server.allow("workspace/diagnostic/refresh");
    server.allow("textDocument/publishDiagnostics");
    let uri = desk.open(&mut server, "a.txt");
    let at_start = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    server.change(&uri, json!([{ "range": at_start, "text": "zero\n" }]));
    let report = pulled(&mut server, &uri, None);
    assert_eq!(report["items"][0]["range"]["start"], json!({ "line": 2, "character": 3 }));
}

#[test]
fn files_outside_the_folders_are_not_pushed() {
    let desk = waiting();
    desk.plan("cautious");
    let elsewhere = desk.repo().join("sub");
    std::fs::create_dir(&elsewhere).unwrap();
    let options = agents_lsp_server::EditorOptions { workers: None, ..Default::default() };
    let mut server = TestServer::builder()
        .folder(&desk.uri("sub"))
        .start(agents_lsp_server::editor(desk.engine.clone(), options));
    server.initialize(json!({}));
    let uri = desk.open(&mut server, "a.txt");
    assert_eq!(pushed(&mut server, &uri).as_array().unwrap().len(), 1);
    // The other file would have been pushed with it.
    server.finish();
}

#[test]
fn an_answer_by_command_takes_the_diagnostic_away() {
    let desk = waiting();
    let plan = desk.plan("cautious");
    let mut server = desk.editor(json!({}));
    for _ in 0..2 {
        server.expect_notification("textDocument/publishDiagnostics", SOON);
    }
    let params = json!({ "command": "agents.plan.prompt", "arguments": [{ "plan": plan, "guidance": "Leave alone" }] });
    let answered = server.request("workspace/executeCommand", params);
    assert_eq!(answered["guidance_added"]["option"], "Leave alone");
    for _ in 0..2 {
        let gone = server.expect_notification("textDocument/publishDiagnostics", SOON);
        assert_eq!(gone["diagnostics"], json!([]));
    }
}

#[test]
fn a_plan_that_cannot_be_applied_is_an_error_in_the_files_it_conflicts_in() {
    let files = [("a.txt", "one\ntwo\nthree\n"), ("b.txt", "b\n")];
    let edits = [edit("1", "impl/x", "a.txt", 1, 2, "TWO\n"), edit("2", "impl/x", "b.txt", 0, 1, "B\n")];
    let desk = Desk::new(&files, fix(&edits));
    let plan = desk.plan("trusted");
    std::fs::write(desk.repo().join("a.txt"), "one\n2\nthree\n").unwrap();
    git(&desk.repo(), &["commit", "-qam", "another"]);
    let mut server = desk.editor(json!({}));
    let uri = desk.open(&mut server, "a.txt");
    desk.ok("plan/apply", json!({ "plan": plan }));
    desk.work(&plan);
    assert_eq!(desk.at(&plan).split('+').next(), Some("apply/constrained"));
    let found = pushed(&mut server, &uri);
    assert_eq!((&found[0]["severity"], &found[0]["code"]), (&json!(1), &json!("plan-constrained")));
    assert!(found[0]["message"].as_str().unwrap().contains("a.txt"), "{found}");
    desk.ok("plan/cancel", json!({ "plan": plan }));
    assert_eq!(pushed(&mut server, &uri), json!([]));
}

// Ledger section 5, row apply: a failed required validation is an error at its line, an informational one says so.
#[test]
fn a_failed_validation_shows_at_its_line_until_it_passes() {
    let desk = Desk::new(&[("a.txt", "one\ntwo\nthree\n")], fix(&[edit("1", "impl/x", "a.txt", 4, 7, "2")]));
    for (name, script, mode) in [
        ("strict", "echo a.txt:2: wrong number; test -e ok", "required"),
        ("mild", "echo a.txt:3: could be nicer; exit 1", "informational"),
    ] {
        let text = format!("name: local/{name}\nshell: '{script}'\nparser: lines\nmode: {mode}\n");
        desk.ok("registry/validation/add", json!({ "config": "v.yaml", "text": text }));
        desk.ok(
            "validation/attach",
            json!({ "validation": format!("local/{name}"), "resource": "local/repo" }),
        );
    }
    let plan = desk.plan("trusted");
    assert_eq!(desk.at(&plan), "execute/processing+strategy_revision");
    let mut server = desk.editor(pulling());
    // Until it is open it may be pushed.
    server.allow("textDocument/publishDiagnostics");
    let uri = desk.open(&mut server, "a.txt");
    let report = pulled(&mut server, &uri, None);
    let found = report["items"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{report}");
    let of = |severity: u64| found.iter().find(|d| d["severity"] == severity).unwrap();
    assert_eq!(of(1)["range"]["start"]["line"], 1);
    assert_eq!(of(1)["code"], "validation-failed");
    assert!(of(1)["message"].as_str().unwrap().starts_with("wrong number (validation local/strict of plan "));
    assert_eq!(of(3)["range"]["start"]["line"], 2);
}

// Ledger INV-015: a write that an invariant forbids shows where it would have been made, for who looks and who comes later.
#[test]
fn a_write_that_an_invariant_forbids_shows_at_its_place() {
    let edits = [edit("1", "impl/x", "a.txt", 1, 2, "BAD\n"), edit("2", "impl/x", "b.txt", 0, 1, "B\n")];
    let desk = Desk::new(&[("a.txt", "one\ntwo\nthree\n"), ("b.txt", "b\n")], fix(&edits));
    desk.ok("registry/invariant/add", json!({ "global": true, "text": "No `BAD` in added lines" }));
    let mut early = desk.editor(json!({}));
    let uri = desk.open(&mut early, "a.txt");
    let plan = desk.plan("trusted");
    assert_eq!(desk.at(&plan), "execute/complete+apply_approval");
    let found = pushed(&mut early, &uri);
    let diagnostic = &found[0];
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert_eq!((&diagnostic["severity"], &diagnostic["code"]), (&json!(3), &json!("invariant-violated")));
    assert_eq!(diagnostic["range"]["start"]["line"], 1);
    let message = diagnostic["message"].as_str().unwrap();
    assert!(message.contains("was kept from breaking the invariant “No `BAD` in added lines”"), "{message}");
    // An editor that opens later sees the same.
    let mut late = desk.editor(pulling());
    late.allow("textDocument/publishDiagnostics");
    late.allow("workspace/diagnostic/refresh");
    late.allow("workspace/codeLens/refresh");
    let uri = desk.open(&mut late, "a.txt");
    let report = pulled(&mut late, &uri, None);
    assert_eq!(report["items"][0]["code"], "invariant-violated", "{report}");
    desk.ok("plan/cancel", json!({ "plan": plan }));
    assert_eq!(pushed(&mut early, &uri), json!([]));
}
