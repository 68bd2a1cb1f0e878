//! What must not be changed: a read-only plan, and a resource that is linked read-only. PLAN-018, C-05.

use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_domain::ports::actor::Actor;
use serde_json::{Value, json};

use crate::harness::{Bench, git};

fn decision(key: &str, kind: &str, parent: Value) -> Value {
    json!({
        "request": "record_decision", "key": key, "decision_type": kind, "parent": parent, "question": "What now?",
        "chosen": 0, "alternatives": [{ "option": "Fix it" }, { "option": "Leave alone" }], "confidence": 0.9,
        "rationale": "because", "reasoning": null, "resources": [], "depends_on": [], "context": null,
    })
}

fn write(call: &str, resource: &str) -> Value {
    json!({
        "request": "tool", "call_id": call, "tool": "builtin/apply-edits", "decision": "fix/x",
        "args": { "resource": resource, "edits": [{ "op": "create", "path": "new.txt", "text": "new\n" }] },
    })
}

/// Decides, then tries to write to each of these resources, a step for each, and sees what comes of it.
fn bench(tries: &[(&str, Value)]) -> Bench {
    let mut execute =
        vec![json!({ "requests": [decision("fix/x", "implementation_choice", json!("strategy/x"))] })];
    for (at, (resource, _)) in tries.iter().enumerate() {
        let mut step = json!({ "requests": [write(&at.to_string(), resource)] });
        if at > 0 {
            step["expect"] = json!({ "observations": [tries[at - 1].1] });
        }
        execute.push(step);
    }
    execute.push(json!({
        "expect": { "observations": [tries[tries.len() - 1].1] },
        "outcome": { "done": { "headline": "looked", "lines": [], "facts": null } },
    }));
    let script = json!({
        "strategize": [{ "requests": [decision("strategy/x", "strategy_choice", Value::Null)] }],
        "execute": execute,
    });
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(script));
    Bench::new(&[("a.txt", "one\n")], &[("test/scripted", actor)])
}

#[test]
fn a_read_only_plan_writes_nothing_and_ends_applied() {
    let refused = json!({ "observed": "failed", "message": "builtin/apply-edits: the plan is read-only" });
    let bench = bench(&[("${resource}", refused)]);
    bench.action("local/look", "test/scripted", "test/scripted", "read_only: true\n");
    let plan = bench.plan("local/look", "trusted");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(bench.ok("plan/diff", json!({ "plan": plan }))["diff_summary"]["files_changed"], 0);
    assert_eq!(bench.ok("plan/artifacts", json!({ "plan": plan }))["artifacts"], json!([]));
    // Whatever the checkout is in the middle of is not in the way of nothing.
    std::fs::write(bench.repo().join("a.txt"), "two\n").unwrap();
    std::fs::write(bench.repo().join(".git/MERGE_HEAD"), git(&bench.repo(), &["rev-parse", "HEAD"])).unwrap();
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    assert_eq!(bench.status(&plan)["result"]["artifacts"], 0);
    assert_eq!(git(&bench.repo(), &["rev-list", "--count", "HEAD"]), "1");
    assert_eq!(std::fs::read_to_string(bench.repo().join("a.txt")).unwrap(), "two\n");
}

#[test]
fn of_two_resources_the_read_only_one_is_not_written_and_the_other_is_applied() {
    let refused = json!({ "observed": "failed", "message": "builtin/apply-edits: resource local/lib is linked read-only" });
    let bench = bench(&[
        ("${resource:local/lib}", refused),
        ("${resource:local/repo}", json!({ "observed": "tool" })),
    ]);
    bench.action("local/act", "test/scripted", "test/scripted", "");
    let lib = bench.dir.path().join("lib");
    std::fs::create_dir(&lib).unwrap();
    git(&lib, &["init", "-q", "-b", "main"]);
    git(&lib, &["commit", "-q", "--allow-empty", "-m", "start"]);
    bench.ok(
        "registry/resource/add",
        json!({ "resource_type": "git-checkout", "name": "local/lib", "properties": { "path": lib } }),
    );
    bench.ok(
        "project/link_resource",
        json!({ "project": "local/app", "resource": "local/lib", "read_only": true }),
    );
    let plan = bench.plan("local/act", "trusted");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    assert!(bench.repo().join("new.txt").exists() && !lib.join("new.txt").exists());
    assert_eq!(git(&lib, &["rev-list", "--count", "HEAD"]), "1");
    assert_eq!(bench.status(&plan)["result"]["applied"].as_array().map(Vec::len), Some(1));
}
