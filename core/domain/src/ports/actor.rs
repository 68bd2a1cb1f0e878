//! Actors as serialised state machines: one step at a time, so that a run can be resumed, replayed and corrected.
//!
//! A step gets the state it left, what came of its requests, and new guidance; it returns its next state and new
//! requests. The engine commits state and requests together, carries the requests out one by one, and commits each
//! outcome. A run that is killed goes on from the last commit: a step may be asked twice, a request never takes effect
//! twice.

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::BoxFuture;
use super::language_servers::LanguageWorkspace;
use super::model::{ChatDelta, ModelTrace};
use super::tool::{LocalTool, ToolError, ToolSpec};
use crate::QualifiedName;
use crate::changes::{Change, FileDiff};
use crate::decision::{Alternative, Decision, DecisionType, ResourceRef};
use crate::failure::FailurePattern;
use crate::ids::{DecisionId, PlanId, ResourceId};
use crate::invariant::{Enforced, Invariant, Reconciled};
use crate::language_server::binding::Lent;
use crate::plan::children::SpawnDraft;
use crate::plan::{AwaitingKind, Phase, PhaseSummary, State};
use crate::skill::AvailableSkill;
use crate::validation::{Mode, ValidationOutcome};

/// An actor.
pub trait Actor: Send + Sync {
    /// One step. Queries through `host` may be repeated after a crash; whatever has an effect is a [`Request`].
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, std::result::Result<StepOutput, ActorFailure>>;

    /// What of the language servers its `lsp/*` requests are lent in a plan with these arguments. `Err` is a reason for
    /// people.
    fn lent(
        &self,
        _arguments: &std::collections::BTreeMap<String, Value>,
    ) -> std::result::Result<Lent, String> {
        Ok(Lent::default())
    }

    /// The tools of its own that its requests may name besides registered ones.
    fn local_tools(&self) -> Vec<LocalTool> {
        Vec::new()
    }

    /// The skills whose tools it may call in a plan with these arguments, besides the tools that come with the program;
    /// which of its parts may call which is its own matter.
    fn skills(&self, _arguments: &std::collections::BTreeMap<String, Value>) -> Vec<QualifiedName> {
        Vec::new()
    }
}

/// Finds actors by name.
pub trait Actors: Send + Sync {
    /// The actor of that name for a phase, or `None`.
    fn find(&self, name: &QualifiedName) -> Option<Arc<dyn Actor>>;

    /// The actor that a definition makes, the first of these; the others are those it needs. `Err` is a reason for people.
    fn define(
        &self,
        _library: &[crate::actor::ActorDefinition],
    ) -> std::result::Result<Arc<dyn Actor>, String> {
        Err("actors from files are not run here".to_owned())
    }

    /// All names, for errors and completion.
    fn names(&self) -> Vec<QualifiedName>;

    /// Why an actor that there is cannot work now (no key of its model's provider, say), with what to do; `None` when it
    /// can.
    fn unready(&self, _name: &QualifiedName) -> Option<(String, Vec<String>)> {
        None
    }

    /// The reconciler of that name, or `None`.
    fn reconciler(&self, _name: &QualifiedName) -> Option<Arc<dyn Reconciler>> {
        None
    }

    /// The names of all reconcilers.
    fn reconcilers(&self) -> Vec<QualifiedName> {
        Vec::new()
    }
}

/// An actor that reconciles invariants, and judges those that no machine can check.
pub trait Reconciler: Send + Sync {
    /// Which of the invariants that apply to a plan are in force. The engine checks the answer
    /// ([`Reconciled::problem`]); it is asked again after a crash.
    fn reconcile<'a>(
        &'a self,
        invariants: &'a [Invariant],
    ) -> BoxFuture<'a, std::result::Result<Reconciled, ActorFailure>>;

    /// Whether a plan's changes keep these invariants; those it has no verdict on are left out.
    fn judge<'a>(
        &'a self,
        _invariants: &'a [Enforced],
        _changes: &'a [(ResourceId, FileDiff)],
    ) -> BoxFuture<'a, std::result::Result<Vec<Verdict>, ActorFailure>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// What a reconciler says about an invariant and a plan's changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The decision that holds the invariant.
    pub decision_id: DecisionId,
    /// The changes keep it.
    pub kept: bool,
    /// Why, naming the place.
    pub evidence: String,
}

