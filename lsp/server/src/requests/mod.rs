//! What editors ask, one file per request; what the answers are made from is here.
//!
//! Handlers read snapshots and never wait for the client. Whatever reads the engine does so off the async threads, once
//! per state of document and plans; hover, lenses, hints and actions on a document that was looked at before read memory.

pub(crate) mod buffers;
pub(crate) mod call_hierarchy;
pub(crate) mod code_action;
pub(crate) mod code_lens;
pub(crate) mod command;
pub(crate) mod content;
pub(crate) mod custom;
pub(crate) mod details;
pub(crate) mod diagnostic;
pub(crate) mod document_link;
pub(crate) mod entity;
pub(crate) mod hover;
pub(crate) mod inlay_hint;
pub(crate) mod lines;
pub(crate) mod links;
pub(crate) mod outline;
pub(crate) mod page;
pub(crate) mod page_lens;
pub(crate) mod plan_here;
pub(crate) mod provenance;
pub(crate) mod questions;
pub(crate) mod settings;
pub(crate) mod syntax;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents_domain::{Error, Result};
use agents_engine::Engine;
use tokio::sync::watch;
use tower_lsp::jsonrpc;
use tower_lsp::lsp_types::Url;

use crate::documents::{Document, DocumentUri};
use crate::proxy::Proxy;
use crate::syntax::Syntax;
use crate::watch::world::World;
use crate::{ClientHandle, SessionHandle, Snapshot};

/// How long a request waits for the first look at the plans.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// What every handler and the watch share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub engine: EngineRef,
    pub client: ClientHandle,
    pub session: SessionHandle,
    pub settings: settings::Settings,
    /// What syntax says of source files, where the engine has indexes.
    pub syntax: Option<Arc<Syntax>>,
    pub cache: provenance::Cache,
    pub details: details::Cache,
    pub subscription: Mutex<Option<custom::Subscription>>,
    /// Other language servers behind the same front.
    pub proxy: Option<Arc<Proxy>>,
    world: watch::Receiver<Option<Arc<World>>>,
}

/// The engine, which has nothing to show to a debugger.
#[derive(Clone)]
pub(crate) struct EngineRef(pub Arc<Engine>);

impl std::fmt::Debug for EngineRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Shared {
    pub fn new(
        engine: Arc<Engine>,
        client: ClientHandle,
        session: SessionHandle,
        world: watch::Receiver<Option<Arc<World>>>,
        proxy: Option<Arc<Proxy>>,
    ) -> Self {
        let settings = settings::Settings::default();
        settings.take(&session.latest().client().initialization_options);
        let syntax = Syntax::of(&engine).map(Arc::new);
        Self {
            syntax,
            engine: EngineRef(engine),
            client,
            session,
            settings,
            cache: provenance::Cache::default(),
            details: details::Cache::default(),
            subscription: Mutex::default(),
            proxy,
            world,
        }
    }

    /// What syntax says, unless a person turned it off.
    pub fn syntax(&self) -> Option<&Arc<Syntax>> {
        self.syntax.as_ref().filter(|_| self.settings.syntax())
    }

    /// The plans as last looked at; after the start, once they have been.
    pub async fn world(&self) -> Arc<World> {
        let mut world = self.world.clone();
        let known = tokio::time::timeout(FIRST_LOOK, world.wait_for(Option::is_some)).await;
        match known {
            Ok(Ok(world)) => world.clone().unwrap_or_default(),
            _ => Arc::default(),
        }
    }

    /// Whether a request about a document certainly has no answer of ours. Only looks at what is known already.
    pub fn is_silent(&self, method: &str, snapshot: &Snapshot, uri: &DocumentUri) -> bool {
        let Some(document) = snapshot.document(uri) else { return false };
        let spoken = || self.syntax().is_some_and(|syntax| syntax.speaks(document.language_id()));
        let plain = || entity::Entity::of(document).is_none() && !spoken();
        match method {
            "textDocument/codeAction" | "textDocument/codeLens" | "textDocument/inlayHint" => false,
            "textDocument/hover" => self.cache.knows_nothing(document) && plain(),
            "textDocument/documentLink" => plain() && document.language_id() != document_link::MARKDOWN,
            _ => plain(),
        }
    }

    /// Work on the engine, off the async threads. It goes on to its end when nobody waits for it any more.
    pub async fn blocking<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Engine) -> Result<T> + Send + 'static,
    {
        let engine = self.engine.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&engine)).await;
        done.unwrap_or_else(|error| Err(Error::internal(format!("the operation did not end: {error}"))))
    }

    /// The open document of a request, as it was when the request arrived.
    pub fn document(&self, url: &Url) -> Option<(Arc<Snapshot>, Arc<Document>)> {
        let snapshot = self.session.snapshot();
        let document = snapshot.document_at(url)?.clone();
        Some((snapshot, document))
    }
}

/// An error of the engine as JSON-RPC has it: its code, and in `data` the stable name, suggestions and facts.
pub(crate) fn refusal(error: Error) -> jsonrpc::Error {
    let mut data = serde_json::json!({
        "type": error.kind.code(),
        "number": error.kind.number(),
        "suggestions": error.suggestions,
    });
    if let Some(detail) = error.detail {
        data["detail"] = detail.into();
    }
    if let Some(facts) = error.data {
        data["facts"] = facts;
    }
    let code = jsonrpc::ErrorCode::from(i64::from(error.kind.json_rpc()));
    jsonrpc::Error { code, message: error.message.into(), data: Some(data) }
}

/// The first line of a text, at most `most` characters of it.
pub(crate) fn brief(text: &str, most: usize) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    if line.chars().count() <= most {
        return line.to_owned();
    }
    let cut: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}
