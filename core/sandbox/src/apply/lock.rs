//! Holds a checkout's `index.lock` as git's own commands do, so that none of them works on it meanwhile.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agents_domain::ids::PlanId;

use crate::disk::same_file;
use crate::error::{Result, SandboxError};

/// How long another git process may hold the lock before we give up.
const PATIENCE: Duration = Duration::from_secs(3);

/// The lock, released when dropped.
///
/// It is a hard link to a marker file of ours: after kill -9 the lock stays, and the marker tells ours from one that
/// belongs to a living git process.
pub(super) struct IndexLock {
    lock: PathBuf,
    marker: PathBuf,
}

impl IndexLock {
    /// Takes the lock, waiting a little for a git process that holds it.
    pub(super) fn acquire(git_dir: &Path, scratch: &Path, plan: PlanId) -> Result<Self> {
        fs::create_dir_all(scratch).map_err(SandboxError::io("create", scratch))?;
        let this = Self::at(git_dir, scratch, plan);
        let text = format!("plan {plan} is being applied by process {}\n", std::process::id());
        fs::write(&this.marker, &text).map_err(SandboxError::io("write", &this.marker))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match this.place(&text) {
                Ok(()) => return Ok(this),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if Instant::now() >= deadline {
                        return Err(SandboxError::Locked { path: this.lock.clone() });
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => return Err(SandboxError::io("lock", &this.lock)(error)),
            }
        }
    }

    fn place(&self, text: &str) -> io::Result<()> {
        match fs::hard_link(&self.marker, &self.lock) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                // A file system without hard links: the same text marks the lock as ours.
                File::create_new(&self.lock)?.write_all(text.as_bytes())
            }
            linked => linked,
        }
    }

    fn is_ours(&self) -> bool {
        let same_text = || {
            let text = fs::read(&self.marker).unwrap_or_default();
            !text.is_empty() && fs::read(&self.lock).is_ok_and(|lock| lock == text)
        };
        same_file(&self.lock, &self.marker) || same_text()
    }

    /// Releases a lock that a killed apply of this plan left.
    pub(super) fn release_left(git_dir: &Path, scratch: &Path, plan: PlanId) {
        drop(Self::at(git_dir, scratch, plan));
    }

    fn at(git_dir: &Path, scratch: &Path, plan: PlanId) -> Self {
        Self { lock: git_dir.join("index.lock"), marker: scratch.join(format!("apply-{plan}.lock")) }
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = fs::remove_file(&self.lock);
        }
        let _ = fs::remove_file(&self.marker);
        if let Some(scratch) = self.marker.parent() {
            // Only when nothing else is in it.
            let _ = fs::remove_dir(scratch);
        }
    }
}
