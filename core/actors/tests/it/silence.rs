//! What is said and done when servers do not answer.

use agents_domain::diagnostics::Severity;
use agents_domain::plan::{AwaitingKind, Phase};
use serde_json::json;

use crate::world::*;

// LSP-031: never stuck.
#[test]
fn a_server_that_is_dead_at_execute_is_asked_about() {
    let mut dying = ruff();
    dying.dies_after = 1;
    for (replies, outcome) in [(vec!["2"], "not_checked"), (vec!["1", "Go on without it"], "not_checked")] {
        let mut engine = engine(&[("a.py", "import os\n")], vec![dying.clone()]);
        engine.replies = replies.into_iter().map(str::to_owned).collect();
        let (_, done) = engine.both();
        assert_eq!(engine.asked[0].0, AwaitingKind::LanguageServer);
        assert!(
            engine.asked[0].1.contains("local/ruff does not answer for 1 file with F401"),
            "{}",
            engine.asked[0].1
        );
        assert_eq!(done.facts["groups"][0]["outcome"], outcome);
        assert_eq!(done.headline, "No finding fixed: 1 not checked");
        assert!(engine.replies.is_empty());
    }
}

#[test]
fn files_that_are_not_answered_for_are_not_said_to_be_fixed() {
    let mut half = ruff();
    let mut engine = engine(&[("a.py", "import os\n"), ("b.py", "import re\n")], vec![half.clone()]);
    engine.run(Phase::Strategize).unwrap();
    // In Execute `a.py` is not answered for, and `b.py` was fixed by hand.
    half.mute.insert("a.py".to_owned());
    engine.world.servers = vec![half];
    engine.world.files.lock().unwrap().insert("b.py".to_owned(), String::new());
    engine.world = engine.world.restarted();
    let done = engine.run(Phase::Execute).unwrap();
    assert_eq!(done.facts["groups"][0]["outcome"], "not_checked");
    assert_eq!((&done.facts["fixed"], &done.facts["not_checked"]), (&json!(0), &json!(2)));
}

#[test]
fn a_server_that_was_removed_since_is_asked_about() {
    let mut engine =
        engine(&[("a.py", "import os\n")], vec![ruff(), server("local/b", ".py", |_, _| Vec::new())]);
    engine.run(Phase::Strategize).unwrap();
    engine.world.servers.remove(0);
    engine.world = engine.world.restarted();
    engine.replies = vec!["2".to_owned()];
    let done = engine.run(Phase::Execute).unwrap();
    assert!(engine.asked[0].1.contains("it is not registered any more"), "{}", engine.asked[0].1);
    assert_eq!(done.facts["not_checked"], 1);
}

#[test]
fn a_server_that_comes_back_is_used() {
    let mut dying = ruff();
    dying.dies_after = 1;
    let mut engine = engine(&[("a.py", "import os\n")], vec![dying]);
    engine.run(Phase::Strategize).unwrap();
    // Started anew for Execute.
    engine.world.servers[0].dies_after = usize::MAX;
    engine.world = engine.world.restarted();
    let done = engine.run(Phase::Execute).unwrap();
    assert_eq!(done.headline, "Fixed 1 finding in 1 file");
}

#[test]
fn a_server_that_dies_before_the_check_leaves_the_edits_unverified_and_says_so() {
    let mut dying = ruff();
    // One file: once in Strategize, once in Execute before the edits.
    dying.dies_after = 2;
    let mut engine = engine(&[("a.py", "import os\n")], vec![dying]);
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "");
    assert_eq!(done.facts["not_verified"], 1);
    assert_eq!(done.facts["fixed"], 0);
    assert!(
        done.lines[0].contains("1 edited file not verified (a.py: local/ruff: no answer within 10 s)"),
        "{:?}",
        done.lines
    );
}

#[test]
fn the_syntax_is_checked_even_when_the_server_is_dead() {
    let mut dying = server("local/broken", ".py", word("BAD", Severity::Warning, "bad", "("));
    dying.dies_after = 2;
    let mut engine = engine(&[("a.py", "x = bad\n")], vec![dying]);
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "x = bad\n");
    assert_eq!(done.facts["rolled_back"], 1);
}
