//! `agents action`.

use agents_engine::operations::action::{Archive, Create, List, Show};
use serde_json::Value;

use crate::args::{ActionCommand, ActionListArgs, ActionStateArg, ConfigFileArgs, NameArgs};
use crate::commands::{bullets, json, listed, optional, text, texts};
use crate::compose;
use crate::failure::Outcome;
use crate::output::human::counted;
use crate::output::{Kind, Output, Styled, col, dim, human, own};
use crate::run::Run;

pub fn run(run: &Run, command: ActionCommand) -> Outcome {
    match command {
        ActionCommand::Create(args) => create(run, args),
        ActionCommand::List(args) => list(run, args),
        ActionCommand::Show(args) => show(run, args),
        ActionCommand::Archive(args) => archive(run, args),
    }
}

fn create(run: &Run, args: ConfigFileArgs) -> Outcome {
    let out = &run.out;
    let text = compose::read_definition(&args.config)?;
    let created = run.env.engine()?.call(Create {
        path: compose::config_path(&args.config)?,
        config: compose::definition_name(&args.config),
        text,
    })?;
    let data = json(&created)?;
    details(out, "Action Created", &data);
    for hint in &created.hints {
        out.info(hint.to_string());
    }
    out.hint("Next Steps", [usage(&data)]);
    out.set_data(data);
    out.ok("Action created");
    Ok(())
}

fn details(out: &Output, title: &str, data: &Value) {
    let panel = out.panel(None, title);
    panel
        .pick(data, "name", "Name", Kind::Id)
        .pick(data, "state", "State", Kind::State)
        .pick(data, "description", "Description", Kind::Text)
        .pick(data, "strategy_actor", "Strategy Actor", Kind::Id)
        .pick(data, "execution_actor", "Execution Actor", Kind::Id);
    for (key, label) in [("estimation_actor", "Estimation Actor"), ("invariant_actor", "Invariant Actor")] {
        if !data[key].is_null() {
            optional(&panel, label, &data[key]);
        }
    }
    panel
        .pick(data, "reusable", "Reusable", Kind::Auto)
        .pick(data, "read_only", "Read Only", Kind::Auto)
        .pick(data, "config", "Config", Kind::Path)
        .pick(data, "created", "Created", Kind::Time);
    drop(panel);
    if let Some(long) = data["long_description"].as_str() {
        out.panel(None, "About").line(long);
    }
    out.panel(None, "Definition of Done").line(text(data, "definition_of_done"));
    if data["arguments"].as_array().is_some_and(|list| !list.is_empty()) {
        let columns = vec![
            col("name", "Name").id(),
            col("type", "Type"),
            col("required", "Required").kind(Kind::Auto),
            col("default", "Default"),
            col("description", "Description").wrap(),
        ];
        out.table(None, "Arguments", columns).rows(&data["arguments"]);
    }
    if data["invariants"].as_array().is_some_and(|list| !list.is_empty()) {
        bullets(&out.panel(None, "Invariants"), texts(&data["invariants"]));
    }
    out.panel(None, "Automation").pick(data, "automation.profile", "Profile", Kind::Text).pick(
        data,
        "automation.source",
        "Source",
        Kind::Text,
    );
}

/// How a plan is made from the action: with the arguments that must be given.
fn usage(data: &Value) -> String {
    let mut command = format!("agents plan use {} <PROJECT>", text(data, "name"));
    for argument in data["arguments"].as_array().into_iter().flatten().filter(|a| a["required"] == true) {
        let name = text(argument, "name");
        command += &format!(" --arg {name}=<{}>", text(argument, "type").to_uppercase());
    }
    command
}

fn list(run: &Run, args: ActionListArgs) -> Outcome {
    let out = &run.out;
    let state = args.state.map(|state| match state {
        ActionStateArg::Available => "available".to_owned(),
        ActionStateArg::Archived => "archived".to_owned(),
        ActionStateArg::All => "all".to_owned(),
    });
    let found = run.env.engine()?.call(List { namespace: args.namespace, state, pattern: args.pattern })?;
    let total = found.actions.len();
    let data = json(&found)?;
    let columns = vec![
        col("name", "Name").id(),
        col("state", "State").kind(Kind::State),
        col("strategy_actor", "Strategy Actor"),
        col("execution_actor", "Execution Actor"),
        col("reusable", "Reusable").kind(Kind::Flag),
        col("plans", "Plans").kind(Kind::Count),
    ];
    out.table(None, "Actions", columns)
        .rows(&data["actions"])
        .when_empty("actions", &["agents action create --config <FILE>", "agents action list --state all"]);
    let any = |value: &Value| value.as_str().map_or_else(|| dim("(any)"), Styled::from);
    out.panel(None, "Filters")
        .row("State", any(&data["filters"]["state"]))
        .row("Namespace", any(&data["filters"]["namespace"]))
        .pick(&data, "filters.pattern", "Pattern", Kind::Text);
    out.panel(None, "Summary")
        .pick(&data, "summary.total", "Total", Kind::Count)
        .pick(&data, "summary.available", "Available", Kind::Count)
        .pick(&data, "summary.archived", "Archived", Kind::Count)
        .pick(&data, "summary.total_plans_created", "Total Plans Created", Kind::Count);
    out.set_data(data);
    out.ok(listed(total, "action", "actions"));
    Ok(())
}

fn show(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let data = json(&run.env.engine()?.call(Show { name: args.name })?)?;
    details(out, "Action Details", &data);
    out.panel(None, "History")
        .pick(&data, "history.plans_created", "Plans Created", Kind::Count)
        .pick(&data, "history.plans_completed", "Plans Completed", Kind::Count)
        .pick(&data, "history.plans_failed", "Plans Failed", Kind::Count)
        .pick(&data, "history.avg_duration", "Avg Duration", Kind::Text)
        .pick(&data, "history.avg_cost", "Avg Cost", Kind::Text);
    if data["state"] == "available" {
        out.hint("Usage", [usage(&data)]);
    }
    out.set_data(data);
    out.ok("Action loaded");
    Ok(())
}

fn archive(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let archived = run.env.engine()?.call(Archive { name: args.name })?;
    let data = json(&archived)?;
    let active = archived.impact.active_plans_affected;
    out.panel(None, "Action Archived")
        .pick(&data, "name", "Name", Kind::Id)
        .row("State", own(archived.state_transition.replace("->", "→")))
        .pick(&data, "archived", "Archived", Kind::Time);
    out.panel(None, "Impact")
        .pick(&data, "impact.availability", "Availability", Kind::Text)
        .pick(&data, "impact.existing_plans", "Existing Plans", Kind::Text)
        .row("Active Plans", format!("{} affected", human::count(active.into())));
    out.panel(None, "History")
        .pick(&data, "history.total_plans", "Total Plans", Kind::Count)
        .pick(&data, "history.completed", "Completed", Kind::Count)
        .pick(&data, "history.failed", "Failed", Kind::Count)
        .pick(&data, "history.last_used", "Last Used", Kind::Time);
    out.set_data(data);
    if active > 0 {
        out.info(format!(
            "{} of it {} on",
            counted(active.into(), "plan", "plans"),
            if active == 1 { "goes" } else { "go" }
        ));
    }
    out.ok("Action archived");
    Ok(())
}
