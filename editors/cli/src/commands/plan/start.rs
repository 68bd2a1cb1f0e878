//! The verbs that move a plan and then follow it: use, execute, prompt; and cancel.

use agents_domain::plan::State;
use agents_engine::Engine;
use agents_engine::operations::plan::{Cancel, Execute, Prompt, Revert, StatusOutput, Use, UseOutput};
use serde_json::Value;

use super::pause::{conclude, detached, refresh};
use crate::args::{CancelArgs, EnvironmentArgs, PromptArgs, RevertArgs, StartArgs, UseArgs};
use crate::commands::{bullets, json, optional, text, texts, unavailable};
use crate::failure::Outcome;
use crate::follow;
use crate::output::{Kind, Output, Styled, col, dim, id, own};
use crate::run::Run;

/// Characters of an input that are shown.
const INPUT: usize = 60;

pub fn make(run: &Run, args: UseArgs) -> Outcome {
    let EnvironmentArgs { execution_environment, execution_env_priority } = &args.environment;
    if execution_environment.is_some() || execution_env_priority.is_some() {
        return unavailable::refuse("plan use --execution-environment");
    }
    let detach = args.detach;
    let wanted = Use {
        action: args.action,
        projects: args.projects,
        arguments: args.arguments.into_iter().map(|(name, value)| (name, value.into())).collect(),
        automation_profile: args.automation_profile,
        invariants: args.invariants,
        strategy_actor: args.strategy_actor,
        execution_actor: args.execution_actor,
        estimation_actor: args.estimation_actor,
        invariant_actor: args.invariant_actor,
    };
    follow_new(run, detach, |engine| engine.call(wanted))
}

pub fn revert(run: &Run, args: RevertArgs) -> Outcome {
    let wanted =
        Revert { plan: args.plan, decisions: args.decisions, automation_profile: args.automation_profile };
    follow_new(run, args.detach, |engine| engine.call(wanted))
}

/// Shows a plan that is made, and follows it.
fn follow_new(
    run: &Run,
    detach: bool,
    make: impl FnOnce(&Engine) -> agents_domain::Result<UseOutput>,
) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let since = follow::now(&engine)?;
    let made = make(&engine)?;
    let plan = made.plan_id;
    let mut data = json(&made)?;
    out.set_data(data.clone());
    created(out, &data);
    for warning in &made.warnings {
        out.warn(warning);
    }
    if detach {
        out.set_data(detached(data.clone()));
        out.hint("Next Steps", texts(&data["next_steps"]));
        out.ok("Plan created; it goes on in the background");
        return Ok(());
    }
    let standing = follow::until_pause(run, &engine, plan, since)?;
    refresh(&mut data, &standing)?;
    out.set_data(data);
    conclude(run, &engine, &standing, &format!("Plan created — {}", reached(&standing)))
}

/// `Strategize is complete`, `Execute waits for you`.
fn reached(standing: &StatusOutput) -> String {
    let phase = follow::title(standing.phase);
    match standing.state {
        State::Complete => format!("{phase} is complete"),
        _ if standing.awaiting.is_some() => format!("{phase} waits for you"),
        State::Applied => "applied".to_owned(),
        state => format!("{phase} is {state}"),
    }
}

