//! Makes a sandbox out of a snapshot, so that its files are byte for byte what the user has.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agents_domain::ids::PlanId;
use ignore::gitignore::GitignoreBuilder;

use super::{
    EXCLUDE, Exposed, INDEX, OwnEndings, Removal, STATE, STATE_VERSION, State, Worktree, admin_directory,
    git_of, remove_directories,
};
use crate::disk::write_durably;
use crate::error::{Result, SandboxError};
use crate::fault;
use crate::git::{CommitId, ObjectId, nul_fields, os_path};
use crate::line_endings::LineEndings;
use crate::paths::{Entry, Root};
use crate::repository::Repository;
use crate::snapshot::{LARGE_FILE, Snapshot, Tracked, Untouchable, UntouchableReason, recall, tracked};

impl Worktree {
    /// Makes the sandbox of a snapshot at `dir`, or takes up the one that is there.
    ///
    /// `expose` names the dependency folders that are visible although the repository ignores them: names
    /// (`node_modules`) or patterns as in `.gitignore` (`/services/*/.venv`). What a killed process left half made is
    /// made anew. Refused when `dir` lies inside the checkout, or holds something else.
    pub fn create(repository: &Repository, snapshot: &Snapshot, dir: &Path, expose: &[&str]) -> Result<Self> {
        let dir = place_for(repository, dir)?;
        if let Some(existing) = take_up(repository, snapshot, &dir)? {
            return Ok(existing);
        }
        // Git reads the entries of all worktrees when it adds one, also those that another process is just writing.
        let alone = File::open(repository.common_dir())
            .and_then(|dir| dir.lock().map(|()| dir))
            .map_err(SandboxError::io("lock", repository.common_dir()))?;
        repository
            .git
            .call(["worktree", "add", "--quiet", "--detach", "--force", "--no-checkout"])
            .arg(&dir)
            .arg(snapshot.commit.as_str())
            .run()
            .map_err(|error| repository.explain(error, &[&snapshot.commit]))?;
        drop(alone);
        fault::point("worktree.after-add");
        let admin =
            admin_directory(repository, &dir)?.ok_or_else(|| SandboxError::NoSandbox { dir: dir.clone() })?;
        // Only now can be asked which configuration holds in there, and no file is written before.
        git_of(repository, &dir, &admin)?.run(["reset", "--hard", "--quiet", "--no-recurse-submodules"])?;
        fs::copy(admin.join("index"), admin.join(INDEX))
            .map_err(SandboxError::io("copy", admin.join("index")))?;
        let state = State {
            version: STATE_VERSION,
            plan: snapshot.plan,
            base: snapshot.commit.clone(),
            checkout: repository.place().to_owned(),
            ref_prefix: repository.plan_ref_prefix(snapshot.plan),
            untouchable: snapshot.untouchable.clone(),
            submodules: snapshot.submodules.clone(),
            exposed: Vec::new(),
            own_endings: Vec::new(),
        };
        let mut worktree = Self::assemble(repository, &dir, &admin, state)?;
        let mut excluded = worktree.show_users_bytes()?;
        worktree.state.exposed = worktree.expose(expose)?;
        excluded.extend(worktree.state.exposed.iter().map(|exposed| exposed.path.clone()));
        let lines: String = excluded.iter().map(|path| format!("/{}\n", escape_pattern(path))).collect();
        fs::write(admin.join(EXCLUDE), lines).map_err(SandboxError::io("write", admin.join(EXCLUDE)))?;
        let head = worktree.head_ref();
        worktree.git.run([
            "update-ref",
            "--create-reflog",
            "-m",
            "sandbox",
            head.as_str(),
            snapshot.commit.as_str(),
        ])?;
        // Nobody has touched the files since they were checked out, so they are as recorded up to now: with this time
        // on the index git need not read those again that were written within the second it was.
        let index = admin.join(INDEX);
        File::options()
            .write(true)
            .open(&index)
            .and_then(|file| file.set_modified(SystemTime::now()))
            .map_err(SandboxError::io("set the time of", &index))?;
        fault::point("worktree.before-state");
        let json = serde_json::to_vec_pretty(&worktree.state)
            .map_err(|error| SandboxError::Damaged { path: admin.join(STATE), detail: error.to_string() })?;
        write_durably(&admin.join(STATE), &json)?;
        Ok(worktree)
    }

