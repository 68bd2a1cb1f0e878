//! Which tools there are in a step, and which of them an agent may call.

use std::collections::BTreeMap;

use agents_domain::actor::{Agent, Node};
use agents_domain::ports::tool::{LocalTool, ToolSpec};
use agents_domain::skill::{AvailableSkill, prompt_block};
use serde_json::Value;

/// The tools of a step.
#[derive(Debug, Clone, Default)]
pub struct Toolbox {
    /// All that may be called, those of the actor's file too.
    pub all: Vec<ToolSpec>,
    /// The names of the tools of each skill.
    pub by_skill: BTreeMap<String, Vec<String>>,
    /// Names of tools that are written in the actor's file.
    local: Vec<String>,
    agent_skills: Vec<AvailableSkill>,
}

/// The tools of language servers with the capability each needs.
const OF_SERVERS: &[(&str, &[&str])] = &[
    ("lsp/diagnostics", &["diagnostics"]),
    ("lsp/hover", &["hover"]),
    ("lsp/completions", &["completions"]),
    ("lsp/definition", &["definitions"]),
    ("lsp/references", &["references"]),
    ("lsp/rename", &["rename"]),
    ("lsp/code-actions", &["code_actions"]),
    ("lsp/format", &["formatting"]),
    ("lsp/signature", &["signature_help"]),
    ("lsp/symbols", &["document_symbols", "symbols"]),
    ("lsp/workspace-symbols", &["workspace_symbols", "symbols"]),
];

impl Toolbox {
    /// Registered tools, those of the file, and which skill has which.
    pub fn new(
        registered: Vec<ToolSpec>,
        local: &[LocalTool],
        by_skill: BTreeMap<String, Vec<String>>,
    ) -> Self {
        let names: Vec<String> = local.iter().map(|tool| tool.spec.name.clone()).collect();
        let mut all = registered;
        all.retain(|tool| !names.contains(&tool.name));
        all.extend(local.iter().map(|tool| tool.spec.clone()));
        Self { all, by_skill, local: names, agent_skills: Vec::new() }
    }

    /// With the Agent Skills that are among the tools.
    pub(super) fn following(self, agent_skills: Vec<AvailableSkill>) -> Self {
        Self { agent_skills, ..self }
    }

    /// A system prompt with what it says of the Agent Skills among some tools (SKILLMD-003).
    pub(super) fn prompt(&self, system: Option<String>, tools: &[ToolSpec]) -> Option<String> {
        let among = |skill: &&AvailableSkill| tools.iter().any(|tool| tool.name == skill.tool);
        let skills: Vec<AvailableSkill> = self.agent_skills.iter().filter(among).cloned().collect();
        if skills.is_empty() {
            return system;
        }
        let how = "An agent skill is followed by calling its tool without arguments, which returns its instructions.";
        let own = system.map(|system| format!("{system}\n\n")).unwrap_or_default();
        Some(format!("{own}{how}\n{}", prompt_block(&skills)))
    }

    /// A tool by its name, with `builtin/` or without.
    pub(super) fn find(&self, name: &str) -> Option<&ToolSpec> {
        self.all
            .iter()
            .find(|tool| tool.name == name)
            .or_else(|| self.all.iter().find(|tool| tool.name.strip_prefix("builtin/") == Some(name)))
    }

    /// It is written in the actor's file.
    pub(super) fn is_local(&self, name: &str) -> bool {
        self.local.iter().any(|known| known == name)
    }

    /// What an agent may call: the tools it names, those of its skills, and those of its language servers. A node's
    /// servers go before its agent's (LSP-016).
    pub(super) fn of(&self, agent: &Agent, node: Option<&Node>) -> Vec<ToolSpec> {
        let mut names: Vec<&str> = agent.config.tools.iter().map(|tool| tool.name.as_str()).collect();
        for skill in &agent.skills {
            let tools = self.by_skill.get(&skill.to_string());
            names.extend(tools.into_iter().flatten().map(String::as_str));
        }
        let own = node.filter(|node| !node.lsp.is_null());
        let lsp = own.map_or(&agent.lsp, |node| &node.lsp);
        let capabilities = node
            .map(|node| &node.lsp_capabilities)
            .filter(|capabilities| !capabilities.is_null())
            .unwrap_or(&agent.lsp_capabilities);
        let is_bound = match lsp {
            Value::Null => false,
            Value::Array(names) => !names.is_empty(),
            Value::Object(rule) => rule.get("auto") != Some(&Value::Bool(false)),
            _ => true,
        };
        if is_bound {
            let listed: Option<Vec<&str>> =
                capabilities.as_array().map(|list| list.iter().filter_map(Value::as_str).collect());
            let lent = |needed: &[&str]| {
                listed.as_ref().is_none_or(|listed| needed.iter().any(|one| listed.contains(one)))
            };
            names.extend(OF_SERVERS.iter().filter(|(_, needed)| lent(needed)).map(|(name, _)| *name));
        }
        let mut tools: Vec<ToolSpec> = Vec::new();
        for tool in names.into_iter().filter_map(|name| self.find(name)) {
            if !tools.iter().any(|known| known.name == tool.name) {
                tools.push(tool.clone());
            }
        }
        tools
    }
}
