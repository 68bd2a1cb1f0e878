//! Beginning, going on and ending: what a run waits for, and what it does with what it is told.

use std::time::Duration;

use agents_domain::actor::{AgentKind, Backing, Entry, INPUT};
use agents_domain::ports::model::{ChatReply, ChatRequest, ModelFailure, ModelFailureKind};
use agents_domain::template;
use serde_json::{Value, json};

use super::program::{Program, Who};
use super::state::{AgentTask, Checkpoint, Machine, Parent, Status, Task, TaskKind};
use super::toolbox::Toolbox;

/// Things that are done at once at most, and levels of actors in actors.
const MOST_TASKS: usize = 1000;

/// Calls of tools for one answer, unless the configuration says otherwise.
const MOST_CALLS: usize = 25;

/// Something a run waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A model's answer.
    Ask {
        /// Whom to tell.
        task: u64,
        /// The agent that asks.
        agent: String,
        /// The model, `<provider>/<model>`.
        model: String,
        /// What it is asked.
        request: Box<ChatRequest>,
        /// How long to wait before it is asked.
        wait: Duration,
    },
    /// A tool's result.
    Call {
        /// Whom to tell.
        task: u64,
        /// The name of the call, unlike that of any other in the run.
        id: String,
        /// The tool.
        tool: String,
        /// Its arguments.
        args: Value,
        /// The node or agent that calls it.
        by: String,
        /// What the model said along with it.
        reason: String,
        /// How long to wait before it is called.
        wait: Duration,
        /// How long it may take.
        timeout: Option<Duration>,
    },
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// A model answered, or did not.
    #[allow(missing_docs, reason = "the names say it")]
    Answer { task: u64, answer: Result<ChatReply, ModelFailure> },
    /// A tool returned, or did not.
    #[allow(missing_docs, reason = "the names say it")]
    Result { task: u64, id: String, result: Result<Value, String> },
}

/// What an agent, a tool or a graph put out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Out {
    pub text: String,
    pub value: Value,
}

impl Out {
    /// A text; a JSON object in it is a value, too.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let value = serde_json::from_str(text.trim()).ok().filter(Value::is_object);
        Self { value: value.unwrap_or_else(|| json!(text)), text }
    }
}

impl Machine {
    /// A run that has not been told anything yet. `context` goes before what the files say (ACTOR-043).
    pub fn new(program: &Program, context: &Value) -> Self {
        let mut machine = Self { most_calls: MOST_CALLS, ..Self::default() };
        for at in 0.. {
            let Ok(definition) = program.definition(at) else { break };
            let mut own = Value::Object(definition.global_context.clone());
            if context.is_object() {
                template::merge(&mut own, context);
            }
            machine.contexts.insert(at, own);
        }
        machine
    }

    /// A temperature that goes before what agents say.
    #[must_use]
    pub fn with_temperature(mut self, temperature: Option<f64>) -> Self {
        self.temperature = temperature;
        self
    }

    /// Calls of tools for one answer at most.
    #[must_use]
    pub fn with_most_calls(mut self, most: usize) -> Self {
        self.most_calls = most.max(1);
        self
    }

    /// A person says something; what was answered to the message before is forgotten, what is remembered is not.
    pub fn say(&mut self, program: &Program, toolbox: &Toolbox, message: &str) {
        self.outputs.clear();
        self.failure = None;
        self.tasks.clear();
        self.ready.clear();
        match program.main().entry() {
            Some(Entry::Streams(routes)) => {
                self.begin_streams(program);
                for route in routes {
                    self.deliver(program, &route, message);
                }
                // Whoever listens to the input besides.
                self.spread(program, INPUT, message);
            }
            _ => self.enter(program, 0, message, Parent::Root),
        }
        self.run_ready(program, toolbox);
    }

