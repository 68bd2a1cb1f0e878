//! Which servers run, for other processes of the same user: a small file for each, in a folder all of them know.
//!
//! `agents diagnostics` reads them, and whoever removes a server from the registry ends those that run. The owner of an
//! ended server is told by a second file, so that it does not start it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use agents_domain::QualifiedName;
use agents_domain::ports::language_servers::RunningServer;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::activity;

/// How long a server may take to leave when it is asked to by a signal.
const GRACE: Duration = Duration::from_secs(2);

/// What is noted of a running server.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    server: QualifiedName,
    root: PathBuf,
    /// Its process, which is also the id of its group.
    pid: i32,
    /// When the system says that process was started: another process may get its id later.
    born: u64,
    /// The process that runs it.
    owner: u32,
    start_ms: u64,
    restarts: u32,
    #[serde(default)]
    warm: bool,
}

/// The note of a server that runs; gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Note {
    file: PathBuf,
}

impl Note {
    /// Notes a server that somebody works with; `None` where that is not possible, which harms nothing.
    pub(crate) fn write(
        folder: &Path,
        server: &QualifiedName,
        root: &Path,
        pid: i32,
        start: Duration,
        restarts: u32,
    ) -> Option<Self> {
        Self::write_entry(folder, server, (root, pid), start, restarts, false)
    }

    /// Notes one that waits for somebody.
    pub(crate) fn write_warm(
        folder: &Path,
        server: &QualifiedName,
        root: &Path,
        pid: i32,
        start: Duration,
    ) -> Option<Self> {
        Self::write_entry(folder, server, (root, pid), start, 0, true)
    }

    fn write_entry(
        folder: &Path,
        server: &QualifiedName,
        (root, pid): (&Path, i32),
        start: Duration,
        restarts: u32,
        warm: bool,
    ) -> Option<Self> {
        let entry = Entry {
            server: server.clone(),
            root: root.to_owned(),
            pid,
            born: activity::born(pid)?,
            owner: std::process::id(),
            start_ms: u64::try_from(start.as_millis()).unwrap_or(u64::MAX),
            restarts,
            warm,
        };
        fs::create_dir_all(folder).ok()?;
        let note = Self { file: folder.join(format!("{pid}.json")) };
        let _ = fs::remove_file(note.tombstone());
        fs::write(&note.file, serde_json::to_vec(&entry).ok()?).ok()?;
        Some(note)
    }

    fn tombstone(&self) -> PathBuf {
        self.file.with_extension("ended")
    }

    /// Whether somebody has ended it for good.
    pub(crate) fn is_ended(&self) -> bool {
        self.tombstone().exists()
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
        let _ = fs::remove_file(self.tombstone());
    }
}

/// The notes of servers that really run, by process id; those of servers that are gone are removed.
fn entries(folder: &Path) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = file.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Entry>(&bytes).ok());
        match read {
            Some(entry) if activity::born(entry.pid) == Some(entry.born) => found.push(entry),
            // Half written: its owner lives, and is about to finish it.
            None if file.metadata().is_ok_and(|meta| meta.len() == 0) => {}
            _ => drop(Note { file: path }),
        }
    }
    found.sort_by_key(|entry| entry.pid);
    found
}

/// The servers that run.
pub(crate) fn running(folder: &Path) -> Vec<RunningServer> {
    let seen = |entry: Entry| RunningServer {
        resident_bytes: activity::usage(entry.pid).map(|usage| usage.resident),
        server: entry.server,
        root: entry.root,
        pid: entry.pid.unsigned_abs(),
        owner: entry.owner,
        start_ms: entry.start_ms,
        restarts: entry.restarts,
        warm: entry.warm,
    };
    entries(folder).into_iter().map(seen).collect()
}

/// Ends every running instance of a server, and says how many there were.
pub(crate) fn end(folder: &Path, server: &QualifiedName) -> usize {
    let mut left: Vec<Entry> = entries(folder).into_iter().filter(|entry| entry.server == *server).collect();
    let ended = left.len();
    for entry in &left {
        let _ = fs::write(folder.join(format!("{}.ended", entry.pid)), b"");
        let _ = killpg(Pid::from_raw(entry.pid), Signal::SIGTERM);
    }
    let until = Instant::now() + GRACE;
    while !left.is_empty() && Instant::now() < until {
        thread::sleep(Duration::from_millis(20));
        left.retain(|entry| activity::born(entry.pid) == Some(entry.born));
    }
    for entry in left {
        let _ = killpg(Pid::from_raw(entry.pid), Signal::SIGKILL);
    }
    ended
}
