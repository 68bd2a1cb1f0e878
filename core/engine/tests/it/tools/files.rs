//! Reading and writing files (TOOL-007, 017, 022, 023, 024, 033 to 036).

use agents_domain::plan::Phase;
use serde_json::{Value, json};

use super::caller::Called;

// TOOL-033, TOOL-034, TOOL-036
#[test]
fn the_groups_of_the_specification_are_offered_with_schemas_and_go_by_both_names() {
    let called = Called::on(
        &[("a.txt", "one\n")],
        &[("read_file", json!({ "path": "a.txt" })), ("builtin/read_file", json!({ "path": "a.txt" }))],
    );
    assert_eq!(called.result(0)["content"], "one\n");
    assert_eq!(called.result(0), called.result(1));
    let offered = called.kept.offered.lock().unwrap();
    let names = |phase: Phase| -> Vec<String> {
        let (_, specs) = offered.iter().find(|(of, _)| *of == phase).unwrap();
        for spec in specs {
            assert_eq!(spec.input["type"], "object", "{}", spec.name);
            for (field, of) in spec.input["properties"].as_object().into_iter().flatten() {
                let said = of["description"].is_string() || of["$ref"].is_string() || of["allOf"].is_array();
                assert!(said, "{} {field} is not explained", spec.name);
            }
        }
        specs.iter().map(|spec| spec.name.clone()).collect()
    };
    let (deciding, acting) = (names(Phase::Strategize), names(Phase::Execute));
    let groups = [
        (
            "file_operations",
            "read_file write_file edit_file delete_file move_file copy_file get_file_info apply-edits",
        ),
        ("directory_operations", "create_directory list_directory delete_directory list_files"),
        ("search_operations", "search_files find_definition find_references"),
        ("git_operations", "git_status git_diff git_log git_blame"),
    ];
    let (_, specs) = offered.iter().find(|(of, _)| *of == Phase::Execute).unwrap();
    for (group, tools) in groups {
        for tool in tools.split(' ') {
            let name = format!("builtin/{tool}");
            let spec = specs.iter().find(|spec| spec.name == name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(spec.group.as_deref(), Some(group), "{name}");
            assert_eq!(spec.capability.read_only, deciding.contains(&name), "{name}");
        }
    }
    assert!(acting.contains(&"lsp/rename".to_owned()) && !deciding.contains(&"lsp/rename".to_owned()));
}

// TOOL-023, TOOL-024
#[test]
fn what_tools_write_is_recorded_under_the_decision_and_shown_as_the_plans_change() {
    let called = Called::on(
        &[("src/a.py", "def f():\n    return 1\n"), ("gone.txt", "x\n"), ("old.txt", "same\n")],
        &[
            (
                "edit_file",
                json!({ "path": "src/a.py", "edits": [{ "old_text": "return  1", "new_text": "return 2" }] }),
            ),
            ("write_file", json!({ "path": "deep/er/new.txt", "content": "new\n" })),
            ("delete_file", json!({ "path": "gone.txt" })),
            ("move_file", json!({ "from": "old.txt", "to": "moved.txt" })),
            ("copy_file", json!({ "source": "moved.txt", "destination": "copy.txt" })),
            ("create_directory", json!({ "path": "empty/one" })),
            ("delete_directory", json!({ "path": "empty" })),
            ("delete_directory", json!({ "path": "deep" })),
            ("delete_directory", json!({ "path": "deep", "recursive": true })),
            (
                "edit_file",
                json!({ "path": "src/a.py", "changes": [{ "start_line": 1, "new_text": "def g():" }] }),
            ),
            ("move_file", json!({ "source": "src", "destination": "lib" })),
        ],
    );
    for at in [0, 1, 2, 3, 4, 5, 6, 8, 9, 10] {
        let result = called.result(at);
        assert!(result["failed"].is_null(), "{at}: {result}");
    }
    assert!(called.refused(7).contains("say `recursive`"), "{}", called.refused(7));
    let mut changed = called.changed();
    changed.sort();
    assert_eq!(changed, ["copy.txt", "gone.txt", "lib/a.py", "moved.txt", "src/a.py"]);
    assert_eq!(called.text("lib/a.py").as_deref(), Some("def g():\n    return 2\n"));
}

// TOOL-007, SEC-016
#[test]
fn arguments_that_do_not_fit_are_told_by_field_and_nothing_runs() {
    let called = Called::on(
        &[("a.txt", "one\n")],
        &[
            ("write_file", json!({ "path": "a.txt", "content": 7 })),
            ("write_file", json!({ "path": "a.txt", "text": "x" })),
            ("read_file", json!({ "path": "a.txt", "start_line": 0 })),
            ("read_file", json!({})),
            ("no_such_tool", json!({})),
        ],
    );
    assert_eq!(called.result(0)["error"], "InvalidCallError");
    assert!(called.refused(0).contains("`content`"), "{}", called.refused(0));
    assert!(
        called.refused(1).contains("'text'") && called.refused(1).contains("content"),
        "{}",
        called.refused(1)
    );
    assert_eq!(called.result(2)["type"], "InvalidCallError");
    assert!(called.refused(3).contains("path"));
    assert!(called.refused(4).contains("there is no tool `no_such_tool`"));
    assert_eq!(called.changed(), Vec::<String>::new());
}

// TOOL-017, TOOL-022, G-39
#[test]
fn a_read_only_plan_calls_only_what_changes_nothing_and_its_actor_goes_on() {
    let calls = [
        ("write_file", json!({ "path": "a.txt", "content": "x" })),
        ("builtin/create_directory", json!({ "path": "d" })),
        ("read_file", json!({ "path": "a.txt" })),
    ];
    let called = Called::with(&[("a.txt", "one\n")], &calls, "read_only: true\n", "trusted", |_| {});
    assert_eq!(called.result(0)["error"], "AccessDeniedError");
    assert!(called.refused(1).contains("the plan is read-only"));
    assert_eq!(called.result(2)["content"], "one\n");
    let offered = called.kept.offered.lock().unwrap();
    assert!(offered.iter().all(|(_, specs)| specs.iter().all(|spec| spec.capability.read_only)));
}

#[test]
fn long_files_come_in_pages_and_what_is_no_text_is_said() {
    let long: String = (1..=2500).map(|n| format!("line {n}\n")).collect();
    let wide = "x".repeat(200_000);
    let called = Called::with(
        &[("long.txt", &long), ("wide.txt", &wide), ("empty.txt", "")],
        &[
            ("read_file", json!({ "path": "long.txt" })),
            ("read_file", json!({ "path": "long.txt", "start_line": 2001 })),
            ("read_file", json!({ "path": "long.txt", "start_line": 10, "end_line": 12 })),
            ("read_file", json!({ "path": "wide.txt" })),
            ("read_file", json!({ "path": "empty.txt" })),
            ("read_file", json!({ "path": "long.txt", "start_line": 9999 })),
            ("read_file", json!({ "path": "blob" })),
            ("read_file", json!({ "path": "nothing" })),
        ],
        "",
        "trusted",
        |bench| std::fs::write(bench.repo().join("blob"), [0xff, 0xfe, 0x00]).unwrap(),
    );
    let first = called.result(0);
    assert_eq!((&first["end_line"], &first["next_start_line"]), (&json!(1000), &json!(1001)));
    let last = called.result(1);
    assert_eq!((&last["end_line"], &last["next_start_line"]), (&json!(2500), &Value::Null));
    assert_eq!(called.result(2)["content"], "line 10\nline 11\nline 12\n");
    let wide = called.result(3);
    assert!(wide["content"].as_str().unwrap().len() <= 60_000 && wide["note"].is_string());
    assert_eq!(called.result(4)["content"], "");
    assert!(called.refused(5).contains("has 2500 lines"));
    assert!(called.refused(6).contains("no text (UTF-8), it has 3 bytes"), "{}", called.refused(6));
    assert!(called.refused(7).contains("nothing"));
}
