//! One function per command: calls the facade and writes what came of it.

pub mod action;
mod actor;
mod automation_profile;
pub mod completion;
pub mod config;
pub mod diagnostics;
pub mod help;
mod info;
pub mod init;
mod invariant;
pub mod lsp;
pub mod mcp;
pub mod plan;
mod project;
mod quickstart;
mod resource;
mod skill;
mod tool;
pub mod unavailable;
mod validation;
pub mod version;
pub mod worker;

use agents_domain::Error;
use serde::Serialize;
use serde_json::Value;

pub use actor::RunReport as ActorRunReport;
pub use quickstart::Report as QuickstartReport;

use crate::args::Command;
use crate::failure::{Failure, Outcome};
use crate::output::human::counted;
use crate::output::{PanelHandle, Styled, id};
use crate::run::Run;

/// Runs a command that writes one document.
pub fn run(run: &Run, command: Command) -> Outcome {
    match command {
        Command::Version => version::run(run),
        Command::Info => info::run(run),
        Command::Quickstart(args) => quickstart::run(run, args),
        Command::Resource(command) => resource::run(run, command),
        Command::Project(command) => project::run(run, command),
        Command::Lsp(command) => lsp::run(run, command),
        Command::Skill(command) => skill::run(run, command),
        Command::Validation(command) => validation::run(run, command),
        Command::Tool(command) => tool::run(run, command),
        Command::Action(command) => action::run(run, command),
        Command::Actor(command) => actor::run(run, command),
        Command::Invariant(command) => invariant::run(run, command),
        Command::AutomationProfile(command) => automation_profile::run(run, command),
        Command::Plan(command) => plan::run(run, command),
        Command::Config(command) => config::run(run, command),
        Command::Context(_) | Command::Server(_) | Command::Tui(_) | Command::Persona(_) => {
            unavailable::refuse(command.path())
        }
        Command::Diagnostics(args) => diagnostics::run(run, None, &args),
        Command::Init(args) => init::run(run, None, args),
        Command::Help(args) => help::run(run, args),
        Command::Mcp(_) => Err(Error::internal("a server writes no document").into()),
        Command::PlanWorker { .. } => Err(Error::internal("a worker writes no document").into()),
    }
}

/// What an operation returned, as programs get it.
fn json(output: &impl Serialize) -> Result<Value, Failure> {
    Ok(serde_json::to_value(output).map_err(|e| Error::internal(format!("the answer is no JSON: {e}")))?)
}

/// `1 plan listed`, `2 plans listed`.
fn listed(n: usize, one: &str, many: &str) -> String {
    format!("{} listed", counted(n as u64, one, many))
}

/// The texts of a JSON list.
fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A text of a JSON object, or nothing.
fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// A row that says `none` where there is nothing.
fn optional(panel: &PanelHandle, label: &str, value: &Value) {
    match value.as_str().filter(|text| !text.is_empty()) {
        Some(text) => panel.row(label, id(text)),
        None => panel.row(label, crate::output::dim("(none)")),
    };
}

/// A list as lines `- item`.
fn bullets(panel: &PanelHandle, items: impl IntoIterator<Item = impl Into<Styled>>) {
    for item in items {
        panel.line(Styled::from("- ").and(item));
    }
}
