//! Plans whose strategy and execution actors are models, through the real binary and a server of models on this machine.

use agents_e2e::World;
use agents_e2e::models::{KEY, decision, finish, polite, write};
use agents_model_server::Server;
use nix::sys::signal::{Signal, kill};
use serde_json::json;

// ACTOR-003, DEC-008, SEC-014: from the task to the commit, with every line traced to the decision of a model.
#[test]
fn a_plan_whose_actors_are_models_runs_from_the_task_to_the_commit() {
    let world = World::new();
    let server = Server::start(json!({ "replies": polite() }));
    world.openai(&server);
    let repo = world.repo_with("repo", &[("hello.py", "print('hello')\n")]);
    world.register("app", &repo);
    world.model_action("openai/gpt-4.1", "");
    let plan = world.change("app", "trusted", &[]);
    plan.assert_at("execute/complete+apply_approval");

    let strategy = plan.strategy("polite");
    assert_eq!(strategy["chosen"], "Say please");
    let explained = plan.explain(&strategy);
    assert_eq!(explained["alternatives"].as_array().map(Vec::len), Some(2), "{explained:#}");
    let how = &plan.decisions_of("implementation_choice")[0];
    let how_explained = plan.explain(how);
    assert_eq!(
        how_explained["parent"]["decision_id"].as_str().or(how_explained["parent_decision_id"].as_str()),
        strategy["decision_id"].as_str(),
        "{how_explained:#}"
    );
    assert!(plan.summary("execute").contains("It says please now"));
    let status = plan.status();
    assert!(status.to_string().contains("0.00"), "four calls of gpt-4.1 cost something: {status:#}");

    plan.apply();
    plan.assert_at("apply/applied");
    assert_eq!(repo.text("hello.py"), "print('hello, please')\n");
    let blame = world.ok(&["plan", "blame", repo.file("hello.py").to_str().unwrap()]);
    assert!(
        blame.text.contains("How is it made polite?") || blame.text.contains("Where does please go?"),
        "{}",
        blame.text
    );

    let asked = server.asked();
    assert_eq!(asked.len(), 4);
    for request in &asked {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(request.body["stream"], true);
        assert!(request.body.get("temperature").is_none() && request.body.get("max_tokens").is_none());
        assert!(request.conversation().contains("[USER_CONTENT_START]\nMake the greeting polite"));
    }
    server.assert_all_used();
    world.assert_quiet();
}

// The same in Anthropic's protocol, with thinking between the calls.
#[test]
fn the_same_plan_runs_in_the_protocol_of_anthropic() {
    let world = World::new();
    let mut replies = polite();
    for reply in replies.as_array_mut().unwrap() {
        reply["thinking"] = json!("Let me think about it.");
    }
    let server = Server::start(json!({ "replies": replies }));
    world.anthropic(&server);
    let repo = world.repo_with("repo", &[("hello.py", "print('hello')\n")]);
    world.register("app", &repo);
    world.model_action("anthropic/claude-sonnet-4-5", "");
    let plan = world.change("app", "trusted", &[]);
    plan.assert_at("execute/complete+apply_approval");
    plan.apply();
    assert_eq!(repo.text("hello.py"), "print('hello, please')\n");
    let asked = server.asked();
    assert!(asked.iter().all(|request| request.header("x-api-key") == Some(KEY)));
    // Signed thinking goes back with the turn it belongs to.
    assert!(asked[1].body.to_string().contains("Let me think about it."), "{}", asked[1].body);
}

