//! One agent of an actor file: its model, its prompt, its tools, what it sees and remembers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::AgentKind;
use crate::QualifiedName;
use crate::language_server::Capability;

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
