use super::*;

// ACTOR-069, ACTOR-070, ACTOR-071
#[test]
fn routers_send_messages_by_rules_and_prefixes() {
    let run = |rules: Value, message: &str| {
        let nodes = json!({
            "r": { "type": "message_router", "rules": rules },
            "brainstorming": { "type": "agent", "agent": "brainstorming" },
            "other": { "type": "agent", "agent": "other" },
        });
        let route = json!({ "type": "graph", "entry_point": "start", "nodes": nodes, "edges": [
            { "source": "start", "target": "r" }, { "source": "r", "target": "other" },
        ] });
        let mut world = World::new(graph(&["brainstorming", "other"], route));
        let answer = world.ask(message, echo).unwrap();
        (answer, world.machine.contexts[&0].clone())
    };
    let rules = json!([
        { "type": "prefix", "match": "GOTO_B", "target": "brainstorming", "strip_match": true },
        { "type": "contains", "match": "idea", "target": "brainstorming" },
        { "type": "suffix", "match": "?", "target": "brainstorming", "strip_match": true },
    ]);
    assert_eq!(run(rules.clone(), "GOTO_B: go").0, "brainstorming(go)");
    assert_eq!(run(rules.clone(), "an idea").0, "brainstorming(an idea)");
    assert_eq!(run(rules.clone(), "why?").0, "brainstorming(why)");
    assert_eq!(run(rules.clone(), "hm").0, "other(hm)");
    let all = json!([{ "type": "suffix", "match": "", "target": "brainstorming" }]);
    assert_eq!(run(all, "anything").0, "brainstorming(anything)");
    let none = json!([{ "type": "prefix", "match": "zzz", "target": "other" }]);
    assert_eq!(run(none.clone(), "GOTO_BRAINSTORMING:Start").0, "brainstorming(Start)");
    assert_eq!(
        run(none.clone(), "SET_TOPIC:Quantum"),
        ("other(Quantum)".to_owned(), json!({ "topic": "Quantum" }))
    );
    let (answer, context) = run(none.clone(), "ROUTE_ASK_TOPIC:What?");
    assert_eq!((answer.as_str(), &context["route"]), ("other(What?)", &json!("ASK_TOPIC")));
    assert_eq!(run(none.clone(), "COMMAND_OUTPUT:Help").0, "Help");
    let (answer, context) = run(none, "DISCOVERY_RESPONSE:Topic set");
    assert_eq!((answer.as_str(), &context["discovery_response"]), ("other(Topic set)", &json!("Topic set")));
}

// ACTOR-024, ACTOR-082, ACTOR-083, G-27
#[test]
fn tools_of_the_file_share_the_context_with_prompts() {
    let mut world = World::new(json!({
        "actors": {
            "tool": { "type": "tool", "config": { "tools": [{ "name": "one", "code": "c" }, { "name": "two", "code": "c" }] } },
            "a": { "type": "llm", "config": { "actor": "openai/x", "system_prompt": "stage {{ context.stage }}" } },
        },
        "routes": { "g": { "type": "graph", "entry_point": "t", "nodes": {
            "t": { "type": "agent", "agent": "tool" }, "n": { "type": "agent", "agent": "a" },
        }, "edges": [{ "source": "t", "target": "n" }] } },
        "global_context": { "stage": "intro" },
    }));
    let tool = |name: &str, args: &Value| {
        assert_eq!(args["context"]["stage"], "intro");
        Ok(
            json!({ "result": format!("{name}:{}", args["content"]), "context": { "stage": "brainstorming" } }),
        )
    };
    assert_eq!(world.say("hi", echo, tool).unwrap(), "a(one:\"hi\")");
    assert_eq!(world.seen.asked[0].2.system.as_deref(), Some("stage brainstorming"));
    let mut world = World::new(json!({ "actors": { "tool": { "type": "tool", "config": { "tools": [
        { "name": "one", "code": "c" }, { "name": "two", "code": "c" }] } } } }));
    let tool = |name: &str, _: &Value| Ok(json!({ "result": { "response": name }, "context": {} }));
    assert_eq!(world.say("{\"tool\": \"two\"}", echo, tool).unwrap(), "two");
}

// ACTOR-059, ACTOR-080, ACTOR-081
#[test]
fn tool_nodes_run_registered_tools_and_their_own() {
    let mut world = World::new(
        json!({ "actors": { "t": { "type": "tool", "config": { "tools": [{ "name": "f", "code": "c" }] } } },
        "routes": { "g": { "type": "graph", "entry_point": "read", "nodes": {
            "read": { "type": "tool", "tools": ["read_file"] },
            "own": { "type": "tool", "anonymous": true, "code": "c", "description": "D" },
            "fn": { "type": "function", "function": "f" },
        }, "edges": [{ "source": "read", "target": "own" }, { "source": "own", "target": "fn" }] } } }),
    );
    let tool = |name: &str, _: &Value| Ok(json!({ "content": format!("<{name}>") }));
    assert_eq!(world.say("a.txt", echo, tool).unwrap(), "<f>");
    assert_eq!(world.seen.called[0], ("builtin/read_file".to_owned(), json!({ "path": "a.txt" })));
    assert_eq!(world.seen.called[1].0, "g.own");
    assert_eq!(world.seen.called[1].1["content"], "<builtin/read_file>");
}

