//! kill -9 between any two steps: nothing is lost, nothing happens twice.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use agents_sandbox::apply::{self, ApplyMode, Resumed};
use agents_sandbox::{Removal, Repository, Snapshot, Worktree, cleanup, fault, snapshot};

use crate::support::*;

/// What a killed child was doing; it runs this same binary.
#[test]
#[ignore = "started by the other tests of this file"]
fn child() {
    isolate();
    let variable = |name: &str| std::env::var(name).unwrap();
    let repository = Repository::reopen(Path::new(&variable("CHILD_REPO"))).unwrap();
    let dir = variable("CHILD_DIR");
    let dir = Path::new(&dir);
    let base: Snapshot = serde_json::from_str(&variable("CHILD_SNAPSHOT")).unwrap();
    match variable("CHILD_DOES").as_str() {
        "create" => drop(Worktree::create(&repository, &base, dir, &[]).unwrap()),
        "checkpoint" => {
            let worktree = Worktree::open(&repository, dir).unwrap();
            worktree.checkpoint("second", &["a.py", "new.py", "src/b.py"]).unwrap();
        }
        "edit" => {
            let worktree = Worktree::open(&repository, dir).unwrap();
            let text = || "x\n".to_owned();
            let create =
                |path: &str| agents_domain::text::FileEdit::Create { path: path.into(), text: text() };
            worktree.apply_edits(&[create("one.py"), create("two.py")]).unwrap();
        }
        "restore" => Worktree::open(&repository, dir).unwrap().restore(&base.commit).unwrap(),
        "apply" | "apply-no-commit" => {
            let no_commit = variable("CHILD_DOES").ends_with("no-commit");
            let mode = if no_commit { ApplyMode::NoCommit } else { ApplyMode::Commit };
            let worktree = Worktree::open(&repository, dir).unwrap();
            let sandbox = Sandbox { repository, snapshot: base, worktree };
            sandbox.apply(Path::new(&variable("CHILD_JOURNAL")), mode).unwrap();
        }
        other => panic!("{other}"),
    }
}

/// Runs a child that dies at a fault point; `false` when it got by.
fn killed(fixture: &Fixture, base: &Snapshot, does: &str, point: &str) -> bool {
    killed_in(&fixture.repo, fixture, base, does, point)
}

/// [`killed`] in the repository that is opened from a place.
pub fn killed_in(place: &Path, fixture: &Fixture, base: &Snapshot, does: &str, point: &str) -> bool {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::child", "--ignored", "--test-threads=1"])
        .env("AGENTS_FAULT", point)
        .env("CHILD_DOES", does)
        .env("CHILD_REPO", place)
        .env("CHILD_DIR", fixture.sandbox_dir())
        .env("CHILD_JOURNAL", fixture.journal())
        .env("CHILD_SNAPSHOT", serde_json::to_string(base).unwrap())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() || status.signal() == Some(9), "{does} at {point}: {status}");
    status.signal() == Some(9)
}

pub fn points(prefix: &str) -> Vec<&'static str> {
    let points: Vec<_> = fault::POINTS.iter().copied().filter(|point| point.starts_with(prefix)).collect();
    assert!(!points.is_empty());
    points
}

/// A checkout with changes of the user's in every layer, and a plan that touches some of the same files.
fn dirty_fixture(detached: bool) -> (Fixture, Sandbox) {
    let fixture = Fixture::new();
    if detached {
        fixture.git(&["checkout", "-q", "--detach"]);
    }
    fixture.write("a.py", lines(20).replace("line 18\n", "staged\n"));
    fixture.git(&["add", "a.py"]);
    fixture.write("a.py", lines(20).replace("line 18\n", "staged\n").replace("line 11\n", "unstaged\n"));
    fixture.write("mine.py", "mine\n");
    let sandbox = fixture.sandbox();
    let text = String::from_utf8(sandbox.worktree.read("a.py").unwrap()).unwrap();
    sandbox.change(&[("a.py", &text.replace("line 3\n", "three\n")), ("new/x.py", "x\n")]);
    sandbox.worktree.delete("src/b.py").unwrap();
    sandbox.worktree.checkpoint("gone", &["src/b.py"]).unwrap();
    (fixture, sandbox)
}

