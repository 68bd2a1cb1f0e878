//! Registering a tool from its file (TOOLCLI-001 to 007).

use agents_config::{Problem, load_tool, to_error};
use agents_domain::ports::tool_store::RegisteredTool;
use agents_domain::tool::{ToolDefinition, ToolSource};
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{References, references};
use crate::operations::registry;
use crate::{Engine, Operation, clock, python};

/// Registers a tool from the text of its file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// The file as the person named it.
    pub config: String,
    /// What the file says.
    pub text: String,
    /// Replace a tool of that name.
    #[serde(default)]
    pub update: bool,
}

/// The registered tool; `tool_registered` when it is new, else `tool_updated` with what is other.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AddOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_registered: Option<Registered>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_updated: Option<Updated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub references: Option<References>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Problem>,
    /// What would keep it from running on this machine as it is now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A tool as it was registered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Registered {
    pub name: String,
    pub description: String,
    pub source: String,
    pub config: String,
    pub created: String,
    pub version: u32,
}

/// A tool as it was updated.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Updated {
    pub name: String,
    pub source: String,
    pub source_language: String,
    pub status: String,
    pub previous_version: u32,
    pub current_version: u32,
}

/// What a tool may do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Shown {
    pub read_only: bool,
    pub writes: bool,
    pub write_scope: Value,
    pub checkpointable: bool,
    pub checkpoint_scope: Option<String>,
    pub side_effects: Vec<String>,
    pub idempotent: bool,
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
    pub human_approval_required: bool,
}

/// What is other than before, in words.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Changes {
    pub input_schema: String,
    pub capabilities: String,
    pub description: String,
}

/// What a tool may do, as it is shown.
pub(super) fn shown(definition: &ToolDefinition) -> Shown {
    let word = |value: Value| value.as_str().map(str::to_owned);
    Shown {
        read_only: definition.read_only,
        writes: definition.writes,
        write_scope: definition.write_scope.clone().unwrap_or_default(),
        checkpointable: definition.checkpointable,
        checkpoint_scope: definition.checkpoint_scope.and_then(|scope| word(json!(scope))),
        side_effects: definition.side_effects.clone(),
        idempotent: definition.idempotent,
        is_unsafe: definition.is_unsafe,
        human_approval_required: definition.human_approval_required,
    }
}

impl Operation for Add {
    const METHOD: &'static str = "registry/tool/add";
    const SUMMARY: &'static str = "Register a tool from its file";
    type Output = AddOutput;

    fn run(self, engine: &Engine) -> Result<AddOutput> {
        let loaded = load_tool(&self.text, &self.config).map_err(|problems| to_error(&problems))?;
        let (hints, definition) = (loaded.hints.clone(), loaded.value);
        registry::check_own("a tool", &definition.name)?;
        if let Some(why) = definition.cannot_run().filter(|_| definition.source != ToolSource::Custom) {
            return Err(Error::validation(format!("tool {} cannot be registered: {why}", definition.name))
                .detail(format!("{}: `source: {}`", self.config, definition.source.as_str())));
        }
        static_slots(engine, &definition)?;
        let name = definition.name.to_string();
        let (known, registered) = engine.write(|w| {
            if w.validation(&definition.name)?.is_some() {
                let message =
                    format!("`{name}` is the name of a validation; tools and validations share their names");
                return Err(
                    Error::new(ErrorKind::AlreadyExists, message).suggest(format!("agents tool show {name}"))
                );
            }
            let known = w.tool(&definition.name)?;
            let now = clock::now();
            let (version, created_at, updated_at) = match &known {
                None => (1, now, now),
                Some(known) => (known.version + 1, known.created_at, clock::after(known.updated_at)),
            };
            let tool = RegisteredTool {
                definition: definition.clone(),
                config_path: self.config.clone(),
                source: self.text.clone(),
                version,
                created_at,
                updated_at,
            };
            match &known {
                Some(_) if !self.update => return Err(taken(&name, &self.config)),
                Some(_) => {
                    w.update_tool(&tool)?;
                    registry::changed(engine, w, "tool", &name, "updated")?;
                }
                None => {
                    w.insert_tool(&tool)?;
                    registry::changed(engine, w, "tool", &name, "added")?;
                }
            }
            Ok((known, tool))
        })?;
        let mut warnings = Vec::new();
        if definition.code.is_some() {
            warnings.extend(python::interpreter(&*engine.surroundings).err());
        }
        let source = definition.source.as_str().to_owned();
        let base = AddOutput {
            tool_registered: None,
            tool_updated: None,
            capability: None,
            changes: None,
            references: None,
            hints,
            warnings,
        };
        Ok(match known {
            None => AddOutput {
                capability: Some(shown(&definition)),
                tool_registered: Some(Registered {
                    name,
                    description: definition.description,
                    source,
                    config: self.config,
                    created: registered.created_at.seconds_rfc3339(),
                    version: registered.version,
                }),
                ..base
            },
            Some(known) => AddOutput {
                changes: Some(changes(&known.definition, &definition)),
                references: Some(references(engine, &name)?),
                tool_updated: Some(Updated {
                    name,
                    source_language: if definition.code.is_some() { "python" } else { "none" }.to_owned(),
                    source,
                    status: "updated".to_owned(),
                    previous_version: known.version,
                    current_version: registered.version,
                }),
                ..base
            },
        })
    }
}

