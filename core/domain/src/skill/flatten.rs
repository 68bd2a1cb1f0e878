//! Putting skills together: the flattened set of tools, by which names they are called, and what they may do in all.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    AgentSkillFolder, Discovered, Include, InlineTool, Offered, SkillDefinition, ToolOverride, infer,
};
use crate::QualifiedName;
use crate::ports::tool::ToolSpec;

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the source of its name")]
pub enum ToolSource {
    Builtin,
    Mcp,
    AgentSkill,
    Custom,
}

impl ToolSource {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Mcp => "mcp",
            Self::AgentSkill => "agent_skill",
            Self::Custom => "custom",
        }
    }
}

/// What a call of a tool leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A tool that is known without the skill, under this name.
    Registered(String),
    /// The code at this index of the skill's `inline_tools`.
    Inline(usize),
    /// A tool of an MCP server of the skill.
    Mcp {
        /// The server.
        server: String,
        /// The tool, by the server's name for it.
        tool: String,
    },
    /// A folder with a SKILL.md, by the path that the skill's file has for it.
    AgentSkill(String),
}

/// A tool that is known without any skill.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownTool {
    /// Its name, such as `builtin/read_file`, with description and schema.
    pub spec: ToolSpec,
    /// What it may do, with scopes.
    pub offered: Offered,
    /// Where it comes from.
    pub source: ToolSource,
    /// Its category.
    pub category: String,
}

/// Everything skills are put together from.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// All skills, with what was discovered of them.
    pub skills: BTreeMap<QualifiedName, (SkillDefinition, Discovered)>,
    /// All tools, by every name a skill may call them.
    pub tools: BTreeMap<String, KnownTool>,
    /// The groups of built-in tools: names in `tools`.
    pub groups: BTreeMap<String, Vec<String>>,
}

/// A tool of a flattened set.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillTool {
    /// Its plain name, such as `create_issue`.
    pub name: String,
    /// The name it is called by: the plain one, or a qualified one where others have it, too.
    pub call: String,
    /// The skill that has it in its file.
    pub skill: QualifiedName,
    /// It is that of the skill that was flattened, not of one it includes.
    pub direct: bool,
    /// Where it comes from.
    pub source: ToolSource,
    /// What a call leads to.
    pub origin: Origin,
    /// What it is for.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input: Value,
    /// What it may do.
    pub offered: Offered,
    /// The category a profile may allow.
    pub category: String,
}

impl SkillTool {
    /// Its source as people see it, such as `mcp:github`.
    pub fn source_text(&self) -> String {
        match &self.origin {
            Origin::Mcp { server, .. } => format!("mcp:{server}"),
            _ => self.source.as_str().to_owned(),
        }
    }

    /// How far back a checkpoint brings what it writes: `None` for what only reads, `no` where nothing does.
    pub fn checkpoint(&self) -> Option<&'static str> {
        if self.offered.capability.read_only {
            return None;
        }
        Some(self.offered.checkpoint_scope.map_or("no", super::CheckpointScope::as_str))
    }

    /// As an actor knows it.
    pub fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.call.clone(),
            description: self.description.clone(),
            input: self.input.clone(),
            group: Some(self.skill.to_string()),
            capability: self.offered.capability.clone(),
        }
    }
}

/// A flattened skill.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flat {
    /// Its tools: those of included skills in their order, then its own.
    pub tools: Vec<SkillTool>,
    /// What it names and nobody has, as sentences; the tools are left out.
    pub missing: Vec<String>,
    /// What has no effect, as sentences.
    pub warnings: Vec<String>,
}

impl Flat {
    /// The tool a call means, or why it means none, with the names that would.
    pub fn find(&self, called: &str) -> Result<&SkillTool, String> {
        if let Some(tool) = self.tools.iter().find(|tool| tool.call == called) {
            return Ok(tool);
        }
        let mut meant: Vec<&SkillTool> = self.tools.iter().filter(|tool| answers_to(tool, called)).collect();
        // Its own tools take precedence over those of the skills it includes.
        if meant.iter().any(|tool| tool.direct) {
            meant.retain(|tool| tool.direct);
        }
        match meant.as_slice() {
            [tool] => Ok(tool),
            [] => Err(format!("there is no tool `{called}`")),
            several => {
                let names: Vec<&str> = several.iter().map(|tool| tool.call.as_str()).collect();
                Err(format!("`{called}` is ambiguous: call {}", names.join(" or ")))
            }
        }
    }
}

