//! The index of a folder, against real and hostile sources.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail the test")]

mod answers;
mod real;
mod robust;
mod update;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents_context::Indexes;
use agents_domain::ports::code_index::{CodeIndex, CodeIndexes, Found, Outline, Scan};
use agents_domain::text::Position;

/// A folder with files, and an index of it in a data directory of its own.
struct Desk {
    folder: tempfile::TempDir,
    data: tempfile::TempDir,
    index: Arc<dyn CodeIndex>,
}

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let index = Indexes::new(data.path()).of(folder.path()).unwrap();
        let desk = Self { folder, data, index };
        files.iter().for_each(|(path, text)| desk.write(path, text));
        desk
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Another process's view: nothing that was opened is shared.
    fn another(&self) -> Arc<dyn CodeIndex> {
        Indexes::new(self.data.path()).of(self.folder.path()).unwrap()
    }

    fn scan(&self) -> Scan {
        scan(&*self.index)
    }

    fn database(&self) -> PathBuf {
        self.index.status().unwrap().file
    }

    fn names(&self, path: &str) -> Vec<String> {
        self.index.symbols_of(path).unwrap().into_iter().map(|symbol| symbol.name).collect()
    }

    /// `path:line:column` of each place of a name, sorted.
    fn places(&self, name: &str) -> Vec<String> {
        let found = self.index.occurrences(name, 10_000).unwrap();
        let mut places: Vec<String> = found
            .iter()
            .flat_map(|file| file.what.iter().map(move |at| (&file.path, at)))
            .map(|(path, at)| format!("{path}:{}:{} {}", at.range.start.line, at.range.start.column, at.role))
            .collect();
        places.sort();
        places
    }

    fn outline(&self, path: &str) -> Outline {
        let text = fs::read(self.path(path)).unwrap();
        Indexes::new(self.data.path()).outline(Path::new(path), None, &text).unwrap()
    }

    /// Where the definition at the `|` of a line of a file is, as `path:line kind`.
    fn definitions(&self, path: &str, line: u32, column: u32) -> Vec<String> {
        let at = Position { line, column };
        let found = self.index.definitions(path, &self.outline(path), at).unwrap();
        found.iter().map(|f| format!("{}:{} {}", f.path, f.what.name_range.start.line, f.what.kind)).collect()
    }
}

fn scan(index: &dyn CodeIndex) -> Scan {
    index.scan(&mut |_| ControlFlow::Continue(())).unwrap()
}

fn paths<T>(found: &[Found<T>]) -> Vec<&str> {
    found.iter().map(|found| found.path.as_str()).collect()
}

/// Everything that an index says of a folder's files.
fn dump(index: &dyn CodeIndex, paths: &[String], names: &[&str]) -> String {
    let status = index.status().unwrap();
    let mut all = format!(
        "{} {} {:?} {:?} {} {}\n",
        status.files, status.parsed, status.skipped, status.languages, status.symbols, status.imports
    );
    for path in paths {
        all +=
            &format!("{path} {:?} {:?}\n", index.symbols_of(path).unwrap(), index.imports_of(path).unwrap());
    }
    for name in names {
        let mut found = index.occurrences(name, 10_000).unwrap();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        let mut files = index.search_text(name, 10_000).unwrap();
        files.sort();
        all += &format!("{name} {found:?} {files:?}\n");
    }
    all
}
