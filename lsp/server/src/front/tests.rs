//! What the front writes into the log, on a reader that runs in the test's own thread.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tower_lsp::LspService;
use tower_lsp::jsonrpc::Result;
use tower_lsp::lsp_types::{InitializeParams, InitializeResult};

use super::framing::MAX_BODY_BYTES;
use super::*;

struct Nothing;

#[tower_lsp::async_trait]
impl tower_lsp::LanguageServer for Nothing {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        Ok(InitializeResult::default())
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log of a session that reads `input`, then its end.
fn log_of(mut input: &[u8]) -> String {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    tracing::subscriber::with_default(subscriber, || {
        let runtime = runtime().unwrap();
        let (outbox, _write) = Outbox::new(io::sink(), Limits::default(), drop);
        let client = ClientHandle::new(outbox.clone());
        let app = |_, _| App::new(Value::Null, LspService::build(|_| Nothing));
        Front::new(app, client, outbox, runtime.handle().clone(), Limits::default()).run(&mut input);
    });
    String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
}

// LSPCLI-019, LSPCLI-020
#[test]
fn a_message_over_a_limit_is_a_warning_in_the_log() {
    let length = MAX_BODY_BYTES + 1;
    let oversize =
        [format!("Content-Length: {length}\r\n\r\n").into_bytes(), vec![b' '; length as usize]].concat();
    let log = log_of(&oversize);
    assert!(log.contains("WARN") && log.contains("10485761 bytes is over the limit of 10485760"), "{log}");
    let headers = format!("{}Content-Length: 2\r\n\r\n{{}}", "A: b\r\n".repeat(32));
    let log = log_of(headers.as_bytes());
    assert!(log.contains("WARN") && log.contains("33 header lines are over the limit of 32"), "{log}");
}

#[test]
fn a_change_of_a_document_that_is_not_open_is_a_warning_that_names_it() {
    let bodies = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///a","version":1},"contentChanges":[]}}"#,
    ];
    let input: String =
        bodies.iter().map(|body| format!("Content-Length: {}\r\n\r\n{body}", body.len())).collect();
    let log = log_of(input.as_bytes());
    assert!(log.contains("WARN") && log.contains("file:///a is not open"), "{log}");
}
