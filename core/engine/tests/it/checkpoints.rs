//! Checkpoints: when they are made, what they say, how many are kept; edits in the sandbox; drift of the checkout.

use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutput};
use serde_json::{Value, json};

use crate::harness::{Bench, git};
use crate::lifecycle::{decision, done, edit};

/// Under each decision two edits of `a.txt`, then a checkpoint.
fn groups(count: u32) -> Value {
    let mut requests = Vec::new();
    for n in 0..count {
        let key = format!("impl/{n}");
        requests.push(decision(&key, "implementation_choice", Value::Null, 0.9));
        requests.push(edit(&format!("{n}a"), &key, "a.txt", 0, &format!("one {n}\n")));
        requests.push(edit(&format!("{n}b"), &key, "a.txt", 1, &format!("two {n}\n")));
        requests.push(json!({ "request": "checkpoint", "decision": key, "label": format!("after {n}") }));
    }
    json!({ "strategize": [{ "outcome": done("decided") }], "execute": [{ "requests": requests }, { "outcome": done("did it") }] })
}

fn bench(script: Value, env: &[(&str, &str)]) -> Bench {
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(script));
    let bench = Bench::with_env(&[("a.txt", "one\ntwo\nthree\n")], &[("test/scripted", actor)], env);
    bench.action("local/act", "test/scripted", "test/scripted", "");
    bench
}

fn executed(bench: &Bench) -> String {
    let plan = bench.plan("local/act", "auto");
    while bench.at(&plan).starts_with("strategize/complete") {
        bench.ok("plan/execute", json!({ "plan": plan }));
        bench.work(&plan);
    }
    plan
}

fn kinds(bench: &Bench, plan: &str) -> Vec<String> {
    let artifacts = bench.ok("plan/artifacts", json!({ "plan": plan }));
    let of = |c: &Value| c["type"].as_str().unwrap().to_owned();
    artifacts["checkpoints"].as_array().unwrap().iter().map(of).collect()
}

fn events(bench: &Bench, plan: &str, kind: &str) -> Vec<Value> {
    let events = bench.ok("events/after", json!({ "plan": plan, "sequence": 0, "limit": 1000 }));
    let all = events["events"].as_array().unwrap().iter();
    all.filter(|e| e["event_type"] == kind).map(|e| e["details"].clone()).collect()
}

const TRIGGERS: &str = "CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON";

// CKPT-012, C-37: a count for each trigger
#[test]
fn each_trigger_makes_its_own_checkpoints() {
    for (on, expected) in [
        ("[\"before_tool_execute\"]", vec!["base", "pre_write", "pre_write", "decision"]),
        ("[\"after_tool_execute\"]", vec!["base", "post_step", "post_step", "decision"]),
        ("[]", vec!["base", "decision"]),
        (
            "[\"before_tool_execute\", \"after_tool_execute\", \"on_subplan_spawn\", \"on_error\"]",
            vec!["base", "pre_write", "post_step", "pre_write", "post_step", "decision"],
        ),
    ] {
        let bench = bench(groups(1), &[(TRIGGERS, on)]);
        let plan = executed(&bench);
        assert_eq!(kinds(&bench, &plan), expected, "{on}");
    }
}