// OBS-011, GUARD-015: what may pass is tried again; each call is on record with what it took.
#[test]
fn refusals_and_cut_streams_do_not_stop_a_plan_and_every_call_is_on_record() {
    let world = World::new();
    let mut replies = vec![
        json!({ "fault": { "status": 429, "retry_after": 0 } }),
        json!({ "fault": { "status": 500, "retry_after": 0 } }),
        json!({ "text": "never whole", "fault": { "cut": 2 } }),
    ];
    replies.extend(polite().as_array().unwrap().clone());
    let server = Server::start(json!({ "replies": replies }));
    world.openai(&server);
    let repo = world.repo_with("repo", &[("hello.py", "print('hello')\n")]);
    world.register("app", &repo);
    world.model_action("openai/gpt-4.1", "");
    let plan = world.change("app", "trusted", &[]);
    plan.assert_at("execute/complete+apply_approval");
    server.assert_all_used();

    let traces = traces(&world, &plan.id);
    assert_eq!(traces.len(), 4);
    assert_eq!((traces[0].retries, traces[1].retries), (3, 0));
    assert!(
        traces.iter().all(|t| t.provider == "openai" && t.input == 100 && t.output == 10 && t.usd.is_some())
    );
    assert_eq!(traces[2].tool_calls, r#"["record_decision","builtin/apply-edits"]"#);
    assert!(traces[3].decision.is_some(), "the last turn was under a decision");
    // Nothing of what was said, and no key, is in the database or in a log.
    let database = std::fs::read(world.data().join("cleveragents.db")).unwrap_or_default();
    assert!(!contains(&database, KEY.as_bytes()));
    for log in std::fs::read_dir(world.data().join("logs")).unwrap().flatten() {
        assert!(!contains(&std::fs::read(log.path()).unwrap(), KEY.as_bytes()), "{}", log.path().display());
    }
}

// GUARD-014, CONF-018: dollars of a model stop a plan.
#[test]
fn a_plan_whose_money_is_used_up_waits_for_a_person() {
    let world = World::new();
    let server = Server::start(json!({ "replies": polite() }));
    world.openai(&server);
    world.ok(&["config", "set", "plan.budget.per-plan", "0.0003"]);
    let repo = world.repo_with("repo", &[("hello.py", "print('hello')\n")]);
    world.register("app", &repo);
    world.model_action("openai/gpt-4.1", "");
    let plan = world.change("app", "trusted", &[]);
    plan.assert_at("execute/processing+budget");
    assert_eq!(server.asked().len(), 2, "the second call went over it, and no third is made");
}

// kill -9 in the middle of an answer: it is asked for again, and nothing is done twice.
#[test]
fn a_worker_that_is_killed_while_a_model_answers_loses_nothing() {
    let world = World::new();
    let mut replies = polite();
    replies[2]["barrier"] = json!("writing");
    replies[2]["times"] = json!(2);
    let server = Server::start(json!({ "replies": replies }));
    world.openai(&server);
    let repo = world.repo_with("repo", &[("hello.py", "print('hello')\n")]);
    world.register("app", &repo);
    world.model_action("openai/gpt-4.1", "");
    let following =
        world.start(&["plan", "use", "local/change", "local/app", "--automation-profile", "trusted"]);
    server.reached("writing");
    for worker in world.workers() {
        kill(worker, Signal::SIGKILL).unwrap();
    }
    server.left(1);
    server.release("writing");
    following.finish(std::time::Duration::from_secs(120));
    let plan = world.only_plan();
    if !plan.at().starts_with("execute/complete") {
        plan.call("execute", &[]);
    }
    plan.assert_at("execute/complete+apply_approval");
    assert_eq!(plan.decisions_of("implementation_choice").len(), 1);
    plan.apply();
    assert_eq!(repo.text("hello.py"), "print('hello, please')\n");
}

// A cassette gives the same plan again without anybody being asked.
#[test]
fn a_recorded_plan_is_played_back_without_a_model() {
    let world = World::new();
    let server = Server::start(json!({ "replies": polite() }));
    world.openai(&server);
    world.ok(&["config", "set", "actor.record-models", "true"]);
    let repo = world.repo_with("repo", &[("hello.py", "print('hello')\n")]);
    world.register("app", &repo);
    world.model_action("openai/gpt-4.1", "");
    let first = world.change("app", "trusted", &[]);
    first.assert_at("execute/complete+apply_approval");
    let diff = first.ok("diff", &[]).data["diff"].clone();
    first.ok("cancel", &[]);
    drop(server);
    world.ok(&["config", "set", "actor.record-models", "false"]);
    let replay = format!("replay/{}", first.id);
    let again = world.change("app", "trusted", &["--strategy-actor", &replay, "--execution-actor", &replay]);
    again.assert_at("execute/complete+apply_approval");
    assert_eq!(again.ok("diff", &[]).data["diff"], diff);
}

// CORR-003, DEC: a person corrects a choice of how; only what hung on it is done again.
#[test]
fn a_corrected_choice_of_a_model_is_asked_about_again_and_other_work_stays() {
    let world = World::new();
    let strategy =
        decision("greeting", "strategy_choice", "How is it made polite?", &["Say please", "Bow"], 0);
    let how = |key: &str, file: &str| {
        decision(
            key,
            "implementation_choice",
            &format!("How does {file} say it?"),
            &["At the end", "At the beginning"],
            0,
        )
    };
    let server = Server::start(json!({ "replies": [
        { "when": { "contains": ["Decide on the strategy"], "turns": 0 }, "calls": [strategy] },
        { "when": { "contains": ["Decide on the strategy"], "turns": 1 }, "calls": [finish("Say please")] },
        { "when": { "contains": ["Carry this plan out"], "turns": 0 }, "calls": [how("a", "a.py"), write("a.py", "hello, please\n", "a")] },
        { "when": { "contains": ["Carry this plan out"], "turns": 1, "lacks": ["In the middle"] }, "calls": [how("b", "b.py"), write("b.py", "bye, please\n", "b")] },
        { "when": { "contains": ["Carry this plan out"], "turns": 2, "lacks": ["In the middle"] }, "calls": [finish("Both say please")] },
        { "when": { "contains": ["In the middle"], "turns": 1 }, "calls": [how("b", "b.py"), write("b.py", "bye, please, now\n", "b")] },
        { "when": { "contains": ["was answered otherwise: In the middle"], "turns": 2 }, "calls": [write("b.py", "bye, please, now\n", "b")] },
        { "when": { "contains": ["In the middle"], "turns": 3 }, "calls": [finish("Both say please, b in the middle")] },
    ] }));
    world.openai(&server);
    let repo = world.repo_with("repo", &[("a.py", "hello\n"), ("b.py", "bye\n")]);
    world.register("app", &repo);
    world.model_action("openai/gpt-4.1", "");
    let plan = world.change("app", "trusted", &[]);
    plan.assert_at("execute/complete+apply_approval");
    let choices = plan.decisions_of("implementation_choice");
    let about_b = choices.iter().find(|d| d["question"] == "How does b.py say it?").unwrap();
    let id = about_b["decision_id"].as_str().unwrap();
    world.ok(&["plan", "correct", "--mode", "revert", "-g", "In the middle", "--yes", id]);
    if !plan.at().starts_with("execute/complete") {
        plan.call("execute", &[]);
    }
    plan.assert_at("execute/complete+apply_approval");
    server.assert_all_used();
    let first = plan.decisions_of("implementation_choice");
    assert!(
        first.iter().any(|d| d["decision_id"] == choices[0]["decision_id"]),
        "the choice for a.py stands: {first:#?}"
    );
    plan.apply();
    assert_eq!(
        (repo.text("a.py").as_str(), repo.text("b.py").as_str()),
        ("hello, please\n", "bye, please, now\n")
    );
}

// GUARD-007: what cannot work is refused before there is a plan, with what to do.
#[test]
fn a_model_without_a_key_is_refused_with_what_to_do() {
    let world = World::new();
    let repo = world.repo_with("repo", &[("hello.py", "print('hello')\n")]);
    world.register("app", &repo);
    world.model_action("openai/gpt-4.1", "");
    let refused = world.refused(&["plan", "use", "local/change", "local/app"]);
    assert!(refused.text.contains("OPENAI_API_KEY"), "{}", refused.text);
    // A provider that is half described fails when it is used, not before.
    world.ok(&["config", "set", "provider.custom.lab.protocol", "openai"]);
    let lab = [
        "plan",
        "use",
        "local/change",
        "local/app",
        "--strategy-actor",
        "lab/x",
        "--execution-actor",
        "lab/x",
    ];
    let refused = world.refused(&lab);
    assert!(refused.text.contains("`base-url` must be where it is"), "{}", refused.text);
    let diagnostics = world.ok(&["diagnostics"]);
    assert!(diagnostics.text.contains("export ANTHROPIC_API_KEY"), "{}", diagnostics.text);
}

/// A call of a model on record.
struct Trace {
    provider: String,
    retries: u32,
    input: i64,
    output: i64,
    usd: Option<f64>,
    tool_calls: String,
    decision: Option<String>,
}

fn traces(world: &World, plan: &str) -> Vec<Trace> {
    let database = rusqlite::Connection::open(world.data().join("cleveragents.db")).unwrap();
    let mut statement = database
        .prepare(
            "SELECT provider, retry_count, prompt_tokens, completion_tokens, cost_usd, tool_calls, decision_id
             FROM llm_traces WHERE plan_id = ?1 ORDER BY trace_id",
        )
        .unwrap();
    let rows = statement.query_map([plan], |row| {
        Ok(Trace {
            provider: row.get(0)?,
            retries: row.get(1)?,
            input: row.get(2)?,
            output: row.get(3)?,
            usd: row.get(4)?,
            tool_calls: row.get(5)?,
            decision: row.get(6)?,
        })
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

// Where the tester has a key: a real model changes a file from the task to the commit. Which one: AGENTS_LIVE_MODEL.
#[test]
fn a_real_model_does_a_small_task_where_the_tester_has_a_key() {
    let key_of = |variable: &str| std::env::var(variable).ok().filter(|key| !key.is_empty());
    let (key, name, default) = match (key_of("OPENAI_API_KEY"), key_of("ANTHROPIC_API_KEY")) {
        (Some(key), _) => (key, "provider.openai.api-key", "openai/gpt-4.1-mini"),
        (None, Some(key)) => (key, "provider.anthropic.api-key", "anthropic/claude-haiku-4-5"),
        (None, None) => return,
    };
    let model = std::env::var("AGENTS_LIVE_MODEL").unwrap_or_else(|_| default.to_owned());
    let world = World::new();
    world.ok(&["config", "set", name, &key]);
    world.ok(&["config", "set", "plan.budget.per-plan", "0.50"]);
    let repo = world.repo_with("repo", &[("hello.py", "print('hello')\n")]);
    world.register("app", &repo);
    world.model_action(&model, "");
    let plan = world.change("app", "full-auto", &[]);
    plan.assert_at("apply/applied");
    assert!(repo.text("hello.py").to_lowercase().contains("please"), "{}", repo.text("hello.py"));
    assert!(!plan.decisions_of("strategy_choice").is_empty());
}
