//! Registering, listing, showing and removing resources.

use agents_domain::ErrorKind;
use serde_json::{Value, json};

use crate::harness::git;
use crate::registry::{action, bench, checkout, events, suggestions};

// RES-001, RES-002, RES-005, RES-006, RES-007, RES-008, RES-027, ruling 30, ruling 31
#[test]
fn a_checkout_is_registered_with_its_git_child_and_branch() {
    let bench = bench();
    let other = bench.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q", "-b", "trunk"]);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "start"]);
    let link = bench.dir.path().join("link");
    std::os::unix::fs::symlink(&other, &link).unwrap();
    let added = bench.ok("registry/resource/add", json!({
        "resource_type": "git-checkout", "name": "other", "description": "Other", "properties": { "path": link },
    }));
    let real = other.canonicalize().unwrap();
    assert_eq!(added["name"], "local/other");
    assert_eq!(added["type"], "git-checkout");
    assert_eq!(added["path"], json!(real));
    assert_eq!(added["branch"], "trunk");
    assert_eq!(added["physical_virtual"], "physical");
    assert_eq!(
        added["capabilities"],
        json!({ "readable": true, "writable": true, "sandboxable": true, "checkpointable": true, "sandbox_strategy": "git_worktree" })
    );
    let children = added["auto_discovered_children"].as_array().unwrap();
    assert_eq!(
        (children.len(), &children[0]["type"], &children[0]["status"]),
        (1, &json!("git"), &json!("created"))
    );
    assert_eq!((&added["total_children"], &added["children_summary"]), (&json!(1), &json!({})));
    assert!(added.get("warnings").is_none());

    // RES-025, RES-026
    let shown = bench
        .ok("registry/resource/show", json!({ "resource": added["id"].as_str().unwrap().to_lowercase() }));
    assert_eq!(shown["parents"], json!(["(top-level)"]));
    assert_eq!(shown["direct_children"][0]["children"], 1);
    assert_eq!(shown["description"], "Other");
    let child = bench.ok("registry/resource/show", json!({ "resource": children[0]["id"] }));
    assert_eq!((&child["name"], &child["parents"]), (&Value::Null, &json!(["local/other"])));
    assert_eq!(child["path"], json!(real.join(".git")));
    assert_eq!(child["capabilities"]["writable"], false);
}

// RES-003, RES-004, RES-008
#[test]
fn what_cannot_be_registered_is_refused_with_the_reason() {
    let bench = bench();
    let add = |kind: &str, properties: Value| {
        suggestions(
            &bench,
            "registry/resource/add",
            json!({ "resource_type": kind, "name": "x", "properties": properties }),
        )
    };
    let (kind, message, _) = add("git", json!({}));
    assert_eq!(kind, ErrorKind::ValidationFailed);
    assert_eq!(
        message,
        "resources of type git are found, not registered: those that can be registered are git-checkout, fs-directory"
    );
    let (kind, _, hints) = add("git-chekout", json!({}));
    assert_eq!((kind, hints), (ErrorKind::NotFound, vec!["did you mean `git-checkout`?".to_owned()]));
    let (kind, message, _) = add("git-checkout", json!({}));
    assert_eq!((kind, message.as_str()), (ErrorKind::Usage, "a git-checkout needs --path"));
    assert_eq!(
        add("git-checkout", json!({ "path": "/", "url": "x" })).1,
        "a git-checkout has no --url: it takes --path, --branch"
    );
    assert_eq!(add("fs-directory", json!({ "path": " " })).1, "--path is empty");
    let nowhere = bench.dir.path().join("nowhere");
    assert_eq!(
        add("fs-directory", json!({ "path": nowhere })).1,
        format!("there is no directory {}", nowhere.display())
    );
    let repo = bench.repo().canonicalize().unwrap();
    assert_eq!(
        add("fs-directory", json!({ "path": repo.join("a.py") })).1,
        format!("{} is not a directory", repo.join("a.py").display())
    );
    // Not the top level, no repository, a bare one.
    std::fs::create_dir(repo.join("sub")).unwrap();
    assert!(add("git-checkout", json!({ "path": repo.join("sub") })).1.contains("name its top level"));
    let plain = bench.dir.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    assert!(add("git-checkout", json!({ "path": plain })).1.contains("is not a git repository"));
    git(&plain, &["init", "-q", "--bare"]);
    assert!(add("git-checkout", json!({ "path": plain })).1.contains("is a bare repository"));
    // Another branch than the one that is checked out.
    let (_, message, hints) = add("git-checkout", json!({ "path": repo, "branch": "dev" }));
    assert_eq!(message, format!("{} has `main` checked out, not `dev`", repo.display()));
    assert_eq!(hints[0], format!("git -C {} switch dev", repo.display()));
    assert_eq!(
        suggestions(&bench, "registry/resource/add", checkout("builtin/x", &repo)).1,
        "a resource cannot be called `builtin/x`: `builtin/` is for what comes with the program"
    );
}

