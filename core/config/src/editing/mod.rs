//! What an editor asks of an entity file: what can stand here, what this key is for, which names it uses, its outline.
//!
//! Pure functions of a text, also of one that somebody is in the middle of writing. Places are bytes of the text.

mod cursor;

use std::ops::Range as Bytes;

use crate::entity::{EntityKind, Registry, kind_of};
use crate::yaml::schema::Schema;
use crate::yaml::{Entry, Node, NodeKind, Source, compose, join, shorten};

pub(crate) use cursor::top_keys;
use cursor::{Cursor, Step, Wanted};

/// A name of something registered, where a file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Where the name is registered.
    pub registry: Registry,
    /// The name as written.
    pub name: String,
    /// Its bytes, quotes included.
    pub bytes: Bytes<usize>,
    /// The file defines it; otherwise it only uses it.
    pub defines: bool,
}

/// Something that can stand where a person writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What it is.
    pub kind: CompletionKind,
    /// The key, value or name.
    pub label: String,
    /// Its type or what it belongs to, in a few words.
    pub detail: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What is written.
    pub insert: String,
    /// What that replaces.
    pub bytes: Bytes<usize>,
    /// The file needs it.
    pub required: bool,
}

/// Kinds of completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    /// A key of the mapping.
    Key,
    /// A value that the key takes.
    Value,
    /// The name of something registered.
    Name,
}

/// What a key is for.
#[derive(Debug, Clone, PartialEq)]
pub struct Help {
    /// The key as it is usually written.
    pub key: String,
    /// What it takes, such as `a list of texts`.
    pub takes: String,
    /// What it is for.
    pub description: Option<String>,
    /// What it is when it is left out, as YAML.
    pub default: Option<String>,
    /// The only values it takes.
    pub choices: Vec<String>,
    /// The file needs it.
    pub required: bool,
    /// The bytes of the key.
    pub bytes: Bytes<usize>,
}

/// A key of a file with what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The key, or the name of an item of a list.
    pub name: String,
    /// Its value, where that is short.
    pub detail: Option<String>,
    /// The shape of its value.
    pub shape: Shape,
    /// Its bytes with its value.
    pub bytes: Bytes<usize>,
    /// The bytes of the key.
    pub key: Bytes<usize>,
    /// What is below it.
    pub children: Vec<Symbol>,
}

/// Shapes of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the shape of its name")]
pub enum Shape {
    Mapping,
    List,
    Text,
    Number,
    Truth,
    Nothing,
}

/// A name with a word about it.
pub type Named = (String, Option<String>);

/// The names a file defines and uses, in the order of the file; none in a text that is no entity file.
pub fn mentions(text: &str) -> Vec<Mention> {
    let Some((kind, root)) = read(text) else { return Vec::new() };
    let root = inside(kind, &root);
    let mut found = Vec::new();
    for entry in root.entries() {
        let key = usual(kind, &entry.key);
        let uses =
            kind.refers.iter().find(|(refers, _)| *refers == key).map(|(_, registry)| (*registry, false));
        let Some((registry, defines)) = (key == "name").then_some((kind.registry, true)).or(uses) else {
            continue;
        };
        // A list names several, each by itself or as the `name` of a mapping.
        let items = entry.value.list().iter().map(|item| item.get("name").unwrap_or(item));
        for value in std::iter::once(&entry.value).chain(items) {
            let Some(name) = value.text().filter(|name| !name.contains(['$', '{'])) else { continue };
            found.push(Mention { registry, name: name.to_owned(), bytes: value.bytes.clone(), defines });
        }
    }
    found
}

/// The name at a byte of a file.
pub fn mention_at(text: &str, at: usize) -> Option<Mention> {
    mentions(text).into_iter().find(|mention| touches(&mention.bytes, at))
}

/// The keys of a file as a tree; `None` for a text that is no entity file, or cannot be read.
pub fn outline(text: &str) -> Option<Vec<Symbol>> {
    let (_, root) = read(text)?;
    Some(symbols(&root))
}

