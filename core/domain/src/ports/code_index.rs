//! What is declared, imported and used where in a folder of source files, read from syntax alone: no types, no macros, no
//! configuration. Answers are by name and can be wrong; whoever shows them says so.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::text::{Position, Range};

/// The indexes of a data directory, and what a text says without one.
pub trait CodeIndexes: Send + Sync {
    /// The index of a folder, made by its first [`CodeIndex::scan`]. The folder must exist.
    ///
    /// # Errors
    /// The folder is none.
    fn of(&self, root: &Path) -> IndexResult<Arc<dyn CodeIndex>>;

    /// All indexes there are, in no order.
    fn all(&self) -> Vec<KnownIndex>;

    /// What a text declares, imports and uses. `None` for a language without a grammar and for a text that is too large
    /// or too far from its language. `language_id` is the protocol's, where it is known.
    fn outline(&self, path: &Path, language_id: Option<&str>, text: &[u8]) -> Option<Outline>;

    /// The ids of the languages with a grammar.
    fn languages(&self) -> Vec<&'static str>;
}

/// The index of one folder. Paths are relative to it, with `/`; positions are lines and byte columns from 0.
///
/// Queries read what is there, also while another process or thread writes; before the first scan that is nothing.
pub trait CodeIndex: Send + Sync {
    /// The folder.
    fn root(&self) -> &Path;

    /// Brings the index in line with the folder: reads what is new or changed, forgets what is gone. `watch` is told how
    /// far it is and can end it; what was done until then stays. Waits while another process does the same.
    ///
    /// # Errors
    /// The folder cannot be read, the index not be written.
    fn scan(&self, watch: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> IndexResult<Scan>;

    /// As [`scan`](Self::scan), for some files and folders only: what an event said has changed.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    fn refresh(&self, paths: &[String]) -> IndexResult<Scan>;

    /// Throws the index away, to be made anew by the next scan.
    ///
    /// # Errors
    /// Its files cannot be removed.
    fn reset(&self) -> IndexResult<()>;

    /// How much is in it.
    ///
    /// # Errors
    /// It cannot be read.
    fn status(&self) -> IndexResult<IndexStatus>;

    /// What a file declares, in the order of its text.
    ///
    /// # Errors
    /// The index cannot be read.
    fn symbols_of(&self, path: &str) -> IndexResult<Vec<CodeSymbol>>;

    /// What a file imports.
    ///
    /// # Errors
    /// The index cannot be read.
    fn imports_of(&self, path: &str) -> IndexResult<Vec<Import>>;

    /// The files that import a module, as it is written there.
    ///
    /// # Errors
    /// The index cannot be read.
    fn importers_of(&self, module: &str, limit: usize) -> IndexResult<Vec<String>>;

    /// The symbols with exactly this name.
    ///
    /// # Errors
    /// The index cannot be read.
    fn symbols_named(&self, name: &str, limit: usize) -> IndexResult<Vec<Found<CodeSymbol>>>;

    /// The symbols a person may mean: whole names first, then names that begin so, then names with words that do
    /// (`usr na` or `UsrNa` for `usr_name`). An empty query is any symbol.
    ///
    /// # Errors
    /// The index cannot be read.
    fn search_symbols(&self, query: &str, limit: usize) -> IndexResult<Vec<Found<CodeSymbol>>>;

    /// The files with all of some words in documentation or names, best first.
    ///
    /// # Errors
    /// The index cannot be read.
    fn search_text(&self, words: &str, limit: usize) -> IndexResult<Vec<String>>;

    /// Where a name stands, file by file, at most so many places.
    ///
    /// # Errors
    /// The index cannot be read.
    fn occurrences(&self, name: &str, limit: usize) -> IndexResult<Vec<Found<Vec<Occurrence>>>>;

    /// What the name at a place may mean, likeliest first; `from` is the text of the file `path` as it is now.
    ///
    /// # Errors
    /// The index cannot be read.
    fn definitions(&self, path: &str, from: &Outline, at: Position) -> IndexResult<Vec<Found<CodeSymbol>>>;
}

/// Something in a file of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The file, relative to the index's folder.
    pub path: String,
    /// The id of its language.
    pub language: String,
    /// Every byte of the file is a character: byte columns are columns in every unit.
    pub ascii: bool,
    /// What.
    pub what: T,
}

