use std::collections::BTreeMap;

use proptest::prelude::*;
use ulid::Ulid;

use super::*;

fn invariant(n: u8, scope: Scope, text: &str) -> Invariant {
    Invariant {
        invariant_id: InvariantId::from_ulid(Ulid::from(u128::from(n))),
        scope,
        target: None,
        text: text.to_owned(),
        non_overridable: false,
        created_at: Timestamp::from_micros(i64::from(n)),
    }
}

fn texts(reconciled: &Reconciled) -> Vec<&str> {
    reconciled.effective.iter().map(|i| i.text.as_str()).collect()
}

fn forbidden(paths: &[&str]) -> Option<Check> {
    let paths = paths.iter().map(|p| (*p).to_owned()).collect();
    Some(Check::of(Rule::ForbiddenPaths { paths }))
}

// INV-007, MS-320-8
#[test]
fn of_two_that_contradict_the_narrower_one_holds_for_every_pair_of_scopes() {
    for (forbid, allow) in [
        ("Never change files under vendor/", "You may change files under vendor/"),
        ("Always use the shared pool", "Never use the shared pool"),
        ("At most 10 changed files", "at most 99 changed files"),
    ] {
        for one in Scope::ALL {
            for other in Scope::ALL {
                let all = [invariant(1, one, forbid), invariant(2, other, allow)];
                let reconciled = reconcile(&all);
                assert_eq!(reconciled.problem(&all), None);
                if one == other {
                    assert_eq!(texts(&reconciled), [forbid], "{one:?}: the stricter or first one");
                } else {
                    let winner = if one > other { forbid } else { allow };
                    assert_eq!(texts(&reconciled), [winner], "{one:?} against {other:?}");
                }
                assert_eq!(reconciled.set_aside[0].why, Why::Overridden);
            }
        }
    }
}

// INV-008
#[test]
fn a_global_one_that_may_not_be_overridden_wins_and_elsewhere_the_flag_says_nothing() {
    for scope in Scope::ALL {
        let mut fixed = invariant(1, Scope::Global, "Never change files under vendor/");
        fixed.non_overridable = true;
        let all = [fixed, invariant(2, scope, "You may change files under vendor/")];
        assert_eq!(texts(&reconcile(&all)), ["Never change files under vendor/"], "{scope:?}");
    }
    let mut flagged = invariant(1, Scope::Project, "Always log");
    flagged.non_overridable = true;
    let all = [flagged, invariant(2, Scope::Plan, "Never log")];
    assert_eq!(texts(&reconcile(&all)), ["Never log"]);
}

// INV-007, INV-010
#[test]
fn what_does_not_contradict_holds_side_by_side_and_nothing_twice() {
    let all = [
        invariant(1, Scope::Plan, "Keep public names."),
        invariant(2, Scope::Global, "keep  PUBLIC names"),
        invariant(3, Scope::Global, "Never change files under vendor/"),
        invariant(4, Scope::Project, "Do not touch `vendor/`"),
        invariant(5, Scope::Action, "Mock the network"),
    ];
    let reconciled = reconcile(&all);
    assert_eq!(texts(&reconciled), ["Do not touch `vendor/`", "Mock the network", "Keep public names."]);
    assert!(reconciled.set_aside.iter().all(|s| s.why == Why::Duplicate));
}

#[test]
fn a_wrong_answer_of_a_reconciler_is_found() {
    let mut fixed = invariant(1, Scope::Global, "Always log");
    fixed.non_overridable = true;
    let other = invariant(2, Scope::Plan, "Never log");
    let all = [fixed.clone(), other.clone()];
    let aside = |invariant: &Invariant, by: &Invariant| SetAside {
        invariant: invariant.clone(),
        by: by.invariant_id,
        why: Why::Overridden,
        reason: String::new(),
    };
    let problem = |effective: Vec<Invariant>, set_aside| Reconciled { effective, set_aside }.problem(&all);
    assert!(problem(vec![fixed.clone()], vec![aside(&other, &fixed)]).is_none());
    assert!(problem(vec![other.clone()], vec![aside(&fixed, &other)]).unwrap().contains("overridden"));
    assert!(problem(vec![fixed.clone()], vec![]).unwrap().contains("every invariant"));
    assert!(problem(vec![fixed.clone(), fixed.clone()], vec![aside(&other, &fixed)]).is_some());
    assert!(
        problem(vec![], vec![aside(&other, &fixed), aside(&fixed, &other)]).unwrap().contains("in force")
    );
}

