//! Actors that people define: agents and how they work together, as their files say it.
//!
//! A file has one of two forms (one actor at the top, or `actors` with `routes`); the loader in `agents-config` brings
//! both to [`ActorDefinition`]. The order of the file is kept, because it means something: the first agent is the
//! default.

mod check;
mod entry;
mod ordered;
mod registered;
mod route;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::QualifiedName;
use crate::language_server::Capability;

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
    "deepseek",
    "gemini",
    "google",
    "groq",
    "mistral",
    "ollama",
    "openai",
    "openrouter",
    "replay",
    "together",
    "xai",
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

/// One agent of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: AgentKind,
    /// How it works.
    pub config: AgentConfig,
    /// Skills whose tools it may call.
    #[serde(default)]
    pub skills: Vec<QualifiedName>,
    /// The language servers it is lent: a list of names, `{languages: [...]}` or `{auto: true}`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub lsp: Value,
    /// What of them it may use: `all`, or a list of capabilities.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub lsp_capabilities: Value,
    /// What language servers add to its context.
    #[serde(default)]
    pub lsp_context_enrichment: Enrichment,
    /// The part of the context it sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_view: Option<ContextView>,
    /// What it remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The files in its context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextFiles>,
    /// Variables of the processes of its tools.
    #[serde(default)]
    pub env_vars: Map<String, Value>,
}

/// How an agent works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentConfig {
    /// The provider of its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `provider/model` in one, or another actor that is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// What it is told first; a template that is rendered before each question to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// How freely it answers; the provider's default unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// Tokens of an answer at most; the provider's default unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// It remembers earlier turns.
    pub memory_enabled: bool,
    /// How many turns it remembers.
    #[schemars(range(min = 1))]
    pub max_history: Option<u32>,
    /// It may do what no sandbox keeps in; running it needs `--unsafe`.
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
    /// Sent to the provider as it is.
    pub options: Map<String, Value>,
    /// JSON Schema that its answers have to fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<Map<String, Value>>,
    /// Tools: registered ones by name, or written here with their code.
    pub tools: Vec<LocalTool>,
    /// For `type: graph`: the route that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
}

/// A tool of a file: its own, with `code`, or a registered one by its name alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LocalTool {
    /// Its name.
    pub name: String,
    /// Python that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// JSON Schema of its arguments; made from `parameters` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    /// What it may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Map<String, Value>>,
}

impl LocalTool {
    /// It names a registered tool and defines none.
    pub fn is_reference(&self) -> bool {
        self.code.is_none() && self.input_schema.is_none()
    }

    /// JSON Schema of its arguments.
    pub fn schema(&self) -> Value {
        if let Some(schema) = &self.input_schema {
            return Value::Object(schema.clone());
        }
        if self.parameters.is_empty() {
            return serde_json::json!({ "type": "object", "additionalProperties": true });
        }
        let property = |parameter: &Parameter| {
            let mut schema = json_type(&parameter.kind);
            schema["description"] = parameter.description.clone().into();
            if let Some(default) = &parameter.default {
                schema["default"] = default.clone();
            }
            (parameter.name.clone(), schema)
        };
        let required: Vec<&str> =
            self.parameters.iter().filter(|p| p.is_required()).map(|p| p.name.as_str()).collect();
        serde_json::json!({
            "type": "object",
            "properties": self.parameters.iter().map(property).collect::<Map<_, _>>(),
            "required": required,
            "additionalProperties": false,
        })
    }
}

