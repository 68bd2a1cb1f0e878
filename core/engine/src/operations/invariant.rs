//! Operations on invariants: what plans keep to, at four scopes.

use std::collections::BTreeMap;

use agents_domain::ids::{DecisionId, InvariantId, PlanId};
use agents_domain::invariant::{self, Check, Invariant, Scope, Why};
use agents_domain::plan::Plan;
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::registry;
use crate::invariants::{self, Violation};
use crate::{Engine, Operation, built_in, records};

/// Adds an invariant at one scope: global, a project, plans or actions.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// The sentence, or an exact form such as `forbid-paths: vendor/`.
    pub text: String,
    /// For all plans.
    #[serde(default)]
    pub global: bool,
    /// For the plans of this project.
    #[serde(default)]
    pub project: Option<String>,
    /// For these plans and their children (ids or their beginnings); one invariant each.
    #[serde(default)]
    pub plans: Vec<String>,
    /// For the plans made from these actions; one invariant each.
    #[serde(default)]
    pub actions: Vec<String>,
    /// No other scope overrides it; means something for global ones only.
    #[serde(default)]
    pub non_overridable: bool,
}

/// An invariant that was added.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Added {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    pub invariant: String,
    pub scope: Scope,
    pub id: InvariantId,
    pub non_overridable: bool,
    /// `machine`, or `actors` when its sentence has no form that a machine can check.
    pub enforced_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// The decision it became at once, in a plan that is past that point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<DecisionId>,
    /// How what the plan has done so far breaks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violated: Option<String>,
}

fn usage(message: &str) -> Error {
    Error::new(ErrorKind::Usage, message)
}

/// The one scope that is asked for.
fn one_scope(global: bool, project: bool, plan: bool, action: bool) -> Result<Scope> {
    let asked: Vec<Scope> =
        [(global, Scope::Global), (project, Scope::Project), (plan, Scope::Plan), (action, Scope::Action)]
            .into_iter()
            .filter_map(|(asked, scope)| asked.then_some(scope))
            .collect();
    match asked[..] {
        [scope] => Ok(scope),
        [] => Err(usage("say where: one of --global, --project, --plan, --action")),
        _ => Err(usage("only one of --global, --project, --plan, --action at a time")),
    }
}

/// An action's name, when there is such an action.
fn action_name(engine: &Engine, text: &str) -> Result<String> {
    let name = engine.name(text)?;
    let found = engine.view(|r| match built_in::action(r, &name)? {
        Some(_) => Ok(Ok(())),
        None => Ok(Err(built_in::names(r)?)),
    })?;
    found.map_err(|known| engine.no_such("action", &name, &known, "agents action list"))?;
    Ok(name.to_string())
}

impl Operation for Add {
    const METHOD: &'static str = "registry/invariant/add";
    const SUMMARY: &'static str = "Add an invariant";
    type Output = Vec<Added>;