/// A declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSymbol {
    /// Its name.
    pub name: String,
    /// What it is, as a word: `class`, `method`, `enum-member`; `variable` and `parameter` for local names.
    pub kind: String,
    /// The qualified name of what it is declared in; empty at the top.
    pub container: String,
    /// The whole declaration with what belongs before it.
    pub range: Range,
    /// Its name.
    pub name_range: Range,
    /// Its head on one line.
    pub signature: String,
    /// Its documentation, empty where there is none.
    pub doc: String,
}

/// A name that is brought in from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The module as written.
    pub module: String,
    /// What of it, `*` for all; `None` for the module itself.
    pub name: Option<String>,
    /// Its name here, where that is another.
    pub alias: Option<String>,
    /// The line.
    pub line: u32,
}

/// A place where a name stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Where; one line.
    pub range: Range,
    /// What it does there, as a word: `declaration`, `call`, `member`, `write`, `read` and others.
    pub role: &'static str,
}

/// What a text says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// The id of its language.
    pub language: String,
    /// What it declares, in the order of the text.
    pub symbols: Vec<CodeSymbol>,
    /// What it imports.
    pub imports: Vec<Import>,
    /// The names in it, in the order of the text.
    pub names: Vec<NamedPlace>,
    /// Where its syntax is broken.
    pub syntax_errors: Vec<(Range, String)>,
}

/// A name and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPlace {
    /// The name.
    pub name: Arc<str>,
    /// The place.
    pub place: Occurrence,
}

impl Outline {
    /// The name at a position or right before it.
    pub fn name_at(&self, at: Position) -> Option<&NamedPlace> {
        let after = self.names.partition_point(|name| name.place.range.start <= at);
        self.names[..after].last().filter(|name| at <= name.place.range.end)
    }

    /// The innermost symbols around a position, outermost first.
    pub fn around(&self, at: Position) -> impl DoubleEndedIterator<Item = &CodeSymbol> {
        self.symbols.iter().filter(move |symbol| symbol.range.start <= at && at < symbol.range.end)
    }
}

/// How far a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files read.
    pub done: usize,
    /// Files to read.
    pub total: usize,
}

/// What a scan did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// Files looked at.
    pub seen: usize,
    /// Files read because they were new or others.
    pub read: usize,
    /// Files forgotten because they are gone or ignored now.
    pub removed: usize,
    /// It was ended before it was through.
    pub cancelled: bool,
    /// Why the index was made anew, where it was.
    pub rebuilt: Option<String>,
    /// How long it took.
    pub took: Duration,
}

/// How much is in an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexStatus {
    /// A scan has been through the whole folder.
    pub complete: bool,
    /// Another process or thread writes to it now.
    pub busy: bool,
    /// Files known.
    pub files: u64,
    /// Files whose text is in it.
    pub parsed: u64,
    /// Source files left out, by why: `too large`, `binary`, `unreadable`, `not parsed in time`.
    pub skipped: Vec<(String, u64)>,
    /// Files with a text in it, by language id, most first.
    pub languages: Vec<(String, u64)>,
    /// Declarations.
    pub symbols: u64,
    /// Imported names.
    pub imports: u64,
    /// Its size on the disk in bytes.
    pub bytes: u64,
    /// The file it is kept in.
    pub file: PathBuf,
}

/// An index of a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownIndex {
    /// The folder it is of; `None` when it cannot be read.
    pub root: Option<PathBuf>,
    /// The file it is kept in.
    pub file: PathBuf,
    /// Its size on the disk in bytes.
    pub bytes: u64,
    /// Files known.
    pub files: u64,
    /// Why it is of no use, where it is not; the next scan makes it anew.
    pub problem: Option<String>,
}

/// Why an index does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexError {
    /// The folder is none or cannot be read.
    Folder(String),
    /// The index cannot be read or written; a damaged one is made anew by the next scan.
    Storage(String),
}

/// What a question to an index comes to.
pub type IndexResult<T> = Result<T, IndexError>;

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(message) | Self::Storage(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for IndexError {}
