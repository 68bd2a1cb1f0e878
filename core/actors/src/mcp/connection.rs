//! One server that is connected to: asked, called, followed when what it offers changes, and brought back when it dies.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agents_domain::ports::BoxFuture;
use agents_domain::ports::mcp::{McpAnswer, McpConnection, McpFailure, McpPlace, McpRoot};
use agents_domain::skill::{DiscoveredServer, ExpectedBehaviour, McpPrompt, McpResource, McpTool, infer};
use rmcp::ClientHandler;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientConfig, ClientRequest,
    CustomRequest, Implementation, RequestId, ServerResult,
};
use rmcp::service::{
    NotificationContext, Peer, PeerRequestOptions, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::process::{Process, Tail};
use super::{How, Reach, answer, failure, masked, paths};

/// Pages and entries of a list that are read of a server.
const PAGES: usize = 100;
const ENTRIES: usize = 2000;

/// Lines of what a server printed that a failure tells.
const TOLD: usize = 5;

/// How long a server that closed its streams may take to end, to be told how it ended.
const ENDING: Duration = Duration::from_millis(500);

/// A connected server.
pub(crate) struct Connection {
    how: How,
    place: McpPlace,
    shared: Arc<Shared>,
    live: tokio::sync::Mutex<Option<Live>>,
    start: Duration,
}

/// What the connection and its client know.
struct Shared {
    offers: Mutex<DiscoveredServer>,
    changes: AtomicU64,
    /// How many changes were told and not taken in yet.
    pending: watch::Sender<usize>,
    tail: Arc<Tail>,
    secrets: Vec<String>,
}

/// A server that is spoken to.
struct Live {
    service: RunningService<RoleClient, Client>,
    process: Option<Process>,
    /// Where it was started when it works on no folder.
    _empty: Option<tempfile::TempDir>,
}

/// Our side of the protocol.
struct Client {
    shared: Arc<Shared>,
    roots: Vec<McpRoot>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(deprecated, reason = "servers of the protocol's earlier versions ask for roots")]
impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("cleveragents", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = serde_json::from_value(json!({ "listChanged": false })).ok();
        ClientConfig::new(capabilities, us)
    }

    async fn list_roots(
        &self,
        _: rmcp::service::RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, rmcp::ErrorData> {
        let roots = self
            .roots
            .iter()
            .map(|root| json!({ "uri": format!("file://{}", root.sandbox.display()), "name": root.name }));
        serde_json::from_value(json!({ "roots": roots.collect::<Vec<_>>() }))
            .map_err(|error| rmcp::ErrorData::internal_error(error.to_string(), None))
    }

    async fn on_tool_list_changed(&self, context: NotificationContext<RoleClient>) {
        // Asked in a task of its own: the answer comes through the loop that is busy with this.
        let (shared, peer) = (self.shared.clone(), context.peer);
        shared.pending.send_modify(|pending| *pending += 1);
        tokio::spawn(async move {
            match list(&peer, "tools/list", "tools", Duration::from_secs(30)).await {
                Ok(tools) => {
                    lock(&shared.offers).tools = tools.iter().filter_map(tool).collect();
                    shared.changes.fetch_add(1, Ordering::SeqCst);
                }
                Err(why) => {
                    tracing::warn!("an MCP server says that its tools changed, and does not list them: {why}")
                }
            }
            shared.pending.send_modify(|pending| *pending -= 1);
        });
    }
}

impl Connection {
    /// Connects and asks for everything.
    pub async fn open(how: How, place: McpPlace, within: Duration) -> Result<Self, McpFailure> {
        let shared = Arc::new(Shared {
            offers: Mutex::default(),
            changes: AtomicU64::new(0),
            pending: watch::Sender::new(0),
            tail: Arc::default(),
            secrets: how.secrets.clone(),
        });
        let connection = Self { how, place, shared, live: tokio::sync::Mutex::new(None), start: within };
        let live = connection.connect().await?;
        *connection.live.lock().await = Some(live);
        Ok(connection)
    }

    async fn connect(&self) -> Result<Live, McpFailure> {
        let name = &self.how.name;
        match tokio::time::timeout(self.start, self.begin()).await {
            Ok(begun) => begun,
            Err(_) => Err(self.failure(
                format!("the MCP server `{name}` did not answer within {} s", self.start.as_secs()),
                None,
            )),
        }
    }

    async fn begin(&self) -> Result<Live, McpFailure> {
        let client = Client { shared: self.shared.clone(), roots: self.place.roots.clone() };
        let mut live = match &self.how.reach {
            Reach::Process { program, args, env } => {
                let empty = match self.place.roots.first() {
                    Some(_) => None,
                    None => Some(tempfile::tempdir().map_err(|error| {
                        failure(format!("there is no room for temporary files: {error}"))
                    })?),
                };
                let folder = match (&empty, self.place.roots.first()) {
                    (Some(empty), _) => empty.path(),
                    (None, Some(root)) => root.sandbox.as_path(),
                    (None, None) => Path::new("/"),
                };
                let started = Process::start(program, args, env, folder, &self.shared.tail);
                let (mut process, stdout, stdin) =
                    started.map_err(|error| self.not_started(program, &error))?;
                match rmcp::serve_client(client, (stdout, stdin)).await {
                    Ok(service) => Live { service, process: Some(process), _empty: empty },
                    Err(error) => {
                        let ended = process.ended(ENDING).await;
                        let how = ended.map(|how| format!(" ({how})")).unwrap_or_default();
                        let why = match error {
                            rmcp::service::ClientInitializeError::ConnectionClosed(_) => {
                                "it ended".to_owned()
                            }
                            other => other.to_string(),
                        };
                        return Err(self.failure(
                            format!("the MCP server `{}` could not be spoken to: {why}{how}", self.how.name),
                            None,
                        ));
                    }
                }
            }
            Reach::Http { url, headers } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.clone());
                for (key, value) in headers {
                    match (key.parse(), value.parse()) {
                        (Ok(name), Ok(value)) => drop(config.custom_headers.insert(name, value)),
                        _ => {
                            return Err(failure(format!(
                                "`headers.{key}` of the MCP server `{}` cannot be sent",
                                self.how.name
                            )));
                        }
                    }
                }
                let transport = StreamableHttpClientTransport::from_config(config);
                match rmcp::serve_client(client, transport).await {
                    Ok(service) => Live { service, process: None, _empty: None },
                    Err(error) => return Err(self.not_reached(url, &error)),
                }
            }
        };
        let peer = live.service.peer().clone();
        let mut offers = DiscoveredServer::default();
        let mut has = Value::Null;
        if let Some(info) = peer.peer_info() {
            let info = serde_json::to_value(&*info).unwrap_or_default();
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            offers.server =
                format!("{} {}", word(&info["serverInfo"]["name"]), word(&info["serverInfo"]["version"]));
            offers.server = masked(offers.server.trim(), &self.shared.secrets);
            offers.protocol = word(&info["protocolVersion"]);
            has = info["capabilities"].clone();
        }
        if !has["tools"].is_null() {
            let tools = list(&peer, "tools/list", "tools", self.start).await;
            let tools = match tools {
                Ok(tools) => tools,
                Err(why) => {
                    let ended = match &mut live.process {
                        Some(process) => process.ended(ENDING).await,
                        None => None,
                    };
                    let message =
                        format!("the MCP server `{}` does not list its tools: {why}", self.how.name);
                    return Err(self.failure(message, ended));
                }
            };
            offers.tools = tools.iter().filter_map(tool).collect();
        }
        // Neither is needed to call tools: a server that fails at them offers none.
        if !has["resources"].is_null() {
            let found = list(&peer, "resources/list", "resources", self.start).await.unwrap_or_default();
            offers.resources = found.iter().filter_map(resource).collect();
        }
        if !has["prompts"].is_null() {
            let found = list(&peer, "prompts/list", "prompts", self.start).await.unwrap_or_default();
            offers.prompts = found.iter().filter_map(prompt).collect();
        }
        let mut known = lock(&self.shared.offers);
        if known.tools != offers.tools && !known.server.is_empty() {
            self.shared.changes.fetch_add(1, Ordering::SeqCst);
        }
        *known = offers;
        drop(known);
        Ok(live)
    }

    fn not_started(&self, program: &str, error: &std::io::Error) -> McpFailure {
        let program = masked(program, &self.shared.secrets);
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => {
                ": it is not on PATH; install it, or name it with its folder".to_owned()
            }
            _ => format!(": {error}"),
        };
        failure(format!("`{program}` of the MCP server `{}` cannot be started{hint}", self.how.name))
    }

    fn not_reached(&self, url: &str, error: &rmcp::service::ClientInitializeError) -> McpFailure {
        let why = whole(error);
        let word = if error.is_authorization_required() || why.contains("401") || why.contains("403") {
            ": it refuses us; check the token in `headers`".to_owned()
        } else {
            format!(": {why}")
        };
        failure(masked(
            &format!("the MCP server `{}` cannot be reached at {url}{word}", self.how.name),
            &self.shared.secrets,
        ))
    }

    /// A failure with how the server ended and the last it printed.
    fn failure(&self, message: String, ended: Option<String>) -> McpFailure {
        let mut message = masked(&message, &self.shared.secrets);
        if let Some(ended) = ended {
            message.push_str(&format!(" ({ended})"));
        }
        let printed = self.shared.tail.text(TOLD, &self.shared.secrets);
        if !printed.is_empty() {
            message.push_str(&format!("; it printed: {printed}"));
        }
        McpFailure { message, not_sent: true }
    }

    /// The server, started or reached anew when it is gone.
    async fn peer(&self) -> Result<Peer<RoleClient>, McpFailure> {
        let mut live = self.live.lock().await;
        if let Some(live) = live.as_ref()
            && !live.service.is_closed()
            && !live.service.peer().is_transport_closed()
        {
            return Ok(live.service.peer().clone());
        }
        // What is left of it ends first: two of one server must not work on one folder.
        if let Some(gone) = live.take() {
            tracing::warn!("the MCP server `{}` is gone and is brought back", self.how.name);
            drop(gone);
        }
        let anew = self.connect().await?;
        let peer = anew.service.peer().clone();
        *live = Some(anew);
        Ok(peer)
    }

    /// Asks once; `Err(None)` when the server went away while it had the request.
    async fn ask(
        &self,
        method: &str,
        params: &Value,
        within: Duration,
    ) -> Result<Result<Value, McpFailure>, Option<McpFailure>> {
        let peer = self.peer().await.map_err(Some)?;
        match request(&peer, method, params.clone(), within).await {
            Ok(result) => Ok(Ok(result)),
            Err(ServiceError::McpError(error)) => {
                Ok(Err(McpFailure { message: masked(&error.message, &self.shared.secrets), not_sent: false }))
            }
            Err(ServiceError::Timeout { .. }) => {
                let seconds = within.as_secs();
                let message = format!(
                    "the MCP server `{}` did not answer within {seconds} s; the call was cancelled",
                    self.how.name
                );
                Ok(Err(McpFailure { message, not_sent: false }))
            }
            Err(
                ServiceError::TransportClosed
                | ServiceError::TransportSend(_)
                | ServiceError::Cancelled { .. },
            ) => Err(None),
            Err(other) => {
                let message = masked(
                    &format!("the MCP server `{}`: {}", self.how.name, whole(&other)),
                    &self.shared.secrets,
                );
                Ok(Err(McpFailure { message, not_sent: false }))
            }
        }
    }

    /// Asks, a second time when the server died at the first and asking twice does no harm.
    async fn ask_again(
        &self,
        method: &str,
        params: &Value,
        within: Duration,
        harmless: bool,
    ) -> Result<Value, McpFailure> {
        for again in [harmless, false] {
            match self.ask(method, params, within).await {
                Ok(answered) => return answered,
                Err(Some(failure)) => return Err(failure),
                Err(None) if again => continue,
                Err(None) => break,
            }
        }
        let message = format!(
            "the MCP server `{}` ended during the call; what it had done by then is unknown",
            self.how.name
        );
        Err(McpFailure { not_sent: false, ..self.failure(message, None) })
    }

    fn known(&self, tool: &str) -> Result<McpTool, McpFailure> {
        let offers = lock(&self.shared.offers);
        offers.tools.iter().find(|known| known.name == tool).cloned().ok_or_else(|| {
            failure(format!("the MCP server `{}` has no tool `{tool}` any more", self.how.name))
        })
    }
}

