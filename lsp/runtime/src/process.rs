//! Child processes that never outlive us: own process group, killed on drop, by the kernel when we are killed, and with
//! all that they started by the guard.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};

use crate::launch::Launch;
use crate::{activity, guard, lock};

/// How much of what a server printed is kept for people.
const TAIL: usize = 16 << 10;

/// Between two looks at a process that is not our child.
const LOOK: Duration = Duration::from_millis(200);

/// The end of what a process printed outside of the protocol.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Mutex<VecDeque<u8>>,
    /// Values that must not be shown: what `${NAME}` stood for.
    secrets: Vec<String>,
}

impl Tail {
    pub(crate) fn hiding(secrets: Vec<String>) -> Self {
        Self { bytes: Mutex::default(), secrets }
    }

    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut kept = lock(&self.bytes);
        kept.extend(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let excess = kept.len().saturating_sub(TAIL);
        kept.drain(..excess);
    }

    /// The last `lines` lines, as text.
    pub(crate) fn text(&self, lines: usize) -> String {
        let bytes: Vec<u8> = lock(&self.bytes).iter().copied().collect();
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        for secret in &self.secrets {
            text = text.replace(secret, "***");
        }
        let all: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// A running child with its process group.
#[derive(Debug)]
pub(crate) struct Process {
    /// The child, which is also the id of its group.
    pub(crate) pid: i32,
    pub(crate) tail: Arc<Tail>,
    exit: watch::Receiver<Option<String>>,
    gone: Arc<AtomicBool>,
}

impl Process {
    /// Kills the whole group at once; harmless when it is gone.
    pub(crate) fn kill(&self) {
        if !self.gone.load(Ordering::SeqCst) {
            let _ = killpg(Pid::from_raw(self.pid), Signal::SIGKILL);
        }
    }

    /// Takes over a process that another one has started and hands over; its end is seen by looking now and then. The
    /// guard watches it already.
    pub(crate) fn adopt(pid: i32, tail: Arc<Tail>) -> Self {
        let born = activity::born(pid);
        let (ended, exit) = watch::channel(None);
        let gone = Arc::new(AtomicBool::new(born.is_none()));
        let process = Self { pid, tail, exit, gone: gone.clone() };
        tokio::spawn(async move {
            while born.is_some() && activity::born(pid) == born {
                tokio::time::sleep(LOOK).await;
            }
            if born.is_some() {
                let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
            }
            gone.store(true, Ordering::SeqCst);
            guard::forget(pid);
            let _ = ended.send(Some("a status that nobody saw".to_owned()));
        });
        process
    }

    /// Lets go of it: somebody else sees to its end from now on.
    pub(crate) fn hand_over(&self) {
        self.gone.store(true, Ordering::SeqCst);
        guard::forget(self.pid);
    }

    /// How the child ended, waiting for it at most `within`.
    pub(crate) async fn exited(&self, within: Duration) -> Option<String> {
        let mut exit = self.exit.clone();
        let ended = tokio::time::timeout(within, exit.wait_for(Option::is_some)).await.ok()?.ok()?;
        ended.clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A started process and its pipes.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    /// To be read by somebody, or the server waits in the end; see [`drain`].
    pub(crate) stderr: ChildStderr,
}

/// Who ends a child when we are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The kernel, and the guard.
    DiesWithUs,
    /// The guard alone, which can be told to leave it to somebody else.
    MayBeHandedOver,
}

/// Starts a program in its own process group.
pub(crate) async fn spawn(launch: &Launch, fate: Fate) -> io::Result<Started> {
    let mut command = Command::new(&launch.program);
    if launch.is_whole_environment {
        command.env_clear();
    }
    command
        .args(&launch.args)
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&launch.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if fate == Fate::DiesWithUs {
        die_with_parent(&mut command);
    }
    let runtime = tokio::runtime::Handle::current();
    let mut child = on_spawner_thread(move || {
        let _entered = runtime.enter();
        command.spawn()
    })
    .await??;
    let pipe_missing = || io::Error::other("the child has no pipe");
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).ok_or_else(pipe_missing)?;
    let stdin = child.stdin.take().ok_or_else(pipe_missing)?;
    let stdout = child.stdout.take().ok_or_else(pipe_missing)?;
    let stderr = child.stderr.take().ok_or_else(pipe_missing)?;
    guard::watch(pid);
    let tail = Arc::new(Tail::hiding(launch.secrets.clone()));
    let (ended, exit) = watch::channel(None);
    let gone = Arc::new(AtomicBool::new(false));
    let process = Process { pid, tail, exit, gone: gone.clone() };
    tokio::spawn(async move {
        let how = match child.wait().await {
            Ok(status) => status.to_string().replace("exit status: ", "exit status "),
            Err(error) => error.to_string(),
        };
        // What the child left behind in its group goes with it.
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        gone.store(true, Ordering::SeqCst);
        guard::forget(pid);
        let _ = ended.send(Some(how));
    });
    Ok(Started { process, stdin, stdout, stderr })
}

/// Reads a stream to its end into a tail, so that whoever writes to it is never blocked.
pub(crate) async fn drain(mut stream: impl AsyncRead + Unpin, tail: Arc<Tail>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        tail.push(&buffer[..read]);
    }
}

/// Has the kernel kill the child when the thread that started it ends, even by SIGKILL.
#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    let parent = nix::unistd::getpid();
    #[allow(unsafe_code, reason = "the hook makes two async-signal-safe system calls and allocates nothing")]
    // SAFETY: prctl and getppid may be called between fork and exec, and the closure touches no lock and no memory
    // of the parent.
    unsafe {
        command.pre_exec(move || {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            if nix::unistd::getppid() == parent { Ok(()) } else { Err(nix::errno::Errno::ESRCH.into()) }
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut Command) {}

type Job = Box<dyn FnOnce() + Send>;

/// Runs a job on one thread that lives as long as the process.
///
/// The kernel's parent-death signal follows the *thread* that forked, and threads of a runtime come and go.
async fn on_spawner_thread<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    static JOBS: OnceLock<Option<mpsc::Sender<Job>>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Job>();
        let run = move || receiver.into_iter().for_each(|job| job());
        std::thread::Builder::new().name("server-spawner".to_owned()).spawn(run).ok().map(|_| sender)
    });
    let gone = || io::Error::other("the thread that starts processes is gone");
    let (done, result) = oneshot::channel();
    let job: Job = Box::new(move || drop(done.send(job())));
    jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
    result.await.map_err(|_| gone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_bounded_and_hides_secrets() {
        let tail = Tail::hiding(vec!["hunter22".to_owned()]);
        for _ in 0..1000 {
            tail.push(&[b'x'; 1000]);
        }
        tail.push(b"\nkey is hunter22\nlast\n\n");
        assert!(lock(&tail.bytes).len() <= TAIL);
        assert_eq!(tail.text(2), "key is ***\nlast");
    }
}
