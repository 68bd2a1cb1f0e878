//! Start, crash, hang, restart, give up, shut down: nobody waits forever and nothing is left behind.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agents_domain::ports::language_servers::{DiagnosticsMode, LanguageServers, ServerState, WorkspaceSpec};
use agents_lsp_runtime::{Runtime, Timing};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::harness::{
    LONG, TIMING, World, ask, failure, found, is_running, problem, script, wait_for, wait_until_gone,
};

fn pid(value: &Value) -> Pid {
    Pid::from_raw(i32::try_from(value.as_i64().unwrap()).unwrap())
}

// LSP-004, LSP-006, LSP-025, LSP-026
#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_started_on_first_use_with_its_arguments_environment_options_and_root() {
    let mut world = World::new(script(json!({"log_env": ["FAKE_A", "FAKE_B", "PATH"]})));
    world.define(|definition| {
        definition.args.push("--extra".into());
        definition.env.insert("FAKE_A".into(), "plain".into());
        definition.env.insert("FAKE_B".into(), "<${PATH}>".into());
        definition.init_options = json!({"path": "${PATH}", "n": 1});
    });
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(workspace.servers()[0].state, ServerState::Idle);
    assert!(world.starts().is_empty());
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    let status = workspace.servers().remove(0);
    assert_eq!(
        (status.state, status.restarts, status.info.as_deref()),
        (ServerState::Running, 0, Some("fake 1.0"))
    );
    let start = &world.starts()[0];
    let path = std::env::var("PATH").unwrap();
    assert_eq!(start["args"][1], "--extra");
    assert_eq!(
        (&start["env"]["FAKE_A"], &start["env"]["FAKE_B"]),
        (&json!("plain"), &json!(format!("<{path}>")))
    );
    assert!(start["env"]["PATH"].is_string(), "the environment is inherited");
    let root = world.root().canonicalize().unwrap();
    assert_eq!(start["cwd"], root.to_str().unwrap());
    let initialize = &world.got("initialize")[0]["params"];
    assert_eq!(initialize["rootUri"], format!("file://{}", root.display()));
    assert_eq!(initialize["initializationOptions"], json!({"path": path, "n": 1}));
    assert_eq!(initialize["processId"], std::process::id());
    assert_eq!(
        initialize["capabilities"]["general"]["positionEncodings"],
        json!(["utf-8", "utf-16", "utf-32"])
    );
}

