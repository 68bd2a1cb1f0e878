//! Opening: new, newer, damaged, foreign, read-only, and full disks.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use agents_domain::ports::store::{PlanFilter, Store, StoreError, StoreExt};
use agents_store::{Options, SqliteStore, testing};

use crate::child::{Part, is_root};
use crate::{folder, open, raw};

fn opening(data_dir: &Path) -> StoreError {
    SqliteStore::open(data_dir, Options::default()).expect_err("it cannot be opened")
}

/// A data directory with some plans, closed.
fn filled() -> tempfile::TempDir {
    let folder = folder();
    testing::fill(&open(folder.path()), 60, 20).unwrap();
    folder
}

// STORE-003
#[test]
fn a_new_data_directory_is_for_the_user_only_and_in_wal_mode() {
    let folder = folder();
    let data_dir = folder.path().join("deep/er");
    let store = open(&data_dir);
    store.transact(|w| w.append_event(&crate::child::event(), testing::at(1))).unwrap();
    let hash = store.put_blob(b"secret").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in ["", "blobs", "locks", &format!("blobs/{}", &hash[..2])] {
        assert_eq!(mode(&data_dir.join(folder)), 0o700, "{folder}");
    }
    for file in [
        "cleveragents.db",
        "cleveragents.db-wal",
        "cleveragents.db-shm",
        &format!("blobs/{}/{hash}", &hash[..2]),
    ] {
        assert_eq!(mode(&data_dir.join(file)), 0o600, "{file}");
    }
    let journal: String = raw(&data_dir).pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(journal, "wal");
}

// Empty is what a process leaves that is killed while it makes a database; after that it had contents.
#[test]
fn an_empty_database_is_new_unless_contents_it_named_are_there() {
    let folder = folder();
    let path = folder.path().join("cleveragents.db");
    fs::write(&path, "").unwrap();
    let store = open(folder.path());
    store.transact(|w| w.append_event(&crate::child::event(), testing::at(1))).unwrap();
    store.put_blob(b"what a decision names").unwrap();
    drop(store);
    fs::write(&path, "").unwrap();
    for log in ["-wal", "-shm"] {
        let _ = fs::remove_file(folder.path().join(format!("cleveragents.db{log}")));
    }
    let refused = opening(folder.path());
    assert!(
        matches!(&refused, StoreError::Damaged { problem, .. } if problem.contains("empty")),
        "{refused}"
    );
    assert_eq!(fs::metadata(&path).unwrap().len(), 0, "it is left as it is");
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let folder = filled();
    let known: i64 = raw(folder.path()).pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    raw(folder.path()).pragma_update(None, "user_version", known + 1).unwrap();
    let before = fs::read(folder.path().join("cleveragents.db")).unwrap();
    assert_eq!(opening(folder.path()), StoreError::Newer { found: known + 1, known });
    assert_eq!(fs::read(folder.path().join("cleveragents.db")).unwrap(), before);
}

#[test]
fn a_store_that_is_open_stops_when_a_newer_program_migrates_the_database() {
    let folder = filled();
    let store = open(folder.path());
    let known: i64 = raw(folder.path()).pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    raw(folder.path()).pragma_update(None, "user_version", known + 1).unwrap();
    let newer = StoreError::Newer { found: known + 1, known };
    assert_eq!(store.view(|r| r.last_event()), Err(newer.clone()));
    assert_eq!(store.transact(|w| w.delete_project(&"local/app".parse().unwrap())), Err(newer));
}

/// What a person does with a store that is there.
fn use_it(data_dir: &Path) -> Result<(), StoreError> {
    let store = SqliteStore::open(data_dir, Options::default())?;
    store.view(|r| {
        r.plan_rows(&PlanFilter::default())?;
        for n in 0..60 {
            r.plan(testing::id(n))?;
            r.decisions(testing::id(n))?;
        }
        r.events_after(0, None, 1000)?;
        r.audit(None, 10)?;
        Ok(())
    })
}

