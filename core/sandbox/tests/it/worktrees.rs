//! Making, reopening and removing sandboxes, and what tools may do in them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use agents_domain::changes::ChangeKind;
use agents_domain::text::{FileEdit, Range, TextEdit};
use agents_sandbox::{
    PathRefusal, Removal, SandboxError, UntouchableReason, Worktree, cleanup, prune, snapshot,
};

use crate::support::*;

fn reason<T: std::fmt::Debug>(result: Result<T, SandboxError>) -> PathRefusal {
    match result {
        Err(SandboxError::PathRefused { reason, .. }) => reason,
        other => panic!("expected a refused path, got {other:?}"),
    }
}

fn replace(path: &str, range: ((u32, u32), (u32, u32)), new_text: &str) -> FileEdit {
    let edit = TextEdit { range: Range::new(range.0, range.1), new_text: new_text.to_owned() };
    FileEdit::Edit { path: path.to_owned(), edits: vec![edit] }
}

#[test]
fn a_sandbox_holds_the_users_files_and_the_checkout_does_not_change() {
    // SBX-001, PLAN-055, ruling 26.
    let fixture = Fixture::new();
    fixture.write("a.py", "changed\n");
    fixture.write("new.py", "new\n");
    fixture.write("run.sh", "x\n");
    fs::set_permissions(fixture.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.py", fixture.path("link")).unwrap();
    let before = fixture.state();
    let sandbox = fixture.sandbox();
    assert_eq!(fixture.state(), before);
    assert_eq!(tree(sandbox.worktree.path()), tree(&fixture.repo));
    assert!(sandbox.worktree.path().to_str().unwrap().contains(PLAN));
    assert_eq!(sandbox.worktree.head().unwrap(), sandbox.snapshot.commit);
    assert_eq!(sandbox.worktree.dirty_paths().unwrap(), Vec::<String>::new());
    assert!(sandbox.worktree.is_clean_since(&sandbox.snapshot.commit).unwrap());
    let files: Vec<_> =
        sandbox.worktree.list_files().unwrap().into_iter().map(|f| (f.path, f.size)).collect();
    assert!(files.contains(&("new.py".to_owned(), 4)) && files.contains(&("src/b.py".to_owned(), 6)));
}

#[test]
fn a_sandbox_is_reopened_and_taken_up_again() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let head = sandbox.change(&[("a.py", "one\n")]);
    let again =
        Worktree::create(&sandbox.repository, &sandbox.snapshot, &fixture.sandbox_dir(), &[]).unwrap();
    assert_eq!((again.head().unwrap(), again.read("a.py").unwrap()), (head.clone(), b"one\n".to_vec()));
    let opened = Worktree::open(&sandbox.repository, &fixture.sandbox_dir()).unwrap();
    assert_eq!((opened.plan(), opened.head().unwrap()), (plan(), head));
    let missing = Worktree::open(&sandbox.repository, &fixture.data().join("nowhere"));
    assert!(matches!(missing, Err(SandboxError::NoSandbox { .. })));
}

#[test]
fn a_sandbox_is_made_neither_in_the_checkout_nor_over_somebodys_files() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let base = snapshot(&repository, plan()).unwrap();
    let create = |dir: &std::path::Path| Worktree::create(&repository, &base, dir, &[]);
    assert!(matches!(create(&fixture.path("x/y/z")), Err(SandboxError::InsideRepository { .. })));
    assert!(!fixture.path("x").exists());
    write(&fixture.sandbox_dir().join("mine.txt"), "mine");
    assert!(matches!(create(&fixture.sandbox_dir()), Err(SandboxError::NotASandbox { .. })));
    assert_eq!(read(&fixture.sandbox_dir().join("mine.txt")), "mine");
}

