//! Setting, getting and listing configuration keys.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use agents_config::{Config, KEYS, Parts};
use agents_domain::ErrorKind;
use agents_engine::operations::config::{self, Set};
use agents_engine::{Nowhere, Surroundings};
use serde_json::{Value, json};

use crate::harness::Bench;
use crate::machine::Machine;

fn bench() -> Bench {
    Bench::new(&[("a.py", "x = 1\n")], &[])
}

fn file(bench: &Bench) -> PathBuf {
    bench.dir.path().join("data/config.toml")
}

fn set(bench: &Bench, key: &str, value: &str) -> Value {
    bench.ok("config/set", json!({ "key": key, "value": value }))
}

fn get(bench: &Bench, key: &str) -> Value {
    bench.ok("config/get", json!({ "key": key }))
}

/// Message and suggestions of a refusal.
fn refused(bench: &Bench, method: &str, params: Value) -> (ErrorKind, String) {
    let error = bench.err(method, params);
    (error.kind, format!("{} | {}", error.message, error.suggestions.join(" | ")))
}

// CFG-001, CFG-002, CFG-003, CONF-009
#[test]
fn setting_writes_the_file_and_says_what_was_and_where_it_stands() {
    let bench = bench();
    let text = "# mine\n[core]\n# loud\nformat = \"json\" # always\n";
    std::fs::write(file(&bench), text).unwrap();
    std::fs::set_permissions(file(&bench), std::fs::Permissions::from_mode(0o644)).unwrap();
    let done = set(&bench, "core.format", "table");
    assert_eq!(
        (&done["key"], &done["value"], &done["previous"]),
        (&json!("core.format"), &json!("table"), &json!("json"))
    );
    assert_eq!((&done["source"], &done["scope"]), (&json!("config"), &json!("global")));
    assert_eq!(
        done["effective"],
        json!({ "sessions": "new sessions", "plans": "future plans (unless set)", "existing": "unchanged" })
    );
    assert_eq!(done["saved_to"], json!({ "file": file(&bench), "line": 4 }));
    assert_eq!(std::fs::read_to_string(file(&bench)).unwrap(), text.replace("json", "table"));
    let mode = std::fs::metadata(file(&bench)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it may hold secrets");
    assert_eq!(get(&bench, "core.format")["value"], "table");
    let others: Vec<_> = std::fs::read_dir(file(&bench).parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("config"))
        .collect();
    assert_eq!(others, ["config.toml"], "no temporary file stays");
}

// CFG-002, CFG-008
#[test]
fn previous_is_the_default_or_null_where_nothing_was_set() {
    let bench = bench();
    assert_eq!(set(&bench, "core.automation-profile", "trusted")["previous"], "supervised");
    assert_eq!(set(&bench, "plan.budget.per-plan", "2.5")["previous"], Value::Null);
    assert_eq!(set(&bench, "plan.budget.per-plan", "3")["previous"], 2.5);
}

// CFG-005, CFG-006, CONF-001, CONF-007
#[test]
fn the_chain_has_five_levels_and_names_the_winner() {
    let bench = bench();
    bench.ok("config/set", json!({ "key": "plan.concurrency", "value": "8" }));
    bench.ok("config/set", json!({ "key": "plan.concurrency", "value": "2", "project": "app" }));
    let global = get(&bench, "plan.concurrency");
    let chain = |value: &Value| -> Vec<(u64, String, Value)> {
        let levels = value["resolution_chain"].as_array().unwrap();
        let level = |l: &Value| {
            (l["level"].as_u64().unwrap(), l["source"].as_str().unwrap().to_owned(), l["value"].clone())
        };
        levels.iter().map(level).collect()
    };
    let expected = |project: Value| {
        let levels = [
            ("CLI flag", Value::Null),
            ("Env var", Value::Null),
            ("Project", project),
            ("Config file", json!(8)),
            ("Default", json!(4)),
        ];
        (1..).zip(levels).map(|(n, (source, value))| (n, source.to_owned(), value)).collect::<Vec<_>>()
    };
    assert_eq!(chain(&global), expected(Value::Null));
    assert_eq!(global["winner"], json!({ "source": "config file", "level": 4 }));
    assert_eq!(
        (&global["source"], &global["overridden"], &global["type"]),
        (&json!("config"), &json!(false), &json!("integer"))
    );
    assert_eq!(global["origin"], json!({ "file": file(&bench), "line": 2, "default": 4 }));

    let of_project = bench.ok("config/get", json!({ "key": "plan.concurrency", "project": "local/app" }));
    assert_eq!(chain(&of_project), expected(json!(2)));
    assert_eq!(of_project["winner"], json!({ "source": "project", "level": 3 }));
    assert_eq!(
        (&of_project["value"], &of_project["source"], &of_project["overridden"]),
        (&json!(2), &json!("project"), &json!(true))
    );
    assert_eq!(of_project["origin"]["line"], 5);

    let unset = get(&bench, "core.format");
    assert_eq!(unset["winner"], json!({ "source": "default", "level": 5 }));
    assert_eq!((&unset["origin"]["file"], &unset["origin"]["line"]), (&Value::Null, &Value::Null));
    assert_eq!(unset["allowed"][0], "rich");
}

// CFG-006, CONF-001
#[test]
fn a_variable_that_is_stronger_than_the_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let machine =
        Machine::bare().set("HOME", dir.path().to_str().unwrap()).set("CLEVERAGENTS_FORMAT", "yaml");
    let env = |name: &str| machine.variable(name);
    let config = Config::load(Parts { flags: Vec::new(), env: &env, file: None }).unwrap();
    let params = Set { key: "core.format".into(), value: "table".into(), project: None };
    let done = config::repair(&config, &machine, &params).unwrap();
    assert_eq!(done.overridden_by.as_deref(), Some("CLEVERAGENTS_FORMAT"));
    let text = std::fs::read_to_string(dir.path().join(".cleveragents/config.toml")).unwrap();
    assert_eq!(text, "[core]\nformat = \"table\"\n");
    let got = config::get(&config, "core.format", None).unwrap();
    assert_eq!((got.source.as_str(), got.value), ("env", json!("yaml")));
    assert_eq!(got.resolution_chain[1].origin.as_deref(), Some("CLEVERAGENTS_FORMAT"));
    let listed = config::list(&config, &config::List::default()).unwrap();
    assert_eq!(listed.overrides.env, Some(vec!["CLEVERAGENTS_FORMAT".to_owned()]));
    assert_eq!(listed.overrides.cli_flags, None);
}

