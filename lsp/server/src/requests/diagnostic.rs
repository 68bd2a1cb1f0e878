//! Diagnostics: decisions that wait for a person, and plans that went wrong over a file.
//!
//! A client that pulls is never pushed a document it has open; the others are pushed everything. Files that are
//! not open are pushed to both, see [`crate::watch::publish`].

use std::hash::{DefaultHasher, Hash, Hasher};

use agents_domain::ids::PlanId;
use agents_domain::plan::State;
use agents_engine::operations::plan::PendingDecision;
use serde_json::json;
use tower_lsp::lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DocumentDiagnosticParams,
    DocumentDiagnosticReport, DocumentDiagnosticReportResult, FullDocumentDiagnosticReport, Location,
    NumberOrString, Position, Range, RelatedFullDocumentDiagnosticReport,
    RelatedUnchangedDocumentDiagnosticReport, UnchangedDocumentDiagnosticReport,
};

use super::entity::{self, Entity};
use super::questions::asked;
use super::{Shared, brief};
use crate::ClientInfo;
use crate::documents::{Document, DocumentUri, Text};
use crate::watch::world::{FailedAt, FileKey, Violated, World, short};

/// `source` of all our diagnostics.
pub(crate) const SOURCE: &str = "cleveragents";
/// `code` of a decision that waits.
pub(crate) const CODE_PENDING: &str = "decision-pending";

/// A column beyond any line: clients take it for the line's end.
const WHOLE_LINE: u32 = 10_000;

/// Other places of one decision that are listed with each.
const RELATED: usize = 10;

/// Whether the client asks for the diagnostics of what it has open, also when told that they are others now. One that
/// would show old ones until the next edit is pushed them instead.
pub(crate) fn pulls(client: &ClientInfo) -> bool {
    // The specification says `diagnostics`, some clients and lsp-types say `diagnostic`.
    let refresh = ["diagnostics", "diagnostic"]
        .iter()
        .any(|name| client.supports(&format!("/workspace/{name}/refreshSupport")));
    refresh && client.supports("/textDocument/diagnostic")
}

/// Either of the two places where clients say what diagnostics may hold.
fn takes(client: &ClientInfo, what: &str) -> bool {
    ["publishDiagnostics", "diagnostic"]
        .iter()
        .any(|feature| client.supports(&format!("/textDocument/{feature}/{what}")))
}

impl Shared {
    pub async fn diagnostic(&self, params: DocumentDiagnosticParams) -> DocumentDiagnosticReportResult {
        let items = match self.document(&params.text_document.uri) {
            None => Vec::new(),
            Some((snapshot, document)) => {
                let world = self.world().await;
                let mut found = match self.file_of(&world, &document).await {
                    None => Vec::new(),
                    Some(file) => {
                        let saved = self.saved_text(&world, &file).await;
                        of_file(&world, &file, document.text(), saved.as_deref(), snapshot.client())
                    }
                };
                found.extend(of_entity(&world, &document));
                found.extend(self.syntax_errors(document).await);
                found
            }
        };
        let id = result_id(&items);
        let report = if params.previous_result_id.as_ref() == Some(&id) {
            let unchanged_document_diagnostic_report = UnchangedDocumentDiagnosticReport { result_id: id };
            DocumentDiagnosticReport::Unchanged(RelatedUnchangedDocumentDiagnosticReport {
                related_documents: None,
                unchanged_document_diagnostic_report,
            })
        } else {
            let full_document_diagnostic_report = FullDocumentDiagnosticReport { result_id: Some(id), items };
            DocumentDiagnosticReport::Full(RelatedFullDocumentDiagnosticReport {
                related_documents: None,
                full_document_diagnostic_report,
            })
        };
        DocumentDiagnosticReportResult::Report(report)
    }
}

/// What is wrong in an open entity file.
pub(crate) fn of_entity(world: &World, document: &Document) -> Vec<Diagnostic> {
    let Some(entity) = Entity::of(document) else { return Vec::new() };
    entity::diagnostics(document.text(), &entity.content, entity.kind, &world.names)
}

