//! Shows what lies between two commits, in numbers, hunks and a patch that `git apply` takes.

use std::collections::HashMap;

use agents_domain::changes::{ChangeKind, DiffHunk, DiffLine, FileDiff, content_hash};
use agents_domain::checkpoint::CheckpointDiff;
use serde::{Deserialize, Serialize};

use crate::error::{Result, SandboxError};
use crate::git::{CommitId, ObjectId, nul_fields, os_path, parse_id};
use crate::repository::{MODE_SUBMODULE, Repository};

/// A file that differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPath {
    /// The file (its new name for a rename), with `/`.
    pub path: String,
    /// The old name, for a rename.
    pub old_path: Option<String>,
    /// What happened.
    pub kind: ChangeKind,
}

/// One raw record of `diff-tree`.
#[derive(Debug, Clone)]
pub(crate) struct RawChange {
    pub(crate) old: Option<(String, ObjectId)>,
    pub(crate) new: Option<(String, ObjectId)>,
    pub(crate) status: u8,
    pub(crate) path: String,
    pub(crate) old_path: Option<String>,
    /// The name's bytes are not UTF-8; `path` is a lossy spelling.
    pub(crate) lossy: bool,
}

/// The files that differ, renames detected; cheaper than [`diff`].
pub fn changed_paths(repository: &Repository, from: &CommitId, to: &CommitId) -> Result<Vec<ChangedPath>> {
    let raw = raw_changes(repository, from.as_str(), to.as_str(), true)
        .map_err(|error| repository.explain(error, &[from, to]))?;
    Ok(raw
        .into_iter()
        .map(|change| ChangedPath { kind: kind(change.status), path: change.path, old_path: change.old_path })
        .collect())
}

/// What a checkpoint holds that an earlier commit does not, in names and numbers.
pub fn checkpoint_diff(repository: &Repository, from: &CommitId, to: &CommitId) -> Result<CheckpointDiff> {
    let raw = raw_changes(repository, from.as_str(), to.as_str(), false)
        .map_err(|error| repository.explain(error, &[from, to]))?;
    let mut told = String::new();
    for change in &raw {
        let (mode, id) =
            change.new.as_ref().map_or(("000000", "-"), |(mode, id)| (mode.as_str(), id.as_str()));
        told.push_str(&format!("{mode} {id} {}\0", change.path));
    }
    Ok(CheckpointDiff {
        diff_based: from.to_string(),
        size_bytes: sizes(repository, &raw)?.into_iter().sum(),
        diff_paths: raw.into_iter().map(|change| change.path).collect(),
        diff_hash: content_hash(told.as_bytes()),
    })
}

/// The whole difference between two commits, a file at a time in path order.
///
/// `insertions` and `deletions` are git's own counts. A file whose content is not UTF-8 is flagged `binary` while its
/// hunks are shown with replacement characters; its `patch` is then a binary one, so that it still applies.
pub fn diff(repository: &Repository, from: &CommitId, to: &CommitId) -> Result<Vec<FileDiff>> {
    diff_trees(repository, from.as_str(), to.as_str()).map_err(|error| repository.explain(error, &[from, to]))
}

/// The raw records between two tree-ishes.
pub(crate) fn raw_changes(
    repository: &Repository,
    from: &str,
    to: &str,
    renames: bool,
) -> Result<Vec<RawChange>> {
    if from == to {
        return Ok(Vec::new());
    }
    let renames = if renames { "-M" } else { "--no-renames" };
    let output = repository.git.run(["diff-tree", "-r", "-z", "--raw", "--full-index", renames, from, to])?;
    let mut fields = nul_fields(&output).peekable();
    let mut changes = Vec::new();
    while fields.peek().is_some() {
        changes.push(raw_record(&mut fields)?);
    }
    Ok(changes)
}

pub(crate) fn diff_trees(repository: &Repository, from: &str, to: &str) -> Result<Vec<FileDiff>> {
    if from == to {
        return Ok(Vec::new());
    }
    let output = repository
        .git
        .run(["diff-tree", "--raw", "--numstat"].iter().chain(PATCH_OPTIONS).chain(&[from, to]))?;
    let (changes, counts, patches) = parse(&output)?;
    let sizes = sizes(repository, &changes)?;
    let mut files = Vec::with_capacity(changes.len());
    for ((change, patch), size) in changes.iter().zip(patches).zip(sizes) {
        let text = String::from_utf8_lossy(&patch).into_owned();
        let lossy = std::str::from_utf8(&patch).is_err();
        let count = counts.get(&change.path).copied().flatten();
        files.push(FileDiff {
            path: change.path.clone(),
            old_path: change.old_path.clone(),
            kind: kind(change.status),
            insertions: count.map_or(0, |(insertions, _)| insertions),
            deletions: count.map_or(0, |(_, deletions)| deletions),
            binary: count.is_none() || lossy,
            size,
            hunks: hunks(&text),
            patch: if lossy { binary_patch(repository, from, to, change)?.unwrap_or(text) } else { text },
        });
    }
    Ok(files)
}

