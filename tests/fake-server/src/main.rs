//! A language server that behaves as its script says: `agents-fake-server SCRIPT.json`. See `script.rs`.
#![allow(missing_docs, reason = "a test program; its script is documented in script.rs")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a script that is wrong must be loud"
)]

mod analysis;
mod script;

use std::collections::{BTreeMap, HashMap};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, exit};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use analysis::{Analysis, decode};
use script::{Action, Mode, Script};
use serde_json::{Value, json};

fn main() {
    let argument = std::env::args().nth(1).unwrap_or_default();
    if argument == "--sleep" {
        thread::sleep(Duration::from_secs(3600));
        return;
    }
    let text =
        std::fs::read_to_string(&argument).unwrap_or_else(|error| fail(&format!("{argument}: {error}")));
    let script: Script =
        serde_json::from_str(&text).unwrap_or_else(|error| fail(&format!("{argument}: {error}")));
    let (input, output): (Box<dyn Read>, Box<dyn Write + Send>) = match script.port {
        None => (Box::new(std::io::stdin()), Box::new(std::io::stdout())),
        Some(port) => {
            let (stream, _) =
                TcpListener::bind(("127.0.0.1", port)).expect("the port is free").accept().unwrap();
            (Box::new(stream.try_clone().unwrap()), Box::new(stream))
        }
    };
    let analysis = Analysis::new(&script);
    Server::new(script, analysis, output).run(BufReader::new(input));
}

fn fail(message: &str) -> ! {
    eprintln!("agents-fake-server: {message}");
    exit(2)
}

/// The stream to the client, shared with delayed answers.
#[derive(Clone)]
struct Output {
    stream: Arc<Mutex<Box<dyn Write + Send>>>,
    content_type: bool,
}

impl Output {
    fn raw(&self, bytes: &[u8]) {
        let mut stream = self.stream.lock().unwrap();
        if stream.write_all(bytes).and_then(|()| stream.flush()).is_err() {
            exit(1);
        }
    }

    fn send(&self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let body = message.to_string();
        let kind = if self.content_type {
            "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"
        } else {
            ""
        };
        self.raw(format!("Content-Length: {}\r\n{kind}\r\n{body}", body.len()).as_bytes());
    }
}

struct Server {
    script: Script,
    analysis: Analysis,
    output: Output,
    /// Which start this is, from 1.
    start: u64,
    counts: HashMap<String, u32>,
    /// Requests to be answered when cancelled, with their answers.
    cancellable: HashMap<String, Value>,
    published: HashMap<String, Vec<Value>>,
    open: BTreeMap<String, (i64, String)>,
    refreshed: bool,
}

impl Server {
    fn new(script: Script, analysis: Analysis, output: Box<dyn Write + Send>) -> Self {
        let output = Output { stream: Arc::new(Mutex::new(output)), content_type: script.content_type };
        Self {
            output,
            analysis,
            start: count_start(&script),
            counts: HashMap::new(),
            cancellable: HashMap::new(),
            published: HashMap::new(),
            open: BTreeMap::new(),
            refreshed: false,
            script,
        }
    }

    fn run(mut self, mut input: BufReader<Box<dyn Read>>) {
        let child = self.script.child.then(|| {
            let own = std::env::current_exe().unwrap();
            Command::new(own).arg("--sleep").spawn().unwrap().id()
        });
        let env: BTreeMap<_, _> =
            self.script.log_env.iter().map(|name| (name.clone(), std::env::var(name).ok())).collect();
        self.log(&json!({"start": {
            "pid": std::process::id(), "child": child, "args": std::env::args().skip(1).collect::<Vec<_>>(),
            "cwd": std::env::current_dir().unwrap(), "env": env,
        }}));
        if !self.script.stdout_noise.is_empty() {
            self.output.raw(self.script.stdout_noise.as_bytes());
        }
        flood(self.script.stderr_bytes);
        self.faults(&json!({"method": "start"}));
        while let Some(message) = read(&mut input) {
            self.log(&json!({ "in": message }));
            self.take(&message);
        }
        if self.script.stubborn {
            sleep_forever();
        }
    }

