//! What is decided, from what, and what is said about the rest.

use agents_domain::diagnostics::Severity;
use agents_domain::plan::{AwaitingKind, Phase};
use agents_domain::ports::language_servers::CodeActionOffer;
use serde_json::json;

use crate::world::*;

fn strategize(world: World) -> (Engine, agents_domain::plan::PhaseSummary) {
    let mut engine = Engine::new(world);
    let summary = engine.run(Phase::Strategize).unwrap();
    (engine, summary)
}

const F401: &str = "strategy/local/repo/local/ruff/F401";

// DEC-002, DEC-004, DEC-015, DEC-016, ruling 28
#[test]
fn a_group_becomes_one_decision_with_its_alternatives_and_the_facts_behind_it() {
    let world = World::new(
        &[("a.py", "import os\nimport sys\nsys.exit()\n"), ("b.py", "def f():\n    pass\nimport re\n")],
        vec![ruff()],
    );
    let (engine, summary) = strategize(world);
    assert_eq!(engine.drafts.len(), 1);
    insta::assert_json_snapshot!(engine.draft(F401));
    insta::assert_json_snapshot!("summary_of_a_strategy", summary);
}

// LSP-032, PLAN-012: Strategize reads.
#[test]
fn nothing_is_written() {
    let world = World::new(&[("a.py", "import os\n")], vec![ruff()]);
    let (engine, _) = strategize(world);
    assert_eq!(engine.world.text("a.py"), "import os\n");
    assert!(engine.log.iter().all(|entry| entry.starts_with("decide strategy/")));
}

// Ruling 28: basedpyright, most of whose actions suppress.
#[test]
fn nothing_is_suppressed_unless_a_person_says_so_and_that_is_said() {
    let lint = |files: &Files, path: &str| -> Vec<Found> {
        let at = lines(files, path).into_iter().filter(|(_, line)| line.contains("any"));
        at.map(|(line, content)| {
            let end = content.len() as u32;
            let ignore = |rule: &str| {
                let edit = edit((line, end), (line, end), &format!("  # pyright: ignore[{rule}]"));
                offer(&format!("Add `# pyright: ignore[{rule}]`"), false, vec![in_file(path, vec![edit])])
            };
            (
                diagnostic("reportAny", Severity::Warning, line, (0, 3), "Type is Any"),
                // It also offers what belongs to another finding at the same place.
                vec![ignore("reportOther"), ignore("reportAny")],
            )
        })
        .collect()
    };
    let world = World::new(&[("a.py", "any\n")], vec![server("local/basedpyright", ".py", lint)]);
    let (engine, summary) = strategize(world);
    let key = "strategy/local/repo/local/basedpyright/reportAny";
    assert_eq!(engine.options(key), ["Leave alone", "Add `# pyright: ignore[reportAny]`"]);
    assert_eq!(engine.chosen(key), "Leave alone");
    let draft = engine.draft(key);
    assert_eq!(draft.confidence, Some(0.8));
    assert!(draft.rationale.contains("One way to suppress is offered and no fix"), "{}", draft.rationale);
    assert_eq!(summary.headline, "1 finding of 1 rule in 1 file: 1 kind is left alone");
}

// Ruling 28: clangd gives two equal fixes on one diagnostic.
#[test]
fn two_equal_fixes_are_one_option() {
    let lint = |files: &Files, path: &str| -> Vec<Found> {
        let at = lines(files, path).into_iter().filter(|(_, line)| line.contains("prinf"));
        at.map(|(line, _)| {
            let fix = || vec![in_file(path, vec![edit((line, 0), (line, 5), "printf")])];
            let found = diagnostic("undeclared", Severity::Error, line, (0, 5), "no prinf");
            (
                found,
                vec![
                    offer("'printf' declared here", false, fix()),
                    offer("change 'prinf' to 'printf'", true, fix()),
                ],
            )
        })
        .collect()
    };
    let world = World::new(&[("a.c", "prinf(1);\nprinf(2);\n")], vec![server("local/clangd", ".c", lint)]);
    let (engine, _) = strategize(world);
    let key = "strategy/local/repo/local/clangd/undeclared";
    assert_eq!(engine.options(key), ["'printf' declared here", "Leave alone"]);
    assert_eq!(engine.chosen(key), "'printf' declared here");
    assert_eq!(engine.draft(key).confidence, Some(0.9));
}

