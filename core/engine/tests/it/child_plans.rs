//! Child plans: decided in Strategize, made and run in Execute, merged with the decisions behind every line.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use agents_actors::scripted::Scripted;
use agents_domain::plan::{Phase, PhaseSummary};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutcome, StepOutput};
use serde_json::{Value, json};

use crate::harness::{Bench, git};

pub const FILE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";

pub fn done(headline: &str) -> Value {
    json!({ "outcome": { "done": { "headline": headline, "lines": [], "facts": null } } })
}

pub fn decision(key: &str, kind: &str, parent: Value) -> Value {
    json!({
        "request": "record_decision", "key": key, "decision_type": kind, "parent": parent,
        "question": format!("How about {key}?"), "chosen": 0,
        "alternatives": [{ "option": "Do it" }, { "option": "Leave it" }],
        "confidence": 0.95, "rationale": "because", "reasoning": null, "resources": [],
        "depends_on": [], "context": null,
    })
}

/// A spawn decision of a child that plays a script.
pub fn spawn(key: &str, parent: Value, depends_on: &[&str], script: Value) -> Value {
    let mut spawn = decision(key, "subplan_spawn", parent);
    spawn["spawn"] = json!({
        "prompt": format!("Do {key}"), "depends_on": depends_on, "arguments": { "script": script.to_string() },
        "target_files": ["a.txt"],
    });
    spawn
}

pub fn container(key: &str) -> Value {
    decision(key, "subplan_parallel_spawn", Value::Null)
}

/// Replaces one line (0-based) of `a.txt`.
pub fn edit(call: &str, decision: &str, line: u32, text: &str) -> Value {
    json!({
        "request": "tool", "call_id": call, "tool": "builtin/apply-edits", "decision": decision,
        "args": { "resource": "${resource}", "edits": [{ "op": "edit", "path": "a.txt", "edits": [{
            "range": { "start": { "line": line, "column": 0 }, "end": { "line": line + 1, "column": 0 } },
            "new_text": text,
        }] }] },
    })
}

/// A child that replaces one line.
pub fn editing(line: u32, text: &str) -> Value {
    json!({
        "strategize": [{ "requests": [decision("strategy/line", "strategy_choice", Value::Null)] }, done("decided")],
        "execute": [
            { "requests": [decision("impl/line", "implementation_choice", json!("strategy/line")), edit("1", "impl/line", line, text)] },
            done("edited"),
        ],
    })
}

pub fn failing() -> Value {
    json!({ "execute": [{ "fail": { "message": "no way", "category": "actor", "transient": false, "hints": [] } }] })
}

pub fn parent(spawns: Vec<Value>) -> Value {
    json!({ "strategize": [{ "requests": spawns }, done("handed on")], "execute": [done("all done")] })
}

pub fn bench_with(more: &str, actors: &[(&str, Arc<dyn Actor>)]) -> Bench {
    let scripted: Arc<dyn Actor> = Arc::new(Scripted::from_arguments());
    let mut cast = vec![("test/scripted", scripted)];
    cast.extend(actors.iter().cloned());
    let bench = Bench::new(&[("a.txt", FILE)], &cast);
    let argument = "arguments:\n  - name: script\n    type: string\n";
    bench.action("local/act", "test/scripted", "test/scripted", &format!("{argument}{more}"));
    bench
}

pub fn bench() -> Bench {
    bench_with("", &[])
}

/// Makes a plan of a script and works on it until it pauses.
pub fn run(bench: &Bench, profile: &str, script: Value) -> String {
    let made = bench.ok(
        "plan/use",
        json!({
            "action": "local/act", "projects": ["local/app"], "automation_profile": profile,
            "arguments": { "script": script.to_string() },
        }),
    );
    let id = made["plan_id"].as_str().unwrap().to_owned();
    if !made["awaiting"].is_null() {
        bench.ok("plan/execute", json!({ "plan": id }));
    }
    bench.work(&id);
    id
}

pub fn children(bench: &Bench, plan: &str) -> Vec<Value> {
    bench.ok("plan/tree", json!({ "plan": plan }))["child_plans"].as_array().unwrap().clone()
}

pub fn child(bench: &Bench, plan: &str, about: &str) -> String {
    let found = children(bench, plan).into_iter().find(|c| c["description"] == format!("Do {about}"));
    found.unwrap_or_else(|| panic!("no child {about}"))["id"].as_str().unwrap().to_owned()
}

