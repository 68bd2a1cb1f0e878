//! Code lenses and code actions: at the lines of decisions, over the file for its plan, and where an answer is due.

use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::desk::{Desk, capable, edit, fix, place, pulling, question};

fn two() -> Desk {
    let files = [("a.txt", "one\ntwo\nthree\n"), ("b.txt", "b\n")];
    Desk::new(
        &files,
        fix(&[edit("1", "impl/x", "a.txt", 1, 2, "TWO\n2\n"), edit("2", "impl/x", "b.txt", 0, 1, "B\n")]),
    )
}

fn waiting() -> Desk {
    Desk::new(&[("a.txt", "one\n𝄞 two\nthree\n")], question(&[place("a.txt", 1, 5, 8, Some("two is wrong"))]))
}

/// An editor whose refreshes, progress and pushes are none of the test's business.
fn quiet(desk: &Desk, capabilities: Value) -> TestServer {
    let mut server = desk.editor(capabilities);
    for method in [
        "workspace/codeLens/refresh",
        "workspace/inlayHint/refresh",
        "workspace/diagnostic/refresh",
        "window/workDoneProgress/create",
        "textDocument/publishDiagnostics",
    ] {
        server.allow(method);
    }
    server
}

/// Line, title, command and parameters of each lens.
fn lenses(server: &mut TestServer, uri: &str) -> Vec<(u64, String, String, Value)> {
    let found = server.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let lens = |lens: &Value| {
        let command = &lens["command"];
        let text = |key: &str| command[key].as_str().unwrap().to_owned();
        assert_eq!(command["arguments"][1], json!({ "show": true }));
        (
            lens["range"]["start"]["line"].as_u64().unwrap(),
            text("title"),
            text("command"),
            command["arguments"][0].clone(),
        )
    };
    found.as_array().map(|found| found.iter().map(lens).collect()).unwrap_or_default()
}

fn titles(server: &mut TestServer, uri: &str) -> Vec<String> {
    lenses(server, uri).into_iter().map(|(line, title, ..)| format!("{line} {title}")).collect()
}

fn actions(server: &mut TestServer, uri: &str, line: u32, context: Value) -> Vec<Value> {
    let at = json!({ "line": line, "character": 3 });
    let params =
        json!({ "textDocument": { "uri": uri }, "range": { "start": at, "end": at }, "context": context });
    server.request("textDocument/codeAction", params).as_array().cloned().unwrap_or_default()
}

fn action_titles(found: &[Value]) -> Vec<&str> {
    found.iter().map(|action| action["title"].as_str().unwrap()).collect()
}

#[test]
fn a_file_that_a_plan_would_change_has_lenses_for_the_plan_and_for_each_decision() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = quiet(&desk, json!({}));
    let uri = desk.open(&mut server, "a.txt");
    let found = lenses(&mut server, &uri);
    let short = &plan[..8];
    let shown: Vec<_> =
        found.iter().map(|(line, title, command, _)| (*line, title.as_str(), command.as_str())).collect();
    assert_eq!(
        shown,
        [
            (0, format!("plan {short} +3 -2 in 2 files - review").as_str(), "agents.plan.diff"),
            (0, "apply", "agents.plan.apply"),
            (1, "decision - 0.85 - Fix it", "agents.plan.explain"),
            (1, "diff", "agents.plan.diff"),
        ]
    );
    assert_eq!(found[1].3, json!({ "plan": plan }));
    // The parameters are what the command takes.
    let explained = server.request(
        "workspace/executeCommand",
        json!({ "command": "agents.plan.explain", "arguments": [found[2].3] }),
    );
    assert_eq!(explained["question"], "How about impl/x?");
}

#[test]
fn an_applied_file_has_lenses_for_decisions_only_and_an_untouched_one_has_none() {
    let desk = two();
    let plan = desk.plan("trusted");
    desk.apply(&plan);
    std::fs::write(desk.repo().join("c.txt"), "c\n").unwrap();
    let mut server = quiet(&desk, json!({}));
    let uri = desk.open(&mut server, "a.txt");
    assert_eq!(titles(&mut server, &uri), ["1 decision - 0.85 - Fix it", "1 diff"]);
    let found = actions(&mut server, &uri, 1, json!({ "diagnostics": [], "only": ["agents.plan"] }));
    assert_eq!(action_titles(&found), [format!("Take plan {} back", &plan[..8])]);
    let uri = desk.open(&mut server, "c.txt");
    assert_eq!(titles(&mut server, &uri), Vec::<String>::new());
}

#[test]
fn a_decision_that_waits_has_a_lens_at_each_of_its_places() {
    let desk = waiting();
    desk.plan("cautious");
    let mut server = quiet(&desk, pulling());
    let uri = desk.open(&mut server, "a.txt");
    let found = lenses(&mut server, &uri);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0, found[0].1.as_str()), (1, "decision waits: How about strategy/x? - answer…"));
    assert_eq!(found[0].2, "agents.decision.answer");
}

