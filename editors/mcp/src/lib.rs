//! `agents mcp serve`: language servers and plans as tools for any agent that speaks the Model Context Protocol.
//!
//! - The tools of [`agents_tools`] over one directory: `lsp/hover` is `lsp_hover`. The servers are the registered ones;
//!   what is registered or removed while a session lasts counts from the next call on.
//! - The operations on plans: `plan/use` is `plan_use`; and `plan_wait`, because a plan is worked on by a process of its
//!   own.
//!
//! The other agent writes files itself. What it wrote is noticed before each call ([`scan`]) and told to the servers. Only
//! `lsp_apply_code_action` writes, and it is there only when the session was started so.

mod catalogue;
mod scan;
mod session;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use agents_domain::{Error, QualifiedName, Result};
use agents_engine::Engine;
use rmcp::ServiceExt;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::session::Session;

/// What a session lends.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory that paths are relative to; absolute.
    pub root: PathBuf,
    /// Only these servers; all that are registered when empty.
    pub servers: Vec<QualifiedName>,
    /// Code actions may be written to files of the directory.
    pub write: bool,
    /// The operations on plans are lent, too.
    pub plans: bool,
}

/// Serves one client until it leaves.
///
/// # Errors
/// When the session cannot begin: a client that does not speak the protocol, a directory that is not there.
pub async fn serve(
    engine: Arc<Engine>,
    options: Options,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<()> {
    let root = options.root.canonicalize().map_err(|error| {
        Error::new(agents_domain::ErrorKind::Usage, format!("{}: {error}", options.root.display()))
            .suggest("agents mcp serve --root <DIRECTORY>")
    })?;
    let session = Arc::new(Session::new(engine, Options { root, ..options }));
    let served = session.clone().serve((input, output)).await;
    let ended = match served {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
        // A client that left before it said anything wanted nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    session.close().await;
    ended.map_err(|why| Error::internal(format!("the session ended: {why}")))
}
