//! What an error of a provider means: its kind, whether to try again, and when.

use std::time::Duration;

use agents_domain::ports::model::{ModelFailure, ModelFailureKind};
use agents_domain::redact::redacted_text;
use genai::Error;

use super::wire::Target;

/// Characters of a provider's own words that are passed on.
const QUOTED: usize = 400;

/// One attempt that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub failure: ModelFailure,
    /// Another attempt may help.
    pub again: bool,
    /// The provider said when.
    pub after: Option<Duration>,
}

impl Failed {
    pub fn broken(target: &Target, what: &str) -> Self {
        let message = format!("{}: {what}", target.provider);
        Self { failure: ModelFailure::new(ModelFailureKind::Unavailable, message), again: true, after: None }
    }

    pub fn malformed(target: &Target, what: &str, again: bool) -> Self {
        let message = format!("{}: the answer makes no sense: {what}", target.provider);
        Self { failure: ModelFailure::new(ModelFailureKind::Malformed, message), again, after: None }
    }
}

/// What an error of the crate means.
pub(super) fn understood(error: &Error, target: &Target) -> Failed {
    // The stream hands the refusal over inside of its own error.
    if let Error::WebStream { error: inner, .. } = error {
        if let Some(inner) = inner.downcast_ref::<Error>() {
            return understood(inner, target);
        }
        if let Some(timeout) = inner.downcast_ref::<genai::webc::StreamTimeout>() {
            return Failed::broken(target, &format!("no answer in time ({timeout})"));
        }
        return Failed::broken(target, &format!("the connection broke: {}", quoted(&chain(&**inner))));
    }
    if let Some(status) = error.status() {
        return refused(status.as_u16(), body_of(error), after(error), target);
    }
    match error {
        Error::WebModelCall { webc_error: genai::webc::Error::Reqwest(inner), .. } => {
            Failed::broken(target, &format!("no connection: {}", quoted(&chain(inner))))
        }
        Error::ChatResponse { body, .. } => in_stream(body, target),
        Error::StreamParse { serde_error, .. } => {
            Failed::malformed(target, &format!("a piece of it is no JSON ({serde_error})"), true)
        }
        Error::WebModelCall { webc_error, .. } => {
            Failed::malformed(target, &quoted(&webc_error.to_string()), true)
        }
        Error::ChatResponseGeneration { cause, .. } => Failed::malformed(target, &quoted(cause), true),
        other => Failed {
            failure: ModelFailure::new(
                ModelFailureKind::Invalid,
                format!("{}: {}", target.provider, quoted(&other.to_string())),
            ),
            again: false,
            after: None,
        },
    }
}

fn body_of(error: &Error) -> &str {
    match error {
        Error::HttpError { body, .. }
        | Error::WebModelCall { webc_error: genai::webc::Error::ResponseFailedStatus { body, .. }, .. } => {
            body
        }
        _ => "",
    }
}

/// A refusal by status: 408, 409, 425, 429 and 5xx may pass; nothing else does by waiting.
fn refused(status: u16, body: &str, after: Option<Duration>, target: &Target) -> Failed {
    use ModelFailureKind as K;
    let said = said(body);
    let provider = &target.provider;
    let quota = status == 429 && (body.contains("insufficient_quota") || body.contains("billing"));
    let (kind, again) = match status {
        _ if too_long(body) && status < 500 => (K::TooLong, false),
        401 | 403 => (K::Denied, false),
        404 => (K::Unknown, false),
        413 => (K::TooLong, false),
        429 if quota => (K::Limited, false),
        429 => (K::Limited, true),
        408 | 409 | 425 | 500.. => (K::Unavailable, true),
        _ => (K::Invalid, false),
    };
    let model = &target.model;
    let message = match kind {
        K::TooLong => format!("{provider}: the conversation is too long for `{model}`: {said}"),
        K::Denied => format!("{provider} refused the key ({status}): {said}"),
        K::Unknown => format!("{provider} has no model `{model}` ({status}): {said}"),
        K::Limited if quota => format!("{provider}: the account has nothing left ({status}): {said}"),
        K::Limited => format!("{provider} asks to slow down ({status}): {said}"),
        K::Unavailable => format!("{provider} has trouble of its own ({status}): {said}"),
        _ => format!("{provider} refused the request ({status}): {said}"),
    };
    let failure = ModelFailure::new(kind, message);
    let failure = match kind {
        K::Denied => failure.hint(format!("agents diagnostics tells which key `{provider}` has")),
        K::Unknown => failure.hint("the model's name is what the provider calls it"),
        _ => failure,
    };
    Failed { failure, again, after }
}

