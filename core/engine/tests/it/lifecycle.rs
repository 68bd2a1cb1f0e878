//! Plans from use to apply: gates, answers, writes, undo, failure, cancellation, resumption.

use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_domain::ErrorKind;
use agents_domain::ports::actor::Actor;
use agents_engine::worker::Ended;
use serde_json::{Value, json};

use crate::harness::{Bench, git};

/// One choice with two options, confidence 0.7, then one edit of `a.txt` under it, checkpointed.
pub fn choose_and_edit() -> Value {
    json!({
        "strategize": [
            { "requests": [decision("strategy/x", "strategy_choice", null_parent(), 0.7)] },
            { "outcome": done("decided") },
        ],
        "execute": [
            { "requests": [
                decision("impl/x", "implementation_choice", json!("strategy/x"), 0.7),
                edit("1", "impl/x", "a.txt", 1, "TWO\n"),
                { "request": "checkpoint", "decision": "impl/x", "label": "after x" },
            ] },
            { "expect": { "files": { "a.txt": "one\nTWO\nthree\n" } }, "outcome": done("did it") },
        ],
    })
}

fn null_parent() -> Value {
    Value::Null
}

pub fn done(headline: &str) -> Value {
    json!({ "done": { "headline": headline, "lines": [], "facts": null } })
}

pub fn decision(key: &str, kind: &str, parent: Value, confidence: f64) -> Value {
    json!({
        "request": "record_decision", "key": key, "decision_type": kind, "parent": parent,
        "question": format!("How about {key}?"), "chosen": 0,
        "alternatives": [{ "option": "Fix it" }, { "option": "Leave alone" }],
        "confidence": confidence, "rationale": "because", "reasoning": null, "resources": [],
        "depends_on": [], "context": { "seen": ["a.txt"] },
    })
}

/// Replaces one line (0-based) of a file.
pub fn edit(call: &str, decision: &str, path: &str, line: u32, text: &str) -> Value {
    json!({
        "request": "tool", "call_id": call, "tool": "builtin/apply-edits", "decision": decision,
        "args": { "resource": "${resource}", "edits": [{ "op": "edit", "path": path, "edits": [{
            "range": { "start": { "line": line, "column": 0 }, "end": { "line": line + 1, "column": 0 } },
            "new_text": text,
        }] }] },
    })
}

fn bench(script: Value) -> Bench {
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(script));
    let bench = Bench::new(&[("a.txt", "one\ntwo\nthree\n")], &[("test/scripted", actor)]);
    bench.action("local/act", "test/scripted", "test/scripted", "");
    bench
}

fn read(bench: &Bench) -> String {
    std::fs::read_to_string(bench.repo().join("a.txt")).unwrap()
}

// PLAN-001, PLAN-002, PLAN-019, PLAN-035, APP-001, APP-012, DEC-004, DEC-010
#[test]
fn a_plan_goes_from_use_to_applied_and_only_apply_changes_the_checkout() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "supervised");
    assert_eq!(bench.at(&plan), "strategize/complete+execute_approval");
    assert_eq!(
        bench.asked.0.lock().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>(),
        std::slice::from_ref(&plan)
    );

    bench.ok("plan/execute", json!({ "plan": plan }));
    assert_eq!(bench.work(&plan), Ended::Paused);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval");
    assert_eq!(read(&bench), "one\ntwo\nthree\n");

    let diff = bench.ok("plan/diff", json!({ "plan": plan }));
    assert_eq!(
        (&diff["diff_summary"]["insertions"], &diff["diff_summary"]["deletions"]),
        (&json!(1), &json!(1))
    );
    let behind = &diff["patch_preview"][0]["hunks"][0]["decisions"];
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    let strategy = &tree["tree"]["children"][0];
    assert_eq!(strategy["type"], "strategy_choice");
    let implementation = &strategy["children"][0];
    assert_eq!(behind, &json!([implementation["decision_id"]]));

    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied");
    assert_eq!(read(&bench), "one\nTWO\nthree\n");
    assert_eq!(git(&bench.repo(), &["status", "--porcelain"]), "");
    let message = git(&bench.repo(), &["log", "-1", "--format=%B"]);
    assert!(message.contains(&plan), "{message}");

    let explained = bench.ok(
        "plan/explain",
        json!({
            "decision": strategy["decision_id"], "show_context": true,
        }),
    );
    assert_eq!(explained["context_snapshot"]["document"], json!({ "seen": ["a.txt"] }));
    assert_eq!(explained["alternatives_count"], 2);
    assert_eq!(explained["impact"]["downstream_decisions"], 1);
}

