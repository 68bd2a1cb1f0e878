//! `resource add`: what is at a place, and what is registered of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agents_config::nearest;
use agents_domain::ids::ResourceId;
use agents_domain::ports::store::Writer;
use agents_domain::resource::{RESOURCE_TYPES, Resource, ResourceType, resource_type};
use agents_domain::{Error, ErrorKind, Result};
use agents_sandbox::{Repository, SandboxError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::registry;
use super::{ResourceView, plans_are, view};
use crate::{Engine, Operation, clock, sandboxes};

/// A property a person gives when registering.
struct Property {
    name: &'static str,
    required: bool,
}

/// The properties of the types that people register.
fn properties_of(type_name: &str) -> &'static [Property] {
    const PATH: Property = Property { name: "path", required: true };
    match type_name {
        "git-checkout" => &[PATH, Property { name: "branch", required: false }],
        "fs-directory" => &[PATH],
        _ => &[],
    }
}

/// Registers a resource and what is found in it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// The type, such as `git-checkout`.
    pub resource_type: String,
    /// Its name, unique among all resources.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: Option<String>,
    /// What the type asks for: `path` (absolute), and `branch` of a git-checkout.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// Replace a resource of that name and type; its id stays.
    #[serde(default)]
    pub update: bool,
}

/// The registered resource.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AddOutput {
    #[serde(flatten)]
    pub resource: ResourceView,
    pub auto_discovered_children: Vec<DiscoveredChild>,
    /// Children too many to list, by type.
    pub children_summary: BTreeMap<String, usize>,
    pub total_children: usize,
    /// It replaced one of that name.
    pub updated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A child that was found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DiscoveredChild {
    pub id: ResourceId,
    #[serde(rename = "type")]
    pub resource_type: String,
    pub status: String,
}

/// What was found where the resource is.
struct Found {
    location: PathBuf,
    properties: Map<String, Value>,
    /// Type and location of each child.
    children: Vec<(&'static str, PathBuf)>,
    warnings: Vec<String>,
}

impl Operation for Add {
    const METHOD: &'static str = "registry/resource/add";
    const SUMMARY: &'static str = "Register a resource";
    type Output = AddOutput;

    fn run(self, engine: &Engine) -> Result<AddOutput> {
        let name = engine.name(&self.name)?;
        registry::check_own("a resource", &name)?;
        let kind = addable(&self.resource_type)?;
        check_properties(kind, &self.properties)?;
        let found = look(kind, &self.properties)?;
        let location = found.location.display().to_string();
        engine.write(|w| {
            let known = w.resource_named(&name)?;
            if let Some(known) = &known {
                self.check_replaceable(w, known, &location)?;
            }
            let same_place = |r: &Resource| {
                r.resource_type == kind.name
                    && r.location.as_deref() == Some(&location)
                    && r.name.as_ref() != Some(&name)
            };
            if let Some(other) = w.resources()?.iter().find(|r| r.name.is_some() && same_place(r)) {
                let other = sandboxes::display_name(other);
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!("{location} is registered already, as `{other}`"),
                )
                .suggest(format!("agents resource show {other}"))
                .suggest(format!("agents project link-resource <PROJECT> {other}")));
            }
            let now = clock::now();
            let resource = Resource {
                resource_id: known
                    .as_ref()
                    .map_or_else(|| ResourceId::from_ulid(clock::ulid()), |r| r.resource_id),
                name: Some(name.clone()),
                resource_type: kind.name.to_owned(),
                description: self.description.clone().or_else(|| known.as_ref()?.description.clone()),
                location: Some(location.clone()),
                properties: found.properties.clone(),
                parents: known.as_ref().map_or_else(Vec::new, |r| r.parents.clone()),
                created_at: known.as_ref().map_or(now, |r| r.created_at),
                updated_at: known.as_ref().map_or(now, |r| clock::after(r.updated_at)),
            };
            match &known {
                Some(_) => w.update_resource(&resource)?,
                None => w.insert_resource(&resource)?,
            }
            let children = put_children(w, &resource, &found.children)?;
            let change = if known.is_some() { "updated" } else { "added" };
            registry::changed(engine, w, "resource", &name.to_string(), change)?;
            Ok(AddOutput {
                resource: view(&resource),
                total_children: children.len(),
                auto_discovered_children: children,
                children_summary: BTreeMap::new(),
                updated: known.is_some(),
                warnings: found.warnings.clone(),
            })
        })
    }
}