// CONF-005, CONF-006, CONF-010, CFG-001
#[test]
fn what_cannot_be_set_is_refused_with_what_would_be_right_and_nothing_changes() {
    let bench = bench();
    let before = "[core]\nnamespace = \"acme\"\n";
    std::fs::write(file(&bench), before).unwrap();
    use ErrorKind::{NotFound, ValidationFailed};
    let cases = [
        (json!({ "key": "core.formt", "value": "json" }), ValidationFailed, "did you mean `core.format`?"),
        (json!({ "key": "format", "value": "json" }), ValidationFailed, "did you mean `core.format`?"),
        (json!({ "key": "core", "value": "json" }), ValidationFailed, "agents config list 'core.*'"),
        (json!({ "key": "", "value": "json" }), ValidationFailed, "there is no configuration key ``"),
        (json!({ "key": "core.format", "value": "jsn" }), ValidationFailed, "did you mean `json`?"),
        (json!({ "key": "core.format", "value": "" }), ValidationFailed, "must be one of rich"),
        (json!({ "key": "plan.concurrency", "value": "many" }), ValidationFailed, "a whole number from 1"),
        (json!({ "key": "core.config-path", "value": "/x" }), ValidationFailed, "--config-path <PATH>"),
        (
            json!({ "key": "core.format", "value": "json", "project": "app" }),
            ValidationFailed,
            "a project cannot have its own",
        ),
        (
            json!({ "key": "plan.concurrency", "value": "2", "project": "nope" }),
            NotFound,
            "agents project list",
        ),
        (
            json!({ "key": "core.automation-profile", "value": "trustd" }),
            ValidationFailed,
            "did you mean `trusted`?",
        ),
        (
            json!({ "key": "core.automation-profile", "value": "acme/x" }),
            NotFound,
            "known profiles: manual, review",
        ),
        (
            json!({ "key": "actor.default.strategy", "value": "local/none" }),
            NotFound,
            "no actor `local/none`",
        ),
        (
            json!({ "key": "provider.openai.base-url", "value": "${NO_SUCH}/v1" }),
            ValidationFailed,
            "must be a URL",
        ),
        (
            json!({ "key": "index.embedding.model", "value": "${NO_SUCH}" }),
            ValidationFailed,
            "uses `${NO_SUCH}`, which is not set",
        ),
    ];
    for (params, kind, words) in cases {
        let (found, told) = refused(&bench, "config/set", params.clone());
        assert_eq!(found, kind, "{params}: {told}");
        assert!(told.contains(words), "{params}: {told}");
    }
    assert_eq!(std::fs::read_to_string(file(&bench)).unwrap(), before);
    let told = refused(&bench, "config/get", json!({ "key": "core.log.levl" })).1;
    assert!(told.contains("did you mean `core.log.level`?"), "{told}");
    let told = refused(&bench, "config/get", json!({ "key": "plan.budget" })).1;
    assert!(told.contains("is a group") && told.contains("agents config list 'plan.budget.*'"), "{told}");
}

