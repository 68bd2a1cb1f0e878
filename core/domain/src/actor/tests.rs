use super::*;
use serde_json::json;

fn definition(value: Value) -> ActorDefinition {
    let mut whole = json!({ "name": "local/x" });
    crate::template::merge(&mut whole, &value);
    serde_json::from_value(whole).unwrap()
}

fn messages(value: Value) -> Vec<String> {
    check(&definition(value), false).into_iter().map(|f| format!("{}: {}", f.path, f.message)).collect()
}

// ACTOR-009
#[test]
fn the_top_of_a_file_goes_before_its_agents() {
    let backed = |value: Value| {
        let definition = definition(value);
        definition.backing(definition.actors.values().next().unwrap())
    };
    let config = |config: Value| json!({"actors": {"a": {"type": "llm", "config": config}}});
    let model = |name: &str| Ok(Backing::Model(name.to_owned()));
    let own = config(json!({"provider": "openai", "model": "gpt-4"}));
    assert_eq!(backed(own.clone()), model("openai/gpt-4"));
    let mut top = own.clone();
    top["provider"] = "anthropic".into();
    assert_eq!(backed(top.clone()), model("anthropic/gpt-4"));
    top["model"] = "claude".into();
    assert_eq!(backed(top), model("anthropic/claude"));
    // ACTOR-019
    assert_eq!(backed(config(json!({"actor": "anthropic/claude-3-opus"}))), model("anthropic/claude-3-opus"));
    assert_eq!(backed(config(json!({"actor": "openrouter/meta/llama"}))), model("openrouter/meta/llama"));
    assert_eq!(
        backed(config(json!({"actor": "local/reviewer"}))),
        Ok(Backing::Actor("local/reviewer".parse().unwrap()))
    );
    assert_eq!(backed(config(json!({"model": "claude-3.5-sonnet"}))), model("anthropic/claude-3.5-sonnet"));
    assert!(backed(config(json!({}))).is_err());
    assert!(backed(config(json!({"provider": "openai"}))).is_err());
}

// ACTOR-010
#[test]
fn one_word_of_danger_makes_the_whole_unsafe() {
    for (value, expected) in [
        (json!({"actors": {"a": {"type": "llm", "config": {}}}}), false),
        (json!({"unsafe": true}), true),
        (json!({"cleveragents": {"unsafe": true}}), true),
        (json!({"actors": {"a": {"type": "llm", "config": {"unsafe": true}}}}), true),
    ] {
        assert_eq!(definition(value.clone()).is_unsafe(), expected, "{value}");
    }
}

// ACTOR-018
#[test]
fn the_first_agent_runs_unless_another_is_named() {
    let two = json!({"actors": {"z": {"type": "llm", "config": {}}, "a": {"type": "llm", "config": {}}}});
    assert_eq!(definition(two.clone()).entry(), Some(Entry::Agent("z".to_owned())));
    let mut named = two;
    named["cleveragents"] = json!({"default_actor": "a"});
    assert_eq!(definition(named.clone()).entry(), Some(Entry::Agent("a".to_owned())));
    named["cleveragents"] = json!({"default_actor": "b"});
    assert!(messages(named).iter().any(|m| m.contains("`default_actor` names `b`") && m.contains("z, a")));
}

// 2.7: where what a person says goes
#[test]
fn input_goes_where_the_file_says() {
    let stream = |more: Value| {
        let mut route = json!({"type": "stream"});
        crate::template::merge(&mut route, &more);
        route
    };
    let graph = json!({"type": "graph", "nodes": {"n": {"type": "start"}}, "entry_point": "n"});
    let entry = |routes: Value, merges: Value| {
        definition(
            json!({"actors": {"a": {"type": "llm", "config": {}}}, "routes": routes, "merges": merges}),
        )
        .entry()
    };
    let streams = |names: &[&str]| Some(Entry::Streams(names.iter().map(|n| (*n).to_owned()).collect()));
    assert_eq!(
        entry(json!({"s": stream(json!({})), "t": stream(json!({"subscriptions": ["s"]}))}), json!([])),
        streams(&["s"])
    );
    assert_eq!(
        entry(
            json!({"s": stream(json!({})), "t": stream(json!({"subscriptions": ["__input__"]}))}),
            json!([])
        ),
        streams(&["t"])
    );
    assert_eq!(
        entry(json!({"g": graph.clone()}), json!([{"sources": ["__input__"], "target": "g"}])),
        Some(Entry::Graph("g".to_owned()))
    );
    assert_eq!(entry(json!({"g": graph}), json!([])), Some(Entry::Graph("g".to_owned())));
}

// ACTOR-068
#[test]
fn graphs_that_run_each_other_are_refused() {
    let graph = |other: &str| json!({"type": "graph", "entry_point": "n", "nodes": {"n": {"type": "subgraph", "subgraph": other}}});
    let found = messages(json!({"routes": {"a": graph("b"), "b": graph("a")}}));
    assert!(found.iter().any(|m| m.contains("a -> b -> a")), "{found:?}");
}

// G-11
#[test]
fn a_circle_needs_a_condition_that_leaves_it() {
    let graph = |condition: Value| {
        json!({"routes": {"g": {"type": "graph", "entry_point": "a",
            "nodes": {"a": {"type": "tool", "tools": ["x/y"]}, "b": {"type": "tool", "tools": ["x/y"]}},
            "edges": [{"source": "a", "target": "b"}, {"source": "b", "target": "a", "condition": condition}]}}})
    };
    assert!(messages(graph(json!(null))).iter().any(|m| m.contains("a -> b -> a")));
    assert_eq!(messages(graph(json!({"again": true}))), Vec::<String>::new());
}

// ACTOR-035
#[test]
fn parameters_become_a_schema() {
    let tool: LocalTool = serde_json::from_value(json!({"name": "u/c", "code": "x", "parameters": [
        {"name": "path", "type": "str", "description": "A file"},
        {"name": "deep", "type": "list[int]", "description": "D", "required": false, "default": [1]},
    ]}))
    .unwrap();
    assert_eq!(
        tool.schema(),
        json!({"type": "object", "properties": {
            "path": {"type": "string", "description": "A file"},
            "deep": {"type": "array", "items": {"type": "integer"}, "description": "D", "default": [1]},
        }, "required": ["path"], "additionalProperties": false})
    );
}
