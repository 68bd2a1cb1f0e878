//! Asks a server about a file: how it would format it or order its imports, what it declares, what a new name changes.

use std::future::Future;
use std::sync::Arc;

use agents_domain::language_server::Capability;
use agents_domain::ports::language_servers::{FileQuestion, FoundSymbol};
use agents_domain::text::{FileEdit, LineIndex, Position, Range};
use serde_json::{Value, json};

use crate::actions::Asking;
use crate::client::Client;
use crate::diagnostics::Limits;
use crate::edits::{NOTHING, file_edits};
use crate::instance::{Instance, Trouble};
use crate::position::Converter;
use crate::protocol::offered;

/// The kind of the actions that put imports in order; servers add words of their own to it.
const ORGANIZE_IMPORTS: &str = "source.organizeImports";

/// What a server would change; `None` when it does not do this at all, an empty list when there is nothing to change.
pub(crate) async fn file_edits_for(
    instance: &Arc<Instance>,
    path: &str,
    question: FileQuestion,
    limits: Limits,
) -> Result<Option<Vec<FileEdit>>, String> {
    let capability = match question {
        FileQuestion::Format => Capability::Formatting,
        FileQuestion::OrganizeImports => Capability::CodeActions,
    };
    if !instance.definition.lends(capability) {
        return Ok(None);
    }
    twice(instance, || attempt(instance, path, question, limits)).await
}

/// Asks, and asks once more, alone, when the server dies over the question.
pub(crate) async fn twice<T, F: Future<Output = Result<T, Trouble>>>(
    instance: &Instance,
    ask: impl Fn() -> F,
) -> Result<T, String> {
    let first = {
        let _shared = instance.caution.read().await;
        ask().await
    };
    let result = match first {
        Err(Trouble::Gone(_)) => {
            let _alone = instance.caution.write().await;
            ask().await
        }
        other => other,
    };
    result.map_err(|trouble| trouble.into_text(instance))
}

async fn attempt(
    instance: &Arc<Instance>,
    path: &str,
    question: FileQuestion,
    limits: Limits,
) -> Result<Option<Vec<FileEdit>>, Trouble> {
    let client = instance.client(limits.start).await.map_err(Trouble::Problem)?;
    if !offers(&client, question) {
        return Ok(None);
    }
    let snapshot = instance.open(&client, path, limits.request).await?;
    let patience = instance.patience(limits.request);
    let asking = Asking { instance, client: &client, snapshot: &snapshot, patience };
    let edits = match question {
        FileQuestion::Format => format(&asking).await?,
        FileQuestion::OrganizeImports => organize_imports(&asking).await?,
    };
    instance.answered();
    if !snapshot.is_current() {
        let server = &instance.definition.name;
        return Err(Trouble::Problem(format!("{path} changed while {server} was asked about it")));
    }
    Ok(Some(edits))
}

/// Whether the server says that it does this.
fn offers(client: &Client, question: FileQuestion) -> bool {
    let provider = match question {
        FileQuestion::Format => &client.facts.capabilities["documentFormattingProvider"],
        FileQuestion::OrganizeImports => &client.facts.capabilities["codeActionProvider"],
    };
    match (question, provider) {
        (_, Value::Null | Value::Bool(false)) => false,
        (FileQuestion::Format, _) => true,
        // One that names no kinds may have any.
        (FileQuestion::OrganizeImports, provider) => {
            provider["codeActionKinds"].as_array().is_none_or(|kinds| {
                kinds.iter().filter_map(Value::as_str).any(|kind| kind == "source" || is_organizing(kind))
            })
        }
    }
}

