//! Automation profiles as people write, use, change and remove them, and what their gates and guards do.

use serde_json::{Value, json};

use crate::world::{World, choose_and_edit, decision, done, edit};

/// A profile that asks for nothing, with lines replaced and more added.
fn profile(name: &str, changed: &[(&str, &str)], more: &str) -> String {
    let mut text = format!("name: {name}\ndescription: A test\n");
    for flag in [
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
        "approve_plan",
    ] {
        let value = changed.iter().find(|(key, _)| *key == flag).map_or("0.0", |(_, value)| value);
        text += &format!("{flag}: {value}\n");
    }
    text + "require_sandbox: true\nrequire_checkpoints: true\nallow_unsafe_tools: false\n" + more
}

fn add(world: &World, text: &str) -> Value {
    world.write("profile.yaml", text);
    world.json(&["automation-profile", "add", "--update", "--config", "profile.yaml"])
}

fn profile_of(made: &Value) -> (&str, &str) {
    let automation = &made["data"]["automation"];
    (automation["profile"].as_str().unwrap(), automation["source"].as_str().unwrap())
}

// PROF-004, PROF-018 to PROF-022
#[test]
fn profiles_are_registered_listed_shown_and_removed() {
    let world = World::new();
    world.write(
        "profile.yaml",
        &profile("local/careful", &[("select_tool", "1.0"), ("edit_code", "0.6")], ""),
    );
    let added = world.json(&["automation-profile", "add", "--config", "profile.yaml"]);
    let data = &added["data"];
    assert_eq!((&data["name"], &data["thresholds"]["edit_code"]), (&json!("local/careful"), &json!(0.6)));
    assert_eq!(data["thresholds"].as_object().unwrap().len(), 11);
    assert_eq!(
        data["flags"],
        json!({ "require_sandbox": true, "require_checkpoints": true, "allow_unsafe_tools": false })
    );
    assert_eq!(added["messages"][0]["text"], "Profile registered");
    let again = world.refused(&["automation-profile", "add", "--config", "profile.yaml"]);
    assert_eq!(again["error"]["code"], "ALREADY_EXISTS");
    let suggested = "agents automation-profile add --update --config profile.yaml";
    assert_eq!(again["error"]["suggestions"][0], suggested);
    world.write("broken.yaml", &profile("local/broken", &[("edit_code", "2")], ""));
    let broken = world.refused(&["automation-profile", "add", "--config", "broken.yaml"]);
    assert!(broken["error"].to_string().contains("broken.yaml:6:12"), "{broken:#}");

    let listed = world.json(&["automation-profile", "list"]);
    assert_eq!(listed["data"]["summary"], json!({ "built_in": 8, "custom": 1, "total": 9 }));
    assert_eq!(listed["messages"][0]["text"], "9 profiles listed");
    let last = &listed["data"]["profiles"][8];
    assert_eq!((&last["name"], &last["source"]), (&json!("local/careful"), &json!("custom")));
    assert_eq!(last["sandbox"], true);
    let own = world.json(&["automation-profile", "list", "^local/"]);
    assert_eq!(own["data"]["summary"], json!({ "built_in": 0, "custom": 1, "total": 1 }));
    let shown = world.json(&["automation-profile", "show", "trusted"]);
    assert_eq!(
        shown["data"]["self_repair"],
        json!({ "create_file": 0.0, "delete_content": 1.0, "access_network": 1.0, "modify_config": 0.0,
            "approve_plan": 1.0 })
    );
    assert_eq!(shown["data"]["source"], "built-in");
    let unknown = world.refused(&["automation-profile", "show", "trustd"]);
    assert_eq!(unknown["error"]["code"], "NOT_FOUND");
    assert_eq!(unknown["error"]["suggestions"][0], "did you mean `trusted`?");

    let built_in = world.refused(&["automation-profile", "remove", "--yes", "auto"]);
    assert!(built_in["error"]["message"].as_str().unwrap().contains("neither replaced nor removed"));
    let declined = world.run_in("json", &["automation-profile", "remove", "local/careful"]);
    assert_eq!(declined.code, Some(1));
    assert!(declined.stderr.starts_with("Remove automation profile local/careful? [y/N]: "));
    let removed = world.json(&["automation-profile", "remove", "-y", "local/careful"]);
    assert_eq!(removed["data"]["name"], "local/careful");
    assert_eq!(world.json(&["automation-profile", "list"])["data"]["summary"]["custom"], 0);
}

