//! A backend whose custom methods show what a test wants to see, and start helpers.

use std::sync::Arc;
use std::time::Duration;

use agents_lsp_server::documents::DocumentUri;
use agents_lsp_server::testing::{Builder, TestServer};
use agents_lsp_server::{App, ClientHandle, SessionHandle, Snapshot};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::lsp_types::*;
use tower_lsp::{LanguageServer, LspService};

/// Long enough for any machine; a test that waits for it has failed.
pub const SOON: Duration = Duration::from_secs(10);

pub struct Backend {
    client: ClientHandle,
    session: SessionHandle,
    /// Let through one by one by `test/release`.
    gate: Arc<Semaphore>,
}

fn text_of(snapshot: &Snapshot, params: &Value) -> Result<Value> {
    let uri = params["uri"].as_str().and_then(|uri| DocumentUri::parse(uri).ok());
    let document = uri.and_then(|uri| snapshot.document(&uri).cloned());
    Ok(document.map_or(Value::Null, |document| {
        json!({
            "text": document.text().to_string(),
            "version": document.version(),
            "language": document.language_id(),
            "saves": document.saves(),
            "uri": document.uri().as_str(),
        })
    }))
}

impl Backend {
    /// The document of `uri` as of the request's arrival.
    async fn text(&self, params: Value) -> Result<Value> {
        text_of(&self.session.snapshot(), &params)
    }

    /// Like `text`, but only after a `test/release`.
    async fn text_later(&self, params: Value) -> Result<Value> {
        self.client.notify_raw("test/started", json!({}));
        self.gate.acquire().await.unwrap().forget();
        text_of(&self.session.snapshot(), &params)
    }

    async fn release(&self) {
        self.gate.add_permits(1);
    }

    async fn hang(&self) -> Result<Value> {
        self.client.notify_raw("test/started", json!({}));
        std::future::pending().await
    }

    async fn panic(&self) -> Result<Value> {
        tokio::task::yield_now().await;
        panic!("as told");
    }

    /// A notification whose handler panics.
    async fn panic_note(&self) {
        panic!("as told");
    }

    /// A notification whose handler never ends.
    async fn hang_note(&self) {
        std::future::pending().await
    }

    /// Sends its parameters back, after yielding often: a test of order.
    async fn note(&self, params: Value) {
        for _ in 0..params["yields"].as_u64().unwrap_or(0) {
            tokio::task::yield_now().await;
        }
        self.client.notify_raw("test/noted", params);
    }

    /// Asks the client `method` with `params`, and returns what it said.
    async fn ask(&self, mut params: Value) -> Result<Value> {
        let method = params["method"].as_str().unwrap().to_owned();
        let answer = self.client.request_raw::<Value>(&method, params["params"].take()).await;
        Ok(answer
            .map_or_else(|error| json!({ "error": error.to_string() }), |value| json!({ "value": value })))
    }

    async fn session(&self) -> Result<Value> {
        let snapshot = self.session.snapshot();
        let folders: Vec<_> = snapshot.folders().iter().map(|folder| folder.uri.as_str()).collect();
        Ok(json!({
            "client": snapshot.client().name,
            "encoding": snapshot.encoding().as_str(),
            "folders": folders,
            "options": snapshot.client().initialization_options,
            "lens": snapshot.client().supports("/workspace/codeLens/refreshSupport"),
        }))
    }

    /// `count` notifications at once.
    async fn flood(&self, params: Value) -> Result<Value> {
        for n in 0..params["count"].as_u64().unwrap_or(0) {
            self.client.notify_raw("test/drop", json!({ "n": n, "filler": "x".repeat(1000) }));
        }
        Ok(Value::Null)
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        let capabilities = ServerCapabilities {
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            ..Default::default()
        };
        Ok(InitializeResult { capabilities, server_info: None })
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    /// Echoes the word at the position.
    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let at = params.text_document_position_params;
        let snapshot = self.session.snapshot();
        let Some(document) = snapshot.document_at(&at.text_document.uri) else { return Ok(None) };
        let start = document.text().offset(at.position);
        let text = document.text().to_string();
        let word: String = text[start..].chars().take_while(|c| c.is_alphanumeric()).collect();
        let range = Some(document.text().range(start..start + word.len()));
        Ok(Some(Hover { contents: HoverContents::Scalar(MarkedString::String(word)), range }))
    }

    async fn execute_command(&self, _: ExecuteCommandParams) -> Result<Option<Value>> {
        Err(Error::invalid_params("no such command"))
    }

    async fn did_change_workspace_folders(&self, _: DidChangeWorkspaceFoldersParams) {
        self.client.notify_raw("test/folders", json!({}));
    }
}

/// The application of most tests.
pub fn app(client: ClientHandle, session: SessionHandle) -> App {
    let backend = Backend { client, session, gate: Arc::new(Semaphore::new(0)) };
    let service = LspService::build(|_| backend)
        .custom_method("test/text", Backend::text)
        .custom_method("test/textLater", Backend::text_later)
        .custom_method("test/release", Backend::release)
        .custom_method("test/hang", Backend::hang)
        .custom_method("test/panic", Backend::panic)
        .custom_method("test/panicNote", Backend::panic_note)
        .custom_method("test/hangNote", Backend::hang_note)
        .custom_method("test/note", Backend::note)
        .custom_method("test/ask", Backend::ask)
        .custom_method("test/session", Backend::session)
        .custom_method("test/flood", Backend::flood);
    App::new(
        json!({ "diagnosticProvider": { "workspaceDiagnostics": false }, "positionEncoding": "wrong" }),
        service,
    )
}

/// A server that waits for `initialize`.
pub fn fresh() -> TestServer {
    TestServer::start(app)
}

/// An initialized server.
pub fn running() -> TestServer {
    running_with(TestServer::builder(), json!({}))
}

pub fn running_with(builder: Builder, capabilities: Value) -> TestServer {
    let mut server = builder.start(app);
    server.initialize(capabilities);
    server
}

/// The text of a document as the server has it now.
#[track_caller]
pub fn text(server: &mut TestServer, uri: &str) -> String {
    server.request("test/text", json!({ "uri": uri }))["text"]
        .as_str()
        .expect("the document is open")
        .to_owned()
}
