//! The configuration file as values by key: dotted, nested and quoted keys mean the same.

use std::collections::BTreeMap;
use std::ops::Range as Bytes;
use std::path::Path;

use agents_domain::QualifiedName;
use agents_domain::interpolate::interpolate;
use serde_json::{Map, Value};
use toml_edit::{Document, Item, TableLike};

use super::keys::{ALIASES, Key, Kind, key, key_of_path, near, whole_path};
use super::table::KEYS;
use crate::yaml::Source;

/// A value with the 1-based line it stands on.
#[derive(Clone, PartialEq)]
pub(super) struct Located {
    pub value: Value,
    pub line: u32,
}

/// What the file sets.
#[derive(Clone, Default)]
pub(super) struct Values {
    pub global: BTreeMap<&'static str, Located>,
    pub projects: BTreeMap<String, BTreeMap<&'static str, Located>>,
}

/// What the values of a file depend on.
pub(super) struct Around<'a> {
    pub env: &'a dyn Fn(&str) -> Option<String>,
    pub home: Option<&'a Path>,
    /// The file's directory, which relative paths start from.
    pub base: Option<&'a Path>,
}

/// Reads a file's text; problems go to `source`.
pub(super) fn read(source: &mut Source<'_>, around: &Around<'_>) -> Values {
    let mut values = Values::default();
    match Document::parse(source.text) {
        Ok(document) => {
            let mut reader = Reader { source, around, values: &mut values, project: None };
            reader.table(document.as_table(), "");
        }
        Err(error) => {
            let bytes = error.span().unwrap_or(0..0);
            source.error("", &bytes, format!("this is not TOML: {}", error.message().replace('\n', ", ")));
        }
    }
    values
}

struct Reader<'r, 's> {
    source: &'r mut Source<'s>,
    around: &'r Around<'r>,
    values: &'r mut Values,
    /// The project whose section this is.
    project: Option<String>,
}

impl Reader<'_, '_> {
    fn table(&mut self, table: &dyn TableLike, prefix: &str) {
        for (name, item) in table.iter() {
            let path = crate::yaml::join(prefix, name);
            let key_bytes =
                table.key(name).and_then(toml_edit::Key::span).or_else(|| item.span()).unwrap_or(0..0);
            self.item(&path, key_bytes, item);
        }
    }

    fn item(&mut self, path: &str, key_bytes: Bytes<usize>, item: &Item) {
        if let Some((key, rest)) = key_of_path(path) {
            return match item.as_table_like() {
                Some(table) if key.kind != Kind::Table && key.is_parent() => {
                    if let Some(class) = table.get("class") {
                        self.value(key, "", key_bytes, class);
                    }
                    for (name, inner) in table.iter().filter(|(name, _)| *name != "class") {
                        let bytes = table.key(name).and_then(toml_edit::Key::span).unwrap_or(0..0);
                        self.item(&crate::yaml::join(path, name), bytes, inner);
                    }
                }
                _ => self.value(key, rest, key_bytes, item),
            };
        }
        match item.as_table_like() {
            Some(projects) if path == "project" && self.project.is_none() => self.projects(projects),
            Some(table) if is_subtree(path) => self.table(table, path),
            _ => {
                let meant = near(path).map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
                self.source.warn(path, &key_bytes, format!("there is no configuration key `{path}`{meant}"));
            }
        }
    }

    fn projects(&mut self, projects: &dyn TableLike) {
        for (name, item) in projects.iter() {
            let path = format!("project.\"{name}\"");
            let bytes = projects.key(name).and_then(toml_edit::Key::span).unwrap_or(0..0);
            match (name.parse::<QualifiedName>(), item.as_table_like()) {
                (Ok(name), Some(table)) => {
                    self.project = Some(name.to_string());
                    self.table(table, "");
                    self.project = None;
                }
                (Err(error), _) => self.source.warn(&path, &bytes, format!("this is no project: {error}")),
                (Ok(_), None) => self.source.error(&path, &bytes, format!("`{path}` must be a table")),
            }
        }
    }

