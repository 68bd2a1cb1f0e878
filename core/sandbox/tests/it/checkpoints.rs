//! Checkpoints and the ways back to them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use agents_sandbox::Recovery;

use crate::support::*;

#[test]
fn a_checkpoint_holds_the_named_changes_and_only_those() {
    // CKPT-007, CKPT-016, SBX-005.
    let fixture = Fixture::new();
    let before = fixture.state();
    let sandbox = fixture.sandbox();
    let worktree = &sandbox.worktree;
    worktree.write_file("a.py", b"plan\n").unwrap();
    worktree.write_file("new/c.py", b"c\n").unwrap();
    worktree.delete("src/b.py").unwrap();
    fs::write(worktree.path().join("person.txt"), "p\n").unwrap();
    let commit =
        worktree.checkpoint("first group", &["a.py", "new/c.py", "src/b.py", "never-was.py"]).unwrap();
    let names = fixture.git(&["ls-tree", "-r", "--name-only", commit.as_str()]);
    assert_eq!(names, ".gitignore\na.py\nnew/c.py");
    assert_eq!(worktree.head().unwrap(), commit);
    assert_eq!(fixture.git(&["rev-parse", &format!("refs/cleveragents/plan-{PLAN}/head")]), commit.as_str());
    assert_eq!(
        fixture.git(&["log", "-1", "--format=%s %p", commit.as_str()]).split(' ').next(),
        Some("first")
    );
    assert_eq!(worktree.dirty_paths().unwrap(), ["person.txt"]);
    assert!(!worktree.is_clean_since(&commit).unwrap());
    assert_eq!(worktree.checkpoint("nothing new", &["a.py"]).unwrap(), commit);
    assert_eq!(worktree.checkpoint::<&str>("nothing at all", &[]).unwrap(), commit);
    assert_eq!(fixture.state(), before);
}

#[test]
fn a_restore_brings_everything_back_and_can_itself_be_taken_back() {
    // CKPT-002, CKPT-017.
    let fixture = Fixture::new();
    fixture.write("run.sh", "x\n");
    fs::set_permissions(fixture.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.py", fixture.path("link")).unwrap();
    let sandbox = fixture.sandbox();
    let worktree = &sandbox.worktree;
    let base = tree(worktree.path());
    worktree.write_file("a.py", b"one\n").unwrap();
    worktree.write_file("deep/er/new.py", b"new\n").unwrap();
    worktree.delete("link").unwrap();
    let first = worktree.checkpoint("one", &["a.py", "deep/er/new.py", "link"]).unwrap();
    let at_first = tree(worktree.path());
    // Everything that can be done behind our back.
    fs::set_permissions(worktree.path().join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_dir_all(worktree.path().join("src")).unwrap();
    symlink(fixture.dir.path(), worktree.path().join("src")).unwrap();
    fs::write(worktree.path().join("stray.py"), "stray\n").unwrap();
    fs::write(worktree.path().join("kept.log"), "ignored\n").unwrap();
    fs::write(worktree.path().join("a.py"), "two\n").unwrap();
    write(&fixture.dir.path().join("b.py"), "outside\n");
    worktree.restore(&sandbox.snapshot.commit).unwrap();
    let mut restored = tree(worktree.path());
    assert!(restored.remove(std::path::Path::new("kept.log")).is_some(), "ignored files stay");
    assert_eq!(restored, base);
    assert_eq!(read(&fixture.dir.path().join("b.py")), "outside\n", "a link is never followed");
    assert_eq!(worktree.head().unwrap(), sandbox.snapshot.commit);
    assert!(worktree.is_clean_since(&sandbox.snapshot.commit).unwrap());
    worktree.restore(&first).unwrap();
    let mut again = tree(worktree.path());
    again.remove(std::path::Path::new("kept.log"));
    assert_eq!(again, at_first);
    let log = fixture.git(&["reflog", "show", &format!("refs/cleveragents/plan-{PLAN}/head")]);
    assert_eq!(log.lines().count(), 4, "{log}");
}

#[test]
fn single_files_are_restored_and_the_rest_stays() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let worktree = &sandbox.worktree;
    sandbox.change(&[("a.py", "one\n"), ("new.py", "new\n"), ("src/b.py", "b = 2\n")]);
    worktree.restore_paths(&sandbox.snapshot.commit, &["a.py", "new.py"]).unwrap();
    assert_eq!(read(&worktree.path().join("a.py")), lines(20));
    assert!(!worktree.path().join("new.py").exists());
    assert_eq!(worktree.read("src/b.py").unwrap(), b"b = 2\n");
    assert_eq!(worktree.dirty_paths().unwrap(), ["a.py", "new.py"]);
    worktree.checkpoint("taken back", &["a.py", "new.py"]).unwrap();
    assert_eq!(worktree.dirty_paths().unwrap(), Vec::<String>::new());
    assert!(worktree.restore_paths(&sandbox.snapshot.commit, &["../x"]).is_err());
}

#[test]
fn git_used_by_a_tool_inside_the_sandbox_does_not_disturb_checkpoints() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let worktree = &sandbox.worktree;
    fs::write(worktree.path().join("tool.py"), "tool\n").unwrap();
    git(worktree.path(), &["add", "-A"]);
    git(worktree.path(), &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "tool"]);
    fs::create_dir(worktree.path().join("made")).unwrap();
    init(&worktree.path().join("made"));
    let head = sandbox.change(&[("a.py", "one\n")]);
    assert_eq!(fixture.git(&["ls-tree", "-r", "--name-only", head.as_str()]), ".gitignore\na.py\nsrc/b.py");
    worktree.restore(&sandbox.snapshot.commit).unwrap();
    assert_eq!(tree(worktree.path()), tree(&fixture.repo));
}

#[test]
fn what_a_dead_worker_left_is_put_in_order_without_touching_files() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let worktree = &sandbox.worktree;
    sandbox.change(&[("a.py", "one\n")]);
    assert_eq!(worktree.recover().unwrap(), Recovery::default());
    let index = git_dir(worktree.path()).join("cleveragents-index");
    fs::write(index.with_extension("lock"), "").unwrap();
    assert!(worktree.checkpoint("locked", &["a.py"]).is_err());
    worktree.write_file("src/b.py", b"cut off\n").unwrap();
    let recovery = worktree.recover().unwrap();
    assert_eq!(recovery, Recovery { rewound: false, dirty: vec!["src/b.py".to_owned()] });
    worktree.checkpoint("again", &["src/b.py"]).unwrap();
}
