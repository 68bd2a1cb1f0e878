//! Corrections and rollbacks of plans that have child plans, and work that is appended as one.

use agents_domain::ErrorKind;
use agents_domain::decision::Decision;
use agents_domain::ports::store::StoreExt;
use agents_domain::tree;
use serde_json::{Value, json};

use super::child_plans::{
    FILE, bench, bench_with, child, children, container, decision, done, edit, editing, parent, read, run,
    sandbox_file, spawn,
};
use super::harness::Bench;

fn decisions(bench: &Bench, plan: &str) -> Vec<Decision> {
    bench.engine.store().view(|r| r.decisions(plan.parse().unwrap())).unwrap()
}

fn active(bench: &Bench, plan: &str, key: &str) -> Decision {
    let all = decisions(bench, plan).into_iter();
    let mut found = all.filter(|d| d.superseded_by.is_none() && d.key.as_deref() == Some(key));
    found.next().unwrap_or_else(|| panic!("no active decision {key}"))
}

fn correct(bench: &Bench, decision: &Decision, mode: &str, guidance: &str) -> Value {
    bench.ok("plan/correct", json!({ "decision": decision.decision_id, "mode": mode, "guidance": guidance }))
}

fn events(bench: &Bench, plan: &str, kind: &str) -> usize {
    let all = bench.ok("events/after", json!({ "sequence": 0, "plan": plan }));
    all["events"].as_array().unwrap().iter().filter(|e| e["event_type"] == kind).count()
}

/// Edits line 1 of the file itself; asked for `Also nine`, line 9.
fn with_addition() -> Value {
    let mut script = editing(0, "ONE\n");
    script["prompts"] = json!({ "Also nine": editing(8, "NINE\n") });
    script
}

// CORR-005, CORR-006, CORR-017, CORR-018, T48, 4.9, C-46
#[test]
fn appended_work_is_a_child_plan_that_the_parent_takes_in_before_it_is_applied() {
    let bench = bench();
    let plan = run(&bench, "trusted", with_addition());
    let before = decisions(&bench, &plan);
    let target = active(&bench, &plan, "impl/line");
    let invoked = events(&bench, &plan, "tool.completed");
    let dry = bench.ok(
        "plan/correct",
        json!({ "decision": target.decision_id, "mode": "append", "guidance": "Also nine", "dry_run": true }),
    );
    assert_eq!(
        (&dry["rejected"], &dry["append_detail"]["original_decision_preserved"]),
        (&json!(false), &json!(true))
    );
    assert_eq!((decisions(&bench, &plan), children(&bench, &plan)), (before.clone(), vec![]));

    let added = correct(&bench, &target, "append", "Also nine");
    assert_eq!(added["correction"]["impact"], "adds to existing subtree, no rollback");
    assert_eq!(added["correction"]["appended_after"], json!(target.decision_id));
    assert_eq!((&added["correction"]["attempt"], &added["queued"]["new_child"]), (&json!(2), &json!(1)));
    assert_eq!(bench.at(&plan), "execute/queued");
    let now = decisions(&bench, &plan);
    assert_eq!(now[..before.len()], before[..]);
    let (spawned, said) = (&now[before.len()], &now[before.len() + 1]);
    assert_eq!(spawned.corrects_decision_id, Some(target.decision_id));
    assert_eq!(spawned.parent_decision_id, target.parent_decision_id);
    assert_eq!(
        (said.parent_decision_id, said.chosen_option.as_str()),
        (Some(spawned.decision_id), "Also nine")
    );
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("one", "ONE").replace("nine", "NINE"));
    assert_eq!(children(&bench, &plan)[0]["id"], added["queued"]["child_plan_id"]);
    assert_eq!(events(&bench, &plan, "tool.completed"), invoked, "its own work is not made again");
    let explained = bench.ok("plan/explain", json!({ "decision": target.decision_id }));
    assert_eq!(explained["corrections"][0]["mode"], "append");
    assert_eq!(explained["corrections"][0]["child_plan"], added["queued"]["child_plan_id"]);
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied");
    assert_eq!(read(&bench), FILE.replace("one", "ONE").replace("nine", "NINE"));
}

