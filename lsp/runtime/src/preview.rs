//! Lets a server see drafts in place of what lies on disk, and the disk again afterwards, whatever happens between.

use std::sync::Arc;

use agents_domain::ports::code_intelligence::Draft;
use tokio::sync::RwLockWriteGuard;

use crate::diagnostics::Limits;
use crate::documents::Snapshot;
use crate::instance::Instance;
use crate::lock;

/// While this lives, a server sees the drafts and nobody else asks it.
pub(crate) struct Preview<'a> {
    instance: &'a Arc<Instance>,
    paths: Vec<String>,
    /// Keeps the drafts open.
    shown: Vec<Snapshot>,
    _alone: RwLockWriteGuard<'a, ()>,
}

impl<'a> Preview<'a> {
    /// Waits for the server and shows it the drafts; one that it cannot be shown has no answer later.
    pub(crate) async fn begin(instance: &'a Arc<Instance>, drafts: &[Draft], limits: Limits) -> Self {
        let _alone = instance.speculation.write().await;
        let texts = drafts.iter().map(|draft| (draft.path.clone(), Arc::from(draft.text.as_str())));
        lock(&instance.drafts).extend(texts);
        let paths = drafts.iter().map(|draft| draft.path.clone()).collect();
        let mut preview = Self { instance, paths, shown: Vec::new(), _alone };
        if let Ok(client) = instance.client(limits.start).await {
            for draft in drafts {
                let served = crate::files::language(&instance.root, &draft.path)
                    .is_some_and(|language| crate::files::serves(&instance.definition.languages, language));
                if served && let Ok(shown) = instance.open(&client, &draft.path, limits.request).await {
                    preview.shown.push(shown);
                }
            }
        }
        preview
    }
}

impl Drop for Preview<'_> {
    fn drop(&mut self) {
        self.shown.clear();
        lock(&self.instance.drafts).clear();
        self.instance.show_disk(&self.paths);
    }
}
