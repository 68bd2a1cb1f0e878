//! Virtual documents: `agents:/plan/<ULID>`, `agents:/plan/<ULID>/diff`, `agents:/decision/<ULID>`,
//! `agents:/correction/<ULID>` and `agents:/text/<SHA-256>/<NAME>` as text.

use std::fmt::Write;

use agents_domain::ids::{CorrectionId, DecisionId, PlanId};
use agents_domain::{Error, Result};
use agents_engine::Engine;
use agents_engine::operations::content;
use agents_engine::operations::plan::{
    Artifacts, CorrectionDiff, Diff, Explain, ExplainOutput, Status, StatusOutput, Tree, TreeNode,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc;

use super::page::Page;
use super::{Shared, brief, refusal};
use crate::documents::DocumentUri;

/// The scheme of all virtual documents.
pub(crate) const SCHEME: &str = "agents";

/// What a virtual document shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Plan(PlanId),
    Diff(PlanId),
    Decision(DecisionId),
    /// What a correction changed: the old choice and the new one, the old lines and the new ones.
    Correction(CorrectionId),
    /// A stored text by its hash; the name that follows it in the URI is for the editor.
    Text(String),
}

#[derive(Deserialize)]
struct Params {
    uri: String,
}

impl Subject {
    /// Reads a URI of ours; an authority is allowed and ignored (`agents:///plan/...`).
    pub fn parse(uri: &DocumentUri) -> Result<Self> {
        let unknown = || {
            Error::not_found(format!("there is no document `{uri}`")).detail(
                "known are agents:/plan/<ULID>, agents:/plan/<ULID>/diff, agents:/decision/<ULID>, \
                 agents:/correction/<ULID> and agents:/text/<SHA-256>/<NAME>",
            )
        };
        if uri.scheme() != SCHEME {
            return Err(unknown());
        }
        let rest = uri.as_str().split_once(':').map_or("", |(_, rest)| rest);
        let path = match rest.strip_prefix("//") {
            Some(authority) => authority.split_once('/').map_or("", |(_, path)| path),
            None => rest.trim_start_matches('/'),
        };
        match path.split('/').collect::<Vec<_>>()[..] {
            ["plan", id] => Ok(Self::Plan(id.parse()?)),
            ["plan", id, "diff"] => Ok(Self::Diff(id.parse()?)),
            ["decision", id] => Ok(Self::Decision(id.parse()?)),
            ["correction", id] => Ok(Self::Correction(id.parse()?)),
            ["text", hash, ..] => Ok(Self::Text(hash.to_owned())),
            _ => Err(unknown()),
        }
    }

    /// The plan whose events change it; `None` when it is not in the URI.
    pub fn plan(&self) -> Option<PlanId> {
        match self {
            Self::Plan(plan) | Self::Diff(plan) => Some(*plan),
            Self::Decision(_) | Self::Correction(_) | Self::Text(_) => None,
        }
    }

    fn language(&self) -> &'static str {
        match self {
            Self::Diff(_) => "diff",
            Self::Text(_) => "plaintext",
            Self::Plan(_) | Self::Decision(_) | Self::Correction(_) => "markdown",
        }
    }

    fn text(self, engine: &Engine) -> Result<String> {
        match self {
            Self::Plan(plan) => plan_text(engine, plan),
            Self::Text(hash) => {
                let shown = engine.call(content::Show { hash })?;
                let bytes = shown.size_bytes;
                Ok(shown.text.unwrap_or_else(|| format!("({bytes} bytes that are no text)\n")))
            }
            Self::Diff(plan) => {
                let files = engine.call(Diff { plan: plan.to_string() })?.files;
                Ok(files.iter().map(|file| file.patch.as_str()).collect())
            }
            Self::Correction(correction) => correction_text(engine, correction),
            Self::Decision(decision) => {
                let explain =
                    Explain { decision: decision.to_string(), show_context: false, show_reasoning: true };
                Ok(decision_text(&engine.call(explain)?))
            }
        }
    }
}

impl Shared {
    /// `agents/content`: the text and its language.
    pub async fn content(&self, params: Value) -> jsonrpc::Result<Value> {
        let params: Params = serde_json::from_value(params)
            .map_err(|error| jsonrpc::Error::invalid_params(format!("the parameters need `uri`: {error}")))?;
        let uri = DocumentUri::parse(&params.uri)
            .map_err(|error| jsonrpc::Error::invalid_params(error.to_string()))?;
        let subject = Subject::parse(&uri).map_err(refusal)?;
        let language = subject.language();
        let text = self.blocking(move |engine| subject.text(engine)).await.map_err(refusal)?;
        Ok(json!({ "uri": params.uri, "text": text, "languageId": language }))
    }

    /// `workspace/textDocumentContent` (LSP 3.18).
    pub async fn text_document_content(&self, params: Value) -> jsonrpc::Result<Value> {
        Ok(json!({ "text": self.content(params).await?["text"] }))
    }
}

