//! Entity files: one table of kinds; for each a normaliser of spellings, one strict schema, and the rules beyond it.
//!
//! Loading goes parse, unwrap, normalise (hints), check against the schema, check the rules, build the value. All
//! problems of a step are reported together. Texts with `${NAME}` or `{{ name }}` stay as they are written.

mod action;
mod actor;
mod agent_skill;
mod automation_profile;
mod language_server;
mod skill;
mod tool;
mod validation;

use std::collections::HashMap;

use agents_domain::text::Range;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use action::load_action;
pub use actor::{Reading, load_actor};
pub use agent_skill::{load_agent_skill, split_front_matter};
pub use automation_profile::load_automation_profile;
pub use language_server::{language_hints, load_language_server};
pub use skill::load_skill;
pub use tool::load_tool;
pub use validation::load_validation;

use crate::editing;
use crate::yaml::schema::{self, Schema};
use crate::yaml::{Entry, Node, NodeKind, Source, compose, join};
use crate::{Problem, Severity};

/// The version of the file format that is understood.
const FORMAT_VERSION: &str = "3.0";

/// A loaded file.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded<T> {
    /// What it says.
    pub value: T,
    /// What could be written better, and warnings; never errors.
    pub hints: Vec<Problem>,
    file: String,
    places: HashMap<String, Range>,
}

impl<T> Loaded<T> {
    /// Where the value of a key stands, such as `strategy_actor` or `arguments[1].default`.
    pub fn place(&self, field_path: &str) -> Option<Range> {
        self.places.get(field_path).copied()
    }

    /// A problem with the value of a key, found by someone who knows more than the file.
    pub fn problem(&self, severity: Severity, field_path: &str, message: impl Into<String>) -> Problem {
        Problem {
            severity,
            message: message.into(),
            field_path: field_path.to_owned(),
            range: self.place(field_path).unwrap_or_default(),
            file: self.file.clone(),
            fix: None,
        }
    }
}

/// What a loader returns: the value with hints, or at least one error.
pub type LoadResult<T> = Result<Loaded<T>, Vec<Problem>>;

/// A kind of entity that files define.
#[derive(Clone, Copy)]
pub struct EntityKind {
    /// Its name, such as `action`.
    pub name: &'static str,
    /// Where its name is registered.
    pub registry: Registry,
    /// Keys whose values name something registered, such as `strategy_actor`.
    pub refers: &'static [(&'static str, Registry)],
    /// All problems and hints of a file of this kind, in the order of the file: `(text, file name)`.
    pub check: fn(&str, &str) -> Vec<Problem>,
    /// JSON Schema of the canonical spelling.
    pub schema: fn() -> &'static Value,
    /// Keys that only files of this kind have at the top, in any spelling.
    marks: &'static [&'static str],
    /// How it is read.
    pub(crate) recipe: &'static Recipe,
}

/// What names are registered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the registry of its name")]
pub enum Registry {
    Action,
    Actor,
    AutomationProfile,
    LanguageServer,
    Skill,
    Tool,
    Validation,
}

impl Registry {
    /// The word for one of its entries, such as `language server`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Actor => "actor",
            Self::AutomationProfile => "automation profile",
            Self::LanguageServer => "language server",
            Self::Skill => "skill",
            Self::Tool => "tool",
            Self::Validation => "validation",
        }
    }
}

/// Every kind of entity file there is.
pub const KINDS: &[EntityKind] = &[
    action::KIND,
    actor::KIND,
    automation_profile::KIND,
    language_server::KIND,
    skill::KIND,
    tool::KIND,
    validation::KIND,
];

/// The kind of a file by its keys; `None` when it looks like none of them.
pub fn kind_of(text: &str) -> Option<&'static EntityKind> {
    let mut source = Source::new(text, "");
    let keys: Vec<String> = match compose(&mut source) {
        Some(root) => match root.entries() {
            // A mapping may stand around the whole.
            [Entry { key, value, .. }] => {
                std::iter::once(key).chain(value.entries().iter().map(|e| &e.key)).cloned().collect()
            }
            entries => entries.iter().map(|e| e.key.clone()).collect(),
        },
        // Somebody is writing it.
        None => editing::top_keys(text),
    };
    let has = |key: &&&str| keys.iter().any(|present| present.replace('-', "_") == **key);
    let by_marks = KINDS.iter().map(|kind| (kind.marks.iter().filter(has).count(), kind));
    by_marks.filter(|(marks, _)| *marks > 0).max_by_key(|(marks, _)| *marks).map(|(_, kind)| kind)
}

/// Problems and hints of a load, for [`EntityKind::check`].
fn problems_of<T>(result: LoadResult<T>) -> Vec<Problem> {
    let mut problems = match result {
        Ok(loaded) => loaded.hints,
        Err(problems) => problems,
    };
    problems.sort_by_key(|p| p.range);
    problems
}

