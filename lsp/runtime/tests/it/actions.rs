//! Fixes: which are usable, what they change, and why the others are not.

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::language_servers::CodeActionOffer;
use agents_domain::text::{FileEdit, Range, TextEdit, apply_edits};
use serde_json::{Value, json};

use crate::harness::{World, found, script};

/// The offers of a server whose only rule has these fixes, for `bad_x` in `a.py`.
async fn offers(fixes: Value) -> (World, Result<Vec<CodeActionOffer>, String>) {
    let rule = json!({"match": "bad_(\\w+)", "code": "F1", "data": {"id": 1}, "fixes": fixes});
    let world = World::new(json!({ "rules": [rule] }));
    world.write("a.py", "'😀'; bad_x\n");
    world.write("lib/b.py", "'漢'; import bad_x\n");
    let workspace = world.open().await;
    let diagnostics = found(&workspace, "a.py").await;
    let offers = workspace.code_actions(&world.definition.name, "a.py", &diagnostics[0]).await;
    (world, offers)
}

fn only(offers: Result<Vec<CodeActionOffer>, String>) -> CodeActionOffer {
    let mut offers = offers.unwrap();
    assert_eq!(offers.len(), 1, "{offers:?}");
    offers.remove(0)
}

fn edit(path: &str, columns: (u32, u32), new_text: &str) -> FileEdit {
    let range = Range::new((0, columns.0), (0, columns.1));
    FileEdit::Edit { path: path.into(), edits: vec![TextEdit { range, new_text: new_text.into() }] }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_comes_in_byte_columns_with_its_title_kind_and_preference() {
    let (_, offers) = offers(json!([{"title": "Fix $1", "replace": "good_$1", "preferred": true}])).await;
    let offer = only(offers);
    assert_eq!(
        (offer.title.as_str(), offer.kind.as_deref(), offer.is_preferred),
        ("Fix x", Some("quickfix"), true)
    );
    assert_eq!(offer.edits.unwrap(), [edit("a.py", (8, 13), "good_x")]);
    assert_eq!(offer.unusable, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_is_missing_is_resolved() {
    let (world, offers) = offers(json!([{"title": "Fix", "replace": "good_$1", "resolve": true}])).await;
    assert_eq!(only(offers).edits.unwrap(), [edit("a.py", (8, 13), "good_x")]);
    assert_eq!(world.got("codeAction/resolve").len(), 1);
}

// LSP-039: edits are worked out, not written
#[tokio::test(flavor = "multi_thread")]
async fn a_fix_may_edit_other_files_open_or_not() {
    let elsewhere = json!({"file": "lib/b.py", "match": "bad_(\\w+)", "replace": "good_$1"});
    let (world, offers) =
        offers(json!([{"title": "Fix", "replace": "good_$1", "elsewhere": elsewhere}])).await;
    assert_eq!(
        only(offers).edits.unwrap(),
        [edit("a.py", (8, 13), "good_x"), edit("lib/b.py", (14, 19), "good_x")]
    );
    let text = |path: &str| std::fs::read_to_string(world.root().join(path)).unwrap();
    assert_eq!(
        (text("a.py"), text("lib/b.py")),
        ("'😀'; bad_x\n".to_owned(), "'漢'; import bad_x\n".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_beside_a_command_is_taken_and_a_command_is_never_run() {
    let (world, offers) = offers(json!([
        {"title": "Both", "replace": "good", "command": "fake.do"},
        {"title": "Command", "command": "fake.do"},
        {"title": "Resolved to a command", "command": "fake.do", "resolve": true},
        {"title": "Bare", "command": "fake.bare", "bare": true},
        {"title": "Disabled", "replace": "good", "disabled": "not today"},
        {"title": "Nothing"},
        {"title": "Snippet", "replace": "$1", "snippet": true, "version_offset": 0},
        {"title": "Stale", "replace": "good", "version_offset": 3},
        {"title": "Current", "replace": "good", "version_offset": 0},
        {"title": "Outside", "operations": [{"kind": "create", "uri": "file:///etc/agents"}]},
        {"title": "Same", "replace": "bad_$1"},
    ]))
    .await;
    let offers = offers.unwrap();
    let offer = |title: &str| offers.iter().find(|offer| offer.title == title).unwrap();
    assert!(offer("Both").edits.is_some() && offer("Current").edits.is_some());
    for (title, why) in [
        ("Command", "only runs the server's command `fake.do`"),
        ("Resolved to a command", "only runs the server's command `fake.do`"),
        ("Bare", "only runs the server's command `fake.bare`"),
        ("Disabled", "it is disabled: not today"),
        ("Nothing", "it carries no edit"),
        ("Snippet", "snippet"),
        ("Stale", "version 4 of a.py, which is at version 1"),
        ("Outside", "outside the workspace"),
        ("Same", "it changes nothing"),
    ] {
        let offer = offer(title);
        assert!(offer.edits.is_none(), "{title}");
        assert!(offer.unusable.as_ref().unwrap().contains(why), "{title}: {:?}", offer.unusable);
    }
    assert!(world.got("workspace/executeCommand").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_on_files_come_with_the_edits() {
    let operations = json!([
        {"kind": "create", "uri": "$ROOT/new.py"},
        {"kind": "rename", "oldUri": "$ROOT/lib/b.py", "newUri": "$ROOT/lib/c.py"},
    ]);
    let (_, offers) = offers(json!([{"title": "Move", "replace": "good", "operations": operations}])).await;
    assert_eq!(
        only(offers).edits.unwrap(),
        [
            FileEdit::Create { path: "new.py".into(), text: String::new() },
            FileEdit::Rename { path: "lib/b.py".into(), to: "lib/c.py".into() },
            edit("a.py", (8, 13), "good"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn fixes_hidden_from_the_filter_are_found_without_it_and_refactorings_are_left_out() {
    let (world, offers) = offers(json!([
        {"title": "No kind", "kind": "", "replace": "good", "when_filtered": false},
    ]))
    .await;
    assert_eq!(only(offers).kind, None);
    let only_of = |at: usize| world.got("textDocument/codeAction")[at]["params"]["context"]["only"].clone();
    assert_eq!((only_of(0), only_of(1)), (json!(["quickfix"]), Value::Null));

    let world = World::new(script(json!({"faults": [
        {"on": "textDocument/codeAction", "nth": 1, "then": {"answer": []}},
        {"on": "textDocument/codeAction", "nth": 2, "then": {"answer": [
            null, 7, {"title": "Extract", "kind": "refactor.extract", "edit": {}},
            {"title": "Organise", "kind": "source.organizeImports", "edit": {}},
            {"title": "Fix", "kind": "quickfix.x", "edit": {}},
        ]}},
    ]})));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    let diagnostics = found(&workspace, "a.py").await;
    let offers = workspace.code_actions(&world.definition.name, "a.py", &diagnostics[0]).await.unwrap();
    assert_eq!(offers.iter().map(|offer| offer.title.as_str()).collect::<Vec<_>>(), ["Fix"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_resolve_makes_one_action_unusable_not_all() {
    let world = World::new(json!({
        "rules": [{"match": "bad_(\\w+)", "fixes": [
            {"title": "A", "replace": "a", "resolve": true}, {"title": "B", "replace": "b", "resolve": true},
        ]}],
        "faults": [{"on": "codeAction/resolve", "nth": 1, "then": {"error": [-32603, "cannot"]}}],
    }));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    let diagnostics = found(&workspace, "a.py").await;
    let offers = workspace.code_actions(&world.definition.name, "a.py", &diagnostics[0]).await.unwrap();
    assert!(offers[0].unusable.as_ref().unwrap().contains("cannot"));
    assert!(offers[1].edits.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fix_applied_to_a_file_with_crlf_makes_its_diagnostic_vanish_and_keeps_the_line_ends() {
    let rule = json!({"match": "bad_(\\w+)", "fixes": [{"title": "Fix", "above": "import $1\n", "replace": "good_$1"}]});
    let world = World::new(json!({ "rules": [rule] }));
    let text = "one\r\n  bad_x\r\nthree\r\n";
    world.write("a.py", text);
    let workspace = world.open().await;
    let diagnostics = found(&workspace, "a.py").await;
    let offers = workspace.code_actions(&world.definition.name, "a.py", &diagnostics[0]).await;
    let edits = only(offers).edits.unwrap();
    let [FileEdit::Edit { edits, .. }] = edits.as_slice() else { panic!("{edits:?}") };
    let fixed = apply_edits(text, edits).unwrap();
    assert_eq!(fixed, "one\r\nimport x\r\n  good_x\r\nthree\r\n");
    world.write("a.py", &fixed);
    assert_eq!(found(&workspace, "a.py").await, []);
}

// LSP-030
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_over_a_question_about_fixes_is_asked_again() {
    let world = World::new(script(
        json!({"faults": [{"on": "textDocument/codeAction", "starts": 1, "then": "crash"}]}),
    ));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    let diagnostics = found(&workspace, "a.py").await;
    let offers = workspace.code_actions(&world.definition.name, "a.py", &diagnostics[0]).await;
    assert!(only(offers).edits.is_some());
    assert_eq!(workspace.servers()[0].restarts, 1);
    let definition: &LanguageServerDefinition = &world.definition;
    assert_eq!(workspace.servers()[0].server, definition.name);
}
