//! Child plans beside each other and beside their parent: who is stopped, what is validated when, which profile holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use agents_domain::plan::{Phase, PhaseSummary};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutcome, StepOutput};
use serde_json::{Value, json};

use crate::child_plans::{
    FILE, bench, bench_with, child, container, decision, editing, parent, read, run, sandbox_file, spawn,
};
use crate::harness::Bench;

/// One child that fails once its sibling is at work, and one that gets nowhere until it is taken up a second time.
#[derive(Default)]
struct Siblings {
    begun: AtomicUsize,
}

impl Actor for Siblings {
    fn step<'a>(
        &'a self,
        input: StepInput,
        _: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            if input.phase == Phase::Execute
                && input.description == "Do slow"
                && self.begun.fetch_add(1, SeqCst) == 0
            {
                std::future::pending::<()>().await;
            }
            if input.phase == Phase::Execute && input.description == "Do bad" {
                while self.begun.load(SeqCst) == 0 {
                    tokio::task::yield_now().await;
                }
                let failure =
                    json!({ "message": "no way", "category": "actor", "transient": false, "hints": [] });
                return Err(serde_json::from_value(failure).unwrap());
            }
            Ok(StepOutput {
                state: Value::Null,
                requests: Vec::new(),
                progress: None,
                outcome: StepOutcome::Done(PhaseSummary::default()),
                cost: Default::default(),
            })
        })
    }
}

fn sibling(key: &str) -> Value {
    let mut one = decision(key, "subplan_spawn", json!("all"));
    one["spawn"] = json!({ "action": "local/sibling", "prompt": format!("Do {key}") });
    one
}

// SUB-004, SUB-007: fail-fast stops what runs, and keeps it for when the plan is taken up again
#[test]
fn failing_fast_stops_the_others_which_go_on_when_the_plan_does() {
    let siblings = Arc::new(Siblings::default());
    let more = "subplan: { fail_fast: true, retry_failed: false }\n";
    let bench = bench_with(more, &[("test/siblings", siblings.clone() as Arc<dyn Actor>)]);
    bench.action("local/sibling", "test/siblings", "test/siblings", "");
    let plan = run(&bench, "ci", parent(vec![container("all"), sibling("slow"), sibling("bad")]));
    assert_eq!(bench.at(&plan), "execute/errored");
    let (bad, slow) = (child(&bench, &plan, "bad"), child(&bench, &plan, "slow"));
    let error = bench.status(&plan)["error"]["message"].clone();
    assert_eq!(error, format!("child plan {bad} failed: no way (and 1 more)"));
    assert_eq!(bench.at(&slow), "execute/errored");
    assert_eq!(bench.status(&slow)["error"]["message"], "it was stopped because `bad` failed");

    bench.ok("plan/cancel", json!({ "plan": bad }));
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    assert_eq!(siblings.begun.load(SeqCst), 2);
}

// SUB-007: a time-out fails the child
#[test]
fn a_child_that_takes_too_long_fails() {
    let more = "subplan: { timeout_per_subplan_seconds: 1, retry_failed: false }\n";
    let bench = bench_with(more, &[("test/siblings", Arc::new(Siblings::default()) as Arc<dyn Actor>)]);
    bench.action("local/sibling", "test/siblings", "test/siblings", "");
    let plan = run(&bench, "ci", parent(vec![container("all"), sibling("slow")]));
    assert_eq!(bench.at(&plan), "execute/errored");
    let slow = child(&bench, &plan, "slow");
    assert_eq!(bench.at(&slow), "execute/errored");
    assert_eq!(bench.status(&slow)["error"]["category"], "timeout");
}

fn events(bench: &Bench, plan: &str) -> Vec<Value> {
    let all = bench.ok("events/after", json!({ "sequence": 0, "plan": plan, "limit": 10_000 }));
    all["events"].as_array().unwrap().clone()
}

