//! Skills as the engine has them: all there is to put them together from, and what their servers and folders say.

pub(crate) mod discover;
pub(crate) mod folder;

use agents_config::{Reading, load_actor};
use agents_domain::actor::RegisteredActor;
use agents_domain::ports::store::Reader;
use agents_domain::ports::tool::ToolSpec;
use agents_domain::skill::{
    CheckpointScope, Discovered, Flat, Include, Known, KnownTool, Offered, SkillDefinition, ToolSource,
    flatten,
};
use agents_domain::{QualifiedName, Result};

use crate::{Engine, tools};

/// Everything skills are put together from, as it is registered now.
pub(crate) fn known(_: &Engine, r: &dyn Reader) -> Result<Known> {
    let mut known = Known::default();
    for skill in r.skills()? {
        known.skills.insert(skill.definition.name.clone(), (skill.definition, skill.discovered));
    }
    for tool in tools::all() {
        add_built_in(&mut known, tool.spec(), &tool.facts.category, tool.group.unwrap_or_default());
    }
    for tool in agents_tools::catalogue() {
        let facts = tools::facts_of(tool);
        add_built_in(&mut known, tools::spec_of(tool), &facts.category, "lsp_operations");
    }
    Ok(known)
}

/// Enters a tool that comes with the program, under its names and into its group.
fn add_built_in(known: &mut Known, spec: ToolSpec, category: &str, group: &str) {
    let name = spec.name.clone();
    let writes = spec.capability.writes && spec.capability.checkpointable;
    let tool = KnownTool {
        offered: Offered {
            capability: spec.capability.clone(),
            checkpoint_scope: writes.then_some(CheckpointScope::File),
            write_scope: Vec::new(),
        },
        spec,
        source: ToolSource::Builtin,
        category: category.to_owned(),
    };
    if let Some(bare) = name.strip_prefix("builtin/") {
        known.tools.insert(bare.to_owned(), tool.clone());
    }
    known.groups.entry(group.to_owned()).or_default().push(name.clone());
    known.tools.insert(name, tool);
}

/// The flattened tools of a registered skill; `None` when there is none of that name.
pub(crate) fn flat(known: &Known, name: &QualifiedName) -> Option<Flat> {
    let (definition, discovered) = known.skills.get(name)?;
    Some(flatten(definition, discovered, known))
}

/// The tools of several skills together: as if one skill included them all.
pub(crate) fn together(names: &[QualifiedName], known: &Known) -> Flat {
    let Some(name) = names.first() else { return Flat::default() };
    // A name that no skill has: `/` cannot stand in one.
    let include =
        |name: &QualifiedName| Include { name: name.clone(), description: None, tool_overrides: Vec::new() };
    if let ([_], Some((skill, found))) = (names, known.skills.get(name)) {
        return flatten(skill, found, known);
    }
    let Ok(all) = format!("actor/{}", crate::clock::ulid()).parse() else { return Flat::default() };
    let definition = SkillDefinition {
        name: all,
        description: None,
        category: None,
        tools: Vec::new(),
        inline_tools: Vec::new(),
        includes: names.iter().map(include).collect(),
        mcp_servers: Vec::new(),
        agent_skills: Vec::new(),
        agent_skill_dirs: Vec::new(),
        builtins: Vec::new(),
    };
    flatten(&definition, &Discovered::default(), known)
}

/// Who names a skill: the skills that include it.
pub(crate) fn including(known: &Known, name: &QualifiedName) -> Vec<QualifiedName> {
    let includes = |skill: &SkillDefinition| skill.includes.iter().any(|include| include.name == *name);
    known.skills.values().filter(|(skill, _)| includes(skill)).map(|(skill, _)| skill.name.clone()).collect()
}

/// Who names a skill: the actors that list it. One whose file cannot be read any more is left out.
pub(crate) fn actors_with(r: &dyn Reader, name: &QualifiedName) -> Result<Vec<String>> {
    let lists = |actor: &RegisteredActor| {
        let reading = Reading { overrides: actor.overrides.clone(), ..Reading::default() };
        load_actor(&actor.source, &actor.config_path, &reading)
            .is_ok_and(|loaded| loaded.value.actors.iter().any(|(_, agent)| agent.skills.contains(name)))
    };
    Ok(r.actors()?.iter().filter(|actor| lists(actor)).map(|actor| actor.name.to_string()).collect())
}
