//! The repositories: each entity's rows, read and written inside one transaction.

mod actors;
mod automation;
mod changes;
mod children;
mod corrections;
mod decisions;
mod events;
mod invariants;
mod plans;
mod registry;
mod skills;
mod tools;
mod validations;
mod values;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use agents_domain::ids::PlanId;
use agents_domain::ports::store::{Reader, StoreResult, Writer};
use rusqlite::Connection;

use crate::error::Fault;

/// An open transaction.
pub(crate) struct Tx<'a> {
    conn: &'a Connection,
    path: &'a Path,
    /// Plans whose root decision was recorded or superseded.
    roots: RefCell<BTreeSet<PlanId>>,
}

impl<'a> Tx<'a> {
    /// A view of a transaction that was begun on `conn`.
    pub(crate) fn new(conn: &'a Connection, path: &'a Path) -> Self {
        Self { conn, path, roots: RefCell::default() }
    }

    /// Runs statements and tells their failure in the words of the port.
    pub(crate) fn run<T>(&self, f: impl FnOnce(&Connection) -> Result<T, Fault>) -> StoreResult<T> {
        // SQLite ends a transaction by itself when the disk is full or fails; what came next would stand alone.
        if self.conn.is_autocommit() {
            return Err(Fault::other("the transaction was rolled back already").told(self.path));
        }
        f(self.conn).map_err(|fault| fault.told(self.path))
    }
}

impl Reader for Tx<'_> {}
impl Writer for Tx<'_> {}
