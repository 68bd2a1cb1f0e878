//! Asks a server what is wrong with a file, by pull or by push, and waits until it means it.

use std::sync::Arc;
use std::time::Duration;

use agents_domain::diagnostics::{Diagnostic, Severity};
use serde_json::{Value, json};
use tokio::sync::RwLockWriteGuard;
use tokio::time::Instant;

use crate::client::{Client, Patience, RequestError};
use crate::documents::Snapshot;
use crate::instance::{Instance, Trouble};
use crate::position::Converter;
use crate::protocol::{CONTENT_MODIFIED, REQUEST_CANCELLED, SERVER_CANCELLED};
use crate::pushed::Verdict;
use crate::uri;

/// How often a pull is repeated because the server asked for it.
const MAX_REFRESHES: u64 = 3;
/// First pause before asking again what the server was too busy to answer; doubled each time up to a second.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// At least this often what was seen is judged anew: progress may be forgotten, processes may come to rest.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How long to wait for a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) request: Duration,
    pub(crate) start: Duration,
}

/// Held by the one question that is asked alone.
type Alone<'a> = Option<RwLockWriteGuard<'a, ()>>;

/// Diagnostics of one file, asked twice when the server dies over the first question. `Err` says why there are none.
pub(crate) async fn diagnose(
    instance: &Arc<Instance>,
    path: &str,
    limits: Limits,
) -> Result<Vec<Diagnostic>, String> {
    let first = {
        let _shared = instance.caution.read().await;
        attempt(instance, path, limits, &mut None).await
    };
    let reason = match first {
        Err((Trouble::Gone(reason), _)) => reason,
        other => return other.map_err(|(trouble, _)| trouble.into_text(instance)),
    };
    tracing::debug!(server = %instance.definition.name, path, reason, "asking again");
    let mut alone = Some(instance.caution.write().await);
    attempt(instance, path, limits, &mut alone).await.map_err(|(trouble, text)| {
        if let (Trouble::Gone(_), Some(text), Some(_)) = (&trouble, text, &alone) {
            instance.blame(path, text);
        }
        trouble.into_text(instance)
    })
}

impl Trouble {
    pub(crate) fn into_text(self, instance: &Instance) -> String {
        match self {
            Self::Problem(problem) => problem,
            Self::Gone(reason) => format!("{} went away over this file: {reason}", instance.definition.name),
        }
    }
}

type Attempt<T> = Result<T, (Trouble, Option<Arc<str>>)>;

async fn attempt(
    instance: &Arc<Instance>,
    path: &str,
    limits: Limits,
    alone: &mut Alone<'_>,
) -> Attempt<Vec<Diagnostic>> {
    let problem = |problem: String| (Trouble::Problem(problem), None);
    if instance.is_unresponsive() {
        return Err(problem(format!(
            "{} was not asked: it left too many files before this one without an answer",
            instance.definition.name
        )));
    }
    let client = instance.client(limits.start).await.map_err(problem)?;
    let snapshot = instance.open(&client, path, limits.request).await.map_err(|trouble| (trouble, None))?;
    let result = collect(instance, &client, &snapshot, limits.request, alone).await;
    match result {
        Ok(items) => {
            instance.answered();
            snapshot.mark_answered();
            let converter = Converter::new(&snapshot.text, client.facts.encoding);
            Ok(items.into_iter().map(|raw| read(raw, &converter)).collect())
        }
        Err(Trouble::Gone(_)) => {
            Err((Trouble::Gone(client.post_mortem().await), Some(snapshot.text.clone())))
        }
        Err(problem) => Err((problem, None)),
    }
}

async fn collect(
    instance: &Arc<Instance>,
    client: &Arc<Client>,
    snapshot: &Snapshot,
    timeout: Duration,
    alone: &mut Alone<'_>,
) -> Result<Vec<Value>, Trouble> {
    let patience = instance.patience(timeout);
    loop {
        let late = if client.pulls(snapshot.language).is_empty() {
            match pushed(instance, client, snapshot, &patience, alone).await? {
                Push::Answer(items) => return Ok(items),
                Push::PullInstead => continue,
                Push::Late(problem) => {
                    // A server that publishes only what is wrong is silent, not unresponsive.
                    if client.shared.pushed(|pushed| pushed.publishes) == 0 {
                        instance.strike();
                    }
                    problem
                }
            }
        } else {
            match pulled(instance, client, snapshot, &patience).await {
                Ok(Some(items)) => return Ok(items),
                Ok(None) => {
                    let busy = client.shared.pushed(|pushed| pushed.busy().map(str::to_owned));
                    format!("it was still busy with \u{201c}{}\u{201d}", busy.unwrap_or_default())
                }
                Err(RequestError::Closed(reason)) => return Err(Trouble::Gone(reason.to_string())),
                Err(RequestError::Refused { code, message, .. }) => {
                    instance.answered();
                    return Err(Trouble::Problem(format!(
                        "{} did not diagnose the file: {message} ({code})",
                        instance.definition.name
                    )));
                }
                Err(RequestError::Late) => {
                    instance.strike();
                    "it did not answer".to_owned()
                }
            }
        };
        instance.suspect(client).await;
        if let Some(reason) = client.closed() {
            return Err(Trouble::Gone(reason.to_string()));
        }
        let seconds = timeout.as_secs_f32();
        return Err(Trouble::Problem(format!(
            "{} gave no diagnostics within {seconds} s: {late}",
            instance.definition.name
        )));
    }
}

