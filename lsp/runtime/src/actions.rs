//! Asks a server how it would fix one of its diagnostics, and what each fix would change.

use std::sync::Arc;

use agents_domain::diagnostics::Diagnostic;
use agents_domain::ports::language_servers::CodeActionOffer;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{Client, Patience, RequestError};
use crate::diagnostics::{Limits, worth_retrying};
use crate::documents::Snapshot;
use crate::edits::{Known, file_edits};
use crate::instance::{Instance, Trouble};
use crate::position::Converter;
use crate::questions::twice;
use crate::{files, lock};

/// Actions looked at for one diagnostic.
const MAX_ACTIONS: usize = 100;
/// Pause before asking again what the server was too busy to answer.
const RETRY_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Resolved actions for one diagnostic, asked twice when the server dies over the first question.
pub(crate) async fn code_actions(
    instance: &Arc<Instance>,
    path: &str,
    diagnostic: &Diagnostic,
    limits: Limits,
) -> Result<Vec<CodeActionOffer>, String> {
    twice(instance, || attempt(instance, path, diagnostic, limits)).await
}

async fn attempt(
    instance: &Arc<Instance>,
    path: &str,
    diagnostic: &Diagnostic,
    limits: Limits,
) -> Result<Vec<CodeActionOffer>, Trouble> {
    let client = instance.client(limits.start).await.map_err(Trouble::Problem)?;
    let snapshot = instance.open(&client, path, limits.request).await?;
    let asking = Asking {
        instance,
        client: &client,
        snapshot: &snapshot,
        patience: instance.patience(limits.request),
    };
    let mut actions = asking.list(diagnostic, Some("quickfix")).await?;
    if actions.is_empty() {
        // Some servers give their fixes no kind, or do not know the filter.
        actions = asking.list(diagnostic, None).await?;
        actions.retain(|action| is_for(action, &diagnostic.raw));
    }
    actions.truncate(MAX_ACTIONS);
    let mut offers = Vec::with_capacity(actions.len());
    for action in actions {
        offers.push(asking.offer(action).await?);
    }
    instance.answered();
    if !snapshot.is_current() {
        return Err(Trouble::Problem(format!(
            "{path} changed while {} was asked for fixes",
            instance.definition.name
        )));
    }
    Ok(offers)
}

/// Whether an unfiltered action is meant for a diagnostic rather than offered anywhere.
fn is_for(action: &Value, raw: &Value) -> bool {
    let named = action["diagnostics"].as_array().is_some_and(|list| {
        list.iter().any(|one| one["range"] == raw["range"] && one["message"] == raw["message"])
    });
    let kind = action["kind"].as_str().unwrap_or_default();
    named || kind.is_empty() || kind == "quickfix" || kind.starts_with("quickfix.")
}

/// Questions about one open document.
pub(crate) struct Asking<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) client: &'a Client,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) patience: Patience,
}

impl Asking<'_> {
    async fn list(&self, diagnostic: &Diagnostic, only: Option<&str>) -> Result<Vec<Value>, Trouble> {
        let converter = Converter::new(&self.snapshot.text, self.client.facts.encoding);
        let range = match &diagnostic.raw["range"] {
            range if range["start"].is_object() && range["end"].is_object() => range.clone(),
            _ => converter.range_to_protocol(diagnostic.range),
        };
        let mut context = json!({ "diagnostics": [diagnostic.raw], "triggerKind": 1 });
        if let Some(kind) = only {
            context["only"] = json!([kind]);
        }
        let params =
            json!({ "textDocument": { "uri": self.snapshot.uri }, "range": range, "context": context });
        match self.ask("textDocument/codeAction", params).await? {
            Value::Array(actions) => Ok(actions.into_iter().filter(Value::is_object).collect()),
            _ => Ok(Vec::new()),
        }
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, Trouble> {
        ask(self.instance, self.client, &self.patience, method, params).await
    }

    pub(crate) async fn offer(&self, mut action: Value) -> Result<CodeActionOffer, Trouble> {
        let title = action["title"].as_str().unwrap_or("untitled").to_owned();
        let kind = action["kind"].as_str().map(str::to_owned);
        let is_preferred = action["isPreferred"] == true;
        let unusable = |reason: String| CodeActionOffer {
            title: title.clone(),
            kind: kind.clone(),
            is_preferred,
            edits: None,
            unusable: Some(reason),
        };
        if !action["disabled"].is_null() {
            let reason = action["disabled"]["reason"].as_str().unwrap_or("the server gives no reason");
            return Ok(unusable(format!("it is disabled: {reason}")));
        }
        let is_bare_command = action["command"].is_string();
        if action["edit"].is_null() && !is_bare_command && self.client.facts.resolves_actions {
            match self.ask("codeAction/resolve", action.clone()).await {
                Ok(resolved) if resolved.is_object() => action = resolved,
                Ok(_) => {}
                Err(Trouble::Problem(problem)) => return Ok(unusable(problem)),
                Err(gone) => return Err(gone),
            }
        }
        if action["edit"].is_null() {
            let command = action["command"]["command"].as_str().or_else(|| action["command"].as_str());
            return Ok(unusable(match command {
                Some(command) => format!("it only runs the server's command `{command}`"),
                None => "it carries no edit".to_owned(),
            }));
        }
        let look = |path: &str| self.look(path);
        Ok(match file_edits(&action["edit"], &self.instance.root, self.client.facts.encoding, &look) {
            Ok(edits) => CodeActionOffer { title, kind, is_preferred, edits: Some(edits), unusable: None },
            Err(reason) => unusable(reason),
        })
    }

    /// A file as the server sees it: the open document, else what lies on disk.
    pub(crate) fn look(&self, path: &str) -> Result<Known, String> {
        if path == self.snapshot.path {
            return Ok(Known {
                text: Some(self.snapshot.text.clone()),
                version: Some(self.snapshot.version),
            });
        }
        if let Some((text, version)) = lock(&self.instance.documents).known(path) {
            return Ok(Known { text: Some(text), version: Some(version) });
        }
        let file = files::resolve(&self.instance.root, path)?;
        if std::fs::symlink_metadata(&file).is_err() {
            return Ok(Known::default());
        }
        let text = files::read_text(&self.instance.root, path)?;
        Ok(Known { text: Some(text.into()), version: None })
    }
}

/// Asks, again while the server says that it is too busy; a server that is late is probed.
pub(crate) async fn ask(
    instance: &Instance,
    client: &Client,
    patience: &Patience,
    method: &str,
    params: Value,
) -> Result<Value, Trouble> {
    let server = &instance.definition.name;
    loop {
        match client.shared.request(method, params.clone(), patience).await {
            Ok(result) => return Ok(result),
            Err(RequestError::Closed(reason)) => return Err(Trouble::Gone(reason.to_string())),
            Err(RequestError::Late) => {
                instance.suspect(client).await;
                return Err(match client.closed() {
                    Some(reason) => Trouble::Gone(reason.to_string()),
                    None => Trouble::Problem(format!("{server} did not answer {method} in time")),
                });
            }
            Err(RequestError::Refused { code, data, .. })
                if worth_retrying(code, &data) && Instant::now() + RETRY_PAUSE < patience.deadline() =>
            {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Err(RequestError::Refused { code, message, .. }) => {
                return Err(Trouble::Problem(format!("{server} refused {method}: {message} ({code})")));
            }
        }
    }
}
