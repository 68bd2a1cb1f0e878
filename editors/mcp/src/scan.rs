//! What changed on disk between two calls, so that servers never answer about a file as it was.

use std::collections::HashMap;
use std::path::Path;
use std::time::SystemTime;

use agents_domain::ports::language_servers::{FileEvent, FileEventKind};

/// Files that are watched; of a larger directory the rest is told only when it is asked about.
const MAX_FILES: usize = 50_000;

/// The files as they were when they were last looked at.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    files: Option<HashMap<String, (SystemTime, u64)>>,
}

impl Seen {
    /// Looks again; nothing the first time. What the repository ignores is left out.
    pub(crate) fn changes(&mut self, root: &Path) -> Vec<FileEvent> {
        let now = look(root);
        let Some(before) = self.files.replace(now.clone()) else { return Vec::new() };
        let mut events = Vec::new();
        for (path, state) in &now {
            let kind = match before.get(path) {
                None => FileEventKind::Created,
                Some(old) if old != state => FileEventKind::Changed,
                Some(_) => continue,
            };
            events.push(FileEvent { path: path.clone(), kind });
        }
        let gone = before.into_keys().filter(|path| !now.contains_key(path));
        events.extend(gone.map(|path| FileEvent { path, kind: FileEventKind::Deleted }));
        events
    }
}

fn look(root: &Path) -> HashMap<String, (SystemTime, u64)> {
    let walk = ignore::WalkBuilder::new(root)
        .hidden(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    walk.flatten()
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .take(MAX_FILES)
        .filter_map(|entry| {
            let meta = entry.metadata().ok()?;
            let path = entry.path().strip_prefix(root).ok()?.to_str()?.to_owned();
            Some((path, (meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_changed_and_went_is_told_once_and_ignored_files_never() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        write(".gitignore", "*.log\n");
        write("a.py", "1");
        write("b.py", "1");
        let mut seen = Seen::default();
        assert!(seen.changes(folder.path()).is_empty());
        write("a.py", "22");
        write("c.py", "1");
        write("x.log", "1");
        write(".git/HEAD", "1");
        std::fs::remove_file(folder.path().join("b.py")).unwrap();
        let mut events = seen.changes(folder.path());
        events.sort_by(|a, b| a.path.cmp(&b.path));
        let told: Vec<_> = events.iter().map(|event| (event.path.as_str(), event.kind)).collect();
        assert_eq!(
            told,
            [
                ("a.py", FileEventKind::Changed),
                ("b.py", FileEventKind::Deleted),
                ("c.py", FileEventKind::Created)
            ]
        );
        assert!(seen.changes(folder.path()).is_empty());
    }
}
