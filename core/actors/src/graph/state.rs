//! All that a run knows, as it is written down.

use std::collections::{BTreeMap, VecDeque};

use agents_domain::ports::model::{ChatMessage, ModelCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::program::Who;
use crate::stream::Streams;

/// A run of an actor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// What the agents of each file share, by the file's place in the program.
    pub contexts: BTreeMap<usize, Value>,
    /// What agents remember, by file and name.
    pub memory: BTreeMap<String, Vec<ChatMessage>>,
    /// What is being done.
    pub(crate) tasks: BTreeMap<u64, Task>,
    pub(super) next_task: u64,
    /// What goes through the streams.
    pub(crate) streams: Streams,
    /// What was answered to the last message, in order.
    pub outputs: Vec<String>,
    /// Why the run cannot go on.
    pub failure: Option<String>,
    /// What the models took.
    pub usage: Usage,
    /// How many tools were called.
    pub tool_calls: u32,
    /// Names of calls, so that each is called something else.
    pub(super) made: BTreeMap<String, u32>,
    /// Tasks that can go on without an effect.
    pub(super) ready: VecDeque<u64>,
    /// What people said meanwhile; every question to a model has it from then on.
    pub guidance: Vec<String>,
    /// Goes before what agents say.
    pub(super) temperature: Option<f64>,
    /// States of graphs to be kept, since they were asked for last.
    pub(super) checkpoints: Vec<Checkpoint>,
    /// Calls of a model's answer at most.
    pub(super) most_calls: usize,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It waits for effects.
    Running,
    /// It has answered.
    Done,
    /// It cannot go on.
    Failed,
}

/// The state of a graph after a step, to be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The graph.
    pub route: String,
    /// The step it is after.
    pub step: u64,
    /// Where it is kept, where the file says so.
    pub dir: Option<String>,
    /// Earlier ones stay.
    pub keep_all: bool,
}

/// Something that is being done, and for whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub parent: Parent,
    /// The definition it belongs to.
    pub of: usize,
    pub kind: TaskKind,
}

/// Who is told what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Parent {
    /// The answer is shown.
    Root,
    /// A node of a graph.
    Node { task: u64, node: String },
    /// The streams.
    Stream { route: String },
    /// An operator of a stream.
    Pipeline { task: u64 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskKind {
    Agent(AgentTask),
    Tools(ToolsTask),
    Graph(Box<GraphTask>),
    Pipeline(PipelineTask),
}

/// An agent with a model, answering.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentTask {
    pub who: Who,
    /// The node it runs for, which may say otherwise what it is lent.
    pub node: Option<(String, String)>,
    pub input: String,
    /// What was said since the input.
    pub messages: Vec<ChatMessage>,
    /// Calls of the last answer that wait for their results.
    pub pending: Vec<Pending>,
    /// Tools that were called in all.
    pub calls: usize,
    /// Times it failed.
    pub failed: u32,
    /// Times the answer did not fit its schema.
    pub misfits: u32,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub call: ModelCall,
    /// Its name among all calls of the run.
    pub id: String,
    pub result: Option<String>,
}

/// Tools that run one after another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolsTask {
    pub tools: Vec<String>,
    pub at: usize,
    pub input: String,
    pub parameters: Map<String, Value>,
    pub outputs: Map<String, Value>,
    /// The name of the call that is made.
    pub id: String,
    pub failed: u32,
    /// The node it runs for.
    pub node: Option<(String, String)>,
}

/// A graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GraphTask {
    pub route: String,
    /// What it was given.
    pub input: String,
    pub step: u64,
    /// The nodes of this step with their input, those that have not begun.
    pub waiting: Vec<(String, String)>,
    /// The nodes of this step that run.
    pub running: Vec<String>,
    /// The nodes of this step that are done, with what they put out.
    pub done: Vec<(String, String)>,
    /// What each node put out last.
    pub outputs: Map<String, Value>,
    /// Everything that was put out, in order.
    pub messages: Vec<String>,
    /// Results of branches that ended.
    pub results: Vec<String>,
    /// Where routers sent their message.
    pub jumps: BTreeMap<String, String>,
}

/// A message on its way through a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PipelineTask {
    pub route: String,
    pub message: String,
    pub at: usize,
}
