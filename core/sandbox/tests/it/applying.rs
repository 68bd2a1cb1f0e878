//! Bringing a plan's changes to the checkout: ruling 27.

use std::fs;

use agents_domain::changes::ChangeKind;
use agents_sandbox::apply::{self, ApplyError, ApplyMode, ApplyRefusal, RefusedWhy, Resumed};

use crate::support::*;

fn edit(line: &str, to: &str) -> String {
    lines(20).replace(&format!("{line}\n"), &format!("{to}\n"))
}

fn refused(refusal: ApplyRefusal) -> Vec<(String, RefusedWhy)> {
    match refusal {
        ApplyRefusal::Refused { files } => files.into_iter().map(|file| (file.path, file.why)).collect(),
        other => panic!("expected refused files, got {other:?}"),
    }
}

#[test]
fn a_plan_on_a_clean_tree_becomes_one_commit_by_the_user() {
    // APP-001, APP-003.
    let fixture = Fixture::new();
    let before = fixture.git(&["rev-parse", "HEAD"]);
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &edit("line 3", "three")), ("new/c.py", "c\n")]);
    sandbox.worktree.rename("src/b.py", "lib/b.py").unwrap();
    let result = sandbox.worktree.checkpoint("moved", &["src/b.py", "lib/b.py"]).unwrap();
    let planned =
        apply::preflight(&sandbox.repository, &sandbox.snapshot, &result, ApplyMode::Commit).unwrap();
    assert_eq!(
        (planned.branch.as_deref(), planned.new_branch, planned.branch_moved),
        (Some("main"), false, false)
    );
    assert_eq!(planned.files.len(), 3);
    assert_eq!(fixture.git(&["rev-parse", "HEAD"]), before, "a preflight changes nothing");

    let applied = sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();

    let commit = applied.commit.clone().unwrap();
    assert_eq!(fixture.git(&["rev-parse", "HEAD"]), commit.as_str());
    assert_eq!(fixture.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(fixture.git(&["rev-parse", "HEAD^"]), before);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(tree(&fixture.repo), tree(sandbox.worktree.path()));
    let show = fixture.git(&["log", "-1", "--format=%an <%ae>%n%B"]);
    assert_eq!(
        show,
        format!("Test Person <person@example.org>\nFix what was found\n\nCleverAgents-Plan: {PLAN}")
    );
    assert_eq!(
        fixture.git(&["log", "-1", "--format=%(trailers:key=CleverAgents-Plan,valueonly)"]).trim(),
        PLAN
    );
    assert!(fixture.git(&["reflog", "-1"]).contains("cleveragents: apply plan"));
    let told: Vec<_> = applied.files.iter().map(|f| (f.path.as_str(), f.kind)).collect();
    assert_eq!(
        told,
        [("a.py", ChangeKind::Modified), ("lib/b.py", ChangeKind::Renamed), ("new/c.py", ChangeKind::Added)]
    );
    assert!(!applied.resumed && applied.left_alone.is_empty());
    assert!(!fixture.path(".git/index.lock").exists() && !fixture.path(".git/cleveragents").exists());
}

