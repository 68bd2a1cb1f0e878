//! Everything a run has produced so far, and the envelope that programs get of it.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use serde_json::{Map, Value};

use super::element::{Element, Status};
use super::error::AppError;
use super::layout;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunStatus {
    /// It did what it should.
    #[default]
    Ok,
    /// It failed or was refused.
    Error,
    /// A person stopped it.
    Cancelled,
}

impl RunStatus {
    /// The word in the envelope.
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Ok => "ok",
            RunStatus::Error => "error",
            RunStatus::Cancelled => "cancelled",
        }
    }
}

/// An element with its place in the output.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// The element as it is now.
    pub element: Element,
    /// Where its JSON goes in `data`; none for what only people need.
    pub key: Option<String>,
    /// Whether it may still change.
    pub open: bool,
    /// When it was made, since the session began.
    pub created: Duration,
}

/// The whole `data` of a document.
#[derive(Debug, Clone)]
pub enum Whole {
    /// As a value.
    Value(Value),
    /// As the engine returned it: for answers so large that values of all their parts would take longer to make than to
    /// print.
    Answer(Arc<dyn Answer>),
}

/// Bytes of a large answer that are written at once.
const CHUNK: usize = 1 << 16;

/// What an operation returned, printed when the time comes.
pub trait Answer: Send + Sync {
    /// Prints it as pretty JSON at the first level of indentation.
    ///
    /// # Errors
    /// When it cannot be written, or is no JSON.
    fn print(&self, to: &mut dyn Write) -> serde_json::Result<()>;

    /// It as a value; nothing when it is no JSON.
    fn value(&self) -> Value;
}

impl<T: Serialize + Send + Sync> Answer for T {
    fn print(&self, to: &mut dyn Write) -> serde_json::Result<()> {
        let mut formatter = PrettyFormatter::new();
        // Opens the object around it, so that its lines are indented as they must be.
        formatter.begin_object(&mut io::sink()).map_err(serde_json::Error::io)?;
        // Collects the many small pieces before they meet a writer that is not known here.
        let mut pieces = BufWriter::with_capacity(CHUNK, to);
        self.serialize(&mut Serializer::with_formatter(&mut pieces, formatter))?;
        pieces.flush().map_err(serde_json::Error::io)
    }

    fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl fmt::Debug for dyn Answer + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

/// Everything a run has produced so far.
#[derive(Debug, Clone)]
pub struct Document {
    /// Command path without arguments, such as `plan use`.
    pub command: String,
    /// ULID of the session.
    pub session_id: String,
    /// When the session began.
    pub started: jiff::Timestamp,
    /// Time since then.
    pub elapsed: Duration,
    /// The elements in the order in which they were declared.
    pub slots: Vec<Slot>,
    /// How it ended; meaningless before.
    pub status: RunStatus,
    /// The exit code of the process.
    pub exit_code: u8,
    /// Why it failed.
    pub error: Option<AppError>,
    /// What the command says about the run itself.
    pub metadata: Map<String, Value>,
    /// `data` as a whole, if the command has it at hand.
    pub base: Option<Whole>,
    /// Values at dotted paths of `data` that no element shows.
    pub extra: Vec<(String, Value)>,
}

impl Document {
    /// The status lines, in order.
    pub fn statuses(&self) -> impl Iterator<Item = &Status> {
        self.slots.iter().filter_map(|slot| match &slot.element {
            Element::Status(status) => Some(status),
            _ => None,
        })
    }

    /// The `data` object, or the list of a command that answers with one. A whole value ([`Document::base`]) stands in for what the elements would add.
    pub fn data(&self) -> Cow<'_, Value> {
        let base = match &self.base {
            None => None,
            Some(Whole::Value(value)) => Some(Cow::Borrowed(value)),
            Some(Whole::Answer(answer)) => Some(Cow::Owned(answer.value())),
        };
        let mut root = match base {
            None => {
                let mut root = Map::new();
                for slot in &self.slots {
                    if let (Some(key), Some(value)) = (&slot.key, slot.element.to_json()) {
                        put(&mut root, key, value);
                    }
                }
                root
            }
            Some(whole) if self.extra.is_empty() && (whole.is_object() || whole.is_array()) => return whole,
            Some(whole) => match whole.into_owned() {
                Value::Object(fields) => fields,
                Value::Null => Map::new(),
                other => Map::from_iter([("result".to_owned(), other)]),
            },
        };
        for (path, value) in &self.extra {
            put(&mut root, path, value.clone());
        }
        Cow::Owned(Value::Object(root))
    }