    /// Where it stands.
    pub fn status(&self) -> Status {
        match (&self.failure, self.tasks.is_empty()) {
            (Some(_), _) => Status::Failed,
            (None, true) => Status::Done,
            (None, false) => Status::Running,
        }
    }

    /// What it waits for, in order; asked twice, it says the same. Independent effects may be carried out together.
    pub fn effects(&mut self, program: &Program, toolbox: &Toolbox) -> Vec<Effect> {
        let mut effects = Vec::new();
        let ids: Vec<u64> = self.tasks.keys().copied().collect();
        for id in ids {
            let Some(task) = self.tasks.get(&id) else { continue };
            let found = match &task.kind {
                TaskKind::Agent(agent) => self.agent_effects(program, toolbox, id, task.of, agent),
                TaskKind::Tools(tools) => self.tools_effects(program, toolbox, id, task.of, tools),
                TaskKind::Graph(_) | TaskKind::Pipeline(_) => Ok(Vec::new()),
            };
            match found {
                Ok(found) => effects.extend(found),
                Err(why) => {
                    self.fail(why);
                    return Vec::new();
                }
            }
        }
        if effects.is_empty() && !self.tasks.is_empty() && self.failure.is_none() {
            self.fail("the run waits for nothing; this is a defect".to_owned());
        }
        effects
    }

    /// Tells what came of effects, in their order. What is not waited for any more is left alone.
    pub fn tell(&mut self, program: &Program, toolbox: &Toolbox, told: Vec<Told>) {
        for one in told {
            if self.failure.is_some() {
                return;
            }
            let done = match one {
                Told::Answer { task, answer } => self.answered(program, toolbox, task, answer),
                Told::Result { task, id, result } => self.called(program, toolbox, task, &id, result),
            };
            if let Err(why) = done {
                self.fail(why);
            }
        }
        self.run_ready(program, toolbox);
    }

    /// States to be kept, since this was asked last.
    pub fn take_checkpoints(&mut self) -> Vec<Checkpoint> {
        std::mem::take(&mut self.checkpoints)
    }

    /// What was answered, as one text.
    pub fn answer(&self) -> String {
        self.outputs.join("\n\n")
    }