fn with_offers(make: impl Fn(&str) -> Vec<CodeActionOffer> + Send + Sync + 'static) -> Server {
    server("local/s", ".txt", move |files, path| {
        let at = lines(files, path).into_iter().filter(|(_, line)| line.starts_with('x'));
        at.map(|(line, content)| {
            (diagnostic("R", Severity::Warning, line, (0, 1), "message"), make(&content))
        })
        .collect()
    })
}

fn put(title: &str, preferred: bool, text: &str) -> CodeActionOffer {
    offer(title, preferred, vec![in_file("a.txt", vec![edit((0, 0), (0, 1), text)])])
}

const R: &str = "strategy/local/repo/local/s/R";

#[test]
fn a_fix_without_a_title_has_a_name_all_the_same() {
    for title in ["", "  \n", "\u{200b}\u{feff}"] {
        let (engine, _) = strategize(World::new(
            &[("a.txt", "x\n")],
            vec![with_offers(move |_| vec![put(title, true, "a"), put("\tTwo\u{7}\n words", false, "b")])],
        ));
        assert_eq!(engine.options(R), ["Fix without a title", "Two words", "Leave alone"], "{title:?}");
        assert_eq!(engine.chosen(R), "Fix without a title");
    }
}

#[test]
fn what_is_proposed_is_the_only_preferred_fix_else_the_only_fix_else_nothing() {
    let table: [(&str, Vec<CodeActionOffer>, &str); 6] = [
        ("the preferred one of two", vec![put("A", false, "a"), put("B", true, "b")], "B"),
        ("the only one", vec![put("A", false, "a"), put("Ignore R for this line", true, "b")], "A"),
        ("two, none preferred", vec![put("A", false, "a"), put("B", false, "b")], "Leave alone"),
        ("two preferred", vec![put("A", true, "a"), put("B", true, "b")], "Leave alone"),
        ("only a way to suppress", vec![put("Ignore R for this line", true, "b")], "Leave alone"),
        (
            "two of one title",
            vec![put("Import `a.x`", false, "a"), put("Import `b.x`", false, "b")],
            "Leave alone",
        ),
    ];
    for (what, offers, expected) in table {
        let world = World::new(&[("a.txt", "x\n")], vec![with_offers(move |_| offers.clone())]);
        let (engine, _) = strategize(world);
        assert_eq!(engine.chosen(R), expected, "{what}");
    }
}

#[test]
fn an_option_counts_the_findings_that_offer_it() {
    let world = World::new(
        &[("a.txt", "x 1\nx 2\nx 3\n")],
        vec![with_offers(|line| match line {
            "x 2" => vec![put("Drop `b`", true, "b"), put("Other", false, "c")],
            "x 3" => vec![],
            _ => vec![put("Drop `a`", true, "a")],
        })],
    );
    let (engine, _) = strategize(world);
    assert_eq!(engine.options(R), ["Drop …", "Other", "Leave alone"]);
    let draft = engine.draft(R);
    assert_eq!(draft.chosen, 0);
    assert!(draft.rationale.contains("2 of 3 findings offer it"), "{}", draft.rationale);
    // 0.95 - 0.30 / 3 - 0.10
    assert_eq!(draft.confidence, Some(0.75));
}

