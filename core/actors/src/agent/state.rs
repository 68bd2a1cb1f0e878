//! What a model actor keeps from step to step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::talk::Talk;

/// The state of a phase. Bounded by the conversation's own bound.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub talk: Talk,
    /// The calls of the last turn, in order, as far as they have no answer in the conversation yet.
    pub pending: Vec<Pending>,
    /// Decisions the model knows of: key, and what was chosen.
    pub told: BTreeMap<String, String>,
    /// How often a call was made under a decision, so that each has a name of its own.
    pub made: BTreeMap<String, u32>,
    /// Something was decided or done in this phase.
    pub worked: bool,
    /// The model was asked once to use its tools.
    pub nudged: bool,
    /// The last call, and how often it was made in a row.
    pub last: (String, u32),
    /// The decision that calls without one are made under: the last one recorded.
    pub under: Option<String>,
}

/// A call that waits for its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// The provider's id of it.
    pub call_id: String,
    pub kind: Waits,
}

/// What a call waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Waits {
    /// Nothing: this is the answer.
    Answered(String),
    /// For a decision to stand, asked for by this request.
    Decision { request: usize, key: String },
    /// For a tool, asked for by this request.
    Tool { request: usize, call: String },
    /// The phase is over, unless there is more to do.
    Finished,
}
