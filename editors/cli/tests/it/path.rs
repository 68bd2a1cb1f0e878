//! The whole path, in JSON, as a script would walk it.

use serde_json::{Value, json};

use crate::world::{World, choose_and_edit, failing, git};

fn texts(document: &Value) -> Vec<&str> {
    document["messages"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap()).collect()
}

// PLAN-037, PLAN-041, PLAN-050, PLAN-051, APP-001 to APP-003, APP-012, PLAN-064, PLAN-103, DEC-027, PLAN-096
#[test]
fn from_use_to_applied() {
    let world = World::registered(&choose_and_edit(0.9));
    let made = world.make(&[]);
    assert_eq!((&made["command"], &made["status"]), (&json!("plan use"), &json!("ok")), "{made:#}");
    let data = &made["data"];
    let plan = data["plan_id"].as_str().unwrap();
    assert_eq!(
        (&data["phase"], &data["state"], &data["attempt"]),
        (&json!("strategize"), &json!("complete"), &json!(1))
    );
    assert_eq!(
        data["automation"],
        json!({ "profile": "supervised", "source": "default", "read_only": false })
    );
    assert_eq!(data["awaiting"]["kind"], "execute_approval");
    assert_eq!(data["actors"]["strategy"], "test/scripted");
    assert_eq!(data["summary"]["headline"], "decided");
    assert_eq!(data["next_steps"][0], format!("agents plan execute {plan}"));
    assert_eq!(
        texts(&made),
        [
            "Plan created -- Strategize is complete",
            "The plan waits for you: Strategize is done. Start Execute?"
        ]
    );
    assert_eq!(made["messages"][1]["detail"], format!("agents plan execute {plan}"));

    let executed = world.json(&["plan", "execute", plan]);
    let data = &executed["data"];
    assert_eq!((&data["phase"], &data["state"]), (&json!("execute"), &json!("complete")), "{executed:#}");
    assert_eq!(data["awaiting"]["kind"], "apply_approval");
    let labels = ["Collect context", "Run tools", "Build changeset", "Validate"];
    assert_eq!(data["progress"], json!(labels.map(|label| json!({ "label": label, "status": "done" }))));
    assert_eq!((&data["attached"], &data["sandbox"]["strategy"]), (&json!(false), &json!("git_worktree")));
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n", "only apply changes the checkout");

    let tree = world.json(&["plan", "tree", plan]);
    let strategy = &tree["data"]["tree"]["children"][0];
    assert_eq!((&strategy["type"], &strategy["confidence"]), (&json!("strategy_choice"), &json!(0.9)));
    let diff = world.json(&["plan", "diff", plan]);
    assert_eq!(diff["data"]["diff_summary"]["net_change"], 0);
    let patch = diff["data"]["files"][0]["patch"].as_str().unwrap();
    world.write("p.patch", patch);
    git(&world.repo(), &["apply", "--check", "../p.patch"]);
    let blame = world.json(&["plan", "blame", "repo/a.txt:2"]);
    assert_eq!(blame["data"]["segments"][0]["strategy"]["decision_id"], strategy["decision_id"]);
    let explained =
        world.json(&["plan", "explain", strategy["decision_id"].as_str().unwrap(), "--show-context"]);
    assert_eq!(explained["data"]["context_snapshot"]["document"], json!({ "seen": ["a.txt"] }));
    let artifacts = world.json(&["plan", "artifacts", plan]);
    assert_eq!(artifacts["data"]["summary"]["edits"], 1);
    assert!(artifacts["data"]["checkpoints"].as_array().unwrap().len() >= 2);
    assert_eq!(world.json(&["plan", "errors", plan])["data"]["error_message"], Value::Null);

    let applied = world.json(&["plan", "apply", "--yes", plan]);
    let data = &applied["data"];
    assert_eq!(data["artifacts"], 1, "{applied:#}");
    assert_eq!(data["changes"], json!({ "insertions": 1, "deletions": 1 }));
    assert_eq!(
        data["sandbox_cleanup"],
        json!({
            "worktree": "removed", "branch": "merged to main", "checkpoint": "archived",
        })
    );
    assert_eq!(data["lifecycle"]["state"], "applied");
    assert_eq!(texts(&applied), ["Changes applied"]);
    assert_eq!(world.read("a.txt"), "one\nTWO\nthree\n");
    let message = git(&world.repo(), &["log", "-1", "--format=%B"]);
    assert!(message.contains(plan), "{message}");
    assert_eq!(data["commits"][0], git(&world.repo(), &["rev-parse", "HEAD"]));

    let status = world.json(&["plan", "show", plan]);
    assert_eq!(status["command"], "plan status");
    assert_eq!(status["data"]["progress"][2], json!({ "step": "Apply", "status": "committed" }));
    assert_eq!(texts(&status), ["Plan completed successfully"]);
    let listed = world.json(&["plan", "list", "--phase", "apply", "--state", "applied"]);
    assert_eq!((&listed["data"]["total"], &listed["data"]["filters"]["phase"]), (&json!(1), &json!("apply")));
    assert_eq!(texts(&listed), ["1 plan listed"]);
}

