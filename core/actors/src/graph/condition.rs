//! Whether an edge is taken.

use agents_domain::actor::Edge;
use agents_domain::template;
use serde_json::{Map, Value, json};

/// What conditions look at.
pub(super) struct View<'a> {
    pub context: &'a Value,
    pub outputs: &'a Map<String, Value>,
    pub state: Value,
    /// What the graph was given.
    pub input: &'a str,
    /// What the node before put out.
    pub text: &'a str,
    pub output: Value,
}

impl View<'_> {
    /// The names that expressions may use: nodes by their names, and the parts of the state.
    fn names(&self) -> Value {
        let mut names = self.outputs.clone();
        for (key, value) in [
            ("outputs", Value::Object(self.outputs.clone())),
            ("state", self.state.clone()),
            ("context", self.context.clone()),
            ("input", json!(self.input)),
            ("output", self.output.clone()),
            ("message", json!(self.text)),
        ] {
            names.insert(key.to_owned(), value);
        }
        Value::Object(names)
    }

    /// Whether a condition holds (G-09).
    ///
    /// # Errors
    /// An expression that cannot be evaluated.
    pub fn holds(&self, condition: &Value) -> Result<bool, String> {
        match condition {
            Value::String(expression) => template::holds(expression, &self.names())
                .map_err(|why| format!("the condition `{expression}` cannot be evaluated: {why}")),
            Value::Object(pairs) => match (pairs.get("context_value"), pairs.get("equals")) {
                (Some(Value::String(key)), Some(expected)) => {
                    let found = dotted(self.context, key).or_else(|| dotted(&self.state, key));
                    Ok(found.is_some_and(|found| same(found, expected)))
                }
                _ => Ok(pairs.iter().all(|(key, expected)| self.pair(key, expected))),
            },
            _ => Ok(true),
        }
    }

    fn pair(&self, key: &str, expected: &Value) -> bool {
        let found = dotted(&self.output, key)
            .filter(|_| self.output.is_object())
            .or_else(|| dotted(&self.state, key))
            .or_else(|| dotted(self.context, key));
        match (found, expected) {
            (Some(found), expected) => same(found, expected),
            (None, Value::String(word)) => self.text.trim().eq_ignore_ascii_case(word.trim()),
            (None, _) => false,
        }
    }
}

/// `a.b` of a mapping; also a key that has the dot in it.
fn dotted<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).or_else(|| key.split('.').try_fold(value, |value, part| value.get(part)))
}

/// Equal, also where one side is a text for what the other is.
fn same(found: &Value, expected: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    found == expected
        || (!found.is_object() && !found.is_array() && text(found).eq_ignore_ascii_case(&text(expected)))
}

/// The edges that are taken from a node: those whose condition holds, of these only the highest where priorities are
/// given; where none holds, those without a condition (2.5).
///
/// # Errors
/// A condition that cannot be evaluated.
pub(super) fn taken<'e>(edges: &[&'e Edge], view: &View<'_>) -> Result<Vec<&'e Edge>, String> {
    let is_conditional = |edge: &&&Edge| match &edge.condition {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        _ => true,
    };
    let mut conditional: Vec<&&Edge> = edges.iter().filter(is_conditional).collect();
    let by_priority = conditional.iter().any(|edge| edge.priority.is_some());
    // A stable sort keeps the order of the file.
    conditional.sort_by_key(|edge| std::cmp::Reverse(edge.priority.unwrap_or(0)));
    let mut found: Vec<&Edge> = Vec::new();
    for edge in conditional {
        if view.holds(&edge.condition)? {
            found.push(edge);
            if by_priority {
                break;
            }
        }
    }
    if found.is_empty() {
        found.extend(edges.iter().copied().filter(|edge| !is_conditional(&edge)));
    }
    Ok(found)
}
