//! Which documents a server has open, in which version and text, so that both sides always mean the same.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::Client;
use crate::pushed::Asked;
use crate::{lock, uri};

/// Documents kept open at a server; the ones not asked about for the longest time are closed first.
const MAX_OPEN: usize = 128;
/// Bytes of text kept open at a server.
const MAX_OPEN_BYTES: usize = 32 << 20;

/// The documents of one server instance; they outlive its restarts.
#[derive(Debug)]
pub(crate) struct Documents {
    root: PathBuf,
    open: HashMap<String, Document>,
    /// Last version by path, kept over closing: versions never go back.
    versions: HashMap<String, i64>,
    /// Which client they are open at.
    generation: u64,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Document {
    uri: String,
    language: &'static str,
    version: i64,
    text: Arc<str>,
    opened: u64,
    synced: u64,
    synced_at: Instant,
    /// Tells this opening from later ones of the same file.
    serial: u64,
    pins: usize,
    used: u64,
    /// The server answered about this text; only such documents are replayed after a crash.
    answered: bool,
    /// Results of pulls by provider, for `previousResultId`.
    pulled: HashMap<Option<String>, (String, Vec<Value>)>,
}

/// One document as the server has it; it stays open while this lives.
#[derive(Debug)]
pub(crate) struct Snapshot {
    documents: Arc<Mutex<Documents>>,
    /// Relative to the workspace.
    pub(crate) path: String,
    /// Absolute.
    pub(crate) file: String,
    pub(crate) uri: String,
    pub(crate) language: &'static str,
    pub(crate) version: i64,
    pub(crate) text: Arc<str>,
    serial: u64,
    opened: u64,
    synced: u64,
    synced_at: Instant,
}

impl Documents {
    pub(crate) fn new(root: &Path) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            root: root.to_owned(),
            open: HashMap::new(),
            versions: HashMap::new(),
            generation: 0,
            uses: 0,
            bytes: 0,
        }))
    }

    /// The text and version the server has of a file, when it is open there.
    pub(crate) fn known(&self, path: &str) -> Option<(Arc<str>, i64)> {
        self.open.get(path).map(|document| (document.text.clone(), document.version))
    }

    /// Whether nothing is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Opens again at a new client what the previous one had answered about; the rest is forgotten, since one of it may
    /// be what the previous one died of.
    pub(crate) fn replay(&mut self, client: &Client) {
        self.generation = client.generation;
        self.open.retain(|_, document| document.answered);
        self.bytes = self.open.values().map(|document| document.text.len()).sum();
        for document in self.open.values_mut() {
            document.pulled.clear();
            document.open_at(client);
        }
    }

    /// Shows a text to the server, unless it has it already, without pinning the document.
    /// `false` when the client is not the current one.
    pub(crate) fn show(
        &mut self,
        client: &Client,
        path: &str,
        text: Arc<str>,
        language: &'static str,
    ) -> bool {
        if self.generation != client.generation {
            return false;
        }
        self.uses += 1;
        let used = self.uses;
        let version = self.versions.entry(path.to_owned()).or_default();
        match self.open.get_mut(path) {
            Some(document) if document.text == text => document.used = used,
            Some(document) => {
                *version += 1;
                self.bytes = self.bytes + text.len() - document.text.len();
                document.text = text;
                document.version = *version;
                document.used = used;
                document.answered = false;
                document.change_at(client);
            }
            None => {
                *version += 1;
                self.bytes += text.len();
                let mut document = Document {
                    uri: uri::from_path(&self.root.join(path)),
                    language,
                    version: *version,
                    text,
                    opened: 0,
                    synced: 0,
                    synced_at: Instant::now(),
                    serial: used,
                    pins: 0,
                    used,
                    answered: false,
                    pulled: HashMap::new(),
                };
                document.open_at(client);
                self.open.insert(path.to_owned(), document);
            }
        }
        true
    }

    /// Closes what was not used for the longest time while too much is open.
    fn make_room(&mut self, client: &Client) {
        while self.open.len() > MAX_OPEN || self.bytes > MAX_OPEN_BYTES {
            let unpinned = self.open.iter().filter(|(_, document)| document.pins == 0);
            let Some(path) = unpinned.min_by_key(|(_, document)| document.used).map(|(path, _)| path.clone())
            else {
                return;
            };
            self.close(client, &path);
        }
    }

    /// Closes a document at the server.
    pub(crate) fn close(&mut self, client: &Client, path: &str) {
        if let Some(document) = self.open.remove(path) {
            self.bytes -= document.text.len();
            if self.generation == client.generation {
                client
                    .shared
                    .notify("textDocument/didClose", json!({ "textDocument": { "uri": document.uri } }));
                client.shared.pushed(|pushed| pushed.forget(&self.root.join(path).to_string_lossy()));
            }
        }
    }

    fn with_same_text<T>(&mut self, snapshot: &Snapshot, run: impl FnOnce(&mut Document) -> T) -> Option<T> {
        self.open.get_mut(&snapshot.path).filter(|document| document.version == snapshot.version).map(run)
    }
}

