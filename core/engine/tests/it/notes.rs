//! Decisions behind lines in a clone that has no database of ours: notes, trailers, renames, rebases.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_domain::ports::actor::Actor;
use agents_engine::operations::system::share_notes;
use serde_json::{Value, json};

use crate::harness::{Bench, git};
use crate::lifecycle::{decision, done, edit};

const TEXT: &str = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// A repository with one plan applied: lines 4 and 5 (counted from 0) by one decision, line 8 by another.
fn applied() -> (Bench, String) {
    let script = json!({
        "strategize": [
            { "requests": [decision("strategy/x", "strategy_choice", Value::Null, 0.7)] },
            { "outcome": done("decided") },
        ],
        "execute": [
            { "requests": [
                decision("impl/x", "implementation_choice", json!("strategy/x"), 0.9),
                edit("1", "impl/x", "a.txt", 4, "FOUR\n"),
                edit("2", "impl/x", "a.txt", 5, "FIVE\n"),
                decision("impl/y", "implementation_choice", json!("strategy/x"), 0.8),
                edit("3", "impl/y", "a.txt", 8, "EIGHT\n"),
            ] },
            { "outcome": done("did it") },
        ],
    });
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(script));
    let bench = Bench::new(&[("a.txt", TEXT)], &[("test/scripted", actor)]);
    bench.action("local/act", "test/scripted", "test/scripted", "");
    let plan = bench.plan("local/act", "full-auto");
    for verb in ["plan/execute", "plan/apply"] {
        if bench.at(&plan) != "apply/applied" {
            let _ = bench.engine.call_json(verb, json!({ "plan": plan }));
            bench.work(&plan);
        }
    }
    assert_eq!(bench.at(&plan), "apply/applied");
    (bench, plan)
}

fn clone(from: &Path, name: &str) -> PathBuf {
    let to = from.parent().unwrap().join(name);
    git(from, &["clone", "-q", "--no-local", &from.display().to_string(), &to.display().to_string()]);
    to
}

/// First line, last line, question of each place.
fn places(found: &Value) -> Vec<(u64, u64, String)> {
    let of = |s: &Value| {
        let number = |key: &str| s[key].as_u64().unwrap();
        (number("start_line"), number("end_line"), s["question"].as_str().unwrap().to_owned())
    };
    found["segments"].as_array().unwrap().iter().map(of).collect()
}

fn expected(shift: u64) -> Vec<(u64, u64, String)> {
    vec![
        (5 + shift, 6 + shift, "How about impl/x?".to_owned()),
        (9 + shift, 9 + shift, "How about impl/y?".to_owned()),
    ]
}

#[test]
fn a_note_tells_the_plan_the_decisions_and_their_lines() {
    let (bench, plan) = applied();
    let note: Value =
        serde_json::from_str(&git(&bench.repo(), &["notes", "--ref=cleveragents", "show"])).unwrap();
    assert_eq!(
        (&note["version"], &note["plan"], &note["action"]),
        (&json!(1), &json!(plan), &json!("local/act"))
    );
    let x =
        note["decisions"].as_array().unwrap().iter().find(|d| d["question"] == "How about impl/x?").unwrap();
    assert_eq!(
        (&x["type"], &x["chosen"], &x["confidence"]),
        (&json!("implementation_choice"), &json!("Fix it"), &json!(0.9))
    );
    assert_eq!(x["alternatives"].as_array().unwrap().len(), 2);
    let strategy =
        note["decisions"].as_array().unwrap().iter().find(|d| d["id"] == x["carries_out"]).unwrap();
    assert_eq!(strategy["question"], "How about strategy/x?");
    assert_eq!(note["files"][0]["path"], "a.txt");
    assert_eq!(note["files"][0]["lines"][0], json!({ "start": 5, "end": 6, "decision": x["id"] }));
    let blob = git(&bench.repo(), &["rev-parse", "HEAD:a.txt"]);
    assert_eq!(note["files"][0]["blob"], blob);
}

#[test]
fn a_clone_answers_from_notes_through_fetch_rename_later_edits_and_rebase() {
    let (bench, plan) = applied();
    let there = clone(&bench.repo(), "clone");
    // Another machine: a database that knows nothing of this.
    let other = Bench::new(&[("x", "x\n")], &[]);
    let ask = |file: &Path, text: Option<&str>| {
        other.ok("plan/blame", json!({ "file": file.canonicalize().unwrap(), "text": text }))
    };
    let before = ask(&there.join("a.txt"), None);
    assert_eq!(places(&before), []);
    let warning = before["warnings"][0].as_str().unwrap();
    assert!(warning.contains(&plan) && warning.contains("agents init --git-notes"), "{warning}");

    let set = share_notes(&there).unwrap();
    assert_eq!((set.remote.as_deref(), set.settings.len()), (Some("origin"), 5), "{set:?}");
    assert_eq!(share_notes(&there).unwrap().settings, Vec::<String>::new());
    git(&there, &["fetch", "-q"]);
    let found = ask(&there.join("a.txt"), None);
    assert_eq!(places(&found), expected(0));
    assert_eq!(found["segments"][0]["strategy"]["question"], "How about strategy/x?");
    assert_eq!(found["segments"][0]["commit"], git(&there, &["rev-parse", "HEAD"]));

    // Unsaved text, then a later commit that moves the file and its lines.
    let text = std::fs::read_to_string(there.join("a.txt")).unwrap();
    assert_eq!(places(&ask(&there.join("a.txt"), Some(&format!("new\n{text}")))), expected(1));
    git(&there, &["mv", "a.txt", "moved.txt"]);
    std::fs::write(there.join("moved.txt"), format!("top\n{text}")).unwrap();
    git(&there, &["commit", "-qam", "moved"]);
    assert_eq!(places(&ask(&there.join("moved.txt"), None)), expected(1));

    // Everything since the start, on top of another first line.
    git(&there, &["checkout", "-q", "-b", "side", "HEAD~2"]);
    std::fs::write(there.join("a.txt"), format!("side\n{TEXT}")).unwrap();
    git(&there, &["commit", "-qam", "side"]);
    git(&there, &["checkout", "-q", "-B", "main", "origin/main"]);
    git(&there, &["rebase", "-q", "side"]);
    assert_eq!(places(&ask(&there.join("a.txt"), None)), expected(1));

    // A clone of that has neither the old commit nor its content: lines are counted off.
    let further = clone(&there, "further");
    git(
        &further,
        &[
            "fetch",
            "-q",
            &bench.repo().display().to_string(),
            "refs/notes/cleveragents:refs/notes/cleveragents",
        ],
    );
    assert_eq!(places(&ask(&further.join("a.txt"), None)), expected(1));
    // Amended so that the lines no longer tell: said, not guessed.
    let text = std::fs::read_to_string(further.join("a.txt")).unwrap();
    std::fs::write(further.join("a.txt"), text.replace("2\n", "two\n")).unwrap();
    git(&further, &["commit", "-qa", "--amend", "--no-edit"]);
    let unsure = ask(&further.join("a.txt"), None);
    assert_eq!(places(&unsure), []);
    assert!(unsure["warnings"][0].as_str().unwrap().contains("cannot be told"), "{unsure}");
}

#[test]
fn the_database_goes_before_the_note() {
    let (bench, _) = applied();
    let found = bench.ok("plan/blame", json!({ "file": bench.repo().join("a.txt").canonicalize().unwrap() }));
    assert_eq!(places(&found), expected(0));
    assert!(found["segments"][0].get("commit").is_none());
}
