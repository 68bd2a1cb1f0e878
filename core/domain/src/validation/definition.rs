//! What a validation's file says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Mode;
use crate::QualifiedName;
use crate::diagnostics::Severity;

/// Seconds a validation may take unless its file says otherwise (VAL-005).
pub const DEFAULT_TIMEOUT: u32 = 300;

/// Where the implementation of a validation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidationSource {
    /// One that comes with the program.
    Builtin,
    /// Python code in the file.
    Custom,
    /// A tool of an MCP server.
    Mcp,
    /// A folder with a SKILL.md.
    AgentSkill,
    /// A registered tool whose output is interpreted.
    Wrapped,
}

impl ValidationSource {
    /// Its word in data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Custom => "custom",
            Self::Mcp => "mcp",
            Self::AgentSkill => "agent_skill",
            Self::Wrapped => "wrapped",
        }
    }
}

/// A validation that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BuiltIn {
    /// Runs a command; it passes when the command exits with 0.
    #[serde(rename = "builtin/command")]
    Command,
    /// Passes when the language servers report nothing that they did not report before the first edit.
    #[serde(rename = "builtin/no-new-diagnostics")]
    NoNewDiagnostics,
    /// Passes when no changed file has a syntax error it did not have before.
    #[serde(rename = "builtin/syntax")]
    Syntax,
}

/// All that come with the program.
pub const BUILT_INS: [BuiltIn; 3] = [BuiltIn::Command, BuiltIn::NoNewDiagnostics, BuiltIn::Syntax];

impl BuiltIn {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "builtin/command",
            Self::NoNewDiagnostics => "builtin/no-new-diagnostics",
            Self::Syntax => "builtin/syntax",
        }
    }

    /// What it does.
    pub fn description(self) -> &'static str {
        match self {
            Self::Command => "Runs a command: it passes when the command exits with 0",
            Self::NoNewDiagnostics => "The language servers report nothing new",
            Self::Syntax => "No changed file has a new syntax error",
        }
    }

    fn arguments(self) -> Value {
        match self {
            Self::Command => json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "description": "The command line; no shell is involved" },
                    "shell": { "type": "string", "description": "A script for /bin/sh" },
                    "parser": { "type": "string", "enum": OutputParser::WORDS },
                    "working_directory": { "type": "string" },
                },
                "additionalProperties": false,
            }),
            Self::NoNewDiagnostics => json!({
                "type": "object",
                "properties": {
                    "severity": {
                        "type": "string", "enum": ["error", "warning", "information", "hint"],
                        "default": "warning", "description": "The mildest that counts",
                    },
                },
                "additionalProperties": false,
            }),
            Self::Syntax => json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        }
    }
}

/// How the output of a command is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputParser {
    /// By the command and what it prints.
    Auto,
    /// Not at all: only the exit code counts.
    None,
    /// pytest's own report.
    Pytest,
    /// `cargo test`.
    CargoTest,
    /// `node --test`, as TAP or for people.
    Node,
    /// `ruff check`, concise, full or JSON.
    Ruff,
    /// JUnit XML: on stdout, or in the file that `{{ report }}` names.
    Junit,
    /// `file:line:column: message`, as compilers print it.
    Lines,
}

impl OutputParser {
    /// The words in data.
    pub const WORDS: [&'static str; 8] =
        ["auto", "none", "pytest", "cargo-test", "node", "ruff", "junit", "lines"];
}

/// The `validation` block of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// What a failure means.
    #[serde(default)]
    pub mode: Mode,
}

/// A validation (`agents validation add`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValidationDefinition {
    /// Its name, such as `local/tests`; shared with tools.
    pub name: QualifiedName,
    /// What it checks, for people.
    #[serde(default)]
    pub description: Option<String>,
    /// Where its implementation comes from.
    pub source: ValidationSource,
    /// Which one, for `source: builtin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<BuiltIn>,
    /// The program and its arguments, run without a shell; `{{ name }}` stands for an argument of the attachment,
    /// `{{ report }}` for a file the command may write its report to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// A script for `/bin/sh`; it gets the arguments of the attachment and `report` as variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// How the output is read; found out unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parser: Option<OutputParser>,
    /// A folder inside the resource where the command is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Variables for the command; values may hold `${NAME}`, resolved when it is run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The mildest diagnostic that counts, for `builtin/no-new-diagnostics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Python code, for `source: custom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The MCP server, for `source: mcp`: its name, or the command that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<String>,
    /// The tool there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_tool_name: Option<String>,
    /// The folder with the SKILL.md, for `source: agent_skill`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_skill_path: Option<String>,
    /// The registered tool whose output is interpreted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wraps: Option<QualifiedName>,
    /// Python code from that tool's output to a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<String>,
    /// From that tool's parameters to names of arguments, or literals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_mapping: Option<Map<String, Value>>,
    /// What a failure means.
    #[serde(default)]
    pub validation: Gate,
    /// JSON Schema of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    /// Seconds one run may take.
    #[serde(default = "default_timeout")]
    pub timeout: u32,
}

fn default_timeout() -> u32 {
    DEFAULT_TIMEOUT
}

impl ValidationDefinition {
    /// The parameters its schema names, with their schemas.
    pub fn parameters(&self) -> Map<String, Value> {
        let schema = match (&self.input_schema, self.builtin) {
            (Some(schema), _) => Some(Value::Object(schema.clone())),
            (None, Some(built_in)) if self.name.namespace() == "builtin" => Some(built_in.arguments()),
            _ => None,
        };
        match schema.and_then(|mut s| s.get_mut("properties").map(Value::take)) {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        }
    }

    /// Why this program cannot run it, when it cannot.
    pub fn cannot_run(&self) -> Option<String> {
        let instead = "give a `command:` instead, and put the code into a script of the repository";
        Some(match self.source {
            ValidationSource::Builtin | ValidationSource::Custom | ValidationSource::Wrapped => return None,
            ValidationSource::Mcp => format!("in this version a validation calls no MCP server: {instead}"),
            ValidationSource::AgentSkill => {
                format!("in this version a validation is no Agent Skill: {instead}")
            }
        })
    }
}

/// The definition of a validation that comes with the program, by its name.
pub fn built_in(name: &QualifiedName) -> Option<ValidationDefinition> {
    let built_in = BUILT_INS.into_iter().find(|b| b.as_str() == name.to_string())?;
    Some(ValidationDefinition {
        name: name.clone(),
        description: Some(built_in.description().to_owned()),
        source: ValidationSource::Builtin,
        builtin: Some(built_in),
        command: None,
        shell: None,
        parser: None,
        working_directory: None,
        env: BTreeMap::new(),
        severity: None,
        code: None,
        mcp_server: None,
        mcp_tool_name: None,
        agent_skill_path: None,
        wraps: None,
        transform: None,
        argument_mapping: None,
        validation: Gate::default(),
        input_schema: None,
        timeout: DEFAULT_TIMEOUT,
    })
}
