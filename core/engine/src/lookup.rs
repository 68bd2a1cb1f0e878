//! Finding things by what people type: full ids, unambiguous prefixes, names.

use agents_domain::decision::Decision;
use agents_domain::ids::{DecisionId, PlanId, ResourceId};
use agents_domain::plan::Plan;
use agents_domain::ports::store::{Reader, StoreResult};
use agents_domain::project::Project;
use agents_domain::resource::Resource;
use agents_domain::{Error, ErrorKind, QualifiedName, Result};

use crate::Engine;

/// How many matches of an ambiguous prefix are listed.
const LISTED: usize = 10;

/// Characters of Crockford's base 32, as ULIDs use it.
fn is_id_text(text: &str) -> bool {
    !text.is_empty() && text.len() <= 26 && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn resolve<T: ToString + Copy>(kind: &str, text: &str, matches: &[T], list: &str) -> Result<T> {
    match matches {
        [one] => Ok(*one),
        [] => Err(Error::not_found(format!("there is no {kind} `{text}`")).suggest(list)),
        several => {
            let shown: Vec<String> = several.iter().take(LISTED).map(ToString::to_string).collect();
            let more = if several.len() > LISTED { ", ..." } else { "" };
            Err(Error::new(
                ErrorKind::ValidationFailed,
                format!("`{text}` is the start of several {kind} ids"),
            )
            .detail(format!("{}{more}", shown.join(", ")))
            .suggest("give more characters of the id"))
        }
    }
}

impl Engine {
    /// The plan of an id or an unambiguous prefix of one.
    pub(crate) fn plan_id(&self, text: &str) -> Result<PlanId> {
        if !is_id_text(text) {
            return Err(Error::not_found(format!(
                "there is no plan `{text}`: expected the id of a plan or its beginning"
            ))
            .suggest("agents plan list"));
        }
        let prefix = text.to_ascii_uppercase();
        let matches = self.view(|r| r.plans_starting(&prefix, LISTED + 1))?;
        if matches.is_empty() {
            self.hint_other_kind("plan", &prefix)?;
        }
        resolve("plan", text, &matches, "agents plan list")
    }

    /// The one thing whose id starts with a text.
    pub(crate) fn starting<T: ToString + Copy>(
        &self,
        kind: &str,
        text: &str,
        list: &str,
        find: impl Fn(&dyn Reader, &str, usize) -> StoreResult<Vec<T>>,
    ) -> Result<T> {
        let prefix = text.to_ascii_uppercase();
        let matches =
            if is_id_text(text) { self.view(|r| find(r, &prefix, LISTED + 1))? } else { Vec::new() };
        resolve(kind, text, &matches, list)
    }

    /// The plan with its record.
    pub(crate) fn plan(&self, text: &str) -> Result<Plan> {
        let id = self.plan_id(text)?;
        self.view(|r| r.plan(id))?.ok_or_else(|| missing_plan(id))
    }

    /// The decision of an id or an unambiguous prefix of one.
    pub(crate) fn decision(&self, text: &str) -> Result<Decision> {
        let missing = || {
            Error::not_found(format!(
                "there is no decision `{text}`: expected the id of a decision or its beginning"
            ))
            .suggest("agents plan tree <PLAN>")
        };
        if !is_id_text(text) {
            return Err(missing());
        }
        let prefix = text.to_ascii_uppercase();
        let matches = self.view(|r| r.decisions_starting(&prefix, LISTED + 1))?;
        if matches.is_empty() {
            self.hint_other_kind("decision", &prefix)?;
        }
        let id: DecisionId = resolve("decision", text, &matches, "agents plan tree <PLAN>")?;
        self.view(|r| r.decision(id))?.ok_or_else(missing)
    }

    /// Says so when an id is of another kind than the one asked for.
    fn hint_other_kind(&self, wanted: &str, prefix: &str) -> Result<()> {
        let found = self.view(|r| {
            Ok([
                ("plan", "agents plan status", r.plans_starting(prefix, 1)?.len()),
                ("decision", "agents plan explain", r.decisions_starting(prefix, 1)?.len()),
                ("resource", "agents resource show", r.resources_starting(prefix, 1)?.len()),
            ])
        })?;
        match found.into_iter().find(|(kind, _, n)| *kind != wanted && *n > 0) {
            Some((kind, command, _)) => {
                Err(Error::not_found(format!("`{prefix}` is the id of a {kind}, not of a {wanted}"))
                    .suggest(format!("{command} {prefix}")))
            }
            None => Ok(()),
        }
    }

    /// The resource of a name, an id, or an unambiguous prefix of an id.
    pub(crate) fn resource(&self, text: &str) -> Result<Resource> {
        let missing =
            || Error::not_found(format!("there is no resource `{text}`")).suggest("agents resource list");
        if let Ok(name) = text.parse::<QualifiedName>()
            && let Some(resource) = self.view(|r| r.resource_named(&name))?
        {
            return Ok(resource);
        }
        if !is_id_text(text) {
            return Err(missing());
        }
        let prefix = text.to_ascii_uppercase();
        let matches = self.view(|r| r.resources_starting(&prefix, LISTED + 1))?;
        let id: ResourceId = resolve("resource", text, &matches, "agents resource list")?;
        self.view(|r| r.resource(id))?.ok_or_else(missing)
    }

    /// A project by name.
    pub(crate) fn project(&self, name: &QualifiedName) -> Result<Project> {
        self.view(|r| r.project(name))?.ok_or_else(|| {
            Error::not_found(format!("there is no project `{name}`")).suggest("agents project list")
        })
    }

    /// Parses a name in the configured default namespace.
    pub(crate) fn name(&self, text: &str) -> Result<QualifiedName> {
        let namespace = self.config.text("core.namespace", None);
        Ok(QualifiedName::parse_in(text, &namespace)?)
    }
}

pub(crate) fn missing_plan(id: PlanId) -> Error {
    Error::not_found(format!("there is no plan `{id}`")).suggest("agents plan list")
}
