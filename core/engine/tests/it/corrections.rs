//! Corrections: what falls, what stays to the byte, what is done again, and what is refused.

use std::sync::{Arc, Mutex};

use agents_actors::scripted::Scripted;
use agents_domain::ErrorKind;
use agents_domain::plan::Phase;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutput};
use serde_json::{Value, json};

use crate::harness::Bench;

/// Remembers which steps were asked for: the phase, and the step as the script counts.
struct Counted {
    inner: Scripted,
    steps: Arc<Mutex<Vec<(Phase, u64)>>>,
}

impl Actor for Counted {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        let at = input.state["step"].as_u64().unwrap_or(0);
        self.steps.lock().unwrap().push((input.phase, at));
        self.inner.step(input, host)
    }
}

pub(super) struct World {
    pub bench: Bench,
    steps: Arc<Mutex<Vec<(Phase, u64)>>>,
}

pub(super) const A: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

impl World {
    pub fn new(script: Value) -> Self {
        Self::with_env(script, &[])
    }

    pub fn with_env(script: Value, env: &[(&str, &str)]) -> Self {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let actor: Arc<dyn Actor> = Arc::new(Counted { inner: Scripted::new(script), steps: steps.clone() });
        let files = [("a.txt", A), ("b.txt", "b\n")];
        let bench = Bench::with_env(&files, &[("test/scripted", actor)], env);
        bench.action("local/act", "test/scripted", "test/scripted", "");
        Self { bench, steps }
    }

    /// The steps since the last time.
    pub fn steps(&self) -> Vec<(Phase, u64)> {
        std::mem::take(&mut self.steps.lock().unwrap())
    }

    pub fn decisions(&self, plan: &str) -> Vec<Value> {
        fn walk(node: &Value, found: &mut Vec<Value>) {
            found.push(node.clone());
            node["children"].as_array().unwrap().iter().for_each(|child| walk(child, found));
        }
        let mut found = Vec::new();
        let tree = self.bench.ok("plan/tree", json!({ "plan": plan, "show_superseded": true }));
        walk(&tree["tree"], &mut found);
        for node in &mut found {
            node.as_object_mut().unwrap().remove("children");
        }
        found.sort_by_key(|d| d["sequence"].as_u64());
        found
    }

    /// The active decision with this question.
    pub fn about(&self, plan: &str, key: &str) -> Value {
        let question = format!("How about {key}?");
        let found = self.decisions(plan);
        found.into_iter().find(|d| d["question"] == question.as_str() && d["status"] != "superseded").unwrap()
    }

    pub fn id(&self, plan: &str, key: &str) -> String {
        self.about(plan, key)["decision_id"].as_str().unwrap().to_owned()
    }

    pub fn correct(&self, decision: &str, guidance: &str) -> Value {
        self.bench.ok("plan/correct", json!({ "decision": decision, "mode": "revert", "guidance": guidance }))
    }

    pub fn sandbox(&self, plan: &str, file: &str) -> Option<String> {
        let path = self.bench.status(plan)["execution"]["sandbox"]["path"].as_str().unwrap().to_owned();
        std::fs::read_to_string(std::path::Path::new(&path).join(file)).ok()
    }
}

pub(super) fn done(headline: &str) -> Value {
    json!({ "done": { "headline": headline, "lines": [], "facts": null } })
}

pub(super) fn decide(key: &str, kind: &str, parent: Option<&str>, from: &[&str]) -> Value {
    json!({
        "request": "record_decision", "key": key, "decision_type": kind, "parent": parent,
        "question": format!("How about {key}?"), "chosen": 0,
        "alternatives": [{ "option": "Fix it" }, { "option": "Leave alone" }, { "option": "Other" }],
        "confidence": 0.9, "rationale": "because", "reasoning": null, "resources": [],
        "depends_on": from, "context": { "seen": key },
    })
}

