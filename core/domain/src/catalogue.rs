//! The language servers that are known without being registered: how each is run, set up and installed, and what it
//! calls silencing a finding. The data is `data/language-servers.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::language_server::{LanguageServerDefinition, Transport};
use crate::name::{InvalidName, LOCAL_NAMESPACE};
use crate::{QualifiedName, language_server};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let parsed = serde_json::from_str(include_str!("../data/language-servers.json"));
    // Data that does not parse is a fault of the build, which a test of this module finds.
    #[allow(clippy::expect_used)]
    parsed.expect("the catalogue is valid")
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    dependency_folders: BTreeMap<String, Vec<String>>,
    servers: Vec<KnownServer>,
}

/// A language server as the catalogue knows it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownServer {
    /// What it is called; registered as `local/<name>`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Ids of the languages it serves.
    pub languages: Vec<String>,
    /// Its program, without a path.
    pub command: String,
    /// The arguments that make it speak the protocol over stdin and stdout.
    #[serde(default)]
    pub args: Vec<String>,
    /// Sent as `initializationOptions`.
    #[serde(default)]
    pub init_options: Value,
    /// Its configuration.
    #[serde(default)]
    pub workspace_settings: Value,
    /// It offers symbols and definitions; a linter does not.
    #[serde(default = "yes")]
    pub navigates: bool,
    /// How it comes to a machine.
    pub install: Install,
    /// Regular expressions (any case) on titles of its code actions that silence a finding instead of fixing it.
    #[serde(default)]
    pub suppress_titles: Vec<String>,
    /// Regular expressions (any case) on texts whose insertion only silences.
    #[serde(default)]
    pub suppress_edits: Vec<String>,
    /// What people should know: what else it needs, what its settings choose.
    #[serde(default)]
    pub notes: Vec<String>,
}

fn yes() -> bool {
    true
}

/// How a server comes to a machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Install {
    /// From its ecosystem's registry, by the ecosystem's own client, into a folder of its own.
    Packages(Packages),
    /// By a person, with one of these commands: it needs rights or tools that are not ours to use.
    ByHand {
        /// Whole commands, most likely first.
        by_hand: Vec<String>,
    },
}

/// What a client is asked to install.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    /// Who installs.
    pub client: Client,
    /// Package names with their versions, which are exact.
    pub packages: BTreeMap<String, String>,
}

/// The program that installs packages of an ecosystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "each is the client of its name")]
pub enum Client {
    Pip,
    Npm,
    Cargo,
}

impl Client {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pip => "pip",
            Self::Npm => "npm",
            Self::Cargo => "cargo",
        }
    }

    /// A package at a version, as this client wants it written: `ruff==0.17.6`, `pyright@1.1.414`.
    pub fn pin(self, package: &str, version: &str) -> String {
        let sign = if self == Self::Pip { "==" } else { "@" };
        format!("{package}{sign}{version}")
    }
}

impl KnownServer {
    /// `local/<name>`.
    ///
    /// # Errors
    /// When its name is none; a test holds that the catalogue has no such server.
    pub fn qualified_name(&self) -> Result<QualifiedName, InvalidName> {
        QualifiedName::parse_in(&self.name, LOCAL_NAMESPACE)
    }

    /// The registry entry that runs it with this command (its program, or a path to it).
    ///
    /// # Errors
    /// As [`Self::qualified_name`].
    pub fn definition(&self, command: &str) -> Result<LanguageServerDefinition, InvalidName> {
        Ok(LanguageServerDefinition {
            name: self.qualified_name()?,
            description: Some(self.description.clone()),
            languages: self.languages.clone(),
            command: command.to_owned(),
            args: self.args.clone(),
            env: BTreeMap::new(),
            transport: Transport::Stdio,
            init_options: self.init_options.clone(),
            workspace_settings: self.workspace_settings.clone(),
            root_path: language_server::default_root(),
            capabilities: None,
            health_check: language_server::HealthCheck::default(),
        })
    }

