//! Bringing a plan's changes to the real resources: all are checked, then each is applied under a journal.

use std::collections::HashSet;
use std::path::PathBuf;

use agents_domain::Result;
use agents_domain::changes::Change;
use agents_domain::decision::Decision;
use agents_domain::ids::{PlanId, ResourceId};
use agents_domain::plan::machine::Event;
use agents_domain::plan::{AppliedResource, ApplyMode, Phase, Plan, PlanFailure, SandboxRef};
use agents_domain::ports::store::{Reader, StoreResult};
use agents_sandbox::apply::{self, Applied, ApplyError, ApplyPlan, ApplyRefusal, Resumed};
use agents_sandbox::{CommitId, DECISION_TRAILER, PLAN_TRAILER, Repository, Snapshot, fault};
use serde_json::json;

use super::{Stop, Worker};
use crate::Engine;
use crate::blame::{Lineage, strategy_behind};
use crate::children;
use crate::notes;
use crate::operations::plan::apply_refused;
use crate::records::{self, emit};
use crate::sandboxes::{self, commit_id, sandbox_error, strategy_of};

/// Characters of a commit's first line.
const SUBJECT: usize = 72;

/// Decisions named in a commit's trailers.
const TRAILERS: usize = 200;

/// One sandbox with its checkout and the journal of its apply.
struct Target<'p> {
    sandbox: &'p SandboxRef,
    repository: Repository,
    journal: PathBuf,
}

impl<'p> Target<'p> {
    /// Those that the plan has changed; of the others there is nothing to apply, so nothing of them can be in the way.
    fn all(engine: &Engine, plan: &'p Plan) -> Result<Vec<Self>> {
        let open = |sandbox: &'p SandboxRef| {
            let repository = Repository::reopen(sandbox.place()).map_err(sandbox_error)?;
            let journal = engine
                .data_dir
                .join("journals")
                .join(plan.plan_id.to_string())
                .join(sandbox.resource_id.to_string());
            Ok(Self { sandbox, repository, journal })
        };
        plan.sandboxes.iter().filter(|sandbox| sandbox.commit != sandbox.base_commit).map(open).collect()
    }

    fn preflight(&self, plan: &Plan, mode: ApplyMode) -> std::result::Result<ApplyPlan, ApplyError> {
        let mode = match mode {
            ApplyMode::Commit => apply::ApplyMode::Commit,
            ApplyMode::NoCommit => apply::ApplyMode::NoCommit,
        };
        let id = |text: &str| {
            commit_id(text).map_err(|_| agents_sandbox::SandboxError::Damaged {
                path: PathBuf::from(&self.sandbox.path),
                detail: format!("`{text}` is no commit"),
            })
        };
        let snapshot = Snapshot {
            plan: plan.plan_id,
            commit: id(&self.sandbox.base_commit)?,
            head: id(&self.sandbox.head_commit)?,
            branch: self.sandbox.branch.clone(),
            untouchable: Vec::new(),
            submodules: Vec::new(),
        };
        apply::preflight(&self.repository, &snapshot, &id(&self.sandbox.commit)?, mode)
    }
}

/// Refuses what a person can clear the way for; changes nothing. What constrains the plan is left to the worker.
pub(crate) fn preflight(engine: &Engine, plan: &Plan, mode: ApplyMode) -> Result<()> {
    for target in Target::all(engine, plan)? {
        if target.journal.exists() {
            // An apply was cut off; the worker finishes or undoes it.
            continue;
        }
        match target.preflight(plan, mode) {
            Ok(_) => {}
            Err(ApplyError::Refusal(refusal)) if refusal.constrains() => {}
            Err(ApplyError::Refusal(refusal)) => {
                let files = match &refusal {
                    ApplyRefusal::Refused { files } => files.iter().map(|f| f.path.clone()).collect(),
                    _ => Vec::new(),
                };
                let message = format!("{} ({})", refusal, target.sandbox.original);
                return Err(apply_refused(plan, message, &files));
            }
            Err(ApplyError::Sandbox(error)) => return Err(sandbox_error(error)),
            Err(other) => return Err(agents_domain::Error::invalid_state(other.to_string())),
        }
    }
    Ok(())
}

/// Refuses to leave a plan whose apply was cut off: what it changed is finished or undone first.
pub(crate) fn refuse_half_made(engine: &Engine, plan: &Plan) -> Result<()> {
    let cut_off =
        Target::all(engine, plan).is_ok_and(|targets| targets.iter().any(|t| apply::in_progress(&t.journal)));
    if !cut_off {
        return Ok(());
    }
    Err(agents_domain::Error::invalid_state(format!(
        "an apply of plan {} was cut off and has to be finished or undone first",
        plan.plan_id
    ))
    .suggest(format!("agents plan apply {}", plan.plan_id)))
}

