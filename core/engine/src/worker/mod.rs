//! The worker of a plan: takes its lease, carries its phases on from the last commit, and stops when a person is asked
//! or nothing is left to do.

mod apply;
mod checkpoints;
mod children;
mod effects;
mod estimate;
mod failing;
mod family;
pub(crate) mod guarding;
mod host;
mod invariants;
mod kinship;
mod looking;
mod merging;
mod pool;
mod requests;
mod rewind;
mod skilled;
mod steps;
mod subplan;
mod validate;

pub(crate) use apply::{preflight as apply_preflight, refuse_half_made};
pub(crate) use family::unapplied_before;
pub(crate) use kinship::{
    answered, cancel_all as cancel_children, commanded as command_children, moved as child_moved,
    start_over as start_children_over,
};
pub(crate) use merging::{MERGE, MERGE_KEY};
pub(crate) use rewind::edits_in_sandboxes;
pub(crate) use steps::known;

use agents_domain::checkpoint::Trigger;
use agents_domain::ids::PlanId;
use agents_domain::plan::machine::{Effect, Event};
use agents_domain::plan::{Phase, Plan, PlanFailure, State};
use agents_domain::ports::store::{Lease, Writer};
use agents_domain::{Error, Result};
use agents_sandbox::fault;
use serde_json::json;

use tracing::Instrument;

use skilled::Connections;

use crate::Engine;
use crate::correlation;
use crate::records::{self, advance, emit};

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Another live worker has the plan.
    Held,
    /// All slots are taken; the plan stays queued.
    NoSlot,
    /// The plan waits for a person, or is done.
    Paused,
}

/// Works on a plan until it pauses or ends.
///
/// A child plan that is not being applied is worked on with its tree: the worker of the root has all of it. Errors are
/// those that could not be recorded in the plan itself, such as a full disk.
pub async fn run(engine: &Engine, id: PlanId) -> Result<Ended> {
    let id = engine.home_of(id)?;
    let Some(lease) = engine.store.try_lease(id)? else { return Ok(Ended::Held) };
    let worker = Worker { engine, id, lease, within: false, connections: Connections::default() };
    let worked = correlation::goes_on(engine, id, worker.work()).await;
    worker.connections.close().await;
    drop(worker);
    let ended = worked?;
    if ended == Ended::Paused {
        // A slot may have become free for another plan, and a command may have come in while this worker was leaving.
        engine.ensure_workers()?;
    }
    Ok(ended)
}

/// Workers in a row that may die at one step.
const LOST_WORKERS: u32 = 5;

struct Worker<'e> {
    engine: &'e Engine,
    id: PlanId,
    lease: Box<dyn Lease>,
    /// It works for the worker of the plan above, which leaves Apply alone.
    within: bool,
    /// The MCP servers of its actors' skills.
    connections: Connections,
}

