//! One connection to one running server: requests with deadlines, notifications, and answers to what it asks of us.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents_domain::language_server::section;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::activity::Activity;
use crate::launch::Launch;
use crate::lock;
use crate::process::Process;
use crate::protocol::{self, METHOD_NOT_FOUND, ServerFacts};
use crate::pushed::Pushed;
use crate::registrations::Registrations;
use crate::transport::{self, Outgoing};

/// Partial results kept for one request.
const MAX_PARTIALS: usize = 10_000;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RequestError {
    /// Nothing came in time; the request was cancelled.
    Late,
    /// The connection is gone, with the reason.
    Closed(Arc<str>),
    /// The server answered with an error.
    Refused { code: i64, message: String, data: Value },
}

/// Why a server could not be started.
#[derive(Debug)]
pub(crate) enum StartError {
    /// Trying again would end the same way.
    Permanent(String),
    /// It died on the way.
    Crashed(String),
}

/// How long to wait for one of several answers: longer while the server keeps answering others.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    asked: Instant,
    timeout: Duration,
    last_answer: Option<Arc<Mutex<Instant>>>,
}

impl Patience {
    /// Exactly `timeout` from now.
    pub(crate) fn fixed(timeout: Duration) -> Self {
        Self { asked: Instant::now(), timeout, last_answer: None }
    }

    /// `timeout` from now or from the last answer to anybody, at most ten times as long in all.
    pub(crate) fn shared(timeout: Duration, last_answer: Arc<Mutex<Instant>>) -> Self {
        Self { asked: Instant::now(), timeout, last_answer: Some(last_answer) }
    }

    pub(crate) fn deadline(&self) -> Instant {
        let latest = self.last_answer.as_ref().map_or(self.asked, |at| self.asked.max(*lock(at)));
        latest.min(self.asked + self.timeout * 9) + self.timeout
    }
}

/// A running, initialised server.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) facts: ServerFacts,
    pub(crate) process: Process,
    pub(crate) shared: Arc<Shared>,
    pub(crate) start_time: Duration,
    pub(crate) started: Instant,
    /// Tells the clients of one instance apart.
    pub(crate) generation: u64,
    activity: Mutex<Activity>,
    tasks: Tasks,
}

#[derive(Debug)]
struct Tasks(Vec<AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// What the reading task and the callers share.
#[derive(Debug)]
pub(crate) struct Shared {
    outgoing: Outgoing,
    root: PathBuf,
    settings: Value,
    state: Mutex<State>,
    /// Counts whatever came in; waiters look again when it moves.
    events: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    next_id: i64,
    pending: HashMap<i64, oneshot::Sender<Result<Value, RequestError>>>,
    partials: HashMap<i64, Vec<Value>>,
    closed: Option<Arc<str>>,
    registrations: Registrations,
    pushed: Pushed,
}

impl Client {
    /// Starts a server and initialises it.
    pub(crate) async fn start(
        launch: &Launch,
        settings: &Value,
        timeout: Duration,
        generation: u64,
    ) -> Result<Self, StartError> {
        let begun = Instant::now();
        let link = transport::open(launch, begun + timeout).await.map_err(StartError::Permanent)?;
        let (outgoing, start_writer) = transport::outgoing();
        let shared = Arc::new(Shared {
            outgoing,
            root: launch.root.clone(),
            settings: settings.clone(),
            state: Mutex::default(),
            events: watch::Sender::new(0),
        });
        let tail = link.process.tail.clone();
        let reading = tokio::spawn({
            let (shared, reader) = (shared.clone(), link.reader);
            async move {
                let reason = transport::read(reader, tail, |body| shared.receive(body)).await;
                shared.close(&reason);
            }
        });
        let tasks = Tasks(vec![start_writer(link.writer), reading.abort_handle()]);
        let process = link.process;
        let params = protocol::initialize_params(&launch.root, &launch.init_options);
        let answer = shared.request("initialize", params, &Patience::fixed(timeout)).await;
        let facts = match answer {
            Ok(result) => ServerFacts::read(&result),
            Err(error) => return Err(start_error(error, &process, timeout).await),
        };
        shared.notify("initialized", json!({}));
        if !settings.is_null() {
            shared.notify("workspace/didChangeConfiguration", json!({ "settings": settings }));
        }
        let activity = Mutex::new(Activity::of(process.pid));
        Ok(Self {
            facts,
            process,
            shared,
            start_time: begun.elapsed(),
            started: Instant::now(),
            generation,
            activity,
            tasks,
        })
    }

    pub(crate) fn closed(&self) -> Option<Arc<str>> {
        lock(&self.shared.state).closed.clone()
    }

    /// Ends the connection and the process at once.
    pub(crate) fn kill(&self, reason: &str) {
        self.shared.close(reason);
        self.process.kill();
        self.tasks.0.iter().for_each(AbortHandle::abort);
    }

    /// Why it ended, with what it printed last; waits a moment for the process to end when only its output did.
    pub(crate) async fn post_mortem(&self) -> String {
        let reason = self.closed().unwrap_or_else(|| "is running".into());
        describe_end(&reason, &self.process).await
    }

    /// Asks something no server knows; any answer at all, or any message meanwhile, is a sign of life.
    pub(crate) async fn is_alive(&self, within: Duration) -> bool {
        let before = *self.shared.events.borrow();
        let answer = self.shared.request("$/agents/probe", Value::Null, &Patience::fixed(within)).await;
        match answer {
            Ok(_) | Err(RequestError::Refused { .. }) => true,
            Err(RequestError::Late) => *self.shared.events.borrow() != before,
            Err(RequestError::Closed(_)) => false,
        }
    }

    /// `shutdown`, `exit`, a moment to leave, then the group is killed.
    pub(crate) async fn shut_down(&self, grace: Duration) {
        let _ = self.shared.request("shutdown", Value::Null, &Patience::fixed(grace)).await;
        self.shared.notify("exit", Value::Null);
        let _ = self.process.exited(grace).await;
        self.kill("was shut down");
        let _ = self.process.exited(grace).await;
    }

    /// Identifiers of the pull providers for a language; empty when diagnostics are pushed.
    pub(crate) fn pulls(&self, language: &str) -> Vec<Option<String>> {
        let mut pulls = self.shared.with(|state| state.registrations.pulls(language));
        if let Some(identifier) = &self.facts.pull
            && !pulls.contains(identifier)
        {
            pulls.insert(0, identifier.clone());
        }
        pulls
    }

    pub(crate) fn wants_saves(&self) -> bool {
        self.facts.wants_saves || self.shared.with(|state| state.registrations.saves())
    }

    /// Since when the server's processes rest, where the system tells.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        lock(&self.activity).idle_since()
    }
}

