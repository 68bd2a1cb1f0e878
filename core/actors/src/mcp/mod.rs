//! A client of MCP servers: starts or connects to them, learns what they offer, and calls their tools.
//!
//! `process` owns a server that was started, `connection` speaks with it (over the crate `rmcp`) and brings it back when it
//! dies, `paths` lets it see the sandbox in the place of the user's folders, `answer` reads what it returns.

mod answer;
mod connection;
mod paths;
mod process;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agents_domain::interpolate::interpolate;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::mcp::{McpConnection, McpFailure, McpPlace, McpServers};
use agents_domain::redact::is_secret_key;
use agents_domain::skill::{McpServer, McpTransport};

use connection::Connection;

/// A variable of the environment.
type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The variables a started server gets besides those of its own: what programs need to run at all, no secrets.
const INHERITED: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// The variable that names the sandbox, in a server's file and in its environment.
const SANDBOX: &str = "CLEVERAGENTS_SANDBOX";

/// The variable that names the folder of the skill's file.
const SKILL_FOLDER: &str = "CLEVERAGENTS_SKILL_DIR";

/// Connects to MCP servers.
pub struct Mcp {
    lookup: Arc<Lookup>,
}

impl Mcp {
    /// `lookup` gives variables of the environment, for `${NAME}` in what files say of servers.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { lookup: Arc::new(lookup) }
    }
}

impl McpServers for Mcp {
    fn connect<'a>(
        &'a self,
        server: &'a McpServer,
        place: McpPlace,
        within: Duration,
    ) -> BoxFuture<'a, Result<Arc<dyn McpConnection>, McpFailure>> {
        Box::pin(async move {
            let how = How::of(server, &place, &*self.lookup)?;
            let connection = Connection::open(how, place, within).await?;
            Ok(Arc::new(connection) as Arc<dyn McpConnection>)
        })
    }
}

/// How a server is reached, with the values of variables put in. Never kept, never shown.
pub(crate) struct How {
    pub name: String,
    pub reach: Reach,
    /// Values that are masked wherever something of the server is shown.
    pub secrets: Vec<String>,
}

/// Over what.
pub(crate) enum Reach {
    Process { program: String, args: Vec<String>, env: BTreeMap<String, String> },
    Http { url: String, headers: BTreeMap<String, String> },
}

impl How {
    fn of(server: &McpServer, place: &McpPlace, lookup: &Lookup) -> Result<Self, McpFailure> {
        let name = &server.name;
        let mut secrets = Vec::new();
        let sandbox = place.roots.first().map(|root| root.sandbox.display().to_string());
        let folder = place.skill_folder.as_ref().map(|folder| folder.display().to_string());
        let mut put = |what: &str, text: &str, secret: bool| -> Result<String, McpFailure> {
            let (mut secret, mut from_environment) = (secret, false);
            let mut variable = |name: &str| match name {
                SANDBOX => sandbox.clone().or_else(|| Some(String::new())),
                SKILL_FOLDER => folder.clone(),
                name => {
                    let value = lookup(name)?;
                    from_environment = true;
                    secret |= is_secret_key(name);
                    Some(value)
                }
            };
            let value = interpolate(text, &mut variable).map_err(|missing| {
                failure(format!(
                    "`{what}` of the MCP server `{name}` needs the environment variable {missing}, which is not set; set it, or write `${{{missing}:default}}`"
                ))
            })?;
            // What the environment gives to `env` may be a secret under any name; short words would mask too much.
            let taken = from_environment && what.starts_with("env.") && value.len() >= 8;
            if taken || (secret && value.len() >= 4) {
                secrets.push(value.clone());
            }
            Ok(value)
        };
        let reach = match server.transport {
            McpTransport::Stdio => {
                let command = server.command.as_deref().unwrap_or_default();
                let mut program = put("command", command, false)?;
                if program.contains('/')
                    && !program.starts_with('/')
                    && let Some(folder) = &folder
                {
                    program = format!("{folder}/{program}");
                }
                let mut args = Vec::with_capacity(server.args.len());
                for (at, arg) in server.args.iter().enumerate() {
                    args.push(paths::to_sandbox(&put(&format!("args[{at}]"), arg, false)?, &place.roots));
                }
                let mut env: BTreeMap<String, String> =
                    INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), lookup(name)?))).collect();
                env.extend(sandbox.clone().map(|sandbox| (SANDBOX.to_owned(), sandbox)));
                for (key, text) in &server.env {
                    let value = put(&format!("env.{key}"), text, is_secret_key(key))?;
                    env.insert(key.clone(), paths::to_sandbox(&value, &place.roots));
                }
                Reach::Process { program, args, env }
            }
            McpTransport::StreamableHttp => {
                let url = put("url", server.url.as_deref().unwrap_or_default(), false)?;
                let mut headers = BTreeMap::new();
                for (key, text) in &server.headers {
                    headers.insert(key.clone(), put(&format!("headers.{key}"), text, true)?);
                }
                Reach::Http { url, headers }
            }
            McpTransport::Sse => {
                return Err(failure(format!(
                    "the MCP server `{name}` is reached over `sse`, which this version does not speak: use `transport: streamable-http`"
                )));
            }
        };
        // The longest first, so that none is left in part.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Ok(Self { name: name.clone(), reach, secrets })
    }
}

/// A failure before anything reached the server.
pub(crate) fn failure(message: impl Into<String>) -> McpFailure {
    McpFailure { message: message.into(), not_sent: true }
}

/// A text without secrets.
pub(crate) fn masked(text: &str, secrets: &[String]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "********"))
}
