//! `builtin/revert-plan`: takes an applied plan back, or some of its decisions, as a plan of its own.
//!
//! Nothing is forgotten or overwritten: each file is merged three ways, from what the plan left (the base) to what is
//! there today (ours) and what was there before the plan (theirs). Strategize ([`strategize`]) makes one decision per
//! decision that is taken back, newest first, and one for each file where the plan's lines were changed since. Execute
//! ([`execute`]) does what stands, on the files as they are then.

mod execute;
mod reverse;
mod strategize;
mod undoing;

use agents_domain::plan::Phase;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutput};

use crate::common::internal;

/// The actor of `builtin/revert-plan`, for both phases.
///
/// Arguments: `plan` (id of an applied plan, or its beginning), `decisions` (optional: list of ids of decisions, or
/// their beginnings; those below them in the tree go with them).
#[derive(Debug, Clone, Copy, Default)]
pub struct RevertPlan;

impl Actor for RevertPlan {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            match input.phase {
                Phase::Strategize => strategize::step(&input, host),
                Phase::Execute => execute::step(&input, host),
                Phase::Apply => Err(internal("actors decide and do nothing in Apply".to_owned())),
            }
        })
    }
}
