//! The store itself: opening, connections, transactions, and the doors to blobs and leases.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use agents_domain::ids::PlanId;
use agents_domain::ports::store::{Lease, Reader, Store, StoreError, StoreResult, Watch, Writer};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

use crate::blobs;
use crate::error::{self, Fault};
use crate::leases::{FileLease, LockFile, is_held};
use crate::migrate::{self, MIGRATIONS, Standing};
use crate::rows::Tx;

/// Name of the database in the data directory.
pub(crate) const FILE: &str = "cleveragents.db";

/// Connections for reading that are kept open.
const KEPT_READERS: usize = 4;

/// How the store behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long a call waits for other processes before it fails with [`StoreError::Busy`].
    pub busy_timeout: Duration,
}

impl Default for Options {
    /// Waits 5 seconds.
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5) }
    }
}

/// The store of one data directory; cheap to share, safe to use from several threads.
#[derive(Debug)]
pub struct SqliteStore {
    data_dir: PathBuf,
    path: PathBuf,
    options: Options,
    // Before the writer: the connection closed last is the one that may fold the log into the database.
    readers: Mutex<Vec<Connection>>,
    writer: Mutex<Option<Connection>>,
    /// The thread that is in a write.
    writing: Mutex<Option<ThreadId>>,
}

impl SqliteStore {
    /// Opens the database of a data directory, making and migrating it when needed.
    ///
    /// # Errors
    /// [`StoreError::Newer`], [`StoreError::Damaged`], [`StoreError::Io`], [`StoreError::DiskFull`], or
    /// [`StoreError::Busy`] when another process migrates for longer than the time-out. A newer or damaged file is left
    /// as it is.
    pub fn open(data_dir: &Path, options: Options) -> StoreResult<Self> {
        blobs::make_folder(data_dir)?;
        let path = data_dir.join(FILE);
        make_file(&path)?;
        let store = Self {
            data_dir: data_dir.to_owned(),
            path,
            options,
            readers: Mutex::default(),
            writer: Mutex::default(),
            writing: Mutex::default(),
        };
        let conn = store.connect(Use::Read)?;
        if let Standing::Behind { .. } = migrate::standing(&conn, &store.path, MIGRATIONS)? {
            let locks = store.locks()?;
            let mut writer = store.connect(Use::Write)?;
            migrate::migrate(
                &mut writer,
                &store.path,
                &locks.join("migrate.lock"),
                options.busy_timeout,
                MIGRATIONS,
            )?;
        }
        store.put_back(conn);
        Ok(store)
    }

    fn connect(&self, purpose: Use) -> StoreResult<Connection> {
        connect(&self.path, self.options, purpose).map_err(|e| error::sql(&self.path, e))
    }

    fn reader(&self) -> StoreResult<Connection> {
        let kept = lock(&self.readers).pop();
        kept.map_or_else(|| self.connect(Use::Read), Ok)
    }

    fn put_back(&self, conn: Connection) {
        let mut readers = lock(&self.readers);
        if readers.len() < KEPT_READERS {
            readers.push(conn);
        }
    }

    fn locks(&self) -> StoreResult<PathBuf> {
        let locks = self.data_dir.join("locks");
        blobs::make_folder(&locks)?;
        Ok(locks)
    }

    fn lock_path(&self, plan: PlanId) -> PathBuf {
        self.data_dir.join("locks").join(format!("{plan}.lock"))
    }

    fn next_epoch(&self, plan: PlanId) -> StoreResult<u64> {
        let id = plan.to_string();
        self.in_write(|tx| {
            tx.run(|conn| {
                let known = conn.prepare_cached("SELECT 1 FROM plans WHERE plan_id = ?1")?.exists([&id])?;
                if !known {
                    return Err(Fault::other(format!("there is no plan {id}")));
                }
                let epoch: i64 = conn
                    .prepare_cached(
                        "INSERT INTO leases (plan_id, epoch) VALUES (?1, 1)
                         ON CONFLICT (plan_id) DO UPDATE SET epoch = epoch + 1 RETURNING epoch",
                    )?
                    .query_row(params![id], |row| row.get(0))?;
                u64::try_from(epoch).map_err(|_| {
                    error::damaged(&self.path, format!("the lease epoch of {id} is {epoch}")).into()
                })
            })
        })
    }