/// What the key at a byte is for.
pub fn help(text: &str, at: usize) -> Option<Help> {
    let (kind, root) = read(text)?;
    let mut schema = Schema::new((kind.schema)());
    let mut here = inside(kind, &root);
    loop {
        if let Some(inner) = here.list().iter().position(|item| touches(&item.bytes, at)) {
            (here, schema) = (&here.list()[inner], schema.items()?);
            continue;
        }
        let entry = here
            .entries()
            .iter()
            .find(|e| e.key_bytes.start <= at && at <= e.value.bytes.end.max(e.key_bytes.end))?;
        let key = usual(kind, &entry.key);
        let found = schema.property(&key)?;
        if touches(&entry.key_bytes, at) {
            let required = schema.required().contains(&key.as_str());
            return Some(Help { bytes: entry.key_bytes.clone(), required, ..help_of(key, found) });
        }
        (here, schema) = (&entry.value, found);
    }
}

/// What can stand at a byte of a file. `names` gives the names of a registry.
pub fn complete(text: &str, at: usize, names: impl Fn(Registry) -> Vec<Named>) -> Vec<Completion> {
    let (Some(kind), Some(cursor)) = (kind_of(text), Cursor::at(text, at)) else { return Vec::new() };
    let path = match cursor.path.as_slice() {
        [Step::Key(first), rest @ ..] if kind.recipe.wrappers.contains(&first.as_str()) => rest,
        path => path,
    };
    let mut schema = Schema::new((kind.schema)());
    for step in path {
        let next = match step {
            Step::Key(key) => schema.property(&usual(kind, key)),
            Step::Item => schema.items(),
        };
        match next {
            Some(next) => schema = next,
            None => return Vec::new(),
        }
    }
    let registry = match path {
        [Step::Key(key)] | [Step::Key(key), Step::Item] => {
            kind.refers.iter().find(|(refers, _)| *refers == usual(kind, key))
        }
        [Step::Key(key), Step::Item, Step::Key(name)] if name == "name" => {
            kind.refers.iter().find(|(refers, _)| *refers == usual(kind, key))
        }
        _ => None,
    };
    match cursor.wanted {
        Wanted::Key
            if schema.type_name() == Some("object") && !(registry.is_some() && cursor.present.is_empty()) =>
        {
            keys(kind, schema, &cursor)
        }
        Wanted::Value | Wanted::Key => match registry {
            Some((_, registry)) => {
                names(*registry).into_iter().map(|name| registered(*registry, name, &cursor)).collect()
            }
            None => values(schema, &cursor),
        },
    }
}

fn keys(kind: &EntityKind, schema: Schema<'_>, cursor: &Cursor) -> Vec<Completion> {
    let required = schema.required();
    let absent =
        schema.keys().into_iter().filter(|key| !cursor.present.iter().any(|p| usual(kind, p) == *key));
    absent
        .filter_map(|key| Some((key, schema.property(key)?)))
        .map(|(key, inner)| {
            let below = format!("{key}:\n{}", " ".repeat(cursor.column + 2));
            Completion {
                kind: CompletionKind::Key,
                label: key.to_owned(),
                detail: Some(takes(inner)),
                description: inner.description().map(str::to_owned),
                insert: match inner.type_name() {
                    _ if inner.choices().is_some() => format!("{key}: "),
                    Some("array") => format!("{below}- "),
                    Some("object") => below,
                    _ => format!("{key}: "),
                },
                bytes: cursor.bytes.clone(),
                required: required.contains(&key),
            }
        })
        .collect()
}

fn values(schema: Schema<'_>, cursor: &Cursor) -> Vec<Completion> {
    let choices: Vec<String> = match (schema.choices(), schema.type_name()) {
        (Some(choices), _) => choices.into_iter().map(str::to_owned).collect(),
        (None, Some("boolean")) => vec!["true".to_owned(), "false".to_owned()],
        _ => schema
            .default()
            .filter(|d| !d.is_object() && !d.is_array())
            .map(ToString::to_string)
            .into_iter()
            .collect(),
    };
    let default =
        schema.default().map(|default| default.as_str().map_or_else(|| default.to_string(), str::to_owned));
    let value = |choice: String| Completion {
        kind: CompletionKind::Value,
        detail: (default.as_ref() == Some(&choice)).then(|| "when it is left out".to_owned()),
        description: None,
        insert: choice.clone(),
        label: choice,
        bytes: cursor.bytes.clone(),
        required: false,
    };
    choices.into_iter().map(value).collect()
}

