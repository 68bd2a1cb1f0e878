//! Operations on skills.

mod add;
mod list;
mod refresh;
mod remove;
mod show;

use std::collections::BTreeSet;

use agents_domain::Result;
use agents_domain::ports::skill_store::RegisteredSkill;
use agents_domain::skill::{Flat, Known, SkillTool, ToolSource};
use schemars::JsonSchema;
use serde::Serialize;

pub use add::{Add, AddOutput, AddedServer, AddedSkill, Changes, SourceCount, ToolCount};
pub use list::{List, ListOutput, ListedSkill, Summary};
pub use refresh::{Refresh, RefreshOutput, RefreshedServer};
pub use remove::{Dependencies, IncludingSkill, Remove, RemoveOutput, RemovedSkill};
pub use show::{
    DirectTool, IncludedSkill, ReferencedBy, Show, ShowOutput, ShownServer, ShownSkill, ToolView, Tools,
    ToolsOutput, ToolsSummary,
};

use crate::{Engine, skills};

/// A skill's name with its status.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Included {
    pub name: String,
    pub status: String,
}

/// A registered skill with everything it is put together from.
struct Whole {
    skill: RegisteredSkill,
    known: Known,
    flat: Flat,
}

fn find(engine: &Engine, name: &str) -> Result<Whole> {
    let name = engine.name(name)?;
    let found = engine.look(|r| match r.skill(&name)? {
        Some(skill) => {
            let known = skills::known(engine, r)?;
            let flat = skills::flat(&known, &name).unwrap_or_default();
            Ok(Ok(Whole { skill, known, flat }))
        }
        None => Ok(Err(r.skills()?.iter().map(|s| s.definition.name.to_string()).collect::<Vec<_>>())),
    })?;
    found.map_err(|known| engine.no_such("skill", &name, &known, "agents skill list"))
}

/// The sources that tools come from, in the order they are always told.
fn sources(tools: &[SkillTool]) -> Vec<String> {
    let sources: BTreeSet<ToolSource> = tools.iter().map(|tool| tool.source).collect();
    sources.into_iter().map(|source| source.as_str().to_owned()).collect()
}
