//! Validations in Python, and those that wrap a tool: neither writes, neither has a network (VALID-004 to 006, 024 to 031).

use std::sync::Arc;

use agents_domain::QualifiedName;
use agents_domain::validation::{ValidationDefinition, Verdict};
use agents_tools::Lens;
use serde_json::{Map, Value, json};

use super::Place;
use crate::Engine;
use crate::tools::{self, Body, Code, Scene, Tool};

/// Runs the code of a validation.
pub(super) async fn custom(
    definition: &ValidationDefinition,
    args: &Map<String, Value>,
    place: &Place<'_>,
) -> Verdict {
    let code = code_of(definition, definition.code.clone().unwrap_or_default());
    let lens = Lens::default();
    let scene = scene(place, &lens);
    match tools::run_code(&Arc::new(code), Value::Object(args.clone()), &scene, true).await {
        Ok((_, result)) => verdict(result),
        Err((_, why)) => Verdict::broken(why),
    }
}

/// Runs the tool that a validation wraps, and reads what it returned.
pub(super) async fn wrapped(
    definition: &ValidationDefinition,
    args: &Map<String, Value>,
    place: &Place<'_>,
) -> Verdict {
    let Some(name) = &definition.wraps else { return Verdict::broken("it wraps no tool".to_owned()) };
    let tool = match wrapped_tool(place.engine, name) {
        Ok(tool) => tool,
        Err(why) => return Verdict::broken(why),
    };
    let args = match tools::checked(&tool, mapped(definition, args)) {
        Ok(args) => args,
        Err(why) => return Verdict::broken(format!("{name}: {why}")),
    };
    let lens = Lens::default();
    let scene = scene(place, &lens);
    let ran = match &tool.body {
        Body::Look(look) => look(&args, &scene),
        Body::Ask(ask) => ask(args, &scene).await,
        Body::Code(code) => {
            tools::run_code(code, args, &scene, true).await.map(|(_, result)| result).map_err(|(_, why)| why)
        }
        _ => Err("it writes, and what a validation runs must not".to_owned()),
    };
    let output = match ran {
        Ok(output) => output,
        Err(why) => return Verdict::broken(format!("{name}: {why}")),
    };
    let Some(transform) = &definition.transform else {
        // What a tool returns that is no object is told as one.
        let output = match output.as_object() {
            Some(members) if members.len() == 1 && members.get("result").is_some_and(Value::is_object) => {
                members["result"].clone()
            }
            _ => output,
        };
        if output["passed"].is_boolean() {
            return verdict(output);
        }
        let mut broken = Verdict::broken(format!(
            "{name} returned no `passed` (true or false): write a `transform` from what it returns"
        ));
        broken.data.insert("raw_output".to_owned(), output);
        return broken;
    };
    let code = code_of(definition, transform.clone());
    match tools::transform(&code, output, &scene).await {
        Ok(result) => verdict(result),
        Err((_, why)) => Verdict::broken(format!("`transform` failed: {why}")),
    }
}

/// The tool that a validation wraps.
pub(crate) fn wrapped_tool(engine: &Engine, name: &QualifiedName) -> Result<Arc<Tool>, String> {
    if let Some(found) = tools::resolve(engine, &[], &name.to_string()) {
        return found;
    }
    // A bare name is taken for one of ours where nobody registered another (TOOL-036).
    let bare = name.to_string();
    let ours = bare.strip_prefix("local/").and_then(tools::find);
    ours.cloned().ok_or_else(|| format!("there is no tool `{name}`"))
}

/// The arguments for the tool: what the mapping says of them, or all as they are (VALID-029, G-23).
fn mapped(definition: &ValidationDefinition, args: &Map<String, Value>) -> Value {
    let Some(mapping) = &definition.argument_mapping else { return Value::Object(args.clone()) };
    let known = definition.parameters();
    let mut out = Map::new();
    for (parameter, of) in mapping {
        match of.as_str().filter(|name| known.contains_key(*name)) {
            Some(name) => {
                if let Some(value) = args.get(name) {
                    out.insert(parameter.clone(), value.clone());
                }
            }
            None => _ = out.insert(parameter.clone(), of.clone()),
        }
    }
    Value::Object(out)
}

fn code_of(definition: &ValidationDefinition, code: String) -> Code {
    Code {
        name: definition.name.to_string(),
        code,
        env: definition.env.clone(),
        slots: Vec::new(),
        lifecycle: Default::default(),
        output: None,
        timeout: definition.timeout,
        writes: false,
        cost: None,
        environment: None,
    }
}

fn scene<'a>(place: &'a Place<'_>, lens: &'a Lens) -> Scene<'a> {
    Scene { engine: place.engine, plan: None, sandboxes: std::slice::from_ref(place.sandbox), lens }
}

/// What code returned as a verdict (VALID-005, VALID-006).
fn verdict(result: Value) -> Verdict {
    let Some(passed) = result["passed"].as_bool() else {
        let mut broken = Verdict::broken(
            "it returned no `passed` (true or false), which every validation must".to_owned(),
        );
        broken.data.insert("raw_output".to_owned(), result);
        return broken;
    };
    let said = result["message"].as_str().map(str::to_owned);
    let message = said.unwrap_or_else(|| if passed { "passed" } else { "did not pass" }.to_owned());
    let data = match &result["data"] {
        Value::Null => Map::new(),
        Value::Object(data) => data.clone(),
        other => Map::from_iter([("value".to_owned(), json!(other))]),
    };
    Verdict { passed, message, data, findings: Vec::new(), error: false }
}
