//! Frames at and past the limits, and what is no protocol at all.

use agents_lsp_server::testing::TestServer;
use agents_lsp_server::{ExitStatus, Limits};
use serde_json::{Value, json};

use crate::support::{SOON, app, fresh, running, running_with};

const LIMIT: usize = 10 * 1024 * 1024;

/// A request whose body is exactly `length` bytes.
fn request_of(length: usize, id: i64) -> Vec<u8> {
    let empty = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"test/session","filler":""}}"#);
    empty.replace("\"\"", &format!("\"{}\"", "x".repeat(length - empty.len()))).into_bytes()
}

// LSPCLI-019, LSP-037
#[test]
fn a_body_at_the_limit_is_answered_and_one_byte_more_is_skipped() {
    let mut server = running();
    let body = request_of(LIMIT, 900);
    assert_eq!(body.len(), LIMIT);
    server.send_body(&body);
    assert!(server.response(900).is_ok());
    server.send_body(&request_of(LIMIT + 1, 901));
    // The connection goes on, and request 901 is never answered: `finish` would find it.
    server.request("test/session", Value::Null);
    server.finish();
}

// LSPCLI-020, LSP-037
#[test]
fn thirty_two_header_lines_are_answered_and_thirty_three_skipped() {
    let mut server = running();
    for (lines, id) in [(32, 900), (33, 901)] {
        let body = request_of(200, id);
        let head = format!("{}Content-Length: {}\r\n\r\n", "X-Filler: x\r\n".repeat(lines - 1), body.len());
        server.send_bytes(&[head.into_bytes(), body].concat());
    }
    assert!(server.response(900).is_ok());
    server.request("test/session", Value::Null);
    server.finish();
}

// LSPCLI-013, LSP-038
#[test]
fn a_message_may_come_in_any_cuts() {
    let mut server = running();
    let body = request_of(300, 900);
    let frame = [
        format!("content-length: {}\r\nContent-Type: a/b; charset=utf8\r\n\r\n", body.len()).into_bytes(),
        body,
    ]
    .concat();
    for byte in frame {
        server.send_bytes(&[byte]);
    }
    assert!(server.response(900).is_ok());
}

#[test]
fn garbage_is_answered_with_a_parse_error_and_the_connection_closed() {
    for garbage in
        ["GET / HTTP/1.1\r\n\r\n", "garbage", "Content-Length: x\r\n\r\n", "Content-Length: 5\r\n\r\n{}"]
    {
        for mut server in [fresh(), running()] {
            server.send_bytes(garbage.as_bytes());
            server.hang_up();
            assert_eq!(server.response(Value::Null).unwrap_err().0, -32700, "{garbage:?}");
            assert_eq!(server.status(), ExitStatus::Failure);
        }
    }
}

#[test]
fn bodies_that_are_no_message_are_refused_and_the_connection_goes_on() {
    let mut server = running();
    for (body, code) in [
        ("", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,", -32700),
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test/session\"} {}", -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"test/session"}]"#, -32600),
        ("42", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"test/session"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"test/session"}"#, -32600),
        (r#"{"jsonrpc":"2.0"}"#, -32600),
    ] {
        server.send_body(body.as_bytes());
        assert_eq!(server.response(Value::Null).unwrap_err().0, code, "{body}");
    }
    server.send_body(br#"{"id":"here","method":"test/session"}"#);
    assert_eq!(server.response("here").unwrap_err().0, -32600);
    server.send_body(b"\xff\xfe");
    assert_eq!(server.response(Value::Null).unwrap_err().0, -32700);
    server.request("test/session", Value::Null);
}

#[test]
fn nesting_without_end_is_refused() {
    let mut server = running();
    let bomb = [br#"{"jsonrpc":"2.0","id":1,"method":"test/note","params":"#.to_vec(), vec![b'['; 1_000_000]]
        .concat();
    server.send_body(&bomb);
    assert_eq!(server.response(Value::Null).unwrap_err().0, -32700);
}

#[test]
fn a_client_that_stops_reading_is_failed_and_nothing_hangs() {
    let limits = Limits { queued_messages: 500, ..Limits::default() };
    let mut server = TestServer::builder().deaf().limits(limits).start(app);
    let params = server.initialize_params(json!({}));
    server.send_request("initialize", params);
    // 500 messages of 1 kB are far more than the pipe and the queue take.
    server.send_request("test/flood", json!({ "count": 5000 }));
    assert_eq!(server.status(), ExitStatus::Failure);
}

#[test]
fn a_client_that_reads_gets_everything_that_fits_the_limits() {
    let limits = Limits { queued_bytes: 2_000_000, ..Limits::default() };
    let mut server = running_with(TestServer::builder().limits(limits), json!({}));
    server.request("test/flood", json!({ "count": 1000 }));
    for n in 0..1000 {
        assert_eq!(server.expect_notification("test/drop", SOON)["n"], n);
    }
}

#[test]
fn more_requests_than_the_limit_are_refused_until_one_is_answered() {
    let mut server =
        running_with(TestServer::builder().limits(Limits { in_flight: 2, ..Limits::default() }), json!({}));
    let hanging =
        [server.send_request("test/hang", Value::Null), server.send_request("test/hang", Value::Null)];
    assert_eq!(server.request_error("test/session", Value::Null).0, -32803);
    for id in hanging {
        server.expect_notification("test/started", SOON);
        server.notify("$/cancelRequest", json!({ "id": id }));
        assert_eq!(server.response(id).unwrap_err().0, -32800);
    }
    server.request("test/session", Value::Null);
}
