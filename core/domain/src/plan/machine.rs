//! The plan state machine: which phase and state a plan goes to on what happens, as pure functions.
//!
//! [`step`] takes where a plan stands, an [`Event`] and the facts it depends on ([`Context`]), and returns either the
//! [`Transition`] or a [`Refusal`] that names its rule (a row of the state table, `T01` to `T52`) and what is allowed
//! instead. Nothing else decides: [`allowed_actions`] tries the verbs on the machine itself.
//!
//! How a plan moves: a verb or a passed gate puts it into `queued` or `processing`; a worker takes it; it pauses where
//! `awaiting` says so and is then worked on by nobody; [`Status::wants_worker`] tells the rest.

mod action;
mod allowed;
mod draft;
mod questions;
mod record;
mod verbs;
mod work;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::plan as plan_for_tests;

use super::{ApplyMode, Awaiting, AwaitingKind, Phase, Plan, PlanFailure, State};
use crate::Timestamp;
use crate::decision::DecisionType;
use crate::ids::{DecisionId, PlanId};
use crate::profile::{Profile, Thresholds};

pub use action::{ActionVerb, action_step};
pub use allowed::{AllowedAction, Refusal, Verb, allowed_actions};
pub use questions::{Answer, awaiting_fits};

/// Where a plan stands, as far as the machine cares.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Its phase.
    pub phase: Phase,
    /// Its state in that phase.
    pub state: State,
    /// What it waits for, when it does.
    pub awaiting: Option<Awaiting>,
    /// 1 at first; never shrinks.
    pub attempt: u32,
    /// Automatic reversions so far.
    pub reversions: u32,
    /// The phase was started by an explicit command.
    pub commanded: bool,
}

impl Status {
    /// Where a new plan stands (T02): queued for Strategize, or asking whether to start it (T06).
    pub fn begin(context: &Context, now: Timestamp) -> Self {
        Self {
            phase: Phase::Strategize,
            state: State::Queued,
            awaiting: questions::confirm_strategize(context, now),
            attempt: 1,
            reversions: 0,
            commanded: false,
        }
    }

    /// Nothing happens to the plan any more, except that work may be appended to an applied one.
    pub fn ended(&self) -> bool {
        matches!(self.state, State::Applied | State::Cancelled)
    }

    /// A worker has it or shall take it: queued or processing, and not waiting for a person.
    pub fn wants_worker(&self) -> bool {
        self.awaiting.is_none() && matches!(self.state, State::Queued | State::Processing)
    }

    /// What it waits for.
    pub fn awaiting_kind(&self) -> Option<AwaitingKind> {
        self.awaiting.as_ref().map(|a| a.kind)
    }

    /// `execute/complete (awaiting apply_approval)`.
    pub fn describe(&self) -> String {
        match self.awaiting_kind() {
            Some(kind) => format!("{}/{} (awaiting {kind})", self.phase, self.state),
            None => format!("{}/{}", self.phase, self.state),
        }
    }

    /// Whether an actor may record a decision of this type now (DEC-007, DEC-011).
    pub fn may_record(&self, decision_type: DecisionType) -> Result<(), String> {
        let strategize = match (self.phase, self.state) {
            (Phase::Strategize, State::Processing) => true,
            (Phase::Execute, State::Processing) => false,
            _ => {
                return Err(format!(
                    "decisions are made while Strategize or Execute runs; the plan is in {}",
                    self.describe()
                ));
            }
        };
        if decision_type.actor_may_record(strategize) {
            Ok(())
        } else {
            Err(format!("an actor cannot record a {} in {}", decision_type.as_str(), self.phase))
        }
    }
}

