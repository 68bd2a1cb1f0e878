//! Child plans at work side by side, each on a thread of its own: most of what a child does is git and files, which would
//! hold up the others on one thread.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::thread::JoinHandle;
use std::time::Duration;

use agents_domain::ids::PlanId;
use agents_domain::{Error, Result};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;

use super::Worker;
use crate::{Engine, correlation};

/// How long it is left alone when somebody else has a child's lease.
const LEASED: Duration = Duration::from_millis(100);

/// Stack of a child's thread, in bytes; as much as a program's first thread has.
const STACK: usize = 8 << 20;

/// How the work on a child ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It pauses, or is over; an error is one that could not be recorded in the child itself.
    Done(Result<()>),
    /// It took longer than it may.
    TimedOut(Duration),
    /// It was stopped between two of its steps.
    Stopped,
}

/// The children that are being worked on. Dropped, it stops them and waits until nobody works on them any more.
pub(super) struct Pool {
    at_work: HashMap<PlanId, AtWork>,
    sender: mpsc::UnboundedSender<(PlanId, Outcome)>,
    ended: mpsc::UnboundedReceiver<(PlanId, Outcome)>,
}

struct AtWork {
    /// Dropped, it tells the thread to stop.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pool {
    pub(super) fn new() -> Self {
        let (sender, ended) = mpsc::unbounded_channel();
        Self { at_work: HashMap::new(), sender, ended }
    }

    pub(super) fn holds(&self, child: PlanId) -> bool {
        self.at_work.contains_key(&child)
    }

    pub(super) fn len(&self) -> usize {
        self.at_work.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at_work.is_empty()
    }

    /// Works on a child until it pauses or ends, at most for so long.
    pub(super) fn start(&mut self, engine: &Engine, child: PlanId, limit: Option<Duration>) -> Result<()> {
        let (stop, stopped) = oneshot::channel::<()>();
        let (engine, runtime, ended) = (engine.clone(), Handle::current(), self.sender.clone());
        let (span, request) = (tracing::Span::current(), correlation::present());
        let run = move || {
            let work = async {
                tokio::select! {
                    outcome = work_on(&engine, child, limit) => outcome,
                    _ = stopped => Outcome::Stopped,
                }
            };
            let whole = correlation::part_of(request, work).instrument(span);
            let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(whole)));
            let broken = |_| Outcome::Done(Err(Error::internal("the work on it panicked; this is a defect")));
            // Nobody listens any more when the parent was left.
            let _ = ended.send((child, outcome.unwrap_or_else(broken)));
        };
        let thread =
            std::thread::Builder::new().name(format!("child {child}")).stack_size(STACK).spawn(run).map_err(
                |e| Error::internal(format!("no thread can be started for child plan {child}: {e}")),
            )?;
        self.at_work.insert(child, AtWork { stop: Some(stop), thread: Some(thread) });
        Ok(())
    }

    /// The next one that ends; for ever, when none is at work.
    pub(super) async fn next(&mut self) -> (PlanId, Outcome) {
        // The pool holds a sender itself, so the channel is never closed.
        let Some((child, outcome)) = self.ended.recv().await else { return std::future::pending().await };
        self.at_work.remove(&child);
        (child, outcome)
    }

    /// Stops all of them, and says how each ended.
    pub(super) async fn stop(&mut self) -> Vec<(PlanId, Outcome)> {
        for at_work in self.at_work.values_mut() {
            at_work.stop = None;
        }
        let mut all = Vec::with_capacity(self.at_work.len());
        while !self.is_empty() {
            all.push(self.next().await);
        }
        all
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for at_work in self.at_work.values_mut() {
            at_work.stop = None;
        }
        for at_work in self.at_work.values_mut() {
            // One that panicked has said so already.
            let _ = at_work.thread.take().map(JoinHandle::join);
        }
    }
}

async fn work_on(engine: &Engine, child: PlanId, limit: Option<Duration>) -> Outcome {
    let work = async {
        let Some(lease) = engine.store.try_lease(child)? else {
            // Somebody applies it.
            tokio::time::sleep(LEASED).await;
            return Ok(());
        };
        let worker = Worker { engine, id: child, lease, within: true, connections: Default::default() };
        worker.work().await.map(|_| ())
    };
    match limit {
        None => Outcome::Done(work.await),
        Some(limit) => match tokio::time::timeout(limit, work).await {
            Ok(done) => Outcome::Done(done),
            Err(_) => Outcome::TimedOut(limit),
        },
    }
}