// PROF-022, PROF-024, C-18: a plan keeps the profile it was made with.
#[test]
fn a_plan_keeps_its_profile_when_it_is_changed_and_removed() {
    let world = World::registered(&choose_and_edit(0.9));
    add(&world, &profile("local/own", &[("create_tool", "1.0"), ("select_tool", "1.0")], ""));
    let made = world.make(&["--automation-profile", "local/own"]);
    assert_eq!(profile_of(&made), ("local/own", "CLI flag"));
    let plan = made["data"]["plan_id"].as_str().unwrap();
    assert_eq!(world.at(plan), "strategize/complete+execute_approval");
    // From now on it would apply by itself.
    add(&world, &profile("local/own", &[], ""));
    world.json(&["plan", "execute", plan]);
    assert_eq!(world.at(plan), "execute/complete+apply_approval");
    world.json(&["automation-profile", "remove", "--yes", "local/own"]);
    world.json(&["plan", "apply", "--yes", plan]);
    assert_eq!(world.at(plan), "apply/applied");
    let refused = world.make(&["--automation-profile", "local/own"]);
    assert_eq!(refused["error"]["code"], "NOT_FOUND", "{refused:#}");
}

// PROF-022, PROF-023, PROF-040, C-63
#[test]
fn flag_then_action_then_project_then_configuration() {
    let world = World::registered(&choose_and_edit(0.9));
    let of = |more: &[&str]| {
        let made = world.make(&[&["--detach"], more].concat());
        let (profile, source) = profile_of(&made);
        (profile.to_owned(), source.to_owned(), made)
    };
    let is = |got: &(String, String, Value), profile: &str, source: &str| {
        assert_eq!((got.0.as_str(), got.1.as_str()), (profile, source), "{:#}", got.2);
    };
    is(&of(&[]), "supervised", "default");
    world.json(&["config", "set", "core.automation-profile", "manual"]);
    is(&of(&[]), "manual", "global");
    world.json(&["config", "set", "--project", "local/app", "core.automation-profile", "review"]);
    is(&of(&[]), "review", "project");
    world.json(&["project", "create", "local/other", "--resource", "local/repo"]);
    world.json(&["config", "set", "--project", "local/other", "core.automation-profile", "supervised"]);
    let both = of(&["local/other"]);
    is(&both, "review+supervised", "project (strictest)");
    assert_eq!(both.2["messages"].to_string().matches("different automation profiles").count(), 1);
    is(&of(&["--automation-profile", "manual"]), "manual", "CLI flag");

    add(&world, &profile("local/mine", &[("decompose_task", "1.0")], ""));
    let action = crate::world::ACTION.replace("local/act", "local/with") + "automation_profile: local/mine\n";
    world.write("with.yaml", &action);
    world.json(&["action", "create", "--config", "with.yaml"]);
    let script = format!("script={}", choose_and_edit(0.9));
    let with = ["plan", "use", "local/with", "local/app", "--detach", "--arg", &script];
    assert_eq!(profile_of(&world.json(&with)), ("local/mine", "action"));
    let removed = world.json(&["automation-profile", "remove", "-y", "local/mine"]);
    assert_eq!(removed["data"]["fall_back"], json!([{ "type": "action", "name": "local/with" }]));
    let fallen = world.json(&with);
    assert_eq!(profile_of(&fallen), ("review", "project"));
    assert!(fallen["messages"].to_string().contains("`local/mine`"), "{fallen:#}");
}

// GUARD-002, PROF-003: both sides of a threshold, by what the actor recorded.
#[test]
fn cautious_asks_below_its_threshold_and_goes_on_from_it() {
    for (confidence, place) in
        [(0.59, "strategize/processing+decision"), (0.6, "strategize/complete+execute_approval")]
    {
        let mut script = choose_and_edit(confidence);
        script["execute"] = json!([]);
        let world = World::registered(&script);
        add(&world, &profile("local/c", &[("edit_code", "0.6"), ("create_tool", "1.0")], ""));
        let plan = world.plan(&["--automation-profile", "local/c"]);
        assert_eq!(world.at(&plan), place);
    }
}

