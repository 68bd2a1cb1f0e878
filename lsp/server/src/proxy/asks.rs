//! What servers ask: answered here where the proxy knows, else of the client, with ids and tokens mapped both ways.

use std::collections::HashMap;
use std::time::Duration;

use agents_domain::language_server::section;
use agents_domain::ports::language_servers::FileEventKind;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::incoming::key;
use super::server::Registration;
use super::{Proxy, State};
use crate::documents::DocumentUri;
use crate::front::dispatch;
use crate::front::message::RequestId;
use crate::front::reply;
use crate::requests::settings::SECTION;

/// How long after a command a server may still ask for the edits of it.
const EDITS_AFTER_COMMAND: Duration = Duration::from_secs(10);

/// Registrations kept of one server; one that loops must not fill the memory.
const MAX_REGISTRATIONS: usize = 4096;

/// What the client was asked for servers.
#[derive(Default)]
pub(crate) struct Asks {
    /// Our ids of what servers asked, by theirs.
    forwarded: HashMap<(usize, String), i64>,
    /// Progress tokens of servers (as JSON) by the token the client knows.
    tokens: HashMap<String, (usize, String)>,
    /// Refreshes the client has not answered, and whether it is to be asked again.
    refreshing: HashMap<String, bool>,
    /// Registrations passed on: server and id by the id the client knows.
    registered: HashMap<String, String>,
}

#[derive(Deserialize)]
struct Tokened<'a> {
    #[serde(borrow)]
    token: &'a RawValue,
}

