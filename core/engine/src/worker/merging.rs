//! Taking a child plan's work into its parent's sandbox, with the decisions behind every line.

use agents_domain::changes::{Change, ChangeKind};
use agents_domain::checkpoint::{CheckpointDiff, CheckpointKind};
use agents_domain::decision::{Alternative, Decision, DecisionType};
use agents_domain::ids::{ChangeId, DecisionId, PlanId, ResourceId};
use agents_domain::plan::children::{MergeConflict, Next, Order, Spawn, Stage, Standing};
use agents_domain::plan::{Plan, SandboxRef, State};
use agents_domain::ports::actor::DecisionDraft;
use agents_domain::provenance::{carry, hunks, share_out};
use agents_sandbox::{ChangedPath, Repository, changed_paths, fault};
use serde_json::json;

use super::children::label;
use super::family::{Family, Member};
use super::requests::{sandbox_of, set_commit};
use super::{Stop, Worker};
use crate::checkpoints::Point;
use crate::records::{self, Evidence, emit};
use crate::sandboxes::{self, commit_id, sandbox_error};
use crate::{blame, checkpoints, clock};

/// The tool that changes of a merge are recorded under.
pub(crate) const MERGE: &str = "builtin/merge-child-plan";

/// What keys of questions about conflicts begin with; the child's id follows.
pub(crate) const MERGE_KEY: &str = "merge/";

/// The answers to a conflict; anything else means the same as the last.
const ANSWERS: [&str; 3] =
    ["take the child plan's version", "keep what is there", "resolved by hand in the sandbox"];

/// A resource's commits before and after a merge.
type Step = (ResourceId, String, String);

