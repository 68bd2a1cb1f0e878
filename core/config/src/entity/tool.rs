//! Tool files (`agents tool add`).

use std::sync::LazyLock;

use agents_domain::tool::{CostProfile, ToolDefinition};
use serde_json::{Value, json};

use super::{EntityKind, LoadResult, Recipe, Registry, load, problems_of, rename_keys, schema_of};
use crate::yaml::schema::Schema;
use crate::yaml::{Entry, Node, NodeKind, Source};

pub(super) const KIND: EntityKind = EntityKind {
    name: "tool",
    registry: Registry::Tool,
    refers: &[],
    check: |text, file| problems_of(load_tool(text, file)),
    schema: || &SCHEMA,
    marks: &["code", "capability", "resource_slots", "writes"],
    recipe: &RECIPE,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(file_schema);

const RECIPE: Recipe = Recipe {
    wrappers: &["tool"],
    aliases: &[
        ("timeout_seconds", "timeout"),
        ("parameters", "input_schema"),
        ("slots", "resource_slots"),
        ("env_vars", "env"),
        ("tool_name", "mcp_tool_name"),
    ],
    schema: || &SCHEMA,
    normalise,
    rules,
    lower: |value| value,
};

/// Other names of keys of a slot.
const SLOT_ALIASES: &[(&str, &str)] = &[
    ("resource_type", "type"),
    ("static", "static_resource"),
    ("bind", "static_resource"),
    ("param", "from_param"),
];

/// Loads a tool file. `file_name` is what problems call it.
pub fn load_tool(text: &str, file_name: &str) -> LoadResult<ToolDefinition> {
    load(&RECIPE, text, file_name)
}

fn file_schema() -> Value {
    let mut schema = schema_of::<ToolDefinition>();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return schema;
    };
    for key in ["input_schema", "output_schema"] {
        if let Some(object) = properties.get_mut(key) {
            object["type"] = "object".into();
            object["additionalProperties"] = true.into();
        }
    }
    properties.insert(
        "mcp_server".to_owned(),
        json!({
            "description": "The MCP server, for `source: mcp`: its name, the command that starts it, or both as a mapping.",
        }),
    );
    properties.insert(
        "write_scope".to_owned(),
        json!({
            "description": "What it may change: a description, paths, or a mapping of `file_paths` and `resource_slots`.",
        }),
    );
    if let Some(timeout) = properties.get_mut("timeout") {
        timeout["minimum"] = 1.into();
        timeout["maximum"] = 86400.into();
    }
    schema
}

fn normalise(root: &mut Node, source: &mut Source<'_>) {
    let schema = Schema::new(&SCHEMA);
    let mut known = schema.keys();
    known.extend(["capability", "resources"]);
    rename_keys(root, "", &known, RECIPE.aliases, source);
    lift(root, "capability", source);
    lift_environment(root);
    slots(root, source);
    if root.get("source").is_none() {
        let word =
            ["code", "mcp_server", "agent_skill_path"].into_iter().zip(["custom", "mcp", "agent_skill"]);
        if let Some((key, word)) = word.into_iter().find(|(key, _)| root.get(key).is_some()) {
            let bytes = root.entry(key).map_or(0..0, |entry| entry.key_bytes.clone());
            let value = Node { kind: NodeKind::Text(word.to_owned()), bytes: bytes.clone() };
            if let Some(entries) = root.entries_mut() {
                entries.push(Entry { key: "source".to_owned(), key_bytes: bytes, value });
            }
        }
    }
}

/// `capability: {writes: true}` means `writes: true`.
fn lift(root: &mut Node, key: &str, source: &mut Source<'_>) {
    let Some(block) = root.remove(key) else { return };
    if !matches!(block.value.kind, NodeKind::Map(_)) {
        return source.error(key, &block.value.bytes, format!("`{key}` holds keys such as `writes: true`"));
    }
    for entry in block.value.entries() {
        if root.get(&entry.key).is_some() {
            let message = format!("`{}` is there twice: keep one", entry.key);
            source.error(&format!("{key}.{}", entry.key), &entry.key_bytes, message);
        } else if let Some(entries) = root.entries_mut() {
            entries.push(entry.clone());
        }
    }
}

/// `environment` inside of `write_scope` stands at the top (G-33).
fn lift_environment(root: &mut Node) {
    if root.get("environment").is_some() {
        return;
    }
    let Some(scope) = root.get_mut("write_scope") else { return };
    let mut lifted = scope.remove("environment");
    if let NodeKind::List(items) = &mut scope.kind {
        for item in items.iter_mut() {
            lifted = lifted.or_else(|| item.remove("environment"));
        }
        items.retain(|item| !matches!(&item.kind, NodeKind::Map(entries) if entries.is_empty()));
    }
    if let (Some(entry), Some(entries)) = (lifted, root.entries_mut()) {
        entries.push(entry);
    }
}

