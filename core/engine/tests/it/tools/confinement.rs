//! No tool leaves the sandbox, whatever a path is made of (SEC-004, 009 to 012; TOOL-035).

use std::os::unix::fs::symlink;

use serde_json::json;

use super::caller::Called;
use crate::harness::git;

#[test]
fn no_path_leads_a_tool_out_of_the_sandbox() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "secret\n").unwrap();
    let absolute = secret.display().to_string();
    let paths = [
        "../secret",
        "src/../../secret",
        absolute.as_str(),
        "/etc/passwd",
        "/proc/self/environ",
        "up/secret",
        "abs",
        "dir/secret",
        ".git/config",
        ".GIT/config",
        "",
        "a\u{0}b",
        "path://nowhere/a",
        "link-to-git/config",
        "~/.bashrc/x/../../..",
        "\u{2025}/\u{ff0e}\u{ff0e}/../secret",
    ];
    let mut calls = Vec::new();
    for path in paths {
        calls.push(("read_file", json!({ "path": path })));
        calls.push(("write_file", json!({ "path": path, "content": "evil" })));
        calls
            .push(("edit_file", json!({ "path": path, "edits": [{ "start_line": 1, "new_text": "evil" }] })));
        // A link itself is the plan's, and may be deleted or moved over.
        if path == "abs" {
            continue;
        }
        calls.push(("delete_file", json!({ "path": path })));
        calls.push(("move_file", json!({ "source": "a.txt", "destination": path })));
        calls.push(("copy_file", json!({ "source": path, "destination": "stolen.txt" })));
        calls.push(("get_file_info", json!({ "path": path })));
        calls.push(("git_blame", json!({ "path": path })));
        calls.push(("create_directory", json!({ "path": format!("{path}/new") })));
        calls.push(("delete_directory", json!({ "path": path, "recursive": true })));
    }
    let called =
        Called::with(&[("a.txt", "one\n"), ("src/b.txt", "two\n")], &calls, "", "trusted", |bench| {
            let repo = bench.repo();
            symlink(outside.path(), repo.join("up")).unwrap();
            symlink(&secret, repo.join("abs")).unwrap();
            symlink("../..", repo.join("dir")).unwrap();
            symlink(".git", repo.join("link-to-git")).unwrap();
            git(&repo, &["add", "-A"]);
            git(&repo, &["commit", "-q", "-m", "links"]);
        });
    for (at, (tool, args)) in calls.iter().enumerate() {
        if !(*tool == "get_file_info" && args["path"] == "") {
            let said = called.refused(at);
            assert!(!said.contains("secret\n"), "{tool} {args}: {said}");
        }
        let result = called.result(at).to_string();
        assert!(!result.contains("root:") && !result.contains("\"secret\\n\""), "{tool} {args}: {result}");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret\n");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(called.text("stolen.txt"), None);
    assert_eq!(called.text("a.txt").as_deref(), Some("one\n"));
    assert_eq!(git(&called.bench.repo(), &["status", "--porcelain"]), "");
}

#[test]
fn a_hard_link_is_broken_by_a_write_and_a_pipe_holds_nobody_up() {
    let outside = tempfile::tempdir().unwrap();
    let calls = [
        ("shell_free", json!({})),
        ("write_file", json!({ "path": "a.txt", "content": "new\n" })),
        ("read_file", json!({ "path": "pipe" })),
        ("search_files", json!({ "content_pattern": "one" })),
        ("list_directory", json!({})),
    ];
    let calls = calls.map(|(tool, args)| (tool, args));
    let called = Called::with(&[("a.txt", "one\n")], &calls, "", "trusted", |bench| {
        std::fs::hard_link(bench.repo().join("a.txt"), outside.path().join("same")).unwrap();
        nix_mkfifo(&bench.repo().join("pipe"));
    });
    assert!(called.result(1)["failed"].is_null(), "{}", called.result(1));
    assert_eq!(std::fs::read_to_string(outside.path().join("same")).unwrap(), "one\n");
    assert!(called.refused(2).contains("pipe"), "{}", called.refused(2));
}

fn nix_mkfifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

// SEC-004
#[test]
fn a_plan_does_not_see_the_sandbox_of_another() {
    let first = Called::on(
        &[("a.txt", "one\n")],
        &[("write_file", json!({ "path": "a.txt", "content": "first\n" }))],
    );
    let roots = first.bench.dir.path().join("data/sandboxes").join(&first.plan);
    let root = std::fs::read_dir(roots).unwrap().flatten().next().unwrap().path();
    let theirs = root.join("a.txt").display().to_string();
    let second = Called::on(
        &[("a.txt", "one\n")],
        &[
            ("read_file", json!({ "path": theirs })),
            ("write_file", json!({ "path": theirs, "content": "x" })),
        ],
    );
    assert!(second.refused(0).contains("outside of what the plan works on"));
    assert!(second.refused(1).contains("outside of what the plan works on"));
    assert_eq!(first.text("a.txt").as_deref(), Some("first\n"));
}
