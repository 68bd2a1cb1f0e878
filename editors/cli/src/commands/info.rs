//! `agents info`: where things are kept and what state they are in.

use std::fs;
use std::path::{Path, PathBuf};

use agents_config::{Config, KEYS};
use agents_domain::plan::State;
use agents_engine::operations::plan::List;

use crate::failure::Outcome;
use crate::output::{Kind, human, own};
use crate::run::Run;

pub fn run(run: &Run) -> Outcome {
    let (out, env) = (&run.out, &run.env);
    let config = &env.config;
    let database = env.data_dir.join("cleveragents.db");
    let plans = env.engine()?.call(List::default())?;
    let active = plans.plans.iter().filter(|p| !matches!(p.state, State::Applied | State::Cancelled)).count();
    let server = if config.get("server.url", None).value.is_null() { "disabled" } else { "configured" };
    let config_file = env.config_file();
    let shown = match Path::new(&config_file).exists() {
        true => config_file.as_str().into(),
        false => own(format!("{config_file} (not there: defaults apply)")),
    };
    out.panel("environment", "Environment")
        .value("data_dir", "Data Dir", env.data_dir.display().to_string())
        .field("config", "Config", config_file.as_str(), shown)
        .value("database", "Database", format!("sqlite://{}", database.display()))
        .field("server_mode", "Server Mode", server, human::show(Kind::State, &server.into()))
        .value("platform", "Platform", platform());
    let providers = providers(config);
    out.panel("runtime", "Runtime")
        .value("automation", "Automation", config.text("core.automation-profile", None))
        .field("providers", "Providers", providers, format!("{providers} configured"))
        .value("sessions", "Sessions", "0 active")
        .field("active_plans", "Active Plans", active, human::count(active as u64));
    let size = |key: &str| size_of(&PathBuf::from(config.text(key, None)));
    let (cache, logs) = (size("core.cache.dir"), size("core.log.dir"));
    let backups = fs::read_dir(config.text("core.backup.dir", None)).map_or(0, Iterator::count);
    let database = ["cleveragents.db", "cleveragents.db-wal"].map(|name| size_of(&env.data_dir.join(name)));
    let database = database.iter().sum::<u64>();
    out.panel("storage", "Storage")
        .field("cache_mb", "Cache", megabytes(cache), human::bytes(cache))
        .field("logs_mb", "Logs", megabytes(logs), human::bytes(logs))
        .value("backups", "Backups", backups)
        .field("db_size_mb", "DB Size", megabytes(database), human::bytes(database));
    out.panel("indexing", "Indexing")
        .field("text_index", "Text Index", "disabled", human::show(Kind::State, &"disabled".into()))
        .field("vector_index", "Vector Index", "disabled", human::show(Kind::State, &"disabled".into()))
        .field("graph_store", "Graph Store", "disabled", human::show(Kind::State, &"disabled".into()))
        .value("indexed_files", "Indexed Files", 0);
    out.ok("Environment details ready");
    Ok(())
}

/// `Linux 6.8.0 (x86_64)`.
fn platform() -> String {
    match nix::sys::utsname::uname() {
        Ok(name) => format!(
            "{} {} ({})",
            name.sysname().to_string_lossy(),
            name.release().to_string_lossy(),
            name.machine().to_string_lossy()
        ),
        Err(_) => format!("{} ({})", std::env::consts::OS, std::env::consts::ARCH),
    }
}

/// Model providers that have a key.
fn providers(config: &Config) -> usize {
    let keys = KEYS.iter().filter(|k| k.name.starts_with("provider.") && k.name.ends_with(".api-key"));
    keys.filter(|k| !config.get(k.name, None).value.is_null()).count()
}

fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1024 * 1024)
}

/// Bytes of a file, or of all files below a directory; links are not followed.
fn size_of(path: &Path) -> u64 {
    let mut open = vec![path.to_owned()];
    let mut bytes = 0;
    while let Some(path) = open.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else {
            bytes += metadata.len();
        }
    }
    bytes
}
