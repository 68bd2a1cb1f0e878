//! Servers behind the front that are slow, broken or gone: they cost their own features and nothing else. Each test is
//! named after what it proves.

use std::time::Duration;

use serde_json::{Value, json};

use crate::proxied::{LONG, Proxied, answer, at, fixed, script};

fn hover(text: &str) -> Value {
    json!({ "contents": { "kind": "markdown", "value": text } })
}

fn hovering(faults: Value) -> Value {
    script(json!({ "hoverProvider": true, "definitionProvider": true, "referencesProvider": true }), faults)
}

fn good(text: &str) -> Value {
    hovering(json!([answer("textDocument/hover", hover(text))]))
}

#[test]
fn a_crash_while_ten_requests_are_pending_answers_them_all_and_the_server_comes_back() {
    let proxied = Proxied::new(&[(
        "crashes",
        hovering(json!([
            { "on": "textDocument/hover", "starts": 1, "then": "hang" },
            { "on": "textDocument/definition", "starts": 1, "then": "crash" },
            answer("textDocument/hover", hover("back again")),
        ])),
    )]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    editor.change(&uri, json!([{ "text": "changed = 1\n" }]));
    let ids: Vec<i64> = (0..10).map(|_| editor.send_request("textDocument/hover", at(&uri))).collect();
    proxied.wait_told("crashes", "textDocument/hover", 10);
    assert_eq!(editor.request("textDocument/definition", at(&uri)), Value::Null);
    for id in ids {
        assert_eq!(editor.response(id), Ok(Value::Null));
    }
    // The one that comes back is shown the document as it is now.
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover("back again"));
    let opened = proxied.told("crashes", "textDocument/didOpen");
    assert_eq!(opened.last().unwrap()["params"]["textDocument"]["text"], "changed = 1\n");
    assert_eq!(proxied.starts("crashes"), 2);
    editor.finish();
}

#[test]
fn a_server_that_never_answers_initialize_holds_up_nobody_and_the_person_is_told_once() {
    let mut proxied = Proxied::new(&[
        ("mute", hovering(json!([{ "on": "initialize", "then": "hang" }]))),
        ("good", good("from the good one")),
    ]);
    proxied.servers[0].health_check.max_restarts = 1;
    proxied.timing.start = Duration::from_secs(4);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover("from the good one"));
    let told = editor.expect_notification("window/showMessage", LONG);
    let message = told["message"].as_str().unwrap();
    assert!(message.starts_with("local/mute did not answer `initialize` within 4 s"), "{message}");
    assert_eq!(proxied.starts("mute"), 2);
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover("from the good one"));
    editor.finish();
}

// LSP-010: nobody needs to ask it something to find out.
#[test]
fn a_server_that_froze_while_nobody_asked_is_found_by_the_probe() {
    let mut proxied = Proxied::new(&[(
        "freezes",
        hovering(json!([
            { "on": "$/agents/probe", "nth": 2, "starts": 1, "then": "freeze" },
            answer("textDocument/hover", hover("back again")),
        ])),
    )]);
    proxied.timing.probe_interval = Some(Duration::from_millis(50));
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    proxied.wait_told("freezes", "initialize", 2);
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover("back again"));
    let opened = proxied.told("freezes", "textDocument/didOpen");
    assert_eq!(opened.len(), 2, "the one that came back is shown what is open: {opened:#?}");
    editor.finish();
}

#[test]
fn a_server_that_cannot_be_started_is_named_with_what_would_help() {
    let mut proxied = Proxied::new(&[("missing", good("never"))]);
    proxied.servers[0].command = "no-such-language-server".into();
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    assert_eq!(editor.request("textDocument/hover", at(&uri)), Value::Null);
    let message = editor.expect_notification("window/showMessage", LONG)["message"].to_string();
    assert!(message.contains("local/missing") && message.contains("is not on PATH"), "{message}");
    editor.finish();
}

#[test]
fn a_server_that_stops_reading_holds_up_neither_the_others_nor_the_end() {
    let proxied = Proxied::new(&[
        ("frozen", hovering(json!([{ "on": "textDocument/hover", "then": "freeze" }]))),
        ("good", good("alive")),
    ]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover("alive"));
    // More than a pipe takes.
    for n in 0..40 {
        editor.change(&uri, json!([{ "text": format!("x = {n}\n").repeat(2000) }]));
    }
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover("alive"));
    editor.finish();
}

