//! Skills: their registry, and MCP servers and Agent Skills at work in plans.

use std::time::Duration;

use agents_e2e::{Envelope, PlanHandle, Records, World, scripts, wait_until};
use serde_json::{Value, json};

use crate::support::go_on;

/// The MCP server whose behaviour is chosen by its arguments.
fn fake_server() -> String {
    format!("{}/fake-mcp/server.py", env!("CARGO_MANIFEST_DIR"))
}

/// An Agent Skills folder as people write them.
fn changelog() -> String {
    format!("{}/fixtures/skills/changelog", env!("CARGO_MANIFEST_DIR"))
}

fn file(world: &World, name: &str, text: &str) -> String {
    let path = world.path(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn add(world: &World, name: &str, text: &str) -> Envelope {
    world.ok(&["skill", "add", "--config", &file(world, name, text)])
}

/// A skill with the fake server, showing these behaviours.
fn with_fake(name: &str, words: &str) -> String {
    format!(
        "name: {name}\ndescription: Files over MCP\nmcp_servers:\n  - name: fake\n    command: python3\n    args: [{}{}{words}]\n    env: {{FAKE_TOKEN: '${{FAKE_TOKEN:none}}'}}\n",
        fake_server(),
        if words.is_empty() { "" } else { ", " },
    )
}

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
}

// SKILL-001..006, SKILL-015..024, SKILLC-007, SKILLC-013, MCP-013, MCP-014
#[test]
fn a_skill_is_registered_with_what_its_server_offers_and_listed_with_its_includes() {
    let world = World::new();
    let added = add(&world, "fake.yaml", &with_fake("local/fake", ""));
    assert_eq!(added.data["mcp_servers"], json!([{ "name": "fake", "status": "validated", "tools": 11 }]));
    assert_eq!(added.data["total_tools"], 11);
    assert!(added.text.contains("Skill registered with 11 tools"), "{}", added.text);
    let text = "name: local/all\nincludes: [local/fake]\nbuiltins: [lsp_operations]\ninline_tools:\n  - {name: read_file, code: result = 1}\n";
    let added = add(&world, "all.yaml", text);
    let sources = &added.data["tool_sources"];
    let sum: u64 = sources.as_array().unwrap().iter().map(|source| source["count"].as_u64().unwrap()).sum();
    assert_eq!(Value::from(sum), added.data["total_tools"], "{sources}");
    assert_eq!(names(sources, "source"), ["builtin", "mcp", "custom"]);
    assert_eq!(added.data["includes"], json!([{ "name": "local/fake", "status": "registered" }]));

    let tools = world.ok(&["skill", "tools", "local/all"]).data;
    let summary = &tools["summary"];
    let number = |key: &str| summary[key].as_u64().unwrap();
    assert_eq!(number("total"), number("from_includes") + number("direct"));
    assert_eq!(number("total"), number("read_only") + number("writes"));
    let first = &tools["tools"][0];
    assert_eq!(first["name"], "read_file");
    // Its own tool of that name goes by the plain name.
    assert_eq!(
        (&first["call"], &first["from_skill"]),
        (&json!("local/fake.read_file"), &json!("local/fake"))
    );
    assert_eq!((&first["source"], &first["checkpoint"]), (&json!("mcp:fake"), &Value::Null));
    assert_eq!(tools["tools"][1]["checkpoint"], "no");

    let list = world.ok(&["skill", "list", "--source", "mcp"]).data;
    assert_eq!(list["summary"]["total"], 2);
    assert_eq!(world.ok(&["skill", "list", "--source", "agent_skill"]).data["summary"]["total"], 0);
    assert_eq!(world.call(&["skill", "list", "--source", "magic"]).exit_code, 2);
    let shown = world.ok(&["skill", "show", "local/fake"]).data;
    assert_eq!(shown["referenced_by"], json!({ "actors": [], "skills": ["local/all"] }));
    let server = &shown["mcp_servers"][0];
    assert_eq!((&server["transport"], &server["server"]), (&json!("stdio"), &json!("fake 1.2")));
    assert_eq!((&server["resources"], &server["prompts"]), (&json!(["memo://one"]), &json!(["greet"])));
    world.assert_quiet();
}

// SKILL-007..009, SKILL-012..014, SKILLC-003, SKILLC-005, SKILLC-006
#[test]
fn a_skill_is_updated_and_removed_and_what_that_breaks_is_told() {
    let world = World::new();
    add(&world, "a.yaml", &with_fake("local/a", ""));
    let again = world.refused(&["skill", "add", "--config", world.path("a.yaml").to_str().unwrap()]);
    assert_eq!(again.exit_code, 1);
    assert_eq!(again.data, json!({ "skill_name": "local/a", "reason": "already registered" }));
    assert!(again.text.contains("Skill 'local/a' is already registered."), "{}", again.text);

    add(&world, "b.yaml", "name: local/b\nincludes: [local/a]\n");
    let narrow = format!(
        "{}    tool_filter: {{include: [read_file, write_file], exclude: [write_file]}}\n",
        with_fake("local/a", "")
    );
    let path = file(&world, "a.yaml", &narrow);
    let updated = world.ok(&["skill", "add", "--config", &path, "--update"]);
    assert_eq!(updated.data["tool_count"], json!({ "before": 11, "after": 1 }));
    assert_eq!(
        updated.data["changes"],
        json!({ "tools_added": 0, "tools_removed": 10, "tools_modified": 0, "includes_changed": false, "mcp_servers_changed": true })
    );
    assert!(updated.text.contains("Skill updated (11 -> 1 tools)"), "{}", updated.text);

    let circle = file(&world, "a.yaml", &format!("{narrow}includes: [local/b]\n"));
    let refused = world.refused(&["skill", "add", "--config", &circle, "--update"]);
    assert!(refused.text.contains("local/a -> local/b -> local/a"), "{}", refused.text);
    let missing = file(
        &world,
        "c.yaml",
        "name: local/c\nincludes: [local/none]\ntools: [local/gone]\nbuiltins: [magic]\n",
    );
    let refused = world.refused(&["skill", "add", "--config", &missing]).text;
    for what in ["local/none", "local/gone", "`magic`"] {
        assert!(refused.contains(what), "{refused}");
    }

    let removed = world.ok(&["skill", "remove", "--yes", "local/a"]).data;
    assert_eq!(removed["skill"], json!({ "name": "local/a", "tools_removed": 1, "mcp_servers_closed": 1 }));
    assert_eq!(
        removed["dependency_check"]["including_skills"],
        json!([{ "name": "local/b", "impact": "will lose 1 tool" }])
    );
    assert_eq!(world.ok(&["skill", "tools", "local/b"]).data["summary"]["total"], 0);
    world.assert_quiet();
}

// MCP-014, MCP-017, G-44: a server that does not work is told of, and does not keep its skill from being registered; no
// value of a variable gets into the database or out of the program.
#[test]
fn a_server_that_does_not_work_is_told_of_without_its_secret() {
    let world = World::new();
    let path = file(&world, "bad.yaml", &with_fake("local/bad", "exit").replace(":none", ""));
    let unset = world.ok(&["skill", "add", "--config", &path]);
    assert!(unset.text.contains("FAKE_TOKEN, which is not set"), "{}", unset.text);
    let added =
        world.call_with(&["skill", "add", "--config", &path, "--update"], &[("FAKE_TOKEN", "t0p-s3cret")]);
    let server = &added.data["mcp_servers"][0];
    assert_eq!((&server["status"], &server["tools"]), (&json!("unreachable"), &json!(0)));
    let problem = server["problem"].as_str().unwrap();
    assert!(
        problem.contains("exit status 3") && problem.contains("the token is wrong: ********"),
        "{problem}"
    );
    for entry in std::fs::read_dir(world.data()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        let found = bytes.windows(10).any(|window| window == b"t0p-s3cret");
        assert!(!found, "{} holds the secret", entry.path().display());
    }
    world.assert_quiet();
}

// SKILLC-011, SKILLMD-001, SKILLMD-002, SKILLMD-009, SKILLMD-011
#[test]
fn an_agent_skills_folder_becomes_a_tool() {
    let world = World::new();
    let text = format!("name: local/notes\nagent_skills:\n  - {}\n", changelog());
    let added = add(&world, "notes.yaml", &text).data;
    assert_eq!(
        added["tool_sources"],
        json!([{ "source": "agent_skill", "count": 1, "details": "changelog" }])
    );
    let tools = world.ok(&["skill", "tools", "local/notes"]).data;
    let tool = &tools["tools"][0];
    assert_eq!(
        (&tool["call"], &tool["writes"], &tool["checkpoint"]),
        (&json!("changelog"), &json!(true), &json!("composite"))
    );
    assert!(tool["description"].as_str().unwrap().starts_with("Keeps CHANGELOG.md"));

    // Relative to the file; a folder of folders; long instructions are warned of.
    let folder = world.path("many/long");
    std::fs::create_dir_all(&folder).unwrap();
    let long = format!("---\nname: long\ndescription: Much\n---\n{}", "word ".repeat(5000));
    std::fs::write(folder.join("SKILL.md"), long).unwrap();
    let added = add(&world, "many.yaml", "name: local/many\nagent_skills_dirs: [./many]\n");
    assert_eq!(added.data["total_tools"], 1);
    assert!(added.data["warnings"][0].as_str().unwrap().contains("5000 are recommended"), "{}", added.data);
    let refused = world.refused(&[
        "skill",
        "add",
        "--config",
        &file(&world, "none.yaml", "name: local/none\nagent_skills: [./nothing]\n"),
    ]);
    assert!(refused.text.contains("the Agent Skill `./nothing`: there is no SKILL.md"), "{}", refused.text);
    world.assert_quiet();
}

fn tool(call: &str, tool: &str, args: Value, decision: Option<&str>) -> Value {
    json!({ "request": "tool", "call_id": call, "tool": tool, "args": args, "decision": decision })
}

/// Plays a script on `local/app` under a profile, until the plan pauses.
fn played<'w>(world: &'w World, profile: &str, script: &Value) -> PlanHandle<'w> {
    if !world.ok(&["action", "list"]).text.contains("local/act") {
        world.scripted("local/act", "");
    }
    let script = format!("script={script}");
    let args = ["plan", "use", "--automation-profile", profile, "--arg", &script, "local/act", "local/app"];
    let answer = world.call(&args);
    let plan = PlanHandle::new(world, answer.data["plan_id"].as_str().expect("a plan has an id"));
    go_on(&plan);
    plan
}

