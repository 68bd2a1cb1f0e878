//! Reading what test runners, linters and compilers print: which tests failed, and where.
//!
//! Each parser takes the whole output and returns what it could make of it; a text it does not know gives nothing.

mod cargo_test;
mod junit;
mod node;
mod pytest;
mod ruff;
#[cfg(test)]
mod tests;

use agents_domain::diagnostics::Severity;
use agents_domain::validation::{Finding, OutputParser};
use regex::Regex;

/// The most findings that are kept of one run.
pub(super) const MAX_FINDINGS: usize = 100;

/// The most characters of a finding's message.
const MAX_MESSAGE: usize = 500;

/// What was made of an output.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Report {
    pub findings: Vec<Finding>,
    /// Tests that passed, and all that were run.
    pub tests: Option<(u64, u64)>,
}

/// What a command printed.
pub(super) struct Output<'a> {
    pub stdout: &'a str,
    pub stderr: &'a str,
    /// What it wrote to the report file.
    pub report: &'a str,
    /// The command line.
    pub command: &'a str,
}

/// Which parser reads an output, when it is not said.
pub(super) fn detected(output: &Output<'_>) -> OutputParser {
    let start = output.stdout.trim_start();
    let says = |text: &str| output.stdout.contains(text);
    let runs = |word: &str| output.command.contains(word);
    if !output.report.is_empty() || start.starts_with("<?xml") || start.starts_with("<testsuite") {
        OutputParser::Junit
    } else if says("short test summary info") || says("= FAILURES =") || runs("pytest") {
        OutputParser::Pytest
    } else if runs("cargo test") || says("test result: ") {
        OutputParser::CargoTest
    } else if start.starts_with("TAP version") || says("\u{2139} tests ") || runs("node --test") {
        OutputParser::Node
    } else if runs("ruff") {
        OutputParser::Ruff
    } else {
        OutputParser::Lines
    }
}

/// Reads an output; paths below `root` become relative to it.
pub(super) fn read(parser: OutputParser, output: &Output<'_>, root: &str) -> Report {
    let both = || format!("{}\n{}", output.stdout, output.stderr);
    let mut report = match parser {
        OutputParser::None => Report::default(),
        OutputParser::Auto => return read(detected(output), output, root),
        OutputParser::Pytest => pytest::read(output.stdout),
        OutputParser::CargoTest => cargo_test::read(&both()),
        OutputParser::Node => node::read(output.stdout),
        OutputParser::Ruff => ruff::read(output.stdout),
        OutputParser::Junit if output.report.is_empty() => junit::read(output.stdout),
        OutputParser::Junit => junit::read(output.report),
        OutputParser::Lines => Report { findings: lines(&both()), tests: None },
    };
    report.findings.truncate(MAX_FINDINGS);
    for finding in &mut report.findings {
        if let Some(file) = &mut finding.file {
            let below = file.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
            *file = below.unwrap_or(file).trim_start_matches("./").to_owned();
        }
        if finding.message.chars().count() > MAX_MESSAGE {
            finding.message = finding.message.chars().take(MAX_MESSAGE).collect::<String>() + "...";
        }
    }
    report
}

/// A pattern of ours.
#[allow(clippy::expect_used, reason = "each pattern is compiled by a test")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a regular expression")
}

/// A finding with a place.
fn at(file: &str, line: &str, column: Option<&str>, message: &str) -> Finding {
    Finding {
        file: Some(file.to_owned()),
        line: line.parse().ok(),
        column: column.and_then(|c| c.parse().ok()),
        ..Finding::error(message.trim())
    }
}

/// `file:line:column: message`, as compilers and linters print it.
fn lines(text: &str) -> Vec<Finding> {
    let place = pattern(r"^\s*(?:-->\s*)?([^\s:][^:]*\.[A-Za-z0-9_]+):(\d+)(?::(\d+))?:?\s*(.*)$");
    let mut found: Vec<Finding> = Vec::new();
    for line in text.lines() {
        let Some(parts) = place.captures(line) else { continue };
        let rest = parts[4].trim_start_matches(['-', ' ']);
        let lower = rest.to_ascii_lowercase();
        let severity = if lower.starts_with("warning") {
            Severity::Warning
        } else if lower.starts_with("note") || lower.starts_with("info") {
            Severity::Information
        } else {
            Severity::Error
        };
        let finding =
            Finding { severity, ..at(&parts[1], &parts[2], parts.get(3).map(|m| m.as_str()), rest) };
        if !rest.is_empty() && !found.contains(&finding) {
            found.push(finding);
        }
    }
    found
}