impl McpConnection for Connection {
    fn offers(&self) -> DiscoveredServer {
        lock(&self.shared.offers).clone()
    }

    fn changes(&self) -> u64 {
        self.shared.changes.load(Ordering::SeqCst)
    }

    fn settled(&self, within: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut pending = self.shared.pending.subscribe();
            let _ = tokio::time::timeout(within, pending.wait_for(|pending| *pending == 0)).await;
        })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Value,
        within: Duration,
    ) -> BoxFuture<'a, Result<McpAnswer, McpFailure>> {
        Box::pin(async move {
            let known = self.known(tool)?;
            let arguments = if arguments.is_null() { json!({}) } else { arguments };
            fits(&known.input, &arguments).map_err(|why| failure(format!("{tool}: {why}")))?;
            let sent = paths::arguments(&arguments, &self.place.roots)
                .map_err(|why| failure(format!("{tool}: {why}")))?;
            let harmless = infer(&known).capability.idempotent && infer(&known).capability.read_only;
            let params = json!({ "name": tool, "arguments": sent });
            let result =
                self.ask_again("tools/call", &params, within, harmless).await.map_err(|failure| {
                    McpFailure { message: paths::to_user(&failure.message, &self.place.roots), ..failure }
                })?;
            Ok(answer::read(&result, &self.shared.secrets, |text| paths::to_user(text, &self.place.roots)))
        })
    }

    fn read<'a>(&'a self, uri: &'a str, within: Duration) -> BoxFuture<'a, Result<Value, McpFailure>> {
        Box::pin(async move {
            let result = self.ask_again("resources/read", &json!({ "uri": uri }), within, true).await?;
            let clean = |text: &str| paths::to_user(&masked(text, &self.shared.secrets), &self.place.roots);
            Ok(answer::through(&result["contents"], &clean))
        })
    }

    fn printed(&self) -> String {
        self.shared.tail.text(TOLD, &self.shared.secrets)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(Live { mut service, process, _empty }) = self.live.lock().await.take() else { return };
            let _ = service.close_with_timeout(ENDING).await;
            drop(service);
            if let Some(process) = process {
                let how = process.leave().await;
                tracing::debug!("the MCP server `{}` ended: {how}", self.how.name);
            }
        })
    }
}