fn result_id(items: &[Diagnostic]) -> String {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(items).unwrap_or_default().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// All diagnostics of a file whose text in the editor is `text` and on disk `saved`.
pub(crate) fn of_file(
    world: &World,
    file: &FileKey,
    text: &Text,
    saved: Option<&str>,
    client: &ClientInfo,
) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = asked(world, file, text, saved)
        .into_iter()
        .map(|question| {
            let decision = question.decision;
            let related =
                takes(client, "relatedInformation").then(|| elsewhere(world, decision, question.nth));
            Diagnostic {
                range: question.range,
                severity: Some(DiagnosticSeverity::WARNING),
                code: Some(NumberOrString::String(CODE_PENDING.to_owned())),
                source: Some(SOURCE.to_owned()),
                message: message(decision, question.nth),
                related_information: related.filter(|related| !related.is_empty()),
                data: takes(client, "dataSupport")
                    .then(|| json!({ "decision_id": decision.decision_id, "plan_id": decision.plan_id })),
                ..Diagnostic::default()
            }
        })
        .collect();
    for (plan, trouble) in world.troubles.iter().filter(|(_, trouble)| trouble.files.contains(file)) {
        let (word, code) = match trouble.state {
            State::Constrained => ("cannot be applied", "plan-constrained"),
            _ => ("failed", "plan-errored"),
        };
        found.push(Diagnostic {
            range: Range::new(Position::new(0, 0), Position::new(0, 0)),
            severity: Some(DiagnosticSeverity::ERROR),
            code: Some(NumberOrString::String(code.to_owned())),
            source: Some(SOURCE.to_owned()),
            message: format!("Plan {} {word}: {}", short(*plan), trouble.message),
            data: takes(client, "dataSupport").then(|| json!({ "plan_id": plan })),
            ..Diagnostic::default()
        });
    }
    for (plan, checks) in &world.checks {
        for failure in checks.failures.iter().filter(|failure| failure.file == *file) {
            found.push(validation_failure(*plan, failure, client));
        }
    }
    for (plan, violations) in &world.violations {
        for violated in violations.iter().filter(|violated| violated.file == *file) {
            found.push(broken_invariant(*plan, violated, client));
        }
    }
    found
}

/// A place where a write broke an invariant; the line is that of the sandbox.
fn broken_invariant(plan: PlanId, violated: &Violated, client: &ClientInfo) -> Diagnostic {
    let (severity, what) = match violated.refused {
        true => (DiagnosticSeverity::INFORMATION, "was kept from breaking"),
        false => (DiagnosticSeverity::ERROR, "breaks"),
    };
    Diagnostic {
        range: Range::new(Position::new(violated.line, 0), Position::new(violated.line, WHOLE_LINE)),
        severity: Some(severity),
        code: Some(NumberOrString::String("invariant-violated".to_owned())),
        source: Some(SOURCE.to_owned()),
        message: format!(
            "Plan {} {what} the invariant “{}”: {}",
            short(plan),
            brief(&violated.invariant, 200),
            brief(&violated.evidence, 300)
        ),
        data: takes(client, "dataSupport").then(|| json!({ "plan_id": plan })),
        ..Diagnostic::default()
    }
}

/// A place that a failed validation points at; the line is that of the sandbox.
fn validation_failure(plan: PlanId, failure: &FailedAt, client: &ClientInfo) -> Diagnostic {
    let severity = if failure.required { DiagnosticSeverity::ERROR } else { DiagnosticSeverity::INFORMATION };
    Diagnostic {
        range: Range::new(Position::new(failure.line, 0), Position::new(failure.line, WHOLE_LINE)),
        severity: Some(severity),
        code: Some(NumberOrString::String("validation-failed".to_owned())),
        source: Some(SOURCE.to_owned()),
        message: format!(
            "{} (validation {} of plan {})",
            brief(&failure.message, 300),
            failure.validation,
            short(plan)
        ),
        data: takes(client, "dataSupport").then(|| json!({ "plan_id": plan })),
        ..Diagnostic::default()
    }
}

fn message(decision: &PendingDecision, nth: usize) -> String {
    let mut lines = vec![brief(&decision.question, 300)];
    if let Some(note) = decision.resources.get(nth).and_then(|place| place.note.as_deref()) {
        lines.push(format!("Here: {}", brief(note, 300)));
    }
    let confidence = decision.confidence.map(|confidence| format!(" (confidence {confidence:.2})"));
    lines.push(format!("Proposed: {}{}", brief(&decision.proposed, 200), confidence.unwrap_or_default()));
    lines.push(format!(
        "Answer with a code action, or: agents plan prompt {} --decision {} <NUMBER, OPTION OR GUIDANCE>",
        short(decision.plan_id),
        decision.decision_id
    ));
    lines.join("\n")
}

/// The other places of a decision, as far as they are files.
fn elsewhere(world: &World, decision: &PendingDecision, nth: usize) -> Vec<DiagnosticRelatedInformation> {
    let others = decision.resources.iter().enumerate().filter(|(at, _)| *at != nth).map(|(_, place)| place);
    let located = others.filter_map(|place| {
        let path = world.registry.path(&(place.resource_id, place.path.clone()))?;
        let uri = DocumentUri::from_path(&path)?.to_url()?;
        // Without the text the columns are not known in the client's units; a line is enough to go there.
        let at = Position::new(place.range.map_or(0, |range| range.start.line), 0);
        let message = place.note.clone().unwrap_or_else(|| "the same decision".to_owned());
        Some(DiagnosticRelatedInformation { location: Location { uri, range: Range::new(at, at) }, message })
    });
    located.take(RELATED).collect()
}
