//! Situations, scripted.

use serde_json::{Value, json};

use crate::world::{World, each, fake};

fn rule() -> Value {
    json!({
        "match": "bad_(\\w+)", "code": "F1", "severity": 1, "message": "bad $1", "data": {"id": 1},
        "fixes": [{"title": "Make `$1` good", "replace": "good_$1", "preferred": true}],
    })
}

fn location(path: &str, line: u64, from: u64, to: u64) -> Value {
    json!({"uri": format!("$ROOT/{path}"), "range": range(line, from, to)})
}

fn range(line: u64, from: u64, to: u64) -> Value {
    json!({"start": {"line": line, "character": from}, "end": {"line": line, "character": to}})
}

fn answers(capabilities: Value, answers: &[(&str, Value)]) -> Value {
    let faults: Vec<Value> =
        answers.iter().map(|(on, answer)| json!({"on": on, "then": {"answer": answer}})).collect();
    json!({"capabilities": capabilities, "faults": faults, "rules": [rule()]})
}

const A: &str =
    "def join(parts):\n    return parts\n\n\nclass Box:\n    def join(self):\n        é = join(1)\n";

// 3.3: positions a model can use; LSP-039
#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_a_line_and_column_a_symbol_on_a_line_or_a_symbol_alone() {
    let symbols = json!([
        {"name": "join", "kind": 12, "range": range(0, 0, 8), "selectionRange": range(0, 4, 8)},
        {"name": "Box", "kind": 5, "range": range(4, 0, 3), "selectionRange": range(4, 6, 9), "children": [
            {"name": "join", "kind": 6, "range": range(5, 4, 12), "selectionRange": range(5, 8, 12)},
        ]},
    ]);
    let offers = json!({"hoverProvider": true, "documentSymbolProvider": true});
    let script = answers(
        offers,
        &[
            ("textDocument/hover", json!({"contents": {"kind": "markdown", "value": "**join**"}})),
            ("textDocument/documentSymbol", symbols),
        ],
    );
    let world = World::faked(&[("a.py", A)], script).await;
    for (place, line, character) in [
        (json!({"line": 7, "column": 13}), 6, 12),
        (json!({"line": 7, "symbol": "join"}), 6, 12),
        (json!({"symbol": "join"}), 0, 4),
        (json!({"symbol": "Box.join"}), 5, 8),
        (json!({"symbol": "parts"}), 0, 9),
        (json!({"line": 2}), 1, 4),
    ] {
        let mut arguments = place.clone();
        arguments["path"] = json!("./a.py");
        let answer = world.call("lsp/hover", arguments).await;
        assert_eq!((&answer["text"], &answer["server"]), (&json!("**join**"), &json!("local/fake")));
        let asked = world.got("textDocument/hover").pop().unwrap();
        assert_eq!(asked["params"]["position"], json!({"line": line, "character": character}), "{place}");
    }
    let absolute = world.root().join("a.py");
    world.call("lsp/hover", json!({"path": absolute, "line": 1})).await;
    for (arguments, why) in [
        (json!({"path": "a.py", "line": 99}), "a.py has 8 lines"),
        (json!({"path": "a.py", "line": 1, "column": 99}), "line 1 of a.py has 16 characters"),
        (
            json!({"path": "a.py", "line": 1, "symbol": "Box"}),
            "`Box` is not on line 1 of a.py, which is: def join(parts):",
        ),
        (json!({"path": "a.py", "symbol": "nothing"}), "`nothing` is nowhere in a.py"),
        (json!({"path": "a.py", "symbol": "Bag.join"}), "declares no `Bag.join`"),
        (json!({"path": "a.py", "column": 1}), "needs its `line`"),
        (json!({"path": "a.py"}), "say which place is meant"),
        (json!({"path": "a.py", "line": 1, "colum": 2}), "unknown field `colum`"),
        (json!({"path": "a.py", "line": "one"}), "at `line`"),
        (json!({"path": "../a.py", "line": 1}), "no path inside the workspace"),
        (json!({"path": "/etc/passwd", "line": 1}), "outside of"),
        (json!({"path": "none.py", "symbol": "x"}), "No such file"),
        (json!({"path": "a.go", "line": 1}), "No such file"),
        (
            json!({"path": "a.py", "line": 1, "resource": "docs"}),
            "there is no resource `docs`; there is code",
        ),
    ] {
        let error = world.fails("lsp/hover", arguments.clone()).await;
        assert!(error.contains(why), "{arguments}: {error}");
    }
    std::fs::write(world.root().join("a.go"), "package a\n").unwrap();
    let error = world.fails("lsp/hover", json!({"path": "a.go", "line": 1})).await;
    assert_eq!(error, "no language server is bound for a.go; bound are those for python (local/fake)");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_come_in_pages_with_their_source_and_those_in_libraries_are_marked() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("lib.py"), "# é\nx = join\n").unwrap();
    let library = format!("file://{}", outside.path().join("lib.py").display());
    let mut places: Vec<Value> = (0..60).map(|line| location("b.py", line, 0, 4)).collect();
    places.insert(0, json!({"uri": library, "range": range(1, 4, 8)}));
    places.push(json!({"uri": "untitled:x", "range": range(0, 0, 1)}));
    places.push(location("b.py", 0, 0, 4));
    let link = json!([{"targetUri": "$ROOT/a.py", "targetRange": range(0, 0, 30), "targetSelectionRange": range(0, 4, 8)}]);
    let script = answers(
        json!({"referencesProvider": true, "definitionProvider": true}),
        &[("textDocument/references", json!(places)), ("textDocument/definition", link)],
    );
    let b = "join  # é\n".repeat(60);
    let world = World::faked(&[("a.py", A), ("b.py", &b)], script).await;
    let definition =
        world.call("lsp/definition", json!({"path": "a.py", "symbol": "join", "context": 1})).await;
    assert_eq!(
        definition["results"],
        json!([{"at": "a.py:1:5", "code": ">    1 | def join(parts):\n     2 |     return parts"}])
    );
    let first = world.call("lsp/references", json!({"path": "a.py", "symbol": "join"})).await;
    assert_eq!((&first["total"], &first["next_offset"]), (&json!(61), &json!(50)));
    assert_eq!(first["results"][0], json!({"at": "b.py:1:1", "code": "join  # é"}));
    let last = world.call("lsp/references", json!({"path": "a.py", "symbol": "join", "offset": 50})).await;
    assert_eq!(each(&last, "at").len(), 11);
    assert_eq!(last["next_offset"], Value::Null);
    assert_eq!(last["results"][10]["code"], "x = join");
    assert_eq!(last["results"][10]["outside"], true);
    // What the server does not offer is not asked.
    let error = world.fails("lsp/implementation", json!({"path": "a.py", "symbol": "join"})).await;
    assert_eq!(error, "no server for a.py offers implementations; asked: local/fake");
    world.close().await;
}

