//! Spellings of graphs: nodes as a list, edges as pairs, keys below `config`.

use crate::yaml::schema::Schema;
use crate::yaml::{Entry, Node, NodeKind, Source, join};

use super::super::rename_keys;

/// Other names of a route's keys.
const ROUTE_ALIASES: &[(&str, &str)] = &[("entry_node", "entry_point"), ("exit_points", "exit_nodes")];

/// Other names of an edge's keys.
const EDGE_ALIASES: &[(&str, &str)] =
    &[("from", "source"), ("to", "target"), ("from_node", "source"), ("to_node", "target")];

/// Other names of a node's keys.
const NODE_ALIASES: &[(&str, &str)] = &[("actor", "agent"), ("actor_path", "agent"), ("lsp_bindings", "lsp")];

/// Keys of a node's `config`.
const CONFIG_KEYS: &[&str] = &[
    "model",
    "prompt",
    "tools",
    "tool_name",
    "parameters",
    "conditions",
    "actor_path",
    "agent",
    "function",
    "condition",
    "subgraph",
    "rules",
];

/// Brings a route to the usual spelling. `route` is its schema; in a flat file, nodes and edges have more keys to give.
pub(super) fn normalise(node: &mut Node, path: &str, route: Schema<'_>, flat: bool, source: &mut Source<'_>) {
    if !matches!(node.kind, NodeKind::Map(_)) {
        return;
    }
    if flat {
        for key in ["nodes", "edges", "exit_nodes"] {
            missing(node, key, path, source);
        }
        if node.get("entry_node").is_none() && node.get("entry_point").is_none() {
            missing(node, "entry_node", path, source);
        }
        quiet(node, ROUTE_ALIASES);
    } else {
        rename_keys(node, path, &route.keys(), ROUTE_ALIASES, source);
    }
    if node.get("type").is_none() && (flat || node.get("nodes").is_some()) {
        push(node, "type", "graph");
    }
    let node_schema = route.property("nodes").and_then(Schema::rest);
    let edge_schema = route.property("edges").and_then(Schema::items);
    if let Some(nodes) = node.get_mut("nodes") {
        let path = join(path, "nodes");
        by_name(nodes, &path, flat, source);
        for entry in nodes.entries_mut().into_iter().flatten() {
            let path = join(&path, &entry.key);
            if let Some(schema) = node_schema {
                normalise_node(&mut entry.value, &path, schema, flat, source);
            }
        }
    }
    if let Some(NodeKind::List(edges)) = node.get_mut("edges").map(|edges| &mut edges.kind) {
        let path = join(path, "edges");
        let keys = edge_schema.map(Schema::keys).unwrap_or_default();
        let all = std::mem::take(edges);
        for (at, edge) in all.into_iter().enumerate() {
            edges.extend(normalise_edge(edge, &format!("{path}[{at}]"), &keys, flat, source));
        }
    }
}

/// Says that a key is missing.
pub(super) fn missing(node: &Node, key: &str, path: &str, source: &mut Source<'_>) {
    if node.get(key).is_none() {
        let place = node.entries().first().map_or(&node.bytes, |entry| &entry.key_bytes).clone();
        let message = match path {
            "" => format!("the key `{key}` is missing"),
            path => format!("the key `{key}` of `{path}` is missing"),
        };
        source.error(&join(path, key), &place, message);
    }
}

/// Gives keys their usual names without a word: both spellings are right here.
pub(super) fn quiet(node: &mut Node, aliases: &[(&str, &str)]) {
    for (alias, key) in aliases {
        if node.get(key).is_none()
            && let Some(entry) =
                node.entries_mut().and_then(|entries| entries.iter_mut().find(|e| e.key == *alias))
        {
            entry.key = (*key).to_owned();
        }
    }
}

/// Adds a key with a text, without a place of its own.
pub(super) fn push(node: &mut Node, key: &str, word: &str) {
    let bytes = node.entries().first().map_or(node.bytes.clone(), |e| e.key_bytes.clone());
    let value = Node { kind: NodeKind::Text(word.to_owned()), bytes: bytes.clone() };
    if let Some(entries) = node.entries_mut() {
        entries.push(Entry { key: key.to_owned(), key_bytes: bytes, value });
    }
}

/// A list of nodes that carry their names becomes a mapping.
fn by_name(nodes: &mut Node, path: &str, flat: bool, source: &mut Source<'_>) {
    let NodeKind::List(items) = &mut nodes.kind else {
        for entry in nodes.entries_mut().into_iter().flatten() {
            quiet(&mut entry.value, &[("name", "title")]);
            if flat {
                check_id(&entry.key, &entry.key_bytes, &join(path, &entry.key), source);
            }
        }
        return;
    };
    let mut entries: Vec<Entry> = Vec::new();
    for (at, mut item) in std::mem::take(items).into_iter().enumerate() {
        let path = format!("{path}[{at}]");
        if flat {
            for key in ["id", "type", "name", "description"] {
                missing(&item, key, &path, source);
            }
        }
        let named = item.remove("id");
        let named = match named {
            Some(id) => {
                quiet(&mut item, &[("name", "title")]);
                Some(id)
            }
            None => item.remove("name"),
        };
        let Some(named) = named else {
            if !flat {
                missing(&item, "name", &path, source);
            }
            continue;
        };
        let bytes = named.value.bytes.clone();
        let Some(id) = named.value.text().map(str::to_owned) else {
            let message = format!("the name of a node is a text, not {}", named.value.describe());
            source.error(&join(&path, &named.key), &bytes, message);
            continue;
        };
        if flat {
            check_id(&id, &bytes, &join(&path, "id"), source);
        }
        if let Some(first) = entries.iter().find(|entry| entry.key == id) {
            let line = source.range(&first.key_bytes).start.line + 1;
            source.error(
                &join(&path, &named.key),
                &bytes,
                format!("there are two nodes `{id}`; the first is on line {line}"),
            );
            continue;
        }
        entries.push(Entry { key: id, key_bytes: bytes, value: item });
    }
    nodes.kind = NodeKind::Map(entries);
}

