//! `agents plan diff`, `artifacts` and `errors`.

use std::collections::HashMap;

use agents_domain::ids::DecisionId;
use agents_engine::Engine;
use agents_engine::operations::plan::{Artifacts, CorrectionDiff, Diff, DiffOutput, Errors, Tree, TreeNode};
use serde_json::Value;

use crate::commands::{bullets, json, listed};
use crate::failure::{Failure, Outcome};
use crate::output::{Kind, Output, Row, Styled, Tone, col, dim, human, id, own, prose};
use crate::run::Run;

/// Characters that an id is shown with at least.
const SHORT: usize = 10;

pub fn diff(run: &Run, plan: &str) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let diff = engine.call(Diff { plan: plan.to_owned() })?;
    let behind = behind(&engine, &diff)?;
    let data = json(&diff)?;
    let net = diff.diff_summary.net_change;
    out.panel(None, "Diff Summary")
        .pick(&data, "diff_summary.plan", "Plan", Kind::Id)
        .pick(&data, "diff_summary.project", "Project", Kind::Id)
        .pick(&data, "diff_summary.files_changed", "Files Changed", Kind::Count)
        .pick(&data, "diff_summary.insertions", "Insertions", Kind::Count)
        .pick(&data, "diff_summary.deletions", "Deletions", Kind::Count)
        .row("Net Change", format!("{net:+} {}", if net.abs() == 1 { "line" } else { "lines" }))
        .pick(&data, "diff_summary.location", "Where", Kind::Text);
    show_files(out, &data);
    show_patch(out, &diff, &behind);
    out.panel(None, "Risk Assessment")
        .pick(&data, "risk_assessment.api_compatibility", "API Compatibility", Kind::Text)
        .pick(&data, "risk_assessment.test_coverage", "Test Coverage", Kind::Text)
        .pick(&data, "risk_assessment.breaking_changes", "Breaking Changes", Kind::Text);
    out.set_data(data);
    out.ok("Diff generated");
    Ok(())
}

/// The files before and after a correction.
pub fn correction(run: &Run, correction: &str) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(CorrectionDiff { correction: correction.to_owned() })?;
    let data = json(&found)?;
    out.panel(None, "Correction Diff")
        .pick(&data, "correction_diff.correction", "Correction", Kind::Id)
        .pick(&data, "correction_diff.original_decision", "Original Decision", Kind::Id)
        .pick(&data, "correction_diff.mode", "Mode", Kind::Text)
        .pick(&data, "correction_diff.guidance", "Guidance", Kind::Text)
        .pick(&data, "correction_diff.state", "State", Kind::State)
        .pick(&data, "correction_diff.files_changed", "Files Changed", Kind::Count)
        .pick(&data, "correction_diff.new_insertions", "New Insertions", Kind::Count)
        .pick(&data, "correction_diff.new_deletions", "New Deletions", Kind::Count);
    let columns = vec![
        col("file", "File").kind(Kind::Path),
        col("before", "Before (original)"),
        col("after", "After (corrected)"),
    ];
    out.table(None, "Comparison", columns).rows(&data["comparison"]).when_empty("changed files", &[]);
    for file in &found.patch_preview {
        out.diff(None, &file.patch);
    }
    let unfinished = found.correction_diff.in_progress;
    out.set_data(data);
    out.ok("Correction diff generated");
    if unfinished {
        out.info("The work is not done again yet; this is how far it is");
    }
    Ok(())
}

pub fn show_files(out: &Output, data: &Value) {
    let columns = vec![
        col("path", "Path").kind(Kind::Path),
        col("change", "Change"),
        col("status", "Status").kind(Kind::State),
        col("decisions", "Decisions").id(),
    ];
    let table = out.table(None, "Files", columns);
    for file in data["files"].as_array().into_iter().flatten() {
        let [added, removed] = ["insertions", "deletions"].map(|key| file[key].as_u64().unwrap_or(0));
        let change = Styled::new(format!("+{added}"), Tone::Good)
            .and(" ")
            .and(Styled::new(format!("-{removed}"), Tone::Bad));
        let decisions = short(file["decisions"].as_array().into_iter().flatten().filter_map(Value::as_str));
        table.row(Row::from(file).show("change", change).show("decisions", decisions));
    }
}

fn short<'a>(ids: impl Iterator<Item = &'a str>) -> Styled {
    let ids: Vec<&str> = ids.collect();
    match ids.as_slice() {
        [] => dim("-"),
        [one] => id(human::short_id(one)),
        [first, rest @ ..] => id(human::short_id(first)).and(dim(format!(" +{}", rest.len()))),
    }
}

/// A decision behind a change.
pub struct Behind {
    /// The beginning of its id that tells it from the others of the plan.
    short: String,
    /// What was chosen.
    chosen: String,
}

/// What was chosen behind the changes, by the decision that carried it out.
pub fn behind(engine: &Engine, diff: &DiffOutput) -> Result<HashMap<DecisionId, Behind>, Failure> {
    if diff.files.iter().all(|file| file.decisions.is_empty()) {
        return Ok(HashMap::new());
    }
    let mut chosen: Vec<(DecisionId, String)> = Vec::new();
    let plan = diff.diff_summary.plan.to_string();
    let root = engine.call(Tree { plan, show_superseded: true })?.tree;
    let mut open: Vec<(TreeNode, Option<String>)> = root.into_iter().map(|root| (root, None)).collect();
    while let Some((node, strategy)) = open.pop() {
        // An implementation says how; the strategy above it says what.
        let strategy = match node.decision_type.as_str() {
            "strategy_choice" | "user_intervention" => Some(node.chosen.clone()),
            _ => strategy,
        };
        chosen.push((node.decision_id, strategy.clone().unwrap_or_else(|| node.chosen.clone())));
        open.extend(node.children.into_iter().map(|child| (child, strategy.clone())));
    }
    let ids: Vec<String> = chosen.iter().map(|(id, _)| id.to_string()).collect();
    let short = human::short_ids(&ids.iter().map(String::as_str).collect::<Vec<_>>(), SHORT);
    Ok(chosen.into_iter().zip(short).map(|((id, chosen), short)| (id, Behind { short, chosen })).collect())
}

