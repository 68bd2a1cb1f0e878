//! Asks a server about code: places of a symbol, hover, completions, signatures, symbols, hierarchies, actions.
//!
//! `None` is "does not do this" (not offered, or registered without the capability); an empty answer is an answer.

use std::sync::Arc;
use std::time::Duration;

use agents_domain::diagnostics::Diagnostic;
use agents_domain::language_server::Capability;
use agents_domain::ports::code_intelligence::{
    Completion, Completions, Hierarchy, Place, PlaceQuestion, PlacedSymbol, Signature,
};
use agents_domain::ports::language_servers::CodeActionOffer;
use agents_domain::text::{Position, Range};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::actions::{Asking, ask};
use crate::client::Client;
use crate::diagnostics::Limits;
use crate::files;
use crate::instance::{Instance, Trouble};
use crate::places::Locations;
use crate::position::Converter;
use crate::protocol::offered;
use crate::questions::twice;

/// Items of one answer that are looked at.
const MAX_ITEMS: usize = 10_000;
/// Code actions of one range that are resolved.
const MAX_ACTIONS: usize = 50;
/// A server that was started less than so long ago may be reading the project without a word about it.
const YOUNG: Duration = Duration::from_secs(15);
/// Nothing from a server that was started less than so long ago is asked about again.
const HASTY: Duration = Duration::from_secs(60);

/// What a question needs: declared under `capability`, offered as `provider`.
#[derive(Clone, Copy)]
struct Needs {
    capability: Option<Capability>,
    provider: &'static str,
}

/// Runs a question about a document, twice when the server dies over it; `None` when the server does not do it.
async fn about<T, F>(
    instance: &Arc<Instance>,
    path: &str,
    limits: Limits,
    needs: Needs,
    run: impl Fn(Asked) -> F,
) -> Result<Option<T>, String>
where
    F: Future<Output = Result<T, Trouble>>,
{
    if needs.capability.is_some_and(|capability| !instance.definition.lends(capability)) {
        return Ok(None);
    }
    twice(instance, || async {
        let client = instance.client(limits.start).await.map_err(Trouble::Problem)?;
        if !offered(&client.facts.capabilities[needs.provider]) {
            return Ok(None);
        }
        let snapshot = instance.open(&client, path, limits.request).await?;
        let asked = Asked { instance: instance.clone(), client, snapshot: Arc::new(snapshot), limits };
        let answer = run(asked).await?;
        instance.answered();
        Ok(Some(answer))
    })
    .await
}

/// A document that is open at a server, for the questions of this module.
#[derive(Clone)]
struct Asked {
    instance: Arc<Instance>,
    client: Arc<Client>,
    snapshot: Arc<crate::documents::Snapshot>,
    limits: Limits,
}

/// Asks about the whole project once the server has settled, and again when a server that is not long there found
/// nothing: some answer so before they have read the project.
async fn settled<T, F>(
    instance: &Instance,
    client: &Client,
    limit: Duration,
    run: impl Fn() -> F,
) -> Result<Vec<T>, Trouble>
where
    F: Future<Output = Result<Vec<T>, Trouble>>,
{
    settle(instance, client, limit).await;
    let first = run().await?;
    if !first.is_empty() || client.started.elapsed() >= HASTY {
        return Ok(first);
    }
    settle(instance, client, limit).await;
    run().await
}

impl Asked {
    fn asking(&self) -> Asking<'_> {
        let patience = self.instance.patience(self.limits.request);
        Asking { instance: &self.instance, client: &self.client, snapshot: &self.snapshot, patience }
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, Trouble> {
        self.asking().ask(method, params).await
    }

    fn converter(&self) -> Converter<'_> {
        Converter::new(&self.snapshot.text, self.client.facts.encoding)
    }

    /// `textDocument` and `position`.
    fn at(&self, position: Position) -> Value {
        let at = self.converter().to_protocol(position);
        json!({ "textDocument": { "uri": self.snapshot.uri }, "position": at })
    }

    fn locations(&self) -> Locations<'_> {
        Locations::new(&self.instance, &self.client)
    }
}

