//! What can be done on our own documents: links, the hierarchy of decisions, lenses, and what a correction changed.

use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::desk::{Desk, decision, done, edit, fix};
use crate::support::SOON;

fn one() -> Desk {
    Desk::new(&[("a.txt", "one\ntwo\nthree\n")], fix(&[edit("1", "impl/x", "a.txt", 1, 2, "TWO\n")]))
}

/// Two decisions, one after the other; the second was drawn from the first.
fn two() -> Desk {
    let mut second = decision("impl/y", "implementation_choice", json!("strategy/x"), 0.7);
    second["depends_on"] = json!(["impl/x"]);
    let script = json!({
        "strategize": [
            { "requests": [decision("strategy/x", "strategy_choice", Value::Null, 0.85)] },
            { "outcome": done("decided") },
        ],
        "execute": [
            { "requests": [
                decision("impl/x", "implementation_choice", json!("strategy/x"), 0.75),
                edit("1", "impl/x", "a.txt", 0, 1, "ONE\n"),
            ] },
            { "requests": [second, edit("2", "impl/y", "a.txt", 2, 3, "THREE\n")] },
            { "outcome": done("did it") },
        ],
    });
    Desk::new(&[("a.txt", "one\ntwo\nthree\n")], script)
}

/// A client that shows our documents.
fn reader(desk: &Desk) -> TestServer {
    desk.editor(json!({
        "workspace": { "textDocumentContent": {} },
        "textDocument": { "documentLink": { "tooltipSupport": true }, "callHierarchy": {} },
    }))
}

fn show(server: &mut TestServer, uri: &str) -> String {
    let text = server.request("agents/content", json!({ "uri": uri }))["text"].as_str().unwrap().to_owned();
    server.open(uri, "markdown", &text);
    text
}

/// The words of each link with its target.
fn links(server: &mut TestServer, uri: &str, text: &str) -> Vec<(String, String)> {
    let found = server.request("textDocument/documentLink", json!({ "textDocument": { "uri": uri } }));
    let lines: Vec<&str> = text.lines().collect();
    let link = |link: &Value| {
        let at = |end: &str| link["range"][end]["character"].as_u64().unwrap() as usize;
        let line = link["range"]["start"]["line"].as_u64().unwrap() as usize;
        (lines[line][at("start")..at("end")].to_owned(), link["target"].as_str().unwrap().to_owned())
    };
    found.as_array().map(|found| found.iter().map(link).collect()).unwrap_or_default()
}

#[test]
fn ids_and_files_of_our_documents_are_links() {
    let desk = one();
    let plan = desk.plan("trusted");
    let mut server = reader(&desk);
    let uri = format!("agents:/plan/{plan}");
    let text = show(&mut server, &uri);
    let found = links(&mut server, &uri, &text);
    assert!(found.contains(&("a.txt".to_owned(), desk.uri("a.txt"))), "{found:?}");
    let decisions: Vec<_> =
        found.iter().filter(|(_, target)| target.starts_with("agents:/decision/")).collect();
    // The root, the choice and what carries it out.
    assert_eq!(decisions.len(), 3, "{found:?}\n{text}");
    // A page does not lead to itself.
    assert!(found.iter().all(|(words, _)| *words != plan), "{found:?}");
    let page = decisions[1].1.clone();
    let text = show(&mut server, &page);
    let found = links(&mut server, &page, &text);
    assert!(found.contains(&(plan.clone(), uri)), "{found:?}\n{text}");
    server.finish();
}

