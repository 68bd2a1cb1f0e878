//! `agents plan explain`.

use agents_domain::correction::CorrectionMode;
use agents_engine::operations::plan::{CorrectionMade, Explain};
use serde_json::Value;

use crate::args::ExplainArgs;
use crate::commands::{json, text, texts};
use crate::failure::Outcome;
use crate::output::{Kind, Styled, Tone, dim, good, id, own, prose, warn};
use crate::run::Run;

/// Places shown before the rest is counted.
const PLACES: usize = 20;

pub fn run(run: &Run, args: ExplainArgs) -> Outcome {
    let out = &run.out;
    let ExplainArgs { decision, show_context, show_reasoning } = args;
    let found = run.env.engine()?.call(Explain { decision, show_context, show_reasoning })?;
    let data = json(&found)?;
    let panel = out.panel(None, "Decision");
    panel
        .pick(&data, "decision_id", "ID", Kind::Id)
        .pick(&data, "type", "Type", Kind::Text)
        .pick(&data, "question", "Question", Kind::Prose)
        .row("Chosen", prose(text(&data, "chosen"), Tone::Strong));
    match data["confidence"].as_f64() {
        Some(confidence) => panel.row("Confidence", format!("{confidence:.2}")),
        None => panel.row("Confidence", dim("(none recorded)")),
    };
    if let Some(gate) = gate(&data["gate"]) {
        panel.row("Gate", gate);
    }
    panel
        .pick(&data, "status", "Status", Kind::State)
        .pick(&data, "superseded_by", "Replaced By", Kind::Id)
        .pick(&data, "plan_id", "Plan", Kind::Id)
        .pick(&data, "sequence", "Sequence", Kind::Text)
        .pick(&data, "created", "Created", Kind::Time);
    drop(panel);
    if !found.alternatives.is_empty() {
        let panel = out.panel(None, "Alternatives Considered");
        for alternative in &found.alternatives {
            let mut line =
                Styled::from(format!("{}. ", alternative.index)).and(own(alternative.option.as_str()));
            if alternative.chosen {
                line = line.and(good(" (chosen)"));
            }
            if alternative.description != alternative.option {
                line = line.and(dim(" — ").owned()).and(prose(alternative.description.as_str(), Tone::Dim));
            }
            panel.line(line);
        }
    }
    if !found.rationale.is_empty() {
        out.panel(None, "Rationale").line(own(found.rationale.as_str()));
    }
    out.panel(None, "Impact")
        .pick(&data, "impact.downstream_decisions", "Downstream Decisions", Kind::Count)
        .pick(&data, "impact.downstream_child_plans", "Downstream Child Plans", Kind::Count)
        .pick(&data, "impact.artifacts_produced", "Artifacts Produced", Kind::Count)
        .pick(&data, "impact.artifacts", "Files", Kind::Path)
        .pick(&data, "impact.correction_impact", "Correction Impact", Kind::Text);
    if !found.resources.is_empty() {
        let panel = out.panel(None, "Where");
        for place in found.resources.iter().take(PLACES) {
            let line = place.range.map_or(String::new(), |r| format!(":{}", r.start.line + 1));
            let mut shown = id(format!("{}{line}", place.path));
            if let Some(symbol) = &place.symbol {
                shown = shown.and(dim(" in ")).and(symbol.as_str());
            }
            if let Some(note) = &place.note {
                shown = shown.and(dim(" — ").owned()).and(note.lines().next().unwrap_or_default());
            }
            panel.line(shown);
        }
        let more = found.resources.len().saturating_sub(PLACES);
        if more > 0 {
            panel.line(dim(format!("and {more} more")));
        }
    }
    if let Some(computed) = &found.computed_confidence {
        let panel = out.panel(None, "Computed Confidence");
        panel.row("Score", format!("{:.2}", computed.score));
        for factor in &computed.factors {
            let known = if factor.known { "" } else { " (not known)" };
            let counted = format!("  counts {:.2}{known}", factor.counted);
            panel.row(&factor.name, Styled::from(format!("{:.2}", factor.value)).and(dim(counted)));
        }
    }
    if let Some(context) = data.get("context_snapshot") {
        let panel = out.panel(None, "Context Snapshot");
        for item in texts(&context["items"]).take(PLACES) {
            panel.line(format!("- {item}"));
        }
        panel.row("Hot Context Hash", id(format!("sha256:{}", text(context, "hot_context_hash"))));
        drop(panel);
        if !context["document"].is_null() {
            let shown = serde_json::to_string_pretty(&context["document"]).unwrap_or_default();
            out.code(None, &shown).title("Context").language("json");
        }
    }
    if let Some(reasoning) = data.get("model_reasoning") {
        let reasoning = reasoning.as_str().unwrap_or_default();
        let panel = out.panel(None, "Actor Reasoning");
        if reasoning.is_empty() {
            panel.line(own("(none recorded)"))
        } else {
            panel.line(reasoning)
        };
    }
    if !found.corrections.is_empty() {
        let panel = out.panel(None, "Corrections");
        for made in &found.corrections {
            panel.line(correction(made));
            panel.line(dim(format!("   {}", made.diff_command)));
        }
    }
    let pending = found.status == agents_domain::decision::DecisionStatus::Pending;
    out.hint(if pending { "Answer" } else { "Correct" }, found.correction_hint);
    out.set_data(data);
    out.ok("Decision explained");
    Ok(())
}

/// `Corrected by ada, 2026-01-01T10:00:00Z: “Leave it” → Leave alone; completed`.
fn correction(made: &CorrectionMade) -> Styled {
    let what = match (made.role.as_str(), made.mode) {
        ("made", CorrectionMode::Append) => "Added",
        ("corrected", CorrectionMode::Append) => "Added to",
        ("made", _) => "Made by a correction",
        ("fell", _) => "Fell with a correction",
        _ => "Corrected",
    };
    let now = match &made.chosen {
        Some(chosen) if *chosen != made.guidance => format!(" → {chosen}"),
        _ => String::new(),
    };
    let state = format!("{:?}", made.state).to_lowercase();
    let why = made.failure.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    own(format!("{what} by {}, {}: “{}”{now}; {state}{why}", made.by, made.at, made.guidance))
}

/// `0.60 (edit_code of cautious), approved automatically`.
fn gate(gate: &Value) -> Option<Styled> {
    let threshold = gate["threshold"].as_f64()?;
    let shown = Styled::from(format!("{threshold:.2} ({} of {})", text(gate, "flag"), text(gate, "profile")));
    Some(match gate["approval"].as_str() {
        Some(approval) => shown.and(dim(format!(", passed: {}", approval.replace('_', " ")))),
        None => shown.and(warn(", waits for you")),
    })
}
