//! `agents plan guard`.

use agents_domain::plan::guards::Measure;
use agents_engine::operations::plan::{Guard, SetProfile};

use crate::args::GuardArgs;
use crate::commands::json;
use crate::failure::Outcome;
use crate::output::{Kind, Row, Styled, Tone, bad, col, dim, good, warn};
use crate::run::Run;

pub fn run(run: &Run, args: GuardArgs) -> Outcome {
    let out = &run.out;
    let GuardArgs { plan, automation_profile } = args;
    let engine = run.env.engine()?;
    let changed = match automation_profile {
        Some(automation_profile) => Some(engine.call(SetProfile { plan: plan.clone(), automation_profile })?),
        None => None,
    };
    let found = engine.call(Guard { plan })?;
    let mut data = json(&found)?;
    if let Some(changed) = &changed {
        data["profile_changed"] = json(changed)?;
    }
    out.panel(None, "Guard")
        .pick(&data, "plan_id", "Plan", Kind::Id)
        .row("State", format!("{}/{}", found.phase, found.state))
        .row(
            "Profile",
            Styled::new(found.profile.as_str(), Tone::Strong).and(dim(format!(" ({})", found.source))),
        )
        .pick(&data, "scope", "Scope", Kind::Text)
        .row("Confidence", format!("{:.2}", found.confidence))
        .row("Reversions", format!("{} of {}", found.reversions.used, found.reversions.limit));
    let columns = vec![
        col("flag", "Gate"),
        col("gates", "Lets The Plan").wrap(),
        col("threshold", "Threshold"),
        col("outcome", "Now"),
    ];
    let table = out.table(None, "Gates", columns);
    for (state, row) in found.gates.iter().zip(data["gates"].as_array().into_iter().flatten()) {
        let now = match state.outcome.as_str() {
            "automatic" => good("automatic"),
            "asks" => warn("asks"),
            _ => Styled::from("by confidence"),
        };
        table.row(Row::from(row).show("threshold", format!("{:?}", state.threshold)).show("outcome", now));
    }
    drop(table);
    out.panel(None, "Safety")
        .pick(&data, "safety.require_sandbox", "Sandbox", Kind::Auto)
        .pick(&data, "safety.require_checkpoints", "Checkpoints", Kind::Auto)
        .pick(&data, "rollback_enabled", "Rollback", Kind::Auto)
        .pick(&data, "safety.allow_unsafe_tools", "Unsafe Tools", Kind::Auto)
        .pick(&data, "safety.require_human_approval", "Each Step Asks", Kind::Auto)
        .row("Retries Per Step", found.safety.max_retries_per_step.to_string());
    let columns = vec![
        col("measure", "Budget"),
        col("used", "Used"),
        col("limit", "Limit"),
        col("left", "Left"),
        col("flag", "Set By"),
    ];
    let table = out.table(None, "Budgets", columns);
    for (budget, row) in found.budgets.iter().zip(data["budgets"].as_array().into_iter().flatten()) {
        let left = if budget.left > 0.0 { Styled::from(budget.left.to_string()) } else { bad("0") };
        let flag = if budget.extended { format!("{} (extended)", budget.flag) } else { budget.flag.clone() };
        let measure = match budget.measure {
            Measure::StepCalls => "tool calls of a step",
            Measure::Calls => "tool calls",
            Measure::Cost => "US dollars",
            Measure::TreeCost => "US dollars, with child plans",
            Measure::Seconds => "seconds of work",
        };
        let row = Row::from(row)
            .show("measure", measure)
            .show("used", budget.used.to_string())
            .show("limit", budget.limit.to_string());
        table.row(row.show("left", left).show("flag", flag));
    }
    drop(table);
    let columns = vec![
        col("name", "Tool").id(),
        col("category", "Category"),
        col("writes", "Writes").kind(Kind::Flag),
        col("outcome", "Now"),
        col("reason", "Why").wrap(),
    ];
    out.table(None, "Tools", columns).rows(&data["tools"]);
    let panel = out.panel(None, "Would Ask Next");
    if found.next.is_empty() {
        panel.line(dim("(nothing)"));
    }
    for what in &found.next {
        panel.line(format!("- {what}"));
    }
    drop(panel);
    out.set_data(data);
    out.ok(match changed {
        Some(changed) => {
            format!("Profile changed from {} to {}", changed.previous, changed.automation_profile)
        }
        None => "Guards shown".to_owned(),
    });
    Ok(())
}
