//! What doing work again costs, from the records of what it cost.

use std::collections::BTreeSet;

use agents_domain::Result;
use agents_domain::ids::DecisionId;
use agents_domain::plan::Phase;
use agents_domain::ports::store::{ActorRun, Reader};

use super::{EstimatedCost, duration_text};
use crate::Engine;
use crate::rewind::Facts;
use crate::rewind::correction::Scope;

/// Work of one phase that is done again.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    steps: u32,
    tokens: f64,
    usd: f64,
    millis: f64,
}

/// Work that is done again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Again {
    strategize: Work,
    execute: Work,
    tool_calls: usize,
}

/// What is done again after a revert: the steps from where the actor goes on, each at the average of its phase.
pub(super) fn again(engine: &Engine, r: &dyn Reader, facts: &Facts, scope: &Scope) -> Result<Again> {
    let resumed = match &scope.resume.run {
        Some(run) => {
            engine.store.blob(run)?.and_then(|bytes| serde_json::from_slice::<ActorRun>(&bytes).ok())
        }
        None => None,
    };
    let from = |phase| resumed.as_ref().filter(|run| run.phase == phase).map_or(0, |run| run.step);
    let work = |phase: Phase| -> Result<Work> {
        let made = r.actor_run(facts.plan.plan_id, phase)?.map_or(0, |run| run.step);
        let steps = made.saturating_sub(from(phase));
        let Some(spent) = facts.plan.spending.phases.get(&phase).filter(|spent| spent.steps > 0) else {
            return Ok(Work { steps, ..Work::default() });
        };
        let share = f64::from(steps) / f64::from(spent.steps);
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let of = |n: u64| n as f64 * share;
        Ok(Work { steps, tokens: of(spent.tokens), usd: spent.cost_usd * share, millis: of(spent.worked_ms) })
    };
    let falls: BTreeSet<DecisionId> = scope.fallen.iter().chain(&scope.recalled).copied().collect();
    Ok(Again {
        strategize: if scope.resume.phase == Phase::Strategize {
            work(Phase::Strategize)?
        } else {
            Work::default()
        },
        execute: work(Phase::Execute)?,
        tool_calls: facts.calls.iter().filter(|call| falls.contains(&call.decision_id)).count(),
    })
}

impl Again {
    /// At least one.
    pub fn seconds(&self) -> u64 {
        let millis = self.strategize.millis + self.execute.millis;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length of time")]
        let seconds = (millis / 1000.0).ceil() as u64;
        seconds.max(1)
    }

    pub fn view(&self) -> EstimatedCost {
        let total = self.strategize.usd + self.execute.usd;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of tokens")]
        let tokens = (self.strategize.tokens + self.execute.tokens).round() as u64;
        EstimatedCost {
            re_strategize: dollars(self.strategize.usd),
            re_execute: dollars(self.execute.usd),
            total: dollars(total),
            total_usd: total,
            eta: format!("~{}", duration_text(self.seconds())),
            steps: self.strategize.steps + self.execute.steps,
            tool_calls: self.tool_calls,
            tokens,
        }
    }
}

/// `$0` where nothing was paid so far, else `~$0.012`.
fn dollars(usd: f64) -> String {
    if usd > 0.0 { format!("~${usd:.3}") } else { "$0".to_owned() }
}
