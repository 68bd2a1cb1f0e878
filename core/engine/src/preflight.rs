//! Checks before a plan is made: whatever would stop it later stops it here, by the name of the check.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agents_domain::action::Action;
use agents_domain::plan::guards::ToolFacts;
use agents_domain::plan::{PlanActors, PlanResource};
use agents_domain::ports::store::Reader;
use agents_domain::profile::{Profile, Safety};
use agents_domain::resource::{SandboxStrategy, resource_type};
use agents_domain::skill::{Known, SkillTool};
use agents_domain::validation::{Attachment, Mode, applicable};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use serde_json::{Value, json};

use crate::operations::validation::{definition, not_there};
use crate::validations::{missing_program, wrapped_tool};
use crate::{Engine, sandboxes, skills, tools};

/// What a plan is checked by, before it exists.
pub(crate) struct Candidate<'a> {
    pub action: &'a Action,
    pub actors: &'a PlanActors,
    pub arguments: &'a BTreeMap<String, Value>,
    pub projects: &'a [QualifiedName],
    pub resources: &'a [PlanResource],
    pub profile: &'a Profile,
}

/// A check: its name for people, and what it refuses.
type Check = (&'static str, fn(&Engine, &dyn Reader, &Candidate<'_>) -> Result<()>);

/// Every check, in order (GUARD-006 to GUARD-011).
const CHECKS: [Check; 7] = [
    ("action schema", action_schema),
    ("actor availability", actor_availability),
    ("skills and tools", tool_existence),
    ("automation policy", automation_policy),
    ("rollback feasibility", rollback_feasibility),
    ("resource accessibility", resource_accessibility),
    ("validation attachments", validation_attachments),
];

/// Runs the checks; the first that fails rejects the plan and is named.
pub(crate) fn run(engine: &Engine, candidate: &Candidate<'_>) -> Result<()> {
    engine.look(|r| {
        for (name, check) in CHECKS {
            check(engine, r, candidate).map_err(|error| named(error, name))?;
        }
        Ok(())
    })
}

fn named(error: Error, check: &str) -> Error {
    let message = format!("pre-flight check failed ({check}): {}", error.message);
    Error { message, ..error }.data(json!({ "check": check }))
}

/// Check 1: the action is still what its kind requires.
fn action_schema(_: &Engine, _: &dyn Reader, candidate: &Candidate<'_>) -> Result<()> {
    let definition = &candidate.action.definition;
    for (key, text) in
        [("description", &definition.description), ("definition_of_done", &definition.definition_of_done)]
    {
        if text.trim().is_empty() {
            return Err(Error::validation(format!("`{key}` of action `{}` is empty", definition.name))
                .suggest("agents action create --config <FILE>"));
        }
    }
    Ok(())
}

/// Check 2: every actor the plan names is there.
fn actor_availability(engine: &Engine, _: &dyn Reader, candidate: &Candidate<'_>) -> Result<()> {
    let actors = candidate.actors;
    let named = [
        ("strategy", Some(&actors.strategy)),
        ("execution", Some(&actors.execution)),
        ("estimation", actors.estimation.as_ref()),
    ];
    for (role, name) in named {
        let Some(name) = name else { continue };
        if !engine.has_actor(name)? {
            let known = engine.actor_names()?.join(", ");
            let message = format!("there is no actor `{name}` (asked for as the {role} actor)");
            return Err(Error::not_found(message).detail(format!("known actors: {known}")));
        }
    }
    for (role, name) in named {
        let unready = name.and_then(|name| Some((name, engine.actors.unready(name)?)));
        if let Some((name, (why, hints))) = unready {
            let error = Error::validation(format!("the {role} actor `{name}` cannot work: {why}"));
            return Err(hints.into_iter().fold(error, Error::suggest));
        }
    }
    if let Some(name) = &actors.invariant {
        crate::invariants::reconciler(engine, name)?;
    }
    Ok(())
}

/// Check 3: the tools the profile lets run by themselves exist, and those of the actors' skills are there and may be used
/// (SKILLC-015).
fn tool_existence(engine: &Engine, r: &dyn Reader, candidate: &Candidate<'_>) -> Result<()> {
    let allowed = candidate.profile.guards.tool_allowlist.iter().flatten();
    let gone = allowed.into_iter().find(|name| name.starts_with("builtin/") && tools::find(name).is_none());
    if let Some(name) = gone {
        return Err(Error::not_found(format!(
            "there is no tool `{name}`, which profile `{}` allows",
            candidate.profile.name
        )));
    }
    let actors = [&candidate.actors.strategy, &candidate.actors.execution];
    let known = skills::known(engine, r)?;
    for name in actors {
        let Some(actor) = engine.actors.find(name) else { continue };
        skills_of(name, &actor.skills(candidate.arguments), &known, &candidate.profile.safety)?;
    }
    Ok(())
}

