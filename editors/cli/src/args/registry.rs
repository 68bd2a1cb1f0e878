//! Commands on what people register: resources, projects, language servers, actions.

use clap::{Args, Subcommand, ValueEnum};
use tracing::level_filters::LevelFilter;

use super::Yes;
use super::unavailable::{LinkChildArgs, ProjectContextCommand, UnavailableAddArgs, UnlinkChildArgs};

/// `agents resource`.
#[derive(Debug, Subcommand)]
pub enum ResourceCommand {
    /// Register a resource.
    #[command(after_help = "\
Examples:
  agents resource add git-checkout local/repo --path ~/src/app
  agents resource add git-checkout local/repo --path ~/src/app --branch main --update
  agents resource add fs-directory local/notes --path ~/notes -d 'Design notes'")]
    Add(ResourceAddArgs),
    /// List the registered resources.
    #[command(after_help = "Examples:\n  agents resource list\n  agents resource list --all --type '^git'")]
    List(ResourceListArgs),
    /// Show a resource.
    #[command(after_help = "Examples:\n  agents resource show local/repo\n  agents resource show 01HXR1A1B2")]
    Show(NameArgs),
    /// Remove a resource that no project uses. The files stay.
    #[command(
        after_help = "Examples:\n  agents resource remove local/repo\n  agents resource remove --yes local/repo"
    )]
    Remove(RemoveArgs),
    /// Show the files of a resource, or one of them.
    #[command(after_help = "\
Examples:
  agents resource inspect local/repo
  agents resource inspect --file src/app.py local/repo")]
    Inspect(ResourceInspectArgs),
    /// Show the resources below a resource.
    #[command(after_help = "\
Examples:
  agents resource tree local/repo
  agents resource tree --depth 1 --type git local/repo")]
    Tree(ResourceTreeArgs),
    /// Look at the types of resources.
    #[command(subcommand, arg_required_else_help = true)]
    Type(ResourceTypeCommand),
    /// Link a resource below another by hand (not in this version).
    #[command(after_help = "Examples:\n  agents resource link-child local/api local/web")]
    LinkChild(LinkChildArgs),
    /// Unlink a resource from another (not in this version).
    #[command(after_help = "Examples:\n  agents resource unlink-child --yes local/api local/web")]
    UnlinkChild(UnlinkChildArgs),
    /// Stop a container (not in this version).
    #[command(after_help = "Examples:\n  agents resource stop --yes local/box")]
    Stop(RemoveArgs),
    /// Build a container anew (not in this version).
    #[command(after_help = "Examples:\n  agents resource rebuild --yes local/box")]
    Rebuild(RemoveArgs),
}

impl ResourceCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "resource add",
            Self::List(_) => "resource list",
            Self::Show(_) => "resource show",
            Self::Remove(_) => "resource remove",
            Self::Inspect(_) => "resource inspect",
            Self::Tree(_) => "resource tree",
            Self::Type(command) => command.path(),
            Self::LinkChild(_) => "resource link-child",
            Self::UnlinkChild(_) => "resource unlink-child",
            Self::Stop(_) => "resource stop",
            Self::Rebuild(_) => "resource rebuild",
        }
    }
}

/// `agents resource type`.
#[derive(Debug, Subcommand)]
pub enum ResourceTypeCommand {
    /// Register a type of your own (not in this version).
    #[command(after_help = "Examples:\n  agents resource type add --config bucket.yaml")]
    Add(UnavailableAddArgs),
    /// Remove a type of your own (not in this version).
    #[command(after_help = "Examples:\n  agents resource type remove --yes local/bucket")]
    Remove(RemoveArgs),
    /// List the types.
    #[command(after_help = "Examples:\n  agents resource type list\n  agents resource type list '^git'")]
    List(ResourceTypeListArgs),
    /// Show a type: what registering one takes, and what is found in it.
    #[command(after_help = "Examples:\n  agents resource type show git-checkout")]
    Show(NameArgs),
}

impl ResourceTypeCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "resource type add",
            Self::Remove(_) => "resource type remove",
            Self::List(_) => "resource type list",
            Self::Show(_) => "resource type show",
        }
    }
}

/// What `resource type list` takes.
#[derive(Debug, Args)]
pub struct ResourceTypeListArgs {
    /// Only names that match this regular expression.
    #[arg(value_name = "REGEX")]
    pub pattern: Option<String>,
}

/// What `resource inspect` takes.
#[derive(Debug, Args)]
pub struct ResourceInspectArgs {
    /// Its name or id.
    pub resource: String,
    /// Show its files as a tree, as without options.
    #[arg(long, conflicts_with = "file")]
    pub tree: bool,
    /// Show this file; its path from the directory of the resource.
    #[arg(long, value_name = "PATH")]
    pub file: Option<String>,
}

