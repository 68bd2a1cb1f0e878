use super::*;

fn stream(more: Value) -> Value {
    let mut route = json!({ "type": "stream" });
    agents_domain::template::merge(&mut route, &more);
    route
}

fn map(agent: &str) -> Value {
    json!([{ "type": "map", "params": { "agent": agent } }])
}

// ACTOR-073, ACTOR-074
#[test]
fn what_is_said_flows_through_operators_to_the_output() {
    let mut world = World::new(json!({ "actors": { "a": llm(), "b": llm() }, "routes": {
        "s": stream(json!({ "operators": [{ "type": "map", "params": { "agent": "a" } }, { "type": "map", "params": { "agent": "b" } }],
            "subscriptions": ["__input__"], "publications": ["__output__"] })),
    } }));
    assert_eq!(world.ask("hi", echo).unwrap(), "b(a(hi))");
    let mut world = World::new(json!({ "actors": { "a": llm() }, "routes": {
        "s": stream(json!({ "operators": [{ "type": "graph_execute", "params": { "graph": "g" } }], "publications": ["out"] })),
        "g": { "type": "graph", "entry_point": "n", "nodes": { "n": { "type": "agent", "agent": "a" } }, "edges": [] },
    }, "merges": [{ "sources": ["out"], "target": "final" }] }));
    assert_eq!(world.ask("hi", echo).unwrap(), "a(hi)");
}

// ACTOR-075, ACTOR-076, ACTOR-077
#[test]
fn streams_merge_and_split() {
    let mut world = World::new(json!({ "actors": { "a": llm(), "b": llm() }, "routes": {
        "one": stream(json!({ "operators": map("a"), "subscriptions": ["__input__"], "publications": ["x"] })),
        "two": stream(json!({ "operators": map("b"), "subscriptions": ["__input__"], "publications": ["y"] })),
        "last": stream(json!({ "operators": map("a"), "publications": ["done"] })),
    }, "merges": [{ "sources": ["x", "y"], "target": "last" }],
        "splits": [{ "source": "done", "targets": ["log", "shown"] }], "publications": ["shown"] }));
    let answer = world.ask("hi", echo).unwrap();
    // Each of the two messages is logged and shown.
    assert_eq!(answer, ["a(a(hi))", "a(a(hi))", "a(b(hi))", "a(b(hi))"].join("\n\n"));
}

// ACTOR-072
#[test]
fn only_a_replay_shows_old_messages_to_those_that_come_later() {
    use crate::stream::Channel;
    use agents_domain::actor::StreamKind;
    for (kind, expected) in [(StreamKind::Replay, 10), (StreamKind::Hot, 0), (StreamKind::Cold, 0)] {
        let mut channel = Channel::new(kind, 10);
        (0..15).for_each(|n| channel.send(&n.to_string()));
        assert_eq!(channel.subscribe().len(), expected);
        assert!(channel.subscribe().first().is_none_or(|first| first == "5"));
    }
}

// ACTOR-072
#[test]
fn a_first_value_is_emitted_once() {
    let mut world = World::new(json!({ "actors": { "a": llm(), "b": llm() }, "routes": {
        "s": stream(json!({ "operators": map("a"), "initial_value": "first" })),
        "t": stream(json!({ "operators": map("b"), "subscriptions": ["s"] })),
    } }));
    assert_eq!(world.ask("hi", echo).unwrap(), "b(first)\n\nb(a(hi))");
    assert_eq!(world.ask("ho", echo).unwrap(), "b(a(ho))");
}

// ACTOR-078
#[test]
fn a_bridge_turns_a_stream_into_a_graph_and_back() {
    let mut world = World::new(json!({ "actors": { "small": llm(), "large": llm() }, "routes": {
        "s": stream(json!({ "operators": map("small"), "metadata": { "graph": "g" }, "bridge": {
            "upgrade_conditions": { "message_count_threshold": 3 }, "downgrade_conditions": { "idle_timeout": 30 } } })),
        "g": { "type": "graph", "entry_point": "n", "nodes": { "n": { "type": "agent", "agent": "large" } }, "edges": [] },
    } }));
    assert_eq!(world.ask("1", echo).unwrap(), "small(1)");
    assert_eq!(world.ask("2", echo).unwrap(), "small(2)");
    assert_eq!(world.ask("3", echo).unwrap(), "large(3)");
    assert_eq!(world.machine.contexts[&0]["stream_history"], json!(["1", "2", "3"]));
    world.machine.idle(&world.program, 29.0);
    assert_eq!(world.ask("4", echo).unwrap(), "large(4)");
    world.machine.idle(&world.program, 30.0);
    assert_eq!(world.ask("5", echo).unwrap(), "small(5)");
}

#[test]
fn streams_in_a_circle_end_in_an_error() {
    let mut world = World::new(json!({ "actors": { "a": llm() }, "routes": {
        "s": stream(json!({ "subscriptions": ["__input__", "t"] })),
        "t": stream(json!({ "subscriptions": ["s"] })),
    } }));
    let why = world.ask("hi", echo).unwrap_err();
    assert!(why.contains("go in a circle"), "{why}");
}
