//! Files that are damaged, hostile or just strange: an error with a place, never a panic, never for long.

use std::time::{Duration, Instant};

use agents_config::{KINDS, MAX_FILE_BYTES, kind_of, load_action, load_language_server};
use proptest::prelude::*;

use crate::lines;

fn refused(text: &str) -> String {
    lines(&load_action(text, "a.yaml").unwrap_err())
}

#[test]
fn what_is_not_a_mapping_in_one_document_is_refused() {
    assert_eq!(refused(""), "1:1 : the file is empty\n");
    assert_eq!(refused("# only a comment\n\n"), "1:1 : the file is empty\n");
    assert_eq!(refused("- a\n- b\n"), "1:1 : the file must be a mapping (`key: value` lines), not a list\n");
    assert_eq!(
        refused("just text\n"),
        "1:1 : the file must be a mapping (`key: value` lines), not the text `just text`\n"
    );
    assert_eq!(
        refused("name: a\n---\nname: b\n"),
        "2:1 : a file holds one document: this starts a second one\n"
    );
}

#[test]
fn damaged_yaml_is_refused_at_its_place() {
    assert_eq!(refused("name: a\n\tdescription: x\n"), "2:1 : a tab cannot indent YAML: use spaces\n");
    assert_eq!(
        refused("a: b: c\n"),
        "1:5 : this is not YAML: mapping values are not allowed in this context\n"
    );
    assert!(refused("name: [a, b\nx: y\n").starts_with("2:2 "));
    assert!(refused("a: *nope\n").starts_with("1:4 : this is not YAML: "));
    assert!(refused("a: \"open\n").contains("this is not YAML"));
    assert_eq!(refused("? [a]\n: b\n"), "1:3 : a key must be a plain text, not a list or a mapping\n");
    assert_eq!(
        refused("x: !ruby/object {}\n").lines().next().unwrap(),
        "1:4 x: the tag `!ruby/object` is not known here: leave it out"
    );
    assert_eq!(
        refused("x: .inf\n"),
        "1:4 x: `.inf` is not a finite number: put it in quotes to mean a text\n"
    );
    assert_eq!(refused("x: !!int abc\n"), "1:10 x: `abc` is not what its tag `!!int` says\n");
}

#[test]
fn a_key_that_is_there_twice_is_refused() {
    let text = "name: local/a\narguments:\n  - name: x\n    type: list\n    name: y\nname: local/b\n";
    let problems = refused(text);
    assert!(
        problems.contains("5:5 arguments[0].name: the key `name` is there twice; it is first on line 3\n"),
        "{problems}"
    );
    assert!(
        problems.contains("6:1 name: the key `name` is there twice; it is first on line 1\n"),
        "{problems}"
    );
}

#[test]
fn anchors_aliases_and_merges_are_followed() {
    let text = "name: s\nlanguages: &langs [c, cpp]\ncommand: clangd\ninit_options:\n  base: &base {a: 1, b: 2}\n  \
                more: {<<: *base, b: 3}\n  both:\n    <<: [*base, {c: 4, a: 5}]\n  langs: *langs\n";
    let server = load_language_server(text, "s.yaml").unwrap_or_else(|p| panic!("{}", lines(&p))).value;
    assert_eq!(
        server.init_options,
        serde_json::json!({
            "base": { "a": 1, "b": 2 }, "more": { "b": 3, "a": 1 }, "both": { "a": 1, "b": 2, "c": 4 }, "langs": ["c", "cpp"],
        })
    );
    assert_eq!(refused("a: &x [*x]\n"), "1:8 a[0]: this alias stands inside the value that it names\n");
    assert_eq!(refused("a: {<<: 3}\n"), "1:9 a: `<<` takes a mapping, or a list of mappings\n");
}

