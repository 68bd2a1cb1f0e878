//! Actor files: both forms, templates, variables, and where mistakes are.

use std::collections::BTreeMap;

use agents_config::{Problem, Reading, load_actor};
use agents_domain::actor::{ActorDefinition, AgentKind, Backing, Entry, NodeKind, RouteKind};
use serde_json::{Value, json};

use crate::{lines, pointed_at};

fn nothing(_: &str) -> Option<String> {
    None
}

fn load(text: &str) -> Result<ActorDefinition, Vec<Problem>> {
    load_with(text, &[], None)
}

fn load_with(
    text: &str,
    variables: &[(&str, &str)],
    context: Option<Value>,
) -> Result<ActorDefinition, Vec<Problem>> {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let find = |name: &str| variables.get(name).cloned();
    let servers = [("local/pyright".parse().unwrap(), vec!["python".to_owned()])];
    let reading = Reading {
        variables: Some(&find),
        context: context.as_ref(),
        servers: &servers,
        ..Reading::default()
    };
    load_actor(text, "a.yaml", &reading).map(|loaded| loaded.value)
}

fn good(text: &str) -> ActorDefinition {
    load(text).unwrap_or_else(|problems| panic!("{}", lines(&problems)))
}

/// The problems of a text, one a line.
fn bad(text: &str) -> String {
    match load(text) {
        Ok(_) => "it loads".to_owned(),
        Err(problems) => lines(&problems),
    }
}

fn example(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/actors");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// An LLM actor with more lines in its config, 6 spaces deep.
fn llm(config: &str) -> String {
    format!("name: local/x\nactors:\n  a:\n    type: llm\n    config:\n      actor: openai/gpt-4\n{config}")
}

#[test]
fn every_example_loads_in_the_engine_and_in_the_editor() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/actors");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = example(&name);
        seen += 1;
        let home = [("HOME", "/home/u")];
        if let Err(problems) = load_with(&text, &home, None) {
            panic!("{name}:\n{}", lines(&problems));
        }
        if let Err(problems) = load_actor(&text, &name, &Reading::default()) {
            panic!("{name} in an editor:\n{}", lines(&problems));
        }
        assert_eq!(agents_config::kind_of(&text).map(|kind| kind.name), Some("actor"), "{name}");
    }
    assert!(seen >= 18, "{seen}");
}

// ACTOR-051, ACTOR-053, 2.3: the example with templates between its keys
#[test]
fn structural_templates_make_actors_nodes_and_edges() {
    let paper = good(&example("paper-writer.yaml"));
    let actors: Vec<&str> = paper.actors.keys().collect();
    assert_eq!(
        actors,
        ["orchestrator", "writer", "assembler", "reviewer_methods", "reviewer_domain", "reviewer_style"]
    );
    let graph = paper.routes.get("writing_graph").unwrap();
    assert_eq!((graph.nodes.len(), graph.edges.len()), (6, 10));
    assert_eq!(paper.merges[0].sources, ["paper_output", "progress_output"]);
    assert_eq!(paper.routes.get("progress_stream").unwrap().kind, RouteKind::Stream);
    // Variables have their types.
    let lead = &paper.actors.get("orchestrator").unwrap().config;
    assert_eq!((lead.max_tokens, lead.max_history), (Some(8192), Some(100)));
    assert!(!paper.cleveragents.is_unsafe);
    let style = paper.actors.get("reviewer_style").unwrap();
    assert_eq!(paper.backing(style), Ok(Backing::Model("openai/gpt-4".to_owned())));
}