impl Proxy {
    /// A request of a server.
    pub(super) fn asked_by(
        &self,
        ix: usize,
        generation: u64,
        id: &RequestId,
        method: &str,
        params: Option<&str>,
    ) {
        let snapshot = self.session.latest();
        let client = snapshot.client();
        let mut state = self.state();
        if state.servers[ix].generation != generation {
            return;
        }
        let done = |state: &State, result: &str| state.servers[ix].send(reply::raw(id, Ok(result)));
        match method {
            "workspace/configuration" => self.configuration(&mut state, ix, id, params.unwrap_or("{}")),
            "client/registerCapability" => {
                self.register(&mut state, ix, params.unwrap_or("{}"));
                done(&state, "null");
            }
            "client/unregisterCapability" => {
                self.unregister(&mut state, ix, params.unwrap_or("{}"));
                done(&state, "null");
            }
            "workspace/applyEdit" => {
                let server = &state.servers[ix];
                let recent = server.commanded.is_some_and(|at| at.elapsed() < EDITS_AFTER_COMMAND);
                if server.commands > 0 || recent {
                    self.forward_ask(&mut state, ix, id, method, params);
                } else {
                    let reason = "edits are taken only while a command of this server runs";
                    done(&state, &json!({ "applied": false, "failureReason": reason }).to_string());
                }
            }
            "window/workDoneProgress/create" => {
                let token = params.and_then(|params| serde_json::from_str::<Tokened<'_>>(params).ok());
                if let (Some(token), true) = (token, client.supports("/window/workDoneProgress")) {
                    let server = key(token.token);
                    let name = format!("agents/{}/{}", state.servers[ix].name(), server);
                    let params = json!({ "token": name }).to_string();
                    state.asks.tokens.insert(name, (ix, server));
                    self.forward_ask(&mut state, ix, id, method, Some(&params));
                } else {
                    done(&state, "null");
                }
            }
            "workspace/workspaceFolders" => {
                let folders: Vec<Value> = snapshot
                    .folders()
                    .iter()
                    .map(|folder| json!({ "uri": folder.uri.as_str(), "name": folder.name }))
                    .collect();
                done(&state, &Value::Array(folders).to_string());
            }
            "workspace/diagnostic/refresh" => {
                done(&state, "null");
                self.pull_all(&mut state, ix);
            }
            _ if method.starts_with("workspace/") && method.ends_with("/refresh") => {
                done(&state, "null");
                let feature = method.trim_end_matches("/refresh").trim_start_matches("workspace/");
                if client.supports(&format!("/workspace/{feature}/refreshSupport")) {
                    self.refresh(&mut state, method);
                }
            }
            "window/showDocument" if !client.supports("/window/showDocument/support") => {
                done(&state, "{\"success\":false}");
            }
            _ => self.forward_ask(&mut state, ix, id, method, params),
        }
    }

    /// Asks the client for a server.
    fn forward_ask(&self, state: &mut State, ix: usize, id: &RequestId, method: &str, params: Option<&str>) {
        let generation = state.servers[ix].generation;
        let (me, asked) = (self.me.clone(), id.clone());
        let ours = self.client.forward(method, params, move |outcome| {
            let Some(proxy) = me.upgrade() else { return };
            let mut state = proxy.state();
            state.asks.forwarded.remove(&(ix, asked.as_json().to_owned()));
            if state.servers[ix].generation == generation {
                state.servers[ix].send(reply::raw(&asked, outcome));
            }
        });
        state.asks.forwarded.insert((ix, id.as_json().to_owned()), ours);
    }

    /// A server takes a request to the client back.
    pub(super) fn cancelled_by(&self, state: &mut State, ix: usize, params: &str) {
        #[derive(Deserialize)]
        struct Cancel<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let Ok(cancel) = serde_json::from_str::<Cancel<'_>>(params) else { return };
        if let Some(ours) = state.asks.forwarded.remove(&(ix, key(cancel.id))) {
            self.client.cancel(ours);
            if let Some(id) = RequestId::from_json(cancel.id.get()) {
                state.servers[ix].send(reply::error(Some(&id), -32800, "the request was cancelled"));
            }
        }
    }

    /// Passes progress on, under the name the client has for it.
    pub(super) fn progressed(&self, state: &mut State, ix: usize, params: &str) {
        let Ok(progress) = serde_json::from_str::<Tokened<'_>>(params) else { return };
        let silenced = &mut state.servers[ix].silenced;
        if !silenced.is_empty() {
            let value: Value = serde_json::from_str(params).unwrap_or_default();
            if let Some(at) = silenced.iter().position(|token| *token == value["token"]) {
                if value["value"]["kind"] == "end" {
                    silenced.remove(at);
                }
                return;
            }
        }
        let name = format!("agents/{}/{}", state.servers[ix].name(), key(progress.token));
        let params = match state.asks.tokens.contains_key(&name) {
            // A token of the client's own.
            false => params.to_owned(),
            true => {
                let mut value: Value = serde_json::from_str(params).unwrap_or_default();
                if value["value"]["kind"] == "end" {
                    state.asks.tokens.remove(&name);
                }
                value["token"] = name.into();
                value.to_string()
            }
        };
        self.client.post(reply::notification("$/progress", Some(&params)));
    }

    /// The client cancels a progress; whether it is one of a server.
    pub(super) fn progress_cancelled(&self, params: &str) -> bool {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let state = self.state();
        let found = params["token"].as_str().and_then(|name| state.asks.tokens.get(name));
        let Some((ix, token)) = found else { return false };
        let params = ["{\"token\":", token, "}"].concat();
        state.servers[*ix].send(reply::notification("window/workDoneProgress/cancel", Some(&params)));
        true
    }

    /// One refresh of a kind at a time; what is wanted meanwhile is one more.
    pub(super) fn refresh(&self, state: &mut State, method: &str) {
        if let Some(again) = state.asks.refreshing.get_mut(method) {
            *again = true;
            return;
        }
        state.asks.refreshing.insert(method.to_owned(), false);
        let (me, method) = (self.me.clone(), method.to_owned());
        self.client.forward(&method.clone(), None, move |_| {
            let Some(proxy) = me.upgrade() else { return };
            let mut state = proxy.state();
            if state.asks.refreshing.remove(&method) == Some(true) {
                proxy.refresh(&mut state, &method);
            }
        });
    }

    /// What is registered for the server, with what the client has for it laid over.
    fn configuration(&self, state: &mut State, ix: usize, id: &RequestId, params: &str) {
        let (generation, id) = (state.servers[ix].generation, id.clone());
        self.settle(state, ix, params, move |state, items, both| {
            let server = &state.servers[ix];
            if server.generation == generation {
                if let Some(link) = &server.link {
                    link.process.is_configured(items, both);
                }
                server.send(reply::raw(&id, Ok(&both.to_string())));
            }
        });
    }

    /// Finds the answer to a server's `workspace/configuration`, at once or when the client has said its part.
    fn settle(
        &self,
        state: &mut State,
        ix: usize,
        params: &str,
        settled: impl FnOnce(&mut State, &Value, &Value) + Send + 'static,
    ) {
        let mut asked: Value = serde_json::from_str(params).unwrap_or_default();
        let asked = asked["items"].take();
        let settings = &state.servers[ix].definition.workspace_settings;
        let items = asked.as_array().into_iter().flatten();
        let mut both: Vec<Value> = items.map(|item| section(settings, item["section"].as_str())).collect();
        if !self.session.latest().client().supports("/workspace/configuration") {
            return settled(state, &asked, &Value::Array(both));
        }
        let me = self.me.clone();
        self.client.forward("workspace/configuration", Some(params), move |outcome| {
            let Some(proxy) = me.upgrade() else { return };
            let theirs: Vec<Value> =
                outcome.ok().and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
            for (at, theirs) in theirs.into_iter().enumerate().take(both.len()) {
                dispatch::merge(&mut both[at], theirs);
            }
            settled(&mut proxy.state(), &asked, &Value::Array(both));
        });
    }

    /// Whether a server that came to us warm was told the settings that hold now; else it is told to ask again.
    pub(super) fn check_configuration(&self, state: &mut State, ix: usize, configured: Vec<(Value, Value)>) {
        let generation = state.servers[ix].generation;
        for (items, told) in configured {
            let params = json!({ "items": items }).to_string();
            self.settle(state, ix, &params, move |state, items, both| {
                let server = &state.servers[ix];
                if server.generation != generation {
                    return;
                }
                if let Some(link) = &server.link {
                    link.process.is_configured(items, both);
                }
                if *both != told {
                    let settings = json!({ "settings": server.definition.workspace_settings });
                    server.notify("workspace/didChangeConfiguration", &settings);
                }
            });
        }
    }

    /// The client's settings are others: each server gets them over what is registered for it.
    pub(super) fn configured(&self, params: &str) {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let mut theirs = params["settings"].clone();
        if let Some(sections) = theirs.as_object_mut() {
            sections.remove(SECTION);
        }
        let state = self.state();
        for server in state.servers.iter().filter(|server| server.is_running()) {
            let mut settings = server.definition.workspace_settings.clone();
            dispatch::merge(&mut settings, theirs.clone());
            server.notify("workspace/didChangeConfiguration", &json!({ "settings": settings }));
        }
    }

    /// Files changed on disk: each server hears of those it watches.
    pub(super) fn files_changed(&self, params: &str) {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let state = self.state();
        let all: Vec<(&Value, _, FileEventKind)> = params["changes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|change| {
                let path = DocumentUri::parse(change["uri"].as_str()?).ok()?.to_path()?;
                let kind = match change["type"].as_u64()? {
                    1 => FileEventKind::Created,
                    2 => FileEventKind::Changed,
                    _ => FileEventKind::Deleted,
                };
                Some((change, path, kind))
            })
            .collect();
        for server in state.servers.iter().filter(|server| server.is_running()) {
            let watches = |(_, path, kind): &&(&Value, std::path::PathBuf, FileEventKind)| {
                server
                    .registrations
                    .iter()
                    .any(|one| one.watch.as_ref().is_some_and(|watch| watch(path, *kind)))
            };
            let wanted: Vec<&Value> = all.iter().filter(watches).map(|(change, ..)| *change).collect();
            if !wanted.is_empty() {
                server.notify("workspace/didChangeWatchedFiles", &json!({ "changes": wanted }));
            }
        }
    }