impl Target<'_> {
    /// What is told of an apply: the commits of a plain folder are nobody's business.
    fn outcome(&self, applied: Applied) -> (ResourceId, Applied) {
        let told = match self.repository.is_folder() {
            true => Applied { commit: None, branch: None, ..applied },
            false => applied,
        };
        (self.sandbox.resource_id, told)
    }
}

impl Worker<'_> {
    /// Applies every sandbox, or none where that can be had, and records what was done.
    pub(super) fn run_apply(&self, plan: &Plan) -> std::result::Result<(), Stop> {
        let targets = Target::all(self.engine, plan)?;
        let mode = plan.apply_mode.unwrap_or_default();
        let mut done: Vec<(ResourceId, Applied)> = Vec::new();
        let mut open: Vec<&Target> = Vec::new();
        for target in &targets {
            if plan.applied.iter().any(|a| a.resource_id == target.sandbox.resource_id) {
                continue;
            }
            match apply::resume_or_undo(&target.journal) {
                Ok(Resumed::Finished(applied)) => done.push(target.outcome(applied)),
                Ok(Resumed::Undone { reason, .. }) => {
                    self.progress(
                        plan,
                        &format!("An apply that was cut off was taken back: {reason}"),
                        None,
                        None,
                    );
                    open.push(target);
                }
                Ok(Resumed::Nothing) => open.push(target),
                Err(error) => return self.stopped(plan, error),
            }
        }
        if done.is_empty() && plan.applied.is_empty() && self.constrained_by_invariant(plan)? {
            return Ok(());
        }
        // All are checked before the first is changed.
        let mut checked = Vec::with_capacity(open.len());
        for target in open {
            match target.preflight(plan, mode) {
                Ok(ready) => checked.push((target, ready)),
                Err(error) => return self.stopped(plan, error),
            }
        }
        let (decisions, changes) =
            self.engine.view(|r| Ok((with_children(r, self.id)?, r.changes(self.id)?)))?;
        let (message, trailers) = (commit_message(plan), trailers(plan, &decisions, &changes));
        for (target, ready) in &checked {
            let note = |commit: &CommitId| {
                if target.repository.is_folder() {
                    return None;
                }
                let resource = target.sandbox.resource_id;
                let note = notes::note_of(plan, &decisions, &changes, resource, &target.repository, commit);
                note.unwrap_or_else(|error| {
                    tracing::warn!(plan = %self.id, %error, "the decisions behind a commit were not noted");
                    None
                })
            };
            match apply::run_noted(&target.repository, ready, &target.journal, &message, &trailers, &note) {
                Ok(applied) => done.push(target.outcome(applied)),
                Err(error) => {
                    self.take_back(plan, &targets, &done)?;
                    return self.stopped(plan, error);
                }
            }
        }
        tracing::info!(resources = done.len(), "the changes are applied");
        fault::point("worker.apply-done");
        self.record_applied(&done)?;
        for target in &targets {
            if let Err(error) = apply::forget(&target.journal) {
                tracing::warn!(plan = %self.id, %error, "the journal of a finished apply was not removed");
            }
        }
        let journals = self.engine.data_dir.join("journals").join(self.id.to_string());
        let _ = std::fs::remove_dir(journals);
        if self.engine.config.text("sandbox.cleanup", None) != "manual" {
            sandboxes::clean_up(plan);
            children::clean_up(self.engine, plan.plan_id)?;
        }
        Ok(())
    }

    /// Takes back what was applied before another resource failed; what cannot be taken back is recorded as applied.
    fn take_back(
        &self,
        plan: &Plan,
        targets: &[Target<'_>],
        done: &[(ResourceId, Applied)],
    ) -> std::result::Result<(), Stop> {
        let mut kept = Vec::new();
        for (resource, applied) in done {
            let Some(target) = targets.iter().find(|t| t.sandbox.resource_id == *resource) else { continue };
            if let Err(error) = apply::undo(&target.journal) {
                let label = format!("{} stays applied: {error}", target.sandbox.original);
                self.progress(plan, &label, None, None);
                kept.push((*resource, applied.clone()));
            }
        }
        if kept.is_empty() {
            return Ok(());
        }
        self.write(|w, plan| {
            plan.applied.extend(kept.iter().map(applied_resource));
            records::touch(w, plan)?;
            Ok(())
        })
    }

    fn record_applied(&self, done: &[(ResourceId, Applied)]) -> std::result::Result<(), Stop> {
        self.write(|w, plan| {
            plan.applied.extend(done.iter().map(applied_resource));
            for (resource, applied) in done {
                let facts = json!({
                    "resource_id": resource, "strategy": strategy_of(plan, *resource), "commit": applied.commit,
                    "branch": applied.branch, "new_branch": applied.new_branch, "resumed": applied.resumed,
                    "left_alone": applied.left_alone, "note_problem": applied.note_problem,
                });
                emit(self.engine, w, plan, "sandbox.committed", facts)?;
            }
            self.advance(w, plan, &Event::ApplyCommitted)?;
            crate::checkpoints::prune(self.engine, w, plan)?;
            children::applied(self.engine, w, plan)?;
            let took = plan.phase_times.get(&Phase::Apply).map(|t| plan.updated_at.millis_since(t.started));
            let facts = json!({
                "why": plan.description, "project_names": plan.projects,
                "files_changed": plan.applied.iter().map(|a| a.files).sum::<u32>(),
                "lines_added": plan.applied.iter().map(|a| a.insertions).sum::<u32>(),
                "lines_removed": plan.applied.iter().map(|a| a.deletions).sum::<u32>(),
                "resources_modified": plan.applied.iter().map(|a| a.resource_id).collect::<Vec<_>>(),
                "applied": plan.applied, "apply_duration_ms": took,
            });
            records::audit(self.engine, w, plan, "plan_applied", facts)?;
            Ok(())
        })
    }

    /// Puts what stopped an apply into the plan: constrained when the changes do not fit, else failed.
    fn stopped(&self, plan: &Plan, error: ApplyError) -> std::result::Result<(), Stop> {
        let (constrains, hint) = match &error {
            ApplyError::Refusal(refusal) => (refusal.constrains(), refusal.hint().to_owned()),
            _ => (false, format!("agents plan apply {}", plan.plan_id)),
        };
        let failure = PlanFailure {
            message: error.to_string(),
            category: if constrains { "conflict" } else { "git" }.to_owned(),
            phase: Phase::Apply,
            tool: None,
            step: Some("apply".to_owned()),
            recoverable: !constrains,
            retries: 0,
            hints: vec![hint],
        };
        if !constrains {
            return Err(Stop::Failed(failure));
        }
        self.write(|w, plan| {
            let effects = self.advance(w, plan, &Event::ApplyConstrained(failure.clone()))?;
            super::failing::record(w, plan, None, &failure, super::failing::outcome_of(plan, &effects))?;
            Ok(())
        })
    }
}

