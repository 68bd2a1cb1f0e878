//! `builtin/no-new-diagnostics`: passes when the language servers report nothing that they did not report before the
//! first edit.

use std::collections::BTreeMap;

use agents_domain::diagnostics::{Diagnostic, Severity};
use agents_domain::ports::language_servers::{FileEvent, FileEventKind, LanguageWorkspace};
use agents_domain::validation::{Finding, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Files beyond this many are looked at only when they are changed.
const MAX_FILES: usize = 2000;

/// Files asked about at a time.
const CHUNK: usize = 64;

/// What the servers said about one resource: per file and server, `None` where nobody answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Survey(BTreeMap<String, BTreeMap<String, Option<Vec<Said>>>>);

/// A diagnostic as far as it is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Said {
    source: Option<String>,
    code: Option<String>,
    message: String,
    severity: Severity,
    line: u32,
    column: u32,
}

impl Said {
    fn of(diagnostic: Diagnostic) -> Self {
        Self {
            source: diagnostic.source,
            code: diagnostic.code,
            message: diagnostic.message,
            severity: diagnostic.severity,
            line: diagnostic.range.start.line,
            column: diagnostic.range.start.column,
        }
    }

    /// The same thing, wherever it stands now.
    fn same(&self, other: &Self) -> bool {
        (&self.source, &self.code, &self.message, self.severity)
            == (&other.source, &other.code, &other.message, other.severity)
    }

    fn finding(&self, file: &str) -> Finding {
        Finding {
            file: Some(file.to_owned()),
            line: Some(self.line + 1),
            column: Some(self.column + 1),
            severity: self.severity,
            message: self.message.clone(),
            code: self.code.clone().or_else(|| self.source.clone()),
        }
    }
}

/// Asks the servers about all files they serve; those in `first` before others, where there are too many.
pub(crate) async fn survey(
    languages: &dyn LanguageWorkspace,
    files: Vec<String>,
    first: &[String],
) -> Survey {
    let served = |path: &String| !languages.servers_for(path).is_empty();
    let mut all: Vec<String> = files.into_iter().filter(served).collect();
    if all.len() > MAX_FILES {
        all.sort_by_key(|path| !first.contains(path));
        all.truncate(MAX_FILES.max(first.len()));
    }
    let mut survey = Survey::default();
    for chunk in all.chunks(CHUNK) {
        for (path, answers) in languages.diagnostics(chunk).await {
            let by_server = answers.into_iter().map(|answer| {
                let said = answer.diagnostics.map(|list| list.into_iter().map(Said::of).collect());
                (answer.server.to_string(), said)
            });
            survey.0.insert(path, by_server.collect());
        }
    }
    survey
}

/// Tells the servers which files the plan has changed.
pub(super) async fn tell_changes(languages: &dyn LanguageWorkspace, changed: &[(String, FileEventKind)]) {
    let events: Vec<FileEvent> =
        changed.iter().map(|(path, kind)| FileEvent { path: path.clone(), kind: *kind }).collect();
    languages.files_changed(&events).await;
}

/// Compares what the servers say now with what they said before; `least` is the mildest that counts.
pub(super) fn compare(before: Option<&Survey>, now: &Survey, least: Severity, changed: &[String]) -> Verdict {
    let Some(before) = before else {
        return Verdict::broken("what the language servers said before the first edit is not known");
    };
    let (mut findings, mut silent, mut checked) = (Vec::new(), Vec::new(), 0_usize);
    for (path, servers) in &now.0 {
        checked += 1;
        let was = before.0.get(path);
        for (server, said) in servers {
            let known = was.and_then(|was| was.get(server));
            // A file that is new had nothing to report.
            let known = known.cloned().unwrap_or_else(|| Some(Vec::new()));
            let (Some(said), Some(mut known)) = (said, known) else {
                // A file that was not touched and that nobody answered for is as it was.
                if changed.contains(path) {
                    silent.push(format!("{path} ({server})"));
                }
                continue;
            };
            for one in said {
                if let Some(at) = known.iter().position(|other| other.same(one)) {
                    known.swap_remove(at);
                } else if one.severity <= least {
                    findings.push(one.finding(path));
                }
            }
        }
    }
    findings.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    let mut data = Map::new();
    data.insert("files_checked".to_owned(), checked.into());
    data.insert("least_severity".to_owned(), serde_json::to_value(least).unwrap_or(Value::Null));
    if !silent.is_empty() {
        data.insert("not_checked".to_owned(), silent.clone().into());
    }
    let verdict = match (findings.len(), checked, silent.first()) {
        (0, 0, _) => Verdict::broken(
            "no registered language server serves a file of this resource: see `agents lsp detect`",
        ),
        (0, _, Some(first)) => Verdict::broken(format!("no answer about {first}; it was not checked")),
        (0, 1, None) => Verdict::passed("1 file has no new diagnostics"),
        (0, n, None) => Verdict::passed(format!("{n} files have no new diagnostics")),
        (1, ..) => Verdict::failed(format!("1 new diagnostic: {}", findings[0].line_text())),
        (n, ..) => Verdict::failed(format!("{n} new diagnostics")),
    };
    findings.truncate(super::parse::MAX_FINDINGS);
    Verdict { data, findings, ..verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, severity: Severity, line: u32) -> Said {
        let (source, message) = (Some("ruff".to_owned()), format!("about {code}"));
        Said { source, code: Some(code.to_owned()), message, severity, line, column: 0 }
    }

    fn survey(files: &[(&str, Option<Vec<Said>>)]) -> Survey {
        let servers = |said: &Option<Vec<Said>>| [("local/ruff".to_owned(), said.clone())].into();
        Survey(files.iter().map(|(path, said)| ((*path).to_owned(), servers(said))).collect())
    }

    #[test]
    fn only_what_is_new_and_bad_enough_counts() {
        let warning = |line| said("F401", Severity::Warning, line);
        let before = survey(&[("a.py", Some(vec![warning(3)])), ("b.py", Some(vec![]))]);
        let moved = survey(&[("a.py", Some(vec![warning(9)])), ("b.py", Some(vec![]))]);
        assert!(compare(Some(&before), &moved, Severity::Warning, &[]).passed);
        let twice =
            survey(&[("a.py", Some(vec![warning(3), warning(5)])), ("new.py", Some(vec![warning(0)]))]);
        let verdict = compare(Some(&before), &twice, Severity::Warning, &[]);
        let places: Vec<_> = verdict.findings.iter().map(|f| (f.file.as_deref().unwrap(), f.line)).collect();
        assert_eq!(places, [("a.py", Some(6)), ("new.py", Some(1))]);
        assert!(compare(Some(&before), &twice, Severity::Error, &[]).passed);
    }

    #[test]
    fn a_file_nobody_answered_for_is_not_called_clean() {
        let before = survey(&[("a.py", Some(vec![]))]);
        let silent = survey(&[("a.py", None)]);
        let verdict = compare(Some(&before), &silent, Severity::Warning, &["a.py".to_owned()]);
        assert!(!verdict.passed && verdict.error, "{verdict:?}");
        assert!(
            compare(Some(&before), &silent, Severity::Warning, &[]).passed,
            "an untouched file is as it was"
        );
        assert!(!compare(Some(&before), &survey(&[]), Severity::Warning, &[]).passed);
        assert!(!compare(None, &before, Severity::Warning, &[]).passed);
    }
}
