//! Applying where something is in the way: hooks, locks, races, files git does not see, other kinds of checkouts.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use agents_sandbox::apply::{self, ApplyError, ApplyMode, ApplyRefusal, RefusedWhy};
use agents_sandbox::{Repository, SandboxError, Worktree, snapshot};

use crate::support::*;

fn refused(refusal: ApplyRefusal) -> Vec<(String, RefusedWhy)> {
    match refusal {
        ApplyRefusal::Refused { files } => files.into_iter().map(|file| (file.path, file.why)).collect(),
        other => panic!("expected refused files, got {other:?}"),
    }
}

#[test]
fn no_hook_runs_and_a_missing_identity_is_ours() {
    let fixture = Fixture::new();
    for hook in ["pre-commit", "post-commit", "commit-msg", "reference-transaction", "post-index-change"] {
        let path = fixture.path(".git/hooks").join(hook);
        write(&path, format!("#!/bin/sh\ntouch '{}'\nexit 1\n", fixture.dir.path().join("ran").display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fixture.git(&["-c", "core.hooksPath=/dev/null", "config", "--unset", "user.email"]);
    fixture.git(&["config", "user.useConfigOnly", "true"]);
    fixture.git(&["config", "commit.gpgSign", "true"]);
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "x\n")]);
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert!(!fixture.dir.path().join("ran").exists());
    assert_eq!(fixture.git(&["log", "-1", "--format=%an <%ae>"]), "CleverAgents <agents@localhost>");
}

#[test]
fn a_lock_of_another_git_process_is_waited_for_and_then_named() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "x\n")]);
    let before = fixture.state();
    fixture.write(".git/index.lock", "theirs");
    match sandbox.apply(&fixture.journal(), ApplyMode::Commit) {
        Err(ApplyError::Sandbox(SandboxError::Locked { path })) => {
            assert_eq!(path, fixture.path(".git/index.lock"))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fixture.read(".git/index.lock"), "theirs");
    fs::remove_file(fixture.path(".git/index.lock")).unwrap();
    assert_eq!(fixture.state(), before);
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
}

#[test]
fn two_plans_applied_at_the_same_time_both_land() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &lines(20).replace("line 2\n", "two\n"))]);
    let second = {
        let repository = fixture.open();
        let snapshot = snapshot(&repository, other_plan()).unwrap();
        let worktree = Worktree::create(&repository, &snapshot, &fixture.data().join("other"), &[]).unwrap();
        Sandbox { repository, snapshot, worktree }
    };
    second.change(&[("a.py", &lines(20).replace("line 19\n", "nineteen\n"))]);
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| sandbox.apply(&fixture.data().join("journal-1"), ApplyMode::Commit));
        let two = scope.spawn(|| second.apply(&fixture.data().join("journal-2"), ApplyMode::Commit));
        (one.join().unwrap(), two.join().unwrap())
    });
    one.unwrap();
    two.unwrap();
    assert_eq!(fixture.git(&["rev-list", "--count", "HEAD"]), "3");
    assert_eq!(
        fixture.read("a.py"),
        lines(20).replace("line 2\n", "two\n").replace("line 19\n", "nineteen\n")
    );
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_commit_made_after_the_preflight_is_merged_with() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let result = sandbox.change(&[("a.py", &lines(20).replace("line 2\n", "two\n"))]);
    let planned =
        apply::preflight(&sandbox.repository, &sandbox.snapshot, &result, ApplyMode::Commit).unwrap();
    fixture.write("a.py", lines(20).replace("line 19\n", "nineteen\n"));
    let moved = fixture.commit("between");
    apply::run(&sandbox.repository, &planned, &fixture.journal(), "m", &[]).unwrap();
    assert_eq!(fixture.git(&["rev-parse", "HEAD^"]), moved);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn edits_made_after_the_preflight_are_refused() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let result = sandbox.change(&[("a.py", "plan\n")]);
    let planned =
        apply::preflight(&sandbox.repository, &sandbox.snapshot, &result, ApplyMode::Commit).unwrap();
    fixture.write("a.py", "mine\n");
    let before = fixture.state();
    let refusal = refusal(apply::run(&sandbox.repository, &planned, &fixture.journal(), "m", &[]));
    assert_eq!(refused(refusal), [("a.py".to_owned(), RefusedWhy::NewerEdits)]);
    assert_eq!(fixture.state(), before);
    assert!(!fixture.journal().exists());
}

