//! The pool: which instances run, shared by the workspaces that need the same server over the same directory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use agents_domain::QualifiedName;
use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::language_servers::{
    LanguageServers, LanguageWorkspace, RunningServer, ServerReport, WorkspaceSpec,
};

use crate::instance::Instance;
use crate::warm::WarmServers;
use crate::workspace::Workspace;
use crate::{check, lock, notes};

/// Waiting times that are not the caller's to choose; tests shorten them.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long a server must be silent before what it pushed counts as its answer.
    pub quiet: Duration,
    /// How long a suspect has to show a sign of life.
    pub probe: Duration,
    /// How long a suspect whose processes work may go without a sign of life: a slow machine, a large project.
    pub deaf: Duration,
    /// Between two health probes; `None` takes the registry entry's `health_check.interval_seconds`.
    pub probe_interval: Option<Duration>,
    /// How long a server has to answer `shutdown`, and again to leave after `exit`.
    pub shutdown: Duration,
    /// Before the first restart; doubled for each further one.
    pub backoff: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            quiet: Duration::from_millis(300),
            probe: Duration::from_secs(5),
            deaf: Duration::from_secs(180),
            probe_interval: None,
            shutdown: Duration::from_secs(2),
            backoff: Duration::from_millis(200),
        }
    }
}

/// Starts, shares and stops language servers. Needs a running tokio runtime when workspaces are opened and used.
#[derive(Debug, Clone, Default)]
pub struct Runtime {
    timing: Timing,
    pool: Arc<Pool>,
    warm: Option<WarmServers>,
}

impl Runtime {
    /// A runtime with its own pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with other waiting times.
    pub fn with_timing(timing: Timing) -> Self {
        Self { timing, ..Self::default() }
    }

    /// Notes the servers that run in a folder, for other processes that know it, and sees theirs.
    #[must_use]
    pub fn noting_in(self, folder: PathBuf) -> Self {
        Self { pool: Arc::new(Pool { notes: Some(folder), ..Pool::default() }), ..self }
    }
}

impl Runtime {
    /// Takes servers that wait there for those it launches for a client, and has others wait when they end.
    #[must_use]
    pub fn with_warm_servers(self, warm: WarmServers) -> Self {
        Self { warm: Some(warm), ..self }
    }

    pub(crate) fn warm_servers(&self) -> Option<&WarmServers> {
        self.warm.as_ref()
    }

    /// The folder of [`Self::noting_in`].
    pub(crate) fn notes(&self) -> Option<&Path> {
        self.pool.notes.as_deref()
    }
}

impl LanguageServers for Runtime {
    fn open(&self, spec: WorkspaceSpec) -> BoxFuture<'_, Arc<dyn LanguageWorkspace>> {
        Box::pin(async move {
            let workspace: Arc<dyn LanguageWorkspace> =
                Arc::new(Workspace::open(&self.pool, self.timing, spec));
            workspace
        })
    }

    fn running(&self) -> Vec<RunningServer> {
        self.pool.notes.as_deref().map(notes::running).unwrap_or_default()
    }

    fn end(&self, server: &QualifiedName) -> usize {
        self.pool.notes.as_deref().map_or(0, |folder| notes::end(folder, server))
    }

    fn check<'a>(
        &'a self,
        definition: &'a LanguageServerDefinition,
        root: Option<&'a Path>,
        start_timeout: Duration,
    ) -> BoxFuture<'a, ServerReport> {
        Box::pin(async move {
            match root {
                Some(root) => check::check(definition, root, start_timeout).await,
                None => check::check_alone(definition, start_timeout).await,
            }
        })
    }
}

/// An entry and the directory it serves: definitions that differ in anything get processes of their own.
type Key = (String, PathBuf);

/// The instances in use, with the number of workspaces that use each.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    instances: Mutex<HashMap<Key, (Weak<Instance>, usize)>>,
    /// See [`Runtime::noting_in`].
    notes: Option<PathBuf>,
}

impl Pool {
    /// The instance for an entry over a directory, shared when there is one.
    pub(crate) fn acquire(
        &self,
        definition: &LanguageServerDefinition,
        root: &std::path::Path,
        timing: Timing,
    ) -> Arc<Instance> {
        let mut instances = lock(&self.instances);
        let entry = instances.entry(key(definition, root)).or_default();
        if let Some(instance) = entry.0.upgrade() {
            entry.1 += 1;
            return instance;
        }
        let instance = Instance::new(definition.clone(), root, timing, self.notes.clone());
        *entry = (Arc::downgrade(&instance), 1);
        instance
    }

    /// Lets go of an instance; `true` when that was its last user.
    pub(crate) fn release(&self, instance: &Instance) -> bool {
        let mut instances = lock(&self.instances);
        let key = key(&instance.definition, &instance.root);
        let Some((_, users)) = instances.get_mut(&key) else { return true };
        *users = users.saturating_sub(1);
        let last = *users == 0;
        if last {
            instances.remove(&key);
        }
        last
    }
}

fn key(definition: &LanguageServerDefinition, root: &std::path::Path) -> Key {
    (serde_json::to_string(definition).unwrap_or_default(), root.to_owned())
}
