//! What is done about the decisions that stand.

use agents_domain::diagnostics::Severity;
use agents_domain::plan::Phase;
use agents_domain::text::FileEdit;
use serde_json::json;

use crate::world::*;

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

// VALID-018: a validation that fails in a file of a kept fix has that fix taken back, in the name of a decision.
#[test]
fn a_fix_that_a_validation_fails_over_is_taken_back() {
    let mut engine = engine(&[("a.py", "import os\n"), ("b.py", "x = 1\n")], vec![ruff()]);
    engine.failing = vec![failed("a.py")];
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "import os\n");
    assert_eq!(done.facts["rolled_back"], 1);
    let response = engine.draft("response/local/repo/local/ruff/F401/1");
    assert_eq!(response.decision_type.as_str(), "validation_response");
    assert!(response.question.starts_with("local/tests did not pass after the fix"), "{}", response.question);
    assert!(engine.log.contains(&format!("undo {FIX_F401}")), "{:?}", engine.log);
}

#[test]
fn a_validation_that_fails_elsewhere_takes_nothing_back() {
    let mut engine = engine(&[("a.py", "import os\n"), ("b.py", "x = 1\n")], vec![ruff()]);
    engine.failing = vec![failed("b.py")];
    let (_, done) = engine.both();
    assert_eq!(engine.world.text("a.py"), "");
    assert_eq!(done.facts["rolled_back"], 0);
}

fn failed(file: &str) -> agents_domain::validation::ValidationOutcome {
    serde_json::from_value(json!({
        "validation": "local/tests", "mode": "required", "passed": false, "message": "1 of 2 tests failed",
        "data": {}, "error": false, "duration_ms": 1, "attempt": 1, "attachment_id": RESOURCE,
        "attachment_resource": RESOURCE, "attachment_scope": "direct", "fixes": 1, "commits": [],
        "plan_attempt": 1, "finished_at": "2026-02-08T12:44:00Z", "due": true,
        "findings": [{ "file": file, "line": 1, "severity": "error", "message": "boom" }],
    }))
    .unwrap()
}