#[test]
fn names_and_ids_in_markdown_and_entity_files_are_links_where_they_lead_somewhere() {
    let desk = one();
    let plan = desk.plan("trusted");
    let gates = [
        "decompose_task",
        "create_tool",
        "select_tool",
        "edit_code",
        "execute_command",
        "create_file",
        "delete_content",
        "access_network",
        "install_dependency",
        "modify_config",
        "approve_plan",
    ];
    let gates: String = gates.iter().map(|gate| format!("{gate}: 0.5\n")).collect();
    let flags = "require_sandbox: true\nrequire_checkpoints: true\nallow_unsafe_tools: false\n";
    let profile = format!("name: local/mild\ndescription: Mild\n{gates}{flags}");
    std::fs::write(desk.repo().join("profile.yaml"), &profile).unwrap();
    let path = desk.repo().join("profile.yaml").display().to_string();
    desk.ok("registry/automation_profile/add", json!({ "config": path, "text": profile }));
    let notes = format!(
        "See plan {plan}.\nIt ran under local/mild. Not local/nothing, not 01ARZ3NDEKTSV4RRFFQ69G5FAV.\n"
    );
    let action = "name: local/other\ndescription: d\ndefinition_of_done: d\nstrategy_actor: test/scripted\n\
                  execution_actor: test/scripted\nautomation_profile: local/mild\n";
    let file = desk.uri("profile.yaml");
    for (mut server, pages) in [(reader(&desk), true), (desk.editor(json!({})), false)] {
        let uri = desk.uri("notes.md");
        server.open(&uri, "markdown", &notes);
        let mut wanted = vec![("local/mild".to_owned(), file.clone())];
        if pages {
            wanted.push((plan.clone(), format!("agents:/plan/{plan}")));
        }
        assert_eq!(links(&mut server, &uri, &notes), wanted);
        let uri = desk.uri("other.yaml");
        server.open(&uri, "yaml", action);
        assert_eq!(links(&mut server, &uri, action), [("local/mild".to_owned(), file.clone())]);
        let uri = desk.open(&mut server, "a.txt");
        assert_eq!(links(&mut server, &uri, &desk.read("a.txt")), []);
    }
}

#[test]
fn decisions_have_a_hierarchy_of_the_tree_and_of_what_was_drawn_from_what() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = reader(&desk);
    let uri = format!("agents:/plan/{plan}");
    let text = show(&mut server, &uri);
    let line = text.lines().position(|line| line.contains("How about impl/x?")).unwrap();
    let at = json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": 6 } });
    let items = server.request("textDocument/prepareCallHierarchy", at);
    let item = &items[0];
    assert_eq!((items.as_array().unwrap().len(), &item["uri"]), (1, &json!(uri)));
    assert!(item["detail"].as_str().unwrap().starts_with("implementation_choice 0.75"), "{item}");
    assert_eq!(item["range"]["start"]["line"], line);
    let ends = |calls: &Value, key: &str| -> Vec<String> {
        let call = |call: &Value| {
            format!("{}, {}", call[key]["name"].as_str().unwrap(), call[key]["detail"].as_str().unwrap())
        };
        calls.as_array().unwrap().iter().map(call).collect()
    };
    let incoming = ends(&server.request("callHierarchy/incomingCalls", json!({ "item": item })), "from");
    assert!(
        incoming.iter().any(|from| from.contains("strategy/x") && from.contains(", tree")),
        "{incoming:?}"
    );
    let calls = server.request("callHierarchy/outgoingCalls", json!({ "item": item }));
    let outgoing = ends(&calls, "to");
    assert!(
        outgoing.len() == 1 && outgoing[0].contains("impl/y") && outgoing[0].ends_with("influence"),
        "{outgoing:?}"
    );
    // On through the tree, and from the page of a decision.
    let next = server.request("callHierarchy/incomingCalls", json!({ "item": calls[0]["to"] }));
    assert!(ends(&next, "from").iter().any(|from| from.contains("impl/x")), "{next}");
    let page = format!("agents:/decision/{}", item["data"]["decision"].as_str().unwrap());
    show(&mut server, &page);
    let at = json!({ "textDocument": { "uri": page }, "position": { "line": 0, "character": 0 } });
    assert_eq!(server.request("textDocument/prepareCallHierarchy", at)[0]["name"], item["name"]);
    // No decision stands in the title.
    let at = json!({ "textDocument": { "uri": uri }, "position": { "line": 1, "character": 0 } });
    assert_eq!(server.request("textDocument/prepareCallHierarchy", at), Value::Null);
}