fn check_id(id: &str, bytes: &std::ops::Range<usize>, path: &str, source: &mut Source<'_>) {
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        source.error(path, bytes, format!("`{id}` is no id of a node: use letters, digits, `_` and `-`"));
    }
}

fn normalise_node(node: &mut Node, path: &str, schema: Schema<'_>, flat: bool, source: &mut Source<'_>) {
    if !matches!(node.kind, NodeKind::Map(_)) {
        return;
    }
    if let Some(Node { kind: NodeKind::Text(word), .. }) = node.get_mut("type")
        && matches!(word.as_str(), "START" | "END")
    {
        *word = word.to_ascii_lowercase();
    }
    // `config` of a node holds what could stand beside it.
    if let Some(config) = node.remove("config") {
        let at = join(path, "config");
        if !flat {
            source.hint(&at, &config.key_bytes, "what `config` of a node holds usually stands beside it");
        }
        match config.value.kind {
            NodeKind::Map(entries) => {
                for entry in entries {
                    if !CONFIG_KEYS.contains(&entry.key.as_str()) {
                        let known = CONFIG_KEYS.join(", ");
                        source.error(
                            &join(&at, &entry.key),
                            &entry.key_bytes,
                            format!("there is no key `{}`: the keys here are {known}", entry.key),
                        );
                    } else if node.get(&entry.key).is_some() {
                        source.error(
                            &join(&at, &entry.key),
                            &entry.key_bytes,
                            format!("`{}` is there twice: in `config` and beside it", entry.key),
                        );
                    } else if let Some(entries) = node.entries_mut() {
                        entries.push(entry);
                    }
                }
            }
            NodeKind::Null => {}
            _ => {
                source.error(
                    &at,
                    &config.value.bytes,
                    format!("`{at}` must be a mapping, not {}", config.value.describe()),
                );
            }
        }
    }
    quiet(node, NODE_ALIASES);
    for alias in ["tool", "tool_name"] {
        let Some(mut entry) = node.remove(alias) else { continue };
        if node.get("tools").is_some() {
            source.error(
                &join(path, alias),
                &entry.key_bytes,
                format!("`{alias}` and `tools` mean the same: keep one"),
            );
            continue;
        }
        let bytes = entry.value.bytes.clone();
        entry.key = "tools".to_owned();
        entry.value = Node { kind: NodeKind::List(vec![entry.value]), bytes };
        if let Some(entries) = node.entries_mut() {
            entries.push(entry);
        }
    }
    if let Some(tools) = node.get_mut("tools")
        && matches!(tools.kind, NodeKind::Text(_))
    {
        let bytes = tools.bytes.clone();
        tools.kind = NodeKind::List(vec![Node { kind: tools.kind.clone(), bytes }]);
    }
    rename_keys(node, path, &schema.keys(), &[], source);
    null_servers(node);
}

/// A template that found no server leaves an empty entry.
pub(super) fn null_servers(node: &mut Node) {
    if let Some(NodeKind::List(servers)) = node.get_mut("lsp").map(|lsp| &mut lsp.kind) {
        servers.retain(|server| server.kind != NodeKind::Null);
    }
}

/// One edge, or several for `from: [a, b]`.
fn normalise_edge(edge: Node, path: &str, keys: &[&str], flat: bool, source: &mut Source<'_>) -> Vec<Node> {
    let mut edge = match edge.kind {
        NodeKind::List(ends) if ends.len() == 2 => {
            let mut ends = ends.into_iter();
            let entry =
                |key: &str, value: Node| Entry { key: key.to_owned(), key_bytes: value.bytes.clone(), value };
            let entries = [("source", ends.next()), ("target", ends.next())];
            let entries = entries.into_iter().filter_map(|(key, end)| Some(entry(key, end?))).collect();
            Node { kind: NodeKind::Map(entries), bytes: edge.bytes }
        }
        kind => Node { kind, bytes: edge.bytes },
    };
    if flat {
        quiet(&mut edge, EDGE_ALIASES);
    } else {
        rename_keys(&mut edge, path, keys, EDGE_ALIASES, source);
    }
    for key in ["source", "target"] {
        let several = match edge.get(key).map(|end| &end.kind) {
            Some(NodeKind::List(ends)) if !ends.is_empty() => ends.clone(),
            _ => continue,
        };
        return several
            .into_iter()
            .flat_map(|end| {
                let mut one = edge.clone();
                if let Some(value) = one.get_mut(key) {
                    *value = end;
                }
                normalise_edge(one, path, keys, flat, source)
            })
            .collect();
    }
    vec![edge]
}
