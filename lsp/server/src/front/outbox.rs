//! The way out to the client: a bounded queue and one thread that writes. Nobody who sends ever waits.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use super::{Ended, Limits};

/// The sending end; cheap to clone.
#[derive(Clone)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Item>,
    state: Arc<State>,
}

enum Item {
    Body(Vec<u8>),
    Close,
}

struct State {
    limits: Limits,
    messages: AtomicUsize,
    bytes: AtomicUsize,
    failed: AtomicBool,
    ended: mpsc::Sender<Ended>,
}

impl Outbox {
    /// The sending end, and the loop of the writer's thread. The loop reports its end as [`Ended::Written`], a client
    /// that cannot be written to as [`Ended::ClientFailed`].
    pub(super) fn new<W: Write>(
        output: W,
        limits: Limits,
        ended: mpsc::Sender<Ended>,
    ) -> (Self, impl FnOnce() + use<W>) {
        let (queue, items) = mpsc::channel();
        let (messages, bytes, failed) = Default::default();
        let state = Arc::new(State { limits, messages, bytes, failed, ended });
        let outbox = Self { queue, state: state.clone() };
        let write = move || match write_all(output, &items, &state) {
            Ok(()) => drop(state.ended.send(Ended::Written)),
            Err(error) => state.fail(&format!("the client cannot be written to: {error}")),
        };
        (outbox, write)
    }

    /// Queues one message body. A client so far behind that the queue is full is failed, and with it the session.
    pub(crate) fn send(&self, body: Vec<u8>) {
        let state = &self.state;
        let messages = state.messages.fetch_add(1, Ordering::AcqRel);
        let bytes = state.bytes.fetch_add(body.len(), Ordering::AcqRel);
        // One message may be larger than the limit, a second one not wait behind it.
        let full = messages >= state.limits.queued_messages
            || (bytes > 0 && bytes.saturating_add(body.len()) > state.limits.queued_bytes);
        if full {
            state.fail(&format!(
                "the client stopped reading: {messages} messages of {bytes} bytes wait for it"
            ));
        } else {
            // Fails only after the writer's end, when nobody reads any more.
            let _ = self.queue.send(Item::Body(body));
        }
    }

    /// Lets the writer finish what is queued, then end.
    pub(crate) fn close(&self) {
        let _ = self.queue.send(Item::Close);
    }
}

impl State {
    fn fail(&self, reason: &str) {
        if !self.failed.swap(true, Ordering::AcqRel) {
            tracing::error!("{reason}");
            let _ = self.ended.send(Ended::ClientFailed);
        }
    }
}

fn write_all(output: impl Write, items: &mpsc::Receiver<Item>, state: &State) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(64 * 1024, output);
    while let Ok(item) = items.recv() {
        let mut next = Some(item);
        // What has queued up meanwhile goes out in one write.
        while let Some(item) = next {
            let Item::Body(body) = item else { return output.flush() };
            write!(output, "Content-Length: {}\r\n\r\n", body.len())?;
            output.write_all(&body)?;
            state.messages.fetch_sub(1, Ordering::AcqRel);
            state.bytes.fetch_sub(body.len(), Ordering::AcqRel);
            next = items.try_recv().ok();
        }
        output.flush()?;
    }
    output.flush()
}
