//! Commands on plans.

use clap::{Args, Subcommand};

use super::{EnvironmentArgs, Yes};

/// `agents plan`.
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Make a plan from an action and decide what to do.
    #[command(after_help = "\
Examples:
  agents plan use local/fix-diagnostics local/app
  agents plan use local/fix-diagnostics local/app --arg paths=src --automation-profile cautious
  agents plan use local/fix-diagnostics local/api local/web --invariant 'Do not touch generated files' --detach")]
    Use(UseArgs),
    /// Do what was decided, in the plan's sandbox; or go on with a plan that paused.
    #[command(after_help = "\
Examples:
  agents plan execute 01HXM8C2
  agents plan execute --detach 01HXM8C2

On a plan that is being worked on it shows what happens.")]
    Execute(StartArgs),
    /// Bring a plan's changes to the real files.
    #[command(after_help = "\
Examples:
  agents plan apply 01HXM8C2
  agents plan apply --yes 01HXM8C2
  agents plan apply --no-commit 01HXM8C2

It shows the changes and asks. By default it makes one commit on the checked-out branch.")]
    Apply(ApplyArgs),
    /// Take an applied plan back, or some of its decisions, by a plan of its own.
    #[command(after_help = "\
Examples:
  agents plan revert 01HXM8C2
  agents plan revert 01HXM8C2 --decision 01HXM9A1
  agents plan revert 01HXM8C2 --automation-profile manual

What was changed in the files since stays; where that is not possible you are asked.
The new plan is executed, shown and applied like any other.")]
    Revert(RevertArgs),
    /// Show where a plan stands.
    #[command(
        visible_alias = "show",
        after_help = "Examples:\n  agents plan status 01HXM8C2\n  agents plan show 01HXM8C2 --format json"
    )]
    Status(PlanArgs),
    /// Give a plan up for good. Its sandbox stays.
    #[command(
        after_help = "Examples:\n  agents plan cancel 01HXM8C2\n  agents plan cancel 01HXM8C2 --reason 'not needed any more'"
    )]
    Cancel(CancelArgs),
    /// Answer what a plan waits for, or tell its next step something.
    #[command(after_help = "\
Examples:
  agents plan prompt 01HXM8C2 1
  agents plan prompt 01HXM8C2 'Leave alone'
  agents plan prompt 01HXM8C2 --decision 01HXM9A1 'Remove the import'
  agents plan prompt 01HXM8C2 'Do not touch the tests'")]
    Prompt(PromptArgs),
    /// Decide something otherwise, and do again what hung on it; or add work to it.
    #[command(after_help = "\
Examples:
  agents plan correct --mode revert --guidance 2 --dry-run 01HXM9A1
  agents plan correct --mode revert -g 'Leave alone' --yes 01HXM9A1
  agents plan correct --mode append -g 'Also add rate limiting' 01HXM9A1

Revert shows what is taken back and asks. What does not hang on the decision stays as it is.")]
    Correct(CorrectArgs),
    /// Bring a plan back to a checkpoint.
    #[command(after_help = "\
Examples:
  agents plan rollback 01HXM8C2 cp_01HXM9C4
  agents plan rollback --dry-run 01HXM8C2 01HXM9C4
  agents plan rollback --yes 01HXM8C2 --checkpoint cp_01HXM9C4

It makes a checkpoint first, so that one can go forward again. `agents plan artifacts` lists checkpoints.")]
    Rollback(RollbackArgs),
    /// Show a plan's decisions as a tree.
    #[command(
        after_help = "Examples:\n  agents plan tree 01HXM8C2\n  agents plan tree --show-superseded 01HXM8C2"
    )]
    Tree(TreeArgs),
    /// Explain a decision: its options, its reason, and what hangs on it.
    #[command(
        after_help = "Examples:\n  agents plan explain 01HXM9A1\n  agents plan explain --show-context --show-reasoning 01HXM9A1"
    )]
    Explain(ExplainArgs),
    /// Show what a plan changes, and which decision is behind each change.
    #[command(after_help = "\
Examples:
  agents plan diff 01HXM8C2
  agents plan diff 01HXM8C2 --format json | jq -r '.data.files[].patch' | git apply --check
  agents plan diff --correction 01HXM9B7")]
    Diff(DiffArgs),
    /// List the files a plan changed, and its checkpoints.
    #[command(after_help = "Examples:\n  agents plan artifacts 01HXM8C2")]
    Artifacts(PlanArgs),
    /// Show what went wrong in a plan, now and before.
    #[command(after_help = "Examples:\n  agents plan errors 01HXM8C2")]
    Errors(PlanArgs),
    /// Show what a plan may do without asking, and what it has used.
    #[command(
        after_help = "Examples:\n  agents plan guard 01HXM8C2\n  agents plan guard 01HXM8C2 --format json\n  agents plan guard 01HXM8C2 --automation-profile trusted"
    )]
    Guard(GuardArgs),
    /// Find the decision behind a line.
    #[command(after_help = "Examples:\n  agents plan blame src/app.py\n  agents plan blame src/app.py:12")]
    Blame(BlameArgs),
    /// List plans, newest first.
    #[command(after_help = "\
