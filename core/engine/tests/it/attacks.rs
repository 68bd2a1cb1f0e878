//! What people and programs get wrong, or do at the same time: each is refused in words, and nothing changes.

use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_domain::ErrorKind;
use agents_domain::ports::actor::Actor;
use serde_json::{Value, json};

use crate::harness::Bench;
use crate::lifecycle::choose_and_edit;

const TEXT: &str = "one\ntwo\nthree\n";

fn bench() -> Bench {
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(choose_and_edit()));
    let bench = Bench::new(&[("a.txt", TEXT)], &[("test/scripted", actor)]);
    bench.action("local/act", "test/scripted", "test/scripted", "");
    bench
}

/// The number of the latest event: whatever changes a plan makes one.
fn last(bench: &Bench) -> i64 {
    bench.ok("events/after", json!({ "sequence": 0, "limit": 1000 }))["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|e| e["sequence"].as_i64())
        .max()
        .unwrap_or(0)
}

/// The operations that take a plan, with what else they need.
fn of_plans() -> Vec<(&'static str, Value)> {
    vec![
        ("plan/status", json!({})),
        ("plan/tree", json!({})),
        ("plan/diff", json!({})),
        ("plan/artifacts", json!({})),
        ("plan/errors", json!({})),
        ("plan/guard", json!({})),
        ("plan/execute", json!({})),
        ("plan/apply", json!({})),
        ("plan/cancel", json!({})),
        ("plan/discard", json!({})),
        ("plan/prompt", json!({ "guidance": "go on" })),
        ("plan/rollback", json!({ "checkpoint": "cp_01" })),
        ("plan/set-profile", json!({ "automation_profile": "ci" })),
    ]
}

fn with(mut params: Value, key: &str, value: &str) -> Value {
    params[key] = json!(value);
    params
}

// OUT-004, CLI-026: one case per verb and per way an id can be wrong
#[test]
fn an_id_that_is_none_or_of_something_else_is_refused_by_every_verb_and_nothing_changes() {
    let bench = bench();
    let plan = bench.plan("local/act", "supervised");
    let decision = bench.ok("plan/tree", json!({ "plan": plan }))["tree"]["decision_id"].clone();
    let decision = decision.as_str().unwrap();
    let (before, at) = (last(&bench), bench.status(&plan));
    let wrong = [
        "",
        " ",
        "01ZZZZZZZZZZZZZZZZZZZZZZZZ",
        "not an id",
        "../../etc/passwd",
        "01'; DROP TABLE plans;--",
        decision,
    ];
    let long = "0".repeat(1 << 20);
    for (method, params) in of_plans() {
        for id in wrong.iter().copied().chain([long.as_str()]) {
            let error = bench.err(method, with(params.clone(), "plan", id));
            let shown = &id[..id.len().min(30)];
            assert!(
                matches!(error.kind, ErrorKind::NotFound | ErrorKind::ValidationFailed),
                "{method} {shown}: {error:?}"
            );
            assert!(!error.suggestions.is_empty(), "{method} {shown}: {error:?}");
        }
    }
    for (method, params) in [
        ("plan/explain", json!({})),
        ("plan/correct", json!({ "mode": "revert", "guidance": "other" })),
        ("plan/correct", json!({ "mode": "append", "guidance": "more" })),
    ] {
        for id in ["", "01ZZZZZZZZZZZZZZZZZZZZZZZZ", "not an id", plan.as_str()] {
            let error = bench.err(method, with(params.clone(), "decision", id));
            assert!(
                matches!(error.kind, ErrorKind::NotFound | ErrorKind::ValidationFailed),
                "{method} {id}: {error:?}"
            );
        }
    }
    assert_eq!((last(&bench), bench.status(&plan)), (before, at));
}

// CLI-026: a beginning that several have in common names them
#[test]
fn an_ambiguous_beginning_names_what_it_could_mean_and_changes_nothing() {
    let bench = bench();
    let plans = [bench.plan("local/act", "supervised"), bench.plan("local/act", "supervised")];
    let common = plans[0].chars().zip(plans[1].chars()).take_while(|(a, b)| a == b).count();
    let before = last(&bench);
    for (method, params) in of_plans() {
        let error = bench.err(method, with(params, "plan", &plans[0][..common]));
        let told = format!("{} {:?}", error.message, error.detail);
        assert!(plans.iter().all(|plan| told.contains(plan)), "{method}: {error:?}");
    }
    assert_eq!(last(&bench), before);
}

// OUT-004, CKPT-001, PLAN-080: what belongs to another plan is not taken for one's own
#[test]
fn a_checkpoint_or_a_decision_of_another_plan_is_refused() {
    let bench = bench();
    let plans = [bench.plan("local/act", "trusted"), bench.plan("local/act", "trusted")];
    let checkpoint = bench.ok("plan/artifacts", json!({ "plan": plans[1] }))["checkpoints"][0]["id"].clone();
    let decision = bench.ok("plan/tree", json!({ "plan": plans[1] }))["tree"]["decision_id"].clone();
    let before = last(&bench);
    let other = bench.err("plan/rollback", json!({ "plan": plans[0], "checkpoint": checkpoint }));
    assert!(other.message.contains(&plans[1]), "{other:?}");
    let answer = json!({ "plan": plans[0], "guidance": "yes", "decision": decision });
    let other = bench.err("plan/prompt", answer);
    assert!(other.message.contains(&plans[1]), "{other:?}");
    assert_eq!(last(&bench), before);
}

// PLAN-080, CORR-001: words have a length
#[test]
fn guidance_that_is_empty_or_a_megabyte_is_refused_and_nothing_changes() {
    let bench = bench();
    let plan = bench.plan("local/act", "supervised");
    let decision =
        bench.ok("plan/tree", json!({ "plan": plan }))["tree"]["children"][0]["decision_id"].clone();
    let before = last(&bench);
    let long = "x".repeat(1 << 20);
    for text in ["", " \n\t", long.as_str()] {
        let mut asked = vec![bench.err("plan/prompt", json!({ "plan": plan, "guidance": text }))];
        for mode in ["revert", "append"] {
            asked.push(
                bench.err("plan/correct", json!({ "decision": decision, "mode": mode, "guidance": text })),
            );
        }
        for error in asked {
            assert_eq!(error.kind, ErrorKind::ValidationFailed, "{error:?}");
            assert!(error.message.starts_with("the guidance "), "{error:?}");
            assert!(error.message.len() < 200);
        }
    }
    let reason = bench.err("plan/cancel", json!({ "plan": plan, "reason": long }));
    assert!(reason.message.contains("at most 65536"), "{reason:?}");
    assert_eq!(last(&bench), before);
}

// PROF-001, PROF-022, PROF-024, ACT-013: what a plan was made of may go while it is under way
#[test]
fn an_action_archived_and_a_profile_removed_under_a_plan_change_nothing_for_it() {
    let bench = bench();
    let flags = [
        ("decompose_task", 0.0),
        ("create_tool", 1.0),
        ("select_tool", 1.0),
        ("edit_code", 0.0),
        ("execute_command", 0.0),
        ("create_file", 0.0),
        ("delete_content", 0.0),
        ("access_network", 0.0),
        ("install_dependency", 0.0),
        ("modify_config", 0.0),
        ("approve_plan", 0.0),
    ];
    let lines: String = flags.iter().map(|(flag, value)| format!("{flag}: {value:?}\n")).collect();
    let safety = "require_sandbox: true\nrequire_checkpoints: true\nallow_unsafe_tools: false\n";
    let text = format!("name: local/mine\ndescription: Mine\n{lines}{safety}");
    let add = |text: String, update: bool| json!({ "config": "mine.yaml", "text": text, "update": update });
    bench.ok("registry/automation_profile/add", add(text.clone(), false));
    for wrong in ["1.01", "-0.01", ".nan", ".inf", "half", "true", "[]"] {
        let bad = text.replace("edit_code: 0.0", &format!("edit_code: {wrong}"));
        let error = bench.err("registry/automation_profile/add", add(bad, true));
        assert!(format!("{error:?}").contains("edit_code"), "{wrong}: {error:?}");
    }
    let plan = bench.plan("local/act", "local/mine");
    assert_eq!(bench.at(&plan), "strategize/complete+execute_approval");
    bench.ok("registry/action/archive", json!({ "name": "local/act" }));
    bench.ok("registry/automation_profile/remove", json!({ "name": "local/mine" }));
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    let guard = bench.ok("plan/guard", json!({ "plan": plan }));
    assert_eq!((&guard["profile"], &guard["rollback_enabled"]), (&json!("local/mine"), &json!(true)));
    // What is decided again is decided by the same action.
    let decision =
        bench.ok("plan/tree", json!({ "plan": plan }))["tree"]["children"][0]["decision_id"].clone();
    bench.ok("plan/correct", json!({ "decision": decision, "mode": "revert", "guidance": "Leave alone" }));
    bench.work(&plan);
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied");
    let gone = bench.err("plan/use", json!({ "action": "local/act", "projects": ["local/app"] }));
    assert!(gone.message.contains("archived"), "{gone:?}");
}

// 3.2, CORR-030: many at once on one plan; each does its work once or is refused by a rule
#[test]
fn many_commands_at_once_on_one_plan_do_each_thing_once() {
    let bench = bench();
    let plan = bench.plan("local/act", "manual");
    let at_once = |method: &'static str, params: Value| -> Vec<agents_domain::Result<Value>> {
        std::thread::scope(|scope| {
            let calls: Vec<_> =
                (0..6).map(|_| scope.spawn(|| bench.engine.call_json(method, params.clone()))).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        })
    };
    let clean = |results: &[agents_domain::Result<Value>]| {
        for error in results.iter().filter_map(|r| r.as_ref().err()) {
            assert!(matches!(error.kind, ErrorKind::InvalidState | ErrorKind::ValidationFailed), "{error:?}");
        }
        results.iter().filter(|r| r.is_ok()).count()
    };
    // `manual` asks about the strategy's one choice.
    while bench.at(&plan).contains("+decision") {
        let answered = at_once("plan/prompt", json!({ "plan": plan, "guidance": "Fix it" }));
        assert!(clean(&answered) >= 1);
        bench.work(&plan);
    }
    let decisions = bench.ok("plan/tree", json!({ "plan": plan, "show_superseded": true }));
    let count = decisions.to_string().matches("user_intervention").count();
    while !bench.at(&plan).starts_with("execute/complete") {
        assert!(clean(&at_once("plan/execute", json!({ "plan": plan }))) >= 1, "{}", bench.at(&plan));
        bench.work(&plan);
    }
    assert!(count <= 6, "{decisions}");
    let decision =
        bench.ok("plan/tree", json!({ "plan": plan }))["tree"]["children"][0]["decision_id"].clone();
    let correction = json!({ "decision": decision, "mode": "revert", "guidance": "Leave alone" });
    assert_eq!(clean(&at_once("plan/correct", correction)), 1, "one correction at a time");
    bench.work(&plan);
    while !bench.at(&plan).starts_with("execute/complete") {
        bench.ok("plan/execute", json!({ "plan": plan }));
        bench.work(&plan);
    }
    assert_eq!(bench.status(&plan)["attempt"], 2);
    assert!(clean(&at_once("plan/apply", json!({ "plan": plan }))) >= 1);
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied");
    assert_eq!(clean(&at_once("plan/cancel", json!({ "plan": plan }))), 0);
}
