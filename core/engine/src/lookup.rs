//! Finding things by what people type: full ids, unambiguous prefixes, names.

use agents_config::nearest;
use agents_domain::decision::Decision;
use agents_domain::ids::{CheckpointId, CorrectionId, DecisionId, PlanId, ResourceId};
use agents_domain::plan::Plan;
use agents_domain::ports::store::{Reader, StoreResult};
use agents_domain::project::Project;
use agents_domain::resource::Resource;
use agents_domain::{Error, ErrorKind, QualifiedName, Result};

use crate::Engine;

/// How many matches of an ambiguous prefix are listed.
const LISTED: usize = 10;

/// What a full id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A plan.
    Plan(PlanId),
    /// A decision, and the plan it is of.
    Decision(DecisionId, PlanId),
    /// A correction attempt.
    Correction(CorrectionId),
    /// A checkpoint of a plan.
    Checkpoint(CheckpointId, PlanId),
}

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

/// Says so when a name stands for something else than what is asked for.
pub(crate) fn of_other_kind(
    r: &dyn Reader,
    wanted: &str,
    name: &QualifiedName,
) -> StoreResult<Option<Error>> {
    let profile = r.automation_profile(&name.to_string())?.is_some();
    let found = [
        ("action", "agents action show", crate::built_in::action(r, name)?.is_some()),
        ("actor", "agents actor show", r.actor(name)?.is_some()),
        ("project", "agents project show", r.project(name)?.is_some()),
        ("resource", "agents resource show", r.resource_named(name)?.is_some()),
        ("language server", "agents lsp show", r.language_server(name)?.is_some()),
        ("automation profile", "agents automation-profile show", profile),
        ("skill", "agents skill show", r.skill(name)?.is_some()),
        ("validation", "agents tool show", r.validation(name)?.is_some()),
    ];
    let other = found.into_iter().find(|(kind, _, there)| *kind != wanted && *there);
    Ok(other.map(|(kind, command, _)| {
        Error::not_found(format!("`{name}` is {}, not {}", with_article(kind), with_article(wanted)))
            .suggest(format!("{command} {name}"))
    }))
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}

