//! Showing an actor.

use agents_domain::actor::{ActorDefinition, Entry, PROVIDERS, Shape};
use agents_domain::{QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ToolView, find, options_of, short_hash, tools_of};
use crate::{Engine, Operation};

/// Shows an actor.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// The actor's name.
    pub name: String,
}

/// An actor.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShowOutput {
    pub actor_details: Details,
    pub options: Map<String, Value>,
    pub graph_structure: Structure,
    pub tools: Vec<ToolView>,
    pub skills: Vec<String>,
    pub access: Access,
    pub usage: Usage,
}

/// What it is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Details {
    pub name: String,
    pub description: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub default: bool,
    pub builtin: bool,
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
    #[serde(rename = "type")]
    pub kind: String,
    pub created: Option<String>,
    pub updated: Option<String>,
    pub config: Option<String>,
    pub config_hash: Option<String>,
}

/// Its graph.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Structure {
    pub nodes: usize,
    pub edges: usize,
    pub entry: Option<String>,
    pub exit: Option<String>,
}

/// What it may reach.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Access {
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
    pub filesystem: String,
    pub network: String,
}

/// Who uses it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Usage {
    /// Such as `1 (local/code-coverage)`.
    pub referenced_by_actions: String,
    pub active_in_sessions: u32,
    pub total_runs: u64,
    /// Such as `$0.0032`.
    pub avg_cost_per_run: String,
}

impl Operation for Show {
    const METHOD: &'static str = "registry/actor/show";
    const SUMMARY: &'static str = "Show an actor";
    type Output = ShowOutput;

    fn run(self, engine: &Engine) -> Result<ShowOutput> {
        let name = engine.name(&self.name)?;
        if engine.actors.find(&name).is_some() || PROVIDERS.contains(&name.namespace()) {
            return built_in(engine, &name);
        }
        let actor = find(engine, &name)?;
        let definition = engine.definition_of(&actor, None)?;
        let (provider, model) = definition.shown_model();
        let Shape { nodes, edges, entry, exit } = definition.shape();
        let average = if actor.runs == 0 { 0.0 } else { actor.cost_usd / actor.runs as f64 };
        let mut skills: Vec<String> =
            definition.actors.values().flat_map(|agent| &agent.skills).map(ToString::to_string).collect();
        skills.sort();
        skills.dedup();
        Ok(ShowOutput {
            actor_details: Details {
                name: name.to_string(),
                description: definition.description.clone(),
                provider,
                model,
                default: actor.is_default,
                builtin: false,
                is_unsafe: definition.is_unsafe(),
                kind: kind_of(&definition).to_owned(),
                created: Some(actor.created_at.seconds_rfc3339()),
                updated: Some(actor.updated_at.seconds_rfc3339()),
                config: Some(actor.config_path),
                config_hash: Some(short_hash(&actor.source)),
            },
            options: options_of(&definition),
            graph_structure: Structure { nodes, edges, entry, exit },
            tools: tools_of(&definition),
            skills,
            access: access(definition.is_unsafe()),
            usage: Usage {
                referenced_by_actions: actions_naming(engine, &name)?,
                active_in_sessions: 0,
                total_runs: actor.runs,
                avg_cost_per_run: format!("${average:.4}"),
            },
        })
    }
}

/// Every actor that people define is a graph (ACTOR-001).
fn kind_of(definition: &ActorDefinition) -> &'static str {
    match definition.entry() {
        Some(Entry::Streams(_)) if definition.routes.values().all(|route| route.nodes.is_empty()) => "stream",
        _ => "graph",
    }
}

fn access(is_unsafe: bool) -> Access {
    let network = if is_unsafe { "allowed" } else { "restricted" };
    Access { is_unsafe, filesystem: "allowed".to_owned(), network: network.to_owned() }
}

/// `1 (local/code-coverage)`.
fn actions_naming(engine: &Engine, name: &QualifiedName) -> Result<String> {
    let names = super::remove::actions_naming(engine, name)?;
    Ok(if names.is_empty() { "0".to_owned() } else { format!("{} ({})", names.len(), names.join(", ")) })
}

fn built_in(engine: &Engine, name: &QualifiedName) -> Result<ShowOutput> {
    let is_model = PROVIDERS.contains(&name.namespace());
    let node = Some(name.name().to_owned());
    Ok(ShowOutput {
        actor_details: Details {
            name: name.to_string(),
            description: None,
            provider: is_model.then(|| name.namespace().to_owned()),
            model: is_model.then(|| name.name().to_owned()),
            default: false,
            builtin: true,
            is_unsafe: false,
            kind: if is_model { "llm" } else { "builtin" }.to_owned(),
            created: None,
            updated: None,
            config: None,
            config_hash: None,
        },
        options: Map::new(),
        graph_structure: Structure { nodes: 1, edges: 0, entry: node.clone(), exit: node },
        tools: Vec::new(),
        skills: Vec::new(),
        access: access(false),
        usage: Usage {
            referenced_by_actions: actions_naming(engine, name)?,
            active_in_sessions: 0,
            total_runs: 0,
            avg_cost_per_run: "$0.0000".to_owned(),
        },
    })
}
