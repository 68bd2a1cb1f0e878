//! `agents invariant`.

use agents_domain::invariant::Scope;
use agents_engine::operations::invariant::{Add, List, ListOutput, Remove, Show};
use serde_json::Value;

use crate::args::{InvariantAddArgs, InvariantCommand, InvariantListArgs, InvariantRemoveArgs};
use crate::commands::{json, text};
use crate::failure::Outcome;
use crate::output::human::counted;
use crate::output::{Kind, Tone, col};
use crate::run::Run;

pub fn run(run: &Run, command: InvariantCommand) -> Outcome {
    match command {
        InvariantCommand::Add(args) => add(run, args),
        InvariantCommand::List(args) => list(run, args),
        InvariantCommand::Remove(args) => remove(run, args),
    }
}

fn add(run: &Run, args: InvariantAddArgs) -> Outcome {
    let out = &run.out;
    let InvariantAddArgs { text, global, project, plans, actions, non_overridable } = args;
    let added = run.env.engine()?.call(Add { text, global, project, plans, actions, non_overridable })?;
    let data = json(&added)?;
    for (one, invariant) in data.as_array().into_iter().flatten().zip(&added) {
        let panel = out.panel(None, "Invariant Added");
        for (key, label) in [("project", "Project"), ("plan", "Plan"), ("action", "Action")] {
            if one[key].is_string() {
                panel.pick(one, key, label, Kind::Id);
            }
        }
        panel
            .pick(one, "invariant", "Invariant", Kind::Text)
            .pick(one, "scope", "Scope", Kind::Text)
            .pick(one, "id", "ID", Kind::Id)
            .row("Enforced By", if invariant.enforced_by == "machine" { "machine" } else { "actors" });
        if invariant.non_overridable {
            panel.row("Non-Overridable", "yes");
        }
        if one["decision_id"].is_string() {
            panel.pick(one, "decision_id", "Decision", Kind::Id);
        }
        drop(panel);
        if let (Some(plan), Some(how)) = (invariant.plan, &invariant.violated) {
            out.warn(format!("What plan {plan} has done so far breaks it: {how}"));
        }
    }
    if non_overridable && added.iter().any(|one| one.scope != Scope::Global) {
        out.warn("--non-overridable means something for global invariants only; it was ignored");
    }
    out.set_data(data);
    out.ok("Invariant added");
    Ok(())
}

fn list(run: &Run, args: InvariantListArgs) -> Outcome {
    let out = &run.out;
    let InvariantListArgs { pattern, global, project, plan, action, effective } = args;
    let found = run.env.engine()?.call(List { global, project, plan, action, effective, pattern })?;
    let data = json(&found)?;
    let title = title(&found);
    let mut columns = vec![col("id", "ID").tone(Tone::Id)];
    if effective {
        columns.push(col("source", "Source"));
    }
    columns.push(col("text", "Text").wrap());
    columns.push(col("enforced_by", "Enforced By"));
    out.table(None, &title, columns)
        .rows(&data["invariants"])
        .when_empty("invariants", &["agents invariant add --global <TEXT>"]);
    if effective && !found.conflicts_resolved.is_empty() {
        let panel = out.panel(None, "Conflicts Resolved");
        for conflict in data["conflicts_resolved"].as_array().into_iter().flatten() {
            let side = |which: &str| {
                format!("{} \"{}\"", text(&conflict[which], "source"), text(&conflict[which], "text"))
            };
            panel.line(format!(
                "{} overridden by {}: {}",
                side("overridden"),
                side("by"),
                text(conflict, "reason")
            ));
        }
    }
    let message = message(&found, &data);
    out.set_data(data);
    out.ok(message);
    Ok(())
}

fn title(found: &ListOutput) -> String {
    match (found.scope, found.plan_id) {
        (_, Some(plan)) if found.effective => format!("Effective Invariants (Plan {plan})"),
        (_, Some(plan)) => format!("Plan Invariants ({plan})"),
        (Scope::Project, _) => {
            format!("Project Invariants ({})", found.project.as_deref().unwrap_or_default())
        }
        (Scope::Action, _) => format!("Action Invariants ({})", found.action.as_deref().unwrap_or_default()),
        _ => "Global Invariants".to_owned(),
    }
}

/// `3 effective invariants (1 global, 2 plan; 1 conflict resolved)`, `2 invariants`.
fn message(found: &ListOutput, data: &Value) -> String {
    let total = found.invariants.len() as u64;
    if !found.effective {
        return counted(total, "invariant", "invariants");
    }
    let sources = data["invariants"].as_array().into_iter().flatten();
    let sources: Vec<&str> = sources.map(|one| text(one, "source")).collect();
    let parts: Vec<String> = Scope::ALL
        .iter()
        .map(|scope| (scope.as_str(), sources.iter().filter(|s| **s == scope.as_str()).count()))
        .filter(|(_, n)| *n > 0)
        .map(|(scope, n)| format!("{n} {scope}"))
        .collect();
    let mut detail = parts.join(", ");
    if !found.conflicts_resolved.is_empty() {
        let resolved = counted(found.conflicts_resolved.len() as u64, "conflict", "conflicts");
        let join = if detail.is_empty() { "" } else { "; " };
        detail = format!("{detail}{join}{resolved} resolved");
    }
    let total = counted(total, "effective invariant", "effective invariants");
    if detail.is_empty() { total } else { format!("{total} ({detail})") }
}

fn remove(run: &Run, args: InvariantRemoveArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let found = engine.call(Show { id: args.id })?;
    let question = format!(
        "Remove invariant {} (\"{}\", scope: {})?",
        found.invariant_id,
        found.text,
        found.scope.as_str()
    );
    if !out.confirm(&question, args.yes.yes) {
        return Ok(());
    }
    let removed = engine.call(Remove { id: found.invariant_id.to_string() })?;
    let data = json(&removed)?;
    out.panel(None, "Invariant Removed")
        .pick(&data, "removed", "Removed", Kind::Text)
        .pick(&data, "scope", "Scope", Kind::Text)
        .pick(&data, "id", "ID", Kind::Id);
    out.set_data(data);
    out.ok("Invariant removed");
    Ok(())
}
