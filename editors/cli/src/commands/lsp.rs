//! `agents lsp`: the registry of language servers, and the language server itself.

mod check;
mod detect;
mod index;
pub(super) mod install;
pub mod pool;
mod proxy;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use agents_config::load_language_server;
use agents_domain::catalogue::{self, KnownServer};
use agents_domain::{Error, ErrorKind};
use agents_engine::operations::language_server::{Add, List, Remove, Show};
use agents_engine::{find_program, is_program};
use agents_lsp_server::{EditorOptions, serve_editor};
use serde_json::Value;

use crate::args::{Global, LspAddArgs, LspCommand, LspListArgs, LspServeArgs, NameArgs, RemoveArgs};
use crate::commands::{bullets, json, listed, text, texts};
use crate::compose::{self, Environment};
use crate::failure::{Failure, Outcome};
use crate::logging;
use crate::output::human::counted;
use crate::output::{Kind, Tone, col, dim, id};
use crate::run::Run;

pub fn run(run: &Run, command: LspCommand) -> Outcome {
    match command {
        LspCommand::Add(args) => add(run, args),
        LspCommand::List(args) => list(run, args),
        LspCommand::Show(args) => show(run, args),
        LspCommand::Remove(args) => remove(run, args),
        LspCommand::Detect(args) => detect::run(run, args),
        LspCommand::Index(args) => index::run(run, args),
        LspCommand::Install(args) => install::run(run, args),
        LspCommand::Check(args) => check::run(run, args),
        LspCommand::Pool(args) => pool::run(run, &args),
        // It speaks a protocol, and is started before an output is opened.
        LspCommand::Serve(_) => Err(Error::internal("the language server writes no document").into()),
    }
}

fn add(run: &Run, args: LspAddArgs) -> Outcome {
    let out = &run.out;
    let LspAddArgs { config, update } = args;
    let text = compose::read_definition(&config)?;
    let command = load_language_server(&text, &config).ok().map(|loaded| loaded.value.command);
    let added = run
        .env
        .engine()?
        .call(Add {
            path: compose::config_path(&config)?,
            config: compose::definition_name(&config),
            text,
            update,
        })
        .map_err(|error| {
            let exists = error.kind == ErrorKind::AlreadyExists;
            let mut failure = Failure::from(error);
            if let (true, Some(Value::Object(data))) = (exists, &mut failure.data) {
                data.insert("hint".into(), "Use --update to overwrite".into());
                data.insert(
                    "suggested_command".into(),
                    format!("agents lsp add --update --config {config}").into(),
                );
            }
            failure
        })?;
    let data = json(&added)?;
    out.panel(None, "LSP Server Registered")
        .pick(&data, "lsp_server.name", "Name", Kind::Id)
        .pick(&data, "lsp_server.languages", "Languages", Kind::Text)
        .pick(&data, "lsp_server.command", "Command", Kind::Text)
        .pick(&data, "lsp_server.capabilities", "Capabilities", Kind::Text);
    for hint in &added.hints {
        match hint.severity {
            agents_config::Severity::Hint => out.info(hint.to_string()),
            _ => out.warn(hint.to_string()),
        };
    }
    if let Some(command) = command.filter(|command| !is_installed(command)) {
        let warning = out.warn(format!("`{command}` is not on PATH: plans and editors will find no server"));
        if let Some(how) = install_hint(&command) {
            warning.detail(format!("Install it: {how}"));
        }
    }
    let updated = added.lsp_server.updated;
    out.set_data(data);
    out.ok(if updated { "LSP server updated" } else { "LSP server registered" });
    Ok(())
}

/// Whether a command, as a server's file names it, is there. A command that depends on a variable is not looked for.
fn is_installed(command: &str) -> bool {
    if command.contains("${") || command.contains("{{") {
        return true;
    }
    if command.contains('/') {
        return is_program(Path::new(command));
    }
    find_program(command, &compose::env("PATH").unwrap_or_default()).is_some()
}

fn install_hint(command: &str) -> Option<String> {
    catalogue::by_command(command).map(KnownServer::install_command)
}

fn list(run: &Run, args: LspListArgs) -> Outcome {
    let out = &run.out;
    let LspListArgs { pattern, namespace, language } = args;
    let found = run.env.engine()?.call(List { namespace, language, pattern })?;
    let filters =
        found.filter.iter().flatten().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    let filters = filters.collect::<Vec<_>>().join(", ");
    let count = counted(found.total as u64, "server", "servers");
    let title = match filters.is_empty() {
        true => format!("LSP Registry ({count})"),
        false => format!("LSP Registry ({count}, filtered: {filters})"),
    };
    let total = found.total;
    let data = json(&found)?;
    let columns = vec![
        col("name", "Name").id(),
        col("languages", "Languages"),
        col("command", "Command"),
        col("bound_actors", "Bound").kind(Kind::Count),
        col("running", "Running").kind(Kind::Count),
        col("warm", "Warm").kind(Kind::Count),
    ];
    out.table(None, &title, columns)
        .rows(&data["lsp_servers"])
        .when_empty("LSP servers", &["agents lsp add --config <FILE>"]);
    out.set_data(data);
    let said = listed(total, "LSP server", "LSP servers");
    out.ok(if filters.is_empty() { said } else { format!("{said} (filtered: {filters})") });
    Ok(())
}

