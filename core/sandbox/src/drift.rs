//! How far a checkout has moved on from what a plan began on.

use crate::diff::raw_changes;
use crate::error::Result;
use crate::git::CommitId;
use crate::repository::Repository;

/// A checkout that moved on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// What is checked out now.
    pub head: CommitId,
    /// Commits since; `None` when the old commit is no longer part of it.
    pub commits: Option<u32>,
    /// Files changed both between the base and the result and in the checkout since.
    pub files: Vec<String>,
}

/// The most files that are compared.
const FILES: usize = 500;

/// Compares a checkout with the commit that was checked out (`head`), the snapshot made then (`base`) and what a plan
/// made of it (`result`); `None` when nothing moved. Changes nothing.
pub fn drift(
    repository: &Repository,
    head: &CommitId,
    base: &CommitId,
    result: &CommitId,
) -> Result<Option<Moved>> {
    let now = repository.head()?.commit;
    // What a folder's branch has is what was found in the folder, whoever looked.
    let commits = if now == *head || repository.is_folder() {
        Some(0)
    } else {
        let git = &repository.git;
        let contained =
            git.call(["merge-base", "--is-ancestor", head.as_str(), now.as_str()]).output()?.code == 0;
        let range = format!("{head}..{now}");
        let count = || git.line(["rev-list", "--count", range.as_str(), "--"]);
        if contained { count()?.parse().ok() } else { None }
    };
    let mut files = Vec::new();
    let mut changes = raw_changes(repository, base.as_str(), result.as_str(), false)?;
    changes.truncate(FILES);
    let old: Vec<&str> = changes.iter().filter(|c| c.old.is_some()).map(|c| c.path.as_str()).collect();
    let were = repository.files_at(base, &old)?;
    for change in changes {
        let path = repository.path().join(&change.path);
        // A link is compared by where it leads; whatever cannot be read is taken for gone.
        let there = match std::fs::read_link(&path) {
            Ok(target) => Some(target.into_os_string().into_encoded_bytes()),
            Err(_) => std::fs::read(&path).ok(),
        };
        if there.as_deref() != were.get(&change.path).map(|was| was.bytes.as_slice()) {
            files.push(change.path);
        }
    }
    Ok((commits != Some(0) || !files.is_empty()).then_some(Moved { head: now, commits, files }))
}
