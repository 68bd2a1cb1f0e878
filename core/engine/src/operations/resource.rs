//! Operations on resources.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use agents_config::nearest;
use agents_domain::ids::ResourceId;
use agents_domain::ports::store::{RegistryReads, Writer};
use agents_domain::project::Project;
use agents_domain::resource::{RESOURCE_TYPES, Resource, ResourceType, SandboxStrategy, resource_type};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use agents_sandbox::{Repository, SandboxError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::registry;
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

/// What every view of a resource has.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ResourceView {
    /// Discovered children have none.
    pub name: Option<String>,
    pub id: ResourceId,
    #[serde(rename = "type")]
    pub resource_type: String,
    pub physical_virtual: String,
    pub description: Option<String>,
    /// The type's own: `path`, `branch`, ...
    #[serde(flatten)]
    pub properties: Map<String, Value>,
    pub created: String,
    pub capabilities: Capabilities,
}

/// What can be done with a resource.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Capabilities {
    pub readable: bool,
    pub writable: bool,
    pub sandboxable: bool,
    pub checkpointable: bool,
    pub sandbox_strategy: String,
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

fn view(resource: &Resource) -> ResourceView {
    let kind = resource_type(&resource.resource_type);
    let strategy = kind.map_or(SandboxStrategy::None, |t| t.strategy);
    ResourceView {
        name: resource.name.as_ref().map(ToString::to_string),
        id: resource.resource_id,
        resource_type: resource.resource_type.clone(),
        physical_virtual: "physical".to_owned(),
        description: resource.description.clone(),
        properties: resource.properties.clone(),
        created: resource.created_at.seconds_rfc3339(),
        capabilities: Capabilities {
            readable: true,
            writable: kind.is_some_and(|t| t.writable),
            sandboxable: strategy != SandboxStrategy::None,
            checkpointable: strategy != SandboxStrategy::None,
            sandbox_strategy: strategy.as_str().to_owned(),
        },
    }
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

fn plans_are(count: usize) -> String {
    if count == 1 { "a plan is".to_owned() } else { format!("{count} plans are") }
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
        return Err(Error::validation(format!("a {} has no --{unknown}: it takes {}", kind.name, flags())));
    }
    for property in known {
        match given.get(property.name).map(|value| value.trim().is_empty()) {
            None if property.required => {
                return Err(Error::validation(format!("a {} needs --{}", kind.name, property.name)).suggest(
                    format!("agents resource add {} <NAME> --{} <VALUE>", kind.name, property.name),
                ));
            }
            Some(true) => return Err(Error::validation(format!("--{} is empty", property.name))),
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

/// All resources with who links to them, read at once.
struct Graph {
    resources: Vec<Resource>,
    projects: Vec<Project>,
}

impl Graph {
    fn read(r: &(impl RegistryReads + ?Sized)) -> agents_domain::ports::store::StoreResult<Self> {
        Ok(Self { resources: r.resources()?, projects: r.projects()? })
    }

    fn children(&self, id: ResourceId) -> impl Iterator<Item = &Resource> {
        self.resources.iter().filter(move |r| r.parents.contains(&id))
    }

    /// Everything below a resource, each once.
    fn descendants(&self, id: ResourceId) -> Vec<&Resource> {
        let mut seen = HashSet::from([id]);
        let mut found = Vec::new();
        let mut open = vec![id];
        while let Some(next) = open.pop() {
            for child in self.children(next) {
                if seen.insert(child.resource_id) {
                    found.push(child);
                    open.push(child.resource_id);
                }
            }
        }
        found
    }

    /// Projects that link it, with whether they may only read it.
    fn links(&self, id: ResourceId) -> impl Iterator<Item = (&QualifiedName, bool)> {
        self.projects.iter().filter_map(move |p| {
            p.resources.iter().find(|l| l.resource_id == id).map(|link| (&p.name, link.read_only))
        })
    }
}

/// Lists resources.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Discovered children too.
    #[serde(default)]
    pub all: bool,
    /// A regular expression on the type.
    #[serde(default)]
    pub resource_type: Option<String>,
}

/// Resources in the order registered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    pub resources: Vec<ListedResource>,
    pub summary: Summary,
}

/// A resource in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListedResource {
    pub name: Option<String>,
    pub id: ResourceId,
    #[serde(rename = "type")]
    pub resource_type: String,
    pub physical_virtual: String,
    pub location: Option<String>,
    pub children: usize,
    pub projects: Vec<String>,
}

/// Counts of what is listed.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Summary {
    pub total: usize,
    pub physical: usize,
    #[serde(rename = "virtual")]
    pub virtual_resources: usize,
    pub total_children: usize,
}

impl Operation for List {
    const METHOD: &'static str = "registry/resource/list";
    const SUMMARY: &'static str = "List resources";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let pattern = registry::pattern(self.resource_type.as_deref())?;
        let graph = engine.view(|r| Graph::read(r))?;
        let resources: Vec<ListedResource> = graph
            .resources
            .iter()
            .filter(|r| self.all || r.name.is_some())
            .filter(|r| pattern.as_ref().is_none_or(|p| p.is_match(&r.resource_type)))
            .map(|r| ListedResource {
                name: r.name.as_ref().map(ToString::to_string),
                id: r.resource_id,
                resource_type: r.resource_type.clone(),
                physical_virtual: "physical".to_owned(),
                location: r.location.clone(),
                children: graph.descendants(r.resource_id).len(),
                projects: graph.links(r.resource_id).map(|(name, _)| name.to_string()).collect(),
            })
            .collect();
        let summary = Summary {
            total: resources.len(),
            physical: resources.len(),
            virtual_resources: 0,
            total_children: resources.iter().filter(|r| r.name.is_some()).map(|r| r.children).sum(),
        };
        Ok(ListOutput { resources, summary })
    }
}