    /// Makes the sandbox of a plan anew at its base commit, when its directory was removed by hand.
    ///
    /// What the snapshot left alone is read out of the commit. The sandbox stands at the base afterwards:
    /// [`Worktree::restore`] brings it to a checkpoint. A complete sandbox of that base at `dir` is taken up as
    /// [`Worktree::create`] does. [`SandboxError::SnapshotGone`] when the base is no longer in the repository.
    pub fn recreate(
        repository: &Repository,
        plan: PlanId,
        base: &CommitId,
        dir: &Path,
        expose: &[&str],
    ) -> Result<Self> {
        let repository = &repository.with_settings_now()?;
        let snapshot = recall(repository, plan, base)?;
        let name = repository.plan_ref(plan, "base");
        repository.git.run(["update-ref", "-m", "snapshot", name.as_str(), base.as_str()])?;
        Self::create(repository, &snapshot, dir, expose)
    }

    /// Where a checkout gives other bytes than the user has, shows the user's: content behind filters, hidden changes,
    /// line endings. Returns the untracked ones among them.
    fn show_users_bytes(&mut self) -> Result<Vec<String>> {
        let users = Root::open(self.repository.path(), self.repository.git_dir())?;
        let entries = tracked(&self.git)?;
        let mut untracked = Vec::new();
        let mut pinned = Vec::new();
        if !self.repository.settings.sparse {
            let names: HashSet<&Path> = entries.iter().map(|entry| entry.path.as_path()).collect();
            for file in &self.state.untouchable {
                let shown =
                    matches!(file.reason, UntouchableReason::Filter { .. } | UntouchableReason::Hidden);
                if shown && self.copy_from(&users, &file.path)? {
                    let known = names.contains(Path::new(&file.path));
                    if known { &mut pinned } else { &mut untracked }.push(file.path.clone());
                }
            }
        }
        let differing = self.differing_sizes(&entries);
        if !differing.is_empty() {
            for (path, endings) in self.unfaithful(&users, &differing)? {
                if !self.copy_from(&users, &path)? {
                    continue;
                }
                if let Some(endings) = endings {
                    self.state.own_endings.push(OwnEndings { path, endings });
                } else {
                    pinned.push(path.clone());
                    self.state.untouchable.push(Untouchable { path, reason: UntouchableReason::LineEndings });
                }
            }
        }
        if !pinned.is_empty() {
            let call = self.git.converting(&["update-index", "-z", "--skip-worktree", "--stdin"])?;
            call.stdin_paths(&pinned).run()?;
        }
        let own: Vec<&str> = self.state.own_endings.iter().map(|file| file.path.as_str()).collect();
        self.record_files(&own)?;
        Ok(untracked)
    }