#[test]
fn what_is_no_option_is_named_with_the_reason() {
    let command = |title: &str, reason: &str| CodeActionOffer {
        edits: None,
        unusable: Some(reason.to_owned()),
        ..put(title, true, "")
    };
    let mut source = put("Organize", true, "z");
    source.kind = Some("source.organizeImports".to_owned());
    let mut refactor = put("Extract", true, "y");
    refactor.kind = Some("refactor.extract".to_owned());
    let outside = offer("Elsewhere", true, vec![in_file("../b.txt", vec![edit((0, 0), (0, 0), "a")])]);
    let misfit = offer("Misfit", true, vec![in_file("a.txt", vec![edit((9, 0), (9, 1), "a")])]);
    let offers = vec![
        command("Install 'x'", "it only runs a command"),
        put("Fix all auto-fixable problems", true, "q"),
        source,
        refactor,
        outside,
        misfit,
        offer("Nothing", true, vec![in_file("a.txt", vec![])]),
    ];
    let world = World::new(&[("a.txt", "x\n")], vec![with_offers(move |_| offers.clone())]);
    let (engine, summary) = strategize(world);
    assert!(engine.drafts.is_empty());
    assert_eq!(summary.headline, "1 finding of 1 rule in 1 file: 1 kind has no usable fix");
    assert!(summary.lines[0].contains("nothing that can be used"), "{:?}", summary.lines);
}

#[test]
fn a_fix_that_edits_another_file_or_deletes_a_declaration_is_less_sure() {
    let lint = |_: &Files, path: &str| -> Vec<Found> {
        if path != "a.py" {
            return Vec::new();
        }
        let elsewhere = vec![in_file("b.py", vec![edit((0, 0), (0, 0), "x = 1\n")])];
        let deleting = vec![in_file("a.py", vec![edit((0, 0), (2, 0), "")])];
        vec![
            (diagnostic("A", Severity::Warning, 0, (4, 7), "a"), vec![offer("Export it", true, elsewhere)]),
            (diagnostic("B", Severity::Warning, 0, (4, 7), "b"), vec![offer("Clean up", true, deleting)]),
        ]
    };
    let files = [("a.py", "def old():\n    pass\n"), ("b.py", "y = 2\n")];
    let (engine, _) = strategize(World::new(&files, vec![server("local/s", ".py", lint)]));
    let a = engine.draft("strategy/local/repo/local/s/A");
    assert_eq!(a.confidence, Some(0.8));
    assert!(a.alternatives[0].description.as_ref().unwrap().contains("edits other files too"));
    let b = engine.draft("strategy/local/repo/local/s/B");
    assert_eq!(b.confidence, Some(0.65));
    assert!(b.rationale.contains("takes a declaration away"), "{}", b.rationale);
    assert_eq!(b.resources[0].symbol.as_deref(), Some("old"));
}

#[test]
fn the_worst_and_most_frequent_come_first() {
    let world = World::new(
        &[("a.txt", "one two two three\n")],
        vec![
            server("local/s", ".txt", word("ONE", Severity::Hint, "one", "1")),
            server("local/t", ".txt", word("TWO", Severity::Hint, "two", "2")),
            server("local/u", ".txt", word("THREE", Severity::Error, "three", "3")),
        ],
    );
    let (engine, _) = strategize(world);
    let rules: Vec<&str> = engine.drafts.iter().map(|d| d.key.rsplit('/').next().unwrap()).collect();
    assert_eq!(rules, ["THREE", "TWO", "ONE"]);
}

