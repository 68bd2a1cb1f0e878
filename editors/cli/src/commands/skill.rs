//! `agents skill`: the registry of skills.

use agents_domain::ErrorKind;
use agents_engine::operations::skill::{Add, List, Refresh, Remove, Show, Tools};
use serde_json::Value;

use crate::args::{NameArgs, RemoveArgs, SkillAddArgs, SkillCommand, SkillListArgs};
use crate::commands::{bullets, json, listed, text, texts};
use crate::compose;
use crate::failure::{Failure, Outcome};
use crate::output::human::counted;
use crate::output::{Kind, Tone, col, dim, id};
use crate::run::Run;

pub fn run(run: &Run, command: SkillCommand) -> Outcome {
    match command {
        SkillCommand::Add(args) => add(run, args),
        SkillCommand::List(args) => list(run, args),
        SkillCommand::Show(args) => show(run, args),
        SkillCommand::Tools(args) => tools(run, args),
        SkillCommand::Refresh(args) => refresh(run, args),
        SkillCommand::Remove(args) => remove(run, args),
    }
}

fn add(run: &Run, args: SkillAddArgs) -> Outcome {
    let out = &run.out;
    let SkillAddArgs { config, update } = args;
    let file = compose::read_definition(&config)?;
    let path = compose::config_path(&config)?;
    let config = compose::definition_name(&config);
    let added = run.env.engine()?.call(Add { path, config, text: file, update }).map_err(|error| {
        if error.kind == ErrorKind::AlreadyExists {
            out.info("To overwrite the existing configuration, re-run with --update");
        }
        Failure::from(error)
    })?;
    let data = json(&added)?;
    let title = if added.changes.is_some() { "Skill Updated" } else { "Skill Registered" };
    out.panel(None, title)
        .pick(&data, "skill.name", "Name", Kind::Id)
        .pick(&data, "skill.description", "Description", Kind::Text)
        .pick(&data, "skill.config", "Config", Kind::Path)
        .pick(&data, "skill.created", "Created", Kind::Time)
        .pick(&data, "skill.updated", "Updated", Kind::Time);
    if added.changes.is_some() {
        changes(run, &data);
    }
    let includes = added.includes.iter().flatten();
    if added.includes.as_ref().is_some_and(|includes| !includes.is_empty()) {
        let panel = out.panel(None, "Includes");
        for include in includes {
            panel.line(id(&include.name).and(format!(" ({})", include.status)));
        }
    }
    if added.tool_sources.as_ref().is_some_and(|sources| !sources.is_empty()) {
        let columns =
            vec![col("source", "Source"), col("count", "Count").kind(Kind::Count), col("details", "Details")];
        out.table(None, "Tool Sources", columns).rows(&data["tool_sources"]);
    }
    servers(run, &data);
    if added.affected_actors.as_ref().is_some_and(|actors| !actors.is_empty()) {
        let panel = out.panel(None, "Affected Actors");
        panel.tone(Tone::Warn);
        bullets(&panel, texts(&data["affected_actors"]).map(id));
    }
    for hint in &added.hints {
        match hint.severity {
            agents_config::Severity::Hint => out.info(hint.to_string()),
            _ => out.warn(hint.to_string()),
        };
    }
    warn(run, &added.warnings);
    out.set_data(data);
    match (&added.tool_count, added.total_tools) {
        (Some(count), _) => {
            out.ok(format!("Skill updated ({} -> {} tools)", count.before, count.after));
            let actors = added.affected_actors.as_ref().map_or(0, Vec::len);
            if actors > 0 {
                let (actors, verb) = (
                    counted(actors as u64, "actor", "actors"),
                    if actors == 1 { "references" } else { "reference" },
                );
                out.warn(format!("{actors} {verb} this skill and will pick up changes on next use"));
            }
        }
        (None, total) => {
            let tools = counted(total.unwrap_or(0) as u64, "tool", "tools");
            out.ok(format!("Skill registered with {tools}"));
        }
    }
    Ok(())
}

fn warn(run: &Run, texts: impl IntoIterator<Item = impl ToString>) {
    for text in texts {
        run.out.warn(text.to_string());
    }
}