// CORR-005, 4.9.4: before Execute it waits for it; after Apply it is applied alone
#[test]
fn work_is_appended_in_strategize_and_to_an_applied_plan() {
    let bench = bench();
    let plan = run(&bench, "supervised", with_addition());
    assert_eq!(bench.at(&plan), "strategize/complete+execute_approval");
    correct(&bench, &active(&bench, &plan, "strategy/line"), "append", "Also nine");
    assert_eq!(bench.at(&plan), "strategize/complete+execute_approval");
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("one", "ONE").replace("nine", "NINE"));

    let bench = super::child_plans::bench();
    let plan = run(&bench, "ci", with_addition());
    assert_eq!(bench.at(&plan), "apply/applied");
    let added = correct(&bench, &active(&bench, &plan, "impl/line"), "append", "Also nine");
    assert_eq!(bench.at(&plan), "apply/applied");
    let own = added["queued"]["child_plan_id"].as_str().unwrap();
    assert_eq!(bench.asked.0.lock().unwrap().last().unwrap().to_string(), own);
    bench.work(own);
    assert_eq!(bench.at(own), "apply/applied", "{}", bench.status(own));
    assert_eq!(read(&bench), FILE.replace("one", "ONE").replace("nine", "NINE"));
}

// 4.9.5
#[test]
fn what_may_have_no_child_plan_is_not_appended_to() {
    let argument = "arguments:\n  - name: script\n    type: string\n";
    let scripted: std::sync::Arc<dyn agents_domain::ports::actor::Actor> =
        std::sync::Arc::new(agents_actors::scripted::Scripted::from_arguments());
    let bench = Bench::with_env(
        &[("a.txt", FILE)],
        &[("test/scripted", scripted)],
        &[("CLEVERAGENTS_PLAN_MAX_CHILD_DEPTH", "1")],
    );
    bench.action("local/act", "test/scripted", "test/scripted", argument);
    let plan = run(&bench, "trusted", with_addition());
    let target = active(&bench, &plan, "impl/line");
    let (before, status) = (decisions(&bench, &plan), bench.at(&plan));
    let refused = bench.err(
        "plan/correct",
        json!({ "decision": target.decision_id, "mode": "append", "guidance": "Also nine" }),
    );
    assert!(refused.message.contains("plan.max-child-depth"), "{refused:?}");
    assert_eq!((decisions(&bench, &plan), bench.at(&plan)), (before, status));
}

fn strategy(key: &str) -> Value {
    decision(key, "strategy_choice", Value::Null)
}

fn hanging_on(mut spawn: Value, key: &str) -> Value {
    spawn["depends_on"] = json!([key]);
    spawn
}

fn asking(line: u32, text: &str) -> Value {
    let mut script = editing(line, text);
    script["execute"][0]["requests"][0]["confidence"] = json!(0.1);
    script
}

/// One strategy behind three children (done; waiting in Execute; not started), another behind one more, all under
/// `cautious`, which asks below 0.8 in Execute.
fn family() -> (Bench, String) {
    let bench = bench();
    let script = parent(vec![
        strategy("s/mine"),
        strategy("s/other"),
        hanging_on(spawn("kept", Value::Null, &[], editing(7, "EIGHT\n")), "s/other"),
        hanging_on(spawn("finished", Value::Null, &[], editing(0, "ONE\n")), "s/mine"),
        hanging_on(spawn("waiting", Value::Null, &[], asking(2, "THREE\n")), "s/mine"),
        hanging_on(spawn("later", Value::Null, &[], editing(4, "FIVE\n")), "s/mine"),
    ]);
    let plan = run(&bench, "cautious", script);
    for _ in 0..3 {
        assert_eq!(bench.at(&plan), "execute/processing+spawn", "{}", bench.status(&plan));
        bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "start" }));
        bench.work(&plan);
    }
    assert_eq!(bench.at(&plan), "execute/processing+child_plan", "{}", bench.status(&plan));
    (bench, plan)
}

// CORR-012, CORR-014, CORR-015, CORR-019, C-45, 4.3, 4.8.2: each kind of child, and one that nothing of this is about
#[test]
fn children_that_hang_on_a_corrected_decision_are_given_up_and_others_are_only_taken_in_again() {
    let (bench, plan) = family();
    let [kept, finished, waiting] = ["kept", "finished", "waiting"].map(|name| child(&bench, &plan, name));
    assert_eq!(bench.at(&finished), "execute/complete");
    assert_eq!(bench.at(&waiting), "execute/processing+decision");
    let sandbox = |id: &str| bench.status(id)["execution"]["sandbox"]["path"].as_str().unwrap().to_owned();
    let gone = [sandbox(&finished), sandbox(&waiting)];
    let before = (decisions(&bench, &kept), events(&bench, &kept, "actor.invoked"));
    let stays: Vec<Decision> = ["s/other", "kept"].iter().map(|key| active(&bench, &plan, key)).collect();

    let mine = active(&bench, &plan, "s/mine");
    let dry = bench.ok(
        "plan/correct",
        json!({ "decision": mine.decision_id, "mode": "revert", "guidance": "Leave it", "dry_run": true }),
    );
    assert_eq!(dry["would_revert"]["child_plans_to_roll_back"], 2);
    assert!(dry["warnings"].to_string().contains("taken in again"), "{dry:#}");
    let corrected = correct(&bench, &mine, "revert", "Leave it");
    assert_eq!(corrected["affected_subtree"]["child_plans_rolled_back"], 2);
    for id in [&finished, &waiting] {
        assert!(bench.at(id).ends_with("/cancelled"), "{}", bench.at(id));
    }
    assert!(gone.iter().all(|path| !std::path::Path::new(path).exists()), "{gone:?}");
    bench.work(&plan);
    // The strategy is decided again, with what hung on it; the kept child did nothing for it.
    assert_eq!((decisions(&bench, &kept), events(&bench, &kept, "actor.invoked")), before);
    let all = decisions(&bench, &plan);
    assert!(stays.iter().all(|d| all.contains(d)), "{all:#?}");
    tree::validate(&all).unwrap();
    // What is handed on again is asked about again; the kept child is in by then.
    while bench.at(&plan) == "execute/processing+spawn" {
        assert!(sandbox_file(&bench, &plan).contains("EIGHT"));
        bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "skip" }));
        bench.work(&plan);
    }
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("eight", "EIGHT"), "{}", bench.status(&plan));
    assert_eq!(events(&bench, &kept, "actor.invoked"), before.1);
}