#[test]
fn a_damaged_database_is_said_to_be_damaged_and_left_as_it_is() {
    type Harm = fn(&mut Vec<u8>);
    let harm: [(&str, Harm); 6] = [
        ("the header is garbage", |bytes| bytes[..100].fill(0xa5)),
        ("all is garbage", |bytes| bytes.iter_mut().enumerate().for_each(|(n, b)| *b = (n * 31 % 251) as u8)),
        ("a text file", |bytes| *bytes = b"dear diary\n".repeat(400)),
        ("cut in the middle", |bytes| bytes.truncate(bytes.len() / 2)),
        ("cut within the first page", |bytes| bytes.truncate(700)),
        ("garbage in the middle", |bytes| {
            let middle = bytes.len() / 5..bytes.len() * 4 / 5;
            bytes[middle].iter_mut().enumerate().for_each(|(n, b)| *b = (n * 37 % 253) as u8);
        }),
    ];
    for (what, harm) in harm {
        let folder = filled();
        let path = folder.path().join("cleveragents.db");
        let mut bytes = fs::read(&path).unwrap();
        harm(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        match use_it(folder.path()) {
            Err(StoreError::Damaged { path: told, .. }) => {
                assert_eq!(told, path.display().to_string(), "{what}")
            }
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(fs::read(&path).unwrap(), bytes, "{what}: the file was changed");
    }
}

#[test]
fn a_log_that_lost_its_database_is_not_thrown_away() {
    for gone in [true, false] {
        let folder = filled();
        let (path, log) = (folder.path().join("cleveragents.db"), folder.path().join("cleveragents.db-wal"));
        fs::write(&log, [7; 5000]).unwrap();
        if gone { fs::remove_file(&path) } else { fs::write(&path, "") }.unwrap();
        assert!(matches!(opening(folder.path()), StoreError::Damaged { .. }));
        assert_eq!(fs::read(&log).unwrap(), [7; 5000]);
        assert_eq!(path.exists(), !gone);
    }
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let folder = folder();
    let path = folder.path().join("cleveragents.db");
    raw(folder.path()).execute_batch("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')").unwrap();
    let before = fs::read(&path).unwrap();
    let error = opening(folder.path());
    assert!(
        matches!(&error, StoreError::Damaged { problem, .. } if problem.contains("another program")),
        "{error}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_record_that_cannot_be_read_is_damage_not_a_panic() {
    let folder = filled();
    raw(folder.path()).execute_batch("UPDATE plans SET data = '{', project_names = 'x'").unwrap();
    let store = open(folder.path());
    let damaged = |result: Result<(), StoreError>| matches!(result, Err(StoreError::Damaged { .. }));
    assert!(damaged(store.view(|r| r.plan(testing::id(1))).map(drop)));
    assert!(damaged(store.view(|r| r.plan_rows(&PlanFilter::default())).map(drop)));
}

#[test]
fn a_blob_that_rotted_is_not_returned_and_is_healed_by_storing_it_again() {
    let folder = folder();
    let store = open(folder.path());
    let hash = store.put_blob(b"what was seen").unwrap();
    let path = folder.path().join("blobs").join(&hash[..2]).join(&hash);
    fs::write(&path, b"what was sean").unwrap();
    assert!(matches!(store.blob(&hash), Err(StoreError::Damaged { .. })));
    store.put_blob(b"what was seen").unwrap();
    assert_eq!(store.blob(&hash), Ok(Some(b"what was seen".to_vec())));
    let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(names, 1, "no temporary file is left");
}

#[test]
fn a_data_directory_that_cannot_be_is_named() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("below")] {
        match opening(&place) {
            StoreError::Io { path, .. } => assert_eq!(path, place.display().to_string()),
            other => panic!("{other}"),
        }
    }
    fs::create_dir(folder.path().join("cleveragents.db")).unwrap();
    assert!(matches!(opening(folder.path()), StoreError::Io { .. }));
}

#[test]
fn a_read_only_data_directory_is_an_error_that_says_so() {
    let cases = [("empty", false), ("filled", true)];
    for (what, with_database) in cases {
        let folder = if with_database { filled() } else { folder() };
        let path = folder.path().join("cleveragents.db");
        if is_root() && with_database {
            chown(&path, Some(65534), Some(65534)).unwrap();
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
        // Root may write anywhere, so a process without its rights tries.
        let part = if is_root() { "open as nobody" } else { "open" };
        let said = Part::start(part, folder.path()).says().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(said.contains("cleveragents.db") && !said.starts_with("other"), "{what}: {said}");
        assert!(said.contains("denied") || said.contains("writable"), "{what}: {said}");
    }
}

#[test]
fn a_file_that_may_not_grow_keeps_what_was_committed() {
    let folder = folder();
    open(folder.path());
    // In blocks of 512 or 1024 bytes, as the shell has it; writing past it fails instead of killing the process.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1500; exec \"$@\"", "sh"]);
    let mut part = Part::start_through("fill the disk", folder.path(), limited);
    let mut committed = 0i64;
    let failure = loop {
        let said = part.says().expect("it ends with an error");
        match said.parse() {
            Ok(number) => committed = number,
            Err(_) => break said,
        }
    };
    assert!(failure.starts_with("io: "), "{failure}");
    assert_eq!(part.says(), None);
    let store = open(folder.path());
    assert_eq!(store.view(|r| r.last_event()), Ok(committed));
    assert_eq!(store.transact(|w| w.append_event(&crate::child::event(), testing::at(1))), Ok(committed + 1));
}
