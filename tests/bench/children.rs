//! 50 child plans that do nothing but tool work, ten at a time, against the same plans by themselves.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents_actors::BuiltIn;
use agents_actors::scripted::Scripted;
use agents_config::Config;
use agents_domain::ids::PlanId;
use agents_domain::ports::store::{Store, StoreExt};
use agents_e2e::{World, scripts};
use agents_engine::testing::{Asked, NoServers};
use agents_engine::{Engine, Parts, worker};
use serde_json::{Value, json};

use crate::{Figure, fixtures};

/// Child plans.
const CHILDREN: usize = 50;
/// Times all of it is done.
const RUNS: usize = 3;

/// An engine in this process: no other process and no language server takes part.
struct Place {
    engine: Engine,
    store: Arc<dyn Store>,
    _world: World,
}

impl Place {
    fn new() -> Self {
        let world = World::new();
        let files: Vec<(String, String)> =
            (0..CHILDREN).map(|n| (format!("file_{n}.txt"), "one\ntwo\nthree\n".to_owned())).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
        let repo = world.repo_with("repo", &files);
        let store: Arc<dyn Store> = Arc::new(fixtures::store(world.data()));
        let actor = "test/scripted".parse().expect("a name");
        let engine = Engine::new(Parts {
            store: store.clone(),
            actors: Arc::new(BuiltIn::new().with(actor, Arc::new(Scripted::from_arguments()))),
            language_servers: Arc::new(NoServers),
            spawner: Arc::new(Asked::default()),
            config: Arc::new(Config::defaults(world.data())),
            data_dir: world.data().to_owned(),
            user: "bench".to_owned(),
        });
        let place = Self { engine, store, _world: world };
        place.register(repo.path());
        place
    }

    fn register(&self, repo: &Path) {
        let resource = json!({
            "resource_type": "git-checkout", "name": "local/repo", "properties": { "path": repo },
        });
        self.call("registry/resource/add", resource);
        self.call("registry/project/create", json!({ "name": "local/app", "resources": ["local/repo"] }));
        let text = "name: local/act\ndescription: Play a script\ndefinition_of_done: It is played\n\
            strategy_actor: test/scripted\nexecution_actor: test/scripted\n\
            arguments:\n  - {name: script, type: string}\nsubplan: { max_parallel: 10 }\n";
        self.call("registry/action/create", json!({ "config": "action.yaml", "text": text }));
    }

    fn call(&self, method: &str, params: Value) -> Value {
        self.engine.call_json(method, params).unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    /// Works on a plan of a script to the end of its Execute.
    fn run(&self, script: &Value) -> (PlanId, Duration) {
        let begun = Instant::now();
        let made = self.call(
            "plan/use",
            json!({
                "action": "local/act", "projects": ["local/app"], "automation_profile": "trusted",
                "arguments": { "script": script.to_string() },
            }),
        );
        let plan: PlanId = made["plan_id"].as_str().and_then(|id| id.parse().ok()).expect("a plan has an id");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(worker::run(&self.engine, plan)).expect("the worker ends well");
        let status = self.call("plan/status", json!({ "plan": plan }));
        assert_eq!((status["phase"].as_str(), status["state"].as_str()), (Some("execute"), Some("complete")));
        (plan, begun.elapsed())
    }

    /// From the first child that was made to the last that was done: what comes after is taking their work in.
    fn span(&self, plan: PlanId) -> Duration {
        let events = self.store.view(|r| r.events_after(0, None, usize::MAX)).expect("events can be read");
        let at = |name: &'static str| {
            events.iter().filter(move |e| e.event_type == name && e.plan_id == Some(plan))
        };
        let first = at("plan.child_spawned").next().expect("children were made").timestamp;
        let merged = at("plan.child_merged").next().expect("their work was taken in").timestamp;
        Duration::from_millis(merged.millis_since(first))
    }
}

pub fn measure() -> Vec<Figure> {
    let script = |n: usize| scripts::editing(&format!("file_{n}.txt"), 1, "TWO\n");
    let (mut alone, mut whole, mut overhead) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let place = Place::new();
        let by_themselves: Duration = (0..CHILDREN).map(|n| place.run(&script(n)).1).sum();
        let place = Place::new();
        let spawns: Vec<Value> = std::iter::once(scripts::decision("all", "subplan_parallel_spawn", None))
            .chain(
                (0..CHILDREN)
                    .map(|n| scripts::spawn(&format!("child-{n}"), Some("all"), &[], &[], &script(n))),
            )
            .collect();
        let (plan, took) = place.run(&scripts::handing_on(&spawns));
        let children = place.span(plan);
        overhead.push((children.as_secs_f64() / by_themselves.as_secs_f64() - 1.0) * 100.0);
        alone.push(by_themselves);
        whole.push(took);
    }
    let what = "one edit each; sandboxes, commits and records included";
    vec![
        Figure::times("50 plans by themselves", what, &alone),
        Figure::times("50 child plans, 10 at a time, and taken in", what, &whole),
        Figure::values(
            "50 child plans, 10 at a time: more than by themselves",
            "from the first child to the first that is taken in, against the same plans one after the other",
            "%",
            overhead,
        )
        .budget("p50", 5.0),
    ]
}
