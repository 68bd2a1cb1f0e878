//! From `initialize` to `exit`.

use agents_lsp_server::testing::TestServer;
use agents_lsp_server::{App, ExitStatus};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::lsp_types::{InitializeParams, InitializeResult};
use tower_lsp::{LanguageServer, LspService};

use crate::support::{SOON, app, fresh, running, running_with};

// LSPCLI-015, LSP-037
#[test]
fn requests_before_initialize_are_refused_and_initialize_still_works() {
    let mut server = fresh();
    for method in ["textDocument/hover", "shutdown", "$/unknown"] {
        assert_eq!(server.request_error(method, json!({})).0, -32002, "{method}");
    }
    server.notify("textDocument/didOpen", json!({ "textDocument": { "uri": "file:///a", "text": "early" } }));
    server.initialize(json!({}));
    assert_eq!(server.request("test/text", json!({ "uri": "file:///a" })), Value::Null);
}

// LSPCLI-018, LSP-037
#[test]
fn a_second_initialize_is_refused_and_changes_nothing() {
    let mut server =
        running_with(TestServer::builder(), json!({ "general": { "positionEncodings": ["utf-8"] } }));
    assert_eq!(server.request_error("initialize", json!({ "capabilities": {} })).0, -32600);
    assert_eq!(server.request("test/session", Value::Null)["encoding"], "utf-8");
}

// LSPCLI-017, LSP-037
#[test]
fn after_shutdown_only_exit_is_accepted() {
    let mut server = running();
    assert_eq!(server.request("shutdown", Value::Null), Value::Null);
    for method in ["textDocument/hover", "initialize", "shutdown"] {
        assert_eq!(server.request_error(method, json!({})).0, -32600, "{method}");
    }
    server.notify("textDocument/didOpen", json!({}));
    server.notify("exit", Value::Null);
    assert_eq!(server.status(), ExitStatus::Success);
}

