//! Streams: messages that flow from route to route, through operators, merges and splits (2.7).

use std::collections::BTreeMap;

use agents_domain::actor::{OUTPUT, OperatorKind, RouteKind, StreamKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::graph::{Machine, Program};
use crate::graph::{Out, Parent, PipelineTask, Task, TaskKind, Who};

/// Messages that one message of a person may lead to.
const MOST_HOPS: u32 = 1000;

/// What a stream has that is not seen again by itself.
const BUFFER: usize = 10;

/// What is known of the streams of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Streams {
    /// The first messages were emitted.
    begun: bool,
    /// Messages that flowed since a person said something.
    hops: u32,
    /// The last messages of each stream, as far as those that come later may see them.
    channels: BTreeMap<String, Channel>,
    /// Bridges, by their route.
    bridges: BTreeMap<String, BridgeState>,
}

/// The last messages of a stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    kind: StreamKind,
    size: usize,
    messages: Vec<String>,
}

impl Channel {
    /// A stream that has not carried a message.
    pub fn new(kind: StreamKind, size: usize) -> Self {
        Self { kind, size: size.max(1), messages: Vec::new() }
    }

    /// A message flows by.
    pub fn send(&mut self, message: &str) {
        self.messages.push(message.to_owned());
        let more = self.messages.len().saturating_sub(self.size);
        self.messages.drain(..more);
    }

    /// What somebody sees who begins to listen now: the last messages on `replay`, nothing elsewhere (ACTOR-072).
    pub fn subscribe(&self) -> &[String] {
        if self.kind == StreamKind::Replay { &self.messages } else { &[] }
    }
}

/// Where a bridge stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct BridgeState {
    /// Messages since it became a stream.
    messages: Vec<String>,
    /// It is a graph now.
    is_graph: bool,
}

