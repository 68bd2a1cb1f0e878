//! Hover and inlay hints: the decision behind a line, before and after apply and through later edits.

use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::desk::{Desk, capable, decision, done, edit, fix, git, plain};
use crate::support::SOON;

fn two() -> Desk {
    Desk::new(
        &[("a.txt", "one\ntwo\nthree\n"), ("b.txt", "b\n")],
        fix(&[edit("1", "impl/x", "a.txt", 1, 2, "TWO\n")]),
    )
}

fn hover(server: &mut TestServer, uri: &str, line: u32) -> Value {
    let params = json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": 0 } });
    server.request("textDocument/hover", params)
}

fn text(server: &mut TestServer, uri: &str, line: u32) -> Option<String> {
    hover(server, uri, line)["contents"]["value"].as_str().map(str::to_owned)
}

fn hints(server: &mut TestServer, uri: &str) -> Value {
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    server.request("textDocument/inlayHint", json!({ "textDocument": { "uri": uri }, "range": range }))
}

#[test]
fn a_line_a_plan_would_change_shows_the_decision_and_what_would_stand_there() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = desk.editor(plain());
    let uri = desk.open(&mut server, "a.txt");
    let found = hover(&mut server, &uri, 1);
    let shown = found["contents"]["value"].as_str().unwrap();
    for part in [
        "**How about strategy/x? → Fix it**",
        "because",
        "Confidence 0.85.",
        "- Fix it (chosen): as the server says",
        "- Leave alone: nothing is changed",
        "Carried out as: How about impl/x? → Fix it (confidence 0.75, threshold 0.00)",
        "Proposed in the sandbox, not applied",
        "```diff\n-two\n+TWO\n```",
        &format!("Plan `{}` of `local/act`", &plan[..8]),
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    assert_eq!(found["contents"]["kind"], "markdown");
    assert_eq!(
        found["range"],
        json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 3 } })
    );
    assert_eq!(hover(&mut server, &uri, 0), Value::Null);
    assert_eq!(hover(&mut server, &uri, 2), Value::Null);
}

#[test]
fn an_applied_line_keeps_its_decision_through_later_edits_until_it_is_rewritten() {
    let desk = two();
    let plan = desk.plan("trusted");
    desk.apply(&plan);
    let mut server = desk.editor(plain());
    let uri = desk.open(&mut server, "a.txt");
    let shown = text(&mut server, &uri, 1).unwrap();
    assert!(shown.contains("The plan wrote these lines.") && !shown.contains("```"), "{shown}");
    let at_start = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    server.change(&uri, json!([{ "range": at_start, "text": "zero\n" }]));
    assert_eq!(text(&mut server, &uri, 1), None);
    assert!(text(&mut server, &uri, 2).is_some());
    let inside = json!({ "start": { "line": 2, "character": 0 }, "end": { "line": 2, "character": 3 } });
    server.change(&uri, json!([{ "range": inside, "text": "mine" }]));
    assert_eq!(text(&mut server, &uri, 2), None);
}

#[test]
fn a_deleted_line_is_found_at_the_line_now_in_its_place() {
    for (from, to, line) in [(1, 2, 1), (2, 3, 1)] {
        let desk =
            Desk::new(&[("a.txt", "one\ntwo\nthree\n")], fix(&[edit("1", "impl/x", "a.txt", from, to, "")]));
        let plan = desk.plan("trusted");
        let mut server = desk.editor(plain());
        let uri = desk.open(&mut server, "a.txt");
        let shown = text(&mut server, &uri, from).unwrap();
        assert!(shown.contains("these lines would be deleted"), "{shown}");
        assert!(shown.contains("```diff\n-t"), "{shown}");
        server.finish();

        desk.apply(&plan);
        let mut server = desk.editor(plain());
        let uri = desk.open(&mut server, "a.txt");
        let shown = text(&mut server, &uri, line).unwrap();
        assert!(shown.contains("The plan deleted lines that stood here."), "{shown}");
    }
}

