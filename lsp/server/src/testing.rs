//! A client for tests: talks to a real front over pipes, and every message the server sends must be expected.

#![allow(clippy::expect_used, reason = "a test's client fails the test")]

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{App, ClientHandle, ExitStatus, Limits, SessionHandle, serve_with_limits};

/// How a [`TestServer`] is set up.
#[derive(Debug)]
pub struct Builder {
    limits: Limits,
    deadline: Duration,
    folders: Vec<String>,
    options: Value,
    reading: bool,
}

impl Builder {
    /// Other limits than the default ones.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long each wait may take; ten seconds unless said.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Adds a workspace folder, by URI.
    pub fn folder(mut self, uri: &str) -> Self {
        self.folders.push(uri.to_owned());
        self
    }

    /// `initializationOptions`.
    pub fn options(mut self, options: Value) -> Self {
        self.options = options;
        self
    }

    /// A client that never reads what the server sends.
    pub fn deaf(mut self) -> Self {
        self.reading = false;
        self
    }

    /// Starts the server.
    pub fn start<F>(self, app: F) -> TestServer
    where
        F: FnOnce(ClientHandle, SessionHandle) -> App + Send + 'static,
    {
        let (server_input, input) = io::pipe().expect("the system gives pipes");
        let (output, server_output) = io::pipe().expect("the system gives pipes");
        let (ended, status) = mpsc::channel();
        let limits = self.limits;
        std::thread::spawn(move || {
            let status = serve_with_limits(server_input, server_output, limits, app);
            let _ = ended.send(status.expect("the system gives threads"));
        });
        let (received, messages) = mpsc::channel();
        let unread = if self.reading {
            std::thread::spawn(move || {
                let mut output = BufReader::new(output);
                while let Some(message) = read_message(&mut output) {
                    if received.send(message).is_err() {
                        return;
                    }
                }
            });
            None
        } else {
            Some(output)
        };
        TestServer {
            setup: self,
            input: Some(input),
            messages,
            status,
            ended: None,
            _unread: unread,
            unclaimed: VecDeque::new(),
            next_id: 1,
            versions: HashMap::new(),
            allowed: Vec::new(),
            concluded: false,
        }
    }
}

/// Reads one message and is strict about it: exactly the header the protocol demands. `None` at the end.
fn read_message(output: &mut impl BufRead) -> Option<Value> {
    let mut header = String::new();
    if output.read_line(&mut header).expect("headers are text") == 0 {
        return None;
    }
    let length = header.strip_prefix("Content-Length: ").and_then(|rest| rest.strip_suffix("\r\n"));
    let length: usize =
        length.and_then(|length| length.parse().ok()).unwrap_or_else(|| panic!("no header: {header:?}"));
    let mut rest = vec![0; 2 + length];
    output.read_exact(&mut rest).expect("a whole message");
    assert_eq!(&rest[..2], b"\r\n");
    Some(serde_json::from_slice(&rest[2..]).expect("a body of JSON"))
}

/// A server under test and its client.
///
/// Messages that no call has waited for fail the test when the server is dropped or finished.
#[derive(Debug)]
pub struct TestServer {
    setup: Builder,
    input: Option<PipeWriter>,
    messages: mpsc::Receiver<Value>,
    status: mpsc::Receiver<ExitStatus>,
    ended: Option<ExitStatus>,
    /// Kept open by a client that does not read.
    _unread: Option<PipeReader>,
    unclaimed: VecDeque<Value>,
    next_id: i64,
    versions: HashMap<String, i32>,
    allowed: Vec<String>,
    concluded: bool,
}

impl TestServer {
    /// A server with the default setup.
    pub fn start<F>(app: F) -> Self
    where
        F: FnOnce(ClientHandle, SessionHandle) -> App + Send + 'static,
    {
        Self::builder().start(app)
    }

    /// A setup to change.
    pub fn builder() -> Builder {
        Builder {
            limits: Limits::default(),
            deadline: Duration::from_secs(10),
            folders: Vec::new(),
            options: Value::Null,
            reading: true,
        }
    }

    /// Sends `initialize` and `initialized`; returns the result of the first.
    pub fn initialize(&mut self, capabilities: Value) -> Value {
        let params = self.initialize_params(capabilities);
        let result = self.request("initialize", params);
        self.notify("initialized", json!({}));
        result
    }

    /// The parameters [`Self::initialize`] sends.
    pub fn initialize_params(&self, capabilities: Value) -> Value {
        let folders: Vec<Value> =
            self.setup.folders.iter().map(|uri| json!({ "uri": uri, "name": uri })).collect();
        json!({
            "processId": null,
            "clientInfo": { "name": "test" },
            "rootUri": null,
            "capabilities": capabilities,
            "workspaceFolders": folders,
            "initializationOptions": self.setup.options,
        })
    }