/// The diff, with the decisions behind each hunk.
pub fn show_patch(out: &Output, diff: &DiffOutput, behind: &HashMap<DecisionId, Behind>) {
    for (at, file) in diff.files.iter().enumerate() {
        let hunks = diff.patch_preview.get(at).map_or(&[][..], |file| &file.hunks);
        out.diff_with(None, &file.patch, |_, hunk| {
            let decisions = hunks.get(hunk).map_or(&[][..], |hunk| &hunk.decisions);
            let note = |behind: &Behind| {
                prose("◆ ", Tone::Dim)
                    .and(id(behind.short.as_str()))
                    .and(" ")
                    .and(own(behind.chosen.as_str()))
            };
            decisions.iter().filter_map(|decision| behind.get(decision)).map(note).collect()
        });
    }
}

pub fn artifacts(run: &Run, plan: &str) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(Artifacts { plan: plan.to_owned() })?;
    let count = found.artifacts.len();
    let data = json(&found)?;
    let columns = vec![
        col("path", "Path").kind(Kind::Path),
        col("type", "Type"),
        col("size_bytes", "Size").kind(Kind::Bytes),
        col("change", "Change").kind(Kind::State),
    ];
    out.table(None, "Artifacts", columns)
        .rows(&data["artifacts"])
        .when_empty("artifacts", &[&format!("agents plan status {}", found.plan_id)]);
    out.panel(None, "Artifact Summary")
        .pick(&data, "summary.total", "Total", Kind::Count)
        .pick(&data, "summary.writes", "New", Kind::Count)
        .pick(&data, "summary.edits", "Edited", Kind::Count)
        .pick(&data, "summary.deletes", "Deleted", Kind::Count)
        .pick(&data, "summary.total_size_bytes", "Total Size", Kind::Bytes);
    let columns = vec![
        col("id", "Checkpoint").id(),
        col("label", "Label").kind(Kind::Prose),
        col("type", "Type"),
        col("created", "Created").kind(Kind::Time),
        col("decision_id", "Decision").id(),
    ];
    out.table(None, "Checkpoints", columns).rows(&data["checkpoints"]);
    if found.rollback.tier != agents_domain::checkpoint::Tier::Full {
        let reasons = found.rollback.reasons.join("; ");
        out.warn(match found.rollback.tier {
            agents_domain::checkpoint::Tier::None => format!("Nothing can be taken back: {reasons}"),
            _ => format!("Only the whole of Execute can be taken back: {reasons}"),
        });
    }
    out.set_data(data);
    out.ok(listed(count, "artifact", "artifacts"));
    Ok(())
}

pub fn errors(run: &Run, plan: &str) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(Errors { plan: plan.to_owned() })?;
    let data = json(&found)?;
    if found.error_message.is_some() {
        out.panel(None, "Error")
            .tone(Tone::Bad)
            .pick(&data, "plan_id", "Plan", Kind::Id)
            .row("State", format!("{}/{}", found.phase, found.state))
            .pick(&data, "error_message", "Error", Kind::Prose)
            .pick(&data, "error_category", "Category", Kind::Text)
            .pick(&data, "error_phase", "Phase", Kind::Text)
            .row("Retries", format!("{}/{}", found.retry_count, found.max_retries))
            .pick(&data, "is_retriable", "Retriable", Kind::Auto);
        if !found.error_hints.is_empty() {
            bullets(&out.panel(None, "Hints"), found.error_hints.iter().map(String::as_str));
        }
        let panel = out.panel(None, "Recovery");
        for hint in &found.recovery_hints {
            panel
                .line(own(format!("{}:", hint.message)))
                .line(Styled::from("  ").and(id(hint.cli_command.as_str())));
        }
    } else {
        out.panel(None, "Errors")
            .pick(&data, "plan_id", "Plan", Kind::Id)
            .row("State", format!("{}/{}", found.phase, found.state))
            .row("Error", dim("(none)"));
    }
    if !found.history.is_empty() {
        let columns = vec![
            col("decision_id", "Decision").id(),
            col("question", "What Failed").kind(Kind::Prose).wrap(),
            col("chosen", "What Was Done").kind(Kind::Prose).wrap(),
            col("created", "When").kind(Kind::Time),
        ];
        out.table(None, "Dealt With", columns).rows(&data["history"]);
    }
    if !found.failures.is_empty() {
        let columns = vec![
            col("created", "When").kind(Kind::Time),
            col("phase", "Phase"),
            col("category", "Category"),
            col("tool", "Tool"),
            col("message", "What Failed").wrap(),
            col("outcome", "Then"),
        ];
        out.table(None, "Failures", columns).rows(&data["failures"]);
    }
    if !found.patterns.is_empty() {
        let panel = out.panel(None, "Seen Before");
        for pattern in &found.patterns {
            let times = human::counted(pattern.count.into(), "time", "times");
            let plans = human::counted(pattern.plans.into(), "plan", "plans");
            panel.line(format!("{times} in {plans}: {}", pattern.last_message));
        }
    }
    let failed = found.error_phase.map(|phase| format!("The plan failed in {phase}"));
    out.set_data(data);
    match failed {
        Some(failed) => out.info(failed),
        None => out.ok("The plan has no error"),
    };
    Ok(())
}