pub(super) fn write(call: &str, decision: &str, path: &str, line: u32, text: &str) -> Value {
    json!({
        "request": "tool", "call_id": call, "tool": "builtin/apply-edits", "decision": decision,
        "args": { "resource": "${resource}", "edits": [{ "op": "edit", "path": path, "edits": [{
            "range": { "start": { "line": line, "column": 0 }, "end": { "line": line + 1, "column": 0 } },
            "new_text": text,
        }] }] },
    })
}

fn create(call: &str, decision: &str, path: &str) -> Value {
    json!({
        "request": "tool", "call_id": call, "tool": "builtin/apply-edits", "decision": decision,
        "args": { "resource": "${resource}", "edits": [{ "op": "create", "path": path, "text": "new\n" }] },
    })
}

fn checkpoint(decision: &str) -> Value {
    json!({ "request": "checkpoint", "decision": decision, "label": format!("after {decision}") })
}

/// Strategize: x, then y from it, then z by itself. Execute: x in two files, y elsewhere in the first, z in its own.
pub(super) fn script() -> Value {
    let impl_of = |key: &str, from: &str| decide(key, "implementation_choice", Some(from), &[from]);
    json!({
        "strategize": [
            { "requests": [decide("s/x", "strategy_choice", None, &[])] },
            { "requests": [decide("s/y", "strategy_choice", None, &["s/x"])] },
            { "requests": [decide("s/z", "strategy_choice", None, &[])] },
            { "outcome": done("decided") },
        ],
        "execute": [
            {
                "requests": [impl_of("i/x", "s/x"), write("x1", "i/x", "a.txt", 1, "two\n"), create("x2", "i/x", "x.txt"), checkpoint("i/x")],
                "cases": [{ "decision": "i/x", "chosen": "Other", "requests":
                    [write("x3", "i/x", "a.txt", 1, "zwei\n"), checkpoint("i/x")] }],
            },
            { "requests": [impl_of("i/y", "s/y"), write("y1", "i/y", "a.txt", 7, "eight\n"), checkpoint("i/y")] },
            { "requests": [impl_of("i/z", "s/z"), write("z1", "i/z", "b.txt", 0, "B\n"), checkpoint("i/z")] },
            { "outcome": done("did it") },
        ],
    })
}

// CORR-010, CORR-014, CORR-015, CORR-016, CORR-017, CORR-018, CORR-025, CORR-026, T45
#[test]
fn a_strategize_decision_is_decided_anew_with_what_was_decided_from_it() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "supervised");
    assert_eq!(world.bench.at(&plan), "strategize/complete+execute_approval");
    assert_eq!(world.steps().len(), 4);
    let before = world.decisions(&plan);
    let y = world.id(&plan, "s/y");
    let corrected = world.correct(&y, "2");
    assert_eq!(corrected["correction"]["corrects"], y.as_str());
    assert_eq!(corrected["correction"]["attempt"], 2);
    assert_eq!(corrected["correction"]["chosen"], "Leave alone");
    assert_eq!(corrected["affected_subtree"]["decisions_invalidated"], 1);
    assert_eq!(corrected["affected_subtree"]["unaffected_decisions"], 3);
    assert_eq!(corrected["sandbox_rollback"]["status"], "none");
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "strategize/complete+execute_approval");
    // Only the steps from the one that decided it.
    assert_eq!(world.steps(), [(Phase::Strategize, 1), (Phase::Strategize, 2), (Phase::Strategize, 3)]);
    let after = world.decisions(&plan);
    let new = world.about(&plan, "s/y");
    assert_eq!(new["decision_id"], corrected["correction"]["new_decision"]);
    assert_eq!(new["chosen"], "Leave alone");
    assert_eq!(after.len(), before.len() + 2);
    for old in before.iter().filter(|d| d["decision_id"] != y.as_str()) {
        assert!(after.contains(old), "{old} changed");
    }
    let said = after.last().unwrap();
    assert_eq!((said["type"].as_str(), said["chosen"].as_str()), (Some("user_intervention"), Some("2")));
    let explained = world.bench.ok("plan/explain", json!({ "decision": y }));
    assert_eq!(explained["superseded_by"], corrected["correction"]["new_decision"]);

    // What y was decided from takes y along; the answer falls with it.
    let x = world.id(&plan, "s/x");
    let corrected = world.correct(&x, "use the other module");
    assert_eq!(corrected["affected_subtree"]["decisions_invalidated"], 3);
    world.bench.work(&plan);
    assert_eq!(world.steps().len(), 4);
    assert_eq!(world.about(&plan, "s/x")["chosen"], "use the other module");
    assert_eq!(world.about(&plan, "s/y")["chosen"], "Fix it");
    assert_eq!(world.bench.status(&plan)["attempt"], 3);
}

