//! What of a definition runs when it is given a message, and how large it is.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActorDefinition, AgentKind, NodeKind, OperatorKind, Route, RouteKind};

/// What answers a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// An agent alone.
    Agent(String),
    /// A graph.
    Graph(String),
    /// Streams: the routes that get the message, in order.
    Streams(Vec<String>),
}

/// How large a definition is, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Nodes of its graphs; the agents of its streams where it has no graph.
    pub nodes: usize,
    /// Edges between them.
    pub edges: usize,
    /// Where it begins.
    pub entry: Option<String>,
    /// Where it ends.
    pub exit: Option<String>,
}

/// What a person says, as a stream.
pub const INPUT: &str = "__input__";

/// What is shown, as a stream.
pub const OUTPUT: &str = "__output__";

impl ActorDefinition {
    /// The agent that answers where no route says otherwise.
    pub fn default_agent(&self) -> Option<&str> {
        let named = self.cleveragents.default_actor.as_deref().filter(|name| self.actors.contains(name));
        named.or_else(|| self.actors.keys().next())
    }

    /// What answers a message; `None` for a definition without agents and routes.
    pub fn entry(&self) -> Option<Entry> {
        let mut inputs: Vec<String> = Vec::new();
        let mut add = |name: &str| {
            if self.routes.contains(name) && !inputs.iter().any(|known| known == name) {
                inputs.push(name.to_owned());
            }
        };
        for merge in &self.merges {
            if merge.sources.iter().any(|source| source == INPUT) {
                add(&merge.target);
            }
        }
        for (name, route) in self.routes.iter() {
            if route.subscriptions.iter().any(|source| source == INPUT) {
                add(name);
            }
        }
        if inputs.is_empty() {
            let targets: BTreeSet<&str> = self
                .merges
                .iter()
                .map(|merge| merge.target.as_str())
                .chain(self.splits.iter().flat_map(|split| split.targets.iter().map(String::as_str)))
                .collect();
            for (name, route) in self.routes.iter() {
                let fed = targets.contains(name);
                if route.kind == RouteKind::Stream && route.subscriptions.is_empty() && !fed {
                    inputs.push(name.to_owned());
                }
            }
        }
        if let [one] = inputs.as_slice()
            && self.routes.get(one).is_some_and(|route| route.kind == RouteKind::Graph)
            && self.routes.values().all(|route| route.kind == RouteKind::Graph)
        {
            return Some(Entry::Graph(one.clone()));
        }
        if !inputs.is_empty() {
            return Some(Entry::Streams(inputs));
        }
        let inner = self.inner_routes();
        let graphs =
            || self.routes.iter().filter(|(_, route)| route.kind == RouteKind::Graph).map(|(name, _)| name);
        if let Some(graph) = graphs().find(|name| !inner.contains(*name)).or_else(|| graphs().next()) {
            let own = self.default_agent().and_then(|name| self.actors.get(name));
            // Graphs that all belong to agents: the default agent decides.
            let route = own.and_then(|agent| agent.config.route.clone());
            let all_owned = graphs().all(|name| inner.contains(name));
            return Some(Entry::Graph(route.filter(|_| all_owned).unwrap_or_else(|| graph.to_owned())));
        }
        let name = self.default_agent()?;
        Some(Entry::Agent(name.to_owned()))
    }

    /// Routes that another route or an agent runs.
    fn inner_routes(&self) -> BTreeSet<&str> {
        let mut inner = BTreeSet::new();
        for route in self.routes.values() {
            for operator in route.operators.iter().filter(|o| o.kind == OperatorKind::GraphExecute) {
                inner.extend(operator.params.get("graph").and_then(Value::as_str));
            }
            inner.extend(route.nodes.values().filter_map(|node| node.subgraph.as_deref()));
            inner.extend(route.metadata.get("graph").and_then(Value::as_str));
        }
        inner.extend(self.actors.values().filter_map(|agent| agent.config.route.as_deref()));
        inner
    }

    /// How large it is (ACTOR-001: one agent is a graph of one node).
    pub fn shape(&self) -> Shape {
        let graphs: Vec<&Route> =
            self.routes.values().filter(|route| route.kind == RouteKind::Graph).collect();
        if !graphs.is_empty() {
            let main = match self.entry() {
                Some(Entry::Graph(name)) => self.routes.get(&name),
                _ => None,
            };
            let main = main.unwrap_or(graphs[0]);
            return Shape {
                nodes: graphs.iter().map(|route| route.nodes.len()).sum(),
                edges: graphs.iter().map(|route| route.edges.len()).sum(),
                entry: main.entry_point.clone(),
                exit: exits(main),
            };
        }
        let agents: Vec<String> = self
            .routes
            .values()
            .flat_map(|route| &route.operators)
            .filter_map(|operator| operator.params.get("agent").and_then(Value::as_str).map(str::to_owned))
            .collect();
        match (agents.first(), agents.last()) {
            (Some(first), Some(last)) => Shape {
                nodes: agents.len(),
                edges: agents.len() - 1,
                entry: Some(first.clone()),
                exit: Some(last.clone()),
            },
            _ => {
                let agent = self.default_agent().map(str::to_owned);
                Shape { nodes: 1, edges: 0, entry: agent.clone(), exit: agent }
            }
        }
    }

    /// The provider and the model it is shown with: those of the agent that is asked first.
    pub fn shown_model(&self) -> (Option<String>, Option<String>) {
        let first = self.default_agent().and_then(|name| self.actors.get(name));
        let with_model = first
            .filter(|agent| agent.kind != AgentKind::Tool)
            .or_else(|| self.actors.values().find(|agent| agent.kind != AgentKind::Tool));
        let Some(agent) = with_model else { return (None, None) };
        match self.backing(agent) {
            Ok(super::Backing::Model(name)) => match name.split_once('/') {
                Some((provider, model)) => (Some(provider.to_owned()), Some(model.to_owned())),
                None => (None, Some(name)),
            },
            Ok(super::Backing::Actor(name)) => (None, Some(name.to_string())),
            Err(_) => (self.provider.clone(), self.model.clone()),
        }
    }
}

/// Where a graph ends, for people.
fn exits(route: &Route) -> Option<String> {
    if !route.exit_nodes.is_empty() {
        return Some(route.exit_nodes.join(", "));
    }
    let leaves: Vec<&str> = route
        .nodes
        .iter()
        .filter(|(_, node)| node.kind != NodeKind::End)
        .map(|(name, _)| name)
        .filter(|name| {
            let mut from = route.edges.iter().filter(|edge| edge.source == *name).peekable();
            from.peek().is_none() || from.any(|edge| is_end(route, &edge.target))
        })
        .collect();
    (!leaves.is_empty()).then(|| leaves.join(", "))
}

/// Whether a name of a node means the end of its graph, which need not be declared.
pub(super) fn is_end(route: &Route, name: &str) -> bool {
    match route.nodes.get(name) {
        Some(node) => node.kind == NodeKind::End,
        None => matches!(name, "end" | "END" | "__end__"),
    }
}

/// Whether a name of a node means the beginning of its graph, which need not be declared.
pub(super) fn is_start(route: &Route, name: &str) -> bool {
    match route.nodes.get(name) {
        Some(node) => node.kind == NodeKind::Start,
        None => matches!(name, "start" | "START" | "__start__"),
    }
}

impl Route {
    /// Whether a name means the end of this graph, declared or not.
    pub fn is_end(&self, name: &str) -> bool {
        is_end(self, name)
    }

    /// Whether a name means the beginning of this graph, declared or not.
    pub fn is_start(&self, name: &str) -> bool {
        is_start(self, name)
    }
}
