//! External language servers, lent to actors over one workspace directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BoxFuture;
use super::code_intelligence::{
    Completions, Draft, Hierarchy, Place, PlaceQuestion, PlacedSymbol, Signature,
};
use crate::QualifiedName;
use crate::diagnostics::Diagnostic;
use crate::language_server::{Capability, LanguageServerDefinition};
use crate::text::{FileEdit, Position, Range};

/// Starts and lends language servers. Implemented by the language-server runtime.
pub trait LanguageServers: Send + Sync {
    /// Opens a workspace; servers are started when a file of theirs is first asked about. Never fails: what cannot be
    /// started shows in [`LanguageWorkspace::servers`] and in the answers.
    fn open(&self, spec: WorkspaceSpec) -> BoxFuture<'_, Arc<dyn LanguageWorkspace>>;

    /// The servers that run, in this process and in others that work on the same data.
    fn running(&self) -> Vec<RunningServer> {
        Vec::new()
    }

    /// Ends every running instance of a server that was removed from the registry, in whichever process; those who use it
    /// are told so. Says how many there were.
    fn end(&self, _server: &QualifiedName) -> usize {
        0
    }

    /// Starts one server over a directory (an empty one of its own for `None`) to see what it really offers, and stops
    /// it again. Bounded by twice `start_timeout` and a few seconds.
    fn check<'a>(
        &'a self,
        definition: &'a LanguageServerDefinition,
        root: Option<&'a Path>,
        start_timeout: Duration,
    ) -> BoxFuture<'a, ServerReport>;
}

/// What a workspace is made of.
#[derive(Debug, Clone)]
pub struct WorkspaceSpec {
    /// Absolute directory the servers see as their root (the sandbox, never the original).
    pub root: PathBuf,
    /// The servers that may serve it, in order of preference.
    pub servers: Vec<LanguageServerDefinition>,
    /// How long one answer may take, start-up apart.
    pub request_timeout: Duration,
    /// How long a server may take to start and answer `initialize`.
    pub start_timeout: Duration,
}

/// A server that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunningServer {
    /// The registry name.
    pub server: QualifiedName,
    /// What it works on.
    pub root: PathBuf,
    /// Its process.
    pub pid: u32,
    /// The process it works for.
    pub owner: u32,
    /// From its start to its `initialize` answer, in milliseconds.
    pub start_ms: u64,
    /// How often it was brought back.
    pub restarts: u32,
    /// It waits, initialised, for the next who needs it.
    pub warm: bool,
    /// Resident memory of it and its children in bytes, where the system tells.
    pub resident_bytes: Option<u64>,
}

/// One server's state, for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStatus {
    /// The registry name.
    pub server: QualifiedName,
    /// Where it stands.
    pub state: ServerState,
    /// How often it was brought back.
    pub restarts: u32,
    /// What its `initialize` answer calls it, with its version.
    pub info: Option<String>,
}

/// Where a server stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    /// Nobody asked for it yet.
    Idle,
    /// Running and initialised.
    Running,
    /// Given up; `reason` says why and what would help, and holds the tail of what it printed to stderr.
    Failed {
        /// For people.
        reason: String,
    },
}

/// What a server really is and offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerReport {
    /// The registry name.
    pub server: QualifiedName,
    /// What was run.
    pub command_line: String,
    /// Why it could not be started; everything below is then empty, save what it printed.
    pub problem: Option<String>,
    /// What it calls itself.
    pub name: Option<String>,
    /// In its own words.
    pub version: Option<String>,
    /// What would be lent: declared in the registry entry and offered by the server.
    pub capabilities: Vec<Capability>,
    /// Everything it offers, in the protocol's names (`hoverProvider`, ...), sorted.
    pub advertised: Vec<String>,
    /// The position encoding agreed upon: `utf-8`, `utf-16` or `utf-32`.
    pub encoding: Option<String>,
    /// How it tells diagnostics.
    pub diagnostics: Option<DiagnosticsMode>,
    /// From the start of the process to its `initialize` answer, in milliseconds.
    pub start_ms: Option<u64>,
    /// Resident memory of its processes after the start, in bytes, where the system tells.
    pub resident_bytes: Option<u64>,
    /// The end of what it printed.
    pub stderr_tail: String,
}

impl ServerReport {
    /// The report on a server that nothing is known of yet.
    pub fn new(definition: &LanguageServerDefinition) -> Self {
        Self {
            server: definition.name.clone(),
            command_line: definition.command_line(),
            problem: None,
            name: None,
            version: None,
            capabilities: Vec::new(),
            advertised: Vec::new(),
            encoding: None,
            diagnostics: None,
            start_ms: None,
            resident_bytes: None,
            stderr_tail: String::new(),
        }
    }
}

/// How a server tells diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticsMode {
    /// Asked for each document.
    Pull,
    /// The same, registered after the start.
    PullDynamic,
    /// Published by the server on its own.
    Push,
}

/// What one server said about one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileDiagnostics {
    /// The registry name of the server.
    pub server: QualifiedName,
    /// `Some(vec![])` is clean; `None` is no answer in time, or no server: the file was **not** checked.
    pub diagnostics: Option<Vec<Diagnostic>>,
    /// Why there is no answer.
    pub problem: Option<String>,
}

/// A change a server offers for a diagnostic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CodeActionOffer {
    /// Its title for people.
    pub title: String,
    /// The LSP kind, such as `quickfix`.
    pub kind: Option<String>,
    /// The server marks it as the one to take.
    pub is_preferred: bool,
    /// What it changes, in byte columns and workspace-relative paths; `None` when it only runs a command, is disabled,
    /// or touches a file outside the workspace.
    pub edits: Option<Vec<FileEdit>>,
    /// Why `edits` is missing.
    pub unusable: Option<String>,
}

