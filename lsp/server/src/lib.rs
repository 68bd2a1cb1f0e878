//! The server side of `agents lsp serve`: a protocol front that keeps order and limits, a document store with
//! immutable snapshots, and the editor features behind them.
//!
//! ```text
//! client -> front (one blocking reader, one blocking writer) -> own features: tower-lsp's typed router, a task each
//!                                                            '-> proxy: other servers, a reader and a writer each
//! ```
//!
//! - [`serve_editor`] is `agents lsp serve`: plans and decisions of an engine for the editor on standard input and output;
//!   [`editor`] is the same application for other streams.
//! - [`serve`] runs one session over a pair of byte streams; [`serve_stdio`] over the process's own.
//! - [`App`] is what the features bring: raw JSON capabilities and a tower-lsp service.
//! - [`SessionHandle`] and [`Snapshot`] are what handlers read; [`ClientHandle`] is how they speak to the client.
//!
//! Invariants: text synchronisation is applied in arrival order before anything that arrived later is looked at; a
//! request sees the documents as they were when it arrived; every request gets exactly one answer; neither a slow
//! handler, nor a panicking one, nor a client that stopped reading blocks the front.

mod app;
pub mod documents;
mod front;
mod proxy;
mod requests;
mod session;
mod syntax;
#[cfg(feature = "testing")]
pub mod testing;
mod watch;

pub use app::{EditorOptions, editor, serve_editor};
pub use front::client::{ClientError, ClientHandle, Reply};
pub use front::dispatch::App;
pub use front::outbox::Output;
pub use front::{ExitStatus, Limits, serve, serve_stdio, serve_with_limits};
pub use proxy::{ProxyOptions, ProxyTiming};
pub use session::{ClientInfo, Folder, SessionHandle, Snapshot};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, going on with the data of a holder that panicked: every critical section of this crate leaves its data whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
