//! Real sources: what Python's own parser finds, the index finds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use agents_context::Indexes;
use agents_domain::ports::code_index::CodeIndexes;

use crate::scan;

/// Classes and functions of a folder's files that parse, as `path:line:kind:name`, one a line; the line is the one of
/// `def` or `class`.
const DECLARED: &str = r#"
import ast, os, sys
root = sys.argv[1]
for folder, folders, files in os.walk(root):
    folders[:] = [f for f in folders if not f.startswith('.') and f not in ('site-packages', 'venv', 'env')]
    for name in files:
        path = os.path.join(folder, name)
        if not name.endswith('.py') or os.path.getsize(path) > 1048576:
            continue
        try:
            tree = ast.parse(open(path, 'rb').read())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                print(f'{os.path.relpath(path, root)}:{node.lineno}:{node.name}')
"#;

fn python(script: &str, argument: &str) -> String {
    let out = Command::new("python3").args(["-c", script, argument]).output().expect("python3 is there");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn library(name: &str) -> PathBuf {
    python("import os, sys; print(os.path.join(os.path.dirname(os.__file__), sys.argv[1]))", name)
        .trim()
        .into()
}

#[test]
fn every_class_and_function_of_pythons_library_is_found() {
    let data = tempfile::tempdir().unwrap();
    for package in ["asyncio", "email", "json", "unittest", "xml", "importlib", "concurrent", "http"] {
        let folder = library(package);
        let index = Indexes::new(data.path()).of(&folder).unwrap();
        scan(&*index);
        let declared = python(DECLARED, folder.to_str().unwrap());
        let mut found = BTreeSet::new();
        let paths: BTreeSet<&str> = declared.lines().filter_map(|line| line.split(':').next()).collect();
        for path in paths {
            for symbol in index.symbols_of(path).unwrap() {
                found.insert(format!("{path}:{}:{}", symbol.name_range.start.line + 1, symbol.name));
            }
        }
        let missed: Vec<&str> = declared.lines().filter(|line| !found.contains(*line)).collect();
        assert!(declared.lines().count() > 20, "{package}");
        assert!(missed.is_empty(), "{package}: {missed:#?}");
    }
}

#[test]
fn every_name_that_python_reads_is_an_occurrence() {
    const NAMES: &str = "import ast, os, sys\nfor node in ast.walk(ast.parse(open(os.path.join(sys.argv[1], 'decoder.py'), 'rb').read())):\n    if isinstance(node, ast.Name):\n        print(f'{node.lineno - 1}:{node.col_offset}:{node.id}')\n";
    let data = tempfile::tempdir().unwrap();
    let folder = library("json");
    let text = std::fs::read(folder.join("decoder.py")).unwrap();
    let outline = Indexes::new(data.path()).outline(Path::new("decoder.py"), None, &text).unwrap();
    let ours: BTreeSet<String> = outline
        .names
        .iter()
        .map(|n| format!("{}:{}:{}", n.place.range.start.line, n.place.range.start.column, n.name))
        .collect();
    let theirs = python(NAMES, folder.to_str().unwrap());
    let missed: Vec<&str> = theirs.lines().filter(|name| !ours.contains(*name)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// The functions of Rust source, found by their lines: not a parser, but another pair of eyes.
#[test]
fn functions_and_types_of_this_workspace_are_found() {
    let data = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../domain");
    let index = Indexes::new(data.path()).of(&folder).unwrap();
    scan(&*index);
    let mut checked = 0;
    for path in ["src/plan/machine.rs", "src/tree.rs", "src/text.rs", "src/ports/store.rs", "src/name.rs"] {
        let Ok(text) = std::fs::read_to_string(folder.join(path)) else { continue };
        let symbols = index.symbols_of(path).unwrap();
        // What a macro is given is no syntax of the language.
        let text = text.split("proptest!").next().unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace().skip_while(|w| w.starts_with("pub") || *w == "const");
            if !matches!(words.next(), Some("fn" | "struct" | "enum" | "trait")) {
                continue;
            }
            let name: String =
                words.next().unwrap_or("").chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let there = symbols.iter().any(|s| s.name == name && s.name_range.start.line as usize == number);
            assert!(there, "{path}:{number}: {name}");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}