enum Push {
    Answer(Vec<Value>),
    /// The server registered pulled diagnostics meanwhile.
    PullInstead,
    Late(String),
}

async fn pushed(
    instance: &Instance,
    client: &Client,
    snapshot: &Snapshot,
    patience: &Patience,
    alone: &mut Alone<'_>,
) -> Result<Push, Trouble> {
    let quiet = instance.timing.quiet;
    let mut events = client.shared.events();
    loop {
        events.mark_unchanged();
        if let Some(reason) = client.closed() {
            return Err(Trouble::Gone(reason.to_string()));
        }
        if !client.pulls(snapshot.language).is_empty() {
            return Ok(Push::PullInstead);
        }
        if alone.is_some() && client.shared.pushed(|pushed| pushed.list(snapshot.asked()).is_some()) {
            // The server has digested the text; others need not wait until it has settled.
            *alone = None;
        }
        let resting = client.idle_since();
        let verdict = client.shared.pushed(|pushed| pushed.verdict(snapshot.asked(), resting, quiet));
        let deadline = patience.deadline();
        let look_again = match verdict {
            Verdict::Settled => {
                let items = client
                    .shared
                    .pushed(|pushed| pushed.answer(snapshot.asked()).map(|list| list.items.clone()));
                return Ok(Push::Answer(items.unwrap_or_default()));
            }
            Verdict::Wait(again) => again.unwrap_or(deadline).min(deadline).min(Instant::now() + LOOK_AGAIN),
        };
        if Instant::now() >= deadline {
            let word = client.shared.pushed(|pushed| {
                pushed.last_word(snapshot.asked(), resting, quiet).map(|list| list.items.clone())
            });
            return Ok(match word {
                Ok(items) => Push::Answer(items),
                Err(problem) => Push::Late(problem),
            });
        }
        let _ = tokio::time::timeout_at(look_again, events.changed()).await;
    }
}

/// Pulls from every provider until the server has settled; `None` when it was busy to the end and had nothing to say.
async fn pulled(
    instance: &Instance,
    client: &Client,
    snapshot: &Snapshot,
    patience: &Patience,
) -> Result<Option<Vec<Value>>, RequestError> {
    let mut events = client.shared.events();
    let refreshes = || client.shared.pushed(|pushed| pushed.refreshes);
    let first = refreshes();
    loop {
        let before = refreshes();
        let mut items = Vec::new();
        {
            let _turn = instance.pulls.acquire().await;
            for provider in client.pulls(snapshot.language) {
                items.extend(pull(client, snapshot, provider, patience).await?);
            }
        }
        client.shared.pushed(|pushed| {
            // Some servers pull one part and push the other, or speak of a header in the answer for its includer.
            let others = pushed.list(snapshot.asked()).into_iter().flat_map(|list| &list.items);
            for item in others.chain(pushed.related(&snapshot.file)) {
                if !items.contains(item) {
                    items.push(item.clone());
                }
            }
        });
        let mut was_busy = false;
        loop {
            events.mark_unchanged();
            let busy = client.shared.pushed(|pushed| pushed.busy().is_some());
            if !busy {
                break;
            }
            was_busy = true;
            if client.closed().is_some() || Instant::now() >= patience.deadline() {
                return Ok((!items.is_empty()).then_some(items));
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, events.changed()).await;
        }
        let now = refreshes();
        let asked_again = now != before && now - first <= MAX_REFRESHES;
        if !was_busy && !asked_again {
            return Ok(Some(items));
        }
    }
}

