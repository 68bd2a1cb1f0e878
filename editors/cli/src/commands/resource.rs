//! `agents resource`.

mod look;
mod types;

use std::collections::BTreeMap;

use agents_engine::operations::resource::{Add, List, Remove, Show};
use serde_json::Value;

use crate::args::{
    NameArgs, RemoveArgs, ResourceAddArgs, ResourceCommand, ResourceListArgs, ResourceTypeCommand,
};
use crate::commands::{bullets, json, listed, text, unavailable};
use crate::compose;
use crate::failure::Outcome;
use crate::output::human::counted;
use crate::output::{Kind, Output, Tone, col, dim, human, id};
use crate::run::Run;

pub fn run(run: &Run, command: ResourceCommand) -> Outcome {
    match command {
        ResourceCommand::Add(args) => add(run, args),
        ResourceCommand::List(args) => list(run, args),
        ResourceCommand::Show(args) => show(run, args),
        ResourceCommand::Remove(args) => remove(run, args),
        ResourceCommand::Inspect(args) => look::inspect(run, args),
        ResourceCommand::Tree(args) => look::tree(run, args),
        ResourceCommand::Type(ResourceTypeCommand::List(args)) => types::list(run, args.pattern),
        ResourceCommand::Type(ResourceTypeCommand::Show(args)) => types::show(run, args.name),
        ResourceCommand::Type(ResourceTypeCommand::Add(_) | ResourceTypeCommand::Remove(_))
        | ResourceCommand::LinkChild(_)
        | ResourceCommand::UnlinkChild(_)
        | ResourceCommand::Stop(_)
        | ResourceCommand::Rebuild(_) => unavailable::refuse(command.path()),
    }
}

fn add(run: &Run, args: ResourceAddArgs) -> Outcome {
    let out = &run.out;
    let mut properties = BTreeMap::new();
    if let Some(path) = args.path {
        properties.insert("path".to_owned(), compose::absolute(&path)?);
    }
    if let Some(branch) = args.branch {
        properties.insert("branch".to_owned(), branch);
    }
    let added = run.env.engine()?.call(Add {
        resource_type: args.resource_type,
        name: args.name,
        description: args.description,
        properties,
        update: args.update,
    })?;
    let data = json(&added)?;
    resource(out, &data);
    if !added.auto_discovered_children.is_empty() {
        let columns = vec![
            col("id", "ID").tone(Tone::Id),
            col("type", "Type"),
            col("status", "Status").kind(Kind::State),
        ];
        out.table(None, "Auto-discovered Children", columns).rows(&data["auto_discovered_children"]);
    }
    capabilities(out, &data);
    let name = text(&data, "name").to_owned();
    out.hint(
        "Next Steps",
        [
            format!("agents project create <PROJECT> --resource {name}"),
            format!("agents project link-resource <PROJECT> {name}"),
        ],
    );
    for warning in &added.warnings {
        out.warn(warning.as_str());
    }
    let verb = if added.updated { "updated" } else { "registered" };
    let children = counted(added.total_children as u64, "child resource", "child resources");
    out.set_data(data);
    out.ok(format!("Resource {verb} ({children} discovered)"));
    Ok(())
}

fn resource(out: &Output, data: &Value) {
    let panel = out.panel(None, "Resource");
    match data["name"].as_str() {
        Some(name) => panel.row("Name", id(name)),
        None => panel.row("Name", dim("(none: discovered)")),
    };
    panel
        .pick(data, "id", "ID", Kind::Id)
        .pick(data, "type", "Type", Kind::Text)
        .pick(data, "physical_virtual", "Physical/Virtual", Kind::Text)
        .pick(data, "description", "Description", Kind::Text)
        .pick(data, "path", "Path", Kind::Path)
        .pick(data, "branch", "Branch", Kind::Text)
        .pick(data, "created", "Created", Kind::Time);
}

fn capabilities(out: &Output, data: &Value) {
    out.panel(None, "Capabilities")
        .pick(data, "capabilities.readable", "Readable", Kind::Auto)
        .pick(data, "capabilities.writable", "Writable", Kind::Auto)
        .pick(data, "capabilities.sandboxable", "Sandboxable", Kind::Auto)
        .pick(data, "capabilities.checkpointable", "Checkpointable", Kind::Auto)
        .pick(data, "capabilities.sandbox_strategy", "Sandbox Strategy", Kind::Text);
}

fn list(run: &Run, args: ResourceListArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(List { all: args.all, resource_type: args.resource_type })?;
    let total = found.resources.len();
    let data = json(&found)?;
    let columns = vec![
        col("name", "Name").id(),
        col("id", "ID").id(),
        col("type", "Type"),
        col("physical_virtual", "Phys/Virt"),
        col("children", "Children").kind(Kind::Count),
        col("projects", "Projects"),
    ];
    out.table(None, "Resources", columns)
        .rows(&data["resources"])
        .when_empty("resources", &["agents resource add git-checkout local/repo --path ."]);
    out.panel(None, "Summary")
        .pick(&data, "summary.total", "Total", Kind::Count)
        .pick(&data, "summary.physical", "Physical", Kind::Count)
        .pick(&data, "summary.virtual", "Virtual", Kind::Count)
        .pick(&data, "summary.total_children", "Total Children", Kind::Count);
    out.set_data(data);
    out.ok(listed(total, "resource", "resources"));
    Ok(())
}

fn show(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(Show { resource: args.name })?;
    let data = json(&found)?;
    resource(out, &data);
    capabilities(out, &data);
    let panel = out.panel(None, "Parents");
    for parent in &found.parents {
        panel.line(parent.as_str());
    }
    drop(panel);
    if !found.direct_children.is_empty() {
        let columns = vec![
            col("id", "ID").tone(Tone::Id),
            col("type", "Type"),
            col("auto", "Auto"),
            col("children", "Children").kind(Kind::Count),
        ];
        out.table(None, "Direct Children", columns).rows(&data["direct_children"]);
    }
    let panel = out.panel(None, "Linked Projects");
    if found.linked_projects.is_empty() {
        panel.line(dim("(none)"));
    }
    let link =
        |project: &Value| id(text(project, "name")).and(dim(format!(" ({})", text(project, "access"))));
    bullets(&panel, data["linked_projects"].as_array().into_iter().flatten().map(link));
    drop(panel);
    if !found.tool_bindings.is_empty() {
        let columns = vec![col("tool", "Tool").id(), col("slot", "Slot"), col("access", "Access")];
        out.table(None, "Tool Bindings", columns).rows(&data["tool_bindings"]);
    }
    out.set_data(data);
    out.ok("Resource details loaded");
    Ok(())
}

fn remove(run: &Run, args: RemoveArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let found = engine.call(Show { resource: args.name.clone() })?;
    // What cannot be removed is refused without a question.
    let free = found.linked_projects.is_empty() && found.resource.name.is_some();
    if free {
        let name = found.resource.name.as_deref().unwrap_or(&args.name);
        let children = counted(found.total_children as u64, "child resource", "child resources");
        if !out.confirm(&format!("Remove resource {name} and {children}?"), args.yes.yes) {
            return Ok(());
        }
    }
    let removed = engine.call(Remove { resource: args.name })?;
    let data = json(&removed)?;
    out.panel(None, "Resource Removed")
        .pick(&data, "name", "Name", Kind::Id)
        .pick(&data, "type", "Type", Kind::Text)
        .row("Children", format!("{} removed", human::count(removed.children_removed as u64)))
        .row("Projects", format!("{} unlinked", removed.projects_unlinked));
    out.set_data(data);
    out.ok("Resource removed");
    Ok(())
}