/// The fake server with its writing tool under checkpoints.
fn files_skill(words: &str) -> String {
    format!(
        "{}    overrides:\n      - {{tool: write_file, checkpointable: true, checkpoint_scope: file}}\n      - {{tool: fail, checkpointable: true}}\n      - {{tool: add_tool, checkpointable: true}}\n      - {{tool: die, checkpointable: true}}\n    tool_filter: {{include: [read_file, write_file, fail, add_tool, later, get_cwd, die]}}\n",
        with_fake("local/files", words),
    )
}

fn world_with_files(words: &str) -> (World, agents_e2e::Repo) {
    let world = World::new();
    let repo = world.repo_with("repo", &[("a.txt", "one\n"), ("src/b.txt", "b\n")]);
    world.register("app", &repo);
    add(&world, "files.yaml", &files_skill(words));
    (world, repo)
}

// MCP-003, MCP-004, MCP-005, MCP-007, SKILLC-007, TOOL-017, TOOL-023: a plan whose actor has a skill with an MCP server
// edits a file in the sandbox; diff and blame name the decision; the user's file is untouched until Apply.
#[test]
fn an_mcp_server_edits_the_sandbox_and_blame_names_the_decision() {
    let (world, repo) = world_with_files("");
    let write = json!({ "path": repo.file("a.txt"), "content": "two\n" });
    let script = json!({
        "skills": ["local/files"],
        "strategize": [
            {
                // In Strategize only what changes nothing is offered.
                "expect": { "tools": ["get_cwd", "read_file"] },
                "requests": [
                    tool("read", "read_file", json!({ "path": "a.txt" }), None),
                    tool("where", "fake.get_cwd", json!({}), None),
                    tool("wrong", "read_file", json!({ "path": "../../../etc/passwd" }), None),
                    tool("unfit", "read_file", json!({ "pth": "a.txt" }), None),
                    tool("none", "lsp/hover", json!({ "path": "a.txt", "line": 1 }), None),
                ],
            },
            {
                "expect": { "observations": [
                    { "call_id": "read", "result": { "text": "one\n" } },
                    { "call_id": "where", "result": { "text": "." } },
                    { "call_id": "wrong", "result": { "type": "InvalidCallError" } },
                    { "call_id": "unfit", "result": { "type": "InvalidCallError" } },
                    { "call_id": "none" },
                ] },
                "requests": [tool("early", "write_file", json!({ "path": "a.txt", "content": "x" }), None)],
            },
            {
                "expect": { "observations": [{
                    "observed": "failed", "error": "AccessDeniedError",
                    "message": "write_file: nothing is written in strategize",
                }] },
                "requests": [tool("other", "create_issue", json!({}), None)],
            },
            {
                "expect": { "observations": [{ "observed": "failed", "error": "InvalidCallError" }] },
                "requests": [scripts::decision("strategy/a", "strategy_choice", None)],
            },
            scripts::done("decided"),
        ],
        "execute": [
            { "requests": [
                scripts::decision("impl/a", "implementation_choice", Some("strategy/a")),
                tool("unbacked", "write_file", json!({ "path": "a.txt", "content": "x" }), None),
            ] },
            {
                "expect": { "observations": [{}, { "observed": "failed", "message": "write_file writes, and no decision is behind it" }] },
                "requests": [
                    tool("write", "write_file", write, Some("impl/a")),
                    tool("again", "write_file", json!({ "path": "src/new.txt", "content": "new\n" }), Some("impl/a")),
                    tool("late", "add_tool", json!({ "name": "later" }), Some("impl/a")),
                ],
            },
            {
                "expect": {
                    "files": { "a.txt": "two\n", "src/new.txt": "new\n" },
                    "observations": [
                        { "call_id": "write", "result": { "text": "wrote a.txt", "files": [{ "path": "a.txt", "kind": "modified" }] } },
                        { "call_id": "again", "result": { "files": [{ "path": "src/new.txt", "kind": "added" }] } },
                        { "call_id": "late", "result": { "text": "added" } },
                    ],
                },
                "requests": [tool("bad", "fail", json!({ "how": "text" }), Some("impl/a"))],
            },
            {
                "expect": { "observations": [{ "observed": "failed", "error": "ToolExecutionError", "message": "fail: it went wrong" }] },
                // A tool that came later is there.
                "requests": [tool("later", "later", json!({}), Some("impl/a"))],
            },
            scripts::done("edited"),
        ],
    });
    let plan = played(&world, "trusted", &script);
    plan.assert_at("execute/complete+apply_approval");
    assert_eq!(repo.text("a.txt"), "one\n");
    let diff = plan.ok("diff", &[]).text;
    assert!(diff.contains("+two") && diff.contains("src/new.txt"), "{diff}");
    plan.apply();
    assert_eq!((repo.text("a.txt"), repo.text("src/new.txt")), ("two\n".to_owned(), "new\n".to_owned()));
    let blame = world.ok(&["plan", "blame", &format!("{}:1", repo.file("a.txt").display())]).text;
    assert!(blame.contains("How about impl/a?") && blame.contains(&plan.id), "{blame}");
    world.assert_quiet();
}

