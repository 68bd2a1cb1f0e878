//! Setting a key in the configuration file.

use std::path::Path;

use agents_config::{Config, ConfigFile, Source, find_key, nearest};
use agents_domain::event::NewEvent;
use agents_domain::ports::store::AuditEntry;
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::file::{self, Folder};
use super::{known_key, place_of, within};
use crate::operations::automation_profile;
use crate::{Engine, Operation, Surroundings, clock};

/// Sets a key in the configuration file, for everything or for one project.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// The key.
    pub key: String,
    /// Its value, as typed.
    pub value: String,
    /// For this project only.
    #[serde(default)]
    pub project: Option<String>,
}

/// What was set.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct SetOutput {
    pub key: String,
    /// Secrets are masked.
    pub value: Value,
    /// What the file, or without it the default, said before; null when it was unset.
    pub previous: Value,
    /// `config`, or `project`.
    pub source: String,
    /// `global`, or `project`.
    pub scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub effective: Effective,
    pub saved_to: SavedTo,
    /// This version acts on it.
    pub in_effect: bool,
    /// The environment variable that is stronger than the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overridden_by: Option<String>,
    /// What else a person should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What the new value is for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Effective {
    pub sessions: String,
    pub plans: String,
    pub existing: String,
}

/// Where it stands.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct SavedTo {
    pub file: String,
    /// 1-based; null where the file has mistakes that keep it from being read.
    pub line: Option<u32>,
}

impl Operation for Set {
    const METHOD: &'static str = "config/set";
    const SUMMARY: &'static str = "Set a configuration key";
    type Output = SetOutput;

    fn run(self, engine: &Engine) -> Result<SetOutput> {
        let project = engine.project_name(self.project.as_deref())?;
        check_named(engine, &self.key, &self.value)?;
        let set = Self { project, ..self };
        let (output, changed) = save(&engine.config, &*engine.surroundings, &set)?;
        if changed {
            tell(engine, &output)?;
        }
        Ok(output)
    }
}

/// [`Set`] where the file has mistakes that keep an engine from being made: the way to correct them by command. `config`
/// is what flags and environment say. Names are not looked up, and nobody is told.
pub fn repair(config: &Config, surroundings: &dyn Surroundings, set: &Set) -> Result<SetOutput> {
    if set.project.is_some() {
        return Err(Error::new(
            ErrorKind::Configuration,
            "the projects cannot be looked up while the configuration file has mistakes",
        )
        .suggest("agents diagnostics"));
    }
    Ok(save(config, surroundings, set)?.0)
}

/// What is named must exist: a plan that is made with it would be refused.
fn check_named(engine: &Engine, key: &str, value: &str) -> Result<()> {
    // A variable may stand for anything.
    if value.contains("${") {
        return Ok(());
    }
    if key == "core.automation-profile" && value.contains('/') {
        return engine.look(|r| automation_profile::find(r, value)).map(|_| ());
    }
    let names_an_actor = key.starts_with("actor.default.") && agents_config::key(key).is_some();
    if key == "actor.default.invariant"
        && let Ok(name) = value.parse::<QualifiedName>()
    {
        return crate::invariants::reconciler(engine, &name).map(|_| ());
    }
    if let (true, Ok(name)) = (names_an_actor, value.parse::<QualifiedName>())
        && !engine.has_actor(&name)?
    {
        let known = engine.actor_names()?;
        let error = Error::not_found(format!("there is no actor `{value}`"));
        return Err(match nearest(value, known.iter().map(String::as_str)) {
            Some(meant) => error.suggest(format!("did you mean `{meant}`?")),
            None => error.suggest(format!("known actors: {}", known.join(", "))),
        });
    }
    Ok(())
}