#[test]
fn a_failed_execute_is_a_checkpoint_and_switched_off_there_is_none() {
    let mut script = groups(1);
    script["execute"][1] =
        json!({ "fail": { "message": "no way on", "category": "actor", "transient": false, "hints": [] } });
    let failing = bench(script.clone(), &[(TRIGGERS, "[\"on_error\"]")]);
    let plan = executed(&failing);
    assert!(failing.at(&plan).starts_with("execute/errored"), "{}", failing.at(&plan));
    assert_eq!(kinds(&failing, &plan), ["base", "decision", "on_error"]);
    let off = bench(script, &[("CLEVERAGENTS_CHECKPOINT_ENABLED", "false")]);
    let refused = off.err(
        "plan/use",
        json!({ "action": "local/act", "projects": ["local/app"], "automation_profile": "auto" }),
    );
    assert!(refused.message.contains("requires checkpoints"), "{refused:?}");
    let made = off.ok(
        "plan/use",
        json!({ "action": "local/act", "projects": ["local/app"], "automation_profile": "full-auto" }),
    );
    let plan = made["plan_id"].as_str().unwrap();
    off.work(plan);
    assert_eq!(kinds(&off, plan), Vec::<String>::new());
    let artifacts = off.ok("plan/artifacts", json!({ "plan": plan }));
    assert_eq!(artifacts["rollback"]["tier"], "phase", "CORR-021");
}

// CKPT-007, CKPT-008, CKPT-014, PLAN-096
#[test]
fn a_checkpoint_says_what_it_holds_and_is_found_by_the_start_of_its_id() {
    let bench = bench(groups(1), &[]);
    let plan = executed(&bench);
    let artifacts = bench.ok("plan/artifacts", json!({ "plan": plan }));
    let all = artifacts["checkpoints"].as_array().unwrap();
    let closing = all.last().unwrap();
    assert_eq!((&closing["type"], &closing["label"]), (&json!("decision"), &json!("after 0")));
    assert!(closing["id"].as_str().unwrap().starts_with("cp_"));
    assert_eq!(closing["diff_paths"], json!(["a.txt"]));
    assert_eq!(closing["diff_based"], all[0]["commit"]);
    assert_eq!((&closing["size_bytes"], all[1]["tool"].as_str()), (&json!(18), Some("builtin/apply-edits")));
    assert_eq!(closing["diff_hash"].as_str().unwrap().len(), 64);
    assert_eq!(artifacts["rollback"], json!({ "tier": "full", "reasons": [] }));
    let made = events(&bench, &plan, "checkpoint.created");
    assert_eq!(made[1]["trigger"], "before_tool_execute");
}

// CKPT-013, C-35, STORE-017
#[test]
fn old_checkpoints_go_and_what_is_lost_with_them_is_said() {
    let bench = bench(groups(4), &[("CLEVERAGENTS_CHECKPOINT_MAX", "3")]);
    let plan = executed(&bench);
    let artifacts = bench.ok("plan/artifacts", json!({ "plan": plan }));
    let labels: Vec<_> =
        artifacts["checkpoints"].as_array().unwrap().iter().map(|c| c["label"].clone()).collect();
    assert_eq!(labels, ["Before the first change", "after 2", "after 3"]);
    assert_eq!(artifacts["rollback"]["tier"], "phase");
    assert!(artifacts["rollback"]["reasons"][0].as_str().unwrap().contains("max-per-plan"), "{artifacts}");
    let lost: usize = events(&bench, &plan, "checkpoint.pruned")
        .iter()
        .map(|e| e["decisions_without_checkpoint"].as_array().unwrap().len())
        .sum();
    assert_eq!(lost, 2);
}

/// A script during which somebody edits files of the sandbox before a step.
struct Interfering {
    script: Scripted,
    edits: fn(&std::path::Path, u32),
    at: std::sync::atomic::AtomicU32,
}

impl Actor for Interfering {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            let root = host.workspaces()[0].root.clone();
            let execute = input.phase == agents_domain::plan::Phase::Execute;
            let stepped = self.script.step(input, host).await;
            if execute {
                (self.edits)(&root, self.at.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
            }
            stepped
        })
    }
}

fn interfered(script: Value, edits: fn(&std::path::Path, u32)) -> Bench {
    let actor: Arc<dyn Actor> = Arc::new(Interfering {
        script: Scripted::new(script),
        edits,
        at: std::sync::atomic::AtomicU32::new(0),
    });
    let bench = Bench::new(&[("a.txt", "one\ntwo\nthree\n"), ("b.txt", "b\n")], &[("test/actor", actor)]);
    bench.action("local/act", "test/actor", "test/actor", "");
    bench
}

