//! How agents work together: graphs of nodes and edges, and streams of messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Enrichment, Ordered};

/// A graph or a stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Route {
    /// Which of the two.
    #[serde(rename = "type")]
    pub kind: RouteKind,
    /// For people and programs; `recursion_limit` bounds the steps of a graph, `graph` names where a bridge leads.
    pub metadata: Map<String, Value>,

    /// Of a stream: what those see that come later.
    pub stream_type: StreamKind,
    /// Of a stream: what is done with each message, in order.
    pub operators: Vec<Operator>,
    /// Of a stream: the streams it takes messages from; `__input__` is what a person says.
    pub subscriptions: Vec<String>,
    /// Of a stream: the streams its results go to; `__output__` is shown.
    pub publications: Vec<String>,
    /// Of a stream: the agents it uses, for people.
    pub agents: Vec<String>,
    /// Of a stream: its first message.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub initial_value: Value,
    /// Of a stream: how many messages wait, and how many are seen again by those that come later.
    #[schemars(range(min = 1))]
    pub buffer_size: Option<u32>,
    /// Of a stream: for templates.
    pub template_config: Map<String, Value>,
    /// Of a stream: when it becomes a graph and back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridge: Option<Bridge>,

    /// Of a graph: its nodes by name.
    pub nodes: Ordered<Node>,
    /// Of a graph: which node follows which.
    pub edges: Vec<Edge>,
    /// Of a graph: where it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_point: Option<String>,
    /// Of a graph: where it ends, besides at nodes without a next one.
    pub exit_nodes: Vec<String>,
    /// Of a graph: its state is kept after each step.
    pub checkpointing: bool,
    /// Of a graph: where its state is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_dir: Option<String>,
    /// Of a graph: all its states are kept, and it can go on from any.
    pub enable_time_travel: bool,
    /// Of a graph: nodes that are due together run together.
    pub parallel_execution: bool,
    /// Of a graph: the name of a class for its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_class: Option<String>,
}

/// The steps of a graph at most, unless its `metadata.recursion_limit` says otherwise.
const MAX_STEPS: u64 = 25;

impl Route {
    /// How many steps a graph may take.
    pub fn step_limit(&self) -> u64 {
        self.metadata.get("recursion_limit").and_then(Value::as_u64).unwrap_or(MAX_STEPS).clamp(1, 10_000)
    }
}

/// What a route is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RouteKind {
    /// Messages flow through operators.
    Stream,
    /// Nodes run one after another along edges.
    #[default]
    Graph,
}

/// What those see of a stream that come later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// It runs once for each input.
    #[default]
    Cold,
    /// It runs anyway; who comes later has missed what was.
    Hot,
    /// Who comes later sees the last messages again.
    Replay,
}

/// Something that is done with each message of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operator {
    /// What.
    #[serde(rename = "type")]
    pub kind: OperatorKind,
    /// With what: `agent` for `map`, `graph` for `graph_execute`.
    #[serde(default)]
    pub params: Map<String, Value>,
}

/// What an operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperatorKind {
    /// An agent answers the message.
    Map,
    /// A graph runs with the message.
    GraphExecute,
}

/// When a stream becomes a graph and back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bridge {
    /// When it becomes a graph: `message_count_threshold`.
    pub upgrade_conditions: Map<String, Value>,
    /// When it becomes a stream again: `idle_timeout` in seconds.
    pub downgrade_conditions: Map<String, Value>,
    /// What makes the graph's first state of the messages; `extract_graph_state`, or a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_extractor: Option<String>,
    /// What makes messages of the graph's last state; `flatten_to_stream`, or a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_flattener: Option<String>,
    /// Who listens goes on listening.
    pub preserve_subscriptions: bool,
    /// What is kept of the graph stays.
    pub preserve_checkpointing: bool,
}

impl Default for Bridge {
    fn default() -> Self {
        Self {
            upgrade_conditions: Map::new(),
            downgrade_conditions: Map::new(),
            state_extractor: None,
            state_flattener: None,
            preserve_subscriptions: true,
            preserve_checkpointing: true,
        }
    }
}

/// A node of a graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: NodeKind,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Of `agent`: an agent of the file, or another actor that is registered. Of `subgraph`: such an actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Of `agent` without one: the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Of `agent` without one: what it is told first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Of `tool`: what is run, in order. Of `agent` without one: what it may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Of `tool`: arguments that are always given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// Of `tool`: what is different of the tool here.
    #[serde(default, rename = "override", skip_serializing_if = "Map::is_empty")]
    pub overrides: Map<String, Value>,
    /// Of `tool`: the tool is written here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anonymous: bool,
    /// Of an anonymous tool: its Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Of an anonymous tool: JSON Schema of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    /// Of an anonymous tool: what it may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Map<String, Value>>,
    /// Of `function`: the tool that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Of `conditional`: what is asked.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub condition: Value,
    /// Of `conditional`: what is asked, with where each answer leads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Branch>,
    /// Of `subgraph`: a route of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subgraph: Option<String>,
    /// Of `message_router`: where messages go; the first that fits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// How often it is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<RetryPolicy>,
    /// Seconds it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout: Option<u64>,
    /// It runs beside others that are due.
    #[serde(default)]
    pub parallel: bool,
    /// The language servers here, in the place of the agent's.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub lsp: Value,
    /// What of them may be used here.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub lsp_capabilities: Value,
    /// What they add to the context here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lsp_context_enrichment: Option<Enrichment>,
    /// For people and programs.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// An agent answers.
    Agent,
    /// A tool of the file, or a registered one, is a function of the message.
    Function,
    /// Tools run.
    Tool,
    /// A condition is looked at; the message stays.
    Conditional,
    /// Another graph runs.
    Subgraph,
    /// Where the graph begins.
    Start,
    /// Where it ends.
    End,
    /// The message's text says where it goes.
    MessageRouter,
}

/// A condition with where it leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Branch {
    /// The condition, such as `not run_tests.passed`.
    pub check: String,
    /// The node.
    pub route_to: String,
}

/// Where messages with some text go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// Where in the message the text is looked for.
    #[serde(rename = "type")]
    pub kind: MatchKind,
    /// The text; an empty one fits every message.
    #[serde(rename = "match")]
    pub text: String,
    /// The node.
    pub target: String,
    /// The text, and a `:` behind it, are taken out.
    #[serde(default)]
    pub strip_match: bool,
}

/// Where a text is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatchKind {
    /// At the beginning.
    Prefix,
    /// Anywhere.
    Contains,
    /// At the end.
    Suffix,
}

/// How often a node is tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = true))]
pub struct RetryPolicy {
    /// Times in all.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// Seconds before the second time.
    #[schemars(range(min = 0.0))]
    pub initial_interval: f64,
    /// By what the wait grows each time.
    #[schemars(range(min = 1.0))]
    pub backoff_factor: f64,
    /// The longest wait in seconds.
    #[schemars(range(min = 0.0))]
    pub max_interval: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 1, initial_interval: 1.0, backoff_factor: 2.0, max_interval: 30.0 }
    }
}

/// Which node follows which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// From.
    pub source: String,
    /// To.
    pub target: String,
    /// When: `{context_value: key, equals: value}`, `{key: value}`, or a text such as `not run_tests.passed`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub condition: Value,
    /// Of several with a condition, the one with the highest is looked at first and alone taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// For people and programs.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// Streams whose messages go into another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Merge {
    /// From.
    pub sources: Vec<String>,
    /// To.
    pub target: String,
}

/// A stream whose messages are copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// From.
    pub source: String,
    /// To.
    pub targets: Vec<String>,
}
