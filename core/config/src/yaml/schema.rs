//! Checks a tree against the JSON Schema of a definition type, reporting everything that is wrong at once.
//!
//! The schemas come from the types (schemars), so this knows the keywords those produce, not all there are.

use agents_domain::QualifiedName;
use serde_json::Value;

use super::{Node, NodeKind, Source, join};
use crate::nearest::nearest;

/// How many keys or values a message lists.
const LISTED: usize = 20;

/// A schema within its document, which `$ref` points into.
#[derive(Clone, Copy)]
pub(crate) struct Schema<'s> {
    root: &'s Value,
    here: &'s Value,
    /// Where it was referred to, which may say more than what it refers to.
    site: &'s Value,
    /// The name of the definition it came from, when it was a reference.
    definition: Option<&'s str>,
}

impl<'s> Schema<'s> {
    pub fn new(root: &'s Value) -> Self {
        Self { root, here: root, site: root, definition: None }.resolved()
    }

    fn at(self, here: &'s Value) -> Self {
        Self { root: self.root, here, site: here, definition: None }.resolved()
    }

    /// Follows `$ref` and picks what an optional value is when it is there.
    fn resolved(mut self) -> Self {
        // Bounded: our schemas nest shallowly, and a circle of references must not hang.
        for _ in 0..8 {
            if let Some(target) = self.here.get("$ref").and_then(Value::as_str) {
                match self.root.pointer(target.trim_start_matches('#')) {
                    Some(found) => {
                        self.here = found;
                        self.definition = target.rsplit('/').next();
                    }
                    None => break,
                }
            } else if let Some(options) = self.here.get("anyOf").and_then(Value::as_array) {
                let is_null = |s: &&Value| s.get("type").and_then(Value::as_str) == Some("null");
                match options.iter().find(|s| !is_null(s)) {
                    Some(found) => self.here = found,
                    None => break,
                }
            } else {
                break;
            }
        }
        self
    }

    fn str(self, key: &str) -> Option<&'s str> {
        self.here.get(key).and_then(Value::as_str)
    }

    /// The type, without the `null` of optional values.
    pub fn type_name(self) -> Option<&'s str> {
        match self.here.get("type")? {
            Value::String(name) => Some(name),
            Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
            _ => None,
        }
    }

    /// The texts it allows, when it names them.
    pub fn choices(self) -> Option<Vec<&'s str>> {
        let mut found = Vec::new();
        collect_choices(self.here, &mut found);
        (!found.is_empty()).then_some(found)
    }

    pub fn property(self, key: &str) -> Option<Schema<'s>> {
        self.here.get("properties")?.get(key).map(|s| self.at(s))
    }

    pub fn items(self) -> Option<Schema<'s>> {
        self.here.get("items").map(|s| self.at(s))
    }

    /// What values of keys are that it does not name, where it says so.
    pub fn rest(self) -> Option<Schema<'s>> {
        self.here
            .get("additionalProperties")
            .filter(|schema| schema.is_object())
            .map(|schema| self.at(schema))
    }

    /// What a person starts from where a value is missing, as YAML.
    fn starter(self) -> String {
        if let Some(default) = self.default() {
            return default.to_string();
        }
        if let Some(first) = self.choices().and_then(|choices| choices.first().copied()) {
            return first.to_owned();
        }
        match self.type_name() {
            Some("array") => "[]".to_owned(),
            Some("object") => "{}".to_owned(),
            Some("boolean") => "false".to_owned(),
            Some("integer" | "number") => "0".to_owned(),
            _ => "\"\"".to_owned(),
        }
    }

    /// What it is when it is left out.
    pub fn default(self) -> Option<&'s Value> {
        self.site.get("default").or_else(|| self.here.get("default")).filter(|default| !default.is_null())
    }

    /// What it is for, in words.
    pub fn description(self) -> Option<&'s str> {
        // The place says more than the definition it refers to.
        self.site.get("description").and_then(Value::as_str).or_else(|| self.str("description"))
    }

    /// The keys it names, in order.
    pub fn keys(self) -> Vec<&'s str> {
        match self.here.get("properties") {
            Some(Value::Object(map)) => map.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    pub fn required(self) -> Vec<&'s str> {
        match self.here.get("required") {
            Some(Value::Array(keys)) => keys.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// Takes no key but its own.
    fn is_closed(self) -> bool {
        self.here.get("properties").is_some()
            && !matches!(self.here.get("additionalProperties"), Some(Value::Bool(true) | Value::Object(_)))
    }
}

fn collect_choices<'s>(schema: &'s Value, found: &mut Vec<&'s str>) {
    match schema.get("enum") {
        Some(Value::Array(values)) => found.extend(values.iter().filter_map(Value::as_str)),
        _ => found.extend(schema.get("const").and_then(Value::as_str)),
    }
    if let Some(Value::Array(options)) = schema.get("oneOf") {
        options.iter().for_each(|s| collect_choices(s, found));
    }
}

