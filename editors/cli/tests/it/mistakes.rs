//! Names and ids of another kind, and files with many mistakes: what it is instead, and what to do.

use serde_json::{Value, json};

use crate::world::{World, choose_and_edit};

fn registered() -> World {
    let world = World::registered(&choose_and_edit(0.9));
    world.write("server.yaml", "name: local/server\nlanguages: [text]\ncommand: cat\n");
    world.json(&["lsp", "add", "--config", "server.yaml"]);
    world.write("check.yaml", "name: local/check\ndescription: Looks\ncommand: 'true'\n");
    world.json(&["validation", "add", "--config", "check.yaml"]);
    world
}

/// Everything that is registered or made, to see that nothing of it changes.
fn everything(world: &World) -> Vec<Value> {
    let lists = [
        &["plan", "list"][..],
        &["project", "show", "local/app"],
        &["resource", "list"],
        &["lsp", "list"],
        &["action", "list"],
        &["tool", "list"],
        &["automation-profile", "list"],
    ];
    let mut all = lists.map(|args| world.json(args)["data"].clone()).to_vec();
    for plan in all[0]["plans"].as_array_mut().into_iter().flatten() {
        plan["elapsed"] = Value::Null;
    }
    all
}

/// Adds a global invariant; its id.
fn invariant(world: &World, text: &str) -> String {
    let added = world.run_in("json", &["invariant", "add", "--global", text]);
    let id = added.stdout.split('"').find(|word| word.starts_with("inv_"));
    id.unwrap_or_else(|| panic!("{}", added.stdout)).to_owned()
}

fn assert_not_found(world: &World, args: &[&str], message: &str, hint: &str) {
    let refused = world.refused(args);
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["message"]), (&json!("NOT_FOUND"), &json!(message)), "{args:?}");
    assert_eq!(error["suggestions"][0], hint, "{args:?}: {error:#}");
}

// OUT-004
#[test]
fn a_name_of_another_kind_is_told_with_the_command_that_takes_it() {
    let world = registered();
    let before = everything(&world);
    for (args, message, hint) in [
        (
            &["plan", "use", "local/app", "local/repo"][..],
            "`local/app` is a project, not an action",
            "agents project show local/app",
        ),
        (
            &["plan", "use", "local/act", "local/repo", "--arg", "script={}"],
            "`local/repo` is a resource, not a project",
            "agents resource show local/repo",
        ),
        (
            &["plan", "use", "local/server", "local/app"],
            "`local/server` is a language server, not an action",
            "agents lsp show local/server",
        ),
        (
            &[
                "plan",
                "use",
                "local/act",
                "local/app",
                "--arg=script={}",
                "--automation-profile",
                "local/check",
            ],
            "`local/check` is a validation, not an automation profile",
            "agents tool show local/check",
        ),
        (
            &["project", "create", "local/x", "--resource", "local/app"],
            "`local/app` is a project, not a resource",
            "agents project show local/app",
        ),
        (
            &["project", "unlink-resource", "local/app", "local/server"],
            "`local/server` is a language server, not a resource",
            "agents lsp show local/server",
        ),
        (
            &["project", "delete", "--yes", "local/act"],
            "`local/act` is an action, not a project",
            "agents action show local/act",
        ),
        (
            &["lsp", "remove", "--yes", "local/repo"],
            "`local/repo` is a resource, not a language server",
            "agents resource show local/repo",
        ),
        (
            &["invariant", "add", "--action", "local/app", "No tabs"],
            "`local/app` is a project, not an action",
            "agents project show local/app",
        ),
        (
            &["automation-profile", "show", "local/act"],
            "`local/act` is an action, not an automation profile",
            "agents action show local/act",
        ),
        (
            &["tool", "show", "local/server"],
            "`local/server` is a language server, not a validation",
            "agents lsp show local/server",
        ),
        (
            &["validation", "detach", "--yes", "local/check"],
            "`local/check` is a validation, not one of its attachments",
            "agents tool show local/check",
        ),
        (
            &["plan", "use", "acct", "local/app"],
            "there is no action `local/acct`",
            "did you mean `local/act`?",
        ),
        (
            &["plan", "use", "act", "ap", "--arg", "script={}"],
            "there is no project `local/ap`",
            "did you mean `local/app`?",
        ),
        (
            &["resource", "show", "local/rpo"],
            "there is no resource `local/rpo`",
            "did you mean `local/repo`?",
        ),
    ] {
        assert_not_found(&world, args, message, hint);
    }
    assert_eq!(everything(&world), before);
}

// OUT-004
#[test]
fn an_id_of_another_kind_is_told_with_the_command_that_takes_it() {
    let world = registered();
    let plan = world.plan(&[]);
    let tree = world.json(&["plan", "tree", &plan]).to_string();
    let ids: Vec<&str> = tree.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| w.len() == 26).collect();
    let decision = *ids.iter().find(|id| **id != plan).unwrap();
    let resource = world.json(&["resource", "show", "local/repo"])["data"].to_string();
    let resource =
        resource.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| word.len() == 26).unwrap();
    let invariant = invariant(&world, "Keep it short");
    let before = everything(&world);
    for (group, verb, text, is, wanted, hint) in [
        ("plan", "status", decision, "a decision", "a plan", format!("agents plan explain {decision}")),
        ("plan", "execute", decision, "a decision", "a plan", format!("agents plan explain {decision}")),
        ("plan", "diff", resource, "a resource", "a plan", format!("agents resource show {resource}")),
        (
            "plan",
            "cancel",
            &*invariant,
            "an invariant",
            "a plan",
            "agents invariant list --global".to_owned(),
        ),
        ("plan", "explain", &*plan, "a plan", "a decision", format!("agents plan status {plan}")),
        ("resource", "show", &*plan, "a plan", "a resource", format!("agents plan status {plan}")),
        ("invariant", "remove", &*plan, "a plan", "an invariant", format!("agents plan status {plan}")),
    ] {
        let message = format!("`{text}` is the id of {is}, not of {wanted}");
        assert_not_found(&world, &[group, verb, text], &message, &hint);
    }
    let refused = world.refused(&["plan", "tree", decision]);
    assert_eq!(refused["error"]["detail"], format!("it is a decision of plan {plan}"));
    // What could be the beginning of anything is none of this.
    assert_not_found(&world, &["plan", "status", "inv_"], NO_PLAN, "agents plan list");
    assert_eq!(everything(&world), before);
}

