//! Graphs: nodes that are due run, then edges say which are due next (2.5).

use agents_domain::actor::{Edge, NodeKind, Route};
use serde_json::{Map, Value, json};

use super::condition::{View, taken};
use super::machine::Out;
use super::program::{Program, Who, anonymous_name};
use super::router;
use super::state::{Checkpoint, GraphTask, Machine, Parent, Task, TaskKind};
use super::toolbox::Toolbox;

impl Machine {
    /// A graph is given a message.
    pub(crate) fn begin_graph(
        &mut self,
        program: &Program,
        of: usize,
        route: &str,
        message: &str,
        parent: Parent,
    ) {
        let entry = match program.route(of, route) {
            Ok(of) => entry(of),
            Err(why) => return self.fail(why),
        };
        let Some(entry) = entry else {
            return self.fail(format!("the graph `{route}` does not say where it begins"));
        };
        let graph = GraphTask {
            route: route.to_owned(),
            input: message.to_owned(),
            step: 0,
            waiting: vec![(entry, message.to_owned())],
            running: Vec::new(),
            done: Vec::new(),
            outputs: Map::new(),
            messages: vec![message.to_owned()],
            results: Vec::new(),
            jumps: Default::default(),
        };
        self.add_task(of, parent, TaskKind::Graph(Box::new(graph)));
    }

    /// Goes on with a graph as far as it can without an effect.
    pub(super) fn advance_graph(
        &mut self,
        program: &Program,
        toolbox: &Toolbox,
        id: u64,
    ) -> Result<(), String> {
        loop {
            let Some(Task { of, kind: TaskKind::Graph(graph), .. }) = self.tasks.get(&id) else {
                return Ok(());
            };
            let of = *of;
            let route = program.route(of, &graph.route)?;
            if !graph.running.is_empty() {
                return Ok(());
            }
            if graph.waiting.is_empty() {
                if self.end_step(program, id, of)? {
                    return Ok(());
                }
                continue;
            }
            // Together, or one after another as the file has them.
            let is_parallel = |node: &str| route.nodes.get(node).is_some_and(|node| node.parallel);
            let count = if route.parallel_execution {
                graph.waiting.len()
            } else if graph.waiting.first().is_some_and(|(node, _)| is_parallel(node)) {
                graph.waiting.iter().take_while(|(node, _)| is_parallel(node)).count()
            } else {
                1
            };
            let group = {
                let Some(graph) = self.graph_mut(id) else { return Ok(()) };
                let group: Vec<(String, String)> = graph.waiting.drain(..count).collect();
                graph.running.extend(group.iter().map(|(node, _)| node.clone()));
                group
            };
            for (node, input) in group {
                self.begin_node(program, toolbox, id, of, &node, &input)?;
            }
            if self.failure.is_some() {
                return Ok(());
            }
        }
    }

    fn graph_mut(&mut self, id: u64) -> Option<&mut GraphTask> {
        match self.tasks.get_mut(&id) {
            Some(Task { kind: TaskKind::Graph(graph), .. }) => Some(graph),
            _ => None,
        }
    }

