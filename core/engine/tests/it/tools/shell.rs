//! `shell_execute`, and what a command can reach (TOOL-016, TOOL-034, SEC-017, SEC-018, VALID-004).

use serde_json::{Value, json};

use super::caller::{Called, has_bwrap, with_programs};
use crate::harness::git;

fn shell(command: &str) -> (&'static str, Value) {
    ("shell_execute", json!({ "command": command }))
}

// TOOL-016, SEC-018
#[test]
fn a_profile_that_allows_no_unsafe_tools_has_no_shell() {
    let called = Called::with(&[("a.txt", "one\n")], &[shell("echo hi")], "", "trusted", with_programs);
    assert_eq!(called.result(0)["error"], "AccessDeniedError");
    assert!(called.refused(0).contains("unsafe"), "{}", called.refused(0));
    let offered = called.kept.offered.lock().unwrap();
    assert!(offered.iter().all(|(_, specs)| specs.iter().all(|spec| spec.name != "builtin/shell_execute")));
}

#[test]
fn what_a_command_changes_is_the_plans_under_its_decision() {
    let long = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo the end";
    let called = Called::with(
        &[("a.txt", "one\n"), ("b.txt", "two\n")],
        &[
            shell(
                "echo more >> a.txt; rm b.txt; mkdir -p .hidden; echo x > .hidden/c; echo out; echo err >&2; exit 3",
            ),
            shell(long),
            ("shell_execute", json!({ "command": "sleep 600", "timeout": 1 })),
            shell("cat a.txt"),
            ("shell_execute", json!({ "command": "pwd", "working_directory": "../.." })),
            shell("echo $SECRET_TOKEN; env | grep -c SECRET || true"),
        ],
        "",
        "full-auto",
        with_programs,
    );
    let first = called.result(0);
    assert_eq!(
        (&first["exit_code"], &first["stdout"], &first["stderr"]),
        (&json!(3), &json!("out\n"), &json!("err\n")),
        "{first}"
    );
    let long = called.result(1);
    assert!(
        long["stdout"].as_str().unwrap().ends_with("the end\n")
            && long["stdout"].as_str().unwrap().len() < 20_000
    );
    assert!(called.result(2)["timed_out"].is_string(), "{}", called.result(2));
    assert_eq!(called.result(3)["stdout"], "one\nmore\n");
    assert!(called.refused(4).contains(".."), "{}", called.refused(4));
    assert!(!called.result(5).to_string().contains("must-not-be-seen"));
    let mut changed = called.changed();
    changed.sort();
    assert_eq!(changed, [".hidden/c", "a.txt", "b.txt"]);
}

#[test]
fn a_command_reaches_neither_the_repository_nor_the_home_nor_the_network() {
    if !has_bwrap() {
        return;
    }
    let calls = [
        shell(
            "git checkout -q -b evil; git stash; git config user.name Evil; git commit -q --allow-empty -m evil; true",
        ),
        shell("cd \"$(git rev-parse --git-common-dir)\" && touch evil; rm -rf refs; true"),
        shell("cat \"$HOME/.ssh/id\"; touch \"$HOME/evil\" /usr/evil; true"),
        shell("ls ../../..; git diff --stat; git log --oneline | wc -l"),
        shell(
            "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 22), 2)' && echo connected; true",
        ),
    ];
    let called = Called::with(&[("a.txt", "one\n")], &calls, "", "full-auto", with_programs);
    let repo = called.bench.repo();
    assert_eq!(git(&repo, &["branch", "--list"]).trim(), "* main");
    assert_eq!(git(&repo, &["rev-list", "--all", "--count", "--grep=evil"]), "0");
    assert_ne!(git(&repo, &["config", "user.name"]), "Evil");
    assert!(!repo.join(".git/evil").exists() && repo.join(".git/refs").is_dir());
    assert!(!called.result(2).to_string().contains("private"), "{}", called.result(2));
    assert!(!called.bench.dir.path().join("home/evil").exists());
    assert_eq!(called.result(3)["exit_code"], 0, "{}", called.result(3));
    assert!(!called.result(4)["stdout"].as_str().unwrap().contains("connected"));
    assert_eq!(called.changed(), Vec::<String>::new());
}

#[test]
fn a_validation_cannot_write_to_the_repository_through_the_sandbox() {
    if !has_bwrap() {
        return;
    }
    let calls = [("write_file", json!({ "path": "a.txt", "content": "two\n" }))];
    let called = Called::with(&[("a.txt", "one\n")], &calls, "", "trusted", |bench| {
        with_programs(bench);
        let text = "name: local/evil\nshell: |\n  git checkout -q -b evil && exit 0\n  git status --short | grep -q a.txt && exit 7\nvalidation: {mode: informational}\n";
        bench.ok("registry/validation/add", json!({ "config": "evil.yaml", "text": text }));
        bench.ok("validation/attach", json!({ "validation": "local/evil", "resource": "local/repo" }));
    });
    let status = called.bench.status(&called.plan);
    let summary = &status["validation_summary"][0];
    assert_eq!((&summary["passed"], &summary["data"]["exit_code"]), (&json!(false), &json!(7)), "{status}");
    assert_eq!(git(&called.bench.repo(), &["branch", "--list"]).trim(), "* main");
}
