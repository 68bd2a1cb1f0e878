//! Actors: those that need no model look through language servers and decide by rules that can be read; the others ask one.
//!
//! An actor is a state machine over the port in [`agents_domain::ports::actor`]: a step gets state and observations and
//! returns state and requests. Nothing here writes a file, starts a process or asks a person; the engine does, when a
//! [`Request`](agents_domain::ports::actor::Request) says so. The same state and the same files give the same requests.
//!
//! - [`BuiltIn`] finds actors by name.
//! - `builtin/fix-diagnostics` ([`FixDiagnostics`]) decides in Strategize what to do about each kind of finding of the
//!   registered language servers, and does it in Execute.
//! - `builtin/organize-imports` and `builtin/format` ([`Tidy`]) let a server do these in whole files.
//! - `builtin/rename-symbol` ([`RenameSymbol`]) finds a symbol and lets a server give it a new name everywhere.
//! - `builtin/revert-plan` ([`RevertPlan`]) takes an applied plan back, or some of its decisions.
//! - `builtin/reconcile-invariants` ([`ReconcileInvariants`]) says which invariants are in force in a plan.
//! - [`models`] are chat models of all providers, [`agent`] is one conversation with a model and its tools, and the actors
//!   `builtin/strategist` and `builtin/executor` that plan and carry out with it.
//! - [`graph`] and [`stream`] run the actors that people define; [`graph::DefinedActors`] finds them.
//! - [`scripted::Scripted`] plays a script, for tests of whatever runs actors.

pub mod agent;
mod builtin;
mod check;
mod common;
mod fixer;
pub mod graph;
pub mod mcp;
pub mod models;
mod reconcile;
mod rename;
mod revert;
pub mod scripted;
pub mod stream;
mod tidy;

pub use builtin::BuiltIn;
pub use fixer::FixDiagnostics;
pub use reconcile::ReconcileInvariants;
pub use rename::RenameSymbol;
pub use revert::RevertPlan;
pub use tidy::Tidy;
