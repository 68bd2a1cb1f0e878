//! What is wrong with a definition beyond the shape of its file: names that mean nothing, graphs that cannot run.

mod graph;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ActorDefinition, Agent, AgentKind, LocalTool, OperatorKind, Route, RouteKind};
use crate::language_server::binding::Lent;
use crate::template::is_template;

/// Something wrong, at a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The key it is about, such as `routes.main.edges[1].target`.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// The actor runs all the same.
    pub is_warning: bool,
}

/// Functions of bridges that come with the program.
pub const BRIDGE_FUNCTIONS: &[&str] = &["extract_graph_state", "flatten_to_stream"];

/// Classes of a graph's state that are known: all mean the usual state.
const STATE_CLASSES: &[&str] = &["GraphState", "MessagesState", "dict"];

struct Check<'d> {
    definition: &'d ActorDefinition,
    /// One graph at the top of its file: it may have no cycle, and every node must be reached.
    flat: bool,
    findings: Vec<Finding>,
}

/// Everything wrong with a definition, in the order of the file. `flat`: the file has one actor at its top.
pub fn check(definition: &ActorDefinition, flat: bool) -> Vec<Finding> {
    let mut check = Check { definition, flat, findings: Vec::new() };
    check.top();
    for (name, agent) in definition.actors.iter() {
        check.agent(name, agent);
    }
    for (name, route) in definition.routes.iter() {
        let path = format!("routes.{name}");
        check.state_class(route, &path);
        match route.kind {
            RouteKind::Graph => check.graph(name, route, &path),
            RouteKind::Stream => check.stream(route, &path),
        }
    }
    check.subgraph_circles();
    check.pipelines();
    check.findings
}

