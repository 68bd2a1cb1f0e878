//! No program that git's configuration names is ever run, whatever the name it is configured under.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use agents_sandbox::apply::{self, ApplyMode};
use agents_sandbox::{Removal, Repository, SandboxError, Worktree, changed_paths, cleanup, diff, snapshot};

use crate::support::*;

/// A repository, and a program that leaves a mark when it is run.
struct Trap {
    fixture: Fixture,
    program: PathBuf,
    mark: PathBuf,
}

impl Trap {
    fn new() -> Self {
        let fixture = Fixture::new();
        let dir = fixture.dir.path().canonicalize().unwrap();
        let (program, mark) = (dir.join("program"), dir.join("mark"));
        // It answers like a filter that changes nothing, and like a merge driver that is content with one side.
        write(&program, format!("#!/bin/sh\necho \"$@\" >> {}\n[ -t 0 ] || cat\n", mark.display()));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { fixture, program, mark }
    }

    /// Adds to the repository's configuration; `PROGRAM` stands for the program.
    fn configure(&self, text: &[u8]) {
        self.append(".git/config", text);
    }

    fn append(&self, name: &str, text: &[u8]) {
        let path = self.fixture.path(name);
        let mut config = fs::read(&path).unwrap_or_default();
        let program = self.program.to_str().unwrap().as_bytes();
        let mut rest = text;
        while let Some(at) = rest.windows(7).position(|window| window == b"PROGRAM") {
            config.extend_from_slice(&rest[..at]);
            config.extend_from_slice(program);
            rest = &rest[at + 7..];
        }
        config.extend_from_slice(rest);
        write(&path, config);
    }

    fn assert_not_run(&self, when: &str) {
        assert!(!self.mark.exists(), "{when}: {}", read(&self.mark));
    }

    /// The trap works: git itself does run the program.
    fn assert_git_runs_it(&self, args: &[&str]) {
        try_git(&self.fixture.repo, args);
        assert!(self.mark.exists(), "git {args:?} did not run it");
        fs::remove_file(&self.mark).unwrap();
    }
}

/// Everything the crate does, with a merge of contents in it.
fn everything(trap: &Trap, editable: &str) {
    let fixture = &trap.fixture;
    let text = fixture.read(editable);
    fixture.write("untracked.py", "u = 1\n");
    fixture.write("src/b.py", "b = 2\n");
    let sandbox = fixture.sandbox();
    trap.assert_not_run("snapshot and sandbox");
    let worktree = Worktree::open(&sandbox.repository, sandbox.worktree.path()).unwrap();
    let first = sandbox.change(&[(editable, &format!("{text}one\n"))]);
    sandbox.change(&[(editable, &format!("{text}two\n"))]);
    fs::write(worktree.path().join("stray.txt"), "stray\n").unwrap();
    worktree.dirty_paths().unwrap();
    worktree.recover().unwrap();
    worktree.restore(&first).unwrap();
    let base = &sandbox.snapshot.commit;
    worktree.restore_paths(base, &[editable]).unwrap();
    worktree.restore(&first).unwrap();
    worktree.list_files().unwrap();
    sandbox.repository.file_at(base, editable).unwrap();
    changed_paths(&sandbox.repository, base, &first).unwrap();
    assert_eq!(diff(&sandbox.repository, base, &first).unwrap().len(), 1);
    trap.assert_not_run("checkpoints");
    // A commit of the user's in the same file makes a real merge necessary.
    fixture.write(editable, format!("zero\n{text}"));
    try_git(&fixture.repo, &["-c", "core.hooksPath=/dev/null", "add", editable]);
    try_git(
        &fixture.repo,
        &["-c", "core.hooksPath=/dev/null", "commit", "-q", "--no-gpg-sign", "-m", "user"],
    );
    let _ = fs::remove_file(&trap.mark);
    for mode in [ApplyMode::NoCommit, ApplyMode::Commit] {
        let applied = sandbox.apply(&fixture.journal(), mode).unwrap();
        trap.assert_not_run("apply");
        assert_eq!(applied.files.len(), 1);
        assert_eq!(fixture.read(editable), format!("zero\n{text}one\n"), "both changes are there");
        if mode == ApplyMode::NoCommit {
            apply::undo(&fixture.journal()).unwrap();
            assert_eq!(fixture.read(editable), format!("zero\n{text}"));
        }
    }
    apply::resume_or_undo(&fixture.journal()).unwrap();
    apply::undo(&fixture.journal()).unwrap();
    cleanup(&sandbox.repository, plan(), Removal::Discard).unwrap();
    trap.assert_not_run("undo and cleanup");
}

