//! Completion of shells.

use crate::world::World;

// CLI-009, CLI-010
#[test]
fn completion_is_shown_and_installed() {
    let mut world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let shown = world.run(&["--show-completion", shell]);
        assert_eq!(shown.code, Some(0));
        assert!(shown.stdout.contains("agents") && shown.stdout.contains("CLEVERAGENTS_COMPLETE"), "{shell}");
    }
    assert_eq!(world.run(&["--show-completion"]).code, Some(2), "no shell is known here");
    world.env.insert("SHELL", "/usr/bin/fish".into());
    assert!(world.run(&["--show-completion"]).stdout.contains("--command agents"));
    let installed = world.run(&["--install-completion"]);
    assert_eq!(installed.code, Some(0), "{}", installed.stdout);
    assert!(world.dir.path().join(".config/fish/completions/agents.fish").exists());
    for (shell, path) in
        [("bash", ".local/share/bash-completion/completions/agents"), ("zsh", ".zfunc/_agents")]
    {
        assert_eq!(world.run(&["--install-completion", shell]).code, Some(0));
        assert!(world.dir.path().join(path).exists(), "{path}");
    }
    assert_ne!(world.run(&["--install-completion", "elvish"]).code, Some(0));
    assert_eq!(world.run(&["--install-completion", "tcsh"]).code, Some(2));
}

/// What a shell offers for the last of these words.
fn offered(world: &World, shell: &str, words: &[&str]) -> Vec<String> {
    let mut command = world.command(&[&["--", "agents"], words].concat());
    command
        .env("CLEVERAGENTS_COMPLETE", shell)
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_IFS", "\n");
    let ran: crate::world::Ran = command.output().unwrap().into();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{shell} {words:?}");
    let value = |line: &str| line.split([':', '\t']).next().unwrap_or_default().to_owned();
    ran.stdout.lines().map(value).filter(|value| !value.is_empty()).collect()
}

// CLI-009: names, ids and keys as they are at that moment
#[test]
fn shells_are_offered_names_ids_and_keys() {
    let world = World::registered(&crate::world::choose_and_edit(0.9));
    let plan = world.plan(&[]);
    let tree = world.json(&["plan", "tree", &plan]);
    let decision = tree["data"]["tree"]["children"][0]["decision_id"].as_str().unwrap().to_owned();
    for shell in ["bash", "zsh", "fish"] {
        for (words, wanted) in [
            (&["project", "show", "local/"][..], "local/app"),
            (&["resource", "remove", "lo"], "local/repo"),
            (&["action", "show", ""], "local/act"),
            (&["plan", "use", ""], "local/act"),
            (&["plan", "use", "local/act", ""], "local/app"),
            (&["plan", "status", ""], &plan),
            (&["plan", "explain", ""], &decision),
            (&["plan", "list", "--state", "aw"], "awaiting"),
            (&["plan", "use", "--automation-profile", "tr"], "trusted"),
            (&["config", "set", "core.fo"], "core.format"),
            (&["config", "set", "core.format", "ya"], "yaml"),
            (&["resource", "add", "git"], "git-checkout"),
            (&["lsp", "install", "ruf"], "ruff"),
            (&["help", "scr"], "scripting"),
            (&["help", "plan", "ex"], "execute"),
            (&["action", "create", "--config", "act."], "act.yaml"),
            (&["plan", "exe"], "execute"),
            (&["--form"], "--format"),
            (&["--format", "js"], "json"),
        ] {
            let offered = offered(&world, shell, words);
            assert!(offered.iter().any(|one| one == wanted), "{shell} {words:?}: {offered:?}");
        }
    }
}

#[test]
fn completing_makes_nothing_and_says_nothing_where_nothing_can_be_read() {
    let world = World::new();
    assert_eq!(offered(&world, "fish", &["project", "show", "lo"]), [""; 0]);
    assert!(!world.data().exists());
    std::fs::create_dir(world.data()).unwrap();
    std::fs::write(world.data().join("cleveragents.db"), "no database").unwrap();
    assert_eq!(offered(&world, "fish", &["project", "show", "lo"]), [""; 0]);
    std::fs::write(world.data().join("config.toml"), "no [ configuration").unwrap();
    assert_eq!(offered(&world, "fish", &["project", "show", "lo"]), [""; 0]);
    let elsewhere = World::registered(&crate::world::choose_and_edit(0.9));
    let data = elsewhere.data().display().to_string();
    assert_eq!(offered(&world, "fish", &["--data-dir", &data, "project", "show", "lo"]), ["local/app"]);
}

#[test]
fn the_script_of_bash_completes_in_bash() {
    let world = World::registered(&crate::world::choose_and_edit(0.9));
    let script = world.run(&["--show-completion", "bash"]).stdout;
    world.write(
        "try.bash",
        &format!(
            "{script}\nCOMP_WORDS=(agents project show lo); COMP_CWORD=3; COMP_TYPE=9\n\
             _clap_complete_agents agents lo show\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        ),
    );
    let mut bash = std::process::Command::new("bash");
    bash.arg(world.dir.path().join("try.bash")).env("CLEVERAGENTS_DATA_DIR", world.data());
    let said = String::from_utf8(bash.output().unwrap().stdout).unwrap();
    assert_eq!(said, "local/app\n");
}

// CLI-001
#[test]
fn the_long_name_is_the_same_program() {
    let world = World::new();
    let long = world.dir.path().join("cleveragents");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_agents"), &long).unwrap();
    let run = |args: &[&str]| {
        let output =
            std::process::Command::new(&long).args(args).env("HOME", world.dir.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let version: serde_json::Value = serde_json::from_str(&run(&["version", "--format", "json"])).unwrap();
    assert_eq!(version["data"], world.json(&["version"])["data"]);
    assert!(run(&["plan", "--help"]).contains("Usage: cleveragents plan"));
}
