//! Diagnosis of an installation, and what plans leave behind.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_config::Config;
use agents_domain::ids::PlanId;
use agents_domain::ports::actor::Actor;
use agents_engine::operations::system::{Check, Database, Situation, Status, diagnose};
use agents_engine::{Nowhere, Surroundings};
use agents_store::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Bench, git};
use crate::machine::Machine;

const RUFF: &str = "name: local/ruff\nlanguages: [python]\ncommand: ruff\nargs: [server]\n";

/// The checks of the specification, in its order.
const SPECIFIED: [&str; 17] = [
    "Config file",
    "Database",
    "OpenAI key",
    "Anthropic key",
    "Google key",
    "Gemini key",
    "Azure OpenAI key",
    "OpenRouter key",
    "Cohere key",
    "Groq key",
    "Together key",
    "Disk space",
    "Text index",
    "Vector index",
    "Graph store",
    "File permissions",
    "Git",
];

fn bench(machine: Machine) -> Bench {
    machine.under(Bench::new(&[("a.txt", "one\ntwo\n")], &[]))
}

fn run(bench: &Bench) -> Value {
    bench.ok("diagnostics/run", json!({}))
}

/// Status, details and fix of a check.
fn check(found: &Value, name: &str) -> (String, String, String) {
    let check = found["checks"].as_array().unwrap().iter().find(|c| c["check"] == name);
    let check = check.unwrap_or_else(|| panic!("no check {name}: {found:#}"));
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("details"), text("fix"))
}

