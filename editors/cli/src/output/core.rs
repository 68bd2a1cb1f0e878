//! What all handles of a session share: the document, its strategy, and the lock around both.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::document::{Document, RunStatus, Slot};
use super::element::{Element, Level, Outcome, Status};
use super::error::AppError;
use super::format::{Caps, Format};
use super::prompt::Input;
use super::session::Clock;
use super::strategy::{Event, Strategy, What};

/// Time between two frames of a live display: fifteen a second.
const FRAME: Duration = Duration::from_millis(67);

/// How a command ends its run.
pub(super) enum Ending {
    /// It came to its end; errors it reported and questions that were declined decide the exit code.
    Finished,
    /// With this error.
    Failed(AppError),
    /// A person stopped it, with this exit code; what is said of it, unless the usual.
    Cancelled(u8, Option<String>),
}

/// One session.
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) input: Mutex<Input>,
    pub(super) clock: Clock,
    pub(super) ended: Condvar,
    pub(super) format: Format,
    pub(super) caps: Caps,
    pub(super) animate: bool,
}

/// What only one thread at a time may touch.
pub(super) struct State {
    pub(super) doc: Document,
    pub(super) strategy: Box<dyn Strategy>,
    /// Set once, at the end.
    pub(super) closed: bool,
    /// A declined question makes the run cancelled.
    pub(super) declined: bool,
    /// Whether the thread that moves a live display was started.
    pub(super) ticking: bool,
    /// Nothing is written any more after the output failed.
    pub(super) failure: Option<io::Error>,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere while the lock was held leaves a document that can still be shown.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the document while the run lasts.
    pub(super) fn change(&self, edit: impl FnOnce(&mut Document)) {
        let mut state = self.lock();
        if !state.closed {
            edit(&mut state.doc);
        }
    }

    pub(super) fn emit(&self, what: What) {
        let mut state = self.lock();
        if !state.closed {
            self.deliver(&mut state, what);
        }
    }

    fn deliver(&self, state: &mut State, what: What) {
        state.doc.elapsed = (self.clock)();
        if state.failure.is_some() {
            return;
        }
        let State { doc, strategy, failure, .. } = state;
        let event = Event { at: jiff::Timestamp::now(), session_id: &doc.session_id, what };
        *failure = strategy.on(&event, doc).err();
    }

    pub(super) fn add(self: &Arc<Self>, key: Option<&str>, element: Element) -> Arc<Handle> {
        let mut state = self.lock();
        if state.closed {
            return Arc::new(Handle { shared: Arc::clone(self), index: usize::MAX, unread: true });
        }
        let moves = matches!(element, Element::Progress(_) | Element::Text(_));
        let unread =
            key.is_none() && !matches!(element, Element::Status(_)) && !state.strategy.shows_people();
        let index = self.push(&mut state, key, element);
        if moves {
            self.start_ticking(&mut state);
        }
        Arc::new(Handle { shared: Arc::clone(self), index, unread })
    }

    fn push(&self, state: &mut State, key: Option<&str>, element: Element) -> usize {
        let index = state.doc.slots.len();
        let created = (self.clock)();
        state.doc.slots.push(Slot { element, key: key.map(str::to_owned), open: true, created });
        self.deliver(state, What::Created(index));
        index
    }

    /// Starts the thread that moves a live display, unless it runs or is not wanted.
    fn start_ticking(self: &Arc<Self>, state: &mut State) {
        if state.ticking || !self.animate || !state.strategy.ticks() {
            return;
        }
        let weak = Arc::downgrade(self);
        let thread =
            std::thread::Builder::new().name("output-frames".into()).spawn(move || keep_ticking(&weak));
        // Without a thread the display only moves when elements are finished.
        state.ticking = thread.is_ok();
    }

