//! `project link-resource` and `project unlink-resource`.

use agents_domain::project::ProjectResource;
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::registry;
use super::{find, linkable, state_text};
use crate::{Engine, Operation, clock};

/// Links a resource to a project.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkResource {
    /// The project's name.
    pub project: String,
    /// The resource's name or id.
    pub resource: String,
    /// The project's plans may not change it.
    #[serde(default)]
    pub read_only: bool,
}

/// The new link.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct LinkResourceOutput {
    pub resource_linked: ResourceLink,
    pub access: Access,
    pub indexing: Indexing,
}

/// A link.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ResourceLink {
    pub project: String,
    pub resource: String,
    #[serde(rename = "type")]
    pub resource_type: String,
    pub read_only: bool,
}

/// What the project's plans may do with it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Access {
    pub read: String,
    pub write: String,
    pub apply: String,
}

/// What indexing it started.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Indexing {
    pub status: String,
    pub files_found: usize,
    pub language: Option<String>,
    pub estimated_time_seconds: u64,
}

impl Operation for LinkResource {
    const METHOD: &'static str = "project/link_resource";
    const SUMMARY: &'static str = "Link a resource to a project";
    type Output = LinkResourceOutput;

    fn run(self, engine: &Engine) -> Result<LinkResourceOutput> {
        let (project, ..) = find(engine, &self.project)?;
        let (resource, resource_name) = linkable(engine, &self.resource)?;
        let name = project.name;
        engine.write(|w| {
            let mut project =
                w.project(&name)?.ok_or_else(|| Error::not_found(format!("there is no project `{name}`")))?;
            if project.resources.iter().any(|link| link.resource_id == resource.resource_id) {
                let message = format!("Resource '{resource_name}' is already linked to project '{name}'");
                return Err(Error::new(ErrorKind::AlreadyExists, message)
                    .suggest(format!("agents project show {name}"))
                    .suggest(format!("agents project unlink-resource {name} {resource_name}")));
            }
            project
                .resources
                .push(ProjectResource { resource_id: resource.resource_id, read_only: self.read_only });
            project.updated_at = clock::after(project.updated_at);
            w.update_project(&project)?;
            registry::changed(engine, w, "project", &name.to_string(), "linked")
        })?;
        let yes_or = |no: bool| if no { "denied" } else { "allowed" }.to_owned();
        Ok(LinkResourceOutput {
            resource_linked: ResourceLink {
                project: name.to_string(),
                resource: resource_name.to_string(),
                resource_type: resource.resource_type,
                read_only: self.read_only,
            },
            access: Access {
                read: "allowed".to_owned(),
                write: yes_or(self.read_only),
                apply: if self.read_only { "denied" } else { "requires approval" }.to_owned(),
            },
            indexing: Indexing {
                status: "disabled".to_owned(),
                files_found: 0,
                language: None,
                estimated_time_seconds: 0,
            },
        })
    }
}

/// Takes a resource out of a project; it stays registered.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnlinkResource {
    /// The project's name.
    pub project: String,
    /// The resource's name or id.
    pub resource: String,
}

/// What was unlinked.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct UnlinkResourceOutput {
    pub resource_unlinked: UnlinkedResource,
    pub index_cleanup: IndexCleanup,
    pub project_summary: ProjectSummary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What went from the indexes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct IndexCleanup {
    pub text_index: String,
    pub vectors: String,
    pub graph_triples: String,
    pub duration_seconds: f64,
}

/// A link that is gone.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct UnlinkedResource {
    pub project: String,
    pub resource: String,
    #[serde(rename = "type")]
    pub resource_type: String,
}

/// The project as it is now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ProjectSummary {
    pub linked_resources: usize,
    pub last_updated: String,
    pub active_plans: usize,
}

impl Operation for UnlinkResource {
    const METHOD: &'static str = "project/unlink_resource";
    const SUMMARY: &'static str = "Take a resource out of a project";
    type Output = UnlinkResourceOutput;

    fn run(self, engine: &Engine) -> Result<UnlinkResourceOutput> {
        let (project, ..) = find(engine, &self.project)?;
        let (resource, resource_name) = linkable(engine, &self.resource)?;
        let name = project.name;
        engine.write(|w| {
            let mut project =
                w.project(&name)?.ok_or_else(|| Error::not_found(format!("there is no project `{name}`")))?;
            let before = project.resources.len();
            project.resources.retain(|link| link.resource_id != resource.resource_id);
            if project.resources.len() == before {
                return Err(Error::not_found(format!(
                    "resource `{resource_name}` is not linked to project `{name}`"
                ))
                .suggest(format!("agents project show {name}")));
            }
            project.updated_at = clock::after(project.updated_at);
            w.update_project(&project)?;
            registry::changed(engine, w, "project", &name.to_string(), "unlinked")?;
            let of_project = w.active_plans_of_project(&name)?;
            let of_resource = w.active_plans_of_resource(resource.resource_id)?;
            let warnings = of_project.iter().filter(|row| of_resource.contains(&row.plan_id)).map(|row| {
                let state = state_text(row);
                format!("plan {} ({state}, {}) still works on {resource_name}", row.plan_id, row.action)
            });
            Ok(UnlinkResourceOutput {
                resource_unlinked: UnlinkedResource {
                    project: name.to_string(),
                    resource: resource_name.to_string(),
                    resource_type: resource.resource_type.clone(),
                },
                index_cleanup: IndexCleanup {
                    text_index: super::NO_INDEX.to_owned(),
                    vectors: super::NO_INDEX.to_owned(),
                    graph_triples: super::NO_INDEX.to_owned(),
                    duration_seconds: 0.0,
                },
                project_summary: ProjectSummary {
                    linked_resources: project.resources.len(),
                    last_updated: project.updated_at.seconds_rfc3339(),
                    active_plans: of_project.len(),
                },
                warnings: warnings.collect(),
            })
        })
    }
}