// DEC-013 and the blame of lines before and after apply
#[test]
fn blame_shows_a_proposed_change_before_apply_and_the_lines_after_it() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "trusted");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval");
    let file = bench.repo().join("a.txt");
    let before = bench.ok("plan/blame", json!({ "file": file, "line": 2 }));
    assert_eq!(before["segments"][0]["proposed"], true);
    assert_eq!(before["segments"][0]["proposed_text"], "TWO\n");
    assert_eq!(before["segments"][0]["strategy"]["chosen"], "Fix it");

    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    std::fs::write(&file, "zero\none\nTWO\nthree\n").unwrap();
    let after = bench.ok("plan/blame", json!({ "file": file }));
    let segments = after["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 1);
    assert_eq!((&segments[0]["start_line"], &segments[0]["end_line"]), (&json!(3), &json!(3)));
    assert_eq!(segments[0]["proposed"], false);
}

// DEC-015, PLAN-066, PLAN-080, PLAN-081, PLAN-082, PLAN-083
#[test]
fn a_decision_below_its_threshold_waits_and_an_answer_takes_its_place() {
    let bench = bench(json!({
        "strategize": [
            { "requests": [
                decision("strategy/x", "strategy_choice", null_parent(), 0.5),
                decision("strategy/y", "strategy_choice", null_parent(), 0.9),
                decision("strategy/z", "strategy_choice", null_parent(), 0.5),
            ] },
            { "expect": { "observations": [
                { "key": "strategy/x", "chosen_option": "Leave alone" },
                { "key": "strategy/y", "chosen_option": "Fix it" },
                { "key": "strategy/z", "chosen_option": "ask the docs team" },
            ] }, "outcome": done("decided") },
        ],
    }));
    let plan = bench.plan("local/act", "cautious");
    assert_eq!(bench.at(&plan), "strategize/processing+decision");
    let status = bench.status(&plan);
    assert_eq!(status["awaiting"]["flag"], "edit_code");
    assert_eq!(status["awaiting"]["threshold"], 0.6);
    assert_eq!(status["pending_decisions"], 2);
    let first = status["awaiting"]["decision_id"].clone();

    // A number that is no option changes nothing.
    assert_eq!(
        bench.err("plan/prompt", json!({ "plan": plan, "guidance": "3" })).kind,
        ErrorKind::ValidationFailed
    );

    let answered = bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "2" }));
    assert_eq!(answered["guidance_added"]["option"], "Leave alone");
    assert_eq!(answered["guidance_added"]["state_transition"], "awaiting_input -> awaiting_input");
    assert_eq!(answered["decision_created"]["parent"], first);
    let explained = bench.ok("plan/explain", json!({ "decision": first }));
    assert_eq!(explained["status"], "superseded");
    assert_eq!(explained["superseded_by"], answered["decision_created"]["id"]);

    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "ask the docs team" }));
    bench.work(&plan);
    // Confidence 0.5 was answered by a person; 0.9 is what is left for the gate to Execute.
    assert_eq!(bench.status(&plan)["error"], Value::Null);
    assert_ne!(bench.at(&plan), "strategize/processing+decision");
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    let kinds: Vec<_> =
        tree["tree"]["children"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["strategy_choice", "user_intervention", "user_intervention"]);
}

// ruling 6: an explicit `plan execute` approves the phase's decisions in advance
#[test]
fn an_explicit_execute_approves_the_decisions_of_the_phase_in_advance() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "supervised");
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    let implementation = &tree["tree"]["children"][0]["children"][0]["decision_id"];
    let explained = bench.ok("plan/explain", json!({ "decision": implementation }));
    assert_eq!(explained["gate"]["approval"], "by_command");
    assert_eq!(explained["gate"]["threshold"], 1.0);
}

