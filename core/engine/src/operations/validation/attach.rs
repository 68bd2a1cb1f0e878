//! Attaching a validation to a resource, and detaching it.

use agents_domain::ids::{AttachmentId, ResourceId};
use agents_domain::resource::Resource;
use agents_domain::validation::{Attachment, Mode, Scope};
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{arguments, find, resource_name};
use crate::operations::registry;
use crate::{Engine, Operation, clock, sandboxes};

const FOR_ALL: &str = "This validation will run for ALL plans/projects that access this resource.";

/// Attaches a validation to a resource: for everybody, for a project, or for a plan.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attach {
    /// A registered validation, or one that comes with the program.
    pub validation: String,
    /// Name or id of the resource; with a project it may be left out, which means each of the project's.
    #[serde(default)]
    pub resource: Option<String>,
    /// Only for plans of this project.
    #[serde(default)]
    pub project: Option<String>,
    /// Only for this plan and its child plans.
    #[serde(default)]
    pub plan: Option<String>,
    /// Arguments; texts are read as the validation's schema says.
    #[serde(default)]
    pub args: Map<String, Value>,
}

/// What was attached.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AttachOutput {
    pub validation_attached: Attached,
    /// All, where no resource was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attached>,
}

/// An attachment.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Attached {
    pub attachment_id: AttachmentId,
    pub validation: String,
    pub mode: Mode,
    pub resource: String,
    pub scope: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Attach {
    /// The scope, and the resources it is about.
    fn places(&self, engine: &Engine) -> Result<(Scope, Vec<Resource>)> {
        let named = self.resource.as_deref().map(|text| engine.resource(text)).transpose()?;
        match (&self.project, &self.plan) {
            (Some(_), Some(_)) => Err(Error::new(
                ErrorKind::Usage,
                "an attachment is for a project or for a plan, not for both: give one of --project and --plan",
            )),
            (Some(project), None) => {
                let project = engine.project(&engine.name(project)?)?;
                let linked = |id: ResourceId| project.resources.iter().any(|r| r.resource_id == id);
                let name = project.name.clone();
                let resources = match named {
                    Some(resource) if linked(resource.resource_id) => vec![resource],
                    Some(resource) => {
                        let resource = sandboxes::display_name(&resource);
                        return Err(Error::validation(format!(
                            "resource {resource} is not linked to project {name}, so the validation would never run"
                        ))
                        .suggest(format!("agents project link-resource {name} {resource}")));
                    }
                    None => {
                        let mut all = Vec::new();
                        for link in &project.resources {
                            all.extend(engine.view(|r| r.resource(link.resource_id))?);
                        }
                        if all.is_empty() {
                            return Err(Error::validation(format!(
                                "project {name} has no resource a validation could look at"
                            ))
                            .suggest(format!("agents project link-resource {name} <RESOURCE>")));
                        }
                        all
                    }
                };
                Ok((Scope::Project(name), resources))
            }
            (None, Some(plan)) => {
                let plan = engine.plan(plan)?;
                let id = plan.plan_id;
                if plan.status().ended() {
                    return Err(Error::invalid_state(format!(
                        "plan {id} has ended ({}); nothing is run for it any more",
                        plan.status().describe()
                    )));
                }
                let resource = named.ok_or_else(no_resource)?;
                if !plan.resources.iter().any(|r| r.resource_id == resource.resource_id) {
                    let resource = sandboxes::display_name(&resource);
                    return Err(Error::validation(format!(
                        "plan {id} does not work on resource {resource}, so the validation would never run"
                    )));
                }
                Ok((Scope::Plan(id), vec![resource]))
            }
            (None, None) => Ok((Scope::Direct, vec![named.ok_or_else(no_resource)?])),
        }
    }
}

fn no_resource() -> Error {
    Error::new(ErrorKind::Usage, "which resource shall it look at? Only with --project it may be left out")
        .suggest("agents validation attach <RESOURCE> <VALIDATION>")
        .suggest("agents resource list")
}

impl Operation for Attach {
    const METHOD: &'static str = "validation/attach";
    const SUMMARY: &'static str = "Attach a validation to a resource";
    type Output = AttachOutput;