/// What differs between kinds.
pub(crate) struct Recipe {
    /// Names of a mapping that may stand around the whole.
    pub wrappers: &'static [&'static str],
    /// Other names of keys at the top, with the usual ones.
    pub aliases: &'static [(&'static str, &'static str)],
    /// JSON Schema of the canonical spelling.
    schema: fn() -> &'static Value,
    /// Rewrites other spellings.
    normalise: fn(&mut Node, &mut Source<'_>),
    /// What the schema cannot say.
    rules: fn(&Node, &mut Source<'_>),
    /// From the canonical spelling to what the type deserialises from.
    lower: fn(Value) -> Value,
}

fn load<T: DeserializeOwned>(recipe: &Recipe, text: &str, file: &str) -> LoadResult<T> {
    let mut source = Source::new(text, file);
    let value = build(recipe, &mut source);
    let mut problems = std::mem::take(&mut source.problems);
    match value {
        Some((value, places)) if problems.iter().all(|p| p.severity != Severity::Error) => {
            Ok(Loaded { value, hints: problems, file: file.to_owned(), places })
        }
        _ => {
            // The first error by place is the one people are told first.
            problems.sort_by_key(|p| (p.severity, p.range));
            Err(problems)
        }
    }
}

fn build<T: DeserializeOwned>(
    recipe: &Recipe,
    source: &mut Source<'_>,
) -> Option<(T, HashMap<String, Range>)> {
    let mut root = compose(source)?;
    if !matches!(root.kind, NodeKind::Map(_)) {
        let message = format!("the file must be a mapping (`key: value` lines), not {}", root.describe());
        source.error("", &root.bytes, message);
        return None;
    }
    take_version(&mut root, source);
    unwrap(&mut root, recipe.wrappers, source);
    take_version(&mut root, source);
    (recipe.normalise)(&mut root, source);
    let schema = Schema::new((recipe.schema)());
    schema::drop_empty(&mut root, schema);
    schema::check(&root, schema, "", source);
    if source.has_errors() {
        return None;
    }
    (recipe.rules)(&root, source);
    if source.has_errors() {
        return None;
    }
    let mut places = HashMap::new();
    collect_places(&root, "", source, &mut places);
    match serde_path_to_error::deserialize((recipe.lower)(root.to_json())) {
        Ok(value) => Some((value, places)),
        Err(error) => {
            let path = error.path().to_string();
            let bytes = node_at(&root, &path).map_or(root.bytes.clone(), |n| n.bytes.clone());
            source.error(&path, &bytes, error.inner().to_string());
            None
        }
    }
}

/// Takes `cleveragents: {version: ...}` or `cleveragents.version` out and checks it.
fn take_version(root: &mut Node, source: &mut Source<'_>) {
    let mut versions = Vec::new();
    if let Some(entry) = root.remove("cleveragents") {
        match entry.value.entries() {
            [version] if version.key == "version" => versions.push(version.value.clone()),
            _ => source.error(
                "cleveragents",
                &entry.value.bytes,
                "`cleveragents` holds `version` and nothing else",
            ),
        }
    }
    versions.extend(root.remove("cleveragents.version").map(|e| e.value));
    for version in versions {
        let known = match &version.kind {
            NodeKind::Text(text) => text == FORMAT_VERSION || text == "3",
            NodeKind::Number(n) => n.as_f64() == Some(3.0),
            _ => false,
        };
        if !known {
            let message =
                format!("this program reads version \"{FORMAT_VERSION}\", not {}", version.describe());
            source.error("cleveragents.version", &version.bytes, message);
        }
    }
}

fn unwrap(root: &mut Node, wrappers: &[&str], source: &mut Source<'_>) {
    if let [Entry { key, key_bytes, value }] = root.entries()
        && wrappers.contains(&key.as_str())
        && matches!(value.kind, NodeKind::Map(_))
    {
        source.hint(
            "",
            key_bytes,
            format!("`{key}:` around the file is not needed: its keys can stand at the top"),
        );
        *root = value.clone();
    }
}

/// Gives keys their canonical spelling: `-` for `_`, and other names. A key that is there in both spellings is
/// reported and left out.
fn rename_keys(
    node: &mut Node,
    path: &str,
    known: &[&str],
    aliases: &[(&str, &str)],
    source: &mut Source<'_>,
) {
    let NodeKind::Map(entries) = &mut node.kind else { return };
    let mut present: HashMap<String, String> = entries
        .iter()
        .filter(|e| known.contains(&e.key.as_str()))
        .map(|e| (e.key.clone(), e.key.clone()))
        .collect();
    entries.retain_mut(|entry| {
        let spelled = entry.key.replace('-', "_");
        let canonical = match aliases.iter().find(|(alias, _)| *alias == spelled) {
            _ if known.contains(&entry.key.as_str()) => return true,
            Some((_, canonical)) => *canonical,
            None => match known.iter().find(|k| **k == spelled) {
                Some(known) => *known,
                None => return true,
            },
        };
        let at = join(path, &entry.key);
        if let Some(other) = present.insert(canonical.to_owned(), entry.key.clone()) {
            let message = format!("`{}` and `{other}` mean the same: keep one", entry.key);
            source.error(&at, &entry.key_bytes, message);
            return false;
        }
        source.hint(&at, &entry.key_bytes, format!("`{}` is usually written `{canonical}`", entry.key));
        source.fix(format!("Write `{canonical}`"), &entry.key_bytes, canonical);
        entry.key = canonical.to_owned();
        true
    });
}

fn collect_places(node: &Node, path: &str, source: &Source<'_>, places: &mut HashMap<String, Range>) {
    places.insert(path.to_owned(), source.range(&node.bytes));
    for (at, item) in node.list().iter().enumerate() {
        collect_places(item, &format!("{path}[{at}]"), source, places);
    }
    for entry in node.entries() {
        collect_places(&entry.value, &join(path, &entry.key), source, places);
    }
}

/// The node at a path such as `arguments[1].default`, or the nearest around it.
fn node_at<'n>(root: &'n Node, path: &str) -> Option<&'n Node> {
    let mut here = root;
    for part in path.split(['.', '[']).filter(|p| !p.is_empty()) {
        let next = match part.strip_suffix(']') {
            Some(index) => index.parse::<usize>().ok().and_then(|at| here.list().get(at)),
            None => here.get(part),
        };
        match next {
            Some(node) => here = node,
            None => break,
        }
    }
    Some(here)
}

/// JSON Schema of a type with what its file form adds, closed against unknown keys.
fn schema_of<T: schemars::JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    close(&mut schema);
    schema
}

/// Adds `additionalProperties: false` to every object that names its keys.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            map.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