    /// The one document of a run for programs, keys in their fixed order.
    pub fn envelope(&self) -> Envelope<'_> {
        Envelope {
            command: &self.command,
            status: self.status.name(),
            exit_code: self.exit_code,
            data: match &self.base {
                Some(Whole::Answer(answer)) if self.extra.is_empty() => Data::Answer(answer.as_ref()),
                _ => Data::Value(self.data()),
            },
            error: self.error.as_ref().filter(|_| self.status == RunStatus::Error).map(AppError::to_json),
            timing: Timing {
                started: self.started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                duration_ms: self.elapsed.as_millis() as u64,
            },
            messages: self
                .statuses()
                .map(|status| Message {
                    level: status.level.name(),
                    text: layout::ascii(&status.text),
                    detail: status.detail.as_deref(),
                })
                .collect(),
            metadata: &self.metadata,
        }
    }
}

/// What programs get of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Envelope<'a> {
    command: &'a str,
    status: &'static str,
    exit_code: u8,
    data: Data<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    timing: Timing,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: &'a Map<String, Value>,
}

#[derive(Debug, Clone)]
enum Data<'a> {
    Value(Cow<'a, Value>),
    Answer(&'a dyn Answer),
}

impl Serialize for Data<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Data::Value(value) => value.serialize(serializer),
            Data::Answer(answer) => answer.value().serialize(serializer),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
struct Timing {
    started: String,
    duration_ms: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Message<'a> {
    level: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

/// Sets a dotted path. Objects on the way are made; two objects at one place are merged; other values are replaced.
fn put(root: &mut Map<String, Value>, path: &str, value: Value) {
    let mut here = root;
    let mut rest = path;
    while let Some((head, tail)) = rest.split_once('.') {
        let next = here.entry(head).or_insert_with(|| Value::Object(Map::new()));
        if !next.is_object() {
            *next = Value::Object(Map::new());
        }
        let Value::Object(fields) = next else { return };
        here = fields;
        rest = tail;
    }
    if let (Some(Value::Object(old)), Value::Object(new)) = (here.get_mut(rest), &value) {
        old.extend(new.clone());
    } else {
        here.insert(rest.to_owned(), value);
    }
}

/// As JSON: two spaces, UTF-8, a line break at the end. Control characters of the upper half and those that reorder text
/// are escaped, so that showing a document can never drive a terminal.
///
/// # Errors
/// When a key is no text, which no key of a JSON value is.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<String> {
    let mut printed = serde_json::to_string_pretty(value)?;
    printed.push('\n');
    if printed.bytes().all(|b| b < 0x7f) {
        return Ok(printed);
    }
    Ok(escaped(&printed))
}

/// Prints a document as [`to_json`] does; a large answer goes to the writer as it is printed.
///
/// # Errors
/// When it cannot be written.
pub fn write_json(envelope: &Envelope<'_>, to: &mut dyn Write) -> io::Result<()> {
    let Data::Answer(answer) = &envelope.data else {
        return to.write_all(to_json(envelope)?.as_bytes());
    };
    /// Where the answer goes. Line breaks in texts are escaped, so nothing else looks like it.
    const PLACE: &str = "\n  \"data\": null";
    let around = to_json(&Envelope { data: Data::Value(Cow::Owned(Value::Null)), ..envelope.clone() })?;
    let (before, after) =
        around.split_once(PLACE).ok_or_else(|| io::Error::other("a document without data"))?;
    write!(to, "{before}\n  \"data\": ")?;
    answer.print(&mut Harmless(to))?;
    to.write_all(after.as_bytes())
}

/// Escapes on the way what [`to_json`] escapes. What it is given at a time is whole characters, as [`BufWriter`] never
/// breaks what is written to it at once.
struct Harmless<'w>(&'w mut dyn Write);

impl Write for Harmless<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) if bytes.iter().any(|b| *b >= 0x7f) => self.0.write_all(escaped(text).as_bytes())?,
            _ => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c != '\n' && layout::is_control(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Prints a document as YAML: the same in the same order.
///
/// # Errors
/// When it cannot be written.
pub fn write_yaml(envelope: &Envelope<'_>, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(super::yaml::to_yaml(&serde_json::to_value(envelope)?).as_bytes())
}