Examples:
  agents plan list
  agents plan list --phase execute --state awaiting
  agents plan list --project local/app --action local/fix-diagnostics '^01HXM'")]
    List(PlanListArgs),
    /// Show what happens while it happens.
    #[command(after_help = "\
Examples:
  agents plan follow
  agents plan follow 01HXM8C2
  agents plan follow --forever --format json | jq -c 'select(.event_type == \"plan.applied\")'

Without a plan it follows all of them. With --format json each event is one line.")]
    Follow(FollowArgs),
}

impl PlanCommand {
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Use(_) => "plan use",
            Self::Execute(_) => "plan execute",
            Self::Apply(_) => "plan apply",
            Self::Revert(_) => "plan revert",
            Self::Status(_) => "plan status",
            Self::Cancel(_) => "plan cancel",
            Self::Prompt(_) => "plan prompt",
            Self::Correct(_) => "plan correct",
            Self::Rollback(_) => "plan rollback",
            Self::Tree(_) => "plan tree",
            Self::Explain(_) => "plan explain",
            Self::Diff(_) => "plan diff",
            Self::Artifacts(_) => "plan artifacts",
            Self::Errors(_) => "plan errors",
            Self::Guard(_) => "plan guard",
            Self::Blame(_) => "plan blame",
            Self::List(_) => "plan list",
            Self::Follow(_) => "plan follow",
        }
    }
}

/// What `plan guard` takes.
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// The plan's id or its beginning.
    pub plan: String,
    /// Lock another profile into the plan first: for the gates that come after, and child plans started after.
    #[arg(long, value_name = "NAME")]
    pub automation_profile: Option<String>,
}

/// What `plan use` takes.
#[derive(Debug, Args)]
pub struct UseArgs {
    /// The action's name.
    pub action: String,
    /// The projects' names.
    #[arg(required = true, value_name = "PROJECT")]
    pub projects: Vec<String>,
    /// An argument of the action; may be repeated.
    #[arg(short, long = "arg", value_name = "NAME=VALUE", value_parser = assignment)]
    pub arguments: Vec<(String, String)>,
    /// How much goes on without asking: manual, review, supervised, cautious, trusted, auto, ci, full-auto, or one of
    /// your own (`agents automation-profile list`).
    #[arg(long, value_name = "PROFILE")]
    pub automation_profile: Option<String>,
    /// What this plan must keep to; may be repeated.
    #[arg(long = "invariant", value_name = "TEXT")]
    pub invariants: Vec<String>,
    /// The actor that decides, instead of the action's.
    #[arg(long, value_name = "ACTOR")]
    pub strategy_actor: Option<String>,
    /// The actor that does it, instead of the action's.
    #[arg(long, value_name = "ACTOR")]
    pub execution_actor: Option<String>,
    /// The actor that estimates, instead of the action's.
    #[arg(long, value_name = "ACTOR")]
    pub estimation_actor: Option<String>,
    /// The actor that reconciles invariants, instead of the action's.
    #[arg(long, value_name = "ACTOR")]
    pub invariant_actor: Option<String>,
    /// Where its commands run.
    #[command(flatten)]
    pub environment: EnvironmentArgs,
    /// Return at once; the plan goes on in the background.
    #[arg(long)]
    pub detach: bool,
}

/// What `plan revert` takes.
#[derive(Debug, Args)]
pub struct RevertArgs {
    /// The applied plan's id or the beginning of it.
    pub plan: String,
    /// Only this decision and those below it; may be repeated.
    #[arg(long = "decision", value_name = "DECISION")]
    pub decisions: Vec<String>,
    /// How much goes on without asking, as in `plan use`.
    #[arg(long, value_name = "PROFILE")]
    pub automation_profile: Option<String>,
    /// Return at once; the plan goes on in the background.
    #[arg(long)]
    pub detach: bool,
}

/// `name=value`.
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form name=value")),
    }
}

/// A plan.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The plan's id or the beginning of it.
    pub plan: String,
}

/// A plan that is worked on.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// The plan's id or the beginning of it.
    pub plan: String,
    /// Return at once; the plan goes on in the background.
    #[arg(long)]
    pub detach: bool,
}

/// What `plan apply` takes.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The plan's id or the beginning of it.
    pub plan: String,
    /// Change the working tree only; make no commit.
    #[arg(long)]
    pub no_commit: bool,
    /// Whether to ask.
    #[command(flatten)]
    pub yes: Yes,
    /// Return at once; the plan goes on in the background.
    #[arg(long)]
    pub detach: bool,
}

