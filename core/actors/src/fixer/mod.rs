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

pub(crate) use arguments::Filters;
pub(crate) use kept::Kept;
pub(crate) use options::{LEAVE_ALONE, match_answer};

use agents_domain::plan::Phase;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutput};
use agents_domain::words::{agree, count, sentence, share};

use crate::common::{Halt, clamp, from_state, internal, output, the, to_state};

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