    fn take(&mut self, message: &Value) {
        let Some(method) = message["method"].as_str() else { return };
        match self.faults(message) {
            Fate::GoOn => self.handle(message),
            Fate::Answered => {}
            Fate::Delayed(time, told) => {
                // Only answers can be late; the state is that of the question.
                let Some(id) = message.get("id").cloned() else { return thread::sleep(time) };
                let answer = told.unwrap_or_else(|| self.answer(method, &message["params"]));
                let output = self.output.clone();
                thread::spawn(move || {
                    thread::sleep(time);
                    output.send(reply(&id, answer));
                });
            }
        }
    }

    /// Carries out the faults of a message.
    fn faults(&mut self, message: &Value) -> Fate {
        let method = message["method"].as_str().unwrap_or_default();
        let uri = message["params"]["textDocument"]["uri"].as_str().unwrap_or_default();
        let uri = decode(uri);
        let count = self.counts.entry(method.to_owned()).or_default();
        *count += 1;
        let (count, start) = (*count, self.start);
        let applies = |fault: &&script::Fault| {
            fault.on == method
                && fault.nth.is_none_or(|nth| nth == count)
                && fault.starts.is_none_or(|starts| start <= starts)
                && uri.ends_with(&fault.file)
        };
        let actions: Vec<Action> =
            self.script.faults.iter().filter(applies).map(|fault| fault.then.clone()).collect();
        let id = message.get("id").cloned().unwrap_or_default();
        let told = actions.iter().find_map(|action| match action {
            Action::Answer(result) => Some(result.clone()),
            _ => None,
        });
        for action in actions {
            match action {
                Action::Crash => {
                    eprintln!("fake server: crashing on {method} {uri}");
                    exit(101);
                }
                Action::Hang => return Fate::Answered,
                Action::Freeze => sleep_forever(),
                Action::Compute(milliseconds) => {
                    let until = Instant::now() + Duration::from_millis(milliseconds);
                    while Instant::now() < until {
                        std::hint::spin_loop();
                    }
                }
                Action::Delay(milliseconds) => {
                    return Fate::Delayed(Duration::from_millis(milliseconds), told);
                }
                Action::Error(code, text, data) => {
                    let error = json!({"code": code, "message": text, "data": data});
                    self.output.send(json!({"id": id, "error": error}));
                    return Fate::Answered;
                }
                Action::Null => {
                    self.output.send(reply(&id, Value::Null));
                    return Fate::Answered;
                }
                Action::Answer(result) => {
                    let root = analysis::encode(&self.analysis.root, false);
                    let result = result.to_string().replace("$ROOT", &root);
                    self.output.send(reply(&id, serde_json::from_str(&result).expect("an answer is JSON")));
                    return Fate::Answered;
                }
                Action::Twice(result) => {
                    self.output.send(reply(&id, result.clone()));
                    self.output.send(reply(&id, result));
                    return Fate::Answered;
                }
                Action::Bytes(bytes) => {
                    self.output.raw(format!("Content-Length: {}\r\n\r\n", bytes.len()).as_bytes());
                    self.output.raw(&bytes);
                }
                Action::Send(message) => self.output.send(message),
                Action::WaitForCancel => {
                    let answer = self.answer(method, &message["params"]);
                    self.cancellable.insert(id.to_string(), reply(&id, answer));
                    return Fate::Answered;
                }
                Action::Noise(text) => self.output.raw(text.as_bytes()),
                Action::Flood(bytes) => flood(bytes),
                Action::HugeLength => self.output.raw(b"Content-Length: 99999999999\r\n\r\n"),
            }
        }
        Fate::GoOn
    }

