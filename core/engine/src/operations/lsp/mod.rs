//! Operations on language servers beside their registry: which fit a folder, bringing one to this machine, trying one.

mod check;
mod detect;
mod index;
mod install;

pub use check::{Check, CheckOutput};
pub(crate) use detect::languages_of;
pub use detect::{Detect, DetectOutput, DetectedLanguage, DetectedServer};
pub use index::{Index, IndexOutput, IndexedLanguage, SkippedFiles};
pub use install::{Install, InstallOutput, Registration};

use std::path::PathBuf;

use agents_config::nearest;
use agents_domain::catalogue::{self, KnownServer};
use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Engine;

/// How a known server is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// It is registered, and its command is there: plans and editors use it.
    Registered,
    /// It was installed into the data directory, and is not registered.
    Installed,
    /// Its program is on PATH, and it is not registered.
    OnPath,
    /// It is registered, and its command is not there.
    Broken,
    /// It is not on this machine.
    Missing,
}

/// Where a known server is.
struct Located {
    state: ServerState,
    registered_as: Option<String>,
    program: Option<PathBuf>,
}

/// The folder that installed servers are in.
fn servers_dir(engine: &Engine) -> PathBuf {
    engine.data_dir.join("servers")
}

/// Looks for a known server: among the registered ones (by its name, else by its program), among those installed, on
/// PATH.
fn locate(engine: &Engine, server: &KnownServer, registered: &[LanguageServerDefinition]) -> Result<Located> {
    let name = server.qualified_name()?;
    let runs_it = |d: &&LanguageServerDefinition| {
        catalogue::by_command(&d.command).is_some_and(|known| known.name == server.name)
    };
    let entry = registered.iter().find(|d| d.name == name).or_else(|| registered.iter().find(runs_it));
    if let Some(entry) = entry {
        // What a variable stands for is known only when the server is started.
        let depends = entry.command.contains("${");
        let program = engine.find_program(&entry.command);
        let there = depends || program.is_some();
        return Ok(Located {
            state: if there { ServerState::Registered } else { ServerState::Broken },
            registered_as: Some(entry.name.to_string()),
            program,
        });
    }
    let installed = engine.installer.as_ref().and_then(|i| i.installed(server, &servers_dir(engine)));
    let (state, program) = match (installed, engine.find_program(&server.command)) {
        (Some(installed), _) => (ServerState::Installed, Some(installed.program)),
        (None, Some(program)) => (ServerState::OnPath, Some(program)),
        (None, None) => (ServerState::Missing, None),
    };
    Ok(Located { state, registered_as: None, program })
}

fn registered(engine: &Engine) -> Result<Vec<LanguageServerDefinition>> {
    Ok(engine.view(|r| r.language_servers())?.into_iter().map(|server| server.definition).collect())
}

/// The known server of a name, or what may have been meant.
fn known(name: &str) -> Result<&'static KnownServer> {
    catalogue::find(name).ok_or_else(|| {
        let names = || catalogue::servers().iter().map(|server| server.name.as_str());
        let error = Error::not_found(format!("there is no known language server `{name}`"))
            .detail(format!("Known are {}.", names().collect::<Vec<_>>().join(", ")));
        let meant = nearest(name, names()).map(|meant| format!("agents lsp install {meant}"));
        meant.into_iter().fold(error, Error::suggest).suggest("agents lsp add --config <FILE>")
    })
}

impl Engine {
    fn find_program(&self, command: &str) -> Option<PathBuf> {
        self.installer.as_ref()?.find_program(command)
    }
}
