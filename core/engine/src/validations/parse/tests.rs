//! Each parser on what the real program printed (see `samples/`).

use super::*;

fn report(parser: OutputParser, stdout: &str) -> Report {
    read(parser, &Output { stdout, stderr: "", report: "", command: "" }, "/repo")
}

fn lines_of(report: &Report) -> Vec<String> {
    report.findings.iter().map(Finding::line_text).collect()
}

fn detect(command: &str, stdout: &str) -> OutputParser {
    detected(&Output { stdout, stderr: "", report: "", command })
}

#[test]
fn pytest_names_tests_places_and_counts() {
    let text = include_str!("samples/pytest.txt");
    let found = report(OutputParser::Pytest, text);
    assert_eq!(found.tests, Some((2, 6)));
    let expected = [
        "test_auth.py:10 test_session_refresh -- assert 1 == 2",
        "test_auth.py:4 test_token_expiry -- TimeoutError: no answer",
        "test_auth.py:20 test_each[2] -- assert 2 == 1",
        "test_auth.py:24 test_with_broken -- ValueError: fixture is broken",
    ];
    assert_eq!(lines_of(&found), expected);
    assert_eq!(detect("make check", text), OutputParser::Pytest);
    let collecting = report(OutputParser::Pytest, include_str!("samples/pytest-collect.txt"));
    assert_eq!(lines_of(&collecting), ["test_imp.py:1 -- ModuleNotFoundError: No module named 'nothere'"]);
}

#[test]
fn junit_names_tests_places_and_counts() {
    let text = include_str!("samples/junit.xml");
    let found = report(OutputParser::Junit, text);
    assert_eq!(found.tests, Some((2, 6)));
    let expected = [
        "test_auth.py:10 test_auth::test_session_refresh -- assert 1 == 2",
        "test_auth.py:4 test_auth::test_token_expiry -- TimeoutError: no answer",
        "test_auth.py:20 test_auth::test_each[2] -- assert 2 == 1",
        "test_auth.py:24 test_auth::test_with_broken -- failed on setup with \"ValueError: fixture is broken\"",
    ];
    assert_eq!(lines_of(&found), expected);
    assert_eq!(detect("make", text), OutputParser::Junit);
    for broken in ["", "<", "<testcase", "<testcase name='x'><failure", "&&&;<a>&#xFFFFFFFF;", "<![CDATA["] {
        report(OutputParser::Junit, broken);
    }
}

#[test]
fn cargo_test_names_panics_and_compiler_errors() {
    let text = include_str!("samples/cargo-test.txt");
    let found = report(OutputParser::CargoTest, text);
    assert_eq!(found.tests, Some((1, 3)));
    let expected = [
        "src/lib.rs:9 tests::adds -- assertion `left == right` failed: sum",
        "src/lib.rs:17 tests::unwraps -- called `Option::unwrap()` on a `None` value",
    ];
    assert_eq!(lines_of(&found), expected);
    assert_eq!(detect("make", text), OutputParser::CargoTest);
    let compiler = report(OutputParser::CargoTest, include_str!("samples/cargo-compile.txt"));
    assert_eq!(lines_of(&compiler), ["src/lib.rs:2 E0425 -- cannot find value `c` in this scope"]);
    assert_eq!(compiler.findings[0].column, Some(9));
}

#[test]
fn node_is_read_as_tap_and_as_text_for_people() {
    let expected =
        ["a.test.js:4 subtracts -- Expected values to be strictly equal:", "a.test.js:6 inner fails -- boom"];
    let tap = include_str!("samples/node-tap.txt");
    let found = report(OutputParser::Node, tap);
    assert_eq!((lines_of(&found), found.tests), (expected.map(str::to_owned).to_vec(), Some((1, 4))));
    assert_eq!(detect("npm test", tap), OutputParser::Node);
    let spec = include_str!("samples/node-spec.txt");
    let found = report(OutputParser::Node, spec);
    assert_eq!(found.tests, Some((1, 4)));
    let expected = [
        "a.test.js:4 subtracts -- AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:",
        "a.test.js:6 inner fails -- Error: boom",
    ];
    assert_eq!(lines_of(&found), expected);
    assert_eq!(detect("npm test", spec), OutputParser::Node);
}

#[test]
fn ruff_is_read_in_its_three_forms() {
    let expected = [
        "bad.py:1 I001 -- Import block is un-sorted or un-formatted",
        "bad.py:1 F401 -- `os` imported but unused",
        "bad.py:2 F401 -- `sys` imported but unused",
        "bad.py:3 F821 -- Undefined name `y`",
    ];
    for text in [
        include_str!("samples/ruff-full.txt"),
        include_str!("samples/ruff-concise.txt"),
        include_str!("samples/ruff.json"),
    ] {
        assert_eq!(lines_of(&report(OutputParser::Ruff, text)), expected);
    }
    assert_eq!(detect("ruff check .", ""), OutputParser::Ruff);
}

#[test]
fn lines_of_compilers_are_found_and_bounded() {
    let text = "src/a.c:3:7: error: no such thing\nsrc/a.c:4:1: warning: odd\nplain words: 12: no\n/repo/x.go:9: bad\n";
    let found = report(OutputParser::Lines, text);
    let expected = ["src/a.c:3 -- error: no such thing", "src/a.c:4 -- warning: odd", "x.go:9 -- bad"];
    assert_eq!(lines_of(&found), expected);
    assert_eq!(found.findings[1].severity, Severity::Warning);
    let many: String = (0..500).map(|n| format!("a.c:{n}: {}\n", "x".repeat(900))).collect();
    let found = report(OutputParser::Lines, &many);
    assert_eq!(found.findings.len(), MAX_FINDINGS);
    assert!(found.findings[0].message.len() <= MAX_MESSAGE + 3);
}
