//! Listing skills.

use std::collections::BTreeSet;

use agents_domain::skill::ToolSource;
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::registry;
use super::sources;
use crate::{Engine, Operation, skills};

/// Lists skills; filters combine.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only this namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Only skills with tools of this source: `builtin`, `mcp`, `agent_skill`, `custom`.
    #[serde(default)]
    pub source: Option<String>,
}

/// Skills by name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    pub skills: Vec<ListedSkill>,
    pub summary: Summary,
}

/// A skill in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedSkill {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// How many tools it has, those of included skills among them.
    pub tools: usize,
    /// How many skills it includes itself.
    pub includes: usize,
    /// Where its tools come from.
    pub sources: Vec<String>,
}

/// Of the skills listed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Summary {
    /// How many.
    pub total: usize,
    /// Those without a server in their name.
    pub local: usize,
    /// Those of servers.
    pub server: usize,
    /// Different tools in all of them.
    pub total_tools: usize,
}

/// The source of a word.
fn source(word: &str) -> Result<ToolSource> {
    let all = [ToolSource::Builtin, ToolSource::Mcp, ToolSource::AgentSkill, ToolSource::Custom];
    all.into_iter().find(|source| source.as_str() == word).ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|source| source.as_str()).collect();
        Error::new(
            ErrorKind::Usage,
            format!("`{word}` is no source of tools: there are {}", words.join(", ")),
        )
    })
}

impl Operation for List {
    const METHOD: &'static str = "registry/skill/list";
    const SUMMARY: &'static str = "List skills";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let wanted = self.source.as_deref().map(source).transpose()?;
        let names = registry::Wanted::new(self.namespace.as_deref(), None)?;
        let known = engine.look(|r| skills::known(engine, r))?;
        let mut found = Vec::new();
        let mut distinct = BTreeSet::new();
        let mut server = 0;
        for (name, (definition, _)) in known.skills.iter().filter(|(name, _)| names.has(name)) {
            let flat = skills::flat(&known, name).unwrap_or_default();
            if wanted.is_some_and(|source| flat.tools.iter().all(|tool| tool.source != source)) {
                continue;
            }
            server += usize::from(name.server().is_some());
            distinct.extend(flat.tools.iter().map(|t| (t.skill.clone(), t.source_text(), t.name.clone())));
            found.push(ListedSkill {
                name: name.to_string(),
                description: definition.description.clone(),
                tools: flat.tools.len(),
                includes: definition.includes.len(),
                sources: sources(&flat.tools),
            });
        }
        let total = found.len();
        Ok(ListOutput {
            skills: found,
            summary: Summary { total, local: total - server, server, total_tools: distinct.len() },
        })
    }
}
