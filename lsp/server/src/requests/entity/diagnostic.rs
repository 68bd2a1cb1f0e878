//! What is wrong in an entity file, at its key or value.

use agents_config::editing::mentions;
use agents_config::{EntityKind, Problem, Severity, nearest};
use serde_json::json;
use tower_lsp::lsp_types::{Diagnostic, DiagnosticSeverity, NumberOrString};

use super::{Names, protocol_range, range};
use crate::documents::Text;
use crate::requests::diagnostic::SOURCE;

/// `code` of what a loader says.
const CODE_FILE: &str = "entity-file";
/// `code` of a name that nothing has.
const CODE_NAME: &str = "unknown-name";

/// All diagnostics of an entity file.
pub(crate) fn of_text(text: &Text, content: &str, kind: &EntityKind, names: &Names) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> =
        (kind.check)(content, "").iter().map(|problem| of_problem(text, problem)).collect();
    // A loader that knows the name to be wrong has said so.
    let unknown = unknown_names(text, content, names).into_iter().map(|(diagnostic, _)| diagnostic);
    let new: Vec<Diagnostic> =
        unknown.filter(|one| found.iter().all(|told| told.range != one.range)).collect();
    found.extend(new);
    found
}

fn of_problem(text: &Text, problem: &Problem) -> Diagnostic {
    let severity = match problem.severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Hint => DiagnosticSeverity::HINT,
    };
    Diagnostic {
        range: protocol_range(text, problem.range),
        severity: Some(severity),
        code: Some(NumberOrString::String(CODE_FILE.to_owned())),
        source: Some(SOURCE.to_owned()),
        message: problem.message.clone(),
        ..Diagnostic::default()
    }
}

/// Names that a file uses and nothing has, with what may have been meant.
pub(super) fn unknown_names(text: &Text, content: &str, names: &Names) -> Vec<(Diagnostic, Option<String>)> {
    let used =
        mentions(content).into_iter().filter(|m| !m.defines && names.find(m.registry, &m.name).is_none());
    used.map(|mention| {
        let known = names.all(mention.registry).iter().map(|entry| entry.name.as_str());
        let meant = nearest(&mention.name, known).map(str::to_owned);
        let question = meant.as_ref().map(|meant| format!(": did you mean `{meant}`?")).unwrap_or_default();
        let diagnostic = Diagnostic {
            range: range(text, &mention.bytes),
            severity: Some(DiagnosticSeverity::WARNING),
            code: Some(NumberOrString::String(CODE_NAME.to_owned())),
            source: Some(SOURCE.to_owned()),
            message: format!("there is no {} `{}`{question}", mention.registry.word(), mention.name),
            data: meant.as_ref().map(|meant| json!({ "meant": meant })),
            ..Diagnostic::default()
        };
        (diagnostic, meant)
    })
    .collect()
}