async fn request(
    peer: &Peer<RoleClient>,
    method: &str,
    params: Value,
    within: Duration,
) -> Result<Value, ServiceError> {
    let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    let options = PeerRequestOptions::with_timeout(within);
    let handle = peer.send_request_with_option(request, options).await?;
    let mut unanswered = Unanswered { peer: peer.clone(), id: Some(handle.id.clone()) };
    let answer = handle.await_response().await;
    // It was answered, or its time is up, which the server was told.
    unanswered.id = None;
    let result: ServerResult = answer?;
    serde_json::to_value(result).map_err(|_| ServiceError::UnexpectedResponse)
}

/// A request nobody waits for any more when this is dropped; the server is told.
struct Unanswered {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let peer = self.peer.clone();
        let why = Some("the call is not waited for any more".to_owned());
        let cancelled = CancelledNotification::new(CancelledNotificationParam::new(Some(id), why));
        runtime.spawn(async move { peer.send_notification(cancelled.into()).await });
    }
}

/// A whole list, page by page (MCP-001). `Err` is why it could not be read.
async fn list(
    peer: &Peer<RoleClient>,
    method: &str,
    key: &str,
    within: Duration,
) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    let mut cursors: HashMap<String, ()> = HashMap::new();
    let mut params = json!({});
    for _ in 0..PAGES {
        let page = request(peer, method, params, within).await.map_err(|error| whole(&error))?;
        let entries = page[key].as_array().ok_or_else(|| format!("its answer has no `{key}`"))?;
        found.extend(entries.iter().cloned());
        let Some(cursor) = page["nextCursor"].as_str().filter(|cursor| !cursor.is_empty()) else { break };
        // A server that begins again would never end.
        if found.len() >= ENTRIES || cursors.insert(cursor.to_owned(), ()).is_some() {
            tracing::warn!("an MCP server's list `{method}` was cut at {} entries", found.len());
            break;
        }
        params = json!({ "cursor": cursor });
    }
    found.truncate(ENTRIES);
    Ok(found)
}

