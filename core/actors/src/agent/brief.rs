//! What a model is told of its plan: all at the beginning, and what is new later.

use std::fmt::Write as _;

use agents_domain::decision::DecisionType;
use agents_domain::plan::Phase;
use agents_domain::ports::actor::{ActorHost, KnownDecision, StepInput};
use agents_domain::validation::ValidationOutcome;

use super::fence::fenced;
use super::state::State;
use super::talk::bounded;

/// Before what is known of a child plan, among the decisions that are known.
const CHILD: &str = "child/";
/// Files that are listed of a workspace.
const FILES: usize = 400;
/// Characters of one part that comes from elsewhere.
const PART: usize = 20_000;

/// The first message: the task with all that is known of it.
pub(super) fn task(input: &StepInput, host: &dyn ActorHost, state: &mut State) -> String {
    let mut text = String::new();
    let title = match (input.phase, input.estimating) {
        (_, true) => "Estimate what it will cost to carry this plan out.",
        (Phase::Execute, _) => "Carry this plan out.",
        _ => "Decide on the strategy of this plan.",
    };
    let _ = writeln!(text, "{title}\n\n# Task\n{}", fenced(&bounded(&input.description, PART)));
    if !input.definition_of_done.trim().is_empty() {
        let _ = writeln!(text, "\n# Done when\n{}", fenced(&bounded(&input.definition_of_done, PART)));
    }
    let arguments: Vec<String> = input
        .arguments
        .iter()
        .filter(|(name, _)| !super::actor::MODEL_ARGUMENTS.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    if !arguments.is_empty() {
        let _ = writeln!(text, "\n# Arguments\n{}", fenced(&bounded(&arguments.join("\n"), PART)));
    }
    if let Some(parent) = &input.parent {
        let _ = writeln!(
            text,
            "\n# Part of a larger plan\nThis is a part of it that was handed on. The larger one:\n{}",
            fenced(&bounded(&parent.description, PART))
        );
        if !parent.target_files.is_empty() {
            let _ = writeln!(text, "This part is about: {}", parent.target_files.join(", "));
        }
        let _ = writeln!(text, "{}", decisions_as_text("Its decisions:", &parent.decisions));
    }
    if !input.invariants.is_empty() {
        let mut lines = String::new();
        for invariant in &input.invariants {
            let by = if invariant.check.is_some() { " (checked by the machine at each write)" } else { "" };
            let _ = writeln!(lines, "- {}{by}", invariant.text);
        }
        let _ = writeln!(text, "\n# Invariants\n{}", fenced(&bounded(&lines, PART)));
    }
    workspaces(&mut text, host);
    if input.phase == Phase::Execute || input.estimating {
        strategy(&mut text, input);
    }
    if !input.validations.is_empty() {
        let _ = writeln!(text, "\n# Validations that are run at the end of the work");
        for validation in &input.validations {
            let about = validation.description.as_deref().unwrap_or("");
            let _ = writeln!(text, "- {} ({:?}) {about}", validation.validation, validation.mode);
        }
    }
    if !input.known_failures.is_empty() {
        let _ = writeln!(text, "\n# What failed in such work before");
        for pattern in &input.known_failures {
            let hints = if pattern.hints.is_empty() {
                String::new()
            } else {
                format!(" (what may help: {})", pattern.hints.join("; "))
            };
            let _ = writeln!(
                text,
                "- {} times: {}{hints}",
                pattern.count,
                bounded(&super::fence::shown(&pattern.last_message), 500)
            );
        }
    }
    if let Some(news) = news(input, state) {
        let _ = writeln!(text, "\n{news}");
    }
    text
}

fn workspaces(text: &mut String, host: &dyn ActorHost) {
    for workspace in host.workspaces() {
        let mode = if workspace.read_only { ", read-only" } else { "" };
        let _ = writeln!(text, "\n# Resource {} (id {}{mode})", workspace.name, workspace.resource_id);
        match host.files(workspace.resource_id) {
            Ok(files) => {
                let mut list = String::new();
                for file in files.iter().take(FILES) {
                    let _ = writeln!(list, "{} ({} bytes)", file.path, file.size);
                }
                if files.len() > FILES {
                    let _ = writeln!(list, "[and {} more files]", files.len() - FILES);
                }
                let _ = writeln!(text, "{}", fenced(&bounded(&list, PART)));
            }
            Err(failure) => {
                let _ = writeln!(text, "Its files cannot be listed: {}", failure.message);
            }
        }
        for (path, reason) in workspace.untouchable.iter().take(50) {
            let _ = writeln!(text, "Leave {path} alone: {reason}");
        }
    }
}

/// What the strategist left: its summary, out of the end of its conversation.
fn strategy(text: &mut String, input: &StepInput) {
    let Some(summary) = input.handover.pointer("/summary") else { return };
    let headline = summary["headline"].as_str().unwrap_or_default();
    let lines: Vec<&str> =
        summary["lines"].as_array().into_iter().flatten().filter_map(|l| l.as_str()).collect();
    let all = format!("{headline}\n{}", lines.join("\n"));
    let _ = writeln!(text, "\n# Strategy\n{}", fenced(&bounded(&all, PART)));
}

fn decisions_as_text(title: &str, decisions: &[KnownDecision]) -> String {
    let mut text = format!("{title}\n");
    for decision in decisions {
        let _ = writeln!(text, "{}", decision_line(decision));
    }
    fenced(&bounded(&text, PART))
}

fn decision_line(decision: &KnownDecision) -> String {
    let key = decision.key.as_deref().unwrap_or("-");
    let kind = decision.decision_type.as_str();
    format!("- [{key}] {kind}: {} -> {}", decision.question, decision.chosen_option)
}

/// Decisions, guidance, edits and children the model has not heard of; `None` when there is nothing new.
pub(super) fn news(input: &StepInput, state: &mut State) -> Option<String> {
    let mut parts = Vec::new();
    let shown = |decision: &&KnownDecision| {
        !matches!(decision.decision_type, DecisionType::PromptDefinition | DecisionType::InvariantEnforced)
    };
    let fresh: Vec<KnownDecision> = input
        .decisions
        .iter()
        .filter(shown)
        .filter(|decision| {
            let key = decision.key.clone().unwrap_or_else(|| decision.decision_id.to_string());
            state.told.insert(key, decision.chosen_option.clone()).as_ref() != Some(&decision.chosen_option)
        })
        .cloned()
        .collect();
    if !fresh.is_empty() {
        parts.push(decisions_as_text(
            "# Decisions that stand\nThey were made already; build on them.",
            &fresh,
        ));
    }
    let standing: Vec<&str> = input.decisions.iter().filter_map(|d| d.key.as_deref()).collect();
    let gone: Vec<String> = state
        .told
        .keys()
        .filter(|key| {
            !standing.contains(&key.as_str())
                && !input.decisions.iter().any(|d| d.decision_id.to_string() == **key)
        })
        .cloned()
        .collect();
    if !gone.is_empty() {
        parts.push(format!(
            "# Decisions that do not stand any more, with the work done under them\n{}",
            gone.join(", ")
        ));
        for key in &gone {
            state.told.remove(key);
        }
    }
    for said in &input.guidance {
        parts.push(format!("# A person says\n{}", fenced(&bounded(said, PART))));
    }
    for child in &input.children {
        let key = format!(
            "{CHILD}{}",
            child.plan_id.map_or_else(|| child.key.clone().unwrap_or_default(), |id| id.to_string())
        );
        if state.told.insert(key, child.state.clone()).as_ref() != Some(&child.state) {
            let of = child.key.as_deref().unwrap_or("-");
            let left = child.headline.as_deref().unwrap_or("nothing was said");
            parts.push(format!(
                "# Child plan of [{of}] is over: {}\n{}",
                child.state,
                fenced(&bounded(left, PART))
            ));
        }
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Validations that did not pass, as the model shall read them.
pub(super) fn findings(outcomes: &[ValidationOutcome]) -> String {
    let mut text = String::from("Validations did not pass. Repair what they found, then finish again.\n");
    for outcome in outcomes {
        let mut part = format!("{}: {}\n", outcome.validation, outcome.message);
        for finding in outcome.findings.iter().take(50) {
            let finding = serde_json::to_string(finding).unwrap_or_default();
            let _ = writeln!(part, "- {finding}");
        }
        let data = serde_json::to_string(&outcome.data).unwrap_or_default();
        if outcome.findings.is_empty() && data != "{}" {
            part.push_str(&bounded(&data, 4_000));
        }
        text.push_str(&fenced(&bounded(&part, PART)));
        text.push('\n');
    }
    text
}
