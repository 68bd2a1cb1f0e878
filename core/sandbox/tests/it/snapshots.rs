//! The base of a plan is what the user has, and taking it leaves no trace.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use agents_sandbox::{SandboxError, Snapshot, UntouchableReason, snapshot};

use crate::support::*;

fn take(fixture: &Fixture) -> Snapshot {
    snapshot(&fixture.open(), plan()).unwrap()
}

fn content(fixture: &Fixture, snapshot: &Snapshot, path: &str) -> String {
    fixture.git(&["cat-file", "blob", &format!("{}:{path}", snapshot.commit)])
}

fn reason(snapshot: &Snapshot, path: &str) -> Option<UntouchableReason> {
    snapshot.untouchable.iter().find(|file| file.path == path).map(|file| file.reason.clone())
}

#[test]
fn a_dirty_tree_is_taken_as_it_is_and_stays_as_it_is() {
    // Ruling 26, PLAN-055: full ULID in the reference.
    let fixture = Fixture::new();
    fixture.write("a.py", "changed\n");
    fixture.write("staged.py", "staged\n");
    fixture.git(&["add", "staged.py"]);
    fixture.write("staged.py", "staged, then changed\n");
    fixture.write("intent.py", "to be added\n");
    fixture.git(&["add", "-N", "intent.py"]);
    fixture.write("new/untracked.py", "new\n");
    fixture.write("debug.log", "ignored\n");
    fs::remove_file(fixture.path("src/b.py")).unwrap();
    let before = fixture.state();
    let index_bytes = fs::read(fixture.path(".git/index")).unwrap();

    let snapshot = take(&fixture);

    assert_eq!(fixture.state(), before);
    assert_eq!(fs::read(fixture.path(".git/index")).unwrap(), index_bytes);
    assert_eq!(content(&fixture, &snapshot, "a.py"), "changed");
    assert_eq!(content(&fixture, &snapshot, "staged.py"), "staged, then changed");
    assert_eq!(content(&fixture, &snapshot, "intent.py"), "to be added");
    assert_eq!(content(&fixture, &snapshot, "new/untracked.py"), "new");
    let names = fixture.git(&["ls-tree", "-r", "--name-only", snapshot.commit.as_str()]);
    assert_eq!(names, ".gitignore\na.py\nintent.py\nnew/untracked.py\nstaged.py");
    assert_eq!(snapshot.branch.as_deref(), Some("main"));
    assert_eq!(fixture.git(&["rev-parse", &format!("{}^", snapshot.commit)]), snapshot.head.as_str());
    let reference = format!("refs/cleveragents/plan-{PLAN}/base");
    assert_eq!(fixture.git(&["rev-parse", &reference]), snapshot.commit.as_str());
    assert!(!snapshot.is_clean(&fixture.open()).unwrap());
}

#[test]
fn a_clean_tree_gives_the_tree_of_head() {
    let fixture = Fixture::new();
    let snapshot = take(&fixture);
    assert!(snapshot.is_clean(&fixture.open()).unwrap());
    assert_eq!(snapshot.untouchable, []);
}

