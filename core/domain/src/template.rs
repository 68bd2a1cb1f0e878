//! Templates (`{{ name }}`) of actor files and of their prompts: the language they are written in, kept in bounds.
//!
//! A template can compute and nothing else: no files, no code, no private names. What it costs is limited by fuel.

mod filters;
mod yaml;

use minijinja::value::Value;
use minijinja::{Environment, Error, Expression, UndefinedBehavior};

pub use yaml::to_yaml;

/// What a template may cost: one instruction or 64 bytes of output each. Enough for about 10 MB of text.
const FUEL: u64 = 200_000;

/// How deep templates may nest.
const RECURSION: usize = 64;

/// An environment with every filter, test, function and method templates may use.
pub fn environment<'s>() -> Environment<'s> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_recursion_limit(RECURSION);
    environment.set_fuel(Some(FUEL));
    environment.set_debug(true);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    filters::add(&mut environment);
    environment
}

/// Whether a text has templates in it; what has none is never given to the engine.
pub fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// Renders a text. A context may hold whatever its users put there; names that begin with `_` are not seen.
///
/// # Errors
/// What is wrong with the template, with its line.
pub fn render(text: &str, context: &serde_json::Value) -> Result<String, String> {
    render_with(text, context, &[])
}

/// As [`render`]; other templates can be included by their names.
///
/// # Errors
/// What is wrong with a template, with its line.
pub fn render_with(
    text: &str,
    context: &serde_json::Value,
    includes: &[(String, String)],
) -> Result<String, String> {
    if !is_template(text) {
        return Ok(text.to_owned());
    }
    let mut environment = environment();
    environment.set_syntax(syntax());
    for (name, text) in includes {
        environment.add_template(name, text).map_err(|error| words(&error))?;
    }
    // As in files: a tag on a line of its own leaves no line behind.
    environment.set_syntax(syntax());
    environment.render_str(text, visible(context)).map_err(|error| words(&error))
}

/// The usual delimiters; a line with nothing but a tag leaves nothing behind.
pub fn syntax() -> minijinja::syntax::SyntaxConfig {
    minijinja::syntax::SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .unwrap_or_default()
}

/// What an error says, with its line.
pub fn words(error: &Error) -> String {
    let why = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{why} (line {line})"),
        None => why,
    }
}

/// Evaluates a condition, written as in Python: `not tests.passed or attempts >= 3`.
///
/// # Errors
/// What is wrong with it.
pub fn holds(expression: &str, context: &serde_json::Value) -> Result<bool, String> {
    let environment = environment();
    let compiled = compile(&environment, expression)?;
    compiled.eval(visible(context)).map(|value| value.is_true()).map_err(|error| words(&error))
}

/// Checks that a condition can be read.
///
/// # Errors
/// What is wrong with it.
pub fn check_expression(expression: &str) -> Result<(), String> {
    compile(&environment(), expression).map(drop)
}

fn compile<'e, 's>(
    environment: &'e Environment<'s>,
    expression: &'s str,
) -> Result<Expression<'e, 's>, String> {
    environment.compile_expression(expression.trim()).map_err(|error| words(&error))
}

/// A context as templates see it: without the names that begin with `_`.
pub fn visible(context: &serde_json::Value) -> Value {
    Value::from(minijinja::value::Serde(without_private(context)))
}

fn without_private(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !key.starts_with('_'))
            .map(|(key, value)| (key.clone(), without_private(value)))
            .collect(),
        serde_json::Value::Array(items) => items.iter().map(without_private).collect(),
        other => other.clone(),
    }
}

/// Lays `over` over `under`, mapping by mapping; what is no mapping is replaced.
pub fn merge(under: &mut serde_json::Value, over: &serde_json::Value) {
    match (under, over) {
        (serde_json::Value::Object(under), serde_json::Value::Object(over)) => {
            for (key, value) in over {
                match under.get_mut(key) {
                    Some(known) => merge(known, value),
                    None => {
                        under.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (under, over) => *under = over.clone(),
    }
}

#[cfg(test)]
mod tests;
