//! `agents lsp detect|install|check`: the known servers, with a python3 that is a script.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::world::{Ran, World, document, until};

/// A world whose PATH has nothing but a `python3` that does this (`$1` is `-m`).
fn world_with(python: Option<&str>) -> World {
    let mut world = World::new();
    let path = world.dir.path().join("path");
    fs::create_dir(&path).unwrap();
    if let Some(script) = python {
        let text = format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n");
        fs::write(path.join("python3"), text).unwrap();
        fs::set_permissions(path.join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    world.env.insert("PATH", path.display().to_string());
    world
}

/// Installs by a link to the real ruff.
fn installs(world: &World) -> String {
    let tools = std::env::var_os("AGENTS_TEST_TOOLS").expect("run tests/setup: AGENTS_TEST_TOOLS is not set");
    symlink(Path::new(&tools).join("bin/ruff"), world.dir.path().join("real-ruff")).unwrap();
    format!(
        r#"case "$2" in
            venv) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
            pip) echo Collecting; ln -s '{}' "$(dirname "$0")/ruff" ;;
        esac"#,
        world.dir.path().join("real-ruff").display()
    )
}

/// What is in the folder of servers, locks apart.
fn left(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.data().join("servers")).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_none_or(|end| end != "lock"))
        .collect()
}

#[test]
fn a_server_is_detected_installed_checked_and_used() {
    let mut world = world_with(None);
    let script = installs(&world);
    let python = world.dir.path().join("path/python3");
    fs::write(&python, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(world.repo().join("a.py"), "import os\n").unwrap();

    let plain = world.run_in("plain", &["lsp", "detect", "repo"]);
    assert_eq!(plain.code, Some(0));
    assert!(
        plain.stdout.contains("nothing yet") && plain.stdout.contains("- agents lsp install ruff"),
        "{}",
        plain.stdout
    );

    let installed = world.json(&["lsp", "install", "ruff"]);
    let program = world.data().join("servers/ruff/bin/ruff");
    assert_eq!(installed["data"]["program"], json!(program));
    assert_eq!(installed["data"]["registration"], json!({ "state": "added", "name": "local/ruff" }));
    assert!(installed["data"]["says"].as_str().unwrap().starts_with("ruff "), "{installed:#}");

    let again = world.run_in("plain", &["lsp", "install", "ruff"]);
    assert!(again.stdout.contains("[OK] ruff is installed already"), "{}", again.stdout);

    // The client is needed no more.
    world.env.insert("PATH", "/nowhere".to_owned());
    let checked = world.json(&["lsp", "check", "ruff", "--root", "repo"]);
    assert_eq!(
        (&checked["data"]["server"], &checked["data"]["diagnostics"]),
        (&json!("local/ruff"), &json!("pull"))
    );
    assert_eq!(checked["data"]["problem"], json!(null));
    let found = world.json(&["lsp", "detect", "repo"]);
    assert_eq!(found["data"]["servers"][0]["state"], "registered");
    let python = json!({ "language": "python", "files": 1, "registered": ["local/ruff"],
        "servers": ["ruff", "basedpyright", "pyright", "ty"] });
    assert!(found["data"]["languages"].as_array().unwrap().contains(&python), "{found:#}");
}

#[test]
fn what_is_missing_is_named_and_nothing_is_registered() {
    let world = world_with(None);
    let refused = world.refused(&["lsp", "install", "ruff"]);
    assert_eq!(refused["error"]["message"], "ruff is installed with pip, and `python3` is not on PATH");
    assert_eq!(refused["error"]["suggestions"][1], "agents lsp install ruff");
    let refused = world.refused(&["lsp", "install", "gopls"]);
    assert_eq!(refused["error"]["suggestions"], json!(["sudo apt-get install gopls golang-go"]));
    let refused = world.refused(&["lsp", "install", "--from-path", "ruff"]);
    assert_eq!(refused["error"]["message"], "`ruff` is not on PATH");
    assert_eq!(world.json(&["lsp", "list"])["data"]["total"], 0);
    assert_eq!(left(&world), [] as [PathBuf; 0]);
}

#[test]
fn a_server_that_does_not_start_is_reported_with_why_and_exit_code_1() {
    let world = world_with(None);
    world.write("dies.yaml", "name: local/dies\nlanguages: [python]\ncommand: /bin/sh\nargs: ['-c', 'echo no licence >&2; exit 7']\n");
    let ran = world.run_in("json", &["lsp", "check", "--config", "dies.yaml"]);
    let data = &document(&ran, &["lsp", "check"])["data"];
    assert_eq!(
        (ran.code, &data["server"], &data["registered"]),
        (Some(1), &json!("local/dies"), &json!(false))
    );
    let problem = data["problem"].as_str().unwrap();
    assert!(problem.contains("exit status 7") && problem.contains("no licence"), "{problem}");
    let ran = world.run_in("plain", &["lsp", "check", "ruff"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.contains("`ruff` is not on PATH; install it with `agents lsp install ruff`"),
        "{}",
        ran.stdout
    );
    let usage = world.run(&["lsp", "check"]);
    assert_eq!(usage.code, Some(2));
    let both = world.run(&["lsp", "check", "ruff", "--config", "dies.yaml"]);
    assert_eq!(both.code, Some(2));
}

#[test]
fn ctrl_c_during_an_install_leaves_nothing() {
    let world = world_with(Some("mkdir -p \"$3/bin\"; echo $$ >\"$3/../../pid\"; while :; do sleep 1; done"));
    let child = world.command(&["--format", "json", "lsp", "install", "ruff"]).spawn().unwrap();
    let pid = world.data().join("pid");
    until("the client works", || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    assert_eq!(left(&world).len(), 1);
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let ran: Ran = child.wait_with_output().unwrap().into();
    let document = document(&ran, &["lsp", "install"]);
    assert_eq!((ran.code, &document["status"]), (Some(130), &json!("cancelled")));
    assert_eq!(
        document["messages"][0]["text"],
        "Nothing was installed. To try again: agents lsp install ruff"
    );
    until("nothing is left", || left(&world).is_empty());
    let client = Pid::from_raw(fs::read_to_string(&pid).unwrap().trim().parse().unwrap());
    until("the client is gone", || kill(client, None).is_err());
}
