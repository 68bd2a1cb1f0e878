//! Writing the configuration file: one writer at a time, whole or not at all, for the user's eyes only.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agents_config::{Config, ConfigFile};
use agents_domain::{Error, ErrorKind, Result};

/// How long somebody else may hold a folder.
const PATIENCE: Duration = Duration::from_secs(5);

/// The configuration file that a configuration was looked for in.
pub(crate) fn path_of(config: &Config) -> PathBuf {
    PathBuf::from(config.text("core.config-path", None))
}

/// What the file says now; nothing when it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<ConfigFile>> {
    match agents_config::read_settings(path) {
        Ok(text) => Ok(Some(ConfigFile { path: path.to_owned(), text })),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error { kind: ErrorKind::Configuration, ..error }),
    }
}

/// A folder that others of us keep out of until this is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    held: File,
    path: PathBuf,
}

impl Folder {
    /// Makes the folder unless it is there, and waits until it is nobody else's.
    pub(crate) fn hold(path: &Path) -> Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| refused(path, "made", &e))?;
        let held = File::open(path).map_err(|e| refused(path, "read", &e))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match held.try_lock() {
                Ok(()) => return Ok(Self { held, path: path.to_owned() }),
                Err(TryLockError::Error(e)) => return Err(refused(path, "locked", &e)),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    let message = format!("another process is writing in {}; try again", path.display());
                    return Err(Error::new(ErrorKind::InvalidState, message));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Replaces a file of the folder: readers see the old one or the new one.
    pub(crate) fn replace(&self, name: &Path, text: &str) -> Result<()> {
        let path = self.path.join(name);
        // One name is enough, since only the holder of the folder writes it; what a killed writer left is overwritten.
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(".new");
        let temporary = self.path.join(temporary);
        let written = write_durably(&temporary, text).and_then(|()| fs::rename(&temporary, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary);
            return Err(refused(&path, "written", &error));
        }
        // The name itself; a file system that cannot do that has renamed all the same.
        let _ = self.held.sync_all();
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing would not do while a child process that is just being started still has a copy of the descriptor.
        let _ = self.held.unlock();
    }
}

fn write_durably(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The error for a path that cannot be made, read, written; names the path and says why in words people know.
pub(crate) fn refused(path: &Path, done: &str, error: &io::Error) -> Error {
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a part of the path is a file, not a directory".to_owned()
        }
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full".to_owned(),
        _ => error.to_string(),
    };
    Error::new(ErrorKind::Io, format!("{} cannot be {done}: {why}", path.display()))
}
