//! Three-way merges of whole trees, by git itself, without touching a file.

use std::collections::BTreeMap;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::error::{Result, SandboxError};
use crate::git::{self, CommitId, ObjectId, Output, parse_id};
use crate::repository::Repository;

/// A file both sides changed in ways that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The file, relative, with `/`.
    pub path: String,
    /// Git's name of the conflict: `contents`, `modify/delete`, `add/add`, `rename/delete` ...
    pub kind: String,
    /// The places, for a conflict of contents.
    pub hunks: Vec<ConflictHunk>,
}

/// One place of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictHunk {
    /// 1-based line in the checkout's version of the file.
    pub line: u32,
    /// What the checkout has.
    pub ours: String,
    /// What the plan has.
    pub theirs: String,
}

/// A merged tree; with conflicts it is not to be used.
pub(crate) struct Merged {
    pub(crate) tree: ObjectId,
    pub(crate) conflicts: Vec<Conflict>,
}

/// A plan's changes: what lies between two trees.
pub(crate) struct Changes<'a> {
    pub(crate) base: &'a CommitId,
    pub(crate) base_tree: &'a ObjectId,
    pub(crate) result_tree: &'a ObjectId,
}

/// Merges a plan's changes into a tree.
pub(crate) fn merge_into(repository: &Repository, plan: &Changes<'_>, ours: &ObjectId) -> Result<Merged> {
    let clean = |tree: &ObjectId| Ok(Merged { tree: tree.clone(), conflicts: Vec::new() });
    if ours == plan.base_tree || ours == plan.result_tree {
        return clean(plan.result_tree);
    }
    if plan.base_tree == plan.result_tree {
        return clean(ours);
    }
    // Commits of both trees on top of the base make the base their merge base, in every version of git.
    let on_base = |tree: &ObjectId| -> Result<CommitId> {
        repository
            .git
            .call(["commit-tree", tree.as_str(), "-p", plan.base.as_str(), "-F", "-"])
            .by_us()
            .stdin("merge side\n")
            .id()
    };
    let (ours, theirs) = (on_base(ours)?, on_base(plan.result_tree)?);
    let output = merge_tree(repository, &ours, &theirs)?;
    let fields: Vec<&[u8]> = output.stdout.split(|b| *b == 0).collect();
    let tree: ObjectId =
        parse_id("git merge-tree", &String::from_utf8_lossy(fields.first().unwrap_or(&&b""[..])))?;
    if output.code == 0 {
        return Ok(Merged { tree, conflicts: Vec::new() });
    }
    let conflicts = conflicts(repository, &tree, &fields[1..])?;
    if conflicts.is_empty() {
        return Err(SandboxError::Unexpected {
            command: "git merge-tree".to_owned(),
            detail: "conflicts without a file".to_owned(),
        });
    }
    Ok(Merged { tree, conflicts })
}

/// Merges two commits where no merge driver is configured, so that none runs: what an attribute wants merged by one is
/// merged as text. Giving a driver another command would not do, since git has none that means as much.
fn merge_tree(repository: &Repository, ours: &CommitId, theirs: &CommitId) -> Result<Output> {
    let directory =
        tempfile::tempdir().map_err(SandboxError::io("create a directory in", std::env::temp_dir()))?;
    let git_dir = directory.path();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(git_dir.join(name), bytes).map_err(SandboxError::io("write", git_dir.join(name)))
    };
    for name in ["refs", "info"] {
        fs::create_dir(git_dir.join(name)).map_err(SandboxError::io("create", git_dir.join(name)))?;
    }
    let config: &[u8] = match ours.as_str().len() {
        64 => b"[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n",
        _ => b"[core]\n\trepositoryFormatVersion = 0\n",
    };
    write("config", config)?;
    write("HEAD", b"ref: refs/heads/none\n")?;
    for name in ["info/attributes", "shallow"] {
        match fs::read(repository.common_dir().join(name)) {
            Ok(bytes) => write(name, &bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(SandboxError::io("read", repository.common_dir().join(name))(error)),
        }
    }
    git::call_isolated(
        git_dir,
        repository.path(),
        &repository.common_dir().join("objects"),
        &repository.settings.merging,
        &["merge-tree", "--write-tree", "-z", "--messages", ours.as_str(), theirs.as_str()],
    )
    .accept(&[0, 1])
    .checked()
}

