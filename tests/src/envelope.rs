//! What a command answered in JSON, and what must hold of every answer.

use serde_json::Value;

use crate::Finished;

/// An answer of the program.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// The words of the command, such as `plan use`.
    pub command: String,
    /// `ok`, `error` or `cancelled`.
    pub status: String,
    /// That of the process, too.
    pub exit_code: i64,
    /// What was asked for.
    pub data: Value,
    /// Why not; `null` when there is no error.
    pub error: Value,
    /// Level and text of each message.
    pub messages: Vec<(String, String)>,
    /// The whole answer as printed.
    pub text: String,
    /// The error output.
    pub stderr: String,
}

/// Keys an answer may have, in order; those marked must be there.
const KEYS: [(&str, bool); 8] = [
    ("command", true),
    ("status", true),
    ("exit_code", true),
    ("data", true),
    ("error", false),
    ("timing", true),
    ("messages", true),
    ("metadata", false),
];

impl Envelope {
    /// Reads an answer and checks all that holds of every one: one document, its keys and their order, the exit code.
    ///
    /// # Panics
    /// When something of that does not hold.
    pub fn check(args: &[String], finished: &Finished) -> Self {
        let text = String::from_utf8_lossy(&finished.stdout).into_owned();
        let told = || format!("agents {}\n{text}\n{}", args.join(" "), finished.stderr);
        let value: Value =
            serde_json::from_slice(&finished.stdout).unwrap_or_else(|e| panic!("{e}: {}", told()));
        let object = value.as_object().unwrap_or_else(|| panic!("no object: {}", told()));
        let keys: Vec<&str> = object.keys().map(String::as_str).collect();
        let expected: Vec<&str> = KEYS
            .iter()
            .filter(|(key, must)| *must || object.contains_key(*key))
            .map(|(key, _)| *key)
            .collect();
        assert_eq!(keys, expected, "{}", told());
        let word = |key: &str| value[key].as_str().unwrap_or_else(|| panic!("{key}: {}", told())).to_owned();
        let (command, status) = (word("command"), word("status"));
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        assert!(
            command.split(' ').all(|part| words.contains(&part)),
            "`command` is `{command}`, not words of: {}",
            told()
        );
        let exit_code = value["exit_code"].as_i64().unwrap_or_else(|| panic!("exit_code: {}", told()));
        assert_eq!(finished.status.code().map(i64::from), Some(exit_code), "exit code: {}", told());
        match status.as_str() {
            "ok" => {
                assert_eq!(exit_code, 0, "{}", told());
                assert!(value["error"].is_null(), "{}", told());
            }
            "error" => assert!(exit_code == 1 || exit_code == 2, "{}", told()),
            "cancelled" => assert!(exit_code == 130 || exit_code == 1, "{}", told()),
            other => panic!("status `{other}`: {}", told()),
        }
        if let Some(error) = object.get("error").filter(|error| !error.is_null()) {
            for key in ["code", "message"] {
                assert!(error[key].as_str().is_some_and(|text| !text.is_empty()), "error.{key}: {}", told());
            }
            assert!(error["number"].is_i64(), "error.number: {}", told());
        }
        assert!(value["timing"]["started"].is_string(), "{}", told());
        assert!(value["timing"]["duration_ms"].is_number(), "{}", told());
        let messages = value["messages"].as_array().unwrap_or_else(|| panic!("messages: {}", told()));
        let messages = messages.iter().map(|message| {
            let part = |key: &str| message[key].as_str().unwrap_or_else(|| panic!("{key}: {}", told()));
            (part("level").to_owned(), part("text").to_owned())
        });
        let messages = messages.collect();
        assert!(!finished.stderr.contains("panicked at"), "{}", told());
        Self {
            command,
            status,
            exit_code,
            data: value["data"].clone(),
            error: value["error"].clone(),
            messages,
            text,
            stderr: finished.stderr.clone(),
        }
    }

    /// Whether the command did what it was asked.
    pub fn is_ok(&self) -> bool {
        self.status == "ok"
    }

    /// The machine's word for an error, or nothing.
    pub fn code(&self) -> &str {
        self.error["code"].as_str().unwrap_or_default()
    }

    /// All that a person reads of a refusal: message, detail, suggestions, messages.
    pub fn words(&self) -> String {
        let mut lines: Vec<String> = self.messages.iter().map(|(_, text)| text.clone()).collect();
        for key in ["message", "detail"] {
            lines.extend(self.error[key].as_str().map(str::to_owned));
        }
        for suggestion in self.error["suggestions"].as_array().into_iter().flatten() {
            lines.extend(suggestion.as_str().map(str::to_owned));
        }
        lines.join("\n")
    }
}

/// Whether a text is a full ULID.
pub fn is_ulid(text: &str) -> bool {
    let digits = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    text.len() == 26 && text.as_bytes()[0] <= b'7' && text.bytes().all(|byte| digits.contains(&byte))
}