#[test]
fn an_apply_killed_anywhere_is_finished_or_undone_exactly() {
    for (does, detached) in [("apply", false), ("apply", true), ("apply-no-commit", false)] {
        // What it looks like when nobody interferes.
        let (untouched, sandbox) = dirty_fixture(detached);
        let mode = if does == "apply" { ApplyMode::Commit } else { ApplyMode::NoCommit };
        let before = untouched.state();
        sandbox.apply(&untouched.journal(), mode).unwrap();
        let after = untouched.state();
        assert_ne!(before.files, after.files);
        let (mut finished, mut undone) = (0, 0);
        for point in points("apply.") {
            let (fixture, sandbox) = dirty_fixture(detached);
            let initial = fixture.state();
            if !killed(&fixture, &sandbox.snapshot, does, point) {
                assert!(
                    does == "apply-no-commit"
                        && ["apply.before-ref", "apply.after-ref", "apply.after-head"].contains(&point),
                    "{does} passed {point}"
                );
                continue;
            }
            match apply::resume_or_undo(&fixture.journal()).unwrap() {
                Resumed::Finished(applied) => {
                    finished += 1;
                    assert!(applied.resumed && applied.left_alone.is_empty(), "{point}: {applied:?}");
                    assert_eq!(applied.commit.is_some(), mode == ApplyMode::Commit, "{point}");
                    let state = fixture.state();
                    assert_eq!(state.files, after.files, "{point}");
                    assert_eq!(state.index, after.index, "{point}");
                    assert_eq!(state.status, after.status, "{point}");
                    assert_eq!(state.head, after.head, "{point}");
                    let count = if mode == ApplyMode::Commit { "2" } else { "1" };
                    assert_eq!(fixture.git(&["rev-list", "--count", "HEAD"]), count, "{point}");
                    // Told again, it is still the same one apply.
                    assert!(matches!(
                        apply::resume_or_undo(&fixture.journal()).unwrap(),
                        Resumed::Finished(_)
                    ));
                    apply::forget(&fixture.journal()).unwrap();
                }
                Resumed::Undone { left_alone, .. } => {
                    undone += 1;
                    assert_eq!(left_alone, Vec::<String>::new(), "{point}");
                    assert_eq!(fixture.state(), initial, "{point}");
                }
                Resumed::Nothing => {
                    undone += 1;
                    assert_eq!(fixture.state(), initial, "{point}");
                }
            }
            assert!(!fixture.path(".git/index.lock").exists(), "{point}");
            assert!(!fixture.path(".git/cleveragents").exists(), "{point}");
            // What was undone can be applied; what was finished has nothing left to do.
            if !matches!(apply::resume_or_undo(&fixture.journal()).unwrap(), Resumed::Nothing) {
                panic!("{point}: the journal is still there");
            }
        }
        assert!(finished >= 7 && undone >= 5, "{does}: {finished} finished, {undone} undone");
    }
}

