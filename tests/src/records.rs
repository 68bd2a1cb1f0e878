//! What the store holds of a plan, without what differs between two runs of the same work: ids and times.

use std::collections::BTreeMap;
use std::path::Path;

use agents_domain::ids::PlanId;
use agents_domain::ports::store::{Store, StoreExt};
use agents_store::{Options, SqliteStore};

/// The records of a plan, comparable between runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    /// Each decision: number, type, question, choice, whether it was replaced, and the number of its parent.
    pub decisions: Vec<String>,
    /// Each change that stands: path, kind, hashes, tool, and the number of its decision.
    pub changes: Vec<String>,
    /// Each checkpoint: its kind and label.
    pub checkpoints: Vec<String>,
    /// Kinds of audit records.
    pub audit: Vec<String>,
}

impl Records {
    /// Reads them, by the plan's full id.
    ///
    /// # Panics
    /// When the database cannot be read or there is no such plan.
    pub fn of(data: &Path, plan: &str) -> Self {
        let id: PlanId = plan.parse().expect("a plan's id");
        let store = SqliteStore::open(data, Options::default()).expect("the database opens");
        let (decisions, changes, checkpoints, audit) = store
            .view(|r| Ok((r.decisions(id)?, r.changes(id)?, r.checkpoints(id)?, r.audit(Some(id), 1000)?)))
            .expect("the plan's records can be read");
        let numbers: BTreeMap<_, _> = decisions.iter().map(|d| (d.decision_id, d.sequence_number)).collect();
        Self {
            decisions: decisions
                .iter()
                .map(|d| {
                    let parent = d.parent_decision_id.and_then(|parent| numbers.get(&parent));
                    let replaced = if d.superseded_by.is_some() { " (replaced)" } else { "" };
                    format!(
                        "{} {} {:?} -> {:?}{replaced} below {parent:?}",
                        d.sequence_number,
                        d.decision_type.as_str(),
                        d.question,
                        d.chosen_option
                    )
                })
                .collect(),
            changes: changes
                .iter()
                .map(|c| {
                    let (before, after) = (c.before_hash.as_deref(), c.after_hash.as_deref());
                    let decision = numbers.get(&c.decision_id);
                    format!("{:?} {} {before:?} -> {after:?} by {} for {decision:?}", c.kind, c.path, c.tool)
                })
                .collect(),
            checkpoints: checkpoints.iter().map(|c| format!("{:?} {}", c.kind, c.label)).collect(),
            audit: audit.into_iter().map(|entry| entry.event_type).collect(),
        }
    }

    /// Where a plan stands, as `phase/state`, read without any command that would bring it on.
    ///
    /// # Panics
    /// When the database cannot be read or there is no such plan.
    pub fn at(data: &Path, plan: &str) -> String {
        let id: PlanId = plan.parse().expect("a plan's id");
        let store = SqliteStore::open(data, Options::default()).expect("the database opens");
        let plan = store.view(|r| r.plan(id)).expect("the plan can be read").expect("there is the plan");
        let awaiting = plan.awaiting.map(|a| format!("+{}", a.kind)).unwrap_or_default();
        format!("{}/{}{awaiting}", plan.phase, plan.state)
    }

    /// The plans that somebody works on.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn leased(data: &Path) -> Vec<PlanId> {
        let store = SqliteStore::open(data, Options::default()).expect("the database opens");
        let plans = store.view(|r| r.plans_starting("", 1000)).expect("plans can be read");
        plans.into_iter().filter(|plan| store.is_leased(*plan).expect("leases can be read")).collect()
    }

    /// The kinds of events of a plan, in order.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn events(data: &Path, plan: &str) -> Vec<(String, serde_json::Value)> {
        let id: PlanId = plan.parse().expect("a plan's id");
        let store = SqliteStore::open(data, Options::default()).expect("the database opens");
        let events = store.view(|r| r.events_after(0, Some(id), 100_000)).expect("events can be read");
        events.into_iter().map(|event| (event.event_type, event.details)).collect()
    }

    /// The events of all plans in order: plan, kind and facts.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn all_events(data: &Path) -> Vec<(String, String, serde_json::Value)> {
        let store = SqliteStore::open(data, Options::default()).expect("the database opens");
        let events = store.view(|r| r.events_after(0, None, 100_000)).expect("events can be read");
        let of = |event: agents_domain::event::Event| {
            (event.plan_id.map(|id| id.to_string()).unwrap_or_default(), event.event_type, event.details)
        };
        events.into_iter().map(of).collect()
    }
}