/// `<mode> <id> <stage>\t<path>` per conflicted entry, an empty field, then per message: a count, that many paths, the
/// type and the text.
fn conflicts(repository: &Repository, tree: &ObjectId, fields: &[&[u8]]) -> Result<Vec<Conflict>> {
    let text = |bytes: &&[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut kinds: BTreeMap<String, String> = BTreeMap::new();
    let mut rest = fields.iter();
    for field in rest.by_ref().take_while(|field| !field.is_empty()) {
        let field = text(field);
        if let Some((_, path)) = field.split_once('\t') {
            kinds.entry(path.to_owned()).or_insert_with(|| "contents".to_owned());
        }
    }
    while let Some(count) = rest.next().and_then(|field| text(field).parse::<usize>().ok()) {
        let paths: Vec<String> = rest.by_ref().take(count).map(text).collect();
        let kind = rest.next().map(text).unwrap_or_default();
        rest.next();
        if let Some(kind) = kind.strip_prefix("CONFLICT (").and_then(|kind| kind.strip_suffix(')')) {
            for path in paths {
                if let Some(known) = kinds.get_mut(&path) {
                    *known = kind.to_owned();
                }
            }
        }
    }
    let mut conflicts = Vec::with_capacity(kinds.len());
    for (path, kind) in kinds {
        let entry = repository.tree_entries(tree.as_str(), &[&path])?.into_iter().next();
        let hunks = match entry {
            Some(entry) => {
                let bytes = repository.blobs(false, &[(&entry.id, &path)])?.pop().unwrap_or_default();
                hunks(&String::from_utf8_lossy(&bytes))
            }
            None => Vec::new(),
        };
        conflicts.push(Conflict { path, kind, hunks });
    }
    Ok(conflicts)
}

/// Reads git's conflict markers.
fn hunks(text: &str) -> Vec<ConflictHunk> {
    enum At {
        Outside,
        Ours,
        Base,
        Theirs,
    }
    let mut hunks = Vec::new();
    let (mut at, mut line) = (At::Outside, 1u32);
    let mut open: Option<ConflictHunk> = None;
    for row in text.split_inclusive('\n') {
        match (&at, open.as_mut()) {
            (At::Outside, _) if row.starts_with("<<<<<<< ") => {
                open = Some(ConflictHunk { line, ours: String::new(), theirs: String::new() });
                at = At::Ours;
            }
            (At::Ours, _) if row.starts_with("||||||| ") => at = At::Base,
            (At::Ours | At::Base, _) if row.trim_end() == "=======" => at = At::Theirs,
            (At::Theirs, _) if row.starts_with(">>>>>>> ") => {
                hunks.extend(open.take());
                at = At::Outside;
            }
            (At::Ours, Some(hunk)) => {
                hunk.ours.push_str(row);
                line += 1;
            }
            (At::Theirs, Some(hunk)) => hunk.theirs.push_str(row),
            (At::Outside, _) => line += 1,
            _ => {}
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_markers_become_hunks_with_the_line_in_our_file() {
        let text = "a\n<<<<<<< x\nours 1\nours 2\n||||||| b\nbase\n=======\ntheirs\n>>>>>>> y\nb\n<<<<<<< x\n=======\nnew\n>>>>>>> y\n";
        let hunks = hunks(text);
        assert_eq!(
            hunks,
            [
                ConflictHunk { line: 2, ours: "ours 1\nours 2\n".into(), theirs: "theirs\n".into() },
                ConflictHunk { line: 5, ours: String::new(), theirs: "new\n".into() },
            ]
        );
    }
}
