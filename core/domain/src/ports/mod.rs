//! What the engine needs from outside, as small traits; the composition root plugs the adapters in.

pub mod actor;
pub mod actor_store;
pub mod automation;
pub mod code_index;
pub mod code_intelligence;
pub mod installer;
pub mod language_servers;
pub mod mcp;
pub mod model;
pub mod server_launcher;
pub mod skill_store;
pub mod store;
pub mod tool;
pub mod tool_store;
pub mod validation_store;

use std::future::Future;
use std::pin::Pin;

/// A future a port returns; boxed so that ports can be trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
