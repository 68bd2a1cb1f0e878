//! Registering, listing, showing and removing: resources, projects, language servers, actions.

use std::path::Path;
use std::sync::Arc;

use agents_domain::ErrorKind;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutput};
use serde_json::{Value, json};

use crate::harness::{Bench, git};

/// An actor that is never asked.
struct Idle;

impl Actor for Idle {
    fn step<'a>(
        &'a self,
        _: StepInput,
        _: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async { panic!("the plans of these tests wait for a person") })
    }
}

const SERVER: &str = "name: local/ruff\nlanguages: [python, pyi]\ncommand: ruff\nargs: [server]\n";

fn bench() -> Bench {
    Bench::new(&[("a.py", "x = 1\n")], &[("local/worker", Arc::new(Idle))])
}

fn action(name: &str) -> Value {
    let text = format!(
        "name: {name}\ndescription: Test\ndefinition_of_done: Done\nstrategy_actor: local/worker\n\
         execution_actor: local/worker\narguments:\n  - {{name: n, type: int, required: true}}\n"
    );
    json!({ "config": "actions/a.yaml", "text": text })
}

fn checkout(name: &str, path: &Path) -> Value {
    json!({ "resource_type": "git-checkout", "name": name, "properties": { "path": path } })
}

/// Types of events with what they are about, since the start.
fn events(bench: &Bench) -> Vec<String> {
    let all = bench.ok("events/after", json!({ "sequence": 0 }));
    let text = |event: &Value| {
        let details = &event["details"];
        let change = details["change"].as_str().map(|c| format!(" {c}")).unwrap_or_default();
        format!(
            "{} {}{change}",
            event["event_type"].as_str().unwrap(),
            details["entity_name"].as_str().unwrap_or("-")
        )
    };
    all["events"].as_array().unwrap().iter().map(text).collect()
}

fn suggestions(bench: &Bench, method: &str, params: Value) -> (ErrorKind, String, Vec<String>) {
    let error = bench.err(method, params);
    (error.kind, error.message, error.suggestions)
}

// RES-001, RES-002, RES-005..008, ruling 30, ruling 31
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
    assert_eq!(add("git-checkout", json!({})).1, "a git-checkout needs --path");
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

// RES-020..022
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

// CLI-085..094
#[test]
fn a_project_is_made_of_registered_resources() {
    let bench = bench();
    let repo = bench.repo().canonicalize().unwrap();
    let made = bench.ok("registry/project/create", json!({
        "name": "api", "description": "Backend", "resources": ["repo", "local/repo"], "invariant_actor": "worker",
    }));
    assert_eq!(made["project"]["name"], "local/api");
    assert_eq!((&made["project"]["type"], &made["project"]["remote"]), (&json!("local"), &json!(false)));
    assert_eq!(made["paths"], json!({ "root": repo, "data_dir": bench.dir.path().join("data") }));
    assert_eq!(
        made["defaults"],
        json!({ "sandbox": "git_worktree", "validations": 0, "context_filters": null, "automation_profile": null })
    );
    assert_eq!(made["resources"], json!({ "total": 1, "indexed": 0, "sandboxable": 1 }));
    assert_eq!(made["linked_resources"][0]["name"], "local/repo");
    assert_eq!(made["invariants"]["reconciliation_actor"], "local/worker");

    let empty = bench.ok("registry/project/create", json!({ "name": "acme/empty" }));
    assert_eq!(empty["paths"], json!({ "root": null, "data_dir": null }));
    assert!(empty.get("linked_resources").is_none() && empty.get("invariants").is_none());

    let (kind, message, hints) = suggestions(&bench, "registry/project/create", json!({ "name": "api" }));
    assert_eq!((kind, message.as_str()), (ErrorKind::AlreadyExists, "Project 'local/api' already exists"));
    assert_eq!(hints[0], "agents project show local/api");
    assert_eq!(
        bench.err("registry/project/create", json!({ "name": "x", "resources": ["nope"] })).kind,
        ErrorKind::NotFound
    );
    assert_eq!(
        bench.err("registry/project/create", json!({ "name": "x", "invariant_actor": "wrker" })).suggestions
            [0],
        "did you mean `local/worker`?"
    );
    assert!(
        bench
            .err("registry/project/show", json!({ "name": "x" }))
            .message
            .contains("there is no project `local/x`")
    );

    // CLI-101, CLI-102
    let list = bench.ok("registry/project/list", json!({}));
    let names: Vec<_> =
        list["projects"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["acme/empty", "local/api", "local/app"]);
    assert_eq!(
        list["summary"],
        json!({ "total": 3, "with_resources": 2, "remote": 0, "total_resources": 2, "indexed_files": 0, "active_plans": 0 })
    );
    assert_eq!(bench.ok("registry/project/list", json!({ "namespace": "acme" }))["summary"]["total"], 1);
    assert_eq!(bench.ok("registry/project/list", json!({ "pattern": "ap[pi]$" }))["summary"]["total"], 2);
}

