//! A repository, a data directory, and the program.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

pub use agents_engine::testing::git;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take before a test fails.
pub const DEADLINE: Duration = Duration::from_secs(60);

pub struct World {
    pub dir: TempDir,
    /// Given to every process.
    pub env: BTreeMap<&'static str, String>,
}

/// What a process said.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl World {
    /// An empty data directory beside a repository with `a.txt` and `b.txt`.
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let world = Self { dir, env: BTreeMap::new() };
        let repo = world.repo();
        std::fs::create_dir(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        std::fs::write(repo.join("a.txt"), "one\ntwo\nthree\n").unwrap();
        std::fs::write(repo.join("b.txt"), "four\n").unwrap();
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-q", "-m", "start"]);
        world
    }

    /// As [`World::new`], with resource `local/repo`, project `local/app`, and action `local/act` that plays `script`.
    pub fn registered(script: &Value) -> Self {
        let world = Self::new();
        world.json(&["resource", "add", "git-checkout", "local/repo", "--path", "repo"]);
        world.json(&["project", "create", "local/app", "--resource", "local/repo"]);
        world.write("script.json", &script.to_string());
        world.write("act.yaml", ACTION);
        world.json(&["action", "create", "--config", "act.yaml"]);
        world
    }

    pub fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.repo().join(name)).unwrap()
    }

    /// The program with these arguments, in the world's directory, with nothing of the environment of the tests.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agents"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("USER", "tester")
            .env("LANG", "C.UTF-8")
            .env("CLEVERAGENTS_DATA_DIR", self.data())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .envs(&self.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Runs a command in a format.
    pub fn run_in(&self, format: &str, args: &[&str]) -> Ran {
        self.run(&[&["--format", format], args].concat())
    }

    /// Runs a command in JSON and checks the shape of its one document.
    pub fn document(&self, args: &[&str]) -> Value {
        let ran = self.run_in("json", args);
        document(&ran, args)
    }

    /// The document of a command that must succeed.
    pub fn json(&self, args: &[&str]) -> Value {
        let document = self.document(args);
        assert_eq!(document["exit_code"], 0, "{args:?}: {document:#}");
        document
    }

    /// The document of a command that must be refused.
    pub fn refused(&self, args: &[&str]) -> Value {
        let document = self.document(args);
        assert_eq!(
            (&document["status"], &document["exit_code"]),
            (&json!("error"), &json!(1)),
            "{args:?}: {document:#}"
        );
        document
    }

    /// Makes a plan that plays the world's script, and returns the document.
    pub fn make(&self, more: &[&str]) -> Value {
        let script =
            format!("script={}", std::fs::read_to_string(self.dir.path().join("script.json")).unwrap());
        self.document(&[&["plan", "use", "local/act", "local/app", "--arg", &script], more].concat())
    }

    /// As [`World::make`]; the plan's id.
    pub fn plan(&self, more: &[&str]) -> String {
        let made = self.make(more);
        made["data"]["plan_id"].as_str().unwrap_or_else(|| panic!("{made:#}")).to_owned()
    }

    /// `phase/state` and what is waited for.
    pub fn at(&self, plan: &str) -> String {
        let status = self.document(&["plan", "status", plan]);
        let data = &status["data"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let at = format!("{}/{}", text(&data["phase"]), text(&data["state"]));
        match data["awaiting"]["kind"].as_str() {
            Some(kind) => format!("{at}+{kind}"),
            None => at,
        }
    }

    /// Waits until the plan stands at a place.
    pub fn wait_at(&self, plan: &str, place: &str) {
        until(&format!("plan at {place}"), || self.at(plan) == place);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Workers that still run would write into a folder that is being removed.
        let id = self.data().display().to_string();
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let ours = String::from_utf8_lossy(&line);
            if ours.contains("plan-worker") && ours.contains(&id) {
                let pid = process.file_name().to_string_lossy().parse().unwrap_or(0);
                let _ = nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(pid),
                    nix::sys::signal::Signal::SIGKILL,
                );
            }
        }
    }
}

