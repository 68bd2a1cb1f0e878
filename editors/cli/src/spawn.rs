//! Starts the workers of plans: this program again, in a session of its own, so that neither a closed terminal nor
//! Ctrl+C ends the work.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agents_domain::ids::PlanId;
use agents_engine::WorkerSpawner;

/// Starts this program's `plan-worker` command.
pub struct Workers {
    /// Given on; absolute.
    pub data_dir: PathBuf,
    /// Given on; absolute.
    pub config_path: String,
    /// Where logs go.
    pub log_dir: PathBuf,
    /// How often `-v` was given.
    pub verbose: u8,
}

impl WorkerSpawner for Workers {
    fn spawn(&self, plan: PlanId) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
        let path = log_path(&self.log_dir, plan);
        let log = open_log(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut command = Command::new(&program);
        command.arg("plan-worker").arg(plan.to_string());
        command.arg("--data-dir").arg(&self.data_dir).arg("--config-path").arg(&self.config_path);
        if self.verbose > 0 {
            command.arg(format!("-{}", "v".repeat(self.verbose.min(5).into())));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // A process that outlives its command must not hold on to the directory that was typed in.
        command.current_dir(&self.data_dir);
        in_a_session_of_its_own(&mut command);
        let mut child = command.spawn().map_err(|e| format!("{}: {e}", program.display()))?;
        // A process that lives long, such as a language server, must take note of the end of its children.
        let reaped = std::thread::Builder::new().name("worker-reaper".into()).spawn(move || child.wait());
        if let Err(error) = reaped {
            tracing::debug!(%plan, %error, "nobody waits for the worker");
        }
        Ok(())
    }
}

/// Starts this program's pool of warm language servers, which leaves by itself when there is one.
pub fn pool(data_dir: &Path, config_path: &str) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["lsp", "pool", "--serve"]);
    command.arg("--data-dir").arg(data_dir).arg("--config-path").arg(config_path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir(data_dir);
    in_a_session_of_its_own(&mut command);
    let mut child = command.spawn()?;
    std::thread::Builder::new().name("pool-reaper".into()).spawn(move || child.wait())?;
    Ok(())
}

/// What the worker of a plan says on stderr.
pub fn log_path(log_dir: &Path, plan: PlanId) -> PathBuf {
    log_dir.join(format!("worker-{plan}.log"))
}

/// Opens a log for appending; only the user may read it.
pub fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn in_a_session_of_its_own(command: &mut Command) {
    #[allow(unsafe_code, reason = "the hook makes one async-signal-safe system call and allocates nothing")]
    // SAFETY: setsid may be called between fork and exec; the closure touches no lock and no memory of the parent.
    unsafe {
        command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(io::Error::from));
    }
}
