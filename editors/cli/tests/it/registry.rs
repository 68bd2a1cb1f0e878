//! Registering and removing: what comes back, and what asks first.

use serde_json::json;

use crate::world::{World, choose_and_edit};

const SERVER: &str = "name: ruff\nlanguages: [python]\ncommand: no-such-server\nargs: [server]\n";

// RES-002, RES-005, RES-006, RES-020 to RES-026
#[test]
fn resources() {
    let world = World::new();
    let added = world.json(&["resource", "add", "git-checkout", "repo", "--path", "repo", "-d", "The code"]);
    let data = &added["data"];
    assert_eq!((&data["name"], &data["branch"]), (&json!("local/repo"), &json!("main")), "{added:#}");
    assert_eq!(
        data["path"],
        world.repo().canonicalize().unwrap().display().to_string(),
        "a relative path is made whole"
    );
    assert_eq!(data["capabilities"]["sandbox_strategy"], "git_worktree");
    assert_eq!(added["messages"][0]["text"], "Resource registered (1 child resource discovered)");
    assert_eq!(
        world.refused(&["resource", "add", "git-checkout", "repo", "--path", "repo"])["error"]["code"],
        "ALREADY_EXISTS"
    );
    assert_eq!(
        world.refused(&["resource", "add", "git", "local/x", "--path", "repo"])["error"]["code"],
        "VALIDATION_FAILED"
    );

    assert_eq!(world.json(&["resource", "list"])["data"]["summary"]["total"], 1);
    assert_eq!(world.json(&["resource", "list", "--all"])["data"]["resources"].as_array().unwrap().len(), 2);
    let shown = world.json(&["resource", "show", data["id"].as_str().unwrap()]);
    assert_eq!(
        (&shown["data"]["parents"], &shown["data"]["name"]),
        (&json!(["(top-level)"]), &json!("local/repo"))
    );

    world.json(&["project", "create", "app", "--resource", "repo"]);
    let refused = world.refused(&["resource", "remove", "local/repo"]);
    assert_eq!(refused["error"]["code"], "INVALID_STATE");
    assert_eq!(refused["error"]["suggestions"][0], "agents project unlink-resource local/app local/repo");
    world.json(&["project", "unlink-resource", "-y", "app", "repo"]);
    let declined = world.run_in("json", &["resource", "remove", "local/repo"]);
    assert_eq!(declined.code, Some(1));
    assert!(
        declined.stderr.starts_with("Remove resource local/repo and 1 child resource? [y/N]: "),
        "{}",
        declined.stderr
    );
    assert_eq!(world.json(&["resource", "list"])["data"]["summary"]["total"], 1);
    let removed = world.json(&["resource", "remove", "--yes", "local/repo"]);
    assert_eq!(removed["data"]["children_removed"], 1);
}

// CLI-085 to CLI-111
#[test]
fn projects() {
    let world = World::registered(&choose_and_edit(0.9));
    let created = world.json(&["project", "create", "-d", "More", "other"]);
    assert_eq!(created["data"]["project"]["name"], "local/other");
    assert_eq!(world.refused(&["project", "create", "other"])["error"]["code"], "ALREADY_EXISTS");
    let linked = world.json(&["project", "link-resource", "--read-only", "other", "local/repo"]);
    assert_eq!(linked["data"]["access"]["write"], "denied");
    assert_eq!(
        world.refused(&["project", "link-resource", "other", "local/repo"])["error"]["code"],
        "ALREADY_EXISTS"
    );
    let listed = world.json(&["project", "list", "^local/o"]);
    assert_eq!(listed["messages"][0]["text"], "1 project listed");
    assert_eq!(world.json(&["project", "show", "other"])["data"]["linked_resources"][0]["read_only"], true);

    let plan = world.plan(&[]);
    let blocked = world.refused(&["project", "delete", "local/app"]);
    assert_eq!(blocked["data"]["delete_blocked"]["active_plans"][0]["plan_id"], plan.as_str(), "{blocked:#}");
    assert_eq!(blocked["messages"][0]["text"], "Delete blocked -- 1 active plan");
    let deleted = world.json(&["project", "delete", "--force", "--yes", "local/app"]);
    assert_eq!(deleted["data"]["deleted"]["plans_cancelled"], 1);
    let snapshot = deleted["data"]["backups"]["snapshot"].as_str().unwrap();
    assert!(snapshot.ends_with("/local-app.tgz") && std::path::Path::new(snapshot).is_file(), "{snapshot}");
    assert_eq!(world.at(&plan), "strategize/cancelled".to_owned());
}