/// Waits while a server says that it is still reading the project; bounded.
async fn settle(instance: &Instance, client: &Client, limit: Duration) {
    let deadline = Instant::now() + limit;
    let mut events = client.shared.events();
    let mut quiet_since = Instant::now();
    loop {
        events.mark_unchanged();
        let young = client.started.elapsed() < YOUNG;
        let busy = client.shared.pushed(|pushed| pushed.busy().is_some());
        let rests = || client.idle_since().is_none_or(|since| since.elapsed() >= instance.timing.quiet);
        let settled = !busy && (!young || quiet_since.elapsed() >= instance.timing.quiet && rests());
        if settled || client.closed().is_some() || Instant::now() >= deadline {
            return;
        }
        if tokio::time::timeout(instance.timing.quiet, events.changed()).await.is_ok() {
            quiet_since = Instant::now();
        }
    }
}

/// Places of the symbol at a position.
pub(crate) async fn places(
    instance: &Arc<Instance>,
    path: &str,
    position: Position,
    question: PlaceQuestion,
    limits: Limits,
) -> Result<Option<Vec<Place>>, String> {
    let (capability, provider, method) = match question {
        PlaceQuestion::Definition => {
            (Capability::Definitions, "definitionProvider", "textDocument/definition")
        }
        PlaceQuestion::TypeDefinition => {
            (Capability::Definitions, "typeDefinitionProvider", "textDocument/typeDefinition")
        }
        PlaceQuestion::Implementation => {
            (Capability::Definitions, "implementationProvider", "textDocument/implementation")
        }
        PlaceQuestion::References { .. } => {
            (Capability::References, "referencesProvider", "textDocument/references")
        }
    };
    let whole_project = matches!(question, PlaceQuestion::References { .. } | PlaceQuestion::Implementation);
    let needs = Needs { capability: Some(capability), provider };
    about(instance, path, limits, needs, |asked| async move {
        let mut params = asked.at(position);
        if let PlaceQuestion::References { include_declaration } = question {
            params["context"] = json!({ "includeDeclaration": include_declaration });
        }
        let read = async || {
            let answer = asked.ask(method, params.clone()).await?;
            Ok(asked.locations().read_all(&answer))
        };
        match whole_project {
            true => settled(&asked.instance, &asked.client, limits.request, read).await,
            false => read().await,
        }
    })
    .await
}

/// What a server says about the symbol at a position.
pub(crate) async fn hover(
    instance: &Arc<Instance>,
    path: &str,
    position: Position,
    limits: Limits,
) -> Result<Option<String>, String> {
    let needs = Needs { capability: Some(Capability::Hover), provider: "hoverProvider" };
    about(instance, path, limits, needs, |asked| async move {
        let answer = asked.ask("textDocument/hover", asked.at(position)).await?;
        Ok(markup(&answer["contents"]))
    })
    .await
}

/// Text of all the forms that the protocol has for documentation.
fn markup(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(parts) => {
            let parts: Vec<String> =
                parts.iter().map(markup).filter(|part| !part.is_empty()).take(100).collect();
            parts.join("\n\n")
        }
        Value::Object(fields) => {
            let text = fields.get("value").and_then(Value::as_str).unwrap_or_default().trim();
            match fields.get("language").and_then(Value::as_str) {
                Some(language) if !text.is_empty() => format!("```{language}\n{text}\n```"),
                _ => text.to_owned(),
            }
        }
        _ => String::new(),
    }
}

