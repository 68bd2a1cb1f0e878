//! Small operations on whole files that more than one module needs.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::error::{Result, SandboxError};

/// Copies a file with its modification time, which is what git's index compares itself with.
pub(crate) fn copy_with_times(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let metadata = fs::metadata(from)?;
    let modified = metadata.modified()?;
    File::options().write(true).open(to)?.set_modified(modified)?;
    // The copy must not be read-only or a link count of the original's: only its bytes and time matter.
    fs::set_permissions(to, Permissions::from_mode(0o600))
}

/// Writes a small file in one step and waits until it is on the disk.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> Result<()> {
    let staged = path.with_extension("new");
    let write = || -> io::Result<()> {
        let mut file = File::create(&staged)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&staged, path)?;
        match path.parent() {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    };
    write().map_err(SandboxError::io("write", path))
}

/// Whether two names are the same file.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::symlink_metadata(a), fs::symlink_metadata(b)) {
        (Ok(a), Ok(b)) => a.dev() == b.dev() && a.ino() == b.ino(),
        _ => false,
    }
}
