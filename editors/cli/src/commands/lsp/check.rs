//! `agents lsp check`: starts a server and shows what it really is and offers.

use agents_domain::ports::language_servers::DiagnosticsMode;
use agents_engine::operations::lsp::Check;

use crate::args::LspCheckArgs;
use crate::commands::{bullets, json, texts};
use crate::compose;
use crate::failure::Outcome;
use crate::output::{Kind, Tone};
use crate::run::Run;

pub fn run(run: &Run, args: LspCheckArgs) -> Outcome {
    let out = &run.out;
    let LspCheckArgs { name, config, root, timeout } = args;
    let text = config.as_ref().map(|file| compose::read_definition(file)).transpose()?;
    let config = config.as_deref().map(compose::definition_name);
    let root = root.map(|root| compose::absolute(&root)).transpose()?;
    let shown = name.as_deref().or(config.as_deref()).unwrap_or_default().to_owned();
    let progress = out.progress(&format!("Starts {shown}"));
    progress.total(0).transient();
    let done = run.env.engine()?.call(Check { name, text, config, root, timeout_seconds: timeout });
    progress.close();
    let done = done?;
    let data = json(&done)?;
    let report = &done.report;
    let panel = out.panel(None, "Language Server");
    panel
        .pick(&data, "server", "Entry", Kind::Id)
        .pick(&data, "command_line", "Command", Kind::Text)
        .pick(&data, "name", "Name", Kind::Text)
        .pick(&data, "version", "Version", Kind::Text)
        .pick(&data, "encoding", "Positions", Kind::Text);
    if let Some(mode) = report.diagnostics {
        panel.row(
            "Diagnostics",
            match mode {
                DiagnosticsMode::Pull => "asked for (pull)",
                DiagnosticsMode::PullDynamic => "asked for (pull, registered after the start)",
                DiagnosticsMode::Push => "published by itself (push)",
            },
        );
    }
    panel.pick(&data, "start_ms", "Starts In", Kind::Millis).pick(
        &data,
        "resident_bytes",
        "Memory",
        Kind::Bytes,
    );
    if report.problem.is_some() {
        panel.tone(Tone::Bad);
    }
    drop(panel);
    if report.problem.is_none() {
        let panel = out.panel(None, "Capabilities");
        panel.row("Lent to actors", texts(&data["capabilities"]).collect::<Vec<_>>().join(", "));
        panel.row("Advertised", report.advertised.join(", "));
    }
    if !report.stderr_tail.is_empty() {
        out.code(None, &report.stderr_tail).title("What it printed");
    }
    if !done.hints.is_empty() {
        let panel = out.panel(None, "Good to Know");
        bullets(&panel, done.hints.iter().map(String::as_str));
    }
    out.set_data(data);
    match &report.problem {
        None => drop(out.ok(format!("{} works", report.server))),
        Some(problem) => {
            let (first, rest) = problem.split_once('\n').unwrap_or((problem, ""));
            let error = out.error(format!("{} does not start: {first}", report.server));
            if !rest.is_empty() {
                error.detail(rest);
            }
        }
    }
    Ok(())
}
