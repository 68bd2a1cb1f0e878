//! The composition inside this crate: an engine, its watch, and the handlers behind the front.

use std::io;
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use agents_engine::Engine;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tower_lsp::jsonrpc::Result;
use tower_lsp::lsp_types::*;
use tower_lsp::{LanguageServer, LspService};

use crate::documents::DocumentUri;
use crate::front::dispatch::merge;
use crate::proxy::{Proxy, ProxyOptions, join_options};
use crate::requests::{
    Shared, code_action, command, content, custom, diagnostic, document_link, entity, settings,
};
use crate::syntax::{self, Job};
use crate::watch::{self, Wake};
use crate::{App, ClientHandle, ClientInfo, ExitStatus, SessionHandle, Snapshot, serve_stdio};

/// How the editor's view of the plans is kept up to date.
#[derive(Debug, Clone)]
pub struct EditorOptions {
    /// How often the store is asked whether anything changed.
    pub poll: Duration,
    /// How often plans without a living worker get one; `None` never starts any.
    pub workers: Option<Duration>,
    /// Other language servers whose features are served, too.
    pub proxy: Option<ProxyOptions>,
}

impl Default for EditorOptions {
    /// 30 milliseconds, 2 seconds, and no other servers.
    fn default() -> Self {
        Self { poll: Duration::from_millis(30), workers: Some(Duration::from_secs(2)), proxy: None }
    }
}

/// Serves the plans and decisions of an engine to the editor at the other end of standard input and output, until the
/// session ends. Blocks the calling thread.
///
/// # Errors
/// When the system gives no threads.
pub fn serve_editor(engine: Arc<Engine>, options: EditorOptions) -> io::Result<ExitStatus> {
    serve_stdio(editor(engine, options))
}

/// The application of [`serve_editor`], for [`serve`](crate::serve) on other streams.
pub fn editor(
    engine: Arc<Engine>,
    options: EditorOptions,
) -> impl FnOnce(ClientHandle, SessionHandle) -> App + Send + 'static {
    move |client, session| {
        if options.proxy.is_some() {
            session.use_utf16();
        }
        let snapshot = session.latest();
        let (world, seen) = tokio::sync::watch::channel(None);
        let proxied = options.proxy.clone();
        let shared = Arc::new_cyclic(|me: &Weak<Shared>| {
            let proxy = proxied.map(|proxied| {
                let me = me.clone();
                let silence = move |method: &str, snapshot: &Snapshot, uri: &DocumentUri| {
                    me.upgrade().is_some_and(|shared| shared.is_silent(method, snapshot, uri))
                };
                Proxy::new(proxied, client.clone(), session.clone(), Box::new(silence))
            });
            Shared::new(engine, client, session, seen, proxy)
        });
        let proxy = shared.proxy.clone();
        let mut capabilities = capabilities(snapshot.client());
        if let Some(syntax) = &shared.syntax {
            merge(&mut capabilities, syntax.capabilities());
        }
        if let Some(proxy) = &proxy {
            join_options(&mut capabilities, &proxy.capabilities());
        }
        let wake = watch::start(shared.clone(), world, options, Handle::current());
        syntax::start(&shared, &Handle::current());
        let service = LspService::build(|_| Backend { shared, wake })
            .custom_method("workspace/textDocumentContent", Backend::text_document_content)
            .custom_method("agents/content", Backend::content)
            .custom_method("agents/plans", Backend::plans)
            .custom_method("agents/planTree", Backend::plan_tree)
            .custom_method("agents/decision", Backend::decision)
            .custom_method("agents/subscribe", Backend::subscribe)
            .custom_method("agents/unsubscribe", Backend::unsubscribe);
        App::new(capabilities, service).with_proxy(proxy)
    }
}

/// What the server offers a client; raw JSON, because lsp-types lacks some of it.
fn capabilities(client: &ClientInfo) -> Value {
    let literals = client.supports("/textDocument/codeAction/codeActionLiteralSupport");
    let kinds = [
        code_action::ANSWER_KIND,
        code_action::EXPLAIN_KIND,
        code_action::CORRECT_KIND,
        code_action::PLAN_KIND,
    ];
    let mut offered = json!({
        "hoverProvider": true,
        "codeLensProvider": { "resolveProvider": false },
        "codeActionProvider": if literals { json!({ "codeActionKinds": kinds }) } else { json!(true) },
        "inlayHintProvider": true,
        "executeCommandProvider": { "commands": command::names() },
        "experimental": { "cleveragents": { "protocol": custom::PROTOCOL } },
    });
    for feature in SOME.iter().filter(|feature| offered_to_all(client, feature)) {
        offered[feature.capability] = (feature.options)();
    }
    if diagnostic::pulls(client) {
        offered["diagnosticProvider"] = json!({
            "identifier": diagnostic::SOURCE,
            "interFileDependencies": true,
            "workspaceDiagnostics": false,
        });
    }
    if client.supports("/workspace/textDocumentContent") {
        offered["workspace"] = json!({ "textDocumentContent": { "schemes": [content::SCHEME] } });
    }
    offered
}

