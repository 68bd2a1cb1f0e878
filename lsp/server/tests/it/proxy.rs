//! Other language servers behind the front: what the editor gets of them. Each test is named after what it proves.

use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::proxied::{LONG, Proxied, answer, at, fixed, script};

fn hover(text: &str) -> Value {
    json!({ "contents": { "kind": "markdown", "value": text } })
}

#[test]
fn one_server_starts_with_its_first_document_and_answers_as_if_asked_directly() {
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 5 } });
    let place = json!([{ "uri": "file:///x.py", "range": range }]);
    let proxied = Proxied::new(&[(
        "one",
        script(
            json!({ "hoverProvider": true, "definitionProvider": true }),
            json!([
                answer("textDocument/hover", hover("from one")),
                answer("textDocument/definition", place.clone())
            ]),
        ),
    )]);
    let mut editor = proxied.editor(fixed());
    assert_eq!(proxied.starts("one"), 0);
    let uri = proxied.open(&mut editor, "a.py");
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover("from one"));
    assert_eq!(editor.request("textDocument/definition", at(&uri)), place);
    // What it does not offer it is not asked.
    assert_eq!(editor.request("textDocument/references", at(&uri)), Value::Null);
    let opened = proxied.told("one", "textDocument/didOpen");
    assert_eq!(opened.len(), 1);
    assert_eq!(opened[0]["params"]["textDocument"]["text"], proxied.desk.read("a.py"));
    let initialize = &proxied.told("one", "initialize")[0]["params"];
    assert_eq!(initialize["workspaceFolders"][0]["uri"], proxied.desk.uri(""));
    assert_eq!(initialize["capabilities"]["general"]["positionEncodings"], json!(["utf-16"]));
    editor.finish();
    assert_eq!(proxied.told("one", "shutdown").len(), 1);
    assert_eq!(proxied.told("one", "exit").len(), 1);
}

#[test]
fn a_server_of_another_language_is_not_started() {
    let mut proxied = Proxied::new(&[("python", script(json!({ "hoverProvider": true }), json!([])))]);
    proxied.add("c", "c++", script(json!({}), json!([answer("textDocument/hover", hover("c"))])));
    let mut editor = proxied.editor(fixed());
    let uri = proxied.desk.uri("x.cc");
    editor.open(&uri, "cpp", "int x;");
    proxied.wait_told("c", "textDocument/didOpen", 1);
    assert_eq!((proxied.starts("c"), proxied.starts("python")), (1, 0));
    editor.finish();
}

