//! Requests at work: cancellation, panics, ids, order.

use serde_json::{Value, json};

use crate::support::{SOON, running};

#[test]
fn a_cancelled_request_is_answered_with_request_cancelled() {
    let mut server = running();
    let id = server.send_request("test/hang", Value::Null);
    server.expect_notification("test/started", SOON);
    server.notify("$/cancelRequest", json!({ "id": id }));
    assert_eq!(server.response(id).unwrap_err().0, -32800);
    // Again, and for what never was: no answer, no harm.
    server.notify("$/cancelRequest", json!({ "id": id }));
    server.notify("$/cancelRequest", json!({ "id": "never" }));
    server.notify("$/cancelRequest", json!({ "id": [1] }));
    server.notify("$/cancelRequest", Value::Null);
    server.request("test/session", Value::Null);
}

#[test]
fn a_cancel_finds_string_ids_in_any_spelling() {
    let mut server = running();
    server.send_body(br#"{"jsonrpc":"2.0","id":"h\u00e4ng","method":"test/hang"}"#);
    server.expect_notification("test/started", SOON);
    server.notify("$/cancelRequest", json!({ "id": "häng" }));
    assert_eq!(server.response("häng").unwrap_err().0, -32800);
}

#[test]
fn a_cancel_reaches_its_request_while_many_others_wait() {
    let mut server = running();
    let ids: Vec<i64> = (0..500).map(|_| server.send_request("test/hang", Value::Null)).collect();
    for id in ids.iter().rev() {
        server.notify("$/cancelRequest", json!({ "id": id }));
        assert_eq!(server.response(*id).unwrap_err().0, -32800);
    }
    // How many had started before their cancel came is open.
    server.forget("test/started");
}

#[test]
fn a_handler_that_panics_is_an_internal_error_and_the_server_goes_on() {
    let mut server = running();
    let (code, message) = server.request_error("test/panic", Value::Null);
    assert_eq!(code, -32603);
    assert!(message.contains("test/panic"), "{message}");
    server.notify("test/panicNote", Value::Null);
    server.notify("test/note", json!({ "n": 1 }));
    assert_eq!(server.expect_notification("test/noted", SOON)["n"], 1);
}

#[test]
fn parameters_of_the_wrong_shape_are_invalid_params() {
    let mut server = running();
    let (code, message) = server.request_error("textDocument/hover", json!({ "textDocument": 3 }));
    assert_eq!(code, -32602, "{message}");
    assert_eq!(server.request_error("textDocument/hover", Value::Null).0, -32602);
    let (code, message) = server.request_error("workspace/executeCommand", json!({ "command": "x" }));
    assert_eq!((code, message.as_str()), (-32602, "no such command"));
}

#[test]
fn an_id_in_use_is_refused_and_ids_of_other_types_are_others() {
    let mut server = running();
    for id in ["7", "\"7\""] {
        server.send_body(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"test/hang"}}"#).as_bytes());
        server.expect_notification("test/started", SOON);
    }
    server.send_body(br#"{"jsonrpc":"2.0","id":7,"method":"test/session"}"#);
    assert_eq!(server.response(7).unwrap_err().0, -32600);
    for id in [json!(7), json!("7")] {
        server.notify("$/cancelRequest", json!({ "id": id }));
        assert_eq!(server.response(id).unwrap_err().0, -32800);
    }
    server.send_body(br#"{"jsonrpc":"2.0","id":7,"method":"test/session"}"#);
    assert!(server.response(7).is_ok());
}

#[test]
fn an_integer_id_of_any_size_is_echoed_as_it_came() {
    let mut server = running();
    for id in ["-1", "0", "9007199254740993", "18446744073709551615"] {
        server.send_body(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"test/session"}}"#).as_bytes());
        let id: Value = serde_json::from_str(id).unwrap();
        assert!(server.response(id).is_ok());
    }
}

#[test]
fn handlers_see_notifications_in_the_clients_order() {
    let mut server = running();
    // Earlier ones take longer.
    for n in 0..100 {
        server.notify("test/note", json!({ "n": n, "yields": 100 - n }));
    }
    for n in 0..100 {
        assert_eq!(server.expect_notification("test/noted", SOON)["n"], n);
    }
}

#[test]
fn a_request_sees_the_documents_as_they_were_when_it_arrived() {
    let mut server = running();
    server.open("file:///a", "python", "old");
    let id = server.send_request("test/textLater", json!({ "uri": "file:///a" }));
    server.expect_notification("test/started", SOON);
    server.change("file:///a", json!([{ "text": "new" }]));
    assert_eq!(server.request("test/text", json!({ "uri": "file:///a" }))["text"], "new");
    server.notify("test/release", Value::Null);
    assert_eq!(server.response(id).unwrap()["text"], "old");
}

#[test]
fn a_slow_handler_holds_up_no_other() {
    let mut server = running();
    let hanging: Vec<i64> = (0..50).map(|_| server.send_request("test/hang", Value::Null)).collect();
    server.request("test/session", Value::Null);
    for id in &hanging {
        server.expect_notification("test/started", SOON);
        server.notify("$/cancelRequest", json!({ "id": id }));
    }
    for id in hanging {
        assert_eq!(server.response(id).unwrap_err().0, -32800);
    }
}

#[test]
fn a_notification_handler_that_never_ends_holds_up_no_request_and_no_edit() {
    let mut server = running();
    server.notify("test/hangNote", Value::Null);
    // More than are queued behind it.
    for n in 0..5000 {
        server.notify("test/note", json!({ "n": n }));
    }
    server.open("file:///a", "x", "still here");
    assert_eq!(server.request("test/text", json!({ "uri": "file:///a" }))["text"], "still here");
}
