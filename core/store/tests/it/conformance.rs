use std::cell::RefCell;

use agents_domain::ports::store::{PlanFilter, StoreExt};
use agents_store::testing;

use crate::{folder, open};

#[test]
fn the_store_conforms() {
    let folders = RefCell::new(Vec::new());
    testing::conformance(|| {
        let folder = folder();
        let store = open(folder.path());
        folders.borrow_mut().push(folder);
        Box::new(store)
    });
}

#[test]
fn a_filled_store_holds_what_was_asked_for() {
    let folder = folder();
    let store = open(folder.path());
    let plans = testing::fill(&store, 7, 5).unwrap();
    store
        .view(|r| {
            assert_eq!(r.plan_rows(&PlanFilter::default())?.len(), 7);
            assert_eq!(r.runnable_plans()?, []);
            assert_eq!(r.last_event()?, 7);
            for plan in &plans {
                assert_eq!(r.decisions(*plan)?.len(), 5);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn everything_is_still_there_after_opening_again() {
    let folder = folder();
    let filled = testing::fill(&open(folder.path()), 3, 4).unwrap();
    let store = open(folder.path());
    for id in filled {
        assert!(store.view(|r| r.plan(id)).unwrap().is_some());
        assert_eq!(store.view(|r| r.decisions(id)).unwrap().len(), 4);
    }
}
