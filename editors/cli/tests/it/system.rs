//! Diagnostics, init and configuration, as a newcomer meets them.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{Ran, World, choose_and_edit, document};

fn config(world: &World) -> PathBuf {
    world.data().join("config.toml")
}

/// Writes the configuration file of a data directory that is for its owner only.
fn write_config(world: &World, text: &str) {
    std::fs::DirBuilder::new().recursive(true).create(world.data()).unwrap();
    std::fs::set_permissions(world.data(), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(config(world), text).unwrap();
    std::fs::set_permissions(config(world), std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Runs a command with an answer to its question.
fn answered(world: &World, answer: &str, args: &[&str]) -> Ran {
    let mut child = world.command(args).stdin(Stdio::piped()).spawn().unwrap();
    // A command that asks nothing may have ended already.
    let _ = child.stdin.take().unwrap().write_all(answer.as_bytes());
    child.wait_with_output().unwrap().into()
}

fn check<'d>(found: &'d Value, name: &str) -> &'d Value {
    let checks = found["data"]["checks"].as_array().unwrap_or_else(|| panic!("{found:#}"));
    checks.iter().find(|c| c["check"] == name).unwrap_or_else(|| panic!("no check {name}: {found:#}"))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key}: {value:#}"))
}

/// Everything in the world with its content, but for the repository and what SQLite keeps beside a database.
fn everything(world: &World) -> Vec<(PathBuf, String)> {
    let mut open = vec![world.dir.path().to_owned()];
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path == world.repo() || name.ends_with("-wal") || name.ends_with("-shm") {
            continue;
        }
        match std::fs::read_dir(&path) {
            Ok(entries) => {
                found.push((path, String::new()));
                open.extend(entries.map(|e| e.unwrap().path()));
            }
            Err(_) => {
                let content = std::fs::read(&path).unwrap();
                found.push((path, String::from_utf8_lossy(&content).into_owned()));
            }
        }
    }
    found.sort();
    found
}

// ---- diagnostics --------------------------------------------------------------------------------------------------

// CLI-040, CLI-046, CLI-049, OBS-014
#[test]
fn a_fresh_machine_is_diagnosed_without_a_trace() {
    let world = World::new();
    let before = everything(&world);
    let found = world.json(&["diagnostics"]);
    assert_eq!(everything(&world), before);
    let names: Vec<&str> =
        found["data"]["checks"].as_array().unwrap().iter().map(|c| text(c, "check")).collect();
    assert_eq!(
        (names[0], names[1], names[16], *names.last().unwrap()),
        ("Config file", "Database", "Git", "Terminal")
    );
    assert_eq!(found["data"]["errors"], json!([]));
    assert!(text(check(&found, "Git"), "details").starts_with("git 2."));
    assert_eq!(text(check(&found, "File permissions"), "details"), "data dir not there yet, can be made");
    assert_eq!(text(check(&found, "Terminal"), "details"), "output goes to no terminal");
    let warnings = found["data"]["summary"]["warnings"].as_u64().unwrap();
    let said = text(&found["messages"][0], "text");
    match warnings {
        0 => assert_eq!(said, "All checks passed"),
        1 => assert_eq!(said, "1 warning requires attention"),
        n => assert_eq!(said, format!("{n} warnings require attention")),
    }
}

// CLI-045, CLI-048
#[test]
fn errors_are_numbered_with_what_to_do_and_end_with_exit_code_one() {
    let mut world = World::new();
    let bin = world.dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    world.env.insert("PATH", bin.display().to_string());
    let ran = world.run_in("plain", &["diagnostics"]);
    assert_eq!(ran.code, Some(1));
    for part in [
        "Checks\n",
        "Git                 ERROR   not found on PATH",
        "Python              WARN    python3 not found on PATH",
        "Errors (must fix)\n  1. Git: not found on PATH\n     Install git 2.38 or newer: https://git-scm.com/downloads\n",
        "Recommendations\n  - Install Python 3 with venv",
        "  Errors: 1\n",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} in {}", ran.stdout);
    }
    assert!(
        ran.stdout.ends_with("[ERROR] 1 error must be resolved before CleverAgents can operate\n"),
        "{}",
        ran.stdout
    );
    let found = document(&world.run_in("json", &["diagnostics"]), &["diagnostics"]);
    assert_eq!((&found["status"], &found["exit_code"]), (&json!("error"), &json!(1)));
    let error = &found["data"]["errors"][0];
    assert_eq!((&error["index"], text(error, "message")), (&json!(1), "Git: not found on PATH"));
    assert_eq!(found["messages"][0]["level"], "error");
}