/// Writes the file; says also whether it changed.
fn save(config: &Config, surroundings: &dyn Surroundings, set: &Set) -> Result<(SetOutput, bool)> {
    let Set { key: name, value, project } = set;
    let project = project.as_deref();
    // What is wrong with key or value whatever the file says comes first.
    known_key(name)?;
    Config::set_text("", name, value, project)?;
    let env = |name: &str| surroundings.variable(name);

    let shown = file::path_of(config);
    // A link to a file elsewhere stays a link.
    let path = shown.canonicalize().unwrap_or_else(|_| shown.clone());
    let (Some(folder), Some(file_name)) = (path.parent(), path.file_name()) else {
        return Err(Error::new(ErrorKind::Io, format!("{} is no file that can be written", shown.display())));
    };
    let folder = Folder::hold(folder)?;
    let old = file::read(&shown)?;
    let old_text = old.as_ref().map_or("", |file| file.text.as_str()).to_owned();
    let before = config.with_file(old, &env);
    let new_text = match (Config::set_text(&old_text, name, value, project), &before) {
        (Ok(text), _) => text,
        // A file that cannot be edited cannot be read either, and reading says where.
        (Err(_), Err(mistake)) => return Err(mistake.clone()),
        (Err(refusal), Ok(_)) => return Err(refusal),
    };
    let after = config.with_file(Some(ConfigFile { path: shown.clone(), text: new_text.clone() }), &env);
    if let (Ok(_), Err(error)) = (&before, &after) {
        return Err(unusable(name, error));
    }
    let changed = new_text != old_text;
    if changed {
        folder.replace(Path::new(file_name), &new_text)?;
    }
    drop(folder);
    Ok((output(set, &shown, before.ok(), after)?, changed))
}

/// The value is well formed, and still the file could not be read with it: a variable in it is not set.
fn unusable(name: &str, error: &Error) -> Error {
    let problem = error.data.as_ref().and_then(|data| data["problems"][0]["message"].as_str());
    let reason = problem.unwrap_or(&error.message);
    Error::validation(format!("`{name}` was not set: {reason}"))
}

fn output(set: &Set, path: &Path, before: Option<Config>, after: Result<Config>) -> Result<SetOutput> {
    let Set { key: name, value, project } = set;
    let (key, rest) = find_key(name)?;
    let source = if project.is_some() { Source::Project } else { Source::File };
    let in_file = |config: &Config| {
        let resolved = config.get(key.name, project.as_deref());
        let levels = resolved.chain.iter().skip_while(|l| matches!(l.source, Source::Flag | Source::Env));
        levels.map(|l| within(&l.value, rest)).find(|value| !value.is_null()).unwrap_or_default()
    };
    let mut notes = Vec::new();
    let (shown, line, overridden_by) = match &after {
        Ok(config) => {
            let resolved = config.get(key.name, project.as_deref());
            let env = resolved.chain.iter().find(|l| l.source == Source::Env && !l.value.is_null());
            let over = env.and_then(|l| l.origin.clone());
            (in_file(config), place_of(&resolved, source).1, over)
        }
        Err(mistake) => {
            notes.push(format!("the file still has mistakes: {mistake}"));
            (if key.secret { "********".into() } else { value.as_str().into() }, None, None)
        }
    };
    if let (Some(before), "core.data-dir") = (&before, key.name) {
        notes.push(format!("what is in {} stays there", before.text("core.data-dir", None)));
    }
    if !key.in_effect {
        notes.push(format!("`{}` is kept, but nothing in this version acts on it", key.name));
    }
    let effective = match key.in_effect {
        true => ["new sessions", "future plans (unless set)", "unchanged"],
        false => ["not in use", "not in use", "unchanged"],
    };
    let [sessions, plans, existing] = effective.map(str::to_owned);
    Ok(SetOutput {
        key: name.clone(),
        value: shown,
        previous: before.as_ref().map(in_file).unwrap_or_default(),
        source: source.as_str().to_owned(),
        scope: if project.is_some() { "project" } else { "global" }.to_owned(),
        project: project.clone(),
        effective: Effective { sessions, plans, existing },
        saved_to: SavedTo { file: path.display().to_string(), line },
        in_effect: key.in_effect,
        overridden_by,
        notes,
    })
}

/// Tells every watcher, and the audit log.
fn tell(engine: &Engine, set: &SetOutput) -> Result<()> {
    let facts = json!({
        "key": set.key, "old_value": set.previous, "new_value": set.value, "scope": set.scope,
        "project": set.project, "file": set.saved_to.file,
    });
    engine.write(|w| {
        let now = clock::now();
        let mut event = NewEvent::new("config.changed", facts.clone());
        event.project_name.clone_from(&set.project);
        engine.append_event(w, event)?;
        w.append_audit(&AuditEntry {
            event_type: "config_changed".to_owned(),
            plan_id: None,
            project_name: set.project.clone(),
            actor_name: None,
            user_identity: Some(engine.user.clone()),
            details: facts.clone(),
            created_at: now,
        })?;
        Ok(())
    })
}
