//! The script of a fake language server: a JSON object, all of it optional. Unknown keys are refused.
//!
//! ```json
//! {
//!   "diagnostics": "push",
//!   "rules": [
//!     { "files": ".py", "match": "\\bbad_(\\w+)", "code": "F1", "severity": 2, "message": "bad $1",
//!       "data": { "id": 1 },
//!       "fixes": [ { "title": "Make `$1` good", "replace": "good_$1", "preferred": true } ] }
//!   ],
//!   "faults": [ { "on": "textDocument/didOpen", "nth": 3, "then": "crash" } ]
//! }
//! ```
//!
//! Diagnostics are the matches of the rules in the live text of open documents, so a fix that removes the match makes
//! its diagnostic vanish. Columns are in the encoding of the script. `$0`, `$1`... in titles, messages and new texts
//! are the groups of the match. Fixes are offered for diagnostics that are passed back as they were sent, `data`
//! included. A pull for a document that is not open answers with an empty list, as real servers do.

use serde::Deserialize;
use serde_json::Value;

/// The whole script.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// `serverInfo.name`.
    pub name: String,
    /// `serverInfo.version`.
    pub version: String,
    /// `positionEncoding` and what columns count; `null` says nothing and counts UTF-16.
    pub encoding: Option<String>,
    /// Laid over the capabilities that follow from the rest; `null` values remove.
    pub capabilities: Value,
    pub diagnostics: Mode,
    /// Pushed lists carry the document's version.
    pub versions: bool,
    /// Push empty lists, too.
    pub publish_clean: bool,
    /// Push a list that is the same as the last one, too.
    pub repeat: bool,
    /// Push an empty list at once and the real one so many milliseconds later.
    pub early_empty_ms: Option<u64>,
    /// Report work-done progress from the empty list to the real one, which may then come in one millisecond.
    pub progress: bool,
    /// Begin a progress at start that never ends.
    pub endless_progress: bool,
    /// Answer a pull with the same result id with `kind: unchanged`.
    pub unchanged: bool,
    /// Answer pulls through partial results; the result itself is `null`.
    pub partial: bool,
    /// Answer each pull with what is wrong in all other open documents, too, as related documents.
    pub related: bool,
    /// Ask to pull again (`workspace/diagnostic/refresh`) after the first answer, and know more from then on: rules
    /// with `late` apply only then.
    pub refresh: bool,
    pub rules: Vec<Rule>,
    pub faults: Vec<Fault>,
    /// Messages sent before the answer to `initialize`.
    pub before_initialize: Vec<Value>,
    /// Messages sent when `initialized` came.
    pub after_initialized: Vec<Value>,
    /// Printed to the output before anything else.
    pub stdout_noise: String,
    /// Send a `Content-Type` header, after the length.
    pub content_type: bool,
    /// Bytes printed to the error output at start.
    pub stderr_bytes: usize,
    /// Before each answer, answer a request nobody made.
    pub unknown_answers: bool,
    /// Write URIs with everything that may be escaped escaped.
    pub escape_uris: bool,
    /// Ignore `shutdown`, `exit` and the end of the input.
    pub stubborn: bool,
    /// Start a child that sleeps for an hour, and log its pid.
    pub child: bool,
    /// Listen on this port of the loopback interface instead of the standard streams.
    pub port: Option<u16>,
    /// File to which `{"start": {...}}` and each incoming `{"in": message}` are appended, a line each.
    pub log: Option<String>,
    /// Environment variables to log at start.
    pub log_env: Vec<String>,
    /// File that counts starts, a byte each; needed by faults with `starts`.
    pub starts: Option<String>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            name: "fake".into(),
            version: "1.0".into(),
            encoding: Some("utf-16".into()),
            capabilities: Value::Null,
            diagnostics: Mode::Pull,
            versions: false,
            publish_clean: true,
            repeat: true,
            early_empty_ms: None,
            progress: false,
            endless_progress: false,
            unchanged: false,
            partial: false,
            related: false,
            refresh: false,
            rules: Vec::new(),
            faults: Vec::new(),
            before_initialize: Vec::new(),
            after_initialized: Vec::new(),
            stdout_noise: String::new(),
            content_type: false,
            stderr_bytes: 0,
            unknown_answers: false,
            escape_uris: false,
            stubborn: false,
            child: false,
            port: None,
            log: None,
            log_env: Vec::new(),
            starts: None,
        }
    }
}

