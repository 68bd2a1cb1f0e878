//! A desk with a real engine: a git repository of its own, a store, a scripted actor whose workers run when a test says
//! so, and editors that open on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_config::Config;
use agents_domain::QualifiedName;
use agents_domain::ids::PlanId;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, Actors, StepInput, StepOutput};
use agents_domain::ports::store::StoreExt;
pub use agents_engine::testing::git;
use agents_engine::testing::{Asked, NoServers};
use agents_engine::worker::{self, Ended};
use agents_engine::{Engine, Parts};
use agents_lsp_server::documents::DocumentUri;
use agents_lsp_server::testing::{Builder, TestServer};
use agents_lsp_server::{EditorOptions, editor};
use agents_store::{Options, SqliteStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;

const RESOURCE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// What a modern editor says it can do, as far as it changes what the server does without being asked.
pub fn capable() -> Value {
    json!({
        "workspace": {
            "codeLens": { "refreshSupport": true },
            "inlayHint": { "refreshSupport": true },
            "diagnostics": { "refreshSupport": true },
        },
        "window": { "workDoneProgress": true },
        "textDocument": {
            "hover": { "contentFormat": ["markdown", "plaintext"] },
            "diagnostic": {},
            "publishDiagnostics": { "relatedInformation": true, "dataSupport": true },
            "codeAction": { "codeActionLiteralSupport": { "codeActionKind": { "valueSet": [] } }, "isPreferredSupport": true },
        },
    })
}

/// A client that shows Markdown and is otherwise minimal.
pub fn plain() -> Value {
    json!({ "textDocument": { "hover": { "contentFormat": ["markdown"] } } })
}

/// A client that pulls diagnostics and is otherwise minimal.
pub fn pulling() -> Value {
    json!({ "textDocument": { "diagnostic": {} }, "workspace": { "diagnostics": { "refreshSupport": true } } })
}

/// Plays a script, a step each time the gate lets one through.
struct Gated {
    script: Scripted,
    gate: Arc<Semaphore>,
}

impl Actor for Gated {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            self.gate.acquire().await.unwrap().forget();
            self.script.step(input, host).await
        })
    }
}

struct Cast(Arc<dyn Actor>);

impl Actors for Cast {
    fn find(&self, _: &QualifiedName) -> Option<Arc<dyn Actor>> {
        Some(self.0.clone())
    }

    fn names(&self) -> Vec<QualifiedName> {
        vec!["test/scripted".parse().unwrap()]
    }
}

pub struct Desk {
    dir: TempDir,
    actor: Arc<dyn Actor>,
    asked: Arc<Asked>,
    /// How many steps the actor may take.
    pub gate: Arc<Semaphore>,
    /// The engine of the editors.
    pub engine: Arc<Engine>,
}

impl Desk {
    /// A repository with these files committed, registered as `local/repo` in project `local/app`, and an action
    /// `local/act` that plays a script.
    pub fn new(files: &[(&str, &str)], script: Value) -> Self {
        let desk = Self::gated(files, script);
        desk.gate.add_permits(1000);
        desk
    }

    /// Like [`Self::new`], with an actor that waits at its gate before each step.
    pub fn gated(files: &[(&str, &str)], script: Value) -> Self {
        let dir = TempDir::new().unwrap();
        let repo = dir.path().join("repo");
        for (path, text) in files {
            std::fs::create_dir_all(repo.join(path).parent().unwrap()).unwrap();
            std::fs::write(repo.join(path), text).unwrap();
        }
        git(&repo, &["init", "-q", "-b", "main"]);
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-q", "-m", "start"]);
        let gate = Arc::new(Semaphore::new(0));
        let actor: Arc<dyn Actor> = Arc::new(Gated { script: Scripted::new(script), gate: gate.clone() });
        let asked = Arc::<Asked>::default();
        let engine = Arc::new(engine(dir.path(), actor.clone(), asked.clone()));
        let desk = Self { dir, actor, asked, gate, engine };
        desk.register();
        desk
    }

