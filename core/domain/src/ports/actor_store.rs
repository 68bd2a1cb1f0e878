//! Registered actors in the store.

use super::store::StoreResult;
use crate::QualifiedName;
use crate::actor::RegisteredActor;

/// Reading actors.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait ActorReads {
    fn actor(&self, name: &QualifiedName) -> StoreResult<Option<RegisteredActor>>;
    /// By name.
    fn actors(&self) -> StoreResult<Vec<RegisteredActor>>;
}

/// Registering and removing actors.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait ActorWrites {
    /// [`super::store::StoreError::Duplicate`] when the name is taken.
    fn insert_actor(&self, actor: &RegisteredActor) -> StoreResult<()>;
    /// All but the time it was registered.
    fn update_actor(&self, actor: &RegisteredActor) -> StoreResult<()>;
    fn delete_actor(&self, name: &QualifiedName) -> StoreResult<()>;
    /// One more run, and what it cost in US dollars. Nothing for an actor that is gone.
    fn count_actor_run(&self, name: &QualifiedName, cost_usd: f64) -> StoreResult<()>;
}
