//! Invariants from their registration to what they do to plans.

use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_domain::ErrorKind;
use agents_domain::ports::actor::Actor;
use agents_engine::Engine;
use serde_json::{Value, json};

use crate::harness::Bench;

const VENDOR: &str = "Never change files under vendor/";

fn bench_with(script: Value, action: &str) -> Bench {
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(script));
    let files = [("a.txt", "one\ntwo\nthree\n"), ("vendor/v.txt", "1\n2\n")];
    let bench = Bench::new(&files, &[("test/scripted", actor.clone()), ("test/keeper", actor)]);
    bench.action("local/act", "test/scripted", "test/scripted", action);
    bench
}

/// One strategy choice; then each edit of a first line under its own decision, and done.
fn edits(paths: &[(&str, &str)]) -> Value {
    let mut execute: Vec<Value> = paths
        .iter()
        .enumerate()
        .map(|(at, (path, text))| {
            let key = format!("impl/{at}");
            json!({ "requests": [
                decision(&key, "implementation_choice", "Fix it?", &[]),
                { "request": "tool", "call_id": key, "tool": "builtin/apply-edits", "decision": key, "args": {
                    "resource": "${resource}", "edits": [{ "op": "edit", "path": path, "edits": [{
                        "range": { "start": { "line": 0, "column": 0 }, "end": { "line": 1, "column": 0 } },
                        "new_text": text,
                    }] }],
                } },
            ] })
        })
        .collect();
    execute.push(json!({ "outcome": { "done": { "headline": "did it", "lines": [], "facts": null } } }));
    json!({
        "strategize": [{ "requests": [decision("strategy/x", "strategy_choice", "What to do?", &[])] }],
        "execute": execute,
    })
}

fn decision(key: &str, kind: &str, question: &str, _: &[&str]) -> Value {
    json!({
        "request": "record_decision", "key": key, "decision_type": kind, "parent": null, "question": question,
        "chosen": 0, "alternatives": [{ "option": "Fix it" }, { "option": "Leave alone" }], "confidence": 0.9,
        "rationale": "because", "reasoning": null, "resources": [], "depends_on": [], "context": {},
    })
}

fn events(engine: &Engine, plan: &str, kind: &str) -> Vec<Value> {
    let all = engine.call_json("events/after", json!({ "sequence": 0, "plan": plan })).unwrap();
    let events = all["events"].as_array().unwrap().iter();
    events.filter(|e| e["event_type"] == kind).map(|e| e["details"].clone()).collect()
}

fn tree(bench: &Bench, plan: &str) -> Vec<Value> {
    bench.ok("plan/tree", json!({ "plan": plan }))["tree"]["children"].as_array().unwrap().clone()
}

fn enforced(bench: &Bench, plan: &str) -> Vec<String> {
    let children = tree(bench, plan).into_iter().filter(|n| n["type"] == "invariant_enforced");
    children.map(|n| n["chosen"].as_str().unwrap().to_owned()).collect()
}

