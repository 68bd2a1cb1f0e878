//! The program as people and scripts run it: real processes, a real repository, a data directory each.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod actors;
mod automation;
mod code_index;
mod config;
mod errors;
mod formats;
mod known_servers;
mod listing;
mod mistakes;
mod path;
mod processes;
mod quickstart;
mod reference;
mod registry;
mod robust;
mod shell;
mod system;
mod terminal;
mod validations;
mod world;