/// One pull from one provider.
async fn pull(
    client: &Client,
    snapshot: &Snapshot,
    provider: Option<String>,
    patience: &Patience,
) -> Result<Vec<Value>, RequestError> {
    let mut previous = snapshot.pulled(&provider);
    let mut pause = RETRY_PAUSE;
    loop {
        let mut params = json!({ "textDocument": { "uri": snapshot.uri } });
        if let Some(identifier) = &provider {
            params["identifier"] = json!(identifier);
        }
        if let Some((id, _)) = &previous {
            params["previousResultId"] = json!(id);
        }
        let answer =
            client.shared.request_with_partials("textDocument/diagnostic", params, patience, true).await;
        let (report, partials) = match answer {
            Err(RequestError::Refused { code, data, .. })
                if worth_retrying(code, &data) && Instant::now() + pause < patience.deadline() =>
            {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
                continue;
            }
            other => other?,
        };
        if report["kind"] == "unchanged" {
            match previous.take() {
                Some((_, items)) => {
                    let id = report["resultId"].as_str().map(|id| (id.to_owned(), items.clone()));
                    snapshot.set_pulled(provider, id);
                    return Ok(items);
                }
                // Unchanged since nothing: asked once more without the past.
                None if Instant::now() < patience.deadline() => {
                    snapshot.set_pulled(provider.clone(), None);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(1));
                    continue;
                }
                None => return Err(RequestError::Late),
            }
        }
        if !report.is_object() && partials.is_empty() {
            // Not the same as an empty list: nothing says that the file is clean.
            return Err(RequestError::Refused {
                code: 0,
                message: "it answered without a report".to_owned(),
                data: report,
            });
        }
        let mut items = Vec::new();
        let mut related = Vec::new();
        for part in partials.iter().chain([&report]) {
            items.extend(part["items"].as_array().into_iter().flatten().cloned());
            for (uri, report) in part["relatedDocuments"].as_object().into_iter().flatten() {
                if let (Some(path), Some(items)) = (uri::to_path(uri), report["items"].as_array()) {
                    related.push((path, items.clone()));
                }
            }
        }
        client.shared.pushed(|pushed| pushed.relate(&snapshot.file, related));
        let id = report["resultId"].as_str().map(|id| (id.to_owned(), items.clone()));
        snapshot.set_pulled(provider, id);
        return Ok(items);
    }
}

/// Whether a refusal means "ask again".
pub(crate) fn worth_retrying(code: i64, data: &Value) -> bool {
    match code {
        CONTENT_MODIFIED | REQUEST_CANCELLED => true,
        SERVER_CANCELLED => data["retriggerRequest"] != false,
        _ => false,
    }
}

/// A diagnostic of the protocol in the engine's terms; what is malformed is kept as far as it makes sense, since to
/// drop it would make a file look clean.
pub(crate) fn read(raw: Value, converter: &Converter<'_>) -> Diagnostic {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let code = text(&raw["code"]).or_else(|| text(&raw["code"]["value"]));
    let severity = match &raw["severity"] {
        Value::Number(number) => number.as_u64().unwrap_or(1),
        Value::String(name) => match name.to_ascii_lowercase().as_str() {
            "warning" => 2,
            "information" | "info" => 3,
            "hint" => 4,
            _ => 1,
        },
        _ => 1,
    };
    Diagnostic {
        range: converter.range(&raw["range"]),
        severity: match severity {
            2 => Severity::Warning,
            3 => Severity::Information,
            4 => Severity::Hint,
            _ => Severity::Error,
        },
        code: code.filter(|code| !code.is_empty()),
        source: text(&raw["source"]).filter(|source| !source.is_empty()),
        message: text(&raw["message"]).or_else(|| text(&raw["message"]["value"])).unwrap_or_default(),
        raw,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Encoding;
    use agents_domain::text::Range;

    #[test]
    fn diagnostics_of_odd_shapes_are_kept_as_far_as_they_make_sense() {
        let converter = Converter::new("é = 1\n", Encoding::Utf16);
        let range = json!({"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 3}});
        let one = read(
            json!({"range": range, "severity": 2, "code": "F401", "source": "Ruff", "message": "m", "data": {"x": 1}}),
            &converter,
        );
        assert_eq!(
            (one.range, one.severity, one.code.as_deref()),
            (Range::new((0, 2), (0, 4)), Severity::Warning, Some("F401"))
        );
        assert_eq!(one.raw["data"], json!({"x": 1}));
        for (code, expected) in [
            (json!(6133), Some("6133")),
            (json!({"value": "E1", "target": "x"}), Some("E1")),
            (json!(""), None),
            (Value::Null, None),
            (json!([]), None),
        ] {
            assert_eq!(
                read(json!({"range": range, "code": code, "message": "m"}), &converter).code.as_deref(),
                expected
            );
        }
        let odd =
            read(json!({"message": {"kind": "markdown", "value": "m"}, "severity": "Hint"}), &converter);
        assert_eq!((odd.range, odd.severity, odd.message.as_str()), (Range::default(), Severity::Hint, "m"));
        assert_eq!(read(json!(3), &converter).severity, Severity::Error);
        assert_eq!(read(json!({"severity": 9}), &converter).severity, Severity::Error);
    }

    #[test]
    fn only_refusals_that_mean_ask_again_are_retried() {
        assert!(
            worth_retrying(CONTENT_MODIFIED, &Value::Null) && worth_retrying(REQUEST_CANCELLED, &Value::Null)
        );
        assert!(worth_retrying(SERVER_CANCELLED, &Value::Null));
        assert!(!worth_retrying(SERVER_CANCELLED, &json!({"retriggerRequest": false})));
        assert!(!worth_retrying(-32603, &Value::Null));
    }
}
