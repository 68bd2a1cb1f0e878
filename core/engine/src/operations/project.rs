//! Operations on projects.

use agents_domain::ids::PlanId;
use agents_domain::plan::Phase;
use agents_domain::ports::store::{PlanRow, Reader, StoreResult};
use agents_domain::project::{Project, ProjectResource};
use agents_domain::resource::{Resource, SandboxStrategy, resource_type};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{plan, registry};
use crate::{Engine, Operation, clock, sandboxes};

/// A linked resource with its link.
type Linked = (Resource, bool);

fn linked(r: &dyn Reader, project: &Project) -> StoreResult<Vec<Linked>> {
    let mut found = Vec::with_capacity(project.resources.len());
    for link in &project.resources {
        found.extend(r.resource(link.resource_id)?.map(|resource| (resource, link.read_only)));
    }
    Ok(found)
}

fn strategy(resource: &Resource) -> SandboxStrategy {
    resource_type(&resource.resource_type).map_or(SandboxStrategy::None, |t| t.strategy)
}

/// The resource a person names to link or unlink: only those with a name are.
fn linkable(engine: &Engine, text: &str) -> Result<(Resource, QualifiedName)> {
    let resource = engine.resource(text)?;
    match resource.name.clone() {
        Some(name) => Ok((resource, name)),
        None => Err(Error::validation(format!(
            "resource {} was found, not registered: link what it was found in",
            resource.resource_id
        ))
        .suggest(format!("agents resource show {}", resource.resource_id))),
    }
}

/// Makes a project of registered resources.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// Its name.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: Option<String>,
    /// Names or ids of resources to link.
    #[serde(default)]
    pub resources: Vec<String>,
    /// The actor that reconciles its invariants.
    #[serde(default)]
    pub invariant_actor: Option<String>,
}

/// The project that was made.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CreateOutput {
    pub project: CreatedProject,
    pub paths: Paths,
    pub defaults: Defaults,
    pub resources: ResourceCounts,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub linked_resources: Vec<LinkedResource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invariants: Option<Invariants>,
}

/// A new project.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CreatedProject {
    pub name: String,
    pub description: Option<String>,
    #[serde(rename = "type")]
    pub project_type: String,
    pub remote: bool,
    pub created: String,
}

/// Where it is, by its first resource that has a place.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Paths {
    pub root: Option<String>,
    pub data_dir: Option<String>,
}

/// What holds unless something is set.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Defaults {
    pub sandbox: String,
    pub validations: usize,
    pub context_filters: Option<String>,
    /// The project's own; without one the global profile holds.
    pub automation_profile: Option<String>,
}

/// Counts of linked resources.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ResourceCounts {
    pub total: usize,
    pub indexed: usize,
    pub sandboxable: usize,
}

/// A resource of the project.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct LinkedResource {
    pub name: String,
    #[serde(rename = "type")]
    pub resource_type: String,
    pub sandbox: String,
    pub read_only: bool,
    pub location: Option<String>,
}

/// What its plans must keep to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Invariants {
    pub items: Vec<String>,
    pub reconciliation_actor: Option<String>,
}

fn linked_view((resource, read_only): &Linked) -> LinkedResource {
    LinkedResource {
        name: sandboxes::display_name(resource),
        resource_type: resource.resource_type.clone(),
        sandbox: strategy(resource).as_str().to_owned(),
        read_only: *read_only,
        location: resource.location.clone(),
    }
}

fn paths(linked: &[Linked]) -> Paths {
    let root = linked.iter().find_map(|(resource, _)| resource.location.clone());
    Paths { data_dir: root.as_ref().map(|root| format!("{root}/.cleveragents")), root }
}

impl Operation for Create {
    const METHOD: &'static str = "registry/project/create";
    const SUMMARY: &'static str = "Make a project";
    type Output = CreateOutput;

