//! The client side of language servers: starts them, keeps documents in step, asks for diagnostics and fixes, and
//! brings them back when they die. A server that is missing, slow, broken or gone costs its own answers, never the
//! caller's time: everything here is bounded.
//!
//! From the outside in:
//! - [`Runtime`] implements the engine's port [`agents_domain::ports::language_servers::LanguageServers`]; `check` is
//!   its part that starts one server to see what it really offers.
//! - It implements [`agents_domain::ports::server_launcher::ServerLauncher`], too: processes without a client of ours, for
//!   the proxy.
//! - [`Installer`] implements [`agents_domain::ports::installer::ServerInstaller`]: it brings servers of the catalogue
//!   to this machine.
//! - `workspace` is one directory lent to actors; `instance` one server over it: started on first use, restarted
//!   within its budget, its documents replayed.
//! - `diagnostics` (pull, push, settling) and `actions`, `edits` (fixes and what they change) ask the questions.
//! - `intelligence` asks about code (places, hover, symbols, hierarchies, ...), `questions` about whole files; `places` reads
//!   locations; `preview` lets a server see drafts for a while.
//! - `warm` keeps servers for the next editor that needs them, in a process of its own.
//! - `notes` tells other processes which servers run, and ends those that are removed from the registry.
//! - `documents` is what a server has open, `pushed` what it said unasked, `activity` whether it is still computing.
//! - `client` is one connection: requests with deadlines, answers to the server's own requests; `transport`,
//!   `framing`, `process` and `guard` carry the bytes, own the child and see to its end.
//! - `position`, `uri`, `protocol`, `registrations` translate between the protocol and the engine's own terms.
//!
//! Never here: writing a file of a workspace, running a server's command, deciding which fix is right.

mod actions;
mod activity;
mod check;
mod client;
mod diagnostics;
mod documents;
mod edits;
mod files;
mod framing;
mod guard;
mod install;
mod instance;
mod intelligence;
mod launch;
mod launcher;
mod notes;
mod places;
mod position;
mod preview;
mod process;
mod protocol;
mod pushed;
mod questions;
mod registrations;
mod runtime;
mod transport;
mod uri;
mod warm;
mod workspace;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use install::Installer;
pub use runtime::{Runtime, Timing};
pub use warm::{PoolOptions, PoolStarter, WarmServers, pool_runs, serve_pool, stop_pool};

/// Locks a mutex; a panic elsewhere while it was held does not spread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
