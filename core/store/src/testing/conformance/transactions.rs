//! Transactions, events, the audit log, watches, blobs and leases.

use agents_domain::event::{Event, NewEvent};
use agents_domain::ids::PlanId;
use agents_domain::ports::store::{AuditEntry, Store, StoreError, StoreExt};
use serde_json::json;

use super::super::samples::{at, id, plan};
use super::{Case, refused, write};

pub(super) const CASES: &[Case] = &[
    a_failing_write_leaves_nothing,
    a_write_sees_itself_and_others_do_not,
    a_write_inside_a_write_is_refused,
    events_are_numbered_in_the_order_written,
    the_latest_progress_of_a_plan_is_found,
    the_audit_log_is_newest_first,
    a_watch_sees_every_write_once,
    blobs_are_kept_by_their_hash,
    a_lease_is_exclusive_and_numbered,
    concurrent_writers_wait_for_each_other,
];

fn event(plan: Option<PlanId>) -> NewEvent {
    NewEvent {
        plan_id: plan,
        root_plan_id: plan,
        correlation_id: Some(format!("request of {plan:?}")),
        actor_name: Some("builtin/fix".to_owned()),
        project_name: Some("local/app".to_owned()),
        user_identity: Some("somebody".to_owned()),
        ..NewEvent::new("plan.state_changed", json!({ "to": "queued", "from": null }))
    }
}

fn a_failing_write_leaves_nothing(store: &dyn Store) {
    let failed: Result<(), _> = store.transact(|w| {
        w.insert_plan(&plan(1))?;
        w.append_event(&event(Some(id(1))), at(1))?;
        Err(StoreError::Other("no".to_owned()))
    });
    assert_eq!(failed, Err(StoreError::Other("no".to_owned())));
    assert_eq!(store.view(|r| Ok((r.plan(id(1))?, r.last_event()?))), Ok((None, 0)));
    write(store, |w| w.insert_plan(&plan(1)));
}

fn a_write_sees_itself_and_others_do_not(store: &dyn Store) {
    store
        .transact(|w| {
            w.insert_plan(&plan(1))?;
            assert!(w.plan(id(1))?.is_some());
            assert_eq!(store.view(|r| r.plan(id(1)))?, None);
            Ok(())
        })
        .unwrap();
    // A view stays as it was when it was first looked at.
    store
        .view(|r| {
            assert_eq!(r.plan(id(2))?, None);
            store.transact(|w| w.insert_plan(&plan(2)))?;
            assert_eq!(r.plan(id(2))?, None);
            Ok(())
        })
        .unwrap();
    assert!(store.view(|r| r.plan(id(2))).unwrap().is_some());
}

fn a_write_inside_a_write_is_refused(store: &dyn Store) {
    let inner = store.transact(|_| Ok(store.transact(|w| w.insert_plan(&plan(1))))).unwrap();
    assert!(matches!(inner, Err(StoreError::Other(_))), "{inner:?}");
    write(store, |w| w.insert_plan(&plan(1)));
}

fn events_are_numbered_in_the_order_written(store: &dyn Store) {
    let numbers = store
        .transact(|w| {
            Ok([
                w.append_event(&event(Some(id(1))), at(5))?,
                w.append_event(&event(None), at(6))?,
                w.append_event(&event(Some(id(1))), at(4))?,
            ])
        })
        .unwrap();
    assert!(numbers.is_sorted() && numbers[0] > 0 && numbers[0] < numbers[1] && numbers[1] < numbers[2]);
    assert_eq!(store.view(|r| r.last_event()), Ok(numbers[2]));
    let after = |sequence, plan, limit| store.view(|r| r.events_after(sequence, plan, limit)).unwrap();
    let sequences = |events: Vec<Event>| events.into_iter().map(|e| e.sequence).collect::<Vec<_>>();
    assert_eq!(sequences(after(0, None, 100)), numbers);
    assert_eq!(sequences(after(numbers[0], None, 1)), [numbers[1]]);
    assert_eq!(sequences(after(0, Some(id(1)), 100)), [numbers[0], numbers[2]]);
    assert!(after(numbers[2], None, 100).is_empty());
    let expected = event(Some(id(1)));
    assert_eq!(
        after(0, None, 1),
        [Event {
            sequence: numbers[0],
            timestamp: at(5),
            event_type: expected.event_type,
            plan_id: expected.plan_id,
            root_plan_id: expected.root_plan_id,
            correlation_id: expected.correlation_id,
            actor_name: expected.actor_name,
            project_name: expected.project_name,
            user_identity: expected.user_identity,
            details: expected.details,
        }]
    );
}

fn the_latest_progress_of_a_plan_is_found(store: &dyn Store) {
    let progress = |plan, label: &str| NewEvent {
        event_type: "plan.progress".to_owned(),
        details: json!({ "label": label }),
        ..event(Some(plan))
    };
    let last = store
        .transact(|w| {
            w.append_event(&progress(id(1), "first"), at(1))?;
            let last = w.append_event(&progress(id(1), "second"), at(2))?;
            w.append_event(&progress(id(2), "of another plan"), at(3))?;
            w.append_event(&event(Some(id(1))), at(4))?;
            Ok(last)
        })
        .unwrap();
    let found = store.view(|r| r.last_progress(id(1))).unwrap().unwrap();
    assert_eq!((found.sequence, found.details), (last, json!({ "label": "second" })));
    assert_eq!(store.view(|r| r.last_progress(id(3))), Ok(None));
    // OBS-006
    let of = |plan| store.view(|r| r.last_correlation(plan)).unwrap();
    assert_eq!(of(id(1)), event(Some(id(1))).correlation_id);
    assert_eq!(of(id(3)), None);
}

