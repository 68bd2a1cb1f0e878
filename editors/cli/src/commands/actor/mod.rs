//! `agents actor`: the registry of actors.

mod run;

pub use run::RunReport;

use agents_domain::ErrorKind;
use agents_engine::operations::actor::{Add, List, Remove, Show};
use serde_json::Value;

use crate::args::{ActorAddArgs, ActorCommand, NameArgs};
use crate::commands::{bullets, json, listed, text, texts};
use crate::compose;
use crate::failure::{Failure, Outcome};
use crate::output::{Kind, Output, col, id};
use crate::run::Run;

pub fn run(run: &Run, command: ActorCommand) -> Outcome {
    match command {
        ActorCommand::Add(args) => add(run, args),
        ActorCommand::List => list(run),
        ActorCommand::Show(args) => show(run, args),
        ActorCommand::Remove(args) => remove(run, args),
        ActorCommand::Run(args) => run::run(run, args),
    }
}

fn add(run: &Run, args: ActorAddArgs) -> Outcome {
    let out = &run.out;
    let ActorAddArgs { config, update, is_unsafe, skills, provider, model } = args;
    let text = compose::read_definition(&config)?;
    let path = compose::config_path(&config)?;
    let config = compose::definition_name(&config);
    let add = Add { config, path, text, update, is_unsafe, skills, provider, model };
    let added = run.env.engine()?.call(add).map_err(|error| {
        let exists = error.kind == ErrorKind::AlreadyExists;
        let mut failure = Failure::from(error);
        if exists {
            failure.error.detail =
                Some("Actor already registered \u{2014} use --update to replace".to_owned());
        }
        failure
    })?;
    let data = json(&added)?;
    let updated = added.actor_updated.is_some();
    if updated {
        out.panel(None, "Actor Updated")
            .pick(&data, "actor_updated.name", "Name", Kind::Id)
            .pick(&data, "actor_updated.type", "Type", Kind::Text)
            .pick(&data, "actor_updated.status", "Status", Kind::Text);
        out.panel(None, "Changes")
            .pick(&data, "changes.skills", "Skills", Kind::Text)
            .pick(&data, "changes.model", "Model", Kind::Text)
            .pick(&data, "changes.graph", "Graph", Kind::Text);
    } else {
        out.panel(None, "Actor Added")
            .pick(&data, "actor_added.name", "Name", Kind::Id)
            .pick(&data, "actor_added.provider", "Provider", Kind::Text)
            .pick(&data, "actor_added.model", "Model", Kind::Text)
            .pick(&data, "actor_added.default", "Default", Kind::Flag)
            .pick(&data, "actor_added.unsafe", "Unsafe", Kind::Flag)
            .pick(&data, "actor_added.type", "Type", Kind::Text);
    }
    out.panel(None, "Config")
        .pick(&data, "config.path", "Path", Kind::Path)
        .pick(&data, "config.hash", "Hash", Kind::Text)
        .pick(&data, "config.options", "Options", Kind::Count)
        .pick(&data, "config.nodes", "Nodes", Kind::Count)
        .pick(&data, "config.edges", "Edges", Kind::Count);
    if !added.capabilities.is_empty() {
        let panel = out.panel(None, "Capabilities");
        bullets(&panel, texts(&data["capabilities"]));
    }
    tools(out, &data);
    for hint in &added.hints {
        match hint.severity {
            agents_config::Severity::Hint => out.info(hint.to_string()),
            _ => out.warn(hint.to_string()),
        };
    }
    out.set_data(data);
    out.ok(if updated { "Actor updated" } else { "Actor added" });
    Ok(())
}

fn tools(out: &Output, data: &Value) {
    if data["tools"].as_array().is_none_or(Vec::is_empty) {
        return;
    }
    let columns = vec![col("tool", "Tool").id(), col("read_only", "Read-Only"), col("safe", "Safe")];
    out.table(None, "Tools", columns).rows(&data["tools"]);
}

