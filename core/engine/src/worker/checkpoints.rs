//! Checkpoints around what a worker does, and edits that a person made in a sandbox meanwhile.

use agents_domain::Error;
use agents_domain::changes::{Change, ChangeKind};
use agents_domain::checkpoint::{CheckpointDiff, CheckpointKind, Trigger};
use agents_domain::correction::CheckpointMark;
use agents_domain::decision::{Approval, Decision};
use agents_domain::ids::{ChangeId, ResourceId};
use agents_domain::plan::{Phase, Plan};
use agents_domain::ports::actor::Observation;
use agents_domain::ports::language_servers::{FileEvent, FileEventKind};
use agents_domain::ports::store::{ActorRun, Writer};
use agents_sandbox::{TakenEdits, fault};
use serde_json::json;

use super::host::Host;
use super::requests::{set_commit, text_hunks};
use super::{Stop, Worker};
use crate::checkpoints::{self, Point, measure, triggered};
use crate::clock;
use crate::records::{self, Answer, emit};
use crate::rewind::keep_run;
use crate::sandboxes::{OpenSandbox, sandbox_error};

/// What is known of a write when its checkpoints are recorded.
pub(super) struct Around<'a> {
    pub resource_id: ResourceId,
    pub tool: &'a str,
    pub decision: &'a Decision,
    /// Where the sandbox was before the call, and is after it.
    pub before: &'a str,
    pub after: &'a str,
    /// What lies between the start of the decision's writes and now.
    pub diff: CheckpointDiff,
    /// What stood before the call.
    pub stood: CheckpointMark,
}