fn changes(run: &Run, data: &Value) {
    let word = |key: &str| if data["changes"][key] == true { "yes" } else { "no" };
    run.out
        .panel(None, "Changes")
        .pick(data, "changes.tools_added", "Tools Added", Kind::Count)
        .pick(data, "changes.tools_removed", "Tools Removed", Kind::Count)
        .pick(data, "changes.tools_modified", "Tools Modified", Kind::Count)
        .row("Includes Changed", word("includes_changed"))
        .row("MCP Servers Changed", word("mcp_servers_changed"));
}

/// `linear: validated (2 tools)`.
fn servers(run: &Run, data: &Value) {
    let servers = data["mcp_servers"].as_array().map_or(&[][..], Vec::as_slice);
    if servers.is_empty() {
        return;
    }
    let panel = run.out.panel(None, "MCP Servers");
    for server in servers {
        let tools = counted(server["tools"].as_u64().unwrap_or(0), "tool", "tools");
        panel.line(id(text(server, "name")).and(format!(": {} ({tools})", text(server, "status"))));
    }
}

fn list(run: &Run, args: SkillListArgs) -> Outcome {
    let out = &run.out;
    let SkillListArgs { namespace, source } = args;
    let source = source.map(|source| source.word().to_owned());
    let found = run.env.engine()?.call(List { namespace, source })?;
    let total = found.summary.total;
    let data = json(&found)?;
    let columns = vec![
        col("name", "Name").id(),
        col("tools", "Tools").kind(Kind::Count),
        col("includes", "Includes").kind(Kind::Count),
        col("sources", "Sources"),
    ];
    out.table(None, "Skills", columns)
        .rows(&data["skills"])
        .when_empty("skills", &["agents skill add --config <FILE>"]);
    out.panel(None, "Summary")
        .pick(&data, "summary.total", "Total", Kind::Count)
        .pick(&data, "summary.local", "Local", Kind::Count)
        .pick(&data, "summary.server", "Server", Kind::Count)
        .pick(&data, "summary.total_tools", "Total Tools", Kind::Count);
    out.set_data(data);
    out.ok(listed(total, "skill", "skills"));
    Ok(())
}

fn show(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let shown = run.env.engine()?.call(Show { name: args.name })?;
    let data = json(&shown)?;
    out.panel(None, "Skill Details")
        .pick(&data, "skill.name", "Name", Kind::Id)
        .pick(&data, "skill.description", "Description", Kind::Text)
        .pick(&data, "skill.config", "Config", Kind::Path)
        .pick(&data, "skill.created", "Created", Kind::Time)
        .pick(&data, "skill.updated", "Updated", Kind::Time);
    if !shown.includes.is_empty() {
        let panel = out.panel(None, &format!("Includes ({})", shown.includes.len()));
        for include in &shown.includes {
            let tools = counted(include.tools as u64, "tool", "tools");
            let source = if include.source.is_empty() { "none" } else { &include.source };
            panel.line(id(&include.name).and(format!(" -> {tools} ({source})")));
        }
    }
    if !shown.direct_tools.is_empty() {
        let columns = vec![
            col("name", "Name").id(),
            col("source", "Source"),
            col("writes", "Writes"),
            col("checkpoint", "Checkpoint"),
        ];
        let title = format!("Direct Tools ({})", shown.direct_tools.len());
        out.table(None, &title, columns).rows(&data["direct_tools"]);
    }
    if !shown.mcp_servers.is_empty() {
        let panel = out.panel(None, &format!("MCP Servers ({})", shown.mcp_servers.len()));
        for server in &shown.mcp_servers {
            let tools = counted(server.tools as u64, "tool", "tools");
            panel.line(id(&server.name).and(format!(": {}, {tools}, {}", server.transport, server.status)));
            let more = [("resource", "resources", &server.resources), ("prompt", "prompts", &server.prompts)];
            for (one, many, names) in more.into_iter().filter(|(_, _, names)| !names.is_empty()) {
                let count = counted(names.len() as u64, one, many);
                let shown = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
                panel.line(dim(format!("  {count}: {shown}")));
            }
        }
    }
    out.panel(None, "Capability Summary")
        .pick(&data, "capability_summary.total_tools", "Total Tools", Kind::Count)
        .pick(&data, "capability_summary.read_only", "Read-Only", Kind::Count)
        .pick(&data, "capability_summary.writes", "Writes", Kind::Count)
        .pick(&data, "capability_summary.checkpointable", "Checkpointable", Kind::Count)
        .pick(&data, "capability_summary.has_side_effects", "Has Side Effects", Kind::Count)
        .pick(&data, "capability_summary.requires_approval", "Requires Approval", Kind::Count);
    if !shown.referenced_by.actors.is_empty() || !shown.referenced_by.skills.is_empty() {
        out.panel(None, "Referenced By").pick(&data, "referenced_by.actors", "Actors", Kind::Text).pick(
            &data,
            "referenced_by.skills",
            "Skills",
            Kind::Text,
        );
    }
    warn(run, shown.missing.iter().map(|what| format!("there is no more {what}")));
    warn(run, shown.mcp_servers.iter().filter_map(|server| server.problem.as_ref()));
    out.set_data(data);
    out.ok("Skill loaded");
    Ok(())
}

