//! Files in, values and problems out.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod action;
mod actor;
mod automation_profile;
mod editing;
mod language_server;
mod reference;
mod robustness;
mod settings;
mod settings_set;
mod skill;
mod tool;
mod validation;

use agents_config::Problem;

/// Problems as `line:column field: message`, one a line.
fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|p| {
            format!(
                "{}:{} {}: {}\n",
                p.range.start.line + 1,
                p.range.start.column + 1,
                p.field_path,
                p.message
            )
        })
        .collect()
}

/// What a problem points at.
fn pointed_at<'a>(text: &'a str, problem: &Problem) -> &'a str {
    let index = agents_domain::text::LineIndex::new(text);
    let offset = |position| index.offset(text, position).unwrap();
    &text[offset(problem.range.start)..offset(problem.range.end)]
}
