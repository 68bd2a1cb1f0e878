//! Where a request or notification of the client goes.

use std::borrow::Cow;

use serde_json::{Value, json};
use tower_lsp::jsonrpc::ErrorCode;

use super::features::{self, Feature, Own, Strategy};
use super::gather::Gather;
use super::server::Status;
use super::{Deliver, Proxy, State, To, Working, merge};
use crate::documents::{Document, DocumentUri};
use crate::front::message::RequestId;
use crate::front::reply;
use crate::front::scan::members;

/// Whether an item of a call hierarchy stands in a document of ours.
fn is_about_our_page(params: &str) -> bool {
    let params: Option<Value> = serde_json::from_str(params).ok();
    params.is_some_and(|params| params["item"]["uri"].as_str().is_some_and(|uri| uri.starts_with("agents:")))
}

/// What becomes of a request.
enum Route {
    /// Our own features answer it alone.
    Own,
    /// They answer it together with servers.
    Both(u64),
    /// They bring their part of a report.
    Report(u64),
    /// It was sent on, or answered.
    Done,
}

impl Proxy {
    /// Takes a request of the client. `own` asks our own features.
    pub fn request(&self, id: &RequestId, method: &str, params: Option<&str>, own: impl FnOnce(Deliver)) {
        match self.route(id, method, params) {
            Route::Done => {}
            Route::Own => {
                let (client, id) = (self.client.clone(), id.clone());
                // Said to be there for the documents of a server, or by one that is gone.
                let known = features::of(method).is_some();
                own(Box::new(move |outcome| {
                    client.post(match outcome {
                        Err(error) if known && error.code == ErrorCode::MethodNotFound => {
                            reply::raw(&id, Ok("null"))
                        }
                        outcome => reply::outcome(&id, outcome),
                    });
                }));
            }
            Route::Report(report) => {
                let me = self.me.clone();
                own(Box::new(move |outcome| {
                    if let Some(proxy) = me.upgrade() {
                        proxy.own_report(report, outcome);
                    }
                }));
            }
            Route::Both(gather) => {
                let me = self.me.clone();
                own(Box::new(move |outcome| {
                    if let Some(proxy) = me.upgrade() {
                        proxy.own_answered(gather, outcome);
                    }
                }));
            }
        }
    }

    fn route(&self, id: &RequestId, method: &str, params: Option<&str>) -> Route {
        if method.starts_with("agents/") || method == "workspace/textDocumentContent" {
            return Route::Own;
        }
        let mut state = self.state();
        if state.working.contains_key(id) {
            let words = "another request with this id is not answered yet";
            self.client.post(reply::error(Some(id), -32600, words));
            return Route::Done;
        }
        if method == "workspace/executeCommand" {
            return self.command(&mut state, id, params);
        }
        if let Some(parent) = features::parent(method) {
            if params.is_some_and(is_about_our_page) {
                return Route::Own;
            }
            self.follow_up(&mut state, id, method, parent, params);
            return Route::Done;
        }
        let uri = params.and_then(document_of).and_then(|uri| DocumentUri::parse(&uri).ok());
        if let (Some(uri), "textDocument/diagnostic") = (&uri, method) {
            return Route::Report(self.report(&mut state, id, uri.clone(), params));
        }
        match features::of(method) {
            Some(feature) => self.featured(&mut state, id, feature, params, uri.as_ref()),
            None => self.unknown(&mut state, id, method, params, uri.as_ref()),
        }
    }

    fn featured(
        &self,
        state: &mut State,
        id: &RequestId,
        feature: &'static Feature,
        params: Option<&str>,
        uri: Option<&DocumentUri>,
    ) -> Route {
        let snapshot = self.session.latest();
        let document = uri.and_then(|uri| snapshot.document(uri)).cloned();
        if uri.is_some_and(|uri| uri.scheme() == "agents") {
            return Route::Own;
        }
        let candidates = self.candidates(state, feature, document.as_deref());
        let quiet = || uri.is_some_and(|uri| (self.silence)(feature.method, &snapshot, uri));
        if candidates.is_empty() {
            return Route::Own;
        }
        let own = feature.own != Own::No && !quiet();
        let alone = match candidates.as_slice() {
            [first, rest @ ..] if rest.is_empty() || feature.strategy == Strategy::Owner => {
                (!own && state.servers[*first].is_running()).then_some(*first)
            }
            _ => None,
        };
        if let Some(ix) = alone {
            self.forward(state, ix, id, feature.method, params);
            return Route::Done;
        }
        let gather = state.next_gather;
        state.next_gather += 1;
        let work = Gather::new(id.clone(), feature, params, uri.cloned(), own, &candidates);
        let starting = candidates.iter().any(|ix| state.servers[*ix].status == Status::Starting);
        state.gathers.insert(gather, work);
        state.working.insert(id.clone(), Working::Gather(gather));
        self.advance(state, gather);
        if starting {
            self.later(self.timing.starting, move |proxy| proxy.stop_waiting_for_starts(gather));
        }
        if feature.is_impatient() || feature.is_list() {
            self.later(self.timing.slow, move |proxy| proxy.is_overdue(gather));
        }
        if own { Route::Both(gather) } else { Route::Done }
    }

