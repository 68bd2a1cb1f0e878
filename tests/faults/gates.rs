//! kill -9 while a validation runs, and while edits of a person are taken into a plan.

use std::time::Duration;

use agents_e2e::{PlanHandle, Records, World, scripts, wait_until};
use nix::sys::signal::{Signal, kill};
use serde_json::json;

use super::{next_command, workers_gone};
use crate::support::{bad_to_good, go_on};

const LONG: Duration = Duration::from_secs(60);

// T52, VALID-021: what ran when the worker died is run again, the program that ran is gone, and nothing is written twice.
#[test]
fn a_worker_that_is_killed_while_a_validation_runs_leaves_no_program_and_the_next_one_runs_it_again() {
    let world = World::new();
    world.fake("fake", &json!({ "rules": [bad_to_good()] }));
    world.fixer();
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\n")]);
    world.register("app", &repo);
    let (runs, go) = (world.path("runs"), world.path("go"));
    let script =
        format!("echo run >> '{0}'\n  test -e '{1}' || exec tail -f '{0}'", runs.display(), go.display());
    let file = world.path("slow.yaml");
    std::fs::write(&file, format!("name: local/slow\nshell: |\n  {script}\n")).unwrap();
    world.ok(&["validation", "add", "--config", file.to_str().unwrap()]);
    world.ok(&["validation", "attach", "--project", "local/app", "local/slow"]);
    let plan = super::start(&world, &[]);
    // It may have a process number of its own where it runs, so it is known by its command line.
    let tail = format!("tail\0-f\0{}\0", runs.display());
    wait_until("the validation runs", LONG, || running(&tail).then_some(()));
    for worker in world.workers() {
        let _ = kill(worker, Signal::SIGKILL);
    }
    workers_gone(&world);
    wait_until("the program is gone", LONG, || (!running(&tail)).then_some(()));
    assert!(!Records::at(world.data(), &plan.id).starts_with("apply"));
    std::fs::write(&go, "").unwrap();
    next_command(&world, &plan);
    workers_gone(&world);
    assert_eq!(plan.at(), "apply/applied", "{:#}", plan.status());
    assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), 2);
    assert_eq!((repo.text("a.py").as_str(), repo.commits()), ("x = good_one\n", 2));
    let summary = plan.status()["validation_summary"][0].clone();
    assert_eq!((&summary["passed"], &summary["attempt"]), (&json!(true), &json!(1)), "{summary:#}");
}

/// Whether a process with this command line runs.
fn running(command_line: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|one| std::fs::read(one.path().join("cmdline")).ok())
        .any(|found| found == command_line.as_bytes())
}

/// A plan that waits for an answer in Execute, with an edit of a person in its sandbox.
fn edited(world: &World) -> PlanHandle<'_> {
    let mut script = scripts::editing("a.txt", 0, "ONE\n");
    script["execute"][0]["requests"][0]["confidence"] = json!(0.1);
    let script = format!("script={script}");
    let answer = world.ok(&[
        "plan",
        "use",
        "--automation-profile",
        "cautious",
        "--arg",
        &script,
        "local/act",
        "local/app",
    ]);
    let plan = PlanHandle::new(world, answer.data["plan_id"].as_str().unwrap());
    go_on(&plan);
    plan.assert_at("execute/processing+decision");
    let status = plan.status();
    let sandbox = status["execution"]["sandbox"]["path"].as_str().unwrap();
    std::fs::write(std::path::Path::new(sandbox).join("b.txt"), "by hand\n").unwrap();
    workers_gone(world);
    plan
}

// SBX-005, T52
#[test]
fn a_persons_edits_survive_a_kill_while_they_are_taken_into_the_plan() {
    for fault in agents_engine::worker::edited_fault_points() {
        let world = World::new();
        world.scripted("local/act", "");
        let repo = world.repo_with("repo", &[("a.txt", "one\ntwo\n"), ("b.txt", "b\n")]);
        world.register("app", &repo);
        let plan = edited(&world);
        let args = plan.args("prompt", &["Do it", "--detach"]);
        let answer = world.call_with(&args, &[("AGENTS_FAULT", fault)]);
        assert!(answer.is_ok(), "{fault}: {}", answer.text);
        workers_gone(&world);
        assert_eq!(
            Records::at(world.data(), &plan.id).split('+').next(),
            Some("execute/processing"),
            "{fault}: the worker did not die there"
        );
        plan.call("execute", &[]);
        workers_gone(&world);
        plan.apply();
        assert_eq!(
            (repo.text("a.txt").as_str(), repo.text("b.txt").as_str()),
            ("ONE\ntwo\n", "by hand\n"),
            "{fault}"
        );
        assert_eq!(
            plan.decisions_of("user_intervention").len(),
            2,
            "{fault}: the answer, and the edits once"
        );
        assert_eq!((repo.commits(), repo.status()), (2, vec![]), "{fault}");
    }
}