#[test]
fn a_line_with_a_decision_offers_to_explain_it_and_to_apply_its_plan() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = quiet(&desk, capable());
    let uri = desk.open(&mut server, "a.txt");
    let found = actions(&mut server, &uri, 1, json!({ "diagnostics": [] }));
    let short = &plan[..8];
    assert_eq!(
        action_titles(&found),
        [
            "Explain decision: Fix it".to_owned(),
            "Correct: choose \"Leave alone\"".to_owned(),
            format!("Apply plan {short} (+3 -2 in 2 files)"),
            format!("Show diff of plan {short}"),
        ]
    );
    assert_eq!(found[0]["kind"], "agents.explain");
    let elsewhere = actions(&mut server, &uri, 0, json!({ "diagnostics": [] }));
    assert_eq!(elsewhere.len(), 2, "the plan is offered all over the file");
    let only = actions(&mut server, &uri, 1, json!({ "diagnostics": [], "only": ["agents.plan"] }));
    assert_eq!(only.len(), 2);
    assert!(actions(&mut server, &uri, 1, json!({ "diagnostics": [], "only": ["source"] })).is_empty());

    let apply = &found[2]["command"];
    let params = json!({ "command": apply["command"], "arguments": [apply["arguments"][0]] });
    assert_eq!(server.request("workspace/executeCommand", params)["phase"], "apply");
    desk.work(&plan);
    assert_eq!(desk.read("a.txt"), "one\nTWO\n2\nthree\n");

    // Ruling 9: what is applied can be taken back by a plan of its own, and is not corrected any more.
    let mut later = quiet(&desk, capable());
    let uri = desk.open(&mut later, "a.txt");
    let found = actions(&mut later, &uri, 1, json!({ "diagnostics": [] }));
    assert_eq!(
        action_titles(&found),
        ["Explain decision: Fix it".to_owned(), format!("Take plan {short} back")]
    );
    assert_eq!(found[1]["command"]["command"], "agents.plan.revert");
}

// CORR-001, CORR-016
#[test]
fn a_decision_of_an_open_plan_offers_its_other_options() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = quiet(&desk, capable());
    let uri = desk.open(&mut server, "a.txt");
    let only = |kind: &str| json!({ "diagnostics": [], "only": [kind] });
    let found = actions(&mut server, &uri, 1, only("agents.correct"));
    assert_eq!(action_titles(&found), ["Correct: choose \"Leave alone\""]);
    let correct = &found[0]["command"];
    assert_eq!(correct["arguments"][0]["mode"], "revert");
    let params = json!({ "command": correct["command"], "arguments": [correct["arguments"][0]] });
    let corrected = server.request("workspace/executeCommand", params);
    assert_eq!(corrected["correction"]["chosen"], "Leave alone", "{corrected:#}");
    let wrong = correct["arguments"][0]["decision"].as_str().unwrap();
    assert_eq!(corrected["correction"]["corrects"], wrong);
    desk.work(&plan);
    let tree = server.request(
        "workspace/executeCommand",
        json!({ "command": "agents.plan.tree", "arguments": [{ "plan": plan, "show_superseded": true }] }),
    );
    assert!(tree["summary"]["superseded"].as_u64() >= Some(1), "{tree:#}");
}

#[test]
fn a_decision_that_waits_offers_an_answer_per_option() {
    let desk = waiting();
    let plan = desk.plan("cautious");
    let mut server = quiet(&desk, capable());
    let uri = desk.open(&mut server, "a.txt");
    let report = server.request("textDocument/diagnostic", json!({ "textDocument": { "uri": uri } }));
    let diagnostics = &report["items"];
    let found = actions(&mut server, &uri, 1, json!({ "diagnostics": diagnostics, "only": ["quickfix"] }));
    assert_eq!(action_titles(&found), ["Answer \"Fix it\" (proposed)", "Answer \"Leave alone\""]);
    assert_eq!((&found[0]["isPreferred"], &found[1]["isPreferred"]), (&json!(true), &Value::Null));
    assert_eq!(found[0]["diagnostics"], *diagnostics);
    let answer = &found[1]["command"];
    assert_eq!(answer["command"], "agents.plan.prompt");
    assert_eq!(answer["arguments"][0]["guidance"], "Leave alone");
    assert_eq!(answer["arguments"][0]["plan"], plan.as_str());
    // Elsewhere in the file nothing is asked.
    assert!(actions(&mut server, &uri, 2, json!({ "diagnostics": [] })).is_empty());
}

#[test]
fn a_client_without_literals_gets_commands_and_finds_its_diagnostic_by_the_place() {
    let desk = waiting();
    desk.plan("cautious");
    let mut server = quiet(&desk, pulling());
    let uri = desk.open(&mut server, "a.txt");
    let report = server.request("textDocument/diagnostic", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(report["items"][0]["data"], Value::Null);
    let found = actions(&mut server, &uri, 0, json!({ "diagnostics": report["items"] }));
    assert_eq!(found.len(), 3);
    assert_eq!(found[0]["command"], "agents.plan.prompt");
    assert_eq!(found[0]["kind"], Value::Null);
}
