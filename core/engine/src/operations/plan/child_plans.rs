//! The child plans of a plan, as its views show them.

use agents_domain::decision::Decision;
use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::plan::children::{Spawn, Stage, progress_text};
use agents_domain::plan::{Phase, State};
use agents_domain::ports::store::{PlanRow, Reader, StoreResult};
use schemars::JsonSchema;
use serde::Serialize;

use crate::children::standing;

/// A child plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ChildPlan {
    pub id: PlanId,
    pub phase: Phase,
    pub state: State,
    pub awaiting: Option<String>,
    pub project: String,
    /// What it is about.
    pub description: String,
    /// The decision it hangs on.
    pub decision_id: DecisionId,
    /// The parent's sandbox has its work.
    pub merged: bool,
}

/// The child plans of a plan.
pub(super) struct Children {
    pub list: Vec<ChildPlan>,
    /// Those decided, made or not.
    pub total: usize,
    /// Those whose work is done.
    pub done: usize,
    pub cancelled: usize,
}

impl Children {
    pub fn of(r: &dyn Reader, plan: PlanId) -> StoreResult<Self> {
        let (spawns, rows) = (r.spawns(plan)?, r.child_rows(plan)?);
        let decisions = if spawns.is_empty() { Vec::new() } else { r.decisions(plan)? };
        let standing: Vec<(&Spawn, &Decision)> =
            spawns.iter().filter_map(|s| Some((s, standing(s, &decisions)?))).collect();
        let planned =
            |(spawn, _): &&(&Spawn, &Decision)| !matches!(spawn.stage, Stage::Skipped { left_out: true, .. });
        let mut children = Self {
            list: Vec::new(),
            total: standing.iter().filter(planned).count(),
            done: rows.iter().filter(|row| is_done(row)).count(),
            cancelled: rows.iter().filter(|row| row.state == State::Cancelled).count(),
        };
        for row in rows {
            // One whose decision was replaced is shown while it is there.
            let Some(spawn) = spawns.iter().find(|s| s.child == Some(row.plan_id)) else { continue };
            let decision = decisions.iter().find(|d| d.decision_id == spawn.decision_id);
            let text = spawn.draft.prompt.as_deref().or(decision.map(|d| d.question.as_str()));
            children.list.push(ChildPlan {
                id: row.plan_id,
                phase: row.phase,
                state: row.state,
                awaiting: row.awaiting,
                project: row.projects.join(", "),
                description: text.and_then(|t| t.lines().next()).unwrap_or_default().to_owned(),
                decision_id: spawn.decision_id,
                merged: matches!(spawn.stage, Stage::Merged { .. }),
            });
        }
        Ok(children)
    }

    /// `3/5 complete`.
    pub fn text(&self) -> String {
        progress_text(self.done, self.total.max(self.done))
    }
}

fn is_done(row: &PlanRow) -> bool {
    row.state != State::Cancelled
        && (row.phase == Phase::Apply || row.state == State::Complete && row.phase == Phase::Execute)
}

/// Parent and child of every plan below a plan.
pub(super) fn family(r: &dyn Reader, plan: PlanId) -> StoreResult<Vec<(PlanRow, PlanId)>> {
    let mut all: Vec<(PlanRow, PlanId)> = Vec::new();
    let mut open = vec![plan];
    while let Some(parent) = open.pop() {
        for row in r.child_rows(parent)? {
            open.push(row.plan_id);
            all.push((row, parent));
        }
    }
    Ok(all)
}