    /// One immediate transaction, in which only this thread of this process writes.
    fn in_write<T>(&self, f: impl FnOnce(&Tx<'_>) -> StoreResult<T>) -> StoreResult<T> {
        let me = std::thread::current().id();
        if *lock(&self.writing) == Some(me) {
            return Err(StoreError::Other("a write was begun inside a write".to_owned()));
        }
        let mut writer = lock(&self.writer);
        let _writing = Writing::begin(&self.writing, me);
        let conn = match &mut *writer {
            Some(conn) => conn,
            none => none.insert(self.connect(Use::Write)?),
        };
        let told = |e| error::sql(&self.path, e);
        let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(told)?;
        let tx = self.begin(&transaction)?;
        let out = f(&tx)?;
        tx.check_roots()?;
        transaction.commit().map_err(told)?;
        Ok(out)
    }

    /// A view, unless a newer program has migrated the database since it was opened.
    fn begin<'a>(&'a self, transaction: &'a Transaction<'a>) -> StoreResult<Tx<'a>> {
        let found: i64 = transaction
            .prepare_cached("PRAGMA user_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(|e| error::sql(&self.path, e))?;
        let known = migrate::version();
        if found > known {
            return Err(StoreError::Newer { found, known });
        }
        Ok(Tx::new(transaction, &self.path))
    }

    fn in_read<T>(&self, conn: &mut Connection, f: impl FnOnce(&Tx<'_>) -> StoreResult<T>) -> StoreResult<T> {
        let transaction = conn
            .transaction_with_behavior(TransactionBehavior::Deferred)
            .map_err(|e| error::sql(&self.path, e))?;
        f(&self.begin(&transaction)?)
    }
}

impl Store for SqliteStore {
    fn read(&self, f: &mut dyn FnMut(&dyn Reader) -> StoreResult<()>) -> StoreResult<()> {
        let mut conn = self.reader()?;
        let out = self.in_read(&mut conn, |tx| f(tx));
        self.put_back(conn);
        out
    }

    fn write(&self, f: &mut dyn FnMut(&dyn Writer) -> StoreResult<()>) -> StoreResult<()> {
        self.in_write(|tx| f(tx))
    }

    fn watch(&self) -> StoreResult<Box<dyn Watch>> {
        let conn = self.connect(Use::Watch)?;
        let seen = data_version(&conn, &self.path)?;
        Ok(Box::new(VersionWatch { conn, path: self.path.clone(), seen }))
    }

    fn put_blob(&self, bytes: &[u8]) -> StoreResult<String> {
        blobs::put(&self.data_dir.join("blobs"), bytes)
    }

    fn put_blobs(&self, contents: &[&[u8]]) -> StoreResult<Vec<String>> {
        blobs::put_all(&self.data_dir.join("blobs"), contents)
    }

    fn blob(&self, hash: &str) -> StoreResult<Option<Vec<u8>>> {
        blobs::get(&self.data_dir.join("blobs"), hash)
    }

    fn try_lease(&self, plan: PlanId) -> StoreResult<Option<Box<dyn Lease>>> {
        self.locks()?;
        let Some(held) = LockFile::try_take(&self.lock_path(plan))? else {
            return Ok(None);
        };
        // After the lock, so that epochs rise in the order of holders.
        let epoch = self.next_epoch(plan)?;
        Ok(Some(Box::new(FileLease { epoch, _lock: held })))
    }

    fn copy_to(&self, path: &Path) -> StoreResult<()> {
        migrate::copy(&self.connect(Use::Write)?, path).map_err(|fault| fault.told(path))
    }