fn tools(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(Tools { name: args.name.clone() })?;
    let total = found.summary.total;
    let data = json(&found)?;
    let columns = vec![
        col("call", "Tool").id(),
        col("source", "Source"),
        col("from_skill", "From Skill"),
        col("read_only", "Read-Only"),
        col("writes", "Writes"),
        col("checkpoint", "Checkpoint"),
    ];
    let mut rows = data["tools"].clone();
    for row in rows.as_array_mut().into_iter().flatten().filter(|row| row["from_skill"].is_null()) {
        row["from_skill"] = "(direct)".into();
    }
    out.table(None, &format!("Tools for {}", args.name), columns).rows(&rows).when_empty("tools", &[]);
    out.panel(None, "Summary")
        .pick(&data, "summary.total", "Total", Kind::Count)
        .pick(&data, "summary.from_includes", "From Includes", Kind::Count)
        .pick(&data, "summary.direct", "Direct", Kind::Count)
        .pick(&data, "summary.read_only", "Read-Only", Kind::Count)
        .pick(&data, "summary.writes", "Writes", Kind::Count)
        .pick(&data, "summary.checkpointable", "Checkpointable", Kind::Count);
    out.set_data(data);
    out.ok(listed(total, "tool", "tools"));
    Ok(())
}

fn refresh(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let refreshed = run.env.engine()?.call(Refresh { name: args.name })?;
    let data = json(&refreshed)?;
    out.panel(None, "Skill Refreshed").pick(&data, "skill", "Name", Kind::Id);
    servers(run, &data);
    changes(run, &data);
    warn(run, &refreshed.warnings);
    out.set_data(data);
    let count = &refreshed.tool_count;
    out.ok(format!("Skill refreshed ({} -> {} tools)", count.before, count.after));
    Ok(())
}

fn remove(run: &Run, args: RemoveArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    // An unknown skill is refused without a question.
    let known = engine.call(Show { name: args.name.clone() })?;
    if !out.confirm(&format!("Remove skill {}?", known.skill.name), args.yes.yes) {
        return Ok(());
    }
    let removed = engine.call(Remove { name: args.name })?;
    let data = json(&removed)?;
    let tools = format!("{} removed from registry", removed.skill.tools_removed);
    let panel = out.panel(None, "Skill Removed");
    panel.pick(&data, "skill.name", "Name", Kind::Id).row("Tools", tools);
    if removed.skill.mcp_servers_closed > 0 {
        let connections = counted(removed.skill.mcp_servers_closed as u64, "connection", "connections");
        panel.row("MCP Servers", format!("{connections} closed"));
    }
    drop(panel);
    let (skills, actors) =
        (&removed.dependency_check.including_skills, &removed.dependency_check.referencing_actors);
    if !skills.is_empty() || !actors.is_empty() {
        let panel = out.panel(None, "Dependency Check");
        panel.tone(Tone::Warn);
        bullets(&panel, skills.iter().map(|skill| id(&skill.name).and(format!(" ({})", skill.impact))));
        bullets(&panel, actors.iter().map(id));
    }
    let (skills, actors) = (skills.len(), actors.len());
    out.set_data(data);
    out.ok("Skill removed");
    let verb = |n: usize, one, many| if n == 1 { one } else { many };
    if skills > 0 {
        let of = counted(skills as u64, "skill", "skills");
        out.warn(format!("{of} {} this skill", verb(skills, "includes", "include")));
    }
    if actors > 0 {
        let of = counted(actors as u64, "actor", "actors");
        out.warn(format!("{of} {} this skill", verb(actors, "references", "reference")));
    }
    Ok(())
}