// An answer that says otherwise must not let the proposed write through.
#[test]
fn a_write_whose_decision_was_answered_otherwise_is_not_made() {
    let bench = bench(json!({
        "strategize": [{ "requests": [decision("strategy/x", "strategy_choice", null_parent(), 0.9)] }],
        "execute": [
            { "requests": [
                decision("impl/x", "implementation_choice", json!("strategy/x"), 0.5),
                edit("1", "impl/x", "a.txt", 1, "TWO\n"),
            ] },
            { "expect": { "files": { "a.txt": "one\ntwo\nthree\n" } }, "outcome": done("left it") },
        ],
    }));
    let plan = bench.plan("local/act", "cautious");
    assert_eq!(bench.at(&plan), "execute/processing+decision");
    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "Leave alone" }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval");
    assert_eq!(bench.ok("plan/diff", json!({ "plan": plan }))["files"], json!([]));
}

// PLAN-012, CKPT-016, DEC-007, DEC-011
#[test]
fn what_a_phase_does_not_allow_is_refused_and_observed() {
    let bench = bench(json!({
        "strategize": [
            { "requests": [
                decision("strategy/x", "strategy_choice", null_parent(), 0.9),
                edit("1", "strategy/x", "a.txt", 1, "TWO\n"),
            ] },
            { "expect": { "observations": [{ "key": "strategy/x" }, { "observed": "failed", "request": 1 }],
                          "files": { "a.txt": "one\ntwo\nthree\n" } },
              "requests": [decision("p", "prompt_definition", null_parent(), 0.9)] },
            { "expect": { "observations": [{ "observed": "failed", "request": 0 }] }, "outcome": done("decided") },
        ],
        "execute": [
            { "requests": [decision("s", "strategy_choice", null_parent(), 0.9)] },
            { "expect": { "observations": [{ "observed": "failed" }] },
              "requests": [{ "request": "tool", "call_id": "1", "tool": "builtin/apply-edits", "decision": null,
                             "args": { "resource": "${resource}", "edits": [] } }] },
            { "expect": { "observations": [{ "observed": "failed" }] }, "outcome": done("nothing") },
        ],
    }));
    let plan = bench.plan("local/act", "trusted");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
}

#[test]
fn undo_takes_back_every_write_under_a_decision() {
    let bench = bench(json!({
        "strategize": [{ "requests": [decision("strategy/x", "strategy_choice", null_parent(), 0.9)] }],
        "execute": [
            { "requests": [
                decision("impl/x", "implementation_choice", json!("strategy/x"), 0.9),
                edit("1", "impl/x", "a.txt", 0, "ONE\n"),
                edit("2", "impl/x", "a.txt", 1, "TWO\n"),
            ] },
            { "expect": { "files": { "a.txt": "ONE\nTWO\nthree\n" }, "observations": [{}, {"observed":"tool"}, {"observed":"tool"}] },
              "requests": [
                { "request": "undo", "decision": "impl/x" },
                decision("back/x", "error_recovery", json!("impl/x"), 0.1),
            ] },
            { "expect": { "files": { "a.txt": "one\ntwo\nthree\n" } }, "outcome": done("took it back") },
        ],
    }));
    let plan = bench.plan("local/act", "trusted");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(bench.ok("plan/diff", json!({ "plan": plan }))["files"], json!([]));
    // DEC-005
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    let fix = &tree["tree"]["children"][0]["children"][0];
    assert_eq!((&fix["type"], &fix["artifacts"]), (&json!("implementation_choice"), &json!([])));
    let errors = bench.ok("plan/errors", json!({ "plan": plan }));
    assert_eq!(errors["history"][0]["type"], "error_recovery");
    assert_eq!(errors["error_message"], Value::Null);
    // Nothing to apply is applied all the same.
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied");
    assert_eq!(git(&bench.repo(), &["rev-list", "--count", "HEAD"]), "1");
}

// PLAN-065, PLAN-090, T14
#[test]
fn a_failing_actor_leaves_an_errored_plan_that_says_why_and_can_be_retried() {
    let bench = bench(json!({
        "strategize": [{ "fail": { "message": "the oracle is silent", "category": "actor", "transient": false, "hints": [] } }],
    }));
    let plan = bench.plan("local/act", "ci");
    let status = bench.status(&plan);
    assert_eq!(status["state"], "errored", "{status}");
    assert_eq!(status["error"]["message"], "the oracle is silent");
    let errors = bench.ok("plan/errors", json!({ "plan": plan }));
    assert_eq!(errors["error_category"], "actor");
    // The hints are what the plan takes now.
    let hints: Vec<&str> = errors["recovery_hints"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|h| h["cli_command"].as_str())
        .collect();
    assert_eq!(errors["recovery_hints"][0]["action"], "retry");
    assert_eq!(hints[0], format!("agents plan execute {plan}"));
    assert_eq!(hints.len(), status["allowed_actions"].as_array().unwrap().len());
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.status(&plan)["state"], "errored");
}

