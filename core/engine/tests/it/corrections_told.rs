//! What is told of corrections: what they cost, who made them, and what becomes of invariants.

use serde_json::{Value, json};

use super::corrections::{A, World, script};

// CORR-007, C-55: money, tokens and calls come from the records
#[test]
fn a_preview_says_what_doing_it_again_costs_by_what_it_cost() {
    let mut script = script();
    for step in script["execute"].as_array_mut().unwrap() {
        step["cost"] = json!({ "tokens": 100, "usd": 0.01 });
    }
    let world = World::new(script);
    let plan = world.bench.plan("local/act", "trusted");
    let cost = |key: &str| {
        let id = world.id(&plan, key);
        let ask = json!({ "decision": id, "mode": "revert", "guidance": "Leave alone", "dry_run": true });
        world.bench.ok("plan/correct", ask)["estimated_cost"].clone()
    };
    // From the step that decided it on: y, z and the end; only its own call is made again.
    let y = cost("i/y");
    assert_eq!((&y["steps"], &y["tool_calls"], &y["tokens"]), (&json!(3), &json!(1), &json!(300)));
    assert_eq!((&y["re_strategize"], &y["re_execute"]), (&json!("$0"), &json!("~$0.030")));
    // All of Execute, and Strategize from the last decision on.
    let z = cost("s/z");
    assert_eq!((&z["steps"], &z["tool_calls"], &z["total"]), (&json!(6), &json!(4), &json!("~$0.040")));
}

// DEC-031, CORR-018: who corrected a decision, when, why, and what became of it
#[test]
fn an_explanation_names_the_corrections_of_a_decision_and_the_command_for_another() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "trusted");
    let explain = |id: &str| world.bench.ok("plan/explain", json!({ "decision": id }));
    let x = world.id(&plan, "s/x");
    let hint = format!("agents plan correct --mode revert --guidance GUIDANCE {x}");
    assert_eq!((&explain(&x)["correction_hint"], &explain(&x)["corrections"]), (&json!(hint), &json!([])));
    let (y, i) = (world.id(&plan, "s/y"), world.id(&plan, "i/z"));
    let corrected = world.correct(&x, "2");
    world.bench.work(&plan);
    let new = corrected["correction"]["new_decision"].as_str().unwrap().to_owned();
    for (id, role) in [(&x, "corrected"), (&new, "made"), (&y, "fell"), (&i, "fell")] {
        let made = &explain(id)["corrections"][0];
        assert_eq!(
            (&made["role"], &made["by"], &made["guidance"]),
            (&json!(role), &json!("tester"), &json!("2"))
        );
        assert_eq!((&made["chosen"], &made["state"]), (&json!("Leave alone"), &json!("completed")));
        assert_eq!(made["correction_attempt_id"], corrected["correction"]["correction_attempt_id"]);
        assert!(made["at"].as_str().unwrap().ends_with('Z'), "{made}");
    }
    assert_eq!(explain(&x)["correction_hint"], Value::Null, "it is not in force");
    // What was taken back is no step of what stands now.
    let artifacts = world.bench.ok("plan/artifacts", json!({ "plan": plan }));
    for checkpoint in artifacts["checkpoints"].as_array().unwrap() {
        let of = checkpoint["decision_id"].as_str();
        assert!(of.is_none_or(|id| explain(id)["status"] == "active"), "{checkpoint}");
    }
    world.bench.ok("plan/apply", json!({ "plan": plan }));
    world.bench.work(&plan);
    let hint = format!("agents plan correct --mode append --guidance GUIDANCE {new}");
    assert_eq!(explain(&new)["correction_hint"], hint.as_str());
}

// PROF-028: there is no such option; refused also where only a preview is asked for
#[test]
fn an_option_that_there_is_none_of_is_refused_before_anything_is_shown() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "trusted");
    let x = world.id(&plan, "i/x");
    for (guidance, wanted) in [("99", "there is no option 99"), ("Fix it", "says already")] {
        let ask = json!({ "decision": x, "mode": "revert", "guidance": guidance, "dry_run": true });
        let refused = world.bench.err("plan/correct", ask);
        assert!(refused.message.contains(wanted), "{refused:?}");
    }
}

// INV-014, C-64, CORR-002: an invariant is removed from a plan or replaced in it, and nowhere else
#[test]
fn an_invariant_is_taken_out_of_a_plan_or_replaced_in_it() {
    let world = World::new(script());
    world.bench.ok(
        "registry/invariant/add",
        json!({ "text": "Never change files under `b.txt`", "project": "app" }),
    );
    let plan = world.bench.plan("local/act", "trusted");
    let enforced = |world: &World| {
        let all = world.decisions(&plan).into_iter();
        let mut found = all.filter(|d| d["type"] == "invariant_enforced" && d["status"] == "active");
        found.next()
    };
    let listed = || world.bench.ok("registry/invariant/list", json!({ "global": false, "project": "app" }));
    let definition = listed();
    assert_eq!(world.sandbox(&plan, "b.txt").unwrap(), "b\n", "{}", world.bench.status(&plan));
    let id = |found: Option<Value>| found.unwrap()["decision_id"].as_str().unwrap().to_owned();

    world.correct(&id(enforced(&world)), "Never change files under `a.txt`");
    world.bench.work(&plan);
    assert_eq!(enforced(&world).unwrap()["chosen"], "Never change files under `a.txt`");
    assert_eq!(
        (world.sandbox(&plan, "a.txt").unwrap(), world.sandbox(&plan, "b.txt").unwrap()),
        (A.to_owned(), "B\n".to_owned())
    );

    let ask = json!({ "decision": id(enforced(&world)), "mode": "revert", "guidance": "Remove this invariant", "dry_run": true });
    let dry = world.bench.ok("plan/correct", ask);
    assert!(dry["warnings"].to_string().contains("does not hold in this plan any more"), "{dry}");
    let removed = world.correct(&id(enforced(&world)), "Remove this invariant");
    world.bench.work(&plan);
    assert_eq!(enforced(&world), None);
    let by = world
        .decisions(&plan)
        .into_iter()
        .find(|d| d["decision_id"] == removed["correction"]["new_decision"]);
    assert_eq!(by.unwrap()["type"], "user_intervention", "nothing replaces it");
    assert_eq!(world.sandbox(&plan, "a.txt").unwrap(), "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n");
    assert_eq!(listed(), definition, "the definition stays");
}
