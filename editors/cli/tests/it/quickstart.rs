//! `agents quickstart` with real language servers: the first command of a newcomer, and all the ways it can end.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::world::{Ran, World, document, git, until};

/// Puts the language servers of the tests before everything else on PATH.
fn with_servers(world: &mut World) {
    let tools = std::env::var("AGENTS_TEST_TOOLS")
        .expect("language servers are needed: run this by tests/run, or after eval \"$(tests/setup --env)\"");
    let path = std::env::var("PATH").unwrap();
    world.env.insert("PATH", format!("{tools}/bin:{path}"));
}

/// Leaves only these programs on PATH.
fn with_nothing_but(world: &mut World, programs: &[&str]) {
    let bin = world.dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let found = |name: &&str| {
        let path = std::env::var_os("PATH").unwrap();
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|p| p.is_file()).unwrap()
    };
    for program in programs {
        std::os::unix::fs::symlink(found(program), bin.join(program)).unwrap();
    }
    world.env.insert("PATH", bin.display().to_string());
}

/// A world whose repository has one file with something to fix.
fn with_python() -> World {
    let mut world = World::new();
    with_servers(&mut world);
    let repo = world.repo();
    std::fs::create_dir(repo.join("src")).unwrap();
    std::fs::write(repo.join("src/app.py"), "import os\n\nprint(f\"hello\")\n").unwrap();
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "app"]);
    world
}

fn sample(world: &World) -> PathBuf {
    world.data().join("quickstart")
}

