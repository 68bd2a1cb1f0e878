//! What the engine adds to a turn of a model: from an answer that is there at once to the next question.

use std::time::Duration;

use agents_e2e::World;
use agents_e2e::models::{decision, finish};
use agents_model_server::Server;
use serde_json::json;

use crate::Figure;

/// Turns of the model, each recording a decision.
const TURNS: usize = 100;

pub fn measure() -> Vec<Figure> {
    let world = World::new();
    let turn = |n: usize| {
        let key = format!("choice-{n}");
        let call =
            decision(&key, "strategy_choice", &format!("How is part {n} made?"), &["So", "Otherwise"], 0);
        json!({ "when": { "contains": ["Decide on the strategy"] }, "calls": [call] })
    };
    let mut replies: Vec<_> = (0..TURNS).map(turn).collect();
    replies
        .push(json!({ "when": { "contains": ["Decide on the strategy"] }, "calls": [finish("All parts")] }));
    replies.push(json!({ "calls": [finish("Nothing to write")] }));
    let server = Server::start(json!({ "replies": replies }));
    world.openai(&server);
    let repo = world.repo_with("repo", &[("hello.py", "print('hello')\n")]);
    world.register("app", &repo);
    world.model_action("openai/gpt-4.1", "");
    let plan = world.change("app", "trusted", &[]);
    assert!(plan.at().starts_with("execute/complete"), "{}", plan.at());
    let asked = server.asked();
    let turns: Vec<Duration> =
        asked[..TURNS].windows(2).map(|pair| pair[1].at.duration_since(pair[0].at)).collect();
    let what =
        "from one question to the next, the server answering at once: two commits, one decision, one trace";
    vec![Figure::times("model turn", what, &turns).budget("p50", 5.0)]
}
