//! Python code of tools and validations: interpreters that stay warm, each call in a fork of its own.
//!
//! The code runs in the sandbox's directory with an environment of its own, in the bounds of
//! [`confine`](crate::process::confine), and is ended with all it started when its time is up. What it may be written
//! as (a script, `run`, a body with `return`, a function of the tool's name, `transform`, a hook) is found out by
//! `worker.py`, from its syntax.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agents_domain::ids::PlanId;
use agents_domain::ports::tool::ToolError;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Surroundings;
use crate::process::confine::{self, Bounds, Reach};
use crate::process::environment;
use crate::surroundings::find_program;
use crate::tools::Code;

const WORKER: &str = include_str!("worker.py");

/// Interpreters that are kept warm while nobody needs them.
const IDLE: usize = 4;

/// Bytes that an answer may have.
const MAX_ANSWER: u64 = 8 << 20;

/// What code is called as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contract<'a> {
    /// Whatever its syntax says.
    Auto,
    /// `transform(tool_output)` of a validation.
    Transform,
    /// A function of the lifecycle, called with the context.
    Hook(&'a str),
    /// A script of the lifecycle, or one function of any name.
    HookScript,
}

/// A resource as the code sees it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Bound {
    pub slot: String,
    pub name: String,
    #[serde(rename = "type")]
    pub resource_type: String,
    /// The directory of its sandbox.
    pub path: PathBuf,
    pub read_only: bool,
}

/// A call.
pub(crate) struct Call<'a> {
    pub code: &'a str,
    /// The tool's short name.
    pub name: &'a str,
    pub contract: Contract<'a>,
    pub input: Value,
    pub context: Value,
    pub bounds: Bounds,
    /// Besides what every program gets.
    pub env: Vec<(String, String)>,
    pub resources: Vec<Bound>,
    pub plan: Option<PlanId>,
    pub timeout: Duration,
}

/// What code returned.
#[derive(Debug)]
pub(crate) struct Returned {
    pub result: Value,
    /// The end of what it printed.
    pub log: String,
}

/// Why code returned nothing.
#[derive(Debug)]
pub(crate) struct Failure {
    pub error: ToolError,
    /// `ValueError: no such thing`.
    pub message: String,
    pub traceback: String,
    /// The end of what it printed.
    pub log: String,
}

impl Failure {
    fn plain(error: ToolError, message: String) -> Self {
        Self { error, message, traceback: String::new(), log: String::new() }
    }
}

/// The interpreters.
#[derive(Default)]
pub(crate) struct Python {
    idle: Mutex<Vec<Worker>>,
    /// Tools that were activated, by plan.
    pub active: Mutex<HashMap<PlanId, Vec<Arc<Code>>>>,
    /// When tools with a limit of calls were called.
    pub calls: Mutex<HashMap<String, VecDeque<Instant>>>,
}

/// What an interpreter was started with; another call can use it only when all of it is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    interpreter: PathBuf,
    bounds: Bounds,
    env: Vec<(String, String)>,
}

/// Ends an interpreter and what runs in it.
#[derive(Debug, Clone)]
struct Ender {
    leader: Pid,
    /// The group of the fork that runs, where the interpreter's numbers are ours; 0 for none.
    running: Arc<AtomicI32>,
}

impl Ender {
    fn end(&self) {
        let _ = killpg(self.leader, Signal::SIGKILL);
        match self.running.swap(0, Ordering::AcqRel) {
            0 => {}
            group => _ = killpg(Pid::from_raw(group), Signal::SIGKILL),
        }
    }
}

/// Ends what it holds unless it was let go.
struct EndOnDrop(Option<Ender>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(ender) = &self.0 {
            ender.end();
        }
    }
}

struct Worker {
    setting: Setting,
    child: Child,
    ender: Ender,
    confined: bool,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.ender.end();
        let _ = self.child.wait();
    }
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    started: Option<i32>,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Option<Raised>,
    #[serde(default)]
    log: String,
}

#[derive(Deserialize)]
struct Raised {
    #[serde(rename = "type")]
    kind: String,
    message: String,
    #[serde(default)]
    traceback: String,
}

/// The interpreter that would be used; `Err` says what is missing.
pub(crate) fn interpreter(surroundings: &dyn Surroundings) -> Result<PathBuf, String> {
    let path = surroundings.variable("PATH").unwrap_or_else(|| environment::DEFAULT_PATH.to_owned());
    find_program("python3", &path)
        .ok_or_else(|| "python3 is not on PATH: install Python 3 to run the code of tools".to_owned())
}