/// What a step is given.
#[derive(Debug, Clone)]
pub struct StepInput {
    /// Strategize or Execute.
    pub phase: Phase,
    /// What the plan shall do.
    pub description: String,
    /// When it is done.
    pub definition_of_done: String,
    /// The plan's arguments.
    pub arguments: std::collections::BTreeMap<String, Value>,
    /// The plan's resources must not be changed.
    pub read_only: bool,
    /// The state the last step left; `Null` at first.
    pub state: Value,
    /// What came of the last step's requests, in their order.
    pub observations: Vec<Observation>,
    /// What people said since the last step.
    pub guidance: Vec<String>,
    /// In Execute: the final state of the strategy actor.
    pub handover: Value,
    /// The active decisions of the plan in the order made; a superseded choice shows as its answer.
    pub decisions: Vec<KnownDecision>,
    /// What the plan keeps to. Writes against those with a check are refused; the others are the actor's to honour.
    pub invariants: Vec<Enforced>,
    /// What failed before in this plan's projects or under its kinds of decision, most often first; at most 20.
    pub known_failures: Vec<FailurePattern>,
    /// The step estimates what Execute will cost: it decides and changes nothing, its requests are not carried out, and
    /// its summary's facts hold `cost_usd` as a number or as `{"low", "high"}`.
    pub estimating: bool,
    /// For a child plan: what it needs to know of its parent.
    pub parent: Option<ParentContext>,
    /// In Execute: the child plans, which are over and taken in.
    pub children: Vec<KnownChild>,
    /// In Execute, after the actor was done: required validations that did not pass, to be fixed before they are run
    /// again. Writes need a decision of type `validation_response`.
    pub findings: Vec<ValidationOutcome>,
    /// What will be run at the end of Execute, so that it can be decided with that in mind.
    pub validations: Vec<KnownValidation>,
}

/// A validation as an actor knows it before it is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownValidation {
    /// Its name.
    pub validation: QualifiedName,
    /// What it checks, for people.
    pub description: Option<String>,
    /// What a failure means.
    pub mode: Mode,
    /// The resource it looks at.
    pub resource_id: ResourceId,
}

/// What a child plan is told of its parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParentContext {
    /// The parent.
    pub plan_id: PlanId,
    /// What the parent shall do.
    pub description: String,
    /// The skeleton of its decisions: those above the child's spawn, then the most general ones, in the order made.
    pub decisions: Vec<KnownDecision>,
    /// The files the child is about.
    pub target_files: Vec<String>,
}

/// A child plan as its parent's actor sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownChild {
    /// The child; `None` when it was not started.
    pub plan_id: Option<PlanId>,
    /// Key of the decision it hangs on.
    pub key: Option<String>,
    /// `execute/complete` and the like, or `skipped`.
    pub state: String,
    /// What it left, in one sentence.
    pub headline: Option<String>,
}

/// A decision as an actor sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownDecision {
    /// Its id.
    pub decision_id: DecisionId,
    /// The key it was recorded under (an answer has the key of what it answers).
    pub key: Option<String>,
    /// Its kind.
    pub decision_type: DecisionType,
    /// What was to be decided.
    pub question: String,
    /// What was chosen: one of the options, or a person's own words.
    pub chosen_option: String,
    /// The options' texts, in order.
    pub options: Vec<String>,
}

/// What a step returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepOutput {
    /// What the next step shall get.
    pub state: Value,
    /// What is to be done, in order; a failing request ends the list, and the rest is observed as not run.
    pub requests: Vec<Request>,
    /// How far the phase is.
    pub progress: Option<Progress>,
    /// Whether there is more.
    pub outcome: StepOutcome,
    /// What the step cost; nothing for actors without a model.
    #[serde(default)]
    pub cost: StepCost,
}

/// What a step cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepCost {
    /// US dollars.
    pub usd: f64,
    /// Tokens, both ways.
    pub tokens: u64,
}

