//! What a tool returned, as actors are told it: bounded, without secrets, without what no model can read.

use agents_domain::ports::mcp::McpAnswer;
use serde_json::{Value, json};

use super::masked;

/// Bytes of text that are kept of an answer.
const MOST: usize = 256 << 10;

/// Reads the result of `tools/call` (MCP-006, MCP-007). `place` puts paths back.
pub(crate) fn read(result: &Value, secrets: &[String], place: impl Fn(&str) -> String) -> McpAnswer {
    let clean = |text: &str| place(&masked(text, secrets));
    if result["isError"] == true {
        let said = result["content"].get(0).and_then(|first| first["text"].as_str());
        let message = said.map(|text| clean(text.trim())).filter(|text| !text.is_empty());
        let message = message.unwrap_or_else(|| "unknown error".to_owned());
        return McpAnswer { result: bounded(message), is_error: true };
    }
    let mut texts = Vec::new();
    let mut others = Vec::new();
    for block in result["content"].as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => texts.push(clean(block["text"].as_str().unwrap_or_default())),
            Some("resource") if block["resource"]["text"].is_string() => {
                texts.push(clean(block["resource"]["text"].as_str().unwrap_or_default()));
            }
            Some(kind @ ("image" | "audio")) => {
                let bytes = block["data"].as_str().map_or(0, |data| data.len() / 4 * 3);
                others.push(json!({ "type": kind, "mimeType": block["mimeType"], "bytes": bytes, "note": "not shown" }));
            }
            Some(_) => others.push(through(block, &clean)),
            None => {}
        }
    }
    let mut answer = json!({});
    if !texts.is_empty() || result["structuredContent"].is_null() {
        answer["text"] = bounded(texts.join("\n"));
    }
    if !result["structuredContent"].is_null() {
        let structured = through(&result["structuredContent"], &clean);
        answer["structured"] = match structured.to_string().len() {
            fits if fits <= MOST => structured,
            _ => bounded(structured.to_string()),
        };
    }
    if !others.is_empty() {
        let others = Value::from(others);
        answer["content"] =
            if others.to_string().len() <= MOST { others } else { bounded(others.to_string()) };
    }
    McpAnswer { result: answer, is_error: false }
}

/// A value with all its texts put through.
pub(crate) fn through(value: &Value, put: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(put(text)),
        Value::Array(items) => items.iter().map(|item| through(item, put)).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), through(value, put))).collect(),
        other => other.clone(),
    }
}

fn bounded(mut text: String) -> Value {
    if text.len() > MOST {
        let mut end = MOST;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let more = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n... ({more} more bytes are left out)"));
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: Value) -> McpAnswer {
        read(&result, &["hunter2".to_owned()], |text| text.replace("/sandbox/", ""))
    }

    // MCP-006: the four shapes of a failure.
    #[test]
    fn an_error_is_told_by_its_first_text_and_a_malformed_one_is_unknown() {
        let text = |result: Value| {
            let answer = answer(result);
            assert!(answer.is_error);
            answer.result
        };
        assert_eq!(
            text(json!({ "isError": true, "content": [{ "type": "text", "text": "no /sandbox/a.txt" }] })),
            "no a.txt"
        );
        assert_eq!(text(json!({ "isError": true })), "unknown error");
        assert_eq!(text(json!({ "isError": true, "content": "oops" })), "unknown error");
        assert_eq!(text(json!({ "isError": true, "content": [{ "type": "image" }] })), "unknown error");
        // A top-level `error` is no part of the protocol.
        assert!(!answer(json!({ "error": "x", "content": [] })).is_error);
    }

    // MCP-007
    #[test]
    fn texts_are_joined_structured_content_is_kept_and_images_are_named() {
        let got = answer(json!({
            "content": [
                { "type": "text", "text": "one hunter2" },
                { "type": "text", "text": "two" },
                { "type": "image", "data": "AAAAAAAA", "mimeType": "image/png" },
            ],
            "structuredContent": { "path": "/sandbox/b", "n": 1 },
        }));
        assert_eq!(
            got.result,
            json!({
                "text": "one ********\ntwo",
                "structured": { "path": "b", "n": 1 },
                "content": [{ "type": "image", "mimeType": "image/png", "bytes": 6, "note": "not shown" }],
            })
        );
        let long = answer(json!({ "content": [{ "type": "text", "text": "ä".repeat(MOST) }] }));
        assert!(long.result["text"].as_str().unwrap().ends_with("more bytes are left out)"));
    }
}
