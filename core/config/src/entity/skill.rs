//! Skill files (`agents skill add`).

use std::collections::HashMap;
use std::sync::LazyLock;

use agents_domain::QualifiedName;
use agents_domain::skill::SkillDefinition;
use serde_json::{Map, Value, json};

use super::{EntityKind, LoadResult, Recipe, Registry, load, problems_of, rename_keys, schema_of};
use crate::yaml::schema::Schema;
use crate::yaml::{Entry, Node, NodeKind, Source, join};

pub(super) const KIND: EntityKind = EntityKind {
    name: "skill",
    registry: Registry::Skill,
    refers: &[("includes", Registry::Skill)],
    check: |text, file| problems_of(load_skill(text, file)),
    schema: || &SCHEMA,
    marks: &[
        "skill",
        "tools",
        "includes",
        "include_skills",
        "inline_tools",
        "anonymous_tools",
        "mcp_servers",
        "agent_skills",
        "agent_skill_folders",
        "agent_skill_dirs",
        "agent_skills_dirs",
        "builtins",
    ],
    recipe: &RECIPE,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(file_schema);

const RECIPE: Recipe = Recipe {
    wrappers: &["skill"],
    aliases: &[
        ("anonymous_tools", "inline_tools"),
        ("include_skills", "includes"),
        ("agent_skill_folders", "agent_skills"),
        ("agent_skills_dirs", "agent_skill_dirs"),
    ],
    schema: || &SCHEMA,
    normalise,
    rules,
    lower,
};

/// Loads a skill's file. `file_name` is what problems call it.
pub fn load_skill(text: &str, file_name: &str) -> LoadResult<SkillDefinition> {
    load(&RECIPE, text, file_name)
}

/// Lists whose entries may be a bare name in place of a mapping, with the key it stands for.
const SHORT: &[(&str, &str)] =
    &[("tools", "name"), ("includes", "name"), ("agent_skills", "path"), ("builtins", "group")];

/// What a tool may do, where it may also stand flat beside the tool's name.
fn capability_keys() -> Map<String, Value> {
    let schema = schema_of::<agents_domain::skill::CapabilityOverride>();
    schema["properties"].as_object().cloned().unwrap_or_default()
}

fn file_schema() -> Value {
    let mut schema = schema_of::<SkillDefinition>();
    let object = |description: &str| json!({ "description": description, "type": "object", "additionalProperties": true });
    let Some(defs) = schema.get_mut("$defs").and_then(Value::as_object_mut) else { return schema };
    let keys = |defs: &mut Map<String, Value>, name: &str| -> Option<Map<String, Value>> {
        defs.get_mut(name)?.get_mut("properties")?.as_object().cloned()
    };
    if let Some(mut tool) = keys(defs, "ToolReference") {
        tool.insert(
            "description".to_owned(),
            json!({ "type": "string", "description": "What it is for, here." }),
        );
        tool.extend(capability_keys());
        defs["ToolReference"]["properties"] = tool.into();
    }
    if let Some(mut tool) = keys(defs, "InlineTool") {
        tool.insert(
            "source".to_owned(),
            json!({ "type": "string", "enum": ["custom"], "description": "Always `custom`; may be left out." }),
        );
        tool.insert(
            "input_schema".to_owned(),
            object("JSON Schema of its arguments; any object unless given."),
        );
        tool.insert("output_schema".to_owned(), object("JSON Schema of what it returns."));
        tool.extend(capability_keys());
        defs["InlineTool"]["properties"] = tool.into();
    }
    for (name, key) in [("InlineTool", "timeout"), ("McpServer", "timeout")] {
        if let Some(timeout) = defs.get_mut(name).and_then(|def| def["properties"].get_mut(key)) {
            timeout["minimum"] = 1.into();
            timeout["maximum"] = 86400.into();
        }
    }
    // An override may be left out, and so may each of its parts.
    for name in ["ToolOverride", "CapabilityOverride"] {
        if let Some(def) = defs.get_mut(name).and_then(Value::as_object_mut) {
            def.remove("required");
        }
    }
    schema
}

fn normalise(root: &mut Node, source: &mut Source<'_>) {
    let top = Schema::new(&SCHEMA);
    rename_keys(root, "", &top.keys(), RECIPE.aliases, source);
    for (list, key) in SHORT {
        for_items(root, list, |item, _| short(item, key));
    }
    let known = |list: &str| top.property(list).and_then(Schema::items).map(Schema::keys).unwrap_or_default();
    for list in ["tools", "inline_tools", "includes", "mcp_servers", "agent_skills", "builtins"] {
        let keys = known(list);
        for_items(root, list, |item, path| rename_keys(item, path, &keys, &[], source));
    }
    for_items(root, "tools", |item, path| {
        inner(item, "override", path, source);
        listed(item);
    });
    for_items(root, "includes", |item, path| {
        for_items(item, "tool_overrides", |said, at| inner(said, "override", &join(path, at), source));
    });
    let mut number = 0;
    for_items(root, "inline_tools", |item, path| {
        number += 1;
        capability(item, path, source);
        listed(item);
        if item.get("name").is_none() {
            push(item, "name", &format!("inline_{number}"));
        }
    });
    for_items(root, "mcp_servers", |item, path| server(item, path, source));
    for_items(root, "agent_skills", |item, path| {
        capability(item, path, source);
        if let Some(node) = item.get_mut("allowed_tools")
            && let NodeKind::Text(text) = &node.kind
        {
            // As in SKILL.md: parted by spaces or commas, with what stands in brackets kept together.
            let bytes = node.bytes.clone();
            let tools = super::agent_skill::tool_patterns(text).into_iter();
            node.kind = NodeKind::List(
                tools.map(|tool| Node { kind: NodeKind::Text(tool), bytes: bytes.clone() }).collect(),
            );
        }
    });
}

/// Each entry of a list with its path.
fn for_items(root: &mut Node, list: &str, mut f: impl FnMut(&mut Node, &str)) {
    if let Some(NodeKind::List(items)) = root.get_mut(list).map(|n| &mut n.kind) {
        for (at, item) in items.iter_mut().enumerate() {
            f(item, &format!("{list}[{at}]"));
        }
    }
}

/// `local/github` means `{name: local/github}`.
fn short(item: &mut Node, key: &str) {
    if let NodeKind::Text(_) = &item.kind {
        let bytes = item.bytes.clone();
        let value = Node { kind: std::mem::replace(&mut item.kind, NodeKind::Null), bytes: bytes.clone() };
        item.kind = NodeKind::Map(vec![Entry { key: key.to_owned(), key_bytes: bytes, value }]);
    }
}

/// The keys of `override` and of the `capability` in it.
fn inner(item: &mut Node, key: &str, path: &str, source: &mut Source<'_>) {
    let Some(said) = item.get_mut(key) else { return };
    let path = join(path, key);
    rename_keys(said, &path, &["description", "capability"], &[], source);
    capability(said, &path, source);
}

fn capability(item: &mut Node, path: &str, source: &mut Source<'_>) {
    let keys = capability_keys();
    let keys: Vec<&str> = keys.keys().map(String::as_str).collect();
    if let Some(of) = item.get_mut("capability") {
        rename_keys(of, &join(path, "capability"), &keys, &[], source);
        listed(of);
    }
}

/// `write_scope: x` means `write_scope: [x]`; so it is with `side_effects`. A mapping of scopes gives its keys and values.
fn listed(item: &mut Node) {
    for key in ["write_scope", "side_effects"] {
        let Some(node) = item.get_mut(key) else { continue };
        let bytes = node.bytes.clone();
        match &node.kind {
            NodeKind::Text(_) => {
                let one = Node { kind: std::mem::replace(&mut node.kind, NodeKind::Null), bytes };
                node.kind = NodeKind::List(vec![one]);
            }
            NodeKind::Map(entries) => {
                let texts = entries.iter().flat_map(|entry| match &entry.value.kind {
                    NodeKind::List(items) => items
                        .iter()
                        .map(|item| format!("{}:{}", entry.key, item.text().unwrap_or_default()))
                        .collect(),
                    NodeKind::Text(text) => vec![format!("{}:{text}", entry.key)],
                    _ => vec![entry.key.clone()],
                });
                let nodes =
                    texts.map(|text| Node { kind: NodeKind::Text(text), bytes: bytes.clone() }).collect();
                node.kind = NodeKind::List(nodes);
            }
            _ => {}
        }
    }
}

fn server(item: &mut Node, path: &str, source: &mut Source<'_>) {
    super::language_server::split_command(item, path, source);
    if item.get("transport").is_none() {
        if item.get("command").is_some() {
            push(item, "transport", "stdio");
        } else if item.get("url").is_some() {
            push(item, "transport", "streamable-http");
        }
    } else if let Some(Node { kind: NodeKind::Text(word), bytes }) = item.get_mut("transport")
        && matches!(word.as_str(), "http" | "streamable_http" | "streamableHttp")
    {
        source.hint(
            &join(path, "transport"),
            bytes,
            format!("`{word}` is usually written `streamable-http`"),
        );
        "streamable-http".clone_into(word);
    }
    if item.get("name").is_none() {
        let words = std::iter::once(item.get("command").and_then(Node::text))
            .chain(item.get("args").map(Node::list).unwrap_or_default().iter().map(Node::text));
        let host = item.get("url").and_then(Node::text).and_then(|url| url.split('/').nth(2));
        // `npx -y @acme/mcp-linear` is about `mcp-linear`.
        let word = words
            .flatten()
            .filter(|word| {
                !word.starts_with('-') && !matches!(*word, "npx" | "uvx" | "node" | "python3" | "python")
            })
            .find_map(|word| word.rsplit('/').find(|part| !part.is_empty() && *part != "."));
        if let Some(name) = word.or(host).map(str::to_owned) {
            push(item, "name", &name);
        }
    }
    let keys = capability_keys();
    let mut keys: Vec<&str> = keys.keys().map(String::as_str).collect();
    keys.extend(["tool", "description"]);
    for_items(item, "overrides", |said, at| {
        rename_keys(said, &join(path, at), &keys, &[("name", "tool")], source);
        listed(said);
    });
    if let Some(filter) = item.get_mut("tool_filter") {
        rename_keys(filter, &join(path, "tool_filter"), &["include", "exclude"], &[], source);
    }
}

fn push(node: &mut Node, key: &str, word: &str) {
    let bytes = node.entries().first().map_or(node.bytes.clone(), |e| e.key_bytes.clone());
    let value = Node { kind: NodeKind::Text(word.to_owned()), bytes: bytes.clone() };
    if let Some(entries) = node.entries_mut() {
        entries.push(Entry { key: key.to_owned(), key_bytes: bytes, value });
    }
}

fn rules(root: &Node, source: &mut Source<'_>) {
    unique(root, "tools", "name", source);
    unique(root, "inline_tools", "name", source);
    unique(root, "includes", "name", source);
    unique(root, "mcp_servers", "name", source);
    unique(root, "agent_skills", "path", source);
    unique(root, "builtins", "group", source);
    let named = |node: &Node| node.text().and_then(|text| text.parse::<QualifiedName>().ok());
    let own = root.get("name").and_then(named);
    for (at, include) in items(root, "includes") {
        if let Some(node) = include.get("name").filter(|node| own.is_some() && named(node) == own) {
            source.error(&format!("{at}.name"), &node.bytes, "a skill cannot include itself");
        }
        for (inside, said) in items(include, "tool_overrides") {
            if let Some(overrides) = said.get("override") {
                capability_rules(overrides, &format!("{at}.{inside}.override"), source);
            }
        }
    }
    for (at, tool) in items(root, "tools") {
        capability_rules(tool, &at, source);
        if let Some(overrides) = tool.get("override") {
            capability_rules(overrides, &format!("{at}.override"), source);
        }
    }
    for (at, tool) in items(root, "inline_tools") {
        capability_rules(tool, &at, source);
        inline_rules(tool, &at, source);
    }
    for (at, server) in items(root, "mcp_servers") {
        server_rules(server, &at, source);
    }
    for (at, folder) in items(root, "agent_skills") {
        capability_rules(folder, &at, source);
        for key in ["path", "name"] {
            not_empty(folder, &at, key, source);
        }
    }
}

fn items<'n>(root: &'n Node, list: &'n str) -> impl Iterator<Item = (String, &'n Node)> {
    let items = root.get(list).map(Node::list).unwrap_or_default();
    items.iter().enumerate().map(move |(at, item)| (format!("{list}[{at}]"), item))
}

