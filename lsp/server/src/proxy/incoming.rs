//! What servers say: answers go to whoever asked, diagnostics to the board, the rest to the client.

use std::borrow::Cow;
use std::time::Instant;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Asked, Proxy, State, To, features};
use crate::front::message::{self, Message, RequestId};
use crate::front::reply;
use crate::front::scan;

impl Proxy {
    /// Takes a message of a server; `false` when there is no use in reading on.
    pub(super) fn receive(&self, ix: usize, generation: u64, mut body: Vec<u8>) -> bool {
        let Ok(text) = std::str::from_utf8(&body) else {
            self.gone(ix, generation, "sent a message that is not UTF-8");
            return false;
        };
        if let Some(at) = scan::response_id(text) {
            let mut state = self.state();
            if state.servers[ix].generation != generation {
                return false;
            }
            state.servers[ix].heard = Instant::now();
            let asked = text[at.clone()].parse().ok().and_then(|id| Some((id, state.take_asked(ix, id)?)));
            let Some((id, asked)) = asked else {
                tracing::debug!(server = ix, "a server answered a request nobody waits for");
                return true;
            };
            if let To::Client { id: client, method } = &asked.to
                && !is_rewritten(&state, method)
            {
                self.finished(&mut state, ix, client, method);
                drop(state);
                // Nothing but the id is another.
                body.splice(at, client.as_json().bytes());
                self.client.post(body);
                return true;
            }
            drop(state);
            return self.answered_whole(ix, generation, id, asked, text);
        }
        {
            let mut state = self.state();
            if state.servers[ix].generation != generation {
                return false;
            }
            state.servers[ix].heard = Instant::now();
        }
        match message::look(&body) {
            Ok(Message::Response { id, outcome }) => {
                let mut state = self.state();
                if state.servers[ix].generation != generation {
                    return false;
                }
                let asked = id.as_i64().and_then(|id| Some((id, state.take_asked(ix, id)?)));
                drop(state);
                if let Some((id, asked)) = asked {
                    self.answered(ix, generation, id, asked, outcome);
                }
            }
            Ok(Message::Request { id, method, params }) => {
                self.asked_by(ix, generation, &id, &method, params)
            }
            Ok(Message::Notification { method, params }) => self.notified(ix, generation, &method, params),
            Err(invalid) => tracing::warn!(server = ix, ?invalid, "a server's message is left out"),
        }
        true
    }

    /// An answer of which more is to be read than its id.
    fn answered_whole(&self, ix: usize, generation: u64, id: i64, asked: Asked, text: &str) -> bool {
        match message::look(text.as_bytes()) {
            Ok(Message::Response { outcome, .. }) => self.answered(ix, generation, id, asked, outcome),
            _ => {
                let error = r#"{"code":-32603,"message":"the server's answer is no JSON"}"#;
                self.answered(ix, generation, id, asked, Err(error));
            }
        }
        true
    }

    fn answered(&self, ix: usize, generation: u64, id: i64, asked: Asked, outcome: Result<&str, &str>) {
        if let To::Initialize = asked.to {
            return self.initialized(ix, generation, outcome);
        }
        let mut state = self.state();
        match asked.to {
            To::Client { id, method } => {
                self.finished(&mut state, ix, &id, &method);
                let mapped = outcome.map(|result| rewritten(&state, ix, &method, result));
                let body = match &mapped {
                    Ok(result) => reply::raw(&id, Ok(result)),
                    Err(error) => reply::raw(&id, Err(error)),
                };
                drop(state);
                self.client.post(body);
            }
            To::Part { gather, part } => {
                let outcome = outcome.map(str::to_owned).map_err(str::to_owned);
                self.part_answered(&mut state, gather, part, outcome);
            }
            To::Pull { uri, version } => self.pulled(&mut state, ix, (&uri, version), id, outcome),
            To::Shutdown => {
                state.servers[ix].send(reply::notification("exit", None));
                if let Some(link) = &state.servers[ix].link {
                    link.outbox.close();
                }
            }
            // Any answer is one.
            To::Initialize | To::Probe => {}
        }
    }

    /// A request of the client has its answer from one server alone.
    fn finished(&self, state: &mut State, ix: usize, id: &RequestId, method: &str) {
        state.working.remove(id);
        if method == "workspace/executeCommand" {
            state.commanded(ix);
        }
        if let Some(feature) = features::of(method) {
            state.origins.insert(feature.method, ix);
        }
    }

    fn notified(&self, ix: usize, generation: u64, method: &str, params: Option<&str>) {
        let mut state = self.state();
        if state.servers[ix].generation != generation {
            return;
        }
        match method {
            "textDocument/publishDiagnostics" => self.published(&mut state, ix, params.unwrap_or("null")),
            "$/progress" => self.progressed(&mut state, ix, params.unwrap_or("null")),
            "$/cancelRequest" => self.cancelled_by(&mut state, ix, params.unwrap_or("null")),
            // Log lines say whose they are; editors show them in one place.
            "window/logMessage" => {
                let name = state.servers[ix].name();
                drop(state);
                let mut params: Value =
                    params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
                let message = params["message"].as_str().unwrap_or_default();
                let message = format!("[{name}] {message}");
                params["message"] = message.into();
                self.client.notify_raw(method, params);
            }
            _ => {
                drop(state);
                self.client.post(reply::notification(method, params));
            }
        }
    }
}

impl State {
    /// A command of the client is over.
    pub(super) fn commanded(&mut self, ix: usize) {
        let server = &mut self.servers[ix];
        server.commands = server.commands.saturating_sub(1);
        server.commanded = Some(std::time::Instant::now());
    }

    /// Takes the entry of a request at a server; `None` for one that is answered, cancelled, or another server's.
    fn take_asked(&mut self, ix: usize, id: i64) -> Option<Asked> {
        if self.asked.get(&id)?.server != ix {
            return None;
        }
        self.asked.remove(&id)
    }
}

/// Whether answers of one server alone are not the client's as they are.
fn is_rewritten(state: &State, method: &str) -> bool {
    matches!(method, "codeAction/resolve" | "codeLens/resolve") || super::tokens::is_mapped(state, method)
}

/// An answer of one server as the client is to read it.
fn rewritten<'a>(state: &State, ix: usize, method: &str, result: &'a str) -> Cow<'a, str> {
    if !matches!(method, "codeAction/resolve" | "codeLens/resolve") {
        return super::tokens::mapped(state, ix, method, result);
    }
    let Ok(mut item) = serde_json::from_str::<Value>(result) else { return Cow::Borrowed(result) };
    super::merge::wrap_command(&mut item, &state.servers[ix].name(), &|server, command| {
        state.runs(server, command)
    });
    Cow::Owned(item.to_string())
}

/// A value as JSON text, for keys of tables.
pub(super) fn key(raw: &RawValue) -> String {
    RequestId::from_json(raw.get()).map_or_else(|| raw.get().to_owned(), |id| id.as_json().to_owned())
}
