//! Bringing a plan back to an earlier point: the sandboxes first, then everything else in one transaction.

use agents_domain::checkpoint::SandboxAt;
use agents_domain::correction::{Rewind, RewindCause, RewindTo};
use agents_domain::ids::ResourceId;
use agents_domain::plan::machine::Event;
use agents_domain::plan::{Plan, PlanFailure};
use agents_domain::ports::actor::Request;
use agents_domain::ports::store::ActorRun;
use agents_domain::{Error, Result};
use agents_sandbox::fault;

use super::{Stop, Worker, unless_moved};
use crate::checkpoints;
use crate::rewind;
use crate::sandboxes::{self, OpenSandbox};

/// Where a fault can be injected between the commits of a rewind.
pub(super) const POINTS: &[&str] =
    &["rewind.begun", "rewind.files-written", "rewind.sandboxes-back", "rewind.settled"];

type Stopped<T> = std::result::Result<T, Stop>;

impl Worker<'_> {
    /// Carries a recorded rewind out. One that cannot be carried out leaves the plan errored and every decision as it is.
    pub(super) fn rewind(&self, plan: &Plan, rewind: &Rewind) -> Result<()> {
        fault::point("rewind.begun");
        let done = self.bring_back(plan, rewind).and_then(|commits| {
            fault::point("rewind.sandboxes-back");
            let run = self.stored_run(rewind)?;
            self.write_any(|w, plan| Ok(rewind::settle(self.engine, w, plan, rewind, run.clone(), &commits)?))
        });
        fault::point("rewind.settled");
        match done {
            Err(Stop::Broken(error)) if self.engine.view(|r| r.rewind(self.id))?.is_some() => {
                self.give_up(rewind, error)
            }
            done => unless_moved(done, ()),
        }
    }

    /// Carries out what is recorded for plans further down; one that waits for a person has no other worker.
    pub(super) fn rewind_below(&self) -> Result<()> {
        for id in self.engine.view(|r| r.rewinding())? {
            if id == self.id || self.engine.home_of(id)? != self.id {
                continue;
            }
            let Some(lease) = self.engine.store.try_lease(id)? else { continue };
            let worker =
                Worker { engine: self.engine, id, lease, within: true, connections: Default::default() };
            worker.take_over()?;
            if let Some(rewind) = self.engine.view(|r| r.rewind(id))? {
                worker.rewind(&worker.plan()?, &rewind)?;
            }
        }
        Ok(())
    }

    fn stored_run(&self, rewind: &Rewind) -> Stopped<Option<ActorRun>> {
        let Some(blob) = &rewind.resume.run else { return Ok(None) };
        let gone = || Error::internal(format!("the state the actor had then ({blob}) is gone"));
        let bytes = self.engine.store.blob(blob)?.ok_or_else(gone)?;
        Ok(Some(serde_json::from_slice(&bytes).map_err(|_| gone())?))
    }

    /// The sandboxes as they shall be; where each of them is then.
    fn bring_back(&self, plan: &Plan, rewind: &Rewind) -> Stopped<Vec<(ResourceId, String)>> {
        if rewind.resources.is_empty() {
            return Ok(Vec::new());
        }
        let sandboxes = self.open_sandboxes(plan)?;
        // All or none of those that go to a commit as a whole.
        let whole: Vec<SandboxAt> = rewind
            .resources
            .iter()
            .filter_map(|resource| match &resource.to {
                RewindTo::Commit(commit) => {
                    Some(SandboxAt { resource_id: resource.resource_id, commit: commit.clone() })
                }
                RewindTo::Files(_) => None,
            })
            .collect();
        checkpoints::restore(&sandboxes, &whole)?;
        let mut commits = Vec::new();
        for resource in &rewind.resources {
            let missing =
                || Error::internal(format!("no sandbox of resource {} is open", resource.resource_id));
            let sandbox =
                sandboxes.iter().find(|s| s.resource_id == resource.resource_id).ok_or_else(missing)?;
            let commit = match &resource.to {
                RewindTo::Commit(commit) => commit.clone(),
                RewindTo::Files(files) => self.put_files(sandbox, plan, rewind, files)?,
            };
            commits.push((resource.resource_id, commit));
        }
        Ok(commits)
    }

    fn put_files(
        &self,
        sandbox: &OpenSandbox,
        plan: &Plan,
        rewind: &Rewind,
        files: &[(String, Option<String>)],
    ) -> Stopped<String> {
        let mut contents = Vec::new();
        for (path, hash) in files {
            let bytes = match hash {
                None => None,
                Some(hash) => {
                    let gone = || Error::internal(format!("the earlier text of {path} is gone"));
                    Some(self.engine.store.blob(hash)?.ok_or_else(gone)?)
                }
            };
            contents.push((path.clone(), bytes));
        }
        let known = plan.sandboxes.iter().find(|s| s.resource_id == sandbox.resource_id);
        sandbox.put_files(&contents, known.map(|s| s.base_commit.as_str()))?;
        fault::point("rewind.files-written");
        let paths: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
        let label = match rewind.cause {
            RewindCause::Correction(id) => format!("Taken back by correction {id}"),
            RewindCause::Rollback(id) => format!("Taken back to {id}"),
        };
        Ok(sandbox.checkpoint(&label, &paths)?)
    }

    /// What cannot be taken back ends the correction; nothing was superseded (T51).
    fn give_up(&self, rewind: &Rewind, error: Error) -> Result<()> {
        let done = self.write_any(|w, plan| {
            let failure = PlanFailure {
                message: format!("The work could not be taken back: {}", error.message),
                category: error.kind.code().to_ascii_lowercase(),
                phase: plan.phase,
                tool: None,
                step: None,
                recoverable: true,
                retries: 0,
                hints: error.suggestions.clone(),
            };
            w.delete_rewind(rewind.plan_id)?;
            self.advance(w, plan, &Event::RollbackFailed(failure))?;
            Ok(())
        });
        unless_moved(done, ())
    }
}