#[test]
fn files_git_does_not_show_are_never_overwritten() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("made.py", "plan\n"), ("dir/x.py", "plan\n")]);
    // An ignored file and a link to elsewhere appear where the plan puts its files.
    let outside = fixture.dir.path().canonicalize().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    write(&fixture.path(".git/info/exclude"), "made.py\ndir\n");
    fixture.write("made.py", "private\n");
    symlink(&outside, fixture.path("dir")).unwrap();
    let before = fixture.state();
    for mode in [ApplyMode::Commit, ApplyMode::NoCommit] {
        let files = refused(refusal(sandbox.apply(&fixture.journal(), mode)));
        let why = RefusedWhy::InTheWay;
        assert_eq!(files, [("dir/x.py".to_owned(), why), ("made.py".to_owned(), why)]);
    }
    assert_eq!(fixture.state(), before);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_file_hidden_since_the_plan_began_is_refused() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "plan\n")]);
    fixture.git(&["update-index", "--skip-worktree", "a.py"]);
    let files = refused(refusal(sandbox.apply(&fixture.journal(), ApplyMode::Commit)));
    assert_eq!(files, [("a.py".to_owned(), RefusedWhy::Hidden)]);
}

#[test]
fn what_is_staged_in_a_touched_file_is_refused_when_it_overlaps() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &lines(20).replace("line 3\n", "three\n"))]);
    // Staged, then the file was set back: on disk it is as the plan saw it.
    fixture.write("a.py", lines(20).replace("line 3\n", "staged\n"));
    fixture.git(&["add", "a.py"]);
    fixture.write("a.py", lines(20));
    let before = fixture.state();
    let files = refused(refusal(sandbox.apply(&fixture.journal(), ApplyMode::Commit)));
    assert_eq!(files, [("a.py".to_owned(), RefusedWhy::Staged)]);
    assert_eq!(fixture.state(), before);
}

#[test]
fn a_merge_in_progress_is_refused_for_a_commit_only() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "plan\n")]);
    fixture.git(&["checkout", "-q", "-b", "side"]);
    fixture.write("src/b.py", "side\n");
    fixture.commit("side");
    fixture.git(&["checkout", "-q", "main"]);
    fixture.git(&["merge", "--no-ff", "--no-commit", "side"]);
    let refusal = refusal(sandbox.apply(&fixture.journal(), ApplyMode::Commit));
    assert_eq!(refusal, ApplyRefusal::OperationInProgress { operation: "merge".to_owned() });
    sandbox.apply(&fixture.journal(), ApplyMode::NoCommit).unwrap();
    assert_eq!(fixture.read("a.py"), "plan\n");
    assert!(fixture.path(".git/MERGE_HEAD").exists());
}

#[test]
fn the_users_checkout_may_be_a_linked_worktree() {
    let fixture = Fixture::new();
    let linked = fixture.dir.path().canonicalize().unwrap().join("linked");
    fixture.git(&["worktree", "add", "-q", "-b", "feature", linked.to_str().unwrap()]);
    let main_before = fixture.state();
    let repository = Repository::open(&linked).unwrap();
    let base = snapshot(&repository, plan()).unwrap();
    // The main checkout takes part in the same plan, without mixing up references.
    let main = fixture.sandbox();
    let worktree = Worktree::create(&repository, &base, &fixture.data().join("linked"), &[]).unwrap();
    let sandbox = Sandbox { repository, snapshot: base, worktree };
    sandbox.change(&[("a.py", "linked\n")]);
    assert_eq!(main.worktree.head().unwrap(), main.snapshot.commit);
    let applied = sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(applied.branch.as_deref(), Some("feature"));
    assert_eq!(git(&linked, &["status", "--porcelain"]), "");
    assert_eq!(read(&linked.join("a.py")), "linked\n");
    assert_eq!(fixture.state().files, main_before.files);
    assert_eq!(fixture.state().status, main_before.status);
}