fn unique(root: &Node, list: &str, key: &str, source: &mut Source<'_>) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for (at, item) in items(root, list) {
        let Some(node) = item.get(key) else { continue };
        let Some(name) = node.text() else { continue };
        let path = join(&at, key);
        if name.trim().is_empty() {
            source.error(&path, &node.bytes, format!("`{key}` is empty"));
            continue;
        }
        let line = source.range(&node.bytes).start.line + 1;
        if let Some(first) = seen.insert(name.to_owned(), line) {
            let message = format!("`{name}` is there twice in `{list}`; the first is on line {first}");
            source.error(&path, &node.bytes, message);
        }
    }
}

fn not_empty(item: &Node, path: &str, key: &str, source: &mut Source<'_>) {
    if let Some(node) = item.get(key).filter(|node| node.text().is_some_and(|text| text.trim().is_empty())) {
        source.error(&join(path, key), &node.bytes, format!("`{key}` is empty"));
    }
}

/// A tool does not both write and only read (TOOL-009).
fn capability_rules(item: &Node, path: &str, source: &mut Source<'_>) {
    let both = |of: &Node, path: &str, source: &mut Source<'_>| {
        let is = |key: &str| of.get(key).map(|n| &n.kind) == Some(&NodeKind::Bool(true));
        if let Some(node) = of.get("writes").filter(|_| is("writes") && is("read_only")) {
            let message = "a tool cannot both write and be `read_only`";
            source.error(&join(path, "writes"), &node.bytes, message);
        }
    };
    both(item, path, source);
    if let Some(of) = item.get("capability") {
        both(of, &join(path, "capability"), source);
    }
}

