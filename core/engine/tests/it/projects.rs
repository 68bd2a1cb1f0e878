//! Making, showing, linking and deleting projects.

use std::io::Read;
use std::path::Path;

use agents_domain::ErrorKind;
use agents_domain::ports::store::StoreExt;
use agents_store::SqliteStore;
use serde_json::{Value, json};

use crate::registry::{action, bench, events, suggestions};

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
    let unlinked = bench.ok("project/unlink_resource", json!({ "project": "docs", "resource": "repo" }));
    assert_eq!(
        unlinked["index_cleanup"],
        json!({ "text_index": "none", "vectors": "none", "graph_triples": "none", "duration_seconds": 0.0 })
    );
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
    let mut deleted = deleted;
    let snapshot = deleted["backups"].take();
    assert!(Path::new(snapshot["snapshot"].as_str().unwrap()).is_file(), "{snapshot}");
    assert_eq!(
        deleted,
        json!({
            "index_cleanup": {
                "text_index": "none", "vectors": "none", "graph_triples": "none", "storage_freed_mb": 0,
            },
            "backups": null,
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
    assert_eq!(quiet["backups"]["retention_days"], 7);
    assert_eq!(bench.err("registry/project/delete", json!({ "name": "cal" })).kind, ErrorKind::NotFound);
    assert_eq!(events(&bench).last().unwrap(), "entity.deleted local/calm");
}

// CLI-109, STORE-026, SEC-035: the archive has the project and a database in which it is still there
#[test]
fn a_project_that_is_deleted_is_kept_in_a_backup() {
    let bench = bench();
    let deleted = bench.ok("registry/project/delete", json!({ "name": "app" }));
    let archive = Path::new(deleted["backups"]["snapshot"].as_str().unwrap());
    let folder = archive.parent().unwrap();
    assert_eq!(folder.parent().unwrap(), bench.dir.path().join("data/backups"));
    assert_eq!(archive.file_name().unwrap(), "local-app.tgz");
    let time = folder.file_name().unwrap().to_str().unwrap();
    assert_eq!((time.len(), &time[10..11], &time[13..14]), (19, "T", "-"), "{time}");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "nothing else stays behind");

    let unpacked = bench.dir.path().join("unpacked");
    std::fs::create_dir(&unpacked).unwrap();
    let mut files = tar::Archive::new(flate2::read::GzDecoder::new(std::fs::File::open(archive).unwrap()));
    for file in files.entries().unwrap() {
        let mut file = file.unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        std::fs::write(unpacked.join(file.path().unwrap()), bytes).unwrap();
    }
    let facts: Value =
        serde_json::from_slice(&std::fs::read(unpacked.join("project.json")).unwrap()).unwrap();
    assert_eq!(
        (&facts["project"]["name"], &facts["resources"][0]["name"]),
        (&json!("local/app"), &json!("local/repo"))
    );
    let store = SqliteStore::open(&unpacked, agents_store::Options::default()).unwrap();
    let name = "local/app".parse().unwrap();
    assert!(store.view(|r| r.project(&name)).unwrap().is_some());
    assert!(bench.engine.store().view(|r| r.project(&name)).unwrap().is_none());

    // What cannot be kept is not deleted.
    bench.ok("registry/project/create", json!({ "name": "app", "resources": ["repo"] }));
    let backups = bench.dir.path().join("data/backups");
    std::fs::remove_dir_all(&backups).unwrap();
    std::fs::write(&backups, "in the way").unwrap();
    let error = bench.err("registry/project/delete", json!({ "name": "app" }));
    assert!(error.message.contains("backups"), "{}", error.message);
    bench.ok("registry/project/show", json!({ "name": "app" }));
}
