//! Reads and writes of tools inside a sandbox: checked once, atomic, all or nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use agents_domain::changes::ChangeKind;
use agents_domain::text::{FileEdit, apply_edits};
use serde::{Deserialize, Serialize};

use super::{Exposed, Worktree};
use crate::error::{Result, SandboxError};
use crate::fault;
use crate::git::{nul_fields, os_path};
use crate::paths::{Entry, PathRefusal, Root};

/// Folders of installed dependencies that are never written, exposed or not.
const DEPENDENCY_FOLDERS: &[&str] = &["node_modules"];

/// What a write did to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedEdit {
    /// The file (its new name for a rename), relative, with `/`, links resolved.
    pub path: String,
    /// The old name, for a rename.
    pub old_path: Option<String>,
    /// What happened.
    pub kind: ChangeKind,
    /// The bytes before; `None` for a new file.
    pub before: Option<Vec<u8>>,
    /// The bytes after; `None` for a deleted file.
    pub after: Option<Vec<u8>>,
}

/// A file of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxFile {
    /// Relative, with `/`.
    pub path: String,
    /// Bytes on disk; the length of the target for a link.
    pub size: u64,
    /// A symbolic link.
    pub link: bool,
    /// Tools may change it.
    pub writable: bool,
}

impl Worktree {
    /// The absolute path of a file a tool may write, with every link in it resolved inside the sandbox.
    ///
    /// Refuses `..`, absolute paths, `.git`, links that leave the sandbox, dependency folders, submodules and
    /// untouchable files. The file need not exist.
    pub fn resolve(&self, path: &str) -> Result<PathBuf> {
        Ok(self.path().join(self.writable_path(path, true)?))
    }

    /// The bytes of a file. Exposed dependency folders can be read, too.
    pub fn read(&self, path: &str) -> Result<Vec<u8>> {
        let clean = path.trim_start_matches("./");
        let found = match self.exposed_at(clean) {
            Some((exposed, rest)) => {
                let root = Root::open(&exposed.target, &exposed.target)?;
                root.read(Path::new(&root.canonical(rest, true)?))?
            }
            None => self.root.read(Path::new(&self.root.canonical(path, true)?))?,
        };
        found.map(Entry::into_bytes).ok_or_else(|| SandboxError::NotFound { path: path.to_owned() })
    }

    /// Replaces or creates a file in one step; its permissions stay, its line endings are those given.
    pub fn write_file(&self, path: &str, bytes: &[u8]) -> Result<AppliedEdit> {
        let mut staged = Staged::new(self);
        let path = staged.existing(path)?;
        staged.set_bytes(&path, bytes.to_vec())?;
        self.carry_out_one(staged, &path)
    }

    /// Removes a file (a link itself, not its target) and the directories this leaves empty.
    pub fn delete(&self, path: &str) -> Result<AppliedEdit> {
        let mut staged = Staged::new(self);
        let path = staged.delete(path)?;
        self.carry_out_one(staged, &path)
    }

    /// Moves a file; refused when the target exists.
    pub fn rename(&self, path: &str, to: &str) -> Result<AppliedEdit> {
        let mut staged = Staged::new(self);
        let to = staged.rename(path, to)?;
        self.carry_out_one(staged, &to)
    }

    /// Applies edits of several files, all of them or none; in order, so that a later one may build on an earlier.
    ///
    /// Returns one entry per file that differs afterwards, in path order.
    pub fn apply_edits(&self, edits: &[FileEdit]) -> Result<Vec<AppliedEdit>> {
        let mut staged = Staged::new(self);
        for edit in edits {
            match edit {
                FileEdit::Edit { path, edits } => staged.edit(path, edits)?,
                FileEdit::Create { path, text } => staged.create(path, text)?,
                FileEdit::Write { path, content } => {
                    let path = staged.existing(path)?;
                    staged.set_bytes(&path, content.as_bytes().to_vec())?;
                }
                FileEdit::Rename { path, to } => staged.rename(path, to).map(drop)?,
                FileEdit::Delete { path } => staged.delete(path).map(drop)?,
            }
        }
        self.carry_out(staged)
    }

