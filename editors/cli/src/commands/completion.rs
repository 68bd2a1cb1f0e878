//! Completion scripts for shells.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use agents_domain::{Error, ErrorKind};
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::args;
use crate::complete;
use crate::compose;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Caps, Options, Output};
use crate::run::Run;

/// Prints the script itself, so that it can be evaluated.
pub fn show(shell: Option<Shell>) -> u8 {
    match shell_or_own(shell) {
        Ok(shell) => {
            // A reader that went away wants no script.
            let _ = io::stdout().lock().write_all(&script(shell));
            0
        }
        Err(error) => {
            let caps = Caps::detect();
            let format = output::format::implicit(&caps);
            let out = Output::open(Options::process("show-completion", format, caps));
            Failure::from(error).report(&out)
        }
    }
}

/// Writes the script where the shell looks for it.
pub fn install(run: &Run, shell: Option<Shell>) -> Outcome {
    let shell = shell_or_own(shell)?;
    let (path, more) = place(shell)?;
    let wrong =
        |e: io::Error| Error::new(ErrorKind::Io, format!("{} cannot be written: {e}", path.display()));
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(wrong)?;
    fs::write(&path, script(shell)).map_err(wrong)?;
    run.out.panel("completion", "Shell Completion").value("shell", "Shell", shell.to_string()).value(
        "path",
        "Path",
        path.display().to_string(),
    );
    if let Some(more) = more {
        run.out.info(more);
    }
    run.out.ok("Completion installed; new shells have it");
    Ok(())
}

/// The script asks the program itself what could stand at the cursor, so that it never goes stale.
fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let Some(known) = shells.completer(&shell.to_string()) else { return script };
    let program = program();
    for name in ["agents", "cleveragents"] {
        // Writing into memory does not fail.
        let _ = known.write_registration(complete::VARIABLE, name, name, &program, &mut script);
    }
    if shell == Shell::Zsh {
        // Loaded from `fpath`, the file is the completion function; the first time it has only defined the real one.
        script.extend_from_slice(
            b"\nif [ \"$funcstack[1]\" = \"_agents\" ]; then\n    _clap_dynamic_completer_agents \"$@\"\nfi\n",
        );
    }
    script
}

/// What the script runs: the name where the shell finds this program under it, else where it is.
fn program() -> String {
    let this = std::env::current_exe().ok();
    let path = compose::env("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("agents")).find(|file| file.is_file());
    let same = found.and_then(|file| file.canonicalize().ok()).is_some_and(|file| Some(file) == this);
    match this {
        Some(this) if !same => this.display().to_string(),
        _ => "agents".to_owned(),
    }
}

fn shell_or_own(shell: Option<Shell>) -> Result<Shell, Error> {
    let own = || compose::env("SHELL").and_then(Shell::from_shell_path);
    shell.or_else(own).ok_or_else(|| {
        Error::new(ErrorKind::Usage, "which shell? $SHELL names none that is known")
            .detail(format!("Shells: {}", args::names::<Shell>()))
            .suggest("agents --show-completion bash")
    })
}

/// Where the script goes, and what a person may have to do besides.
fn place(shell: Shell) -> Result<(PathBuf, Option<&'static str>), Error> {
    let home = compose::env("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = home
        .ok_or_else(|| Error::new(ErrorKind::Configuration, "there is no home directory: HOME is not set"))?;
    let base = |variable: &str, default: &str| {
        let set = compose::env(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        set.unwrap_or_else(|| home.join(default))
    };
    match shell {
        Shell::Bash => {
            Ok((base("XDG_DATA_HOME", ".local/share").join("bash-completion/completions/agents"), None))
        }
        Shell::Fish => Ok((base("XDG_CONFIG_HOME", ".config").join("fish/completions/agents.fish"), None)),
        Shell::Zsh => Ok((
            home.join(".zfunc/_agents"),
            Some("Needs `fpath+=~/.zfunc` before `compinit` in ~/.zshrc, if it is not there yet"),
        )),
        other => {
            Err(Error::new(ErrorKind::Usage, format!("where {other} looks for completions is not known"))
                .suggest(format!("agents --show-completion {other}")))
        }
    }
}
