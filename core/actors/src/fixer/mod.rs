//! `builtin/fix-diagnostics`: finds what language servers report, decides what to do about each kind, does it.
//!
//! Strategize ([`strategize`]) looks and proposes, one decision per group of findings (server and rule) that has a
//! real alternative to being left alone. Execute ([`execute`]) does what stands, group by group, checks after each
//! round of edits that nothing got worse, and takes back what made it worse. A file that no server answered for is
//! never called clean.

mod arguments;
mod baseline;
mod confidence;
mod execute;
mod group;
mod kept;
mod look;
mod options;
mod outcome;
mod patterns;
mod propose;
mod record;
mod report;
mod round;
mod source;
mod strategize;
mod survey;
mod texts;
mod verify;

use agents_domain::plan::Phase;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{
    Actor, ActorFailure, ActorHost, StepCost, StepInput, StepOutcome, StepOutput,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use agents_domain::words::{agree, count, sentence, share};

/// The actor of `builtin/fix-diagnostics`, for both phases.
///
/// Arguments, all optional: `max_files` (number, default 5000), `rules` (list of codes), `severity` (the mildest that
/// counts: `error`, `warning`, `information`, `hint`), `paths` (list of globs as in `.gitignore`).
#[derive(Debug, Clone, Copy, Default)]
pub struct FixDiagnostics;

impl Actor for FixDiagnostics {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            match input.phase {
                Phase::Strategize => strategize::step(&input, host).await,
                Phase::Execute => execute::step(&input, host).await,
                Phase::Apply => Err(internal("actors decide and do nothing in Apply".to_owned())),
            }
        })
    }
}

/// Why a long piece of work ended before it was done.
#[derive(Debug)]
enum Halt {
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

/// The workspaces or the state are not what they must be: a fault of the program, not of the person.
fn internal(message: String) -> ActorFailure {
    ActorFailure { message, category: "internal".to_owned(), transient: false, hints: Vec::new() }
}

fn output(state: Value, outcome: StepOutcome) -> StepOutput {
    StepOutput { state, requests: Vec::new(), progress: None, outcome, cost: StepCost::default() }
}

fn to_state<T: Serialize>(state: &T) -> Result<Value, ActorFailure> {
    serde_json::to_value(state).map_err(|error| internal(format!("the state cannot be written: {error}")))
}

fn from_state<T: DeserializeOwned>(state: &Value) -> Result<T, ActorFailure> {
    T::deserialize(state).map_err(|error| internal(format!("the state cannot be read: {error}")))
}

/// `the finding`, `the 3 findings`.
fn the(n: usize, noun: &str) -> String {
    if n == 1 { format!("the {noun}") } else { format!("the {}", count(n, noun)) }
}

fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
