//! Starts one server to see what it really offers, and stops it again.

use std::path::Path;
use std::time::Duration;

use agents_domain::QualifiedName;
use agents_domain::language_server::{Capability, LanguageServerDefinition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::client::{Client, StartError};
use crate::runtime::Timing;
use crate::{activity, launch};

/// A server that rests for so long after its start has registered what it offers.
const REST: Duration = Duration::from_secs(1);

/// What a registered server really is and offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerReport {
    /// The registry name.
    pub server: QualifiedName,
    /// What was run.
    pub command_line: String,
    /// Why it could not be started; everything below is then empty, save what it printed.
    pub problem: Option<String>,
    /// What it calls itself.
    pub name: Option<String>,
    /// In its own words.
    pub version: Option<String>,
    /// What would be lent: declared in the registry entry and offered by the server.
    pub capabilities: Vec<Capability>,
    /// Everything it offers, in the protocol's names (`hoverProvider`, ...), sorted.
    pub advertised: Vec<String>,
    /// The position encoding agreed upon: `utf-8`, `utf-16` or `utf-32`.
    pub encoding: Option<String>,
    /// How it tells diagnostics.
    pub diagnostics: Option<DiagnosticsMode>,
    /// From the start of the process to its `initialize` answer, in milliseconds.
    pub start_ms: Option<u64>,
    /// Resident memory of its processes after the start, in bytes, where the system tells.
    pub resident_bytes: Option<u64>,
    /// The end of what it printed.
    pub stderr_tail: String,
}

/// How a server tells diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticsMode {
    /// Asked for each document.
    Pull,
    /// The same, registered after the start.
    PullDynamic,
    /// Published by the server on its own.
    Push,
}

/// Starts a server over a directory, reports, and shuts it down. Bounded by twice
/// `start_timeout` and a few seconds.
pub async fn check(
    definition: &LanguageServerDefinition,
    root: &Path,
    start_timeout: Duration,
) -> ServerReport {
    let mut report = ServerReport {
        server: definition.name.clone(),
        command_line: definition.command_line(),
        problem: None,
        name: None,
        version: None,
        capabilities: Vec::new(),
        advertised: Vec::new(),
        encoding: None,
        diagnostics: None,
        start_ms: None,
        resident_bytes: None,
        stderr_tail: String::new(),
    };
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
