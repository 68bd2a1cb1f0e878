//! The user's checkout: found, checked once, and never changed by anything in here. A plain folder is one, too, with a
//! git directory of ours somewhere else ([`crate::folder`]).

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

use agents_domain::ids::PlanId;
use serde::{Deserialize, Serialize};

use crate::error::{Result, SandboxError};
use crate::git::{self, CommitId, Git, ObjectId, nul_fields, parse_id};
use crate::settings::{self, Settings};

/// What is checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The commit.
    pub commit: CommitId,
    /// The short branch name; `None` when HEAD is detached.
    pub branch: Option<String>,
}

/// An opened git checkout.
#[derive(Debug, Clone)]
pub struct Repository {
    pub(crate) git: Git,
    common_dir: PathBuf,
    /// A plain folder with a store of ours.
    folder: bool,
    pub(crate) settings: Settings,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// What git stores it as.
    pub blob: ObjectId,
    /// Its bytes as a checkout would write them, or a link's target.
    pub bytes: Vec<u8>,
}

/// Modes of tree entries.
pub(crate) const MODE_FILE: &str = "100644";
pub(crate) const MODE_EXECUTABLE: &str = "100755";
pub(crate) const MODE_LINK: &str = "120000";
pub(crate) const MODE_SUBMODULE: &str = "160000";

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) path: String,
    pub(crate) mode: String,
    pub(crate) id: ObjectId,
}

impl Repository {
    /// Opens the checkout whose top level is `path`; a linked worktree or a submodule is one too.
    ///
    /// Refuses with an error of its own: git missing or too old, no repository, a bare one, no commit yet, a folder
    /// inside a checkout, a repository git does not trust.
    pub fn open(path: &Path) -> Result<Self> {
        git::version()?;
        let root = path.canonicalize().map_err(SandboxError::io("open", path))?;
        let found = git::discover(
            &root,
            &[
                "rev-parse",
                "--path-format=absolute",
                "--is-bare-repository",
                "--is-inside-work-tree",
                "--git-dir",
                "--git-common-dir",
                "--show-prefix",
            ],
        )?;
        if found.code != 0 {
            return Err(if found.stderr.contains("dubious ownership") {
                SandboxError::NotTrusted { path: root }
            } else if found.stderr.contains("not a git repository") {
                SandboxError::NotARepository { path: root }
            } else {
                SandboxError::Git { command: "git rev-parse".into(), code: found.code, stderr: found.stderr }
            });
        }
        let text = String::from_utf8(found.stdout).map_err(|_| SandboxError::Unexpected {
            command: "git rev-parse".into(),
            detail: "the repository's path is not UTF-8".into(),
        })?;
        let lines: Vec<&str> = text.split('\n').collect();
        let [bare, inside, git_dir, common_dir, prefix, ..] = lines.as_slice() else {
            return Err(SandboxError::Unexpected { command: "git rev-parse".into(), detail: text });
        };
        if *inside != "true" {
            return Err(if *bare == "true" {
                SandboxError::Bare { path: root }
            } else {
                SandboxError::NotARepository { path: root }
            });
        }
        if !prefix.is_empty() {
            let depth = Path::new(prefix).components().count();
            let top = root.ancestors().nth(depth).unwrap_or(&root).to_owned();
            return Err(SandboxError::NotTopLevel { path: root, top });
        }
        let git = Git { git_dir: git_dir.into(), work_tree: root, index: None, config: Vec::new() };
        Self::assemble(git, (*common_dir).into(), false)
    }

    pub(crate) fn assemble(git: Git, common_dir: PathBuf, folder: bool) -> Result<Self> {
        let repository = Self { git, common_dir, folder, settings: Settings::default() };
        let repository = repository.with_settings_now()?;
        repository.head()?;
        Ok(repository)
    }

    /// Whether it is a plain folder ([`Repository::open_folder`]): its commits and its branch are ours, and nobody's business.
    pub fn is_folder(&self) -> bool {
        self.folder
    }

    /// The same checkout under the configuration that holds now: it may depend on the branch that is checked out.
    pub(crate) fn with_settings_now(&self) -> Result<Self> {
        let mut git = Git { config: Vec::new(), ..self.git.clone() };
        let settings = settings::read(&git)?;
        git.config.clone_from(&settings.disarming);
        Ok(Self { git, common_dir: self.common_dir.clone(), folder: self.folder, settings })
    }