#[test]
fn what_is_broken_is_diagnosed_all_the_same() {
    let world = World::new();
    write_config(&world, "[core]\nformat = \"json\n");
    let garbage = vec![b'x'; 8192];
    std::fs::write(world.data().join("cleveragents.db"), &garbage).unwrap();
    let before = everything(&world);
    for args in [&["diagnostics"][..], &["diagnostics", "--cleanup"]] {
        let found = document(&world.run_in("json", args), args);
        assert_eq!(found["exit_code"], 1);
        assert!(text(check(&found, "Config file"), "details").contains("config.toml:2:"), "{found:#}");
        assert!(text(check(&found, "Database"), "details").contains("damaged"), "{found:#}");
        assert_eq!(found["data"]["errors"].as_array().unwrap().len(), 2);
        assert_eq!(everything(&world), before, "looking changes nothing");
    }
}

#[test]
fn a_mistake_in_the_environment_is_named_with_its_variable() {
    let mut world = World::new();
    world.env.insert("CLEVERAGENTS_PLAN_CONCURRENCY", "many".into());
    let args = ["diagnostics"];
    let found = document(&world.run_in("json", &args), &args);
    assert!(
        text(check(&found, "Config file"), "details").starts_with("CLEVERAGENTS_PLAN_CONCURRENCY"),
        "{found:#}"
    );
    for args in [&["config", "set", "core.format", "json"][..], &["init", "--yes"]] {
        let refused = document(&world.run_in("json", args), args);
        assert_eq!(refused["error"]["code"], "CONFIGURATION", "{refused:#}");
    }
    assert!(!world.data().exists());
}

#[test]
fn a_data_directory_that_cannot_be_is_an_error_of_one_check() {
    let world = World::new();
    std::fs::write(world.data(), "").unwrap();
    let args = ["diagnostics"];
    let found = document(&world.run_in("json", &args), &args);
    assert_eq!(found["exit_code"], 1);
    assert!(text(check(&found, "File permissions"), "details").contains("is a file, not a directory"));
}

// CONF-022, SBX-004
#[test]
fn cleanup_takes_away_what_a_cancelled_plan_left() {
    let world = World::registered(&choose_and_edit(0.9));
    let plan = world.plan(&["--automation-profile", "trusted"]);
    world.json(&["plan", "cancel", &plan]);
    let found = world.json(&["diagnostics"]);
    let left = &found["data"]["leftovers"][0];
    assert_eq!((text(left, "kind"), text(left, "plan_id")), ("sandbox", plan.as_str()));
    let folder = PathBuf::from(text(left, "path"));
    assert!(folder.is_dir());
    let cleaned = world.run_in("plain", &["diagnostics", "--cleanup"]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.stdout);
    assert!(cleaned.stdout.contains("Cleanup\n  Removed: 1\n  Kept: 0\n"), "{}", cleaned.stdout);
    assert!(!folder.exists());
    world.json(&["plan", "status", &plan]);
}

// ---- init ---------------------------------------------------------------------------------------------------------

// CLI-055, CLI-056, CLI-057
#[test]
fn init_makes_everything_and_the_second_time_nothing() {
    let world = World::new();
    let made = world.run_in("plain", &["init"]);
    assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""), "an empty place needs no question");
    let data = world.data().display().to_string();
    assert!(made.stdout.contains(&format!("Initialized\n  Data Dir: {data} (created)\n")), "{}", made.stdout);
    assert!(made.stdout.ends_with("[OK] Environment initialized\n"), "{}", made.stdout);
    let before = everything(&world);
    // The script's standard input is empty, so nobody answers.
    let again = world.json(&["init"]);
    assert_eq!(again["data"]["initialized"]["state"], "unchanged");
    assert_eq!(everything(&world), before);
    world.json(&["plan", "list"]);
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(world.data()), mode(config(&world))), (0o700, 0o600));
    let diagnosed = world.json(&["diagnostics"]);
    assert_eq!(text(check(&diagnosed, "Config file"), "details"), "readable");
    assert_eq!(text(check(&diagnosed, "File permissions"), "details"), "data dir r/w");
}

