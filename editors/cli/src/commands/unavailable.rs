//! What this version does not have: its commands are refused with one error that says so, and diagnostics lists it.

use agents_domain::{Error, ErrorKind};
use agents_engine::operations::system::Check;

use crate::failure::Outcome;

/// A part of the product, its commands, and what there is instead.
struct Part {
    name: &'static str,
    /// The commands begin so.
    commands: &'static [&'static str],
    instead: &'static str,
}

const PARTS: [Part; 6] = [
    Part {
        name: "context policies of projects",
        commands: &["project context", "context"],
        instead: "agents lsp index .",
    },
    Part {
        name: "resource types of one's own",
        commands: &["resource type add", "resource type remove"],
        instead: "agents resource type list",
    },
    Part {
        name: "resources that are linked by hand",
        commands: &["resource link-child", "resource unlink-child"],
        instead: "agents project link-resource <PROJECT> <RESOURCE>",
    },
    Part {
        name: "containers",
        commands: &["resource stop", "resource rebuild", "plan use --execution-environment"],
        instead: "agents resource type list",
    },
    Part { name: "working with a server", commands: &["server"], instead: "agents info" },
    Part { name: "the terminal interface", commands: &["tui", "persona"], instead: "agents plan follow" },
];

/// The command is of a part that is not there.
pub fn is_missing(path: &str) -> bool {
    part_of(path).is_some()
}

fn part_of(path: &str) -> Option<&'static Part> {
    let begins =
        |start: &&str| path.strip_prefix(*start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    PARTS.iter().find(|part| part.commands.iter().any(begins))
}

/// Refuses a command of a part that is not there.
pub fn refuse(path: &str) -> Outcome {
    let Some(part) = part_of(path) else {
        return Err(
            Error::internal(format!("`agents {path}` is of no part that is known to be missing")).into()
        );
    };
    let error = Error::new(ErrorKind::NotAvailable, format!("this version does not have {}", part.name))
        .detail(format!(
            "`agents {path}` did nothing. `agents diagnostics` lists what else this version does not have."
        ))
        .suggest(part.instead);
    Err(error.into())
}

/// What diagnostics says of it: worth knowing, nothing that could be put right.
pub fn check() -> Check {
    let parts = PARTS.iter().map(|part| format!("{} ({})", part.name, part.commands.join(", ")));
    Check::ok("Not in this version", parts.collect::<Vec<_>>().join("; "))
}
