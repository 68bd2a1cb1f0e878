//! One proxied server as the session sees it: what it said of itself, what it registered, what it has open.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::server_launcher::{ServerProcess, WatchFilter};
use serde_json::Value;

use super::encoding::Recount;
use super::features::Feature;
use crate::documents::{Document, DocumentUri};
use crate::front::outbox::Outbox;
use crate::front::reply;

pub(crate) struct Server {
    pub definition: LanguageServerDefinition,
    pub status: Status,
    /// Which start this is, from 1; messages of an earlier one do not count.
    pub generation: u64,
    /// Restarts since it last ran for a good while.
    pub restarts: u32,
    pub since: Instant,
    /// When it said anything last.
    pub heard: Instant,
    /// Since when it says nothing although it is asked.
    pub deaf: Option<Instant>,
    pub link: Option<Link>,
    /// Stands between us and a server that counts columns otherwise than the client.
    pub recount: Arc<OnceLock<Recount>>,
    pub capabilities: Value,
    pub registrations: Vec<Registration>,
    /// Documents it was shown.
    pub open: HashSet<DocumentUri>,
    /// Progress that it began before it came to us, which the client knows nothing of.
    pub silenced: Vec<Value>,
    /// Commands of the client that it works on.
    pub commands: usize,
    /// When it answered the last one.
    pub commanded: Option<Instant>,
    /// The folder it works on, resolved once it runs.
    pub root: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Status {
    /// No document of its languages was opened yet.
    Idle,
    Starting,
    Running,
    /// Given up, with the reason.
    Failed(String),
}

/// The way to a running process.
pub(crate) struct Link {
    pub outbox: Outbox,
    pub process: Arc<dyn ServerProcess>,
}

/// What a server registered after its start.
pub(crate) struct Registration {
    pub id: String,
    pub method: String,
    pub options: Value,
    pub watch: Option<WatchFilter>,
}

/// How a server wants to hear of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncKind {
    None,
    Full,
    Incremental,
}

impl Server {
    pub fn new(definition: LanguageServerDefinition) -> Self {
        Self {
            definition,
            status: Status::Idle,
            generation: 0,
            restarts: 0,
            since: Instant::now(),
            heard: Instant::now(),
            deaf: None,
            link: None,
            recount: Arc::default(),
            capabilities: Value::Null,
            registrations: Vec::new(),
            open: HashSet::new(),
            silenced: Vec::new(),
            commands: 0,
            commanded: None,
            root: PathBuf::new(),
        }
    }

    pub fn name(&self) -> String {
        self.definition.name.to_string()
    }

    pub fn is_running(&self) -> bool {
        self.status == Status::Running
    }

    /// What it offers for a feature, however it said so.
    pub fn provider(&self, feature: &Feature) -> Option<&Value> {
        let lent = feature.lends.is_none_or(|capability| self.definition.lends(capability));
        let offered = |value: &&Value| !matches!(value, Value::Null | Value::Bool(false));
        let fits = |value: &&Value| {
            feature.needs.is_empty() || value.pointer(feature.needs).is_some_and(|need| offered(&need))
        };
        let said = self.capabilities.get(feature.provider).filter(offered).filter(fits);
        let registered = || self.registered(feature.registered).find(fits);
        if lent { said.or_else(registered) } else { None }
    }

    /// The options of what was registered under a method.
    pub fn registered<'a>(&'a self, method: &'a str) -> impl Iterator<Item = &'a Value> {
        self.registrations.iter().filter(move |one| one.method == method).map(|one| &one.options)
    }

    /// Whether its diagnostics are pulled, and by which identifier.
    pub fn pulls(&self) -> Option<Option<String>> {
        let provider = &self.capabilities["diagnosticProvider"];
        let options = match provider {
            Value::Null | Value::Bool(false) => self.registered("textDocument/diagnostic").next()?,
            said => said,
        };
        Some(options["identifier"].as_str().map(str::to_owned))
    }

    pub fn sync_kind(&self) -> SyncKind {
        let sync = &self.capabilities["textDocumentSync"];
        let kind = if sync.is_object() { &sync["change"] } else { sync };
        match kind.as_u64() {
            Some(1) => SyncKind::Full,
            // Where a change began and ended is not to be told from the text it left.
            Some(2) if self.recount.get().is_some() => SyncKind::Full,
            Some(2) => SyncKind::Incremental,
            _ => SyncKind::None,
        }
    }

    /// Whether it wants to hear of saves, and whether with the text.
    pub fn wants_saves(&self) -> Option<bool> {
        let save = &self.capabilities["textDocumentSync"]["save"];
        let options = match save {
            Value::Null | Value::Bool(false) => self.registered("textDocument/didSave").next()?,
            said => said,
        };
        Some(options["includeText"] == true)
    }

    /// Whether it runs a command.
    pub fn runs(&self, command: &str) -> bool {
        let lists = std::iter::once(&self.capabilities["executeCommandProvider"])
            .chain(self.registered("workspace/executeCommand"));
        let mut commands = lists.flat_map(|options| options["commands"].as_array().into_iter().flatten());
        commands.any(|known| known == command)
    }

    /// Notes that it is shown a document; `false` when it was before.
    pub fn is_shown(&mut self, document: &Document) -> bool {
        if let (Some(link), Some(path)) = (&self.link, document.uri().to_path()) {
            link.process.is_shown(&path, document.language_id());
        }
        self.open.insert(document.uri().clone())
    }

    pub fn send(&self, body: Vec<u8>) {
        if let Some(link) = &self.link {
            link.outbox.send(match self.recount.get() {
                None => body,
                Some(recount) => recount.to_server(body),
            });
        }
    }

    pub fn notify(&self, method: &str, params: &Value) {
        self.send(reply::notification(method, Some(&params.to_string())));
    }
}