// SBX-005
#[test]
fn what_a_person_edits_in_the_sandbox_is_kept_recorded_and_told_to_the_actor() {
    let mut script = groups(1);
    script["execute"][1] = json!({
        "expect": { "observations": [
            { "observed": "decided" }, { "observed": "tool" }, { "observed": "tool" }, { "observed": "checkpointed" },
            { "observed": "files_edited", "paths": ["b.txt", "mine.txt"] },
        ], "files": { "b.txt": "by hand\n" } },
        "outcome": done("did it"),
    });
    let bench = interfered(script, |root, at| {
        if at == 0 {
            std::fs::write(root.join("b.txt"), "by hand\n").unwrap();
            std::fs::write(root.join("mine.txt"), "mine\n").unwrap();
        }
    });
    let plan = executed(&bench);
    assert!(
        bench.at(&plan).starts_with("apply/") || bench.at(&plan).starts_with("execute/complete"),
        "{}",
        bench.at(&plan)
    );
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    let children = tree["tree"]["children"].as_array().unwrap();
    let edits = children.iter().find(|d| d["type"] == "user_intervention").unwrap();
    let diff = bench.ok("plan/diff", json!({ "plan": plan }));
    let files: Vec<_> =
        diff["files"].as_array().unwrap().iter().map(|f| (&f["path"], &f["decisions"])).collect();
    assert_eq!(files.len(), 3);
    assert_eq!(
        files[1..],
        [
            (&json!("b.txt"), &json!([edits["decision_id"]])),
            (&json!("mine.txt"), &json!([edits["decision_id"]]))
        ]
    );
    assert_eq!(kinds(&bench, &plan).last().unwrap(), "manual");
}

#[test]
fn a_tool_does_not_write_over_what_a_person_just_edited() {
    let mut script = groups(1);
    script["execute"][1] = json!({
        "expect": { "observations": [
            { "observed": "decided" }, { "observed": "failed" }, { "observed": "files_edited", "paths": ["a.txt"] },
        ], "files": { "a.txt": "by hand\n" } },
        "outcome": done("left it"),
    });
    let bench = interfered(script, |root, at| {
        if at == 0 {
            std::fs::write(root.join("a.txt"), "by hand\n").unwrap();
        }
    });
    let plan = executed(&bench);
    let status = bench.status(&plan);
    assert_eq!(status["summaries"]["execute"]["headline"], "left it", "{status}");
}

// APP-010, DEC-014: drift is said when Execute ends
#[test]
fn a_checkout_that_moved_on_during_execute_is_said() {
    let bench = interfered(groups(1), |root, at| {
        if at == 0 {
            let repo = git(root, &["rev-parse", "--git-common-dir"]);
            let repo = std::path::Path::new(&repo).parent().unwrap();
            std::fs::write(repo.join("a.txt"), "one\ntwo\nthree\nfour\n").unwrap();
            git(repo, &["commit", "-qam", "theirs"]);
        }
    });
    let plan = executed(&bench);
    let status = bench.status(&plan);
    assert_eq!(status["drift"][0]["commits"], 1, "{status}");
    assert_eq!(status["drift"][0]["files"], json!(["a.txt"]));
    let diff = bench.ok("plan/diff", json!({ "plan": plan }));
    assert!(diff["drift"].as_array().is_some());
}

