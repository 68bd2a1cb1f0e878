//! `agents config`.

use agents_engine::operations::config::{self, Get, GetOutput, List, ListOutput, Set, SetOutput};
use serde_json::Value;

use crate::args::{ConfigCommand, ConfigGetArgs, ConfigListArgs, ConfigSetArgs};
use crate::commands::{json, listed};
use crate::compose::Mistake;
use crate::failure::Outcome;
use crate::output::{Kind, Row, Styled, col, dim, human, id};
use crate::run::Run;
use crate::surroundings::ThisMachine;

pub fn run(run: &Run, command: ConfigCommand) -> Outcome {
    match command {
        ConfigCommand::Set(args) => set(run, None, args),
        ConfigCommand::Get(args) => get(run, args),
        ConfigCommand::List(args) => list(run, args),
    }
}

/// Sets a key, also where the file has a mistake: it may be the one that is being corrected.
pub fn set(run: &Run, mistake: Option<Mistake>, args: ConfigSetArgs) -> Outcome {
    let out = &run.out;
    let set = Set { key: args.key, value: args.value, project: args.project };
    let done: SetOutput = match mistake {
        None => run.env.engine()?.call(set)?,
        Some(Mistake { error, in_file: false }) => return Err(error.into()),
        Some(_) => config::repair(&run.env.config, &ThisMachine, &set)?,
    };
    let data = json(&done)?;
    let panel = out.panel(None, "Config Updated");
    panel
        .row("Key", id(&done.key))
        .row("Value", shown(&done.value))
        .row("Previous", shown(&done.previous))
        .row("Source", done.source.as_str())
        .row("Scope", done.scope.as_str());
    if let Some(project) = &done.project {
        panel.row("Project", id(project));
    }
    drop(panel);
    out.panel(None, "Effective")
        .row("Sessions", done.effective.sessions.as_str())
        .row("Plans", done.effective.plans.as_str())
        .row("Existing", done.effective.existing.as_str());
    let panel = out.panel(None, "Saved To");
    panel.row("File", human::show(Kind::Path, &done.saved_to.file.as_str().into()));
    if let Some(line) = done.saved_to.line {
        panel.row("Line", line.to_string());
    }
    drop(panel);
    out.set_data(data);
    if let Some(variable) = &done.overridden_by {
        out.warn(format!("{variable} is set in the environment and stronger than the file"));
    }
    for note in done.notes {
        out.info(note);
    }
    out.ok("Config updated");
    Ok(())
}

fn get(run: &Run, args: ConfigGetArgs) -> Outcome {
    let out = &run.out;
    let ConfigGetArgs { key, project } = args;
    // Without a project nothing is looked up, and the answer must come whatever state the data is in.
    let found: GetOutput = match project {
        None => config::get(&run.env.config, &key, None)?,
        project => run.env.engine()?.call(Get { key, project })?,
    };
    let panel = out.panel(None, "Config");
    panel
        .row("Key", id(&found.key))
        .row("Value", shown(&found.value))
        .row("Source", found.source.as_str())
        .row("Overridden", if found.overridden { "yes" } else { "no" })
        .row("Type", found.value_type.as_str());
    if !found.allowed.is_empty() {
        panel.row("Allowed", found.allowed.join(", "));
    }
    panel.row("Meaning", found.description.as_str());
    drop(panel);
    let panel = out.panel(None, "Origin");
    if let Some(file) = &found.origin.file {
        panel.row("File", human::show(Kind::Path, &file.as_str().into()));
    }
    if let Some(line) = found.origin.line {
        panel.row("Line", line.to_string());
    }
    panel.row("Default", shown(&found.origin.default));
    drop(panel);
    let panel = out.panel(None, "Resolution Chain");
    for level in &found.resolution_chain {
        let line = Styled::from(format!("{}. {}: ", level.level, level.source)).and(shown(&level.value));
        let origin = level.origin.as_deref().filter(|_| !level.value.is_null());
        panel.line(match origin {
            Some(origin) => line.and(dim(format!(" ({origin})"))),
            None => line,
        });
    }
    panel.row("Winner", format!("{} (level {})", found.winner.source, found.winner.level));
    drop(panel);
    out.set_data(json(&found)?);
    if !found.in_effect {
        out.info(format!("Nothing in this version acts on `{}`", found.key));
    }
    out.ok("Config read");
    Ok(())
}

fn list(run: &Run, args: ConfigListArgs) -> Outcome {
    let out = &run.out;
    let list = List { pattern: args.pattern, filter_values: args.filter_values, project: args.project };
    let found: ListOutput = match &list.project {
        None => config::list(&run.env.config, &list)?,
        Some(_) => run.env.engine()?.call(list)?,
    };
    let data = json(&found)?;
    let columns = vec![
        col("key", "Key").id(),
        col("value", "Value"),
        col("source", "Source"),
        col("modified", "Modified").kind(Kind::Flag),
        col("in_effect", "Effect"),
    ];
    let table = out.table(None, "Config", columns);
    for (row, setting) in data["settings"].as_array().into_iter().flatten().zip(&found.settings) {
        let effect = if setting.in_effect { "yes".into() } else { dim("not yet") };
        table.row(Row::from(row.clone()).show("in_effect", effect));
    }
    table.when_empty("settings", &["agents config list"]);
    drop(table);
    let names =
        |names: &Option<Vec<String>>| names.as_ref().map_or_else(|| dim("none"), |n| n.join(", ").into());
    out.panel(None, "Overrides")
        .row("Env", names(&found.overrides.env))
        .row("CLI Flags", names(&found.overrides.cli_flags));
    let panel = out.panel(None, "Config File");
    panel.row("Path", human::show(Kind::Path, &found.config_file.path.as_str().into()));
    match found.config_file.exists {
        true => panel
            .row("Size", format!("{} bytes", human::count(found.config_file.size_bytes)))
            .row("Valid", "yes"),
        false => panel.row("Size", dim("not there: defaults apply")),
    };
    drop(panel);
    out.set_data(data);
    out.ok(listed(found.settings.len(), "setting", "settings"));
    Ok(())
}

/// A value for people.
fn shown(value: &Value) -> Styled {
    match value {
        Value::Null => dim("(not set)"),
        value => human::show(Kind::Auto, value),
    }
}
