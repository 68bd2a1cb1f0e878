//! `agents lsp install`: brings a known server to this machine, and shows how that goes.

use std::sync::{Mutex, PoisonError};

use agents_domain::ports::installer::InstallProgress;
use agents_engine::operations::lsp::{Install, Registration};

use crate::args::LspInstallArgs;
use crate::commands::{bullets, json};
use crate::failure::Outcome;
use crate::output::{Kind, Mark, ProgressHandle, dim, id, warn};
use crate::run::Run;

/// As much of a client's line as is shown while it works.
const LINE: usize = 70;

pub fn run(run: &Run, args: LspInstallArgs) -> Outcome {
    let out = &run.out;
    let LspInstallArgs { name, update, from_path, no_register } = args;
    let engine = run.env.engine()?;
    run.when_interrupted(format!("Nothing was installed. To try again: agents lsp install {name}"));
    let shown = Shown::default();
    let hear = |progress: InstallProgress<'_>| {
        let begin = || out.progress(&format!("Install {name}"));
        shown.hear(progress, begin);
    };
    let install = Install { name: name.clone(), update, from_path, no_register };
    let done = install.run_with(&engine, &hear);
    shown.end(&name, done.is_ok());
    let done = done?;
    let server = &done.server;
    let data = json(&done)?;
    let panel = out.panel(None, "Language Server");
    panel.pick(&data, "server", "Name", Kind::Id).pick(&data, "program", "Program", Kind::Path);
    let packages: Vec<String> =
        done.packages.iter().map(|(name, version)| format!("{name} {version}")).collect();
    if !packages.is_empty() {
        panel.row("Packages", packages.join(", "));
    }
    panel.pick(&data, "says", "Version", Kind::Text).pick(&data, "start_ms", "Starts In", Kind::Millis);
    match &done.registration {
        Registration::Added { name } => panel.row("Registered", id(name)),
        Registration::Present { name, current: true, .. } => {
            panel.row("Registered", id(name).and(dim(" (before)")))
        }
        Registration::Present { name, .. } => {
            panel.row("Registered", id(name).and(warn(" (runs another program)")))
        }
        Registration::Skipped => panel.row("Registered", dim("(no)")),
    };
    drop(panel);
    if !done.notes.is_empty() {
        let panel = out.panel(None, "Good to Know");
        bullets(&panel, done.notes.iter().map(String::as_str));
    }
    if let Registration::Present { name, command, current: false } = &done.registration {
        out.warn(format!("{name} was registered before and runs `{command}`")).detail(format!(
            "To use what is installed: agents lsp remove {name}, then agents lsp install {server}"
        ));
    }
    if done.outdated {
        out.info(format!("Newer packages are known: agents lsp install --update {server}"));
    }
    out.hint("Next Steps", [format!("agents lsp check {server}"), "agents lsp list".to_owned()]);
    out.set_data(data);
    out.ok(match (done.installed_now, done.client) {
        (true, _) => format!("{server} is installed and works"),
        (false, Some(_)) => format!("{server} is installed already"),
        (false, None) => format!("{server} is on PATH and works"),
    });
    Ok(())
}

/// The progress on the screen, and the step that is being worked on. There is none before something is done.
#[derive(Default)]
pub struct Shown(Mutex<Option<(ProgressHandle, String)>>);

impl Shown {
    pub fn hear(&self, progress: InstallProgress<'_>, begin: impl FnOnce() -> ProgressHandle) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match progress {
            InstallProgress::Step(step) => {
                let (bar, last) = shown.get_or_insert_with(|| (begin(), String::new()));
                if !last.is_empty() {
                    bar.step(last, Mark::Done);
                }
                bar.total(0).step(step, Mark::Active);
                step.clone_into(last);
            }
            InstallProgress::Line(line) => {
                if let Some((bar, step)) = &*shown {
                    bar.label(line.chars().take(LINE).collect::<String>()).step(step, Mark::Active);
                }
            }
        }
    }

    pub fn end(self, server: &str, well: bool) {
        let shown = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some((bar, step)) = shown else { return };
        bar.step(&step, if well { Mark::Done } else { Mark::Error }).label(format!("Installed {server}"));
        if !well {
            bar.label(format!("{server} was not installed")).failed();
        }
        bar.close();
    }
}
