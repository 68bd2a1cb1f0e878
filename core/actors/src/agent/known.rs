//! Which names mean a model actor: `builtin/strategist`, `builtin/executor`, and every `<provider>/<model>`.

use std::sync::Arc;

use agents_domain::QualifiedName;
use agents_domain::ports::actor::{Actor, Actors, Reconciler};
use agents_domain::ports::model::Models;

use super::actor::ModelActor;
use super::prompts::Prompts;
use super::reconciler::ModelReconciler;

const OURS: &[&str] = &["executor", "strategist"];
/// The reconciler that asks the model of the configuration.
const RECONCILER: &str = "model-reconciler";

/// What the configuration says about model actors.
#[derive(Debug, Clone, Default)]
pub struct ModelActorSettings {
    /// The model of those that name none.
    pub model: Option<String>,
    /// Tool calls of one turn.
    pub max_calls_per_step: usize,
    /// Where prompts come from.
    pub prompts: Prompts,
}

/// Model actors beside the actors of somebody else, which go first.
pub struct ModelActors<A> {
    inner: A,
    models: Arc<dyn Models>,
    settings: ModelActorSettings,
}

impl<A: Actors> ModelActors<A> {
    /// The actors of `inner`, and those that ask a model.
    pub fn new(inner: A, models: Arc<dyn Models>, settings: ModelActorSettings) -> Self {
        Self { inner, models, settings }
    }

    /// The model a name stands for; `None` when it is no name of a model actor.
    fn model_of(&self, name: &QualifiedName) -> Option<Option<String>> {
        if name.server().is_some() {
            return None;
        }
        if name.namespace() == "builtin" {
            let ours = OURS.contains(&name.name()) || name.name() == RECONCILER;
            return ours.then_some(None);
        }
        let known = name.namespace() == crate::models::REPLAY
            || self.models.providers().iter().any(|provider| provider.name == name.namespace());
        known.then(|| Some(name.to_string()))
    }
}

impl<A: Actors> Actors for ModelActors<A> {
    fn find(&self, name: &QualifiedName) -> Option<Arc<dyn Actor>> {
        self.inner.find(name).or_else(|| {
            let model = self.model_of(name).filter(|_| name.name() != RECONCILER)?;
            Some(Arc::new(ModelActor {
                name: name.to_string(),
                model,
                models: self.models.clone(),
                settings: self.settings.clone(),
            }))
        })
    }

    fn names(&self) -> Vec<QualifiedName> {
        let ours = OURS.iter().filter_map(|name| QualifiedName::parse_in(name, "builtin").ok());
        let mut names: Vec<_> = self.inner.names().into_iter().chain(ours).collect();
        names.sort();
        names.dedup();
        names
    }

    fn unready(&self, name: &QualifiedName) -> Option<(String, Vec<String>)> {
        if self.inner.find(name).is_some() {
            return self.inner.unready(name);
        }
        // One that is told its model by the plan's arguments is asked when it works.
        let model = self.model_of(name)??;
        self.models.find(&model).err().map(|failure| (failure.message, failure.hints))
    }

    fn reconciler(&self, name: &QualifiedName) -> Option<Arc<dyn Reconciler>> {
        self.inner.reconciler(name).or_else(|| {
            let model = self.model_of(name).filter(|model| model.is_some() || name.name() == RECONCILER)?;
            let model = model.or_else(|| self.settings.model.clone());
            Some(Arc::new(ModelReconciler {
                model,
                models: self.models.clone(),
                prompts: self.settings.prompts.clone(),
            }))
        })
    }

    fn reconcilers(&self) -> Vec<QualifiedName> {
        let mut names = self.inner.reconcilers();
        names.extend(QualifiedName::parse_in(RECONCILER, "builtin"));
        names
    }
}
