//! Brings the user's index along: only the touched entries, only where they still are what they were.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::journal::JournaledEntry;
use crate::disk::copy_with_times;
use crate::error::{Result, SandboxError};
use crate::git::{Git, ObjectId, nul_fields, os_path};
use crate::repository::Repository;

/// Which way entries are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Back,
}

type Side = Option<(String, ObjectId)>;

impl JournaledEntry {
    fn sides(&self, direction: Direction) -> (&Side, &Side) {
        match direction {
            Direction::Forward => (&self.before, &self.after),
            Direction::Back => (&self.after, &self.before),
        }
    }
}

/// Changes entries of the user's index in one step; the caller holds its lock. Returns the paths of entries that are
/// neither what they were nor what they become; those are left.
pub(super) fn update(
    repository: &Repository,
    scratch: &Path,
    entries: &[JournaledEntry],
    direction: Direction,
) -> Result<Vec<String>> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let index = repository.index_path();
    let new = scratch.join("index");
    let permissions = match copy_with_times(&index, &new) {
        Ok(()) => Some(fs::metadata(&index).map_err(SandboxError::io("look at", &index))?.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(SandboxError::io("copy", &index)(error)),
    };
    let git = repository.git.with_index(&new);
    let mut input = Vec::new();
    let mut left = Vec::new();
    for (entry, now) in entries.iter().zip(current(&git, entries)?) {
        let (from, to) = entry.sides(direction);
        if now == *to {
            continue;
        }
        if now != *from {
            left.push(entry.path.clone());
            continue;
        }
        let (mode, id) = match (to, from) {
            (Some((mode, id)), _) => (mode.as_str(), id.as_str().to_owned()),
            (None, Some((_, id))) => ("0", "0".repeat(id.as_str().len())),
            (None, None) => continue,
        };
        input.extend_from_slice(format!("{mode} {id}\t{}\0", entry.path).as_bytes());
    }
    if !input.is_empty() {
        git.converting(&["update-index", "-z", "--index-info"])?.stdin(input).run()?;
    }
    // With fresh file times in it, the next `git status` need not read the files; "needs update" is no failure.
    git.converting(&["update-index", "-q", "--refresh"])?.accept(&[0, 1]).run()?;
    let swap = || -> io::Result<()> {
        if let Some(permissions) = permissions {
            fs::set_permissions(&new, permissions)?;
        }
        File::open(&new)?.sync_all()?;
        fs::rename(&new, &index)
    };
    swap().map_err(SandboxError::io("replace", &index))?;
    Ok(left)
}

/// What the index holds at each entry's path; something of its own for an unresolved conflict.
fn current(git: &Git, entries: &[JournaledEntry]) -> Result<Vec<Side>> {
    let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    let output = git.run_on_paths(&["ls-files", "-z", "-s"], &paths)?;
    let places: HashMap<&Path, usize> =
        paths.iter().enumerate().map(|(at, path)| (Path::new(*path), at)).collect();
    let mut found: Vec<Side> = vec![None; entries.len()];
    for field in nul_fields(&output) {
        // `<mode> <id> <stage>`, a tab, the path.
        let Some(tab) = field.iter().position(|b| *b == b'\t') else { continue };
        let Some(at) = places.get(os_path(&field[tab + 1..])).copied() else { continue };
        let head = String::from_utf8_lossy(&field[..tab]);
        let [mode, id, stage] = head.split(' ').collect::<Vec<_>>()[..] else { continue };
        let mode = if stage == "0" { mode.to_owned() } else { format!("{mode}/{stage}") };
        found[at] = Some((mode, crate::git::parse_id("git ls-files", id)?));
    }
    Ok(found)
}
