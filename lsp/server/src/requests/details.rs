//! The size of a plan's change set and the checkpoints of a plan, asked of the engine once per state of the plan.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use agents_domain::ids::PlanId;
use agents_engine::operations::plan::{Artifacts, CheckpointView, Diff};
use tokio::sync::OnceCell;

use super::Shared;
use crate::lock;

/// How much a plan changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub files: usize,
    pub insertions: u32,
    pub deletions: u32,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "+{} -{}", self.insertions, self.deletions)?;
        if self.files > 1 { write!(f, " in {} files", self.files) } else { Ok(()) }
    }
}

/// What is asked once per plan.
type OncePerPlan<T> = Mutex<HashMap<PlanId, Arc<OnceCell<T>>>>;

/// What was found for each plan that was asked about.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: OncePerPlan<Totals>,
    checkpoints: OncePerPlan<Arc<[CheckpointView]>>,
}

impl Cache {
    /// Forgets plans that are another way now.
    pub fn forget(&self, plans: &BTreeSet<PlanId>) {
        lock(&self.entries).retain(|plan, _| !plans.contains(plan));
        lock(&self.checkpoints).retain(|plan, _| !plans.contains(plan));
    }
}

impl Shared {
    /// The totals of a plan, where they can be had.
    pub async fn totals(&self, plan: PlanId) -> Option<Totals> {
        let cell = lock(&self.details.entries).entry(plan).or_default().clone();
        let ask = || {
            self.blocking(move |engine| {
                let summary = engine.call(Diff { plan: plan.to_string() })?.diff_summary;
                Ok(Totals {
                    files: summary.files_changed,
                    insertions: summary.insertions,
                    deletions: summary.deletions,
                })
            })
        };
        let asked = cell.get_or_try_init(ask).await;
        asked
            .inspect_err(|error| tracing::warn!(%plan, %error, "the diff of a plan was not found"))
            .ok()
            .copied()
    }

    /// The checkpoints of a plan, the first first.
    pub async fn checkpoints(&self, plan: PlanId) -> Arc<[CheckpointView]> {
        let cell = lock(&self.details.checkpoints).entry(plan).or_default().clone();
        let ask = || {
            self.blocking(move |engine| {
                Ok(engine.call(Artifacts { plan: plan.to_string() })?.checkpoints.into())
            })
        };
        let asked = cell.get_or_try_init(ask).await;
        let asked = asked
            .inspect_err(|error| tracing::warn!(%plan, %error, "the checkpoints of a plan were not found"));
        asked.cloned().unwrap_or_else(|_| Arc::new([]))
    }
}
