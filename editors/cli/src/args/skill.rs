//! Commands on skills.

use clap::{Args, Subcommand, ValueEnum};

use super::registry::{NameArgs, RemoveArgs};

/// `agents skill`.
#[derive(Debug, Subcommand)]
pub enum SkillCommand {
    /// Register a skill from its file.
    #[command(after_help = "\
Examples:
  agents skill add --config skills/github.yaml
  agents skill add --config skills/github.yaml --update

The least a file says:
  name: local/reader
  tools: [builtin/read_file]

Its MCP servers are started once to see what they offer.")]
    Add(SkillAddArgs),
    /// List the registered skills.
    #[command(
        after_help = "Examples:\n  agents skill list\n  agents skill list --namespace local --source mcp"
    )]
    List(SkillListArgs),
    /// Show a skill.
    #[command(after_help = "Examples:\n  agents skill show local/github")]
    Show(NameArgs),
    /// List the tools of a skill, those of the skills it includes among them.
    #[command(after_help = "Examples:\n  agents skill tools local/github")]
    Tools(NameArgs),
    /// Ask a skill's MCP servers and folders again what they offer.
    #[command(after_help = "Examples:\n  agents skill refresh local/github")]
    Refresh(NameArgs),
    /// Remove a skill with the tools that are its own.
    #[command(
        after_help = "Examples:\n  agents skill remove local/github\n  agents skill remove --yes local/github"
    )]
    Remove(RemoveArgs),
}

impl SkillCommand {
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "skill add",
            Self::List(_) => "skill list",
            Self::Show(_) => "skill show",
            Self::Tools(_) => "skill tools",
            Self::Refresh(_) => "skill refresh",
            Self::Remove(_) => "skill remove",
        }
    }
}

/// What `skill add` takes.
#[derive(Debug, Args)]
pub struct SkillAddArgs {
    /// The file that defines it.
    #[arg(short, long, value_name = "FILE")]
    pub config: String,
    /// Replace the skill of that name.
    #[arg(long)]
    pub update: bool,
}

/// What `skill list` takes.
#[derive(Debug, Args)]
pub struct SkillListArgs {
    /// Only this namespace.
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Only skills with tools of this source.
    #[arg(long)]
    pub source: Option<SkillSourceArg>,
}

/// Where tools come from.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the source of its name")]
pub enum SkillSourceArg {
    Mcp,
    AgentSkill,
    Builtin,
    Custom,
}

impl SkillSourceArg {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::AgentSkill => "agent_skill",
            Self::Builtin => "builtin",
            Self::Custom => "custom",
        }
    }
}