    /// The top level of the checkout, without links.
    pub fn path(&self) -> &Path {
        &self.git.work_tree
    }

    /// The checkout's own git directory; under the common one for a linked worktree.
    pub fn git_dir(&self) -> &Path {
        &self.git.git_dir
    }

    /// The git directory all worktrees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// What is checked out now.
    pub fn head(&self) -> Result<Head> {
        let output =
            self.git.call(["rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD"]).output()?;
        if output.code != 0 {
            return Err(SandboxError::Unborn { path: self.path().to_owned() });
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let commit = parse_id("git rev-parse", lines.next().unwrap_or_default())?;
        let branch = lines.next().and_then(|name| name.strip_prefix("refs/heads/")).map(str::to_owned);
        Ok(Head { commit, branch })
    }

    /// The bytes of a file in a commit as a checkout would write them (line endings converted as configured, no
    /// external filter run), or a link's target; `None` when it is not there or not a file.
    pub fn file_at(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.files_at(commit, &[path])?.remove(path).map(|file| file.bytes))
    }

    /// As [`Repository::file_at`], of many files for the price of a few: those that are not there are left out.
    pub fn files_at<P: AsRef<str>>(
        &self,
        commit: &CommitId,
        paths: &[P],
    ) -> Result<HashMap<String, StoredFile>> {
        let paths: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
        let entries = self.tree_entries(commit.as_str(), &paths)?;
        let mut files = HashMap::with_capacity(entries.len());
        for (checkout, modes) in [(true, &[MODE_FILE, MODE_EXECUTABLE][..]), (false, &[MODE_LINK])] {
            let found: Vec<&TreeEntry> = entries.iter().filter(|e| modes.contains(&&*e.mode)).collect();
            let items: Vec<(&ObjectId, &str)> = found.iter().map(|e| (&e.id, &*e.path)).collect();
            for (entry, bytes) in found.iter().zip(self.blobs(checkout, &items)?) {
                files.insert(entry.path.clone(), StoredFile { blob: entry.id.clone(), bytes });
            }
        }
        Ok(files)
    }

    /// What a tree has at each path; paths it does not have are left out.
    pub(crate) fn tree_entries(&self, treeish: &str, paths: &[&str]) -> Result<Vec<TreeEntry>> {
        let output = self.git.run_on_paths(&["ls-tree", "-z", treeish], paths)?;
        let unexpected = || SandboxError::Unexpected {
            command: "git ls-tree".to_owned(),
            detail: String::from_utf8_lossy(&output).into_owned(),
        };
        let mut entries = Vec::new();
        for field in nul_fields(&output) {
            let text = String::from_utf8_lossy(field);
            let (head, path) = text.split_once('\t').ok_or_else(unexpected)?;
            let [mode, _, id] = head.split(' ').collect::<Vec<_>>()[..] else { return Err(unexpected()) };
            entries.push(TreeEntry {
                path: path.to_owned(),
                mode: mode.to_owned(),
                id: parse_id("git ls-tree", id)?,
            });
        }
        Ok(entries)
    }

    /// The contents of blobs, converted as a checkout of the named path would when `checkout`.
    pub(crate) fn blobs(&self, checkout: bool, items: &[(&ObjectId, &str)]) -> Result<Vec<Vec<u8>>> {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        // The size git prints is that before conversion, so contents are told apart by a word nobody can foresee.
        let word = unforeseeable_word();
        let batch = format!("--batch={word}%(objecttype)");
        let output = if checkout {
            let call = self.git.converting(&["cat-file", "-z", batch.as_str(), "--filters"])?;
            call.stdin_paths(items.iter().map(|(id, path)| format!("{id} {path}"))).run()?
        } else {
            let call = self.git.call(["cat-file", "-z", batch.as_str()]);
            call.stdin_paths(items.iter().map(|(id, _)| id.as_str())).run()?
        };
        parse_batch(&output, &word, items.len()).map_err(|error| {
            let text = String::from_utf8_lossy(&output);
            let gone = items.iter().find(|(id, _)| {
                text.lines().any(|line| line.starts_with(id.as_str()) && line.ends_with(" missing"))
            });
            match gone {
                Some((id, path)) => {
                    SandboxError::MissingObject { object: id.to_string(), path: Some((*path).to_owned()) }
                }
                None => error,
            }
        })
    }

