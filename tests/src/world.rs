//! A home of its own for each test, and what a person does in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::repo::clean_git;
use crate::{Envelope, Finished, PlanHandle, Repo, Running, agents, fake_server, wait_until};

/// How long a command may take; real language servers on a busy machine are slow.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Marks the processes of a world in their environment, so that they can be found again.
const MARK: &str = "AGENTS_E2E_WORLD";

/// A home with a data directory. What still runs when it is dropped is ended.
#[derive(Debug)]
pub struct World {
    dir: TempDir,
    data: PathBuf,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// An empty home.
    ///
    /// # Panics
    /// When no folder can be made.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("agents-e2e-").tempdir().expect("a folder can be made");
        let home = dir.path().join("home");
        std::fs::create_dir(&home).expect("a home can be made");
        let data = home.join(".cleveragents");
        Self { dir, data }
    }

    /// A folder of this world.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Another data directory, such as one on a small disk.
    pub fn set_data(&mut self, data: PathBuf) {
        self.data = data;
    }

    /// A new repository of that name.
    pub fn repo(&self, name: &str) -> Repo {
        Repo::init(&self.path(name))
    }

    /// A repository with these files committed.
    pub fn repo_with(&self, name: &str, files: &[(&str, &str)]) -> Repo {
        let repo = self.repo(name);
        for (path, text) in files {
            repo.write(path, text);
        }
        repo.commit("start");
        repo
    }

    // --- running commands ---------------------------------------------------------------------------------------------

    /// A command of a program with this world's environment and nothing of the tester's but the search path.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", std::env::temp_dir())
            .env("LANG", "C.UTF-8")
            .env("CLEVERAGENTS_DATA_DIR", &self.data)
            .env(MARK, self.dir.path())
            .current_dir(self.dir.path());
        clean_git(&mut command);
        command
    }

    /// `agents` with these arguments, answers in JSON.
    pub fn agents<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.command(agents());
        command.args(["--format", "json"]).args(args);
        command
    }

    /// Runs a command to its end, whatever it answers.
    pub fn call<S: AsRef<OsStr>>(&self, args: &[S]) -> Envelope {
        self.call_with(args, &[])
    }

    /// The same with more environment.
    pub fn call_with<S: AsRef<OsStr>>(&self, args: &[S], env: &[(&str, &str)]) -> Envelope {
        let mut command = self.agents(args);
        command.envs(env.iter().copied());
        let words: Vec<String> = args.iter().map(|arg| arg.as_ref().to_string_lossy().into_owned()).collect();
        Envelope::check(&words, &Running::start(&mut command).finish(DEADLINE))
    }

    /// Runs a command that must succeed.
    ///
    /// # Panics
    /// When it does not.
    pub fn ok<S: AsRef<OsStr>>(&self, args: &[S]) -> Envelope {
        let answer = self.call(args);
        assert!(answer.is_ok(), "{}\n{}", answer.text, answer.stderr);
        answer
    }

    /// Runs a command that must be refused.
    ///
    /// # Panics
    /// When it is not.
    pub fn refused<S: AsRef<OsStr>>(&self, args: &[S]) -> Envelope {
        let answer = self.call(args);
        assert_eq!((answer.status.as_str(), answer.exit_code), ("error", 1), "{}", answer.text);
        answer
    }

    /// Runs a command as a person reads it.
    pub fn plain<S: AsRef<OsStr>>(&self, args: &[S]) -> Finished {
        let mut command = self.command(agents());
        command.args(["--format", "plain"]).args(args);
        Running::start(&mut command).finish(DEADLINE)
    }

    /// Starts a command and does not wait for it.
    pub fn start<S: AsRef<OsStr>>(&self, args: &[S]) -> Running {
        Running::start(&mut self.agents(args))
    }

    // --- registering --------------------------------------------------------------------------------------------------

    /// Registers a repository as `local/<name>` and a project of the same name on it.
    pub fn register(&self, name: &str, repo: &Repo) {
        let full = format!("local/{name}");
        let path = repo.path().to_str().expect("the path is text");
        self.ok(&["resource", "add", "git-checkout", &full, "--path", path]);
        self.ok(&["project", "create", &full, "--resource", &full]);
    }

    /// Registers a language server; what the YAML file says is given as JSON, which is YAML.
    pub fn language_server(&self, definition: &Value) {
        let name = definition["name"].as_str().expect("a server has a name").replace('/', "-");
        let file = self.path(&format!("{name}.yaml"));
        std::fs::write(&file, definition.to_string()).expect("a file can be written");
        self.ok(&["lsp", "add", "--config", file.to_str().expect("the path is text")]);
    }

    /// Registers a real server by its program.
    pub fn real_server(&self, program: &str, args: &[&str], languages: &[&str]) {
        self.language_server(&json!({
            "name": format!("local/{program}"), "languages": languages,
            "command": crate::tool(program), "args": args,
        }));
    }

    /// Registers a fake server for Python that behaves as its script says.
    pub fn fake(&self, name: &str, script: &Value) {
        let file = self.path(&format!("{name}.script.json"));
        std::fs::write(&file, script.to_string()).expect("a file can be written");
        self.language_server(&json!({
            "name": format!("local/{name}"), "languages": ["python"], "command": fake_server(), "args": [file],
            // A server that always dies is given up at once.
            "health_check": { "max_restarts": 1 },
        }));
    }

    /// Registers `local/fix-diagnostics` on the built-in actor.
    pub fn fixer(&self) {
        let file = self.path("fix-diagnostics.yaml");
        let text = "\
name: local/fix-diagnostics
description: Fix what the language servers report
definition_of_done: The language servers report nothing that has an agreed fix
strategy_actor: builtin/fix-diagnostics
execution_actor: builtin/fix-diagnostics
arguments:
  - {name: paths, type: list}
  - {name: rules, type: list}
";
        std::fs::write(&file, text).expect("a file can be written");
        self.ok(&["action", "create", "--config", file.to_str().expect("the path is text")]);
    }

    /// Registers an action on the scripted actor, which plays its argument `script`. `more`: further lines of its file.
    pub fn scripted(&self, name: &str, more: &str) {
        let file = self.path(&format!("{}.yaml", name.replace('/', "-")));
        let text = format!(
            "name: {name}\ndescription: Play a script\ndefinition_of_done: It is played\n\
             strategy_actor: test/scripted\nexecution_actor: test/scripted\n\
             arguments:\n  - {{name: script, type: string}}\n{more}"
        );
        std::fs::write(&file, text).expect("a file can be written");
        self.ok(&["action", "create", "--config", file.to_str().expect("the path is text")]);
    }

    // --- planning -----------------------------------------------------------------------------------------------------

    /// Uses `local/fix-diagnostics` on a project and follows the plan until it pauses or ends.
    pub fn plan(&self, project: &str, profile: &str, more: &[&str]) -> PlanHandle<'_> {
        let project = format!("local/{project}");
        let mut args =
            vec!["plan", "use", "local/fix-diagnostics", &project, "--automation-profile", profile];
        args.extend(more);
        let answer = self.call(&args);
        let id = answer.data["plan_id"].as_str().unwrap_or_else(|| panic!("no plan: {}", answer.text));
        PlanHandle::new(self, id)
    }

    /// The only plan there is.
    ///
    /// # Panics
    /// When there is none, or several.
    pub fn only_plan(&self) -> PlanHandle<'_> {
        let list = self.ok(&["plan", "list"]);
        let plans = list.data["plans"].as_array().expect("plans are a list");
        assert_eq!(plans.len(), 1, "{}", list.text);
        PlanHandle::new(self, plans[0]["id"].as_str().expect("a plan has an id"))
    }

    // --- processes ----------------------------------------------------------------------------------------------------

    /// The living processes of this world: their ids and command lines.
    pub fn processes(&self) -> Vec<(Pid, String)> {
        let mark = format!("{MARK}={}", self.dir.path().display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
            if environment.split(|byte| *byte == 0).any(|line| line == mark.as_bytes()) {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                if !line.is_empty() {
                    found.push((Pid::from_raw(pid), line));
                }
            }
        }
        found
    }

    /// The workers of this world that live.
    pub fn workers(&self) -> Vec<Pid> {
        let mine = self.processes();
        mine.into_iter().filter(|(_, line)| line.contains("plan-worker")).map(|(pid, _)| pid).collect()
    }

    /// Nothing this world started goes on: no worker, no language server.
    ///
    /// # Panics
    /// When something still runs after a while.
    pub fn assert_quiet(&self) {
        let mut left = Vec::new();
        let quiet = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until("all processes end", Duration::from_secs(10), || {
                left = self.processes();
                left.is_empty().then_some(())
            });
        }));
        assert!(quiet.is_ok(), "still running: {left:#?}");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            let _ = kill(pid, Signal::SIGKILL);
        }
        // A read-only folder would keep the rest from being removed.
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(self.dir.path()).output();
    }
}