// CORR-020
#[test]
fn nothing_is_reverted_that_an_applied_child_hangs_on() {
    let bench = bench();
    let script = parent(vec![
        strategy("s/mine"),
        hanging_on(spawn("part", Value::Null, &[], editing(0, "ONE\n")), "s/mine"),
    ]);
    let mut script = script;
    script["execute"] = json!([
        { "requests": [decision("impl/own", "implementation_choice", Value::Null), edit("1", "impl/own", 8, "NINE\n")] },
        done("all done"),
    ]);
    let plan = run(&bench, "trusted", script);
    let part = child(&bench, &plan, "part");
    bench.ok("plan/apply", json!({ "plan": part }));
    bench.work(&part);
    assert_eq!(bench.at(&part), "apply/applied", "{}", bench.status(&part));
    let mine = active(&bench, &plan, "s/mine");
    let before = (decisions(&bench, &plan), bench.at(&plan));
    let refused = bench.err(
        "plan/correct",
        json!({ "decision": mine.decision_id, "mode": "revert", "guidance": "Leave it" }),
    );
    assert_eq!(refused.kind, ErrorKind::InvalidState);
    assert!(refused.message.contains(&part), "{refused:?}");
    for wanted in ["--mode append", "agents plan tree"] {
        assert!(refused.suggestions.iter().any(|s| s.contains(wanted)), "{refused:?}");
    }
    assert_eq!((decisions(&bench, &plan), bench.at(&plan)), before);
    // 4.10: what does not touch the child can be corrected.
    let own = active(&bench, &plan, "impl/own");
    assert_eq!(correct(&bench, &own, "revert", "Leave it")["affected_subtree"]["child_plans_rolled_back"], 0);
}

// C-60
#[test]
fn a_correction_inside_a_merged_child_is_taken_in_again_by_its_parent() {
    let bench = bench();
    let mut part = editing(0, "ONE\n");
    part["execute"][0]["cases"] = json!([{
        "decision": "impl/line", "chosen": "Leave it", "requests": [edit("2", "impl/line", 1, "TWO\n")],
    }]);
    let plan = run(
        &bench,
        "trusted",
        parent(vec![
            spawn("part", Value::Null, &[], part),
            spawn("rest", Value::Null, &[], editing(7, "EIGHT\n")),
        ]),
    );
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("one", "ONE").replace("eight", "EIGHT"));
    let part = child(&bench, &plan, "part");
    let rest = events(&bench, &child(&bench, &plan, "rest"), "actor.invoked");
    bench.asked.0.lock().unwrap().clear();
    correct(&bench, &active(&bench, &part, "impl/line"), "revert", "Leave it");
    assert_eq!(bench.at(&plan), "execute/queued");
    let wanted: Vec<String> = bench.asked.0.lock().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(wanted, std::slice::from_ref(&plan), "the worker of the root has the child");
    bench.work(&part);
    assert_eq!(bench.at(&part), "execute/complete");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("two", "TWO").replace("eight", "EIGHT"));
    assert_eq!(events(&bench, &child(&bench, &plan, "rest"), "actor.invoked"), rest);
    // Applied together, it cannot be reverted any more.
    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(read(&bench), FILE.replace("two", "TWO").replace("eight", "EIGHT"));
    let late = active(&bench, &part, "impl/line");
    bench.err("plan/correct", json!({ "decision": late.decision_id, "mode": "revert", "guidance": "Do it" }));
}

