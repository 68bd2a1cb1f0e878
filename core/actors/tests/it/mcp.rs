//! The client of MCP servers against a server whose behaviour is chosen: tests/fake-mcp/server.py.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents_actors::mcp::Mcp;
use agents_domain::ports::mcp::{McpConnection, McpFailure, McpPlace, McpRoot, McpServers};
use agents_domain::skill::McpServer;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::{Value, json};

const WITHIN: Duration = Duration::from_secs(20);

fn script() -> String {
    format!("{}/../../tests/fake-mcp/server.py", env!("CARGO_MANIFEST_DIR"))
}

/// What a skill's file would say of the fake server with these behaviours.
fn server(words: &[&str]) -> McpServer {
    let mut args = vec![script()];
    args.extend(words.iter().map(|word| (*word).to_owned()));
    serde_json::from_value(json!({
        "name": "fake", "transport": "stdio", "command": "python3", "args": args,
        "env": { "FAKE_TOKEN": "${FAKE_TOKEN}", "PLAIN": "plain" },
    }))
    .unwrap()
}

fn environment(name: &str) -> Option<String> {
    match name {
        "FAKE_TOKEN" => Some("s3cr3t-value".to_owned()),
        "PATH" | "HOME" => std::env::var(name).ok(),
        _ => None,
    }
}

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/a.txt"), "one\n").unwrap();
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn place(&self) -> McpPlace {
        let root =
            McpRoot { name: "local/app".to_owned(), original: "/home/user/app".into(), sandbox: self.root() };
        McpPlace { skill_folder: None, roots: vec![root] }
    }

    async fn connect(&self, words: &[&str]) -> Arc<dyn McpConnection> {
        Mcp::new(environment).connect(&server(words), self.place(), WITHIN).await.unwrap()
    }

    async fn refused(&self, server: &McpServer, within: Duration) -> String {
        match Mcp::new(environment).connect(server, self.place(), within).await {
            Ok(_) => panic!("it was connected to"),
            Err(failure) => failure.message,
        }
    }
}

async fn call(at: &Arc<dyn McpConnection>, tool: &str, arguments: Value) -> Result<Value, McpFailure> {
    at.call(tool, arguments, WITHIN).await.map(|answer| {
        assert!(!answer.is_error, "{answer:?}");
        answer.result
    })
}

async fn text(at: &Arc<dyn McpConnection>, tool: &str, arguments: Value) -> String {
    call(at, tool, arguments).await.unwrap()["text"].as_str().unwrap().to_owned()
}

/// Waits for something, at most a while.
async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + WITHIN;
    while !is() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let zombie = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
    kill(Pid::from_raw(pid), None).is_ok() && !zombie
}

fn pids(text: &str) -> Vec<i32> {
    text.split(' ').map(|pid| pid.parse().unwrap()).collect()
}

// MCP-001, MCP-016, MCP-018
#[tokio::test]
async fn everything_a_server_offers_is_found_page_by_page() {
    let scene = Scene::new();
    let whole = scene.connect(&[]).await.offers();
    let names: Vec<&str> = whole.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.len(), 11);
    assert_eq!(whole.tools[0].input["required"], json!(["path"]));
    assert_eq!(whole.tools[0].hints.read_only, Some(true));
    assert_eq!((whole.server.as_str(), whole.resources[0].uri.as_str()), ("fake 1.2", "memo://one"));
    assert_eq!(whole.prompts[0].arguments, ["who"]);
    assert_eq!(scene.connect(&["page"]).await.offers().tools, whole.tools);
    // One that speaks only an older protocol is agreed with.
    let old = scene.connect(&["old"]).await.offers();
    assert_eq!((old.protocol.as_str(), old.tools.len()), ("2024-11-05", 11));
    assert_eq!(scene.connect(&["no-tools"]).await.offers().tools, []);
    let memo = scene.connect(&[]).await.read("memo://one", WITHIN).await.unwrap();
    assert_eq!(memo[0]["text"], "remember");
}

#[tokio::test]
async fn awkward_servers_are_put_up_with() {
    let scene = Scene::new();
    // Lines that are no messages, and a flood on standard error that would block it.
    let noisy = scene.connect(&["noise"]).await;
    assert_eq!(text(&noisy, "read_file", json!({ "path": "src/a.txt" })).await, "one\n");
    let printed = noisy.printed();
    assert!(printed.ends_with("\nready") && printed.len() < 400, "{printed}");
    // A list that never ends, and entries that are no tools.
    assert!(scene.connect(&["loop"]).await.offers().tools.len() >= 11);
    let odd = scene.connect(&["odd"]).await.offers().tools;
    assert_eq!(odd.len(), 12);
    assert_eq!(odd[11].input, json!({ "type": "object" }));
}