    /// The command that brings it to this machine.
    pub fn install_command(&self) -> String {
        match &self.install {
            Install::Packages(_) => format!("agents lsp install {}", self.name),
            Install::ByHand { by_hand } => by_hand.first().cloned().unwrap_or_default(),
        }
    }
}

/// All known servers; for a language that several serve, the one to take first comes first.
pub fn servers() -> &'static [KnownServer] {
    &CATALOGUE.servers
}

/// The server of this name; `local/` may stand before it.
pub fn find(name: &str) -> Option<&'static KnownServer> {
    let name = name.strip_prefix("local/").unwrap_or(name);
    servers().iter().find(|server| server.name == name)
}

/// The server whose program a command runs: the last part of its path decides.
pub fn by_command(command: &str) -> Option<&'static KnownServer> {
    let program = command.rsplit('/').next()?;
    servers().iter().find(|server| server.command == program)
}

/// Folders of installed dependencies, of all ecosystems: what repositories ignore, and servers and test runners need to
/// see.
pub fn dependency_folders() -> Vec<&'static str> {
    CATALOGUE.dependency_folders.values().flatten().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_catalogue_has_every_server_it_promises_once() {
        let names: Vec<&str> = servers().iter().map(|server| server.name.as_str()).collect();
        let promised = [
            "ruff",
            "basedpyright",
            "pyright",
            "ty",
            "typescript-language-server",
            "bash-language-server",
            "yaml-language-server",
            "clangd",
            "gopls",
            "rust-analyzer",
        ];
        assert_eq!(names, promised);
        let commands: HashSet<&str> = servers().iter().map(|server| server.command.as_str()).collect();
        assert_eq!(commands.len(), names.len(), "a command tells which server it is");
    }

    #[test]
    fn every_entry_is_whole() {
        for server in servers() {
            let name = &server.name;
            let definition = server.definition(&server.command).unwrap();
            assert_eq!(definition.name.to_string(), format!("local/{name}"));
            assert!(!server.description.is_empty() && !server.languages.is_empty(), "{name}");
            assert!(!server.command.contains(['/', ' ']), "{name}: the command is a program's name");
            for mapping in [&server.init_options, &server.workspace_settings] {
                assert!(mapping.is_null() || mapping.is_object(), "{name}");
            }
            match &server.install {
                Install::Packages(recipe) => {
                    assert!(!recipe.packages.is_empty(), "{name}");
                    let exact = |version: &String| version.split('.').all(|part| part.parse::<u32>().is_ok());
                    assert!(recipe.packages.values().all(exact), "{name}: versions are exact");
                    assert_eq!(server.install_command(), format!("agents lsp install {name}"));
                }
                Install::ByHand { by_hand } => assert!(!by_hand.is_empty(), "{name}"),
            }
        }
    }

    #[test]
    fn servers_are_found_by_name_and_by_program() {
        assert_eq!(find("basedpyright"), find("local/basedpyright"));
        assert_eq!(by_command("/opt/bin/basedpyright-langserver"), find("basedpyright"));
        assert_eq!(find("acme/ruff"), None);
        assert_eq!(by_command("some-server"), None);
        assert_eq!(by_command(""), None);
    }

    #[test]
    fn dependency_folders_are_names_and_each_is_there_once() {
        let folders = dependency_folders();
        assert!(folders.contains(&".venv") && folders.contains(&"node_modules"));
        assert!(folders.iter().all(|folder| !folder.is_empty() && !folder.contains('/')));
        assert_eq!(folders.iter().collect::<HashSet<_>>().len(), folders.len());
    }

    #[test]
    fn packages_are_pinned_the_way_their_client_wants() {
        assert_eq!(Client::Pip.pin("ruff", "1.2"), "ruff==1.2");
        assert_eq!(Client::Npm.pin("@scope/x", "1.2"), "@scope/x@1.2");
        assert_eq!(Client::Cargo.pin("taplo-cli", "1.2"), "taplo-cli@1.2");
    }
}
