//! Reads and writes files under a root without ever following a link out of it.
//!
//! A path is resolved once, component by component ([`Root::canonical`]), into one without links; every operation then
//! walks it from the root's file descriptor and refuses links (`O_NOFOLLOW`), so a directory that is swapped for a
//! link between the check and the use is refused too.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use crate::error::{Result, SandboxError};

/// Links followed while one path is resolved, as the kernel bounds it.
const MAX_LINKS: usize = 40;

/// Why a path may not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PathRefusal {
    #[error("the path is empty")]
    Empty,
    #[error("paths are relative to the sandbox")]
    Absolute,
    #[error("`..` is not allowed")]
    Parent,
    #[error("git's own files are off limits")]
    GitDirectory,
    #[error("it goes through a link that leaves the sandbox (to {target})")]
    LeavesSandbox { target: String },
    #[error("too many links")]
    TooManyLinks,
    #[error("a part of it is not a directory")]
    NotADirectory,
    #[error("it is a directory; name a file")]
    IsADirectory,
    #[error("the directory is not empty")]
    NotEmpty,
    #[error("it is neither a file nor a link")]
    NotAFile,
    #[error("installed dependencies (`{folder}`) are read-only")]
    Dependencies { folder: String },
    #[error("it belongs to the submodule `{submodule}`, which is left alone")]
    Submodule { submodule: String },
    #[error("it is left alone: {why}")]
    Untouchable { why: String },
    #[error("git ignores it, so it can be no part of a change")]
    Ignored,
    #[error("it is outside the sparse checkout")]
    OutsideSparseCheckout,
    #[error("its name is not valid text (UTF-8, no control bytes)")]
    Name,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A regular file and whether it may be executed.
    File { bytes: Vec<u8>, executable: bool },
    /// A symbolic link and its target, not followed.
    Link(OsString),
}

impl Entry {
    /// The bytes git would store: the content, or the link's target.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::File { bytes, .. } => bytes,
            Self::Link(target) => target.as_bytes(),
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::File { bytes, .. } => bytes,
            Self::Link(target) => target.into_vec(),
        }
    }
}

/// A directory that file operations stay inside of.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    fd: OwnedFd,
    /// Where new content is written before it is renamed into place; on the root's file system if possible.
    staging: PathBuf,
}

