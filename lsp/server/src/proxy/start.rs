//! A server's life: started when a document of its language is opened, initialised, shown what is open, brought back
//! when it dies, and given up with a word to the person when it keeps dying.

use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use agents_domain::ports::server_launcher::{LaunchedServer, ServerOutput, WarmServer};
use serde_json::{Value, json};

use super::encoding::Recount;
use super::server::{Link, Server, Status};
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
            let hello = |root: &Path, options: &Value| match me.upgrade() {
                Some(proxy) => proxy.initialize_params(root, options),
                None => Value::Null,
            };
            let launched = launcher.launch(&definition, &root, within, &hello).await;
            let Some(proxy) = me.upgrade() else { return };
            match launched {
                Ok(running) => proxy.launched(ix, generation, running),
                Err(reason) => proxy.give_up(ix, generation, &format!("cannot be started: {reason}")),
            }
        });
    }

    fn launched(&self, ix: usize, generation: u64, running: LaunchedServer) {
        let LaunchedServer { input, output, process, root, initialize, warm } = running;
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
        let recount = Arc::<OnceLock<Recount>>::default();
        state.servers[ix].recount = recount.clone();
        let threads = std::thread::Builder::new().name(format!("to {name}")).spawn(write).and_then(|_| {
            let me = self.me.clone();
            let reader = std::thread::Builder::new().name(format!("from {name}"));
            reader.spawn(move || {
                read(
                    output,
                    |body| {
                        let Some(proxy) = me.upgrade() else { return false };
                        let body = match recount.get() {
                            None => body,
                            Some(recount) => recount.to_client(body),
                        };
                        proxy.receive(ix, generation, body)
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
        state.servers[ix].root = root;
        if let Some(warm) = warm {
            return self.taken_over(state, ix, warm);
        }
        state.ask(ix, "initialize", Some(&initialize.to_string()), To::Initialize);
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
    fn initialize_params(&self, root: &Path, init_options: &Value) -> Value {
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
        // One encoding for all: only for a server that insists on another is anything counted anew.
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
            params["initializationOptions"] = init_options.clone();
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
        let mut state = self.state();
        if state.servers[ix].generation != generation {
            return;
        }
        if let Err(reason) = self.agree_on_columns(&state.servers[ix], &result) {
            drop(state);
            return self.give_up(ix, generation, &reason);
        }
        let server = &mut state.servers[ix];
        server.notify("initialized", &json!({}));
        if !server.definition.workspace_settings.is_null() {
            let settings = json!({ "settings": server.definition.workspace_settings });
            server.notify("workspace/didChangeConfiguration", &settings);
        }
        self.runs(&mut state, ix, &result);
    }

    /// A server that was initialised before it came to us: what it said since is taken as if it said it now.
    fn taken_over(&self, mut state: MutexGuard<'_, State>, ix: usize, warm: WarmServer) {
        let WarmServer { result, registrations, diagnostics, configured, tokens } = warm;
        if let Err(reason) = self.agree_on_columns(&state.servers[ix], &result) {
            let generation = state.servers[ix].generation;
            drop(state);
            return self.give_up(ix, generation, &reason);
        }
        tracing::info!(server = state.servers[ix].name(), "a warm server is taken over");
        state.servers[ix].silenced = tokens;
        self.register(&mut state, ix, &json!({ "registrations": registrations }).to_string());
        for params in diagnostics {
            self.published(&mut state, ix, &params.to_string());
        }
        self.runs(&mut state, ix, &result);
        self.check_configuration(&mut state, ix, configured);
    }

    /// Has columns counted anew for a server that counts otherwise than the client. `Err` says what nobody can count in.
    fn agree_on_columns(&self, server: &Server, result: &Value) -> Result<(), String> {
        let wanted = self.session.latest().encoding();
        let spoken = result["capabilities"]["positionEncoding"].as_str().unwrap_or("utf-16");
        if spoken == wanted.as_str() {
            return Ok(());
        }
        let Some(known) = PositionEncoding::from_name(spoken) else {
            return Err(format!("counts positions in {spoken}, which is none of utf-8, utf-16 and utf-32"));
        };
        tracing::debug!(server = server.name(), spoken, "positions are counted anew for a server");
        let _ = server.recount.set(Recount::new(self.session.clone(), known));
        Ok(())
    }

    /// A server is up: it is shown what is open, and the client is told what there is.
    fn runs(&self, state: &mut State, ix: usize, result: &Value) {
        let snapshot = self.session.latest();
        let server = &mut state.servers[ix];
        server.capabilities = result["capabilities"].clone();
        if server.recount.get().is_some()
            && let Some(full) = server.capabilities.pointer_mut("/semanticTokensProvider/full")
        {
            // Differences between tokens cannot be counted anew.
            *full = (*full != false).into();
        }
        server.status = Status::Running;
        server.since = Instant::now();
        self.probe_later(state, ix);
        let server = &mut state.servers[ix];
        server.deaf = None;
        let documents: Vec<_> = snapshot
            .documents()
            .filter(|document| self.serves(&state.servers[ix], document))
            .cloned()
            .collect();
        for document in documents {
            let server = &mut state.servers[ix];
            server.is_shown(&document);
            server.notify("textDocument/didOpen", &shown(&document));
            self.pull(state, ix, document.uri());
        }
        self.offer(state);
        self.advance_all(state);
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
        server.silenced.clear();
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
                To::Pull { .. } | To::Initialize | To::Shutdown | To::Probe => {}
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