/// What happens to a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// `plan execute`: starts or goes on with Strategize or Execute.
    Execute,
    /// `plan apply`.
    Apply {
        /// Merge into the working tree instead of making a commit.
        no_commit: bool,
    },
    /// `plan prompt`: an answer, or guidance.
    Prompt(Answer),
    /// `plan cancel`.
    Cancel,
    /// `plan rollback` to a checkpoint of the plan.
    Rollback,
    /// `plan correct --mode revert` on a decision made in a phase.
    CorrectRevert {
        /// Strategize or Execute.
        target_phase: Phase,
    },
    /// `plan correct --mode append`.
    CorrectAppend,

    /// A worker holds the lease and begins or goes on.
    WorkerTook,
    /// The worker died; another one goes on.
    WorkerLost,
    /// Decisions wait for a person; the first of them.
    DecisionsPending {
        /// Its question, of kind [`AwaitingKind::Decision`].
        first: Awaiting,
    },
    /// No decision waits any more, though none was answered by `plan prompt`.
    DecisionsSettled,
    /// The actor cannot go on without a person.
    ActorAsked(Awaiting),
    /// The actor finished the phase.
    ActorDone,
    /// A child plan shall be started for a spawn decision.
    SpawnWanted {
        /// What it shall do, for people.
        label: String,
        /// The decision.
        decision: Option<DecisionId>,
    },
    /// A child plan that was waited for, or that failed, is worked on again.
    ChildMoved,
    /// A child plan that was done does its work anew: what of it was taken in is so no more (C-60).
    ChildReopened,
    /// Something failed that may work when tried again.
    TransientFailure(PlanFailure),
    /// A step failed.
    StepFailed(PlanFailure),
    /// A required validation failed.
    ValidationFailed {
        /// Fixes tried so far.
        attempts: u32,
        /// What it said.
        failure: PlanFailure,
    },
    /// Execute cannot keep to what Strategize decided.
    StrategyTooTight(PlanFailure),
    /// Nothing helps any more; the phase failed.
    Unrecovered(PlanFailure),
    /// A limit of cost, time or calls is reached.
    BudgetExceeded {
        /// Which, for people.
        limit: String,
        /// The phase fails instead of asking.
        terminate: bool,
    },
    /// A correction could not take a resource back.
    RollbackFailed(PlanFailure),
    /// Every resource has the changes.
    ApplyCommitted,
    /// The real resources moved on so that the changes do not fit.
    ApplyConstrained(PlanFailure),
    /// Applying failed.
    ApplyFailed(PlanFailure),
}

/// The facts a transition depends on beyond the status.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Context {
    /// The plan, for the commands that are suggested.
    pub plan_id: PlanId,
    /// The thresholds of its locked profile.
    pub thresholds: Thresholds,
    /// The computed confidence of the phase: the least of its open decisions, 0.0 to 1.0; `None` counts as 0.5.
    pub confidence: Option<f64>,
    /// How often a transient failure may still be retried.
    pub tool_retries_left: u32,
    /// How often the step may still be retried from a checkpoint.
    pub step_retries_left: u32,
    /// Fixes of one failing validation before the strategy is called too tight.
    pub fix_limit: u32,
    /// Automatic reversions a plan may make.
    pub reversion_cap: u32,
    /// It is a child plan: its parent decides when it starts, and takes its work in.
    pub child: bool,
    /// Levels of child plans still allowed below this plan.
    pub child_depth_left: u32,
    /// The profile wants a sandbox for Execute.
    pub require_sandbox: bool,
    /// Each resource that is written can have a sandbox.
    pub sandbox_possible: bool,
    /// The profile wants a person before Apply, whatever the thresholds say.
    pub require_approval_for_apply: bool,
    /// A required validation of Execute did not pass.
    pub required_validation_failed: bool,
    /// Apply has changed some real resource already.
    pub committed: bool,
    /// A worker may be started (this plan not counted).
    pub slots_free: bool,
    /// The verbs this program has.
    pub offered: &'static [Verb],
}

impl Context {
    /// How many automatic reversions a plan may make unless configured otherwise (GUARD-018).
    pub const REVERSION_CAP: u32 = 3;
    /// How many fixes of a validation are tried unless configured otherwise (GUARD-016).
    pub const FIX_LIMIT: u32 = 3;
    /// How often a tool is retried unless configured otherwise (GUARD-015).
    pub const TOOL_RETRIES: u32 = 3;

    /// The facts of a plan under a profile at rest: nothing failed, nothing committed, a worker is free.
    pub fn new(plan_id: PlanId, profile: &Profile) -> Self {
        Self {
            plan_id,
            thresholds: profile.thresholds,
            confidence: None,
            tool_retries_left: Self::TOOL_RETRIES,
            step_retries_left: profile.safety.max_retries_per_step,
            fix_limit: Self::FIX_LIMIT,
            reversion_cap: Self::REVERSION_CAP,
            child: false,
            child_depth_left: 1,
            require_sandbox: profile.safety.require_sandbox,
            sandbox_possible: true,
            require_approval_for_apply: profile.guards.require_approval_for_apply,
            required_validation_failed: false,
            committed: false,
            slots_free: true,
            offered: Verb::ALL,
        }
    }

