//! `agents plan status`.

use agents_domain::plan::{Phase, State};
use serde_json::Value;

use super::pause::{next_command, next_steps, question};
use crate::commands::{json, text};
use crate::failure::Outcome;
use crate::follow::mark;
use crate::output::{Kind, Output, Styled, Tone, dim, good, human, own, warn};
use crate::run::Run;

pub fn run(run: &Run, plan: &str) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let (plan, standing) = super::find(&engine, plan)?;
    let data = json(&standing)?;
    let panel = out.panel(None, "Plan Status");
    panel
        .pick(&data, "plan_id", "Plan", Kind::Id)
        .pick(&data, "phase", "Phase", Kind::Text)
        .pick(&data, "state", "State", Kind::State)
        .pick(&data, "action", "Action", Kind::Id)
        .pick(&data, "project", "Project", Kind::Id)
        .pick(&data, "automation", "Automation", Kind::Text)
        .pick(&data, "attempt", "Attempt", Kind::Count)
        .pick(&data, "description", "Description", Kind::Text);
    if standing.awaiting.is_none() && matches!(standing.state, State::Queued | State::Processing) {
        panel.row("Worker", if standing.worker_alive { good("at work") } else { warn("none") });
    }
    drop(panel);
    progress(out, &data);
    timing(out, &data);
    match &standing.result {
        Some(_) => {
            out.panel(None, "Result")
                .pick(&data, "result.decisions_made", "Decisions Made", Kind::Count)
                .pick(&data, "execution.child_plans", "Child Plans", Kind::Text)
                .row("Artifacts", counted_files(&data["result"]["artifacts"]))
                .row("Changes", human::changes(&data["result"]))
                .pick(&data, "result.validations", "Validations", Kind::Text)
                .pick(&data, "result.total_cost", "Total Cost", Kind::Text);
        }
        None if standing.phase == Phase::Strategize => {
            let panel = out.panel(None, "Strategy Progress");
            panel
                .pick(&data, "strategy_progress.decisions_made", "Decisions Made", Kind::Count)
                .pick(&data, "strategy_progress.invariants_enforced", "Invariants Enforced", Kind::Count)
                .pick(&data, "strategy_progress.child_plans_planned", "Child Plans Planned", Kind::Count)
                .pick(&data, "strategy_progress.elapsed", "Elapsed", Kind::Text);
            if standing.pending_decisions > 0 {
                panel.pick(&data, "pending_decisions", "Wait for You", Kind::Count);
            }
        }
        None => {
            out.panel(None, "Execution Detail")
                .pick(&data, "execution.sandbox.strategy", "Sandbox", Kind::Text)
                .pick(&data, "execution.sandbox.path", "Path", Kind::Path)
                .pick(&data, "execution.tool_calls", "Tool Calls", Kind::Count)
                .pick(&data, "execution.files_modified", "Files Modified", Kind::Count)
                .pick(&data, "execution.decisions_made", "Decisions Made", Kind::Count)
                .pick(&data, "execution.child_plans", "Child Plans", Kind::Text)
                .pick(&data, "execution.checkpoints", "Checkpoints", Kind::Count);
        }
    }
    super::validations::show(out, &data);
    if standing.cost.tokens_used > 0 {
        out.panel(None, "Cost")
            .pick(&data, "cost.tokens_used", "Tokens Used", Kind::Count)
            .pick(&data, "cost.cost_so_far", "Cost So Far", Kind::Text)
            .pick(&data, "cost.estimated", "Estimated", Kind::Text);
    }
    for (phase, summary) in &standing.summaries {
        if !summary.headline.is_empty() {
            out.panel(None, &format!("{} Summary", crate::follow::title(*phase)))
                .line(own(summary.headline.as_str()));
        }
    }
    if standing.error.is_some() {
        out.panel(None, "Error")
            .tone(Tone::Bad)
            .pick(&data, "error.message", "Error", Kind::Prose)
            .pick(&data, "error.category", "Category", Kind::Text)
            .pick(&data, "error.tool", "Tool", Kind::Text)
            .pick(&data, "error.step", "Step", Kind::Text)
            .pick(&data, "error.checkpoint", "Checkpoint", Kind::Id)
            .pick(&data, "error.recoverable", "Recoverable", Kind::Auto)
            .pick(&data, "error.hints", "Hints", Kind::Text);
    }
    question(out, &engine, &standing)?;
    out.set_data(data);
    if !matches!(standing.state, State::Applied | State::Cancelled) {
        out.hint("Next Steps", next_steps(&standing));
    }
    match standing.state {
        State::Errored => {
            out.error("Plan errored — use `agents plan prompt` to resume or `agents plan cancel` to abort");
        }
        _ if standing.awaiting.is_some() => {
            let asked = standing.awaiting.as_ref().map_or("", |a| a.question.as_str());
            let waits = out.warn(format!("The plan waits for you: {asked}"));
            if let Some(command) = next_command(&standing) {
                waits.detail(command);
            }
        }
        State::Applied => {
            out.ok("Plan completed successfully");
        }
        State::Cancelled => {
            out.ok(format!("Plan {plan} was cancelled"));
        }
        _ if standing.phase == Phase::Strategize => {
            out.ok("Strategize in progress");
        }
        _ => {
            out.ok("Status refreshed");
        }
    }
    Ok(())
}

fn counted_files(n: &Value) -> String {
    format!("{} updated", human::counted(n.as_u64().unwrap_or(0), "file", "files"))
}

/// The phases with their icons, and what the worker is at.
fn progress(out: &Output, data: &Value) {
    let panel = out.panel(None, "Progress");
    for step in data["progress"].as_array().into_iter().flatten() {
        let status = text(step, "status");
        let mut line = Styled::from(text(step, "step"));
        if status != "done" {
            line = line.and(dim(format!(" ({status})")));
        }
        panel.marked(mark(status), line);
    }
    let activity = &data["activity"];
    if let Some(label) = activity["label"].as_str().filter(|label| !label.is_empty()) {
        let counts = match (activity["done"].as_u64(), activity["total"].as_u64()) {
            (Some(done), Some(total)) => format!(" {}/{}", human::count(done), human::count(total)),
            _ => String::new(),
        };
        panel.row("Now", own(label).and(dim(counts)));
    }
}

fn timing(out: &Output, data: &Value) {
    let panel = out.panel(None, "Timing");
    panel.pick(data, "timing.started", "Started", Kind::Time);
    if data["timing"]["finished"].is_null() {
        panel.pick(data, "timing.elapsed", "Elapsed", Kind::Text);
        return;
    }
    panel.pick(data, "timing.finished", "Finished", Kind::Time).pick(
        data,
        "timing.total_duration",
        "Total Duration",
        Kind::Text,
    );
}
