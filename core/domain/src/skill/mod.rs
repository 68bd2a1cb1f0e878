//! Skills: named collections of tools from registered tools, built-in groups, MCP servers, Agent Skills folders and code
//! of their own, and what follows from putting them together ([`flatten()`]).

mod capability;
mod discovered;
mod flatten;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use capability::{CapabilityOverride, CheckpointScope, Offered};
pub use discovered::{
    AgentSkill, AvailableSkill, Discovered, DiscoveredServer, ExpectedBehaviour, McpPrompt, McpResource,
    McpTool, infer, prompt_block,
};
pub use flatten::{
    CapabilitySummary, Flat, Known, KnownTool, Origin, SkillTool, ToolSource, cycle, flatten, summary,
};

use crate::QualifiedName;

/// What a skill's file says (`agents skill add`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillDefinition {
    /// Its name, such as `local/github`.
    pub name: QualifiedName,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// The category that `allowed_skill_categories` of a profile names; without it that of each tool's source.
    #[serde(default)]
    pub category: Option<String>,
    /// Registered and built-in tools, by name.
    #[serde(default)]
    pub tools: Vec<ToolReference>,
    /// Tools that exist in this skill only.
    #[serde(default)]
    pub inline_tools: Vec<InlineTool>,
    /// Other skills, whose tools become part of this one.
    #[serde(default)]
    pub includes: Vec<Include>,
    /// MCP servers whose tools are offered.
    #[serde(default)]
    pub mcp_servers: Vec<McpServer>,
    /// Folders with a SKILL.md.
    #[serde(default)]
    pub agent_skills: Vec<AgentSkillFolder>,
    /// Folders of such folders.
    #[serde(default)]
    pub agent_skill_dirs: Vec<String>,
    /// Groups of built-in tools.
    #[serde(default)]
    pub builtins: Vec<BuiltinGroup>,
}

/// A tool that is registered elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReference {
    /// Such as `local/run-migrations`, `builtin/read_file` or `read_file`.
    pub name: String,
    /// What this skill says of it in place of what it says itself.
    #[serde(default, rename = "override")]
    pub overrides: ToolOverride,
}

/// What is said of a tool where it is used, in place of what it says itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolOverride {
    /// What it is for.
    pub description: Option<String>,
    /// What it may do.
    pub capability: CapabilityOverride,
}

/// A tool of one skill, written in Python.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InlineTool {
    /// Unique within the skill.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// The code.
    pub code: String,
    /// JSON Schema of its arguments; any object unless given.
    #[serde(default)]
    pub input_schema: Option<Value>,
    /// JSON Schema of what it returns.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// What it may do.
    #[serde(default)]
    pub capability: CapabilityOverride,
    /// Seconds a call may take; that of all tools unless given.
    #[serde(default)]
    pub timeout: Option<u32>,
}

/// Another skill that is taken in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Include {
    /// Its name.
    pub name: QualifiedName,
    /// What it is for, here.
    #[serde(default)]
    pub description: Option<String>,
    /// What is said of its tools here, and here only.
    #[serde(default)]
    pub tool_overrides: Vec<IncludedOverride>,
}

/// What an including skill says of one tool of the included one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IncludedOverride {
    /// The tool, by the name it has there.
    pub tool: String,
    /// What is said of it.
    #[serde(rename = "override")]
    pub overrides: ToolOverride,
}

/// How an MCP server is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum McpTransport {
    /// Over the standard input and output of a process that is started.
    Stdio,
    /// Over server-sent events: the older way of speaking HTTP.
    Sse,
    /// Over HTTP.
    StreamableHttp,
}

impl McpTransport {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Sse => "sse",
            Self::StreamableHttp => "streamable-http",
        }
    }
}

/// An MCP server as a skill names it. Values of `env`, `headers`, `args`, `command` and `url` may hold `${NAME}`, which is
/// put in when the server is started and never kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpServer {
    /// Unique within the skill.
    pub name: String,
    /// How it is talked to: `stdio` with a `command`, `streamable-http` with a `url`.
    pub transport: McpTransport,
    /// The program to start: a name looked up on PATH, or a path (a relative one is relative to the skill's file).
    #[serde(default)]
    pub command: Option<String>,
    /// Its arguments; never passed through a shell.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it listens.
    #[serde(default)]
    pub url: Option<String>,
    /// HTTP headers sent with each request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Which of its tools are offered.
    #[serde(default)]
    pub tool_filter: ToolFilter,
    /// What is said of its tools in place of what is inferred.
    #[serde(default)]
    pub overrides: Vec<McpOverride>,
    /// Seconds a call may take.
    #[serde(default = "call_seconds")]
    pub timeout: u32,
}

fn call_seconds() -> u32 {
    300
}

/// Which tools of a server are offered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolFilter {
    /// These only; all unless given.
    pub include: Option<Vec<String>>,
    /// Not these; applied after `include`.
    pub exclude: Vec<String>,
}

impl ToolFilter {
    /// Whether a tool passes.
    pub fn passes(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == tool);
        self.include.as_deref().is_none_or(named) && !named(&self.exclude)
    }
}

/// What is said of one tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpOverride {
    /// The tool, by the server's name for it.
    pub tool: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// What it may do.
    #[serde(flatten)]
    pub capability: CapabilityOverride,
}

/// Where scripts of an Agent Skill may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxPolicy {
    /// Scripts are not run.
    None,
    /// As a process over the plan's sandbox.
    #[default]
    Process,
    /// In a container.
    Container,
}

/// A folder with a SKILL.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSkillFolder {
    /// The folder; a relative one is relative to the skill's file.
    pub path: String,
    /// The name of its tool; that of SKILL.md unless given.
    #[serde(default)]
    pub name: Option<String>,
    /// Where its scripts may run.
    #[serde(default)]
    pub sandbox_policy: SandboxPolicy,
    /// Which tools it may be followed with, such as `Read` or `Bash(git:*)`; those of SKILL.md unless given.
    #[serde(default)]
    pub allowed_tools: Option<Vec<String>>,
    /// What it may do.
    #[serde(default)]
    pub capability: CapabilityOverride,
}

impl AgentSkillFolder {
    /// A folder of which only the path is said.
    pub fn at(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            name: None,
            sandbox_policy: SandboxPolicy::default(),
            allowed_tools: None,
            capability: CapabilityOverride::default(),
        }
    }
}

/// A group of built-in tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuiltinGroup {
    /// Such as `file_operations`.
    pub group: String,
}
