//! Plain folders: sandboxed, merged and applied as checkouts are, without anything of ours in them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use agents_sandbox::apply::{self, ApplyMode, ApplyRefusal, Resumed};
use agents_sandbox::{
    Removal, Repository, SandboxError, Worktree, cleanup, drift, merge, snapshot, snapshot_of,
};

use crate::faults::{killed_in, points};
use crate::support::*;

/// A folder with files of all kinds, in the place of a fixture's repository.
fn folder() -> Fixture {
    let fixture = Fixture::new();
    fs::remove_dir_all(&fixture.repo).unwrap();
    fixture.write("a.txt", lines(20));
    fixture.write("dos.txt", "one\r\ntwo\r\n");
    fixture.write(".gitattributes", "* text=auto\n*.bin filter=lfs\n");
    fixture.write("sub/b.bin", b"\0\xff\n".as_slice());
    fixture.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(fixture.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("a.txt", fixture.path("link")).unwrap();
    fixture.write("node_modules/dep/index.js", "dep\n");
    fixture
}

fn open(fixture: &Fixture) -> Repository {
    Repository::open_folder(&fixture.repo, &fixture.data().join("folders/one"), &["node_modules"]).unwrap()
}

fn sandbox(fixture: &Fixture) -> Sandbox {
    let repository = open(fixture);
    let snapshot = snapshot(&repository, plan()).unwrap();
    let worktree =
        Worktree::create(&repository, &snapshot, &fixture.sandbox_dir(), &["node_modules"]).unwrap();
    Sandbox { repository, snapshot, worktree }
}

// SBX-002, CKPT-017, SUB-012
#[test]
fn a_folder_is_sandboxed_byte_for_byte_and_holds_nothing_of_ours() {
    let fixture = folder();
    let before = tree(&fixture.repo);
    let sandbox = sandbox(&fixture);
    let mut seen = tree(sandbox.worktree.path());
    let exposed = seen.remove(std::path::Path::new("node_modules"));
    assert!(exposed.is_some_and(|link| link.starts_with(b"-> ")), "dependencies are there without a copy");
    let mut own = before.clone();
    own.retain(|path, _| !path.starts_with("node_modules"));
    assert_eq!(seen, own);
    assert!(sandbox.worktree.untouchable().is_empty(), "{:?}", sandbox.worktree.untouchable());
    let first = sandbox.change(&[("a.txt", "first\n")]);
    sandbox.change(&[("a.txt", "second\n"), ("new.txt", "new\n")]);
    sandbox.worktree.restore(&first).unwrap();
    assert_eq!(sandbox.worktree.read("a.txt").unwrap(), b"first\n");
    assert!(sandbox.worktree.read("new.txt").is_err());
    assert_eq!(tree(&fixture.repo), before, "only apply writes to the folder");
    assert!(!fixture.path(".git").exists());
}

#[test]
fn what_was_edited_meanwhile_is_merged_and_what_does_not_fit_is_refused() {
    let fixture = folder();
    let sandbox = sandbox(&fixture);
    let result =
        sandbox.change(&[("a.txt", &lines(20).replace("line 3\n", "three\n")), ("new/c.txt", "c\n")]);
    fixture.write("a.txt", lines(20).replace("line 18\n", "mine\n"));
    fixture.write("mine.txt", "mine\n");
    let moved = drift(&sandbox.repository, &sandbox.snapshot.head, &sandbox.snapshot.commit, &result);
    assert_eq!(moved.unwrap().unwrap().files, ["a.txt"]);
    let applied = sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(applied.files.len(), 2);
    assert_eq!(
        fixture.read("a.txt"),
        lines(20).replace("line 3\n", "three\n").replace("line 18\n", "mine\n")
    );
    assert_eq!((fixture.read("mine.txt"), fixture.read("new/c.txt")), ("mine\n".into(), "c\n".into()));
    assert_eq!(fixture.read("dos.txt"), "one\r\ntwo\r\n");
    apply::forget(&fixture.journal()).unwrap();
    assert!(!fixture.path(".git").exists());

    sandbox.change(&[("a.txt", &lines(20).replace("line 18\n", "eighteen\n"))]);
    let before = tree(&fixture.repo);
    let conflict = refusal(sandbox.apply(&fixture.journal(), ApplyMode::Commit));
    assert!(matches!(&conflict, ApplyRefusal::Conflicts { conflicts } if conflicts[0].path == "a.txt"));
    assert!(conflict.constrains());
    assert_eq!(tree(&fixture.repo), before);
}

#[test]
fn an_apply_to_a_folder_that_is_killed_anywhere_is_finished_or_undone_exactly() {
    let (mut finished, mut undone) = (0, 0);
    for point in points("apply.") {
        let fixture = folder();
        let sandbox = sandbox(&fixture);
        sandbox.change(&[("a.txt", "changed\n"), ("new/x.txt", "x\n")]);
        sandbox.worktree.delete("sub/b.bin").unwrap();
        sandbox.worktree.checkpoint("gone", &["sub/b.bin"]).unwrap();
        let before = tree(&fixture.repo);
        if !killed_in(sandbox.repository.place(), &fixture, &sandbox.snapshot, "apply", point) {
            // HEAD is always on the branch of the store.
            assert!(["apply.after-head"].contains(&point), "{point} was passed");
            continue;
        }
        match apply::resume_or_undo(&fixture.journal()).unwrap() {
            Resumed::Finished(_) => {
                finished += 1;
                assert_eq!(fixture.read("a.txt"), "changed\n", "{point}");
                assert_eq!(fixture.read("new/x.txt"), "x\n", "{point}");
                assert!(!fixture.path("sub/b.bin").exists(), "{point}");
                apply::forget(&fixture.journal()).unwrap();
            }
            Resumed::Undone { .. } | Resumed::Nothing => {
                undone += 1;
                assert_eq!(tree(&fixture.repo), before, "{point}");
                sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
            }
        }
    }
    assert!(finished >= 7 && undone >= 4, "{finished} finished, {undone} undone");
}

#[test]
fn children_of_a_plan_on_a_folder_are_merged_three_way() {
    let fixture = folder();
    let parent = sandbox(&fixture);
    let at = parent.worktree.head().unwrap();
    let base = snapshot_of(&parent.repository, other_plan(), plan(), parent.worktree.base(), &at).unwrap();
    let child = Worktree::create(&parent.repository, &base, &fixture.data().join("child"), &[]).unwrap();
    child.write_file("a.txt", lines(20).replace("line 18\n", "child\n").as_bytes()).unwrap();
    let theirs = child.checkpoint("child", &["a.txt"]).unwrap();
    let ours = parent.change(&[("a.txt", &lines(20).replace("line 3\n", "parent\n"))]);
    let merged = merge(&parent.repository, &base.commit, &theirs, &ours, "child").unwrap();
    assert!(merged.conflicts.is_empty());
    let both = lines(20).replace("line 18\n", "child\n").replace("line 3\n", "parent\n");
    let text = parent.repository.file_at(&merged.commit, "a.txt").unwrap().unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), both);
}

