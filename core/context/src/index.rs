//! The port: an index per folder, and all of a data directory.

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agents_domain::ports::code_index::{
    CodeIndex, CodeIndexes, CodeSymbol, Found, Import, IndexError, IndexResult, IndexStatus, KnownIndex,
    Occurrence, Outline, Progress, Scan,
};
use agents_domain::text::Position;
use agents_grammars::Language;
use rusqlite::Connection;

use crate::database::{Place, Unusable, is_damage, meta};
use crate::{extract, queries, resolve, scan};

/// The indexes below a folder.
#[derive(Debug)]
pub struct Indexes {
    folder: PathBuf,
    opened: Mutex<HashMap<PathBuf, Arc<Index>>>,
}

impl Indexes {
    /// The indexes of a data directory: its folder `index`, which is made when it is first written to.
    pub fn new(data_dir: &Path) -> Self {
        Self { folder: data_dir.join("index"), opened: Mutex::default() }
    }
}

impl CodeIndexes for Indexes {
    fn of(&self, root: &Path) -> IndexResult<Arc<dyn CodeIndex>> {
        let unusable = |why: &dyn std::fmt::Display| IndexError::Folder(format!("{}: {why}", root.display()));
        let root = root.canonicalize().map_err(|error| unusable(&error))?;
        if !root.is_dir() {
            return Err(unusable(&"is not a folder"));
        }
        let mut opened = locked(&self.opened);
        let index = opened.entry(root).or_insert_with_key(|root| {
            let place = Place::of(&self.folder, root);
            Arc::new(Index { root: root.clone(), place, reader: Mutex::default() })
        });
        Ok(index.clone())
    }

    fn all(&self) -> Vec<KnownIndex> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let databases =
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "db"));
        databases.map(known).collect()
    }

    fn outline(&self, path: &Path, language_id: Option<&str>, text: &[u8]) -> Option<Outline> {
        extract::outline(path, language_id, text)
    }

    fn languages(&self) -> Vec<&'static str> {
        Language::ALL.iter().map(|language| language.id().as_str()).collect()
    }
}

fn known(file: PathBuf) -> KnownIndex {
    let place = Place { lock: file.with_extension("lock"), database: file.clone() };
    let look = || -> Result<(Option<String>, u64), Unusable> {
        let conn = place.read()?;
        let files = conn.query_row("SELECT count(*) FROM files", [], |row| row.get::<_, i64>(0))?;
        Ok((meta(&conn, "root")?, files.unsigned_abs()))
    };
    let (root, files, problem) = match look() {
        Ok((root, files)) => (root, files, None),
        Err(unusable) => (None, 0, Some(unusable.to_string())),
    };
    KnownIndex { root: root.map(PathBuf::from), bytes: place.size(), file, files, problem }
}

/// The index of one folder.
#[derive(Debug)]
pub(crate) struct Index {
    root: PathBuf,
    place: Place,
    /// With the inode of the database it reads: another one was made since when it is no longer that.
    reader: Mutex<Option<(u64, Connection)>>,
}

impl Index {
    /// Reads; what is of no use, or not there, is as empty.
    fn read<T: Default>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> IndexResult<T> {
        let mut reader = locked(&self.reader);
        let Some(inode) = self.place.inode() else {
            *reader = None;
            return Ok(T::default());
        };
        if reader.as_ref().is_none_or(|(of, _)| *of != inode) {
            *reader = match self.place.read() {
                Ok(conn) => Some((inode, conn)),
                Err(Unusable::Failed(error)) if !is_damage(&error) => return Err(self.place.storage(&error)),
                Err(_) => return Ok(T::default()),
            };
        }
        let Some((_, conn)) = reader.as_ref() else { return Ok(T::default()) };
        query(conn).map_err(|error| self.place.storage(&error))
    }
}

impl CodeIndex for Index {
    fn root(&self) -> &Path {
        &self.root
    }

    fn scan(&self, watch: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> IndexResult<Scan> {
        scan::scan(&self.place, &self.root, None, watch)
    }

    fn refresh(&self, paths: &[String]) -> IndexResult<Scan> {
        // Other rules of what is ignored can be about any file.
        let rules = |path: &String| {
            matches!(path.rsplit('/').next(), Some(".gitignore" | ".ignore")) || path == ".git/info/exclude"
        };
        let only = (!paths.iter().any(rules)).then_some(paths);
        scan::scan(&self.place, &self.root, only, &mut |_| ControlFlow::Continue(()))
    }

    fn reset(&self) -> IndexResult<()> {
        let _lock = self.place.lock()?;
        *locked(&self.reader) = None;
        self.place.remove()
    }

    fn status(&self) -> IndexResult<IndexStatus> {
        let read = self.read(queries::status)?;
        Ok(IndexStatus {
            busy: self.place.is_locked(),
            bytes: self.place.size(),
            file: self.place.database.clone(),
            ..read
        })
    }

    fn symbols_of(&self, path: &str) -> IndexResult<Vec<CodeSymbol>> {
        self.read(|conn| queries::symbols_of(conn, path))
    }

    fn imports_of(&self, path: &str) -> IndexResult<Vec<Import>> {
        self.read(|conn| queries::imports_of(conn, path))
    }

    fn importers_of(&self, module: &str, limit: usize) -> IndexResult<Vec<String>> {
        self.read(|conn| queries::importers_of(conn, module, limit))
    }

    fn symbols_named(&self, name: &str, limit: usize) -> IndexResult<Vec<Found<CodeSymbol>>> {
        self.read(|conn| queries::symbols_named(conn, name, limit))
    }

    fn search_symbols(&self, query: &str, limit: usize) -> IndexResult<Vec<Found<CodeSymbol>>> {
        self.read(|conn| queries::search_symbols(conn, query, limit))
    }

    fn search_text(&self, words: &str, limit: usize) -> IndexResult<Vec<String>> {
        self.read(|conn| queries::search_text(conn, words, limit))
    }

    fn occurrences(&self, name: &str, limit: usize) -> IndexResult<Vec<Found<Vec<Occurrence>>>> {
        self.read(|conn| queries::occurrences(conn, name, limit))
    }

    fn definitions(&self, path: &str, from: &Outline, at: Position) -> IndexResult<Vec<Found<CodeSymbol>>> {
        resolve::definitions(path, from, at, |name| self.symbols_named(name, resolve::MOST))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
