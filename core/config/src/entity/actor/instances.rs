//! `instances`: actors and routes made from the mappings under `templates` (G-15).

use serde_json::{Map, Value, json};

use agents_domain::template;

use crate::yaml::{Entry, Node, NodeKind, Source, join};

/// Adds what instances make to `actors` and `routes`.
pub(super) fn expand(root: &mut Node, source: &mut Source<'_>) {
    let Some(instances) = root.get("instances").cloned() else { return };
    let context = root.get("global_context").map(Node::to_json).unwrap_or_else(|| Value::Object(Map::new()));
    for entry in instances.entries() {
        let path = join("instances", &entry.key);
        let Some(named) = entry.value.get("template").and_then(Node::text).map(str::to_owned) else {
            source.error(&path, &entry.value.bytes, "an instance needs `template: name`");
            continue;
        };
        let Some(template) = root.get("templates").and_then(|templates| templates.get(&named)).cloned()
        else {
            let bytes =
                entry.value.get("template").map_or(entry.value.bytes.clone(), |node| node.bytes.clone());
            source.error(&join(&path, "template"), &bytes, format!("there is no template `{named}`"));
            continue;
        };
        let params = entry.value.get("params").or_else(|| entry.value.get("parameters"));
        let params = params.map(Node::to_json).unwrap_or_else(|| Value::Object(Map::new()));
        let mut values = json!({ "params": params, "context": context });
        template::merge(&mut values, &params);
        let mut made = template;
        fill(&mut made, &values, &path, &entry.value.bytes.clone(), source);
        // A text template is filled where it is used.
        let kind = made.get("type").and_then(Node::text).unwrap_or_default().to_owned();
        let target = match kind.as_str() {
            "stream" | "graph" if made.get("config").is_none() => "routes",
            "llm" | "tool" | "graph" if made.get("config").is_some() => "actors",
            _ => continue,
        };
        add(
            root,
            target,
            Entry { key: entry.key.clone(), key_bytes: entry.key_bytes.clone(), value: made },
            source,
        );
    }
}

/// Renders the texts of a template; what it makes stands where the instance stands.
fn fill(node: &mut Node, values: &Value, path: &str, at: &std::ops::Range<usize>, source: &mut Source<'_>) {
    node.bytes = at.clone();
    match &mut node.kind {
        NodeKind::Text(text) | NodeKind::Open(text) if template::is_template(text) => {
            match template::render(text, values) {
                Ok(rendered) => node.kind = NodeKind::Text(rendered),
                Err(why) => source.error(path, at, format!("the template cannot be rendered: {why}")),
            }
        }
        NodeKind::List(items) => items.iter_mut().for_each(|item| fill(item, values, path, at, source)),
        NodeKind::Map(entries) => {
            for entry in entries {
                entry.key_bytes = at.clone();
                fill(&mut entry.value, values, path, at, source);
            }
        }
        _ => {}
    }
}

fn add(root: &mut Node, target: &str, made: Entry, source: &mut Source<'_>) {
    let bytes = made.key_bytes.clone();
    let Some(entries) = root.entries_mut() else { return };
    if !entries.iter().any(|entry| entry.key == target) {
        let value = Node { kind: NodeKind::Map(Vec::new()), bytes: bytes.clone() };
        entries.push(Entry { key: target.to_owned(), key_bytes: bytes.clone(), value });
    }
    let Some(known) = root.get_mut(target).and_then(Node::entries_mut) else { return };
    if known.iter().any(|entry| entry.key == made.key) {
        let message = format!("the instance `{0}` makes `{target}.{0}`, which is there already", made.key);
        return source.error(&join("instances", &made.key), &bytes, message);
    }
    known.push(made);
}
