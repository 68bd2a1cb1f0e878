//! Contents by their hash, as plain files: written whole or not at all, checked when read.

use std::collections::{BTreeSet, HashSet};
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

/// Contents from which on the disk is waited for as a whole: each file waited for is a flush of the disk's own cache.
const MANY: usize = 32;

/// Threads that wait for the disk at the same time. It writes what many wait for in one go.
const SYNCS: usize = 8;

/// Stores bytes below `root`; their hash is their name.
pub(crate) fn put(root: &Path, bytes: &[u8]) -> StoreResult<String> {
    let mut hashes = put_all(root, &[bytes])?;
    hashes.pop().ok_or_else(|| StoreError::Other("nothing was stored".to_owned()))
}

/// Stores many contents. All are written before the disk is waited for, which takes as long for many as for a few.
pub(crate) fn put_all(root: &Path, contents: &[&[u8]]) -> StoreResult<Vec<String>> {
    let hashes: Vec<String> = contents.iter().map(|bytes| sha256(bytes)).collect();
    let mut fresh: Vec<Fresh> = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    // The names, and the folders' own names in case they are new.
    let mut folders = BTreeSet::from([root.to_owned()]);
    for (hash, bytes) in hashes.iter().zip(contents) {
        let path = path_of(root, hash);
        // Compared whole, so that a copy the disk has damaged is replaced by a sound one.
        if !known.insert(hash) || fs::read(&path).is_ok_and(|there| there == *bytes) {
            continue;
        }
        let Some(folder) = path.parent() else {
            return Err(StoreError::Other(format!("{} has no folder", path.display())));
        };
        make_folder(folder)?;
        folders.insert(folder.to_owned());
        fresh.push(Fresh::write(folder, hash, bytes).map_err(|e| error::io(&path, &e))?);
    }
    if fresh.is_empty() {
        return Ok(hashes);
    }
    let many = fresh.len() >= MANY;
    if !(many && sync_all_of(root)) {
        in_parallel(&fresh, |new| new.sync().map_err(|e| error::io(&new.temporary, &e)))?;
    }
    for new in &mut fresh {
        let path = path_of(root, &new.hash);
        new.rename(&path).map_err(|e| error::io(&path, &e))?;
    }
    if !(many && sync_all_of(root)) {
        let folders: Vec<PathBuf> = folders.into_iter().collect();
        in_parallel(&folders, |folder| {
            File::open(folder).and_then(|f| f.sync_all()).map_err(|e| error::io(folder, &e))
        })?;
    }
    Ok(hashes)
}

/// Waits once for everything that was written to the file system of a folder; whether that can be done here and was.
fn sync_all_of(folder: &Path) -> bool {
    #[cfg(target_os = "linux")]
    return File::open(folder).is_ok_and(|folder| nix::unistd::syncfs(folder).is_ok());
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        false
    }
}

/// A blob on its way; what is not renamed is removed again.
struct Fresh {
    hash: String,
    temporary: PathBuf,
    renamed: bool,
}

impl Fresh {
    fn write(folder: &Path, hash: &str, bytes: &[u8]) -> io::Result<Self> {
        let (temporary, mut file) = create_beside(folder, hash)?;
        let fresh = Self { hash: hash.to_owned(), temporary, renamed: false };
        file.write_all(bytes)?;
        Ok(fresh)
    }

    // By its name again: thousands of files are not kept open at once.
    fn sync(&self) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.temporary)?.sync_all()
    }

    fn rename(&mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.temporary, path)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Does something with each of many at a time; the first error when there is one.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) -> StoreResult<()> + Sync) -> StoreResult<()> {
    if items.len() <= 2 {
        return items.iter().try_for_each(work);
    }
    std::thread::scope(|scope| {
        let share = items.len().div_ceil(SYNCS);
        let work = &work;
        let threads: Vec<_> =
            items.chunks(share).map(|chunk| scope.spawn(move || chunk.iter().try_for_each(work))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(StoreError::Other("a thread that stores ended".to_owned())))
        })
    })
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
