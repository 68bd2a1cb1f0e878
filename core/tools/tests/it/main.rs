//! The tools over the real runtime: the fake server for situations, real servers for truth.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests")]

mod fake;
mod real;
mod reference;
mod servers;
mod world;