#[test]
fn a_killed_apply_never_overwrites_what_a_person_did_meanwhile() {
    let (fixture, sandbox) = dirty_fixture(false);
    assert!(killed(&fixture, &sandbox.snapshot, "apply", "apply.before-ref"));
    fixture.write("new/x.py", "a person's\n");
    match apply::resume_or_undo(&fixture.journal()).unwrap() {
        Resumed::Undone { reason, left_alone } => {
            assert!(reason.contains("new/x.py"), "{reason}");
            assert_eq!(left_alone, ["new/x.py"]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fixture.read("new/x.py"), "a person's\n");
    assert_eq!(fixture.read("src/b.py"), "b = 1\n");
    assert_eq!(fixture.git(&["rev-list", "--count", "HEAD"]), "1");
}

#[test]
fn a_killed_apply_gives_way_to_commits_made_meanwhile() {
    let (fixture, sandbox) = dirty_fixture(false);
    assert!(killed(&fixture, &sandbox.snapshot, "apply", "apply.before-ref"));
    // A person who finds the lock removes it and commits everything, the plan's files included.
    std::fs::remove_file(fixture.path(".git/index.lock")).unwrap();
    fixture.commit("everything");
    let files = fixture.state().files;
    match apply::resume_or_undo(&fixture.journal()).unwrap() {
        Resumed::Undone { left_alone, .. } => assert_eq!(left_alone, ["a.py", "new/x.py"]),
        other => panic!("{other:?}"),
    }
    let mut expected = files;
    // The deletion was committed as well, but nothing of a person's would be lost by bringing the file back.
    expected.insert("src/b.py".into(), b"b = 1\n".to_vec());
    assert_eq!(fixture.state().files, expected);
}

#[test]
fn a_checkpoint_killed_anywhere_leaves_the_last_one_or_the_new_one() {
    // CKPT-016.
    for point in points("checkpoint.") {
        let fixture = Fixture::new();
        let sandbox = fixture.sandbox();
        let first = sandbox.change(&[("a.py", "one\n")]);
        sandbox.worktree.write_file("a.py", b"two\n").unwrap();
        sandbox.worktree.write_file("new.py", b"new\n").unwrap();
        sandbox.worktree.delete("src/b.py").unwrap();
        let files = tree(sandbox.worktree.path());
        assert!(killed(&fixture, &sandbox.snapshot, "checkpoint", point), "{point}");
        let worktree =
            Worktree::create(&sandbox.repository, &sandbox.snapshot, &fixture.sandbox_dir(), &[]).unwrap();
        assert_eq!(tree(worktree.path()), files, "{point}");
        let done = worktree.head().unwrap() != first;
        assert_eq!(done, point == "checkpoint.after-ref", "{point}");
        let dirty = worktree.dirty_paths().unwrap();
        assert_eq!(dirty.is_empty(), done, "{point}: {dirty:?}");
        let second = worktree.checkpoint("second", &["a.py", "new.py", "src/b.py"]).unwrap();
        assert_eq!(fixture.git(&["rev-parse", &format!("{second}^")]), first.as_str(), "{point}");
        worktree.restore(&first).unwrap();
        assert_eq!(worktree.read("a.py").unwrap(), b"one\n", "{point}");
        worktree.restore(&second).unwrap();
        assert_eq!(tree(worktree.path()), files, "{point}");
    }
}

#[test]
fn a_restore_killed_anywhere_can_be_done_again() {
    // CKPT-009.
    for point in points("restore.") {
        let fixture = Fixture::new();
        let sandbox = fixture.sandbox();
        let base = tree(sandbox.worktree.path());
        let first = sandbox.change(&[("a.py", "one\n"), ("new.py", "new\n")]);
        sandbox.worktree.write_file("stray.py", b"stray\n").unwrap();
        assert!(killed(&fixture, &sandbox.snapshot, "restore", point), "{point}");
        let worktree = Worktree::open(&sandbox.repository, &fixture.sandbox_dir()).unwrap();
        worktree.recover().unwrap();
        let head = worktree.head().unwrap();
        assert_eq!(head == first, point != "restore.after-ref", "{point}");
        worktree.restore(&sandbox.snapshot.commit).unwrap();
        assert_eq!(tree(worktree.path()), base, "{point}");
        assert!(worktree.is_clean_since(&sandbox.snapshot.commit).unwrap());
    }
}

#[test]
fn edits_killed_half_way_are_seen_and_dropped() {
    for point in points("edits.") {
        let fixture = Fixture::new();
        let sandbox = fixture.sandbox();
        assert!(killed(&fixture, &sandbox.snapshot, "edit", point), "{point}");
        let recovery = sandbox.worktree.recover().unwrap();
        assert_eq!(recovery.dirty.is_empty(), point == "edits.before-write", "{point}: {recovery:?}");
        sandbox.worktree.restore(&sandbox.snapshot.commit).unwrap();
        assert_eq!(tree(sandbox.worktree.path()), tree(&fixture.repo), "{point}");
    }
}

#[test]
fn a_sandbox_whose_making_was_killed_is_made_anew() {
    // SBX-004.
    for point in points("worktree.") {
        let fixture = Fixture::new();
        let repository = fixture.open();
        let base = snapshot(&repository, plan()).unwrap();
        assert!(killed(&fixture, &base, "create", point), "{point}");
        assert!(Worktree::open(&repository, &fixture.sandbox_dir()).is_err(), "{point}");
        let worktree = Worktree::create(&repository, &base, &fixture.sandbox_dir(), &[]).unwrap();
        assert_eq!(tree(worktree.path()), tree(&fixture.repo), "{point}");
        assert_eq!(fixture.git(&["worktree", "list"]).lines().count(), 2, "{point}");
        cleanup(&repository, plan(), Removal::IfClean).unwrap();
    }
}
