//! Action files.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use agents_domain::QualifiedName;
use agents_domain::action::ActionDefinition;
use agents_domain::profile::{Safety, built_in_profiles};
use serde_json::Value;

use super::{EntityKind, LoadResult, Recipe, Registry, load, problems_of, rename_keys, schema_of};
use crate::nearest::nearest;
use crate::yaml::schema::Schema;
use crate::yaml::template::{check_template, find_name};
use crate::yaml::{Node, NodeKind, Source, join};

pub(super) const KIND: EntityKind = EntityKind {
    name: "action",
    registry: Registry::Action,
    refers: &[
        ("strategy_actor", Registry::Actor),
        ("execution_actor", Registry::Actor),
        ("estimation_actor", Registry::Actor),
        ("review_actor", Registry::Actor),
        ("apply_actor", Registry::Actor),
        ("invariant_actor", Registry::Actor),
        ("automation_profile", Registry::AutomationProfile),
    ],
    check: |text, file| problems_of(load_action(text, file)),
    schema: || &SCHEMA,
    marks: &["action", "strategy_actor", "execution_actor", "definition_of_done"],
    recipe: &RECIPE,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(file_schema);

const RECIPE: Recipe = Recipe {
    wrappers: &["action"],
    aliases: &[("args", "arguments"), ("short_description", "description")],
    schema: || &SCHEMA,
    normalise,
    rules,
    lower: std::convert::identity,
};

/// Other names of argument types.
const TYPE_ALIASES: &[(&str, &str)] = &[("str", "string"), ("int", "integer"), ("bool", "boolean")];

/// Loads an action file. `file_name` is what problems call it.
pub fn load_action(text: &str, file_name: &str) -> LoadResult<ActionDefinition> {
    load(&RECIPE, text, file_name)
}

fn file_schema() -> Value {
    let mut schema = schema_of::<ActionDefinition>();
    if let Some(safety) = schema.pointer_mut("/properties/safety_profile") {
        let mut own = schema_of::<Safety>();
        if let Some(map) = own.as_object_mut() {
            // Limits left out are those of the profile.
            for key in ["required", "$schema", "title", "$defs"] {
                map.remove(key);
            }
            map.insert("description".to_owned(), "Limits of its plans, over those of the profile.".into());
        }
        *safety = own;
    }
    schema
}

fn normalise(root: &mut Node, source: &mut Source<'_>) {
    let top = Schema::new(&SCHEMA);
    rename_keys(root, "", &top.keys(), RECIPE.aliases, source);
    let argument_keys =
        top.property("arguments").and_then(Schema::items).map(Schema::keys).unwrap_or_default();
    let Some(NodeKind::List(items)) = root.get_mut("arguments").map(|n| &mut n.kind) else { return };
    for (at, item) in items.iter_mut().enumerate() {
        let path = format!("arguments[{at}]");
        rename_keys(item, &path, &argument_keys, &[], source);
        let Some(Node { kind: NodeKind::Text(word), bytes }) = item.get_mut("type") else { continue };
        if let Some((alias, canonical)) = TYPE_ALIASES.iter().find(|(alias, _)| alias == word) {
            let message = format!("the type `{alias}` is usually written `{canonical}`");
            *word = (*canonical).to_owned();
            source.hint(&join(&path, "type"), bytes, message);
        }
    }
}

fn rules(root: &Node, source: &mut Source<'_>) {
    for key in ["description", "definition_of_done"] {
        if let Some(node) = root.get(key).filter(|n| n.text().is_some_and(|t| t.trim().is_empty())) {
            source.error(key, &node.bytes, format!("`{key}` is empty"));
        }
    }
    for (at, invariant) in root.get("invariants").map(Node::list).unwrap_or_default().iter().enumerate() {
        if invariant.text().is_some_and(|t| t.trim().is_empty()) {
            source.error(&format!("invariants[{at}]"), &invariant.bytes, "an invariant is empty");
        }
    }
    let arguments = root.get("arguments").map(Node::list).unwrap_or_default();
    let mut seen: HashMap<&str, u32> = HashMap::new();
    for (at, argument) in arguments.iter().enumerate() {
        let path = format!("arguments[{at}]");
        argument_rules(argument, &path, source);
        if let Some(node) = argument.get("name")
            && let Some(name) = node.text()
        {
            let line = source.range(&node.bytes).start.line + 1;
            if let Some(first) = seen.insert(name, line) {
                let message = format!("there are two arguments `{name}`; the first is on line {first}");
                source.error(&join(&path, "name"), &node.bytes, message);
            }
        }
    }
    templates(root, &seen.into_keys().collect(), source);
    if let Some(node) = root.get("automation_profile") {
        profile_rule(node, source);
    }
}

fn templates(root: &Node, arguments: &HashSet<&str>, source: &mut Source<'_>) {
    for key in ["description", "definition_of_done"] {
        let Some(node) = root.get(key) else { continue };
        for name in check_template(node, key, source).unwrap_or_default() {
            if arguments.contains(name.as_str()) {
                continue;
            }
            let place = find_name(node, &name, source.text).unwrap_or_else(|| node.bytes.clone());
            let meant = nearest(&name, arguments.iter().copied());
            let meant = meant.map(|m| format!(": did you mean `{m}`?")).unwrap_or_default();
            source.warn(key, &place, format!("`{name}` is no argument of this action{meant}"));
        }
    }
}

fn profile_rule(node: &Node, source: &mut Source<'_>) {
    let Some(name) = node.text() else { return };
    let known = built_in_profiles();
    let names: Vec<&str> = known.iter().map(|p| p.name.as_str()).collect();
    if names.contains(&name) {
        return;
    }
    if let Err(error) = name.parse::<QualifiedName>() {
        source.error("automation_profile", &node.bytes, format!("`automation_profile`: {error}"));
    } else if !name.contains('/') {
        let meant = match nearest(name, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("those are {}", names.join(", ")),
        };
        source.warn(
            "automation_profile",
            &node.bytes,
            format!("`{name}` is not a built-in profile: {meant}"),
        );
    }
}

fn argument_rules(argument: &Node, path: &str, source: &mut Source<'_>) {
    let text = |key: &str| argument.get(key).and_then(Node::text);
    let at = |key: &str| join(path, key);
    if let Some(node) = argument.get("name")
        && let Some(name) = node.text()
    {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(allowed) {
            let message = format!("`{name}` is no name of an argument: use letters, digits and `_`");
            source.error(&at("name"), &node.bytes, message);
        } else if name.contains('-') || name.starts_with(|c: char| c.is_ascii_digit()) {
            let better = name.replace('-', "_");
            let message =
                format!("`{name}` cannot be used as `{{{{ {name} }}}}`: call it something like `{better}`");
            source.warn(&at("name"), &node.bytes, message);
        }
    }
    let kind = text("type").unwrap_or_default();
    let pattern = pattern_rule(argument, kind, path, source);
    let number = |key: &str| match &argument.get(key)?.kind {
        NodeKind::Number(n) => n.as_f64(),
        _ => None,
    };
    let (least, most) = (number("min_value"), number("max_value"));
    for key in ["min_value", "max_value"] {
        if let Some(entry) = argument.entry(key).filter(|_| !matches!(kind, "integer" | "float")) {
            let message = format!("`{key}` has no effect on an argument of type {kind}");
            source.warn(&at(key), &entry.key_bytes, message);
        }
    }
    if let (Some(low), Some(high), Some(node)) = (least, most, argument.get("max_value"))
        && low > high
    {
        source.error(
            &at("max_value"),
            &node.bytes,
            format!("`max_value` {high} is less than `min_value` {low}"),
        );
    }
    let Some(default) = argument.get("default") else { return };
    if matches!(argument.get("required").map(|n| &n.kind), Some(NodeKind::Bool(true))) {
        let place = argument.entry("required").map_or(&default.bytes, |e| &e.key_bytes);
        source.warn(
            &at("required"),
            place,
            "an argument with a `default` is never missing: `required` has no effect",
        );
    }
    let fits = match (kind, &default.kind) {
        ("string", NodeKind::Text(_)) | ("boolean", NodeKind::Bool(_)) | ("float", NodeKind::Number(_)) => {
            true
        }
        ("integer", NodeKind::Number(n)) => n.is_i64(),
        ("list", NodeKind::List(_)) => true,
        _ => false,
    };
    let wrong = if !fits {
        let quotes = match (kind, &default.kind) {
            ("string", NodeKind::Number(_) | NodeKind::Bool(_)) => ": put it in quotes",
            _ => "",
        };
        format!("the default must be of type {kind}, not {}{quotes}", default.describe())
    } else if let Some(pattern) = pattern.filter(|p| default.text().is_some_and(|t| !p.is_match(t))) {
        format!("the default does not match `validation_pattern` `{}`", pattern.as_str())
    } else {
        let NodeKind::Number(n) = &default.kind else { return };
        let value = n.as_f64().unwrap_or_default();
        match (least.filter(|low| value < *low), most.filter(|high| value > *high)) {
            (Some(low), _) => format!("the default {n} is less than `min_value` {low}"),
            (None, Some(high)) => format!("the default {n} is greater than `max_value` {high}"),
            (None, None) => return,
        }
    };
    source.error(&at("default"), &default.bytes, wrong);
}

fn pattern_rule(argument: &Node, kind: &str, path: &str, source: &mut Source<'_>) -> Option<regex::Regex> {
    let entry = argument.entry("validation_pattern")?;
    let path = join(path, "validation_pattern");
    if kind != "string" {
        let message = format!("`validation_pattern` has no effect on an argument of type {kind}");
        source.warn(&path, &entry.key_bytes, message);
    }
    match regex::Regex::new(entry.value.text()?) {
        Ok(regex) => Some(regex),
        Err(error) => {
            // The last line says what is wrong; those before it draw the pattern.
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default();
            let why = why.strip_prefix("error: ").unwrap_or(why);
            source.error(
                &path,
                &entry.value.bytes,
                format!("`validation_pattern` is not a regular expression: {why}"),
            );
            None
        }
    }
}