/// Whether an actor's skills are there, and some of their tools may be used.
fn skills_of(actor: &QualifiedName, names: &[QualifiedName], known: &Known, safety: &Safety) -> Result<()> {
    if let Some(gone) = names.iter().find(|name| !known.skills.contains_key(*name)) {
        return Err(Error::not_found(format!("there is no skill `{gone}`, which the actor `{actor}` names"))
            .suggest("agents skill list"));
    }
    let flat = skills::together(names, known);
    if !flat.missing.is_empty() {
        let missing = flat.missing.join("; ");
        return Err(Error::not_found(format!("the skills of the actor `{actor}` lack {missing}")));
    }
    let usable = |tool: &SkillTool| {
        safety.allows_category(&tool.category)
            && (safety.allow_unsafe_tools || !tool.offered.capability.is_unsafe)
    };
    if flat.tools.is_empty() || flat.tools.iter().any(usable) {
        return Ok(());
    }
    Err(Error::validation(format!(
        "the profile allows none of the tools of the skills of the actor `{actor}`"
    ))
    .suggest("agents plan use --automation-profile <NAME> <ACTION> <PROJECT>"))
}

/// Check 4: the profile allows what the plan is for, on the resources it is for.
fn automation_policy(_: &Engine, r: &dyn Reader, candidate: &Candidate<'_>) -> Result<()> {
    let safety = &candidate.profile.safety;
    if candidate.action.definition.read_only {
        return Ok(());
    }
    if let Some(why) = nothing_may_write(safety, tools::all().iter().map(|tool| &tool.facts)) {
        return Err(Error::validation(format!(
            "profile `{}` lets no tool write: {why}",
            candidate.profile.name
        ))
        .suggest("agents plan use --automation-profile <NAME> <ACTION> <PROJECT>"));
    }
    if !safety.require_sandbox {
        return Ok(());
    }
    for linked in candidate.resources {
        let Some(resource) = r.resource(linked.resource_id)? else { continue };
        let strategy = resource_type(&resource.resource_type).map(|known| known.strategy);
        if matches!(strategy, None | Some(SandboxStrategy::None)) {
            return Err(Error::validation(format!(
                "profile `{}` requires a sandbox, and resource `{}` can have none",
                candidate.profile.name,
                sandboxes::display_name(&resource)
            )));
        }
    }
    Ok(())
}

/// Why no writing tool may run, when none may.
fn nothing_may_write<'t>(safety: &Safety, tools: impl Iterator<Item = &'t ToolFacts>) -> Option<String> {
    let mut why = None;
    for tool in tools.filter(|tool| tool.capability.writes) {
        if safety.allows_category(&tool.category) && (safety.allow_unsafe_tools || !tool.capability.is_unsafe)
        {
            return None;
        }
        why = Some(format!(
            "`{}` is of category `{}`, and {} is allowed",
            tool.name,
            tool.category,
            safety.allowed_skill_categories.join(", ")
        ));
    }
    why
}

/// Check 5: what a tool writes can be taken back, where the profile requires checkpoints.
fn rollback_feasibility(_: &Engine, _: &dyn Reader, candidate: &Candidate<'_>) -> Result<()> {
    match not_checkpointable(&candidate.profile.safety, tools::all().iter().map(|tool| &tool.facts)) {
        Some(tool) => Err(Error::validation(format!(
            "profile `{}` requires checkpoints, and what `{}` writes cannot be brought back",
            candidate.profile.name, tool.name
        ))),
        None => Ok(()),
    }
}

/// The first tool that writes what no checkpoint brings back; tools of the engine that only start child plans are none.
fn not_checkpointable<'t>(
    safety: &Safety,
    mut tools: impl Iterator<Item = &'t ToolFacts>,
) -> Option<&'t ToolFacts> {
    let harmful = |tool: &&ToolFacts| {
        let may = &tool.capability;
        may.writes && !may.checkpointable && !may.side_effects.iter().any(|effect| effect == "spawn_subplan")
    };
    if safety.require_checkpoints { tools.find(harmful) } else { None }
}