fn applied_resource((resource_id, applied): &(ResourceId, Applied)) -> AppliedResource {
    AppliedResource {
        resource_id: *resource_id,
        commit: applied.commit.as_ref().map(ToString::to_string),
        branch: applied.branch.clone(),
        files: u32::try_from(applied.files.len()).unwrap_or(u32::MAX),
        insertions: applied.files.iter().map(|f| f.insertions).sum(),
        deletions: applied.files.iter().map(|f| f.deletions).sum(),
    }
}

/// A subject from what was asked, and what came of it.
fn commit_message(plan: &Plan) -> String {
    let asked = plan.description.lines().find(|l| !l.trim().is_empty()).unwrap_or("Changes of a plan").trim();
    let subject = if asked.chars().count() > SUBJECT {
        let cut: String = asked.chars().take(SUBJECT - 3).collect();
        format!("{}...", cut.trim_end())
    } else {
        asked.to_owned()
    };
    let Some(summary) = plan.summaries.get(&Phase::Execute) else { return subject };
    let mut body = vec![summary.headline.clone()];
    body.extend(summary.lines.iter().cloned());
    format!("{subject}\n\n{}", body.join("\n"))
}

/// The decisions of a plan and of those below it.
fn with_children(r: &dyn Reader, plan: PlanId) -> StoreResult<Vec<Decision>> {
    let mut decisions = r.decisions(plan)?;
    for child in r.child_rows(plan)? {
        decisions.extend(with_children(r, child.plan_id)?);
    }
    Ok(decisions)
}

/// The plan, and the decisions behind the changes that still stand.
fn trailers(plan: &Plan, decisions: &[Decision], changes: &[Change]) -> Vec<(String, String)> {
    let by_id = decisions.iter().map(|d| (d.decision_id, d.clone())).collect();
    let known = Lineage::of(&by_id);
    let behind: HashSet<_> = changes.iter().map(|c| c.decision_id).collect();
    let mut trailers = vec![(PLAN_TRAILER.to_owned(), plan.plan_id.to_string())];
    for decision in decisions.iter().filter(|d| behind.contains(&d.decision_id)).take(TRAILERS) {
        let chosen =
            strategy_behind(decision, &known).map_or_else(|| decision.chosen_option.clone(), |s| s.chosen);
        let chosen = chosen.lines().next().unwrap_or_default();
        trailers.push((DECISION_TRAILER.to_owned(), format!("{} {chosen}", decision.decision_id)));
    }
    trailers
}