// LSP-017, LSP-020
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_lent_is_refused_and_the_first_server_that_can_answers() {
    let folder = tempfile::tempdir().unwrap();
    let hover = |text: &str| {
        answers(json!({"hoverProvider": true}), &[("textDocument/hover", json!({"contents": text}))])
    };
    let servers = vec![
        fake(folder.path(), "none", json!({})),
        fake(
            folder.path(),
            "broken",
            json!({"capabilities": {"hoverProvider": true}, "faults": [
                {"on": "textDocument/hover", "then": {"error": [-32603, "out of order", null]}},
            ]}),
        ),
        fake(folder.path(), "good", hover("good")),
        fake(folder.path(), "later", hover("later")),
    ];
    let mut world = World::within(folder, &[("a.py", A)], servers, Default::default()).await;
    let answer = world.call("lsp/hover", json!({"path": "a.py", "line": 1})).await;
    assert_eq!(answer["server"], "local/good");
    let lens = world.lens.clone();
    world.lens = lens.clone().with_servers(Some(vec!["local/later".parse().unwrap()]));
    assert_eq!(world.call("lsp/hover", json!({"path": "a.py", "line": 1})).await["text"], "later");
    world.lens = lens.clone().with_servers(Some(vec!["local/broken".parse().unwrap()]));
    let error = world.fails("lsp/hover", json!({"path": "a.py", "line": 1})).await;
    assert!(error.contains("local/broken refused textDocument/hover: out of order"), "{error}");
    world.lens = lens.with_capabilities(Some(vec![agents_domain::language_server::Capability::Diagnostics]));
    let error = world.fails("lsp/hover", json!({"path": "a.py", "line": 1})).await;
    assert!(error.contains("the capability \"hover\""), "{error}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn diagnostics_say_what_was_not_checked_and_an_empty_list_alone_is_clean() {
    let folder = tempfile::tempdir().unwrap();
    let servers = vec![
        fake(folder.path(), "fake", json!({"rules": [rule()]})),
        fake(
            folder.path(),
            "dead",
            json!({"faults": [{"on": "initialize", "then": {"error": [1, "no licence", null]}}]}),
        ),
    ];
    let world =
        World::within(folder, &[("a.py", "x = bad_one\n"), ("b.py", "y = 1\n")], servers, Default::default())
            .await;
    let answer = world.call("lsp/diagnostics", json!({"path": "b.py", "also": ["a.py"]})).await;
    assert_eq!(
        (&answer["complete"], &answer["total"], &answer["errors"]),
        (&json!(false), &json!(1), &json!(1))
    );
    assert_eq!(
        answer["results"][0],
        json!({"at": "a.py:1:5", "severity": "error", "rule": "Fake F1", "message": "bad one", "code": "x = bad_one"})
    );
    let silent = answer["not_checked"].as_array().unwrap();
    assert_eq!(silent.len(), 2);
    assert!(silent[0]["why"].as_str().unwrap().contains("no licence"), "{silent:?}");
    let mut world = world;
    world.lens = world.lens.clone().with_servers(Some(vec!["local/fake".parse().unwrap()]));
    let clean = world.call("lsp/diagnostics", json!({"path": "b.py"})).await;
    assert_eq!((&clean["complete"], &clean["total"]), (&json!(true), &json!(0)));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_names_the_step_that_breaks_and_leaves_disk_and_servers_as_they_were() {
    for mode in ["pull", "push"] {
        let script = json!({"rules": [rule()], "diagnostics": mode});
        let world = World::faked(&[("a.py", "x = bad_old\n"), ("b.py", "import a\n")], script).await;
        let arguments = json!({
            "steps": [
                {"label": "clean up", "edits": [{"path": "a.py", "old_text": "bad_old", "new_text": "good"}]},
                {"edits": [{"path": "new.py", "new_text": "z = 1\n"}]},
                {"label": "slip", "edits": [{"path": "a.py", "start_line": 1, "new_text": "x = bad_new"}]},
            ],
            "also_check": ["b.py"],
        });
        let answer = world.call("lsp/preview-edit", arguments).await;
        assert_eq!(answer["breaks_at"], 3, "{mode}: {answer}");
        let verdicts: Vec<&Value> =
            answer["steps"].as_array().unwrap().iter().map(|step| &step["verdict"]).collect();
        assert_eq!(verdicts, ["better", "same", "worse"]);
        assert_eq!(answer["steps"][2]["added"][0]["at"], "a.py:1:5");
        assert_eq!(answer["overall"]["verdict"], "worse");
        assert_eq!(answer["checked"], json!(["a.py", "new.py", "b.py"]));
        assert_eq!(std::fs::read_to_string(world.root().join("a.py")).unwrap(), "x = bad_old\n");
        assert!(!world.root().join("new.py").exists());
        // The server sees the disk again, the file that never was is closed.
        let after = world.call("lsp/diagnostics", json!({"path": "a.py"})).await;
        assert_eq!(after["results"][0]["message"], "bad old");
        let closed = world.got("textDocument/didClose");
        assert!(
            closed
                .iter()
                .any(|one| one["params"]["textDocument"]["uri"].as_str().unwrap().ends_with("new.py"))
        );
        for (steps, why) in [
            (json!([]), "give 1 to 20"),
            (
                json!([{"edits": [{"path": "a.py", "old_text": "zzz", "new_text": ""}]}]),
                "step 1: a.py: `old_text` does not stand",
            ),
            (json!([{"edits": [{"path": "none.py", "start_line": 1, "new_text": ""}]}]), "No such file"),
        ] {
            let error = world.fails("lsp/preview-edit", json!({"steps": steps})).await;
            assert!(error.contains(why), "{error}");
        }
        world.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_action_is_listed_and_given_as_edits_for_the_tool_that_writes() {
    let world = World::faked(&[("a.py", "x = bad_one\ny = bad_two\n")], json!({"rules": [rule()]})).await;
    let listed = world.call("lsp/code-actions", json!({"path": "a.py", "line": 1, "with_diff": true})).await;
    assert_eq!(each(&listed, "title"), ["Make `one` good"]);
    assert_eq!(listed["results"][0]["preferred"], true);
    let diff = listed["results"][0]["changes"][0]["diff"].as_str().unwrap();
    assert!(diff.contains("-x = bad_one\n+x = good_one"), "{diff}");
    let both = world.call("lsp/code-actions", json!({"path": "a.py", "line": 1, "end_line": 2})).await;
    assert_eq!(each(&both, "title").len(), 2);
    let applied =
        world.call("lsp/apply-code-action", json!({"path": "a.py", "line": 2, "title": "good"})).await;
    assert_eq!(applied["title"], "Make `two` good");
    assert_eq!(applied["edits"][0]["path"], "a.py");
    assert_eq!(applied["edits"][0]["edits"][0]["new_text"], "good_two");
    let error =
        world.fails("lsp/apply-code-action", json!({"path": "a.py", "line": 2, "title": "Extract"})).await;
    assert!(error.contains("is not offered there; there is \u{201c}Make `two` good\u{201d}"), "{error}");
    let error = world.fails("lsp/code-actions", json!({"path": "a.py", "line": 9})).await;
    assert!(error.contains("has lines 1 to 3"), "{error}");
    // LSP-039: nothing was written.
    assert_eq!(std::fs::read_to_string(world.root().join("a.py")).unwrap(), "x = bad_one\ny = bad_two\n");
    world.close().await;
}

// LSP-021, LSP-023
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_file_goes_with_it_up_to_the_limit() {
    let text = "x = bad_a\n".repeat(60);
    let world = World::faked(&[("a.py", &text), ("b.txt", "x\n")], json!({"rules": [rule()]})).await;
    let wanted = agents_tools::enrich::Enrichment::default();
    let lines = agents_tools::enrich::lines(&world.lens, None, "a.py", &wanted).await;
    assert_eq!(lines.len(), 51);
    assert_eq!(lines[0], "a.py:1:5 error [Fake F1] bad a");
    assert_eq!(lines[50], "\u{2026} 10 more");
    assert!(agents_tools::enrich::lines(&world.lens, None, "b.txt", &wanted).await.is_empty());
    world.close().await;
}

// An early empty answer is none: the server had not read the project yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_long_there_and_finds_nothing_is_asked_again() {
    let symbol = json!([{"name": "late", "kind": 12, "location": location("a.py", 0, 4, 8)}]);
    let faults = json!([
        {"on": "workspace/symbol", "nth": 1, "then": {"answer": []}},
        {"on": "workspace/symbol", "then": {"answer": symbol}},
        {"on": "textDocument/references", "nth": 1, "then": "null"},
        {"on": "textDocument/references", "then": {"answer": [location("a.py", 6, 12, 16)]}},
    ]);
    let offers = json!({"workspaceSymbolProvider": true, "referencesProvider": true});
    let world = World::faked(&[("a.py", A)], json!({"capabilities": offers, "faults": faults})).await;
    let found = world.call("lsp/workspace-symbols", json!({"query": "late"})).await;
    assert_eq!(each(&found, "at"), ["a.py:1:5"], "{found} {:?}", world.got("workspace/symbol"));
    let references = world.call("lsp/references", json!({"path": "a.py", "symbol": "join"})).await;
    assert_eq!(each(&references, "at"), ["a.py:7:13"]);
    // What the server knows of the project it knows of a file that is open.
    assert_eq!(world.got("textDocument/didOpen").len(), 1);
    world.close().await;
}
