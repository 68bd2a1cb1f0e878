//! Scripts of the scripted actor in a few words, so that a feature can say what an actor does.
//!
//! ```text
//! strategize
//! decide status 0.95: Answer 200 | Answer 503
//! spawn docs on local/app after code
//!   execute
//!   decide page: Write it
//!   write docs/page.md: # A page\n
//! execute
//! decide code 0.9 under status: Change the handler
//! if status is Answer 200 write app.py: OK = 200\n
//! write app.py: OK = 503\n
//! fix test: Repair it
//! write app.py: OK = 200\n
//! ```
//!
//! Each `decide` is a step of its own with the writes below it; the first `if` that holds takes the place of the writes.
//! A block below `asked PROMPT` is what a plan does that is asked for exactly that, such as one that is appended.
//! `fix` is what is done about validations that did not pass. A block that is indented below `spawn` is what the child
//! plan does.

use serde_json::{Value, json};

use super::{decision, done, spawn};

/// Reads a script.
///
/// # Panics
/// When a line means nothing.
pub fn play(text: &str) -> Value {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let margin = lines.iter().map(|line| indent(line)).min().unwrap_or_default();
    let lines: Vec<&str> = lines.into_iter().map(|line| &line[margin..]).collect();
    let mut script = json!({});
    let (mut section, mut calls) = ("strategize", 0);
    let mut rest = lines.as_slice();
    while let Some((line, below)) = rest.split_first() {
        let nested = below.iter().take_while(|line| indent(line) > 0).count();
        let (block, after) = below.split_at(nested);
        rest = after;
        let (head, text) = line.split_once(": ").unwrap_or((line, ""));
        let text = text.replace("\\n", "\n");
        let words: Vec<&str> = head.split_whitespace().collect();
        let with = |name: &str| words.iter().position(|word| *word == name).map(|at| words[at + 1]);
        let listed = |name: &str| -> Vec<&str> {
            with(name).map(|list| list.split(',').collect()).unwrap_or_default()
        };
        let steps = |script: &mut Value, step: Value| match &mut script[section] {
            Value::Array(steps) => steps.push(step),
            empty => *empty = json!([step]),
        };
        match words[0] {
            "strategize" => section = "strategize",
            "execute" => section = "execute",
            "again" => section = "again",
            kind @ ("decide" | "fix" | "together") => {
                let kind = match kind {
                    "fix" => "validation_response",
                    "together" => "subplan_parallel_spawn",
                    _ if section == "execute" => "implementation_choice",
                    _ => "strategy_choice",
                };
                let mut request = decision(words[1], kind, with("under"));
                request["depends_on"] = json!(listed("after"));
                if !text.is_empty() {
                    let options = text.split(" | ").map(|option| json!({ "option": option }));
                    request["alternatives"] = options.collect();
                }
                match words.get(2) {
                    // To be filled in later.
                    Some(name) if name.starts_with('$') => request["confidence"] = json!(name),
                    Some(word) => {
                        if let Ok(confidence) = word.parse::<f64>() {
                            request["confidence"] = json!(confidence);
                        }
                    }
                    None => {}
                }
                let mut step = json!({ "requests": [request], "cases": [] });
                if kind == "validation_response" {
                    steps(&mut script, done("did it"));
                    step["expect"] = json!({ "findings": [{ "passed": false }] });
                }
                steps(&mut script, step);
            }
            "spawn" => {
                let child = play(&block.join("\n"));
                let request = spawn(words[1], with("in"), &listed("on"), &listed("after"), &child);
                steps(&mut script, json!({ "requests": [request] }));
            }
            "asked" => {
                let prompt = line.strip_prefix("asked ").unwrap_or_default();
                script["prompts"][prompt] = play(&block.join("\n"));
            }
            "fail" => steps(
                &mut script,
                json!({ "fail": {
                "message": text, "category": "actor", "transient": false, "hints": [],
            } }),
            ),
            "write" | "if" => {
                calls += 1;
                let step = script[section].as_array_mut().and_then(|steps| steps.last_mut());
                write(step.expect("a decision comes before what is written"), head, &text, calls);
            }
            _ => panic!("`{line}` means nothing in a script"),
        }
    }
    for phase in ["strategize", "execute", "again"] {
        if let Some(steps) = script[phase].as_array_mut() {
            steps.push(done("did it"));
        } else if phase != "again" {
            script[phase] = json!([done("nothing to do")]);
        }
    }
    if script["again"].is_null() {
        script.as_object_mut().expect("a script is an object").remove("again");
    }
    script
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// `write PATH [at RESOURCE]`, or `if KEY is OPTION write PATH [at RESOURCE]`.
fn write(step: &mut Value, head: &str, text: &str, call: usize) {
    let (condition, what) = head.split_once("write ").expect("something is written");
    let (path, resource) = match what.split_once(" at ") {
        Some((path, resource)) => (path, format!("${{resource:{resource}}}")),
        None => (what, "${resource}".to_owned()),
    };
    let request = json!({
        "request": "tool", "call_id": call.to_string(), "tool": "builtin/apply-edits",
        "decision": step["requests"][0]["key"],
        "args": { "resource": resource, "edits": [{ "op": "write", "path": path, "content": text }] },
    });
    let Some((key, option)) = condition.strip_prefix("if ").and_then(|rest| rest.split_once(" is ")) else {
        return step["requests"].as_array_mut().expect("a step has requests").push(request);
    };
    let (option, mut decided) = (option.trim(), step["requests"][0].clone());
    let options = decided["alternatives"].as_array().expect("a decision has options");
    // Proposing what stands otherwise would be overruled, and what is done under it with it.
    let chosen = options.iter().position(|other| other["option"] == option);
    let first = chosen.map(|chosen| {
        decided["chosen"] = chosen.into();
        decided
    });
    let cases = step["cases"].as_array_mut().expect("a step has cases");
    match cases.iter_mut().find(|case| case["decision"] == key && case["chosen"] == option) {
        Some(case) => case["requests"].as_array_mut().expect("a case has requests").push(request),
        None => {
            let requests: Vec<Value> = first.into_iter().chain([request]).collect();
            cases.push(json!({ "decision": key, "chosen": option, "requests": requests }));
        }
    }
}
