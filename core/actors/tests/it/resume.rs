//! A run that is killed or paused anywhere ends as one that was not.

use std::sync::atomic::Ordering;

use agents_domain::diagnostics::Severity;
use agents_domain::plan::{Phase, PhaseSummary};

use crate::world::*;

/// Files and servers with every turn a run can take: rounds, a rollback, a follow-up, a fix elsewhere.
fn world() -> World {
    let files = [
        ("a.py", "import a, b, c\nx = bad\n"),
        ("b.py", "import os\n"),
        ("c.py", "y = hidden\n"),
        ("d.py", "hidden = 1\n"),
    ];
    let elsewhere = server("local/elsewhere", ".py", |files, path| {
        let wrong = path == "c.py" && files["d.py"].starts_with("hidden");
        let fix = vec![in_file("d.py", vec![edit((0, 0), (0, 0), "shown = ")])];
        let found = diagnostic("HIDDEN", Severity::Warning, 0, (4, 10), "hidden");
        if wrong { vec![(found, vec![offer("Show it", true, fix)])] } else { Vec::new() }
    });
    let empty = server("local/empty", ".py", |files, path| {
        let found = diagnostic("EMPTY", Severity::Hint, 0, (0, 0), "the file is empty");
        if files[path].is_empty() { vec![(found, Vec::new())] } else { Vec::new() }
    });
    World::new(
        &files,
        vec![
            server("local/ruff", ".py", unused_imports),
            server("local/broken", ".py", word("BAD", Severity::Error, "bad", "(")),
            elsewhere,
            empty,
        ],
    )
}

struct Ended {
    files: Files,
    keys: Vec<String>,
    log: Vec<String>,
    summaries: (PhaseSummary, PhaseSummary),
}

fn end(engine: &mut Engine) -> Ended {
    let summaries = engine.both();
    Ended {
        files: engine.world.files.lock().unwrap().clone(),
        keys: engine.drafts.iter().map(|draft| draft.key.clone()).collect(),
        log: engine.log.clone(),
        summaries,
    }
}

// PLAN-053: nothing is lost and nothing is done twice.
#[test]
fn a_run_that_is_killed_around_every_step_ends_as_one_that_was_not() {
    let straight = end(&mut Engine::new(world()));
    assert!(straight.log.iter().any(|entry| entry.starts_with("undo ")));
    assert!(straight.keys.iter().any(|key| key.starts_with("follow-up/")));
    let mut engine = Engine::new(world());
    engine.crashes = true;
    let crashed = end(&mut engine);
    assert_eq!(crashed.files, straight.files);
    assert_eq!(crashed.log, straight.log);
    assert_eq!(crashed.summaries, straight.summaries);
}

#[test]
fn a_run_that_is_stopped_anywhere_ends_as_one_that_was_not() {
    let straight = end(&mut Engine::new(world()));
    let mut stopped = 0;
    for after in 0.. {
        let mut engine = Engine::new(world());
        engine.world.stop_in.store(after, Ordering::SeqCst);
        let ended = end(&mut engine);
        assert_eq!(ended.files, straight.files, "stopped at {after}");
        assert_eq!(ended.log, straight.log, "stopped at {after}");
        assert_eq!(ended.summaries, straight.summaries, "stopped at {after}");
        if engine.world.stop_in.load(Ordering::SeqCst) != usize::MAX {
            break;
        }
        stopped += 1;
    }
    assert!(stopped >= 20, "it looks whether to stop often enough: {stopped}");
}

#[test]
fn an_answer_is_not_lost_when_the_step_after_it_is_stopped() {
    let mut dead = server("local/ruff", ".py", unused_imports);
    dead.dies_after = 0;
    let mut engine = Engine::new(World::new(&[("a.py", "import os\n")], vec![dead]));
    engine.replies = vec!["Go on without it".to_owned()];
    // The first look is one batch; the second is cut short.
    engine.world.stop_in.store(1, Ordering::SeqCst);
    engine.run(Phase::Strategize).unwrap();
    assert_eq!(engine.asked.len(), 1);
}
