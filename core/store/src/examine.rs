//! A database and its lock files as somebody sees them who asks whether all is well, and who wants them gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use agents_domain::ids::PlanId;
use agents_domain::ports::store::{StoreError, StoreResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use crate::error;
use crate::leases::{LockFile, is_held};
use crate::migrate;
use crate::sqlite::{FILE, Options, Use, connect};

/// Problems of a damaged database that are listed.
const LISTED: u32 = 5;

/// What a look at a database found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// Its schema version; this program's is [`Examination::known_version`].
    pub version: i64,
    /// The schema version of this program.
    pub known_version: i64,
    /// Tables of ours.
    pub tables: u32,
    /// Bytes of the database and its log.
    pub bytes: u64,
    /// What is damaged, in SQLite's words; at most five.
    pub problems: Vec<String>,
    /// Everything was looked at; `false` when the time was up before.
    pub whole: bool,
}

/// The database of a data directory, whether it exists or not.
pub fn database_path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

/// Looks at the database of a data directory without changing it: whether it can be written, and for at most `budget`
/// whether it is sound.
///
/// # Errors
/// [`StoreError::Io`] when it is missing or cannot be written, [`StoreError::Busy`] when another process keeps it locked
/// for longer than the time-out, [`StoreError::Newer`], and [`StoreError::Damaged`] when it cannot even be opened.
pub fn examine(data_dir: &Path, options: Options, budget: Duration) -> StoreResult<Examination> {
    let path = database_path(data_dir);
    let told = |e| error::sql(&path, e);
    let mut bytes = fs::metadata(&path).map_err(|e| error::io(&path, &e))?.len();
    bytes += fs::metadata(path.with_extension("db-wal")).map_or(0, |m| m.len());
    let conn = connect(&path, options, Use::Write).map_err(told)?;
    // Whoever only looks does not fold a log into the database when it is done.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(told)?;
    migrate::standing(&conn, &path, migrate::MIGRATIONS)?;
    if conn.is_readonly("main").map_err(told)? {
        let problem = "it is read-only; check that it and its folder are writable".to_owned();
        return Err(StoreError::Io { path: path.display().to_string(), problem });
    }
    conn.execute_batch("BEGIN IMMEDIATE; ROLLBACK;").map_err(told)?;
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(told);
    let version = number("PRAGMA user_version")?;
    let tables = number(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'",
    )?;
    let (problems, whole) = check(&conn, budget).map_err(told)?;
    Ok(Examination {
        version,
        known_version: migrate::version(),
        tables: u32::try_from(tables).unwrap_or(u32::MAX),
        bytes,
        problems,
        whole,
    })
}

/// SQLite's own check, interrupted when it takes longer than the budget.
fn check(conn: &Connection, budget: Duration) -> rusqlite::Result<(Vec<String>, bool)> {
    let interrupt = conn.get_interrupt_handle();
    let (done, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(budget) == Err(mpsc::RecvTimeoutError::Timeout) {
                interrupt.interrupt();
            }
        });
        let found = conn.prepare(&format!("PRAGMA quick_check({LISTED})")).and_then(|mut statement| {
            statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()
        });
        drop(done);
        match found {
            Ok(lines) => Ok((lines.into_iter().filter(|line| line != "ok").collect(), true)),
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                Ok((Vec::new(), false))
            }
            Err(e) => Err(e),
        }
    })
}

/// Whether another process works with the database; one that has never read from it does not count. A database that is
/// damaged, or not there, counts as unused.
///
/// # Errors
/// [`StoreError::Io`] when it cannot be opened.
pub fn in_use(data_dir: &Path) -> StoreResult<bool> {
    let path = database_path(data_dir);
    if !path.exists() {
        return Ok(false);
    }
    // In exclusive mode a write-ahead log is opened only when no other connection has it open.
    let alone = connect(&path, Options { busy_timeout: Duration::ZERO }, Use::Write)
        .and_then(|conn| conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; ROLLBACK;"));
    match alone.map_err(|e| error::sql(&path, e)) {
        Ok(()) | Err(StoreError::Damaged { .. }) => Ok(false),
        Err(StoreError::Busy) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Lock files of plans that nobody holds: their holders were killed.
///
/// # Errors
/// When the folder cannot be read.
pub fn abandoned_locks(data_dir: &Path) -> StoreResult<Vec<(PlanId, PathBuf)>> {
    let folder = data_dir.join("locks");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(error::io(&folder, &e)),
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(Ok(plan)) = name.strip_suffix(".lock").map(str::parse::<PlanId>) else { continue };
        if !is_held(&path)? {
            found.push((plan, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a lock file that [`abandoned_locks`] named, unless somebody has taken it since; says whether it did.
///
/// # Errors
/// When it cannot be opened or removed.
pub fn remove_lock(path: &Path) -> StoreResult<bool> {
    if !path.exists() {
        return Ok(false);
    }
    // Removing is what a holder does when it gives the lock up.
    let taken = LockFile::try_take(path)?.is_some();
    Ok(taken && !path.exists())
}
