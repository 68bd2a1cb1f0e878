//! Language servers that are kept warm for the next editor, over the death of any process that has to do with them.

use std::time::Duration;

use agents_e2e::{Editor, Repo, World, agents, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(60);

/// A world with the pool on, and a repository with a fake server for it.
fn pooled() -> (World, Repo) {
    let world = World::new();
    let repo = world.repo_with("repo", &[("a.py", "alpha = 1\n")]);
    let hover = json!({ "contents": { "kind": "markdown", "value": "a number" } });
    let script = json!({
        "diagnostics": "none", "capabilities": { "hoverProvider": true },
        "faults": [{ "on": "textDocument/hover", "then": { "answer": hover } }], "child": true,
    });
    world.fake("kept", &script);
    world.ok(&["config", "set", "lsp.pool.enabled", "true"]);
    (world, repo)
}

/// An editor that has its answer from the server.
fn editor(world: &World, repo: &Repo) -> Editor {
    let mut command = world.command(agents());
    command.args(["lsp", "serve", "--proxy", "auto"]);
    let mut editor = Editor::start(&mut command);
    editor
        .initialize(repo.path(), &json!({ "textDocument": { "hover": { "contentFormat": ["markdown"] } } }));
    let uri = format!("file://{}/a.py", repo.path().display());
    editor.open(&uri, "python", "alpha = 1\n");
    let at = json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 1 } });
    wait_until("a hover", LONG, || {
        let hover = editor.request("textDocument/hover", &at);
        (hover["contents"]["value"] == "a number").then_some(())
    });
    editor
}

/// The processes of the fake server, without their children.
fn servers(world: &World) -> Vec<Pid> {
    let mine = world.processes().into_iter().filter(|(_, line)| line.contains("kept.script.json"));
    mine.map(|(pid, _)| pid).collect()
}

fn pool(world: &World) -> Option<Pid> {
    world.processes().into_iter().find(|(_, line)| line.contains("lsp pool --serve")).map(|(pid, _)| pid)
}

/// The one server that waits, once it does.
fn waiting(world: &World) -> Pid {
    wait_until("a server waits", LONG, || {
        let warm = world.ok(&["lsp", "pool"]).data["warm"].as_array().cloned().unwrap_or_default();
        let pid = warm.first()?["pid"].as_i64()?;
        Some(Pid::from_raw(i32::try_from(pid).expect("a process id")))
    })
}

#[test]
fn the_server_that_waits_is_seen_taken_over_by_the_next_editor_and_outlives_the_pool() {
    let (world, repo) = pooled();
    assert_eq!(editor(&world, &repo).shutdown(), Some(0));
    let warm = waiting(&world);
    assert_eq!(servers(&world), [warm], "the one before has ended");
    let listed = world.ok(&["lsp", "list"]).data["lsp_servers"][0].clone();
    assert_eq!((&listed["warm"], &listed["running"]), (&json!(1), &json!(0)));
    let checks = world.call(&["diagnostics"]).data["checks"].clone();
    let named = |check: &&Value| check["check"] == "Warm local/kept";
    assert!(checks.as_array().expect("checks").iter().any(|check| named(&check)), "{checks:#}");

    let next = editor(&world, &repo);
    assert_eq!(servers(&world), [warm], "the same process");
    let listed = world.ok(&["lsp", "list"]).data["lsp_servers"][0].clone();
    assert_eq!((&listed["warm"], &listed["running"]), (&json!(0), &json!(1)));
    kill(pool(&world).expect("the pool runs"), Signal::SIGKILL).expect("it is ours");
    wait_until("the pool is gone", LONG, || pool(&world).is_none().then_some(()));
    assert_eq!(servers(&world), [warm], "what was handed over goes on");
    assert_eq!(next.shutdown(), Some(0));
    wait_until("its server ends with it", LONG, || servers(&world).is_empty().then_some(()));
    world.assert_quiet();
}

#[test]
fn killing_the_editors_process_or_the_pool_leaves_no_server_behind() {
    let (world, repo) = pooled();
    let first = editor(&world, &repo);
    let used = servers(&world);
    kill(first.pid(), Signal::SIGKILL).expect("it is ours");
    let warm = waiting(&world);
    wait_until("the used one is gone", LONG, || (!servers(&world).contains(&used[0])).then_some(()));
    // As if it had left: another one waits. It goes with the pool.
    let served = pool(&world).expect("the pool runs");
    kill(served, Signal::SIGKILL).expect("it is ours");
    wait_until("no server is left", LONG, || servers(&world).is_empty().then_some(()));
    drop(first);
    world.assert_quiet();
    // The socket it left behind holds nobody up.
    let again = editor(&world, &repo);
    assert!(!servers(&world).contains(&warm));
    kill(again.pid(), Signal::SIGKILL).expect("it is ours");
    drop(again);
    waiting(&world);
    assert_ne!(pool(&world), Some(served));
    // One that was taken over by an editor that is then killed ends with it, too.
    let taker = editor(&world, &repo);
    kill(taker.pid(), Signal::SIGKILL).expect("it is ours");
    drop(taker);
    waiting(&world);
    world.ok(&["lsp", "remove", "--yes", "local/kept"]);
    wait_until("a removed server does not wait", LONG, || servers(&world).is_empty().then_some(()));
    world.ok(&["lsp", "pool", "--stop"]);
    world.assert_quiet();
}
