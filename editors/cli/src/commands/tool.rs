//! `agents tool`: the registry of tools, validations among them.

use agents_engine::operations::tool::{Add, List, ListedValidation, Remove, Show, ToolType};
use serde_json::{Value, json as object};

use super::validation::arg_text;
use crate::args::{NameArgs, RemoveArgs, ToolAddArgs, ToolCommand, ToolListArgs, ToolTypeArg};
use crate::commands::{json, listed, text};
use crate::compose;
use crate::failure::Outcome;
use crate::output::human::counted;
use crate::output::{Kind, col, dim, id};
use crate::run::Run;

pub fn run(run: &Run, command: ToolCommand) -> Outcome {
    match command {
        ToolCommand::Add(args) => add(run, args),
        ToolCommand::List(args) => list(run, args),
        ToolCommand::Show(args) => show(run, args),
        ToolCommand::Remove(args) => remove(run, args),
    }
}

fn add(run: &Run, args: ToolAddArgs) -> Outcome {
    let out = &run.out;
    let ToolAddArgs { config, update } = args;
    let text = compose::read_definition(&config)?;
    let added = run.env.engine()?.call(Add { config: compose::definition_name(&config), text, update })?;
    let data = json(&added)?;
    let done = match &added.tool_updated {
        None => {
            out.panel(None, "Tool Registered")
                .pick(&data, "tool_registered.name", "Name", Kind::Id)
                .pick(&data, "tool_registered.description", "Description", Kind::Text)
                .pick(&data, "tool_registered.source", "Source", Kind::Text)
                .pick(&data, "tool_registered.config", "Config", Kind::Path)
                .pick(&data, "tool_registered.created", "Created", Kind::Time);
            capability(run, &data);
            "Tool registered"
        }
        Some(_) => {
            out.panel(None, "Tool Updated")
                .pick(&data, "tool_updated.name", "Name", Kind::Id)
                .pick(&data, "tool_updated.source", "Source", Kind::Text)
                .pick(&data, "tool_updated.previous_version", "Previous Version", Kind::Count)
                .pick(&data, "tool_updated.current_version", "Current Version", Kind::Count);
            out.panel(None, "Changes")
                .pick(&data, "changes.input_schema", "Input Schema", Kind::Text)
                .pick(&data, "changes.capabilities", "Capabilities", Kind::Text)
                .pick(&data, "changes.description", "Description", Kind::Text);
            referenced(run, &data["references"]);
            "Tool updated"
        }
    };
    for hint in &added.hints {
        match hint.severity {
            agents_config::Severity::Hint => out.info(hint.to_string()),
            _ => out.warn(hint.to_string()),
        };
    }
    for warning in &added.warnings {
        out.warn(warning.as_str());
    }
    out.set_data(data);
    out.ok(done);
    Ok(())
}

fn capability(run: &Run, data: &Value) {
    run.out
        .panel(None, "Capability")
        .pick(data, "capability.read_only", "Read-Only", Kind::Auto)
        .pick(data, "capability.writes", "Writes", Kind::Auto)
        .pick(data, "capability.write_scope", "Write Scope", Kind::Auto)
        .pick(data, "capability.checkpointable", "Checkpointable", Kind::Auto)
        .pick(data, "capability.checkpoint_scope", "Checkpoint Scope", Kind::Text)
        .pick(data, "capability.side_effects", "Side Effects", Kind::Auto)
        .pick(data, "capability.unsafe", "Unsafe", Kind::Auto);
}

