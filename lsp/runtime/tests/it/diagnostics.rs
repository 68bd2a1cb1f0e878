//! Pull and push: what counts as the server's word, and what does not.

use std::time::{Duration, Instant};

use agents_domain::diagnostics::Severity;
use agents_domain::language_server::Capability;
use agents_domain::ports::language_servers::{FileEvent, FileEventKind};
use serde_json::{Value, json};

use crate::harness::{World, ask, bad_rule, fake, found, messages, problem, script};

fn changed(path: &str) -> [FileEvent; 1] {
    [FileEvent { path: path.into(), kind: FileEventKind::Changed }]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diagnostic_keeps_what_the_server_sent_and_a_file_is_opened_before_it_is_asked_about() {
    let world = World::new(script(json!({})));
    world.write("a.py", "x\n  bad_x\n");
    let workspace = world.open().await;
    let one = found(&workspace, "a.py").await.remove(0);
    assert_eq!((one.severity, one.rule(), one.source.as_deref()), (Severity::Warning, "F1", Some("Fake")));
    assert_eq!(one.raw["data"], json!({"id": 1}));
    let methods: Vec<Value> = world.log().iter().map(|entry| entry["in"]["method"].clone()).collect();
    let position = |method: &str| methods.iter().position(|one| one == method).unwrap();
    assert!(position("initialized") < position("textDocument/didOpen"));
    assert!(position("textDocument/didOpen") < position("textDocument/diagnostic"));
    assert_eq!(world.got("textDocument/didOpen")[0]["params"]["textDocument"]["languageId"], "python");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_file_and_one_without_an_answer_differ() {
    // This server publishes nothing for clean files.
    let mut world = World::new(script(json!({"diagnostics": "push", "publish_clean": false})));
    world.request_timeout = Duration::from_millis(400);
    world.write("clean.py", "x\n");
    world.write("bad.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "bad.py").await.len(), 1);
    let problem = problem(&workspace, "clean.py").await;
    assert!(problem.contains("published nothing for the file"), "{problem}");
    for mode in ["push", "pull", "pull_dynamic"] {
        let world = World::new(script(json!({ "diagnostics": mode })));
        world.write("clean.py", "x\n");
        assert_eq!(found(&world.open().await, "clean.py").await, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pulls_registered_after_the_start_are_used_with_their_identifier() {
    let world = World::new(script(json!({"diagnostics": "pull_dynamic"})));
    world.write("a.py", "bad_x\n");
    assert_eq!(found(&world.open().await, "a.py").await.len(), 1);
    assert_eq!(world.got("textDocument/diagnostic")[0]["params"]["identifier"], "fake");
}

#[tokio::test(flavor = "multi_thread")]
async fn pulls_answered_through_partial_results_are_put_together() {
    let world = World::new(script(json!({ "partial": true })));
    world.write("a.py", "bad_x bad_y\n");
    assert_eq!(messages(&found(&world.open().await, "a.py").await), ["bad x", "bad y"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_pull_says_about_another_file_is_told_with_that_file_once() {
    let world = World::new(script(json!({ "related": true })));
    world.write("a.py", "bad_x\n");
    world.write("b.py", "bad_y\n");
    let workspace = world.open().await;
    for _ in 0..2 {
        assert_eq!(messages(&found(&workspace, "a.py").await), ["bad x"]);
        assert_eq!(messages(&found(&workspace, "b.py").await), ["bad y"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_report_means_the_last_one() {
    let world = World::new(script(json!({ "unchanged": true })));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    for _ in 0..3 {
        assert_eq!(found(&workspace, "a.py").await.len(), 1);
    }
    let pulls = world.got("textDocument/diagnostic");
    assert_eq!(pulls[0]["params"].get("previousResultId"), None);
    assert!(pulls[2]["params"]["previousResultId"].is_string());
    world.write("a.py", "x\n");
    assert_eq!(found(&workspace, "a.py").await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_to_pull_again_is_pulled_again() {
    let mut late = bad_rule();
    late["late"] = json!(true);
    let world = World::new(json!({"rules": [late], "refresh": true, "faults": [
        // The refresh must be there before the answer counts, else nobody could know.
        {"on": "textDocument/diagnostic", "nth": 1, "then": {"send": {"id": "r", "method": "workspace/diagnostic/refresh"}}},
    ]}));
    world.write("a.py", "bad_x\n");
    assert_eq!(found(&world.open().await, "a.py").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_that_mean_ask_again_are_asked_again() {
    for (code, data) in
        [(-32801, Value::Null), (-32800, Value::Null), (-32802, json!({"retriggerRequest": true}))]
    {
        let world = World::new(script(json!({"faults": [
            {"on": "textDocument/diagnostic", "nth": 1, "then": {"error": [code, "busy", data]}},
            {"on": "textDocument/diagnostic", "nth": 2, "then": {"error": [code, "busy", data]}},
            {"on": "textDocument/codeAction", "nth": 1, "then": {"error": [code, "busy", data]}},
        ]})));
        world.write("a.py", "bad_x\n");
        let workspace = world.open().await;
        let diagnostics = found(&workspace, "a.py").await;
        assert_eq!(diagnostics.len(), 1, "{code}");
        let offers = workspace.code_actions(&world.definition.name, "a.py", &diagnostics[0]).await.unwrap();
        assert_eq!(offers.len(), 1, "{code}");
    }
    for (code, data) in [(-32802, json!({"retriggerRequest": false})), (-32603, Value::Null)] {
        let world = World::new(script(
            json!({"faults": [{"on": "textDocument/diagnostic", "then": {"error": [code, "no way", data]}}]}),
        ));
        world.write("a.py", "bad_x\n");
        let problem = problem(&world.open().await, "a.py").await;
        assert!(problem.contains("no way"), "{problem}");
        assert_eq!(world.got("textDocument/diagnostic").len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_empty_push_is_not_taken_for_clean_while_the_server_reports_progress() {
    for versions in [false, true] {
        let world = World::new(script(json!({
            "diagnostics": "push", "early_empty_ms": 500, "progress": true, "versions": versions,
        })));
        world.write("a.py", "bad_x\n");
        world.write("b.py", "bad_y\n");
        let answers = world.open().await.diagnostics(&["a.py".into(), "b.py".into()]).await;
        for (path, found) in answers {
            assert_eq!(found[0].diagnostics.as_ref().map(Vec::len), Some(1), "{path} {versions}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_that_never_ends_costs_the_time_limit_not_more() {
    let mut world = World::new(script(json!({"diagnostics": "push", "endless_progress": true})));
    world.request_timeout = Duration::from_millis(500);
    world.write("bad.py", "bad_x\n");
    world.write("clean.py", "x\n");
    let begun = Instant::now();
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "bad.py").await.len(), 1);
    let problem = problem(&workspace, "clean.py").await;
    assert!(problem.contains("still busy with \u{201c}Never ending\u{201d}"), "{problem}");
    assert!(begun.elapsed() < Duration::from_secs(15));
}

// LSP-027
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_is_sent_with_the_next_version_and_judged_anew() {
    for (mode, versions) in [("push", false), ("push", true), ("pull", false)] {
        let world = World::new(script(json!({"diagnostics": mode, "versions": versions})));
        world.write("a.py", "bad_x bad_y\n");
        let workspace = world.open().await;
        assert_eq!(found(&workspace, "a.py").await.len(), 2);
        world.write("a.py", "bad_x\n");
        workspace.files_changed(&changed("a.py")).await;
        assert_eq!(messages(&found(&workspace, "a.py").await), ["bad x"], "{mode} {versions}");
        // Told or not, the text on disk is what counts.
        world.write("a.py", "x\n");
        assert_eq!(found(&workspace, "a.py").await, [], "{mode} {versions}");
        let versions: Vec<Value> = world
            .got("textDocument/didChange")
            .iter()
            .map(|one| one["params"]["textDocument"]["version"].clone())
            .collect();
        assert_eq!(versions, [2, 3]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_repeat_an_unchanged_list_still_gives_an_answer() {
    let world = World::new(script(json!({"diagnostics": "push", "repeat": false})));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    world.write("a.py", "bad_x\n\n");
    let begun = Instant::now();
    assert_eq!(messages(&found(&workspace, "a.py").await), ["bad x"]);
    assert!(begun.elapsed() < Duration::from_secs(15), "the silence of a resting server is enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_changes_gets_the_file_opened_anew() {
    let world =
        World::new(script(json!({"capabilities": {"textDocumentSync": {"openClose": true, "change": 0}}})));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    world.write("a.py", "x\n");
    assert_eq!(found(&workspace, "a.py").await, []);
    assert_eq!(world.got("textDocument/didChange").len(), 0);
    let opened = world.got("textDocument/didOpen");
    assert_eq!(
        opened.iter().map(|one| &one["params"]["textDocument"]["version"]).collect::<Vec<_>>(),
        [1, 2]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn saves_are_told_to_servers_that_want_them() {
    for (save, count, text) in [
        (json!({"includeText": true}), 1, json!("x\n")),
        (json!(true), 1, Value::Null),
        (Value::Null, 0, Value::Null),
    ] {
        let world = World::new(script(
            json!({"capabilities": {"textDocumentSync": {"openClose": true, "change": 2, "save": save}}}),
        ));
        world.write("a.py", "bad_x\n");
        let workspace = world.open().await;
        assert_eq!(found(&workspace, "a.py").await.len(), 1);
        world.write("a.py", "x\n");
        assert_eq!(found(&workspace, "a.py").await, []);
        let saved = world.got("textDocument/didSave");
        assert_eq!(saved.len(), count, "{save}");
        assert!(saved.iter().all(|one| one["params"]["text"] == text));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_on_disk_reach_the_watchers_that_asked_for_them() {
    let world = World::new(script(
        json!({"after_initialized": [{"id": "w", "method": "client/registerCapability", "params": {
            "registrations": [{"id": "w", "method": "workspace/didChangeWatchedFiles", "registerOptions": {
                "watchers": [{"globPattern": "**/*.toml"}, {"globPattern": "**/*.py", "kind": 4}],
            }}],
        }}]}),
    ));
    world.write("a.py", "bad_x\n");
    let workspace = world.open().await;
    assert_eq!(found(&workspace, "a.py").await.len(), 1);
    world.answer_to("w");
    std::fs::remove_file(world.root().join("a.py")).unwrap();
    let event = |path: &str, kind| FileEvent { path: path.into(), kind };
    workspace
        .files_changed(&[
            event("conf/x.toml", FileEventKind::Created),
            event("b.py", FileEventKind::Changed),
            event("a.py", FileEventKind::Deleted),
            event("../out.toml", FileEventKind::Changed),
        ])
        .await;
    assert!(problem(&workspace, "a.py").await.contains("No such file"));
    workspace.close().await;
    let told = world.got("workspace/didChangeWatchedFiles");
    assert_eq!(told.len(), 1);
    let changes: Vec<(bool, u64)> = told[0]["params"]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| {
            (change["uri"].as_str().unwrap().ends_with("/conf/x.toml"), change["type"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(changes, [(true, 1), (false, 3)]);
    assert_eq!(world.got("textDocument/didClose").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_no_server_can_be_shown_are_named_and_harm_nothing() {
    let world = World::new(script(json!({})));
    world.write("latin.py", b"bad_x = '\xe9'\n");
    world.write("huge.py", "bad_x\n".repeat(400_000));
    world.write("good.py", "bad_x\n");
    let paths: Vec<String> =
        ["latin.py", "huge.py", "good.py", "none.py", "../good.py", "notes"].map(String::from).into();
    let answers = world.open().await.diagnostics(&paths).await;
    assert_eq!(answers.iter().map(|(path, _)| path).collect::<Vec<_>>(), paths.iter().collect::<Vec<_>>());
    let problem = |at: usize| answers[at].1[0].problem.clone().unwrap_or_default();
    assert!(problem(0).contains("not UTF-8"), "{}", problem(0));
    assert!(problem(1).contains("has 2400000 bytes"), "{}", problem(1));
    assert_eq!(answers[2].1[0].diagnostics.as_ref().map(Vec::len), Some(1));
    assert!(problem(3).contains("No such file"), "{}", problem(3));
    assert!(answers[4].1.is_empty() && answers[5].1.is_empty(), "no server serves them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_files_are_answered_in_order_with_a_bounded_number_open() {
    for mode in ["pull", "push"] {
        let world = World::new(script(json!({ "diagnostics": mode })));
        let paths: Vec<String> = (0..1000).map(|at| format!("pkg{}/m{at}.py", at % 7)).collect();
        for (at, path) in paths.iter().enumerate() {
            world.write(path, if at % 10 == 0 { "bad_x\n" } else { "x\n" });
        }
        let workspace = world.open().await;
        let answers = workspace.diagnostics(&paths).await;
        for (at, (path, found)) in answers.iter().enumerate() {
            assert_eq!(path, &paths[at]);
            let count = found[0]
                .diagnostics
                .as_ref()
                .unwrap_or_else(|| panic!("{path}: {:?}", found[0].problem))
                .len();
            assert_eq!(count, usize::from(at % 10 == 0), "{mode} {path}");
        }
        workspace.close().await;
        let (mut open, mut most) = (0usize, 0);
        for entry in world.log() {
            match entry["in"]["method"].as_str() {
                Some("textDocument/didOpen") => open += 1,
                Some("textDocument/didClose") => open -= 1,
                _ => {}
            }
            most = most.max(open);
        }
        assert!(most <= 129, "{most} documents were open at once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_closed_for_room_is_opened_again_with_a_later_version() {
    let world = World::new(script(json!({})));
    let paths: Vec<String> = (0..140).map(|at| format!("m{at}.py")).collect();
    paths.iter().for_each(|path| world.write(path, "bad_x\n"));
    let workspace = world.open().await;
    for path in paths.iter().chain([&paths[0]]) {
        assert_eq!(found(&workspace, path).await.len(), 1);
    }
    let opened: Vec<Value> = world
        .got("textDocument/didOpen")
        .iter()
        .map(|one| one["params"]["textDocument"].clone())
        .filter(|document| document["uri"].as_str().unwrap().ends_with("/m0.py"))
        .map(|document| document["version"].clone())
        .collect();
    assert_eq!(opened, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_answer_in_order_of_preference_and_a_dead_one_costs_only_its_own_answers() {
    let world = World::new(script(json!({})));
    world.write("a.py", "bad_x worse_y\n");
    let other =
        fake(world.folder.path(), "other", json!({"rules": [{"match": "worse_\\w+", "message": "worse"}]}));
    let mut missing = fake(world.folder.path(), "missing", json!({}));
    missing.command = "no-such-language-server".into();
    let mut silent = fake(world.folder.path(), "silent", json!({}));
    silent.capabilities = Some(vec![Capability::Hover]);
    let workspace = world.open_with(vec![missing, other.clone(), silent, world.definition.clone()]).await;
    let names: Vec<String> = workspace.servers_for("a.py").iter().map(ToString::to_string).collect();
    assert_eq!(names, ["local/missing", "local/other", "local/silent", "local/fake"]);
    assert!(workspace.servers_for("a.rs").is_empty());
    let (_, answers) = workspace.diagnostics(&["a.py".into()]).await.remove(0);
    assert_eq!(answers.len(), 3, "one not lent for diagnostics is not asked");
    assert!(answers[0].problem.as_ref().unwrap().contains("`no-such-language-server` is not on PATH"));
    assert_eq!(messages(answers[1].diagnostics.as_ref().unwrap()), ["worse"]);
    assert_eq!(messages(answers[2].diagnostics.as_ref().unwrap()), ["bad x"]);
    let diagnostic = &answers[1].diagnostics.as_ref().unwrap()[0];
    let error =
        workspace.code_actions(&"local/silent".parse().unwrap(), "a.py", diagnostic).await.unwrap_err();
    assert!(error.contains("without the capability `code_actions`"), "{error}");
    let error = workspace.code_actions(&"local/none".parse().unwrap(), "a.py", diagnostic).await.unwrap_err();
    assert!(error.contains("none of this workspace's servers"), "{error}");
}

// LSP-020
#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_a_file_goes_to_the_server_of_its_language() {
    let world = World::new(script(json!({})));
    world.write("a.py", "bad_x\n");
    world.write("a.rs", "bad_x\n");
    let rule = json!({"match": "bad_\\w+", "message": "rusty"});
    let mut rust = fake(world.folder.path(), "rust", json!({ "rules": [rule] }));
    rust.languages = vec!["rust".into()];
    let workspace = world.open_with(vec![world.definition.clone(), rust]).await;
    for (path, server, message) in [("a.py", "local/fake", "bad x"), ("a.rs", "local/rust", "rusty")] {
        let answer = ask(&workspace, path).await;
        assert_eq!(answer.server.to_string(), server);
        assert_eq!(messages(&answer.diagnostics.unwrap()), [message]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_is_asked_a_few_times_not_a_hundred() {
    for mode in ["pull", "none"] {
        let mut world = World::new(script(
            json!({"diagnostics": mode, "faults": [{"on": "textDocument/diagnostic", "then": "hang"}]}),
        ));
        world.request_timeout = Duration::from_millis(300);
        let paths: Vec<String> = (0..300).map(|at| format!("m{at}.py")).collect();
        paths.iter().for_each(|path| world.write(path, "bad_x\n"));
        let workspace = world.open().await;
        let begun = Instant::now();
        let answers = workspace.diagnostics(&paths).await;
        assert!(begun.elapsed() < Duration::from_secs(15), "{mode}: {:?}", begun.elapsed());
        assert!(answers.iter().all(|(_, found)| found[0].diagnostics.is_none()));
        let last = answers[299].1[0].problem.as_ref().unwrap();
        assert!(last.contains("was not asked"), "{last}");
        assert_eq!(workspace.servers()[0].restarts, 0, "it answers other questions");
        // A later call gives it another chance.
        assert!(!ask(&workspace, "m299.py").await.problem.unwrap().contains("was not asked"));
    }
}
