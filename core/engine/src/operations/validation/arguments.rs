//! Arguments of an attachment: typed by the validation's schema.

use agents_config::nearest;
use agents_domain::validation::ValidationDefinition;
use agents_domain::{Error, Result};
use serde_json::{Map, Value};

/// Reads what was given: texts become what the schema says; keys are written with `_`.
///
/// Without a schema, a text that is a number or a boolean becomes one.
pub(super) fn typed(
    definition: &ValidationDefinition,
    given: Map<String, Value>,
) -> Result<Map<String, Value>> {
    let parameters = definition.parameters();
    let open = definition.input_schema.is_none()
        && parameters.is_empty()
        && definition.name.namespace() != "builtin";
    let mut out = Map::new();
    for (key, value) in given {
        let key = key.replace('-', "_");
        let value = match parameters.get(&key) {
            Some(schema) => convert(definition, &key, value, schema)?,
            None if open => guess(value),
            None => return Err(unknown(definition, &key, &parameters)),
        };
        out.insert(key, value);
    }
    let required = definition.input_schema.as_ref().and_then(|s| s.get("required")).and_then(Value::as_array);
    for key in required.into_iter().flatten().filter_map(Value::as_str) {
        let default = parameters.get(key).is_some_and(|p| p.get("default").is_some());
        if !out.contains_key(key) && !default {
            return Err(Error::validation(format!("{} needs the argument `{key}`", definition.name))
                .suggest(format!("add --{} <VALUE>", key.replace('_', "-"))));
        }
    }
    Ok(out)
}

fn unknown(definition: &ValidationDefinition, key: &str, parameters: &Map<String, Value>) -> Error {
    let message = format!("{} has no argument `{key}`", definition.name);
    let known: Vec<&str> = parameters.keys().map(String::as_str).collect();
    if known.is_empty() {
        return Error::validation(format!("{message}: it takes none"));
    }
    let error = Error::validation(format!("{message}: it has {}", known.join(", ")));
    match nearest(key, known.iter().copied()) {
        Some(meant) => error.suggest(format!("did you mean `--{}`?", meant.replace('_', "-"))),
        None => error,
    }
}

fn convert(definition: &ValidationDefinition, key: &str, value: Value, schema: &Value) -> Result<Value> {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let wrong = |what: &str, value: &Value| {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Error::validation(format!("argument `{key}` of {}: expected {what}, not `{shown}`", definition.name))
    };
    let typed = match (&value, kind) {
        (Value::String(text), "integer") => {
            text.parse::<i64>().map(Value::from).map_err(|_| wrong("an integer", &value))?
        }
        (Value::String(text), "number") => {
            let number = text.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
            number.map(Value::Number).ok_or_else(|| wrong("a number", &value))?
        }
        (Value::String(text), "boolean") => match text.as_str() {
            "true" | "yes" => true.into(),
            "false" | "no" => false.into(),
            _ => return Err(wrong("true or false", &value)),
        },
        (Value::String(text), "array" | "object") => {
            let what = if kind == "array" { "a JSON list" } else { "a JSON object" };
            let parsed: Value = serde_json::from_str(text).map_err(|_| wrong(what, &value))?;
            if parsed.is_array() == (kind == "array") && (parsed.is_array() || parsed.is_object()) {
                parsed
            } else {
                return Err(wrong(what, &value));
            }
        }
        (Value::String(_), "" | "string") => value,
        (_, "integer") if value.is_i64() => value,
        (_, "number") if value.is_number() => value,
        (_, "boolean") if value.is_boolean() => value,
        (_, "array") if value.is_array() => value,
        (_, "object") if value.is_object() => value,
        (_, "") => value,
        (_, kind) => return Err(wrong(&format!("a value of type {kind}"), &value)),
    };
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(&typed)
    {
        let words: Vec<String> =
            allowed.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect();
        return Err(wrong(&format!("one of {}", words.join(", ")), &typed));
    }
    let beyond = |bound: &str, past: fn(f64, f64) -> bool| {
        let limit = schema.get(bound).and_then(Value::as_f64)?;
        past(typed.as_f64()?, limit).then_some(limit)
    };
    if let Some(least) = beyond("minimum", |value, limit| value < limit) {
        return Err(wrong(&format!("at least {least}"), &typed));
    }
    if let Some(most) = beyond("maximum", |value, limit| value > limit) {
        return Err(wrong(&format!("at most {most}"), &typed));
    }
    Ok(typed)
}

fn guess(value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    if let Some(number) = text.parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
        return Value::Number(number);
    }
    match text.as_str() {
        "true" => true.into(),
        "false" => false.into(),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(schema: Value) -> ValidationDefinition {
        serde_json::from_value(json!({
            "name": "local/tests", "source": "builtin", "builtin": "builtin/command", "command": ["true"],
            "input_schema": schema,
        }))
        .unwrap()
    }

    fn given(key: &str, value: &str) -> Map<String, Value> {
        [(key.to_owned(), Value::from(value))].into_iter().collect()
    }

    // VALID-011, VAL-022
    #[test]
    fn arguments_are_typed_by_the_schema_and_wrong_ones_say_what_would_be_right() {
        let tests = definition(json!({
            "type": "object",
            "properties": {
                "coverage_threshold": { "type": "integer", "minimum": 0, "maximum": 100, "default": 80 },
                "kind": { "type": "string", "enum": ["unit", "all"] },
                "fast": { "type": "boolean" },
            },
        }));
        let read = |key: &str, value: &str| typed(&tests, given(key, value));
        assert_eq!(
            read("coverage-threshold", "90").unwrap(),
            *json!({"coverage_threshold": 90}).as_object().unwrap()
        );
        assert_eq!(read("fast", "yes").unwrap()["fast"], true);
        for (key, value, why) in [
            ("coverage-threshold", "high", "expected an integer, not `high`"),
            ("coverage-threshold", "120", "expected at most 100, not `120`"),
            ("kind", "some", "expected one of unit, all, not `some`"),
            ("coverage", "1", "it has coverage_threshold, kind, fast"),
        ] {
            let error = read(key, value).unwrap_err();
            assert!(error.message.contains(why), "{error}");
        }
        let needs = definition(json!({ "type": "object", "properties": { "x": {} }, "required": ["x"] }));
        assert!(typed(&needs, Map::new()).unwrap_err().message.contains("needs the argument `x`"));
        let mut open = definition(Value::Null);
        open.input_schema = None;
        assert_eq!(typed(&open, given("n", "90")).unwrap()["n"], 90);
    }
}
