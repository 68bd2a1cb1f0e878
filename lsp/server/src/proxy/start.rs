//! A server's life: started when a document of its language is opened, initialised, shown what is open, brought back
//! when it dies, and given up with a word to the person when it keeps dying.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agents_domain::ports::server_launcher::{LaunchedServer, ServerOutput};
use serde_json::{Value, json};

use super::server::{Link, Status};
use super::sync::shown;
use super::{Asked, Proxy, State, To, features, merge};
use crate::documents::{DocumentUri, PositionEncoding};
use crate::front::Limits;
use crate::front::outbox::{End, Outbox};
use crate::front::reply;

/// A server that ran for so long may be restarted as often as a new one.
const GOOD_WHILE: Duration = Duration::from_secs(300);

/// How long its process may take to end after its output did, to say how it ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Proxy {
    /// Starts a server for a document at a path.
    pub(super) fn start(&self, state: &mut State, ix: usize, path: Option<PathBuf>) {
        if state.ended {
            return;
        }
        let server = &mut state.servers[ix];
        let snapshot = self.session.latest();
        let folder = path.as_deref().and_then(|path| snapshot.folder_of(path)).or(snapshot.folders().first());
        let root = folder.and_then(|folder| folder.path.clone());
        let root = root.or_else(|| Some(path?.parent()?.to_owned()));
        server.root = root.unwrap_or_else(|| PathBuf::from("/"));
        server.status = Status::Starting;
        self.launch(state, ix, Duration::ZERO);
    }

    fn launch(&self, state: &mut State, ix: usize, pause: Duration) {
        let server = &mut state.servers[ix];
        server.generation += 1;
        server.since = Instant::now();
        let (generation, definition, root) =
            (server.generation, server.definition.clone(), server.root.clone());
        let (me, launcher, within) = (self.me.clone(), self.launcher.clone(), self.timing.start);
        self.runtime.spawn(async move {
            tokio::time::sleep(pause).await;
            let launched = launcher.launch(&definition, &root, within).await;
            let Some(proxy) = me.upgrade() else { return };
            match launched {
                Ok(running) => proxy.launched(ix, generation, running),
                Err(reason) => proxy.give_up(ix, generation, &format!("cannot be started: {reason}")),
            }
        });
    }

    fn launched(&self, ix: usize, generation: u64, running: LaunchedServer) {
        let LaunchedServer { input, output, process, root, init_options } = running;
        let mut state = self.state();
        if state.servers[ix].generation != generation || state.ended {
            return process.kill();
        }
        let (me, runtime) = (self.me.clone(), self.runtime.clone());
        let (outbox, write) = Outbox::new(input, Limits::default(), move |end| {
            // Somebody who sends may hold the proxy's lock.
            if let (End::Failed(reason), me) = (end, me.clone()) {
                drop(runtime.spawn(async move {
                    if let Some(proxy) = me.upgrade() {
                        proxy.gone(ix, generation, &reason);
                    }
                }));
            }
        });
        let name = state.servers[ix].name();
        let threads = std::thread::Builder::new().name(format!("to {name}")).spawn(write).and_then(|_| {
            let me = self.me.clone();
            let reader = std::thread::Builder::new().name(format!("from {name}"));
            reader.spawn(move || {
                read(
                    output,
                    |body| match me.upgrade() {
                        Some(proxy) => proxy.receive(ix, generation, body),
                        None => false,
                    },
                    |reason| {
                        if let Some(proxy) = me.upgrade() {
                            proxy.gone(ix, generation, reason);
                        }
                    },
                )
            })
        });
        if let Err(error) = threads {
            drop(state);
            return self.give_up(ix, generation, &format!("the system gives no thread: {error}"));
        }
        state.servers[ix].link = Some(Link { outbox, process });
        state.servers[ix].root = root.clone();
        let params = self.initialize_params(&root, init_options).to_string();
        state.ask(ix, "initialize", Some(&params), To::Initialize);
        drop(state);
        let within = self.timing.start;
        self.later(within, move |proxy| {
            let starting = {
                let state = proxy.state();
                state.servers[ix].generation == generation && state.servers[ix].status == Status::Starting
            };
            if starting {
                let seconds = within.as_secs_f32();
                proxy.gone(ix, generation, &format!("did not answer `initialize` within {seconds} s"));
            }
        });
    }

    /// What a server is told of the client: the truth, as far as the proxy does not stand in between.
    fn initialize_params(&self, root: &Path, init_options: Value) -> Value {
        let snapshot = self.session.latest();
        let client = snapshot.client();
        let mut capabilities = match &client.capabilities {
            Value::Object(_) => client.capabilities.clone(),
            _ => json!({}),
        };
        let mut set = |section: &str, key: &str, value: Value| {
            if !capabilities[section].is_object() {
                capabilities[section] = json!({});
            }
            if !capabilities[section][key].is_object() || !value.is_object() {
                capabilities[section][key] = value;
            } else {
                merge::join_options(&mut capabilities[section][key], &value);
            }
        };
        // One encoding for all, so that nothing needs to be converted.
        set("general", "positionEncodings", json!([snapshot.encoding().as_str()]));
        set("workspace", "configuration", json!(true));
        set("workspace", "workspaceFolders", json!(true));
        set("workspace", "diagnostics", json!({ "refreshSupport": true }));
        set(
            "textDocument",
            "diagnostic",
            json!({ "dynamicRegistration": true, "relatedDocumentSupport": true }),
        );
        set("textDocument", "publishDiagnostics", json!({ "versionSupport": true }));
        set("textDocument", "synchronization", json!({ "didSave": true }));
        let folders: Vec<Value> = snapshot
            .folders()
            .iter()
            .map(|folder| json!({ "uri": folder.uri.as_str(), "name": folder.name }))
            .collect();
        let uri = DocumentUri::from_path(root);
        let uri = uri.as_ref().map(DocumentUri::as_str);
        let folders = match folders.is_empty() {
            true => json!([{ "uri": uri, "name": root.file_name().map(|name| name.to_string_lossy()) }]),
            false => folders.into(),
        };
        let mut params = json!({
            "processId": std::process::id(),
            "clientInfo": { "name": client.name, "version": client.version },
            "rootPath": root.to_string_lossy(),
            "rootUri": uri,
            "workspaceFolders": folders,
            "capabilities": capabilities,
        });
        if let Some(locale) = &client.locale {
            params["locale"] = locale.clone().into();
        }
        if !init_options.is_null() {
            params["initializationOptions"] = init_options;
        }
        params
    }

    /// The answer to `initialize`.
    pub(super) fn initialized(&self, ix: usize, generation: u64, answer: Result<&str, &str>) {
        let result: Value = match answer.map(serde_json::from_str) {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => {
                return self.gone(ix, generation, &format!("its answer to `initialize` is no JSON: {error}"));
            }
            Err(error) => {
                let error: Value = serde_json::from_str(error).unwrap_or_default();
                let reason = error["message"].as_str().unwrap_or("without a reason");
                return self.give_up(ix, generation, &format!("refuses to initialize: {reason}"));
            }
        };
        let snapshot = self.session.latest();
        let spoken = result["capabilities"]["positionEncoding"].as_str().unwrap_or("utf-16");
        if spoken != snapshot.encoding().as_str() {
            let wanted = snapshot.encoding().as_str();
            let reason = format!("counts positions in {spoken}, though only {wanted} was offered");
            return self.give_up(ix, generation, &reason);
        }
        debug_assert_eq!(snapshot.encoding(), PositionEncoding::Utf16);
        let mut state = self.state();
        if state.servers[ix].generation != generation {
            return;
        }
        let server = &mut state.servers[ix];
        server.capabilities = result["capabilities"].clone();
        server.status = Status::Running;
        server.since = Instant::now();
        server.notify("initialized", &json!({}));
        if !server.definition.workspace_settings.is_null() {
            let settings = json!({ "settings": server.definition.workspace_settings });
            server.notify("workspace/didChangeConfiguration", &settings);
        }
        let documents: Vec<_> = snapshot
            .documents()
            .filter(|document| self.serves(&state.servers[ix], document))
            .cloned()
            .collect();
        for document in documents {
            let server = &mut state.servers[ix];
            server.open.insert(document.uri().clone());
            server.notify("textDocument/didOpen", &shown(&document));
            self.pull(&mut state, ix, document.uri());
        }
        self.offer(&mut state);
        self.advance_all(&mut state);
    }

    /// A server's connection is over: what it worked on is answered without it, and it is started again.
    pub(super) fn gone(&self, ix: usize, generation: u64, reason: &str) {
        let process = {
            let mut state = self.state();
            let server = &state.servers[ix];
            // The end of its output follows when it is killed; once is enough.
            if server.generation != generation || server.link.is_none() || state.ended {
                return;
            }
            self.bury(&mut state, ix)
        };
        let Some(proxy) = self.me.upgrade() else { return };
        let reason = reason.to_owned();
        self.runtime.spawn(async move {
            let mut words = reason.clone();
            let mut removed = false;
            if let Some(link) = process {
                removed = link.process.is_removed();
                if reason == "closed its output"
                    && let Some(how) = link.process.ended(LAST_WORDS).await
                {
                    words = format!("ended with {how}");
                }
                link.process.kill();
                let printed = link.process.printed(4);
                if !printed.is_empty() {
                    words = format!("{words}; it printed: {printed}");
                }
            }
            if removed {
                proxy.give_up(ix, generation, "was taken out of the registry");
            } else {
                proxy.revive(ix, generation, &words);
            }
        });
    }

    /// Lets go of a connection: everything asked through it is answered as if the server had nothing to say.
    fn bury(&self, state: &mut State, ix: usize) -> Option<Link> {
        let server = &mut state.servers[ix];
        server.status = Status::Starting;
        server.open.clear();
        server.registrations.clear();
        server.commands = 0;
        if server.since.elapsed() > GOOD_WHILE {
            server.restarts = 0;
        }
        let link = server.link.take();
        if let Some(link) = &link {
            link.outbox.close();
        }
        state.pulls.forget(ix);
        let lost: Vec<i64> =
            state.asked.iter().filter(|(_, asked)| asked.server == ix).map(|(id, _)| *id).collect();
        for id in lost {
            let Some(Asked { to, .. }) = state.asked.remove(&id) else { continue };
            match to {
                To::Client { id, method } => {
                    state.working.remove(&id);
                    self.client.post(unanswered(&id, &method, &state.servers[ix].name()));
                }
                To::Part { gather, part } => self.part_is_gone(state, gather, part),
                To::Pull { .. } | To::Initialize | To::Shutdown => {}
            }
        }
        self.withdraw(state, ix);
        link
    }

    /// Starts a server again, or gives it up.
    fn revive(&self, ix: usize, generation: u64, reason: &str) {
        let mut state = self.state();
        let ended = state.ended;
        let server = &mut state.servers[ix];
        if server.generation != generation || server.status != Status::Starting || ended {
            return;
        }
        let health = &server.definition.health_check;
        if health.restart_on_failure && server.restarts < health.max_restarts {
            tracing::warn!(server = %server.definition.name, reason, "a language server ended and is started again");
            let pause = self.timing.backoff * 2u32.saturating_pow(server.restarts.min(16));
            server.restarts += 1;
            self.launch(&mut state, ix, pause);
        } else {
            drop(state);
            self.give_up(ix, generation, reason);
        }
    }

    /// A server is not tried again in this session; the person is told once.
    fn give_up(&self, ix: usize, generation: u64, reason: &str) {
        let mut state = self.state();
        if state.servers[ix].generation != generation || matches!(state.servers[ix].status, Status::Failed(_))
        {
            return;
        }
        if let Some(link) = self.bury(&mut state, ix) {
            link.process.kill();
        }
        let name = state.servers[ix].name();
        state.servers[ix].status = Status::Failed(reason.to_owned());
        tracing::error!(server = name, reason, "a language server is given up");
        state.board.forget(ix, None);
        self.tell_soon(&mut state);
        self.offer(&mut state);
        self.advance_all(&mut state);
        let first = reason.lines().next().unwrap_or_default();
        let message = format!(
            "{name} {first}. Its features are missing until the server is restarted; `agents lsp check {name}` says more."
        );
        self.client.notify_raw("window/showMessage", json!({ "type": 1, "message": message }));
    }
}

/// What the client gets for a request that died with its server.
fn unanswered(id: &crate::front::message::RequestId, method: &str, server: &str) -> Vec<u8> {
    let harmless = features::of(method).is_some_and(|feature| feature.strategy != features::Strategy::Owner);
    if harmless {
        return reply::raw(id, Ok("null"));
    }
    reply::error(Some(id), -32803, &format!("{server} ended before it answered `{method}`; try again"))
}

/// Reads a server's messages until there are no more, or nobody wants them.
fn read(mut output: Box<dyn ServerOutput>, take: impl Fn(Vec<u8>) -> bool, ended: impl FnOnce(&str)) {
    loop {
        match output.next_message() {
            Ok(body) => {
                if !take(body) {
                    return;
                }
            }
            Err(reason) => return ended(&reason),
        }
    }
}