// SUB-013, VALID-014: the parent is validated once everything is merged, on what the merge made
#[test]
fn the_merged_state_is_validated_after_the_last_merge() {
    let bench = bench();
    let show = "name: local/show\nshell: cat a.txt; exit 1\nvalidation: { mode: informational }\n";
    bench.ok("registry/validation/add", json!({ "config": "v.yaml", "text": show }));
    bench.ok("validation/attach", json!({ "validation": "local/show", "resource": "local/repo" }));
    let plan = run(
        &bench,
        "trusted",
        parent(vec![
            container("both"),
            spawn("first", json!("both"), &[], editing(1, "TWO\n")),
            spawn("second", json!("both"), &[], editing(7, "EIGHT\n")),
        ]),
    );
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    let all = events(&bench, &plan);
    let own = |kind: &str| {
        let of = |e: &&Value| e["event_type"] == kind && e["plan_id"] == plan.as_str();
        all.iter().filter(of).map(|e| e["sequence"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let (merged, validated) = (own("plan.child_merged"), own("validation.started"));
    assert_eq!((merged.len(), validated.len()), (2, 1));
    assert!(merged.iter().all(|at| *at < validated[0]), "{merged:?} {validated:?}");
    let said = bench.status(&plan)["validation_summary"][0].to_string();
    assert!(said.contains("TWO") && said.contains("EIGHT"), "{said}");
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("two", "TWO").replace("eight", "EIGHT"));
    // Each child was validated on its own work.
    let child = bench.status(&child(&bench, &plan, "first"))["validation_summary"][0].to_string();
    assert!(child.contains("TWO") && !child.contains("EIGHT"), "{child}");
}

fn profile_of(bench: &Bench, plan: &str) -> String {
    bench.ok("plan/guard", json!({ "plan": plan }))["profile"].as_str().unwrap().to_owned()
}

// PROF-024, PROF-025, C-18: a profile that a person changes under way holds for what comes after
#[test]
fn a_profile_changed_under_way_holds_for_later_gates_and_later_children() {
    let bench = bench();
    let asks = json!({
        "strategize": [{ "requests": [{ "request": "record_decision", "key": "strategy/line",
            "decision_type": "strategy_choice", "parent": null, "question": "Which?", "chosen": 0,
            "alternatives": [{ "option": "This" }, { "option": "That" }], "confidence": 0.1,
            "rationale": "because", "reasoning": null, "resources": [], "depends_on": [], "context": null }] }],
    });
    let script = parent(vec![
        spawn("first", Value::Null, &[], asks),
        spawn("second", Value::Null, &[], editing(1, "TWO\n")),
    ]);
    let plan = run(&bench, "cautious", script);
    // `cautious` asks about each spawn it is not sure of.
    while bench.at(&plan) == "execute/processing+spawn" || bench.at(&plan).starts_with("strategize/complete")
    {
        let start = if bench.at(&plan).starts_with("strategize") { "plan/execute" } else { "plan/prompt" };
        let params = match start {
            "plan/execute" => json!({ "plan": plan }),
            _ => json!({ "plan": plan, "guidance": "start" }),
        };
        bench.ok(start, params);
        bench.work(&plan);
    }
    assert_eq!(bench.at(&plan), "execute/processing+child_plan", "{}", bench.status(&plan));
    let first = child(&bench, &plan, "first");
    assert_eq!(profile_of(&bench, &first), "cautious");

    let missing = bench.err("plan/set-profile", json!({ "plan": plan, "automation_profile": "cautios" }));
    assert!(missing.suggestions[0].contains("cautious"), "{missing:?}");
    let changed = bench.ok("plan/set-profile", json!({ "plan": plan, "automation_profile": "ci" }));
    assert_eq!((&changed["previous"], &changed["automation_profile"]), (&json!("cautious"), &json!("ci")));
    let told = events(&bench, &plan);
    assert!(told.iter().any(|e| e["event_type"] == "plan.profile_changed" && e["details"]["to"] == "ci"));
    assert_eq!(profile_of(&bench, &first), "cautious", "a child that exists keeps its own");
    for _ in 0..4 {
        let status = bench.status(&first);
        let Some(answer) = status["awaiting"]["options"][0].as_str() else { break };
        bench.ok("plan/prompt", json!({ "plan": first, "guidance": answer }));
        bench.work(&plan);
    }
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    assert_eq!(profile_of(&bench, &child(&bench, &plan, "second")), "ci");
    assert_eq!(read(&bench), FILE.replace("two", "TWO"));
    let over = bench.err("plan/set-profile", json!({ "plan": plan, "automation_profile": "manual" }));
    assert!(over.message.contains("has ended"), "{over:?}");
}

// INV-012, SUB-010: children have their parent's invariants as resolved, without reconciling again
#[test]
fn a_child_has_its_parents_enforced_invariants_and_keeps_to_them() {
    let bench = bench();
    bench.ok("registry/invariant/add", json!({ "global": true, "text": "Never change a.txt" }));
    let plan = run(&bench, "trusted", parent(vec![spawn("first", Value::Null, &[], editing(1, "TWO\n"))]));
    let reconciled = |id: &str| {
        events(&bench, id)
            .iter()
            .filter(|e| e["event_type"] == "invariant.reconciled" && e["plan_id"] == id)
            .count()
    };
    let first = child(&bench, &plan, "first");
    assert_eq!((reconciled(&plan), reconciled(&first)), (1, 0));
    let tree = bench.ok("plan/tree", json!({ "plan": first }))["tree"].clone();
    let enforced =
        |node: &Value| node["type"] == "invariant_enforced" && node["chosen"] == "Never change a.txt";
    assert_eq!(
        tree["children"].as_array().unwrap().iter().filter(|node| enforced(node)).count(),
        1,
        "{tree:#}"
    );
    assert!(!sandbox_file(&bench, &first).contains("TWO"), "the write was refused");
}
