//! Making the data directory, and making it anew. Never over an engine: what is made anew is what an engine stands on.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_config::{Config, KEYS, Key, KeyDefault, Kind};
use agents_domain::profile::built_in_profiles;
use agents_domain::{Error, ErrorKind, Result};
use agents_store::{Options, SqliteStore};
use schemars::JsonSchema;
use serde::Serialize;

use crate::operations::config::file::{self, Folder, refused};

/// Version of the database and the JSON documents that people and scripts can rely on.
pub const SCHEMA: &str = "v3";

/// Folders of a new data directory; the others are made by what needs them.
const FOLDERS: [&str; 5] = ["logs", "cache", "sessions", "contexts", "backups"];

/// Everything of ours that a data directory may hold. A folder with anything else in it is somebody's, and is not made
/// anew.
const OURS: [&str; 15] = [
    "artifacts",
    "backups",
    "blobs",
    "cache",
    "checkpoints",
    "contexts",
    "index",
    "journals",
    "locks",
    "logs",
    "quickstart",
    "sandboxes",
    "servers",
    "sessions",
    "templates",
];

/// What is to be made.
#[derive(Debug, Clone)]
pub struct Init<'a> {
    /// Where everything that lasts is kept; absolute.
    pub data_dir: &'a Path,
    /// What flags and environment say; the file is what is being made.
    pub config: &'a Config,
    /// Start anew where something is there already; a backup of it is kept.
    pub reset: bool,
    /// Today in UTC, `YYYY-MM-DD`, and the time, `HHMMSS`, for the name of the backup.
    pub now: (String, String),
}

/// How far a data directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is not there, or empty.
    Absent,
    /// There is data, but not all that [`initialize`] makes.
    Partial,
    /// Nothing is missing.
    Complete,
}

/// What was made.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct InitOutput {
    pub initialized: Initialized,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_reset: Option<Reset>,
    pub defaults: Defaults,
    pub created: Created,
    pub schema: SchemaFacts,
}

/// Where it is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Initialized {
    pub data_dir: String,
    pub config: String,
    pub database: String,
    pub directories: Vec<String>,
    /// `created`, `completed`, `reset` or `unchanged`.
    pub state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
}

/// What was there before.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Reset {
    pub config: String,
    pub database: String,
    pub backup: String,
    pub status: String,
}

/// What holds until somebody configures something else.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Defaults {
    pub automation_profile: String,
    pub builtin_profiles: usize,
}

/// The parts, by name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Created {
    pub config: String,
    pub database: String,
    pub logs: String,
    pub cache: String,
    pub backups: String,
}

/// The database's schema.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct SchemaFacts {
    pub version: String,
    pub tables: u32,
    pub migrations: String,
}

/// Looks how far a data directory is; changes nothing.
///
/// # Errors
/// When it cannot be read, is no directory, or is somebody else's.
pub fn standing(data_dir: &Path, config: &Config) -> Result<Standing> {
    let names = match fs::read_dir(data_dir) {
        Ok(entries) => entries
            .map(|entry| Ok(entry?.file_name()))
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|e| way_out(refused(data_dir, "read", &e), data_dir))?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(way_out(refused(data_dir, "read", &e), data_dir)),
    };
    let config_file = file::path_of(config);
    let foreign: Vec<String> = names
        .iter()
        .filter(|name| !is_ours(name, data_dir, &config_file))
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if let Some(first) = foreign.first() {
        let more = if foreign.len() > 1 { format!(" and {} more", foreign.len() - 1) } else { String::new() };
        let message = format!("{} holds what is not CleverAgents' own: `{first}`{more}", data_dir.display());
        return Err(Error::invalid_state(message)
            .suggest("name a folder that is new or empty: --data-dir <PATH>")
            .suggest("or move what is not ours out of it"));
    }
    let whole = config_file.exists()
        && agents_store::database_path(data_dir).exists()
        && FOLDERS.iter().all(|name| data_dir.join(name).is_dir());
    Ok(match (names.is_empty(), whole) {
        (true, _) => Standing::Absent,
        (false, true) => Standing::Complete,
        (false, false) => Standing::Partial,
    })
}