    /// Makes files what is given, all of them or none; `None` removes one, and one that is gone already is no error.
    pub fn put_files(&self, files: &[(String, Option<Vec<u8>>)]) -> Result<()> {
        let mut staged = Staged::new(self);
        for (path, bytes) in files {
            let path = staged.named(path)?;
            match bytes {
                Some(bytes) => staged.set_bytes(&path, bytes.clone())?,
                None => staged.set(&path, None),
            }
        }
        self.carry_out(staged).map(drop)
    }

    /// Every tracked file and every untracked one that is not ignored, in path order; neither submodules nor files
    /// whose names are not text.
    pub fn list_files(&self) -> Result<Vec<SandboxFile>> {
        let listed = self.list(&["-c", "-o", "--deduplicate"])?;
        let mut files = Vec::new();
        for field in nul_fields(&listed) {
            let Some(path) = os_path(field).to_str() else { continue };
            let Ok(metadata) = fs::symlink_metadata(self.path().join(path)) else { continue };
            if metadata.is_file() || metadata.is_symlink() {
                files.push(SandboxFile {
                    path: path.to_owned(),
                    size: metadata.size(),
                    link: metadata.is_symlink(),
                    writable: self.refuse_untouchable(path).is_ok(),
                });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn carry_out_one(&self, staged: Staged<'_>, path: &str) -> Result<AppliedEdit> {
        let unchanged = staged.now(path)?.map(Entry::into_bytes);
        let applied = self.carry_out(staged)?;
        Ok(applied.into_iter().find(|edit| edit.path == path).unwrap_or(AppliedEdit {
            path: path.to_owned(),
            old_path: None,
            kind: ChangeKind::Modified,
            before: unchanged.clone(),
            after: unchanged,
        }))
    }

    fn carry_out(&self, staged: Staged<'_>) -> Result<Vec<AppliedEdit>> {
        self.refuse_ignored(&changed(&staged.steps))?;
        fault::point("edits.before-write");
        self.write_all(&staged.steps)?;
        Ok(report(staged.steps))
    }

    /// Makes every file what it is to become, or leaves all as they were.
    pub(super) fn write_all(&self, steps: &BTreeMap<String, Step>) -> Result<()> {
        let changed = changed(steps);
        // Removals first: a directory may take the place of a file.
        let order = |gone: bool| changed.iter().filter(move |path| steps[**path].after.is_none() == gone);
        let mut done: Vec<&String> = Vec::new();
        for path in order(true).chain(order(false)) {
            let result = match &steps[*path].after {
                None => self.root.remove(Path::new(path)),
                Some(entry) => self.root.place(Path::new(path), entry, false),
            };
            done.push(path);
            if let Err(error) = result {
                return Err(self.take_back(steps, &done, error));
            }
            if done.len() == 1 {
                fault::point("edits.after-first-write");
            }
        }
        Ok(())
    }

    fn take_back(
        &self,
        steps: &BTreeMap<String, Step>,
        done: &[&String],
        error: SandboxError,
    ) -> SandboxError {
        let mut left = Vec::new();
        for path in done.iter().rev() {
            let at = Path::new(path.as_str());
            let result = match &steps[*path].before {
                Some(entry) => self.root.place(at, entry, false),
                None => self.root.remove(at),
            };
            // The step that failed may not have begun; then there is nothing to take back.
            if result.is_err() && self.root.read(at).ok() != Some(steps[*path].before.clone()) {
                left.push((*path).clone());
            }
        }
        if left.is_empty() { error } else { SandboxError::HalfDone { paths: left, source: Box::new(error) } }
    }

    /// The link-free relative path of a file a tool may write.
    pub(super) fn writable_path(&self, given: &str, follow_last: bool) -> Result<String> {
        // Before links are resolved: an exposed folder is a link that leaves the sandbox, which says less.
        self.refuse_dependencies(given)?;
        let path = self.root.canonical(given, follow_last)?;
        self.refuse_dependencies(&path)?;
        self.refuse_untouchable(&path)?;
        Ok(path)
    }

    fn refuse_dependencies(&self, path: &str) -> Result<()> {
        let clean = path.trim_start_matches("./");
        let folder = self.exposed_at(clean).map(|(exposed, _)| exposed.path.clone()).or_else(|| {
            let component = path.split('/').find(|component| DEPENDENCY_FOLDERS.contains(component));
            component.map(str::to_owned)
        });
        match folder {
            Some(folder) => Err(SandboxError::refused(path, PathRefusal::Dependencies { folder })),
            None => Ok(()),
        }
    }

    fn exposed_at<'p>(&self, path: &'p str) -> Option<(&Exposed, &'p str)> {
        self.state.exposed.iter().find_map(|exposed| {
            let rest = path.strip_prefix(exposed.path.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| (exposed, rest.trim_start_matches('/')))
        })
    }

    pub(super) fn refuse_untouchable(&self, path: &str) -> Result<()> {
        let inside = |folder: &str| {
            path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some(file) = self.state.untouchable.iter().find(|file| inside(&file.path)) {
            let why = file.reason.to_string();
            return Err(SandboxError::refused(path, PathRefusal::Untouchable { why }));
        }
        match self.state.submodules.iter().find(|submodule| inside(submodule)) {
            Some(submodule) => {
                Err(SandboxError::refused(path, PathRefusal::Submodule { submodule: submodule.clone() }))
            }
            None => Ok(()),
        }
    }

    fn refuse_ignored(&self, paths: &[&String]) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        // `check-ignore` knows no literal paths; with `./` in front none is taken for a pattern.
        let paths = paths.iter().map(|path| format!("./{path}"));
        let call = self.git.call(["check-ignore", "-z", "--stdin"]).env("GIT_LITERAL_PATHSPECS", "0");
        // Exit code 1: none is ignored.
        let output = call.stdin_paths(paths).accept(&[0, 1]).run()?;
        match nul_fields(&output).next() {
            Some(path) => {
                let path = os_path(path).to_string_lossy();
                Err(SandboxError::refused(path.trim_start_matches("./"), PathRefusal::Ignored))
            }
            None => Ok(()),
        }
    }
}

/// What is to become of one file.
pub(super) struct Step {
    pub(super) before: Option<Entry>,
    pub(super) after: Option<Entry>,
    /// The file whose content moved here.
    pub(super) from: Option<String>,
}

fn changed(steps: &BTreeMap<String, Step>) -> Vec<&String> {
    steps.iter().filter(|(_, step)| step.before != step.after).map(|(path, _)| path).collect()
}

/// Edits worked out in memory, before the first file is written.
struct Staged<'w> {
    worktree: &'w Worktree,
    steps: BTreeMap<String, Step>,
}

impl<'w> Staged<'w> {
    fn new(worktree: &'w Worktree) -> Self {
        Self { worktree, steps: BTreeMap::new() }
    }

