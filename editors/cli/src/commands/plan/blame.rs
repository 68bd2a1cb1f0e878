//! `agents plan blame FILE[:LINE]`: which decision made a line.

use std::path::Path;

use agents_engine::operations::plan::{Blame, BlamedSegment};

use crate::commands::json;
use crate::compose;
use crate::failure::Outcome;
use crate::output::human::counted;
use crate::output::{AppError, Row, Styled, Tone, col, dim, id, own, prose, warn};
use crate::run::Run;

/// Characters of an id: those of its time, and enough to tell decisions of one moment apart.
const SHORT: usize = 13;

pub fn run(run: &Run, place: &str) -> Outcome {
    let out = &run.out;
    let (file, line) = split(place)?;
    let file = compose::absolute(&file)?;
    let found = run.env.engine()?.call(Blame { file, line, text: None })?;
    let data = json(&found)?;
    if line.is_some() {
        for segment in &found.segments {
            show(out, segment);
        }
        if found.segments.is_empty() {
            out.say("No plan wrote this line.");
        }
    } else {
        let columns = vec![
            col("lines", "Lines"),
            col("decision", "Decision"),
            col("what", "What Was Decided").wrap(),
            col("confidence", "Confidence"),
            col("plan_id", "Plan").id(),
        ];
        let table = out.table(None, &format!("Decisions Behind {}", found.path), columns);
        for segment in &found.segments {
            let mut lines = Styled::from(lines(segment));
            if segment.deletion {
                lines = lines.and(dim(" (deleted)"));
            }
            if segment.proposed {
                lines = lines.and(warn(" proposed"));
            }
            let row = Row::from(serde_json::json!({ "plan_id": segment.plan_id }));
            let mut decision = segment.decision_id.to_string();
            decision.truncate(SHORT);
            table.row(
                row.show("lines", lines)
                    .show("decision", id(decision))
                    .show("what", decided(segment))
                    .show("confidence", confidence(segment)),
            );
        }
        table.when_empty("decisions", &[]);
    }
    for warning in &found.warnings {
        out.warn(warning.as_str());
    }
    let count = found.segments.len() as u64;
    out.set_data(data);
    out.ok(match line {
        None => format!("{} found", counted(count, "place", "places")),
        Some(_) => format!("{} found", counted(count, "decision", "decisions")),
    });
    Ok(())
}

/// The file and the line; a file whose name ends with `:12` is found when there is one.
fn split(place: &str) -> Result<(String, Option<u32>), AppError> {
    if Path::new(place).exists() {
        return Ok((place.to_owned(), None));
    }
    match place.rsplit_once(':') {
        Some((file, line)) if !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) => {
            let number: u32 = line.parse().map_err(|_| {
                AppError::usage(format!("`{line}` is no line: no file has more than {} lines", u32::MAX))
            })?;
            if number == 0 {
                return Err(AppError::usage("`0` is no line: lines are counted from 1"));
            }
            Ok((file.to_owned(), Some(number)))
        }
        _ => Ok((place.to_owned(), None)),
    }
}

fn lines(segment: &BlamedSegment) -> String {
    if segment.deletion || segment.start_line >= segment.end_line {
        return segment.start_line.to_string();
    }
    format!("{}-{}", segment.start_line, segment.end_line)
}

/// The choice of Strategize where there is one: it says why, the implementation only how.
fn decided(segment: &BlamedSegment) -> Styled {
    let (question, chosen) = match &segment.strategy {
        Some(strategy) => (&strategy.question, &strategy.chosen),
        None => (&segment.question, &segment.chosen),
    };
    own(question).and(prose(" → ", Tone::Dim)).and(prose(chosen, Tone::Strong))
}

/// How sure the actor was of what was chosen, or that a person chose it.
fn confidence(segment: &BlamedSegment) -> Styled {
    if segment.answered {
        return "answered".into();
    }
    let of_strategy = segment.strategy.as_ref().and_then(|s| s.confidence);
    of_strategy.or(segment.confidence).map_or_else(|| dim("-"), |c| format!("{c:.2}").into())
}

fn show(out: &crate::output::Output, segment: &BlamedSegment) {
    let strategy = segment.strategy.as_ref();
    let alternatives = strategy.map_or(&segment.alternatives, |s| &s.alternatives);
    let chosen = strategy.map_or(&segment.chosen, |s| &s.chosen);
    let panel = out.panel(None, if segment.proposed { "Proposed Change" } else { "Decision" });
    panel
        .row(
            "Lines",
            if segment.deletion {
                format!("deleted before line {}", segment.start_line)
            } else {
                lines(segment)
            },
        )
        .row("Question", own(strategy.map_or(&segment.question, |s| &s.question)))
        .row("Chosen", prose(chosen, Tone::Strong));
    panel.row("Confidence", confidence(segment));
    let others: Vec<&str> = alternatives.iter().filter(|a| *a != chosen).map(String::as_str).collect();
    if !others.is_empty() {
        panel.row("Instead Of", own(others.join(", ")));
    }
    panel
        .row("Why", own(strategy.map_or(&segment.rationale, |s| &s.rationale)))
        .row("Carried Out", own(segment.rationale.as_str()))
        .row("Plan", id(segment.plan_id.to_string()).and(dim(format!(" {}", segment.action))))
        .row("Decision", id(segment.decision_id.to_string()));
    if let Some(commit) = &segment.commit {
        panel.row("Noted In", format!("commit {}", &commit[..commit.len().min(12)]));
    }
    if let Some(strategy) = strategy {
        panel.row("Strategy", id(strategy.decision_id.to_string()));
    }
    match segment.proposed_text.as_deref().map(|text| text.trim_end_matches('\n')) {
        None => {}
        Some("") => {
            panel.row("It Would Become", dim("(removed)"));
        }
        Some(text) => {
            drop(panel);
            out.code(None, text).title("It Would Become");
        }
    }
    let explained = strategy.map_or(segment.decision_id, |s| s.decision_id).to_string();
    // What only a note tells of is in no database of ours.
    if segment.commit.is_none() {
        out.hint("Next Steps", [format!("agents plan explain {explained}")]);
    }
}
