//! Validation files (`agents validation add`): what a tool's file says, with a `validation` block.

use std::sync::LazyLock;

use agents_domain::validation::ValidationDefinition;
use serde_json::{Value, json};

use super::{EntityKind, LoadResult, Recipe, Registry, load, problems_of, rename_keys, schema_of};
use crate::yaml::schema::Schema;
use crate::yaml::{Entry, Node, NodeKind, Source};

pub(super) const KIND: EntityKind = EntityKind {
    name: "validation",
    registry: Registry::Validation,
    refers: &[],
    check: |text, file| problems_of(load_validation(text, file)),
    schema: || &SCHEMA,
    marks: &["validation", "wraps", "transform", "parser", "builtin"],
    recipe: &RECIPE,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(file_schema);

const RECIPE: Recipe = Recipe {
    wrappers: &["tool"],
    aliases: &[("cwd", "working_directory"), ("timeout_seconds", "timeout")],
    schema: || &SCHEMA,
    normalise,
    rules,
    lower,
};

/// Keys of a tool that have no meaning for a validation: it writes nothing, whatever they say (VAL-006).
const TOOL_KEYS: &[(&str, &str)] = &[
    ("writes", "boolean"),
    ("write_scope", "string"),
    ("checkpointable", "boolean"),
    ("checkpoint_scope", "string"),
    ("side_effects", "array"),
    ("idempotent", "boolean"),
    ("read_only", "boolean"),
    ("unsafe", "boolean"),
    ("output_schema", "object"),
    ("resource_slots", "array"),
    ("lifecycle", "object"),
];

/// What a command is told by.
const COMMAND_KEYS: &[&str] = &["command", "shell", "parser", "working_directory", "env"];

/// Loads a validation file. `file_name` is what problems call it.
pub fn load_validation(text: &str, file_name: &str) -> LoadResult<ValidationDefinition> {
    load(&RECIPE, text, file_name)
}

fn file_schema() -> Value {
    let mut schema = schema_of::<ValidationDefinition>();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return schema;
    };
    for (key, kind) in TOOL_KEYS {
        let known = json!({ "type": kind, "description": "As in a tool's file; a validation never writes." });
        properties.insert((*key).to_owned(), known);
    }
    for key in ["output_schema", "lifecycle", "input_schema", "argument_mapping"] {
        if let Some(object) = properties.get_mut(key) {
            object["type"] = "object".into();
            object["additionalProperties"] = true.into();
        }
    }
    if let Some(source) = properties.get_mut("source") {
        *source = json!({
            "description": "Where its implementation comes from; `builtin` for a `command`, `wrapped` for `wraps`.",
            "type": "string",
            "enum": ["builtin", "custom", "mcp", "agent_skill", "wrapped"],
        });
    }
    if let Some(timeout) = properties.get_mut("timeout") {
        timeout["minimum"] = 1.into();
        timeout["maximum"] = 86400.into();
    }
    if let Some(command) = properties.get_mut("command") {
        command["minItems"] = 1.into();
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|key| key != "source");
    }
    schema
}

fn normalise(root: &mut Node, source: &mut Source<'_>) {
    let schema = Schema::new(&SCHEMA);
    let mut known = schema.keys();
    known.push("mode");
    rename_keys(root, "", &known, RECIPE.aliases, source);
    mode_into_block(root, source);
    short_built_in(root);
    command_line(root, source);
    if root.get("source").is_none() && root.get("builtin").is_none() {
        let word = if root.get("wraps").is_some() {
            Some("wrapped")
        } else if root.get("code").is_some() {
            Some("custom")
        } else if root.get("mcp_server").is_some() {
            Some("mcp")
        } else if root.get("agent_skill_path").is_some() {
            Some("agent_skill")
        } else if root.get("command").is_some() || root.get("shell").is_some() {
            Some("builtin")
        } else {
            None
        };
        if let Some(word) = word {
            push(root, "source", word);
        }
    } else if root.get("source").is_none() {
        push(root, "source", "builtin");
    }
    let built_in = root.get("source").and_then(Node::text) == Some("builtin");
    let command = root.get("command").is_some() || root.get("shell").is_some();
    if built_in && command && root.get("builtin").is_none() {
        push(root, "builtin", "builtin/command");
    }
}

/// `mode: required` at the top means `validation: {mode: required}`.
fn mode_into_block(root: &mut Node, source: &mut Source<'_>) {
    let Some(entry) = root.remove("mode") else { return };
    if root.get("validation").is_some() {
        return source.error("mode", &entry.key_bytes, "`mode` belongs into `validation:`, which is there");
    }
    source.hint("mode", &entry.key_bytes, "`mode` is usually written as `validation: {mode: ...}`");
    let block = Node { bytes: entry.value.bytes.clone(), kind: NodeKind::Map(vec![entry.clone()]) };
    if let Some(entries) = root.entries_mut() {
        entries.push(Entry { key: "validation".to_owned(), key_bytes: entry.key_bytes, value: block });
    }
}

/// `builtin: syntax` means `builtin: builtin/syntax`.
fn short_built_in(root: &mut Node) {
    if let Some(Node { kind: NodeKind::Text(name), .. }) = root.get_mut("builtin")
        && !name.contains('/')
    {
        *name = format!("builtin/{name}");
    }
}

