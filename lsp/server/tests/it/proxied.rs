//! An editor in front of fake language servers, for the tests of the proxy.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents_domain::language_server::LanguageServerDefinition;
use agents_lsp_runtime::Runtime;
use agents_lsp_server::testing::{Builder, TestServer};
use agents_lsp_server::{EditorOptions, ProxyOptions, ProxyTiming, editor};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::desk::Desk;

/// Short where a test has to wait for it to pass, long where it must not pass.
pub const TIMING: ProxyTiming = ProxyTiming {
    start: Duration::from_secs(30),
    starting: Duration::from_millis(300),
    slow: Duration::from_millis(200),
    window: Duration::from_millis(20),
    backoff: Duration::from_millis(10),
    probe_interval: None,
    probe: Duration::from_millis(500),
    deaf: Duration::from_secs(30),
};

pub const LONG: Duration = Duration::from_secs(30);

/// A desk with servers that behave as their scripts say.
pub struct Proxied {
    pub desk: Desk,
    folder: TempDir,
    pub servers: Vec<LanguageServerDefinition>,
    pub timing: ProxyTiming,
    /// Starts the servers.
    pub runtime: Runtime,
}

impl Proxied {
    /// Servers for Python by name, in their order, over a repository with `a.py` and `b.py`.
    pub fn new(scripts: &[(&str, Value)]) -> Self {
        let files = [("a.py", "alpha = 1\nbad_beta = 2\n"), ("b.py", "gamma = 3\n")];
        let desk = Desk::new(&files, json!({}));
        let folder = tempfile::tempdir().unwrap();
        let mut proxied = Self { desk, folder, servers: Vec::new(), timing: TIMING, runtime: Runtime::new() };
        scripts.iter().for_each(|(name, script)| proxied.add(name, "python", script.clone()));
        proxied
    }

    /// One more server.
    pub fn add(&mut self, name: &str, language: &str, mut script: Value) {
        let path = |ending: &str| self.folder.path().join(format!("{name}.{ending}"));
        script["log"] = json!(path("log"));
        script["starts"] = json!(path("starts"));
        std::fs::write(path("json"), script.to_string()).unwrap();
        let definition = json!({
            "name": format!("local/{name}"), "languages": [language],
            "command": agents_fake_server::path(), "args": [path("json")],
        });
        self.servers.push(serde_json::from_value(definition).unwrap());
    }

    /// An initialised editor.
    pub fn editor(&self, capabilities: Value) -> TestServer {
        self.editor_with(TestServer::builder().options(json!({ "notifications": false })), capabilities).0
    }

    /// The same with what `initialize` was answered.
    pub fn editor_with(&self, builder: Builder, capabilities: Value) -> (TestServer, Value) {
        let proxy = ProxyOptions {
            servers: self.servers.clone(),
            launcher: Arc::new(self.runtime.clone()),
            timing: self.timing,
        };
        let options = EditorOptions { workers: None, proxy: Some(proxy), ..EditorOptions::default() };
        let builder = builder.deadline(LONG).folder(&self.desk.uri(""));
        let mut server = builder.start(editor(self.desk.engine.clone(), options));
        let result = server.initialize(capabilities);
        (server, result)
    }

    /// Opens a file as Python.
    pub fn open(&self, server: &mut TestServer, path: &str) -> String {
        let uri = self.desk.uri(path);
        server.open(&uri, "python", &self.desk.read(path));
        uri
    }

    /// What a server was told so far: messages of a method.
    pub fn told(&self, name: &str, method: &str) -> Vec<Value> {
        self.log(name).into_iter().filter(|message| message["method"] == method).collect()
    }

    /// Everything a server was told, in all its starts.
    pub fn log(&self, name: &str) -> Vec<Value> {
        let log: PathBuf = self.folder.path().join(format!("{name}.log"));
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.map(|mut line| line["in"].take()).filter(|message| !message.is_null()).collect()
    }

    /// Waits until a server was told so many messages of a method.
    #[track_caller]
    pub fn wait_told(&self, name: &str, method: &str, count: usize) -> Vec<Value> {
        let end = Instant::now() + LONG;
        loop {
            let told = self.told(name, method);
            if told.len() >= count {
                return told;
            }
            assert!(Instant::now() < end, "{name} was told {method} {} times", told.len());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Waits until a server got so many answers.
    #[track_caller]
    pub fn wait_answers(&self, name: &str, count: usize) -> Vec<Value> {
        let end = Instant::now() + LONG;
        loop {
            let answers: Vec<Value> =
                self.log(name).into_iter().filter(|message| message.get("method").is_none()).collect();
            if answers.len() >= count {
                return answers;
            }
            assert!(Instant::now() < end, "{name} got {answers:#?}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// A folder beside the servers' scripts.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How often a server was started.
    pub fn starts(&self, name: &str) -> usize {
        std::fs::read(self.folder.path().join(format!("{name}.starts"))).map_or(0, |bytes| bytes.len())
    }
}

/// A client that takes no registrations.
pub fn fixed() -> Value {
    json!({
        "textDocument": {
            "hover": { "contentFormat": ["markdown"] }, "completion": {}, "definition": {}, "references": {},
            "documentSymbol": {}, "formatting": {}, "rename": { "prepareSupport": true }, "signatureHelp": {},
            "semanticTokens": {}, "codeAction": { "codeActionLiteralSupport": { "codeActionKind": { "valueSet": [] } } },
            "publishDiagnostics": { "versionSupport": true },
        },
    })
}

/// A fault that answers a method with a result.
pub fn answer(method: &str, result: Value) -> Value {
    json!({ "on": method, "then": { "answer": result } })
}

/// The script of a server that has these capabilities and faults, and tells no diagnostics.
pub fn script(capabilities: Value, faults: Value) -> Value {
    json!({ "diagnostics": "none", "capabilities": capabilities, "faults": faults })
}

/// Parameters at a place.
pub fn at(uri: &str) -> Value {
    json!({
        "textDocument": { "uri": uri }, "position": { "line": 0, "character": 1 },
        "context": { "includeDeclaration": true },
    })
}
