//! What all actors of this crate share: state as JSON, answers of people, requests, failures, and short texts.

use std::collections::BTreeSet;

use agents_domain::decision::{Alternative, DecisionType};
use agents_domain::ids::ResourceId;
use agents_domain::plan::PhaseSummary;
use agents_domain::ports::actor::{
    ActorFailure, ActorHost, KnownDecision, Observation, Request, StepCost, StepInput, StepOutcome,
    StepOutput,
};
use agents_domain::text::FileEdit;
use agents_domain::words::count;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Lines of a summary.
pub(crate) const MAX_LINES: usize = 50;

/// Why a long piece of work ended before it was done.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The plan is being paused or cancelled: the step returns what it had.
    Stopping,
    /// It cannot go on.
    Failed(ActorFailure),
}

impl From<ActorFailure> for Halt {
    fn from(failure: ActorFailure) -> Self {
        Self::Failed(failure)
    }
}

/// Ends the work when the plan is to stop.
pub(crate) fn go_on(host: &dyn ActorHost) -> Result<(), Halt> {
    if host.stopping() { Err(Halt::Stopping) } else { Ok(()) }
}

/// The workspaces or the state are not what they must be: a fault of the program, not of the person.
pub(crate) fn internal(message: String) -> ActorFailure {
    ActorFailure { message, category: "internal".to_owned(), transient: false, hints: Vec::new() }
}

/// An argument is not what it must be.
pub(crate) fn wrong_argument(message: String) -> ActorFailure {
    ActorFailure {
        message,
        category: "actor".to_owned(),
        transient: false,
        hints: vec![
            "Make a new plan with other arguments (`agents plan use ... --arg NAME=VALUE`).".to_owned(),
        ],
    }
}

pub(crate) fn output(state: Value, outcome: StepOutcome) -> StepOutput {
    StepOutput { state, requests: Vec::new(), progress: None, outcome, cost: StepCost::default() }
}

/// The phase is over, with the state that the next one gets.
pub(crate) fn done<T: Serialize>(state: &T, summary: PhaseSummary) -> Result<StepOutput, ActorFailure> {
    Ok(output(to_state(state)?, StepOutcome::Done(summary)))
}

/// Requests, then another step.
pub(crate) fn ask_for<T: Serialize>(state: &T, requests: Vec<Request>) -> Result<StepOutput, ActorFailure> {
    Ok(StepOutput { requests, ..output(to_state(state)?, StepOutcome::Continue) })
}

pub(crate) fn to_state<T: Serialize>(state: &T) -> Result<Value, ActorFailure> {
    serde_json::to_value(state).map_err(|error| internal(format!("the state cannot be written: {error}")))
}

pub(crate) fn from_state<T: DeserializeOwned>(state: &Value) -> Result<T, ActorFailure> {
    T::deserialize(state).map_err(|error| internal(format!("the state cannot be read: {error}")))
}

/// `the finding`, `the 3 findings`.
pub(crate) fn the(n: usize, noun: &str) -> String {
    if n == 1 { format!("the {noun}") } else { format!("the {}", count(n, noun)) }
}

pub(crate) fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The first line of a text.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// An option with what it would mean.
pub(crate) fn alternative(option: &str, description: impl Into<String>) -> Alternative {
    Alternative { option: option.to_owned(), description: Some(description.into()) }
}

/// The key of the plan's root decision.
pub(crate) fn root_key(input: &StepInput) -> Option<String> {
    let root = input.decisions.iter().find(|d| d.decision_type == DecisionType::PromptDefinition);
    root.and_then(|decision| decision.key.clone())
}

/// The decisions as they stand, those of the last step's requests too.
pub(crate) fn standing(input: &StepInput) -> Result<Vec<KnownDecision>, ActorFailure> {
    let mut decisions = input.decisions.clone();
    for observation in &input.observations {
        match observation {
            Observation::Decided(decision) => decisions.push(decision.clone()),
            Observation::Failed { message, .. } => {
                return Err(internal(format!("a decision could not be recorded: {message}")));
            }
            _ => {}
        }
    }
    Ok(decisions)
}

/// The decision under a key, as it stands.
pub(crate) fn decided<'d>(decisions: &'d [KnownDecision], key: &str) -> Option<&'d KnownDecision> {
    decisions.iter().rev().find(|decision| decision.key.as_deref() == Some(key))
}

/// The edits of one resource as a request, under a decision.
pub(crate) fn apply_edits(decision: &str, resource: ResourceId, edits: &[FileEdit]) -> Request {
    Request::Tool {
        call_id: format!("{decision}@{resource}"),
        tool: "builtin/apply-edits".to_owned(),
        args: json!({ "resource": resource, "edits": edits, "diagnostics": false }),
        decision: Some(decision.to_owned()),
    }
}

/// Why the last step's requests failed, if one did.
pub(crate) fn refused(input: &StepInput) -> Option<String> {
    input.observations.iter().find_map(|observation| match observation {
        Observation::Failed { message, .. } => Some(message.clone()),
        _ => None,
    })
}

/// The files that edits touch, a renamed one under both names.
pub(crate) fn touched<'e>(edits: impl IntoIterator<Item = &'e FileEdit>) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for edit in edits {
        paths.insert(edit.path().to_owned());
        if let FileEdit::Rename { to, .. } = edit {
            paths.insert(to.clone());
        }
    }
    paths
}

/// Some of a list, for a line of text.
pub(crate) fn sample(items: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = if items.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", items[..items.len().min(SHOWN)].join(", "))
}

/// No more lines than a summary has room for.
pub(crate) fn cut(lines: &mut Vec<String>, of: &str) {
    if lines.len() > MAX_LINES {
        let more = lines.len() - MAX_LINES;
        lines.truncate(MAX_LINES);
        lines.push(format!("… and {more} more {of}"));
    }
}
