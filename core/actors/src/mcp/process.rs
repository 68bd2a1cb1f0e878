//! A server that was started: its process group, what it prints beside the protocol, and its end.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::masked;

/// Bytes of what it prints that are kept: the end.
const KEPT: usize = 16 << 10;

/// Characters of a line that are told.
const LINE: usize = 300;

/// How long it may take to leave after its input was closed, and after it was told to.
const GRACE: Duration = Duration::from_secs(2);

/// Kills a process group when its input ends without a word, which happens when we die, however that happens.
const GUARD: &str = r#"trap '' HUP INT TERM; read -r word || kill -s KILL -- "-$1""#;

/// The end of what was printed.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Mutex<VecDeque<u8>>,
}

impl Tail {
    fn push(&self, bytes: &[u8]) {
        let mut kept = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
    }

    /// The last lines.
    pub fn text(&self, lines: usize, secrets: &[String]) -> String {
        let kept: Vec<u8> =
            self.bytes.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = masked(&String::from_utf8_lossy(&kept), secrets);
        let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let short = |line: &&str| line.chars().take(LINE).collect::<String>();
        all[all.len().saturating_sub(lines)..].iter().map(short).collect::<Vec<_>>().join("\n")
    }
}

/// A started server. Dropping it kills its whole group at once.
pub(crate) struct Process {
    child: Child,
    group: Pid,
    guard: Option<Child>,
}

impl Process {
    /// Starts a program in a process group of its own. `Err` is why it could not be.
    pub fn start(
        program: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        folder: &Path,
        tail: &Arc<Tail>,
    ) -> std::io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut child = Command::new(program)
            .args(args)
            .env_clear()
            .envs(env)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let missing = || std::io::Error::other("the process has no pipe");
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).ok_or_else(missing)?;
        let (stdin, stdout) =
            (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(drain(stderr, tail.clone()));
        }
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "guard", &pid.to_string()])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .ok();
        Ok((Self { child, group: Pid::from_raw(pid), guard }, stdout, stdin))
    }

    /// Waits for it to leave, which it does when its input is closed; ends it when it does not. Gives how it ended.
    pub async fn leave(mut self) -> String {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            if let Ok(Ok(status)) = tokio::time::timeout(GRACE, self.child.wait()).await {
                return status.to_string();
            }
            let _ = killpg(self.group, signal);
        }
        self.child.wait().await.map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// How it ended, when it has; waits for that a moment.
    pub async fn ended(&mut self, within: Duration) -> Option<String> {
        let status = tokio::time::timeout(within, self.child.wait()).await.ok()?.ok()?;
        Some(status.to_string().replace("exit status: ", "exit status "))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // What it left behind in its group goes with it.
        let _ = killpg(self.group, Signal::SIGKILL);
        if let Some(mut guard) = self.guard.take() {
            // The group's number may soon be another's: the guard must go before it sees the end of its input.
            let _ = guard.start_kill();
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { guard.wait().await });
            }
        }
    }
}

/// Reads a stream to its end, so that whoever writes to it is never blocked.
async fn drain(mut stream: impl AsyncRead + Unpin, tail: Arc<Tail>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        tail.push(&buffer[..read]);
    }
}
