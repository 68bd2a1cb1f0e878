//! Registering a skill.

use std::collections::{BTreeMap, BTreeSet};

use agents_config::{Problem, load_skill, to_error};
use agents_domain::ports::skill_store::RegisteredSkill;
use agents_domain::skill::{
    Discovered, Flat, Origin, SkillDefinition, SkillTool, ToolSource, cycle, flatten,
};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::registry;
use super::Included;
use crate::skills::discover::{Found, discover};
use crate::{Engine, Operation, clock, skills};

/// Registers a skill from the text of its file. Its MCP servers are asked what they offer; one that does not answer in
/// time is told of and asked again when it is used.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// The file as the person named it, which messages repeat.
    pub config: String,
    /// Where the file is, which is kept: absolute. As it was named unless given.
    #[serde(default)]
    pub path: Option<String>,
    /// What the file says.
    pub text: String,
    /// Replace a skill of that name.
    #[serde(default)]
    pub update: bool,
}

/// The registered skill, with what its file could say better.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AddOutput {
    pub skill: AddedSkill,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub includes: Option<Vec<Included>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_sources: Option<Vec<SourceCount>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tools: Option<usize>,
    pub mcp_servers: Vec<AddedServer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affected_actors: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_count: Option<ToolCount>,
    /// What does not keep it from being registered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Problem>,
}

/// A skill as it was registered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AddedSkill {
    pub name: String,
    pub description: Option<String>,
    pub config: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<String>,
}

/// The tools of one source.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct SourceCount {
    pub source: String,
    pub count: usize,
    pub details: String,
}

/// An MCP server as it answered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AddedServer {
    /// Its name in the skill.
    pub name: String,
    /// `validated`, or `unreachable`.
    pub status: String,
    /// How many of its tools are offered.
    pub tools: usize,
    /// Why it is unreachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What an update changed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Changes {
    pub tools_added: usize,
    pub tools_removed: usize,
    pub tools_modified: usize,
    pub includes_changed: bool,
    pub mcp_servers_changed: bool,
}

/// How many tools there are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ToolCount {
    pub before: usize,
    pub after: usize,
}

impl Operation for Add {
    const METHOD: &'static str = "registry/skill/add";
    const SUMMARY: &'static str = "Register a skill from its file";
    type Output = AddOutput;

    fn run(self, engine: &Engine) -> Result<AddOutput> {
        let loaded = load_skill(&self.text, &self.config).map_err(|problems| to_error(&problems))?;
        let definition = loaded.value.clone();
        let name = definition.name.clone();
        registry::check_own("a skill", &name)?;
        let path = self.path.clone().unwrap_or_else(|| self.config.clone());
        // What would be refused anyway starts no server.
        let before = engine.look(|r| {
            let known = r.skill(&name)?;
            if known.is_some() && !self.update {
                return Err(exists(&name, &self.config));
            }
            check(engine, r, &definition, &Discovered::default())?;
            Ok(known)
        })?;
        let Found { discovered, warnings, errors } =
            discover(engine, &definition, &path, before.as_ref().map(|known| &known.discovered))?;
        if !errors.is_empty() {
            return Err(Error::validation(errors.join("; ")).suggest(format!("put {} right", self.config)));
        }
        let now = clock::now();
        let (old, new, flat) = engine.write(|w| {
            let known = w.skill(&name)?;
            if known.is_some() && !self.update {
                return Err(exists(&name, &self.config));
            }
            let flat = check(engine, w, &definition, &discovered)?;
            let old = match &known {
                Some(_) => skills::flat(&skills::known(engine, w)?, &name),
                None => None,
            };
            let skill = |created_at, updated_at| RegisteredSkill {
                definition: definition.clone(),
                discovered: discovered.clone(),
                config_path: path.clone(),
                source: self.text.clone(),
                created_at,
                updated_at,
            };
            let new = match &known {
                Some(known) => {
                    let new = skill(known.created_at, clock::after(known.updated_at));
                    w.update_skill(&new)?;
                    registry::changed(engine, w, "skill", &name.to_string(), "updated")?;
                    new
                }
                None => {
                    let new = skill(now, now);
                    w.insert_skill(&new)?;
                    registry::changed(engine, w, "skill", &name.to_string(), "added")?;
                    new
                }
            };
            Ok((known.zip(old), new, flat))
        })?;
        let actors = engine.look(|r| skills::actors_with(r, &name))?;
        let mut output = AddOutput {
            skill: AddedSkill {
                name: name.to_string(),
                description: definition.description.clone(),
                config: self.config,
                created: Some(new.created_at.seconds_rfc3339()).filter(|_| old.is_none()),
                updated: Some(new.updated_at.seconds_rfc3339()).filter(|_| old.is_some()),
            },
            includes: None,
            tool_sources: None,
            total_tools: None,
            mcp_servers: servers(&definition, &discovered),
            changes: None,
            affected_actors: None,
            tool_count: None,
            warnings: [warnings, flat.warnings.clone()].concat(),
            hints: loaded.hints,
        };
        match old {
            Some((known, old)) => {
                output.changes = Some(changes(&known.definition, &definition, &old, &flat));
                output.affected_actors = Some(actors);
                output.tool_count = Some(ToolCount { before: old.tools.len(), after: flat.tools.len() });
            }
            None => {
                output.includes = Some(
                    definition
                        .includes
                        .iter()
                        .map(|include| Included {
                            name: include.name.to_string(),
                            status: "registered".to_owned(),
                        })
                        .collect(),
                );
                output.tool_sources = Some(source_counts(&flat.tools));
                output.total_tools = Some(flat.tools.len());
            }
        }
        Ok(output)
    }
}