fn is_organizing(kind: &str) -> bool {
    kind.strip_prefix(ORGANIZE_IMPORTS).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

async fn format(asking: &Asking<'_>) -> Result<Vec<FileEdit>, Trouble> {
    let tabs = asking.snapshot.text.lines().any(|line| line.starts_with('\t'));
    let params = json!({
        "textDocument": { "uri": asking.snapshot.uri },
        "options": { "tabSize": 4, "insertSpaces": !tabs },
    });
    let edits = asking.ask("textDocument/formatting", params).await?;
    if edits.is_null() {
        return Ok(Vec::new());
    }
    usable(asking, &json!({ "changes": { asking.snapshot.uri.as_str(): edits } }))
}

async fn organize_imports(asking: &Asking<'_>) -> Result<Vec<FileEdit>, Trouble> {
    let text = &asking.snapshot.text;
    let end = LineIndex::new(text).position(text.len());
    let whole = Range { start: Default::default(), end };
    let range = Converter::new(text, asking.client.facts.encoding).range_to_protocol(whole);
    let params = json!({
        "textDocument": { "uri": asking.snapshot.uri }, "range": range,
        "context": { "diagnostics": [], "only": [ORGANIZE_IMPORTS], "triggerKind": 1 },
    });
    let actions = asking.ask("textDocument/codeAction", params).await?;
    let wanted = |action: &&Value| action["kind"].as_str().is_some_and(is_organizing);
    let Some(action) = actions.as_array().into_iter().flatten().find(wanted) else { return Ok(Vec::new()) };
    let offer = asking.offer(action.clone()).await?;
    match (offer.edits, offer.unusable) {
        (Some(edits), _) => Ok(edits),
        (None, Some(reason)) if reason != NOTHING => Err(Trouble::Problem(reason)),
        (None, _) => Ok(Vec::new()),
    }
}

fn usable(asking: &Asking<'_>, edit: &Value) -> Result<Vec<FileEdit>, Trouble> {
    let look = |path: &str| asking.look(path);
    match file_edits(edit, &asking.instance.root, asking.client.facts.encoding, &look) {
        Ok(edits) => Ok(edits),
        Err(reason) if reason == NOTHING => Ok(Vec::new()),
        Err(reason) => Err(Trouble::Problem(reason)),
    }
}

/// The symbols a file declares; `None` when the server does not tell.
pub(crate) async fn symbols(
    instance: &Arc<Instance>,
    path: &str,
    limits: Limits,
) -> Result<Option<Vec<FoundSymbol>>, String> {
    if !instance.definition.lends(Capability::DocumentSymbols) {
        return Ok(None);
    }
    twice(instance, || async move {
        let client = instance.client(limits.start).await.map_err(Trouble::Problem)?;
        if !offered(&client.facts.capabilities["documentSymbolProvider"]) {
            return Ok(None);
        }
        let snapshot = instance.open(&client, path, limits.request).await?;
        let patience = instance.patience(limits.request);
        let asking = Asking { instance, client: &client, snapshot: &snapshot, patience };
        let params = json!({ "textDocument": { "uri": snapshot.uri } });
        let answer = asking.ask("textDocument/documentSymbol", params).await?;
        instance.answered();
        let mut found = Vec::new();
        collect(&asking, &answer, None, 0, &mut found);
        Ok(Some(found))
    })
    .await
}

/// Nesting that is followed.
const MAX_DEPTH: usize = 64;

/// Symbols of both forms, nested or flat, in the order told.
fn collect(
    asking: &Asking<'_>,
    list: &Value,
    container: Option<&str>,
    depth: usize,
    found: &mut Vec<FoundSymbol>,
) {
    let converter = Converter::new(&asking.snapshot.text, asking.client.facts.encoding);
    for symbol in list.as_array().into_iter().flatten() {
        let Some(name) = symbol["name"].as_str() else { continue };
        let given = [&symbol["selectionRange"], &symbol["range"], &symbol["location"]["range"]];
        let Some(range) = given.into_iter().find(|range| range["start"].is_object()) else { continue };
        let container =
            container.or_else(|| symbol["containerName"].as_str().filter(|name| !name.is_empty()));
        found.push(FoundSymbol {
            name: name.to_owned(),
            kind: kind_name(symbol["kind"].as_u64().unwrap_or_default()).to_owned(),
            container: container.map(str::to_owned),
            range: converter.range(range),
        });
        if depth < MAX_DEPTH {
            let inner = container.map_or_else(|| name.to_owned(), |outer| format!("{outer}.{name}"));
            collect(asking, &symbol["children"], Some(&inner), depth + 1, found);
        }
    }
}

/// The protocol's symbol kinds, in words.
pub(crate) fn kind_name(kind: u64) -> &'static str {
    const NAMES: [&str; 26] = [
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "enum member",
        "struct",
        "event",
        "operator",
        "type parameter",
    ];
    let index = usize::try_from(kind).ok().and_then(|kind| kind.checked_sub(1));
    index.and_then(|index| NAMES.get(index)).copied().unwrap_or("symbol")
}

/// What renaming what is at a place would change; `None` when the server does not rename.
pub(crate) async fn rename(
    instance: &Arc<Instance>,
    path: &str,
    position: Position,
    new_name: &str,
    limits: Limits,
) -> Result<Option<Vec<FileEdit>>, String> {
    if !instance.definition.lends(Capability::Rename) {
        return Ok(None);
    }
    twice(instance, || async move {
        let client = instance.client(limits.start).await.map_err(Trouble::Problem)?;
        let provider = &client.facts.capabilities["renameProvider"];
        if !offered(provider) {
            return Ok(None);
        }
        let snapshot = instance.open(&client, path, limits.request).await?;
        let patience = instance.patience(limits.request);
        let asking = Asking { instance, client: &client, snapshot: &snapshot, patience };
        let place = Range { start: position, end: position };
        let at =
            Converter::new(&snapshot.text, client.facts.encoding).range_to_protocol(place)["start"].clone();
        let mut params = json!({ "textDocument": { "uri": snapshot.uri }, "position": at });
        if provider["prepareProvider"] == true
            && asking.ask("textDocument/prepareRename", params.clone()).await?.is_null()
        {
            let server = &instance.definition.name;
            return Err(Trouble::Problem(format!("{server} says that this cannot be renamed")));
        }
        params["newName"] = new_name.into();
        let edit = asking.ask("textDocument/rename", params).await?;
        instance.answered();
        if edit.is_null() { Ok(Some(Vec::new())) } else { usable(&asking, &edit).map(Some) }
    })
    .await
}