fn checkpoint_labelled(bench: &Bench, plan: &str, label: &str) -> String {
    let artifacts = bench.ok("plan/artifacts", json!({ "plan": plan }));
    let all = artifacts["checkpoints"].as_array().unwrap();
    let found = all.iter().find(|c| c["label"].as_str().unwrap().contains(label));
    found.unwrap_or_else(|| panic!("no checkpoint {label}: {all:#?}"))["id"].as_str().unwrap().to_owned()
}

// CKPT-002, CORR-019: a child that was made later is given up, and made anew on the way on
#[test]
fn a_rollback_to_before_a_child_plan_gives_it_up_and_goes_forward_again_with_its_work() {
    let bench = bench();
    let plan = run(
        &bench,
        "trusted",
        parent(vec![
            spawn("first", Value::Null, &[], editing(0, "ONE\n")),
            spawn("second", Value::Null, &[], editing(7, "EIGHT\n")),
        ]),
    );
    let whole = FILE.replace("one", "ONE").replace("eight", "EIGHT");
    assert_eq!(sandbox_file(&bench, &plan), whole);
    let [first, second] = ["first", "second"].map(|name| child(&bench, &plan, name));
    let ran = events(&bench, &first, "actor.invoked");
    let back = checkpoint_labelled(&bench, &plan, "Before child plan: Do second");
    let ask = |checkpoint: &str| json!({ "plan": plan, "checkpoint": checkpoint });
    let rolled = bench.ok("plan/rollback", ask(&back));
    assert_eq!(rolled["impact"]["child_plans_invalidated"], 1);
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/queued+rollback");
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("one", "ONE"));
    assert_eq!(
        (bench.at(&first), bench.at(&second)),
        ("execute/complete".into(), "execute/cancelled".into())
    );

    // Forward again: the work is back, and nothing is left to be done for it.
    let redo = rolled["redo_checkpoint"].as_str().unwrap().to_owned();
    bench.ok("plan/rollback", ask(&redo));
    bench.work(&plan);
    assert_eq!(sandbox_file(&bench, &plan), whole);
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!((sandbox_file(&bench, &plan), children(&bench, &plan).len()), (whole.clone(), 2));

    // Back once more, and on from there: another child does it.
    bench.ok("plan/rollback", ask(&back));
    bench.work(&plan);
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!((sandbox_file(&bench, &plan), children(&bench, &plan).len()), (whole, 2));
    assert_ne!(child(&bench, &plan, "second"), second);
    assert_eq!(events(&bench, &first, "actor.invoked"), ran, "the first one did nothing again");
}

// T49 for a child: its sandbox goes back though nobody works on the tree
#[test]
fn a_child_is_rolled_back_while_its_parent_waits() {
    let (bench, plan) = family();
    let finished = child(&bench, &plan, "finished");
    let base = checkpoint_labelled(&bench, &finished, "Before the first change");
    bench.asked.0.lock().unwrap().clear();
    bench.ok("plan/rollback", json!({ "plan": finished, "checkpoint": base }));
    let wanted: Vec<String> = bench.asked.0.lock().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(wanted, std::slice::from_ref(&plan));
    bench.work(&finished);
    assert_eq!(bench.status(&finished)["rewinding"], false);
    assert_eq!(bench.at(&finished), "execute/queued+rollback");
    assert_eq!(sandbox_file(&bench, &finished), FILE.replace("eight", "EIGHT"));
}

// SUB-014, CORR-011: what shall stand of a merge is a decision like any other
#[test]
fn the_answer_to_a_merge_conflict_can_be_corrected() {
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
    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "2" }));
    bench.work(&plan);
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("two", "TWO"));
    let german = child(&bench, &plan, "german");
    let answer = active(&bench, &plan, &format!("merge/{german}/0"));
    correct(&bench, &answer, "revert", "1");
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("two", "zwei"));
}

// CORR-019, 4.3: nested ones too
#[test]
fn what_a_given_up_child_handed_on_is_given_up_with_it() {
    let bench = bench_with("", &[]);
    let deeper = parent(vec![spawn("deepest", Value::Null, &[], editing(0, "ONE\n"))]);
    let plan = run(
        &bench,
        "trusted",
        parent(vec![strategy("s/mine"), hanging_on(spawn("deep", Value::Null, &[], deeper), "s/mine")]),
    );
    let deep = child(&bench, &plan, "deep");
    let deepest = child(&bench, &deep, "deepest");
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("one", "ONE"));
    correct(&bench, &active(&bench, &plan, "s/mine"), "revert", "Leave it");
    assert_eq!(
        (bench.at(&deep), bench.at(&deepest)),
        ("execute/cancelled".into(), "execute/cancelled".into())
    );
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval", "{}", bench.status(&plan));
    assert_eq!(sandbox_file(&bench, &plan), FILE.replace("one", "ONE"), "decided and done again");
    assert_eq!(children(&bench, &plan).len(), 2, "another one did it");
}
