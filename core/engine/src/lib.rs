//! The use cases of the product behind one facade: registering, planning, deciding, executing, applying, explaining.
//!
//! A facade call is a short transaction; whatever takes long happens in a plan's worker ([`worker::run`]), which
//! any process can start and any process can watch through events.

mod actors;
pub mod blame;
mod built_in;
mod checkpoints;
mod children;
mod clock;
mod confidence;
mod correlation;
mod drift;
mod entries;
pub mod facade;
mod invariants;
mod languages;
mod lookup;
mod notes;
pub mod operations;
mod preflight;
mod process;
mod python;
mod records;
mod rewind;
mod sandboxes;
mod skills;
mod surroundings;
#[cfg(feature = "testing")]
pub mod testing;
mod tools;
mod validations;
mod wait;
pub mod worker;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agents_config::Config;
use agents_domain::ids::PlanId;
use agents_domain::plan::Phase;
use agents_domain::ports::actor::Actors;
use agents_domain::ports::code_index::CodeIndexes;
use agents_domain::ports::installer::ServerInstaller;
use agents_domain::ports::language_servers::LanguageServers;
use agents_domain::ports::mcp::McpServers;
use agents_domain::ports::store::{Reader, Store, StoreError, StoreExt, StoreResult, Writer};
use agents_domain::{Error, ErrorKind, Result};

pub use entries::RegistryEntry;
pub use facade::{METHOD_PREFIX, Operation, OperationInfo, catalogue};
pub use lookup::Named;
pub use surroundings::{Nowhere, Surroundings, find_program, is_program};

/// Starts the worker of a plan in a process of its own and returns at once.
pub trait WorkerSpawner: Send + Sync {
    /// `Err` is a reason for people.
    fn spawn(&self, plan: PlanId) -> std::result::Result<(), String>;
}

/// What an engine is made of; the composition root fills it in.
pub struct Parts {
    /// The shared truth.
    pub store: Arc<dyn Store>,
    /// The actors plans can name.
    pub actors: Arc<dyn Actors>,
    /// External language servers.
    pub language_servers: Arc<dyn LanguageServers>,
    /// Starts workers.
    pub spawner: Arc<dyn WorkerSpawner>,
    /// Resolved configuration.
    pub config: Arc<Config>,
    /// Where sandboxes, journals and blobs live; absolute.
    pub data_dir: PathBuf,
    /// Who acts, for the audit log and commits.
    pub user: String,
}

/// The engine; its clones are one and the same.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    actors: Arc<dyn Actors>,
    language_servers: Arc<dyn LanguageServers>,
    spawner: Arc<dyn WorkerSpawner>,
    config: Arc<Config>,
    data_dir: PathBuf,
    user: String,
    surroundings: Arc<dyn Surroundings>,
    installer: Option<Arc<dyn ServerInstaller>>,
    code_indexes: Option<Arc<dyn CodeIndexes>>,
    mcp_servers: Option<Arc<dyn McpServers>>,
    python: Arc<python::Python>,
    /// When this process last started a worker for a plan, and how often in a row.
    starts: Arc<Mutex<HashMap<PlanId, (Instant, u32)>>>,
    /// Plans whose left-behind sandbox this process has tried to remove.
    swept: Arc<Mutex<HashSet<PlanId>>>,
}

/// The longest wait between two workers for a plan whose workers keep dying.
const LONGEST_RESTART_WAIT: Duration = Duration::from_secs(60);

impl Engine {
    /// Puts an engine together.
    pub fn new(parts: Parts) -> Self {
        let Parts { store, actors, language_servers, spawner, config, data_dir, user } = parts;
        let starts = Arc::default();
        let surroundings = Arc::new(Nowhere);
        let (installer, code_indexes) = (None, None);
        Self {
            store,
            actors,
            language_servers,
            spawner,
            config,
            data_dir,
            user,
            surroundings,
            installer,
            code_indexes,
            mcp_servers: None,
            python: Arc::default(),
            starts,
            swept: Arc::default(),
        }
    }

    /// Says what machine it runs on; without this it sees no environment and no programs.
    #[must_use]
    pub fn with_surroundings(self, surroundings: Arc<dyn Surroundings>) -> Self {
        Self { surroundings, ..self }
    }

    /// Lets it find and install programs of language servers; without this there are none.
    #[must_use]
    pub fn with_installer(self, installer: Arc<dyn ServerInstaller>) -> Self {
        Self { installer: Some(installer), ..self }
    }

    /// Lets it index source files; without this it knows nothing of them.
    #[must_use]
    pub fn with_code_indexes(self, code_indexes: Arc<dyn CodeIndexes>) -> Self {
        Self { code_indexes: Some(code_indexes), ..self }
    }

