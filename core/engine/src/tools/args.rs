//! Arguments of tools: their schemas, what they are checked by, and which file of which sandbox they name.

use agents_domain::ids::ResourceId;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Scene;
use crate::sandboxes::OpenSandbox;

/// Bytes that the arguments of one call may have.
const MAX_ARGUMENTS: usize = 8 << 20;

/// Problems of arguments that are told at a time.
const MAX_PROBLEMS: usize = 5;

/// The schema of arguments.
pub(super) fn schema<T: JsonSchema>() -> Value {
    let mut schema = plain(schemars::schema_for!(T));
    schema["additionalProperties"] = false.into();
    schema
}

/// A schema without what a model has no use for.
pub(super) fn plain(schema: Schema) -> Value {
    let mut schema = schema.to_value();
    if let Some(members) = schema.as_object_mut() {
        members.shift_remove("$schema");
        members.shift_remove("title");
    }
    schema
}

/// Arguments as a type; `Err` names the field.
pub(super) fn read<T: DeserializeOwned>(args: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(args)
        .map_err(|error| format!("at `{}`: {}", error.path(), error.inner()))
}

/// See [`super::checked`].
pub(super) fn checked(
    name: &str,
    schema: &Value,
    aliases: &[(&str, &str)],
    args: Value,
) -> Result<Value, String> {
    let mut args = match args {
        Value::Null => Value::Object(Map::new()),
        args => args,
    };
    if serde_json::to_string(&args).map_or(0, |text| text.len()) > MAX_ARGUMENTS {
        return Err(format!("the arguments are larger than {} MB", MAX_ARGUMENTS >> 20));
    }
    if let Some(members) = args.as_object_mut() {
        for (alias, canonical) in aliases {
            if !members.contains_key(*canonical)
                && let Some(value) = members.shift_remove(*alias)
            {
                members.insert((*canonical).to_owned(), value);
            }
        }
        let optional = |key: &String| {
            let required = schema["required"].as_array();
            !required.is_some_and(|all| all.iter().any(|one| one == key.as_str()))
        };
        // A model that fills in every field says `null` for what it leaves out.
        members.retain(|key, value| !(value.is_null() && optional(key)));
    }
    let validator = jsonschema::validator_for(schema).map_err(|e| format!("the schema of {name}: {e}"))?;
    let problems: Vec<String> = validator
        .iter_errors(&args)
        .take(MAX_PROBLEMS)
        .map(|error| match error.instance_path().to_string().trim_start_matches('/') {
            "" => error.to_string(),
            place => format!("at `{}`: {error}", place.replace('/', ".")),
        })
        .collect();
    if !problems.is_empty() {
        return Err(format!("the arguments do not fit: {}", problems.join("; ")));
    }
    fill_defaults(schema, &mut args);
    Ok(args)
}

/// Gives what is left out the value that the schema says.
pub(super) fn fill_defaults(schema: &Value, value: &mut Value) {
    let (Some(properties), Some(members)) = (schema["properties"].as_object(), value.as_object_mut()) else {
        return;
    };
    for (key, of) in properties {
        match members.get_mut(key) {
            Some(value) => fill_defaults(of, value),
            None => {
                if let Some(default) = of.get("default").filter(|default| !default.is_null()) {
                    members.insert(key.clone(), default.clone());
                }
            }
        }
    }
}

/// A page of an answer.
#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
pub(super) struct Page {
    /// Results on the page.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// Results to leave out at the beginning: the `next_offset` of the page before.
    #[serde(default)]
    pub offset: usize,
}

/// Bytes of one page, so that it fits a model's context.
const PAGE_BYTES: usize = 48_000;

impl Page {
    /// Cuts the page out of all results, `usual` at most unless another limit is given, `most` at most in any case.
    pub(super) fn cut(self, all: &[Value], usual: usize, most: usize) -> Value {
        let limit = self.limit.unwrap_or(usual).clamp(1, most);
        let mut bytes = 0;
        let mut results = Vec::new();
        for one in all.iter().skip(self.offset).take(limit) {
            bytes += one.to_string().len();
            if bytes > PAGE_BYTES && !results.is_empty() {
                break;
            }
            results.push(one.clone());
        }
        let end = self.offset.saturating_add(results.len());
        let mut page = serde_json::json!({ "results": results, "total": all.len() });
        if end < all.len() {
            page["next_offset"] = end.into();
        }
        page
    }
}

/// The sandbox that an argument names, by the name or the id of its resource; without one the only sandbox.
pub(super) fn sandbox<'a>(scene: &'a Scene<'_>, resource: Option<&str>) -> Result<&'a OpenSandbox, String> {
    let all = scene.sandboxes;
    let names = || all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
    match (resource, all) {
        (_, []) => Err("the plan has no resource to work on".to_owned()),
        (None, [only]) => Ok(only),
        (None, _) => Err(format!("say which resource is meant, as `resource`: {}", names())),
        (Some(wanted), all) => {
            let last = |name: &str| name.rsplit('/').next() == Some(wanted);
            let found = all.iter().find(|one| one.name == wanted || one.resource_id.to_string() == wanted);
            let mut short = all.iter().filter(|one| last(&one.name));
            match (found, short.next(), short.next()) {
                (Some(found), ..) | (None, Some(found), None) => Ok(found),
                _ => Err(format!("there is no resource `{wanted}`; there is {}", names())),
            }
        }
    }
}

/// The sandbox and the path in it that arguments name. A path may say its resource itself, as `path://<resource>/...`
/// (TOOL-031), and may be absolute where it leads into a sandbox.
pub(super) fn place<'a>(
    scene: &'a Scene<'_>,
    resource: Option<&str>,
    path: &str,
) -> Result<(&'a OpenSandbox, String), String> {
    if let Some(rest) = path.strip_prefix("path://") {
        let named = scene.sandboxes.iter().find_map(|one| {
            let inside = [one.name.as_str(), one.name.rsplit('/').next().unwrap_or_default()];
            inside.into_iter().find_map(|name| {
                let rest = rest.strip_prefix(name)?;
                (rest.is_empty() || rest.starts_with('/')).then(|| (one, rest.trim_start_matches('/')))
            })
        });
        let (sandbox, rest) = named.ok_or_else(|| format!("`{path}` names no resource of the plan"))?;
        return Ok((sandbox, rest.to_owned()));
    }
    if std::path::Path::new(path).is_absolute() {
        let holds = scene.sandboxes.iter().find_map(|one| {
            let rest = std::path::Path::new(path).strip_prefix(&one.root).ok()?;
            Some((one, crate::sandboxes::slashes(rest)))
        });
        return holds.ok_or_else(|| {
            format!("`{path}` is outside of what the plan works on; give a path relative to its resource")
        });
    }
    if let (None, true) = (resource, scene.sandboxes.len() > 1) {
        // The path alone tells when only one of them has such a file.
        let mut having = scene.sandboxes.iter().filter(|one| one.root.join(path).symlink_metadata().is_ok());
        if let (Some(one), None) = (having.next(), having.next()) {
            return Ok((one, path.to_owned()));
        }
    }
    Ok((sandbox(scene, resource)?, path.to_owned()))
}

/// The same for what is to be written.
pub(super) fn writable<'a>(
    scene: &'a Scene<'_>,
    resource: Option<&str>,
    path: &str,
) -> Result<(&'a OpenSandbox, ResourceId, String), String> {
    let (sandbox, path) = place(scene, resource, path)?;
    if sandbox.read_only {
        return Err(format!("resource {} is linked read-only", sandbox.name));
    }
    Ok((sandbox, sandbox.resource_id, path))
}
