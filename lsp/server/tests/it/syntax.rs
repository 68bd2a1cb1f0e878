//! `builtin/tree-sitter`: symbols, definitions, references, hover and errors by syntax, of open texts and of the index.

use std::time::Instant;

use agents_domain::ports::store::StoreExt;
use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::desk::{Desk, plain, pulling, question};
use crate::support::SOON;

const SHAPES: &str = "class Circle:\n    \"\"\"A *round* one.\"\"\"\n\n    def area(self):\n        𝒂 = 3; size = 𝒂\n        return size\n";
const USE: &str = "from shapes import Circle\n\nprint(Circle().area())\n";

fn desk() -> Desk {
    let files = [
        ("shapes.py", SHAPES),
        ("use.py", USE),
        ("src/lib.rs", "/// Adds one.\npub fn add_one(x: u8) -> u8 {\n    x + 1\n}\n"),
        ("README.md", "# Circle\n"),
    ];
    Desk::new(&files, question(&[])).indexed()
}

fn open(desk: &Desk, server: &mut TestServer, path: &str, language: &str) -> String {
    let uri = desk.uri(path);
    server.open(&uri, language, &desk.read(path));
    uri
}

fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({
        "textDocument": { "uri": uri }, "position": { "line": line, "character": character },
        "context": { "includeDeclaration": true },
    })
}

/// Asks until the answer holds what is wanted: indexing goes on in the background.
#[track_caller]
fn until(server: &mut TestServer, method: &str, params: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + SOON;
    loop {
        let answer = server.request(method, params.clone());
        if wanted(&answer) {
            return answer;
        }
        assert!(Instant::now() < end, "{method} still answers {answer}");
        std::thread::yield_now();
    }
}

fn some(answer: &Value) -> bool {
    answer.as_array().is_some_and(|found| !found.is_empty())
}

/// `file:line:character` of locations.
fn places(desk: &Desk, answer: &Value) -> Vec<String> {
    let root = desk.uri("");
    let mut places: Vec<String> = answer
        .as_array()
        .unwrap()
        .iter()
        .map(|location| {
            let start = &location["range"]["start"];
            let uri = location["uri"].as_str().unwrap().trim_start_matches(&root).trim_start_matches('/');
            format!("{uri}:{}:{}", start["line"], start["character"])
        })
        .collect();
    places.sort();
    places
}

#[test]
fn an_open_document_has_its_symbols_as_a_tree_and_says_that_they_are_by_syntax() {
    let desk = desk();
    let mut server = desk.editor(plain());
    let uri = open(&desk, &mut server, "shapes.py", "python");
    let params = json!({ "textDocument": { "uri": uri } });
    let found = server.request("textDocument/documentSymbol", params.clone());
    assert_eq!((&found[0]["name"], &found[0]["kind"]), (&json!("Circle"), &json!(5)));
    assert_eq!(found[0]["detail"], "class Circle (by syntax)");
    let area = &found[0]["children"][0];
    assert_eq!(
        (&area["name"], &area["kind"], &area["detail"]),
        (&json!("area"), &json!(6), &json!("def area(self) (by syntax)"))
    );
    assert_eq!(area["selectionRange"]["start"], json!({ "line": 3, "character": 8 }));
    // What is typed counts, saved or not.
    server.change(&uri, json!([{ "text": "def other():\n    pass\n" }]));
    let found = server.request("textDocument/documentSymbol", params);
    assert_eq!(found[0]["name"], "other");
    let readme = open(&desk, &mut server, "README.md", "markdown");
    let none = server.request("textDocument/documentSymbol", json!({ "textDocument": { "uri": readme } }));
    assert_eq!(none, Value::Null, "no grammar, no answer");
}

#[test]
fn definitions_lead_into_files_that_are_not_open_and_through_unsaved_text() {
    let desk = desk();
    let mut server = desk.editor(plain());
    let uri = open(&desk, &mut server, "use.py", "python");
    let found = until(&mut server, "textDocument/definition", &at(&uri, 2, 8), some);
    assert_eq!(places(&desk, &found), ["shapes.py:0:6"]);
    let found = server.request("textDocument/definition", at(&uri, 2, 17));
    assert_eq!(places(&desk, &found), ["shapes.py:3:8"]);
    // Columns are the client's: a character beyond the basic plane is two.
    let shapes = open(&desk, &mut server, "shapes.py", "python");
    let found = server.request("textDocument/definition", at(&shapes, 5, 16));
    assert_eq!(places(&desk, &found), ["shapes.py:4:16"]);
    // Lines above that are not saved yet move what is below.
    let start = json!({ "line": 0, "character": 0 });
    server.change(&shapes, json!([{ "range": { "start": start, "end": start }, "text": "\n\n" }]));
    let found = server.request("textDocument/definition", at(&uri, 2, 8));
    assert_eq!(places(&desk, &found), ["shapes.py:2:6"]);
    assert_eq!(server.request("textDocument/definition", at(&uri, 1, 0)), json!([]));
}