    /// Opens a document at version 1.
    pub fn open(&mut self, uri: &str, language: &str, text: &str) {
        self.versions.insert(uri.to_owned(), 1);
        let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Sends `contentChanges` (an array of them) as the next version of an open document.
    pub fn change(&mut self, uri: &str, changes: Value) {
        let version = self.versions.entry(uri.to_owned()).or_insert(1);
        *version += 1;
        let document = json!({ "uri": uri, "version": *version });
        self.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    /// Reports a document as saved.
    pub fn save(&mut self, uri: &str) {
        self.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } }));
    }

    /// Closes a document.
    pub fn close(&mut self, uri: &str) {
        self.versions.remove(uri);
        self.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    }

    /// Sends a request and returns its result; an error fails the test.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        self.response(id).unwrap_or_else(|(code, message)| panic!("{method} failed: {message} ({code})"))
    }

    /// Sends a request and returns its error's code and message; a result fails the test.
    #[track_caller]
    pub fn request_error(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.send_request(method, params);
        self.response(id).expect_err("the request is refused")
    }

    /// Sends a request and returns its id. Parameters of `null` are left out.
    pub fn send_request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(with_params(json!({ "jsonrpc": "2.0", "id": id, "method": method }), params));
        id
    }

    /// Waits for the answer to a request: its result, or its error's code and message.
    #[track_caller]
    pub fn response(&mut self, id: impl Into<Value>) -> Result<Value, (i64, String)> {
        let id = id.into();
        let answers = |message: &Value| message.get("method").is_none() && message.get("id") == Some(&id);
        let mut message = self.wait(&format!("the answer to request {id}"), self.setup.deadline, answers);
        match message.get("error") {
            Some(error) => {
                Err((error["code"].as_i64().unwrap_or(0), error["message"].as_str().unwrap_or("").to_owned()))
            }
            None => Ok(message["result"].take()),
        }
    }

    /// Sends a notification. Parameters of `null` are left out.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(with_params(json!({ "jsonrpc": "2.0", "method": method }), params));
    }

    /// Waits for a notification; returns its parameters.
    #[track_caller]
    pub fn expect_notification(&mut self, method: &str, deadline: Duration) -> Value {
        let wanted = |message: &Value| message["method"] == method && message.get("id").is_none();
        self.wait(&format!("notification {method}"), deadline, wanted)["params"].take()
    }

    /// Takes back notifications of `method` that came so far and were not waited for, however many there are.
    pub fn forget(&mut self, method: &str) {
        self.unclaimed.extend(self.messages.try_iter());
        self.unclaimed.retain(|message| message["method"] != method);
    }

    /// Waits for a request of the server; returns its id and parameters.
    #[track_caller]
    pub fn expect_request(&mut self, method: &str, deadline: Duration) -> (Value, Value) {
        let wanted = |message: &Value| message["method"] == method && message.get("id").is_some();
        let mut message = self.wait(&format!("request {method}"), deadline, wanted);
        (message["id"].take(), message["params"].take())
    }

    /// Lets messages of `method` come without being waited for, now and later.
    pub fn allow(&mut self, method: &str) {
        self.allowed.push(method.to_owned());
    }

    /// The next message, whatever it is: for tests of order.
    #[track_caller]
    pub fn next_message(&mut self) -> Value {
        self.wait("message", self.setup.deadline, |_| true)
    }

    /// Answers a request of the server.
    pub fn respond(&mut self, id: &Value, result: &Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// Answers a request of the server with an error.
    pub fn respond_error(&mut self, id: &Value, code: i64, message: &str) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }));
    }

    /// Sends a body with its header.
    pub fn send_body(&mut self, body: &[u8]) {
        self.send_bytes(&[format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat());
    }

    /// Sends bytes as they are. A server that no longer reads is no failure; what it answers is the test.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(bytes);
        }
    }

    /// Closes the stream to the server.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Waits for the server to end by itself.
    #[track_caller]
    pub fn status(&mut self) -> ExitStatus {
        if self.ended.is_none() {
            let status = self.status.recv_timeout(self.setup.deadline);
            self.ended = Some(status.expect("the server ends before the deadline"));
        }
        self.ended.unwrap_or(ExitStatus::Failure)
    }

    /// Ends the session as a client should; fails the test on messages nobody expected.
    #[track_caller]
    pub fn finish(mut self) {
        self.conclude();
    }

    #[track_caller]
    fn conclude(&mut self) {
        self.concluded = true;
        if self.ended.is_none() && self.input.is_some() {
            self.request("shutdown", Value::Null);
            self.notify("exit", Value::Null);
            assert_eq!(self.status(), ExitStatus::Success);
        }
        self.hang_up();
        if self.setup.reading {
            let end = Instant::now() + self.setup.deadline;
            while let Ok(message) = self.messages.recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                self.unclaimed.push_back(message);
            }
        }
        let allowed =
            |message: &Value| self.allowed.iter().any(|method| message["method"] == method.as_str());
        self.unclaimed.retain(|message| !allowed(message));
        assert!(self.unclaimed.is_empty(), "messages nobody expected: {:#?}", self.unclaimed);
    }

    fn send(&mut self, message: Value) {
        self.send_body(message.to_string().as_bytes());
    }

    #[track_caller]
    fn wait(&mut self, what: &str, deadline: Duration, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(found) = self.unclaimed.iter().position(&wanted) {
            return self.unclaimed.remove(found).unwrap_or_default();
        }
        let end = Instant::now() + deadline;
        loop {
            match self.messages.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(message) if wanted(&message) => return message,
                Ok(message) => self.unclaimed.push_back(message),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no {what} in time; there was {:#?}", self.unclaimed)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the server ended before {what}; there was {:#?}", self.unclaimed)
                }
            }
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.concluded {
            self.conclude();
        }
    }
}

fn with_params(mut message: Value, params: Value) -> Value {
    if !params.is_null() {
        message["params"] = params;
    }
    message
}
