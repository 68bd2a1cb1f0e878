//! Steps that fail: what is tried again from the last checkpoint, what ends the phase, and how reversions by the actor and
//! corrections by a person stay apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use agents_actors::scripted::Scripted;
use agents_domain::correction::ToolCall;
use agents_domain::plan::Phase;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutput};
use agents_domain::ports::store::StoreExt;
use agents_domain::resource::Resource;
use agents_store::SqliteStore;
use serde_json::{Value, json};

use crate::harness::Bench;
use crate::lifecycle::{choose_and_edit, decision, done, edit};

const TEXT: &str = "one\ntwo\nthree\n";

/// Plays a script; the second step of Execute fails as often as it is told to.
struct Failing {
    script: Scripted,
    failure: ActorFailure,
    left: AtomicUsize,
}

impl Actor for Failing {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        let second = input.phase == Phase::Execute && input.state["step"].as_u64() == Some(1);
        if second && self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            let failure = self.failure.clone();
            return Box::pin(async move { Err(failure) });
        }
        self.script.step(input, host)
    }
}

fn failing(failure: ActorFailure, times: usize) -> Bench {
    let actor: Arc<dyn Actor> = Arc::new(Failing {
        script: Scripted::new(choose_and_edit()),
        failure,
        left: AtomicUsize::new(times),
    });
    let bench = Bench::new(&[("a.txt", TEXT)], &[("test/failing", actor)]);
    bench.action("local/act", "test/failing", "test/failing", "");
    bench
}

fn semantic() -> ActorFailure {
    ActorFailure::semantic(
        "Breaking API changes require manual review",
        &["parse(text) lost an argument".to_owned()],
        &["cli.py".to_owned(), "web.py".to_owned()],
    )
}

fn events(bench: &Bench, plan: &str, kind: &str) -> usize {
    let events = bench.ok("events/after", json!({ "plan": plan, "sequence": 0, "limit": 1000 }));
    events["events"].as_array().unwrap().iter().filter(|e| e["event_type"] == kind).count()
}

// T24, GUARD-019, GUARD-020: what a semantic guard raises fails the step, which is made again from the last checkpoint
#[test]
fn a_step_that_a_semantic_guard_fails_is_tried_again_from_the_last_checkpoint() {
    let bench = failing(semantic(), 2);
    let plan = bench.plan("local/act", "auto");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(events(&bench, &plan, "checkpoint.restored"), 2);
    assert_eq!(bench.status(&plan)["execution"]["tool_calls"], 1, "what was done before is not done again");
    let errors = bench.ok("plan/errors", json!({ "plan": plan }));
    assert!(errors.to_string().contains("Breaking API changes"), "{errors}");
}

// T25, T33, GUARD-019: where the profile asks, a person sees what breaks
#[test]
fn a_person_is_asked_before_a_step_is_restored_where_the_profile_says_so() {
    let bench = failing(semantic(), 1);
    let plan = bench.plan("local/act", "trusted");
    assert_eq!(bench.at(&plan), "execute/processing+restore", "{}", bench.status(&plan));
    let errors = bench.ok("plan/errors", json!({ "plan": plan }));
    assert_eq!(errors["error_category"], "semantic");
    let told = errors.to_string();
    assert!(
        told.contains("changes: parse(text) lost an argument") && told.contains("affected: cli.py, web.py"),
        "{told}"
    );
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
}

// T24, T31, PROF-010: the retries of a step are counted, then the phase has failed, with a checkpoint
#[test]
fn a_step_that_never_succeeds_fails_execute_after_its_retries() {
    let bench = failing(semantic(), 100);
    let plan = bench.plan("local/act", "auto");
    assert_eq!(bench.at(&plan), "execute/errored");
    assert_eq!(events(&bench, &plan, "checkpoint.restored"), 3);
    let artifacts = bench.ok("plan/artifacts", json!({ "plan": plan }));
    assert!(artifacts["checkpoints"].to_string().contains("on_error"), "{artifacts}");
    let status = bench.status(&plan);
    let verbs: Vec<&str> =
        status["allowed_actions"].as_array().unwrap().iter().filter_map(|a| a["verb"].as_str()).collect();
    assert!(verbs.contains(&"execute") && verbs.contains(&"cancel"), "{verbs:?}");
}

// T31, T32, PLAN-065: what cannot get better by itself fails at once; guidance takes it up where it was
#[test]
fn a_failure_that_does_not_pass_fails_execute_at_once_and_guidance_goes_on() {
    let failure = ActorFailure {
        message: "the key is wrong".to_owned(),
        category: "configuration".to_owned(),
        transient: false,
        hints: vec!["set the key".to_owned()],
    };
    let bench = failing(failure, 1);
    let plan = bench.plan("local/act", "full-auto");
    assert_eq!(bench.at(&plan), "execute/errored");
    assert_eq!(events(&bench, &plan, "checkpoint.restored"), 0);
    let errors = bench.ok("plan/errors", json!({ "plan": plan }));
    assert_eq!((&errors["error_category"], &errors["retry_count"]), (&json!("configuration"), &json!(0)));
    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "The key is right now" }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    assert_eq!(std::fs::read_to_string(bench.repo().join("a.txt")).unwrap(), "one\nTWO\nthree\n");
}

