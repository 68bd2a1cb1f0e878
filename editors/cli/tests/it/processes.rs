//! Several processes: workers in the background, followers, kills, signals, pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::world::{DEADLINE, Ran, World, choose_and_edit, git, until};

fn end(mut child: Child) -> Ran {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < DEADLINE, "the process does not end");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.wait_with_output().unwrap().into()
}

// Ruling 5
#[test]
fn a_detached_plan_goes_on_and_a_later_command_attaches() {
    let world = World::registered(&choose_and_edit(0.9));
    let made = world.make(&["--automation-profile", "trusted", "--detach"]);
    assert_eq!((&made["data"]["detached"], &made["exit_code"]), (&json!(true), &json!(0)));
    let plan = made["data"]["plan_id"].as_str().unwrap();
    world.wait_at(plan, "execute/complete+apply_approval");

    let detached = world.json(&["plan", "apply", "--yes", "--detach", plan]);
    assert_eq!(detached["data"]["detached"], true);
    world.wait_at(plan, "apply/applied");
    assert_eq!(world.read("a.txt"), "one\nTWO\nthree\n");
}

/// Makes a plan whose worker dies at a place, and returns when it is dead over it.
fn dead_over(world: &mut World, place: &str) -> String {
    world.env.insert("AGENTS_FAULT", place.into());
    let plan = world.plan(&["--automation-profile", "trusted", "--detach"]);
    world.env.remove("AGENTS_FAULT");
    until("the worker dies", || {
        let status = world.json(&["plan", "status", &plan]);
        status["data"]["worker_alive"] == false && status["data"]["state"] == "processing"
    });
    plan
}

// PLAN-053: nothing is lost, nothing is done twice
#[test]
fn execute_goes_on_where_a_killed_worker_stopped() {
    let mut world = World::registered(&choose_and_edit(0.9));
    for place in ["worker.edits-written", "worker.checkpoint-recorded"] {
        let plan = dead_over(&mut world, place);
        let status = world.json(&["plan", "status", &plan]);
        assert_eq!(status["data"]["progress"][1]["status"], "running", "{status:#}");
        let executed = world.json(&["plan", "execute", &plan]);
        assert_eq!(executed["data"]["attached"], true, "it was being worked on: {executed:#}");
        assert_eq!(
            (&executed["data"]["state"], &executed["data"]["awaiting"]["kind"]),
            (&json!("complete"), &json!("apply_approval"))
        );
        let tree = world.json(&["plan", "tree", &plan]);
        assert_eq!(tree["data"]["summary"]["nodes"], 3, "no decision twice: {tree:#}");
        world.json(&["plan", "cancel", &plan]);
    }
}

#[test]
fn a_follower_replaces_a_worker_that_dies_and_says_so() {
    let mut world = World::registered(&choose_and_edit(0.9));
    // Each worker dies at the second step that it commits; the next one goes on from there.
    world.env.insert("AGENTS_FAULT", "worker.step-committed#2".into());
    let made = world.make(&["--automation-profile", "trusted"]);
    assert_eq!(
        (&made["data"]["phase"], &made["data"]["state"]),
        (&json!("execute"), &json!("complete")),
        "{made:#}"
    );
    let words = "An earlier worker died; a new one goes on from the last committed step";
    let messages = made["messages"].as_array().unwrap();
    assert!(messages.iter().any(|m| m["level"] == "warn" && m["text"] == words), "{made:#}");
}

#[test]
fn an_apply_whose_worker_dies_is_finished_by_the_follower() {
    let mut world = World::registered(&choose_and_edit(0.9));
    let plan = world.plan(&["--automation-profile", "trusted"]);
    world.env.insert("AGENTS_FAULT", "apply.after-ref".into());
    let applied = world.document(&["plan", "apply", "--yes", "--detach", &plan]);
    world.env.remove("AGENTS_FAULT");
    assert_eq!(applied["exit_code"], 0);
    until("the worker dies", || world.document(&["plan", "status", &plan])["data"]["worker_alive"] == false);
    let applied = world.json(&["plan", "apply", "--yes", &plan]);
    assert_eq!(applied["data"]["state"], "applied", "{applied:#}");
    assert_eq!(git(&world.repo(), &["rev-list", "--count", "HEAD"]), "2", "one commit, not two");
    assert_eq!(git(&world.repo(), &["status", "--porcelain"]), "");
}

