//! The command a newcomer runs first.

use clap::Args;

use super::Yes;

/// What `quickstart` takes.
#[derive(Debug, Args)]
pub struct QuickstartArgs {
    /// The git repository to work on [default: a small sample, made in the data directory].
    #[arg(value_name = "DIR")]
    pub dir: Option<String>,
    /// Make the sample repository in DIR, which must not hold anything.
    #[arg(long)]
    pub sample: bool,
    /// Do not ask, neither before installing nor before applying.
    #[command(flatten)]
    pub yes: Yes,
}

/// What `--help` adds.
pub const HELP: &str = "\
Examples:
  agents quickstart
  agents quickstart ~/src/my-project
  agents quickstart --sample ./cafe
  agents quickstart --yes --format json

Without DIR it works on a sample of its own, in the folder `quickstart` of the data directory, and never on the \
folder you are in.

It finds the languages, takes a language server for each (one that is there, else it asks and installs one into \
the data directory), registers everything under local/ (what is registered already is used again), lets a plan \
decide and do the work in a sandbox, and shows the decisions and the diff. Then it asks: before that, not one of \
the repository's files is changed.

Ctrl+C cancels the plan and takes back what this run made: the sample, the resource and the project. Language \
servers and the action local/fix-diagnostics stay; other plans may use them.";