impl Worker<'_> {
    /// The checkpoints before and after a tool's writes, within the transaction that records them.
    pub(super) fn checkpoint_around(
        &self,
        w: &dyn Writer,
        plan: &Plan,
        write: Around<'_>,
    ) -> Result<(), Error> {
        let decision = write.decision;
        let point = |trigger: Trigger, commit, label, diff, stood| Point {
            resource_id: write.resource_id,
            kind: trigger.kind(),
            trigger: Some(trigger),
            decision: Some(decision.decision_id),
            tool: Some(write.tool),
            label,
            commit: Some(commit),
            diff,
            stood,
        };
        if triggered(self.engine, plan, Trigger::BeforeToolExecute) {
            let label = format!("Before: {}", decision.question);
            let nothing = CheckpointDiff { diff_based: write.before.to_owned(), ..CheckpointDiff::default() };
            let before = point(Trigger::BeforeToolExecute, write.before, label, nothing, Some(write.stood));
            checkpoints::record(self.engine, w, plan, before)?;
        }
        if triggered(self.engine, plan, Trigger::AfterToolExecute) {
            let after =
                point(Trigger::AfterToolExecute, write.after, decision.question.clone(), write.diff, None);
            checkpoints::record(self.engine, w, plan, after)?;
        }
        Ok(())
    }

    /// Closes a decision's group: one checkpoint for each sandbox written to under it.
    pub(super) fn checkpoint(
        &self,
        run: &mut ActorRun,
        key: &str,
        label: &str,
        decision: &Decision,
        sandboxes: &[OpenSandbox],
    ) -> Result<(), Stop> {
        let plan = self.plan()?;
        let mut next = run.clone();
        next.done += 1;
        next.observations.push(Observation::Checkpointed { decision: key.to_owned() });
        let starts = run.group_starts.get(key).cloned().unwrap_or_default();
        let measured: Vec<(ResourceId, CheckpointDiff)> = starts
            .iter()
            .filter(|_| checkpoints::enabled(self.engine, &plan))
            .filter_map(|(resource, start)| {
                let sandbox = sandboxes.iter().find(|s| s.resource_id == *resource)?;
                let now = plan.sandboxes.iter().find(|s| s.resource_id == *resource)?;
                Some((*resource, measure(sandbox, start, &now.commit)))
            })
            .collect();
        self.write(|w, plan| {
            for (resource_id, diff) in &measured {
                let point = Point {
                    resource_id: *resource_id,
                    kind: CheckpointKind::Decision,
                    trigger: None,
                    decision: Some(decision.decision_id),
                    tool: None,
                    label: label.to_owned(),
                    commit: None,
                    diff: diff.clone(),
                    stood: None,
                };
                checkpoints::record(self.engine, w, plan, point)?;
            }
            w.put_actor_run(&next)?;
            Ok(())
        })?;
        fault::point("worker.checkpoint-recorded");
        *run = next;
        Ok(())
    }

    /// Why a tool must not write: a person has edited one of its files since the last step.
    pub(super) fn edited_meanwhile(
        &self,
        paths: &[String],
        sandbox: &OpenSandbox,
    ) -> Result<Option<String>, Stop> {
        let edited = sandbox.worktree().edited_among(paths).map_err(sandbox_error)?;
        if edited.is_empty() {
            return Ok(None);
        }
        Ok(Some(format!("{} was edited in the sandbox by a person meanwhile", edited.join(", "))))
    }

    /// The same for a tool that may write anything.
    pub(super) fn edited_at_all(&self, sandbox: &OpenSandbox) -> Result<Option<String>, Stop> {
        let edited = sandbox.worktree().edited_paths().map_err(sandbox_error)?;
        let said = format!("{} was edited in the sandbox by a person meanwhile", edited.join(", "));
        Ok((!edited.is_empty()).then_some(said))
    }

    /// Takes what a person edited in the sandboxes into the plan: a commit, a decision that says so, change records, a
    /// checkpoint, and word to the actor. Without edits nothing happens.
    pub(super) async fn take_edits(
        &self,
        run: &mut ActorRun,
        host: &Host<'_>,
        sandboxes: &[OpenSandbox],
    ) -> Result<(), Stop> {
        let plan = self.plan()?;
        if plan.phase != Phase::Execute || plan.read_only {
            return Ok(());
        }
        for sandbox in sandboxes.iter().filter(|s| !s.read_only) {
            let Some(taken) = sandbox.worktree().take_edits().map_err(sandbox_error)? else { continue };
            fault::point("worker.edits-taken");
            self.record_edits(run, sandbox, &taken)?;
            let events: Vec<FileEvent> = taken
                .edits
                .iter()
                .map(|edit| FileEvent {
                    path: edit.path.clone(),
                    kind: match edit.kind {
                        ChangeKind::Added => FileEventKind::Created,
                        ChangeKind::Deleted => FileEventKind::Deleted,
                        ChangeKind::Modified | ChangeKind::Renamed => FileEventKind::Changed,
                    },
                })
                .collect();
            if let Some(workspace) = host.workspaces.iter().find(|w| w.resource_id == sandbox.resource_id) {
                workspace.languages.files_changed(&events).await;
            }
        }
        Ok(())
    }

    fn record_edits(
        &self,
        run: &mut ActorRun,
        sandbox: &OpenSandbox,
        taken: &TakenEdits,
    ) -> Result<(), Stop> {
        let store = &self.engine.store;
        let paths: Vec<String> = taken.edits.iter().map(|edit| edit.path.clone()).collect();
        let words = format!("Keep what was edited by hand: {}", paths.join(", "));
        let context_ref = store.put_blob(words.as_bytes())?;
        let state_ref = keep_run(self.engine, run)?;
        let mut sides = Vec::with_capacity(taken.edits.len());
        for edit in &taken.edits {
            let keep =
                |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| store.put_blob(bytes)).transpose();
            sides.push((keep(&edit.before)?, keep(&edit.after)?));
        }
        let (from, to) = (taken.from.to_string(), taken.commit.to_string());
        let diff = measure(sandbox, &from, &to);
        let mut next = run.clone();
        next.observations
            .push(Observation::FilesEdited { resource: sandbox.resource_id, paths: paths.clone() });
        self.write(|w, plan| {
            let answer = Answer {
                target: None,
                chosen: words.clone(),
                guidance: &words,
                context_ref: &context_ref,
                state_ref: &state_ref,
            };
            let decision = Decision {
                question: "What becomes of edits that a person made in the sandbox?".to_owned(),
                rationale: "They were made while the plan was worked on, and no tool of the plan made them"
                    .to_owned(),
                approval: Some(Approval::System),
                ..records::intervention(w, plan, answer)?
            };
            w.insert_decision(&decision)?;
            records::emit_decision(self.engine, w, plan, &decision)?;
            for (edit, (before, after)) in taken.edits.iter().zip(&sides) {
                w.insert_change(&Change {
                    change_id: ChangeId::from_ulid(clock::ulid()),
                    plan_id: self.id,
                    decision_id: decision.decision_id,
                    resource_id: sandbox.resource_id,
                    path: edit.path.clone(),
                    old_path: edit.old_path.clone(),
                    kind: edit.kind,
                    before_hash: before.clone(),
                    after_hash: after.clone(),
                    hunks: text_hunks(edit.before.as_deref(), edit.after.as_deref()),
                    tool: "person".to_owned(),
                    created_at: clock::now(),
                })?;
            }
            w.add_impact(decision.decision_id, &paths, &[])?;
            set_commit(plan, sandbox.resource_id, &to);
            if checkpoints::enabled(self.engine, plan) {
                let point = Point {
                    resource_id: sandbox.resource_id,
                    kind: CheckpointKind::Manual,
                    trigger: None,
                    decision: Some(decision.decision_id),
                    tool: None,
                    label: words.clone(),
                    commit: None,
                    diff: diff.clone(),
                    stood: None,
                };
                checkpoints::record(self.engine, w, plan, point)?;
            }
            records::touch(w, plan)?;
            let facts = json!({
                "resource_id": sandbox.resource_id, "paths": paths, "decision_id": decision.decision_id,
                "left_out": taken.left_out,
            });
            emit(self.engine, w, plan, "sandbox.edited", facts)?;
            w.put_actor_run(&next)?;
            Ok(())
        })?;
        fault::point("worker.edits-recorded");
        *run = next;
        Ok(())
    }
}
