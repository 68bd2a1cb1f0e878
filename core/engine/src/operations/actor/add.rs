//! Registering an actor from its file.

use agents_config::{Loaded, Problem, Severity, nearest, to_error};
use agents_domain::actor::{ActorDefinition, Overrides, RegisteredActor};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ToolView, options_of, short_hash, tools_of};
use crate::actors::needed_by;
use crate::operations::registry;
use crate::{Engine, Operation, clock};

/// Registers an actor from the text of its file.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// The file as the person named it, which messages repeat.
    pub config: String,
    /// Where the file is, which is kept: absolute. As it was named unless given.
    #[serde(default)]
    pub path: Option<String>,
    /// What the file says.
    pub text: String,
    /// Replace an actor of that name.
    #[serde(default)]
    pub update: bool,
    /// It may do what no sandbox keeps in, whatever its file says.
    #[serde(default, rename = "unsafe")]
    pub is_unsafe: bool,
    /// More skills for its agents that have a model.
    #[serde(default)]
    pub skills: Vec<String>,
    /// The provider of its models, whatever its file says.
    #[serde(default)]
    pub provider: Option<String>,
    /// Its model, whatever its file says.
    #[serde(default)]
    pub model: Option<String>,
}

/// The registered actor, with what its file could say better.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AddOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_added: Option<AddedActor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_updated: Option<UpdatedActor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    pub config: ConfigView,
    pub capabilities: Vec<String>,
    pub tools: Vec<ToolView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Problem>,
}

/// An actor as it was registered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AddedActor {
    pub name: String,
    pub provider: Option<String>,
    pub model: Option<String>,
    /// Used where no actor is named.
    pub default: bool,
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
    #[serde(rename = "type")]
    pub kind: String,
}

/// An actor that was replaced.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct UpdatedActor {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
}

/// What is different of an actor that was replaced.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Changes {
    /// Such as `+1 (local/git-ops)`.
    pub skills: String,
    pub model: String,
    pub graph: String,
}

/// What its file is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ConfigView {
    pub path: String,
    /// The first seven digits of its SHA-256.
    pub hash: String,
    pub options: usize,
    pub nodes: usize,
    pub edges: usize,
}

impl Operation for Add {
    const METHOD: &'static str = "registry/actor/add";
    const SUMMARY: &'static str = "Register an actor from its file";
    type Output = AddOutput;

    fn run(self, engine: &Engine) -> Result<AddOutput> {
        let skills: Vec<QualifiedName> =
            self.skills.iter().map(|name| engine.name(name)).collect::<Result<_>>()?;
        let overrides =
            Overrides { provider: self.provider, model: self.model, is_unsafe: self.is_unsafe, skills };
        let loaded = engine
            .read_actor(&self.text, &self.config, &overrides, None)?
            .map_err(|problems| to_error(&problems))?;
        let definition = &loaded.value;
        let name = definition.name.clone();
        registry::check_own("an actor", &name)?;
        check_needed(engine, &loaded)?;
        if let Some(circle) = engine.actor_circle(definition)? {
            let message = format!("actors need each other in a circle: {}", circle.join(" -> "));
            return Err(Error::validation(message).data(json!({ "circle": circle })));
        }
        let mut hints = loaded.hints.clone();
        hints.extend(unknown_servers(engine, &loaded)?);
        let before = match engine.registered_actor(&name)? {
            Some(known) => engine.definition_of(&known, None).ok(),
            None => None,
        };
        let path = self.path.as_deref().unwrap_or(&self.config);
        let (registered, updated) = engine.write(|w| {
            let known = w.actor(&name)?;
            let now = clock::now();
            if let Some(known) = &known {
                if !self.update {
                    return Err(exists(&name, known, &self.config));
                }
                let actor = RegisteredActor {
                    source: self.text.clone(),
                    config_path: path.to_owned(),
                    overrides: overrides.clone(),
                    updated_at: clock::after(known.updated_at),
                    ..known.clone()
                };
                w.update_actor(&actor)?;
                registry::changed(engine, w, "actor", &name.to_string(), "updated")?;
                return Ok((actor, true));
            }
            // The first actor is the default (CLI-156).
            let is_default = !w.actors()?.iter().any(|actor| actor.is_default);
            let actor = RegisteredActor {
                name: name.clone(),
                source: self.text.clone(),
                config_path: path.to_owned(),
                overrides: overrides.clone(),
                is_default,
                runs: 0,
                cost_usd: 0.0,
                created_at: now,
                updated_at: now,
            };
            w.insert_actor(&actor)?;
            registry::changed(engine, w, "actor", &name.to_string(), "added")?;
            Ok((actor, false))
        })?;
        let shape = definition.shape();
        let (provider, model) = definition.shown_model();
        let kind = "graph".to_owned();
        Ok(AddOutput {
            actor_added: (!updated).then(|| AddedActor {
                name: name.to_string(),
                provider,
                model,
                default: registered.is_default,
                is_unsafe: definition.is_unsafe(),
                kind: kind.clone(),
            }),
            actor_updated: updated.then(|| UpdatedActor {
                name: name.to_string(),
                kind,
                status: "updated".to_owned(),
            }),
            changes: updated.then(|| changes(before.as_ref(), definition)),
            config: ConfigView {
                path: registered.config_path,
                hash: short_hash(&self.text),
                options: options_of(definition).len(),
                nodes: shape.nodes,
                edges: shape.edges,
            },
            capabilities: capabilities(definition),
            tools: tools_of(definition),
            hints,
        })
    }
}

