//! The registry of tools. Validations are tools and are listed, shown and removed here.

use std::collections::BTreeMap;

use agents_domain::ports::tool::Capability;
use agents_domain::tool::ResourceSlot;
use agents_domain::validation::{Attachment, BUILT_INS, Mode, Scope, ValidationDefinition, built_in};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::registry;
use super::validation::{attached, find, resource_name};
use crate::{Engine, Operation};

mod add;

pub use add::{Add, AddOutput, Changes, Registered, Shown, Updated};

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

impl List {
    /// The plain tools that the filters let through; those that come with the program only by their namespace.
    fn plain(&self, engine: &Engine, pattern: Option<&regex::Regex>) -> Result<Vec<ListedTool>> {
        if self.tool_type == Some(ToolType::Validation) {
            return Ok(Vec::new());
        }
        let listed = |name: String, source: &str, may: &Capability| ListedTool {
            name,
            tool_type: ToolType::Tool,
            source: source.to_owned(),
            read_only: may.read_only,
            writes: may.writes,
        };
        let mut found = match self.namespace.as_deref() {
            Some("builtin") => {
                let ours = crate::tools::all().iter();
                ours.map(|tool| listed(tool.facts.name.clone(), "builtin", &tool.facts.capability)).collect()
            }
            namespace => {
                let own = engine.view(|r| r.tools())?.into_iter().map(|tool| tool.definition);
                let own = own.filter(|d| namespace.is_none_or(|n| n == d.name.namespace()));
                own.map(|d| listed(d.name.to_string(), d.source.as_str(), &d.capability()))
                    .collect::<Vec<_>>()
            }
        };
        found.retain(|tool| self.source.as_ref().is_none_or(|source| *source == tool.source));
        found.retain(|tool| pattern.is_none_or(|pattern| pattern.is_match(&tool.name)));
        Ok(found)
    }
}

/// Who names a tool.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct References {
    pub skills: Vec<String>,
    pub actor_graph_nodes: Vec<String>,
}

/// Who names a tool: the actors whose files do.
fn references(engine: &Engine, tool: &str) -> Result<References> {
    let word = |c: char| c.is_alphanumeric() || "/_-.".contains(c);
    let names = |text: &str| {
        text.match_indices(tool)
            .any(|(at, _)| !text[..at].ends_with(word) && !text[at + tool.len()..].starts_with(word))
    };
    let actors = engine.view(|r| r.actors())?.into_iter().filter(|actor| names(&actor.source));
    Ok(References {
        skills: Vec::new(),
        actor_graph_nodes: actors.map(|actor| actor.name.to_string()).collect(),
    })
}

impl Operation for List {
    const METHOD: &'static str = "registry/tool/list";
    const SUMMARY: &'static str = "List tools and validations";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let pattern = registry::pattern(self.pattern.as_deref())?;
        let (registered, attachments) = engine.view(|r| Ok((r.validations()?, r.attachments()?)))?;
        let mut plain = self.plain(engine, pattern.as_ref())?;
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
        let validations = found.into_iter().map(|d| ListedTool {
            name: d.name.to_string(),
            tool_type: ToolType::Validation,
            source: d.source.as_str().to_owned(),
            read_only: true,
            writes: false,
        });
        let count = plain.len();
        plain.extend(validations);
        plain.sort_by(|a, b| a.name.cmp(&b.name));
        let of = |wanted: fn(&ListedTool) -> bool| plain.iter().filter(|tool| wanted(tool)).count();
        let summary = summary(&[
            ("total", plain.len()),
            ("tools", count),
            ("validations", total),
            ("read_only", of(|tool| tool.read_only)),
            ("writes", of(|tool| tool.writes)),
        ]);
        let tools = plain;
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

/// A tool or a validation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShowOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_details: Option<ToolDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_details: Option<ValidationDetails>,
    /// Its parameters with their schemas.
    pub input_schema: Map<String, Value>,
    pub output_schema: Value,
    pub capability: ShownCapability,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referenced_by: Option<References>,
    /// Where a validation is attached; absent for a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<Vec<AttachedTo>>,
}

/// All of a tool that is shown. The values of its `env` are not: they may hold secrets.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ToolDetails {
    pub name: String,
    #[serde(rename = "type")]
    pub tool_type: ToolType,
    pub description: String,
    pub source: String,
    pub config: Option<String>,
    pub registered: Option<String>,
    /// The group of built-in tools.
    pub group: Option<String>,
    pub timeout_seconds: Option<u32>,
    pub resource_slots: Vec<ResourceSlot>,
    pub version: u32,
}

/// What a tool or a validation may do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum ShownCapability {
    Tool(Box<Shown>),
    Validation(OfValidation),
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

