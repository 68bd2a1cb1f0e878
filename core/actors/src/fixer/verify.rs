//! Whether edits made anything worse: a new error of any server, or a new syntax error.

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::QualifiedName;
use agents_domain::diagnostics::Severity;
use agents_domain::ids::ResourceId;
use agents_domain::ports::actor::{ActorHost, ActorWorkspace};
use serde::{Deserialize, Serialize};

use super::baseline::{Answers, Handover, Overlay, Prints, SurveyedWorkspace};
use super::source::Need;
use super::texts::{MAX_FILE_BYTES, Texts, Words, mentions};
use crate::common::first_line;

/// Files that may depend on a changed one and are checked with it.
const MAX_DEPENDENTS: usize = 1000;
/// Problems that are told.
const MAX_PROBLEMS: usize = 20;

/// Syntax errors by message, with how often each occurs.
pub(super) type SyntaxErrors = BTreeMap<String, u32>;

/// Something that is there now and was not before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Problem {
    /// The file.
    pub path: String,
    /// 1-based; 0 when only the file is known.
    pub line: u32,
    /// Who says so: a server, or `syntax`.
    pub by: String,
    /// Its rule.
    pub rule: String,
    /// First line of its message.
    pub message: String,
}

impl Problem {
    /// `a.py:3: undefined name (F821 from local/ruff)`
    pub fn line(&self) -> String {
        let at = if self.line == 0 { self.path.clone() } else { format!("{}:{}", self.path, self.line) };
        match self.rule.as_str() {
            "" => format!("{at}: {} ({})", self.message, self.by),
            rule => format!("{at}: {} ({rule} from {})", self.message, self.by),
        }
    }
}

/// What a check found.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// New errors.
    pub worse: Vec<Problem>,
    /// Files that could not be compared, with the reason.
    pub unverified: BTreeMap<String, String>,
}

/// What is known of files, from the strategy's look to now.
pub(super) struct Known<'a> {
    /// From the strategy.
    pub handover: &'a Handover,
    /// Looked at later, before their first edit.
    pub late: &'a Overlay,
    /// After the fixes that were kept.
    pub accepted: &'a Overlay,
}

impl Known<'_> {
    /// Before the first edit of all.
    pub fn before(&self, resource: ResourceId, path: &str, server: &QualifiedName) -> Option<Prints> {
        let server = server.to_string();
        let late = self.late.get(resource, path, &server).cloned();
        late.or_else(|| surveyed(self.handover, resource)?.prints(path, &server))
    }

    /// Before the edits of the present group.
    pub fn now(&self, resource: ResourceId, path: &str, server: &QualifiedName) -> Option<Prints> {
        let accepted = self.accepted.get(resource, path, &server.to_string()).cloned();
        accepted.or_else(|| self.before(resource, path, server))
    }

    /// Files of a workspace that something was found in.
    pub fn with_findings(&self, resource: ResourceId) -> BTreeSet<String> {
        let surveyed = surveyed(self.handover, resource).into_iter().flat_map(|w| w.found.keys());
        let late = self.late.paths_with_findings(resource);
        surveyed.chain(late).chain(self.accepted.paths_with_findings(resource)).cloned().collect()
    }
}

/// What the strategy saw of a workspace.
pub(super) fn surveyed(handover: &Handover, resource: ResourceId) -> Option<&SurveyedWorkspace> {
    handover.workspaces.iter().find(|workspace| workspace.resource_id == resource)
}

/// Compares what the servers say now with what was known before the group.
pub(super) fn compare(resource: ResourceId, answers: &Answers, known: &Known<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    for (path, servers) in answers {
        for answer in servers {
            let mut unverified = |reason: String| {
                verdict.unverified.entry(path.clone()).or_insert(reason);
            };
            let Some(diagnostics) = &answer.diagnostics else {
                let why = answer.problem.as_deref().unwrap_or("it did not answer in time");
                unverified(format!("{}: {}", answer.server, first_line(why)));
                continue;
            };
            let Some(before) = known.now(resource, path, &answer.server) else {
                unverified(format!("{}: it had not answered before the change", answer.server));
                continue;
            };
            let news = before.news(diagnostics).into_iter().filter(|d| d.severity == Severity::Error);
            verdict.worse.extend(news.take(MAX_PROBLEMS).map(|d| Problem {
                path: path.clone(),
                line: d.range.start.line.saturating_add(1),
                by: answer.server.to_string(),
                rule: d.rule().to_owned(),
                message: first_line(&d.message).to_owned(),
            }));
        }
    }
    verdict.worse.truncate(MAX_PROBLEMS);
    verdict
}

/// Syntax errors that files did not have before, of files with a grammar.
pub(super) fn new_syntax_errors(
    before: &BTreeMap<String, SyntaxErrors>,
    texts: &mut Texts<'_>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    texts.prepare(before.keys().map(String::as_str), Need::Syntax);
    for (path, before) in before {
        let now = texts.syntax_errors(path).unwrap_or_default();
        let sum = |errors: &SyntaxErrors| errors.values().sum::<u32>();
        // The parser guesses anew in a text that was broken before: only more errors are certainly new ones.
        if sum(&now) <= sum(before) {
            continue;
        }
        let new = now.into_iter().filter(|(message, n)| *n > before.get(message).copied().unwrap_or(0));
        problems.extend(new.map(|(message, _)| Problem {
            path: path.clone(),
            line: 0,
            by: "syntax".to_owned(),
            rule: String::new(),
            message,
        }));
    }
    problems.truncate(MAX_PROBLEMS);
    problems
}

/// Files beyond `checked` whose text mentions a touched file by its stem: where a change may show although nothing was
/// found there before.
pub(super) fn dependents(
    host: &dyn ActorHost,
    workspace: &ActorWorkspace,
    files: &[String],
    touched: &BTreeSet<String>,
    checked: &BTreeSet<String>,
) -> Vec<String> {
    let words = Words::new(mentions(touched));
    let mentions = |path: &String| {
        let bytes = host.read(workspace.resource_id, path).unwrap_or_default();
        bytes.len() as u64 <= MAX_FILE_BYTES && words.any_in(&String::from_utf8_lossy(&bytes))
    };
    let others = files.iter().filter(|path| !checked.contains(*path));
    others.filter(|path| mentions(path)).take(MAX_DEPENDENTS).cloned().collect()
}
