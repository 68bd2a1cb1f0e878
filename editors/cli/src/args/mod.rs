//! The command line: options, groups and commands, with the words that `--help` shows.

mod actor;
mod automation_profile;
mod help;
mod invariant;
mod mcp;
mod plan;
mod quickstart;
mod registry;
mod skill;
mod system;
#[cfg(test)]
mod tests;
mod unavailable;
mod validation;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::output::Format;

pub use actor::{ActorAddArgs, ActorCommand, ActorRunArgs};
pub use automation_profile::{AutomationProfileAddArgs, AutomationProfileCommand, AutomationProfileListArgs};
pub use help::HelpArgs;
pub use invariant::{InvariantAddArgs, InvariantCommand, InvariantListArgs, InvariantRemoveArgs};
pub use mcp::{McpCommand, McpServeArgs};
pub use plan::{
    ApplyArgs, CancelArgs, CorrectArgs, CorrectMode, ExplainArgs, FollowArgs, GuardArgs, PlanCommand,
    PlanListArgs, PromptArgs, RevertArgs, RollbackArgs, StartArgs, TreeArgs, UseArgs,
};
pub use quickstart::QuickstartArgs;
pub use registry::{
    ActionCommand, ActionListArgs, ActionStateArg, ConfigFileArgs, LogLevel, LspAddArgs, LspCheckArgs,
    LspCommand, LspDetectArgs, LspIndexArgs, LspInstallArgs, LspListArgs, LspPoolArgs, LspServeArgs,
    NameArgs, ProjectCommand, ProjectCreateArgs, ProjectDeleteArgs, ProjectLinkArgs, ProjectListArgs,
    ProjectUnlinkArgs, RemoveArgs, ResourceAddArgs, ResourceCommand, ResourceInspectArgs, ResourceListArgs,
    ResourceTreeArgs, ResourceTypeCommand,
};
pub use skill::{SkillAddArgs, SkillCommand, SkillListArgs};
pub use system::{ConfigCommand, ConfigGetArgs, ConfigListArgs, ConfigSetArgs, DiagnosticsArgs};
pub use unavailable::{ContextCommand, EnvironmentArgs, PersonaCommand, ServerCommand, TuiArgs};
pub use validation::{
    ToolAddArgs, ToolCommand, ToolListArgs, ToolTypeArg, ValidationAddArgs, ValidationAttachArgs,
    ValidationCommand, ValidationDetachArgs, expand,
};

/// Plans that change code: decided, sandboxed, explained, applied.
#[derive(Debug, Parser)]
#[command(
    name = "agents",
    display_name = "CleverAgents",
    version,
    about = "Plans that change code: what was decided and why, in a sandbox until it is applied",
    after_help = "\
To see it all once:
  agents quickstart

The usual path:
  agents resource add git-checkout local/repo --path .
  agents project create local/app --resource local/repo
  agents lsp add --config ruff.yaml
  agents action create --config fix-diagnostics.yaml
  agents plan use local/fix-diagnostics local/app
  agents plan execute <PLAN>
  agents plan diff <PLAN>
  agents plan apply <PLAN>",
    subcommand_required = false,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// Install the completion script of a shell (that of `$SHELL` unless named).
    #[arg(long, value_name = "SHELL", num_args = 0..=1, conflicts_with = "show_completion")]
    pub install_completion: Option<Option<Shell>>,
    /// Print the completion script of a shell (that of `$SHELL` unless named).
    #[arg(long, value_name = "SHELL", num_args = 0..=1)]
    pub show_completion: Option<Option<Shell>>,
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options of every command; they may stand before or after it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Where everything that lasts is kept [default: ~/.cleveragents] [env: CLEVERAGENTS_DATA_DIR].
    #[arg(long, global = true, value_name = "PATH")]
    pub data_dir: Option<String>,
    /// The configuration file [default: config.toml in the data directory] [env: CLEVERAGENTS_CONFIG_PATH].
    #[arg(long, global = true, value_name = "PATH")]
    pub config_path: Option<String>,
    /// How output is shown [default: rich on a terminal, else plain] [env: CLEVERAGENTS_FORMAT].
    #[arg(long, global = true, value_name = "FORMAT", value_enum, hide_possible_values = true, help = FORMAT_HELP)]
    pub format: Option<Format>,
    /// Log more to stderr and the log file: -v errors, -vv warnings, -vvv information, -vvvv details, -vvvvv all.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Show results only: no progress, no hints, no messages but warnings and errors. JSON and YAML stay whole.
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

