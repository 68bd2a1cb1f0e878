//! Other language servers behind the same front: the editor has one server entry and gets the features of several.
//!
//! ```text
//! client reader --> route, gather --> a server's outbox      one lock; nothing under it waits
//! client outbox <-- incoming, asks <-- a server's reader     parameters and results stay raw where nothing is merged
//! ```
//!
//! - `features` is the table of what can be proxied and who answers; `route` sends requests, `gather` puts several answers
//!   together with `merge`.
//! - `start` brings a server up over the editor's folders when a document of its language is opened, shows it what is
//!   open, and brings it back when it dies; `health` ends one that is dead on its feet; `server` is what is known of it.
//! - `incoming` reads what servers say; `asks` is what they want of the client; `board` and `diagnose` are diagnostics,
//!   `reports` those of clients that pull.
//! - `offer` is what the client is told that there is; `tokens` brings semantic tokens into a legend of ours, `encoding` counts
//!   positions anew for servers that count otherwise than the client.
//!
//! Invariants: each request of the client gets exactly one answer, whatever servers do; a server sees the documents in
//! the client's order; what a slow, broken or dead server costs are its own features.

mod asks;
mod board;
mod diagnose;
mod encoding;
mod features;
mod gather;
mod health;
mod incoming;
mod merge;
mod offer;
mod reports;
mod route;
mod server;
mod start;
mod sync;
mod tokens;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::server_launcher::ServerLauncher;
use serde_json::Value;
use tokio::runtime::Handle;
use tower_lsp::jsonrpc::Error;

use self::board::Board;
use self::gather::Gather;
pub(crate) use self::merge::join_options;
use self::offer::Offered;
use self::server::Server;
use crate::documents::DocumentUri;
use crate::front::message::RequestId;
use crate::{ClientHandle, SessionHandle, Snapshot, lock};

/// Takes the answer of our own features.
pub(crate) type Deliver = Box<dyn FnOnce(Result<Value, Error>) + Send>;

/// Whether our own features certainly have no answer to a request about a document.
pub(crate) type Silence = Box<dyn Fn(&str, &Snapshot, &DocumentUri) -> bool + Send + Sync>;

/// Which servers are proxied, and how they are started.
#[derive(Clone)]
pub struct ProxyOptions {
    /// In order of preference: of several that could, the first formats, renames and colours.
    pub servers: Vec<LanguageServerDefinition>,
    /// Starts them.
    pub launcher: Arc<dyn ServerLauncher>,
    /// Waiting times.
    pub timing: ProxyTiming,
}

impl std::fmt::Debug for ProxyOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyOptions").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// How long the proxy waits for what; tests shorten it.
#[derive(Debug, Clone, Copy)]
pub struct ProxyTiming {
    /// For a server to answer `initialize`.
    pub start: Duration,
    /// For a server that is being started, when others could answer.
    pub starting: Duration,
    /// For slow ones among several servers, where an answer is wanted fast.
    pub slow: Duration,
    /// For more diagnostics of a file before the client is told.
    pub window: Duration,
    /// Before the first restart; doubled for each further one.
    pub backoff: Duration,
    /// Between two health probes; `None` takes the registry entry's `health_check.interval_seconds`.
    pub probe_interval: Option<Duration>,
    /// How long a probed server has to show a sign of life.
    pub probe: Duration,
    /// How long one whose processes work may go without a sign of life: a slow machine, a large project.
    pub deaf: Duration,
}

impl Default for ProxyTiming {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            starting: Duration::from_secs(3),
            slow: Duration::from_secs(1),
            window: Duration::from_millis(20),
            backoff: Duration::from_millis(200),
            probe_interval: None,
            probe: Duration::from_secs(5),
            deaf: Duration::from_secs(180),
        }
    }
}

/// See the module.
pub(crate) struct Proxy {
    me: Weak<Proxy>,
    state: Mutex<State>,
    client: ClientHandle,
    session: SessionHandle,
    runtime: Handle,
    launcher: Arc<dyn ServerLauncher>,
    timing: ProxyTiming,
    silence: Silence,
}

