//! Tools that act, called by an actor in a real plan on a real repository.

mod caller;
mod code;
mod confinement;
mod files;
mod searching;
mod shell;
