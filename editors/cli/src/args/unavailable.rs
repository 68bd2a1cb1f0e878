//! Commands of parts that this version does not have. They are parsed whole, so that a script learns of a wrong option
//! today, and then refused with one clear error (`commands::unavailable`).

use clap::{Args, Subcommand, ValueEnum};

use super::{NameArgs, RemoveArgs, Yes};

/// The phases that look at a project's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// While deciding.
    Strategize,
    /// While doing.
    Execute,
    /// While applying.
    Apply,
    /// Where a phase has none of its own.
    Default,
}

/// How old what is looked at may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TemporalScope {
    /// As it is now.
    Current,
    /// Also what was lately.
    Recent,
    /// All there ever was.
    All,
}

/// When a chosen environment is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvironmentPriority {
    /// Only where none is found by itself.
    Fallback,
    /// Always.
    Override,
}

/// `agents project context`.
#[derive(Debug, Subcommand)]
pub enum ProjectContextCommand {
    /// Say what of a project its actors see (not in this version).
    #[command(after_help = "\
Examples:
  agents project context set --include-path 'src/**' --exclude-path '**/*.lock' local/app
  agents project context set --view execute --hot-max-tokens 12000 --depth-gradient 1:SIGNATURES local/app")]
    Set(Box<ContextSetArgs>),
    /// Show what of a project its actors see (not in this version).
    #[command(after_help = "Examples:\n  agents project context show --view execute local/app")]
    Show(ContextShowArgs),
    /// Look at what would be seen around a place (not in this version).
    #[command(
        after_help = "Examples:\n  agents project context inspect --focus project://local/app --depth 3 local/app"
    )]
    Inspect(ContextInspectArgs),
    /// Put a context together without using it (not in this version).
    #[command(
        after_help = "Examples:\n  agents project context simulate --budget 16000 --strategy arce local/app"
    )]
    Simulate(ContextSimulateArgs),
}

impl ProjectContextCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Set(_) => "project context set",
            Self::Show(_) => "project context show",
            Self::Inspect(_) => "project context inspect",
            Self::Simulate(_) => "project context simulate",
        }
    }
}

/// What `project context set` takes.
#[derive(Debug, Args)]
pub struct ContextSetArgs {
    /// The project's name.
    pub project: String,
    /// For this phase only.
    #[arg(long, value_enum, default_value = "default")]
    pub view: View,
    /// A resource that is seen; may be repeated.
    #[arg(long, value_name = "RESOURCE")]
    pub include_resource: Vec<String>,
    /// A resource that is not seen; may be repeated.
    #[arg(long, value_name = "RESOURCE")]
    pub exclude_resource: Vec<String>,
    /// Files that are seen; may be repeated.
    #[arg(long, value_name = "GLOB")]
    pub include_path: Vec<String>,
    /// Files that are not seen; may be repeated.
    #[arg(long, value_name = "GLOB")]
    pub exclude_path: Vec<String>,
    /// Tokens at most.
    #[arg(long, value_name = "N")]
    pub hot_max_tokens: Option<u64>,
    /// Decisions kept at hand.
    #[arg(long, value_name = "N")]
    pub warm_max_decisions: Option<u64>,
    /// Decisions kept in store.
    #[arg(long, value_name = "N")]
    pub cold_max_decisions: Option<u64>,
    /// Results of a query.
    #[arg(long, value_name = "N")]
    pub query_limit: Option<u64>,
    /// Bytes of a file at most.
    #[arg(long, value_name = "BYTES")]
    pub max_file_size: Option<u64>,
    /// Bytes of all files at most.
    #[arg(long, value_name = "BYTES")]
    pub max_total_size: Option<u64>,
    /// Shorten what is old.
    #[arg(long, overrides_with = "no_summarize")]
    pub summarize: bool,
    /// Keep what is old as it is.
    #[arg(long)]
    pub no_summarize: bool,
    /// Tokens of a summary.
    #[arg(long, value_name = "N")]
    pub summary_max_tokens: Option<u64>,
    /// A way to find what matters; may be repeated.
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: Vec<String>,
    /// Steps away from the focus.
    #[arg(long, value_name = "N")]
    pub default_breadth: Option<u32>,
    /// How much of a thing is shown: a number or a name.
    #[arg(long, value_name = "DEPTH")]
    pub default_depth: Option<String>,
    /// How much is shown so many steps away; may be repeated.
    #[arg(long, value_name = "HOP:DEPTH", value_parser = gradient)]
    pub depth_gradient: Vec<(u32, String)>,
    /// The share of the tokens for the outline.
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub skeleton_ratio: Option<f64>,
    /// How old what is seen may be.
    #[arg(long, value_enum)]
    pub temporal_scope: Option<TemporalScope>,
    /// Look anew when files change.
    #[arg(long, overrides_with = "no_auto_refresh")]
    pub auto_refresh: bool,
    /// Stay with what was seen.
    #[arg(long)]
    pub no_auto_refresh: bool,
    /// The resource in which commands run.
    #[arg(long, value_name = "RESOURCE")]
    pub execution_environment: Option<String>,
    /// When that resource is used.
    #[arg(long, value_enum)]
    pub execution_env_priority: Option<EnvironmentPriority>,
    /// Forget what was set before.
    #[arg(long)]
    pub clear: bool,
}

