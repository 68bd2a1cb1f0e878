//! What is done about the decisions that stand, and what is taken back.

use agents_domain::decision::DecisionType;
use agents_domain::diagnostics::Severity;
use agents_domain::plan::{AwaitingKind, Phase};
use agents_domain::text::FileEdit;
use serde_json::json;

use crate::world::*;

fn engine(files: &[(&str, &str)], servers: Vec<Server>) -> Engine {
    Engine::new(World::new(files, servers))
}

fn ruff() -> Server {
    server("local/ruff", ".py", unused_imports)
}

const FIX_F401: &str = "fix/local/repo/local/ruff/F401";

// DEC-013, DEC-014, DEC-016, ruling 28
#[test]
fn what_was_decided_is_applied_recorded_and_checkpointed() {
    let mut engine =
        engine(&[("a.py", "import os\nimport sys\nsys.exit()\n"), ("b.py", "import re\n")], vec![ruff()]);
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "import sys\nsys.exit()\n");
    assert_eq!(engine.world.text("b.py"), "");
    assert_eq!(
        engine.log,
        [
            "decide strategy/local/repo/local/ruff/F401",
            "decide fix/local/repo/local/ruff/F401",
            "tool fix/local/repo/local/ruff/F401/round-1",
            "checkpoint fix/local/repo/local/ruff/F401",
        ]
    );
    insta::assert_json_snapshot!("implementation_choice", engine.draft(FIX_F401));
    insta::assert_json_snapshot!("summary_of_an_execution", done);
}

// Ruling 28: ruff's fixes of several names of one import overlap, and break the statement when all are taken at once.
#[test]
fn names_of_one_import_go_over_several_rounds() {
    for names in ["a, b", "a, b, c", "a, b, c, d, e"] {
        let mut engine = engine(&[("a.py", &format!("import {names}\n"))], vec![ruff()]);
        let (_, done) = engine.both();
        assert_eq!(engine.world.text("a.py"), "", "{names}");
        assert_eq!(done.facts["rolled_back"], 0);
        assert!(engine.log.iter().filter(|entry| entry.starts_with("tool ")).count() > 1, "{:?}", engine.log);
        assert_eq!(engine.log.iter().filter(|entry| entry.starts_with("checkpoint ")).count(), 1);
    }
}

// Each line of a parenthesised import is its own edit: none overlaps, all together leave `import (`.
#[test]
fn edits_that_break_the_syntax_only_together_are_not_made_together() {
    let lint = |files: &Files, path: &str| -> Vec<Found> {
        let text = &files[path];
        if text.starts_with("from m import (\n    a,\n)") || text.starts_with("from m import (\n    b,\n)") {
            let whole = vec![in_file(path, vec![edit((0, 0), (3, 0), "")])];
            let found = diagnostic("F401", Severity::Warning, 1, (4, 5), "`m` imported but unused");
            return vec![(found, vec![offer("Remove unused import", true, whole)])];
        }
        let at = lines(files, path).into_iter().filter(|(_, line)| line.starts_with("    "));
        at.map(|(line, name)| {
            let found = diagnostic("F401", Severity::Warning, line, (4, 5), &format!("`{name}` unused"));
            let own = vec![in_file(path, vec![edit((line, 0), (line + 1, 0), "")])];
            (found, vec![offer("Remove unused import", true, own)])
        })
        .collect()
    };
    let text = "from m import (\n    a,\n    b,\n)\nx = 1\n";
    let mut engine = engine(&[("a.py", text)], vec![server("local/ruff", ".py", lint)]);
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "x = 1\n");
    assert_eq!(done.facts["fixed"], 2);
    assert_eq!(done.facts["rolled_back"], 0);
}

#[test]
fn rounds_end_after_five_and_what_is_left_is_said() {
    let lint = |files: &Files, path: &str| -> Vec<Found> {
        let text = &files[path];
        let fix = |n: usize| {
            vec![in_file(path, vec![edit((0, 0), (0, text.len() as u32), &text[..text.len() - n])])]
        };
        let found = |n: usize| diagnostic("LONG", Severity::Warning, 0, (0, n as u32), "too long");
        (1..=text.len()).map(|n| (found(n), vec![offer("Shorten", true, fix(1))])).collect()
    };
    let mut engine = engine(&[("a.txt", "xxxxxxxx")], vec![server("local/s", ".txt", lint)]);
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.txt"), "xxx");
    assert_eq!(done.headline, "Fixed 5 of 8 findings in 1 file: 3 left");
    assert_eq!(done.facts["groups"][0]["rounds"], 5);
}

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

