//! Plans: their record, their phases and states, and the state machine.

pub mod children;
pub mod gates;
pub mod guards;
pub mod machine;

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{CheckpointId, DecisionId, PlanId, ResourceId};
use crate::profile::ProfileSnapshot;
use crate::resource::SandboxStrategy;
use crate::{QualifiedName, Timestamp};

/// The phases of a plan; a plan record exists from Strategize on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Deciding what to do; changes nothing.
    Strategize,
    /// Doing it, in a sandbox.
    Execute,
    /// Bringing it to the real resources.
    Apply,
}

/// The states of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Waits for a worker, or for a person when `awaiting` says so.
    Queued,
    /// A worker has it.
    Processing,
    /// The phase failed; can be retried.
    Errored,
    /// The phase is done (never in Apply).
    Complete,
    /// Applied for good (Apply only).
    Applied,
    /// The real resources moved on so that it cannot be applied as it is (Apply only).
    Constrained,
    /// Given up for good.
    Cancelled,
}

macro_rules! words {
    ($type:ident { $($variant:ident => $word:literal),* $(,)? }) => {
        impl $type {
            /// Every value.
            pub const ALL: &'static [$type] = &[$($type::$variant),*];

            /// Its word in data.
            pub fn as_str(self) -> &'static str {
                match self { $($type::$variant => $word),* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::Error;

            fn from_str(text: &str) -> crate::Result<Self> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(crate::Error::validation(format!(
                        "`{text}` is not allowed here: expected one of {}",
                        [$($word),*].join(", ")
                    ))),
                }
            }
        }
    };
}

words!(Phase { Strategize => "strategize", Execute => "execute", Apply => "apply" });
words!(State {
    Queued => "queued",
    Processing => "processing",
    Errored => "errored",
    Complete => "complete",
    Applied => "applied",
    Constrained => "constrained",
    Cancelled => "cancelled",
});
words!(AwaitingKind {
    ConfirmStrategize => "confirm_strategize",
    Decision => "decision",
    ExecuteApproval => "execute_approval",
    Spawn => "spawn",
    Retry => "retry",
    Restore => "restore",
    ValidationFix => "validation_fix",
    StrategyRevision => "strategy_revision",
    ApplyApproval => "apply_approval",
    Reversion => "reversion",
    Rollback => "rollback",
    Budget => "budget",
    Recovery => "recovery",
    LanguageServer => "language_server",
    ChildPlan => "child_plan",
});

/// What a paused plan waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the ledger's; the machine says what each is left by")]
pub enum AwaitingKind {
    ConfirmStrategize,
    Decision,
    ExecuteApproval,
    Spawn,
    Retry,
    Restore,
    ValidationFix,
    StrategyRevision,
    ApplyApproval,
    Reversion,
    Rollback,
    Budget,
    Recovery,
    /// The servers the plan needs do not answer; goes on when a person says so.
    LanguageServer,
    /// Nothing can be done before a child plan is answered; goes on when that happens.
    ChildPlan,
}

/// Why a plan waits, in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Awaiting {
    /// What for.
    pub kind: AwaitingKind,
    /// The decision to answer, when it is one.
    pub decision_id: Option<DecisionId>,
    /// The question for people.
    pub question: String,
    /// What can be answered, in order; `plan prompt` takes the 1-based number, the text, or free guidance.
    pub options: Vec<String>,
    /// The profile flag that asks for a person.
    pub flag: Option<String>,
    /// The threshold of that flag.
    pub threshold: Option<f64>,
    /// The confidence that did not reach it.
    pub confidence: Option<f64>,
    /// Since when.
    pub since: Timestamp,
}

/// What went wrong in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanFailure {
    /// For people.
    pub message: String,
    /// A stable word: `language_server`, `tool`, `actor`, `strategy`, `git`, `conflict`, `io`, `budget`, `internal`.
    pub category: String,
    /// In which phase.
    pub phase: Phase,
    /// The tool or actor.
    pub tool: Option<String>,
    /// The step.
    pub step: Option<String>,
    /// Trying again may help.
    pub recoverable: bool,
    /// How often the step was tried again.
    pub retries: u32,
    /// What to do, most useful first.
    pub hints: Vec<String>,
}

/// The sandbox of one resource of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxRef {
    /// The resource.
    pub resource_id: ResourceId,
    /// Where the original is.
    pub original: String,
    /// The git directory that stands for a plain folder's; `None` for a checkout, which has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Where the sandbox is.
    pub path: String,
    /// The commit of the base snapshot.
    pub base_commit: String,
    /// The commit that was checked out when the snapshot was made.
    pub head_commit: String,
    /// The branch that was checked out, or `None` for a detached HEAD.
    pub branch: Option<String>,
    /// The commit of the latest checkpoint.
    pub commit: String,
    /// Files that are named and left alone, with the reason.
    pub untouchable: Vec<(String, String)>,
}

impl SandboxRef {
    /// Where the sandbox's repository is opened from.
    pub fn place(&self) -> &Path {
        Path::new(self.store.as_ref().unwrap_or(&self.original))
    }

