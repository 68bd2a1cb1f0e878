//! Domain events: what happened, in the order it happened, for every process that looks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::ids::PlanId;

/// An event before it is written; the store gives it its sequence number and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewEvent {
    /// Such as `plan.state_changed`.
    pub event_type: String,
    /// The plan it is about.
    pub plan_id: Option<PlanId>,
    /// The root of that plan.
    pub root_plan_id: Option<PlanId>,
    /// A ULID that all events of one request share: a command, a message of an editor, and the worker it starts.
    pub correlation_id: Option<String>,
    /// The actor behind it.
    pub actor_name: Option<String>,
    /// The project.
    pub project_name: Option<String>,
    /// The person behind it.
    pub user_identity: Option<String>,
    /// The facts, per type.
    pub details: Value,
}

impl NewEvent {
    /// An event about no plan.
    pub fn new(event_type: &str, details: Value) -> Self {
        Self {
            event_type: event_type.to_owned(),
            plan_id: None,
            root_plan_id: None,
            correlation_id: None,
            actor_name: None,
            project_name: None,
            user_identity: None,
            details,
        }
    }

    /// An event about a plan.
    pub fn of_plan(event_type: &str, plan: &crate::plan::Plan, details: Value) -> Self {
        Self {
            plan_id: Some(plan.plan_id),
            root_plan_id: Some(plan.root_plan_id),
            project_name: plan.projects.first().map(ToString::to_string),
            ..Self::new(event_type, details)
        }
    }
}

/// A written event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Strictly increasing over all processes.
    pub sequence: i64,
    /// When it was written.
    pub timestamp: Timestamp,
    /// Such as `plan.state_changed`.
    pub event_type: String,
    /// The plan it is about.
    pub plan_id: Option<PlanId>,
    /// The root of that plan.
    pub root_plan_id: Option<PlanId>,
    /// A ULID that all events of one request share: a command, a message of an editor, and the worker it starts.
    pub correlation_id: Option<String>,
    /// The actor behind it.
    pub actor_name: Option<String>,
    /// The project.
    pub project_name: Option<String>,
    /// The person behind it.
    pub user_identity: Option<String>,
    /// The facts, per type.
    pub details: Value,
}
