//! Actors that people define: agents and how they work together, as their files say it.
//!
//! A file has one of two forms (one actor at the top, or `actors` with `routes`); the loader in `agents-config` brings
//! both to [`ActorDefinition`]. The order of the file is kept, because it means something: the first agent is the
//! default.

mod agent;
mod check;
mod entry;
mod ordered;
mod registered;
mod route;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::QualifiedName;

pub use agent::{
    Agent, AgentConfig, ContextFiles, ContextView, Enrichment, LocalTool, Memory, Parameter, Remembers,
};
pub use check::{BRIDGE_FUNCTIONS, Finding, check};
pub use entry::{Entry, INPUT, OUTPUT, Shape};
pub use ordered::Ordered;
pub use registered::{Overrides, RegisteredActor};
pub use route::{
    Branch, Bridge, Edge, MatchKind, Merge, Node, NodeKind, Operator, OperatorKind, RetryPolicy, Route,
    RouteKind, Rule, Split, StreamKind,
};

/// Namespaces of model providers: names in them stand for their models.
pub const PROVIDERS: &[&str] = &[
    "anthropic",
    "azure",
    "cohere",
    "google",
    "groq",
    "huggingface",
    "ollama",
    "openai",
    "openrouter",
    "replay",
    "together",
];

/// An actor file, in the form with `actors`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActorDefinition {
    /// Its name: `namespace/name`, lower case.
    pub name: QualifiedName,
    /// What it is: `llm`, `tool` or `graph`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<AgentKind>,
    /// What it does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The version of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The provider of the models; goes before what the agents say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model; goes before what the agents say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// It may do what no sandbox keeps in; running it needs `--unsafe`.
    #[serde(default, rename = "unsafe")]
    pub is_unsafe: bool,
    /// About the file itself.
    #[serde(default)]
    pub cleveragents: Settings,
    /// The agents by name; the first is the default.
    #[serde(default)]
    pub actors: Ordered<Agent>,
    /// How they work together: graphs and streams by name.
    #[serde(default)]
    pub routes: Ordered<Route>,
    /// Streams whose messages go into another.
    #[serde(default)]
    pub merges: Vec<Merge>,
    /// Streams whose messages are copied to others.
    #[serde(default)]
    pub splits: Vec<Split>,
    /// Streams that are shown.
    #[serde(default)]
    pub publications: Vec<String>,
    /// Templates that can be included (`{template: text}`), or made into actors and routes by `instances`.
    #[serde(default)]
    pub templates: Map<String, Value>,
    /// Actors and routes made from templates: `{template: name, params: {...}}`.
    #[serde(default)]
    pub instances: Map<String, Value>,
    /// What all its agents see as `context` at first.
    #[serde(default)]
    pub global_context: Map<String, Value>,
    /// Prompts by name, as `prompts` in templates.
    #[serde(default)]
    pub prompts: Ordered<String>,
    /// Stages that run one after another.
    #[serde(default)]
    pub pipelines: Ordered<Pipeline>,
}

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// The version of the file format.
    pub version: String,
    /// What is logged.
    pub logging: Logging,
    /// Whether templates are rendered.
    pub template_engine: TemplateEngine,
    /// It may do what no sandbox keeps in; running it needs `--unsafe`.
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
    /// The agent that runs when no route says otherwise; the first one unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_actor: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version: "3.0".to_owned(),
            logging: Logging::default(),
            template_engine: TemplateEngine::default(),
            is_unsafe: false,
            default_actor: None,
        }
    }
}

/// What is logged while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Logging {
    /// The least important messages that are logged.
    pub level: LogLevel,
}

/// How important a message is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the usual levels")]
pub enum LogLevel {
    Debug,
    #[default]
    Info,
    Warning,
    Error,
}

/// Who renders templates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum TemplateEngine {
    /// `{{ }}`, `{% %}` and `{# #}` as in Jinja2.
    #[default]
    Jinja2,
    /// Nobody: braces are text.
    None,
}

/// What an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// A model with a prompt and tools.
    Llm,
    /// Tools without a model.
    Tool,
    /// Agents that work together.
    Graph,
}

impl AgentKind {
    /// The word of files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Tool => "tool",
            Self::Graph => "graph",
        }
    }
}

/// Stages that run one after another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pipeline {
    /// The stages.
    pub stages: Vec<Stage>,
    /// For people and programs.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// A stage of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// `agent` (or `actor`), `graph`, `stream` or `tool`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which: `agent`, `graph`, `stream` or `tool`.
    #[serde(default)]
    pub config: Map<String, Value>,
}

/// What answers for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// A model, `provider/model`.
    Model(String),
    /// Another actor that is registered.
    Actor(QualifiedName),
}

impl ActorDefinition {
    /// It may do what no sandbox keeps in (ACTOR-010).
    pub fn is_unsafe(&self) -> bool {
        self.is_unsafe
            || self.cleveragents.is_unsafe
            || self.actors.values().any(|agent| agent.config.is_unsafe)
    }

    /// What answers for an agent: the top of the file goes before the agent (ACTOR-009, ACTOR-019).
    ///
    /// # Errors
    /// What is missing.
    pub fn backing(&self, agent: &Agent) -> Result<Backing, String> {
        let config = &agent.config;
        let own = config.actor.as_deref();
        if let Some(name) = own.filter(|_| self.provider.is_none() && self.model.is_none()) {
            return match name.split_once('/') {
                Some((provider, model)) if PROVIDERS.contains(&provider) && !model.is_empty() => {
                    Ok(Backing::Model(name.to_owned()))
                }
                _ => name
                    .parse()
                    .map(Backing::Actor)
                    .map_err(|error: crate::name::InvalidName| error.to_string()),
            };
        }
        let split =
            own.and_then(|name| name.split_once('/')).filter(|(provider, _)| PROVIDERS.contains(provider));
        let provider =
            self.provider.as_deref().or(config.provider.as_deref()).or(split.map(|(provider, _)| provider));
        let model = self.model.as_deref().or(config.model.as_deref()).or(split.map(|(_, model)| model));
        match (provider, model) {
            (Some(provider), Some(model)) => Ok(Backing::Model(format!("{provider}/{model}"))),
            (None, Some(model)) => match model.split_once('/') {
                Some((provider, _)) if PROVIDERS.contains(&provider) => Ok(Backing::Model(model.to_owned())),
                _ => provider_of(model)
                    .map(|provider| Backing::Model(format!("{provider}/{model}")))
                    .ok_or_else(|| format!("the `provider` of the model `{model}` is missing")),
            },
            (Some(_), None) => Err("the `model` is missing".to_owned()),
            (None, None) => {
                Err("a model is missing: `provider` and `model`, or `actor: provider/model`".to_owned())
            }
        }
    }
}

/// The provider of a model by the beginnings of names everybody knows.
fn provider_of(model: &str) -> Option<&'static str> {
    let known = [
        ("gpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("claude-", "anthropic"),
        ("gemini-", "google"),
    ];
    known.iter().find(|(start, _)| model.starts_with(start)).map(|(_, provider)| *provider)
}

#[cfg(test)]
mod tests;
