//! Operations on registered language servers.

use agents_config::{Problem, language_hints, load_language_server, to_error};
use agents_domain::language_server::binding::Mode;
use agents_domain::language_server::{Capability, LanguageServerDefinition};
use agents_domain::ports::language_servers::RunningServer;
use agents_domain::ports::store::RegisteredServer;
use agents_domain::redact::redacted;
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use agents_grammars::LanguageId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::registry;
use crate::{Engine, Operation, clock};

/// What a server whose file names no capabilities is shown with.
const ALL_CAPABILITIES: [Capability; 9] = [
    Capability::Diagnostics,
    Capability::Hover,
    Capability::Completions,
    Capability::References,
    Capability::Definitions,
    Capability::Symbols,
    Capability::Formatting,
    Capability::CodeActions,
    Capability::Rename,
];

/// Registers a language server from the text of its file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// The file as the person named it, which messages repeat.
    pub config: String,
    /// Where the file is, which is kept: absolute. As it was named unless given.
    #[serde(default)]
    pub path: Option<String>,
    /// What the file says.
    pub text: String,
    /// Replace a server of that name.
    #[serde(default)]
    pub update: bool,
}

/// The registered server, with what its file could say better.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AddOutput {
    pub lsp_server: AddedServer,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Problem>,
}

/// A server as it was registered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AddedServer {
    pub name: String,
    pub languages: Vec<String>,
    /// With its arguments.
    pub command: String,
    pub capabilities: Vec<Capability>,
    /// It replaced one of that name.
    pub updated: bool,
}

impl Operation for Add {
    const METHOD: &'static str = "registry/lsp/add";
    const SUMMARY: &'static str = "Register a language server from its file";
    type Output = AddOutput;

    fn run(self, engine: &Engine) -> Result<AddOutput> {
        let loaded =
            load_language_server(&self.text, &self.config).map_err(|problems| to_error(&problems))?;
        let mut hints = loaded.hints.clone();
        hints.extend(language_hints(&loaded, |name| {
            LanguageId::from_name(name).map(|id| id.as_str().to_owned())
        }));
        let definition = loaded.value;
        let path = self.path.as_deref().unwrap_or(&self.config);
        let updated = register(engine, &definition, path, &self.text, self.update).map_err(|error| {
            // What is suggested is typed where this was typed.
            let taken = error.kind == ErrorKind::AlreadyExists;
            if taken { exists(&definition.name, &self.config) } else { error }
        })?;
        Ok(AddOutput {
            lsp_server: AddedServer {
                name: definition.name.to_string(),
                command: definition.command_line(),
                capabilities: capabilities(&definition),
                languages: definition.languages,
                updated,
            },
            hints,
        })
    }
}

/// Enters a server; `true` when it replaced one of its name, which only happens with `update`.
pub(super) fn register(
    engine: &Engine,
    definition: &LanguageServerDefinition,
    config: &str,
    source: &str,
    update: bool,
) -> Result<bool> {
    let name = &definition.name;
    registry::check_own("a language server", name)?;
    engine.write(|w| {
        let known = w.language_server(name)?;
        let server = |created_at, updated_at| RegisteredServer {
            definition: definition.clone(),
            config_path: config.to_owned(),
            source: source.to_owned(),
            created_at,
            updated_at,
        };
        match &known {
            Some(_) if !update => return Err(exists(name, config)),
            Some(known) => {
                w.update_language_server(&server(known.created_at, clock::after(known.updated_at)))?;
                registry::changed(engine, w, "lsp_server", &name.to_string(), "updated")?;
            }
            None => {
                let now = clock::now();
                w.insert_language_server(&server(now, now))?;
                registry::changed(engine, w, "lsp_server", &name.to_string(), "added")?;
            }
        }
        Ok(known.is_some())
    })
}

fn exists(name: &QualifiedName, config: &str) -> Error {
    let message = format!("LSP server '{name}' already exists");
    Error::new(ErrorKind::AlreadyExists, &message)
        .suggest(format!("agents lsp add --update --config {config}"))
        .data(json!({ "error": message }))
}

fn capabilities(definition: &LanguageServerDefinition) -> Vec<Capability> {
    definition.capabilities.clone().unwrap_or_else(|| ALL_CAPABILITIES.to_vec())
}

/// Lists language servers; filters combine.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only this namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Only servers of this language, by any of its names.
    #[serde(default)]
    pub language: Option<String>,
    /// A regular expression on the name.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// Language servers by name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    pub lsp_servers: Vec<ListedServer>,
    pub total: usize,
    /// The filters that were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Map<String, Value>>,
}

/// A server in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListedServer {
    pub name: String,
    pub languages: Vec<String>,
    pub command: String,
    pub bound_actors: u32,
    /// Its processes that somebody works with.
    pub running: u32,
    /// Its processes that wait for somebody.
    pub warm: u32,
}

