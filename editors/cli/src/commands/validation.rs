//! `agents validation`: registering what is checked at the end of Execute, and attaching it.

use agents_domain::validation::Mode;
use agents_domain::{Error, ErrorKind};
use agents_engine::operations::validation::{Add, Attach, Detach};
use serde_json::{Map, Value};

use crate::args::{ValidationAddArgs, ValidationAttachArgs, ValidationCommand, ValidationDetachArgs};
use crate::commands::json;
use crate::compose;
use crate::failure::Outcome;
use crate::output::{Kind, col};
use crate::run::Run;

pub fn run(run: &Run, command: ValidationCommand) -> Outcome {
    match command {
        ValidationCommand::Add(args) => add(run, args),
        ValidationCommand::Attach(args) => attach(run, args),
        ValidationCommand::Detach(args) => detach(run, &args),
    }
}

fn add(run: &Run, args: ValidationAddArgs) -> Outcome {
    let out = &run.out;
    let ValidationAddArgs { name, config, required, informational, update } = args;
    let mode = match (required, informational) {
        (true, _) => Some(Mode::Required),
        (_, true) => Some(Mode::Informational),
        _ => None,
    };
    let text = compose::read_definition(&config)?;
    let added = run.env.engine()?.call(Add {
        name,
        config: compose::definition_name(&config),
        text,
        mode,
        update,
    })?;
    let data = json(&added)?;
    out.panel(None, "Validation Registered")
        .pick(&data, "validation_registered.name", "Name", Kind::Id)
        .pick(&data, "validation_registered.description", "Description", Kind::Text)
        .pick(&data, "validation_registered.source", "Source", Kind::Text)
        .pick(&data, "validation_registered.mode", "Mode", Kind::Text)
        .pick(&data, "validation_registered.config", "Config", Kind::Path)
        .pick(&data, "validation_registered.created", "Created", Kind::Time);
    out.panel(None, "Capability")
        .pick(&data, "capability.read_only", "Read-Only", Kind::Text)
        .pick(&data, "capability.checkpointable", "Checkpointable", Kind::Text)
        .pick(&data, "capability.timeout", "Timeout", Kind::Text);
    for hint in &added.hints {
        match hint.severity {
            agents_config::Severity::Hint => out.info(hint.to_string()),
            _ => out.warn(hint.to_string()),
        };
    }
    for warning in &added.warnings {
        out.warn(warning.as_str());
    }
    out.set_data(data);
    let name = &added.validation_registered.name;
    if added.validation_registered.version == 1 {
        out.hint("Next Steps", [format!("agents validation attach <RESOURCE> {name}")]);
    }
    out.ok(if added.validation_registered.version == 1 {
        "Validation registered"
    } else {
        "Validation updated"
    });
    Ok(())
}

fn attach(run: &Run, args: ValidationAttachArgs) -> Outcome {
    let out = &run.out;
    let mut names = args.names;
    let Some(validation) = names.pop() else {
        return Err(Error::new(ErrorKind::Usage, "which validation?").into());
    };
    let resource = names.pop();
    let mut given = Map::new();
    for pair in &args.args {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        given.insert(key.to_owned(), Value::from(value));
    }
    let attach = Attach { validation, resource, project: args.project, plan: args.plan, args: given };
    let attached = run.env.engine()?.call(attach)?;
    let data = json(&attached)?;
    if attached.attachments.is_empty() {
        let panel = out.panel(None, "Validation Attached");
        panel
            .pick(&data, "validation_attached.attachment_id", "Attachment ID", Kind::Id)
            .pick(&data, "validation_attached.validation", "Validation", Kind::Id)
            .pick(&data, "validation_attached.mode", "Mode", Kind::Text)
            .pick(&data, "validation_attached.resource", "Resource", Kind::Id)
            .pick(&data, "validation_attached.scope", "Scope", Kind::Text);
        let args: Vec<String> =
            attached.validation_attached.args.iter().map(|(key, value)| arg_text(key, value)).collect();
        if !args.is_empty() {
            panel.row("Args", args.join(", "));
        }
        if let Some(note) = &attached.validation_attached.note {
            panel.line(note.clone());
        }
    } else {
        let columns = vec![
            col("resource", "Resource").id(),
            col("validation", "Validation").id(),
            col("mode", "Mode"),
            col("scope", "Scope"),
            col("attachment_id", "Attachment ID").id(),
        ];
        out.table(None, "Validation Attached", columns).rows(&data["attachments"]);
    }
    out.set_data(data);
    out.ok("Validation attached");
    Ok(())
}

/// `coverage_threshold=90`.
pub(super) fn arg_text(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{key}={text}"),
        other => format!("{key}={other}"),
    }
}

fn detach(run: &Run, args: &ValidationDetachArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let looked = engine.call(Detach { attachment: args.attachment.clone(), dry_run: true })?;
    let known = looked.validation_detached;
    let question = format!(
        "Detach validation {} from resource {} (scope: {})?",
        known.validation, known.resource, known.scope
    );
    if !out.confirm(&question, args.yes.yes) {
        return Ok(());
    }
    let detached = engine.call(Detach { attachment: known.attachment_id.to_string(), dry_run: false })?;
    let mut data = json(&detached)?;
    if !args.yes.yes {
        data["confirmation"] = format!("{question} [y/N]: y").into();
    }
    out.panel(None, "Validation Detached")
        .pick(&data, "validation_detached.attachment_id", "Attachment ID", Kind::Id)
        .pick(&data, "validation_detached.validation", "Validation", Kind::Id)
        .pick(&data, "validation_detached.resource", "Resource", Kind::Id)
        .pick(&data, "validation_detached.scope", "Scope", Kind::Text);
    out.set_data(data);
    out.ok("Validation detached");
    Ok(())
}
