//! The texts of a workspace's files as they are now, each read once per look.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use agents_domain::ids::ResourceId;
use agents_domain::ports::actor::{ActorHost, ActorWorkspace};
use agents_domain::text::{FileEdit, Range, TextEdit, apply_edits};

use super::source::{self, Need, SourceText};
use super::verify::SyntaxErrors;

/// Files of at most this many bytes are given to servers and edited; what is larger is data.
pub(super) const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Texts held at a time.
const MAX_HELD: usize = 1024;
/// Lines of an example, each side.
const EXAMPLE_LINES: usize = 3;
/// Characters of a line of an example.
const EXAMPLE_WIDTH: usize = 120;

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
        let text = text.map(|text| SourceText::of(path, text));
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
    pub fn syntax_errors(&mut self, path: &str) -> Option<SyntaxErrors> {
        self.get(path)?.syntax_errors().cloned()
    }

    /// Reads files and finds out about them at once, on all processors.
    pub fn prepare<'p>(&mut self, paths: impl IntoIterator<Item = &'p str>, need: Need) {
        let texts: BTreeMap<&str, Arc<SourceText>> =
            paths.into_iter().filter_map(|path| Some((path, self.get(path)?))).collect();
        source::prepare(&texts.into_values().collect::<Vec<_>>(), need);
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

/// Words to look for in many texts.
pub(super) struct Words {
    names: HashSet<String>,
    /// What is no name in a program, such as `my-module`.
    others: Vec<String>,
}

impl Words {
    pub fn new(words: BTreeSet<String>) -> Self {
        let (names, others): (Vec<String>, Vec<String>) =
            words.into_iter().partition(|word| word.chars().all(in_name));
        Self { names: names.into_iter().collect(), others }
    }

    /// Whether a text has one of them; names count where they are whole.
    pub fn any_in(&self, text: &str) -> bool {
        text.split(|c| !in_name(c)).any(|name| self.names.contains(name))
            || self.others.iter().any(|word| text.contains(word.as_str()))
    }
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
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
        let words = Words::new(["util".to_owned(), "my-mod".to_owned()].into());
        for text in ["from .util import x", "import {a} from './my-mod'", "util"] {
            assert!(words.any_in(text), "{text}");
        }
        for text in ["", "utils = my - mod", "myutil"] {
            assert!(!words.any_in(text), "{text}");
        }
    }
}