    /// Ends the run and gives its exit code, which stands from then on.
    pub(super) fn end(&self, ending: Ending) -> u8 {
        let mut state = self.lock();
        if state.closed {
            return state.doc.exit_code;
        }
        for index in 0..state.doc.slots.len() {
            let slot = &mut state.doc.slots[index];
            if !slot.open {
                continue;
            }
            tracing::debug!(
                "Handle {index} ({}) was not explicitly closed; force-closing at session end.",
                slot.element.kind()
            );
            if let (Element::Progress(progress), Ending::Cancelled(..)) = (&mut slot.element, &ending) {
                progress.outcome = if progress.outlives { Outcome::GoesOn } else { Outcome::Cancelled };
            }
            self.close(&mut state, index);
        }
        let failed = state.doc.statuses().any(|status| status.level == Level::Error);
        let (status, exit_code) = match ending {
            Ending::Finished if failed => (RunStatus::Error, 1),
            Ending::Finished if state.declined => (RunStatus::Cancelled, 1),
            Ending::Finished => (RunStatus::Ok, 0),
            Ending::Failed(error) => {
                let exit_code = error.code.exit_code();
                self.last_word(&mut state, Level::Error, &error.message);
                state.doc.error = Some(error);
                (RunStatus::Error, exit_code)
            }
            Ending::Cancelled(exit_code, word) => {
                let word = word.as_deref().unwrap_or("Operation cancelled");
                self.last_word(&mut state, Level::Warn, word);
                (RunStatus::Cancelled, exit_code)
            }
        };
        state.doc.status = status;
        state.doc.exit_code = exit_code;
        self.deliver(&mut state, What::SessionEnd);
        state.closed = true;
        if let Some(failure) = state.failure.take()
            && failure.kind() != io::ErrorKind::BrokenPipe
        {
            state.doc.exit_code = exit_code.max(1);
            // There is nowhere else to say it; if stderr is gone too, the exit code remains.
            let _ = writeln!(io::stderr(), "agents: cannot write the output: {failure}");
        }
        self.ended.notify_all();
        state.doc.exit_code
    }

    fn last_word(&self, state: &mut State, level: Level, text: &str) {
        let element = Element::Status(Status { level, text: text.to_owned(), detail: None });
        let index = self.push(state, None, element);
        self.close(state, index);
    }

    fn close(&self, state: &mut State, index: usize) {
        let now = (self.clock)();
        let Some(slot) = state.doc.slots.get_mut(index).filter(|slot| slot.open) else { return };
        slot.open = false;
        if let Element::Progress(progress) = &mut slot.element {
            progress.ended = Some(now);
        }
        self.deliver(state, What::Closed(index));
    }
}

fn keep_ticking(weak: &Weak<Shared>) {
    loop {
        let Some(shared) = weak.upgrade() else { return };
        let state = shared.lock();
        if state.closed {
            return;
        }
        // The wait ends early when the session does.
        let (mut state, _) = shared.ended.wait_timeout(state, FRAME).unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return;
        }
        shared.deliver(&mut state, What::Tick);
    }
}

/// A write to an element that is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the element is closed: nothing more can be written to it")]
pub struct ElementClosed;

/// The writing end of one element. The element is finished when the last clone is gone.
pub(super) struct Handle {
    shared: Arc<Shared>,
    index: usize,
    /// Nobody will read the element's content.
    unread: bool,
}

impl Handle {
    /// Changes the element. After its end, which a cancelled run brings early, nothing happens.
    pub(super) fn edit(&self, edit: impl FnOnce(&mut Element, Duration)) {
        if self.unread {
            return;
        }
        let mut state = self.shared.lock();
        let now = (self.shared.clock)();
        let closed = state.closed;
        match state.doc.slots.get_mut(self.index).filter(|slot| slot.open && !closed) {
            Some(slot) => {
                let slow = now.saturating_sub(slot.created) > FRAME;
                edit(&mut slot.element, now);
                self.shared.deliver(&mut state, What::Updated(self.index));
                if slow {
                    self.shared.start_ticking(&mut state);
                }
            }
            None => tracing::debug!("a write to element {} after its end was dropped", self.index),
        }
    }

    pub(super) fn check(&self) -> Result<(), ElementClosed> {
        let state = self.shared.lock();
        let open = !state.closed && state.doc.slots.get(self.index).is_some_and(|slot| slot.open);
        if open { Ok(()) } else { Err(ElementClosed) }
    }

    pub(super) fn close(&self) {
        let mut state = self.shared.lock();
        if !state.closed {
            self.shared.close(&mut state, self.index);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}
