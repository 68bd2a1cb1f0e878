//! Chat models: what a model actor asks, and what it is answered.
//!
//! A model is asked one thing at a time: the whole conversation goes in, one answer comes out, in pieces for whoever
//! watches. Nothing here knows of a provider; `agents-actors` has the adapters.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::BoxFuture;
use super::tool::ToolSpec;
use crate::Timestamp;
use crate::ids::{DecisionId, PlanId};
use crate::plan::Phase;

/// A model of one provider.
pub trait ChatModel: Send + Sync {
    /// Asks it. Pieces of the answer are given to `watch` as they come; dropping the future cancels the request.
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        watch: &'a mut (dyn FnMut(ChatDelta) + Send),
    ) -> BoxFuture<'a, std::result::Result<ChatReply, ModelFailure>>;
}

/// Finds models by `<provider>/<model>`.
pub trait Models: Send + Sync {
    /// The model of that name. Whether the provider has it is said by the first request.
    ///
    /// # Errors
    /// An unknown provider, or one that is not set up (no key): the hints say how to set it up.
    fn find(&self, name: &str) -> std::result::Result<Arc<dyn ChatModel>, ModelFailure>;

    /// The providers there are, with what is missing for each.
    fn providers(&self) -> Vec<Provider>;
}

/// A provider of models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Provider {
    /// The word before the `/` of its models.
    pub name: String,
    /// Why its models cannot be asked, with what to do; `None` when they can.
    pub missing: Option<String>,
}

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The system prompt.
    pub system: Option<String>,
    /// The conversation, oldest first.
    pub messages: Vec<ChatMessage>,
    /// The tools it may call, under their own names (adapters make them fit the provider).
    pub tools: Vec<ToolSpec>,
    /// How it shall answer.
    pub options: ChatOptions,
}

/// How a model shall answer; what is left out is the provider's default and is not sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatOptions {
    /// 0.0 to 2.0.
    pub temperature: Option<f64>,
    /// Tokens of the answer at most.
    pub max_tokens: Option<u32>,
    /// JSON Schema the answer has to fit.
    pub response_format: Option<Value>,
    /// Sent to the provider as they are.
    pub extra: Map<String, Value>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    /// From the person, or from the program on their behalf.
    User {
        /// Its text.
        text: String,
    },
    /// From the model.
    Assistant {
        /// Its text; empty when it only called tools.
        text: String,
        /// The tools it called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ModelCall>,
        /// What the provider wants back as it was, such as signatures of its thinking; `Null` is nothing.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        kept: Value,
    },
    /// What came of a call.
    Tool {
        /// Of the call.
        call_id: String,
        /// The result as the model shall read it.
        text: String,
    },
}

/// A tool call of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The provider's id of it.
    pub call_id: String,
    /// The tool, under its own name.
    pub tool: String,
    /// Its arguments; a text where the model did not write JSON.
    pub arguments: Value,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatDelta {
    /// More text.
    Text(String),
    /// More of its thinking, where the provider shows it.
    Thinking(String),
    /// A call whose arguments are whole.
    Call(ModelCall),
    /// The attempt failed and is made again: what was shown of the answer is void.
    Again {
        /// Why.
        reason: String,
        /// When.
        after: Duration,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// Its text.
    pub text: String,
    /// The tools it called, in order.
    pub calls: Vec<ModelCall>,
    /// Why it ended.
    pub stop: StopReason,
    /// What it took.
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// What the provider wants back as it was, see [`ChatMessage::Assistant`].
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub kept: Value,
    /// Attempts that failed before this answer.
    #[serde(default)]
    pub retries: u32,
}

/// A call of a model as it is kept: what it took and what came of it, never what was said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelTrace {
    /// The actor that asked.
    pub actor: String,
    /// Key of the decision it works under, if any.
    pub decision: Option<String>,
    /// The word before the `/` of the model.
    pub provider: String,
    /// The rest of it.
    pub model: String,
    /// What it took; nothing when it failed.
    pub usage: Usage,
    /// Milliseconds from the first attempt to the end.
    pub latency_ms: u64,
    /// What was asked for, if anything.
    pub temperature: Option<f64>,
    /// The tools it called, in order.
    pub tool_calls: Vec<String>,
    /// SHA-256 of the request.
    pub context_hash: String,
    /// Attempts that failed.
    pub retries: u32,
    /// Why it failed.
    pub error: Option<String>,
}

/// A call of a model on record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedTrace {
    /// A ULID.
    pub trace_id: String,
    /// The plan it was made for.
    pub plan_id: PlanId,
    /// In which phase.
    pub phase: Phase,
    /// The decision it was made under.
    pub decision_id: Option<DecisionId>,
    /// What it was.
    #[serde(flatten)]
    pub trace: ModelTrace,
    /// When it was over.
    pub created_at: Timestamp,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    Done,
    /// It wants tools to be run.
    Tools,
    /// It reached the limit of tokens.
    Length,
    /// The provider refused to go on.
    Refused,
}

/// What an answer took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Tokens that went in, those from a cache too.
    pub input: u64,
    /// Of these, those that came from the provider's cache.
    pub cached: u64,
    /// Tokens that came out.
    pub output: u64,
    /// US dollars; `None` where the price is not known.
    pub usd: Option<f64>,
}

/// Why a model did not answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ModelFailure {
    /// For people; names the provider and never a key.
    pub message: String,
    /// What kind it is.
    pub kind: ModelFailureKind,
    /// What to do.
    pub hints: Vec<String>,
    /// Attempts that were made again before this.
    #[serde(default)]
    pub retries: u32,
}

impl ModelFailure {
    /// A failure of a kind, without hints.
    pub fn new(kind: ModelFailureKind, message: impl Into<String>) -> Self {
        Self { message: message.into(), kind, hints: Vec::new(), retries: 0 }
    }

    /// With something to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelFailureKind {
    /// No such provider or model, or it is not set up.
    Unknown,
    /// The key was refused.
    Denied,
    /// The request itself was refused.
    Invalid,
    /// The conversation is too long for the model.
    TooLong,
    /// Too many requests, also after waiting.
    Limited,
    /// No connection, a broken one, no answer in time, or the provider's own trouble.
    Unavailable,
    /// The answer makes no sense.
    Malformed,
}
