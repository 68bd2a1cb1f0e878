//! Operations on validations: registering them, and attaching them to resources.

mod arguments;
mod attach;

pub use attach::{Attach, AttachOutput, Attached, Detach, DetachOutput, Detached};

use agents_config::{Problem, load_validation, to_error};
use agents_domain::ids::ResourceId;
use agents_domain::ports::store::{Reader, StoreResult};
use agents_domain::ports::validation_store::RegisteredValidation;
use agents_domain::validation::{Attachment, BUILT_INS, Mode, ValidationDefinition, built_in};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::registry;
use crate::validations::{missing_program, wrapped_tool};
use crate::{Engine, Operation, clock, sandboxes};

/// Registers a validation from the text of its file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// The name the file is expected to give; another one is refused.
    #[serde(default)]
    pub name: Option<String>,
    /// The file as the person named it.
    pub config: String,
    /// What the file says.
    pub text: String,
    /// What a failure means, over what the file says.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// Replace a validation of that name; its attachments stay.
    #[serde(default)]
    pub update: bool,
}

/// The registered validation, with what its file could say better.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AddOutput {
    pub validation_registered: Registered,
    pub capability: Capability,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Problem>,
    /// What would keep it from running on this machine as it is now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A validation as it was registered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Registered {
    pub name: String,
    pub description: Option<String>,
    pub source: String,
    pub mode: Mode,
    pub config: String,
    pub created: String,
    pub timeout: String,
    /// 1 at first; each update adds 1.
    pub version: u32,
}

/// What holds for every validation, and its time limit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Capability {
    pub read_only: String,
    pub checkpointable: String,
    pub timeout: String,
}

impl Operation for Add {
    const METHOD: &'static str = "registry/validation/add";
    const SUMMARY: &'static str = "Register a validation from its file";
    type Output = AddOutput;

    fn run(self, engine: &Engine) -> Result<AddOutput> {
        let loaded = load_validation(&self.text, &self.config).map_err(|problems| to_error(&problems))?;
        let hints = loaded.hints.clone();
        let mut definition = loaded.value;
        if let Some(mode) = self.mode {
            definition.validation.mode = mode;
        }
        if let Some(name) = &self.name
            && engine.name(name)? != definition.name
        {
            return Err(Error::validation(format!(
                "{} defines {}, not {name}: leave the name out, or name the file that defines it",
                self.config, definition.name
            )));
        }
        registry::check_own("a validation", &definition.name)?;
        let mut warnings = inherit(engine, &mut definition)?;
        if let Some(why) = definition.cannot_run() {
            return Err(Error::validation(format!("validation {} cannot be run: {why}", definition.name))
                .detail(format!("{}: `source: {}`", self.config, definition.source.as_str())));
        }
        let registered = engine.write(|w| {
            let known = w.validation(&definition.name)?;
            let now = clock::now();
            let (version, created_at, updated_at) = match &known {
                None => (1, now, now),
                Some(known) => (known.version + 1, known.created_at, clock::after(known.updated_at)),
            };
            let validation = RegisteredValidation {
                definition: definition.clone(),
                config_path: self.config.clone(),
                source: self.text.clone(),
                version,
                created_at,
                updated_at,
            };
            let name = definition.name.to_string();
            match &known {
                Some(_) if !self.update => return Err(taken(&name, &self.config)),
                Some(_) => {
                    w.update_validation(&validation)?;
                    registry::changed(engine, w, "validation", &name, "updated")?;
                }
                None => {
                    w.insert_validation(&validation)?;
                    registry::changed(engine, w, "validation", &name, "added")?;
                }
            }
            Ok(validation)
        })?;
        let timeout = format!("{}s", definition.timeout);
        let missing = missing_program(&definition, &*engine.surroundings);
        warnings.extend(missing.map(not_there));
        if definition.code.is_some() || definition.transform.is_some() {
            warnings.extend(crate::python::interpreter(&*engine.surroundings).err());
        }
        Ok(AddOutput {
            validation_registered: Registered {
                name: definition.name.to_string(),
                source: definition.source.as_str().to_owned(),
                mode: definition.validation.mode,
                description: definition.description,
                config: self.config,
                created: registered.created_at.seconds_rfc3339(),
                timeout: timeout.clone(),
                version: registered.version,
            },
            capability: Capability {
                read_only: "true (enforced)".to_owned(),
                checkpointable: "false (enforced)".to_owned(),
                timeout,
            },
            hints,
            warnings,
        })
    }
}