/// Calls its strategy too tight the first time, and then carries it out.
fn too_tight_once() -> Value {
    json!({
        "strategize": [
            { "requests": [decision("s/x", "strategy_choice", Value::Null, 0.9)] },
            { "outcome": done("decided") },
        ],
        "execute": [
            { "requests": [
                decision("i/x", "implementation_choice", json!("s/x"), 0.9),
                edit("1", "i/x", "a.txt", 1, "TWO\n"),
            ] },
            { "outcome": done("did it") },
        ],
    })
}

struct TooTight {
    script: Scripted,
    left: AtomicUsize,
}

impl Actor for TooTight {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        let tight = input.phase == Phase::Execute
            && self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
        let step = self.script.step(input, host);
        Box::pin(async move {
            let mut output = step.await?;
            if tight {
                output.requests.clear();
                output.outcome = serde_json::from_value(
                    json!({ "too_tight": { "reason": "it cannot be done so", "decisions": [] } }),
                )
                .unwrap();
            }
            Ok(output)
        })
    }
}

// CORR-027, PLAN-006, PLAN-010, CORR-026, T28: going back by the actor and correcting by a person do not count as each other
#[test]
fn a_reversion_by_the_actor_and_a_correction_by_a_person_are_told_apart() {
    let actor: Arc<dyn Actor> =
        Arc::new(TooTight { script: Scripted::new(too_tight_once()), left: AtomicUsize::new(1) });
    let bench = Bench::new(&[("a.txt", TEXT)], &[("test/tight", actor)]);
    bench.action("local/act", "test/tight", "test/tight", "");
    let plan = bench.plan("local/act", "auto");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    let reversions =
        |bench: &Bench| bench.ok("plan/guard", json!({ "plan": plan }))["reversions"]["used"].clone();
    assert_eq!((&bench.status(&plan)["attempt"], reversions(&bench)), (&json!(2), json!(1)));
    assert_eq!(events(&bench, &plan, "decision.corrected"), 0);
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    let strategy = tree["tree"]["children"][0]["decision_id"].clone();
    let corrected = bench
        .ok("plan/correct", json!({ "decision": strategy, "mode": "revert", "guidance": "Leave alone" }));
    assert_eq!(corrected["correction"]["attempt"], 3, "counted before anything is done again");
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!((&bench.status(&plan)["attempt"], reversions(&bench)), (&json!(3), json!(1)));
    assert_eq!(events(&bench, &plan, "decision.corrected"), 1);
}

// CORR-029, CKPT-006, DEC-019: what is applied has no way back, and keeps its history
#[test]
fn an_applied_plan_keeps_its_whole_tree_and_cannot_be_taken_back() {
    let bench = failing(semantic(), 0);
    let plan = bench.plan("local/act", "trusted");
    let choice = |bench: &Bench| {
        bench.ok("plan/tree", json!({ "plan": plan }))["tree"]["children"][0]["decision_id"].clone()
    };
    let guidance = "Do it in another way";
    bench.ok("plan/correct", json!({ "decision": choice(&bench), "mode": "revert", "guidance": guidance }));
    bench.work(&plan);
    let checkpoint = bench.ok("plan/artifacts", json!({ "plan": plan }))["checkpoints"][0]["id"].clone();
    // Nothing of an open plan is cleaned up.
    let open = bench.err("plan/discard", json!({ "plan": plan }));
    assert!(open.message.contains("only what a cancelled plan left is discarded"), "{open:?}");
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied", "{}", bench.status(&plan));
    let whole = json!({ "plan": plan, "show_superseded": true });
    let before = bench.ok("plan/tree", whole.clone());
    assert!(before["summary"]["superseded"].as_u64().unwrap() >= 1, "{before}");
    bench.ok("diagnostics/run", json!({ "cleanup": true }));
    assert_eq!(bench.ok("plan/tree", whole), before, "the tree is kept");
    let back = bench.err("plan/rollback", json!({ "plan": plan, "checkpoint": checkpoint }));
    assert!(back.suggestions.iter().any(|s| s.contains("append")), "{back:?}");
    let revert = json!({ "decision": choice(&bench), "mode": "revert", "guidance": "Leave alone" });
    assert!(bench.err("plan/correct", revert).suggestions.iter().any(|s| s.contains("append")));
}

