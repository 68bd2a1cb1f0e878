//! Turns the rules of a script into diagnostics and fixes of live texts.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use crate::script::{Fix, Rule, Script};

/// Texts of open documents by decoded URI, with their versions.
type Open = BTreeMap<String, (i64, String)>;

/// Compiled rules and what is needed to speak of positions.
pub struct Analysis {
    patterns: Vec<Regex>,
    encoding: String,
    escape: bool,
    /// Decoded URI of the workspace.
    pub root: String,
}

impl Analysis {
    pub fn new(script: &Script) -> Self {
        let compile =
            |rule: &Rule| Regex::new(&rule.pattern).expect("a rule's `match` is a regular expression");
        Self {
            patterns: script.rules.iter().map(compile).collect(),
            encoding: script.encoding.clone().unwrap_or_else(|| "utf-16".into()),
            escape: script.escape_uris,
            root: String::new(),
        }
    }

    pub fn diagnostics(&self, uri: &str, text: &str, rules: &[Rule], late: bool) -> Vec<Value> {
        let mut lines = Lines::new(text, &self.encoding);
        let mut found = Vec::new();
        for (rule, pattern) in rules.iter().zip(&self.patterns) {
            if !uri.ends_with(&rule.files) || (rule.late && !late) {
                continue;
            }
            for captures in pattern.captures_iter(text) {
                let whole = captures.get(0).expect("a match").range();
                found.push(diagnostic(rule, &captures, lines.range(whole)));
            }
        }
        found
    }

    pub fn actions(&self, params: &Value, open: &Open, rules: &[Rule]) -> Value {
        let uri = decode(params["textDocument"]["uri"].as_str().unwrap_or_default());
        let filtered = params["context"]["only"].is_array();
        let wanted = params["context"]["diagnostics"].as_array().cloned().unwrap_or_default();
        let mut actions = Vec::new();
        for diagnostic in &wanted {
            let Some((at, captures)) = self.find(&uri, diagnostic, open, rules) else { continue };
            for (number, fix) in rules[at].fixes.iter().enumerate() {
                if fix.when_filtered.is_some_and(|when| when != filtered) {
                    continue;
                }
                let mut action = Map::new();
                action.insert("title".into(), json!(expand(&captures, &fix.title)));
                if fix.bare {
                    action.insert("command".into(), json!(fix.command.clone().unwrap_or_default()));
                    actions.push(action.into());
                    continue;
                }
                if !fix.kind.is_empty() {
                    action.insert("kind".into(), json!(fix.kind));
                }
                if fix.preferred {
                    action.insert("isPreferred".into(), json!(true));
                }
                if let Some(reason) = &fix.disabled {
                    action.insert("disabled".into(), json!({ "reason": reason }));
                }
                if let Some(command) = &fix.command {
                    action.insert("command".into(), json!({"title": fix.title, "command": command}));
                }
                action.insert("diagnostics".into(), json!([diagnostic]));
                if fix.resolve {
                    action
                        .insert("data".into(), json!({"uri": uri, "diagnostic": diagnostic, "fix": number}));
                } else if let Some(edit) = self.edit(&uri, fix, &captures, open) {
                    action.insert("edit".into(), edit);
                }
                actions.push(action.into());
            }
        }
        Value::Array(actions)
    }

    pub fn resolve(&self, action: &Value, open: &Open, rules: &[Rule]) -> Value {
        let mut action = action.clone();
        let uri = action["data"]["uri"].as_str().unwrap_or_default().to_owned();
        let diagnostic = action["data"]["diagnostic"].clone();
        let number = usize::try_from(action["data"]["fix"].as_u64().unwrap_or_default()).unwrap_or_default();
        if let Some((at, captures)) = self.find(&uri, &diagnostic, open, rules)
            && let Some(edit) =
                rules[at].fixes.get(number).and_then(|fix| self.edit(&uri, fix, &captures, open))
        {
            action["edit"] = edit;
        }
        action
    }

