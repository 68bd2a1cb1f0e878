//! What is wrong with a graph.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Check, one_of};
use crate::actor::{Edge, Node, NodeKind, Route, RouteKind};
use crate::template::check_expression;

impl Check<'_> {
    pub(super) fn graph(&mut self, name: &str, route: &Route, path: &str) {
        if route.nodes.is_empty() {
            return self.error(format!("{path}.nodes"), format!("the graph `{name}` has no nodes"));
        }
        for (key, set) in [
            ("operators", !route.operators.is_empty()),
            ("subscriptions", !route.subscriptions.is_empty()),
            ("bridge", route.bridge.is_some()),
        ] {
            if set {
                self.error(format!("{path}.{key}"), format!("`{key}` is for `type: stream`"));
            }
        }
        match route.entry_point.as_deref() {
            None => {
                let declared = route.nodes.values().any(|node| node.kind == NodeKind::Start);
                if !declared && route.nodes.len() > 1 {
                    self.error(
                        format!("{path}.entry_point"),
                        format!("the graph `{name}` needs an `entry_point`: the node where it begins"),
                    );
                }
            }
            Some(entry) => self.node_exists(route, entry, &format!("{path}.entry_point")),
        }
        for (at, exit) in route.exit_nodes.iter().enumerate() {
            self.node_exists(route, exit, &format!("{path}.exit_nodes[{at}]"));
        }
        for (id, node) in route.nodes.iter() {
            self.node(route, id, node, &format!("{path}.nodes.{id}"));
        }
        for (at, edge) in route.edges.iter().enumerate() {
            let path = format!("{path}.edges[{at}]");
            self.node_exists(route, &edge.source, &format!("{path}.source"));
            self.node_exists(route, &edge.target, &format!("{path}.target"));
            self.condition(&edge.condition, &format!("{path}.condition"));
        }
        self.circles(route, path);
        self.unreached(route, path);
    }

    fn node_exists(&mut self, route: &Route, id: &str, path: &str) {
        if !route.nodes.contains(id) && !route.is_start(id) && !route.is_end(id) {
            self.error(path, one_of(&format!("there is no node `{id}` in this graph"), route.nodes.keys()));
        }
    }

    fn condition(&mut self, condition: &Value, path: &str) {
        match condition {
            Value::Null => {}
            Value::String(text) => {
                if let Err(why) = check_expression(text) {
                    self.error(path, format!("the condition cannot be read: {why}"));
                }
            }
            Value::Object(map) if map.is_empty() => {}
            Value::Object(map) => {
                if map.contains_key("equals") != map.contains_key("context_value") {
                    self.error(path, "`context_value` and `equals` belong together");
                }
            }
            _ => self.error(
                path,
                "a condition is `{context_value: key, equals: value}`, `{key: value}`, or a text such as `not tests.passed`",
            ),
        }
    }

    fn node(&mut self, route: &Route, id: &str, node: &Node, path: &str) {
        let missing =
            |key: &str| format!("the node `{id}` is of `type: {}` and needs `{key}`", word(node.kind));
        match node.kind {
            NodeKind::Agent => match (&node.agent, &node.model) {
                (Some(agent), _) => self.agent_exists(agent, &format!("{path}.agent")),
                (None, Some(_)) => {}
                // The model at the top of a flat file stands for its nodes, too.
                (None, None) if self.definition.model.is_some() || self.flat => {}
                (None, None) => self.error(path, missing("agent")),
            },
            NodeKind::Tool if node.anonymous => {
                if node.code.is_none() {
                    self.error(path, "an anonymous tool needs `code`");
                }
            }
            NodeKind::Tool => {
                if node.tools.is_empty() {
                    self.error(path, missing("tools"));
                }
                for (at, tool) in node.tools.iter().enumerate() {
                    if !self.is_tool(tool) {
                        // Names without a namespace may be of tools that come with the program.
                        let known = self.definition.local_tools();
                        if !known.is_empty() && !is_plain_name(tool) {
                            self.error(format!("{path}.tools[{at}]"), format!("there is no tool `{tool}`"));
                        }
                    }
                }
            }
            NodeKind::Function => match node.function.as_deref() {
                None => self.error(path, missing("function")),
                Some(name) if self.is_tool(name) || name.contains(':') && self.definition.is_unsafe() => {}
                Some(name) => self.error(
                    format!("{path}.function"),
                    format!("`{name}` is no tool of this file and no registered tool"),
                ),
            },
            NodeKind::Conditional => {
                if node.condition.is_null() && node.conditions.is_empty() {
                    self.error(path, missing("condition"));
                }
                self.condition(&node.condition, &format!("{path}.condition"));
                for (at, branch) in node.conditions.iter().enumerate() {
                    let path = format!("{path}.conditions[{at}]");
                    self.condition(&Value::String(branch.check.clone()), &format!("{path}.check"));
                    self.node_exists(route, &branch.route_to, &format!("{path}.route_to"));
                }
            }
            NodeKind::Subgraph => match (&node.subgraph, &node.agent) {
                (Some(graph), _) => self.graph_exists(graph, &format!("{path}.subgraph")),
                (None, Some(actor)) => self.agent_exists(actor, &format!("{path}.agent")),
                (None, None) => self.error(path, missing("subgraph")),
            },
            NodeKind::MessageRouter => {
                if node.rules.is_empty() {
                    self.error(path, missing("rules"));
                }
                for (at, rule) in node.rules.iter().enumerate() {
                    self.node_exists(route, &rule.target, &format!("{path}.rules[{at}].target"));
                }
            }
            NodeKind::Start | NodeKind::End => {}
        }
        self.language_servers(&node.lsp, &node.lsp_capabilities, path);
    }

    /// In a flat file no circle at all; elsewhere one that a condition can leave (ACTOR-040, G-11).
    fn circles(&mut self, route: &Route, path: &str) {
        let conditional = |edge: &&Edge| is_condition(&edge.condition);
        let edges: Vec<&Edge> = if self.flat {
            route.edges.iter().collect()
        } else {
            // A router chooses, so each of its edges is one that is not always taken.
            let router = |edge: &Edge| {
                route.nodes.get(&edge.source).is_some_and(|node| {
                    node.kind == NodeKind::MessageRouter
                        || node.kind == NodeKind::Conditional && !node.conditions.is_empty()
                })
            };
            route.edges.iter().filter(|edge| !conditional(edge) && !router(edge)).collect()
        };
        let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for edge in edges {
            next.entry(&edge.source).or_default().push(&edge.target);
        }
        if self.flat {
            for (id, node) in route.nodes.iter() {
                next.entry(id)
                    .or_default()
                    .extend(node.conditions.iter().map(|branch| branch.route_to.as_str()));
            }
        }
        if let Some(circle) = find_circle(&next) {
            let message = if self.flat {
                format!("the graph goes in a circle: {}", circle.join(" -> "))
            } else {
                format!("the graph goes in a circle that no condition can leave: {}", circle.join(" -> "))
            };
            self.error(format!("{path}.edges"), message);
        }
    }

    fn unreached(&mut self, route: &Route, path: &str) {
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let starts = route
            .entry_point
            .as_deref()
            .into_iter()
            .chain(route.nodes.iter().filter(|(_, node)| node.kind == NodeKind::Start).map(|(id, _)| id));
        let mut todo: Vec<&str> = starts.collect();
        while let Some(id) = todo.pop() {
            if !reached.insert(id) {
                continue;
            }
            todo.extend(route.edges.iter().filter(|edge| edge.source == id).map(|edge| edge.target.as_str()));
            if let Some(node) = route.nodes.get(id) {
                todo.extend(node.rules.iter().map(|rule| rule.target.as_str()));
                todo.extend(node.conditions.iter().map(|branch| branch.route_to.as_str()));
                // A prefix such as `GOTO_` leads to any node.
                if node.kind == NodeKind::MessageRouter {
                    todo.extend(route.nodes.keys());
                }
            }
        }
        if route.entry_point.is_none() && route.nodes.len() == 1 {
            return;
        }
        if reached.iter().all(|id| !route.nodes.contains(id) && !route.is_start(id)) {
            return;
        }
        for (id, node) in route.nodes.iter() {
            if !reached.contains(id) && !matches!(node.kind, NodeKind::End | NodeKind::Start) {
                let path = format!("{path}.nodes.{id}");
                let message = format!("the node `{id}` is never reached");
                if self.flat { self.error(path, message) } else { self.warn(path, message) }
            }
        }
    }

    /// A graph must not run itself (ACTOR-068).
    pub(super) fn subgraph_circles(&mut self) {
        let definition = self.definition;
        let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, route) in definition.routes.iter().filter(|(_, route)| route.kind == RouteKind::Graph) {
            for node in route.nodes.values() {
                next.entry(name).or_default().extend(node.subgraph.as_deref());
                // An agent may be a graph of this file.
                let agent = node.agent.as_deref().and_then(|agent| definition.actors.get(agent));
                next.entry(name).or_default().extend(agent.and_then(|agent| agent.config.route.as_deref()));
            }
        }
        if let Some(circle) = find_circle(&next) {
            let first = circle.first().copied().unwrap_or_default();
            self.error(
                format!("routes.{first}"),
                format!("graphs run each other in a circle: {}", circle.join(" -> ")),
            );
        }
    }
}

