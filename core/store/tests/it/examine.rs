//! Looking at a database, and at what killed workers left.

use std::fs;
use std::time::Duration;

use agents_domain::ports::store::{Store, StoreError, StoreExt};
use agents_store::{Options, abandoned_locks, database_path, examine, in_use, remove_lock, testing};

use crate::{folder, open, raw};

const LONG: Duration = Duration::from_secs(60);
const AT_ONCE: Options = Options { busy_timeout: Duration::ZERO };

#[test]
fn a_sound_database_is_told_with_its_facts() {
    let folder = folder();
    testing::fill(&open(folder.path()), 3, 3).unwrap();
    let found = examine(folder.path(), Options::default(), LONG).unwrap();
    assert_eq!(found.version, found.known_version);
    assert!(found.tables > 10 && found.bytes > 10_000, "{found:?}");
    assert!(found.problems.is_empty() && found.whole, "{found:?}");
}

#[test]
fn a_check_ends_when_its_time_is_up() {
    let folder = folder();
    testing::fill(&open(folder.path()), 200, 50).unwrap();
    let found = examine(folder.path(), Options::default(), Duration::ZERO).unwrap();
    // Whether the little there is was looked through before the interruption is left to chance.
    assert!(found.problems.is_empty(), "{found:?}");
    let whole = examine(folder.path(), Options::default(), LONG).unwrap();
    assert!(whole.whole, "{whole:?}");
}

#[test]
fn what_keeps_a_database_from_being_used_is_told() {
    let folder = folder();
    assert!(matches!(examine(folder.path(), AT_ONCE, LONG), Err(StoreError::Io { .. })), "it is missing");
    drop(open(folder.path()));
    let writer = raw(folder.path());
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(examine(folder.path(), AT_ONCE, LONG), Err(StoreError::Busy));
    writer.execute_batch("ROLLBACK").unwrap();
    assert!(examine(folder.path(), AT_ONCE, LONG).is_ok());
    raw(folder.path()).pragma_update(None, "user_version", 900).unwrap();
    assert!(matches!(examine(folder.path(), AT_ONCE, LONG), Err(StoreError::Newer { .. })));
    fs::write(database_path(folder.path()), "dear diary\n".repeat(400)).unwrap();
    assert!(matches!(examine(folder.path(), AT_ONCE, LONG), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_database_that_somebody_has_open_is_in_use() {
    let folder = folder();
    assert_eq!(in_use(folder.path()), Ok(false), "there is none");
    let store = open(folder.path());
    store.view(|r| r.last_event()).unwrap();
    assert_eq!(in_use(folder.path()), Ok(true));
    drop(store);
    assert_eq!(in_use(folder.path()), Ok(false));
    // Asking has not kept anybody out.
    open(folder.path()).view(|r| r.last_event()).unwrap();
    fs::write(database_path(folder.path()), "dear diary\n".repeat(400)).unwrap();
    assert_eq!(in_use(folder.path()), Ok(false), "nobody can use what is damaged");
}

#[test]
fn a_lock_is_abandoned_when_nobody_holds_it_and_a_held_one_is_not_removed() {
    let folder = folder();
    assert_eq!(abandoned_locks(folder.path()), Ok(Vec::new()), "there is no folder of locks");
    let store = open(folder.path());
    testing::fill(&store, 2, 1).unwrap();
    let (held, killed) = (testing::id(0), testing::id(1));
    let lease = store.try_lease(held).unwrap().unwrap();
    let locks = folder.path().join("locks");
    let path = locks.join(format!("{killed}.lock"));
    fs::write(&path, "").unwrap();
    fs::write(locks.join("migrate.lock"), "").unwrap();
    assert_eq!(abandoned_locks(folder.path()), Ok(vec![(killed, path.clone())]));
    let of_held = locks.join(format!("{held}.lock"));
    assert_eq!(remove_lock(&of_held), Ok(false));
    assert_eq!(store.is_leased(held), Ok(true));
    assert_eq!((remove_lock(&path), path.exists()), (Ok(true), false));
    assert_eq!(remove_lock(&path), Ok(false), "it is gone already");
    drop(lease);
}
