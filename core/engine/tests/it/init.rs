//! Making a data directory, and making it anew.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use agents_config::Config;
use agents_domain::ErrorKind;
use agents_engine::operations::system::{Init, Standing, initialize, standing};
use agents_store::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Place {
    dir: TempDir,
    config: Config,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let config = Config::defaults(&dir.path().join("data"));
        Self { dir, config }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn init(&self, reset: bool) -> agents_domain::Result<Value> {
        let data_dir = self.data();
        let now = ("2026-02-08".to_owned(), "124405".to_owned());
        let made = initialize(&Init { data_dir: &data_dir, config: &self.config, reset, now })?;
        Ok(serde_json::to_value(made).unwrap())
    }

    fn standing(&self) -> agents_domain::Result<Standing> {
        standing(&self.data(), &self.config)
    }

    /// Names in the parent of the data directory.
    fn beside(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

// CLI-055, CLI-054, CLI-056, SEC-021, STORE-001, STORE-014
#[test]
fn a_new_data_directory_is_made_whole_and_for_the_user_only() {
    let place = Place::new();
    assert_eq!(place.standing(), Ok(Standing::Absent));
    let made = place.init(true).unwrap();
    let data = place.data();
    assert_eq!(
        made["initialized"],
        json!({
            "data_dir": data, "config": data.join("config.toml"), "database": "initialized (schema v3)",
            "directories": ["logs", "cache", "sessions", "contexts", "backups"], "state": "created",
        })
    );
    assert_eq!(made["defaults"], json!({ "automation_profile": "supervised", "builtin_profiles": 8 }));
    assert_eq!(
        made["created"],
        json!({ "config": "config.toml", "database": "cleveragents.db", "logs": "logs/", "cache": "cache/", "backups": "backups/" })
    );
    assert_eq!(
        (&made["schema"]["version"], &made["schema"]["migrations"]),
        (&json!("v3"), &json!("up to date"))
    );
    assert!(made["schema"]["tables"].as_u64().unwrap() > 10);
    assert_eq!(made.get("environment_reset"), None);
    let mode = |name: &str| std::fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
    for folder in ["", "logs", "cache", "sessions", "contexts", "backups"] {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
    assert_eq!((mode("config.toml"), mode("cleveragents.db")), (0o600, 0o600));
    assert_eq!(place.standing(), Ok(Standing::Complete));
    assert_eq!(place.beside(), ["data"], "an empty place has nothing to keep");
}

#[test]
fn a_second_time_nothing_changes_unless_it_is_asked_for() {
    let place = Place::new();
    place.init(false).unwrap();
    let config = place.data().join("config.toml");
    std::fs::write(&config, "core.format = \"json\"\n").unwrap();
    let again = place.init(false).unwrap();
    assert_eq!(again["initialized"]["state"], "unchanged");
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "core.format = \"json\"\n");
    assert_eq!(place.beside(), ["data"]);
}

#[test]
fn what_is_missing_is_added_to_what_is_there() {
    let place = Place::new();
    drop(SqliteStore::open(&place.data(), agents_store::Options::default()).unwrap());
    std::fs::write(place.data().join("logs"), "").unwrap();
    assert_eq!(place.init(false).unwrap_err().kind, ErrorKind::Io, "a file is where a folder must be");
    std::fs::remove_file(place.data().join("logs")).unwrap();
    assert_eq!(place.standing(), Ok(Standing::Partial));
    assert_eq!(place.init(false).unwrap()["initialized"]["state"], "completed");
    assert_eq!(place.standing(), Ok(Standing::Complete));
}

// CLI-051, CLI-053, CLI-056, STORE-026, G29
#[test]
fn a_reset_keeps_a_backup_with_everything_in_it() {
    let place = Place::new();
    place.init(false).unwrap();
    std::fs::write(place.data().join("config.toml"), "core.format = \"json\"\n").unwrap();
    std::fs::write(place.data().join("logs/old.log"), "x").unwrap();
    let made = place.init(true).unwrap();
    let backup = place.dir.path().join("data.backup-2026-02-08");
    assert_eq!(made["initialized"]["state"], "reset");
    assert_eq!(
        made["environment_reset"],
        json!({
            "config": place.data().join("config.toml"), "database": place.data().join("cleveragents.db"),
            "backup": backup, "status": "ready",
        })
    );
    assert_eq!(std::fs::read_to_string(backup.join("config.toml")).unwrap(), "core.format = \"json\"\n");
    assert!(backup.join("cleveragents.db").exists() && backup.join("logs/old.log").exists());
    assert!(!place.data().join("logs/old.log").exists());
    place.init(true).unwrap();
    assert_eq!(place.beside(), ["data", "data.backup-2026-02-08", "data.backup-2026-02-08-124405"]);
}

#[test]
fn a_damaged_database_is_no_reason_not_to_start_anew() {
    let place = Place::new();
    place.init(false).unwrap();
    let garbage = vec![b'x'; 8192];
    std::fs::write(place.data().join("cleveragents.db"), &garbage).unwrap();
    let made = place.init(true).unwrap();
    let backup = PathBuf::from(made["environment_reset"]["backup"].as_str().unwrap());
    assert_eq!(std::fs::read(backup.join("cleveragents.db")).unwrap(), garbage);
}

#[test]
fn what_is_in_use_is_not_taken_away() {
    let place = Place::new();
    place.init(false).unwrap();
    let store = SqliteStore::open(&place.data(), agents_store::Options::default()).unwrap();
    let error = place.init(true).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidState);
    assert!(error.message.contains("another process uses"), "{}", error.message);
    drop(store);
    let journal = place.data().join("journals/01HXM8C2ZK4Q7C2B3F2R4VYV6J/r");
    std::fs::create_dir_all(&journal).unwrap();
    std::fs::write(journal.join("apply.json"), "{}").unwrap();
    let error = place.init(true).unwrap_err();
    assert_eq!(error.suggestions, ["agents plan apply 01HXM8C2ZK4Q7C2B3F2R4VYV6J"]);
    assert_eq!(place.beside(), ["data"]);
    std::fs::remove_file(journal.join("apply.json")).unwrap();
    assert_eq!(place.init(true).unwrap()["initialized"]["state"], "reset");
}

#[test]
fn a_folder_with_other_things_in_it_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir_all(place.data().join(".git")).unwrap();
    std::fs::write(place.data().join("main.rs"), "").unwrap();
    for reset in [true, false] {
        let error = place.init(reset).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidState);
        assert!(
            error.message.contains("not CleverAgents' own") && error.message.contains("1 more"),
            "{}",
            error.message
        );
    }
    assert_eq!(std::fs::read_dir(place.data()).unwrap().count(), 2);
}