    fn begin_node(
        &mut self,
        program: &Program,
        toolbox: &Toolbox,
        id: u64,
        of: usize,
        name: &str,
        input: &str,
    ) -> Result<(), String> {
        let Some(graph) = self.graph_mut(id) else { return Ok(()) };
        let route_name = graph.route.clone();
        let route = program.route(of, &route_name)?;
        let parent = Parent::Node { task: id, node: name.to_owned() };
        let at = Some((route_name.clone(), name.to_owned()));
        let Some(node) = route.nodes.get(name) else {
            // `start` need not be declared.
            self.node_done(id, name, Out::text(input));
            return Ok(());
        };
        match node.kind {
            NodeKind::Start | NodeKind::End => {
                self.node_done(id, name, Out { text: input.to_owned(), value: json!(input) })
            }
            NodeKind::Agent => {
                let who = match &node.agent {
                    Some(agent) => Who::Named(agent.clone()),
                    None => Who::Node { route: route_name, node: name.to_owned() },
                };
                self.begin_agent(program, of, who, at, input, parent);
            }
            NodeKind::Tool => {
                let tools =
                    if node.anonymous { vec![anonymous_name(&route_name, name)] } else { node.tools.clone() };
                self.begin_tools(of, tools, node.parameters.clone(), at, input, parent);
            }
            NodeKind::Function => {
                let function = node.function.clone().unwrap_or_default();
                if toolbox.find(&function).is_none() {
                    return Err(format!("the function `{function}` of the node `{name}` is no tool"));
                }
                self.begin_tools(of, vec![function], node.parameters.clone(), at, input, parent);
            }
            NodeKind::Subgraph => match (&node.subgraph, &node.agent) {
                (Some(graph), _) => self.begin_graph(program, of, graph, input, parent),
                (None, Some(actor)) => {
                    self.begin_agent(program, of, Who::Named(actor.clone()), at, input, parent)
                }
                (None, None) => return Err(format!("the node `{name}` names no graph")),
            },
            NodeKind::Conditional => {
                let (mut found, mut target) = (false, None);
                {
                    let context = self.contexts.get(&of).cloned().unwrap_or_default();
                    let Some(graph) = self.graph_mut(id) else { return Ok(()) };
                    let view = view(graph, &context, input, Out::text(input).value, None);
                    if !node.condition.is_null() {
                        found = view.holds(&node.condition)?;
                    }
                    for branch in &node.conditions {
                        if view.holds(&Value::String(branch.check.clone()))? {
                            found = true;
                            target = Some(branch.route_to.clone());
                            break;
                        }
                    }
                }
                if let (Some(target), Some(graph)) = (target, self.graph_mut(id)) {
                    graph.jumps.insert(name.to_owned(), target);
                }
                self.node_done(id, name, Out { text: input.to_owned(), value: json!({ "result": found }) });
            }
            NodeKind::MessageRouter => {
                let mut context = self.contexts.remove(&of).unwrap_or_default();
                let routed = router::route(route, node, input, &mut context);
                if let Some(target) = &routed.target {
                    if !context.is_object() {
                        context = json!({});
                    }
                    context["next_node"] = target.as_str().into();
                }
                self.contexts.insert(of, context);
                if let Some(graph) = self.graph_mut(id) {
                    if routed.shown {
                        graph.jumps.insert(name.to_owned(), "__end__".to_owned());
                    } else if let Some(target) = routed.target {
                        graph.jumps.insert(name.to_owned(), target);
                    }
                }
                self.node_done(id, name, Out::text(routed.text));
            }
        }
        Ok(())
    }

    /// A node that needed no effect is done.
    fn node_done(&mut self, id: u64, name: &str, out: Out) {
        if let Some(graph) = self.graph_mut(id) {
            graph.running.retain(|known| known != name);
            graph.outputs.insert(name.to_owned(), out.value);
            graph.done.push((name.to_owned(), out.text));
        }
    }

    /// All nodes of a step are done: `true` when the graph is over.
    fn end_step(&mut self, program: &Program, id: u64, of: usize) -> Result<bool, String> {
        let context = self.contexts.get(&of).cloned().unwrap_or_default();
        let Some(graph) = self.graph_mut(id) else { return Ok(true) };
        let route = program.route(of, &graph.route)?;
        let mut done = std::mem::take(&mut graph.done);
        // The order of the file, whatever was done first.
        done.sort_by_key(|(node, _)| route.nodes.position(node));
        graph.step += 1;
        let mut next: Vec<(String, Vec<(String, String)>)> = Vec::new();
        for (node, text) in &done {
            graph.messages.push(text.clone());
            let is_exit = route.exit_nodes.contains(node) || route.is_end(node);
            let targets = if is_exit { Vec::new() } else { follow(route, graph, &context, node, text)? };
            if targets.is_empty() {
                graph.results.push(text.clone());
            }
            for target in targets {
                if route.is_end(&target) && !route.nodes.contains(&target) {
                    graph.results.push(text.clone());
                    continue;
                }
                match next.iter_mut().find(|(known, _)| *known == target) {
                    Some((_, inputs)) => inputs.push((node.clone(), text.clone())),
                    None => next.push((target, vec![(node.clone(), text.clone())])),
                }
            }
        }
        graph.jumps.clear();
        next.sort_by_key(|(node, _)| route.nodes.position(node));
        graph.waiting = next.into_iter().map(|(node, inputs)| (node, joined(inputs))).collect();
        let (step, over) = (graph.step, graph.waiting.is_empty());
        let name = graph.route.clone();
        if !over && step >= route.step_limit() {
            return Err(format!(
                "the graph `{name}` took {step} steps without an end; `metadata: {{recursion_limit: ...}}` of the route allows more"
            ));
        }
        let result = graph.results.join("\n\n");
        if route.checkpointing || route.enable_time_travel || route.checkpoint_dir.is_some() {
            self.checkpoints.push(Checkpoint {
                route: name,
                step,
                dir: route.checkpoint_dir.clone(),
                keep_all: route.enable_time_travel,
            });
        }
        if over {
            self.finish(program, id, Out::text(result));
        }
        Ok(over)
    }
}