impl Add {
    fn check_replaceable(&self, w: &dyn Writer, known: &Resource, location: &str) -> Result<()> {
        let name = sandboxes::display_name(known);
        if !self.update {
            let message = format!("Resource '{name}' is already registered.");
            let flags: Vec<String> =
                self.properties.iter().map(|(key, value)| format!("--{key} {value}")).collect();
            let command =
                format!("agents resource add --update {} {name} {}", self.resource_type, flags.join(" "));
            return Err(Error::new(ErrorKind::AlreadyExists, &message).suggest(&command).data(json!({
                "error": message, "hint": "Use --update to overwrite", "suggested_command": command.trim_end(),
            })));
        }
        if known.resource_type != self.resource_type {
            return Err(Error::validation(format!(
                "resource `{name}` is of type {}: an update cannot make it {}",
                known.resource_type, self.resource_type
            ))
            .suggest(format!("agents resource remove {name}")));
        }
        let moved = known.location.as_deref() != Some(location);
        let active = w.active_plans_of_resource(known.resource_id)?;
        if moved && let Some(plan) = active.first() {
            return Err(Error::invalid_state(format!(
                "resource `{name}` cannot move: {} at work on it",
                plans_are(active.len())
            ))
            .suggest(format!("agents plan cancel {plan}")));
        }
        Ok(())
    }
}

/// The type of that name, when people may register resources of it.
fn addable(name: &str) -> Result<&'static ResourceType> {
    let own = || RESOURCE_TYPES.iter().filter(|t| t.user_addable).map(|t| t.name);
    let list = own().collect::<Vec<_>>().join(", ");
    match resource_type(name) {
        Some(kind) if kind.user_addable => Ok(kind),
        Some(kind) => Err(Error::validation(format!(
            "resources of type {} are found, not registered: those that can be registered are {list}",
            kind.name
        ))),
        None => {
            let error = Error::not_found(format!("there is no resource type `{name}`: there is {list}"));
            Err(match nearest(name, own()) {
                Some(meant) => error.suggest(format!("did you mean `{meant}`?")),
                None => error,
            })
        }
    }
}

fn check_properties(kind: &ResourceType, given: &BTreeMap<String, String>) -> Result<()> {
    let known = properties_of(kind.name);
    let flags = || known.iter().map(|p| format!("--{}", p.name)).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = given.keys().find(|key| !known.iter().any(|p| p.name == key.as_str())) {
        let message = format!("a {} has no --{unknown}: it takes {}", kind.name, flags());
        return Err(Error::new(ErrorKind::Usage, message));
    }
    for property in known {
        match given.get(property.name).map(|value| value.trim().is_empty()) {
            None if property.required => {
                let message = format!("a {} needs --{}", kind.name, property.name);
                return Err(Error::new(ErrorKind::Usage, message).suggest(format!(
                    "agents resource add {} <NAME> --{} <VALUE>",
                    kind.name, property.name
                )));
            }
            Some(true) => return Err(Error::new(ErrorKind::Usage, format!("--{} is empty", property.name))),
            _ => {}
        }
    }
    Ok(())
}

