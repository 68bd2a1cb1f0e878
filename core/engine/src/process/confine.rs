//! What a program that a plan runs may reach: by `bwrap` where there is one, else everything that its user may.
//!
//! Whatever runs in a sandbox finds the repository behind it through the worktree's `.git`. So the checkout, its git
//! directory and our own data are read-only to it, and only the sandbox is not. Code that is not trusted further
//! ([`Reach::Sandbox`], [`Reach::Nothing`]) sees the whole machine read-only and no folders of keys, and has a network only where
//! that is said.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::Surroundings;
use crate::surroundings::find_program;

/// How far a program reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// The machine and the network, but for the repository and our data: commands of validations, which use caches
    /// and services.
    Machine,
    /// It may write to its sandbox and to a `/tmp` of its own.
    Sandbox,
    /// It may write only to a `/tmp` of its own.
    Nothing,
}

/// Folders and files of keys in a home, which no code of a tool sees.
const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".config/gh",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".npmrc",
];

/// The bounds of one program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// How far it reaches.
    pub reach: Reach,
    /// It reaches the network.
    pub network: bool,
    /// The sandbox it works in; absolute.
    pub root: PathBuf,
    /// What it may read and not write: the checkout, its git directory, our data.
    pub protected: Vec<PathBuf>,
    /// What it must not see at all.
    pub hidden: Vec<PathBuf>,
}

/// The `bwrap` to use, with whether processes can have numbers of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bwrap {
    program: PathBuf,
    own_processes: bool,
}

/// What confines programs on this machine, in words for people; `Err` is what is missing.
pub(crate) fn available(surroundings: &dyn Surroundings) -> Result<String, String> {
    let path = surroundings.variable("PATH").unwrap_or_default();
    let program = find_program("bwrap", &path).ok_or("bwrap not found")?;
    match probe(&program) {
        Some(_) => Ok(program.display().to_string()),
        None => Err(format!("{} cannot make a sandbox here", program.display())),
    }
}

/// The command line that runs a program within bounds; as it is where nothing can confine it.
pub(crate) fn confined(
    surroundings: &dyn Surroundings,
    bounds: &Bounds,
    program: &Path,
    args: &[String],
) -> (PathBuf, Vec<String>) {
    let path = surroundings.variable("PATH").unwrap_or_default();
    let Some(bwrap) = find_program("bwrap", &path).and_then(|program| probe(&program)) else {
        return (program.to_owned(), args.to_vec());
    };
    let home = surroundings.variable("HOME").map(PathBuf::from);
    let mut words = words(bounds, bwrap.own_processes, home.as_deref());
    words.push("--".to_owned());
    words.push(program.display().to_string());
    words.extend(args.iter().cloned());
    (bwrap.program, words)
}

/// Whether a `bwrap` works here, found out once.
fn probe(program: &Path) -> Option<Bwrap> {
    static KNOWN: OnceLock<Mutex<HashMap<PathBuf, Option<Bwrap>>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    known
        .entry(program.to_owned())
        .or_insert_with(|| {
            let works = |own_processes: bool| {
                let bounds = Bounds {
                    reach: Reach::Nothing,
                    network: false,
                    root: PathBuf::from("/"),
                    protected: Vec::new(),
                    hidden: Vec::new(),
                };
                let tried = Command::new(program)
                    .args(words(&bounds, own_processes, None))
                    .args(["--", "/bin/sh", "-c", "exit 0"])
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status();
                tried.is_ok_and(|status| status.success())
            };
            let found = |own_processes| Bwrap { program: program.to_owned(), own_processes };
            [true, false].into_iter().find(|own| works(*own)).map(found)
        })
        .clone()
}

fn words(bounds: &Bounds, own_processes: bool, home: Option<&Path>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |parts: &[&str]| words.extend(parts.iter().map(|part| (*part).to_owned()));
    let shown = |path: &Path| path.display().to_string();
    add(&["--die-with-parent"]);
    match bounds.reach {
        Reach::Machine => add(&["--dev-bind", "/", "/", "--cap-drop", "CAP_SYS_ADMIN"]),
        Reach::Sandbox | Reach::Nothing => {
            add(&["--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp"]);
            add(&["--unshare-ipc", "--cap-drop", "ALL"]);
            for secret in home.iter().flat_map(|home| SECRETS.iter().map(|name| home.join(name))) {
                match std::fs::metadata(&secret) {
                    Ok(found) if found.is_dir() => add(&["--tmpfs", &shown(&secret)]),
                    Ok(_) => add(&["--ro-bind", "/dev/null", &shown(&secret)]),
                    Err(_) => {}
                }
            }
        }
    }
    if !bounds.network {
        add(&["--unshare-net"]);
    }
    if own_processes {
        add(&["--unshare-pid", "--proc", "/proc"]);
    }
    for path in bounds.hidden.iter().filter(|path| path.is_dir()) {
        add(&["--tmpfs", &shown(path)]);
    }
    for path in bounds.protected.iter().filter(|path| path.exists()) {
        add(&["--ro-bind", &shown(path), &shown(path)]);
    }
    if bounds.root != Path::new("/") {
        let bind = if bounds.reach == Reach::Nothing { "--ro-bind" } else { "--bind" };
        add(&[bind, &shown(&bounds.root), &shown(&bounds.root)]);
    }
    words
}
