//! Diagnostics: pushed sets go to the board, servers that are asked are asked after each change, and the client is told
//! of both together.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tower_lsp::lsp_types::Diagnostic;

use super::board::Set;
use super::{Proxy, State, To};
use crate::documents::DocumentUri;
use crate::front::reply;

/// The questions on the way: one at a time for a server and a document.
#[derive(Default)]
pub(crate) struct Pulls {
    under_way: HashMap<(usize, DocumentUri), Pull>,
    /// The client will be told at the end of the window.
    telling: bool,
}

struct Pull {
    id: i64,
    /// The document is another since.
    again: bool,
}

impl Pulls {
    pub fn is_asking(&self, uri: &DocumentUri) -> bool {
        self.under_way.keys().any(|(_, asked)| asked == uri)
    }

    pub fn forget(&mut self, server: usize) {
        self.under_way.retain(|(ix, _), _| *ix != server);
    }
}

#[derive(Deserialize)]
struct Published<'a> {
    uri: String,
    #[serde(default)]
    version: Option<i64>,
    #[serde(borrow)]
    diagnostics: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    kind: String,
    #[serde(default)]
    result_id: Option<String>,
    #[serde(default)]
    items: Vec<Box<RawValue>>,
    #[serde(default)]
    related_documents: HashMap<String, Report>,
}

impl Proxy {
    /// Our own diagnostics of a file.
    pub fn publish_own(&self, uri: &DocumentUri, found: &[Diagnostic]) {
        let items = found.iter().filter_map(|one| serde_json::value::to_raw_value(one).ok()).collect();
        let mut state = self.state();
        state.board.take_own(uri, items);
        self.tell_soon(&mut state);
    }

