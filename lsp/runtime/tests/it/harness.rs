//! A workspace folder, a fake server with a script, and a look at what the server was told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents_domain::diagnostics::Diagnostic;
use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::language_servers::{
    FileDiagnostics, LanguageServers, LanguageWorkspace, ServerState, WorkspaceSpec,
};
use agents_lsp_runtime::{Runtime, Timing};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Short enough for tests, long enough for a loaded machine.
pub const TIMING: Timing = Timing {
    quiet: Duration::from_millis(60),
    probe: Duration::from_millis(1500),
    deaf: Duration::from_secs(60),
    probe_interval: None,
    shutdown: Duration::from_millis(400),
    backoff: Duration::from_millis(10),
};
pub const LONG: Duration = Duration::from_secs(30);

pub struct World {
    pub folder: TempDir,
    pub runtime: Runtime,
    pub definition: LanguageServerDefinition,
    pub request_timeout: Duration,
    pub start_timeout: Duration,
}

impl World {
    /// A workspace served by a fake server for Python with a script.
    pub fn new(script: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        let definition = fake(folder.path(), "fake", script);
        Self {
            runtime: Runtime::with_timing(TIMING),
            definition,
            request_timeout: LONG,
            start_timeout: LONG,
            folder,
        }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let file = self.root().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub fn define(&mut self, change: impl FnOnce(&mut LanguageServerDefinition)) {
        change(&mut self.definition);
    }

    pub async fn open(&self) -> Arc<dyn LanguageWorkspace> {
        self.open_with(vec![self.definition.clone()]).await
    }

    pub async fn open_with(&self, servers: Vec<LanguageServerDefinition>) -> Arc<dyn LanguageWorkspace> {
        let spec = WorkspaceSpec {
            root: self.root(),
            servers,
            request_timeout: self.request_timeout,
            start_timeout: self.start_timeout,
        };
        self.runtime.open(spec).await
    }

    /// All that the fake server logged so far.
    pub fn log(&self) -> Vec<Value> {
        log(self.folder.path(), "fake")
    }

    /// The messages the fake server got so far, of one method.
    pub fn got(&self, method: &str) -> Vec<Value> {
        self.log()
            .into_iter()
            .map(|entry| entry["in"].clone())
            .filter(|message| message["method"] == method)
            .collect()
    }

    /// The answers the fake server got so far, by id.
    pub fn answer_to(&self, id: &str) -> Value {
        let find =
            || self.log().into_iter().map(|entry| entry["in"].clone()).find(|message| message["id"] == id);
        wait_for(find)
    }

    /// The processes the fake server ran in so far.
    pub fn starts(&self) -> Vec<Value> {
        self.log().into_iter().map(|entry| entry["start"].clone()).filter(|start| !start.is_null()).collect()
    }
}

/// A definition of a fake server for Python.
pub fn fake(folder: &Path, name: &str, mut script: Value) -> LanguageServerDefinition {
    let at = |suffix: &str| folder.join(format!("{name}.{suffix}")).to_string_lossy().into_owned();
    script["log"] = json!(at("log"));
    script["starts"] = json!(at("starts"));
    std::fs::write(at("json"), script.to_string()).unwrap();
    serde_json::from_value(json!({
        "name": format!("local/{name}"),
        "languages": ["python"],
        "command": agents_fake_server::path(),
        "args": [at("json")],
    }))
    .unwrap()
}

pub fn log(folder: &Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(format!("{name}.log"))).unwrap_or_default();
    // The last line may be half written.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// A rule that finds `bad_NAME` and a fix that makes it `good_NAME`.
pub fn bad_rule() -> Value {
    json!({
        "match": "bad_(\\w+)", "code": "F1", "severity": 2, "message": "bad $1", "data": {"id": 1},
        "fixes": [{"title": "Make `$1` good", "replace": "good_$1", "preferred": true}],
    })
}

pub fn script(extra: Value) -> Value {
    let mut script = json!({"rules": [bad_rule()]});
    for (name, value) in extra.as_object().unwrap() {
        script[name] = value.clone();
    }
    script
}

/// What the only server said about one file.
pub async fn ask(workspace: &Arc<dyn LanguageWorkspace>, path: &str) -> FileDiagnostics {
    let answers = workspace.diagnostics(&[path.to_owned()]).await;
    assert_eq!((answers.len(), answers[0].0.as_str()), (1, path));
    assert_eq!(answers[0].1.len(), 1, "one server serves {path}");
    answers[0].1[0].clone()
}

/// The diagnostics of one file; the server must have answered.
pub async fn found(workspace: &Arc<dyn LanguageWorkspace>, path: &str) -> Vec<Diagnostic> {
    let answer = ask(workspace, path).await;
    answer.diagnostics.unwrap_or_else(|| panic!("{path} was not checked: {:?}", answer.problem))
}

/// Why one file has no diagnostics.
pub async fn problem(workspace: &Arc<dyn LanguageWorkspace>, path: &str) -> String {
    let answer = ask(workspace, path).await;
    assert_eq!(answer.diagnostics, None);
    answer.problem.unwrap()
}

pub fn messages(diagnostics: &[Diagnostic]) -> Vec<&str> {
    diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect()
}

pub fn failure(workspace: &Arc<dyn LanguageWorkspace>) -> String {
    match workspace.servers().remove(0).state {
        ServerState::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

/// Looks until something is there, at most for [`LONG`].
pub fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LONG, "what was waited for did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a process is gone or a zombie.
pub fn wait_until_gone(pid: &Value) {
    let stat = format!("/proc/{}/stat", pid.as_u64().unwrap());
    wait_for(|| match std::fs::read_to_string(&stat) {
        Ok(text) => text.contains(") Z ").then_some(()),
        Err(_) => Some(()),
    });
}

pub fn is_running(pid: &Value) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_u64().unwrap()));
    stat.is_ok_and(|text| !text.contains(") Z "))
}
