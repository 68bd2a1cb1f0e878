mod nodes;
mod streams;

use std::collections::BTreeMap;

use agents_domain::actor::ActorDefinition;
use agents_domain::ports::model::{ChatMessage, ChatReply, ChatRequest, ModelFailure, ModelFailureKind};
use agents_domain::ports::tool::ToolSpec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Effect, Machine, Program, Status, Told, Toolbox};

/// A model answers with a text, or with tool calls.
fn reply(value: Value) -> ChatReply {
    let calls = value.get("calls").cloned().unwrap_or_else(|| json!([]));
    let text = value.as_str().or_else(|| value.get("text").and_then(Value::as_str)).unwrap_or_default();
    let stop = if calls.as_array().is_some_and(Vec::is_empty) { "done" } else { "tools" };
    let usage = json!({ "input": 10, "output": 2, "usd": 0.5 });
    serde_json::from_value(
        json!({ "text": text, "calls": calls, "stop": stop, "usage": usage, "model": "m" }),
    )
    .unwrap()
}

/// What tests keep of a run.
#[derive(Default)]
struct Seen {
    asked: Vec<(String, String, ChatRequest)>,
    /// How many effects were there at once.
    rounds: Vec<usize>,
    called: Vec<(String, Value)>,
}

struct World {
    program: Program,
    machine: Machine,
    toolbox: Toolbox,
    seen: Seen,
}

fn definition(value: Value) -> ActorDefinition {
    let mut whole = json!({ "name": "local/x" });
    agents_domain::template::merge(&mut whole, &value);
    serde_json::from_value(whole).unwrap()
}

impl World {
    fn new(value: Value) -> Self {
        Self::of(vec![definition(value)])
    }

    fn of(library: Vec<ActorDefinition>) -> Self {
        let program = Program::new(&library).unwrap();
        let spec =
            |name: &str, input: Value| ToolSpec { name: name.to_owned(), input, ..ToolSpec::default() };
        let path = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"],
            "additionalProperties": false });
        let registered = vec![
            spec("builtin/read_file", path),
            spec("lsp/hover", json!({"type": "object"})),
            spec("lsp/rename", json!({"type": "object"})),
            spec("lsp/symbols", json!({"type": "object"})),
        ];
        let by_skill = BTreeMap::from([("local/files".to_owned(), vec!["builtin/read_file".to_owned()])]);
        let toolbox = Toolbox::new(registered, &program.local_tools(), by_skill);
        let machine = Machine::new(&program, &Value::Null);
        Self { program, machine, toolbox, seen: Seen::default() }
    }

    /// Says something; `model` answers for (agent, input, turn), `tool` for (tool, args).
    fn say(
        &mut self,
        message: &str,
        mut model: impl FnMut(&str, &str, usize) -> Value,
        mut tool: impl FnMut(&str, &Value) -> Result<Value, String>,
    ) -> Result<String, String> {
        self.machine.say(&self.program, &self.toolbox, message);
        loop {
            // Whatever is between two rounds survives being written down.
            let written = serde_json::to_string(&self.machine).unwrap();
            self.machine = serde_json::from_str(&written).unwrap();
            let effects = self.machine.effects(&self.program, &self.toolbox);
            assert_eq!(
                effects,
                self.machine.effects(&self.program, &self.toolbox),
                "asked twice, it says the same"
            );
            match self.machine.status() {
                Status::Done => return Ok(self.machine.answer()),
                Status::Failed => return Err(self.machine.failure.clone().unwrap()),
                Status::Running => {}
            }
            self.seen.rounds.push(effects.len());
            let told = effects
                .into_iter()
                .map(|effect| match effect {
                    Effect::Ask { task, agent, model: name, request, .. } => {
                        let turn = request
                            .messages
                            .iter()
                            .filter(|m| matches!(m, ChatMessage::Assistant { .. }))
                            .count();
                        let input = request.messages.iter().rev().find_map(|m| match m {
                            ChatMessage::User { text } => Some(text.clone()),
                            _ => None,
                        });
                        let answer = model(&agent, &input.unwrap_or_default(), turn);
                        self.seen.asked.push((agent, name, *request));
                        let answer = match answer.get("fail") {
                            Some(_) => Err(ModelFailure::new(ModelFailureKind::Unavailable, "no connection")),
                            None => Ok(reply(answer)),
                        };
                        Told::Answer { task, answer }
                    }
                    Effect::Call { task, id, tool: name, args, .. } => {
                        let result = tool(&name, &args);
                        self.seen.called.push((name, args));
                        Told::Result { task, id, result }
                    }
                })
                .collect();
            self.machine.tell(&self.program, &self.toolbox, told);
        }
    }

    fn ask(
        &mut self,
        message: &str,
        model: impl FnMut(&str, &str, usize) -> Value,
    ) -> Result<String, String> {
        self.say(message, model, |_, _| Err("no tools here".to_owned()))
    }
}

