//! A skill and its tools.

use agents_domain::Result;
use agents_domain::skill::{CapabilitySummary, SkillTool, summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Whole, add, find, sources};
use crate::{Engine, Operation, skills};

/// Shows a skill.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// The skill's name.
    pub name: String,
}

/// A registered skill.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShowOutput {
    pub skill: ShownSkill,
    pub includes: Vec<IncludedSkill>,
    pub direct_tools: Vec<DirectTool>,
    pub mcp_servers: Vec<ShownServer>,
    pub capability_summary: CapabilitySummary,
    pub referenced_by: ReferencedBy,
    /// What it names and is not there any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// What its file says of itself.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShownSkill {
    pub name: String,
    pub description: Option<String>,
    pub config: String,
    pub created: String,
    pub updated: String,
}

/// A skill it includes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct IncludedSkill {
    pub name: String,
    pub tools: usize,
    pub source: String,
}

/// A tool of its own.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DirectTool {
    pub name: String,
    pub source: String,
    pub writes: bool,
    pub checkpoint: Option<String>,
}

/// An MCP server of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShownServer {
    /// Its name in the skill.
    pub name: String,
    /// How it is talked to.
    pub transport: String,
    /// How many of its tools are offered.
    pub tools: usize,
    /// `validated`, or `unreachable` when it did not answer the last time it was asked.
    pub status: String,
    /// What it calls itself, with its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The version of the protocol that was agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The addresses of what it lets read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The names of its prompts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<String>,
    /// Why it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Who names it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ReferencedBy {
    pub actors: Vec<String>,
    pub skills: Vec<String>,
}

impl Operation for Show {
    const METHOD: &'static str = "registry/skill/show";
    const SUMMARY: &'static str = "Show a skill";
    type Output = ShowOutput;

    fn run(self, engine: &Engine) -> Result<ShowOutput> {
        let Whole { skill, known, flat } = find(engine, &self.name)?;
        let name = &skill.definition.name;
        let includes = skill.definition.includes.iter().map(|include| {
            let tools = skills::flat(&known, &include.name).unwrap_or_default().tools;
            IncludedSkill {
                name: include.name.to_string(),
                tools: tools.len(),
                source: sources(&tools).join(", "),
            }
        });
        let direct = flat.tools.iter().filter(|tool| tool.direct).map(|tool| DirectTool {
            name: tool.name.clone(),
            source: tool.source_text(),
            writes: !tool.offered.capability.read_only,
            checkpoint: tool.checkpoint().map(str::to_owned),
        });
        let servers = add::servers(&skill.definition, &skill.discovered);
        let servers = servers.into_iter().zip(&skill.definition.mcp_servers).map(|(status, server)| {
            let offers = skill.discovered.servers.get(&server.name).cloned().unwrap_or_default();
            let said = |text: String| Some(text).filter(|text| !text.is_empty());
            ShownServer {
                name: status.name,
                transport: server.transport.as_str().to_owned(),
                tools: status.tools,
                status: status.status,
                server: said(offers.server),
                protocol: said(offers.protocol),
                resources: offers.resources.into_iter().map(|resource| resource.uri).collect(),
                prompts: offers.prompts.into_iter().map(|prompt| prompt.name).collect(),
                problem: status.problem,
            }
        });
        Ok(ShowOutput {
            skill: ShownSkill {
                name: name.to_string(),
                description: skill.definition.description.clone(),
                config: skill.config_path.clone(),
                created: skill.created_at.seconds_rfc3339(),
                updated: skill.updated_at.seconds_rfc3339(),
            },
            includes: includes.collect(),
            direct_tools: direct.collect(),
            mcp_servers: servers.collect(),
            capability_summary: summary(&flat.tools),
            referenced_by: ReferencedBy {
                actors: engine.look(|r| skills::actors_with(r, name))?,
                skills: skills::including(&known, name).iter().map(ToString::to_string).collect(),
            },
            missing: flat.missing,
        })
    }
}

/// Lists the tools of a skill, those of included skills among them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// The skill's name.
    pub name: String,
}

/// The flattened set.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ToolsOutput {
    pub tools: Vec<ToolView>,
    pub summary: ToolsSummary,
}

/// A tool of the set.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ToolView {
    /// Its plain name.
    pub name: String,
    /// Where it comes from, such as `mcp:github`.
    pub source: String,
    /// The included skill that has it; null for one of its own.
    pub from_skill: Option<String>,
    /// It changes nothing.
    pub read_only: bool,
    /// It may change something.
    pub writes: bool,
    /// How far a checkpoint brings back what it writes; null for what only reads, `no` where nothing does.
    pub checkpoint: Option<String>,
    /// The name an actor calls it by.
    pub call: String,
    /// What it is for.
    pub description: String,
}

/// Of the set.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ToolsSummary {
    pub total: usize,
    pub from_includes: usize,
    pub direct: usize,
    pub read_only: usize,
    pub writes: usize,
    pub checkpointable: usize,
}

fn view(tool: &SkillTool) -> ToolView {
    let read_only = tool.offered.capability.read_only;
    ToolView {
        name: tool.name.clone(),
        source: tool.source_text(),
        from_skill: (!tool.direct).then(|| tool.skill.to_string()),
        read_only,
        writes: !read_only,
        checkpoint: tool.checkpoint().map(str::to_owned),
        call: tool.call.clone(),
        description: tool.description.clone(),
    }
}

impl Operation for Tools {
    const METHOD: &'static str = "registry/skill/tools";
    const SUMMARY: &'static str = "List the tools of a skill";
    type Output = ToolsOutput;

    fn run(self, engine: &Engine) -> Result<ToolsOutput> {
        let Whole { flat, .. } = find(engine, &self.name)?;
        let counts = summary(&flat.tools);
        let direct = flat.tools.iter().filter(|tool| tool.direct).count();
        Ok(ToolsOutput {
            tools: flat.tools.iter().map(view).collect(),
            summary: ToolsSummary {
                total: counts.total_tools,
                from_includes: counts.total_tools - direct,
                direct,
                read_only: counts.read_only,
                writes: counts.writes,
                checkpointable: counts.checkpointable,
            },
        })
    }
}