#[test]
fn dependency_folders_are_visible_readable_and_never_written() {
    // Ruling 26.
    let fixture = Fixture::new();
    fixture.write("node_modules/pkg/index.js", "module\n");
    fixture.write("packages/one/node_modules/x.js", "x\n");
    fixture.write(".venv/lib/site.py", "site\n");
    fixture.write("ignored/build.o", "o");
    symlink("/etc/passwd", fixture.path(".venv/python")).unwrap();
    let repository = fixture.open();
    let base = snapshot(&repository, plan()).unwrap();
    let worktree =
        Worktree::create(&repository, &base, &fixture.sandbox_dir(), &["node_modules", ".venv"]).unwrap();
    let mut exposed: Vec<_> = worktree.exposed().collect();
    exposed.sort();
    assert_eq!(exposed, [".venv", "node_modules", "packages/one/node_modules"]);
    assert_eq!(read(&worktree.path().join("node_modules/pkg/index.js")), "module\n");
    assert!(!worktree.path().join("ignored").exists());
    assert_eq!(worktree.read(".venv/lib/site.py").unwrap(), b"site\n");
    assert!(matches!(reason(worktree.read(".venv/python")), PathRefusal::LeavesSandbox { .. }));
    assert!(matches!(reason(worktree.read(".venv/../x")), PathRefusal::Parent));
    for path in [
        ".venv/lib/site.py",
        "./.venv/new.py",
        "node_modules/pkg/index.js",
        "web/node_modules/new.js",
        ".venv",
    ] {
        assert!(
            matches!(reason(worktree.write_file(path, b"x")), PathRefusal::Dependencies { .. }),
            "{path}"
        );
    }
    assert_eq!(worktree.dirty_paths().unwrap(), Vec::<String>::new());
    worktree.restore(&base.commit).unwrap();
    assert!(worktree.path().join(".venv/lib/site.py").exists());
    worktree.remove(Removal::IfClean).unwrap();
    assert_eq!(fixture.read("node_modules/pkg/index.js"), "module\n");
}

#[test]
fn tools_write_nothing_outside_the_sandbox_or_that_is_to_be_left_alone() {
    let library = Fixture::new();
    let fixture = Fixture::new();
    fixture.git(&["submodule", "add", "-q", library.repo.to_str().unwrap(), "vendor/lib"]);
    let outside = fixture.dir.path().canonicalize().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    symlink(&outside, fixture.path("out")).unwrap();
    symlink(outside.join("secret"), fixture.path("file-out")).unwrap();
    let sandbox = fixture.sandbox();
    let worktree = &sandbox.worktree;
    assert!(matches!(reason(worktree.write_file("out/x", b"x")), PathRefusal::LeavesSandbox { .. }));
    assert!(matches!(reason(worktree.write_file("file-out", b"x")), PathRefusal::LeavesSandbox { .. }));
    assert!(matches!(reason(worktree.read("file-out")), PathRefusal::LeavesSandbox { .. }));
    assert_eq!(reason(worktree.write_file("../x", b"x")), PathRefusal::Parent);
    assert_eq!(reason(worktree.write_file(".git", b"x")), PathRefusal::GitDirectory);
    assert_eq!(reason(worktree.resolve("/etc/passwd")), PathRefusal::Absolute);
    assert_eq!(reason(worktree.write_file("src", b"x")), PathRefusal::IsADirectory);
    assert!(matches!(reason(worktree.write_file("vendor/lib/x", b"x")), PathRefusal::Submodule { .. }));
    assert_eq!(reason(worktree.write_file("ignored/x.py", b"x")), PathRefusal::Ignored);
    assert_eq!(reason(worktree.write_file("new.log", b"x")), PathRefusal::Ignored);
    assert_eq!(read(&outside.join("secret")), "secret");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(worktree.dirty_paths().unwrap(), Vec::<String>::new());
    // Deleting a link takes the link.
    worktree.delete("file-out").unwrap();
    assert_eq!(read(&outside.join("secret")), "secret");
}

