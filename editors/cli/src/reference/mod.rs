//! What docs/reference says of the command line, written from the parser and the types, so that it cannot go stale.

mod manual;
mod markdown;
mod schemas;

use clap::{Command, CommandFactory};

pub use manual::manual;
pub use markdown::command_line;
pub use schemas::{Schema, schemas};

use crate::args::Cli;

/// The program with the full names of its commands filled in.
fn program() -> Command {
    let mut program = Cli::command();
    program.build();
    program
}

/// Not hidden, and not the `help` that the parser adds to groups.
fn is_ours(at_top: bool, sub: &Command) -> bool {
    !sub.is_hide_set() && (at_top || sub.get_name() != "help")
}

/// The commands that do something, in the order of help, with the words that name them (`plan use`).
fn leaves(program: &Command) -> Vec<(String, &Command)> {
    fn walk<'c>(command: &'c Command, path: &str, found: &mut Vec<(String, &'c Command)>) {
        for sub in command.get_subcommands().filter(|sub| is_ours(path.is_empty(), sub)) {
            let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
            if sub.has_subcommands() {
                walk(sub, &path, found);
            } else {
                found.push((path, sub));
            }
        }
    }
    let mut found = Vec::new();
    walk(program, "", &mut found);
    found
}
