//! The sandbox of a large checkout: made, and checkpointed after a change of one file.

use std::time::{Duration, Instant};

use agents_e2e::World;
use agents_sandbox::{Repository, Worktree, snapshot};
use agents_store::testing::id;

use crate::Figure;

/// Files of the checkout.
const FILES: usize = 10_000;
/// Sandboxes made.
const SANDBOXES: u64 = 5;
/// Checkpoints of each.
const CHECKPOINTS: usize = 20;

pub fn measure() -> Vec<Figure> {
    let world = World::new();
    let repo = world.repo("repo");
    for file in 0..FILES {
        repo.write(format!("pkg_{}/module_{file}.py", file / 100), format!("value = {file}\n").repeat(40));
    }
    repo.commit("start");
    let repository = Repository::open(repo.path()).expect("it is a repository");
    let (mut snapshots, mut worktrees, mut checkpoints) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..SANDBOXES {
        let timed = |times: &mut Vec<Duration>, begun: Instant| times.push(begun.elapsed());
        let begun = Instant::now();
        let taken = snapshot(&repository, id(number)).expect("a snapshot can be taken");
        timed(&mut snapshots, begun);
        let begun = Instant::now();
        let dir = world.path(&format!("sandbox-{number}"));
        let worktree = Worktree::create(&repository, &taken, &dir, &[]).expect("a sandbox can be made");
        timed(&mut worktrees, begun);
        for change in 0..CHECKPOINTS {
            let path = format!("pkg_{change}/module_{}.py", change * 100);
            worktree.write_file(&path, b"value = None\n").expect("a file can be written");
            let begun = Instant::now();
            worktree.checkpoint("One file", &[path]).expect("a checkpoint can be made");
            timed(&mut checkpoints, begun);
        }
    }
    let what = "of a checkout of 10,000 files, git's work included";
    vec![
        Figure::times("snapshot, 10,000 files", what, &snapshots),
        Figure::times("worktree, 10,000 files", what, &worktrees).budget("p50", 1000.0),
        Figure::times("checkpoint of one changed file, 10,000 files", what, &checkpoints).budget("p50", 30.0),
    ]
}
