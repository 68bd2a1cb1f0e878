//! One attempt: the conversation as the crate `genai` has it, over the wire, and the answer as we have it.

use std::collections::BTreeMap;
use std::time::Duration;

use agents_domain::ports::model::{
    ChatDelta, ChatMessage, ChatReply, ChatRequest, ModelCall, StopReason, Usage,
};
use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat as g;
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use serde_json::{Map, Value, json};

use super::failing::{Failed, understood};
use super::names::Names;
use super::prices::Prices;

/// Whom to ask.
#[derive(Clone)]
pub(super) struct Target {
    pub provider: String,
    pub model: String,
    pub kind: AdapterKind,
    pub base_url: Option<String>,
    /// The whole address, where the provider's does not follow from a base.
    pub url: Option<String>,
    pub key: Option<String>,
    /// Headers beyond the protocol's own.
    pub headers: Vec<(String, String)>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// A model over the wire.
pub(super) struct Wire {
    pub client: Client,
    pub prices: Prices,
    pub target: Target,
}

impl Wire {
    /// Asks once.
    pub async fn ask(
        &self,
        request: &ChatRequest,
        stall: Option<Duration>,
        watch: &mut (dyn FnMut(ChatDelta) + Send),
    ) -> Result<ChatReply, Failed> {
        let names =
            Names::of(request.tools.iter().map(|tool| tool.name.as_str()).chain(called(&request.messages)));
        let target = self.service();
        let mut options = options_of(request, &self.target);
        options.stream_header_timeout = stall;
        options.stream_read_timeout = stall;
        if !self.target.headers.is_empty() {
            options.extra_headers = Some(Headers::from(self.target.headers.clone()));
        }
        let asked = request_of(request, &names, self.target.kind);
        let answer = if request.options.extra.get("stream") == Some(&Value::Bool(false)) {
            let answer = self.client.exec_chat(target, asked, Some(&options)).await;
            let answer = answer.map_err(|error| understood(&error, &self.target))?;
            Answer { content: answer.content, usage: Some(answer.usage), stop: answer.stop_reason }
        } else {
            self.stream(target, asked, &options, watch).await?
        };
        let reply = self.reply(answer, &names)?;
        for call in &reply.calls {
            watch(ChatDelta::Call(call.clone()));
        }
        Ok(reply)
    }

    fn service(&self) -> ServiceTarget {
        let target = &self.target;
        let model = ModelIden::new(target.kind, target.model.clone());
        let base = target.base_url.as_deref().map(|base| format!("{}/", base.trim_end_matches('/')));
        let endpoint = match base {
            Some(base) => Endpoint::from_owned(base),
            None => Endpoint::from_static(default_base(target.kind)),
        };
        let key = target.key.clone().unwrap_or_else(|| "none".to_owned());
        let auth = match &target.url {
            Some(url) => AuthData::RequestOverride {
                url: url.clone(),
                headers: Headers::from(("api-key".to_owned(), key)),
            },
            None => AuthData::from_single(key),
        };
        ServiceTarget { endpoint, auth, model }
    }

    async fn stream(
        &self,
        target: ServiceTarget,
        asked: g::ChatRequest,
        options: &g::ChatOptions,
        watch: &mut (dyn FnMut(ChatDelta) + Send),
    ) -> Result<Answer, Failed> {
        let told = |error: &genai::Error| understood(error, &self.target);
        let opened = self.client.exec_chat_stream(target, asked, Some(options)).await;
        let mut stream = opened.map_err(|error| told(&error))?.stream;
        while let Some(event) = stream.next().await {
            match event.map_err(|error| told(&error))? {
                g::ChatStreamEvent::Chunk(piece) => watch(ChatDelta::Text(piece.content)),
                g::ChatStreamEvent::ReasoningChunk(piece) => watch(ChatDelta::Thinking(piece.content)),
                g::ChatStreamEvent::End(end) => {
                    return Ok(Answer {
                        content: end.captured_content.unwrap_or_default(),
                        usage: end.captured_usage,
                        stop: end.captured_stop_reason,
                    });
                }
                _ => {}
            }
        }
        Err(Failed::broken(&self.target, "the answer was cut off in the middle"))
    }

