//! Runs the `git` command so that neither the user's environment, hooks, filters nor locks can change what it does.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::error::{Result, SandboxError};
use crate::failure::failure;

/// The oldest git that has `merge-tree --write-tree` and `cat-file -z`.
pub const MINIMUM_GIT: (u32, u32) = (2, 38);

/// A text that is not a full object name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a full git object name: expected 40 or 64 hexadecimal digits")]
pub struct InvalidObjectId(pub String);

macro_rules! object_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The hexadecimal name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidObjectId;

            fn from_str(text: &str) -> Result<Self, InvalidObjectId> {
                let hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
                if hex && matches!(text.len(), 40 | 64) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidObjectId(text.to_owned()))
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidObjectId;

            fn try_from(text: String) -> Result<Self, InvalidObjectId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    };
}

object_id!(/// The full name of a commit.
    CommitId);
object_id!(/// The full name of a tree or a blob.
    ObjectId);

/// Who internal commits are by, and apply commits of a user without an identity.
pub(crate) const OUR_NAME: &str = "CleverAgents";
pub(crate) const OUR_EMAIL: &str = "agents@localhost";

/// Configuration every call runs under: no hooks, no background work, no helpers, output that can be parsed.
const CONFIG: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "i18n.commitEncoding=UTF-8",
    "diff.suppressBlankEmpty=false",
    "merge.conflictStyle=merge",
    "checkout.workers=4",
    "worktree.useRelativePaths=false",
];

/// Variables with which the user reaches git on purpose; every other `GIT_*` would point it elsewhere.
const KEPT: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSL_NO_VERIFY",
    "GIT_SSL_CAINFO",
];

fn is_kept(name: &str) -> bool {
    KEPT.contains(&name) || name.starts_with("GIT_CONFIG_KEY_") || name.starts_with("GIT_CONFIG_VALUE_")
}

fn removed_variables() -> &'static [OsString] {
    static REMOVED: OnceLock<Vec<OsString>> = OnceLock::new();
    REMOVED.get_or_init(|| {
        std::env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| name.as_bytes().starts_with(b"GIT_") && !name.to_str().is_some_and(is_kept))
            .collect()
    })
}