// PLAN-070, PLAN-071, PLAN-072
#[test]
fn a_cancelled_plan_keeps_its_phase_and_is_never_resumed() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "trusted");
    let cancelled = bench.ok("plan/cancel", json!({ "plan": plan, "reason": "no more" }));
    assert_eq!((&cancelled["phase"], &cancelled["state"]), (&json!("execute"), &json!("cancelled")));
    assert_eq!(cancelled["sandbox"]["status"], "preserved");
    for verb in ["plan/execute", "plan/apply", "plan/cancel"] {
        let error = bench.err(verb, json!({ "plan": plan }));
        assert_eq!(error.kind, ErrorKind::InvalidState, "{verb}");
    }
    assert_eq!(read(&bench), "one\ntwo\nthree\n");
}

// PLAN-030, PLAN-032, PLAN-033, PLAN-036, ACT-009
#[test]
fn a_plan_that_cannot_be_made_leaves_nothing_behind() {
    let bench = bench(choose_and_edit());
    bench.action(
        "local/typed",
        "test/scripted",
        "test/scripted",
        "reusable: false\narguments:\n  - {name: count, type: integer, required: true, max_value: 9}\n",
    );
    let make = |params: Value| bench.err("plan/use", params);
    let base = json!({ "action": "local/typed", "projects": ["local/app"] });
    let with = |key: &str, value: Value| {
        let mut params = base.clone();
        params[key] = value;
        params
    };
    assert!(make(base.clone()).message.contains("`count` is missing"));
    assert!(make(with("arguments", json!({ "count": "many" }))).message.contains("type integer"));
    assert!(make(with("arguments", json!({ "count": "10" }))).message.contains("to 9"));
    assert!(make(with("arguments", json!({ "count": 1, "other": 2 }))).message.contains("`other`"));
    assert_eq!(make(json!({ "action": "local/none", "projects": ["local/app"] })).kind, ErrorKind::NotFound);
    assert_eq!(make(json!({ "action": "local/act", "projects": ["local/none"] })).kind, ErrorKind::NotFound);
    assert!(make(json!({ "action": "local/act", "projects": [] })).message.contains("at least one project"));
    let actor = json!({ "action": "local/act", "projects": ["local/app"], "strategy_actor": "local/none" });
    assert!(make(actor).message.contains("local/none"));
    let unknown = json!({ "action": "local/act", "projects": ["local/app"], "proyect": 1 });
    assert!(make(unknown).message.contains("proyect"));
    assert_eq!(bench.ok("plan/list", json!({}))["total"], 0);

    bench.ok("plan/use", with("arguments", json!({ "count": "3" })));
    assert!(make(with("arguments", json!({ "count": "3" }))).message.contains("archived"));
    assert_eq!(bench.ok("plan/list", json!({}))["total"], 1);
}

// CLI-026, OUT-004
#[test]
fn ids_are_found_by_their_beginning_and_told_apart_by_kind() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "trusted");
    let other = bench.plan("local/act", "trusted");
    assert_eq!(bench.status(&plan.to_lowercase())["plan_id"], plan.as_str());
    let common: String =
        plan.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    let error = bench.err("plan/status", json!({ "plan": common }));
    assert!(error.detail.unwrap().contains(&other));
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    let decision = tree["tree"]["decision_id"].as_str().unwrap();
    let error = bench.err("plan/status", json!({ "plan": decision }));
    assert!(error.message.contains("is the id of a decision"), "{}", error.message);
    for nonsense in ["", "../x", "not an id", "Ä"] {
        assert_eq!(
            bench.err("plan/status", json!({ "plan": nonsense })).kind,
            ErrorKind::NotFound,
            "{nonsense}"
        );
    }
}

