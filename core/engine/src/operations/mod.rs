//! The operations of the facade, by what they are about.

pub mod action;
pub mod actor;
pub mod automation_profile;
pub mod config;
pub mod content;
pub mod events;
pub mod invariant;
pub mod language_server;
pub mod lsp;
pub mod plan;
pub mod project;
mod registry;
pub mod resource;
pub mod skill;
pub mod system;
pub mod tool;
pub mod validation;

pub(crate) use registry::changed as registry_changed;
