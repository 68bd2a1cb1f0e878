//! The runtime against the scripted fake server (every trap known from the field) and against real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod actions;
mod catalogue;
mod diagnostics;
mod harness;
mod install;
mod lifecycle;
mod real;
mod transport;
