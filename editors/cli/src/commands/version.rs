//! `agents version`. Opens nothing: it must be instant and work whatever state the data is in.

use crate::failure::Outcome;
use crate::output::{Styled, Tone};
use crate::run::Run;

/// Version of the JSON documents and the database that people and scripts can rely on.
const SCHEMA: &str = "v3";

pub fn run(run: &Run) -> Outcome {
    let out = &run.out;
    let channel = if cfg!(debug_assertions) { "development" } else { "stable" };
    out.data("cli.name", "CleverAgents CLI");
    out.panel("cli", "CLI Version")
        .line(Styled::new("CleverAgents CLI", Tone::Strong))
        .value("version", "Version", env!("CARGO_PKG_VERSION"))
        .value("channel", "Channel", channel)
        .value("rust", "Rust", env!("AGENTS_RUST"));
    out.panel("build", "Build")
        .value("build_date", "Build Date", env!("AGENTS_BUILD_DATE"))
        .value("commit", "Commit", env!("AGENTS_COMMIT"))
        .value("schema", "Schema", SCHEMA)
        .value("platform", "Platform", format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH));
    let dependencies = out.panel("dependencies", "Dependencies");
    for (name, version) in env!("AGENTS_DEPENDENCIES").split(' ').filter_map(|d| d.split_once('=')) {
        dependencies.value(name, name, version);
    }
    drop(dependencies);
    out.ok("Version reported");
    Ok(())
}
