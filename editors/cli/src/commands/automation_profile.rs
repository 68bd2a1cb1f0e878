//! `agents automation-profile`.

use agents_engine::operations::automation_profile::{Add, List, Remove, Show};
use serde_json::Value;

use crate::args::{
    AutomationProfileAddArgs, AutomationProfileCommand, AutomationProfileListArgs, NameArgs, RemoveArgs,
};
use crate::commands::{json, listed, text};
use crate::compose;
use crate::failure::Outcome;
use crate::output::{Kind, Output, col};
use crate::run::Run;

pub fn run(run: &Run, command: AutomationProfileCommand) -> Outcome {
    match command {
        AutomationProfileCommand::Add(args) => add(run, args),
        AutomationProfileCommand::List(args) => list(run, args),
        AutomationProfileCommand::Show(args) => show(run, args),
        AutomationProfileCommand::Remove(args) => remove(run, args),
    }
}

fn add(run: &Run, args: AutomationProfileAddArgs) -> Outcome {
    let out = &run.out;
    let AutomationProfileAddArgs { config, update } = args;
    let text = compose::read_definition(&config)?;
    let added = run.env.engine()?.call(Add { config: compose::definition_name(&config), text, update })?;
    let data = json(&added)?;
    out.panel(None, "Profile Registered")
        .pick(&data, "name", "Name", Kind::Id)
        .pick(&data, "description", "Description", Kind::Text)
        .pick(&data, "created", "Created", Kind::Time);
    rows(out, "Confidence Thresholds", &data["thresholds"]);
    rows(out, "Flags", &data["flags"]);
    limits(out, &data);
    for hint in &added.hints {
        match hint.severity {
            agents_config::Severity::Hint => out.info(hint.to_string()),
            _ => out.warn(hint.to_string()),
        };
    }
    out.hint(
        "Next Steps",
        [format!("agents plan use --automation-profile {} <ACTION> <PROJECT>", added.name)],
    );
    let updated = added.updated;
    out.set_data(data);
    out.ok(if updated { "Profile updated" } else { "Profile registered" });
    Ok(())
}

/// A panel with a row for each member.
fn rows(out: &Output, title: &str, members: &Value) {
    let panel = out.panel(None, title);
    for (key, value) in members.as_object().into_iter().flatten() {
        panel.row(key, shown(value));
    }
}

/// `0.0`, `true`, `a, b`.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => format!("{:?}", number.as_f64().unwrap_or_default()),
        Value::Array(items) if items.is_empty() => "(none)".to_owned(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The limits that are set beyond the three flags.
fn limits(out: &Output, data: &Value) {
    let flags = ["require_sandbox", "require_checkpoints", "allow_unsafe_tools"];
    for (part, title) in [("safety", "Safety"), ("guards", "Guards")] {
        let set: serde_json::Map<String, Value> = data[part]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, value)| {
                let unset = value.is_null() || *value == false || value.as_array().is_some_and(Vec::is_empty);
                !flags.contains(&key.as_str()) && !unset
            })
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !set.is_empty() {
            rows(out, title, &set.into());
        }
    }
}

fn list(run: &Run, args: AutomationProfileListArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(List { pattern: args.pattern })?;
    let total = found.summary.total;
    let data = json(&found)?;
    let columns = vec![
        col("name", "Name").id(),
        col("source", "Source"),
        col("select_tool", "Auto-Apply"),
        col("sandbox", "Sandbox").kind(Kind::Flag),
        col("description", "Description").wrap(),
    ];
    out.table(None, "Automation Profiles", columns)
        .rows(&data["profiles"])
        .when_empty("automation profiles", &["agents automation-profile add --config <FILE>"]);
    out.panel(None, "Summary")
        .pick(&data, "summary.built_in", "Built-in", Kind::Count)
        .pick(&data, "summary.custom", "Custom", Kind::Count)
        .pick(&data, "summary.total", "Total", Kind::Count);
    out.set_data(data);
    out.ok(listed(total, "profile", "profiles"));
    Ok(())
}

fn show(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let data = json(&run.env.engine()?.call(Show { name: args.name })?)?;
    out.panel(None, "Automation Profile")
        .pick(&data, "name", "Name", Kind::Id)
        .pick(&data, "source", "Source", Kind::Text)
        .pick(&data, "description", "Description", Kind::Text)
        .pick(&data, "config", "Config", Kind::Path)
        .pick(&data, "created", "Created", Kind::Time);
    for (key, title) in [
        ("phase_transitions", "Phase Transitions"),
        ("decision_automation", "Decision Automation"),
        ("self_repair", "Self-Repair"),
        ("execution_controls", "Execution Controls"),
    ] {
        rows(out, title, &data[key]);
    }
    limits(out, &data);
    out.set_data(data);
    out.ok("Profile loaded");
    Ok(())
}

fn remove(run: &Run, args: RemoveArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    // An unknown profile is refused without a question.
    let known = engine.call(Show { name: args.name.clone() })?;
    if known.source == "custom"
        && !out.confirm(&format!("Remove automation profile {}?", known.name), args.yes.yes)
    {
        return Ok(());
    }
    let removed = engine.call(Remove { name: args.name })?;
    let data = json(&removed)?;
    out.panel(None, "Profile Removed").pick(&data, "name", "Name", Kind::Id);
    for referent in data["fall_back"].as_array().into_iter().flatten() {
        out.warn(format!(
            "{} {} still names it and gets the inherited profile from now on",
            text(referent, "type"),
            text(referent, "name")
        ));
    }
    out.set_data(data);
    out.ok("Profile removed");
    Ok(())
}