/// The JSON Schema of a Python annotation; anything for one that is not known.
fn json_type(annotation: &str) -> Value {
    use serde_json::json;
    let annotation = annotation.trim();
    let inner =
        |prefix: &str| annotation.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(']')).map(str::trim);
    match annotation {
        "str" | "string" => json!({ "type": "string" }),
        "int" | "integer" => json!({ "type": "integer" }),
        "float" | "number" => json!({ "type": "number" }),
        "bool" | "boolean" => json!({ "type": "boolean" }),
        "list" | "List" | "array" => json!({ "type": "array" }),
        "dict" | "Dict" | "object" => json!({ "type": "object" }),
        _ => match inner("list[").or_else(|| inner("List[")) {
            Some(item) => json!({ "type": "array", "items": json_type(item) }),
            None if annotation.starts_with("dict[") || annotation.starts_with("Dict[") => {
                json!({ "type": "object" })
            }
            None => match inner("Optional[") {
                Some(item) => json!({ "anyOf": [json_type(item), { "type": "null" }] }),
                None => json!({}),
            },
        },
    }
}

/// A parameter of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parameter {
    /// A Python identifier.
    pub name: String,
    /// Its Python type, such as `str` or `list[str]`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is for.
    pub description: String,
    /// It has to be given; `true` unless it has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// What it is when it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

impl Parameter {
    /// It has to be given.
    pub fn is_required(&self) -> bool {
        self.required.unwrap_or(true)
    }
}

/// What language servers add to an agent's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Enrichment {
    /// The findings of the files it sees.
    pub diagnostics: bool,
    /// Types and signatures of what it sees.
    pub type_annotations: bool,
    /// Findings of one file at most.
    #[schemars(range(min = 1))]
    pub max_diagnostics_per_file: u32,
}

impl Default for Enrichment {
    fn default() -> Self {
        Self { diagnostics: true, type_annotations: false, max_diagnostics_per_file: 50 }
    }
}

/// Parts of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContextView {
    /// Structure, goals, limits and summaries.
    Strategist,
    /// Source and the task.
    Executor,
    /// Changes, results of tests and criteria.
    Reviewer,
    /// Everything.
    Full,
}

/// What an agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Memory {
    /// It remembers.
    pub enabled: bool,
    /// Messages at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_messages: Option<u32>,
    /// Tokens at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// What goes beyond is summarised, not dropped.
    pub summarize_old: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self { enabled: true, max_messages: None, max_tokens: None, summarize_old: false }
    }
}

/// The files of an agent's context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContextFiles {
    /// Files.
    pub include_files: Vec<String>,
    /// Folders.
    pub include_dirs: Vec<String>,
    /// Patterns of what is left out, even where it is named.
    pub exclude_patterns: Vec<String>,
    /// Tokens at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_context_tokens: Option<u32>,
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

/// What an agent remembers, whichever way its file says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remembers {
    /// It remembers.
    pub enabled: bool,
    /// Turns (a question and its answer) at most.
    pub turns: Option<u32>,
    /// Messages at most.
    pub messages: Option<u32>,
    /// Tokens at most.
    pub tokens: Option<u32>,
    /// What goes beyond is summarised.
    pub summarize: bool,
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

impl Agent {
    /// What it remembers (ACTOR-021, ACTOR-031).
    pub fn remembers(&self) -> Remembers {
        match &self.memory {
            Some(memory) => Remembers {
                enabled: memory.enabled,
                turns: None,
                messages: memory.max_messages,
                tokens: memory.max_tokens,
                summarize: memory.summarize_old,
            },
            None => Remembers {
                enabled: self.config.memory_enabled,
                turns: Some(self.config.max_history.unwrap_or(50)),
                ..Remembers::default()
            },
        }
    }

    /// The names of all capabilities a file may list.
    pub fn capability_names() -> Vec<String> {
        let all = [
            Capability::Diagnostics,
            Capability::Hover,
            Capability::Completions,
            Capability::Definitions,
            Capability::References,
            Capability::Rename,
            Capability::CodeActions,
            Capability::Formatting,
            Capability::SignatureHelp,
            Capability::DocumentSymbols,
            Capability::WorkspaceSymbols,
            Capability::Symbols,
        ];
        all.iter().filter_map(|one| serde_json::to_value(one).ok()?.as_str().map(str::to_owned)).collect()
    }
}

#[cfg(test)]
mod tests;
