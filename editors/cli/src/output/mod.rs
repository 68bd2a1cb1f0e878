//! Output of commands: one way to produce it, six ways to show it. Commands write elements into an [`Output`] and never ask
//! which format is in use.
//!
//! ```ignore
//! let out = Output::open(Options::process("plan list", format, caps));
//! out.set_data(answer.clone());                        // what programs get, as the engine said it
//! out.table(None, "Plans", vec![col("id", "ID").id(), col("state", "State").kind(Kind::State)]).rows(&answer["plans"]);
//! out.ok("2 plans listed");
//! std::process::exit(out.finish().into());
//! ```
#![allow(dead_code, unused_imports, reason = "a toolkit for all commands; each uses its part")]

mod core;
mod document;
mod element;
mod error;
pub mod format;
mod handles;
pub mod human;
pub mod interrupt;
mod layout;
mod live;
mod prompt;
mod render;
mod session;
mod strategy;
mod styled;
#[cfg(test)]
mod tests;
mod yaml;

pub use core::ElementClosed;
pub use document::{Document, RunStatus};
pub use element::{Align, Border, Column, Element, Level, Mark, Node, Row, Separator, col};
pub use error::{AppError, ErrorCode};
pub use format::{Asked, Caps, Format};
pub use handles::{
    CodeHandle, NodeId, PanelHandle, ProgressHandle, StatusHandle, TableHandle, TextHandle, TreeHandle,
};
pub use human::Kind;
pub use layout::ascii;
pub use session::{Options, Output};
pub use strategy::{Event, Renderer, Strategy, What};
pub use styled::{Span, Styled, Tone, bad, dim, good, id, own, prose, strong, warn};
pub use yaml::to_yaml;