// CONF-030, SEC-034
#[test]
fn a_change_is_an_event_and_an_audit_record_and_secrets_are_masked_in_both() {
    let bench = bench();
    set(&bench, "core.format", "json");
    set(&bench, "core.format", "json");
    let done = set(&bench, "provider.openai.api-key", "sk-first");
    assert_eq!(
        (&done["value"], &done["previous"], &done["in_effect"]),
        (&json!("********"), &Value::Null, &json!(true))
    );
    assert_eq!(set(&bench, "provider.openai.api-key", "sk-second")["previous"], "********");
    bench.ok("config/set", json!({ "key": "plan.concurrency", "value": "2", "project": "app" }));
    let events = bench.ok("events/after", json!({ "sequence": 0 }));
    let events: Vec<&Value> =
        events["events"].as_array().unwrap().iter().filter(|e| e["event_type"] == "config.changed").collect();
    assert_eq!(events.len(), 4, "the same value again is no change");
    let details = |n: usize| &events[n]["details"];
    assert_eq!(
        (&details(0)["key"], &details(0)["old_value"], &details(0)["new_value"]),
        (&json!("core.format"), &json!("rich"), &json!("json"))
    );
    assert_eq!(
        (&details(2)["old_value"], &details(2)["new_value"]),
        (&json!("********"), &json!("********"))
    );
    assert_eq!(
        (&events[3]["project_name"], &events[3]["user_identity"]),
        (&json!("local/app"), &json!("tester"))
    );
    let audit = {
        use agents_domain::ports::store::StoreExt;
        bench.engine.store().view(|r| r.audit(None, 10)).unwrap()
    };
    let mine: Vec<_> = audit.iter().filter(|a| a.event_type == "config_changed").collect();
    assert_eq!(mine.len(), 4);
    let everything = format!("{events:?}{audit:?}");
    assert!(!everything.contains("sk-"), "{everything}");
}

// CFG-005, SEC-022
#[test]
fn a_secret_is_shown_nowhere() {
    let bench = bench();
    set(&bench, "provider.openai.api-key", "sk-secret");
    let shown = format!("{}{}", get(&bench, "provider.openai.api-key"), bench.ok("config/list", json!({})));
    assert!(!shown.contains("sk-secret"));
    let found = bench.ok("config/list", json!({ "filter_values": "secret" }));
    assert_eq!(found["settings"], json!([]), "a filter does not tell what a secret is");
}

#[test]
fn a_key_without_effect_is_kept_and_said_to_have_none() {
    let bench = bench();
    let done = set(&bench, "index.text.backend", "sqlite_fts");
    assert_eq!(done["in_effect"], false);
    assert!(done["notes"][0].as_str().unwrap().contains("nothing in this version acts on it"), "{done}");
    assert_eq!(get(&bench, "index.text.backend")["value"], "sqlite_fts");
}

// CFG-007, CONF-004, CONF-008, CLI-024, G26
#[test]
fn a_list_has_every_key_or_those_that_match() {
    let bench = bench();
    set(&bench, "plan.concurrency", "8");
    let all = bench.ok("config/list", json!({}));
    assert_eq!(all["settings"].as_array().unwrap().len(), KEYS.len());
    assert_eq!(all["overrides"], json!({ "env": null, "cli_flags": null }));
    let size = std::fs::metadata(file(&bench)).unwrap().len();
    assert_eq!(
        all["config_file"],
        json!({ "path": file(&bench), "size_bytes": size, "valid": true, "exists": true })
    );
    let names = |params: Value| -> Vec<String> {
        let found = bench.ok("config/list", params);
        found["settings"].as_array().unwrap().iter().map(|s| s["key"].as_str().unwrap().to_owned()).collect()
    };
    let subtree = names(json!({ "pattern": "core.log.*" }));
    assert_eq!(subtree.len(), 6);
    assert!(subtree.iter().all(|name| name.starts_with("core.log.")));
    assert_eq!(names(json!({ "pattern": "*.concurrency" })), ["plan.concurrency"]);
    assert_eq!(
        names(json!({ "pattern": "^plan\\.(concurrency|max)" })),
        ["plan.concurrency", "plan.max-child-depth"]
    );
    assert_eq!(names(json!({ "pattern": "concurrency" })), ["plan.concurrency"]);
    assert_eq!(names(json!({ "filter_values": "^supervised$" })), ["core.automation-profile"]);
    assert_eq!(names(json!({ "pattern": "nothing.*" })), [""; 0]);
    let modified = &bench.ok("config/list", json!({ "pattern": "plan.concurrency" }))["settings"][0];
    assert_eq!(
        modified,
        &json!({ "key": "plan.concurrency", "value": 8, "source": "config", "modified": true, "in_effect": true })
    );
    for params in [json!({ "pattern": "(" }), json!({ "filter_values": "[" })] {
        assert_eq!(bench.err("config/list", params).kind, ErrorKind::Usage);
    }
}

