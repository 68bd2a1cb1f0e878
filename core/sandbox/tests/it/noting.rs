//! The git note of an apply: written with the commit, no obstacle when it cannot be, gone with a commit taken back.

use std::fs;

use agents_sandbox::apply::{self, Applied, ApplyError, ApplyMode};

use crate::support::*;

fn applied(fixture: &Fixture, sandbox: &Sandbox, mode: ApplyMode) -> Result<Applied, ApplyError> {
    let result = sandbox.worktree.head().unwrap();
    let planned = apply::preflight(&sandbox.repository, &sandbox.snapshot, &result, mode).unwrap();
    let trailers = [("CleverAgents-Plan".to_owned(), PLAN.to_owned())];
    let note = |commit: &agents_sandbox::CommitId| Some(format!("about {commit}"));
    apply::run_noted(&sandbox.repository, &planned, &fixture.journal(), "Fix", &trailers, &note)
}

const SHOW: [&str; 3] = ["notes", "--ref=cleveragents", "show"];

#[test]
fn a_commit_has_its_note_and_loses_it_when_it_is_taken_back() {
    let fixture = Fixture::new();
    fixture.git(&["notes", "add", "-m", "a person's own note"]);
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "plan\n")]);
    let done = applied(&fixture, &sandbox, ApplyMode::Commit).unwrap();
    let commit = done.commit.unwrap();
    assert_eq!(done.note_problem, None);
    assert_eq!(fixture.git(&SHOW), format!("about {commit}"));
    assert_eq!(fixture.git(&["notes", "list"]).lines().count(), 1, "other notes are left alone");
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    apply::undo(&fixture.journal()).unwrap();
    assert_eq!(fixture.git(&["notes", "--ref=cleveragents", "list"]), "");
}

#[test]
fn a_note_that_cannot_be_written_stops_nothing_and_is_said() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "plan\n")]);
    let lock = git_dir(&fixture.repo).join("refs/notes/cleveragents.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    fs::write(&lock, "").unwrap();
    let done = applied(&fixture, &sandbox, ApplyMode::Commit).unwrap();
    assert!(done.note_problem.is_some());
    assert_eq!(fixture.read("a.py"), "plan\n");
}

#[test]
fn without_a_commit_there_is_no_note() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "plan\n")]);
    let done = applied(&fixture, &sandbox, ApplyMode::NoCommit).unwrap();
    assert_eq!((done.commit, done.note_problem), (None, None));
    assert_eq!(fixture.git(&["for-each-ref", "refs/notes"]), "");
}
