//! What a reply is on the wire, in whichever protocol.

use serde_json::{Value, json};

use crate::protocol::{Protocol, conversation, named};
use crate::script::Reply;

/// A call as it is sent: id, name and arguments.
struct Sent {
    id: String,
    name: String,
    args: String,
}

fn calls(reply: &Reply, body: &Value, number: usize) -> Vec<Sent> {
    let said = conversation(body);
    let calls = reply.calls.iter().enumerate();
    calls
        .map(|(index, call)| Sent {
            id: format!("call_{number}_{index}"),
            name: named(&call.tool, body),
            args: call.arguments(&said),
        })
        .collect()
}

/// A text in pieces, as models send it.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(chars.len().div_ceil(4).max(1)).map(|piece| piece.iter().collect()).collect()
}

/// An answer as a whole document.
pub(crate) fn whole(protocol: Protocol, reply: &Reply, body: &Value, number: usize) -> Value {
    let (model, usage) = (&body["model"], &reply.usage);
    let calls = calls(reply, body, number);
    match protocol {
        Protocol::ChatCompletions => {
            let mut message = json!({ "role": "assistant", "content": reply.text });
            if !reply.thinking.is_empty() {
                message["reasoning_content"] = json!(reply.thinking);
            }
            if !calls.is_empty() {
                message["tool_calls"] = calls
                    .iter()
                    .map(|c| json!({ "id": c.id, "type": "function", "function": { "name": c.name, "arguments": c.args } }))
                    .collect();
            }
            json!({
                "id": format!("chatcmpl-{number}"), "object": "chat.completion", "created": 0, "model": model,
                "choices": [{ "index": 0, "message": message, "finish_reason": finish(reply) }],
                "usage": chat_usage(reply),
            })
        }
        Protocol::Messages => {
            let mut content = Vec::new();
            if !reply.thinking.is_empty() {
                content.push(json!({ "type": "thinking", "thinking": reply.thinking, "signature": "c2ln" }));
            }
            if !reply.text.is_empty() {
                content.push(json!({ "type": "text", "text": reply.text }));
            }
            for call in &calls {
                let input: Value = serde_json::from_str(&call.args).unwrap_or_default();
                content.push(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input }));
            }
            json!({
                "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": model,
                "content": content, "stop_reason": stop_reason(reply), "stop_sequence": null,
                "usage": {
                    "input_tokens": usage.input - usage.cached, "cache_read_input_tokens": usage.cached,
                    "output_tokens": usage.output,
                },
            })
        }
        Protocol::Responses => response(reply, &calls, model, number),
    }
}

fn response(reply: &Reply, calls: &[Sent], model: &Value, number: usize) -> Value {
    let mut output = Vec::new();
    if !reply.text.is_empty() {
        output.push(json!({
            "type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": reply.text, "annotations": [] }],
        }));
    }
    for call in calls {
        output.push(json!({
            "type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id, "name": call.name,
            "arguments": call.args, "status": "completed",
        }));
    }
    json!({
        "id": format!("resp_{number}"), "object": "response", "created_at": 0, "status": "completed", "model": model,
        "output": output,
        "usage": {
            "input_tokens": reply.usage.input, "input_tokens_details": { "cached_tokens": reply.usage.cached },
            "output_tokens": reply.usage.output, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": reply.usage.input + reply.usage.output,
        },
    })
}

fn finish(reply: &Reply) -> &str {
    let own = if reply.calls.is_empty() { "stop" } else { "tool_calls" };
    reply.stop.as_deref().unwrap_or(own)
}

fn stop_reason(reply: &Reply) -> &str {
    let own = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
    reply.stop.as_deref().unwrap_or(own)
}

fn chat_usage(reply: &Reply) -> Value {
    json!({
        "prompt_tokens": reply.usage.input, "completion_tokens": reply.usage.output,
        "total_tokens": reply.usage.input + reply.usage.output,
        "prompt_tokens_details": { "cached_tokens": reply.usage.cached },
    })
}

/// An answer as the events of a stream, each a frame of its own.
pub(crate) fn stream(protocol: Protocol, reply: &Reply, body: &Value, number: usize) -> Vec<String> {
    let calls = calls(reply, body, number);
    match protocol {
        Protocol::ChatCompletions => chat_stream(reply, &calls, &body["model"], number),
        Protocol::Messages => message_stream(reply, &calls, &body["model"], number),
        Protocol::Responses => response_stream(reply, &calls, &body["model"], number),
    }
}