// typescript: a fix that edits another file, and characters outside the BMP before the edit.
#[test]
fn a_fix_that_edits_another_file_is_applied_there() {
    let lint = |files: &Files, path: &str| -> Vec<Found> {
        let hidden = path == "a.ts" && !files["b.ts"].contains("export const");
        let at = files["b.ts"].find("const").unwrap_or(0) as u32;
        let fix = vec![in_file("b.ts", vec![edit((0, at), (0, at), "export ")])];
        let found = diagnostic("2459", Severity::Error, 0, (9, 15), "hidden is not exported");
        if hidden {
            vec![(found, vec![offer("Export 'hidden' from module './b'", false, fix)])]
        } else {
            Vec::new()
        }
    };
    let files = [("a.ts", "import { hidden } from './b';\n"), ("b.ts", "/* 😀𝒳 */ const hidden = 1;\n")];
    let mut engine = engine(&files, vec![server("local/ts", ".ts", lint)]);
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("b.ts"), "/* 😀𝒳 */ export const hidden = 1;\n");
    assert_eq!(done.facts["files_changed"], json!(["b.ts"]));
    let key = "fix/local/repo/local/ts/2459";
    assert_eq!(
        engine.options(key),
        ["Apply all of it", "Apply only what stays in the findings' own files", "Leave alone"]
    );
    assert_eq!(engine.draft(key).confidence, Some(0.85));
}

#[test]
fn a_fix_that_makes_and_moves_files_is_applied_whole() {
    let lint = |files: &Files, path: &str| -> Vec<Found> {
        if path != "a.txt" || !files["a.txt"].contains("split") {
            return Vec::new();
        }
        let fix = vec![
            FileEdit::Create { path: "new.txt".to_owned(), text: "moved\n".to_owned() },
            FileEdit::Rename { path: "old.txt".to_owned(), to: "renamed.txt".to_owned() },
            in_file("a.txt", vec![edit((0, 0), (1, 0), "")]),
        ];
        let found = diagnostic("SPLIT", Severity::Warning, 0, (0, 5), "split this");
        vec![(found.clone(), vec![offer("Split", true, fix.clone())])]
    };
    let files = [("a.txt", "split\nrest\n"), ("old.txt", "old\n")];
    let mut engine = engine(&files, vec![server("local/s", ".txt", lint)]);
    let (_, done) = engine.both();
    let files: Vec<String> = engine.world.files.lock().unwrap().keys().cloned().collect();
    assert_eq!(files, ["a.txt", "new.txt", "renamed.txt"]);
    assert_eq!(done.facts["fixed"], 1);
}

#[test]
fn a_fix_that_does_not_help_is_not_tried_again_and_again() {
    let lint = |files: &Files, path: &str| -> Vec<Found> {
        let fix = vec![in_file(path, vec![edit((0, 0), (0, 0), "!")])];
        let found = diagnostic("LOUD", Severity::Warning, 0, (0, 1), "not loud enough");
        if files[path].is_empty() { Vec::new() } else { vec![(found, vec![offer("Shout", true, fix)])] }
    };
    let mut engine = engine(&[("a.txt", "x")], vec![server("local/s", ".txt", lint)]);
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.txt"), "!x");
    assert_eq!(done.facts["groups"][0]["did_not_help"], 1);
    assert!(done.lines[0].contains("for 1 the fix did not help"), "{:?}", done.lines);
}

fn answering(files: &[(&str, &str)], servers: Vec<Server>, answer: &'static str) -> Engine {
    let mut engine = engine(files, servers);
    engine.answer = Box::new(move |draft| draft.key.starts_with("strategy/").then(|| answer.to_owned()));
    engine
}

// PLAN-012 and `plan prompt`: number, text, words.
#[test]
fn a_persons_answer_is_followed() {
    let table = [
        ("1", "", 1, 0),
        ("Leave alone", "import os\n", 0, 0),
        ("2", "import os\n", 0, 0),
        ("3", "import os  # noqa: F401\n", 0, 1),
        ("disable for this line", "import os  # noqa: F401\n", 0, 1),
        ("ask my colleague first", "import os\n", 0, 0),
        ("do not remove unused import", "import os\n", 0, 0),
    ];
    for (answer, text, fixed, suppressed) in table {
        let mut engine = answering(&[("a.py", "import os\n")], vec![ruff()], answer);
        let (_, done) = engine.both();
        assert_eq!(engine.world.text("a.py"), text, "{answer}");
        assert_eq!(
            (&done.facts["fixed"], &done.facts["suppressed"]),
            (&json!(fixed), &json!(suppressed)),
            "{answer}"
        );
    }
}

#[test]
fn words_that_mean_no_option_are_said_to_mean_none() {
    let mut engine = answering(&[("a.py", "import os\n")], vec![ruff()], "ask my colleague first");
    let (strategy, done) = engine.both();
    assert!(strategy.lines[0].ends_with("left alone: “ask my colleague first” names none of its options"));
    assert!(done.lines[0].contains("“ask my colleague first” names none of its options"), "{:?}", done.lines);
    assert_eq!(engine.drafts.len(), 1, "nothing is decided about applying it");
}

