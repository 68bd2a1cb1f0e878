//! `plan revert`: takes an applied plan back by a plan of its own.

use agents_domain::plan::State;
use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Use, UseOutput};
use crate::built_in::REVERT_PLAN;
use crate::{Engine, Operation};

/// Makes a plan that takes an applied plan back, or some of its decisions.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Revert {
    /// The id of the applied plan or its beginning.
    pub plan: String,
    /// Only these decisions and those below them: ids or their beginnings.
    #[serde(default)]
    pub decisions: Vec<String>,
    /// A profile instead of the one of the project or configuration.
    #[serde(default)]
    pub automation_profile: Option<String>,
}

impl Operation for Revert {
    const METHOD: &'static str = "plan/revert";
    const SUMMARY: &'static str = "Take an applied plan back by a plan of its own";
    type Output = UseOutput;

    fn run(self, engine: &Engine) -> Result<UseOutput> {
        let plan = engine.plan(&self.plan)?;
        let id = plan.plan_id;
        if plan.state != State::Applied {
            let error = Error::invalid_state(format!(
                "plan {id} is not applied ({}/{}), so nothing of it is in the files and there is nothing to take back",
                plan.phase, plan.state
            ));
            return Err(match plan.state {
                State::Cancelled => error.suggest("agents plan list --state applied"),
                _ => error
                    .suggest(format!("agents plan status {id}"))
                    .suggest(format!("agents plan cancel {id}")),
            });
        }
        let mut decisions = Vec::new();
        for text in &self.decisions {
            let decision = engine.decision(text)?;
            if decision.plan_id != id {
                return Err(Error::validation(format!(
                    "decision {} is of plan {}, not of plan {id}",
                    decision.decision_id, decision.plan_id
                ))
                .suggest(format!("agents plan tree {id}")));
            }
            decisions.push(Value::from(decision.decision_id.to_string()));
        }
        let mut arguments = Map::new();
        arguments.insert("plan".to_owned(), id.to_string().into());
        if !decisions.is_empty() {
            arguments.insert("decisions".to_owned(), decisions.into());
        }
        Use {
            action: REVERT_PLAN.to_owned(),
            projects: plan.projects.iter().map(ToString::to_string).collect(),
            arguments,
            automation_profile: self.automation_profile,
            invariants: Vec::new(),
            strategy_actor: None,
            execution_actor: None,
            estimation_actor: None,
            invariant_actor: None,
        }
        .run(engine)
    }
}
