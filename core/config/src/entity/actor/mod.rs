//! Actor files (`agents actor add`): templates, then YAML, then variables of the environment, then one strict schema.
//!
//! Each form of file has its normaliser: `flat` has one actor at the top, `multi` has `actors` and `routes`. Both come
//! to one type.

mod environment;
mod flat;
mod instances;
mod multi;
mod protect;
mod render;
mod route;

use std::collections::HashMap;
use std::sync::LazyLock;

use agents_domain::QualifiedName;
use agents_domain::actor::{ActorDefinition, AgentKind, Overrides, check};
use agents_domain::text::Range;
use serde_json::{Map, Value, json};

use super::{EntityKind, LoadResult, Loaded, Recipe, Registry, collect_places, node_at, problems_of};
use crate::problem::{MAX_FILE_BYTES, too_large};
use crate::yaml::schema::{self, Schema};
use crate::yaml::{Node, NodeKind, Source, compose};
use crate::{Problem, Severity};

pub(super) const KIND: EntityKind = EntityKind {
    name: "actor",
    registry: Registry::Actor,
    refers: &[],
    check: |text, file| problems_of(load_actor(text, file, &Reading::default())),
    schema: || &SCHEMA,
    marks: &[
        "actors",
        "agents",
        "routes",
        "global_context",
        "merges",
        "system_prompt",
        "route",
        "context_view",
    ],
    recipe: &RECIPE,
};

/// Both forms; the one with `actors` first.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut multi = multi::schema();
    let mut flat = flat::schema();
    let mut definitions = Map::new();
    for form in [&mut multi, &mut flat] {
        if let Some(map) = form.as_object_mut() {
            map.shift_remove("$schema");
            if let Some(Value::Object(inner)) = map.shift_remove("$defs") {
                definitions.extend(inner);
            }
        }
    }
    definitions.insert("ActorFile".to_owned(), multi);
    definitions.insert("FlatActorFile".to_owned(), flat);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Actor",
        "anyOf": [{ "$ref": "#/$defs/ActorFile" }, { "$ref": "#/$defs/FlatActorFile" }],
        "$defs": definitions,
    })
});

const RECIPE: Recipe = Recipe {
    wrappers: &[],
    aliases: &[("agents", "actors"), ("provider_type", "provider"), ("model_id", "model")],
    schema: || &SCHEMA,
    normalise: |_, _| {},
    rules: |_, _| {},
    lower: std::convert::identity,
};

/// Looks up a variable of the environment.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What an actor file is read with. The default is an editor's: no environment, no context.
#[derive(Default)]
pub struct Reading<'a> {
    /// The variables of the environment; without it, a variable that has no default is left open.
    pub variables: Option<Variables<'a>>,
    /// What the run, the plan and the session say, laid over each other; it goes before `global_context`.
    pub context: Option<&'a Value>,
    /// The registered language servers with their languages, for templates.
    pub servers: &'a [(QualifiedName, Vec<String>)],
    /// What the command line says; it goes before the file.
    pub overrides: Overrides,
}

/// Loads an actor file. `file_name` is what problems call it.
pub fn load_actor(text: &str, file_name: &str, reading: &Reading<'_>) -> LoadResult<ActorDefinition> {
    if text.len() > MAX_FILE_BYTES {
        return Err(vec![at_top(file_name, too_large())]);
    }
    let rendered = render::render(text, file_name, reading)?;
    let mut source = match rendered.origin {
        Some(origin) => Source::rendered(&rendered.text, file_name, text, origin),
        None => Source::new(&rendered.text, file_name),
    };
    let built = build(&mut source, rendered.is_open, reading);
    let mut problems = std::mem::take(&mut source.problems);
    match built {
        Some((mut value, places)) if problems.iter().all(|p| p.severity != Severity::Error) => {
            apply(&reading.overrides, &mut value);
            Ok(Loaded { value, hints: problems, file: file_name.to_owned(), places })
        }
        _ => {
            problems.sort_by_key(|p| (p.severity, p.range));
            Err(problems)
        }
    }
}

fn at_top(file: &str, message: impl Into<String>) -> Problem {
    Problem {
        severity: Severity::Error,
        message: message.into(),
        field_path: String::new(),
        range: Range::default(),
        file: file.to_owned(),
        fix: None,
    }
}

/// What the command line says goes before the file.
fn apply(overrides: &Overrides, definition: &mut ActorDefinition) {
    definition.provider = overrides.provider.clone().or(definition.provider.take());
    definition.model = overrides.model.clone().or(definition.model.take());
    definition.is_unsafe |= overrides.is_unsafe;
    for agent in definition.actors.values_mut().filter(|agent| agent.kind != AgentKind::Tool) {
        for skill in &overrides.skills {
            if !agent.skills.contains(skill) {
                agent.skills.push(skill.clone());
            }
        }
    }
}

