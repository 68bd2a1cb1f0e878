//! Which profile a plan is made with.

use agents_domain::action::ActionDefinition;
use agents_domain::ports::store::Reader;
use agents_domain::profile::{DEFAULT_PROFILE, Profile, ProfileSnapshot, Safety};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use serde_json::Value;

use crate::Engine;
use crate::operations::automation_profile::find;

/// A profile to lock into a plan, with what people should know of how it came about.
pub(super) struct Resolved {
    pub snapshot: ProfileSnapshot,
    pub warnings: Vec<String>,
}

/// The plan's flag, then the action, then the projects, then the configuration; tightened by the action's limits.
///
/// A profile that is gone since an action, a project or the configuration named it is passed over with a warning; one
/// that the flag names must be there.
pub(super) fn resolve(
    engine: &Engine,
    r: &dyn Reader,
    flag: Option<&str>,
    action: &ActionDefinition,
    projects: &[QualifiedName],
) -> Result<Resolved> {
    let mut warnings = Vec::new();
    let mut named = |name: &str, by: &str| match find(r, name) {
        Ok(profile) => Ok(Some(profile)),
        Err(error) if error.kind == ErrorKind::NotFound => {
            warnings.push(format!("automation profile `{name}`, which the {by} names, is not registered"));
            Ok(None)
        }
        Err(error) => Err(error),
    };
    let (mut profile, source) = if let Some(name) = flag {
        (find(r, name)?, "CLI flag".to_owned())
    } else {
        let own = action.automation_profile.as_deref().map(|name| named(name, "action")).transpose()?;
        match own.flatten() {
            Some(profile) => (profile, "action".to_owned()),
            None => of_projects(engine, projects, &mut named)?,
        }
    };
    let strictest = "project (strictest)";
    if source == strictest {
        warnings.push(format!(
            "the projects name different automation profiles; the stricter value of each is used ({})",
            profile.name
        ));
    }
    if let Some(limits) = &action.safety_profile {
        profile.safety = profile.safety.tightest(&own_limits(&profile.safety, limits)?);
    }
    Ok(Resolved { snapshot: ProfileSnapshot { profile, source }, warnings })
}

/// The profile of the projects: theirs when they agree, else the strictest of each threshold.
fn of_projects(
    engine: &Engine,
    projects: &[QualifiedName],
    named: &mut dyn FnMut(&str, &str) -> Result<Option<Profile>>,
) -> Result<(Profile, String)> {
    let key = "core.automation-profile";
    let mut found: Vec<(Profile, &'static str)> = Vec::new();
    for project in projects {
        let resolved = engine.config.get(key, Some(&project.to_string()));
        let mut source = resolved.source.profile_source();
        let mut profile =
            named(&resolved.as_text(), &format!("{source} configuration of project {project}"))?;
        if profile.is_none() && source == "project" {
            let inherited = engine.config.get(key, None);
            source = inherited.source.profile_source();
            profile = named(&inherited.as_text(), "configuration")?;
        }
        if profile.is_none() {
            source = "default";
            profile = named(DEFAULT_PROFILE, "program")?;
        }
        found.extend(profile.map(|profile| (profile, source)));
    }
    let mut found = found.into_iter();
    let (mut profile, mut source) =
        found.next().ok_or_else(|| Error::validation("a plan needs at least one project"))?;
    let mut names = vec![profile.name.clone()];
    for (other, from) in found {
        if names.contains(&other.name) {
            continue;
        }
        names.push(other.name.clone());
        profile = profile.strictest(&other);
        source = if source == "project" || from == "project" { "project (strictest)" } else { source };
    }
    Ok((profile, source.to_owned()))
}

/// An action's `safety_profile` laid over the limits of a profile.
fn own_limits(safety: &Safety, limits: &Value) -> Result<Safety> {
    let wrong = |why: String| Error::validation(format!("the action's `safety_profile` does not fit: {why}"));
    let mut whole = serde_json::to_value(safety).map_err(|e| Error::internal(e.to_string()))?;
    let given = limits.as_object().ok_or_else(|| wrong("it must be a mapping".to_owned()))?;
    for (key, value) in given {
        if whole.get(key).is_none() {
            let known = whole.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(wrong(format!("there is no key `{key}`: the keys are {known}")));
        }
        whole[key] = value.clone();
    }
    serde_path_to_error::deserialize(whole).map_err(|e| wrong(format!("at `{}`: {}", e.path(), e.inner())))
}
