//! Operations on plans.

mod append;
mod arguments;
mod blame;
mod changes;
mod child_plans;
mod correct;
mod correction_diff;
mod corrections;
mod create;
mod discard;
mod errors;
mod explain;
mod guard;
mod lifecycle;
mod list;
mod profile;
mod prompt;
mod revert;
mod rollback;
mod set_profile;
mod status;
mod tree;
mod validations;

pub(crate) use arguments::check_arguments;
pub(crate) use create::{actors_of, prompt_definition, substitute};
pub(crate) use discard::checkouts;
pub(crate) use lifecycle::apply_refused;

pub use blame::{Blame, BlameOutput, BlamedSegment, StrategyBehind};
pub use changes::{Artifacts, ArtifactsOutput, CheckpointView, Diff, DiffOutput, DiffedFile, FilePatch};
pub use child_plans::ChildPlan;
pub use correct::{Correct, CorrectOutput};
pub use correction_diff::{CorrectionDiff, CorrectionDiffOutput};
pub use corrections::CorrectionMade;
pub use create::{Use, UseOutput};
pub use discard::{Discard, DiscardOutput};
pub use errors::{Errors, ErrorsOutput};
pub use explain::{Explain, ExplainOutput, Pending, PendingDecision, PendingOutput};
pub use guard::{Guard, GuardOutput};
pub use lifecycle::{Apply, ApplyOutput, Cancel, CancelOutput, Execute, ExecuteOutput};
pub use list::{List, ListOutput};
pub use prompt::{Prompt, PromptOutput};
pub use revert::Revert;
pub use rollback::{Rollback, RollbackOutput};
pub use set_profile::{SetProfile, SetProfileOutput};
pub use status::{Status, StatusOutput};
pub use tree::{Tree, TreeNode, TreeOutput};
pub use validations::{Summary as ValidationSummary, ValidationView};

use agents_domain::plan::{Phase, Plan, State};
use agents_domain::{Error, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// One line of a plan's progress.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PhaseProgress {
    /// `Strategize`, `Execute` or `Apply`.
    pub step: String,
    /// `done`, `running`, `queued`, `waiting`, `paused`, `failed`, `skipped` or `committed`.
    pub status: String,
}

/// One line of what Execute does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExecuteProgress {
    /// `Collect context`, `Run tools`, `Build changeset` or `Validate`.
    pub label: String,
    /// `pending`, `running`, `done` or `errored`.
    pub status: String,
}

/// How far Execute is.
fn execute_progress(plan: &Plan) -> Vec<ExecuteProgress> {
    const LABELS: [&str; 4] = ["Collect context", "Run tools", "Build changeset", "Validate"];
    // The line that is being done: those before it are done, those behind it are to come.
    let at = match (plan.phase, plan.state) {
        (Phase::Strategize, _) | (Phase::Execute, State::Queued) => 0,
        (Phase::Apply, _) | (Phase::Execute, State::Complete) => LABELS.len(),
        (Phase::Execute, _) if plan.sandboxes.is_empty() => 0,
        (Phase::Execute, _) => 1,
    };
    let status = |line: usize| match plan.state {
        _ if line < at => "done",
        _ if line > at || plan.phase == Phase::Strategize => "pending",
        State::Errored => "errored",
        State::Processing => "running",
        _ => "pending",
    };
    let lines = LABELS.iter().enumerate();
    lines
        .map(|(line, label)| ExecuteProgress { label: (*label).to_owned(), status: status(line).to_owned() })
        .collect()
}

/// `HH:MM:SS`.
pub(super) fn clock_text(millis: u64) -> String {
    let seconds = millis / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The projects of a plan as one text.
fn project_text(plan: &Plan) -> String {
    plan.projects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// How far each phase is, in the words of `plan status`.
fn phase_progress(plan: &Plan) -> Vec<PhaseProgress> {
    let word = |phase: Phase| {
        if phase < plan.phase {
            return "done";
        }
        if phase > plan.phase {
            return match plan.state {
                State::Errored | State::Cancelled => "skipped",
                _ => "waiting",
            };
        }
        match plan.state {
            State::Complete => "done",
            _ if plan.awaiting.is_some() => "paused",
            State::Queued => "queued",
            State::Processing => "running",
            State::Errored | State::Constrained => "failed",
            State::Applied => "committed",
            // Cancelled after it was finished, or in the middle.
            State::Cancelled if plan.summaries.contains_key(&phase) => "done",
            State::Cancelled => "skipped",
        }
    };
    [(Phase::Strategize, "Strategize"), (Phase::Execute, "Execute"), (Phase::Apply, "Apply")]
        .into_iter()
        .map(|(phase, step)| PhaseProgress { step: step.to_owned(), status: word(phase).to_owned() })
        .collect()
}

/// Milliseconds a plan took so far, or in all.
fn elapsed(plan: &Plan, now: Timestamp) -> u64 {
    plan.completed_at.unwrap_or(now).millis_since(plan.created_at)
}

/// The longest text of a person's that is taken, in bytes.
const MAX_WORDS: usize = 64 * 1024;

/// What a person said, without the space around it; too much of it is refused. `what` names it: `guidance`.
fn words_of<'t>(what: &str, text: &'t str) -> Result<&'t str> {
    let text = text.trim();
    if text.len() > MAX_WORDS {
        return Err(Error::validation(format!(
            "the {what} has {} bytes; at most {MAX_WORDS} are taken",
            text.len()
        ))
        .suggest("name a file that says the rest"));
    }
    Ok(text)
}
