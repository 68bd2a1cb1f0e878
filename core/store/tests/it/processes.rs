//! Several processes on one data directory.

use agents_domain::ports::store::{Store, StoreError, StoreExt};
use agents_store::testing::{at, id, plan};

use crate::child::{Part, event, numbers_of, take_leases};
use crate::{folder, open};

#[test]
fn kill_9_frees_a_plan_and_its_last_holder_cannot_write_any_more() {
    let folder = folder();
    let store = open(folder.path());
    store.transact(|w| w.insert_plan(&plan(1))).unwrap();
    let mut holder = Part::start("hold a lease", folder.path());
    let stale: u64 = holder.says().unwrap().parse().unwrap();
    assert!(store.try_lease(id(1)).unwrap().is_none());
    assert_eq!(store.is_leased(id(1)), Ok(true));
    store.transact(|w| w.check_lease(id(1), stale)).unwrap();
    // A third process does not get it either.
    assert_eq!(Part::start("hold a lease", folder.path()).says().as_deref(), Some("none"));

    holder.kill();
    assert_eq!(store.is_leased(id(1)), Ok(false));
    let lease = store.try_lease(id(1)).unwrap().expect("the plan is free");
    assert_eq!(lease.epoch(), stale + 1);
    assert_eq!(store.transact(|w| w.check_lease(id(1), stale)), Err(StoreError::LeaseLost(id(1))));
    drop(lease);
    // A holder that ends in peace leaves no lock file.
    assert!(!folder.path().join("locks").join(format!("{}.lock", plan(1).plan_id)).exists());
}

#[test]
fn a_process_that_ends_in_peace_frees_its_plan() {
    let folder = folder();
    let store = open(folder.path());
    store.transact(|w| w.insert_plan(&plan(1))).unwrap();
    let mut holder = Part::start("hold a lease", folder.path());
    holder.says().unwrap();
    assert!(store.try_lease(id(1)).unwrap().is_none());
    holder.go();
    assert_eq!(holder.says(), None);
    assert!(store.try_lease(id(1)).unwrap().is_some());
}

#[test]
fn looking_at_a_plan_makes_no_file() {
    let folder = folder();
    let store = open(folder.path());
    assert_eq!(store.is_leased(id(7)), Ok(false));
    assert!(store.try_lease(id(7)).is_err());
    let locks = folder.path().join("locks");
    let names: Vec<_> = std::fs::read_dir(locks).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, Vec::<std::ffi::OsString>::new());
}

#[test]
fn processes_and_threads_that_contend_for_a_plan_hold_it_one_at_a_time() {
    let folder = folder();
    let store = open(folder.path());
    store.transact(|w| w.insert_plan(&plan(1))).unwrap();
    let mut parts: Vec<Part> = (0..2).map(|_| Part::start("take leases", folder.path())).collect();
    for part in &mut parts {
        assert_eq!(part.says().as_deref(), Some("ready"));
    }
    for part in &mut parts {
        part.go();
    }
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| take_leases(&store, folder.path(), 20));
        }
    });
    for part in &mut parts {
        assert_eq!(part.says().as_deref(), Some("done"), "a part found that it was not alone");
    }
    assert_eq!(store.try_lease(id(1)).unwrap().unwrap().epoch(), 4 * 20 + 1);
}

#[test]
fn looking_does_not_keep_a_worker_from_a_free_plan() {
    let folder = folder();
    let store = open(folder.path());
    store.transact(|w| w.insert_plan(&plan(1))).unwrap();
    // A lock file that a killed worker left, so that lookers have something to look at.
    let mut holder = Part::start("hold a lease", folder.path());
    holder.says().unwrap();
    holder.kill();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                store.is_leased(id(1)).unwrap();
            }
        });
        for _ in 0..50 {
            let taken = store.try_lease(id(1)).unwrap().is_some();
            if !taken {
                done.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            assert!(taken, "a free plan was said to be held");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn kill_9_between_and_within_writes_loses_nothing_committed_and_leaves_nothing_half_done() {
    let folder = folder();
    let mut committed = 0;
    for round in 1..=8 {
        let mut writer = Part::start("write for ever", folder.path());
        // Some way into its work; where in a write it is then, is up to chance.
        for _ in 0..round * 3 {
            committed = writer.says().unwrap().parse::<i64>().unwrap();
        }
        if let Some(last) = writer.kill().last() {
            committed = last.parse().unwrap();
        }
        let (events, plans) = numbers_of(&open(folder.path()));
        let last = *events.last().unwrap();
        // The last commit may have been made without being told of.
        assert!(last == committed || last == committed + 1, "{last} after {committed}");
        assert_eq!(events, (1..=last).collect::<Vec<_>>());
        assert_eq!(plans, events.len(), "an event and its plan are written together or not at all");
        committed = last;
    }
}

#[test]
fn kill_9_in_the_middle_of_a_write_leaves_nothing_of_it_and_no_lock() {
    let folder = folder();
    let store = open(folder.path());
    let before = store.transact(|w| w.append_event(&event(), at(1))).unwrap();
    let mut writer = Part::start("hang in a write", folder.path());
    assert_eq!(writer.says().as_deref(), Some("writing"));
    assert_eq!(store.view(|r| Ok((r.last_event()?, r.plan(id(500))?))), Ok((before, None)));
    writer.kill();
    assert_eq!(store.transact(|w| w.append_event(&event(), at(2))), Ok(before + 1));
    assert_eq!(store.view(|r| r.plan(id(500))), Ok(None));
}

#[test]
fn a_write_behind_a_long_one_of_another_process_is_refused_as_busy() {
    let folder = folder();
    let options = agents_store::Options { busy_timeout: std::time::Duration::from_millis(20) };
    let store = agents_store::SqliteStore::open(folder.path(), options).unwrap();
    let mut writer = Part::start("hang in a write", folder.path());
    assert_eq!(writer.says().as_deref(), Some("writing"));
    assert_eq!(store.transact(|w| w.append_event(&event(), at(1))), Err(StoreError::Busy));
    // Readers are not kept waiting.
    assert_eq!(store.view(|r| r.last_event()), Ok(0));
    writer.go();
    assert_eq!(writer.says().as_deref(), Some("Ok(())"));
    assert_eq!(store.transact(|w| w.append_event(&event(), at(1))), Ok(2));
}

#[test]
fn a_watch_sees_the_write_of_another_process() {
    let folder = folder();
    let store = open(folder.path());
    let mut watch = store.watch().unwrap();
    assert_eq!(watch.changed(), Ok(false));
    assert_eq!(Part::start("write once", folder.path()).says().as_deref(), Some("wrote"));
    assert_eq!((watch.changed(), watch.changed()), (Ok(true), Ok(false)));
    assert_eq!(store.view(|r| r.last_event()), Ok(1));
}

#[test]
fn processes_that_open_a_new_data_directory_at_once_all_succeed() {
    let folder = folder();
    let data_dir = folder.path().join("new");
    let mut parts: Vec<Part> = (0..5).map(|_| Part::start("open together", &data_dir)).collect();
    for part in &mut parts {
        assert_eq!(part.says().as_deref(), Some("ready"));
    }
    for part in &mut parts {
        part.go();
    }
    for part in &mut parts {
        assert_eq!(part.says().as_deref(), Some("wrote"));
    }
    assert_eq!(open(&data_dir).view(|r| r.last_event()), Ok(5));
}
