//! Keeps secrets out of logs, whoever wrote them there.

use std::io::{self, Write};

use agents_domain::redact::redacted;
use serde_json::Value;

/// Masks secrets in what is written to it: by key in JSON lines, by shape everywhere. What it is given at once is a whole
/// line, as loggers write.
pub struct Redacting<W>(pub W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = match serde_json::from_str::<Value>(&text) {
            Ok(value @ Value::Object(_)) => format!("{}\n", in_texts(redacted(&value))),
            _ => masked(&text),
        };
        self.0.write_all(line.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Masks secrets that stand inside the texts of a value.
fn in_texts(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(masked(&text)),
        Value::Array(items) => items.into_iter().map(in_texts).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, field)| (key, in_texts(field))).collect(),
        other => other,
    }
}

/// Masks the words that look like secrets.
fn masked(text: &str) -> String {
    let of_word = |c: char| c.is_ascii_alphanumeric() || "-_.+/".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !of_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match redacted(&Value::String(word.to_owned())) {
            Value::String(word) => out.push_str(&word),
            _ => out.push_str(word),
        }
        let next = after.find(of_word).unwrap_or(after.len());
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &str) -> String {
        let mut out = Redacting(Vec::new());
        out.write_all(line.as_bytes()).unwrap();
        String::from_utf8(out.0).unwrap()
    }

    #[test]
    fn secrets_are_masked_by_key_and_by_shape() {
        let key = "sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let json = written(&format!(
            "{{\"level\":\"INFO\",\"fields\":{{\"api_key\":\"x1\",\"message\":\"has {key}\"}}}}\n"
        ));
        assert!(!json.contains("x1") && !json.contains(key) && json.ends_with("}\n"), "{json}");
        assert!(json.starts_with("{\"level\":\"INFO\""), "{json}");
        let text = written(&format!("INFO asked with `{key}`, key={key}\n"));
        assert!(!text.contains(key) && text.ends_with('\n'), "{text}");
        assert_eq!(written("INFO nothing secret\n"), "INFO nothing secret\n");
    }
}