/// Looks at the place a resource is to be made of.
fn look(kind: &ResourceType, given: &BTreeMap<String, String>) -> Result<Found> {
    let path = given.get("path").map_or("", String::as_str);
    let location = Path::new(path).canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::not_found(format!("there is no directory {path}")),
        _ => Error::new(ErrorKind::Io, format!("{path}: {error}")),
    })?;
    if !location.is_dir() {
        return Err(Error::validation(format!("{} is not a directory", location.display())));
    }
    if location.to_str().is_none() {
        return Err(Error::validation(format!("the path {} is not UTF-8", location.display())));
    }
    let mut properties = Map::new();
    properties.insert("path".to_owned(), location.display().to_string().into());
    let (mut children, mut warnings) = (Vec::new(), Vec::new());
    if kind.name == "git-checkout" {
        let checkout = open_checkout(&location)?;
        let wanted = given.get("branch").map(String::as_str);
        let branch = branch(&location, checkout.as_ref(), wanted)?;
        if branch.is_none() && checkout.is_some() {
            warnings.push(format!(
                "HEAD of {} is detached: applying a plan will make a new branch",
                location.display()
            ));
        }
        properties.insert("branch".to_owned(), branch.into());
        match checkout {
            Some(repository) => children.push(("git", repository.common_dir().to_owned())),
            None => {
                warnings.push(format!(
                    "{} has no commit yet: plans can work on it after the first one",
                    location.display()
                ));
                children.push(("git", location.join(".git")));
            }
        }
    }
    Ok(Found { location, properties, children, warnings })
}

/// The checkout at its top level; `None` when it has no commit yet.
fn open_checkout(location: &Path) -> Result<Option<Repository>> {
    match Repository::open(location) {
        Ok(repository) => Ok(Some(repository)),
        Err(SandboxError::Unborn { .. }) => Ok(None),
        Err(error) => Err(sandboxes::sandbox_error(error)),
    }
}

/// The branch that is checked out; naming another one is an error, since plans work on what is checked out.
fn branch(location: &Path, checkout: Option<&Repository>, wanted: Option<&str>) -> Result<Option<String>> {
    let Some(checkout) = checkout else { return Ok(wanted.map(str::to_owned)) };
    let head = checkout.head().map_err(sandboxes::sandbox_error)?.branch;
    let place = location.display();
    match (wanted, head) {
        (Some(wanted), Some(head)) if wanted != head => {
            Err(Error::validation(format!("{place} has `{head}` checked out, not `{wanted}`"))
                .suggest(format!("git -C {place} switch {wanted}"))
                .suggest("leave --branch out to take what is checked out"))
        }
        (Some(wanted), None) => {
            Err(Error::validation(format!("{place} has a detached HEAD, not branch `{wanted}` checked out"))
                .suggest(format!("git -C {place} switch {wanted}")))
        }
        (_, head) => Ok(head),
    }
}

/// Brings the discovered children in line with what was found.
fn put_children(
    w: &dyn Writer,
    parent: &Resource,
    found: &[(&'static str, PathBuf)],
) -> Result<Vec<DiscoveredChild>> {
    let known: Vec<Resource> = w
        .resources()?
        .into_iter()
        .filter(|r| r.name.is_none() && r.parents.contains(&parent.resource_id))
        .collect();
    let mut children = Vec::new();
    for (kind, place) in found {
        let location = place.display().to_string();
        let properties = Map::from_iter([("path".to_owned(), Value::from(location.clone()))]);
        let (id, status) = match known.iter().find(|r| r.resource_type == *kind) {
            Some(child) if child.location.as_deref() == Some(&location) => (child.resource_id, "unchanged"),
            Some(child) => {
                let updated_at = clock::after(child.updated_at);
                w.update_resource(&Resource {
                    location: Some(location),
                    properties,
                    updated_at,
                    ..child.clone()
                })?;
                (child.resource_id, "updated")
            }
            None => {
                let id = ResourceId::from_ulid(clock::ulid());
                w.insert_resource(&Resource {
                    resource_id: id,
                    name: None,
                    resource_type: (*kind).to_owned(),
                    description: None,
                    location: Some(location),
                    properties,
                    parents: vec![parent.resource_id],
                    created_at: parent.updated_at,
                    updated_at: parent.updated_at,
                })?;
                (id, "created")
            }
        };
        children.push(DiscoveredChild { id, resource_type: (*kind).to_owned(), status: status.to_owned() });
    }
    Ok(children)
}
