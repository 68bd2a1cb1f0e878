//! Commands on validations and tools.

use std::ffi::OsString;

use clap::{Args, CommandFactory, Subcommand, ValueEnum};

use super::registry::{NameArgs, RemoveArgs};
use super::{Cli, Yes};

/// `agents validation`.
#[derive(Debug, Subcommand)]
pub enum ValidationCommand {
    /// Register a validation from its file.
    #[command(after_help = "\
Examples:
  agents validation add --config tests.yaml
  agents validation add --update --informational --config bundle-size.yaml

The least a file says:
  name: local/tests
  command: pytest -q")]
    Add(ValidationAddArgs),
    /// Attach a validation to a resource: for all plans, for those of a project, or for one plan.
    #[command(after_help = "\
Examples:
  agents validation attach local/repo local/tests
  agents validation attach --project local/app local/repo local/tests --coverage-threshold 90
  agents validation attach --project local/app local/tests
  agents validation attach --plan 01HXM8C2ZK local/repo builtin/syntax
  agents validation attach local/repo builtin/command --command 'cargo test'

Built in: builtin/command, builtin/no-new-diagnostics, builtin/syntax.
It prints the id that `agents validation detach` takes.")]
    Attach(ValidationAttachArgs),
    /// Detach a validation. It stays registered.
    #[command(
        after_help = "Examples:\n  agents validation detach 01HXM5A1B2\n  agents validation detach --yes 01HXM5A1B2"
    )]
    Detach(ValidationDetachArgs),
}

impl ValidationCommand {
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "validation add",
            Self::Attach(_) => "validation attach",
            Self::Detach(_) => "validation detach",
        }
    }
}

/// What `validation add` takes.
#[derive(Debug, Args)]
pub struct ValidationAddArgs {
    /// The name the file gives it; anything else is refused. May be left out.
    pub name: Option<String>,
    /// The file that defines it.
    #[arg(short, long, value_name = "FILE")]
    pub config: String,
    /// It must pass before a plan can be applied, whatever the file says.
    #[arg(long, conflicts_with = "informational")]
    pub required: bool,
    /// It is reported and blocks nothing, whatever the file says.
    #[arg(long)]
    pub informational: bool,
    /// Replace the validation of that name. Its attachments stay.
    #[arg(long)]
    pub update: bool,
}

/// What `validation attach` takes.
#[derive(Debug, Args)]
#[command(override_usage = "agents validation attach [--project <PROJECT> | --plan <PLAN>] <RESOURCE> \
                            <VALIDATION> [--<KEY> <VALUE>]...")]
pub struct ValidationAttachArgs {
    /// The resource's name or id, then the validation's name. With --project the resource may be left out: then it is
    /// attached to each resource of the project.
    #[arg(value_name = "RESOURCE VALIDATION", num_args = 1..=2, required = true)]
    pub names: Vec<String>,
    /// Only for plans of this project.
    #[arg(long, conflicts_with = "plan")]
    pub project: Option<String>,
    /// Only for this plan and its child plans.
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<String>,
    /// An argument of the validation; usually written `--KEY VALUE`.
    #[arg(long = "arg", value_name = "KEY=VALUE", hide = true)]
    pub args: Vec<String>,
}

/// What `validation detach` takes.
#[derive(Debug, Args)]
pub struct ValidationDetachArgs {
    /// The attachment's id or its beginning.
    #[arg(value_name = "ATTACHMENT")]
    pub attachment: String,
    /// Whether to ask.
    #[command(flatten)]
    pub yes: Yes,
}

/// `agents tool`.
#[derive(Debug, Subcommand)]
pub enum ToolCommand {
    /// Register a tool from its file.
    #[command(after_help = "\
Examples:
  agents tool add --config count-lines.yaml
  agents tool add --update --config count-lines.yaml

The least a file says:
  name: local/count-lines
  description: Counts the lines of a file
  read_only: true
  input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
  code: |
    return {\"lines\": len(ctx.resources[\"repo\"].read(params[\"path\"]).splitlines())}")]
    Add(ToolAddArgs),
    /// List the registered tools and validations.
    #[command(after_help = "\
Examples:
  agents tool list
  agents tool list --type validation --namespace local
  agents tool list --namespace builtin")]
    List(ToolListArgs),
    /// Show a tool or a validation, and where it is attached.
    #[command(after_help = "Examples:\n  agents tool show local/tests\n  agents tool show builtin/syntax")]
    Show(NameArgs),
    /// Remove a tool or a validation. A validation is detached first.
    #[command(
        after_help = "Examples:\n  agents tool remove local/tests\n  agents tool remove --yes local/tests"
    )]
    Remove(RemoveArgs),
}

impl ToolCommand {
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "tool add",
            Self::List(_) => "tool list",
            Self::Show(_) => "tool show",
            Self::Remove(_) => "tool remove",
        }
    }
}

/// What `tool add` takes.
#[derive(Debug, Args)]
pub struct ToolAddArgs {
    /// The file that defines it.
    #[arg(short, long, value_name = "FILE")]
    pub config: String,
    /// Replace a tool of that name.
    #[arg(long)]
    pub update: bool,
}

/// The kinds of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ToolTypeArg {
    /// Plain tools.
    Tool,
    /// Validations.
    Validation,
}

/// What `tool list` takes.
#[derive(Debug, Args)]
pub struct ToolListArgs {
    /// Only names that match this regular expression.
    #[arg(value_name = "REGEX")]
    pub pattern: Option<String>,
    /// Only this namespace.
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Only this source: builtin, custom, mcp, agent_skill, wrapped.
    #[arg(long)]
    pub source: Option<String>,
    /// Only this kind.
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    pub tool_type: Option<ToolTypeArg>,
}

/// Rewrites the free `--KEY VALUE` of `validation attach` to `--arg=KEY=VALUE`; other command lines stay as they are.
pub fn expand(args: &[OsString]) -> Vec<OsString> {
    let command = Cli::command();
    let Some(attach) = command.find_subcommand("validation").and_then(|v| v.find_subcommand("attach")) else {
        return args.to_vec();
    };
    let known: Vec<String> = command
        .get_arguments()
        .chain(attach.get_arguments())
        .filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
        .chain(["--help".to_owned(), "--version".to_owned()])
        .collect();
    let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let Some(at) = words.windows(2).position(|pair| pair == ["validation", "attach"]) else {
        return args.to_vec();
    };
    let mut out: Vec<OsString> = args[..at + 2].to_vec();
    let mut rest = args[at + 2..].iter().zip(&words[at + 2..]).peekable();
    while let Some((raw, word)) = rest.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let free = option.len() > 2 && option.starts_with("--") && !known.iter().any(|k| k == option);
        if !free {
            out.push(raw.clone());
            continue;
        }
        let value =
            value.or_else(|| rest.next_if(|(_, next)| !next.starts_with("--")).map(|(_, v)| v.clone()));
        match value {
            Some(value) => out.push(format!("--arg={}={value}", &option[2..]).into()),
            // Without a value the parser says that there is no such option.
            None => out.push(raw.clone()),
        }
    }
    out
}
