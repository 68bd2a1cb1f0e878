//! Completion of shells.

use crate::world::World;

// CLI-009, CLI-010
#[test]
fn completion_is_shown_and_installed() {
    let mut world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let shown = world.run(&["--show-completion", shell]);
        assert_eq!(shown.code, Some(0));
        assert!(shown.stdout.contains("agents") && shown.stdout.contains("plan"), "{shell}");
    }
    assert_eq!(world.run(&["--show-completion"]).code, Some(2), "no shell is known here");
    world.env.insert("SHELL", "/usr/bin/fish".into());
    assert!(world.run(&["--show-completion"]).stdout.contains("complete -c agents"));
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
