//! Whole plans on a checkout of 1,000 files, with a language server that answers at once: what is left is our own share.

use std::time::{Duration, Instant};

use agents_e2e::{World, memory_peak, processor_time, wait_until};
use serde_json::json;

use crate::Figure;

/// Files of the checkout.
const FILES: usize = 1000;

pub fn measure() -> Vec<Figure> {
    // Worlds are kept to the end, and those of other groups left behind: ext4 makes files slowly for some seconds after
    // many were removed.
    std::thread::park_timeout(Duration::from_secs(6));
    let mut worlds = Vec::new();
    [100, FILES].into_iter().flat_map(|with_findings| use_and_execute(with_findings, &mut worlds)).collect()
}

fn use_and_execute(with_findings: usize, worlds: &mut Vec<World>) -> [Figure; 2] {
    let mut peak = 0;
    let (times, own): (Vec<Duration>, Vec<Duration>) = (0..5)
        .map(|_| {
            let world = World::new();
            world.fake(
                "fake",
                &json!({ "rules": [{
                "files": ".py", "match": r"\bbad_(\w+)", "code": "F1", "severity": 2, "message": "bad $1",
                "fixes": [{ "title": "Make `$1` good", "replace": "good_$1", "preferred": true }],
            }] }),
            );
            world.fixer();
            let repo = world.repo("repo");
            for file in 0..FILES {
                let body: String = (0..60).map(|n| format!("value_{n} = compute({file}, {n})\n")).collect();
                let finding = if file < with_findings { "x = bad_one\n" } else { "x = one\n" };
                repo.write(format!("pkg_{}/module_{file}.py", file / 50), format!("{finding}{body}"));
            }
            repo.commit("start");
            world.register("app", &repo);
            let args =
                ["plan", "use", "local/fix-diagnostics", "local/app", "--automation-profile", "trusted"];
            let begun = Instant::now();
            let running = world.start(&args);
            let mut seen = (0, Duration::ZERO);
            // The worker is watched while it lives: what it used so far only grows.
            wait_until("a worker starts", Duration::from_secs(10), || {
                (!world.workers().is_empty()).then_some(())
            });
            let workers = world.workers();
            let watcher = std::thread::spawn(move || {
                let used = |pid: &_| Some((memory_peak(*pid)?, processor_time(*pid)?));
                while let Some(now) = workers.iter().filter_map(used).max() {
                    seen = now;
                    std::thread::park_timeout(Duration::from_millis(10));
                }
                seen
            });
            let finished = running.finish(Duration::from_secs(300));
            let took = begun.elapsed();
            assert!(finished.status.success(), "{finished:?}");
            let (memory, own) = watcher.join().expect("the watcher ends");
            peak = peak.max(memory);
            world.only_plan().assert_at("execute/complete+apply_approval");
            worlds.push(world);
            (took, own)
        })
        .unzip();
    let where_found = format!("findings in {} files", if with_findings == FILES { "1,000" } else { "100" });
    let wall = Figure::times(
        &format!("use and execute, {where_found}"),
        "plan use to the end of Execute, 1,000 files, the fake server's answers included",
        &times,
    );
    let worker = Figure::times(
        &format!("its worker's own processor time, {where_found}"),
        "user and system time of the worker process over both phases, its children (git, the fake server) not",
        &own,
    );
    [wall.budget("p50", 2000.0).memory(Some(peak)), worker]
}
