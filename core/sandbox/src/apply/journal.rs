//! The journal of one apply: what is to happen, on the disk before it happens.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use agents_domain::changes::FileDiff;
use agents_domain::ids::PlanId;
use serde::{Deserialize, Serialize};

use super::preflight::{EntryChange, FileChange};
use super::{Applied, ApplyError, ApplyMode};
use crate::disk::write_durably;
use crate::error::{Result, SandboxError};
use crate::git::{CommitId, ObjectId};
use crate::paths::Entry;

const VERSION: u32 = 1;

/// How far an apply got.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub(super) enum Phase {
    /// The lock may be held; nothing else has happened.
    Locking,
    /// The change is being made.
    Intent(Box<Intent>),
    /// The change is being taken back.
    Undoing { intent: Box<Intent>, reason: String },
    /// The change is made.
    Done { intent: Box<Intent>, applied: Box<Applied> },
}

/// Everything needed to finish or take back an apply without looking at the plan again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) mode: ApplyMode,
    pub(super) head_before: CommitId,
    /// The short name of the branch that was checked out, if any.
    pub(super) branch_before: Option<String>,
    pub(super) commit: Option<CommitId>,
    pub(super) branch: Option<String>,
    pub(super) new_branch: bool,
    pub(super) files: Vec<JournaledFile>,
    pub(super) index: Vec<JournaledEntry>,
    pub(super) diff: Vec<FileDiff>,
    /// The commit's note.
    #[serde(default)]
    pub(super) note: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct JournaledFile {
    pub(super) path: String,
    before: Option<Kind>,
    after: Option<Kind>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    File,
    Executable,
    Link,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct JournaledEntry {
    pub(super) path: String,
    pub(super) before: Option<(String, ObjectId)>,
    pub(super) after: Option<(String, ObjectId)>,
}

impl From<EntryChange> for JournaledEntry {
    fn from(change: EntryChange) -> Self {
        Self { path: change.path, before: change.before, after: change.after }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    version: u32,
    plan: PlanId,
    repository: PathBuf,
    #[serde(flatten)]
    phase: Phase,
}

/// A journal directory, locked against other processes while this value lives.
#[derive(Debug)]
pub(super) struct Journal {
    dir: PathBuf,
    pub(super) plan: PlanId,
    pub(super) repository: PathBuf,
    lock: Held,
}

/// The lock file; given up explicitly, since a process that is just being started may still share it.
#[derive(Debug)]
struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Journal {
    /// Begins a journal; refused when the directory holds one already.
    pub(super) fn begin(dir: &Path, plan: PlanId, repository: &Path) -> Result<Self, ApplyError> {
        fs::create_dir_all(dir).map_err(SandboxError::io("create", dir))?;
        let lock = lock(dir)?;
        if record_path(dir).exists() {
            return Err(ApplyError::Pending);
        }
        let journal = Self { dir: dir.to_owned(), plan, repository: repository.to_owned(), lock };
        journal.write(&Phase::Locking)?;
        Ok(journal)
    }

    /// Opens what an earlier process left; `None` when there is nothing.
    pub(super) fn open(dir: &Path) -> Result<Option<(Self, Phase)>, ApplyError> {
        if !dir.exists() {
            return Ok(None);
        }
        let lock = lock(dir)?;
        let Some(record) = read_record(dir)? else { return Ok(None) };
        let journal = Self { dir: dir.to_owned(), plan: record.plan, repository: record.repository, lock };
        Ok(Some((journal, record.phase)))
    }

    /// Replaces the record, on the disk before this returns.
    pub(super) fn write(&self, phase: &Phase) -> Result<()> {
        let record = Record {
            version: VERSION,
            plan: self.plan,
            repository: self.repository.clone(),
            phase: phase.clone(),
        };
        let path = record_path(&self.dir);
        let json = serde_json::to_vec(&record)
            .map_err(|error| SandboxError::Damaged { path: path.clone(), detail: error.to_string() })?;
        write_durably(&path, &json)
    }

    /// Keeps the bytes of all files before and after.
    pub(super) fn save(&self, files: &[FileChange]) -> Result<Vec<JournaledFile>> {
        let mut saved = Vec::with_capacity(files.len());
        for (number, file) in files.iter().enumerate() {
            saved.push(JournaledFile {
                path: file.path.clone(),
                before: self.save_one(number, "before", file.before.as_ref())?,
                after: self.save_one(number, "after", file.after.as_ref())?,
            });
        }
        Ok(saved)
    }

    fn save_one(&self, number: usize, side: &str, entry: Option<&Entry>) -> Result<Option<Kind>> {
        let Some(entry) = entry else { return Ok(None) };
        let path = self.content_path(number, side);
        let write = || -> io::Result<()> {
            fs::write(&path, entry.bytes())?;
            File::open(&path)?.sync_data()
        };
        write().map_err(SandboxError::io("write", &path))?;
        Ok(Some(match entry {
            Entry::Link(_) => Kind::Link,
            Entry::File { executable: true, .. } => Kind::Executable,
            Entry::File { .. } => Kind::File,
        }))
    }

    /// The bytes of a file before and after.
    pub(super) fn load(&self, number: usize, file: &JournaledFile) -> Result<FileChange> {
        let load = |side: &str, kind: Option<Kind>| -> Result<Option<Entry>> {
            let Some(kind) = kind else { return Ok(None) };
            let path = self.content_path(number, side);
            let bytes = fs::read(&path).map_err(SandboxError::io("read", &path))?;
            Ok(Some(match kind {
                Kind::Link => Entry::Link(OsStr::from_bytes(&bytes).to_owned()),
                Kind::File => Entry::File { bytes, executable: false },
                Kind::Executable => Entry::File { bytes, executable: true },
            }))
        };
        Ok(FileChange {
            path: file.path.clone(),
            before: load("before", file.before)?,
            after: load("after", file.after)?,
        })
    }

    fn content_path(&self, number: usize, side: &str) -> PathBuf {
        self.dir.join(format!("{number}.{side}"))
    }

    /// Removes the journal.
    pub(super) fn end(self) -> Result<()> {
        let Self { dir, lock, .. } = self;
        // The record first: without it the rest means nothing.
        let path = record_path(&dir);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(SandboxError::io("remove", path)(error));
            }
            _ => {}
        }
        let removed = fs::remove_dir_all(&dir).map_err(SandboxError::io("remove", &dir));
        drop(lock);
        removed
    }
}

/// How far the apply of a journal has got, whoever holds it; the record is replaced in one step.
pub(super) fn peek(dir: &Path) -> Result<Option<Phase>> {
    Ok(read_record(dir)?.map(|record| record.phase))
}

fn read_record(dir: &Path) -> Result<Option<Record>> {
    let path = record_path(dir);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SandboxError::io("read", path)(error)),
    };
    let damaged = |detail: String| SandboxError::Damaged { path: path.clone(), detail };
    let record: Record = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if record.version != VERSION {
        return Err(damaged(format!("version {} is not known, expected {VERSION}", record.version)));
    }
    Ok(Some(record))
}

fn record_path(dir: &Path) -> PathBuf {
    dir.join("apply.json")
}

/// Held by the operating system for the process, so that kill -9 releases it.
fn lock(dir: &Path) -> Result<Held, ApplyError> {
    let path = dir.join("apply.lock");
    let file = File::create(&path).map_err(SandboxError::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(Held(file)),
        Err(std::fs::TryLockError::WouldBlock) => Err(ApplyError::Running),
        Err(std::fs::TryLockError::Error(error)) => Err(SandboxError::io("lock", path)(error).into()),
    }
}