pub fn sandbox_file(bench: &Bench, plan: &str) -> String {
    let path = bench.status(plan)["execution"]["sandbox"]["path"].as_str().unwrap().to_owned();
    std::fs::read_to_string(std::path::Path::new(&path).join("a.txt")).unwrap()
}

pub fn read(bench: &Bench) -> String {
    std::fs::read_to_string(bench.repo().join("a.txt")).unwrap()
}

// SUB-001, SUB-002, SUB-003, SUB-011, SUB-018, DEC-005, DEC-023, PLAN-011, PROF-025, C-12
#[test]
fn children_are_decided_in_strategize_made_in_execute_and_merged_with_their_decisions() {
    let bench = bench();
    let script = parent(vec![
        container("both"),
        spawn("first", json!("both"), &[], editing(1, "TWO\n")),
        spawn("last", json!("both"), &[], editing(7, "EIGHT\n")),
    ]);
    let plan = run(&bench, "supervised", script);
    assert_eq!(bench.at(&plan), "strategize/complete+execute_approval");
    assert_eq!(children(&bench, &plan), [Value::Null; 0], "nothing is made before Execute");
    assert_eq!(bench.status(&plan)["strategy_progress"]["child_plans_planned"], 2);
    assert_eq!(bench.status(&plan)["execution"]["child_plans"], "0/2 complete");

    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(bench.status(&plan)["execution"]["child_plans"], "2/2 complete");
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("two", "TWO").replace("eight", "EIGHT"));
    let first = child(&bench, &plan, "first");
    assert_eq!(bench.at(&first), "execute/complete");
    // Blind to its sibling.
    assert_eq!(sandbox_file(&bench, &first), FILE.replace("two", "TWO"));
    let status = bench.status(&first);
    assert_eq!((&status["parent_plan_id"], &status["root_plan_id"]), (&json!(plan), &json!(plan)));
    assert_eq!((&status["automation"], &status["description"]), (&json!("supervised"), &json!("Do first")));
    let tree = bench.ok("plan/tree", json!({ "plan": first }));
    assert_eq!(
        (&tree["tree"]["type"], &tree["tree"]["chosen"]),
        (&json!("prompt_definition"), &json!("Do first"))
    );
    let strategy = &tree["tree"]["children"][0];
    let implementation = &strategy["children"][0]["decision_id"];

    let parents = bench.ok("plan/tree", json!({ "plan": plan }));
    let spawned = &parents["tree"]["children"][0]["children"][0];
    assert_eq!(spawned["plan_ids"], json!([first]));
    let explained = bench.ok("plan/explain", json!({ "decision": spawned["decision_id"] }));
    assert_eq!(explained["impact"]["downstream_child_plans"], 1);
    assert_eq!(explained["impact"]["correction_impact"], "high");

    // The child's decisions are behind the parent's lines.
    let blame = bench.ok("plan/blame", json!({ "file": bench.repo().join("a.txt"), "line": 2 }));
    let segments = blame["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 1, "{segments:#?}");
    assert_eq!((&segments[0]["decision_id"], &segments[0]["plan_id"]), (implementation, &json!(first)));
    assert_eq!(segments[0]["strategy"]["decision_id"], strategy["decision_id"]);
    let artifacts = bench.ok("plan/artifacts", json!({ "plan": plan }));
    assert_eq!(artifacts["artifacts"][0]["child_plan"], json!(child(&bench, &plan, "last")));

    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    assert_eq!(read(&bench), FILE.replace("two", "TWO").replace("eight", "EIGHT"));
    assert_eq!(bench.at(&first), "apply/applied", "its work went with the parent");
    let message = git(&bench.repo(), &["log", "-1", "--format=%B"]);
    assert!(message.contains(implementation.as_str().unwrap()), "{message}");
    let after = bench.ok("plan/blame", json!({ "file": bench.repo().join("a.txt"), "line": 2 }));
    assert_eq!(after["segments"][0]["decision_id"], *implementation);
    assert_eq!(after["segments"].as_array().unwrap().len(), 1, "{after:#}");
}

// SUB-002, SUB-006: what comes later begins with what came before
#[test]
fn a_later_child_begins_with_the_merged_work_of_the_earlier_ones() {
    let bench = bench();
    let mut second = editing(1, "two again\n");
    second["execute"][0]["expect"] = json!({ "files": { "a.txt": FILE.replace("two", "TWO") } });
    let plan = run(
        &bench,
        "trusted",
        parent(vec![
            spawn("second", Value::Null, &["first"], second),
            spawn("first", Value::Null, &[], editing(1, "TWO\n")),
        ]),
    );
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("two", "two again"));
}