    /// The path with links resolved, its last component included, and its present content taken in.
    fn existing(&mut self, given: &str) -> Result<String> {
        let path = self.worktree.writable_path(given, true)?;
        self.load(&path)?;
        Ok(path)
    }

    /// The same for operations on the name itself, which do not follow a link.
    fn named(&mut self, given: &str) -> Result<String> {
        let path = self.worktree.writable_path(given, false)?;
        self.load(&path)?;
        Ok(path)
    }

    fn load(&mut self, path: &str) -> Result<()> {
        if !self.steps.contains_key(path) {
            let before = self.worktree.root.read(Path::new(path))?;
            self.steps.insert(path.to_owned(), Step { after: before.clone(), before, from: None });
        }
        Ok(())
    }

    fn now(&self, path: &str) -> Result<Option<Entry>> {
        Ok(self.steps.get(path).and_then(|step| step.after.clone()))
    }

    fn set(&mut self, path: &str, entry: Option<Entry>) {
        if let Some(step) = self.steps.get_mut(path) {
            step.after = entry;
        }
    }

    fn set_bytes(&mut self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let executable = matches!(self.now(path)?, Some(Entry::File { executable: true, .. }));
        self.set(path, Some(Entry::File { bytes, executable }));
        Ok(())
    }

    fn edit(&mut self, given: &str, edits: &[agents_domain::text::TextEdit]) -> Result<()> {
        let path = self.existing(given)?;
        let bytes = match self.now(&path)? {
            Some(Entry::File { bytes, .. }) => bytes,
            Some(Entry::Link(_)) => return Err(SandboxError::refused(path, PathRefusal::NotAFile)),
            None => return Err(SandboxError::NotFound { path }),
        };
        let Ok(text) = std::str::from_utf8(&bytes) else { return Err(SandboxError::NotUtf8 { path }) };
        match apply_edits(text, edits) {
            Ok(edited) => self.set_bytes(&path, edited.into_bytes()),
            Err(source) => Err(SandboxError::Edit { path, source }),
        }
    }

