//! Checkouts that are hard to handle. After every apply the user's own things are as they were.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use agents_e2e::{Repo, World};
use serde_json::json;

use crate::support::{executed, world_with_fake};

const BAD: &str = "x = bad_one\n";
const GOOD: &str = "x = good_one\n";

/// Gives a repository what a plan must not touch: a stash entry, another branch, a tag, and hooks that leave a trace
/// and forbid everything.
fn with_belongings(world: &World, repo: &Repo) {
    repo.git(&["branch", "other"]);
    repo.git(&["tag", "v1"]);
    let files = repo.git(&["ls-files"]);
    let first = files.lines().find(|name| !name.starts_with('.')).expect("there is a file").to_owned();
    let saved = repo.read(&first);
    repo.write(&first, "a change that was put away\n");
    repo.git(&["stash", "push", "-q"]);
    assert_eq!(repo.read(&first), saved);
    for hook in
        ["pre-commit", "commit-msg", "post-commit", "post-checkout", "post-merge", "reference-transaction"]
    {
        let file = repo.file(format!(".git/hooks/{hook}"));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let trace = world.path("hook-ran");
        std::fs::write(&file, format!("#!/bin/sh\necho {hook} >> '{}'\nexit 1\n", trace.display())).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Plans on a repository and applies; the user's belongings are compared before and after.
fn applied_without_harm(world: &World, repo: &Repo) {
    with_belongings(world, repo);
    let before = repo.untouched("main");
    let plan = executed(world, repo);
    plan.apply();
    plan.assert_at("apply/applied");
    assert_eq!(repo.untouched("main"), before);
    assert!(
        !world.path("hook-ran").exists(),
        "hooks ran: {:?}",
        std::fs::read_to_string(world.path("hook-ran"))
    );
    assert_eq!(repo.worktrees(), 0, "the sandbox's worktree is gone");
    world.assert_quiet();
}

#[test]
fn a_dirty_tree_stays_as_dirty_as_it_was() {
    let world = world_with_fake();
    let repo = world.repo_with("repo", &[("a.py", BAD), ("staged.txt", "1\n"), ("changed.txt", "1\n")]);
    repo.write("staged.txt", "2\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("changed.txt", "2\n").write("new.txt", "untracked\n");
    with_belongings(&world, &repo);
    // The stash took the changes along; make them again.
    repo.write("staged.txt", "2\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("changed.txt", "2\n").write("new.txt", "untracked\n");
    let (status, before) = (repo.status(), repo.untouched("main"));
    assert_eq!(status.len(), 3, "{status:?}");

    let plan = executed(&world, &repo);
    plan.apply();
    plan.assert_at("apply/applied");
    assert_eq!(repo.text("a.py"), GOOD);
    assert_eq!((repo.status(), repo.untouched("main")), (status, before));
    assert_eq!(
        repo.git(&["diff", "--name-only", "HEAD^", "HEAD"]),
        "a.py",
        "only the plan's changes are committed"
    );
    assert_eq!(repo.committed("staged.txt"), "1\n");
}

#[test]
fn a_fix_in_uncommitted_lines_is_refused_by_name_and_goes_in_with_no_commit() {
    let world = world_with_fake();
    let repo = world.repo_with("repo", &[("a.py", "x = 1\n")]);
    repo.write("a.py", "x = 1\ny = bad_new\n").write("untracked.py", BAD);
    let head = repo.head();
    let plan = executed(&world, &repo);
    let refused = plan.refused("apply", &["--yes"]);
    assert!(refused.words().contains("a.py") || refused.text.contains("a.py"), "{}", refused.text);
    plan.assert_at("execute/complete+apply_approval");
    plan.ok("apply", &["--yes", "--no-commit"]);
    plan.assert_at("apply/applied");
    assert_eq!(repo.text("a.py"), "x = 1\ny = good_new\n");
    assert_eq!(repo.text("untracked.py"), GOOD);
    assert_eq!(repo.head(), head);
    assert_eq!(repo.status(), [" M a.py", "?? untracked.py"]);
}

#[test]
fn line_endings_stay_as_they_are() {
    let world = world_with_fake();
    let repo = world.repo("repo");
    repo.write("plain.py", "a = bad_one\r\nb = 2\r\n");
    repo.write("mixed.py", "a = bad_one\r\nb = 2\nc = 3\r\n");
    repo.write(".gitattributes", "attr.py text eol=crlf\n").write("attr.py", "a = bad_one\r\nb = 2\r\n");
    repo.write("no-end.py", "a = bad_one");
    repo.commit("start");
    applied_without_harm(&world, &repo);
    assert_eq!(repo.text("plain.py"), "a = good_one\r\nb = 2\r\n");
    assert_eq!(repo.text("mixed.py"), "a = good_one\r\nb = 2\nc = 3\r\n");
    assert_eq!(repo.text("attr.py"), "a = good_one\r\nb = 2\r\n");
    assert_eq!(repo.text("no-end.py"), "a = good_one");
    assert_eq!(repo.status(), [] as [&str; 0]);
}

#[test]
fn what_is_not_utf8_or_very_large_is_named_and_left_alone() {
    let world = world_with_fake();
    let repo = world.repo("repo");
    let latin = b"# caf\xe9\nx = bad_one\n";
    repo.write("latin.py", latin).write("a.py", BAD);
    repo.write(OsStr::from_bytes(b"n\xe4me.py"), BAD);
    let mut large = Vec::with_capacity(50 << 20);
    while large.len() < 50 << 20 {
        large.extend_from_slice(
            b"# a line of a file that nobody reads, and that somebody committed all the same\n",
        );
    }
    large.extend_from_slice(BAD.as_bytes());
    repo.write("large.py", &large);
    repo.commit("start");
    let plan = executed(&world, &repo);
    let told = plan.summary("strategize");
    for name in ["latin.py", "large.py"] {
        assert!(told.contains(name), "{name} is not named:\n{told}");
    }
    plan.apply();
    assert_eq!(repo.text("a.py"), GOOD);
    assert_eq!(repo.read("latin.py"), latin);
    assert_eq!(repo.read(OsStr::from_bytes(b"n\xe4me.py")), BAD.as_bytes());
    assert!(repo.read("large.py") == large, "the large file changed");
    assert_eq!(repo.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "a.py");
    assert_eq!(repo.status(), [] as [&str; 0]);
}

#[test]
fn a_submodule_is_left_alone() {
    let world = world_with_fake();
    let library = world.repo_with("library", &[("lib.py", BAD)]);
    let repo = world.repo_with("repo", &[("a.py", BAD)]);
    repo.git(&["submodule", "--quiet", "add", library.path().to_str().unwrap(), "vendored"]);
    repo.commit("with a submodule");
    let pinned = repo.git(&["rev-parse", "HEAD:vendored"]);
    applied_without_harm(&world, &repo);
    assert_eq!(repo.text("a.py"), GOOD);
    assert_eq!(repo.text("vendored/lib.py"), BAD);
    assert_eq!(repo.git(&["rev-parse", "HEAD:vendored"]), pinned);
    assert_eq!(repo.status(), [] as [&str; 0]);
}

#[test]
fn symbolic_links_are_not_followed_out_of_the_checkout() {
    let world = world_with_fake();
    let outside = world.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("theirs.py"), BAD).unwrap();
    let repo = world.repo_with("repo", &[("a.py", BAD), ("sub/b.py", BAD)]);
    symlink("a.py", repo.file("inside.py")).unwrap();
    symlink(outside.join("theirs.py"), repo.file("outside.py")).unwrap();
    symlink(&outside, repo.file("folder")).unwrap();
    symlink("nowhere.py", repo.file("dangling.py")).unwrap();
    repo.commit("with links");
    applied_without_harm(&world, &repo);
    assert_eq!((repo.text("a.py"), repo.text("sub/b.py")), (GOOD.to_owned(), GOOD.to_owned()));
    assert_eq!(std::fs::read_to_string(outside.join("theirs.py")).unwrap(), BAD);
    assert_eq!(std::fs::read_link(repo.file("inside.py")).unwrap(), OsStr::new("a.py"));
    assert_eq!(std::fs::read_link(repo.file("dangling.py")).unwrap(), OsStr::new("nowhere.py"));
    assert_eq!(repo.status(), [] as [&str; 0]);
}

#[test]
fn on_a_detached_head_the_commit_goes_to_a_new_branch_and_that_is_said() {
    let world = world_with_fake();
    let repo = world.repo_with("repo", &[("a.py", BAD)]);
    let start = repo.head();
    repo.git(&["checkout", "-q", "--detach"]);
    let plan = executed(&world, &repo);
    let applied = plan.apply();
    plan.assert_at("apply/applied");
    let branch = format!("cleveragents/plan-{}", plan.id);
    assert!(applied.text.contains(&branch), "{}", applied.text);
    assert_eq!(repo.git(&["rev-parse", &format!("{branch}^")]), start);
    assert_eq!(repo.git(&["rev-parse", "main"]), start);
    assert_eq!(repo.text("a.py"), GOOD);
    assert_eq!(repo.status(), [] as [&str; 0]);
}

#[test]
fn a_branch_that_moved_on_is_merged() {
    let world = world_with_fake();
    let lines: String = (0..20).map(|n| format!("line_{n} = {n}\n")).collect();
    let repo = world.repo_with("repo", &[("a.py", &format!("{BAD}{lines}")), ("other.py", "y = 1\n")]);
    let plan = executed(&world, &repo);
    repo.write("a.py", format!("{BAD}{lines}mine = True\n")).write("other.py", "y = 2\n");
    let mine = repo.commit("my own work");
    plan.apply();
    plan.assert_at("apply/applied");
    assert_eq!(repo.text("a.py"), format!("{GOOD}{lines}mine = True\n"));
    assert_eq!(repo.text("other.py"), "y = 2\n");
    assert_eq!(repo.git(&["rev-parse", "HEAD^"]), mine);
    assert_eq!(repo.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "a.py");
    assert_eq!(repo.status(), [] as [&str; 0]);
}

#[test]
fn newer_edits_in_a_touched_file_refuse_the_apply_by_name_and_change_nothing() {
    let world = world_with_fake();
    let lines: String = (0..20).map(|n| format!("line_{n} = {n}\n")).collect();
    let repo = world.repo_with("repo", &[("a.py", &format!("{BAD}{lines}")), ("b.py", BAD)]);
    let plan = executed(&world, &repo);
    let edited = format!("{BAD}{lines}mine = True\n");
    repo.write("a.py", &edited);
    let (head, index, files) = (repo.head(), repo.index(), repo.files());
    let records = plan.records();
    let refused = plan.refused("apply", &["--yes"]);
    assert_eq!(refused.code(), "INVALID_STATE", "{}", refused.text);
    let told = format!("{} {}", refused.words(), refused.data);
    assert!(told.contains("a.py") && !told.contains("b.py"), "{told}");
    assert!(told.contains("--no-commit"), "the way out is named: {told}");
    plan.assert_at("execute/complete+apply_approval");
    assert_eq!((repo.head(), repo.index(), repo.files()), (head.clone(), index.clone(), files));
    assert_eq!(plan.records(), records);

    plan.ok("apply", &["--yes", "--no-commit"]);
    plan.assert_at("apply/applied");
    assert_eq!(repo.text("a.py"), format!("{GOOD}{lines}mine = True\n"));
    assert_eq!(repo.text("b.py"), GOOD);
    assert_eq!((repo.head(), repo.index()), (head, index));
}

// APP-010
#[test]
fn a_commit_that_conflicts_constrains_the_plan_and_leaves_a_way_out() {
    let world = world_with_fake();
    let repo = world.repo_with("repo", &[("a.py", BAD), ("b.py", BAD)]);
    let plan = executed(&world, &repo);
    repo.write("a.py", "x = something_else\n");
    let mine = repo.commit("the same line");
    let files = repo.files();
    let answer = plan.call("apply", &["--yes"]);
    assert!(!answer.is_ok(), "{}", answer.text);
    let status = plan.status();
    assert_eq!((&status["phase"], &status["state"]), (&json!("apply"), &json!("constrained")), "{status:#}");
    assert!(status["error"]["message"].as_str().unwrap().contains("a.py"), "{status:#}");
    assert!(!status["allowed_actions"].as_array().unwrap().is_empty(), "{status:#}");
    assert_eq!((repo.head(), repo.files()), (mine, files));
    assert_eq!(repo.status(), [] as [&str; 0]);
    plan.ok("cancel", &[]);
    plan.assert_at("apply/cancelled");
}

#[test]
fn no_repository_a_bare_one_and_one_without_a_commit_are_refused() {
    let world = world_with_fake();
    std::fs::create_dir(world.path("plain")).unwrap();
    let unborn = world.repo("unborn");
    let full = world.repo_with("full", &[("a.py", BAD)]);
    full.git(&["clone", "-q", "--bare", ".", world.path("bare").to_str().unwrap()]);
    for name in ["plain", "bare", "unborn", "missing"] {
        let (path, resource) = (world.path(name), format!("local/{name}"));
        let path = path.to_str().unwrap();
        let mut answer = world.call(&["resource", "add", "git-checkout", &resource, "--path", path]);
        if answer.is_ok() {
            world.ok(&["project", "create", &resource, "--resource", &resource]);
            answer = world.call(&["plan", "use", "local/fix-diagnostics", &resource]);
        }
        assert_eq!((answer.status.as_str(), answer.exit_code), ("error", 1), "{name}: {}", answer.text);
        assert!(
            answer.words().contains(path) || answer.words().contains(&resource),
            "{name}: {}",
            answer.text
        );
    }
    assert_eq!(world.ok(&["plan", "list"]).data["total"], 0);
    assert!(unborn.files().is_empty());
}

#[test]
fn a_linked_worktree_is_a_checkout_like_any_other() {
    let world = world_with_fake();
    let main = world.repo_with("main", &[("a.py", BAD)]);
    let linked = world.path("linked");
    main.git(&["worktree", "add", "-q", "-b", "feature", linked.to_str().unwrap()]);
    let before = main.untouched("feature");
    let linked = main.at(&linked);
    let plan = executed(&world, &linked);
    plan.apply();
    plan.assert_at("apply/applied");
    assert_eq!((linked.text("a.py"), linked.status()), (GOOD.to_owned(), vec![]));
    assert_eq!((main.text("a.py"), main.status()), (BAD.to_owned(), vec![]));
    assert_eq!(main.untouched("feature"), before);
}