// CLI-095..100
#[test]
fn resources_are_linked_once_and_unlinked_again() {
    let bench = bench();
    bench.ok("registry/project/create", json!({ "name": "docs" }));
    let linked = bench
        .ok("project/link_resource", json!({ "project": "docs", "resource": "repo", "read_only": true }));
    assert_eq!(
        linked["resource_linked"],
        json!({ "project": "local/docs", "resource": "local/repo", "type": "git-checkout", "read_only": true })
    );
    assert_eq!(linked["access"], json!({ "read": "allowed", "write": "denied", "apply": "denied" }));
    let again = bench.err("project/link_resource", json!({ "project": "docs", "resource": "repo" }));
    assert_eq!(
        (again.kind, again.message.as_str()),
        (ErrorKind::AlreadyExists, "Resource 'local/repo' is already linked to project 'local/docs'")
    );
    let shown = bench.ok("registry/resource/show", json!({ "resource": "repo" }));
    assert_eq!(
        shown["linked_projects"],
        json!([{ "name": "local/app", "access": "r/w" }, { "name": "local/docs", "access": "read-only" }])
    );
    bench.ok("project/unlink_resource", json!({ "project": "docs", "resource": "repo" }));
    let (kind, message, _) =
        suggestions(&bench, "project/unlink_resource", json!({ "project": "docs", "resource": "repo" }));
    assert_eq!(
        (kind, message.as_str()),
        (ErrorKind::NotFound, "resource `local/repo` is not linked to project `local/docs`")
    );
    let child = shown["direct_children"][0]["id"].clone();
    assert!(
        bench
            .err("project/link_resource", json!({ "project": "docs", "resource": child }))
            .message
            .contains("link what it was found in")
    );
}

// CLI-103..105, CLI-107..111
#[test]
fn a_project_with_active_plans_is_deleted_by_force_only() {
    let bench = bench();
    bench.ok("registry/action/create", action("a"));
    let made = bench.ok(
        "plan/use",
        json!({
            "action": "a", "projects": ["app"], "arguments": { "n": 1 }, "automation_profile": "manual",
        }),
    );
    let plan = made["plan_id"].as_str().unwrap();
    let shown = bench.ok("registry/project/show", json!({ "name": "app" }));
    assert_eq!(
        shown["active_plans"],
        json!([{ "plan_id": plan, "action": "local/a", "phase": "strategize" }])
    );
    assert_eq!(shown["linked_resources"][0]["sandbox"], "git_worktree");
    assert_eq!(shown["context"]["max_file_size_bytes"], 1_048_576);

    let error = bench.err("registry/project/delete", json!({ "name": "app" }));
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::InvalidState, "Delete blocked — 1 active plan")
    );
    let data = error.data.unwrap();
    assert_eq!(
        data["delete_blocked"],
        json!({
            "reason": "project has active plans",
            "active_plans": [{ "plan_id": plan, "phase": "strategize/queued", "action": "local/a" }],
        })
    );
    assert_eq!(data["resolution"].as_array().unwrap().len(), 2);

    let deleted = bench.ok("registry/project/delete", json!({ "name": "app", "force": true }));
    assert_eq!(
        deleted,
        json!({
            "force_delete": { "cancelled_plans": [{ "plan_id": plan, "previous_state": "strategize/queued" }] },
            "deleted": {
                "project": "local/app", "resources_unlinked": 1, "validations_detached": 0, "plans_cancelled": 1,
                "context_policies": "cleared",
            },
        })
    );
    assert_eq!(bench.status(plan)["state"], "cancelled");
    assert_eq!(
        bench.ok("registry/resource/show", json!({ "resource": "repo" }))["linked_projects"],
        json!([])
    );

    bench.ok("registry/project/create", json!({ "name": "calm", "resources": ["repo"] }));
    let quiet = bench.ok("registry/project/delete", json!({ "name": "calm" }));
    assert_eq!(quiet["deletion_summary"]["resources_unlinked"], 1);
    assert_eq!(bench.err("registry/project/delete", json!({ "name": "cal" })).kind, ErrorKind::NotFound);
    assert_eq!(events(&bench).last().unwrap(), "entity.deleted local/calm");
}

