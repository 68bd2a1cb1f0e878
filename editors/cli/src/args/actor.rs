//! `agents actor`.

use clap::{Args, Subcommand};

use super::NameArgs;

/// `agents actor`.
#[derive(Debug, Subcommand)]
pub enum ActorCommand {
    /// Register an actor from its file.
    #[command(after_help = "\
Examples:
  agents actor add --config reviewer.yaml
  agents actor add --update --config reviewer.yaml
  agents actor add --config pipeline.yaml --skill local/file-ops --skill local/git-ops

The least a file says:
  name: local/reviewer
  actors:
    reviewer:
      type: llm
      config:
        actor: openai/gpt-4
        system_prompt: You review code.")]
    Add(ActorAddArgs),
    /// List the actors: those of the program, well-known models, and registered ones.
    #[command(after_help = "Examples:\n  agents actor list\n  agents actor list --format json")]
    List,
    /// Show an actor.
    #[command(after_help = "Examples:\n  agents actor show local/reviewer")]
    Show(NameArgs),
    /// Remove an actor from the registry, and say what it leaves behind. Its file stays.
    #[command(after_help = "Examples:\n  agents actor remove local/reviewer")]
    Remove(NameArgs),
}

impl ActorCommand {
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "actor add",
            Self::List => "actor list",
            Self::Show(_) => "actor show",
            Self::Remove(_) => "actor remove",
        }
    }
}

/// What `actor add` takes.
#[derive(Debug, Args)]
pub struct ActorAddArgs {
    /// The file that defines it.
    #[arg(short, long, value_name = "FILE")]
    pub config: String,
    /// Replace the actor of that name.
    #[arg(long)]
    pub update: bool,
    /// It may do what no sandbox keeps in, whatever its file says.
    #[arg(short, long = "unsafe")]
    pub is_unsafe: bool,
    /// A skill for its agents that have a model; may be repeated.
    #[arg(long = "skill", value_name = "SKILL")]
    pub skills: Vec<String>,
    /// The provider of its models, whatever its file says.
    #[arg(long, hide = true)]
    pub provider: Option<String>,
    /// Its model, whatever its file says.
    #[arg(long, hide = true)]
    pub model: Option<String>,
}