#[test]
fn lines_that_would_be_put_in_are_shown_where_they_would_go() {
    let desk = Desk::new(&[("a.txt", "one\ntwo\n")], fix(&[edit("1", "impl/x", "a.txt", 1, 1, "new\n")]));
    desk.plan("trusted");
    let mut server = desk.editor(plain());
    let uri = desk.open(&mut server, "a.txt");
    let shown = text(&mut server, &uri, 1).unwrap();
    assert!(shown.contains("here would be put in") && shown.contains("```diff\n+new\n```"), "{shown}");
}

#[test]
fn the_decision_shows_in_the_sandbox_file_too() {
    let desk = two();
    let plan = desk.plan("trusted");
    let status = desk.ok("plan/status", json!({ "plan": plan }));
    let sandbox = status["execution"]["sandbox"]["path"].as_str().unwrap();
    let mut server = desk.editor(plain());
    let uri = format!("file://{sandbox}/a.txt");
    server.open(&uri, "plaintext", "one\nTWO\nthree\n");
    let shown = text(&mut server, &uri, 1).unwrap();
    assert!(shown.contains("The plan wrote these lines."), "{shown}");
}

#[test]
fn what_is_no_file_of_a_resource_has_no_decisions() {
    let desk = two();
    desk.plan("trusted");
    let mut server = desk.editor(plain());
    let b = desk.open(&mut server, "b.txt");
    for uri in ["untitled:x", "file:///nowhere/a.txt", "agents:/plan/x", b.as_str()] {
        if uri != b {
            server.open(uri, "plaintext", "one\ntwo\n");
        }
        assert_eq!(hover(&mut server, uri, 1), Value::Null, "{uri}");
        assert_eq!(hover(&mut server, uri, 99), Value::Null, "{uri}");
    }
    assert_eq!(hover(&mut server, "file:///not/open", 0), Value::Null);
}

#[test]
fn a_client_that_shows_no_markdown_gets_plain_words() {
    let desk = two();
    desk.plan("trusted");
    let mut server = desk.editor(json!({}));
    let uri = desk.open(&mut server, "a.txt");
    let found = hover(&mut server, &uri, 1);
    assert_eq!(found["contents"]["kind"], "plaintext");
    let shown = found["contents"]["value"].as_str().unwrap();
    assert!(shown.starts_with("How about strategy/x? → Fix it\n\nbecause"), "{shown}");
    assert!(!shown.contains("**") && !shown.contains("```"), "{shown}");
}

#[test]
fn ranges_count_in_the_units_of_the_client() {
    for (encoding, end) in [("utf-8", 10), ("utf-16", 8), ("utf-32", 7)] {
        let desk =
            Desk::new(&[("a.txt", "one\n𝄞 = two\n")], fix(&[edit("1", "impl/x", "a.txt", 1, 2, "𝄞\n")]));
        desk.plan("trusted");
        let mut server = desk.editor(json!({ "general": { "positionEncodings": [encoding] } }));
        let uri = desk.open(&mut server, "a.txt");
        assert_eq!(hover(&mut server, &uri, 1)["range"]["end"]["character"], end, "{encoding}");
        assert_eq!(
            hints(&mut server, &uri)[0]["position"],
            json!({ "line": 1, "character": end }),
            "{encoding}"
        );
    }
}

#[test]
fn several_decisions_behind_one_place_are_all_shown() {
    let mut script = fix(&[edit("1", "impl/x", "a.txt", 1, 1, "new\n")]);
    let second = json!({ "requests": [
        decision("impl/y", "implementation_choice", json!("strategy/x"), 0.9),
        edit("2", "impl/y", "a.txt", 2, 2, "newer\n"),
    ] });
    script["execute"] = json!([script["execute"][0], second, { "outcome": done("did both") }]);
    let desk = Desk::new(&[("a.txt", "one\ntwo\n")], script);
    desk.plan("trusted");
    let mut server = desk.editor(plain());
    let uri = desk.open(&mut server, "a.txt");
    // Both are behind what would be put in between two lines.
    let shown = text(&mut server, &uri, 1).unwrap();
    assert!(shown.contains("impl/x") && shown.contains("impl/y") && shown.contains("\n---\n"), "{shown}");
}