/// A profile that asks about Apply only.
fn profile(world: &World, name: &str, allows_unsafe: bool, categories: &str) {
    let flags = [
        "decompose_task",
        "create_tool",
        "select_tool",
        "edit_code",
        "execute_command",
        "create_file",
        "delete_content",
        "access_network",
        "install_dependency",
        "modify_config",
    ];
    let thresholds: String = flags.iter().map(|flag| format!("{flag}: 0.0\n")).collect();
    let text = format!(
        "name: {name}\ndescription: As a test needs it\n{thresholds}approve_plan: 1.0\nrequire_sandbox: true\nrequire_checkpoints: true\nallow_unsafe_tools: {allows_unsafe}\nsafety: {{allowed_skill_categories: {categories}}}\n",
    );
    let path = file(world, &format!("{}.yaml", name.replace('/', "-")), &text);
    world.ok(&["automation-profile", "add", "--config", &path]);
}

// SKILLC-019, TOOL-016: what the profile does not allow is neither offered nor run.
#[test]
fn a_profile_says_which_categories_of_skills_may_be_used() {
    let (world, _repo) = world_with_files("");
    profile(&world, "local/narrow", false, "[edit]");
    add(&world, "names.yaml", "name: local/names\ncategory: edit\ntools: [list_directory]\n");
    // SKILLC-015: an actor that could use nothing, or names what is not there, gets no plan.
    world.scripted("local/act", "");
    for (skill, why) in [
        ("local/files", "the profile allows none of the tools"),
        ("local/gone", "there is no skill `local/gone`"),
    ] {
        let script = format!("script={}", json!({ "skills": [skill] }));
        let args = [
            "plan",
            "use",
            "--automation-profile",
            "local/narrow",
            "--arg",
            &script,
            "local/act",
            "local/app",
        ];
        let refused = world.refused(&args).text;
        assert!(refused.contains(why), "{refused}");
    }
    let script = json!({
        "skills": ["local/files", "local/names"],
        "strategize": [
            {
                "expect": { "tools": ["list_directory"] },
                "requests": [tool("read", "read_file", json!({ "path": "a.txt" }), None)],
            },
            {
                "expect": { "observations": [{ "call_id": "read", "result": { "type": "AccessDeniedError" } }] },
                "outcome": { "done": { "headline": "decided", "lines": [], "facts": null } },
            },
        ],
        "execute": [scripts::done("nothing")],
    });
    played(&world, "local/narrow", &script).assert_at("apply/applied");
    world.assert_quiet();
}