    pub(super) fn register(&self, state: &mut State, ix: usize, params: &str) {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let snapshot = self.session.latest();
        let mut pass_on = Vec::new();
        for item in params["registrations"].as_array().into_iter().flatten() {
            let (Some(id), Some(method)) = (item["id"].as_str(), item["method"].as_str()) else { continue };
            let options = item["registerOptions"].clone();
            let watch =
                (method == "workspace/didChangeWatchedFiles").then(|| self.launcher.watches(&options));
            let registrations = &mut state.servers[ix].registrations;
            registrations.retain(|known| known.id != id);
            if registrations.len() >= MAX_REGISTRATIONS {
                continue;
            }
            registrations.push(Registration { id: id.to_owned(), method: method.to_owned(), options, watch });
            let ours = super::features::FEATURES.iter().any(|feature| feature.registered == method)
                || matches!(method, "textDocument/diagnostic" | "workspace/executeCommand")
                || method.starts_with("textDocument/did");
            if !ours && snapshot.client().supports(&format!("/{method}/dynamicRegistration")) {
                let mut passed = item.clone();
                let name = format!("agents/{}/{id}", state.servers[ix].name());
                passed["id"] = name.clone().into();
                state.asks.registered.insert(name, method.to_owned());
                pass_on.push(passed);
            }
        }
        if !pass_on.is_empty() {
            let params = json!({ "registrations": pass_on }).to_string();
            self.client.forward("client/registerCapability", Some(&params), |_| {});
        }
        self.offer(state);
        if state.servers[ix].pulls().is_some() {
            self.pull_all(state, ix);
        }
    }

