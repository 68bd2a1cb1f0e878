//! What goes wrong, and how it is said: one document, one exit code, nothing half done.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use serde_json::json;

use crate::world::{ACTION, World, choose_and_edit};

// CLI-014, G-9
#[test]
fn usage_errors_are_one_document_with_exit_code_2() {
    let world = World::new();
    for (args, command) in [
        (&["plan", "lst"][..], "plan"),
        (&["plan", "use", "local/a"], "plan use"),
        (&["plan", "list", "--bad"], "plan list"),
        (&["frobnicate"], "agents"),
        (&["plan"], "plan"),
        (&[], "agents"),
        (&["lsp", "serve", "--log-level", "loud"], "lsp serve"),
        (&["plan", "list", "--phase", "nonsense"], "plan list"),
        (&["plan", "list", "["], "plan list"),
        (&["plan", "blame", "f:0"], "plan blame"),
    ] {
        let ran = world.run_in("json", args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stdout);
        let document = crate::world::document(&ran, args);
        assert_eq!(document["command"], command, "{args:?}");
        assert_eq!(
            (&document["error"]["code"], &document["error"]["number"]),
            (&json!("USAGE"), &json!(400)),
            "{args:?}"
        );
        assert_eq!(ran.stderr, "", "{args:?}");
    }
    let near = world.document(&["plan", "lst"]);
    assert!(near["error"]["detail"].as_str().unwrap().contains("'list'"));
}

// CLI-015, CLI-007, CLI-008
#[test]
fn help_and_version() {
    let world = World::new();
    let bare = world.run::<&str>(&[]);
    assert_eq!(bare.code, Some(2));
    assert!(bare.stdout.contains("Usage:") && bare.stdout.contains("plan"), "{}", bare.stdout);
    let help = world.run(&["plan", "use", "--help"]);
    assert_eq!(help.code, Some(0));
    assert!(help.stdout.contains("Examples:"));
    let version = world.run(&["--version"]);
    assert_eq!(
        (version.code, version.stdout.as_str()),
        (Some(0), concat!("CleverAgents ", env!("CARGO_PKG_VERSION"), "\n"))
    );
    assert!(!world.data().exists(), "asking for help makes no data directory");
}

// CLI-101: nothing is opened
#[test]
fn version_needs_no_database() {
    let world = World::new();
    let version = world.json(&["version"]);
    assert_eq!(version["data"]["cli"]["name"], "CleverAgents CLI");
    assert_eq!(version["data"]["build"]["schema"], "v3");
    assert!(version["data"]["dependencies"].as_object().unwrap().values().all(|v| v.is_string()));
    assert!(!world.data().exists());
}

// OUT-004, CLI-026
#[test]
fn unknown_and_ambiguous_names_say_what_to_do() {
    let world = World::registered(&choose_and_edit(0.9));
    for (args, hint) in [
        (&["plan", "status", "01ZZZZ"][..], "agents plan list"),
        (&["plan", "explain", "01ZZZZ"], "agents plan tree <PLAN>"),
        (&["project", "show", "local/none"], "agents project list"),
        (&["resource", "show", "local/none"], "agents resource list"),
        (&["lsp", "show", "local/none"], "agents lsp list"),
        (&["action", "show", "local/none"], "agents action list --state all"),
        (&["plan", "use", "local/none", "local/app"], "agents action list"),
        (&["plan", "blame", "/nowhere/x.py"], "agents resource list"),
    ] {
        let refused = world.refused(args);
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["number"]),
            (&json!("NOT_FOUND"), &json!(404)),
            "{args:?}"
        );
        assert!(refused["error"]["suggestions"].as_array().unwrap().contains(&json!(hint)), "{refused:#}");
    }
    let (one, two) = (world.plan(&[]), world.plan(&[]));
    let refused = world.refused(&["plan", "status", "01"]);
    let detail = refused["error"]["detail"].as_str().unwrap();
    assert!(detail.contains(&one) && detail.contains(&two), "{detail}");
}

