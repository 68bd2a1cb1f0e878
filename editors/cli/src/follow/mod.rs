//! Watching a plan until it pauses or ends: what happens is shown while it happens, and a worker that died is replaced.

mod live;
mod nurse;

use std::thread;
use std::time::{Duration, Instant};

use agents_domain::Error;
use agents_domain::event::Event;
use agents_domain::ids::PlanId;
use agents_domain::plan::State;
use agents_domain::ports::store::Watch;
use agents_engine::Engine;
use agents_engine::operations::events::After;
use agents_engine::operations::plan::{Status, StatusOutput};

use crate::failure::Failure;
use crate::run::Run;

use live::Live;
pub use live::{mark, title};
use nurse::Nurse;

/// Time between two looks at the store.
const POLL: Duration = Duration::from_millis(30);

/// How long the worker of an applied plan is waited for while it tidies up.
const TIDYING: Duration = Duration::from_secs(2);

/// The events of one plan, or of all, as they come.
pub struct Stream<'a> {
    engine: &'a Engine,
    watch: Box<dyn Watch>,
    plan: Option<PlanId>,
    sequence: i64,
    primed: bool,
}

impl<'a> Stream<'a> {
    /// What comes after a sequence number.
    pub fn after(engine: &'a Engine, plan: Option<PlanId>, sequence: i64) -> Result<Self, Error> {
        let watch = engine.store().watch()?;
        Ok(Self { engine, watch, plan, sequence, primed: false })
    }

    /// What is new; waits a moment when nothing is.
    pub fn next(&mut self) -> Result<Vec<Event>, Error> {
        if self.watch.changed()? || !self.primed {
            self.primed = true;
            let plan = self.plan.map(|plan| plan.to_string());
            let mut events = Vec::new();
            loop {
                let found = self.engine.call(After {
                    sequence: Some(self.sequence),
                    plan: plan.clone(),
                    limit: None,
                })?;
                self.sequence = found.sequence;
                if found.events.is_empty() {
                    break;
                }
                events.extend(found.events);
            }
            if !events.is_empty() {
                return Ok(events);
            }
        }
        thread::sleep(POLL);
        Ok(Vec::new())
    }
}

/// The present end of the events: what comes after it is new.
pub fn now(engine: &Engine) -> Result<i64, Error> {
    Ok(engine.call(After { sequence: None, plan: None, limit: None })?.sequence)
}

/// Where a plan stands.
pub fn status(engine: &Engine, plan: PlanId) -> Result<StatusOutput, Error> {
    engine.call(Status { plan: plan.to_string() })
}

/// Whether a worker has the plan or shall take it.
pub fn runs(status: &StatusOutput) -> bool {
    status.rewinding
        || (status.awaiting.is_none() && matches!(status.state, State::Queued | State::Processing))
}

/// Shows what happens to a plan after an event until it pauses or ends, and returns where it stands then.
///
/// # Errors
/// When the store fails, or workers of the plan end again and again without getting on.
pub fn until_pause(run: &Run, engine: &Engine, plan: PlanId, since: i64) -> Result<StatusOutput, Failure> {
    run.when_interrupted(format!("Not following any more; the plan goes on: agents plan follow {plan}"));
    let mut stream = Stream::after(engine, Some(plan), since)?;
    let mut nurse = Nurse::new(plan, run.env.log_dir());
    let mut standing = status(engine, plan)?;
    if !runs(&standing) {
        return Ok(standing);
    }
    let mut live = Live::new(&run.out, &standing);
    while runs(&standing) {
        let events = stream.next()?;
        if !events.is_empty() {
            if events.iter().any(gets_on) {
                nurse.sees_life();
            }
            let moved = events.iter().any(moves);
            events.iter().for_each(|event| live.event(event));
            if events.iter().any(|event| event.event_type == "plan.worker_lost") {
                run.out.warn("An earlier worker died; a new one goes on from the last committed step");
            }
            if moved {
                standing = status(engine, plan)?;
                live.standing(&standing);
            }
        } else if nurse.is_due() {
            standing = status(engine, plan)?;
            if let Some(root) = held_up_by(engine, &standing)? {
                run.out.warn(format!(
                    "Plan {root}, which it is part of, waits for you first: agents plan status {root}"
                ));
                break;
            }
            nurse.look(run, engine, &standing, &live)?;
        }
    }
    // The state may be newer than the events that led to it.
    stream.next()?.iter().for_each(|event| live.event(event));
    if standing.state == State::Applied {
        standing = after_cleanup(engine, standing)?;
    }
    live.end(&standing);
    Ok(standing)
}

/// The root of a child plan's tree, when nobody works on the tree because the root waits for a person.
fn held_up_by(engine: &Engine, standing: &StatusOutput) -> Result<Option<PlanId>, Error> {
    let root = standing.root_plan_id;
    if root == standing.plan_id || standing.worker_alive || standing.rewinding {
        return Ok(None);
    }
    let above = status(engine, root)?;
    Ok((above.awaiting.is_some() && !above.worker_alive).then_some(root))
}

/// Where an applied plan stands once its worker has tidied up, which it does last.
fn after_cleanup(engine: &Engine, mut standing: StatusOutput) -> Result<StatusOutput, Error> {
    let begin = Instant::now();
    while standing.worker_alive && begin.elapsed() < TIDYING {
        thread::sleep(POLL);
        standing = status(engine, standing.plan_id)?;
    }
    Ok(standing)
}

/// Whether a plan may stand elsewhere after an event.
fn moves(event: &Event) -> bool {
    match event.event_type.as_str() {
        "plan.progress" => false,
        "checkpoint.restored" | "correction.applied" => true,
        other => other.starts_with("plan."),
    }
}

/// Whether an event shows that work was done which need not be done again; a worker that dies over and over at the same
/// place has none.
fn gets_on(event: &Event) -> bool {
    matches!(
        event.event_type.as_str(),
        "decision.created" | "resource.modified" | "checkpoint.created" | "plan.phase_changed"
    )
}
