//! The built-in actors over files in memory, fake language servers and an engine in small.

#![allow(clippy::unwrap_used, reason = "what a test stands on may panic")]

mod agent;
mod execute;
mod mcp;
mod models;
mod read_only;
mod resume;
mod scripted;
mod silence;
mod strategize;
mod world;
mod worse;
