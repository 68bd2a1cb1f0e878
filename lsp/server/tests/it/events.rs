//! What other processes do is seen: events, refreshes, progress and messages.

use std::time::{Duration, Instant};

use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::desk::{Desk, capable, edit, fix, place, question};
use crate::support::SOON;

fn two() -> Desk {
    Desk::new(&[("a.txt", "one\ntwo\nthree\n")], fix(&[edit("1", "impl/x", "a.txt", 1, 2, "TWO\n")]))
}

fn event(server: &mut TestServer, wanted: &str) -> Value {
    loop {
        let event = server.expect_notification("agents/event", SOON);
        if event["event_type"] == wanted {
            return event;
        }
    }
}

fn subscribe(server: &mut TestServer, params: Value) -> i64 {
    let answer = server.request("agents/subscribe", params);
    assert_eq!(answer["protocol"], 1);
    answer["sequence"].as_i64().unwrap()
}

#[test]
fn what_another_process_does_is_seen_at_once() {
    let desk = Desk::new(&[("a.txt", "one\n")], question(&[place("a.txt", 0, 0, 3, None)]));
    let plan = desk.plan("cautious");
    let mut server = desk.editor(json!({}));
    server.expect_notification("textDocument/publishDiagnostics", SOON);
    subscribe(&mut server, json!({}));
    let other = desk.other();
    other.call_json("plan/prompt", json!({ "plan": plan, "guidance": "1" })).unwrap();
    let committed = Instant::now();
    let seen = event(&mut server, "decision.superseded");
    let after = committed.elapsed();
    assert_eq!(seen["plan_id"], plan.as_str());
    assert_eq!(server.expect_notification("textDocument/publishDiagnostics", SOON)["diagnostics"], json!([]));
    println!("an event was seen after {after:?}, its diagnostics after {:?}", committed.elapsed());
    assert!(after < Duration::from_secs(1), "{after:?}");
    server.allow("agents/event");
}

#[test]
fn a_subscription_begins_where_it_says_and_misses_nothing() {
    let desk = two();
    let first = desk.plan("trusted");
    let mut server = desk.editor(json!({}));
    let all = desk.ok("events/after", json!({ "sequence": 0 }))["events"].as_array().unwrap().clone();
    assert_eq!(subscribe(&mut server, json!({ "sequence": 0 })), 0);
    for known in &all {
        assert_eq!(&server.expect_notification("agents/event", SOON), known);
    }
    // From now on, of the second plan only.
    let second = desk.queued("trusted");
    assert_eq!(event(&mut server, "plan.created")["plan_id"], second.as_str());
    event(&mut server, "decision.created");
    subscribe(&mut server, json!({ "plan": second }));
    desk.ok("plan/cancel", json!({ "plan": first }));
    desk.ok("plan/cancel", json!({ "plan": second }));
    assert_eq!(event(&mut server, "plan.cancelled")["plan_id"], second.as_str());
    server.request("agents/unsubscribe", json!({}));
    desk.queued("trusted");
    assert_eq!(server.request_error("agents/subscribe", json!({ "plan": "no id" })).0, -32602);
    assert_eq!(server.request_error("agents/subscribe", json!({ "colour": 1 })).0, -32602);
}

#[test]
fn a_client_that_can_be_asked_to_refresh_is_when_a_plan_changes_its_lines() {
    let desk = two();
    let mut capabilities = capable();
    capabilities["window"] = Value::Null;
    let mut server = desk.editor(capabilities);
    let uri = desk.open(&mut server, "a.txt");
    let lens = |server: &mut TestServer| {
        server.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }))
    };
    assert_eq!(lens(&mut server), json!([]));
    let plan = desk.plan("trusted");
    // One of a kind is unanswered at a time, however much happens.
    let (id, _) = server.expect_request("workspace/codeLens/refresh", SOON);
    server.respond(&id, &Value::Null);
    for method in
        ["workspace/codeLens/refresh", "workspace/inlayHint/refresh", "workspace/diagnostic/refresh"]
    {
        server.allow(method);
    }
    let deadline = Instant::now() + SOON;
    while lens(&mut server).as_array().unwrap().len() < 4 {
        assert!(Instant::now() < deadline, "the lenses of plan {plan} never came");
    }
    server.expect_request("workspace/inlayHint/refresh", SOON);
}

