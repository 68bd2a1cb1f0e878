//! Known servers: which fit a folder, bringing one here, trying one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents_config::Config;
use agents_domain::catalogue::{Install as Recipe, KnownServer};
use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::installer::{InstallProgress, Installation, Installed, ServerInstaller};
use agents_domain::ports::language_servers::{
    LanguageServers, LanguageWorkspace, ServerReport, WorkspaceSpec,
};
use agents_domain::{Error, ErrorKind, Result};
use agents_engine::operations::lsp::Install;
use agents_engine::{Engine, Parts};
use agents_store::SqliteStore;
use serde_json::{Value, json};

use crate::harness::{Bench, Cast};

/// A machine with these programs on PATH, where installing works unless it is said why not.
#[derive(Default)]
struct Machine {
    on_path: Vec<&'static str>,
    refuses: Option<&'static str>,
    installed: Mutex<BTreeMap<String, Installed>>,
}

impl ServerInstaller for Machine {
    fn find_program(&self, command: &str) -> Option<PathBuf> {
        let ours = self.installed.lock().unwrap().values().any(|i| i.program == Path::new(command));
        let there = ours || self.on_path.contains(&command);
        there.then(|| Path::new("/usr/bin").join(command))
    }

    fn installed(&self, server: &KnownServer, _: &Path) -> Option<Installed> {
        self.installed.lock().unwrap().get(&server.name).cloned()
    }

    fn install<'a>(
        &'a self,
        server: &'a KnownServer,
        servers: &'a Path,
        anew: bool,
        progress: &'a (dyn Fn(InstallProgress<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<Installation>> {
        Box::pin(async move {
            let Recipe::Packages(recipe) = &server.install else {
                return Err(Error::validation("by hand"));
            };
            if let Some(installed) = self.installed(server, servers).filter(|_| !anew) {
                return Ok(Installation { installed, report: None });
            }
            progress(InstallProgress::Step("Works"));
            if let Some(why) = self.refuses {
                return Err(Error::new(ErrorKind::Network, why));
            }
            let program = servers.join(&server.name).join(&server.command);
            let installed = Installed { program, packages: recipe.packages.clone() };
            self.installed.lock().unwrap().insert(server.name.clone(), installed.clone());
            let definition: LanguageServerDefinition = server.definition("x").unwrap();
            let report = ServerReport {
                name: Some("It".to_owned()),
                version: Some("1.2".to_owned()),
                start_ms: Some(7),
                ..ServerReport::new(&definition)
            };
            Ok(Installation { installed, report: Some(report) })
        })
    }
}

/// Every server starts, and says so.
struct AllStart;

impl LanguageServers for AllStart {
    fn open(&self, _: WorkspaceSpec) -> BoxFuture<'_, Arc<dyn LanguageWorkspace>> {
        panic!("nobody opens a workspace here")
    }

    fn check<'a>(
        &'a self,
        definition: &'a LanguageServerDefinition,
        _: Option<&'a Path>,
        _: Duration,
    ) -> BoxFuture<'a, ServerReport> {
        let version = Some("it 3".to_owned());
        Box::pin(async move {
            ServerReport { name: Some("it".to_owned()), version, ..ServerReport::new(definition) }
        })
    }
}

/// The bench's engine anew, with language servers that start.
fn where_all_start(bench: &Bench) -> Engine {
    let data_dir = bench.dir.path().join("data");
    Engine::new(Parts {
        store: Arc::new(SqliteStore::open(&data_dir, agents_store::Options::default()).unwrap()),
        actors: Arc::new(Cast::default()),
        language_servers: Arc::new(AllStart),
        spawner: bench.asked.clone(),
        config: Arc::new(Config::defaults(&data_dir)),
        data_dir,
        user: "tester".to_owned(),
    })
}

fn bench_on(machine: Machine) -> (Bench, Arc<Machine>) {
    let machine = Arc::new(machine);
    let mut bench = Bench::new(&[], &[]);
    bench.engine = bench.engine.with_installer(machine.clone());
    (bench, machine)
}

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let file = dir.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

