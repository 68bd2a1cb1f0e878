//! Bringing a known server to this machine.

use std::collections::BTreeMap;
use std::time::Duration;

use agents_domain::catalogue::{Client, Install as Recipe, KnownServer};
use agents_domain::ports::installer::{InstallProgress, Installation, Installed};
use agents_domain::ports::language_servers::ServerReport;
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{known, registered, servers_dir};
use crate::operations::language_server::register;
use crate::{Engine, Operation, wait};

/// How long a server may take to start the first time.
const FIRST_START: Duration = Duration::from_secs(60);

/// What `agents lsp show` names as the file of a server that was registered from the catalogue.
const CONFIG: &str = "(catalogue of known servers)";

/// Installs a known server into the data directory and registers it. Takes seconds to minutes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Install {
    /// Its name in the catalogue.
    pub name: String,
    /// Install it again, in the version of the catalogue, when it is there already.
    #[serde(default)]
    pub update: bool,
    /// Install nothing, and take the program that is on PATH.
    #[serde(default)]
    pub from_path: bool,
    /// Leave the registry as it is.
    #[serde(default)]
    pub no_register: bool,
}

/// What is in place now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InstallOutput {
    /// Its name in the catalogue.
    pub server: String,
    /// Its program.
    pub program: String,
    /// Who installed it; null for one that was found on PATH.
    pub client: Option<Client>,
    /// The packages that were installed, with their versions.
    pub packages: BTreeMap<String, String>,
    /// It was installed now, not before.
    pub installed_now: bool,
    /// The catalogue has it in other versions than those that are installed; `update` brings them.
    pub outdated: bool,
    /// What it calls itself, with its version, when it was started to try it.
    pub says: Option<String>,
    /// From its start to its first answer then, in milliseconds.
    pub start_ms: Option<u64>,
    /// Its entry in the registry.
    pub registration: Registration,
    /// What people should know of it.
    pub notes: Vec<String>,
}

/// What became of the entry in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Registration {
    /// It was added.
    Added {
        /// Its name.
        name: String,
    },
    /// There was one.
    Present {
        /// Its name.
        name: String,
        /// What it runs.
        command: String,
        /// It runs the program that is in place now.
        current: bool,
    },
    /// It was not asked for.
    Skipped,
}

impl Operation for Install {
    const METHOD: &'static str = "lsp/install";
    const SUMMARY: &'static str = "Install a known language server and register it";
    type Output = InstallOutput;

    fn run(self, engine: &Engine) -> Result<InstallOutput> {
        self.run_with(engine, &|_| {})
    }
}

impl Install {
    /// The same, and says what is going on meanwhile.
    ///
    /// # Errors
    /// When there is no such server; when it is installed by hand and is not there (the suggestions are the commands);
    /// when a client, the network or room is missing. Nothing is left behind then.
    pub fn run_with(
        self,
        engine: &Engine,
        progress: &(dyn Fn(InstallProgress<'_>) + Send + Sync),
    ) -> Result<InstallOutput> {
        let server = known(&self.name)?;
        let installer = engine.installer.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::OperationNotFound, "this program does not install language servers")
        })?;
        let by_hand = matches!(server.install, Recipe::ByHand { .. });
        let on_path = (by_hand || self.from_path).then(|| engine.find_program(&server.command)).flatten();
        let (installation, command) = match on_path {
            Some(program) => {
                progress(InstallProgress::Step(&format!("Starts {} to see that it works", server.name)));
                let installed = Installed { program, packages: BTreeMap::new() };
                let report = Some(tried(engine, server)?);
                // By its name: where it is belongs to the system, which may move it.
                (Installation { installed, report }, server.command.clone())
            }
            None if self.from_path => {
                return Err(Error::not_found(format!("`{}` is not on PATH", server.command))
                    .suggest(server.install_command()));
            }
            None => {
                let dir = servers_dir(engine);
                let done = wait::wait(installer.install(server, &dir, self.update, progress))??;
                let command = done.installed.program.display().to_string();
                (done, command)
            }
        };
        let registration =
            if self.no_register { Registration::Skipped } else { registration(engine, server, &command)? };
        let Installation { installed, report } = installation;
        let (client, outdated) = match &server.install {
            Recipe::Packages(recipe) if !self.from_path => {
                (Some(recipe.client), recipe.packages != installed.packages)
            }
            _ => (None, false),
        };
        let says = report.as_ref().and_then(|report| match (&report.name, &report.version) {
            (Some(name), Some(version)) if !version.starts_with(name) => Some(format!("{name} {version}")),
            (name, version) => version.clone().or_else(|| name.clone()),
        });
        Ok(InstallOutput {
            server: server.name.clone(),
            program: installed.program.display().to_string(),
            client,
            packages: installed.packages,
            installed_now: client.is_some() && report.is_some(),
            outdated,
            says,
            start_ms: report.and_then(|report| report.start_ms),
            registration,
            notes: server.notes.clone(),
        })
    }
}