// ACTOR-050, ACTOR-053: prompts are rendered later, with the variables of the loops they stood in
#[test]
fn prompts_of_the_examples_render_with_their_own_context() {
    for (file, expected) in [
        (
            "support-bot.yaml",
            vec![(
                "support",
                "You are a technical support specialist for Acme Corp.\n\nThis is an enterprise customer.",
            )],
        ),
        (
            "paper-writer.yaml",
            vec![
                ("orchestrator", "    1. Abstract\n"),
                ("orchestrator", ">>> 2. Introduction"),
                ("orchestrator", "Progress: section 2\nof 9."),
                ("writer", "Format: LATEX"),
                ("assembler", "--- Results > Qualitative ---\n[MISSING]"),
                ("reviewer_domain", "You are Dr. Domain, an expert reviewer\nspecializing in AI alignment."),
                ("reviewer_domain", "- Novelty of contributions\n"),
                ("reviewer_style", "Apply strict academic standards."),
            ],
        ),
        (
            "research-pipeline.yaml",
            vec![("orchestrator", "Deadline: 2026-03-01. Prioritize breadth over depth.")],
        ),
    ] {
        let definition = good(&example(file));
        let mut context = Value::Object(definition.global_context.clone());
        agents_domain::template::merge(&mut context, &json!({"section_content": {}}));
        for (actor, words) in expected {
            let prompt = definition.actors.get(actor).unwrap().config.system_prompt.clone().unwrap();
            let shown = agents_domain::template::render(&prompt, &json!({ "context": context })).unwrap();
            assert!(shown.contains(words), "{file} {actor}:\n{shown}");
        }
    }
}

// ACTOR-001, G-47
#[test]
fn one_agent_is_a_graph_of_one_node() {
    let one = good(&llm(""));
    let shape = one.shape();
    assert_eq!((shape.nodes, shape.edges), (1, 0));
    assert_eq!(one.entry(), Some(Entry::Agent("a".to_owned())));
    let reviewer = good(&example("code-reviewer.yaml")).shape();
    assert_eq!((reviewer.nodes, reviewer.edges, reviewer.entry.as_deref()), (3, 3, Some("analyze")));
}

// ACTOR-002
#[test]
fn names_have_a_namespace_and_small_letters() {
    assert!(
        bad("actors:\n  a:\n    type: llm\n    config: {actor: openai/x}\n")
            .contains("name: the key `name` is missing")
    );
    for name in ["Local/X", "x", "local/a.b"] {
        let text = llm("").replace("local/x", name);
        let problems = load(&text).unwrap_err();
        assert_eq!(pointed_at(&text, &problems[0]), name);
        assert_eq!(problems[0].field_path, "name");
    }
}

// ACTOR-007, G-19
#[test]
fn json_and_yaml_say_the_same() {
    let yaml = good(&llm("      system_prompt: \"Hi {{ context.x }}\"\n      max_tokens: ${T:12}\n"));
    let json = good(
        "{\n\t\"name\": \"local/x\",\n\t\"actors\": {\"a\": {\"type\": \"llm\", \"config\": {\n\t\t\"actor\": \"openai/gpt-4\",\n\t\t\"system_prompt\": \"Hi {{ context.x }}\", \"max_tokens\": \"${T:12}\"}}}\n}\n",
    );
    assert_eq!(yaml, json);
    assert_eq!(json.actors.get("a").unwrap().config.max_tokens, Some(12));
}

// ACTOR-008
#[test]
fn tags_that_make_objects_are_refused() {
    let text = llm("      system_prompt: !!python/object/apply:os.system [ls]\n");
    assert!(bad(&text).contains("is not known here"), "{}", bad(&text));
}

// ACTOR-012
#[test]
fn actors_and_agents_are_one_thing() {
    assert_eq!(good(&llm("")), good(&llm("").replace("actors:", "agents:")));
    assert!(bad(&format!("{}agents: {{}}\n", llm(""))).contains("`actors` and `agents` mean the same"));
    assert!(bad("name: local/x\n").contains("the key `actors` is missing"));
}

// ACTOR-013
#[test]
fn a_typing_error_is_shown_with_what_was_meant() {
    let text = llm("      systm_prompt: x\n");
    assert_eq!(
        bad(&text),
        "7:7 actors.a.config.systm_prompt: there is no key `systm_prompt`: did you mean `system_prompt`?\n"
    );
    let free = llm("      options: {top_p: 1, whatever: [1]}\n") + "global_context: {any: {thing: 1}}\n";
    assert_eq!(good(&free).actors.get("a").unwrap().config.options["whatever"], json!([1]));
}

