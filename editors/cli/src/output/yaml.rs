//! Writes JSON values as YAML that every reader, of YAML 1.1 or 1.2, takes for the same value.

use serde_json::{Number, Value};

use super::layout::is_control;

/// The value as a YAML document in block style, keys in their order, with a line break at the end.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => node(value, 0, &mut out),
        Value::Array(items) if !items.is_empty() => node(value, 0, &mut out),
        _ => {
            scalar(value, 0, &mut out);
            out.push('\n');
        }
    }
    out
}

/// Writes a collection that is not empty, starting where the cursor is, its further lines indented by `indent`.
fn node(value: &Value, indent: usize, out: &mut String) {
    let pad = |out: &mut String| out.extend(std::iter::repeat_n(' ', indent));
    match value {
        Value::Object(fields) => {
            for (i, (key, item)) in fields.iter().enumerate() {
                if i > 0 {
                    pad(out);
                }
                if key.chars().count() > 512 {
                    // Readers look for the colon of a plain key within 1024 characters only.
                    out.push_str("? ");
                    text(key, out);
                    out.push('\n');
                    pad(out);
                } else {
                    text(key, out);
                }
                out.push(':');
                if is_block(item) {
                    out.push('\n');
                    out.extend(std::iter::repeat_n(' ', indent + 2));
                    node(item, indent + 2, out);
                } else {
                    out.push(' ');
                    scalar(item, indent, out);
                    out.push('\n');
                }
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    pad(out);
                }
                out.push_str("- ");
                if is_block(item) {
                    node(item, indent + 2, out);
                } else {
                    scalar(item, indent, out);
                    out.push('\n');
                }
            }
        }
        _ => scalar(value, indent, out),
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Writes what fits behind a colon or a dash, without the last line break. `indent` is that of the line it is on.
fn scalar(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&number(n)),
        Value::String(s) if is_literal(s) => literal(s, indent + 2, out),
        Value::String(s) => text(s, out),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// `1e300` is a text to readers of YAML 1.1; `1.0e+300` is a number to all.
fn number(n: &Number) -> String {
    let shown = n.to_string();
    let Some((mantissa, exponent)) = shown.split_once('e') else { return shown };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

/// Whether a text of several lines can be shown as a literal block.
fn is_literal(s: &str) -> bool {
    s.trim_end_matches('\n').contains('\n')
        && !s.starts_with([' ', '\t', '\n'])
        && s.chars().all(|c| c == '\n' || c == '\t' || (!is_control(c) && !is_unprintable(c)))
}

fn literal(s: &str, indent: usize, out: &mut String) {
    let body = s.trim_end_matches('\n');
    let breaks = s.len() - body.len();
    out.push_str(match breaks {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n').chain(std::iter::repeat_n("", breaks.saturating_sub(1))) {
        out.push('\n');
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent));
            out.push_str(line);
        }
    }
}

fn text(s: &str, out: &mut String) {
    if is_plain(s) {
        out.push_str(s);
        return;
    }
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_control(c) || is_unprintable(c) => {
                let code = u32::from(c);
                out.push_str(&match code {
                    0..=0xff => format!("\\x{code:02x}"),
                    0x100..=0xffff => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Characters outside YAML's printable set, and the byte order mark.
fn is_unprintable(c: char) -> bool {
    matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether a text means itself without quotes. Only plainly harmless texts do: what starts with a letter, has no
/// character with a meaning in YAML, and is no word that some reader takes for a boolean, a number or nothing.
fn is_plain(s: &str) -> bool {
    let starts_well = s.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '/');
    let harmless = |c: char| {
        c.is_alphanumeric()
            || matches!(c, '_' | '/' | '.' | '-' | ' ' | ',' | '(' | ')' | '+' | '@' | '=' | '%' | ';')
    };
    let reserved = matches!(
        s.to_ascii_lowercase().as_str(),
        "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "null" | "nan" | "inf" | "infinity"
    );
    starts_well && s.len() <= 512 && s.chars().all(harmless) && !s.ends_with(' ') && !reserved
}