impl Root {
    pub(crate) fn open(path: &Path, staging: &Path) -> Result<Self> {
        let path = path.canonicalize().map_err(SandboxError::io("open", path))?;
        let fd =
            nix::fcntl::open(&path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
                .map_err(|e| SandboxError::io("open", &path)(e.into()))?;
        Ok(Self { path, fd, staging: staging.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path without links; the last component is followed too when `follow_last`.
    ///
    /// What does not exist yet is allowed, so that new files can be named.
    pub(crate) fn canonical(&self, given: &str, follow_last: bool) -> Result<String> {
        let refuse = |reason| Err(SandboxError::refused(given, reason));
        if given.is_empty() {
            return refuse(PathRefusal::Empty);
        }
        if given.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return refuse(PathRefusal::Name);
        }
        if given.starts_with('/') {
            return refuse(PathRefusal::Absolute);
        }
        let mut pending: VecDeque<OsString> = VecDeque::new();
        for component in given.split('/').filter(|c| !c.is_empty() && *c != ".") {
            if component == ".." {
                return refuse(PathRefusal::Parent);
            }
            pending.push_back(component.into());
        }
        if pending.is_empty() {
            return refuse(PathRefusal::IsADirectory);
        }
        let mut resolved: Vec<OsString> = Vec::new();
        let mut links = 0;
        while let Some(component) = pending.pop_front() {
            if component == ".." {
                if resolved.pop().is_none() {
                    return refuse(PathRefusal::LeavesSandbox { target: "..".to_owned() });
                }
                continue;
            }
            if is_git_directory(&component) {
                return refuse(PathRefusal::GitDirectory);
            }
            let mut here = self.path.clone();
            here.extend(&resolved);
            here.push(&component);
            let metadata = match fs::symlink_metadata(&here) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    resolved.push(component);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    return refuse(PathRefusal::NotADirectory);
                }
                Err(error) => return Err(SandboxError::io("look at", here)(error)),
            };
            if metadata.is_symlink() && (follow_last || !pending.is_empty()) {
                links += 1;
                if links > MAX_LINKS {
                    return refuse(PathRefusal::TooManyLinks);
                }
                let target = fs::read_link(&here).map_err(SandboxError::io("read the link", &here))?;
                let inside = if target.is_absolute() {
                    resolved.clear();
                    target.strip_prefix(&self.path).map(Path::to_owned).ok()
                } else {
                    Some(target.clone())
                };
                let Some(inside) = inside else {
                    return refuse(PathRefusal::LeavesSandbox { target: target.display().to_string() });
                };
                for part in inside.components().rev() {
                    match part {
                        Component::Normal(name) => pending.push_front(name.to_owned()),
                        Component::ParentDir => pending.push_front("..".into()),
                        _ => {}
                    }
                }
            } else if !metadata.is_dir() && !pending.is_empty() {
                return refuse(PathRefusal::NotADirectory);
            } else {
                resolved.push(component);
            }
        }
        let joined = resolved.join(OsStr::new("/"));
        match joined.into_string() {
            Ok(text) if text.is_empty() => refuse(PathRefusal::IsADirectory),
            Ok(text) => Ok(text),
            Err(_) => refuse(PathRefusal::Name),
        }
    }

    /// The directory that holds a link-free path, and the last component.
    fn parent<'p>(&self, path: &'p Path, create: bool) -> Result<(OwnedFd, &'p OsStr)> {
        let name = path
            .file_name()
            .ok_or_else(|| SandboxError::refused(path.to_string_lossy(), PathRefusal::IsADirectory))?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut at = self.fd.try_clone().map_err(SandboxError::io("open", &self.path))?;
        for component in path.parent().into_iter().flat_map(Path::components) {
            let Component::Normal(component) = component else {
                return Err(SandboxError::refused(path.to_string_lossy(), PathRefusal::Parent));
            };
            at = match openat(&at, component, flags, Mode::empty()) {
                Ok(next) => next,
                Err(Errno::ENOENT) if create => {
                    match mkdirat(&at, component, Mode::from_bits_truncate(0o777)) {
                        Ok(()) | Err(Errno::EEXIST) => {}
                        Err(errno) => return Err(self.error("create the directory of", path, errno)),
                    }
                    openat(&at, component, flags, Mode::empty())
                        .map_err(|errno| self.error("open the directory of", path, errno))?
                }
                Err(Errno::ELOOP | Errno::ENOTDIR) => {
                    return Err(SandboxError::refused(path.to_string_lossy(), PathRefusal::NotADirectory));
                }
                Err(errno) => return Err(self.error("open the directory of", path, errno)),
            };
        }
        Ok((at, name))
    }

    fn error(&self, action: &'static str, path: &Path, errno: Errno) -> SandboxError {
        SandboxError::io(action, self.path.join(path))(errno.into())
    }