/// What `resource tree` takes.
#[derive(Debug, Args)]
pub struct ResourceTreeArgs {
    /// Its name or id.
    pub resource: String,
    /// Levels below it [default: 3].
    #[arg(short, long, value_name = "N")]
    pub depth: Option<usize>,
    /// Only children of this type.
    #[arg(short, long = "type", value_name = "TYPE")]
    pub resource_type: Option<String>,
}

/// What `resource add` takes.
#[derive(Debug, Args)]
pub struct ResourceAddArgs {
    /// The type of the resource: git-checkout or fs-directory.
    #[arg(value_name = "TYPE")]
    pub resource_type: String,
    /// Its name: `[namespace/]name`.
    pub name: String,
    /// Its directory.
    #[arg(long, value_name = "DIR")]
    pub path: Option<String>,
    /// The branch plans work on; the one checked out unless given (git-checkout only).
    #[arg(long)]
    pub branch: Option<String>,
    /// What it is, for people.
    #[arg(short, long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Replace the resource of that name.
    #[arg(long)]
    pub update: bool,
}

/// What `resource list` takes.
#[derive(Debug, Args)]
pub struct ResourceListArgs {
    /// Also the resources that were discovered inside others.
    #[arg(long)]
    pub all: bool,
    /// Only types that match this regular expression.
    #[arg(short, long = "type", value_name = "REGEX")]
    pub resource_type: Option<String>,
}

/// A name.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// Its name, or where it has one its id or the beginning of it.
    pub name: String,
}

/// A name, and whether to ask.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Its name.
    pub name: String,
    /// Whether to ask.
    #[command(flatten)]
    pub yes: Yes,
}

/// `agents project`.
#[derive(Debug, Subcommand)]
pub enum ProjectCommand {
    /// Create a project.
    #[command(after_help = "\
Examples:
  agents project create local/app --resource local/repo
  agents project create -d 'Backend' --resource local/api --resource local/docs local/backend")]
    Create(ProjectCreateArgs),
    /// List the projects.
    #[command(
        after_help = "Examples:\n  agents project list\n  agents project list --namespace local '^local/a'"
    )]
    List(ProjectListArgs),
    /// Show a project.
    #[command(after_help = "Examples:\n  agents project show local/app")]
    Show(NameArgs),
    /// Delete a project. Its resources stay registered.
    #[command(
        after_help = "Examples:\n  agents project delete local/app\n  agents project delete --force --yes local/app"
    )]
    Delete(ProjectDeleteArgs),
    /// Link a resource to a project.
    #[command(after_help = "\
Examples:
  agents project link-resource local/app local/repo
  agents project link-resource --read-only local/app local/docs")]
    LinkResource(ProjectLinkArgs),
    /// Unlink a resource from a project. It stays registered.
    #[command(after_help = "Examples:\n  agents project unlink-resource local/app local/docs")]
    UnlinkResource(ProjectUnlinkArgs),
    /// Say what of a project its actors see (not in this version).
    #[command(subcommand, arg_required_else_help = true)]
    Context(ProjectContextCommand),
}

impl ProjectCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Create(_) => "project create",
            Self::List(_) => "project list",
            Self::Show(_) => "project show",
            Self::Delete(_) => "project delete",
            Self::LinkResource(_) => "project link-resource",
            Self::UnlinkResource(_) => "project unlink-resource",
            Self::Context(command) => command.path(),
        }
    }
}

/// What `project create` takes.
#[derive(Debug, Args)]
pub struct ProjectCreateArgs {
    /// Its name: `[namespace/]name`.
    pub name: String,
    /// What it is, for people.
    #[arg(short, long, value_name = "TEXT")]
    pub description: Option<String>,
    /// A resource to link, by name or id; may be repeated.
    #[arg(long = "resource", value_name = "RESOURCE")]
    pub resources: Vec<String>,
    /// What its plans must keep to; may be repeated.
    #[arg(long = "invariant", value_name = "TEXT")]
    pub invariants: Vec<String>,
    /// The actor that reconciles its invariants, instead of the default one.
    #[arg(long, value_name = "ACTOR")]
    pub invariant_actor: Option<String>,
}

/// What `project list` takes.
#[derive(Debug, Args)]
pub struct ProjectListArgs {
    /// Only names that match this regular expression.
    #[arg(value_name = "REGEX")]
    pub pattern: Option<String>,
    /// Only this namespace.
    #[arg(short, long)]
    pub namespace: Option<String>,
}

/// What `project delete` takes.
#[derive(Debug, Args)]
pub struct ProjectDeleteArgs {
    /// Its name.
    pub name: String,
    /// Cancel the plans that still work on it.
    #[arg(short, long)]
    pub force: bool,
    /// Whether to ask.
    #[command(flatten)]
    pub yes: Yes,
}