#[test]
fn the_users_checkout_may_be_a_submodule() {
    let library = Fixture::new();
    let outer = Fixture::new();
    outer.git(&["submodule", "add", "-q", library.repo.to_str().unwrap(), "sub"]);
    let submodule = outer.path("sub");
    git(&submodule, &["config", "user.name", "Test Person"]);
    git(&submodule, &["config", "user.email", "person@example.org"]);
    let repository = Repository::open(&submodule).unwrap();
    let base = snapshot(&repository, plan()).unwrap();
    let worktree = Worktree::create(&repository, &base, &outer.sandbox_dir(), &[]).unwrap();
    let sandbox = Sandbox { repository, snapshot: base, worktree };
    sandbox.change(&[("a.py", "sub\n")]);
    sandbox.apply(&outer.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(read(&submodule.join("a.py")), "sub\n");
    assert_eq!(git(&submodule, &["status", "--porcelain"]), "");
}

#[test]
fn kinds_and_modes_of_files_change_with_the_plan() {
    let fixture = Fixture::new();
    fixture.write("tool", "#!/bin/sh\n");
    fixture.write("dir/inner.py", "x\n");
    fixture.commit("more");
    let sandbox = fixture.sandbox();
    let at = |name: &str| sandbox.worktree.path().join(name);
    fs::set_permissions(at("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_dir_all(at("dir")).unwrap();
    fs::write(at("dir"), "a file\n").unwrap();
    fs::remove_file(at("a.py")).unwrap();
    fs::create_dir(at("a.py")).unwrap();
    fs::write(at("a.py/inner.py"), "x\n").unwrap();
    symlink("tool", at("link")).unwrap();
    let paths = ["tool", "dir", "dir/inner.py", "a.py", "a.py/inner.py", "link"];
    let result = sandbox.worktree.checkpoint("kinds", &paths).unwrap();
    assert!(sandbox.worktree.is_clean_since(&result).unwrap());
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(tree(&fixture.repo), tree(sandbox.worktree.path()));
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    apply::undo(&fixture.journal()).unwrap();
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(fixture.read("dir/inner.py"), "x\n");
}

#[test]
fn files_that_are_not_text_are_applied_byte_for_byte() {
    let fixture = Fixture::new();
    fixture.write("latin1.py", b"# caf\xe9\nx = 1\n");
    fixture.write("image.bin", b"\0\x01");
    fixture.commit("bytes");
    let sandbox = fixture.sandbox();
    sandbox.worktree.write_file("latin1.py", b"# caf\xe9\nx = 2\n").unwrap();
    sandbox.worktree.write_file("image.bin", b"\0\x02\xff\r\n").unwrap();
    sandbox.worktree.checkpoint("bytes", &["latin1.py", "image.bin"]).unwrap();
    let applied = sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(fs::read(fixture.path("latin1.py")).unwrap(), b"# caf\xe9\nx = 2\n");
    assert_eq!(fs::read(fixture.path("image.bin")).unwrap(), b"\0\x02\xff\r\n");
    assert!(applied.files.iter().all(|file| file.binary));
}

#[test]
fn another_branch_checked_out_meanwhile_is_said() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let result = sandbox.change(&[("a.py", "plan\n")]);
    fixture.git(&["checkout", "-q", "-b", "elsewhere"]);
    let planned =
        apply::preflight(&sandbox.repository, &sandbox.snapshot, &result, ApplyMode::Commit).unwrap();
    assert_eq!(
        (planned.branch.as_deref(), planned.other_branch.as_deref()),
        (Some("elsewhere"), Some("main"))
    );
}

#[test]
fn special_forms_of_the_index_are_understood() {
    for options in [&["--split-index"][..], &["--untracked-cache"], &["--index-version", "4"]] {
        let fixture = Fixture::new();
        fixture.git(&[&["update-index"], options].concat());
        if options[0] == "--split-index" {
            fixture.git(&["config", "core.splitIndex", "true"]);
            fixture.write("more.py", "more\n");
            fixture.git(&["add", "more.py"]);
        }
        fixture.git(&["config", "core.fsmonitor", "false-as-a-hook"]);
        let status = fixture.git(&["-c", "core.fsmonitor=false", "status", "--porcelain"]);
        let sandbox = fixture.sandbox();
        assert_eq!(tree(sandbox.worktree.path()), tree(&fixture.repo), "{options:?}");
        sandbox.change(&[("a.py", "plan\n"), ("made.py", "made\n")]);
        sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
        assert_eq!(
            fixture.git(&["-c", "core.fsmonitor=false", "status", "--porcelain"]),
            status,
            "{options:?}"
        );
        let counts = fixture.git(&["diff", "--numstat", "HEAD^", "HEAD"]);
        assert_eq!(counts, "1\t20\ta.py\n1\t0\tmade.py", "{options:?}");
    }
}

#[test]
fn a_sparse_checkout_is_applied_to_where_it_is_checked_out() {
    let fixture = Fixture::new();
    fixture.write("big/one.py", "1\n");
    fixture.commit("big");
    fixture.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "src"]);
    let sandbox = fixture.sandbox();
    sandbox.change(&[("src/b.py", "b = 2\n"), ("a.py", "plan\n")]);
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(fixture.read("src/b.py"), "b = 2\n");
    assert!(!fixture.path("big").exists());
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(fixture.git(&["show", "HEAD:big/one.py"]), "1");
}

