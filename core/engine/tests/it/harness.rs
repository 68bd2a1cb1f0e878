//! An engine in a directory of its own, whose workers run in this process when a test says so.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use agents_config::Config;
use agents_domain::QualifiedName;
use agents_domain::changes::FileDiff;
use agents_domain::ids::ResourceId;
use agents_domain::invariant::{Enforced, Invariant, Reconciled, SetAside, Why};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, Actors, Reconciler, Verdict};
pub use agents_engine::testing::{Asked, NoServers, git};
use agents_engine::worker::{self, Ended};
use agents_engine::{Engine, Parts};
use agents_store::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Actors by name.
#[derive(Default)]
pub struct Cast(pub BTreeMap<String, Arc<dyn Actor>>);

impl Actors for Cast {
    fn find(&self, name: &QualifiedName) -> Option<Arc<dyn Actor>> {
        self.0.get(&name.to_string()).cloned()
    }

    fn names(&self) -> Vec<QualifiedName> {
        self.0.keys().map(|name| name.parse().unwrap()).collect()
    }

    fn reconciler(&self, name: &QualifiedName) -> Option<Arc<dyn Reconciler>> {
        self.0.contains_key(&name.to_string()).then(|| Arc::new(Keeper) as Arc<dyn Reconciler>)
    }

    fn reconcilers(&self) -> Vec<QualifiedName> {
        self.names()
    }
}

/// Sets aside what says `weak` for the first that does not, and finds that lines with `BAD` break what says `good`.
struct Keeper;

impl Reconciler for Keeper {
    fn reconcile<'a>(&'a self, all: &'a [Invariant]) -> BoxFuture<'a, Result<Reconciled, ActorFailure>> {
        let (weak, strong): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|i| i.text.contains("weak"));
        let by = strong.first().map(|i| i.invariant_id);
        let aside = |invariant: Invariant| SetAside {
            by: by.unwrap_or(invariant.invariant_id),
            invariant,
            why: Why::Overridden,
            reason: "it is weak".to_owned(),
        };
        let set_aside = weak.into_iter().map(aside).collect();
        Box::pin(async { Ok(Reconciled { effective: strong, set_aside }) })
    }

    fn judge<'a>(
        &'a self,
        invariants: &'a [Enforced],
        changes: &'a [(ResourceId, FileDiff)],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, ActorFailure>> {
        let bad = changes.iter().any(|(_, file)| file.patch.contains("+BAD"));
        let verdict = |i: &Enforced| Verdict {
            decision_id: i.decision_id,
            kept: !bad,
            evidence: "a line is BAD".to_owned(),
        };
        let verdicts = invariants.iter().filter(|i| i.text.contains("good")).map(verdict).collect();
        Box::pin(async { Ok(verdicts) })
    }
}

/// An engine with a git repository of its own, registered as `local/repo` in project `local/app`.
pub struct Bench {
    pub dir: TempDir,
    pub engine: Engine,
    pub asked: Arc<Asked>,
}

impl Bench {
    /// A repository with these files committed, and these actors.
    pub fn new(files: &[(&str, &str)], actors: &[(&str, Arc<dyn Actor>)]) -> Self {
        Self::with_env(files, actors, &[])
    }

    /// [`Bench::new`] under settings of the environment.
    pub fn with_env(files: &[(&str, &str)], actors: &[(&str, Arc<dyn Actor>)], env: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        let repo = dir.path().join("repo");
        std::fs::create_dir(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        for (path, text) in files {
            std::fs::create_dir_all(repo.join(path).parent().unwrap()).unwrap();
            std::fs::write(repo.join(path), text).unwrap();
        }
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-q", "--allow-empty", "-m", "start"]);
        let data_dir = dir.path().join("data");
        let asked = Arc::new(Asked::default());
        let cast = actors.iter().map(|(name, actor)| ((*name).to_owned(), actor.clone())).collect();
        let data = data_dir.display().to_string();
        let of = |name: &str| match name {
            "CLEVERAGENTS_DATA_DIR" => Some(data.clone()),
            _ => env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()),
        };
        let config = match env {
            [] => Config::defaults(&data_dir),
            _ => Config::load(agents_config::Parts { flags: Vec::new(), env: &of, file: None }).unwrap(),
        };
        let engine = Engine::new(Parts {
            store: Arc::new(SqliteStore::open(&data_dir, agents_store::Options::default()).unwrap()),
            actors: Arc::new(Cast(cast)),
            language_servers: Arc::new(NoServers),
            spawner: asked.clone(),
            config: Arc::new(config),
            data_dir,
            user: "tester".to_owned(),
        });
        let bench = Self { dir, engine, asked };
        bench.ok(
            "registry/resource/add",
            json!({
                "resource_type": "git-checkout", "name": "local/repo", "properties": { "path": bench.repo() },
            }),
        );
        bench.ok("registry/project/create", json!({ "name": "local/app", "resources": ["local/repo"] }));
        bench
    }

    pub fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub fn ok(&self, method: &str, params: Value) -> Value {
        self.engine.call_json(method, params).unwrap_or_else(|e| panic!("{method}: {e:?}"))
    }

    pub fn err(&self, method: &str, params: Value) -> agents_domain::Error {
        match self.engine.call_json(method, params) {
            Err(error) => error,
            Ok(value) => panic!("{method} should have been refused: {value}"),
        }
    }

    /// Registers an action on two actors.
    pub fn action(&self, name: &str, strategy: &str, execution: &str, more: &str) {
        let text = format!(
            "name: {name}\ndescription: Test\ndefinition_of_done: Done\nstrategy_actor: {strategy}\nexecution_actor: {execution}\n{more}"
        );
        self.ok("registry/action/create", json!({ "config": "action.yaml", "text": text }));
    }

    /// Runs a plan's worker until it pauses, as the process that was asked for would.
    pub fn work(&self, plan: &str) -> Ended {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(worker::run(&self.engine, plan.parse().unwrap())).unwrap()
    }

    /// Makes a plan, starts Strategize where the profile asks first, and works on it until it pauses.
    pub fn plan(&self, action: &str, profile: &str) -> String {
        let made = self.ok(
            "plan/use",
            json!({
                "action": action, "projects": ["local/app"], "automation_profile": profile,
            }),
        );
        let id = made["plan_id"].as_str().unwrap().to_owned();
        if !made["awaiting"].is_null() {
            self.ok("plan/execute", json!({ "plan": id }));
        }
        self.work(&id);
        id
    }

    pub fn status(&self, plan: &str) -> Value {
        self.ok("plan/status", json!({ "plan": plan }))
    }

    /// `strategize/complete+execute_approval` and the like.
    pub fn at(&self, plan: &str) -> String {
        let status = self.status(plan);
        let awaiting = status["awaiting"]["kind"].as_str().map(|k| format!("+{k}")).unwrap_or_default();
        format!("{}/{}{awaiting}", status["phase"].as_str().unwrap(), status["state"].as_str().unwrap())
    }
}
