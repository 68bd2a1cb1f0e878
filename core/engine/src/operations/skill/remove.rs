//! Removing a skill.

use agents_domain::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::registry;
use super::{Whole, find};
use crate::{Engine, Operation, skills};

/// Removes a skill with the tools that are its own. Plans that run end its MCP servers at their next call of one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// The skill's name.
    pub name: String,
}

/// What was removed, and who named it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemoveOutput {
    pub skill: RemovedSkill,
    pub dependency_check: Dependencies,
}

/// The removed skill.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RemovedSkill {
    /// Its name.
    pub name: String,
    /// How many tools it offered; those that others have, too, stay theirs.
    pub tools_removed: usize,
    /// How many MCP servers it had.
    pub mcp_servers_closed: usize,
}

/// Who loses its tools.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Dependencies {
    pub including_skills: Vec<IncludingSkill>,
    pub referencing_actors: Vec<String>,
}

/// A skill that includes it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct IncludingSkill {
    pub name: String,
    pub impact: String,
}

impl Operation for Remove {
    const METHOD: &'static str = "registry/skill/remove";
    const SUMMARY: &'static str = "Remove a skill from the registry";
    type Output = RemoveOutput;

    fn run(self, engine: &Engine) -> Result<RemoveOutput> {
        let Whole { skill, known, flat } = find(engine, &self.name)?;
        let name = skill.definition.name;
        let (after, actors) = engine.write(|w| {
            let actors = skills::actors_with(w, &name)?;
            w.delete_skill(&name)?;
            let including = skills::including(&known, &name);
            let affected: Vec<String> =
                including.iter().map(ToString::to_string).chain(actors.iter().cloned()).collect();
            registry::deleted(engine, w, "skill", &name.to_string(), json!(affected))?;
            Ok((skills::known(engine, w)?, actors))
        })?;
        let including = skills::including(&known, &name).into_iter().map(|other| {
            let count = |of| skills::flat(of, &other).map_or(0, |flat| flat.tools.len());
            let lost = count(&known).saturating_sub(count(&after));
            let tools = if lost == 1 { "tool" } else { "tools" };
            IncludingSkill { name: other.to_string(), impact: format!("will lose {lost} {tools}") }
        });
        Ok(RemoveOutput {
            dependency_check: Dependencies {
                including_skills: including.collect(),
                referencing_actors: actors,
            },
            skill: RemovedSkill {
                name: name.to_string(),
                tools_removed: flat.tools.len(),
                mcp_servers_closed: skill.definition.mcp_servers.len(),
            },
        })
    }
}