impl Worker<'_> {
    /// The first child of the waves that are over whose work the plan does not have yet.
    pub(super) fn first_to_take_in(
        &self,
        family: &Family,
        order: &Order,
        next: &Next,
    ) -> Result<Option<usize>, Stop> {
        for at in order.waves.iter().take(next.finished_waves).flatten() {
            let member = &family.members[*at];
            if family.standing(*at) != Standing::Done {
                continue;
            }
            let taken = match &member.spawn.stage {
                Stage::Merged { commits } => {
                    let child = self.child(member)?;
                    // A child that was cleaned up, or has not been done again since.
                    child.state == State::Applied || commits_of(&child) == *commits
                }
                _ => false,
            };
            if !taken {
                return Ok(Some(*at));
            }
        }
        Ok(None)
    }

    fn child(&self, member: &Member) -> Result<Plan, Stop> {
        let id =
            member.spawn.child.ok_or_else(|| agents_domain::Error::internal("a spawn without its plan"))?;
        Ok(self.engine.view(|r| r.plan(id))?.ok_or_else(|| crate::lookup::missing_plan(id))?)
    }

    /// Merges a finished child, or takes up what a person says about its conflicts.
    pub(super) fn take_in(&self, plan: &Plan, member: &Member) -> Result<(), Stop> {
        let child = self.child(member)?;
        if let Stage::Conflicted { conflicts, before } = &member.spawn.stage {
            return self.resolve(plan, member, &child, conflicts, before);
        }
        let sandboxes = self.open_sandboxes(plan)?;
        let plan = self.plan()?;
        let text = format!("Child plan {}: {}", child.plan_id, label(member));
        let (mut steps, mut conflicts): (Vec<Step>, Vec<MergeConflict>) = (Vec::new(), Vec::new());
        for theirs in &child.sandboxes {
            let resource_id = theirs.resource_id;
            let ours = sandbox_ref(&plan, resource_id)?;
            // What is in already is where the rest begins.
            let known = match &member.spawn.stage {
                Stage::Merged { commits } => {
                    commits.iter().find(|(id, _)| *id == resource_id).map(|(_, c)| c)
                }
                _ => None,
            };
            let merged = agents_sandbox::merge(
                &repository(ours)?,
                &commit_id(known.unwrap_or(&theirs.base_commit))?,
                &commit_id(&theirs.commit)?,
                &commit_id(&ours.commit)?,
                &text,
            )
            .map_err(sandbox_error)?;
            steps.push((resource_id, ours.commit.clone(), merged.commit.to_string()));
            conflicts.extend(merged.conflicts.into_iter().map(|c| MergeConflict {
                resource_id,
                path: c.path,
                kind: c.kind,
            }));
        }
        for (resource, before, after) in &steps {
            if before != after {
                sandbox_of(&sandboxes, *resource)?.restore(after)?;
            }
        }
        fault::point("worker.child-merged");
        if conflicts.is_empty() {
            return self.record_merge(&plan, member, &child, member.decision.decision_id, &steps);
        }
        // What a person decided about this child stands, also when it is taken in again.
        let known = self.engine.view(|r| r.decisions(self.id))?;
        let answered = known.iter().any(|d| answers(d, child.plan_id) && !d.pending);
        let asked = match answered {
            true => None,
            false => Some(self.conflict_question(member, &child, &conflicts)?),
        };
        self.write(|w, plan| {
            for (resource, _, after) in &steps {
                set_commit(plan, *resource, after);
            }
            let before = steps.iter().map(|(resource, before, _)| (*resource, before.clone())).collect();
            let stage = Stage::Conflicted { conflicts: conflicts.clone(), before };
            w.put_spawn(&Spawn { stage, ..member.spawn.clone() })?;
            let facts = json!({ "child_plan_id": child.plan_id, "conflicts": conflicts });
            emit(self.engine, w, plan, "plan.child_conflict", facts)?;
            match &asked {
                Some(asked) => self.ask_conflict(w, plan, asked),
                None => Ok(records::touch(w, plan)?),
            }
        })?;
        if answered { Ok(()) } else { self.await_decision() }
    }

    /// The question what shall stand, as a decision of the plan.
    fn conflict_question(
        &self,
        member: &Member,
        child: &Plan,
        conflicts: &[MergeConflict],
    ) -> Result<(DecisionDraft, Evidence), Stop> {
        let known = self.engine.view(|r| r.decisions(self.id))?;
        let prefix = conflict_key(child.plan_id);
        let asked = known.iter().filter(|d| d.key.as_ref().is_some_and(|k| k.starts_with(&prefix))).count();
        let files: Vec<&str> = conflicts.iter().map(|c| c.path.as_str()).collect();
        let context = json!({ "child_plan_id": child.plan_id, "conflicts": conflicts });
        let bytes =
            serde_json::to_vec(&context).map_err(|e| agents_domain::Error::internal(e.to_string()))?;
        let evidence = Evidence {
            context_ref: self.engine.store.put_blob(&bytes)?,
            state_ref: self.engine.store.put_blob(b"null")?,
        };
        let draft = DecisionDraft {
            key: format!("{prefix}{asked}"),
            decision_type: DecisionType::ImplementationChoice,
            parent: member.decision.key.clone(),
            question: format!(
                "Child plan {} and what is in the sandbox changed the same lines of {}: what shall stand?",
                child.plan_id,
                files.join(", ")
            ),
            chosen: 0,
            alternatives: ANSWERS
                .iter()
                .map(|option| Alternative { option: (*option).to_owned(), description: None })
                .collect(),
            confidence: None,
            rationale: "Both sides changed the same place; the files in the sandbox hold conflict markers"
                .to_owned(),
            reasoning: None,
            resources: Vec::new(),
            depends_on: Vec::new(),
            context,
            spawn: None,
        };
        Ok((draft, evidence))
    }

    fn ask_conflict(
        &self,
        w: &dyn agents_domain::ports::store::Writer,
        plan: &mut Plan,
        (draft, evidence): &(DecisionDraft, Evidence),
    ) -> Result<(), Stop> {
        let known = w.decisions(self.id)?;
        let (decision, computed) = records::decision_of(w, plan, draft, evidence, &known)?;
        let decision = Decision { pending: true, approval: None, ..decision };
        w.insert_decision(&decision)?;
        w.insert_confidence(decision.decision_id, &computed)?;
        records::emit_decision(self.engine, w, plan, &decision)?;
        records::touch(w, plan)?;
        Ok(())
    }

    fn resolve(
        &self,
        plan: &Plan,
        member: &Member,
        child: &Plan,
        conflicts: &[MergeConflict],
        before: &[(ResourceId, String)],
    ) -> Result<(), Stop> {
        let decisions = self.engine.view(|r| r.decisions(self.id))?;
        let Some(answer) = decisions.iter().rfind(|d| answers(d, child.plan_id)) else {
            return Err(agents_domain::Error::internal("a conflict that nobody was asked about").into());
        };
        if answer.pending {
            return self.await_decision();
        }
        let by_hand = !ANSWERS[..2].contains(&answer.chosen_option.as_str());
        let theirs = answer.chosen_option == ANSWERS[0];
        let mut steps: Vec<Step> = Vec::new();
        let opened = if by_hand { Vec::new() } else { self.open_sandboxes(plan)? };
        for (resource, old) in before {
            let paths: Vec<String> =
                conflicts.iter().filter(|c| c.resource_id == *resource).map(|c| c.path.clone()).collect();
            let ours = sandbox_ref(plan, *resource)?;
            if paths.is_empty() {
                steps.push((*resource, old.clone(), ours.commit.clone()));
                continue;
            }
            let repository = repository(ours)?;
            let commit = if by_hand {
                let commit = sandboxes::hand_edits(ours, &paths)?;
                let left = |path: &&String| {
                    let bytes =
                        commit_id(&commit).ok().and_then(|c| repository.file_at(&c, path).ok()).flatten();
                    bytes.is_some_and(|b| agents_sandbox::has_markers(&String::from_utf8_lossy(&b)))
                };
                if let Some(path) = paths.iter().find(left) {
                    return self.ask_again(member, child, conflicts, path);
                }
                commit
            } else {
                let sandbox = sandbox_of(&opened, *resource)?;
                let side = if theirs { sandbox_ref(child, *resource)?.commit.clone() } else { old.clone() };
                for path in &paths {
                    let marked = sandbox.read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                    let bytes = match marked.filter(|text| agents_sandbox::has_markers(text)) {
                        Some(text) => Some(agents_sandbox::take_side(&text, theirs).into_bytes()),
                        None => repository.file_at(&commit_id(&side)?, path).map_err(sandbox_error)?,
                    };
                    sandbox.put(path, bytes.as_deref())?;
                }
                sandbox
                    .checkpoint(&format!("Conflicts with child plan {} resolved", child.plan_id), &paths)?
            };
            steps.push((*resource, old.clone(), commit));
        }
        self.record_merge(plan, member, child, answer.decision_id, &steps)
    }

    /// Asks once more: markers are still there.
    fn ask_again(
        &self,
        member: &Member,
        child: &Plan,
        conflicts: &[MergeConflict],
        path: &str,
    ) -> Result<(), Stop> {
        let (mut draft, evidence) = self.conflict_question(member, child, conflicts)?;
        draft.question = format!("{path} still has conflict markers. {}", draft.question);
        let asked = (draft, evidence);
        self.write(|w, plan| self.ask_conflict(w, plan, &asked))?;
        self.await_decision()
    }

    /// Records what a merge did, shared out among the decisions behind it: the child's, and `other` for what is nobody
    /// else's.
    fn record_merge(
        &self,
        plan: &Plan,
        member: &Member,
        child: &Plan,
        other: DecisionId,
        steps: &[Step],
    ) -> Result<(), Stop> {
        let mut changes = Vec::new();
        for (resource, before, after) in steps {
            changes.extend(self.merged_changes(plan, child, other, *resource, before, after)?);
        }
        let paths: std::collections::BTreeSet<String> = changes.iter().map(|c| c.path.clone()).collect();
        let paths: Vec<String> = paths.into_iter().collect();
        self.write(|w, plan| {
            for change in &changes {
                w.insert_change(change)?;
            }
            for (resource, before, after) in steps {
                set_commit(plan, *resource, after);
                if before != after {
                    let diff = CheckpointDiff { diff_based: before.clone(), ..CheckpointDiff::default() };
                    let point = Point {
                        resource_id: *resource,
                        kind: CheckpointKind::PostStep,
                        trigger: None,
                        decision: Some(member.decision.decision_id),
                        tool: Some(MERGE),
                        label: format!("With child plan: {}", label(member)),
                        commit: Some(after),
                        diff,
                        stood: None,
                    };
                    checkpoints::record(self.engine, w, plan, point)?;
                }
            }
            w.add_impact(member.decision.decision_id, &paths, &[])?;
            let stage = Stage::Merged { commits: commits_of(child) };
            w.put_spawn(&Spawn { stage, ..member.spawn.clone() })?;
            let facts = json!({ "child_plan_id": child.plan_id, "files": paths });
            emit(self.engine, w, plan, "plan.child_merged", facts)?;
            records::touch(w, plan)?;
            Ok(())
        })?;
        fault::point("worker.child-recorded");
        Ok(())
    }

    fn merged_changes(
        &self,
        plan: &Plan,
        child: &Plan,
        other: DecisionId,
        resource_id: ResourceId,
        before: &str,
        after: &str,
    ) -> Result<Vec<Change>, Stop> {
        if before == after {
            return Ok(Vec::new());
        }
        let repository = repository(sandbox_ref(plan, resource_id)?)?;
        let [before, after, theirs] =
            [commit_id(before)?, commit_id(after)?, commit_id(&sandbox_ref(child, resource_id)?.commit)?];
        let own = self.engine.view(|r| r.changes(child.plan_id))?;
        let behind = blame::segments_of(&own);
        let mut changes = Vec::new();
        let changed = changed_paths(&repository, &before, &after).map_err(sandbox_error)?;
        let files = |commit, paths: Vec<&String>| repository.files_at(commit, &paths).map_err(sandbox_error);
        let were = files(&before, changed.iter().map(|c| c.old_path.as_ref().unwrap_or(&c.path)).collect())?;
        let are = files(&after, changed.iter().map(|c| &c.path).collect())?;
        let left = files(&theirs, changed.iter().map(|c| &c.path).collect())?;
        for ChangedPath { path, old_path, kind } in changed {
            let old = were.get(old_path.as_ref().unwrap_or(&path)).map(|file| file.bytes.clone());
            let new = are.get(&path).map(|file| file.bytes.clone());
            let last = own.iter().rfind(|c| c.resource_id == resource_id && c.path == path);
            let by = last.map_or(other, |c| c.decision_id);
            let text = |bytes: &Option<Vec<u8>>| {
                std::str::from_utf8(bytes.as_deref().unwrap_or_default()).ok().map(str::to_owned)
            };
            let change = |decision_id, before_hash, after_hash, hunks, first: bool| Change {
                change_id: ChangeId::from_ulid(clock::ulid()),
                plan_id: self.id,
                decision_id,
                resource_id,
                path: path.clone(),
                old_path: old_path.clone().filter(|_| first),
                kind: if first { kind } else { ChangeKind::Modified },
                before_hash,
                after_hash,
                hunks,
                tool: MERGE.to_owned(),
                created_at: clock::now(),
            };
            let put =
                |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|b| self.engine.store.put_blob(b)).transpose();
            let mut hash = put(&old)?;
            let shares = match (text(&old), text(&new), &new) {
                (Some(old), Some(text), Some(_)) => {
                    let segments = behind.get(&(resource_id, path.clone())).cloned().unwrap_or_default();
                    let as_left = left.get(&path).and_then(|file| std::str::from_utf8(&file.bytes).ok());
                    let as_left = as_left.unwrap_or_default();
                    share_out(&old, &text, &carry(&segments, &hunks(as_left, &text)), other)
                }
                _ => Vec::new(),
            };
            if shares.is_empty() {
                let lines = match (text(&old), text(&new)) {
                    (Some(old), Some(new)) => hunks(&old, &new),
                    _ => Vec::new(),
                };
                changes.push(change(by, hash, put(&new)?, lines, true));
                continue;
            }
            for (at, share) in shares.into_iter().enumerate() {
                let next = Some(self.engine.store.put_blob(share.text.as_bytes())?);
                changes.push(change(share.decision_id, hash, next.clone(), share.hunks, at == 0));
                hash = next;
            }
        }
        Ok(changes)
    }
}

/// Whether a decision in force says what shall stand of a child's conflicts.
fn answers(decision: &Decision, child: PlanId) -> bool {
    let prefix = conflict_key(child);
    decision.superseded_by.is_none() && decision.key.as_ref().is_some_and(|k| k.starts_with(&prefix))
}

/// What keys of questions about a child's conflicts begin with.
fn conflict_key(child: PlanId) -> String {
    format!("{MERGE_KEY}{child}/")
}

fn commits_of(plan: &Plan) -> Vec<(ResourceId, String)> {
    plan.sandboxes.iter().map(|s| (s.resource_id, s.commit.clone())).collect()
}

fn sandbox_ref(plan: &Plan, resource: ResourceId) -> Result<&SandboxRef, Stop> {
    plan.sandboxes.iter().find(|s| s.resource_id == resource).ok_or_else(|| {
        agents_domain::Error::internal(format!("plan {} has no sandbox of {resource}", plan.plan_id)).into()
    })
}

fn repository(sandbox: &SandboxRef) -> Result<Repository, Stop> {
    Ok(Repository::reopen(sandbox.place()).map_err(sandbox_error)?)
}