/// `2:SIGNATURES`.
fn gradient(text: &str) -> Result<(u32, String), String> {
    let parsed = text.split_once(':').and_then(|(hop, depth)| Some((hop.parse().ok()?, depth.to_owned())));
    parsed
        .filter(|(_, depth)| !depth.is_empty())
        .ok_or_else(|| format!("`{text}` is not of the form HOP:DEPTH"))
}

fn fraction(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    parsed.ok_or_else(|| format!("`{text}` is not a number from 0 to 1"))
}

/// What `project context show` takes.
#[derive(Debug, Args)]
pub struct ContextShowArgs {
    /// The project's name.
    pub project: String,
    /// For this phase.
    #[arg(long, value_enum, default_value = "default")]
    pub view: View,
}

/// What `project context inspect` takes.
#[derive(Debug, Args)]
pub struct ContextInspectArgs {
    /// The project's name.
    pub project: String,
    /// For this phase.
    #[arg(long, value_enum, default_value = "default")]
    pub view: View,
    /// The way to find what matters.
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: Option<String>,
    /// A place to look around; may be repeated.
    #[arg(long, value_name = "URI")]
    pub focus: Vec<String>,
    /// Steps away from the focus.
    #[arg(long, value_name = "N")]
    pub breadth: Option<u32>,
    /// How much of a thing is shown: a number or a name.
    #[arg(long, value_name = "DEPTH")]
    pub depth: Option<String>,
}

/// What `project context simulate` takes.
#[derive(Debug, Args)]
pub struct ContextSimulateArgs {
    /// The project's name.
    pub project: String,
    /// For this phase.
    #[arg(long, value_enum, default_value = "default")]
    pub view: View,
    /// Tokens at most.
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u64>,
    /// A place to look around; may be repeated.
    #[arg(long, value_name = "URI")]
    pub focus: Vec<String>,
    /// A way to find what matters; may be repeated.
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: Vec<String>,
}

/// `agents context`.
#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Pin a file or place that a project's actors always see (not in this version).
    #[command(after_help = "Examples:\n  agents context add --project local/app src/api.py")]
    Add(ContextPinArgs),
    /// List what is pinned (not in this version).
    #[command(after_help = "Examples:\n  agents context list --project local/app")]
    List(ContextOfArgs),
    /// Show what a pinned place brings along (not in this version).
    #[command(after_help = "Examples:\n  agents context show --project local/app src/api.py")]
    Show(ContextPinArgs),
    /// Unpin everything of a project (not in this version).
    #[command(after_help = "Examples:\n  agents context clear --yes --project local/app")]
    Clear(ContextClearArgs),
}

impl ContextCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "context add",
            Self::List(_) => "context list",
            Self::Show(_) => "context show",
            Self::Clear(_) => "context clear",
        }
    }
}

/// A project.
#[derive(Debug, Args)]
pub struct ContextOfArgs {
    /// The project's name.
    #[arg(short, long)]
    pub project: String,
}

