//! The reference of operations in docs/ is written from the types.

use std::path::PathBuf;

use serde_json::{Value, json};

// docs/reference/operations.json; `UPDATE_DOCS=1` rewrites it
#[test]
fn the_reference_of_operations_is_that_of_the_types() {
    let operations: Vec<Value> = agents_engine::catalogue()
        .iter()
        .map(|operation| {
            json!({
                "method": format!("{}{}", agents_engine::METHOD_PREFIX, operation.method),
                "command": operation.command(),
                "summary": operation.summary,
                "params": (operation.params)(),
                "output": (operation.output)(),
            })
        })
        .collect();
    let mut text = serde_json::to_string_pretty(&json!({ "operations": operations })).unwrap();
    text.push('\n');
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/operations.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/reference/operations.json is stale: run this test with UPDATE_DOCS=1");
}