// SKILLMD-002..008: an Agent Skill is disclosed step by step; its scripts run under its rules, over the sandbox.
#[test]
fn an_agent_skill_is_disclosed_step_by_step_and_its_scripts_run_under_its_rules() {
    let world = World::new();
    let repo = world.repo_with("repo", &[("a.txt", "one\n")]);
    world.register("app", &repo);
    add(&world, "notes.yaml", &format!("name: local/notes\nagent_skills: [{}]\n", changelog()));
    let script = |script: &str, args: &[&str]| json!({ "script": script, "args": args });
    let play = json!({
        "skills": ["local/notes"],
        "strategize": [
            {
                "expect": { "agent_skills": ["changelog"] },
                "requests": [
                    tool("how", "changelog", json!({}), None),
                    tool("format", "changelog", json!({ "file": "references/format.md" }), None),
                    tool("out", "changelog", json!({ "file": "../../../e2e/main.rs" }), None),
                    tool("early", "changelog", script("scripts/add-entry.sh", &["Added", "x"]), None),
                ],
            },
            {
                "expect": { "observations": [
                    { "call_id": "how", "result": { "agent_skill": "changelog", "files": [
                        "assets/template.md", "references/format.md", "scripts/add-entry.sh", "scripts/wipe.sh"] } },
                    { "call_id": "format", "result": { "file": "references/format.md" } },
                    { "call_id": "out", "result": { "type": "InvalidCallError" } },
                    { "observed": "failed", "error": "AccessDeniedError" },
                ] },
                "requests": [scripts::decision("strategy/log", "strategy_choice", None)],
            },
            scripts::done("decided"),
        ],
        "execute": [
            { "requests": [
                scripts::decision("impl/log", "implementation_choice", Some("strategy/log")),
                tool("first", "changelog", script("scripts/add-entry.sh", &["Added", "A thing"]), Some("impl/log")),
                tool("second", "changelog", script("./scripts/add-entry.sh", &["Fixed", "Another"]), Some("impl/log")),
                tool("denied", "changelog", script("scripts/wipe.sh", &[]), Some("impl/log")),
            ] },
            {
                "expect": {
                    "files": { "CHANGELOG.md": "# Changelog\n\n## Added\n\n- A thing\n\n## Changed\n\n## Fixed\n\n- Another\n\n## Removed\n" },
                    "observations": [
                        { "observed": "decided" },
                        { "call_id": "first", "result": { "stdout": "added to Added", "files": [{ "path": "CHANGELOG.md", "kind": "added" }] } },
                        { "call_id": "second", "result": { "files": [{ "path": "CHANGELOG.md", "kind": "modified" }] } },
                        { "observed": "failed", "error": "AccessDeniedError" },
                    ],
                },
                "outcome": { "done": { "headline": "logged", "lines": [], "facts": null } },
            },
        ],
    });
    // Scripts are programs with our rights: a profile that allows no unsafe tools refuses them.
    let refused = json!({
        "skills": ["local/notes"],
        "strategize": [{ "requests": [scripts::decision("strategy/log", "strategy_choice", None)] }, scripts::done("decided")],
        "execute": [
            { "requests": [
                scripts::decision("impl/log", "implementation_choice", Some("strategy/log")),
                tool("first", "changelog", script("scripts/add-entry.sh", &["Added", "A"]), Some("impl/log")),
            ] },
            {
                "expect": { "observations": [{ "observed": "decided" }, { "observed": "failed", "error": "AccessDeniedError" }] },
                "outcome": { "done": { "headline": "refused", "lines": [], "facts": null } },
            },
        ],
    });
    let plan = played(&world, "trusted", &refused);
    plan.assert_at("execute/complete+apply_approval");
    profile(&world, "local/free", true, "[]");
    let plan = played(&world, "local/free", &play);
    plan.assert_at("apply/applied");
    // SKILLMD-006: each run of a script is a record of its own.
    let changes = Records::events(world.data(), &plan.id);
    let modified = changes.iter().filter(|(kind, _)| kind == "resource.modified").count();
    assert_eq!(modified, 2);
    assert!(repo.text("CHANGELOG.md").contains("- Another"));
    world.assert_quiet();
}

