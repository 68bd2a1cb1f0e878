//! Real repositories in directories of their own, and what must not have changed in them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use agents_domain::ids::PlanId;
use agents_sandbox::apply::{self, Applied, ApplyError, ApplyMode, ApplyRefusal};
use agents_sandbox::{CommitId, Repository, Snapshot, Worktree, snapshot};

/// Nobody's own git configuration may reach a test, nor git called by the crate in this process.
static ISOLATED: LazyLock<()> = LazyLock::new(|| {
    // SAFETY: the standard library serialises its own accesses, and every test comes through here before it starts
    // a process; nothing else in this binary reads the environment.
    #[allow(unsafe_code, reason = "the environment is the only way to keep git's global configuration out")]
    unsafe {
        std::env::set_var("GIT_CONFIG_GLOBAL", "/dev/null");
        std::env::set_var("GIT_CONFIG_NOSYSTEM", "1");
        std::env::set_var("HOME", "/nonexistent");
        std::env::remove_var("XDG_CONFIG_HOME");
    }
});

pub fn isolate() {
    LazyLock::force(&ISOLATED);
}

pub const PLAN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

pub fn plan() -> PlanId {
    PLAN.parse().unwrap()
}

pub fn other_plan() -> PlanId {
    "01BX5ZZKBKACTAV9WEVGEMMVRZ".parse().unwrap()
}

pub fn try_git(dir: &Path, args: &[&str]) -> Output {
    isolate();
    Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .output()
        .unwrap()
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = try_git(dir, args);
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

pub fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

pub fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .into_owned()
}

pub fn executable(path: &Path) -> bool {
    fs::metadata(path).unwrap().permissions().mode() & 0o100 != 0
}

/// A line of numbered text, so that edits far apart merge.
pub fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

pub struct Fixture {
    pub dir: tempfile::TempDir,
    pub repo: PathBuf,
}

impl Fixture {
    /// A repository with one commit on `main`.
    pub fn new() -> Self {
        isolate();
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&repo).unwrap();
        init(&repo);
        write(&repo.join("a.py"), lines(20));
        write(&repo.join("src/b.py"), "b = 1\n");
        write(&repo.join(".gitignore"), "ignored/\nnode_modules/\n.venv/\n*.log\n");
        commit(&repo, "first");
        Self { dir, repo }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.repo.join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        write(&self.path(name), bytes);
    }

    pub fn read(&self, name: &str) -> String {
        read(&self.path(name))
    }

    pub fn git(&self, args: &[&str]) -> String {
        git(&self.repo, args)
    }

    pub fn commit(&self, message: &str) -> String {
        commit(&self.repo, message)
    }

    pub fn open(&self) -> Repository {
        Repository::open(&self.repo).unwrap()
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("data")
    }

    pub fn sandbox_dir(&self) -> PathBuf {
        self.data().join("sandboxes").join(PLAN).join("01BX5ZZKBKACTAV9WEVGEMMVS0")
    }

    pub fn journal(&self) -> PathBuf {
        self.data().join("journal")
    }

    pub fn sandbox(&self) -> Sandbox {
        let repository = self.open();
        let snapshot = snapshot(&repository, plan()).unwrap();
        let worktree = Worktree::create(&repository, &snapshot, &self.sandbox_dir(), &[]).unwrap();
        Sandbox { repository, snapshot, worktree }
    }

    /// Everything a person could notice: HEAD, branches, index, status, every file.
    pub fn state(&self) -> State {
        State::of(&self.repo)
    }
}

pub fn init(repo: &Path) {
    git(repo, &["init", "-q", "-b", "main"]);
    git(repo, &["config", "user.name", "Test Person"]);
    git(repo, &["config", "user.email", "person@example.org"]);
}

pub fn commit(repo: &Path, message: &str) -> String {
    git(repo, &["add", "-A"]);
    git(repo, &["commit", "-q", "--no-verify", "--allow-empty", "-m", message]);
    git(repo, &["rev-parse", "HEAD"])
}

pub struct Sandbox {
    pub repository: Repository,
    pub snapshot: Snapshot,
    pub worktree: Worktree,
}

impl Sandbox {
    /// Writes files in the sandbox and checkpoints them.
    pub fn change(&self, files: &[(&str, &str)]) -> CommitId {
        for (path, text) in files {
            self.worktree.write_file(path, text.as_bytes()).unwrap();
        }
        let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
        self.worktree.checkpoint("change", &paths).unwrap()
    }

    pub fn apply(&self, journal: &Path, mode: ApplyMode) -> Result<Applied, ApplyError> {
        let result = self.worktree.head().unwrap();
        let planned = apply::preflight(&self.repository, &self.snapshot, &result, mode)?;
        let trailers = [("CleverAgents-Plan".to_owned(), PLAN.to_owned())];
        apply::run(&self.repository, &planned, journal, "Fix what was found", &trailers)
    }
}

pub fn refusal(result: Result<Applied, ApplyError>) -> ApplyRefusal {
    match result {
        Err(ApplyError::Refusal(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct State {
    pub head: String,
    pub refs: String,
    pub stash: String,
    pub index: String,
    pub status: String,
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

impl State {
    pub fn of(repo: &Path) -> Self {
        Self {
            head: fs::read_to_string(git_dir(repo).join("HEAD")).unwrap(),
            refs: git(repo, &["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]),
            stash: git(repo, &["stash", "list"]),
            index: git(repo, &["ls-files", "-s", "-v"]),
            status: git(repo, &["--no-optional-locks", "status", "--porcelain=v2", "-uall"]),
            files: tree(repo),
        }
    }
}

pub fn git_dir(repo: &Path) -> PathBuf {
    git(repo, &["rev-parse", "--absolute-git-dir"]).into()
}

/// Every file below a directory: bytes, or a link's target; with `x` for an executable one.
pub fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(dir: &Path, root: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if entry.file_name() == ".git" {
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_owned();
            if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                files.insert(name, [b"-> ", target.as_os_str().as_bytes()].concat());
            } else if kind.is_dir() {
                walk(&path, root, files);
            } else {
                let prefix: &[u8] = if executable(&path) { b"x" } else { b"" };
                files.insert(name, [prefix, &fs::read(&path).unwrap()].concat());
            }
        }
    }
    let mut files = BTreeMap::new();
    walk(dir, dir, &mut files);
    files
}
