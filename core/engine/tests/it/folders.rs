//! Plans on plain folders, and on several resources at once: what is applied where, and what one failure leaves.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents_actors::scripted::Scripted;
use agents_domain::ports::actor::Actor;
use serde_json::{Value, json};

use crate::child_plans::{self, FILE, container, editing, parent, run, spawn};
use crate::harness::{Bench, git};
use crate::lifecycle::{choose_and_edit, decision, done, edit};

const TEXT: &str = "one\ntwo\nthree\n";

/// A folder of its own in project `local/app`, beside the repository or in its place.
fn folder(bench: &Bench, text: &str, alone: bool) -> PathBuf {
    let path = bench.dir.path().join("notes");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("a.txt"), text).unwrap();
    bench.ok(
        "registry/resource/add",
        json!({ "resource_type": "fs-directory", "name": "local/notes", "properties": { "path": path } }),
    );
    if alone {
        bench.ok("project/unlink_resource", json!({ "project": "local/app", "resource": "local/repo" }));
    }
    bench.ok("project/link_resource", json!({ "project": "local/app", "resource": "local/notes" }));
    path
}

fn scripted(script: Value) -> Bench {
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(script));
    let bench = Bench::new(&[("a.txt", TEXT)], &[("test/scripted", actor)]);
    bench.action("local/act", "test/scripted", "test/scripted", "");
    bench
}

fn apply(bench: &Bench, plan: &str) -> String {
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(plan);
    bench.at(plan)
}

// SUB-012, SBX-002, CKPT-002, CORR-011: everything a plan does works on a folder, and nothing of ours is ever in it
#[test]
fn a_plan_on_a_plain_folder_is_carried_out_rolled_back_corrected_and_applied() {
    let bench = scripted(choose_and_edit());
    let notes = folder(&bench, TEXT, true);
    let plan = bench.plan("local/act", "trusted");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    let text = || std::fs::read_to_string(notes.join("a.txt")).unwrap();
    assert_eq!(text(), TEXT);
    let diff = bench.ok("plan/diff", json!({ "plan": plan }));
    assert_eq!(diff["diff_summary"]["files_changed"], 1, "{diff}");
    let checkpoints = bench.ok("plan/artifacts", json!({ "plan": plan }))["checkpoints"].clone();
    bench.ok("plan/rollback", json!({ "plan": plan, "checkpoint": checkpoints[0]["id"] }));
    bench.work(&plan);
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    // Somebody goes on writing meanwhile.
    std::fs::write(notes.join("a.txt"), format!("zero\n{TEXT}")).unwrap();
    let drift = bench.ok("plan/diff", json!({ "plan": plan }))["drift"].clone();
    assert_eq!((&drift[0]["files"], &drift[0]["commits"]), (&json!(["a.txt"]), &json!(0)), "{drift}");
    assert_eq!(apply(&bench, &plan), "apply/applied", "{}", bench.status(&plan));
    assert_eq!(text(), "zero\none\nTWO\nthree\n");
    let files: Vec<_> = std::fs::read_dir(&notes).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(files, ["a.txt"]);
    let blame = bench.ok("plan/blame", json!({ "file": notes.join("a.txt"), "line": 3 }));
    assert_eq!(blame["segments"].as_array().unwrap().len(), 1, "{blame:#}");
    let sandboxes = bench.dir.path().join("data/sandboxes");
    let left: Vec<_> = std::fs::read_dir(sandboxes).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    let events = bench.ok("events/after", json!({ "plan": plan, "sequence": 0, "limit": 1000 }));
    let strategies: Vec<&Value> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|e| e["event_type"].as_str().unwrap().starts_with("sandbox."))
        .map(|e| &e["details"]["strategy"])
        .filter(|s| !s.is_null())
        .collect();
    assert!(strategies.len() >= 2 && strategies.iter().all(|s| *s == "copy_on_write"), "{strategies:?}");
}

// SUB-012, SUB-013: children of a plan on a folder are merged into it
#[test]
fn children_on_a_folder_are_merged_three_way() {
    let bench = child_plans::bench();
    let notes = folder(&bench, FILE, true);
    let script = parent(vec![
        container("both"),
        spawn("first", json!("both"), &[], editing(1, "TWO\n")),
        spawn("last", json!("both"), &[], editing(7, "EIGHT\n")),
    ]);
    let plan = run(&bench, "trusted", script);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(apply(&bench, &plan), "apply/applied");
    let text = std::fs::read_to_string(notes.join("a.txt")).unwrap();
    assert_eq!(text, FILE.replace("two", "TWO").replace("eight", "EIGHT"));
}