fn inline_rules(tool: &Node, path: &str, source: &mut Source<'_>) {
    not_empty(tool, path, "code", source);
    if let Some(node) = tool.get("name")
        && let Some(name) = node.text()
        && !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    {
        let message = format!("`{name}` is no name of an inline tool: use letters, digits, `_` and `-`");
        source.error(&join(path, "name"), &node.bytes, message);
    }
    if let Some(schema) = tool.get("input_schema")
        && let Some(kind) = schema.get("type").filter(|kind| kind.text() != Some("object"))
    {
        let message = "the schema of the arguments must be of `type: object`";
        source.error(&format!("{path}.input_schema.type"), &kind.bytes, message);
    }
}

fn server_rules(server: &Node, path: &str, source: &mut Source<'_>) {
    let place = server.entries().first().map_or(server.bytes.clone(), |e| e.key_bytes.clone());
    let stdio = server.get("transport").and_then(Node::text) == Some("stdio");
    let (needed, other) = if stdio { ("command", "url") } else { ("url", "command") };
    let transport = server.get("transport").and_then(Node::text).unwrap_or_default();
    if server.get(needed).is_none() {
        let message = format!("`transport: {transport}` needs a `{needed}`");
        source.error(&join(path, needed), &place, message);
    }
    if let Some(entry) = server.entry(other) {
        let message = format!("`{other}` has no meaning for `transport: {transport}`");
        source.error(&join(path, other), &entry.key_bytes, message);
    }
    for key in ["command", "url", "name"] {
        not_empty(server, path, key, source);
    }
    if let Some(node) = server.get("url")
        && let Some(url) = node.text()
        && !url.contains("${")
        && !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
    {
        let message = format!("`{url}` is no address: it starts with `https://` or `http://`");
        source.error(&join(path, "url"), &node.bytes, message);
    }
    for key in ["env", "headers"] {
        for entry in server.get(key).map(Node::entries).unwrap_or_default() {
            let path = format!("{path}.{key}.{}", entry.key);
            let odd = entry.key.is_empty() || entry.key.contains(['=', '\0', '\n', ':', ' ']);
            if odd {
                source.error(&path, &entry.key_bytes, format!("`{}` cannot be a name here", entry.key));
            } else if entry.value.text().is_some_and(|t| t.contains(['\0', '\n', '\r'])) {
                source.error(
                    &path,
                    &entry.value.bytes,
                    format!("`{path}` holds a character that is not allowed"),
                );
            } else if looks_secret(&entry.key)
                && entry.value.text().is_some_and(|t| !t.is_empty() && !t.contains("${"))
            {
                let message = format!(
                    "this looks like a secret, and files are kept as they are: write `${{{}}}`",
                    variable(&entry.key)
                );
                source.warn(&path, &entry.value.bytes, message);
            }
        }
    }
    for (at, said) in items(server, "overrides") {
        capability_rules(said, &format!("{path}.{at}"), source);
    }
    if let Some(include) = server.get("tool_filter").and_then(|filter| filter.get("include"))
        && include.list().is_empty()
    {
        let message = "`include` is empty: no tool of the server would be offered";
        source.warn(&format!("{path}.tool_filter.include"), &include.bytes, message);
    }
}