// LSPCLI-001..004, LSPCLI-008..011
#[test]
fn a_language_server_is_registered_listed_and_shown() {
    let bench = bench();
    let add = |text: &str, update: bool| json!({ "config": "lsp/ruff.yaml", "text": text, "update": update });
    let added = bench.ok("registry/lsp/add", add(SERVER, false));
    let server = &added["lsp_server"];
    assert_eq!(
        (&server["name"], &server["command"], &server["updated"]),
        (&json!("local/ruff"), &json!("ruff server"), &json!(false))
    );
    assert_eq!(server["capabilities"].as_array().unwrap().len(), 9);
    assert_eq!(added["hints"][0]["message"], "`pyi` is understood as `python`");

    let error = bench.err("registry/lsp/add", add(SERVER, false));
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::AlreadyExists, "LSP server 'local/ruff' already exists")
    );
    assert_eq!(error.suggestions, ["agents lsp add --update --config lsp/ruff.yaml"]);
    assert_eq!(error.data.unwrap(), json!({ "error": "LSP server 'local/ruff' already exists" }));
    let narrow = format!(
        "{SERVER}capabilities: [diagnostics, code_actions]\ninit_options: {{lineLength: 100}}\nenv: {{TOKEN: hidden}}\n"
    );
    assert_eq!(bench.ok("registry/lsp/add", add(&narrow, true))["lsp_server"]["updated"], true);
    bench.ok("registry/lsp/add", add("name: acme/clangd\nlanguages: [c, cpp]\ncommand: clangd\n", false));

    let list = bench.ok("registry/lsp/list", json!({}));
    assert_eq!(list["total"], 2);
    assert_eq!(
        list["lsp_servers"][0],
        json!({ "name": "acme/clangd", "languages": ["c", "cpp"], "command": "clangd", "bound_actors": 0 })
    );
    assert!(list.get("filter").is_none());
    let python = bench.ok("registry/lsp/list", json!({ "language": "Python" }));
    assert_eq!((&python["total"], &python["filter"]), (&json!(1), &json!({ "language": "Python" })));
    assert_eq!(bench.ok("registry/lsp/list", json!({ "language": "c++" }))["total"], 1);
    assert_eq!(bench.ok("registry/lsp/list", json!({ "namespace": "acme", "pattern": "ruff" }))["total"], 0);

    let shown = bench.ok("registry/lsp/show", json!({ "name": "ruff" }));
    let server = &shown["lsp_server"];
    assert_eq!(server["capabilities"], json!(["diagnostics", "code_actions"]));
    assert_eq!(server["root_path"], "{{ project.root }}");
    assert_eq!(
        (&server["init_options"], &server["bound_actors"]),
        (&json!({ "lineLength": 100 }), &json!([]))
    );
    assert!(!shown.to_string().contains("hidden"));
}

// LSPCLI-005, LSPCLI-006
#[test]
fn a_language_server_is_removed_and_missed_with_the_nearest_name() {
    let bench = bench();
    bench.ok("registry/lsp/add", json!({ "config": "r.yaml", "text": SERVER }));
    let (kind, message, hints) = suggestions(&bench, "registry/lsp/show", json!({ "name": "rufff" }));
    assert_eq!((kind, message.as_str()), (ErrorKind::NotFound, "there is no language server `local/rufff`"));
    assert_eq!(hints, ["did you mean `local/ruff`?", "agents lsp list"]);
    let removed = bench.ok("registry/lsp/remove", json!({ "name": "ruff" }));
    assert_eq!(
        removed,
        json!({ "lsp_server_removed": { "name": "local/ruff", "languages": ["python", "pyi"] }, "broken_references": [] })
    );
    assert_eq!(bench.err("registry/lsp/remove", json!({ "name": "ruff" })).kind, ErrorKind::NotFound);
    assert_eq!(events(&bench)[2..], ["registry.changed local/ruff added", "entity.deleted local/ruff"]);
}

#[test]
fn a_file_with_problems_is_refused_with_every_place() {
    let bench = bench();
    let error = bench.err(
        "registry/lsp/add",
        json!({ "config": "dir/s.yaml", "text": "name: x\nlanguages: []\ncomand: y\n" }),
    );
    assert_eq!(error.kind, ErrorKind::ValidationFailed);
    assert_eq!(error.message, "dir/s.yaml:1:1: the key `command` is missing");
    assert_eq!(
        error.detail.unwrap(),
        "dir/s.yaml:1:1: the key `command` is missing\n\
         dir/s.yaml:2:12: `languages` needs at least 1 entry\n\
         dir/s.yaml:3:1: there is no key `comand`: did you mean `command`?"
    );
    assert_eq!(error.data.unwrap()["problems"][2]["range"]["start"], json!({ "line": 2, "column": 0 }));
    assert_eq!(bench.ok("registry/lsp/list", json!({}))["total"], 0);
}

