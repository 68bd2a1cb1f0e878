//! `agents diagnostics`: whether all is well, what to do where it is not, and tidying up.

use std::sync::Arc;

use agents_domain::Result;
use agents_engine::Engine;
use agents_engine::operations::system::{Check, Database, RunOutput, Situation, Status, diagnose};

use crate::args::DiagnosticsArgs;
use crate::commands::{bullets, json, unavailable};
use crate::compose::Mistake;
use crate::failure::Outcome;
use crate::output::human::counted;
use crate::output::{Caps, Kind, Row, Styled, Tone, bad, col, good, human, warn};
use crate::run::Run;
use crate::surroundings::ThisMachine;

/// `mistake` is why the configuration could not be read.
pub fn run(run: &Run, mistake: Option<&Mistake>, args: &DiagnosticsArgs) -> Outcome {
    let env = &run.env;
    // Looking makes nothing, so only a database that is there is opened.
    let database = agents_store::database_path(&env.data_dir);
    let engine = (!matches!(database.try_exists(), Ok(false))).then(|| env.engine());
    let database = match &engine {
        None => Database::Missing,
        Some(Err(error)) => Database::Unusable(error),
        Some(Ok(engine)) => Database::Open(engine),
    };
    let situation = Situation {
        config: &env.config,
        config_error: mistake.map(|m| &m.error),
        data_dir: &env.data_dir,
        database,
        surroundings: &ThisMachine,
    };
    let found = diagnose(&situation, vec![unavailable::check(), terminal(&Caps::detect())], args.cleanup);
    show(run, &found)?;
    if args.cleanup {
        tell_unclean(run, &engine);
    }
    Ok(())
}

/// What output can look like here; never more than worth knowing.
fn terminal(caps: &Caps) -> Check {
    let details = match caps.is_tty {
        false => "output goes to no terminal".to_owned(),
        true => {
            let colours = match (caps.no_color || caps.dumb, caps.truecolor, caps.colors_256) {
                (true, ..) => "no colours",
                (_, true, _) => "all colours",
                (_, _, true) => "256 colours",
                _ => "16 colours",
            };
            let charset = if caps.unicode { "Unicode" } else { "ASCII" };
            format!("{} columns, {colours}, {charset}", caps.width)
        }
    };
    Check::ok("Terminal", details)
}

fn show(run: &Run, found: &RunOutput) -> Outcome {
    let out = &run.out;
    let columns = vec![col("check", "Check"), col("status", "Status"), col("details", "Details").wrap()];
    let table = out.table(None, "Checks", columns);
    for check in &found.checks {
        let status = match check.status {
            Status::Ok => good("OK"),
            Status::Warn => warn("WARN"),
            Status::Error => bad("ERROR"),
        };
        table.row(Row::from(json(check)?).show("status", status));
    }
    drop(table);
    let summary = &found.summary;
    out.panel(None, "Summary")
        .row("Checks", format!("{} total", summary.total))
        .row("Warnings", human::count(summary.warnings as u64))
        .row("Errors", human::count(summary.errors as u64))
        .row("Duration", human::millis((summary.duration_s * 1000.0) as u64));
    if !found.leftovers.is_empty() {
        let columns = vec![
            col("kind", "Kind"),
            col("path", "Path").kind(Kind::Path),
            col("reason", "Why").wrap(),
            col("removable", "Removable").kind(Kind::Flag),
        ];
        let table = out.table(None, "Left Behind", columns);
        for leftover in &found.leftovers {
            let row = json(leftover)?;
            let kind = row["kind"].as_str().unwrap_or_default().replace('_', " ");
            table.row(Row::from(row).show("kind", kind));
        }
    }
    if let Some(cleanup) = &found.cleanup {
        let panel = out.panel(None, "Cleanup");
        panel
            .row("Removed", human::count(cleanup.removed.len() as u64))
            .row("Kept", human::count(cleanup.kept.len() as u64))
            .row("Freed", human::bytes(cleanup.freed_bytes));
        bullets(&panel, cleanup.kept.iter().map(|kept| format!("{}: {}", kept.path, kept.reason)));
    }
    if !found.recommendations.is_empty() {
        bullets(&out.panel(None, "Recommendations"), found.recommendations.iter().map(String::as_str));
    }
    if !found.errors.is_empty() {
        let panel = out.panel(None, "Errors (must fix)");
        panel.tone(Tone::Bad);
        for error in &found.errors {
            panel.line(Styled::from(format!("{}. {}", error.index, error.message)));
            if let Some(fix) = &error.fix {
                panel.line(Styled::from(format!("   {fix}")));
            }
        }
    }
    out.set_data(json(found)?);
    match (summary.errors, summary.warnings) {
        (0, 0) => out.ok("All checks passed"),
        (0, 1) => out.warn("1 warning requires attention"),
        (0, n) => out.warn(format!("{n} warnings require attention")),
        (n, _) => {
            let errors = counted(n as u64, "error", "errors");
            out.error(format!("{errors} must be resolved before CleverAgents can operate"))
        }
    };
    Ok(())
}

/// Without a database nobody knows what belongs to a plan.
fn tell_unclean(run: &Run, engine: &Option<Result<Arc<Engine>>>) {
    if let Some(Err(_)) = engine {
        run.out.warn("Nothing was cleaned up: without the database nobody knows what is still needed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_is_told_by_what_it_can_do() {
        let caps = |tty, vars: &'static [(&'static str, &'static str)]| {
            let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            terminal(&Caps::from_env(tty, Some((120, 40)), var)).details
        };
        assert_eq!(caps(false, &[]), "output goes to no terminal");
        assert_eq!(
            caps(true, &[("TERM", "xterm-256color"), ("LANG", "C.UTF-8")]),
            "120 columns, 256 colours, Unicode"
        );
        assert_eq!(
            caps(true, &[("TERM", "xterm"), ("COLORTERM", "truecolor")]),
            "120 columns, all colours, ASCII"
        );
        assert_eq!(caps(true, &[("TERM", "dumb")]), "120 columns, no colours, ASCII");
        assert_eq!(caps(true, &[("TERM", "vt100"), ("NO_COLOR", "")]), "120 columns, no colours, ASCII");
    }

    #[test]
    fn a_check_is_written_as_programs_read_it() {
        let value = serde_json::to_value(Check::warn("Git", "old", "new")).unwrap();
        assert_eq!(
            value,
            serde_json::json!({ "check": "Git", "status": "warn", "details": "old", "fix": "new" })
        );
    }
}