fn build(
    source: &mut Source<'_>,
    is_open: bool,
    reading: &Reading<'_>,
) -> Option<(ActorDefinition, HashMap<String, Range>)> {
    let mut root = compose(source)?;
    if !matches!(root.kind, NodeKind::Map(_)) {
        let message = format!("the file must be a mapping (`key: value` lines), not {}", root.describe());
        source.error("", &root.bytes, message);
        return None;
    }
    environment::interpolate(&mut root, reading.variables, source);
    protect::restore(&mut root);
    if is_open {
        open_templates(&mut root, "");
    }
    if source.has_errors() {
        return None;
    }
    let is_flat = !["actors", "agents", "routes"].iter().any(|key| root.entry(key).is_some());
    let form = if is_flat { flat::FORM } else { multi::FORM };
    (form.normalise)(&mut root, source);
    let schema = Schema::new((form.schema)());
    schema::drop_empty(&mut root, schema);
    schema::check(&root, schema, "", source);
    name_rule(&root, source);
    if source.has_errors() {
        return None;
    }
    (form.rules)(&root, source);
    settle(&mut root, schema);
    if source.has_errors() {
        return None;
    }
    let mut places = HashMap::new();
    collect_places(&root, "", source, &mut places);
    let written = root.clone();
    (form.convert)(&mut root);
    let definition: ActorDefinition = match serde_path_to_error::deserialize(root.to_json()) {
        Ok(definition) => definition,
        Err(error) => {
            let path = (form.written_path)(&error.path().to_string(), &root);
            let bytes = node_at(&written, &path).map_or(root.bytes.clone(), |node| node.bytes.clone());
            source.error(&path, &bytes, error.inner().to_string());
            return None;
        }
    };
    let mut checked = definition.clone();
    apply(&reading.overrides, &mut checked);
    for finding in check(&checked, is_flat) {
        let path = (form.written_path)(&finding.path, &root);
        let bytes = node_at(&written, &path).map_or(root.bytes.clone(), |node| node.bytes.clone());
        let severity = if finding.is_warning { Severity::Warning } else { Severity::Error };
        source.report(severity, &path, &bytes, finding.message);
    }
    (!source.has_errors()).then_some((definition, places))
}

/// What a form of file does differently.
#[derive(Clone, Copy)]
struct Form {
    schema: fn() -> &'static Value,
    /// Rewrites other spellings.
    normalise: fn(&mut Node, &mut Source<'_>),
    /// What the schema cannot say.
    rules: fn(&Node, &mut Source<'_>),
    /// To what the type is read from.
    convert: fn(&mut Node),
    /// The path in the file of a path in the type.
    written_path: fn(&str, &Node) -> String,
}

/// Names of actors are lower case and have a namespace (ACTOR-002).
fn name_rule(root: &Node, source: &mut Source<'_>) {
    let Some(node) = root.get("name") else { return };
    let Some(name) = node.text() else { return };
    let part = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c))
    };
    let fits = name.split_once('/').is_some_and(|(namespace, name)| part(namespace) && part(name));
    if !fits && name.parse::<QualifiedName>().is_ok() {
        let message = format!(
            "`name`: `{name}` is no name of an actor: it is `namespace/name` in small letters, digits, `_` and `-`, such as `local/reviewer`"
        );
        source.error("name", &node.bytes, message);
    }
}

/// Texts with templates whose context is not known yet fit everywhere. Prompts are texts anyway.
fn open_templates(node: &mut Node, key: &str) {
    match &mut node.kind {
        NodeKind::Text(text) if agents_domain::template::is_template(text) && !protect::is_deferred(key) => {
            node.kind = NodeKind::Open(std::mem::take(text));
        }
        NodeKind::List(items) => items.iter_mut().for_each(|item| open_templates(item, key)),
        NodeKind::Map(entries) => entries.iter_mut().for_each(|e| open_templates(&mut e.value, &e.key)),
        _ => {}
    }
}

/// Values that are not known yet: texts stay as they are written, others are left out, as if they had not been given.
fn settle(node: &mut Node, schema: Schema<'_>) {
    match &mut node.kind {
        NodeKind::Map(entries) => {
            let required = schema.required();
            entries.retain(|entry| {
                let inner = schema.property(&entry.key);
                let fits = inner.is_none_or(|inner| {
                    matches!(inner.type_name(), None | Some("string")) && inner.choices().is_none()
                });
                !matches!(entry.value.kind, NodeKind::Open(_))
                    || fits
                    || required.contains(&entry.key.as_str())
            });
            for entry in entries {
                match schema.property(&entry.key).or_else(|| schema.rest()) {
                    Some(inner) => settle(&mut entry.value, inner),
                    None => close(&mut entry.value),
                }
            }
        }
        NodeKind::List(items) => {
            if let Some(inner) = schema.items() {
                items.iter_mut().for_each(|item| settle(item, inner));
            } else {
                items.iter_mut().for_each(close);
            }
        }
        _ => close(node),
    }
}

fn close(node: &mut Node) {
    match &mut node.kind {
        NodeKind::Open(text) => node.kind = NodeKind::Text(std::mem::take(text)),
        NodeKind::List(items) => items.iter_mut().for_each(close),
        NodeKind::Map(entries) => entries.iter_mut().for_each(|e| close(&mut e.value)),
        _ => {}
    }
}
