//! Lock files: who works on a plan, known for sure even after kill -9, because the kernel drops a dead process's locks.
//!
//! A lock file is removed by its holder while it still holds the lock. Somebody may then have opened the old file and
//! lock it a moment later, so whoever got a lock checks that its file is still the one at the path.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use agents_domain::ports::store::{Lease, StoreError};

use crate::error;

/// How often a lock is tried that is neither held nor stays ours. Chance decides each time, so a local file system needs
/// a few; one whose files have no lasting identity would need them for ever.
const ATTEMPTS: u32 = 10_000;

/// An exclusive lock on a file, given up and the file removed when dropped.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    /// Takes the lock, or `None` when somebody has it. The folder must exist.
    pub(crate) fn try_take(path: &Path) -> Result<Option<LockFile>, StoreError> {
        for _ in 0..ATTEMPTS {
            let file = open(path).map_err(|e| error::io(path, &e))?;
            match file.try_lock() {
                Ok(()) if is_at(&file, path) => return Ok(Some(LockFile { file, path: path.to_owned() })),
                // The holder before removed it; there may be a new one by now.
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) => return Err(error::io(path, &e)),
            }
            // Only a holder keeps a shared lock out; those who merely look (`is_held`) do not.
            match file.try_lock_shared() {
                Ok(()) => {
                    drop(file);
                    std::thread::yield_now();
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) => return Err(error::io(path, &e)),
            }
        }
        Err(StoreError::Io {
            path: path.display().to_string(),
            problem: "it does not stay the same file while it is locked; use a --data-dir on a local disk"
                .to_owned(),
        })
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            // A file that stays behind does no harm.
            let _ = fs::remove_file(&self.path);
        }
        // Closing would not do while a child process that is just being started still has a copy of the descriptor.
        let _ = self.file.unlock();
    }
}

/// Whether somebody holds the lock; makes no file.
pub(crate) fn is_held(path: &Path) -> Result<bool, StoreError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(error::io(path, &e)),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = file.unlock();
            Ok(false)
        }
        // The lock of a file that is no longer at the path is one being given up.
        Err(TryLockError::WouldBlock) => Ok(is_at(&file, path)),
        Err(TryLockError::Error(e)) => Err(error::io(path, &e)),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// A held plan.
#[derive(Debug)]
pub(crate) struct FileLease {
    pub(crate) epoch: u64,
    pub(crate) _lock: LockFile,
}

impl Lease for FileLease {
    fn epoch(&self) -> u64 {
        self.epoch
    }
}