// PLAN-056, CONF-016
#[test]
fn a_plan_without_a_slot_stays_queued_and_asks_again_when_one_is_free() {
    let bench = bench(json!({
        "strategize": [{ "requests": [decision("strategy/x", "strategy_choice", null_parent(), 0.1)] }],
    }));
    // Four plans wait in the middle of Strategize; a waiting plan holds no slot.
    for _ in 0..4 {
        let plan = bench.plan("local/act", "cautious");
        assert_eq!(bench.at(&plan), "strategize/processing+decision");
    }
    let fifth = bench.plan("local/act", "cautious");
    assert_eq!(bench.at(&fifth), "strategize/processing+decision");
}

// TOOL-003: what a model asks for never leaves the sandbox
#[test]
fn a_write_outside_the_sandbox_is_refused() {
    for path in ["../escape.txt", "/etc/escape", ".git/config", "link/escape.txt"] {
        let bench = bench(json!({
            "strategize": [{ "requests": [decision("strategy/x", "strategy_choice", null_parent(), 0.9)] }],
            "execute": [
                { "requests": [
                    decision("impl/x", "implementation_choice", json!("strategy/x"), 0.9),
                    { "request": "tool", "call_id": "1", "tool": "builtin/apply-edits", "decision": "impl/x",
                      "args": { "resource": "${resource}", "edits": [{ "op": "create", "path": path, "text": "x" }] } },
                ] },
                { "expect": { "observations": [{ "key": "impl/x" }, { "observed": "failed" }] }, "outcome": done("no") },
            ],
        }));
        let outside = bench.dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, bench.repo().join("link")).unwrap();
        git(&bench.repo(), &["add", "-A"]);
        git(&bench.repo(), &["commit", "-q", "-m", "link"]);
        let plan = bench.plan("local/act", "trusted");
        assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{path}: {}", bench.status(&plan));
        assert!(std::fs::read_dir(&outside).unwrap().next().is_none());
    }
}

