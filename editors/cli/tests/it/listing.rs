//! What is listed and shown of the program, its place and its plans.

use serde_json::{Value, json};

use crate::world::{World, choose_and_edit, decision, done};

// CLI-030, CLI-031, CLI-032, CLI-033
#[test]
fn version_says_what_was_built_of_what() {
    let world = World::new();
    let version = world.json(&["version"]);
    let (cli, build) = (&version["data"]["cli"], &version["data"]["build"]);
    let keys = |value: &Value| {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(cli), ["channel", "name", "rust", "version"]);
    assert_eq!(keys(build), ["build_date", "commit", "platform", "schema"]);
    let date = build["build_date"].as_str().unwrap();
    assert_eq!((date.len(), &date[4..5], &date[7..8]), (10, "-", "-"), "{date}");
    assert_eq!(build["commit"].as_str().unwrap().len(), 7);
    assert!(version["data"]["dependencies"]["tree-sitter"].is_string(), "{version:#}");
    assert_eq!(version["messages"][0]["text"], "Version reported");
    let plain = world.run_in("plain", &["version"]).stdout;
    let headings: Vec<&str> =
        plain.lines().filter(|l| ["CLI Version", "Build", "Dependencies"].contains(l)).collect();
    assert_eq!(headings, ["CLI Version", "Build", "Dependencies"], "{plain}");
}

// CLI-034, CLI-035, CLI-036, CLI-037, CLI-038, CLI-039
#[test]
fn info_says_where_everything_is_and_how_much() {
    let world = World::registered(&choose_and_edit(0.9));
    world.plan(&[]);
    let info = world.json(&["info"]);
    let data = &info["data"];
    let dir = world.data().display().to_string();
    assert_eq!(data["environment"]["data_dir"], dir);
    assert_eq!(data["environment"]["config"], format!("{dir}/config.toml"));
    assert_eq!(data["environment"]["database"], format!("sqlite://{dir}/cleveragents.db"));
    assert_eq!(data["environment"]["server_mode"], "disabled");
    assert!(data["environment"]["platform"].as_str().unwrap().ends_with(')'));
    assert_eq!(
        data["runtime"],
        json!({ "automation": "supervised", "providers": 0, "sessions": "0 active", "active_plans": 1 })
    );
    for key in ["cache_mb", "logs_mb", "backups", "db_size_mb"] {
        assert!(data["storage"][key].is_u64(), "{key}: {data:#}");
    }
    assert_eq!(
        data["indexing"],
        json!({
            "text_index": "disabled", "vector_index": "disabled", "graph_store": "disabled", "indexed_files": 0,
        })
    );
    assert_eq!(info["messages"], json!([{ "level": "ok", "text": "Environment details ready" }]));
    let plain = world.run_in("plain", &["info"]).stdout;
    for heading in ["Environment", "Runtime", "Storage", "Indexing"] {
        assert!(plain.lines().any(|l| l == heading), "{plain}");
    }
    assert!(plain.contains("0 configured"), "{plain}");
}

// PLAN-023, DEC-026, DEC-030, CLI-106
#[test]
fn lists_count_and_flags_are_those_of_the_commands() {
    let world = World::registered(&choose_and_edit(0.9));
    let empty = world.json(&["plan", "list"]);
    assert_eq!(
        (&empty["data"]["plans"], &empty["messages"][0]["text"]),
        (&json!([]), &json!("0 plans listed"))
    );
    let plan = world.plan(&[]);
    assert_eq!(world.json(&["plan", "list"])["messages"][0]["text"], "1 plan listed");
    world.plan(&[]);
    assert_eq!(world.json(&["plan", "list"])["messages"][0]["text"], "2 plans listed");
    let usage = world.run_in("json", &["plan", "list", "--state", "nothing"]);
    assert_eq!(usage.code, Some(2), "{}", usage.stdout);
    world.json(&["plan", "tree", "--show-superseded", &plan]);
    assert_eq!(world.run_in("json", &["plan", "tree"]).code, Some(2));
    assert_eq!(world.run_in("json", &["plan", "explain", "--show-context"]).code, Some(2));
    assert_eq!(world.run_in("json", &["project", "validations", "local/app"]).code, Some(2));
}

// DEC-028: JSON has the whole tree, however deep
#[test]
fn a_deep_tree_is_whole() {
    let depth = 12;
    let mut requests = Vec::new();
    for n in 0..depth {
        let parent = (n > 0).then(|| format!("strategy/{}", n - 1));
        requests.push(decision(&format!("strategy/{n}"), "strategy_choice", parent.as_deref(), 0.9));
    }
    let world = World::registered(&json!({
        "strategize": [{ "requests": requests }, { "outcome": done("decided") }],
        "execute": [{ "outcome": done("did it") }],
    }));
    let plan = world.plan(&[]);
    let tree = world.json(&["plan", "tree", &plan]);
    assert_eq!(tree["data"]["summary"]["nodes"], depth + 1, "{tree:#}");
    let mut node = &tree["data"]["tree"];
    for _ in 0..depth {
        node = &node["children"][0];
        assert_eq!(node["type"], "strategy_choice");
    }
    assert_eq!(node["children"], json!([]));
}

// DEC-029, DEC-031, DEC-032, COM-005
#[test]
fn a_replaced_decision_is_counted_and_shown_on_demand() {
    let world = World::registered(&choose_and_edit(0.3));
    let plan = world.plan(&["--automation-profile", "cautious"]);
    world.document(&["plan", "execute", &plan]);
    assert_eq!(world.at(&plan), "strategize/processing+decision");
    world.document(&["plan", "prompt", &plan, "2"]);
    let hidden = world.json(&["plan", "tree", &plan]);
    assert!(hidden["data"]["summary"]["superseded"].as_u64().unwrap() >= 1, "{hidden:#}");
    let flat = |tree: &Value| tree["data"]["tree"].to_string().matches("\"superseded_by\"").count();
    assert_eq!(flat(&hidden), 0);
    let shown = world.json(&["plan", "tree", "--show-superseded", &plan]);
    assert!(flat(&shown) >= 1, "{shown:#}");
    let plain = world.run_in("plain", &["plan", "tree", "--show-superseded", &plan]).stdout;
    assert!(plain.contains("replaced by"), "{plain}");

    let root = hidden["data"]["tree"]["decision_id"].as_str().unwrap();
    let explained = world.json(&["plan", "explain", root]);
    let data = explained["data"].as_object().unwrap();
    for key in [
        "decision_id",
        "type",
        "question",
        "chosen",
        "confidence",
        "plan_id",
        "sequence",
        "created",
        "alternatives",
        "impact",
        "rationale",
        "correction_hint",
        "confidence_score",
        "choice",
        "alternatives_count",
    ] {
        assert!(data.contains_key(key), "{key}: {explained:#}");
    }
    assert!(!data.contains_key("context_snapshot") && !data.contains_key("model_reasoning"));
    let created = data["created"].as_str().unwrap();
    assert!(created.len() == 20 && created.ends_with('Z'), "{created}");
    let plain = world.run_in("plain", &["plan", "explain", root]).stdout;
    let people = created[..16].replace('T', " ");
    assert!(plain.contains(&people) && !plain.contains(created), "{plain}");
    let context = world.json(&["plan", "explain", "--show-context", root]);
    assert!(context["data"]["context_snapshot"]["hot_context_hash"].is_string(), "{context:#}");
}
