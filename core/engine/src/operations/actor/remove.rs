//! Removing an actor from the registry.

use agents_domain::actor::PROVIDERS;
use agents_domain::ports::store::PlanFilter;
use agents_domain::{QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{built_in, find};
use crate::actors::needed_by;
use crate::operations::registry;
use crate::{Engine, Operation};

/// Removes an actor from the registry; its file stays.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// The actor's name.
    pub name: String,
}

/// What was removed, and what it leaves behind.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemoveOutput {
    pub actor_removed: RemovedActor,
    pub impact: Impact,
    pub cleanup: Cleanup,
    /// What still names it and will not work.
    pub broken_references: Vec<Broken>,
}

/// The removed actor.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemovedActor {
    pub name: String,
    pub provider: Option<String>,
    pub model: Option<String>,
}

/// How much named it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Impact {
    pub sessions: usize,
    pub active_plans: usize,
    pub actions_referencing: usize,
}

/// What was cleaned up.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Cleanup {
    pub config: String,
    pub contexts: String,
}

/// Something that still names it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Broken {
    #[serde(rename = "type")]
    pub reference_type: String,
    pub name: String,
}

/// The actions that name an actor.
pub(super) fn actions_naming(engine: &Engine, name: &QualifiedName) -> Result<Vec<String>> {
    let actions = engine.view(|r| r.actions())?;
    Ok(actions
        .into_iter()
        .map(|action| action.definition)
        .filter(|action| {
            let others = [
                action.estimation_actor.as_ref(),
                action.review_actor.as_ref(),
                action.apply_actor.as_ref(),
                action.invariant_actor.as_ref(),
            ];
            action.strategy_actor == *name
                || action.execution_actor == *name
                || others.into_iter().flatten().any(|other| other == name)
        })
        .map(|action| action.name.to_string())
        .collect())
}

/// The plans that are not over and name an actor.
fn plans_naming(engine: &Engine, name: &QualifiedName) -> Result<Vec<String>> {
    let rows = engine.view(|r| r.plan_rows(&PlanFilter::default()))?;
    let mut found = Vec::new();
    for row in rows {
        let Some(plan) = engine.view(|r| r.plan(row.plan_id))? else { continue };
        let named = plan.actors.strategy == *name || plan.actors.execution == *name;
        if named && !plan.status().ended() {
            found.push(plan.plan_id.to_string());
        }
    }
    Ok(found)
}

impl Operation for Remove {
    const METHOD: &'static str = "registry/actor/remove";
    const SUMMARY: &'static str = "Remove an actor from the registry";
    type Output = RemoveOutput;

    fn run(self, engine: &Engine) -> Result<RemoveOutput> {
        let name = engine.name(&self.name)?;
        if engine.actors.find(&name).is_some() || PROVIDERS.contains(&name.namespace()) {
            return Err(built_in(&name));
        }
        let actor = find(engine, &name)?;
        let (provider, model) =
            engine.definition_of(&actor, None).map(|definition| definition.shown_model()).unwrap_or_default();
        let actions = actions_naming(engine, &name)?;
        let plans = plans_naming(engine, &name)?;
        let mut broken: Vec<Broken> = Vec::new();
        let mut add = |kind: &str, name: &str| {
            broken.push(Broken { reference_type: kind.to_owned(), name: name.to_owned() });
        };
        actions.iter().for_each(|action| add("action", action));
        plans.iter().for_each(|plan| add("plan", plan));
        for (other, definition) in engine.readable_actors()? {
            if other.name != name && needed_by(&definition).iter().any(|needed| needed.name == name) {
                add("actor", &other.name.to_string());
            }
        }
        let cascade: Vec<&str> = broken.iter().map(|broken| broken.name.as_str()).collect();
        engine.write(|w| {
            w.delete_actor(&name)?;
            registry::deleted(engine, w, "actor", &name.to_string(), json!(cascade))
        })?;
        Ok(RemoveOutput {
            actor_removed: RemovedActor { name: name.to_string(), provider, model },
            impact: Impact { sessions: 0, active_plans: plans.len(), actions_referencing: actions.len() },
            cleanup: Cleanup { config: "kept on disk".to_owned(), contexts: "0 orphaned".to_owned() },
            broken_references: broken,
        })
    }
}
