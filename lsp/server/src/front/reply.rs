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
