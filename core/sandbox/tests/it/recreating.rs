//! A sandbox whose directory is gone, and a plan whose repository is.

use std::fs;

use agents_sandbox::apply::{self, ApplyError, ApplyMode};
use agents_sandbox::{SandboxError, UntouchableReason, Worktree, diff, prune};

use crate::support::*;

#[test]
fn a_sandbox_whose_directory_was_removed_by_hand_is_made_anew_from_its_base() {
    let fixture = Fixture::new();
    fixture.write(".gitattributes", "*.bin filter=lfs\n");
    fixture.write("x.bin", "pointer\n");
    fixture.commit("filtered");
    fixture.git(&["config", "filter.lfs.clean", "false"]);
    fixture.write("x.bin", "the content\n");
    fixture.write("note.txt", "uncommitted\n");
    fixture.write("node_modules/m.js", "m\n");
    for pruned_by_the_user in [false, true] {
        let sandbox = fixture.sandbox();
        let (base, dir) = (sandbox.snapshot.commit.clone(), sandbox.worktree.path().to_owned());
        let untouchable = sandbox.worktree.untouchable().to_vec();
        assert!(untouchable.iter().any(|file| matches!(file.reason, UntouchableReason::Filter { .. })));
        let first = sandbox.change(&[("a.py", "one\n"), ("new.py", "new\n")]);
        let before = tree(&dir);
        let last = sandbox.change(&[("a.py", "two\n")]);
        fs::remove_dir_all(&dir).unwrap();
        if pruned_by_the_user {
            fixture.git(&["worktree", "prune"]);
            fixture.git(&["update-ref", "-d", &format!("refs/cleveragents/plan-{PLAN}/base")]);
        }
        let users = fixture.state();
        let made = Worktree::recreate(&sandbox.repository, plan(), &base, &dir, &["node_modules"]).unwrap();
        assert_eq!((made.base(), made.head().unwrap()), (&base, base.clone()));
        assert_eq!(made.untouchable(), untouchable);
        assert_eq!(read(&dir.join("note.txt")), "uncommitted\n");
        assert_eq!(read(&dir.join("x.bin")), "the content\n");
        assert_eq!(made.exposed().collect::<Vec<_>>(), ["node_modules"]);
        made.restore(&last).unwrap();
        assert_eq!((made.head().unwrap(), read(&dir.join("a.py"))), (last.clone(), "two\n".to_owned()));
        made.restore(&first).unwrap();
        assert_eq!(made.dirty_paths().unwrap(), Vec::<String>::new());
        let mut after = tree(&dir);
        after.retain(|path, _| !path.starts_with("node_modules"));
        assert_eq!(after, before);
        assert_eq!(fixture.state(), users);
        let base_ref = format!("refs/cleveragents/plan-{PLAN}/base");
        assert_eq!(fixture.git(&["rev-parse", &base_ref]), base.as_str());
        // What is complete is taken up, with what was done in it.
        let again = Worktree::recreate(&sandbox.repository, plan(), &base, &dir, &[]).unwrap();
        assert_eq!(again.head().unwrap(), first);
        again.restore(&last).unwrap();
        agents_sandbox::cleanup(&sandbox.repository, plan(), agents_sandbox::Removal::Discard).unwrap();
        assert!(prune(&sandbox.repository).unwrap().is_empty());
    }
}

#[test]
fn a_base_without_notes_on_what_to_leave_alone_is_made_anew_too() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let head = repository.head().unwrap().commit;
    let tree = format!("{head}^{{tree}}");
    let base = fixture.git(&["commit-tree", &tree, "-p", head.as_str(), "-m", "Base of a plan"]);
    let base = base.parse().unwrap();
    let made = Worktree::recreate(&repository, plan(), &base, &fixture.sandbox_dir(), &[]).unwrap();
    assert_eq!(read(&made.path().join("a.py")), lines(20));
    assert!(made.untouchable().is_empty());
}