const FORMAT_HELP: &str = "How output is shown: rich, color, table, plain, json, yaml [default: rich on a terminal, else \
                           plain] [env: CLEVERAGENTS_FORMAT]";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// See it all once: find problems in a repository, decide, fix them in a sandbox, look, apply.
    #[command(after_help = quickstart::HELP)]
    Quickstart(QuickstartArgs),
    /// Show the version of the program and how it was built.
    #[command(after_help = "Examples:\n  agents version\n  agents version --format json")]
    Version,
    /// Show where things are kept and what state they are in.
    #[command(after_help = "Examples:\n  agents info\n  agents --data-dir ./data info --format yaml")]
    Info,
    /// Check whether all is well, and say what to do where it is not.
    #[command(after_help = "Examples:\n  agents diagnostics\n  agents diagnostics --cleanup")]
    Diagnostics(DiagnosticsArgs),
    /// Make the data directory with everything in it, or make it anew and keep a backup.
    #[command(after_help = "Examples:\n  agents init\n  agents --data-dir ./data init --yes")]
    Init(InitArgs),
    /// Register what plans work on.
    #[command(subcommand, arg_required_else_help = true)]
    Resource(ResourceCommand),
    /// Group resources into projects.
    #[command(subcommand, arg_required_else_help = true)]
    Project(ProjectCommand),
    /// Register language servers, and serve editors.
    #[command(subcommand, arg_required_else_help = true)]
    Lsp(LspCommand),
    /// Register skills: collections of tools for actors.
    #[command(subcommand, arg_required_else_help = true)]
    Skill(SkillCommand),
    /// Lend language servers and plans to other agents.
    #[command(subcommand, arg_required_else_help = true)]
    Mcp(McpCommand),
    /// Register what is checked before a plan can be applied, and attach it.
    #[command(subcommand, arg_required_else_help = true)]
    Validation(ValidationCommand),
    /// Look at tools and validations, and remove them.
    #[command(subcommand, arg_required_else_help = true)]
    Tool(ToolCommand),
    /// Register actors: agents and how they work together.
    #[command(subcommand, arg_required_else_help = true)]
    Actor(ActorCommand),
    /// Register what plans are made from.
    #[command(subcommand, arg_required_else_help = true)]
    Action(ActionCommand),
    /// Say what plans must keep to: everywhere, in a project, for an action, in a plan.
    #[command(subcommand, arg_required_else_help = true)]
    Invariant(InvariantCommand),
    /// Register how much plans do without asking.
    #[command(subcommand, arg_required_else_help = true)]
    AutomationProfile(AutomationProfileCommand),
    /// Make plans, follow them, see why they do what they do, and apply them.
    #[command(subcommand, arg_required_else_help = true)]
    Plan(PlanCommand),
    /// Pin what a project's actors always see (not in this version).
    #[command(subcommand, arg_required_else_help = true)]
    Context(ContextCommand),
    /// Work with a server (not in this version).
    #[command(subcommand, arg_required_else_help = true)]
    Server(ServerCommand),
    /// Work in a terminal interface (not in this version).
    #[command(after_help = "Examples:\n  agents tui\n  agents tui web")]
    Tui(TuiArgs),
    /// Personas of the terminal interface (not in this version).
    #[command(subcommand, arg_required_else_help = true)]
    Persona(PersonaCommand),
    /// Set, show and list configuration keys.
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// Explain what holds for all commands, or show the help of one; write the manual pages.
    #[command(after_help = help::HELP)]
    Help(HelpArgs),
    /// Work on a plan until it pauses; started by the other commands.
    #[command(hide = true)]
    PlanWorker {
        /// The plan's id.
        #[arg(value_name = "PLAN")]
        plan: String,
    },
}

/// Skips the question of a command that asks before it acts.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Yes {
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub yes: bool,
}

/// What `init` sets up.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct InitArgs {
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub yes: bool,
    /// Let the git checkout in this directory fetch, push and keep the notes that say which decisions are behind its
    /// commits: two refspecs of its remote and notes.rewriteRef. Nothing that is set up already is touched.
    #[arg(long, conflicts_with = "yes")]
    pub git_notes: bool,
}

impl Command {
    /// The words that name the command, as output repeats them.
    pub fn path(&self) -> &'static str {
        match self {
            Command::Version => "version",
            Command::Info => "info",
            Command::Diagnostics(_) => "diagnostics",
            Command::Init(_) => "init",
            Command::Quickstart(_) => "quickstart",
            Command::Resource(command) => command.path(),
            Command::Project(command) => command.path(),
            Command::Lsp(command) => command.path(),
            Command::Skill(command) => command.path(),
            Command::Mcp(command) => command.path(),
            Command::Validation(command) => command.path(),
            Command::Tool(command) => command.path(),
            Command::Action(command) => command.path(),
            Command::Actor(command) => command.path(),
            Command::Invariant(command) => command.path(),
            Command::AutomationProfile(command) => command.path(),
            Command::Plan(command) => command.path(),
            Command::Config(command) => command.path(),
            Command::Context(command) => command.path(),
            Command::Server(command) => command.path(),
            Command::Tui(TuiArgs { command: Some(_) }) => "tui web",
            Command::Tui(_) => "tui",
            Command::Persona(command) => command.path(),
            Command::Help(_) => "help",
            Command::PlanWorker { .. } => "plan-worker",
        }
    }
}

/// The names a value enum knows, for messages.
pub fn names<T: ValueEnum>() -> String {
    let names = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    names.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
}