#[test]
fn shutdown_is_accepted_with_null_parameters() {
    let mut server = running();
    server.send_body(br#"{"jsonrpc":"2.0","id":"bye","method":"shutdown","params":null}"#);
    assert_eq!(server.response("bye"), Ok(Value::Null));
    server.notify("exit", Value::Null);
    assert_eq!(server.status(), ExitStatus::Success);
}

// LSPCLI-014
#[test]
fn exit_without_shutdown_is_a_failure_at_any_time() {
    let mut server = fresh();
    server.notify("exit", Value::Null);
    assert_eq!(server.status(), ExitStatus::Failure);
    let mut server = running();
    server.notify("exit", Value::Null);
    assert_eq!(server.status(), ExitStatus::Failure);
    assert_eq!((ExitStatus::Success.code(), ExitStatus::Failure.code()), (0, 1));
}

#[test]
fn the_end_of_the_stream_is_a_success_only_after_shutdown() {
    let mut server = running();
    server.request("shutdown", Value::Null);
    server.hang_up();
    assert_eq!(server.status(), ExitStatus::Success);
    for mut server in [fresh(), running()] {
        server.hang_up();
        assert_eq!(server.status(), ExitStatus::Failure);
    }
}

#[test]
fn a_client_that_sends_a_whole_session_at_once_gets_all_answers() {
    let mut server = fresh();
    let params = server.initialize_params(json!({}));
    let first = server.send_request("initialize", params);
    server.notify("initialized", json!({}));
    server.open("file:///a", "python", "x");
    let text = server.send_request("test/text", json!({ "uri": "file:///a" }));
    assert_eq!(server.response(text).unwrap()["text"], "x");
    let last = server.send_request("shutdown", Value::Null);
    server.notify("exit", Value::Null);
    server.hang_up();
    assert!(server.response(first).is_ok());
    assert_eq!(server.response(last), Ok(Value::Null));
    assert_eq!(server.status(), ExitStatus::Success);
}

// LSPCLI-016
#[test]
fn unknown_methods_are_refused_as_requests_and_ignored_as_notifications() {
    let mut server = running();
    for method in ["unknown/method", "$/unknown", "textDocument/rename", "agents/nothing"] {
        server.notify(method, json!({}));
    }
    for method in ["unknown/method", "$/unknown", "agents/nothing"] {
        assert_eq!(server.request_error(method, json!({})).0, -32601, "{method}");
    }
    // Known to the protocol, not implemented here.
    let position =
        json!({ "textDocument": { "uri": "file:///a" }, "position": { "line": 0, "character": 0 } });
    assert_eq!(server.request_error("textDocument/definition", position).0, -32601);
}

#[test]
fn the_answer_to_initialize_merges_typed_raw_and_the_fronts_own_capabilities() {
    let mut server = fresh();
    let result = server.initialize(json!({}));
    let capabilities = &result["capabilities"];
    assert_eq!(capabilities["hoverProvider"], true);
    assert_eq!(capabilities["diagnosticProvider"]["workspaceDiagnostics"], false);
    assert_eq!(capabilities["positionEncoding"], "utf-16");
    let sync = json!({ "openClose": true, "change": 2, "save": { "includeText": false } });
    assert_eq!(capabilities["textDocumentSync"], sync);
    assert_eq!(capabilities["workspace"]["workspaceFolders"]["changeNotifications"], true);
    assert_eq!(result["serverInfo"]["name"], "agents");
}

#[test]
fn the_session_knows_what_the_client_said() {
    let builder =
        TestServer::builder().folder("file:///w/a").folder("file:///w/b").options(json!({ "x": 1 }));
    let capabilities = json!({ "workspace": { "codeLens": { "refreshSupport": true } } });
    let mut server = running_with(builder, capabilities);
    let expected = json!({
        "client": "test", "encoding": "utf-16", "folders": ["file:///w/a", "file:///w/b"], "options": { "x": 1 }, "lens": true,
    });
    assert_eq!(server.request("test/session", Value::Null), expected);
    let event = json!({ "added": [{ "uri": "file:///w/c", "name": "c" }], "removed": [{ "uri": "file:///w/a", "name": "a" }] });
    server.notify("workspace/didChangeWorkspaceFolders", json!({ "event": event }));
    server.expect_notification("test/folders", SOON);
    assert_eq!(server.request("test/session", Value::Null)["folders"], json!(["file:///w/b", "file:///w/c"]));
}

#[test]
fn capabilities_that_no_type_knows_do_not_fail_initialize() {
    let mut server = fresh();
    let odd = json!({ "textDocument": { "hover": 3, "future": [1] }, "workspace": "none", "general": { "positionEncodings": "x" } });
    assert_eq!(server.initialize(odd)["capabilities"]["positionEncoding"], "utf-16");
}

#[test]
fn initialize_without_an_object_is_refused_and_may_be_repeated() {
    let mut server = fresh();
    assert_eq!(server.request_error("initialize", json!([])).0, -32602);
    assert_eq!(server.request_error("initialize", Value::Null).0, -32602);
    server.initialize(json!({}));
}

#[test]
fn an_application_that_panics_while_it_starts_answers_and_ends_the_session() {
    let mut server = TestServer::start(|_, _| panic!("as told"));
    assert_eq!(server.request_error("initialize", json!({ "capabilities": {} })).0, -32603);
    assert_eq!(server.status(), ExitStatus::Failure);
}

struct Refusing;

#[tower_lsp::async_trait]
impl LanguageServer for Refusing {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        Err(Error::invalid_params("the database is newer than this program"))
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_backend_may_refuse_to_start() {
    let mut server = TestServer::start(|_, _| App::new(Value::Null, LspService::build(|_| Refusing)));
    let (_, message) = server.request_error("initialize", json!({ "capabilities": {} }));
    assert_eq!(message, "the database is newer than this program");
    assert_eq!(server.status(), ExitStatus::Failure);
}

#[test]
fn nothing_overtakes_the_answer_to_initialize() {
    let mut server = TestServer::start(|client, session| {
        client.notify_raw("test/early", json!({}));
        app(client, session)
    });
    let params = server.initialize_params(json!({}));
    // Byte level: the first message is the answer.
    let id = server.send_request("initialize", params);
    let first = server.next_message();
    assert_eq!(first["id"], id);
    assert!(first["result"].is_object());
    assert_eq!(server.next_message(), json!({ "jsonrpc": "2.0", "method": "test/early", "params": {} }));
}
