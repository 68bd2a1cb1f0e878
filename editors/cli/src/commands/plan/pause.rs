//! How a command ends that followed a plan: what the plan waits for, what to do next, or why it failed.

use agents_domain::plan::machine::Verb;
use agents_domain::plan::{AwaitingKind, Phase, PhaseSummary, State};
use agents_domain::{Error, ErrorKind};
use agents_engine::Engine;
use agents_engine::operations::plan::{Pending, StatusOutput};
use serde_json::{Map, Value};

use crate::commands::json;
use crate::failure::{Failure, Outcome};
use crate::follow;
use crate::output::human::counted;
use crate::output::{Output, Styled, Tone, dim, own, prose, warn};
use crate::run::Run;

/// Brings what a verb returned up to where the plan stands now.
pub fn refresh(data: &mut Value, standing: &StatusOutput) -> Result<(), Failure> {
    let now = json(standing)?;
    let Value::Object(data) = data else { return Ok(()) };
    // The lines of `plan execute` are those of Execute, the others' those of the whole plan.
    let of_execute = data.get("progress").is_some_and(|lines| !lines[0]["label"].is_null());
    for key in
        ["phase", "state", "attempt", "progress", "awaiting", "allowed_actions", "pending_decisions", "error"]
    {
        data.insert(key.to_owned(), now[key].clone());
    }
    if of_execute {
        data.insert("progress".to_owned(), now["execution"]["progress"].clone());
    }
    let sandbox = now["execution"]["sandbox"].clone();
    if data.contains_key("sandbox") && !sandbox.is_null() {
        data.insert("sandbox".to_owned(), sandbox);
    }
    data.insert(
        "summary".to_owned(),
        summary(standing).map_or(Ok(Value::Null), |(_, summary)| json(summary))?,
    );
    Ok(())
}

/// The latest finished phase, and what it left.
fn summary(standing: &StatusOutput) -> Option<(Phase, &PhaseSummary)> {
    let phases = [Phase::Apply, Phase::Execute, Phase::Strategize].into_iter();
    phases
        .filter(|phase| *phase <= standing.phase)
        .find_map(|phase| Some((phase, standing.summaries.get(&phase)?)))
}

/// Ends a command that followed a plan. `done` is said when nothing went wrong.
pub fn conclude(run: &Run, engine: &Engine, standing: &StatusOutput, done: &str) -> Outcome {
    let out = &run.out;
    let plan = standing.plan_id;
    match standing.state {
        State::Errored | State::Constrained => {
            if standing.awaiting.is_some() {
                question(out, engine, standing)?;
            }
            return Err(failed(standing).into());
        }
        State::Cancelled => {
            return Err(Error::invalid_state(format!("plan {plan} was cancelled"))
                .suggest(format!("agents plan diff {plan}"))
                .into());
        }
        _ => {}
    }
    if let Some((phase, summary)) = summary(standing).filter(|_| standing.state != State::Applied) {
        show_summary(out, phase, summary);
    }
    let Some(awaiting) = &standing.awaiting else {
        if standing.state == State::Applied {
            out.ok(done);
            return Ok(());
        }
        out.hint("Next Steps", next_steps(standing));
        out.ok(done);
        return Ok(());
    };
    question(out, engine, standing)?;
    out.hint("Next Steps", next_steps(standing));
    out.ok(done);
    let waits = out.warn(format!("The plan waits for you: {}", awaiting.question));
    if let Some(command) = next_command(standing) {
        waits.detail(command);
    }
    Ok(())
}

/// The error of a plan that failed, as the command that followed it reports it.
fn failed(standing: &StatusOutput) -> Error {
    let plan = standing.plan_id;
    let (message, hints) = match &standing.error {
        Some(error) => (error.message.clone(), error.hints.clone()),
        None => (format!("plan {plan} is in {}/{}", standing.phase, standing.state), Vec::new()),
    };
    let mut error = Error::new(ErrorKind::PlanError, message);
    if let Some(details) =
        standing.error.as_ref().and_then(|e| e.tool.as_ref().map(|tool| (tool, e.step.as_ref())))
    {
        let step = details.1.map(|step| format!(", step {step}")).unwrap_or_default();
        error = error.detail(format!("In {}, by {}{step}", follow::title(standing.phase), details.0));
    }
    for hint in hints {
        error = error.suggest(hint);
    }
    error = error.suggest(format!("agents plan errors {plan}"));
    for action in &standing.allowed_actions {
        error = error.suggest(action.command.clone());
    }
    error
}

fn show_summary(out: &Output, phase: Phase, summary: &PhaseSummary) {
    if summary.headline.is_empty() && summary.lines.is_empty() {
        return;
    }
    let title = match phase {
        Phase::Strategize => "Strategy Summary",
        Phase::Execute | Phase::Apply => "Execution Summary",
    };
    let panel = out.panel(None, title);
    if !summary.headline.is_empty() {
        panel.line(prose(summary.headline.as_str(), Tone::Strong));
    }
    for line in &summary.lines {
        panel.line(own(line.as_str()));
    }
}