#[test]
fn sentences_of_the_documented_forms_are_read() {
    let text =
        |text: &str| Some(Check::of(Rule::ForbiddenText { pattern: TextPattern::Literal(text.to_owned()) }));
    let cases = [
        ("Never change files under vendor/.", forbidden(&["vendor/"])),
        (
            "do not modify anything in src/gen and third_party/, or docs/",
            forbidden(&["docs/", "src/gen", "third_party/"]),
        ),
        ("Don't touch `Cargo.lock`", forbidden(&["Cargo.lock"])),
        ("do not write to *.sql", forbidden(&["*.sql"])),
        ("vendor/ must not be changed", forbidden(&["vendor/"])),
        ("No print( in added lines", text("print(")),
        ("never add \"TODO: later\" to new lines", text("TODO: later")),
        ("added lines must not contain `dbg!`", text("dbg!")),
        ("At most 200 changed lines", Some(Check::of(Rule::MaxChangedLines { lines: 200 }))),
        ("change no more than 3 files", Some(Check::of(Rule::MaxChangedFiles { files: 3 }))),
        (
            "Do not use tool builtin/run-command",
            Some(Check::of(Rule::ForbiddenTool { tool: "builtin/run-command".into() })),
        ),
        (
            "Validation local/tests must pass",
            Some(Check::of(Rule::RequiredValidation { validation: "local/tests".into() })),
        ),
        ("forbid-paths: vendor, *.lock", forbidden(&["*.lock", "vendor"])),
        ("max-changed-lines: 5", Some(Check::of(Rule::MaxChangedLines { lines: 5 }))),
        (
            "Any change to database migration files requires explicit human approval",
            Some(Check::of(Rule::HumanApproval {
                paths: Vec::new(),
                words: vec!["database".into(), "migration".into()],
            })),
        ),
        (
            "Changes to files under migrations/ need human approval",
            Some(Check::of(Rule::HumanApproval { paths: vec!["migrations/".into()], words: Vec::new() })),
        ),
    ];
    for (sentence, expected) in cases {
        assert_eq!(extract(sentence), expected, "{sentence}");
        assert_eq!(problem(sentence), None, "{sentence}");
    }
}

#[test]
fn a_sentence_that_nearly_fits_is_not_read() {
    for sentence in [
        "Do not touch generated files",
        "Never change files under pressure",
        "Never change files under vendor/ unless asked",
        "Never change files under vendor/ and tests",
        "Do not change public names",
        "Do not touch and/or change anything",
        "Functions have at most 100 lines",
        "At most 100 lines",
        "At most 100 changed lines per file",
        "No new lines",
        "Do not use tools",
        "All tests must pass",
        "All public APIs must maintain backward compatibility",
        "Never change files under ../elsewhere/",
        "Everything may be changed",
        "See https://example.com/ must not be changed",
    ] {
        assert_eq!(extract(sentence), None, "{sentence}");
    }
}

#[test]
fn a_key_with_a_value_that_does_not_fit_is_a_problem() {
    for (text, says) in [
        ("max-changed-lines: many", "whole number"),
        ("forbid-path: vendor/", "forbid-paths"),
        ("forbid-text:", "missing"),
        ("forbid-text: /(/", "regular expression"),
        ("forbid-paths: ../x", "path patterns"),
    ] {
        assert_eq!(extract(text), None);
        assert!(problem(text).unwrap().contains(says), "{text}: {:?}", problem(text));
    }
    assert_eq!(problem("Note: keep names"), None);
}

#[test]
fn patterns_cover_what_gitignore_would() {
    for (pattern, path, expected) in [
        ("vendor/", "vendor/a.py", true),
        ("vendor/", "src/vendor/a.py", true),
        ("vendor/", "vendor", false),
        ("vendor", "vendor", true),
        ("/vendor", "src/vendor/a.py", false),
        ("vendor/**", "vendor/x/a.py", true),
        ("vendor/**", "vendors/a.py", false),
        ("src/gen", "src/gen/deep/a.py", true),
        ("src/gen", "x/src/gen/a.py", false),
        ("*.lock", "a/b/poetry.lock", true),
        ("src/**/gen/*.py", "src/gen/a.py", true),
        ("src/**/gen/*.py", "src/a/b/gen/a.py", true),
        ("src/*.py", "src/a/b.py", false),
        ("a?c", "abc", true),
        ("**", "x/y", true),
        ("", "x", false),
    ] {
        assert_eq!(covers(pattern, path), expected, "{pattern} on {path}");
    }
}

// INV-015
#[test]
fn a_write_is_checked_against_each_rule() {
    let line = |line, text: &str| AddedLine { line, text: text.to_owned() };
    let files = [Touched {
        path: "src/a.py".into(),
        old_path: Some("vendor/a.py".into()),
        added: vec![line(3, "print(1)")],
    }];
    let validations = BTreeMap::from([("local/tests".to_owned(), false)]);
    let attempt = Attempt {
        tool: Some("builtin/apply-edits"),
        files: &files,
        totals: Totals { lines: 11, files: 2 },
        validations: Some(&validations),
    };
    for (sentence, evidence) in [
        ("Never change files under vendor/", Some("`vendor/a.py` would be changed")),
        ("You may change files under vendor/", None),
        ("Never change files under docs/", None),
        ("no print( in added lines", Some("`print(` in line 3 of `src/a.py`")),
        (r"no /print\(\d/ in added lines", Some(r"/print\(\d/ in line 3 of `src/a.py`")),
        ("at most 10 changed lines", Some("11 changed lines")),
        ("at most 11 changed lines", None),
        ("at most 1 changed files", Some("2 changed files")),
        ("do not use tool builtin/apply-edits", Some("tool `builtin/apply-edits` would be used")),
        ("validation local/tests must pass", Some("validation `local/tests` failed")),
        ("validation local/lint must pass", Some("validation `local/lint` was not run")),
    ] {
        let found = extract(sentence).unwrap().violated_by(&attempt).map(|f| f.evidence);
        assert_eq!(found.as_deref(), evidence, "{sentence}");
    }
}