const PATCH_OPTIONS: &[&str] = &[
    "-r",
    "-z",
    "-p",
    "-M",
    "-U3",
    "--full-index",
    "--binary",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--inter-hunk-context=0",
    "--diff-algorithm=histogram",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

pub(crate) fn kind(status: u8) -> ChangeKind {
    match status {
        b'A' | b'C' => ChangeKind::Added,
        b'D' => ChangeKind::Deleted,
        b'R' => ChangeKind::Renamed,
        _ => ChangeKind::Modified,
    }
}

fn unexpected(detail: impl Into<String>) -> SandboxError {
    SandboxError::Unexpected { command: "git diff-tree".to_owned(), detail: detail.into() }
}

/// `:<old mode> <new mode> <old id> <new id> <status>`, then one path, or two for a rename.
fn raw_record<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Result<RawChange> {
    let header = fields.next().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
    let parts: Vec<&str> = header.strip_prefix(':').unwrap_or_default().split(' ').collect();
    let [old_mode, new_mode, old_id, new_id, status] = parts[..] else { return Err(unexpected(header)) };
    let side = |mode: &str, id: &str| -> Result<Option<(String, ObjectId)>> {
        if mode == "000000" {
            return Ok(None);
        }
        Ok(Some((mode.to_owned(), parse_id("git diff-tree", id)?)))
    };
    let status = status.bytes().next().ok_or_else(|| unexpected(header.clone()))?;
    let first = fields.next().ok_or_else(|| unexpected("a record without a path"))?;
    let (path, old_path) = if matches!(status, b'R' | b'C') {
        (fields.next().ok_or_else(|| unexpected("a rename without a target"))?, Some(first))
    } else {
        (first, None)
    };
    let text = |bytes: &[u8]| os_path(bytes).to_string_lossy().into_owned();
    Ok(RawChange {
        old: side(old_mode, old_id)?,
        new: side(new_mode, new_id)?,
        status,
        path: text(path),
        old_path: old_path.map(text).filter(|_| status == b'R'),
        lossy: std::str::from_utf8(path).is_err()
            || old_path.is_some_and(|p| std::str::from_utf8(p).is_err()),
    })
}

type Counts = HashMap<String, Option<(u32, u32)>>;

/// Takes `--raw --numstat -p -z` output apart: records, counts by path (`None` for a binary file), a patch per record.
fn parse(output: &[u8]) -> Result<(Vec<RawChange>, Counts, Vec<Vec<u8>>)> {
    let mut cursor = Cursor { rest: output };
    let mut changes = Vec::new();
    while cursor.rest.first() == Some(&b':') {
        changes.push(raw_record(&mut cursor)?);
    }
    let mut counts = Counts::new();
    // The counts end where the separator's empty field stands.
    while let Some(field) = cursor.next().filter(|field| !field.is_empty()) {
        let mut parts = field.splitn(3, |b| *b == b'\t');
        let (Some(insertions), Some(deletions), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(unexpected(String::from_utf8_lossy(field)));
        };
        let path = if path.is_empty() {
            cursor.next();
            cursor.next().unwrap_or_default()
        } else {
            path
        };
        let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<u32>().ok();
        counts
            .insert(os_path(path).to_string_lossy().into_owned(), number(insertions).zip(number(deletions)));
    }
    let mut pieces = split_patches(cursor.rest).into_iter();
    let mut patches = Vec::with_capacity(changes.len());
    for change in &changes {
        let mut patch =
            pieces.next().ok_or_else(|| unexpected(format!("no patch for {}", change.path)))?.to_vec();
        if change.status == b'T' {
            // A change of type is shown as a deletion and an addition.
            patch.extend_from_slice(pieces.next().unwrap_or_default());
        }
        patches.push(patch);
    }
    Ok((changes, counts, patches))
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Cursor<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|b| *b == 0)?;
        let field = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(field)
    }
}

/// No line of a hunk or of a binary literal can begin with `diff --git `.
fn split_patches(text: &[u8]) -> Vec<&[u8]> {
    const START: &[u8] = b"diff --git ";
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(START) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect()
}