/// `resources: {repo: {type: ...}}` means a list of slots; each slot's keys get their usual names.
fn slots(root: &mut Node, source: &mut Source<'_>) {
    if let Some(mut block) = root.remove("resources") {
        if let NodeKind::Map(entries) = &block.value.kind {
            let slots = entries.iter().map(|entry| {
                let mut slot = entry.value.clone();
                let name = Node { kind: NodeKind::Text(entry.key.clone()), bytes: entry.key_bytes.clone() };
                match &mut slot.kind {
                    NodeKind::Map(keys) => keys.insert(
                        0,
                        Entry { key: "name".to_owned(), key_bytes: entry.key_bytes.clone(), value: name },
                    ),
                    _ => {
                        let of = Entry {
                            key: "type".to_owned(),
                            key_bytes: entry.key_bytes.clone(),
                            value: slot.clone(),
                        };
                        let name =
                            Entry { key: "name".to_owned(), key_bytes: entry.key_bytes.clone(), value: name };
                        slot.kind = NodeKind::Map(vec![name, of]);
                    }
                }
                slot
            });
            block.value.kind = NodeKind::List(slots.collect());
        }
        block.key = "resource_slots".to_owned();
        let there = root.get("resource_slots").is_some();
        if let Some(entries) = root.entries_mut().filter(|_| !there) {
            entries.push(block);
        }
    }
    const KNOWN: &[&str] =
        &["name", "type", "access", "required", "description", "static_resource", "from_param", "binding"];
    let Some(Node { kind: NodeKind::List(slots), .. }) = root.get_mut("resource_slots") else { return };
    for (at, slot) in slots.iter_mut().enumerate() {
        let path = format!("resource_slots[{at}]");
        rename_keys(slot, &path, KNOWN, SLOT_ALIASES, source);
        // `binding: contextual` is what is meant without it; the other two are told by their keys.
        let Some(binding) = slot.remove("binding") else { continue };
        match binding.value.text() {
            Some("contextual") => {}
            Some("static") if slot.get("static_resource").is_some() => {}
            Some("parameter") if slot.get("from_param").is_some() => {}
            Some("parameter") => {
                if let (Some(name), Some(entries)) = (slot.get("name").cloned(), slot.entries_mut()) {
                    let key_bytes = binding.key_bytes.clone();
                    entries.push(Entry { key: "from_param".to_owned(), key_bytes, value: name });
                }
            }
            Some("static") => {
                let message = "`binding: static` needs `static_resource`";
                source.error(&format!("{path}.binding"), &binding.key_bytes, message);
            }
            _ => {
                let message = "`binding` is `contextual`, `static` or `parameter`";
                source.error(&format!("{path}.binding"), &binding.value.bytes, message);
            }
        }
    }
}

fn rules(root: &Node, source: &mut Source<'_>) {
    let has = |key: &str| root.get(key).is_some();
    let name = root.get("name").map_or(0..0, |node| node.bytes.clone());
    if root.get("name").and_then(Node::text).is_some_and(|name| name.starts_with("builtin/")) {
        source.error("name", &name, "`builtin/` is for what comes with the program");
    }
    if root.get("description").and_then(Node::text).is_some_and(|text| text.trim().is_empty()) {
        source.error("description", &name, "`description` is empty: a model chooses a tool by it");
    }
    let word = root.get("source").and_then(Node::text);
    let needs: &[&str] = match word {
        Some("custom") => &["code"],
        Some("mcp") => &["mcp_server", "mcp_tool_name"],
        Some("agent_skill") => &["agent_skill_path"],
        _ => &[],
    };
    for key in needs.iter().filter(|key| !has(key)) {
        source.error(key, &name, format!("`source: {}` needs `{key}`", word.unwrap_or_default()));
    }
    let on = |key: &str| matches!(root.get(key).map(|node| &node.kind), Some(NodeKind::Bool(true)));
    if on("read_only") && on("writes") {
        let place = root.entry("writes").map_or(name.clone(), |entry| entry.key_bytes.clone());
        source.error("writes", &place, "a tool that is `read_only` cannot say `writes: true`");
    }
    for key in ["input_schema", "output_schema"] {
        let Some(node) = root.get(key) else { continue };
        let schema = node.to_json();
        if let Err(error) = jsonschema::meta::validate(&schema) {
            source.error(key, &node.bytes, format!("`{key}` is no JSON Schema: {error}"));
        } else if key == "input_schema"
            && let Some(kind) = node.get("type").filter(|kind| kind.text() != Some("object"))
        {
            source.error(
                "input_schema.type",
                &kind.bytes,
                "the schema of the arguments must be of `type: object`",
            );
        }
    }
    if let Some(node) = root.get("cost_profile")
        && let Ok(profile) = serde_json::from_value::<CostProfile>(node.to_json())
        && let Err(why) = profile.limit()
    {
        source.error("cost_profile.rate_limit", &node.bytes, why);
    }
    let mut seen: Vec<&str> = Vec::new();
    for (at, slot) in root.get("resource_slots").map(Node::list).unwrap_or_default().iter().enumerate() {
        let Some(of) = slot.get("name").and_then(Node::text) else { continue };
        if seen.contains(&of) {
            let path = format!("resource_slots[{at}].name");
            source.error(&path, &slot.bytes, format!("there are two slots called `{of}`"));
        }
        seen.push(of);
        if let (Some(both), true) = (slot.entry("from_param"), slot.get("static_resource").is_some()) {
            let path = format!("resource_slots[{at}].from_param");
            source.error(&path, &both.key_bytes, "`from_param` and `static_resource` exclude each other");
        }
    }
}
