//! kill -9 of the worker while a correction or a rollback takes work back.

use std::collections::BTreeMap;

use agents_e2e::{PlanHandle, Records, Repo, World};

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
        let mut active: Vec<String> =
            plan.decisions().iter().map(|d| format!("{} {}", d["question"], d["chosen"])).collect();
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
