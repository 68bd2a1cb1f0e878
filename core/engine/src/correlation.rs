//! Which request an event is of: all events of one call, of what it calls, and of the worker it starts share an id.

use std::future::Future;

use agents_domain::Result;
use agents_domain::event::NewEvent;
use agents_domain::ids::PlanId;
use agents_domain::ports::store::Writer;

use crate::{Engine, clock};

tokio::task_local! {
    static REQUEST: String;
}

/// Runs a call as a request of its own, or as a part of the request it is made in.
pub(crate) fn request<T>(f: impl FnOnce() -> T) -> T {
    match REQUEST.try_with(|_| ()) {
        Ok(()) => f(),
        Err(_) => REQUEST.sync_scope(clock::ulid().to_string(), f),
    }
}

/// Runs a worker as a part of the request that last moved its plan.
pub(crate) async fn goes_on<T>(
    engine: &Engine,
    plan: PlanId,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let last = engine.view(|r| r.last_correlation(plan))?;
    REQUEST.scope(last.unwrap_or_else(|| clock::ulid().to_string()), work).await
}

/// The request this is done in, to be gone on with on another thread.
pub(crate) fn present() -> Option<String> {
    REQUEST.try_with(Clone::clone).ok()
}

/// Does a part of a request that began on another thread.
pub(crate) async fn part_of<T>(request: Option<String>, work: impl Future<Output = T>) -> T {
    match request {
        Some(request) => REQUEST.scope(request, work).await,
        None => work.await,
    }
}

impl Engine {
    /// Appends an event: who acts, in which request, and when.
    pub(crate) fn append_event(&self, w: &dyn Writer, event: NewEvent) -> Result<()> {
        let event = NewEvent { user_identity: Some(self.user.clone()), correlation_id: present(), ..event };
        w.append_event(&event, clock::now())?;
        Ok(())
    }
}