const NO_PLAN: &str = "there is no plan `inv_`: expected the id of a plan or its beginning";

// ACT-005, LSPCLI-001
#[test]
fn a_file_with_several_mistakes_says_how_many_and_where() {
    let world = registered();
    let before = everything(&world);
    world.write("bad.yaml", "name: local/bad\nnonsense: 1\nname: local/again\n");
    for group in
        [&["action", "create"][..], &["lsp", "add"], &["automation-profile", "add"], &["validation", "add"]]
    {
        let refused = world.refused(&[group, &["--config", "bad.yaml"]].concat());
        let problems = refused["data"]["problems"].as_array().unwrap();
        assert!(problems.len() > 1, "{refused:#}");
        let message = format!("bad.yaml cannot be used: there are {} problems in it", problems.len());
        assert_eq!(refused["error"]["message"], message, "{group:?}");
        let detail = refused["error"]["detail"].as_str().unwrap();
        assert_eq!(detail.lines().count(), problems.len(), "{detail}");
        assert!(detail.contains("bad.yaml:2:1: there is no key `nonsense`"), "{detail}");
        assert!(detail.contains("bad.yaml:3:1: the key `name` is there twice"), "{detail}");
    }
    assert_eq!(everything(&world), before);
}

// One mistake each, with its place.
#[test]
fn what_is_no_mapping_of_yaml_is_refused_at_its_place_by_every_command_that_takes_a_file() {
    let world = World::new();
    let list = |n: usize| format!("[{}]", vec![format!("*a{n}"); 9].join(", "));
    let bomb: String = (1..9).map(|n| format!("a{n}: &a{n} {}\n", list(n - 1))).collect();
    let files: [(&str, Vec<u8>, &str); 10] = [
        ("empty", vec![], ":1:1: the file is empty"),
        ("comment", b"# nothing\n".to_vec(), ":1:1: the file is empty"),
        ("list", b"- a\n".to_vec(), ":1:1: the file must be a mapping"),
        ("text", b"hello\n".to_vec(), ":1:1: the file must be a mapping"),
        ("tab", b"name: local/a\n\tdescription: x\n".to_vec(), ":2:1: a tab cannot indent YAML"),
        ("quote", b"name: \"local/a\n".to_vec(), ": this is not YAML: unclosed quote"),
        ("alias", b"name: *nobody\n".to_vec(), ":1:7: this is not YAML"),
        ("latin", b"name: caf\xe9\n".to_vec(), ":1:10: the file is not UTF-8"),
        ("huge", vec![b'#'; 10 << 20], ":1:1: the file is larger than 1048576 bytes"),
        ("bomb", format!("a0: &a0 [x, x, x, x]\n{bomb}").into_bytes(), "too much data through its aliases"),
    ];
    for (name, bytes, words) in files {
        let file = format!("{name}.yaml");
        std::fs::write(world.dir.path().join(&file), bytes).unwrap();
        for group in [
            &["action", "create"][..],
            &["lsp", "add"],
            &["automation-profile", "add"],
            &["validation", "add"],
        ] {
            let refused = world.refused(&[group, &["--config", &file]].concat());
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.starts_with(&file) && message.contains(words), "{group:?}: {message}");
        }
    }
}

#[test]
fn a_data_directory_that_cannot_be_used_says_which_option_names_another() {
    let world = World::new();
    world.write("file", "");
    let place = world.dir.path().join("file").join("data");
    let refused = world.refused(&["--data-dir", place.to_str().unwrap(), "plan", "list"]);
    let said = refused["error"].to_string();
    assert!(said.contains("--data-dir <PATH>") && !said.contains("os error"), "{said}");
}

// CLI-040, CLI-046: what is registered and cannot work is named with what to do.
#[test]
fn a_diagnosis_names_validations_and_invariants_that_cannot_work() {
    let world = registered();
    let check = |name: &str| {
        let found = world.json(&["diagnostics"]);
        let checks = found["data"]["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("{found:#}"))
    };
    assert_eq!(check("Validations")["details"], "1 registered");
    assert_eq!(check("Invariants")["details"], "none");
    world.write("lost.yaml", "name: local/lost\ndescription: Looks\ncommand: no-such-program --check\n");
    world.json(&["validation", "add", "--config", "lost.yaml"]);
    let lost = check("Validation local/lost");
    assert_eq!(
        (&lost["status"], &lost["details"]),
        (&json!("warn"), &json!("`no-such-program` is not on PATH"))
    );
    assert!(lost["fix"].as_str().unwrap().contains("agents validation add --update"), "{lost:#}");
    invariant(&world, "Keep it short");
    invariant(&world, "At most 3 changed files");
    let told = check("Invariants");
    assert_eq!(told["details"], "2, 1 of them only told to actors: no machine checks them");
    invariant(&world, "Validation local/gone must pass");
    let gone = check("Invariants");
    assert_eq!(gone["status"], "warn");
    assert_eq!(gone["details"], "`Validation local/gone must pass`: there is no validation `local/gone`");
}
