//! Tool files (TOOL-001 to 003, 006, 008 to 012, 014, 026, G-30, G-33).

use agents_config::{kind_of, load_tool};
use agents_domain::tool::{SlotAccess, ToolSource};
use serde_json::json;

const FLAT: &str = "\
name: local/count
description: Counts lines
source: custom
read_only: true
input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
resource_slots:
  - {name: repo, type: git-checkout}
code: |
  return 1
";

const WRAPPED: &str = "\
cleveragents:
  version: \"3.0\"
tool:
  name: local/count
  description: Counts lines
  capability:
    read_only: true
  input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
  resources:
    repo: {resource_type: git-checkout, binding: contextual}
  code: |
    return 1
";

// TOOL-003, G-30
#[test]
fn the_wrapped_and_the_flat_form_say_the_same() {
    let (flat, wrapped) = (load_tool(FLAT, "a.yaml").unwrap(), load_tool(WRAPPED, "a.yaml").unwrap());
    assert_eq!(flat.value, wrapped.value);
    let tool = flat.value;
    assert_eq!(
        (tool.source, tool.timeout, tool.writes, tool.is_unsafe),
        (ToolSource::Custom, 300, false, false)
    );
    assert_eq!(tool.resource_slots[0].access, SlotAccess::ReadOnly);
    assert!(tool.resource_slots[0].required);
    assert_eq!(kind_of(FLAT).unwrap().name, "tool");
    assert_eq!(kind_of("name: a/b\ncode: x\nvalidation: {mode: required}\n").unwrap().name, "validation");
}

#[test]
fn mistakes_are_told_with_their_place() {
    let wrong = |lines: &str, path: &str, said: &str| {
        let text = format!("name: local/x\ndescription: X\n{lines}");
        let problems = load_tool(&text, "x.yaml").unwrap_err();
        let found = problems.iter().find(|p| p.field_path == path && p.message.contains(said));
        assert!(found.is_some(), "{lines}: {problems:#?}");
    };
    wrong("source: custom\n", "code", "needs `code`");
    wrong("source: mcp\nmcp_server: x\n", "mcp_tool_name", "needs `mcp_tool_name`");
    wrong("source: agent_skill\n", "agent_skill_path", "needs");
    wrong("code: x\nread_only: true\nwrites: true\n", "writes", "read_only");
    wrong("code: x\ninput_schema: {type: nonsense}\n", "input_schema", "no JSON Schema");
    wrong("code: x\ninput_schema: {type: array}\n", "input_schema.type", "type: object");
    wrong("code: x\ncheckpoint_scope: galaxy\n", "checkpoint_scope", "");
    wrong("code: x\ncost_profile: {rate_limit: often}\n", "cost_profile.rate_limit", "10/min");
    wrong("code: x\ntimeout: 0\n", "timeout", "");
    wrong(
        "code: x\nresource_slots: [{name: a, type: t}, {name: a, type: t}]\n",
        "resource_slots[1].name",
        "two slots",
    );
    wrong(
        "code: x\nresource_slots: [{name: a, type: t, binding: static}]\n",
        "resource_slots[0].binding",
        "static_resource",
    );
    wrong("code: x\nno_such_key: 1\n", "no_such_key", "");
    assert!(load_tool("name: local/x\ncode: x\n", "x.yaml").is_err(), "a description is needed");
}

// TOOL-012, TOOL-014, TOOL-029, G-33
#[test]
fn every_shape_of_scopes_and_slots_is_read() {
    let load = |lines: &str| {
        let text = format!("name: local/x\ndescription: X\ncode: x\n{lines}");
        load_tool(&text, "x.yaml").unwrap_or_else(|problems| panic!("{lines}: {problems:#?}")).value
    };
    assert_eq!(load("write_scope: src/**\n").write_scope, Some(json!("src/**")));
    assert_eq!(load("write_scope: [a, b]\n").write_scope, Some(json!(["a", "b"])));
    let structured = load("write_scope:\n  - file_paths: [src/**]\n  - environment: {required: host}\n");
    assert_eq!(structured.environment.unwrap().required.as_deref(), Some("host"));
    assert_eq!(structured.write_scope, Some(json!([{ "file_paths": ["src/**"] }])));
    let limited = load("cost_profile: {rate_limit: 10/min, estimated_cost: $0.01/call}\n");
    assert_eq!(limited.cost_profile.unwrap().limit(), Ok(Some((10, 60))));
    let slot =
        load("resource_slots: [{name: target, type: fs-directory, binding: parameter}]\n").resource_slots;
    assert_eq!(slot[0].from_param.as_deref(), Some("target"));
    let bound =
        load("resource_slots: [{name: a, type: t, bind: local/repo, access: write_only}]\n").resource_slots;
    assert_eq!(
        (bound[0].static_resource.as_deref(), bound[0].access),
        (Some("local/repo"), SlotAccess::WriteOnly)
    );
}
