//! `agents lsp index`: the index of a folder's source files, and what diagnostics say of it.

use std::fs;

use serde_json::{Value, json};

use crate::world::World;

fn data(world: &World, args: &[&str]) -> Value {
    world.json(args)["data"].take()
}

fn check(world: &World) -> Value {
    let found = data(world, &["diagnostics"]);
    let checks = found["checks"].as_array().unwrap();
    checks.iter().find(|check| check["check"] == "Code index").unwrap().clone()
}

#[test]
fn a_folder_is_indexed_once_and_then_only_what_changed() {
    let world = World::new();
    fs::write(world.repo().join("a.py"), "import os\n\ndef one(): pass\n").unwrap();
    fs::write(world.repo().join("b.rs"), "fn two() {}\n").unwrap();
    fs::write(world.repo().join("bin.py"), "x\0").unwrap();
    world.json(&["project", "list"]);
    assert_eq!(check(&world)["details"], "none yet, made by `agents lsp index`");
    let first = data(&world, &["lsp", "index", "repo"]);
    assert_eq!((&first["parsed"], &first["symbols"], &first["imports"]), (&json!(2), &json!(2), &json!(1)));
    assert_eq!(
        first["languages"],
        json!([{ "language": "python", "files": 1 }, { "language": "rust", "files": 1 }])
    );
    assert_eq!(first["skipped"], json!([{ "reason": "binary", "files": 1 }]));
    assert_eq!(first["rebuilt"], Value::Null);
    std::thread::park_timeout(std::time::Duration::from_millis(30));
    data(&world, &["lsp", "index", "repo"]);
    fs::remove_file(world.repo().join("b.rs")).unwrap();
    let again = data(&world, &["lsp", "index", "repo"]);
    assert_eq!((&again["read"], &again["removed"], &again["symbols"]), (&json!(0), &json!(1), &json!(1)));
    let anew = data(&world, &["lsp", "index", "repo", "--rebuild"]);
    assert_eq!((&anew["read"], &anew["rebuilt"]), (&anew["files"], &Value::Null));
    let found = check(&world);
    assert_eq!(found["status"], "ok");
    assert!(found["details"].as_str().unwrap().starts_with("1 folder, "), "{found}");

    fs::write(anew["index"].as_str().unwrap(), "no database").unwrap();
    assert_eq!(check(&world)["status"], "warn");
    let mended = world.run_in("plain", &["lsp", "index", "repo"]);
    assert!(mended.stdout.contains("The index was made anew: it was damaged"), "{}", mended.stdout);
    assert_eq!(check(&world)["status"], "ok");
}

#[test]
fn what_is_no_folder_is_refused() {
    let world = World::new();
    fs::write(world.repo().join("a.py"), "").unwrap();
    let none = world.refused(&["lsp", "index", "nowhere"]);
    assert!(none["error"]["message"].as_str().unwrap().contains("there is no folder"), "{none}");
    let file = world.refused(&["lsp", "index", "repo/a.py"]);
    assert!(file["error"]["message"].as_str().unwrap().contains("is not a folder"), "{file}");
}
