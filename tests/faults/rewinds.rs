//! kill -9 of the worker while a correction or a rollback takes work back.

use std::collections::BTreeMap;

use agents_domain::ports::store::StoreExt;
use agents_e2e::{PlanHandle, Records, Repo, World, scripts};
use agents_store::{Options, SqliteStore};
use serde_json::json;

use super::{next_command, workers_gone, world_of_work};

/// What must not depend on a kill.
#[derive(Debug, PartialEq, Eq)]
struct TakenBack {
    at: String,
    /// Files of the plan's diff, with the text it leaves them with.
    diff: BTreeMap<String, String>,
    /// Chosen options of the decisions in force, and how many fell.
    active: Vec<String>,
    superseded: usize,
    attempt: u64,
    checkout: Vec<String>,
}

impl TakenBack {
    fn of(plan: &PlanHandle<'_>, repo: &Repo) -> Self {
        let diff = plan.ok("diff", &[]).data["files"].as_array().cloned().unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let tree = plan.ok("tree", &["--show-superseded"]).data;
        let mut active: Vec<String> = plan
            .decisions()
            .iter()
            .map(|d| without_id(format!("{} {}", d["question"], d["chosen"])))
            .collect();
        active.sort();
        Self {
            at: plan.at(),
            diff: diff.iter().map(|file| (text(&file["path"]), text(&file["patch"]))).collect(),
            active,
            superseded: usize::try_from(tree["summary"]["superseded"].as_u64().unwrap_or_default()).unwrap(),
            attempt: plan.status()["attempt"].as_u64().unwrap_or_default(),
            checkout: repo.status(),
        }
    }
}

/// The same text in each run: checkpoints have other ids.
fn without_id(mut text: String) -> String {
    if let Some(at) = text.find("cp_") {
        text.replace_range(at + 3..at + 29, "...");
    }
    text
}

fn executed(world: &World) -> PlanHandle<'_> {
    let plan = world.plan("app", "trusted", &[]);
    plan.assert_at("execute/complete+apply_approval");
    plan
}

/// Corrects the decision of a type about `O1` in the background; its worker dies at the fault.
fn correct(world: &World, plan: &PlanHandle<'_>, decision_type: &str, fault: &str) {
    let decisions = plan.decisions_of(decision_type);
    let about = |decision: &&serde_json::Value| decision["question"].to_string().contains("O1");
    let decision = decisions.iter().find(about).unwrap_or_else(|| panic!("nothing about O1: {decisions:#?}"));
    let id = decision["decision_id"].as_str().expect("a decision has an id");
    let args = ["plan", "correct", "--mode", "revert", "-g", "Leave alone", "--yes", "--detach", id];
    let answer = world.call_with(&args, &[("AGENTS_FAULT", fault)]);
    assert!(answer.is_ok(), "{}", answer.text);
    workers_gone(world);
}

fn dies_while_taking_back(decision_type: &str, faults: impl Fn(&str) -> bool) {
    let (world, repo) = world_of_work();
    let plan = executed(&world);
    correct(&world, &plan, decision_type, "");
    let expected = TakenBack::of(&plan, &repo);
    assert!(expected.superseded > 0 && expected.attempt == 2, "{expected:#?}");
    assert!(!expected.diff.contains_key("b.py") && expected.diff.contains_key("a.py"), "{expected:#?}");
    for fault in agents_engine::worker::rewind_fault_points().iter().filter(|fault| faults(fault)) {
        let (world, repo) = world_of_work();
        let plan = executed(&world);
        correct(&world, &plan, decision_type, fault);
        assert_ne!(Records::at(world.data(), &plan.id), expected.at, "{fault}: the worker did not die there");
        next_command(&world, &plan);
        workers_gone(&world);
        assert_eq!(TakenBack::of(&plan, &repo), expected, "{fault}");
    }
}

// CORR-010, CORR-012, CORR-015, CORR-016, CORR-025
#[test]
fn a_worker_that_is_killed_while_all_of_execute_is_taken_back_loses_nothing() {
    // Nothing stays that would have to be carried over.
    dies_while_taking_back("strategy_choice", |fault| fault != "rewind.files-written");
}