#[test]
fn filters_do_not_run_whatever_their_name() {
    let filter = b"clean = PROGRAM\n\tsmudge = PROGRAM\n\tprocess = PROGRAM\n\trequired = true\n";
    let names: [(&[u8], &[u8]); 7] = [
        (b"lfs", b"lfs"),
        (b"a=b", b"a=b"),
        (b"a=b.c", b"a=b.c"),
        (b"=", b"="),
        (b"\xff", b"\xff"),
        (b"UPPER \xc3\xa9", b"UPPER"),
        (b"q\\\"'$(x)", b"q\"'$(x)"),
    ];
    for (name, attribute) in names {
        let trap = Trap::new();
        trap.append(".gitattributes", &[b"*.bin filter=", attribute, b"\n"].concat());
        trap.fixture.write("x.bin", "x\n");
        trap.fixture.commit("filtered");
        trap.configure(&[b"[filter \"", name, b"\"]\n\t", &filter[..]].concat());
        if name == attribute {
            trap.assert_git_runs_it(&["cat-file", "--filters", "HEAD:x.bin"]);
        }
        trap.fixture.write("x.bin", "changed on disk\n");
        trap.fixture.write("y.bin", "new\n");
        everything(&trap, "a.py");
    }
}

#[test]
fn filters_do_not_run_that_are_configured_for_a_worktree_or_a_branch_only() {
    let conditions: [(&str, &str); 4] = [
        ("gitdir:**/worktrees/**", "worktree"),
        ("onbranch:cleveragents/**", "branch of an apply"),
        ("gitdir:**/.git", "checkout"),
        ("hasconfig:remote.*.url:https://**", "remote"),
    ];
    for (condition, shown) in conditions {
        let trap = Trap::new();
        trap.append(".gitattributes", b"*.py filter=a=b\n");
        trap.fixture.commit("filtered");
        trap.append(".git/evil", b"[filter \"a=b\"]\n\tclean = PROGRAM\n\tsmudge = PROGRAM\n");
        trap.configure(format!("[includeIf \"{condition}\"]\n\tpath = evil\n").as_bytes());
        trap.configure(b"[remote \"origin\"]\n\turl = https://example.org/x\n");
        let fixture = &trap.fixture;
        let everywhere = shown == "checkout" || shown == "remote";
        if shown == "branch of an apply" {
            fixture.git(&["checkout", "-q", "--detach"]);
        }
        let repository = fixture.open();
        let base = snapshot(&repository, plan()).unwrap();
        let worktree = Worktree::create(&repository, &base, &fixture.sandbox_dir(), &[]).unwrap();
        trap.assert_not_run(shown);
        let again = Worktree::open(&repository, worktree.path()).unwrap();
        again.restore(&base.commit).unwrap();
        fs::write(again.path().join("a.py"), lines(21)).unwrap();
        assert_eq!(again.dirty_paths().unwrap().contains(&"a.py".to_owned()), !everywhere);
        if !everywhere {
            let sandbox = Sandbox { repository, snapshot: base, worktree };
            let result = sandbox.change(&[("a.py", &lines(21))]);
            sandbox.worktree.restore(&result).unwrap();
            assert_eq!(sandbox.worktree.dirty_paths().unwrap(), Vec::<String>::new());
            sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
            assert_eq!(fixture.read("a.py"), lines(21));
            trap.assert_not_run(shown);
            apply::resume_or_undo(&fixture.journal()).unwrap();
            apply::undo(&fixture.journal()).unwrap();
        }
        trap.assert_not_run(shown);
    }
}

#[test]
fn a_filter_that_is_configured_while_a_sandbox_is_open_does_not_run() {
    let trap = Trap::new();
    trap.append(".gitattributes", b"*.py filter=late\n");
    trap.fixture.commit("attributes");
    let sandbox = trap.fixture.sandbox();
    let result = sandbox.change(&[("a.py", "a = 1\n")]);
    trap.configure(b"[filter \"late\"]\n\tclean = PROGRAM\n\tsmudge = PROGRAM\n");
    trap.assert_git_runs_it(&["cat-file", "--filters", "HEAD:a.py"]);
    sandbox.worktree.restore(&sandbox.snapshot.commit).unwrap();
    sandbox.worktree.restore(&result).unwrap();
    fs::write(sandbox.worktree.path().join("a.py"), "a = 2\n").unwrap();
    sandbox.worktree.dirty_paths().unwrap();
    assert!(
        sandbox.worktree.checkpoint("late", &["a.py"]).is_err(),
        "the checkout would store something else"
    );
    sandbox.repository.file_at(&result, "a.py").unwrap();
    trap.assert_not_run("a late filter");
}

