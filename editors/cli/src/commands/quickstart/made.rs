//! What a run has made so far, and taking it back when the run is stopped.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agents_domain::Error;
use agents_domain::ids::PlanId;
use agents_engine::Engine;
use agents_engine::operations::plan::{Cancel, Discard};
use agents_engine::operations::{project, resource};

use crate::output::Output;
use crate::run::Run;

/// Things that are not there without this run, in the order they were made.
#[derive(Default)]
pub struct Things {
    /// The sample's folder.
    pub sample: Option<PathBuf>,
    /// The resource's name.
    pub resource: Option<String>,
    /// The project's name.
    pub project: Option<String>,
    /// The plan, until it is being applied.
    pub plan: Option<PlanId>,
    /// Ctrl+C came; whoever else wants to go on must not.
    stopped: bool,
}

/// What was made, shared with the thread that hears of Ctrl+C.
pub struct Made {
    engine: Arc<Engine>,
    things: Mutex<Things>,
}

impl Made {
    /// From now on Ctrl+C takes back what is noted.
    pub fn begin(run: &Run, engine: &Arc<Engine>) -> Arc<Self> {
        let made = Arc::new(Self { engine: engine.clone(), things: Mutex::default() });
        let (shared, out) = (made.clone(), run.out.clone());
        run.undo_when_interrupted(move || shared.stop(&out));
        made
    }

    /// Makes something and notes it, or does neither: Ctrl+C waits until it is done.
    pub fn note<T>(&self, make: impl FnOnce(&mut Things) -> T) -> T {
        make(&mut self.things())
    }

    /// Everything made so far stays from now on.
    pub fn keep(&self) {
        *self.things() = Things::default();
    }

    /// Returns unless Ctrl+C came. What a plan says after it was cancelled for that is no news.
    pub fn goes_on(&self) {
        drop(self.things());
    }

    /// Takes back what was made, last things first; the words say what was done, if anything.
    pub fn take_back(&self) -> Option<String> {
        undo(&self.engine, &mut self.things())
    }

    fn stop(&self, out: &Output) -> Option<String> {
        // What is being made just now is waited for.
        let mut things = self.things.lock().unwrap_or_else(PoisonError::into_inner);
        things.stopped = true;
        if things.plan.is_some() {
            out.info("Stopping, and taking back what was begun");
        }
        undo(&self.engine, &mut things)
    }

    fn things(&self) -> MutexGuard<'_, Things> {
        let things = self.things.lock().unwrap_or_else(PoisonError::into_inner);
        if things.stopped {
            drop(things);
            // The process ends as soon as the other thread has said its last words.
            loop {
                std::thread::park();
            }
        }
        things
    }
}

fn undo(engine: &Engine, things: &mut Things) -> Option<String> {
    let (mut done, mut left) = (Vec::new(), Vec::new());
    let mut note = |what: String, outcome: Result<(), Error>| match outcome {
        Ok(()) => done.push(what),
        Err(error) => left.push(error.message),
    };
    if let Some(plan) = things.plan.take() {
        let plan = plan.to_string();
        let reason = Some("the quickstart was stopped".to_owned());
        let cancelled = engine.call(Cancel { plan: plan.clone(), reason });
        let gone = cancelled.and_then(|_| engine.call(Discard { plan: plan.clone() }));
        note(format!("plan {plan} is cancelled"), gone.map(drop));
    }
    if let Some(name) = things.project.take() {
        let gone = engine.call(project::Delete { name: name.clone(), force: false });
        note(format!("project {name} is deleted"), gone.map(drop));
    }
    if let Some(resource) = things.resource.take() {
        let gone = engine.call(resource::Remove { resource: resource.clone() });
        note(format!("resource {resource} is removed"), gone.map(drop));
    }
    if let Some(sample) = things.sample.take() {
        let shown = sample.display();
        let gone = fs::remove_dir_all(&sample)
            .map_err(|e| Error::new(agents_domain::ErrorKind::Io, format!("{shown} cannot be removed: {e}")));
        note(format!("the sample in {shown} is removed"), gone);
    }
    let words = done.into_iter().chain(left).collect::<Vec<_>>().join("; ");
    (!words.is_empty()).then(|| format!("Taken back: {words}"))
}