// MCP-014: why a server cannot be used is told with what it printed, and without secrets.
#[tokio::test]
async fn a_server_that_cannot_be_used_is_told_of_with_what_would_help() {
    let scene = Scene::new();
    let told = scene.refused(&server(&["exit"]), WITHIN).await;
    assert!(told.contains("could not be spoken to") && told.contains("exit status 3"), "{told}");
    assert!(told.contains("the token is wrong: ********"), "{told}");
    let told = scene.refused(&server(&["silent"]), Duration::from_millis(300)).await;
    assert!(told.contains("did not answer within"), "{told}");
    let mut missing = server(&[]);
    missing.command = Some("no-such-program".to_owned());
    let told = scene.refused(&missing, WITHIN).await;
    assert!(told.contains("`no-such-program`") && told.contains("not on PATH"), "{told}");
    let mut unset = server(&[]);
    unset.env.insert("KEY".to_owned(), "${NOT_SET_ANYWHERE}".to_owned());
    let told = scene.refused(&unset, WITHIN).await;
    assert!(told.contains("`env.KEY`") && told.contains("NOT_SET_ANYWHERE, which is not set"), "{told}");
    let mut old = server(&[]);
    (old.transport, old.command) = (agents_domain::skill::McpTransport::Sse, None);
    assert!(scene.refused(&old, WITHIN).await.contains("use `transport: streamable-http`"));
}

// MCP-004, MCP-005: arguments are checked before anything is sent; the server sees the sandbox, we see the user's paths.
#[tokio::test]
async fn a_call_is_checked_then_its_paths_are_those_of_the_sandbox() {
    let scene = Scene::new();
    let log = scene.root().join("log");
    let at = scene.connect(&[&format!("log={}", log.display())]).await;
    for path in ["src/a.txt", "/home/user/app/src/a.txt", "./src/../src/a.txt"] {
        assert_eq!(text(&at, "read_file", json!({ "path": path })).await, "one\n", "{path}");
    }
    let said = text(
        &at,
        "write_file",
        json!({ "path": "/home/user/app/b.txt", "content": "/home/user/app/b.txt x" }),
    )
    .await;
    assert_eq!(said, "wrote b.txt");
    // Contents stay as they are.
    assert_eq!(std::fs::read_to_string(scene.root().join("b.txt")).unwrap(), "/home/user/app/b.txt x");
    assert_eq!(text(&at, "get_cwd", json!({})).await, ".");

    let sent = || std::fs::read_to_string(&log).unwrap().matches("tools/call").count();
    let before = sent();
    for (tool, arguments, why) in [
        ("read_file", json!({}), "\"path\" is a required property"),
        ("read_file", json!({ "path": 3 }), "at `path`"),
        ("read_file", json!({ "path": "../../etc/passwd" }), "leads out of the files of `local/app`"),
        ("write_file", json!({ "path": "/etc/x", "content": "" }), "leads out"),
        ("nothing", json!({}), "has no tool `nothing` any more"),
    ] {
        let failure = call(&at, tool, arguments).await.unwrap_err();
        assert!(failure.message.contains(why) && failure.not_sent, "{tool}: {failure:?}");
    }
    assert_eq!(sent(), before);
}

// MCP-006
#[tokio::test]
async fn a_tool_that_fails_says_why() {
    let scene = Scene::new();
    let at = scene.connect(&[]).await;
    for (how, expected) in
        [("text", "it went wrong"), ("nothing", "unknown error"), ("malformed", "unknown error")]
    {
        let answer = at.call("fail", json!({ "how": how }), WITHIN).await.unwrap();
        assert!(answer.is_error, "{how}");
        assert_eq!(answer.result, expected, "{how}");
    }
    // A top-level `error` is no failure; one of the protocol is.
    assert!(!at.call("fail", json!({ "how": "top" }), WITHIN).await.unwrap().is_error);
    let thrown = at.call("fail", json!({ "how": "throw" }), WITHIN).await.unwrap_err();
    assert_eq!((thrown.message.as_str(), thrown.not_sent), ("thrown", false));
}

// MCP-003
#[tokio::test]
async fn a_tool_that_comes_later_is_there_without_a_restart() {
    let scene = Scene::new();
    let at = scene.connect(&[]).await;
    text(&at, "add_tool", json!({ "name": "later" })).await;
    until("the new list", || at.changes() == 1).await;
    assert_eq!(at.offers().tools.last().unwrap().name, "later");
    assert_eq!(text(&at, "later", json!({})).await, "called later");
}

// MCP-002, MCP-015
#[tokio::test]
async fn a_server_that_dies_is_brought_back_at_the_next_call() {
    let scene = Scene::new();
    let at = scene.connect(&[]).await;
    let failure = call(&at, "die", json!({})).await.unwrap_err();
    assert!(failure.message.contains("ended during the call") && !failure.not_sent, "{failure:?}");
    assert_eq!(text(&at, "read_file", json!({ "path": "src/a.txt" })).await, "one\n");
    // A call that only looks is made again when the server died at it.
    assert_eq!(text(&at, "get_and_die_once", json!({ "path": "mark" })).await, "alive");
}

