//! What can go wrong with a repository or a sandbox, in words a person can act on.

use std::io;
use std::path::PathBuf;

use agents_domain::text::EditError;

use crate::git::{CommitId, MINIMUM_GIT};
use crate::paths::PathRefusal;

/// The result of this crate's operations.
pub type Result<T, E = SandboxError> = std::result::Result<T, E>;

/// Why a repository or sandbox operation was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// There is no `git` command.
    #[error("git is not installed or not on PATH; install git {}.{} or newer (https://git-scm.com/downloads)", MINIMUM_GIT.0, MINIMUM_GIT.1)]
    GitMissing,
    /// The `git` command is older than what is needed.
    #[error("`{found}` is too old: git {}.{} or newer is needed (https://git-scm.com/downloads)", MINIMUM_GIT.0, MINIMUM_GIT.1)]
    GitTooOld {
        /// What `git --version` said.
        found: String,
    },
    /// Not inside a git repository.
    #[error("{} is not a git repository; run `git init` there and commit once, or name a checkout", path.display())]
    NotARepository {
        /// The path given.
        path: PathBuf,
    },
    /// A repository without a working tree.
    #[error("{} is a bare repository: a checkout with files is needed (`git worktree add` makes one)", path.display())]
    Bare {
        /// The path given.
        path: PathBuf,
    },
    /// No commit yet.
    #[error("{} has no commit yet: commit once, then try again", path.display())]
    Unborn {
        /// The checkout.
        path: PathBuf,
    },
    /// A folder inside a checkout.
    #[error("{} is inside a checkout; name its top level, {}", path.display(), top.display())]
    NotTopLevel {
        /// The path given.
        path: PathBuf,
        /// The checkout it belongs to.
        top: PathBuf,
    },
    /// Git refuses the repository because someone else owns it.
    #[error("git does not trust {} because another user owns it; `git config --global --add safe.directory {}` allows it", path.display(), path.display())]
    NotTrusted {
        /// The path given.
        path: PathBuf,
    },
    /// Files with unresolved conflicts in the index.
    #[error("unresolved merge conflicts in {}; resolve and `git add` them first", paths.join(", "))]
    Unmerged {
        /// The files.
        paths: Vec<String>,
    },
    /// Another git process holds a lock file.
    #[error("another git process holds {}; wait for it, or remove the file when no git process is running", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A sandbox directory inside the checkout it was made of.
    #[error("the sandbox {} would be inside the repository {}; choose a data directory outside it", dir.display(), repository.display())]
    InsideRepository {
        /// Where the sandbox was to be.
        dir: PathBuf,
        /// The checkout.
        repository: PathBuf,
    },
    /// The directory is there, but is no sandbox of ours.
    #[error("{} exists and is not a sandbox; move it away", dir.display())]
    NotASandbox {
        /// The directory.
        dir: PathBuf,
    },
    /// There is no sandbox, or it was not finished.
    #[error("there is no complete sandbox in {}", dir.display())]
    NoSandbox {
        /// The directory.
        dir: PathBuf,
    },
    /// Removal would lose edits nobody else has.
    #[error("the sandbox {} holds changes no checkpoint has: {}", dir.display(), paths.join(", "))]
    Dirty {
        /// The sandbox.
        dir: PathBuf,
        /// The files.
        paths: Vec<String>,
    },
    /// A path a tool may not use.
    #[error("`{path}` is refused: {reason}")]
    PathRefused {
        /// The path as given.
        path: String,
        /// Why.
        reason: PathRefusal,
    },
    /// No such file.
    #[error("`{path}` does not exist in the sandbox")]
    NotFound {
        /// The path.
        path: String,
    },
    /// A file is where a new one should go.
    #[error("`{path}` exists already")]
    Exists {
        /// The path.
        path: String,
    },
    /// Text edits on a file that is not UTF-8.
    #[error("`{path}` is not UTF-8 text, so text edits cannot be applied to it")]
    NotUtf8 {
        /// The path.
        path: String,
    },
    /// Text edits that do not fit the text.
    #[error("the edits do not fit `{path}`: {source}")]
    Edit {
        /// The path.
        path: String,
        /// Which edit and why.
        source: EditError,
    },
    /// Edits failed half-way and could not all be taken back.
    #[error("edits failed ({source}) and could not be taken back in {}", paths.join(", "))]
    HalfDone {
        /// Files left changed.
        paths: Vec<String>,
        /// Why the edits failed.
        source: Box<SandboxError>,
    },
    /// A commit of a plan is not in the repository.
    #[error("the plan's snapshot {commit} is no longer in the repository {}: it was replaced by another, or its objects were removed; put the repository back, or cancel the plan and start it anew", repository.display())]
    SnapshotGone {
        /// The commit.
        commit: CommitId,
        /// The checkout.
        repository: PathBuf,
    },
    /// An object is not here: the clone is a partial or a damaged one. Nothing is ever fetched on the quiet.
    #[error("the repository does not have git object {object}{}; in a partial clone `git fetch --refetch --no-filter` brings all of them, in a shallow one `git fetch --unshallow`; in any other, `git fsck` says what is damaged", of_file(path.as_deref()))]
    MissingObject {
        /// The object's name.
        object: String,
        /// The file whose content it is, if known.
        path: Option<String>,
    },
    /// Git could not read or write a file.
    #[error("git could not use the disk: {detail}; check free space and permissions, then try again")]
    Disk {
        /// What git said.
        detail: String,
    },
    /// A git command failed.
    #[error("`{command}` failed with exit code {code}: {stderr}")]
    Git {
        /// The command's name, without its arguments.
        command: String,
        /// Its exit code; -1 after a signal.
        code: i32,
        /// What it said.
        stderr: String,
    },
    /// A git command answered in an unknown form.
    #[error("`{command}` gave an answer that was not understood: {detail}")]
    Unexpected {
        /// The command.
        command: String,
        /// What was wrong with it.
        detail: String,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// A verb, such as `read`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A state file of ours cannot be read.
    #[error("{} is damaged: {detail}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
}

fn of_file(path: Option<&str>) -> String {
    path.map(|path| format!(" (file `{path}`)")).unwrap_or_default()
}

impl SandboxError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn refused(path: impl Into<String>, reason: PathRefusal) -> Self {
        Self::PathRefused { path: path.into(), reason }
    }
}