    /// An error in the user's terms when it comes from one of these commits not being here any more.
    pub(crate) fn explain(&self, error: SandboxError, commits: &[&CommitId]) -> SandboxError {
        if !matches!(error, SandboxError::Git { .. } | SandboxError::MissingObject { .. }) {
            return error;
        }
        match commits.iter().find(|commit| !self.has_commit(commit)) {
            Some(commit) => {
                SandboxError::SnapshotGone { commit: (*commit).clone(), repository: self.path().to_owned() }
            }
            None => error,
        }
    }

    pub(crate) fn has_commit(&self, commit: &CommitId) -> bool {
        let name = format!("{commit}^{{commit}}");
        self.git.call(["cat-file", "-e", name.as_str()]).output().is_ok_and(|output| output.code == 0)
    }

    pub(crate) fn tree_of(&self, treeish: &str) -> Result<ObjectId> {
        self.git.call(["rev-parse", "--verify", "-q"]).arg(format!("{treeish}^{{tree}}")).id()
    }

    /// A reference of a plan; linked worktrees get names of their own, since references are shared between them.
    pub(crate) fn plan_ref(&self, plan: PlanId, name: &str) -> String {
        let prefix = self.plan_ref_prefix(plan);
        format!("{prefix}{name}")
    }

    pub(crate) fn plan_ref_prefix(&self, plan: PlanId) -> String {
        let linked = self.git.git_dir != self.common_dir;
        match self.git.git_dir.file_name().and_then(|name| name.to_str()) {
            Some(name) if linked => format!("refs/cleveragents/plan-{plan}/worktrees/{name}/"),
            _ => format!("refs/cleveragents/plan-{plan}/"),
        }
    }

    /// A merge, rebase or the like that has been started and not ended.
    pub(crate) fn operation_in_progress(&self) -> Option<&'static str> {
        const OPERATIONS: &[(&str, &str)] = &[
            ("MERGE_HEAD", "merge"),
            ("rebase-merge", "rebase"),
            ("rebase-apply", "rebase"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
        ];
        OPERATIONS.iter().find(|(file, _)| self.git.git_dir.join(file).exists()).map(|(_, name)| *name)
    }

    pub(crate) fn index_path(&self) -> PathBuf {
        self.git.git_dir.join("index")
    }
}

fn unforeseeable_word() -> String {
    // Each `RandomState` is keyed from the operating system's random numbers.
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", random(), random())
}

/// Reads the answers of `cat-file --batch=<word>%(objecttype)`: the word and `blob`, a line break, the content, a line
/// break.
fn parse_batch(output: &[u8], word: &str, count: usize) -> Result<Vec<Vec<u8>>> {
    let header = format!("{word}blob\n");
    let unexpected = || SandboxError::Unexpected {
        command: "git cat-file --batch".to_owned(),
        detail: String::from_utf8_lossy(&output[..output.len().min(200)]).into_owned(),
    };
    let mut rest = output.strip_prefix(header.as_bytes()).ok_or_else(unexpected)?;
    let mut contents = Vec::with_capacity(count);
    let next = format!("\n{header}");
    while let Some(at) = find(rest, next.as_bytes()) {
        contents.push(rest[..at].to_vec());
        rest = &rest[at + next.len()..];
    }
    contents.push(rest.strip_suffix(b"\n").ok_or_else(unexpected)?.to_vec());
    if contents.len() == count { Ok(contents) } else { Err(unexpected()) }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = haystack.get(from..)?.iter().position(|b| *b == needle[0]) {
        if haystack[from + at..].starts_with(needle) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_told_apart_whatever_is_in_them() {
        let contents: [&[u8]; 4] = [b"a\n\nwordblo", b"", b"\n", b"\0\xff"];
        let mut output = Vec::new();
        for content in contents {
            output.extend_from_slice(b"wordblob\n");
            output.extend_from_slice(content);
            output.push(b'\n');
        }
        assert_eq!(parse_batch(&output, "word", 4).unwrap(), contents);
        assert!(parse_batch(&output, "word", 3).is_err());
        assert!(parse_batch(b"0123 missing\n", "word", 1).is_err());
    }
}