fn llm() -> Value {
    json!({ "type": "llm", "config": { "actor": "openai/gpt-4" } })
}

fn echo(agent: &str, input: &str, _: usize) -> Value {
    json!(format!("{agent}({input})"))
}

fn graph(agents: &[&str], route: Value) -> Value {
    let actors: serde_json::Map<String, Value> =
        agents.iter().map(|name| ((*name).to_owned(), llm())).collect();
    json!({ "actors": actors, "routes": { "g": route } })
}

fn agent_nodes(names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": "agent", "agent": name })))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

// ACTOR-001, ACTOR-020, ACTOR-022
#[test]
fn one_agent_answers_with_what_its_file_says() {
    let mut world = World::new(json!({
        "actors": { "a": { "type": "llm", "config": { "provider": "openai", "model": "gpt-4",
            "system_prompt": "Topic: {{ context.topic }}, {{ prompts.p }}{% include 't' %}",
            "temperature": 0.5, "options": { "top_p": 1, "seed": 7 } } } },
        "global_context": { "topic": "tea" }, "prompts": { "p": "now" }, "templates": { "t": { "template": "!" } },
    }));
    assert_eq!(world.ask("hi", echo).unwrap(), "a(hi)");
    let (_, model, request) = &world.seen.asked[0];
    assert_eq!(model, "openai/gpt-4");
    assert_eq!(request.system.as_deref(), Some("Topic: tea, now!"));
    assert_eq!((request.options.temperature, request.options.max_tokens), (Some(0.5), None));
    assert_eq!(Value::Object(request.options.extra.clone()), json!({ "top_p": 1, "seed": 7 }));
    assert_eq!((world.machine.usage.input, world.machine.usage.usd), (10, Some(0.5)));
}

// ACTOR-053: a prompt that cannot be rendered names its actor
#[test]
fn a_prompt_that_cannot_be_rendered_fails_the_run() {
    let mut world = World::new(json!({ "actors": { "a": { "type": "llm", "config": { "actor": "openai/x",
        "system_prompt": "\n{{ context.a.b.c }}" } } } }));
    let why = world.ask("hi", echo).unwrap_err();
    assert!(why.contains("`a`") && why.contains("line 2"), "{why}");
}

// ACTOR-021
#[test]
fn an_agent_remembers_as_many_turns_as_its_file_says() {
    let mut world = World::new(json!({ "actors": { "a": { "type": "llm", "config": { "actor": "openai/x",
        "memory_enabled": true, "max_history": 2 } } } }));
    for n in 1..=4 {
        world.ask(&format!("q{n}"), |_, input, _| json!(format!("r-{input}"))).unwrap();
    }
    let texts: Vec<&str> = world.seen.asked[3]
        .2
        .messages
        .iter()
        .map(|m| match m {
            ChatMessage::User { text }
            | ChatMessage::Assistant { text, .. }
            | ChatMessage::Tool { text, .. } => text.as_str(),
        })
        .collect();
    assert_eq!(texts, ["q2", "r-q2", "q3", "r-q3", "q4"]);
}

// ACTOR-031
#[test]
fn memory_is_limited_by_messages_and_tokens_and_sums_up_what_it_drops() {
    let asked = |memory: Value| {
        let mut agent = llm();
        agent["memory"] = memory;
        let mut world = World::new(json!({ "actors": { "a": agent } }));
        for n in 1..=4 {
            world.ask(&format!("question {n}"), |_, _, _| json!("answer")).unwrap();
        }
        world.seen.asked[3].2.messages.clone()
    };
    assert_eq!(asked(json!({ "enabled": false })).len(), 1);
    assert_eq!(asked(json!({})).len(), 7);
    assert_eq!(asked(json!({ "max_messages": 2 })).len(), 3);
    assert_eq!(asked(json!({ "max_tokens": 10 })).len(), 5);
    let summed = asked(json!({ "max_messages": 2, "summarize_old": true }));
    assert!(
        matches!(&summed[0], ChatMessage::User { text } if text.contains("- asked: question 1")),
        "{summed:?}"
    );
}

// ACTOR-023
#[test]
fn an_answer_that_does_not_fit_its_schema_is_asked_for_again() {
    let file = json!({ "actors": { "a": { "type": "llm", "config": { "actor": "openai/x",
        "response_format": { "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } } } } } });
    let mut world = World::new(file.clone());
    let answers = ["no", "{\"n\": \"x\"}", "{\"n\": 3}"];
    assert_eq!(world.ask("hi", |_, _, turn| json!(answers[turn])).unwrap(), "{\"n\": 3}");
    assert!(world.seen.asked[0].2.options.response_format.is_some());
    let why = World::new(file).ask("hi", |_, _, _| json!("never")).unwrap_err();
    assert!(why.contains("do not fit its `response_format`"), "{why}");
}

// ACTOR-025, TOOL calls of models
#[test]
fn a_model_calls_the_tools_of_its_skills_and_no_others() {
    let mut agent = llm();
    agent["skills"] = json!(["local/files"]);
    let mut world = World::new(json!({ "actors": { "a": agent } }));
    let call = |tool: &str, args: Value| json!({ "call_id": tool, "tool": tool, "arguments": args });
    let answer = world.say(
        "hi",
        |_, _, turn| match turn {
            0 => json!({ "text": "look", "calls": [
                call("builtin/read_file", json!({ "path": "a" })),
                call("builtin/read_file", json!({ "file": "a" })),
                call("lsp/hover", json!({})),
            ] }),
            _ => json!("seen"),
        },
        |_, args| Ok(json!({ "content": format!("of {args}") })),
    );
    assert_eq!(answer.unwrap(), "seen");
    assert_eq!(world.seen.called, [("builtin/read_file".to_owned(), json!({ "path": "a" }))]);
    let results: Vec<&str> = world.seen.asked[1]
        .2
        .messages
        .iter()
        .filter_map(|m| match m {
            ChatMessage::Tool { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!(results[0].contains("of {"), "{results:?}");
    assert!(
        results[1].starts_with("failed: ") && results[2].contains("there is no tool `lsp/hover`"),
        "{results:?}"
    );
}

#[test]
fn a_model_that_only_calls_tools_has_to_answer_in_the_end() {
    let mut agent = llm();
    agent["skills"] = json!(["local/files"]);
    let mut world = World::new(json!({ "actors": { "a": agent } }));
    let answer = world.say(
        "hi",
        |_, _, turn| match turn {
            0..30 => json!({ "calls": [{ "call_id": turn.to_string(), "tool": "builtin/read_file", "arguments": { "path": "a" } }] }),
            _ => json!("done"),
        },
        |_, _| Ok(json!("x")),
    );
    assert_eq!(answer.unwrap(), "done");
    assert_eq!(world.seen.called.len(), 25);
    assert!(world.seen.asked.last().unwrap().2.tools.is_empty());
}

// LSP-016, LSP-017
#[test]
fn each_node_has_the_language_server_tools_that_it_is_lent() {
    let mut planner = llm();
    planner["lsp"] = json!(["local/pyright"]);
    planner["lsp_capabilities"] = json!(["hover", "symbols"]);
    let mut implementer = llm();
    implementer["lsp"] = json!({ "auto": true });
    let mut world = World::new(
        json!({ "actors": { "planner": planner, "implementer": implementer, "plain": llm() },
        "routes": { "g": { "type": "graph", "entry_point": "plan", "nodes": {
            "plan": { "type": "agent", "agent": "planner" },
            "do": { "type": "agent", "agent": "implementer" },
            "again": { "type": "agent", "agent": "plain", "lsp": ["local/pyright"], "lsp_capabilities": ["rename"] },
            "end": { "type": "agent", "agent": "plain" },
        }, "edges": [
            { "source": "plan", "target": "do" }, { "source": "do", "target": "again" }, { "source": "again", "target": "end" },
        ] } } }),
    );
    world.ask("hi", echo).unwrap();
    let tools: Vec<Vec<&str>> =
        world.seen.asked.iter().map(|(_, _, r)| r.tools.iter().map(|t| t.name.as_str()).collect()).collect();
    assert_eq!(
        tools,
        [
            vec!["lsp/hover", "lsp/symbols"],
            vec!["lsp/hover", "lsp/rename", "lsp/symbols"],
            vec!["lsp/rename"],
            vec![]
        ]
    );
}

// ACTOR-064
#[test]
fn branches_run_together_and_meet_once() {
    let route = |parallel: bool| {
        json!({ "type": "graph", "entry_point": "dispatch", "parallel_execution": parallel,
        "nodes": agent_nodes(&["dispatch", "a", "b", "c", "synth"]),
        "edges": [
            { "source": "dispatch", "target": "a" }, { "source": "dispatch", "target": "b" }, { "source": "dispatch", "target": "c" },
            { "source": "a", "target": "synth" }, { "source": "b", "target": "synth" }, { "source": "c", "target": "synth" },
        ] })
    };
    let names = ["dispatch", "a", "b", "c", "synth"];
    let mut together = World::new(graph(&names, route(true)));
    let answer = together.ask("x", echo).unwrap();
    assert_eq!(answer, "synth(## a\na(dispatch(x))\n\n## b\nb(dispatch(x))\n\n## c\nc(dispatch(x)))");
    assert_eq!(together.seen.rounds, [1, 3, 1]);
    let mut one_by_one = World::new(graph(&names, route(false)));
    assert_eq!(one_by_one.ask("x", echo).unwrap(), answer);
    assert_eq!(one_by_one.seen.rounds, [1, 1, 1, 1, 1]);
}

// ACTOR-062, ACTOR-063, ACTOR-038, G-09
#[test]
fn edges_are_taken_by_their_conditions() {
    let route = |edges: Value| {
        json!({ "type": "graph", "entry_point": "classify",
        "nodes": agent_nodes(&["classify", "code", "write", "else"]), "edges": edges })
    };
    let run = |edges: Value, said: &str| {
        let mut world = World::new(graph(&["classify", "code", "write", "else"], route(edges)));
        world.machine.contexts.insert(0, json!({ "flags": { "deep": true } }));
        let said = said.to_owned();
        world
            .ask(
                "x",
                move |agent, input, turn| {
                    if agent == "classify" { json!(said) } else { echo(agent, input, turn) }
                },
            )
            .unwrap()
    };
    let by_word = json!([
        { "source": "classify", "target": "code", "condition": { "category": "CODING" } },
        { "source": "classify", "target": "write", "condition": { "category": "WRITING" } },
        { "source": "classify", "target": "else" },
    ]);
    assert_eq!(run(by_word.clone(), " coding\n"), "code( coding\n)");
    assert_eq!(run(by_word.clone(), "{\"category\": \"WRITING\"}"), "write({\"category\": \"WRITING\"})");
    assert_eq!(run(by_word, "other"), "else(other)");
    let by_context = json!([
        { "source": "classify", "target": "code", "condition": { "context_value": "flags.deep", "equals": true } },
        { "source": "classify", "target": "else" },
    ]);
    assert_eq!(run(by_context, "y"), "code(y)");
    let by_expression = |first: i64, second: i64| {
        json!([
            { "source": "classify", "target": "code", "condition": "'y' in output", "priority": first },
            { "source": "classify", "target": "write", "condition": "len(message) > 0", "priority": second },
        ])
    };
    assert_eq!(run(by_expression(2, 1), "y"), "code(y)");
    assert_eq!(run(by_expression(1, 2), "y"), "write(y)");
    assert_eq!(run(by_expression(2, 1), "n"), "write(n)");
}

// G-11, 2.5
#[test]
fn a_loop_ends_by_its_condition_or_by_the_limit_of_steps() {
    let route = |limit: Value| {
        json!({ "type": "graph", "entry_point": "try", "nodes": agent_nodes(&["try", "test"]),
        "metadata": limit, "edges": [
            { "source": "try", "target": "test" },
            { "source": "test", "target": "try", "condition": { "again": true } },
        ] })
    };
    let mut tries = 0;
    let mut world = World::new(graph(&["try", "test"], route(json!({}))));
    let answer = world.ask("x", |agent, _, _| {
        if agent == "test" {
            tries += 1;
        }
        json!(json!({ "again": tries < 3, "tries": tries }).to_string())
    });
    assert_eq!(answer.unwrap(), "{\"again\":false,\"tries\":3}");
    let forever = |_: &str, _: &str, _: usize| json!("{\"again\": true}");
    let why = World::new(graph(&["try", "test"], route(json!({})))).ask("x", forever).unwrap_err();
    assert!(why.contains("took 25 steps"), "{why}");
    let why = World::new(graph(&["try", "test"], route(json!({ "recursion_limit": 4 }))))
        .ask("x", forever)
        .unwrap_err();
    assert!(why.contains("took 4 steps"), "{why}");
}

/// A graph of up to six agents with edges at random, some with conditions.
fn any_graph() -> impl Strategy<Value = Value> {
    let edge = (0..6usize, 0..6usize, 0..3u8);
    (2..6usize, proptest::collection::vec(edge, 0..14), any::<bool>()).prop_map(|(count, edges, parallel)| {
        let names: Vec<String> = (0..count).map(|at| format!("n{at}")).collect();
        let refs: Vec<&str> = names.iter().map(String::as_str).collect();
        let edges: Vec<Value> = edges
            .into_iter()
            .map(|(from, to, kind)| {
                let condition = match kind {
                    0 => Value::Null,
                    1 => json!({ "go": true }),
                    _ => json!("len(message) < 40"),
                };
                json!({ "source": names[from % count], "target": names[to % count], "condition": condition })
            })
            .collect();
        graph(
            &refs,
            json!({ "type": "graph", "entry_point": "n0", "nodes": agent_nodes(&refs), "edges": edges,
            "parallel_execution": parallel }),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    // Whatever the graph, a run ends, and the same answers lead to the same end.
    #[test]
    fn runs_end_and_are_the_same_each_time(file in any_graph()) {
        let run = || {
            let mut world = World::new(file.clone());
            let end = world.ask("x", |agent, input, _| {
                json!(json!({ "go": input.len() % 2 == 0, "text": agent }).to_string())
            });
            (end, world.seen.rounds, serde_json::to_string(&world.machine).unwrap())
        };
        let first = run();
        prop_assert_eq!(&first, &run());
        prop_assert!(first.1.len() <= 25 * 6);
    }
}

#[test]
fn what_people_say_meanwhile_reaches_the_next_question() {
    let mut world = World::new(graph(
        &["a"],
        json!({ "type": "graph", "entry_point": "a", "edges": [], "nodes": agent_nodes(&["a"]) }),
    ));
    world.machine.guidance.push("be brief".to_owned());
    world.ask("x", echo).unwrap();
    assert_eq!(world.seen.asked[0].2.system.as_deref(), Some("What the person said meanwhile:\n- be brief"));
}
