//! `agents init`: the data directory with everything in it, or made anew after a backup.

use std::path::Path;

use agents_engine::operations::system::{Init, InitOutput, Standing, initialize, share_notes, standing};

use crate::args::InitArgs;
use crate::commands::json;
use crate::compose::{self, Mistake};
use crate::failure::Outcome;
use crate::output::{Kind, Output, dim, human};
use crate::run::Run;

/// A configuration file that is being made anew need not be readable.
pub fn run(run: &Run, mistake: Option<Mistake>, args: InitArgs) -> Outcome {
    if let Some(Mistake { error, in_file: false }) = mistake {
        return Err(error.into());
    }
    let (out, env) = (&run.out, &run.env);
    let now = jiff::Timestamp::now();
    let init = Init {
        data_dir: &env.data_dir,
        config: &env.config,
        reset: false,
        now: (now.strftime("%Y-%m-%d").to_string(), now.strftime("%H%M%S").to_string()),
    };
    let there = standing(&env.data_dir, &env.config)?;
    if args.git_notes {
        return notes(run, &init, there);
    }
    let reset = match (there, args.yes) {
        (Standing::Absent, _) | (Standing::Partial, false) => false,
        (_, true) => true,
        (Standing::Complete, false) => {
            out.info("CleverAgents is initialized already");
            let warning = format!("Warning: This will remove all data in {}", env.data_dir.display());
            match out.ask(Some(&warning), "Continue?") {
                Some(true) => true,
                Some(false) => {
                    out.set_data(json(&initialize(&init)?)?);
                    out.decline(true);
                    return Ok(());
                }
                // A script that makes sure there is a data directory has nothing to be asked about.
                None => {
                    show(out, &initialize(&init)?, "(unchanged)")?;
                    out.ok("Nothing changed").detail("agents init --yes starts anew and keeps a backup");
                    return Ok(());
                }
            }
        }
    };
    let made = initialize(&Init { reset, ..init })?;
    let (done, words) = match (made.initialized.state.as_str(), args.yes) {
        ("completed", _) => ("(kept, what was missing is added)", "Environment completed"),
        ("reset", true) => ("(made anew)", "Initialized (non-interactive)"),
        (_, true) => ("(created)", "Initialized (non-interactive)"),
        (state, false) => {
            (if state == "reset" { "(made anew)" } else { "(created)" }, "Environment initialized")
        }
    };
    show(out, &made, done)?;
    if made.initialized.state == "created" {
        out.hint(
            "Next Steps",
            ["agents diagnostics", "agents resource add git-checkout local/repo --path <DIR>"],
        );
    }
    out.ok(words);
    Ok(())
}

/// Sets up the notes of the checkout in this directory; a data directory is made only where there is none.
fn notes(run: &Run, init: &Init<'_>, there: Standing) -> Outcome {
    let out = &run.out;
    let shared = share_notes(Path::new(&compose::absolute(".")?))?;
    if there == Standing::Absent {
        initialize(init)?;
    }
    let data = json(&shared)?;
    let panel = out.panel(None, "Git Notes");
    panel.pick(&data, "repository", "Repository", Kind::Path).row("Notes", shared.notes_ref.as_str());
    panel.row("Remote", shared.remote.as_deref().unwrap_or("none"));
    for setting in &shared.settings {
        panel.row("Added", setting.as_str());
    }
    drop(panel);
    out.set_data(data);
    if let Some(remote) = shared.remote.as_ref().filter(|_| !shared.settings.is_empty()) {
        out.hint("Next Steps", [format!("git fetch {remote}"), "agents plan blame <FILE>".to_owned()]);
    }
    out.ok(if shared.settings.is_empty() { "Git notes were set up already" } else { "Git notes are set up" });
    Ok(())
}

fn show(out: &Output, made: &InitOutput, done: &str) -> Outcome {
    let path = |text: &str| human::show(Kind::Path, &text.into());
    let initialized = &made.initialized;
    match &made.environment_reset {
        Some(reset) => {
            out.panel(None, "Environment Reset")
                .row("Config", path(&reset.config))
                .row("Database", path(&reset.database))
                .row("Backup", path(&reset.backup))
                .row("Status", human::show(Kind::State, &reset.status.as_str().into()));
        }
        None => {
            out.panel(None, "Initialized")
                .row("Data Dir", path(&initialized.data_dir).and(dim(format!(" {done}"))))
                .row("Config", path(&initialized.config))
                .row("Database", initialized.database.as_str())
                .row("Directories", initialized.directories.join(", "));
        }
    }
    if initialized.state != "unchanged" {
        let defaults = &made.defaults;
        out.panel(None, "Defaults")
            .row("Automation Profile", defaults.automation_profile.as_str())
            .row("Built-in Profiles", format!("{} loaded", defaults.builtin_profiles));
        let created = &made.created;
        out.panel(None, "Created")
            .row("Config", created.config.as_str())
            .row("Database", created.database.as_str())
            .row("Logs", created.logs.as_str())
            .row("Cache", created.cache.as_str())
            .row("Backups", created.backups.as_str());
        let schema = &made.schema;
        out.panel(None, "Schema")
            .row("Version", schema.version.as_str())
            .row("Tables", format!("{} created", schema.tables))
            .row("Migrations", schema.migrations.as_str());
    }
    out.set_data(json(made)?);
    Ok(())
}
