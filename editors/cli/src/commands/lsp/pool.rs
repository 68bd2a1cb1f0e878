//! `agents lsp pool`: the language servers that are kept warm, and the process that keeps them.

use std::process::ExitCode;

use agents_lsp_runtime::{pool_runs, serve_pool, stop_pool};
use serde_json::json;

use crate::args::{Global, LspPoolArgs};
use crate::commands::json as as_json;
use crate::compose::{self, Environment};
use crate::failure::Outcome;
use crate::logging;
use crate::output::human::counted;
use crate::output::{Kind, col};
use crate::run::Run;

/// Shows what waits in the pool, or ends it.
pub fn run(run: &Run, args: &LspPoolArgs) -> Outcome {
    let out = &run.out;
    let folder = compose::pool_folder(&run.env.data_dir);
    if args.stop {
        let stopped = stop_pool(&folder);
        out.set_data(json!({ "stopped": stopped }));
        out.ok(if stopped { "The pool of warm language servers ends" } else { "No pool runs" });
        return Ok(());
    }
    let enabled = run.env.config.get("lsp.pool.enabled", None).as_text() == "true";
    let running = pool_runs(&folder);
    let warm: Vec<_> =
        run.env.engine()?.running_language_servers().into_iter().filter(|server| server.warm).collect();
    let count = counted(warm.len() as u64, "server waits", "servers wait");
    let data = json!({ "enabled": enabled, "running": running, "warm": as_json(&warm)? });
    let columns = vec![
        col("server", "Server").id(),
        col("root", "Folder").kind(Kind::Path),
        col("pid", "Process"),
        col("start_ms", "Started In (ms)").kind(Kind::Count),
        col("resident_bytes", "Memory").kind(Kind::Bytes),
    ];
    out.table(None, "Warm Language Servers", columns)
        .rows(&data["warm"])
        .when_empty("warm language servers", &["agents lsp serve --proxy auto"]);
    out.set_data(data);
    if !enabled {
        out.info("Language servers are not kept warm; agents config set lsp.pool.enabled true changes that");
    }
    out.ok(if running { format!("The pool runs; {count}") } else { "No pool runs".to_owned() });
    Ok(())
}

/// Runs the pool until nothing is left to do.
pub fn serve(global: &Global) -> ExitCode {
    let environment = match Environment::load(global) {
        Ok(environment) => environment,
        Err(_) => return ExitCode::from(1),
    };
    // It has no terminal; without a log it works all the same.
    let _ = logging::Plan::of_worker(global.verbose, &environment.config).start();
    match serve_pool(compose::pool_options(&environment)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "language servers are not kept warm");
            ExitCode::FAILURE
        }
    }
}