fn awaiting(world: &World, plan: &str) -> Value {
    world.document(&["plan", "status", plan])["data"]["awaiting"].clone()
}

/// One choice in Strategize, then edits of `a.txt` in one step, in this order.
fn edits(calls: &[(&str, u32, &str)]) -> Value {
    let mut requests = vec![decision("impl/x", "implementation_choice", Some("strategy/x"), 0.9)];
    requests.extend(calls.iter().map(|(call, line, text)| edit(call, "impl/x", "a.txt", *line, text)));
    json!({
        "strategize": [
            { "requests": [decision("strategy/x", "strategy_choice", None, 0.9)] },
            { "outcome": done("decided") },
        ],
        "execute": [{ "requests": requests }, { "outcome": done("did it") }],
    })
}

// GUARD-003, GUARD-004: a call of a denylisted tool waits for a person, as a decision of the plan.
#[test]
fn a_denylisted_tool_runs_only_when_a_person_says_so() {
    let world = World::registered(&edits(&[("1", 1, "TWO\n")]));
    let denied = "guards: {tool_denylist: [builtin/apply-edits]}\n";
    add(&world, &profile("local/denied", &[("select_tool", "1.0")], denied));
    let made = || {
        let plan = world.plan(&["--automation-profile", "local/denied"]);
        assert_eq!(world.at(&plan), "execute/processing+decision");
        plan
    };
    let plan = made();
    let asked = awaiting(&world, &plan);
    assert_eq!((&asked["flag"], &asked["threshold"]), (&json!("tool_denylist"), &Value::Null));
    assert_eq!(asked["options"], json!(["Run it", "Do not run it"]));
    assert!(
        asked["question"]
            .as_str()
            .unwrap()
            .contains("PLAN: `builtin/apply-edits` is on the profile's denylist")
    );
    let guard = world.json(&["plan", "guard", &plan]);
    assert_eq!(guard["data"]["tools"][0]["outcome"], "asks");
    assert!(guard["data"]["next"][0].as_str().unwrap().starts_with("now: May `builtin/apply-edits` run?"));
    world.json(&["plan", "prompt", &plan, "Run it"]);
    assert_eq!(world.at(&plan), "execute/complete+apply_approval");
    let diff = world.json(&["plan", "diff", &plan]);
    assert_eq!(diff["data"]["diff_summary"]["files_changed"], 1);
    let tree = world.json(&["plan", "tree", &plan]).to_string();
    assert!(tree.contains("May `builtin/apply-edits` run?"), "the answer is on record: {tree}");

    let plan = made();
    world.json(&["plan", "prompt", &plan, "2"]);
    assert_eq!(world.at(&plan), "execute/complete+apply_approval");
    let diff = world.json(&["plan", "diff", &plan]);
    assert_eq!(diff["data"]["diff_summary"]["files_changed"], 0, "the call was not made");
}

