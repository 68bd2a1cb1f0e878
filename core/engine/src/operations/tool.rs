//! The registry of tools. Validations are tools and are listed, shown and removed here.

use std::collections::BTreeMap;

use agents_domain::validation::{Attachment, BUILT_INS, Mode, Scope, ValidationDefinition, built_in};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::registry;
use super::validation::{attached, find, resource_name};
use crate::{Engine, Operation};

/// The kinds of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolType {
    /// A plain tool.
    Tool,
    /// A validation.
    Validation,
}

/// Lists tools; filters combine.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only this namespace; `builtin` lists those that come with the program.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Only this source.
    #[serde(default)]
    pub source: Option<String>,
    /// Only this kind.
    #[serde(default, rename = "type")]
    pub tool_type: Option<ToolType>,
    /// A regular expression on the name.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// Tools by name: `validations` when only those were asked for, else `tools`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ListedTool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validations: Option<Vec<ListedValidation>>,
    pub summary: BTreeMap<String, usize>,
}

/// A tool in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListedTool {
    pub name: String,
    #[serde(rename = "type")]
    pub tool_type: ToolType,
    pub source: String,
    pub read_only: bool,
    pub writes: bool,
}

/// A validation in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListedValidation {
    pub name: String,
    pub source: String,
    pub mode: Mode,
    pub attachments: AttachmentCounts,
}

/// Attachments by scope; scopes without any are left out.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AttachmentCounts {
    pub total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<usize>,
}

fn counts(name: &QualifiedName, all: &[Attachment]) -> AttachmentCounts {
    let mut out = AttachmentCounts::default();
    for attachment in all.iter().filter(|a| a.validation == *name) {
        out.total += 1;
        let place = match attachment.scope {
            Scope::Direct => &mut out.direct,
            Scope::Project(_) => &mut out.project,
            Scope::Plan(_) => &mut out.plan,
        };
        *place.get_or_insert(0) += 1;
    }
    out
}

impl Operation for List {
    const METHOD: &'static str = "registry/tool/list";
    const SUMMARY: &'static str = "List tools and validations";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let pattern = registry::pattern(self.pattern.as_deref())?;
        let (registered, attachments) = engine.view(|r| Ok((r.validations()?, r.attachments()?)))?;
        let built_ins = self.namespace.as_deref() == Some("builtin");
        let own = registered.into_iter().map(|v| v.definition);
        let theirs = BUILT_INS.iter().filter_map(|b| built_in(&b.as_str().parse().ok()?));
        let mut found: Vec<ValidationDefinition> = own
            .chain(theirs.filter(|d| built_ins || attachments.iter().any(|a| a.validation == d.name)))
            .filter(|d| self.namespace.as_ref().is_none_or(|n| n == d.name.namespace()))
            .filter(|d| self.source.as_ref().is_none_or(|s| s == d.source.as_str()))
            .filter(|d| pattern.as_ref().is_none_or(|p| p.is_match(&d.name.to_string())))
            .filter(|_| self.tool_type != Some(ToolType::Tool))
            .collect();
        found.sort_by_key(|d| d.name.to_string());
        let total = found.len();
        let summary =
            |entries: &[(&str, usize)]| entries.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
        if self.tool_type == Some(ToolType::Validation) {
            let required = found.iter().filter(|d| d.validation.mode == Mode::Required).count();
            let validations = found
                .into_iter()
                .map(|d| ListedValidation {
                    source: d.source.as_str().to_owned(),
                    mode: d.validation.mode,
                    attachments: counts(&d.name, &attachments),
                    name: d.name.to_string(),
                })
                .collect();
            let summary =
                summary(&[("total", total), ("required", required), ("informational", total - required)]);
            return Ok(ListOutput { tools: None, validations: Some(validations), summary });
        }
        let tools = found
            .into_iter()
            .map(|d| ListedTool {
                name: d.name.to_string(),
                tool_type: ToolType::Validation,
                source: d.source.as_str().to_owned(),
                read_only: true,
                writes: false,
            })
            .collect();
        let summary = summary(&[
            ("total", total),
            ("tools", 0),
            ("validations", total),
            ("read_only", total),
            ("writes", 0),
        ]);
        Ok(ListOutput { tools: Some(tools), validations: None, summary })
    }
}

/// Shows a tool or a validation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// Its name.
    pub name: String,
}

/// A validation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShowOutput {
    pub validation_details: ValidationDetails,
    /// Its parameters with their schemas.
    pub input_schema: Map<String, Value>,
    pub output_schema: Value,
    pub capability: ShownCapability,
    pub attached_to: Vec<AttachedTo>,
}