#[test]
fn an_apply_that_fails_half_way_is_taken_back() {
    // APP-011.
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.worktree.delete("src/b.py").unwrap();
    sandbox.worktree.write_file("a.py", b"plan\n").unwrap();
    sandbox.worktree.write_file("src", b"a file now\n").unwrap();
    sandbox.worktree.checkpoint("kinds", &["src/b.py", "a.py", "src"]).unwrap();
    // The directory that is to become a file keeps something git does not show.
    fixture.write("src/private.log", "private\n");
    let before = fixture.state();
    match sandbox.apply(&fixture.journal(), ApplyMode::Commit) {
        Err(ApplyError::Failed { left_alone, .. }) => assert_eq!(left_alone, Vec::<String>::new()),
        other => panic!("{other:?}"),
    }
    assert_eq!(fixture.state(), before);
    assert!(!fixture.journal().exists() && !fixture.path(".git/index.lock").exists());
    fs::remove_file(fixture.path("src/private.log")).unwrap();
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(fixture.read("src"), "a file now\n");
}

#[test]
fn a_journal_in_use_is_left_to_its_process() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "plan\n")]);
    fs::create_dir_all(fixture.journal()).unwrap();
    let held = fs::File::create(fixture.journal().join("apply.lock")).unwrap();
    held.lock().unwrap();
    assert!(matches!(sandbox.apply(&fixture.journal(), ApplyMode::Commit), Err(ApplyError::Running)));
    assert!(matches!(apply::resume_or_undo(&fixture.journal()), Err(ApplyError::Running)));
    held.unlock().unwrap();
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    fs::write(fixture.journal().join("apply.json"), "{").unwrap();
    assert!(matches!(
        apply::resume_or_undo(&fixture.journal()),
        Err(ApplyError::Sandbox(SandboxError::Damaged { .. }))
    ));
}

#[test]
fn a_file_never_committed_is_not_taken_for_the_old_name_of_another() {
    let fixture = Fixture::new();
    fixture.write("mine.py", lines(40));
    let sandbox = fixture.sandbox();
    sandbox.change(&[("mine.py", &lines(40).replace("line 3\n", "three\n"))]);
    // A commit brings a file that looks much like it.
    fixture.write("theirs.py", lines(40).replace("line 40\n", "forty\n"));
    fixture.git(&["add", "theirs.py"]);
    fixture.git(&["commit", "-q", "-m", "theirs"]);
    let before = fixture.state();
    let files = refused(refusal(sandbox.apply(&fixture.journal(), ApplyMode::Commit)));
    assert_eq!(files, [("mine.py".to_owned(), RefusedWhy::BuildsOnUncommitted)]);
    assert_eq!(fixture.state(), before);
}
