//! Keeping secrets out of what people and logs are shown.

use serde_json::Value;

/// What shows in place of a secret.
pub const MASK: &str = "********";

/// Words that make the value of a key a secret.
const SECRET_WORDS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "credentials",
    "authorization",
    "apikey",
];

/// The same of two words.
const SECRET_PAIRS: [(&str, &str); 4] =
    [("api", "key"), ("access", "key"), ("private", "key"), ("auth", "key")];

/// Keys with such a word whose values are no secrets.
const ALLOWED: [&str; 4] = ["token_usage", "token_count", "token_types", "token_modifiers"];

/// How well-known secrets begin, with the fewest characters they have.
const SHAPES: [(&str, usize); 12] = [
    ("sk-", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("AKIA", 20),
    ("AIza", 30),
    ("hf_", 20),
    ("-----BEGIN ", 20),
];

/// A JSON value with every secret masked: texts under keys that name one, and texts that look like one. A text that only
/// names variables (`${NAME}`) is shown: what it stands for is not in it.
pub fn redacted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, field)| {
                let secret = is_secret_key(key) && !field.is_null() && !field.is_boolean();
                (key.clone(), if secret { masked(field) } else { redacted(field) })
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(redacted).collect::<Vec<_>>().into(),
        Value::String(text) if looks_secret(text) => MASK.into(),
        other => other.clone(),
    }
}

fn masked(value: &Value) -> Value {
    match value {
        Value::String(text) if text.is_empty() || is_variable(text) => value.clone(),
        Value::Object(fields) => {
            fields.iter().map(|(k, v)| (k.clone(), masked(v))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(masked).collect::<Vec<_>>().into(),
        Value::Null => Value::Null,
        _ => MASK.into(),
    }
}

/// `${NAME}` and nothing else; a default behind the name would be a value.
fn is_variable(text: &str) -> bool {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// The key names a secret: one of its words, whole, says so.
pub fn is_secret_key(key: &str) -> bool {
    let words = words(key);
    if ALLOWED.contains(&words.join("_").as_str()) {
        return false;
    }
    let pair = |pair: &[String]| SECRET_PAIRS.iter().any(|(a, b)| pair[0] == *a && pair[1] == *b);
    words.iter().any(|word| SECRET_WORDS.contains(&word.as_str())) || words.windows(2).any(pair)
}

/// `apiKey`, `api-key`, `API_KEY` as `api`, `key`.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for c in key.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower) {
            words.push(String::new());
        }
        lower = c.is_lowercase() || c.is_numeric();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn looks_secret(text: &str) -> bool {
    let text = text.trim_start().trim_start_matches("Bearer ");
    SHAPES.iter().any(|(start, least)| {
        text.starts_with(start)
            && text.len() >= *least
            && (*start == "-----BEGIN " || !text.contains(char::is_whitespace))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // Ruling 21
    #[test]
    fn whole_words_of_keys_and_known_shapes_are_secrets() {
        for key in ["token", "apiKey", "API_KEY", "auth-token", "db.password", "clientSecret", "privateKey"] {
            assert!(is_secret_key(key), "{key}");
        }
        for key in ["token_usage", "tokenTypes", "tokens", "author", "keyboard", "monkey", "secretary", "key"]
        {
            assert!(!is_secret_key(key), "{key}");
        }
        let value = json!({
            "auth": { "token": "abc", "user": "ada" }, "password": ["a", "b"], "secret": { "a": 1 },
            "list": ["sk-abcdefghijklmnopqrstuvwxyz", "sk-short", "ghp_words are no token at all"],
            "apiKey": "${API_KEY}", "token": "", "useToken": true, "accessKey": "${KEY:hunter2}",
        });
        assert_eq!(
            redacted(&value),
            json!({
                "auth": { "token": MASK, "user": "ada" }, "password": [MASK, MASK], "secret": { "a": MASK },
                "list": [MASK, "sk-short", "ghp_words are no token at all"],
                "apiKey": "${API_KEY}", "token": "", "useToken": true, "accessKey": MASK,
            })
        );
    }
}
