//! One text with what a grammar sees in it. That follows from the text alone, so it is kept from step to step.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use agents_domain::text::{LineIndex, Position, TextEdit};
use agents_grammars::{Language, Symbol, SyntaxError};

use super::verify::SyntaxErrors;

/// Bytes of text that are kept from step to step; what is known of them takes some ten times as much.
const MAX_KEPT: usize = 4 * 1024 * 1024;

/// A file's text.
pub(super) struct SourceText {
    /// The text.
    pub text: String,
    pub(super) index: LineIndex,
    language: Option<Language>,
    symbols: OnceLock<Vec<Symbol>>,
    syntax_errors: OnceLock<Option<SyntaxErrors>>,
}

/// What of a text is going to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// What it declares, and where its syntax is broken.
    Symbols,
    /// Where its syntax is broken.
    Syntax,
}

impl SourceText {
    /// The text of a file of this name; the same one again is known already.
    pub fn of(path: &str, text: String) -> Arc<Self> {
        static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);
        let start = &text.as_bytes()[..text.len().min(1024)];
        let language = agents_grammars::detect(Path::new(path), start).and_then(Language::from_id);
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).get(language, text)
    }

    fn new(language: Option<Language>, text: String) -> Self {
        let index = LineIndex::new(&text);
        Self { index, text, language, symbols: OnceLock::new(), syntax_errors: OnceLock::new() }
    }

    fn symbols(&self) -> &[Symbol] {
        self.symbols.get_or_init(|| {
            let outline = self.language.map(|language| agents_grammars::outline(language, &self.text));
            let Some(Ok(outline)) = outline else { return Vec::new() };
            _ = self.syntax_errors.set(Some(counted(outline.syntax_errors)));
            outline.symbols
        })
    }

    /// How many errors the grammar sees, by message; `None` without a grammar.
    pub fn syntax_errors(&self) -> Option<&SyntaxErrors> {
        let find = || Some(counted(agents_grammars::syntax_errors(self.language?, &self.text).ok()?));
        self.syntax_errors.get_or_init(find).as_ref()
    }

    /// The qualified name of the innermost declaration around a place.
    pub fn symbol_at(&self, position: Position) -> Option<String> {
        let at = self.index.offset(&self.text, position)?;
        let around = |symbol: &&Symbol| symbol.range.start_byte <= at && at < symbol.range.end_byte;
        let innermost =
            self.symbols().iter().filter(around).min_by_key(|s| s.range.end_byte - s.range.start_byte)?;
        Some(innermost.qualified_name(self.language?))
    }

    /// Whether an edit takes the name of a declaration away and does not put it back.
    pub fn loses_name(&self, edit: &TextEdit) -> bool {
        let offset = |position| self.index.offset(&self.text, position);
        let (Some(start), Some(end)) = (offset(edit.range.start), offset(edit.range.end)) else {
            return false;
        };
        // No name is lost where none is taken out.
        let taken = self.text.get(start..end).unwrap_or_default();
        if !taken.chars().any(|c| c.is_alphanumeric() || c == '_') {
            return false;
        }
        self.symbols().iter().any(|symbol| {
            let name = symbol.selection_range;
            start <= name.start_byte && name.end_byte <= end && !has_word(&edit.new_text, &symbol.name)
        })
    }
}

/// Finds out about texts at once on all processors; asking them afterwards is quick.
pub(super) fn prepare(texts: &[Arc<SourceText>], need: Need) {
    let unknown: Vec<&SourceText> = texts
        .iter()
        .map(AsRef::as_ref)
        .filter(|text| match need {
            Need::Symbols => text.symbols.get().is_none(),
            Need::Syntax => text.syntax_errors.get().is_none(),
        })
        .collect();
    let find = |texts: &[&SourceText]| {
        for text in texts {
            match need {
                Need::Symbols => _ = text.symbols(),
                Need::Syntax => _ = text.syntax_errors(),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = unknown.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let mut shares = unknown.chunks(share);
        let own = shares.next();
        shares.for_each(|share| _ = scope.spawn(move || find(share)));
        own.into_iter().for_each(find);
    });
}

/// Texts by what they say.
#[derive(Default)]
struct Kept {
    texts: HashMap<u64, Arc<SourceText>>,
    hasher: RandomState,
    bytes: usize,
}

impl Kept {
    fn get(&mut self, language: Option<Language>, text: String) -> Arc<SourceText> {
        let key = self.hasher.hash_one((language, &text));
        match self.texts.get(&key) {
            Some(known) if known.language == language && known.text == text => return Arc::clone(known),
            _ => {}
        }
        if self.bytes + text.len() > MAX_KEPT {
            self.texts.clear();
            self.bytes = 0;
        }
        self.bytes += text.len();
        let new = Arc::new(SourceText::new(language, text));
        self.texts.insert(key, Arc::clone(&new));
        new
    }
}

fn counted(errors: Vec<SyntaxError>) -> SyntaxErrors {
    let mut counts = SyntaxErrors::new();
    for error in errors {
        *counts.entry(error.message).or_insert(0) += 1;
    }
    counts
}

fn has_word(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(is_word);
        let after = text[at + word.len()..].chars().next().is_some_and(is_word);
        !before && !after
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agents_domain::text::Range;

    #[test]
    fn a_deleted_declaration_is_seen_where_a_grammar_exists() {
        let source =
            SourceText::of("a.py", "import os\n\n\ndef old():\n    x = 1\n    return x\n".to_owned());
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
    fn the_same_text_is_found_out_about_once_and_a_name_of_another_language_is_another_text() {
        let text = "def kept_once():\n    return (\n".to_owned();
        let first = SourceText::of("pkg/a.py", text.clone());
        let prepared: Vec<_> = (0..9).map(|n| SourceText::of("b.py", format!("x{n} = (\n"))).collect();
        prepare(&prepared, Need::Syntax);
        assert!(prepared.iter().all(|text| text.syntax_errors.get().is_some_and(Option::is_some)));
        prepare(&[Arc::clone(&first)], Need::Symbols);
        let again = SourceText::of("other/name.py", text.clone());
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(again.syntax_errors.get(), Some(&first.syntax_errors().cloned()));
        let unknown = SourceText::of("a.unknown", text);
        assert_eq!((unknown.syntax_errors(), unknown.symbols().len()), (None, 0));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut kept = Kept::default();
        for n in 0..20 {
            kept.get(None, format!("{n} {}", "x".repeat(MAX_KEPT / 8)));
            assert!(kept.bytes <= MAX_KEPT && kept.texts.len() < 8);
        }
    }
}