// ACTOR-068, ACTOR-005
#[test]
fn graphs_and_actors_run_inside_others() {
    let inner = definition(
        json!({ "name": "local/inner", "actors": { "deep": { "type": "llm", "config": { "actor": "openai/x",
        "system_prompt": "{{ context.a }}{{ context.b }}" } } }, "global_context": { "a": 1, "b": 1 } }),
    );
    let outer = definition(json!({
        "actors": { "front": llm(), "other": { "type": "llm", "config": { "actor": "local/inner" } } },
        "routes": {
            "g": { "type": "graph", "entry_point": "s", "nodes": {
                "s": { "type": "subgraph", "subgraph": "h" }, "o": { "type": "agent", "agent": "other" },
            }, "edges": [{ "source": "s", "target": "o" }] },
            "h": { "type": "graph", "entry_point": "f", "nodes": { "f": { "type": "agent", "agent": "front" } }, "edges": [] },
        },
        "global_context": { "b": 2 },
    }));
    let mut world = World::of(vec![outer, inner]);
    assert_eq!(world.ask("x", echo).unwrap(), "deep(front(x))");
    assert_eq!(world.seen.asked[1].2.system.as_deref(), Some("12"));
}

// ACTOR-060
#[test]
fn a_node_is_tried_again_as_its_policy_says() {
    let route = |attempts: u64| {
        json!({ "type": "graph", "entry_point": "a", "edges": [], "nodes": { "a": {
        "type": "agent", "agent": "a", "timeout": 7, "retry_policy": { "max_attempts": attempts, "initial_interval": 2 } } } })
    };
    let mut tries = 0;
    let mut world = World::new(graph(&["a"], route(3)));
    let answer = world.ask("x", |_, _, _| {
        tries += 1;
        if tries < 3 { json!({ "fail": true }) } else { json!("at last") }
    });
    assert_eq!(answer.unwrap(), "at last");
    assert_eq!(world.seen.asked[0].2.options.timeout, Some(std::time::Duration::from_secs(7)));
    let why = World::new(graph(&["a"], route(2))).ask("x", |_, _, _| json!({ "fail": true })).unwrap_err();
    assert!(why.contains("no connection"), "{why}");
}

// ACTOR-037: conditional nodes
#[test]
fn conditional_nodes_choose_where_it_goes_on() {
    let nodes = json!({
        "t": { "type": "tool", "tools": ["read_file"] },
        "c": { "type": "conditional", "conditions": [
            { "check": "t.passed", "route_to": "done" }, { "check": "True", "route_to": "mend" }] },
        "done": { "type": "agent", "agent": "a" }, "mend": { "type": "agent", "agent": "a" },
    });
    let route = json!({ "type": "graph", "entry_point": "t", "nodes": nodes, "edges": [{ "source": "t", "target": "c" }] });
    for (passed, expected) in [(true, "done"), (false, "mend")] {
        let mut world = World::new(graph(&["a"], route.clone()));
        let tool = |_: &str, _: &Value| Ok(json!({ "passed": passed, "message": "m" }));
        assert_eq!(world.say("x", echo, tool).unwrap(), "a(m)");
        let at = world.machine.take_checkpoints();
        assert!(at.is_empty() && !expected.is_empty());
    }
}

// ACTOR-065, ACTOR-066
#[test]
fn a_graph_goes_on_from_any_state_that_was_kept() {
    let route = json!({ "type": "graph", "entry_point": "a", "enable_time_travel": true,
        "nodes": agent_nodes(&["a", "b", "c"]), "edges": [{ "source": "a", "target": "b" }, { "source": "b", "target": "c" }] });
    let file = graph(&["a", "b", "c"], route);
    let mut world = World::new(file.clone());
    world.machine.say(&world.program, &world.toolbox, "x");
    let mut kept = Vec::new();
    while world.machine.status() == Status::Running {
        let effects = world.machine.effects(&world.program, &world.toolbox);
        let told = effects.into_iter().map(|effect| match effect {
            Effect::Ask { task, agent, .. } => Told::Answer { task, answer: Ok(reply(json!(agent))) },
            Effect::Call { .. } => unreachable!(),
        });
        world.machine.tell(&world.program, &world.toolbox, told.collect());
        for checkpoint in world.machine.take_checkpoints() {
            kept.push((checkpoint.step, serde_json::to_string(&world.machine).unwrap()));
        }
    }
    assert_eq!(world.machine.answer(), "c");
    assert_eq!(kept.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [1, 2, 3]);
    // From the first state on, the second step is done again.
    let mut again = World::new(file);
    again.machine = serde_json::from_str(&kept[0].1).unwrap();
    let mut asked = Vec::new();
    while again.machine.status() == Status::Running {
        let told =
            again.machine.effects(&again.program, &again.toolbox).into_iter().map(|effect| match effect {
                Effect::Ask { task, agent, .. } => {
                    asked.push(agent.clone());
                    Told::Answer { task, answer: Ok(reply(json!(format!("new {agent}")))) }
                }
                Effect::Call { .. } => unreachable!(),
            });
        let told = told.collect();
        again.machine.tell(&again.program, &again.toolbox, told);
    }
    assert_eq!((asked, again.machine.answer()), (vec!["b".to_owned(), "c".to_owned()], "new c".to_owned()));
}