#[test]
fn references_are_by_name_and_a_local_name_stays_in_its_function() {
    let desk = desk();
    let mut server = desk.editor(plain());
    let uri = open(&desk, &mut server, "use.py", "python");
    let found = until(&mut server, "textDocument/references", &at(&uri, 2, 8), |found| {
        found.as_array().is_some_and(|found| found.len() == 3)
    });
    assert_eq!(places(&desk, &found), ["shapes.py:0:6", "use.py:0:19", "use.py:2:6"]);
    let mut without = at(&uri, 2, 8);
    without["context"]["includeDeclaration"] = json!(false);
    let found = server.request("textDocument/references", without);
    assert_eq!(places(&desk, &found), ["use.py:0:19", "use.py:2:6"]);
    let shapes = open(&desk, &mut server, "shapes.py", "python");
    let found = server.request("textDocument/references", at(&shapes, 5, 16));
    assert_eq!(places(&desk, &found), ["shapes.py:4:16", "shapes.py:5:15"]);
}

#[test]
fn symbols_of_the_workspace_name_their_place_and_follow_what_others_write() {
    let desk = desk();
    let mut server = desk.editor(plain());
    let found = until(&mut server, "workspace/symbol", &json!({ "query": "ad on" }), some);
    assert_eq!(found[0]["name"], "add_one");
    assert_eq!(found[0]["containerName"], "src/lib.rs (by syntax)");
    let found = server.request("workspace/symbol", json!({ "query": "area" }));
    assert_eq!(found[0]["containerName"], "Circle in shapes.py (by syntax)");
    // Another program writes a file; the client reports it.
    std::fs::write(desk.repo().join("fresh.py"), "def freshly_made(): pass\n").unwrap();
    let change = json!({ "changes": [{ "uri": desk.uri("fresh.py"), "type": 1 }] });
    server.notify("workspace/didChangeWatchedFiles", change);
    until(&mut server, "workspace/symbol", &json!({ "query": "freshly" }), some);
    // Unsaved text counts at once, and a saved one for everybody.
    let uri = open(&desk, &mut server, "fresh.py", "python");
    server.change(&uri, json!([{ "text": "def renamed(): pass\n" }]));
    assert!(some(&server.request("workspace/symbol", json!({ "query": "renamed" }))));
    assert_eq!(server.request("workspace/symbol", json!({ "query": "freshly" })), json!([]));
}

#[test]
fn hover_shows_signature_and_documentation_and_how_sure_that_is() {
    let desk = desk();
    let mut server = desk.editor(plain());
    let uri = open(&desk, &mut server, "use.py", "python");
    let hover = until(&mut server, "textDocument/hover", &at(&uri, 2, 8), |hover| !hover.is_null());
    assert_eq!(
        hover["contents"]["value"],
        "```python\nclass Circle\n```\n\nA *round* one.\n\nshapes.py:1. By syntax alone (builtin/tree-sitter)."
    );
    let rust = open(&desk, &mut server, "src/lib.rs", "rust");
    let hover = server.request("textDocument/hover", at(&rust, 2, 4));
    let shown = hover["contents"]["value"].as_str().unwrap();
    assert!(shown.starts_with("```rust\nparameter x\n```"), "{shown}");
}

#[test]
fn broken_syntax_is_a_diagnostic_pulled_or_pushed() {
    let desk = desk();
    let mut server = desk.editor(pulling());
    let uri = open(&desk, &mut server, "shapes.py", "python");
    let params = json!({ "textDocument": { "uri": uri } });
    assert_eq!(server.request("textDocument/diagnostic", params.clone())["items"], json!([]));
    server.change(&uri, json!([{ "text": "def f(:\n    pass\n" }]));
    let found = server.request("textDocument/diagnostic", params);
    let diagnostic = &found["items"][0];
    assert_eq!(
        (&diagnostic["code"], &diagnostic["source"], &diagnostic["severity"]),
        (&json!("syntax-error"), &json!("cleveragents"), &json!(1))
    );
    assert!(diagnostic["message"].as_str().unwrap().ends_with("(by syntax)"), "{diagnostic}");

    let mut server = desk.editor(plain());
    let uri = open(&desk, &mut server, "shapes.py", "python");
    server.change(&uri, json!([{ "text": "def f(:\n    pass\n" }]));
    let pushed = server.expect_notification("textDocument/publishDiagnostics", SOON);
    assert_eq!((&pushed["uri"], &pushed["diagnostics"][0]["code"]), (&json!(uri), &json!("syntax-error")));
    server.change(&uri, json!([{ "text": "def f():\n    pass\n" }]));
    let pushed = server.expect_notification("textDocument/publishDiagnostics", SOON);
    assert_eq!(pushed["diagnostics"], json!([]));
}

