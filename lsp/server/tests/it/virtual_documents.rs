//! Documents of our own: plans, diffs and decisions as text, with symbols and folds.

use serde_json::{Value, json};

use crate::desk::{Desk, edit, fix};
use crate::support::SOON;

fn two() -> Desk {
    Desk::new(&[("a.txt", "one\ntwo\nthree\n")], fix(&[edit("1", "impl/x", "a.txt", 1, 2, "TWO\n")]))
}

#[test]
fn a_plan_its_diff_and_a_decision_are_texts() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = desk.editor(json!({}));
    let shown = server.request("agents/content", json!({ "uri": format!("agents:/plan/{plan}") }));
    assert_eq!(shown["languageId"], "markdown");
    let text = shown["text"].as_str().unwrap();
    for part in [
        format!("# Plan {plan}\n").as_str(),
        "- phase: execute, complete, attempt 1",
        "- waits: ",
        "  - implementation_choice: How about impl/x? -> Fix it (0.75)",
        "`a.txt` modified",
        "## Checkpoints",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }

    let shown = server.request("agents/content", json!({ "uri": format!("agents:///plan/{plan}/diff") }));
    assert_eq!(shown["languageId"], "diff");
    assert!(shown["text"].as_str().unwrap().contains("\n-two\n+TWO\n"), "{shown}");

    let tree = server.request("agents/planTree", json!({ "plan": plan }));
    let decision = &tree["tree"]["children"][0]["decision_id"];
    let uri = format!("agents:/decision/{}", decision.as_str().unwrap());
    let text = server.request("agents/content", json!({ "uri": uri }))["text"].clone();
    for part in [
        "# How about strategy/x?",
        "**Chosen → Fix it**",
        "- Fix it (chosen): as the server says",
        "confidence: 0.85",
    ] {
        assert!(text.as_str().unwrap().contains(part), "{part:?} is not in\n{text}");
    }
    let explained = server.request("agents/decision", json!({ "decision": decision }));
    assert_eq!(explained["chosen"], "Fix it");
    assert_eq!(server.request("agents/plans", json!({}))["plans"][0]["id"], plan.as_str());
}

#[test]
fn what_does_not_exist_is_refused() {
    let desk = two();
    let mut server = desk.editor(json!({}));
    for (uri, code) in [
        ("agents:/plan/01ARZ3NDEKTSV4RRFFQ69G5FAV", -32001),
        ("agents:/plan/short", -32602),
        ("agents:/nothing/01ARZ3NDEKTSV4RRFFQ69G5FAV", -32001),
        ("file:///etc/passwd", -32001),
        ("no uri", -32602),
    ] {
        assert_eq!(server.request_error("agents/content", json!({ "uri": uri })).0, code, "{uri}");
    }
    assert_eq!(server.request_error("agents/content", json!({})).0, -32602);
    assert_eq!(server.request_error("agents/planTree", json!({ "plan": "x", "y": 1 })).0, -32602);
}

#[test]
fn a_client_of_lsp_3_18_reads_them_by_the_standard_and_is_told_to_read_again() {
    let desk = two();
    let plan = desk.plan("trusted");
    let options = agents_lsp_server::EditorOptions { workers: None, ..Default::default() };
    let builder =
        agents_lsp_server::testing::TestServer::builder().options(json!({ "notifications": false }));
    let mut server = builder.start(agents_lsp_server::editor(desk.engine.clone(), options));
    let dynamic = json!({ "dynamicRegistration": true });
    let result = server.initialize(json!({
        "workspace": { "textDocumentContent": {} },
        "textDocument": { "documentSymbol": dynamic, "foldingRange": dynamic },
    }));
    assert_eq!(result["capabilities"]["workspace"]["textDocumentContent"]["schemes"], json!(["agents"]));
    assert_eq!(result["capabilities"]["workspace"]["workspaceFolders"]["supported"], true);
    // Folds are offered for our own documents only, symbols for entity files, too.
    let (id, params) = server.expect_request("client/registerCapability", SOON);
    server.respond(&id, &Value::Null);
    let ours = json!([{ "scheme": "agents" }]);
    let with_files = json!([{ "scheme": "agents" }, { "language": "yaml" }, { "language": "json" }]);
    for (at, method, selector) in
        [(0, "textDocument/documentSymbol", with_files), (1, "textDocument/foldingRange", ours)]
    {
        assert_eq!(params["registrations"][at]["method"], method);
        assert_eq!(params["registrations"][at]["registerOptions"]["documentSelector"], selector);
    }

    let uri = format!("agents:/plan/{plan}");
    let shown = server.request("workspace/textDocumentContent", json!({ "uri": uri }));
    server.open(&uri, "markdown", shown["text"].as_str().unwrap());
    let symbols = server.request("textDocument/documentSymbol", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(symbols[0]["name"], format!("Plan {plan}"));
    let names: Vec<_> =
        symbols[0]["children"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Status", "Decisions", "Files", "Checkpoints"]);
    let decisions = &symbols[0]["children"][1]["children"];
    assert!(
        decisions[0]["children"][0]["name"].as_str().unwrap().starts_with("strategy_choice"),
        "{decisions}"
    );
    let folds = server.request("textDocument/foldingRange", json!({ "textDocument": { "uri": uri } }));
    assert!(folds.as_array().unwrap().len() >= 5, "{folds}");

    desk.ok("plan/cancel", json!({ "plan": plan }));
    let (id, params) = server.expect_request("workspace/textDocumentContent/refresh", SOON);
    assert_eq!(params, json!({ "uri": uri }));
    server.respond(&id, &Value::Null);
    let shown = server.request("workspace/textDocumentContent", json!({ "uri": uri }));
    assert!(shown["text"].as_str().unwrap().contains("cancelled"), "{shown}");
}

#[test]
fn the_sides_of_a_diff_are_texts_by_their_hashes() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = desk.editor(json!({}));
    let diff = server.request(
        "workspace/executeCommand",
        json!({ "command": "agents.plan.diff", "arguments": [{ "plan": plan }] }),
    );
    let mut side = |key: &str| {
        let hash = diff["files"][0][key].as_str().unwrap().to_owned();
        let shown = server.request("agents/content", json!({ "uri": format!("agents:/text/{hash}/a.txt") }));
        shown["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(side("base_hash"), "one\ntwo\nthree\n");
    assert_eq!(side("sandbox_hash"), "one\nTWO\nthree\n");
    let unknown = json!({ "uri": "agents:/text/0a/a.txt" });
    assert_eq!(server.request_error("agents/content", unknown).0, -32001);
}
