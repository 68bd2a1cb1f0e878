//! `agents resource tree` and `agents resource inspect`.

use agents_engine::operations::resource::{Inspect, Tree};
use serde_json::Value;

use crate::args::{ResourceInspectArgs, ResourceTreeArgs};
use crate::commands::{json, text};
use crate::failure::Outcome;
use crate::output::{Kind, Node, Styled, TreeHandle, dim, human, id};
use crate::run::Run;

pub fn tree(run: &Run, args: ResourceTreeArgs) -> Outcome {
    let out = &run.out;
    let ResourceTreeArgs { resource, depth, resource_type } = args;
    let found = run.env.engine()?.call(Tree { resource, depth, resource_type })?;
    let data = json(&found)?;
    let tree = out.tree(None, "Resource Tree", Node::new(label(&data["tree"])));
    let mut open = vec![(TreeHandle::ROOT, &data["tree"])];
    while let Some((parent, of)) = open.pop() {
        for child in of["children"].as_array().into_iter().flatten() {
            open.push((tree.add(parent, Node::new(label(child))), child));
        }
        if let Some(more) = of["more"].as_u64() {
            tree.add(parent, Node::new(dim(format!("... {more} more"))));
        }
    }
    drop(tree);
    out.panel(None, "Summary")
        .pick(&data, "summary.total_shown", "Shown", Kind::Count)
        .pick(&data, "summary.total_in_subtree", "In Subtree", Kind::Count)
        .pick(&data, "summary.max_depth", "Max Depth", Kind::Count);
    out.set_data(data);
    out.ok("Resource tree displayed");
    Ok(())
}

/// `git-checkout local/repo`, `git 01HXM8C2..9T7K`.
fn label(node: &Value) -> Styled {
    let kind = Styled::from(format!("{} ", text(node, "type")));
    match node["name"].as_str() {
        Some(name) => kind.and(id(name)),
        None => {
            let whole = text(node, "id");
            let end = whole.len().saturating_sub(4);
            kind.and(id(format!("{}..{}", human::short_id(whole), whole.get(end..).unwrap_or_default())))
        }
    }
}

pub fn inspect(run: &Run, args: ResourceInspectArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(Inspect { resource: args.resource, file: args.file })?;
    let data = json(&found)?;
    let done = match &found.file {
        Some(file) => {
            out.panel(None, "File")
                .pick(&data, "file.path", "Path", Kind::Path)
                .pick(&data, "file.size", "Size", Kind::Text)
                .pick(&data, "file.language", "Language", Kind::Text)
                .pick(&data, "file.last_modified", "Last Modified", Kind::Time);
            let code = out.code(None, &file.content);
            code.title(file.path.as_str()).numbered_from(1);
            if let Some(language) = &file.language {
                code.language(language.as_str());
            }
            drop(code);
            if file.total_lines > file.lines_shown {
                out.say(&format!(
                    "... ({} more lines)",
                    human::count((file.total_lines - file.lines_shown) as u64)
                ));
            }
            "File displayed"
        }
        None => {
            let tree = out.tree(None, "Files", Node::new(id(text(&data, "root"))));
            tree.grow(TreeHandle::ROOT, &data["tree"], |entry| Node::new(text(entry, "name")));
            drop(tree);
            out.panel(None, "Summary")
                .pick(&data, "summary.directories", "Directories", Kind::Count)
                .pick(&data, "summary.files", "Files", Kind::Count)
                .pick(&data, "summary.total_size", "Total Size", Kind::Text);
            if found.summary.as_ref().is_some_and(|summary| summary.truncated) {
                out.warn("There are more files than are shown");
            }
            "Resource tree displayed"
        }
    };
    out.set_data(data);
    out.ok(done);
    Ok(())
}