#[test]
fn a_language_with_a_registered_server_is_left_to_it_but_a_linter_leaves_it_here() {
    let desk = desk();
    let register = |name: &str, command: &str| {
        desk.ok(
            "registry/lsp/add",
            json!({ "config": "x.yaml", "text": format!("name: local/{name}\nlanguages: [python]\ncommand: {command}\n") }),
        );
    };
    register("ruff", "ruff");
    let mut server = desk.editor(plain());
    let uri = open(&desk, &mut server, "use.py", "python");
    until(&mut server, "textDocument/definition", &at(&uri, 2, 8), some);
    register("pyright", "pyright-langserver");
    assert_eq!(desk.engine.store().view(|r| r.language_servers()).unwrap().len(), 2);
    let mut server = desk.editor(plain());
    let uri = open(&desk, &mut server, "use.py", "python");
    let symbols = json!({ "textDocument": { "uri": uri } });
    until(&mut server, "textDocument/documentSymbol", &symbols, Value::is_null);
    until(&mut server, "workspace/symbol", &json!({ "query": "add_one" }), some);
    assert_eq!(server.request("workspace/symbol", json!({ "query": "Circle" })), json!([]));
    assert_eq!(server.request("textDocument/definition", at(&uri, 2, 8)), Value::Null);
}

#[test]
fn a_setting_turns_it_off() {
    let desk = desk();
    let options = json!({ "notifications": false, "syntax": false });
    let mut server = desk.editor_with(TestServer::builder().options(options), plain());
    let uri = open(&desk, &mut server, "shapes.py", "python");
    let symbols = json!({ "textDocument": { "uri": uri } });
    assert_eq!(server.request("textDocument/documentSymbol", symbols), Value::Null);
    assert_eq!(server.request("textDocument/hover", at(&uri, 0, 8)), Value::Null);
}

#[test]
fn a_long_scan_is_shown_as_work() {
    let desk = desk();
    for n in 0..250 {
        std::fs::write(desk.repo().join(format!("m_{n}.py")), format!("def f_{n}(): pass\n")).unwrap();
    }
    let capabilities = json!({ "window": { "workDoneProgress": true } });
    let mut server = desk.editor(capabilities);
    let (id, params) = server.expect_request("window/workDoneProgress/create", SOON);
    server.respond(&id, &Value::Null);
    let begun = server.expect_notification("$/progress", SOON);
    assert_eq!(
        (&begun["token"], &begun["value"]["title"]),
        (&params["token"], &json!(format!("Indexing {}", desk.uri(""))))
    );
    loop {
        let progress = server.expect_notification("$/progress", SOON);
        if progress["value"]["kind"] == "end" {
            assert!(progress["value"]["message"].as_str().unwrap().contains("files"), "{progress}");
            break;
        }
    }
    until(&mut server, "workspace/symbol", &json!({ "query": "f_249" }), some);
}

#[test]
fn capabilities_say_what_is_by_syntax() {
    let desk = desk();
    let mut server = TestServer::builder().folder(&desk.uri("")).start(agents_lsp_server::editor(
        desk.engine.clone(),
        agents_lsp_server::EditorOptions { workers: None, ..Default::default() },
    ));
    let offered = server.initialize(plain());
    let capabilities = &offered["capabilities"];
    for feature in
        ["definitionProvider", "referencesProvider", "documentSymbolProvider", "workspaceSymbolProvider"]
    {
        assert_eq!(capabilities[feature], true, "{feature}");
    }
    let syntactic = &capabilities["experimental"]["cleveragents"]["syntactic"];
    assert_eq!(syntactic["provider"], "builtin/tree-sitter");
    assert_eq!(
        syntactic["languages"],
        json!(["python", "rust", "typescript", "typescriptreact", "javascript", "javascriptreact"])
    );
}