#[test]
fn an_answer_of_ten_megabytes_passes_whole() {
    let text = "x".repeat(10 * 1024 * 1024);
    let proxied = Proxied::new(&[("big", good(&text))]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    let answer = editor.request("textDocument/hover", at(&uri));
    assert_eq!(answer["contents"]["value"].as_str().map(str::len), Some(text.len()));
    editor.finish();
}

#[test]
fn invalid_utf_8_ends_the_server_that_sent_it_and_it_is_started_again() {
    let proxied = Proxied::new(&[(
        "garbled",
        hovering(json!([
            { "on": "textDocument/hover", "starts": 1, "then": { "bytes": [123, 255, 125] } },
            answer("textDocument/hover", hover("clean")),
        ])),
    )]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    assert_eq!(editor.request("textDocument/hover", at(&uri)), Value::Null);
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover("clean"));
    assert_eq!(proxied.starts("garbled"), 2);
    editor.finish();
}

#[test]
fn a_cancelled_request_is_answered_at_once_and_the_late_answer_left_out() {
    let faults = json!([
        { "on": "textDocument/references", "then": "wait_for_cancel" }, answer("textDocument/definition", Value::Null),
    ]);
    let proxied = Proxied::new(&[("late", hovering(faults))]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    let id = editor.send_request("textDocument/references", at(&uri));
    let asked = proxied.wait_told("late", "textDocument/references", 1);
    editor.notify("$/cancelRequest", json!({ "id": id }));
    assert_eq!(editor.response(id).unwrap_err().0, -32800);
    let cancelled = proxied.wait_told("late", "$/cancelRequest", 1);
    assert_eq!(cancelled[0]["params"]["id"], asked[0]["id"]);
    // Its answer comes now; a second one to the client would fail the test.
    assert_eq!(editor.request("textDocument/definition", at(&uri)), Value::Null);
    editor.finish();
}

#[test]
fn a_cancelled_merged_request_is_cancelled_at_every_server() {
    let waits = || hovering(json!([{ "on": "textDocument/references", "then": "wait_for_cancel" }]));
    let proxied = Proxied::new(&[("one", waits()), ("two", waits())]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    let id = editor.send_request("textDocument/references", at(&uri));
    proxied.wait_told("one", "textDocument/references", 1);
    proxied.wait_told("two", "textDocument/references", 1);
    editor.notify("$/cancelRequest", json!({ "id": id }));
    assert_eq!(editor.response(id).unwrap_err().0, -32800);
    proxied.wait_told("one", "$/cancelRequest", 1);
    proxied.wait_told("two", "$/cancelRequest", 1);
    editor.finish();
}

#[test]
fn duplicate_answers_are_one() {
    let twice = json!({ "on": "textDocument/hover", "then": { "twice": hover("same") } });
    let proxied = Proxied::new(&[("double", hovering(json!([twice])))]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    for _ in 0..3 {
        assert_eq!(editor.request("textDocument/hover", at(&uri)), hover("same"));
    }
    editor.finish();
}

#[test]
fn a_slow_hover_is_left_out_and_slow_references_follow_as_a_piece() {
    let place = |name: &str| json!([{ "uri": format!("file:///{name}.py"), "range": {} }]);
    let slow = hovering(json!([
        { "on": "textDocument/hover", "then": { "delay": 3000 } }, answer("textDocument/hover", hover("too late")),
        { "on": "textDocument/references", "then": { "delay": 1500 } }, answer("textDocument/references", place("slow")),
    ]));
    let quick = hovering(json!([
        answer("textDocument/hover", hover("in time")),
        answer("textDocument/references", place("quick")),
    ]));
    let proxied = Proxied::new(&[("slow", slow), ("quick", quick)]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    proxied.wait_told("slow", "textDocument/didOpen", 1);
    proxied.wait_told("quick", "textDocument/didOpen", 1);
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover("in time"));
    // Without a token references are waited for, with one they come as they are found.
    let both = json!([place("slow")[0], place("quick")[0]]);
    assert_eq!(editor.request("textDocument/references", at(&uri)), both);
    let mut params = at(&uri);
    params["partialResultToken"] = "pieces".into();
    let id = editor.send_request("textDocument/references", params);
    for expected in ["quick", "slow"] {
        let progress = editor.expect_notification("$/progress", LONG);
        assert_eq!(progress, json!({ "token": "pieces", "value": place(expected) }));
    }
    assert_eq!(editor.response(id), Ok(json!([])));
    editor.finish();
}

/// A push of diagnostics as a message of a script.
fn push(uri: &str, version: i64, message: &str) -> Value {
    json!({ "method": "textDocument/publishDiagnostics", "params": {
        "uri": uri, "version": version, "diagnostics": [{ "range": {}, "message": message }],
    } })
}

#[test]
fn diagnostics_out_of_order_are_left_out_and_no_set_is_lost_to_a_late_server() {
    let mut proxied = Proxied::new(&[]);
    let uri = proxied.desk.uri("b.py");
    let send = |method: &str, message: Value| json!({ "on": method, "then": { "send": message } });
    proxied.add(
        "one",
        "python",
        script(
            json!({}),
            json!([
                send("textDocument/didOpen", push(&uri, 1, "one 1")),
                // Version 2 first, then what belongs to the text before.
                send("textDocument/didChange", push(&uri, 2, "one 2")),
                send("textDocument/didChange", push(&uri, 1, "one late")),
            ]),
        ),
    );
    proxied.add(
        "two",
        "python",
        script(json!({}), json!([send("textDocument/didOpen", push(&uri, 1, "two 1"))])),
    );
    let mut editor = proxied.editor(fixed());
    proxied.open(&mut editor, "b.py");
    let mut last = Vec::new();
    let mut until = |editor: &mut agents_lsp_server::testing::TestServer, wanted: &[&str]| {
        while last != wanted {
            let published = editor.expect_notification("textDocument/publishDiagnostics", LONG);
            let all = published["diagnostics"].as_array().unwrap().iter();
            last = all.map(|one| one["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
            assert!(!last.iter().any(|message| message.contains("late")), "{last:?}");
        }
    };
    until(&mut editor, &["one 1", "two 1"]);
    editor.change(&uri, json!([{ "text": "x = 1\n" }]));
    // The second server says nothing about version 2; what it said stays.
    until(&mut editor, &["one 2", "two 1"]);
    editor.finish();
}

#[test]
fn a_thousand_diagnostics_of_a_file_come_in_one_message() {
    let rules = json!([{ "match": "bad_\\d+", "message": "bad" }]);
    let proxied = Proxied::new(&[("many", json!({ "diagnostics": "push", "rules": rules }))]);
    let mut editor = proxied.editor(fixed());
    let text: String = (0..1000).map(|n| format!("bad_{n}\n")).collect();
    editor.open(&proxied.desk.uri("many.py"), "python", &text);
    let published = editor.expect_notification("textDocument/publishDiagnostics", LONG);
    assert_eq!(published["diagnostics"].as_array().map(Vec::len), Some(1000));
    editor.finish();
}

#[test]
fn requests_of_two_servers_with_the_same_id_get_each_their_own_answer() {
    let asks = |name: &str| {
        let mut script = hovering(json!([]));
        script["after_initialized"] = json!([
            { "id": 1, "method": "window/showMessageRequest", "params": { "type": 3, "message": name } },
            { "id": 2, "method": "workspace/configuration", "params": { "items": [{ "section": "a.b" }] } },
            { "id": 3, "method": "workspace/applyEdit", "params": { "edit": {} } },
            { "id": 4, "method": "workspace/workspaceFolders" },
        ]);
        script
    };
    let mut proxied = Proxied::new(&[("one", asks("one")), ("two", asks("two"))]);
    proxied.servers[0].workspace_settings = json!({ "a": { "b": { "registered": 1, "both": 1 } } });
    let mut capabilities = fixed();
    capabilities["workspace"] = json!({ "configuration": true });
    let mut editor = proxied.editor(capabilities);
    // Our own settings.
    let (id, _) = editor.expect_request("workspace/configuration", LONG);
    editor.respond(&id, &json!([null]));
    proxied.open(&mut editor, "a.py");
    for _ in 0..2 {
        let (id, params) = editor.expect_request("window/showMessageRequest", LONG);
        editor.respond(&id, &json!({ "title": format!("to {}", params["message"].as_str().unwrap()) }));
        let (id, _) = editor.expect_request("workspace/configuration", LONG);
        editor.respond(&id, &json!([{ "both": 2, "client": 2 }]));
    }
    for (name, settings) in [
        ("one", json!({ "registered": 1, "both": 2, "client": 2 })),
        ("two", json!({ "both": 2, "client": 2 })),
    ] {
        let answers = proxied.wait_answers(name, 4);
        let result = |id: i64| answers.iter().find(|answer| answer["id"] == id).unwrap()["result"].clone();
        assert_eq!(result(1), json!({ "title": format!("to {name}") }));
        assert_eq!(result(2), json!([settings]));
        // Nobody ran a command of its.
        assert_eq!(result(3)["applied"], false);
        assert_eq!(result(4)[0]["uri"], proxied.desk.uri(""));
    }
    editor.finish();
}
