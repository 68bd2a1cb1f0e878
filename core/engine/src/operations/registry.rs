//! What the registries of actions, language servers, projects and resources have in common.

use agents_domain::actor::PROVIDERS;
use agents_domain::event::NewEvent;
use agents_domain::ports::store::{AuditEntry, Writer};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use serde_json::{Value, json};

use crate::{Engine, clock};

/// The namespace of what comes with the program.
const BUILT_IN: &str = "builtin";

/// A name that a person may register something under; `kind` is the thing with its article.
pub(super) fn check_own(kind: &str, name: &QualifiedName) -> Result<()> {
    let namespace = name.namespace();
    let whose = match namespace {
        BUILT_IN => "what comes with the program",
        provider if PROVIDERS.contains(&provider) => "the models of that provider",
        _ => return Ok(()),
    };
    Err(Error::validation(format!("{kind} cannot be called `{name}`: `{namespace}/` is for {whose}")))
}

/// Which names a list shows.
pub(super) struct Wanted<'a> {
    namespace: Option<&'a str>,
    pattern: Option<regex::Regex>,
}

impl<'a> Wanted<'a> {
    /// # Errors
    /// A pattern that is no regular expression.
    pub fn new(namespace: Option<&'a str>, pattern: Option<&str>) -> Result<Self> {
        Ok(Self { namespace, pattern: self::pattern(pattern)? })
    }

    /// The name is in the namespace and matches the pattern, where they are given.
    pub fn has(&self, name: &QualifiedName) -> bool {
        self.namespace.is_none_or(|namespace| namespace == name.namespace())
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(&name.to_string()))
    }
}

/// A pattern that names are searched with.
pub(super) fn pattern(text: Option<&str>) -> Result<Option<regex::Regex>> {
    let compile = |text| {
        regex::Regex::new(text).map_err(|error| {
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Error::new(ErrorKind::Usage, format!("`{text}` is not a regular expression: {why}"))
        })
    };
    text.map(compile).transpose()
}

/// Tells every watcher that something is registered or changed, so that it reads anew.
pub(crate) fn changed(engine: &Engine, w: &dyn Writer, entity: &str, name: &str, change: &str) -> Result<()> {
    let facts = json!({ "entity_type": entity, "entity_name": name, "change": change });
    engine.append_event(w, NewEvent::new("registry.changed", facts))
}

/// Tells every watcher, and the audit log, that something is gone and what went with it.
pub(super) fn deleted(
    engine: &Engine,
    w: &dyn Writer,
    entity: &str,
    name: &str,
    cascade: Value,
) -> Result<()> {
    let facts = json!({ "entity_type": entity, "entity_name": name, "cascade_effects": cascade });
    engine.append_event(w, NewEvent::new("entity.deleted", facts.clone()))?;
    w.append_audit(&AuditEntry {
        event_type: "entity_deleted".to_owned(),
        plan_id: None,
        project_name: (entity == "project").then(|| name.to_owned()),
        actor_name: None,
        user_identity: Some(engine.user.clone()),
        details: facts,
        created_at: clock::now(),
    })?;
    Ok(())
}
