//! Asking a skill's servers and folders anew.

use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::registry;
use super::{Whole, add, find};
use crate::skills::discover::discover;
use crate::{Engine, Operation, skills};

pub use super::add::AddedServer as RefreshedServer;

/// Asks a skill's MCP servers and Agent Skills folders again what they offer. Its file is not read again.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// The skill's name.
    pub name: String,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RefreshOutput {
    pub skill: String,
    pub mcp_servers: Vec<RefreshedServer>,
    pub changes: add::Changes,
    pub tool_count: add::ToolCount,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Operation for Refresh {
    const METHOD: &'static str = "registry/skill/refresh";
    const SUMMARY: &'static str = "Ask a skill's servers and folders again what they offer";
    type Output = RefreshOutput;

    fn run(self, engine: &Engine) -> Result<RefreshOutput> {
        let Whole { skill, flat: was, .. } = find(engine, &self.name)?;
        let definition = skill.definition;
        let found = discover(engine, &definition, &skill.config_path, Some(&skill.discovered))?;
        if !found.errors.is_empty() {
            return Err(Error::validation(found.errors.join("; ")));
        }
        let name = definition.name.clone();
        let is = engine.write(|w| {
            w.put_discovered(&name, &found.discovered)?;
            registry::changed(engine, w, "skill", &name.to_string(), "refreshed")?;
            Ok(skills::flat(&skills::known(engine, w)?, &name).unwrap_or_default())
        })?;
        Ok(RefreshOutput {
            skill: name.to_string(),
            mcp_servers: add::servers(&definition, &found.discovered),
            changes: add::changes(&definition, &definition, &was, &is),
            tool_count: add::ToolCount { before: was.tools.len(), after: is.tools.len() },
            warnings: [found.warnings, is.warnings].concat(),
        })
    }
}