#[test]
fn a_definition_file_that_cannot_be_used_is_named() {
    let world = World::new();
    world.write("latin.yaml", "");
    std::fs::write(world.dir.path().join("latin.yaml"), b"name: caf\xe9\n").unwrap();
    std::fs::write(world.dir.path().join("huge.yaml"), vec![b'#'; 3 << 20]).unwrap();
    world.write("empty.yaml", "");
    world.write("wrong.yaml", &ACTION.replace("strategy_actor", "strategy_acter"));
    std::fs::create_dir(world.dir.path().join("folder")).unwrap();
    for group in [&["action", "create"][..], &["lsp", "add"]] {
        for file in ["none.yaml", "folder", "latin.yaml", "huge.yaml", "empty.yaml", "wrong.yaml"] {
            let refused = world.refused(&[group, &["--config", file]].concat());
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains(file), "{group:?} {file}: {message}");
        }
    }
    let wrong = world.refused(&["action", "create", "-c", "wrong.yaml"]);
    assert_eq!(wrong["error"]["code"], "VALIDATION_FAILED");
    let detail = wrong["error"]["detail"].as_str().unwrap();
    assert!(
        detail.contains("wrong.yaml:4:1: ") && detail.contains("did you mean `strategy_actor`?"),
        "{wrong:#}"
    );
    assert!(wrong["data"]["problems"].is_array(), "{wrong:#}");
}