/// A `git` command with a clean environment, before anything says which repository is meant.
fn clean_command() -> Command {
    let mut command = Command::new("git");
    for name in removed_variables() {
        command.env_remove(name);
    }
    command
        .env_remove("LANGUAGE")
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_EDITOR", "true")
        .env("GIT_PAGER", "cat")
        // Nothing is fetched, whichever objects are missing: fetching runs helpers that the configuration names. The
        // second variable, which wins over `protocol.*.allow`, is for versions of git that do not know the first.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// How many settings the user's environment brings along.
fn users_settings() -> usize {
    let count = std::env::var("GIT_CONFIG_COUNT");
    count.ok().and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Settings through the environment, after the first `from`: unlike with `-c`, a key may hold `=` and any bytes.
fn add_settings(command: &mut Command, from: usize, settings: &[(OsString, OsString)]) {
    command.env("GIT_CONFIG_COUNT", (from + settings.len()).to_string());
    for (number, (key, value)) in settings.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{}", from + number), key);
        command.env(format!("GIT_CONFIG_VALUE_{}", from + number), value);
    }
}

/// Which git is installed; refuses a missing or too old one.
pub(crate) fn version() -> Result<(u32, u32)> {
    static VERSION: OnceLock<(u32, u32)> = OnceLock::new();
    if let Some(version) = VERSION.get() {
        return Ok(*version);
    }
    let mut command = clean_command();
    command.arg("--version");
    let output = command.output().map_err(spawn_error)?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = parse_version(&text).ok_or_else(|| SandboxError::GitTooOld { found: text.clone() })?;
    if version < MINIMUM_GIT {
        return Err(SandboxError::GitTooOld { found: text });
    }
    Ok(*VERSION.get_or_init(|| version))
}

pub(crate) fn parse_version(text: &str) -> Option<(u32, u32)> {
    let number = text.strip_prefix("git version ")?.split_whitespace().next()?;
    let mut parts = number.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn spawn_error(error: io::Error) -> SandboxError {
    if error.kind() == io::ErrorKind::NotFound {
        SandboxError::GitMissing
    } else {
        SandboxError::Io { action: "start", path: PathBuf::from("git"), source: error }
    }
}

/// One repository view: a git directory, a working tree and the index in use.
///
/// Both directories are always named, so that a damaged `.git` file never makes git walk up into another repository.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    pub(crate) git_dir: PathBuf,
    pub(crate) work_tree: PathBuf,
    pub(crate) index: Option<PathBuf>,
    /// Settings of this view, keys and values, which win over those in files.
    pub(crate) config: Vec<(OsString, OsString)>,
}

impl Git {
    /// The same repository with another index file.
    pub(crate) fn with_index(&self, index: &Path) -> Self {
        Self { index: Some(index.to_owned()), ..self.clone() }
    }

    pub(crate) fn call<I, S>(&self, args: I) -> Call
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = clean_command();
        command.arg("-C").arg(&self.work_tree);
        for setting in CONFIG {
            command.arg("-c").arg(setting);
        }
        add_settings(&mut command, users_settings(), &self.config);
        let mut git_dir = OsString::from("--git-dir=");
        git_dir.push(&self.git_dir);
        let mut work_tree = OsString::from("--work-tree=");
        work_tree.push(&self.work_tree);
        command.arg(git_dir).arg(work_tree).env("GIT_LITERAL_PATHSPECS", "1");
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        Call::new(command, args)
    }

    /// A call that may convert contents, under the configuration of this very moment: a filter that was set up since the
    /// view was opened does not run either. Whatever writes an index may, since it looks again at files as young as it.
    pub(crate) fn converting(&self, args: &[&str]) -> Result<Call> {
        let mut git = self.clone();
        git.config.extend(crate::settings::read(self)?.disarming);
        Ok(git.call(args))
    }

    /// Runs and returns standard output.
    pub(crate) fn run<I, S>(&self, args: I) -> Result<Vec<u8>>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.call(args).run()
    }

    /// Runs with paths as arguments, in as many calls as the system's limit on arguments asks for.
    pub(crate) fn run_on_paths(&self, args: &[&str], paths: &[&str]) -> Result<Vec<u8>> {
        let mut output = Vec::new();
        for some in paths.chunks(500) {
            output.extend(self.call(args).arg("--").args(some).run()?);
        }
        Ok(output)
    }

    /// Runs and returns the one line printed.
    pub(crate) fn line<I, S>(&self, args: I) -> Result<String>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.call(args).line()
    }
}

/// A call in a git directory made for it, under these settings and no others: neither the user's files of configuration
/// nor those of a repository are read. Objects come from and go to `objects`.
pub(crate) fn call_isolated(
    git_dir: &Path,
    work_tree: &Path,
    objects: &Path,
    settings: &[(OsString, OsString)],
    args: &[&str],
) -> Call {
    let git = Git { git_dir: git_dir.into(), work_tree: work_tree.into(), index: None, config: Vec::new() };
    let mut call = git.call(args);
    add_settings(&mut call.command, 0, settings);
    call.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_OBJECT_DIRECTORY", objects)
}

/// Finds the repository around a directory; the only call that lets git search.
pub(crate) fn discover(path: &Path, args: &[&str]) -> Result<Output> {
    let mut command = clean_command();
    command.arg("-C").arg(path);
    Call::new(command, args).output()
}

/// What a finished git call gave.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// A git call being put together.
pub(crate) struct Call {
    command: Command,
    shown: String,
    stdin: Vec<u8>,
    accepted: &'static [i32],
}