/// Neighbouring lines of one hunk under different decisions keep their own.
#[test]
fn adjacent_changes_of_two_decisions_are_told_apart_before_and_after_apply() {
    let bench = bench(json!({
        "strategize": [{ "requests": [
            decision("strategy/x", "strategy_choice", null_parent(), 0.9),
            decision("strategy/y", "strategy_choice", null_parent(), 0.9),
        ] }],
        "execute": [
            { "requests": [
                decision("impl/x", "implementation_choice", json!("strategy/x"), 0.9),
                edit("1", "impl/x", "a.txt", 0, ""),
                decision("impl/y", "implementation_choice", json!("strategy/y"), 0.9),
                edit("2", "impl/y", "a.txt", 0, "TWO\nTWO AND A HALF\n"),
            ] },
            { "expect": { "files": { "a.txt": "TWO\nTWO AND A HALF\nthree\n" } }, "outcome": done("did it") },
        ],
    }));
    let plan = bench.plan("local/act", "trusted");
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    let under = |at: usize| tree["tree"]["children"][at]["children"][0]["decision_id"].clone();
    let (x, y) = (under(0), under(1));
    let blame = |bench: &Bench| {
        let found = bench.ok("plan/blame", json!({ "file": bench.repo().join("a.txt") }));
        let segments = found["segments"].as_array().unwrap();
        segments
            .iter()
            .map(|s| {
                (s["decision_id"].clone(), s["start_line"].as_u64().unwrap(), s["end_line"].as_u64().unwrap())
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(blame(&bench), [(x.clone(), 1, 1), (y.clone(), 2, 2)]);
    // PLAN-101, C-15: the same of each line of the diff.
    let diff = bench.ok("plan/diff", json!({ "plan": plan }));
    let lines = diff["patch_preview"][0]["hunks"][0]["lines"].as_array().unwrap();
    let shown: Vec<_> =
        lines.iter().map(|l| (l["kind"].as_str(), l["text"].as_str(), &l["decision_id"])).collect();
    let none = Value::Null;
    assert_eq!(
        shown,
        [
            (Some("-"), Some("one"), &x),
            (Some("-"), Some("two"), &y),
            (Some("+"), Some("TWO"), &y),
            (Some("+"), Some("TWO AND A HALF"), &y),
            (Some(" "), Some("three"), &none),
        ]
    );
    let file = &diff["files"][0];
    let at = std::path::Path::new(file["sandbox_path"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(at).unwrap(), "TWO\nTWO AND A HALF\nthree\n");
    assert_ne!(file["base_hash"], file["sandbox_hash"]);
    assert_eq!(file["base_hash"].as_str().map(str::len), Some(64));
    // An edit above, not yet applied, moves the proposals along.
    std::fs::write(bench.repo().join("a.txt"), "zero\none\ntwo\nthree\n").unwrap();
    assert_eq!(blame(&bench), [(x.clone(), 2, 2), (y.clone(), 3, 3)]);
    std::fs::write(bench.repo().join("a.txt"), "one\ntwo\nthree\n").unwrap();

    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    // The line that is gone is found at the line now in its place.
    assert_eq!(blame(&bench), [(x, 1, 0), (y, 1, 2)]);
    let log = git(&bench.repo(), &["log", "-1", "--format=%(trailers:key=CleverAgents-Decision)"]);
    assert_eq!(log.matches("Fix it").count(), 2, "{log}");
}

// T42, PLAN-007, APP-010
// PLAN-101
#[test]
fn a_deleted_file_has_its_decision_and_no_sandbox_hash() {
    let bench = bench(json!({
        "strategize": [{ "requests": [decision("strategy/x", "strategy_choice", null_parent(), 0.9)] }],
        "execute": [{ "requests": [
            decision("impl/x", "implementation_choice", json!("strategy/x"), 0.9),
            { "request": "tool", "call_id": "1", "tool": "builtin/apply-edits", "decision": "impl/x",
              "args": { "resource": "${resource}", "edits": [{ "op": "delete", "path": "a.txt" }] } },
        ] }],
    }));
    let plan = bench.plan("local/act", "trusted");
    let diff = bench.ok("plan/diff", json!({ "plan": plan }));
    let file = &diff["files"][0];
    assert_eq!(file["status"], "deleted");
    assert!(file["base_hash"].is_string(), "{file}");
    assert_eq!((&file["sandbox_hash"], &file["sandbox_path"]), (&Value::Null, &Value::Null));
    let lines = diff["patch_preview"][0]["hunks"][0]["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line["decision_id"] == file["decisions"][0]), "{lines:?}");
}

#[test]
fn a_constrained_plan_is_revised_on_what_is_there_now() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "trusted");
    std::fs::write(bench.repo().join("a.txt"), "one\n2\nthree\n").unwrap();
    git(&bench.repo(), &["commit", "-qam", "theirs"]);
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/constrained+reversion", "{}", bench.status(&plan));
    assert_eq!(read(&bench), "one\n2\nthree\n");
    let before = bench.ok("plan/tree", json!({ "plan": plan }));

    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "revise" }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    let tree = bench.ok("plan/tree", json!({ "plan": plan, "show_superseded": true }));
    assert_eq!(tree["summary"]["superseded"], 2);
    assert_ne!(before["tree"]["children"][0]["decision_id"], Value::Null);
    let diff = bench.ok("plan/diff", json!({ "plan": plan }));
    assert_eq!(diff["patch_preview"][0]["hunks"][0]["deletions"], json!(["2"]));

    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    assert_eq!(read(&bench), "one\nTWO\nthree\n");
}

#[test]
fn words_at_the_end_of_a_phase_do_it_again_from_its_beginning() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "trusted");
    let first = bench.ok("plan/artifacts", json!({ "plan": plan }));
    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "do it nicely" }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    let again = bench.ok("plan/artifacts", json!({ "plan": plan }));
    assert_eq!(first["artifacts"], again["artifacts"]);
    assert_eq!(bench.status(&plan)["attempt"], 2);
    // Strategize stands; what Execute had decided does not.
    let tree = bench.ok("plan/tree", json!({ "plan": plan, "show_superseded": true }));
    assert_eq!(tree["summary"]["superseded"], 1);
}

// DEC-010: an answered choice of Execute still leads to the choice of Strategize behind it
#[test]
fn blame_finds_the_strategy_behind_an_answered_change() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "cautious");
    assert_eq!(bench.at(&plan), "execute/processing+decision", "{}", bench.status(&plan));
    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "Fix it" }));
    bench.work(&plan);
    let found = bench.ok("plan/blame", json!({ "file": bench.repo().join("a.txt") }));
    let strategy = &found["segments"][0]["strategy"];
    assert_eq!(strategy["question"], "How about strategy/x?");
    assert_ne!(strategy["decision_id"], found["segments"][0]["decision_id"]);
}

