//! Running a command of a validation or a tool: no shell unless asked, a clean environment, bounded time and output, and nothing
//! of it outlives the run, the cancelling of the plan, or the death of the worker. What it starts in a session of its own is
//! found by a mark in the environment.

pub(crate) mod confine;
pub(crate) mod environment;
pub(crate) mod secrets;

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// How much of each stream is kept: its end.
const KEPT: usize = 512 * 1024;

/// The variable that marks all processes of one run.
const MARK: &str = "CLEVERAGENTS_RUN";

/// How often strays are looked for: those found may be starting others.
const LOOKS: usize = 20;

/// How long the streams are read on after the command itself has ended.
const LINGER: Duration = Duration::from_millis(500);

/// Starts a watcher that shares our pipe, then becomes the command. When the worker dies, however that happens, the
/// pipe ends and the watcher kills the command's process group, to which it belongs itself.
const GUARD: &str = r#"
exec 3<&0
( ( trap '' HUP INT TERM; read -r _ <&3; kill -s KILL 0 ) </dev/null >/dev/null 2>&1 & )
exec "$@" 3<&- </dev/null
"#;

/// What is run.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Absolute.
    pub program: PathBuf,
    pub args: Vec<String>,
    /// All of its environment.
    pub env: Vec<(String, String)>,
    pub directory: PathBuf,
    pub timeout: Duration,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` when the time was up.
    pub status: Option<ExitStatus>,
    pub stdout: Kept,
    pub stderr: Kept,
}

/// The end of a stream.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub text: String,
    /// Bytes before it that were not kept.
    pub dropped: u64,
}

/// A process group that ends with this value, and what has left it.
struct Group {
    leader: Pid,
    mark: String,
}

impl Drop for Group {
    fn drop(&mut self) {
        // What it left behind goes with it, the watcher too.
        let _ = killpg(self.leader, Signal::SIGKILL);
        for _ in 0..LOOKS {
            let strays = marked(&self.mark);
            if strays.is_empty() {
                return;
            }
            for stray in strays {
                let _ = kill(stray, Signal::SIGKILL);
            }
        }
    }
}

/// The living processes with this mark; none where the system does not tell (it does in `/proc` on Linux).
fn marked(mark: &str) -> Vec<Pid> {
    let line = format!("{MARK}={mark}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw));
    // Of a dead one that nobody has waited for there is nothing to read.
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == line.as_bytes())
    })
    .collect()
}

/// Runs a job to its end. Dropping the future ends the job. `Err` is why it could not be started.
pub(crate) async fn run(job: &Job) -> Result<Ended, String> {
    let shown = job.program.display();
    let mark = crate::clock::ulid().to_string();
    let mut child = Command::new("/bin/sh")
        .args(["-c", GUARD, "guard"])
        .arg(&job.program)
        .args(&job.args)
        .env_clear()
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .env(MARK, &mark)
        .current_dir(&job.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|e| format!("{shown} cannot be started: {e}"))?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let group = leader.map(|leader| Group { leader, mark });
    // Held until the end: when it closes, the watcher acts.
    let pipe = child.stdin.take();
    let mut stdout = Tail::default();
    let mut stderr = Tail::default();
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let status = {
        let reading = async {
            tokio::join!(drain(&mut out, &mut stdout), drain(&mut err, &mut stderr));
        };
        let running = async {
            tokio::pin!(reading);
            let status = tokio::select! {
                status = child.wait() => status,
                () = &mut reading => return child.wait().await,
            };
            // A child of it that went away may still hold the streams open.
            let _ = tokio::time::timeout(LINGER, reading).await;
            status
        };
        match tokio::time::timeout(job.timeout, running).await {
            Ok(Ok(status)) => Some(status),
            Ok(Err(error)) => return Err(format!("{shown}: {error}")),
            Err(_) => None,
        }
    };
    drop(group);
    drop(pipe);
    if status.is_none() {
        let _ = child.wait().await;
    }
    Ok(Ended { status, stdout: stdout.kept(), stderr: stderr.kept() })
}

#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    dropped: u64,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Cut rarely, so that a flood costs little.
        if self.bytes.len() > 2 * KEPT {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let excess = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..excess);
        self.dropped += excess as u64;
    }

    fn kept(mut self) -> Kept {
        self.cut();
        Kept { text: String::from_utf8_lossy(&self.bytes).into_owned(), dropped: self.dropped }
    }
}

async fn drain(stream: &mut Option<impl AsyncRead + Unpin>, tail: &mut Tail) {
    let Some(stream) = stream else { return };
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        tail.push(&buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn job(script: &str, timeout: u64) -> Job {
        Job {
            program: "/bin/sh".into(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: vec![
                ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
                ("ONLY".to_owned(), "this".to_owned()),
            ],
            directory: std::env::temp_dir(),
            timeout: Duration::from_secs(timeout),
        }
    }

    fn go(job: &Job) -> Ended {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(job)).unwrap()
    }

    #[test]
    fn it_gets_the_environment_it_is_given_and_no_input() {
        let ended = go(&job("env; cat; echo err >&2; exit 3", 20));
        assert_eq!(ended.status.unwrap().code(), Some(3));
        assert!(ended.stdout.text.contains("ONLY=this"), "{}", ended.stdout.text);
        assert!(!ended.stdout.text.contains("HOME="), "{}", ended.stdout.text);
        assert_eq!(ended.stderr.text, "err\n");
    }

    #[test]
    fn a_hanging_one_is_ended_with_all_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pids");
        let script = format!("sleep 600 & echo $! > {0}; echo $$ >> {0}; wait", file.display());
        let began = Instant::now();
        let ended = go(&job(&script, 1));
        assert!(ended.status.is_none());
        assert!(began.elapsed() < Duration::from_secs(20));
        let pids = std::fs::read_to_string(file).unwrap();
        assert_eq!(pids.lines().count(), 2);
        pids.lines().for_each(assert_dead);
    }

    // VALID-020
    #[test]
    fn what_it_starts_in_a_session_of_its_own_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let start = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
        let wait = format!("until [ -e {} ]; do :; done", file.display());
        let ended = go(&job(&format!("setsid sh -c '{start}' >/dev/null 2>&1 & {wait}"), 20));
        assert!(ended.status.unwrap().success());
        assert_dead(std::fs::read_to_string(file).unwrap().trim());
    }

    fn assert_dead(pid: &str) {
        let deadline = Instant::now() + Duration::from_secs(10);
        let pid = Pid::from_raw(pid.parse().unwrap());
        while kill(pid, None).is_ok() && !is_zombie(pid) {
            assert!(Instant::now() < deadline, "{pid} is alive");
            std::thread::yield_now();
        }
    }

    fn is_zombie(pid: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
    }

    #[test]
    fn a_flood_keeps_its_end_and_a_child_left_behind_holds_nobody_up() {
        let ended = go(&job("yes | head -c 5000000; echo the end; sleep 600 &", 60));
        assert!(ended.status.unwrap().success());
        assert!(ended.stdout.text.ends_with("the end\n"));
        assert!(ended.stdout.text.len() <= KEPT);
        assert!(ended.stdout.dropped > 4_000_000);
    }
}