/// Two names of one language.
fn same_language(a: &str, b: &str) -> bool {
    match (LanguageId::from_name(a), LanguageId::from_name(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a.eq_ignore_ascii_case(b),
    }
}

impl Operation for List {
    const METHOD: &'static str = "registry/lsp/list";
    const SUMMARY: &'static str = "List language servers";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let names = registry::Wanted::new(self.namespace.as_deref(), self.pattern.as_deref())?;
        let processes = engine.running_language_servers();
        let count = |name: &QualifiedName, warm: bool| {
            let of = |one: &&RunningServer| one.server == *name && one.warm == warm;
            u32::try_from(processes.iter().filter(of).count()).unwrap_or(u32::MAX)
        };
        let bound = |definition: &LanguageServerDefinition| -> Result<u32> {
            let actors = engine.bound_actors(&definition.name, &definition.languages)?;
            Ok(u32::try_from(actors.len()).unwrap_or(u32::MAX))
        };
        let mut lsp_servers: Vec<ListedServer> = engine
            .view(|r| r.language_servers())?
            .into_iter()
            .map(|server| server.definition)
            .filter(|d| names.has(&d.name))
            .filter(|d| {
                self.language.as_ref().is_none_or(|l| d.languages.iter().any(|of| same_language(of, l)))
            })
            .map(|d| {
                Ok(ListedServer {
                    name: d.name.to_string(),
                    command: d.command_line(),
                    running: count(&d.name, false),
                    warm: count(&d.name, true),
                    bound_actors: bound(&d)?,
                    languages: d.languages,
                })
            })
            .collect::<Result<_>>()?;
        lsp_servers.sort_by(|a, b| a.name.cmp(&b.name));
        let given = [("namespace", self.namespace), ("language", self.language), ("pattern", self.pattern)];
        let filter: Map<String, Value> =
            given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))).collect();
        Ok(ListOutput {
            total: lsp_servers.len(),
            lsp_servers,
            filter: (!filter.is_empty()).then_some(filter),
        })
    }
}

/// Shows a language server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// The server's name.
    pub name: String,
}

/// A registered server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShowOutput {
    pub lsp_server: ServerView,
}

/// All of a server that is shown. Its environment is not: it may hold secrets.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ServerView {
    pub name: String,
    pub description: Option<String>,
    pub languages: Vec<String>,
    pub command: String,
    pub root_path: String,
    /// Secrets are masked.
    pub init_options: Value,
    /// Secrets are masked.
    pub workspace_settings: Value,
    pub capabilities: Vec<Capability>,
    pub bound_actors: Vec<BoundActor>,
    pub config: String,
    pub created: String,
}

/// An actor the server is lent to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct BoundActor {
    pub name: String,
    pub binding_mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

fn find(engine: &Engine, name: &str) -> Result<RegisteredServer> {
    let name = engine.name(name)?;
    let found = engine.view(|r| match r.language_server(&name)? {
        Some(server) => Ok(Ok(server)),
        None => {
            Ok(Err(r.language_servers()?.iter().map(|s| s.definition.name.to_string()).collect::<Vec<_>>()))
        }
    })?;
    found.map_err(|known| engine.no_such("language server", &name, &known, "agents lsp list"))
}

impl Operation for Show {
    const METHOD: &'static str = "registry/lsp/show";
    const SUMMARY: &'static str = "Show a language server";
    type Output = ShowOutput;

    fn run(self, engine: &Engine) -> Result<ShowOutput> {
        let RegisteredServer { definition, config_path, created_at, .. } = find(engine, &self.name)?;
        let bound = engine.bound_actors(&definition.name, &definition.languages)?;
        // What a person wrote into the file may be a secret.
        let mapping = |value: &Value| if value.is_null() { json!({}) } else { redacted(value) };
        Ok(ShowOutput {
            lsp_server: ServerView {
                name: definition.name.to_string(),
                command: definition.command_line(),
                capabilities: capabilities(&definition),
                description: definition.description,
                languages: definition.languages,
                root_path: definition.root_path,
                init_options: mapping(&definition.init_options),
                workspace_settings: mapping(&definition.workspace_settings),
                bound_actors: bound
                    .into_iter()
                    .map(|(name, mode, language)| BoundActor {
                        name: name.to_string(),
                        binding_mode: mode,
                        language,
                    })
                    .collect(),
                config: config_path,
                created: created_at.seconds_rfc3339(),
            },
        })
    }
}

/// Removes a language server from the registry; those that run are ended.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// The server's name.
    pub name: String,
}

/// What was removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemoveOutput {
    pub lsp_server_removed: RemovedServer,
    pub broken_references: Vec<BrokenReference>,
    /// How many running instances of it were ended; absent when none ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances_ended: Option<usize>,
}

/// The removed server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemovedServer {
    pub name: String,
    pub languages: Vec<String>,
}

/// Something that still names it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct BrokenReference {
    #[serde(rename = "type")]
    pub reference_type: String,
    pub name: String,
}

impl Operation for Remove {
    const METHOD: &'static str = "registry/lsp/remove";
    const SUMMARY: &'static str = "Remove a language server from the registry";
    type Output = RemoveOutput;

    fn run(self, engine: &Engine) -> Result<RemoveOutput> {
        let definition = find(engine, &self.name)?.definition;
        let bound = engine.bound_actors(&definition.name, &definition.languages)?;
        engine.write(|w| {
            w.delete_language_server(&definition.name)?;
            registry::deleted(engine, w, "lsp_server", &definition.name.to_string(), json!([]))
        })?;
        Ok(RemoveOutput {
            lsp_server_removed: RemovedServer {
                name: definition.name.to_string(),
                languages: definition.languages,
            },
            broken_references: bound
                .into_iter()
                .filter(|(_, mode, _)| *mode == Mode::Explicit)
                .map(|(name, _, _)| BrokenReference {
                    reference_type: "actor".to_owned(),
                    name: name.to_string(),
                })
                .collect(),
            instances_ended: Some(engine.language_servers.end(&definition.name)).filter(|ended| *ended > 0),
        })
    }
}
