//! The way out to a peer, be it the client or a proxied server: written at once where that blocks nobody, else through
//! a bounded queue and one thread that writes. Nobody who sends ever waits.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::Limits;
use crate::lock;

/// What a frame may have at most to be written by whoever sends it: a pipe that takes anything takes that much
/// (`PIPE_BUF` of POSIX on Linux).
const AT_ONCE: usize = 4096;

/// How much of queued messages goes out in one write.
const BATCH: usize = 64 * 1024;

/// A stream to a peer.
pub trait Output: Write + Send + 'static {
    /// Whether a write of up to four kilobytes would not block. `false` is always right, and costs a thread's wake-up.
    fn takes_now(&self) -> bool {
        false
    }
}

impl Output for std::fs::File {
    #[cfg(unix)]
    fn takes_now(&self) -> bool {
        is_writable(self)
    }
}

impl Output for io::PipeWriter {
    #[cfg(unix)]
    fn takes_now(&self) -> bool {
        is_writable(self)
    }
}

impl Output for io::Sink {}

#[cfg(unix)]
fn is_writable(stream: &impl std::os::fd::AsFd) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut polled = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
    let ready = poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready == 1);
    ready && polled[0].revents() == Some(PollFlags::POLLOUT)
}

/// How the way out ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything was written after [`Outbox::close`].
    Written,
    /// The peer stopped reading, or cannot be written to.
    Failed(String),
}

/// The sending end; cheap to clone.
#[derive(Clone)]
pub(crate) struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    limits: Limits,
    queue: Mutex<Queue>,
    queued: Condvar,
    /// Held by whoever writes: the thread, or a sender while the thread has nothing to do.
    stream: Mutex<Box<dyn Output>>,
    ended: Box<dyn Fn(End) + Send + Sync>,
}

#[derive(Default)]
struct Queue {
    bodies: VecDeque<Vec<u8>>,
    /// Queued or being written.
    messages: usize,
    bytes: usize,
    closed: bool,
    failed: bool,
}

impl Outbox {
    /// The sending end, and the loop of the writer's thread. `ended` hears once how it ended.
    pub(crate) fn new<O: Output, F: Fn(End) + Send + Sync + 'static>(
        output: O,
        limits: Limits,
        ended: F,
    ) -> (Self, impl FnOnce() + use<O, F>) {
        let shared = Arc::new(Shared {
            limits,
            queue: Mutex::default(),
            queued: Condvar::new(),
            stream: Mutex::new(Box::new(output)),
            ended: Box::new(ended),
        });
        let outbox = Self { shared: shared.clone() };
        let write = move || match shared.write_all() {
            Ok(()) => (shared.ended)(End::Written),
            Err(error) => shared.fail(format!("cannot be written to: {error}")),
        };
        (outbox, write)
    }

    /// Sends one message body. A peer so far behind that its queue is full is failed.
    pub(crate) fn send(&self, body: Vec<u8>) {
        let shared = &self.shared;
        let mut queue = lock(&shared.queue);
        if queue.closed || queue.failed {
            return;
        }
        if queue.messages == 0 && body.len() + 64 <= AT_ONCE {
            let mut stream = lock(&shared.stream);
            if stream.takes_now() {
                if let Err(error) = write_frame(&mut **stream, &body) {
                    drop((stream, queue));
                    shared.fail(format!("cannot be written to: {error}"));
                }
                return;
            }
        }
        // One message may be larger than the limit, a second one not wait behind it.
        let full = queue.messages >= shared.limits.queued_messages
            || (queue.bytes > 0 && queue.bytes.saturating_add(body.len()) > shared.limits.queued_bytes);
        if full {
            let (messages, bytes) = (queue.messages, queue.bytes);
            drop(queue);
            return shared.fail(format!("stopped reading: {messages} messages of {bytes} bytes wait for it"));
        }
        queue.messages += 1;
        queue.bytes += body.len();
        queue.bodies.push_back(body);
        shared.queued.notify_one();
    }

    /// Lets the writer finish what is queued, then end.
    pub(crate) fn close(&self) {
        lock(&self.shared.queue).closed = true;
        self.shared.queued.notify_one();
    }
}

