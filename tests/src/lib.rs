//! The harness of the whole-program tests: the real binary in a home of its own, on real repositories.
//!
//! - [`World`] is a home with a data directory, and everything a test does in it: run commands, register, plan.
//! - [`Envelope`] is what a command answered, checked for what every answer must hold.
//! - [`Repo`] builds git repositories in any state.
//! - [`Records`] reads what a data directory holds, without ids and times, for comparing runs.
//! - [`Editor`] is a small client of `agents lsp serve`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test support: what it cannot do fails the test, with a word on why"
)]

mod editor;
mod envelope;
pub mod models;
mod plan;
mod process;
mod programs;
mod records;
mod repo;
pub mod scripts;
mod world;

pub use editor::Editor;
pub use envelope::{Envelope, is_ulid};
pub use plan::PlanHandle;
pub use process::{Finished, Running, memory_peak, processor_time};
pub use programs::{agents, fake_server, tool, tools};
pub use records::Records;
pub use repo::Repo;
pub use world::World;

use std::time::{Duration, Instant};

/// Asks until the answer is there, or fails with what was asked for when the deadline is over.
///
/// # Panics
/// At the deadline.
pub fn wait_until<T>(what: &str, deadline: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < deadline, "{what}: not within {deadline:?}");
        // Nobody unparks: this is the pace of asking.
        std::thread::park_timeout(Duration::from_millis(15));
    }
}
