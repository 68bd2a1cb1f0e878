//! The end of Execute: validations are run on the sandboxes, what fails is given to the actor to fix, and run again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agents_domain::plan::machine::{Context, Event};
use agents_domain::plan::{Phase, Plan, PlanFailure};
use agents_domain::ports::actor::ActorHost;
use agents_domain::ports::store::ActorRun;
use agents_domain::validation::{Attachment, Run, ValidationOutcome, Verdict};
use agents_sandbox::fault;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::json;
use tokio::sync::Semaphore;

use super::host::Host;
use super::{Stop, Worker};
use crate::clock;
use crate::records::{self, emit};
use crate::sandboxes::OpenSandbox;
use crate::validations::{self, Baseline, Place, Task};

/// Validations that run at the same time.
const AT_ONCE: usize = 4;

/// How often it is looked whether the plan was cancelled.
const LOOK: Duration = Duration::from_millis(250);

/// Names of folders of caches, which a validation may leave behind; they are taken away all the same.
const CACHES: &[&str] = &["__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"];

impl Worker<'_> {
    /// Asks the language servers what they say before the first edit, when a validation will compare with it.
    pub(super) async fn take_baseline(&self, host: &Host<'_>, sandboxes: &[OpenSandbox]) -> Result<(), Stop> {
        let plan = self.plan()?;
        let untouched = plan.sandboxes.iter().all(|s| s.commit == s.base_commit);
        if plan.phase != Phase::Execute || plan.validations.baseline_ref.is_some() || !untouched {
            return Ok(());
        }
        let wanted: Vec<_> = validations::tasks(self.engine, &plan)?
            .into_iter()
            .filter(Task::needs_baseline)
            .map(|task| task.attachment.resource_id)
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        self.progress(&plan, "Asking the language servers what they say before the first edit", None, None);
        let mut baseline = Baseline::new();
        for sandbox in sandboxes.iter().filter(|s| wanted.contains(&s.resource_id)) {
            let Some(workspace) = host.workspaces.iter().find(|w| w.resource_id == sandbox.resource_id)
            else {
                continue;
            };
            let files = sandbox.files()?.into_iter().map(|file| file.path).collect();
            let survey = validations::diagnostics::survey(&*workspace.languages, files, &[]).await;
            baseline.insert(sandbox.resource_id, survey);
        }
        let bytes =
            serde_json::to_vec(&baseline).map_err(|e| agents_domain::Error::internal(e.to_string()))?;
        let blob = self.engine.store.put_blob(&bytes)?;
        self.write(|w, plan| {
            plan.validations.baseline_ref = Some(blob.clone());
            Ok(records::touch(w, plan)?)
        })
    }

    /// Runs what is to be run. `true`: nothing stands in the way of ending the phase; `false`: the plan has moved on,
    /// pauses, or its actor is to go on.
    pub(super) async fn validate(
        &self,
        run: &ActorRun,
        host: &Host<'_>,
        sandboxes: &[OpenSandbox],
    ) -> Result<bool, Stop> {
        if self.plan()?.validations.wants_fix() {
            self.hand_over(run)?;
            return Ok(false);
        }
        loop {
            let plan = self.plan()?;
            let tasks = validations::tasks(self.engine, &plan)?;
            let attachments: Vec<&Attachment> = tasks.iter().map(|task| &task.attachment).collect();
            let mut known = plan.validations.clone();
            known.keep(&attachments);
            if known.outcomes != plan.validations.outcomes {
                self.write(|w, plan| {
                    plan.validations.keep(&attachments);
                    Ok(records::touch(w, plan)?)
                })?;
                continue;
            }
            let due = known.to_run(&plan, &attachments);
            if !due.is_empty() {
                let due: Vec<&Task> =
                    tasks.iter().filter(|t| due.contains(&t.attachment.attachment_id)).collect();
                self.run_validations(&plan, &due, host, sandboxes).await?;
                continue;
            }
            if known.blocked() {
                self.validation_failed(&plan)?;
                return Ok(false);
            }
            return Ok(true);
        }
    }

    /// Lets the actor have another step with what was found.
    fn hand_over(&self, run: &ActorRun) -> Result<(), Stop> {
        let mut next = run.clone();
        next.outcome = agents_domain::ports::actor::StepOutcome::Continue;
        self.write(|w, plan| {
            plan.validations.handed_over();
            records::touch(w, plan)?;
            w.put_actor_run(&next)?;
            for outcome in plan.validations.being_fixed() {
                let facts = json!({
                    "validation": outcome.validation, "attachment_id": outcome.attachment_id,
                    "attempt": outcome.fixes, "max_attempts": Context::FIX_LIMIT,
                });
                emit(self.engine, w, plan, "validation.fix_attempted", facts)?;
            }
            Ok(())
        })
    }

    /// Says that something required did not pass; the machine says what comes next.
    fn validation_failed(&self, plan: &Plan) -> Result<(), Stop> {
        let validations = &plan.validations;
        let limit = records::context_of(plan).fix_limit;
        // Running it once more on the same files gave the same: an actor that changes nothing will not do better.
        let stuck = validations.blocking().all(|o| o.unchanged);
        let attempts = if stuck { limit.max(validations.fixes_tried()) } else { validations.fixes_tried() };
        let first = validations.blocking().next();
        let failure = PlanFailure {
            message: validations.failure_message(),
            category: "validation".to_owned(),
            phase: Phase::Execute,
            tool: first.map(|o| o.validation.to_string()),
            step: Some("validation".to_owned()),
            recoverable: true,
            retries: validations.fixes_tried(),
            hints: vec![
                format!("agents plan status {}", self.id),
                format!("agents plan prompt {} '<GUIDANCE>'", self.id),
            ],
        };
        let exhausted: Vec<ValidationOutcome> =
            if attempts >= limit { validations.blocking().cloned().collect() } else { Vec::new() };
        self.write(|w, plan| {
            for outcome in &exhausted {
                let facts = json!({
                    "validation": outcome.validation, "attachment_id": outcome.attachment_id,
                    "attempt": outcome.fixes, "max_attempts": limit,
                });
                emit(self.engine, w, plan, "validation.fix_exhausted", facts)?;
            }
            let event = Event::ValidationFailed { attempts, failure: failure.clone() };
            self.advance(w, plan, &event)?;
            Ok(())
        })
    }

    /// Runs validations, some at a time, and records each as soon as it is sure that it wrote nothing.
    async fn run_validations(
        &self,
        plan: &Plan,
        tasks: &[&Task],
        host: &Host<'_>,
        sandboxes: &[OpenSandbox],
    ) -> Result<(), Stop> {
        let baseline = self.baseline(plan)?;
        let before = Dirty::of(sandboxes)?;
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        let mut running: FuturesUnordered<_> = tasks
            .iter()
            .map(|task| {
                let (slots, baseline) = (slots.clone(), &baseline);
                async move {
                    let _slot = slots.acquire().await;
                    let ran = self.run_one(plan, task, host, sandboxes, baseline).await;
                    (*task, ran)
                }
            })
            .collect();
        let mut suspects: Vec<&Task> = Vec::new();
        let mut done = 0;
        loop {
            let label = format!("Validating ({done} of {} done)", tasks.len());
            self.progress(plan, &label, Some(done), u32::try_from(tasks.len()).ok());
            let next = tokio::select! {
                next = running.next() => next,
                () = stopped(host) => return Err(Stop::Moved),
            };
            let Some((task, ran)) = next else { break };
            let written = before.written(sandboxes)?;
            if written.is_empty() {
                self.record_run(task, ran?)?;
            } else {
                suspects.push(task);
            }
            done += 1;
        }
        drop(running);
        if suspects.is_empty() {
            return Ok(());
        }
        before.take_back(plan, sandboxes)?;
        // Alone, each shows whether it was the one that wrote.
        for task in suspects {
            let mut ran = tokio::select! {
                ran = self.run_one(plan, task, host, sandboxes, &baseline) => ran?,
                () = stopped(host) => return Err(Stop::Moved),
            };
            let written = before.written(sandboxes)?;
            let changed: Vec<&String> = written.iter().filter(|path| !is_cache(sandboxes, path)).collect();
            if !written.is_empty() {
                before.take_back(plan, sandboxes)?;
            }
            if !changed.is_empty() {
                let shown: Vec<&str> = changed.iter().take(5).map(|path| path.as_str()).collect();
                let more = if changed.len() > shown.len() { ", ..." } else { "" };
                let said = std::mem::take(&mut ran.verdict);
                ran.verdict = Verdict::broken(format!(
                    "it changed files, which a validation must not: {}{more}; the changes were taken back",
                    shown.join(", ")
                ));
                ran.verdict.data = said.data;
                ran.verdict.data.insert("changed_files".to_owned(), json!(changed));
            }
            self.record_run(task, ran)?;
        }
        Ok(())
    }

    fn baseline(&self, plan: &Plan) -> Result<Baseline, Stop> {
        let Some(hash) = &plan.validations.baseline_ref else { return Ok(Baseline::new()) };
        let bytes = self.engine.store.blob(hash)?.unwrap_or_default();
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn run_one(
        &self,
        plan: &Plan,
        task: &Task,
        host: &Host<'_>,
        sandboxes: &[OpenSandbox],
        baseline: &Baseline,
    ) -> Result<Run, Stop> {
        let attachment = &task.attachment;
        let attempt = plan.validations.of(attachment.attachment_id).map_or(1, |o| o.attempt + 1);
        self.write(|w, plan| {
            let facts = json!({
                "validation": attachment.validation, "attachment_id": attachment.attachment_id,
                "attempt": attempt,
            });
            Ok(emit(self.engine, w, plan, "validation.started", facts)?)
        })?;
        let resource = attachment.resource_id;
        let sandbox = sandboxes.iter().find(|s| s.resource_id == resource);
        let state = plan.sandboxes.iter().find(|s| s.resource_id == resource);
        let workspace = host.workspaces.iter().find(|w| w.resource_id == resource);
        let began = Instant::now();
        let verdict = match (sandbox, state, workspace) {
            (Some(sandbox), Some(state), Some(workspace)) => {
                let place = Place {
                    sandbox,
                    state,
                    languages: &*workspace.languages,
                    baseline: baseline.get(&resource),
                    surroundings: &*self.engine.surroundings,
                    data_dir: &self.engine.data_dir,
                    engine: self.engine,
                };
                validations::run(task, &place).await
            }
            _ => Verdict::broken(format!("the plan has no sandbox of resource {resource}")),
        };
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Run { verdict, duration_ms, finished_at: clock::now() })
    }

    fn record_run(&self, task: &Task, ran: Run) -> Result<(), Stop> {
        let attachment = &task.attachment;
        self.write(|w, plan| {
            let mut validations = std::mem::take(&mut plan.validations);
            let fixing = validations.of(attachment.attachment_id).is_some_and(|o| o.fixes > 0 && o.blocks());
            validations.record(plan, attachment, task.mode(), ran.clone());
            plan.validations = validations;
            let Some(outcome) = plan.validations.of(attachment.attachment_id).cloned() else { return Ok(()) };
            records::touch(w, plan)?;
            let facts = json!({
                "validation": outcome.validation, "attachment_id": outcome.attachment_id, "mode": outcome.mode,
                "message": outcome.message, "duration_ms": outcome.duration_ms, "attempt": outcome.attempt,
                "error": outcome.error, "findings": outcome.findings.len(),
            });
            let event = if outcome.passed { "validation.passed" } else { "validation.failed" };
            emit(self.engine, w, plan, event, facts)?;
            if outcome.passed && fixing {
                let facts = json!({
                    "validation": outcome.validation, "attachment_id": outcome.attachment_id,
                    "attempt": outcome.fixes, "max_attempts": Context::FIX_LIMIT,
                });
                emit(self.engine, w, plan, "validation.fix_succeeded", facts)?;
            }
            Ok(())
        })?;
        fault::point("worker.validation-recorded");
        Ok(())
    }
}