    /// The servers that have a feature, or may turn out to, in their order; a chosen one first.
    fn candidates(&self, state: &State, feature: &Feature, document: Option<&Document>) -> Vec<usize> {
        let whole_workspace = feature.method == "workspace/symbol";
        let mut candidates: Vec<usize> = (0..state.servers.len())
            .filter(|ix| {
                let server = &state.servers[*ix];
                let serves =
                    whole_workspace || document.is_some_and(|document| self.serves(server, document));
                serves
                    && match server.status {
                        Status::Running => server.provider(feature).is_some(),
                        Status::Starting => feature.lends.is_none_or(|lent| server.definition.lends(lent)),
                        Status::Idle | Status::Failed(_) => false,
                    }
            })
            .collect();
        if feature.strategy == Strategy::Owner {
            let chosen = state.owner(feature);
            if let Some(at) = chosen.and_then(|owner| candidates.iter().position(|ix| *ix == owner)) {
                let owner = candidates.remove(at);
                candidates.insert(0, owner);
            }
        }
        candidates
    }

    /// Sends a request to one server, whose answer is the client's.
    fn forward(&self, state: &mut State, ix: usize, id: &RequestId, method: &str, params: Option<&str>) {
        let to = To::Client { id: id.clone(), method: method.to_owned() };
        let ours = state.ask(ix, method, params, to);
        state.working.insert(id.clone(), Working::Asked(ours));
    }

    fn command(&self, state: &mut State, id: &RequestId, params: Option<&str>) -> Route {
        let name = params.and_then(|params| member(params, "command"));
        let Some(name) = name.and_then(|raw| serde_json::from_str::<String>(raw).ok()) else {
            return Route::Own;
        };
        let wrapped = (name == merge::RUN).then(|| {
            let (server, command, params) = merge::unwrap_command(serde_json::from_str(params?).ok()?)?;
            let ix = state.by_name(&server).filter(|_| state.runs(&server, &command))?;
            Some((ix, params.to_string()))
        });
        let (ix, unwrapped) = match wrapped {
            Some(Some((ix, params))) => (ix, Some(params)),
            Some(None) => {
                let words = "the server that offered this command does not run any more";
                self.client.post(reply::error(Some(id), -32803, words));
                return Route::Done;
            }
            None => {
                let runs = |ix: &usize| state.servers[*ix].is_running() && state.servers[*ix].runs(&name);
                match (0..state.servers.len()).find(runs).filter(|_| !name.starts_with("agents.")) {
                    Some(ix) => (ix, None),
                    None => return Route::Own,
                }
            }
        };
        state.servers[ix].commands += 1;
        self.forward(state, ix, id, "workspace/executeCommand", unwrapped.as_deref().or(params));
        Route::Done
    }

    /// A request about an item of an earlier answer goes to whoever that item is of.
    fn follow_up(&self, state: &mut State, id: &RequestId, method: &str, parent: &str, params: Option<&str>) {
        let mut item: Value = params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
        if let Some(server) = merge::unmark(&mut item) {
            match state.by_name(&server).filter(|ix| state.servers[*ix].is_running()) {
                Some(ix) => self.forward(state, ix, id, method, Some(&item.to_string())),
                None => self.client.post(reply::raw(id, Ok(&item.to_string()))),
            }
            return;
        }
        match state.origins.get(parent).copied().filter(|ix| state.servers[*ix].is_running()) {
            Some(ix) => self.forward(state, ix, id, method, params),
            // An item of ours is complete.
            None if method.ends_with("/resolve") => {
                self.client.post(reply::raw(id, Ok(params.unwrap_or("null"))))
            }
            None => self.client.post(reply::raw(id, Ok("null"))),
        }
    }