fn show(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let data = json(&run.env.engine()?.call(Show { name: args.name })?)?;
    let server = &data["lsp_server"];
    out.panel(None, "LSP Server")
        .pick(server, "name", "Name", Kind::Id)
        .pick(server, "description", "Description", Kind::Text)
        .pick(server, "languages", "Languages", Kind::Text)
        .pick(server, "command", "Command", Kind::Text)
        .pick(server, "root_path", "Root Path", Kind::Text)
        .pick(server, "config", "Config", Kind::Path)
        .pick(server, "created", "Created", Kind::Time);
    for (key, title) in [("init_options", "Init Options"), ("workspace_settings", "Workspace Settings")] {
        let value = &server[key];
        if value.as_object().is_some_and(|fields| !fields.is_empty()) {
            let shown = serde_json::to_string_pretty(value).unwrap_or_default();
            out.code(None, &shown).title(title).language("json");
        }
    }
    let panel = out.panel(None, "Capabilities");
    panel.line(texts(&server["capabilities"]).collect::<Vec<_>>().join(", "));
    drop(panel);
    let bound = server["bound_actors"].as_array().map_or(&[][..], Vec::as_slice);
    if !bound.is_empty() {
        let panel = out.panel(None, "Bound Actors");
        bullets(
            &panel,
            bound.iter().map(|a| id(text(a, "name")).and(dim(format!(" ({})", text(a, "binding_mode"))))),
        );
    }
    let command = text(server, "command").split(' ').next().unwrap_or_default().to_owned();
    if !is_installed(&command) {
        let warning = out.warn(format!("`{command}` is not on PATH"));
        if let Some(how) = install_hint(&command) {
            warning.detail(format!("Install it: {how}"));
        }
    }
    out.set_data(data);
    out.ok("LSP server details loaded");
    Ok(())
}

fn remove(run: &Run, args: RemoveArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    // An unknown server is refused without a question.
    let known = engine.call(Show { name: args.name.clone() })?;
    if !out.confirm(&format!("Remove LSP server {}?", known.lsp_server.name), args.yes.yes) {
        return Ok(());
    }
    let removed = engine.call(Remove { name: args.name })?;
    let data = json(&removed)?;
    out.panel(None, "LSP Server Removed").pick(&data, "lsp_server_removed.name", "Name", Kind::Id).pick(
        &data,
        "lsp_server_removed.languages",
        "Languages",
        Kind::Text,
    );
    let broken = removed.broken_references.len();
    if broken > 0 {
        let panel = out.panel(None, "Broken References");
        panel.tone(Tone::Warn);
        bullets(&panel, removed.broken_references.iter().map(|r| format!("Actor: {}", r.name)));
    }
    out.set_data(data);
    if let Some(ended) = removed.instances_ended {
        out.info(format!("{} ended", counted(ended as u64, "running instance", "running instances")));
    }
    out.ok("LSP server removed");
    if broken > 0 {
        let actors = counted(broken as u64, "actor", "actors");
        out.warn(format!(
            "This LSP server is referenced by {actors}. These actor LSP bindings will fail until resolved."
        ));
    }
    Ok(())
}

/// Serves an editor until it leaves. Stdout carries the protocol; everything else goes to stderr or the log file.
pub fn serve(global: &Global, args: &LspServeArgs) -> ExitCode {
    match start(global, args) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "agents lsp serve: {error}");
            for suggestion in &error.suggestions {
                let _ = writeln!(io::stderr(), "  {suggestion}");
            }
            ExitCode::from(if error.kind == ErrorKind::Usage { 2 } else { 1 })
        }
    }
}

fn start(global: &Global, args: &LspServeArgs) -> Result<ExitCode, Error> {
    let level = args.log_level.filter();
    let name = args.log_level.name();
    let level = logging::level_of(global.verbose).unwrap_or(level).max(level);
    logging::start_plain(level, args.log_file.as_deref())?;
    let environment = Environment::load(global)?;
    for warning in environment.config.warnings() {
        tracing::warn!("{warning}");
    }
    let engine = environment.engine()?;
    let proxy = proxy::options(&engine, &environment, &args.proxy)?;
    let mut banner = io::stderr();
    let mut lines = vec![
        format!(
            "CleverAgents LSP Server {} starting — PID {}",
            env!("CARGO_PKG_VERSION"),
            std::process::id()
        ),
        format!("  Log level: {name}"),
        "  Transport: stdin/stdout (JSON-RPC, Content-Length framing)".to_owned(),
        format!("  Data: {}", environment.data_dir.display()),
        "  Serves: plans and decisions (hover, code lens, code action, diagnostics, commands)".to_owned(),
    ];
    if let Some(proxy) = &proxy {
        let names: Vec<String> = proxy.servers.iter().map(|server| server.name.to_string()).collect();
        let names = if names.is_empty() { "no server is registered".to_owned() } else { names.join(", ") };
        lines.push(format!("  Proxies: {names}"));
    }
    // An editor that closed stderr wants no banner.
    let _ = banner.write_all((lines.join("\n") + "\n").as_bytes());
    let status = serve_editor(engine, EditorOptions { proxy, ..EditorOptions::default() })
        .map_err(|e| Error::internal(format!("the server cannot start: {e}")))?;
    Ok(status.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_told_from_one_that_is_there() {
        assert!(is_installed("sh"));
        assert!(is_installed("/bin/sh"));
        assert!(!is_installed("/bin"));
        assert!(!is_installed("no-such-language-server"));
        assert!(is_installed("${SERVER}"), "what a variable names is not known here");
        assert_eq!(install_hint("/opt/bin/ruff").as_deref(), Some("agents lsp install ruff"));
        assert_eq!(install_hint("some-server"), None);
    }
}