/// What is offered for some documents only.
struct Feature {
    /// As in `textDocument/completion`.
    name: &'static str,
    /// What it is registered by, where that is another name.
    method: &'static str,
    capability: &'static str,
    options: fn() -> Value,
    /// The documents.
    selector: fn() -> Value,
}

const SOME: [Feature; 6] = [
    Feature {
        name: "completion",
        method: "textDocument/completion",
        capability: "completionProvider",
        options: || json!({ "triggerCharacters": [" ", "/"] }),
        selector: entity_files,
    },
    Feature {
        name: "definition",
        method: "textDocument/definition",
        capability: "definitionProvider",
        options: || json!({}),
        selector: entity_files,
    },
    Feature {
        name: "references",
        method: "textDocument/references",
        capability: "referencesProvider",
        options: || json!({}),
        selector: entity_files,
    },
    Feature {
        name: "rename",
        method: "textDocument/rename",
        capability: "renameProvider",
        options: || json!({ "prepareProvider": true }),
        selector: entity_files,
    },
    Feature {
        name: "documentLink",
        method: "textDocument/documentLink",
        capability: "documentLinkProvider",
        options: || json!({ "resolveProvider": false }),
        selector: || {
            let mut all = entity_files();
            join_options(&mut all, &json!([{ "language": document_link::MARKDOWN }]));
            join_options(&mut all, &our_documents());
            all
        },
    },
    Feature {
        name: "callHierarchy",
        method: "textDocument/prepareCallHierarchy",
        capability: "callHierarchyProvider",
        options: || json!({}),
        selector: our_documents,
    },
];

fn entity_files() -> Value {
    entity::LANGUAGES.iter().map(|language| json!({ "language": language })).collect()
}

fn our_documents() -> Value {
    json!([{ "scheme": content::SCHEME }])
}

/// The client takes no registrations of a feature: it is offered for all documents, and answered for some.
fn offered_to_all(client: &ClientInfo, feature: &Feature) -> bool {
    match feature.name {
        // Every client has what was there from the start; what came later is offered to those that speak of it.
        "callHierarchy" | "documentLink" if !client.supports(&format!("/textDocument/{}", feature.name)) => {
            false
        }
        name => !client.supports(&format!("/textDocument/{name}/dynamicRegistration")),
    }
}

/// The handlers. What they do is in [`crate::requests`].
struct Backend {
    shared: Arc<Shared>,
    /// Ends the watch when it is dropped with the last handler.
    wake: mpsc::Sender<Wake>,
}

impl Backend {
    async fn text_document_content(&self, params: Value) -> Result<Value> {
        self.shared.text_document_content(params).await
    }

    async fn content(&self, params: Value) -> Result<Value> {
        self.shared.content(params).await
    }

    async fn plans(&self, params: Value) -> Result<Value> {
        self.shared.operation("plan/list", params).await
    }

    async fn plan_tree(&self, params: Value) -> Result<Value> {
        self.shared.operation("plan/tree", params).await
    }

    async fn decision(&self, params: Value) -> Result<Value> {
        self.shared.operation("plan/explain", params).await
    }

    async fn subscribe(&self, params: Value) -> Result<Value> {
        let answer = self.shared.subscribe(params).await;
        let _ = self.wake.send(Wake::Look);
        answer
    }

    async fn unsubscribe(&self, _: Value) -> Result<Value> {
        self.shared.unsubscribe();
        Ok(Value::Null)
    }

    /// Registers what can only be offered for some documents, or only on demand.
    fn register(&self) {
        let snapshot = self.shared.session.latest();
        let client = snapshot.client();
        let mut registrations = Vec::new();
        let ours = json!({ "documentSelector": [{ "scheme": content::SCHEME }] });
        let symbols = json!({ "documentSelector": [
            { "scheme": content::SCHEME }, { "language": entity::LANGUAGES[0] }, { "language": entity::LANGUAGES[1] },
        ] });
        let mut features = vec![
            ("textDocument/foldingRange", ours.clone()),
            ("workspace/didChangeConfiguration", json!({ "section": settings::SECTION })),
        ];
        match &self.shared.syntax {
            // Offered for all documents from the start.
            Some(syntax) => features.push(("workspace/didChangeWatchedFiles", syntax.watchers())),
            None => features.insert(0, ("textDocument/documentSymbol", symbols)),
        }
        for (feature, options) in features {
            if client.supports(&format!("/{feature}/dynamicRegistration")) {
                registrations.push(json!({ "id": feature, "method": feature, "registerOptions": options }));
            }
        }
        // What syntax answers is offered for all documents from the start.
        let offered = self.shared.syntax.as_ref().map(|syntax| syntax.capabilities()).unwrap_or_default();
        let missing = |feature: &&Feature| {
            client.supports(&format!("/textDocument/{}/dynamicRegistration", feature.name))
                && offered.get(feature.capability).is_none()
        };
        for feature in SOME.iter().filter(missing) {
            let mut options = (feature.options)();
            options["documentSelector"] = (feature.selector)();
            registrations
                .push(json!({ "id": feature.method, "method": feature.method, "registerOptions": options }));
        }
        if !registrations.is_empty() {
            let params = json!({ "registrations": registrations });
            drop(self.shared.client.request_raw::<Value>("client/registerCapability", params));
        }
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        Ok(InitializeResult::default())
    }

