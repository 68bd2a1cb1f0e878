//! What a server says, as data.

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A list of replies.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// In order: a request gets the first that wants it.
    pub replies: Vec<Reply>,
}

/// A reply.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// Which requests it is for.
    pub when: When,
    /// How often it is given; 0 is always.
    pub times: u32,
    /// What is said.
    pub text: String,
    /// What is thought before.
    pub thinking: String,
    /// The tools that are called, in order.
    pub calls: Vec<Call>,
    /// What it took.
    pub usage: Tokens,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// The request waits here until the test lets it go on ([`crate::Server::release`]); with a fault `cut`, in the middle.
    pub barrier: Option<String>,
    /// Milliseconds between the pieces of a stream.
    pub pace_ms: u64,
    /// Why it ends, as the protocol says it; by itself unless given.
    pub stop: Option<String>,
}

impl Default for Reply {
    fn default() -> Self {
        Self {
            when: When::default(),
            times: 1,
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            usage: Tokens::default(),
            fault: None,
            barrier: None,
            pace_ms: 0,
            stop: None,
        }
    }
}

/// Which requests a reply is for; what is not said does not matter.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// Texts that stand somewhere in the conversation, system prompt and results of tools included.
    pub contains: Vec<String>,
    /// Texts that do not.
    pub lacks: Vec<String>,
    /// A text in the last message.
    pub last: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// A tool that is offered.
    pub tool: Option<String>,
    /// How many messages there are that the model wrote.
    pub turns: Option<usize>,
}

/// A call of a tool. In its arguments `${find:PATTERN}` stands for what the pattern's group (or all of it) finds in the
/// conversation, the last time it does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool, as the request names it or as it is before names are made to fit.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Value,
    /// What is sent in their place, when that is no JSON.
    #[serde(default)]
    pub raw: Option<String>,
}

/// What an answer took.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tokens {
    /// Tokens in.
    pub input: u64,
    /// Of these, from a cache.
    pub cached: u64,
    /// Tokens out.
    pub output: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self { input: 100, cached: 0, output: 10 }
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", untagged)]
pub enum Fault {
    /// A refusal.
    Status {
        /// Its status.
        status: u16,
        /// Seconds to wait.
        #[serde(default)]
        retry_after: Option<f64>,
        /// What is said.
        #[serde(default)]
        message: Option<String>,
    },
    /// The conversation is too long, in the words of the protocol.
    TooLong {
        /// `true`.
        too_long: bool,
    },
    /// The connection is closed after so many pieces of a stream; of a whole answer, in the middle.
    Cut {
        /// Pieces.
        cut: usize,
    },
    /// A piece that is no JSON; of a whole answer, all of it.
    Malformed {
        /// `true`.
        malformed: bool,
    },
    /// A page of HTML.
    ContentType {
        /// Such as `text/html`.
        content_type: String,
    },
    /// No answer, ever.
    Hangs {
        /// `true`.
        hangs: bool,
    },
    /// An error event in the middle of a stream.
    Event {
        /// Its message.
        event: String,
    },
}

impl Script {
    /// Reads a script.
    ///
    /// # Panics
    /// When it does not fit.
    pub fn read(value: Value) -> Self {
        serde_json::from_value(value).unwrap_or_else(|error| panic!("the script does not fit: {error}"))
    }
}

impl Call {
    /// Its arguments, with what the conversation says put in.
    pub(crate) fn arguments(&self, conversation: &str) -> String {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let args = if self.args.is_null() { json!({}) } else { self.args.clone() };
        filled(args, conversation).to_string()
    }
}

fn filled(value: Value, conversation: &str) -> Value {
    match value {
        Value::String(text) => Value::String(found(&text, conversation)),
        Value::Array(items) => items.into_iter().map(|item| filled(item, conversation)).collect(),
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(key, member)| (key, filled(member, conversation)))
                .collect::<Map<_, _>>(),
        ),
        other => other,
    }
}

fn found(text: &str, conversation: &str) -> String {
    let Some((before, rest)) = text.split_once("${find:") else { return text.to_owned() };
    let (pattern, after) = rest.rsplit_once('}').expect("`${find:` ends with `}`");
    let pattern = Regex::new(pattern).expect("the pattern of `${find:` is a regular expression");
    let found = pattern.captures_iter(conversation).last();
    let found = found.and_then(|found| found.get(1).or_else(|| found.get(0)).map(|m| m.as_str().to_owned()));
    let found = found.unwrap_or_else(|| panic!("`{pattern}` is not found in:\n{conversation}"));
    format!("{before}{found}{after}")
}
