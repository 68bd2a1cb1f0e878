//! Running a program to its end within a deadline.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What a program left behind.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Its output.
    pub stdout: Vec<u8>,
    /// Its error output.
    pub stderr: String,
    /// From start to end.
    pub took: Duration,
}

impl Finished {
    /// The output as text.
    ///
    /// # Panics
    /// When it is none.
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("the output is text")
    }
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    what: String,
    pid: Pid,
    started: Instant,
    ended: Receiver<(ExitStatus, Vec<u8>, Vec<u8>)>,
}

impl Running {
    /// Starts a program with no input; its output is collected.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let what = format!("{command:?}");
        let started = Instant::now();
        let child = command.spawn().unwrap_or_else(|error| panic!("{what}: {error}"));
        let pid = Pid::from_raw(child.id().cast_signed());
        let (tell, ended) = mpsc::channel();
        std::thread::spawn(move || drop(tell.send(collect(child))));
        Self { what, pid, started, ended }
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends it a signal; one that has ended takes none.
    pub fn signal(&self, signal: Signal) {
        let _ = kill(self.pid, signal);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it has not ended by the deadline; it is killed first.
    pub fn finish(self, deadline: Duration) -> Finished {
        match self.ended.recv_timeout(deadline) {
            Ok((status, stdout, stderr)) => {
                let stderr = String::from_utf8_lossy(&stderr).into_owned();
                Finished { status, stdout, stderr, took: self.started.elapsed() }
            }
            Err(RecvTimeoutError::Timeout) => {
                let _ = kill(self.pid, Signal::SIGKILL);
                let rest = self.ended.recv_timeout(Duration::from_secs(5));
                let said = rest.map(|(_, out, err)| {
                    format!("{}\n{}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err))
                });
                panic!(
                    "{} did not end within {deadline:?}; it said:\n{}",
                    self.what,
                    said.unwrap_or_default()
                )
            }
            Err(RecvTimeoutError::Disconnected) => panic!("{}: nobody waits for it", self.what),
        }
    }
}

/// Both streams to their ends, then the status. Whoever keeps a stream open longer than the program lives (a worker that
/// inherited it, say) is found by the deadline.
fn collect(mut child: Child) -> (ExitStatus, Vec<u8>, Vec<u8>) {
    let mut errors = child.stderr.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = errors.read_to_end(&mut bytes);
        bytes
    });
    let mut out = Vec::new();
    let _ = child.stdout.take().expect("it is piped").read_to_end(&mut out);
    let status = child.wait().expect("a child can be waited for");
    (status, out, reader.join().unwrap_or_default())
}

/// The processor time a living process has used so far, all its threads together, its children not.
pub fn processor_time(pid: Pid) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may have blanks and brackets in it; user and system time are the 14th and 15th field.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let a_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
    Some(Duration::from_secs_f64(ticks as f64 / a_second as f64))
}

/// The most memory a living process had resident so far, in bytes.
pub fn memory_peak(pid: Pid) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
