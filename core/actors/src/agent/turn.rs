//! One turn of a conversation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agents_domain::ports::actor::{ActorFailure, ActorHost};
use agents_domain::ports::model::{
    ChatDelta, ChatMessage, ChatModel, ChatOptions, ChatReply, ChatRequest, ModelCall, ModelFailure,
    ModelFailureKind, ModelTrace, StopReason,
};
use agents_domain::ports::tool::ToolSpec;

use super::talk::Talk;
use crate::models::cassette::request_hash;

/// How often it is looked whether the plan is to stop while a model answers.
const LOOK: Duration = Duration::from_millis(100);

/// A model with what it is told and what it may call. It makes turns; what the model wants is done by whoever asked.
pub struct Agent {
    /// Who asks, for traces.
    pub actor: String,
    /// Key of the decision it works under, for traces.
    pub decision: Option<String>,
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// Its name, `<provider>/<model>`.
    pub model_name: String,
    /// The system prompt; empty is none.
    pub system: String,
    /// What the model may call.
    pub tools: Vec<ToolSpec>,
    /// How it shall answer.
    pub options: ChatOptions,
}

/// What came of a turn; the conversation has it already.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// The model wants these tools to be run, in order. Each must be [answered](Talk::answer) before the next turn.
    Calls {
        /// What it said along with them.
        text: String,
        /// At least one.
        calls: Vec<ModelCall>,
    },
    /// The model said this, and is done.
    Said(String),
    /// The plan is to stop; the conversation is as it was.
    Stopping,
}

impl Agent {
    /// Asks the model to go on. A conversation that is too long for it is made shorter and asked about again.
    ///
    /// # Errors
    /// What the model failed with; the conversation is as it was, but for what was left out to make it fit.
    pub async fn turn(&self, talk: &mut Talk, host: &dyn ActorHost) -> Result<Turn, ActorFailure> {
        talk.bound();
        loop {
            let request = ChatRequest {
                system: (!self.system.is_empty()).then(|| self.system.clone()),
                messages: talk.messages.clone(),
                tools: self.tools.clone(),
                options: self.options.clone(),
            };
            let Some(answered) = self.ask(&request, host).await else { return Ok(Turn::Stopping) };
            match answered {
                Ok(reply) => return self.taken(talk, reply),
                Err(failure) if failure.kind == ModelFailureKind::TooLong && talk.shrink() => {
                    tracing::info!(
                        model = self.model_name,
                        "the conversation is too long: parts are left out"
                    );
                }
                Err(failure) => return Err(self.failed(failure)),
            }
        }
    }

    /// `None` when the plan is to stop.
    async fn ask(
        &self,
        request: &ChatRequest,
        host: &dyn ActorHost,
    ) -> Option<Result<ChatReply, ModelFailure>> {
        let began = Instant::now();
        let mut watch = |piece: ChatDelta| host.heard(&piece);
        let asked = self.model.chat(request, &mut watch);
        let answered = tokio::select! {
            answered = asked => answered,
            () = stopped(host) => return None,
        };
        let (provider, model) = self.model_name.split_once('/').unwrap_or(("", &self.model_name));
        let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut trace = ModelTrace {
            actor: self.actor.clone(),
            decision: self.decision.clone(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            latency_ms,
            temperature: self.options.temperature,
            context_hash: request_hash(request),
            ..ModelTrace::default()
        };
        match &answered {
            Ok(reply) => {
                trace.usage = reply.usage;
                trace.retries = reply.retries;
                trace.tool_calls = reply.calls.iter().map(|call| call.tool.clone()).collect();
            }
            Err(failure) => {
                trace.retries = failure.retries;
                trace.error = Some(failure.message.clone());
            }
        }
        tracing::info!(
            model = self.model_name,
            latency_ms,
            retries = trace.retries,
            tokens_in = trace.usage.input,
            tokens_out = trace.usage.output,
            cost_usd = trace.usage.usd,
            error = trace.error,
            "the model was asked"
        );
        host.asked(&trace);
        Some(answered)
    }

    fn taken(&self, talk: &mut Talk, reply: ChatReply) -> Result<Turn, ActorFailure> {
        talk.spend(reply.usage);
        talk.turns += 1;
        if reply.stop == StopReason::Refused && reply.calls.is_empty() {
            let failure = ModelFailure::new(
                ModelFailureKind::Invalid,
                format!("{} refused to answer", self.model_name),
            );
            return Err(self.failed(failure));
        }
        talk.messages.push(ChatMessage::Assistant {
            text: reply.text.clone(),
            calls: reply.calls.clone(),
            kept: reply.kept,
        });
        Ok(match reply.calls.is_empty() {
            true => Turn::Said(reply.text),
            false => Turn::Calls { text: reply.text, calls: reply.calls },
        })
    }

    /// The failure as plans know it. The adapter tried again already where that may help; a step that is tried once more
    /// helps where the provider is away for longer.
    pub(super) fn failed(&self, failure: ModelFailure) -> ActorFailure {
        ActorFailure {
            message: format!("the model {} did not answer: {}", self.model_name, failure.message),
            category: "model".to_owned(),
            transient: matches!(
                failure.kind,
                ModelFailureKind::Unavailable | ModelFailureKind::Limited | ModelFailureKind::Malformed
            ),
            hints: failure.hints,
        }
    }
}

async fn stopped(host: &dyn ActorHost) {
    loop {
        tokio::time::sleep(LOOK).await;
        if host.stopping() {
            return;
        }
    }
}