/// Shows a text to the server and pins the document; `None` when the client is not the current one.
pub(crate) fn open(
    documents: &Arc<Mutex<Documents>>,
    client: &Client,
    path: &str,
    text: Arc<str>,
    language: &'static str,
) -> Option<Snapshot> {
    let mut all = lock(documents);
    if !all.show(client, path, text, language) {
        return None;
    }
    let file = all.root.join(path).to_string_lossy().into_owned();
    let document = all.open.get_mut(path)?;
    document.pins += 1;
    let snapshot = Snapshot {
        documents: documents.clone(),
        path: path.to_owned(),
        file,
        uri: document.uri.clone(),
        language: document.language,
        version: document.version,
        text: document.text.clone(),
        serial: document.serial,
        opened: document.opened,
        synced: document.synced,
        synced_at: document.synced_at,
    };
    all.make_room(client);
    Some(snapshot)
}

impl Document {
    fn open_at(&mut self, client: &Client) {
        self.opened = client.shared.pushed(|pushed| pushed.tick());
        self.synced = self.opened;
        self.synced_at = Instant::now();
        client.shared.notify(
            "textDocument/didOpen",
            json!({ "textDocument": {
                "uri": self.uri, "languageId": self.language, "version": self.version, "text": &*self.text,
            } }),
        );
    }

    fn change_at(&mut self, client: &Client) {
        self.pulled.clear();
        if !client.facts.takes_changes {
            client.shared.notify("textDocument/didClose", json!({ "textDocument": { "uri": self.uri } }));
            client.shared.pushed(|pushed| pushed.mark_change());
            self.open_at(client);
            return;
        }
        self.synced = client.shared.pushed(|pushed| pushed.mark_change());
        self.synced_at = Instant::now();
        client.shared.notify(
            "textDocument/didChange",
            json!({
                "textDocument": { "uri": self.uri, "version": self.version },
                "contentChanges": [{ "text": &*self.text }],
            }),
        );
        if client.wants_saves() {
            let mut saved = json!({ "textDocument": { "uri": self.uri } });
            if client.facts.wants_saved_text {
                saved["text"] = json!(&*self.text);
            }
            client.shared.notify("textDocument/didSave", saved);
        }
    }
}

impl Snapshot {
    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked {
            path: &self.file,
            version: self.version,
            opened: self.opened,
            synced: self.synced,
            synced_at: self.synced_at,
        }
    }

    /// Whether the server still has this text.
    pub(crate) fn is_current(&self) -> bool {
        lock(&self.documents).with_same_text(self, |_| ()).is_some()
    }

    /// Notes that the server answered about this text.
    pub(crate) fn mark_answered(&self) {
        lock(&self.documents).with_same_text(self, |document| document.answered = true);
    }

    /// The last result of a pull by a provider, with its id.
    pub(crate) fn pulled(&self, provider: &Option<String>) -> Option<(String, Vec<Value>)> {
        lock(&self.documents)
            .with_same_text(self, |document| document.pulled.get(provider).cloned())
            .flatten()
    }

    pub(crate) fn set_pulled(&self, provider: Option<String>, result: Option<(String, Vec<Value>)>) {
        lock(&self.documents).with_same_text(self, |document| match result {
            Some(result) => _ = document.pulled.insert(provider, result),
            None => _ = document.pulled.remove(&provider),
        });
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut documents = lock(&self.documents);
        if let Some(document) =
            documents.open.get_mut(&self.path).filter(|document| document.serial == self.serial)
        {
            document.pins = document.pins.saturating_sub(1);
        }
    }
}