#[test]
fn how_it_is_applied_can_be_answered_too() {
    let table = [
        ("Apply all of it", "", 1),
        ("one round only", "import e\n", 1),
        ("leave alone", "import a, b, c, d, e\n", 0),
        ("hm", "import a, b, c, d, e\n", 0),
    ];
    for (answer, text, checkpoints) in table {
        let mut engine = engine(&[("a.py", "import a, b, c, d, e\n")], vec![ruff()]);
        engine.answer = Box::new(move |draft| draft.key.starts_with("fix/").then(|| answer.to_owned()));
        engine.both();
        assert_eq!(engine.world.text("a.py"), text, "{answer}");
        let made = engine.log.iter().filter(|entry| entry.starts_with("checkpoint")).count();
        assert_eq!(made, checkpoints, "{answer}");
    }
}

#[test]
fn fixes_in_other_files_can_be_left_out() {
    let lint = |files: &Files, path: &str| -> Vec<Found> {
        let at = lines(files, path).into_iter().filter(|(_, line)| line.starts_with('x'));
        at.map(|(line, content)| {
            let target = if content == "x other" { "b.txt" } else { "a.txt" };
            let at = if target == "a.txt" { line } else { 0 };
            let fix = vec![in_file(target, vec![edit((at, 0), (at, 1), "y")])];
            (diagnostic("X", Severity::Warning, line, (0, 1), &content), vec![offer("Fix", true, fix)])
        })
        .collect()
    };
    let files = [("a.txt", "x own\nx other\n"), ("b.txt", "bbb\n")];
    let mut engine = engine(&files, vec![server("local/s", ".txt", lint)]);
    engine.answer = Box::new(|draft| draft.key.starts_with("fix/").then(|| "2".to_owned()));
    engine.both();
    assert_eq!(engine.world.text("a.txt"), "y own\nx other\n");
    assert_eq!(engine.world.text("b.txt"), "bbb\n");
}

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
            engine.asked[0].1.contains("local/ruff does not answer for any of the 1 file with F401"),
            "{}",
            engine.asked[0].1
        );
        assert_eq!(done.facts["groups"][0]["outcome"], outcome);
        assert_eq!(done.headline, "None of 1 finding fixed: 1 not checked");
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
fn a_file_that_a_fix_removes_is_not_missed_afterwards() {
    let lint = |files: &Files, path: &str| -> Vec<Found> {
        let fix = vec![FileEdit::Delete { path: path.to_owned() }];
        let found = diagnostic("EMPTY", Severity::Warning, 0, (0, 0), "an empty file");
        let empty = files[path].is_empty();
        if empty { vec![(found, vec![offer("Delete it", true, fix)])] } else { Vec::new() }
    };
    let servers = vec![server("local/a", ".py", lint), ruff()];
    let mut engine = engine(&[("a.py", ""), ("b.py", "import os\n")], servers);
    let (_, done) = engine.both();
    assert!(!engine.world.files.lock().unwrap().contains_key("a.py"));
    // Emptied by the second group, and not looked at by the first any more.
    assert_eq!(engine.world.text("b.py"), "");
    assert_eq!(done.facts["not_verified"], 0);
    assert_eq!(done.facts["groups"][0]["unverified_files"], json!({}));
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
    assert_eq!(done.headline, "Fixed 1 of 1 finding in 1 file");
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

#[test]
fn findings_that_another_group_took_along_are_gone() {
    let again = server("local/again", ".py", |files, path| {
        unused_imports(files, path)
            .into_iter()
            .map(|(mut found, offers)| {
                found.code = Some("W0611".to_owned());
                found.severity = Severity::Hint;
                (found, offers)
            })
            .collect()
    });
    let mut engine = engine(&[("a.py", "import os\n")], vec![ruff(), again]);
    let (_, done) = engine.both();
    assert_eq!(done.headline, "Fixed 2 of 2 findings in 1 file");
    assert_eq!(done.facts["groups"][1]["outcome"], "gone");
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

#[test]
fn execute_without_a_strategy_is_refused() {
    let mut engine = engine(&[], Vec::new());
    assert_eq!(engine.run(Phase::Execute).unwrap_err().category, "internal");
    engine.handover = json!({"version": 99});
    assert!(engine.run(Phase::Execute).is_err());
}

#[test]
fn two_thousand_files_are_done_in_a_sane_time_and_a_small_state() {
    let files: Vec<(String, String)> =
        (0..2000).map(|n| (format!("pkg/m{n:04}.py"), format!("import os\nx{n} = {n}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut engine = engine(&files, vec![ruff()]);
    let (_, done) = engine.both();
    assert_eq!(done.headline, "Fixed 2000 of 2000 findings in 2000 files");
    let asked = engine.world.languages.asked.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(asked, 2000 * 4, "once to find, once to fix, once to check, once at the end");
    assert!(engine.handover.to_string().len() < 2000 * 400);
}
