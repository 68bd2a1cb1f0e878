//! MCP servers: programs outside that offer tools. Implemented by the actors' crate.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::BoxFuture;
use crate::skill::{DiscoveredServer, McpServer};

/// Where a server works: which folders it is to see, and what stands for what.
#[derive(Debug, Clone, Default)]
pub struct McpPlace {
    /// The folder of the skill's file: relative commands are relative to it.
    pub skill_folder: Option<PathBuf>,
    /// The folders it works on; it is started in the first one, or in an empty folder when there is none.
    pub roots: Vec<McpRoot>,
}

/// One folder a server works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpRoot {
    /// What it is called.
    pub name: String,
    /// The user's folder, which the server must not see: absolute.
    pub original: PathBuf,
    /// The sandbox that stands for it: absolute.
    pub sandbox: PathBuf,
}

/// Why a server could not be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct McpFailure {
    /// For people and models; secrets are masked.
    pub message: String,
    /// Nothing reached the server, so that calling again repeats nothing.
    pub not_sent: bool,
}

/// What a call returned.
#[derive(Debug, Clone, PartialEq)]
pub struct McpAnswer {
    /// What the server says came of it; for an error (`isError`) its message.
    pub result: Value,
    /// The tool says that it failed.
    pub is_error: bool,
}

/// Starts MCP servers or connects to them.
pub trait McpServers: Send + Sync {
    /// Connects, agrees on a protocol and asks for everything the server offers, all within a time.
    fn connect<'a>(
        &'a self,
        server: &'a McpServer,
        place: McpPlace,
        within: Duration,
    ) -> BoxFuture<'a, Result<Arc<dyn McpConnection>, McpFailure>>;
}

/// A server that is connected to. It is started again when it has died. It ends, with all it started, when this is
/// closed or dropped, and when our process ends, however that happens.
pub trait McpConnection: Send + Sync {
    /// What it offers now.
    fn offers(&self) -> DiscoveredServer;

    /// How often what it offers has changed since the connection was made.
    fn changes(&self) -> u64;

    /// Waits until what the server said of changes is taken in, at most so long.
    fn settled(&self, within: Duration) -> BoxFuture<'_, ()>;

    /// Calls a tool. Arguments are checked against the tool's schema before anything is sent; paths in them are those of
    /// the user's folders or relative ones, and come to the server as paths in the sandbox; in the answer it is the other
    /// way round. Dropping the future cancels the call at the server.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Value,
        within: Duration,
    ) -> BoxFuture<'a, Result<McpAnswer, McpFailure>>;

    /// Reads a resource of the server.
    fn read<'a>(&'a self, uri: &'a str, within: Duration) -> BoxFuture<'a, Result<Value, McpFailure>>;

    /// The last lines the server printed beside the protocol; secrets are masked.
    fn printed(&self) -> String;

    /// Says goodbye, and ends it when it does not go.
    fn close(&self) -> BoxFuture<'_, ()>;
}