/// What `plan cancel` takes.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The plan's id or the beginning of it.
    pub plan: String,
    /// Why.
    #[arg(short, long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// What `plan prompt` takes.
#[derive(Debug, Args)]
pub struct PromptArgs {
    /// The plan's id or the beginning of it.
    pub plan: String,
    /// The number of an option, its text, or guidance in your own words.
    pub guidance: String,
    /// The decision this answers (id or the beginning of it); the one the plan waits for unless given.
    #[arg(long, value_name = "DECISION")]
    pub decision: Option<String>,
    /// Return at once; the plan goes on in the background.
    #[arg(long)]
    pub detach: bool,
}

/// What `plan diff` takes.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The plan's id or the beginning of it.
    #[arg(required_unless_present = "correction", conflicts_with = "correction")]
    pub plan: Option<String>,
    /// Compare the files before and after this correction (its id, or that of the decision it made).
    #[arg(long, value_name = "CORRECTION")]
    pub correction: Option<String>,
}

/// How a decision is corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CorrectMode {
    /// It is replaced; what hangs on it is taken back and done again.
    Revert,
    /// It stays; a child plan adds work to it.
    Append,
}

impl From<CorrectMode> for agents_domain::correction::CorrectionMode {
    fn from(mode: CorrectMode) -> Self {
        match mode {
            CorrectMode::Revert => Self::Revert,
            CorrectMode::Append => Self::Append,
        }
    }
}

/// What `plan correct` takes.
#[derive(Debug, Args)]
pub struct CorrectArgs {
    /// The decision's id or the beginning of it.
    pub decision: String,
    /// Replace it, or add to it.
    #[arg(long)]
    pub mode: CorrectMode,
    /// The number of an option, its text, or what shall be decided in your own words.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub guidance: String,
    /// Only show what would happen and what it would cost.
    #[arg(long)]
    pub dry_run: bool,
    /// Whether to ask.
    #[command(flatten)]
    pub yes: Yes,
    /// Return at once; the plan goes on in the background.
    #[arg(long)]
    pub detach: bool,
}

/// What `plan rollback` takes.
#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// The plan's id or the beginning of it.
    pub plan: String,
    /// The checkpoint's id or the beginning of it.
    #[arg(required_unless_present = "checkpoint_flag", conflicts_with = "checkpoint_flag")]
    pub checkpoint: Option<String>,
    /// The same as an option.
    #[arg(long = "checkpoint", value_name = "CHECKPOINT")]
    pub checkpoint_flag: Option<String>,
    /// Only show what would happen.
    #[arg(long)]
    pub dry_run: bool,
    /// Whether to ask.
    #[command(flatten)]
    pub yes: Yes,
    /// Return at once; the work is taken back in the background.
    #[arg(long)]
    pub detach: bool,
}

/// What `plan tree` takes.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// The plan's id or the beginning of it.
    pub plan: String,
    /// Show decisions that were replaced, too.
    #[arg(long)]
    pub show_superseded: bool,
}

/// What `plan explain` takes.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The decision's id or the beginning of it.
    pub decision: String,
    /// Show what the decision was made from.
    #[arg(long)]
    pub show_context: bool,
    /// Show the actor's own reasoning, where there is any.
    #[arg(long)]
    pub show_reasoning: bool,
}

/// What `plan blame` takes.
#[derive(Debug, Args)]
pub struct BlameArgs {
    /// A file in a registered resource or in a plan's sandbox, and the line.
    #[arg(value_name = "FILE[:LINE]")]
    pub place: String,
}

/// What `plan list` takes.
#[derive(Debug, Args)]
pub struct PlanListArgs {
    /// Only plans whose id, action or project matches this regular expression.
    #[arg(value_name = "REGEX")]
    pub pattern: Option<String>,
    /// Only this phase: strategize, execute or apply.
    #[arg(long)]
    pub phase: Option<String>,
    /// Only this state: queued, processing, complete, errored, applied, constrained, cancelled or awaiting.
    #[arg(long)]
    pub state: Option<String>,
    /// Only plans on this project.
    #[arg(long)]
    pub project: Option<String>,
    /// Only plans of this action.
    #[arg(long)]
    pub action: Option<String>,
    /// Only plans on projects of this namespace.
    #[arg(short, long)]
    pub namespace: Option<String>,
}

/// What `plan follow` takes.
#[derive(Debug, Args)]
pub struct FollowArgs {
    /// The plan's id or the beginning of it; all plans unless given.
    pub plan: Option<String>,
    /// Go on when the plan pauses or ends.
    #[arg(long)]
    pub forever: bool,
    /// Start with what happened before.
    #[arg(long)]
    pub from_start: bool,
}
