//! `agents plan apply`: shows what would change, asks, and follows the plan until it is applied.

use std::path::Path;

use agents_domain::plan::State;
use agents_domain::plan::machine::Verb;
use agents_engine::Engine;
use agents_engine::operations::plan::{Apply, Diff, DiffOutput, Status, StatusOutput};
use serde_json::{Value, json};

use super::changes;
use super::pause::{conclude, detached, refresh};
use crate::args::ApplyArgs;
use crate::commands::json;
use crate::failure::Outcome;
use crate::follow;
use crate::output::human::counted;
use crate::output::{Kind, Output, human};
use crate::run::Run;

pub fn run(run: &Run, args: ApplyArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let (plan, standing) = super::find(&engine, &args.plan)?;
    let can = standing.allowed_actions.iter().any(|action| action.verb == Verb::Apply);
    // A plan that cannot be applied is refused before anybody is asked, one that is being applied is only followed.
    let mut diff = None;
    if can {
        let changes = engine.call(Diff { plan: plan.to_string() })?;
        if !args.yes.yes {
            out.set_data(json!({ "plan_id": plan, "changes": totals(&changes) }));
            show_changes(out, &engine, &changes, args.no_commit)?;
            if !out.confirm(&format!("Apply changes for plan {plan}?"), false) {
                return Ok(());
            }
        }
        diff = Some(changes);
    }
    let since = follow::now(&engine)?;
    let accepted = engine.call(Apply { plan: plan.to_string(), no_commit: args.no_commit })?;
    let mut data = json(&accepted)?;
    out.set_data(data.clone());
    if args.detach {
        out.set_data(detached(data));
        out.hint("Next Steps", [format!("agents plan follow {plan}"), format!("agents plan status {plan}")]);
        out.ok("Apply started; it goes on in the background");
        return Ok(());
    }
    let standing = follow::until_pause(run, &engine, plan, since)?;
    refresh(&mut data, &standing)?;
    let mut done = "Changes applied";
    if standing.state == State::Applied {
        let files = match &diff {
            Some(diff) => diff.diff_summary.files_changed,
            None => standing.result.as_ref().map_or(0, |result| result.artifacts),
        };
        let parent = standing.parent_plan_id.map(|plan| engine.call(Status { plan: plan.to_string() }));
        applied(&mut data, &standing, parent.transpose()?.as_ref(), files);
        show_applied(out, &data);
        if data["commits"].as_array().is_some_and(|commits| !commits.is_empty()) {
            let commits = data["commits"].as_array().into_iter().flatten().filter_map(Value::as_str);
            out.hint(
                "Next Steps",
                commits
                    .map(|commit| format!("git show {}", &commit[..commit.len().min(12)]))
                    .chain([format!("agents plan revert {plan}")]),
            );
        } else if files > 0 && args.no_commit {
            out.hint("Next Steps", ["git diff", "git commit"]);
        } else if files > 0 {
            // A plain folder has no commits.
            out.hint("Next Steps", [format!("agents plan revert {plan}")]);
        } else {
            done = "Nothing to apply; the plan has ended";
        }
    }
    out.set_data(data);
    conclude(run, &engine, &standing, done)
}

fn totals(diff: &DiffOutput) -> Value {
    json!({ "insertions": diff.diff_summary.insertions, "deletions": diff.diff_summary.deletions })
}

/// What a person sees before the question: the files, the diff, and what deserves a look.
fn show_changes(
    out: &Output,
    engine: &Engine,
    diff: &DiffOutput,
    no_commit: bool,
) -> Result<(), crate::failure::Failure> {
    let behind = changes::behind(engine, diff)?;
    let data = json(diff)?;
    changes::show_patch(out, diff, &behind);
    changes::show_files(out, &data);
    let files = counted(diff.diff_summary.files_changed as u64, "file", "files");
    let panel = out.panel(None, "To Be Applied");
    panel
        .row(
            "Changes",
            format!("{files}, +{} -{}", diff.diff_summary.insertions, diff.diff_summary.deletions),
        )
        .row(
            "How",
            if diff.files.is_empty() {
                "nothing to apply; the plan ends"
            } else if no_commit {
                "into the working tree, no commit"
            } else {
                "one commit on the checked-out branch"
            },
        )
        .pick(&data, "risk_assessment.api_compatibility", "API Compatibility", Kind::Text)
        .pick(&data, "risk_assessment.test_coverage", "Test Coverage", Kind::Text)
        .pick(&data, "risk_assessment.breaking_changes", "Breaking Changes", Kind::Text);
    Ok(())
}

