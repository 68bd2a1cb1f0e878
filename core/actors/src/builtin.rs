//! Which name means which actor.

use std::collections::BTreeMap;
use std::sync::Arc;

use agents_domain::QualifiedName;
use agents_domain::ports::actor::{Actor, Actors, Reconciler};
use agents_domain::ports::language_servers::FileQuestion;

use crate::fixer::FixDiagnostics;
use crate::reconcile::ReconcileInvariants;
use crate::rename::RenameSymbol;
use crate::revert::RevertPlan;
use crate::tidy::Tidy;

/// The actors of this crate by name, and any that are added.
pub struct BuiltIn {
    actors: BTreeMap<QualifiedName, Arc<dyn Actor>>,
    reconcilers: BTreeMap<QualifiedName, Arc<dyn Reconciler>>,
}

impl BuiltIn {
    /// All actors of this crate: `builtin/fix-diagnostics`, `builtin/format`, `builtin/organize-imports`,
    /// `builtin/rename-symbol` and `builtin/revert-plan`, each for both phases, and
    /// `builtin/reconcile-invariants`.
    pub fn new() -> Self {
        let all: [(&str, Arc<dyn Actor>); 5] = [
            ("fix-diagnostics", Arc::new(FixDiagnostics)),
            ("format", Arc::new(Tidy(FileQuestion::Format))),
            ("organize-imports", Arc::new(Tidy(FileQuestion::OrganizeImports))),
            ("rename-symbol", Arc::new(RenameSymbol)),
            ("revert-plan", Arc::new(RevertPlan)),
        ];
        let named = all
            .into_iter()
            .filter_map(|(name, actor)| Some((QualifiedName::parse_in(name, "builtin").ok()?, actor)));
        let actors = named.collect();
        let mut reconcilers: BTreeMap<QualifiedName, Arc<dyn Reconciler>> = BTreeMap::new();
        if let Ok(name) = QualifiedName::parse_in("reconcile-invariants", "builtin") {
            reconcilers.insert(name, Arc::new(ReconcileInvariants));
        }
        Self { actors, reconcilers }
    }

    /// One more actor; it goes before one of the same name.
    #[must_use]
    pub fn with(mut self, name: QualifiedName, actor: Arc<dyn Actor>) -> Self {
        self.actors.insert(name, actor);
        self
    }
}

impl Default for BuiltIn {
    fn default() -> Self {
        Self::new()
    }
}

impl Actors for BuiltIn {
    fn find(&self, name: &QualifiedName) -> Option<Arc<dyn Actor>> {
        self.actors.get(name).cloned()
    }

    fn names(&self) -> Vec<QualifiedName> {
        self.actors.keys().cloned().collect()
    }

    fn reconciler(&self, name: &QualifiedName) -> Option<Arc<dyn Reconciler>> {
        self.reconcilers.get(name).cloned()
    }

    fn reconcilers(&self) -> Vec<QualifiedName> {
        self.reconcilers.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // ACT-005
    #[test]
    fn actors_are_found_by_their_names_and_nothing_else_is() {
        let actors = BuiltIn::new();
        for name in ["fix-diagnostics", "format", "organize-imports", "rename-symbol", "revert-plan"] {
            let name = QualifiedName::parse_in(name, "builtin").unwrap();
            assert!(actors.names().contains(&name) && actors.find(&name).is_some());
        }
        assert!(actors.find(&"local/fix-diagnostics".parse().unwrap()).is_none());
        let name: QualifiedName = "builtin/reconcile-invariants".parse().unwrap();
        assert_eq!(actors.reconcilers(), std::slice::from_ref(&name));
        assert!(actors.reconciler(&name).is_some());
    }
}