    fn value(&mut self, key: &'static Key, rest: &str, key_bytes: Bytes<usize>, item: &Item) {
        let bytes = item.span().unwrap_or_else(|| key_bytes.clone());
        if self.project.is_some() && !key.per_project {
            let message = format!("a project cannot have its own `{}`: this has no effect", key.name);
            return self.source.warn(key.name, &key_bytes, message);
        }
        let raw = match self.interpolated(item) {
            Ok(raw) => raw,
            Err(missing) => {
                let message =
                    format!("`{}` uses `${{{missing}}}`, which is not set in the environment", key.name);
                return self.source.error(key.name, &bytes, message);
            }
        };
        // A text with a variable in it stands for a value of any type.
        let had_variable = item.as_str().is_some_and(|text| text.contains("${"));
        let checked = match raw.as_str() {
            Some(text) if had_variable => key.parse(text),
            _ if !rest.is_empty() => Ok(nested(rest, raw)),
            _ => key.check(&raw),
        };
        let value = match checked {
            Ok(Value::Null) => return,
            Ok(Value::String(text)) if key.kind == Kind::Path => {
                whole_path(&text, self.around.home, self.around.base).into()
            }
            Ok(value) => value,
            Err(expected) => {
                return self.source.error(key.name, &bytes, format!("`{}` must be {expected}", key.name));
            }
        };
        let line = self.source.range(&key_bytes).start.line + 1;
        let section = match &self.project {
            Some(project) => self.values.projects.entry(project.clone()).or_default(),
            None => &mut self.values.global,
        };
        match section.get_mut(key.name) {
            Some(known) if key.kind == Kind::Table => merge(&mut known.value, value),
            Some(known) => {
                let message = format!("`{}` is set twice; it is first set on line {}", key.name, known.line);
                self.source.error(key.name, &key_bytes, message);
            }
            None => {
                section.insert(key.name, Located { value, line });
            }
        }
    }

    /// The item as JSON with variables put in.
    fn interpolated(&self, item: &Item) -> Result<Value, String> {
        let array = |values: &toml_edit::Array| -> Result<Value, String> {
            values.iter().map(|v| self.interpolated(&Item::Value(v.clone()))).collect()
        };
        if let Some(table) = item.as_table_like() {
            let entries = table.iter().map(|(key, item)| Ok((key.to_owned(), self.interpolated(item)?)));
            return entries.collect::<Result<Map<_, _>, String>>().map(Value::Object);
        }
        Ok(match item {
            Item::Value(toml_edit::Value::String(text)) => {
                interpolate(text.value(), &mut |name| (self.around.env)(name))?.into()
            }
            Item::Value(toml_edit::Value::Integer(n)) => (*n.value()).into(),
            Item::Value(toml_edit::Value::Float(n)) => (*n.value()).into(),
            Item::Value(toml_edit::Value::Boolean(b)) => (*b.value()).into(),
            Item::Value(toml_edit::Value::Datetime(time)) => time.value().to_string().into(),
            Item::Value(toml_edit::Value::Array(values)) => array(values)?,
            Item::ArrayOfTables(tables) => tables
                .iter()
                .map(|table| self.interpolated(&Item::Table(table.clone())))
                .collect::<Result<Value, String>>()?,
            _ => Value::Null,
        })
    }
}

/// Some key lies below the path.
fn is_subtree(path: &str) -> bool {
    key(path).is_none()
        && KEYS
            .iter()
            .map(|k| k.name)
            .chain(ALIASES.iter().map(|(alias, _)| *alias))
            .any(|name| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// `a.b` and a value as `{a: {b: value}}`.
fn nested(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |value, part| Value::Object(Map::from_iter([(part.to_owned(), value)])))
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                match into.get_mut(&key) {
                    Some(known) => merge(known, value),
                    None => {
                        into.insert(key, value);
                    }
                }
            }
        }
        (into, more) => *into = more,
    }
}