/// Files that a rewind in progress may have written half.
pub(super) fn in_flight(worker: &Worker<'_>) -> Result<Vec<String>> {
    let Some(rewind) = worker.engine.view(|r| r.rewind(worker.id))? else { return Ok(Vec::new()) };
    let changes = worker.engine.view(|r| r.changes(worker.id))?;
    Ok(rewind::paths_of(&rewind, &changes))
}

/// The files that a request in flight may have written half: those it names, and all where a call was begun whose effects
/// only show afterwards.
pub(crate) fn half_written(
    engine: &crate::Engine,
    plan: agents_domain::ids::PlanId,
    request: &Request,
) -> Result<Vec<String>> {
    let mut paths = crate::tools::paths_of(request);
    if let Request::Tool { call_id, .. } = request {
        let calls = engine.view(|r| r.tool_calls(plan))?;
        let last = calls.iter().rev().find(|call| call.call_id == *call_id);
        if last.is_some_and(|call| super::effects::was_cut_off(&call.result)) {
            paths.push(crate::tools::ANYTHING.to_owned());
        }
    }
    Ok(paths)
}

/// A person's edits in the plan's sandboxes that no commit has, besides what a dead worker left half-written.
pub(crate) fn edits_in_sandboxes(engine: &crate::Engine, plan: &Plan) -> Result<Vec<String>> {
    let run = engine.view(|r| r.actor_run(plan.plan_id, plan.phase))?;
    let request = run.as_ref().and_then(|run| run.requests.get(run.done));
    let in_flight = match request {
        Some(request) => half_written(engine, plan.plan_id, request)?,
        None => Vec::new(),
    };
    let found = sandboxes::dirty(plan)?;
    Ok(found.into_iter().filter(|path| !crate::tools::is_among(&in_flight, path)).collect())
}
