//! YAML as a tree in which every key and value knows its place, so that an error can point at it.

mod compose;
mod origin;
pub(crate) mod schema;
pub(crate) mod template;

use std::ops::Range as Bytes;

use agents_domain::text::{LineIndex, Range, TextEdit};
use serde_json::Value;

pub(crate) use compose::compose;
pub(crate) use origin::{Origin, Piece};

use crate::{Fix, Problem, Severity};

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its bytes in the source, without its key, anchor and tag. For an alias, the alias.
    pub bytes: Bytes<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeKind {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    /// A text whose value is not known yet: it has variables or templates. It fits everywhere.
    Open(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub key: String,
    pub key_bytes: Bytes<usize>,
    pub value: Node,
}

impl Node {
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn list(&self) -> &[Node] {
        match &self.kind {
            NodeKind::List(items) => items,
            _ => &[],
        }
    }

    pub fn entries(&self) -> &[Entry] {
        match &self.kind {
            NodeKind::Map(entries) => entries,
            _ => &[],
        }
    }

    pub fn entries_mut(&mut self) -> Option<&mut Vec<Entry>> {
        match &mut self.kind {
            NodeKind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|e| e.key == key)
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|e| &e.value)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries_mut()?.iter_mut().find(|e| e.key == key).map(|e| &mut e.value)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let entries = self.entries_mut()?;
        let at = entries.iter().position(|e| e.key == key)?;
        Some(entries.remove(at))
    }

    pub fn to_json(&self) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(b) => Value::Bool(*b),
            NodeKind::Number(n) => Value::Number(n.clone()),
            NodeKind::Text(t) | NodeKind::Open(t) => Value::String(t.clone()),
            NodeKind::List(items) => items.iter().map(Self::to_json).collect(),
            NodeKind::Map(entries) => entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect(),
        }
    }

    /// The node as an error message names it.
    pub fn describe(&self) -> String {
        match &self.kind {
            NodeKind::Null => "nothing".to_owned(),
            NodeKind::Bool(b) => format!("the truth value `{b}`"),
            NodeKind::Number(n) => format!("the number {n}"),
            NodeKind::Text(t) | NodeKind::Open(t) => format!("the text `{}`", shorten(t)),
            NodeKind::List(_) => "a list".to_owned(),
            NodeKind::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// At most 40 characters of one line.
pub(crate) fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(40).collect();
    if cut.len() < text.trim_end().len() { format!("{cut}...") } else { cut }
}

/// A file being read: its text and what was found wrong in it.
pub(crate) struct Source<'a> {
    pub text: &'a str,
    pub file: &'a str,
    index: LineIndex,
    /// Where the text came from, when it was made from another by a template; `index` is of that one then.
    origin: Option<Origin>,
    pub problems: Vec<Problem>,
}

/// More than anybody fixes in one go; a generated file could have millions.
const MAX_PROBLEMS: usize = 200;

impl<'a> Source<'a> {
    pub fn new(text: &'a str, file: &'a str) -> Self {
        Self { text, file, index: LineIndex::new(text), origin: None, problems: Vec::new() }
    }

    /// A text that a template made from `written`; places are those of what was written.
    pub fn rendered(text: &'a str, file: &'a str, written: &str, origin: Origin) -> Self {
        Self { text, file, index: LineIndex::new(written), origin: Some(origin), problems: Vec::new() }
    }

    pub fn range(&self, bytes: &Bytes<usize>) -> Range {
        let bytes = self.origin.as_ref().map_or_else(|| bytes.clone(), |origin| origin.of(bytes).0);
        Range { start: self.index.position(bytes.start), end: self.index.position(bytes.end) }
    }

    pub fn report(
        &mut self,
        severity: Severity,
        path: &str,
        bytes: &Bytes<usize>,
        message: impl Into<String>,
    ) {
        if !self.is_full() {
            self.problems.push(Problem {
                severity,
                message: message.into(),
                field_path: path.to_owned(),
                range: self.range(bytes),
                file: self.file.to_owned(),
                fix: None,
            });
        }
    }

    pub fn error(&mut self, path: &str, bytes: &Bytes<usize>, message: impl Into<String>) {
        self.report(Severity::Error, path, bytes, message);
    }

    pub fn warn(&mut self, path: &str, bytes: &Bytes<usize>, message: impl Into<String>) {
        self.report(Severity::Warning, path, bytes, message);
    }

    pub fn hint(&mut self, path: &str, bytes: &Bytes<usize>, message: impl Into<String>) {
        self.report(Severity::Hint, path, bytes, message);
    }

    /// Says what mends the problem that was reported last: `new_text` in the place of `bytes`.
    pub fn fix(&mut self, title: impl Into<String>, bytes: &Bytes<usize>, new_text: impl Into<String>) {
        let edit = TextEdit { range: self.range(bytes), new_text: new_text.into() };
        // Of a full list, the last need not be the one that was meant.
        // What a template made cannot be edited.
        if self.is_full() || self.origin.as_ref().is_some_and(|origin| !origin.of(bytes).1) {
            return;
        }
        if let Some(last) = self.problems.last_mut() {
            last.fix = Some(Fix { title: title.into(), edit });
        }
    }

    /// So much is wrong that nothing more is reported.
    pub fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|p| p.severity == Severity::Error)
    }
}

/// `parent.key`, or `key` at the top.
pub(crate) fn join(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}