    fn handle(&mut self, message: &Value) {
        let (method, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
        if let Some(id) = message.get("id") {
            if method == "initialize" {
                self.script.before_initialize.iter().for_each(|message| self.output.send(message.clone()));
            }
            if method == "shutdown" && self.script.stubborn {
                return;
            }
            if self.script.unknown_answers {
                self.output.send(json!({"id": 987_654, "result": null}));
                self.output.send(json!({"id": "nobody", "error": {"code": 1, "message": "unasked"}}));
            }
            if self.is_known(method) {
                let answer = self.partially(method, params);
                self.output.send(reply(id, answer));
                self.ask_for_refresh(method);
            } else {
                let error = json!({"code": -32601, "message": format!("{method}: not known")});
                self.output.send(json!({"id": id, "error": error}));
            }
            return;
        }
        let document = &params["textDocument"];
        let uri = decode(document["uri"].as_str().unwrap_or_default());
        let version = document["version"].as_i64().unwrap_or_default();
        match method {
            "initialized" => self.initialized(),
            "textDocument/didOpen" => self.show(&uri, version, document["text"].as_str()),
            "textDocument/didChange" => {
                let last = params["contentChanges"].as_array().and_then(|changes| changes.last());
                self.show(&uri, version, last.and_then(|change| change["text"].as_str()));
            }
            "textDocument/didClose" => {
                self.open.remove(&uri);
                self.published.remove(&uri);
                if self.script.diagnostics == Mode::Push {
                    self.output.send(self.publication(&uri, None, Vec::new()));
                }
            }
            "$/cancelRequest" => {
                if let Some(answer) = self.cancellable.remove(&params["id"].to_string()) {
                    self.output.send(answer);
                }
            }
            "exit" if !self.script.stubborn => exit(0),
            _ => {}
        }
    }

    fn is_known(&self, method: &str) -> bool {
        matches!(method, "initialize" | "shutdown" | "textDocument/codeAction" | "codeAction/resolve")
            || method == "textDocument/diagnostic"
                && matches!(self.script.diagnostics, Mode::Pull | Mode::PullDynamic)
    }

    fn initialized(&self) {
        if self.script.diagnostics == Mode::PullDynamic {
            self.output.send(json!({"id": "registration", "method": "client/registerCapability", "params": {
                "registrations": [{"id": "pull", "method": "textDocument/diagnostic", "registerOptions": {
                    "documentSelector": null, "identifier": "fake", "interFileDependencies": false,
                    "workspaceDiagnostics": false,
                }}],
            }}));
        }
        if self.script.endless_progress {
            self.output.send(progress("endless", &json!({"kind": "begin", "title": "Never ending"})));
        }
        self.script.after_initialized.iter().for_each(|message| self.output.send(message.clone()));
    }

    fn answer(&mut self, method: &str, params: &Value) -> Value {
        match method {
            "initialize" => {
                self.analysis.root = params["rootUri"].as_str().map(decode).unwrap_or_default();
                self.initialize_result()
            }
            "textDocument/diagnostic" => self.report(params),
            "textDocument/codeAction" => self.analysis.actions(params, &self.open, &self.script.rules),
            "codeAction/resolve" => self.analysis.resolve(params, &self.open, &self.script.rules),
            _ => Value::Null,
        }
    }

    fn partially(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        let token = &params["partialResultToken"];
        if !self.script.partial || token.is_null() || method != "textDocument/diagnostic" {
            return answer;
        }
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        for item in items {
            self.output.send(json!({"method": "$/progress", "params": {
                "token": token, "value": {"kind": "full", "items": [item]},
            }}));
        }
        Value::Null
    }

    fn initialize_result(&self) -> Value {
        let mut capabilities = json!({
            "textDocumentSync": {"openClose": true, "change": 1},
            "codeActionProvider": {"resolveProvider": true},
        });
        if let Some(encoding) = &self.script.encoding {
            capabilities["positionEncoding"] = json!(encoding);
        }
        if self.script.diagnostics == Mode::Pull {
            capabilities["diagnosticProvider"] =
                json!({"interFileDependencies": false, "workspaceDiagnostics": false});
        }
        for (name, value) in self.script.capabilities.as_object().into_iter().flatten() {
            capabilities[name] = value.clone();
        }
        json!({
            "capabilities": capabilities,
            "serverInfo": {"name": self.script.name, "version": self.script.version},
        })
    }

    fn items(&self, uri: &str) -> Vec<Value> {
        let Some((_, text)) = self.open.get(uri) else { return Vec::new() };
        self.analysis.diagnostics(uri, text, &self.script.rules, self.refreshed)
    }

    fn report(&self, params: &Value) -> Value {
        let uri = decode(params["textDocument"]["uri"].as_str().unwrap_or_default());
        let items = self.items(&uri);
        let id = format!("{:x}", analysis::hash(&items));
        if self.script.unchanged && params["previousResultId"] == json!(id) {
            return json!({"kind": "unchanged", "resultId": id});
        }
        let mut report = json!({"kind": "full", "items": items});
        if self.script.unchanged {
            report["resultId"] = json!(id);
        }
        if self.script.related {
            let others = self.open.keys().filter(|other| **other != uri);
            report["relatedDocuments"] = others
                .map(|other| (self.uri(other), json!({"kind": "full", "items": self.items(other)})))
                .collect::<serde_json::Map<_, _>>()
                .into();
        }
        report
    }

    fn ask_for_refresh(&mut self, method: &str) {
        if self.script.refresh && !self.refreshed && method == "textDocument/diagnostic" {
            self.refreshed = true;
            self.output.send(json!({"id": "refresh", "method": "workspace/diagnostic/refresh"}));
        }
    }

    fn show(&mut self, uri: &str, version: i64, text: Option<&str>) {
        self.open.insert(uri.to_owned(), (version, text.unwrap_or_default().to_owned()));
        if self.script.diagnostics == Mode::Push {
            self.publish(uri, version);
        }
    }

    fn publish(&mut self, uri: &str, version: i64) {
        let items = self.items(uri);
        let same = self.published.insert(uri.to_owned(), items.clone()).is_some_and(|last| last == items);
        if (same && !self.script.repeat) || (items.is_empty() && !self.script.publish_clean) {
            return;
        }
        let publication = self.publication(uri, Some(version), items);
        let Some(milliseconds) = self.script.early_empty_ms else { return self.output.send(publication) };
        let (output, report) = (self.output.clone(), self.script.progress);
        let token = format!("progress of {uri}");
        if report {
            output.send(
                json!({"id": token, "method": "window/workDoneProgress/create", "params": {"token": token}}),
            );
            output.send(progress(&token, &json!({"kind": "begin", "title": "Analysing"})));
        }
        output.send(self.publication(uri, Some(version), Vec::new()));
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(milliseconds));
            output.send(publication);
            if report {
                output.send(progress(&token, &json!({"kind": "end"})));
            }
        });
    }

    fn publication(&self, uri: &str, version: Option<i64>, items: Vec<Value>) -> Value {
        let mut params = json!({"uri": self.uri(uri), "diagnostics": items});
        if let Some(version) = version.filter(|_| self.script.versions) {
            params["version"] = json!(version);
        }
        json!({"method": "textDocument/publishDiagnostics", "params": params})
    }

    fn uri(&self, uri: &str) -> String {
        analysis::encode(uri, self.script.escape_uris)
    }

    fn log(&self, entry: &Value) {
        let Some(path) = &self.script.log else { return };
        let mut file =
            OpenOptions::new().create(true).append(true).open(path).expect("the log can be written");
        file.write_all(format!("{entry}\n").as_bytes()).expect("the log can be written");
    }
}

enum Fate {
    GoOn,
    Answered,
    /// With the answer, where the script has one.
    Delayed(Duration, Option<Value>),
}

fn reply(id: &Value, result: Value) -> Value {
    json!({ "id": id, "result": result })
}

fn progress(token: &str, value: &Value) -> Value {
    json!({"method": "$/progress", "params": {"token": token, "value": value}})
}

fn sleep_forever() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

fn flood(bytes: usize) {
    let line = [b'e'; 100];
    let mut stderr = std::io::stderr().lock();
    for _ in 0..bytes / line.len() {
        let _ = stderr.write_all(&line).and_then(|()| stderr.write_all(b"\n"));
    }
}

fn count_start(script: &Script) -> u64 {
    let Some(path) = &script.starts else { return 1 };
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("starts can be counted");
    file.write_all(b".").expect("starts can be counted");
    file.metadata().map_or(1, |meta| meta.len())
}

fn read(input: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(digits) = line.strip_prefix("Content-Length: ") {
            length = digits.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("the client sends JSON"))
}
