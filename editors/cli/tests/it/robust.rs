//! What must hold whatever is typed, and wherever it is typed.

use std::process::Stdio;

use serde_json::json;

use crate::world::{World, choose_and_edit};

/// A small generator: the same lines every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

// CLI-014: no line of words is answered with a crash
#[test]
fn any_words_are_answered_with_an_exit_code() {
    const WORDS: [&str; 40] = [
        "plan",
        "list",
        "show",
        "use",
        "execute",
        "apply",
        "diff",
        "tree",
        "explain",
        "correct",
        "rollback",
        "project",
        "create",
        "delete",
        "resource",
        "add",
        "remove",
        "git-checkout",
        "type",
        "context",
        "set",
        "config",
        "get",
        "action",
        "lsp",
        "validation",
        "attach",
        "invariant",
        "--format",
        "json",
        "--yes",
        "--",
        "-vv",
        "--config",
        "-",
        "local/app",
        "\u{202e}é",
        "",
        "--path=",
        "../../etc",
    ];
    let world = World::registered(&choose_and_edit(0.9));
    let mut dice = Dice(7);
    for _ in 0..60 {
        let mut line: Vec<&str> = (0..=dice.roll(7)).map(|_| WORDS[dice.roll(WORDS.len())]).collect();
        // So that nothing is followed for ever, whatever the rest means.
        line.push("--no-such-option");
        let ran = world.run(&line);
        assert_eq!(ran.code, Some(2), "{line:?}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{line:?}: {}", ran.stderr);
        line.pop();
        if line.contains(&"apply") || line.contains(&"execute") {
            continue;
        }
        let ran = world.run(&line);
        assert!(matches!(ran.code, Some(0..=2)), "{line:?}: {:?} {}{}", ran.code, ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{line:?}: {}", ran.stderr);
    }
}

#[test]
fn a_closed_output_is_no_crash() {
    let world = World::registered(&choose_and_edit(0.9));
    for line in
        ["plan list", "version --format json", "help topics", "resource list --format table", "nonsense"]
    {
        let program = env!("CARGO_BIN_EXE_agents");
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(format!("exec {program} {line} >&-")).stderr(Stdio::piped());
        shell.env("CLEVERAGENTS_DATA_DIR", world.data()).env("HOME", world.dir.path());
        let output = shell.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some() && !stderr.contains("panicked"), "{line}: {stderr}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_that_names_it() {
    let world = World::new();
    for args in [&["plan", "list"][..], &["resource", "list"], &["info"], &["init", "--yes"]] {
        let ran = world.run(&[&["--data-dir", "/proc/agents", "--format", "json"], args].concat());
        let document = crate::world::document(&ran, args);
        assert_eq!(ran.code, Some(1), "{document:#}");
        assert!(document["error"]["message"].as_str().unwrap().contains("/proc/agents"), "{document:#}");
    }
}

// CLI-196: nothing but ASCII and no box where the locale knows no more
#[test]
fn a_locale_without_unicode_gets_ascii() {
    let mut world = World::registered(&choose_and_edit(0.9));
    world.plan(&[]);
    world.env.insert("LANG", "C".into());
    for args in [
        &["resource", "list"][..],
        &["plan", "list"],
        &["help", "formats"],
        &["resource", "inspect", "local/repo"],
    ] {
        for format in ["rich", "table", "plain"] {
            let ran = world.run_in(format, args);
            assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stdout);
            assert!(ran.stdout.is_ascii(), "{format} {args:?}: {}", ran.stdout);
        }
    }
}

#[test]
fn of_commands_at_once_on_the_same_name_one_wins_and_none_is_lost() {
    let world = World::new();
    let start = |name: String| {
        let args = ["--format", "json", "project", "create", &name].map(str::to_owned);
        (name, world.command(&args).spawn().unwrap())
    };
    let running: Vec<_> = (0..6).map(|n| start(format!("local/p{}", n % 3))).collect();
    let mut made: Vec<String> = Vec::new();
    for (name, child) in running {
        let ran = crate::world::Ran::from(child.wait_with_output().unwrap());
        let document = crate::world::document(&ran, &["project", "create"]);
        match document["exit_code"].as_i64() {
            Some(0) => made.push(name),
            _ => assert_eq!(document["error"]["code"], "ALREADY_EXISTS", "{document:#}"),
        }
    }
    made.sort();
    assert_eq!(made, ["local/p0", "local/p1", "local/p2"]);
    assert_eq!(world.json(&["project", "list"])["data"]["summary"]["total"], 3);
}

// Ruling 22: what is not there yet says so, and does nothing
#[test]
fn what_this_version_does_not_have_is_refused_with_a_code_of_its_own() {
    let world = World::new();
    for line in [
        "project context set --view execute --include-path src/** --depth-gradient 1:SIGNATURES --clear local/app",
        "project context show local/app",
        "project context inspect --focus x --breadth 2 local/app",
        "project context simulate --budget 100 local/app",
        "resource type add --config x.yaml --update",
        "resource type remove -y local/x",
        "resource link-child a b",
        "resource unlink-child --yes a b",
        "resource stop a",
        "resource rebuild a",
        "plan use --execution-environment box --execution-env-priority override a p",
        "context add --project p src",
        "server add a https://a",
        "server status",
        "tui",
        "tui web",
        "persona add --config persona.yaml",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let refused = world.refused(&args);
        let error = &refused["error"];
        assert_eq!((&error["code"], &error["number"]), (&json!("NOT_AVAILABLE"), &json!(501)), "{refused:#}");
        let wrong = world.run_in("json", &[&args[..], &["--bad"]].concat());
        assert_eq!(wrong.code, Some(2), "{line}");
    }
    assert_eq!(
        world.run_in("json", &["project", "context", "set", "--depth-gradient", "x:1", "p"]).code,
        Some(2)
    );
    assert_eq!(
        world.run_in("json", &["project", "context", "set", "--skeleton-ratio", "1.1", "p"]).code,
        Some(2)
    );
    assert!(!world.data().exists());
    let found = world.json(&["diagnostics"]);
    let check =
        found["data"]["checks"].as_array().unwrap().iter().find(|c| c["check"] == "Not in this version");
    let details = check.unwrap()["details"].as_str().unwrap();
    for part in ["project context", "server", "tui", "resource link-child"] {
        assert!(details.contains(part), "{part}: {details}");
    }
}

// RTYPE-010, RTYPE-012, RES-028, RES-029, RES-031, RES-033, RES-034
#[test]
fn resources_are_looked_into() {
    let world = World::registered(&choose_and_edit(0.9));
    std::fs::create_dir_all(world.repo().join("src/deep")).unwrap();
    std::fs::write(world.repo().join("src/deep/x.py"), "print(1)\nprint(2)\n").unwrap();
    std::fs::write(world.repo().join(".gitignore"), "*.log\n").unwrap();
    std::fs::write(world.repo().join("a.log"), "no\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", world.repo().join("out")).unwrap();

    let tree = world.json(&["resource", "inspect", "local/repo"]);
    let names: Vec<&str> =
        tree["data"]["tree"].as_array().unwrap().iter().map(|n| n["name"].as_str().unwrap()).collect();
    assert_eq!(names, [".gitignore", "a.txt", "b.txt", "out", "src/"]);
    assert_eq!(tree["data"]["tree"][4]["children"][0]["children"][0]["name"], "x.py");
    assert_eq!(tree["data"]["summary"]["directories"], 2);

    let file = world.json(&["resource", "inspect", "--file", "src/deep/x.py", "local/repo"]);
    let shown = &file["data"]["file"];
    assert_eq!((&shown["content"], &shown["language"]), (&json!("print(1)\nprint(2)\n"), &json!("python")));
    assert_eq!((&shown["lines_shown"], &shown["total_lines"]), (&json!(2), &json!(2)));
    for outside in ["../data/cleveragents.db", "/etc/passwd", "out", "src", "none.py"] {
        world.refused(&["resource", "inspect", "--file", outside, "local/repo"]);
    }

    let below = world.json(&["resource", "tree", "local/repo"]);
    assert_eq!(below["data"]["tree"]["children"][0]["type"], "git");
    assert_eq!(below["data"]["summary"]["total_in_subtree"], 2);
    let cut = world.json(&["resource", "tree", "--depth", "0", "local/repo"]);
    assert_eq!(
        (&cut["data"]["tree"]["more"], &cut["data"]["summary"]["total_shown"]),
        (&json!(1), &json!(1))
    );
    let git = below["data"]["tree"]["children"][0]["id"].as_str().unwrap();
    world.refused(&["resource", "inspect", git]);

    let types = world.json(&["resource", "type", "list", "^git"]);
    assert_eq!(types["data"]["resource_types"][0]["name"], "git-checkout");
    assert_eq!(types["data"]["summary"], json!({ "built_in": 2, "custom": 0, "user_addable": 1 }));
    let shown = world.json(&["resource", "type", "show", "git-checkout"]);
    assert_eq!(shown["data"]["cli_arguments"][0]["argument"], "--path");
    assert_eq!(shown["data"]["child_types"][0]["type"], "git");
    assert_eq!(world.refused(&["resource", "type", "show", "nothing"])["error"]["code"], "NOT_FOUND");
}

// CONF-028: with --update an entry is made or replaced, however often
#[test]
fn adding_with_update_can_be_repeated() {
    let world = World::new();
    world.write("ruff.yaml", "name: local/ruff\nlanguages: [python]\ncommand: sh\n");
    world.write("tests.yaml", "name: local/tests\ncommand: 'true'\n");
    for args in [
        &["lsp", "add", "--update", "-c", "ruff.yaml"][..],
        &["validation", "add", "--update", "-c", "tests.yaml"],
        &["resource", "add", "--update", "git-checkout", "local/repo", "--path", "repo"],
        &["config", "set", "core.format", "plain"],
    ] {
        for _ in 0..3 {
            world.json(args);
        }
    }
    assert_eq!(world.json(&["resource", "list"])["data"]["summary"]["total"], 1);
    for args in [&["lsp", "add", "-c", "ruff.yaml"][..], &["validation", "add", "-c", "tests.yaml"]] {
        assert_eq!(world.refused(args)["error"]["code"], "ALREADY_EXISTS", "{args:?}");
    }
}