    pub(crate) fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
        self.tasks.clear();
        self.ready.clear();
    }

    /// Goes on with everything that can go on without an effect.
    fn run_ready(&mut self, program: &Program, toolbox: &Toolbox) {
        while let Some(id) = self.ready.pop_front() {
            if self.failure.is_some() {
                return;
            }
            let done = match self.tasks.get(&id).map(|task| &task.kind) {
                Some(TaskKind::Graph(_)) => self.advance_graph(program, toolbox, id),
                Some(TaskKind::Pipeline(_)) => self.advance_pipeline(program, id),
                _ => Ok(()),
            };
            if let Err(why) = done {
                self.fail(why);
            }
        }
    }

    pub(crate) fn add_task(&mut self, of: usize, parent: Parent, kind: TaskKind) {
        if self.tasks.len() >= MOST_TASKS {
            return self.fail(format!("more than {MOST_TASKS} things are done at once"));
        }
        let id = self.next_task;
        self.next_task += 1;
        self.tasks.insert(id, Task { parent, of, kind });
        self.ready.push_back(id);
    }

    /// A definition is given a message.
    pub(super) fn enter(&mut self, program: &Program, of: usize, message: &str, parent: Parent) {
        let entry = match program.definition(of) {
            Ok(definition) => definition.entry(),
            Err(why) => return self.fail(why),
        };
        match entry {
            None => self.fail("the actor defines nothing that could answer".to_owned()),
            Some(Entry::Agent(name)) => {
                self.begin_agent(program, of, Who::Named(name), None, message, parent)
            }
            Some(Entry::Graph(route)) => self.begin_graph(program, of, &route, message, parent),
            // Inside another actor, the first stream answers.
            Some(Entry::Streams(routes)) => {
                if let Some(route) = routes.first() {
                    self.begin_route(program, of, route, message, parent);
                }
            }
        }
    }

    /// An agent is given a message.
    pub(crate) fn begin_agent(
        &mut self,
        program: &Program,
        of: usize,
        who: Who,
        node: Option<(String, String)>,
        message: &str,
        parent: Parent,
    ) {
        let name = who.name();
        if let Err(why) = self.try_begin_agent(program, of, who, node, message, parent) {
            self.fail(format!("the actor `{name}` cannot answer: {why}"));
        }
    }

    fn try_begin_agent(
        &mut self,
        program: &Program,
        of: usize,
        who: Who,
        node: Option<(String, String)>,
        message: &str,
        parent: Parent,
    ) -> Result<(), String> {
        let agent = program.agent(of, &who)?;
        match agent.kind {
            AgentKind::Graph => {
                let graphs = || program.definition(of).ok()?.routes.iter().find(|(_, r)| !r.nodes.is_empty());
                let route = agent.config.route.clone().or_else(|| graphs().map(|(name, _)| name.to_owned()));
                let route = route.ok_or_else(|| format!("the actor `{}` has no graph", who.name()))?;
                self.begin_graph(program, of, &route, message, parent);
            }
            AgentKind::Tool => self.begin_tool_agent(of, &agent, node, message, parent)?,
            AgentKind::Llm => match program.backing(of, &agent)? {
                Backing::Actor(name) if program.position(&name).is_some() => {
                    let inner = program.position(&name).unwrap_or_default();
                    // It sees what its caller knows, over what its own file says.
                    let outer = self.contexts.get(&of).cloned().unwrap_or_default();
                    let own = self.contexts.entry(inner).or_insert_with(|| json!({}));
                    template::merge(own, &outer);
                    self.enter(program, inner, message, parent);
                }
                // What is no actor of the program is a model of a provider that the configuration adds.
                Backing::Model(_) | Backing::Actor(_) => {
                    let task = AgentTask {
                        who,
                        node,
                        input: message.to_owned(),
                        messages: Vec::new(),
                        pending: Vec::new(),
                        calls: 0,
                        failed: 0,
                        misfits: 0,
                    };
                    self.add_task(of, parent, TaskKind::Agent(task));
                }
            },
        }
        Ok(())
    }

    /// A task is over; whoever waits for it is told.
    pub(crate) fn finish(&mut self, program: &Program, id: u64, out: Out) {
        let Some(task) = self.tasks.remove(&id) else { return };
        match task.parent {
            Parent::Root => self.outputs.push(out.text),
            Parent::Stream { route } => self.publish_of(program, &route, &out.text),
            Parent::Node { task: graph, node } => {
                if let Some(Task { kind: TaskKind::Graph(graph_task), .. }) = self.tasks.get_mut(&graph) {
                    graph_task.running.retain(|known| *known != node);
                    graph_task.outputs.insert(node.clone(), out.value);
                    graph_task.done.push((node, out.text));
                    self.ready.push_back(graph);
                }
            }
            Parent::Pipeline { task: pipeline } => {
                if let Some(Task { kind: TaskKind::Pipeline(stream), .. }) = self.tasks.get_mut(&pipeline) {
                    stream.message = out.text;
                    stream.at += 1;
                    self.ready.push_back(pipeline);
                }
            }
        }
    }

    /// A name for a call that no other call of the run has, and that is the same in each run.
    pub(super) fn name_call(&mut self, by: &str, tool: &str) -> String {
        let shape = format!("{by}/{tool}");
        let made = self.made.entry(shape.clone()).or_default();
        *made += 1;
        format!("{shape}#{made}")
    }
}

/// Whether asking again may help.
pub(super) fn is_passing(failure: &ModelFailure) -> bool {
    matches!(
        failure.kind,
        ModelFailureKind::Unavailable | ModelFailureKind::Limited | ModelFailureKind::Malformed
    )
}
