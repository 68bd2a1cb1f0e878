//! kill -9 of the worker of a whole tree of plans: while a child is made, runs, and is taken in.

use agents_e2e::{PlanHandle, Records, Repo, World, scripts};

use super::{next_command, workers_gone};

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

/// Two children side by side, then one that has a child of its own.
fn world_of_children() -> (World, Repo, String) {
    let world = World::new();
    world.scripted("local/act", "");
    let repo = world.repo_with("repo", &[("a.txt", TEXT), ("b.txt", TEXT)]);
    world.register("app", &repo);
    let deeper = scripts::handing_on(&[scripts::spawn(
        "deepest",
        None,
        &[],
        &[],
        &scripts::editing("a.txt", 3, "FOUR\n"),
    )]);
    let script = scripts::handing_on(&[
        scripts::decision("both", "subplan_parallel_spawn", None),
        scripts::spawn("left", Some("both"), &[], &[], &scripts::editing("a.txt", 0, "ONE\n")),
        scripts::spawn("right", Some("both"), &[], &[], &scripts::editing("a.txt", 7, "EIGHT\n")),
        scripts::spawn("deep", None, &[], &[], &deeper),
    ]);
    (world, repo, format!("script={script}"))
}

fn start<'w>(world: &'w World, script: &str, fault: &str) -> PlanHandle<'w> {
    let args =
        ["plan", "use", "--detach", "--automation-profile", "ci", "--arg", script, "local/act", "local/app"];
    let answer = world.call_with(&args, &[("AGENTS_FAULT", fault)]);
    assert!(answer.is_ok(), "{}", answer.text);
    PlanHandle::new(world, answer.data["plan_id"].as_str().expect("a plan has an id"))
}

fn assert_done(world: &World, repo: &Repo, plan: &PlanHandle<'_>, fault: &str) {
    assert_eq!(plan.at(), "apply/applied", "{fault}: {:#}", plan.status());
    let expected = TEXT.replace("one", "ONE").replace("four", "FOUR").replace("eight", "EIGHT");
    assert_eq!((repo.text("a.txt"), repo.text("b.txt")), (expected, TEXT.to_owned()), "{fault}");
    assert_eq!((repo.commits(), repo.status(), repo.worktrees()), (2, vec![], 0), "{fault}");
    let list = world.ok(&["plan", "list", "--state", "applied"]);
    assert_eq!(list.data["total"], 5, "{fault}: each child was made once: {}", list.text);
}

// SUB-003, SUB-009, T52
#[test]
fn the_worker_of_a_tree_that_is_killed_at_any_place_loses_nothing_and_makes_nothing_twice() {
    let later = [
        "worker.child-created#4",
        "worker.child-merged#2",
        "worker.sandbox-made#4",
        "worker.edits-committed#2",
        "worker.apply-done",
    ];
    for fault in agents_engine::worker::child_fault_points().iter().chain(&later) {
        let (world, repo, script) = world_of_children();
        let plan = start(&world, &script, fault);
        workers_gone(&world);
        assert_ne!(
            Records::at(world.data(), &plan.id),
            "apply/applied",
            "{fault}: the worker did not die there"
        );
        next_command(&world, &plan);
        workers_gone(&world);
        assert_done(&world, &repo, &plan, fault);
    }
}