/// Ends when the plan is to be left.
async fn stopped(host: &Host<'_>) {
    while !host.stopping() {
        tokio::time::sleep(LOOK).await;
    }
}

/// What differed in the sandboxes before a validation was run.
struct Dirty(Vec<Vec<String>>);

impl Dirty {
    fn of(sandboxes: &[OpenSandbox]) -> Result<Self, Stop> {
        Ok(Self(sandboxes.iter().map(OpenSandbox::dirty).collect::<agents_domain::Result<_>>()?))
    }

    /// What differs now and did not then, of all sandboxes.
    fn written(&self, sandboxes: &[OpenSandbox]) -> Result<Vec<String>, Stop> {
        let mut all = Vec::new();
        for (sandbox, before) in sandboxes.iter().zip(&self.0) {
            all.extend(sandbox.dirty()?.into_iter().filter(|path| !before.contains(path)));
        }
        Ok(all)
    }

    fn take_back(&self, plan: &Plan, sandboxes: &[OpenSandbox]) -> Result<(), Stop> {
        for (sandbox, before) in sandboxes.iter().zip(&self.0) {
            let Some(state) = plan.sandboxes.iter().find(|s| s.resource_id == sandbox.resource_id) else {
                continue;
            };
            let written: Vec<String> =
                sandbox.dirty()?.into_iter().filter(|path| !before.contains(path)).collect();
            sandbox.restore_paths(&state.commit, &written)?;
        }
        Ok(())
    }
}

/// A file of a cache: in a folder that is known for it, or marked as one.
fn is_cache(sandboxes: &[OpenSandbox], path: &str) -> bool {
    if path.split('/').any(|part| CACHES.contains(&part)) || path.ends_with("CACHEDIR.TAG") {
        return true;
    }
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    folders
        .into_iter()
        .any(|folder| sandboxes.iter().any(|s| s.root.join(folder).join("CACHEDIR.TAG").is_file()))
}