// A worker that is killed while a server writes: what was half-written is taken back, the actor is told that the call was cut
// off, nothing is done twice, and no server is left behind.
#[test]
fn a_call_that_is_cut_off_is_told_and_not_repeated() {
    let (world, repo) = world_with_files("");
    let write = |call: &str, text: &str| {
        tool(call, "write_file", json!({ "path": "a.txt", "content": text }), Some("impl/a"))
    };
    let script = json!({
        "skills": ["local/files"],
        "strategize": [{ "requests": [scripts::decision("strategy/a", "strategy_choice", None)] }, scripts::done("decided")],
        "execute": [
            { "requests": [scripts::decision("impl/a", "implementation_choice", Some("strategy/a")), write("one", "half\n")] },
            {
                "expect": {
                    "files": { "a.txt": "one\n" },
                    "observations": [{ "observed": "decided" }, { "observed": "failed", "request": 1 }],
                },
                "requests": [write("two", "whole\n")],
            },
            { "expect": { "files": { "a.txt": "whole\n" } }, "outcome": { "done": { "headline": "done", "lines": [], "facts": null } } },
        ],
    });
    world.scripted("local/act", "");
    let argument = format!("script={script}");
    // Nobody follows it, so that nobody starts another worker that would die, too.
    let args = [
        "plan",
        "use",
        "--detach",
        "--automation-profile",
        "trusted",
        "--arg",
        &argument,
        "local/act",
        "local/app",
    ];
    let answer = world.call_with(&args, &[("AGENTS_FAULT", "worker.call-returned")]);
    let plan = PlanHandle::new(&world, answer.data["plan_id"].as_str().expect("a plan has an id"));
    wait_until("the worker has begun and is gone", Duration::from_secs(120), || {
        let events = Records::events(world.data(), &plan.id);
        let begun = events.iter().filter(|(kind, _)| kind == "actor.invoked").count() > 1;
        (begun && world.workers().is_empty()).then_some(())
    });
    plan.call("execute", &[]);
    plan.assert_at("execute/complete+apply_approval");
    plan.apply();
    assert_eq!(repo.text("a.txt"), "whole\n");
    world.assert_quiet();
}