fn tool(found: &Value) -> Option<McpTool> {
    let name = found["name"].as_str().filter(|name| !name.trim().is_empty())?;
    let hint = |key: &str| found["annotations"][key].as_bool();
    let input = match &found["inputSchema"] {
        Value::Object(_) => found["inputSchema"].clone(),
        _ => json!({ "type": "object" }),
    };
    Some(McpTool {
        name: name.to_owned(),
        description: text(found, "description").or_else(|| text(found, "title")).unwrap_or_default(),
        input,
        hints: ExpectedBehaviour {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
    })
}

fn resource(found: &Value) -> Option<McpResource> {
    Some(McpResource {
        uri: text(found, "uri")?,
        name: text(found, "name").unwrap_or_default(),
        description: text(found, "description"),
    })
}

fn prompt(found: &Value) -> Option<McpPrompt> {
    let arguments = found["arguments"].as_array().into_iter().flatten();
    Some(McpPrompt {
        name: text(found, "name")?,
        description: text(found, "description"),
        arguments: arguments.filter_map(|argument| text(argument, "name")).collect(),
    })
}

fn text(found: &Value, key: &str) -> Option<String> {
    found[key].as_str().map(str::to_owned)
}

/// Whether arguments fit a tool's schema; a schema that is none is the server's to check by.
fn fits(schema: &Value, arguments: &Value) -> Result<(), String> {
    let Ok(validator) = jsonschema::validator_for(schema) else { return Ok(()) };
    let problems: Vec<String> = validator
        .iter_errors(arguments)
        .take(5)
        .map(|error| match error.instance_path().to_string().trim_start_matches('/') {
            "" => error.to_string(),
            place => format!("at `{}`: {error}", place.replace('/', ".")),
        })
        .collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(format!("the arguments do not fit: {}", problems.join("; ")))
    }
}

/// An error with its causes.
fn whole(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !told.contains(&inner_text) {
            told.push_str(&format!(": {inner_text}"));
        }
        cause = inner.source();
    }
    told
}
