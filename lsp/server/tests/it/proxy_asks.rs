//! What servers behind the front register, ask and report, and what of it reaches the editor. Each test is named after
//! what it proves.

use serde_json::{Value, json};

use crate::proxied::{LONG, Proxied, answer, at, fixed, script};

/// A client that takes registrations of these features.
fn registering(features: &[&str]) -> Value {
    let mut capabilities = fixed();
    for feature in features {
        let (section, name) = feature.split_once('/').unwrap();
        capabilities[section][name]["dynamicRegistration"] = json!(true);
    }
    capabilities
}

/// What the client was asked to register until all these methods were, by method.
fn registered(editor: &mut agents_lsp_server::testing::TestServer, wanted: &[&str]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    while !wanted.iter().all(|method| all.iter().any(|one| one["method"] == *method)) {
        let (id, params) = editor.expect_request("client/registerCapability", LONG);
        editor.respond(&id, &Value::Null);
        all.extend(params["registrations"].as_array().unwrap().clone());
    }
    all
}

#[test]
fn features_are_registered_for_the_languages_of_the_servers_that_have_them() {
    let tokens = |kind: &str| {
        json!({ "semanticTokensProvider": { "full": true, "legend": { "tokenTypes": [kind], "tokenModifiers": [] } },
                "signatureHelpProvider": { "triggerCharacters": [if kind == "a" { "(" } else { "," }] } })
    };
    let data = json!({ "data": [0, 0, 1, 0, 0] });
    let proxied = Proxied::new(&[
        ("one", script(tokens("a"), json!([answer("textDocument/semanticTokens/full", data.clone())]))),
        (
            "two",
            script(tokens("b"), json!([answer("textDocument/semanticTokens/full", json!({ "data": [9] }))])),
        ),
    ]);
    let (mut editor, result) = proxied.editor_with(
        agents_lsp_server::testing::TestServer::builder().options(json!({ "notifications": false })),
        registering(&["textDocument/semanticTokens", "textDocument/signatureHelp"]),
    );
    // What is registered later is not told now; the rest is the most that may come.
    let told = &result["capabilities"];
    assert_eq!(
        (&told["semanticTokensProvider"], &told["signatureHelpProvider"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(told["documentFormattingProvider"], true);
    let uri = proxied.open(&mut editor, "a.py");
    let mut all = registered(&mut editor, &["textDocument/semanticTokens", "textDocument/signatureHelp"]);
    let triggers = |all: &[Value]| {
        let last = all.iter().rfind(|one| one["method"] == "textDocument/signatureHelp").unwrap();
        last["registerOptions"].clone()
    };
    // The second server adds what it has; the registration is another then.
    while triggers(&all)["triggerCharacters"] != json!(["(", ","]) {
        all.extend(registered(&mut editor, &["textDocument/signatureHelp"]));
    }
    assert_eq!(triggers(&all)["documentSelector"], json!([{ "language": "python" }]));
    editor.allow("client/unregisterCapability");
    editor.allow("client/registerCapability");
    // Colours are the first server's, with its own legend.
    let last = all.iter().rfind(|one| one["method"] == "textDocument/semanticTokens").unwrap();
    assert_eq!(last["registerOptions"]["legend"]["tokenTypes"], json!(["a"]));
    let params = json!({ "textDocument": { "uri": uri } });
    assert_eq!(editor.request("textDocument/semanticTokens/full", params), data);
    editor.finish();
}

#[test]
fn a_client_without_registrations_gets_tokens_counted_into_the_plain_legend() {
    let provider = json!({ "semanticTokensProvider": { "full": true,
        "legend": { "tokenTypes": ["odd", "class"], "tokenModifiers": [] } } });
    let data = json!({ "data": [1, 1, 4, 0, 0, 0, 2, 4, 1, 0] });
    let proxied =
        Proxied::new(&[("one", script(provider, json!([answer("textDocument/semanticTokens/full", data)])))]);
    let (mut editor, result) = proxied.editor_with(
        agents_lsp_server::testing::TestServer::builder().options(json!({ "notifications": false })),
        fixed(),
    );
    let legend = &result["capabilities"]["semanticTokensProvider"]["legend"]["tokenTypes"];
    let class = legend.as_array().unwrap().iter().position(|kind| kind == "class").unwrap();
    let uri = proxied.open(&mut editor, "a.py");
    let answer =
        editor.request("textDocument/semanticTokens/full", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(answer["data"], json!([1, 3, 4, class, 0]));
    editor.finish();
}

#[test]
fn edits_are_taken_while_a_command_of_the_server_runs() {
    let edit = json!({ "id": 5, "method": "workspace/applyEdit", "params": { "label": "it", "edit": { "changes": {} } } });
    let action =
        json!([{ "title": "Do it", "command": { "title": "Do it", "command": "one.do", "arguments": [7] } }]);
    let proxied = Proxied::new(&[(
        "one",
        script(
            json!({ "codeActionProvider": true, "executeCommandProvider": { "commands": ["one.do"] } }),
            json!([
                answer("textDocument/codeAction", action),
                { "on": "workspace/executeCommand", "then": { "send": edit } },
                answer("workspace/executeCommand", json!("done")),
            ]),
        ),
    )]);
    let (mut editor, result) = proxied.editor_with(
        agents_lsp_server::testing::TestServer::builder().options(json!({ "notifications": false })),
        fixed(),
    );
    let uri = proxied.open(&mut editor, "a.py");
    let params = json!({ "textDocument": { "uri": uri }, "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } }, "context": { "diagnostics": [] } });
    let actions = editor.request("textDocument/codeAction", params);
    let command = actions[0]["command"].clone();
    let known = result["capabilities"]["executeCommandProvider"]["commands"].as_array().unwrap();
    assert!(known.contains(&command["command"]), "{command}");
    let id = editor.send_request(
        "workspace/executeCommand",
        json!({ "command": command["command"], "arguments": command["arguments"] }),
    );
    let (ask, params) = editor.expect_request("workspace/applyEdit", LONG);
    assert_eq!(params["label"], "it");
    editor.respond(&ask, &json!({ "applied": true }));
    assert_eq!(editor.response(id), Ok(json!("done")));
    assert_eq!(proxied.told("one", "workspace/executeCommand")[0]["params"]["arguments"], json!([7]));
    assert_eq!(
        proxied.wait_answers("one", 1)[0],
        json!({ "jsonrpc": "2.0", "id": 5, "result": { "applied": true } })
    );
    editor.finish();
}

#[test]
fn progress_of_two_servers_under_the_same_token_is_two_and_can_be_cancelled() {
    let works = || {
        let mut script = script(json!({}), json!([]));
        script["after_initialized"] = json!([
            { "id": 1, "method": "window/workDoneProgress/create", "params": { "token": 1 } },
            { "method": "$/progress", "params": { "token": 1, "value": { "kind": "begin", "title": "Working" } } },
        ]);
        script
    };
    let proxied = Proxied::new(&[("one", works()), ("two", works())]);
    let mut capabilities = fixed();
    capabilities["window"] = json!({ "workDoneProgress": true });
    let mut editor = proxied.editor(capabilities);
    proxied.open(&mut editor, "a.py");
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let (id, params) = editor.expect_request("window/workDoneProgress/create", LONG);
        editor.respond(&id, &Value::Null);
        tokens.push(params["token"].clone());
    }
    assert_ne!(tokens[0], tokens[1]);
    // Which server is the faster one is not said.
    let mut reported = [(); 2].map(|()| editor.expect_notification("$/progress", LONG)["token"].clone());
    if reported[0] != tokens[0] {
        reported.reverse();
    }
    assert_eq!(reported.as_slice(), tokens);
    let of = |name: &str| tokens.iter().find(|token| token.as_str().unwrap().contains(name)).unwrap().clone();
    editor.notify("window/workDoneProgress/cancel", json!({ "token": of("two") }));
    let told = proxied.wait_told("two", "window/workDoneProgress/cancel", 1);
    assert_eq!(told[0]["params"], json!({ "token": 1 }));
    assert!(proxied.told("one", "window/workDoneProgress/cancel").is_empty());
    editor.finish();
}

#[test]
fn methods_of_a_servers_own_pass_both_ways() {
    let mut one = script(json!({}), json!([answer("one/status", json!({ "ready": true }))]));
    one["after_initialized"] = json!([{ "method": "one/hello", "params": { "from": "one" } }]);
    let proxied = Proxied::new(&[("one", one)]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    assert_eq!(editor.expect_notification("one/hello", LONG), json!({ "from": "one" }));
    let params = json!({ "textDocument": { "uri": uri } });
    assert_eq!(editor.request("one/status", params.clone()), json!({ "ready": true }));
    editor.notify("one/touch", params.clone());
    assert_eq!(proxied.wait_told("one", "one/touch", 1)[0]["params"], params);
    // What nobody knows is refused by the server itself.
    assert_eq!(editor.request_error("one/unknown", params).0, -32601);
    editor.finish();
}

#[test]
fn each_server_hears_of_the_files_it_watches_and_settings_are_laid_over_its_own() {
    let watches = |glob: &str| {
        let mut script = script(json!({}), json!([]));
        let options = json!({ "watchers": [{ "globPattern": glob }] });
        script["after_initialized"] = json!([{ "id": 1, "method": "client/registerCapability", "params": {
            "registrations": [{ "id": "w", "method": "workspace/didChangeWatchedFiles", "registerOptions": options }],
        } }]);
        script
    };
    let mut proxied = Proxied::new(&[("toml", watches("**/*.toml")), ("all", watches("**/*"))]);
    proxied.servers[0].workspace_settings = json!({ "toml": { "kept": 1, "other": 1 } });
    let mut capabilities = fixed();
    capabilities["workspace"] = json!({ "didChangeWatchedFiles": { "dynamicRegistration": true } });
    let mut editor = proxied.editor(capabilities);
    proxied.open(&mut editor, "a.py");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (id, params) = editor.expect_request("client/registerCapability", LONG);
        editor.respond(&id, &Value::Null);
        ids.push(params["registrations"][0]["id"].clone());
    }
    assert_ne!(ids[0], ids[1], "the servers' ids are the same");
    let change = |path: &str| json!({ "uri": proxied.desk.uri(path), "type": 2 });
    editor
        .notify("workspace/didChangeWatchedFiles", json!({ "changes": [change("a.py"), change("x.toml")] }));
    let told = |name: &str| {
        proxied.wait_told(name, "workspace/didChangeWatchedFiles", 1)[0]["params"]["changes"].clone()
    };
    assert_eq!(told("toml"), json!([change("x.toml")]));
    assert_eq!(told("all"), json!([change("a.py"), change("x.toml")]));
    let settings = json!({ "toml": { "other": 2 }, "cleveragents": { "inlayHints": true } });
    editor.notify("workspace/didChangeConfiguration", json!({ "settings": settings }));
    // The first is what was registered, told at the start.
    let told = proxied.wait_told("toml", "workspace/didChangeConfiguration", 2);
    assert_eq!(told[1]["params"], json!({ "settings": { "toml": { "kept": 1, "other": 2 } } }));
    editor.finish();
}

#[test]
fn a_refresh_wanted_by_two_servers_is_asked_once_more_at_most() {
    let wants = || {
        let mut script =
            script(json!({ "hoverProvider": true }), json!([answer("textDocument/hover", json!(null))]));
        let ask = |id: u8| json!({ "id": id, "method": "workspace/semanticTokens/refresh" });
        script["after_initialized"] = json!([ask(1), ask(2), ask(3)]);
        script
    };
    let proxied = Proxied::new(&[("one", wants()), ("two", wants())]);
    let mut capabilities = fixed();
    capabilities["workspace"] = json!({ "semanticTokens": { "refreshSupport": true } });
    let mut editor = proxied.editor(capabilities);
    let uri = proxied.open(&mut editor, "a.py");
    let (first, _) = editor.expect_request("workspace/semanticTokens/refresh", LONG);
    for name in ["one", "two"] {
        proxied.wait_answers(name, 3);
    }
    editor.respond(&first, &Value::Null);
    let (second, _) = editor.expect_request("workspace/semanticTokens/refresh", LONG);
    editor.respond(&second, &Value::Null);
    // A third one would fail the test at its end.
    editor.request("textDocument/hover", at(&uri));
    editor.finish();
}
