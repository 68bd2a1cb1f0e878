//! What Execute will cost, as the estimation actor sees it once Strategize is done; it blocks nothing.

use std::panic::AssertUnwindSafe;

use agents_domain::plan::guards::Estimate;
use agents_domain::plan::{Phase, PhaseSummary, Plan};
use agents_domain::ports::actor::{StepInput, StepOutcome};
use futures::FutureExt;
use serde_json::Value;

use super::Worker;
use super::host::Host;
use super::steps::known;

/// Steps an estimate may take.
const STEPS: u32 = 100;

impl Worker<'_> {
    /// Asks the plan's estimation actor; `None` when it has none or the actor fails, which the log says.
    pub(super) async fn estimate(&self, plan: &Plan, host: &Host<'_>) -> Option<Estimate> {
        let name = plan.actors.estimation.as_ref()?;
        let estimated = match self.engine.actor(name, &plan.arguments) {
            Err(error) => Err(error.message),
            Ok(Some(actor)) => AssertUnwindSafe(self.ask_estimate(plan, &*actor, host))
                .catch_unwind()
                .await
                .unwrap_or_else(|_| Err("the actor panicked; this is a defect".to_owned())),
            Ok(None) => Err("there is no such actor".to_owned()),
        };
        match estimated {
            Ok(summary) => Some(estimate_of(summary)),
            Err(reason) => {
                tracing::warn!(plan = %self.id, actor = %name, %reason, "the plan is not estimated");
                None
            }
        }
    }

    async fn ask_estimate(
        &self,
        plan: &Plan,
        actor: &dyn agents_domain::ports::actor::Actor,
        host: &Host<'_>,
    ) -> Result<PhaseSummary, String> {
        let (decisions, run) = self
            .engine
            .view(|r| Ok((r.decisions(self.id)?, r.actor_run(self.id, Phase::Strategize)?)))
            .map_err(|e| e.message)?;
        let mut input = StepInput {
            phase: Phase::Strategize,
            description: plan.description.clone(),
            definition_of_done: plan.definition_of_done.clone(),
            arguments: plan.arguments.clone(),
            read_only: true,
            state: Value::Null,
            observations: Vec::new(),
            guidance: Vec::new(),
            handover: run.map_or(Value::Null, |run| run.state),
            decisions: decisions.iter().filter(|d| d.superseded_by.is_none()).map(known).collect(),
            invariants: agents_domain::invariant::enforced(&decisions),
            known_failures: Vec::new(),
            parent: None,
            children: Vec::new(),
            findings: Vec::new(),
            validations: crate::validations::known(self.engine, plan).map_err(|e| e.message)?,
            estimating: true,
        };
        for _ in 0..STEPS {
            let output = actor.step(input.clone(), host).await.map_err(|failure| failure.message)?;
            match output.outcome {
                StepOutcome::Done(summary) => return Ok(summary),
                StepOutcome::Continue => input.state = output.state,
                StepOutcome::Ask { question, .. } => return Err(format!("it asks: {question}")),
                StepOutcome::TooTight { reason, .. } => return Err(reason),
            }
        }
        Err(format!("it does not come to an end in {STEPS} steps"))
    }
}

/// The middle of the range of costs, or the one that was said.
fn estimate_of(summary: PhaseSummary) -> Estimate {
    let cost = &summary.facts["cost_usd"];
    let cost_usd = match (cost.as_f64(), cost["low"].as_f64(), cost["high"].as_f64()) {
        (Some(cost), ..) => Some(cost),
        (None, Some(low), Some(high)) => Some((low + high) / 2.0),
        _ => None,
    };
    let cost_usd = cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0);
    Estimate { cost_usd, headline: summary.headline, facts: summary.facts }
}