/// What `project link-resource` takes.
#[derive(Debug, Args)]
pub struct ProjectLinkArgs {
    /// The project's name.
    pub project: String,
    /// The resource's name or id.
    pub resource: String,
    /// Plans of this project may read it and never change it.
    #[arg(long)]
    pub read_only: bool,
}

/// What `project unlink-resource` takes.
#[derive(Debug, Args)]
pub struct ProjectUnlinkArgs {
    /// The project's name.
    pub project: String,
    /// The resource's name.
    pub resource: String,
    /// Whether to ask.
    #[command(flatten)]
    pub yes: Yes,
}

/// `agents lsp`.
#[derive(Debug, Subcommand)]
pub enum LspCommand {
    /// Register a language server from its file.
    #[command(after_help = "\
Examples:
  agents lsp add --config ruff.yaml
  agents lsp add --update --config ruff.yaml

The least a file says:
  name: local/ruff
  languages: [python]
  command: ruff
  args: [server]")]
    Add(LspAddArgs),
    /// List the registered language servers.
    #[command(after_help = "Examples:\n  agents lsp list\n  agents lsp list --language python")]
    List(LspListArgs),
    /// Show a language server.
    #[command(after_help = "Examples:\n  agents lsp show local/ruff")]
    Show(NameArgs),
    /// Remove a language server from the registry.
    #[command(after_help = "Examples:\n  agents lsp remove local/ruff\n  agents lsp remove --yes local/ruff")]
    Remove(RemoveArgs),
    /// Find the languages of a folder, and the known language servers for them.
    #[command(after_help = "Examples:\n  agents lsp detect\n  agents lsp detect ~/src/app --format json")]
    Detect(LspDetectArgs),
    /// Install a known language server into the data directory, and register it.
    #[command(after_help = "\
Examples:
  agents lsp install ruff
  agents lsp install --update basedpyright
  agents lsp install --from-path clangd

It is installed by its ecosystem's own client (pip, npm, cargo) into a folder of its own,
started once to see that it works, and registered as local/NAME.
`agents lsp detect` lists the servers that are known for a folder.")]
    Install(LspInstallArgs),
    /// Start a language server to see what it really offers.
    #[command(after_help = "\
Examples:
  agents lsp check local/ruff
  agents lsp check --config my-server.yaml --root .")]
    Check(LspCheckArgs),
    /// Index the source files of a folder: what they declare, import and use, from syntax alone.
    #[command(after_help = "\
Examples:
  agents lsp index
  agents lsp index ~/src/app --rebuild

Only what changed since the last time is read. What a folder ignores (.gitignore, .ignore, folders of
dependencies) is left out, and so are files over 1 MB.")]
    Index(LspIndexArgs),
    /// Serve plans and decisions to an editor over stdin and stdout.
    #[command(after_help = "\
Examples:
  agents lsp serve
  agents lsp serve --proxy auto
  agents lsp serve --proxy local/basedpyright,local/ruff
  agents lsp serve --log-level debug --log-file /tmp/agents-lsp.log

An editor starts it; stdout carries the protocol and nothing else.")]
    Serve(LspServeArgs),
    /// Show or end the language servers that are kept warm for the next editor.
    #[command(after_help = "\
Examples:
  agents lsp pool
  agents lsp pool --stop

With the pool on (the key lsp.pool.enabled), `agents lsp serve --proxy` leaves a fresh server of the
same kind waiting when it ends, and the next editor over the same folder takes it, with the project
already read.")]
    Pool(LspPoolArgs),
}

impl LspCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "lsp add",
            Self::List(_) => "lsp list",
            Self::Show(_) => "lsp show",
            Self::Remove(_) => "lsp remove",
            Self::Detect(_) => "lsp detect",
            Self::Install(_) => "lsp install",
            Self::Check(_) => "lsp check",
            Self::Index(_) => "lsp index",
            Self::Serve(_) => "lsp serve",
            Self::Pool(_) => "lsp pool",
        }
    }
}

/// What `lsp add` takes.
#[derive(Debug, Args)]
pub struct LspAddArgs {
    /// The file that defines it.
    #[arg(short, long, value_name = "FILE")]
    pub config: String,
    /// Replace the server of that name.
    #[arg(short, long)]
    pub update: bool,
}

/// What `lsp list` takes.
#[derive(Debug, Args)]
pub struct LspListArgs {
    /// Only names that match this regular expression.
    #[arg(value_name = "REGEX")]
    pub pattern: Option<String>,
    /// Only this namespace.
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Only servers of this language.
    #[arg(long)]
    pub language: Option<String>,
}