// PROF-011, PROF-014: what is blocked is not asked about.
#[test]
fn a_tool_of_a_category_that_is_not_allowed_is_blocked() {
    let mut script = edits(&[("1", 1, "TWO\n")]);
    script["execute"][1]["expect"] = json!({ "observations": [{ "observed": "decided" }, { "observed": "failed",
        "message": "PLAN: `builtin/apply-edits` is of category `edit`; the profile allows test (allowed_skill_categories)" }] });
    let world = World::registered(&script);
    add(&world, &profile("local/tests", &[("select_tool", "1.0")], "allowed_skill_categories: [test]\n"));
    let refused = world.make(&["--automation-profile", "local/tests"]);
    assert_eq!(refused["error"]["code"], "VALIDATION_FAILED", "{refused:#}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("automation policy"), "{refused:#}");
}

// PROF-014: each step of Execute is asked about, whatever the thresholds say.
#[test]
fn required_human_approval_asks_for_each_step() {
    let world = World::registered(&edits(&[("1", 1, "TWO\n")]));
    add(&world, &profile("local/h", &[("select_tool", "1.0")], "require_human_approval: true\n"));
    let plan = world.plan(&["--automation-profile", "local/h"]);
    assert_eq!(awaiting(&world, &plan)["flag"], "require_human_approval");
    world.json(&["plan", "prompt", &plan, "Fix it"]);
    assert!(
        awaiting(&world, &plan)["question"].as_str().unwrap().starts_with("May `builtin/apply-edits` run?")
    );
    world.json(&["plan", "prompt", &plan, "Run it"]);
    assert_eq!(world.at(&plan), "execute/complete+apply_approval");
}

// GUARD-014, T50: a limit that is reached asks, and a person's word extends it.
#[test]
fn a_budget_that_is_used_up_is_asked_about_and_extended() {
    let world = World::registered(&edits(&[("1", 0, "ONE\n"), ("2", 1, "TWO\n"), ("3", 2, "THREE\n")]));
    let guards = "guards: {max_tool_calls_per_step: 1}\n";
    add(&world, &profile("local/one", &[("select_tool", "1.0")], guards));
    let plan = world.plan(&["--automation-profile", "local/one"]);
    assert_eq!(world.at(&plan), "execute/processing+budget");
    let question = awaiting(&world, &plan)["question"].clone();
    assert_eq!(
        question,
        "the limit of 1 tool call in a step (max_tool_calls_per_step, PLAN) is used up. Go on?"
    );
    // Words alone spend nothing.
    world.json(&["plan", "prompt", &plan, "be careful"]);
    assert_eq!(world.at(&plan), "execute/processing+budget");
    world.json(&["plan", "prompt", &plan, "continue"]);
    assert_eq!(world.at(&plan), "execute/processing+budget", "as much again, then it asks again");
    let budgets = world.json(&["plan", "guard", &plan])["data"]["budgets"].clone();
    let of_step = budgets.as_array().unwrap().iter().find(|b| b["measure"] == "step_calls").unwrap();
    assert_eq!(
        (&of_step["used"], &of_step["limit"], &of_step["extended"]),
        (&json!(2.0), &json!(2.0), &json!(true))
    );
    world.json(&["plan", "execute", &plan]);
    assert_eq!(world.at(&plan), "execute/complete+apply_approval");
    let patch = world.json(&["plan", "diff", &plan])["data"]["diff_summary"]["insertions"].clone();
    assert_eq!(patch, 3, "each call was made once");
}

// GUARD-005, GUARD-014, C-58
#[test]
fn money_is_counted_warned_of_and_asked_about() {
    let script = json!({
        "strategize": [{ "cost": { "usd": 0.45, "tokens": 900 } }, { "outcome": done("decided") }],
        "execute": [{ "cost": { "usd": 0.1 } }, { "outcome": done("did it") }],
    });
    let world = World::registered(&script);
    let limits = "max_cost_per_plan: 0.5\nguards: {max_total_cost: 0.9}\n";
    add(&world, &profile("local/poor", &[("select_tool", "1.0")], limits));
    let plan = world.plan(&["--automation-profile", "local/poor"]);
    assert_eq!(world.at(&plan), "execute/processing+budget");
    let asked = awaiting(&world, &plan)["question"].as_str().unwrap().to_owned();
    assert!(asked.contains("0.5 USD for the plan (max_cost_per_plan, PLAN)"), "{asked}");
    let cost = world.json(&["plan", "status", &plan])["data"]["cost"].clone();
    assert_eq!((&cost["cost_so_far"], &cost["tokens_used"]), (&json!("$0.5500"), &json!(900)));
    let followed = world.run_in("json", &["plan", "follow", "--from-start", &plan]).stdout;
    assert_eq!(followed.matches("\"budget.warning\"").count(), 1, "{followed}");
    assert_eq!(followed.matches("\"budget.exceeded\"").count(), 1, "{followed}");
    world.json(&["plan", "prompt", &plan, "continue"]);
    assert_eq!(world.at(&plan), "execute/complete+apply_approval");
}

// T28, T29, PLAN-005, PLAN-006, GUARD-018, C-22
#[test]
fn a_strategy_that_is_too_tight_is_decided_again_up_to_the_cap() {
    let choices = |x: f64| {
        json!([
            { "requests": [decision("strategy/x", "strategy_choice", None, x),
                decision("strategy/y", "strategy_choice", None, 0.9)] },
            { "outcome": done("decided") },
        ])
    };
    let mut again = choices(0.8);
    let told = "x cannot be kept\nDecided again: How about strategy/x? It was: Fix it";
    again[0]["expect"] = json!({ "guidance": [told] });
    let script = json!({
        "strategize": choices(0.9), "again": again,
        "execute": [{ "outcome": { "too_tight": { "reason": "x cannot be kept", "decisions": ["strategy/x"] } } }],
    });
    let world = World::registered(&script);
    let plan = world.plan(&["--automation-profile", "full-auto"]);
    assert_eq!(
        world.at(&plan),
        "execute/processing+strategy_revision",
        "{:#}",
        world.json(&["plan", "errors", &plan])
    );
    let status = world.json(&["plan", "status", &plan]);
    assert_eq!(status["data"]["attempt"], 4);
    let guard = world.json(&["plan", "guard", &plan]);
    assert_eq!(guard["data"]["reversions"], json!({ "used": 3, "limit": 3 }));
    // What does not hang on the tight decision is kept; the other was decided anew each time.
    let tree = world.json(&["plan", "tree", "--show-superseded", &plan]).to_string();
    assert_eq!(tree.matches("\"question\":\"How about strategy/y?").count(), 1, "{tree}");
    assert_eq!(tree.matches("\"question\":\"How about strategy/x?").count(), 4, "{tree}");
    let errors = world.json(&["plan", "errors", &plan]);
    let outcomes: Vec<&str> = errors["data"]["failures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["reverted", "reverted", "reverted", "asked"]);
    assert_eq!(errors["data"]["error_category"], "strategy");
    // A person's word goes beyond the cap and is not counted.
    world.json(&["plan", "prompt", &plan, "revise"]);
    assert_eq!(world.json(&["plan", "status", &plan])["data"]["attempt"], 5);
}

// T12, T23, T24, T31, C-59, GUARD-015, GUARD-020, PLAN-090, PLAN-092
#[test]
fn what_fails_is_retried_restored_kept_and_told_to_the_next_plan() {
    let fail = json!({ "message": "the oracle is busy", "category": "network", "transient": true, "hints": ["wait"] });
    let script = json!({ "strategize": [{ "outcome": done("decided") }], "execute": [{ "fail": fail }] });
    let world = World::registered(&script);
    world.json(&["config", "set", "plan.tool.retry-backoff", "none"]);
    world.json(&["config", "set", "plan.tool.max-retries", "2"]);
    add(&world, &profile("local/r", &[("select_tool", "1.0")], "max_retries_per_step: 1\n"));
    let made = world.make(&["--automation-profile", "local/r"]);
    let plan = made["data"]["plan_id"].as_str().unwrap();
    assert_eq!(world.at(plan), "execute/errored");
    let errors = world.json(&["plan", "errors", plan]);
    let data = &errors["data"];
    let outcomes: Vec<&str> =
        data["failures"].as_array().unwrap().iter().map(|f| f["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["retried", "retried", "restored", "failed"]);
    assert_eq!((&data["error_category"], &data["max_retries"]), (&json!("network"), &json!(1)));
    let retry = &data["recovery_hints"][0];
    assert_eq!(retry["action"], "retry");
    assert_eq!(retry["cli_command"], format!("agents plan execute {plan}"));
    assert_eq!(data["patterns"], json!([]));

    // The next plan is told, and decides less surely what failed.
    let second = json!({
        "strategize": [
            { "expect": { "known_failures": [{ "count": 4, "shape": { "category": "network" } }] } },
            { "outcome": done("decided") },
        ],
        "execute": [{ "fail": fail }],
    });
    world.write("script.json", &second.to_string());
    let next = world.make(&["--automation-profile", "local/r"]);
    let next = next["data"]["plan_id"].as_str().unwrap();
    assert_eq!(world.at(next), "execute/errored");
    let patterns = world.json(&["plan", "errors", next])["data"]["patterns"].clone();
    assert_eq!((&patterns[0]["count"], &patterns[0]["plans"]), (&json!(8), &json!(2)));
}

// T13, T25: below the threshold a person says whether to retry or restore.
#[test]
fn manual_profiles_ask_before_a_retry_and_before_a_restore() {
    let fail =
        json!({ "message": "the oracle is busy", "category": "network", "transient": true, "hints": [] });
    let script = json!({ "strategize": [{ "outcome": done("decided") }], "execute": [{ "fail": fail }] });
    let world = World::registered(&script);
    world.json(&["config", "set", "plan.tool.retry-backoff", "none"]);
    world.json(&["config", "set", "plan.tool.max-retries", "1"]);
    add(&world, &profile("local/ask", &[("modify_config", "1.0"), ("approve_plan", "1.0")], ""));
    let plan = world.plan(&["--automation-profile", "local/ask"]);
    assert_eq!(world.at(&plan), "execute/processing+retry");
    assert_eq!(awaiting(&world, &plan)["flag"], "modify_config");
    world.json(&["plan", "prompt", &plan, "retry"]);
    assert_eq!(world.at(&plan), "execute/processing+restore");
    let hints = world.json(&["plan", "errors", &plan])["data"]["recovery_hints"].clone();
    assert_eq!(hints[0]["action"], "retry");
    world.json(&["plan", "prompt", &plan, "restore"]);
    assert_eq!(world.at(&plan), "execute/processing+restore", "it failed again, and asks again");
    let followed = world.run_in("json", &["plan", "follow", "--from-start", &plan]).stdout;
    assert_eq!(followed.matches("\"checkpoint.restored\"").count(), 1, "{followed}");
}

// PLAN-016, PLAN-017: an estimate is information; one that fails blocks nothing.
#[test]
fn a_plan_is_estimated_between_strategize_and_execute() {
    let estimate = json!([{ "outcome": { "done": { "headline": "about a quarter", "lines": [],
        "facts": { "cost_usd": { "low": 0.2, "high": 0.3 } } } } }]);
    let script = json!({ "strategize": [{ "outcome": done("decided") }], "estimate": estimate });
    let world = World::registered(&script);
    let plan = world.plan(&["--estimation-actor", "test/scripted", "--automation-profile", "supervised"]);
    assert_eq!(world.at(&plan), "strategize/complete+execute_approval");
    let cost = world.json(&["plan", "status", &plan])["data"]["cost"].clone();
    assert_eq!((&cost["estimated"], &cost["estimated_usd"]), (&json!("$0.2500"), &json!(0.25)));
    let followed = world.run_in("json", &["plan", "follow", "--from-start", &plan]).stdout;
    assert_eq!(followed.matches("\"plan.estimation_complete\"").count(), 1, "{followed}");

    let broken = json!({ "message": "no idea", "category": "actor", "transient": false, "hints": [] });
    let script = json!({ "strategize": [{ "outcome": done("decided") }], "estimate": [{ "fail": broken }] });
    world.write("script.json", &script.to_string());
    let plan = world.plan(&["--estimation-actor", "test/scripted", "--automation-profile", "trusted"]);
    assert_eq!(world.at(&plan), "execute/complete+apply_approval");
}

// PROF-026, C-19: each factor with its value, the same every time it is asked.
#[test]
fn explain_shows_what_a_confidence_is_made_of() {
    let world = World::registered(&choose_and_edit(0.9));
    let of = |plan: &str| {
        let tree = world.json(&["plan", "tree", plan]);
        let decision = tree["data"]["tree"]["children"][0]["decision_id"].as_str().unwrap().to_owned();
        world.json(&["plan", "explain", &decision])["data"]["computed_confidence"].clone()
    };
    let first = world.plan(&["--automation-profile", "supervised"]);
    let computed = of(&first);
    assert_eq!(
        computed["factors"],
        json!([
            { "name": "past_success_rate", "value": 0.5, "counted": 0.5, "known": false },
            { "name": "codebase_familiarity", "value": 0.5, "counted": 0.5, "known": false },
            { "name": "risk_assessment", "value": 0.1, "counted": 0.9, "known": true },
            { "name": "invariant_complexity", "value": 0.0, "counted": 1.0, "known": true },
            { "name": "actor_confidence", "value": 0.9, "counted": 0.9, "known": true },
        ])
    );
    assert_eq!(computed["score"], 0.76);
    assert_eq!(of(&first), computed);
    // What stood before counts for the next plan.
    let second = world.plan(&["--automation-profile", "supervised"]);
    let rate = &of(&second)["factors"][0];
    assert_eq!((rate["known"].as_bool(), rate["value"].as_f64().map(|v| v > 0.6)), (Some(true), Some(true)));
}

// T05, T15, T34, T38, PROF-003: one command, and it is applied
#[test]
fn under_full_auto_one_command_goes_all_the_way() {
    let world = World::registered(&choose_and_edit(0.1));
    let made = world.make(&["--automation-profile", "full-auto"]);
    assert_eq!((&made["status"], &made["exit_code"]), (&json!("ok"), &json!(0)), "{made:#}");
    assert_eq!(world.at(made["data"]["plan_id"].as_str().unwrap()), "apply/applied");
    assert_eq!(world.read("a.txt"), "one\nTWO\nthree\n");
}

// GUARD-001, T34, T35: Apply is asked about although the threshold lets it through
#[test]
fn a_guard_on_apply_asks_whatever_the_threshold_says() {
    let world = World::registered(&choose_and_edit(0.9));
    add(&world, &profile("local/a", &[], "guards: {require_approval_for_apply: true}\n"));
    let plan = world.plan(&["--automation-profile", "local/a"]);
    assert_eq!(world.at(&plan), "execute/complete+apply_approval");
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");
    let shown = world.run_in("plain", &["plan", "status", &plan]);
    assert!(shown.stdout.contains("require_approval_for_apply"), "{}", shown.stdout);
    world.json(&["plan", "apply", "--yes", &plan]);
    assert_eq!(world.at(&plan), "apply/applied");
}

// ACT-003, PROF-010: an action's own limits tighten those of the profile
#[test]
fn the_limits_of_an_action_tighten_those_of_the_profile() {
    let world = World::registered(&choose_and_edit(0.9));
    let action = crate::world::ACTION.replace("local/act", "local/strict")
        + "safety_profile: {require_human_approval: true, max_retries_per_step: 1}\n";
    world.write("strict.yaml", &action);
    world.json(&["action", "create", "--config", "strict.yaml"]);
    let script = format!("script={}", choose_and_edit(0.9));
    let made = world.json(&[
        "plan",
        "use",
        "local/strict",
        "local/app",
        "--automation-profile",
        "ci",
        "--arg",
        &script,
    ]);
    let plan = made["data"]["plan_id"].as_str().unwrap();
    assert_eq!(world.at(plan), "execute/processing+decision", "ci asks nothing, the action does");
    assert_eq!(awaiting(&world, plan)["flag"], "require_human_approval");
    let safety = world.json(&["plan", "guard", plan])["data"]["safety"].clone();
    assert_eq!((&safety["max_retries_per_step"], &safety["require_sandbox"]), (&json!(1), &json!(true)));
}

// C-18, PROF-025: the profile of a plan under way
#[test]
fn a_plan_under_way_can_be_given_another_profile() {
    let world = World::registered(&choose_and_edit(0.9));
    let plan = world.plan(&["--automation-profile", "supervised"]);
    assert_eq!(world.at(&plan), "strategize/complete+execute_approval");
    let changed = world.json(&["plan", "guard", &plan, "--automation-profile", "ci"]);
    assert_eq!(changed["data"]["profile_changed"]["previous"], "supervised");
    assert_eq!((&changed["data"]["profile"], &changed["data"]["source"]), (&json!("ci"), &json!("changed")));
    assert_eq!(changed["messages"][0]["text"], "Profile changed from supervised to ci");
    world.json(&["plan", "execute", &plan]);
    assert_eq!(world.at(&plan), "apply/applied", "no later gate asks");
    let over = world.refused(&["plan", "guard", &plan, "--automation-profile", "auto"]);
    assert_eq!(over["error"]["code"], "INVALID_STATE");
}