/// What could be written at a position.
pub(crate) async fn completions(
    instance: &Arc<Instance>,
    path: &str,
    position: Position,
    limits: Limits,
) -> Result<Option<Completions>, String> {
    let needs = Needs { capability: Some(Capability::Completions), provider: "completionProvider" };
    about(instance, path, limits, needs, |asked| async move {
        let mut params = asked.at(position);
        params["context"] = json!({ "triggerKind": 1 });
        let answer = asked.ask("textDocument/completion", params).await?;
        let list = answer.as_array().or_else(|| answer["items"].as_array());
        let mut items: Vec<&Value> = list.into_iter().flatten().take(MAX_ITEMS).collect();
        items.sort_by_key(|item| {
            let text = |name: &str| item[name].as_str();
            text("sortText").or_else(|| text("label")).unwrap_or_default().to_owned()
        });
        let items = items.into_iter().filter_map(completion).collect();
        Ok(Completions { items, incomplete: answer["isIncomplete"] == true })
    })
    .await
}

fn completion(item: &Value) -> Option<Completion> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let label = item["label"].as_str()?.trim().to_owned();
    let details = &item["labelDetails"];
    let said = [&item["detail"], &details["detail"], &details["description"]];
    let detail = said.into_iter().filter_map(Value::as_str).find(|text| !text.is_empty());
    let insert = text(&item["textEdit"]["newText"]).or_else(|| text(&item["insertText"]));
    let kind = item["kind"].as_u64().map(completion_kind).map(str::to_owned);
    Some(Completion {
        insert: insert.filter(|insert| *insert != label && item["insertTextFormat"] != 2),
        detail: detail.map(str::to_owned),
        label,
        kind,
    })
}

fn completion_kind(kind: u64) -> &'static str {
    const NAMES: [&str; 25] = [
        "text",
        "method",
        "function",
        "constructor",
        "field",
        "variable",
        "class",
        "interface",
        "module",
        "property",
        "unit",
        "value",
        "enum",
        "keyword",
        "snippet",
        "color",
        "file",
        "reference",
        "folder",
        "enum member",
        "constant",
        "struct",
        "event",
        "operator",
        "type parameter",
    ];
    let index = usize::try_from(kind).ok().and_then(|kind| kind.checked_sub(1));
    index.and_then(|index| NAMES.get(index)).copied().unwrap_or("text")
}

/// How what is called around a position is called.
pub(crate) async fn signatures(
    instance: &Arc<Instance>,
    path: &str,
    position: Position,
    limits: Limits,
) -> Result<Option<Vec<Signature>>, String> {
    let needs = Needs { capability: Some(Capability::SignatureHelp), provider: "signatureHelpProvider" };
    about(instance, path, limits, needs, |asked| async move {
        let answer = asked.ask("textDocument/signatureHelp", asked.at(position)).await?;
        let active = answer["activeSignature"].as_u64().unwrap_or(0);
        let list = answer["signatures"].as_array().map_or(&[][..], Vec::as_slice);
        let read = |(at, one): (usize, &Value)| signature(one, at as u64 == active, &answer);
        Ok(list.iter().take(100).enumerate().map(read).collect())
    })
    .await
}

fn signature(one: &Value, active: bool, answer: &Value) -> Signature {
    let label = one["label"].as_str().unwrap_or_default().to_owned();
    let units: Vec<u16> = label.encode_utf16().collect();
    let parameter = |value: &Value| match &value["label"] {
        Value::String(text) => text.clone(),
        // Two offsets into the label, in UTF-16 units whatever the encoding of positions.
        Value::Array(ends) => {
            let end = |at: usize| ends.get(at).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
            let slice = end(0).zip(end(1)).and_then(|(start, end)| units.get(start..end));
            slice.map(String::from_utf16_lossy).unwrap_or_default()
        }
        _ => String::new(),
    };
    let parameters: Vec<String> = one["parameters"].as_array().into_iter().flatten().map(parameter).collect();
    let number = one["activeParameter"].as_u64().or_else(|| answer["activeParameter"].as_u64());
    let at = number.and_then(|number| usize::try_from(number).ok());
    Signature {
        active_parameter: at.filter(|_| active).and_then(|at| parameters.get(at).cloned()),
        documentation: Some(markup(&one["documentation"])).filter(|text| !text.is_empty()),
        label,
        parameters,
        active,
    }
}