/// What a server can be asked about a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileQuestion {
    /// How it would be formatted.
    Format,
    /// How its imports would be put in order.
    OrganizeImports,
}

/// A symbol that a file declares.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundSymbol {
    /// Its own name.
    pub name: String,
    /// In the protocol's words, such as `function`.
    pub kind: String,
    /// What it is in, such as `Class`, when it is in something.
    pub container: Option<String>,
    /// Its name, or the whole declaration where the server does not tell the name apart.
    pub range: Range,
}

/// A file that changed on disk, told to the servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEvent {
    /// Relative to the workspace root, with `/`.
    pub path: String,
    /// What happened.
    pub kind: FileEventKind,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum FileEventKind {
    Created,
    Changed,
    Deleted,
}

/// Servers over one directory. All methods are bounded in time and never panic; a dead or slow server degrades its own
/// answers only.
pub trait LanguageWorkspace: Send + Sync {
    /// The servers that would serve a file, by language; empty when none is registered for it.
    fn servers_for(&self, path: &str) -> Vec<QualifiedName>;

    /// Where each server stands.
    fn servers(&self) -> Vec<ServerStatus>;

    /// Settled diagnostics of files (opened when they are not), one entry per file and server, in the order asked.
    /// Files are asked about in parallel within what a server bears.
    fn diagnostics<'a>(&'a self, paths: &'a [String]) -> BoxFuture<'a, Vec<(String, Vec<FileDiagnostics>)>>;

    /// Resolved code actions for one diagnostic of one server, as it was given. `Err` is a reason for people.
    fn code_actions<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        diagnostic: &'a Diagnostic,
    ) -> BoxFuture<'a, Result<Vec<CodeActionOffer>, String>>;

    /// What a server would change in a file when asked about the whole of it. `None`: it does not do that, or is
    /// registered without the capability; an empty list: there is nothing to change. `Err` is a reason for people.
    fn file_edits<'a>(
        &'a self,
        _server: &'a QualifiedName,
        _path: &'a str,
        _question: FileQuestion,
    ) -> BoxFuture<'a, Result<Option<Vec<FileEdit>>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// The symbols that a file declares; `None` as in [`file_edits`](Self::file_edits).
    fn symbols<'a>(
        &'a self,
        _server: &'a QualifiedName,
        _path: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<FoundSymbol>>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// What a new name for the symbol at a place would change; `None` as in [`file_edits`](Self::file_edits).
    fn rename<'a>(
        &'a self,
        _server: &'a QualifiedName,
        _path: &'a str,
        _position: Position,
        _new_name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<FileEdit>>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// The languages that the registered servers serve, each with its servers.
    fn languages(&self) -> Vec<(String, Vec<QualifiedName>)> {
        Vec::new()
    }

    /// The text of a file as servers are shown it; `Err` says why they are not.
    fn text(&self, path: &str) -> Result<String, String> {
        Err(format!("{path} cannot be read here"))
    }

    /// Places of a symbol; `None` as in [`file_edits`](Self::file_edits), an empty list when there are none.
    fn places<'a>(
        &'a self,
        _server: &'a QualifiedName,
        _path: &'a str,
        _position: Position,
        _question: PlaceQuestion,
    ) -> BoxFuture<'a, Result<Option<Vec<Place>>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// What a server says about the symbol at a place, in Markdown; empty when it has nothing to say.
    fn hover<'a>(
        &'a self,
        _server: &'a QualifiedName,
        _path: &'a str,
        _position: Position,
    ) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// What could be written at a place.
    fn completions<'a>(
        &'a self,
        _server: &'a QualifiedName,
        _path: &'a str,
        _position: Position,
    ) -> BoxFuture<'a, Result<Option<Completions>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// How what is called around a place is called.
    fn signatures<'a>(
        &'a self,
        _server: &'a QualifiedName,
        _path: &'a str,
        _position: Position,
    ) -> BoxFuture<'a, Result<Option<Vec<Signature>>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// The symbols of the whole workspace that match a query, in the server's order.
    fn workspace_symbols<'a>(
        &'a self,
        _server: &'a QualifiedName,
        _query: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<PlacedSymbol>>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// What calls, is called by, is derived from or is the base of the symbol at a place.
    fn hierarchy<'a>(
        &'a self,
        _server: &'a QualifiedName,
        _path: &'a str,
        _position: Position,
        _way: Hierarchy,
    ) -> BoxFuture<'a, Result<Option<Vec<PlacedSymbol>>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// Resolved code actions for a range with the server's own diagnostics in it: fixes, refactorings, all of them.
    fn actions_in<'a>(
        &'a self,
        _server: &'a QualifiedName,
        _path: &'a str,
        _range: Range,
        _diagnostics: &'a [Diagnostic],
    ) -> BoxFuture<'a, Result<Option<Vec<CodeActionOffer>>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// The diagnostics of files as they would be with these drafts in place of what lies on disk. The servers see the
    /// drafts meanwhile and nobody else asks them; afterwards they see the disk again.
    fn preview<'a>(
        &'a self,
        _drafts: &'a [Draft],
        paths: &'a [String],
    ) -> BoxFuture<'a, Vec<(String, Vec<FileDiagnostics>)>> {
        Box::pin(async move { paths.iter().map(|path| (path.clone(), Vec::new())).collect() })
    }

    /// Tells the servers what changed on disk: open files are re-read, the rest is watched-file events.
    fn files_changed<'a>(&'a self, events: &'a [FileEvent]) -> BoxFuture<'a, ()>;

    /// Shuts the servers down in order; also done when the last reference goes, less politely.
    fn close(&self) -> BoxFuture<'_, ()>;
}
