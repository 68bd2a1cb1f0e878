//! `agents invariant`.

use clap::{Args, Subcommand};

use super::Yes;

/// `agents invariant`.
#[derive(Debug, Subcommand)]
pub enum InvariantCommand {
    /// Say what plans must keep to, at one scope.
    #[command(after_help = "\
Examples:
  agents invariant add --global 'Never change files under vendor/'
  agents invariant add --global --non-overridable 'No `password =` in added lines'
  agents invariant add --project local/app 'At most 300 changed lines'
  agents invariant add --plan <PLAN> 'Keep public names'
  agents invariant add --action local/fix-diagnostics 'Do not touch `Cargo.lock`'

A machine enforces sentences of these forms; any other is handed to the actors:
  Never change files under PATHS         You may change files under PATHS
  Do not touch PATHS                     Added lines must not contain `TEXT`
  At most N changed lines                At most N changed files
  Do not use tool NAME                   Validation NAME must pass
  Any change to PATHS requires human approval
PATHS are patterns as in .gitignore, separated by commas or `and`.
The same as keys: forbid-paths, allow-paths, forbid-text, allow-text, forbid-tool,
allow-tool, max-changed-lines, max-changed-files, require-validation,
waive-validation, require-approval, such as 'forbid-paths: vendor/, *.lock'.

A narrower scope overrides a wider one that it contradicts: plan, action,
project, global. A global one with --non-overridable is never overridden.")]
    Add(InvariantAddArgs),
    /// List the invariants of a scope, or those in force in a plan.
    #[command(after_help = "\
Examples:
  agents invariant list --global
  agents invariant list --project local/app vendor
  agents invariant list --plan <PLAN> --effective")]
    List(InvariantListArgs),
    /// Remove an invariant; plans that have it among their decisions keep it.
    #[command(after_help = "\
Examples:
  agents invariant remove inv_01HXM9A1C
  agents invariant remove --yes inv_01HXM9A1C")]
    Remove(InvariantRemoveArgs),
}

impl InvariantCommand {
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "invariant add",
            Self::List(_) => "invariant list",
            Self::Remove(_) => "invariant remove",
        }
    }
}

/// What `invariant add` takes.
#[derive(Debug, Args)]
pub struct InvariantAddArgs {
    /// What plans must keep to.
    pub text: String,
    /// For all plans.
    #[arg(long)]
    pub global: bool,
    /// For the plans of this project.
    #[arg(short, long)]
    pub project: Option<String>,
    /// For this plan and its children; may be repeated.
    #[arg(long = "plan", value_name = "PLAN")]
    pub plans: Vec<String>,
    /// For the plans made from this action; may be repeated.
    #[arg(long = "action", value_name = "ACTION")]
    pub actions: Vec<String>,
    /// No other scope overrides it; for global ones.
    #[arg(long)]
    pub non_overridable: bool,
}

/// What `invariant list` takes.
#[derive(Debug, Args)]
pub struct InvariantListArgs {
    /// Only sentences that match this regular expression.
    #[arg(value_name = "REGEX")]
    pub pattern: Option<String>,
    /// The global ones.
    #[arg(long)]
    pub global: bool,
    /// Those of this project.
    #[arg(short, long)]
    pub project: Option<String>,
    /// Those of this plan.
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<String>,
    /// Those of this action.
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
    /// With --plan: what is in force in it, of all scopes.
    #[arg(long)]
    pub effective: bool,
}

/// What `invariant remove` takes.
#[derive(Debug, Args)]
pub struct InvariantRemoveArgs {
    /// Its id or the beginning of it.
    #[arg(value_name = "INVARIANT")]
    pub id: String,
    /// Whether to ask.
    #[command(flatten)]
    pub yes: Yes,
}