    fn stat(&self, dir: &OwnedFd, name: &OsStr, path: &Path) -> Result<Option<FileStat>> {
        match fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(self.error("look at", path, errno)),
        }
    }

    /// What is at a link-free path; `None` when nothing is.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Entry>> {
        let (dir, name) = match self.parent(path, false) {
            Ok(found) => found,
            Err(SandboxError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some(stat) = self.stat(&dir, name, path)? else { return Ok(None) };
        match kind(&stat) {
            SFlag::S_IFLNK => {
                let target =
                    readlinkat(&dir, name).map_err(|errno| self.error("read the link", path, errno))?;
                Ok(Some(Entry::Link(target)))
            }
            SFlag::S_IFREG => {
                let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let fd = openat(&dir, name, flags, Mode::empty())
                    .map_err(|errno| self.error("read", path, errno))?;
                let mut bytes = Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or(0));
                File::from(fd)
                    .read_to_end(&mut bytes)
                    .map_err(SandboxError::io("read", self.path.join(path)))?;
                Ok(Some(Entry::File { bytes, executable: stat.st_mode & 0o111 != 0 }))
            }
            SFlag::S_IFDIR => Err(SandboxError::refused(path.to_string_lossy(), PathRefusal::IsADirectory)),
            _ => Err(SandboxError::refused(path.to_string_lossy(), PathRefusal::NotAFile)),
        }
    }

    /// Whether anything, of whatever kind, is at a link-free path.
    pub(crate) fn exists(&self, path: &Path) -> Result<bool> {
        match self.parent(path, false) {
            Ok((dir, name)) => Ok(self.stat(&dir, name, path)?.is_some()),
            Err(SandboxError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Puts an entry at a link-free path in one step; an existing file keeps its permissions but for a changed
    /// executable bit. `durable` waits until the content is on the disk.
    pub(crate) fn place(&self, path: &Path, entry: &Entry, durable: bool) -> Result<()> {
        let (dir, name) = self.parent(path, true)?;
        let old = self.stat(&dir, name, path)?;
        if old.as_ref().is_some_and(|stat| kind(stat) == SFlag::S_IFDIR) {
            return Err(SandboxError::refused(path.to_string_lossy(), PathRefusal::IsADirectory));
        }
        let old_mode = old.filter(|stat| kind(stat) == SFlag::S_IFREG).map(|stat| stat.st_mode & 0o7777);
        let staged = self.stage(&self.staging, entry, old_mode, durable)?;
        match renameat(nix::fcntl::AT_FDCWD, &staged, &dir, name) {
            Ok(()) => Ok(()),
            Err(Errno::EXDEV) => {
                let _ = fs::remove_file(&staged);
                // Another file system: stage beside the file instead.
                let beside = self.path.join(path.parent().unwrap_or(Path::new("")));
                let staged = self.stage(&beside, entry, old_mode, durable)?;
                renameat(nix::fcntl::AT_FDCWD, &staged, &dir, name).map_err(|errno| {
                    let _ = fs::remove_file(&staged);
                    self.error("write", path, errno)
                })
            }
            Err(errno) => {
                let _ = fs::remove_file(&staged);
                Err(self.error("write", path, errno))
            }
        }
    }

    fn stage(&self, dir: &Path, entry: &Entry, old_mode: Option<u32>, durable: bool) -> Result<PathBuf> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(dir).map_err(SandboxError::io("create", dir))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let staged = dir.join(format!(".cleveragents-{}-{number}.tmp", std::process::id()));
        let _ = fs::remove_file(&staged);
        let write = || -> io::Result<()> {
            match entry {
                Entry::Link(target) => Ok(symlinkat(target.as_os_str(), nix::fcntl::AT_FDCWD, &staged)?),
                Entry::File { bytes, executable } => {
                    let mode = if *executable { 0o777 } else { 0o666 };
                    let mut file =
                        OpenOptions::new().write(true).create_new(true).mode(mode).open(&staged)?;
                    file.write_all(bytes)?;
                    if let Some(old) = old_mode {
                        let was_executable = old & 0o111 != 0;
                        let mode = match (was_executable, *executable) {
                            (false, true) => old | ((old & 0o444) >> 2),
                            (true, false) => old & !0o111,
                            _ => old,
                        };
                        file.set_permissions(Permissions::from_mode(mode))?;
                    }
                    if durable { file.sync_all() } else { Ok(()) }
                }
            }
        };
        write().map_err(|source| {
            let _ = fs::remove_file(&staged);
            SandboxError::Io { action: "write", path: staged.clone(), source }
        })?;
        Ok(staged)
    }

    /// Removes a file or link at a link-free path and the directories this leaves empty; nothing there is fine.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        let (dir, name) = match self.parent(path, false) {
            Ok(found) => found,
            Err(SandboxError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        match unlinkat(&dir, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(Errno::EISDIR | Errno::EPERM) if self.is_directory(&dir, name) => {
                return Err(SandboxError::refused(path.to_string_lossy(), PathRefusal::IsADirectory));
            }
            Err(errno) => return Err(self.error("remove", path, errno)),
        }
        let mut emptied = path.parent();
        while let Some(parent) = emptied.filter(|p| !p.as_os_str().is_empty()) {
            let Ok((dir, name)) = self.parent(parent, false) else { break };
            if unlinkat(&dir, name, UnlinkatFlags::RemoveDir).is_err() {
                break;
            }
            emptied = parent.parent();
        }
        Ok(())
    }

    fn is_directory(&self, dir: &OwnedFd, name: &OsStr) -> bool {
        fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|stat| kind(&stat) == SFlag::S_IFDIR)
    }

    /// Creates a directory and its parents at a link-free path.
    pub(crate) fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.parent(&path.join("x"), true).map(drop)
    }

    /// Removes a directory at a link-free path; `false` when something is in it.
    pub(crate) fn remove_directory(&self, path: &Path) -> Result<bool> {
        let (dir, name) = self.parent(path, false)?;
        match unlinkat(&dir, name, UnlinkatFlags::RemoveDir) {
            Ok(()) => Ok(true),
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(false),
            Err(errno) => Err(self.error("remove", path, errno)),
        }
    }

    /// What is in the directory at a link-free path, or in the root for an empty one: names with what they are and how
    /// large; neither `.` nor `..`. `None` when nothing is there.
    pub(crate) fn list(&self, path: &Path) -> Result<Option<Vec<(OsString, FileStat)>>> {
        let open = |at: &OwnedFd, name: &OsStr| {
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            openat(at, name, flags, Mode::empty())
        };
        let opened = if path.as_os_str().is_empty() {
            open(&self.fd, OsStr::new("."))
        } else {
            match self.parent(path, false) {
                Ok((dir, name)) => open(&dir, name),
                Err(SandboxError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        };
        let fd = match opened {
            Ok(fd) => fd,
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ENOTDIR | Errno::ELOOP) => {
                return Err(SandboxError::refused(path.to_string_lossy(), PathRefusal::NotADirectory));
            }
            Err(errno) => return Err(self.error("open", path, errno)),
        };
        let mut names = Vec::new();
        let copy = fd.try_clone().map_err(SandboxError::io("open", self.path.join(path)))?;
        let mut reading = nix::dir::Dir::from_fd(copy).map_err(|errno| self.error("read", path, errno))?;
        for entry in reading.iter() {
            let entry = entry.map_err(|errno| self.error("read", path, errno))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        let mut found = Vec::new();
        for name in names {
            // One that went away meanwhile is not there.
            if let Some(stat) = self.stat(&fd, &name, path)? {
                found.push((name, stat));
            }
        }
        Ok(Some(found))
    }

    /// Removes what an interrupted write left in the staging directory.
    pub(crate) fn clear_staging(&self) {
        let Ok(entries) = fs::read_dir(&self.staging) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.as_bytes().starts_with(b".cleveragents-") && name.as_bytes().ends_with(b".tmp") {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

pub(crate) fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

/// `.git` in any case: file systems that ignore case would find the real one.
pub(crate) fn is_git_directory(component: &OsStr) -> bool {
    component.as_bytes().eq_ignore_ascii_case(b".git")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn root() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("root/src")).unwrap();
        fs::write(dir.path().join("root/src/a.py"), "a").unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        let root = Root::open(&dir.path().join("root"), &dir.path().join("staging")).unwrap();
        (dir, root)
    }

    fn reason(result: Result<String>) -> PathRefusal {
        match result {
            Err(SandboxError::PathRefused { reason, .. }) => reason,
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[test]
    fn paths_that_leave_the_root_are_refused() {
        let (dir, root) = root();
        symlink("../../secret", root.path().join("src/up")).unwrap();
        symlink(dir.path().join("secret"), root.path().join("abs")).unwrap();
        symlink("..", root.path().join("out")).unwrap();
        assert_eq!(reason(root.canonical("../secret", true)), PathRefusal::Parent);
        assert_eq!(reason(root.canonical("src/../../secret", true)), PathRefusal::Parent);
        assert_eq!(reason(root.canonical("/etc/passwd", true)), PathRefusal::Absolute);
        assert_eq!(reason(root.canonical("", true)), PathRefusal::Empty);
        assert_eq!(reason(root.canonical("a\0b", true)), PathRefusal::Name);
        assert_eq!(reason(root.canonical(".GIT/config", true)), PathRefusal::GitDirectory);
        assert_eq!(reason(root.canonical("src/.git/hooks/x", true)), PathRefusal::GitDirectory);
        assert!(matches!(reason(root.canonical("src/up", true)), PathRefusal::LeavesSandbox { .. }));
        assert!(matches!(reason(root.canonical("abs", true)), PathRefusal::LeavesSandbox { .. }));
        assert!(matches!(reason(root.canonical("out/secret", true)), PathRefusal::LeavesSandbox { .. }));
    }

    #[test]
    fn links_inside_the_root_are_resolved_and_loops_end() {
        let (_dir, root) = root();
        symlink("src", root.path().join("lib")).unwrap();
        symlink("../src/./a.py", root.path().join("src/again")).unwrap();
        symlink(root.path().join("src/a.py"), root.path().join("absolute")).unwrap();
        symlink("loop", root.path().join("loop")).unwrap();
        symlink("nowhere", root.path().join("dangling")).unwrap();
        assert_eq!(root.canonical("lib/a.py", true).unwrap(), "src/a.py");
        assert_eq!(root.canonical("lib/again", true).unwrap(), "src/a.py");
        assert_eq!(root.canonical("lib/again", false).unwrap(), "src/again");
        assert_eq!(root.canonical("absolute", true).unwrap(), "src/a.py");
        assert_eq!(root.canonical("dangling", true).unwrap(), "nowhere");
        assert_eq!(root.canonical("./src//new/b.py", true).unwrap(), "src/new/b.py");
        assert_eq!(reason(root.canonical("loop", true)), PathRefusal::TooManyLinks);
        assert_eq!(reason(root.canonical("src/a.py/x", true)), PathRefusal::NotADirectory);
    }

    #[test]
    fn a_directory_swapped_for_a_link_after_the_check_is_refused() {
        let (dir, root) = root();
        let checked = root.canonical("src/a.py", true).unwrap();
        fs::rename(root.path().join("src"), dir.path().join("moved")).unwrap();
        symlink(dir.path().join("moved"), root.path().join("src")).unwrap();
        let entry = Entry::File { bytes: b"evil".to_vec(), executable: false };
        assert!(root.place(Path::new(&checked), &entry, false).is_err());
        assert!(root.read(Path::new(&checked)).is_err());
        assert!(root.remove(Path::new(&checked)).is_err());
        assert_eq!(fs::read(dir.path().join("moved/a.py")).unwrap(), b"a");
    }

    #[test]
    fn a_write_replaces_a_link_instead_of_its_target_and_keeps_modes() {
        let (dir, root) = root();
        symlink(dir.path().join("secret"), root.path().join("link")).unwrap();
        let entry = |executable| Entry::File { bytes: b"new".to_vec(), executable };
        root.place(Path::new("link"), &entry(false), true).unwrap();
        assert_eq!(fs::read(dir.path().join("secret")).unwrap(), b"s");
        let file = root.path().join("src/a.py");
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        root.place(Path::new("src/a.py"), &entry(false), false).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        root.place(Path::new("src/a.py"), &entry(true), false).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o750);
        root.remove(Path::new("src/a.py")).unwrap();
        assert!(!root.path().join("src").exists(), "an emptied directory goes as git lets it go");
        assert_eq!(fs::read_dir(dir.path().join("staging")).unwrap().count(), 0);
    }
}
