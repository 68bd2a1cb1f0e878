//! Validations: registering, attaching, running, fixing, and what stands in the way of Apply.

mod registry;
mod running;