#[test]
fn our_hover_comes_first_and_the_servers_below_it() {
    let proxied = Proxied::new(&[
        (
            "one",
            script(
                json!({ "hoverProvider": true }),
                json!([answer("textDocument/hover", hover("from one"))]),
            ),
        ),
        (
            "two",
            script(
                json!({ "hoverProvider": true }),
                json!([answer("textDocument/hover", hover("from two"))]),
            ),
        ),
        (
            "mute",
            script(json!({ "hoverProvider": true }), json!([{ "on": "textDocument/hover", "then": "null" }])),
        ),
    ]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    let answer = editor.request("textDocument/hover", at(&uri));
    assert_eq!(answer["contents"]["value"], "from one\n\n---\n\nfrom two");
    editor.finish();
}

#[test]
fn the_first_useful_answer_is_taken_and_the_others_are_cancelled() {
    let place = json!([{ "uri": "file:///x.py", "range": {} }]);
    let capabilities = json!({ "definitionProvider": true });
    let proxied = Proxied::new(&[
        ("empty", script(capabilities.clone(), json!([answer("textDocument/definition", json!([]))]))),
        ("slow", script(capabilities.clone(), json!([{ "on": "textDocument/definition", "then": "hang" }]))),
        ("quick", script(capabilities, json!([answer("textDocument/definition", place.clone())]))),
    ]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    for name in ["empty", "slow", "quick"] {
        proxied.wait_told(name, "textDocument/didOpen", 1);
    }
    assert_eq!(editor.request("textDocument/definition", at(&uri)), place);
    let cancelled = proxied.wait_told("slow", "$/cancelRequest", 1);
    let asked = proxied.told("slow", "textDocument/definition");
    assert_eq!(cancelled[0]["params"]["id"], asked[0]["id"]);
    editor.finish();
}

#[test]
fn one_owner_formats_the_first_unless_the_client_chooses_another() {
    let capabilities = json!({ "documentFormattingProvider": true });
    let edit = |text: &str| json!([{ "range": {}, "newText": text }]);
    let proxied = Proxied::new(&[
        ("first", script(capabilities.clone(), json!([answer("textDocument/formatting", edit("first"))]))),
        ("second", script(capabilities, json!([answer("textDocument/formatting", edit("second"))]))),
    ]);
    for (options, expected) in [
        (json!({ "notifications": false }), "first"),
        (
            json!({ "notifications": false, "proxy": { "owners": { "formatting": "local/second" } } }),
            "second",
        ),
    ] {
        let (mut editor, _) = proxied.editor_with(TestServer::builder().options(options), fixed());
        let uri = proxied.open(&mut editor, "a.py");
        let params =
            json!({ "textDocument": { "uri": uri }, "options": { "tabSize": 4, "insertSpaces": true } });
        assert_eq!(editor.request("textDocument/formatting", params), edit(expected));
        editor.finish();
    }
    assert_eq!(proxied.told("first", "textDocument/formatting").len(), 1);
}

#[test]
fn items_of_merged_lists_are_resolved_by_their_own_server() {
    let provider = json!({ "completionProvider": { "resolveProvider": true } });
    let with = |name: &str| {
        script(
            provider.clone(),
            json!([
                answer("textDocument/completion", json!([{ "label": name, "data": name }])),
                answer("completionItem/resolve", json!({ "label": name, "detail": name })),
            ]),
        )
    };
    let proxied = Proxied::new(&[("one", with("one")), ("two", with("two"))]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    let list = editor.request("textDocument/completion", at(&uri));
    let items = list["items"].as_array().unwrap().clone();
    assert_eq!((items[0]["label"].as_str(), items[1]["label"].as_str()), (Some("one"), Some("two")));
    assert_eq!(editor.request("completionItem/resolve", items[1].clone())["detail"], "two");
    let resolved = proxied.told("two", "completionItem/resolve");
    assert_eq!(resolved[0]["params"], json!({ "label": "two", "data": "two" }));
    assert!(proxied.told("one", "completionItem/resolve").is_empty());
    editor.finish();
}

#[test]
fn each_server_gets_changes_as_it_wants_them_in_their_order() {
    let sync = |kind: u8| json!({ "textDocumentSync": { "openClose": true, "change": kind, "save": { "includeText": kind == 1 } } });
    let proxied = Proxied::new(&[
        ("whole", script(sync(1), json!([]))),
        ("parts", script(sync(2), json!([]))),
        ("none", script(sync(0), json!([]))),
    ]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "b.py");
    // Some of these come while the servers start: they are shown the document as it is then.
    let change = |n: usize| json!([{ "range": { "start": { "line": 0, "character": n }, "end": { "line": 0, "character": n } }, "text": "x" }]);
    for n in 0..40 {
        editor.change(&uri, change(n));
    }
    for server in ["whole", "parts", "none"] {
        proxied.wait_told(server, "textDocument/didOpen", 1);
    }
    for n in 40..80 {
        editor.change(&uri, change(n));
    }
    editor.save(&uri);
    editor.close(&uri);
    for server in ["whole", "parts", "none"] {
        proxied.wait_told(server, "textDocument/didClose", 1);
    }
    let expected = format!("{}gamma = 3\n", "x".repeat(80));
    let changes = proxied.told("whole", "textDocument/didChange");
    assert_eq!(changes.last().unwrap()["params"]["contentChanges"], json!([{ "text": expected }]));
    assert_eq!(proxied.told("whole", "textDocument/didSave")[0]["params"]["text"], expected);
    assert_eq!(proxied.told("none", "textDocument/didChange").len(), 0);
    // Played back, what the incremental server was told is the text.
    let opened = &proxied.told("parts", "textDocument/didOpen")[0]["params"]["textDocument"];
    let (mut text, mut version) =
        (opened["text"].as_str().unwrap().to_owned(), opened["version"].as_i64().unwrap());
    for change in proxied.told("parts", "textDocument/didChange") {
        let params = &change["params"];
        assert_eq!(params["textDocument"]["version"].as_i64(), Some(version + 1));
        version += 1;
        let at = params["contentChanges"][0]["range"]["start"]["character"].as_u64().unwrap() as usize;
        text.insert_str(at, params["contentChanges"][0]["text"].as_str().unwrap());
    }
    assert_eq!((text, version), (expected, 81));
    editor.finish();
}

#[test]
fn diagnostics_of_pushing_and_pulled_servers_are_one_set() {
    let rule = |source: &str| json!([{ "match": "bad_\\w+", "source": source, "message": "bad" }]);
    let proxied = Proxied::new(&[
        ("pushes", json!({ "diagnostics": "push", "versions": true, "rules": rule("pushes") })),
        ("pulled", json!({ "diagnostics": "pull", "rules": rule("pulled") })),
    ]);
    let mut editor = proxied.editor(fixed());
    let uri = proxied.open(&mut editor, "a.py");
    let sources = |published: &Value| -> Vec<String> {
        let all = published["diagnostics"].as_array().unwrap().iter();
        all.map(|one| one["source"].as_str().unwrap().to_owned()).collect()
    };
    let mut published = editor.expect_notification("textDocument/publishDiagnostics", LONG);
    while sources(&published).len() < 2 {
        published = editor.expect_notification("textDocument/publishDiagnostics", LONG);
    }
    assert_eq!(
        (sources(&published), &published["version"]),
        (vec!["pushes".into(), "pulled".into()], &json!(1))
    );
    editor.change(&uri, json!([{ "text": "good = 1\n" }]));
    while !sources(&published).is_empty() {
        published = editor.expect_notification("textDocument/publishDiagnostics", LONG);
    }
    assert_eq!(published["version"], 2);
    editor.allow("textDocument/publishDiagnostics");
    editor.finish();
}

#[test]
fn a_client_that_pulls_gets_one_report_of_all_and_a_refresh_when_there_is_more() {
    let rule = |source: &str| json!([{ "match": "bad_\\w+", "source": source, "message": "bad" }]);
    let proxied = Proxied::new(&[
        ("pushes", json!({ "diagnostics": "push", "rules": rule("pushes") })),
        ("pulled", json!({ "diagnostics": "pull", "rules": rule("pulled") })),
    ]);
    let mut capabilities = fixed();
    capabilities["textDocument"]["diagnostic"] = json!({});
    capabilities["workspace"] = json!({ "diagnostics": { "refreshSupport": true } });
    let mut editor = proxied.editor(capabilities);
    editor.allow("workspace/diagnostic/refresh");
    let uri = proxied.open(&mut editor, "a.py");
    let pull = |editor: &mut TestServer, previous: &Value| {
        let params = json!({ "textDocument": { "uri": uri }, "previousResultId": previous });
        editor.request("textDocument/diagnostic", params)
    };
    let mut report = pull(&mut editor, &Value::Null);
    while report["items"].as_array().unwrap().len() < 2 {
        let (id, _) = editor.expect_request("workspace/diagnostic/refresh", LONG);
        editor.respond(&id, &Value::Null);
        report = pull(&mut editor, &Value::Null);
    }
    assert_eq!(
        (&report["items"][0]["source"], &report["items"][1]["source"]),
        (&json!("pushes"), &json!("pulled"))
    );
    let unchanged = pull(&mut editor, &report["resultId"]);
    assert_eq!(unchanged, json!({ "kind": "unchanged", "resultId": report["resultId"] }));
    editor.change(&uri, json!([{ "text": "good = 1\n" }]));
    while !report["items"].as_array().is_some_and(Vec::is_empty) {
        report = pull(&mut editor, &Value::Null);
    }
    editor.finish();
}

// Positions of servers that count bytes though only UTF-16 is offered.
#[test]
fn a_server_that_insists_on_utf_8_is_understood_and_understands() {
    // One é and one emoji before the name: 3 code units of UTF-16 are 6 bytes.
    let text = "é😀alpha\nb\n";
    let range = |from: u32, to: u32| json!({ "start": { "line": 0, "character": from }, "end": { "line": 0, "character": to } });
    let mut proxied = Proxied::new(&[]);
    let (uri, other) = (proxied.desk.uri("a.py"), proxied.desk.uri("b.py"));
    proxied.desk.write("b.py", "😀beta\n");
    let answers = |range: &dyn Fn(u32, u32) -> Value, own: (u32, u32), others: (u32, u32)| {
        let edits = |own: Value, others: Value| {
            json!({ "changes": {
            uri.clone(): [{ "range": own, "newText": "x" }], other.clone(): [{ "range": others, "newText": "x" }],
        } })
        };
        let (here, there) = (range(own.0, own.1), range(others.0, others.1));
        [
            ("textDocument/hover", json!({ "contents": "a", "range": here })),
            (
                "textDocument/definition",
                json!([{ "originSelectionRange": here, "targetUri": other, "targetRange": there, "targetSelectionRange": there }]),
            ),
            (
                "textDocument/references",
                json!([{ "uri": other, "range": there }, { "uri": uri, "range": here }]),
            ),
            ("textDocument/rename", edits(here, there)),
        ]
    };
    let in_bytes = answers(&range, (6, 11), (4, 8));
    let mut faults: Vec<Value> =
        in_bytes.iter().map(|(method, result)| answer(method, result.clone())).collect();
    let tokens = |start: u32| json!({ "data": [0, start, 5, 0, 0, 1, 0, 1, 0, 0] });
    faults.push(answer("textDocument/semanticTokens/full", tokens(6)));
    let diagnostics = json!({ "uri": uri, "diagnostics": [{ "range": range(6, 11), "message": "bad" }] });
    faults.push(json!({ "on": "textDocument/didOpen", "then": { "send": { "method": "textDocument/publishDiagnostics", "params": diagnostics } } }));
    let mut script = script(
        json!({
            "textDocumentSync": 2, "hoverProvider": true, "definitionProvider": true, "referencesProvider": true, "renameProvider": true,
            "semanticTokensProvider": { "full": { "delta": true }, "legend": { "tokenTypes": ["variable"], "tokenModifiers": [] } },
        }),
        Value::Array(faults),
    );
    script["encoding"] = json!("utf-8");
    proxied.add("bytes", "python", script);
    let mut editor = proxied.editor(fixed());
    editor.open(&uri, "python", text);
    let published = editor.expect_notification("textDocument/publishDiagnostics", LONG);
    assert_eq!(published["diagnostics"][0]["range"], range(3, 8));
    let mut place = at(&uri);
    place["position"] = json!({ "line": 0, "character": 4 });
    place["newName"] = json!("x");
    for (method, expected) in answers(&range, (3, 8), (2, 6)) {
        assert_eq!(editor.request(method, place.clone()), expected, "{method}");
        let told = proxied.told("bytes", method);
        assert_eq!(told[0]["params"]["position"]["character"], 7, "{method}");
    }
    let whole = json!({ "textDocument": { "uri": uri } });
    // The protocol's own legend, where `variable` is the ninth.
    let expected = json!({ "data": [0, 3, 5, 8, 0, 1, 0, 1, 8, 0] });
    assert_eq!(editor.request("textDocument/semanticTokens/full", whole), expected);
    let inserted = json!([{ "range": range(3, 3), "text": "é" }]);
    editor.change(&uri, inserted);
    let changes = proxied.wait_told("bytes", "textDocument/didChange", 1);
    assert_eq!(changes[0]["params"]["contentChanges"], json!([{ "text": "é😀éalpha\nb\n" }]));
    editor.finish();
}