/// Starts a server that is on PATH once: what is there may be a stand-in, or want something that is not.
fn tried(engine: &Engine, server: &KnownServer) -> Result<ServerReport> {
    let definition = server.definition(&server.command)?;
    let report = wait::wait(engine.language_servers.check(&definition, None, FIRST_START))?;
    let Some(problem) = report.problem else { return Ok(report) };
    let message = format!("`{}` is on PATH, but it does not start", server.command);
    let error = Error::new(ErrorKind::Configuration, message).detail(problem);
    let ways: Vec<String> = match &server.install {
        Recipe::Packages(_) => vec![server.install_command()],
        Recipe::ByHand { by_hand } => by_hand.clone(),
    };
    Err(ways.into_iter().fold(error, Error::suggest))
}

/// Registers a server unless it is registered.
fn registration(engine: &Engine, server: &KnownServer, command: &str) -> Result<Registration> {
    let definition = server.definition(command)?;
    let name = definition.name.to_string();
    match register(engine, &definition, CONFIG, &source(&definition)?, false) {
        Ok(_) => Ok(Registration::Added { name }),
        Err(error) if error.kind == ErrorKind::AlreadyExists => {
            let found = registered(engine)?.into_iter().find(|d| d.name == definition.name);
            let command_now = found.map(|d| d.command).unwrap_or_default();
            Ok(Registration::Present { name, current: command_now == command, command: command_now })
        }
        Err(error) => Err(error),
    }
}

/// The entry as a file that would register it: JSON is YAML.
fn source(definition: &agents_domain::language_server::LanguageServerDefinition) -> Result<String> {
    let mut file = Map::new();
    let fields = [
        ("name", json!(definition.name)),
        ("description", json!(definition.description)),
        ("languages", json!(definition.languages)),
        ("command", json!(definition.command)),
        ("args", json!(definition.args)),
        ("init_options", definition.init_options.clone()),
        ("workspace_settings", definition.workspace_settings.clone()),
    ];
    file.extend(fields.into_iter().filter(|(_, v)| !v.is_null()).map(|(key, value)| (key.to_owned(), value)));
    serde_json::to_string_pretty(&Value::Object(file)).map_err(|e| Error::internal(e.to_string()))
}

#[cfg(test)]
mod tests {
    use agents_domain::catalogue::servers;

    use super::*;

    #[test]
    fn what_is_registered_from_the_catalogue_is_what_its_text_would_register() {
        for server in servers() {
            // What is installed by hand is registered by its bare name.
            let command = match &server.install {
                Recipe::Packages(_) => "/some where/bin/it",
                Recipe::ByHand { .. } => &server.command,
            };
            let definition = server.definition(command).unwrap();
            let loaded = agents_config::load_language_server(&source(&definition).unwrap(), "x").unwrap();
            assert_eq!(loaded.value, definition, "{}", server.name);
            assert!(loaded.hints.is_empty(), "{}: {:?}", server.name, loaded.hints);
        }
    }

    #[test]
    fn languages_of_the_catalogue_are_known_by_these_very_names() {
        for server in servers() {
            for language in &server.languages {
                let id = agents_grammars::LanguageId::from_name(language).map(|id| id.as_str());
                assert_eq!(id, Some(language.as_str()), "{}", server.name);
            }
        }
    }
}
