//! What every store keeps to, whatever it is made of.

mod actors;
mod automation;
mod corrections;
mod decisions;
mod invariants;
mod plans;
mod registry;
mod transactions;
mod validations;

use agents_domain::ports::store::{Store, StoreExt, StoreResult, Writer};

/// Runs every case on a fresh, empty store of its own.
///
/// # Panics
/// When the store does not conform; the message says what was expected.
pub fn conformance(make: impl Fn() -> Box<dyn Store>) {
    let cases = plans::CASES
        .iter()
        .chain(decisions::CASES)
        .chain(corrections::CASES)
        .chain(registry::CASES)
        .chain(invariants::CASES)
        .chain(automation::CASES)
        .chain(validations::CASES)
        .chain(actors::CASES)
        .chain(transactions::CASES);
    for case in cases {
        case(make().as_ref());
    }
}

/// A fact about a store, stated on an empty one.
type Case = fn(&dyn Store);

/// One write that must succeed.
fn write(store: &dyn Store, f: impl Fn(&dyn Writer) -> StoreResult<()>) {
    store.transact(|writer| f(writer)).expect("the write succeeds");
}

/// One write that must fail and leave nothing.
fn refused(
    store: &dyn Store,
    f: impl Fn(&dyn Writer) -> StoreResult<()>,
) -> agents_domain::ports::store::StoreError {
    store.transact(|writer| f(writer)).expect_err("the write is refused")
}
