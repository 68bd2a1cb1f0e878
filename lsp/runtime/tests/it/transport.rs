//! Traps of the wire: what servers print, send and expect besides answering.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use agents_domain::language_server::Transport;
use agents_domain::text::Range;
use serde_json::{Value, json};

use crate::harness::{World, ask, failure, found, messages, problem, script};

#[tokio::test(flavor = "multi_thread")]
async fn log_noise_on_the_output_and_content_type_headers_do_not_disturb() {
    let world = World::new(script(json!({
        "stdout_noise": "Loading plugins...\nnode: warning: \u{1b}[33mold\u{1b}[0m ",
        "content_type": true,
        "faults": [{"on": "textDocument/diagnostic", "then": {"noise": "debug: diagnosing\nContent-Length: soon\n"}}],
    })));
    world.write("a.py", "bad_x = 1\n");
    let workspace = world.open().await;
    assert_eq!(messages(&found(&workspace, "a.py").await), ["bad x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_bytes_whatever_the_server_counts() {
    for encoding in [json!("utf-8"), json!("utf-16"), json!("utf-32"), Value::Null] {
        let world = World::new(script(json!({ "encoding": encoding })));
        world.write("a.py", "\n'é😀漢'; bad_x = 1\r\n");
        let workspace = world.open().await;
        let diagnostics = found(&workspace, "a.py").await;
        assert_eq!(diagnostics[0].range, Range::new((1, 13), (1, 18)), "{encoding}");
        let offers = workspace.code_actions(&world.definition.name, "a.py", &diagnostics[0]).await.unwrap();
        let edits = offers[0].edits.as_ref().unwrap();
        let edits = serde_json::to_value(edits).unwrap();
        assert_eq!(edits[0]["edits"][0]["range"], json!(Range::new((1, 13), (1, 18))), "{encoding}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uris_with_everything_escaped_are_the_same_files() {
    for mode in ["push", "pull"] {
        let world = World::new(script(json!({"escape_uris": true, "diagnostics": mode})));
        world.write("a b/é#%20.py", "bad_x\n");
        let workspace = world.open().await;
        let diagnostics = found(&workspace, "a b/é#%20.py").await;
        assert_eq!(messages(&diagnostics), ["bad x"]);
        let offers =
            workspace.code_actions(&world.definition.name, "a b/é#%20.py", &diagnostics[0]).await.unwrap();
        assert_eq!(offers[0].edits.as_ref().unwrap()[0].path(), "a b/é#%20.py");
    }
}

// LSP-007
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_the_server_are_answered_even_before_its_initialize_answer() {
    let request =
        |id: &str, method: &str, params: Value| json!({"id": id, "method": method, "params": params});
    let mut world = World::new(script(json!({
        "before_initialize": [
            request("early", "workspace/configuration", json!({"items": [
                {"section": "fake.lint"}, {"section": "never.given"}, {"scopeUri": "file:///x"}, {},
            ]})),
            request("progress", "window/workDoneProgress/create", json!({"token": 1})),
            {"method": "window/logMessage", "params": {"type": 3, "message": "hello"}},
            {"method": "$/progress", "params": {"token": "never begun", "value": {"kind": "end"}}},
            {"method": "$/progress", "params": null},
        ],
        "after_initialized": [
            request("edit", "workspace/applyEdit", json!({"edit": {}})),
            request("message", "window/showMessageRequest", json!({"type": 1, "message": "?", "actions": []})),
            request("folders", "workspace/workspaceFolders", Value::Null),
            request("register", "client/registerCapability", json!({"registrations": [{"id": "1", "method": "textDocument/hover"}]})),
            request("unregister", "client/unregisterCapability", json!({"unregisterations": [{"id": "1", "method": "textDocument/hover"}]})),
            request("refresh", "workspace/semanticTokens/refresh", Value::Null),
            request("show", "window/showDocument", json!({"uri": "file:///x"})),
            request("odd", "agents/unheardOf", Value::Null),
        ],
    })));
    world.define(|definition| definition.workspace_settings = json!({"fake": {"lint": {"on": true}}}));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    let settings = &world.definition.workspace_settings;
    assert_eq!(world.answer_to("early")["result"], json!([{"on": true}, null, settings, settings]));
    for id in ["progress", "message", "register", "unregister", "refresh"] {
        assert_eq!(world.answer_to(id).get("result"), Some(&Value::Null), "{id}");
    }
    assert_eq!(world.answer_to("edit")["result"]["applied"], false);
    assert_eq!(world.answer_to("show")["result"]["success"], false);
    let folders = world.answer_to("folders");
    assert!(folders["result"][0]["uri"].as_str().unwrap().ends_with("/root"), "{folders}");
    assert_eq!(world.answer_to("odd")["error"]["code"], -32601);
    assert_eq!(world.got("workspace/didChangeConfiguration")[0]["params"]["settings"], *settings);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_requests_nobody_made_are_ignored() {
    let world = World::new(script(json!({ "unknown_answers": true })));
    world.write("a.py", "bad_x\n");
    assert_eq!(found(&world.open().await, "a.py").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_answer_harms_nobody_and_is_no_clean_bill() {
    let world = World::new(script(json!({"faults": [
        {"on": "initialize", "then": "null"}, {"on": "textDocument/codeAction", "then": "null"},
    ], "diagnostics": "push"})));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    let diagnostics = found(&workspace, "a.py").await;
    let offers = workspace.code_actions(&world.definition.name, "a.py", &diagnostics[0]).await;
    assert_eq!(offers, Ok(vec![]));

    let world = World::new(script(json!({"faults": [{"on": "textDocument/diagnostic", "then": "null"}]})));
    world.write("a.py", "bad_x\n");
    let problem = problem(&world.open().await, "a.py").await;
    assert!(problem.contains("without a report"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_on_the_error_output_block_nobody() {
    let world = World::new(script(json!({
        "stderr_bytes": 4_000_000,
        "faults": [{"on": "textDocument/diagnostic", "then": {"flood": 4_000_000}}],
    })));
    world.write("a.py", "bad_x\n");
    assert_eq!(found(&world.open().await, "a.py").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_to_a_cancelled_request_is_ignored() {
    let mut world = World::new(script(
        json!({"faults": [{"on": "textDocument/diagnostic", "nth": 1, "then": "wait_for_cancel"}]}),
    ));
    world.request_timeout = Duration::from_millis(300);
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    let problem = problem(&workspace, "a.py").await;
    assert!(problem.contains("gave no diagnostics within 0.3 s"), "{problem}");
    assert_eq!(world.got("$/cancelRequest").len(), 1);
    // The same server, lent with more patience.
    world.request_timeout = crate::harness::LONG;
    assert_eq!(found(&world.open().await, "a.py").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_longer_than_anybody_accepts_ends_the_connection_not_us() {
    let world = World::new(script(
        json!({"faults": [{"on": "textDocument/diagnostic", "starts": 1, "then": "huge_length"}]}),
    ));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    assert_eq!(workspace.servers()[0].restarts, 1);
}

// LSP-005
#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_over_loopback_tcp() {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut world = World::new(script(json!({ "port": port })));
    world.define(|definition| definition.transport = Transport::Tcp { host: "localhost".into(), port });
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    workspace.close().await;
    crate::harness::wait_until_gone(&world.starts()[0]["pid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tcp_address_that_cannot_be_right_is_refused_before_anything_runs() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    for (host, port, why) in [
        ("example.com", 80, "must be a loopback address"),
        ("10.0.0.1", 80, "only reached over the loopback interface"),
        ("127.0.0.1", 0, "`transport.port` is 0"),
        ("127.0.0.1", port, "another program already listens on"),
    ] {
        let mut world = World::new(script(json!({})));
        world.define(|definition| definition.transport = Transport::Tcp { host: host.into(), port });
        world.write("a.py", "bad_x\n");
        let workspace = world.open().await;
        let problem = problem(&workspace, "a.py").await;
        assert!(problem.contains(why), "{problem}");
        assert_eq!(failure(&workspace), problem);
        assert_eq!(world.starts().len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tcp_server_that_never_listens_is_given_up_in_time() {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut world = World::new(script(json!({})));
    world.start_timeout = Duration::from_millis(300);
    world.define(|definition| definition.transport = Transport::Tcp { host: "127.0.0.1".into(), port });
    world.write("a.py", "bad_x\n");
    let begun = Instant::now();
    let answer = ask(&world.open().await, "a.py").await;
    assert!(answer.problem.unwrap().contains("nothing listened on"));
    assert!(begun.elapsed() < Duration::from_secs(10));
}
