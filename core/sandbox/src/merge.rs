//! Merging one sandbox's work into another's, as commits: no file is touched.

use crate::apply::{Changes, Conflict, merge_into};
use crate::error::Result;
use crate::git::CommitId;
use crate::message::one_line;
use crate::repository::Repository;

/// The most characters of a merge's label.
const LABEL: usize = 200;

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedWork {
    /// A commit on top of ours with what both have; ours itself when there is nothing to take in. With conflicts its
    /// files hold git's markers.
    pub commit: CommitId,
    /// Files both sides changed in ways that exclude each other.
    pub conflicts: Vec<Conflict>,
}

/// Takes what lies between `base` and `theirs` into `ours`, three-way; the same commits give the same result.
pub fn merge(
    repository: &Repository,
    base: &CommitId,
    theirs: &CommitId,
    ours: &CommitId,
    label: &str,
) -> Result<MergedWork> {
    let repository = &repository.with_settings_now()?;
    let [base_tree, result_tree, ours_tree] = [base, theirs, ours]
        .map(|commit| repository.tree_of(commit.as_str()).map_err(|e| repository.explain(e, &[commit])));
    let ours_tree = ours_tree?;
    let changes = Changes { base, base_tree: &base_tree?, result_tree: &result_tree? };
    let merged = merge_into(repository, &changes, &ours_tree)?;
    if merged.tree == ours_tree {
        return Ok(MergedWork { commit: ours.clone(), conflicts: merged.conflicts });
    }
    let commit = repository
        .git
        .call(["commit-tree", merged.tree.as_str(), "-p", ours.as_str(), "-F", "-"])
        .by_us()
        .stdin(format!("{}\n", one_line(label, LABEL)))
        .id()?;
    Ok(MergedWork { commit, conflicts: merged.conflicts })
}

/// Whether a text holds git's conflict markers.
pub fn has_markers(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("<<<<<<< "))
        && text.lines().any(|line| line.starts_with(">>>>>>> "))
}

/// A text with each conflict replaced by one of its sides: theirs, or ours.
pub fn take_side(text: &str, theirs: bool) -> String {
    #[derive(PartialEq)]
    enum At {
        Outside,
        Ours,
        Base,
        Theirs,
    }
    let mut at = At::Outside;
    let mut out = String::with_capacity(text.len());
    for row in text.split_inclusive('\n') {
        match at {
            At::Outside if row.starts_with("<<<<<<< ") => at = At::Ours,
            At::Ours if row.starts_with("||||||| ") => at = At::Base,
            At::Ours | At::Base if row.trim_end() == "=======" => at = At::Theirs,
            At::Theirs if row.starts_with(">>>>>>> ") => at = At::Outside,
            At::Outside => out.push_str(row),
            At::Ours if !theirs => out.push_str(row),
            At::Theirs if theirs => out.push_str(row),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_of_every_conflict_is_taken_and_the_rest_stays() {
        let text = "a\n<<<<<<< 1\nours\n||||||| 0\nbase\n=======\ntheirs\n>>>>>>> 2\nb\n<<<<<<< 1\n=======\nnew\n>>>>>>> 2\n";
        assert!(has_markers(text));
        assert_eq!(take_side(text, false), "a\nours\nb\n");
        assert_eq!(take_side(text, true), "a\ntheirs\nb\nnew\n");
        assert!(!has_markers(&take_side(text, true)));
        assert!(!has_markers("Title\n=======\n"));
    }
}