// CORR-003, CORR-011, CORR-012, CORR-015, CORR-021, CORR-025, T46
#[test]
fn an_execute_decision_is_done_anew_and_later_work_stays_as_it_is() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "trusted");
    assert_eq!(world.bench.at(&plan), "execute/complete+apply_approval");
    let calls = world.bench.status(&plan)["execution"]["tool_calls"].clone();
    assert_eq!(calls, 4);
    world.steps();
    let kept: Vec<Value> =
        ["s/x", "s/y", "s/z", "i/y", "i/z"].iter().map(|k| world.about(&plan, k)).collect();
    let x = world.id(&plan, "i/x");
    let corrected = world.correct(&x, "Other");
    assert_eq!(corrected["affected_subtree"]["decisions_invalidated"], 1);
    assert_eq!(corrected["affected_subtree"]["artifacts"], json!(["a.txt", "x.txt"]));
    assert_eq!(corrected["sandbox_rollback"]["status"], "queued");
    for (group, keys) in [
        (
            "correction",
            &["mode", "impact", "new_decision", "corrects", "attempt", "correction_attempt_id"][..],
        ),
        (
            "affected_subtree",
            &[
                "decisions_invalidated",
                "child_plans_rolled_back",
                "artifacts_archived",
                "unaffected_decisions",
            ],
        ),
        ("sandbox_rollback", &["checkpoint", "files_reverted", "status"]),
        ("recompute", &["queued", "eta", "eta_s"]),
    ] {
        for key in keys {
            assert!(!corrected[group][key].is_null(), "{group}.{key}: {corrected}");
        }
    }
    assert_eq!(corrected["correction"]["attempt"], 2);
    assert!(corrected["history"].as_array().is_some_and(|history| history.len() >= 2));
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "execute/complete+apply_approval", "{}", world.bench.status(&plan));
    assert_eq!(world.sandbox(&plan, "a.txt").unwrap(), "1\nzwei\n3\n4\n5\n6\n7\neight\n9\n");
    assert_eq!(world.sandbox(&plan, "b.txt").unwrap(), "B\n");
    assert_eq!(world.sandbox(&plan, "x.txt"), None);
    // One call more: those of decisions that stand are answered from the record.
    assert_eq!(world.bench.status(&plan)["execution"]["tool_calls"], 5);
    for old in &kept {
        assert!(world.decisions(&plan).contains(old), "{old} changed");
    }
    // Every line knows its decision.
    let diff = world.bench.ok("plan/diff", json!({ "plan": plan }));
    let hunks = diff["patch_preview"][0]["hunks"].as_array().unwrap();
    assert_eq!(hunks.iter().map(|h| h["decisions"].clone()).collect::<Vec<_>>().len(), hunks.len());
    let behind: Vec<&Value> = hunks.iter().flat_map(|h| h["decisions"].as_array().unwrap()).collect();
    assert!(behind.contains(&&corrected["correction"]["new_decision"]), "{hunks:?}");
    assert!(behind.contains(&&json!(world.id(&plan, "i/y"))), "{hunks:?}");
    world.bench.ok("plan/apply", json!({ "plan": plan }));
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "apply/applied");
    let applied = std::fs::read_to_string(world.bench.repo().join("a.txt")).unwrap();
    assert_eq!(applied, "1\nzwei\n3\n4\n5\n6\n7\neight\n9\n");
}