    /// Lets it connect to MCP servers; without this their tools are not there.
    #[must_use]
    pub fn with_mcp_servers(self, mcp_servers: Arc<dyn McpServers>) -> Self {
        Self { mcp_servers: Some(mcp_servers), ..self }
    }

    /// The indexes of source files, where there are any.
    pub fn code_indexes(&self) -> Option<&Arc<dyn CodeIndexes>> {
        self.code_indexes.as_ref()
    }

    /// The store, for watching changes by other processes.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// One consistent view of the store.
    pub(crate) fn view<T>(&self, f: impl FnMut(&dyn Reader) -> StoreResult<T>) -> Result<T> {
        Ok(self.store.view(f)?)
    }

    /// [`view`](Self::view) for what can fail in the words of operations.
    pub(crate) fn look<T>(&self, mut f: impl FnMut(&dyn Reader) -> Result<T>) -> Result<T> {
        self.view(|r| Ok(f(r)))?
    }

    /// One transaction; an error of `f` rolls everything back.
    pub(crate) fn write<T>(&self, mut f: impl FnMut(&dyn Writer) -> Result<T>) -> Result<T> {
        let mut failure = None;
        let done = self.store.transact(|w| {
            f(w).map_err(|error| {
                failure = Some(error);
                StoreError::Other("rolled back".to_owned())
            })
        });
        match (done, failure) {
            (Ok(value), _) => Ok(value),
            (Err(_), Some(error)) => Err(error),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// Starts a worker for every plan that wants one and has none; returns the plans it was started for.
    ///
    /// Called by whoever looks: a command, or the language server. A plan whose worker was killed goes on here.
    pub fn ensure_workers(&self) -> Result<Vec<PlanId>> {
        sandboxes::sweep(self);
        let mut started = Vec::new();
        let mut runnable = Vec::new();
        for plan in self.view(|r| r.runnable_plans())? {
            let home = self.home_of(plan)?;
            if !runnable.contains(&home) {
                runnable.push(home);
            }
        }
        self.starts().retain(|plan, _| runnable.contains(plan));
        for plan in runnable {
            let due = self.starts().get(&plan).is_none_or(|(at, count)| {
                let wait = Duration::from_millis(250 << (*count).min(10));
                at.elapsed() >= wait.min(LONGEST_RESTART_WAIT)
            });
            if due && !self.store.is_leased(plan)? {
                self.start_worker(plan)?;
                started.push(plan);
            }
        }
        Ok(started)
    }

    pub(crate) fn first_sweep_of(&self, plan: PlanId) -> bool {
        self.swept.lock().unwrap_or_else(PoisonError::into_inner).insert(plan)
    }

    fn starts(&self) -> MutexGuard<'_, HashMap<PlanId, (Instant, u32)>> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan whose worker works on a plan: the root of its tree, or the plan itself when it is applied or no plan above
    /// it is worked on any more.
    pub(crate) fn home_of(&self, plan: PlanId) -> Result<PlanId> {
        self.view(|r| {
            let mut home = plan;
            let mut at = r.plan(plan)?.filter(|p| p.phase != Phase::Apply);
            while let Some(parent) =
                at.and_then(|p| p.parent_plan_id).map(|id| r.plan(id)).transpose()?.flatten()
            {
                if parent.status().ended() {
                    break;
                }
                home = parent.plan_id;
                at = Some(parent);
            }
            Ok(home)
        })
    }

    /// Whether a live worker has the plan: its own, or the one of the tree it is part of.
    pub(crate) fn is_attended(&self, plan: PlanId) -> Result<bool> {
        Ok(self.store.is_leased(plan)? || self.store.is_leased(self.home_of(plan)?)?)
    }

    fn start_worker(&self, plan: PlanId) -> Result<()> {
        let home = self.home_of(plan)?;
        if home != plan {
            // The worker of the tree has the child too, as soon as the tree is worked on.
            let wanted = self.view(|r| {
                Ok(r.plan(home)?.is_some_and(|p| p.status().wants_worker()) || r.rewind(plan)?.is_some())
            })?;
            if !wanted || self.store.is_leased(home)? {
                return Ok(());
            }
        }
        let plan = home;
        let mut starts = self.starts();
        let count = starts.get(&plan).map_or(0, |(_, count)| *count);
        starts.insert(plan, (Instant::now(), count + 1));
        drop(starts);
        self.spawner.spawn(plan).map_err(|reason| {
            Error::new(
                ErrorKind::PlanError,
                format!("the worker of plan {plan} could not be started: {reason}"),
            )
            .suggest(format!("agents plan execute {plan}"))
        })
    }
}
