//! CLI-199, COM-003, OUT-001: YAML is the same value as JSON, for every reader.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Format, Run, everything};
use crate::output::yaml::to_yaml;

fn back(value: &Value) -> Value {
    let yaml = to_yaml(value);
    serde_saphyr::from_str(&yaml).unwrap_or_else(|e| panic!("{e}\n{yaml}"))
}

#[test]
fn texts_that_look_like_something_else_are_quoted() {
    for text in [
        "",
        " ",
        "~",
        "null",
        "Null",
        "true",
        "no",
        "NO",
        "y",
        "on",
        "Off",
        "1",
        "-1",
        "1.5",
        "1e3",
        ".5",
        ".inf",
        ".nan",
        "nan",
        "inf",
        "0x1f",
        "0o7",
        "1_000",
        "12:30:00",
        "2026-02-08",
        "2026-02-08T12:44:00Z",
        "- a",
        "a: b",
        "a #b",
        "#a",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a",
        "'a'",
        "\"a\"",
        "[a]",
        "{a}",
        "a:",
        "a,b",
        "?",
        "? a",
        "---",
        "...",
        "<<",
        "=",
        "a\\b",
        "é",
        "日本",
        "\u{feff}x",
        "\u{85}",
        "\u{2028}",
        "a\u{0}b",
        "😀",
        "01HXM8C2ZK4Q7C2B3F2R4VYV6J",
        "trailing ",
        " leading",
        "tab\tin",
        "a\r\nb",
        "a\rb",
        "/abs/path",
        "local/name",
        "x".repeat(2000).as_str(),
    ] {
        let value = json!({"text": text, text: [text, [text], {text: text}]});
        assert_eq!(back(&value), value, "{text:?}\n{}", to_yaml(&value));
    }
}

#[test]
fn several_lines_are_a_literal_block() {
    let value = json!({"a": "one\n  two\n\nthree", "b": ["x\ny\n", "x\ny\n\n"], "c": "one\n", "d": " x\ny", "e": "\n\n"});
    assert_eq!(back(&value), value);
    assert_eq!(
        to_yaml(&value),
        "a: |-\n  one\n    two\n\n  three\nb:\n  - |\n    x\n    y\n  - |+\n    x\n    y\n\nc: \"one\\n\"\nd: \" x\\ny\"\ne: \"\\n\\n\"\n"
    );
}

#[test]
fn collections_keep_their_order_and_numbers_their_kind() {
    let value = json!({"z": 1, "a": {"y": [], "b": {}, "c": null}, "l": [[1, [2]], {"k": 1.5}],
                       "n": [u64::MAX, i64::MIN, 1e300, 1e-9, -0.5, 0.0]});
    assert_eq!(
        to_yaml(&value),
        "z: 1\na:\n  \"y\": []\n  b: {}\n  c: null\nl:\n  - - 1\n    - - 2\n  - k: 1.5\n\"n\":\n  - 18446744073709551615\n  \
         - -9223372036854775808\n  - 1.0e+300\n  - 1.0e-9\n  - -0.5\n  - 0.0\n"
    );
    assert_eq!(back(&value), value);
}

#[test]
fn both_documents_of_a_run_are_equal() {
    let (json, yaml) = (Run::piped(Format::Json), Run::piped(Format::Yaml));
    everything(&json);
    everything(&yaml);
    let parsed: Value = serde_saphyr::from_str(&yaml.finish()).unwrap();
    json.finish();
    assert_eq!(parsed, json.json());
    let order = |v: &Value| v["data"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(order(&parsed), order(&json.json()));
}

fn text() -> impl proptest::strategy::Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~\n\t]{0,40}",
        "[a-z:#\\-?\\[\\]{},&*!|>'\"%@` \n]{0,12}",
        "[0-9eE+.xo_:-]{0,8}",
        "(true|no|null|~|on|y|1|\\.inf|NaN)",
    ]
}

fn value() -> impl proptest::strategy::Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_comes_back(value in value()) {
        let wrapped = json!({"data": value});
        prop_assert_eq!(back(&wrapped), wrapped);
    }

    #[test]
    fn any_value_alone_comes_back(value in value()) {
        prop_assert_eq!(back(&value), value);
    }

    #[test]
    fn json_of_any_value_comes_back(value in value()) {
        let printed = crate::output::document::to_json(&value).unwrap();
        // Compared as read, since reading a float may miss its last digit.
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        prop_assert_eq!(read(&printed), read(&value.to_string()));
    }
}