#[test]
fn merge_drivers_do_not_run_and_no_change_is_lost_by_that() {
    let cases: [(&[u8], &[u8]); 5] = [
        (b"*.py merge=quiet\n", b"[merge \"quiet\"]\n\tdriver = PROGRAM %O %A %B\n"),
        (b"*.py merge=a=b\n", b"[merge \"a=b\"]\n\tdriver = PROGRAM\n"),
        (b"*.py merge=text\n", b"[merge \"text\"]\n\tdriver = PROGRAM\n"),
        (b"", b"[merge]\n\tdefault = quiet\n[merge \"quiet\"]\n\tdriver = PROGRAM\n\trecursive = quiet\n"),
        (b"", b"[merge]\n\tdefault = text\n[merge \"text\"]\n\tdriver = PROGRAM\n"),
    ];
    for (attributes, config) in cases {
        for place in [".gitattributes", ".git/info/attributes"] {
            let trap = Trap::new();
            trap.append(place, attributes);
            trap.fixture.commit("attributes");
            trap.configure(config);
            let (a, b) = (diverging(&trap.fixture, "left"), diverging(&trap.fixture, "right"));
            trap.assert_git_runs_it(&["merge-tree", "--write-tree", &a, &b]);
            everything(&trap, "a.py");
        }
    }
}

/// A commit on top of HEAD that changes a.py, on no branch.
fn diverging(fixture: &Fixture, word: &str) -> String {
    let text = fixture.read("a.py");
    fixture.write("a.py", if word == "left" { format!("{word}\n{text}") } else { format!("{text}{word}\n") });
    fixture.git(&["checkout", "-q", "--detach"]);
    let commit = fixture.commit(word);
    fixture.git(&["checkout", "-q", "main"]);
    commit
}

#[test]
fn attributes_that_choose_a_merge_of_gits_own_stay_in_force() {
    for place in [".gitattributes", ".git/info/attributes"] {
        let fixture = Fixture::new();
        write(&fixture.path(place), "*.txt merge=union\n*.dat -merge\n");
        fixture.write("log.txt", "first\n");
        fixture.write("x.dat", lines(20));
        fixture.commit("attributes");
        let sandbox = fixture.sandbox();
        sandbox.change(&[("log.txt", "first\nplan\n")]);
        fixture.write("log.txt", "first\nuser\n");
        fixture.commit("user");
        sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
        assert_eq!(fixture.read("log.txt"), "first\nuser\nplan\n");
        apply::undo(&fixture.journal()).unwrap();
        // Never merged line by line, though far apart.
        sandbox.change(&[("x.dat", &format!("{}plan\n", lines(20)))]);
        fixture.write("x.dat", format!("user\n{}", lines(20)));
        fixture.commit("user");
        refusal(sandbox.apply(&fixture.journal(), ApplyMode::Commit));
    }
}

#[test]
fn a_repository_of_sha256_objects_is_merged_in() {
    let fixture = Fixture::new();
    fs::remove_dir_all(fixture.path(".git")).unwrap();
    git(&fixture.repo, &["init", "-q", "-b", "main", "--object-format=sha256"]);
    git(&fixture.repo, &["config", "user.name", "Test Person"]);
    git(&fixture.repo, &["config", "user.email", "person@example.org"]);
    fixture.commit("first");
    let sandbox = fixture.sandbox();
    sandbox.change(&[("a.py", &format!("{}plan\n", lines(20)))]);
    fixture.write("a.py", format!("user\n{}", lines(20)));
    fixture.commit("user");
    sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
    assert_eq!(fixture.read("a.py"), format!("user\n{}plan\n", lines(20)));
}

