//! The texts of a workspace's files as they are now, read once per step, with what a grammar sees in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use agents_domain::ids::ResourceId;
use agents_domain::ports::actor::{ActorHost, ActorWorkspace};
use agents_domain::text::{FileEdit, LineIndex, Position, Range, TextEdit, apply_edits};
use agents_grammars::{Language, Symbol};

/// Files of at most this many bytes are given to servers and edited; what is larger is data.
pub(super) const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Texts held at a time.
const MAX_HELD: usize = 256;
/// Lines of an example, each side.
const EXAMPLE_LINES: usize = 3;
/// Characters of a line of an example.
const EXAMPLE_WIDTH: usize = 120;

/// A file's text.
pub(super) struct SourceText {
    /// The text.
    pub text: String,
    index: LineIndex,
    language: Option<Language>,
    symbols: OnceLock<Vec<Symbol>>,
}

/// The texts of one workspace.
pub(super) struct Texts<'h> {
    host: &'h dyn ActorHost,
    resource: ResourceId,
    untouchable: BTreeMap<&'h str, &'h str>,
    held: BTreeMap<String, Option<Arc<SourceText>>>,
}

impl<'h> Texts<'h> {
    /// Nothing read yet.
    pub fn new(host: &'h dyn ActorHost, workspace: &'h ActorWorkspace) -> Self {
        let untouchable = workspace.untouchable.iter().map(|(path, why)| (path.as_str(), why.as_str()));
        Self {
            host,
            resource: workspace.resource_id,
            untouchable: untouchable.collect(),
            held: BTreeMap::new(),
        }
    }

    /// The text, or `None` when there is no such file, it is no UTF-8 or it is too large.
    pub fn get(&mut self, path: &str) -> Option<Arc<SourceText>> {
        if let Some(known) = self.held.get(path) {
            return known.clone();
        }
        if self.held.len() >= MAX_HELD {
            self.held.clear();
        }
        let bytes = self.host.read(self.resource, path).ok();
        let bytes = bytes.filter(|bytes| bytes.len() as u64 <= MAX_FILE_BYTES);
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.map(|text| Arc::new(SourceText::new(path, text)));
        self.held.insert(path.to_owned(), text.clone());
        text
    }

    /// The text of a range.
    pub fn slice(&mut self, path: &str, range: Range) -> Option<String> {
        let source = self.get(path)?;
        let start = source.index.offset(&source.text, range.start)?;
        let end = source.index.offset(&source.text, range.end)?;
        source.text.get(start..end).map(str::to_owned)
    }

    /// Why a file must not be changed by this edit, if so.
    pub fn refusal(&mut self, edit: &FileEdit) -> Option<String> {
        let paths = match edit {
            FileEdit::Rename { path, to } => vec![path.as_str(), to.as_str()],
            edit => vec![edit.path()],
        };
        for path in paths {
            if !stays_inside(path) {
                return Some(format!("it would change {path}, which is outside the workspace"));
            }
            if let Some(why) = self.untouchable.get(path) {
                return Some(format!("it would change {path}, which is left alone: {why}"));
            }
        }
        None
    }

    /// How many errors a grammar sees in a file's text, by message; `None` without a grammar or a text.
    pub fn syntax_errors(&mut self, path: &str) -> Option<BTreeMap<String, u32>> {
        let source = self.get(path)?;
        source.syntax_errors_of(&source.text)
    }

    /// Whether an edit takes the name of a declaration away and does not put it back.
    pub fn deletes_declaration(&mut self, edit: &FileEdit) -> bool {
        let FileEdit::Edit { path, edits } = edit else {
            return matches!(edit, FileEdit::Delete { .. });
        };
        self.get(path).is_some_and(|source| edits.iter().any(|edit| source.loses_name(edit)))
    }

    /// What an edit looks like: the lines that change, before and after.
    pub fn example(&mut self, path: &str, edits: &[TextEdit]) -> Option<(String, String)> {
        let before = self.get(path)?;
        let after = apply_edits(&before.text, edits).ok()?;
        Some(changed_lines(&before.text, &after))
    }
}

impl SourceText {
    fn new(path: &str, text: String) -> Self {
        let start = &text.as_bytes()[..text.len().min(1024)];
        let language = agents_grammars::detect(Path::new(path), start).and_then(Language::from_id);
        Self { index: LineIndex::new(&text), text, language, symbols: OnceLock::new() }
    }

    fn symbols(&self) -> &[Symbol] {
        self.symbols.get_or_init(|| {
            let found = self.language.map(|language| agents_grammars::symbols(language, &self.text));
            found.and_then(Result::ok).unwrap_or_default()
        })
    }

    /// The qualified name of the innermost declaration around a place.
    pub fn symbol_at(&self, position: Position) -> Option<String> {
        let at = self.index.offset(&self.text, position)?;
        let around = |symbol: &&Symbol| symbol.range.start_byte <= at && at < symbol.range.end_byte;
        let innermost =
            self.symbols().iter().filter(around).min_by_key(|s| s.range.end_byte - s.range.start_byte)?;
        Some(innermost.qualified_name(self.language?))
    }

