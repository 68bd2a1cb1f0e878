//! Language-server files (`agents lsp add`).

use std::collections::HashSet;
use std::sync::LazyLock;

use agents_domain::language_server::{HealthCheck, LanguageServerDefinition};
use serde_json::{Value, json};

use super::{EntityKind, LoadResult, Loaded, Recipe, Registry, load, problems_of, rename_keys, schema_of};
use crate::yaml::schema::Schema;
use crate::yaml::template::check_template;
use crate::yaml::{Entry, Node, NodeKind, Source, join};
use crate::{Problem, Severity};

pub(super) const KIND: EntityKind = EntityKind {
    name: "lsp_server",
    registry: Registry::LanguageServer,
    refers: &[],
    check: |text, file| problems_of(load_language_server(text, file)),
    schema: || &SCHEMA,
    marks: &["lsp_server", "languages", "init_options", "workspace_settings", "health_check"],
    recipe: &RECIPE,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(file_schema);

const RECIPE: Recipe = Recipe {
    wrappers: &["lsp_server", "lsp", "language_server"],
    aliases: &[("initialization", "init_options")],
    schema: || &SCHEMA,
    normalise,
    rules,
    lower,
};

/// Loads a language-server file. `file_name` is what problems call it.
pub fn load_language_server(text: &str, file_name: &str) -> LoadResult<LanguageServerDefinition> {
    load(&RECIPE, text, file_name)
}

/// Hints for languages that are not known, or known by another name. `canonical` gives the protocol's name of a
/// language, `None` for one nobody knows.
pub fn language_hints(
    loaded: &Loaded<LanguageServerDefinition>,
    canonical: impl Fn(&str) -> Option<String>,
) -> Vec<Problem> {
    let hint =
        |at: usize, message: String| loaded.problem(Severity::Hint, &format!("languages[{at}]"), message);
    let mut hints = Vec::new();
    for (at, language) in loaded.value.languages.iter().enumerate() {
        match canonical(language) {
            None => hints.push(hint(
                at,
                format!("no files are known to be `{language}`: the server will serve none by it"),
            )),
            Some(known) if known != *language => {
                hints.push(hint(at, format!("`{language}` is understood as `{known}`")));
            }
            Some(_) => {}
        }
    }
    hints
}

/// The file says `transport: tcp` and `tcp: {host, port}`; every key of `health_check` has a default.
fn file_schema() -> Value {
    let mut schema = schema_of::<LanguageServerDefinition>();
    let transport = json!({
        "description": "How to talk to it.", "type": "string", "enum": ["stdio", "tcp"], "default": "stdio",
    });
    let tcp = json!({
        "description": "Where the command listens, for `transport: tcp`.",
        "type": "object",
        "properties": {
            "host": { "description": "The host.", "type": "string", "default": "127.0.0.1" },
            "port": { "description": "The port.", "type": "integer", "minimum": 1, "maximum": 65535 },
        },
        "required": ["port"],
        "additionalProperties": false,
    });
    let map = json!({ "type": "object", "additionalProperties": true });
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("transport".to_owned(), transport);
        properties.insert("tcp".to_owned(), tcp);
        for key in ["init_options", "workspace_settings"] {
            let mut map = map.clone();
            if let Some(description) = properties.get(key).and_then(|p| p.get("description")).cloned() {
                map["description"] = description;
            }
            properties.insert(key.to_owned(), map);
        }
        if let Some(languages) = properties.get_mut("languages") {
            languages["minItems"] = 1.into();
        }
    }
    if let Some(defs) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        defs.remove("Transport");
        if let Some(health) = defs.get_mut("HealthCheck") {
            let default = serde_json::to_value(HealthCheck::default()).unwrap_or_default();
            if let Some(map) = health.as_object_mut() {
                map.remove("required");
            }
            if let Some(properties) = health.get_mut("properties").and_then(Value::as_object_mut) {
                for (key, property) in properties {
                    property["default"] = default[key.as_str()].clone();
                }
            }
            health["properties"]["interval_seconds"]["minimum"] = 10.into();
        }
    }
    schema
}

fn normalise(root: &mut Node, source: &mut Source<'_>) {
    let schema = Schema::new(&SCHEMA);
    rename_keys(root, "", &schema.keys(), RECIPE.aliases, source);
    let health_keys = schema.property("health_check").map(Schema::keys).unwrap_or_default();
    if let Some(health) = root.get_mut("health_check") {
        rename_keys(health, "health_check", &health_keys, &[], source);
    }
    split_command(root, "", source);
}