    async fn initialized(&self, _: InitializedParams) {
        self.register();
        if let Some(syntax) = &self.shared.syntax {
            syntax.ask(Job::Look);
        }
        let (shared, wake) = (self.shared.clone(), self.wake.clone());
        // Notifications are handled one after another; the client's answer must not hold the next one up.
        tokio::spawn(async move {
            if shared.ask_settings().await {
                let _ = wake.send(Wake::Settings);
            }
        });
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        let changed = self.shared.settings.take(&params.settings);
        let (shared, wake) = (self.shared.clone(), self.wake.clone());
        tokio::spawn(async move {
            // Clients that are asked push nothing, or not what counts.
            if shared.ask_settings().await || changed {
                let _ = wake.send(Wake::Settings);
            }
        });
    }

    async fn did_change_workspace_folders(&self, _: DidChangeWorkspaceFoldersParams) {
        let _ = self.wake.send(Wake::Documents);
        if let Some(syntax) = &self.shared.syntax {
            syntax.ask(Job::Look);
        }
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        self.shared.files_changed(params);
    }

    async fn symbol(&self, params: WorkspaceSymbolParams) -> Result<Option<Vec<SymbolInformation>>> {
        Ok(self.shared.workspace_symbol(params).await)
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        Ok(self.shared.hover(params).await)
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        Ok(self.shared.code_lens(params).await)
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        Ok(self.shared.code_action(params).await)
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        Ok(self.shared.inlay_hint(params).await)
    }

    async fn diagnostic(&self, params: DocumentDiagnosticParams) -> Result<DocumentDiagnosticReportResult> {
        Ok(self.shared.diagnostic(params).await)
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        self.shared.execute_command(params, &self.wake).await
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        Ok(self.shared.completion(params).await.map(CompletionResponse::Array))
    }

    async fn goto_definition(&self, params: GotoDefinitionParams) -> Result<Option<GotoDefinitionResponse>> {
        let at = params.text_document_position_params;
        let found = match self.shared.entity_definition(&at).await {
            None => self.shared.definition(at).await,
            found => found,
        };
        Ok(found.map(GotoDefinitionResponse::Array))
    }

    async fn references(&self, params: ReferenceParams) -> Result<Option<Vec<Location>>> {
        let definition = params.context.include_declaration;
        Ok(match self.shared.entity_references(&params.text_document_position, definition).await {
            None => self.shared.references(params).await,
            found => found,
        })
    }

    async fn prepare_rename(
        &self,
        params: TextDocumentPositionParams,
    ) -> Result<Option<PrepareRenameResponse>> {
        Ok(self.shared.prepare_rename(&params))
    }

    async fn rename(&self, params: RenameParams) -> Result<Option<WorkspaceEdit>> {
        self.shared.entity_rename(&params.text_document_position, &params.new_name).await
    }

    async fn document_symbol(&self, params: DocumentSymbolParams) -> Result<Option<DocumentSymbolResponse>> {
        let symbols = self.shared.document_symbols(&params.text_document.uri).await;
        Ok(symbols.map(DocumentSymbolResponse::Nested))
    }

    async fn folding_range(&self, params: FoldingRangeParams) -> Result<Option<Vec<FoldingRange>>> {
        Ok(self.shared.folding_ranges(&params.text_document.uri))
    }

    async fn document_link(&self, params: DocumentLinkParams) -> Result<Option<Vec<DocumentLink>>> {
        Ok(self.shared.document_links(&params.text_document.uri).await)
    }

    async fn prepare_call_hierarchy(
        &self,
        params: CallHierarchyPrepareParams,
    ) -> Result<Option<Vec<CallHierarchyItem>>> {
        Ok(self.shared.prepare_call_hierarchy(params.text_document_position_params).await)
    }

    async fn incoming_calls(
        &self,
        params: CallHierarchyIncomingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyIncomingCall>>> {
        Ok(self.shared.incoming_calls(&params.item).await)
    }

    async fn outgoing_calls(
        &self,
        params: CallHierarchyOutgoingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyOutgoingCall>>> {
        Ok(self.shared.outgoing_calls(&params.item).await)
    }
}