/// Symbols of the workspace.
pub(crate) async fn workspace_symbols(
    instance: &Arc<Instance>,
    query: &str,
    limits: Limits,
) -> Result<Option<Vec<PlacedSymbol>>, String> {
    if !instance.definition.lends(Capability::WorkspaceSymbols) {
        return Ok(None);
    }
    twice(instance, || async {
        let client = instance.client(limits.start).await.map_err(Trouble::Problem)?;
        let provider = &client.facts.capabilities["workspaceSymbolProvider"];
        if !offered(provider) {
            return Ok(None);
        }
        // Some servers know of no project before a file of it is open.
        let open = match instance.has_open() {
            true => None,
            false => files::first_served(&instance.root, &instance.definition.languages),
        };
        let _shown = match &open {
            Some(path) => instance.open(&client, path, limits.request).await.ok(),
            None => None,
        };
        let read = async || {
            let patience = instance.patience(limits.request);
            let params = json!({ "query": query });
            let answer = ask(instance, &client, &patience, "workspace/symbol", params).await?;
            let mut found = Vec::new();
            for symbol in answer.as_array().into_iter().flatten().take(MAX_ITEMS) {
                let mut symbol = symbol.clone();
                if !symbol["location"]["range"].is_object() && provider["resolveProvider"] == true {
                    symbol = ask(instance, &client, &patience, "workspaceSymbol/resolve", symbol).await?;
                }
                found.push(symbol);
            }
            Ok(found)
        };
        let found = settled(instance, &client, limits.request, read).await?;
        instance.answered();
        Ok(Some(Locations::new(instance, &client).symbols(&found, |symbol| {
            let location = &symbol["location"];
            (location["uri"].clone(), location["range"].clone(), symbol["containerName"].clone())
        })))
    })
    .await
}

/// What calls, is called by, is derived from or is the base of the symbol at a position.
pub(crate) async fn hierarchy(
    instance: &Arc<Instance>,
    path: &str,
    position: Position,
    way: Hierarchy,
    limits: Limits,
) -> Result<Option<Vec<PlacedSymbol>>, String> {
    let (capability, provider, prepare, method) = match way {
        Hierarchy::Callers => (
            Capability::References,
            "callHierarchyProvider",
            "textDocument/prepareCallHierarchy",
            "callHierarchy/incomingCalls",
        ),
        Hierarchy::Callees => (
            Capability::References,
            "callHierarchyProvider",
            "textDocument/prepareCallHierarchy",
            "callHierarchy/outgoingCalls",
        ),
        Hierarchy::Supertypes => (
            Capability::Definitions,
            "typeHierarchyProvider",
            "textDocument/prepareTypeHierarchy",
            "typeHierarchy/supertypes",
        ),
        Hierarchy::Subtypes => (
            Capability::Definitions,
            "typeHierarchyProvider",
            "textDocument/prepareTypeHierarchy",
            "typeHierarchy/subtypes",
        ),
    };
    let needs = Needs { capability: Some(capability), provider };
    about(instance, path, limits, needs, |asked| async move {
        let read = async || {
            let items = asked.ask(prepare, asked.at(position)).await?;
            let mut found = Vec::new();
            for item in items.as_array().into_iter().flatten().take(10) {
                let answer = asked.ask(method, json!({ "item": item })).await?;
                found.extend(answer.as_array().into_iter().flatten().take(MAX_ITEMS).cloned());
            }
            Ok(found)
        };
        let found: Vec<Value> = settled(&asked.instance, &asked.client, limits.request, read).await?;
        let other = match way {
            Hierarchy::Callers => Some("from"),
            Hierarchy::Callees => Some("to"),
            Hierarchy::Supertypes | Hierarchy::Subtypes => None,
        };
        let symbols: Vec<Value> = found
            .into_iter()
            .map(|mut entry| match other {
                Some(side) => {
                    let mut item = entry[side].take();
                    // The calls of an outgoing call are in the file asked about, not in that of the callee.
                    if way == Hierarchy::Callers {
                        item["calls"] = entry["fromRanges"].take();
                    }
                    item
                }
                None => entry,
            })
            .collect();
        Ok(asked.locations().symbols(&symbols, |item| {
            let range = [&item["selectionRange"], &item["range"]].into_iter().find(|range| range.is_object());
            (item["uri"].clone(), range.cloned().unwrap_or_default(), item["detail"].clone())
        }))
    })
    .await
}

