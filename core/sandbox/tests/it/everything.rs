//! Checkpoints of everything, whoever wrote it, and going back in several sandboxes at once.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use agents_domain::changes::ChangeKind;
use agents_sandbox::{GroupError, Worktree, checkpoint_diff, cleanup, drift, restore_group};

use crate::support::*;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

// CKPT-002, CKPT-008, CKPT-014, CKPT-017: untracked, ignored but written, deleted, mode changed, links
#[test]
fn a_checkpoint_of_everything_brings_every_kind_of_file_back() {
    let fixture = Fixture::new();
    fixture.write("run.sh", "x\n");
    fixture.write("gone.py", "gone\n");
    symlink("a.py", fixture.path("link")).unwrap();
    fixture.commit("more");
    fixture.write("staged.py", "staged\n");
    fixture.git(&["add", "staged.py"]);
    let before = fixture.state();
    let sandbox = fixture.sandbox();
    let worktree = &sandbox.worktree;
    let root = worktree.path();
    // What a shell or a script does, behind our back.
    write(&root.join("made/new.py"), "new\n");
    write(&root.join("ignored/out.txt"), "built\n");
    write(&root.join("trace.log"), "one\n");
    write(&root.join("node_modules/x/index.js"), "x\n");
    write(&root.join("cache/CACHEDIR.TAG"), "");
    write(&root.join("ignored/cache/CACHEDIR.TAG"), "");
    write(&root.join("ignored/cache/big"), "big\n");
    fs::remove_file(root.join("gone.py")).unwrap();
    mode(&root.join("run.sh"), 0o755);
    fs::remove_file(root.join("link")).unwrap();
    symlink("src/b.py", root.join("link")).unwrap();
    let held = worktree.checkpoint_all("a shell command").unwrap();
    assert_eq!(held.paths, ["cache/CACHEDIR.TAG", "gone.py", "link", "made/new.py", "run.sh"]);
    assert_eq!(held.left_out, Vec::<String>::new());
    let diff = checkpoint_diff(&sandbox.repository, &sandbox.snapshot.commit, &held.commit).unwrap();
    assert_eq!(diff.diff_paths, held.paths, "what is ignored is no part of the plan's change");
    assert_eq!(diff.diff_based, sandbox.snapshot.commit.to_string());
    assert_eq!((diff.size_bytes, diff.diff_hash.len()), (5 + 8 + 4 + 2, 64));
    let at_held = tree(root);

    write(&root.join("trace.log"), "two\n");
    fs::remove_file(root.join("ignored/out.txt")).unwrap();
    write(&root.join("ignored/later.txt"), "later\n");
    mode(&root.join("run.sh"), 0o644);
    write(&root.join("a.py"), "other\n");
    let later = worktree.checkpoint_all("another").unwrap();
    let at_later = tree(root);
    let named = sandbox.change(&[("named.py", "n\n")]);
    assert_eq!(worktree.checkpoint_all("nothing new").unwrap().commit, named);

    worktree.restore(&held.commit).unwrap();
    assert_eq!(tree(root), at_held);
    worktree.restore(&later.commit).unwrap();
    assert_eq!(tree(root), at_later);
    worktree.restore(&sandbox.snapshot.commit).unwrap();
    let mut base = tree(root);
    base.retain(|path, _| !path.starts_with("node_modules") && !path.starts_with("ignored/cache"));
    assert_eq!(base, tree(&fixture.repo));
    assert_eq!(fixture.state(), before);
    // What was left behind can be gone forward to even when the logs are gone.
    let refs = format!("refs/cleveragents/plan-{PLAN}/");
    fixture.git(&["reflog", "expire", "--expire=all", "--all"]);
    fixture.git(&["gc", "-q", "--prune=now"]);
    worktree.restore(&later.commit).unwrap();
    assert_eq!(tree(root), at_later);
    cleanup(&sandbox.repository, plan(), agents_sandbox::Removal::Discard).unwrap();
    assert_eq!(fixture.git(&["for-each-ref", &refs]), "");
}

#[test]
fn what_must_be_left_alone_is_named_and_left_out() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let root = sandbox.worktree.path();
    fs::create_dir(root.join("inner")).unwrap();
    init(&root.join("inner"));
    write(&root.join("inner/x"), "x\n");
    commit(&root.join("inner"), "inner");
    write(&root.join("a.py"), "mine\n");
    let held = sandbox.worktree.checkpoint_all("all").unwrap();
    assert_eq!((held.paths, held.left_out), (vec!["a.py".to_owned()], vec!["inner".to_owned()]));
}

// SBX-005
#[test]
fn a_persons_edits_are_taken_with_what_they_were_and_caches_are_not() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let worktree = &sandbox.worktree;
    assert_eq!(worktree.take_edits().unwrap(), None);
    let root = worktree.path();
    write(&root.join("a.py"), "mine\n");
    fs::rename(root.join("src/b.py"), root.join("src/c.py")).unwrap();
    write(&root.join("new.py"), "new\n");
    write(&root.join(".cache/clangd/index/a.idx"), "x");
    assert_eq!(
        worktree.edited_among(&["a.py", "src/c.py", ".gitignore", "gone.py"]).unwrap(),
        ["a.py", "src/c.py"]
    );
    // What git itself refuses is no reason not to look.
    assert_eq!(worktree.edited_among(&["../out.py", "", "a.py"]).unwrap(), ["a.py"]);
    let taken = worktree.take_edits().unwrap().unwrap();
    let shown: Vec<_> =
        taken.edits.iter().map(|e| (e.path.as_str(), e.old_path.as_deref(), e.kind)).collect();
    assert_eq!(
        shown,
        [
            ("a.py", None, ChangeKind::Modified),
            ("new.py", None, ChangeKind::Added),
            ("src/c.py", Some("src/b.py"), ChangeKind::Renamed)
        ]
    );
    assert_eq!(taken.edits[0].before.as_deref(), Some(lines(20).as_bytes()));
    assert_eq!(taken.edits[0].after.as_deref(), Some(&b"mine\n"[..]));
    assert_eq!(worktree.take_edits().unwrap(), None);
}