fn the_audit_log_is_newest_first(store: &dyn Store) {
    let entry = |event_type: &str, plan_id| AuditEntry {
        event_type: event_type.to_owned(),
        plan_id,
        project_name: Some("local/app".to_owned()),
        actor_name: None,
        user_identity: Some("somebody".to_owned()),
        details: json!({ "commit": "abc" }),
        created_at: at(1),
    };
    // No plan needs to be there: the log outlives everything.
    let entries = [
        entry("plan_applied", Some(id(1))),
        entry("config_changed", None),
        entry("plan_cancelled", Some(id(2))),
    ];
    write(store, |w| entries.iter().try_for_each(|entry| w.append_audit(entry)));
    let [applied, config, cancelled] = entries;
    assert_eq!(store.view(|r| r.audit(None, 2)), Ok(vec![cancelled, config]));
    assert_eq!(store.view(|r| r.audit(Some(id(1)), 9)), Ok(vec![applied]));
}

fn a_watch_sees_every_write_once(store: &dyn Store) {
    write(store, |w| w.insert_plan(&plan(1)));
    let mut watch = store.watch().unwrap();
    assert_eq!(watch.changed(), Ok(false), "what was written before does not count");
    write(store, |w| w.insert_plan(&plan(2)));
    assert_eq!((watch.changed(), watch.changed()), (Ok(true), Ok(false)));
    let _ = store.view(|r| r.plan(id(1)));
    let _: Result<(), _> = store.transact(|w| {
        w.insert_plan(&plan(3))?;
        Err(StoreError::Busy)
    });
    assert_eq!(watch.changed(), Ok(false), "reading and rolling back change nothing");
}

fn blobs_are_kept_by_their_hash(store: &dyn Store) {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(store.blob(abc), Ok(None));
    assert_eq!(store.put_blob(b"abc").as_deref(), Ok(abc));
    assert_eq!(store.put_blob(b"abc").as_deref(), Ok(abc));
    assert_eq!(store.put_blob(b"").as_deref(), Ok(empty));
    let many: Vec<Vec<u8>> = (0..50u32).map(|n| n.to_le_bytes().to_vec()).chain([b"abc".to_vec()]).collect();
    let given: Vec<&[u8]> = many.iter().chain(&many[..3]).map(Vec::as_slice).collect();
    let hashes = store.put_blobs(&given).unwrap();
    assert_eq!((hashes.len(), hashes[50].as_str(), &hashes[51..]), (54, abc, &hashes[..3]));
    for (hash, bytes) in hashes.iter().zip(&given) {
        assert_eq!(store.blob(hash).unwrap().as_deref(), Some(*bytes));
    }
    assert_eq!(store.blob(abc), Ok(Some(b"abc".to_vec())));
    assert_eq!(store.blob(empty), Ok(Some(Vec::new())));
    let all_bytes: Vec<u8> = (0..=255).collect();
    let hash = store.put_blob(&all_bytes).unwrap();
    assert_eq!(store.blob(&hash), Ok(Some(all_bytes)));
    let upper = abc.to_uppercase();
    for no_hash in ["", "abc", "../../cleveragents.db", &upper, "ü", &"g".repeat(64)] {
        assert_eq!(store.blob(no_hash), Ok(None), "{no_hash}");
    }
}

fn a_lease_is_exclusive_and_numbered(store: &dyn Store) {
    write(store, |w| {
        w.insert_plan(&plan(1))?;
        w.insert_plan(&plan(2))
    });
    assert_eq!(store.is_leased(id(1)), Ok(false));
    assert_eq!(refused(store, |w| w.check_lease(id(1), 0)), StoreError::LeaseLost(id(1)));
    let lease = store.try_lease(id(1)).unwrap().expect("the plan is free");
    assert!(store.try_lease(id(1)).unwrap().is_none());
    assert_eq!((store.is_leased(id(1)), store.is_leased(id(2))), (Ok(true), Ok(false)));
    let other = store.try_lease(id(2)).unwrap().expect("another plan is free");
    let first = lease.epoch();
    write(store, |w| w.check_lease(id(1), first));
    drop(lease);
    assert_eq!(store.is_leased(id(1)), Ok(false));
    // Nobody took over, so a late write of the last holder does no harm.
    write(store, |w| w.check_lease(id(1), first));
    let second = store.try_lease(id(1)).unwrap().expect("the plan is free again").epoch();
    assert!(second > first);
    assert_eq!(refused(store, |w| w.check_lease(id(1), first)), StoreError::LeaseLost(id(1)));
    write(store, |w| w.check_lease(id(1), second));
    write(store, |w| w.check_lease(id(2), other.epoch()));
    assert!(matches!(store.try_lease(id(9)), Err(StoreError::Other(_))), "a plan that is not there");
    assert_eq!(store.is_leased(id(9)), Ok(false));
}

fn concurrent_writers_wait_for_each_other(store: &dyn Store) {
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            scope.spawn(move || {
                for n in 0..10 {
                    write(store, |w| {
                        let last = w.last_event()?;
                        let next = w.append_event(&event(None), at(n))?;
                        assert_eq!(next, last + 1, "somebody else wrote in between");
                        w.insert_plan(&plan(writer * 100 + n))
                    });
                    assert!(store.view(|r| r.plan(id(writer * 100 + n))).unwrap().is_some());
                }
            });
        }
    });
    assert_eq!(store.view(|r| r.last_event()), Ok(40));
}
