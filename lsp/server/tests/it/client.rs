//! What the server asks of its client.

use std::sync::mpsc;

use agents_lsp_server::testing::TestServer;
use agents_lsp_server::{ClientError, ClientHandle, SessionHandle};
use serde_json::{Value, json};
use tower_lsp::lsp_types::notification::PublishDiagnostics;
use tower_lsp::lsp_types::request::{CodeLensRefresh, ShowMessageRequest};
use tower_lsp::lsp_types::{
    MessageActionItem, MessageType, PublishDiagnosticsParams, ShowMessageRequestParams, Url,
};

use crate::support::{SOON, app, running};

/// A running server and the handles its application got.
fn with_handles() -> (TestServer, ClientHandle, SessionHandle) {
    let (sender, handles) = mpsc::channel();
    let mut server = TestServer::start(move |client, session| {
        sender.send((client.clone(), session.clone())).unwrap();
        app(client, session)
    });
    server.initialize(json!({}));
    let (client, session) = handles.recv_timeout(SOON).unwrap();
    (server, client, session)
}

/// Waits for a reply outside of any runtime.
fn wait<T>(reply: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(reply)
}

#[test]
fn a_typed_request_is_sent_at_once_and_answered_later() {
    let (mut server, client, _) = with_handles();
    let actions = ["Yes", "No"]
        .map(|title| MessageActionItem { title: title.to_owned(), properties: Default::default() });
    let reply = client.request::<ShowMessageRequest>(ShowMessageRequestParams {
        typ: MessageType::INFO,
        message: "Apply?".to_owned(),
        actions: Some(actions.to_vec()),
    });
    let (id, params) = server.expect_request("window/showMessageRequest", SOON);
    assert_eq!(params["actions"][1]["title"], "No");
    server.respond(&id, &json!({ "title": "No" }));
    assert_eq!(wait(reply).unwrap().unwrap().title, "No");
}

#[test]
fn answers_find_their_requests_in_any_order() {
    let (mut server, client, _) = with_handles();
    let replies: Vec<_> = (0..20).map(|n| client.request_raw::<i64>("test/ask", json!({ "n": n }))).collect();
    let mut asked: Vec<_> = (0..20).map(|_| server.expect_request("test/ask", SOON)).collect();
    asked.reverse();
    for (id, params) in asked {
        server.respond(&id, &params["n"]);
    }
    for (n, reply) in replies.into_iter().enumerate() {
        assert_eq!(wait(reply), Ok(n as i64));
    }
}

#[test]
fn parameters_of_nothing_are_left_out() {
    let (mut server, client, _) = with_handles();
    let reply = client.request::<CodeLensRefresh>(());
    let (id, params) = server.expect_request("workspace/codeLens/refresh", SOON);
    assert_eq!(params, Value::Null);
    server.respond(&id, &Value::Null);
    assert_eq!(wait(reply), Ok(()));
}

#[test]
fn a_refusal_and_a_wrong_shape_are_told_apart() {
    let (mut server, client, _) = with_handles();
    let reply = client.request_raw::<i64>("test/ask", json!({}));
    let (id, _) = server.expect_request("test/ask", SOON);
    server.respond_error(&id, -32601, "what?");
    let refused = ClientError::Refused { code: -32601, message: "what?".to_owned(), data: None };
    assert_eq!(wait(reply), Err(refused));
    let reply = client.request_raw::<i64>("test/ask", json!({}));
    let (id, _) = server.expect_request("test/ask", SOON);
    server.respond(&id, &json!("seven"));
    assert!(matches!(wait(reply), Err(ClientError::Shape(_))));
}

#[test]
fn answers_nobody_waits_for_are_taken_and_forgotten() {
    let (mut server, client, _) = with_handles();
    drop(client.request_raw::<Value>("test/ask", json!({})));
    let (id, _) = server.expect_request("test/ask", SOON);
    server.respond(&id, &Value::Null);
    server.respond(&id, &Value::Null);
    server.respond(&json!("never asked"), &Value::Null);
    server.respond(&json!(-5), &Value::Null);
    server.request("test/session", Value::Null);
}

#[test]
fn the_end_of_the_session_ends_every_wait() {
    let (mut server, client, _) = with_handles();
    let reply = client.request_raw::<Value>("test/ask", json!({}));
    server.expect_request("test/ask", SOON);
    server.request("shutdown", Value::Null);
    server.notify("exit", Value::Null);
    server.status();
    assert_eq!(wait(reply), Err(ClientError::Gone));
    assert_eq!(wait(client.request_raw::<Value>("test/ask", json!({}))), Err(ClientError::Gone));
}

#[test]
fn a_handler_may_wait_for_the_client_without_holding_up_the_rest() {
    let mut server = running();
    let asking = server
        .send_request("test/ask", json!({ "method": "workspace/configuration", "params": { "items": [] } }));
    let (id, _) = server.expect_request("workspace/configuration", SOON);
    server.request("test/session", Value::Null);
    server.respond(&id, &json!([1]));
    assert_eq!(server.response(asking).unwrap(), json!({ "value": [1] }));
}

#[test]
fn typed_notifications_are_sent_from_anywhere() {
    let (mut server, client, _) = with_handles();
    let uri = Url::parse("file:///a").unwrap();
    client.notify::<PublishDiagnostics>(PublishDiagnosticsParams::new(uri, Vec::new(), Some(3)));
    assert_eq!(server.expect_notification("textDocument/publishDiagnostics", SOON)["version"], 3);
}

#[test]
fn a_background_task_is_woken_by_changes_of_documents() {
    let (mut server, client, session) = with_handles();
    let mut changes = session.changes();
    let seen = *changes.borrow_and_update();
    let task = std::thread::spawn(move || {
        wait(changes.changed()).unwrap();
        client.notify_raw("test/woken", json!({ "later": *changes.borrow() > seen }));
    });
    server.open("file:///a", "x", "x");
    assert_eq!(server.expect_notification("test/woken", SOON), json!({ "later": true }));
    task.join().unwrap();
}