// MCP-004: a time-out and a dropped call are told to the server, and the connection goes on.
#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let scene = Scene::new();
    let log = scene.root().join("log");
    let at = scene.connect(&[&format!("log={}", log.display())]).await;
    let late = at.call("sleep", json!({ "seconds": 600 }), Duration::from_millis(200)).await.unwrap_err();
    assert!(late.message.contains("did not answer within") && !late.not_sent, "{late:?}");
    let cancelled =
        || std::fs::read_to_string(&log).unwrap_or_default().matches("notifications/cancelled").count();
    until("the first cancel", || cancelled() == 1).await;
    let calls = || std::fs::read_to_string(&log).unwrap_or_default().matches("tools/call").count();
    {
        let long = at.call("sleep", json!({ "seconds": 600 }), WITHIN);
        tokio::pin!(long);
        let deadline = Instant::now() + WITHIN;
        while calls() < 2 {
            assert!(Instant::now() < deadline);
            let _ = tokio::time::timeout(Duration::from_millis(5), &mut long).await;
        }
    }
    until("the second cancel", || cancelled() == 2).await;
    assert_eq!(text(&at, "read_file", json!({ "path": "src/a.txt" })).await, "one\n");
}

// MCP-017: variables reach the server, and nobody else; of our environment it gets what programs need.
#[tokio::test]
async fn secrets_reach_the_server_and_are_masked_in_what_it_says() {
    let scene = Scene::new();
    let at = scene.connect(&[]).await;
    assert_eq!(text(&at, "get_env", json!({ "name": "FAKE_TOKEN" })).await, "********");
    assert_eq!(text(&at, "get_env", json!({ "name": "PLAIN" })).await, "plain");
    assert_eq!(text(&at, "get_env", json!({ "name": "CARGO_MANIFEST_DIR" })).await, "unset");
    assert_eq!(text(&at, "get_env", json!({ "name": "CLEVERAGENTS_SANDBOX" })).await, ".");
    assert_eq!(text(&at, "get_roots", json!({})).await, "asked");
}

// MCP-008: neither a server that does not want to leave nor what it started is left behind.
#[tokio::test]
async fn a_server_ends_with_all_it_started() {
    let scene = Scene::new();
    for words in [&[][..], &["stay"][..]] {
        let at = scene.connect(words).await;
        let started = pids(&text(&at, "get_pids", json!({})).await);
        assert!(started.iter().all(|pid| alive(*pid)));
        at.close().await;
        until("the end of the closed server", || !started.iter().any(|pid| alive(*pid))).await;
    }
    let at = scene.connect(&["stay"]).await;
    let started = pids(&text(&at, "get_pids", json!({})).await);
    drop(at);
    until("the end of the dropped server", || !started.iter().any(|pid| alive(*pid))).await;
}

/// What the next test runs in a process of its own, which it kills.
#[test]
#[ignore = "run by `a_server_ends_when_we_are_killed`"]
fn hold_a_server() {
    let Ok(file) = std::env::var("HOLD_SERVER_PIDS") else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let scene = Scene::new();
        let at = scene.connect(&["stay"]).await;
        let pids = text(&at, "get_pids", json!({})).await;
        std::fs::write(format!("{file}.new"), pids).unwrap();
        std::fs::rename(format!("{file}.new"), file).unwrap();
        std::future::pending::<()>().await;
    });
}

// MCP-008: kill -9 leaves no orphan.
#[tokio::test]
async fn a_server_ends_when_we_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let mut holder = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "mcp::hold_a_server"])
        .env("HOLD_SERVER_PIDS", &file)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the server's start", || Path::new(&file).exists()).await;
    let started = pids(&std::fs::read_to_string(&file).unwrap());
    assert!(started.iter().all(|pid| alive(*pid)));
    holder.kill().unwrap();
    holder.wait().unwrap();
    until("the end of the orphans", || !started.iter().any(|pid| alive(*pid))).await;
}

// MCP-013 and the variables of a file
#[tokio::test]
async fn arguments_of_a_server_name_the_sandbox() {
    let scene = Scene::new();
    let mut named = server(&["log=${CLEVERAGENTS_SANDBOX}/log"]);
    named.env.insert("WHERE".to_owned(), "/home/user/app/src".to_owned());
    let at = Mcp::new(environment).connect(&named, scene.place(), WITHIN).await.unwrap();
    assert_eq!(text(&at, "get_env", json!({ "name": "WHERE" })).await, "src");
    assert!(scene.root().join("log").exists());
}