    /// `textDocument/publishDiagnostics` of a server.
    pub(super) fn published(&self, state: &mut State, ix: usize, params: &str) {
        let published: Published<'_> = match serde_json::from_str(params) {
            Ok(published) => published,
            Err(error) => return tracing::warn!(%error, "a server's diagnostics cannot be read"),
        };
        let Ok(uri) = DocumentUri::parse(&published.uri) else { return };
        if !state.servers[ix].definition.lends(agents_domain::language_server::Capability::Diagnostics) {
            return;
        }
        let items = published.diagnostics.into_iter().map(ToOwned::to_owned).collect();
        let set = Set { version: published.version, result_id: None, items };
        self.take_set(state, ix, &uri, set);
    }

    fn take_set(&self, state: &mut State, ix: usize, uri: &DocumentUri, set: Set) {
        let now = self.session.latest().document(uri).map(|document| document.version());
        if !state.board.take(uri, ix, set, now) {
            tracing::debug!(document = %uri, "late diagnostics are left out");
        }
        self.tell_soon(state);
    }

    /// What follows from a message about a document.
    pub(super) fn after_change(&self, state: &mut State, method: &str, uri: &DocumentUri) {
        for ix in 0..state.servers.len() {
            let server = &state.servers[ix];
            if method == "textDocument/didClose" {
                if server.is_running() && server.pulls().is_some() {
                    state.board.forget(ix, Some(uri));
                }
            } else if server.open.contains(uri) {
                self.pull(state, ix, uri);
            }
        }
        self.tell_soon(state);
    }

    /// Asks a server for the diagnostics of a document, if it is one that is asked.
    pub(super) fn pull(&self, state: &mut State, ix: usize, uri: &DocumentUri) {
        let server = &state.servers[ix];
        let lends = server.definition.lends(agents_domain::language_server::Capability::Diagnostics);
        let Some(identifier) = server.pulls().filter(|_| lends && server.is_running()) else { return };
        if let Some(pull) = state.pulls.under_way.get_mut(&(ix, uri.clone())) {
            pull.again = true;
            return;
        }
        let mut params = json!({ "textDocument": { "uri": uri.as_str() } });
        if let Some(identifier) = identifier {
            params["identifier"] = identifier.into();
        }
        if let Some(previous) = state.board.result_id(uri, ix) {
            params["previousResultId"] = previous.into();
        }
        let version = self.session.latest().document(uri).map(|document| document.version());
        let to = To::Pull { uri: uri.clone(), version };
        let id = state.ask(ix, "textDocument/diagnostic", Some(&params.to_string()), to);
        state.pulls.under_way.insert((ix, uri.clone()), Pull { id, again: false });
    }

    /// Asks a server anew about all it has open.
    pub(super) fn pull_all(&self, state: &mut State, ix: usize) {
        let open: Vec<DocumentUri> = state.servers[ix].open.iter().cloned().collect();
        open.iter().for_each(|uri| self.pull(state, ix, uri));
    }

    /// The answer to a pull.
    pub(super) fn pulled(
        &self,
        state: &mut State,
        ix: usize,
        (uri, version): (&DocumentUri, Option<i32>),
        id: i64,
        answer: Result<&str, &str>,
    ) {
        let key = (ix, uri.clone());
        let mut again = false;
        if state.pulls.under_way.get(&key).is_some_and(|pull| pull.id == id) {
            again = state.pulls.under_way.remove(&key).is_some_and(|pull| pull.again);
        }
        match answer.map(serde_json::from_str::<Option<Report>>) {
            Ok(Ok(Some(report))) => {
                for (other, report) in report.related_documents {
                    if let (Ok(other), "full") = (DocumentUri::parse(&other), report.kind.as_str()) {
                        let set = Set { version: None, result_id: report.result_id, items: report.items };
                        self.take_set(state, ix, &other, set);
                    }
                }
                if report.kind == "full" {
                    let version = version.map(i64::from);
                    let set = Set { version, result_id: report.result_id, items: report.items };
                    self.take_set(state, ix, uri, set);
                }
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::warn!(document = %uri, %error, "a server's report cannot be read"),
            Err(error) => {
                let error: Value = serde_json::from_str(error).unwrap_or_default();
                let retry = matches!(error["code"].as_i64(), Some(-32802 | -32801));
                if retry && error["data"]["retriggerRequest"] != false {
                    let uri = uri.clone();
                    self.later(self.timing.backoff, move |proxy| proxy.pull(&mut proxy.state(), ix, &uri));
                } else {
                    tracing::debug!(document = %uri, %error, "a server did not tell its diagnostics");
                }
            }
        }
        if again && state.servers[ix].open.contains(uri) {
            self.pull(state, ix, uri);
        }
        self.try_reports(state, uri);
    }

    /// Tells the client at the end of the window, once for all that changed in it.
    pub(super) fn tell_soon(&self, state: &mut State) {
        if state.board.is_dirty() && !std::mem::replace(&mut state.pulls.telling, true) {
            self.later(self.timing.window, |proxy| {
                let mut state = proxy.state();
                state.pulls.telling = false;
                proxy.tell(&mut state);
            });
        }
    }

    fn tell(&self, state: &mut State) {
        let snapshot = self.session.latest();
        let versions = snapshot.client().supports("/textDocument/publishDiagnostics/versionSupport");
        let pulls = self.client_pulls();
        let mut refresh = false;
        for (uri, items) in state.board.changed() {
            let document = snapshot.document(&uri);
            if pulls && document.is_some() {
                refresh = true;
                continue;
            }
            // A document goes by the name that the client has for it.
            let name = document.map_or(uri.as_str(), |document| document.uri().as_str());
            let name = Value::from(name).to_string();
            let version = document.filter(|_| versions).map(|document| document.version());
            let version = version.map_or_else(String::new, |version| format!(",\"version\":{version}"));
            let params = ["{\"uri\":", &name, &version, ",\"diagnostics\":", &items, "}"].concat();
            self.client.post(reply::notification("textDocument/publishDiagnostics", Some(&params)));
        }
        if refresh {
            self.refresh(state, "workspace/diagnostic/refresh");
        }
    }
}
