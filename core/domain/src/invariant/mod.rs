//! Invariants: sentences that plans keep to, at four scopes, reconciled per plan and enforced where a machine can check them.

mod check;
mod extract;
mod paths;
mod reconcile;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::decision::{Decision, DecisionType};
use crate::ids::{DecisionId, InvariantId};

pub use check::{AddedLine, Attempt, Check, Finding, Rule, TextPattern, Totals, Touched};
pub use extract::{extract, problem};
pub use paths::covers;
pub use reconcile::{Reconciled, SetAside, Why, collected, normalised, reconcile};

/// Where an invariant holds; a later one is narrower and goes before an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// In all plans.
    Global,
    /// In the plans of a project.
    Project,
    /// In the plans made from an action.
    Action,
    /// In one plan and its children.
    Plan,
}

impl Scope {
    /// Every scope, widest first.
    pub const ALL: [Scope; 4] = [Self::Global, Self::Project, Self::Action, Self::Plan];

    /// Its name in data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Project => "project",
            Self::Action => "action",
            Self::Plan => "plan",
        }
    }
}

/// A registered invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Invariant {
    /// Its id, `inv_<ULID>`.
    pub invariant_id: InvariantId,
    /// Where it holds.
    pub scope: Scope,
    /// The project's or action's name, or the plan's id; `None` for a global one.
    pub target: Option<String>,
    /// The sentence.
    pub text: String,
    /// No other scope overrides it; means something for global ones only.
    pub non_overridable: bool,
    /// When it was added.
    pub created_at: Timestamp,
}

impl Invariant {
    /// The form in which a machine can check it, when its text has one.
    pub fn check(&self) -> Option<Check> {
        extract(&self.text)
    }

    /// `machine`, or `actors` when its text has no form that a machine can check.
    pub fn enforced_by(&self) -> &'static str {
        enforced_by(self.check().as_ref())
    }

    /// Nothing overrides it.
    pub fn is_absolute(&self) -> bool {
        self.non_overridable && self.scope == Scope::Global
    }
}

/// An invariant in force in a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Enforced {
    /// The `invariant_enforced` decision that holds it.
    pub decision_id: DecisionId,
    /// The registered invariant, when it came from one.
    pub invariant_id: Option<InvariantId>,
    /// The sentence.
    pub text: String,
    /// What a machine checks; `None`: handed to the actors.
    pub check: Option<Check>,
}

impl Enforced {
    /// `machine` or `actors`: who sees to it.
    pub fn enforced_by(&self) -> &'static str {
        enforced_by(self.check.as_ref())
    }
}

/// Who sees to an invariant with this checkable form: `machine` or `actors`.
pub fn enforced_by(check: Option<&Check>) -> &'static str {
    if check.is_some() { "machine" } else { "actors" }
}

/// What precedes the invariant's id in the key of its decision.
const KEY: &str = "invariant/";

/// The key of the decision that holds an invariant.
pub fn decision_key(id: InvariantId) -> String {
    format!("{KEY}{id}")
}

/// The invariant a decision's key names.
pub fn of_key(key: Option<&str>) -> Option<InvariantId> {
    key?.strip_prefix(KEY)?.parse().ok()
}

/// What is in force in a plan: its active `invariant_enforced` decisions. The sentence of the decision counts, so that
/// a correction changes what is enforced for this plan alone.
pub fn enforced(decisions: &[Decision]) -> Vec<Enforced> {
    decisions
        .iter()
        .filter(|d| d.superseded_by.is_none() && d.decision_type == DecisionType::InvariantEnforced)
        .map(|d| Enforced {
            decision_id: d.decision_id,
            invariant_id: of_key(d.key.as_deref()),
            text: d.chosen_option.clone(),
            check: extract(&d.chosen_option),
        })
        .collect()
}