#[test]
fn a_finished_apply_is_found_until_it_is_forgotten() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "x\n")]);
    assert_eq!(apply::resume_or_undo(&fixture.journal()).unwrap(), Resumed::Nothing);
    let applied = sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    for _ in 0..2 {
        match apply::resume_or_undo(&fixture.journal()).unwrap() {
            Resumed::Finished(found) => {
                assert_eq!((found.commit, found.resumed), (applied.commit.clone(), true))
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(sandbox.apply(&fixture.journal(), ApplyMode::Commit), Err(ApplyError::Pending)));
    apply::forget(&fixture.journal()).unwrap();
    apply::forget(&fixture.journal()).unwrap();
    assert!(!fixture.journal().exists());
}

#[test]
fn uncommitted_and_staged_changes_of_the_user_stay_what_they_are() {
    let fixture = Fixture::new();
    // In the touched file: one staged and one unstaged change. Elsewhere: staged, unstaged, untracked, deleted.
    fixture.write("c.py", "c\n");
    fixture.write("d.py", "d\n");
    fixture.commit("more files");
    let staged = edit("line 18", "staged");
    fixture.write("a.py", &staged);
    fixture.write("c.py", "c staged\n");
    fixture.git(&["add", "a.py", "c.py"]);
    fixture.write("a.py", staged.replace("line 12\n", "unstaged\n"));
    fixture.write("src/b.py", "b = 'mine'\n");
    fixture.write("untracked.py", "mine\n");
    fs::remove_file(fixture.path("d.py")).unwrap();
    let status = fixture.git(&["status", "--porcelain"]);
    let diff = fixture.git(&["diff"]);
    let cached = fixture.git(&["diff", "--cached"]);
    let sandbox = fixture.sandbox();
    let text = String::from_utf8(sandbox.worktree.read("a.py").unwrap()).unwrap();
    sandbox.change(&[("a.py", &text.replace("line 3\n", "three\n")), ("made.py", "made\n")]);

    let applied = sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();

    // The commit holds the plan's change alone.
    let shown = fixture.git(&["show", "--format=", "--stat", "--numstat"]);
    assert_eq!(fixture.git(&["diff", "--numstat", "HEAD^", "HEAD"]), "1\t1\ta.py\n1\t0\tmade.py", "{shown}");
    assert_eq!(fixture.git(&["show", "HEAD:a.py"]), edit("line 3", "three").trim_end());
    assert_eq!(applied.files.len(), 2);
    // And everything of the user's is still there, in its layer.
    assert_eq!(fixture.git(&["status", "--porcelain"]), status);
    let bare = |diff: &str| {
        diff.lines()
            .filter(|l| l.starts_with(['+', '-']) && !l.starts_with("+++"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(bare(&fixture.git(&["diff"])), bare(&diff));
    assert_eq!(bare(&fixture.git(&["diff", "--cached"])), bare(&cached));
    assert_eq!(fixture.read("a.py"), text.replace("line 3\n", "three\n"));
    assert_eq!(fixture.git(&["stash", "list"]), "");
}

#[test]
fn a_branch_that_moved_on_is_merged_three_way() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &edit("line 3", "three")), ("src/b.py", "b = 2\n")]);
    fixture.write("a.py", edit("line 18", "eighteen"));
    fixture.write("other.py", "other\n");
    let moved = fixture.commit("meanwhile");
    let result = sandbox.worktree.head().unwrap();
    let planned =
        apply::preflight(&sandbox.repository, &sandbox.snapshot, &result, ApplyMode::Commit).unwrap();
    assert!(planned.branch_moved && planned.other_branch.is_none());
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(fixture.git(&["rev-parse", "HEAD^"]), moved);
    let both = edit("line 3", "three").replace("line 18\n", "eighteen\n");
    assert_eq!((fixture.read("a.py"), fixture.read("src/b.py")), (both, "b = 2\n".to_owned()));
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(fixture.git(&["diff", "--numstat", "HEAD^", "HEAD"]), "1\t1\ta.py\n1\t1\tsrc/b.py");
}

#[test]
fn a_file_the_branch_renamed_gets_the_plans_change_under_its_new_name() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &edit("line 3", "three"))]);
    fixture.git(&["mv", "a.py", "renamed.py"]);
    fixture.commit("renamed");
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(fixture.read("renamed.py"), edit("line 3", "three"));
    assert!(!fixture.path("a.py").exists());
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_real_conflict_constrains_the_plan_and_shows_both_sides() {
    // APP-010.
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &edit("line 3", "three")), ("src/b.py", "b = 2\n")]);
    fixture.write("a.py", edit("line 3", "drei"));
    fs::remove_file(fixture.path("src/b.py")).unwrap();
    fixture.commit("meanwhile");
    let before = fixture.state();
    let refusal = refusal(sandbox.apply(&fixture.journal(), ApplyMode::Commit));
    assert!(refusal.constrains());
    let ApplyRefusal::Conflicts { conflicts } = refusal else { panic!("{refusal:?}") };
    assert_eq!(conflicts[0].path, "a.py");
    assert_eq!(conflicts[0].hunks[0].line, 3);
    assert_eq!(
        (conflicts[0].hunks[0].ours.as_str(), conflicts[0].hunks[0].theirs.as_str()),
        ("drei\n", "three\n")
    );
    assert_eq!((conflicts[1].path.as_str(), conflicts[1].kind.as_str()), ("src/b.py", "modify/delete"));
    assert_eq!(fixture.state(), before);
    assert!(
        !fixture.journal().exists() || apply::resume_or_undo(&fixture.journal()).unwrap() == Resumed::Nothing
    );
}

#[test]
fn rewritten_history_constrains_the_plan() {
    let fixture = Fixture::new();
    fixture.write("x.py", "x\n");
    fixture.commit("second");
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "x\n")]);
    fixture.git(&["commit", "-q", "--amend", "-m", "second, said better"]);
    let before = fixture.state();
    let refusal = refusal(sandbox.apply(&fixture.journal(), ApplyMode::Commit));
    assert!(matches!(refusal, ApplyRefusal::HistoryRewritten { .. }) && refusal.constrains());
    assert_eq!(fixture.state(), before);
    sandbox.apply(&fixture.journal(), ApplyMode::NoCommit).unwrap();
    assert_eq!(fixture.read("a.py"), "x\n");
}

#[test]
fn newer_edits_in_a_touched_file_are_refused_and_can_be_merged_without_a_commit() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &edit("line 3", "three")), ("src/b.py", "b = 2\n")]);
    fixture.write("a.py", edit("line 18", "mine"));
    fixture.write("untouched.py", "mine\n");
    let before = fixture.state();
    let refusal = refusal(sandbox.apply(&fixture.journal(), ApplyMode::Commit));
    assert!(!refusal.constrains() && refusal.to_string().contains("a.py"));
    assert_eq!(refused(refusal), [("a.py".to_owned(), RefusedWhy::NewerEdits)]);
    assert_eq!(fixture.state(), before);

    let applied = sandbox.apply(&fixture.journal(), ApplyMode::NoCommit).unwrap();
    assert_eq!(applied.commit, None);
    assert_eq!(fixture.read("a.py"), edit("line 3", "three").replace("line 18\n", "mine\n"));
    assert_eq!(fixture.git(&["status", "--porcelain"]), " M a.py\n M src/b.py\n?? untouched.py");
    assert_eq!(applied.files.len(), 2);
}

