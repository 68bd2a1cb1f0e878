//! Pushed diagnostics: those of files that are not open, and of open ones when the client does not pull.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::json;
use tower_lsp::lsp_types::Diagnostic;

use super::world::{FileKey, World};
use crate::Snapshot;
use crate::documents::{Document, DocumentUri};
use crate::requests::{Shared, diagnostic};

/// What the client was pushed.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    pushed: HashMap<DocumentUri, (bool, Vec<Diagnostic>)>,
}

impl Publisher {
    /// Pushes what is other than it was. A document that was opened since is pushed again, in the client's spelling.
    pub fn publish(&mut self, shared: &Shared, world: &World, snapshot: &Snapshot) {
        let mut wanted = wanted(world, snapshot);
        if let Some(syntax) = shared.syntax().filter(|_| !diagnostic::pulls(snapshot.client())) {
            for document in snapshot.documents() {
                let errors = syntax.errors(document);
                if !errors.is_empty() {
                    let entry = wanted.entry(document.uri().clone()).or_insert_with(|| (true, Vec::new()));
                    entry.1.extend(errors);
                }
            }
        }
        for (uri, (open, found)) in &wanted {
            if self.pushed.get(uri).is_none_or(|known| known != &(*open, found.clone())) {
                push(shared, uri, found);
            }
        }
        for (uri, (_, found)) in &self.pushed {
            if !wanted.contains_key(uri) && !found.is_empty() {
                push(shared, uri, &[]);
            }
        }
        self.pushed = wanted;
    }
}

/// Together with what other servers say about the file, where there are any.
fn push(shared: &Shared, uri: &DocumentUri, found: &[Diagnostic]) {
    if let Some(proxy) = &shared.proxy {
        return proxy.publish_own(uri, found);
    }
    let params = json!({ "uri": uri.as_str(), "diagnostics": found });
    shared.client.notify_raw("textDocument/publishDiagnostics", params);
}

/// What is to be pushed, and whether it is of an open document.
fn wanted(world: &World, snapshot: &Snapshot) -> HashMap<DocumentUri, (bool, Vec<Diagnostic>)> {
    let named = world.troubles.values().flat_map(|trouble| &trouble.files);
    let checked = world.checks.values().flat_map(|checks| checks.failures.iter().map(|at| &at.file));
    let broken = world.violations.values().flat_map(|all| all.iter().map(|violated| &violated.file));
    let files: HashSet<&FileKey> =
        world.questions.files().chain(named).chain(checked).chain(broken).collect();
    let pulls = diagnostic::pulls(snapshot.client());
    let mut wanted = HashMap::new();
    let mut open: HashSet<FileKey> = HashSet::new();
    for document in snapshot.documents().filter(|_| !pulls) {
        let found = diagnostic::of_entity(world, document);
        if !found.is_empty() {
            wanted.insert(document.uri().clone(), (true, found));
        }
    }
    for document in snapshot.documents() {
        let Some(file) = file_of(world, document).filter(|file| files.contains(file)) else { continue };
        if !pulls {
            let saved = read(world, &file);
            let found =
                diagnostic::of_file(world, &file, document.text(), saved.as_deref(), snapshot.client());
            wanted.entry(document.uri().clone()).or_insert((true, Vec::new())).1.extend(found);
        }
        open.insert(file);
    }
    for file in files {
        let Some(path) = world.registry.path(file).filter(|_| !open.contains(file)) else { continue };
        let (Some(uri), true) = (DocumentUri::from_path(&path), in_folders(&path, snapshot)) else {
            continue;
        };
        let text = snapshot.text(&read(world, file).unwrap_or_default());
        wanted.insert(uri, (false, diagnostic::of_file(world, file, &text, None, snapshot.client())));
    }
    wanted
}

fn in_folders(path: &Path, snapshot: &Snapshot) -> bool {
    snapshot.folders().is_empty() || snapshot.folder_of(path).is_some()
}

fn read(world: &World, file: &FileKey) -> Option<String> {
    let bytes = std::fs::read(world.registry.path(file)?).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The file a document is, by its path or by where that leads.
fn file_of(world: &World, document: &Document) -> Option<FileKey> {
    let path = document.uri().to_path()?;
    world.registry.place(&path).or_else(|| world.registry.place(&path.canonicalize().ok()?))
}
