//! A look at a message: its kind, id and method. Parameters and results stay text until somebody needs them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::scan::members;

/// A JSON-RPC message. `params` and results are raw JSON.
#[derive(Debug, PartialEq)]
pub(crate) enum Message<'a> {
    Request { id: RequestId, method: Cow<'a, str>, params: Option<&'a str> },
    Notification { method: Cow<'a, str>, params: Option<&'a str> },
    Response { id: RequestId, outcome: Result<&'a str, &'a str> },
}

/// The id of a request: an integer or a string, as JSON text in one spelling, so that it is echoed as it came and a
/// cancel finds it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(Arc<str>);

impl RequestId {
    /// Reads raw JSON; `None` for anything but an integer or a string.
    pub(crate) fn from_json(raw: &str) -> Option<Self> {
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return Some(Self(raw.into()));
        }
        let text: String = serde_json::from_str(raw).ok()?;
        Some(Self(serde_json::Value::String(text).to_string().into()))
    }

    /// The JSON text.
    pub(crate) fn as_json(&self) -> &str {
        &self.0
    }

    pub(crate) fn as_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a body is no message, with the id to answer under where one could be read.
#[derive(Debug, PartialEq)]
pub(crate) enum Invalid {
    /// No JSON (-32700).
    Json(String),
    /// JSON, but no message (-32600).
    Message { id: Option<RequestId>, reason: &'static str },
}

/// Reads the top level of a body.
pub(crate) fn look(body: &[u8]) -> Result<Message<'_>, Invalid> {
    let text = std::str::from_utf8(body).map_err(|error| Invalid::Json(error.to_string()))?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(not_an_object(text));
    }
    Fields::read(text)?.classify()
}

/// The members of a message, as raw JSON.
#[derive(Default)]
struct Fields<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn read(text: &'a str) -> Result<Self, Invalid> {
        let mut fields = Self::default();
        for member in members(text) {
            let (key, value) = member.map_err(|error| Invalid::Json(error.to_string()))?;
            let field = match &*key {
                "jsonrpc" => &mut fields.jsonrpc,
                "id" => &mut fields.id,
                "method" => &mut fields.method,
                "params" => &mut fields.params,
                "result" => &mut fields.result,
                "error" => &mut fields.error,
                _ => continue,
            };
            *field = Some(value);
        }
        Ok(fields)
    }

    fn classify(self) -> Result<Message<'a>, Invalid> {
        let id = self.id.and_then(RequestId::from_json);
        let invalid = |reason| Invalid::Message { id: id.clone(), reason };
        if self.jsonrpc.and_then(string).as_deref() != Some("2.0") {
            return Err(invalid("`jsonrpc` must be \"2.0\""));
        }
        if let Some(method) = self.method {
            let method = string(method).ok_or_else(|| invalid("`method` must be a string"))?;
            let params = self.params.filter(|params| *params != "null");
            if params.is_some_and(|params| !params.starts_with(['{', '['])) {
                return Err(invalid("`params` must be an object or an array"));
            }
            return match (self.id, id) {
                (None, _) => Ok(Message::Notification { method, params }),
                (Some(_), Some(id)) => Ok(Message::Request { id, method, params }),
                (Some(_), None) => Err(Invalid::Message {
                    id: None,
                    reason: "`id` of a request must be an integer or a string",
                }),
            };
        }
        let outcome = match (self.result, self.error) {
            (_, Some(error)) if error != "null" => Err(error),
            (Some(result), _) => Ok(result),
            _ => return Err(invalid("a message has a `method`, or a `result` or an `error`")),
        };
        match id {
            Some(id) => Ok(Message::Response { id, outcome }),
            None => Err(Invalid::Message { id: None, reason: "a response names the `id` of its request" }),
        }
    }
}

/// The content of a raw string; `None` for anything else.
fn string(raw: &str) -> Option<Cow<'_, str>> {
    match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(raw).ok().map(Cow::Owned),
    }
}

fn not_an_object(text: &str) -> Invalid {
    match serde_json::from_str::<IgnoredAny>(text) {
        Err(error) => Invalid::Json(error.to_string()),
        Ok(_) if text.trim_ascii_start().starts_with('[') => Invalid::Message {
            id: None,
            reason: "batches are not part of the protocol, send each message alone",
        },
        Ok(_) => Invalid::Message { id: None, reason: "a message is a JSON object" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(raw: &str) -> RequestId {
        RequestId::from_json(raw).unwrap()
    }

    fn refused(body: &str) -> Invalid {
        look(body.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_message_is_a_request_a_notification_or_a_response() {
        assert_eq!(
            look(br#" {"jsonrpc":"2.0","id":7,"method":"a/b","params":{"x":[1]}} "#).unwrap(),
            Message::Request { id: id("7"), method: "a/b".into(), params: Some(r#"{"x":[1]}"#) }
        );
        assert_eq!(
            look(br#"{"params":null,"method":"a\/b","jsonrpc":"2.0"}"#).unwrap(),
            Message::Notification { method: "a/b".into(), params: None }
        );
        assert_eq!(
            look(br#"{"jsonrpc":"2.0","id":"x","result":null}"#).unwrap(),
            Message::Response { id: id(r#""x""#), outcome: Ok("null") }
        );
        assert_eq!(
            look(br#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1}}"#).unwrap(),
            Message::Response { id: id("1"), outcome: Err(r#"{"code":1}"#) }
        );
    }

    #[test]
    fn ids_are_equal_by_value_and_differ_by_type() {
        assert_eq!(id(r#""\u0061""#), id(r#""a""#));
        assert_ne!(id(r#""1""#), id("1"));
        assert_eq!(id("-12").as_i64(), Some(-12));
        for raw in ["null", "1.5", "1e3", "true", "{}", "[1]", "-", ""] {
            assert_eq!(RequestId::from_json(raw), None, "{raw}");
        }
    }

    #[test]
    fn what_is_no_json_is_a_parse_error() {
        for body in ["", " ", "{", "{]", "nonsense", "{\"a\":tru}", "{\"a\":1}}", "{\"a\":1} x", "[1"] {
            assert!(matches!(refused(body), Invalid::Json(_)), "{body}");
        }
        assert!(matches!(look(b"{\"method\":\"\xff\"}"), Err(Invalid::Json(_))));
    }

    #[test]
    fn json_that_is_no_message_is_refused_under_its_id_where_it_has_one() {
        for (body, expected) in [
            ("3", None),
            ("{}", None),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, None),
            (r#"{"id":1,"method":"a"}"#, Some("1")),
            (r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":3}"#, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":3}"#, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1}"#, Some("1")),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, None),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, None),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, None),
        ] {
            match refused(body) {
                Invalid::Message { id: found, .. } => assert_eq!(found, expected.map(id), "{body}"),
                other => panic!("{body}: {other:?}"),
            }
        }
        let Invalid::Message { reason, .. } = refused("[]") else { panic!() };
        assert!(reason.contains("batches"));
    }

    proptest! {
        /// No body panics.
        #[test]
        fn any_body_is_read_or_refused(body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80),
            r#"\{"(jsonrpc|id|method)":[0-9a-z"{\[\]}:,. ]{0,40}\}?"#.prop_map(String::into_bytes),
        ]) {
            let _ = look(&body);
        }
    }
}
