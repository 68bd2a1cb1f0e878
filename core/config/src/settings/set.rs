//! Setting a key in the text of a configuration file without touching the rest of it.

use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use serde_json::Value;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike};

use super::keys::{Key, Kind, key_of_path};
use super::unknown_key;

pub(super) fn set_text(file_text: &str, name: &str, value: &str, project: Option<&str>) -> Result<String> {
    let (key, rest) = key_of_path(name)
        .filter(|(key, rest)| key.kind != Kind::Table || !rest.is_empty() && *rest != "*")
        .ok_or_else(|| unknown_key(name, ErrorKind::ValidationFailed))?;
    // A key that has another spelling is written by its own.
    let name = if rest.is_empty() { key.name } else { name };
    let refused = |message: String| Error::validation(message);
    if key.name == "core.config-path" {
        return Err(refused("the configuration file cannot say where it is itself".to_owned())
            .suggest("--config-path <PATH>")
            .suggest("set CLEVERAGENTS_CONFIG_PATH"));
    }
    if project.is_some() && !key.per_project {
        return Err(refused(format!("a project cannot have its own `{}`", key.name)));
    }
    let parsed = key.parse(value).map_err(|expected| refused(format!("`{name}` must be {expected}")))?;
    if parsed.is_null() {
        return Err(refused(format!("`{name}` must not be empty")));
    }
    let mut document: DocumentMut = file_text.parse().map_err(|e: toml_edit::TomlError| {
        refused(format!("the configuration file is not TOML: {}", e.message()))
    })?;
    let item = Item::Value(toml_value(&parsed)?);
    match project {
        Some(project) => set_in_project(&mut document, project, name, item)?,
        None => set_global(document.as_table_mut(), key, name, item)?,
    }
    Ok(document.to_string())
}

fn set_in_project(document: &mut DocumentMut, project: &str, name: &str, item: Item) -> Result<()> {
    let project = project.parse::<QualifiedName>()?.to_string();
    let projects = subtable(document.as_table_mut(), "project", true)?;
    let existing = projects
        .iter()
        .map(|(name, _)| name.to_owned())
        .find(|name| name.parse::<QualifiedName>().is_ok_and(|n| n.to_string() == project));
    let section = subtable(projects, existing.as_deref().unwrap_or(&project), false)?;
    match find(section, name) {
        Some(place) => replace(place, item),
        None => {
            section.insert(name, item);
        }
    }
    Ok(())
}

fn set_global(root: &mut Table, key: &Key, name: &str, item: Item) -> Result<()> {
    if let Some(place) = find(root, name) {
        // The text form of a key that has become a table with keys of its own.
        if place.is_table_like() && key.kind != Kind::Table {
            let table = place.as_table_like_mut().ok_or_else(|| blocked(name))?;
            match table.get_mut("class") {
                Some(class) => replace(class, item),
                None => {
                    table.insert("class", item);
                }
            }
        } else {
            replace(place, item);
        }
        return Ok(());
    }
    let parts: Vec<&str> = name.split('.').collect();
    let Some((last, path)) = parts.split_last() else { return Err(blocked(name)) };
    let mut here: &mut dyn TableLike = root;
    for (at, part) in path.iter().enumerate() {
        let is_text = here.get(part).is_some_and(|item| item.as_str().is_some());
        if is_text {
            // A key that was a text gets keys below it.
            let text = here.remove(part).unwrap_or_default();
            let mut table = Table::new();
            table.insert("class", text);
            here.insert(part, Item::Table(table));
        }
        let implicit = at + 1 < path.len();
        here = subtable(here, part, implicit)?;
    }
    here.insert(last, item);
    Ok(())
}

fn blocked(name: &str) -> Error {
    Error::validation(format!("the configuration file has a value where `{name}` needs a table"))
}

/// The table of that name, made when it is missing. An implicit one shows only through the tables below it.
fn subtable<'t>(parent: &'t mut dyn TableLike, name: &str, implicit: bool) -> Result<&'t mut dyn TableLike> {
    if !parent.contains_key(name) {
        let mut table = Table::new();
        table.set_implicit(implicit);
        parent.insert(name, Item::Table(table));
    }
    parent.get_mut(name).and_then(Item::as_table_like_mut).ok_or_else(|| blocked(name))
}

/// The item a dotted path leads to, by any mix of nested, dotted and quoted keys.
fn find<'t>(table: &'t mut dyn TableLike, path: &str) -> Option<&'t mut Item> {
    if table.contains_key(path) {
        return table.get_mut(path);
    }
    let (at, _) = path.match_indices('.').find(|(at, _)| {
        let inner = table.get_mut(&path[..*at]).and_then(Item::as_table_like_mut);
        inner.is_some_and(|inner| find(inner, &path[at + 1..]).is_some())
    })?;
    let inner = table.get_mut(&path[..at])?.as_table_like_mut()?;
    find(inner, &path[at + 1..])
}

/// Puts a value in another's place, with the blanks and comments around it.
fn replace(place: &mut Item, item: Item) {
    match (place.as_value().map(|v| v.decor().clone()), item) {
        (Some(decor), Item::Value(mut value)) => {
            *value.decor_mut() = decor;
            *place = Item::Value(value);
        }
        (_, item) => *place = item,
    }
}

fn toml_value(value: &Value) -> Result<toml_edit::Value> {
    Ok(match value {
        Value::Bool(b) => (*b).into(),
        Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(n), _) => n.into(),
            (None, Some(n)) => n.into(),
            (None, None) => return Err(Error::validation(format!("{n} does not fit into a TOML number"))),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            let values = items.iter().map(toml_value).collect::<Result<Vec<_>>>()?;
            toml_edit::Value::Array(values.into_iter().collect())
        }
        Value::Object(map) => {
            let mut table = InlineTable::new();
            for (key, value) in map {
                table.insert(key, toml_value(value)?);
            }
            toml_edit::Value::InlineTable(table)
        }
        Value::Null => return Err(Error::validation("TOML has no null")),
    })
}
