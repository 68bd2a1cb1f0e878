//! Plans whose strategy and execution actors are models, through the real binary and a server of models on this machine.

use agents_e2e::World;
use agents_e2e::models::{KEY, polite};
use agents_model_server::Server;
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
    assert_eq!(how_explained["parent"]["decision_id"].as_str().or(how_explained["parent_decision_id"].as_str()), strategy["decision_id"].as_str(), "{how_explained:#}");
    assert!(plan.summary("execute").contains("It says please now"));
    let status = plan.status();
    assert!(status.to_string().contains("0.00"), "four calls of gpt-4.1 cost something: {status:#}");

    plan.apply();
    plan.assert_at("apply/applied");
    assert_eq!(repo.text("hello.py"), "print('hello, please')\n");
    let blame = world.ok(&["plan", "blame", repo.file("hello.py").to_str().unwrap()]);
    assert!(blame.text.contains("How is it made polite?") || blame.text.contains("Where does please go?"), "{}", blame.text);

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