// CLI-006, CLI-003, CLI-004, C-1
#[test]
fn a_wrong_configuration_is_named_with_its_place() {
    let mut world = World::new();
    std::fs::create_dir(world.data()).unwrap();
    std::fs::write(world.data().join("config.toml"), "[core]\nformat = \"xml\"\n").unwrap();
    let ran = world.run_in("json", &["info"]);
    let document = crate::world::document(&ran, &["info"]);
    assert_eq!((ran.code, &document["error"]["code"]), (Some(1), &json!("CONFIGURATION")), "{document:#}");
    assert!(document["error"]["message"].as_str().unwrap().contains("config.toml:2"), "{document:#}");

    std::fs::write(world.data().join("config.toml"), "[core]\nformat = \"json\"\n").unwrap();
    let ran = world.run(&["info"]);
    let document = crate::world::document(&ran, &["info"]);
    assert_eq!(document["data"]["environment"]["data_dir"], world.data().display().to_string());
    let ran = world.run(&["info", "--format", "plain"]);
    assert!(ran.stdout.starts_with("Environment\n"), "the flag is stronger than the file");
    world.env.insert("CLEVERAGENTS_FORMAT", "yaml".into());
    assert!(
        world.run(&["info"]).stdout.starts_with("command: info\n"),
        "the variable is stronger than the file"
    );
    world.env.insert("CLEVERAGENTS_FORMAT", "xml".into());
    let ran = world.run(&["info"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stdout.contains("CLEVERAGENTS_FORMAT"), "{}", ran.stdout);
}

#[test]
fn a_damaged_database_is_reported_and_left_as_it_is() {
    let world = World::new();
    std::fs::create_dir(world.data()).unwrap();
    let path = world.data().join("cleveragents.db");
    let garbage = vec![b'x'; 8192];
    std::fs::write(&path, &garbage).unwrap();
    let refused = world.refused(&["plan", "list"]);
    assert_eq!((&refused["error"]["code"], &refused["error"]["number"]), (&json!("DATABASE"), &json!(522)));
    assert_eq!(std::fs::read(&path).unwrap(), garbage);
    assert_eq!(world.json(&["version"])["exit_code"], 0);
}

#[test]
fn arguments_that_are_no_text_are_refused() {
    let world = World::new();
    let bad = OsString::from_vec(b"\xff\xfe.yaml".to_vec());
    let lines: [Vec<OsString>; 4] = [
        vec![bad.clone()],
        vec!["plan".into(), "status".into(), bad.clone()],
        vec!["plan".into(), "blame".into(), bad.clone()],
        vec!["--data-dir".into(), bad, "info".into()],
    ];
    for args in lines {
        let ran = world.run(&args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
}

#[test]
fn a_variable_that_is_no_text_is_refused_by_name_and_nothing_is_made_elsewhere() {
    let world = World::new();
    let bad = OsString::from_vec(b"/tmp/d\xff".to_vec());
    let mut command = world.command(&["--format", "json", "plan", "list"]);
    let ran: crate::world::Ran = command.env("CLEVERAGENTS_DATA_DIR", bad).output().unwrap().into();
    let document = crate::world::document(&ran, &["plan", "list"]);
    assert_eq!(document["error"]["code"], "CONFIGURATION", "{document:#}");
    assert!(document["error"]["message"].as_str().unwrap().contains("CLEVERAGENTS_DATA_DIR"));
    assert!(!world.dir.path().join(".cleveragents").exists());
}

#[test]
fn a_directory_that_cannot_be_written_is_said() {
    let world = World::new();
    world.write("file", "");
    let place = world.dir.path().join("file");
    let ran = world.run(&["--data-dir", place.to_str().unwrap(), "--format", "json", "plan", "list"]);
    let document = crate::world::document(&ran, &["plan", "list"]);
    assert_eq!((ran.code, &document["status"]), (Some(1), &json!("error")), "{document:#}");
    assert!(document["error"]["message"].as_str().unwrap().contains("file"));
}

// CONF-005: said once, on stderr, whatever is asked for; stdout stays one document
#[test]
fn an_unknown_key_in_the_file_is_said_on_stderr_with_its_line_and_the_nearest_key() {
    let world = World::new();
    std::fs::create_dir(world.data()).unwrap();
    std::fs::write(world.data().join("config.toml"), "[core]\nformt = \"json\"\n").unwrap();
    let ran = world.run_in("json", &["version"]);
    crate::world::document(&ran, &["version"]);
    let file = world.data().join("config.toml");
    let said = format!(
        "warning: {}:2:1: there is no configuration key `core.formt`: did you mean `core.format`?\n",
        file.display()
    );
    assert_eq!(ran.stderr, said);
    // Logging shows it as well; it is not said twice.
    let ran = world.run_in("json", &["-vv", "version"]);
    assert_eq!(ran.stderr.matches("core.formt").count(), 1, "{}", ran.stderr);
}

// A pipe would be waited for, for ever.
#[test]
fn a_configuration_that_is_no_file_is_named_and_not_waited_for() {
    let world = World::new();
    std::fs::create_dir(world.data()).unwrap();
    let path = world.data().join("config.toml");
    for (kind, words) in
        [("pipe", "it is a pipe or a device, not a file"), ("directory", "it is a directory")]
    {
        match kind {
            "pipe" => nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            _ => std::fs::create_dir(&path).unwrap(),
        }
        for args in [&["info"][..], &["config", "list"]] {
            let refused = world.refused(args);
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains("config.toml") && message.contains(words), "{kind}: {message}");
        }
        // The version is what a report of the problem begins with.
        world.json(&["version"]);
        let found = world.document(&["diagnostics"]);
        assert_eq!(found["data"]["checks"][0]["status"], "error", "{found:#}");
        let _ = std::fs::remove_file(&path);
    }
}

// PLAN-103
#[test]
fn a_line_that_cannot_be_is_a_usage_error_with_the_reason() {
    let world = World::new();
    for (line, words) in [("0", "counted from 1"), ("99999999999999999999", "no file has more than")] {
        let ran = world.run_in("json", &["plan", "blame", &format!("repo/a.txt:{line}")]);
        let document = crate::world::document(&ran, &["plan", "blame"]);
        assert_eq!(ran.code, Some(2));
        assert!(document["error"]["message"].as_str().unwrap().contains(words), "{document:#}");
    }
}

#[test]
fn a_line_beyond_the_end_of_a_file_is_said_to_be_none() {
    let world = World::registered(&choose_and_edit(0.9));
    let refused = world.refused(&["plan", "blame", "repo/a.txt:900"]);
    assert_eq!(refused["error"]["message"], "a.txt has 3 lines: there is no line 900");
    assert!(
        refused["error"]["suggestions"][0].as_str().unwrap().starts_with("agents plan blame "),
        "{refused:#}"
    );
    world.json(&["plan", "blame", "repo/a.txt:3"]);
}