/// Whether a name could mean a tool: plain, qualified by its skill or by its server.
fn answers_to(tool: &SkillTool, called: &str) -> bool {
    if tool.name == called || qualified(tool) == called {
        return true;
    }
    match &tool.origin {
        Origin::Mcp { server, .. } => called == format!("{server}.{}", tool.name),
        Origin::Registered(name) => name == called,
        _ => false,
    }
}

fn qualified(tool: &SkillTool) -> String {
    format!("{}.{}", tool.skill, tool.name)
}

/// The circle of includes that a skill is part of, from its name back to its name; `None` when there is none.
pub fn cycle(of: &SkillDefinition, known: &Known) -> Option<Vec<QualifiedName>> {
    fn walk(
        at: &[Include],
        goal: &QualifiedName,
        known: &Known,
        seen: &mut BTreeSet<QualifiedName>,
    ) -> Option<Vec<QualifiedName>> {
        for include in at {
            if include.name == *goal {
                return Some(vec![goal.clone()]);
            }
            if !seen.insert(include.name.clone()) {
                continue;
            }
            let Some((skill, _)) = known.skills.get(&include.name) else { continue };
            if let Some(mut rest) = walk(&skill.includes, goal, known, seen) {
                rest.insert(0, include.name.clone());
                return Some(rest);
            }
        }
        None
    }
    let mut way = walk(&of.includes, &of.name, known, &mut BTreeSet::new())?;
    way.insert(0, of.name.clone());
    Some(way)
}

/// The tools of a skill with those of all it includes (SKILLC-007, SKILLC-008).
///
/// A skill that is reached twice is taken in once, at its first place. Where two tools have one name, both stay: one
/// that the skill has in its own file keeps the plain name, all others are called with that of their skill before it, and
/// where that is not enough with that of their server.
pub fn flatten(skill: &SkillDefinition, found: &Discovered, known: &Known) -> Flat {
    let mut flat = Flat::default();
    let mut seen = BTreeSet::from([skill.name.clone()]);
    gather(skill, found, known, true, &mut seen, &mut flat);
    name_calls(&mut flat.tools);
    flat
}

fn gather(
    skill: &SkillDefinition,
    found: &Discovered,
    known: &Known,
    direct: bool,
    seen: &mut BTreeSet<QualifiedName>,
    flat: &mut Flat,
) {
    for include in &skill.includes {
        if !seen.insert(include.name.clone()) {
            continue;
        }
        let Some((included, found)) = known.skills.get(&include.name) else {
            flat.missing.push(format!("the skill `{}`, which `{}` includes", include.name, skill.name));
            continue;
        };
        let from = flat.tools.len();
        gather(included, found, known, false, seen, flat);
        for said in &include.tool_overrides {
            let tools = flat.tools.get_mut(from..).unwrap_or_default();
            let mut named = tools.iter_mut().filter(|tool| answers_to(tool, &said.tool)).peekable();
            if named.peek().is_none() {
                let (tool, skill) = (&said.tool, &include.name);
                flat.warnings.push(format!("`{skill}` has no tool `{tool}` to override"));
                continue;
            }
            named.for_each(|tool| apply(&said.overrides, tool));
        }
    }
    let own = Own { skill, known, direct };
    own.builtins(flat);
    own.references(flat);
    own.servers(found, flat);
    own.agent_skills(found, flat);
    for (at, tool) in skill.inline_tools.iter().enumerate() {
        flat.tools.push(own.inline(at, tool));
    }
}

fn apply(said: &ToolOverride, tool: &mut SkillTool) {
    if let Some(description) = &said.description {
        tool.description.clone_from(description);
    }
    tool.offered = said.capability.over(std::mem::take(&mut tool.offered));
}

/// What a skill has in its own file.
struct Own<'a> {
    skill: &'a SkillDefinition,
    known: &'a Known,
    direct: bool,
}