fn is_ours(name: &OsStr, data_dir: &Path, config_file: &Path) -> bool {
    let text = name.to_string_lossy();
    OURS.contains(&&*text)
        || text.starts_with("cleveragents.db")
        || text == "config.toml"
        || text == ".config.toml.new"
        || data_dir.join(name) == config_file
}

/// Makes what is missing; with `reset`, moves what is there aside first and makes everything anew.
///
/// # Errors
/// When it cannot be made; then nothing has changed. A reset is refused while another process uses the database or an
/// apply that was cut off waits to be finished.
pub fn initialize(init: &Init<'_>) -> Result<InitOutput> {
    attempt(init).map_err(|error| way_out(error, init.data_dir))
}

/// What to do where the data directory cannot be used.
fn way_out(error: Error, data_dir: &Path) -> Error {
    match (error.kind, error.suggestions.is_empty()) {
        (ErrorKind::Io, true) => error
            .suggest("agents init --data-dir <DIR>  # a folder that you may write to")
            .suggest(format!("ls -ld {}", data_dir.parent().unwrap_or(data_dir).display())),
        _ => error,
    }
}

fn attempt(init: &Init<'_>) -> Result<InitOutput> {
    // A link to a folder elsewhere stays a link.
    let data_dir = init.data_dir.canonicalize().unwrap_or_else(|_| init.data_dir.to_owned());
    let parent = data_dir.parent().ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{} cannot be the data directory", data_dir.display()))
    })?;
    // Two of these at once take turns.
    let _alone = Folder::hold(parent)?;
    let standing = standing(&data_dir, init.config)?;
    if standing == Standing::Complete && !init.reset {
        return facts(&data_dir, init, "unchanged", None);
    }
    if standing == Standing::Absent || !init.reset {
        let is_new = !data_dir.exists();
        if let Err(error) = make(&data_dir, init.config) {
            if is_new {
                // Nothing that was there before is in it.
                let _ = fs::remove_dir_all(&data_dir);
            }
            return Err(error);
        }
        let state = if standing == Standing::Absent { "created" } else { "completed" };
        return facts(&data_dir, init, state, None);
    }
    check_idle(&data_dir)?;
    let backup = free_name(&data_dir, &init.now);
    fs::rename(&data_dir, &backup).map_err(|e| {
        let why = refused(&data_dir, "moved aside", &e);
        why.suggest("empty it yourself, then `agents init`").suggest("--data-dir <PATH>")
    })?;
    if let Err(error) = make(&data_dir, init.config) {
        let _ = fs::remove_dir_all(&data_dir);
        return Err(match fs::rename(&backup, &data_dir) {
            Ok(()) => error,
            Err(e) => error.detail(format!("what was there is now {}: {e}", backup.display())),
        });
    }
    facts(&data_dir, init, "reset", Some(&backup))
}

/// Nobody may lose what it stands on.
fn check_idle(data_dir: &Path) -> Result<()> {
    let sound = match agents_store::in_use(data_dir) {
        Ok(false) => {
            agents_store::examine(data_dir, Options { busy_timeout: Duration::ZERO }, Duration::ZERO).is_ok()
        }
        Ok(true) => {
            return Err(Error::invalid_state(format!(
                "another process uses the data in {}: a plan at work, another command, or an editor's language server",
                data_dir.display()
            ))
            .suggest("agents plan list")
            .suggest("close the editors that run `agents lsp serve`, then try again"));
        }
        // What cannot be opened cannot be at work either.
        Err(_) => false,
    };
    let journals = fs::read_dir(data_dir.join("journals")).into_iter().flatten().flatten();
    let cut_off = journals.map(|entry| entry.path()).find(|plan| {
        let resources = fs::read_dir(plan).into_iter().flatten().flatten();
        resources.map(|entry| entry.path()).any(|dir| dir.join("apply.json").is_file())
    });
    match cut_off.as_deref().and_then(Path::file_name) {
        Some(plan) if sound => {
            let plan = plan.to_string_lossy();
            Err(Error::invalid_state(format!(
                "the apply of plan {plan} was cut off, and what it began in your files is finished or undone from here only"
            ))
            .suggest(format!("agents plan apply {plan}")))
        }
        _ => Ok(()),
    }
}