#[test]
fn arguments_narrow_what_is_looked_at() {
    let files = [("src/a.txt", "one two\n"), ("gen/b.txt", "one\n"), ("src/c.txt", "one\n")];
    let servers = || {
        vec![
            server("local/s", ".txt", word("ONE", Severity::Warning, "one", "1")),
            server("local/t", ".txt", word("TWO", Severity::Hint, "two", "2")),
        ]
    };
    let with = |arguments: serde_json::Value| {
        let mut engine = Engine::new(World::new(&files, servers()));
        engine.arguments = serde_json::from_value(arguments).unwrap();
        let summary = engine.run(Phase::Strategize).unwrap();
        (engine.drafts.iter().map(|d| (d.key.clone(), d.resources.len())).collect::<Vec<_>>(), summary)
    };
    let one = |n| ("strategy/local/repo/local/s/ONE".to_owned(), n);
    let (groups, _) = with(json!({"rules": ["ONE"]}));
    assert_eq!(groups, [one(3)]);
    let (groups, summary) = with(json!({"severity": "warning", "paths": "src/"}));
    assert_eq!(groups, [one(2)]);
    assert!(summary.lines.iter().any(|line| line.contains("Left out by the plan's arguments: 1 finding")));
    let (groups, summary) = with(json!({"rules": "ONE", "max_files": 2}));
    assert_eq!(groups, [one(2)]);
    assert!(summary.lines.iter().any(|line| line.contains("`max_files`")), "{:?}", summary.lines);
    let mut engine = Engine::new(World::new(&files, servers()));
    engine.arguments.insert("severity".to_owned(), json!("loud"));
    assert_eq!(engine.run(Phase::Strategize).unwrap_err().category, "actor");
}

// LSP-032, field notes: `None` is not `Some([])`.
#[test]
fn a_file_without_an_answer_is_not_called_clean() {
    let mut silent = server("local/ruff", ".py", unused_imports);
    silent.mute.insert("b.py".to_owned());
    let world = World::new(&[("a.py", "\n"), ("b.py", "import os\n")], vec![silent]);
    let (_, summary) = strategize(world);
    assert_eq!(summary.headline, "Nothing found in 1 file; 1 file not checked");
    assert_eq!(summary.lines, ["Not checked by local/ruff: 1 file of local/repo (no answer within 10 s)"]);
    assert_eq!(summary.facts["not_checked"][0]["paths"], json!(["b.py"]));
}

#[test]
fn a_server_that_dies_does_not_hide_what_the_other_found() {
    let mut dead = server("local/dead", ".py", unused_imports);
    dead.dies_after = 0;
    let files = [("a.py", "import os\n")];
    let (engine, summary) =
        strategize(World::new(&files, vec![dead, server("local/ruff", ".py", unused_imports)]));
    assert_eq!(engine.drafts.len(), 1);
    assert!(engine.asked.is_empty());
    assert!(summary.lines.iter().any(|line| line.starts_with("Not checked by local/dead")));
}

#[test]
fn a_server_that_hangs_is_not_asked_about_every_file() {
    let mut hung = server("local/hung", ".py", unused_imports);
    let files: Vec<(String, String)> = (0..1000).map(|n| (format!("{n:04}.py"), String::new())).collect();
    hung.mute = files.iter().map(|(path, _)| path.clone()).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut engine = Engine::new(World::new(&files, vec![hung]));
    engine.replies = vec!["Go on without it".to_owned()];
    let summary = engine.run(Phase::Strategize).unwrap();
    assert_eq!(summary.headline, "Nothing was checked; 1000 files not checked");
    // Twice, as the look is made again after the answer.
    assert_eq!(engine.world.languages.asked.load(std::sync::atomic::Ordering::SeqCst), 2 * 128);
}

// LSP-031: never stuck.
#[test]
fn when_no_server_answers_a_person_is_asked_and_goes_on_or_tries_again() {
    let mut dead = server("local/ruff", ".py", unused_imports);
    dead.dies_after = 0;
    let mut engine = Engine::new(World::new(&[("a.py", "import os\n")], vec![dead]));
    engine.replies = vec!["try again".to_owned(), "2".to_owned()];
    let summary = engine.run(Phase::Strategize).unwrap();
    assert_eq!(engine.asked.len(), 2);
    let (kind, question, options) = &engine.asked[0];
    assert_eq!(*kind, AwaitingKind::LanguageServer);
    assert!(question.contains("local/ruff: exited with status 1"), "{question}");
    assert_eq!(options, &["Try again", "Go on without it"]);
    assert_eq!(summary.headline, "Nothing was checked; 1 file not checked");
    let done = engine.run(Phase::Execute).unwrap();
    assert_eq!(done.headline, "There was nothing to fix");
}

