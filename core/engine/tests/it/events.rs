//! What is told of what happens.

use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_domain::ports::actor::Actor;
use serde_json::{Value, json};

use crate::harness::Bench;

fn bench() -> Bench {
    let done = |headline: &str| json!({ "done": { "headline": headline, "lines": [], "facts": null } });
    let script = json!({
        "strategize": [{ "outcome": done("decided") }], "execute": [{ "outcome": done("did it") }],
    });
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(serde_json::from_value(script).unwrap()));
    let bench = Bench::new(&[("a.txt", "one\n")], &[("local/scripted", actor)]);
    bench.action("local/do", "local/scripted", "local/scripted", "");
    bench
}

fn events(bench: &Bench, plan: &str) -> Vec<Value> {
    let found = bench.ok("events/after", json!({ "sequence": 0, "plan": plan }));
    found["events"].as_array().unwrap().clone()
}

// PLAN-019, OBS-005: from nothing to applied, in the order it happened
#[test]
fn a_plan_tells_its_states_in_causal_order() {
    let bench = bench();
    let plan = bench.plan("local/do", "full-auto");
    let told: Vec<String> = events(&bench, &plan)
        .iter()
        .filter_map(|event| {
            let kind = event["event_type"].as_str().unwrap().strip_prefix("plan.")?;
            let to = &event["details"]["to"];
            let to = to.as_str().or_else(|| to["state"].as_str()).unwrap_or_default();
            match kind {
                "created" | "applied" => Some(kind.to_owned()),
                "phase_changed" => Some(format!("phase {to}")),
                "state_changed" => Some(format!("state {to}")),
                _ => None,
            }
        })
        .collect();
    assert_eq!(
        told,
        [
            "created",
            "state processing",
            "state complete",
            "phase execute",
            "state queued",
            "state processing",
            "state complete",
            "phase apply",
            "state queued",
            "state processing",
            "state applied",
            "applied",
        ],
        "{:#?}",
        events(&bench, &plan)
    );
}

// OBS-006: the worker is a part of the request that started it; another command is another one
#[test]
fn the_events_of_one_request_share_its_id() {
    let bench = bench();
    let plan = bench.plan("local/do", "supervised");
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    let before = events(&bench, &plan);
    let ids = |events: &[Value]| {
        let mut ids: Vec<String> =
            events.iter().map(|e| e["correlation_id"].as_str().unwrap().to_owned()).collect();
        ids.dedup();
        ids
    };
    let first = ids(&before);
    assert!(first.iter().all(|id| id.len() == 26), "{first:?}");
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    let all = events(&bench, &plan);
    let of_apply = ids(&all[before.len()..]);
    assert_eq!(of_apply.len(), 1, "the command and its worker: {of_apply:?}");
    assert!(!first.contains(&of_apply[0]));
}