pub(crate) fn plan_text(engine: &Engine, plan: PlanId) -> Result<String> {
    let plan = plan.to_string();
    let status = engine.call(Status { plan: plan.clone() })?;
    let tree = engine.call(Tree { plan: plan.clone(), show_superseded: false })?;
    let artifacts = engine.call(Artifacts { plan })?;
    let mut page = Page::new(true);
    page.heading(1, &format!("Plan {}", status.plan_id));
    page.words(&status.description);
    standing(&mut page, &status);
    page.heading(2, "Decisions");
    match &tree.tree {
        Some(root) => branch(&mut page, 0, root),
        None => drop(page.words("None yet.")),
    }
    page.heading(2, "Files");
    for file in &artifacts.artifacts {
        page.item(0, &format!("`{}` {}, {}", file.path, file.change, file.size));
    }
    if artifacts.artifacts.is_empty() {
        page.words("None changed.");
    }
    page.heading(2, "Checkpoints");
    for checkpoint in &artifacts.checkpoints {
        page.item(0, &format!("{} `{}` {}", checkpoint.created, checkpoint.id, checkpoint.label));
    }
    if artifacts.checkpoints.is_empty() {
        page.words("None yet.");
    }
    Ok(page.finish() + "\n")
}

fn standing(page: &mut Page, status: &StatusOutput) {
    page.heading(2, "Status");
    page.item(0, &format!("phase: {}, {}, attempt {}", status.phase, status.state, status.attempt));
    page.item(0, &format!("action: {}, project: {}", status.action, status.project));
    page.item(0, &format!("automation: {}, {}", status.automation, status.timing.elapsed));
    if let Some(activity) = &status.activity {
        page.item(0, &format!("now: {}", activity.label));
    }
    if let Some(awaiting) = &status.awaiting {
        page.item(0, &format!("waits: {}", brief(&awaiting.question, 300)));
        for option in &awaiting.options {
            page.item(1, option);
        }
    }
    if let Some(error) = &status.error {
        page.item(0, &format!("error: {}", brief(&error.message, 300)));
    }
    for (phase, summary) in &status.summaries {
        page.item(0, &format!("{phase}: {}", summary.headline));
        for line in &summary.lines {
            page.item(1, line);
        }
    }
}

/// Trees deeper than this are cut; the text would be all indentation.
const DEEPEST: usize = 60;

fn branch(page: &mut Page, depth: usize, node: &TreeNode) {
    let confidence = node.confidence.map(|confidence| format!(" ({confidence:.2})")).unwrap_or_default();
    page.item(
        depth,
        &format!("{}: {}{confidence} `{}`", node.decision_type, node.description, node.decision_id),
    );
    if depth < DEEPEST {
        node.children.iter().for_each(|child| branch(page, depth + 1, child));
    }
}

fn decision_text(decision: &ExplainOutput) -> String {
    let mut page = Page::new(true);
    page.heading(1, &brief(&decision.question, 200));
    page.choice("Chosen", &decision.chosen);
    page.words(&decision.rationale);
    page.heading(2, "Alternatives");
    for option in &decision.alternatives {
        let mark = if option.chosen { " (chosen)" } else { "" };
        let description = match option.description == option.option {
            true => String::new(),
            false => format!(": {}", brief(&option.description, 300)),
        };
        page.item(0, &format!("{}{mark}{description}", brief(&option.option, 200)));
    }
    page.heading(2, "Facts");
    page.item(0, &format!("decision: `{}`, {}", decision.decision_id, decision.decision_type.as_str()));
    page.item(0, &format!("status: {}, {}", word(&decision.status), decision.sequence));
    if let Some(confidence) = decision.confidence {
        let threshold = decision.gate.threshold.map(|t| format!(", threshold {t:.2}")).unwrap_or_default();
        page.item(0, &format!("confidence: {confidence:.2}{threshold}"));
    }
    if let Some(approval) = decision.gate.approval {
        page.item(0, &format!("approval: {} (profile {})", word(&approval), decision.gate.profile));
    }
    page.item(0, &format!("plan: `{}`, {}", decision.plan_id, decision.plan_action));
    page.item(0, &format!("made: {}", decision.created));
    if let Some(by) = decision.superseded_by {
        page.item(0, &format!("replaced by: `{by}`"));
    }
    page.item(0, &format!("hangs on it: {} decisions", decision.impact.downstream_decisions));
    if !decision.corrections.is_empty() {
        page.heading(2, "Corrections");
    }
    for made in &decision.corrections {
        let guidance = brief(&made.guidance, 200);
        page.item(0, &format!("{}: `{}` {}, {guidance}", made.role, made.correction_attempt_id, made.at));
    }
    if !decision.resources.is_empty() {
        page.heading(2, "Places");
        for place in &decision.resources {
            let line = place.range.map(|range| format!(":{}", range.start.line + 1)).unwrap_or_default();
            let note = place.note.as_deref().map(|note| format!(" {}", brief(note, 200))).unwrap_or_default();
            page.item(0, &format!("`{}{line}`{note}", place.path));
        }
    }
    if let Some(reasoning) = decision.model_reasoning.as_deref().filter(|text| !text.trim().is_empty()) {
        page.heading(2, "Reasoning").words(reasoning);
    }
    page.finish() + "\n"
}

