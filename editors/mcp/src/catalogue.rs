//! The tools of a session, in the protocol's terms.

use std::borrow::Cow;
use std::sync::Arc;

use agents_engine::facade::{self, OperationInfo};
use agents_tools::LspTool;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

/// What `plan_wait` is called.
pub(crate) const WAIT: &str = "plan_wait";

/// The operations that are lent, and those of them that only look.
const OPERATIONS: &[(&str, bool)] = &[
    ("plan/use", false),
    ("plan/execute", false),
    ("plan/apply", false),
    ("plan/prompt", false),
    ("plan/correct", false),
    ("plan/rollback", false),
    ("plan/cancel", false),
    ("plan/discard", false),
    ("plan/revert", false),
    ("plan/list", true),
    ("plan/status", true),
    ("plan/tree", true),
    ("plan/explain", true),
    ("plan/diff", true),
    ("plan/correction-diff", true),
    ("plan/artifacts", true),
    ("plan/errors", true),
    ("plan/guard", true),
    ("plan/blame", true),
    ("plan/pending", true),
    ("registry/action/list", true),
    ("registry/action/show", true),
    ("registry/project/list", true),
    ("registry/project/show", true),
];

/// A tool of a session.
#[derive(Clone, Copy)]
pub(crate) enum Lent {
    Lsp(&'static LspTool),
    Operation(&'static OperationInfo),
    Wait,
}

/// A name that every client takes: `lsp/workspace-symbols` is `lsp_workspace_symbols`.
pub(crate) fn name(method: &str) -> String {
    method.strip_prefix("registry/").unwrap_or(method).replace(['/', '-'], "_")
}

/// The tools there are, by their names.
pub(crate) fn lent(plans: bool, write: bool) -> Vec<(String, Lent)> {
    let lsp = agents_tools::catalogue().iter().filter(|tool| write || !tool.writes);
    let mut all: Vec<_> = lsp.map(|tool| (name(tool.name), Lent::Lsp(tool))).collect();
    if plans {
        let wanted = |method: &str| facade::catalogue().iter().find(|operation| operation.method == method);
        let operations = OPERATIONS.iter().filter_map(|(method, _)| wanted(method));
        all.extend(operations.map(|operation| (name(operation.method), Lent::Operation(operation))));
        all.push((WAIT.to_owned(), Lent::Wait));
    }
    all
}

/// A tool as it is listed.
pub(crate) fn tool(name: String, lent: Lent) -> Tool {
    let (summary, input, output, reads): (Cow<'static, str>, _, _, bool) = match lent {
        Lent::Lsp(tool) => {
            (tool.summary.into(), (tool.input)().into(), Some((tool.output)().into()), !tool.writes)
        }
        Lent::Operation(operation) => {
            let reads = OPERATIONS.iter().any(|(method, reads)| *method == operation.method && *reads);
            (operation.summary.into(), (operation.params)().into(), None, reads)
        }
        Lent::Wait => {
            let summary =
                "Wait until a plan needs somebody or has ended, at most as long as said; gives its status";
            (summary.into(), wait_schema(), None, true)
        }
    };
    let output: Option<Value> = output;
    // An annotation is a hint; plans write only in a sandbox until they are applied.
    let destructive = matches!(lent, Lent::Operation(operation) if operation.method == "plan/apply");
    let tool = Tool::new(name, summary, object(input))
        .with_annotations(ToolAnnotations::new().read_only(reads).destructive(destructive).open_world(false));
    match output {
        Some(output) => tool.with_raw_output_schema(object(output)),
        None => tool,
    }
}

fn object(schema: Value) -> Arc<Map<String, Value>> {
    let mut schema = match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    schema.values_mut().for_each(without_own_formats);
    // The protocol wants schemas of objects; one for no parameters says nothing else.
    schema.entry("type").or_insert_with(|| json!("object"));
    Arc::new(schema)
}

/// Takes out formats such as `uint32`, which say how we keep a number: clients warn of each that they do not know.
fn without_own_formats(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_number = |format: &Value| {
                format.as_str().is_some_and(|format| {
                    ["int", "uint", "float", "double"].iter().any(|own| format.starts_with(own))
                })
            };
            if fields.get("format").is_some_and(is_number) {
                fields.remove("format");
            }
            fields.values_mut().for_each(without_own_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(without_own_formats),
        _ => {}
    }
}

fn wait_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "plan": { "type": "string", "description": "The plan's id, or the beginning of it." },
            "timeout_seconds": {
                "type": "integer", "minimum": 0, "maximum": 600,
                "description": "Seconds to wait at most; 45 unless given. Many clients give up after a minute.",
            },
        },
        "required": ["plan"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_that_is_lent_exists_and_names_fit_every_client() {
        let all = lent(true, true);
        let expected = agents_tools::catalogue().len() + OPERATIONS.len() + 1;
        assert_eq!(all.len(), expected, "an operation was renamed: bring the list up to date");
        for (name, lent) in all {
            assert!(
                name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
                "{name}"
            );
            let tool = tool(name.clone(), lent);
            assert_eq!(tool.input_schema["type"], "object", "{name}");
            let schemas = serde_json::to_string(&(tool.input_schema, tool.output_schema)).unwrap();
            assert!(!schemas.contains("\"uint"), "{name}: {schemas}");
        }
        let reading = lent_names(false, false);
        assert!(!reading.contains(&"lsp_apply_code_action".to_owned()));
        assert!(reading.iter().all(|name| name.starts_with("lsp_")));
    }

    fn lent_names(plans: bool, write: bool) -> Vec<String> {
        lent(plans, write).into_iter().map(|(name, _)| name).collect()
    }
}
