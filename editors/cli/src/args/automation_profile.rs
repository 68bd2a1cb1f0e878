//! `agents automation-profile`.

use clap::{Args, Subcommand};

use super::{NameArgs, RemoveArgs};

/// `agents automation-profile`.
#[derive(Debug, Subcommand)]
pub enum AutomationProfileCommand {
    /// Register a profile from its file.
    #[command(after_help = "\
Examples:
  agents automation-profile add --config careful.yaml
  agents automation-profile add --update --config careful.yaml

A whole file; 0.0 never asks, 1.0 always asks, between asks below that confidence:
  name: local/careful
  description: Goes on by itself, and asks before Apply
  decompose_task: 0.0      # start Strategize
  create_tool: 0.0         # Strategize -> Execute
  select_tool: 1.0         # Execute -> Apply
  edit_code: 0.6           # decisions of Strategize
  execute_command: 0.7     # decisions of Execute
  create_file: 0.5         # fix what a validation found
  delete_content: 1.0      # Execute back to Strategize
  access_network: 1.0      # constrained Apply back to Strategize
  install_dependency: 0.5  # start child plans
  modify_config: 0.0       # retry what failed for a passing reason
  approve_plan: 0.6        # restore a checkpoint and try again
  safety:
    require_sandbox: true
    require_checkpoints: true
    allow_unsafe_tools: false
  guards:
    tool_denylist: [builtin/apply-edits]")]
    Add(AutomationProfileAddArgs),
    /// List the profiles, built-in and registered.
    #[command(
        after_help = "Examples:\n  agents automation-profile list\n  agents automation-profile list '^local/'"
    )]
    List(AutomationProfileListArgs),
    /// Show a profile.
    #[command(
        after_help = "Examples:\n  agents automation-profile show trusted\n  agents automation-profile show local/careful"
    )]
    Show(NameArgs),
    /// Remove a registered profile. Plans keep the profile they were made with.
    #[command(
        after_help = "Examples:\n  agents automation-profile remove local/careful\n  agents automation-profile remove --yes local/careful"
    )]
    Remove(RemoveArgs),
}

impl AutomationProfileCommand {
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "automation-profile add",
            Self::List(_) => "automation-profile list",
            Self::Show(_) => "automation-profile show",
            Self::Remove(_) => "automation-profile remove",
        }
    }
}

/// What `automation-profile add` takes.
#[derive(Debug, Args)]
pub struct AutomationProfileAddArgs {
    /// The file that defines it.
    #[arg(short, long, value_name = "FILE")]
    pub config: String,
    /// Replace the profile of that name.
    #[arg(short, long)]
    pub update: bool,
}

/// What `automation-profile list` takes.
#[derive(Debug, Args)]
pub struct AutomationProfileListArgs {
    /// Only names that match this regular expression.
    #[arg(value_name = "REGEX")]
    pub pattern: Option<String>,
}
