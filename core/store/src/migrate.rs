//! Brings a database to this program's schema: in order, forward only, each step whole or not at all.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agents_domain::ports::store::{StoreError, StoreResult};
use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Fault, damaged};
use crate::leases::LockFile;

/// Marks a database as ours (`PRAGMA application_id`): the letters `ClAg`.
const APPLICATION_ID: i32 = 0x436c_4167;

/// The steps; applying number n makes `user_version` n + 1. A released step is never edited.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001_initial.sql"),
    include_str!("schema/0002_profiles.sql"),
    include_str!("schema/0003_invariants.sql"),
    include_str!("schema/0004_validations.sql"),
    include_str!("schema/0005_child_plans.sql"),
    include_str!("schema/0006_corrections.sql"),
    include_str!("schema/0007_error_patterns.sql"),
    include_str!("schema/0008_actors.sql"),
    include_str!("schema/0009_model_calls.sql"),
    include_str!("schema/0010_side_effects.sql"),
    include_str!("schema/0011_skills.sql"),
];

/// The schema version of this program.
pub(crate) fn version() -> i64 {
    version_after(MIGRATIONS.len())
}

fn version_after(steps: usize) -> i64 {
    i64::try_from(steps).unwrap_or(i64::MAX)
}

/// What a database needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has this program's schema.
    Ready,
    /// It is new, older, or not in WAL mode.
    Behind {
        /// Its schema version; 0 for a new one.
        version: usize,
    },
}

/// Looks at a database without changing it; refuses one that is newer or not ours.
pub(crate) fn standing(conn: &Connection, path: &Path, migrations: &[&str]) -> StoreResult<Standing> {
    let ask = |pragma: &str| {
        conn.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0))
            .map_err(|e| Fault::from(e).told(path))
    };
    let found = ask("user_version")?;
    let known = version_after(migrations.len());
    let owner = ask("application_id")?;
    if owner != i64::from(APPLICATION_ID) {
        let tables: i64 = conn
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(|e| Fault::from(e).told(path))?;
        if (owner, found, tables) != (0, 0, 0) {
            return Err(damaged(path, "it was made by another program"));
        }
    }
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    let version = usize::try_from(found)
        .map_err(|_| damaged(path, format!("it says that its schema version is {found}")))?;
    let mode: String = conn
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(|e| Fault::from(e).told(path))?;
    Ok(if found == known && mode == "wal" { Standing::Ready } else { Standing::Behind { version } })
}

/// Applies what is missing. One process at a time: the others wait for `lock` and find the work done.
pub(crate) fn migrate(
    conn: &mut Connection,
    path: &Path,
    lock: &Path,
    wait: Duration,
    migrations: &[&str],
) -> StoreResult<()> {
    let _lock = wait_for(lock, wait)?;
    let Standing::Behind { version } = standing(conn, path, migrations)? else {
        return Ok(());
    };
    if version > 0 && version < migrations.len() {
        back_up(conn, path)?;
    }
    let told = |fault: Fault| fault.told(path);
    let mode: String = conn
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(|e| told(e.into()))?;
    if mode != "wal" {
        return Err(StoreError::Io {
            path: path.display().to_string(),
            problem: format!(
                "the file system does not allow write-ahead logging (journal mode stays `{mode}`); use a --data-dir on a local disk"
            ),
        });
    }
    for (step, sql) in migrations.iter().enumerate().skip(version) {
        apply(conn, step, sql).map_err(told)?;
    }
    Ok(())
}

/// One step and its version, in one transaction.
fn apply(conn: &mut Connection, step: usize, sql: &str) -> Result<(), Fault> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute_batch(sql)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", version_after(step + 1))?;
    tx.commit()?;
    Ok(())
}

/// Copies the database to `backups/<time>/` beside it.
fn back_up(conn: &Connection, path: &Path) -> StoreResult<()> {
    let told = |e: rusqlite::Error| Fault::from(e).told(path);
    let time: String =
        conn.query_row("SELECT strftime('%Y-%m-%dT%H-%M-%S', 'now')", [], |row| row.get(0)).map_err(told)?;
    let beside = path.parent().unwrap_or(Path::new(".")).join("backups");
    let folder = free_name(&beside, &time);
    crate::blobs::make_folder(&folder)?;
    copy(conn, &folder.join(path.file_name().unwrap_or(path.as_os_str()))).map_err(|fault| fault.told(path))
}

/// Copies the database into a new file for the user only.
pub(crate) fn copy(conn: &Connection, to: &Path) -> Result<(), Fault> {
    crate::sqlite::create_empty(to)?;
    conn.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
    Ok(())
}

fn free_name(folder: &Path, name: &str) -> PathBuf {
    let first = folder.join(name);
    std::iter::once(first)
        .chain((2u32..).map(|n| folder.join(format!("{name}-{n}"))))
        .find(|path| !path.exists())
        .unwrap_or_else(|| folder.join(name))
}

