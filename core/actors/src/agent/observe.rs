//! What came of the last turn's calls, as answers in the conversation.

use agents_domain::ports::actor::{Observation, StepInput};
use serde_json::{Value, json};

use super::brief;
use super::state::{Pending, State, Waits};

const NOT_RUN: &str = "not run, because a call before it failed: call again if it is still wanted";

/// Answers every call that waits, in order.
pub(super) fn answer(input: &StepInput, state: &mut State) {
    for Pending { call_id, kind } in std::mem::take(&mut state.pending) {
        let text = match kind {
            Waits::Answered(text) => text,
            Waits::Decision { request, key } => decided(input, state, request, &key),
            Waits::Tool { request, call } => {
                let mut observed = input.observations.iter().filter_map(|o| match o {
                    Observation::Tool { call_id, result } if *call_id == call => Some(result),
                    _ => None,
                });
                match observed.next() {
                    Some(result) => text_of(result),
                    None => failed(input, request).unwrap_or_else(|| NOT_RUN.to_owned()),
                }
            }
            Waits::Finished if input.findings.is_empty() => "There is more to do.".to_owned(),
            Waits::Finished => brief::findings(&input.findings),
        };
        state.talk.answer(&call_id, &text);
    }
    for observation in &input.observations {
        if let Observation::FilesEdited { paths, .. } = observation {
            state.talk.say(format!("A person edited files, read them again: {}", paths.join(", ")));
        }
    }
}

fn decided(input: &StepInput, state: &mut State, request: usize, key: &str) -> String {
    if let Some(message) = failed(input, request) {
        return message;
    }
    let decided = input.observations.iter().find_map(|o| match o {
        Observation::Decided(decision) if decision.key.as_deref() == Some(key) => Some(decision),
        _ => None,
    });
    match decided {
        None => NOT_RUN.to_owned(),
        Some(decision) => {
            state.told.insert(key.to_owned(), decision.chosen_option.clone());
            json!({
                "stands": { "key": key, "question": decision.question, "chosen": decision.chosen_option }
            })
            .to_string()
        }
    }
}

fn failed(input: &StepInput, index: usize) -> Option<String> {
    input.observations.iter().find_map(|o| match o {
        Observation::Failed { request, message, .. } if *request == index => {
            Some(format!("failed: {message}"))
        }
        _ => None,
    })
}

/// A result as a model reads it: a text as it is, everything else as JSON.
fn text_of(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