/// A place in a project.
#[derive(Debug, Args)]
pub struct ContextPinArgs {
    /// A path or URI.
    pub place: String,
    /// The project's name.
    #[arg(short, long)]
    pub project: String,
}

/// What `context clear` takes.
#[derive(Debug, Args)]
pub struct ContextClearArgs {
    /// The project's name.
    #[arg(short, long)]
    pub project: String,
    /// Whether to ask.
    #[command(flatten)]
    pub yes: Yes,
}

/// `agents server`.
#[derive(Debug, Subcommand)]
pub enum ServerCommand {
    /// Work with a server (not in this version).
    #[command(after_help = "Examples:\n  agents server add team https://agents.example.org")]
    Add(ServerAddArgs),
    /// List the servers (not in this version).
    #[command(after_help = "Examples:\n  agents server list")]
    List,
    /// Show a server (not in this version).
    #[command(after_help = "Examples:\n  agents server show team")]
    Show(NameArgs),
    /// Say whether servers answer (not in this version).
    #[command(after_help = "Examples:\n  agents server status")]
    Status,
    /// Stop working with a server (not in this version).
    #[command(after_help = "Examples:\n  agents server remove --yes team")]
    Remove(RemoveArgs),
}

impl ServerCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "server add",
            Self::List => "server list",
            Self::Show(_) => "server show",
            Self::Status => "server status",
            Self::Remove(_) => "server remove",
        }
    }
}

/// What `server add` takes.
#[derive(Debug, Args)]
pub struct ServerAddArgs {
    /// What it is called here.
    pub name: String,
    /// Where it is.
    pub url: String,
}

/// `agents tui`.
#[derive(Debug, Args)]
pub struct TuiArgs {
    /// How.
    #[command(subcommand)]
    pub command: Option<TuiCommand>,
}

/// `agents tui ...`.
#[derive(Debug, Subcommand)]
pub enum TuiCommand {
    /// In a browser (not in this version).
    #[command(after_help = "Examples:\n  agents tui web")]
    Web,
}

/// `agents persona`.
#[derive(Debug, Subcommand)]
pub enum PersonaCommand {
    /// Register a persona from its file (not in this version).
    #[command(after_help = "Examples:\n  agents persona add --config persona.yaml")]
    Add(UnavailableAddArgs),
    /// List the personas (not in this version).
    #[command(after_help = "Examples:\n  agents persona list")]
    List,
    /// Show a persona (not in this version).
    #[command(after_help = "Examples:\n  agents persona show reviewer")]
    Show(NameArgs),
    /// Remove a persona (not in this version).
    #[command(after_help = "Examples:\n  agents persona remove --yes reviewer")]
    Remove(RemoveArgs),
}

impl PersonaCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "persona add",
            Self::List => "persona list",
            Self::Show(_) => "persona show",
            Self::Remove(_) => "persona remove",
        }
    }
}

/// A definition.
#[derive(Debug, Args)]
pub struct UnavailableAddArgs {
    /// The file that defines it.
    #[arg(short, long, value_name = "FILE")]
    pub config: String,
    /// Replace the entry of that name.
    #[arg(long)]
    pub update: bool,
}

/// What `resource link-child` takes.
#[derive(Debug, Args)]
pub struct LinkChildArgs {
    /// The name or id of the resource above.
    pub parent: String,
    /// The name or id of the resource below.
    pub child: String,
}

/// What `resource unlink-child` takes.
#[derive(Debug, Args)]
pub struct UnlinkChildArgs {
    /// The name or id of the resource above.
    pub parent: String,
    /// The name or id of the resource below.
    pub child: String,
    /// Whether to ask.
    #[command(flatten)]
    pub yes: Yes,
}

/// Where the commands of a plan run.
#[derive(Debug, Default, Args)]
pub struct EnvironmentArgs {
    /// The resource in which commands run (not in this version).
    #[arg(long, value_name = "RESOURCE")]
    pub execution_environment: Option<String>,
    /// When that resource is used (not in this version).
    #[arg(long, value_enum)]
    pub execution_env_priority: Option<EnvironmentPriority>,
}