// SUB-006
#[test]
fn children_that_wait_for_each_other_end_strategize_with_the_cycle_named() {
    let bench = bench();
    let plan = run(
        &bench,
        "trusted",
        parent(vec![spawn("a", Value::Null, &["b"], failing()), spawn("b", Value::Null, &["a"], failing())]),
    );
    assert_eq!(bench.at(&plan), "strategize/errored");
    assert_eq!(bench.status(&plan)["error"]["message"], "child plans wait for each other: a -> b -> a");
}

// SUB-004, SUB-007: retries, then the later ones are not started; a person goes on
#[test]
fn after_a_failure_later_children_are_not_started_until_it_is_taken_up_again() {
    let bench = bench();
    let script = parent(vec![
        spawn("bad", Value::Null, &[], failing()),
        spawn("next", Value::Null, &[], editing(1, "TWO\n")),
    ]);
    let plan = run(&bench, "ci", script);
    assert_eq!(bench.at(&plan), "execute/errored");
    let bad = child(&bench, &plan, "bad");
    assert_eq!(children(&bench, &plan).len(), 1, "the next one was not started");
    let error = bench.status(&plan)["error"].clone();
    assert_eq!(error["message"], format!("child plan {bad} failed: no way"));
    let events = bench.ok("events/after", json!({ "sequence": 0 }));
    let retries =
        events["events"].as_array().unwrap().iter().filter(|e| e["event_type"] == "plan.child_failed");
    assert_eq!(retries.map(|e| e["details"]["retry"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 0]);

    // Without it, the rest goes on.
    bench.ok("plan/cancel", json!({ "plan": bad }));
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(children(&bench, &plan).len(), 2);
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    assert_eq!(read(&bench), FILE.replace("two", "TWO"));
}

// SUB-004, SUB-007: parallel ones go on, unless fail-fast
#[test]
fn beside_a_failure_parallel_children_go_on_unless_the_plan_is_to_fail_fast() {
    for (more, others) in
        [("", 2), ("subplan: { fail_fast: true, max_parallel: 1, retry_failed: false }\n", 0)]
    {
        let bench = bench_with(more, &[]);
        let plan = run(
            &bench,
            "ci",
            parent(vec![
                container("all"),
                spawn("bad", json!("all"), &[], failing()),
                spawn("b", json!("all"), &[], editing(1, "TWO\n")),
                spawn("c", json!("all"), &[], editing(7, "EIGHT\n")),
            ]),
        );
        assert_eq!(bench.at(&plan), "execute/errored");
        let complete = children(&bench, &plan).iter().filter(|c| c["state"] == "complete").count();
        assert_eq!(complete, others);
    }
}

// SUB-014: asked about whatever the profile says
#[test]
fn a_conflict_shows_its_markers_and_a_person_says_what_stands() {
    for (answer, line) in
        [("take the child plan's version", "zwei"), ("2", "TWO"), ("I put both together", "TWO zwei")]
    {
        let bench = bench();
        let plan = run(
            &bench,
            "trusted",
            parent(vec![
                container("both"),
                spawn("english", json!("both"), &[], editing(1, "TWO\n")),
                spawn("german", json!("both"), &[], editing(1, "zwei\n")),
            ]),
        );
        assert_eq!(bench.at(&plan), "execute/processing+decision", "{}", bench.status(&plan));
        let marked = sandbox_file(&bench, &plan);
        assert!(
            marked.contains("<<<<<<< ") && marked.contains("TWO\n") && marked.contains("zwei\n"),
            "{marked}"
        );
        let question = bench.status(&plan)["awaiting"]["question"].as_str().unwrap().to_owned();
        assert!(question.contains("a.txt"), "{question}");
        let asked = bench.status(&plan)["awaiting"].clone();
        assert_eq!(
            (&asked["flag"], &asked["threshold"]),
            (&Value::Null, &Value::Null),
            "no flag of the profile asks"
        );
        let path = bench.status(&plan)["execution"]["sandbox"]["path"].as_str().unwrap().to_owned();
        let by_hand = answer.starts_with('I');
        if by_hand {
            // Said too early: the markers are still there.
            bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "done" }));
            bench.work(&plan);
            assert_eq!(bench.at(&plan), "execute/processing+decision");
            std::fs::write(format!("{path}/a.txt"), FILE.replace("two", line)).unwrap();
        }
        bench.ok("plan/prompt", json!({ "plan": plan, "guidance": answer }));
        bench.work(&plan);
        assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
        assert_eq!(sandbox_file(&bench, &plan), FILE.replace("two", line));
        // A line put together by hand leads to the person's answer, any other to the child's decision.
        let blame = bench.ok("plan/blame", json!({ "file": format!("{path}/a.txt"), "line": 2 }));
        let behind = &blame["segments"][0];
        let owner = match line {
            "zwei" => child(&bench, &plan, "german"),
            "TWO" => child(&bench, &plan, "english"),
            _ => plan.clone(),
        };
        assert_eq!(behind["plan_id"], json!(owner), "{blame:#}");
    }
}

