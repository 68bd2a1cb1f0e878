//! For tests and benches of any store: sample records, a filler, and the conformance suite.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test support: a failure is a panic")]

mod conformance;
mod samples;

use agents_domain::ids::PlanId;
use agents_domain::plan::{Phase, State};
use agents_domain::ports::store::{Store, StoreExt, StoreResult};

pub use conformance::conformance;
pub use samples::{at, change, decision, id, plan, root_decision};

/// Plans written in one transaction while filling.
const BATCH: usize = 500;

/// Fills a store with plans, each with a chain of decisions (the root included) and an event, oldest plan first;
/// the same arguments give the same records. Every third plan is applied, every third waits for Apply, the rest are
/// errored in Execute, so that nothing wants a worker.
///
/// # Errors
/// Those of the store; a store that holds such plans already refuses them as duplicates.
pub fn fill(store: &dyn Store, plans: usize, decisions_per_plan: usize) -> StoreResult<Vec<PlanId>> {
    let mut ids = Vec::with_capacity(plans);
    let numbers: Vec<u64> = (0..plans as u64).collect();
    for batch in numbers.chunks(BATCH) {
        store.transact(|writer| {
            for &number in batch {
                let mut plan = plan(number);
                (plan.phase, plan.state) = match number % 3 {
                    0 => (Phase::Apply, State::Applied),
                    1 => (Phase::Execute, State::Complete),
                    _ => (Phase::Execute, State::Errored),
                };
                plan.completed_at = (plan.state == State::Applied).then_some(at(number * 1000 + 500));
                writer.insert_plan(&plan)?;
                let mut parent = None;
                for sequence in 1..=u32::try_from(decisions_per_plan).unwrap_or(u32::MAX) {
                    let mut decision = match parent {
                        None => root_decision(&plan),
                        Some(parent) => decision(&plan, parent, sequence),
                    };
                    decision.sequence_number = sequence;
                    writer.insert_decision(&decision)?;
                    parent = Some(decision.decision_id);
                }
                let event =
                    agents_domain::event::NewEvent::of_plan("plan.created", &plan, serde_json::json!({}));
                writer.append_event(&event, plan.created_at)?;
            }
            Ok(())
        })?;
        ids.extend(batch.iter().map(|&number| plan(number).plan_id));
    }
    Ok(ids)
}
