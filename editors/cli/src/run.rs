//! From a process's arguments to its exit code.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use clap::error::ErrorKind as ClapKind;
use clap::{CommandFactory, Parser};

use crate::args::{self, Cli, Command, ConfigCommand, Global, LspCommand, McpCommand, PlanCommand};
use crate::commands;
use crate::complete;
use crate::compose::{self, Environment, Mistake};
use crate::failure::{Failure, Outcome};
use crate::logging;
use crate::output::{AppError, Caps, Format, Options, Output, format, interrupt};

/// What a command works with.
pub struct Run {
    /// What it writes.
    pub out: Output,
    /// Where it is.
    pub env: Environment,
    last_words: Arc<Mutex<Option<String>>>,
    undo: Arc<Mutex<Option<Undo>>>,
}

/// What is done when Ctrl+C ends a command; returns what is said of it, if anything came of it.
type Undo = Box<dyn FnOnce() -> Option<String> + Send>;

impl Run {
    /// What is said when Ctrl+C ends the command from now on.
    pub fn when_interrupted(&self, words: impl Into<String>) {
        *self.last_words.lock().unwrap_or_else(PoisonError::into_inner) = Some(words.into());
    }

    /// What Ctrl+C does before it ends the command. What it returns is said instead of [`Run::when_interrupted`].
    pub fn undo_when_interrupted(&self, undo: impl FnOnce() -> Option<String> + Send + 'static) {
        *self.undo.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(undo));
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    complete::answer_a_shell();
    let args = args::expand(&std::env::args_os().collect::<Vec<_>>());
    match Cli::try_parse_from(&args) {
        Ok(cli) => start(cli),
        Err(error) => ExitCode::from(misused(&error, &args)),
    }
}

fn start(cli: Cli) -> ExitCode {
    if let Some(shell) = cli.show_completion {
        return ExitCode::from(commands::completion::show(shell));
    }
    let command = match (cli.command, cli.install_completion) {
        (Some(command), None) => command,
        (_, Some(shell)) => {
            return in_output("install-completion", &cli.global, |run| {
                commands::completion::install(run, shell)
            });
        }
        (None, None) => {
            let asked = cli.global.format.or_else(compose::format_of_env).filter(|f| f.is_document());
            return ExitCode::from(match asked {
                Some(format) => no_command("agents", "agents", format),
                None => {
                    // A reader that went away wants no help.
                    let _ = Cli::command().print_help();
                    2
                }
            });
        }
    };
    let path = command.path();
    match command {
        Command::PlanWorker { plan } => commands::worker::run(&cli.global, &plan),
        Command::Lsp(LspCommand::Pool(args)) if args.serve => commands::lsp::pool::serve(&cli.global),
        Command::Lsp(LspCommand::Serve(args)) => commands::lsp::serve(&cli.global, &args),
        Command::Mcp(McpCommand::Serve(args)) => commands::mcp::serve(&cli.global, &args),
        Command::Plan(PlanCommand::Follow(args)) => commands::plan::follow(&cli.global, &args),
        Command::Diagnostics(args) => in_output_anyway(path, &cli.global, |run, mistake| {
            commands::diagnostics::run(run, mistake.as_ref(), &args)
        }),
        // Whoever asks for help with a broken configuration is asked for the version.
        Command::Version => in_output_anyway(path, &cli.global, |run, _| commands::version::run(run)),
        Command::Help(args) => in_output_anyway(path, &cli.global, |run, _| commands::help::run(run, args)),
        Command::Init(args) => {
            in_output_anyway(path, &cli.global, |run, mistake| commands::init::run(run, mistake, args))
        }
        Command::Config(ConfigCommand::Set(args)) => {
            in_output_anyway(path, &cli.global, |run, mistake| commands::config::set(run, mistake, args))
        }
        command => in_output(path, &cli.global, |run| commands::run(run, command)),
    }
}

/// Runs a command that writes one document.
fn in_output(path: &str, global: &Global, command: impl FnOnce(&Run) -> Outcome) -> ExitCode {
    match open(path, global) {
        Ok(run) => carry_out(&run, command),
        Err(code) => ExitCode::from(code),
    }
}

/// As [`in_output`], also where the configuration has a mistake, which the command is told.
fn in_output_anyway(
    path: &str,
    global: &Global,
    command: impl FnOnce(&Run, Option<Mistake>) -> Outcome,
) -> ExitCode {
    match open_with(path, global, Environment::load_what_can_be_read) {
        Ok((run, mistake)) => carry_out(&run, |run| command(run, mistake)),
        Err(code) => ExitCode::from(code),
    }
}

/// Runs a command in an open output, whose end it is.
pub fn carry_out(run: &Run, command: impl FnOnce(&Run) -> Outcome) -> ExitCode {
    let (last_words, undo) = (run.last_words.clone(), run.undo.clone());
    let watched = interrupt::watch(&run.out, move || {
        let undo = undo.lock().unwrap_or_else(PoisonError::into_inner).take();
        undo.and_then(|undo| undo())
            .or_else(|| last_words.lock().unwrap_or_else(PoisonError::into_inner).take())
    });
    if let Err(error) = watched {
        tracing::warn!(%error, "Ctrl+C is not handled");
    }
    ExitCode::from(match command(run) {
        Ok(()) => run.out.finish(),
        Err(failure) => failure.report(&run.out),
    })
}

