//! `builtin/reconcile-invariants`: which invariants are in force, by rule and without a model.

use agents_domain::invariant::{Invariant, Reconciled, reconcile};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{ActorFailure, Reconciler};

/// The reconciler of plans that name no other; [`reconcile`] has its rules.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReconcileInvariants;

impl Reconciler for ReconcileInvariants {
    fn reconcile<'a>(
        &'a self,
        invariants: &'a [Invariant],
    ) -> BoxFuture<'a, Result<Reconciled, ActorFailure>> {
        Box::pin(async move { Ok(reconcile(invariants)) })
    }
}