// SUB-015, T21, T22
#[test]
fn below_the_threshold_each_spawn_asks_and_may_be_left_out() {
    let bench = bench();
    let script = parent(vec![
        container("both"),
        spawn("first", json!("both"), &[], editing(1, "TWO\n")),
        spawn("last", json!("both"), &[], editing(7, "EIGHT\n")),
    ]);
    let plan = run(&bench, "cautious", script);
    assert_eq!(bench.at(&plan), "execute/processing+spawn", "{}", bench.status(&plan));
    assert_eq!(bench.status(&plan)["awaiting"]["flag"], "install_dependency");
    assert_eq!(children(&bench, &plan), [Value::Null; 0]);
    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "start" }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/processing+spawn");
    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "skip" }));
    bench.work(&plan);
    assert_eq!(children(&bench, &plan).len(), 1);
    assert_eq!(bench.status(&plan)["execution"]["child_plans"], "1/1 complete");
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("two", "TWO"));
}

// PLAN-082 for children: an answer to the child is what the parent waits for
#[test]
fn a_parent_waits_for_a_child_that_waits_and_goes_on_when_the_child_is_answered() {
    let bench = bench();
    let mut asking = editing(1, "TWO\n");
    asking["strategize"][0]["requests"][0]["confidence"] = json!(0.3);
    let script = parent(vec![spawn("asks", Value::Null, &[], asking)]);
    let plan = run(&bench, "cautious", script);
    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "start" }));
    bench.work(&plan);
    let asks = child(&bench, &plan, "asks");
    assert_eq!(bench.at(&asks), "strategize/processing+decision");
    assert_eq!(bench.at(&plan), "execute/processing+child_plan");
    assert!(bench.status(&plan)["awaiting"]["question"].as_str().unwrap().contains(&asks));
    // Nobody is kept busy by it.
    bench.asked.0.lock().unwrap().clear();
    bench.ok("plan/list", json!({}));
    assert_eq!(*bench.asked.0.lock().unwrap(), []);

    bench.ok("plan/prompt", json!({ "plan": asks, "guidance": "Do it" }));
    assert_eq!(bench.at(&plan), "execute/processing");
    let wanted: Vec<String> = bench.asked.0.lock().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(wanted, std::slice::from_ref(&plan), "the worker of the root has the tree");
    bench.work(&asks);
    assert_eq!(bench.status(&plan)["execution"]["child_plans"], "1/1 complete");
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("two", "TWO"));
}