// APP-010, T39: what does not fit constrains the plan, and the folder is as it was
#[test]
fn a_folder_that_was_edited_in_the_same_place_constrains_the_plan() {
    let bench = scripted(choose_and_edit());
    let notes = folder(&bench, TEXT, true);
    let plan = bench.plan("local/act", "trusted");
    std::fs::write(notes.join("a.txt"), "one\nmine\nthree\n").unwrap();
    let at = apply(&bench, &plan);
    assert!(at.starts_with("apply/constrained"), "{at}");
    assert_eq!(std::fs::read_to_string(notes.join("a.txt")).unwrap(), "one\nmine\nthree\n");
}

// GUARD-010: no file is in two sandboxes of a plan
#[test]
fn a_folder_within_another_resource_of_the_plan_is_refused() {
    let mut script = choose_and_edit();
    script["execute"][0]["requests"].as_array_mut().unwrap().push(json!({
        "request": "tool", "call_id": "2", "tool": "builtin/apply-edits", "decision": "impl/x",
        "args": { "resource": "${resource}", "edits": [{ "op": "create", "path": "docs/b.txt", "text": "b\n" }] },
    }));
    let bench = scripted(script);
    let inner = bench.repo().join("docs");
    std::fs::create_dir(&inner).unwrap();
    bench.ok(
        "registry/resource/add",
        json!({ "resource_type": "fs-directory", "name": "local/docs", "properties": { "path": inner } }),
    );
    bench.ok("project/link_resource", json!({ "project": "local/app", "resource": "local/docs" }));
    let error = bench.err("plan/use", json!({ "action": "local/act", "projects": ["local/app"] }));
    assert!(error.message.contains("`local/docs` lies within `local/repo`"), "{error:?}");
    assert_eq!(error.suggestions, ["agents project unlink-resource local/app local/docs"]);
    // What was written to it as part of the checkout is known by the checkout.
    bench.ok("project/unlink_resource", json!({ "project": "local/app", "resource": "local/docs" }));
    let plan = bench.plan("local/act", "full-auto");
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    let blame = |file: PathBuf| bench.ok("plan/blame", json!({ "file": file }))["segments"].clone();
    assert_eq!(blame(bench.repo().join("docs/b.txt")).as_array().unwrap().len(), 1);
    assert_eq!(blame(bench.repo().join("a.txt")).as_array().unwrap().len(), 1);
}

/// One edit in the repository and one in the notes, under one decision.
fn both() -> Value {
    let mut requests = vec![decision("impl/x", "implementation_choice", Value::Null, 0.9)];
    for (call, name) in [("1", "local/repo"), ("2", "local/notes")] {
        let mut write = edit(call, "impl/x", "a.txt", 1, "TWO\n");
        write["args"]["resource"] = json!(format!("${{resource:{name}}}"));
        requests.push(write);
    }
    json!({ "strategize": [{ "outcome": done("decided") }], "execute": [{ "requests": requests }, { "outcome": done("did it") }] })
}

/// A plan on two checkouts that waits to be applied; nobody can apply to the second.
fn blocked() -> (Bench, PathBuf, String) {
    let bench = scripted(both());
    let other = bench.dir.path().join("notes");
    std::fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q", "-b", "main"]);
    std::fs::write(other.join("a.txt"), TEXT).unwrap();
    git(&other, &["add", "-A"]);
    git(&other, &["commit", "-q", "-m", "start"]);
    bench.ok(
        "registry/resource/add",
        json!({ "resource_type": "git-checkout", "name": "local/notes", "properties": { "path": other } }),
    );
    bench.ok("project/link_resource", json!({ "project": "local/app", "resource": "local/notes" }));
    let plan = bench.plan("local/act", "trusted");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    std::fs::write(other.join(".git/index.lock"), "").unwrap();
    (bench, other, plan)
}