    fn unregister(&self, state: &mut State, ix: usize, params: &str) {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let items = [&params["unregisterations"], &params["unregistrations"]];
        let ids: Vec<&str> = items
            .into_iter()
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(|item| item["id"].as_str())
            .collect();
        state.servers[ix].registrations.retain(|known| !ids.contains(&known.id.as_str()));
        let prefix = format!("agents/{}/", state.servers[ix].name());
        self.take_back(state, |name| name.strip_prefix(&prefix).is_some_and(|id| ids.contains(&id)));
        self.offer(state);
    }

    /// What a server that is gone registered with the client, and its progress, end with it.
    pub(super) fn withdraw(&self, state: &mut State, ix: usize) {
        let prefix = format!("agents/{}/", state.servers[ix].name());
        self.take_back(state, |name| name.starts_with(&prefix));
        let over: Vec<String> = state
            .asks
            .tokens
            .iter()
            .filter(|(_, (server, _))| *server == ix)
            .map(|(name, _)| name.clone())
            .collect();
        for name in over {
            state.asks.tokens.remove(&name);
            self.client.notify_raw("$/progress", json!({ "token": name, "value": { "kind": "end" } }));
        }
        let open: Vec<(usize, String)> =
            state.asks.forwarded.keys().filter(|(server, _)| *server == ix).cloned().collect();
        for asked in open {
            if let Some(ours) = state.asks.forwarded.remove(&asked) {
                self.client.cancel(ours);
            }
        }
    }

    fn take_back(&self, state: &mut State, which: impl Fn(&str) -> bool) {
        let names: Vec<String> = state.asks.registered.keys().filter(|name| which(name)).cloned().collect();
        let gone: Vec<Value> = names
            .into_iter()
            .filter_map(|name| {
                let method = state.asks.registered.remove(&name)?;
                Some(json!({ "id": name, "method": method }))
            })
            .collect();
        if !gone.is_empty() {
            let params = json!({ "unregisterations": gone }).to_string();
            self.client.forward("client/unregisterCapability", Some(&params), |_| {});
        }
    }
}