/// `<data-dir>.backup-<date>`, with the time where that is taken.
fn free_name(data_dir: &Path, (date, time): &(String, String)) -> PathBuf {
    let beside = |more: &str| {
        let mut name = data_dir.file_name().unwrap_or_default().to_owned();
        name.push(format!(".backup-{date}{more}"));
        data_dir.with_file_name(name)
    };
    let with_time = (0u32..).map(|n| match n {
        0 => beside(&format!("-{time}")),
        n => beside(&format!("-{time}-{n}")),
    });
    std::iter::once(beside(""))
        .chain(with_time)
        .find(|path| path.symlink_metadata().is_err())
        .unwrap_or_else(|| beside(""))
}

fn make(data_dir: &Path, config: &Config) -> Result<()> {
    let folder = |path: &Path| {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| refused(path, "made", &e))
    };
    folder(data_dir)?;
    for name in FOLDERS {
        folder(&data_dir.join(name))?;
    }
    drop(SqliteStore::open(data_dir, Options::default())?);
    let path = file::path_of(config);
    // One that a person keeps elsewhere is theirs.
    if let (false, Some(parent), Some(name)) = (path.exists(), path.parent(), path.file_name()) {
        Folder::hold(parent)?.replace(Path::new(name), &template())?;
    }
    Ok(())
}

fn facts(data_dir: &Path, init: &Init<'_>, state: &str, backup: Option<&Path>) -> Result<InitOutput> {
    let found = agents_store::examine(data_dir, Options::default(), Duration::ZERO)?;
    let config = file::path_of(init.config).display().to_string();
    let backup = backup.map(|path| path.display().to_string());
    Ok(InitOutput {
        initialized: Initialized {
            data_dir: data_dir.display().to_string(),
            config: config.clone(),
            database: format!("initialized (schema {SCHEMA})"),
            directories: FOLDERS.map(str::to_owned).to_vec(),
            state: state.to_owned(),
            backup: backup.clone(),
        },
        environment_reset: backup.map(|backup| Reset {
            config,
            database: agents_store::database_path(data_dir).display().to_string(),
            backup,
            status: "ready".to_owned(),
        }),
        defaults: Defaults {
            automation_profile: init.config.text("core.automation-profile", None),
            builtin_profiles: built_in_profiles().len(),
        },
        created: Created {
            config: file::path_of(init.config).file_name().unwrap_or_default().to_string_lossy().into_owned(),
            database: "cleveragents.db".to_owned(),
            logs: "logs/".to_owned(),
            cache: "cache/".to_owned(),
            backups: "backups/".to_owned(),
        },
        schema: SchemaFacts {
            version: SCHEMA.to_owned(),
            tables: found.tables,
            migrations: "up to date".to_owned(),
        },
    })
}

