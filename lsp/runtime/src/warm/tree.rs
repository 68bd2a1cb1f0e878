//! What lies in a folder, to tell later what has changed: nobody tells a server that waits.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use agents_domain::catalogue;
use agents_domain::ports::language_servers::FileEventKind;

/// Folders of more files than this are not looked through.
const MAX_FILES: usize = 200_000;
/// How deep folders of dependencies are looked into: where installers add and remove.
const DEPENDENCY_DEPTH: usize = 3;
/// More changed files than this are not told one by one.
const MAX_CHANGES: usize = 2000;

/// What tells whether a file is another than it was: inode, size, times of change of the content and of anything.
type Stat = (u64, u64, i64, i64, i64, i64);

/// The files of a folder, and the folders of its dependencies.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tree {
    files: HashMap<PathBuf, Stat>,
    dependencies: HashMap<PathBuf, Stat>,
}

/// Looks through a folder. `None` when it is too large to be sure of.
pub(crate) fn look(root: &Path) -> Option<Tree> {
    let dependencies = catalogue::dependency_folders();
    let mut tree = Tree::default();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let first = folders.len();
        let mut is_cache = false;
        let mut files = Vec::new();
        for entry in entries.flatten() {
            // Links are not followed: they may lead anywhere, and round in circles.
            let Ok(meta) = entry.metadata() else { continue };
            let (name, path) = (entry.file_name(), entry.path());
            if meta.is_dir() {
                match name.to_str() {
                    Some(".git") => {}
                    Some(name) if dependencies.contains(&name) => add_dependency(&mut tree, &path, 0),
                    _ => folders.push(path),
                }
            } else {
                is_cache |= name == "CACHEDIR.TAG";
                files.push((path, stat(&meta)));
            }
        }
        // What a program can make again at any time is no source.
        if is_cache && folder != root {
            folders.truncate(first);
            continue;
        }
        tree.files.extend(files);
        if tree.files.len() + folders.len() > MAX_FILES {
            return None;
        }
    }
    Some(tree)
}

fn add_dependency(tree: &mut Tree, folder: &Path, depth: usize) {
    if let Ok(meta) = fs::symlink_metadata(folder) {
        tree.dependencies.insert(folder.to_owned(), stat(&meta));
    }
    if depth == DEPENDENCY_DEPTH || tree.dependencies.len() > MAX_FILES {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_dependency(tree, &entry.path(), depth + 1);
        }
    }
}

fn stat(meta: &Metadata) -> Stat {
    (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec())
}

/// What has changed from one look to another; `None` when that is more than can be told file by file.
pub(crate) fn changes(before: &Tree, after: &Tree) -> Option<Vec<(PathBuf, FileEventKind)>> {
    if before.dependencies != after.dependencies {
        return None;
    }
    let mut changes = Vec::new();
    for (path, stat) in &after.files {
        match before.files.get(path) {
            Some(known) if known == stat => {}
            Some(_) => changes.push((path.clone(), FileEventKind::Changed)),
            None => changes.push((path.clone(), FileEventKind::Created)),
        }
    }
    let gone = before.files.keys().filter(|path| !after.files.contains_key(*path));
    changes.extend(gone.map(|path| (path.clone(), FileEventKind::Deleted)));
    changes.sort_by(|a, b| a.0.cmp(&b.0));
    (changes.len() <= MAX_CHANGES).then_some(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_told_and_caches_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str, text: &str| {
            let file = root.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("a.py", "a");
        write("sub/b.py", "b");
        write("target/CACHEDIR.TAG", "");
        write(".git/index", "1");
        write("node_modules/x/index.js", "1");
        let before = look(root).unwrap();
        assert_eq!(changes(&before, &look(root).unwrap()), Some(Vec::new()));
        write("a.py", "another");
        write("target/made/c.py", "c");
        write(".git/index", "22");
        write("c.py", "c");
        fs::remove_file(root.join("sub/b.py")).unwrap();
        let changed = changes(&before, &look(root).unwrap()).unwrap();
        let names: Vec<_> = changed
            .iter()
            .map(|(path, kind)| (path.strip_prefix(root).unwrap().to_str().unwrap(), *kind))
            .collect();
        use FileEventKind::{Changed, Created, Deleted};
        assert_eq!(names, [("a.py", Changed), ("c.py", Created), ("sub/b.py", Deleted)]);
        write("node_modules/y/index.js", "1");
        assert_eq!(changes(&before, &look(root).unwrap()), None, "another package is there");
    }
}
