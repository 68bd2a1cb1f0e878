//! Directories of a sandbox: what is in them, and making and removing them.

use std::path::Path;

use nix::sys::stat::SFlag;
use serde::{Deserialize, Serialize};

use super::Worktree;
use crate::error::{Result, SandboxError};
use crate::paths::{PathRefusal, is_git_directory, kind};

/// What is in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes, for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Other,
}

impl Worktree {
    /// The link-free path of a directory inside the sandbox; empty for the sandbox itself.
    fn directory(&self, given: &str) -> Result<String> {
        if matches!(given.trim_end_matches('/'), "" | ".") {
            return Ok(String::new());
        }
        self.root.canonical(given, true)
    }

    /// What is in a directory, by name, git's own files left out. `""` and `.` are the sandbox itself.
    ///
    /// # Errors
    /// Whatever leaves the sandbox, is not there, or is no directory.
    pub fn list_directory(&self, given: &str) -> Result<Vec<DirectoryEntry>> {
        let path = self.directory(given)?;
        let found = self.root.list(Path::new(&path))?;
        let found = found.ok_or_else(|| SandboxError::NotFound { path: given.to_owned() })?;
        let mut entries: Vec<DirectoryEntry> = found
            .into_iter()
            .filter(|(name, _)| !is_git_directory(name))
            .map(|(name, stat)| {
                let kind = match kind(&stat) {
                    SFlag::S_IFREG => EntryKind::File,
                    SFlag::S_IFDIR => EntryKind::Directory,
                    SFlag::S_IFLNK => EntryKind::Link,
                    _ => EntryKind::Other,
                };
                DirectoryEntry {
                    name: name.to_string_lossy().into_owned(),
                    kind,
                    size: (kind == EntryKind::File).then(|| u64::try_from(stat.st_size).unwrap_or(0)),
                }
            })
            .collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Creates a directory and its parents. Git keeps no empty directories: it is gone after a restore.
    pub fn create_dir_all(&self, path: &str) -> Result<()> {
        let path = self.writable_path(path, true)?;
        self.root.create_dir_all(Path::new(&path))
    }

    /// Removes a directory that holds no file, with the empty directories in it.
    ///
    /// # Errors
    /// [`PathRefusal::NotEmpty`] when there is a file in it.
    pub fn remove_empty_directory(&self, given: &str) -> Result<()> {
        let path = self.writable_path(given, true)?;
        self.remove_empty(&path)
    }

    fn remove_empty(&self, path: &str) -> Result<()> {
        let not_empty = || SandboxError::refused(path, PathRefusal::NotEmpty);
        for entry in self.list_directory(path)? {
            match entry.kind {
                EntryKind::Directory => self.remove_empty(&format!("{path}/{}", entry.name))?,
                _ => return Err(not_empty()),
            }
        }
        if self.root.remove_directory(Path::new(path))? { Ok(()) } else { Err(not_empty()) }
    }

    /// The link-free path of what is given, which a tool means to read. It need not exist.
    ///
    /// # Errors
    /// Whatever leaves the sandbox.
    pub fn readable_path(&self, given: &str) -> Result<String> {
        self.directory(given)
    }
}
