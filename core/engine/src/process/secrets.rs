//! Keeping secrets out of what is recorded: the values a command was given, and texts that look like keys.

use std::sync::LazyLock;

use agents_domain::validation::Verdict;
use regex::Regex;
use serde_json::Value;

const MASK: &str = "***";

/// A value shorter than this is no secret worth hiding, and would hide half of the text.
const SHORTEST: usize = 6;

#[allow(clippy::expect_used, reason = "a test compiles it")]
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?s)\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{20,}|AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{20,})\b|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    )
    .expect("the pattern is a regular expression")
});

/// A text without what looks like a key.
pub(crate) fn masked(text: &str) -> String {
    SHAPES.replace_all(text, MASK).into_owned()
}

/// Values that must not be shown.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Hides a value when its name says that it is one.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let secret = words.iter().any(|word| {
            matches!(
                *word,
                "key"
                    | "token"
                    | "secret"
                    | "password"
                    | "passwd"
                    | "pass"
                    | "auth"
                    | "credential"
                    | "credentials"
                    | "apikey"
            )
        });
        if secret && value.len() >= SHORTEST {
            self.0.push(value.to_owned());
        }
    }

    /// A text without them.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in &self.0 {
            out = out.replace(secret, MASK);
        }
        SHAPES.replace_all(&out, MASK).into_owned()
    }

    /// The same for every text in a value.
    pub(crate) fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.text(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => map.into_iter().map(|(key, value)| (key, self.value(value))).collect(),
            other => other,
        }
    }

    /// What may be recorded.
    pub(crate) fn mask(&self, mut verdict: Verdict) -> Verdict {
        verdict.message = self.text(&verdict.message);
        verdict.data = verdict.data.into_iter().map(|(key, value)| (key, self.value(value))).collect();
        for finding in &mut verdict.findings {
            finding.message = self.text(&finding.message);
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_shapes_of_secrets_are_hidden() {
        let mut secrets = Secrets::default();
        secrets.add("API_KEY", "hunter22");
        secrets.add("MONKEY", "banana-split");
        let key = format!("sk-{}", "a1".repeat(12));
        let mut verdict = Verdict::failed(format!("hunter22 and {key}"));
        verdict.data.insert("stdout".to_owned(), "x hunter22 banana-split".into());
        let masked = secrets.mask(verdict);
        assert_eq!(masked.message, "*** and ***");
        assert_eq!(masked.data["stdout"], "x *** banana-split");
    }
}