fn chat_stream(reply: &Reply, calls: &[Sent], model: &Value, number: usize) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({
            "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 0, "model": model,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        });
        format!("data: {chunk}\n\n")
    };
    let mut frames = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
    for piece in pieces(&reply.thinking) {
        frames.push(chunk(json!({ "reasoning_content": piece }), Value::Null));
    }
    for piece in pieces(&reply.text) {
        frames.push(chunk(json!({ "content": piece }), Value::Null));
    }
    for (index, call) in calls.iter().enumerate() {
        let begun = json!({ "index": index, "id": call.id, "type": "function", "function": { "name": call.name, "arguments": "" } });
        frames.push(chunk(json!({ "tool_calls": [begun] }), Value::Null));
        for piece in pieces(&call.args) {
            let more = json!({ "index": index, "function": { "arguments": piece } });
            frames.push(chunk(json!({ "tool_calls": [more] }), Value::Null));
        }
    }
    frames.push(chunk(json!({}), json!(finish(reply))));
    let usage = json!({
        "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 0, "model": model,
        "choices": [], "usage": chat_usage(reply),
    });
    frames.push(format!("data: {usage}\n\n"));
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}

fn message_stream(reply: &Reply, calls: &[Sent], model: &Value, number: usize) -> Vec<String> {
    let usage = json!({
        "input_tokens": reply.usage.input - reply.usage.cached, "cache_read_input_tokens": reply.usage.cached,
        "output_tokens": 1,
    });
    let message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let mut frames = vec![event("message_start", json!({ "message": message })), event("ping", json!({}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        frames.push(event("content_block_start", json!({ "index": index, "content_block": start })));
        for delta in deltas {
            frames.push(event("content_block_delta", json!({ "index": index, "delta": delta })));
        }
        frames.push(event("content_block_stop", json!({ "index": index })));
        index += 1;
    };
    if !reply.thinking.is_empty() {
        let mut deltas: Vec<Value> = pieces(&reply.thinking)
            .into_iter()
            .map(|piece| json!({ "type": "thinking_delta", "thinking": piece }))
            .collect();
        deltas.push(json!({ "type": "signature_delta", "signature": "c2ln" }));
        block(json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas);
    }
    if !reply.text.is_empty() {
        let deltas =
            pieces(&reply.text).into_iter().map(|piece| json!({ "type": "text_delta", "text": piece }));
        block(json!({ "type": "text", "text": "" }), deltas.collect());
    }
    for call in calls {
        let deltas = pieces(&call.args)
            .into_iter()
            .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }));
        block(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} }), deltas.collect());
    }
    let ended = json!({
        "delta": { "stop_reason": stop_reason(reply), "stop_sequence": null },
        "usage": { "output_tokens": reply.usage.output },
    });
    frames.push(event("message_delta", ended));
    frames.push(event("message_stop", json!({})));
    frames
}

fn response_stream(reply: &Reply, calls: &[Sent], model: &Value, number: usize) -> Vec<String> {
    let done = response(reply, calls, model, number);
    let mut begun = done.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut frames = vec![event("response.created", json!({ "response": begun }))];
    for (index, item) in done["output"].as_array().into_iter().flatten().enumerate() {
        let mut empty = item.clone();
        empty["status"] = json!("in_progress");
        let id = &item["id"];
        if item["type"] == "message" {
            empty["content"] = json!([]);
            frames.push(event("response.output_item.added", json!({ "output_index": index, "item": empty })));
            for piece in pieces(&reply.text) {
                let delta =
                    json!({ "item_id": id, "output_index": index, "content_index": 0, "delta": piece });
                frames.push(event("response.output_text.delta", delta));
            }
        } else {
            empty["arguments"] = json!("");
            frames.push(event("response.output_item.added", json!({ "output_index": index, "item": empty })));
            let args = item["arguments"].as_str().unwrap_or_default();
            for piece in pieces(args) {
                let delta = json!({ "item_id": id, "output_index": index, "delta": piece });
                frames.push(event("response.function_call_arguments.delta", delta));
            }
            let whole = json!({ "item_id": id, "output_index": index, "arguments": args });
            frames.push(event("response.function_call_arguments.done", whole));
        }
        frames.push(event("response.output_item.done", json!({ "output_index": index, "item": item })));
    }
    frames.push(event("response.completed", json!({ "response": done })));
    frames
}

/// The words for a conversation that is too long.
pub(crate) fn too_long(protocol: Protocol) -> Value {
    match protocol {
        Protocol::Messages => json!({
            "type": "error",
            "error": { "type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum" },
        }),
        _ => json!({ "error": {
            "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
            "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
        } }),
    }
}

/// A refusal in the words of the protocol.
pub(crate) fn refusal(protocol: Option<Protocol>, status: u16, message: &str) -> Value {
    match protocol {
        Some(Protocol::Messages) => {
            let kind = match status {
                429 => "rate_limit_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            };
            json!({ "type": "error", "error": { "type": kind, "message": message } })
        }
        _ => json!({ "error": { "message": message, "type": "error", "param": null, "code": null } }),
    }
}

/// An error in the middle of a stream.
pub(crate) fn error_event(protocol: Protocol, message: &str) -> String {
    match protocol {
        Protocol::Messages => {
            event("error", json!({ "error": { "type": "overloaded_error", "message": message } }))
        }
        Protocol::ChatCompletions => {
            format!("data: {}\n\n", json!({ "error": { "message": message, "type": "server_error" } }))
        }
        Protocol::Responses => {
            event("error", json!({ "code": "server_error", "message": message, "param": null }))
        }
    }
}