impl Call {
    fn new<I, S>(mut command: Command, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut shown = String::from("git");
        for arg in args {
            shown.push(' ');
            shown.push_str(&arg.as_ref().to_string_lossy());
            command.arg(arg);
        }
        Self { command, shown, stdin: Vec::new(), accepted: &[0] }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.shown.push(' ');
        self.shown.push_str(&arg.as_ref().to_string_lossy());
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(self, args: &[S]) -> Self {
        args.iter().fold(self, Self::arg)
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Our identity for this commit.
    pub(crate) fn by_us(self) -> Self {
        self.env("GIT_AUTHOR_NAME", OUR_NAME)
            .env("GIT_AUTHOR_EMAIL", OUR_EMAIL)
            .env("GIT_COMMITTER_NAME", OUR_NAME)
            .env("GIT_COMMITTER_EMAIL", OUR_EMAIL)
    }

    /// The user's identity; ours when none is configured.
    pub(crate) fn by_user(self, configured: bool) -> Self {
        if configured { self } else { self.by_us() }
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Paths on standard input, each ended by NUL.
    pub(crate) fn stdin_paths<P: AsRef<OsStr>>(self, paths: impl IntoIterator<Item = P>) -> Self {
        let mut bytes = Vec::new();
        for path in paths {
            bytes.extend_from_slice(path.as_ref().as_bytes());
            bytes.push(0);
        }
        self.stdin(bytes)
    }

    /// Exit codes that are answers, not failures.
    pub(crate) fn accept(mut self, codes: &'static [i32]) -> Self {
        self.accepted = codes;
        self
    }

    /// Runs and returns whatever came, whichever the exit code.
    pub(crate) fn output(mut self) -> Result<Output> {
        if !self.stdin.is_empty() {
            self.command.stdin(Stdio::piped());
        }
        let mut child = self.command.spawn().map_err(spawn_error)?;
        let input = child.stdin.take();
        let stdin = std::mem::take(&mut self.stdin);
        // A child that stops reading early says why through its exit code; the broken pipe itself is no news.
        let output = std::thread::scope(|scope| {
            if let Some(mut input) = input {
                // What every pipe takes without a reader; more could wait for a child that waits for us.
                if stdin.len() <= 4096 {
                    let _ = input.write_all(&stdin);
                } else {
                    scope.spawn(move || {
                        let _ = input.write_all(&stdin);
                    });
                }
            }
            child.wait_with_output()
        })
        .map_err(|source| SandboxError::Io {
            action: "wait for",
            path: PathBuf::from("git"),
            source,
        })?;
        Ok(Output {
            code: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    /// Runs; an exit code that was not accepted is an error.
    pub(crate) fn checked(self) -> Result<Output> {
        let (accepted, shown) = (self.accepted, self.shown.clone());
        let output = self.output()?;
        tracing::trace!(command = %shown, code = output.code, "git");
        if accepted.contains(&output.code) {
            return Ok(output);
        }
        Err(failure(&shown, output.code, &output.stderr))
    }

    pub(crate) fn run(self) -> Result<Vec<u8>> {
        Ok(self.checked()?.stdout)
    }

    pub(crate) fn line(self) -> Result<String> {
        let text = String::from_utf8_lossy(&self.run()?).into_owned();
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// Runs and reads the object name printed.
    pub(crate) fn id<T: FromStr<Err = InvalidObjectId>>(self) -> Result<T> {
        let shown = self.shown.clone();
        let line = self.line()?;
        parse_id(&shown, &line)
    }
}

/// An object name out of git's output.
pub(crate) fn parse_id<T: FromStr<Err = InvalidObjectId>>(command: &str, text: &str) -> Result<T> {
    text.parse().map_err(|error: InvalidObjectId| SandboxError::Unexpected {
        command: command.to_owned(),
        detail: error.to_string(),
    })
}

/// Splits NUL-terminated output.
pub(crate) fn nul_fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    let empty = bytes.is_empty();
    bytes.split(|b| *b == 0).filter(move |_| !empty)
}

/// A path as git printed it.
pub(crate) fn os_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_every_vendor_are_read() {
        assert_eq!(parse_version("git version 2.47.3"), Some((2, 47)));
        assert_eq!(parse_version("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(parse_version("git version 2.45.1.windows.1"), Some((2, 45)));
        assert_eq!(parse_version("hub 2.1"), None);
    }

    #[test]
    fn only_full_object_names_are_commit_ids() {
        assert!("--upload-pack=x".parse::<CommitId>().is_err());
        assert!("HEAD".parse::<CommitId>().is_err());
        assert!("0d37cc76b4ea286b075acbe45b794d1e11c9e32e".parse::<CommitId>().is_ok());
    }

    #[test]
    fn fields_are_split_at_nul() {
        assert_eq!(nul_fields(b"").count(), 0);
        assert_eq!(nul_fields(b"a\0b c\0").collect::<Vec<_>>(), [b"a".as_slice(), b"b c"]);
    }
}