/// How diagnostics are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// `textDocument/diagnostic`, offered at `initialize`.
    Pull,
    /// The same, registered after `initialized`.
    PullDynamic,
    /// `textDocument/publishDiagnostics`.
    Push,
    /// Not at all.
    None,
}

/// What is wrong where.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// End of the URIs it applies to, such as `.py`; all when empty.
    #[serde(default)]
    pub files: String,
    /// Regular expression; each match is a diagnostic.
    #[serde(rename = "match")]
    pub pattern: String,
    #[serde(default)]
    pub code: Value,
    #[serde(default)]
    pub severity: Value,
    #[serde(default = "fake_source")]
    pub source: String,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub data: Value,
    /// See [`Script::refresh`].
    #[serde(default)]
    pub late: bool,
    #[serde(default)]
    pub fixes: Vec<Fix>,
}

fn fake_source() -> String {
    "Fake".into()
}

/// One way to fix a diagnostic. Without `replace`, `above` and operations it has no edit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fix {
    pub title: String,
    /// Left out when empty.
    #[serde(default = "quickfix")]
    pub kind: String,
    #[serde(default)]
    pub preferred: bool,
    /// New text of the match.
    #[serde(default)]
    pub replace: Option<String>,
    /// Text inserted at the start of the line of the match.
    #[serde(default)]
    pub above: Option<String>,
    /// Edits in another file.
    #[serde(default)]
    pub elsewhere: Option<Elsewhere>,
    /// Operations put into `documentChanges` as they are, with `$ROOT` for the URI of the workspace.
    #[serde(default)]
    pub operations: Vec<Value>,
    /// The edit comes only with `codeAction/resolve`.
    #[serde(default)]
    pub resolve: bool,
    /// A command of the server, beside the edit or alone.
    #[serde(default)]
    pub command: Option<String>,
    /// A bare `Command` instead of a code action.
    #[serde(default)]
    pub bare: bool,
    #[serde(default)]
    pub disabled: Option<String>,
    /// The new text is a snippet.
    #[serde(default)]
    pub snippet: bool,
    /// Use `documentChanges` with the document's version plus this; `changes` when left out.
    #[serde(default)]
    pub version_offset: Option<i64>,
    /// Offered only to requests that filter, or only to those that do not.
    #[serde(default)]
    pub when_filtered: Option<bool>,
}

fn quickfix() -> String {
    "quickfix".into()
}

/// Each match in another file, replaced.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// Relative to the workspace root.
    pub file: String,
    #[serde(rename = "match")]
    pub pattern: String,
    pub replace: String,
}

/// Something that goes wrong.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The method it happens on, or `start`.
    pub on: String,
    /// Only on the n-th message of the method, from 1; on each when left out.
    #[serde(default)]
    pub nth: Option<u32>,
    /// Only on messages whose URI ends in this.
    #[serde(default)]
    pub file: String,
    /// Only in the first so many starts.
    #[serde(default)]
    pub starts: Option<u64>,
    pub then: Action,
}

/// What happens.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Ends at once with status 101, after a line on the error output.
    Crash,
    /// Does not answer.
    Hang,
    /// Stops doing anything for good.
    Freeze,
    /// Computes for so many milliseconds and takes note of nothing meanwhile, then goes on.
    Compute(u64),
    /// Goes on after so many milliseconds; other messages meanwhile. The answer may follow as `answer`.
    Delay(u64),
    /// Answers with an error: code, message, data.
    Error(i64, String, #[serde(default)] Value),
    /// Answers with `null`.
    Null,
    /// Answers with this result, with `$ROOT` for the URI of the workspace.
    Answer(Value),
    /// Sends this message first.
    Send(Value),
    /// Answers with this result, twice.
    Twice(Value),
    /// Sends these bytes as a message first, whatever they are.
    Bytes(Vec<u8>),
    /// Answers only when the request is cancelled.
    WaitForCancel,
    /// Prints this to the output first, outside of any message.
    Noise(String),
    /// Prints so many bytes to the error output first.
    Flood(usize),
    /// Announces a message longer than anybody accepts.
    HugeLength,
}