// ACTOR-014, ACTOR-015, ACTOR-016, ACTOR-020
#[test]
fn values_that_do_not_fit_are_refused_at_their_place() {
    for (text, expected) in [
        (
            "name: local/x\nactors:\n  a:\n    type: llm\n".to_owned(),
            "actors.a.config: the key `config` of `actors.a` is missing",
        ),
        (
            llm("").replace("type: llm", "type: foo"),
            "actors.a.type: `actors.a.type` must be one of `llm`, `tool`, `graph`",
        ),
        (
            llm("      temperature: 2.1\n"),
            "7:20 actors.a.config.temperature: `actors.a.config.temperature` must be at most 2",
        ),
        (llm("      temperature: -0.1\n"), "must be at least 0"),
        (llm("      max_tokens: 0\n"), "must be at least 1"),
        (llm("      max_history: 0\n"), "must be at least 1"),
        (
            format!("{}cleveragents: {{logging: {{level: LOUD}}}}\n", llm("")),
            "must be one of `DEBUG`, `INFO`, `WARNING`, `ERROR`",
        ),
        (format!("{}cleveragents: {{version: \"2.0\"}}\n", llm("")), "this program reads version \"3.0\""),
        (llm("    lsp_context_enrichment: {hover: true}\n"), "there is no key `hover`"),
        (llm("    lsp_capabilities: [hoover]\n"), "`lsp_capabilities` is `all`, or a list of diagnostics"),
        (llm("    lsp: {}\n"), "`lsp` is empty"),
        (llm("    lsp: {auto: true, languages: [c]}\n"), "keep one of them"),
    ] {
        assert!(bad(&text).contains(expected), "{text}\n{}", bad(&text));
    }
    let defaults = good(&llm(""));
    assert_eq!(defaults.cleveragents, agents_domain::actor::Settings::default());
    let agent = defaults.actors.get("a").unwrap();
    assert_eq!((agent.config.temperature, agent.config.max_tokens), (None, None));
    // ACTOR-021
    let remembers = agent.remembers();
    assert_eq!((remembers.enabled, remembers.turns), (false, Some(50)));
}

// ACTOR-017
#[test]
fn without_a_template_engine_braces_are_text() {
    let text = format!(
        "{}cleveragents:\n  template_engine: NONE\nglobal_context: {{x: 1}}\n",
        llm("      system_prompt: \"{{ context.x }}\"\n    lsp: null\n")
    );
    let definition = good(&text);
    assert_eq!(definition.actors.get("a").unwrap().config.system_prompt.as_deref(), Some("{{ context.x }}"));
}

// ACTOR-019
#[test]
fn a_model_is_needed() {
    let text = "name: local/x\nactors:\n  a:\n    type: llm\n    config: {temperature: 1}\n";
    assert_eq!(
        bad(text),
        "5:13 actors.a.config: the actor `a` cannot run: a model is missing: `provider` and `model`, or `actor: provider/model`\n"
    );
}

// ACTOR-024
#[test]
fn a_tool_actor_needs_tools_with_code() {
    let tool = |tools: &str| {
        format!("name: local/x\nactors:\n  a:\n    type: tool\n    config:\n      tools: {tools}\n")
    };
    assert!(bad(&tool("[]")).contains("needs `tools`, at least one"));
    assert!(bad(&tool("[{name: a, code: x, language: python}]")).contains("there is no key `language`"));
    assert!(bad(&tool("[{name: a, code: x}, {name: a, code: y}]")).contains("there are two tools `a`"));
    assert_eq!(good(&tool("[{name: a, code: x}]")).local_tools().len(), 1);
}