#[test]
fn edits_stay_in_place_while_the_rest_is_brought_back_even_after_a_death_in_between() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let worktree = &sandbox.worktree;
    let known = sandbox.change(&[("a.py", "plan\n")]);
    sandbox.change(&[("src/b.py", "not recorded\n")]);
    write(&worktree.path().join("mine.py"), "mine\n");
    worktree.restore_around(&known, &["mine.py".to_owned()]).unwrap();
    let good = |w: &Worktree| {
        assert_eq!(w.head().unwrap(), known);
        assert_eq!(w.edited_paths().unwrap(), ["mine.py"]);
        assert_eq!(w.read("src/b.py").unwrap(), b"b = 1\n");
        assert_eq!(w.read("mine.py").unwrap(), b"mine\n");
    };
    good(worktree);
    // The edits were committed, and then the process died.
    worktree.take_edits().unwrap().unwrap();
    worktree.restore_around(&known, &[]).unwrap();
    good(worktree);
}

/// A second repository with a sandbox of the same plan.
fn pair() -> (Fixture, Sandbox, Fixture, Sandbox) {
    let (one, other) = (Fixture::new(), Fixture::new());
    let (first, second) = (one.sandbox(), other.sandbox());
    (one, first, other, second)
}

// CKPT-009, CORR-024
#[test]
fn several_sandboxes_go_back_together_or_not_at_all() {
    let (_one, first, other, second) = pair();
    let ahead = [first.change(&[("a.py", "1\n")]), second.change(&[("a.py", "2\n")])];
    let bases = [first.snapshot.commit.clone(), second.snapshot.commit.clone()];
    let targets = [(&first.worktree, &bases[0]), (&second.worktree, &bases[1])];

    let unknown: agents_sandbox::CommitId = "0123456789012345678901234567890123456789".parse().unwrap();
    let gone = restore_group(&[(&first.worktree, &bases[0]), (&second.worktree, &unknown)]);
    assert!(matches!(gone, Err(GroupError::Unknown { .. })), "{gone:?}");
    assert_eq!(first.worktree.head().unwrap(), ahead[0]);

    let lock = git_dir(second.worktree.path()).join("cleveragents-index.lock");
    fs::write(&lock, "").unwrap();
    let failed = restore_group(&targets);
    assert!(matches!(failed, Err(GroupError::Failed { .. })), "{failed:?}");
    assert_eq!(
        (first.worktree.head().unwrap(), second.worktree.head().unwrap()),
        (ahead[0].clone(), ahead[1].clone())
    );
    assert_eq!(read(&first.worktree.path().join("a.py")), "1\n");
    fs::remove_file(&lock).unwrap();

    restore_group(&targets).unwrap();
    assert_eq!(read(&second.worktree.path().join("a.py")), lines(20));
    assert_eq!(other.read("a.py"), lines(20));
}

// CKPT-010
#[test]
fn files_are_archived_outside_the_sandbox_as_they_were() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let commit = sandbox.change(&[("a.py", "one\n"), ("deep/er.py", "deep\n")]);
    sandbox.worktree.restore(&sandbox.snapshot.commit).unwrap();
    let to = fixture.data().join("archive");
    let went = sandbox.worktree.archive(&commit, &["a.py", "deep/er.py", "not-there.py"], &to).unwrap();
    assert_eq!(went, [to.join("a.py"), to.join("deep/er.py")]);
    assert_eq!((read(&went[0]), read(&went[1])), ("one\n".to_owned(), "deep\n".to_owned()));
}

// APP-010: said at the end of Execute, decided by Apply
#[test]
fn a_checkout_that_moved_on_is_seen_with_the_files_that_matter() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let result = sandbox.change(&[("a.py", "plan\n"), ("new.py", "n\n")]);
    let snapshot = &sandbox.snapshot;
    let look = || drift(&sandbox.repository, &snapshot.head, &snapshot.commit, &result).unwrap();
    assert_eq!(look(), None);
    fixture.write("src/b.py", "theirs\n");
    assert_eq!(look(), None, "not a file of the plan's");
    fixture.write("a.py", "theirs\n");
    assert_eq!(look().map(|moved| (moved.commits, moved.files)), Some((Some(0), vec!["a.py".to_owned()])));
    fixture.commit("theirs");
    fixture.write("new.py", "in the way\n");
    let moved = look().unwrap();
    assert_eq!((moved.commits, moved.files), (Some(1), vec!["a.py".to_owned(), "new.py".to_owned()]));
    fixture.git(&["commit", "-q", "--amend", "-m", "x"]);
    fixture.git(&["checkout", "-q", "--orphan", "fresh"]);
    fixture.commit("fresh");
    assert_eq!(look().unwrap().commits, None);
}