// DEC-014, APP-009, APP-013: two resources
#[test]
fn a_decision_has_a_checkpoint_in_each_sandbox_it_wrote_to_and_each_gets_a_commit() {
    let mut script = groups(1);
    let requests = script["execute"][0]["requests"].as_array_mut().unwrap();
    let mut other = requests[1].clone();
    other["call_id"] = json!("other");
    other["args"]["resource"] = json!("${resource:local/other}");
    requests[1]["args"]["resource"] = json!("${resource:local/repo}");
    requests[2]["args"]["resource"] = json!("${resource:local/repo}");
    requests.insert(3, other);
    let bench = bench(script, &[(TRIGGERS, "[]")]);
    for name in ["other", "unused"] {
        let repo = bench.dir.path().join(name);
        std::fs::create_dir(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        std::fs::write(repo.join("a.txt"), "one\ntwo\nthree\n").unwrap();
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-q", "-m", "start"]);
        let name = format!("local/{name}");
        bench.ok(
            "registry/resource/add",
            json!({ "resource_type": "git-checkout", "name": name, "properties": { "path": repo } }),
        );
        bench.ok("project/link_resource", json!({ "project": "local/app", "resource": name }));
    }
    let plan = executed(&bench);
    let artifacts = bench.ok("plan/artifacts", json!({ "plan": plan }));
    let group: Vec<_> =
        artifacts["checkpoints"].as_array().unwrap().iter().filter(|c| c["type"] == "decision").collect();
    assert_eq!(group.len(), 2);
    assert_eq!(group[0]["decision_id"], group[1]["decision_id"]);
    assert_ne!(group[0]["resource_id"], group[1]["resource_id"]);
    if bench.at(&plan) != "apply/applied" {
        bench.ok("plan/apply", json!({ "plan": plan }));
        bench.work(&plan);
    }
    assert_eq!(bench.at(&plan), "apply/applied");
    let count = |name: &str| git(&bench.dir.path().join(name), &["rev-list", "--count", "HEAD"]);
    assert_eq!((count("repo"), count("other"), count("unused")), ("2".into(), "2".into(), "1".into()));
}

// SBX-004: sandboxes that a crash left and no plan knows
#[test]
fn a_sandbox_of_nobody_goes_only_when_nothing_is_lost_with_it() {
    let bench = bench(groups(0), &[]);
    let repository = agents_sandbox::Repository::open(&bench.repo()).unwrap();
    let plans = ["01HXM8C2ZK4Q7C2B3F2R4VYV6J", "01HXM8C2ZK4Q7C2B3F2R4VYV6K", "01HXM8C2ZK4Q7C2B3F2R4VYV6M"];
    let made = plans.map(|plan| {
        let snapshot = agents_sandbox::snapshot(&repository, plan.parse().unwrap()).unwrap();
        let dir = bench.dir.path().join("data/sandboxes").join(plan).join("01BX5ZZKBKACTAV9WEVGEMMVS0");
        std::fs::create_dir_all(dir.parent().unwrap()).unwrap();
        agents_sandbox::Worktree::create(&repository, &snapshot, &dir, &[]).unwrap()
    });
    std::fs::write(made[1].path().join("mine.txt"), "mine\n").unwrap();
    made[2].write_file("a.txt", b"work\n").unwrap();
    made[2].checkpoint("work", &["a.txt"]).unwrap();
    let cleaned = bench.ok("diagnostics/run", json!({ "cleanup": true }));
    // Their references are named beside the two sandboxes.
    let of_sandbox = |kept: &&Value| kept["path"].as_str().is_some_and(|path| path.contains("sandboxes"));
    let kept = cleaned["cleanup"]["kept"].as_array().unwrap().iter();
    let reasons: Vec<&str> = kept.filter(of_sandbox).filter_map(|k| k["reason"].as_str()).collect();
    assert_eq!(reasons.len(), 2, "{cleaned:#}");
    assert!(reasons[0].contains("mine.txt") && reasons[1].contains("branch kept-"), "{reasons:?}");
    let there = made.each_ref().map(|worktree| worktree.path().exists());
    assert_eq!(there, [false, true, true]);
    let refs = git(&bench.repo(), &["for-each-ref", "refs/cleveragents"]);
    assert!(!refs.contains(plans[0]) && refs.contains(plans[2]), "{refs}");
}
