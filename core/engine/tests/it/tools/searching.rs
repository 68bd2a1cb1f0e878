//! Looking for files, lines, symbols and history (TOOL-033, G-42).

use serde_json::{Value, json};

use super::caller::Called;
use crate::harness::git;

fn lines(page: &Value) -> Vec<String> {
    let results = page["results"].as_array().unwrap_or_else(|| panic!("{page}"));
    results.iter().map(|hit| format!("{}:{}", hit["path"].as_str().unwrap(), hit["line"])).collect()
}

#[test]
fn files_and_lines_are_found_in_pages() {
    let many: String = (0..250).map(|n| format!("needle {n}\n")).collect();
    let called = Called::on(
        &[
            ("src/a.py", "import os\nneedle\n"),
            ("src/deep/b.py", "x\n"),
            ("many.txt", &many),
            (".gitignore", "*.log\n"),
        ],
        &[
            ("search_files", json!({ "pattern": "*.py" })),
            ("search_files", json!({ "pattern": "src/*.py", "content_pattern": "^need.e$" })),
            ("search_files", json!({ "content": "needle", "limit": 100 })),
            ("search_files", json!({ "content": "NEEDLE 24\\d", "ignore_case": true, "context": 1 })),
            ("search_files", json!({ "content_pattern": "(" })),
            ("list_directory", json!({})),
            ("list_directory", json!({ "path": "src", "pattern": "d*" })),
            ("list_files", json!({ "pattern": "**/*.py", "path": "src/deep" })),
            ("list_directory", json!({ "path": "many.txt" })),
            ("get_file_info", json!({ "path": "src/a.py" })),
        ],
    );
    let paths = |at: usize| -> Vec<String> {
        let page = called.result(at);
        page["results"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(0), ["src/a.py", "src/deep/b.py"]);
    assert_eq!(lines(&called.result(1)), ["src/a.py:2"]);
    let page = called.result(2);
    assert_eq!((&page["total"], &page["next_offset"]), (&json!(251), &json!(100)));
    let around = called.result(3);
    assert_eq!(around["total"], 10);
    assert_eq!(around["results"][0]["before"], json!(["needle 239"]));
    assert!(called.refused(4).contains("not a regular expression"));
    assert_eq!(called.result(5)["results"], json!([".gitignore", "many.txt", "src/"]));
    assert_eq!(called.result(6)["results"], json!(["deep/"]));
    assert_eq!(paths(7), ["src/deep/b.py"]);
    assert!(called.refused(8).contains("not a directory"), "{}", called.refused(8));
    let info = called.result(9);
    assert_eq!(
        (&info["language"], &info["lines"], &info["writable"]),
        (&json!("python"), &json!(2), &json!(true))
    );
}

#[test]
fn symbols_are_found_by_syntax_where_no_server_is_bound() {
    let called = Called::on(
        &[
            ("a.py", "class Parser:\n    def parse(self):\n        return 1\n"),
            ("b.py", "from a import Parser\n\nParser().parse()\n# parse in a comment\n"),
            ("c.js", "function parse() {}\nparse()\n"),
        ],
        &[
            ("find_definition", json!({ "symbol": "Parser.parse" })),
            ("find_references", json!({ "symbol": "parse" })),
            ("find_definition", json!({ "symbol": "nothing" })),
        ],
    );
    let defined = lines(&called.result(0));
    assert!(defined.contains(&"a.py:2".to_owned()) && defined.contains(&"c.js:1".to_owned()), "{defined:?}");
    let used = lines(&called.result(1));
    assert!(used.contains(&"b.py:3".to_owned()) && !used.contains(&"b.py:4".to_owned()), "{used:?}");
    assert_eq!(called.result(2)["total"], 0);
}

#[test]
fn git_is_read_without_running_what_the_repository_names() {
    let trap = tempfile::tempdir().unwrap();
    let sprung = trap.path().join("sprung");
    let program = trap.path().join("trap.sh");
    std::fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat \"$1\"\n", sprung.display()))
        .unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let called = Called::with(
        &[("a.txt", "one\ntwo\n"), (".gitattributes", "*.txt diff=trap\n")],
        &[
            ("edit_file", json!({ "path": "a.txt", "edits": [{ "old_text": "two", "new_text": "2" }] })),
            ("git_status", json!({})),
            ("git_diff", json!({ "path": "a.txt" })),
            ("git_log", json!({})),
            ("git_blame", json!({ "path": "a.txt" })),
            ("git_log", json!({ "count": 1, "path": "a.txt" })),
            ("git_blame", json!({ "path": "no.txt" })),
        ],
        "",
        "trusted",
        |bench| {
            let repo = bench.repo();
            let path = program.display().to_string();
            for (key, value) in [
                ("diff.trap.textconv", path.as_str()),
                ("diff.trap.command", path.as_str()),
                ("diff.external", path.as_str()),
                ("core.fsmonitor", path.as_str()),
                ("core.pager", path.as_str()),
                ("gpg.program", path.as_str()),
                ("log.showSignature", "true"),
            ] {
                git(&repo, &["config", key, value]);
            }
        },
    );
    let status = called.result(1);
    assert_eq!((&status["branch"], &status["modified"]), (&json!("main"), &json!(["a.txt"])));
    assert!(called.result(2)["patch"].as_str().unwrap().contains("-two\n+2\n"));
    assert_eq!(called.result(3)["commits"][0]["subject"], "start");
    let blamed = called.result(4);
    assert_eq!(blamed["results"][0]["summary"], "start", "{blamed}");
    assert_eq!(blamed["results"][1]["text"], "2");
    assert_eq!(called.result(5)["commits"].as_array().map(Vec::len), Some(1));
    assert!(called.refused(6).contains("no.txt"));
    assert!(!sprung.exists(), "{}", std::fs::read_to_string(&sprung).unwrap());
}