/// Changes only under the proxy's lock.
struct State {
    servers: Vec<Server>,
    next_id: i64,
    /// What servers were asked, by our ids.
    asked: HashMap<i64, Asked>,
    /// What the client asked and is being worked on.
    working: HashMap<RequestId, Working>,
    gathers: HashMap<u64, Gather>,
    next_gather: u64,
    /// Who answered a request last whose items were passed on without a mark.
    origins: HashMap<&'static str, usize>,
    board: Board,
    pulls: diagnose::Pulls,
    /// What clients that pull wait for, numbered like gathers.
    reports: HashMap<u64, reports::Report>,
    offered: Offered,
    asks: asks::Asks,
    /// Servers chosen for features by the client's options: `formatting`, `rename`, `semanticTokens`, by name.
    owners: HashMap<String, String>,
    /// The client is leaving; nothing is started any more.
    ended: bool,
}

/// A request at a server.
struct Asked {
    server: usize,
    to: To,
}

/// Whom an answer is for.
enum To {
    /// The client, as it is.
    Client {
        id: RequestId,
        method: String,
    },
    /// One of several parts.
    Part {
        gather: u64,
        part: usize,
    },
    /// The board.
    Pull {
        uri: DocumentUri,
        version: Option<i32>,
    },
    Initialize,
    Shutdown,
    /// Nobody: it shows that the server lives.
    Probe,
}

/// What works on a request of the client.
#[derive(Debug, Clone, Copy)]
enum Working {
    Asked(i64),
    Gather(u64),
    Report(u64),
}

impl Proxy {
    /// A proxy that has started nothing yet. Called inside of the session's runtime.
    pub fn new(
        options: ProxyOptions,
        client: ClientHandle,
        session: SessionHandle,
        silence: Silence,
    ) -> Arc<Self> {
        let snapshot = session.latest();
        let chosen = snapshot.client().initialization_options.pointer("/proxy/owners");
        let owners = chosen.and_then(Value::as_object).into_iter().flatten();
        let owners = owners.filter_map(|(what, server)| Some((what.clone(), server.as_str()?.to_owned())));
        let offered = Offered::new(&options.servers, snapshot.client());
        let state = State {
            servers: options.servers.into_iter().map(Server::new).collect(),
            next_id: 1,
            asked: HashMap::new(),
            working: HashMap::new(),
            gathers: HashMap::new(),
            next_gather: 1,
            origins: HashMap::new(),
            board: Board::default(),
            pulls: diagnose::Pulls::default(),
            reports: HashMap::new(),
            offered,
            asks: asks::Asks::default(),
            owners: owners.collect(),
            ended: false,
        };
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            state: Mutex::new(state),
            client,
            session,
            runtime: Handle::current(),
            launcher: options.launcher,
            timing: options.timing,
            silence,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Runs something on the proxy after a while, if it is still there.
    fn later(&self, after: Duration, run: impl FnOnce(&Arc<Proxy>) + Send + 'static) {
        let me = self.me.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(proxy) = me.upgrade() {
                run(&proxy);
            }
        });
    }

    /// Shuts all servers down, those that take longer than a while by force.
    pub fn end(&self, within: Duration) {
        let processes: Vec<_> = {
            let mut state = self.state();
            state.ended = true;
            let mut leaving = Vec::new();
            for ix in 0..state.servers.len() {
                let Some(process) = state.servers[ix].link.as_ref().map(|link| link.process.clone()) else {
                    continue;
                };
                if state.servers[ix].is_running() {
                    state.ask(ix, "shutdown", None, To::Shutdown);
                    leaving.push(process);
                } else {
                    process.kill();
                }
            }
            leaving
        };
        let deadline = Instant::now() + within;
        self.runtime.block_on(async {
            for process in &processes {
                process.ended(deadline.saturating_duration_since(Instant::now())).await;
            }
        });
        processes.iter().for_each(|process| process.kill());
    }
}

impl State {
    /// Sends a request to a server; our id of it.
    fn ask(&mut self, server: usize, method: &str, params: Option<&str>, to: To) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.asked.insert(id, Asked { server, to });
        self.servers[server].send(crate::front::reply::request(id, method, params));
        id
    }

    /// Whether a running server runs a command.
    fn runs(&self, server: &str, command: &str) -> bool {
        self.by_name(server).is_some_and(|ix| self.servers[ix].is_running() && self.servers[ix].runs(command))
    }

    fn by_name(&self, name: &str) -> Option<usize> {
        self.servers.iter().position(|server| server.name() == name)
    }
}
