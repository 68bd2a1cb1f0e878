//! `plan list`.

use agents_domain::ids::PlanId;
use agents_domain::plan::{Phase, State};
use agents_domain::ports::store::{PlanFilter, PlanRow};
use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock_text;
use crate::{Engine, Operation, clock};

/// Lists plans, newest first; filters combine.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only this phase.
    #[serde(default)]
    pub phase: Option<String>,
    /// Only this state (`failed` means errored; `awaiting` or `paused` a plan that waits for a person).
    #[serde(default)]
    pub state: Option<String>,
    /// Only plans on this project.
    #[serde(default)]
    pub project: Option<String>,
    /// Only plans on projects of this namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Only plans of this action.
    #[serde(default)]
    pub action: Option<String>,
    /// A regular expression on id, action or project.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// Plans, newest first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    pub plans: Vec<ListedPlan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
    pub summary: Summary,
    pub total: usize,
}

/// A plan in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListedPlan {
    pub id: PlanId,
    /// Its parent, for a child plan.
    pub parent: Option<PlanId>,
    /// The first eight characters, for people.
    pub short_id: String,
    pub phase: Phase,
    pub state: State,
    /// What it waits for, when it does.
    pub awaiting: Option<String>,
    pub action: String,
    pub project: String,
    pub attempt: u32,
    pub elapsed: String,
    pub created: String,
}

/// The filters that were given.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Filters {
    pub phase: Option<String>,
    pub state: Option<String>,
    pub project: Option<String>,
    pub action: Option<String>,
    pub namespace: Option<String>,
    pub pattern: Option<String>,
}

/// Counts of what is listed.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Summary {
    pub total: usize,
    pub processing: usize,
    pub completed: usize,
    pub errored: usize,
    pub cancelled: usize,
    pub awaiting: usize,
}

impl Operation for List {
    const METHOD: &'static str = "plan/list";
    const SUMMARY: &'static str = "List plans";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        // Whoever looks brings plans on whose worker died.
        engine.ensure_workers()?;
        let filter = self.filter(engine)?;
        let pattern = self
            .pattern
            .as_deref()
            .map(|p| {
                regex::Regex::new(p).map_err(|e| {
                    Error::new(
                        agents_domain::ErrorKind::Usage,
                        format!("`{p}` is not a regular expression: {e}"),
                    )
                })
            })
            .transpose()?;
        let rows = engine.view(|r| r.plan_rows(&filter))?;
        let now = clock::now();
        let mut summary = Summary::default();
        let mut plans = Vec::with_capacity(rows.len());
        for row in rows {
            let mut id = row.plan_id.to_string();
            let project = row.projects.join(", ");
            if pattern
                .as_ref()
                .is_some_and(|p| !p.is_match(&id) && !p.is_match(&row.action) && !p.is_match(&project))
            {
                continue;
            }
            count(&mut summary, &row);
            id.truncate(8);
            plans.push(ListedPlan {
                id: row.plan_id,
                parent: row.parent_plan_id,
                short_id: id,
                phase: row.phase,
                state: row.state,
                awaiting: row.awaiting,
                action: row.action,
                project,
                attempt: row.attempt,
                elapsed: clock_text(row.completed_at.unwrap_or(now).millis_since(row.created_at)),
                created: row.created_at.seconds_rfc3339(),
            });
        }
        let filtered =
            [&self.phase, &self.state, &self.project, &self.action, &self.namespace, &self.pattern]
                .iter()
                .any(|f| f.is_some());
        let total = plans.len();
        Ok(ListOutput {
            plans,
            filters: filtered.then_some(Filters {
                phase: self.phase,
                state: self.state,
                project: self.project,
                action: self.action,
                namespace: self.namespace,
                pattern: self.pattern,
            }),
            summary,
            total,
        })
    }
}

impl List {
    fn filter(&self, engine: &Engine) -> Result<PlanFilter> {
        let usage = |error: Error, field: &str| {
            Error::new(agents_domain::ErrorKind::Usage, format!("--{field}: {error}"))
        };
        let phase =
            self.phase.as_deref().map(|p| p.parse::<Phase>().map_err(|e| usage(e, "phase"))).transpose()?;
        let (state, awaiting) = match self.state.as_deref() {
            None => (None, None),
            Some("awaiting" | "awaiting_input" | "paused") => (None, Some(true)),
            Some("failed") => (Some(State::Errored), None),
            Some(word) => {
                let wrong = |e: Error| {
                    let message = format!("{}, or one of awaiting, paused, failed", e.message);
                    usage(Error { message, ..e }, "state")
                };
                (Some(word.parse::<State>().map_err(wrong)?), None)
            }
        };
        let name = |text: &Option<String>| {
            text.as_deref().map(|t| engine.name(t).map(|n| n.to_string())).transpose()
        };
        Ok(PlanFilter {
            phase,
            state,
            awaiting,
            project: name(&self.project)?,
            namespace: self.namespace.clone(),
            action: name(&self.action)?,
        })
    }
}

fn count(summary: &mut Summary, row: &PlanRow) {
    summary.total += 1;
    if row.awaiting.is_some() {
        summary.awaiting += 1;
        return;
    }
    match row.state {
        State::Processing => summary.processing += 1,
        State::Applied => summary.completed += 1,
        State::Errored => summary.errored += 1,
        State::Cancelled => summary.cancelled += 1,
        State::Queued | State::Complete | State::Constrained => {}
    }
}
