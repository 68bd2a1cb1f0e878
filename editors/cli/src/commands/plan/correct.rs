//! `agents plan correct` and `agents plan rollback`: show what would be taken back, ask, and follow the plan.

use agents_domain::plan::State;
use agents_engine::operations::plan::{Correct, Rollback};
use serde_json::{Value, json};

use super::pause::{conclude, detached, refresh};
use crate::args::{CorrectArgs, RollbackArgs};
use crate::commands::{bullets, json, text, texts};
use crate::failure::Outcome;
use crate::follow;
use crate::output::{Kind, Output, Row, Styled, Tone, col, dim, id};
use crate::run::Run;

pub fn correct(run: &Run, args: CorrectArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let mode = args.mode.into();
    let ask =
        |dry_run| Correct { decision: args.decision.clone(), mode, guidance: args.guidance.clone(), dry_run };
    let reverts = args.mode == crate::args::CorrectMode::Revert;
    if args.dry_run || (reverts && !args.yes.yes) {
        let preview = engine.call(ask(true))?;
        let data = json(&preview)?;
        out.set_data(data.clone());
        show_preview(out, &data);
        if args.dry_run {
            match &preview.reason {
                Some(reason) => {
                    out.hint("Next Steps", preview.suggestions.clone());
                    out.warn(format!("It would be refused: {reason}"));
                }
                None => {
                    let yes = if reverts { " and add --yes" } else { "" };
                    out.ok(format!("To execute this correction, remove --dry-run{yes}"));
                }
            }
            return Ok(());
        }
        // What is refused says so instead of asking.
        let refused = preview.rejected == Some(true);
        if !refused && !out.confirm(&format!("Correct decision {}?", text_of_first(&data)), false) {
            return Ok(());
        }
    }
    let since = follow::now(&engine)?;
    let corrected = engine.call(ask(false))?;
    let plan = corrected.plan_id;
    let mut data = json(&corrected)?;
    out.set_data(data.clone());
    show_correction(out, &data);
    for warning in &corrected.warnings {
        out.warn(warning.as_str());
    }
    if args.detach {
        out.set_data(detached(data));
        out.hint("Next Steps", [format!("agents plan follow {plan}"), format!("agents plan status {plan}")]);
        out.ok(if reverts {
            "Correction recorded; the plan goes on in the background"
        } else {
            "Append correction queued"
        });
        return Ok(());
    }
    // What is added to an applied plan goes its own way.
    let alone = corrected.queued.as_ref().filter(|_| corrected.state == State::Applied);
    let followed = alone.map_or(plan, |queued| queued.child_plan_id);
    let runs = matches!(corrected.state, State::Queued | State::Processing) && corrected.awaiting.is_none();
    if !reverts && !runs && followed == plan {
        // It waits for a person, or has failed: what was added comes when it goes on.
        out.hint("Next Steps", [format!("agents plan status {plan}"), format!("agents plan tree {plan}")]);
        out.ok("Append correction queued");
        return Ok(());
    }
    let standing = follow::until_pause(run, &engine, followed, since)?;
    if !reverts {
        if followed == plan {
            refresh(&mut data, &standing)?;
            out.set_data(data);
        }
        return conclude(run, &engine, &standing, "Append correction queued");
    }
    refresh(&mut data, &standing)?;
    if data["sandbox_rollback"]["status"] == "queued" {
        data["sandbox_rollback"]["status"] = json!(if standing.rewinding { "queued" } else { "restored" });
    }
    out.set_data(data.clone());
    if data["sandbox_rollback"]["status"] == "restored" {
        out.panel(None, "Sandbox Rollback")
            .pick(&data, "sandbox_rollback.checkpoint", "Checkpoint", Kind::Id)
            .pick(&data, "sandbox_rollback.files_reverted", "Files Reverted", Kind::Count)
            .pick(&data, "sandbox_rollback.status", "Status", Kind::State);
    }
    conclude(run, &engine, &standing, "Correction applied")
}

