//! Scripts of the scripted actor: plans that hand parts of their work on.

mod play;

use serde_json::{Value, json};

pub use play::play;

/// A decision request with two options, the first of them chosen.
pub fn decision(key: &str, kind: &str, parent: Option<&str>) -> Value {
    json!({
        "request": "record_decision", "key": key, "decision_type": kind, "parent": parent,
        "question": format!("How about {key}?"), "chosen": 0,
        "alternatives": [{ "option": "Do it" }, { "option": "Leave it" }],
        "confidence": 0.95, "rationale": "because", "reasoning": null, "resources": [], "depends_on": [],
        "context": null,
    })
}

/// The end of a phase.
pub fn done(headline: &str) -> Value {
    json!({ "outcome": { "done": { "headline": headline, "lines": [], "facts": null } } })
}

/// A plan that replaces one line (0-based) of a file of its first resource.
pub fn editing(path: &str, line: u32, text: &str) -> Value {
    let edit = json!({
        "request": "tool", "call_id": "1", "tool": "builtin/apply-edits", "decision": "impl/line",
        "args": { "resource": "${resource}", "edits": [{ "op": "edit", "path": path, "edits": [{
            "range": { "start": { "line": line, "column": 0 }, "end": { "line": line + 1, "column": 0 } },
            "new_text": text,
        }] }] },
    });
    json!({
        "strategize": [{ "requests": [decision("strategy/line", "strategy_choice", None)] }, done("decided")],
        "execute": [
            { "requests": [decision("impl/line", "implementation_choice", Some("strategy/line")), edit] },
            done("edited"),
        ],
    })
}

/// A plan whose Execute fails.
pub fn failing(message: &str) -> Value {
    let fail = json!({ "message": message, "category": "actor", "transient": false, "hints": [] });
    json!({ "execute": [{ "fail": fail }] })
}

/// A child plan that plays a script: on which projects (all of the parent's when none is named), after which others.
pub fn spawn(key: &str, parent: Option<&str>, projects: &[&str], after: &[&str], script: &Value) -> Value {
    let mut spawn = decision(key, "subplan_spawn", parent);
    spawn["spawn"] = json!({
        "prompt": format!("Do {key}"), "projects": projects, "depends_on": after,
        "arguments": { "script": script.to_string() },
    });
    spawn
}

/// A plan that only hands on.
pub fn handing_on(spawns: &[Value]) -> Value {
    json!({ "strategize": [{ "requests": spawns }, done("handed on")], "execute": [done("all done")] })
}