/// Nothing is registered, no sandbox is left, and there is no sample.
fn assert_nothing_is_left(world: &World) {
    assert_eq!(world.json(&["resource", "list", "--all"])["data"]["summary"]["total"], 0);
    assert_eq!(world.json(&["project", "list"])["data"]["summary"]["total"], 0);
    assert!(!sample(world).exists());
    let sandboxes = std::fs::read_dir(world.data().join("sandboxes")).into_iter().flatten().count();
    assert_eq!(sandboxes, 0);
    let beside: Vec<_> = std::fs::read_dir(world.data()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(beside.iter().all(|name| !name.to_string_lossy().starts_with(".quickstart")), "{beside:?}");
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn last(document: &Value) -> &str {
    document["messages"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap()
}

#[test]
fn a_sample_is_made_fixed_and_applied_and_a_second_run_finds_nothing_to_do() {
    let mut world = World::new();
    with_servers(&mut world);
    let before = git(&world.repo(), &["rev-parse", "HEAD"]);
    let done = world.json(&["quickstart", "--yes"]);
    let data = &done["data"];
    let wanted = [
        "repository",
        "languages",
        "servers",
        "resource",
        "project",
        "action",
        "plan_id",
        "decisions",
        "files_changed",
        "files",
        "applied",
        "commit",
        "next_steps",
        "editors",
    ];
    assert_eq!(keys(data), wanted);
    let repo = sample(&world);
    assert_eq!(data["repository"], json!({ "path": repo, "sample": true, "created": true }));
    assert_eq!(
        (&data["resource"], &data["project"]),
        (&json!("local/quickstart"), &json!("local/quickstart"))
    );
    let servers: Vec<_> = data["servers"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert_eq!(servers, ["local/ruff", "local/typescript-language-server"]);
    assert!(data["decisions"].as_array().unwrap().len() >= 8, "{data:#}");
    assert_eq!((&data["applied"], &data["files_changed"]), (&json!(true), &json!(5)), "{data:#}");

    // Both languages were fixed, and what has no fix was left.
    let read = |file: &str| std::fs::read_to_string(repo.join(file)).unwrap();
    assert!(read("cafe/menu.py").contains("if cents is None:"));
    assert!(!read("cafe/orders.py").contains("List"));
    assert!(read("web/src/page.ts").contains("import { euros } from \"./money\";"));
    assert!(read("web/src/cart.ts").contains("toLocaleUpperCase"));
    assert!(read("cafe/receipt.py").contains("except:"), "nobody offers a fix for it");
    assert_eq!(data["commit"], git(&repo, &["rev-parse", "HEAD"]));
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    assert_eq!(git(&world.repo(), &["rev-parse", "HEAD"]), before, "the folder it was run in is not touched");

    // What it says to do next can be done.
    let steps: Vec<&str> =
        data["next_steps"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    let program = env!("CARGO_BIN_EXE_agents");
    assert_eq!(steps[0], format!("alias agents={program}"));
    for step in steps.iter().filter(|step| step.starts_with("agents plan")) {
        let command = step.split("  # ").next().unwrap();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        world.json(&words);
    }
    let neovim = data["editors"]["neovim"].as_str().unwrap();
    assert!(
        neovim.contains(&format!("'{program}', 'lsp', 'serve', '--data-dir', '{}'", world.data().display()))
    );

    let again = world.json(&["quickstart", "--yes"]);
    let data = &again["data"];
    assert_eq!(data["repository"]["created"], false);
    assert_eq!((&data["applied"], &data["files_changed"]), (&json!(false), &json!(0)), "{data:#}");
    assert!(last(&again).starts_with("Nothing to fix"), "{again:#}");
    let sources: Vec<_> = data["servers"].as_array().unwrap().iter().map(|s| &s["source"]).collect();
    assert_eq!(sources, ["registered", "registered"]);
    for (list, of) in [("resource", "resources"), ("project", "projects"), ("action", "actions")] {
        let listed = world.json(&[list, "list"]);
        assert_eq!(listed["data"][of].as_array().unwrap().len(), 1, "{listed:#}");
    }
    // The plan that was of no use is over, and nothing of it is left.
    let plan = data["plan_id"].as_str().unwrap();
    assert_eq!(world.json(&["plan", "status", plan])["data"]["state"], "cancelled");
    assert!(!world.data().join("sandboxes").join(plan).exists());
}

#[test]
fn a_repository_is_taken_from_any_folder_in_it_and_what_is_not_applied_waits() {
    let world = with_python();
    let args = ["quickstart", "repo/src"];
    let asked = world.document(&args);
    assert_eq!((&asked["status"], &asked["exit_code"]), (&json!("cancelled"), &json!(1)), "{asked:#}");
    let data = &asked["data"];
    assert_eq!(data["repository"], json!({ "path": world.repo(), "sample": false, "created": false }));
    assert_eq!((&data["resource"], &data["applied"]), (&json!("local/repo"), &json!(false)));
    assert_eq!(
        world.read("src/app.py"),
        "import os\n\nprint(f\"hello\")\n",
        "nothing is changed before a yes"
    );
    let plan = data["plan_id"].as_str().unwrap();
    assert_eq!(world.at(plan), "execute/complete+apply_approval");
    assert!(data["next_steps"].as_array().unwrap().contains(&json!(format!("agents plan apply {plan}"))));

    // Another run says that one is open, and uses what is registered.
    let again = world.document(&["quickstart", "repo"]);
    assert_eq!(again["data"]["resource"], "local/repo");
    let open = format!("An earlier plan on this repository is still open: {plan}");
    assert!(again["messages"].as_array().unwrap().iter().any(|m| m["text"] == open.as_str()), "{again:#}");
    assert_eq!(world.json(&["resource", "list"])["data"]["summary"]["total"], 1);

    world.json(&["plan", "apply", "--yes", plan]);
    assert_eq!(world.read("src/app.py"), "\nprint(\"hello\")\n");
}

#[test]
fn a_yes_to_the_question_applies() {
    let world = with_python();
    let mut child = world.command(&["--format", "plain", "quickstart", "repo"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    // It is read when the question is asked, which is long after.
    std::io::Write::write_all(&mut child.stdin.as_mut().unwrap(), b"y\n").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    for words in
        ["Decision Tree", "-import os", "Applied", "vim.lsp.enable('agents')", "[language-server.agents]"]
    {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    assert_eq!(world.read("src/app.py"), "\nprint(\"hello\")\n");
}

#[test]
fn ctrl_c_takes_back_what_the_run_made() {
    let mut world = World::new();
    with_servers(&mut world);
    let args = ["--format", "json", "quickstart"];
    let child = world.command(&args).spawn().unwrap();
    until("a plan is made", || world.json(&["plan", "list"])["data"]["total"] == 1);
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    let stopped = document(&ran, &args);
    assert_eq!((ran.code, &stopped["status"]), (Some(130), &json!("cancelled")), "{stopped:#}");
    let plan = stopped["data"]["plan_id"].as_str().unwrap();
    let words = last(&stopped);
    for what in [plan, "is cancelled", "local/quickstart", &sample(&world).display().to_string()] {
        assert!(words.contains(what), "{what}: {words}");
    }
    assert_eq!(world.json(&["plan", "status", plan])["data"]["state"], "cancelled");
    assert_nothing_is_left(&world);
}

#[test]
fn what_was_there_before_stays_when_a_run_is_stopped() {
    let world = with_python();
    world.json(&["resource", "add", "git-checkout", "local/mine", "--path", "repo"]);
    world.json(&["project", "create", "local/work", "--resource", "local/mine"]);
    let args = ["--format", "json", "quickstart", "repo"];
    let child = world.command(&args).spawn().unwrap();
    until("a plan is made", || world.json(&["plan", "list"])["data"]["total"] == 1);
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    let stopped = document(&ran, &args);
    assert_eq!(ran.code, Some(143), "{stopped:#}");
    let data = &stopped["data"];
    assert_eq!((&data["resource"], &data["project"]), (&json!("local/mine"), &json!("local/work")));
    assert_eq!(world.json(&["resource", "list"])["data"]["summary"]["total"], 1);
    assert_eq!(world.json(&["project", "list"])["data"]["summary"]["total"], 1);
    assert_eq!(git(&world.repo(), &["for-each-ref", "refs/cleveragents"]), "", "no snapshot is left in it");
}

#[test]
fn without_git_or_any_language_server_it_says_so_and_leaves_nothing() {
    let mut world = World::new();
    with_nothing_but(&mut world, &[]);
    let refused = world.refused(&["quickstart", "--yes"]);
    assert_eq!(refused["error"]["message"], "git is not installed or not on PATH", "{refused:#}");
    assert_nothing_is_left(&world);

    let mut world = World::new();
    with_nothing_but(&mut world, &["git"]);
    let refused = world.refused(&["quickstart", "--yes"]);
    let error = &refused["error"];
    assert!(error["message"].as_str().unwrap().contains("`python3` is not on PATH"), "{refused:#}");
    assert!(!error["suggestions"].as_array().unwrap().is_empty(), "{refused:#}");
    let warned = refused["messages"]
        .as_array()
        .unwrap()
        .iter()
        .any(|m| m["level"] == "warn" && m["text"].as_str().unwrap().contains("`npm` is not on PATH"));
    assert!(warned, "the other one is named, too: {refused:#}");
    assert_nothing_is_left(&world);

    // Nobody is there to be asked whether they may be installed.
    let asked = world.document(&["quickstart"]);
    assert_eq!((&asked["status"], &asked["exit_code"]), (&json!("cancelled"), &json!(1)), "{asked:#}");
    assert_nothing_is_left(&world);
}

#[test]
fn a_place_that_cannot_be_worked_on_is_refused_and_stays_as_it_is() {
    let mut world = World::new();
    with_servers(&mut world);
    let refusal = |args: &[&str], code: &str| {
        let refused = world.refused(args);
        assert_eq!(refused["error"]["code"], code, "{refused:#}");
        refused["error"]["message"].as_str().unwrap().to_owned()
    };
    std::fs::create_dir(world.dir.path().join("plain")).unwrap();
    world.write("file.txt", "mine");
    assert!(refusal(&["quickstart", "missing"], "NOT_FOUND").contains("there is no folder"));
    assert!(refusal(&["quickstart", "file.txt"], "VALIDATION_FAILED").contains("is not a folder"));
    assert!(refusal(&["quickstart", "plain"], "NOT_FOUND").contains("is not in a git repository"));
    assert!(refusal(&["quickstart", "--sample", "repo"], "ALREADY_EXISTS").contains("not empty"));
    assert!(refusal(&["quickstart", "--sample", "file.txt"], "ALREADY_EXISTS").contains("is there already"));
    let message = refusal(&["quickstart", "repo"], "NOT_FOUND");
    assert!(message.contains("there is no language server for plaintext"), "{message}");

    std::fs::create_dir_all(sample(&world)).unwrap();
    std::fs::write(sample(&world).join("notes"), "mine").unwrap();
    assert!(refusal(&["quickstart"], "ALREADY_EXISTS").contains("is where the sample goes"));
    assert_eq!(std::fs::read_to_string(sample(&world).join("notes")).unwrap(), "mine");
    assert_eq!(world.json(&["resource", "list", "--all"])["data"]["summary"]["total"], 0);

    // A repository without a commit has nothing that a plan could start from.
    let unborn = world.dir.path().join("unborn");
    std::fs::create_dir(&unborn).unwrap();
    git(&unborn, &["init", "-q"]);
    std::fs::write(unborn.join("a.py"), "import os\n").unwrap();
    assert!(refusal(&["quickstart", "unborn"], "VALIDATION_FAILED").contains("no commit yet"));
    assert_eq!(world.json(&["resource", "list", "--all"])["data"]["summary"]["total"], 0);
}

#[test]
fn an_action_of_that_name_that_does_something_else_is_left_alone() {
    let mut world = World::new();
    with_servers(&mut world);
    let other = crate::world::ACTION.replace("local/act", "local/fix-diagnostics");
    world.write("other.yaml", &other);
    world.json(&["action", "create", "--config", "other.yaml"]);
    let asked = world.document(&["quickstart", "--sample", "deep/er/cafe"]);
    assert_eq!(asked["data"]["action"], "local/fix-diagnostics-2", "{asked:#}");
    assert_eq!((&asked["data"]["resource"], &asked["exit_code"]), (&json!("local/cafe"), &json!(1)));
    assert!(Path::new(&world.dir.path().join("deep/er/cafe/cafe/menu.py")).exists());
}

#[test]
fn a_server_that_does_not_start_keeps_no_other_from_its_work() {
    let mut world = World::new();
    with_servers(&mut world);
    let bin = world.dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/false", bin.join("ruff")).unwrap();
    let path = format!("{}:{}", bin.display(), world.env["PATH"]);
    world.env.insert("PATH", path);
    let done = world.json(&["quickstart", "--yes"]);
    let servers: Vec<_> =
        done["data"]["servers"].as_array().unwrap().iter().map(|server| &server["name"]).collect();
    assert_eq!(servers, ["local/typescript-language-server"], "{done:#}");
    assert_eq!(done["data"]["applied"], true);
    let messages = done["messages"].as_array().unwrap();
    assert!(messages.iter().any(|m| m["text"].as_str().unwrap().starts_with("Without ruff: ")), "{done:#}");
}
