//! `agents plan list`.

use agents_engine::operations::plan::List;
use serde_json::Value;

use crate::args::PlanListArgs;
use crate::commands::{json, listed};
use crate::failure::Outcome;
use crate::output::{Kind, col, dim, human, warn};
use crate::run::Run;

/// What a plan waits for, in one word where there is one.
fn short(kind: &str) -> &str {
    match kind {
        "confirm_strategize" => "start",
        "execute_approval" => "execute",
        "apply_approval" => "apply",
        "language_server" => "server",
        "validation_fix" => "validation",
        other => other,
    }
}

pub fn run(run: &Run, args: PlanListArgs) -> Outcome {
    let out = &run.out;
    let PlanListArgs { pattern, phase, state, project, action, namespace } = args;
    let found = run.env.engine()?.call(List { phase, state, project, namespace, action, pattern })?;
    let total = found.plans.len();
    if out.format().is_document() {
        out.set_answer(found);
        out.ok(listed(total, "plan", "plans"));
        return Ok(());
    }
    let family = found.plans.iter().any(|plan| plan.parent.is_some());
    let mut columns = vec![
        col("id", "ID").id(),
        col("phase", "Phase"),
        col("state", "State").kind(Kind::State),
        col("action", "Action"),
        col("project", "Project"),
        col("elapsed", "Elapsed"),
    ];
    if family {
        columns.insert(1, col("parent", "Parent").id());
    }
    let table = out.table(None, "Plans", columns);
    let waiting: Vec<(usize, String)> = found
        .plans
        .iter()
        .enumerate()
        .filter_map(|(row, plan)| Some((row, plan.awaiting.clone()?)))
        .collect();
    // There may be thousands of them: their texts are moved, not copied.
    table.fill(found.plans.into_iter().map(|plan| {
        let (phase, state) = (plan.phase.as_str(), plan.state.as_str());
        let mut cells =
            vec![plan.id.to_string(), phase.into(), state.into(), plan.action, plan.project, plan.elapsed];
        if family {
            cells.insert(1, plan.parent.map(|parent| parent.to_string()).unwrap_or_default());
        }
        cells.into_iter().map(Value::from)
    }));
    for (row, kind) in waiting {
        table.instead(row, "state", warn(format!("waits: {}", short(&kind))));
    }
    table.when_empty("plans", &["agents action list", "agents plan use <ACTION> <PROJECT>"]);
    drop(table);
    let filters = json(&found.filters)?;
    if filters.is_object() {
        let panel = out.panel(None, "Filters");
        for (key, label) in [
            ("phase", "Phase"),
            ("state", "State"),
            ("project", "Project"),
            ("action", "Action"),
            ("namespace", "Namespace"),
            ("pattern", "Pattern"),
        ] {
            panel.row(label, filters[key].as_str().map_or_else(|| dim("(any)"), Into::into));
        }
    }
    let summary = &found.summary;
    let panel = out.panel(None, "Summary");
    for (label, n) in [
        ("Total", summary.total),
        ("Processing", summary.processing),
        ("Waiting for You", summary.awaiting),
        ("Completed", summary.completed),
        ("Errored", summary.errored),
        ("Cancelled", summary.cancelled),
    ] {
        panel.row(label, human::count(n as u64));
    }
    drop(panel);
    out.ok(listed(total, "plan", "plans"));
    Ok(())
}