    /// The same desk with an index of source files.
    pub fn indexed(mut self) -> Self {
        let indexes = Arc::new(agents_context::Indexes::new(&self.dir.path().join("data")));
        self.engine = Arc::new(self.other().with_code_indexes(indexes));
        self
    }

    fn register(&self) {
        let now = "2026-02-08T12:44:00Z";
        let resource = json!({
            "resource_id": RESOURCE, "name": "local/repo", "resource_type": "git-checkout", "description": null,
            "location": self.repo(), "properties": {}, "parents": [], "created_at": now, "updated_at": now,
        });
        let project = json!({
            "name": "local/app", "description": null, "invariant_actor": null, "created_at": now, "updated_at": now,
            "resources": [{ "resource_id": RESOURCE, "read_only": false }],
        });
        let action = json!({
            "definition": {
                "name": "local/act", "description": "Test", "definition_of_done": "Done",
                "strategy_actor": "test/scripted", "execution_actor": "test/scripted",
            },
            "config_path": "action.yaml", "source": "", "created_at": now, "updated_at": now,
        });
        let (resource, project, action) = (
            serde_json::from_value(resource).unwrap(),
            serde_json::from_value(project).unwrap(),
            serde_json::from_value(action).unwrap(),
        );
        self.engine
            .store()
            .transact(|w| {
                w.insert_resource(&resource)?;
                w.insert_project(&project)?;
                w.insert_action(&action)
            })
            .unwrap();
    }

    pub fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub fn uri(&self, path: &str) -> String {
        DocumentUri::from_path(&self.repo().join(path)).unwrap().as_str().to_owned()
    }

    pub fn write(&self, path: &str, text: &str) {
        std::fs::write(self.repo().join(path), text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.repo().join(path)).unwrap()
    }

    /// An engine as another process has it.
    pub fn other(&self) -> Engine {
        engine(self.dir.path(), self.actor.clone(), Arc::default())
    }

    /// The plans the editors' engine asked workers for, in order.
    pub fn started(&self) -> Vec<PlanId> {
        self.asked.0.lock().unwrap().clone()
    }

    pub fn ok(&self, method: &str, params: Value) -> Value {
        self.engine.call_json(method, params).unwrap_or_else(|e| panic!("{method}: {e:?}"))
    }

    /// Makes a plan, starts it where its profile leaves that to a person, and works on it until it pauses.
    pub fn plan(&self, profile: &str) -> String {
        let plan = self.queued(profile);
        if self.at(&plan) == "strategize/queued+confirm_strategize" {
            self.ok("plan/execute", json!({ "plan": plan }));
        }
        self.work(&plan);
        let status = self.ok("plan/status", json!({ "plan": plan }));
        assert_eq!(status["error"], Value::Null);
        plan
    }

    /// Makes a plan and leaves it to a worker.
    pub fn queued(&self, profile: &str) -> String {
        let params =
            json!({ "action": "local/act", "projects": ["local/app"], "automation_profile": profile });
        self.ok("plan/use", params)["plan_id"].as_str().unwrap().to_owned()
    }

    /// Runs a plan's worker until it pauses, as another process would.
    pub fn work(&self, plan: &str) -> Ended {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let engine = self.other();
        runtime.block_on(worker::run(&engine, plan.parse().unwrap())).unwrap()
    }

    /// Applies a plan that waits for it.
    pub fn apply(&self, plan: &str) {
        self.ok("plan/apply", json!({ "plan": plan }));
        self.work(plan);
        assert_eq!(self.at(plan), "apply/applied");
    }

    /// `execute/complete+apply_approval` and the like.
    pub fn at(&self, plan: &str) -> String {
        let status = self.ok("plan/status", json!({ "plan": plan }));
        let awaiting = status["awaiting"]["kind"].as_str().map(|k| format!("+{k}")).unwrap_or_default();
        format!("{}/{}{awaiting}", status["phase"].as_str().unwrap(), status["state"].as_str().unwrap())
    }