// MCP-001, MCP-004, MCP-005, MCP-007: the reference server for files, over a real plan.
#[test]
fn a_real_server_edits_files_of_the_sandbox_and_none_of_the_users() {
    let world = World::new();
    let repo = world.repo_with("repo", &[("a.txt", "one\ntwo\n"), ("src/b.txt", "b\n")]);
    world.register("app", &repo);
    let text = format!(
        "name: local/fs\nmcp_servers:\n  - name: fs\n    command: {}\n    args: ['.']\n    overrides:\n      - {{tool: edit_file, checkpointable: true}}\n      - {{tool: move_file, checkpointable: true}}\n",
        agents_e2e::tool("mcp-server-filesystem").display(),
    );
    let added = add(&world, "fs.yaml", &text);
    assert_eq!(added.data["mcp_servers"][0]["status"], "validated", "{}", added.text);
    let tools = world.ok(&["skill", "tools", "local/fs"]).data;
    let read_only: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|t| t["read_only"] == true)
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    assert!(read_only.contains(&"read_text_file") && !read_only.contains(&"edit_file"), "{read_only:?}");
    let edit = json!({ "path": repo.file("a.txt"), "edits": [{ "oldText": "two", "newText": "TWO" }] });
    let script = json!({
        "skills": ["local/fs"],
        "strategize": [
            { "requests": [
                tool("read", "read_text_file", json!({ "path": "a.txt" }), None),
                tool("out", "read_text_file", json!({ "path": "/etc/passwd" }), None),
                scripts::decision("strategy/a", "strategy_choice", None),
            ] },
            {
                "expect": { "observations": [
                    { "observed": "decided" },
                    { "call_id": "read", "result": { "text": "one\ntwo\n" } },
                    { "call_id": "out", "result": { "type": "InvalidCallError" } },
                ] },
                "outcome": { "done": { "headline": "decided", "lines": [], "facts": null } },
            },
        ],
        "execute": [
            { "requests": [
                scripts::decision("impl/a", "implementation_choice", Some("strategy/a")),
                tool("edit", "edit_file", edit, Some("impl/a")),
                tool("move", "move_file", json!({ "source": "src/b.txt", "destination": "src/c.txt" }), Some("impl/a")),
            ] },
            {
                "expect": { "files": { "a.txt": "one\nTWO\n", "src/c.txt": "b\n", "src/b.txt": null } },
                "outcome": { "done": { "headline": "edited", "lines": [], "facts": null } },
            },
        ],
    });
    let plan = played(&world, "trusted", &script);
    plan.assert_at("execute/complete+apply_approval");
    assert_eq!(repo.text("a.txt"), "one\ntwo\n");
    plan.apply();
    assert_eq!(repo.text("a.txt"), "one\nTWO\n");
    let blame = world.ok(&["plan", "blame", &format!("{}:2", repo.file("a.txt").display())]).text;
    assert!(blame.contains("How about impl/a?"), "{blame}");
    world.assert_quiet();
}

