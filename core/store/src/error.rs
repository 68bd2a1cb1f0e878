//! From what SQLite and the file system say to what the user is told.

use std::io;
use std::path::Path;

use agents_domain::ports::store::StoreError;
use rusqlite::ErrorCode;
use rusqlite::ffi;

/// A failure inside a repository function, before it is told in the words of the port.
#[derive(Debug)]
pub(crate) enum Fault {
    /// From SQLite, or a value in a column that cannot be read.
    Sql(rusqlite::Error),
    /// A record that cannot be read or written as JSON.
    Json(serde_json::Error),
    /// Already told.
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Fault {
    /// A fact that shows a defect of the caller.
    pub(crate) fn other(problem: impl Into<String>) -> Self {
        Self::Store(StoreError::Other(problem.into()))
    }

    /// Turns a taken key into [`StoreError::Duplicate`] of `what`.
    pub(crate) fn or_duplicate(self, what: impl FnOnce() -> String) -> Self {
        match self {
            Self::Sql(rusqlite::Error::SqliteFailure(error, _))
                if [ffi::SQLITE_CONSTRAINT_UNIQUE, ffi::SQLITE_CONSTRAINT_PRIMARYKEY]
                    .contains(&error.extended_code) =>
            {
                Self::Store(StoreError::Duplicate(what()))
            }
            fault => fault,
        }
    }

    /// What the port says, for the database at `path`.
    pub(crate) fn told(self, path: &Path) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sql(error) => sql(path, error),
            Self::Json(error) => damaged(path, format!("a record cannot be read: {error}")),
        }
    }
}

/// The database or a blob at `path` is not what it should be.
pub(crate) fn damaged(path: &Path, problem: impl Into<String>) -> StoreError {
    StoreError::Damaged { path: path.display().to_string(), problem: problem.into() }
}

/// What SQLite said of the database at `path`.
pub(crate) fn sql(path: &Path, error: rusqlite::Error) -> StoreError {
    use rusqlite::Error as E;
    let (failure, message) = match error {
        E::SqliteFailure(failure, message) => {
            let message = message.unwrap_or_else(|| E::SqliteFailure(failure, None).to_string());
            (failure, message)
        }
        E::SqlInputError { error, msg, .. } => (error, msg),
        E::FromSqlConversionFailure(..)
        | E::IntegralValueOutOfRange(..)
        | E::InvalidColumnType(..)
        | E::Utf8Error(..) => return damaged(path, format!("a record cannot be read: {error}")),
        _ => return StoreError::Other(format!("the database refused a statement: {error}")),
    };
    let io = |problem: String| StoreError::Io { path: path.display().to_string(), problem };
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            StoreError::Busy
        }
        ErrorCode::DiskFull => StoreError::DiskFull(folder(path)),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => damaged(path, message),
        ErrorCode::SystemIoFailure if failure.extended_code == ffi::SQLITE_IOERR_CORRUPTFS => {
            damaged(path, message)
        }
        ErrorCode::SystemIoFailure => {
            io(format!("reading or writing failed ({message}); see whether the disk is full"))
        }
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => io(format!(
            "it cannot be opened for writing ({message}); check that it and its folder are writable"
        )),
        ErrorCode::ConstraintViolation => {
            StoreError::Other(format!("the database refused a change: {message}"))
        }
        _ => StoreError::Other(format!("the database refused a statement: {message}")),
    }
}

/// What the file system said of `path`.
pub(crate) fn io(path: &Path, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull(folder(path)),
        _ => StoreError::Io { path: path.display().to_string(), problem: words(error) },
    }
}

/// What the file system says, without the number it says it with.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        _ => error.to_string(),
    }
}

fn folder(path: &Path) -> String {
    path.parent().unwrap_or(path).display().to_string()
}