fn list(run: &Run) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(List {})?;
    let data = json(&found)?;
    let columns = vec![
        col("name", "Name").id(),
        col("provider", "Provider"),
        col("model", "Model"),
        col("default", "Default"),
        col("builtin", "Built-in"),
        col("unsafe", "Unsafe"),
    ];
    out.table(None, "Actors", columns)
        .rows(&data["actors"])
        .when_empty("actors", &["agents actor add --config <FILE>"]);
    out.panel(None, "Summary")
        .pick(&data, "summary.total", "Total", Kind::Count)
        .pick(&data, "summary.builtin", "Built-in", Kind::Count)
        .pick(&data, "summary.custom", "Custom", Kind::Count)
        .pick(&data, "summary.unsafe", "Unsafe", Kind::Count)
        .pick(&data, "summary.providers_used", "Providers Used", Kind::Count);
    for actor in &found.actors {
        if let Some(problem) = &actor.problem {
            out.warn(format!("{} cannot be used now: {problem}", actor.name));
        }
    }
    let total = found.summary.total;
    out.set_data(data);
    out.ok(listed(total, "actor", "actors"));
    Ok(())
}

fn show(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(Show { name: args.name })?;
    let data = json(&found)?;
    out.panel(None, "Actor Details")
        .pick(&data, "actor_details.name", "Name", Kind::Id)
        .pick(&data, "actor_details.description", "Description", Kind::Text)
        .pick(&data, "actor_details.provider", "Provider", Kind::Text)
        .pick(&data, "actor_details.model", "Model", Kind::Text)
        .pick(&data, "actor_details.default", "Default", Kind::Flag)
        .pick(&data, "actor_details.builtin", "Built-in", Kind::Flag)
        .pick(&data, "actor_details.unsafe", "Unsafe", Kind::Flag)
        .pick(&data, "actor_details.type", "Type", Kind::Text)
        .pick(&data, "actor_details.created", "Created", Kind::Time)
        .pick(&data, "actor_details.updated", "Updated", Kind::Time)
        .pick(&data, "actor_details.config", "Config", Kind::Path)
        .pick(&data, "actor_details.config_hash", "Config Hash", Kind::Text);
    if !found.options.is_empty() {
        let panel = out.panel(None, "Options");
        for (key, value) in &found.options {
            panel.row(key, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    out.panel(None, "Graph Structure")
        .pick(&data, "graph_structure.nodes", "Nodes", Kind::Count)
        .pick(&data, "graph_structure.edges", "Edges", Kind::Count)
        .pick(&data, "graph_structure.entry", "Entry", Kind::Text)
        .pick(&data, "graph_structure.exit", "Exit", Kind::Text);
    tools(out, &data);
    if !found.skills.is_empty() {
        let panel = out.panel(None, "Skills");
        bullets(&panel, found.skills.iter().map(id));
    }
    out.panel(None, "Access")
        .pick(&data, "access.unsafe", "Unsafe", Kind::Flag)
        .pick(&data, "access.filesystem", "Filesystem", Kind::Text)
        .pick(&data, "access.network", "Network", Kind::Text);
    out.panel(None, "Usage")
        .pick(&data, "usage.referenced_by_actions", "Referenced by Actions", Kind::Text)
        .pick(&data, "usage.active_in_sessions", "Active in Sessions", Kind::Count)
        .pick(&data, "usage.total_runs", "Total Runs", Kind::Count)
        .pick(&data, "usage.avg_cost_per_run", "Avg Cost/Run", Kind::Text);
    out.set_data(data);
    out.ok("Actor loaded");
    Ok(())
}

fn remove(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let removed = run.env.engine()?.call(Remove { name: args.name })?;
    let data = json(&removed)?;
    out.panel(None, "Actor Removed")
        .pick(&data, "actor_removed.name", "Name", Kind::Id)
        .pick(&data, "actor_removed.provider", "Provider", Kind::Text)
        .pick(&data, "actor_removed.model", "Model", Kind::Text);
    out.panel(None, "Impact")
        .pick(&data, "impact.sessions", "Sessions", Kind::Count)
        .pick(&data, "impact.active_plans", "Active Plans", Kind::Count)
        .pick(&data, "impact.actions_referencing", "Actions Referencing", Kind::Count);
    out.panel(None, "Cleanup").pick(&data, "cleanup.config", "Config", Kind::Text).pick(
        &data,
        "cleanup.contexts",
        "Contexts",
        Kind::Text,
    );
    if !removed.broken_references.is_empty() {
        let panel = out.panel(None, "Broken References");
        for broken in data["broken_references"].as_array().into_iter().flatten() {
            panel.line(id(text(broken, "name")).and(format!(" ({})", text(broken, "type"))));
        }
    }
    let broken = removed.broken_references.len();
    out.set_data(data);
    out.ok("Actor removed");
    if broken > 0 {
        out.warn("What names it will not work until an actor of that name is registered again.");
    }
    Ok(())
}