fn exists(name: &QualifiedName, known: &RegisteredActor, config: &str) -> Error {
    let message = format!("Actor already exists: {name}");
    let hint = "Use --update to replace the existing actor definition.";
    Error::new(ErrorKind::AlreadyExists, &message)
        .suggest(format!("agents actor add --update --config {config}"))
        .data(json!({ "error": {
            "message": message, "registered": known.created_at.seconds_rfc3339(), "hint": hint,
        } }))
}

/// Every actor that is named has to be registered before (ACTOR-006).
fn check_needed(engine: &Engine, loaded: &Loaded<ActorDefinition>) -> Result<()> {
    let mut problems = Vec::new();
    let known = engine.actor_names()?;
    for needed in needed_by(&loaded.value) {
        if needed.name != loaded.value.name && !engine.has_actor(&needed.name)? {
            let meant = match nearest(&needed.name.to_string(), known.iter().map(String::as_str)) {
                Some(meant) => format!(": did you mean `{meant}`?"),
                None => ": register it first".to_owned(),
            };
            let message = format!("there is no actor `{}`{meant}", needed.name);
            problems.push(loaded.problem(Severity::Error, &needed.path, message));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(to_error(&problems)) }
}

/// A server that is not registered yet may be later; it has to be there when the actor runs.
fn unknown_servers(engine: &Engine, loaded: &Loaded<ActorDefinition>) -> Result<Vec<Problem>> {
    let known = engine.view(|r| r.language_servers())?;
    let mut problems = Vec::new();
    for (name, agent) in loaded.value.actors.iter() {
        for (at, server) in agent.lsp.as_array().into_iter().flatten().enumerate() {
            let Some(server) = server.as_str() else { continue };
            if !known.iter().any(|one| one.definition.name.to_string() == server) {
                let message = format!(
                    "the language server {server} is not registered: the actor cannot run before it is"
                );
                problems.push(loaded.problem(
                    Severity::Warning,
                    &format!("actors.{name}.lsp[{at}]"),
                    message,
                ));
            }
        }
    }
    Ok(problems)
}

fn skills_of(definition: &ActorDefinition) -> Vec<String> {
    let mut skills: Vec<String> =
        definition.actors.values().flat_map(|agent| &agent.skills).map(ToString::to_string).collect();
    skills.sort();
    skills.dedup();
    skills
}

/// What it can do, in words: its description, and the skills and language servers it has.
fn capabilities(definition: &ActorDefinition) -> Vec<String> {
    let mut words: Vec<String> = definition.description.clone().into_iter().collect();
    words.extend(skills_of(definition));
    if definition.actors.values().any(|agent| !agent.lsp.is_null()) {
        words.push("language servers".to_owned());
    }
    words
}

fn changes(before: Option<&ActorDefinition>, after: &ActorDefinition) -> Changes {
    let Some(before) = before else {
        let unknown = || "unknown: what was registered cannot be read".to_owned();
        return Changes { skills: unknown(), model: unknown(), graph: unknown() };
    };
    let (old, new) = (skills_of(before), skills_of(after));
    let added: Vec<&str> = new.iter().filter(|skill| !old.contains(skill)).map(String::as_str).collect();
    let removed: Vec<&str> = old.iter().filter(|skill| !new.contains(skill)).map(String::as_str).collect();
    let mut parts = Vec::new();
    if !added.is_empty() {
        parts.push(format!("+{} ({})", added.len(), added.join(", ")));
    }
    if !removed.is_empty() {
        parts.push(format!("-{} ({})", removed.len(), removed.join(", ")));
    }
    let word = |same: bool| if same { "unchanged" } else { "updated" }.to_owned();
    let graph = |definition: &ActorDefinition| -> Value {
        json!([definition.routes, definition.merges, definition.splits, definition.publications])
    };
    Changes {
        skills: if parts.is_empty() { "unchanged".to_owned() } else { parts.join(", ") },
        model: word(before.shown_model() == after.shown_model()),
        graph: word(graph(before) == graph(after)),
    }
}
