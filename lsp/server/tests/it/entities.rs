//! Entity files as a language.

use std::time::Duration;

use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::desk::{Desk, capable, fix, plain};

const SOON: Duration = Duration::from_secs(20);

const FILE: &str = "\
name: local/mine
description: Mine
definition_of_done: Done
strategy_actor: test/scripted
execution_actor: test/scripted
automation_profile: cautios
args:
  - name: x
    type: integer
";

/// A desk whose repository has the file, and an editor with it open.
fn open(capabilities: Value) -> (Desk, TestServer, String) {
    let desk =
        Desk::new(&[("act.yaml", FILE), ("other.yml", &FILE.replace("local/mine", "local/other"))], fix(&[]));
    let mut server = desk.editor(capabilities);
    for method in [
        "workspace/codeLens/refresh",
        "workspace/diagnostic/refresh",
        "workspace/inlayHint/refresh",
        "textDocument/publishDiagnostics",
    ] {
        server.allow(method);
    }
    let uri = desk.uri("act.yaml");
    server.open(&uri, "yaml", FILE);
    (desk, server, uri)
}

/// Where a text begins in the file, `more` characters on.
fn at(text: &str, more: usize) -> Value {
    let line = FILE.lines().position(|line| line.contains(text)).unwrap();
    let column = FILE.lines().nth(line).unwrap().find(text).unwrap() + more;
    json!({ "line": line, "character": column })
}

fn ask(server: &mut TestServer, method: &str, uri: &str, position: Value) -> Value {
    server.request(method, json!({ "textDocument": { "uri": uri }, "position": position, "context": { "includeDeclaration": true, "triggerKind": 1 } }))
}

#[test]
fn problems_stand_at_their_key_or_value_and_follow_each_edit() {
    let (_desk, mut server, uri) = open(plain());
    let told = |server: &mut TestServer| server.expect_notification("textDocument/publishDiagnostics", SOON);
    let first = told(&mut server);
    let messages: Vec<&str> =
        first["diagnostics"].as_array().unwrap().iter().map(|d| d["message"].as_str().unwrap()).collect();
    assert!(messages.iter().any(|m| m.starts_with("`cautios` is not a built-in profile")), "{messages:?}");
    assert!(messages.contains(&"`args` is usually written `arguments`"), "{messages:?}");
    let whole = FILE.replace("cautios", "cautious").replace("args", "arguments");
    server.change(&uri, json!([{ "text": whole }]));
    while told(&mut server)["diagnostics"] != json!([]) {}
    server.change(&uri, json!([{ "text": whole.replace("integer", "whole") }]));
    let last = told(&mut server);
    let [one] = last["diagnostics"].as_array().unwrap().as_slice() else { panic!("{last:#}") };
    assert_eq!(
        (&one["severity"], &one["range"]["start"]),
        (&json!(1), &json!({ "line": 8, "character": 10 }))
    );
    assert!(one["message"].as_str().unwrap().contains("one of"), "{one}");
}

