//! Letting a clone fetch, push and keep the git notes that say which decisions are behind a commit.

use std::path::Path;

use agents_domain::Result;
use agents_sandbox::{NOTES_REF, Repository};
use schemars::JsonSchema;
use serde::Serialize;

use crate::sandboxes::sandbox_error;

/// What was set up.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct GitNotes {
    pub repository: String,
    pub notes_ref: String,
    /// The remote that notes are fetched from and pushed to; none in a repository without remotes.
    pub remote: Option<String>,
    /// The settings added to the repository's own configuration, as `key=value`; none when all were there.
    pub settings: Vec<String>,
}

/// Sets up the checkout around a directory. Safe to repeat; nothing but the repository's configuration is written.
///
/// # Errors
/// When there is no git checkout there, or its configuration cannot be written.
pub fn share_notes(dir: &Path) -> Result<GitNotes> {
    let repository = Repository::around_dir(dir).map_err(sandbox_error)?;
    let remote = repository.remotes().map_err(sandbox_error)?.into_iter().next();
    let settings = repository.share_notes(remote.as_deref()).map_err(sandbox_error)?;
    Ok(GitNotes {
        repository: repository.path().display().to_string(),
        notes_ref: NOTES_REF.to_owned(),
        remote,
        settings,
    })
}