/// Takes from the tool that a validation wraps what its file does not say (VALID-024, 026, 030); returns warnings.
fn inherit(engine: &Engine, definition: &mut ValidationDefinition) -> Result<Vec<String>> {
    let Some(name) = &definition.wraps else { return Ok(Vec::new()) };
    let tool = wrapped_tool(engine, name).map_err(|why| {
        Error::not_found(format!("validation {} wraps {name}: {why}", definition.name))
            .suggest("agents tool list")
            .suggest("agents tool add --config <FILE>")
    })?;
    if definition.input_schema.is_none()
        && let Some(schema) = tool.input.as_object()
    {
        let mut schema = schema.clone();
        // What the mapping gives a value is not asked for.
        let given = definition.argument_mapping.iter().flatten();
        for (parameter, _) in
            given.filter(|(_, of)| of.as_str().is_none_or(|name| schema_lacks(&tool.input, name)))
        {
            if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                properties.shift_remove(parameter);
            }
            if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
                required.retain(|name| name != parameter);
            }
        }
        definition.input_schema = Some(schema);
    }
    if let crate::tools::Body::Code(code) = &tool.body
        && definition.timeout == agents_domain::validation::DEFAULT_TIMEOUT
    {
        definition.timeout = code.timeout;
    }
    let writes = tool.facts.capability.writes;
    let warning = format!("{name} may write; as a validation it is run so that it cannot");
    Ok(writes.then_some(warning).into_iter().collect())
}

fn schema_lacks(schema: &Value, parameter: &str) -> bool {
    schema["properties"].get(parameter).is_none()
}

/// What people are told of a program that is not there.
pub(crate) fn not_there(program: &str) -> String {
    format!(
        "`{program}` is not on PATH: until it is installed, the validation fails without having looked at anything"
    )
}

fn taken(name: &str, config: &str) -> Error {
    let message = format!("Validation '{name}' is already registered.");
    let command = format!("agents validation add --config {config} --update");
    Error::new(ErrorKind::AlreadyExists, &message).suggest(&command).data(json!({
        "error": message,
        "hint": "To overwrite the existing configuration, re-run with --update",
        "suggested_command": command,
    }))
}

/// A validation by name: one that comes with the program, or a registered one.
pub(crate) fn definition(r: &dyn Reader, name: &QualifiedName) -> StoreResult<Option<ValidationDefinition>> {
    match built_in(name) {
        Some(definition) => Ok(Some(definition)),
        None => Ok(r.validation(name)?.map(|v| v.definition)),
    }
}

/// [`definition`], or the error that names what may have been meant.
pub(super) fn find(engine: &Engine, name: &QualifiedName) -> Result<ValidationDefinition> {
    let found = engine.view(|r| match definition(r, name)? {
        Some(definition) => Ok(Ok(definition)),
        None => {
            let own = r.validations()?.into_iter().map(|v| v.definition.name.to_string());
            Ok(Err(own.chain(BUILT_INS.iter().map(|b| b.as_str().to_owned())).collect::<Vec<_>>()))
        }
    })?;
    found.map_err(|known| engine.no_such("validation", name, &known, "agents tool list --type validation"))
}

/// What a resource is called.
pub(super) fn resource_name(r: &dyn Reader, id: ResourceId) -> StoreResult<String> {
    Ok(r.resource(id)?.map_or_else(|| id.to_string(), |resource| sandboxes::display_name(&resource)))
}

/// The attachments of a validation.
pub(super) fn attached(r: &dyn Reader, name: &QualifiedName) -> StoreResult<Vec<Attachment>> {
    Ok(r.attachments()?.into_iter().filter(|a| a.validation == *name).collect())
}
