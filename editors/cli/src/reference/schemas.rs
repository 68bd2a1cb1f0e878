//! JSON Schemas of what each command writes with `--format json`.

use agents_engine::OperationInfo;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::commands::unavailable;
use crate::output::ErrorCode;

/// The schema of one command.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The words that name the command: `plan use`.
    pub command: String,
    /// What it writes: one document, or a line for each event.
    pub schema: Value,
}

impl Schema {
    /// The name of its file: `plan-use.schema.json`.
    pub fn file(&self) -> String {
        format!("{}.schema.json", self.command.replace(' ', "-"))
    }
}

/// Where `data` is the answer of operations under other names than the command's. Any of them may answer.
const ANSWERS: [(&str, &[&str]); 2] =
    [("diagnostics", &["diagnostics run"]), ("plan diff", &["plan diff", "plan correction-diff"])];

/// Commands that speak a protocol.
const NO_DOCUMENT: [&str; 3] = ["lsp pool", "lsp serve", "mcp serve"];

/// The schemas of all commands that write for programs.
pub fn schemas() -> Vec<Schema> {
    let program = super::program();
    let written =
        super::leaves(&program).into_iter().filter(|(path, _)| !NO_DOCUMENT.contains(&path.as_str()));
    written
        .map(|(command, leaf)| {
            let about = leaf.get_about().map(ToString::to_string).unwrap_or_default();
            let mut schema = document(&command, &about, data(&command));
            if command == "plan follow" {
                schema = event(schema);
            } else if unavailable::is_missing(&command) {
                schema["properties"]["status"] = json!({ "const": "error" });
            }
            Schema { command, schema }
        })
        .collect()
}

/// Each line of `plan follow`, and the one document where it cannot follow.
fn event(mut failure: Value) -> Value {
    let mut event = of::<agents_domain::event::Event>();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agents plan follow --format json",
        "description": "Each line is one event. Where nothing can be followed, one document says why.",
        "$defs": event["$defs"].take(),
    });
    for part in [&mut event, &mut failure] {
        for key in ["$schema", "$defs", "title"] {
            part.as_object_mut().map(|object| object.remove(key));
        }
    }
    schema["anyOf"] = json!([event, failure]);
    schema
}

/// The one document of a command whose `data` has these schemas.
fn document(command: &str, about: &str, mut data: Vec<Value>) -> Value {
    let mut definitions = Map::new();
    for (at, schema) in data.iter_mut().enumerate() {
        let Some(object) = schema.as_object_mut() else { continue };
        object.remove("$schema");
        let Some(Value::Object(own)) = object.remove("$defs") else { continue };
        // Types of the same name in different answers are different types.
        let clash = own.iter().any(|(name, of)| definitions.get(name).is_some_and(|other| other != of));
        let prefix = if clash { format!("Answer{at}") } else { String::new() };
        if clash {
            rename(schema, &prefix);
        }
        for (name, mut of) in own {
            if clash {
                rename(&mut of, &prefix);
            }
            definitions.insert(format!("{prefix}{name}"), of);
        }
    }
    let data = match data.len() {
        0 => json!({ "type": "object" }),
        1 => data.remove(0),
        _ => json!({ "anyOf": data }),
    };
    // A list is an answer; documents hold objects.
    let data = match data["type"].as_str() {
        Some("array") => {
            json!({ "type": "object", "required": ["result"], "properties": { "result": data } })
        }
        _ => data,
    };
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("agents {command} --format json"),
        "description": about,
        "type": "object",
        "required": ["command", "status", "exit_code", "data", "timing", "messages"],
        "additionalProperties": false,
        "properties": {
            "command": { "const": command },
            "status": { "enum": ["ok", "error", "cancelled"] },
            "exit_code": { "description": "That of the process.", "enum": [0, 1, 2, 130, 143] },
            "data": { "description": "The answer; on errors what there is of it.", "type": "object" },
            "error": {
                "description": "Only when `status` is `error`.",
                "type": "object",
                "required": ["code", "number", "message"],
                "additionalProperties": false,
                "properties": {
                    "code": { "enum": codes },
                    "number": { "type": "integer" },
                    "message": { "type": "string" },
                    "detail": { "type": "string" },
                    "suggestions": { "type": "array", "items": { "type": "string" } },
                },
            },
            "timing": {
                "type": "object",
                "required": ["started", "duration_ms"],
                "additionalProperties": false,
                "properties": {
                    "started": { "type": "string", "format": "date-time" },
                    "duration_ms": { "type": "integer", "minimum": 0 },
                },
            },
            "messages": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["level", "text"],
                    "additionalProperties": false,
                    "properties": {
                        "level": { "enum": ["ok", "info", "warn", "error"] },
                        "text": { "type": "string" },
                        "detail": { "type": "string" },
                    },
                },
            },
            "metadata": { "type": "object" },
        },
        "if": { "properties": { "status": { "const": "ok" } } },
        "then": { "properties": { "data": data } },
    });
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    schema
}