/// Check 6: the resources are where they were registered, and no file is in two of them.
fn resource_accessibility(engine: &Engine, r: &dyn Reader, candidate: &Candidate<'_>) -> Result<()> {
    let mut places: Vec<(PathBuf, String, &QualifiedName)> = Vec::new();
    for linked in candidate.resources {
        let resource = r.resource(linked.resource_id)?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("resource {} is gone", linked.resource_id))
        })?;
        let usable = sandboxes::check_usable(engine, &resource)?;
        places.push((usable.path().to_owned(), sandboxes::display_name(&resource), &linked.project));
    }
    for (inner, name, project) in &places {
        let around = places.iter().find(|(outer, _, _)| inner != outer && inner.starts_with(outer));
        if let Some((_, outer, _)) = around {
            return Err(Error::validation(format!(
                "resource `{name}` lies within `{outer}`, so its files would be in two sandboxes"
            ))
            .suggest(format!("agents project unlink-resource {project} {name}")));
        }
    }
    Ok(())
}

/// The attachments that a plan of this kind will run.
fn attachments(r: &dyn Reader, candidate: &Candidate<'_>) -> Result<Vec<Attachment>> {
    let all = r.attachments()?;
    Ok(applicable(&all, candidate.resources, candidate.projects, &[]).into_iter().cloned().collect())
}

/// Check 7: what is attached can be run (VALID-033).
fn validation_attachments(engine: &Engine, r: &dyn Reader, candidate: &Candidate<'_>) -> Result<()> {
    for attachment in attachments(r, candidate)? {
        let (name, id) = (&attachment.validation, attachment.attachment_id);
        let detach = format!("agents validation detach {id}");
        match definition(r, name)? {
            None => {
                let message = format!("validation `{name}` is attached ({id}) and not registered");
                return Err(Error::not_found(message)
                    .suggest(detach)
                    .suggest("agents validation add --config <FILE>"));
            }
            Some(found) => {
                if let Some(tool) = &found.wraps
                    && let Err(why) = wrapped_tool(engine, tool)
                {
                    let message = format!("validation `{name}` wraps {tool}: {why}");
                    return Err(Error::validation(message).suggest(detach));
                }
                if let Some(why) = found.cannot_run() {
                    return Err(Error::validation(format!("validation `{name}` cannot be run: {why}"))
                        .suggest(detach));
                }
            }
        }
    }
    Ok(())
}

/// What does not reject a plan and would stand in its way as things are now.
pub(crate) fn warnings(engine: &Engine, candidate: &Candidate<'_>) -> Result<Vec<String>> {
    engine.look(|r| {
        let mut warnings: Vec<String> = Vec::new();
        for attachment in attachments(r, candidate)? {
            let Some(found) = definition(r, &attachment.validation)? else { continue };
            if found.validation.mode == Mode::Required
                && let Some(program) = missing_program(&found, &*engine.surroundings)
            {
                let warning = format!("validation {}: {}", attachment.validation, not_there(program));
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        Ok(warnings)
    })
}

#[cfg(test)]
mod tests {
    use agents_domain::ports::tool::Capability;

    use super::*;

    fn tool(change: impl FnOnce(&mut Capability)) -> ToolFacts {
        let mut capability = Capability { writes: true, ..Capability::default() };
        change(&mut capability);
        ToolFacts {
            name: "local/write".to_owned(),
            summary: String::new(),
            category: "edit".to_owned(),
            capability,
        }
    }

    // GUARD-011, C-21
    #[test]
    fn only_tools_that_write_to_a_sandbox_must_be_checkpointable() {
        let writes = tool(|_| {});
        let spawn = tool(|may| may.side_effects = vec!["spawn_subplan".to_owned()]);
        let reads = tool(|may| may.writes = false);
        let safety = Safety::default();
        assert_eq!(not_checkpointable(&safety, [&spawn, &reads].into_iter()), None);
        assert_eq!(not_checkpointable(&safety, [&spawn, &writes].into_iter()), Some(&writes));
        let free = Safety { require_checkpoints: false, ..safety };
        assert_eq!(not_checkpointable(&free, [&writes].into_iter()), None);
    }

    // GUARD-010
    #[test]
    fn a_profile_under_which_nothing_may_write_is_found() {
        let writes = tool(|_| {});
        let safety = Safety { allowed_skill_categories: vec!["test".to_owned()], ..Safety::default() };
        assert!(nothing_may_write(&safety, [&writes].into_iter()).is_some());
        assert!(nothing_may_write(&Safety::default(), [&writes].into_iter()).is_none());
        let bad = tool(|may| may.is_unsafe = true);
        assert!(nothing_may_write(&Safety::default(), [&bad].into_iter()).is_some());
    }
}