#[test]
fn without_a_registered_server_the_question_says_what_to_register() {
    let files = [("a.py", ""), ("b.py", ""), ("c.rs", ""), ("what", "")];
    let mut engine = Engine::new(World::new(&files, Vec::new()));
    engine.replies = vec!["go on".to_owned()];
    engine.run(Phase::Strategize).unwrap();
    let question = &engine.asked[0].1;
    assert!(question.contains("(python: 2, rust: 1, unknown language: 1)"), "{question}");
    assert!(question.contains("agents lsp add"), "{question}");
}

#[test]
fn nothing_to_look_at_is_no_question() {
    let (engine, summary) = strategize(World::new(&[], Vec::new()));
    assert!(engine.asked.is_empty());
    assert_eq!(summary.headline, "Nothing was checked");
}

#[test]
fn untouchable_and_large_files_are_named_and_left_alone() {
    let large = "x".repeat(5 * 1024 * 1024);
    let files = [("a.py", "import os\n"), ("big.py", large.as_str()), ("link.py", "import os\n")];
    let mut world = World::new(&files, vec![ruff()]);
    world.workspaces[0].untouchable = vec![("link.py".to_owned(), "a symbolic link".to_owned())];
    let (engine, summary) = strategize(world);
    assert_eq!(engine.draft(F401).resources.len(), 1);
    assert!(summary.lines.contains(&"Not looked at: 1 file, a symbolic link (link.py)".to_owned()));
    assert!(summary.lines.contains(&"Not looked at: 1 file, larger than 4 MiB (big.py)".to_owned()));
}

#[test]
fn a_server_that_tells_no_fixes_is_said() {
    let mut mute = server("local/ruff", ".py", unused_imports);
    mute.no_actions = true;
    let (engine, summary) = strategize(World::new(&[("a.py", "import os\n")], vec![mute]));
    assert!(engine.drafts.is_empty());
    assert!(
        summary.lines[0].contains("the server did not tell (it has no code actions)"),
        "{:?}",
        summary.lines
    );
}

#[test]
fn a_large_group_is_asked_about_in_part_and_names_some_of_its_places() {
    let text: String = (0..10).map(|n| format!("import m{n}\n")).collect();
    let files: Vec<(String, &str)> = (0..100).map(|n| (format!("{n:03}.py"), text.as_str())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let world = World::new(&files, vec![ruff()]);
    let (engine, _) = strategize(world);
    let draft = engine.draft(F401);
    assert!(draft.question.contains("the 1000 findings"), "{}", draft.question);
    assert_eq!(draft.resources.len(), 200);
    assert!(draft.rationale.contains("400 of 1000 findings were asked about"), "{}", draft.rationale);
    // 0.95, less 0.05 for the number of files and 0.05 for those not asked about.
    assert_eq!(draft.confidence, Some(0.85));
}

// PLAN-063
#[test]
fn a_long_look_shows_progress_and_stops_when_asked_to() {
    let files: Vec<(String, &str)> = (0..300).map(|n| (format!("{n:03}.py"), "import os\n")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let world = World::new(&files, vec![ruff()]);
    world.stop_in.store(3, std::sync::atomic::Ordering::SeqCst);
    let (engine, _) = strategize(world);
    // The step that was cut short, the one that did it again, and the one that summed up.
    assert_eq!(engine.steps, 3);
    assert_eq!(engine.drafts.len(), 1);
    let progress = engine.world.progress.lock().unwrap();
    assert!(progress.iter().any(|p| p.done == 64 && p.total == Some(300)));
}
