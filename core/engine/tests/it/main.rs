//! The engine on a real store and real git repositories, with scripted actors and no language server.

mod harness;
mod lifecycle;
mod registry;
