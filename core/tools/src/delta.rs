//! What an edit brought and what it took away: diagnostics before against diagnostics after.

use std::collections::HashMap;

use agents_domain::diagnostics::{Diagnostic, Severity};
use agents_domain::ports::language_servers::FileDiagnostics;
use agents_domain::text::LineIndex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::lens::{Lens, Workspace};
pub use crate::tools::diagnostics::{NotChecked, Problem};

/// Problems listed on each side.
const MAX_LISTED: usize = 30;

/// Diagnostics of some files at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    files: Vec<Looked>,
}

/// What the servers said about a file with some text.
#[derive(Debug, Clone)]
struct Looked {
    path: String,
    text: String,
    answers: Vec<FileDiagnostics>,
}

/// What is different.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Delta {
    /// What an edit did to the files as far as the servers say.
    pub verdict: Verdict,
    /// New problems, errors first; at most 30.
    pub added: Vec<Problem>,
    /// Problems that are gone; at most 30.
    pub removed: Vec<Problem>,
    /// How many are new in all.
    pub added_total: usize,
    /// How many are gone in all.
    pub removed_total: usize,
    /// What was not checked before or after, and why: about these files nothing is said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<NotChecked>,
}

/// The sum of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There are new errors.
    Worse,
    /// There are no new errors, but new warnings or milder things.
    NewWarnings,
    /// Nothing new, and something is gone.
    Better,
    /// Nothing new and nothing gone.
    Same,
    /// No file could be compared.
    NotChecked,
}

/// Asks about files as they lie on disk.
pub async fn take(lens: &Lens, workspace: &Workspace, paths: &[String]) -> Snapshot {
    let answers = workspace.languages.diagnostics(paths).await;
    Snapshot::of(lens, answers, |path| workspace.languages.text(path).unwrap_or_default())
}

impl Snapshot {
    pub(crate) fn of(
        lens: &Lens,
        answers: Vec<(String, Vec<FileDiagnostics>)>,
        text: impl Fn(&str) -> String,
    ) -> Self {
        let looked = |(path, mut answers): (String, Vec<FileDiagnostics>)| {
            answers.retain(|answer| lens.is_bound(&answer.server));
            Looked { text: text(&path), path, answers }
        };
        Self { files: answers.into_iter().map(looked).collect() }
    }

    /// How this differs from an earlier one; a file that the earlier one does not have was not there yet. Diagnostics
    /// are the same when a server says the same about the same file, whichever line they moved to.
    pub fn since(&self, before: &Snapshot) -> Delta {
        let nothing = Looked { path: String::new(), text: String::new(), answers: Vec::new() };
        let mut added = Vec::new();
        let mut removed = Vec::new();
        let mut not_checked = Vec::new();
        let mut compared = false;
        for now in &self.files {
            let earlier = before.files.iter().find(|file| file.path == now.path);
            let then = earlier.unwrap_or(&nothing);
            if now.answers.is_empty() {
                not_checked.push(NotChecked::unserved(&now.path));
            }
            for answer in &now.answers {
                let old = then.answers.iter().find(|old| old.server == answer.server);
                let silent = [Some(answer), old].into_iter().flatten().find(|one| one.diagnostics.is_none());
                if let Some(silent) = silent {
                    not_checked.push(NotChecked::by(&now.path, silent));
                    continue;
                }
                let list = |answer: Option<&'_ FileDiagnostics>| {
                    answer.and_then(|one| one.diagnostics.clone()).unwrap_or_default()
                };
                compared = true;
                let (new, old) = (list(Some(answer)), list(old));
                added.extend(beyond(&new, &old).cloned().map(|one| (one, now)));
                removed.extend(beyond(&old, &new).cloned().map(|one| (one, then)));
            }
        }
        let worst = added.iter().map(|(one, _)| one.severity).min();
        let verdict = match worst {
            _ if !compared => Verdict::NotChecked,
            Some(Severity::Error) => Verdict::Worse,
            Some(_) => Verdict::NewWarnings,
            None if removed.is_empty() => Verdict::Same,
            None => Verdict::Better,
        };
        Delta {
            verdict,
            added_total: added.len(),
            removed_total: removed.len(),
            added: shown(added),
            removed: shown(removed),
            not_checked,
        }
    }
}

/// What of `these` is not among `those`, as often as it is there more often.
fn beyond<'a>(these: &'a [Diagnostic], those: &[Diagnostic]) -> impl Iterator<Item = &'a Diagnostic> {
    let mut known: HashMap<_, usize> = HashMap::new();
    for one in those {
        *known.entry(own(one)).or_default() += 1;
    }
    these.iter().filter(move |one| match known.get_mut(&own(one)) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    })
}

fn own(diagnostic: &Diagnostic) -> (Option<String>, Option<String>, String, Severity) {
    let (source, code, message, severity) = diagnostic.fingerprint();
    (source.map(str::to_owned), code.map(str::to_owned), message.to_owned(), severity)
}

fn shown(mut list: Vec<(Diagnostic, &Looked)>) -> Vec<Problem> {
    list.sort_by(|(a, x), (b, y)| (a.severity, &x.path, a.range).cmp(&(b.severity, &y.path, b.range)));
    list.truncate(MAX_LISTED);
    let show = |(one, file): (Diagnostic, &Looked)| {
        Problem::of(&file.path, &file.text, &LineIndex::new(&file.text), &one)
    };
    list.into_iter().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agents_domain::text::Range;

    fn one(line: u32, severity: Severity, message: &str) -> Diagnostic {
        Diagnostic {
            range: Range::new((line, 0), (line, 1)),
            severity,
            code: None,
            source: None,
            message: message.to_owned(),
            raw: serde_json::Value::Null,
        }
    }

    fn snapshot(found: Option<Vec<Diagnostic>>) -> Snapshot {
        let server = "local/x".parse().unwrap();
        let answers = vec![FileDiagnostics { server, diagnostics: found, problem: None }];
        Snapshot { files: vec![Looked { path: "a".into(), text: "x\ny\nz\n".into(), answers }] }
    }

    #[test]
    fn what_only_moved_is_not_new_and_what_is_there_once_more_is() {
        use Severity::{Error, Warning};
        let before = snapshot(Some(vec![one(0, Warning, "w"), one(1, Error, "e")]));
        let moved = snapshot(Some(vec![one(2, Warning, "w"), one(0, Error, "e")]));
        assert_eq!(moved.since(&before).verdict, Verdict::Same);
        let twice = snapshot(Some(vec![one(0, Warning, "w"), one(1, Warning, "w"), one(1, Error, "e")]));
        let delta = twice.since(&before);
        assert_eq!((delta.verdict, delta.added_total), (Verdict::NewWarnings, 1));
        assert_eq!(delta.added[0].at, "a:2:1");
        let fixed = snapshot(Some(vec![one(0, Warning, "w")]));
        let delta = fixed.since(&before);
        assert_eq!((delta.verdict, delta.removed[0].message.as_str()), (Verdict::Better, "e"));
        assert_eq!(before.since(&fixed).verdict, Verdict::Worse);
    }

    #[test]
    fn a_side_that_was_not_checked_says_nothing() {
        let before = snapshot(Some(vec![one(0, Severity::Error, "e")]));
        let delta = snapshot(None).since(&before);
        assert_eq!(
            (delta.verdict, delta.removed_total, delta.not_checked.len()),
            (Verdict::NotChecked, 0, 1)
        );
        let new_file = before.since(&Snapshot::default());
        assert_eq!((new_file.verdict, new_file.added_total), (Verdict::Worse, 1));
    }
}