/// What `lsp detect` takes.
#[derive(Debug, Args)]
pub struct LspDetectArgs {
    /// The folder.
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: String,
}

/// What `lsp index` takes.
#[derive(Debug, Args)]
pub struct LspIndexArgs {
    /// The folder.
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: String,
    /// Throw away what is known and read every file again.
    #[arg(long)]
    pub rebuild: bool,
}

/// What `lsp install` takes.
#[derive(Debug, Args)]
pub struct LspInstallArgs {
    /// The server, by its name in the list of `agents lsp detect`.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Install it again when it is there, in the version that this program knows.
    #[arg(short, long)]
    pub update: bool,
    /// Install nothing: register the one that is on PATH.
    #[arg(long, conflicts_with = "update")]
    pub from_path: bool,
    /// Do not register it.
    #[arg(long)]
    pub no_register: bool,
}

/// What `lsp check` takes.
#[derive(Debug, Args)]
pub struct LspCheckArgs {
    /// A registered server, or a known one that is installed.
    #[arg(value_name = "NAME", required_unless_present = "config", conflicts_with = "config")]
    pub name: Option<String>,
    /// The file that defines it; it is not registered.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<String>,
    /// Start it over this folder instead of an empty one.
    #[arg(long, value_name = "DIR")]
    pub root: Option<String>,
    /// How long it may take to start.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub timeout: Option<u32>,
}

/// How much the language server logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Everything that helps to find a defect.
    Debug,
    /// What it does.
    Info,
    /// What is odd.
    Warning,
    /// What failed.
    Error,
}

impl LogLevel {
    /// As the log takes it.
    pub fn filter(self) -> LevelFilter {
        match self {
            Self::Debug => LevelFilter::DEBUG,
            Self::Info => LevelFilter::INFO,
            Self::Warning => LevelFilter::WARN,
            Self::Error => LevelFilter::ERROR,
        }
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What `lsp serve` takes.
#[derive(Debug, Args)]
pub struct LspServeArgs {
    /// How much to log.
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    pub log_level: LogLevel,
    /// Log to this file instead of stderr.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<std::path::PathBuf>,
    /// Talk over stdin and stdout, which it always does.
    #[arg(long)]
    pub stdio: bool,
    /// Language servers whose features are served too: none, all that are registered, or these. Of several that format,
    /// rename or colour a language, the first does.
    #[arg(long, value_name = "off|auto|NAME", default_value = "off", value_delimiter = ',')]
    pub proxy: Vec<String>,
}

/// What `lsp pool` takes.
#[derive(Debug, Args)]
pub struct LspPoolArgs {
    /// End the pool and the servers that wait in it.
    #[arg(long)]
    pub stop: bool,
    /// Be the pool.
    #[arg(long, hide = true, conflicts_with = "stop")]
    pub serve: bool,
}

/// `agents action`.
#[derive(Debug, Subcommand)]
pub enum ActionCommand {
    /// Register an action from its file.
    #[command(after_help = "\
Examples:
  agents action create --config fix-diagnostics.yaml

The least a file says:
  name: local/fix-diagnostics
  description: Fix what the language servers report
  definition_of_done: No finding that has a safe fix is left
  strategy_actor: builtin/fix-diagnostics
  execution_actor: builtin/fix-diagnostics")]
    Create(ConfigFileArgs),
    /// List the actions.
    #[command(
        after_help = "Examples:\n  agents action list\n  agents action list --state archived --namespace local"
    )]
    List(ActionListArgs),
    /// Show an action.
    #[command(after_help = "Examples:\n  agents action show local/fix-diagnostics")]
    Show(NameArgs),
    /// Take an action out of use. Its plans go on.
    #[command(after_help = "Examples:\n  agents action archive local/old-action")]
    Archive(NameArgs),
}

impl ActionCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Create(_) => "action create",
            Self::List(_) => "action list",
            Self::Show(_) => "action show",
            Self::Archive(_) => "action archive",
        }
    }
}

/// A file.
#[derive(Debug, Args)]
pub struct ConfigFileArgs {
    /// The file that defines it.
    #[arg(short, long, value_name = "FILE")]
    pub config: String,
}

/// The states of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ActionStateArg {
    /// Plans can be made from it.
    Available,
    /// It was taken out of use.
    Archived,
    /// Either.
    All,
}

/// What `action list` takes.
#[derive(Debug, Args)]
pub struct ActionListArgs {
    /// Only names that match this regular expression.
    #[arg(value_name = "REGEX")]
    pub pattern: Option<String>,
    /// Only this namespace.
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Only actions in this state; those available unless given.
    #[arg(short, long, value_enum)]
    pub state: Option<ActionStateArg>,
}