#[test]
fn a_repository_replaced_by_another_is_said_in_words() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let result = sandbox.change(&[("a.py", "plan\n")]);
    fs::remove_dir_all(fixture.path(".git")).unwrap();
    init(&fixture.repo);
    fixture.commit("another first");
    let repository = fixture.open();
    let base = &sandbox.snapshot.commit;
    let said = |error: SandboxError| {
        assert!(matches!(error, SandboxError::SnapshotGone { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("no longer in the repository") && text.contains("start it anew"), "{text}");
        assert!(!text.contains("git "), "no command line: {text}");
    };
    said(diff(&repository, base, &result).unwrap_err());
    said(Worktree::recreate(&repository, plan(), base, &fixture.data().join("again"), &[]).unwrap_err());
    said(Worktree::create(&repository, &sandbox.snapshot, &fixture.data().join("anew"), &[]).unwrap_err());
    match apply::preflight(&repository, &sandbox.snapshot, &result, ApplyMode::NoCommit) {
        Err(ApplyError::Sandbox(error)) => said(error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_checkpoint_that_is_gone_is_said_in_words() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let gone = "0d37cc76b4ea286b075acbe45b794d1e11c9e32e".parse().unwrap();
    let error = sandbox.worktree.restore(&gone).unwrap_err();
    assert!(matches!(error, SandboxError::SnapshotGone { .. }), "{error:?}");
    let error = sandbox.worktree.restore_paths(&gone, &["a.py"]).unwrap_err();
    assert!(matches!(error, SandboxError::SnapshotGone { .. }), "{error:?}");
    assert_eq!(read(&sandbox.worktree.path().join("a.py")), lines(20));
}

#[test]
fn a_title_of_any_length_labels_a_checkpoint_and_ends_a_plan() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let title = format!("Fix\n\u{1b}[31mCo-authored-by: x <x@x>\n{}", "long ".repeat(28_000));
    sandbox.worktree.write_file("a.py", b"plan\n").unwrap();
    let result = sandbox.worktree.checkpoint(&title, &["a.py"]).unwrap();
    let subject = fixture.git(&["log", "-1", "--format=%B", result.as_str()]);
    assert!(subject.starts_with("Fix [31mCo-authored-by: x") && subject.chars().count() <= 200, "{subject}");
    let planned =
        apply::preflight(&sandbox.repository, &sandbox.snapshot, &result, ApplyMode::Commit).unwrap();
    let trailers = [("CleverAgents-Plan".to_owned(), PLAN.to_owned())];
    apply::run(&sandbox.repository, &planned, &fixture.journal(), &title, &trailers).unwrap();
    assert!(fixture.git(&["log", "-1", "--format=%B"]).len() <= 16 * 1024);
    assert_eq!(
        fixture.git(&["log", "-1", "--format=%(trailers)"]).trim(),
        format!("CleverAgents-Plan: {PLAN}")
    );
}

#[test]
fn no_line_of_a_message_becomes_a_trailer() {
    let ours = [("CleverAgents-Plan".to_owned(), PLAN.to_owned())];
    let scissors = "# ------------------------ >8 ------------------------";
    let messages = [
        "Subject\n\nbody\n\nSigned-off-by: Mallory <m@x>".to_owned(),
        "Subject\nSigned-off-by: Mallory <m@x>".to_owned(),
        "Subject\n\nSigned-off-by: Mallory <m@x>\n---\nmore".to_owned(),
        format!("Subject\n\nSigned-off-by: Mallory <m@x>\n{scissors}\nmore"),
        format!("Subject\n\nSigned-off-by: Mallory <m@x>\n\n{scissors}"),
        "Subject\n\n(cherry picked from commit 1)\nSigned-off-by: Mallory <m@x>\nany line".to_owned(),
        "Subject\n\nSigned-off-by: Mallory <m@x>\n\nConflicts:\n\ta.py".to_owned(),
    ];
    for message in messages {
        for trailers in [&ours[..], &[]] {
            let fixture = Fixture::new();
            let sandbox = fixture.sandbox();
            let result = sandbox.change(&[("a.py", "plan\n")]);
            let mode = ApplyMode::Commit;
            let planned = apply::preflight(&sandbox.repository, &sandbox.snapshot, &result, mode).unwrap();
            apply::run(&sandbox.repository, &planned, &fixture.journal(), &message, trailers).unwrap();
            let text = fixture.git(&["log", "-1", "--format=%B"]);
            assert!(text.starts_with("Subject\n") && text.contains("Mallory"), "{text}");
            let found = fixture.git(&["log", "-1", "--format=%(trailers)"]);
            assert!(!found.contains("Mallory"), "{message:?}: {found}");
            assert_eq!(found.contains("CleverAgents-Plan"), !trailers.is_empty(), "{message:?}: {found}");
            let file = fixture.dir.path().join("message");
            write(&file, text);
            let parsed = fixture.git(&["interpret-trailers", "--parse", file.to_str().unwrap()]);
            assert!(!parsed.contains("Mallory"), "{message:?}: {parsed}");
        }
    }
}

#[test]
fn a_branch_in_the_way_of_the_new_ones_folder_gives_it_another_name() {
    let plan_branch = format!("cleveragents/plan-{PLAN}");
    let flat = format!("cleveragents-plan-{PLAN}");
    let cases: [(&[&str], &str); 6] = [
        (&[], &plan_branch),
        (&["cleveragents"], &flat),
        (&["CleverAgents"], &flat),
        (&[&plan_branch], &format!("{plan_branch}-2")),
        (&[&format!("{plan_branch}/more")], &format!("{plan_branch}-2")),
        (&["cleveragents", &format!("{flat}/x"), &format!("{flat}-2")], &format!("{flat}-3")),
    ];
    for (branches, expected) in cases {
        let fixture = Fixture::new();
        for branch in branches {
            fixture.git(&["branch", branch]);
        }
        fixture.git(&["checkout", "-q", "--detach"]);
        let sandbox = fixture.sandbox();
        sandbox.change(&[("a.py", "plan\n")]);
        let applied = sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
        assert_eq!(applied.branch.as_deref(), Some(expected), "{branches:?}");
        assert_eq!(fixture.git(&["symbolic-ref", "--short", "HEAD"]), expected);
    }
}

#[test]
fn an_apply_is_in_progress_until_it_is_done_or_taken_back() {
    let fixture = Fixture::new();
    let journal = fixture.journal();
    assert!(!apply::in_progress(&journal));
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "plan\n")]);
    sandbox.apply(&journal, ApplyMode::Commit).unwrap();
    assert!(!apply::in_progress(&journal), "done, though not forgotten");
    // Cut off: as a killed process would leave it.
    let record = journal.join("apply.json");
    let done = read(&record);
    let mut cut: serde_json::Value = serde_json::from_str(&done).unwrap();
    cut["phase"] = "locking".into();
    write(&record, cut.to_string());
    assert!(apply::in_progress(&journal));
    write(&record, "{");
    assert!(apply::in_progress(&journal), "what cannot be read may be half made");
    write(&record, done);
    apply::undo(&journal).unwrap();
    assert!(!apply::in_progress(&journal));
}
