//! The reference of tools in docs/ is written from the types.

use std::path::PathBuf;

use serde_json::{Value, json};

// docs/reference/tools.json; `UPDATE_DOCS=1` rewrites it
#[test]
fn the_reference_of_tools_is_that_of_the_types() {
    let tools: Vec<Value> = agents_tools::catalogue()
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name, "summary": tool.summary, "capability": tool.capability,
                "in_strategize": tool.while_deciding, "writes": tool.writes,
                "input": (tool.input)(), "output": (tool.output)(),
            })
        })
        .collect();
    let mut text = serde_json::to_string_pretty(&json!({ "tools": tools })).unwrap();
    text.push('\n');
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/tools.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/reference/tools.json is stale: run this test with UPDATE_DOCS=1");
}
