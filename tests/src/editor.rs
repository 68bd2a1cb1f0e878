//! A small client of `agents lsp serve`, for what the editors' own tests do not measure.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use serde_json::{Value, json};

/// How long an answer may take; real servers on a busy machine need long to start.
const ANSWER: Duration = Duration::from_secs(120);

/// A server and its client. Requests of the server that need an answer get an empty one.
#[derive(Debug)]
pub struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<(Instant, Value)>,
    /// Notifications and requests of the server that nobody has waited for, oldest first.
    pub unclaimed: VecDeque<(Instant, Value)>,
    next: i64,
}

impl Editor {
    /// Starts a server.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let input = child.stdin.take();
        let output = child.stdout.take().expect("it is piped");
        let (tell, messages) = mpsc::channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read(&mut output) {
                if tell.send((Instant::now(), message)).is_err() {
                    return;
                }
            }
        });
        Self { child, input, messages, unclaimed: VecDeque::new(), next: 1 }
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Sends `initialize` for a folder and `initialized`; the result of the first.
    pub fn initialize(&mut self, folder: &std::path::Path, capabilities: &Value) -> Value {
        let uri = format!("file://{}", folder.display());
        let result = self.request(
            "initialize",
            &json!({
                "processId": null, "rootUri": uri, "capabilities": capabilities,
                "workspaceFolders": [{ "uri": uri, "name": "folder" }],
            }),
        );
        self.notify("initialized", &json!({}));
        result
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a message as it is.
    ///
    /// # Panics
    /// When the server does not take it.
    pub fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let input = self.input.as_mut().expect("the server takes input");
        write!(input, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("the server takes input");
        input.flush().expect("the server takes input");
    }

    /// Sends a request and waits for its result.
    ///
    /// # Panics
    /// When the answer is an error, or there is none in time.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request and waits for its answer, be it an error.
    ///
    /// # Panics
    /// When there is none in time.
    pub fn answer(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let deadline = Instant::now() + ANSWER;
        loop {
            let (at, message) = self.receive(deadline).unwrap_or_else(|| panic!("{method}: no answer"));
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
            self.unclaimed.push_back((at, message));
        }
    }

    /// Waits for a message of the server that is no answer: when it came, and the message.
    ///
    /// # Panics
    /// When none comes in time.
    pub fn wait_for(
        &mut self,
        what: &str,
        deadline: Duration,
        fits: impl Fn(&Value) -> bool,
    ) -> (Instant, Value) {
        if let Some(at) = self.unclaimed.iter().position(|(_, message)| fits(message)) {
            return self.unclaimed.remove(at).expect("it is there");
        }
        let end = Instant::now() + deadline;
        loop {
            let (at, message) =
                self.receive(end).unwrap_or_else(|| panic!("{what}: not within {deadline:?}"));
            if fits(&message) {
                return (at, message);
            }
            self.unclaimed.push_back((at, message));
        }
    }

    fn receive(&mut self, deadline: Instant) -> Option<(Instant, Value)> {
        let left = deadline.saturating_duration_since(Instant::now());
        let (at, message) = self.messages.recv_timeout(left).ok()?;
        if message.get("method").is_some()
            && let Some(id) = message.get("id")
        {
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": null });
            self.send(&answer);
        }
        Some((at, message))
    }

    /// Opens a document.
    pub fn open(&mut self, uri: &str, language: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        self.notify("textDocument/didOpen", &json!({ "textDocument": document }));
    }

    /// Says goodbye as the protocol wants it; the exit code.
    ///
    /// # Panics
    /// When the server does not end.
    pub fn shutdown(mut self) -> Option<i32> {
        self.request("shutdown", &Value::Null);
        self.notify("exit", &Value::Null);
        drop(self.input.take());
        let child = &mut self.child;
        crate::wait_until("lsp serve ends", Duration::from_secs(10), || child.try_wait().ok().flatten())
            .code()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(digits) = line.strip_prefix("Content-Length: ") {
            length = digits.parse().ok();
        }
    }
    let mut body = vec![0; length?];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
