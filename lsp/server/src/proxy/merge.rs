//! Several answers to one request made into one.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The key under which an item's `data` remembers whose it is.
const SERVER: &str = "agents/server";

/// An answer and the server it is of; `None` for our own features.
pub(crate) type Answer<'a> = (Option<&'a str>, &'a str);

/// Whether a server runs a command itself.
pub(crate) type Runs<'a> = &'a dyn Fn(&str, &str) -> bool;

/// The command that runs a server's own command: its arguments are the server's name, the command and its arguments.
/// Clients run only commands that they were told of, and those of a server are not known when they are told.
pub(crate) const RUN: &str = "agents.proxy.run";

/// Whether an answer says anything.
pub(crate) fn is_useful(raw: &str) -> bool {
    !matches!(raw.trim_ascii(), "" | "null" | "[]" | "{}")
}

/// One answer of several, in their order; `null` when none says anything.
pub(crate) fn merged(method: &str, answers: &[Answer<'_>], runs: Runs<'_>) -> String {
    let useful: Vec<Answer<'_>> = answers.iter().copied().filter(|(_, raw)| is_useful(raw)).collect();
    match useful.as_slice() {
        [] => answers.first().map_or("null", |(_, raw)| raw).to_owned(),
        // What nobody asks about later needs no mark.
        [(None, raw)] => (*raw).to_owned(),
        [(_, raw)] if !has_items_with_data(method) => (*raw).to_owned(),
        several => match method {
            "textDocument/hover" => hover(several),
            "textDocument/completion" => completion(several, runs),
            _ => list(method, several, runs),
        },
    }
}

/// Whether items of the answer are sent back one by one.
fn has_items_with_data(method: &str) -> bool {
    matches!(
        method,
        "textDocument/completion"
            | "textDocument/codeAction"
            | "textDocument/codeLens"
            | "textDocument/documentLink"
            | "textDocument/inlayHint"
            | "workspace/symbol"
    )
}

fn list(method: &str, answers: &[Answer<'_>], runs: Runs<'_>) -> String {
    if !has_items_with_data(method) {
        let items = answers
            .iter()
            .flat_map(|(_, raw)| serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default());
        return serde_json::to_string(&items.collect::<Vec<_>>()).unwrap_or_else(|_| "[]".to_owned());
    }
    let items: Vec<Value> = answers
        .iter()
        .flat_map(|(server, raw)| {
            let items: Vec<Value> = serde_json::from_str(raw).unwrap_or_default();
            items.into_iter().map(|item| mark(item, *server, runs))
        })
        .collect();
    Value::Array(items).to_string()
}

/// Notes whose item it is, in its `data`; a bare command has none.
fn mark(mut item: Value, server: Option<&str>, runs: Runs<'_>) -> Value {
    let Some(server) = server else { return item };
    wrap_command(&mut item, server, runs);
    let bare = item["command"].is_string();
    if let (Some(fields), false) = (item.as_object_mut(), bare) {
        let data = fields.remove("data");
        let mut marked = json!({ SERVER: server });
        if let Some(data) = data {
            marked["data"] = data;
        }
        fields.insert("data".to_owned(), marked);
    }
    item
}

/// Has a server's own command, bare or of an item, run through [`RUN`].
pub(crate) fn wrap_command(item: &mut Value, server: &str, runs: Runs<'_>) {
    let command = if item["command"].is_object() { &mut item["command"] } else { item };
    if let Some(name) = command["command"].as_str().filter(|name| runs(server, name)) {
        let mut arguments = vec![json!(server), json!(name)];
        arguments.extend(command["arguments"].as_array().into_iter().flatten().cloned());
        command["command"] = RUN.into();
        command["arguments"] = arguments.into();
    }
}

/// The server, the command and the parameters behind the arguments of [`RUN`].
pub(crate) fn unwrap_command(mut params: Value) -> Option<(String, String, Value)> {
    let arguments = params["arguments"].as_array()?;
    let [server, command, rest @ ..] = arguments.as_slice() else { return None };
    let (server, command) = (server.as_str()?.to_owned(), command.as_str()?.to_owned());
    let rest = rest.to_vec();
    params["command"] = command.clone().into();
    params["arguments"] = rest.into();
    Some((server, command, params))
}

/// Takes the mark off again; the server it names.
pub(crate) fn unmark(item: &mut Value) -> Option<String> {
    let data = item.get_mut("data")?;
    let server = data.get(SERVER)?.as_str()?.to_owned();
    let inner = data.as_object_mut()?.remove("data");
    match inner {
        Some(inner) => *data = inner,
        None => drop(item.as_object_mut()?.remove("data")),
    }
    Some(server)
}

fn hover(answers: &[Answer<'_>]) -> String {
    let hovers: Vec<Value> = answers.iter().filter_map(|(_, raw)| serde_json::from_str(raw).ok()).collect();
    let texts: Vec<(bool, String)> = hovers.iter().map(|hover| contents(&hover["contents"])).collect();
    let markdown = texts.iter().any(|(markdown, _)| *markdown);
    let rule = if markdown { "\n\n---\n\n" } else { "\n\n" };
    let value = texts.into_iter().map(|(_, text)| text).filter(|text| !text.trim().is_empty());
    let value = value.collect::<Vec<_>>().join(rule);
    let kind = if markdown { "markdown" } else { "plaintext" };
    let mut merged = json!({ "contents": { "kind": kind, "value": value } });
    // Ours is whole lines; what a server speaks of is a word.
    if let Some(hover) = hovers.iter().rfind(|hover| hover["range"].is_object()) {
        merged["range"] = hover["range"].clone();
    }
    merged.to_string()
}

/// The text of a hover in any of its shapes, and whether it is markdown.
fn contents(contents: &Value) -> (bool, String) {
    match contents {
        Value::String(text) => (true, text.clone()),
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().map(|part| self::contents(part).1).collect();
            (true, parts.join("\n\n"))
        }
        Value::Object(fields) => {
            let value = fields.get("value").and_then(Value::as_str).unwrap_or_default();
            match (fields.get("kind"), fields.get("language").and_then(Value::as_str)) {
                (Some(kind), _) => (kind == "markdown", value.to_owned()),
                (None, Some(language)) => (true, format!("```{language}\n{value}\n```")),
                (None, None) => (false, value.to_owned()),
            }
        }
        _ => (false, String::new()),
    }
}

fn completion(answers: &[Answer<'_>], runs: Runs<'_>) -> String {
    let mut all = Vec::new();
    let mut incomplete = false;
    for (server, raw) in answers {
        let Ok(answer) = serde_json::from_str::<Value>(raw) else { continue };
        incomplete |= answer["isIncomplete"] == true;
        let defaults = answer["itemDefaults"].as_object().cloned().unwrap_or_default();
        let items = match answer {
            Value::Array(items) => items,
            mut list => list["items"].as_array_mut().map(std::mem::take).unwrap_or_default(),
        };
        all.extend(items.into_iter().map(|item| mark(with_defaults(item, &defaults), *server, runs)));
    }
    json!({ "isIncomplete": incomplete, "items": all }).to_string()
}

/// Writes into an item what its list said for all of them, because another list says something else.
fn with_defaults(mut item: Value, defaults: &Map<String, Value>) -> Value {
    let Some(fields) = item.as_object_mut() else { return item };
    for (key, value) in defaults {
        if key != "editRange" {
            fields.entry(key.clone()).or_insert_with(|| value.clone());
        } else if !fields.contains_key("textEdit") {
            let text = fields.get("textEditText").or_else(|| fields.get("insertText"));
            let text = text.or_else(|| fields.get("label")).cloned().unwrap_or_default();
            let mut edit = json!({ "newText": text });
            match value.get("insert") {
                Some(insert) => {
                    edit["insert"] = insert.clone();
                    edit["replace"] = value["replace"].clone();
                }
                None => edit["range"] = value.clone(),
            }
            fields.insert("textEdit".to_owned(), edit);
        }
    }
    item
}

/// Puts one server's options for a feature together with another's: lists are joined, what either can counts.
pub(crate) fn join_options(base: &mut Value, other: &Value) {
    match (base, other) {
        (Value::Array(base), Value::Array(other)) => {
            for item in other.iter().filter(|item| !base.contains(item)).cloned().collect::<Vec<_>>() {
                base.push(item);
            }
        }
        (Value::Object(base), Value::Object(other)) => {
            for (key, value) in other {
                match base.get_mut(key) {
                    Some(known) => join_options(known, value),
                    None => drop(base.insert(key.clone(), value.clone())),
                }
            }
        }
        (base @ (Value::Null | Value::Bool(_)), other)
            if !matches!(other, Value::Null | Value::Bool(false)) =>
        {
            *base = other.clone();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(method: &str, answers: &[(Option<&str>, Value)]) -> Value {
        let raw: Vec<(Option<&str>, String)> =
            answers.iter().map(|(server, value)| (*server, value.to_string())).collect();
        let answers: Vec<Answer<'_>> = raw.iter().map(|(server, raw)| (*server, raw.as_str())).collect();
        let runs = |_: &str, command: &str| command.starts_with("run.");
        serde_json::from_str(&merged(method, &answers, &runs)).unwrap()
    }

    #[test]
    fn hovers_of_every_shape_are_one_text_with_the_last_range() {
        let range = json!({ "start": { "line": 1, "character": 2 }, "end": { "line": 1, "character": 5 } });
        let merged = merge(
            "textDocument/hover",
            &[
                (None, json!({ "contents": { "kind": "markdown", "value": "ours" }, "range": {} })),
                (Some("a"), json!({ "contents": [{ "language": "c", "value": "int" }, "text"] })),
                (Some("b"), json!(null)),
                (Some("c"), json!({ "contents": "third", "range": range })),
            ],
        );
        assert_eq!(merged["contents"]["value"], "ours\n\n---\n\n```c\nint\n```\n\ntext\n\n---\n\nthird");
        assert_eq!((&merged["contents"]["kind"], &merged["range"]), (&json!("markdown"), &range));
    }

    #[test]
    fn an_item_remembers_its_server_and_gives_its_data_back() {
        let mut merged = merge(
            "textDocument/codeAction",
            &[
                (None, json!([{ "title": "ours" }])),
                (
                    Some("local/a"),
                    json!([{ "title": "fix", "data": 7 }, { "title": "bare", "command": "x" }]),
                ),
                (Some("local/b"), json!([{ "title": "other" }])),
            ],
        );
        let items = merged.as_array_mut().unwrap();
        assert_eq!(unmark(&mut items[0]), None);
        assert_eq!((unmark(&mut items[1]).as_deref(), &items[1]["data"]), (Some("local/a"), &json!(7)));
        assert_eq!(items[2], json!({ "title": "bare", "command": "x" }));
        assert_eq!(unmark(&mut items[3]).as_deref(), Some("local/b"));
        assert_eq!(items[3], json!({ "title": "other" }));
    }

    #[test]
    fn a_servers_own_command_is_run_through_ours_and_a_clients_is_left_alone() {
        let action =
            json!({ "title": "a", "command": { "title": "t", "command": "run.it", "arguments": [1] } });
        let bare = json!({ "title": "b", "command": "run.other" });
        let lens = json!({ "range": {}, "command": { "title": "c", "command": "client.show" } });
        let merged = merge("textDocument/codeLens", &[(Some("local/a"), json!([action, bare, lens]))]);
        assert_eq!(merged[0]["command"]["command"], RUN);
        assert_eq!(merged[0]["command"]["arguments"], json!(["local/a", "run.it", 1]));
        assert_eq!(merged[1]["arguments"], json!(["local/a", "run.other"]));
        assert_eq!(merged[2]["command"]["command"], "client.show");
        let params = json!({ "command": RUN, "arguments": ["local/a", "run.it", 1], "workDoneToken": 7 });
        let (server, command, params) = unwrap_command(params).unwrap();
        assert_eq!((server.as_str(), command.as_str()), ("local/a", "run.it"));
        assert_eq!(params, json!({ "command": "run.it", "arguments": [1], "workDoneToken": 7 }));
    }

    #[test]
    fn lists_of_completions_keep_their_own_defaults() {
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
        let merged = merge(
            "textDocument/completion",
            &[
                (Some("a"), json!([{ "label": "x" }])),
                (
                    Some("b"),
                    json!({ "isIncomplete": true, "itemDefaults": { "editRange": range, "insertTextFormat": 2 },
                            "items": [{ "label": "y", "textEditText": "why" }, { "label": "z", "insertTextFormat": 1 }] }),
                ),
            ],
        );
        assert_eq!(merged["isIncomplete"], true);
        let items = merged["items"].as_array().unwrap();
        assert_eq!(items[0].get("textEdit"), None);
        assert_eq!(items[1]["textEdit"], json!({ "newText": "why", "range": range }));
        assert_eq!((&items[1]["insertTextFormat"], &items[2]["insertTextFormat"]), (&json!(2), &json!(1)));
    }

    #[test]
    fn nothing_useful_stays_what_the_first_said() {
        assert_eq!(
            merge("textDocument/references", &[(Some("a"), json!([])), (Some("b"), json!(null))]),
            json!([])
        );
        assert_eq!(merge("textDocument/hover", &[]), Value::Null);
    }

    #[test]
    fn options_are_joined() {
        let mut options = json!({ "triggerCharacters": ["."], "resolveProvider": false });
        join_options(
            &mut options,
            &json!({ "triggerCharacters": [".", ":"], "resolveProvider": true, "x": 1 }),
        );
        assert_eq!(options, json!({ "triggerCharacters": [".", ":"], "resolveProvider": true, "x": 1 }));
        let mut plain = json!(true);
        join_options(&mut plain, &json!({ "workDoneProgress": true }));
        assert_eq!(plain, json!({ "workDoneProgress": true }));
    }
}