/// Whether there is more to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// Another step, after the requests.
    Continue,
    /// The phase is done, after the requests.
    Done(PhaseSummary),
    /// In Execute: what Strategize decided cannot be kept to. The strategy is decided again where it depends on the
    /// decisions named, and as a whole where none is.
    TooTight {
        /// Why, for people and for the strategy actor.
        reason: String,
        /// Keys of the decisions that are too tight.
        #[serde(default)]
        decisions: Vec<String>,
    },
    /// A person must say how to go on; the next step gets the answer as guidance.
    Ask {
        /// Why.
        kind: AwaitingKind,
        /// For people.
        question: String,
        /// What can be answered.
        options: Vec<String>,
    },
}

/// How far a phase is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// What is being done.
    pub label: String,
    /// Steps done.
    pub done: u32,
    /// Steps in all, when known.
    pub total: Option<u32>,
}

/// Something with an effect, carried out by the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Records a decision; a key that the plan's active decisions have already is not recorded again.
    RecordDecision(DecisionDraft),
    /// Runs a tool under a decision.
    Tool {
        /// Unique in the run.
        call_id: String,
        /// Such as `builtin/apply-edits`.
        tool: String,
        /// As the tool's schema says.
        args: Value,
        /// Key of the decision behind it; writes need one.
        decision: Option<String>,
    },
    /// Names the present state of the sandbox as a checkpoint of a decision.
    Checkpoint {
        /// Key of the decision.
        decision: String,
        /// For people.
        label: String,
    },
    /// Takes back every write under a decision; refused when another decision has written to the same files since.
    Undo {
        /// Key of the decision.
        decision: String,
    },
}

/// A decision to record; the engine adds id, sequence, snapshot and gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionDraft {
    /// Stable and unique within the plan, such as `strategy/local/ruff/F401`.
    pub key: String,
    /// Its kind.
    pub decision_type: DecisionType,
    /// Key of its structural parent; `None` hangs it below the root.
    pub parent: Option<String>,
    /// What is to be decided.
    pub question: String,
    /// Index of the chosen alternative.
    pub chosen: usize,
    /// The options, at least one.
    pub alternatives: Vec<Alternative>,
    /// 0.0 to 1.0.
    pub confidence: Option<f64>,
    /// Why, naming the facts.
    pub rationale: String,
    /// More of how it came about.
    pub reasoning: Option<String>,
    /// The places it is about.
    pub resources: Vec<ResourceRef>,
    /// Keys of the decisions it was made from.
    pub depends_on: Vec<String>,
    /// What it was made from, stored whole and content-addressed.
    pub context: Value,
    /// For a `subplan_spawn`: the child plan it decides on; made in Execute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawn: Option<Box<SpawnDraft>>,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "observed", rename_all = "snake_case")]
pub enum Observation {
    /// A decision stands, possibly with a person's answer in place of the proposal.
    Decided(KnownDecision),
    /// A tool returned.
    Tool {
        /// Of the request.
        call_id: String,
        /// What it returned.
        result: Value,
    },
    /// A person edited files in the sandbox; the edits are part of the plan now.
    FilesEdited {
        /// Of which resource.
        resource: ResourceId,
        /// The files, gone ones too.
        paths: Vec<String>,
    },
    /// A checkpoint was made.
    Checkpointed {
        /// Key of its decision.
        decision: String,
    },
    /// The writes under a decision are taken back.
    Undone {
        /// Key of the decision.
        decision: String,
    },
    /// A request failed; those after it were not run.
    Failed {
        /// Index among the step's requests.
        request: usize,
        /// For people and models.
        message: String,
        /// What kind of failure it is.
        #[serde(default)]
        error: ToolError,
    },
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ActorFailure {
    /// For people.
    pub message: String,
    /// A stable word, as in `PlanFailure::category`.
    pub category: String,
    /// Trying the step again may help.
    pub transient: bool,
    /// What to do.
    pub hints: Vec<String>,
}

impl ActorFailure {
    /// The category of what is correct in form and wrong in what it means, such as an interface that others rely on.
    pub const SEMANTIC: &'static str = "semantic";