fn text_of_first(data: &Value) -> String {
    let first = &data["would_revert"]["decisions_to_invalidate"][0];
    text(first, "id").to_owned()
}

fn show_preview(out: &Output, data: &Value) {
    let falls = &data["would_revert"];
    out.panel(None, "Would Revert")
        .pick(data, "plan_id", "Plan", Kind::Id)
        .row("Decisions", falls["decisions_to_invalidate"].as_array().map_or(0, Vec::len).to_string())
        .pick(falls, "child_plans_to_roll_back", "Child Plans", Kind::Count)
        .pick(falls, "artifacts_to_archive", "Artifacts to Archive", Kind::Count)
        .pick(falls, "unaffected_decisions", "Unaffected Decisions", Kind::Count)
        .pick(data, "tier", "Tier", Kind::Text);
    let columns = vec![col("id", "Decision").id(), col("type", "Type"), col("label", "Chosen")];
    let table = out.table(None, "Decisions to Invalidate", columns);
    for decision in falls["decisions_to_invalidate"].as_array().into_iter().flatten() {
        let mut label = Styled::from(text(decision, "label"));
        if decision["overlaps"] == true {
            label = label.and(dim(" (same lines)"));
        }
        table.row(Row::from(decision).show("label", label));
    }
    drop(table);
    let files: Vec<&str> = texts(&falls["artifacts"]).collect();
    if !files.is_empty() {
        bullets(&out.panel(None, "Artifacts to Archive"), files);
    }
    if !data["estimated_cost"].is_null() {
        out.panel(None, "Estimated Cost")
            .pick(data, "estimated_cost.re_strategize", "Re-strategize", Kind::Text)
            .pick(data, "estimated_cost.re_execute", "Re-execute", Kind::Text)
            .pick(data, "estimated_cost.total", "Total", Kind::Text)
            .pick(data, "estimated_cost.steps", "Steps", Kind::Count)
            .pick(data, "estimated_cost.tool_calls", "Tool Calls", Kind::Count)
            .pick(data, "estimated_cost.tokens", "Tokens", Kind::Count)
            .pick(data, "estimated_cost.eta", "ETA", Kind::Text);
    }
    for warning in texts(&data["warnings"]) {
        out.warn(warning);
    }
}

fn show_correction(out: &Output, data: &Value) {
    out.panel(None, "Correction")
        .pick(data, "correction.mode", "Mode", Kind::Text)
        .pick(data, "correction.impact", "Impact", Kind::Text)
        .pick(data, "correction.chosen", "Decided Now", Kind::Text)
        .pick(data, "correction.new_decision", "New Decision", Kind::Id)
        .pick(data, "correction.corrects", "Corrects", Kind::Id)
        .pick(data, "correction.appended_after", "Appended After", Kind::Id)
        .pick(data, "correction.attempt", "Attempt", Kind::Count)
        .pick(data, "correction.correction_attempt_id", "Correction", Kind::Id);
    if !data["affected_subtree"].is_null() {
        out.panel(None, "Affected Subtree")
            .pick(data, "affected_subtree.decisions_invalidated", "Decisions Invalidated", Kind::Count)
            .pick(data, "affected_subtree.child_plans_rolled_back", "Child Plans Rolled Back", Kind::Count)
            .pick(data, "affected_subtree.artifacts_archived", "Artifacts Archived", Kind::Count)
            .pick(data, "affected_subtree.unaffected_decisions", "Unaffected Decisions", Kind::Count);
        out.panel(None, "Recompute").pick(data, "recompute.queued", "Queued", Kind::Text).pick(
            data,
            "recompute.eta",
            "ETA",
            Kind::Text,
        );
        bullets(&out.panel(None, "History"), texts(&data["history"]));
    }
    if !data["append_detail"].is_null() {
        out.panel(None, "Append Detail")
            .pick(
                data,
                "append_detail.original_decision_preserved",
                "Original Decision Preserved",
                Kind::Auto,
            )
            .pick(data, "append_detail.existing_artifacts_kept", "Existing Artifacts Kept", Kind::Auto)
            .pick(data, "append_detail.additional_work", "Additional Work", Kind::Text)
            .line(dim(text(&data["append_detail"], "note")));
        out.panel(None, "Queued")
            .pick(data, "queued.new_child", "New Child", Kind::Count)
            .pick(data, "queued.child_plan_id", "Child Plan", Kind::Id)
            .pick(data, "queued.eta", "ETA", Kind::Text);
    }
}