    /// As [`Texts::syntax_errors`], of another text of this file.
    pub fn syntax_errors_of(&self, text: &str) -> Option<BTreeMap<String, u32>> {
        let errors = agents_grammars::syntax_errors(self.language?, text).ok()?;
        let mut counts = BTreeMap::new();
        for error in errors {
            *counts.entry(error.message).or_insert(0) += 1;
        }
        Some(counts)
    }

    fn loses_name(&self, edit: &TextEdit) -> bool {
        let offset = |position| self.index.offset(&self.text, position);
        let (Some(start), Some(end)) = (offset(edit.range.start), offset(edit.range.end)) else {
            return false;
        };
        self.symbols().iter().any(|symbol| {
            let name = symbol.selection_range;
            start <= name.start_byte && name.end_byte <= end && !has_word(&edit.new_text, &symbol.name)
        })
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(is_word);
        let after = text[at + word.len()..].chars().next().is_some_and(is_word);
        !before && !after
    })
}

fn stays_inside(path: &str) -> bool {
    let bad = |part: &str| part.is_empty() || part == "." || part == ".." || part == ".git";
    !path.contains('\\') && !path.split('/').any(bad)
}

/// Words that a file is mentioned by in others: its stem, or its folder's name when the stem says nothing.
pub(super) fn mentions(paths: &BTreeSet<String>) -> BTreeSet<String> {
    const NAMELESS: [&str; 6] = ["__init__", "__main__", "mod", "lib", "main", "index"];
    let mut words = BTreeSet::new();
    for path in paths {
        let path = Path::new(path);
        let stem = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let stem = stem.split('.').next().unwrap_or_default();
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let word = if NAMELESS.contains(&stem) { folder.unwrap_or(stem) } else { stem };
        if !word.is_empty() {
            words.insert(word.to_owned());
        }
    }
    words
}

fn changed_lines(before: &str, after: &str) -> (String, String) {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = before.iter().zip(&after).take_while(same).count();
    let most = before.len().min(after.len()) - head;
    let tail = before.iter().rev().zip(after.iter().rev()).take(most).take_while(same).count();
    let show = |lines: &[&str]| {
        let shown: Vec<String> = lines.iter().take(EXAMPLE_LINES).map(|line| shorten(line)).collect();
        let more = if lines.len() > EXAMPLE_LINES { " …" } else { "" };
        format!("{}{more}", shown.join(" ⏎ "))
    };
    (show(&before[head..before.len() - tail]), show(&after[head..after.len() - tail]))
}

fn shorten(line: &str) -> String {
    let line = line.trim();
    let mut out: String = line.chars().take(EXAMPLE_WIDTH).collect();
    if out.len() < line.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_inside_or_is_refused() {
        for path in ["a.py", "src/a b/ü.rs", "..a/b"] {
            assert!(stays_inside(path), "{path}");
        }
        for path in ["", "/etc/passwd", "../a", "a/../../b", "a//b", ".git/config", "a\\b", "./a"] {
            assert!(!stays_inside(path), "{path}");
        }
    }

    #[test]
    fn a_deleted_declaration_is_seen_where_a_grammar_exists() {
        let source =
            SourceText::new("a.py", "import os\n\n\ndef old():\n    x = 1\n    return x\n".to_owned());
        let edit = |start, end, new_text: &str| TextEdit {
            range: Range::new(start, end),
            new_text: new_text.to_owned(),
        };
        assert!(source.loses_name(&edit((3, 0), (6, 0), "")));
        assert!(!source.loses_name(&edit((3, 0), (6, 0), "def old():\n    pass\n")));
        assert!(source.loses_name(&edit((3, 4), (3, 7), "older")));
        assert!(!source.loses_name(&edit((0, 0), (1, 0), "")));
        assert_eq!(source.symbol_at(Position { line: 4, column: 4 }).as_deref(), Some("old"));
        assert_eq!(source.symbol_at(Position { line: 0, column: 0 }), None);
    }

    #[test]
    fn an_example_shows_only_the_lines_that_change() {
        assert_eq!(changed_lines("a\nb\nc\n", "a\nX\nc\n"), ("b".to_owned(), "X".to_owned()));
        assert_eq!(changed_lines("a\na\n", "a\n"), ("a".to_owned(), String::new()));
        assert_eq!(changed_lines("", "x\n"), (String::new(), "x".to_owned()));
    }

    #[test]
    fn a_file_is_mentioned_by_its_stem_or_its_folder() {
        let paths = ["src/util.py", "pkg/__init__.py", "a.test.ts", "main.rs"].map(str::to_owned);
        let words: Vec<String> = mentions(&paths.into()).into_iter().collect();
        assert_eq!(words, ["a", "main", "pkg", "util"]);
    }
}