#[test]
fn a_write_through_a_link_inside_the_sandbox_reaches_and_names_the_real_file() {
    let fixture = Fixture::new();
    symlink("src", fixture.path("lib")).unwrap();
    let sandbox = fixture.sandbox();
    let written = sandbox.worktree.write_file("lib/b.py", b"b = 2\n").unwrap();
    assert_eq!((written.path.as_str(), written.kind), ("src/b.py", ChangeKind::Modified));
    assert_eq!(written.before.as_deref(), Some(&b"b = 1\n"[..]));
    assert_eq!(sandbox.worktree.resolve("lib/b.py").unwrap(), sandbox.worktree.path().join("src/b.py"));
    assert_eq!(sandbox.worktree.dirty_paths().unwrap(), ["src/b.py"]);
}

#[test]
fn edits_of_several_files_are_applied_together_and_reported() {
    let fixture = Fixture::new();
    fixture.write("crlf.py", "one\r\ntwo\r\n");
    fixture.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(fixture.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let sandbox = fixture.sandbox();
    let applied = sandbox
        .worktree
        .apply_edits(&[
            replace("crlf.py", ((1, 0), (1, 3)), "TWO"),
            replace("run.sh", ((1, 0), (1, 0)), "exit\n"),
            FileEdit::Rename { path: "src/b.py".into(), to: "lib/c.py".into() },
            replace("lib/c.py", ((0, 4), (0, 5)), "2"),
            FileEdit::Create { path: "made/new.py".into(), text: "new\n".into() },
            FileEdit::Delete { path: "a.py".into() },
        ])
        .unwrap();
    let told: Vec<_> = applied.iter().map(|e| (e.path.as_str(), e.kind, e.old_path.as_deref())).collect();
    assert_eq!(
        told,
        [
            ("a.py", ChangeKind::Deleted, None),
            ("crlf.py", ChangeKind::Modified, None),
            ("lib/c.py", ChangeKind::Renamed, Some("src/b.py")),
            ("made/new.py", ChangeKind::Added, None),
            ("run.sh", ChangeKind::Modified, None),
        ]
    );
    assert_eq!(applied[2].before.as_deref(), Some(&b"b = 1\n"[..]));
    assert_eq!(applied[2].after.as_deref(), Some(&b"b = 2\n"[..]));
    assert_eq!(read(&sandbox.worktree.path().join("crlf.py")), "one\r\nTWO\r\n");
    assert!(executable(&sandbox.worktree.path().join("run.sh")));
    assert!(!sandbox.worktree.path().join("src").exists());
}

#[test]
fn when_one_edit_fails_no_file_changes() {
    let fixture = Fixture::new();
    fixture.write("latin1.py", b"caf\xe9\n");
    let sandbox = fixture.sandbox();
    let good = replace("a.py", ((0, 0), (0, 4)), "LINE");
    let before = tree(sandbox.worktree.path());
    let attempts = [
        replace("src/b.py", ((9, 0), (9, 1)), "x"),
        replace("latin1.py", ((0, 0), (0, 1)), "x"),
        replace("missing.py", ((0, 0), (0, 0)), "x"),
        FileEdit::Create { path: "src/b.py".into(), text: String::new() },
        FileEdit::Rename { path: "a.py".into(), to: "src/b.py".into() },
        FileEdit::Delete { path: "missing.py".into() },
        FileEdit::Create { path: "x.log".into(), text: String::new() },
        FileEdit::Create { path: "a.py/x".into(), text: String::new() },
    ];
    for bad in attempts {
        assert!(sandbox.worktree.apply_edits(&[good.clone(), bad.clone()]).is_err(), "{bad:?}");
        assert_eq!(tree(sandbox.worktree.path()), before, "{bad:?}");
    }
}

#[test]
fn line_endings_of_the_user_are_kept_whatever_git_would_check_out() {
    let fixture = Fixture::new();
    fixture.write("unix.txt", "one\ntwo\n");
    fixture.write("dos.txt", "one\r\ntwo\r\n");
    fixture.write("mixed.txt", "one\r\ntwo\n");
    fixture.commit("before conversion");
    // From now on a checkout would write CRLF, and git stores LF.
    fixture.write(".gitattributes", "*.txt text eol=crlf\n");
    fixture.git(&["add", ".gitattributes"]);
    fixture.git(&["add", "--renormalize", "."]);
    fixture.git(&["commit", "-q", "-m", "converted"]);
    let sandbox = fixture.sandbox();
    let worktree = &sandbox.worktree;
    assert_eq!(tree(worktree.path()), tree(&fixture.repo));
    let left: Vec<_> = worktree.untouchable().iter().map(|u| (u.path.as_str(), u.reason.clone())).collect();
    assert_eq!(left, [("mixed.txt", UntouchableReason::LineEndings)]);
    assert_eq!(worktree.dirty_paths().unwrap(), Vec::<String>::new());
    assert!(matches!(reason(worktree.write_file("mixed.txt", b"x")), PathRefusal::Untouchable { .. }));
    let head = sandbox.change(&[("unix.txt", "ONE\ntwo\n"), ("dos.txt", "ONE\r\ntwo\r\n")]);
    worktree.restore(&sandbox.snapshot.commit).unwrap();
    assert_eq!(tree(worktree.path()), tree(&fixture.repo));
    worktree.restore(&head).unwrap();
    assert_eq!(read(&worktree.path().join("unix.txt")), "ONE\ntwo\n");
    assert_eq!(read(&worktree.path().join("dos.txt")), "ONE\r\ntwo\r\n");
    // Applied, each file keeps its own endings on disk, and the commit is normalised.
    let applied = sandbox.apply(&fixture.journal(), agents_sandbox::apply::ApplyMode::Commit).unwrap();
    assert_eq!(fixture.read("unix.txt"), "ONE\ntwo\n");
    assert_eq!(fixture.read("dos.txt"), "ONE\r\ntwo\r\n");
    let stored = fixture.git(&["cat-file", "blob", &format!("{}:dos.txt", applied.commit.unwrap())]);
    assert_eq!(stored, "ONE\ntwo");
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn with_autocrlf_files_with_and_without_carriage_returns_come_through() {
    for setting in ["true", "input", "false"] {
        let fixture = Fixture::new();
        fixture.git(&["config", "core.autocrlf", setting]);
        fixture.write("dos.txt", "one\r\ntwo\r\n");
        fixture.write("unix.txt", "one\ntwo\n");
        fixture.commit("files");
        fixture.write("new-dos.txt", "new\r\n");
        let before = fixture.state();
        let sandbox = fixture.sandbox();
        assert_eq!(fixture.state(), before, "{setting}");
        assert_eq!(tree(sandbox.worktree.path()), tree(&fixture.repo), "autocrlf={setting}");
        assert_eq!(sandbox.worktree.untouchable(), [], "autocrlf={setting}");
        sandbox.change(&[("dos.txt", "one\r\nTWO\r\n"), ("unix.txt", "one\nTWO\n")]);
        sandbox.apply(&fixture.journal(), agents_sandbox::apply::ApplyMode::Commit).unwrap();
        assert_eq!(fixture.read("dos.txt"), "one\r\nTWO\r\n", "autocrlf={setting}");
        assert_eq!(fixture.read("unix.txt"), "one\nTWO\n", "autocrlf={setting}");
    }
}

#[test]
fn a_sandbox_with_a_persons_edits_is_not_removed_unless_told_to() {
    // SBX-005; dirty worktrees are never removed.
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "plan\n")]);
    fs::write(sandbox.worktree.path().join("note.txt"), "a person's\n").unwrap();
    match cleanup(&sandbox.repository, plan(), Removal::IfClean) {
        Err(SandboxError::Dirty { paths, .. }) => assert_eq!(paths, ["note.txt"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(read(&fixture.sandbox_dir().join("note.txt")), "a person's\n");
    let removed = cleanup(&sandbox.repository, plan(), Removal::Discard).unwrap();
    assert_eq!(removed, [fixture.sandbox_dir()]);
    assert!(!fixture.sandbox_dir().exists());
    assert_eq!(fixture.git(&["for-each-ref", "refs/cleveragents"]), "");
    assert_eq!(fixture.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(fs::read_dir(fixture.sandbox_dir().parent().unwrap()).unwrap().count(), 0);
    assert_eq!(
        cleanup(&sandbox.repository, plan(), Removal::IfClean).unwrap(),
        Vec::<std::path::PathBuf>::new()
    );
}

// SBX-004
#[test]
fn a_removal_that_was_killed_on_its_way_is_finished_by_the_next() {
    for (killed, files_gone) in [("files", false), ("administration", true)] {
        let fixture = Fixture::new();
        let sandbox = fixture.sandbox();
        sandbox.change(&[("a.py", "plan\n")]);
        let dir = fixture.sandbox_dir();
        let gone = dir.with_file_name(format!(".{}.gone", dir.file_name().unwrap().to_str().unwrap()));
        fs::rename(&dir, &gone).unwrap();
        fs::remove_file(gone.join("a.py")).unwrap();
        if files_gone {
            fs::remove_dir_all(&gone).unwrap();
            let git_dir = fixture.git(&["rev-parse", "--absolute-git-dir"]);
            let admin = fs::read_dir(std::path::Path::new(git_dir.trim()).join("worktrees")).unwrap();
            let admin = admin.map(|entry| entry.unwrap().path()).next().unwrap();
            fs::remove_file(admin.join("HEAD")).unwrap();
        }
        cleanup(&sandbox.repository, plan(), Removal::IfClean).unwrap();
        assert_eq!(fs::read_dir(dir.parent().unwrap()).unwrap().count(), 0, "{killed}");
        assert_eq!(fixture.git(&["worktree", "list"]).lines().count(), 1, "{killed}");
        assert_eq!(fixture.git(&["for-each-ref", "refs/cleveragents"]), "", "{killed}");
    }
}

#[test]
fn cleanup_takes_one_plan_only_and_prune_only_what_is_gone() {
    let fixture = Fixture::new();
    let sandbox = fixture.sandbox();
    let base = snapshot(&sandbox.repository, other_plan()).unwrap();
    let other_dir = fixture.data().join("other");
    Worktree::create(&sandbox.repository, &base, &other_dir, &[]).unwrap();
    let users = fixture.dir.path().canonicalize().unwrap().join("users");
    fixture.git(&["worktree", "add", "-q", "-b", "u", users.to_str().unwrap()]);
    fs::remove_dir_all(&users).unwrap();
    cleanup(&sandbox.repository, plan(), Removal::IfClean).unwrap();
    assert!(other_dir.exists());
    assert!(prune(&sandbox.repository).unwrap().is_empty());
    fs::remove_dir_all(&other_dir).unwrap();
    assert_eq!(prune(&sandbox.repository).unwrap(), [other_dir]);
    let listed = fixture.git(&["worktree", "list"]);
    assert!(listed.contains("users"), "a worktree of the user's is not ours to forget: {listed}");
}

#[test]
fn a_lost_git_file_is_put_back_and_never_makes_git_look_elsewhere() {
    let fixture = Fixture::new();
    // The data directory lies in somebody's repository, which git would find from within the sandbox.
    init(fixture.dir.path());
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", "one\n")]);
    fs::remove_file(sandbox.worktree.path().join(".git")).unwrap();
    fs::write(sandbox.worktree.path().join("new.py"), "new\n").unwrap();
    assert_eq!(sandbox.worktree.dirty_paths().unwrap(), ["new.py"]);
    sandbox.worktree.recover().unwrap();
    assert_eq!(
        git(sandbox.worktree.path(), &["rev-parse", "--show-toplevel"]),
        fixture.sandbox_dir().to_str().unwrap()
    );
}
