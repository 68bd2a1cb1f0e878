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
    (PEM, 20),
];

const PEM: &str = "-----BEGIN ";

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

/// A text with every secret in it masked that can be told by its shape, wherever it stands.
pub fn redacted_text(text: &str) -> std::borrow::Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let begins = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let found = SHAPES.iter().find(|(start, _)| begins && rest.starts_with(start));
        let length = found.map_or(0, |(start, least)| {
            let length = if *start == PEM {
                match rest.find("-----END ") {
                    Some(end) => end + rest[end + 9..].find("-----").map_or(9, |more| more + 14),
                    None => rest.len(),
                }
            } else {
                let part = |c: char| c.is_ascii_alphanumeric() || "-_./+=".contains(c);
                rest.find(|c| !part(c)).unwrap_or(rest.len())
            };
            if length >= *least && (*start != PEM || rest.contains("PRIVATE KEY")) { length } else { 0 }
        });
        if length > 0 {
            out.push_str(&text[done..at]);
            out.push_str(MASK);
            at += length;
            done = at;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    if done == 0 { text.into() } else { (out + &text[done..]).into() }
}

fn looks_secret(text: &str) -> bool {
    let text = text.trim_start().trim_start_matches("Bearer ");
    SHAPES.iter().any(|(start, least)| {
        text.starts_with(start)
            && text.len() >= *least
            && (*start == PEM || !text.contains(char::is_whitespace))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // SEC-028, SEC-024
    #[test]
    fn secrets_inside_a_text_are_masked_and_nothing_else_is() {
        let key = "sk-proj-0123456789abcdefghij";
        let text = format!("OPENAI_API_KEY={key}\nask-me-something-that-is-long-enough {key}.");
        let masked = redacted_text(&text);
        assert!(!masked.contains("0123456789"), "{masked}");
        assert!(masked.contains("ask-me-something-that-is-long-enough"), "{masked}");
        let pem = "x\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\ny";
        assert_eq!(redacted_text(pem), format!("x\n{MASK}\ny"));
        let certificate = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----";
        assert_eq!(redacted_text(certificate), certificate);
        assert!(matches!(redacted_text("nothing here: ä sk-short"), std::borrow::Cow::Borrowed(_)));
    }

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
