//! `agents mcp`: language servers and plans as tools of other agents.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::LogLevel;

/// `agents mcp`.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Lend language servers and plans to an agent that speaks the Model Context Protocol, over stdin and stdout.
    #[command(after_help = "\
Examples:
  agents mcp serve
  agents mcp serve --root ~/code/app --server local/basedpyright --write

How an agent is told of it (the usual form of an MCP client's configuration):
  {\"mcpServers\": {\"agents\": {\"command\": \"agents\", \"args\": [\"mcp\", \"serve\", \"--root\", \"/path/to/app\"]}}}")]
    Serve(McpServeArgs),
}

impl McpCommand {
    /// See `Command::path`.
    pub fn path(&self) -> &'static str {
        match self {
            Self::Serve(_) => "mcp serve",
        }
    }
}

/// What `mcp serve` takes.
#[derive(Debug, Args)]
pub struct McpServeArgs {
    /// The directory the agent works in [default: this one].
    #[arg(long, value_name = "DIRECTORY")]
    pub root: Option<String>,
    /// Lend only this language server; may be given more than once [default: all that are registered].
    #[arg(long, value_name = "NAME")]
    pub server: Vec<String>,
    /// Let the agent have code actions written to files of the directory.
    #[arg(long)]
    pub write: bool,
    /// Lend language servers only, no plans.
    #[arg(long)]
    pub no_plans: bool,
    /// How much to log.
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "warning")]
    pub log_level: LogLevel,
    /// Log to this file instead of stderr.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
}
