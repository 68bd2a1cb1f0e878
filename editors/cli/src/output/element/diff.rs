//! Unified diffs, read from what `git diff` and `diff -u` write. What the reader does not know becomes a note: nothing is
//! lost.

use serde_json::{Value, json};

use crate::output::styled::Styled;

/// A unified diff of one file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diff {
    /// Name of the old file, such as `a/src/x.py`.
    pub file_a: Option<String>,
    /// Name of the new file.
    pub file_b: Option<String>,
    /// Lines before the hunks: renames, modes, binary files.
    pub notes: Vec<String>,
    /// The changes.
    pub hunks: Vec<Hunk>,
}

/// A run of changes with its surroundings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hunk {
    /// `@@ -12,4 +12,10 @@ def f():`
    pub header: String,
    /// What is said about it, for people, line by line.
    pub notes: Vec<Styled>,
    /// Its lines.
    pub lines: Vec<DiffLine>,
}

/// What a line of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffKind {
    /// In both files.
    Context,
    /// Only in the new file.
    Add,
    /// Only in the old file.
    Remove,
    /// A remark, such as a missing newline at the end of a file.
    Note,
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffLine {
    /// What it is.
    pub kind: DiffKind,
    /// Its text without the sign.
    pub content: String,
    /// Its number in the old file.
    pub old: Option<usize>,
    /// Its number in the new file.
    pub new: Option<usize>,
}

impl Diff {
    /// Lines added and removed.
    pub fn stats(&self) -> (usize, usize) {
        let count = |kind| self.hunks.iter().flat_map(|h| &h.lines).filter(|l| l.kind == kind).count();
        (count(DiffKind::Add), count(DiffKind::Remove))
    }

    pub(super) fn to_json(&self) -> Value {
        let (insertions, deletions) = self.stats();
        let line = |line: &DiffLine| {
            let kind = match line.kind {
                DiffKind::Context => "context",
                DiffKind::Add => "add",
                DiffKind::Remove => "remove",
                DiffKind::Note => "note",
            };
            json!({"type": kind, "content": line.content, "line_number_old": line.old, "line_number_new": line.new})
        };
        let hunks: Vec<Value> = self
            .hunks
            .iter()
            .map(|h| json!({"header": h.header, "lines": h.lines.iter().map(line).collect::<Vec<_>>()}))
            .collect();
        json!({
            "file_a": self.file_a,
            "file_b": self.file_b,
            "stats": {"insertions": insertions, "deletions": deletions},
            "hunks": hunks,
        })
    }
}

/// The files of a unified diff, as `git diff` and `diff -u` write it.
pub fn parse(text: &str) -> Vec<Diff> {
    let mut files: Vec<Diff> = Vec::new();
    // How many old and new lines the current hunk still announces. Inside a hunk `--- x` is a removed line.
    let (mut old_left, mut new_left) = (0usize, 0usize);
    let (mut old_no, mut new_no) = (0usize, 0usize);
    let mut lines = text.split_inclusive('\n').map(|l| l.strip_suffix('\n').unwrap_or(l)).peekable();
    while let Some(line) = lines.next() {
        if old_left > 0 || new_left > 0 {
            let (kind, content) = match line.as_bytes().first() {
                Some(b'+') => (DiffKind::Add, &line[1..]),
                Some(b'-') => (DiffKind::Remove, &line[1..]),
                Some(b' ') => (DiffKind::Context, &line[1..]),
                Some(b'\\') => (DiffKind::Note, line),
                None => (DiffKind::Context, ""),
                Some(_) => {
                    (old_left, new_left) = (0, 0);
                    current(&mut files).notes.push(line.to_owned());
                    continue;
                }
            };
            let old = matches!(kind, DiffKind::Context | DiffKind::Remove).then_some(old_no);
            let new = matches!(kind, DiffKind::Context | DiffKind::Add).then_some(new_no);
            old_left -= usize::from(old.is_some()).min(old_left);
            new_left -= usize::from(new.is_some()).min(new_left);
            old_no += usize::from(old.is_some());
            new_no += usize::from(new.is_some());
            if let Some(hunk) = current(&mut files).hunks.last_mut() {
                hunk.lines.push(DiffLine { kind, content: content.to_owned(), old, new });
            }
        } else if let Some((old, new)) = line.strip_prefix("@@ ").and_then(ranges) {
            ((old_no, old_left), (new_no, new_left)) = (old, new);
            current(&mut files).hunks.push(Hunk { header: line.to_owned(), ..Hunk::default() });
        } else if line.starts_with("diff --git ") {
            files.push(Diff::default());
            current(&mut files).notes.push(line.to_owned());
        } else if let Some(name) = line.strip_prefix("--- ") {
            if files.last().is_none_or(|d| d.file_a.is_some() || !d.hunks.is_empty()) {
                files.push(Diff::default());
            }
            current(&mut files).file_a = file_name(name);
            if let Some(name) = lines.peek().and_then(|l| l.strip_prefix("+++ ")) {
                current(&mut files).file_b = file_name(name);
                lines.next();
            }
        } else if line.starts_with('\\') {
            if let Some(hunk) = current(&mut files).hunks.last_mut() {
                hunk.lines.push(DiffLine {
                    kind: DiffKind::Note,
                    content: line.to_owned(),
                    old: None,
                    new: None,
                });
            }
        } else if !line.is_empty() {
            current(&mut files).notes.push(line.to_owned());
        }
    }
    files
}

fn current(files: &mut Vec<Diff>) -> &mut Diff {
    if files.is_empty() {
        files.push(Diff::default());
    }
    let last = files.len() - 1;
    &mut files[last]
}

/// A name may be followed by a tab and a time.
fn file_name(text: &str) -> Option<String> {
    Some(text.split('\t').next().unwrap_or(text).to_owned())
}

/// `-12,4 +12,10 @@ …` as ((old start, old count), (new start, new count)).
fn ranges(text: &str) -> Option<((usize, usize), (usize, usize))> {
    let mut parts = text.split(' ');
    let range = |part: &str, sign: char| {
        let part = part.strip_prefix(sign)?;
        let (start, count) = part.split_once(',').unwrap_or((part, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let old = range(parts.next()?, '-')?;
    let new = range(parts.next()?, '+')?;
    (parts.next()? == "@@").then_some((old, new))
}
