//! The side of those who need a server: whether one waits, and that this one is in use.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use agents_domain::language_server::{LanguageServerDefinition, Transport};
use serde_json::Value;

use super::wire::{self, Answer, Handed, Recipe, VERSION, Word};
use crate::launch::Launch;
use crate::lock;

/// How long the pool may take for its answer; a server that is being started is worth to be waited for.
const ANSWER: Duration = Duration::from_secs(12);
/// How long a pool that was just started may take to listen.
const LISTEN: Duration = Duration::from_secs(10);

/// Starts the process of the pool; it leaves by itself when there is one.
pub type PoolStarter = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Where servers are kept warm, and by whom.
#[derive(Clone)]
pub struct WarmServers {
    /// The folder of the pool's socket.
    pub folder: PathBuf,
    /// Starts the pool.
    pub start: PoolStarter,
}

impl fmt::Debug for WarmServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarmServers").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// A server that was taken over.
pub(crate) struct Taken {
    pub handed: Handed,
    pub input: File,
    pub output: File,
    pub errors: OwnedFd,
}

/// Tells the pool that a server is in use, as long as this lives.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    line: Arc<Mutex<Line>>,
}

#[derive(Debug)]
enum Line {
    /// The pool is being started; what it is to hear.
    Opening(Vec<Word>),
    Open(UnixStream),
    Closed,
}

impl Lease {
    fn say(&self, word: Word) {
        match &mut *lock(&self.line) {
            Line::Opening(words) => words.push(word),
            // A pool that is gone needs to know nothing.
            Line::Open(stream) => _ = wire::send(stream, &word),
            Line::Closed => {}
        }
    }

    pub(crate) fn is_shown(&self, path: &Path, language: &str) {
        self.say(Word::Shown { path: path.to_owned(), language: language.to_owned() });
    }

    pub(crate) fn is_configured(&self, items: &Value, answer: &Value) {
        self.say(Word::Configured { items: items.clone(), answer: answer.clone() });
    }

    /// No other one like it is to be started.
    pub(crate) fn forget(&self) {
        self.say(Word::Forget);
    }

    /// The server is not in use any more.
    pub(crate) fn end(&self) {
        *lock(&self.line) = Line::Closed;
    }
}

/// Takes a server that waits, if there is one; and says that one is in use. Blocks for a moment.
pub(crate) fn take(
    warm: &WarmServers,
    definition: &LanguageServerDefinition,
    launch: &Launch,
    initialize: &Value,
) -> Option<(Lease, Option<Taken>)> {
    if !cfg!(target_os = "linux") || launch.transport != Transport::Stdio {
        return None;
    }
    let recipe = recipe(definition, launch, initialize)?;
    let word = Word::Use { version: VERSION.to_owned(), recipe: Box::new(recipe) };
    match super::connect(&warm.folder) {
        Ok(stream) => match ask(&stream, &word) {
            Ok(taken) => Some((Lease { line: Arc::new(Mutex::new(Line::Open(stream))) }, taken)),
            Err(error) => {
                tracing::debug!(%error, "the pool of warm servers has none");
                Some((open_later(warm, word), None))
            }
        },
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            tracing::warn!(%error, "servers are not kept warm");
            None
        }
        Err(_) => Some((open_later(warm, word), None)),
    }
}

fn ask(mut stream: &UnixStream, word: &Word) -> io::Result<Option<Taken>> {
    stream.set_read_timeout(Some(ANSWER))?;
    wire::send(stream, word)?;
    let taken = match wire::receive(stream)? {
        Answer::None => None,
        Answer::Warm(handed) => {
            let [input, output, errors] = wire::receive_streams(stream)?;
            // From here on it is ours, and ends with us.
            crate::guard::watch(handed.pid);
            if let Err(error) = stream.write_all(b"!") {
                crate::guard::forget(handed.pid);
                return Err(error);
            }
            Some(Taken { handed: *handed, input: input.into(), output: output.into(), errors })
        }
    };
    stream.set_read_timeout(None)?;
    Ok(taken)
}

