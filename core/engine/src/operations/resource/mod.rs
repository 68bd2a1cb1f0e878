//! Operations on resources.

mod add;
mod inspect;
mod tree;
mod types;

pub use add::{Add, AddOutput};
pub use inspect::{Inspect, InspectOutput};
pub use tree::{Tree, TreeOutput};
pub use types::{TypeList, TypeListOutput, TypeShow, TypeShowOutput};

use std::collections::HashSet;

use agents_domain::ids::ResourceId;
use agents_domain::ports::store::{RegistryReads, StoreResult};
use agents_domain::project::Project;
use agents_domain::resource::{Resource, SandboxStrategy, resource_type};
use agents_domain::{Error, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::registry;
use crate::{Engine, Operation, sandboxes};

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

fn plans_are(count: usize) -> String {
    if count == 1 { "a plan is".to_owned() } else { format!("{count} plans are") }
}

/// All resources with who links to them, read at once.
struct Graph {
    resources: Vec<Resource>,
    projects: Vec<Project>,
}

impl Graph {
    fn read(r: &(impl RegistryReads + ?Sized)) -> StoreResult<Self> {
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
