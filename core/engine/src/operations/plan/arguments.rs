//! The values of a plan's arguments: typed, defaulted and checked against the action.

use std::collections::BTreeMap;

use agents_domain::action::{Action, ActionArgument, ArgumentType};
use agents_domain::{Error, Result};
use serde_json::{Map, Value};

/// Gives every argument its typed value, or says which one is wrong and what would be right.
pub(crate) fn check_arguments(
    action: &Action,
    mut given: Map<String, Value>,
) -> Result<BTreeMap<String, Value>> {
    let mut values = BTreeMap::new();
    for argument in &action.definition.arguments {
        let value = match (given.remove(&argument.name), &argument.default) {
            (Some(value), _) => typed(argument, value)?,
            (None, Some(default)) => default.clone(),
            (None, None) if argument.required => {
                return Err(Error::validation(format!("argument `{}` is missing", argument.name))
                    .detail(argument.description.clone().unwrap_or_default())
                    .suggest(format!("--arg {}=<{}>", argument.name, type_word(argument.argument_type))));
            }
            (None, None) => continue,
        };
        values.insert(argument.name.clone(), value);
    }
    if let Some(unknown) = given.keys().next() {
        let known = action.definition.arguments.iter().map(|a| a.name.as_str()).collect::<Vec<_>>();
        let known = if known.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("it takes {}", known.join(", "))
        };
        return Err(Error::validation(format!(
            "action `{}` has no argument `{unknown}`: {known}",
            action.definition.name
        )));
    }
    Ok(values)
}

fn type_word(argument_type: ArgumentType) -> &'static str {
    match argument_type {
        ArgumentType::String => "string",
        ArgumentType::Integer => "integer",
        ArgumentType::Float => "float",
        ArgumentType::Boolean => "boolean",
        ArgumentType::List => "list",
    }
}

fn typed(argument: &ActionArgument, value: Value) -> Result<Value> {
    let wrong = |why: String| Error::validation(format!("argument `{}` {why}", argument.name));
    let mismatch =
        || wrong(format!("must be of type {}, not `{}`", type_word(argument.argument_type), show(&value)));
    let text = value.as_str();
    let typed = match argument.argument_type {
        ArgumentType::String => Value::String(text.map_or_else(|| show(&value), str::to_owned)),
        ArgumentType::Integer => {
            let number = text.map_or_else(|| value.as_i64(), |t| t.parse().ok());
            Value::from(number.ok_or_else(mismatch)?)
        }
        ArgumentType::Float => {
            let number = text.map_or_else(|| value.as_f64(), |t| t.parse().ok()).filter(|n| n.is_finite());
            Value::from(number.ok_or_else(mismatch)?)
        }
        ArgumentType::Boolean => match text {
            Some("true" | "yes" | "1") => Value::Bool(true),
            Some("false" | "no" | "0") => Value::Bool(false),
            Some(_) => return Err(mismatch()),
            None => Value::Bool(value.as_bool().ok_or_else(mismatch)?),
        },
        ArgumentType::List => match text {
            Some(t) if t.trim_start().starts_with('[') => serde_json::from_str(t).map_err(|_| mismatch())?,
            Some(t) => Value::from(t.split(',').map(str::trim).filter(|s| !s.is_empty()).collect::<Vec<_>>()),
            None if value.is_array() => value.clone(),
            None => return Err(mismatch()),
        },
    };
    if let (Some(pattern), Some(text)) = (&argument.validation_pattern, typed.as_str()) {
        let regex =
            regex::Regex::new(pattern).map_err(|e| wrong(format!("has a pattern that is not one: {e}")))?;
        if !regex.is_match(text) {
            return Err(wrong(format!("must match `{pattern}`, and `{text}` does not")));
        }
    }
    if let Some(number) = typed.as_f64()
        && (argument.min_value.is_some_and(|min| number < min)
            || argument.max_value.is_some_and(|max| number > max))
    {
        let bound = |b: Option<f64>| b.map_or_else(|| "any".to_owned(), |b| b.to_string());
        return Err(wrong(format!(
            "must be from {} to {}, not {number}",
            bound(argument.min_value),
            bound(argument.max_value)
        )));
    }
    Ok(typed)
}

fn show(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
