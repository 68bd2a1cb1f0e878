//! Operations on projects.

mod backup;
mod delete;
mod links;

pub use delete::{Delete, DeleteOutput};
pub use links::{LinkResource, LinkResourceOutput, UnlinkResource, UnlinkResourceOutput};

use agents_domain::ids::PlanId;
use agents_domain::invariant::Scope;
use agents_domain::plan::Phase;
use agents_domain::ports::store::{PlanRow, Reader, StoreResult};
use agents_domain::project::{Project, ProjectResource};
use agents_domain::resource::{Resource, SandboxStrategy, resource_type};
use agents_domain::validation;
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::registry;
use crate::{Engine, Operation, clock, invariants, sandboxes};

/// What is said of the contents of an index there is none of.
const NO_INDEX: &str = "none";

/// A linked resource with its link.
type Linked = (Resource, bool);

fn linked(r: &dyn Reader, project: &Project) -> StoreResult<Vec<Linked>> {
    let mut found = Vec::with_capacity(project.resources.len());
    for link in &project.resources {
        found.extend(r.resource(link.resource_id)?.map(|resource| (resource, link.read_only)));
    }
    Ok(found)
}

/// `execute/processing`.
fn state_text(row: &PlanRow) -> String {
    format!("{}/{}", row.phase.as_str(), row.state.as_str())
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
    /// What its plans must keep to.
    #[serde(default)]
    pub invariants: Vec<String>,
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

fn paths(engine: &Engine, linked: &[Linked]) -> Paths {
    let root = linked.iter().find_map(|(resource, _)| resource.location.clone());
    Paths { data_dir: root.as_ref().map(|_| engine.data_dir.display().to_string()), root }
}

impl Operation for Create {
    const METHOD: &'static str = "registry/project/create";
    const SUMMARY: &'static str = "Make a project";
    type Output = CreateOutput;

    fn run(self, engine: &Engine) -> Result<CreateOutput> {
        let name = engine.name(&self.name)?;
        registry::check_own("a project", &name)?;
        let actor = self.invariant_actor.as_deref().map(|text| engine.name(text)).transpose()?;
        if let Some(actor) = &actor {
            invariants::reconciler(engine, actor)?;
        }
        let invariant = |text: &String| invariants::new(Scope::Project, Some(name.to_string()), text, false);
        let own = self.invariants.iter().map(invariant).collect::<Result<Vec<_>>>()?;
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
            for invariant in &own {
                w.insert_invariant(invariant)?;
            }
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
            paths: paths(engine, &resources),
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
            invariants: (actor.is_some() || !own.is_empty()).then(|| Invariants {
                items: own.into_iter().map(|invariant| invariant.text).collect(),
                reconciliation_actor: actor.as_ref().map(ToString::to_string),
            }),
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
        let names = registry::Wanted::new(self.namespace.as_deref(), self.pattern.as_deref())?;
        let mut summary = Summary::default();
        let all = engine.view(|r| {
            let count = |p: Project| Ok((r.active_plans_of_project(&p.name)?.len(), p));
            r.projects()?.into_iter().map(count).collect::<StoreResult<Vec<_>>>()
        })?;
        let mut projects = Vec::new();
        for (active_plans, project) in all {
            if !names.has(&project.name) {
                continue;
            }
            let name = project.name.to_string();
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

/// Those attached to its resources for everybody, and those for its own plans.
fn validations(engine: &Engine, project: &Project) -> Result<Vec<Validation>> {
    engine.view(|r| {
        let mut found = Vec::new();
        for attachment in r.attachments()? {
            let ours = match &attachment.scope {
                validation::Scope::Direct => {
                    project.resources.iter().any(|l| l.resource_id == attachment.resource_id)
                }
                validation::Scope::Project(name) => *name == project.name,
                validation::Scope::Plan(_) => false,
            };
            if !ours {
                continue;
            }
            let definition = super::validation::definition(r, &attachment.validation)?;
            found.push(Validation {
                name: attachment.validation.to_string(),
                mode: definition.as_ref().map_or("required", |d| d.validation.mode.as_str()).to_owned(),
                description: definition.and_then(|d| d.description),
                resource: super::validation::resource_name(r, attachment.resource_id)?,
                scope: attachment.scope.word().to_owned(),
                attachment_id: attachment.attachment_id.to_string(),
            });
        }
        Ok(found)
    })
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
    found.map_err(|known| engine.no_such("project", &name, &known, "agents project list"))
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
            paths: paths(engine, &linked),
            linked_resources: linked.iter().map(linked_view).collect(),
            validations: validations(engine, &project)?,
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