/// A name such as tools that come with the program have.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn is_condition(condition: &Value) -> bool {
    match condition {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

/// The word of files for a kind of node.
fn word(kind: NodeKind) -> String {
    serde_json::to_value(kind).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A circle, its first node repeated at the end. Without recursion: graphs come from files.
pub(crate) fn find_circle<'n>(next: &BTreeMap<&'n str, Vec<&'n str>>) -> Option<Vec<&'n str>> {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for start in next.keys().copied() {
        let mut path: Vec<(&str, usize)> = vec![(start, 0)];
        let mut on_path: BTreeSet<&str> = BTreeSet::from([start]);
        while let Some((node, at)) = path.last_mut() {
            let node = *node;
            let follow = next.get(node).and_then(|targets| targets.get(*at)).copied();
            *at += 1;
            match follow {
                None => {
                    done.insert(node);
                    on_path.remove(node);
                    path.pop();
                }
                Some(target) if on_path.contains(target) => {
                    let from = path.iter().position(|(id, _)| *id == target).unwrap_or(0);
                    let mut circle: Vec<&str> = path[from..].iter().map(|(id, _)| *id).collect();
                    circle.push(target);
                    return Some(circle);
                }
                Some(target) if done.contains(target) => {}
                Some(target) => {
                    on_path.insert(target);
                    path.push((target, 0));
                }
            }
        }
    }
    None
}