/// Adds what came of it, from where the plan stands, and its parent when it is a child plan.
fn applied(data: &mut Value, standing: &StatusOutput, parent: Option<&StatusOutput>, files: usize) {
    let now = serde_json::to_value(standing).unwrap_or_default();
    let result = &now["result"];
    let commits: Vec<&str> =
        result["applied"].as_array().into_iter().flatten().filter_map(|a| a["commit"].as_str()).collect();
    let branches: Vec<&str> =
        result["applied"].as_array().into_iter().flatten().filter_map(|a| a["branch"].as_str()).collect();
    let branch = match (commits.is_empty(), branches.first()) {
        (false, Some(branch)) => format!("merged to {branch}"),
        _ if files == 0 => "unchanged".to_owned(),
        _ => "working tree only".to_owned(),
    };
    let worktree = match standing.execution.sandbox.as_ref().map(|sandbox| Path::new(&sandbox.path).exists())
    {
        Some(true) => "preserved",
        _ => "removed",
    };
    let whole = json!({
        "plan_id": standing.plan_id,
        "artifacts": files,
        "changes": { "insertions": result["insertions"], "deletions": result["deletions"] },
        "project": standing.project,
        "applied_at": standing.timing.finished,
        "validation": now["validation"],
        "validation_summary": now["validation_summary"],
        "sandbox_cleanup": { "worktree": worktree, "branch": branch, "checkpoint": "archived" },
        "lifecycle": {
            "phase": standing.phase,
            "state": standing.state,
            "total_duration": standing.timing.total_duration,
            "total_cost": standing.cost.cost_so_far,
            "decisions_made": standing.execution.decisions_made,
            "child_plans": standing.execution.child_plans,
            "corrections": standing.execution.corrections,
        },
        "parent_plan": parent.map(|parent| json!({
            "plan": parent.plan_id,
            "phase": parent.phase,
            "state": parent.state,
            "child_plans": parent.execution.child_plans,
        })),
        "commits": commits,
        "applied": result["applied"],
    });
    if let (Value::Object(data), Value::Object(whole)) = (data, whole) {
        data.extend(whole);
    }
}

fn show_applied(out: &Output, data: &Value) {
    let files = data["artifacts"].as_u64().unwrap_or(0);
    out.panel(None, "Apply Summary")
        .pick(data, "plan_id", "Plan", Kind::Id)
        .row("Artifacts", format!("{} updated", counted(files, "file", "files")))
        .row("Changes", human::changes(&data["changes"]))
        .pick(data, "project", "Project", Kind::Id)
        .pick(data, "applied_at", "Applied At", Kind::Time)
        .pick(data, "commits", "Commit", Kind::Id);
    super::validations::show(out, data);
    out.panel(None, "Sandbox Cleanup")
        .pick(data, "sandbox_cleanup.worktree", "Worktree", Kind::Text)
        .pick(data, "sandbox_cleanup.branch", "Branch", Kind::Text)
        .pick(data, "sandbox_cleanup.checkpoint", "Checkpoint", Kind::Text);
    out.panel(None, "Plan Lifecycle")
        .pick(data, "lifecycle.phase", "Phase", Kind::Text)
        .pick(data, "lifecycle.state", "State", Kind::State)
        .pick(data, "lifecycle.total_duration", "Total Duration", Kind::Text)
        .pick(data, "lifecycle.total_cost", "Total Cost", Kind::Text)
        .pick(data, "lifecycle.decisions_made", "Decisions Made", Kind::Count)
        .pick(data, "lifecycle.child_plans", "Child Plans", Kind::Text)
        .pick(data, "lifecycle.corrections", "Corrections", Kind::Count);
    if !data["parent_plan"].is_null() {
        out.panel(None, "Parent Plan")
            .pick(data, "parent_plan.plan", "Plan", Kind::Id)
            .pick(data, "parent_plan.phase", "Phase", Kind::Text)
            .pick(data, "parent_plan.state", "State", Kind::State)
            .pick(data, "parent_plan.child_plans", "Child Plans", Kind::Text);
    }
}
