//! Whole-program tests: the real binary in a home of its own, on real repositories.
//!
//! `builtins` are the other built-in actors, `skills` gives actors MCP servers and Agent Skills, `servers` works with real language servers, `proxied` has an
//! editor in front of them, `tools` lends them to actors and to
//! other agents, `invariants` with what plans keep to, `faulty` with one that misbehaves, `validations` with what stops a plan,
//! `repositories` with checkouts that are hard to handle, `warm` keeps servers for the next editor, `plain` reads what people read, `faults` with killed
//! processes and broken disks.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what a helper cannot do fails the test")]

mod actors;
mod architecture;
mod builtins;
#[path = "../faults/mod.rs"]
mod faults;
mod faulty;
mod invariants;
mod models;
mod plain;
mod proxied;
mod repositories;
mod servers;
mod skills;
mod support;
mod tools;
mod validations;
mod warm;