#[test]
fn an_alias_bomb_is_refused_quickly() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let last = format!("*a{}", level - 1);
        text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![last; 10].join(", ")));
    }
    let started = Instant::now();
    assert!(refused(&text).contains("the file unfolds to too much data through its aliases"));
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let deep = |n: usize| {
            format!(
                "name: s\nlanguages: [c]\ncommand: c\ninit_options: {{a: {}{}}}\n",
                open.repeat(n),
                close.repeat(n)
            )
        };
        assert!(load_language_server(&deep(60), "s.yaml").is_ok());
        let problems = lines(&load_language_server(&deep(70), "s.yaml").unwrap_err());
        assert!(problems.contains("values nest deeper than 64 levels here"), "{problems}");
        assert!(load_language_server(&deep(100_000), "s.yaml").is_err());
    }
    let blocks: String = (0..300).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert!(load_action(&blocks, "a.yaml").is_err());
}

#[test]
fn a_large_file_is_refused_and_one_just_below_is_read_quickly() {
    let text = |bytes: usize| format!("name: x\n#{}\n", "y".repeat(bytes - 10));
    assert_eq!(refused(&text(10 * 1024 * 1024)), "1:1 : the file is larger than 1048576 bytes\n");
    assert!(!refused(&text(MAX_FILE_BYTES)).contains("larger"));
    let started = Instant::now();
    let mut keys: String = (0..100_000).map(|n| format!("k{n}: 1\n")).collect();
    keys.truncate(MAX_FILE_BYTES);
    assert!(!refused(&keys).is_empty());
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_byte_order_mark_and_crlf_change_no_place() {
    let text = "\u{feff}name: local/a\r\ndescription: é {{ nope }}\r\nstrategy_actor: a\r\nexecution_actor: b\r\ndefinition_of_done: |\r\n  x\r\n  {{ gone }}\r\n";
    let loaded = load_action(text, "a.yaml").unwrap_or_else(|p| panic!("{}", lines(&p)));
    let found: Vec<_> =
        loaded.hints.iter().map(|p| (p.range.start.line, crate::pointed_at(text, p))).collect();
    assert_eq!(found, [(1, "nope"), (6, "gone")]);
    assert_eq!(loaded.value.definition_of_done, "x\n{{ gone }}\n");
}

/// Texts that look like YAML more often than chance does.
fn yamlish() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "name",
            "local/a",
            "description",
            "arguments",
            "type",
            "default",
            "integer",
            "languages",
            "command",
            "env",
            "tcp",
            "transport",
            "health_check",
            "interval_seconds",
            "capabilities",
            "init_options",
            "definition_of_done",
            "<<",
        ])
        .prop_map(str::to_owned),
        proptest::sample::select(vec![
            ": ",
            ":\n  ",
            "\n",
            "\n  ",
            "- ",
            "[",
            "]",
            "{",
            "}",
            ", ",
            "&a ",
            "*a",
            "|\n  ",
            ">-\n",
            "\"",
            "'",
            "#",
            "!!int ",
            "---\n",
            "\t",
            "{{ ",
            " }}",
            "{% if ",
            " %}",
            "${X}",
            "\\",
            "\r\n",
            "\u{feff}",
            "é",
            "😀",
            "? ",
            "%YAML 1.2\n",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_text_makes_a_loader_panic_and_every_place_is_in_the_file(text in yamlish()) {
        let index = agents_domain::text::LineIndex::new(&text);
        for kind in KINDS {
            for problem in (kind.check)(&text, "f.yaml") {
                let (start, end) = (index.offset(&text, problem.range.start), index.offset(&text, problem.range.end));
                prop_assert!(start.is_some() && start <= end, "{:?}", problem);
            }
        }
        let _ = kind_of(&text);
    }

    #[test]
    fn what_loads_survives_its_own_json(words in proptest::collection::vec("[a-z]{1,6}", 1..4), n in any::<i32>()) {
        let args: Vec<String> = words.iter().map(|w| format!("--{w}")).collect();
        let value = serde_json::json!({
            "name": "local/s", "languages": words, "command": "c", "args": args,
            "init_options": { "n": n, "t": format!("{words:?}") },
        });
        let loaded = load_language_server(&value.to_string(), "s.json").unwrap();
        prop_assert_eq!(&loaded.value.args, &args);
        prop_assert_eq!(&loaded.value.init_options, &value["init_options"]);
    }
}
