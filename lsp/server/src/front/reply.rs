//! Answers to the client, as message bodies.

use serde::Serialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Error;

use super::message::RequestId;

/// A handler's outcome.
pub(crate) fn outcome(id: &RequestId, outcome: Result<Value, Error>) -> Vec<u8> {
    match outcome {
        Ok(result) => body(id.as_json(), "result", &result),
        Err(error) => body(id.as_json(), "error", &error),
    }
}

/// An error of the front's own; the id is `null` where none could be read.
pub(crate) fn error(id: Option<&RequestId>, code: i64, message: &str) -> Vec<u8> {
    body(id.map_or("null", RequestId::as_json), "error", &json!({ "code": code, "message": message }))
}

/// An answer whose result or error is JSON already.
pub(crate) fn raw(id: &RequestId, outcome: Result<&str, &str>) -> Vec<u8> {
    let (key, value) = match outcome {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    ["{\"jsonrpc\":\"2.0\",\"id\":", id.as_json(), ",\"", key, "\":", value, "}"].concat().into_bytes()
}

/// A request whose parameters are JSON already.
pub(crate) fn request(id: i64, method: &str, params: Option<&str>) -> Vec<u8> {
    let id = id.to_string();
    with_params(&["{\"jsonrpc\":\"2.0\",\"id\":", &id, ","], method, params)
}

/// A notification whose parameters are JSON already.
pub(crate) fn notification(method: &str, params: Option<&str>) -> Vec<u8> {
    with_params(&["{\"jsonrpc\":\"2.0\","], method, params)
}

fn with_params(head: &[&str], method: &str, params: Option<&str>) -> Vec<u8> {
    // A method may hold anything that a string may.
    let method = Value::from(method).to_string();
    let params = params.map_or_else(|| ["", ""], |params| [",\"params\":", params]);
    [&head.concat(), "\"method\":", &method, params[0], params[1], "}"].concat().into_bytes()
}

/// Writes the id as it came: reading it into a number could change it.
fn body(id: &str, key: &str, value: &impl Serialize) -> Vec<u8> {
    let mut body = format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":"#).into_bytes();
    if let Err(error) = serde_json::to_writer(&mut body, value) {
        tracing::error!(%error, "an answer cannot be written as JSON");
        return format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"internal error"}}}}"#
        )
        .into_bytes();
    }
    body.push(b'}');
    body
}
