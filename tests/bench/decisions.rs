//! One plan with 1,000 decisions: its tree, what hangs on one of them, and a correction that is only shown.

use std::hint::black_box;

use agents_domain::ports::store::StoreExt;
use agents_domain::tree;
use agents_e2e::World;
use agents_store::testing::fill;

use crate::{Figure, commands, fixtures, repeat};

/// Decisions of the plan, each made from the one before.
const DECISIONS: usize = 1000;
/// Times of each.
const RUNS: usize = 100;

pub fn measure() -> Vec<Figure> {
    let world = World::new();
    let store = fixtures::store(world.data());
    // The second of the plans has done its Execute; the first is applied, which nothing takes back.
    let plan = fill(&store, 2, DECISIONS).expect("the database can be filled")[1];
    let decisions = store.view(|r| r.decisions(plan)).expect("the decisions can be read");
    let target = decisions[DECISIONS / 2].decision_id;
    let affected = repeat(RUNS, || {
        let affected = tree::affected(black_box(target), &decisions, &[]).expect("the decision stands");
        assert_eq!(affected.decisions.len(), DECISIONS / 2);
    });
    let what = "what hangs on the decision in the middle, in this process";
    let mut figures =
        vec![Figure::times("affected subtree, 1,000 decisions", what, &affected).budget("p99", 20.0)];
    let (plan, target) = (plan.to_string(), target.to_string());
    let dry_run = ["plan", "correct", "--mode", "revert", "--guidance", "2", "--dry-run", &target];
    for (name, args) in [
        ("plan tree, 1,000 decisions", &["plan", "tree", &plan][..]),
        ("plan correct --dry-run, 1,000 decisions", &dry_run[..]),
    ] {
        let run = || {
            let output = commands::command(&world, args).output().expect("agents can be started");
            assert!(output.status.success(), "{args:?}: {output:?}");
        };
        run();
        let times = repeat(RUNS, run);
        let what = "start to end of the process";
        figures
            .push(Figure::times(name, what, &times).budget("p99", 20.0).memory(commands::peak(&world, args)));
    }
    figures
}