// MCP-001, MCP-011, MCP-016: a real server over HTTP.
#[test]
fn a_server_over_http_is_asked_and_a_refusal_is_told() {
    let world = World::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = world.command(agents_e2e::tool("mcp-server-everything"));
    let mut server = server
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the server listens", Duration::from_secs(60), || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(())
    });
    let text = |path: &str| {
        format!(
            "name: local/web\nmcp_servers:\n  - {{name: web, url: 'http://127.0.0.1:{port}/{path}', headers: {{X-Token: '${{TOKEN:none}}'}}}}\n"
        )
    };
    let added = add(&world, "web.yaml", &text("mcp"));
    assert_eq!(added.data["mcp_servers"][0]["status"], "validated", "{}", added.text);
    assert!(added.data["total_tools"].as_u64().unwrap() > 3);
    let shown = world.ok(&["skill", "show", "local/web"]).data;
    assert_eq!(shown["mcp_servers"][0]["transport"], "streamable-http");
    assert!(!shown["mcp_servers"][0]["prompts"].as_array().unwrap().is_empty());
    let wrong = file(&world, "web.yaml", &text("nowhere"));
    let updated = world.ok(&["skill", "add", "--config", &wrong, "--update"]).data;
    assert_eq!(updated["mcp_servers"][0]["status"], "unreachable");
    server.kill().unwrap();
    server.wait().unwrap();
    let refreshed = world.ok(&["skill", "refresh", "local/web"]).data;
    assert!(refreshed["mcp_servers"][0]["problem"].as_str().unwrap().contains("cannot be reached"));
    world.assert_quiet();
}