fn created(out: &Output, data: &Value) {
    let targets = data["target_projects"].as_array().map_or(&[][..], Vec::as_slice);
    out.panel(None, "Plan Created")
        .pick(data, "plan_id", "Plan ID", Kind::Id)
        .pick(data, "phase", "Phase", Kind::Text)
        .pick(data, "action", "Action", Kind::Id)
        .pick(data, "project", "Project", Kind::Id)
        .pick(data, "automation_profile", "Automation", Kind::Text)
        .pick(data, "attempt", "Attempt", Kind::Count);
    if targets.len() > 1 {
        let panel = out.panel(None, "Target Projects");
        for (at, target) in targets.iter().enumerate() {
            let resources = texts(&target["resources"]).collect::<Vec<_>>().join(", ");
            let line = Styled::from(format!("{}. ", at + 1)).and(id(text(target, "name")));
            panel.line(line.and(dim(format!(" ({resources})"))));
        }
    }
    if let Some(inputs) = data["inputs"].as_object().filter(|inputs| !inputs.is_empty()) {
        let panel = out.panel(None, "Inputs");
        bullets(&panel, inputs.iter().map(|(name, value)| format!("{name}={}", plain(value))));
    }
    let actors = out.panel(None, "Actors");
    for (key, label) in [("strategy", "Strategy"), ("execution", "Execution"), ("estimation", "Estimation")] {
        optional(&actors, label, &data["actors"][key]);
    }
    drop(actors);
    out.panel(None, "Automation")
        .pick(data, "automation.profile", "Profile", Kind::Text)
        .pick(data, "automation.source", "Source", Kind::Text)
        .pick(data, "automation.read_only", "Read-Only", Kind::Auto);
    let resources = data["context"]["resources"].as_array().map_or(0, Vec::len);
    let names = texts(&data["context"]["resources"]).collect::<Vec<_>>().join(", ");
    out.panel(None, "Context")
        .row("Resources", format!("{resources} ({names})"))
        .pick(data, "context.indexed_files", "Indexed Files", Kind::Count)
        .pick(data, "context.view", "View", Kind::Text)
        .pick(data, "context.hot_token_budget", "Hot Token Budget", Kind::Count);
    if data["invariants"].as_array().is_some_and(|list| !list.is_empty()) {
        let columns = vec![
            col("scope", "Scope"),
            col("source", "Source"),
            col("text", "Invariant").wrap(),
            col("enforced_by", "Enforced By"),
        ];
        out.table(None, "Plan Invariants", columns).rows(&data["invariants"]);
    }
}

/// A value as it was typed; of a long one the beginning.
fn plain(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().nth(INPUT) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text,
    }
}

pub fn execute(run: &Run, args: StartArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let since = follow::now(&engine)?;
    let started = engine.call(Execute { plan: args.plan })?;
    let (plan, attached) = (started.plan_id, started.attached);
    let mut data = json(&started)?;
    out.set_data(data.clone());
    let panel = out.panel(None, if started.resumed { "Execution Resumed" } else { "Execution" });
    panel.pick(&data, "plan_id", "Plan", Kind::Id).pick(&data, "phase", "Phase", Kind::Text).pick(
        &data,
        "attempt",
        "Attempt",
        Kind::Count,
    );
    match attached {
        true => panel.row("Worker", own(format!("{} — attached", started.worker))),
        false => panel.row("Worker", started.worker.as_str()),
    };
    panel
        .pick(&data, "checkpoint", "Checkpoint", Kind::Id)
        .pick(&data, "resumed_from", "Resumed From", Kind::Text)
        .pick(&data, "started", "Started", Kind::Time);
    drop(panel);
    if !data["sandbox"].is_null() {
        out.panel(None, "Sandbox")
            .pick(&data, "sandbox.strategy", "Strategy", Kind::Text)
            .pick(&data, "sandbox.path", "Path", Kind::Path)
            .pick(&data, "sandbox.branch", "Branch", Kind::Id)
            .pick(&data, "sandbox.status", "Status", Kind::State);
    }
    out.panel(None, "Strategy Summary")
        .pick(&data, "strategy_summary.headline", "Outcome", Kind::Prose)
        .pick(&data, "strategy_summary.decisions", "Decisions", Kind::Count)
        .pick(&data, "strategy_summary.invariants", "Invariants", Kind::Count)
        .pick(&data, "strategy_summary.planned_child_plans", "Planned Child Plans", Kind::Count)
        .pick(&data, "strategy_summary.estimated_files", "Estimated Files", Kind::Count)
        .pick(&data, "strategy_summary.risk", "Risk", Kind::Text);
    if !started.guidance.is_empty() {
        bullets(&out.panel(None, "Guidance"), started.guidance.iter().map(String::as_str));
    }
    if let Some(checkpoint) = started.checkpoint {
        out.info(format!("Execution resumed from checkpoint {checkpoint}"));
    }
    if args.detach {
        out.set_data(detached(data));
        out.hint("Next Steps", [format!("agents plan follow {plan}"), format!("agents plan status {plan}")]);
        out.ok("Execution started; it goes on in the background");
        return Ok(());
    }
    let standing = follow::until_pause(run, &engine, plan, since)?;
    refresh(&mut data, &standing)?;
    out.set_data(data);
    conclude(run, &engine, &standing, &reached(&standing))
}

