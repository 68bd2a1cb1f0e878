//! `agents resource type`.

use agents_engine::operations::resource::{TypeList, TypeShow};

use crate::commands::{bullets, json, listed, texts};
use crate::failure::Outcome;
use crate::output::{Kind, Row, col, dim};
use crate::run::Run;

pub fn list(run: &Run, pattern: Option<String>) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(TypeList { pattern })?;
    let data = json(&found)?;
    let columns = vec![
        col("name", "Name").id(),
        col("source", "Source"),
        col("physical_virtual", "Phys/Virt"),
        col("addable", "Addable").kind(Kind::Flag),
        col("auto_children", "Auto Children"),
    ];
    let table = out.table(None, "Resource Types", columns);
    for (row, kind) in data["resource_types"].as_array().into_iter().flatten().zip(&found.resource_types) {
        let children = match kind.auto_children.is_empty() {
            true => dim("(none)"),
            false => kind.auto_children.join(", ").into(),
        };
        table.row(Row::from(row.clone()).show("auto_children", children));
    }
    table.when_empty("resource types", &["agents resource type list"]);
    drop(table);
    out.panel(None, "Summary")
        .pick(&data, "summary.built_in", "Built-in", Kind::Count)
        .pick(&data, "summary.custom", "Custom", Kind::Count)
        .pick(&data, "summary.user_addable", "User-addable", Kind::Count);
    out.set_data(data);
    out.ok(listed(found.resource_types.len(), "resource type", "resource types"));
    Ok(())
}

pub fn show(run: &Run, name: String) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(TypeShow { name })?;
    let data = json(&found)?;
    out.panel(None, "Resource Type")
        .pick(&data, "name", "Name", Kind::Id)
        .pick(&data, "source", "Source", Kind::Text)
        .pick(&data, "description", "Description", Kind::Text)
        .pick(&data, "physical_virtual", "Physical/Virtual", Kind::Text)
        .pick(&data, "user_addable", "User-addable", Kind::Auto);
    if !found.cli_arguments.is_empty() {
        let columns = vec![
            col("argument", "Argument").id(),
            col("type", "Type"),
            col("required", "Required").kind(Kind::Flag),
            col("description", "Description").wrap(),
        ];
        out.table(None, "Arguments", columns).rows(&data["cli_arguments"]);
    }
    let panel = out.panel(None, "Parent Types");
    bullets(&panel, texts(&data["parent_types"]["allowed"]));
    panel.pick(&data, "parent_types.top_level", "Top Level", Kind::Auto);
    drop(panel);
    if !found.child_types.is_empty() {
        let columns = vec![
            col("type", "Type").id(),
            col("auto", "Auto").kind(Kind::Flag),
            col("manual_link", "Manual Link").kind(Kind::Flag),
            col("description", "Description").wrap(),
        ];
        out.table(None, "Child Types", columns).rows(&data["child_types"]);
    }
    out.panel(None, "Sandbox").pick(&data, "sandbox.strategy", "Strategy", Kind::Text).pick(
        &data,
        "sandbox.checkpointable",
        "Checkpointable",
        Kind::Auto,
    );
    out.set_data(data);
    out.ok("Resource type details loaded");
    Ok(())
}
