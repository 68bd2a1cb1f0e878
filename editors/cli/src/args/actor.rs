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
    /// Say something to an actor and show its answer: outside of any plan, and nothing is changed.
    #[command(after_help = "\
Examples:
  agents actor run openai/gpt-4 'What is a monad?'
  agents actor run local/reviewer 'What do you look at?' --temperature 0.2
  agents actor run local/tutor 'And then?' --context lesson-1

With --context, what is said is remembered under that name. Tools are run in plans only.")]
    Run(ActorRunArgs),
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
            Self::Run(_) => "actor run",
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
    #[arg(short = 'u', long = "unsafe")]
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

/// What `actor run` takes.
#[derive(Debug, Args)]
pub struct ActorRunArgs {
    /// The actor: a registered one, or `<provider>/<model>`.
    pub name: String,
    /// What is said.
    pub prompt: String,
    /// Write the answer to this file.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
    /// Run it although it may do what no sandbox keeps in.
    #[arg(short = 'u', long = "unsafe")]
    pub is_unsafe: bool,
    /// Remember what is said under this name, and go on from what was said before.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Where contexts are kept [default: contexts in the data directory].
    #[arg(long, value_name = "PATH")]
    pub context_dir: Option<String>,
    /// A JSON file with values for the actor's `context`.
    #[arg(long, value_name = "FILE")]
    pub load_context: Option<String>,
    /// How freely models answer, 0.0 to 2.0, whatever the actor says.
    #[arg(short, long, value_name = "TEMPERATURE")]
    pub temperature: Option<f64>,
    /// Run streams that are `hot` or `replay`, or become graphs.
    #[arg(long)]
    pub allow_rxpy_in_run_mode: bool,
    /// A skill for its agents that have a model; may be repeated.
    #[arg(long = "skill", value_name = "SKILL")]
    pub skills: Vec<String>,
    /// Keep what models are asked and answer in this cassette.
    #[arg(long, value_name = "FILE")]
    pub record: Option<String>,
}