/// What holds of every answer.
fn consistent(found: &Value) {
    let checks = found["checks"].as_array().unwrap();
    let of = |status: &str| checks.iter().filter(|c| c["status"] == status).count();
    assert_eq!(found["summary"]["total"], checks.len());
    assert_eq!(
        (&found["summary"]["warnings"], &found["summary"]["errors"]),
        (&json!(of("warn")), &json!(of("error")))
    );
    assert_eq!(found["recommendations"].as_array().unwrap().len(), of("warn"));
    let errors = found["errors"].as_array().unwrap();
    assert_eq!(errors.len(), of("error"));
    assert!((1..).zip(errors).all(|(n, e)| e["index"] == n && e["message"].is_string()));
    assert!(found["summary"]["duration_s"].is_number());
    for check in checks.iter().filter(|c| c["status"] != "ok") {
        assert!(check["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{check}");
    }
}

// CLI-040, CLI-041, CLI-045, CLI-049
#[test]
fn a_sound_installation_passes_every_check() {
    let bench = bench(Machine::sound().with("ruff", "ruff", "").with_idle("bwrap"));
    bench.ok("registry/lsp/add", json!({ "config": "ruff.yaml", "text": RUFF }));
    let found = run(&bench);
    consistent(&found);
    let names: Vec<&str> =
        found["checks"].as_array().unwrap().iter().map(|c| c["check"].as_str().unwrap()).collect();
    assert_eq!(names[..17], SPECIFIED);
    assert_eq!(
        names[17..],
        [
            "Python",
            "Python confinement",
            "Language server local/ruff",
            "Validations",
            "Invariants",
            "Plans",
            "Leftovers",
            "Models"
        ]
    );
    assert_eq!(
        (&found["summary"]["warnings"], &found["summary"]["errors"]),
        (&json!(0), &json!(0)),
        "{found:#}"
    );
    assert_eq!(check(&found, "Git").1, "git 2.43.0");
    assert_eq!(check(&found, "Python").1, "Python 3.12.3 with venv");
    assert_eq!(check(&found, "Config file").1, "not there, defaults apply");
    assert_eq!(check(&found, "File permissions").1, "data dir r/w");
    let database = check(&found, "Database").1;
    let versions = database.strip_prefix("writable, schema ").and_then(|rest| rest.split_once(" of "));
    let (version, rest) = versions.unwrap_or_else(|| panic!("{database}"));
    assert!(rest.starts_with(&format!("{version}, ")), "{database}");
    assert!(check(&found, "Database").1.ends_with(" KB, sound"), "{found:#}");
    assert!(check(&found, "Language server local/ruff").1.ends_with("/ruff"), "{found:#}");
    for name in ["Text index", "Vector index", "Graph store"] {
        assert_eq!(check(&found, name).1, "not in use", "{name}");
    }
    for (name, variable) in [("OpenAI key", "OPENAI_API_KEY"), ("Together key", "TOGETHER_API_KEY")] {
        assert_eq!(check(&found, name).1, format!("not set up; to use it: export {variable}=<KEY>"));
    }
}

// CLI-042, CLI-044: a key that is missing is nobody's loss before an actor names the provider
#[test]
fn a_key_is_named_by_its_beginning_only() {
    let bench = bench(Machine::sound());
    bench.ok("config/set", json!({ "key": "provider.groq.api-key", "value": "gsk_secret" }));
    bench.ok("config/set", json!({ "key": "provider.openai.api-key", "value": "pk-very-secret" }));
    bench.ok("config/set", json!({ "key": "provider.anthropic.api-key", "value": "sk-ant-very-secret" }));
    let found = run(&bench);
    consistent(&found);
    let (status, details, fix) = check(&found, "OpenAI key");
    assert_eq!((status.as_str(), fix.as_str()), ("warn", "agents config set provider.openai.api-key <KEY>"));
    assert!(details.contains("starts with `pk`, expected `sk-`"), "{details}");
    assert_eq!(check(&found, "Anthropic key").1, "configured");
    assert_eq!(check(&found, "Groq key").1, "configured");
    assert!(!found.to_string().contains("secret"));
    bench
        .ok("config/set", json!({ "key": "provider.openai.base-url", "value": "https://models.example/v1" }));
    assert_eq!(check(&run(&bench), "OpenAI key").0, "ok", "another service has keys of its own kind");
}

// Ruling 14
#[test]
fn a_bare_machine_is_told_what_to_install() {
    let bench = bench(Machine::bare());
    let found = run(&bench);
    consistent(&found);
    let (status, details, fix) = check(&found, "Git");
    assert_eq!((status.as_str(), details.as_str()), ("error", "not found on PATH"));
    assert!(fix.contains("2.38"), "{fix}");
    assert_eq!(check(&found, "Python").0, "warn");
    assert_eq!(check(&found, "Python confinement").0, "warn");
    assert!(check(&found, "Python confinement").1.starts_with("bwrap not found"));
    assert_eq!(check(&found, "Language servers").0, "warn");
    assert_eq!(found["errors"][0]["message"], "Git: not found on PATH");
    let old = Machine::bare().with("git", "git --version", "git version 2.30.2\n").with(
        "python3",
        "python3 -I --version",
        "Python 3.11.2\n",
    );
    let found = run(&self::bench(old));
    assert_eq!(check(&found, "Git").1, "git 2.30.2 is too old, 2.38 is needed");
    let (status, details, fix) = check(&found, "Python");
    assert_eq!((status.as_str(), details.as_str()), ("warn", "Python 3.11.2 without venv"));
    assert!(fix.contains("python3-venv"), "{fix}");
    let strange = Machine::bare().with("git", "git --version", "hello\n");
    assert!(check(&run(&self::bench(strange)), "Git").1.contains("did not say its version"));
}

#[test]
fn a_server_that_is_gone_is_named_with_its_command() {
    let bench = bench(Machine::sound());
    let server = |name: &str, command: &str| {
        let text = format!("name: local/{name}\nlanguages: [python]\ncommand: {command}\n");
        bench.ok("registry/lsp/add", json!({ "config": "s.yaml", "text": text }));
    };
    server("ruff", "ruff");
    server("there", "/bin/sh");
    server("gone", "/no/such/server");
    server("relative", "node_modules/.bin/tsserver");
    server("variable", "'${SERVER}'");
    let found = run(&bench);
    consistent(&found);
    let of = |name: &str| check(&found, &format!("Language server local/{name}"));
    assert_eq!((of("ruff").0.as_str(), of("ruff").1.as_str()), ("warn", "python: `ruff` is not on PATH"));
    assert!(of("ruff").2.contains("agents lsp add --update"), "{:?}", of("ruff"));
    assert_eq!(of("there"), ("ok".to_owned(), "python: /bin/sh".to_owned(), String::new()));
    assert_eq!(of("gone").1, "python: `/no/such/server` is no program");
    assert!(of("relative").1.ends_with("in each workspace"));
    assert!(of("variable").1.ends_with("when it is started"));
}

// CLI-050, OBS-015, SEC-021, CONF-005
#[test]
fn a_configuration_file_that_others_can_read_or_that_says_nothing_is_a_warning() {
    let bench = bench(Machine::sound());
    let path = bench.dir.path().join("data/config.toml");
    std::fs::write(&path, "[core]\nformt = \"json\"\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (status, details, fix) = check(&run(&bench), "Config file");
    assert_eq!(status, "warn");
    assert!(
        details.contains("mode 0644")
            && details.contains("config.toml:2:1")
            && details.contains("`core.format`"),
        "{details}"
    );
    assert!(fix.contains(&format!("chmod 600 {}", path.display())), "{fix}");
    std::fs::write(&path, "[core]\nformat = 3\n").unwrap();
    let (status, details, _) = check(&run(&bench), "Config file");
    assert_eq!(status, "error");
    assert!(details.contains("config.toml:2:10"), "{details}");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(check(&run(&bench), "Config file"), ("ok".into(), "readable".into(), String::new()));
    let data = bench.dir.path().join("data");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (status, details, fix) = check(&run(&bench), "File permissions");
    assert_eq!((status.as_str(), details.contains("mode 0755")), ("warn", true));
    assert!(fix.contains("chmod 700"), "{fix}");
}

// C-24
#[test]
fn a_server_has_checks_only_where_one_is_configured() {
    let bench = bench(Machine::sound());
    bench.ok("config/set", json!({ "key": "server.url", "value": "https://agents.example" }));
    let found = run(&bench);
    assert_eq!(check(&found, "Server").1, "configured, not in use");
    assert_eq!(check(&found, "Namespace").1, "local");
    assert_eq!(found["checks"][16]["check"], "Git", "after those of every installation");
}

fn broken<'a>(
    config: &'a Config,
    data_dir: &'a Path,
    database: Database<'a>,
    surroundings: &'a dyn Surroundings,
) -> Value {
    let situation = Situation { config, config_error: None, data_dir, database, surroundings };
    let more = vec![Check::ok("Terminal", "80 columns")];
    let found = serde_json::to_value(diagnose(&situation, more, true)).unwrap();
    consistent(&found);
    assert_eq!(check(&found, "Terminal").1, "80 columns");
    found
}

#[test]
fn an_installation_without_an_engine_is_diagnosed_all_the_same() {
    let dir = TempDir::new().unwrap();
    let machine = Machine::sound();
    let absent = dir.path().join("new/data");
    let found = broken(&Config::defaults(&absent), &absent, Database::Missing, &machine);
    assert_eq!(found["summary"]["errors"], 0);
    assert_eq!(check(&found, "File permissions").1, "data dir not there yet, can be made");
    assert!(!absent.exists() && !absent.parent().unwrap().exists(), "looking makes nothing");

    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("below")] {
        let found = broken(&Config::defaults(&place), &place, Database::Missing, &machine);
        assert!(check(&found, "File permissions").1.contains("is a file, not a directory"), "{found:#}");
    }

    let damaged = dir.path().join("damaged");
    std::fs::create_dir(&damaged).unwrap();
    std::fs::write(damaged.join("cleveragents.db"), vec![b'x'; 8192]).unwrap();
    let error = agents_domain::Error::from(
        SqliteStore::open(&damaged, agents_store::Options::default()).unwrap_err(),
    );
    let found = broken(&Config::defaults(&damaged), &damaged, Database::Unusable(&error), &machine);
    let (status, details, fix) = check(&found, "Database");
    assert_eq!((status.as_str(), details.contains("damaged")), ("error", true));
    assert!(fix.contains("agents init"), "{fix}");
}