    fn run(self, engine: &Engine) -> Result<AttachOutput> {
        let name = engine.name(&self.validation)?;
        let definition = find(engine, &name)?;
        let (scope, resources) = self.places(engine)?;
        let args = arguments::typed(&definition, self.args.clone())?;
        if name.to_string() == "builtin/command"
            && !args.contains_key("command")
            && !args.contains_key("shell")
        {
            return Err(Error::validation("builtin/command needs the command to run")
                .suggest("add --command 'pytest -q', or --shell 'make check'"));
        }
        let attachments: Vec<Attachment> = resources
            .iter()
            .map(|resource| Attachment {
                attachment_id: AttachmentId::from_ulid(clock::ulid()),
                validation: name.clone(),
                resource_id: resource.resource_id,
                scope: scope.clone(),
                args: args.clone(),
                created_at: clock::now(),
            })
            .collect();
        engine.write(|w| {
            for attachment in &attachments {
                w.insert_attachment(attachment)?;
                let id = attachment.attachment_id.to_string();
                registry::changed(engine, w, "validation_attachment", &id, "attached")?;
            }
            Ok(())
        })?;
        let mut shown: Vec<Attached> = attachments
            .iter()
            .zip(&resources)
            .map(|(attachment, resource)| Attached {
                attachment_id: attachment.attachment_id,
                validation: name.to_string(),
                mode: definition.validation.mode,
                resource: sandboxes::display_name(resource),
                scope: scope.describe(),
                args: args.clone(),
                note: (scope == Scope::Direct).then(|| FOR_ALL.to_owned()),
            })
            .collect();
        let all = if self.resource.is_none() { shown.clone() } else { Vec::new() };
        Ok(AttachOutput { validation_attached: shown.swap_remove(0), attachments: all })
    }
}

/// Detaches a validation; it stays registered.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detach {
    /// The attachment's id or its beginning.
    pub attachment: String,
    /// Only look what would be detached.
    #[serde(default)]
    pub dry_run: bool,
}

/// What was detached.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DetachOutput {
    pub validation_detached: Detached,
}

/// A former attachment.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Detached {
    pub attachment_id: AttachmentId,
    pub validation: String,
    pub resource: String,
    pub scope: String,
}

impl Operation for Detach {
    const METHOD: &'static str = "validation/detach";
    const SUMMARY: &'static str = "Detach a validation from a resource";
    type Output = DetachOutput;

    fn run(self, engine: &Engine) -> Result<DetachOutput> {
        let prefix = self.attachment.trim().to_ascii_uppercase();
        let matches: Vec<Attachment> = engine
            .view(|r| r.attachments())?
            .into_iter()
            .filter(|a| !prefix.is_empty() && a.attachment_id.to_string().starts_with(&prefix))
            .collect();
        let attachment = match &matches[..] {
            [one] => one,
            [] => {
                if let Ok(name) = engine.name(&self.attachment)
                    && engine.view(|r| super::definition(r, &name))?.is_some()
                {
                    return Err(Error::not_found(format!(
                        "`{name}` is a validation, not one of its attachments"
                    ))
                    .suggest(format!("agents tool show {name}")));
                }
                engine.hint_other_kind("attachment", &self.attachment)?;
                return Err(Error::not_found(format!("there is no attachment `{}`", self.attachment))
                    .suggest("agents tool list --type validation")
                    .suggest("agents tool show <VALIDATION>"));
            }
            several => {
                let ids: Vec<String> = several.iter().take(10).map(|a| a.attachment_id.to_string()).collect();
                return Err(Error::validation(format!(
                    "`{}` is the start of several attachment ids",
                    self.attachment
                ))
                .detail(ids.join(", "))
                .suggest("give more characters of the id"));
            }
        };
        let id = attachment.attachment_id;
        let resource = engine.view(|r| resource_name(r, attachment.resource_id))?;
        if !self.dry_run {
            engine.write(|w| {
                w.delete_attachment(id)?;
                let facts = json!({ "validation": attachment.validation, "resource": resource });
                registry::deleted(engine, w, "validation_attachment", &id.to_string(), facts)
            })?;
        }
        Ok(DetachOutput {
            validation_detached: Detached {
                attachment_id: id,
                validation: attachment.validation.to_string(),
                resource,
                scope: attachment.scope.describe(),
            },
        })
    }
}
