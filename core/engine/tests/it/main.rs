//! The engine on a real store and real git repositories, with scripted actors and no language server.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

mod attached;
mod attacks;
mod automatic;
mod checkpoints;
mod child_plans;
mod child_plans_together;
mod config;
mod corrected_children;
mod corrections;
mod corrections_hindered;
mod corrections_random;
mod corrections_told;
mod events;
mod failing_steps;
mod folders;
mod harness;
mod init;
mod invariants;
mod known_servers;
mod lifecycle;
mod machine;
mod notes;
mod persisted;
mod plans;
mod projects;
mod read_only;
mod reference;
mod registry;
mod resources;
mod system;
mod tools;
mod validations;