fn states(detected: &Value) -> Vec<(&str, &str)> {
    let servers = detected["servers"].as_array().unwrap();
    servers.iter().map(|s| (s["name"].as_str().unwrap(), s["state"].as_str().unwrap())).collect()
}

#[test]
fn the_languages_of_a_folder_are_counted_without_what_is_ignored_hidden_or_a_dependency() {
    let (bench, _) = bench_on(Machine { on_path: vec!["ty"], ..Machine::default() });
    let dir = bench.dir.path().join("mixed");
    write(
        &dir,
        &[
            (".gitignore", "/build/\n*.gen.py\n"),
            ("a.py", ""),
            ("src/b.py", ""),
            ("src/c.gen.py", ""),
            ("build/d.py", ""),
            (".hidden/e.py", ""),
            (".venv/lib/f.py", ""),
            ("web/node_modules/x/g.ts", ""),
            ("web/h.tsx", ""),
            ("web/i.ts", ""),
            ("tool", "#!/usr/bin/env python3\nprint()\n"),
            ("data.bin", "#!/bin/sh\n"),
            ("deploy", "#!/bin/bash\n"),
            ("NOTES", "nothing"),
        ],
    );
    let detected = bench.ok("lsp/detect", json!({ "dir": dir }));
    assert_eq!(
        detected["languages"],
        json!([
            {
                "language": "python", "files": 3, "registered": [],
                "servers": ["ruff", "basedpyright", "pyright", "ty"],
            },
            { "language": "shellscript", "files": 1, "registered": [], "servers": ["bash-language-server"] },
            { "language": "typescript", "files": 1, "registered": [], "servers": ["typescript-language-server"] },
            { "language": "typescriptreact", "files": 1, "registered": [], "servers": ["typescript-language-server"] },
        ])
    );
    assert_eq!((&detected["files"], &detected["truncated"]), (&json!(8), &json!(false)));
    assert_eq!(
        states(&detected),
        [
            ("ruff", "missing"),
            ("basedpyright", "missing"),
            ("pyright", "missing"),
            ("ty", "on_path"),
            ("typescript-language-server", "missing"),
            ("bash-language-server", "missing"),
        ]
    );
    assert_eq!(
        detected["servers"][3],
        json!({
            "name": "ty", "description": "Fast type checker, still before its first stable version",
            "languages": ["python"], "state": "on_path", "installed": true, "registered_as": null,
            "program": "/usr/bin/ty", "install": "agents lsp install --from-path ty",
        })
    );
    assert_eq!(detected["servers"][4]["languages"], json!(["typescript", "typescriptreact"]));
}

#[test]
fn a_folder_that_cannot_be_looked_into_is_refused() {
    let (bench, _) = bench_on(Machine::default());
    let nowhere = bench.dir.path().join("nowhere");
    let error = bench.err("lsp/detect", json!({ "dir": nowhere }));
    let said = format!("there is no folder {}", nowhere.display());
    assert_eq!((error.kind, error.message), (ErrorKind::NotFound, said));
    write(bench.dir.path(), &[("file", "")]);
    let file = bench.dir.path().join("file");
    let error = bench.err("lsp/detect", json!({ "dir": file }));
    assert_eq!(error.message, format!("{} is not a folder", file.display()));
    let empty = bench.dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let detected = bench.ok("lsp/detect", json!({ "dir": empty }));
    assert_eq!((&detected["languages"], &detected["servers"]), (&json!([]), &json!([])));
}

