//! Git repositories in any state, made by the real git without the settings of whoever runs the tests.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository on disk.
#[derive(Debug, Clone)]
pub struct Repo {
    path: PathBuf,
}

/// What a plan must leave alone, whatever it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untouched {
    stash: String,
    branches: String,
    tags: String,
    hooks: BTreeMap<String, Vec<u8>>,
    config: Vec<u8>,
}

/// Takes the settings of the user and the machine away from a git command.
pub fn clean_git(command: &mut Command) -> &mut Command {
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
}

impl Repo {
    /// An empty repository on branch `main` whose commits have an author.
    ///
    /// # Panics
    /// When git fails, as all of this does.
    pub fn init(path: &Path) -> Self {
        std::fs::create_dir_all(path).expect("the folder can be made");
        let repo = Self { path: path.to_owned() };
        repo.git(&["init", "-q", "-b", "main"]);
        repo.git(&["config", "user.name", "Ada Example"]);
        repo.git(&["config", "user.email", "ada@example.invalid"]);
        repo.git(&["config", "commit.gpgsign", "false"]);
        repo
    }

    /// Another checkout that is there already.
    pub fn at(&self, path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn file(&self, path: impl AsRef<Path>) -> PathBuf {
        self.path.join(path)
    }

    /// Runs git in it; its output without the line end.
    pub fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let bytes = self.git_bytes(args);
        String::from_utf8(bytes).expect("git prints text").trim_end().to_owned()
    }

    /// The same, for output that is no text.
    pub fn git_bytes<S: AsRef<OsStr>>(&self, args: &[S]) -> Vec<u8> {
        let mut git = Command::new("git");
        git.args(["-c", "protocol.file.allow=always"]).args(args).current_dir(&self.path);
        let output = clean_git(&mut git).output().expect("git can be started");
        let words: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy().into_owned()).collect();
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Writes a file of the working tree.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        let file = self.file(path);
        std::fs::create_dir_all(file.parent().expect("a file has a folder")).expect("the folder can be made");
        std::fs::write(&file, content).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        self
    }

    /// Reads a file of the working tree.
    pub fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        let file = self.file(path);
        std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
    }

    /// The same, as text.
    pub fn text(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8(self.read(path)).expect("the file is text")
    }

    /// Commits all there is.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    /// The commit that is checked out.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// How many commits HEAD has behind it, itself counted.
    pub fn commits(&self) -> usize {
        self.git(&["rev-list", "--count", "HEAD"]).parse().expect("git counts")
    }

    /// What is staged, changed and untracked, as `git status` tells it.
    pub fn status(&self) -> Vec<String> {
        let text = self.git_bytes(&["status", "--porcelain=v1", "-uall", "-z"]);
        String::from_utf8_lossy(&text)
            .split('\0')
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// What is staged: mode, object and name of each entry of the index.
    pub fn index(&self) -> String {
        String::from_utf8_lossy(&self.git_bytes(&["ls-files", "--stage", "-z"])).replace('\0', "\n")
    }

    /// A file as HEAD has it.
    pub fn committed(&self, path: &str) -> String {
        String::from_utf8_lossy(&self.git_bytes(&["show", &format!("HEAD:{path}")])).into_owned()
    }

    /// The last commit's message.
    pub fn message(&self) -> String {
        self.git(&["log", "-1", "--format=%B"])
    }

    /// Every file of the working tree but git's own, by name.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.path, &self.path, &mut files);
        files
    }

    /// What nobody but the user may change: stash, other branches than `branch`, tags, hooks, settings, worktrees.
    pub fn untouched(&self, branch: &str) -> Untouched {
        let refs = |pattern: &str| self.git(&["for-each-ref", "--format=%(refname) %(objectname)", pattern]);
        let branches = refs("refs/heads/");
        let branches: Vec<&str> =
            branches.lines().filter(|line| !line.starts_with(&format!("refs/heads/{branch} "))).collect();
        let stash = self.git(&["stash", "list", "--format=%gd %H"]);
        let folder = self.path.join(self.git(&["rev-parse", "--git-common-dir"]));
        let mut hooks = BTreeMap::new();
        collect(&folder.join("hooks"), &folder.join("hooks"), &mut hooks);
        Untouched {
            stash,
            branches: branches.join("\n"),
            tags: refs("refs/tags/"),
            hooks,
            config: std::fs::read(folder.join("config")).expect("a repository has a config"),
        }
    }

    /// The worktrees git knows, the main one left out.
    pub fn worktrees(&self) -> usize {
        let text = self.git(&["worktree", "list", "--porcelain"]);
        text.lines().filter(|line| line.starts_with("worktree ")).count() - 1
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("an entry has a type"));
        if entry.file_name() == ".git" {
            continue;
        }
        let name = path.strip_prefix(root).expect("it is inside").to_string_lossy().into_owned();
        if kind.is_dir() {
            collect(root, &path, files);
        } else if kind.is_symlink() {
            let target = std::fs::read_link(&path).expect("a link has a target");
            files.insert(name, format!("-> {}", target.display()).into_bytes());
        } else {
            files.insert(name, std::fs::read(&path).unwrap_or_default());
        }
    }
}