// CLI-051 to CLI-054, CLI-027 to CLI-029
#[test]
fn init_asks_before_it_starts_anew_and_keeps_a_backup() {
    let world = World::registered(&choose_and_edit(0.9));
    world.json(&["init"]);
    assert_eq!(
        world.json(&["project", "list"])["data"]["projects"].as_array().unwrap().len(),
        1,
        "data is kept"
    );
    let before = everything(&world);
    for answer in ["n\n", "\n"] {
        let args = ["--format", "json", "init"];
        let declined = answered(&world, answer, &args);
        let told = document(&declined, &args);
        assert_eq!((&told["status"], &told["exit_code"]), (&json!("cancelled"), &json!(1)), "{told:#}");
        let data = world.data().display().to_string();
        let question = format!("Warning: This will remove all data in {data}\nContinue? [y/N]: ");
        assert!(declined.stderr.starts_with(&question), "{}", declined.stderr);
    }
    assert_eq!(everything(&world), before);
    let args = ["--format", "json", "init"];
    let done = document(&answered(&world, "y\n", &args), &args);
    assert_eq!(done["exit_code"], 0, "{done:#}");
    let reset = &done["data"]["environment_reset"];
    assert_eq!(text(reset, "status"), "ready");
    let backup = PathBuf::from(text(reset, "backup"));
    assert!(
        backup.starts_with(world.dir.path()) && backup.join("cleveragents.db").exists(),
        "{}",
        backup.display()
    );
    assert!(backup.file_name().unwrap().to_string_lossy().starts_with("data.backup-20"));
    assert_eq!(
        done["data"]["defaults"],
        json!({ "automation_profile": "supervised", "builtin_profiles": 8 })
    );
    assert_eq!(world.json(&["project", "list"])["data"]["projects"], json!([]));

    let again = world.json(&["init", "--yes"]);
    assert_eq!(again["messages"][0]["text"], "Initialized (non-interactive)");
    let second = PathBuf::from(text(&again["data"]["initialized"], "backup"));
    assert!(second.exists() && second != backup);
}

#[test]
fn init_does_not_take_a_folder_that_is_somebodys() {
    let world = World::new();
    let args = ["--data-dir", "repo", "init", "--yes"];
    let refused = world.refused(&args);
    let message = text(&refused["error"], "message");
    assert!(message.contains("not CleverAgents' own"), "{message}");
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn init_repairs_what_cannot_be_read() {
    let world = World::new();
    world.json(&["init"]);
    std::fs::write(config(&world), "[core\n").unwrap();
    std::fs::write(world.data().join("cleveragents.db"), vec![b'x'; 8192]).unwrap();
    assert_eq!(world.refused(&["plan", "list"])["error"]["code"], "CONFIGURATION");
    let done = world.json(&["init", "--yes"]);
    let backup = PathBuf::from(text(&done["data"]["initialized"], "backup"));
    assert_eq!(std::fs::read_to_string(backup.join("config.toml")).unwrap(), "[core\n");
    world.json(&["plan", "list"]);
}

#[test]
fn init_where_nothing_can_be_made_says_where_and_why() {
    let world = World::new();
    world.write("file", "");
    for place in ["file", "file/below"] {
        let refused = world.refused(&["--data-dir", place, "init", "--yes"]);
        let message = text(&refused["error"], "message");
        assert!(message.contains("file") && message.contains("not a directory"), "{message}");
    }
}

// ---- config -------------------------------------------------------------------------------------------------------

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
    assert_eq!(settings.len(), 108);
    assert_eq!(list["messages"][0]["text"], "108 settings listed");
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

// COM-003, OUT-001, CLI-198
#[test]
fn each_of_these_commands_speaks_every_format() {
    let world = World::new();
    for line in [
        "init",
        "diagnostics",
        "diagnostics --cleanup",
        "config set plan.concurrency 3",
        "config get plan.concurrency",
        "config list plan.*",
        "init --yes",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        for format in ["rich", "table", "color", "plain", "yaml"] {
            let ran = world.run_in(format, &args);
            assert_eq!(ran.code, Some(0), "{format} {line}: {}", ran.stdout);
            assert!(
                !ran.stdout.trim().is_empty() && !ran.stderr.contains("panicked"),
                "{format} {line}: {}",
                ran.stderr
            );
            if format == "plain" {
                assert!(ran.stdout.is_ascii() && !ran.stdout.contains('\x1b'), "{line}: {}", ran.stdout);
            }
        }
        world.json(&args);
    }
}