#[test]
fn a_plans_page_has_lenses_for_what_can_be_done_and_a_checkpoint_leads_back() {
    let desk = two();
    let plan = desk.plan("trusted");
    let mut server = reader(&desk);
    let uri = format!("agents:/plan/{plan}");
    let text = show(&mut server, &uri);
    let found = server.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let found = found.as_array().unwrap();
    let titled =
        |title: &str| found.iter().filter(|lens| lens["command"]["title"] == title).collect::<Vec<_>>();
    assert_eq!(titled("apply")[0]["range"]["start"]["line"], 0);
    assert_eq!(titled("explain").len(), 4, "{found:?}\n{text}");
    // Not interactive: no lens that would lack words.
    assert!(titled("correct…").is_empty() && titled("cancel…").is_empty());
    let back = titled("roll back to here");
    let checkpoints = text.lines().filter(|line| line.contains("cp_")).count();
    assert_eq!(back.len(), checkpoints - 1, "all but the last\n{text}");
    let command = &back[0]["command"];
    server.request(
        "workspace/executeCommand",
        json!({ "command": command["command"], "arguments": [command["arguments"][0]] }),
    );
    server.allow("workspace/textDocumentContent/refresh");
    desk.work(&plan);
    let diff = desk.ok("plan/diff", json!({ "plan": plan }));
    assert_eq!(diff["diff_summary"]["files_changed"], 0, "{diff}");
}

#[test]
fn a_correction_is_a_document_of_the_old_and_the_new() {
    let desk = one();
    let plan = desk.plan("trusted");
    let tree = desk.ok("plan/tree", json!({ "plan": plan }));
    let choice = &tree["tree"]["children"][0]["decision_id"];
    let params = json!({ "decision": choice, "mode": "revert", "guidance": "Leave alone" });
    let made = desk.ok("plan/correct", params);
    desk.work(&plan);
    let id = made["correction"]["correction_attempt_id"].as_str().unwrap().to_owned();
    let mut server = reader(&desk);
    let uri = format!("agents:/correction/{id}");
    let text = show(&mut server, &uri);
    for part in
        ["# How about strategy/x?", "**Before → Fix it**", "**After → Leave alone**", "`a.txt` before +1 -1"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let found = links(&mut server, &uri, &text);
    assert!(found.contains(&(plan.clone(), format!("agents:/plan/{plan}"))), "{found:?}");
    // The decision that was corrected leads to it.
    let page = format!("agents:/decision/{}", choice.as_str().unwrap());
    let text = show(&mut server, &page);
    assert!(links(&mut server, &page, &text).contains(&(id, uri)), "{text}");
    let unknown = json!({ "uri": "agents:/correction/01ARZ3NDEKTSV4RRFFQ69G5FAV" });
    assert_eq!(server.request_error("agents/content", unknown).0, -32001);
}

#[test]
fn links_and_the_hierarchy_are_registered_for_the_documents_that_have_them() {
    let desk = one();
    let dynamic = json!({ "dynamicRegistration": true });
    let mut server =
        desk.editor(json!({ "textDocument": { "documentLink": dynamic, "callHierarchy": dynamic } }));
    let (id, params) = server.expect_request("client/registerCapability", SOON);
    server.respond(&id, &Value::Null);
    let selector = |method: &str| {
        let all = params["registrations"].as_array().unwrap();
        let found =
            all.iter().find(|one| one["method"] == method).unwrap_or_else(|| panic!("{method}: {params}"));
        found["registerOptions"]["documentSelector"].clone()
    };
    assert_eq!(selector("textDocument/prepareCallHierarchy"), json!([{ "scheme": "agents" }]));
    assert_eq!(
        selector("textDocument/documentLink"),
        json!([{ "language": "yaml" }, { "language": "json" }, { "language": "markdown" }, { "scheme": "agents" }])
    );
}
