//! Commands on the installation itself: diagnostics, init, configuration.

use clap::{Args, Subcommand};

/// What `diagnostics` takes.
#[derive(Debug, Args)]
pub struct DiagnosticsArgs {
    /// Also remove what ended plans and killed workers left behind and nobody needs.
    #[arg(long)]
    pub cleanup: bool,
}

/// `agents config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Set a key in the configuration file.
    #[command(after_help = "\
Examples:
  agents config set core.format table
  agents config set core.automation-profile trusted
  agents config set --project local/app core.automation-profile review")]
    Set(ConfigSetArgs),
    /// Show the value of a key and where it comes from.
    #[command(after_help = "\
Examples:
  agents config get core.automation-profile
  agents config get --project local/app plan.concurrency")]
    Get(ConfigGetArgs),
    /// List the keys with their values in force.
    #[command(after_help = "\
Examples:
  agents config list
  agents config list 'core.log.*'
  agents config list --filter-values '^supervised$'")]
    List(ConfigListArgs),
}

impl ConfigCommand {
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Set(_) => "config set",
            Self::Get(_) => "config get",
            Self::List(_) => "config list",
        }
    }
}

/// What `config set` takes.
#[derive(Debug, Args)]
pub struct ConfigSetArgs {
    /// The key, such as core.format.
    pub key: String,
    /// Its value; lists as `a,b,c`.
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// For this project only.
    #[arg(short, long)]
    pub project: Option<String>,
}

/// What `config get` takes.
#[derive(Debug, Args)]
pub struct ConfigGetArgs {
    /// The key, such as core.format.
    pub key: String,
    /// As it is for this project.
    #[arg(short, long)]
    pub project: Option<String>,
}

/// What `config list` takes.
#[derive(Debug, Args)]
pub struct ConfigListArgs {
    /// Only keys that match: a subtree such as `index.*`, or a regular expression.
    #[arg(value_name = "PATTERN")]
    pub pattern: Option<String>,
    /// Only values that match this regular expression.
    #[arg(long, value_name = "REGEX")]
    pub filter_values: Option<String>,
    /// As they are for this project.
    #[arg(short, long)]
    pub project: Option<String>,
}