/// A configuration file in which nothing is set and everything that has an effect can be.
fn template() -> String {
    let mut text = String::from(
        "# The configuration of CleverAgents. Every line that begins with `#` shows a default; remove the `#` to change it,\n\
         # or say it by command: agents config set core.format table\n\
         # All keys with what they are set to and why: agents config list, agents config get <KEY>\n\
         # Flags and environment variables are stronger than this file.\n",
    );
    let mut table = "";
    // A table once begun cannot be taken up again, so the keys of each stand together.
    let mut keys: Vec<(&str, &str, &Key)> = KEYS
        .iter()
        .filter(|key| key.in_effect && key.name != "core.config-path" && key.kind != Kind::Table)
        .filter_map(|key| key.name.rsplit_once('.').map(|(table, name)| (table, name, key)))
        .collect();
    keys.sort_by_key(|(table, _, _)| *table);
    for (of, name, key) in keys {
        if of != table {
            table = of;
            text += &format!("\n[{table}]\n");
        }
        let env = key.env.map(|env| format!(" [{env}]")).unwrap_or_default();
        let default = match (key.default, key.kind) {
            // Nothing is no number that could stand there.
            (KeyDefault::Unset, Kind::Amount | Kind::Integer(_)) => format!("{name}: no limit unless set"),
            _ => format!("{name} = {}", key.default_toml()),
        };
        text += &format!("# {}.{env}\n# {default}\n", key.meaning);
    }
    for key in KEYS.iter().filter(|key| key.in_effect && key.kind == Kind::Table) {
        let table = key.name.trim_end_matches('*');
        text += &format!("\n# {}.\n# [{table}<NAME>]\n", key.meaning);
    }
    text + "\n# What holds for one project only:\n# [project.\"local/app\"]\n# \"core.automation-profile\" = \"review\"\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use agents_config::{ConfigFile, Parts};

    fn load(text: &str) -> Config {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let file =
            Some(ConfigFile { path: "/home/ada/.cleveragents/config.toml".into(), text: text.to_owned() });
        Config::load(Parts { flags: Vec::new(), env: &env, file }).unwrap()
    }

    #[test]
    fn the_new_configuration_file_sets_nothing_and_its_lines_set_the_defaults() {
        let unset = load("");
        let made = load(&template());
        assert!(made.warnings().is_empty(), "{:?}", made.warnings());
        let all = KEYS.iter().all(|key| made.get(key.name, None).value == unset.get(key.name, None).value);
        assert!(all);
        let is_setting = |line: &&str| {
            line.starts_with("# ") && line.contains(" = ") && !line.contains("automation-profile\" =")
        };
        let on: String = template()
            .lines()
            .map(|line| if is_setting(&line) { format!("{}\n", &line[2..]) } else { format!("{line}\n") })
            .collect();
        let on = load(&on);
        assert!(on.warnings().is_empty(), "{:?}", on.warnings());
        for key in KEYS.iter().filter(|key| key.in_effect) {
            assert_eq!(on.get(key.name, None).value, unset.get(key.name, None).value, "{}", key.name);
        }
    }

    #[test]
    fn every_key_can_be_set_in_the_new_configuration_file() {
        let mut text = template();
        let values = [
            "5",
            "true",
            "table",
            "INFO",
            "manual",
            "none",
            "local/x",
            "/x",
            "https://x.org",
            "0.5",
            "x",
            "auto",
            "on_error",
            "terminate",
        ];
        let one = |key: &&Key| key.in_effect && key.name != "core.config-path" && key.kind != Kind::Table;
        for key in KEYS.iter().filter(one) {
            let set = values.iter().find_map(|value| Config::set_text(&text, key.name, value, None).ok());
            text = set.unwrap_or_else(|| panic!("{} was not set", key.name));
            load(&text);
        }
        let set =
            Config::set_text(&template(), "core.automation-profile", "review", Some("local/app")).unwrap();
        assert_eq!(load(&set).text("core.automation-profile", Some("local/app")), "review");
    }

    // CLI-053
    #[test]
    fn a_backup_never_takes_a_name_that_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let now = ("2026-02-08".to_owned(), "124405".to_owned());
        let names: Vec<String> = (0..4)
            .map(|_| {
                let path = free_name(&data, &now);
                fs::create_dir(&path).unwrap();
                path.file_name().unwrap().to_string_lossy().into_owned()
            })
            .collect();
        let beside = "data.backup-2026-02-08";
        let expected = ["", "-124405", "-124405-1", "-124405-2"].map(|more| format!("{beside}{more}"));
        assert_eq!(names, expected);
    }
}