impl Own<'_> {
    fn category(&self, source: &str) -> String {
        self.skill.category.clone().unwrap_or_else(|| source.to_owned())
    }

    fn registered(&self, tool: &KnownTool) -> SkillTool {
        let name = tool.spec.name.strip_prefix("builtin/").unwrap_or(&tool.spec.name);
        SkillTool {
            name: name.to_owned(),
            call: String::new(),
            skill: self.skill.name.clone(),
            direct: self.direct,
            source: tool.source,
            origin: Origin::Registered(tool.spec.name.clone()),
            description: tool.spec.description.clone(),
            input: tool.spec.input.clone(),
            offered: tool.offered.clone(),
            category: self.category(&tool.category),
        }
    }

    fn builtins(&self, flat: &mut Flat) {
        for group in &self.skill.builtins {
            let Some(names) = self.known.groups.get(&group.group) else {
                flat.missing.push(format!("the group of built-in tools `{}`", group.group));
                continue;
            };
            for tool in names.iter().filter_map(|name| self.known.tools.get(name)) {
                push(self.registered(tool), flat);
            }
        }
    }

    fn references(&self, flat: &mut Flat) {
        for reference in &self.skill.tools {
            let Some(tool) = self.known.tools.get(&reference.name) else {
                flat.missing.push(format!("the tool `{}`", reference.name));
                continue;
            };
            let mut tool = self.registered(tool);
            apply(&reference.overrides, &mut tool);
            // What is named after its group is said of it once.
            flat.tools.retain(|other| {
                !(other.skill == tool.skill && other.direct == tool.direct && other.origin == tool.origin)
            });
            flat.tools.push(tool);
        }
    }

    fn servers(&self, found: &Discovered, flat: &mut Flat) {
        for server in &self.skill.mcp_servers {
            let Some(offers) = found.servers.get(&server.name) else { continue };
            for tool in offers.tools.iter().filter(|tool| server.tool_filter.passes(&tool.name)) {
                let said = server.overrides.iter().find(|said| said.tool == tool.name);
                let mut offered = infer(tool);
                if let Some(said) = said {
                    offered = said.capability.over(offered);
                }
                flat.tools.push(SkillTool {
                    name: tool.name.clone(),
                    call: String::new(),
                    skill: self.skill.name.clone(),
                    direct: self.direct,
                    source: ToolSource::Mcp,
                    origin: Origin::Mcp { server: server.name.clone(), tool: tool.name.clone() },
                    description: said
                        .and_then(|said| said.description.clone())
                        .unwrap_or_else(|| tool.description.clone()),
                    input: tool.input.clone(),
                    offered,
                    category: self.category("mcp"),
                });
            }
        }
    }

    fn agent_skills(&self, found: &Discovered, flat: &mut Flat) {
        for folder in self.skill.folders(found) {
            let Some(skill) = found.agent_skills.get(&folder.path) else { continue };
            flat.tools.push(SkillTool {
                name: folder.name.clone().unwrap_or_else(|| skill.name.clone()),
                call: String::new(),
                skill: self.skill.name.clone(),
                direct: self.direct,
                source: ToolSource::AgentSkill,
                origin: Origin::AgentSkill(folder.path.clone()),
                description: skill.description.clone(),
                input: agent_skill_input(),
                offered: folder.capability.over(skill.offered()),
                category: self.category("agent_skill"),
            });
        }
    }

    fn inline(&self, at: usize, tool: &InlineTool) -> SkillTool {
        SkillTool {
            name: tool.name.clone(),
            call: String::new(),
            skill: self.skill.name.clone(),
            direct: self.direct,
            source: ToolSource::Custom,
            origin: Origin::Inline(at),
            description: tool.description.clone().unwrap_or_default(),
            input: tool.input_schema.clone().unwrap_or_else(|| json!({ "type": "object" })),
            offered: tool.capability.over(Offered::default()),
            category: self.category("custom"),
        }
    }
}