    fn is_leased(&self, plan: PlanId) -> StoreResult<bool> {
        is_held(&self.lock_path(plan))
    }
}

struct VersionWatch {
    conn: Connection,
    path: PathBuf,
    seen: i64,
}

impl Watch for VersionWatch {
    fn changed(&mut self) -> StoreResult<bool> {
        let now = data_version(&self.conn, &self.path)?;
        Ok(std::mem::replace(&mut self.seen, now) != now)
    }
}

fn data_version(conn: &Connection, path: &Path) -> StoreResult<i64> {
    conn.prepare_cached("PRAGMA data_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(|e| error::sql(path, e))
}

/// Says which thread writes, for as long as it does.
struct Writing<'a>(&'a Mutex<Option<ThreadId>>);

impl<'a> Writing<'a> {
    fn begin(slot: &'a Mutex<Option<ThreadId>>, thread: ThreadId) -> Self {
        *lock(slot) = Some(thread);
        Self(slot)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}

/// A panic of a caller's closure leaves nothing half done: its transaction was rolled back.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Write,
    Watch,
}

pub(crate) fn connect(path: &Path, options: Options, purpose: Use) -> rusqlite::Result<Connection> {
    let access = match purpose {
        Use::Read | Use::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Use::Watch => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    // No SQLITE_OPEN_CREATE: a file is made by `make_file` alone, with its permissions.
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(options.busy_timeout)?;
    conn.set_prepared_statement_cache_capacity(96);
    match purpose {
        // A commit is on the disk when it returns: NORMAL could lose the last ones to a power cut.
        Use::Write => conn.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;")?,
        // A command that only reads does not stop to fold a writer's log into the database when it ends.
        Use::Read | Use::Watch => {
            conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            conn.pragma_update(None, "query_only", true)?;
        }
    }
    Ok(conn)
}

/// Makes an empty database file unless there is one, and refuses a log that lost its database.
fn make_file(path: &Path) -> StoreResult<()> {
    // Closing a descriptor of a file drops all locks the process has on it, SQLite's too: nobody opens while it is made.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = lock(&MAKING);
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let size = |path: &Path| fs::metadata(path).map(|m| m.len());
    // The log first: a new database has its first page before it has a log.
    let log_size = size(Path::new(&log)).unwrap_or(0);
    let database_size = match size(path) {
        Ok(size) => Some(size),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(error::io(path, &e)),
    };
    if log_size > 0 && database_size.unwrap_or(0) == 0 {
        // SQLite would delete the log, and with it the last commits.
        return Err(error::damaged(path, "it is missing or empty, but its log (-wal) is there"));
    }
    // One that is empty may be what a process left that was killed while it made it, unless it held something before.
    if database_size == Some(0) && has_blobs(path) {
        return Err(error::damaged(path, "it is empty, but contents it named (blobs/) are there"));
    }
    if database_size.is_none() { create_empty(path) } else { Ok(()) }
}

fn has_blobs(database: &Path) -> bool {
    let blobs = database.with_file_name("blobs");
    fs::read_dir(blobs).is_ok_and(|mut entries| entries.next().is_some())
}

/// Makes an empty file for the user only; one that exists is left alone.
pub(crate) fn create_empty(path: &Path) -> StoreResult<()> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(error::io(path, &e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agents_domain::event::NewEvent;
    use agents_domain::ports::store::StoreExt;

    use crate::testing::{at, fill};

    fn store(folder: &tempfile::TempDir) -> SqliteStore {
        SqliteStore::open(folder.path(), Options::default()).unwrap()
    }

    fn pragma(conn: &Connection, name: &str) -> i64 {
        conn.pragma_query_value(None, name, |row| row.get(0)).unwrap()
    }

    // STORE-003
    #[test]
    fn every_commit_is_synced_and_keys_are_enforced() {
        let folder = tempfile::tempdir().unwrap();
        let conn = store(&folder).connect(Use::Write).unwrap();
        let full = 2;
        assert_eq!((pragma(&conn, "synchronous"), pragma(&conn, "foreign_keys")), (full, 1));
        assert_eq!(pragma(&conn, "busy_timeout"), 5000);
    }

    #[test]
    fn a_full_disk_is_told_and_what_was_begun_is_rolled_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let event = NewEvent::new("test.big", serde_json::json!({ "text": "x".repeat(9_000) }));
        store.transact(|w| w.append_event(&event, at(1))).unwrap();
        let set_limit = |pages: i64| {
            let writer = lock(&store.writer);
            writer.as_ref().unwrap().pragma_update(None, "max_page_count", pages).unwrap();
        };
        // SQLite reports its own limit as it does a full disk.
        let pages = pragma(lock(&store.writer).as_ref().unwrap(), "page_count");
        set_limit(pages + 3);
        let mut after_the_first = Vec::new();
        let full = store.transact(|w| {
            w.append_event(&event, at(2))?;
            let second = w.append_event(&event, at(3));
            // A caller that carries on must not write outside of any transaction.
            after_the_first = vec![second.map(drop), w.append_event(&event, at(4)).map(drop)];
            Ok(())
        });
        assert_eq!(after_the_first[0], Err(StoreError::DiskFull(folder.path().display().to_string())));
        assert!(after_the_first[1].is_err(), "{after_the_first:?}");
        assert!(full.is_err() || store.view(|r| r.last_event()) == Ok(2));
        set_limit(100_000);
        let last = store.view(|r| r.last_event()).unwrap();
        assert_eq!(store.transact(|w| w.append_event(&event, at(5))), Ok(last + 1));
    }

    #[test]
    fn a_panic_in_a_write_rolls_back_and_the_store_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let event = NewEvent::new("test.event", serde_json::json!({}));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _: StoreResult<()> = store.transact(|w| {
                w.append_event(&event, at(1))?;
                panic!("a defect of the caller");
            });
        }));
        assert!(panicked.is_err());
        assert_eq!(store.view(|r| r.last_event()), Ok(0));
        assert_eq!(store.transact(|w| w.append_event(&event, at(1))), Ok(1));
    }

    #[test]
    fn readers_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        fill(&store, 1, 1).unwrap();
        let reader = store.reader().unwrap();
        assert!(reader.execute("DELETE FROM events", []).is_err());
    }
}