#[test]
fn an_installed_server_is_registered_under_its_name_and_found_again() {
    let (bench, _) = bench_on(Machine::default());
    let heard = Mutex::new(Vec::new());
    let install = Install { name: "ruff".to_owned(), update: false, from_path: false, no_register: false };
    let hear = |progress: InstallProgress<'_>| heard.lock().unwrap().push(format!("{progress:?}"));
    let done = serde_json::to_value(install.run_with(&bench.engine, &hear).unwrap()).unwrap();
    assert_eq!(heard.into_inner().unwrap(), ["Step(\"Works\")"]);
    let program = bench.dir.path().join("data/servers/ruff/ruff");
    assert_eq!(
        done,
        json!({
            "server": "ruff", "program": program, "client": "pip", "packages": {"ruff": "0.17.6"},
            "installed_now": true, "outdated": false, "says": "It 1.2", "start_ms": 7,
            "registration": {"state": "added", "name": "local/ruff"}, "notes": [],
        })
    );
    let shown = bench.ok("registry/lsp/show", json!({ "name": "ruff" }));
    assert_eq!(shown["lsp_server"]["command"], format!("{} server", program.display()));
    // Again, under a short name of another spelling: nothing happens, nothing is lost.
    let again = bench.ok("lsp/install", json!({ "name": "local/ruff" }));
    assert_eq!(again["installed_now"], false);
    assert_eq!(
        again["registration"],
        json!({ "state": "present", "name": "local/ruff", "command": program, "current": true })
    );
    let python = bench.dir.path().join("python");
    write(&python, &[("a.py", "")]);
    let detected = bench.ok("lsp/detect", json!({ "dir": python }));
    assert_eq!(detected["languages"][0]["registered"], json!(["local/ruff"]));
    assert_eq!(states(&detected)[0], ("ruff", "registered"));
    assert_eq!(detected["servers"][0]["registered_as"], "local/ruff");
}

#[test]
fn an_entry_of_a_persons_own_is_left_alone_and_a_registry_that_is_not_to_be_touched_too() {
    let (bench, _) = bench_on(Machine::default());
    let text = "name: local/ruff\nlanguages: [python]\ncommand: ruff\nargs: [server]\n";
    bench.ok("registry/lsp/add", json!({ "config": "ruff.yaml", "text": text }));
    let done = bench.ok("lsp/install", json!({ "name": "ruff" }));
    assert_eq!(
        done["registration"],
        json!({ "state": "present", "name": "local/ruff", "command": "ruff", "current": false })
    );
    let python = bench.dir.path().join("python");
    write(&python, &[("a.py", "")]);
    let detected = bench.ok("lsp/detect", json!({ "dir": python }));
    assert_eq!(states(&detected)[0], ("ruff", "broken"), "`ruff` is not on PATH");
    assert_eq!(detected["servers"][0]["installed"], false);
    let done = bench.ok("lsp/install", json!({ "name": "ty", "no_register": true }));
    assert_eq!(done["registration"], json!({ "state": "skipped" }));
    let detected = bench.ok("lsp/detect", json!({ "dir": python }));
    assert_eq!(states(&detected)[3], ("ty", "installed"));
}

#[test]
fn what_cannot_be_installed_registers_nothing() {
    let (bench, _) = bench_on(Machine { refuses: Some("no network"), ..Machine::default() });
    assert_eq!(bench.err("lsp/install", json!({ "name": "ruff" })).kind, ErrorKind::Network);
    let error = bench.err("lsp/install", json!({ "name": "rufff" }));
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::NotFound, "there is no known language server `rufff`")
    );
    assert_eq!(error.suggestions[0], "agents lsp install ruff");
    assert!(error.detail.unwrap().contains("basedpyright, pyright, ty"));
    assert_eq!(bench.err("lsp/install", json!({ "name": "gopls" })).message, "by hand");
    assert_eq!(bench.ok("registry/lsp/list", json!({}))["total"], 0);
    let error = bench.err("lsp/install", json!({ "name": "ruff", "from_path": true }));
    assert_eq!(
        (error.message.as_str(), error.suggestions),
        ("`ruff` is not on PATH", vec!["agents lsp install ruff".to_owned()])
    );
}