// CLI-189, OUT-002
#[test]
fn ctrl_c_detaches_and_the_plan_goes_on() {
    let mut world = World::registered(&choose_and_edit(0.9));
    // A worker that dies before anything happens leaves the follower with something to follow.
    world.env.insert("AGENTS_FAULT", "worker.sandbox-made".into());
    let script = format!("script={}", choose_and_edit(0.9));
    let args = ["--format", "json", "plan", "use", "local/act", "local/app", "--arg", &script];
    let child = world.command(&args).spawn().unwrap();
    world.env.remove("AGENTS_FAULT");
    until("the plan is there and worked on", || {
        let listed = world.json(&["plan", "list", "--state", "processing"]);
        listed["data"]["total"] == 1
    });
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let ran = end(child);
    let document = crate::world::document(&ran, &args);
    assert_eq!((ran.code, &document["status"]), (Some(130), &json!("cancelled")), "{document:#}");
    let plan = document["data"]["plan_id"].as_str().unwrap();
    let word = document["messages"][0]["text"].as_str().unwrap();
    assert!(word.contains("the plan goes on") && word.contains(plan), "{word}");
    let executed = world.json(&["plan", "execute", plan]);
    assert_eq!(executed["data"]["awaiting"]["kind"], "execute_approval");

    // For people: the plan is not what was cancelled.
    world.env.insert("AGENTS_FAULT", "worker.sandbox-made".into());
    let args = ["--format", "plain", "plan", "use", "local/act", "local/app", "--arg", &script];
    let child = world.command(&args).spawn().unwrap();
    world.env.remove("AGENTS_FAULT");
    until("the plan is there and worked on", || {
        let listed = world.json(&["plan", "list", "--state", "processing"]);
        listed["data"]["total"] == 1
    });
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let ran = end(child);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(130), "{said}");
    assert!(said.contains("[goes on]") && !said.to_lowercase().contains("cancelled"), "{said}");
}

#[test]
fn follow_streams_events_as_json_lines() {
    let world = World::registered(&choose_and_edit(0.9));
    let plan = world.plan(&["--automation-profile", "trusted"]);
    let ran = world.run_in("json", &["plan", "follow", "--from-start", &plan]);
    assert_eq!(ran.code, Some(0));
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["event_type"], "plan.created");
    let sequences: Vec<i64> = events.iter().map(|e| e["sequence"].as_i64().unwrap()).collect();
    assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]), "{sequences:?}");
    assert!(events.iter().all(|e| e["plan_id"] == plan.as_str()));
    assert!(events.iter().any(|e| e["event_type"] == "resource.modified"));

    let plain = world.run(&["plan", "follow", "--from-start", &plan]);
    assert!(
        plain.stdout.contains("modified a.txt") && plain.stdout.contains("The plan waits for you"),
        "{}",
        plain.stdout
    );
    let none = world.run_in("json", &["plan", "follow", "01ZZZ"]);
    assert_eq!(crate::world::document(&none, &["plan", "follow"])["error"]["code"], "NOT_FOUND");
}

#[test]
fn follow_shows_what_another_process_does() {
    let world = World::registered(&choose_and_edit(0.9));
    let plan = world.plan(&[]);
    let mut child = world.command(&["plan", "follow", "--forever", "--format", "json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Something must be seen before the other process acts, or the follower may not have started yet.
    let other = world.plan(&[]);
    let mut seen = Vec::new();
    let begin = Instant::now();
    let mut executed = false;
    while begin.elapsed() < DEADLINE {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        seen.push((event["plan_id"].as_str().unwrap_or_default().to_owned(), event["event_type"].clone()));
        if !executed {
            assert_eq!(seen[0].0, other);
            world.json(&["plan", "cancel", &plan]);
            executed = true;
        }
        if seen.contains(&(plan.clone(), json!("plan.cancelled"))) {
            break;
        }
    }
    assert!(seen.contains(&(plan, json!("plan.cancelled"))), "{seen:?}");
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(end(child).code, Some(130));
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let world = World::registered(&choose_and_edit(0.9));
    let plan = world.plan(&["--automation-profile", "trusted"]);
    for format in ["plain", "json"] {
        for args in [
            &["plan", "tree", &plan][..],
            &["plan", "list"],
            &["plan", "follow", "--from-start", &plan],
            &["--help"],
        ] {
            let mut child = world.command(&[&["--format", format], args].concat()).spawn().unwrap();
            drop(child.stdout.take());
            let ran = end(child);
            assert_eq!(ran.stderr, "", "{format} {args:?}");
            assert!(ran.code.is_some(), "{format} {args:?} was killed");
        }
    }
}

// LSPCLI-013, LSPCLI-014, LSPCLI-021, G-14
#[test]
fn the_language_server_speaks_only_the_protocol_on_stdout() {
    let world = World::new();
    let mut child = world.command(&["lsp", "serve", "--stdio"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut send = |message: Value| {
        let body = message.to_string();
        write!(stdin, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        stdin.flush().unwrap();
    };
    send(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {}, "processId": null } }),
    );
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut header = String::new();
    stdout.read_line(&mut header).unwrap();
    let length: usize = header.strip_prefix("Content-Length: ").unwrap().trim().parse().unwrap();
    stdout.read_line(&mut header).unwrap();
    let mut body = vec![0; length];
    stdout.read_exact(&mut body).unwrap();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["capabilities"]["hoverProvider"]),
        (&json!(1), &json!(true)),
        "{answer:#}"
    );
    send(json!({ "jsonrpc": "2.0", "id": 2, "method": "shutdown" }));
    send(json!({ "jsonrpc": "2.0", "method": "exit" }));
    let ran = end(child);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("CleverAgents LSP Server"), "{}", ran.stderr);

    let refused = world.run(&["lsp", "serve", "--proxy", "auto,local/x"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    assert!(refused.stderr.contains("--proxy auto"), "{}", refused.stderr);
    let refused = world.run(&["lsp", "serve", "--proxy", "local/x"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(
        refused.stderr.contains("local/x") && refused.stderr.contains("agents lsp list"),
        "{}",
        refused.stderr
    );
}