// ACTOR-028, ACTOR-029, ACTOR-034, ACTOR-035
#[test]
fn a_flat_file_says_what_its_type_needs() {
    let flat = |more: &str| format!("name: local/x\ndescription: D\n{more}");
    for (text, expected) in [
        ("name: local/x\ntype: llm\nmodel: gpt-4\n".to_owned(), "the key `description` is missing"),
        (flat("type: llm\n"), "3:7 model: an actor of `type: llm` needs `model`"),
        (flat("type: tool\n"), "needs `tools`"),
        (
            flat("type: tool\ntools: [files/x]\nlsp: [local/pyright]\n"),
            "5:1 lsp: an actor of `type: tool` takes no `lsp`",
        ),
        (flat("type: graph\nmodel: gpt-4\n"), "needs `route`"),
        (
            flat("type: llm\nmodel: gpt-4\ntools: [count]\n"),
            "5:9 tools[0].name: the tool `count` needs a namespace",
        ),
        (
            flat(
                "type: llm\nmodel: gpt-4\ntools:\n  - name: u/c\n    code: x\n    parameters:\n      - {name: a-b, type: str, description: D}\n",
            ),
            "9:16 tools[0].parameters[0].name: `a-b` is no Python identifier",
        ),
        (
            flat(
                "type: llm\nmodel: gpt-4\ntools:\n  - name: u/c\n    code: x\n    parameters:\n      - {name: a, type: str, description: D, default: 1}\n",
            ),
            "`default` is for a parameter with `required: false`",
        ),
        (flat("type: llm\nmodel: zork-1\n"), "the `provider` of the model `zork-1` is missing"),
        (
            flat("type: llm\nmodel: gpt-4\ntemperature: 3\n"),
            "5:14 temperature: `temperature` must be at most 2",
        ),
    ] {
        assert!(bad(&text).contains(expected), "{text}\n{}", bad(&text));
    }
    let definition = load_with(&example("flat-llm.yaml"), &[("HOME", "/home/u")], None).unwrap();
    let agent = definition.actors.get("counter").unwrap();
    assert_eq!(definition.backing(agent), Ok(Backing::Model("openai/gpt-4".to_owned())));
    assert_eq!(agent.env_vars["WORK_DIR"], "/home/u/workspace");
    assert_eq!((&agent.env_vars["MAX_RETRIES"], &agent.env_vars["DEBUG"]), (&json!(3), &json!(false)));
    // ACTOR-031
    let remembers = agent.remembers();
    assert_eq!((remembers.enabled, remembers.messages, remembers.turns), (true, Some(10), None));
    let names: Vec<&str> = definition.local_tools().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["utils/count_lines"]);
}

// ACTOR-036 to ACTOR-041
#[test]
fn a_flat_graph_is_checked_node_by_node() {
    let graph = example("flat-graph.yaml");
    let definition = good(&graph);
    let route = definition.routes.get("main").unwrap();
    assert_eq!(route.nodes.keys().collect::<Vec<_>>(), ["look", "tests", "choose", "done", "mend"]);
    assert_eq!(route.entry_point.as_deref(), Some("look"));
    let tests = route.nodes.get("tests").unwrap();
    assert_eq!((tests.kind, tests.tools.clone()), (NodeKind::Tool, vec!["local/run-tests".to_owned()]));
    assert_eq!(tests.parameters["quick"], true);
    assert_eq!(route.nodes.get("choose").unwrap().conditions.len(), 2);
    assert_eq!(route.edges[2].priority, Some(1));
    assert_eq!(definition.entry(), Some(Entry::Graph("main".to_owned())));
    for (from, to, expected) in [
        ("  entry_node: look\n", "", "the key `entry_node` of `route` is missing"),
        ("  exit_nodes: [done, mend]\n", "", "the key `exit_nodes` of `route` is missing"),
        (
            "entry_node: look",
            "entry_node: lok",
            "route.entry_point: there is no node `lok` in this graph: there are look, tests",
        ),
        ("exit_nodes: [done, mend]", "exit_nodes: [dne]", "route.exit_nodes[0]: there is no node `dne`"),
        (
            "from_node: look\n      to_node: tests",
            "from_node: look\n      to_node: tsts",
            "route.edges[0].target: there is no node `tsts`",
        ),
        ("- id: done", "- id: look", "there are two nodes `look`; the first is on line 7"),
        ("- id: done", "- id: d.one", "`d.one` is no id of a node"),
        (
            "    - from_node: choose\n      to_node: mend\n      condition: not tests.passed\n",
            "    - [mend, look]\n",
            "the graph goes in a circle: ",
        ),
        (
            "- check: \"True\"\n            route_to: mend",
            "- check: \"True\"\n            route_to: done",
            "it loads",
        ),
        ("condition: not tests.passed", "condition: not not (", "the condition cannot be read"),
        ("prompt: You look.", "promt: You look.", "there is no key `promt`"),
        ("      description: Says so\n", "", "the key `description` of `route.nodes[3]` is missing"),
    ] {
        assert!(graph.contains(from), "{from}");
        let text = graph.replacen(from, to, 1);
        assert!(bad(&text).contains(expected), "{from} -> {to}\n{}", bad(&text));
    }
    let orphan = graph.replacen("    - from_node: look\n      to_node: tests\n", "    - [look, choose]\n", 1);
    assert!(bad(&orphan).contains("the node `tests` is never reached"), "{}", bad(&orphan));
}

