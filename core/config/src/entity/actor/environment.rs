//! `${NAME}` and `${NAME:default}` in actor files: the value with its type (ACTOR-055 to ACTOR-057).

use std::ops::Range as Bytes;

use super::{Variables, protect};
use crate::yaml::{Node, NodeKind, Source, join};

/// Puts variables into all texts, and gives what becomes a truth value or a number that type.
pub(super) fn interpolate(root: &mut Node, variables: Option<Variables<'_>>, source: &mut Source<'_>) {
    walk(root, "", "", false, variables, source);
}

fn walk(
    node: &mut Node,
    path: &str,
    key: &str,
    is_prompt: bool,
    variables: Option<Variables<'_>>,
    source: &mut Source<'_>,
) {
    let bytes = node.bytes.clone();
    match &mut node.kind {
        NodeKind::Text(text) => {
            if text.contains("${")
                && let Some(kind) =
                    value(text, path, &bytes, is_prompt || protect::is_prompt(key), variables, source)
            {
                node.kind = kind;
            }
        }
        NodeKind::List(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                walk(item, &format!("{path}[{at}]"), key, is_prompt, variables, source);
            }
        }
        NodeKind::Map(entries) => {
            for entry in entries {
                // What is rendered later must not render what a variable holds.
                let prompts = path.is_empty() && matches!(entry.key.as_str(), "prompts" | "templates");
                let path = join(path, &entry.key);
                walk(&mut entry.value, &path, &entry.key, is_prompt || prompts, variables, source);
            }
        }
        _ => {}
    }
}

/// The text with its variables; `None` when nothing was put in.
fn value(
    text: &str,
    path: &str,
    bytes: &Bytes<usize>,
    is_prompt: bool,
    variables: Option<Variables<'_>>,
    source: &mut Source<'_>,
) -> Option<NodeKind> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let (mut replaced, mut escaped) = (false, false);
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_str(&rest[..at - 1]);
            out.push_str("${");
            escaped = true;
            rest = &rest[at + 2..];
            continue;
        }
        let Some(end) = rest[at..].find('}').map(|end| at + end) else { break };
        let inside = &rest[at + 2..end];
        let (name, default) = match inside.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        out.push_str(&rest[..at]);
        if is_variable(name) {
            let known = variables.and_then(|find| find(name)).or_else(|| default.map(str::to_owned));
            match (known, variables) {
                (Some(value), _) if is_prompt => out.push_str(&quoted(&value)),
                (Some(value), _) => out.push_str(&value),
                (None, Some(_)) => {
                    let message = format!(
                        "the environment variable `{name}` is not set: set it, or write `${{{name}:default}}`"
                    );
                    source.error(path, bytes, message);
                    return None;
                }
                // Nobody knows the environment here.
                (None, None) => return Some(NodeKind::Open(text.to_owned())),
            }
            replaced = true;
        } else {
            out.push_str(&rest[at..=end]);
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    if out.len() > crate::MAX_FILE_BYTES {
        source.error(path, bytes, "the value becomes larger than 1 MiB through its variables");
        return None;
    }
    match (replaced, escaped) {
        (true, _) if !is_prompt => Some(typed(out)),
        (false, false) => None,
        _ => Some(NodeKind::Text(out)),
    }
}

/// Template marks in a value, as a template that gives them back.
fn quoted(value: &str) -> String {
    if !value.contains('{') && !value.contains('}') {
        return value.to_owned();
    }
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '{' => out.push_str("{{ '{' }}"),
            '}' => out.push_str("{{ '}' }}"),
            c => out.push(c),
        }
    }
    out
}

fn typed(text: String) -> NodeKind {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.to_ascii_lowercase().as_str() {
        "true" => return NodeKind::Bool(true),
        "false" => return NodeKind::Bool(false),
        _ => {}
    }
    let number = text.strip_prefix('-').unwrap_or(&text);
    let is_number = match number.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part),
        None => digits(number),
    };
    let parsed = is_number.then(|| match number.contains('.') {
        true => text.parse::<f64>().ok().and_then(serde_json::Number::from_f64),
        // A number that is too large for a number stays a text.
        false => text.parse::<i64>().ok().map(Into::into),
    });
    parsed.flatten().map_or(NodeKind::Text(text), NodeKind::Number)
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
