//! Corrections where something is in the way: a worker at work, texts that are gone, checkpoints that were pruned.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use agents_actors::scripted::Scripted;
use agents_domain::plan::Phase;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutput};
use serde_json::{Value, json};

use super::corrections::{A, World, script};
use crate::harness::Bench;

// CORR-021, CORR-022, 4.4.2, C-35: without the checkpoints of a decision all of Execute is done again, and it is said
#[test]
fn what_has_no_checkpoints_any_more_is_taken_back_with_all_of_execute() {
    let world = World::with_env(script(), &[("CLEVERAGENTS_CHECKPOINT_MAX", "2")]);
    let plan = world.bench.plan("local/act", "trusted");
    assert_eq!(world.bench.at(&plan), "execute/complete+apply_approval");
    let whole = world.sandbox(&plan, "a.txt");
    let x = world.id(&plan, "i/x");
    let ask = json!({ "decision": x, "mode": "revert", "guidance": "Leave alone", "dry_run": true });
    let dry = world.bench.ok("plan/correct", ask);
    assert_eq!((&dry["tier"], &dry["rejected"]), (&json!("phase"), &json!(false)));
    assert!(dry["warnings"][0].as_str().unwrap().contains("All of Execute is taken back"), "{dry}");
    assert_eq!(dry["would_revert"]["decisions_to_invalidate"].as_array().unwrap().len(), 3);
    let strategies: Vec<Value> = ["s/x", "s/y", "s/z"].iter().map(|k| world.about(&plan, k)).collect();
    world.steps();
    world.correct(&x, "Leave alone");
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "execute/complete+apply_approval", "{}", world.bench.status(&plan));
    assert_eq!(world.steps().iter().filter(|(phase, _)| *phase == Phase::Execute).count(), 4);
    let without = whole.map(|text| text.replace("two", "2"));
    assert_eq!(world.sandbox(&plan, "a.txt"), without, "what was decided otherwise is not written");
    assert!(strategies.iter().all(|s| world.decisions(&plan).contains(s)));
}

/// Plays a script; its first step of Execute takes until it is told to stop.
struct Slow {
    script: Scripted,
    at: Arc<AtomicUsize>,
}

impl Actor for Slow {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            if input.phase == Phase::Execute && self.at.fetch_add(1, SeqCst) == 0 {
                while !host.stopping() {
                    std::thread::yield_now();
                }
            }
            self.script.step(input, host).await
        })
    }
}

// C-51, 4.1.4, T45: the worker that is at it ends its step without a trace and takes the work back itself
#[test]
fn a_decision_is_corrected_under_a_worker_at_work() {
    let at = Arc::new(AtomicUsize::new(0));
    let actor: Arc<dyn Actor> = Arc::new(Slow { script: Scripted::new(script()), at: at.clone() });
    let bench = Bench::new(&[("a.txt", A), ("b.txt", "b\n")], &[("test/scripted", actor)]);
    bench.action("local/act", "test/scripted", "test/scripted", "");
    let plan = bench.plan("local/act", "supervised");
    let decision = |question: &str, plan: &str| {
        let tree = bench.ok("plan/tree", json!({ "plan": plan }));
        let of = |node: &Value| node["children"].as_array().unwrap().clone();
        let found = of(&tree["tree"]).into_iter().find(|d| d["question"] == question).unwrap();
        found["decision_id"].as_str().unwrap().to_owned()
    };
    bench.ok("plan/execute", json!({ "plan": plan }));
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| bench.work(&plan));
        while at.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        // A rollback waits until it pauses; a correction does not.
        assert!(bench.at(&plan) == "execute/processing");
        let target = decision("How about s/z?", &plan);
        let corrected = bench
            .ok("plan/correct", json!({ "decision": target, "mode": "revert", "guidance": "Leave alone" }));
        assert_eq!(
            (&corrected["phase"], &corrected["correction"]["attempt"]),
            (&json!("strategize"), &json!(2))
        );
        worker.join().unwrap();
    });
    assert_eq!(bench.at(&plan), "strategize/complete+execute_approval", "{}", bench.status(&plan));
    let tree = bench.ok("plan/tree", json!({ "plan": plan })).to_string();
    assert!(!tree.contains("How about i/x?"), "what the step would have decided is not there: {tree}");
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
}

/// Takes a stored content away.
fn lose(data: &Path, content: &str) {
    let mut folders = vec![data.join("blobs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read(&path).unwrap() == content.as_bytes() {
                std::fs::remove_file(&path).unwrap();
                return;
            }
        }
    }
    panic!("no such content is stored");
}

// CORR-024, T51
#[test]
fn a_correction_that_cannot_be_carried_out_fails_and_leaves_every_decision() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "trusted");
    let (before, text) = (world.decisions(&plan), world.sandbox(&plan, "b.txt"));
    let z = world.id(&plan, "i/z");
    let corrected = world.correct(&z, "Leave alone");
    lose(&world.bench.dir.path().join("data"), "b\n");
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "execute/errored");
    let errors = world.bench.ok("plan/errors", json!({ "plan": plan })).to_string();
    assert!(errors.contains("could not be taken back") && errors.contains("b.txt"), "{errors}");
    assert_eq!(world.decisions(&plan), before);
    assert_eq!(world.sandbox(&plan, "b.txt"), text);
    assert_eq!(world.bench.status(&plan)["rewinding"], false);
    let explained = world.bench.ok("plan/explain", json!({ "decision": z }));
    let made = &explained["corrections"][0];
    assert_eq!((&made["state"], &explained["status"]), (&json!("failed"), &json!("active")));
    assert_eq!(made["correction_attempt_id"], corrected["correction"]["correction_attempt_id"]);
    assert!(made["failure"].as_str().unwrap().contains("b.txt"), "{made}");
    // Another way leads on: all of Execute from its base, which git has.
    let again = world.correct(&z, "Leave alone");
    assert_eq!(again["tier"], "phase", "{again}");
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "execute/complete+apply_approval", "{}", world.bench.status(&plan));
    assert_eq!(world.sandbox(&plan, "b.txt").unwrap(), "b\n");
}
