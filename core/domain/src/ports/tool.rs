//! Tools as actors know them, wherever they come from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool an actor may call with [`Request::Tool`](super::actor::Request::Tool).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// Its name, such as `builtin/read_file` or `local/github.create_issue`.
    pub name: String,
    /// What it is for, for models and people.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input: Value,
    /// The group of built-in tools it belongs to, such as `file_operations`, or the skill that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What it may do.
    pub capability: Capability,
}

/// Why a call came to nothing, as a word that actors can go by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ToolError {
    /// A rule of the plan or its profile, or a person, says that it may not run.
    AccessDeniedError,
    /// There is no such tool, or its arguments do not fit; nothing was run.
    InvalidCallError,
    /// It ran and failed.
    #[default]
    ToolExecutionError,
    /// It was ended because it took too long.
    TimeoutError,
}

/// What a tool may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Capability {
    /// It changes nothing anywhere.
    pub read_only: bool,
    /// It changes resources, in their sandbox.
    pub writes: bool,
    /// What it wrote can be taken back by restoring a checkpoint.
    pub checkpointable: bool,
    /// Calling it twice is the same as calling it once.
    pub idempotent: bool,
    /// It may do harm that no sandbox keeps in.
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
    /// A person has to agree to each call.
    pub human_approval_required: bool,
    /// What it does beyond the sandbox, in words such as `network`.
    pub side_effects: Vec<String>,
}

/// A tool that belongs to one actor: written in its file, registered nowhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalTool {
    /// What it is called with; its name is unique among the actor's tools.
    pub spec: ToolSpec,
    /// Python that does it.
    pub code: String,
    /// Variables of its process.
    pub env: std::collections::BTreeMap<String, String>,
}