// LSP-028, LSP-029
#[tokio::test(flavor = "multi_thread")]
async fn workspaces_over_one_root_share_a_process_until_the_last_one_closes() {
    let world = World::new(script(json!({})));
    world.write("a.py", "bad_x\n");
    let (first, second) = (world.open().await, world.open().await);
    let both = tokio::join!(ask(&first, "a.py"), ask(&second, "a.py"));
    assert!(both.0.diagnostics.is_some() && both.1.diagnostics.is_some());
    assert_eq!(world.starts().len(), 1);
    first.close().await;
    first.close().await;
    drop(first);
    assert!(is_running(&world.starts()[0]["pid"]));
    assert_eq!(found(&second, "a.py").await.len(), 1);
    second.close().await;
    wait_until_gone(&world.starts()[0]["pid"]);
    assert_eq!((world.got("shutdown").len(), world.got("exit").len()), (1, 1));
    assert!(problem(&second, "a.py").await.contains("was closed"));
    assert_eq!(world.starts().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_differ_and_roots_that_differ_get_processes_of_their_own() {
    let world = World::new(script(json!({})));
    world.write("a.py", "bad_x\n");
    let mut other = world.definition.clone();
    other.workspace_settings = json!({"x": 1});
    let (first, second) = (world.open().await, world.open_with(vec![other]).await);
    tokio::join!(found(&first, "a.py"), found(&second, "a.py"));
    assert_eq!(world.starts().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_questions_at_once_start_one_process() {
    let world = World::new(script(json!({"faults": [{"on": "initialize", "then": {"delay": 200}}]})));
    let paths: Vec<String> = (0..50).map(|at| format!("m{at}.py")).collect();
    paths.iter().for_each(|path| world.write(path, "bad_x\n"));
    let workspace = world.open().await;
    let answers = workspace.diagnostics(&paths).await;
    assert!(answers.iter().all(|(_, found)| found[0].diagnostics.as_ref().map(Vec::len) == Some(1)));
    assert_eq!(world.starts().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ignores_shutdown_is_killed_with_its_children() {
    let world = World::new(script(json!({"stubborn": true, "child": true})));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    let begun = Instant::now();
    workspace.close().await;
    assert!(begun.elapsed() < Duration::from_secs(10));
    let start = world.starts().remove(0);
    wait_until_gone(&start["pid"]);
    wait_until_gone(&start["child"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_last_reference_kills_at_once() {
    let world = World::new(script(json!({"stubborn": true, "child": true})));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    drop(workspace);
    let start = world.starts().remove(0);
    wait_until_gone(&start["pid"]);
    wait_until_gone(&start["child"]);
}

// LSP-030
#[tokio::test(flavor = "multi_thread")]
async fn after_kill_9_the_next_question_finds_a_server_with_the_same_documents() {
    let world = World::new(script(json!({})));
    for path in ["a.py", "b.py"] {
        world.write(path, "bad_x\n");
    }
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    world.write("a.py", "bad_x bad_y\n");
    assert_eq!(found(&workspace, "a.py").await.len(), 2);
    let first = world.starts()[0]["pid"].clone();
    kill(pid(&first), Signal::SIGKILL).unwrap();
    wait_until_gone(&first);
    assert_eq!(found(&workspace, "b.py").await.len(), 1);
    assert_eq!(workspace.servers()[0].restarts, 1);
    let log = world.log();
    let second = log.iter().rposition(|entry| !entry["start"].is_null()).unwrap();
    let replayed: Vec<&Value> = log[second..]
        .iter()
        .filter(|entry| entry["in"]["method"] == "textDocument/didOpen")
        .map(|entry| &entry["in"]["params"]["textDocument"])
        .collect();
    assert_eq!((&replayed[0]["version"], &replayed[0]["text"]), (&json!(2), &json!("bad_x bad_y\n")));
    assert_eq!(found(&workspace, "a.py").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_the_middle_of_many_questions_answers_them_all_after_its_restart() {
    for (mode, on) in [("pull", "textDocument/diagnostic"), ("push", "textDocument/didOpen")] {
        let world = World::new(script(
            json!({"diagnostics": mode, "faults": [{"on": on, "nth": 40, "starts": 1, "then": "crash"}]}),
        ));
        let paths: Vec<String> = (0..120).map(|at| format!("m{at}.py")).collect();
        paths.iter().for_each(|path| world.write(path, "bad_x\n"));
        let workspace = world.open().await;
        for (path, found) in workspace.diagnostics(&paths).await {
            assert_eq!(
                found[0].diagnostics.as_ref().map(Vec::len),
                Some(1),
                "{mode} {path}: {:?}",
                found[0].problem
            );
        }
        assert_eq!((workspace.servers()[0].restarts, world.starts().len()), (1, 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_kills_the_server_is_named_and_not_shown_again_and_the_others_are_answered() {
    let mut world = World::new(script(
        json!({"faults": [{"on": "textDocument/didOpen", "file": "/poison.py", "then": "crash"}]}),
    ));
    world.define(|definition| definition.health_check.max_restarts = 5);
    let mut paths: Vec<String> = (0..30).map(|at| format!("m{at}.py")).collect();
    paths.push("poison.py".into());
    paths.iter().for_each(|path| world.write(path, "bad_x\n"));
    let workspace = world.open().await;
    let answers = workspace.diagnostics(&paths).await;
    for (path, found) in &answers[..30] {
        assert_eq!(found[0].diagnostics.as_ref().map(Vec::len), Some(1), "{path}: {:?}", found[0].problem);
    }
    let blamed = answers[30].1[0].problem.as_ref().unwrap();
    assert!(
        blamed.contains("went away over this file") && blamed.contains("crashing on textDocument/didOpen"),
        "{blamed}"
    );
    let starts = world.starts().len();
    assert!(problem(&workspace, "poison.py").await.contains("ended when it was shown this text before"));
    assert_eq!(found(&workspace, "m0.py").await.len(), 1);
    assert!(world.starts().len() <= starts + 1, "the file was not shown again");
}

// LSP-031
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_at_each_start_is_given_up_with_what_it_printed() {
    for (restarts, on_failure, starts, words) in [
        (3, true, 4, "after 3 restarts"),
        (0, true, 1, "and is not restarted"),
        (3, false, 1, "and is not restarted"),
    ] {
        let mut world = World::new(script(json!({"faults": [{"on": "start", "then": "crash"}]})));
        world.define(|definition| {
            definition.health_check.max_restarts = restarts;
            definition.health_check.restart_on_failure = on_failure;
        });
        world.write("a.py", "bad_x\n");
        let workspace = world.open().await;
        let problem = problem(&workspace, "a.py").await;
        assert!(
            problem.contains(words)
                && problem.contains("exit status 101")
                && problem.contains("crashing on start"),
            "{problem}"
        );
        assert_eq!(failure(&workspace), problem);
        assert_eq!(
            (world.starts().len(), workspace.servers()[0].restarts),
            (starts, if on_failure { restarts } else { 0 })
        );
        assert_eq!(ask(&workspace, "a.py").await.problem.unwrap(), problem, "a failed server stays failed");
        assert_eq!(world.starts().len(), starts);
    }
}

// LSP-010
#[tokio::test(flavor = "multi_thread")]
async fn the_fourth_death_in_a_session_is_the_last() {
    let world = World::new(script(json!({})));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    for restarts in 0..=3 {
        assert_eq!(found(&workspace, "a.py").await.len(), 1);
        assert_eq!(workspace.servers()[0].restarts, restarts);
        let last = world.starts().pop().unwrap()["pid"].clone();
        kill(pid(&last), Signal::SIGKILL).unwrap();
        wait_until_gone(&last);
    }
    assert!(problem(&workspace, "a.py").await.contains("after 3 restarts: ended with signal: 9"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_initialize_is_given_up_in_time_and_without_a_second_try() {
    for fault in [json!("hang"), json!("freeze"), json!({"error": [-32603, "license expired"]})] {
        let mut world = World::new(script(json!({"faults": [{"on": "initialize", "then": fault}]})));
        world.start_timeout = Duration::from_millis(if fault.is_string() { 400 } else { 30_000 });
        world.write("a.py", "bad_x\n");
        let begun = Instant::now();
        let workspace = world.open().await;
        let problem = problem(&workspace, "a.py").await;
        let words =
            if fault.is_string() { "did not answer `initialize` within 0.4 s" } else { "license expired" };
        assert!(problem.contains(words), "{problem}");
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(world.starts().len(), 1);
        wait_until_gone(&world.starts()[0]["pid"]);
    }
}

// LSP-010
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_ended_and_its_successor_answers() {
    let mut world = World::new(script(
        json!({"faults": [{"on": "textDocument/diagnostic", "nth": 5, "starts": 1, "then": "freeze"}]}),
    ));
    world.request_timeout = Duration::from_millis(700);
    let paths: Vec<String> = (0..12).map(|at| format!("m{at}.py")).collect();
    paths.iter().for_each(|path| world.write(path, "bad_x\n"));
    let workspace = world.open().await;
    for (path, found) in workspace.diagnostics(&paths).await {
        assert_eq!(found[0].diagnostics.as_ref().map(Vec::len), Some(1), "{path}: {:?}", found[0].problem);
    }
    assert_eq!(workspace.servers()[0].restarts, 1);
    wait_until_gone(&world.starts()[0]["pid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_each_time_ends_failed_in_bounded_time() {
    let mut world = World::new(script(json!({"faults": [{"on": "textDocument/didOpen", "then": "freeze"}]})));
    world.request_timeout = Duration::from_millis(300);
    world.runtime = Runtime::with_timing(Timing { probe: Duration::from_millis(200), ..TIMING });
    let paths: Vec<String> = (0..100).map(|at| format!("m{at}.py")).collect();
    paths.iter().for_each(|path| world.write(path, "bad_x\n"));
    let workspace = world.open().await;
    let begun = Instant::now();
    let answers = workspace.diagnostics(&paths).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(answers.iter().all(|(_, found)| found[0].diagnostics.is_none() && found[0].problem.is_some()));
    assert!(failure(&workspace).contains("showed no sign of life"));
    world.starts().iter().for_each(|start| wait_until_gone(&start["pid"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_froze_while_nobody_asked_is_found_by_the_probe() {
    let mut world =
        World::new(script(json!({"faults": [{"on": "$/agents/probe", "starts": 1, "then": "freeze"}]})));
    world.runtime = Runtime::with_timing(Timing {
        probe: Duration::from_millis(200),
        probe_interval: Some(Duration::from_millis(50)),
        ..TIMING
    });
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    wait_until_gone(&world.starts()[0]["pid"]);
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    assert_eq!(workspace.servers()[0].restarts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_reading_does_not_block_the_asker() {
    let mut world =
        World::new(script(json!({"faults": [{"on": "textDocument/didOpen", "nth": 1, "then": "freeze"}]})));
    world.request_timeout = Duration::from_millis(500);
    world.runtime = Runtime::with_timing(Timing { probe: Duration::from_millis(200), ..TIMING });
    world.define(|definition| definition.health_check.max_restarts = 0);
    let paths: Vec<String> = (0..64).map(|at| format!("m{at}.py")).collect();
    paths.iter().for_each(|path| world.write(path, "# bad_x\n".repeat(100_000)));
    let workspace = world.open().await;
    let begun = Instant::now();
    let answers = workspace.diagnostics(&paths).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(answers.iter().all(|(_, found)| found[0].diagnostics.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_while_the_server_starts_does_not_wait_for_it() {
    let world = World::new(script(json!({"faults": [{"on": "initialize", "then": "hang"}]})));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    let begun = Instant::now();
    let (answer, ()) = tokio::join!(ask(&workspace, "a.py"), async {
        tokio::task::spawn_blocking({
            let log = world.folder.path().to_owned();
            move || wait_for(|| (!crate::harness::log(&log, "fake").is_empty()).then_some(()))
        })
        .await
        .unwrap();
        workspace.close().await;
    });
    assert!(answer.problem.unwrap().contains("was closed"));
    assert!(begun.elapsed() < LONG);
    wait_until_gone(&world.starts()[0]["pid"]);
}

/// Started by the next test in a process of its own.
#[test]
#[ignore = "holds a server until it is killed; run by the test of it"]
fn holds_a_server_until_it_is_killed() {
    let Some(root) = std::env::var_os("AGENTS_TEST_HOLD") else { return };
    let definition = std::fs::read_to_string(std::path::Path::new(&root).join("definition.json")).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let spec = WorkspaceSpec {
            root: root.into(),
            servers: vec![serde_json::from_str(&definition).unwrap()],
            request_timeout: LONG,
            start_timeout: LONG,
        };
        let workspace = Runtime::new().open(spec).await;
        workspace.diagnostics(&["a.py".to_owned()]).await;
        std::future::pending::<()>().await;
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn no_server_outlives_us_even_when_we_are_killed() {
    let world = World::new(script(json!({"stubborn": true, "child": true})));
    world.write("a.py", "bad_x\n");
    world.write("definition.json", serde_json::to_string(&world.definition).unwrap());
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lifecycle::holds_a_server_until_it_is_killed", "--ignored"])
        .env("AGENTS_TEST_HOLD", world.root())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| (!world.got("textDocument/diagnostic").is_empty()).then_some(()));
    let start = world.starts().remove(0);
    assert!(is_running(&start["pid"]) && is_running(&start["child"]));
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until_gone(&start["pid"]);
    wait_until_gone(&start["child"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_reports_what_a_server_really_offers() {
    let world = World::new(script(
        json!({"diagnostics": "pull_dynamic", "stderr_bytes": 1000, "capabilities": {"hoverProvider": true, "renameProvider": false}}),
    ));
    let report = world.runtime.check(&world.definition, Some(&world.root()), LONG).await;
    assert_eq!(report.problem, None);
    assert_eq!((report.name.as_deref(), report.version.as_deref()), (Some("fake"), Some("1.0")));
    assert_eq!(
        serde_json::to_value(&report.capabilities).unwrap(),
        json!(["diagnostics", "hover", "code_actions"])
    );
    assert!(
        report.advertised.contains(&"hoverProvider".to_owned())
            && !report.advertised.contains(&"renameProvider".to_owned())
    );
    assert_eq!(
        (report.encoding.as_deref(), report.diagnostics),
        (Some("utf-16"), Some(DiagnosticsMode::PullDynamic))
    );
    assert!(report.start_ms.is_some() && report.stderr_tail.contains("eeee"));
    assert!(!cfg!(target_os = "linux") || report.resident_bytes.unwrap() > 100_000);
    wait_until_gone(&world.starts()[0]["pid"]);

    for (mode, expected) in [("push", DiagnosticsMode::Push), ("pull", DiagnosticsMode::Pull)] {
        let world = World::new(script(json!({ "diagnostics": mode })));
        assert_eq!(
            world.runtime.check(&world.definition, Some(&world.root()), LONG).await.diagnostics,
            Some(expected)
        );
    }
    let mut world = World::new(script(json!({})));
    world.define(|definition| definition.env = [("X".to_owned(), "${AGENTS_NOT_SET}".to_owned())].into());
    let report = world.runtime.check(&world.definition, Some(&world.root()), LONG).await;
    assert!(report.problem.unwrap().contains("`env.X` uses `${AGENTS_NOT_SET}`, which is not set"));
}

// LSP-035
#[tokio::test(flavor = "multi_thread")]
async fn other_processes_see_what_runs_and_end_what_was_removed_for_good() {
    let mut world = World::new(script(json!({})));
    let notes = world.folder.path().join("notes");
    world.runtime = Runtime::with_timing(TIMING).noting_in(notes.clone());
    world.write("a.py", "x = bad_one\n");
    let workspace = world.open().await;
    assert!(world.runtime.running().is_empty());
    found(&workspace, "a.py").await;
    // A runtime of another process knows the folder only.
    let other = Runtime::new().noting_in(notes.clone());
    let running = other.running();
    assert_eq!(running.len(), 1, "{running:?}");
    let pid = world.starts()[0]["pid"].clone();
    assert_eq!((running[0].server.to_string().as_str(), json!(running[0].pid)), ("local/fake", pid.clone()));
    assert_eq!((running[0].owner, running[0].restarts), (std::process::id(), 0));
    assert!(running[0].resident_bytes.is_some_and(|bytes| bytes > 0));
    std::fs::write(notes.join("1.json"), "{}").unwrap();
    assert_eq!(other.end(&"local/another".parse().unwrap()), 0);
    assert_eq!(other.end(&world.definition.name), 1);
    wait_until_gone(&pid);
    assert!(problem(&workspace, "a.py").await.contains("was removed from the registry"));
    assert_eq!(world.starts().len(), 1, "it is not started again");
    assert!(other.running().is_empty());
    workspace.close().await;
    assert_eq!(std::fs::read_dir(&notes).unwrap().count(), 0, "no note is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_computes_and_hears_nothing_is_late_but_not_ended() {
    let faults = json!([{ "on": "textDocument/diagnostic", "nth": 1, "then": { "compute": 4000 } }]);
    let mut world = World::new(script(json!({ "faults": faults })));
    world.request_timeout = Duration::from_millis(300);
    world.write("a.py", "x = bad_one\n");
    let workspace = world.open().await;
    let late = problem(&workspace, "a.py").await;
    assert!(late.contains("did not answer"), "{late}");
    let begun = Instant::now();
    while ask(&workspace, "a.py").await.diagnostics.is_none() {
        assert!(begun.elapsed() < LONG);
    }
    assert_eq!(world.starts().len(), 1, "it was not restarted");
    workspace.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_computes_for_ever_is_ended_in_the_end() {
    let faults = json!([{ "on": "textDocument/diagnostic", "starts": 1, "then": { "compute": 3_600_000 } }]);
    let mut world = World::new(script(json!({ "faults": faults })));
    world.runtime = Runtime::with_timing(Timing {
        deaf: Duration::from_millis(100),
        probe: Duration::from_millis(200),
        ..TIMING
    });
    world.request_timeout = Duration::from_millis(300);
    world.write("a.py", "x = bad_one\n");
    let workspace = world.open().await;
    let begun = Instant::now();
    while ask(&workspace, "a.py").await.diagnostics.is_none() {
        assert!(begun.elapsed() < LONG);
    }
    assert!(world.starts().len() > 1, "it was restarted");
    workspace.close().await;
}