// CORR-012, 4.8, C-45
#[test]
fn a_strategize_decision_corrected_in_execute_takes_all_of_execute_back() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "trusted");
    world.steps();
    let z = world.id(&plan, "s/z");
    let kept: Vec<Value> = ["s/x", "s/y"].iter().map(|k| world.about(&plan, k)).collect();
    let corrected = world.correct(&z, "Leave alone");
    assert_eq!(corrected["affected_subtree"]["decisions_invalidated"], 4);
    assert_eq!(corrected["phase"], "strategize");
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "execute/complete+apply_approval", "{}", world.bench.status(&plan));
    let steps = world.steps();
    assert_eq!(steps[..2], [(Phase::Strategize, 2), (Phase::Strategize, 3)]);
    assert_eq!(steps.len(), 6);
    for old in &kept {
        assert!(world.decisions(&plan).contains(old), "{old} changed");
    }
    assert_eq!(world.sandbox(&plan, "a.txt").unwrap(), "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n");
}

// CORR-007, CORR-009: a dry run changes nothing, and says what overlaps.
#[test]
fn a_dry_run_shows_what_falls_and_changes_nothing() {
    let mut script = script();
    script["execute"][1]["requests"][1] = write("y1", "i/y", "a.txt", 1, "two and a half\n");
    let world = World::new(script);
    let plan = world.bench.plan("local/act", "trusted");
    let (decisions, status) = (world.decisions(&plan), world.bench.status(&plan));
    let text = world.sandbox(&plan, "a.txt");
    let x = world.id(&plan, "i/x");
    let dry = world
        .bench
        .ok("plan/correct", json!({ "decision": x, "mode": "revert", "guidance": "Other", "dry_run": true }));
    assert_eq!(dry["dry_run"], true);
    let falls = dry["would_revert"]["decisions_to_invalidate"].as_array().unwrap();
    assert_eq!(falls.iter().map(|d| d["overlaps"].as_bool().unwrap()).collect::<Vec<_>>(), [false, true]);
    assert_eq!((&dry["tier"], &dry["rejected"]), (&json!("full"), &json!(false)));
    assert_eq!(dry["warnings"].as_array().unwrap().len(), 1, "{dry}");
    assert_eq!(world.decisions(&plan), decisions);
    assert_eq!(world.sandbox(&plan, "a.txt"), text);
    let mut now = world.bench.status(&plan);
    now["timing"] = status["timing"].clone();
    assert_eq!(now, status);

    // What overlapped is done again, on the new text.
    world.correct(&x, "Other");
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "execute/complete+apply_approval", "{}", world.bench.status(&plan));
    assert_eq!(world.sandbox(&plan, "a.txt").unwrap(), "1\ntwo and a half\n3\n4\n5\n6\n7\n8\n9\n");
}

// CORR-002: the root prompt
#[test]
fn the_prompt_itself_can_be_corrected() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "trusted");
    let root = world.decisions(&plan)[0]["decision_id"].as_str().unwrap().to_owned();
    world.steps();
    world.correct(&root, "Do something else");
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "execute/complete+apply_approval", "{}", world.bench.status(&plan));
    assert_eq!(world.bench.status(&plan)["description"], "Do something else");
    assert_eq!(world.steps().len(), 8);
    let tree = world.bench.ok("plan/tree", json!({ "plan": plan }));
    assert_eq!(tree["tree"]["chosen"], "Do something else");
    assert_eq!(tree["summary"]["nodes"], 8);
}

