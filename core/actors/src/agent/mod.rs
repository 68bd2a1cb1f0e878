//! Models that work: one conversation with a model and its tools ([`Agent`], [`Talk`]), and the built-in actors that plan
//! and carry out with it ([`ModelActor`]).
//!
//! An [`Agent`] makes one turn at a time and has no effect itself: it says which tools the model wants, and whoever holds
//! the conversation has them run and answers. The conversation is plain data, so a run can be stopped, resumed, replayed
//! and corrected between any two turns.

mod actor;
mod brief;
mod fence;
mod known;
mod observe;
mod plan_tools;
mod prompts;
mod reconciler;
mod state;
mod talk;
mod turn;

pub use actor::{ModelActor, ModelActorSettings};
pub use fence::fenced;
pub use known::ModelActors;
pub use prompts::Prompts;
pub use reconciler::ModelReconciler;
pub use talk::Talk;
pub use turn::{Agent, Turn};
