//! Diagnostics and init, as a newcomer meets them.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{Ran, World, choose_and_edit, document};

pub fn config(world: &World) -> PathBuf {
    world.data().join("config.toml")
}

/// Writes the configuration file of a data directory that is for its owner only.
pub fn write_config(world: &World, text: &str) {
    std::fs::DirBuilder::new().recursive(true).create(world.data()).unwrap();
    std::fs::set_permissions(world.data(), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(config(world), text).unwrap();
    std::fs::set_permissions(config(world), std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Runs a command with an answer to its question.
pub fn answered(world: &World, answer: &str, args: &[&str]) -> Ran {
    let mut child = world.command(args).stdin(Stdio::piped()).spawn().unwrap();
    // A command that asks nothing may have ended already.
    let _ = child.stdin.take().unwrap().write_all(answer.as_bytes());
    child.wait_with_output().unwrap().into()
}

fn check<'d>(found: &'d Value, name: &str) -> &'d Value {
    let checks = found["data"]["checks"].as_array().unwrap_or_else(|| panic!("{found:#}"));
    checks.iter().find(|c| c["check"] == name).unwrap_or_else(|| panic!("no check {name}: {found:#}"))
}

pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key}: {value:#}"))
}

/// Everything in the world with its content, but for the repository and what SQLite keeps beside a database.
pub fn everything(world: &World) -> Vec<(PathBuf, String)> {
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
        ("Config file", "Database", "Git", "Models")
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
    // Columns are as wide as their longest text.
    let lines: Vec<String> =
        ran.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let shown = lines.join("\n");
    for part in [
        "Checks\n",
        "Git ERROR not found on PATH",
        "Python WARN python3 not found on PATH",
        "Errors (must fix)\n1. Git: not found on PATH\nInstall git 2.38 or newer: https://git-scm.com/downloads\n",
        "Recommendations\n- Install Python 3 with venv",
        "\nErrors: 1\n",
    ] {
        assert!(shown.contains(part), "{part:?} in {shown}");
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

// STORE-001, STORE-014: records in the database, everything else in files, all of it below the data directory
#[test]
fn a_data_directory_holds_a_database_and_folders_for_the_rest() {
    let mut world = World::registered(&choose_and_edit(0.9));
    world.env.insert("CLEVERAGENTS_LOG_LEVEL", "INFO".to_owned());
    let plan = world.plan(&["--automation-profile", "trusted"]);
    world.wait_at(&plan, "execute/complete+apply_approval");
    let names = |path: PathBuf| -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm"))
            .collect();
        names.sort();
        names
    };
    // `init` also makes those that are still empty.
    assert_eq!(names(world.data()), ["blobs", "cleveragents.db", "locks", "logs", "sandboxes"]);
    assert_eq!(names(world.data().join("sandboxes")), [plan]);
    assert!(names(world.data().join("logs")).contains(&"cleveragents.log".to_owned()));
    // Nothing of it is anywhere else in the person's home.
    let mut home = names(world.dir.path().to_owned());
    home.retain(|name| !["act.yaml", "data", "repo", "script.json"].contains(&name.as_str()));
    assert_eq!(home, Vec::<String>::new());
}