    /// [`Context::new`] of a plan under its locked profile.
    pub fn of(plan: &Plan) -> Self {
        Self {
            child: plan.parent_plan_id.is_some(),
            required_validation_failed: plan.validations.blocked(),
            ..Self::new(plan.plan_id, &plan.profile.profile)
        }
    }
}

/// A point of the machine as events show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// The phase.
    pub phase: Phase,
    /// The state.
    pub state: State,
    /// What is waited for.
    pub awaiting: Option<AwaitingKind>,
}

/// What the engine carries out after a transition, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Write `plan.phase_changed`.
    PhaseChanged {
        /// Before.
        from: Phase,
        /// After.
        to: Phase,
    },
    /// Write `plan.state_changed`, and what ends or escalates with it.
    StateChanged {
        /// Before.
        from: Point,
        /// After.
        to: Point,
    },
    /// Forget the phase's actor run: it begins anew, with the guidance, over what is decided and done.
    RestartActor,
    /// The run goes on from the last committed step; say so.
    Resumed,
    /// Run the estimation actor, which blocks nothing.
    Estimate,
    /// Try the step again after the backoff.
    RetryStep,
    /// Restore the last checkpoint, then try the step again.
    RestoreCheckpoint,
    /// Let the actor fix what the validation found and run that validation again.
    FixValidation,
    /// Start the child plan.
    SpawnChild,
    /// Do not start the child plan.
    SkipChild,
    /// Let the plan go on over the limit that was reached.
    ExtendBudget,
    /// The person's words (or the text of the option they chose) go to the next step.
    QueueGuidance {
        /// The text of the chosen option; `None` for the person's own words.
        option: Option<String>,
    },
    /// The person answered the decision the plan waited for.
    AnswerDecision {
        /// 0-based index of the chosen option; `None` for the person's own words.
        option: Option<usize>,
    },
    /// Take back all work of Execute, and the decisions made there.
    RollBackExecuteWork,
    /// Take back the work under the corrected decision and what hangs on it.
    RollBackCorrected,
    /// Return to the checkpoint the person named; what came later is superseded.
    RollBackToCheckpoint,
    /// Give the strategy actor the reason it has to decide again for.
    HandOverFindings,
    /// Make the child plan that brings the appended work.
    QueueChild,
    /// Cancel children that are not finished.
    CancelChildren,
    /// Name the present state of the sandboxes as the checkpoint of the failure.
    CheckpointOnError,
    /// Record who let the plan be applied.
    RecordApproval {
        /// A person did; else the profile.
        by_person: bool,
    },
    /// Write the audit record of the applied plan.
    WriteAudit,
    /// Remove the sandboxes.
    CleanUpSandboxes,
}

/// What becomes of the plan's recorded failure.
#[derive(Debug, Clone, PartialEq)]
pub enum FailureChange {
    /// It stays.
    Keep,
    /// It is over.
    Clear,
    /// A new one.
    Set(PlanFailure),
}

/// A step of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The row of the state table.
    pub rule: &'static str,
    /// Where the plan stands now.
    pub status: Status,
    /// What is to be carried out.
    pub effects: Vec<Effect>,
    /// What becomes of the recorded failure.
    pub failure: FailureChange,
    /// How Apply shall do it, when this step says so.
    pub apply_mode: Option<ApplyMode>,
}

/// A step of the machine: where the plan goes from here, or why not.
///
/// `now` only dates what the plan comes to wait for.
pub fn step(
    status: &Status,
    event: &Event,
    context: &Context,
    now: Timestamp,
) -> Result<Transition, Refusal> {
    transition(status, event, context, now).map_err(|denied| allowed::refusal(status, context, denied))
}

/// A refusal before it is known what is allowed instead.
struct Denied {
    rule: &'static str,
    why: String,
}

fn deny<T>(rule: &'static str, why: impl Into<String>) -> Result<T, Denied> {
    Err(Denied { rule, why: why.into() })
}

fn transition(
    status: &Status,
    event: &Event,
    context: &Context,
    now: Timestamp,
) -> Result<Transition, Denied> {
    let draft = draft::Draft::new(status, context, now);
    match event {
        Event::Execute => verbs::execute(draft),
        Event::Apply { no_commit } => verbs::apply(draft, *no_commit),
        Event::Prompt(answer) => verbs::prompt(draft, answer),
        Event::Cancel => verbs::cancel(draft),
        Event::Rollback => verbs::rollback(draft),
        Event::CorrectRevert { target_phase } => verbs::correct_revert(draft, *target_phase),
        Event::CorrectAppend => verbs::correct_append(draft),
        internal => work::step(draft, internal),
    }
}