async fn describe_end(reason: &str, process: &Process) -> String {
    let ended = match reason {
        "closed its output" => process.exited(Duration::from_millis(500)).await,
        _ => None,
    };
    let tail = process.tail.text(8);
    let ended = ended.map_or_else(|| reason.to_owned(), |how| format!("ended with {how}"));
    if tail.is_empty() { ended } else { format!("{ended}; it printed:\n{tail}") }
}

async fn start_error(error: RequestError, process: &Process, timeout: Duration) -> StartError {
    match error {
        RequestError::Closed(reason) => StartError::Crashed(describe_end(&reason, process).await),
        RequestError::Late => StartError::Permanent(
            describe_end(&format!("did not answer `initialize` within {} s", timeout.as_secs_f32()), process)
                .await,
        ),
        RequestError::Refused { message, .. } => {
            StartError::Permanent(describe_end(&format!("refused to initialize: {message}"), process).await)
        }
    }
}

/// Cancels a request whose caller has left.
struct Pending<'a> {
    shared: &'a Shared,
    id: i64,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let waiting = self.shared.with(|state| {
            state.partials.remove(&self.id);
            state.pending.remove(&self.id).is_some() && state.closed.is_none()
        });
        if waiting {
            self.shared.notify("$/cancelRequest", json!({ "id": self.id }));
        }
    }
}

impl Shared {
    /// Runs on the state that the server's messages change.
    fn with<T>(&self, run: impl FnOnce(&mut State) -> T) -> T {
        run(&mut lock(&self.state))
    }

    pub(crate) fn pushed<T>(&self, run: impl FnOnce(&mut Pushed) -> T) -> T {
        self.with(|state| run(&mut state.pushed))
    }

    pub(crate) fn registrations<T>(&self, run: impl FnOnce(&Registrations) -> T) -> T {
        self.with(|state| run(&state.registrations))
    }

    /// Moves whenever something came in or the connection ended.
    pub(crate) fn events(&self) -> watch::Receiver<u64> {
        self.events.subscribe()
    }