// PLAN-072, T44
#[test]
fn cancelling_a_plan_cancels_what_is_not_done_below_it_and_keeps_what_is() {
    let bench = bench();
    let mut asking = editing(7, "EIGHT\n");
    asking["strategize"][0]["requests"][0]["decision_type"] = json!("subplan_parallel_spawn");
    asking["strategize"][0]["requests"][0]["confidence"] = json!(0.1);
    let script = parent(vec![
        container("both"),
        spawn("first", json!("both"), &[], editing(1, "TWO\n")),
        spawn("asks", json!("both"), &[], asking),
    ]);
    let plan = run(&bench, "cautious", script);
    for _ in 0..2 {
        bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "start" }));
        bench.work(&plan);
    }
    assert_eq!(bench.at(&plan), "execute/processing+child_plan", "{}", bench.status(&plan));
    let cancelled = bench.ok("plan/cancel", json!({ "plan": plan, "reason": "enough" }));
    assert_eq!(cancelled["child_plans"], json!({ "completed": 1, "cancelled": 1, "artifacts_preserved": 1 }));
    assert_eq!(bench.at(&child(&bench, &plan, "first")), "execute/complete");
    assert_eq!(bench.at(&child(&bench, &plan, "asks")), "strategize/cancelled");
}

/// A child that does nothing but note how many are at it at once, and holds its thread until as many are as it was told.
#[derive(Default)]
struct Together {
    now: AtomicUsize,
    most: AtomicUsize,
    arrived: AtomicUsize,
    levels: Mutex<BTreeMap<String, usize>>,
}

impl Actor for Together {
    fn step<'a>(
        &'a self,
        input: StepInput,
        _: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            if input.phase == Phase::Execute {
                let wanted = input.arguments.get("together").and_then(Value::as_u64).unwrap_or(1) as usize;
                self.arrived.fetch_add(1, SeqCst);
                let now = self.now.fetch_add(1, SeqCst) + 1;
                let began = std::time::Instant::now();
                self.most.fetch_max(now, SeqCst);
                while self.arrived.load(SeqCst) < wanted {
                    assert!(began.elapsed().as_secs() < 60, "they do not run at once");
                    std::thread::yield_now();
                }
                self.now.fetch_sub(1, SeqCst);
                *self.levels.lock().unwrap().entry(input.description.clone()).or_insert(0) += 1;
            }
            let outcome = StepOutcome::Done(PhaseSummary::default());
            Ok(StepOutput {
                state: Value::Null,
                requests: Vec::new(),
                progress: None,
                outcome,
                cost: Default::default(),
            })
        })
    }
}

/// Runs `count` children of one container, `parallel` at a time; returns the actor.
fn many(count: usize, parallel: usize) -> Arc<Together> {
    let together = Arc::new(Together::default());
    let more = format!("subplan: {{ max_parallel: {parallel} }}\n");
    let bench = bench_with(&more, &[("test/together", together.clone() as Arc<dyn Actor>)]);
    bench.action(
        "local/together",
        "test/together",
        "test/together",
        "arguments:\n  - name: together\n    type: integer\n",
    );
    let mut spawns = vec![container("all")];
    for n in 0..count {
        let mut one = decision(&format!("c{n}"), "subplan_spawn", json!("all"));
        one["spawn"] = json!({ "action": "local/together", "prompt": format!("Do c{n}"), "arguments": { "together": parallel } });
        spawns.push(one);
    }
    let plan = run(&bench, "trusted", parent(spawns));
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(bench.status(&plan)["execution"]["child_plans_done"], count);
    assert!(together.levels.lock().unwrap().values().all(|times| *times == 1), "each ran once");
    together
}

// SUB-008, PLAN-056: one root's children need no slot of their own
#[test]
fn of_twelve_children_five_run_at_once() {
    assert_eq!(many(12, 5).most.load(SeqCst), 5);
}

// SUB-008
#[test]
fn fifty_children_run_ten_at_a_time() {
    assert_eq!(many(50, 10).most.load(SeqCst), 10);
}

/// A plan whose child hands on again, `levels` levels in all; the last one edits.
fn nested(levels: u32) -> Value {
    match levels {
        1 => editing(1, "DEEP\n"),
        _ => parent(vec![spawn(&format!("level{levels}"), Value::Null, &[], nested(levels - 1))]),
    }
}

// SUB-009
#[test]
fn five_levels_work_and_their_lines_lead_to_the_deepest_decision() {
    let bench = bench();
    let plan = run(&bench, "trusted", nested(5));
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("two", "DEEP"));
    let mut deepest = plan.clone();
    while let Some(below) = children(&bench, &deepest).first() {
        deepest = below["id"].as_str().unwrap().to_owned();
    }
    let blame = bench.ok("plan/blame", json!({ "file": bench.repo().join("a.txt"), "line": 2 }));
    assert_eq!(blame["segments"].as_array().unwrap().len(), 1, "{blame:#}");
    assert_eq!(blame["segments"][0]["plan_id"], json!(deepest));
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(
        (bench.at(&plan), bench.at(&deepest)),
        ("apply/applied".to_owned(), "apply/applied".to_owned())
    );
}

