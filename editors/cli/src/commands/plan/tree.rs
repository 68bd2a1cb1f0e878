//! `agents plan tree`.

use std::collections::HashMap;

use agents_engine::operations::plan::Tree;
use serde_json::Value;

use crate::args::TreeArgs;
use crate::commands::{json, text, texts};
use crate::failure::Outcome;
use crate::output::human::{self, counted};
use crate::output::{
    Kind, Mark, Node, Output, Styled, Tone, TreeHandle, bad, col, dim, good, id, own, prose, warn,
};
use crate::run::Run;

/// From this confidence on a decision is shown as a sure one.
const SURE: f64 = 0.8;

/// Characters that an id is shown with at least.
const SHORT: usize = 10;

/// Below this confidence it is shown as a doubtful one.
const DOUBTFUL: f64 = 0.5;

pub fn run(run: &Run, args: TreeArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(Tree { plan: args.plan, show_superseded: args.show_superseded })?;
    let plan = found.plan_id.to_string();
    let (superseded, pending) = (found.summary.superseded, found.summary.pending);
    let data = json(&found)?;
    show(out, &data);
    let panel = out.panel(None, "Tree Summary");
    panel
        .pick(&data, "summary.nodes", "Nodes", Kind::Count)
        .pick(&data, "summary.depth", "Depth", Kind::Count)
        .pick(&data, "summary.child_plans", "Child Plans", Kind::Count)
        .pick(&data, "summary.invariants", "Invariants", Kind::Count)
        .row(
            "Superseded",
            if superseded > 0 && !args.show_superseded {
                format!("{superseded} (hidden)")
            } else {
                superseded.to_string()
            },
        );
    if pending > 0 {
        panel.row("Waiting for You", warn(pending.to_string()));
    }
    drop(panel);
    if !found.child_plans.is_empty() {
        let columns = vec![
            col("id", "ID").id(),
            col("phase", "Phase"),
            col("state", "State").kind(Kind::State),
            col("awaiting", "Waits For"),
            col("project", "Project"),
            col("description", "About"),
        ];
        out.table(None, "Child Plans", columns).rows(&data["child_plans"]);
    }
    out.hint("Next Steps", ["agents plan explain <DECISION>"]);
    out.set_data(data);
    out.ok("Decision tree rendered");
    if pending > 0 {
        let one = counted(pending as u64, "decision waits", "decisions wait");
        out.warn(format!("{one} for you")).detail(format!("agents plan status {plan}"));
    }
    Ok(())
}

/// The tree itself, of what the engine answered.
pub fn show(out: &Output, data: &Value) {
    let root = Node::new(Styled::from("Plan: ").and(id(text(data, "plan_id"))));
    let tree = out.tree(None, "Decision Tree", root);
    let list = Value::Array(data.get("tree").filter(|tree| !tree.is_null()).cloned().into_iter().collect());
    let short = short_ids(&list);
    tree.grow(TreeHandle::ROOT, &list, |decision| node(decision, &short));
}

/// `✓ [strategy_choice] 01HXM9A1C2 What about it? → This (0.85)`
fn node(decision: &Value, short: &HashMap<String, String>) -> Node {
    let kind = text(decision, "type");
    let named = |key: &str| short.get(text(decision, key)).map_or("?", String::as_str);
    let mut label = dim(format!("[{kind}] ")).and(id(named("decision_id"))).and(" ");
    if kind == "prompt_definition" {
        label = label.and(Styled::new(first_line(text(decision, "description")), Tone::Strong));
    } else {
        let question = first_line(text(decision, "question"));
        let chosen = prose(first_line(text(decision, "chosen")), Tone::Strong);
        label = label.and(own(question)).and(prose(" → ", Tone::Dim)).and(chosen);
    }
    if let Some(confidence) = decision["confidence"].as_f64() {
        let shown = format!(" ({confidence:.2})");
        label = label.and(match confidence {
            c if c >= SURE => good(shown),
            c if c >= DOUBTFUL => warn(shown),
            _ => bad(shown),
        });
    }
    let files = texts(&decision["artifacts"]).count() as u64;
    if files > 0 {
        label = label.and(dim(format!(" {}", counted(files, "file", "files"))));
    }
    let mark = match text(decision, "status") {
        "pending" => {
            label = label.and(warn(" waits for you"));
            Mark::Waiting
        }
        "superseded" => {
            label = label.and(dim(format!(" replaced by {}", named("superseded_by"))));
            for span in &mut label.spans {
                span.tone = Tone::Dim;
            }
            Mark::Skipped
        }
        _ => Mark::Done,
    };
    Node::new(label).mark(mark)
}

/// The beginning of each decision's id that tells it from the others of the tree.
fn short_ids(list: &Value) -> HashMap<String, String> {
    let mut ids: Vec<&str> = Vec::new();
    let mut open: Vec<&Value> = list.as_array().into_iter().flatten().collect();
    while let Some(decision) = open.pop() {
        ids.push(text(decision, "decision_id"));
        open.extend(decision["children"].as_array().into_iter().flatten());
    }
    let short = human::short_ids(&ids, SHORT);
    ids.into_iter().map(str::to_owned).zip(short).collect()
}

fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim()
}
