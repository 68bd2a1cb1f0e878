//! Actors that people define, at work: agents, tools, graphs and streams as one state that can be written down.
//!
//! A [`Machine`] has no effect itself. It says what it waits for ([`Effect`]: a model's answer, a tool's result) and goes
//! on when it is told ([`Machine::answered`], [`Machine::called`]). All it knows is in its state, so a run can be stopped
//! after any answer, and the same answers in the same order lead to the same end.

mod agent;
mod condition;
mod known;
mod machine;
mod memory;
mod plan;
mod program;
mod router;
mod run;
mod state;
mod step;
mod toolbox;
mod tools;

pub use known::DefinedActors;
pub(crate) use machine::Out;
pub use machine::{Effect, Told};
pub use plan::{DefinedActor, Listener, ask};
pub use program::Program;
pub(crate) use program::Who;
pub use run::converse;
pub use state::{Checkpoint, Machine, Status};
pub(crate) use state::{Parent, PipelineTask, Task, TaskKind};
pub use toolbox::Toolbox;

#[cfg(test)]
mod tests;