/// Where a graph begins.
fn entry(route: &Route) -> Option<String> {
    let declared =
        || route.nodes.iter().find(|(_, node)| node.kind == NodeKind::Start).map(|(id, _)| id.to_owned());
    let only = || route.nodes.keys().next().filter(|_| route.nodes.len() == 1).map(str::to_owned);
    route.entry_point.clone().or_else(declared).or_else(only)
}

/// The input of a node: what the one before it put out, or what each of several did.
fn joined(mut inputs: Vec<(String, String)>) -> String {
    if inputs.len() == 1 {
        return inputs.pop().map(|(_, text)| text).unwrap_or_default();
    }
    let parts = inputs.into_iter().map(|(node, text)| format!("## {node}\n{text}"));
    parts.collect::<Vec<_>>().join("\n\n")
}

fn view<'a>(
    graph: &'a GraphTask,
    context: &'a Value,
    text: &'a str,
    output: Value,
    jump: Option<&String>,
) -> View<'a> {
    let next = jump.map(|target| json!(target)).or_else(|| context.get("next_node").cloned());
    View {
        context,
        outputs: &graph.outputs,
        state: json!({
            "message": text,
            "messages": graph.messages,
            "next_node": next,
            "step": graph.step,
        }),
        input: &graph.input,
        text,
        output,
    }
}

/// The nodes after a node.
fn follow(
    route: &Route,
    graph: &GraphTask,
    context: &Value,
    node: &str,
    text: &str,
) -> Result<Vec<String>, String> {
    let is_start = route.is_start(node);
    let leaves = |edge: &&Edge| edge.source == node || (is_start && route.is_start(&edge.source));
    let edges: Vec<&Edge> = route.edges.iter().filter(leaves).collect();
    let jump = graph.jumps.get(node);
    let output = graph.outputs.get(node).cloned().unwrap_or_default();
    if let Some(target) = jump {
        // Edges that ask for `next_node` go before the jump itself.
        let asks = |edge: &&&Edge| {
            edge.condition.get("context_value").and_then(Value::as_str) == Some("next_node")
                || edge.condition.get("next_node").is_some()
        };
        let asking: Vec<&Edge> = edges.iter().filter(asks).copied().collect();
        let found = taken(&asking, &view(graph, context, text, output, jump))?;
        if !found.is_empty() {
            return Ok(found.into_iter().map(|edge| edge.target.clone()).collect());
        }
        return Ok(vec![target.clone()]);
    }
    let found = taken(&edges, &view(graph, context, text, output, None))?;
    if found.is_empty()
        && edges.is_empty()
        && route.nodes.get(node).is_some_and(|n| n.kind == NodeKind::MessageRouter)
    {
        return Err(format!("the router `{node}` has no rule for the message, and no edge leaves it"));
    }
    let mut targets: Vec<String> = Vec::new();
    for edge in found {
        if !targets.contains(&edge.target) {
            targets.push(edge.target.clone());
        }
    }
    Ok(targets)
}
