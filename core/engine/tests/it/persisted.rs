//! What a plan did is there for whoever looks later, from the database alone.

use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_config::Config;
use agents_domain::ports::actor::Actor;
use agents_engine::{Engine, Parts};
use agents_store::SqliteStore;
use serde_json::{Value, json};

use crate::harness::{Asked, Bench, Cast, NoServers};
use crate::lifecycle::choose_and_edit;

/// Another process on the same data: nothing is in its memory.
fn elsewhere(bench: &Bench) -> Engine {
    let data_dir = bench.dir.path().join("data");
    Engine::new(Parts {
        store: Arc::new(SqliteStore::open(&data_dir, agents_store::Options::default()).unwrap()),
        actors: Arc::new(Cast::default()),
        language_servers: Arc::new(NoServers),
        spawner: Arc::new(Asked::default()),
        config: Arc::new(Config::defaults(&data_dir)),
        data_dir,
        user: "tester".to_owned(),
    })
}

/// What every view says, without what depends on the moment.
fn views(engine: &Engine, plan: &str) -> Vec<Value> {
    ["plan/status", "plan/tree", "plan/diff", "plan/artifacts", "plan/errors", "plan/guard"]
        .into_iter()
        .map(|method| {
            let mut view = engine.call_json(method, json!({ "plan": plan })).unwrap();
            if let Some(view) = view.as_object_mut() {
                for now in ["timing", "elapsed", "strategy_progress"] {
                    view.remove(now);
                }
            }
            view
        })
        .collect()
}

// PLAN-013, CKPT-011: after each phase everything that is told of it is told by a process that was not there
#[test]
fn what_each_phase_left_is_read_back_by_another_process() {
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(choose_and_edit()));
    let bench = Bench::new(&[("a.txt", "one\ntwo\nthree\n")], &[("test/scripted", actor)]);
    bench.action("local/act", "test/scripted", "test/scripted", "");
    bench.ok(
        "registry/validation/add",
        json!({ "config": "v.yaml", "text": "name: local/two\ncommand: [grep, -q, TWO, a.txt]\n" }),
    );
    let attachment = json!({ "validation": "local/two", "resource": "local/repo", "project": "local/app" });
    bench.ok("validation/attach", attachment);
    let plan = bench.plan("local/act", "supervised");
    assert_eq!(bench.at(&plan), "strategize/complete+execute_approval");
    assert_eq!(views(&elsewhere(&bench), &plan), views(&bench.engine, &plan));
    let status = bench.status(&plan);
    assert_eq!(status["summaries"]["strategize"]["headline"], "decided");

    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(views(&elsewhere(&bench), &plan), views(&bench.engine, &plan));
    let status = bench.status(&plan);
    assert_eq!(status["summaries"]["execute"]["headline"], "did it");
    assert_eq!(status["execution"]["tool_calls"], 1);
    assert_eq!(status["validation_summary"][0]["passed"], true);

    // Guards read what is stored: the other process refuses what this one would.
    let checkpoint = bench.ok("plan/artifacts", json!({ "plan": plan }))["checkpoints"][0]["id"].clone();
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied");
    let (here, there) = (views(&bench.engine, &plan), views(&elsewhere(&bench), &plan));
    assert_eq!(there, here);
    assert_eq!(here[0]["final_validation_results"], json!({ "local/two": true }), "{:#}", here[0]);
    let back = json!({ "plan": plan, "checkpoint": checkpoint });
    let refused = elsewhere(&bench).call_json("plan/rollback", back.clone()).unwrap_err();
    assert_eq!(refused.message, bench.err("plan/rollback", back).message);
}