    /// Copies a file of the user's; `false` for what is not a regular file of bearable size.
    fn copy_from(&self, users: &Root, path: &str) -> Result<bool> {
        let metadata = fs::symlink_metadata(users.path().join(path));
        if !metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGE_FILE) {
            return Ok(false);
        }
        let path = Path::new(path);
        let Some(entry @ Entry::File { .. }) = users.read(path)? else { return Ok(false) };
        self.root.place(path, &entry, false)?;
        Ok(true)
    }

    /// Tracked files whose size here is not the user's.
    fn differing_sizes<'t>(&self, entries: &'t [Tracked]) -> Vec<(&'t str, &'t str)> {
        let size = |path: PathBuf| fs::symlink_metadata(path).ok().filter(|m| m.is_file()).map(|m| m.size());
        let users = self.repository.path();
        let left: HashSet<&str> = self.state.untouchable.iter().map(|file| file.path.as_str()).collect();
        entries
            .iter()
            .filter(|entry| !entry.submodule && !entry.hidden)
            .filter_map(|entry| Some((entry.path.to_str()?, entry)))
            // `hash-object` takes a path per line.
            .filter(|(path, _)| !path.contains('\n') && !left.contains(path))
            .filter(|(path, _)| match (size(users.join(path)), size(self.path().join(path))) {
                (Some(theirs), Some(ours)) => theirs != ours,
                _ => false,
            })
            .map(|(path, entry)| (path, entry.id.as_str()))
            .collect()
    }

    /// Of files that differ from the user's: those that mean the same to git, so that a checkout alone made the
    /// difference, with the user's endings (`None`: mixed). The others were edited since the snapshot.
    fn unfaithful(&self, users: &Root, files: &[(&str, &str)]) -> Result<Vec<(String, Option<LineEndings>)>> {
        let paths: String = files.iter().map(|(path, _)| format!("{path}\n")).collect();
        let output = self.repository.git.call(["hash-object", "--stdin-paths"]).stdin(paths).output()?;
        if output.code != 0 {
            // A file went away meanwhile: then nothing can be said, and the checkout's bytes stand.
            return Ok(Vec::new());
        }
        let hashes = String::from_utf8_lossy(&output.stdout);
        let mut same = Vec::new();
        for ((path, id), _) in files.iter().zip(hashes.lines()).filter(|((_, id), hash)| id == hash) {
            let id: ObjectId = crate::git::parse_id("git ls-files", id)?;
            same.push((id, *path));
        }
        let items: Vec<(&ObjectId, &str)> = same.iter().map(|(id, path)| (id, *path)).collect();
        let mut found = Vec::new();
        for ((_, path), stored) in items.iter().zip(self.repository.blobs(false, &items)?) {
            let path = Path::new(path);
            if let (Some(theirs), Some(ours)) = (users.read(path)?, self.root.read(path)?) {
                let endings = LineEndings::of(theirs.bytes(), &stored, ours.bytes());
                found.push((path.to_string_lossy().into_owned(), endings));
            }
        }
        Ok(found)
    }

    /// Links the ignored folders that match.
    fn expose(&self, patterns: &[&str]) -> Result<Vec<Exposed>> {
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        let mut builder = GitignoreBuilder::new("");
        for pattern in patterns {
            builder.add_line(None, pattern).map_err(|error| SandboxError::Unexpected {
                command: format!("expose {pattern}"),
                detail: error.to_string(),
            })?;
        }
        let matcher = builder.build().map_err(|error| SandboxError::Unexpected {
            command: "expose".to_owned(),
            detail: error.to_string(),
        })?;
        let git = &self.repository.git;
        let output = git.run(["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"])?;
        let mut exposed = Vec::new();
        for field in nul_fields(&output) {
            let Some(path) = os_path(field).to_str().map(|path| path.trim_end_matches('/')) else { continue };
            let source = self.repository.path().join(path);
            if !matcher.matched(path, true).is_ignore() || !source.is_dir() {
                continue;
            }
            let target = source.canonicalize().map_err(SandboxError::io("open", &source))?;
            if self.root.exists(Path::new(path))? {
                continue;
            }
            self.root.place(Path::new(path), &Entry::Link(target.clone().into_os_string()), false)?;
            exposed.push(Exposed { path: path.to_owned(), target });
        }
        Ok(exposed)
    }
}

/// The directory without links, refused inside the checkout.
fn place_for(repository: &Repository, dir: &Path) -> Result<PathBuf> {
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
        return Err(SandboxError::NotASandbox { dir: dir.to_owned() });
    };
    // Looked at before anything is created: the nearest part that exists says where the rest would be.
    let existing = parent.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    if existing.is_some_and(|at| at.starts_with(repository.path()) || at.starts_with(repository.common_dir()))
    {
        return Err(SandboxError::InsideRepository {
            dir: dir.to_owned(),
            repository: repository.path().to_owned(),
        });
    }
    fs::create_dir_all(parent).map_err(SandboxError::io("create", parent))?;
    let parent = parent.canonicalize().map_err(SandboxError::io("open", parent))?;
    Ok(parent.join(name))
}

/// The sandbox that is at `dir` already; leftovers of a killed process are removed.
fn take_up(repository: &Repository, snapshot: &Snapshot, dir: &Path) -> Result<Option<Worktree>> {
    let admin = admin_directory(repository, dir)?;
    match (Worktree::open(repository, dir), admin) {
        (Ok(existing), _) if existing.state.plan != snapshot.plan => {
            Err(SandboxError::NotASandbox { dir: dir.to_owned() })
        }
        (Ok(existing), _) if existing.state.base == snapshot.commit => {
            existing.recover()?;
            Ok(Some(existing))
        }
        (Ok(existing), _) => {
            // A newer snapshot of the same plan: the sandbox of the older one goes unless someone worked in it.
            existing.remove(Removal::IfClean)?;
            Ok(None)
        }
        (Err(SandboxError::NoSandbox { .. }), Some(admin)) => {
            remove_directories(dir, &admin)?;
            Ok(None)
        }
        (Err(SandboxError::NoSandbox { .. }), None) => {
            let occupied = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
            if occupied { Err(SandboxError::NotASandbox { dir: dir.to_owned() }) } else { Ok(None) }
        }
        (Err(error), _) => Err(error),
    }
}

/// A path as a pattern that matches nothing else.
fn escape_pattern(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for (at, character) in path.char_indices() {
        let trailing_space = character == ' ' && at + 1 == path.len();
        if matches!(character, '\\' | '*' | '?' | '[' | '!' | '#') || trailing_space {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