/// Takes keys with nothing behind them out, where they may be left out.
pub(crate) fn drop_empty(node: &mut Node, schema: Schema<'_>) {
    match &mut node.kind {
        NodeKind::Map(entries) if schema.is_closed() => {
            let required = schema.required();
            entries.retain(|e| e.value.kind != NodeKind::Null || required.contains(&e.key.as_str()));
            for entry in entries {
                if let Some(inner) = schema.property(&entry.key) {
                    drop_empty(&mut entry.value, inner);
                }
            }
        }
        NodeKind::Map(entries) => {
            if let Some(inner) = schema.rest() {
                entries.iter_mut().for_each(|entry| drop_empty(&mut entry.value, inner));
            }
        }
        NodeKind::List(items) => {
            if let Some(inner) = schema.items() {
                items.iter_mut().for_each(|item| drop_empty(item, inner));
            }
        }
        _ => {}
    }
}

/// Reports whatever in `node` the schema does not allow.
pub(crate) fn check(node: &Node, schema: Schema<'_>, path: &str, source: &mut Source<'_>) {
    if matches!(node.kind, NodeKind::Open(_)) {
        return;
    }
    if let Some(choices) = schema.choices() {
        return check_choice(node, &choices, path, source);
    }
    match (schema.type_name(), &node.kind) {
        (Some("object"), NodeKind::Map(_)) => check_map(node, schema, path, source),
        (Some("array"), NodeKind::List(items)) => {
            let least = schema.here.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            if (items.len() as u64) < least {
                source.error(path, &node.bytes, format!("{} needs at least {least} entry", what(path)));
            }
            if let Some(inner) = schema.items() {
                for (at, item) in items.iter().enumerate() {
                    check(item, inner, &format!("{path}[{at}]"), source);
                }
            }
        }
        (Some("string"), NodeKind::Text(text)) => check_text(node, text, schema, path, source),
        (Some("boolean"), NodeKind::Bool(_)) => {}
        (Some("integer"), NodeKind::Number(n)) if n.is_i64() || n.is_u64() => {
            check_range(node, n, schema, path, source)
        }
        (Some("number"), NodeKind::Number(n)) => check_range(node, n, schema, path, source),
        (None, _) => {}
        (Some(expected), _) => wrong_type(node, expected, path, source),
    }
}

/// The value as the start of a sentence.
fn what(path: &str) -> String {
    if path.is_empty() { "the file".to_owned() } else { format!("`{path}`") }
}

fn wrong_type(node: &Node, expected: &str, path: &str, source: &mut Source<'_>) {
    let expected_words = match expected {
        "object" => "a mapping (`key: value` lines)",
        "array" => "a list (`- entry` lines)",
        "string" => "a text",
        "boolean" => "`true` or `false`",
        "integer" => "a whole number",
        "number" => "a number",
        other => other,
    };
    let quotes = match (expected, &node.kind) {
        ("string", NodeKind::Number(_) | NodeKind::Bool(_)) => ": put it in quotes",
        ("boolean" | "integer" | "number", NodeKind::Text(_)) if is_quoted(node, source.text) => {
            ": leave the quotes out"
        }
        _ => "",
    };
    let message = format!("{} must be {expected_words}, not {}{quotes}", what(path), node.describe());
    source.error(path, &node.bytes, message);
    let written = source.text.get(node.bytes.clone()).unwrap_or_default();
    match quotes {
        "" => {}
        ": put it in quotes" => source.fix("Put it in quotes", &node.bytes, format!("\"{written}\"")),
        _ => source.fix("Leave the quotes out", &node.bytes, node.text().unwrap_or_default()),
    }
}

fn is_quoted(node: &Node, text: &str) -> bool {
    matches!(text.as_bytes().get(node.bytes.start), Some(b'"' | b'\''))
}

fn check_choice(node: &Node, choices: &[&str], path: &str, source: &mut Source<'_>) {
    let list = choices.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ");
    let Some(text) = node.text() else {
        let message = format!("{} must be one of {list}, not {}", what(path), node.describe());
        return source.error(path, &node.bytes, message);
    };
    if !choices.contains(&text) {
        let meant = nearest(text, choices.iter().copied());
        let question = meant.map(|c| format!(": did you mean `{c}`?")).unwrap_or_default();
        let message = format!("{} must be one of {list}, not {}{question}", what(path), node.describe());
        source.error(path, &node.bytes, message);
        if let Some(meant) = meant {
            source.fix(format!("Write `{meant}`"), &node.bytes, meant);
        }
    }
}

