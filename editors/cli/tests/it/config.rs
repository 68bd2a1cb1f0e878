//! `agents config`, as a newcomer meets it.

use serde_json::{Value, json};

use crate::system::{config, everything, text, write_config};
use crate::world::{Ran, World, choose_and_edit};

// CFG-001 to CFG-007
#[test]
fn a_key_is_set_shown_and_listed() {
    let world = World::new();
    let set = world.json(&["config", "set", "core.automation-profile", "trusted"]);
    assert_eq!(set["command"], "config set");
    assert_eq!(set["messages"], json!([{ "level": "ok", "text": "Config updated" }]));
    let data = &set["data"];
    assert_eq!(
        (&data["previous"], &data["value"], &data["scope"]),
        (&json!("supervised"), &json!("trusted"), &json!("global"))
    );
    assert_eq!(data["saved_to"], json!({ "file": config(&world), "line": 2 }));

    let get = world.json(&["config", "get", "core.automation-profile"]);
    assert_eq!(get["data"]["winner"], json!({ "source": "config file", "level": 4 }));
    let plain = world.run_in("plain", &["config", "get", "core.automation-profile"]).stdout;
    for part in [
        "Config\n  Key: core.automation-profile\n  Value: trusted\n  Source: config\n  Overridden: no\n  Type: string\n",
        "  1. CLI flag: (not set)\n  2. Env var: (not set)\n  3. Project: (not set)\n  4. Config file: trusted (",
        "  5. Default: supervised\n  Winner: config file (level 4)\n",
        "[OK] Config read\n",
    ] {
        assert!(plain.contains(part), "{part:?} in {plain}");
    }

    let list = world.json(&["config", "list"]);
    let settings = list["data"]["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 131);
    assert_eq!(list["messages"][0]["text"], "131 settings listed");
    assert_eq!(list["data"]["overrides"]["env"], json!(["CLEVERAGENTS_DATA_DIR"]));
    assert_eq!(list["data"]["config_file"]["valid"], true);
    let subtree = world.json(&["config", "list", "core.log.*"]);
    assert_eq!(subtree["data"]["settings"].as_array().unwrap().len(), 6);
    let none = world.run_in("plain", &["config", "list", "nothing"]);
    assert!(none.stdout.contains("No settings found."), "{}", none.stdout);
}

// CFG-006, CONF-012
#[test]
fn flags_and_variables_are_levels_of_the_chain() {
    let mut world = World::new();
    write_config(&world, "core.format = \"table\"\n");
    world.env.insert("CLEVERAGENTS_FORMAT", "yaml".into());
    let get = world.json(&["config", "get", "core.format"]);
    let chain: Vec<&Value> =
        get["data"]["resolution_chain"].as_array().unwrap().iter().map(|l| &l["value"]).collect();
    assert_eq!(chain, [&json!("json"), &json!("yaml"), &Value::Null, &json!("table"), &json!("rich")]);
    assert_eq!((&get["data"]["source"], &get["data"]["overridden"]), (&json!("cli"), &json!(true)));
    let set = world.json(&["config", "set", "core.format", "plain"]);
    assert_eq!(set["data"]["overridden_by"], "CLEVERAGENTS_FORMAT");
    assert_eq!(set["messages"][0]["level"], "warn");
    let own = world.dir.path().join("own.toml");
    world.json(&["--config-path", "own.toml", "config", "set", "core.namespace", "acme"]);
    assert_eq!(std::fs::read_to_string(own).unwrap(), "[core]\nnamespace = \"acme\"\n");
}

// CONF-009, CONF-010, CONF-011
#[test]
fn a_project_has_values_of_its_own() {
    let world = World::registered(&choose_and_edit(0.9));
    let set = world.json(&["config", "set", "--project", "app", "core.automation-profile", "review"]);
    assert_eq!((&set["data"]["scope"], &set["data"]["project"]), (&json!("project"), &json!("local/app")));
    assert_eq!(
        std::fs::read_to_string(config(&world)).unwrap(),
        "[project.\"local/app\"]\n\"core.automation-profile\" = \"review\"\n"
    );
    let of = |more: &[&str]| {
        world.json(&[&["config", "get", "core.automation-profile"], more].concat())["data"]["value"].clone()
    };
    assert_eq!((of(&[]), of(&["--project", "local/app"])), (json!("supervised"), json!("review")));
    let list = world.json(&["config", "list", "--project", "app", "core.automation-profile"]);
    assert_eq!(list["data"]["settings"][0]["source"], "project");
    let plan = world.make(&[]);
    assert_eq!(plan["data"]["automation_profile"], "review", "{plan:#}");
    for (args, words) in [
        (["config", "set", "--project", "nope", "plan.concurrency", "2"], "nope"),
        (["config", "set", "--project", "app", "core.format", "json"], "a project cannot have its own"),
    ] {
        let refused = world.refused(&args);
        assert!(text(&refused["error"], "message").contains(words), "{refused:#}");
    }
}

// CONF-005, CONF-006, CLI-014
#[test]
fn what_a_newcomer_gets_wrong_is_told_and_changes_nothing() {
    let world = World::new();
    write_config(&world, "# mine\n");
    let before = std::fs::read(config(&world)).unwrap();
    for (args, words) in [
        (&["config", "set", "core.formt", "json"][..], "core.formt"),
        (&["config", "set", "core.format", "xml"], "one of rich, color, table, plain, json, yaml"),
        (&["config", "set", "plan.concurrency", "-1"], "a whole number from 1"),
        (&["config", "set", "core", "x"], "group of configuration keys"),
        (&["config", "get", "nothing.like.it"], "nothing.like.it"),
        (&["config", "set", "core.automation-profile", "acme/mine"], "no automation profile"),
        (&["config", "set", "actor.default.strategy", "builtin/fixer"], "no actor"),
    ] {
        let refused = world.refused(args);
        assert!(text(&refused["error"], "message").contains(words), "{refused:#}");
        assert!(!refused["error"]["message"].as_str().unwrap().is_empty());
    }
    for args in [
        &["config", "list", "("][..],
        &["config", "list", "--filter-values", "["],
        &["config", "set", "core.format"],
        &["config"],
        &["config", "put"],
    ] {
        assert_eq!(world.run_in("json", args).code, Some(2), "{args:?}");
    }
    assert_eq!(std::fs::read(config(&world)).unwrap(), before);
}

// CONF-005
#[test]
fn a_file_with_mistakes_is_told_by_line_and_corrected_by_command() {
    let world = World::new();
    write_config(&world, "[core]\nformat = \"xml\"\n");
    let refused = world.refused(&["config", "get", "core.format"]);
    assert!(text(&refused["error"], "message").contains("config.toml:2:10"), "{refused:#}");
    world.json(&["config", "set", "core.format", "yaml"]);
    assert!(world.run(&["config", "get", "core.format"]).stdout.starts_with("command: config get\n"));

    let broken = "[core]\nformat = \"xml\n";
    write_config(&world, broken);
    let refused = world.refused(&["config", "set", "core.format", "json"]);
    assert_eq!(refused["error"]["code"], "CONFIGURATION");
    assert!(text(&refused["error"], "message").contains("config.toml:2:"), "{refused:#}");
    assert_eq!(std::fs::read_to_string(config(&world)).unwrap(), broken);
}

#[test]
fn reading_the_configuration_needs_no_database_and_makes_none() {
    let world = World::new();
    let before = everything(&world);
    world.json(&["config", "get", "core.format"]);
    world.json(&["config", "list"]);
    assert_eq!(everything(&world), before);
    std::fs::create_dir(world.data()).unwrap();
    std::fs::write(world.data().join("cleveragents.db"), vec![b'x'; 8192]).unwrap();
    world.json(&["config", "list"]);
    let refused = world.refused(&["config", "set", "core.format", "json"]);
    assert_eq!(refused["error"]["code"], "DATABASE");
    assert!(!config(&world).exists(), "what nobody could be told of is not done");
}

// SEC-022, SEC-034
#[test]
fn a_secret_that_was_set_is_never_shown() {
    let world = World::new();
    let key = "provider.openai.api-key";
    let mut shown = Vec::new();
    for args in [
        &["config", "set", key, "sk-very-secret"][..],
        &["config", "get", key],
        &["config", "list", "provider.*"],
        &["diagnostics"],
    ] {
        for format in ["plain", "json"] {
            let ran = world.run_in(format, args);
            shown.push(format!("{}{}", ran.stdout, ran.stderr));
        }
    }
    assert!(shown[0].contains("********"), "{}", shown[0]);
    assert!(shown.iter().all(|text| !text.contains("very-secret")), "{shown:?}");
}

#[test]
fn two_processes_that_set_keys_at_once_lose_nothing() {
    let world = World::new();
    let pairs = [
        ("core.namespace", "acme"),
        ("core.format", "json"),
        ("plan.concurrency", "7"),
        ("core.log.level", "WARN"),
    ];
    let running: Vec<_> = pairs
        .iter()
        .map(|(key, value)| world.command(&["config", "set", key, value]).spawn().unwrap())
        .collect();
    for child in running {
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    }
    for (key, value) in pairs {
        let got = world.json(&["config", "get", key]);
        assert_eq!(got["data"]["resolution_chain"][3]["value"].to_string().trim_matches('"'), value, "{key}");
    }
}
