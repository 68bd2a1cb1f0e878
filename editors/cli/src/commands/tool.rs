//! `agents tool`: the registry of tools, validations among them.

use agents_engine::operations::tool::{List, ListedValidation, Remove, Show, ToolType};
use serde_json::{Value, json as object};

use super::validation::arg_text;
use crate::args::{NameArgs, RemoveArgs, ToolCommand, ToolListArgs, ToolTypeArg};
use crate::commands::{json, listed, text};
use crate::failure::Outcome;
use crate::output::human::counted;
use crate::output::{Kind, col, dim, id};
use crate::run::Run;

pub fn run(run: &Run, command: ToolCommand) -> Outcome {
    match command {
        ToolCommand::List(args) => list(run, args),
        ToolCommand::Show(args) => show(run, args),
        ToolCommand::Remove(args) => remove(run, args),
    }
}

fn list(run: &Run, args: ToolListArgs) -> Outcome {
    let out = &run.out;
    let ToolListArgs { pattern, namespace, source, tool_type } = args;
    let tool_type = tool_type.map(|kind| match kind {
        ToolTypeArg::Tool => ToolType::Tool,
        ToolTypeArg::Validation => ToolType::Validation,
    });
    let found = run.env.engine()?.call(List { namespace, source, tool_type, pattern })?;
    let data = json(&found)?;
    let total = found.summary.get("total").copied().unwrap_or(0);
    let empty = ["agents validation add --config <FILE>", "agents tool list --namespace builtin"];
    if let Some(validations) = &found.validations {
        let columns = vec![
            col("name", "Name").id(),
            col("source", "Source"),
            col("mode", "Mode"),
            col("attachments", "Attachments"),
        ];
        let rows: Vec<Value> = validations
            .iter()
            .map(|v| {
                object!({ "name": v.name, "source": v.source, "mode": v.mode, "attachments": attachments_text(v) })
            })
            .collect();
        out.table(None, "Validations", columns).rows(&Value::from(rows)).when_empty("validations", &empty);
        out.panel(None, "Summary")
            .pick(&data, "summary.total", "Total", Kind::Count)
            .pick(&data, "summary.required", "Required", Kind::Count)
            .pick(&data, "summary.informational", "Informational", Kind::Count);
        out.set_data(data);
        out.ok(listed(total, "validation", "validations"));
        return Ok(());
    }
    let columns = vec![
        col("name", "Name").id(),
        col("type", "Type"),
        col("source", "Source"),
        col("read_only", "Read-Only"),
        col("writes", "Writes"),
    ];
    out.table(None, "Tools", columns).rows(&data["tools"]).when_empty("tools", &empty);
    out.panel(None, "Summary")
        .pick(&data, "summary.total", "Total", Kind::Count)
        .pick(&data, "summary.tools", "Tools", Kind::Count)
        .pick(&data, "summary.validations", "Validations", Kind::Count)
        .pick(&data, "summary.read_only", "Read-Only", Kind::Count)
        .pick(&data, "summary.writes", "Writes", Kind::Count);
    out.set_data(data);
    out.ok(listed(total, "tool", "tools"));
    Ok(())
}

/// `2 (1 direct, 1 project)`.
fn attachments_text(validation: &ListedValidation) -> String {
    let counts = &validation.attachments;
    let scopes = [("direct", counts.direct), ("project", counts.project), ("plan", counts.plan)];
    let named: Vec<String> =
        scopes.iter().filter_map(|(word, n)| Some(format!("{} {word}", (*n)?))).collect();
    if named.is_empty() {
        counts.total.to_string()
    } else {
        format!("{} ({})", counts.total, named.join(", "))
    }
}

fn show(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(Show { name: args.name })?;
    let data = json(&found)?;
    out.panel(None, "Validation Details")
        .pick(&data, "validation_details.name", "Name", Kind::Id)
        .pick(&data, "validation_details.type", "Type", Kind::Text)
        .pick(&data, "validation_details.description", "Description", Kind::Text)
        .pick(&data, "validation_details.source", "Source", Kind::Text)
        .pick(&data, "validation_details.builtin", "Built-in", Kind::Text)
        .pick(&data, "validation_details.command", "Command", Kind::Text)
        .pick(&data, "validation_details.parser", "Parser", Kind::Text)
        .pick(&data, "validation_details.mode", "Mode", Kind::Text)
        .pick(&data, "validation_details.config", "Config", Kind::Path)
        .pick(&data, "validation_details.registered", "Registered", Kind::Time);
    if !found.input_schema.is_empty() {
        let panel = out.panel(None, "Input Schema");
        for (name, schema) in &found.input_schema {
            panel.line(parameter_text(name, schema));
        }
    }
    let panel = out.panel(None, "Output Schema (Validation Return Format)");
    panel.line("passed: boolean (required)");
    panel.line("message: string (optional)");
    panel.line("data: object (optional, arbitrary structure)");
    drop(panel);
    out.panel(None, "Capability")
        .row("Read-Only", "true (enforced)")
        .row("Checkpointable", "false (enforced)")
        .row("Timeout", format!("{}s", found.capability.timeout_seconds));
    if !found.attached_to.is_empty() {
        let panel = out.panel(None, "Attached To");
        for at in &found.attached_to {
            let scope = match (&at.project, &at.plan) {
                (Some(project), _) => format!("scope: project {project}"),
                (_, Some(plan)) => format!("scope: plan {plan}"),
                _ => "direct, always active".to_owned(),
            };
            let args: Vec<String> = at.args.iter().map(|(key, value)| arg_text(key, value)).collect();
            let args = if args.is_empty() { String::new() } else { format!(" [{}]", args.join(", ")) };
            panel.line(id(&at.resource).and(format!(" ({scope}){args}")));
            panel.line(dim(format!("  (attachment: {})", at.attachment_id)));
        }
    }
    out.set_data(data);
    out.ok("Validation details loaded");
    Ok(())
}

/// `direction: string (required) enum: [up, down]`, `count: integer (default: 1)`.
fn parameter_text(name: &str, schema: &Value) -> String {
    let mut line = format!("{name}: {}", schema["type"].as_str().unwrap_or("any"));
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(default) = schema.get("default") {
        line.push_str(&format!(" (default: {})", shown(default)));
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        line.push_str(&format!(" enum: [{}]", words.iter().map(shown).collect::<Vec<_>>().join(", ")));
    }
    line
}

fn remove(run: &Run, args: RemoveArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let known = engine.call(Show { name: args.name.clone() })?.validation_details;
    if known.config.is_some() && !out.confirm(&format!("Remove validation {}?", known.name), args.yes.yes) {
        return Ok(());
    }
    let removed = engine.call(Remove { name: args.name })?;
    let data = json(&removed)?;
    out.panel(None, "Validation Removed").pick(&data, "validation_removed.name", "Name", Kind::Id).pick(
        &data,
        "validation_removed.description",
        "Description",
        Kind::Text,
    );
    let count = removed.detached_attachments.len();
    if count > 0 {
        let panel = out.panel(None, "Detached From");
        for from in data["detached_attachments"].as_array().into_iter().flatten() {
            let target = from["project"].as_str().or(from["plan"].as_str()).unwrap_or_default();
            let scope = format!("{} {target}", text(from, "scope"));
            panel.line(id(text(from, "resource")).and(format!(" ({})", scope.trim_end())));
        }
    }
    out.set_data(data);
    out.ok("Validation removed");
    if count > 0 {
        let attachments = counted(count as u64, "attachment", "attachments");
        let have = if count == 1 { "has" } else { "have" };
        out.warn(format!("This validation had {attachments} which {have} been removed."));
    }
    Ok(())
}