fn correction_text(engine: &Engine, correction: CorrectionId) -> Result<String> {
    let shown = engine.call(CorrectionDiff { correction: correction.to_string() })?;
    let facts = &shown.correction_diff;
    let explain = |decision: DecisionId| {
        engine.call(Explain { decision: decision.to_string(), show_context: false, show_reasoning: false })
    };
    let (old, new) = (explain(facts.original_decision)?, explain(facts.correction)?);
    let mut page = Page::new(true);
    page.heading(1, &brief(&old.question, 200));
    page.choice("Before", &old.chosen);
    page.choice("After", &new.chosen);
    page.words(&facts.guidance);
    page.heading(2, "Facts");
    page.item(0, &format!("correction: `{}`, {}, {}", correction, word(&facts.mode), word(&facts.state)));
    page.item(0, &format!("old decision: `{}`", facts.original_decision));
    page.item(0, &format!("new decision: `{}`", facts.correction));
    page.item(0, &format!("plan: `{}`, {}", shown.plan_id, new.plan_action));
    if let Some(failure) = &facts.failure {
        page.item(0, &format!("failed: {}", brief(failure, 300)));
    }
    page.heading(2, "Files");
    if facts.in_progress {
        page.words("The work is being done again: this is how far it is.");
    }
    for file in &shown.comparison {
        page.item(0, &format!("`{}` before {}, after {}", file.file, file.before, file.after));
    }
    if shown.comparison.is_empty() {
        page.words("No file was changed, before or after.");
    }
    for patch in &shown.patch_preview {
        page.heading(3, &patch.file);
        page.code("diff", &patch.patch);
    }
    Ok(page.finish() + "\n")
}

/// The word data uses for a value.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The virtual document that shows what an operation returned.
pub(crate) fn uri_of(method: &str, output: &Value) -> Option<String> {
    let id = |pointer: &str| output.pointer(pointer).and_then(Value::as_str);
    match method {
        "plan/explain" => Some(format!("agents:/decision/{}", id("/decision_id")?)),
        "plan/correction-diff" => {
            Some(format!("agents:/correction/{}", id("/correction_diff/correction_attempt_id")?))
        }
        "plan/diff" => Some(format!("agents:/plan/{}/diff", id("/diff_summary/plan")?)),
        "plan/status" | "plan/errors" => Some(format!("agents:/plan/{}", id("/plan_id")?)),
        _ => None,
    }
}

/// What an operation returned, in a message.
pub(crate) fn summary(method: &str, output: &Value) -> String {
    let text = |pointer: &str| output.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let mut out = String::new();
    let written = match method {
        "plan/explain" => {
            let confidence = output["confidence"].as_f64().map(|c| format!(" (confidence {c:.2})"));
            let confidence = confidence.unwrap_or_default();
            write!(out, "{} → {}{confidence}\n{}", text("/question"), text("/chosen"), text("/rationale"))
        }
        "plan/diff" => {
            let summary = &output["diff_summary"];
            let _ = write!(out, "+{} -{}", summary["insertions"], summary["deletions"]);
            let files = output["files"].as_array().into_iter().flatten();
            files.take(10).try_for_each(|file| {
                let text = |key: &str| file[key].as_str().unwrap_or_default();
                write!(out, "\n{} {}", text("path"), text("change"))
            })
        }
        "plan/errors" => write!(out, "{}", text("/error_message")),
        "plan/prompt" => write!(out, "Answered: {}", text("/guidance_added/guidance")),
        _ => match (output["phase"].as_str(), output["state"].as_str()) {
            (Some(phase), Some(state)) => write!(out, "Plan {}: {phase} is {state}", text("/plan_id")),
            _ => write!(out, "{method}: done"),
        },
    };
    debug_assert!(written.is_ok(), "texts take everything");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    fn parse(text: &str) -> Result<Subject> {
        Subject::parse(&DocumentUri::parse(text).unwrap())
    }

    #[test]
    fn a_uri_names_a_plan_its_diff_or_a_decision() {
        let plan: PlanId = ID.parse().unwrap();
        assert_eq!(parse(&format!("agents:/plan/{ID}")).unwrap(), Subject::Plan(plan));
        assert_eq!(parse(&format!("agents:///plan/{ID}/diff")).unwrap(), Subject::Diff(plan));
        assert_eq!(parse(&format!("agents:/decision/{ID}")).unwrap(), Subject::Decision(ID.parse().unwrap()));
        assert_eq!(
            parse(&format!("agents:/correction/{ID}")).unwrap(),
            Subject::Correction(ID.parse().unwrap())
        );
        assert_eq!(parse("agents:/text/0a/src/main.py").unwrap(), Subject::Text("0a".to_owned()));
    }

    #[test]
    fn what_is_no_document_of_ours_is_refused() {
        for text in ["agents:/plan", "agents:/plan/x", "agents:", "agents:/plans/x/y", "file:///plan/x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
