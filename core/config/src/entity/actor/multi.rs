//! Actor files with `actors` and `routes`.

use std::sync::LazyLock;

use agents_domain::actor::ActorDefinition;
use serde_json::{Value, json};

use super::super::{rename_keys, schema_of};
use super::{Form, instances, route};
use crate::yaml::schema::Schema;
use crate::yaml::{Entry, Node, NodeKind, Source, join};

pub(super) const FORM: Form = Form {
    schema: || &SCHEMA,
    normalise,
    rules: |_, _| {},
    convert: |_| {},
    written_path: |path, _| path.to_owned(),
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema);

pub(super) fn schema() -> Value {
    let mut schema = schema_of::<ActorDefinition>();
    loosen(&mut schema);
    schema
}

/// What takes several shapes takes any here; the rules say more.
pub(super) fn loosen(schema: &mut Value) {
    for (kind, keys) in [
        ("Agent", ["lsp", "lsp_capabilities"].as_slice()),
        ("Node", &["lsp", "lsp_capabilities", "condition"]),
        ("Edge", &["condition"]),
        ("Route", &["initial_value"]),
    ] {
        for key in keys {
            if let Some(property) = schema.pointer_mut(&format!("/$defs/{kind}/properties/{key}")) {
                *property =
                    json!({ "description": property.get("description").cloned().unwrap_or_default() });
            }
        }
    }
    if let Some(Value::Array(required)) = schema.pointer_mut("/$defs/Route/required") {
        required.push("type".into());
    } else if let Some(Value::Object(route)) = schema.pointer_mut("/$defs/Route") {
        route.insert("required".to_owned(), json!(["type"]));
    }
    // A default of a whole mapping hides those of its keys.
    if let Some(Value::Object(kind)) = schema.pointer_mut("/$defs/Route/properties/type") {
        kind.shift_remove("default");
    }
}

fn normalise(root: &mut Node, source: &mut Source<'_>) {
    let top = Schema::new(&SCHEMA);
    if let (Some(_), Some(agents)) = (root.entry("actors"), root.entry("agents").cloned()) {
        source.error("agents", &agents.key_bytes, "`actors` and `agents` mean the same: keep one");
        root.remove("agents");
    }
    route::quiet(root, &[("agents", "actors"), ("provider_type", "provider"), ("model_id", "model")]);
    // The usual names go before their other ones.
    root.remove("provider_type");
    root.remove("model_id");
    context(root, source);
    let mut keys = top.keys();
    keys.push("context");
    rename_keys(root, "", &keys, &[], source);
    file_version(root, source);
    instances::expand(root, source);
    if root.get("actors").is_none() {
        route::missing(root, "actors", "", source);
    }
    agents(root, top, source);
    let route_schema = top.property("routes").and_then(Schema::rest);
    if let (Some(routes), Some(schema)) = (root.get_mut("routes"), route_schema) {
        for entry in routes.entries_mut().into_iter().flatten() {
            route::normalise(&mut entry.value, &join("routes", &entry.key), schema, false, source);
        }
    }
}

/// `context: {global: {...}}` means `global_context`.
pub(super) fn context(root: &mut Node, source: &mut Source<'_>) {
    let Some(context) = root.get_mut("context") else { return };
    let Some(global) = context.remove("global") else { return };
    if context.entries().is_empty() {
        root.remove("context");
    }
    if root.get("global_context").is_some() {
        let message = "`context.global` and `global_context` mean the same: keep one";
        return source.error("context.global", &global.key_bytes, message);
    }
    if let Some(entries) = root.entries_mut() {
        entries.push(Entry { key: "global_context".to_owned(), ..global });
    }
}

/// The version of the file format is one we read.
pub(super) fn file_version(root: &mut Node, source: &mut Source<'_>) {
    let Some(version) = root.get_mut("cleveragents").and_then(|settings| settings.get_mut("version")) else {
        return;
    };
    let known = match &version.kind {
        NodeKind::Text(text) => text == "3.0" || text == "3",
        NodeKind::Number(number) => number.as_f64() == Some(3.0),
        NodeKind::Open(_) | NodeKind::Null => true,
        _ => false,
    };
    if known {
        version.kind = NodeKind::Text("3.0".to_owned());
    } else {
        let message = format!("this program reads version \"3.0\", not {}", version.describe());
        source.error("cleveragents.version", &version.bytes.clone(), message);
    }
}

