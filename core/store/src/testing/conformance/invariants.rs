//! Invariants and reconciliations.

use agents_domain::ids::InvariantId;
use agents_domain::invariant::{Invariant, Scope, reconcile};
use agents_domain::ports::store::{Reconciliation, Store, StoreError, StoreExt};

use super::super::samples::{at, id, plan};
use super::{Case, refused, write};

pub(super) const CASES: &[Case] = &[invariants_are_kept_by_scope, a_reconciliation_is_kept_with_its_plan];

fn invariant(n: u64, scope: Scope, target: Option<&str>) -> Invariant {
    Invariant {
        invariant_id: id::<InvariantId>(n),
        scope,
        target: target.map(str::to_owned),
        text: format!("Sentence {n}"),
        non_overridable: n == 1,
        created_at: at(n),
    }
}

fn invariants_are_kept_by_scope(store: &dyn Store) {
    let all = [
        invariant(1, Scope::Global, None),
        invariant(2, Scope::Project, Some("local/app")),
        invariant(3, Scope::Project, Some("local/web")),
        invariant(4, Scope::Plan, Some("P")),
    ];
    write(store, |w| all.iter().rev().try_for_each(|i| w.insert_invariant(i)));
    assert_eq!(store.view(|r| r.invariants()).unwrap(), all);
    assert_eq!(store.view(|r| r.invariant(all[1].invariant_id)).unwrap().as_ref(), Some(&all[1]));
    let of = |scope, target| store.view(|r| r.invariants_of(scope, target)).unwrap();
    assert_eq!(of(Scope::Global, None), &all[..1]);
    assert_eq!(of(Scope::Project, Some("local/web")), &all[2..3]);
    assert_eq!(of(Scope::Action, Some("local/web")), []);
    let again = refused(store, |w| w.insert_invariant(&all[0]));
    assert!(matches!(again, StoreError::Duplicate(_)), "{again}");
    write(store, |w| w.delete_invariant(all[0].invariant_id));
    refused(store, |w| w.delete_invariant(all[0].invariant_id));
    write(store, |w| {
        assert_eq!(w.delete_invariants_of(Scope::Project, "local/app")?, 1);
        Ok(())
    });
    assert_eq!(store.view(|r| r.invariants()).unwrap(), &all[2..]);
}

fn a_reconciliation_is_kept_with_its_plan(store: &dyn Store) {
    let plan = plan(1);
    let all = [invariant(1, Scope::Global, None)];
    let reconciliation = Reconciliation {
        plan_id: plan.plan_id,
        reconciler: "builtin/reconcile-invariants".to_owned(),
        result: reconcile(&all),
        created_at: at(3),
    };
    write(store, |w| w.insert_plan(&plan));
    assert_eq!(store.view(|r| r.reconciliation(plan.plan_id)).unwrap(), None);
    write(store, |w| w.put_reconciliation(&reconciliation));
    assert_eq!(store.view(|r| r.reconciliation(plan.plan_id)).unwrap().as_ref(), Some(&reconciliation));
    let later = Reconciliation { result: reconcile(&[]), ..reconciliation };
    write(store, |w| w.put_reconciliation(&later));
    assert_eq!(store.view(|r| r.reconciliation(plan.plan_id)).unwrap(), Some(later));
}
