//! Operations on actors that people define, and on those that come with the program.

mod add;
mod list;
mod remove;
mod show;

use agents_domain::actor::{ActorDefinition, RegisteredActor};
use agents_domain::{Error, QualifiedName, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Engine;

pub use add::{Add, AddOutput};
pub use list::{List, ListOutput, ListedActor};
pub use remove::{Remove, RemoveOutput};
pub use show::{Show, ShowOutput};

/// A tool that is written in an actor file, or named by it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ToolView {
    pub tool: String,
    pub read_only: bool,
    pub safe: bool,
}

/// The tools that a definition's agents and nodes name, each once.
fn tools_of(definition: &ActorDefinition) -> Vec<ToolView> {
    let mut tools: Vec<ToolView> = Vec::new();
    let flag = |capability: Option<&serde_json::Map<String, Value>>, key: &str| {
        capability.and_then(|map| map.get(key)).and_then(Value::as_bool).unwrap_or(false)
    };
    let mut add = |name: &str, capability: Option<&serde_json::Map<String, Value>>| {
        if !tools.iter().any(|known| known.tool == name) {
            let (read_only, is_unsafe) = (flag(capability, "read_only"), flag(capability, "unsafe"));
            tools.push(ToolView { tool: name.to_owned(), read_only, safe: !is_unsafe });
        }
    };
    for agent in definition.actors.values() {
        for tool in &agent.config.tools {
            add(&tool.name, tool.capability.as_ref());
        }
    }
    for route in definition.routes.values() {
        for (id, node) in route.nodes.iter() {
            if node.anonymous {
                add(id, node.capability.as_ref());
            }
            for tool in &node.tools {
                add(tool, None);
            }
        }
    }
    tools
}

/// The first seven digits of the SHA-256 of a file.
fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>()[..7].to_owned()
}

/// The options of the agent that is asked first.
fn options_of(definition: &ActorDefinition) -> serde_json::Map<String, Value> {
    let Some(agent) = definition.default_agent().and_then(|name| definition.actors.get(name)) else {
        return serde_json::Map::new();
    };
    let config = serde_json::to_value(&agent.config).unwrap_or_default();
    let hidden = ["tools", "system_prompt", "route", "provider", "model", "actor"];
    let shown = |key: &str, value: &Value| {
        let empty =
            value.is_null() || *value == false || value.as_object().is_some_and(serde_json::Map::is_empty);
        !hidden.contains(&key) && !empty
    };
    let mut options: serde_json::Map<String, Value> = config
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, value)| shown(key, value))
        .map(|(key, value)| (key.clone(), agents_domain::redact::redacted(value)))
        .collect();
    if let Some(memory) = &agent.memory {
        options.insert("memory".to_owned(), serde_json::to_value(memory).unwrap_or_default());
    }
    options
}

/// The registered actor of a name, or why there is none.
fn find(engine: &Engine, name: &QualifiedName) -> Result<RegisteredActor> {
    match engine.registered_actor(name)? {
        Some(actor) => Ok(actor),
        None => Err(engine.no_such("actor", name, &engine.actor_names()?, "agents actor list")),
    }
}

/// A name that comes with the program.
fn built_in(name: &QualifiedName) -> Error {
    Error::validation(format!("`{name}` comes with the program and cannot be removed"))
        .suggest("agents actor list")
}
