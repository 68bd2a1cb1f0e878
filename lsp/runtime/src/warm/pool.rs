//! The pool: a process of its own that waits on a local socket. While somebody works with a server it only remembers how
//! that was started; when they leave it starts another like it, and hands that one over to whoever comes next.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::spare::{Habits, Parcel, Phase, Spare};
use super::wire::{self, Answer, Recipe, VERSION, Word};
use super::{LOCK, SOCKET, is_ours};
use crate::lock;

/// How long a server that is being started may be waited for: less than starting another one.
const READY: Duration = Duration::from_secs(10);
/// How long the taker has to say that it has the streams.
const TAKEN: Duration = Duration::from_secs(5);
/// Between two looks whether there is anything left to do.
const LOOK: Duration = Duration::from_millis(500);
/// A pool that never had anything to do waits this long for its first user.
const FIRST: Duration = Duration::from_secs(30);
/// Users at the same time.
const MAX_USERS: usize = 256;

/// How much is kept, and for how long.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// The folder of the socket.
    pub folder: PathBuf,
    /// Where running servers are noted.
    pub notes: PathBuf,
    /// How long a server waits for somebody.
    pub idle: Duration,
    /// Servers that wait at the same time; beyond that the oldest ends.
    pub servers: usize,
}

/// Serves the pool until nothing is left to do. `Ok(false)` when another process does already.
///
/// # Errors
/// When the folder or the socket cannot be used.
pub fn serve_pool(options: PoolOptions) -> io::Result<bool> {
    if !cfg!(target_os = "linux") {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "servers are kept warm on Linux only"));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&options.folder)?;
    is_ours(&options.folder)?;
    // The kernel drops the lock with the process, so whoever holds it may put its socket in the place of any other.
    let file = File::options().create(true).truncate(false).write(true).open(options.folder.join(LOCK))?;
    let Ok(_lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { return Ok(false) };
    let socket = options.folder.join(SOCKET);
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket)?;
    let inode = fs::symlink_metadata(&socket)?.ino();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let pool = Arc::new(Pool {
        runtime: runtime.handle().clone(),
        options,
        begun: Instant::now(),
        state: Mutex::default(),
    });
    let accepting = pool.clone();
    thread::Builder::new().name("pool".to_owned()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let pool = accepting.clone();
            let served = thread::Builder::new().name("user".to_owned()).spawn(move || pool.serve(&stream));
            if let Err(error) = served {
                tracing::warn!(%error, "a user is sent away");
            }
        }
    })?;
    while !pool.is_over() {
        thread::sleep(LOOK);
        // A socket that somebody took away leads nobody here.
        if fs::symlink_metadata(&socket).map_or(true, |meta| meta.ino() != inode) {
            lock(&pool.state).stopped = true;
        }
    }
    lock(&pool.state).spares.clear();
    if fs::symlink_metadata(&socket).is_ok_and(|meta| meta.ino() == inode) {
        let _ = fs::remove_file(&socket);
    }
    // Servers that were handed over are still our children, and live on.
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(50)).await });
    std::mem::forget(runtime);
    Ok(true)
}

struct Pool {
    runtime: Handle,
    options: PoolOptions,
    begun: Instant,
    state: Mutex<State>,
}

/// A recipe as a key.
type Key = String;

#[derive(Default)]
struct State {
    spares: HashMap<Key, Spare>,
    users: HashMap<Key, usize>,
    habits: HashMap<Key, Habits>,
    had_users: bool,
    stopped: bool,
}

impl Pool {
    fn is_over(&self) -> bool {
        let mut state = lock(&self.state);
        let idle = self.options.idle;
        state.spares.retain(|_, spare| *spare.phase.borrow() != Phase::Over && spare.since.elapsed() < idle);
        let used = !state.spares.is_empty() || !state.users.is_empty();
        state.stopped || !used && (state.had_users || self.begun.elapsed() > FIRST)
    }

