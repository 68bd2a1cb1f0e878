//! Trying a server: what it really is and offers on this machine.

use std::path::Path;
use std::time::Duration;

use agents_config::{load_language_server, to_error};
use agents_domain::catalogue;
use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::language_servers::ServerReport;
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{locate, registered};
use crate::{Engine, Operation, wait};

/// How long a server may take to start unless it is said.
const START_SECONDS: u32 = 30;

/// Starts a language server, reports what it offers, and stops it. Nothing is registered.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// A registered server, or one of the catalogue that is at hand. Either this or `text`.
    #[serde(default)]
    pub name: Option<String>,
    /// What the file of a server says.
    #[serde(default)]
    pub text: Option<String>,
    /// The file as the person named it, for messages.
    #[serde(default)]
    pub config: Option<String>,
    /// The folder it is started over; absolute. An empty one unless given.
    #[serde(default)]
    pub root: Option<String>,
    /// How long it may take to start.
    #[serde(default)]
    pub timeout_seconds: Option<u32>,
}

/// What it is and offers. A server that cannot be started is an answer, too: see `problem`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckOutput {
    /// The report.
    #[serde(flatten)]
    pub report: ServerReport,
    /// It is in the registry under this name.
    pub registered: bool,
    /// What may help when there is a problem, and what to know of this server otherwise.
    pub hints: Vec<String>,
}

impl Operation for Check {
    const METHOD: &'static str = "lsp/check";
    const SUMMARY: &'static str = "Start a language server to see what it really offers";
    type Output = CheckOutput;

    fn run(self, engine: &Engine) -> Result<CheckOutput> {
        let (definition, registered) = self.definition(engine)?;
        let root = self.root.as_deref().map(Path::new);
        if let Some(root) = root.filter(|root| !root.is_dir()) {
            return Err(Error::not_found(format!("there is no folder {}", root.display())));
        }
        let timeout = Duration::from_secs(self.timeout_seconds.unwrap_or(START_SECONDS).max(1).into());
        let report = wait::wait(engine.language_servers.check(&definition, root, timeout))?;
        let known = catalogue::by_command(&definition.command);
        let hints = known.map(|server| server.notes.clone()).unwrap_or_default();
        Ok(CheckOutput { report, registered, hints })
    }
}

impl Check {
    /// What is to be started, and whether it is registered.
    fn definition(&self, engine: &Engine) -> Result<(LanguageServerDefinition, bool)> {
        match (&self.name, &self.text) {
            (Some(name), None) => named(engine, name),
            (None, Some(text)) => {
                let file = self.config.as_deref().unwrap_or("(text)");
                let loaded = load_language_server(text, file).map_err(|problems| to_error(&problems))?;
                Ok((loaded.value, false))
            }
            _ => {
                Err(Error::new(ErrorKind::Usage, "name a language server, or give its file: one of the two"))
            }
        }
    }
}

fn named(engine: &Engine, text: &str) -> Result<(LanguageServerDefinition, bool)> {
    let name = engine.name(text)?;
    let definitions = registered(engine)?;
    if let Some(found) = definitions.iter().find(|definition| definition.name == name) {
        return Ok((found.clone(), true));
    }
    let Some(server) = catalogue::find(text) else {
        let names = definitions.iter().map(|definition| definition.name.to_string());
        let known = catalogue::servers().iter().map(|server| server.name.clone());
        let names: Vec<String> = names.chain(known).collect();
        return Err(engine.no_such("language server", &name, &names, "agents lsp list"));
    };
    let program = locate(engine, server, &[])?.program;
    let command = program.map_or_else(|| server.command.clone(), |program| program.display().to_string());
    Ok((server.definition(&command)?, false))
}