// INV-001, INV-002, INV-003, C-38
#[test]
fn an_invariant_is_added_at_exactly_one_scope() {
    let bench = bench_with(edits(&[]), "");
    let add = |more: Value| {
        let mut params = json!({ "text": VENDOR });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let added = bench.ok("registry/invariant/add", add(json!({ "global": true })));
    let one = &added.as_array().unwrap()[0];
    assert!(one["id"].as_str().unwrap().starts_with("inv_"));
    assert_eq!((&one["invariant"], &one["scope"]), (&json!(VENDOR), &json!("global")));
    assert_eq!(one["enforced_by"], "machine");
    let added = bench.ok("registry/invariant/add", add(json!({ "project": "app" })));
    assert_eq!((&added[0]["project"], &added[0]["scope"]), (&json!("local/app"), &json!("project")));
    bench.action("local/other", "test/scripted", "test/scripted", "");
    let added = bench.ok("registry/invariant/add", add(json!({ "actions": ["act", "local/other", "act"] })));
    assert_eq!(added.as_array().unwrap().len(), 2);
    assert_eq!(added[1]["action"], "local/other");
    let plan = bench.plan("local/act", "manual");
    let added = bench.ok("registry/invariant/add", add(json!({ "plans": [plan] })));
    assert_eq!((&added[0]["plan"], &added[0]["scope"]), (&json!(plan), &json!("plan")));

    for (wrong, kind) in [
        (add(json!({})), ErrorKind::Usage),
        (add(json!({ "global": true, "project": "app" })), ErrorKind::Usage),
        (add(json!({ "project": "nope" })), ErrorKind::NotFound),
        (add(json!({ "actions": ["act", "nope"] })), ErrorKind::NotFound),
        (add(json!({ "plans": ["01ARZ3NDEKTSV4RRFFQ69G5FAV"] })), ErrorKind::NotFound),
        (json!({ "text": "  ", "global": true }), ErrorKind::ValidationFailed),
        (json!({ "text": "max-changed-lines: few", "global": true }), ErrorKind::ValidationFailed),
    ] {
        assert_eq!(bench.err("registry/invariant/add", wrong.clone()).kind, kind, "{wrong}");
    }
    let global = bench.ok("registry/invariant/list", json!({ "global": true }));
    assert_eq!(global["invariants"].as_array().unwrap().len(), 1, "what was refused left nothing");
}

// INV-004, INV-005, INV-006, OUT-004
#[test]
fn invariants_are_listed_by_scope_and_removed_by_id() {
    let bench = bench_with(edits(&[]), "");
    for text in ["Keep names", VENDOR] {
        bench.ok("registry/invariant/add", json!({ "text": text, "project": "local/app" }));
    }
    let list = |params: Value| bench.ok("registry/invariant/list", params);
    let all = list(json!({ "project": "app" }));
    assert_eq!((&all["scope"], &all["effective"]), (&json!("project"), &json!(false)));
    assert_eq!(all["conflicts_resolved"], json!([]));
    assert_eq!(all["invariants"][1]["text"], VENDOR);
    assert_eq!(all["invariants"][1]["source"], "project");
    let some = list(json!({ "project": "app", "pattern": "(?i)KEEP" }));
    assert_eq!(some["invariants"].as_array().unwrap().len(), 1);
    for wrong in
        [json!({}), json!({ "global": true, "effective": true }), json!({ "global": true, "pattern": "(" })]
    {
        assert_eq!(bench.err("registry/invariant/list", wrong).kind, ErrorKind::Usage);
    }

    let plan = bench.plan("local/act", "supervised");
    let id = all["invariants"][1]["id"].as_str().unwrap();
    let removed = bench.ok("registry/invariant/remove", json!({ "id": &id[..id.len() - 1] }));
    assert_eq!(removed, json!({ "removed": VENDOR, "scope": "project", "id": id }));
    assert_eq!(enforced(&bench, &plan), ["Keep names", VENDOR], "the plan keeps what it has recorded");
    let effective = list(json!({ "plan": plan, "effective": true }));
    assert_eq!(effective["invariants"][1]["source"], "project");
    let again = bench.err("registry/invariant/remove", json!({ "id": id }));
    assert_eq!(again.kind, ErrorKind::NotFound);
    let next = bench.plan("local/act", "supervised");
    assert_eq!(enforced(&bench, &next), ["Keep names"], "later plans do not");
}

// INV-007, INV-008, INV-010, INV-011, INV-012, INV-013, PLAN-035, PLAN-039, DEC-011
#[test]
fn the_invariants_of_all_scopes_are_reconciled_before_anything_is_decided() {
    let action = "invariants:\n  - You may change files under vendor/\n  - Mock the network\n";
    let bench = bench_with(edits(&[]), action);
    bench.ok("registry/invariant/add", json!({ "text": VENDOR, "global": true }));
    bench.ok(
        "registry/invariant/add",
        json!({ "text": "Never log", "global": true, "non_overridable": true }),
    );
    bench.ok("registry/project/create", json!({
        "name": "local/web", "resources": ["local/repo"], "invariants": ["Keep names", "mock THE network."],
    }));
    let used = bench.ok(
        "plan/use",
        json!({
            "action": "local/act", "projects": ["local/web"], "automation_profile": "supervised",
            "invariants": ["Always log", "At most 5 changed lines"],
        }),
    );
    let told: Vec<_> = used["invariants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| (i["scope"].as_str().unwrap(), i["source"].as_str().unwrap(), i["text"].as_str().unwrap()))
        .collect();
    assert_eq!(told.len(), 8, "all that apply: {told:?}");
    for expected in [
        ("plan", "CLI", "Always log"),
        ("action", "action", "Mock the network"),
        ("project", "config", "Keep names"),
        ("global", "config", VENDOR),
    ] {
        assert!(told.contains(&expected), "{expected:?} in {told:?}");
    }
    let plan = used["plan_id"].as_str().unwrap();
    let before = bench.ok("registry/invariant/list", json!({ "plan": plan, "effective": true }));
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(plan);
    assert_eq!(bench.at(plan), "strategize/complete+execute_approval");
    let in_force = [
        "Never log",
        "Keep names",
        "You may change files under vendor/",
        "Mock the network",
        "At most 5 changed lines",
    ];
    assert_eq!(enforced(&bench, plan), in_force);

    let effective = bench.ok("registry/invariant/list", json!({ "plan": plan, "effective": true }));
    let texts = |list: &Value| {
        let rows = list["invariants"].as_array().unwrap().iter();
        rows.map(|i| i["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&effective), in_force);
    assert_eq!(texts(&before), in_force, "before it is decided, what would be is shown");
    assert_eq!(before["conflicts_resolved"], effective["conflicts_resolved"]);
    let conflicts = effective["conflicts_resolved"].as_array().unwrap();
    assert_eq!(conflicts.len(), 2, "{conflicts:?}");
    let vendor = conflicts.iter().find(|c| c["overridden"]["text"] == VENDOR).unwrap();
    assert_eq!(vendor["overridden"]["source"], "global");
    assert_eq!(vendor["by"], json!({ "source": "action", "text": "You may change files under vendor/" }));

    let nodes = tree(&bench, plan);
    assert_eq!(nodes.iter().take_while(|n| n["type"] == "invariant_enforced").count(), 5);
    let choice = nodes.last().unwrap();
    assert_eq!(choice["type"], "strategy_choice");
    assert_eq!(choice["depends_on"].as_array().unwrap().len(), 5, "every choice depends on every invariant");
    let explained =
        bench.ok("plan/explain", json!({ "decision": nodes[4]["decision_id"], "show_context": true }));
    assert_eq!(explained["invariant"]["enforced_by"], "machine");
    assert_eq!(explained["invariant"]["check"]["kind"], "max_changed_lines");
    assert_eq!(explained["context_snapshot"]["document"]["source_scope"], "plan");
    let handed = bench.ok("plan/explain", json!({ "decision": nodes[1]["decision_id"] }));
    assert_eq!(handed["invariant"]["enforced_by"], "actors");

    let reconciled = events(&bench.engine, plan, "invariant.reconciled");
    assert_eq!(reconciled.len(), 1);
    assert_eq!(
        (&reconciled[0]["effective_count"], &reconciled[0]["conflicts_resolved"]),
        (&json!(5), &json!(2))
    );
    assert_eq!(reconciled[0]["reconciler"], "builtin/reconcile-invariants");
    assert_eq!(events(&bench.engine, plan, "invariant.enforced").len(), 5);
}

// INV-015
#[test]
fn a_write_that_breaks_an_invariant_is_refused_and_the_actor_goes_on() {
    let bench =
        bench_with(edits(&[("vendor/v.txt", "x\n"), ("a.txt", "print(1)\n"), ("a.txt", "ONE\n")]), "");
    for text in [VENDOR, "No print( in added lines"] {
        bench.ok("registry/invariant/add", json!({ "text": text, "project": "app" }));
    }
    let plan = bench.plan("local/act", "full-auto");
    let violated = events(&bench.engine, &plan, "invariant.violated");
    assert_eq!(violated.len(), 2, "{violated:?}");
    assert_eq!((&violated[0]["text"], &violated[0]["path"]), (&json!(VENDOR), &json!("vendor/v.txt")));
    assert_eq!((&violated[1]["path"], &violated[1]["line"]), (&json!("a.txt"), &json!(1)));
    let refused = events(&bench.engine, &plan, "tool.errored");
    assert!(refused[0]["message"].as_str().unwrap().contains(VENDOR), "{refused:?}");
    let diff = bench.ok("plan/diff", json!({ "plan": plan })).to_string();
    assert!(diff.contains("+ONE") && !diff.contains("vendor"), "{diff}");
    assert_eq!(bench.status(&plan)["state"], "applied");
    let verdicts = &bench.status(&plan)["summaries"]["execute"]["facts"]["invariants"];
    assert_eq!((&verdicts[0]["verdict"], &verdicts[1]["verdict"]), (&json!("kept"), &json!("kept")));
}

// INV-015: the size is that of the whole change, not of one write
#[test]
fn the_size_of_a_plan_is_counted_over_all_its_writes() {
    let bench = bench_with(edits(&[("a.txt", "A\n"), ("a.txt", "B\n"), ("vendor/v.txt", "C\n")]), "");
    bench.ok("registry/invariant/add", json!({ "text": "At most 2 changed lines", "global": true }));
    let plan = bench.plan("local/act", "full-auto");
    let violated = events(&bench.engine, &plan, "invariant.violated");
    assert_eq!(violated.len(), 1, "the second write changes the same line again: {violated:?}");
    assert_eq!(violated[0]["evidence"], "4 changed lines");
    assert_eq!(std::fs::read_to_string(bench.repo().join("a.txt")).unwrap(), "B\ntwo\nthree\n");
}

// INV-009
#[test]
fn the_reconciler_is_the_first_of_plan_action_project_and_default() {
    let bench = bench_with(edits(&[]), "invariant_actor: test/keeper\n");
    bench.action("local/plain", "test/scripted", "test/scripted", "");
    bench.ok(
        "registry/project/create",
        json!({
            "name": "local/kept", "resources": ["local/repo"], "invariant_actor": "test/keeper",
        }),
    );
    let used = |action: &str, project: &str, flag: Option<&str>| {
        let made = bench.ok("plan/use", json!({
            "action": action, "projects": [project], "automation_profile": "manual", "invariant_actor": flag,
        }));
        made["actors"]["invariant"].clone()
    };
    assert_eq!(used("local/act", "local/app", Some("test/scripted")), "test/scripted");
    assert_eq!(used("local/act", "local/app", None), "test/keeper");
    assert_eq!(used("local/plain", "local/kept", None), "test/keeper");
    assert_eq!(used("local/plain", "local/app", None), Value::Null);
    let unknown = bench.err(
        "plan/use",
        json!({
            "action": "local/plain", "projects": ["local/app"], "invariant_actor": "test/keepr",
        }),
    );
    assert_eq!(
        (unknown.kind, unknown.suggestions[0].as_str()),
        (ErrorKind::NotFound, "did you mean `test/keeper`?")
    );
}

// INV-009, INV-011
#[test]
fn another_reconciler_decides_and_a_wrong_answer_of_it_fails_the_phase() {
    let bench = bench_with(edits(&[]), "invariant_actor: test/keeper\n");
    bench.ok("registry/invariant/add", json!({ "text": "a weak one", "global": true }));
    let plan = bench.plan("local/act", "supervised");
    assert_eq!(bench.at(&plan), "strategize/errored", "it set one aside for itself");
    assert!(bench.status(&plan)["error"]["message"].as_str().unwrap().contains("test/keeper"));
    bench.ok("registry/invariant/add", json!({ "text": "a strong one", "global": true }));
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(enforced(&bench, &plan), ["a strong one"]);
    let effective = bench.ok("registry/invariant/list", json!({ "plan": plan, "effective": true }));
    assert_eq!(effective["conflicts_resolved"][0]["reason"], "it is weak");
}

// INV-015: what no machine can check is judged at the end of Execute; T29
#[test]
fn changes_that_the_reconciler_judges_bad_do_not_complete_execute() {
    let bench = bench_with(edits(&[("a.txt", "BAD\n")]), "invariant_actor: test/keeper\n");
    for text in ["Only good lines", "Be kind"] {
        bench.ok("registry/invariant/add", json!({ "text": text, "global": true }));
    }
    let plan = bench.plan("local/act", "supervised");
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/processing+strategy_revision");
    let violated = events(&bench.engine, &plan, "invariant.violated");
    assert_eq!(
        (&violated[0]["text"], &violated[0]["evidence"]),
        (&json!("Only good lines"), &json!("a line is BAD"))
    );
    let question = bench.status(&plan)["awaiting"]["question"].clone();
    assert!(question.as_str().unwrap().contains("Only good lines"), "{question}");
    assert_eq!(std::fs::read_to_string(bench.repo().join("a.txt")).unwrap(), "one\ntwo\nthree\n");
}

// INV-016, C-40
#[test]
fn one_added_to_a_plan_past_strategize_is_enforced_at_once_and_its_work_is_checked_again() {
    let bench = bench_with(edits(&[("vendor/v.txt", "x\n")]), "");
    let plan = bench.plan("local/act", "supervised");
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval");
    let added = bench.ok("registry/invariant/add", json!({ "text": VENDOR, "plans": [plan] }));
    assert_eq!(added[0]["violated"], "`vendor/v.txt` would be changed");
    assert_eq!(enforced(&bench, &plan), [VENDOR]);
    assert_eq!(tree(&bench, &plan).iter().filter(|n| n["decision_id"] == added[0]["decision_id"]).count(), 1);
    assert_eq!(events(&bench.engine, &plan, "invariant.violated").len(), 1);
    let refused = bench.err("plan/apply", json!({ "plan": plan }));
    assert_eq!(refused.kind, ErrorKind::InvalidState);
    assert!(refused.message.contains(VENDOR), "{refused}");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "nothing was changed");
}

// INV-016
#[test]
fn one_added_while_execute_runs_is_kept_by_the_next_write() {
    let bench = bench_with(edits(&[("vendor/v.txt", "x\n")]), "");
    let plan = bench.plan("local/act", "supervised");
    bench.ok("registry/invariant/add", json!({ "text": VENDOR, "plans": [plan] }));
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(events(&bench.engine, &plan, "invariant.violated").len(), 1);
    assert_eq!(bench.ok("plan/diff", json!({ "plan": plan }))["files"], json!([]));
}

// PROF-027
#[test]
fn an_invariant_that_wants_a_persons_approval_makes_a_decision_wait_whatever_its_confidence() {
    let mut script = edits(&[("a.txt", "ONE\n")]);
    script["execute"][0]["requests"][0]["question"] = json!("Create a migration for the users table?");
    let bench = bench_with(script.clone(), "");
    let free = bench.plan("local/act", "full-auto");
    assert_eq!(bench.status(&free)["state"], "applied", "without the invariant it goes through");

    let bench = bench_with(script, "");
    let text = "Any change to database migration files requires explicit human approval";
    let added = bench.ok("registry/invariant/add", json!({ "text": text, "project": "app" }));
    let plan = bench.plan("local/act", "full-auto");
    assert_eq!(bench.at(&plan), "execute/processing+decision");
    let status = bench.status(&plan);
    assert_eq!(status["escalation"]["invariant"], text);
    assert_eq!(status["escalation"]["confidence"], 0.9);
    let explained = bench.ok("plan/explain", json!({ "decision": status["escalation"]["decision"] }));
    assert_eq!(explained["escalation_reason"]["invariant"], added[0]["id"]);
    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "1" }));
    bench.work(&plan);
    assert_eq!(bench.status(&plan)["state"], "applied");
}