    /// An editor on the repository, without messages about plans.
    pub fn editor(&self, capabilities: Value) -> TestServer {
        self.editor_with(TestServer::builder().options(json!({ "notifications": false })), capabilities)
    }

    pub fn editor_with(&self, builder: Builder, capabilities: Value) -> TestServer {
        let options = EditorOptions { workers: None, ..EditorOptions::default() };
        let mut server = builder.folder(&self.uri("")).start(editor(self.engine.clone(), options));
        server.initialize(capabilities);
        server
    }

    /// Opens a file as it is on disk.
    pub fn open(&self, server: &mut TestServer, path: &str) -> String {
        let uri = self.uri(path);
        server.open(&uri, "plaintext", &self.read(path));
        uri
    }
}

fn engine(dir: &Path, actor: Arc<dyn Actor>, asked: Arc<Asked>) -> Engine {
    let data_dir = dir.join("data");
    Engine::new(Parts {
        store: Arc::new(SqliteStore::open(&data_dir, Options::default()).unwrap()),
        actors: Arc::new(Cast(actor)),
        language_servers: Arc::new(NoServers),
        spawner: asked,
        config: Arc::new(Config::defaults(&data_dir)),
        data_dir,
        user: "tester".to_owned(),
    })
}

pub fn done(headline: &str) -> Value {
    json!({ "done": { "headline": headline, "lines": [], "facts": null } })
}

/// A choice between `Fix it` and `Leave alone`.
pub fn decision(key: &str, kind: &str, parent: Value, confidence: f64) -> Value {
    json!({
        "request": "record_decision", "key": key, "decision_type": kind, "parent": parent,
        "question": format!("How about {key}?"), "chosen": 0,
        "alternatives": [
            { "option": "Fix it", "description": "as the server says" },
            { "option": "Leave alone", "description": "nothing is changed" },
        ],
        "confidence": confidence, "rationale": "because", "reasoning": null, "resources": [],
        "depends_on": [], "context": {},
    })
}

/// A place of a decision: bytes of a line.
pub fn place(path: &str, line: u32, from: u32, to: u32, note: Option<&str>) -> Value {
    json!({
        "resource_id": "${resource}", "path": path, "note": note,
        "range": { "start": { "line": line, "column": from }, "end": { "line": line, "column": to } },
    })
}

/// Replaces lines `from..to` (0-based) of a file under a decision.
pub fn edit(call: &str, decision: &str, path: &str, from: u32, to: u32, text: &str) -> Value {
    json!({
        "request": "tool", "call_id": call, "tool": "builtin/apply-edits", "decision": decision,
        "args": { "resource": "${resource}", "edits": [{ "op": "edit", "path": path, "edits": [{
            "range": { "start": { "line": from, "column": 0 }, "end": { "line": to, "column": 0 } },
            "new_text": text,
        }] }] },
    })
}

/// One choice of confidence 0.85, carried out by these edits under `impl/x`.
pub fn fix(edits: &[Value]) -> Value {
    let implementation = decision("impl/x", "implementation_choice", json!("strategy/x"), 0.75);
    let requests: Vec<Value> = std::iter::once(implementation).chain(edits.iter().cloned()).collect();
    json!({
        "strategize": [
            { "requests": [decision("strategy/x", "strategy_choice", Value::Null, 0.85)] },
            { "outcome": done("decided") },
        ],
        "execute": [
            {
                "requests": requests,
                "progress": { "label": "fixing", "done": 1, "total": 4 },
            },
            { "outcome": done("did it") },
        ],
    })
}

/// Two choices that wait in profile `cautious`: `strategy/x` at these places, and `strategy/y` nowhere.
pub fn question(places: &[Value]) -> Value {
    let mut x = decision("strategy/x", "strategy_choice", Value::Null, 0.5);
    x["resources"] = json!(places);
    json!({
        "strategize": [
            { "requests": [x, decision("strategy/y", "strategy_choice", Value::Null, 0.5)] },
            { "outcome": done("decided") },
        ],
    })
}
