//! docs/reference is what the parser and the types say; `UPDATE_DOCS=1` writes it anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference")
}

fn check(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == text, "{} is stale: run this test with UPDATE_DOCS=1", path.display());
}

#[test]
fn the_page_on_the_command_line_is_what_the_parser_takes() {
    check(&folder().join("cli.md"), &agents_cli::reference::command_line());
}

#[test]
fn the_schemas_are_those_of_the_commands() {
    let folder = folder().join("schemas");
    let schemas: BTreeMap<String, String> = agents_cli::reference::schemas()
        .iter()
        .map(|one| (one.file(), serde_json::to_string_pretty(&one.schema).unwrap() + "\n"))
        .collect();
    for (name, text) in &schemas {
        check(&folder.join(name), text);
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        let known = schemas.contains_key(&*entry.file_name().to_string_lossy());
        if !known && std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::remove_file(entry.path()).unwrap();
            continue;
        }
        assert!(known, "{:?} is of no command", entry.path());
    }
}

#[test]
fn every_command_says_what_its_data_is() {
    for one in agents_cli::reference::schemas() {
        let data = &one.schema["then"]["properties"]["data"];
        let says =
            ["properties", "anyOf", "$ref", "allOf", "oneOf"].iter().any(|key| data.get(key).is_some());
        let refused = one.schema["properties"]["status"]["const"] == "error";
        assert!(
            says || refused || one.command == "plan follow",
            "nothing is known of the data of `{}`",
            one.command
        );
        jsonschema::validator_for(&one.schema).unwrap_or_else(|e| panic!("{}: {e}", one.command));
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let pages = agents_cli::reference::manual().unwrap();
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"agents.1") && names.contains(&"agents-plan.1"));
    for one in agents_cli::reference::schemas() {
        let name = format!("agents-{}.1", one.command.replace(' ', "-"));
        let (_, text) = pages.iter().find(|(page, _)| *page == name).unwrap_or_else(|| panic!("no {name}"));
        let text = String::from_utf8(text.clone()).unwrap();
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{name}: {text}");
    }
}