impl Machine {
    /// Emits first values, once.
    pub(crate) fn begin_streams(&mut self, program: &Program) {
        self.streams.hops = 0;
        if std::mem::replace(&mut self.streams.begun, true) {
            return;
        }
        let first: Vec<(String, String)> = program
            .main()
            .routes
            .iter()
            .filter(|(_, route)| !route.initial_value.is_null())
            .map(|(name, route)| {
                let value = &route.initial_value;
                (name.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect();
        for (route, value) in first {
            self.spread(program, &route, &value);
        }
    }

    /// A route is given a message.
    pub(crate) fn deliver(&mut self, program: &Program, route: &str, message: &str) {
        self.streams.hops += 1;
        if self.streams.hops > MOST_HOPS {
            return self
                .fail(format!("more than {MOST_HOPS} messages flowed for one: the streams go in a circle"));
        }
        let Ok(definition) = program.route(0, route) else {
            return self.fail(format!("there is no route `{route}`"));
        };
        let parent = Parent::Stream { route: route.to_owned() };
        if let Some(bridge) = &definition.bridge
            && let Some(graph) = definition.metadata.get("graph").and_then(Value::as_str)
        {
            let state = self.streams.bridges.entry(route.to_owned()).or_default();
            state.messages.push(message.to_owned());
            let threshold = bridge.upgrade_conditions.get("message_count_threshold").and_then(Value::as_u64);
            if threshold.is_some_and(|most| state.messages.len() as u64 >= most) {
                state.is_graph = true;
            }
            if state.is_graph {
                // What was said before is the graph's first state.
                let history = state.messages.clone();
                let context = self.contexts.entry(0).or_insert_with(|| json!({}));
                if context.is_object() {
                    context["stream_history"] = json!(history);
                }
                return self.begin_graph(program, 0, graph, message, parent);
            }
        }
        self.begin_route(program, 0, route, message, parent);
    }

    /// A graph runs, or the operators of a stream do.
    pub(crate) fn begin_route(
        &mut self,
        program: &Program,
        of: usize,
        route: &str,
        message: &str,
        parent: Parent,
    ) {
        match program.route(of, route).map(|route| route.kind) {
            Ok(RouteKind::Graph) => self.begin_graph(program, of, route, message, parent),
            Ok(RouteKind::Stream) => {
                let task = PipelineTask { route: route.to_owned(), message: message.to_owned(), at: 0 };
                self.add_task(of, parent, TaskKind::Pipeline(task));
            }
            Err(why) => self.fail(why),
        }
    }

    /// The next operator of a stream.
    pub(crate) fn advance_pipeline(&mut self, program: &Program, id: u64) -> Result<(), String> {
        let Some(Task { of, kind: TaskKind::Pipeline(task), .. }) = self.tasks.get(&id) else {
            return Ok(());
        };
        let (of, task) = (*of, task.clone());
        let route = program.route(of, &task.route)?;
        let parent = Parent::Pipeline { task: id };
        let Some(operator) = route.operators.get(task.at) else {
            self.finish(program, id, Out::text(task.message));
            return Ok(());
        };
        let named = |key: &str| operator.params.get(key).and_then(Value::as_str);
        match operator.kind {
            OperatorKind::Map => {
                let agent = named("agent").ok_or("a `map` names no agent")?;
                self.begin_agent(program, of, Who::Named(agent.to_owned()), None, &task.message, parent);
            }
            OperatorKind::GraphExecute => {
                let graph = named("graph").ok_or("a `graph_execute` names no graph")?;
                self.begin_graph(program, of, graph, &task.message, parent);
            }
        }
        Ok(())
    }

    /// What a route put out goes to its publications, and to whoever listens to the route itself.
    pub(crate) fn publish_of(&mut self, program: &Program, route: &str, message: &str) {
        let Ok(definition) = program.route(0, route) else { return };
        let publications = definition.publications.clone();
        for stream in &publications {
            self.publish(program, stream, message);
        }
        let heard = self.spread(program, route, message);
        if publications.is_empty() && !heard {
            self.outputs.push(message.to_owned());
        }
    }

    /// A stream carries a message; what nobody takes is shown.
    fn publish(&mut self, program: &Program, stream: &str, message: &str) {
        let shown = stream == OUTPUT || program.main().publications.iter().any(|known| known == stream);
        if shown {
            self.outputs.push(message.to_owned());
        }
        let heard = self.spread(program, stream, message);
        if !heard && !shown {
            self.outputs.push(message.to_owned());
        }
    }

    /// Gives a message to all that listen to a stream; whether somebody does.
    pub(crate) fn spread(&mut self, program: &Program, stream: &str, message: &str) -> bool {
        self.streams.hops += 1;
        if self.streams.hops > MOST_HOPS {
            self.fail(format!("more than {MOST_HOPS} messages flowed for one: the streams go in a circle"));
            return true;
        }
        let main = program.main();
        let of_route = main.routes.get(stream);
        let (kind, size) = of_route.map_or((StreamKind::Cold, BUFFER), |route| {
            (route.stream_type, route.buffer_size.map_or(BUFFER, |size| size as usize))
        });
        self.streams
            .channels
            .entry(stream.to_owned())
            .or_insert_with(|| Channel::new(kind, size))
            .send(message);
        let is_input = stream == agents_domain::actor::INPUT;
        let mut targets: Vec<String> = Vec::new();
        for merge in main.merges.iter().filter(|merge| merge.sources.iter().any(|source| source == stream)) {
            targets.push(merge.target.clone());
        }
        for split in main.splits.iter().filter(|split| split.source == stream) {
            targets.extend(split.targets.iter().cloned());
        }
        let listens = |name: &str| {
            main.routes
                .get(name)
                .is_some_and(|route| route.subscriptions.iter().any(|source| source == stream))
        };
        targets.extend(main.routes.keys().filter(|name| listens(name)).map(str::to_owned));
        // Routes that take what a person says were given it already.
        targets.retain(|target| !is_input || !main.routes.contains(target));
        let heard = !targets.is_empty() || is_input;
        for target in targets {
            if main.routes.contains(&target) {
                self.deliver(program, &target, message);
            } else {
                self.publish(program, &target, message);
            }
        }
        heard
    }

    /// Nothing was said for so many seconds: bridges that wait no longer become streams again (ACTOR-078).
    pub fn idle(&mut self, program: &Program, seconds: f64) {
        let answer = self.answer();
        for (name, route) in program.main().routes.iter() {
            let Some(bridge) = &route.bridge else { continue };
            let limit = bridge.downgrade_conditions.get("idle_timeout").and_then(Value::as_f64);
            let Some(state) = self.streams.bridges.get_mut(name) else { continue };
            if state.is_graph && limit.is_some_and(|limit| seconds >= limit) {
                // What the graph came to is what the stream knows.
                *state = BridgeState { messages: Vec::new(), is_graph: false };
                let channel = self.streams.channels.entry(name.to_owned());
                channel.or_insert_with(|| Channel::new(route.stream_type, BUFFER)).send(&answer);
            }
        }
    }
}
