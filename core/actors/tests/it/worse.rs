//! What made things worse, or could not be done: taken back, recorded, followed up.

use agents_domain::decision::DecisionType;
use agents_domain::diagnostics::Severity;
use serde_json::json;

use crate::world::*;

// The fake server whose fix breaks the code: rolled back, recorded (DEC-001: error_recovery).
#[test]
fn a_fix_that_breaks_the_syntax_is_taken_back_and_recorded() {
    let mut engine = engine(
        &[("a.py", "x = bad\n"), ("b.py", "import os\n")],
        vec![server("local/broken", ".py", word("BAD", Severity::Error, "bad", "(")), ruff()],
    );
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "x = bad\n");
    assert_eq!(engine.world.text("b.py"), "", "the other group goes on");
    let recovery = engine.draft("recovery/local/repo/local/broken/BAD");
    assert_eq!(recovery.decision_type, DecisionType::ErrorRecovery);
    assert_eq!(recovery.alternatives[recovery.chosen].option, "Rolled back");
    assert_eq!(recovery.parent.as_deref(), Some("fix/local/repo/local/broken/BAD"));
    assert!(recovery.question.contains("(syntax)"), "{}", recovery.question);
    assert_eq!(recovery.resources[0].path, "a.py");
    assert!(engine.log.contains(&"undo fix/local/repo/local/broken/BAD".to_owned()));
    assert!(!engine.log.contains(&"checkpoint fix/local/repo/local/broken/BAD".to_owned()));
    assert_eq!(done.facts["rolled_back"], 1);
    assert_eq!(done.headline, "Fixed 1 of 2 findings in 1 file: 1 left, 1 kind rolled back");
}

#[test]
fn a_new_error_of_any_server_in_any_file_takes_the_fix_back() {
    // The checker finds an error in each file that imports a name that `lib.py` does not have.
    let checker = server("local/checker", ".py", |files, path| {
        let uses = files[path].starts_with("from lib import old");
        let broken = uses && !files["lib.py"].contains("old");
        let found = diagnostic("missing", Severity::Error, 0, (16, 19), "lib has no `old`");
        if broken { vec![(found, Vec::new())] } else { Vec::new() }
    });
    let lint = server("local/lint", ".py", |files, path| {
        let at = lines(files, path).into_iter().filter(|(_, line)| line.starts_with("old"));
        at.map(|(line, _)| {
            let fix = vec![in_file(path, vec![edit((line, 0), (line + 1, 0), "")])];
            let found = diagnostic("UNUSED", Severity::Warning, line, (0, 3), "`old` is not used");
            (found, vec![offer("Remove it", true, fix)])
        })
        .collect()
    });
    // `user.py` is clean before: it is looked at because it mentions `lib`.
    let mut engine =
        engine(&[("lib.py", "old = 1\n"), ("user.py", "from lib import old\n")], vec![checker, lint]);
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("lib.py"), "old = 1\n");
    assert_eq!(done.facts["rolled_back"], 1);
    let recovery = engine.draft("recovery/local/repo/local/lint/UNUSED");
    assert!(
        recovery.rationale.contains("user.py:1: lib has no `old` (missing from local/checker)"),
        "{}",
        recovery.rationale
    );
}

#[test]
fn an_error_that_was_there_before_is_not_held_against_a_fix() {
    let mut engine = engine(
        &[("a.py", "import os\nbroken = error\n")],
        vec![
            ruff(),
            server("local/c", ".py", |files, path| {
                let at = lines(files, path).into_iter().filter(|(_, line)| line.contains("error"));
                at.map(|(line, _)| (diagnostic("E", Severity::Error, line, (0, 1), "an error"), Vec::new()))
                    .collect()
            }),
        ],
    );
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "broken = error\n");
    assert_eq!(done.headline, "Fixed 1 of 2 findings in 1 file: 1 left");
}

