//! What is added to a file when an actor reads it: what is wrong with it, and on request the types of what it declares.
//!
//! It never fails and never takes long: what cannot be had in time is left out, and said.

use agents_domain::diagnostics::Severity;
use agents_domain::text::LineIndex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lens::Lens;
use crate::page::at;
use crate::tools::diagnostics::split;

/// Symbols whose types are looked up.
const MAX_TYPES: usize = 60;

/// What to add; an actor's `lsp_context_enrichment`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Enrichment {
    /// What the servers say is wrong with the file.
    pub diagnostics: bool,
    /// The types of functions, classes and variables that it declares.
    pub type_annotations: bool,
    /// Diagnostics of one file at most.
    #[schemars(range(min = 1))]
    pub max_diagnostics_per_file: std::num::NonZeroUsize,
}

impl Default for Enrichment {
    fn default() -> Self {
        let fifty = std::num::NonZeroUsize::MIN.saturating_add(49);
        Self { diagnostics: true, type_annotations: false, max_diagnostics_per_file: fifty }
    }
}

/// The lines to put after a file's text, a fact on each; empty when there is nothing to say.
pub async fn lines(lens: &Lens, resource: Option<&str>, path: &str, wanted: &Enrichment) -> Vec<String> {
    let Ok(file) = lens.file(resource, path) else { return Vec::new() };
    let text = file.text().unwrap_or_default();
    let index = LineIndex::new(&text);
    let languages = &*file.workspace.languages;
    let mut out = Vec::new();
    if wanted.diagnostics {
        let answers = languages.diagnostics(std::slice::from_ref(&file.path)).await;
        let answers = answers.into_iter().flat_map(|(_, answers)| answers).collect();
        let (mut found, not_checked) = split(lens, &file.path, answers);
        found.sort_by_key(|one| (one.severity, one.range));
        let limit = wanted.max_diagnostics_per_file.get();
        for one in found.iter().take(limit) {
            let rule = [one.source.as_deref(), one.code.as_deref()];
            let rule = rule.into_iter().flatten().collect::<Vec<_>>().join(" ");
            let message = one.message.lines().collect::<Vec<_>>().join(" ");
            let place = at(&file.path, &text, &index, one.range.start);
            out.push(format!("{place} {} [{rule}] {message}", word(one.severity)));
        }
        if found.len() > limit {
            out.push(format!("\u{2026} {} more", found.len() - limit));
        }
        let silent = not_checked.iter().filter_map(|one| Some((one.server.as_ref()?, &one.why)));
        out.extend(silent.map(|(server, why)| format!("{} was not checked by {server}: {why}", file.path)));
    }
    if wanted.type_annotations {
        let symbols = file.first("symbols", |languages, server| languages.symbols(server, &file.path)).await;
        let symbols = symbols.map(|(_, symbols)| symbols).unwrap_or_default();
        let key = |kind: &str| matches!(kind, "function" | "method" | "class" | "variable" | "constant");
        for symbol in symbols.into_iter().filter(|symbol| key(&symbol.kind)).take(MAX_TYPES) {
            let position = symbol.range.start;
            let hover =
                file.first("hover", |languages, server| languages.hover(server, &file.path, position)).await;
            let Ok((_, hover)) = hover else { break };
            let line = hover.lines().find(|line| !line.trim().is_empty() && !line.starts_with("```"));
            if let Some(line) = line {
                out.push(format!("{} {}", at(&file.path, &text, &index, position), line.trim()));
            }
        }
    }
    out
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Information => "information",
        Severity::Hint => "hint",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // LSP-021, LSP-022, LSP-023, LSP-024
    #[test]
    fn enrichment_has_the_documented_defaults_and_refuses_other_keys() {
        let read = |text: &str| serde_json::from_str::<Enrichment>(text);
        let default = read("{}").unwrap();
        assert_eq!((default.diagnostics, default.type_annotations), (true, false));
        assert_eq!(default.max_diagnostics_per_file.get(), 50);
        assert!(read(r#"{"max_diagnostics_per_file": 0}"#).is_err());
        assert!(read(r#"{"hover": true}"#).is_err());
    }
}