pub fn prompt(run: &Run, args: PromptArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let since = follow::now(&engine)?;
    let said = engine.call(Prompt { plan: args.plan, guidance: args.guidance, decision: args.decision })?;
    let plan = said.guidance_added.plan;
    let mut data = json(&said)?;
    out.set_data(data.clone());
    out.panel(None, "Guidance Added")
        .pick(&data, "guidance_added.plan", "Plan", Kind::Id)
        .pick(&data, "guidance_added.guidance", "Guidance", Kind::Text)
        .pick(&data, "guidance_added.option", "Understood As", Kind::Text)
        .pick(&data, "guidance_added.scope", "Scope", Kind::Text)
        .pick(&data, "guidance_added.phase", "Phase", Kind::Text)
        .pick(&data, "guidance_added.state_transition", "State", Kind::Text);
    out.panel(None, "Decision Created")
        .pick(&data, "decision_created.type", "Type", Kind::Text)
        .pick(&data, "decision_created.id", "ID", Kind::Id)
        .pick(&data, "decision_created.parent", "Parent", Kind::Id);
    out.panel(None, "Queue").pick(&data, "queue.pending", "Pending Guidance", Kind::Count).pick(
        &data,
        "queue.applied",
        "Applied",
        Kind::Count,
    );
    if args.detach {
        out.set_data(detached(data));
        out.hint("Next Steps", [format!("agents plan follow {plan}"), format!("agents plan status {plan}")]);
        out.ok("Guidance added; the plan goes on in the background");
        return Ok(());
    }
    let standing = follow::until_pause(run, &engine, plan, since)?;
    if standing.state == State::Cancelled {
        // The answer was to give it up.
        refresh(&mut data, &standing)?;
        out.set_data(data);
        out.ok("Guidance added — the plan is cancelled");
        return Ok(());
    }
    refresh(&mut data, &standing)?;
    out.set_data(data);
    conclude(run, &engine, &standing, &format!("Guidance added — {}", reached(&standing)))
}

pub fn cancel(run: &Run, args: CancelArgs) -> Outcome {
    let out = &run.out;
    let cancelled = run.env.engine()?.call(Cancel { plan: args.plan, reason: args.reason })?;
    let data = json(&cancelled)?;
    out.panel(None, "Plan Cancelled")
        .pick(&data, "plan_id", "Plan", Kind::Id)
        .pick(&data, "phase", "Phase", Kind::Text)
        .pick(&data, "reason", "Reason", Kind::Text)
        .pick(&data, "state", "State", Kind::State)
        .pick(&data, "cancelled_at", "Cancelled At", Kind::Time);
    out.panel(None, "Sandbox")
        .pick(&data, "sandbox.status", "Status", Kind::Text)
        .pick(&data, "sandbox.path", "Path", Kind::Path)
        .pick(&data, "sandbox.files_modified", "Files Modified", Kind::Count)
        .pick(&data, "sandbox.checkpoints", "Checkpoints", Kind::Count);
    out.hint("Recovery", texts(&data["recovery"]));
    out.set_data(data);
    out.ok("Plan cancelled");
    Ok(())
}
