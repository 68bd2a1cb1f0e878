//! What a person may do with a plan now, found by trying.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::questions::Answer;
use super::{Context, Denied, Event, Status, transition};
use crate::plan::{AwaitingKind, Phase, State};
use crate::{Error, Timestamp};

/// What people do with plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "each is the command `agents plan <verb>`")]
pub enum Verb {
    Execute,
    Apply,
    Prompt,
    Correct,
    Rollback,
    Cancel,
}

impl Verb {
    /// Every verb, most useful first.
    pub const ALL: &'static [Verb] =
        &[Self::Execute, Self::Apply, Self::Prompt, Self::Correct, Self::Rollback, Self::Cancel];

    /// Its word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::Apply => "apply",
            Self::Prompt => "prompt",
            Self::Correct => "correct",
            Self::Rollback => "rollback",
            Self::Cancel => "cancel",
        }
    }

    /// Every way to use the verb on a plan that stands here.
    fn events(self, status: &Status) -> Vec<Event> {
        match self {
            Self::Execute => vec![Event::Execute],
            Self::Apply => vec![Event::Apply { no_commit: false }],
            Self::Prompt => {
                let options = status.awaiting.as_ref().map_or(0, |a| a.options.len());
                let mut events = vec![Event::Prompt(Answer::Words)];
                events.extend((0..options).map(|i| Event::Prompt(Answer::Option(i))));
                events
            }
            Self::Correct => vec![
                Event::CorrectRevert { target_phase: Phase::Strategize },
                Event::CorrectRevert { target_phase: Phase::Execute },
                Event::CorrectAppend,
            ],
            Self::Rollback => vec![Event::Rollback],
            Self::Cancel => vec![Event::Cancel],
        }
    }
}

/// Something a person may do with the plan now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllowedAction {
    /// What.
    pub verb: Verb,
    /// The whole command; capital words are to be filled in.
    pub command: String,
    /// For people.
    pub label: String,
}

/// Why the machine does not go on, and what is allowed instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The rule that refused: a row of the state table, or the requirement behind it.
    pub rule: &'static str,
    /// For people.
    pub message: String,
    /// What is allowed.
    pub allowed: Vec<AllowedAction>,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let data = serde_json::json!({ "rule": refusal.rule, "allowed_actions": refusal.allowed });
        let error = Error::invalid_state(refusal.message).data(data);
        refusal.allowed.into_iter().fold(error, |error, action| error.suggest(action.command))
    }
}

pub(super) fn refusal(status: &Status, context: &Context, denied: Denied) -> Refusal {
    Refusal { rule: denied.rule, message: denied.why, allowed: allowed_actions(status, context) }
}

/// What a person may do with a plan now: the verbs the machine takes, of those the program has.
pub fn allowed_actions(status: &Status, context: &Context) -> Vec<AllowedAction> {
    context
        .offered
        .iter()
        .filter_map(|verb| {
            let works = |event: &Event| transition(status, event, context, Timestamp::from_micros(0)).is_ok();
            let event = verb.events(status).into_iter().find(works)?;
            Some(AllowedAction {
                verb: *verb,
                command: command(&event, status, context),
                label: label(*verb, &event, status),
            })
        })
        .collect()
}

fn command(event: &Event, status: &Status, context: &Context) -> String {
    let plan = context.plan_id;
    let decision = || match status.awaiting.as_ref().and_then(|a| a.decision_id) {
        Some(id) => id.to_string(),
        None => "DECISION_ID".to_owned(),
    };
    match event {
        Event::Execute => format!("agents plan execute {plan}"),
        Event::Apply { .. } => format!("agents plan apply {plan}"),
        Event::Prompt(_) if status.awaiting.as_ref().is_some_and(|a| !a.options.is_empty()) => {
            format!("agents plan prompt {plan} ANSWER")
        }
        Event::Prompt(_) => format!("agents plan prompt {plan} GUIDANCE"),
        Event::CorrectRevert { .. } => {
            format!("agents plan correct --mode revert --guidance GUIDANCE {}", decision())
        }
        Event::CorrectAppend => {
            format!("agents plan correct --mode append --guidance GUIDANCE {}", decision())
        }
        Event::Rollback => format!("agents plan rollback {plan} CHECKPOINT_ID"),
        _ => format!("agents plan cancel {plan}"),
    }
}

fn label(verb: Verb, event: &Event, status: &Status) -> String {
    let label = match (verb, status.phase, status.state) {
        (Verb::Execute, Phase::Strategize, State::Queued) => "Start Strategize",
        (Verb::Execute, Phase::Strategize, State::Complete) => "Start Execute",
        (Verb::Execute, _, State::Errored) => "Try again",
        (Verb::Execute, ..) => "Go on",
        (Verb::Apply, Phase::Apply, _) => "Try to apply again",
        (Verb::Apply, ..) => "Apply the changes",
        (Verb::Prompt, ..) => match &status.awaiting {
            Some(awaiting) => return format!("Answer: {}", awaiting.question),
            None => "Give guidance for the next step",
        },
        (Verb::Correct, ..) if *event == Event::CorrectAppend => "Add work to a decision",
        (Verb::Correct, ..) => "Correct a decision",
        (Verb::Rollback, ..) => "Go back to a checkpoint",
        (Verb::Cancel, ..) => match status.awaiting_kind() {
            Some(AwaitingKind::Reversion) => "Refuse and give the plan up",
            _ => "Give the plan up",
        },
    };
    label.to_owned()
}
