//! The tools of the work itself: recording decisions, handing work on, being done. They stand beside the tools of the
//! phase, which get an argument for the decision they are called under.

use agents_domain::plan::Phase;
use agents_domain::ports::actor::StepInput;
use agents_domain::ports::tool::{Capability, ToolSpec};
use serde_json::{Value, json};

pub(super) const RECORD: &str = "record_decision";
pub(super) const SUBPLAN: &str = "create_subplan";
pub(super) const FINISH: &str = "finish";
pub(super) const TOO_TIGHT: &str = "strategy_too_tight";
/// The argument that names the decision behind a call.
pub(super) const UNDER: &str = "decision";

/// The name of the tool that makes child plans, as the engine has it.
pub(super) const CREATE_SUBPLAN: &str = "local/create-subplan";

/// All tools a model has in a step: those of the work first, then those of the phase.
pub(super) fn all(input: &StepInput, offered: Vec<ToolSpec>) -> Vec<ToolSpec> {
    let executing = input.phase == Phase::Execute;
    let mut tools = vec![record(executing), finish(executing)];
    if executing {
        tools.push(too_tight());
        if !input.read_only {
            tools.push(subplan());
        }
    }
    let own: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    let offered = offered.into_iter().filter(|tool| !own.contains(&tool.name) && tool.name != CREATE_SUBPLAN);
    tools.extend(offered.map(|tool| if executing { under(tool) } else { tool }));
    tools
}

/// A tool of the phase with the argument for the decision.
fn under(mut tool: ToolSpec) -> ToolSpec {
    if tool.capability.read_only {
        return tool;
    }
    if let Some(properties) = tool.input.get_mut("properties").and_then(Value::as_object_mut) {
        properties.entry(UNDER).or_insert_with(|| {
            json!({
                "type": "string",
                "description": "Key of the decision this is done under; the last one recorded unless given.",
            })
        });
    }
    tool
}

/// Takes the decision out of a call's arguments, where it was not an argument of the tool's own.
pub(super) fn take_under(arguments: &mut Value, offered: Option<&ToolSpec>) -> Option<String> {
    let own = offered.is_some_and(|tool| tool.input["properties"].get(UNDER).is_some());
    let members = arguments.as_object_mut().filter(|_| !own)?;
    members.shift_remove(UNDER)?.as_str().map(str::to_owned)
}

fn tool(name: &str, description: &str, input: Value) -> ToolSpec {
    let capability = Capability { read_only: true, idempotent: true, ..Capability::default() };
    ToolSpec { name: name.to_owned(), description: description.to_owned(), input, group: None, capability }
}

fn record(executing: bool) -> ToolSpec {
    let types: &[&str] = if executing {
        &[
            "implementation_choice",
            "resource_selection",
            "tool_invocation",
            "error_recovery",
            "validation_response",
        ]
    } else {
        &["strategy_choice", "resource_selection", "subplan_spawn", "subplan_parallel_spawn"]
    };
    let mut properties = json!({
        "key": {
            "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_./-]{0,79}$",
            "description": "A short name of the question, the same whenever you come back to it, such as `parser-errors`."
        },
        "type": { "enum": types },
        "question": { "type": "string", "minLength": 1, "description": "What was open, as a question." },
        "options": {
            "type": "array", "minItems": 1, "maxItems": 12,
            "description": "The options considered, different from each other.",
            "items": {
                "type": "object", "additionalProperties": false, "required": ["option"],
                "properties": {
                    "option": { "type": "string", "minLength": 1 },
                    "description": { "type": "string", "description": "What it would mean, or why it was not taken." }
                }
            }
        },
        "chosen": { "type": "string", "description": "The text of the option taken, word for word." },
        "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
        "rationale": { "type": "string", "minLength": 1, "description": "Why, naming the facts." },
        "parent": { "type": "string", "description": "Key of the decision this one follows from." },
        "depends_on": {
            "type": "array", "items": { "type": "string" },
            "description": "Keys of the decisions it was made from."
        },
        "places": {
            "type": "array", "maxItems": 50, "description": "The files it is about.",
            "items": {
                "type": "object", "additionalProperties": false, "required": ["path"],
                "properties": {
                    "resource": { "type": "string", "description": "Which resource, where there are several." },
                    "path": { "type": "string" },
                    "symbol": { "type": "string" },
                    "note": { "type": "string" }
                }
            }
        }
    });
    if !executing && let Some(properties) = properties.as_object_mut() {
        let mut of = subplan_properties();
        of["depends_on"] = json!({
            "type": "array", "items": { "type": "string" },
            "description": "Keys of the spawn decisions it comes after."
        });
        properties.insert(
            "subplan".to_owned(),
            json!({
                "type": "object", "additionalProperties": false, "properties": of,
                "description": "With type `subplan_spawn`: what the child plan shall do."
            }),
        );
    }
    tool(
        RECORD,
        "Records a decision with its alternatives and reasons. Answers with what stands: a person may have chosen otherwise.",
        json!({
            "type": "object", "additionalProperties": false, "properties": properties,
            "required": ["key", "type", "question", "options", "chosen", "confidence", "rationale"],
        }),
    )
}

fn subplan_properties() -> Value {
    json!({
        "action": { "type": "string", "description": "The action it is made from; this plan's own unless given." },
        "prompt": { "type": "string", "description": "What it is asked for." },
        "target_files": { "type": "array", "items": { "type": "string" } },
        "projects": { "type": "array", "items": { "type": "string" } },
        "arguments": { "type": "object", "description": "Values for the action's arguments." }
    })
}

fn subplan() -> ToolSpec {
    let mut properties = subplan_properties();
    properties[UNDER] = json!({
        "type": "string", "description": "Key of the decision to hand this on; the last one recorded unless given."
    });
    tool(
        SUBPLAN,
        "Hands a part of the work on to a child plan. It is carried out and merged before your next turn.",
        json!({
            "type": "object", "additionalProperties": false, "properties": properties, "required": ["action", "prompt"],
        }),
    )
}

fn finish(executing: bool) -> ToolSpec {
    let what = if executing {
        "Says that the work is done and checked. Validations are run then; you are asked again when one does not pass."
    } else {
        "Says that the strategy stands. Another actor carries it out."
    };
    tool(
        FINISH,
        &format!("{what} To be called alone."),
        json!({
            "type": "object", "additionalProperties": false, "required": ["headline"],
            "properties": {
                "headline": { "type": "string", "minLength": 1, "description": "One sentence." },
                "lines": { "type": "array", "maxItems": 200, "items": { "type": "string" } }
            }
        }),
    )
}

fn too_tight() -> ToolSpec {
    tool(
        TOO_TIGHT,
        "Says that decisions of the strategy cannot be kept to; they are decided again. To be called alone.",
        json!({
            "type": "object", "additionalProperties": false, "required": ["reason"],
            "properties": {
                "reason": { "type": "string", "minLength": 1 },
                "decisions": { "type": "array", "items": { "type": "string" }, "description": "Their keys." }
            }
        }),
    )
}
