//! Documents: what the client opens, changes, saves and closes is told to each server in the client's order, in the way
//! that the server asked for.

use serde_json::{Value, json};

use super::server::{Server, Status, SyncKind};
use super::{Proxy, State};
use crate::documents::{Document, DocumentUri};
use crate::front::reply;

impl Proxy {
    /// Applies a message of text synchronisation to the session and passes it on. Both happen under the lock, so that a
    /// server that comes up meanwhile is shown the document exactly once, before or after the change.
    pub fn synchronise(&self, method: &str, params: &str, uri: &DocumentUri, apply: impl FnOnce() -> bool) {
        let mut state = self.state();
        let closed =
            (method == "textDocument/didClose").then(|| self.session.latest().document(uri).cloned());
        if !apply() {
            return;
        }
        let snapshot = self.session.latest();
        match (method, snapshot.document(uri)) {
            ("textDocument/didOpen", Some(document)) => self.opened(&mut state, params, document),
            ("textDocument/didChange", Some(document)) => self.changed(&mut state, params, document),
            ("textDocument/didSave", Some(document)) => saved(&mut state, document),
            ("textDocument/didClose", _) => {
                if let Some(Some(document)) = closed {
                    closed_document(&mut state, params, document.uri());
                }
            }
            _ => {}
        }
        self.after_change(&mut state, method, uri);
    }

    /// Whether a server serves a document.
    pub(super) fn serves(&self, server: &Server, document: &Document) -> bool {
        document.uri().scheme() != "agents"
            && self.launcher.serves(&server.definition, document.language_id())
    }

    fn opened(&self, state: &mut State, params: &str, document: &Document) {
        for ix in 0..state.servers.len() {
            if !self.serves(&state.servers[ix], document) {
                continue;
            }
            let server = &mut state.servers[ix];
            match server.status {
                Status::Idle => self.start(state, ix, document.uri().to_path()),
                Status::Running => {
                    if !server.is_shown(document) {
                        server.send(reply::notification(
                            "textDocument/didClose",
                            Some(&identified(document.uri())),
                        ));
                    }
                    server.send(reply::notification("textDocument/didOpen", Some(params)));
                }
                Status::Starting | Status::Failed(_) => {}
            }
        }
        state.board.reopen(document.uri());
    }

    fn changed(&self, state: &mut State, params: &str, document: &Document) {
        let mut whole = None;
        for server in state.servers.iter().filter(|server| server.open.contains(document.uri())) {
            let params = match server.sync_kind() {
                SyncKind::None => continue,
                SyncKind::Incremental => params,
                SyncKind::Full => whole.get_or_insert_with(|| {
                    json!({
                        "textDocument": { "uri": document.uri().as_str(), "version": document.version() },
                        "contentChanges": [{ "text": document.text().to_string() }],
                    })
                    .to_string()
                }),
            };
            server.send(reply::notification("textDocument/didChange", Some(params)));
        }
    }
}

fn saved(state: &mut State, document: &Document) {
    for server in state.servers.iter().filter(|server| server.open.contains(document.uri())) {
        if let Some(with_text) = server.wants_saves() {
            let mut params = json!({ "textDocument": { "uri": document.uri().as_str() } });
            if with_text {
                params["text"] = document.text().to_string().into();
            }
            server.notify("textDocument/didSave", &params);
        }
    }
}

fn closed_document(state: &mut State, params: &str, uri: &DocumentUri) {
    for server in &mut state.servers {
        if server.open.remove(uri) {
            server.send(reply::notification("textDocument/didClose", Some(params)));
        }
    }
    state.board.reopen(uri);
}

fn identified(uri: &DocumentUri) -> String {
    json!({ "textDocument": { "uri": uri.as_str() } }).to_string()
}

/// The parameters that show a document to a server that comes to it late.
pub(super) fn shown(document: &Document) -> Value {
    json!({ "textDocument": {
        "uri": document.uri().as_str(),
        "languageId": document.language_id(),
        "version": document.version(),
        "text": document.text().to_string(),
    } })
}
