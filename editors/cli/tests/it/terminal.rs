//! Questions at a real terminal: what yes, no, Ctrl+C and nobody there do.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use serde_json::Value;

use crate::world::{DEADLINE, World, choose_and_edit};

/// Runs the program at a terminal of its own, types when it asks, and gives its exit code with all it showed.
fn at_a_terminal(world: &World, args: &[&str], typed: &str) -> (Option<i32>, String) {
    let line: Vec<String> = std::iter::once(env!("CARGO_BIN_EXE_agents"))
        .chain(args.iter().copied())
        .map(|arg| format!("'{}'", arg.replace('\'', r"'\''")))
        .collect();
    let inner = world.command::<&str>(&[]);
    let mut command = Command::new("script");
    command.args(["-qefc", &line.join(" "), "/dev/null"]).current_dir(world.dir.path()).env_clear();
    command.envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?)))).env("TERM", "xterm");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut keys = child.stdin.take().unwrap();
    let (tell, shown) = mpsc::channel();
    let mut output = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n) = output.read(&mut bytes) {
            if n == 0 || tell.send(bytes[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    let (mut all, mut asked) = (Vec::new(), false);
    let begin = Instant::now();
    while let Ok(bytes) = shown.recv_timeout(DEADLINE) {
        all.extend(bytes);
        let text = String::from_utf8_lossy(&all).into_owned();
        if !asked && text.contains("[y/N]") {
            asked = true;
            keys.write_all(typed.as_bytes()).unwrap();
            keys.flush().unwrap();
        }
        assert!(begin.elapsed() < DEADLINE, "{text}");
    }
    let text = String::from_utf8_lossy(&all).into_owned();
    (ended(child), text)
}

fn ended(mut child: Child) -> Option<i32> {
    child.wait().unwrap().code()
}

fn executed(world: &World) -> (String, String, String) {
    let plan = world.plan(&["--automation-profile", "trusted"]);
    let tree = world.json(&["plan", "tree", &plan]);
    fn find(node: &Value) -> Option<String> {
        if node["type"] == "implementation_choice" {
            return Some(node["decision_id"].as_str()?.to_owned());
        }
        node["children"].as_array()?.iter().find_map(find)
    }
    let decision = find(&tree["data"]["tree"]).unwrap();
    let artifacts = world.json(&["plan", "artifacts", &plan]);
    let checkpoint = artifacts["data"]["checkpoints"][0]["id"].as_str().unwrap().to_owned();
    (plan, decision, checkpoint)
}

/// What must not move when the answer is no.
fn standing(world: &World, plan: &str) -> Value {
    let mut tree = world.json(&["plan", "tree", "--show-superseded", plan])["data"].clone();
    tree["at"] = world.json(&["plan", "status", plan])["data"]["state"].clone();
    tree["attempt"] = world.json(&["plan", "status", plan])["data"]["attempt"].clone();
    tree
}

// CORR-006, CKPT-001, C-03
#[test]
fn a_correction_and_a_rollback_ask_and_only_yes_goes_on() {
    let world = World::registered(&choose_and_edit(0.9));
    let (plan, decision, checkpoint) = executed(&world);
    let correct = ["plan", "correct", "--mode", "revert", "-g", "something else", &decision];
    let rollback = ["plan", "rollback", &plan, &checkpoint];
    let before = standing(&world, &plan);
    for args in [&correct[..], &rollback] {
        for (typed, code, said) in
            [("n\n", 1, "cancelled"), ("\n", 1, "cancelled"), ("\x03", 130, "cancelled")]
        {
            let (got, shown) = at_a_terminal(&world, args, typed);
            assert_eq!(got, Some(code), "{typed:?}: {shown}");
            assert!(shown.contains("[y/N]") && shown.contains(said), "{typed:?}: {shown}");
            assert_eq!(standing(&world, &plan), before, "{typed:?}");
        }
        // Nobody there.
        let ran = world.run(args);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains("--yes"), "{} {}", ran.stdout, ran.stderr);
        assert_eq!(standing(&world, &plan), before);
    }
    let (code, shown) = at_a_terminal(&world, &correct, "y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Correction applied"), "{shown}");
    assert_eq!(standing(&world, &plan)["attempt"], 2);
    let (code, shown) = at_a_terminal(&world, &rollback, "yes\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Rollback complete"), "{shown}");
    assert_eq!(world.json(&["plan", "status", &plan])["data"]["awaiting"]["kind"], "rollback");
}

// PROF-028: a wrong option is refused before anything is shown or asked
#[test]
fn an_option_that_there_is_none_of_is_refused_without_a_question() {
    let world = World::registered(&choose_and_edit(0.9));
    let (plan, decision, _) = executed(&world);
    let before = standing(&world, &plan);
    for args in [
        &["plan", "correct", "--mode", "revert", "-g", "99", &decision][..],
        &["plan", "correct", "--mode", "revert", "-g", "99", "--yes", &decision],
        &["plan", "correct", "--mode", "revert", "-g", "99", "--dry-run", &decision],
    ] {
        let (code, shown) = at_a_terminal(&world, args, "y\n");
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("there is no option 99"), "{shown}");
        assert!(!shown.contains("Would Revert") && !shown.contains("[y/N]"), "{shown}");
    }
    assert_eq!(standing(&world, &plan), before);
}

// CORR-006: nothing is taken back, so nothing is asked
#[test]
fn an_appended_correction_does_not_ask() {
    let world = World::registered(&choose_and_edit(0.9));
    let (plan, decision, _) = executed(&world);
    let args = ["plan", "correct", "--mode", "append", "-g", "one more thing", &decision];
    let (code, shown) = at_a_terminal(&world, &args, "");
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("[y/N]") && shown.contains("Append correction queued"), "{shown}");
    assert_eq!(standing(&world, &plan)["attempt"], 2);
}
