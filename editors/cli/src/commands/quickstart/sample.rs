//! The sample repository: a small café in Python and TypeScript, with problems that language servers can fix.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agents_domain::{Error, ErrorKind};

/// Its files. Here they end with `.txt`, so that nobody fixes them in place.
const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("sample/README.md")),
    ("pyproject.toml", include_str!("sample/pyproject.toml")),
    ("cafe/menu.py", include_str!("sample/cafe/menu.py.txt")),
    ("cafe/orders.py", include_str!("sample/cafe/orders.py.txt")),
    ("cafe/receipt.py", include_str!("sample/cafe/receipt.py.txt")),
    ("web/tsconfig.json", include_str!("sample/web/tsconfig.json")),
    ("web/src/cart.ts", include_str!("sample/web/src/cart.ts.txt")),
    ("web/src/money.ts", include_str!("sample/web/src/money.ts.txt")),
    ("web/src/page.ts", include_str!("sample/web/src/page.ts.txt")),
];

/// Who commits it and when; always the same, so that every sample is the same commit.
const COMMITTER: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "CleverAgents"),
    ("GIT_AUTHOR_EMAIL", "agents@cleveragents.invalid"),
    ("GIT_AUTHOR_DATE", "2026-01-01T09:00:00Z"),
    ("GIT_COMMITTER_NAME", "CleverAgents"),
    ("GIT_COMMITTER_EMAIL", "agents@cleveragents.invalid"),
    ("GIT_COMMITTER_DATE", "2026-01-01T09:00:00Z"),
];

/// What would make git look at another repository than the one named.
const ELSEWHERE: [&str; 6] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE"];

/// Whether nothing is at a place: no entry, or a folder without any.
pub fn is_free(dir: &Path) -> bool {
    match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => fs::symlink_metadata(dir).is_err(),
    }
}

/// Makes the sample at a place where nothing is. It appears there whole or not at all.
///
/// # Errors
/// When something is there, git is missing, or the place cannot be written.
pub fn make(dir: &Path) -> Result<(), Error> {
    if !is_free(dir) {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("{} is there already and not empty: the sample needs a folder of its own", dir.display()),
        )
        .suggest(format!("agents quickstart {}  # to work on what is there", dir.display()))
        .suggest("agents quickstart --sample <ANOTHER-DIR>"));
    }
    let beside = beside(dir);
    let made = write(&beside).and_then(|()| commit(&beside)).and_then(|()| {
        // An empty folder gives way to it.
        fs::rename(&beside, dir).map_err(|e| unwritable(dir, &e))
    });
    if made.is_err() {
        let _ = fs::remove_dir_all(&beside);
    }
    made
}

/// Where it is made until it is whole: on the same file system, and nobody else's.
fn beside(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_else(|| OsStr::new("sample")).to_string_lossy();
    dir.with_file_name(format!(".{name}.{}", std::process::id()))
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display()))
        .suggest("agents quickstart --sample <ANOTHER-DIR>")
}

fn write(dir: &Path) -> Result<(), Error> {
    for (name, text) in FILES {
        let path = dir.join(name);
        let folder = path.parent().unwrap_or(dir);
        fs::create_dir_all(folder).map_err(|e| unwritable(folder, &e))?;
        fs::write(&path, text).map_err(|e| unwritable(&path, &e))?;
    }
    Ok(())
}

fn commit(dir: &Path) -> Result<(), Error> {
    git(dir, &["init", "--quiet", "--template=", "--initial-branch=main"])?;
    git(dir, &["add", "--all"])?;
    git(dir, &["commit", "--quiet", "--no-verify", "--message=A small café, with some problems"])
}

/// Runs git with nothing of the user's that would make the sample another one.
fn git(dir: &Path, args: &[&str]) -> Result<(), Error> {
    let mut command = Command::new("git");
    command.current_dir(dir).args(["-c", "core.autocrlf=false", "-c", "core.hooksPath=/dev/null"]);
    command.args(["-c", "core.excludesFile=/dev/null", "-c", "commit.gpgSign=false"]);
    command.args(args).envs(COMMITTER).stdin(Stdio::null());
    for variable in ELSEWHERE {
        command.env_remove(variable);
    }
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::new(ErrorKind::ValidationFailed, "git is not installed or not on PATH")
                .suggest("install git 2.38 or newer (https://git-scm.com/downloads)")
                .suggest("agents diagnostics")
        }
        _ => Error::new(ErrorKind::Io, format!("git cannot be started: {error}")),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(ErrorKind::Io, format!("`git {}` failed in {}", args[0], dir.display()))
        .detail(said.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(dir: &Path) -> String {
        let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(dir).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn every_sample_is_the_same_commit_and_none_replaces_anything() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        fs::create_dir(&two).unwrap();
        make(&one).unwrap();
        make(&two).unwrap();
        assert_eq!(head(&one), head(&two));
        assert_eq!(make(&one).unwrap_err().kind, ErrorKind::AlreadyExists);
        let file = dir.path().join("file");
        fs::write(&file, "mine").unwrap();
        assert_eq!(make(&file).unwrap_err().kind, ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is left beside them");
    }

    #[test]
    fn a_sample_that_cannot_be_made_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        for place in [&dir.path().join("file/sample"), Path::new("/proc/sample")] {
            assert_eq!(make(place).unwrap_err().kind, ErrorKind::Io);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