fn looks_secret(key: &str) -> bool {
    agents_domain::redact::is_secret_key(key)
}

/// `X-Api-Key` as the name of a variable.
fn variable(key: &str) -> String {
    key.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// What may stand flat beside a tool's name goes where the type has it.
fn lower(mut value: Value) -> Value {
    let keys = capability_keys();
    if let Some(tools) = value.get_mut("tools").and_then(Value::as_array_mut) {
        for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
            let flat = take(tool, &keys);
            let description = tool.shift_remove("description");
            if flat.is_empty() && description.is_none() {
                continue;
            }
            let said = tool.entry("override").or_insert_with(|| json!({}));
            merge(said, flat);
            if let Some(description) = description.filter(|_| said.get("description").is_none()) {
                said["description"] = description;
            }
        }
    }
    if let Some(tools) = value.get_mut("inline_tools").and_then(Value::as_array_mut) {
        for tool in tools {
            let Some(map) = tool.as_object_mut() else { continue };
            map.shift_remove("source");
            let flat = take(map, &keys);
            merge(tool, flat);
        }
    }
    value
}

fn take(map: &mut Map<String, Value>, keys: &Map<String, Value>) -> Map<String, Value> {
    keys.keys().filter_map(|key| Some((key.clone(), map.shift_remove(key)?))).collect()
}

/// Puts flat capability keys into `capability`, which wins.
fn merge(into: &mut Value, mut flat: Map<String, Value>) {
    if let Some(said) = into.get("capability").and_then(Value::as_object) {
        flat.extend(said.clone());
    }
    if !flat.is_empty() {
        into["capability"] = flat.into();
    }
}