// PROF-027
#[test]
fn approval_is_wanted_by_path_and_by_word() {
    let wants = |sentence: &str, texts: &[&str], paths: &[&str]| {
        extract(sentence).unwrap().wants_approval(texts, paths)
    };
    let migrations = "Any change to database migration files requires explicit human approval";
    assert!(wants(migrations, &["Create Alembic migration for users?"], &[]));
    assert!(!wants(migrations, &["Rename a local variable?"], &["src/a.py"]));
    let auth = "Changes to authentication or authorization logic require security review";
    assert!(wants(auth, &["What about this?"], &["src/auth/login.py"]));
    assert!(wants("require-approval: migrations/", &[], &["migrations/1.sql"]));
    assert!(!wants("require-approval: migrations/", &["migrations"], &["src/a.py"]));
    assert!(wants("Every decision needs human approval", &[], &[]));
}

/// Words that sentences of the grammar are made of, and some that are not.
const WORDS: &[&str] = &[
    "never",
    "do",
    "not",
    "change",
    "files",
    "under",
    "vendor/",
    "and",
    "or",
    ",",
    "at",
    "most",
    "10",
    "changed",
    "lines",
    "no",
    "print(",
    "in",
    "added",
    "use",
    "tool",
    "x/y",
    "validation",
    "must",
    "pass",
    "unless",
    "`a b`",
    "requires",
    "human",
    "approval",
    "any",
    "to",
    ".",
    "forbid-paths:",
    "é",
    "\"",
    "'",
];

proptest! {
    #[test]
    fn nothing_makes_the_reader_panic(text in "\\PC{0,80}") {
        let _ = (extract(&text), problem(&text), normalised(&text));
    }

    #[test]
    fn words_in_any_order_make_no_panic_and_no_reading_beyond_the_sentence(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..10),
    ) {
        let text = words.join(" ");
        let read = extract(&text);
        if let Some(check) = &read && !text.starts_with("forbid-paths") {
            // A sentence with a condition after it is another sentence, and is not read as if it had none.
            let longer = format!("{} unless somebody asks", text.trim_end_matches(['.', ' ']));
            prop_assert_eq!(extract(&longer), None, "{} read as {:?}", text, check);
        }
    }

    #[test]
    fn patterns_never_panic_and_a_file_is_covered_by_its_own_name(path in "[a-z.]{1,5}(/[a-z.]{1,5}){0,4}", pattern in "[a-z*?/.]{0,12}") {
        let _ = covers(&pattern, &path);
        let anchored = format!("/{path}");
        prop_assert!(covers(&anchored, &path));
    }

    #[test]
    fn reconciling_accounts_for_each_and_is_the_same_in_any_order(
        picks in prop::collection::vec((0usize..4, 0usize..8, any::<bool>()), 0..12),
        seed in any::<u64>(),
    ) {
        let sentences = [
            "Never change files under a/", "You may change files under a/", "At most 3 changed files",
            "At most 4 changed files", "Always log", "Never log", "never LOG.", "Keep names",
        ];
        let mut all: Vec<Invariant> = picks.iter().enumerate().map(|(n, (scope, text, fixed))| Invariant {
            non_overridable: *fixed,
            ..invariant(u8::try_from(n).unwrap(), Scope::ALL[*scope], sentences[*text])
        }).collect();
        let first = reconcile(&all);
        prop_assert_eq!(first.problem(&all), None);
        let len = all.len().max(1);
        all.rotate_left(usize::try_from(seed % len as u64).unwrap());
        all.reverse();
        let mut second = reconcile(&all);
        let mut first = first;
        first.set_aside.sort_by_key(|s| s.invariant.invariant_id);
        second.set_aside.sort_by_key(|s| s.invariant.invariant_id);
        prop_assert_eq!(first, second);
    }
}

#[test]
fn a_name_that_can_only_be_a_files_needs_no_quotes() {
    let forbids = |text: &str| match extract(text)?.rule {
        Rule::ForbiddenPaths { paths } => Some(paths),
        _ => None,
    };
    for (text, paths) in [
        ("never change b.py", &["b.py"][..]),
        ("do not touch Makefile", &["Makefile"]),
        ("Don't edit Cargo.toml and LICENSE.", &["Cargo.toml", "LICENSE"]),
        ("setup.cfg must not be changed", &["setup.cfg"]),
    ] {
        assert_eq!(
            forbids(text).as_deref(),
            Some(&paths.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>()[..]),
            "{text}"
        );
    }
    for text in [
        "never change behaviour",
        "do not touch the parser",
        "never change version 1.2",
        "never change b.py and style",
    ] {
        assert_eq!(forbids(text), None, "{text}");
    }
}