/// An error event in the middle of a stream has no status; its type says what it is.
fn in_stream(body: &serde_json::Value, target: &Target) -> Failed {
    let text = body.to_string();
    let kind = ["/error/type", "/type", "/error/code", "/code"]
        .into_iter()
        .find_map(|at| body.pointer(at)?.as_str())
        .unwrap_or_default();
    let status = match kind {
        "invalid_request_error" => 400,
        "authentication_error" | "permission_error" => 401,
        "not_found_error" => 404,
        "rate_limit_error" | "rate_limit_exceeded" => 429,
        _ => 500,
    };
    refused(status, &text, None, target)
}

/// How providers say that the context is too long.
pub(super) fn too_long(body: &str) -> bool {
    const SAYINGS: &[&str] = &[
        "context_length_exceeded",
        "maximum context length",
        "prompt is too long",
        "input is too long",
        "input token count",
        "exceeds the maximum number of tokens",
        "exceed context limit",
        "exceeds the context window",
        "exceeds the available context size",
        "too many tokens",
        "reduce the length of the messages",
        "request_too_large",
        "context window",
    ];
    let body = body.to_ascii_lowercase();
    SAYINGS.iter().any(|saying| body.contains(saying))
}

/// When the provider wants to be asked again. Dates are rare here, and too far off to be worth a parser: they are left out.
fn after(error: &Error) -> Option<Duration> {
    let headers = error.headers()?;
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"))?;
    (seconds.is_finite() && seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(3600.0)))
}

/// The provider's own words, out of whatever it wraps them in.
fn said(body: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let message = ["/error/message", "/message", "/error", "/0/error/message", "/detail"]
        .into_iter()
        .find_map(|at| value.pointer(at)?.as_str())
        .unwrap_or(body);
    if message.trim().is_empty() { "no reason given".to_owned() } else { quoted(message) }
}

/// Bounded, on one line, without secrets.
fn quoted(text: &str) -> String {
    let line = redacted_text(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(QUOTED).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// An error with what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use genai::adapter::AdapterKind;

    fn target() -> Target {
        Target {
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            kind: AdapterKind::OpenAI,
            base_url: None,
            url: None,
            key: None,
            headers: Vec::new(),
        }
    }

    #[test]
    fn a_status_says_what_it_is_and_whether_waiting_helps() {
        use ModelFailureKind as K;
        for (status, body, kind, again) in [
            (400, r#"{"error":{"message":"bad tool"}}"#, K::Invalid, false),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#, K::TooLong, false),
            (400, r#"{"type":"error","error":{"message":"prompt is too long: 2 > 1"}}"#, K::TooLong, false),
            (401, "", K::Denied, false),
            (404, "", K::Unknown, false),
            (422, "", K::Invalid, false),
            (429, "", K::Limited, true),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, K::Limited, false),
            (500, "", K::Unavailable, true),
            (529, "", K::Unavailable, true),
        ] {
            let failed = refused(status, body, None, &target());
            assert_eq!((failed.failure.kind, failed.again), (kind, again), "{status} {body}");
        }
    }

    // SEC-022, SEC-026
    #[test]
    fn a_key_in_a_providers_words_is_masked() {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-0123456789abcdefghijkl."}}"#;
        let failed = refused(401, body, None, &target());
        assert!(!failed.failure.message.contains("0123456789"), "{}", failed.failure.message);
    }
}