/// All code actions of a range, resolved.
pub(crate) async fn actions_in(
    instance: &Arc<Instance>,
    path: &str,
    range: Range,
    diagnostics: &[Diagnostic],
    limits: Limits,
) -> Result<Option<Vec<CodeActionOffer>>, String> {
    let needs = Needs { capability: Some(Capability::CodeActions), provider: "codeActionProvider" };
    let raw: Vec<Value> = diagnostics.iter().map(|diagnostic| diagnostic.raw.clone()).collect();
    let raw = &raw;
    about(instance, path, limits, needs, |asked| async move {
        let params = json!({
            "textDocument": { "uri": asked.snapshot.uri },
            "range": asked.converter().range_to_protocol(range),
            "context": { "diagnostics": raw, "triggerKind": 1 },
        });
        let actions = asked.ask("textDocument/codeAction", params).await?;
        let mut offers = Vec::new();
        let asking = asked.asking();
        for action in actions.as_array().into_iter().flatten().filter(|one| one.is_object()).take(MAX_ACTIONS)
        {
            offers.push(asking.offer(action.clone()).await?);
        }
        if !asked.snapshot.is_current() {
            let server = &asked.instance.definition.name;
            return Err(Trouble::Problem(format!("the file changed while {server} was asked about it")));
        }
        Ok(offers)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_of_every_form_becomes_markdown() {
        for (contents, expected) in [
            (json!(" plain "), "plain"),
            (json!({"kind": "markdown", "value": "**x**"}), "**x**"),
            (json!({"language": "c", "value": "int x"}), "```c\nint x\n```"),
            (
                json!(["a", {"language": "c", "value": ""}, {"language": "c", "value": "b"}]),
                "a\n\n```c\nb\n```",
            ),
            (Value::Null, ""),
            (json!(7), ""),
        ] {
            assert_eq!(markup(&contents), expected, "{contents}");
        }
    }

    #[test]
    fn parameters_are_named_by_text_or_by_offsets_into_the_label() {
        let answer = json!({"activeSignature": 0, "activeParameter": 1});
        let one = json!({"label": "f(😀a, b)", "parameters": [{"label": [2, 5]}, {"label": "b"}, {"label": [9, 99]}]});
        let read = signature(&one, true, &answer);
        assert_eq!(read.parameters, ["😀a", "b", ""]);
        assert_eq!(read.active_parameter.as_deref(), Some("b"));
        assert_eq!(signature(&one, false, &answer).active_parameter, None);
        assert_eq!(signature(&Value::Null, true, &Value::Null).label, "");
    }

    #[test]
    fn a_completion_says_what_it_inserts_only_where_it_differs_and_never_a_snippet() {
        let read = |item: Value| completion(&item).unwrap();
        let plain = read(
            json!({"label": " join", "kind": 2, "insertText": "join", "detail": "", "labelDetails": {"detail": "(parts)"}}),
        );
        assert_eq!((plain.label.as_str(), plain.kind.as_deref()), ("join", Some("method")));
        assert_eq!((plain.insert, plain.detail.as_deref()), (None, Some("(parts)")));
        assert_eq!(read(json!({"label": "a", "textEdit": {"newText": ".a"}})).insert.as_deref(), Some(".a"));
        assert_eq!(read(json!({"label": "a", "insertText": "a($0)", "insertTextFormat": 2})).insert, None);
        assert_eq!(completion(&json!({"kind": 1})), None);
    }
}