fn hunks(patch: &str) -> Vec<DiffHunk> {
    let mut hunks: Vec<DiffHunk> = Vec::new();
    let (mut old, mut new) = (0u32, 0u32);
    let mut inside = false;
    for line in patch.split_inclusive('\n') {
        let text = line.strip_suffix('\n').unwrap_or(line);
        if text.starts_with("diff --git ") {
            inside = false;
        } else if let Some((range, starts)) = text.strip_prefix("@@ ").and_then(hunk_range) {
            (old, new) = starts;
            inside = true;
            hunks.push(DiffHunk { range, lines: Vec::new() });
        } else if inside && let Some(hunk) = hunks.last_mut() {
            let Some(kind) = text.get(..1).filter(|kind| matches!(*kind, " " | "-" | "+")) else { continue };
            let body = text[1..].strip_suffix('\r').unwrap_or(&text[1..]).to_owned();
            let (in_old, in_new) = (kind != "+", kind != "-");
            hunk.lines.push(DiffLine {
                kind: kind.to_owned(),
                text: body,
                old: in_old.then_some(old),
                new: in_new.then_some(new),
            });
            old += u32::from(in_old);
            new += u32::from(in_new);
        }
    }
    hunks
}

/// `-1,4 +1,3 @@ fn main()` to `@@ -1,4 +1,3 @@` and the two first lines.
fn hunk_range(text: &str) -> Option<(String, (u32, u32))> {
    let (ranges, _) = text.split_once(" @@")?;
    let (old, new) = ranges.split_once(' ')?;
    let start = |range: &str, sign| range.strip_prefix(sign)?.split(',').next()?.parse().ok();
    Some((format!("@@ {ranges} @@"), (start(old, '-')?, start(new, '+')?)))
}

/// Sizes in bytes of the new side of each record, of the old side for a deletion.
fn sizes(repository: &Repository, changes: &[RawChange]) -> Result<Vec<u64>> {
    let side = |change: &RawChange| change.new.clone().or_else(|| change.old.clone());
    let wanted: Vec<Option<ObjectId>> = changes
        .iter()
        .map(|change| side(change).filter(|(mode, _)| mode != MODE_SUBMODULE).map(|(_, id)| id))
        .collect();
    let mut stdin = String::new();
    for id in wanted.iter().flatten() {
        stdin.push_str(id.as_str());
        stdin.push('\n');
    }
    if stdin.is_empty() {
        return Ok(vec![0; changes.len()]);
    }
    let output = repository.git.call(["cat-file", "--batch-check=%(objectsize)"]).stdin(stdin).run()?;
    let text = String::from_utf8_lossy(&output);
    let mut lines = text.lines();
    Ok(wanted.iter().map(|id| id.as_ref().and_then(|_| lines.next()?.parse().ok()).unwrap_or(0)).collect())
}

/// The patch of one file whose text is not UTF-8, as a binary patch: from a view of the repository without a working
/// tree, whose only attributes say that nothing is text.
fn binary_patch(repository: &Repository, from: &str, to: &str, change: &RawChange) -> Result<Option<String>> {
    let directory = tempfile::tempdir().map_err(SandboxError::io("create", std::env::temp_dir()))?;
    let attributes = directory.path().join("attributes");
    std::fs::write(&attributes, "* -diff\n").map_err(SandboxError::io("write", &attributes))?;
    let mut git = repository.git.with_index(&directory.path().join("no-index"));
    git.config.push(("core.attributesFile".into(), attributes.into_os_string()));
    git.work_tree = directory.path().to_owned();
    let paths: Vec<&str> = change.old_path.iter().map(String::as_str).chain([change.path.as_str()]).collect();
    let output = git.run(["diff-tree"].iter().chain(PATCH_OPTIONS).chain(&[from, to, "--"]).chain(&paths))?;
    let patch = output.strip_prefix(b"\0").unwrap_or(&output);
    Ok(String::from_utf8(patch.to_vec()).ok().filter(|patch| !patch.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_hunks_carry_their_numbers() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -2,3 +2,2 @@ fn main()\n a\n-b\r\n+c\n-d\n\\ No newline at end of file\n";
        let hunks = hunks(patch);
        assert_eq!(hunks.len(), 1);
        assert_eq!(hunks[0].range, "@@ -2,3 +2,2 @@");
        let shown: Vec<_> =
            hunks[0].lines.iter().map(|l| (l.kind.as_str(), l.text.as_str(), l.old, l.new)).collect();
        assert_eq!(
            shown,
            [
                (" ", "a", Some(2), Some(2)),
                ("-", "b", Some(3), None),
                ("+", "c", None, Some(3)),
                ("-", "d", Some(4), None)
            ]
        );
    }

    #[test]
    fn a_removed_line_that_looks_like_a_header_stays_a_line() {
        let patch =
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- a/old\n-@@ -1 +1 @@\n+++ b/new\n";
        let hunks = hunks(patch);
        assert_eq!(hunks.len(), 1);
        assert_eq!(hunks[0].lines.len(), 3);
    }
}
