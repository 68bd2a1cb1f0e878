//! The SQLite store: one database, a blob folder and lock files below the data directory, shared by all processes.
//!
//! ```text
//! cleveragents.db (-wal, -shm)   everything that is searched; WAL mode, every commit synced
//! blobs/<2>/<sha256>             contents by hash
//! locks/<plan>.lock              held by the live worker of a plan
//! backups/<time>/                the database as it was before a migration
//! ```
//!
//! [`SqliteStore`] implements [`agents_domain::ports::store::Store`]. What must hold whatever a program does (legal
//! states, decisions that are never rewritten, one root) is in the schema; what one transaction must leave behind is
//! checked when it ends.

mod blobs;
mod error;
mod examine;
mod leases;
mod migrate;
mod rows;
mod sqlite;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use examine::{Examination, abandoned_locks, database_path, examine, in_use, remove_lock};
pub use sqlite::{Options, SqliteStore};
