//! Contents by their hash, as plain files: written whole or not at all, checked when read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use agents_domain::ports::store::{StoreError, StoreResult};
use sha2::{Digest, Sha256};

use crate::error;

/// SHA-256 in lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes a folder and its parents, for the user only.
pub(crate) fn make_folder(path: &Path) -> StoreResult<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| error::io(path, &e))
}

/// Stores bytes below `root`; their hash is their name.
pub(crate) fn put(root: &Path, bytes: &[u8]) -> StoreResult<String> {
    let hash = sha256(bytes);
    let path = path_of(root, &hash);
    let Some(folder) = path.parent() else {
        return Err(StoreError::Other(format!("{} has no folder", path.display())));
    };
    // Compared whole, so that a copy the disk has damaged is replaced by a sound one.
    if fs::read(&path).is_ok_and(|there| there == bytes) {
        return Ok(hash);
    }
    make_folder(folder)?;
    let (temporary, file) = create_beside(folder, &hash).map_err(|e| error::io(folder, &e))?;
    let written = write_durably(file, bytes).and_then(|()| fs::rename(&temporary, &path));
    if let Err(e) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error::io(&path, &e));
    }
    // The name, and the folder's own name in case it is new.
    for folder in [folder, root] {
        File::open(folder).and_then(|f| f.sync_all()).map_err(|e| error::io(folder, &e))?;
    }
    Ok(hash)
}

/// Bytes stored under a hash; `None` when there are none, or it is no hash.
pub(crate) fn get(root: &Path, hash: &str) -> StoreResult<Option<Vec<u8>>> {
    let is_hash = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if !is_hash {
        return Ok(None);
    }
    let path = path_of(root, hash);
    match fs::read(&path) {
        Ok(bytes) if sha256(&bytes) == hash => Ok(Some(bytes)),
        Ok(_) => Err(error::damaged(&path, "its content does not match its name")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(error::io(&path, &e)),
    }
}

fn path_of(root: &Path, hash: &str) -> PathBuf {
    root.join(&hash[..2]).join(hash)
}

/// A new file that nobody else, in this process or another, writes to.
fn create_beside(folder: &Path, hash: &str) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".{hash}-{}-{number}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

fn write_durably(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}