fn referenced(run: &Run, references: &Value) {
    let lines = ["skills", "actor_graph_nodes"].into_iter().flat_map(|kind| {
        let names = references[kind].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.map(move |name| {
            format!("{} {name}", if kind == "skills" { "skill" } else { "actor graph node" })
        })
    });
    let lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        let panel = run.out.panel(None, "Referenced By");
        lines.into_iter().for_each(|line| _ = panel.line(line));
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
    let empty = [
        "agents tool add --config <FILE>",
        "agents validation add --config <FILE>",
        "agents tool list --namespace builtin",
    ];
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
    if found.tool_details.is_some() {
        out.panel(None, "Tool Details")
            .pick(&data, "tool_details.name", "Name", Kind::Id)
            .pick(&data, "tool_details.description", "Description", Kind::Text)
            .pick(&data, "tool_details.source", "Source", Kind::Text)
            .pick(&data, "tool_details.group", "Group", Kind::Text)
            .pick(&data, "tool_details.config", "Config", Kind::Path)
            .pick(&data, "tool_details.registered", "Registered", Kind::Time);
        if !found.input_schema.is_empty() {
            let panel = out.panel(None, "Input Schema");
            for (name, schema) in &found.input_schema {
                panel.line(parameter_text(name, schema));
            }
        }
        capability(run, &data);
        referenced(run, &data["referenced_by"]);
        out.set_data(data);
        out.ok("Tool details loaded");
        return Ok(());
    }
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
        .row("Timeout", format!("{}s", data["capability"]["timeout_seconds"]));
    let attached = found.attached_to.unwrap_or_default();
    if !attached.is_empty() {
        let panel = out.panel(None, "Attached To");
        for at in &attached {
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

/// `direction: string (required) enum: [up, down]`, `count: integer (default: 1)`. That something may be left out is
/// said by what is not said: neither `null` nor its default is shown.
fn parameter_text(name: &str, schema: &Value) -> String {
    let types = match &schema["type"] {
        Value::String(only) => vec![only.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect(),
        _ => Vec::new(),
    };
    let types = if types.is_empty() { "any".to_owned() } else { types.join(" or ") };
    let mut line = format!("{name}: {types}");
    if schema["required"] == true {
        line.push_str(" (required)");
    }
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
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
    let known = engine.call(Show { name: args.name.clone() })?;
    let asked = match (&known.tool_details, &known.validation_details) {
        (Some(tool), _) => tool.config.as_ref().map(|_| format!("Remove tool {}?", tool.name)),
        (_, Some(known)) => known.config.as_ref().map(|_| format!("Remove validation {}?", known.name)),
        _ => None,
    };
    if let Some(question) = asked
        && !out.confirm(&question, args.yes.yes)
    {
        return Ok(());
    }
    let removed = engine.call(Remove { name: args.name })?;
    let data = json(&removed)?;
    if let Some(broken) = &removed.broken_references {
        out.panel(None, "Tool Removed").pick(&data, "tool_removed.name", "Name", Kind::Id).pick(
            &data,
            "tool_removed.source",
            "Source",
            Kind::Text,
        );
        let count = |kind: &str| broken.iter().filter(|one| one.kind == kind).count() as u64;
        let (skills, nodes) = (count("skill"), count("actor_graph_node"));
        out.set_data(data);
        out.ok("Tool removed");
        let by: Vec<String> = [
            (skills, counted(skills, "skill", "skills")),
            (nodes, counted(nodes, "actor graph node", "actor graph nodes")),
        ]
        .into_iter()
        .filter_map(|(count, text)| (count > 0).then_some(text))
        .collect();
        if !by.is_empty() {
            out.warn(format!(
                "This tool is referenced by {}. These references will break until resolved.",
                by.join(" and ")
            ));
        }
        return Ok(());
    }
    out.panel(None, "Validation Removed").pick(&data, "validation_removed.name", "Name", Kind::Id).pick(
        &data,
        "validation_removed.description",
        "Description",
        Kind::Text,
    );
    let count = removed.detached_attachments.unwrap_or_default().len();
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

#[cfg(test)]
mod tests {
    use super::*;

    // TOOLCLI-017
    #[test]
    fn a_parameter_is_told_by_its_types_and_what_it_is_when_left_out() {
        let told = |schema: Value| parameter_text("at", &schema);
        assert_eq!(told(serde_json::json!({ "type": "string", "required": true })), "at: string (required)");
        assert_eq!(told(serde_json::json!({ "type": ["integer", "null"], "default": null })), "at: integer");
        assert_eq!(told(serde_json::json!({ "type": ["integer", "string"] })), "at: integer or string");
        assert_eq!(
            told(serde_json::json!({ "default": 3, "enum": [3, 4] })),
            "at: any (default: 3) enum: [3, 4]"
        );
    }
}