/// What the plan waits for, with everything needed to answer.
pub fn question(out: &Output, engine: &Engine, standing: &StatusOutput) -> Result<(), Error> {
    let Some(awaiting) = &standing.awaiting else { return Ok(()) };
    let plan = standing.plan_id.to_string();
    let pending = engine.call(Pending { plan: Some(plan) })?.decisions;
    let asked = pending.iter().find(|p| Some(p.decision_id) == awaiting.decision_id);
    let panel = out.panel(None, "Waiting for You");
    panel.tone(Tone::Warn).line(prose(awaiting.question.as_str(), Tone::Strong));
    let proposed = asked.map(|decision| decision.proposed.as_str());
    for (at, option) in awaiting.options.iter().enumerate() {
        let described = asked.and_then(|d| d.options.get(at)).map(|o| o.description.as_str());
        let mut line = own(format!("{}. {option}", at + 1));
        if proposed == Some(option.as_str()) {
            line = line.and(warn(" (proposed)"));
        }
        if let Some(described) = described.filter(|d| d != option) {
            line = line.and(dim(" — ").owned()).and(prose(described, Tone::Dim));
        }
        panel.line(line);
    }
    if let Some(reason) = threshold(awaiting.confidence, awaiting.threshold, awaiting.flag.as_deref()) {
        panel.row("Why you are asked", reason);
    }
    if let Some(decision) = asked {
        if !decision.rationale.is_empty() {
            panel.row("Reason", own(decision.rationale.as_str()));
        }
        if !decision.resources.is_empty() {
            let places = decision.resources.iter().take(3).map(|r| match r.range {
                Some(range) => format!("{}:{}", r.path, range.start.line + 1),
                None => r.path.clone(),
            });
            let shown = places.collect::<Vec<_>>().join(", ");
            let more = decision.resources.len().saturating_sub(3);
            panel.row("Where", if more > 0 { format!("{shown} and {more} more") } else { shown });
        }
        panel.row("Decision", crate::output::id(decision.decision_id.to_string()));
    }
    let others = pending.len().saturating_sub(usize::from(asked.is_some())) as u64;
    if others > 0 {
        let wait = if others == 1 { "waits" } else { "wait" };
        panel.line(dim(format!("{} {wait} after this one", counted(others, "decision", "decisions"))));
    }
    Ok(())
}

/// `confidence 0.62 is below the 0.70 that edit_code asks for`.
fn threshold(confidence: Option<f64>, threshold: Option<f64>, flag: Option<&str>) -> Option<Styled> {
    let flag = flag?;
    Some(own(match (confidence, threshold) {
        (_, Some(threshold)) if threshold >= 1.0 => format!("the profile asks every time ({flag} is 1.0)"),
        (Some(confidence), Some(threshold)) => {
            format!("confidence {confidence:.2} is below the {threshold:.2} that {flag} asks for")
        }
        _ => format!("the profile asks ({flag})"),
    }))
}

/// The one command that most likely comes next.
pub fn next_command(standing: &StatusOutput) -> Option<String> {
    let wanted = match standing.awaiting.as_ref()?.kind {
        AwaitingKind::ConfirmStrategize | AwaitingKind::ExecuteApproval => Verb::Execute,
        AwaitingKind::ApplyApproval => Verb::Apply,
        _ => Verb::Prompt,
    };
    let actions = &standing.allowed_actions;
    actions.iter().find(|a| a.verb == wanted).or(actions.first()).map(|a| a.command.clone())
}

/// Everything that makes sense now, looking before acting.
pub fn next_steps(standing: &StatusOutput) -> Vec<String> {
    let plan = standing.plan_id;
    let look = match (standing.phase, standing.state) {
        (Phase::Execute, State::Complete) | (Phase::Apply, _) => Some(format!("agents plan diff {plan}")),
        (Phase::Strategize, State::Complete) => Some(format!("agents plan tree {plan}")),
        _ => standing
            .awaiting
            .as_ref()
            .and_then(|a| a.decision_id)
            .map(|decision| format!("agents plan explain {decision}")),
    };
    let mut actions: Vec<String> = standing.allowed_actions.iter().map(|a| a.command.clone()).collect();
    if let Some(next) = next_command(standing)
        && let Some(at) = actions.iter().position(|a| *a == next)
    {
        let next = actions.remove(at);
        actions.insert(0, next);
    }
    let back = (standing.state == State::Applied).then(|| format!("agents plan revert {plan}"));
    look.into_iter().chain(actions).chain(back).collect()
}

/// `data` of a verb that was not followed.
pub fn detached(data: Value) -> Value {
    match data {
        Value::Object(mut fields) => {
            fields.insert("detached".to_owned(), Value::Bool(true));
            Value::Object(fields)
        }
        _ => Value::Object(Map::new()),
    }
}