pub fn rollback(run: &Run, args: RollbackArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let checkpoint = args.checkpoint.or(args.checkpoint_flag).unwrap_or_default();
    let ask = |dry_run| Rollback { plan: args.plan.clone(), checkpoint: checkpoint.clone(), dry_run };
    if args.dry_run || !args.yes.yes {
        let preview = engine.call(ask(true))?;
        let data = json(&preview)?;
        out.set_data(data.clone());
        show_rollback(out, &data);
        if args.dry_run {
            out.ok("To roll back, remove --dry-run and add --yes");
            return Ok(());
        }
        let question =
            format!("Rollback plan {} to {}?", preview.plan_id, preview.rollback_summary.checkpoint);
        if !out.confirm(&question, false) {
            return Ok(());
        }
    }
    let since = follow::now(&engine)?;
    let done = engine.call(ask(false))?;
    let plan = done.plan_id;
    let mut data = json(&done)?;
    out.set_data(data.clone());
    if args.yes.yes {
        show_rollback(out, &data);
    }
    if args.detach {
        out.set_data(detached(data));
        out.hint("Next Steps", [format!("agents plan status {plan}")]);
        out.ok("Rollback recorded; the work is taken back in the background");
        return Ok(());
    }
    let standing = follow::until_pause(run, &engine, plan, since)?;
    refresh(&mut data, &standing)?;
    out.set_data(data.clone());
    let after = out.panel(None, "Post-Rollback State");
    after
        .pick(&data, "post_rollback_state.phase", "Phase", Kind::Text)
        .pick(&data, "post_rollback_state.state", "State", Kind::Text)
        .pick(&data, "post_rollback_state.checkpoints_remaining", "Checkpoints Remaining", Kind::Count);
    if let Some(redo) = &done.redo_checkpoint {
        after.row("Forward Again", id(format!("agents plan rollback {plan} {redo}")));
    }
    drop(after);
    conclude(run, &engine, &standing, "Rollback complete")
}

fn show_rollback(out: &Output, data: &Value) {
    out.panel(None, "Rollback Summary")
        .pick(data, "rollback_summary.plan", "Plan", Kind::Id)
        .pick(data, "rollback_summary.checkpoint", "Checkpoint", Kind::Id)
        .pick(data, "rollback_summary.label", "Label", Kind::Text)
        .pick(data, "rollback_summary.files_reverted", "Files Reverted", Kind::Count);
    let columns = vec![col("file", "File").kind(Kind::Path), col("action", "Action")];
    let table = out.table(None, "Changes Reverted", columns);
    for file in data["changes_reverted"].as_array().into_iter().flatten() {
        let tone = if text(file, "action") == "removed" { Tone::Bad } else { Tone::Good };
        table.row(Row::from(file).show("action", Styled::new(text(file, "action"), tone)));
    }
    drop(table);
    out.panel(None, "Impact")
        .pick(data, "impact.child_plans_invalidated", "Child Plans Invalidated", Kind::Count)
        .pick(data, "impact.sandbox", "Sandbox", Kind::Text)
        .pick(data, "impact.decisions_after_cp", "Decisions After CP", Kind::Text)
        .pick(data, "impact.tool_calls_after_cp", "Tool Calls After CP", Kind::Text)
        .pick(data, "impact.decisions_reinstated", "Decisions Reinstated", Kind::Count);
}