// ACTOR-042
#[test]
fn both_spellings_of_the_shared_context_are_the_same() {
    let short = good(&format!("{}global_context: {{k: 1}}\n", llm("")));
    assert_eq!(short, good(&format!("{}context: {{global: {{k: 1}}}}\n", llm(""))));
    assert!(
        bad(&format!("{}context: {{global: {{}}}}\nglobal_context: {{}}\n", llm("")))
            .contains("mean the same")
    );
}

// ACTOR-043
#[test]
fn the_run_s_context_goes_before_the_file_s() {
    let text = format!(
        "{}    lsp_capabilities:\n      - {{{{ context.one }}}}\nglobal_context:\n  one: hover\n",
        llm("")
    );
    assert_eq!(good(&text).actors.get("a").unwrap().lsp_capabilities, json!(["hover"]));
    let run = load_with(&text, &[], Some(json!({"one": "rename"}))).unwrap();
    assert_eq!(run.actors.get("a").unwrap().lsp_capabilities, json!(["rename"]));
}

// ACTOR-044
#[test]
fn what_a_variable_holds_is_never_rendered() {
    let text = format!(
        "{}description: ${{EVIL}}\nglobal_context: {{x: 1}}\n",
        llm("      system_prompt: \"{{ context.x }} ${EVIL}\"\n")
    );
    let definition = load_with(&text, &[("EVIL", "{{ context.x }}{% raw %}")], None).unwrap();
    assert_eq!(definition.description.as_deref(), Some("{{ context.x }}{% raw %}"));
    let prompt = definition.actors.get("a").unwrap().config.system_prompt.clone().unwrap();
    let shown = agents_domain::template::render(&prompt, &json!({"context": {"x": 1}})).unwrap();
    assert_eq!(shown, "1 {{ context.x }}{% raw %}");
}

// ACTOR-045
#[test]
fn a_file_without_marks_is_plain_yaml() {
    let definition = good(&llm("      system_prompt: \"a {# b #} c\"\n"));
    assert_eq!(definition.actors.get("a").unwrap().config.system_prompt.as_deref(), Some("a {# b #} c"));
}

// ACTOR-052
#[test]
fn without_a_context_templates_stay_what_they_are() {
    let definition = good(&format!(
        "{}description: \"{{{{ context.what }}}}\"\n",
        llm("      temperature: \"{{ context.t }}\"\n      system_prompt: \"{{ context.who }}\"\n")
    ));
    assert_eq!(definition.description.as_deref(), Some("{{ context.what }}"));
    let config = &definition.actors.get("a").unwrap().config;
    assert_eq!((config.temperature, config.system_prompt.as_deref()), (None, Some("{{ context.who }}")));
    let late = load_with(&llm("      temperature: \"{{ context.t }}\"\n"), &[], Some(json!({"t": 0.5})));
    assert!(lines(&late.unwrap_err()).contains("leave the quotes out"));
    let late = load_with(&llm("      temperature: {{ context.t }}\n"), &[], Some(json!({"t": 0.5})));
    assert_eq!(late.unwrap().actors.get("a").unwrap().config.temperature, Some(0.5));
}

// ACTOR-051: what structure depends on has to be known
#[test]
fn structure_without_a_context_is_refused() {
    let text = "name: local/x\nactors:\n  {% for r in context.all %}\n  {{ r }}:\n    type: llm\n    config: {actor: openai/x}\n  {% endfor %}\n";
    let problems = load(text).unwrap_err();
    assert!(problems[0].message.contains("give a `global_context`"), "{}", lines(&problems));
    assert_eq!(pointed_at(text, &problems[0]), "{% for r in context.all %}");
}