    /// The rule and match of a diagnostic that was passed back unchanged.
    fn find<'t>(
        &self,
        uri: &str,
        wanted: &Value,
        open: &'t Open,
        rules: &[Rule],
    ) -> Option<(usize, Captures<'t>)> {
        let (_, text) = open.get(uri)?;
        let mut lines = Lines::new(text, &self.encoding);
        rules.iter().zip(&self.patterns).enumerate().find_map(|(at, (rule, pattern))| {
            let captures = pattern.captures_iter(text).find(|captures| {
                let whole = captures.get(0).expect("a match").range();
                diagnostic(rule, captures, lines.range(whole)) == *wanted
            })?;
            Some((at, captures))
        })
    }

    fn edit(&self, uri: &str, fix: &Fix, captures: &Captures<'_>, open: &Open) -> Option<Value> {
        let (version, text) = open.get(uri)?;
        let mut lines = Lines::new(text, &self.encoding);
        let whole = captures.get(0).expect("a match").range();
        let mut edits = Vec::new();
        if let Some(above) = &fix.above {
            let start = text[..whole.start].rfind('\n').map_or(0, |at| at + 1);
            edits.push(json!({"range": lines.range(start..start), "newText": expand(captures, above)}));
        }
        if let Some(replace) = &fix.replace {
            let mut edit = json!({"range": lines.range(whole), "newText": expand(captures, replace)});
            if fix.snippet {
                edit["insertTextFormat"] = json!(2);
            }
            edits.push(edit);
        }
        let mut files =
            vec![(uri.to_owned(), json!(version + fix.version_offset.unwrap_or_default()), edits)];
        if let Some(elsewhere) = &fix.elsewhere {
            let other = format!("{}/{}", self.root, elsewhere.file);
            let on_disk = || {
                std::fs::read_to_string(other.strip_prefix("file://").unwrap_or(&other)).unwrap_or_default()
            };
            let (version, text) = open
                .get(&other)
                .map_or_else(|| (Value::Null, on_disk()), |(version, text)| (json!(version), text.clone()));
            let pattern = Regex::new(&elsewhere.pattern).expect("`elsewhere.match` is a regular expression");
            let mut lines = Lines::new(&text, &self.encoding);
            let edits = pattern
                .captures_iter(&text)
                .map(|found| {
                    let range = lines.range(found.get(0).expect("a match").range());
                    json!({"range": range, "newText": expand(captures, &expand(&found, &elsewhere.replace))})
                })
                .collect();
            files.push((other, version, edits));
        }
        files.retain(|(_, _, edits)| !edits.is_empty());
        if files.is_empty() && fix.operations.is_empty() {
            return None;
        }
        if fix.version_offset.is_none() && fix.operations.is_empty() {
            let changes = files.into_iter().map(|(uri, _, edits)| (encode(&uri, self.escape), json!(edits)));
            return Some(json!({"changes": changes.collect::<Map<_, _>>()}));
        }
        let root = encode(&self.root, false);
        let operations = Value::Array(fix.operations.clone()).to_string().replace("$ROOT", &root);
        let mut changes: Vec<Value> = serde_json::from_str(&operations).expect("operations are JSON");
        changes.extend(files.into_iter().map(|(uri, version, edits)| {
            json!({"textDocument": {"uri": encode(&uri, self.escape), "version": version}, "edits": edits})
        }));
        Some(json!({ "documentChanges": changes }))
    }
}

fn diagnostic(rule: &Rule, captures: &Captures<'_>, range: Value) -> Value {
    let mut item = json!({"range": range, "message": expand(captures, &rule.message), "source": rule.source});
    for (name, value) in [("code", &rule.code), ("severity", &rule.severity), ("data", &rule.data)] {
        if !value.is_null() {
            item[name] = value.clone();
        }
    }
    item
}

fn expand(captures: &Captures<'_>, template: &str) -> String {
    let mut out = String::new();
    captures.expand(template, &mut out);
    out
}

/// Byte offsets to positions, for offsets that mostly grow.
struct Lines<'t> {
    text: &'t str,
    encoding: &'t str,
    line: usize,
    start: usize,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str, encoding: &'t str) -> Self {
        Self { text, encoding, line: 0, start: 0 }
    }

    fn range(&mut self, range: Range<usize>) -> Value {
        json!({"start": self.position(range.start), "end": self.position(range.end)})
    }

    fn position(&mut self, offset: usize) -> Value {
        if offset < self.start {
            (self.line, self.start) = (0, 0);
        }
        while let Some(length) = self.text[self.start..offset].find('\n') {
            self.line += 1;
            self.start += length + 1;
        }
        let before = &self.text[self.start..offset];
        let column = match self.encoding {
            "utf-8" => before.len(),
            "utf-32" => before.chars().count(),
            _ => before.encode_utf16().count(),
        };
        json!({"line": self.line, "character": column})
    }
}

/// A URI with its percent escapes resolved.
pub fn decode(uri: &str) -> String {
    let bytes = uri.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%').then(|| uri.get(at + 1..at + 3)).flatten();
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The other way; `all` escapes all that may be.
pub fn encode(uri: &str, all: bool) -> String {
    let path = uri.strip_prefix("file://").unwrap_or(uri);
    let mut out = String::from("file://");
    for byte in path.bytes() {
        let plain = byte == b'/' || byte.is_ascii_alphanumeric() && !all || (b"-_.~".contains(&byte) && !all);
        if plain { out.push(byte as char) } else { out.push_str(&format!("%{byte:02x}")) }
    }
    out
}

pub fn hash(items: &[Value]) -> u64 {
    let mut hasher = DefaultHasher::new();
    json!(items).to_string().hash(&mut hasher);
    hasher.finish()
}