/// Puts a prefix before the names of all definitions that are referred to.
fn rename(value: &mut Value, prefix: &str) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get_mut("$ref")
                && let Some(name) = to.strip_prefix("#/$defs/")
            {
                *to = format!("#/$defs/{prefix}{name}");
            }
            fields.values_mut().for_each(|value| rename(value, prefix));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| rename(value, prefix)),
        _ => {}
    }
}

/// What `data` may be: the outputs of the operations behind a command.
fn data(command: &str) -> Vec<Value> {
    match command {
        "version" => return vec![version()],
        "info" => return vec![info()],
        "actor run" => return vec![of::<crate::commands::ActorRunReport>()],
        "help" => return vec![of::<crate::commands::help::HelpOutput>()],
        "init" => return vec![of::<agents_engine::operations::system::InitOutput>()],
        "quickstart" => return vec![of::<crate::commands::QuickstartReport>()],
        _ => {}
    }
    let other = ANSWERS.iter().find(|(name, _)| *name == command);
    let wanted: &[&str] = other.map_or(std::slice::from_ref(&command), |(_, operations)| operations);
    let named = |operation: &OperationInfo| {
        let name = operation.command().replacen("agents.", "", 1).replace('.', " ").replace('_', "-");
        wanted.contains(&name.as_str())
    };
    let answers = agents_engine::catalogue().iter().filter(|operation| named(operation));
    answers.map(|operation| (operation.output)().to_value()).collect()
}

fn of<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::default().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn object(properties: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        properties.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
    json!({ "type": "object", "required": names, "properties": properties })
}

fn version() -> Value {
    let text = json!({ "type": "string" });
    let of = |names: &[&str]| object(&names.iter().map(|name| (*name, text.clone())).collect::<Vec<_>>());
    object(&[
        ("cli", of(&["name", "version", "channel", "rust"])),
        ("build", of(&["build_date", "commit", "schema", "platform"])),
        ("dependencies", json!({ "type": "object", "additionalProperties": { "type": "string" } })),
    ])
}

fn info() -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer", "minimum": 0 }));
    let of = |of: &Value, names: &[&str]| {
        names.iter().map(|name| ((*name).to_owned(), of.clone())).collect::<Vec<(String, Value)>>()
    };
    let both = |texts: &[&str], numbers: &[&str]| {
        let all: Vec<(String, Value)> = of(&text, texts).into_iter().chain(of(&number, numbers)).collect();
        object(&all.iter().map(|(name, of)| (name.as_str(), of.clone())).collect::<Vec<_>>())
    };
    object(&[
        ("environment", both(&["data_dir", "config", "database", "server_mode", "platform"], &[])),
        ("runtime", both(&["automation", "sessions"], &["providers", "active_plans"])),
        ("storage", both(&[], &["cache_mb", "logs_mb", "backups", "db_size_mb"])),
        ("indexing", both(&["text_index", "vector_index", "graph_store"], &["indexed_files"])),
    ])
}