// ACTOR-054
#[test]
fn what_templates_leave_behind_is_tidied() {
    let text = "name: local/x\nglobal_context: {on: true, names: [a, b]}\nactors:\n  {% for n in context.names %}\n\n  {{ n }}:\n    {% if context.on %}\n    type: llm\n    {% endif %}\n    config: {actor: openai/x}\n  {% endfor %}\n";
    assert_eq!(good(text).actors.keys().collect::<Vec<_>>(), ["a", "b"]);
    let pairs = "name: local/x\nglobal_context: {on: true}\nactors:\n  a:\n    type: llm\n    config:\n      {% for k in ['provider', 'model'] %}{{ k }}: openai {% endfor %}\n\n      system_prompt: |\n        key: a other: b\n";
    let config = good(pairs).actors.get("a").unwrap().config.clone();
    assert_eq!((config.provider.as_deref(), config.model.as_deref()), (Some("openai"), Some("openai")));
    assert_eq!(config.system_prompt.as_deref(), Some("key: a other: b\n"));
}

// ACTOR-055, ACTOR-056, ACTOR-057, G-18
#[test]
fn variables_are_put_in_with_their_types() {
    let text = llm(
        "      options:\n        list: [\"${A}\", {deep: \"${B:x}\"}]\n        int: ${I:-3}\n        bool: \"${T:TRUE}\"\n        float: ${F:2.50}\n        text: \"3\"\n        empty: \"${E:}\"\n        escaped: \"$${A}\"\n        mixed: \"${A}/4\"\n        huge: ${H:99999999999999999999}\n",
    );
    let definition = load_with(&text, &[("A", "7")], None).unwrap();
    assert_eq!(
        Value::Object(definition.actors.get("a").unwrap().config.options.clone()),
        json!({"list": [7, {"deep": "x"}], "int": -3, "bool": true, "float": 2.5, "text": "3", "empty": "",
            "escaped": "${A}", "mixed": "7/4", "huge": "99999999999999999999"})
    );
    let unset = llm("      system_prompt: ${NOT_SET}\n");
    let problems = load(&unset).unwrap_err();
    assert!(problems[0].message.contains("`NOT_SET` is not set"), "{}", lines(&problems));
    assert_eq!(pointed_at(&unset, &problems[0]), "${NOT_SET}");
    // An editor does not know the environment.
    assert!(load_actor(&unset, "a", &Reading::default()).is_ok());
    assert!(load_actor(&llm("      max_tokens: ${NOT_SET}\n"), "a", &Reading::default()).is_ok());
}

// ACTOR-058, ACTOR-059, ACTOR-061, ACTOR-063, ACTOR-073
#[test]
fn routes_are_checked_node_by_node() {
    let graph = |body: &str| format!("{}routes:\n  g:\n    type: graph\n{body}", llm(""));
    let node = |node: &str| graph(&format!("    nodes: {{n: {node}}}\n    edges: []\n    entry_point: n\n"));
    for (text, expected) in [
        (
            graph(
                "    nodes: {n: {type: agent, agent: a}, m: {type: agent, agent: a}}\n    edges: [[n, m]]\n",
            ),
            "needs an `entry_point`",
        ),
        (graph("    entry_point: n\n"), "has no nodes"),
        (format!("{}routes:\n  g:\n    operators: []\n", llm("")), "the key `type` of `routes.g` is missing"),
        (node("{type: agent}"), "routes.g.nodes.n: the node `n` is of `type: agent` and needs `agent`"),
        (node("{type: agent, agent: b}"), "there is no actor `b` in this file: there are a"),
        (node("{type: function}"), "needs `function`"),
        (node("{type: function, function: f}"), "`f` is no tool of this file"),
        (node("{type: tool}"), "needs `tools`"),
        (node("{type: conditional}"), "needs `condition`"),
        (node("{type: subgraph}"), "needs `subgraph`"),
        (node("{type: subgraph, subgraph: h}"), "there is no graph `h`"),
        (node("{type: subgraph, subgraph: g}"), "graphs run each other in a circle: g -> g"),
        (node("{type: message_router}"), "needs `rules`"),
        (
            node("{type: message_router, rules: [{type: prefix, match: x, target: m}]}"),
            "rules[0].target: there is no node `m`",
        ),
        (node("{type: robot}"), "must be one of `agent`, `function`"),
        (node("{type: agent, agent: a, timeout: 0}"), "must be at least 1"),
        (
            graph(
                "    nodes: {n: {type: agent, agent: a}}\n    edges:\n      - source: x\n        target: n\n    entry_point: n\n",
            ),
            "12:17 routes.g.edges[0].source: there is no node `x`",
        ),
        (
            format!(
                "{}routes:\n  s:\n    type: stream\n    operators: [{{type: map, params: {{agent: b}}}}]\n",
                llm("")
            ),
            "there is no actor `b`",
        ),
        (
            format!(
                "{}routes:\n  s:\n    type: stream\n    operators: [{{type: graph_execute, params: {{graph: b}}}}]\n",
                llm("")
            ),
            "there is no graph `b`",
        ),
        (format!("{}routes:\n  s:\n    type: stream\n    buffer_size: 0\n", llm("")), "must be at least 1"),
        // ACTOR-067
        (
            graph(
                "    nodes: {n: {type: agent, agent: a}}\n    edges: []\n    entry_point: n\n    state_class: Mine\n",
            ),
            "there is no state class `Mine`",
        ),
        // ACTOR-079
        (
            format!("{}pipelines: {{p: {{metadata: {{}}}}}}\n", llm("")),
            "the key `stages` of `pipelines.p` is missing",
        ),
        (
            format!("{}pipelines: {{p: {{stages: [{{name: s, type: odd}}]}}}}\n", llm("")),
            "there is no stage of type `odd`",
        ),
        (format!("{}prompts: {{p: 1}}\n", llm("")), "`prompts.p` must be a text"),
    ] {
        assert!(bad(&text).contains(expected), "{text}\n{}", bad(&text));
    }
}