#[test]
fn a_hint_at_the_end_of_the_line_says_what_was_decided_and_a_setting_turns_it_off() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut capabilities = capable();
    capabilities["workspace"]["diagnostics"] = Value::Null;
    let mut server = desk.editor(capabilities);
    let uri = desk.open(&mut server, "a.txt");
    let found = hints(&mut server, &uri);
    assert_eq!(found[0]["label"], "proposed 0.85: Fix it");
    assert_eq!(found[0]["position"], json!({ "line": 1, "character": 3 }));
    assert_eq!(found.as_array().unwrap().len(), 1);
    let before = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 3 } });
    let params = json!({ "textDocument": { "uri": uri }, "range": before });
    assert_eq!(server.request("textDocument/inlayHint", params), json!([]));

    let off = json!({ "settings": { "cleveragents": { "inlayHints": false } } });
    server.notify("workspace/didChangeConfiguration", off);
    let (id, _) = server.expect_request("workspace/inlayHint/refresh", SOON);
    server.respond(&id, &Value::Null);
    assert_eq!(hints(&mut server, &uri), Value::Null);
    server.finish();

    desk.apply(&plan);
    let mut server = desk.editor(json!({}));
    let uri = desk.open(&mut server, "a.txt");
    assert_eq!(hints(&mut server, &uri)[0]["label"], "decided 0.85: Fix it");
}

// Whoever has the repository with its notes, and not the plan, sees the decisions too.
#[test]
fn a_clone_shows_the_decisions_that_its_git_notes_tell() {
    let desk = two();
    let plan = desk.plan("trusted");
    desk.apply(&plan);
    let clone = Desk::new(&[("other.txt", "nothing\n")], fix(&[]));
    let from = desk.repo().display().to_string();
    git(&clone.repo(), &["fetch", "-q", &from, "main", "+refs/notes/cleveragents*:refs/notes/cleveragents*"]);
    git(&clone.repo(), &["reset", "-q", "--hard", "FETCH_HEAD"]);
    let mut server = clone.editor(plain());
    let uri = clone.open(&mut server, "a.txt");
    let shown = text(&mut server, &uri, 1).unwrap_or_default();
    for part in ["How about strategy/x?", "Fix it", &plan[..8]] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    assert_eq!(hover(&mut server, &uri, 0), Value::Null);
}

#[test]
fn a_client_that_acts_on_links_gets_them_under_a_hover_among_lenses_and_actions() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut client = capable();
    client["experimental"] = json!({ "cleveragents": { "interactive": true } });
    let mut server = desk.editor(client);
    let uri = desk.open(&mut server, "a.txt");
    let shown = text(&mut server, &uri, 1).unwrap();
    let argument = format!("%22plan%22%3A%22{plan}%22");
    for part in
        ["[Explain](command:agents.plan.explain?%5B", "[Correct…](command:agents.plan.correct?%5B", &argument]
    {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let lenses = server.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let correct =
        lenses.as_array().unwrap().iter().find(|lens| lens["command"]["title"] == "correct…").unwrap();
    let given = &correct["command"]["arguments"][0];
    assert_eq!((given["mode"].as_str(), given.get("guidance")), (Some("revert"), None), "the client asks");
    let line = json!({ "line": 1, "character": 0 });
    let asked = json!({
        "textDocument": { "uri": uri }, "range": { "start": line, "end": line }, "context": { "diagnostics": [] },
    });
    let actions = server.request("textDocument/codeAction", asked);
    let titles: Vec<&str> = actions.as_array().unwrap().iter().filter_map(|a| a["title"].as_str()).collect();
    assert!(titles.contains(&"Correct with guidance…") && titles.contains(&"Append a fix…"), "{titles:?}");

    let mut plain = desk.editor(capable());
    let uri = desk.open(&mut plain, "a.txt");
    assert!(!text(&mut plain, &uri, 1).unwrap().contains("command:"));
}
