//! The repository that a person names by any folder in it, and the place of the sample.

use std::path::{Path, PathBuf};

use agents_domain::{Error, ErrorKind};

use super::next::shell;
use crate::compose;

/// A folder with a leading `~/` as the shell would have written it.
pub fn expanded(dir: &str) -> String {
    match (dir.strip_prefix("~/"), compose::env("HOME")) {
        (Some(rest), Some(home)) => format!("{home}/{rest}"),
        _ => dir.to_owned(),
    }
}

/// The top level of the checkout that a folder is in.
pub fn top_level(dir: &Path) -> Result<PathBuf, Error> {
    let shown = dir.display();
    if !dir.is_dir() {
        let error = match dir.symlink_metadata() {
            Ok(_) => Error::validation(format!("{shown} is not a folder")),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Error::not_found(format!("there is no folder {shown}"))
            }
            Err(e) => Error::new(ErrorKind::Io, format!("{shown}: {e}")),
        };
        return Err(error
            .suggest(format!(
                "agents quickstart --sample {}  # to make a sample there",
                shell(&shown.to_string())
            ))
            .suggest("agents quickstart  # to see it on a sample"));
    }
    // Without `..`, so that what is above it in the path is above it.
    let real = dir.canonicalize().map_err(|e| Error::new(ErrorKind::Io, format!("{shown}: {e}")))?;
    let top = real.ancestors().find(|folder| folder.join(".git").exists());
    top.map(Path::to_owned).ok_or_else(|| {
        let quoted = shell(&real.display().to_string());
        Error::not_found(format!("{shown} is not in a git repository: a plan's work is a commit"))
            .suggest(format!("git -C {quoted} init && git -C {quoted} add --all && git -C {quoted} commit -m 'First commit'"))
            .suggest("agents quickstart  # to see it on a sample")
    })
}

/// The sample of an earlier run, if what is in its place still is a repository.
pub fn of_sample(own: &Path) -> Result<PathBuf, Error> {
    if own.join(".git").exists() {
        return Ok(own.to_owned());
    }
    Err(Error::new(
        ErrorKind::AlreadyExists,
        format!("{} is where the sample goes, and something else is there", own.display()),
    )
    .suggest("move it away, then run agents quickstart again")
    .suggest("agents quickstart --sample <ANOTHER-DIR>"))
}