#[test]
fn without_a_commit_a_conflict_with_newer_edits_changes_nothing() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &edit("line 3", "three")), ("src/b.py", "b = 2\n")]);
    fixture.write("a.py", edit("line 3", "mine"));
    let before = fixture.state();
    let refusal = refusal(sandbox.apply(&fixture.journal(), ApplyMode::NoCommit));
    assert!(matches!(refusal, ApplyRefusal::Conflicts { .. }));
    assert_eq!(fixture.state(), before);
}

#[test]
fn newer_edits_elsewhere_do_not_matter() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &edit("line 3", "three"))]);
    fixture.write("src/b.py", "b = 'mine'\n");
    fixture.git(&["add", "src/b.py"]);
    fixture.write("new.py", "mine\n");
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(fixture.git(&["status", "--porcelain"]), "M  src/b.py\n?? new.py");
}

#[test]
fn a_change_that_builds_on_uncommitted_lines_is_refused_with_the_way_out() {
    let fixture = Fixture::new();
    fixture.write("a.py", edit("line 3", "mine"));
    fixture.write("untracked.py", "mine\n");
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &edit("line 3", "mine, fixed")), ("untracked.py", "fixed\n")]);
    let before = fixture.state();
    let refusal = refusal(sandbox.apply(&fixture.journal(), ApplyMode::Commit));
    assert!(refusal.hint().contains("--no-commit"));
    let why = RefusedWhy::BuildsOnUncommitted;
    assert_eq!(refused(refusal), [("a.py".to_owned(), why), ("untracked.py".to_owned(), why)]);
    assert_eq!(fixture.state(), before);
    // Once the user has committed, it goes through.
    fixture.commit("mine");
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(
        (fixture.read("a.py"), fixture.read("untracked.py")),
        (edit("line 3", "mine, fixed"), "fixed\n".into())
    );
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_detached_head_gets_a_new_branch() {
    let fixture = Fixture::new();
    fixture.git(&["checkout", "-q", "--detach"]);
    fixture.git(&["branch", &format!("cleveragents/plan-{PLAN}")]);
    let sandbox = fixture.sandbox();
    assert_eq!(sandbox.snapshot.branch, None);
    sandbox.change(&[("a.py", "x\n")]);
    let applied = sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    let branch = format!("cleveragents/plan-{PLAN}-2");
    assert_eq!((applied.branch.as_deref(), applied.new_branch), (Some(branch.as_str()), true));
    assert_eq!(fixture.git(&["symbolic-ref", "--short", "HEAD"]), branch);
    assert_eq!(fixture.git(&["rev-parse", "HEAD"]), applied.commit.unwrap().as_str());
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(apply::undo(&fixture.journal()).unwrap(), Vec::<String>::new());
    assert_eq!(fixture.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "HEAD");
    assert!(!try_git(&fixture.repo, &["rev-parse", "--verify", &branch]).status.success());
}

#[test]
fn nothing_to_apply_makes_no_commit() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let before = fixture.state();
    let result = sandbox.worktree.head().unwrap();
    let planned =
        apply::preflight(&sandbox.repository, &sandbox.snapshot, &result, ApplyMode::Commit).unwrap();
    assert!(planned.is_empty());
    let applied = sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!((applied.commit, applied.files), (None, vec![]));
    assert_eq!(fixture.state(), before);
    apply::forget(&fixture.journal()).unwrap();
    // The user has made and committed the very same change.
    sandbox.change(&[("src/b.py", "b = 2\n")]);
    fixture.write("src/b.py", "b = 2\n");
    fixture.commit("the same");
    assert_eq!(sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap().commit, None);
}

#[test]
fn a_finished_apply_is_undone_for_an_apply_over_several_resources() {
    // Ruling 10.
    let fixture = Fixture::new();
    fixture.write("a.py", edit("line 18", "mine"));
    fixture.git(&["add", "a.py"]);
    let before = fixture.state();
    let sandbox = fixture.sandbox();
    let text = edit("line 18", "mine").replace("line 3\n", "three\n");
    sandbox.change(&[("a.py", &text), ("new/x.py", "x\n")]);
    sandbox.worktree.delete("src/b.py").unwrap();
    sandbox.worktree.checkpoint("gone", &["src/b.py"]).unwrap();
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(apply::undo(&fixture.journal()).unwrap(), Vec::<String>::new());
    assert_eq!(fixture.state(), before);
    assert!(!fixture.journal().exists());
    // Not when someone has built on it.
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    fixture.git(&["commit", "-q", "--allow-empty", "-m", "on top"]);
    let after = fixture.state();
    assert!(matches!(apply::undo(&fixture.journal()), Err(ApplyError::BuiltUpon { .. })));
    assert_eq!(fixture.state(), after);
}