    /// Room for bulk in the queue, see [`Outgoing::room`].
    pub(crate) async fn room(&self, deadline: Instant) -> bool {
        self.outgoing.room(deadline).await
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message);
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
        patience: &Patience,
    ) -> Result<Value, RequestError> {
        Ok(self.request_with_partials(method, params, patience, false).await?.0)
    }

    /// The same with what came before the answer as partial results, when `partial` asks for them.
    pub(crate) async fn request_with_partials(
        &self,
        method: &str,
        mut params: Value,
        patience: &Patience,
        partial: bool,
    ) -> Result<(Value, Vec<Value>), RequestError> {
        let (sender, mut receiver) = oneshot::channel();
        let id = self.with(|state| {
            if let Some(reason) = &state.closed {
                return Err(RequestError::Closed(reason.clone()));
            }
            state.next_id += 1;
            state.pending.insert(state.next_id, sender);
            if partial {
                state.partials.insert(state.next_id, Vec::new());
            }
            Ok(state.next_id)
        })?;
        let pending = Pending { shared: self, id };
        if partial {
            params["partialResultToken"] = json!(partial_token(id));
        }
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message);
        loop {
            let deadline = patience.deadline();
            tokio::select! {
                answer = &mut receiver => {
                    let partials = self.with(|state| state.partials.remove(&id)).unwrap_or_default();
                    let gone = || RequestError::Closed("the connection ended".into());
                    return answer.unwrap_or_else(|_| Err(gone())).map(|result| (result, partials));
                }
                () = tokio::time::sleep_until(deadline) => {
                    if patience.deadline() <= deadline {
                        drop(pending);
                        return Err(RequestError::Late);
                    }
                }
            }
        }
    }

    fn send(&self, message: &Value) {
        if !self.outgoing.send(message.to_string().as_bytes()) {
            self.close("does not read what it is sent");
        }
    }

    /// Marks the connection as ended and fails whatever waits on it; the first reason stays.
    fn close(&self, reason: &str) {
        let pending = self.with(|state| {
            if state.closed.is_none() {
                state.closed = Some(reason.into());
            }
            std::mem::take(&mut state.pending)
        });
        for sender in pending.into_values() {
            let _ = sender.send(Err(RequestError::Closed(reason.into())));
        }
        self.events.send_modify(|count| *count += 1);
    }

    /// Takes one message of the server. Whatever it is, it must not harm us.
    fn receive(&self, body: &[u8]) {
        let parsed =
            serde_json::from_slice(body).or_else(|_| serde_json::from_str(&String::from_utf8_lossy(body)));
        match parsed {
            Ok(Value::Array(messages)) => messages.into_iter().for_each(|message| self.take(message)),
            Ok(message) => self.take(message),
            Err(error) => tracing::debug!(%error, "a server sent a message that is no JSON"),
        }
        self.events.send_modify(|count| *count += 1);
    }

    fn take(&self, mut message: Value) {
        let id = message.get("id").filter(|id| !id.is_null()).cloned();
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        match (method, id) {
            (Some(method), Some(id)) => self.answer(&method, id, &params),
            (Some(method), None) => self.notified(&method, params),
            (None, Some(id)) => self.answered(&id, &mut message),
            (None, None) => tracing::debug!("a server sent a message that is neither request nor answer"),
        }
    }

    fn answered(&self, id: &Value, message: &mut Value) {
        // Some servers send numbers back as strings.
        let id = id.as_i64().or_else(|| id.as_str()?.parse().ok());
        let Some(sender) = id.and_then(|id| self.with(|state| state.pending.remove(&id))) else {
            tracing::debug!(?id, "a server answered a request that does not wait");
            return;
        };
        let result = match message.get("error") {
            Some(error) if !error.is_null() => Err(RequestError::Refused {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or("no message").to_owned(),
                data: error["data"].clone(),
            }),
            _ => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
        };
        let _ = sender.send(result);
    }

    fn answer(&self, method: &str, id: Value, params: &Value) {
        let result = match method {
            "workspace/configuration" => {
                let items = params["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                items.iter().map(|item| section(&self.settings, item["section"].as_str())).collect()
            }
            "client/registerCapability" => {
                self.with(|state| state.registrations.add(params));
                Value::Null
            }
            "client/unregisterCapability" => {
                self.with(|state| state.registrations.remove(params));
                Value::Null
            }
            "workspace/workspaceFolders" => {
                protocol::initialize_params(&self.root, &Value::Null)["workspaceFolders"].clone()
            }
            "workspace/applyEdit" => {
                json!({ "applied": false, "failureReason": "edits are taken from code actions only" })
            }
            "workspace/diagnostic/refresh" => {
                self.with(|state| state.pushed.refreshes += 1);
                Value::Null
            }
            "window/workDoneProgress/create" | "window/showMessageRequest" => Value::Null,
            "window/showDocument" => json!({ "success": false }),
            _ if method.starts_with("workspace/") && method.ends_with("/refresh") => Value::Null,
            _ => {
                let error =
                    json!({ "code": METHOD_NOT_FOUND, "message": format!("{method} is not offered") });
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                return;
            }
        };
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn notified(&self, method: &str, mut params: Value) {
        match method {
            "textDocument/publishDiagnostics" => self.with(|state| state.pushed.publish(&mut params)),
            "$/progress" => {
                let partial = params["token"].as_str().and_then(partial_id);
                self.with(|state| match partial.and_then(|id| state.partials.get_mut(&id)) {
                    Some(partials) if partials.len() < MAX_PARTIALS => partials.push(params["value"].take()),
                    Some(_) => {}
                    None => state.pushed.progress(&params),
                });
            }
            "experimental/serverStatus" => self.with(|state| state.pushed.server_status(&params)),
            "window/logMessage" | "window/showMessage" => {
                tracing::debug!(message = params["message"].as_str(), "a server says");
            }
            _ => {}
        }
    }
}

fn partial_token(id: i64) -> String {
    format!("agents-partial-{id}")
}

fn partial_id(token: &str) -> Option<i64> {
    token.strip_prefix("agents-partial-")?.parse().ok()
}