    fn run(self, engine: &Engine) -> Result<Vec<Added>> {
        let scope =
            one_scope(self.global, self.project.is_some(), !self.plans.is_empty(), !self.actions.is_empty())?;
        let mut targets: Vec<Option<String>> = match scope {
            Scope::Global => vec![None],
            Scope::Project => {
                let name = engine.name(self.project.as_deref().unwrap_or_default())?;
                vec![Some(engine.project(&name)?.name.to_string())]
            }
            Scope::Plan => {
                let live = |text: &String| {
                    let plan = engine.plan(text)?;
                    check_live(&plan)?;
                    Ok(Some(plan.plan_id.to_string()))
                };
                self.plans.iter().map(live).collect::<Result<_>>()?
            }
            Scope::Action => {
                self.actions.iter().map(|text| Ok(Some(action_name(engine, text)?))).collect::<Result<_>>()?
            }
        };
        targets.sort();
        targets.dedup();
        let new = |target| invariants::new(scope, target, &self.text, self.non_overridable);
        let added: Vec<Invariant> = targets.into_iter().map(new).collect::<Result<_>>()?;
        let mut out = Vec::new();
        for invariant in &added {
            let document = invariants::evidence(invariant, &[], "a person");
            let bytes = serde_json::to_vec(&document).map_err(|e| Error::internal(e.to_string()))?;
            out.push((invariant, engine.store.put_blob(&bytes)?));
        }
        let state = engine.store.put_blob(b"null")?;
        let decisions = engine.write(|w| {
            let mut decisions = BTreeMap::new();
            for (invariant, context) in &out {
                w.insert_invariant(invariant)?;
                registry::changed(engine, w, "invariant", &invariant.invariant_id.to_string(), "created")?;
                let Some(plan) = invariant.target.as_deref().filter(|_| scope == Scope::Plan) else {
                    continue;
                };
                let plan: PlanId = plan.parse()?;
                for id in invariants::family(w, plan)? {
                    let member = w.plan(id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
                    if id == plan {
                        check_live(&member)?;
                    }
                    // What is not reconciled yet will find it then; children have no turn of their own.
                    if member.parent_plan_id.is_none() && w.reconciliation(id)?.is_none() {
                        continue;
                    }
                    let decision = invariants::decision(w, &member, invariant, &[], (context, &state))?;
                    invariants::enforce(engine, w, &member, &decision, scope)?;
                    if id == plan {
                        decisions.insert(invariant.invariant_id, decision.decision_id);
                    }
                }
            }
            Ok(decisions)
        })?;
        out.into_iter()
            .map(|(invariant, _)| {
                let target = |wanted| invariant.target.clone().filter(|_| scope == wanted);
                let decision_id = decisions.get(&invariant.invariant_id).copied();
                let violated = match decision_id {
                    Some(id) => recheck(engine, invariant, id)?.map(|violation| violation.finding.evidence),
                    None => None,
                };
                Ok(Added {
                    project: target(Scope::Project),
                    plan: target(Scope::Plan).and_then(|id| id.parse().ok()),
                    action: target(Scope::Action),
                    invariant: invariant.text.clone(),
                    scope,
                    id: invariant.invariant_id,
                    non_overridable: invariant.non_overridable,
                    enforced_by: invariant.enforced_by().to_owned(),
                    check: invariant.check(),
                    decision_id,
                    violated,
                })
            })
            .collect()
    }
}

fn check_live(plan: &Plan) -> Result<()> {
    match plan.completed_at {
        None => Ok(()),
        Some(_) => Err(Error::invalid_state(format!(
            "plan {} is {}: nothing is enforced in it any more",
            plan.plan_id, plan.state
        ))
        .suggest("agents invariant add --action <ACTION> <TEXT>")),
    }
}

/// Looks at once whether what a plan has done so far breaks an invariant that was added to it, and says so.
fn recheck(engine: &Engine, added: &Invariant, decision: DecisionId) -> Result<Option<Violation>> {
    let plan = engine.plan(added.target.as_deref().unwrap_or_default())?;
    let enforced = invariant::enforced(&engine.view(|r| r.decisions(plan.plan_id))?);
    let only: Vec<_> = enforced.into_iter().filter(|i| i.decision_id == decision).collect();
    let found = invariants::judge(engine, &plan, &only, None)?.pop();
    if let Some(violation) = &found {
        engine.write(|w| records::emit(engine, w, &plan, "invariant.violated", violation.facts(None)))?;
    }
    Ok(found)
}

/// Lists the invariants of one scope, or with `effective` those in force in a plan.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The global ones.
    #[serde(default)]
    pub global: bool,
    /// Those of this project.
    #[serde(default)]
    pub project: Option<String>,
    /// Those of this plan (id or its beginning).
    #[serde(default)]
    pub plan: Option<String>,
    /// Those of this action.
    #[serde(default)]
    pub action: Option<String>,
    /// With `plan`: what is in force in it, of all scopes.
    #[serde(default)]
    pub effective: bool,
    /// A regular expression on the sentence.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// Invariants in the order added; effective ones widest scope first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    pub scope: Scope,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<PlanId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    pub effective: bool,
    pub invariants: Vec<Listed>,
    pub conflicts_resolved: Vec<Resolved>,
}

/// An invariant in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Listed {
    /// The invariant's id, or the decision's for one that a correction put in.
    pub id: String,
    pub source: Scope,
    pub text: String,
    pub non_overridable: bool,
    pub enforced_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<DecisionId>,
}

/// A conflict and how it was resolved.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Resolved {
    pub overridden: Side,
    pub by: Side,
    pub reason: String,
}

/// One side of a conflict.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Side {
    pub source: Scope,
    pub text: String,
}

impl Operation for List {
    const METHOD: &'static str = "registry/invariant/list";
    const SUMMARY: &'static str = "List invariants";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let scope =
            one_scope(self.global, self.project.is_some(), self.plan.is_some(), self.action.is_some())?;
        if self.effective && scope != Scope::Plan {
            return Err(usage("--effective goes with --plan only: it shows what is in force in a plan"));
        }
        let pattern = registry::pattern(self.pattern.as_deref())?;
        let mut out = ListOutput {
            scope,
            project: None,
            plan_id: None,
            action: None,
            effective: self.effective,
            invariants: Vec::new(),
            conflicts_resolved: Vec::new(),
        };
        let target = match scope {
            Scope::Global => None,
            Scope::Project => {
                let name = engine.name(self.project.as_deref().unwrap_or_default())?;
                out.project = Some(engine.project(&name)?.name.to_string());
                out.project.clone()
            }
            Scope::Plan => {
                out.plan_id = Some(engine.plan_id(self.plan.as_deref().unwrap_or_default())?);
                out.plan_id.map(|id| id.to_string())
            }
            Scope::Action => {
                out.action = Some(action_name(engine, self.action.as_deref().unwrap_or_default())?);
                out.action.clone()
            }
        };
        match out.plan_id.filter(|_| self.effective) {
            Some(plan) => effective(engine, plan, &mut out)?,
            None => {
                let found = engine.view(|r| r.invariants_of(scope, target.as_deref()))?;
                out.invariants = found.iter().map(listed).collect();
            }
        }
        out.invariants.retain(|i| pattern.as_ref().is_none_or(|p| p.is_match(&i.text)));
        Ok(out)
    }
}