// ACT-001, ACT-005..008, ACTION-002
#[test]
fn an_action_is_registered_once_and_only_with_actors_that_exist() {
    let bench = bench();
    let made = bench.ok("registry/action/create", action("fix"));
    assert_eq!(made["name"], "local/fix");
    assert_eq!(
        (&made["state"], &made["reusable"], &made["read_only"]),
        (&json!("available"), &json!(true), &json!(false))
    );
    assert_eq!(made["config"], "actions/a.yaml");
    assert_eq!(
        made["arguments"],
        json!([{ "name": "n", "type": "integer", "required": true, "description": null }])
    );
    assert_eq!(made["automation"], json!({ "profile": "supervised", "source": "default" }));
    assert_eq!(made["hints"][0]["message"], "the type `int` is usually written `integer`");
    let (kind, message, hints) = suggestions(&bench, "registry/action/create", action("local/fix"));
    assert_eq!((kind, message.as_str()), (ErrorKind::AlreadyExists, "Action 'local/fix' already exists"));
    assert_eq!(hints[0], "agents action show local/fix");

    let mut wrong = action("other");
    wrong["text"] = wrong["text"]
        .as_str()
        .unwrap()
        .replace("execution_actor: local/worker", "execution_actor: local/wroker")
        .into();
    let error = bench.err("registry/action/create", wrong);
    assert_eq!(
        error.message,
        "actions/a.yaml:5:18: there is no actor `local/wroker`: did you mean `local/worker`?"
    );
    assert!(
        bench
            .err("registry/action/create", action("builtin/fix"))
            .message
            .contains("`builtin/` is for what comes with the program")
    );
}

// ACT-010..013
#[test]
fn actions_are_listed_shown_with_their_history_and_archived() {
    let bench = bench();
    for name in ["fix", "acme/tidy"] {
        bench.ok("registry/action/create", action(name));
    }
    bench.ok("plan/use", json!({ "action": "fix", "projects": ["app"], "arguments": { "n": 1 }, "automation_profile": "manual" }));
    let list = bench.ok("registry/action/list", json!({}));
    assert_eq!(list["filters"], json!({ "state": "available", "namespace": null }));
    assert_eq!(
        list["summary"],
        json!({ "total": 2, "available": 2, "archived": 0, "total_plans_created": 1 })
    );
    assert_eq!(list["actions"][1]["plans"], 1);
    assert_eq!(bench.ok("registry/action/list", json!({ "namespace": "acme" }))["summary"]["total"], 1);

    let archived = bench.ok("registry/action/archive", json!({ "name": "fix" }));
    assert_eq!(archived["state_transition"], "available -> archived");
    assert_eq!(
        archived["impact"],
        json!({ "availability": "hidden from list", "existing_plans": "unchanged", "active_plans_affected": 0 })
    );
    assert_eq!(archived["history"]["total_plans"], 1);
    assert_eq!(archived["history"]["last_used"].as_str().unwrap().len(), 10);
    assert_eq!(
        bench.err("registry/action/archive", json!({ "name": "fix" })).message,
        "action `local/fix` is archived already"
    );
    assert_eq!(bench.ok("registry/action/list", json!({}))["summary"]["total"], 1);
    assert_eq!(bench.ok("registry/action/list", json!({ "state": "all" }))["summary"]["archived"], 1);
    assert_eq!(bench.err("registry/action/list", json!({ "state": "gone" })).kind, ErrorKind::Usage);

    let shown = bench.ok("registry/action/show", json!({ "name": "fix" }));
    assert_eq!(shown["state"], "archived");
    assert_eq!(
        shown["history"],
        json!({ "plans_created": 1, "plans_completed": 0, "plans_failed": 0, "avg_duration": null, "avg_cost": null })
    );
    let refused =
        bench.err("plan/use", json!({ "action": "fix", "projects": ["app"], "arguments": { "n": 1 } }));
    assert_eq!(refused.kind, ErrorKind::InvalidState);
    assert_eq!(
        bench.err("registry/action/show", json!({ "name": "acme/tydi" })).suggestions[0],
        "did you mean `acme/tidy`?"
    );
}