#[test]
fn a_place_that_cannot_be_is_named_and_nothing_is_left() {
    let place = Place::new();
    std::fs::write(place.data(), "").unwrap();
    let error = place.init(true).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(
        error.message.contains("data") && error.message.contains("file, not a directory"),
        "{}",
        error.message
    );
    assert!(error.suggestions[0].starts_with("agents init --data-dir <DIR>"), "{error:?}");
    assert_eq!(std::fs::read(place.data()).unwrap(), b"");
    let below = Config::defaults(&place.data().join("below"));
    let now = (String::new(), String::new());
    let error =
        initialize(&Init { data_dir: &place.data().join("below"), config: &below, reset: false, now })
            .unwrap_err();
    assert!(error.message.contains("file, not a directory"), "{}", error.message);
}

#[test]
fn a_linked_data_directory_stays_linked() {
    let place = Place::new();
    let real = place.dir.path().join("disk");
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, place.data()).unwrap();
    place.init(false).unwrap();
    assert!(real.join("cleveragents.db").exists());
    place.init(true).unwrap();
    assert!(place.data().symlink_metadata().unwrap().is_symlink());
    assert_eq!(place.beside(), ["data", "disk", "disk.backup-2026-02-08"]);
    assert!(real.join("cleveragents.db").exists());
}

// Two at once: each makes it anew, and nothing is lost.
#[test]
fn two_resets_at_once_take_turns() {
    let place = Place::new();
    place.init(false).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| place.init(true).unwrap());
        }
    });
    let names = place.beside();
    assert_eq!(names.len(), 4, "{names:?}");
    for name in names {
        assert!(place.dir.path().join(&name).join("cleveragents.db").exists(), "{name}");
    }
}
