//! Answers that have to fit a JSON Schema: said to the model, checked, asked again once, then a clear failure.

use agents_domain::ports::BoxFuture;
use agents_domain::ports::model::{
    ChatDelta, ChatMessage, ChatModel, ChatReply, ChatRequest, ModelFailure, ModelFailureKind, Usage,
};
use serde_json::Value;

use super::attempts::Attempts;

/// A model whose answers fit, and are no longer than anybody allows.
pub(super) struct Fitting {
    pub inner: Attempts,
    pub max_tokens: Option<u32>,
}

impl ChatModel for Fitting {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        watch: &'a mut (dyn FnMut(ChatDelta) + Send),
    ) -> BoxFuture<'a, Result<ChatReply, ModelFailure>> {
        Box::pin(async move {
            let mut request = request.clone();
            request.options.max_tokens = match (request.options.max_tokens, self.max_tokens) {
                (Some(asked), Some(most)) => Some(asked.min(most)),
                (asked, most) => asked.or(most),
            };
            let Some(schema) = request.options.response_format.clone() else {
                return self.inner.chat(&request, watch).await;
            };
            let said = format!("Answer with nothing but JSON that fits this JSON Schema:\n{schema}");
            request.system = Some(match request.system {
                Some(system) => format!("{system}\n\n{said}"),
                None => said,
            });
            let first = self.inner.chat(&request, watch).await?;
            if !first.calls.is_empty() {
                return Ok(first);
            }
            let problem = match fits(&schema, &first.text) {
                Ok(()) => return Ok(first),
                Err(problem) => problem,
            };
            watch(ChatDelta::Again {
                reason: format!("the answer does not fit: {problem}"),
                after: std::time::Duration::ZERO,
            });
            let correction = format!(
                "That does not fit the JSON Schema: {problem}. Answer again, with nothing but the JSON."
            );
            request.messages.push(ChatMessage::Assistant {
                text: first.text,
                calls: Vec::new(),
                kept: first.kept,
            });
            request.messages.push(ChatMessage::User { text: correction });
            let second = self.inner.chat(&request, watch).await?;
            let usage = sum(first.usage, second.usage);
            match fits(&schema, &second.text) {
                Ok(()) => Ok(ChatReply { usage, retries: second.retries + 1, ..second }),
                Err(problem) => Err(ModelFailure::new(
                    ModelFailureKind::Malformed,
                    format!(
                        "the model's answer does not fit its `response_format`, also when asked again: {problem}"
                    ),
                )),
            }
        })
    }
}

fn sum(a: Usage, b: Usage) -> Usage {
    let usd = match (a.usd, b.usd) {
        (Some(a), Some(b)) => Some(a + b),
        _ => None,
    };
    Usage { input: a.input + b.input, cached: a.cached + b.cached, output: a.output + b.output, usd }
}

/// The JSON of a text, also where the model put a fence around it.
pub(crate) fn json_of(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let inner = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|rest| rest.trim_end().strip_suffix("```"))
        .unwrap_or(text);
    serde_json::from_str(inner.trim()).map_err(|error| format!("it is no JSON ({error})"))
}

/// Whether a text is JSON that fits; else what is wrong.
fn fits(schema: &Value, text: &str) -> Result<(), String> {
    check(schema, &json_of(text)?)
}

/// Whether a value fits a schema; else what is wrong, the first few things.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let validator =
        jsonschema::validator_for(schema).map_err(|error| format!("the schema itself is wrong: {error}"))?;
    let problems: Vec<String> = validator
        .iter_errors(value)
        .take(3)
        .map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { String::new() } else { format!("at `{place}`: ") };
            let said: String = error.to_string().chars().take(300).collect();
            format!("{place}{said}")
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_in_its_fence_and_problems_name_their_place() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        assert_eq!(fits(&schema, "```json\n{\"n\": 1}\n```"), Ok(()));
        assert!(fits(&schema, "{\"n\": \"x\"}").unwrap_err().contains("/n"));
        assert!(fits(&schema, "sorry").unwrap_err().contains("no JSON"));
    }
}
