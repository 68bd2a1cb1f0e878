//! `agents plan-worker`: the process that works on a plan. It has no terminal; what it says goes to its log.

use std::process::ExitCode;

use agents_domain::Error;
use agents_engine::worker::Ended;
use tracing::level_filters::LevelFilter;

use crate::args::Global;
use crate::compose::Environment;
use crate::{logging, models};

pub fn run(global: &Global, plan: &str) -> ExitCode {
    match work(global, plan) {
        Ok(ended) => {
            tracing::info!(plan, ?ended, "the worker ends");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!(plan, code = error.kind.code(), detail = error.detail, "{error}");
            ExitCode::FAILURE
        }
    }
}

fn work(global: &Global, plan: &str) -> Result<Ended, Error> {
    let environment = Environment::load(global);
    let logged = environment
        .as_ref()
        .is_ok_and(|found| logging::Plan::of_worker(global.verbose, &found.config).start().is_ok());
    if !logged {
        // Without a log the work goes on; the plan's own record tells what fails.
        let _ = logging::start_plain(LevelFilter::WARN, None);
    }
    let environment = environment?;
    let id = plan.parse()?;
    if environment.config.boolean("actor.record-models", None) {
        let cassette = models::cassettes(&environment.data_dir).join(format!("{plan}.jsonl"));
        environment.record_models(cassette);
    }
    let engine = environment.engine()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::internal(format!("the asynchronous runtime cannot start: {e}")))?;
    let ended = runtime.block_on(agents_engine::worker::run(&engine, id));
    // A server that does not leave is not waited for: the plan's state is written.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    ended
}