fn check_text(node: &Node, text: &str, schema: Schema<'_>, path: &str, source: &mut Source<'_>) {
    // Names have a schema of their own; the domain says better than a pattern what is wrong with one.
    if schema.definition == Some("QualifiedName")
        && let Err(error) = text.parse::<QualifiedName>()
    {
        let message = if text.contains("${") || text.contains("{{") {
            format!("{}: {error}; names are plain, without variables", what(path))
        } else {
            format!("{}: {error}", what(path))
        };
        source.error(path, &node.bytes, message);
    }
}

fn check_range(
    node: &Node,
    number: &serde_json::Number,
    schema: Schema<'_>,
    path: &str,
    source: &mut Source<'_>,
) {
    let Some(value) = number.as_f64() else { return };
    let bound = |key| schema.here.get(key).and_then(Value::as_f64);
    let format_limit = match schema.str("format") {
        Some("uint8") => Some(f64::from(u8::MAX)),
        Some("uint16") => Some(f64::from(u16::MAX)),
        Some("uint32") => Some(f64::from(u32::MAX)),
        _ => None,
    };
    let (least, most) = (bound("minimum"), bound("maximum").or(format_limit));
    if let Some(least) = least.filter(|least| value < *least) {
        source.error(path, &node.bytes, format!("{} must be at least {least}, not {number}", what(path)));
    }
    if let Some(most) = most.filter(|most| value > *most) {
        source.error(path, &node.bytes, format!("{} must be at most {most}, not {number}", what(path)));
    }
}

fn check_map(node: &Node, schema: Schema<'_>, path: &str, source: &mut Source<'_>) {
    let entries = node.entries();
    let keys = schema.keys();
    let mut misspelled = Vec::new();
    let unset: Vec<&str> = keys.iter().copied().filter(|k| node.get(k).is_none()).collect();
    for entry in entries {
        let inner_path = join(path, &entry.key);
        if let Some(inner) = schema.property(&entry.key) {
            check(&entry.value, inner, &inner_path, source);
        } else if schema.is_closed() {
            if source.is_full() {
                return;
            }
            let meant = nearest(&entry.key, unset.iter().copied())
                .or_else(|| nearest(&entry.key, keys.iter().copied()));
            let message = match meant {
                Some(meant) => format!("there is no key `{}`: did you mean `{meant}`?", entry.key),
                None => {
                    let more = if keys.len() > LISTED { ", ..." } else { "" };
                    let known = keys.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
                    format!("there is no key `{}`: the keys here are {known}{more}", entry.key)
                }
            };
            source.error(&inner_path, &entry.key_bytes, message);
            if let Some(meant) = meant {
                misspelled.push(meant);
                source.fix(format!("Write `{meant}`"), &entry.key_bytes, meant);
            }
        } else if let Some(rest) = schema.here.get("additionalProperties").filter(|s| s.is_object()) {
            check(&entry.value, schema.at(rest), &inner_path, source);
        }
    }
    // A missing key has no place; the first key is where people look.
    let place = entries.first().map_or(&node.bytes, |e| &e.key_bytes);
    for key in schema.required() {
        if !entries.iter().any(|e| e.key == key) {
            let message = match path {
                "" => format!("the key `{key}` is missing"),
                path => format!("the key `{key}` of `{path}` is missing"),
            };
            source.error(&join(path, key), place, message);
            // One that is there under a wrong name is not added a second time.
            if !misspelled.contains(&key) {
                add_key(node, key, schema, path, source);
            }
        }
    }
}

/// What mends a missing key: at the end of the file, or before the first key of its mapping.
fn add_key(node: &Node, key: &str, schema: Schema<'_>, path: &str, source: &mut Source<'_>) {
    let value = schema.property(key).map(Schema::starter).unwrap_or_default();
    let title = format!("Add `{key}`");
    let flow = source.text.as_bytes().get(node.bytes.start) == Some(&b'{');
    match node.entries().first().map(|first| first.key_bytes.start) {
        Some(first) if path.is_empty() && !flow && source.range(&(first..first)).start.column == 0 => {
            let end = source.text.len();
            let gap = if source.text.ends_with('\n') { "" } else { "\n" };
            source.fix(title, &(end..end), format!("{gap}{key}: {value}\n"));
        }
        Some(first) if flow => source.fix(title, &(first..first), format!("{key}: {value}, ")),
        Some(first) => {
            let indent = " ".repeat(source.range(&(first..first)).start.column as usize);
            source.fix(title, &(first..first), format!("{key}: {value}\n{indent}"));
        }
        None => {}
    }
}