// PLAN-066, PLAN-080 to PLAN-083, DEC-015, CLI-026
#[test]
fn a_decision_that_waits_is_answered_by_number_and_the_plan_goes_on() {
    let world = World::registered(&choose_and_edit(0.4));
    let plan = world.plan(&["--automation-profile", "cautious"]);
    assert_eq!(world.at(&plan), "strategize/queued+confirm_strategize");
    let asked = world.json(&["plan", "execute", &plan]);
    assert_eq!(asked["data"]["awaiting"]["kind"], "decision", "{asked:#}");
    let decision = asked["data"]["awaiting"]["decision_id"].as_str().unwrap();
    let waits = asked["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&waits["level"], &waits["text"]),
        (&json!("warn"), &json!("The plan waits for you: How about strategy/x?"))
    );

    let refused = world.refused(&["plan", "prompt", &plan, "7"]);
    assert_eq!(refused["error"]["code"], "VALIDATION_FAILED");
    let prefix = &plan[..12];
    let answered = world.json(&["plan", "prompt", prefix, "--decision", decision, "2"]);
    let data = &answered["data"];
    assert_eq!(data["guidance_added"]["option"], "Leave alone", "{answered:#}");
    assert_eq!(data["guidance_added"]["state_transition"], "awaiting_input -> processing");
    assert_eq!(data["decision_created"]["type"], "user_intervention");
    assert_eq!(
        (&data["phase"], &data["awaiting"]["kind"]),
        (&json!("execute"), &json!("apply_approval")),
        "what a person chose needs no more confidence"
    );
    let tree = world.json(&["plan", "tree", &plan, "--show-superseded"]);
    assert_eq!(tree["data"]["summary"]["superseded"], 1);
}

// PLAN-065, PLAN-090, OUT-003
#[test]
fn a_plan_that_fails_ends_the_command_with_its_error() {
    let world = World::registered(&failing());
    let plan = world.plan(&[]);
    let failed = world.refused(&["plan", "execute", &plan]);
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["number"]),
        (&json!("PLAN_ERROR"), &json!(521)),
        "{failed:#}"
    );
    assert_eq!(failed["error"]["message"], "the tool broke");
    assert_eq!(failed["data"]["plan_id"], plan.as_str());
    assert_eq!(
        (&failed["data"]["state"], &failed["data"]["error"]["category"]),
        (&json!("errored"), &json!("tool"))
    );
    let suggestions = failed["error"]["suggestions"].as_array().unwrap();
    assert_eq!(suggestions[0], "buy a new one");
    assert!(suggestions.contains(&json!(format!("agents plan execute {plan}"))));

    let status = world.refused(&["plan", "status", &plan]);
    assert_eq!(status["data"]["progress"][2], json!({ "step": "Apply", "status": "skipped" }));
    let errors = world.json(&["plan", "errors", &plan]);
    assert_eq!(errors["data"]["error_message"], "the tool broke");
    let actions: Vec<&Value> =
        errors["data"]["recovery_hints"].as_array().unwrap().iter().map(|h| &h["action"]).collect();
    assert!(actions.contains(&&json!("retry")), "{actions:?}");
}

// PLAN-070 to PLAN-072, PLAN-057
#[test]
fn a_cancelled_plan_keeps_its_work_and_cannot_go_on() {
    let world = World::registered(&choose_and_edit(0.9));
    let plan = world.plan(&["--automation-profile", "trusted"]);
    assert_eq!(world.at(&plan), "execute/complete+apply_approval");
    let cancelled = world.json(&["plan", "cancel", &plan, "--reason", "not now"]);
    assert_eq!(cancelled["data"]["sandbox"]["status"], "preserved");
    assert_eq!(
        (&cancelled["data"]["state"], &cancelled["data"]["reason"]),
        (&json!("cancelled"), &json!("not now"))
    );
    let refused = world.refused(&["plan", "execute", &plan]);
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["number"]),
        (&json!("INVALID_STATE"), &json!(409))
    );
    let refused = world.refused(&["plan", "apply", "--yes", &plan]);
    assert_eq!(refused["error"]["code"], "INVALID_STATE");
}

// OUT-006, OUT-007, CLI-027, CLI-028, CLI-029
#[test]
fn apply_without_yes_and_without_anybody_changes_nothing() {
    let world = World::registered(&choose_and_edit(0.9));
    let plan = world.plan(&["--automation-profile", "trusted"]);
    for format in ["json", "plain"] {
        let ran = world.run_in(format, &["plan", "apply", &plan]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.starts_with(&format!("Apply changes for plan {plan}? [y/N]: ")), "{}", ran.stderr);
        assert!(ran.stdout.contains("--yes"), "{}", ran.stdout);
    }
    let cancelled = world.document(&["plan", "apply", &plan]);
    assert_eq!(
        (&cancelled["status"], &cancelled["data"]["changes"]["insertions"]),
        (&json!("cancelled"), &json!(1))
    );
    assert_eq!(world.at(&plan), "execute/complete+apply_approval");
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");

    // The question comes after the diff, and `y` through a pipe is an answer.
    let mut child = world.command(&["--format", "plain", "plan", "apply", &plan, "--no-commit"]);
    let mut child = child.stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"y\n").unwrap();
    let ran = crate::world::Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(ran.stdout.contains("+TWO") && ran.stdout.contains("Changes applied"), "{}", ran.stdout);
    assert_eq!(world.read("a.txt"), "one\nTWO\nthree\n");
    assert_eq!(git(&world.repo(), &["log", "--format=%s"]), "start", "no commit was made");
}

// APP-004 in spirit: what is in the way is refused before anything changes
#[test]
fn a_touched_file_with_newer_edits_is_named_and_nothing_changes() {
    let world = World::registered(&choose_and_edit(0.9));
    let plan = world.plan(&["--automation-profile", "trusted"]);
    std::fs::write(world.repo().join("a.txt"), "one\ntwo\nthree\nmine\n").unwrap();
    let refused = world.refused(&["plan", "apply", "--yes", &plan]);
    assert_eq!(refused["error"]["code"], "INVALID_STATE", "{refused:#}");
    assert!(refused["error"]["detail"].as_str().unwrap().contains("a.txt"));
    assert_eq!(refused["data"]["sandbox"]["worktree"], "preserved");
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\nmine\n");
    assert_eq!(world.at(&plan), "execute/complete+apply_approval");
}