// Ruling 28: new warnings become follow-up decisions.
#[test]
fn a_new_warning_becomes_a_follow_up() {
    let warn = server("local/w", ".py", |files, path| {
        let empty = files[path].trim().is_empty();
        let found = diagnostic("EMPTY", Severity::Warning, 0, (0, 0), "the file is empty");
        if empty { vec![(found, Vec::new())] } else { Vec::new() }
    });
    let mut engine = engine(&[("a.py", "import os\n")], vec![ruff(), warn]);
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "");
    let follow_up = engine.draft("follow-up/local/repo/local/ruff/F401");
    assert_eq!(follow_up.decision_type, DecisionType::ImplementationChoice);
    assert_eq!(
        (engine.chosen("follow-up/local/repo/local/ruff/F401").as_str(), follow_up.confidence),
        ("Leave alone", Some(1.0))
    );
    assert_eq!(done.facts["follow_ups"][0]["path"], "a.py");
    assert_eq!(done.facts["follow_ups"][0]["rule"], "EMPTY");
}

#[test]
fn a_new_warning_that_a_later_group_fixes_is_no_follow_up() {
    // Fixing `one` brings `two`, which has a group of its own.
    let servers = vec![
        server("local/a", ".txt", word("ONE", Severity::Warning, "one", "two")),
        server("local/b", ".txt", word("TWO", Severity::Hint, "two", "three")),
    ];
    let mut engine = engine(&[("a.txt", "one\n"), ("b.txt", "two\n")], servers);
    let (_, done) = engine.both();
    assert_eq!(
        (engine.world.text("a.txt").as_str(), engine.world.text("b.txt").as_str()),
        ("three\n", "three\n")
    );
    assert_eq!(done.facts["follow_ups"], json!([]));
}

#[test]
fn edits_that_the_tool_refuses_are_recorded_and_the_next_group_goes_on() {
    let mut engine = engine(
        &[("a.txt", "one two\n")],
        vec![
            server("local/a", ".txt", word("ONE", Severity::Error, "one", "1")),
            server("local/b", ".txt", word("TWO", Severity::Hint, "two", "2")),
        ],
    );
    engine.fail = Some("tool fix/local/repo/local/a/ONE".to_owned());
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.txt"), "one 2\n");
    let recovery = engine.draft("recovery/local/repo/local/a/ONE");
    assert!(recovery.question.contains("refused by the test"), "{}", recovery.question);
    assert_eq!(done.facts["groups"][0]["outcome"], "failed");
}

#[test]
fn a_later_round_that_the_tool_refuses_keeps_the_earlier_ones() {
    let mut engine = engine(&[("a.py", "import a, b, c\n")], vec![ruff()]);
    engine.fail = Some("tool fix/local/repo/local/ruff/F401/round-2".to_owned());
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "import c\n");
    assert!(engine.log.contains(&"checkpoint fix/local/repo/local/ruff/F401".to_owned()));
    assert_eq!(done.facts["fixed"], 2);
    assert!(done.lines[0].contains("its last edits could not be applied"), "{:?}", done.lines);
}

#[test]
fn a_fix_that_cannot_be_taken_back_is_said_and_not_held_against_the_next() {
    let mut engine = engine(
        &[("a.py", "x = bad\nimport os\n")],
        vec![
            server("local/broken", ".py", |files, path| {
                let mut found = word("BAD", Severity::Error, "bad", "worse")(files, path);
                let at = lines(files, path).into_iter().filter(|(_, line)| line.contains("worse"));
                found.extend(at.map(|(line, _)| {
                    (diagnostic("WORSE", Severity::Error, line, (0, 1), "worse"), Vec::new())
                }));
                found
            }),
            ruff(),
        ],
    );
    engine.fail = Some("undo ".to_owned());
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "x = worse\n");
    assert_eq!(done.facts["groups"][0]["outcome"], "failed");
    assert_eq!(done.facts["groups"][1]["outcome"], "applied");
    assert!(done.lines[0].contains("could not be taken back: refused by the test"), "{:?}", done.lines);
}
