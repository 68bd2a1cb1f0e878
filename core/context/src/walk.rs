//! Which files a folder holds, ignored ones and those of dependencies apart.

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use agents_domain::catalogue;
use agents_domain::ports::code_index::{IndexError, IndexResult};
use ignore::{DirEntry, WalkBuilder, WalkState};

/// What tells whether a file is another than it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub size: i64,
    pub mtime: i64,
    pub ctime: i64,
    pub inode: i64,
}

impl Stat {
    pub fn of(found: &Metadata) -> Self {
        let time = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Self {
            size: found.len() as i64,
            mtime: time(found.mtime(), found.mtime_nsec()),
            ctime: time(found.ctime(), found.ctime_nsec()),
            inode: found.ino() as i64,
        }
    }
}

/// A file of the folder.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub path: String,
    pub stat: Stat,
}

/// The files below `root`; with `only`, those at or below these paths. Links are not followed, and a file whose path is
/// not UTF-8 is left out: it cannot be named.
pub(crate) fn files(root: &Path, only: Option<&[String]>) -> IndexResult<Vec<Candidate>> {
    let unreadable = |error: &dyn std::fmt::Display| {
        IndexError::Folder(format!("cannot look into {}: {error}", root.display()))
    };
    // A folder that is away for a moment is not an empty one.
    std::fs::read_dir(root).map_err(|error| unreadable(&error))?;
    let dependencies: HashSet<&str> = catalogue::dependency_folders().into_iter().collect();
    let only: Option<Arc<[PathBuf]>> = only.map(|paths| paths.iter().map(|path| root.join(path)).collect());
    let wanted = only.clone();
    let mut walk = WalkBuilder::new(root);
    // What a folder ignores holds without git, too; a person's own global rules are not the folder's.
    walk.require_git(false).git_global(false).filter_entry(move |entry| {
        let path = entry.path();
        let on_the_way = wanted.as_ref().is_none_or(|paths| {
            paths.iter().any(|wanted| wanted.starts_with(path) || path.starts_with(wanted))
        });
        on_the_way && (entry.depth() == 0 || !is_dependency(entry, &dependencies))
    });
    if only.is_some() {
        return Ok(walk.build().flatten().filter_map(|entry| candidate(root, &entry)).collect());
    }
    let (found, files) = mpsc::channel();
    walk.threads(threads()).build_parallel().run(|| {
        let found = found.clone();
        Box::new(move |entry| {
            match entry {
                Ok(entry) => candidate(root, &entry).into_iter().for_each(|file| _ = found.send(file)),
                Err(error) => tracing::debug!(%error, "left out of the index"),
            }
            WalkState::Continue
        })
    });
    drop(found);
    let mut files: Vec<Candidate> = files.into_iter().collect();
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn is_dependency(entry: &DirEntry, dependencies: &HashSet<&str>) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
        && entry.file_name().to_str().is_some_and(|name| dependencies.contains(name))
}

fn candidate(root: &Path, entry: &DirEntry) -> Option<Candidate> {
    if !entry.file_type().is_some_and(|kind| kind.is_file()) {
        return None;
    }
    let path = entry.path().strip_prefix(root).ok()?.to_str()?.to_owned();
    Some(Candidate { path, stat: Stat::of(&entry.metadata().ok()?) })
}

pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(16)
}