#[test]
fn a_database_that_is_damaged_inside_is_found() {
    let bench = bench(Machine::sound());
    let path = bench.dir.path().join("data/cleveragents.db");
    rewrite(&path);
    let (status, details, _) = check(&run(&bench), "Database");
    assert_eq!(status, "error", "{details}");
    assert!(details.contains("damaged") || details.contains("malformed"), "{details}");
}

/// Fills a page in the middle with garbage, after the log was folded in.
fn rewrite(path: &Path) {
    let log = std::fs::read(path.with_extension("db-wal")).unwrap_or_default();
    let mut bytes = std::fs::read(path).unwrap();
    // The newest copy of each page is in the log.
    let frames = log.get(32..).unwrap_or_default().chunks_exact(24 + 4096);
    for frame in frames {
        let page = u32::from_be_bytes(frame[..4].try_into().unwrap()) as usize;
        bytes.resize(bytes.len().max(page * 4096), 0);
        bytes[(page - 1) * 4096..page * 4096].copy_from_slice(&frame[24..]);
    }
    let pages = bytes.len() / 4096;
    for page in 2..pages {
        bytes[page * 4096..page * 4096 + 600].fill(0xa5);
    }
    std::fs::write(path, bytes).unwrap();
    let _ = std::fs::remove_file(path.with_extension("db-wal"));
}

