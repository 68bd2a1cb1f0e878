//! The SQLite store from outside: conformance, several processes, damage, permissions, full disks.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod child;
mod conformance;
mod examine;
mod opening;
mod processes;
mod schema;
mod tree;

use std::path::Path;

use agents_store::{Options, SqliteStore};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn open(data_dir: &Path) -> SqliteStore {
    SqliteStore::open(data_dir, Options::default()).unwrap()
}

/// A connection past the store, for looking and for doing harm.
fn raw(data_dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(data_dir.join("cleveragents.db")).unwrap()
}