    fn create(&mut self, given: &str, text: &str) -> Result<()> {
        let path = self.named(given)?;
        if self.now(&path)?.is_some() {
            return Err(SandboxError::Exists { path });
        }
        self.set_bytes(&path, text.as_bytes().to_vec())
    }

    fn delete(&mut self, given: &str) -> Result<String> {
        let path = self.named(given)?;
        if self.now(&path)?.is_none() {
            return Err(SandboxError::NotFound { path });
        }
        self.set(&path, None);
        Ok(path)
    }

    fn rename(&mut self, given: &str, to: &str) -> Result<String> {
        let path = self.named(given)?;
        let to = self.named(to)?;
        let Some(entry) = self.now(&path)? else { return Err(SandboxError::NotFound { path }) };
        if path == to {
            return Ok(to);
        }
        if self.now(&to)?.is_some() {
            return Err(SandboxError::Exists { path: to });
        }
        let origin = self.steps.get(&path).and_then(|step| step.from.clone()).unwrap_or_else(|| path.clone());
        self.set(&path, None);
        self.set(&to, Some(entry));
        if let Some(step) = self.steps.get_mut(&to) {
            step.from = Some(origin);
        }
        Ok(to)
    }
}

/// One entry per file that differs; a removal and the file its content moved to are one rename.
fn report(mut steps: BTreeMap<String, Step>) -> Vec<AppliedEdit> {
    let mut moved: BTreeMap<String, (String, Option<Entry>)> = BTreeMap::new();
    for (path, step) in &steps {
        let Some(from) = &step.from else { continue };
        let gone = steps.get(from).is_some_and(|source| source.before.is_some() && source.after.is_none());
        if gone
            && step.before.is_none()
            && step.after.is_some()
            && !moved.values().any(|(taken, _)| taken == from)
        {
            moved.insert(path.clone(), (from.clone(), None));
        }
    }
    for (from, before) in moved.values_mut() {
        *before = steps.remove(from).and_then(|step| step.before);
    }
    let bytes = |entry: Option<Entry>| entry.map(Entry::into_bytes);
    let mut applied = Vec::new();
    for (path, step) in steps {
        if let Some((from, before)) = moved.remove(&path) {
            applied.push(AppliedEdit {
                path,
                old_path: Some(from),
                kind: ChangeKind::Renamed,
                before: bytes(before),
                after: bytes(step.after),
            });
        } else if step.before != step.after {
            let kind = match (&step.before, &step.after) {
                (None, _) => ChangeKind::Added,
                (_, None) => ChangeKind::Deleted,
                _ => ChangeKind::Modified,
            };
            applied.push(AppliedEdit {
                path,
                old_path: None,
                kind,
                before: bytes(step.before),
                after: bytes(step.after),
            });
        }
    }
    applied
}
