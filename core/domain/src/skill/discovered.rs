//! What MCP servers and Agent Skills folders said of themselves when they were last asked, and what follows from it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::capability::Offered;
use crate::Timestamp;
use crate::ports::tool::Capability;

/// What is known of a skill beyond its file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Discovered {
    /// Its MCP servers, by name.
    pub servers: BTreeMap<String, DiscoveredServer>,
    /// Its Agent Skills, by the path its file has for them.
    pub agent_skills: BTreeMap<String, AgentSkill>,
}

/// What an MCP server offers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscoveredServer {
    /// Its name and version, as it says.
    pub server: String,
    /// The version of the protocol that was agreed on.
    pub protocol: String,
    /// Its tools, all of them, in its order.
    pub tools: Vec<McpTool>,
    /// What it lets read.
    pub resources: Vec<McpResource>,
    /// Its prompts.
    pub prompts: Vec<McpPrompt>,
    /// When it said so; `None` when it never did.
    pub at: Option<Timestamp>,
    /// Why it could not be asked the last time.
    pub problem: Option<String>,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpTool {
    /// Its name there.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input: Value,
    /// What the server says of its effects.
    pub hints: ExpectedBehaviour,
}

/// What a server says of a tool's effects; `None` is unsaid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpectedBehaviour {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy.
    pub destructive: Option<bool>,
    /// Calling it twice is the same as calling it once.
    pub idempotent: Option<bool>,
    /// It reaches out into the world.
    pub open_world: Option<bool>,
}

/// Something an MCP server lets read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpResource {
    /// Where it is.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
}

/// A prompt of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpPrompt {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The names of its arguments.
    pub arguments: Vec<String>,
}

/// The head of a SKILL.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSkill {
    /// Lower-case words joined by `-`.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// Its licence.
    #[serde(default)]
    pub license: Option<String>,
    /// What it needs to work.
    #[serde(default)]
    pub compatibility: Option<String>,
    /// Anything else.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
    /// Which tools it may be followed with, such as `Read` or `Bash(git:*)`; `None` names none.
    #[serde(default)]
    pub allowed_tools: Option<Vec<String>>,
}

impl AgentSkill {
    /// What it may do: what its metadata says; else it writes when it may run commands or edit, and only reads otherwise.
    pub fn offered(&self) -> Offered {
        let said = |key: &str| {
            self.metadata.get(key).and_then(|value| match value {
                Value::Bool(is) => Some(*is),
                Value::String(word) => word.parse().ok(),
                _ => None,
            })
        };
        let word = |tool: &str| tool.split('(').next().unwrap_or_default().trim().to_ascii_lowercase();
        let writing = ["bash", "shell", "write", "edit", "multiedit", "notebookedit"];
        let allows_writing = self
            .allowed_tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|tool| writing.contains(&word(tool).as_str())));
        let writes = said("writes").unwrap_or_else(|| !said("read_only").unwrap_or(!allows_writing));
        let checkpointable = writes && said("checkpointable").unwrap_or(true);
        Offered {
            capability: Capability {
                read_only: !writes,
                writes,
                checkpointable,
                idempotent: said("idempotent").unwrap_or(!writes),
                is_unsafe: said("unsafe").unwrap_or(false),
                human_approval_required: said("human_approval_required").unwrap_or(false),
                side_effects: Vec::new(),
            },
            checkpoint_scope: checkpointable.then_some(super::CheckpointScope::Composite),
            write_scope: Vec::new(),
        }
    }
}

/// Words in a tool's name that say that it only looks.
const READING: &[&str] = &["read", "get", "list", "search", "find"];

/// Words in a tool's name that say that it changes something.
const WRITING: &[&str] = &["write", "create", "update", "delete", "set"];

/// What a tool of an MCP server may do, as far as the server's annotations and its name tell (MCP-009).
///
/// Annotations go first; of words those that write. A tool that says nothing is taken to write. Nothing an MCP server does
/// is known to be undone by a checkpoint.
pub fn infer(tool: &McpTool) -> Offered {
    let words = words(&tool.name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let destructive = tool.hints.destructive == Some(true);
    let read_only = match tool.hints.read_only {
        Some(said) => said && !destructive,
        None => !destructive && has(READING) && !has(WRITING),
    };
    let side_effects = match tool.hints.open_world {
        Some(true) => vec!["network".to_owned()],
        _ => Vec::new(),
    };
    Offered {
        capability: Capability {
            read_only,
            writes: !read_only,
            checkpointable: false,
            idempotent: tool.hints.idempotent.unwrap_or(read_only),
            is_unsafe: false,
            human_approval_required: false,
            side_effects,
        },
        checkpoint_scope: None,
        write_scope: Vec::new(),
    }
}

/// The words of a name such as `getFileContents`, `get_file-contents` or `HTTPGet`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split(|c: char| !c.is_alphanumeric()) {
        let mut word = String::new();
        let letters: Vec<char> = part.chars().collect();
        for (at, letter) in letters.iter().enumerate() {
            let after_small = at > 0 && !letters[at - 1].is_uppercase();
            let before_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
            if letter.is_uppercase() && !word.is_empty() && (after_small || before_small) {
                words.push(std::mem::take(&mut word));
            }
            word.extend(letter.to_lowercase());
        }
        if !word.is_empty() {
            words.push(word);
        }
    }
    words
}

/// An Agent Skill that an actor may follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AvailableSkill {
    /// Its name.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// The tool that returns its instructions.
    pub tool: String,
}

/// What a system prompt says of Agent Skills (SKILLMD-003); empty when there are none.
pub fn prompt_block(skills: &[AvailableSkill]) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let plain = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(['\n', '\r'], " ")
    };
    let mut block = String::from("<available_agent_skills>\n");
    for skill in skills {
        block.push_str(&format!(
            "  <agent_skill>\n    <name>{}</name>\n    <description>{}</description>\n    <tool>{}</tool>\n  </agent_skill>\n",
            plain(&skill.name),
            plain(&skill.description),
            plain(&skill.tool),
        ));
    }
    block.push_str("</available_agent_skills>");
    block
}
