//! Validation files: what loads, and what is refused at which place.

use agents_config::load_validation;

use crate::lines;

fn refused(text: &str) -> String {
    lines(&load_validation(text, "v.yaml").unwrap_err()).trim_end().to_owned()
}

fn hints(text: &str) -> Vec<String> {
    load_validation(text, "v.yaml").unwrap().hints.iter().map(|hint| hint.message.clone()).collect()
}

// VAL-007, VAL-008, VAL-010, VAL-011, VAL-012, VAL-015, VALID-002, VALID-024, VALID-029
#[test]
fn what_is_wrong_is_shown_at_its_key_or_value() {
    let cases = [
        (
            "name: local/v\n",
            "1:7 source: what shall it do? Give a `command`, a `shell` script, or a `builtin` such as `builtin/syntax`",
        ),
        (
            "name: local/v\nwraps: local/t\nsource: custom\ncode: |\n  x\n",
            "3:1 source: `wraps` and `source` exclude each other\n4:1 code: `wraps` and `code` exclude each other",
        ),
        (
            "name: local/v\ncommand: [a]\nargument_mapping: {x: y}\n",
            "3:1 argument_mapping: `argument_mapping` is only for a validation that `wraps` a tool",
        ),
        (
            "name: local/v\ncommand: [a]\ntransform: x\n",
            "3:1 transform: `transform` is only for a validation that `wraps` a tool",
        ),
        (
            "name: local/v\nsource: mcp\nmcp_server: s\n",
            "1:7 mcp_tool_name: `source: mcp` needs `mcp_tool_name`",
        ),
        ("name: local/v\ncommand: [a]\nshell: b\n", "3:1 shell: `command` and `shell` exclude each other"),
        (
            "name: local/v\ncommand: pytest -q | tee log\n",
            "2:10 command: `command` is run without a shell: write it as `shell:` to use `|`, `&&` and the like",
        ),
        (
            "name: local/v\nshell: x\nworking_directory: ../up\n",
            "3:20 working_directory: `working_directory` must be a folder inside the resource, such as `services/api`",
        ),
        (
            "name: local/v\nshell: x\nmode: required\nvalidation: {mode: required}\n",
            "3:1 mode: `mode` belongs into `validation:`, which is there",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text), expected, "{text}");
    }
    for (text, place, words) in [
        ("name: local/v\nshell: x\nvalidation: {mode: maybe}\n", "3:20 validation.mode", "`informational`"),
        ("name: local/v\nshell: x\ntimeout: 0\n", "3:10 timeout", "timeout"),
        ("name: local/v\nshell: x\nparzer: lines\n", "3:1 parzer", "did you mean `parser`?"),
        ("name: local/v\nbuiltin: builtin/sintax\n", "2:10 builtin", "builtin"),
    ] {
        let said = refused(text);
        assert!(said.starts_with(place) && said.contains(words), "{said}");
    }
}

// VAL-005, VAL-006, VAL-013, VALID-001, VALID-003
#[test]
fn what_a_tools_file_may_say_is_taken_and_changes_nothing() {
    let text = "name: local/v\nshell: x\nwrites: true\ncheckpointable: true\nread_only: false\nidempotent: true\n\
                output_schema: {type: object}\nresource_slots: []\n";
    assert_eq!(hints(text), Vec::<String>::new());
    let loaded = load_validation(text, "v.yaml").unwrap().value;
    assert_eq!(loaded.timeout, 300);
    let long = load_validation("name: local/v\ncommand: pytest -q\ntimeout: 600\n", "v.yaml").unwrap().value;
    assert_eq!((long.timeout, long.command), (600, Some(vec!["pytest".to_owned(), "-q".to_owned()])));
    assert_eq!(
        hints("name: local/v\nshell: x\nmode: informational\n"),
        ["`mode` is usually written as `validation: {mode: ...}`"]
    );
}
