//! `agents help`.

use clap::{Args, ValueHint};

pub(super) const HELP: &str = "\
Examples:
  agents help topics
  agents help scripting
  agents help plan use
  agents help --manual ~/.local/share/man/man1";

/// What `help` takes.
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// A topic (`topics` lists them), or the words of a command.
    #[arg(value_name = "TOPIC|COMMAND")]
    pub words: Vec<String>,
    /// Write the manual pages of all commands to this folder; `man agents-plan-use` then finds them.
    #[arg(long, value_name = "DIR", conflicts_with = "words", value_hint = ValueHint::DirPath)]
    pub manual: Option<String>,
}