#[test]
fn blame_finds_the_choice_that_a_person_put_in_the_place_of_another() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "trusted");
    let strategy = || {
        let found = bench.ok("plan/blame", json!({ "file": bench.repo().join("a.txt") }));
        found["segments"][0]["strategy"].clone()
    };
    let mut before = strategy();
    assert_eq!(before["question"], "How about strategy/x?");
    for words in ["Do it otherwise", "Do it as you like"] {
        let correction = json!({ "decision": before["decision_id"], "mode": "revert", "guidance": words });
        bench.ok("plan/correct", correction);
        bench.work(&plan);
        let now = strategy();
        assert_eq!((&now["question"], &now["chosen"]), (&before["question"], &json!(words)), "{now:#}");
        assert_ne!(now["decision_id"], before["decision_id"]);
        before = now;
    }
}

// PLAN-070: a cancelled plan must not hide a half-made apply
#[test]
fn a_plan_whose_apply_was_cut_off_is_not_cancelled_before_it_is_finished() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "trusted");
    bench.ok("plan/apply", json!({ "plan": plan }));
    let refused = || {
        let error = bench.err("plan/cancel", json!({ "plan": plan }));
        assert_eq!(error.kind, ErrorKind::InvalidState);
        error
    };
    let resource = bench.ok("registry/resource/show", json!({ "resource": "local/repo" }))["id"].clone();
    let journal = bench.dir.path().join("data/journals").join(&plan).join(resource.as_str().unwrap());
    std::fs::create_dir_all(&journal).unwrap();
    // A record that cannot be read may be of anything half done.
    std::fs::write(journal.join("apply.json"), "{").unwrap();
    assert_eq!(refused().suggestions, [format!("agents plan apply {plan}")]);
    std::fs::remove_dir_all(journal.parent().unwrap()).unwrap();
    bench.work(&plan);
    refused();
    assert_eq!(read(&bench), "one\nTWO\nthree\n");
}

#[test]
fn blame_says_when_what_a_plan_left_cannot_be_read_back() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "trusted");
    std::fs::rename(bench.dir.path().join("data/blobs"), bench.dir.path().join("data/away")).unwrap();
    let found = bench.ok("plan/blame", json!({ "file": bench.repo().join("a.txt") }));
    assert_eq!(found["segments"], json!([]));
    assert!(found["warnings"][0].as_str().unwrap().contains(&plan));
}

#[test]
fn what_a_cancelled_plan_left_can_be_discarded_and_what_an_open_plan_has_cannot() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "trusted");
    let sandbox = bench.status(&plan)["execution"]["sandbox"]["path"].as_str().unwrap().to_owned();
    let refused = bench.err("plan/discard", json!({ "plan": plan }));
    assert_eq!(refused.kind, ErrorKind::InvalidState);
    assert_eq!(refused.suggestions, [format!("agents plan cancel {plan}")]);
    assert!(std::path::Path::new(&sandbox).exists());

    bench.ok("plan/cancel", json!({ "plan": plan }));
    assert!(std::path::Path::new(&sandbox).exists(), "cancelling alone keeps the work");
    // What nobody checkpointed goes, too: that is what discarding means.
    std::fs::write(std::path::Path::new(&sandbox).join("b.txt"), "draft").unwrap();
    let discarded = bench.ok("plan/discard", json!({ "plan": plan }));
    assert_eq!(discarded["removed"], json!([sandbox]));
    assert_eq!(std::fs::read_dir(bench.dir.path().join("data/sandboxes")).unwrap().count(), 0);
    assert_eq!(git(&bench.repo(), &["for-each-ref", "refs/cleveragents"]), "");
    assert_eq!(git(&bench.repo(), &["worktree", "list"]).lines().count(), 1);
    assert_eq!(bench.ok("plan/discard", json!({ "plan": plan }))["removed"], json!([]), "again is fine");
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    assert!(tree["summary"]["nodes"].as_u64().unwrap() > 1, "its decisions stay known");
}

// SBX-004: a sandbox that was removed by hand is made again from its commits
#[test]
fn a_removed_sandbox_is_made_again_and_the_plan_goes_on() {
    let bench = bench(choose_and_edit());
    let plan = bench.plan("local/act", "supervised");
    std::fs::remove_dir_all(bench.dir.path().join("data/sandboxes")).unwrap();
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(read(&bench), "one\nTWO\nthree\n");
}