#[test]
fn hooks_and_a_missing_identity_do_not_matter() {
    let fixture = Fixture::new();
    fixture.git(&["config", "--unset", "user.name"]);
    fixture.git(&["config", "--unset", "user.email"]);
    fixture.git(&["config", "user.useConfigOnly", "true"]);
    for hook in [
        "pre-commit",
        "post-commit",
        "commit-msg",
        "reference-transaction",
        "post-index-change",
        "post-checkout",
    ] {
        let path = fixture.path(".git/hooks").join(hook);
        write(&path, format!("#!/bin/sh\ntouch '{}'\nexit 1\n", fixture.dir.path().join("ran").display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fixture.write("a.py", "changed\n");
    let sandbox = fixture.sandbox();
    sandbox.change(&[("src/b.py", "b = 2\n")]);
    assert!(!fixture.dir.path().join("ran").exists());
    let author = fixture.git(&["log", "-1", "--format=%an <%ae>", sandbox.snapshot.commit.as_str()]);
    assert_eq!(author, "CleverAgents <agents@localhost>");
}

#[test]
fn links_modes_and_bytes_that_are_not_text_are_kept() {
    let fixture = Fixture::new();
    let outside = fixture.dir.path().join("outside");
    fs::write(&outside, "secret").unwrap();
    symlink("a.py", fixture.path("inside")).unwrap();
    symlink(&outside, fixture.path("outside")).unwrap();
    symlink("nowhere", fixture.path("dangling")).unwrap();
    fixture.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(fixture.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fixture.write("latin1.py", b"# caf\xe9\n");
    let snapshot = take(&fixture);
    let listing = fixture.git(&["ls-tree", "-r", snapshot.commit.as_str()]);
    let mode =
        |path: &str| listing.lines().find(|l| l.ends_with(&format!("\t{path}"))).map(|l| l[..6].to_owned());
    for link in ["inside", "outside", "dangling"] {
        assert_eq!(mode(link).as_deref(), Some("120000"), "{link}");
    }
    assert_eq!(content(&fixture, &snapshot, "outside"), outside.to_str().unwrap());
    assert_eq!(mode("run.sh").as_deref(), Some("100755"));
    let latin = try_git(&fixture.repo, &["cat-file", "blob", &format!("{}:latin1.py", snapshot.commit)]);
    assert_eq!(latin.stdout, b"# caf\xe9\n");
}

#[test]
fn names_that_are_not_text_are_kept_and_named() {
    let fixture = Fixture::new();
    let name = OsStr::from_bytes(b"caf\xe9.py");
    fs::write(fixture.repo.join(name), "x\n").unwrap();
    let snapshot = take(&fixture);
    assert_eq!(reason(&snapshot, "caf\u{fffd}.py"), Some(UntouchableReason::NameNotUtf8));
    let names =
        try_git(&fixture.repo, &["ls-tree", "-r", "-z", "--name-only", snapshot.commit.as_str()]).stdout;
    assert!(names.split(|b| *b == 0).any(|n| n == name.as_bytes()));
}

#[test]
fn a_very_large_file_stays_out_only_when_it_is_untracked() {
    let fixture = Fixture::new();
    let large = |name: &str| fs::File::create(fixture.path(name)).unwrap().set_len(50 << 20).unwrap();
    large("tracked.bin");
    fixture.commit("large");
    large("untracked.bin");
    let snapshot = take(&fixture);
    assert_eq!(reason(&snapshot, "untracked.bin"), Some(UntouchableReason::TooLarge { bytes: 50 << 20 }));
    assert_eq!(reason(&snapshot, "tracked.bin"), None);
    let names = fixture.git(&["ls-tree", "--name-only", snapshot.commit.as_str()]);
    assert!(names.contains("tracked.bin") && !names.contains("untracked.bin"));
}

#[test]
fn submodules_and_nested_repositories_are_left_alone() {
    let library = Fixture::new();
    let fixture = Fixture::new();
    fixture.git(&["submodule", "add", "-q", library.repo.to_str().unwrap(), "vendor/lib"]);
    let link = fixture.commit("submodule");
    let recorded = fixture.git(&["rev-parse", &format!("{link}:vendor/lib")]);
    // The user has moved the submodule on and edited in it.
    git(&fixture.path("vendor/lib"), &["config", "user.name", "x"]);
    git(&fixture.path("vendor/lib"), &["config", "user.email", "x@example.org"]);
    write(&fixture.path("vendor/lib/new.py"), "x\n");
    commit(&fixture.path("vendor/lib"), "in the submodule");
    write(&fixture.path("vendor/lib/dirty.py"), "x\n");
    fs::create_dir(fixture.path("nested")).unwrap();
    init(&fixture.path("nested"));
    write(&fixture.path("nested/x.py"), "x\n");
    let before = fixture.state();
    let snapshot = take(&fixture);
    assert_eq!(fixture.state(), before);
    assert_eq!(snapshot.submodules, ["vendor/lib"]);
    assert_eq!(reason(&snapshot, "nested"), Some(UntouchableReason::NestedRepository));
    assert_eq!(fixture.git(&["rev-parse", &format!("{}:vendor/lib", snapshot.commit)]), recorded);
    assert!(!fixture.git(&["ls-tree", "--name-only", snapshot.commit.as_str()]).contains("nested"));
}

#[test]
fn files_behind_a_filter_are_named_and_no_filter_runs() {
    let fixture = Fixture::new();
    fixture.write(".gitattributes", "*.bin filter=lfs\n");
    fixture.write("old.bin", "stored pointer\n");
    fixture.commit("filtered");
    fixture.git(&["config", "filter.lfs.clean", "false"]);
    fixture.git(&["config", "filter.lfs.smudge", "false"]);
    fixture.git(&["config", "filter.lfs.process", "false"]);
    fixture.git(&["config", "filter.lfs.required", "true"]);
    fixture.write("old.bin", "the real, much longer content on disk\n");
    fixture.write("new.bin", "new content\n");
    let sandbox = fixture.sandbox();
    let filtered = Some(UntouchableReason::Filter { filter: "lfs".to_owned() });
    assert_eq!(reason(&sandbox.snapshot, "old.bin"), filtered);
    assert_eq!(reason(&sandbox.snapshot, "new.bin"), filtered);
    assert_eq!(content(&fixture, &sandbox.snapshot, "old.bin"), "stored pointer");
    let json = serde_json::to_string(&sandbox.snapshot).unwrap();
    assert!(json.contains(r#"{"path":"new.bin","reason":"filter","filter":"lfs"}"#), "{json}");
    assert_eq!(serde_json::from_str::<Snapshot>(&json).unwrap(), sandbox.snapshot);
    // Programs in the sandbox see what the user sees; nothing of it counts as a change.
    assert_eq!(read(&sandbox.worktree.path().join("old.bin")), "the real, much longer content on disk\n");
    assert_eq!(read(&sandbox.worktree.path().join("new.bin")), "new content\n");
    assert_eq!(sandbox.worktree.dirty_paths().unwrap(), Vec::<String>::new());
    assert!(sandbox.worktree.write_file("old.bin", b"x").is_err());
    sandbox.worktree.restore(&sandbox.snapshot.commit).unwrap();
    assert_eq!(read(&sandbox.worktree.path().join("old.bin")), "the real, much longer content on disk\n");
    assert_eq!(read(&sandbox.worktree.path().join("new.bin")), "new content\n");
    // A new file of a plan under the filter cannot be stored as it is.
    sandbox.worktree.write_file("made.bin", b"x").unwrap();
    assert!(sandbox.worktree.checkpoint("made", &["made.bin"]).is_err());
}

#[test]
fn files_hidden_from_git_are_named_and_keep_their_recorded_content() {
    let fixture = Fixture::new();
    fixture.git(&["update-index", "--skip-worktree", "a.py"]);
    fixture.git(&["update-index", "--assume-unchanged", "src/b.py"]);
    fixture.write("a.py", "private\n");
    fixture.write("src/b.py", "private\n");
    let sandbox = fixture.sandbox();
    assert_eq!(reason(&sandbox.snapshot, "a.py"), Some(UntouchableReason::Hidden));
    assert_eq!(reason(&sandbox.snapshot, "src/b.py"), Some(UntouchableReason::Hidden));
    assert!(sandbox.snapshot.is_clean(&sandbox.repository).unwrap());
    assert_eq!(read(&sandbox.worktree.path().join("a.py")), "private\n");
    assert_eq!(sandbox.worktree.dirty_paths().unwrap(), Vec::<String>::new());
}

#[test]
fn a_sparse_checkout_gives_a_sparse_sandbox() {
    let fixture = Fixture::new();
    fixture.write("big/one.py", "1\n");
    fixture.commit("big");
    fixture.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "src"]);
    assert!(!fixture.path("big").exists());
    fixture.write("src/b.py", "b = 3\n");
    let sandbox = fixture.sandbox();
    assert_eq!(content(&fixture, &sandbox.snapshot, "big/one.py"), "1");
    assert!(!sandbox.worktree.path().join("big").exists());
    assert_eq!(sandbox.worktree.read("src/b.py").unwrap(), b"b = 3\n");
    sandbox.worktree.write_file("big/one.py", b"2\n").unwrap();
    assert!(matches!(
        sandbox.worktree.checkpoint("outside", &["big/one.py"]),
        Err(SandboxError::PathRefused { .. })
    ));
}

#[test]
fn unresolved_conflicts_are_refused_with_their_names_and_resolved_ones_are_not() {
    let fixture = Fixture::new();
    fixture.git(&["checkout", "-q", "-b", "side"]);
    fixture.write("a.py", "theirs\n");
    fixture.commit("side");
    fixture.git(&["checkout", "-q", "main"]);
    fixture.write("a.py", "ours\n");
    fixture.commit("main");
    assert!(!try_git(&fixture.repo, &["merge", "side"]).status.success());
    match snapshot(&fixture.open(), plan()) {
        Err(SandboxError::Unmerged { paths }) => assert_eq!(paths, ["a.py"]),
        other => panic!("{other:?}"),
    }
    fixture.write("a.py", "resolved\n");
    fixture.git(&["add", "a.py"]);
    let snapshot = take(&fixture);
    assert_eq!(content(&fixture, &snapshot, "a.py"), "resolved");
    assert!(fixture.path(".git/MERGE_HEAD").exists());
}

#[test]
fn a_file_that_became_a_directory_and_the_reverse_are_taken() {
    let fixture = Fixture::new();
    fs::remove_file(fixture.path("a.py")).unwrap();
    fixture.write("a.py/inner.py", "inner\n");
    fs::remove_dir_all(fixture.path("src")).unwrap();
    fixture.write("src", "a file now\n");
    let snapshot = take(&fixture);
    let names = fixture.git(&["ls-tree", "-r", "--name-only", snapshot.commit.as_str()]);
    assert_eq!(names, ".gitignore\na.py/inner.py\nsrc");
}

#[test]
fn the_index_lock_of_another_git_process_does_not_hinder_a_snapshot() {
    let fixture = Fixture::new();
    fixture.write(".git/index.lock", "");
    fixture.write("a.py", "changed\n");
    assert_eq!(content(&fixture, &take(&fixture), "a.py"), "changed");
    assert!(fixture.path(".git/index.lock").exists());
}

#[test]
fn environment_variables_that_point_git_elsewhere_are_ignored() {
    // The child runs this very test with a hostile environment and must behave the same.
    if std::env::var_os("HOSTILE").is_some() {
        let fixture_path = std::env::var_os("HOSTILE").unwrap();
        let repository = agents_sandbox::Repository::open(fixture_path.as_ref()).unwrap();
        snapshot(&repository, plan()).unwrap();
        return;
    }
    let fixture = Fixture::new();
    let other = Fixture::new();
    let before = other.state();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "snapshots::environment_variables_that_point_git_elsewhere_are_ignored"])
        .env("HOSTILE", &fixture.repo)
        .env("GIT_DIR", other.path(".git"))
        .env("GIT_WORK_TREE", &other.repo)
        .env("GIT_INDEX_FILE", other.path(".git/index"))
        .env("GIT_OBJECT_DIRECTORY", other.path(".git/objects"))
        .env("GIT_CONFIG_PARAMETERS", "'core.bare=true'")
        .env("GIT_LITERAL_PATHSPECS", "0")
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(other.state(), before);
    assert!(!fixture.git(&["for-each-ref", "refs/cleveragents"]).is_empty());
    assert!(other.git(&["for-each-ref", "refs/cleveragents"]).is_empty());
}
