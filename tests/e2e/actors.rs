//! Actors that people define, through the real binary and a server of models on this machine.

use agents_e2e::World;
use agents_model_server::Server;
use serde_json::json;

const PLANNER: &str = "\
name: local/planner
actors:
  planner:
    type: llm
    config:
      actor: openai/gpt-4.1
      system_prompt: You are the PLANNER of {{ context.task_description }}
";

const DOER: &str = "\
name: local/doer
actors:
  editor:
    type: llm
    config:
      actor: openai/gpt-4.1
      system_prompt: You are the EDITOR
      tools: [builtin/apply-edits]
  critic:
    type: llm
    config: {actor: openai/gpt-4.1, system_prompt: You are the CRITIC}
  reader:
    type: llm
    config: {actor: openai/gpt-4.1, system_prompt: You are the READER}
routes:
  main:
    type: graph
    entry_point: edit
    parallel_execution: true
    nodes:
      edit: {type: agent, agent: editor}
      critic: {type: agent, agent: critic}
      reader: {type: agent, agent: reader}
    edges: [[edit, critic], [edit, reader]]
";

// ACTOR-026, ACTOR-064: a graph of a file carries a plan out; each line is traced to the node behind it.
#[test]
fn a_plan_whose_actors_are_files_runs_from_the_task_to_the_commit() {
    let world = World::new();
    let edit = json!({ "tool": "builtin/apply-edits", "args": {
        "resource": "${find:Resource local/app \\(id ([0-9A-Z]{26})}",
        "edits": [{ "op": "write", "path": "hello.py", "content": "print('hello, please')\n" }],
    } });
    let server = Server::start(json!({ "replies": [
        { "when": { "contains": ["You are the PLANNER of Make the greeting polite"] }, "text": "Say please\nIt is shorter." },
        { "when": { "contains": ["You are the EDITOR"], "turns": 0 }, "text": "At the end.", "calls": [edit] },
        { "when": { "contains": ["You are the EDITOR"], "turns": 1 }, "text": "Edited" },
        { "when": { "contains": ["You are the CRITIC", "Edited"] }, "text": "It is good" },
        { "when": { "contains": ["You are the READER", "Edited"] }, "text": "It reads well" },
    ] }));
    world.openai(&server);
    for (name, text) in [("planner.yaml", PLANNER), ("doer.yaml", DOER)] {
        let file = world.path(name);
        std::fs::write(&file, text).unwrap();
        world.ok(&["actor", "add", "--config", file.to_str().unwrap()]);
    }
    let repo = world.repo_with("repo", &[("hello.py", "print('hello')\n")]);
    world.register("app", &repo);
    let file = world.path("change.yaml");
    let action = "name: local/change\ndescription: Make the greeting polite\ndefinition_of_done: It says please\n\
                  strategy_actor: local/planner\nexecution_actor: local/doer\n";
    std::fs::write(&file, action).unwrap();
    world.ok(&["action", "create", "--config", file.to_str().unwrap()]);
    let plan = world.change("app", "trusted", &[]);
    plan.assert_at("execute/complete+apply_approval");
    assert_eq!(plan.strategy("greeting")["chosen"], "Say please");
    let how = &plan.decisions_of("implementation_choice")[0];
    assert!(how.to_string().contains("main.edit"), "{how:#}");
    assert!(plan.summary("execute").contains("It is good"), "{}", plan.summary("execute"));
    plan.apply();
    plan.assert_at("apply/applied");
    assert_eq!(repo.text("hello.py"), "print('hello, please')\n");
    server.assert_all_used();
    world.assert_quiet();
}

// CLI-142 to CLI-151, ACTOR-011, ACTOR-021
#[test]
fn an_actor_is_run_outside_of_a_plan() {
    let world = World::new();
    let server = Server::start(json!({ "replies": [
        { "when": { "contains": ["Red"] }, "text": "Red it is" },
        { "when": { "contains": ["Red it is", "And now?"] }, "text": "Still red" },
        { "when": { "contains": ["To a file"] }, "text": "0123456789" },
    ] }));
    world.openai(&server);
    let file = world.path("tutor.yaml");
    let tutor = "name: local/tutor\ncleveragents: {unsafe: true}\nactors:\n  tutor:\n    type: llm\n    config:\n      actor: openai/gpt-4.1\n      memory_enabled: true\n";
    std::fs::write(&file, tutor).unwrap();
    world.ok(&["actor", "add", "--config", file.to_str().unwrap()]);
    let refused = world.refused(&["actor", "run", "local/tutor", "Red"]);
    assert!(refused.text.contains("is marked unsafe"), "{}", refused.text);
    let first =
        world.ok(&["actor", "run", "--unsafe", "local/tutor", "Red", "--context", "lesson", "-t", "0.5"]);
    assert_eq!(first.data["response"]["text"], "Red it is");
    assert_eq!(first.data["run_summary"]["model"], "gpt-4.1");
    let second = world.ok(&["actor", "run", "-u", "local/tutor", "And now?", "--context", "lesson"]);
    assert_eq!(second.data["response"]["text"], "Still red");
    let answer = world.path("answer.txt");
    let third = world.ok(&["actor", "run", "openai/gpt-4.1", "To a file", "-o", answer.to_str().unwrap()]);
    assert_eq!(third.data["actor_run"]["output"], answer.display().to_string());
    assert_eq!(std::fs::read_to_string(&answer).unwrap(), "0123456789");
    assert_eq!(server.asked()[0].body["temperature"], 0.5);
    assert_eq!(world.ok(&["actor", "show", "local/tutor"]).data["usage"]["total_runs"], 2);
    server.assert_all_used();
}
