//! The database of an index: where it is, how it is opened, and when it has to be made anew.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_domain::ports::code_index::{IndexError, IndexResult};
use agents_grammars::Language;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};
use sha2::{Digest, Sha256};

const SCHEMA: &str = include_str!("schema.sql");

/// Where the parts of an index are.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub database: PathBuf,
    pub lock: PathBuf,
}

impl Place {
    pub fn of(folder: &Path, root: &Path) -> Self {
        let name = hex(&Sha256::digest(root.as_os_str().as_encoded_bytes()))[..16].to_owned();
        Self { database: folder.join(format!("{name}.db")), lock: folder.join(format!("{name}.lock")) }
    }

    /// Takes the right to write, waiting for whoever has it. It is given back when the file is dropped, or the process
    /// ends.
    pub fn lock(&self) -> IndexResult<File> {
        if let Some(folder) = self.lock.parent() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| failure(folder, &error))?;
        }
        let file = File::options().create(true).truncate(false).write(true).open(&self.lock);
        let file = file.map_err(|error| failure(&self.lock, &error))?;
        file.lock().map_err(|error| failure(&self.lock, &error))?;
        Ok(file)
    }

    /// Whether somebody has the right to write now.
    pub fn is_locked(&self) -> bool {
        let free = File::open(&self.lock).is_ok_and(|file| file.try_lock().is_ok());
        !free && self.lock.exists()
    }

    pub fn inode(&self) -> Option<u64> {
        fs::metadata(&self.database).ok().map(|found| found.ino())
    }

    /// In bytes, with what is not yet folded in.
    pub fn size(&self) -> u64 {
        let size = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        size(&self.database) + size(&self.beside("-wal"))
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.database.clone().into_os_string();
        name.push(ending);
        name.into()
    }

    /// Removes the database. Only with the lock; who reads it goes on with what is no longer there.
    pub fn remove(&self) -> IndexResult<()> {
        for path in [self.database.clone(), self.beside("-wal"), self.beside("-shm")] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failure(&path, &error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// For reading; `Err` says why there is nothing to read.
    pub fn read(&self) -> Result<Connection, Unusable> {
        if !self.database.exists() {
            return Err(Unusable::Missing);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.database, flags)?;
        conn.busy_timeout(Duration::from_secs(2))?;
        conn.pragma_update(None, "cache_size", -16_384)?;
        match meta(&conn, "format")? {
            Some(found) if found == format() => Ok(conn),
            _ => Err(Unusable::Old),
        }
    }

    /// For writing, made when it is not there or of no use; why it was made anew. Only with the lock.
    pub fn write(&self, root: &Path) -> IndexResult<(Connection, Option<String>)> {
        let reason = match self.read() {
            Ok(conn) => return self.prepared(conn).map(|conn| (conn, None)),
            Err(Unusable::Missing) => None,
            Err(Unusable::Failed(error)) if !is_damage(&error) => return Err(self.storage(&error)),
            Err(unusable) => Some(unusable.to_string()),
        };
        self.remove()?;
        let made = Connection::open(&self.database).and_then(|mut conn| {
            conn.pragma_update(None, "page_size", 8192)?;
            conn.pragma_update(None, "journal_mode", "WAL")?;
            let tx = conn.transaction()?;
            tx.execute_batch(SCHEMA)?;
            set_meta(&tx, "root", &root.to_string_lossy())?;
            set_meta(&tx, "format", &format())?;
            tx.commit()?;
            Ok(conn)
        });
        let conn = made.map_err(|error| self.storage(&error))?;
        Ok((self.prepared(conn)?, reason))
    }

    fn prepared(&self, conn: Connection) -> IndexResult<Connection> {
        let set = || {
            conn.busy_timeout(Duration::from_secs(10))?;
            // A power cut may lose the last files, which the next scan reads again; it does not damage.
            conn.pragma_update(None, "synchronous", "NORMAL")?;
            conn.pragma_update(None, "cache_size", -65_536)?;
            conn.pragma_update(None, "temp_store", "MEMORY")?;
            conn.pragma_update(None, "wal_autocheckpoint", 4_000)?;
            conn.set_prepared_statement_cache_capacity(32);
            Ok(())
        };
        set().map_err(|error| self.storage(&error))?;
        Ok(conn)
    }

    pub fn storage(&self, error: &rusqlite::Error) -> IndexError {
        IndexError::Storage(format!("the index {}: {error}", self.database.display()))
    }
}

/// Why a database is of no use.
#[derive(Debug)]
pub(crate) enum Unusable {
    Missing,
    Old,
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Unusable {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("it was not there"),
            Self::Old => f.write_str("it was of another version"),
            Self::Failed(error) if is_damage(error) => write!(f, "it was damaged: {error}"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(failure, message) => {
            let broken = matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase);
            broken || message.as_deref().is_some_and(|message| message.starts_with("no such table"))
        }
        _ => false,
    }
}

/// What the contents depend on: another one means that they are to be made anew.
fn format() -> String {
    let mut hasher = Sha256::new();
    hasher.update(SCHEMA);
    hasher.update(env!("CARGO_PKG_VERSION"));
    for language in Language::ALL {
        hasher.update(language.query_source());
    }
    hex(&hasher.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(crate) fn meta(conn: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    conn.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).optional()
}

pub(crate) fn set_meta(conn: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    conn.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", [key, value]).map(drop)
}

fn failure(path: &Path, error: &io::Error) -> IndexError {
    IndexError::Storage(format!("{}: {error}", path.display()))
}