fn registered(registry: Registry, (name, about): Named, cursor: &Cursor) -> Completion {
    Completion {
        kind: CompletionKind::Name,
        detail: Some(registry.word().to_owned()),
        description: about,
        insert: name.clone(),
        label: name,
        bytes: cursor.bytes.clone(),
        required: false,
    }
}

fn help_of(key: String, schema: Schema<'_>) -> Help {
    Help {
        key,
        takes: takes(schema),
        description: schema.description().map(str::to_owned),
        default: schema.default().map(ToString::to_string),
        choices: schema.choices().unwrap_or_default().into_iter().map(str::to_owned).collect(),
        required: false,
        bytes: 0..0,
    }
}

/// What a key takes, in words.
fn takes(schema: Schema<'_>) -> String {
    let one = |schema: Schema<'_>| match schema.type_name() {
        _ if schema.choices().is_some() => "one of a few words",
        Some("string") => "a text",
        Some("integer") => "a whole number",
        Some("number") => "a number",
        Some("boolean") => "true or false",
        Some("object") => "a mapping",
        Some("array") => "a list",
        _ => "any value",
    };
    match (schema.type_name(), schema.items().map(one)) {
        (Some("array"), Some("a text")) => "a list of texts".to_owned(),
        (Some("array"), Some("a mapping")) => "a list of mappings".to_owned(),
        _ => one(schema).to_owned(),
    }
}

/// A key as it is usually written.
fn usual(kind: &EntityKind, key: &str) -> String {
    let spelled = key.replace('-', "_");
    let alias = kind.recipe.aliases.iter().find(|(alias, _)| *alias == spelled);
    alias.map_or(spelled, |(_, usual)| (*usual).to_owned())
}

/// An entity file with its kind.
fn read(text: &str) -> Option<(&'static EntityKind, Node)> {
    let kind = kind_of(text)?;
    let root = compose(&mut Source::new(text, ""))?;
    Some((kind, root))
}

/// The mapping with the keys of the kind, without one that stands around it.
fn inside<'n>(kind: &EntityKind, root: &'n Node) -> &'n Node {
    // The version may stand beside it.
    let mut own = root.entries().iter().filter(|entry| entry.key != "cleveragents");
    match (own.next(), own.next()) {
        (Some(Entry { key, value, .. }), None) if kind.recipe.wrappers.contains(&key.as_str()) => value,
        _ => root,
    }
}

fn touches(bytes: &Bytes<usize>, at: usize) -> bool {
    bytes.start <= at && at <= bytes.end
}

fn symbols(node: &Node) -> Vec<Symbol> {
    let symbol = |name: String, key: Bytes<usize>, value: &Node| Symbol {
        name,
        detail: value.text().filter(|text| !text.trim().is_empty()).map(shorten),
        shape: match value.kind {
            NodeKind::Map(_) => Shape::Mapping,
            NodeKind::List(_) => Shape::List,
            NodeKind::Text(_) => Shape::Text,
            NodeKind::Number(_) => Shape::Number,
            NodeKind::Bool(_) => Shape::Truth,
            NodeKind::Null | NodeKind::Open(_) => Shape::Nothing,
        },
        bytes: key.start..value.bytes.end.max(key.end),
        key,
        children: symbols(value),
    };
    let items = node.list().iter().enumerate().filter(|(_, item)| !item.entries().is_empty());
    let items = items.map(|(at, item)| {
        let name =
            item.get("name").and_then(Node::text).map_or_else(|| join("", &format!("[{at}]")), str::to_owned);
        symbol(name, item.bytes.start..item.bytes.start, item)
    });
    let entries = node.entries().iter().filter(|e| !e.key.is_empty());
    let entries = entries.map(|e| symbol(e.key.clone(), e.key_bytes.clone(), &e.value));
    entries.chain(items).collect()
}
