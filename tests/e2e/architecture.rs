//! The arrows between the crates point one way.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// What each crate may depend on, of our own; `dev` dependencies may also use the fake server and the store.
const ALLOWED: &[(&str, &[&str])] = &[
    ("agents-domain", &[]),
    ("agents-grammars", &[]),
    ("agents-config", &["agents-domain"]),
    ("agents-store", &["agents-domain"]),
    ("agents-sandbox", &["agents-domain"]),
    ("agents-actors", &["agents-domain", "agents-grammars"]),
    ("agents-tools", &["agents-domain"]),
    (
        "agents-engine",
        &[
            "agents-actors",
            "agents-config",
            "agents-domain",
            "agents-grammars",
            "agents-sandbox",
            "agents-store",
            "agents-tools",
        ],
    ),
    ("agents-lsp-runtime", &["agents-domain", "agents-grammars"]),
    ("agents-lsp-server", &["agents-config", "agents-domain", "agents-engine"]),
    ("agents-mcp", &["agents-domain", "agents-engine", "agents-tools"]),
];

// STORE-002: what is outside of the store reaches it through the domain's port
#[test]
fn every_dependency_points_towards_the_domain() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    let mut seen = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some(allowed) = allowed.get(name) else { continue };
        seen += 1;
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            if on.starts_with("agents") && dependency["kind"].is_null() {
                assert!(allowed.contains(&on), "{name} must not depend on {on}");
            }
            if on == "rusqlite" && dependency["kind"].is_null() {
                assert_eq!(name, "agents-store", "only the store knows that there is SQLite");
            }
        }
    }
    assert_eq!(seen, ALLOWED.len(), "a crate was renamed: bring this table up to date");
}

#[test]
fn the_engine_neither_prints_nor_reads_the_environment() {
    let core = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../core");
    let mut folders = vec![core];
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("tests") && !path.ends_with("testing") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("fault.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                // Git is run with the environment of the user, cleaned of what would lead it astray.
                let runs_git = path.components().any(|c| c.as_os_str() == "sandbox");
                for word in ["println!", "eprintln!", "env::var"] {
                    if runs_git && word == "env::var" {
                        continue;
                    }
                    let used = code.lines().any(|l| l.contains(word) && !l.trim_start().starts_with("//"));
                    assert!(!used, "{} uses {word}", path.display());
                }
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 100, "only {looked_at} files were found");
}
