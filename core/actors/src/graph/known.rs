//! Actors that people define, beside the actors of somebody else.

use std::sync::Arc;

use agents_domain::QualifiedName;
use agents_domain::actor::ActorDefinition;
use agents_domain::ports::actor::{Actor, Actors, Reconciler};
use agents_domain::ports::model::Models;

use super::plan::DefinedActor;

/// Adds the actors that definitions make to those of `A`.
pub struct DefinedActors<A> {
    inner: A,
    models: Arc<dyn Models>,
    most_calls: usize,
}

impl<A: Actors> DefinedActors<A> {
    /// `most_calls`: tool calls for one answer of a model.
    pub fn new(inner: A, models: Arc<dyn Models>, most_calls: usize) -> Self {
        Self { inner, models, most_calls }
    }
}

impl<A: Actors> Actors for DefinedActors<A> {
    fn find(&self, name: &QualifiedName) -> Option<Arc<dyn Actor>> {
        self.inner.find(name)
    }

    fn define(&self, library: &[ActorDefinition]) -> Result<Arc<dyn Actor>, String> {
        let actor = DefinedActor::new(library, self.models.clone(), self.most_calls)?;
        Ok(Arc::new(actor))
    }

    fn unready(&self, name: &QualifiedName) -> Option<(String, Vec<String>)> {
        self.inner.unready(name)
    }

    fn names(&self) -> Vec<QualifiedName> {
        self.inner.names()
    }

    fn reconciler(&self, name: &QualifiedName) -> Option<Arc<dyn Reconciler>> {
        self.inner.reconciler(name)
    }

    fn reconcilers(&self) -> Vec<QualifiedName> {
        self.inner.reconcilers()
    }
}