impl Shared {
    fn fail(&self, reason: String) {
        let failed = std::mem::replace(&mut lock(&self.queue).failed, true);
        self.queued.notify_one();
        if !failed {
            (self.ended)(End::Failed(reason));
        }
    }

    fn write_all(&self) -> io::Result<()> {
        let mut together = Vec::new();
        loop {
            let bodies = {
                let mut queue = lock(&self.queue);
                while queue.bodies.is_empty() && !queue.closed && !queue.failed {
                    queue = self.queued.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
                if queue.failed || queue.bodies.is_empty() {
                    return Ok(());
                }
                std::mem::take(&mut queue.bodies)
            };
            let (messages, bytes) = (bodies.len(), bodies.iter().map(Vec::len).sum::<usize>());
            let mut stream = lock(&self.stream);
            for body in bodies {
                if together.len() + body.len() > BATCH {
                    stream.write_all(&together)?;
                    together.clear();
                }
                if body.len() > BATCH {
                    write_frame(&mut **stream, &body)?;
                } else {
                    write!(together, "Content-Length: {}\r\n\r\n", body.len())?;
                    together.extend_from_slice(&body);
                }
            }
            stream.write_all(&together)?;
            together.clear();
            stream.flush()?;
            drop(stream);
            let mut queue = lock(&self.queue);
            queue.messages -= messages;
            queue.bytes -= bytes;
        }
    }
}

/// Writes header and body in one call where the system takes both.
fn write_frame(stream: &mut dyn Output, body: &[u8]) -> io::Result<()> {
    let head = format!("Content-Length: {}\r\n\r\n", body.len());
    let written = loop {
        match stream.write_vectored(&[IoSlice::new(head.as_bytes()), IoSlice::new(body)]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    match written.checked_sub(head.len()) {
        Some(of_body) => stream.write_all(&body[of_body..])?,
        None => {
            stream.write_all(&head.as_bytes()[written..])?;
            stream.write_all(body)?;
        }
    }
    stream.flush()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    fn limits(bytes: usize) -> Limits {
        Limits { queued_messages: 100, queued_bytes: bytes, in_flight: 1 }
    }

    /// An outbox on a pipe, its writer's thread running.
    fn piped(bytes: usize) -> (Outbox, io::PipeReader, mpsc::Receiver<End>) {
        let (reader, writer) = io::pipe().unwrap();
        let (sender, ends) = mpsc::channel();
        let (outbox, write) = Outbox::new(writer, limits(bytes), move |end| drop(sender.send(end)));
        std::thread::spawn(write);
        (outbox, reader, ends)
    }

    #[test]
    fn messages_of_any_size_come_out_in_their_order() {
        let (outbox, mut reader, ends) = piped(10 << 20);
        let bodies: Vec<Vec<u8>> = (0..60)
            .map(|n: usize| vec![b'a' + (n % 26) as u8; [3, 4000, 5000, 70_000, 200_000][n % 5]])
            .collect();
        let read = std::thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            all
        });
        bodies.iter().for_each(|body| outbox.send(body.clone()));
        outbox.close();
        assert_eq!(ends.recv_timeout(Duration::from_secs(10)), Ok(End::Written));
        drop(outbox);
        let frame = |body: &Vec<u8>| {
            [format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes(), body.clone()].concat()
        };
        assert!(read.join().unwrap() == bodies.iter().map(frame).collect::<Vec<_>>().concat());
    }

    #[test]
    fn a_peer_that_stops_reading_is_failed_once_and_nobody_waits_for_it() {
        let (outbox, _reader, ends) = piped(1 << 20);
        for _ in 0..200 {
            outbox.send(vec![b'x'; 50_000]);
        }
        let Ok(End::Failed(reason)) = ends.recv_timeout(Duration::from_secs(10)) else {
            panic!("it is failed")
        };
        assert!(reason.starts_with("stopped reading"), "{reason}");
        outbox.send(b"{}".to_vec());
        assert!(ends.try_recv().is_err());
    }

    #[test]
    fn a_peer_that_is_gone_is_failed() {
        let (outbox, reader, ends) = piped(1 << 20);
        drop(reader);
        outbox.send(b"{}".to_vec());
        let end = ends.recv_timeout(Duration::from_secs(10));
        assert!(
            matches!(&end, Ok(End::Failed(reason)) if reason.starts_with("cannot be written to")),
            "{end:?}"
        );
    }
}
