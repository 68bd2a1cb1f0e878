//! Indexing the source files of a folder, and how much is in the index.

use std::ops::ControlFlow;
use std::path::Path;

use agents_domain::ports::code_index::IndexError;
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Engine, Operation};

/// Brings the index of a folder in line with its files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// The folder; absolute.
    pub dir: String,
    /// Throw away what is known and read every file again.
    #[serde(default)]
    pub rebuild: bool,
}

/// What was done, and how much is in the index now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct IndexOutput {
    /// The folder.
    pub dir: String,
    /// Files that are not ignored.
    pub files: u64,
    /// Files whose text is in the index.
    pub parsed: u64,
    /// Files read now because they were new or others.
    pub read: usize,
    /// Files forgotten now because they are gone or ignored.
    pub removed: usize,
    /// Files of each language in the index, most first.
    pub languages: Vec<IndexedLanguage>,
    /// Source files that were left out.
    pub skipped: Vec<SkippedFiles>,
    /// Declarations in the index.
    pub symbols: u64,
    /// Imported names in the index.
    pub imports: u64,
    /// Why the index was made anew though nobody asked for it.
    pub rebuilt: Option<String>,
    /// The file of the index.
    pub index: String,
    /// Its size.
    pub index_bytes: u64,
    /// How long it took.
    pub took_ms: u64,
}

/// A language with its files in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IndexedLanguage {
    /// Its id in the protocol.
    pub language: String,
    /// How many.
    pub files: u64,
}

/// Source files that were left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedFiles {
    /// Why: `too large`, `binary`, `unreadable`, `not parsed in time`.
    pub reason: String,
    /// How many.
    pub files: u64,
}

impl Operation for Index {
    const METHOD: &'static str = "lsp/index";
    const SUMMARY: &'static str = "Index the source files of a folder by their syntax";
    type Output = IndexOutput;

    fn run(self, engine: &Engine) -> Result<IndexOutput> {
        let indexes = engine.code_indexes().ok_or_else(|| {
            Error::invalid_state("this program was put together without an index of source files")
        })?;
        let dir = Path::new(&self.dir);
        if !dir.exists() {
            return Err(Error::not_found(format!("there is no folder {}", self.dir)));
        }
        let index = indexes.of(dir).map_err(refused)?;
        if self.rebuild {
            index.reset().map_err(refused)?;
        }
        let scan = index.scan(&mut |_| ControlFlow::Continue(())).map_err(refused)?;
        let status = index.status().map_err(refused)?;
        Ok(IndexOutput {
            dir: index.root().display().to_string(),
            files: status.files,
            parsed: status.parsed,
            read: scan.read,
            removed: scan.removed,
            languages: status
                .languages
                .into_iter()
                .map(|(language, files)| IndexedLanguage { language, files })
                .collect(),
            skipped: status
                .skipped
                .into_iter()
                .map(|(reason, files)| SkippedFiles { reason, files })
                .collect(),
            symbols: status.symbols,
            imports: status.imports,
            rebuilt: scan.rebuilt,
            index: status.file.display().to_string(),
            index_bytes: status.bytes,
            took_ms: u64::try_from(scan.took.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

fn refused(error: IndexError) -> Error {
    match error {
        IndexError::Folder(message) => Error::validation(message),
        IndexError::Storage(message) => Error::new(ErrorKind::Io, message)
            .suggest("See that the data directory can be written, or choose another: --data-dir <PATH>"),
    }
}