// G-06, G-07, G-08
#[test]
fn graphs_are_spelled_in_many_ways() {
    let flow = |nodes: &str, edges: &str| {
        good(&format!("{}routes:\n  g:\n    type: graph\n    entry_point: start\n    nodes: {nodes}\n    edges: {edges}\n", llm("")))
            .routes
            .get("g")
            .cloned()
            .unwrap()
    };
    let usual = flow(
        "{m: {type: agent, agent: a}, t: {type: tool, tools: [x/y]}}",
        "[{source: start, target: m}, {source: m, target: t}, {source: t, target: end}]",
    );
    for (nodes, edges) in [
        (
            "[{name: m, type: agent, agent: a}, {name: t, type: tool, tool: x/y}]",
            "[[start, m], [m, t], [t, end]]",
        ),
        (
            "[{id: m, type: agent, actor: a}, {id: t, type: tool, config: {tool_name: x/y}}]",
            "[{from: start, to: m}, {from: m, to: t}, {from: t, to: end}]",
        ),
        (
            "{m: {type: agent, agent: a}, t: {type: tool, tools: x/y}}",
            "[{from_node: start, to_node: m}, {from_node: m, to_node: t}, {from_node: t, to_node: end}]",
        ),
    ] {
        assert_eq!(flow(nodes, edges), usual, "{nodes} {edges}");
    }
    let fan =
        flow("{m: {type: agent, agent: a}, t: {type: tool, tools: [x/y]}}", "[{from: start, to: [m, t]}]");
    assert_eq!(fan.edges.len(), 2);
}

// ACTOR-079, 2.8
#[test]
fn templates_with_parameters_make_actors() {
    let text = format!(
        "{}templates:\n  expert:\n    type: llm\n    config:\n      actor: openai/gpt-4\n      system_prompt: \"You know {{{{ topic }}}}.\"\n      temperature: 0.5\ninstances:\n  rustacean:\n    template: expert\n    params: {{topic: Rust}}\nglobal_context: {{x: 1}}\n",
        llm("")
    );
    let definition = good(&text);
    let made = definition.actors.get("rustacean").unwrap();
    assert_eq!((made.kind, made.config.temperature), (AgentKind::Llm, Some(0.5)));
    assert_eq!(made.config.system_prompt.as_deref(), Some("You know Rust."));
    assert!(
        bad(&text.replace("template: expert", "template: exprt")).contains("there is no template `exprt`")
    );
}

// LSP-015, 3.2
#[test]
fn a_template_asks_the_registry_for_language_servers() {
    let text = example("lsp-template.yaml");
    let lent = |definition: ActorDefinition| definition.actors.get("dynamic_analyst").unwrap().lsp.clone();
    assert_eq!(
        lent(load_with(&text, &[], Some(json!({"project_languages": ["python"]}))).unwrap()),
        json!(["local/pyright"])
    );
    assert_eq!(lent(load_with(&text, &[], Some(json!({"project_languages": ["go"]}))).unwrap()), json!([]));
    assert_eq!(lent(good(&text)), Value::Null);
}