#[test]
fn a_client_that_pulls_gets_the_same_problems() {
    let (_desk, mut server, uri) = open(capable());
    let report = server.request("textDocument/diagnostic", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(report["items"].as_array().unwrap().len(), 2, "{report:#}");
}

#[test]
fn keys_and_names_are_completed_and_explained() {
    let (_desk, mut server, uri) = open(plain());
    let items = ask(&mut server, "textDocument/completion", &uri, at("cautios", 4));
    let cautious = items.as_array().unwrap().iter().find(|item| item["label"] == "cautious").unwrap();
    assert_eq!(cautious["textEdit"]["range"]["start"], at("cautios", 0));
    assert_eq!(cautious["textEdit"]["range"]["end"], at("cautios", 7));
    let items = ask(&mut server, "textDocument/completion", &uri, at("type:", 0));
    assert!(items.as_array().unwrap().iter().any(|item| item["label"] == "default"), "{items:#}");
    let told = ask(&mut server, "textDocument/hover", &uri, at("definition_of_done", 3));
    assert!(told["contents"]["value"].as_str().unwrap().contains("required"), "{told:#}");
    let told = ask(&mut server, "textDocument/hover", &uri, at("local/mine", 3));
    assert!(
        told["contents"]["value"].as_str().unwrap().contains("not one of a registered action"),
        "{told:#}"
    );
}

#[test]
fn the_usual_spelling_and_the_nearest_name_are_quick_fixes() {
    let (_desk, mut server, uri) = open(capable());
    let mut fixes = |text: &str| {
        let place = at(text, 1);
        let range = json!({ "start": place, "end": place });
        let params = json!({ "textDocument": { "uri": uri }, "range": range, "context": { "diagnostics": [], "only": ["quickfix"] } });
        let found = server.request("textDocument/codeAction", params);
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|a| (a["title"].clone(), a["edit"]["changes"][&uri][0]["newText"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(fixes("cautios"), [(json!("Write `cautious`"), json!("cautious"))]);
    assert_eq!(fixes("args"), [(json!("Write `arguments`"), json!("arguments"))]);
    assert_eq!(fixes("integer"), []);
}

#[test]
fn a_name_leads_to_its_file_and_is_renamed_everywhere() {
    let (desk, mut server, uri) = open(capable());
    std::fs::write(
        desk.repo().join("profile.yaml"),
        "automation_profile:\n  name: cautios\n  select_tool: 0.5\n",
    )
    .unwrap();
    let place = at("cautios", 2);
    let found = ask(&mut server, "textDocument/definition", &uri, place.clone());
    assert_eq!(found[0]["uri"], desk.uri("profile.yaml"));
    assert_eq!(found[0]["range"]["start"], json!({ "line": 1, "character": 8 }));
    let found = ask(&mut server, "textDocument/references", &uri, place.clone());
    let mut files: Vec<&str> = found.as_array().unwrap().iter().map(|f| f["uri"].as_str().unwrap()).collect();
    files.sort_unstable();
    assert_eq!(files, [desk.uri("act.yaml"), desk.uri("other.yml"), desk.uri("profile.yaml")]);
    let can = ask(&mut server, "textDocument/prepareRename", &uri, place.clone());
    assert_eq!(can["placeholder"], "cautios");
    let params = |name: &str| json!({ "textDocument": { "uri": uri }, "position": place, "newName": name });
    let edit = server.request("textDocument/rename", params("mild"));
    assert_eq!(edit["changes"].as_object().unwrap().len(), 3, "{edit:#}");
    assert_eq!(edit["changes"][desk.uri("profile.yaml")][0]["newText"], "mild");
    let (code, message) = server.request_error("textDocument/rename", params("a/b/c d"));
    assert_eq!(code, -32602, "{message}");
}

#[test]
fn a_file_is_registered_from_its_lens_and_then_used() {
    let (desk, mut server, uri) = open(plain());
    let whole = FILE.replace("cautios", "cautious");
    server.change(&uri, json!([{ "text": whole }]));
    let lenses = |server: &mut TestServer| {
        let found = server.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|l| (l["command"]["title"].as_str().unwrap().to_owned(), l["command"].clone()))
            .collect::<Vec<_>>()
    };
    let [(title, register)] = &lenses(&mut server)[..] else { panic!("one lens") };
    assert_eq!(title, "Register");
    let done = server.request(
        "workspace/executeCommand",
        json!({ "command": register["command"], "arguments": [register["arguments"][0]] }),
    );
    assert_eq!(done["name"], "local/mine");
    let shown = desk.ok("registry/action/show", json!({ "name": "local/mine" }));
    assert_eq!(shown["config"], desk.repo().join("act.yaml").to_str().unwrap());
    let mut now = lenses(&mut server);
    while now.iter().any(|(title, _)| title == "Register") {
        // The watch looks at the registry within its poll.
        now = lenses(&mut server);
    }
    assert_eq!(now.iter().map(|(title, _)| title.as_str()).collect::<Vec<_>>(), ["Use on local/app"]);
    let used = server.request(
        "workspace/executeCommand",
        json!({ "command": now[0].1["command"], "arguments": [now[0].1["arguments"][0]] }),
    );
    assert_eq!(used["action"], "local/mine", "{used:#}");
    let (code, message) = server.request_error(
        "workspace/executeCommand",
        json!({ "command": "agents.entity.register", "arguments": [{ "uri": "file:///no" }] }),
    );
    assert!(code < 0 && message.contains("not open"), "{message}");
}

#[test]
fn the_outline_is_of_entity_files_alone() {
    let (desk, mut server, uri) = open(capable());
    let found = server.request("textDocument/documentSymbol", json!({ "textDocument": { "uri": uri } }));
    let names: Vec<&str> = found.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "name",
            "description",
            "definition_of_done",
            "strategy_actor",
            "execution_actor",
            "automation_profile",
            "args"
        ]
    );
    let other = desk.uri("compose.yaml");
    server.open(&other, "yaml", "services:\n  a: b\n");
    for method in ["documentSymbol", "codeLens"] {
        let answer =
            server.request(&format!("textDocument/{method}"), json!({ "textDocument": { "uri": other } }));
        assert!(answer.is_null() || answer == json!([]), "{method}: {answer}");
    }
    let answer = ask(&mut server, "textDocument/completion", &other, json!({ "line": 0, "character": 0 }));
    assert!(answer.is_null(), "{answer}");
}

#[test]
fn an_actor_file_is_known_and_offers_to_be_registered_only_where_that_can_be_done() {
    let (desk, mut server, _) = open(plain());
    let actor = desk.uri("helper.yaml");
    server.open(&actor, "yaml", "name: local/helper\nprovider: openai\nmodel: m\nsystem_prompt: Help.\n");
    let params = json!({ "textDocument": { "uri": actor } });
    let found = server.request("textDocument/documentSymbol", params.clone());
    let names: Vec<&str> = found.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["name", "provider", "model", "system_prompt"]);
    let lenses = server.request("textDocument/codeLens", params);
    let offered = lenses.as_array().unwrap().iter().any(|lens| lens["command"]["title"] == "Register");
    let can = agents_engine::catalogue().iter().any(|operation| operation.method == "registry/actor/add");
    assert_eq!(offered, can, "{lenses}");
}