    fn reply(&self, answer: Answer, names: &Names) -> Result<ChatReply, Failed> {
        let (mut text, mut calls, mut kept) = (String::new(), Vec::new(), Vec::new());
        for part in answer.content.into_parts() {
            match part {
                g::ContentPart::Text(piece) => text.push_str(&piece),
                g::ContentPart::ToolCall(call) => calls.push(call),
                g::ContentPart::ThoughtSignature(_)
                | g::ContentPart::ReasoningContent(_)
                | g::ContentPart::Custom(_) => kept.push(part),
                g::ContentPart::Binary(_) | g::ContentPart::ToolResponse(_) => {}
            }
        }
        let mut ids = std::collections::BTreeSet::new();
        let calls: Vec<ModelCall> = calls
            .into_iter()
            .enumerate()
            .map(|(index, call)| {
                let mut call_id = call.call_id;
                // Some providers give none, or the tool's name to each.
                if call_id.is_empty() || !ids.insert(call_id.clone()) {
                    call_id = format!("{call_id}call_{index}");
                    ids.insert(call_id.clone());
                }
                ModelCall {
                    call_id,
                    tool: names.to_ours(&call.fn_name),
                    arguments: arguments(call.fn_arguments),
                }
            })
            .collect();
        let stop = match answer.stop {
            Some(g::StopReason::MaxTokens(_)) => StopReason::Length,
            Some(g::StopReason::ContentFilter(_)) => StopReason::Refused,
            _ if !calls.is_empty() => StopReason::Tools,
            _ => StopReason::Done,
        };
        if text.is_empty() && calls.is_empty() && stop == StopReason::Done {
            return Err(Failed::malformed(&self.target, "there is nothing in it", true));
        }
        let kept = match serde_json::to_value(&kept) {
            Ok(parts) if !kept.is_empty() => {
                json!({ "for": format!("{:?}", self.target.kind), "parts": parts })
            }
            _ => Value::Null,
        };
        let name = format!("{}/{}", self.target.provider, self.target.model);
        let usage = self.prices.priced(&name, usage(answer.usage));
        Ok(ChatReply { text, calls, stop, usage, model: self.target.model.clone(), kept, retries: 0 })
    }
}

struct Answer {
    content: g::MessageContent,
    usage: Option<g::Usage>,
    stop: Option<g::StopReason>,
}

fn default_base(kind: AdapterKind) -> &'static str {
    match kind {
        AdapterKind::Anthropic => "https://api.anthropic.com/v1/",
        AdapterKind::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
        AdapterKind::Groq => "https://api.groq.com/openai/v1/",
        AdapterKind::Together => "https://api.together.xyz/v1/",
        AdapterKind::OpenRouter => "https://openrouter.ai/api/v1/",
        AdapterKind::Ollama => "http://localhost:11434/",
        _ => "https://api.openai.com/v1/",
    }
}

/// The tools that were called before; they need names even when they are not offered any more.
fn called(messages: &[ChatMessage]) -> impl Iterator<Item = &str> {
    messages.iter().flat_map(|message| match message {
        ChatMessage::Assistant { calls, .. } => calls.iter().map(|call| call.tool.as_str()).collect(),
        _ => Vec::new(),
    })
}