#[test]
fn what_is_on_path_is_registered_by_its_name_once_it_was_seen_to_work() {
    let (mut bench, machine) = bench_on(Machine { on_path: vec!["gopls", "ruff"], ..Machine::default() });
    let both = [json!({ "name": "gopls" }), json!({ "name": "ruff", "from_path": true })];
    // Nothing starts on the bench.
    for (params, fix) in both.iter().zip(["sudo apt-get install gopls golang-go", "agents lsp install ruff"])
    {
        let error = bench.err("lsp/install", params.clone());
        assert!(error.message.ends_with("is on PATH, but it does not start"), "{}", error.message);
        assert_eq!(error.detail.as_deref(), Some("no server runs here, in no root"));
        assert_eq!(error.suggestions, [fix]);
    }
    assert_eq!(bench.ok("registry/lsp/list", json!({}))["total"], 0);
    bench.engine = where_all_start(&bench).with_installer(machine.clone());
    for (params, command) in both.iter().zip(["gopls", "ruff server"]) {
        let done = bench.ok("lsp/install", params.clone());
        assert_eq!((&done["client"], &done["installed_now"]), (&Value::Null, &json!(false)));
        assert_eq!((&done["says"], &done["registration"]["state"]), (&json!("it 3"), &json!("added")));
        let shown = bench.ok("registry/lsp/show", json!({ "name": params["name"] }));
        assert_eq!(shown["lsp_server"]["command"], command);
    }
    assert!(machine.installed.lock().unwrap().is_empty());
}

#[test]
fn a_check_starts_what_is_registered_else_known_else_what_a_file_says() {
    let (bench, _) = bench_on(Machine { on_path: vec!["ty"], ..Machine::default() });
    let text = "name: local/mine\nlanguages: [python]\ncommand: my-server\n";
    bench.ok("registry/lsp/add", json!({ "config": "mine.yaml", "text": text }));
    let mine = bench.ok("lsp/check", json!({ "name": "mine" }));
    assert_eq!((&mine["server"], &mine["registered"]), (&json!("local/mine"), &json!(true)));
    assert_eq!(
        (&mine["command_line"], &mine["problem"]),
        (&json!("my-server"), &json!("no server runs here, in no root"))
    );
    let ty = bench.ok("lsp/check", json!({ "name": "ty", "root": bench.repo() }));
    assert_eq!((&ty["command_line"], &ty["registered"]), (&json!("/usr/bin/ty server"), &json!(false)));
    assert_eq!(ty["problem"], format!("no server runs here, in {}", bench.repo().display()));
    bench.ok("lsp/install", json!({ "name": "yaml-language-server", "no_register": true }));
    let yaml = bench.ok("lsp/check", json!({ "name": "yaml-language-server" }));
    assert!(yaml["command_line"].as_str().unwrap().contains("/servers/yaml-language-server/"), "{yaml}");
    assert_eq!(yaml["hints"].as_array().unwrap().len(), 1);
    let file =
        bench.ok("lsp/check", json!({ "config": "m.yaml", "text": text.replace("my-server", "other") }));
    assert_eq!((&file["command_line"], &file["registered"]), (&json!("other"), &json!(false)));
    assert_eq!(bench.ok("registry/lsp/list", json!({}))["total"], 1, "nothing is registered by it");
}

#[test]
fn a_check_of_nothing_or_of_what_is_wrong_is_refused() {
    let (bench, _) = bench_on(Machine::default());
    for params in [json!({}), json!({ "name": "a", "text": "b" })] {
        assert_eq!(bench.err("lsp/check", params).kind, ErrorKind::Usage);
    }
    let error = bench.err("lsp/check", json!({ "name": "rufff" }));
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::NotFound, "there is no language server `local/rufff`")
    );
    let error = bench.err("lsp/check", json!({ "config": "m.yaml", "text": "name: local/x\ncommand: 3\n" }));
    assert_eq!(error.kind, ErrorKind::ValidationFailed);
    let error = bench.err("lsp/check", json!({ "name": "ruff", "root": bench.dir.path().join("none") }));
    assert_eq!(error.kind, ErrorKind::NotFound);
}