#[test]
fn no_other_program_of_the_configuration_runs() {
    let trap = Trap::new();
    let hooks = ["post-index-change", "reference-transaction", "post-checkout", "pre-commit", "commit-msg"];
    for hook in hooks {
        let name = format!(".git/hooks/{hook}");
        trap.append(&name, b"#!/bin/sh\nexec PROGRAM\n");
        fs::set_permissions(trap.fixture.path(&name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    trap.append(".gitattributes", b"*.py diff=shown\n");
    trap.fixture.git(&["-c", "core.hooksPath=/dev/null", "add", "-A"]);
    trap.fixture.git(&["-c", "core.hooksPath=/dev/null", "commit", "-qm", "attributes"]);
    let _ = fs::remove_file(&trap.mark);
    trap.configure(
        b"[core]\n\tfsmonitor = PROGRAM\n\teditor = PROGRAM\n\tpager = PROGRAM\n\tsshCommand = PROGRAM\n\
          \tgitProxy = PROGRAM\n\taskPass = PROGRAM\n\talternateRefsCommand = PROGRAM\n\tuntrackedCache = true\n\
          [diff]\n\texternal = PROGRAM\n[diff \"shown\"]\n\ttextconv = PROGRAM\n\tcommand = PROGRAM\n\
          [commit]\n\tgpgSign = true\n[gpg]\n\tprogram = PROGRAM\n[gpg \"ssh\"]\n\tprogram = PROGRAM\n\
          [tag]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n[credential]\n\thelper = PROGRAM\n\
          [remote \"origin\"]\n\turl = ssh://example.org/x\n\tuploadpack = PROGRAM\n\treceivepack = PROGRAM\n\
          \tpromisor = true\n\tvcs = program\n[protocol]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always\n\
          [uploadpack]\n\tpackObjectsHook = PROGRAM\n[submodule \"x\"]\n\tupdate = !PROGRAM\n\turl = x\n\
          [submodule]\n\trecurse = true\n[sequence]\n\teditor = PROGRAM\n[interactive]\n\tdiffFilter = PROGRAM\n\
          [pager]\n\tstatus = PROGRAM\n\tdiff = PROGRAM\n[alias]\n\tstatus = !PROGRAM\n\tls-files = !PROGRAM\n\
          [trailer \"x\"]\n\tcommand = PROGRAM\n[hook \"a=b\"]\n\tcommand = PROGRAM\n\tevent = post-index-change\n\
          \tevent = reference-transaction\n[gc]\n\tauto = 1\n\trecentObjectsHook = PROGRAM\n",
    );
    trap.assert_git_runs_it(&["status"]);
    everything(&trap, "a.py");
}

#[test]
fn nothing_is_fetched_for_a_partial_clone_and_the_missing_file_is_named() {
    let trap = Trap::new();
    let origin = &trap.fixture;
    let old = origin.git(&["rev-parse", "HEAD"]);
    origin.write("a.py", "new\n");
    origin.commit("second");
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    origin.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let clone = origin.dir.path().canonicalize().unwrap().join("clone");
    let url = format!("file://{}", origin.repo.display());
    git(origin.dir.path(), &["clone", "-q", "--filter=blob:none", &url, clone.to_str().unwrap()]);
    // It ends at once: git and a program that copies would wait for each other.
    let upload = format!("echo uploadpack >> {}; false", trap.mark.display());
    git(&clone, &["config", "remote.origin.uploadpack", &upload]);
    git(&clone, &["config", "protocol.file.allow", "always"]);
    let repository = Repository::open(&clone).unwrap();
    let error = repository.file_at(&old.parse().unwrap(), "a.py").unwrap_err();
    trap.assert_not_run("a missing file");
    match &error {
        SandboxError::MissingObject { path, .. } => assert_eq!(path.as_deref(), Some("a.py")),
        other => panic!("{other:?}"),
    }
    assert!(error.to_string().contains("git fetch --refetch"), "{error}");
    let base = snapshot(&repository, plan()).unwrap();
    let error = diff(&repository, &old.parse().unwrap(), &base.commit).unwrap_err();
    assert!(matches!(error, SandboxError::MissingObject { .. }), "{error:?}");
    trap.assert_not_run("a missing file in a diff");
    // What is there can be worked with.
    let worktree = Worktree::create(&repository, &base, &origin.sandbox_dir(), &[]).unwrap();
    worktree.write_file("a.py", b"plan\n").unwrap();
    worktree.checkpoint("plan", &["a.py"]).unwrap();
    // Git itself would have run it.
    try_git(&clone, &["cat-file", "blob", &format!("{old}:a.py")]);
    assert!(trap.mark.exists());
}