    /// How it is kept apart.
    pub fn strategy(&self) -> SandboxStrategy {
        if self.store.is_some() { SandboxStrategy::CopyOnWrite } else { SandboxStrategy::GitWorktree }
    }
}

/// A resource a plan works on, as it was linked when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanResource {
    /// The resource.
    pub resource_id: ResourceId,
    /// The project it is linked to.
    pub project: QualifiedName,
    /// It must not be changed.
    pub read_only: bool,
}

/// The actors of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanActors {
    /// Decides.
    pub strategy: QualifiedName,
    /// Does.
    pub execution: QualifiedName,
    /// Estimates.
    pub estimation: Option<QualifiedName>,
    /// Reconciles invariants.
    pub invariant: Option<QualifiedName>,
}

/// What a person asked for, or a phase found, that the next step shall know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Guidance {
    /// The decision that holds it.
    pub decision_id: DecisionId,
    /// The text.
    pub text: String,
    /// An actor has seen it.
    pub applied: bool,
}

/// The result of applying, per resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedResource {
    /// The resource.
    pub resource_id: ResourceId,
    /// The commit made, or `None` with `--no-commit` or an empty change.
    pub commit: Option<String>,
    /// The branch it is on.
    pub branch: Option<String>,
    /// Files changed.
    pub files: u32,
    /// Lines added.
    pub insertions: u32,
    /// Lines removed.
    pub deletions: u32,
}

/// What a phase left for people, as the actor put it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSummary {
    /// One sentence.
    pub headline: String,
    /// The rest, line by line.
    pub lines: Vec<String>,
    /// Numbers and lists for programs.
    pub facts: Value,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Its id.
    pub plan_id: PlanId,
    /// Its parent, for a child plan.
    pub parent_plan_id: Option<PlanId>,
    /// The root of its tree; itself for a root plan.
    pub root_plan_id: PlanId,
    /// The action it was made from.
    pub action: QualifiedName,
    /// The projects it works on, in the order given.
    pub projects: Vec<QualifiedName>,
    /// The resources behind them.
    pub resources: Vec<PlanResource>,
    /// The description after substitution of arguments.
    pub description: String,
    /// When the work is done, after substitution.
    pub definition_of_done: String,
    /// The values of the arguments.
    pub arguments: BTreeMap<String, Value>,
    /// The actors.
    pub actors: PlanActors,
    /// The profile as it was when the plan was made, and where it came from.
    pub profile: ProfileSnapshot,
    /// It changes nothing.
    pub read_only: bool,
    /// What it must keep to, beyond the scopes: from the action and the command line.
    pub invariants: Vec<String>,
    /// How it runs its child plans.
    #[serde(default)]
    pub subplan: children::SubplanConfig,
    /// Its phase.
    pub phase: Phase,
    /// Its state in that phase.
    pub state: State,
    /// What it waits for, when it does.
    pub awaiting: Option<Awaiting>,
    /// 1 at first; grows with each re-run of a phase, reversion and correction.
    pub attempt: u32,
    /// Automatic reversions so far.
    pub reversions: u32,
    /// The phase was started by an explicit command, which approves its decisions in advance (ruling 6).
    pub commanded: bool,
    /// How Apply shall do it.
    pub apply_mode: Option<ApplyMode>,
    /// Its sandboxes.
    pub sandboxes: Vec<SandboxRef>,
    /// Guidance for the next steps.
    pub guidance: Vec<Guidance>,
    /// The latest failure.
    pub failure: Option<PlanFailure>,
    /// What each finished phase left.
    pub summaries: BTreeMap<Phase, PhaseSummary>,
    /// What was applied.
    pub applied: Vec<AppliedResource>,
    /// The finished diff as JSON (`FileDiff` per resource) in the blob store, once Execute is complete.
    pub diff_ref: Option<String>,
    /// The checkpoint it was last resumed from.
    pub resumed_from: Option<CheckpointId>,
    /// Tool calls so far.
    pub tool_calls: u32,
    /// What it has cost, and may cost beyond its limits.
    #[serde(default)]
    pub spending: guards::Spending,
    /// What its validations said, and what is still to be run.
    #[serde(default)]
    pub validations: crate::validation::PlanValidations,
    /// Who made it.
    pub created_by: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed; also guards against lost updates.
    pub updated_at: Timestamp,
    /// When each phase was started and ended.
    pub phase_times: BTreeMap<Phase, PhaseTimes>,
    /// Why it was cancelled, when somebody said.
    #[serde(default)]
    pub cancel_reason: Option<String>,
    /// When it ended for good.
    pub completed_at: Option<Timestamp>,
    /// Lease epoch of the worker that has it; 0 while none has, so that a worker that died over it shows.
    pub epoch: u64,
}

/// When a phase ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseTimes {
    /// First processing.
    pub started: Timestamp,
    /// Completion, failure or cancellation.
    pub finished: Option<Timestamp>,
}

/// How changes reach the real resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApplyMode {
    /// One commit, then the working tree.
    #[default]
    Commit,
    /// The working tree only.
    NoCommit,
}