impl Worker {
    fn start(surroundings: &dyn Surroundings, setting: Setting) -> Result<Self, String> {
        let args = ["-c".to_owned(), WORKER.to_owned()];
        let (program, words) = confine::confined(surroundings, &setting.bounds, &setting.interpreter, &args);
        let confined = program != setting.interpreter;
        let mut child = Command::new(&program)
            .args(words)
            .env_clear()
            .envs(setting.env.iter().map(|(name, value)| (name, value)))
            .current_dir(Path::new("/"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        let leader = Pid::from_raw(i32::try_from(child.id()).map_err(|error| error.to_string())?);
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{} has no pipes", program.display()));
        };
        let ender = Ender { leader, running: Arc::default() };
        Ok(Self { setting, child, ender, confined, requests, answers: BufReader::new(answers) })
    }

    /// One line there, one line back. `Err` when the interpreter is gone.
    fn talk(&mut self, line: &str) -> Result<Said, String> {
        let gone = |why: String| format!("the Python interpreter ended: {why}");
        self.requests.write_all(line.as_bytes()).map_err(|error| gone(error.to_string()))?;
        self.requests.flush().map_err(|error| gone(error.to_string()))?;
        loop {
            let mut answer = Vec::new();
            let mut bounded = (&mut self.answers).take(MAX_ANSWER);
            bounded.read_until(b'\n', &mut answer).map_err(|error| gone(error.to_string()))?;
            if !answer.ends_with(b"\n") {
                return Err(match answer.len() as u64 >= MAX_ANSWER {
                    true => format!("what the code returns is larger than {} MB", MAX_ANSWER >> 20),
                    false => gone("it closed its output".to_owned()),
                });
            }
            let said: Said = serde_json::from_slice(&answer).map_err(|error| gone(error.to_string()))?;
            match said.started {
                // In a sandbox with processes of its own the number means another one out here.
                Some(group) if !self.confined => self.ender.running.store(group, Ordering::Release),
                Some(_) => {}
                None => {
                    self.ender.running.store(0, Ordering::Release);
                    return Ok(said);
                }
            }
        }
    }
}

impl Python {
    /// Runs code. Dropping the future ends it.
    pub async fn call(&self, surroundings: &dyn Surroundings, call: Call<'_>) -> Result<Returned, Failure> {
        let interpreter =
            interpreter(surroundings).map_err(|why| Failure::plain(ToolError::ToolExecutionError, why))?;
        let mut env = environment::variables(surroundings);
        if call.bounds.reach != Reach::Machine {
            env.retain(|(name, _)| !matches!(name.as_str(), "TMPDIR" | "XDG_CACHE_HOME"));
            env.push(("TMPDIR".to_owned(), "/tmp".to_owned()));
        }
        env.retain(|(name, _)| !call.env.iter().any(|(own, _)| own == name));
        env.extend(call.env);
        let confined = confine::available(surroundings).is_ok();
        let mut line = json!({
            "code": call.code,
            "name": call.name,
            "mode": match call.contract {
                Contract::Auto => "auto",
                Contract::Transform => "transform",
                Contract::Hook(function) => function,
                Contract::HookScript => "hook",
            },
            "input": call.input,
            "context": call.context,
            "guarded": call.bounds.reach == Reach::Nothing && !confined,
            "seconds": call.timeout.as_secs() + 5,
            "scene": {
                "root": call.bounds.root,
                "plan": call.plan,
                "imports": true,
                "resources": call.resources,
            },
        })
        .to_string();
        line.push('\n');
        let setting = Setting { interpreter, bounds: call.bounds, env };
        let worker = match self.take(&setting) {
            Some(worker) => worker,
            None => Worker::start(surroundings, setting)
                .map_err(|why| Failure::plain(ToolError::ToolExecutionError, why))?,
        };
        let mut ends = EndOnDrop(Some(worker.ender.clone()));
        let talking = tokio::task::spawn_blocking(move || {
            let mut worker = worker;
            let said = worker.talk(&line);
            (worker, said)
        });
        let said = match tokio::time::timeout(call.timeout, talking).await {
            Err(_) => {
                let message = format!("it was ended after {} s", call.timeout.as_secs());
                return Err(Failure::plain(ToolError::TimeoutError, message));
            }
            Ok(Err(error)) => return Err(Failure::plain(ToolError::ToolExecutionError, error.to_string())),
            Ok(Ok((_, Err(why)))) => return Err(Failure::plain(ToolError::ToolExecutionError, why)),
            Ok(Ok((worker, Ok(said)))) => {
                ends.0 = None;
                self.put(worker);
                said
            }
        };
        match said.error {
            None => Ok(Returned { result: said.result, log: said.log }),
            Some(raised) => Err(Failure {
                error: ToolError::ToolExecutionError,
                message: format!("{}: {}", raised.kind, raised.message),
                traceback: raised.traceback,
                log: said.log,
            }),
        }
    }

    fn take(&self, setting: &Setting) -> Option<Worker> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().rposition(|worker| worker.setting == *setting)?;
        Some(idle.remove(at))
    }

    fn put(&self, worker: Worker) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(worker);
        let oldest = if idle.len() > IDLE { Some(idle.remove(0)) } else { None };
        drop(idle);
        drop(oldest);
    }
}
