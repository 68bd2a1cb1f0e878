//! Invariants on the command line, and what they do to a plan with a real language server.

use agents_e2e::World;
use serde_json::json;

const VENDOR: &str = "Never change files under vendor/";

// INV-007, INV-011, INV-013, INV-015, PLAN-039: the fixer leaves alone what an invariant keeps, and says so.
#[test]
fn ruff_findings_under_vendor_are_left_alone_by_an_invariant_and_the_others_fixed() {
    let world = World::new();
    world.fixer();
    let repo = world.repo_with(
        "repo",
        &[
            ("pkg/a.py", "import os\nimport sys\n\nprint(sys.argv)\n"),
            ("vendor/lib/b.py", "import json\nimport re\n\nprint(re)\n"),
        ],
    );
    world.register("app", &repo);
    world.real_server("ruff", &["server"], &["python"]);
    let added = world.ok(&["invariant", "add", "--project", "local/app", VENDOR]);
    assert_eq!(added.data[0]["enforced_by"], "machine");
    world.ok(&["invariant", "add", "--global", "Keep public names"]);

    let plan = world.plan("app", "trusted", &["--invariant", "At most 20 changed lines"]);
    plan.assert_at("execute/complete+apply_approval");
    let enforced = plan.decisions_of("invariant_enforced");
    let texts: Vec<_> = enforced.iter().filter_map(|d| d["chosen"].as_str()).collect();
    assert_eq!(texts, ["Keep public names", VENDOR, "At most 20 changed lines"]);

    let kept: Vec<_> = plan
        .decisions_of("strategy_choice")
        .into_iter()
        .filter(|d| d["question"].as_str().is_some_and(|q| q.contains("not to be changed")))
        .collect();
    assert_eq!(kept.len(), 1, "{kept:#?}");
    let kept = plan.explain(&kept[0]);
    assert_eq!(kept["chosen"], "Leave alone");
    assert!(kept["rationale"].as_str().unwrap().contains(VENDOR), "{kept:#}");
    assert_eq!(kept["resources"][0]["path"], "vendor/lib/b.py");
    assert!(kept["depends_on"].as_array().unwrap().contains(&enforced[1]["decision_id"]), "{kept:#}");
    let explained = plan.explain(&enforced[1]);
    assert_eq!(
        explained["invariant"]["check"],
        json!({ "kind": "forbidden_paths", "paths": ["vendor/"], "waived": false })
    );

    let summary = plan.summary("execute");
    assert!(summary.contains("2 invariants kept, 1 that no machine can check"), "{summary}");
    plan.apply();
    plan.assert_at("apply/applied");
    assert_eq!(repo.text("pkg/a.py"), "import sys\n\nprint(sys.argv)\n");
    assert_eq!(repo.text("vendor/lib/b.py"), "import json\nimport re\n\nprint(re)\n");
    let violated = agents_e2e::Records::events(world.data(), &plan.id)
        .into_iter()
        .filter(|(kind, _)| kind == "invariant.violated")
        .count();
    assert_eq!(violated, 0, "nothing was even tried");
    world.assert_quiet();
}

// INV-001 .. INV-006, OUT-005, OUT-006, CLI-085, CLI-087, CLI-093
#[test]
fn invariants_are_added_listed_and_removed_on_the_command_line() {
    let world = World::new();
    world.fixer();
    let repo = world.repo_with("repo", &[("a.py", "x = 1\n")]);
    world.ok(&["resource", "add", "git-checkout", "local/repo", "--path", repo.path().to_str().unwrap()]);
    let made = world.ok(&[
        "project",
        "create",
        "local/app",
        "--resource",
        "local/repo",
        "--invariant",
        "Keep names",
        "--invariant",
        VENDOR,
        "--invariant-actor",
        "builtin/reconcile-invariants",
    ]);
    assert_eq!(
        made.data["invariants"],
        json!({ "items": ["Keep names", VENDOR], "reconciliation_actor": "builtin/reconcile-invariants" })
    );
    let listed = world.ok(&["invariant", "list", "-p", "local/app", "(?i)vendor"]);
    assert_eq!(listed.data["invariants"].as_array().unwrap().len(), 1, "{}", listed.text);

    let several = world.ok(&[
        "invariant",
        "add",
        "--action",
        "local/fix-diagnostics",
        "You may change files under vendor/",
    ]);
    assert_eq!(
        (&several.data[0]["scope"], &several.data[0]["action"]),
        (&json!("action"), &json!("local/fix-diagnostics"))
    );
    for wrong in [
        vec!["invariant", "add", "x"],
        vec!["invariant", "add", "--global", "--project", "local/app", "x"],
        vec!["invariant", "list"],
        vec!["invariant", "list", "--global", "--effective"],
        vec!["invariant", "list", "--global", "("],
    ] {
        assert_eq!(world.call(&wrong).exit_code, 2, "{wrong:?}");
    }

    let plan = world.plan("app", "manual", &[]);
    let effective = world.ok(&["invariant", "list", "--plan", &plan.id, "--effective"]);
    assert!(
        effective.words().contains("2 effective invariants (1 project, 1 action; 1 conflict resolved)"),
        "{}",
        effective.text
    );
    assert_eq!(
        effective.data["conflicts_resolved"][0]["overridden"],
        json!({ "source": "project", "text": VENDOR })
    );
    let id = several.data[0]["id"].as_str().unwrap();
    let removed = world.ok(&["invariant", "remove", "--yes", id]);
    assert_eq!(
        removed.data,
        json!({ "removed": "You may change files under vendor/", "scope": "action", "id": id })
    );
    assert!(removed.words().contains("Invariant removed"));
    world.refused(&["invariant", "remove", "--yes", id]);
}
