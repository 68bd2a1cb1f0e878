//! Tools that people define: what a tool's file says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::QualifiedName;
use crate::ports::tool::Capability;

/// Seconds a call may take unless the file says otherwise (TOOL-010).
pub const DEFAULT_TIMEOUT: u32 = 300;

/// Where the implementation of a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolSource {
    /// Python code in the file.
    Custom,
    /// A tool of an MCP server.
    Mcp,
    /// A folder with a SKILL.md.
    AgentSkill,
    /// One that comes with the program.
    Builtin,
}

impl ToolSource {
    /// Its word in data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Custom => "custom",
            Self::Mcp => "mcp",
            Self::AgentSkill => "agent_skill",
            Self::Builtin => "builtin",
        }
    }
}

/// How far what a tool wrote can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words of files")]
pub enum CheckpointScope {
    File,
    Transaction,
    Commit,
    Snapshot,
    Composite,
}

/// How a tool may use a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlotAccess {
    /// It only reads.
    #[default]
    ReadOnly,
    /// It only writes.
    WriteOnly,
    /// It does both.
    ReadWrite,
}

/// A resource that a tool works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceSlot {
    /// Its name, by which code finds it: `ctx.resources["repo"]`.
    pub name: String,
    /// The type of resource, such as `git-checkout`; `fs-directory` is any folder.
    #[serde(rename = "type")]
    pub resource_type: String,
    /// How it is used.
    #[serde(default)]
    pub access: SlotAccess,
    /// A call fails without it.
    #[serde(default = "yes")]
    pub required: bool,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Always this resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub static_resource: Option<String>,
    /// The resource that this argument of a call names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_param: Option<String>,
}

fn yes() -> bool {
    true
}

/// Python code, or the name of a function in `code`, that runs at points of a tool's life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lifecycle {
    /// Before the tool is first used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discover: Option<String>,
    /// After that; when it fails, the tool cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activate: Option<String>,
    /// When the phase of the plan that used it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deactivate: Option<String>,
}

/// What calls cost, and how often they may be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CostProfile {
    /// Such as `10/min`; `s`, `min`, `h` and `day` are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<String>,
    /// Such as `$0.01/call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<String>,
}

impl CostProfile {
    /// Calls and the seconds in which they may be made; `Err` says what would be right.
    ///
    /// # Errors
    /// A limit that is none.
    pub fn limit(&self) -> Result<Option<(usize, u64)>, String> {
        let Some(text) = &self.rate_limit else { return Ok(None) };
        let wrong = || format!("`{text}` is no rate: write it as `10/min`");
        let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
        let seconds = match unit.trim() {
            "s" | "sec" | "second" => 1,
            "m" | "min" | "minute" => 60,
            "h" | "hour" => 3600,
            "d" | "day" => 86400,
            _ => return Err(wrong()),
        };
        let count: usize = count.trim().parse().map_err(|_| wrong())?;
        if count == 0 { Err(wrong()) } else { Ok(Some((count, seconds))) }
    }
}

/// Where a tool can run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Environment {
    /// `container`, `host` or `any`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<String>,
    /// `container` or `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
    /// The resource of a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub specific: Option<String>,
}

/// A tool (`agents tool add`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDefinition {
    /// Its name, such as `local/count-lines`; shared with validations.
    pub name: QualifiedName,
    /// What it is for, for models and people.
    pub description: String,
    /// Where its implementation comes from.
    pub source: ToolSource,
    /// Python code, for `source: custom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The MCP server, for `source: mcp`: its name, or how it is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<Value>,
    /// The tool there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_tool_name: Option<String>,
    /// The folder with the SKILL.md, for `source: agent_skill`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_skill_path: Option<String>,
    /// JSON Schema of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    /// JSON Schema of what it returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    /// It changes nothing anywhere.
    #[serde(default)]
    pub read_only: bool,
    /// It changes resources, in their sandbox.
    #[serde(default)]
    pub writes: bool,
    /// What it may change: paths, slots, or a description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_scope: Option<Value>,
    /// What it wrote can be taken back by restoring a checkpoint.
    #[serde(default)]
    pub checkpointable: bool,
    /// How far that goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_scope: Option<CheckpointScope>,
    /// Calling it twice is the same as calling it once.
    #[serde(default)]
    pub idempotent: bool,
    /// It may do harm that no sandbox keeps in.
    #[serde(default, rename = "unsafe")]
    pub is_unsafe: bool,
    /// A person has to agree to each call.
    #[serde(default)]
    pub human_approval_required: bool,
    /// What it does beyond the sandbox, in words such as `network`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_effects: Vec<String>,
    /// What calls cost, and how often they may be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_profile: Option<CostProfile>,
    /// Where it can run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// The resources it works on; the first is where its code runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_slots: Vec<ResourceSlot>,
    /// What runs at points of its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
    /// Variables for its code; values may hold `${NAME}`, resolved when it runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Seconds one call may take.
    #[serde(default = "default_timeout")]
    pub timeout: u32,
}

fn default_timeout() -> u32 {
    DEFAULT_TIMEOUT
}

impl ToolDefinition {
    /// What it may do.
    pub fn capability(&self) -> Capability {
        Capability {
            read_only: self.read_only,
            writes: self.writes,
            checkpointable: self.checkpointable,
            idempotent: self.idempotent,
            is_unsafe: self.is_unsafe,
            human_approval_required: self.human_approval_required,
            side_effects: self.side_effects.clone(),
        }
    }

    /// JSON Schema of its arguments; any object where the file has none.
    pub fn input(&self) -> Value {
        match &self.input_schema {
            Some(schema) => Value::Object(schema.clone()),
            None => serde_json::json!({ "type": "object" }),
        }
    }

    /// Why this program cannot run it, when it cannot.
    pub fn cannot_run(&self) -> Option<String> {
        let instead = "write a skill's file that names it, and register that with `agents skill add`";
        match self.source {
            ToolSource::Custom if self.code.is_some() => None,
            ToolSource::Custom => Some("it has no `code` yet".to_owned()),
            ToolSource::Mcp => Some(format!("tools of MCP servers are used through skills: {instead}")),
            ToolSource::AgentSkill => Some(format!("agent skills are used through skills: {instead}")),
            ToolSource::Builtin => Some("those that come with the program need no file".to_owned()),
        }
    }
}