// CORR-030, OUT-004, 4.1
#[test]
fn what_cannot_be_corrected_is_refused_with_what_would_be_right() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "supervised");
    let x = world.id(&plan, "s/x");
    let refused = |decision: &str, guidance: &str| {
        world
            .bench
            .err("plan/correct", json!({ "decision": decision, "mode": "revert", "guidance": guidance }))
    };
    assert_eq!(refused(&x, "  ").kind, ErrorKind::ValidationFailed);
    assert_eq!(refused(&x, &"x".repeat(1 << 20)).kind, ErrorKind::ValidationFailed);
    assert_eq!(refused(&x, "9").kind, ErrorKind::ValidationFailed);
    assert_eq!(refused(&x, "Fix it").kind, ErrorKind::ValidationFailed);
    assert_eq!(refused("01ZZZ", "a").kind, ErrorKind::NotFound);
    let of_plan = refused(&plan, "a");
    assert!(of_plan.message.contains("is the id of a plan"), "{of_plan:?}");
    let corrected = world.correct(&x, "Other");
    // It is under way.
    let again = refused(&world.id(&plan, "s/z"), "Other");
    assert_eq!(again.kind, ErrorKind::InvalidState);
    assert!(again.message.contains("still being carried out"), "{again:?}");
    world.bench.work(&plan);
    let replaced = refused(&x, "Leave alone");
    let by = corrected["correction"]["new_decision"].as_str().unwrap();
    assert!(replaced.message.contains(by), "{replaced:?}");
    world.bench.ok("plan/execute", json!({ "plan": plan }));
    world.bench.work(&plan);
    world.bench.ok("plan/apply", json!({ "plan": plan }));
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "apply/applied");
    let z = world.id(&plan, "s/z");
    let applied = refused(&z, "Other");
    assert!(applied.suggestions.iter().any(|s| s.contains("--mode append")), "{applied:?}");
    let dry = world
        .bench
        .ok("plan/correct", json!({ "decision": z, "mode": "revert", "guidance": "Other", "dry_run": true }));
    assert_eq!((&dry["rejected"], &dry["reason"]), (&json!(true), &json!(applied.message)));
}

/// The id of the checkpoint with this label, the last of them.
fn checkpoint_id(world: &World, plan: &str, label: &str) -> String {
    let artifacts = world.bench.ok("plan/artifacts", json!({ "plan": plan }));
    let all = artifacts["checkpoints"].as_array().unwrap();
    let found = all.iter().rev().find(|c| c["label"] == label);
    found.unwrap_or_else(|| panic!("{all:?}"))["id"].as_str().unwrap().to_owned()
}

// CKPT-001 to CKPT-005, T49, T33, C-33
#[test]
fn a_rollback_goes_back_and_forward_again() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "trusted");
    let files = |world: &World| ["a.txt", "b.txt", "x.txt"].map(|file| world.sandbox(&plan, file));
    let (whole, decisions) = (files(&world), world.decisions(&plan));
    let after_x = checkpoint_id(&world, &plan, "after i/x");
    let ask = |checkpoint: &str, dry_run: bool| json!({ "plan": plan, "checkpoint": checkpoint, "dry_run": dry_run });
    let preview = world.bench.ok("plan/rollback", ask(&after_x, true));
    assert_eq!(world.decisions(&plan), decisions);
    assert_eq!(
        preview["changes_reverted"],
        json!([{ "file": "a.txt", "action": "restored" }, { "file": "b.txt", "action": "restored" }])
    );
    assert_eq!(preview["impact"]["decisions_after_cp"], "2 discarded");
    assert_eq!(preview["impact"]["tool_calls_after_cp"], "2 undone");

    let back = world.bench.ok("plan/rollback", ask(&after_x, false));
    let redo = back["redo_checkpoint"].as_str().unwrap().to_owned();
    // A worker settles it, though the plan waits.
    assert_eq!(world.bench.status(&plan)["rewinding"], true);
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "execute/queued+rollback");
    assert_eq!(world.bench.status(&plan)["rewinding"], false);
    assert_eq!(world.sandbox(&plan, "a.txt").unwrap(), "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n");
    assert_eq!(world.sandbox(&plan, "b.txt").unwrap(), "b\n");
    let now = world.decisions(&plan);
    let gone = |key: &str| {
        !now.iter().any(|d| d["question"] == format!("How about {key}?") && d["status"] == "active")
    };
    assert!(gone("i/y") && gone("i/z") && !gone("i/x"));
    assert_eq!(now.len(), decisions.len() + 1);

    // Forward again: the same files, the same decisions in substance, and lines that know theirs.
    world.bench.ok("plan/rollback", ask(&redo, false));
    world.bench.work(&plan);
    assert_eq!(files(&world), whole);
    let diff = world.bench.ok("plan/diff", json!({ "plan": plan }));
    let behind: Vec<&Value> =
        diff["files"].as_array().unwrap().iter().flat_map(|f| f["decisions"].as_array().unwrap()).collect();
    assert!(
        behind.contains(&&json!(world.id(&plan, "i/y"))) && behind.contains(&&json!(world.id(&plan, "i/z")))
    );
    world.steps();
    world.bench.ok("plan/execute", json!({ "plan": plan }));
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "execute/complete+apply_approval", "{}", world.bench.status(&plan));
    assert_eq!(files(&world), whole);
    assert_eq!(world.bench.status(&plan)["execution"]["tool_calls"], 4, "nothing was made twice");

    // Back again, and on from there.
    world.bench.ok("plan/rollback", ask(&after_x, false));
    world.bench.work(&plan);
    world.bench.ok("plan/execute", json!({ "plan": plan }));
    world.bench.work(&plan);
    assert_eq!(world.bench.at(&plan), "execute/complete+apply_approval", "{}", world.bench.status(&plan));
    assert_eq!(files(&world), whole);
}