impl Check<'_> {
    fn error(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.findings.push(Finding { path: path.into(), message: message.into(), is_warning: false });
    }

    fn warn(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.findings.push(Finding { path: path.into(), message: message.into(), is_warning: true });
    }

    fn top(&mut self) {
        let definition = self.definition;
        if definition.actors.is_empty() && definition.routes.is_empty() {
            self.error("actors", "`actors` defines no actor");
        }
        if let Some(name) = &definition.cleveragents.default_actor
            && !definition.actors.contains(name)
        {
            let none = one_of("which is none of the actors, so the first is used", definition.actors.keys());
            self.warn("cleveragents.default_actor", format!("`default_actor` names `{name}`, {none}"));
        }
    }

    fn agent(&mut self, name: &str, agent: &Agent) {
        let path = format!("actors.{name}");
        match agent.kind {
            AgentKind::Llm => {
                if let Err(why) = self.definition.backing(agent) {
                    self.error(format!("{path}.config"), format!("the actor `{name}` cannot run: {why}"));
                }
            }
            AgentKind::Tool => {
                if agent.config.tools.is_empty() {
                    self.error(
                        format!("{path}.config"),
                        format!("the actor `{name}` is of `type: tool` and needs `tools`, at least one"),
                    );
                }
                if agent.config.response_format.is_some() {
                    self.error(
                        format!("{path}.config.response_format"),
                        "`response_format` is for actors with a model",
                    );
                }
            }
            AgentKind::Graph => match &agent.config.route {
                Some(route)
                    if self.definition.routes.get(route).is_some_and(|r| r.kind == RouteKind::Graph) => {}
                Some(route) => {
                    self.error(format!("{path}.config.route"), format!("`{route}` is no graph of this file"))
                }
                None if self.definition.routes.values().any(|r| r.kind == RouteKind::Graph) => {}
                None => self.error(
                    format!("{path}.config"),
                    format!("the actor `{name}` is of `type: graph` and needs a graph: `nodes` and `edges`"),
                ),
            },
        }
        self.tools(agent, &path);
        self.language_servers(&agent.lsp, &agent.lsp_capabilities, &path);
    }

    fn language_servers(&mut self, lsp: &Value, capabilities: &Value, path: &str) {
        // A template is known when it is rendered.
        if lsp.as_str().is_some_and(is_template) {
            return;
        }
        if let Err(why) = Lent::read(lsp, &Value::Null) {
            self.error(format!("{path}.lsp"), why);
        }
        if Lent::read(&Value::Null, capabilities).is_err() {
            let names = Agent::capability_names().join(", ");
            self.error(
                format!("{path}.lsp_capabilities"),
                format!("`lsp_capabilities` is `all`, or a list of {names}"),
            );
        }
    }

    fn tools(&mut self, agent: &Agent, path: &str) {
        let mut seen = BTreeSet::new();
        for (at, tool) in agent.config.tools.iter().enumerate() {
            let path = format!("{path}.config.tools[{at}]");
            if !seen.insert(tool.name.as_str()) {
                self.error(format!("{path}.name"), format!("there are two tools `{}`", tool.name));
            }
            self.tool(tool, &path);
        }
    }

    fn tool(&mut self, tool: &LocalTool, path: &str) {
        if tool.name.trim().is_empty() {
            self.error(format!("{path}.name"), "the name of a tool is empty");
        }
        if self.flat && !tool.name.contains('/') {
            self.error(
                format!("{path}.name"),
                format!("the tool `{0}` needs a namespace, such as `local/{0}`", tool.name),
            );
        }
        if tool.code.as_ref().is_some_and(|code| code.trim().is_empty()) {
            self.error(format!("{path}.code"), "`code` is empty");
        }
        if tool.code.is_none() && tool.input_schema.is_some() {
            self.warn(path, format!("the tool `{}` has no `code`: calling it will fail", tool.name));
        }
        for (at, parameter) in tool.parameters.iter().enumerate() {
            let path = format!("{path}.parameters[{at}]");
            if !is_identifier(&parameter.name) {
                let message =
                    format!("`{}` is no Python identifier, so no parameter can be called so", parameter.name);
                self.error(format!("{path}.name"), message);
            }
            if parameter.is_required() && parameter.default.as_ref().is_some_and(|value| !value.is_null()) {
                self.error(format!("{path}.default"), "`default` is for a parameter with `required: false`");
            }
        }
    }

    fn state_class(&mut self, route: &Route, path: &str) {
        if let Some(name) = route.state_class.as_deref().filter(|name| !STATE_CLASSES.contains(name)) {
            self.error(
                format!("{path}.state_class"),
                format!(
                    "there is no state class `{name}`; leave it out, or use {}",
                    STATE_CLASSES.join(", ")
                ),
            );
        }
    }

    fn stream(&mut self, route: &Route, path: &str) {
        for (key, set) in [
            ("nodes", !route.nodes.is_empty()),
            ("edges", !route.edges.is_empty()),
            ("entry_point", route.entry_point.is_some()),
        ] {
            if set {
                self.error(format!("{path}.{key}"), format!("`{key}` is for `type: graph`"));
            }
        }
        for (at, operator) in route.operators.iter().enumerate() {
            let path = format!("{path}.operators[{at}]");
            let named = |key: &str| operator.params.get(key).and_then(Value::as_str);
            match operator.kind {
                OperatorKind::Map => match named("agent") {
                    None => self.error(path, "a `map` needs `params: {agent: ...}`"),
                    Some(agent) => self.agent_exists(agent, &format!("{path}.params.agent")),
                },
                OperatorKind::GraphExecute => match named("graph") {
                    None => self.error(path, "a `graph_execute` needs `params: {graph: ...}`"),
                    Some(graph) => self.graph_exists(graph, &format!("{path}.params.graph")),
                },
            }
        }
        for (at, agent) in route.agents.iter().enumerate() {
            self.agent_exists(agent, &format!("{path}.agents[{at}]"));
        }
        if let Some(bridge) = &route.bridge {
            self.bridge(route, bridge, &format!("{path}.bridge"));
        }
    }

    fn bridge(&mut self, route: &Route, bridge: &super::Bridge, path: &str) {
        for (key, map, at) in [
            ("message_count_threshold", &bridge.upgrade_conditions, "upgrade_conditions"),
            ("idle_timeout", &bridge.downgrade_conditions, "downgrade_conditions"),
        ] {
            for (name, value) in map {
                let path = format!("{path}.{at}.{name}");
                if name != key {
                    self.error(path, format!("there is no condition `{name}` here; there is `{key}`"));
                } else if value.as_f64().is_none_or(|value| value <= 0.0) {
                    self.error(path, format!("`{key}` must be a number above 0"));
                }
            }
        }
        for (key, name) in
            [("state_extractor", &bridge.state_extractor), ("state_flattener", &bridge.state_flattener)]
        {
            let known = |name: &str| BRIDGE_FUNCTIONS.contains(&name) || self.is_tool(name);
            if let Some(name) = name.as_deref().filter(|name| !known(name)) {
                let message = format!(
                    "`{name}` is no tool of this file, no registered tool, and none of {}",
                    BRIDGE_FUNCTIONS.join(", ")
                );
                self.error(format!("{path}.{key}"), message);
            }
        }
        match route.metadata.get("graph").and_then(Value::as_str) {
            Some(graph) => {
                self.graph_exists(graph, &format!("{}.metadata.graph", path.trim_end_matches(".bridge")))
            }
            None if bridge.upgrade_conditions.is_empty() => {}
            None => self.warn(
                path,
                "the bridge leads nowhere: name the graph as `metadata: {graph: ...}` of the route",
            ),
        }
    }

    fn agent_exists(&mut self, name: &str, path: &str) {
        // With a namespace it is registered, or a model; that is looked up where it is registered.
        if !self.definition.actors.contains(name) && !name.contains('/') {
            let message =
                one_of(&format!("there is no actor `{name}` in this file"), self.definition.actors.keys());
            self.error(path, message);
        }
    }

    fn graph_exists(&mut self, name: &str, path: &str) {
        match self.definition.routes.get(name) {
            Some(route) if route.kind == RouteKind::Graph => {}
            Some(_) => self.error(path, format!("`{name}` is a stream, not a graph")),
            None => {
                let message = one_of(
                    &format!("there is no graph `{name}` in this file"),
                    self.definition.routes.keys(),
                );
                self.error(path, message);
            }
        }
    }

    /// A tool of this file, or one that has to be registered.
    fn is_tool(&self, name: &str) -> bool {
        name.contains('/') || self.definition.local_tools().iter().any(|tool| tool.name == name)
    }

    fn pipelines(&mut self) {
        let definition = self.definition;
        for (name, pipeline) in definition.pipelines.iter() {
            for (at, stage) in pipeline.stages.iter().enumerate() {
                let path = format!("pipelines.{name}.stages[{at}]");
                let key = match stage.kind.as_str() {
                    "agent" | "actor" => "agent",
                    known @ ("graph" | "stream" | "tool") => known,
                    other => {
                        self.error(
                            format!("{path}.type"),
                            format!("there is no stage of type `{other}`: use agent, graph, stream or tool"),
                        );
                        continue;
                    }
                };
                let named =
                    stage.config.get(key).or_else(|| stage.config.get(&stage.kind)).and_then(Value::as_str);
                let Some(named) = named else {
                    self.error(
                        path,
                        format!("a stage of type `{}` needs `config: {{{key}: ...}}`", stage.kind),
                    );
                    continue;
                };
                let path = format!("{path}.config.{key}");
                match key {
                    "agent" => self.agent_exists(named, &path),
                    "graph" => self.graph_exists(named, &path),
                    "stream" if !definition.routes.contains(named) => {
                        self.error(path, format!("there is no stream `{named}` in this file"));
                    }
                    "tool" if !self.is_tool(named) => {
                        self.error(path, format!("there is no tool `{named}` in this file"));
                    }
                    _ => {}
                }
            }
        }
    }
}

impl ActorDefinition {
    /// The tools that are written in the file, those of its anonymous nodes left out.
    pub fn local_tools(&self) -> Vec<&LocalTool> {
        self.actors
            .values()
            .flat_map(|agent| &agent.config.tools)
            .filter(|tool| !tool.is_reference())
            .collect()
    }
}

/// A sentence with the names there are.
fn one_of<'n>(sentence: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.take(20).collect();
    if names.is_empty() { sentence.to_owned() } else { format!("{sentence}: there are {}", names.join(", ")) }
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}