fn listed(invariant: &Invariant) -> Listed {
    Listed {
        id: invariant.invariant_id.to_string(),
        source: invariant.scope,
        text: invariant.text.clone(),
        non_overridable: invariant.non_overridable,
        enforced_by: invariant.enforced_by().to_owned(),
        decision_id: None,
    }
}

/// What is in force: as decided; before the plan has come to that, what would be decided now.
fn effective(engine: &Engine, id: PlanId, out: &mut ListOutput) -> Result<()> {
    let plan = engine.plan(&id.to_string())?;
    let (reconciled, decisions, applying, all) = engine.view(|r| {
        Ok((
            r.reconciliation(plan.root_plan_id)?,
            r.decisions(id)?,
            invariants::collect(r, &plan)?,
            r.invariants()?,
        ))
    })?;
    let done = reconciled.is_some() || plan.parent_plan_id.is_some();
    let result = reconciled.map_or_else(|| invariant::reconcile(&applying), |r| r.result);
    if done {
        out.invariants = invariant::enforced(&decisions)
            .into_iter()
            .map(|enforced| {
                let known = enforced
                    .invariant_id
                    .and_then(|id| result.in_force(id).or_else(|| all.iter().find(|i| i.invariant_id == id)));
                Listed {
                    id: enforced
                        .invariant_id
                        .map_or_else(|| enforced.decision_id.to_string(), |id| id.to_string()),
                    source: known.map_or(Scope::Plan, |i| i.scope),
                    non_overridable: known.is_some_and(Invariant::is_absolute),
                    enforced_by: enforced.enforced_by().to_owned(),
                    decision_id: Some(enforced.decision_id),
                    text: enforced.text,
                }
            })
            .collect();
    } else {
        out.invariants = result.effective.iter().map(listed).collect();
    }
    let side = |i: &Invariant| Side { source: i.scope, text: i.text.clone() };
    out.conflicts_resolved = result
        .set_aside
        .iter()
        .filter(|aside| aside.why == Why::Overridden)
        .filter_map(|aside| {
            let by = side(result.in_force(aside.by)?);
            Some(Resolved { overridden: side(&aside.invariant), by, reason: aside.reason.clone() })
        })
        .collect();
    Ok(())
}

/// Shows an invariant.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// Its id or the beginning of it, with or without `inv_`.
    pub id: String,
}

impl Operation for Show {
    const METHOD: &'static str = "registry/invariant/show";
    const SUMMARY: &'static str = "Show an invariant";
    type Output = Invariant;

    fn run(self, engine: &Engine) -> Result<Invariant> {
        find(engine, &self.id)
    }
}

fn find(engine: &Engine, text: &str) -> Result<Invariant> {
    let lower = text.to_ascii_lowercase();
    let bare = lower.strip_prefix("inv_").unwrap_or(&lower).to_ascii_uppercase();
    let all = engine.view(|r| r.invariants())?;
    let mut found: Vec<Invariant> = all
        .into_iter()
        .filter(|i| !bare.is_empty() && i.invariant_id.ulid().to_string().starts_with(&bare))
        .collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            engine.hint_other_kind("invariant", text)?;
            Err(Error::not_found(format!("there is no invariant `{text}`"))
                .suggest("agents invariant list --global")
                .suggest("agents invariant list --project <PROJECT>"))
        }
        _ => {
            let ids: Vec<String> = found.iter().take(10).map(|i| i.invariant_id.to_string()).collect();
            Err(Error::validation(format!("`{text}` is the start of several invariant ids"))
                .detail(ids.join(", "))
                .suggest("give more characters of the id"))
        }
    }
}

/// Removes an invariant from its scope; plans that have it among their decisions keep it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// Its id or the beginning of it, with or without `inv_`.
    pub id: String,
}

/// The invariant that was removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemoveOutput {
    pub removed: String,
    pub scope: Scope,
    pub id: InvariantId,
}

impl Operation for Remove {
    const METHOD: &'static str = "registry/invariant/remove";
    const SUMMARY: &'static str = "Remove an invariant";
    type Output = RemoveOutput;

    fn run(self, engine: &Engine) -> Result<RemoveOutput> {
        let found = find(engine, &self.id)?;
        let id = found.invariant_id;
        engine.write(|w| {
            if w.invariant(id)?.is_none() {
                return Err(Error::not_found(format!("there is no invariant `{id}` any more")));
            }
            w.delete_invariant(id)?;
            let cascade = json!({ "text": found.text, "scope": found.scope, "target": found.target });
            registry::deleted(engine, w, "invariant", &id.to_string(), cascade)
        })?;
        Ok(RemoveOutput { removed: found.text, scope: found.scope, id })
    }
}