// SUB-009: one level more is refused when it is decided
#[test]
fn a_sixth_level_is_refused() {
    let bench = bench();
    let plan = run(&bench, "trusted", nested(6));
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(sandbox_file(&bench, &plan), FILE, "the last level was not made");
}

// SUB-016
#[test]
fn an_executing_actor_makes_a_child_with_the_tool_and_finds_its_work_at_its_next_step() {
    let bench = bench();
    let script = json!({
        "execute": [
            { "requests": [
                decision("impl/hand-on", "tool_invocation", Value::Null),
                { "request": "tool", "call_id": "t1", "tool": "local/create-subplan", "decision": "impl/hand-on",
                  "args": { "action": "local/act", "target_files": ["a.txt"], "prompt": "Do tool",
                            "arguments": { "script": editing(1, "TWO\n").to_string() } } },
            ] },
            { "expect": { "files": { "a.txt": FILE.replace("two", "TWO") },
                          "observations": [{ "observed": "decided" }, { "observed": "tool", "call_id": "t1" }],
                          "children": [{ "key": "impl/hand-on", "state": "execute/complete", "headline": "edited" }] },
              "outcome": { "done": { "headline": "done", "lines": [], "facts": null } } },
        ],
    });
    let plan = run(&bench, "trusted", script);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(children(&bench, &plan).len(), 1);
}

// SUB-010: the decisions above the spawn, and a share of the rest
#[test]
fn a_child_is_told_the_skeleton_of_its_parents_decisions() {
    let bench = bench();
    let mut told = editing(1, "TWO\n");
    told["strategize"][0]["expect"] = json!({ "parent": {
        "description": "Test", "target_files": ["a.txt"],
        "decisions": [{ "decision_type": "prompt_definition" }, { "key": "style" }, { "key": "told" }],
    } });
    let plan = run(
        &bench,
        "trusted",
        parent(vec![
            decision("style", "strategy_choice", Value::Null),
            decision("names", "strategy_choice", Value::Null),
            spawn("told", Value::Null, &[], told),
        ]),
    );
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
}

// APP-014, C-12, C-16: children are applied by themselves, in the order they build on each other
#[test]
fn children_are_applied_one_by_one_and_the_parent_with_the_last() {
    let bench = bench();
    let plan = run(
        &bench,
        "trusted",
        parent(vec![
            spawn("first", Value::Null, &[], editing(1, "TWO\n")),
            spawn("second", Value::Null, &[], editing(7, "EIGHT\n")),
        ]),
    );
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    let (first, second) = (child(&bench, &plan, "first"), child(&bench, &plan, "second"));
    let refused = bench.err("plan/apply", json!({ "plan": second }));
    assert!(refused.message.contains(&first), "{refused:?}");
    bench.ok("plan/apply", json!({ "plan": first }));
    bench.work(&first);
    assert_eq!((bench.at(&first), read(&bench)), ("apply/applied".to_owned(), FILE.replace("two", "TWO")));
    bench.ok("plan/apply", json!({ "plan": second }));
    bench.work(&second);
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    assert_eq!(read(&bench), FILE.replace("two", "TWO").replace("eight", "EIGHT"));
    assert_eq!(git(&bench.repo(), &["rev-list", "--count", "HEAD"]), "3", "nothing is committed twice");
}

// SUB-001: a draft that could not become a plan is refused when it is decided
#[test]
fn a_spawn_that_could_not_be_made_is_refused_with_the_reason() {
    let bench = bench();
    let mut lost = decision("lost", "subplan_spawn", Value::Null);
    lost["spawn"] = json!({ "action": "local/nothing" });
    let script = json!({ "strategize": [
        { "requests": [lost] },
        { "expect": { "observations": [{ "observed": "failed", "request": 0 }] },
          "outcome": { "done": { "headline": "", "lines": [], "facts": null } } },
    ] });
    let plan = run(&bench, "supervised", script);
    assert_eq!(bench.at(&plan), "strategize/complete+execute_approval", "{}", bench.status(&plan));
}
