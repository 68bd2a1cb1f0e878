//! kill -9 of a worker at every named place, and at any time.

use std::time::{Duration, Instant};

use agents_e2e::{Records, Running, wait_until};
use nix::sys::signal::{Signal, kill};

use super::{Outcome, next_command, start, undisturbed, workers_gone, world_of_work};

/// Tests that share the places, so that they run side by side.
const SHARES: usize = 4;

/// A worker dies at each place of a share; the next command ends the work as if nobody had disturbed it, and says so.
fn dies_at_each_place_of(share: usize) {
    let expected = undisturbed();
    let all = agents_engine::worker::fault_points();
    assert!(all.len() >= 20, "{all:?}");
    let mine = all.into_iter().enumerate().filter(|(at, _)| at % SHARES == share).map(|(_, point)| point);
    let mut wrong = Vec::new();
    for point in mine {
        let (world, repo) = world_of_work();
        let plan = start(&world, &[("AGENTS_FAULT", point)]);
        workers_gone(&world);
        if Records::at(world.data(), &plan.id) == expected.at {
            wrong.push(format!("{point}: the worker did not die there"));
            continue;
        }
        let answer = next_command(&world, &plan);
        let outcome = Outcome::of(&plan, &repo);
        if outcome != *expected {
            wrong.push(format!("{point}: {}\n{}", answer.words(), difference(expected, &outcome)));
        }
        if !says_so(&world, &plan.id, &answer) {
            wrong.push(format!("{point}: nobody says that the worker died: {:?}", answer.messages));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The record and the answer speak of a worker that died.
fn says_so(world: &agents_e2e::World, plan: &str, answer: &agents_e2e::Envelope) -> bool {
    let events = Records::events(world.data(), plan);
    let recorded = events.iter().filter(|(kind, _)| kind == "plan.worker_lost").count();
    recorded == 1 && answer.messages.iter().any(|(_, text)| text.contains("died"))
}

/// The parts of two outcomes that differ.
fn difference(expected: &Outcome, found: &Outcome) -> String {
    let (expected, found) = (format!("{expected:#?}"), format!("{found:#?}"));
    let only = |of: &str, other: &str, mark: &str| {
        let lines = of.lines().filter(|line| !other.lines().any(|known| known == *line));
        lines.map(|line| format!("{mark} {line}\n")).collect::<String>()
    };
    only(&expected, &found, "-") + &only(&found, &expected, "+")
}

#[test]
fn a_worker_that_is_killed_at_any_place_loses_nothing_first_share() {
    dies_at_each_place_of(0);
}

#[test]
fn a_worker_that_is_killed_at_any_place_loses_nothing_second_share() {
    dies_at_each_place_of(1);
}

#[test]
fn a_worker_that_is_killed_at_any_place_loses_nothing_third_share() {
    dies_at_each_place_of(2);
}

#[test]
fn a_worker_that_is_killed_at_any_place_loses_nothing_fourth_share() {
    dies_at_each_place_of(3);
}

// The places that are passed often are died at later, too: in the second group, and while a bad fix is taken back.
#[test]
fn a_worker_that_is_killed_on_a_later_pass_loses_nothing() {
    let expected = undisturbed();
    for fault in [
        "worker.step-committed#2",
        "worker.edits-written#2",
        "worker.edits-committed#3",
        "worker.change-recorded#2",
        "checkpoint.after-ref#3",
        "worker.decision-recorded#4",
        "restore.before-index#2",
        "restore.after-index#2",
        "restore.after-files#2",
        "restore.after-ref#2",
    ] {
        let (world, repo) = world_of_work();
        let plan = start(&world, &[("AGENTS_FAULT", fault)]);
        workers_gone(&world);
        assert_ne!(Records::at(world.data(), &plan.id), expected.at, "{fault}: the worker did not die there");
        let answer = next_command(&world, &plan);
        let outcome = Outcome::of(&plan, &repo);
        assert!(outcome == *expected, "{fault}: {}\n{}", answer.words(), difference(expected, &outcome));
    }
}

#[test]
fn an_apply_on_a_detached_head_survives_a_kill_after_it_moved_head() {
    let (world, repo) = world_of_work();
    repo.git(&["checkout", "-q", "--detach"]);
    let plan = start(&world, &[("AGENTS_FAULT", "apply.after-head")]);
    workers_gone(&world);
    assert_ne!(Records::at(world.data(), &plan.id), "apply/applied");
    next_command(&world, &plan);
    plan.assert_at("apply/applied");
    let branch = format!("cleveragents/plan-{}", plan.id);
    assert_eq!(repo.git(&["rev-list", "--count", &format!("main..{branch}")]), "1");
    assert_eq!(repo.git(&["rev-parse", "--abbrev-ref", "HEAD"]), branch);
    assert_eq!((repo.files(), repo.status()), (undisturbed().files.clone(), vec![]));
}

/// The same numbers in every run (xorshift).
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn processes_that_are_killed_at_any_time_lose_nothing() {
    let expected = undisturbed();
    let (world, _) = world_of_work();
    let begun = Instant::now();
    let plan = start(&world, &[]);
    workers_gone(&world);
    plan.assert_at("apply/applied");
    let whole = u64::try_from(begun.elapsed().as_millis()).unwrap();
    let mut seeded = Seeded(0x5eed_0000_0000_0002);
    for run in 0..10 {
        let (world, repo) = world_of_work();
        let plan = start(&world, &[]);
        let moment = Duration::from_millis(seeded.below(whole.max(200)));
        std::thread::park_timeout(moment);
        // Workers only, or everything at once as when a machine is switched off.
        let all = run % 2 == 1;
        for (pid, line) in world.processes() {
            if all || line.contains("plan-worker") {
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
        workers_gone(&world);
        let answer = next_command(&world, &plan);
        let outcome = Outcome::of(&plan, &repo);
        assert!(
            outcome == *expected,
            "run {run}, killed after {moment:?}: {}\n{}",
            answer.words(),
            difference(expected, &outcome)
        );
    }
}

// The terminal of `plan use` is closed, or the command is killed: the plan goes on, and following it again shows its end.
#[test]
fn a_killed_follower_does_not_stop_the_plan() {
    let expected = undisturbed();
    let (world, repo) = world_of_work();
    let use_it = ["plan", "use", "--automation-profile", "ci", "local/fix-diagnostics", "local/app"];
    let follower = world.start(&use_it);
    wait_until("a worker takes the plan", Duration::from_secs(30), || {
        (!world.workers().is_empty()).then_some(())
    });
    follower.signal(Signal::SIGKILL);
    drop(follower.finish(Duration::from_secs(10)));
    workers_gone(&world);
    let plan = world.only_plan();
    assert_eq!(Outcome::of(&plan, &repo), *expected);
}

// CLI-014: Ctrl+C ends the following, not the work, and says so.
#[test]
fn an_interrupted_follower_leaves_with_130_and_the_plan_goes_on() {
    let (world, repo) = world_of_work();
    let use_it = ["plan", "use", "--automation-profile", "ci", "local/fix-diagnostics", "local/app"];
    let follower = world.start(&use_it);
    wait_until("a worker takes the plan", Duration::from_secs(30), || {
        (!world.workers().is_empty()).then_some(())
    });
    follower.signal(Signal::SIGINT);
    let ended = follower.finish(Duration::from_secs(10));
    if ended.status.code() != Some(0) {
        assert_eq!(ended.status.code(), Some(130), "{ended:?}");
        let told = ended.text() + &ended.stderr;
        assert!(told.contains("goes on"), "{told}");
    }
    workers_gone(&world);
    let plan = world.only_plan();
    assert_eq!(Outcome::of(&plan, &repo), *undisturbed());
}

#[test]
fn a_killed_editor_server_does_not_stop_a_plan_it_started() {
    let (world, repo) = world_of_work();
    let plan = world.plan("app", "supervised", &[]);
    plan.assert_at("strategize/complete+execute_approval");
    let mut editor = agents_e2e::Editor::start(world.command(agents_e2e::agents()).args(["lsp", "serve"]));
    editor.initialize(repo.path(), &serde_json::json!({}));
    let arguments = serde_json::json!([{ "plan": plan.id }]);
    editor.request(
        "workspace/executeCommand",
        &serde_json::json!({ "command": "agents.plan.execute", "arguments": arguments }),
    );
    kill(editor.pid(), Signal::SIGKILL).unwrap();
    drop(editor);
    workers_gone(&world);
    plan.assert_at("execute/complete+apply_approval");
    plan.apply();
    assert_eq!(repo.files(), undisturbed().files);
    world.assert_quiet();
}

#[test]
fn a_command_that_only_looks_takes_up_the_work_of_a_dead_worker() {
    let (world, repo) = world_of_work();
    let plan = start(&world, &[("AGENTS_FAULT", "worker.change-recorded")]);
    workers_gone(&world);
    plan.status();
    wait_until("the plan comes to its end", Duration::from_secs(60), || {
        (Records::at(world.data(), &plan.id) == undisturbed().at).then_some(())
    });
    workers_gone(&world);
    assert_eq!(Outcome::of(&plan, &repo), *undisturbed());
}

#[test]
fn following_takes_up_the_work_of_a_dead_worker() {
    let (world, repo) = world_of_work();
    let plan = start(&world, &[("AGENTS_FAULT", "worker.change-recorded")]);
    workers_gone(&world);
    let followed: Running = world.start(&["plan", "follow", &plan.id]);
    let followed = followed.finish(Duration::from_secs(60));
    assert_eq!(followed.status.code(), Some(0), "{followed:?}");
    workers_gone(&world);
    assert_eq!(Outcome::of(&plan, &repo), *undisturbed());
}