/// `command: server --stdio` without `args` is a command line, as a shell would split it.
pub(super) fn split_command(root: &mut Node, path: &str, source: &mut Source<'_>) {
    if root.get("args").is_some_and(|args| {
        args.kind != NodeKind::Null && !matches!(&args.kind, NodeKind::List(l) if l.is_empty())
    }) {
        return;
    }
    let Some(entry) = root.entry("command").cloned() else { return };
    let Some(line) =
        entry.value.text().filter(|t| t.contains(|c: char| c.is_whitespace() || c == '"' || c == '\''))
    else {
        return;
    };
    let bytes = entry.value.bytes.clone();
    let Some(words) = shlex::split(line) else {
        return source.error(
            &join(path, "command"),
            &bytes,
            "`command` has a quote that is not closed, or a `\\` at its end",
        );
    };
    let Some((command, args)) = words.split_first() else { return };
    let text = |word: &String| Node { kind: NodeKind::Text(word.clone()), bytes: bytes.clone() };
    if !args.is_empty() {
        source.hint(&join(path, "command"), &bytes, "arguments are usually written as a list under `args`");
        root.remove("args");
    }
    let args = Node { kind: NodeKind::List(args.iter().map(text).collect()), bytes: bytes.clone() };
    let command = text(command);
    if let Some(entries) = root.entries_mut() {
        entries.iter_mut().filter(|e| e.key == "command").for_each(|e| e.value = command.clone());
        if !args.list().is_empty() {
            entries.push(Entry { key: "args".to_owned(), key_bytes: entry.key_bytes, value: args });
        }
    }
}

fn rules(root: &Node, source: &mut Source<'_>) {
    if let Some(node) = root.get("command")
        && let Some(command) = node.text()
    {
        if command.trim().is_empty() {
            source.error("command", &node.bytes, "`command` is empty");
        } else if command.contains('\0') {
            source.error("command", &node.bytes, "`command` holds a NUL character");
        }
    }
    for (at, node) in root.get("args").map(Node::list).unwrap_or_default().iter().enumerate() {
        if node.text().is_some_and(|t| t.contains('\0')) {
            source.error(&format!("args[{at}]"), &node.bytes, "an argument holds a NUL character");
        }
    }
    for entry in root.get("env").map(Node::entries).unwrap_or_default() {
        let path = format!("env.{}", entry.key);
        if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            source.error(
                &path,
                &entry.key_bytes,
                format!("`{}` cannot be the name of a variable", entry.key),
            );
        } else if entry.value.text().is_some_and(|t| t.contains('\0')) {
            source.error(&path, &entry.value.bytes, format!("`{path}` holds a NUL character"));
        }
    }
    repeated(root, "languages", source);
    repeated(root, "capabilities", source);
    if let Some(node) = root.get("capabilities").filter(|n| n.list().is_empty()) {
        source.warn(
            "capabilities",
            &node.bytes,
            "an empty `capabilities` lends nothing: leave it out to lend all",
        );
    }
    transport_rules(root, source);
    if let Some(node) = root.get("root_path") {
        if node.text().is_some_and(|t| t.trim().is_empty()) {
            source.error("root_path", &node.bytes, "`root_path` is empty");
        }
        check_template(node, "root_path", source);
    }
}

fn repeated(root: &Node, key: &str, source: &mut Source<'_>) {
    let mut seen = HashSet::new();
    for (at, node) in root.get(key).map(Node::list).unwrap_or_default().iter().enumerate() {
        let Some(text) = node.text() else { continue };
        let path = format!("{key}[{at}]");
        if text.trim().is_empty() {
            source.error(&path, &node.bytes, format!("an entry of `{key}` is empty"));
        } else if !seen.insert(text) {
            source.hint(&path, &node.bytes, format!("`{text}` is there twice"));
        }
    }
}

fn transport_rules(root: &Node, source: &mut Source<'_>) {
    let tcp = root.entry("tcp");
    match (root.get("transport"), tcp) {
        (Some(transport), None) if transport.text() == Some("tcp") => {
            source.error("tcp", &transport.bytes, "`transport: tcp` needs a `tcp` mapping with the `port`");
        }
        (transport, Some(tcp)) if transport.and_then(Node::text) != Some("tcp") => {
            source.warn("tcp", &tcp.key_bytes, "`tcp` has no effect without `transport: tcp`");
        }
        _ => {}
    }
}

/// `transport` and `tcp` as one value; `health_check` with its defaults.
fn lower(mut value: Value) -> Value {
    let Some(map) = value.as_object_mut() else { return value };
    let tcp = map.shift_remove("tcp");
    if map.get("transport").and_then(Value::as_str) == Some("tcp") {
        let mut tcp = tcp.unwrap_or_default();
        if tcp.get("host").is_none() {
            tcp["host"] = "127.0.0.1".into();
        }
        map.insert("transport".to_owned(), json!({ "tcp": tcp }));
    }
    if let Some(Value::Object(given)) = map.get("health_check") {
        let mut whole = serde_json::to_value(HealthCheck::default()).unwrap_or_default();
        for (key, value) in given {
            whole[key.as_str()] = value.clone();
        }
        map.insert("health_check".to_owned(), whole);
    }
    value
}