    fn run(self, engine: &Engine) -> Result<CreateOutput> {
        let name = engine.name(&self.name)?;
        registry::check_own("a project", &name)?;
        let actor = self.invariant_actor.as_deref().map(|text| engine.name(text)).transpose()?;
        if let Some(actor) = actor.as_ref().filter(|actor| engine.actors.find(actor).is_none()) {
            let known: Vec<String> = engine.actors.names().iter().map(ToString::to_string).collect();
            return Err(registry::missing("actor", actor, &known, "agents actor list"));
        }
        let mut resources: Vec<Linked> = Vec::new();
        for text in &self.resources {
            let (resource, _) = linkable(engine, text)?;
            if !resources.iter().any(|(known, _)| known.resource_id == resource.resource_id) {
                resources.push((resource, false));
            }
        }
        let now = clock::now();
        let link = |(resource, read_only): &Linked| ProjectResource {
            resource_id: resource.resource_id,
            read_only: *read_only,
        };
        let project = Project {
            name: name.clone(),
            description: self.description.clone(),
            resources: resources.iter().map(link).collect(),
            invariant_actor: actor.as_ref().map(ToString::to_string),
            created_at: now,
            updated_at: now,
        };
        engine.write(|w| {
            if w.project(&name)?.is_some() {
                return Err(Error::new(ErrorKind::AlreadyExists, format!("Project '{name}' already exists"))
                    .suggest(format!("agents project show {name}"))
                    .suggest(format!("agents project link-resource {name} <RESOURCE>")));
            }
            w.insert_project(&project)?;
            registry::changed(engine, w, "project", &name.to_string(), "created")
        })?;
        let own_profile = engine.config.get("core.automation-profile", Some(&name.to_string()));
        Ok(CreateOutput {
            project: CreatedProject {
                name: name.to_string(),
                description: project.description,
                project_type: "local".to_owned(),
                remote: false,
                created: now.seconds_rfc3339(),
            },
            paths: paths(&resources),
            defaults: Defaults {
                sandbox: engine.config.text("sandbox.strategy", Some(&name.to_string())),
                validations: 0,
                context_filters: None,
                automation_profile: (own_profile.source == agents_config::Source::Project)
                    .then(|| own_profile.as_text()),
            },
            resources: ResourceCounts {
                total: resources.len(),
                indexed: 0,
                sandboxable: resources.iter().filter(|(r, _)| strategy(r) != SandboxStrategy::None).count(),
            },
            linked_resources: resources.iter().map(linked_view).collect(),
            invariants: actor
                .map(|actor| Invariants { items: Vec::new(), reconciliation_actor: Some(actor.to_string()) }),
        })
    }
}

/// Lists projects; filters combine.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only this namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// A regular expression on the name.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// Projects by name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    pub projects: Vec<ListedProject>,
    pub summary: Summary,
}

/// A project in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListedProject {
    pub name: String,
    pub description: Option<String>,
    pub resources: usize,
    pub remote: bool,
    pub active_plans: usize,
}

/// Counts of what is listed.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Summary {
    pub total: usize,
    pub with_resources: usize,
    pub remote: usize,
    pub total_resources: usize,
    pub indexed_files: usize,
    pub active_plans: usize,
}

impl Operation for List {
    const METHOD: &'static str = "registry/project/list";
    const SUMMARY: &'static str = "List projects";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let pattern = registry::pattern(self.pattern.as_deref())?;
        let mut summary = Summary::default();
        let all = engine.view(|r| {
            let count = |p: Project| Ok((r.active_plans_of_project(&p.name)?.len(), p));
            r.projects()?.into_iter().map(count).collect::<StoreResult<Vec<_>>>()
        })?;
        let mut projects = Vec::new();
        for (active_plans, project) in all {
            let name = project.name.to_string();
            if self.namespace.as_ref().is_some_and(|n| n != project.name.namespace())
                || pattern.as_ref().is_some_and(|p| !p.is_match(&name))
            {
                continue;
            }
            let resources = project.resources.len();
            summary.total += 1;
            summary.with_resources += usize::from(resources > 0);
            summary.total_resources += resources;
            summary.active_plans += active_plans;
            let description = project.description;
            projects.push(ListedProject { name, description, resources, remote: false, active_plans });
        }
        projects.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(ListOutput { projects, summary })
    }
}

/// Shows a project.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// The project's name.
    pub name: String,
}

/// A project with what is around it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShowOutput {
    pub project: ProjectView,
    pub paths: Paths,
    pub linked_resources: Vec<LinkedResource>,
    pub validations: Vec<Validation>,
    pub context: ContextLimits,
    pub indexing_status: IndexingStatus,
    pub active_plans: Vec<ActivePlan>,
}

/// A project.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ProjectView {
    pub name: String,
    pub description: Option<String>,
    pub resources: usize,
    pub remote: bool,
    pub created: String,
    pub invariant_actor: Option<String>,
}

/// A validation attached to the project or to one of its resources.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Validation {
    pub name: String,
    pub description: Option<String>,
    pub mode: String,
    pub resource: String,
    pub scope: String,
    pub attachment_id: String,
}

/// What its plans may read.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ContextLimits {
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    pub max_file_size_bytes: i64,
}

/// How far its files are indexed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct IndexingStatus {
    pub text_index: String,
    pub vector_index: String,
    pub graph_store: String,
    pub indexed_files: usize,
    pub last_indexed: Option<String>,
}

/// A plan that is not ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ActivePlan {
    pub plan_id: PlanId,
    pub action: String,
    pub phase: Phase,
}

fn find(engine: &Engine, name: &str) -> Result<(Project, Vec<Linked>, Vec<PlanRow>)> {
    let name = engine.name(name)?;
    let found = engine.view(|r| match r.project(&name)? {
        Some(project) => {
            let linked = linked(r, &project)?;
            Ok(Ok((project, linked, r.active_plans_of_project(&name)?)))
        }
        None => Ok(Err(r.projects()?.iter().map(|p| p.name.to_string()).collect::<Vec<_>>())),
    })?;
    found.map_err(|known| registry::missing("project", &name, &known, "agents project list"))
}

impl Operation for Show {
    const METHOD: &'static str = "registry/project/show";
    const SUMMARY: &'static str = "Show a project";
    type Output = ShowOutput;