    fn serve(&self, stream: &UnixStream) {
        if let Err(error) = super::peer_is_ours(stream) {
            tracing::warn!(%error, "a stranger is sent away");
            return;
        }
        match wire::receive(stream) {
            Ok(Word::Stop) => lock(&self.state).stopped = true,
            Ok(Word::Use { version, recipe }) if version == VERSION => self.lend(stream, &recipe),
            // Of another version of the program, which starts a pool of its own.
            Ok(Word::Use { .. }) => lock(&self.state).stopped = true,
            Ok(_) => tracing::warn!("a user says something out of place"),
            Err(error) => tracing::debug!(%error, "a user said nothing"),
        }
    }

    fn lend(&self, stream: &UnixStream, recipe: &Recipe) {
        let Ok(key) = serde_json::to_string(recipe) else { return };
        let spare = {
            let mut state = lock(&self.state);
            if state.stopped || state.users.values().sum::<usize>() >= MAX_USERS {
                return;
            }
            *state.users.entry(key.clone()).or_default() += 1;
            state.had_users = true;
            state.spares.remove(&key)
        };
        let parcel = spare.and_then(|spare| self.runtime.block_on(spare.take(READY)));
        let result = match parcel {
            None => wire::send(stream, &Answer::None),
            Some(parcel) => hand_over(stream, parcel),
        };
        let mut again = true;
        let mut habits = Habits::default();
        let talk = || -> io::Result<()> {
            result?;
            loop {
                match wire::receive(stream)? {
                    Word::Shown { path, language } => habits.document = Some((path, language)),
                    Word::Configured { items, answer } => {
                        habits.answers.retain(|(asked, _)| *asked != items);
                        if habits.answers.len() < MAX_USERS {
                            habits.answers.push((items, answer));
                        }
                    }
                    Word::Forget => again = false,
                    Word::Use { .. } | Word::Stop => return Err(io::Error::other("a word out of place")),
                }
            }
        };
        // Only the end of the connection ends this: a user who leaves, however that comes about.
        if let Err(error) = talk() {
            tracing::debug!(%error, "a user leaves");
        }
        let mut state = lock(&self.state);
        if habits != Habits::default() {
            if state.habits.len() > MAX_USERS {
                state.habits.clear();
            }
            state.habits.insert(key.clone(), habits);
        }
        let left = state.users.get_mut(&key).map_or(0, |users| {
            *users -= 1;
            *users
        });
        if left > 0 {
            return;
        }
        state.users.remove(&key);
        if again && !state.stopped {
            self.warm(&mut state, key, recipe);
        }
    }

    fn warm(&self, state: &mut State, key: Key, recipe: &Recipe) {
        if state.spares.contains_key(&key) {
            return;
        }
        while state.spares.len() >= self.options.servers {
            let oldest = state.spares.iter().min_by_key(|(_, spare)| spare.since).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return };
            state.spares.remove(&oldest);
        }
        let _entered = self.runtime.enter();
        let habits = state.habits.get(&key).cloned().unwrap_or_default();
        state.spares.insert(key, Spare::start(recipe.clone(), habits, self.options.notes.clone()));
    }
}

/// Passes a server on. What does not get there is killed with the parcel.
fn hand_over(mut stream: &UnixStream, parcel: Parcel) -> io::Result<()> {
    wire::send(stream, &Answer::Warm(Box::new(parcel.handed.clone())))?;
    wire::send_streams(stream, &parcel.streams)?;
    stream.set_read_timeout(Some(TAKEN))?;
    stream.read_exact(&mut [0])?;
    stream.set_read_timeout(None)?;
    parcel.delivered();
    Ok(())
}

/// Ends the pool of a folder, with the servers that wait in it; whether there was one.
pub fn stop_pool(folder: &Path) -> bool {
    let Ok(stream) = super::connect(folder) else { return false };
    wire::send(&stream, &Word::Stop).is_ok()
}

/// Whether a pool serves a folder.
pub fn pool_runs(folder: &Path) -> bool {
    let Ok(file) = File::options().write(true).open(folder.join(LOCK)) else { return false };
    Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err()
}