// CONF-003, CONF-009
#[test]
fn a_file_with_mistakes_can_be_corrected_by_command_but_not_one_that_is_no_toml() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let config = Config::defaults(dir.path());
    let set = |key: &str, value: &str| {
        config::repair(&config, &Nowhere, &Set { key: key.into(), value: value.into(), project: None })
    };
    std::fs::write(&path, "[core]\nformat = \"xml\"\nnamespace = 3\n").unwrap();
    let done = set("core.format", "json").unwrap();
    assert!(done.notes[0].contains("config.toml:3:13"), "{:?}", done.notes);
    assert_eq!((done.saved_to.line, done.value), (None, json!("json")));
    let done = set("core.namespace", "acme").unwrap();
    assert_eq!((done.saved_to.line, done.notes.len()), (Some(3), 0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "[core]\nformat = \"json\"\nnamespace = \"acme\"\n");

    let broken = "[core]\nformat = \"json\nnamespace = \"x\"\n";
    std::fs::write(&path, broken).unwrap();
    let error = set("core.format", "json").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert!(error.message.contains("config.toml:2:"), "{}", error.message);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);
    assert!(set("core.formt", "x").unwrap_err().message.contains("core.formt"), "the key is wrong first");
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let params = Set { key: "core.format".into(), value: "json".into(), project: None };
    let blocked = dir.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let error = config::repair(&Config::defaults(&blocked), &Nowhere, &params).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(error.message.contains("file") && error.message.contains("not a directory"), "{}", error.message);
    let folder = dir.path().join("data");
    std::fs::create_dir_all(folder.join("config.toml")).unwrap();
    let error = config::repair(&Config::defaults(&folder), &Nowhere, &params).unwrap_err();
    assert!(error.message.contains("it is a directory, not a file"), "{}", error.message);
}

#[test]
fn a_link_to_the_file_stays_a_link() {
    let bench = bench();
    let real = bench.dir.path().join("dotfiles.toml");
    std::fs::write(&real, "# kept\n").unwrap();
    std::os::unix::fs::symlink(&real, file(&bench)).unwrap();
    set(&bench, "core.format", "json");
    assert!(file(&bench).symlink_metadata().unwrap().is_symlink());
    let text = std::fs::read_to_string(&real).unwrap();
    assert!(text.contains("# kept") && text.contains("format = \"json\""), "{text}");
}

// Two writers at once: nobody's value is lost.
#[test]
fn many_writers_at_once_lose_nothing() {
    let bench = bench();
    let writers = [
        ("core.namespace", "acme"),
        ("core.format", "json"),
        ("plan.concurrency", "7"),
        ("audit.retention-days", "9"),
    ];
    std::thread::scope(|scope| {
        for (key, value) in writers {
            scope.spawn(|| {
                for _ in 0..5 {
                    set(&bench, key, value);
                }
            });
        }
    });
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for (key, value) in writers {
        assert_eq!(text(&get(&bench, key)["value"]), value, "{key}");
    }
}

#[test]
fn keys_that_people_name_themselves_are_set_and_found() {
    let bench = bench();
    let key = "context.uko.analyzers.custom.sql.module";
    set(&bench, key, "acme.sql");
    assert_eq!(get(&bench, key)["value"], "acme.sql");
    assert_eq!(get(&bench, "context.uko.analyzers.custom.go.module")["value"], Value::Null);
    let all = get(&bench, "context.uko.analyzers.custom.*");
    assert_eq!(all["value"]["sql"]["module"], "acme.sql");
}