// CORR-021, CORR-022, CORR-023, 4.4: what a resource without a sandbox that can be rolled back means is shown and confirmed
#[test]
fn how_far_a_correction_reaches_is_shown_for_a_resource_that_cannot_be_brought_back() {
    for (enabled, tier, rejected) in [("true", "phase", false), ("false", "none", true)] {
        let actor: Arc<dyn Actor> = Arc::new(Scripted::new(choose_and_edit()));
        let settings = [("CLEVERAGENTS_CHECKPOINT_ENABLED", enabled)];
        let bench = Bench::with_env(&[("a.txt", TEXT)], &[("test/scripted", actor)], &settings);
        bench.action("local/act", "test/scripted", "test/scripted", "");
        let flags = "decompose_task create_tool edit_code execute_command create_file delete_content access_network \
                     install_dependency modify_config approve_plan";
        let lines: String = flags.split_whitespace().map(|flag| format!("{flag}: 0.0\n")).collect();
        let text = format!(
            "name: local/free\ndescription: Free\n{lines}select_tool: 1.0\nrequire_sandbox: false\n\
             require_checkpoints: false\nallow_unsafe_tools: true\n"
        );
        bench.ok("registry/automation_profile/add", json!({ "config": "free.yaml", "text": text }));
        let plan = bench.plan("local/act", "local/free");
        assert_eq!(bench.at(&plan), "execute/complete+apply_approval");
        assert_eq!(bench.ok("plan/guard", json!({ "plan": plan }))["rollback_enabled"], false, "CKPT-018");
        // No type of today is like that: the type of the resource is made one that is.
        let store =
            SqliteStore::open(&bench.dir.path().join("data"), agents_store::Options::default()).unwrap();
        store
            .transact(|w| {
                let all = w.resources()?;
                let named = all.iter().find(|r| r.name.is_some()).unwrap();
                w.update_resource(&Resource { resource_type: "git".to_owned(), ..named.clone() })
            })
            .unwrap();
        for question in ["How about strategy/x?", "How about impl/x?"] {
            let decision = named(&bench, &plan, question);
            let ask = |dry_run: bool| json!({ "decision": decision, "mode": "revert", "guidance": "Leave alone", "dry_run": dry_run });
            let dry = bench.ok("plan/correct", ask(true));
            assert_eq!(
                (&dry["tier"], &dry["rejected"]),
                (&json!(tier), &json!(rejected)),
                "{question} {dry}"
            );
            let warned = dry["warnings"].to_string();
            assert!(warned.contains("`local/repo` has no sandbox that can be rolled back"), "{warned}");
            if rejected {
                let refused = bench.err("plan/correct", ask(false));
                assert!(refused.suggestions.iter().any(|s| s.contains("--mode append")), "{refused:?}");
                assert_eq!(dry["reason"], refused.message.as_str());
            }
        }
    }
}

// CORR-023: what no sandbox holds is named before anything is taken back
#[test]
fn what_a_tool_did_outside_the_sandbox_is_warned_of_before_a_correction() {
    let bench = failing(semantic(), 0);
    let plan = bench.plan("local/act", "trusted");
    let id = named(&bench, &plan, "How about impl/x?");
    let store = SqliteStore::open(&bench.dir.path().join("data"), agents_store::Options::default()).unwrap();
    let call = |n: i64| ToolCall {
        id: 0,
        plan_id: plan.parse().unwrap(),
        call_id: format!("call/{n}"),
        decision_id: id.as_str().unwrap().parse().unwrap(),
        tool: "local/notify".to_owned(),
        args_hash: "0".repeat(64),
        result: Value::Null,
        created_at: "2026-01-02T03:04:05.678Z".parse().unwrap(),
        side_effects: vec!["network".to_owned(), "mail".to_owned()],
    };
    for question in ["How about impl/x?", "How about strategy/x?"] {
        let decision = named(&bench, &plan, question);
        let ask = json!({
            "decision": decision, "mode": "revert", "guidance": "Leave alone", "dry_run": true,
        });
        let before = bench.ok("plan/correct", ask.clone());
        if question.contains("impl") {
            assert_eq!(before["warnings"], json!([]));
            store.transact(|w| (1..3).try_for_each(|n| w.insert_tool_call(&call(n)))).unwrap();
        }
        let dry = bench.ok("plan/correct", ask);
        let warned = "What 2 calls of `local/notify` did outside the sandbox stays done (network, mail), and may be \
                      done again";
        assert!(dry["warnings"].as_array().unwrap().contains(&json!(warned)), "{question}: {dry}");
    }
}

/// The id of the decision with this question.
fn named(bench: &Bench, plan: &str, question: &str) -> Value {
    fn find(node: &Value, question: &str) -> Option<Value> {
        if node["question"] == question {
            return Some(node["decision_id"].clone());
        }
        node["children"].as_array()?.iter().find_map(|child| find(child, question))
    }
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    find(&tree["tree"], question).unwrap_or_else(|| panic!("{tree:#}"))
}
