//! `agents mcp serve`: language servers and plans as tools of other agents.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use agents_domain::{Error, ErrorKind, QualifiedName};
use agents_mcp::Options;

use crate::args::{Global, McpServeArgs};
use crate::compose::{self, Environment};
use crate::logging;

pub fn serve(global: &Global, args: &McpServeArgs) -> ExitCode {
    match start(global, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "agents mcp serve: {error}");
            for suggestion in &error.suggestions {
                let _ = writeln!(io::stderr(), "  {suggestion}");
            }
            ExitCode::from(if error.kind == ErrorKind::Usage { 2 } else { 1 })
        }
    }
}

fn start(global: &Global, args: &McpServeArgs) -> Result<(), Error> {
    let level = args.log_level.filter();
    let level = logging::level_of(global.verbose).unwrap_or(level).max(level);
    logging::start_plain(level, args.log_file.as_deref())?;
    let environment = Environment::load(global)?;
    for warning in environment.config.warnings() {
        tracing::warn!("{warning}");
    }
    let engine = environment.engine()?;
    let registered = engine.language_servers()?;
    let mut servers = Vec::new();
    for name in &args.server {
        let server: QualifiedName = name.parse()?;
        if !registered.iter().any(|known| known.name == server) {
            let error = Error::not_found(format!("the language server {server} is not registered"));
            return Err(error.suggest("agents lsp list"));
        }
        servers.push(server);
    }
    let root = compose::absolute(args.root.as_deref().unwrap_or("."))?;
    let options = Options { root: root.into(), servers, write: args.write, plans: !args.no_plans };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::internal(format!("the asynchronous runtime cannot start: {e}")))?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let ended = runtime.block_on(agents_mcp::serve(engine, options, input, output));
    // A read of stdin that still waits is not waited for.
    runtime.shutdown_timeout(Duration::from_secs(2));
    ended
}