/// Starts a pool and tells it what is in use, once it listens. Whatever it says is of no use any more.
fn open_later(warm: &WarmServers, word: Word) -> Lease {
    let line = Arc::new(Mutex::new(Line::Opening(Vec::new())));
    let (opening, warm) = (line.clone(), warm.clone());
    let open = move || {
        let until = Instant::now() + LISTEN;
        let mut started = false;
        while matches!(&*lock(&opening), Line::Opening(_)) && Instant::now() < until {
            match super::connect(&warm.folder).and_then(|stream| {
                // One that waits meanwhile is not taken: nothing is confirmed, and it ends.
                wire::send(&stream, &word)?;
                match wire::receive(&stream)? {
                    Answer::None => Ok(stream),
                    Answer::Warm(_) => Err(io::Error::other("comes too late")),
                }
            }) {
                Ok(stream) => {
                    let mut line = lock(&opening);
                    if let Line::Opening(words) = &*line {
                        words.iter().for_each(|word| _ = wire::send(&stream, word));
                        *line = Line::Open(stream);
                    }
                    return;
                }
                Err(_) if !started => {
                    started = true;
                    if let Err(error) = (warm.start)() {
                        tracing::warn!(%error, "no server is kept warm");
                        return;
                    }
                }
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("to the pool".to_owned()).spawn(open) {
        tracing::warn!(%error, "no server is kept warm");
    }
    Lease { line }
}

/// How a server is started and greeted; `None` where that cannot be told or repeated.
fn recipe(definition: &LanguageServerDefinition, launch: &Launch, initialize: &Value) -> Option<Recipe> {
    let program = fs::metadata(&launch.program).ok()?;
    let mut environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    environment
        .retain(|(name, _)| !is_of_a_terminal(name) && !launch.env.iter().any(|(ours, _)| ours == name));
    environment.extend(launch.env.iter().cloned());
    environment.sort();
    let mut initialize = initialize.clone();
    // A server that watches its client would leave with the first one.
    initialize["processId"] = Value::Null;
    Some(Recipe {
        server: definition.name.clone(),
        program: launch.program.clone(),
        stamp: format!(
            "{}:{}:{}:{}",
            program.dev(),
            program.ino(),
            program.size(),
            program.mtime_nsec().wrapping_add(program.mtime().wrapping_mul(1_000_000_000))
        ),
        args: launch.args.clone(),
        environment,
        root: launch.root.clone(),
        initialize,
        settings: definition.workspace_settings.clone(),
        secrets: launch.secrets.clone(),
    })
}

/// Variables that tell terminals, sessions and windows apart, and say nothing to a language server.
fn is_of_a_terminal(name: &str) -> bool {
    const NAMES: [&str; 26] = [
        "_",
        "SHLVL",
        "PWD",
        "OLDPWD",
        "COLUMNS",
        "LINES",
        "TERM",
        "COLORTERM",
        "WINDOWID",
        "WINDOW",
        "STY",
        "TMUX",
        "TMUX_PANE",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "VTE_VERSION",
        "NVIM",
        "VIM",
        "VIMRUNTIME",
        "MYVIMRC",
        "INSIDE_EMACS",
        "DESKTOP_STARTUP_ID",
        "GPG_TTY",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
    ];
    const STARTS: [&str; 13] = [
        "TERM_",
        "SSH_",
        "XDG_SESSION",
        "XDG_ACTIVATION",
        "GNOME_TERMINAL_",
        "KONSOLE_",
        "KITTY_",
        "ALACRITTY_",
        "WEZTERM_",
        "ITERM_",
        "NVIM_",
        "VSCODE_",
        "ZELLIJ",
    ];
    NAMES.contains(&name) || STARTS.iter().any(|start| name.starts_with(start))
}
