//! What a request says, in whichever protocol.

use serde_json::Value;

use crate::script::When;

/// A protocol of chat models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions.
    ChatCompletions,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
}

impl Protocol {
    /// Told by the path.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        if path.ends_with("/chat/completions") {
            Some(Self::ChatCompletions)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/messages") {
            Some(Self::Messages)
        } else {
            None
        }
    }
}

/// The conversation of a request as one text: every text in it, in order, a line between.
pub(crate) fn conversation(body: &Value) -> String {
    let mut texts = Vec::new();
    for part in ["system", "instructions", "messages", "input"] {
        gather(&body[part], &mut texts);
    }
    texts.join("\n")
}

/// The last message, as one text.
fn last(body: &Value) -> String {
    let messages = body["messages"].as_array().or_else(|| body["input"].as_array());
    let mut texts = Vec::new();
    if let Some(message) = messages.and_then(|messages| messages.last()) {
        gather(message, &mut texts);
    }
    texts.join("\n")
}

fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
        Value::Object(members) => members.values().for_each(|member| gather(member, texts)),
        _ => {}
    }
}

/// The names of the tools that are offered.
pub(crate) fn tools(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools
        .filter_map(|tool| tool["function"]["name"].as_str().or_else(|| tool["name"].as_str()))
        .map(str::to_owned)
        .collect()
}

/// How often the model has spoken.
fn turns(body: &Value) -> usize {
    let messages = body["messages"].as_array().or_else(|| body["input"].as_array());
    messages.into_iter().flatten().filter(|message| message["role"] == "assistant").count()
}

/// Whether a reply is for a request.
pub(crate) fn wants(when: &When, body: &Value) -> bool {
    let all = conversation(body);
    when.contains.iter().all(|text| all.contains(text))
        && !when.lacks.iter().any(|text| all.contains(text))
        && when.last.as_ref().is_none_or(|text| last(body).contains(text))
        && when.model.as_ref().is_none_or(|model| body["model"] == model.as_str())
        && when.tool.as_ref().is_none_or(|tool| tools(body).contains(tool))
        && when.turns.is_none_or(|n| turns(body) == n)
}

/// The name a request has for a tool: itself, or as it is made to fit.
pub(crate) fn named(tool: &str, body: &Value) -> String {
    let offered = tools(body);
    if offered.iter().any(|name| name == tool) {
        return tool.to_owned();
    }
    let safe = tool.replace('/', "__").replace(['.', ':'], "-");
    if offered.contains(&safe) { safe } else { tool.to_owned() }
}