// SBX-004, CONF-022
#[test]
fn the_sandbox_of_a_cancelled_plan_is_a_leftover_that_cleanup_removes() {
    let (bench, plan, folder) = waiting();
    assert_eq!(check(&run(&bench), "Leftovers").1, "none", "its plan is open");
    bench.ok("plan/cancel", json!({ "plan": plan }));
    let found = run(&bench);
    assert_eq!(check(&found, "Leftovers").1, "1 sandbox of an ended plan");
    assert_eq!(found["leftovers"][0]["path"], json!(folder));
    assert_eq!(
        (&found["leftovers"][0]["kind"], &found["leftovers"][0]["removable"]),
        (&json!("sandbox"), &json!(true))
    );
    let cleaned = bench.ok("diagnostics/run", json!({ "cleanup": true }));
    assert_eq!(cleaned["cleanup"]["removed"], json!([folder]));
    assert_eq!(cleaned["leftovers"], json!([]));
    assert!(!folder.exists());
    let again = bench.ok("diagnostics/run", json!({ "cleanup": true }));
    assert_eq!((&again["cleanup"]["removed"], &again["cleanup"]["kept"]), (&json!([]), &json!([])));
    let worktrees = crate::harness::git(&bench.repo(), &["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
}

#[test]
fn a_sandbox_with_a_persons_edits_is_kept_and_the_reason_told() {
    let (bench, plan, folder) = waiting();
    let inside = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.join("a.txt").exists())
        .unwrap();
    std::fs::write(inside.join("a.txt"), "mine\n").unwrap();
    bench.ok("plan/cancel", json!({ "plan": plan }));
    let cleaned = bench.ok("diagnostics/run", json!({ "cleanup": true }));
    assert_eq!(cleaned["cleanup"]["removed"], json!([]));
    let kept = &cleaned["cleanup"]["kept"][0];
    assert!(kept["reason"].as_str().unwrap().contains("a.txt"), "{kept}");
    assert_eq!(std::fs::read_to_string(inside.join("a.txt")).unwrap(), "mine\n");
}

#[test]
fn locks_journals_and_sandboxes_of_nobody_are_named_and_only_locks_and_caches_removed() {
    let bench = bench(Machine::sound());
    let data = bench.dir.path().join("data");
    let nobody: PlanId = "01HXM8C2ZK4Q7C2B3F2R4VYV6J".parse().unwrap();
    let at = |path: &str, text: &str| {
        let path = data.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let lock = at(&format!("locks/{nobody}.lock"), "");
    let journal = at(&format!("journals/{nobody}/r/apply.json"), "{}");
    let sandbox = at(&format!("sandboxes/{nobody}/r/a.txt"), "one\n");
    let cache = at("cache/models/m", "12345");
    let other = at("cache/mine", "x");
    let found = run(&bench);
    consistent(&found);
    let (status, details, fix) = check(&found, "Leftovers");
    assert_eq!(status, "warn");
    assert_eq!(
        details,
        "1 sandbox of an unknown plan, 1 journal of an apply that was cut off, 1 lock file of a killed worker"
    );
    assert!(fix.contains("--cleanup") && fix.contains("yourself"), "{fix}");
    let cleaned = bench.ok("diagnostics/run", json!({ "cleanup": true }));
    assert_eq!(cleaned["cleanup"]["removed"], json!([lock, cache.parent().unwrap()]));
    assert_eq!(cleaned["cleanup"]["freed_bytes"], 5);
    assert_eq!(cleaned["cleanup"]["kept"].as_array().unwrap().len(), 2);
    assert!(!lock.exists() && !cache.exists());
    assert!(journal.exists() && sandbox.exists() && other.exists());
}

#[test]
fn a_plan_whose_worker_is_gone_is_a_warning_that_says_how_to_go_on() {
    let (bench, plan, _) = waiting();
    assert!(check(&run(&bench), "Plans").1.starts_with("1 open, 0 at work, "), "{:#}", run(&bench));
    bench.ok("plan/cancel", json!({ "plan": plan }));
    let script = bench.ok(
        "plan/use",
        json!({ "action": "local/do", "projects": ["local/app"], "automation_profile": "full-auto" }),
    );
    let plan = script["plan_id"].as_str().unwrap();
    let (status, details, fix) = check(&run(&bench), "Plans");
    assert_eq!((status.as_str(), details.ends_with("1 without a worker")), ("warn", true), "{details}");
    assert!(fix.ends_with(&format!("agents plan status {plan}")), "{fix}");
    let lease = bench.engine.store().try_lease(plan.parse().unwrap()).unwrap().unwrap();
    assert_eq!(check(&run(&bench), "Plans").1, "1 open, 1 at work, 0 waiting for a person");
    drop(lease);
}

/// A plan that is executed and waits for a person's word to apply.
fn waiting() -> (Bench, String, PathBuf) {
    let script = json!({
        "strategize": [{ "outcome": { "done": { "headline": "decided", "lines": [], "facts": null } } }],
        "execute": [{ "outcome": { "done": { "headline": "did it", "lines": [], "facts": null } } }],
    });
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(serde_json::from_value(script).unwrap()));
    let bench = Machine::sound().under(Bench::new(&[("a.txt", "one\n")], &[("local/scripted", actor)]));
    bench.action("local/do", "local/scripted", "local/scripted", "");
    let plan = bench.plan("local/do", "supervised");
    let folder = bench.dir.path().join("data/sandboxes").join(&plan);
    assert!(folder.is_dir(), "{}", bench.at(&plan));
    (bench, plan, folder)
}

#[test]
fn nowhere_has_neither_environment_nor_programs() {
    assert_eq!(Nowhere.variable("PATH"), None);
    assert!(Nowhere.run(Path::new("/bin/sh"), &[]).is_err());
    assert_eq!(Check::warn("a", "b", "c").status, Status::Warn);
}

#[test]
fn references_that_keep_an_unknown_plan_are_named_and_left_alone() {
    let bench = bench(Machine::sound());
    let name = "refs/cleveragents/plan-01HXM8C2ZK4Q7C2B3F2R4VYV6J/base";
    git(&bench.repo(), &["update-ref", name, "HEAD"]);
    let found = run(&bench);
    let (status, details, fix) = check(&found, "Leftovers");
    assert_eq!((status.as_str(), details.as_str()), ("warn", "1 unknown plan kept by references"));
    assert!(fix.contains("plan-01HXM8C2ZK4Q7C2B3F2R4VYV6J"), "{fix}");
    let cleaned = bench.ok("diagnostics/run", json!({ "cleanup": true }));
    assert_eq!(cleaned["cleanup"]["kept"].as_array().unwrap().len(), 1);
    assert!(!git(&bench.repo(), &["for-each-ref", name]).is_empty());
}