fn exists(name: &QualifiedName, config: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("Skill '{name}' is already registered."))
        .suggest(format!("agents skill add --config {config} --update"))
        .data(json!({ "skill_name": name.to_string(), "reason": "already registered" }))
}

/// What a skill names is there, and no include leads back to it (SKILLC-003, SKILLC-005, SKILLC-006).
fn check(
    engine: &Engine,
    r: &dyn agents_domain::ports::store::Reader,
    definition: &SkillDefinition,
    discovered: &Discovered,
) -> Result<Flat> {
    let mut known = skills::known(engine, r)?;
    known.skills.insert(definition.name.clone(), (definition.clone(), discovered.clone()));
    if let Some(way) = cycle(definition, &known) {
        let way: Vec<String> = way.iter().map(ToString::to_string).collect();
        return Err(Error::validation(format!("the includes go in a circle: {}", way.join(" -> ")))
            .suggest("take one of these includes out"));
    }
    let flat = flatten(definition, discovered, &known);
    if flat.missing.is_empty() {
        return Ok(flat);
    }
    let mut error = Error::validation(format!("not registered: {}", flat.missing.join("; ")));
    if definition.includes.iter().any(|include| !known.skills.contains_key(&include.name)) {
        error = error.suggest("agents skill add --config <FILE>");
    }
    if definition.tools.iter().any(|tool| !known.tools.contains_key(&tool.name)) {
        error = error.suggest("agents tool list");
    }
    if definition.builtins.iter().any(|group| !known.groups.contains_key(&group.group)) {
        let groups: Vec<&str> = known.groups.keys().map(String::as_str).collect();
        error = error.suggest(format!("the groups are {}", groups.join(", ")));
    }
    Err(error)
}

pub(super) fn servers(definition: &SkillDefinition, discovered: &Discovered) -> Vec<AddedServer> {
    let server = |server: &agents_domain::skill::McpServer| {
        let offers = discovered.servers.get(&server.name);
        let passing = offers.map_or(0, |offers| {
            offers.tools.iter().filter(|tool| server.tool_filter.passes(&tool.name)).count()
        });
        let problem = offers.and_then(|offers| offers.problem.clone());
        let asked = offers.is_some_and(|offers| offers.at.is_some()) && problem.is_none();
        AddedServer {
            name: server.name.clone(),
            status: if asked { "validated" } else { "unreachable" }.to_owned(),
            tools: passing,
            problem,
        }
    };
    definition.mcp_servers.iter().map(server).collect()
}

/// How many tools each source has, and which.
fn source_counts(tools: &[SkillTool]) -> Vec<SourceCount> {
    let all = [ToolSource::Builtin, ToolSource::Mcp, ToolSource::AgentSkill, ToolSource::Custom];
    let count = |source: ToolSource| {
        let of: Vec<&SkillTool> = tools.iter().filter(|tool| tool.source == source).collect();
        let mut servers: BTreeMap<&str, usize> = BTreeMap::new();
        for tool in &of {
            if let Origin::Mcp { server, .. } = &tool.origin {
                *servers.entry(server).or_default() += 1;
            }
        }
        let details: Vec<String> = match source {
            ToolSource::Mcp => servers.iter().map(|(server, n)| format!("{server} ({n})")).collect(),
            ToolSource::Builtin => {
                let categories: BTreeSet<&str> = of.iter().map(|tool| tool.category.as_str()).collect();
                categories.into_iter().map(str::to_owned).collect()
            }
            _ => of.iter().map(|tool| tool.name.clone()).collect(),
        };
        let (count, details) = (of.len(), details.join(", "));
        SourceCount { source: source.as_str().to_owned(), count, details }
    };
    all.into_iter().map(count).filter(|of| of.count > 0).collect()
}

pub(super) fn changes(old: &SkillDefinition, new: &SkillDefinition, was: &Flat, is: &Flat) -> Changes {
    fn by_key(flat: &Flat) -> BTreeMap<(String, String, String), &SkillTool> {
        flat.tools.iter().map(|t| ((t.skill.to_string(), t.source_text(), t.name.clone()), t)).collect()
    }
    let (was, is) = (by_key(was), by_key(is));
    let modified = is.iter().filter(|(key, tool)| was.get(*key).is_some_and(|old| differs(old, tool)));
    Changes {
        tools_added: is.keys().filter(|key| !was.contains_key(*key)).count(),
        tools_removed: was.keys().filter(|key| !is.contains_key(*key)).count(),
        tools_modified: modified.count()
            + new.inline_tools.iter().filter(|tool| code_differs(old, tool)).count(),
        includes_changed: old.includes != new.includes,
        mcp_servers_changed: old.mcp_servers != new.mcp_servers,
    }
}

fn differs(old: &SkillTool, new: &SkillTool) -> bool {
    (&old.description, &old.input, &old.offered) != (&new.description, &new.input, &new.offered)
}

/// An inline tool whose code alone is another; what differs besides is counted already.
fn code_differs(old: &SkillDefinition, tool: &agents_domain::skill::InlineTool) -> bool {
    old.inline_tools.iter().any(|was| {
        was.name == tool.name
            && was.code != tool.code
            && (&was.description, &was.input_schema, &was.capability)
                == (&tool.description, &tool.input_schema, &tool.capability)
    })
}
