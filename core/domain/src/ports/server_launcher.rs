//! External language servers for whoever speaks the protocol with them itself, as the proxy of `agents lsp serve` does.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::BoxFuture;
use super::language_servers::FileEventKind;
use crate::language_server::LanguageServerDefinition;

/// Starts processes of language servers and hands out their streams. Implemented by the language-server runtime.
pub trait ServerLauncher: Send + Sync {
    /// Starts a server over a folder, or takes one that waits for somebody like this. `Err` says for people what is wrong
    /// and what would help. The process ends, with all it started, when [`LaunchedServer::process`] is dropped.
    fn launch<'a>(
        &'a self,
        definition: &'a LanguageServerDefinition,
        root: &'a Path,
        within: Duration,
        hello: &'a Hello<'a>,
    ) -> BoxFuture<'a, Result<LaunchedServer, String>>;

    /// Whether a server is registered for a language, by the name an editor has for it (`typescriptreact`).
    fn serves(&self, definition: &LanguageServerDefinition, language: &str) -> bool;

    /// The names editors have for the languages a server is registered for (`cpp` for `c++`), with their variants.
    fn languages(&self, definition: &LanguageServerDefinition) -> Vec<String>;

    /// Reads `DidChangeWatchedFilesRegistrationOptions`: whether a change of a file is to be told.
    fn watches(&self, options: &Value) -> WatchFilter;
}

/// Makes the parameters of `initialize` from a server's folder, resolved, and its `initializationOptions`.
pub type Hello<'a> = dyn Fn(&Path, &Value) -> Value + Send + Sync + 'a;

/// Whether a server wants to hear of a change of the file at a path.
pub type WatchFilter = Box<dyn Fn(&Path, FileEventKind) -> bool + Send + Sync>;

/// A started server.
pub struct LaunchedServer {
    /// Where messages to it go; blocking.
    pub input: File,
    /// Where its messages come from.
    pub output: Box<dyn ServerOutput>,
    /// Its process.
    pub process: Arc<dyn ServerProcess>,
    /// Its folder, resolved.
    pub root: PathBuf,
    /// What to send it as parameters of `initialize`, unless that was done.
    pub initialize: Value,
    /// What it said so far when it was started before; `None` for one that was not spoken to yet.
    pub warm: Option<WarmServer>,
}

/// What a server that was kept warm has said. It was initialised with the same parameters and the same settings as it
/// would be now, and nobody has shown it anything but files as they are on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmServer {
    /// Its answer to `initialize`.
    pub result: Value,
    /// What it registered and did not take back, as items of `client/registerCapability`.
    pub registrations: Vec<Value>,
    /// What it published last for each document: parameters of `textDocument/publishDiagnostics`.
    pub diagnostics: Vec<Value>,
    /// The `items` of each `workspace/configuration` it asked, with the answer it got.
    pub configured: Vec<(Value, Value)>,
    /// Progress that it began and did not end.
    pub tokens: Vec<Value>,
}

/// The messages of a server.
pub trait ServerOutput: Send {
    /// Waits for the body of the next message. What the server prints between messages is left out. `Err` says why
    /// there are no more.
    fn next_message(&mut self) -> Result<Vec<u8>, String>;
}

/// The process of a server.
pub trait ServerProcess: Send + Sync {
    /// Ends it at once, with all that it started.
    fn kill(&self);

    /// Whether somebody has ended it for good, by taking it out of the registry.
    fn is_removed(&self) -> bool;

    /// Whether its processes work, since the last time this was asked; `false` where the system does not tell.
    fn computes(&self) -> bool {
        false
    }

    /// A document of this language was opened, which shows the next one that is started for somebody like this what to
    /// read beforehand.
    fn is_shown(&self, _path: &Path, _language: &str) {}

    /// A `workspace/configuration` was answered so, which holds for the next one, too.
    fn is_configured(&self, _items: &Value, _answer: &Value) {}

    /// The last lines it printed outside of the protocol.
    fn printed(&self, lines: usize) -> String;

    /// How it ended, waiting for that a while.
    fn ended(&self, within: Duration) -> BoxFuture<'_, Option<String>>;
}