    /// What a semantic guard raises: the changes that break something, and what they break. It fails the step, which is
    /// tried again from the last checkpoint where the profile lets it.
    pub fn semantic(message: impl Into<String>, changes: &[String], affected: &[String]) -> Self {
        let listed =
            |what: &str, of: &[String]| (!of.is_empty()).then(|| format!("{what}: {}", of.join(", ")));
        Self {
            message: message.into(),
            category: Self::SEMANTIC.to_owned(),
            transient: false,
            hints: [listed("changes", changes), listed("affected", affected)].into_iter().flatten().collect(),
        }
    }
}

/// What an actor may look at.
pub trait ActorHost: Send + Sync {
    /// The sandboxes of the plan's resources.
    fn workspaces(&self) -> &[ActorWorkspace];

    /// The files of a workspace: tracked, and untracked but not ignored, sorted by path.
    fn files(&self, resource: ResourceId) -> std::result::Result<Vec<FileEntry>, ActorFailure>;

    /// The bytes of a file, confined to the workspace.
    fn read(&self, resource: ResourceId, path: &str) -> std::result::Result<Vec<u8>, ActorFailure>;

    /// What another plan wrote and decided, by its id or the beginning of it. `Err` where no such records are lent.
    fn recorded(&self, plan: &str) -> std::result::Result<RecordedPlan, ActorFailure> {
        Err(not_lent(&format!("the records of plan {plan}")))
    }

    /// The content of a recorded file, by the hash its change names.
    fn content(&self, hash: &str) -> std::result::Result<Vec<u8>, ActorFailure> {
        Err(not_lent(&format!("the content {hash}")))
    }

    /// The tools this actor may call in this phase, sorted by name.
    fn tools(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    /// The tools of some skills, each once, sorted by name: of [`tools`](Self::tools), those a part of an actor may call.
    fn tools_of(&self, skills: &[QualifiedName]) -> std::result::Result<Vec<ToolSpec>, ActorFailure> {
        match skills {
            [] => Ok(Vec::new()),
            [first, ..] => Err(not_lent(&format!("the tools of the skill {first}"))),
        }
    }

    /// Of the tools, those that are Agent Skills, for the actor's system prompt: see
    /// [`prompt_block`](crate::skill::prompt_block).
    fn agent_skills(&self) -> Vec<AvailableSkill> {
        Vec::new()
    }

    /// Shows progress within a step.
    fn progress(&self, progress: Progress);

    /// Keeps that a model was asked, whatever came of it; what it took was spent even if the step fails.
    fn asked(&self, _trace: &ModelTrace) {}

    /// Shows a piece of a model's answer to whoever watches.
    fn heard(&self, _piece: &ChatDelta) {}

    /// The plan is being cancelled or paused; a long step returns early (its work is done again when it is resumed).
    fn stopping(&self) -> bool;
}

fn not_lent(what: &str) -> ActorFailure {
    let message = format!("{what} cannot be looked at here");
    ActorFailure { message, category: "io".to_owned(), transient: false, hints: Vec::new() }
}

/// What a plan left on record.
#[derive(Debug, Clone)]
pub struct RecordedPlan {
    /// Its id.
    pub plan_id: PlanId,
    /// What it was to do.
    pub description: String,
    /// Its phase.
    pub phase: Phase,
    /// Where it stands in it.
    pub state: State,
    /// What it wrote, in order; what it took back itself is left out.
    pub changes: Vec<Change>,
    /// Its decisions, superseded ones too, in order.
    pub decisions: Vec<Decision>,
}

/// One sandboxed resource with its language servers.
#[derive(Clone)]
pub struct ActorWorkspace {
    /// The resource.
    pub resource_id: ResourceId,
    /// The resource's name for people.
    pub name: String,
    /// Absolute directory of the sandbox.
    pub root: PathBuf,
    /// It must not be changed.
    pub read_only: bool,
    /// The language servers over it.
    pub languages: Arc<dyn LanguageWorkspace>,
    /// Files left alone, with the reason.
    pub untouchable: Vec<(String, String)>,
}

/// A file of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Relative, with `/`.
    pub path: String,
    /// Bytes.
    pub size: u64,
}