// LSP-001, LSPCLI-001 to LSPCLI-011; LSPCLI-009: the words of a list
#[test]
fn language_servers() {
    let world = World::new();
    world.write("ruff.yaml", SERVER);
    let added = world.json(&["lsp", "add", "--config", "ruff.yaml"]);
    assert_eq!(added["data"]["lsp_server"]["command"], "no-such-server server");
    let levels: Vec<&serde_json::Value> =
        added["messages"].as_array().unwrap().iter().map(|m| &m["level"]).collect();
    assert!(levels.contains(&&json!("warn")), "a program that is not there is said: {added:#}");
    let again = world.refused(&["lsp", "add", "--config", "ruff.yaml"]);
    assert_eq!(again["data"]["error"], "LSP server 'local/ruff' already exists");
    assert_eq!(again["data"]["hint"], "Use --update to overwrite");
    assert_eq!(again["data"]["suggested_command"], "agents lsp add --update --config ruff.yaml");
    assert_eq!(again["error"]["suggestions"][0], "agents lsp add --update --config ruff.yaml");
    world.json(&["lsp", "add", "-u", "-c", "ruff.yaml"]);

    let listed = world.json(&["lsp", "list", "--language", "python"]);
    assert_eq!(listed["messages"][0]["text"], "1 LSP server listed (filtered: language=python)");
    assert_eq!(world.json(&["lsp", "list", "--language", "go"])["data"]["total"], 0);
    let plain = world.run_in("plain", &["lsp", "list"]).stdout;
    assert!(plain.starts_with("LSP Registry (1 server)\n"), "{plain}");
    let shown = world.json(&["lsp", "show", "ruff"]);
    assert_eq!(shown["data"]["lsp_server"]["root_path"], "{{ project.root }}");
    assert_eq!(
        shown["data"]["lsp_server"]["config"],
        world.dir.path().join("ruff.yaml").display().to_string()
    );
    let declined = world.run_in("json", &["lsp", "remove", "ruff"]);
    assert!(declined.stderr.starts_with("Remove LSP server local/ruff? [y/N]: "), "{}", declined.stderr);
    world.json(&["lsp", "remove", "-y", "ruff"]);
    assert_eq!(world.json(&["lsp", "list"])["data"]["total"], 0);
}

// ACT-001 to ACT-013
#[test]
fn actions() {
    let world = World::registered(&choose_and_edit(0.9));
    assert_eq!(world.refused(&["action", "create", "-c", "act.yaml"])["error"]["code"], "ALREADY_EXISTS");
    let shown = world.json(&["action", "show", "act"]);
    assert_eq!(shown["data"]["arguments"][0]["name"], "script");
    // ACT-007: where the file is, from whatever directory one asks
    assert_eq!(shown["data"]["config"], world.dir.path().join("act.yaml").display().to_string());
    let missing = world.refused(&["plan", "use", "act", "app"]);
    assert_eq!(missing["error"]["message"], "argument `script` is missing");
    assert_eq!(world.json(&["plan", "list"])["data"]["total"], 0, "a refused plan leaves no row");
    let archived = world.json(&["action", "archive", "act"]);
    assert_eq!(archived["data"]["state_transition"], "available -> archived");
    assert_eq!(world.json(&["action", "list"])["data"]["summary"]["total"], 0);
    assert_eq!(world.json(&["action", "list", "-s", "archived"])["data"]["actions"][0]["name"], "local/act");
    assert_eq!(world.refused(&["plan", "use", "act", "app"])["error"]["code"], "INVALID_STATE");
}