/// Checks the envelope of a document.
pub fn document(ran: &Ran, args: &[&str]) -> Value {
    let document: Value = serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|e| panic!("{args:?} is no document: {e}\n{}\n{}", ran.stdout, ran.stderr));
    let keys: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    let required = ["command", "status", "exit_code", "data", "timing", "messages"];
    assert!(required.iter().all(|key| keys.contains(key)), "{keys:?}");
    assert!(keys.iter().all(|key| required.contains(key) || ["error", "metadata"].contains(key)), "{keys:?}");
    assert_eq!(document["exit_code"].as_i64(), ran.code.map(i64::from), "{document:#}");
    assert!(document["data"].is_object());
    assert!(document.get("error").is_none() || document["status"] == "error");
    fits_its_schema(&document);
    document
}

/// Checks a document against what docs/reference publishes for its command.
fn fits_its_schema(document: &Value) {
    static SCHEMAS: LazyLock<BTreeMap<String, jsonschema::Validator>> = LazyLock::new(|| {
        let all = agents_cli::reference::schemas().into_iter();
        all.map(|one| (one.command, jsonschema::validator_for(&one.schema).unwrap())).collect()
    });
    let Some(schema) = document["command"].as_str().and_then(|command| SCHEMAS.get(command)) else { return };
    let wrong: Vec<String> =
        schema.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{document:#}");
}

/// Asks again and again until it is so.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < DEADLINE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An action whose actor plays a script.
pub const ACTION: &str = "\
name: local/act
description: Play a script
definition_of_done: It is played
strategy_actor: test/scripted
execution_actor: test/scripted
arguments:
  - name: script
    type: string
    required: true
";

pub fn done(headline: &str) -> Value {
    json!({ "done": { "headline": headline, "lines": [], "facts": null } })
}

pub fn decision(key: &str, kind: &str, parent: Option<&str>, confidence: f64) -> Value {
    json!({
        "request": "record_decision", "key": key, "decision_type": kind, "parent": parent,
        "question": format!("How about {key}?"), "chosen": 0,
        "alternatives": [{ "option": "Fix it", "description": "The best there is" }, { "option": "Leave alone" }],
        "confidence": confidence, "rationale": "because of this", "reasoning": null, "resources": [],
        "depends_on": [], "context": { "seen": ["a.txt"] },
    })
}

/// Replaces one line (0-based) of a file.
pub fn edit(call: &str, decision: &str, path: &str, line: u32, text: &str) -> Value {
    json!({
        "request": "tool", "call_id": call, "tool": "builtin/apply-edits", "decision": decision,
        "args": { "resource": "${resource}", "edits": [{ "op": "edit", "path": path, "edits": [{
            "range": { "start": { "line": line, "column": 0 }, "end": { "line": line + 1, "column": 0 } },
            "new_text": text,
        }] }] },
    })
}

/// One choice of this confidence, then one edit of `a.txt` under it.
pub fn choose_and_edit(confidence: f64) -> Value {
    json!({
        "strategize": [
            { "requests": [decision("strategy/x", "strategy_choice", None, confidence)] },
            { "outcome": done("decided") },
        ],
        "execute": [
            { "progress": { "label": "Editing", "done": 0, "total": 1 }, "requests": [
                decision("impl/x", "implementation_choice", Some("strategy/x"), 0.9),
                edit("1", "impl/x", "a.txt", 1, "TWO\n"),
                { "request": "checkpoint", "decision": "impl/x", "label": "after x" },
            ] },
            { "outcome": done("did it") },
        ],
    })
}

/// A script whose Execute fails for good.
pub fn failing() -> Value {
    json!({
        "strategize": [{ "outcome": done("decided") }],
        "execute": [{ "fail": {
            "message": "the tool broke", "category": "tool", "transient": false, "hints": ["buy a new one"],
        } }],
    })
}
