//! From the engine's plain calls to the asynchronous ports, for operations that wait for an answer.

use std::panic;
use std::thread;

use agents_domain::{Error, ErrorKind, Result};

/// Runs a future to its end on a thread of its own: the caller may be on a thread that must not block on futures.
pub(crate) fn wait<T: Send>(future: impl Future<Output = T> + Send) -> Result<T> {
    let failed = |error: std::io::Error| Error::new(ErrorKind::Io, format!("cannot start a thread: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    thread::scope(|scope| {
        let run =
            thread::Builder::new().name("wait".to_owned()).spawn_scoped(scope, || runtime.block_on(future));
        match run.map_err(failed)?.join() {
            Ok(done) => Ok(done),
            Err(panicked) => panic::resume_unwind(panicked),
        }
    })
}