impl Engine {
    /// What a full id without a prefix names; `None` when it names nothing that has a page of its own.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn named(&self, id: &str) -> Result<Option<Named>> {
        let (Ok(plan), Ok(decision), Ok(correction), Ok(checkpoint)) =
            (id.parse(), id.parse(), id.parse(), id.parse())
        else {
            return Ok(None);
        };
        self.view(|r| {
            if let Some(found) = r.decision(decision)? {
                return Ok(Some(Named::Decision(decision, found.plan_id)));
            }
            if let Some(found) = r.checkpoint(checkpoint)? {
                return Ok(Some(Named::Checkpoint(checkpoint, found.plan_id)));
            }
            if r.correction(correction)?.is_some() {
                return Ok(Some(Named::Correction(correction)));
            }
            Ok(r.plan(plan)?.map(|_| Named::Plan(plan)))
        })
    }

    /// The error for a name that nothing of this kind has: what it is instead, or which of the known names may have
    /// been meant.
    pub(crate) fn no_such(&self, kind: &str, name: &QualifiedName, known: &[String], list: &str) -> Error {
        match self.view(|r| of_other_kind(r, kind, name)) {
            Ok(Some(error)) => return error.suggest(list),
            Ok(None) => {}
            Err(error) => return error,
        }
        let error = Error::not_found(format!("there is no {kind} `{name}`"));
        match nearest(&name.to_string(), known.iter().map(String::as_str)) {
            Some(meant) => error.suggest(format!("did you mean `{meant}`?")).suggest(list),
            None => error.suggest(list),
        }
    }

    /// The plan of an id or an unambiguous prefix of one.
    pub(crate) fn plan_id(&self, text: &str) -> Result<PlanId> {
        if !is_id_text(text) {
            self.hint_other_kind("plan", text)?;
            return Err(Error::not_found(format!(
                "there is no plan `{text}`: expected the id of a plan or its beginning"
            ))
            .suggest("agents plan list"));
        }
        let prefix = text.to_ascii_uppercase();
        let matches = self.view(|r| r.plans_starting(&prefix, LISTED + 1))?;
        if matches.is_empty() {
            self.hint_other_kind("plan", text)?;
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
            self.hint_other_kind("decision", text)?;
        }
        let id: DecisionId = resolve("decision", text, &matches, "agents plan tree <PLAN>")?;
        self.view(|r| r.decision(id))?.ok_or_else(missing)
    }

    /// Says so when an id, or the beginning of one, that is none of the wanted kind is of another.
    pub(crate) fn hint_other_kind(&self, wanted: &str, text: &str) -> Result<()> {
        let prefix = text.to_ascii_uppercase();
        let prefix = prefix.strip_prefix("INV_").unwrap_or(&prefix);
        if !is_id_text(prefix) {
            return Ok(());
        }
        let wrong = |kind: &str| {
            let (kind, wanted) = (with_article(kind), with_article(wanted));
            Error::not_found(format!("`{text}` is the id of {kind}, not of {wanted}"))
        };
        let found = self.view(|r| {
            if let Some(id) = r.plans_starting(prefix, 1)?.first() {
                return Ok(Some(wrong("plan").suggest(format!("agents plan status {id}"))));
            }
            if let Some(id) = r.decisions_starting(prefix, 1)?.first() {
                let error = wrong("decision").suggest(format!("agents plan explain {id}"));
                return Ok(Some(match r.decision(*id)? {
                    Some(decision) => error.detail(format!("it is a decision of plan {}", decision.plan_id)),
                    None => error,
                }));
            }
            if let Some(id) = r.resources_starting(prefix, 1)?.first() {
                return Ok(Some(wrong("resource").suggest(format!("agents resource show {id}"))));
            }
            let invariants = r.invariants()?;
            let known = invariants.iter().any(|i| i.invariant_id.ulid().to_string().starts_with(prefix));
            Ok(known.then(|| wrong("invariant").suggest("agents invariant list --global")))
        })?;
        found.map_or(Ok(()), Err)
    }

    /// The resource of a name, an id, or an unambiguous prefix of an id.
    pub(crate) fn resource(&self, text: &str) -> Result<Resource> {
        let list = "agents resource list";
        let missing = || Error::not_found(format!("there is no resource `{text}`")).suggest(list);
        if let Ok(name) = text.parse::<QualifiedName>() {
            if let Some(resource) = self.view(|r| r.resource_named(&name))? {
                return Ok(resource);
            }
            if !is_id_text(text) {
                let known = self.view(|r| r.resources())?;
                let known: Vec<String> =
                    known.iter().filter_map(|r| r.name.as_ref().map(ToString::to_string)).collect();
                return Err(self.no_such("resource", &name, &known, list));
            }
        }
        if !is_id_text(text) {
            return Err(missing());
        }
        let prefix = text.to_ascii_uppercase();
        let matches = self.view(|r| r.resources_starting(&prefix, LISTED + 1))?;
        if matches.is_empty() {
            self.hint_other_kind("resource", text)?;
        }
        let id: ResourceId = resolve("resource", text, &matches, "agents resource list")?;
        self.view(|r| r.resource(id))?.ok_or_else(missing)
    }

    /// A project by name.
    pub(crate) fn project(&self, name: &QualifiedName) -> Result<Project> {
        let found = self.view(|r| match r.project(name)? {
            Some(project) => Ok(Ok(project)),
            None => Ok(Err(r.projects()?.iter().map(|p| p.name.to_string()).collect::<Vec<_>>())),
        })?;
        found.map_err(|known| self.no_such("project", name, &known, "agents project list"))
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