/// Shows a resource.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// Its name, its id, or the beginning of its id.
    pub resource: String,
}

/// A resource with what is around it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShowOutput {
    #[serde(flatten)]
    pub resource: ResourceView,
    pub parents: Vec<String>,
    pub direct_children: Vec<DirectChild>,
    /// Everything below it.
    pub total_children: usize,
    pub linked_projects: Vec<LinkedProject>,
    pub tool_bindings: Vec<ToolBinding>,
}

/// A child.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DirectChild {
    pub id: ResourceId,
    #[serde(rename = "type")]
    pub resource_type: String,
    /// It was found, not linked by hand.
    pub auto: bool,
    /// Itself and everything below it.
    pub children: usize,
}

/// A project that works on it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct LinkedProject {
    pub name: String,
    /// `r/w` or `read-only`.
    pub access: String,
}

/// A tool that uses it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ToolBinding {
    pub tool: String,
    pub slot: String,
    pub access: String,
}

impl Operation for Show {
    const METHOD: &'static str = "registry/resource/show";
    const SUMMARY: &'static str = "Show a resource";
    type Output = ShowOutput;

    fn run(self, engine: &Engine) -> Result<ShowOutput> {
        let resource = engine.resource(&self.resource)?;
        let graph = engine.view(|r| Graph::read(r))?;
        let id = resource.resource_id;
        let parent = |id: &ResourceId| {
            let known = graph.resources.iter().find(|r| r.resource_id == *id);
            known.map_or_else(|| id.to_string(), sandboxes::display_name)
        };
        let mut parents: Vec<String> = resource.parents.iter().map(parent).collect();
        if parents.is_empty() {
            parents.push("(top-level)".to_owned());
        }
        let child = |child: &Resource| DirectChild {
            id: child.resource_id,
            resource_type: child.resource_type.clone(),
            auto: child.name.is_none(),
            children: 1 + graph.descendants(child.resource_id).len(),
        };
        let link = |(name, read_only): (&QualifiedName, bool)| LinkedProject {
            name: name.to_string(),
            access: if read_only { "read-only" } else { "r/w" }.to_owned(),
        };
        Ok(ShowOutput {
            resource: view(&resource),
            parents,
            direct_children: graph.children(id).map(child).collect(),
            total_children: graph.descendants(id).len(),
            linked_projects: graph.links(id).map(link).collect(),
            tool_bindings: Vec::new(),
        })
    }
}

/// Removes a resource from the registry with what was found in it; its files stay.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// Its name, its id, or the beginning of its id.
    pub resource: String,
}

/// What was removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemoveOutput {
    pub name: String,
    #[serde(rename = "type")]
    pub resource_type: String,
    pub children_removed: usize,
    /// None is: a linked resource is not removed.
    pub projects_unlinked: usize,
}

impl Operation for Remove {
    const METHOD: &'static str = "registry/resource/remove";
    const SUMMARY: &'static str = "Remove a resource from the registry";
    type Output = RemoveOutput;

    fn run(self, engine: &Engine) -> Result<RemoveOutput> {
        let resource = engine.resource(&self.resource)?;
        let id = resource.resource_id;
        let Some(name) = &resource.name else {
            return Err(Error::validation(format!(
                "resource {id} was found, not registered: it goes when what it was found in is removed"
            ))
            .suggest(format!("agents resource show {id}")));
        };
        engine.write(|w| {
            let graph = Graph::read(w)?;
            let linked: Vec<String> = graph.links(id).map(|(project, _)| project.to_string()).collect();
            if !linked.is_empty() {
                let message = format!("resource `{name}` is linked to {}", linked.join(", "));
                let error = Error::invalid_state(message).data(json!({ "projects": linked }));
                return Err(linked.iter().fold(error, |error, project| {
                    error.suggest(format!("agents project unlink-resource {project} {name}"))
                }));
            }
            let plans = w.active_plans_of_resource(id)?;
            if !plans.is_empty() {
                let message = format!("{} still at work on resource `{name}`", plans_are(plans.len()));
                let error = Error::invalid_state(message).data(json!({ "active_plans": plans }));
                return Err(plans
                    .iter()
                    .fold(error, |error, plan| error.suggest(format!("agents plan cancel {plan}"))));
            }
            // A resource with a name of its own, or with another parent, stays.
            let below = graph.descendants(id);
            let going: HashSet<ResourceId> = below.iter().map(|r| r.resource_id).chain([id]).collect();
            let children: Vec<&Resource> = below
                .into_iter()
                .filter(|r| r.name.is_none() && r.parents.iter().all(|p| going.contains(p)))
                .collect();
            w.delete_resource(id)?;
            for child in &children {
                w.delete_resource(child.resource_id)?;
            }
            let cascade = children.iter().map(|c| json!({ "resource_id": c.resource_id })).collect();
            registry::deleted(engine, w, "resource", &name.to_string(), cascade)?;
            Ok(RemoveOutput {
                name: name.to_string(),
                resource_type: resource.resource_type.clone(),
                children_removed: children.len(),
                projects_unlinked: 0,
            })
        })
    }
}
