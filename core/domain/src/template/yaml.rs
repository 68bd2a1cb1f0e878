//! Writes a value as YAML, for the filter of that name.

use std::fmt::Write as _;

use serde_json::Value;

/// A value as block YAML, without a line end behind the last line.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out.trim_end_matches('\n').to_owned()
}

fn write(value: &Value, depth: usize, out: &mut String) {
    let space = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let _ = write!(out, "{space}{}:", scalar(key));
                below(value, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let _ = write!(out, "{space}-");
                below(item, depth, out);
            }
        }
        other => {
            out.push_str(&space);
            plain(other, out);
        }
    }
}

/// What stands behind `key:` or `-`.
fn below(value: &Value, depth: usize, out: &mut String) {
    let nested = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if nested {
        out.push('\n');
        write(value, depth + 1, out);
    } else {
        out.push(' ');
        plain(value, out);
    }
}

fn plain(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => out.push_str(&scalar(text)),
        other => out.push_str(&other.to_string()),
    }
    out.push('\n');
}

/// A text that YAML reads as that text: plain where that is sure, in quotes otherwise.
fn scalar(text: &str) -> String {
    let safe = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ');
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    let is_plain = text.starts_with(|c: char| c.is_alphabetic())
        && text.chars().all(safe)
        && !text.ends_with(' ')
        && !word;
    if is_plain { text.to_owned() } else { Value::String(text.to_owned()).to_string() }
}
