//! Operations on the installation itself: whether all is well, and its data directory.

mod checks;
mod git_notes;
mod init;
mod leftovers;
pub(super) mod machine;
mod rules;

pub use git_notes::{GitNotes, share_notes};
pub use init::{
    Created, Defaults, Init, InitOutput, Initialized, Reset, SCHEMA, SchemaFacts, Standing, initialize,
    standing,
};
pub use leftovers::{Cleanup, Kept, Leftover};

use std::path::Path;
use std::time::Instant;

use agents_config::Config;
use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::file;
use crate::{Engine, Operation, Surroundings};

/// Checks the installation.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Also remove what was left behind and nobody needs.
    #[serde(default)]
    pub cleanup: bool,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works, but not everything does.
    Warn,
    /// Nothing works until this is put right.
    Error,
}

/// A check.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Check {
    pub check: String,
    pub status: Status,
    pub details: String,
    /// What to do about it; a warning always has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    /// All is well.
    pub fn ok(check: impl Into<String>, details: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Ok, details: details.into(), fix: None }
    }

    /// Something does not work as it could.
    pub fn warn(check: impl Into<String>, details: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Status::Warn, fix: Some(fix.into()), ..Self::ok(check, details) }
    }

    /// Something must be put right first.
    pub fn error(check: impl Into<String>, details: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Status::Error, fix: Some(fix.into()), ..Self::ok(check, details) }
    }
}

/// Everything that was checked.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RunOutput {
    pub checks: Vec<Check>,
    pub summary: Summary,
    /// One for each warning.
    pub recommendations: Vec<String>,
    pub errors: Vec<Issue>,
    /// What plans that are over, or workers that were killed, left behind.
    pub leftovers: Vec<Leftover>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
}

/// How many checks came out how.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Summary {
    pub total: usize,
    pub warnings: usize,
    pub errors: usize,
    pub duration_s: f64,
}

/// A check that failed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Issue {
    /// From 1.
    pub index: usize,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// The database before it is looked at.
#[derive(Clone, Copy)]
pub enum Database<'a> {
    /// There is none yet.
    Missing,
    /// It could not be opened.
    Unusable(&'a Error),
    /// It is open.
    Open(&'a Engine),
}

/// What a diagnosis starts from. An installation that is broken has no engine, so none is needed.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// The configuration; where it cannot be read, what flags and environment say.
    pub config: &'a Config,
    /// Why it cannot be read.
    pub config_error: Option<&'a Error>,
    /// Where everything that lasts is kept; absolute.
    pub data_dir: &'a Path,
    /// The database in it.
    pub database: Database<'a>,
    /// The machine.
    pub surroundings: &'a dyn Surroundings,
}

impl Operation for Run {
    const METHOD: &'static str = "diagnostics/run";
    const SUMMARY: &'static str = "Check the installation";
    type Output = RunOutput;

    fn run(self, engine: &Engine) -> Result<RunOutput> {
        let fresh = file::read(&file::path_of(&engine.config))
            .and_then(|file| engine.config.with_file(file, &|name| engine.surroundings.variable(name)));
        let situation = Situation {
            config: fresh.as_ref().unwrap_or(&engine.config),
            config_error: fresh.as_ref().err(),
            data_dir: &engine.data_dir,
            database: Database::Open(engine),
            surroundings: &*engine.surroundings,
        };
        Ok(diagnose(&situation, Vec::new(), self.cleanup))
    }
}

/// Checks the installation; a check that fails is part of the answer. `more` are checks of the caller's, shown last.
pub fn diagnose(situation: &Situation<'_>, more: Vec<Check>, cleanup: bool) -> RunOutput {
    let begin = Instant::now();
    let (cleanup, leftovers) = match situation.database {
        Database::Open(engine) => {
            let found = leftovers::find(engine);
            match cleanup {
                true => {
                    let done = leftovers::clean(engine, found);
                    (Some(done), leftovers::find(engine))
                }
                false => (None, found),
            }
        }
        _ => (cleanup.then(Cleanup::default), Vec::new()),
    };
    let mut checks = vec![checks::config_file(situation), checks::database(situation)];
    checks.extend(checks::providers(situation));
    checks.push(machine::disk_space(situation.data_dir));
    checks.extend(checks::indexes());
    checks.push(machine::file_permissions(situation.data_dir));
    checks.push(machine::git(situation.surroundings));
    checks.extend(checks::server(situation.config));
    checks.push(machine::python(situation.surroundings));
    checks.push(machine::confinement(situation.surroundings));
    if let Database::Open(engine) = situation.database {
        checks.extend(checks::code_indexes(engine));
        checks.extend(checks::language_servers(engine, situation.surroundings));
        checks.extend(rules::validations(engine, situation.surroundings));
        checks.push(rules::invariants(engine));
        checks.push(checks::plans(engine));
        checks.push(leftovers::check(&leftovers));
    }
    checks.extend(more);
    checks.push(checks::models(situation.config));

    let of = |status| checks.iter().filter(move |c| c.status == status);
    let recommendations: Vec<String> = of(Status::Warn).filter_map(|c| c.fix.clone()).collect();
    let errors: Vec<Issue> = (1..)
        .zip(of(Status::Error))
        .map(|(index, c)| Issue { index, message: format!("{}: {}", c.check, c.details), fix: c.fix.clone() })
        .collect();
    let duration_s = (begin.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
    let summary =
        Summary { total: checks.len(), warnings: of(Status::Warn).count(), errors: errors.len(), duration_s };
    RunOutput { summary, recommendations, errors, leftovers, cleanup, checks }
}