/// What a validation may do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct OfValidation {
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
        if let Some(tool) = shown_tool(engine, &self.name)? {
            return Ok(tool);
        }
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
            capability: ShownCapability::Validation(OfValidation {
                read_only: true,
                read_only_enforced: true,
                checkpointable: false,
                checkpointable_enforced: true,
                timeout_seconds: definition.timeout,
            }),
            attached_to: Some(attached_to(engine, &name)?),
            referenced_by: None,
            tool_details: None,
            validation_details: Some(ValidationDetails {
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
            }),
        })
    }
}

/// A plain tool, when the name is one's: registered, or with the program and then by its bare name, too.
fn shown_tool(engine: &Engine, name: &str) -> Result<Option<ShowOutput>> {
    if let Some(tool) = crate::tools::find(name) {
        let may = &tool.facts.capability;
        let capability = Shown {
            read_only: may.read_only,
            writes: may.writes,
            write_scope: Value::Null,
            checkpointable: may.checkpointable,
            checkpoint_scope: may.writes.then(|| "file".to_owned()),
            side_effects: may.side_effects.clone(),
            idempotent: may.idempotent,
            is_unsafe: may.is_unsafe,
            human_approval_required: may.human_approval_required,
        };
        let details = ToolDetails {
            name: tool.facts.name.clone(),
            tool_type: ToolType::Tool,
            description: tool.facts.summary.clone(),
            source: "builtin".to_owned(),
            config: None,
            registered: None,
            group: tool.group.map(str::to_owned),
            timeout_seconds: None,
            resource_slots: Vec::new(),
            version: 1,
        };
        return Ok(Some(of_tool(engine, details, &tool.input, Value::Null, capability)?));
    }
    let Ok(qualified) = engine.name(name) else { return Ok(None) };
    let Some(registered) = engine.view(|r| r.tool(&qualified))? else { return Ok(None) };
    let definition = registered.definition;
    let (input, capability) = (definition.input(), add::shown(&definition));
    let output = definition.output_schema.clone().map_or(Value::Null, Value::Object);
    let details = ToolDetails {
        name: definition.name.to_string(),
        tool_type: ToolType::Tool,
        description: definition.description,
        source: definition.source.as_str().to_owned(),
        config: Some(registered.config_path),
        registered: Some(registered.created_at.seconds_rfc3339()),
        group: None,
        timeout_seconds: Some(definition.timeout),
        resource_slots: definition.resource_slots,
        version: registered.version,
    };
    Ok(Some(of_tool(engine, details, &input, output, capability)?))
}

fn of_tool(
    engine: &Engine,
    details: ToolDetails,
    input: &Value,
    output_schema: Value,
    capability: Shown,
) -> Result<ShowOutput> {
    let required =
        |name: &String| input["required"].as_array().is_some_and(|all| all.iter().any(|n| n == name));
    let mut parameters = input["properties"].as_object().cloned().unwrap_or_default();
    for (name, schema) in &mut parameters {
        if let (true, Some(schema)) = (required(name), schema.as_object_mut()) {
            schema.insert("required".to_owned(), true.into());
        }
    }
    Ok(ShowOutput {
        referenced_by: Some(references(engine, &details.name)?),
        tool_details: Some(details),
        validation_details: None,
        input_schema: parameters,
        output_schema,
        capability: ShownCapability::Tool(Box::new(capability)),
        attached_to: None,
    })
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_removed: Option<RemovedTool>,
    /// Who named the tool, and does so still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_references: Option<Vec<BrokenReference>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_removed: Option<RemovedValidation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detached_attachments: Option<Vec<DetachedFrom>>,
}

/// The removed tool.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemovedTool {
    pub name: String,
    pub source: String,
}

/// Who named what is gone.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct BrokenReference {
    /// `skill` or `actor_graph_node`.
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
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
        if let Some(tool) = engine.view(|r| r.tool(&name))? {
            let references = references(engine, &name.to_string())?;
            let of = |kind: &'static str| move |name: String| BrokenReference { kind: kind.to_owned(), name };
            let nodes = references.actor_graph_nodes.into_iter().map(of("actor_graph_node"));
            let broken: Vec<_> = references.skills.into_iter().map(of("skill")).chain(nodes).collect();
            engine.write(|w| {
                w.delete_tool(&name)?;
                let cascade = json!({ "broken_references": broken.len() });
                registry::deleted(engine, w, "tool", &name.to_string(), cascade)
            })?;
            return Ok(RemoveOutput {
                tool_removed: Some(RemovedTool {
                    name: name.to_string(),
                    source: tool.definition.source.as_str().to_owned(),
                }),
                broken_references: Some(broken),
                validation_removed: None,
                detached_attachments: None,
            });
        }
        if let Some(tool) = crate::tools::find(&self.name) {
            let message = format!("{} comes with the program and cannot be removed", tool.facts.name);
            return Err(Error::new(ErrorKind::ValidationFailed, message)
                .suggest(format!("agents tool show {}", tool.facts.name)));
        }
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
            tool_removed: None,
            broken_references: None,
            validation_removed: Some(RemovedValidation {
                name: name.to_string(),
                description: definition.description,
            }),
            detached_attachments: Some(detached),
        })
    }
}