    fn run(self, engine: &Engine) -> Result<ShowOutput> {
        let (project, linked, plans) = find(engine, &self.name)?;
        let name = project.name.to_string();
        let plan = |row: PlanRow| ActivePlan { plan_id: row.plan_id, action: row.action, phase: row.phase };
        Ok(ShowOutput {
            paths: paths(&linked),
            linked_resources: linked.iter().map(linked_view).collect(),
            validations: Vec::new(),
            context: ContextLimits {
                include: Vec::new(),
                exclude: Vec::new(),
                max_file_size_bytes: engine.config.integer("context.file.max-size", Some(&name)),
            },
            indexing_status: IndexingStatus {
                text_index: "disabled".to_owned(),
                vector_index: "disabled".to_owned(),
                graph_store: "disabled".to_owned(),
                indexed_files: 0,
                last_indexed: None,
            },
            active_plans: plans.into_iter().map(plan).collect(),
            project: ProjectView {
                name,
                description: project.description,
                resources: project.resources.len(),
                remote: false,
                created: project.created_at.seconds_rfc3339(),
                invariant_actor: project.invariant_actor,
            },
        })
    }
}

/// Deletes a project; its resources stay registered, and their files as they are.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// The project's name.
    pub name: String,
    /// Cancel its active plans instead of being refused by them.
    #[serde(default)]
    pub force: bool,
}

/// What was deleted: `deletion_summary`, or `force_delete` and `deleted` when plans were cancelled.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DeleteOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_summary: Option<DeletionSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_delete: Option<ForceDelete>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deleted>,
}

/// A deleted project.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DeletionSummary {
    pub project: String,
    pub resources_unlinked: usize,
    pub data_dir: Option<String>,
}

/// The plans that had to go.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ForceDelete {
    pub cancelled_plans: Vec<CancelledPlan>,
}

/// A plan that was cancelled.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CancelledPlan {
    pub plan_id: PlanId,
    /// Such as `execute/processing`.
    pub previous_state: String,
}

/// A project that was deleted by force.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Deleted {
    pub project: String,
    pub resources_unlinked: usize,
    pub validations_detached: usize,
    pub plans_cancelled: usize,
    pub context_policies: String,
}

/// `execute/processing`.
fn state_text(row: &PlanRow) -> String {
    format!("{}/{}", row.phase.as_str(), row.state.as_str())
}

fn blocked(name: &QualifiedName, plans: &[PlanRow]) -> Error {
    let count = plans.len();
    let plural = if count == 1 { "" } else { "s" };
    let list: Vec<_> = plans
        .iter()
        .map(|p| json!({ "plan_id": p.plan_id, "phase": state_text(p), "action": p.action }))
        .collect();
    let error = plans
        .iter()
        .fold(Error::invalid_state(format!("Delete blocked — {count} active plan{plural}")), |error, p| {
            error.suggest(format!("agents plan cancel {}", p.plan_id))
        });
    error.suggest(format!("agents project delete --force {name}")).data(json!({
        "delete_blocked": { "reason": "project has active plans", "active_plans": list },
        "resolution": [
            "Cancel or complete active plans first",
            "Use --force to cancel all active plans and delete the project",
        ],
    }))
}

impl Operation for Delete {
    const METHOD: &'static str = "registry/project/delete";
    const SUMMARY: &'static str = "Delete a project";
    type Output = DeleteOutput;

    fn run(self, engine: &Engine) -> Result<DeleteOutput> {
        let (project, linked, plans) = find(engine, &self.name)?;
        let name = project.name;
        if !plans.is_empty() && !self.force {
            return Err(blocked(&name, &plans));
        }
        let mut cancelled = Vec::new();
        for row in &plans {
            let reason = Some(format!("project {name} is deleted"));
            engine.call(plan::Cancel { plan: row.plan_id.to_string(), reason })?;
            cancelled.push(CancelledPlan { plan_id: row.plan_id, previous_state: state_text(row) });
        }
        let unlinked = engine.write(|w| {
            // A plan may have started in the meantime.
            let plans = w.active_plans_of_project(&name)?;
            if !plans.is_empty() {
                return Err(blocked(&name, &plans));
            }
            let links = w.project(&name)?.map_or(0, |p| p.resources.len());
            w.delete_project(&name)?;
            let cascade = json!({ "resources_unlinked": links, "plans_cancelled": cancelled.len() });
            registry::deleted(engine, w, "project", &name.to_string(), cascade)?;
            Ok(links)
        })?;
        let project = name.to_string();
        if cancelled.is_empty() {
            let data_dir = paths(&linked).data_dir;
            let summary = DeletionSummary { project, resources_unlinked: unlinked, data_dir };
            return Ok(DeleteOutput { deletion_summary: Some(summary), ..DeleteOutput::default() });
        }
        let deleted = Deleted {
            project,
            resources_unlinked: unlinked,
            validations_detached: 0,
            plans_cancelled: cancelled.len(),
            context_policies: "cleared".to_owned(),
        };
        let force_delete = Some(ForceDelete { cancelled_plans: cancelled });
        Ok(DeleteOutput { force_delete, deleted: Some(deleted), deletion_summary: None })
    }
}

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
    pub project_summary: ProjectSummary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
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