// CORR-011, CORR-015, CORR-016, CORR-025
#[test]
fn a_worker_that_is_killed_while_one_decision_of_execute_is_taken_back_loses_nothing() {
    dies_while_taking_back("implementation_choice", |_| true);
}

/// Whether anything is still to be taken back, read without a command that would bring it on.
fn rewinding(world: &World) -> bool {
    let store = SqliteStore::open(world.data(), Options::default()).expect("the database opens");
    !store.view(|r| r.rewinding()).expect("it can be read").is_empty()
}

/// What is done to a plan at rest, in the background, with a fault for its worker.
type Act = fn(&World, &PlanHandle<'_>, &str);

/// The same comes out, wherever the worker dies.
fn survives(
    prepared: fn() -> (World, Repo, String),
    act: Act,
    on: fn(&World, &PlanHandle<'_>),
    faults: &[&str],
) -> TakenBack {
    let outcome = |fault: &str, expected: Option<&TakenBack>| {
        let (world, repo, id) = prepared();
        let plan = PlanHandle::new(&world, &id);
        act(&world, &plan, fault);
        workers_gone(&world);
        if let Some(expected) = expected {
            match fault.strip_prefix("rewind.") {
                // It is all done by then.
                Some("settled") => assert!(!rewinding(&world), "{fault}"),
                Some(_) => assert!(rewinding(&world), "{fault}: the worker did not die there"),
                None => {
                    assert_ne!(Records::at(world.data(), &id), expected.at, "{fault}: it did not die there")
                }
            }
            on(&world, &plan);
            workers_gone(&world);
        }
        TakenBack::of(&plan, &repo)
    };
    let expected = outcome("", None);
    for fault in faults {
        assert_eq!(outcome(fault, Some(&expected)), expected, "{fault}");
    }
    expected
}

fn in_background(world: &World, args: &[&str], fault: &str) {
    let answer = world.call_with(&[args, &["--detach"]].concat(), &[("AGENTS_FAULT", fault)]);
    assert!(answer.is_ok(), "{}", answer.text);
}

fn goes_on(world: &World, plan: &PlanHandle<'_>) {
    next_command(world, plan);
}

fn looks(_: &World, plan: &PlanHandle<'_>) {
    plan.call("status", &[]);
}

fn correct_about(world: &World, plan: &PlanHandle<'_>, about: &str, mode: &str, guidance: &str, fault: &str) {
    let decisions = plan.decisions();
    let found = decisions.iter().find(|d| d["question"].to_string().contains(about));
    let found = found.unwrap_or_else(|| panic!("nothing about {about}: {decisions:#?}"));
    let id = found["decision_id"].as_str().expect("a decision has an id");
    let args = ["plan", "correct", "--mode", mode, "-g", guidance, id];
    let yes: &[&str] = if mode == "revert" { &["--yes"] } else { &[] };
    in_background(world, &[&args[..], yes].concat(), fault);
}

// CKPT-001 to CKPT-005
#[test]
fn a_worker_that_is_killed_while_a_plan_is_rolled_back_loses_nothing() {
    let prepared = || {
        let (world, repo) = world_of_work();
        let id = executed(&world).id;
        (world, repo, id)
    };
    let act: Act = |world, plan, fault| {
        let artifacts = plan.ok("artifacts", &[]).data;
        let checkpoint =
            artifacts["checkpoints"][0]["id"].as_str().expect("a checkpoint has an id").to_owned();
        in_background(world, &["plan", "rollback", "--yes", &plan.id, &checkpoint], fault);
    };
    // Whole commits: no file is written by itself.
    let faults = ["rewind.begun", "rewind.sandboxes-back", "rewind.settled"];
    let back = survives(prepared, act, looks, &faults);
    assert_eq!((back.at.as_str(), back.diff.len()), ("execute/queued+rollback", 0), "{back:#?}");
}

// CORR-010
#[test]
fn a_worker_that_is_killed_while_strategize_is_taken_back_loses_nothing() {
    let prepared = || {
        let (world, repo) = world_of_work();
        let id = world.plan("app", "supervised", &[]).id;
        (world, repo, id)
    };
    let act: Act = |world, plan, fault| correct_about(world, plan, "O1", "revert", "Leave alone", fault);
    let faults = ["rewind.begun", "rewind.sandboxes-back", "rewind.settled", "worker.step-committed"];
    let back = survives(prepared, act, goes_on_in_strategize, &faults);
    assert_eq!((back.at.as_str(), back.attempt), ("strategize/complete+execute_approval", 2), "{back:#?}");
}

/// A plan that waits for nobody goes on when somebody looks.
fn goes_on_in_strategize(world: &World, plan: &PlanHandle<'_>) {
    if Records::at(world.data(), &plan.id) != "strategize/complete" {
        next_command(world, plan);
    }
}

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

/// Two children, one of which hangs on a strategy, and what is appended when it is asked for.
fn family() -> (World, Repo, String) {
    let world = World::new();
    world.scripted("local/act", "");
    let repo = world.repo_with("repo", &[("a.txt", TEXT)]);
    world.register("app", &repo);
    let mut kept = scripts::editing("a.txt", 0, "ONE\n");
    let other = scripts::editing("a.txt", 1, "TWO\n")["execute"][0]["requests"][1].clone();
    kept["execute"][0]["cases"] =
        json!([{ "decision": "impl/line", "chosen": "Leave it", "requests": [other] }]);
    let mut falls = scripts::spawn("falls", None, &[], &[], &scripts::editing("a.txt", 7, "EIGHT\n"));
    falls["depends_on"] = json!(["s/mine"]);
    let mut script = scripts::handing_on(&[
        scripts::decision("s/mine", "strategy_choice", None),
        scripts::spawn("kept", None, &[], &[], &kept),
        falls,
    ]);
    script["prompts"] = json!({ "Also four": scripts::editing("a.txt", 3, "FOUR\n") });
    let script = format!("script={script}");
    let args = ["plan", "use", "--automation-profile", "trusted", "--arg", &script, "local/act", "local/app"];
    let id = world.ok(&args).data["plan_id"].as_str().expect("a plan has an id").to_owned();
    PlanHandle::new(&world, &id).assert_at("execute/complete+apply_approval");
    (world, repo, id)
}

fn text_of(back: &TakenBack) -> &str {
    back.diff.get("a.txt").map_or("", String::as_str)
}

// CORR-012, CORR-019, C-45
#[test]
fn a_worker_that_is_killed_while_a_family_is_taken_back_loses_nothing() {
    let act: Act = |world, plan, fault| correct_about(world, plan, "s/mine", "revert", "Leave it", fault);
    let faults = [
        "rewind.begun",
        "rewind.sandboxes-back",
        "rewind.settled",
        "worker.child-merged",
        "worker.child-created",
    ];
    let back = survives(family, act, goes_on, &faults);
    assert!(text_of(&back).contains("+ONE") && text_of(&back).contains("+EIGHT"), "{back:#?}");
}

// C-60
#[test]
fn a_worker_that_is_killed_while_a_merged_child_is_corrected_loses_nothing() {
    let act: Act = |world, plan, fault| {
        let tree = plan.ok("tree", &[]).data;
        let children = tree["child_plans"].as_array().expect("it has children").clone();
        let kept = children.iter().find(|c| c["description"] == "Do kept").expect("there is one");
        let child = PlanHandle::new(world, kept["id"].as_str().expect("it has an id"));
        correct_about(world, &child, "impl/line", "revert", "Leave it", fault);
    };
    let faults = [
        "rewind.begun",
        "rewind.files-written",
        "rewind.sandboxes-back",
        "worker.child-merged",
        "worker.child-recorded",
    ];
    let back = survives(family, act, goes_on, &faults);
    assert!(text_of(&back).contains("+TWO") && !text_of(&back).contains("+ONE"), "{back:#?}");
}

// CORR-005, T48
#[test]
fn a_worker_that_is_killed_over_appended_work_loses_nothing_and_does_nothing_twice() {
    let act: Act = |world, plan, fault| correct_about(world, plan, "s/mine", "append", "Also four", fault);
    let faults =
        ["worker.sandbox-made", "worker.edits-committed", "worker.child-merged", "worker.child-recorded"];
    let back = survives(family, act, goes_on, &faults);
    assert!(text_of(&back).contains("+FOUR") && text_of(&back).contains("+ONE"), "{back:#?}");
}