/// `command: pytest -q` is split as a shell would; nothing else of a shell is done.
fn command_line(root: &mut Node, source: &mut Source<'_>) {
    let Some(node) = root.get_mut("command") else { return };
    let NodeKind::Text(line) = &node.kind else { return };
    let bytes = node.bytes.clone();
    let words = match shlex::split(line) {
        None => {
            source.error("command", &bytes, "`command` has a quote that is not closed, or a `\\` at its end");
            None
        }
        Some(words)
            if words.iter().any(|word| matches!(word.as_str(), "|" | "&&" | "||" | ";" | ">" | "<")) =>
        {
            let message =
                "`command` is run without a shell: write it as `shell:` to use `|`, `&&` and the like";
            source.error("command", &bytes, message);
            None
        }
        words => words,
    };
    let text = |word: String| Node { kind: NodeKind::Text(word), bytes: bytes.clone() };
    // A line that is wrong has been said to be; that it is no list would be said beside it.
    let words = words.unwrap_or_else(|| vec![line.clone()]);
    node.kind = NodeKind::List(words.into_iter().map(text).collect());
}

fn push(root: &mut Node, key: &str, word: &str) {
    let bytes = root.entries().first().map_or(0..0, |e| e.key_bytes.clone());
    let value = Node { kind: NodeKind::Text(word.to_owned()), bytes: bytes.clone() };
    if let Some(entries) = root.entries_mut() {
        entries.push(Entry { key: key.to_owned(), key_bytes: bytes, value });
    }
}

fn rules(root: &Node, source: &mut Source<'_>) {
    let has = |key: &str| root.get(key).is_some();
    let name = root.get("name").map_or(0..0, |n| n.bytes.clone());
    if has("wraps") {
        for key in ["source", "code"] {
            let wrong = root.entry(key).filter(|e| e.value.text() != Some("wrapped"));
            if let Some(entry) = wrong {
                source.error(key, &entry.key_bytes, format!("`wraps` and `{key}` exclude each other"));
            }
        }
    } else {
        for key in ["transform", "argument_mapping"] {
            if let Some(entry) = root.entry(key) {
                source.error(
                    key,
                    &entry.key_bytes,
                    format!("`{key}` is only for a validation that `wraps` a tool"),
                );
            }
        }
    }
    let needs: &[&str] = match root.get("source").and_then(Node::text) {
        None => {
            let message = "what shall it do? Give a `command`, a `shell` script, or a `builtin` such as `builtin/syntax`";
            return source.error("source", &name, message);
        }
        Some("builtin") => &["builtin"],
        Some("custom") => &["code"],
        Some("mcp") => &["mcp_server", "mcp_tool_name"],
        Some("agent_skill") => &["agent_skill_path"],
        Some(_) => &["wraps"],
    };
    for key in needs.iter().filter(|key| !has(key)) {
        let source_word = root.get("source").and_then(Node::text).unwrap_or_default();
        source.error(key, &name, format!("`source: {source_word}` needs `{key}`"));
    }
    command_rules(root, source);
    if let Some(schema) = root.get("input_schema")
        && let Some(kind) = schema.get("type").filter(|kind| kind.text() != Some("object"))
    {
        source.error(
            "input_schema.type",
            &kind.bytes,
            "the schema of the arguments must be of `type: object`",
        );
    }
}

fn command_rules(root: &Node, source: &mut Source<'_>) {
    let built_in = root.get("builtin").and_then(Node::text);
    if built_in != Some("builtin/command") {
        for key in COMMAND_KEYS {
            if let Some(entry) = root.entry(key) {
                source.error(key, &entry.key_bytes, format!("`{key}` is for `builtin: builtin/command`"));
            }
        }
        return;
    }
    let name = root.get("name").map_or(0..0, |n| n.bytes.clone());
    match (root.entry("command"), root.entry("shell")) {
        (None, None) => {
            source.error("command", &name, "`builtin/command` needs a `command` or a `shell` script")
        }
        (Some(_), Some(shell)) => {
            source.error("shell", &shell.key_bytes, "`command` and `shell` exclude each other");
        }
        _ => {}
    }
    for (at, word) in root.get("command").map(Node::list).unwrap_or_default().iter().enumerate() {
        if word.text().is_some_and(|t| t.contains('\0')) {
            source.error(&format!("command[{at}]"), &word.bytes, "a word holds a NUL character");
        } else if at == 0 && word.text().is_some_and(|t| t.trim().is_empty()) {
            source.error("command[0]", &word.bytes, "the program's name is empty");
        }
    }
    if let Some(node) = root.get("shell").filter(|n| n.text().is_some_and(|t| t.trim().is_empty())) {
        source.error("shell", &node.bytes, "`shell` is empty");
    }
    if let Some(node) = root.get("working_directory")
        && let Some(folder) = node.text()
        && (folder.starts_with('/') || folder.split('/').any(|part| part == ".."))
    {
        let message = "`working_directory` must be a folder inside the resource, such as `services/api`";
        source.error("working_directory", &node.bytes, message);
    }
    for entry in root.get("env").map(Node::entries).unwrap_or_default() {
        if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            let message = format!("`{}` cannot be the name of a variable", entry.key);
            source.error(&format!("env.{}", entry.key), &entry.key_bytes, message);
        }
    }
}

/// Leaves out what only a tool needs.
fn lower(mut value: Value) -> Value {
    if let Some(map) = value.as_object_mut() {
        for (key, _) in TOOL_KEYS {
            map.shift_remove(*key);
        }
    }
    value
}
