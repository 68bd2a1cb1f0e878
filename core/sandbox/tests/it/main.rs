//! The crate against real git repositories.

#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod applying;
mod applying_awkward;
mod checkpoints;
mod diffs;
mod everything;
mod faults;
mod folders;
mod noting;
mod programs;
mod properties;
mod recreating;
mod repositories;
mod snapshots;
mod support;
mod worktrees;
