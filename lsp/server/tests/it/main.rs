//! The server as a client sees it, over pipes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail the test")]

mod client;
mod commands;
mod desk;
mod diagnostics;
mod documents;
mod entities;
mod events;
mod hover;
mod lenses;
mod lifecycle;
mod limits;
mod pages;
mod plans_here;
mod proxied;
mod proxy;
mod proxy_asks;
mod proxy_faults;
mod reference;
mod requests;
mod support;
mod syntax;
mod virtual_documents;
mod warm;