/// All of a validation that is shown. The values of its `env` are not: they may hold secrets.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ValidationDetails {
    pub name: String,
    #[serde(rename = "type")]
    pub tool_type: ToolType,
    pub description: Option<String>,
    pub source: String,
    pub mode: Mode,
    pub config: Option<String>,
    pub registered: Option<String>,
    pub builtin: Option<String>,
    /// What is run, as one line.
    pub command: Option<String>,
    pub parser: Option<String>,
    pub version: u32,
}

/// What it may do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShownCapability {
    pub read_only: bool,
    pub read_only_enforced: bool,
    pub checkpointable: bool,
    pub checkpointable_enforced: bool,
    pub timeout_seconds: u32,
}

/// Where it is attached.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AttachedTo {
    pub resource: String,
    pub scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    pub attachment_id: String,
}

fn attached_to(engine: &Engine, name: &QualifiedName) -> Result<Vec<AttachedTo>> {
    engine.view(|r| {
        attached(r, name)?
            .into_iter()
            .map(|attachment| {
                let target = attachment.scope.target();
                let project = matches!(attachment.scope, Scope::Project(_));
                Ok(AttachedTo {
                    resource: resource_name(r, attachment.resource_id)?,
                    scope: attachment.scope.word().to_owned(),
                    plan: target.clone().filter(|_| !project),
                    project: target.filter(|_| project),
                    args: attachment.args,
                    attachment_id: attachment.attachment_id.to_string(),
                })
            })
            .collect()
    })
}

impl Operation for Show {
    const METHOD: &'static str = "registry/tool/show";
    const SUMMARY: &'static str = "Show a tool or a validation";
    type Output = ShowOutput;

    fn run(self, engine: &Engine) -> Result<ShowOutput> {
        let name = engine.name(&self.name)?;
        let definition = find(engine, &name)?;
        let registered = engine.view(|r| r.validation(&name))?;
        let command = definition.command.as_ref().map(|words| words.join(" ")).or(definition.shell.clone());
        let parser = definition.parser.and_then(|p| Some(serde_json::to_value(p).ok()?.as_str()?.to_owned()));
        Ok(ShowOutput {
            input_schema: definition.parameters(),
            output_schema: json!({
                "passed": { "type": "boolean", "required": true },
                "message": { "type": "string", "required": false },
                "data": { "type": "object", "required": false, "description": "arbitrary structure" },
            }),
            capability: ShownCapability {
                read_only: true,
                read_only_enforced: true,
                checkpointable: false,
                checkpointable_enforced: true,
                timeout_seconds: definition.timeout,
            },
            attached_to: attached_to(engine, &name)?,
            validation_details: ValidationDetails {
                name: name.to_string(),
                tool_type: ToolType::Validation,
                description: definition.description,
                source: definition.source.as_str().to_owned(),
                mode: definition.validation.mode,
                builtin: definition.builtin.map(|b| b.as_str().to_owned()),
                command,
                parser,
                version: registered.as_ref().map_or(1, |r| r.version),
                registered: registered.as_ref().map(|r| r.created_at.seconds_rfc3339()),
                config: registered.map(|r| r.config_path),
            },
        })
    }
}

/// Removes a tool or a validation; a validation is detached first.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// Its name.
    pub name: String,
}

/// What was removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemoveOutput {
    pub validation_removed: RemovedValidation,
    pub detached_attachments: Vec<DetachedFrom>,
}

/// The removed validation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemovedValidation {
    pub name: String,
    pub description: Option<String>,
}

/// Where it was attached.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DetachedFrom {
    pub resource: String,
    pub scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

impl Operation for Remove {
    const METHOD: &'static str = "registry/tool/remove";
    const SUMMARY: &'static str = "Remove a tool or a validation from the registry";
    type Output = RemoveOutput;

    fn run(self, engine: &Engine) -> Result<RemoveOutput> {
        let name = engine.name(&self.name)?;
        let definition = find(engine, &name)?;
        if name.namespace() == "builtin" {
            return Err(Error::new(
                ErrorKind::ValidationFailed,
                format!(
                    "{name} comes with the program and cannot be removed; detach it where it is attached"
                ),
            )
            .suggest(format!("agents tool show {name}")));
        }
        let detached: Vec<DetachedFrom> = attached_to(engine, &name)?
            .into_iter()
            .map(|a| DetachedFrom { resource: a.resource, scope: a.scope, project: a.project, plan: a.plan })
            .collect();
        engine.write(|w| {
            w.delete_validation(&name)?;
            let cascade = json!({ "detached_attachments": detached.len() });
            registry::deleted(engine, w, "validation", &name.to_string(), cascade)
        })?;
        Ok(RemoveOutput {
            validation_removed: RemovedValidation {
                name: name.to_string(),
                description: definition.description,
            },
            detached_attachments: detached,
        })
    }
}