fn wait_for(lock: &Path, wait: Duration) -> StoreResult<LockFile> {
    let deadline = Instant::now() + wait;
    loop {
        if let Some(lock) = LockFile::try_take(lock)? {
            return Ok(lock);
        }
        if Instant::now() >= deadline {
            return Err(StoreError::Busy);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agents_domain::ports::store::{PlanFilter, Store, StoreExt};

    use crate::{Options, SqliteStore, testing};

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn database(&self) -> PathBuf {
            self.0.path().join("cleveragents.db")
        }

        fn connect(&self) -> Connection {
            Connection::open(self.database()).unwrap()
        }

        fn migrate(&self, migrations: &[&str]) -> StoreResult<()> {
            let lock = self.0.path().join("lock");
            migrate(&mut self.connect(), &self.database(), &lock, Duration::ZERO, migrations)
        }

        fn backups(&self) -> Vec<PathBuf> {
            let Ok(entries) = std::fs::read_dir(self.0.path().join("backups")) else { return Vec::new() };
            entries.map(|entry| entry.unwrap().path().join("cleveragents.db")).collect()
        }
    }

    fn schema(conn: &Connection) -> Vec<(String, Option<String>)> {
        conn.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap()
    }

    fn user_version(conn: &Connection) -> i64 {
        conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    // STORE-022
    #[test]
    fn every_version_leads_to_the_same_schema() {
        let new = Folder::new();
        new.migrate(MIGRATIONS).unwrap();
        for version in 0..=MIGRATIONS.len() {
            let old = Folder::new();
            old.migrate(&MIGRATIONS[..version]).unwrap();
            assert_eq!(user_version(&old.connect()), version_after(version));
            SqliteStore::open(old.0.path(), Options::default()).unwrap();
            assert_eq!(schema(&old.connect()), schema(&new.connect()));
        }
    }

    const STEPS: &[&str] = &[
        "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1);",
        "ALTER TABLE a ADD COLUMN y INTEGER;",
        "UPDATE a SET y = x + 1;",
    ];

    // STORE-022
    #[test]
    fn missing_steps_are_applied_in_order_once_and_after_a_backup() {
        let folder = Folder::new();
        folder.migrate(&STEPS[..1]).unwrap();
        assert!(folder.backups().is_empty(), "there was nothing to keep");
        folder.migrate(STEPS).unwrap();
        folder.migrate(STEPS).unwrap();
        let conn = folder.connect();
        let row: (i64, i64) =
            conn.query_row("SELECT x, y FROM a", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!((row, user_version(&conn)), ((1, 2), 3));
        let [backup] = folder.backups().try_into().unwrap();
        let kept = Connection::open(backup).unwrap();
        assert_eq!(user_version(&kept), 1);
        assert_eq!(kept.query_row("SELECT x FROM a", [], |row| row.get::<_, i64>(0)), Ok(1));
    }

    #[test]
    fn a_failing_step_leaves_the_version_before_it() {
        let folder = Folder::new();
        let broken = ["CREATE TABLE a (x);", "CREATE TABLE b (x); CREATE TABLE a (x);"];
        assert!(matches!(folder.migrate(&broken), Err(StoreError::Other(_))));
        let conn = folder.connect();
        assert_eq!(user_version(&conn), 1);
        assert_eq!(schema(&conn).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn a_database_that_is_being_migrated_for_too_long_is_busy() {
        let folder = Folder::new();
        let _held = LockFile::try_take(&folder.0.path().join("lock")).unwrap().unwrap();
        assert_eq!(folder.migrate(STEPS), Err(StoreError::Busy));
        assert_eq!(user_version(&folder.connect()), 0);
    }

    #[test]
    fn a_damaged_database_of_an_older_version_is_not_migrated() {
        let folder = Folder::new();
        folder.migrate(&STEPS[..1]).unwrap();
        let mut bytes = std::fs::read(folder.database()).unwrap();
        let second_page = 4096..4096 + 200;
        bytes[second_page].fill(0xa5);
        std::fs::write(folder.database(), &bytes).unwrap();
        assert!(matches!(folder.migrate(STEPS), Err(StoreError::Damaged { .. })));
        assert_eq!(std::fs::read(folder.database()).unwrap(), bytes);
    }

    // A database restored from a dump or a `VACUUM INTO` copy is not in WAL mode.
    #[test]
    fn a_restored_copy_is_brought_back_to_wal_mode() {
        let folder = Folder::new();
        testing::fill(&SqliteStore::open(folder.0.path(), Options::default()).unwrap(), 2, 2).unwrap();
        folder.connect().pragma_update(None, "journal_mode", "delete").unwrap();
        let store = SqliteStore::open(folder.0.path(), Options::default()).unwrap();
        assert_eq!(store.view(|r| r.plan_rows(&PlanFilter::default())).unwrap().len(), 2);
        let mode: String =
            folder.connect().pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        assert!(store.watch().is_ok());
    }
}