    /// A method that no table has goes to the one server it can be meant for.
    fn unknown(
        &self,
        state: &mut State,
        id: &RequestId,
        method: &str,
        params: Option<&str>,
        uri: Option<&DocumentUri>,
    ) -> Route {
        match self.meant(state, method, uri).as_slice() {
            [ix] => {
                self.forward(state, *ix, id, method, params);
                Route::Done
            }
            _ => Route::Own,
        }
    }

    /// The servers a method of their own can be meant for: those that registered it, else those of the document, else
    /// all.
    fn meant(&self, state: &State, method: &str, uri: Option<&DocumentUri>) -> Vec<usize> {
        let running = |ix: &usize| state.servers[*ix].is_running();
        let all = || (0..state.servers.len()).filter(running);
        let registered: Vec<usize> =
            all().filter(|ix| state.servers[*ix].registered(method).next().is_some()).collect();
        match (registered.is_empty(), uri) {
            (false, _) => registered.into_iter().take(1).collect(),
            (true, Some(uri)) => all().filter(|ix| state.servers[*ix].open.contains(uri)).collect(),
            (true, None) => all().collect(),
        }
    }

    /// Takes a notification of the client; whether our own features are to hear of it, too.
    pub fn notification(&self, method: &str, params: &str) -> bool {
        let state = self.state();
        let params = Some(params).filter(|params| *params != "null");
        match method {
            // Servers were told when they started.
            "initialized" => true,
            "workspace/didChangeConfiguration" => {
                drop(state);
                self.configured(params.unwrap_or("{}"));
                true
            }
            "workspace/didChangeWatchedFiles" => {
                drop(state);
                self.files_changed(params.unwrap_or("{}"));
                true
            }
            "workspace/didChangeWorkspaceFolders" => {
                for server in state.servers.iter().filter(|server| server.is_running()) {
                    let wants = &server.capabilities["workspace"]["workspaceFolders"]["changeNotifications"];
                    if !matches!(wants, Value::Null | Value::Bool(false))
                        || server.registered(method).next().is_some()
                    {
                        server.send(reply::notification(method, params));
                    }
                }
                true
            }
            "window/workDoneProgress/cancel" => {
                drop(state);
                !self.progress_cancelled(params.unwrap_or("{}"))
            }
            _ => {
                let uri = params.and_then(document_of).and_then(|uri| DocumentUri::parse(&uri).ok());
                for ix in self.meant(&state, method, uri.as_ref()) {
                    state.servers[ix].send(reply::notification(method, params));
                }
                false
            }
        }
    }

    /// The client takes a request back: it is answered at once, whatever servers still say.
    pub fn cancel(&self, id: &RequestId) {
        let mut state = self.state();
        match state.working.remove(id) {
            None => return,
            Some(Working::Asked(ours)) => {
                if let Some(asked) = state.asked.remove(&ours) {
                    if matches!(&asked.to, To::Client { method, .. } if method == "workspace/executeCommand")
                    {
                        state.commanded(asked.server);
                    }
                    state.servers[asked.server].notify("$/cancelRequest", &json!({ "id": ours }));
                }
            }
            Some(Working::Gather(gather)) => drop(state.drop_gather(gather)),
            Some(Working::Report(report)) => drop(state.reports.remove(&report)),
        }
        self.client.post(reply::error(Some(id), -32800, "the request was cancelled"));
    }
}

impl State {
    /// The server that was chosen for what one server does alone.
    pub(super) fn owner(&self, feature: &Feature) -> Option<usize> {
        let name = match feature.registered {
            "textDocument/rename" => "rename",
            "textDocument/semanticTokens" => "semanticTokens",
            _ => "formatting",
        };
        self.by_name(self.owners.get(name)?)
    }
}

/// The raw value of a member of an object.
pub(super) fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    members(object).map_while(Result::ok).find(|(name, _)| name == key).map(|(_, value)| value)
}

/// `textDocument.uri` of parameters.
fn document_of(params: &str) -> Option<Cow<'_, str>> {
    let raw = member(member(params, "textDocument")?, "uri")?;
    match raw.strip_prefix('"')?.strip_suffix('"')? {
        plain if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(raw).ok().map(Cow::Owned),
    }
}

/// So that the front can hold one without naming its parts.
impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}