// APP-009, APP-011, T40, T43: what one resource refuses is taken back in the other, and said; applying again is enough
#[test]
fn when_one_resource_fails_the_other_is_as_it_was() {
    let (bench, other, plan) = blocked();
    let before = git(&bench.repo(), &["rev-parse", "HEAD"]);
    assert_eq!(apply(&bench, &plan), "apply/errored");
    assert_eq!(git(&bench.repo(), &["rev-parse", "HEAD"]), before);
    assert_eq!(git(&bench.repo(), &["status", "--porcelain"]), "");
    let errors = bench.ok("plan/errors", json!({ "plan": plan }));
    assert!(errors["error_message"].as_str().unwrap().contains("index.lock"), "{errors}");
    std::fs::remove_file(other.join(".git/index.lock")).unwrap();
    assert_eq!(apply(&bench, &plan), "apply/applied");
    for repo in [&bench.repo(), &other] {
        assert_eq!(git(repo, &["rev-list", "--count", "HEAD"]), "2");
    }
}

// APP-009, T43: what cannot be taken back stays applied, is recorded, and is not applied twice
#[test]
fn what_somebody_built_upon_stays_applied_and_is_not_applied_again() {
    let (bench, other, plan) = blocked();
    let repo = bench.repo();
    let somebody = std::thread::spawn({
        let repo = repo.clone();
        move || {
            let deadline = Instant::now() + Duration::from_secs(60);
            let applied = || git(&repo, &["rev-list", "--count", "HEAD"]) == "2";
            // The apply is over when nobody holds the index.
            while !applied() || repo.join(".git/index.lock").exists() {
                assert!(Instant::now() < deadline, "the first resource was not applied");
                std::thread::yield_now();
            }
            git(&repo, &["commit", "-q", "--allow-empty", "-m", "on top"]);
        }
    });
    assert_eq!(apply(&bench, &plan), "apply/errored");
    somebody.join().unwrap();
    assert_eq!(std::fs::read_to_string(repo.join("a.txt")).unwrap(), "one\nTWO\nthree\n");
    // A revert could not take it back.
    let decision =
        bench.ok("plan/tree", json!({ "plan": plan }))["tree"]["children"][0]["decision_id"].clone();
    let refused =
        bench.err("plan/correct", json!({ "decision": decision, "mode": "revert", "guidance": "no" }));
    assert!(refused.message.contains("have the changes already"), "{refused:?}");
    std::fs::remove_file(other.join(".git/index.lock")).unwrap();
    assert_eq!(apply(&bench, &plan), "apply/applied");
    assert_eq!(git(&repo, &["rev-list", "--count", "HEAD"]), "3");
    assert_eq!(git(&other, &["rev-list", "--count", "HEAD"]), "2");
}

// APP-013, PLAN-038, PRJ-003, SUB-012: a checkout of one project and a folder of another, one plan
#[test]
fn two_projects_are_applied_each_in_its_own_way() {
    let bench = scripted(both());
    let notes = bench.dir.path().join("notes");
    std::fs::create_dir(&notes).unwrap();
    std::fs::write(notes.join("a.txt"), TEXT).unwrap();
    bench.ok(
        "registry/resource/add",
        json!({ "resource_type": "fs-directory", "name": "local/notes", "properties": { "path": notes } }),
    );
    bench.ok("registry/project/create", json!({ "name": "local/docs", "resources": ["local/notes"] }));
    let made = bench.ok(
        "plan/use",
        json!({
            "action": "local/act", "projects": ["local/app", "local/docs"], "automation_profile": "trusted",
        }),
    );
    let plan = made["plan_id"].as_str().unwrap();
    bench.work(plan);
    assert_eq!(apply(&bench, plan), "apply/applied", "{}", bench.status(plan));
    assert_eq!(std::fs::read_to_string(notes.join("a.txt")).unwrap(), "one\nTWO\nthree\n");
    assert_eq!(git(&bench.repo(), &["rev-list", "--count", "HEAD"]), "2");
    let events = bench.ok("events/after", json!({ "plan": plan, "sequence": 0, "limit": 1000 }));
    let committed: Vec<(bool, &str)> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|e| e["event_type"] == "sandbox.committed")
        .map(|e| (e["details"]["commit"].is_null(), e["details"]["strategy"].as_str().unwrap()))
        .collect();
    assert_eq!(committed, [(false, "git_worktree"), (true, "copy_on_write")]);
}
