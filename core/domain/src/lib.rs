//! The entities and rules of the engine: plans, decisions, changes, profiles, and the ports the outside plugs into.
//!
//! Pure: nothing here does I/O, spawns a task or reads a clock. What needs the outside is a trait in [`ports`].

pub mod action;
pub mod actor;
pub mod catalogue;
pub mod changes;
pub mod checkpoint;
pub mod correction;
pub mod decision;
pub mod diagnostics;
pub mod error;
pub mod event;
pub mod failure;
pub mod ids;
pub mod interpolate;
pub mod invariant;
pub mod language_server;
pub mod merge;
pub mod name;
pub mod note;
pub mod plan;
pub mod ports;
pub mod profile;
pub mod project;
pub mod provenance;
pub mod redact;
pub mod replay;
pub mod resource;
pub mod skill;
pub mod template;
pub mod text;
pub mod time;
pub mod tool;
pub mod tree;
pub mod validation;
pub mod words;

pub use error::{Error, ErrorKind, Result};
pub use name::QualifiedName;
pub use time::Timestamp;