#[test]
fn a_repository_without_a_commit_and_a_detached_head_are_registered_with_a_warning() {
    let bench = bench();
    let fresh = bench.dir.path().join("fresh");
    std::fs::create_dir(&fresh).unwrap();
    git(&fresh, &["init", "-q"]);
    let added = bench.ok("registry/resource/add", checkout("fresh", &fresh));
    assert!(added["warnings"][0].as_str().unwrap().contains("has no commit yet"), "{added}");
    assert_eq!(added["branch"], Value::Null);
    git(&fresh, &["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&fresh, &["checkout", "-q", "--detach"]);
    let again = bench.ok(
        "registry/resource/add",
        json!({
            "resource_type": "git-checkout", "name": "fresh", "properties": { "path": fresh }, "update": true,
        }),
    );
    assert!(again["warnings"][0].as_str().unwrap().contains("is detached"), "{again}");
    assert_eq!(again["id"], added["id"]);
}

#[test]
fn a_name_or_a_place_is_registered_once_unless_it_is_updated() {
    let bench = bench();
    let repo = bench.repo().canonicalize().unwrap();
    let error = bench.err("registry/resource/add", checkout("local/repo", &repo));
    assert_eq!(error.kind, ErrorKind::AlreadyExists);
    assert_eq!(error.message, "Resource 'local/repo' is already registered.");
    let command = format!("agents resource add --update git-checkout local/repo --path {}", repo.display());
    assert_eq!(error.suggestions, std::slice::from_ref(&command));
    let data = error.data.unwrap();
    assert_eq!(
        (&data["hint"], &data["suggested_command"]),
        (&json!("Use --update to overwrite"), &json!(command))
    );
    let (kind, message, hints) = suggestions(&bench, "registry/resource/add", checkout("twin", &repo));
    assert_eq!(kind, ErrorKind::AlreadyExists);
    assert_eq!(message, format!("{} is registered already, as `local/repo`", repo.display()));
    assert_eq!(hints[1], "agents project link-resource <PROJECT> local/repo");

    let before = bench.ok("registry/resource/show", json!({ "resource": "repo" }));
    let update = json!({ "resource_type": "git-checkout", "name": "repo", "properties": { "path": repo }, "update": true });
    let updated = bench.ok("registry/resource/add", update);
    assert_eq!((&updated["id"], &updated["updated"]), (&before["id"], &json!(true)));
    assert_eq!(updated["auto_discovered_children"][0]["status"], "unchanged");
    assert_eq!(updated["auto_discovered_children"][0]["id"], before["direct_children"][0]["id"]);
    let other = json!({ "resource_type": "fs-directory", "name": "repo", "properties": { "path": repo }, "update": true });
    assert_eq!(
        bench.err("registry/resource/add", other).message,
        "resource `local/repo` is of type git-checkout: an update cannot make it fs-directory"
    );
}

// RES-010, RES-023, RES-024
#[test]
fn resources_are_listed_with_what_is_below_and_who_links_them() {
    let bench = bench();
    let docs = bench.dir.path().join("docs");
    std::fs::create_dir(&docs).unwrap();
    let params = json!({ "resource_type": "fs-directory", "name": "docs", "properties": { "path": docs } });
    let added = bench.ok("registry/resource/add", params);
    assert_eq!(added["capabilities"]["sandbox_strategy"], "copy_on_write");
    assert_eq!(added["total_children"], 0);
    let list = |params: Value| bench.ok("registry/resource/list", params);
    let named = list(json!({}));
    let rows: Vec<_> = named["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["name"].clone(), r["children"].clone(), r["projects"].clone()))
        .collect();
    assert_eq!(
        rows,
        [(json!("local/repo"), json!(1), json!(["local/app"])), (json!("local/docs"), json!(0), json!([]))]
    );
    assert_eq!(named["summary"], json!({ "total": 2, "physical": 2, "virtual": 0, "total_children": 1 }));
    assert_eq!(list(json!({ "all": true }))["summary"]["total"], 3);
    assert_eq!(list(json!({ "resource_type": "^fs-" }))["resources"][0]["name"], "local/docs");
    let (kind, message, _) = suggestions(&bench, "registry/resource/list", json!({ "resource_type": "(" }));
    assert_eq!(
        (kind, message.as_str()),
        (ErrorKind::Usage, "`(` is not a regular expression: unclosed group")
    );
}

// RES-020, RES-021, RES-022
#[test]
fn a_resource_is_removed_with_its_children_but_not_while_it_is_used() {
    let bench = bench();
    let (kind, message, hints) =
        suggestions(&bench, "registry/resource/remove", json!({ "resource": "repo" }));
    assert_eq!(
        (kind, message.as_str()),
        (ErrorKind::InvalidState, "resource `local/repo` is linked to local/app")
    );
    assert_eq!(hints, ["agents project unlink-resource local/app local/repo"]);

    let child =
        bench.ok("registry/resource/show", json!({ "resource": "repo" }))["direct_children"][0]["id"].clone();
    assert!(
        bench
            .err("registry/resource/remove", json!({ "resource": child }))
            .message
            .contains("was found, not registered")
    );
    let unlinked = bench.ok("project/unlink_resource", json!({ "project": "app", "resource": "repo" }));
    assert_eq!(
        unlinked["resource_unlinked"],
        json!({ "project": "local/app", "resource": "local/repo", "type": "git-checkout" })
    );
    assert_eq!(unlinked["project_summary"]["linked_resources"], 0);
    let removed = bench.ok("registry/resource/remove", json!({ "resource": "repo" }));
    assert_eq!(
        removed,
        json!({ "name": "local/repo", "type": "git-checkout", "children_removed": 1, "projects_unlinked": 0 })
    );
    assert_eq!(bench.ok("registry/resource/list", json!({ "all": true }))["summary"]["total"], 0);
    assert!(bench.repo().join("a.py").exists());
    assert_eq!(
        events(&bench),
        [
            "registry.changed local/repo added",
            "registry.changed local/app created",
            "registry.changed local/app unlinked",
            "entity.deleted local/repo",
        ]
    );
}

#[test]
fn a_resource_with_a_plan_at_work_neither_goes_nor_moves() {
    let bench = bench();
    bench.ok("registry/action/create", action("a"));
    let plan = bench.ok(
        "plan/use",
        json!({
            "action": "a", "projects": ["app"], "arguments": { "n": 1 }, "automation_profile": "manual",
        }),
    )["plan_id"]
        .clone();
    let id = plan.as_str().unwrap();
    let unlinked = bench.ok("project/unlink_resource", json!({ "project": "app", "resource": "repo" }));
    assert!(
        unlinked["warnings"][0]
            .as_str()
            .unwrap()
            .starts_with(&format!("plan {id} (strategize/queued, local/a)")),
        "{unlinked}"
    );
    let (_, message, hints) = suggestions(&bench, "registry/resource/remove", json!({ "resource": "repo" }));
    assert_eq!(message, "a plan is still at work on resource `local/repo`");
    assert_eq!(hints, [format!("agents plan cancel {id}")]);
    let other = bench.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    let mut moving = checkout("repo", &other);
    moving["update"] = true.into();
    assert_eq!(
        bench.err("registry/resource/add", moving).message,
        "resource `local/repo` cannot move: a plan is at work on it"
    );
    bench.ok("plan/cancel", json!({ "plan": id }));
    bench.ok("registry/resource/remove", json!({ "resource": "repo" }));
}