fn request_of(request: &ChatRequest, names: &Names, kind: AdapterKind) -> g::ChatRequest {
    let mut messages: Vec<g::ChatMessage> = Vec::new();
    let mut tools_of: BTreeMap<&str, String> = BTreeMap::new();
    let mut results: Vec<g::ToolResponse> = Vec::new();
    for message in &request.messages {
        if !matches!(message, ChatMessage::Tool { .. }) && !results.is_empty() {
            messages.push(std::mem::take(&mut results).into());
        }
        match message {
            ChatMessage::User { text } => messages.push(g::ChatMessage::user(text.as_str())),
            ChatMessage::Assistant { text, calls, kept } => {
                let mut parts: Vec<g::ContentPart> = Vec::new();
                if kept["for"] == format!("{kind:?}") {
                    parts = serde_json::from_value(kept["parts"].clone()).unwrap_or_default();
                }
                if !text.is_empty() {
                    parts.push(g::ContentPart::from_text(text.as_str()));
                }
                for call in calls {
                    let name = names.to_provider(&call.tool);
                    tools_of.insert(&call.call_id, name.clone());
                    parts.push(g::ContentPart::ToolCall(g::ToolCall {
                        call_id: call.call_id.clone(),
                        fn_name: name,
                        fn_arguments: sent_back(&call.arguments),
                        thought_signatures: None,
                    }));
                }
                messages.push(g::ChatMessage::assistant(g::MessageContent::from_parts(parts)));
            }
            ChatMessage::Tool { call_id, text } => {
                let text = if text.is_empty() { "(nothing)" } else { text };
                let response = g::ToolResponse::new(call_id.as_str(), text);
                results.push(match tools_of.get(call_id.as_str()) {
                    Some(name) => response.with_fn_name(name.as_str()),
                    None => response,
                });
            }
        }
    }
    if !results.is_empty() {
        messages.push(results.into());
    }
    let mut asked = g::ChatRequest::new(messages);
    if let Some(system) = &request.system {
        asked = asked.with_system(system.as_str());
    }
    if !request.tools.is_empty() {
        asked = asked.with_tools(request.tools.iter().map(|tool| {
            g::Tool::new(names.to_provider(&tool.name))
                .with_description(tool.description.as_str())
                .with_schema(parameters(&tool.input))
        }));
    }
    asked
}

/// A schema of arguments without what providers stumble over.
fn parameters(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.entry("type").or_insert_with(|| json!("object"));
        object.entry("properties").or_insert_with(|| json!({}));
        schema
    } else {
        json!({ "type": "object", "properties": {} })
    }
}

fn options_of(request: &ChatRequest, target: &Target) -> g::ChatOptions {
    let kind = target.kind;
    let mut options = g::ChatOptions {
        temperature: request.options.temperature,
        max_tokens: request.options.max_tokens,
        ..g::ChatOptions::default()
    }
    .with_capture_usage(true)
    .with_capture_content(true)
    .with_capture_tool_calls(true)
    // Asking for it changes the request where thinking is summed up, which not every model there can do.
    .with_capture_reasoning_content(kind != AdapterKind::OpenAIResp);
    if kind == AdapterKind::Anthropic {
        options = options.with_cache_control(g::CacheControl::Ephemeral);
    }
    let openai = !matches!(
        kind,
        AdapterKind::Anthropic | AdapterKind::Gemini | AdapterKind::Ollama | AdapterKind::Cohere
    );
    if openai && g::ReasoningEffort::from_model_name(&target.model).0.is_some() {
        // A name that ends with the word for an effort is a name all the same; a budget is what is not sent here.
        options = options.with_reasoning_effort(g::ReasoningEffort::Budget(0));
    }
    if let Some(schema) = &request.options.response_format
        && request.tools.is_empty()
    {
        let spec = g::JsonSpec::new("answer", schema.clone());
        options = options.with_response_format(g::ChatResponseFormat::JsonSpec(spec));
    }
    let extra: Map<String, Value> = request
        .options
        .extra
        .iter()
        .filter(|(key, _)| *key != "stream")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !extra.is_empty() {
        options = options.with_extra_body(Value::Object(extra));
    }
    options
}

/// Arguments as JSON where they are; no arguments are an empty object.
fn arguments(arguments: Value) -> Value {
    match arguments {
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        Value::Null => json!({}),
        other => other,
    }
}

/// What was no JSON goes back inside of an object, because providers take nothing else.
fn sent_back(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        other => json!({ "not_an_object": other }),
    }
}

fn usage(usage: Option<g::Usage>) -> Usage {
    let Some(usage) = usage else { return Usage::default() };
    let count = |n: Option<i32>| n.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
    Usage {
        input: count(usage.prompt_tokens),
        cached: count(cached),
        output: count(usage.completion_tokens),
        usd: None,
    }
}
