//! The `agents` command: what it is told, the engine it puts together, and how it shows what came of it.
//!
//! - `args` is the command line; `run` takes a process from there to its exit code.
//! - `compose` is the only place that reads the environment and makes an engine; `spawn` starts workers, `surroundings` answers
//!   what the engine asks of the machine.
//! - `commands` has one function per command: it calls the facade and writes elements into an [`output::Output`].
//! - `complete` answers shells that ask what could stand at the cursor.
//! - `reference` writes docs/reference from the parser and the types.
//! - `follow` watches a plan until it pauses or ends; `output` turns elements into six formats.
//!
//! No command decides anything that the engine could decide.

mod args;
mod commands;
mod complete;
mod compose;
mod failure;
mod follow;
mod logging;
mod models;
pub mod output;
pub mod reference;
mod run;
mod spawn;
mod surroundings;

pub use run::main;
