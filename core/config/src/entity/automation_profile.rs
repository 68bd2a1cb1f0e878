//! Automation-profile files (`agents automation-profile add`).

use std::sync::LazyLock;

use agents_domain::QualifiedName;
use agents_domain::profile::{Gate, Guards, Profile, Safety, built_in_profile};
use serde_json::{Map, Value, json};

use super::{EntityKind, LoadResult, Recipe, Registry, load, problems_of, rename_keys, schema_of};
use crate::Severity;
use crate::yaml::schema::Schema;
use crate::yaml::{Entry, Node, NodeKind, Source};

pub(super) const KIND: EntityKind = EntityKind {
    name: "automation_profile",
    registry: Registry::AutomationProfile,
    refers: &[],
    check: |text, file| problems_of(load_automation_profile(text, file)),
    schema: || &SCHEMA,
    marks: &["decompose_task", "create_tool", "select_tool", "edit_code", "execute_command", "thresholds"],
    recipe: &RECIPE,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(file_schema);

const RECIPE: Recipe = Recipe {
    wrappers: &["automation_profile", "profile"],
    aliases: &[("safety_profile", "safety"), ("guard", "guards")],
    schema: || &SCHEMA,
    normalise,
    rules,
    lower,
};

/// The limits a file must always say.
const REQUIRED: [&str; 3] = ["require_sandbox", "require_checkpoints", "allow_unsafe_tools"];

/// Loads an automation-profile file. `file_name` is what problems call it.
pub fn load_automation_profile(text: &str, file_name: &str) -> LoadResult<Profile> {
    let loaded = load::<Profile>(&RECIPE, text, file_name)?;
    // The schema has checked each value; this is what only whole profiles can break.
    let broken: Vec<_> = loaded
        .value
        .problems()
        .into_iter()
        .map(|(path, message)| loaded.problem(Severity::Error, &path, message))
        .collect();
    if broken.is_empty() { Ok(loaded) } else { Err(broken) }
}

/// The eleven thresholds stand at the top, the limits under `safety` and `guards`.
fn file_schema() -> Value {
    let whole = schema_of::<Profile>();
    let part = |name: &str| {
        let mut part = whole["$defs"][name].clone();
        if let Some(map) = part.as_object_mut() {
            map.remove("required");
        }
        part
    };
    let (mut safety, mut guards) = (part("Safety"), part("Guards"));
    safety["required"] = json!(REQUIRED);
    for (limits, defaults) in [
        (&mut safety, serde_json::to_value(Safety::default()).unwrap_or_default()),
        (&mut guards, serde_json::to_value(Guards::default()).unwrap_or_default()),
    ] {
        if let Some(properties) = limits["properties"].as_object_mut() {
            for (key, property) in properties {
                if !REQUIRED.contains(&key.as_str()) {
                    property["default"] = defaults[key.as_str()].clone();
                }
            }
        }
    }
    for (limits, key, most) in
        [(&mut safety, "max_retries_per_step", Some(100)), (&mut guards, "max_tool_calls_per_step", None)]
    {
        limits["properties"][key]["minimum"] = 0.into();
        if let Some(most) = most {
            limits["properties"][key]["maximum"] = most.into();
        }
    }
    let mut properties = Map::new();
    for key in ["name", "description"] {
        properties.insert(key.to_owned(), whole["properties"][key].clone());
    }
    let described = &whole["$defs"]["Thresholds"]["properties"];
    for gate in Gate::ALL {
        let mut threshold = described[gate.flag()].clone();
        threshold["minimum"] = 0.0.into();
        threshold["maximum"] = 1.0.into();
        threshold["description"] =
            format!("From which confidence on the plan does this by itself: {}.", gate.meaning()).into();
        properties.insert(gate.flag().to_owned(), threshold);
    }
    properties.insert("safety".to_owned(), safety);
    properties.insert("guards".to_owned(), guards);
    let required: Vec<&str> =
        ["name", "description"].into_iter().chain(Gate::ALL.map(Gate::flag)).chain(["safety"]).collect();
    json!({
        "$schema": whole["$schema"], "title": "AutomationProfile",
        "description": "How much a plan does without asking.",
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    })
}

fn normalise(root: &mut Node, source: &mut Source<'_>) {
    let schema = Schema::new(&SCHEMA);
    let keys_of = |key: &str| schema.property(key).map(Schema::keys).unwrap_or_default();
    let (safety, guards) = (keys_of("safety"), keys_of("guards"));
    let mut known = schema.keys();
    known.push("thresholds");
    known.extend(&safety);
    known.extend(guards.iter().filter(|key| !safety.contains(key)));
    rename_keys(root, "", &known, RECIPE.aliases, source);
    lift_thresholds(root, source);
    for (part, keys) in [("safety", &safety), ("guards", &guards)] {
        if let Some(node) = root.get_mut(part) {
            rename_keys(node, part, keys, &[], source);
        }
        gather(root, part, keys, source);
    }
}

/// `thresholds:` around the eleven is taken away.
fn lift_thresholds(root: &mut Node, source: &mut Source<'_>) {
    let gates = Gate::ALL.map(Gate::flag);
    if let Some(node) = root.get_mut("thresholds") {
        rename_keys(node, "thresholds", &gates, &[], source);
    }
    let Some(entry) = root.remove("thresholds") else { return };
    let NodeKind::Map(inner) = entry.value.kind else {
        let message = format!("`thresholds` must be a mapping, not {}", entry.value.describe());
        return source.error("thresholds", &entry.value.bytes, message);
    };
    source.hint("thresholds", &entry.key_bytes, "the thresholds can stand at the top of the file");
    for entry in inner {
        add(root, "thresholds", entry, source);
    }
}

/// Brings the keys of a part that stand at the top of the file under the part.
fn gather(root: &mut Node, part: &str, keys: &[&str], source: &mut Source<'_>) {
    let flat: Vec<Entry> = keys.iter().filter_map(|key| root.remove(key)).collect();
    let Some(first) = flat.first() else { return };
    if root.get(part).is_none_or(|node| node.kind == NodeKind::Null) {
        root.remove(part);
        let value = Node { kind: NodeKind::Map(Vec::new()), bytes: first.value.bytes.clone() };
        let entry = Entry { key: part.to_owned(), key_bytes: first.key_bytes.clone(), value };
        root.entries_mut().into_iter().for_each(|entries| entries.push(entry.clone()));
    }
    let Some(node) = root.get_mut(part) else { return };
    for entry in flat {
        add(node, "", entry, source);
    }
}

/// Adds an entry; one that is there already must say the same.
fn add(node: &mut Node, from: &str, entry: Entry, source: &mut Source<'_>) {
    let path = if from.is_empty() { entry.key.clone() } else { format!("{from}.{}", entry.key) };
    match node.get(&entry.key) {
        None => {
            if let Some(entries) = node.entries_mut() {
                entries.push(entry);
            }
        }
        Some(other) if other.to_json() == entry.value.to_json() => {
            source.hint(&path, &entry.key_bytes, format!("`{}` is there twice", entry.key));
        }
        Some(other) => {
            let line = source.range(&other.bytes).start.line + 1;
            let message =
                format!("`{}` is set twice, to different values; the other is on line {line}", entry.key);
            source.error(&path, &entry.value.bytes, message);
        }
    }
}

fn rules(root: &Node, source: &mut Source<'_>) {
    if let Some(node) = root.get("name")
        && let Some(name) = node.text()
    {
        if built_in_profile(name).is_some() {
            let message = format!("`{name}` is built in and cannot be replaced: choose another name");
            source.error("name", &node.bytes, message);
        } else if let Err(error) = name.parse::<QualifiedName>() {
            source.error("name", &node.bytes, format!("`name`: {error}"));
        } else if !name.contains('/') {
            let message = format!("`name` must be namespace/name, such as `local/{name}`");
            source.error("name", &node.bytes, message);
        }
    }
    if let Some(node) = root.get("description")
        && node.text().is_some_and(|text| text.trim().is_empty())
    {
        source.error("description", &node.bytes, "`description` is empty");
    }
    for (part, key) in
        [("safety", "allowed_skill_categories"), ("guards", "tool_allowlist"), ("guards", "tool_denylist")]
    {
        let list = root.get(part).and_then(|node| node.get(key));
        for (at, node) in list.map(Node::list).unwrap_or_default().iter().enumerate() {
            if node.text().is_some_and(|text| text.trim().is_empty()) {
                source.error(
                    &format!("{part}.{key}[{at}]"),
                    &node.bytes,
                    format!("an entry of `{key}` is empty"),
                );
            }
        }
    }
}

/// The thresholds as one value, the limits with their defaults.
fn lower(mut value: Value) -> Value {
    let Some(map) = value.as_object_mut() else { return value };
    let thresholds: Map<String, Value> =
        Gate::ALL.into_iter().filter_map(|gate| map.shift_remove_entry(gate.flag())).collect();
    let mut whole = |part: &str, defaults: Value| {
        let mut defaults = defaults;
        if let Some(Value::Object(given)) = map.shift_remove(part) {
            for (key, value) in given {
                defaults[key] = value;
            }
        }
        defaults
    };
    let safety = whole("safety", serde_json::to_value(Safety::default()).unwrap_or_default());
    let guards = whole("guards", serde_json::to_value(Guards::default()).unwrap_or_default());
    map.insert("thresholds".to_owned(), thresholds.into());
    map.insert("safety".to_owned(), safety);
    map.insert("guards".to_owned(), guards);
    value
}
