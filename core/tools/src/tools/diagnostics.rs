//! `lsp/diagnostics`.

use agents_domain::diagnostics::{Diagnostic, Severity};
use agents_domain::language_server::Capability;
use agents_domain::ports::language_servers::FileDiagnostics;
use agents_domain::text::LineIndex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Window, at, cut, excerpt, line_of};
use crate::{Lens, Tool};

arguments! {
    /// What the language servers say is wrong with files, errors first.
    Diagnostics about a file {
        /// More files, relative to the workspace.
        #[serde(default)]
        also: Vec<String>,
        /// Leave out what is milder than this.
        #[serde(default)]
        at_least: Option<Severity>,
        /// Results on the page; 50 unless given, at most 500.
        #[serde(default)]
        limit: Option<u32>,
        /// Results to leave out at the beginning: the `next_offset` of the page before.
        #[serde(default)]
        offset: Option<u32>,
    }
}

/// What was found, and what was not looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Every file was checked by every server bound for it; else an empty list does not mean that all is well.
    complete: bool,
    /// What was not checked, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_checked: Vec<NotChecked>,
    /// The diagnostics of this page.
    results: Vec<Problem>,
    /// How many there are in all.
    total: usize,
    /// How many of them are errors.
    errors: usize,
    /// The `offset` that continues after this page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

/// A file that a server did not check.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NotChecked {
    /// The file.
    pub path: String,
    /// The server; absent when none serves the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Why, for people.
    pub why: String,
}

/// A diagnostic as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Problem {
    /// `path:line:column`, from 1.
    pub at: String,
    /// How bad it is.
    pub severity: Severity,
    /// Who says so and by which rule, such as `Ruff F401`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The text.
    pub message: String,
    /// The source line.
    pub code: String,
}

impl Problem {
    /// A diagnostic of a file with this text.
    pub(crate) fn of(path: &str, text: &str, index: &LineIndex, diagnostic: &Diagnostic) -> Self {
        let named = [diagnostic.source.as_deref(), diagnostic.code.as_deref()];
        let rule = named.into_iter().flatten().collect::<Vec<_>>().join(" ");
        Self {
            at: at(path, text, index, diagnostic.range.start),
            severity: diagnostic.severity,
            rule: Some(rule).filter(|rule| !rule.is_empty()),
            message: cut(&diagnostic.message, 1_000),
            code: excerpt(line_of(text, index, diagnostic.range.start.line), diagnostic.range.start.column),
        }
    }
}

impl NotChecked {
    /// What a server did not say.
    pub(crate) fn by(path: &str, answer: &FileDiagnostics) -> Self {
        let why = answer.problem.clone().unwrap_or_else(|| "it gave no answer in time".to_owned());
        Self { path: path.to_owned(), server: Some(answer.server.to_string()), why }
    }

    /// A file that nobody checks.
    pub(crate) fn unserved(path: &str) -> Self {
        let why = "no bound server gives diagnostics for it".to_owned();
        Self { path: path.to_owned(), server: None, why }
    }
}

/// What the bound servers said about a file, and what they did not.
pub(crate) fn split(
    lens: &Lens,
    path: &str,
    mut answers: Vec<FileDiagnostics>,
) -> (Vec<Diagnostic>, Vec<NotChecked>) {
    answers.retain(|answer| lens.is_bound(&answer.server));
    let mut not_checked: Vec<_> = answers
        .iter()
        .filter(|answer| answer.diagnostics.is_none())
        .map(|answer| NotChecked::by(path, answer))
        .collect();
    if answers.is_empty() {
        not_checked.push(NotChecked::unserved(path));
    }
    (answers.into_iter().filter_map(|answer| answer.diagnostics).flatten().collect(), not_checked)
}

impl Tool for Diagnostics {
    const NAME: &'static str = "lsp/diagnostics";
    const SUMMARY: &'static str = "What the language servers say is wrong with files, errors first";
    const CAPABILITY: Option<Capability> = Some(Capability::Diagnostics);
    type Output = Report;

    async fn run(self, lens: &Lens) -> Result<Report, String> {
        let first = lens.file(self.resource.as_deref(), &self.path)?;
        let workspace = first.workspace;
        let mut paths = vec![first.path];
        for other in &self.also {
            let (of, path) = lens.locate(self.resource.as_deref().or(Some(&workspace.name)), other)?;
            if of.id == workspace.id && !paths.contains(&path) {
                paths.push(path);
            }
        }
        let mut all = Vec::new();
        let mut not_checked = Vec::new();
        for (path, answers) in workspace.languages.diagnostics(&paths).await {
            let (found, missing) = split(lens, &path, answers);
            not_checked.extend(missing);
            let text = workspace.languages.text(&path).unwrap_or_default();
            let index = LineIndex::new(&text);
            let wanted =
                found.into_iter().filter(|one| self.at_least.is_none_or(|least| one.severity <= least));
            all.extend(
                wanted.map(|one| {
                    (one.severity, path.clone(), one.range, Problem::of(&path, &text, &index, &one))
                }),
            );
        }
        all.sort_by(|a, b| (a.0, &a.1, a.2).cmp(&(b.0, &b.1, b.2)));
        let errors = all.iter().filter(|one| one.0 == Severity::Error).count();
        let page = Window::new(self.limit, self.offset).cut("", &all, |one| one.3.clone());
        Ok(Report {
            complete: not_checked.is_empty(),
            not_checked,
            results: page.results,
            total: page.total,
            errors,
            next_offset: page.next_offset,
        })
    }
}
