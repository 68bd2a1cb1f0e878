//! Starts one server to see what it really offers, and stops it again.

use std::path::Path;
use std::time::Duration;

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::language_servers::{DiagnosticsMode, ServerReport};
use tokio::time::Instant;

use crate::client::{Client, StartError};
use crate::runtime::Timing;
use crate::{activity, launch};

/// A server that rests for so long after its start has registered what it offers.
const REST: Duration = Duration::from_secs(1);

/// Starts a server over a directory, reports, and shuts it down. Bounded by twice
/// `start_timeout` and a few seconds.
pub(crate) async fn check(
    definition: &LanguageServerDefinition,
    root: &Path,
    start_timeout: Duration,
) -> ServerReport {
    let mut report = ServerReport::new(definition);
    let started = match launch::prepare(definition, root) {
        Ok(launch) => Client::start(&launch, &definition.workspace_settings, start_timeout, 1).await,
        Err(reason) => Err(StartError::Permanent(reason)),
    };
    let client = match started {
        Ok(client) => client,
        Err(StartError::Permanent(reason) | StartError::Crashed(reason)) => {
            report.problem = Some(reason);
            return report;
        }
    };
    report.name.clone_from(&client.facts.name);
    report.version.clone_from(&client.facts.version);
    report.capabilities = client.facts.lent(definition);
    report.advertised = client.facts.advertised();
    report.encoding = Some(client.facts.encoding.name().to_owned());
    report.start_ms = Some(u64::try_from(client.start_time.as_millis()).unwrap_or(u64::MAX));
    report.diagnostics = Some(mode(&client, start_timeout).await);
    report.resident_bytes = activity::usage(client.process.pid).map(|usage| usage.resident);
    client.shut_down(Timing::default().shutdown).await;
    report.stderr_tail = client.process.tail.text(40);
    report
}

/// The same over an empty folder that is gone afterwards.
pub(crate) async fn check_alone(
    definition: &LanguageServerDefinition,
    start_timeout: Duration,
) -> ServerReport {
    match tempfile::tempdir() {
        Ok(root) => check(definition, root.path(), start_timeout).await,
        Err(error) => {
            let problem = Some(format!("there is no folder to start it in: {error}"));
            ServerReport { problem, ..ServerReport::new(definition) }
        }
    }
}

async fn mode(client: &Client, limit: Duration) -> DiagnosticsMode {
    if client.facts.pull.is_some() {
        return DiagnosticsMode::Pull;
    }
    let begun = Instant::now();
    let mut events = client.shared.events();
    loop {
        events.mark_unchanged();
        if client.shared.registrations(|registrations| registrations.any_pull()) {
            return DiagnosticsMode::PullDynamic;
        }
        let rests_since = client.idle_since().unwrap_or(begun);
        if client.closed().is_some() || begun.elapsed() >= limit || rests_since.elapsed() >= REST {
            return DiagnosticsMode::Push;
        }
        let _ = tokio::time::timeout(REST / 10, events.changed()).await;
    }
}