// CKPT-006, C-34, ruling 9
#[test]
fn a_rollback_that_would_lose_something_is_refused() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "trusted");
    let base = checkpoint_id(&world, &plan, "Before the first change");
    let path = world.bench.status(&plan)["execution"]["sandbox"]["path"].as_str().unwrap().to_owned();
    std::fs::write(std::path::Path::new(&path).join("b.txt"), "mine\n").unwrap();
    let ask = json!({ "plan": plan, "checkpoint": base });
    let refused = world.bench.err("plan/rollback", ask.clone());
    assert!(refused.message.contains("b.txt"), "{refused:?}");
    assert!(!refused.suggestions.is_empty());
    assert_eq!(std::fs::read_to_string(std::path::Path::new(&path).join("b.txt")).unwrap(), "mine\n");
    std::fs::write(std::path::Path::new(&path).join("b.txt"), "B\n").unwrap();
    let unknown = json!({ "plan": plan, "checkpoint": "cp_01ZZZ" });
    assert_eq!(world.bench.err("plan/rollback", unknown).kind, ErrorKind::NotFound);

    world.bench.ok("plan/apply", json!({ "plan": plan }));
    world.bench.work(&plan);
    let refused = world.bench.err("plan/rollback", ask);
    assert_eq!(refused.kind, ErrorKind::InvalidState);
    for wanted in ["--mode append", "agents plan revert"] {
        assert!(refused.suggestions.iter().any(|s| s.contains(wanted)), "{refused:?}");
    }
}

// PLAN-102, C-28, CORR-004, 4.11
#[test]
fn the_diff_of_a_correction_compares_both_sides() {
    let world = World::new(script());
    let plan = world.bench.plan("local/act", "trusted");
    let corrected = world.correct(&world.id(&plan, "i/x"), "Other");
    world.bench.work(&plan);
    for id in ["correction_attempt_id", "new_decision"] {
        let diff =
            world.bench.ok("plan/correction-diff", json!({ "correction": corrected["correction"][id] }));
        assert_eq!(diff["correction_diff"]["state"], "completed");
        assert_eq!(diff["correction_diff"]["files_changed"], 2);
        let of = |file: &str| {
            let all = diff["comparison"].as_array().unwrap();
            let found = all.iter().find(|c| c["file"] == file).unwrap();
            (found["before"].as_str().unwrap().to_owned(), found["after"].as_str().unwrap().to_owned())
        };
        assert_eq!(of("a.txt"), ("+2 -2".to_owned(), "+2 -2 (rewritten)".to_owned()));
        assert_eq!(of("b.txt"), ("+1 -1".to_owned(), "(unchanged)".to_owned()));
        assert_eq!(of("x.txt"), ("(new file)".to_owned(), "(not there)".to_owned()));
        let hunk = &diff["patch_preview"][0]["hunks"][0];
        assert_eq!((&hunk["deletions"], &hunk["insertions"]), (&json!(["two"]), &json!(["zwei"])));
    }
    world.bench.err("plan/correction-diff", json!({ "correction": plan }));
}