#[test]
fn a_store_is_of_one_folder_and_never_inside_it() {
    let fixture = folder();
    let store = fixture.path("inside/store");
    let inside = Repository::open_folder(&fixture.repo, &store, &[]);
    assert!(matches!(inside, Err(SandboxError::InsideRepository { .. })), "{inside:?}");
    assert!(!fixture.path("inside").exists());
    drop(open(&fixture));
    let other = fixture.data().join("other");
    fs::create_dir_all(&other).unwrap();
    let taken = Repository::open_folder(&other, &fixture.data().join("folders/one"), &[]);
    assert!(matches!(taken, Err(SandboxError::Damaged { .. })), "{taken:?}");
    let gone = Repository::open_folder(&fixture.path("gone"), &fixture.data().join("folders/two"), &[]);
    assert!(gone.is_err() && !fixture.data().join("folders/two").exists());
    // Many at once make one.
    let store = fixture.data().join("folders/many");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Repository::open_folder(&fixture.repo, &store, &[]).unwrap());
        }
    });
    let entries: Vec<_> = fs::read_dir(fixture.data().join("folders")).unwrap().flatten().collect();
    assert_eq!(entries.len(), 2, "nothing half made is left: {entries:?}");
}

#[test]
fn a_folder_of_a_checkout_and_one_that_holds_a_checkout_are_folders() {
    let fixture = Fixture::new();
    let store = fixture.data().join("folders/src");
    let inner = Repository::open_folder(&fixture.path("src"), &store, &[]).unwrap();
    let base = snapshot(&inner, plan()).unwrap();
    let worktree = Worktree::create(&inner, &base, &fixture.sandbox_dir(), &[]).unwrap();
    assert_eq!(worktree.read("b.py").unwrap(), b"b = 1\n");
    let outer = fixture.repo.parent().unwrap().join("outer");
    fs::create_dir(&outer).unwrap();
    fs::rename(&fixture.repo, outer.join("repo")).unwrap();
    write(&outer.join("top.txt"), "top\n");
    let outer = Repository::open_folder(&outer, &fixture.data().join("folders/outer"), &[]).unwrap();
    let base = snapshot(&outer, other_plan()).unwrap();
    let left: Vec<String> = base.untouchable.iter().map(|u| format!("{}: {}", u.path, u.reason)).collect();
    assert_eq!(left, ["repo: a git repository of its own"]);
}

// Removing a plan's sandbox leaves the folder and the store; the next plan begins on what is there then.
#[test]
fn the_next_plan_sees_what_the_folder_holds_then() {
    let fixture = folder();
    let first = sandbox(&fixture);
    first.change(&[("a.txt", "plan\n")]);
    cleanup(&first.repository, plan(), Removal::IfClean).unwrap();
    assert!(!fixture.sandbox_dir().exists());
    fixture.write("a.txt", "a person's\n");
    fs::remove_file(fixture.path("dos.txt")).unwrap();
    let second = sandbox(&fixture);
    assert_eq!(second.worktree.read("a.txt").unwrap(), b"a person's\n");
    assert!(second.worktree.read("dos.txt").is_err());
    assert!(second.snapshot.is_clean(&second.repository).unwrap());
}