/// Reads the environment and opens the output, or reports why that fails and gives the exit code.
pub fn open(path: &str, global: &Global) -> Result<Run, u8> {
    let load = |global: &Global| Ok((Environment::load(global)?, None));
    open_with(path, global, load).map(|(run, _)| run)
}

type Loaded = (Environment, Option<Mistake>);

fn open_with(
    path: &str,
    global: &Global,
    load: impl FnOnce(&Global) -> agents_domain::Result<Loaded>,
) -> Result<(Run, Option<Mistake>), u8> {
    let caps = Caps::detect();
    let fail = |failure: Failure| {
        let wanted = global.format.or_else(compose::format_of_env);
        let format = wanted.map_or_else(|| format::implicit(&caps), |f| f.degrade(&caps));
        failure.report(&Output::open(Options::process(path, format, caps.clone())))
    };
    let (env, mistake) = load(global).map_err(|e| fail(e.into()))?;
    let format = env.format(global.format, &caps).map_err(|e| fail(e.into()))?;
    let log = logging::Plan::new(global.verbose, &env.config);
    let logged = log.shows_warnings();
    log.start().map_err(|e| fail(e.into()))?;
    for warning in env.config.warnings() {
        tracing::warn!("{warning}");
        if !logged {
            // Never to stdout; a reader that went away wants no warning.
            let _ = writeln!(io::stderr().lock(), "warning: {warning}");
        }
    }
    let out = Output::open(Options { quiet: global.quiet, ..Options::process(path, format, caps) });
    Ok((Run { out, env, last_words: Arc::default(), undo: Arc::default() }, mistake))
}

/// Shows help, the version, or what is wrong with the command line.
fn misused(error: &clap::Error, args: &[OsString]) -> u8 {
    let text = error.render();
    match error.kind() {
        ClapKind::DisplayHelp | ClapKind::DisplayVersion => {
            // A reader that went away wants no help.
            let _ = error.print();
            return 0;
        }
        _ => {}
    }
    let caps = Caps::detect();
    let asked = format::from_args(args.iter().cloned()).or_else(compose::format_of_env);
    let format = asked.map_or_else(|| format::implicit(&caps), |f| f.degrade(&caps));
    let (words, program) = command_words(args);
    if error.kind() == ClapKind::DisplayHelpOnMissingArgumentOrSubcommand {
        if format.is_document() {
            return no_command(&words, &program, format);
        }
        let shown = if caps.is_tty && !caps.no_color { text.ansi().to_string() } else { text.to_string() };
        let _ = io::stdout().lock().write_all(shown.as_bytes());
        return 2;
    }
    let out = Output::open(Options::process(words, format, caps));
    Failure::from(usage_error(&text.to_string(), &program)).report(&out)
}

fn no_command(words: &str, program: &str, format: Format) -> u8 {
    let out = Output::open(Options::process(words, format, Caps::detect()));
    let error = AppError::usage("a command is missing").suggest(format!("{program} --help"));
    Failure::from(error).report(&out)
}

/// What the parser says, as an error of ours: the first paragraph is the message, the rest says what would be right.
fn usage_error(text: &str, program: &str) -> AppError {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let (message, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let message = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let more: Vec<&str> = rest
        .lines()
        .map(str::trim)
        .filter(|l| !["For more information", "tip: to pass '"].iter().any(|start| l.starts_with(start)))
        .filter(|l| !l.is_empty())
        .collect();
    let error = AppError::usage(message).suggest(format!("{program} --help"));
    if more.is_empty() { error } else { error.detail(more.join("\n")) }
}

/// The commands among raw arguments (`plan list`), and the same as a person would type it (`agents plan list`).
fn command_words(args: &[OsString]) -> (String, String) {
    let mut command = Cli::command();
    let mut words: Vec<String> = Vec::new();
    let mut rest = args.iter().skip(1).map(|arg| arg.to_string_lossy());
    while let Some(arg) = rest.next() {
        if matches!(&*arg, "--data-dir" | "--config-path" | "--format") {
            rest.next();
        } else if !arg.starts_with('-') {
            let Some(found) = command.find_subcommand(&*arg).cloned() else { break };
            words.push(found.get_name().to_owned());
            command = found;
        }
    }
    let words = words.join(" ");
    let program = format!("agents {words}").trim_end().to_owned();
    (if words.is_empty() { "agents".to_owned() } else { words }, program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> String {
        command_words(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).0
    }

    #[test]
    fn the_command_is_found_among_options_and_mistakes() {
        assert_eq!(words("agents --format json plan lst"), "plan");
        assert_eq!(words("agents plan --data-dir plan list --bad"), "plan list");
        assert_eq!(words("agents --format=json plan show X"), "plan status");
        assert_eq!(words("agents"), "agents");
    }

    #[test]
    fn a_usage_error_keeps_the_message_and_what_would_be_right() {
        let text = "error: unrecognized subcommand 'lst'\n\n  tip: a similar subcommand exists: 'list'\n\nUsage: agents plan \
                    <COMMAND>\n\nFor more information, try '--help'.\n";
        let error = usage_error(text, "agents plan");
        assert_eq!(error.message, "unrecognized subcommand 'lst'");
        let detail = "tip: a similar subcommand exists: 'list'\nUsage: agents plan <COMMAND>";
        assert_eq!(error.detail.as_deref(), Some(detail));
        assert_eq!(error.suggestions, ["agents plan --help"]);
    }
}