// Problems in files with templates point at what was written
#[test]
fn a_mistake_behind_templates_is_shown_where_it_was_written() {
    let text = example("paper-writer.yaml");
    for (from, to, message) in [
        ("temperature: 0.2", "temperature: 2.5", "must be at most 2"),
        ("      temperature: 0.3\n", "      temprature: 0.3\n", "there is no key `temprature`"),
        ("entry_point: plan", "entry_point: plam", "there is no node `plam`"),
    ] {
        let broken = text.replacen(from, to, 1);
        let problems = load(&broken).unwrap_err();
        let first = problems
            .iter()
            .find(|p| p.message.contains(message))
            .unwrap_or_else(|| panic!("{}", lines(&problems)));
        let word = to.trim().split(": ").nth(usize::from(!message.contains("no key"))).unwrap();
        assert_eq!(pointed_at(&broken, first), word, "{}", lines(&problems));
    }
    let broken = text.replacen(
        "{% if context.enable_assembly %}\n      assemble:",
        "{% if context.enable_assembly | nope %}\n      assemble:",
        1,
    );
    let problems = load(&broken).unwrap_err();
    assert!(problems[0].message.contains("nope"), "{}", lines(&problems));
    assert_eq!(
        problems[0].range.start.line as usize,
        broken.lines().position(|l| l.contains("| nope")).unwrap()
    );
}

#[test]
fn hostile_files_end_in_an_error() {
    let bomb = format!(
        "{}global_context: {{x: 1}}\ndescription: \"{{% for a in range(100000) %}}{{% for b in range(100000) %}}x{{% endfor %}}{{% endfor %}}\"\n",
        llm("")
    );
    assert!(bad(&bomb).contains("it does more than a template of a file may do"), "{}", bad(&bomb));
    let fat = format!("{}global_context: {{x: 1}}\ndescription: \"{{{{ 'x' * 5000000 }}}}\"\n", llm(""));
    assert!(bad(&fat).contains("becomes larger than 1 MiB"), "{}", bad(&fat));
    let large = format!("{}# {}\n", llm(""), "x".repeat(1024 * 1024));
    assert!(bad(&large).contains("larger than 1048576 bytes"));
    let odd = format!("{}description: \"{{{{ 1 }}}} \u{0380}\"\n", llm(""));
    assert!(bad(&odd).contains("cannot be used here"));
    let include =
        format!("{}global_context: {{x: 1}}\ndescription: \"{{% include '/etc/passwd' %}}\"\n", llm(""));
    assert!(bad(&include).contains("the template cannot be rendered"));
    let long: String = (0..20_000).map(|at| format!("      - [n{at}, n{}]\n", at + 1)).collect();
    let nodes: String = (0..=20_000).map(|at| format!("      n{at}: {{type: agent, agent: a}}\n")).collect();
    let chain = format!(
        "{}routes:\n  g:\n    type: graph\n    entry_point: n0\n    nodes:\n{nodes}    edges:\n{long}",
        llm("")
    );
    if chain.len() < 1024 * 1024 {
        assert_eq!(good(&chain).routes.get("g").unwrap().edges.len(), 20_000);
    }
    assert!(load_actor("", "a", &Reading { variables: Some(&nothing), ..Reading::default() }).is_err());
}

mod random {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        // No text makes the loader panic, and problems stay within the text.
        #[test]
        fn pieces_of_examples_never_panic(from in 0usize..9000, len in 0usize..400, put in "[{}%# \n:a-]{0,8}") {
            let text = example("paper-writer.yaml");
            let at = |wanted: usize| (0..=wanted.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let (start, end) = (at(from), at(from + len));
            let broken = format!("{}{put}{}", &text[..start], &text[end..]);
            for reading in [Reading::default(), Reading { variables: Some(&nothing), ..Reading::default() }] {
                if let Err(problems) = load_actor(&broken, "a", &reading) {
                    for problem in problems {
                        prop_assert!((problem.range.end.line as usize) <= broken.lines().count());
                    }
                }
            }
        }
    }
}
