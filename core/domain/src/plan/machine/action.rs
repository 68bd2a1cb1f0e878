//! The two states of an action (T01 to T04): available, or archived.

use super::{Denied, Refusal, deny};
use crate::action::ActionState;

/// What people do with a registered action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionVerb {
    /// `plan use`: makes a plan from it.
    Use {
        /// It stays available afterwards.
        reusable: bool,
    },
    /// `action archive`.
    Archive,
}

/// The state of an action after a verb; a new action is available (T01).
pub fn action_step(state: ActionState, verb: ActionVerb) -> Result<ActionState, Refusal> {
    next(state, verb).map_err(|denied| Refusal {
        rule: denied.rule,
        message: denied.why,
        allowed: Vec::new(),
    })
}

fn next(state: ActionState, verb: ActionVerb) -> Result<ActionState, Denied> {
    match (state, verb) {
        (ActionState::Available, ActionVerb::Use { reusable: true }) => Ok(ActionState::Available),
        (ActionState::Available, ActionVerb::Use { reusable: false } | ActionVerb::Archive) => {
            Ok(ActionState::Archived)
        }
        (ActionState::Archived, ActionVerb::Use { .. }) => {
            deny("T04", "the action is archived, so no plan is made from it; use another, or create it anew")
        }
        (ActionState::Archived, ActionVerb::Archive) => deny("T03", "the action is archived already"),
    }
}