/// Why a phase stopped before its end.
#[derive(Debug)]
enum Stop {
    /// The plan was cancelled or moved on by a person.
    Moved,
    /// Something failed that belongs into the plan's record.
    Failed(PlanFailure),
    /// Something failed that could not be recorded.
    Broken(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

impl From<agents_domain::ports::store::StoreError> for Stop {
    fn from(error: agents_domain::ports::store::StoreError) -> Self {
        Self::Broken(error.into())
    }
}

impl Worker<'_> {
    async fn work(&self) -> Result<Ended> {
        tracing::info!(plan_id = %self.id, epoch = self.lease.epoch(), "the worker takes the plan up");
        self.take_over()?;
        loop {
            let plan = self.plan()?;
            if let Some(rewind) = self.engine.view(|r| r.rewind(self.id))? {
                self.rewind(&plan, &rewind)?;
                continue;
            }
            if !self.within {
                self.rewind_below()?;
            }
            if let Some(ended) = self.work_on(&plan).instrument(span_of(&plan)).await? {
                return Ok(ended);
            }
        }
    }

    /// Brings the plan on by one phase; how the worker ends, when there is nothing to do.
    async fn work_on(&self, plan: &Plan) -> Result<Option<Ended>> {
        if plan.awaiting.is_some() || (self.within && plan.phase == Phase::Apply) {
            return Ok(Some(Ended::Paused));
        }
        let done = match (plan.phase, plan.state) {
            (_, State::Queued) => {
                if !self.take()? {
                    return Ok(Some(Ended::NoSlot));
                }
                Ok(())
            }
            (Phase::Strategize | Phase::Execute, State::Processing) => self.run_phase(plan).await,
            (Phase::Apply, State::Processing) => self.run_apply(plan),
            _ => return Ok(Some(Ended::Paused)),
        };
        match done {
            Ok(()) | Err(Stop::Moved) => {}
            Err(Stop::Failed(failure)) => self.fail(failure)?,
            Err(Stop::Broken(error)) => self.fail(broken(plan, error))?,
        }
        Ok(None)
    }

    fn plan(&self) -> Result<Plan> {
        self.engine.view(|r| r.plan(self.id))?.ok_or_else(|| crate::lookup::missing_plan(self.id))
    }

    /// Writes the new lease epoch, and says so when an earlier worker died over the plan.
    fn take_over(&self) -> Result<()> {
        let taken = self.write_any(|w, plan| {
            // An epoch that is still there was never given back: its worker died.
            let died = plan.epoch != 0;
            plan.epoch = self.lease.epoch();
            if died && plan.state == State::Processing && plan.awaiting.is_none() {
                plan.resumed_from = w.checkpoints(self.id)?.last().map(|c| c.checkpoint_id);
                self.advance(w, plan, &Event::WorkerLost)?;
                let facts = json!({ "phase": plan.phase, "resumed_from": plan.resumed_from });
                emit(self.engine, w, plan, "plan.worker_lost", facts)?;
                self.count_loss(w, plan)?;
            } else {
                records::touch(w, plan)?;
            }
            Ok(())
        });
        unless_moved(taken, ())
    }

    /// Gives a phase up whose workers keep dying at the same step, so that it does not go on for ever.
    fn count_loss(&self, w: &dyn Writer, plan: &mut Plan) -> Result<()> {
        if plan.phase == Phase::Apply {
            return Ok(());
        }
        let mut run =
            w.actor_run(self.id, plan.phase)?.unwrap_or_else(|| steps::fresh_run(self.id, plan.phase));
        run.lost_workers += 1;
        w.put_actor_run(&run)?;
        if run.lost_workers >= LOST_WORKERS {
            let failure = PlanFailure {
                message: format!("the worker died {} times at the same step", run.lost_workers),
                category: "internal".to_owned(),
                phase: plan.phase,
                tool: None,
                step: Some(format!("step {}", run.step + 1)),
                recoverable: true,
                retries: run.lost_workers,
                hints: vec![format!("look at the worker's log, then: agents plan execute {}", self.id)],
            };
            self.advance(w, plan, &Event::Unrecovered(failure))?;
            run.lost_workers = 0;
            w.put_actor_run(&run)?;
        }
        Ok(())
    }

    /// Takes a queued phase; `false` when all slots are taken.
    fn take(&self) -> Result<bool> {
        let slots = records::slots(self.engine);
        let outcome = self.write(|w, plan| {
            if plan.parent_plan_id.is_none() && i64::from(w.processing_count()?) >= slots {
                return Ok(false);
            }
            self.advance(w, plan, &Event::WorkerTook)?;
            Ok(true)
        });
        // When somebody moved the plan, the loop looks again.
        unless_moved(outcome, true)
    }

    /// One transaction on the plan as it is now; refused when the lease is lost or the plan is not ours to move, which
    /// includes that it is about to be taken back.
    fn write<T>(
        &self,
        mut f: impl FnMut(&dyn Writer, &mut Plan) -> std::result::Result<T, Stop>,
    ) -> std::result::Result<T, Stop> {
        self.write_any(|w, plan| if w.rewind(self.id)?.is_some() { Err(Stop::Moved) } else { f(w, plan) })
    }

    /// [`write`](Self::write), also on a plan that is about to be taken back.
    fn write_any<T>(
        &self,
        mut f: impl FnMut(&dyn Writer, &mut Plan) -> std::result::Result<T, Stop>,
    ) -> std::result::Result<T, Stop> {
        let mut stop = None;
        let done = self.engine.write(|w| {
            w.check_lease(self.id, self.lease.epoch())?;
            let mut plan = w.plan(self.id)?.ok_or_else(|| crate::lookup::missing_plan(self.id))?;
            if plan.state == State::Cancelled {
                stop = Some(Stop::Moved);
                return Err(Error::internal("cancelled"));
            }
            f(w, &mut plan).map_err(|why| {
                stop = Some(why);
                Error::internal("rolled back")
            })
        });
        done.map_err(|error| stop.take().unwrap_or(Stop::Broken(error)))
    }

    /// Moves the plan within the caller's transaction.
    fn advance(&self, w: &dyn Writer, plan: &mut Plan, event: &Event) -> Result<Vec<Effect>> {
        advance(self.engine, w, plan, event)
    }

    /// Records a failure in the plan; the machine says whether the step is tried again.
    fn fail(&self, failure: PlanFailure) -> Result<()> {
        tracing::warn!(category = failure.category, step = failure.step, "{}", failure.message);
        let outcome = self.write(|w, plan| {
            if plan.phase == Phase::Apply {
                let effects = self.advance(w, plan, &Event::ApplyFailed(failure.clone()))?;
                return Ok(failing::record(w, plan, None, &failure, failing::outcome_of(plan, &effects))?);
            }
            let run = w.actor_run(self.id, plan.phase)?;
            let restores = run.as_ref().map_or(0, |r| r.restores);
            let failure = PlanFailure { retries: failure.retries.max(restores), ..failure.clone() };
            let mut context = records::context_of(plan);
            context.confidence = records::phase_confidence(w, plan)?;
            context.step_retries_left = context.step_retries_left.saturating_sub(restores);
            let event = Event::StepFailed(failure.clone());
            let effects = records::advance_in(self.engine, w, plan, &event, &context)?;
            if effects.contains(&Effect::CheckpointOnError) {
                crate::checkpoints::record_all(
                    self.engine,
                    w,
                    plan,
                    Trigger::OnError,
                    None,
                    &failure.message,
                )?;
            }
            failing::record(w, plan, run.as_ref(), &failure, failing::outcome_of(plan, &effects))?;
            Ok(())
        });
        unless_moved(outcome, ())
    }

    /// Tells followers what is being done; losing one is no harm.
    fn progress(&self, plan: &Plan, label: &str, done: Option<u32>, total: Option<u32>) {
        let facts = json!({ "phase": plan.phase, "label": label, "done": done, "total": total });
        let told = self.engine.write(|w| emit(self.engine, w, plan, "plan.progress", facts.clone()));
        if let Err(error) = told {
            tracing::warn!(plan = %self.id, %error, "progress was not recorded");
        }
    }
}

/// What every line of the log says of the plan.
fn span_of(plan: &Plan) -> tracing::Span {
    let parent = plan.parent_plan_id.map(|id| id.to_string());
    tracing::info_span!(
        "plan", plan_id = %plan.plan_id, root_plan_id = %plan.root_plan_id, parent_plan_id = parent.as_deref(),
        phase = %plan.phase, state = %plan.state, attempt = plan.attempt,
    )
}

/// The outcome of a transaction, where a plan that somebody moved is no error.
fn unless_moved<T>(outcome: std::result::Result<T, Stop>, moved: T) -> Result<T> {
    match outcome {
        Ok(value) => Ok(value),
        Err(Stop::Moved) => Ok(moved),
        Err(Stop::Broken(error)) => Err(error),
        Err(Stop::Failed(failure)) => Err(Error::internal(failure.message)),
    }
}

/// A failure that is not about the plan's own work, as the plan records it.
fn broken(plan: &Plan, error: Error) -> PlanFailure {
    PlanFailure {
        message: error.message,
        category: error.kind.code().to_ascii_lowercase(),
        phase: plan.phase,
        tool: None,
        step: None,
        recoverable: true,
        retries: 0,
        hints: error.suggestions,
    }
}

/// The names of the places where a fault can be injected, sandbox and engine together.
pub fn fault_points() -> Vec<&'static str> {
    fault::POINTS.iter().chain(steps::POINTS).copied().collect()
}

/// Those that are passed only when a person edited files of a sandbox.
pub fn edited_fault_points() -> &'static [&'static str] {
    fault::EDITED
}

/// Those of plans that are taken back.
pub fn rewind_fault_points() -> &'static [&'static str] {
    rewind::POINTS
}

/// Those of plans that have child plans.
pub fn child_fault_points() -> &'static [&'static str] {
    children::POINTS
}