/// Refuses slots that are bound to what is not there, or is of another type (TOOL-028).
fn static_slots(engine: &Engine, definition: &ToolDefinition) -> Result<()> {
    for slot in &definition.resource_slots {
        let Some(wanted) = &slot.static_resource else { continue };
        let resource = engine.resource(wanted)?;
        if !crate::tools::fits(resource.resource_type.as_ref(), &slot.resource_type) {
            return Err(Error::validation(format!(
                "slot `{}` is for {}, and {wanted} is of type {}",
                slot.name, slot.resource_type, resource.resource_type
            )));
        }
    }
    Ok(())
}

fn taken(name: &str, config: &str) -> Error {
    let message = format!("Tool '{name}' is already registered.");
    let command = format!("agents tool add --config {config} --update");
    Error::new(ErrorKind::AlreadyExists, &message).suggest(&command).data(json!({
        "error": message,
        "hint": "To overwrite the existing configuration, re-run with --update",
        "suggested_command": command,
    }))
}

fn changes(before: &ToolDefinition, after: &ToolDefinition) -> Changes {
    let properties = |definition: &ToolDefinition| -> Map<String, Value> {
        definition.input()["properties"].as_object().cloned().unwrap_or_default()
    };
    let (old, new) = (properties(before), properties(after));
    let named = |word: &str, names: Vec<&String>| {
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{word} {}", names.join(", ")))
    };
    let added = named("added", new.keys().filter(|key| !old.contains_key(*key)).collect());
    let removed = named("removed", old.keys().filter(|key| !new.contains_key(*key)).collect());
    let other = new.iter().filter(|(key, value)| old.get(*key).is_some_and(|was| was != *value));
    let other = named("changed", other.map(|(key, _)| key).collect());
    let said: Vec<String> = [added, removed, other].into_iter().flatten().collect();
    let input_schema = match (said.is_empty(), before.input_schema == after.input_schema) {
        (false, _) => format!("modified ({})", said.join("; ")),
        (true, false) => "modified".to_owned(),
        (true, true) => "unchanged".to_owned(),
    };
    let (was, is) = (json!(shown(before)), json!(shown(after)));
    let words = |value: &Value| -> Vec<String> {
        let on = value.as_object().into_iter().flatten().filter(|(_, on)| **on == true);
        on.map(|(key, _)| key.clone()).collect()
    };
    let capabilities = match was == is {
        true if words(&is).is_empty() => "unchanged".to_owned(),
        true => format!("unchanged ({})", words(&is).join(", ")),
        false => "updated".to_owned(),
    };
    let description = if before.description == after.description { "unchanged" } else { "updated" };
    Changes { input_schema, capabilities, description: description.to_owned() }
}