impl SkillDefinition {
    /// The folders with a SKILL.md: those it names, then those in the folders it names.
    pub fn folders(&self, found: &Discovered) -> Vec<AgentSkillFolder> {
        let inside = |path: &&String| {
            let in_dir = |dir: &String| {
                let dir = dir.trim_end_matches('/');
                path.strip_prefix(dir)
                    .and_then(|rest| rest.strip_prefix('/'))
                    .is_some_and(|rest| !rest.contains('/'))
            };
            self.agent_skill_dirs.iter().any(in_dir)
                && !self.agent_skills.iter().any(|own| own.path == **path)
        };
        let scanned = found.agent_skills.keys().filter(inside).map(|path| AgentSkillFolder::at(path));
        self.agent_skills.iter().cloned().chain(scanned).collect()
    }
}

/// A tool that two groups of one skill have is there once.
fn push(tool: SkillTool, flat: &mut Flat) {
    let same = |other: &SkillTool| other.skill == tool.skill && other.origin == tool.origin;
    if !flat.tools.iter().any(same) {
        flat.tools.push(tool);
    }
}

/// What an Agent Skill's tool takes: nothing for its instructions.
fn agent_skill_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "file": {
                "type": "string",
                "description": "A file of the skill to read, such as `references/guide.md`; without it and without `script` the instructions are returned.",
            },
            "script": {
                "type": "string",
                "description": "A script of the skill to run over the sandbox, such as `scripts/check.sh`.",
            },
            "args": {
                "type": "array", "items": { "type": "string" },
                "description": "Arguments of the script.",
            },
        },
        "additionalProperties": false,
    })
}

/// Gives every tool the shortest name that means it alone.
fn name_calls(tools: &mut [SkillTool]) {
    let count = |tools: &[SkillTool], name: &dyn Fn(&SkillTool) -> String| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        tools.iter().for_each(|tool| *counts.entry(name(tool)).or_default() += 1);
        counts
    };
    let plain = count(tools, &|tool| tool.name.clone());
    let own: BTreeMap<String, usize> = {
        let mut counts = BTreeMap::new();
        tools
            .iter()
            .filter(|tool| tool.direct)
            .for_each(|tool| *counts.entry(tool.name.clone()).or_default() += 1);
        counts
    };
    let whole = count(tools, &qualified);
    // The same registered tool that comes by two ways is one tool, whichever way it is called.
    let calls: Vec<String> = tools
        .iter()
        .map(|tool| {
            let alone = plain.get(&tool.name) == Some(&1);
            let first_of_own = tool.direct && own.get(&tool.name) == Some(&1);
            let same_everywhere = matches!(tool.origin, Origin::Registered(_))
                && tools
                    .iter()
                    .filter(|other| other.name == tool.name)
                    .all(|other| other.origin == tool.origin);
            if alone || first_of_own || same_everywhere {
                return tool.name.clone();
            }
            match (&tool.origin, whole.get(&qualified(tool))) {
                (Origin::Mcp { server, .. }, Some(2..)) => format!("{server}.{}", tool.name),
                _ => qualified(tool),
            }
        })
        .collect();
    for (tool, call) in tools.iter_mut().zip(calls) {
        tool.call = call;
    }
}

/// What the tools of a set may do, counted (SKILLC-014).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "each counts the tools of its name")]
pub struct CapabilitySummary {
    pub total_tools: usize,
    pub read_only: usize,
    pub writes: usize,
    pub checkpointable: usize,
    pub has_side_effects: usize,
    pub requires_approval: usize,
}

/// Counts what tools may do. Each counts as one that reads only or as one that writes: what is not known to be read-only
/// is treated as writing (ledger G-39).
pub fn summary(tools: &[SkillTool]) -> CapabilitySummary {
    let count = |has: &dyn Fn(&SkillTool) -> bool| tools.iter().filter(|tool| has(tool)).count();
    let read_only = count(&|tool| tool.offered.capability.read_only);
    CapabilitySummary {
        total_tools: tools.len(),
        read_only,
        writes: tools.len() - read_only,
        checkpointable: count(&|tool| !matches!(tool.checkpoint(), None | Some("no"))),
        has_side_effects: count(&|tool| !tool.offered.capability.side_effects.is_empty()),
        requires_approval: count(&|tool| tool.offered.capability.human_approval_required),
    }
}