fn agents(root: &mut Node, top: Schema<'_>, source: &mut Source<'_>) {
    let schema = top.property("actors").and_then(Schema::rest);
    let config_keys =
        schema.and_then(|schema| schema.property("config")).map(Schema::keys).unwrap_or_default();
    let keys = schema.map(Schema::keys).unwrap_or_default();
    let route_schema = top.property("routes").and_then(Schema::rest);
    let mut own_routes: Vec<Entry> = Vec::new();
    for entry in root.get_mut("actors").and_then(Node::entries_mut).into_iter().flatten() {
        let path = join("actors", &entry.key);
        let agent = &mut entry.value;
        route::quiet(agent, &[("lsp_bindings", "lsp"), ("include_skills", "skills")]);
        rename_keys(agent, &path, &keys, &[], source);
        route::null_servers(agent);
        let is_graph = agent.get("type").and_then(Node::text) == Some("graph");
        if is_graph {
            graph_into_config(agent);
        }
        let Some(config) = agent.get_mut("config") else { continue };
        let path = join(&path, "config");
        rename_keys(config, &path, &config_keys, &[("history", "max_history")], source);
        tools(config);
        // The graph of an agent stands in it, or in the routes of the file.
        let Some(schema) = route_schema else { continue };
        if config.get("nodes").is_some() {
            let mut taken = Vec::new();
            for key in schema.keys() {
                if !matches!(key, "type" | "agents") {
                    taken.extend(config.remove(key));
                }
            }
            let alias =
                config.remove("entry_node").map(|entry| Entry { key: "entry_point".to_owned(), ..entry });
            taken.extend(alias);
            let bytes = config.bytes.clone();
            let mut graph = Node { kind: NodeKind::Map(taken), bytes };
            route::normalise(&mut graph, &path, schema, false, source);
            put_route(config, &entry.key, &entry.key_bytes);
            own_routes.push(Entry {
                key: entry.key.clone(),
                key_bytes: entry.key_bytes.clone(),
                value: graph,
            });
        } else if let Some(mut routes) = config.remove("routes") {
            let first = routes.value.entries().first().map(|entry| entry.key.clone());
            own_routes.append(routes.value.entries_mut().unwrap_or(&mut Vec::new()));
            if let Some(first) = first {
                put_route(config, &first, &entry.key_bytes);
            }
        }
    }
    if own_routes.is_empty() {
        return;
    }
    let bytes = root.bytes.clone();
    let Some(entries) = root.entries_mut() else { return };
    let at = match entries.iter().position(|entry| entry.key == "routes") {
        Some(at) => at,
        None => {
            let value = Node { kind: NodeKind::Map(Vec::new()), bytes: bytes.clone() };
            entries.push(Entry { key: "routes".to_owned(), key_bytes: bytes.start..bytes.start, value });
            entries.len() - 1
        }
    };
    let Some(routes) = entries.get_mut(at).and_then(|entry| entry.value.entries_mut()) else { return };
    for route in own_routes {
        if routes.iter().any(|known| known.key == route.key) {
            let message = format!("there are two routes `{}`", route.key);
            source.error(&join("routes", &route.key), &route.key_bytes, message);
        } else {
            routes.push(route);
        }
    }
}

/// The graph of an agent may stand beside its `config`, which then need not be there.
fn graph_into_config(agent: &mut Node) {
    let moved: Vec<Entry> = ["routes", "nodes", "edges", "entry_point", "entry_node", "exit_nodes"]
        .iter()
        .filter_map(|key| agent.remove(key))
        .collect();
    if moved.is_empty() {
        return;
    }
    let bytes = moved.first().map_or(agent.bytes.clone(), |entry| entry.key_bytes.clone());
    let Some(entries) = agent.entries_mut() else { return };
    match entries.iter_mut().find(|entry| entry.key == "config") {
        Some(config) => {
            if let Some(config) = config.value.entries_mut() {
                config.extend(moved);
            }
        }
        None => {
            let value = Node { kind: NodeKind::Map(moved), bytes: bytes.clone() };
            entries.push(Entry { key: "config".to_owned(), key_bytes: bytes, value });
        }
    }
}

/// The route that an agent is.
fn put_route(config: &mut Node, name: &str, at: &std::ops::Range<usize>) {
    let value = Node { kind: NodeKind::Text(name.to_owned()), bytes: at.clone() };
    if let Some(entries) = config.entries_mut() {
        entries.push(Entry { key: "route".to_owned(), key_bytes: at.clone(), value });
    }
}

/// A tool that is only named is a mapping with its name.
pub(super) fn tools(config: &mut Node) {
    let Some(NodeKind::List(tools)) = config.get_mut("tools").map(|tools| &mut tools.kind) else { return };
    for tool in tools {
        if matches!(tool.kind, NodeKind::Text(_)) {
            let name = Entry { key: "name".to_owned(), key_bytes: tool.bytes.clone(), value: tool.clone() };
            tool.kind = NodeKind::Map(vec![name]);
        }
    }
}