#[test]
fn each_phase_a_worker_is_at_is_a_progress() {
    let desk =
        Desk::gated(&[("a.txt", "one\ntwo\nthree\n")], fix(&[edit("1", "impl/x", "a.txt", 1, 2, "TWO\n")]));
    let plan = desk.queued("trusted");
    let mut server = desk.editor(json!({ "window": { "workDoneProgress": true } }));
    let begin = |server: &mut TestServer, phase: &str| {
        let (id, params) = server.expect_request("window/workDoneProgress/create", SOON);
        server.respond(&id, &Value::Null);
        let begun = server.expect_notification("$/progress", SOON);
        assert_eq!(begun["token"], params["token"]);
        let title = format!("local/act: {phase}");
        assert_eq!(begun["value"], json!({ "kind": "begin", "title": title, "cancellable": false }));
        params["token"].clone()
    };
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| desk.work(&plan));
        let token = begin(&mut server, "strategize");
        desk.gate.add_permits(2);
        let ended = server.expect_notification("$/progress", SOON);
        assert_eq!((&ended["token"], &ended["value"]["kind"]), (&token, &json!("end")));

        let token = begin(&mut server, "execute");
        desk.gate.add_permits(1);
        let reported = server.expect_notification("$/progress", SOON);
        assert_eq!(reported["token"], token);
        assert_eq!(
            (&reported["value"]["message"], &reported["value"]["percentage"]),
            (&json!("fixing"), &json!(25))
        );
        desk.gate.add_permits(1);
        let ended = server.expect_notification("$/progress", SOON);
        assert_eq!(ended["value"]["kind"], "end");
        assert!(ended["value"]["message"].as_str().unwrap().starts_with("waits: "), "{ended}");
        worker.join().unwrap();
    });
}

#[test]
fn a_person_hears_when_a_plan_waits_and_when_it_ends_unless_they_do_not_want_to() {
    let desk = two();
    let options = |notifications: bool| {
        TestServer::builder().options(json!({ "cleveragents": { "notifications": notifications } }))
    };
    let mut server = desk.editor_with(options(true), json!({}));
    let mut silent = desk.editor_with(options(false), json!({}));
    subscribe(&mut silent, json!({}));
    let plan = desk.plan("trusted");
    let short = &plan[..8];
    let heard = server.expect_notification("window/showMessage", SOON);
    assert_eq!(heard["type"], 3);
    let message = heard["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("Plan {short} (local/act) waits for you: ")), "{message}");
    desk.apply(&plan);
    let heard = server.expect_notification("window/showMessage", SOON);
    assert_eq!(heard["message"], format!("Plan {short} (local/act) was applied"));
    event(&mut silent, "plan.applied");
    silent.allow("agents/event");
}

#[test]
fn settings_are_asked_for_where_the_client_answers() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server =
        desk.editor_with(TestServer::builder(), json!({ "workspace": { "configuration": true } }));
    let (id, params) = server.expect_request("workspace/configuration", SOON);
    assert_eq!(params, json!({ "items": [{ "section": "cleveragents" }] }));
    server.respond(&id, &json!([{ "notifications": false, "inlayHints": false }]));
    let uri = desk.open(&mut server, "a.txt");
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9, "character": 0 } });
    let hints = json!({ "textDocument": { "uri": uri }, "range": range });
    let deadline = Instant::now() + SOON;
    while server.request("textDocument/inlayHint", hints.clone()) != Value::Null {
        assert!(Instant::now() < deadline);
    }
    // No message comes of it.
    desk.ok("plan/cancel", json!({ "plan": plan }));
}

#[test]
fn plans_without_a_worker_get_one() {
    let desk = two();
    let plan = desk.queued("trusted");
    let options = agents_lsp_server::EditorOptions::default();
    let before = desk.started().len();
    let mut server = TestServer::start(agents_lsp_server::editor(desk.engine.clone(), options));
    server.initialize(json!({}));
    let deadline = Instant::now() + SOON;
    while desk.started().len() == before {
        assert!(Instant::now() < deadline, "no worker was started");
        std::thread::yield_now();
    }
    assert_eq!(desk.started().last().unwrap().to_string(), plan);
}
